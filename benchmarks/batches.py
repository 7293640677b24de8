"""Batches: thousands of the same mechanism, 1,000 steps of RK4, against MuJoCo's rollout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.linkages import Linkage
from benchmarks.report import Run
from benchmarks.robots import Link, add_body, empty_mujoco
from benchmarks.tables import NONE, number, scientific, table, times
from benchmarks.timing import Block, Timing, interleave
from cardan import mechanisms

SYSTEMS, STEPS, STEP = 4096, 1000, 1e-3
PEER_SYSTEMS, QUICK_SYSTEMS, QUICK_STEPS = 64, 512, 100
GOAL, AGREEMENT = 20.0, 1e-6
THIN = 1e-6  # moment of inertia of a rod about its axis, relative to its largest: MuJoCo requires one; it has no effect
INTEGRATORS = {"RK4": "mjINT_RK4", "Euler": "mjINT_EULER"}
ROUNDS = 3


@dataclass(frozen=True)
class Batch:
    """A mechanism with many initial states."""

    linkage: Linkage
    systems: int
    steps: int

    @cached_property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Consistent random q (B, nq) and v (B, nv)."""
        q, v, _ = self.linkage.states(self.systems)
        return q, v

    def cardan(self, threads: int) -> cd.Trajectory:
        """Simulate all systems and keep the final states."""
        return cd.simulate(
            self.linkage.model, self.steps * STEP, *self.start, method="rk4", step=STEP, samples=2, threads=threads,
            progress=False,
        )  # fmt: skip


def as_mujoco(model: cd.Model, integrator: str) -> Any:
    """The tree link by link; each cut joint is a `connect` between two sites, a soft constraint in MuJoCo."""
    import mujoco

    spec = empty_mujoco()
    spec.option.gravity = model.gravity
    spec.option.timestep = STEP
    spec.option.integrator = getattr(mujoco.mjtIntegrator, INTEGRATORS[integrator])
    bodies = {-1: spec.worldbody}
    for i, link in enumerate(model.tree.links):
        own = Link(np.array(link.E).T, link.r, link.mass, link.com, _with_thickness(np.asarray(link.I_C)))
        bodies[i] = add_body(bodies[link.parent], own)
        bodies[i].add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
    for joint in (model.joints[j] for j in model.cuts):
        names = f"{joint.name} parent", f"{joint.name} child"
        for name, body, at in zip(names, (joint.parent, joint.child), (joint.at, joint.child_at), strict=True):
            pose = at if body < 0 else model.tree.body_pose[body] @ at
            on = bodies[-1 if body < 0 else model.tree.body_link[body]]
            on.add_site(name=name, pos=np.array(pose.position))
        kind = mujoco.mjtEq.mjEQ_CONNECT
        spec.add_equality(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, name1=names[0], name2=names[1])
    return spec.compile()


def _with_thickness(I: np.ndarray) -> np.ndarray:
    moments, axes = np.linalg.eigh(I)
    return axes @ np.diag(np.maximum(moments, THIN * moments.max())) @ axes.T


class Rollout:
    """MuJoCo's rollout of some systems of a batch, with the result arrays allocated beforehand."""

    def __init__(self, batch: Batch, integrator: str, systems: int, threads: int) -> None:
        import mujoco
        from mujoco import rollout

        self.model = as_mujoco(batch.linkage.model, integrator)
        self.datas = [mujoco.MjData(self.model) for _ in range(threads)]
        q, v = (array[:systems] for array in batch.start)
        size = mujoco.mj_stateSize(self.model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self.start = np.zeros((systems, size))
        self.start[:, 1 : 1 + self.model.nq], self.start[:, 1 + self.model.nq : 1 + 2 * self.model.nq] = q, v
        self.states = np.zeros((systems, batch.steps, size))
        self.sensors = np.zeros((systems, batch.steps, 0))
        self.pool = rollout.Rollout(nthread=threads if threads > 1 else 0)
        self.steps = batch.steps

    def __call__(self) -> None:
        self.pool.rollout(
            [self.model] * len(self.start), self.datas, self.start, nstep=self.steps, state=self.states,
            sensordata=self.sensors, skip_checks=True,
        )  # fmt: skip

    @property
    def end(self) -> np.ndarray:
        """Configurations at the end."""
        return np.asarray(self.states[:, -1, 1 : 1 + self.model.nq])


def section(run: Run) -> str:
    """Steps per second and core."""
    systems, steps = (QUICK_SYSTEMS, QUICK_STEPS) if run.quick else (SYSTEMS, STEPS)
    rows, errors = [], []
    for name, make in (("double pendulum", mechanisms.double_pendulum), ("four-bar", mechanisms.four_bar)):
        with run.step(f"batch {name}"):
            batch = Batch(Linkage(name, make), systems, steps)
            timing, rollouts = _timed(run, batch)
            rows.append(_row(run, batch, timing))
            if rollouts:
                errors.append(_error_row(run, batch, rollouts))
    return _text(systems, steps, rows, errors)


def _timed(run: Run, batch: Batch) -> tuple[dict[str, Timing], dict[str, Rollout]]:
    count = batch.systems * batch.steps
    blocks = {"cardan": Block(partial(batch.cardan, 1), count), "cardan 2": Block(partial(batch.cardan, 2), count)}
    rollouts: dict[str, Rollout] = {}
    try:
        import mujoco  # noqa: F401
    except ImportError:
        return interleave(blocks, rounds=ROUNDS, least=run.least), rollouts
    rollouts = {name: Rollout(batch, name, PEER_SYSTEMS, 1) for name in INTEGRATORS}
    rollouts["RK4 2"] = Rollout(batch, "RK4", PEER_SYSTEMS, 2)
    blocks |= {name: Block(roll, PEER_SYSTEMS * batch.steps) for name, roll in rollouts.items()}
    return interleave(blocks, rounds=ROUNDS, least=run.least), rollouts


def _row(run: Run, batch: Batch, timing: dict[str, Timing]) -> tuple[str, ...]:
    cardan = timing["cardan"]
    cells = [batch.linkage.name, _rate(cardan), _rate(timing["cardan 2"])]
    if "RK4" not in timing:
        return (*cells, *[NONE] * 7)
    ratio = {k: cardan.times_faster_than(timing[k]) for k in INTEGRATORS}
    least = {k: cardan.least_times_faster_than(timing[k]) for k in INTEGRATORS}
    worst = min(ratio["RK4"], least["RK4"])
    run.at_least(f"{batch.linkage.name}, batch of RK4 steps, one thread: times MuJoCo's RK4", GOAL, worst, times)
    both = timing["cardan 2"].times_faster_than(timing["RK4 2"])
    return (
        *cells, _rate(timing["RK4"]), _rate(timing["RK4 2"]), times(ratio["RK4"]), times(least["RK4"]), times(both),
        _rate(timing["Euler"]), times(ratio["Euler"]), "yes" if worst >= GOAL else "**no**",
    )  # fmt: skip


def _rate(timing: Timing) -> str:
    """Million steps per second, all threads together."""
    return number(1e-6 / timing.median)


def _error_row(run: Run, batch: Batch, rollouts: dict[str, Rollout]) -> tuple[str, ...]:
    model, name = batch.linkage.model, batch.linkage.name
    q = np.asarray(batch.cardan(1).q)[:PEER_SYSTEMS, -1]
    apart = {k: float(np.abs(rollouts[k].end - q).max()) for k in INTEGRATORS}
    if not model.cuts:
        run.below(f"{name}, RK4: difference from MuJoCo at the end, rad", AGREEMENT, apart["RK4"], scientific)
        return (name, *map(scientific, apart.values()), NONE, NONE, NONE)
    open_ = [
        float(np.abs(cd.constraint_residual(model, x)).max()) for x in (q, *(rollouts[k].end for k in INTEGRATORS))
    ]
    return (name, *map(scientific, apart.values()), *map(scientific, open_))


def _text(systems: int, steps: int, rows: list[tuple[str, ...]], errors: list[tuple[str, ...]]) -> str:
    head = (
        "mechanism", "Cardan", "Cardan, 2 threads", "MuJoCo RK4", "MuJoCo RK4, 2 threads", "ratio", "of leasts",
        "ratio, 2 threads", "MuJoCo Euler", "ratio to Euler", "met",
    )  # fmt: skip
    head_errors = (
        "mechanism", "Cardan minus MuJoCo RK4, rad", "Cardan minus MuJoCo Euler, rad", "Cardan: loops open by, m",
        "MuJoCo RK4: by", "MuJoCo Euler: by",
    )  # fmt: skip
    return (
        f"## Batches of runs\n\n{systems:,} systems of the same mechanism from random states, {steps:,} steps of "
        f"{STEP * 1e3:g} ms; million steps per second, one thread unless stated otherwise. Cardan: "
        '`cd.simulate(model, ..., method="rk4", step=1e-3, samples=2)`, complete calls without compiling; loops are '
        "projected onto the constraints. MuJoCo: `mujoco.rollout`, which simulates one system after the other, so that "
        f"its rate does not depend on the number of systems: it gets {PEER_SYSTEMS}. It keeps every state, in an array "
        "allocated beforehand. Its loop is a `connect` with default settings: a soft constraint, a smaller problem "
        "that is solved less exactly. The second table has the gaps of the loops and the final differences. Euler is "
        f"MuJoCo's default: first order, one evaluation per step instead of four. The goal is {GOAL:g}x MuJoCo's "
        "RK4.\n\n" + table(head, rows) + "\n\n" + table(head_errors, errors) + "\n"
    )
