"""Runs of every integrator beside the judge's own, which an explicit method of order 8 takes with tight tolerances.

The judge integrates coordinates and rates of the tree with accelerations in maximal coordinates, so that nothing but
the meaning of `q` and `v` is shared with the engine.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

import cardan as cd

from .comparison import Answer
from .joint_motions import Array
from .maximal_coordinates import Judge

METHODS: dict[str, tuple[dict[str, float], float]] = {
    "dormand_prince": ({}, 1e-7),
    "gear": ({}, 1e-5),
    "bdf": ({}, 1e-5),
    "adams": ({}, 1e-5),
    "rk4": ({"step": 1e-3}, 1e-5),
    "alpha": ({"step": 1e-3}, 1e-3),
    "euler": ({"step": 1e-4}, 1e-2),
}
"""Of each integrator its options, and the error at the end that these explain.

The error is for a motion that does not magnify it; the judge's own run tells how far others do.
"""


TREES_ONLY = ("bdf", "adams")


@contextmanager
def quick_code() -> Iterator[None]:
    """Kernels as LLVM makes them soonest, in a cache of their own."""
    from llvmlite.binding import Target

    full, cache = Target.create_target_machine, os.environ.get("CARDAN_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CARDAN_CACHE_DIR"] = folder
        Target.create_target_machine = lambda target, **words: full(target, **words | {"opt": 0})
        try:
            yield
        finally:
            Target.create_target_machine = full
            os.environ.pop("CARDAN_CACHE_DIR")
            if cache is not None:
                os.environ["CARDAN_CACHE_DIR"] = cache


@dataclass(frozen=True)
class Reference:
    """States (n, nq), (n, nv) by the judge at some times, and how a small change of the start has grown by the end."""

    time: Array
    q: Array
    v: Array
    growth: float


def reference(judge: Judge, q: Array, v: Array, time: Array, rtol: float = 1e-11) -> Reference:
    """The judge's run from a consistent state."""
    nq, rank = judge.nq, judge.solve(q, v, t=float(time[0])).rank

    def rates(t: float, y: Array) -> Array:
        q, v = y[:nq], y[nq:]
        return np.concatenate([judge.coordinate_rates(q, v), judge.solve(q, v, t=t, rank=rank).a])

    def run(v: Array) -> Array:
        span = (time[0], time[-1])
        found = solve_ivp(rates, span, np.concatenate([q, v]), "DOP853", time, rtol=rtol, atol=rtol)
        if not found.success:
            raise RuntimeError(f"the judge cannot run {judge.name!r}: {found.message}")
        return np.asarray(found.y.T)

    y = run(v)
    change = 1e-5 * v  # a little faster is consistent as well, but for prescribed motions
    grown = np.abs(run(v + change)[-1] - y[-1]).max() / max(float(np.abs(change).max()), 1e-300)
    return Reference(time, y[:, :nq], y[:, nq:], max(1.0, float(grown)))


def run_answers(
    model: cd.Model, judge: Judge, right: Reference, formulation: str, methods: tuple[str, ...] = tuple(METHODS)
) -> Iterator[Answer]:
    """A run of every integrator from the same start; its error at the end, in coordinates, and how far loops open."""
    q, v, time = right.q[0], right.v[0], right.time
    for method in methods:
        if method in TREES_ONLY and (model.has_rows or formulation != "spatial"):
            continue
        options, bound = METHODS[method]
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                run = cd.simulate(
                    model, float(time[-1] - time[0]), q, v, method=method, formulation=formulation, samples=len(time),
                    start=float(time[0]), **options,
                )  # fmt: skip
        except cd.CardanError as error:
            yield Answer(f"run with {method}", formulation, np.inf, 1.0, str(error), right.growth)
            continue
        said = "; ".join(str(warning.message) for warning in caught) + str(run.outcome)
        off = judge.distance(run.q[-1], right.q[-1])
        gap = judge.solve(run.q[-1], run.v[-1], t=float(time[-1])).gap
        yield Answer(f"run with {method}, end", formulation, off, bound * right.growth, said, right.growth)
        yield Answer(f"run with {method}, loops", formulation, gap, 1e-6, said, right.growth)
