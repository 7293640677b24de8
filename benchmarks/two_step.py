"""The two-step method that AT criticises, compared with AT's recursion: operations and ns per evaluation.

Two steps (AT, introduction): the equations of motion in Cartesian coordinates x of the particles,
`M x'' + J^T lam = f`, are transformed to joint variables by `x' = B qdot`, at every evaluation:

    (B^T M B) qddot = B^T (f - M Bdot qdot)

The forward process, `x`, `x'`, `B` and `Bdot qdot` from `q` and `qdot`, is a part of the evaluation. Loops add the
rows of cut joints in joint variables. Both are recorded as graphs, with equal subexpressions shared, and compiled by
the same machine. `python -m benchmarks --only two_step`.
"""

from __future__ import annotations

import hashlib
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import cardan as cd
from benchmarks.operations import counted
from benchmarks.points import planar_chain
from benchmarks.report import Run
from benchmarks.tables import ns, scientific, table, times
from benchmarks.timing import Block, interleave
from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.plane import across
from cardan.formulation.elements import loads_at
from cardan.formulation.points.formulation import POINTS, PlanarKinematics
from cardan.formulation.points.momentum import carried_links
from cardan.formulation.points.motion import PlanarMotion
from cardan.formulation.points.rows import Coordinates
from cardan.functions.check import consistent_states
from cardan.machines.ufunc.kernel import compile_program
from cardan.model.plane import PlanarModel
from cardan.model.tree import GROUND
from cardan.program.program import Port, Program
from cardan.structure.dynamics import forward_kernel

CHAINS, QUICK_CHAINS = (2, 4, 8, 16, 32, 64), (2, 4)
ROWS = 4096
EXAMPLE = Path(__file__).parents[1] / "examples" / "06_attia_multibranch.py"


def models(quick: bool) -> Iterator[cd.Model]:
    """Chains, and the multi-branch example."""
    yield from (planar_chain(n) for n in (QUICK_CHAINS if quick else CHAINS))
    example = runpy.run_path(str(EXAMPLE))
    yield example["multibranch"]().build(cut=example["CUT"])


def two_step(model: cd.Model) -> ca.Function:
    """Accelerations of the joints (nv,) from q, v, tau: of pins and slides, each with one coordinate."""
    q, v, tau = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    kin = POINTS.kinematics_of_tree(model, q, v)  # the forward process: points and their velocities ...
    assert isinstance(kin, PlanarKinematics)
    planar, motion = kin.planar, kin.motion
    places, own = Coordinates(planar), planar.own_rows
    B = ca.horzcat(*(_column(planar, motion, places, j) for j in range(len(planar.links))))  # ... and their derivatives
    Bdot_v = _without_joint_accelerations(planar, motion, places)
    parts = POINTS.equations(model, kin, loads_at(kin, tau, ca.SX(model.nb, 6), ca.SX(1, 1)))
    H, h = B.T @ (parts.M @ B), B.T @ (parts.f - parts.M @ Bdot_v)
    J, gamma = parts.rows.J[own:, :], parts.rows.gamma[own:]
    factor = ldl_factor(H)
    a = ldl_solve(factor, h)
    if J.shape[0]:
        G = J @ B
        W = ldl_solve(factor, G.T)
        lam = ldl_solve(ldl_factor(G @ W), G @ a - (gamma - J @ Bdot_v))
        a = a - W @ lam
    return ca.Function("two_step", [q, v, tau], [ca.densify(a)], ["q", "v", "tau"], ["a"])


def _column(planar: PlanarModel, motion: PlanarMotion, places: Coordinates, j: int) -> ca.SX:
    """Velocities of the points per unit rate of joint j: a turn about its pin, or a shift, of all beyond it."""
    link, b = planar.links[j], motion.links[j]
    beyond, zero = carried_links(planar, j), ca.SX(2, 1)
    ends = []
    for i, other in enumerate(motion.links):
        if i not in beyond:
            ends.append((zero, zero))
        elif link.role == "pin":
            arm = zero if i == j else other.P - b.P
            ends.append(tuple(link.turn[0] * across(x) for x in (arm, arm + other.d)))
        else:
            ends.append((b.u[0], b.u[0]))
    return ca.sparsify(places.points(ends))


def _without_joint_accelerations(planar: PlanarModel, motion: PlanarMotion, places: Coordinates) -> ca.SX:
    """`Bdot qdot`: accelerations of the points that velocities alone cause."""
    a = {GROUND: ca.SX(2, 1)}
    ends = []
    for i, (link, b) in enumerate(zip(planar.links, motion.links, strict=True)):
        p = motion.carrier(link.parent)
        a[i] = a[link.parent] - p.w2 * (b.P - p.P)
        if link.role == "slide":
            a[i] = a[i] + 2 * p.w * across(b.slip)
        ends.append((a[i], a[i] - b.w2 * b.d))
    return places.points(ends)


def _two_step_kernel(model: cd.Model) -> Any:
    ports = tuple(Port(name, (n,)) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    function = two_step(model)
    key = hashlib.sha256(function.serialize().encode()).hexdigest()
    return compile_program(Program("two_step", ports, (Port("a", (model.nv,)),), key, lambda: function))


def section(run: Run) -> str:
    """Operations, times, and the difference of the results."""
    rows = []
    for model in models(run.quick):
        with run.step(f"two steps {model.name}"):
            rows.append(_row(model, run.rounds, run.least))
    head = (
        "mechanism",
        "bodies",
        "two steps, operations",
        "points, operations",
        "two steps, least ns",
        "points, least ns",
    )
    return f"## The two-step method\n\n{_EXPLAINED}\n\n{table((*head, 'of leasts', 'ratio', 'difference'), rows)}\n"


_EXPLAINED = (
    "Forward dynamics of planar mechanisms, one thread, a batch of 4,096 states, ns per evaluation. Two steps: the "
    "equations of the particles in Cartesian coordinates, transformed to joint variables at every evaluation. `points` "
    "is the recursion over the same particles. Operations are those of the compiled kernel; a kernel of more than "
    "100,000 takes minutes to compile."
)


def _row(model: cd.Model, rounds: int, least: float) -> tuple[str, ...]:
    q, v = consistent_states(model, np.random.default_rng(0), 64)
    q, v = (np.tile(x, (ROWS // 64, 1)) for x in (q, v))
    tau = np.zeros_like(v)
    points = forward_kernel(model, POINTS, False)
    kernels = {"two steps": _two_step_kernel(model), "points": points}
    a = {name: kernel(q, v, tau) for name, kernel in kernels.items()}
    timed = interleave({name: _block(k, q, v, tau) for name, k in kernels.items()}, rounds=rounds, least=least)
    operations = {name: sum(counted(kernel).values()) for name, kernel in kernels.items()}
    difference = float(np.abs(a["points"] - a["two steps"]).max() / np.abs(a["points"]).max())
    return (
        model.name, f"{model.nb}", *(f"{n:,}" for n in operations.values()),
        *(ns(timed[name].minimum) for name in kernels),
        times(timed["points"].least_times_faster_than(timed["two steps"])),
        times(timed["points"].times_faster_than(timed["two steps"])),
        scientific(difference),
    )  # fmt: skip


def _block(kernel: Any, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Block:
    out = np.empty_like(v)
    return Block(lambda: kernel(q, v, tau, out=out, threads=1), len(q))
