"""Inverse kinematics of a 7-joint arm: 1,000 poses, at most 20 starts each, limits kept, against peers in one run.

Robotics Toolbox for Python (`ik_LM`, C++) and a loop over Pinocchio get one pose at a time, as they are made. All must
come within the same tolerance; a peer that is not installed is left out with a sentence.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.report import Run
from benchmarks.tables import number, table, times, us
from benchmarks.timing import Block, interleave

TARGETS, STARTS, STEPS, TOLERANCE = 1000, 20, 30, 1e-6
FEW = 20  # targets of the loop over Pinocchio, which takes milliseconds for each
FRAME = "panda_hand"
MISSING = "Robotics Toolbox for Python is not installed (`pip install roboticstoolbox-python`); it is not compared."


def limits(model: cd.Model) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits of all coordinates."""
    data = [model.joints[link.joint].data for link in model.tree.links]
    return np.array([d.lower for d in data]), np.array([d.upper for d in data])


def toolbox(model: cd.Model) -> Any:
    """Its chain of the same arm, and the pose of its end in the frame of ours; None if it is not there or differs."""
    if find_spec("roboticstoolbox") is None:
        return None
    import roboticstoolbox

    chain = roboticstoolbox.models.Panda().ets()
    lower, upper = limits(model)
    q = np.random.default_rng(1).uniform(lower, upper, (3, 7))
    theirs = np.array([chain.fkine(x).A for x in q])
    offsets = np.linalg.inv(cd.frame_pose(model, q, FRAME)) @ theirs
    assert np.allclose(offsets, offsets[0]) and np.allclose(chain.qlim, [lower, upper]), "not the same arm"
    return chain, offsets[0]


def pinocchio_loop(pin: Any, model: Any, data: Any, frame: int, pose: Any, rng: np.random.Generator) -> bool:
    """Damped least squares as in Pinocchio's own example, from several starts, clamped to the limits."""
    for _ in range(STARTS):
        q = rng.uniform(model.lowerPositionLimit, model.upperPositionLimit)
        for _ in range(5 * STEPS):
            pin.framesForwardKinematics(model, data, q)
            error = pin.log6(data.oMf[frame].actInv(pose)).vector
            if np.abs(error).max() < TOLERANCE:
                return True
            J = pin.computeFrameJacobian(model, data, q, frame)
            dq = J.T @ np.linalg.solve(J @ J.T + 1e-6 * np.eye(6), error)
            q = np.clip(q + dq, model.lowerPositionLimit, model.upperPositionLimit)
    return False


def section(run: Run) -> str:
    """Microseconds a pose and the share reached, one thread."""
    robot = run.robots["Panda"]
    model, count = robot.model, 100 if run.quick else TARGETS
    lower, upper = limits(model)
    q = np.random.default_rng(0).uniform(lower, upper, (count, 7))
    poses = cd.frame_pose(model, q, FRAME)
    solve = partial(cd.inverse_kinematics, model, {FRAME: poses}, starts=STARTS, tolerance=TOLERANCE, threads=1)
    found = solve()
    blocks = {"Cardan": Block(solve, count)}
    reached = {"Cardan": float(found.reached.mean())}

    import pinocchio as pin

    theirs, rng = robot.pinocchio, np.random.default_rng(0)
    data, frame = theirs.createData(), theirs.getFrameId(FRAME)
    wanted = [pin.SE3(np.ascontiguousarray(pose)) for pose in poses[:FEW]]
    loop = lambda: [pinocchio_loop(pin, theirs, data, frame, pose, rng) for pose in wanted]
    reached["Pinocchio, a loop in Python"] = float(np.mean(loop()))
    blocks["Pinocchio, a loop in Python"] = Block(loop, len(wanted))

    peer = toolbox(model)
    if peer is not None:
        chain, offset = peer
        ends = [np.ascontiguousarray(pose) for pose in poses @ offset]
        options = {"ilimit": STEPS, "slimit": STARTS, "tol": TOLERANCE**2 / 2}  # its error is half the square
        each = lambda: [chain.ik_LM(end, **options).success for end in ends]
        reached["Robotics Toolbox, ik_LM"] = float(np.mean(each()))
        blocks["Robotics Toolbox, ik_LM"] = Block(each, count)
    timing = interleave(blocks, rounds=3 if run.quick else 7, least=run.least)
    rows = []
    for name, t in timing.items():
        ratio = min(timing["Cardan"].times_faster_than(t), timing["Cardan"].least_times_faster_than(t))
        rows.append((name, us(t.median), us(t.minimum), times(ratio), f"{number(100 * reached[name])} %"))
        if name.startswith("Robotics") and not run.quick:
            run.at_least("inverse kinematics of the Panda, against ik_LM", 20.0, ratio, times)
    head = ("program", "us a pose", "least", "Cardan is faster by", "reached")
    text = f"{count:,} poses within reach, at most {STARTS} starts, limits kept, {TOLERANCE:g} m and rad; one thread."
    missing = "" if peer else f"\n{MISSING}\n"
    return f"## Inverse kinematics\n\n{text}\n\n{table(head, rows)}\n{missing}"
