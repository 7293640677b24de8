"""Cases that are known to go wrong, with states at which the judge shows it; what is mended becomes a test."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

import cardan as cd

from .comparison import Answer, allowed, answers, random_state, towards_singular, worst_on_the_way
from .joint_motions import Array
from .long_runs import reference, run_answers
from .maximal_coordinates import Judge
from .random_mechanisms import mechanism


@dataclass(frozen=True)
class Known:
    """A case: what it is called, and its answers."""

    name: str
    answers: Callable[[], Iterator[Answer]]


def bricard_rings() -> Iterator[Answer]:
    """Regular positions where the row that was left out is needed: its part of the ring's self-stress vanishes."""
    for seed in (2, 4, 10):
        rng = np.random.default_rng(seed)
        model = mechanism(seed, family="Bricard").build()
        judge = Judge(model)
        for q in worst_on_the_way(model, judge, cd.assemble(model)[0], rng).values():
            yield from answers(model, judge, random_state(model, rng, q))


def run_of_a_bricard_ring() -> Iterator[Answer]:
    """A run through such a position loses digits where the engine's rows do not change with it."""
    seed, rng = 10, np.random.default_rng(10)
    model = mechanism(seed, family="Bricard").build()
    judge = Judge(model)
    q = worst_on_the_way(model, judge, cd.assemble(model)[0], rng)["absolute"]
    direction = allowed(judge, q, rng.standard_normal(model.nv))
    state = cd.assemble(model, cd.plus(model, q, -0.3 * direction), 2.5 * direction)
    right = reference(judge, *state, np.linspace(0, 0.3, 7))
    for key in ("spatial", "absolute", "relative"):
        yield from run_answers(model, judge, right, key)


def coaxial_cranks(x: float) -> cd.Mechanism:
    """Two coaxial cranks, two bars and a slider through the axis, lengths 1: two freedoms if x is 0, else one."""
    m = cd.Mechanism("coaxial cranks", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": cd.inertia.cylinder(1.0, 0.05, 1.0, axis="x")}
    m.body("slider", mass=1.0, inertia=(0.01, 0.01, 0.01))
    m.joint("S", cd.Prismatic(axis=(1, 0, 0)), m.ground, "slider", start=x)
    for k, sign in (("1", 1.0), ("2", -1.0)):
        angle = sign * (np.arccos(x / 2) if x else 0.8)
        m.body(f"crank{k}", **rod)
        m.body(f"bar{k}", **rod)
        m.joint(f"A{k}", cd.Revolute(), m.ground, f"crank{k}", start=angle)
        m.joint(f"B{k}", cd.Revolute(), f"crank{k}", f"bar{k}", at=(1, 0, 0), start=-2 * angle if x else np.pi)
        m.joint(f"C{k}", cd.Revolute(), f"bar{k}", "slider", at=(1, 0, 0))
    return m


def modes_of_coaxial_cranks() -> Iterator[Answer]:
    """Rows judged in one mode, used in the other; both ways, in accelerations and in runs."""
    for x in (0.7, 0.0):
        model = coaxial_cranks(x).build(cut=["C1", "C2"])
        judge, rng = Judge(model), np.random.default_rng(2)
        for mode in (0.0, 0.9):
            for _ in range(2):
                state = state_in_mode(model, mode, rng)
                yield from answers(model, judge, (*state, rng.standard_normal(model.nv)))
                yield from _runs(model, judge, *state)


def state_in_mode(model: cd.Model, x: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """On the axis the cranks stand anywhere, bars folded back; elsewhere they are mirror images."""
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    q[model.q_slice("S")] = x
    for k, sign in (("1", 1.0), ("2", -1.0)):
        a, b = model.v_slice(f"A{k}"), model.v_slice(f"B{k}")
        if x == 0:
            q[a], q[b], v[a] = rng.uniform(0.3, 1.2) * sign, np.pi, rng.uniform(0.5, 1.5)
        else:  # x = 2 cos angle, so the rate of the slider is -2 sin(angle) times that of the crank
            angle, rate = np.arccos(x / 2), 0.8
            q[a], q[b], v[a], v[b] = sign * angle, -2 * sign * angle, sign * rate, -2 * sign * rate
            v[model.v_slice("S")] = -2 * np.sin(angle) * rate
    return q, v


def _runs(model: cd.Model, judge: Judge, q: Array, v: Array) -> Iterator[Answer]:
    """How far loops open, by the judge, and how far the energy drifts, in a short run of every method."""
    for method in ("dormand_prince", "gear", "alpha", "rk4"):
        words = {"step": 1e-3} if method in ("rk4", "alpha") else {}
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                run = cd.simulate(model, 0.4, q, v, method=method, samples=9, **words)
        except cd.CardanError as error:
            yield Answer(f"run with {method}", "spatial", np.inf, 1.0, str(error), 1.0)
            continue
        said = "; ".join(str(warning.message) for warning in caught) + str(run.outcome)
        gap = max(judge.solve(q, v).gap for q, v in zip(run.q, run.v, strict=True))
        drift = float(np.ptp(run.energy) / max(np.abs(run.energy).max(), np.abs(run.kinetic).max()))
        yield Answer(f"run with {method}, loops", "spatial", gap, 1e-6, said, 1.0)
        yield Answer(f"run with {method}, energy", "spatial", drift, 1e-3, said, 1.0)


def at_start(family: str, seed: int) -> Iterator[Answer]:
    """A mechanism of the search, at its start."""
    model = mechanism(seed, family=family).build()
    state = random_state(model, np.random.default_rng(seed), cd.assemble(model)[0])
    yield from answers(model, Judge(model), state)


def nearly_flat() -> Iterator[Answer]:
    """A four-bar ever nearer to its flat position: only the first configuration of a model is looked at."""
    for seed in (3, 10):
        model = mechanism(seed, family="four-bars").build()
        judge, rng = Judge(model), np.random.default_rng(seed)
        for q in towards_singular(model, judge, random_state(model, rng)[0], rng):
            yield from answers(model, judge, random_state(model, rng, q))


KNOWN = [
    Known("Bricard's rings (point 2)", bricard_rings),
    Known("a run of Bricard's ring (point 2)", run_of_a_bricard_ring),
    Known("coaxial cranks that change their freedoms (point 14)", modes_of_coaxial_cranks),
    Known("four-bar nearly flat, after the first call (point 3)", nearly_flat),
    Known("mask of a geared parallelogram (point 16)", partial(at_start, "geared", 12)),
    Known("a loop closed by a free joint (point 19)", partial(at_start, "graph", 32)),
]
