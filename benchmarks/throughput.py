"""Forward dynamics, inverse dynamics and mass matrix: batches and single calls, Cardan and other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.linkages import Linkage
from benchmarks.report import Run
from benchmarks.robots import LONGEST_IN_PINOCCHIO, Robot
from benchmarks.tables import NONE, ns, table, times, us
from benchmarks.timing import Block, Timing, calls, interleave

MOST_BYTES = 1e9  # of one array
MOST_NUMBERS = 65536 * 39  # of one array of states: a large batch of the largest robot
SINGLE_STATES = 64
PAUSE = 0.02  # s, between blocks on all threads


@dataclass(frozen=True)
class Function:
    """One function of the comparison, and its name in each program."""

    key: str
    title: str
    inputs: int
    cardan: Callable[..., Any]
    pinocchio: str
    pinocchio_batch: str | None
    mujoco: tuple[str, ...]
    matrix: bool = False


# fmt: off
FUNCTIONS = {
    "forward": Function(
        "forward", "Forward dynamics (articulated body)", 3, cd.forward_dynamics, "aba", "abaInParallel",
        ("mj_forward",),
    ),
    "inverse": Function(
        "inverse", "Inverse dynamics (recursive Newton–Euler)", 3, cd.inverse_dynamics, "rnea", "rneaInParallel",
        ("mj_kinematics", "mj_comPos", "mj_comVel", "mj_rne"),
    ),
    "mass": Function(
        "mass", "Mass matrix (composite rigid body)", 1, cd.mass_matrix, "crba", None,
        ("mj_kinematics", "mj_comPos", "mj_makeM"), matrix=True,
    ),
}
# fmt: on

# Targets. Batches: speed relative to Pinocchio's batch call, on one thread. Nanoseconds: the time of Pinocchio's CasADi
# graph, printed as eight-wide C by hand, with ordinary rows in and out.
TIMES_PINOCCHIO = {
    "forward": {"Panda": 30.0, "ANYmal": 25.0, "Talos": 18.0},
    "inverse": dict.fromkeys(("2-link", "UR5", "Panda", "ANYmal", "Talos"), 18.0),
    "mass": dict.fromkeys(("2-link", "UR5", "Panda", "ANYmal", "Talos"), 5.0),
}
EXPERT = {"forward": {"Panda": 86e-9, "ANYmal": 237e-9, "Talos": 576e-9}}
FASTER_CALL = {"forward": ("Panda", "Talos")}
BOUND = {"forward": {"2-link": 350e-9, "Panda": 500e-9}}  # s
CHAINS_PER_BODY = {"forward": 8.0}
LINEAR = 1.25  # largest ratio of the time per body at 1000 to that at 100 that counts as linear


def batch_size(run: Run, robot: Robot | Linkage, *, matrix: bool) -> int:
    """Rows of a batch: a power of two, fewer for long chains so that no array exceeds a gigabyte."""
    nv = robot.model.nv
    rows = min(run.most_rows, MOST_NUMBERS // robot.model.nq)
    if matrix:
        rows = min(rows, int(MOST_BYTES / 8 / nv**2))
    return 1 << (rows.bit_length() - 1)


def batch_block(function: Function, robot: Robot, batch: int, threads: int, dtype: Any = np.float64) -> Block:
    """Cardan's batch: inputs and output in C order, the result array allocated."""
    arrays = [array.astype(dtype) for array in robot.states(batch)[: function.inputs]]
    shape = (batch, robot.model.nv, robot.model.nv) if function.matrix else (batch, robot.model.nv)
    out = np.zeros(shape, dtype)
    return Block(lambda: function.cardan(robot.model, *arrays, out=out, threads=threads), batch)


def single_block(function: Function, robot: Robot) -> Block:
    """One call of Cardan from Python for each state, with arrays prepared."""
    arrays = robot.states(SINGLE_STATES)[: function.inputs]
    return calls(function.cardan, [(robot.model, *state) for state in zip(*arrays, strict=True)])


def bound_block(function: Function, robot: Robot) -> dict[str, Block]:
    """One call of Cardan bound to arrays for each state; nothing where the function is not one kernel."""
    count = SINGLE_STATES if robot.model.nv <= 100 else 4
    arrays = robot.states(count)[: function.inputs]
    try:
        compiled = cd.compile(robot.model, function.cardan.__name__)
        steps = [compiled.bind(*map(np.array, state)) for state in zip(*arrays, strict=True)]
    except cd.InputError:
        return {}
    return {"bound call": calls(lambda step: step(), [(step,) for step in steps])}


def _pinocchio_calls(function: Function, robot: Robot) -> dict[str, Block]:
    """Pinocchio's calls from Python, one for each state, in both its conventions."""
    import pinocchio as pin

    model, data = robot.pinocchio, robot.pinocchio.createData()
    arrays = robot.pinocchio_states(*robot.states(SINGLE_STATES)[: function.inputs])
    columns = [[np.array(column) for column in array.T] for array in arrays]
    states = [(model, data, *state) for state in zip(*columns, strict=True)]
    call = getattr(pin, function.pinocchio)
    blocks = {"pin call": calls(call, states)}
    if function.pinocchio != "rnea":  # which has one convention
        blocks["pin call, world"] = calls(call, [(*state, pin.Convention.WORLD) for state in states])
    if function.matrix:
        blocks |= _call_cost(robot.model.nv)
    return blocks


def _pinocchio_batch(function: Function, robot: Robot, batch: int, threads: int) -> Block:
    """Pinocchio's own batch call, with arrays in its layout and the result array allocated."""
    import pinocchio as pin

    model = robot.pinocchio
    pool = pin.ModelPool(model, threads)
    arrays = robot.pinocchio_states(*robot.states(batch)[: function.inputs])
    out = np.zeros((model.nv, batch), order="F")
    parallel = getattr(pin, str(function.pinocchio_batch))
    return Block(lambda: parallel(threads, pool, *arrays, out), batch)


def _call_cost(nv: int) -> dict[str, Block]:
    """Overhead of a call of `crba`: the call on one joint, and copying a matrix of this size."""
    import pinocchio as pin

    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "joint")
    model.appendBodyToJoint(joint, pin.Inertia(1.0, np.ones(3), np.eye(3)), pin.SE3.Identity())
    states = [(model, model.createData(), np.zeros(1))] * SINGLE_STATES
    small, large = np.zeros((1, 1)), np.zeros((nv, nv))
    return {
        "pin call, one joint": calls(pin.crba, states),
        "copy of one number": calls(np.copy, [(small,)] * SINGLE_STATES),
        "copy of a matrix": calls(np.copy, [(large,)] * SINGLE_STATES),
    }


def _mujoco_block(function: Function, robot: Robot) -> Block:
    import mujoco

    model = robot.mujoco
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(0).standard_normal(model.nv)
    result = np.zeros(model.nv)
    steps = [getattr(mujoco, name) for name in function.mujoco]
    mujoco.mj_forward(model, data)

    def run() -> None:
        for step in steps:
            if step is mujoco.mj_rne:
                step(model, data, 1, result)
            else:
                step(model, data)

    return Block(run, 1)


@dataclass(frozen=True)
class Row:
    """Timings of one robot."""

    robot: Robot
    batch: int
    timing: dict[str, Timing]

    def median(self, name: str) -> float | None:
        """Median seconds per evaluation, None if not measured."""
        return self.timing[name].median if name in self.timing else None

    def minimum(self, name: str) -> float | None:
        """Least seconds per evaluation, None if not measured."""
        return self.timing[name].minimum if name in self.timing else None

    def ratio(self, peer: str, ours: str) -> float | None:
        """Speed of Cardan relative to the other, from the same rounds."""
        return self.timing[ours].times_faster_than(self.timing[peer]) if peer in self.timing else None

    def ratio_of_leasts(self, peer: str, ours: str) -> float | None:
        """The same from the best round of each."""
        return self.timing[ours].least_times_faster_than(self.timing[peer]) if peer in self.timing else None

    def judged(self, peer: str, ours: str) -> float:
        """The smaller of the two ratios, 0 if there is none."""
        return min(self.ratio(peer, ours) or 0.0, self.ratio_of_leasts(peer, ours) or 0.0)


def _measure(run: Run, function: Function, robot: Robot) -> Row:
    """One thread in one set of rounds, all threads in another, since idle threads of Pinocchio spin for a while."""
    batch, threads = batch_size(run, robot, matrix=function.matrix), cd.get_threads()
    has_batch = robot.pinocchio is not None and function.pinocchio_batch is not None
    blocks = {"pin batch": _pinocchio_batch(function, robot, batch, 1)} if has_batch else {}
    if robot.pinocchio is not None:
        blocks |= _pinocchio_calls(function, robot)
    blocks["cardan batch"] = batch_block(function, robot, batch, 1)
    blocks["cardan call"] = single_block(function, robot)
    blocks |= bound_block(function, robot)
    blocks["mujoco call"] = _mujoco_block(function, robot)
    timing = interleave(blocks, rounds=run.rounds, least=run.least)
    together = {"pin batch, threads": _pinocchio_batch(function, robot, batch, threads)} if has_batch else {}
    together["cardan batch, threads"] = batch_block(function, robot, batch, threads)
    timing |= interleave(together, rounds=run.rounds, least=run.least, pause=PAUSE)
    return Row(robot, batch, timing)


def section(run: Run, key: str) -> str:
    """The tables of one function, and its targets."""
    function, rows = FUNCTIONS[key], []
    for robot in run.robots.values():
        with run.step(f"{key} {robot.name}"):
            rows.append(_measure(run, function, robot))
    _judge(run, function, rows)
    return f"## {function.title}\n\n{_batch_text(function, rows)}\n\n{_call_text(function, rows)}\n"


def _goal(function: Function, row: Row) -> tuple[str, str]:
    goal = TIMES_PINOCCHIO[function.key].get(row.robot.name)
    ratio = row.judged(_peer(function), "cardan batch")
    if goal is None:
        return NONE, NONE
    return f"{goal:g}x", "yes" if ratio >= goal else "**no**"


def _peer(function: Function) -> str:
    return "pin batch" if function.pinocchio_batch else "pin call"


def _batch_text(function: Function, rows: list[Row]) -> str:
    peer, threads = _peer(function), cd.get_threads()
    called = function.pinocchio_batch or function.pinocchio
    lines = []
    for row in rows:
        lines.append(
            (
                f"{row.robot.name}, {row.robot.model.nv} dof",
                f"{row.batch:,}",
                ns(row.median("cardan batch")),
                ns(row.minimum("cardan batch")),
                ns(row.median(peer)),
                ns(row.minimum(peer)),
                times(row.ratio(peer, "cardan batch")),
                times(row.ratio_of_leasts(peer, "cardan batch")),
                *_goal(function, row),
                ns(row.median("cardan batch, threads")),
                ns(row.median("pin batch, threads")),
                times(row.ratio("pin batch, threads", "cardan batch, threads")),
            )
        )
    head = (
        "robot", "batch", "Cardan", "least", f"`pin.{called}`", "least", "ratio", "of leasts", "goal", "met",
        f"Cardan, {threads} threads", f"Pinocchio, {threads} threads", "ratio",
    )  # fmt: skip
    text = "Batch, ns per evaluation, medians of the rounds; one thread unless stated otherwise.\n\n" + table(
        head, lines
    )
    if function.matrix:
        text += "\n\n" + _corrected_text(rows)
    return text + (
        f"\n\nPinocchio is measured up to {LONGEST_IN_PINOCCHIO} joints: the memory of its `Data` grows with the cube "
        "of the number of joints (tens of gigabytes at 1000)."
    )


def _corrected_text(rows: list[Row]) -> str:
    """Pinocchio has no batch call for the mass matrix: the time of a call without the call overhead."""
    lines = []
    for row in rows:
        if "pin call" in row.timing:
            t = row.timing
            cost = t["pin call, one joint"].seconds + t["copy of a matrix"].seconds - t["copy of one number"].seconds
            bare = Timing(t["pin call"].seconds - cost)
            ratio = times(t["cardan batch"].times_faster_than(bare))
            lines.append((row.robot.name, ns(t["pin call"].median), ns(float(np.median(cost))), ns(bare.median), ratio))
    head = ("robot", "`pin.crba` call", "cost of calling", "remains", "ratio to Cardan's batch")
    return (
        "Pinocchio has no batch call for the mass matrix, so above it is called from Python for each state. Here the "
        "cost of calling is subtracted: the call on a model of one joint, and the copy of a matrix of this size that "
        "the call makes. `pin.crba` fills the upper triangle only, Cardan the whole matrix. ns.\n\n"
        + table(head, lines)
    )


def _call_text(function: Function, rows: list[Row]) -> str:
    lines = []
    for row in rows:
        lines.append(
            (
                row.robot.name,
                us(row.median("cardan call")),
                us(row.minimum("cardan call")),
                us(row.median("bound call")),
                us(row.median("pin call")),
                us(row.minimum("pin call")),
                times(row.ratio("pin call", "cardan call")),
                times(row.ratio("pin call", "bound call")),
                us(row.median("pin call, world")),
                us(row.median("mujoco call")),
            )
        )
    name = f"`pin.{function.pinocchio}`"
    head = ("robot", "Cardan", "least", "bound", name, "least", "ratio", "bound ratio", f"{name}, WORLD", "MuJoCo")
    return (
        "One call from Python with arrays prepared, µs; bound: with arrays fixed by `cd.compile(...).bind`. WORLD is "
        "Pinocchio's other convention, not its default. "
        f"MuJoCo, for context: {MUJOCO_NOTES[function.key]}\n\n" + table(head, lines)
    )


MUJOCO_NOTES = {
    "forward": "`mj_forward`, which also evaluates contacts, sensors and actuators (this model has none).",
    "inverse": "`mj_kinematics`, `mj_comPos`, `mj_comVel`, `mj_rne` with accelerations, four calls from Python.",
    "mass": "`mj_kinematics`, `mj_comPos`, `mj_makeM`, three calls from Python; the matrix stays in its sparse form.",
}


def _judge(run: Run, function: Function, rows: list[Row]) -> None:
    key = function.key
    by_name = {row.robot.name: row for row in rows}
    for name, goal in TIMES_PINOCCHIO[key].items():
        if name in by_name:
            ratio = by_name[name].judged(_peer(function), "cardan batch")
            called = function.pinocchio_batch or function.pinocchio
            run.at_least(f"{name}, {key}: batch, times `pin.{called}`, one thread", goal, ratio, times)
    for name, goal in EXPERT.get(key, {}).items():
        if name in by_name:
            ours = by_name[name].timing["cardan batch"].median
            run.below(f"{name}, {key}: batch, ns, against hand-compiled CasADi", goal, ours, ns)
    for name in FASTER_CALL.get(key, ()):
        if name in by_name:
            ratio = by_name[name].judged("pin call", "cardan call")
            run.at_least(f"{name}, {key}: one call from Python, times `pin.{function.pinocchio}`", 1.0, ratio, times)
    for name, row in by_name.items():
        if {"pin call", "bound call"} <= row.timing.keys():
            ratio = row.judged("pin call", "bound call")
            run.at_least(f"{name}, {key}: one bound call, times `pin.{function.pinocchio}`", 1.0, ratio, times)
    for name, goal in BOUND.get(key, {}).items():
        if name in by_name:
            run.below(f"{name}, {key}: one bound call, ns", goal, by_name[name].timing["bound call"].median, ns)
    _judge_chains(run, key, by_name)


def _judge_chains(run: Run, key: str, by_name: dict[str, Row]) -> None:
    goal, pinocchio = CHAINS_PER_BODY.get(key), by_name.get(f"chain {LONGEST_IN_PINOCCHIO}")
    if goal is None or pinocchio is None:
        return
    theirs = pinocchio.timing["pin batch"].minimum / pinocchio.robot.model.nv  # its best against our median
    per_body = {}
    for name in ("chain 100", "chain 1000"):
        if name in by_name:
            row = by_name[name]
            per_body[name] = row.timing["cardan batch"].median / row.robot.model.nv
            what = f"{name}, {key}: batch, times Pinocchio's best at {LONGEST_IN_PINOCCHIO}, per body"
            run.at_least(what, goal, theirs / per_body[name], times)
    if len(per_body) == 2:
        growth = per_body["chain 1000"] / per_body["chain 100"]
        run.below(f"chains, {key}: time per body at 1000 over that at 100", LINEAR, growth, times)
