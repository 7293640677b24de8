"""Answers of the engine beside those of the judge: right, or with a warning or error; else silently wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import numpy as np

import cardan as cd

from .joint_motions import Array
from .maximal_coordinates import Judge, Judgement

FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative", "points")
# `points` of mechanisms in space takes long to compile: the command looks at them, the tests of every run do not
IN_SPACE = False


def ways(model: cd.Model) -> tuple[str, ...]:
    """The formulations to look at."""
    return FORMULATIONS if IN_SPACE or cd.is_planar(model) else FORMULATIONS[:-1]


EPS = 2.2e-16
BOUND = 100  # times eps and the engine's own condition: the promise of docs/robustness.md
LARGEST = 5e10  # conditions up to which it is promised
REGULAR, CLOSE = 1e3, 1e-9  # at a regular position, by the judge's own condition, errors are below this anyway
MASK_UP_TO = 1e4  # the judge's condition up to which it is clear which reactions are determined


@dataclass(frozen=True)
class Answer:
    """One answer of the engine: its error, the bound on it, and the warning or error that came with it."""

    what: str
    formulation: str
    error: float
    bound: float
    said: str
    near: float

    @property
    def ratio(self) -> float:
        """Error in units of its bound."""
        return self.error / self.bound if np.isfinite(self.error) else np.inf

    @property
    def is_right(self) -> bool:
        """Whether it keeps the bound."""
        return bool(self.ratio <= 1)

    @property
    def is_silently_wrong(self) -> bool:
        """Whether it is wrong, and nothing was said."""
        return not self.is_right and not self.said

    def __str__(self) -> str:
        return (
            f"{self.what}, {self.formulation}: error {self.error:.1e}, allowed {self.bound:.1e}, condition by the "
            f"judge {self.near:.1e}{', said: ' + self.said if self.said else ''}"
        )


def random_state(
    model: cd.Model, rng: np.random.Generator, q: Array | None = None, t: float = 0.0
) -> tuple[Array, ...]:
    """Consistent q, v, and tau; near the start, or exactly at the q given."""
    if q is None:
        q, along = cd.assemble(model, None, rng.uniform(-0.5, 0.5, model.nv), t=t)
        if not model.depends_on_time:
            q = cd.plus(model, q, along)
    q, v = cd.assemble(model, q, rng.standard_normal(model.nv), t=t)
    return q, v, rng.standard_normal(model.nv)


def answers(model: cd.Model, judge: Judge, state: tuple[Array, ...], t: float = 0.0) -> Iterator[Answer]:
    """Accelerations and reactions in every formulation, and the mask of reactions."""
    q, v, tau = state
    right = judge.solve(q, v, tau, t)
    for key in ways(model):
        determined, within = right.determined, np.eye(6)
        in_plane = key == "points" and cd.is_planar(model)
        if in_plane:
            within = cd.in_plane(model)
            determined = ~((np.abs(within) > 1e-9) @ ~right.determined[..., None])[..., 0]
        wanted = (within @ right.wrenches[..., None])[..., 0]
        try:
            condition = min(float(cd.condition(model, q, t=t, formulation=key)), LARGEST)
        except cd.CardanError as error:
            yield Answer("condition", key, np.inf, 1.0, str(error), right.condition)
            continue
        bound = BOUND * EPS * condition
        if right.condition < REGULAR:
            bound = min(bound, CLOSE)
        bound = max(bound, 1e3 * EPS * right.condition)  # rounding of the judge
        for what, function in (("accelerations", cd.forward_dynamics), ("reactions", cd.reactions)):
            found, said, raw = _heard(partial(function, model, q, v, tau, t=t, formulation=key))
            yield Answer(what + raw, key, _error(what, found, right, wanted, determined), bound, said, right.condition)
            if what == "reactions" and found is not None and not in_plane:
                yield Answer("balance of reactions", key, right.balance(found), bound, said, right.condition)
    if right.condition < MASK_UP_TO:
        mask, said, raw = _heard(partial(cd.undetermined_reactions, model, q, t=t))
        wrong = 1.0 if mask is None else float((mask & right.determined | ~mask & right.undetermined).sum())
        yield Answer("mask of reactions" + raw, "all", wrong, 0.5, said, right.condition)


def _error(what: str, found: Array | None, right: Judgement, wanted: Array, determined: Array) -> float:
    if found is None or not np.isfinite(found).all():
        return np.inf
    if what == "accelerations":
        return right.error_of_accelerations(found)
    error = np.where(determined, np.abs(found - wanted), 0.0)
    return float(max(error[:, :3].max(initial=0.0) / right.moment, error[:, 3:].max(initial=0.0) / right.force))


def _heard(answer: Callable[[], Array]) -> tuple[Array | None, str, str]:
    """An answer, or None; the warning or error that came with it; and an exception that is nobody's answer."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = answer()
        except cd.CardanError as error:
            return None, f"{type(error).__name__}: {error}", ""
        except Exception as error:  # whatever the engine lets through
            return None, "", f" ({type(error).__name__}: {' '.join(str(error).split())[-60:]})"
    return found, "; ".join(str(warning.message) for warning in caught), ""


def towards_singular(model: cd.Model, judge: Judge, q: Array, rng: np.random.Generator, steps: int = 60) -> list[Array]:
    """Consistent configurations ever nearer to a singular position, if one is met on the way; else none.

    It walks along a freedom, to and fro, until the judge's condition passes a peak, and returns positions before it.
    """
    wish = rng.standard_normal(model.nv)
    for sign in (1.0, -1.0):
        try:
            found = _to_peak(model, judge, q, sign * wish, steps)
        except cd.CardanError:
            found = []  # the way ends where loops do not close
        if found:
            return found
    return []


def _to_peak(model: cd.Model, judge: Judge, q: Array, wish: Array, steps: int) -> list[Array]:
    def moved(q: Array, step: Array) -> Array:
        return cd.assemble(model, cd.plus(model, q, step))[0]

    way = [(q, allowed(judge, q, wish), judge.condition(q))]
    if not way[0][1].any():
        return []
    for _ in range(steps):
        q, direction, _ = way[-1]
        q = moved(q, 0.1 * direction)
        way.append((q, allowed(judge, q, direction), judge.condition(q)))
        if len(way) > 2 and way[-2][2] >= max(way[-1][2], way[-3][2], 3 * way[0][2]):
            break
    else:
        return []
    q, direction, _ = way[-3]
    low, high = 0.0, 0.2
    for _ in range(60):  # golden section: the peak lies between
        a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
        at_a, at_b = (judge.condition(moved(q, s * direction)) for s in (a, b))
        low, high = (low, b) if at_a > at_b else (a, high)
        if max(at_a, at_b) > 1e7 or high - low < 1e-8:
            break
    found = [moved(q, (low - gap) * direction) for gap in (1e-2, 1e-3, 1e-4, 1e-5)]
    return [place for place in found if judge.condition(place) > 3 * way[0][2]]


def worst_on_the_way(
    model: cd.Model, judge: Judge, q: Array, rng: np.random.Generator, steps: int = 60
) -> dict[str, Array]:
    """By formulation, the configuration on a walk along a freedom where its own condition has the highest peak.

    Regular positions only, by the judge's condition: there a peak is a choice of rows that does not fit.
    """
    direction = allowed(judge, q, rng.standard_normal(model.nv))
    way = [(q, direction)]
    with suppress(cd.CardanError):
        for _ in range(steps if direction.any() else 0):
            q = cd.assemble(model, cd.plus(model, q, 0.1 * direction))[0]
            direction = allowed(judge, q, direction)
            way.append((q, direction))
    way = [(q, direction) for q, direction in way if judge.condition(q) < REGULAR]
    found = {}
    for key in ways(model):

        def condition(q: Array, key: str = key) -> float:
            return float(cd.condition(model, q, formulation=key))

        if not way:
            continue
        heights = [condition(q) for q, _ in way]
        k = int(np.argmax(heights))
        q, direction = way[k]
        low, high = -0.1, 0.1
        with suppress(cd.CardanError):
            for _ in range(40):
                a, b = low + 0.382 * (high - low), low + 0.618 * (high - low)
                places = [cd.assemble(model, cd.plus(model, q, s * direction))[0] for s in (a, b)]
                first, second = map(condition, places)
                low, high = (low, b) if first > second else (a, high)
                if max(first, second) > 1e12:
                    break
            best = places[0] if first > second else places[1]
            if judge.condition(best) < REGULAR:
                found[key] = best
    return found


def allowed(judge: Judge, q: Array, wish: Array) -> Array:
    """The part of a wish (nv,) that the constraints allow, of unit length; zero where they allow nothing."""
    rows = judge.tree_rows(q)
    size = np.linalg.norm(rows, axis=1)
    rows = rows[size > 1e-9] / size[size > 1e-9][:, None]
    left = wish - np.linalg.pinv(rows, rcond=1e-9) @ (rows @ wish)
    length = float(np.linalg.norm(left))
    return left / length if length > 1e-6 else 0 * wish
