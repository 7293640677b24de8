"""`points` compared with `spatial` on planar mechanisms: operations and ns per evaluation of forward dynamics.

`python -m benchmarks.points [--quick]` prints the table; `section(run)` gives it to the report.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import numpy as np

import cardan as cd
from benchmarks.operations import counted
from benchmarks.report import Run
from benchmarks.tables import ns, scientific, table, times
from benchmarks.timing import Block, interleave
from cardan.formulation.points.formulation import POINTS
from cardan.formulation.spatial import SPATIAL
from cardan.functions.check import consistent_states
from cardan.mechanisms import andrews, n_four_bar
from cardan.structure.dynamics import forward_kernel
from cardan.structure.kernels import tree_kernel

CHAINS, QUICK_CHAINS = (2, 4, 8, 16, 32, 64), (2, 8)
WINDOWS, QUICK_WINDOWS = (1, 4, 16), (1, 4)
ROWS = 4096


def planar_chain(n: int) -> cd.Model:
    """Equal rods, hinged about z."""
    m = cd.Mechanism(f"chain of {n}", gravity=(0, -9.81, 0))
    before = m.ground
    for k in range(n):
        rod = cd.inertia.cylinder(1.0, 0.02, 0.2, axis="x")
        body = m.body(f"rod{k}", mass=1.0, com=(0.1, 0, 0), inertia=rod)
        m.joint(f"hinge{k}", cd.Revolute(), before, body, at=(0.2 if k else 0.0, 0, 0))
        before = body
    return m.build()


def models(quick: bool) -> Iterator[cd.Model]:
    """The mechanisms compared."""
    yield from (planar_chain(n) for n in (QUICK_CHAINS if quick else CHAINS))
    yield from (n_four_bar(n).build() for n in (QUICK_WINDOWS if quick else WINDOWS))
    yield andrews().build()


def section(run: Run) -> str:
    """Operations, times, and the difference of the results."""
    rows = []
    for model in models(run.quick):
        with run.step(f"points {model.name}"):
            rows.append(_row(model, run.rounds, run.least))
    return f"## Planar mechanisms as points\n\n{_EXPLAINED}\n\n{_table(rows)}\n"


_EXPLAINED = (
    "Forward dynamics of planar mechanisms, one thread, a batch of 4,096 states, ns per evaluation. `spatial` is the "
    "articulated-body algorithm for a chain, and the mass matrix with the rows of cut joints for loops; `points` is "
    "the recursion over equivalent particles. Operations are those of the compiled kernel."
)


def _table(rows: list[tuple[str, ...]]) -> str:
    head = ("mechanism", "bodies", "spatial, operations", "points, operations", "spatial, ns", "points, ns", "speed-up")
    return table((*head, "difference"), rows)


def _row(model: cd.Model, rounds: int, least: float) -> tuple[str, ...]:
    q, v = consistent_states(model, np.random.default_rng(0), 64)
    q, v = (np.tile(x, (ROWS // 64, 1)) for x in (q, v))
    tau = np.zeros_like(v)
    plain = model.is_plain
    spatial = tree_kernel(model, "forward_dynamics") if plain else forward_kernel(model, SPATIAL, False)
    kernels = {"spatial": spatial, "points": forward_kernel(model, POINTS, False)}
    a = {name: kernel(q, v, tau) for name, kernel in kernels.items()}
    blocks = {name: _block(kernel, q, v, tau) for name, kernel in kernels.items()}
    timed = interleave(blocks, rounds=rounds, least=least)
    operations = {name: sum(counted(kernel).values()) for name, kernel in kernels.items()}
    difference = float(np.abs(a["points"] - a["spatial"]).max() / np.abs(a["spatial"]).max())
    return (
        model.name,
        str(model.nb),
        *(f"{operations[name]:,}" for name in kernels),
        *(ns(timed[name].median) for name in kernels),
        times(timed["points"].times_faster_than(timed["spatial"])),
        scientific(difference),
    )


def _block(kernel: object, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Block:
    out = np.empty_like(v)
    return Block(lambda: kernel(q, v, tau, out=out, threads=1), len(q))  # type: ignore[operator]


if __name__ == "__main__":
    os.environ.setdefault("CARDAN_QUICK", "0")  # rates are those of full code
    brief = "--quick" in sys.argv
    print(_table([_row(model, 3 if brief else 7, 0.005 if brief else 0.04) for model in models(brief)]))
