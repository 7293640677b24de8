"""The best of very many linkages of a family: `search_linkages`, and `refine_linkages`, which improves them.

Linkages are points of an additive recurrence in a box of designs. They are made where they are swept, in the kernel, by
their numbers, and only what is gathered of each comes back. The best are refined by least squares (Levenberg,
Marquardt) on the distances of all positions, with exact derivatives by the design through the closed loops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.sweep.coupler_curve import curve_points, similar_to
from cardan.analysis.sweep.family import KinetostaticSweep, LinkageFamily, run_march
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.machines.cuda.place import Place, place_of
from cardan.model.values import batch, number, one, shown, whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

CHUNK_ON_CPU, CHUNK_ON_CARD = 1 << 16, 1 << 22  # linkages in one call
EXACT_NUMBERS = 1 << 45  # beyond it the recurrence has too few digits left


@dataclass(frozen=True, eq=False)
class LinkageSearch:
    """The best linkages of a search.

    Args:
        family: the family.
        designs: of the best (k, variables), the nearest to the curve first.
        error: root mean square distance (k,) from the curve by its size.
        numbers: their numbers (k,) in the search.
        count: how many linkages were looked at.
        assembled: how many of them can be put together at the first position.
        complete: how many of them turn fully.
        accepted: how many of these were accepted.
        positions: positions of the crank, each.
        seconds: how long it took.

    """

    family: LinkageFamily
    designs: np.ndarray
    error: np.ndarray
    numbers: np.ndarray
    count: int
    assembled: int
    complete: int
    accepted: int
    positions: int
    seconds: float

    def __str__(self) -> str:
        """Shares, time, and the best."""
        share = lambda n: f"{n:,} ({n / self.count:.2%})"
        rate = self.count * self.positions / max(self.seconds, 1e-9)
        lines = [
            f"{self.count:,} linkages of {self.family.model.name!r} x {self.positions} positions of the crank in "
            f"{self.seconds:.3g} s ({rate:.3g} positions/s)",
            f"  put together at the first position: {share(self.assembled)}",
            f"  turning fully: {share(self.complete)}",
        ]
        if self.accepted != self.complete:
            lines.append(f"  accepted of these: {share(self.accepted)}")
        if len(self.error):
            lines.append(f"  nearest to the curve: {self.error[0]:.3%} of its size, {_shown(self.family, self.designs[0])}")
        return "\n".join(lines)


def search_linkages(
    family: LinkageFamily, bounds: Mapping[str, ArrayLike], count: int, *, curve: ArrayLike, fit: str = "similar", best: int = 100,
    positions: int = 200, speed: float = 1.0, accept: Callable[[KinetostaticSweep], np.ndarray] | None = None,
    gradient: bool = False, q: ArrayLike | None = None, guesses: int = 10, seed: int = 0, threads: int | None = None,
    device: str | None = None, progress: Callable[[int], None] | None = None,
) -> LinkageSearch:  # fmt: skip
    """Sweep `count` linkages that fill a box of designs evenly, and keep those whose curve is nearest to a given one.

    Args:
        family: the linkages.
        bounds: lowest and highest value of each design variable by name, `{"crank": (0.1, 0.5)}`.
        count: how many linkages.
        curve: as in `LinkageFamily.sweep`, as are `fit`, `positions`, `speed`, `q`, `guesses`, `threads`, `device`.
        best: how many to keep.
        accept: takes the sweep of a part of the linkages and says which (n,) to accept, for instance
            `lambda s: s.drive[:, 0] < 20`.
        gradient: compute the derivative of every linkage's error too, for `accept`.
        seed: shifts the points in the box.
        progress: called with the number of linkages done.

    """
    owner = "search_linkages"
    low, high = _bounds(owner, family, bounds)
    count, best, seed = whole(owner, "count", count), whole(owner, "best", best), whole(owner, "seed", seed, least=0)
    if count > EXACT_NUMBERS:
        raise InputError(f"{owner}: count must be {EXACT_NUMBERS:,} or less, got {count:,}")
    task = family.task(owner, positions, None, speed, curve, fit, q, guesses)
    kernel, layout = family.kernel(task.curve, gradient, boxed=True)
    place = place_of(owner, device, threads)
    chunk = CHUNK_ON_CARD if isinstance(place, Place) else CHUNK_ON_CPU
    data = {**task.data, "low": low, "high": high, "shift": np.random.default_rng(seed).random(len(low))}
    data = {name: x.reshape(()) if x.shape == (1,) else x for name, x in data.items()}
    began = time.perf_counter()
    kept, errors = np.zeros(0), np.zeros(0)
    assembled = complete = accepted = 0
    for first in range(0, count, chunk):
        numbers = np.arange(first, min(first + chunk, count), dtype=float)
        found = task.gathered(run_march(kernel, layout, {**data, "number": numbers}, task, place))
        assert found.error is not None
        good = found.complete
        assembled, complete = assembled + int(found.assembled.sum()), complete + int(good.sum())
        if accept is not None:
            good = good & _accepted(owner, accept, found)
        accepted += int(good.sum())
        worst = errors.max() if len(errors) == best else np.inf
        new = np.flatnonzero(good & (found.error < worst))
        kept, errors = np.concatenate([kept, numbers[new]]), np.concatenate([errors, found.error[new]])
        order = np.lexsort([kept, errors])[:best]
        kept, errors = kept[order], errors[order]
        if progress is not None:
            progress(first + len(numbers))
    seconds = time.perf_counter() - began
    designs = family.designs_of(kept, low, high, data["shift"])
    return LinkageSearch(
        family, designs, errors, kept.astype(int), count, assembled, complete, accepted, task.positions, seconds
    )  # fmt: skip


def _accepted(owner: str, accept: Callable[[KinetostaticSweep], Any], found: KinetostaticSweep) -> np.ndarray:
    answer = np.asarray(accept(found))
    if answer.shape != found.closed.shape or answer.dtype != bool:
        raise InputError(
            f"{owner}: accept must return {found.closed.shape[0]} truth values, one for each linkage, got an array of "
            f"shape {answer.shape} and dtype {answer.dtype}"
        )
    return answer


def _bounds(owner: str, family: LinkageFamily, bounds: Any, partly: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Lowest and highest designs (variables,)."""
    if not isinstance(bounds, Mapping):
        raise InputError(f"{owner}: bounds must be a dict of names and (lowest, highest), got {shown(bounds)}")
    for name in bounds:
        if name not in family.variables:
            raise UnknownNameError(f"{owner}: bounds of {name!r}, which is no variable{nearest(name, family.variables)}")
    missing = [name for name in family.variables if name not in bounds]
    if missing and not partly:
        raise InputError(f"{owner}: bounds of {missing[0]!r} are missing; the box of designs needs all")
    every = {name: (-np.inf, np.inf) for name in missing}
    every |= {name: one(owner, f"bounds of {name!r}", pair, 2) for name, pair in bounds.items()}
    pairs = np.array([every[name] for name in family.variables])
    for name, (low, high) in zip(family.variables, pairs, strict=True):
        if low > high:
            raise InputError(f"{owner}: bounds of {name!r} must be (lowest, highest), got ({low:g}, {high:g})")
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _shown(family: LinkageFamily, design: np.ndarray) -> str:
    return ", ".join(f"{name} {x:.4g}" for name, x in zip(family.variables, design, strict=True))


@dataclass(frozen=True, eq=False)
class RefinedLinkages:
    """Linkages after refinement, the nearest to the curve first.

    Args:
        designs: (k, variables).
        error: root mean square distance (k,) from the curve by its size.
        before: the same before refinement.
        converged: which (k,) came to rest.
        steps: how many steps were taken.

    """

    designs: np.ndarray
    error: np.ndarray
    before: np.ndarray
    converged: np.ndarray
    steps: int


def refine_linkages(
    family: LinkageFamily, designs: ArrayLike, *, curve: ArrayLike, fit: str = "similar",
    bounds: Mapping[str, ArrayLike] | None = None,
    positions: int = 200, speed: float = 1.0, accept: Callable[[KinetostaticSweep], np.ndarray] | None = None,
    steps: int = 60, tolerance: float = 1e-10, q: ArrayLike | None = None, guesses: int = 10,
    threads: int | None = None, device: str | None = None,
) -> RefinedLinkages:  # fmt: skip
    """Improve linkages by least squares on the distances from a curve at all positions, with exact derivatives.

    A step after which the crank does not turn fully is refused. The result is a local optimum near each linkage.

    Args:
        family: the linkages.
        designs: those to begin with (n, variables); their cranks must turn fully.
        curve: as in `LinkageFamily.sweep`, as are `fit`, `positions`, `speed`, `q`, `guesses`, `threads`, `device`.
        accept: as in `search_linkages`; a step to a linkage that is not accepted is refused.
        bounds: lowest and highest values of design variables by name; others are free.
        steps: largest number of steps.
        tolerance: relative decrease of the error below which a linkage is at rest.

    """
    owner = "refine_linkages"
    x = np.atleast_2d(batch(owner, "designs", designs, len(family.variables))).copy()
    steps, tolerance = whole(owner, "steps", steps), number(owner, "tolerance", tolerance, least=0.0)
    low, high = _bounds(owner, family, {} if bounds is None else bounds, partly=True)
    task = family.task(owner, positions, None, speed, curve, fit, q, guesses)
    assert task.curve is not None
    size = task.data["target"][2]
    w = curve_points(task.data["target"], task.curve.count, task.positions) @ np.array([1, 1j])
    options = {"positions": positions, "q": q, "guesses": guesses, "threads": threads, "device": device}

    def residuals(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distances (k, 2 n) by the curve's size, NaN where the crank does not turn, and derivatives (k, 2 n, m)."""
        found = family.samples(x, gradient=True, **options)
        assert found.point is not None and found.point_by is not None and task.curve is not None
        a, b = task.curve.axes
        z, z_by = found.point[..., a] + 1j * found.point[..., b], found.point_by[..., a, :] + 1j * found.point_by[..., b, :]
        with np.errstate(invalid="ignore"):  # NaN where a position is not reached
            r, r_by = similar_to(w, z, z_by) if task.curve.fit == "similar" else (z - w, z_by)
        return np.concatenate([r.real, r.imag], axis=-1) / size, np.concatenate([r_by.real, r_by.imag], axis=-2) / size

    scale = np.sqrt(task.positions)
    r, J = residuals(x)
    cost = np.linalg.norm(r, axis=-1) / scale
    if np.isnan(cost).any():
        bad = int(np.flatnonzero(np.isnan(cost))[0])
        raise InputError(f"{owner}: designs[{bad}] does not turn fully ({_shown(family, x[bad])}); refine those that do")
    before, damping, rest = cost.copy(), np.full(len(x), 1e-3), np.zeros(len(x), dtype=bool)
    taken = 0
    while taken < steps and not rest.all():
        live = np.flatnonzero(~rest)
        step = _step(r[live], J[live], damping[live], x[live], low, high)
        trial = np.clip(x[live] + step, low, high)
        new_r, new_J = residuals(trial)
        new = np.linalg.norm(new_r, axis=-1) / scale
        better = new < cost[live]  # NaN is not
        if accept is not None:
            better &= _accepted(owner, accept, family.sweep(trial, speed=speed, **options))
        small = better & (cost[live] - new <= tolerance * cost[live])
        chosen = live[better]
        x[chosen], r[chosen], J[chosen], cost[chosen] = trial[better], new_r[better], new_J[better], new[better]
        damping[live] = np.where(better, damping[live] / 5, damping[live] * 4)
        rest[live] = small | (damping[live] > 1e12)
        taken += 1
    order = np.argsort(cost, kind="stable")
    return RefinedLinkages(x[order], cost[order], before[order], rest[order], taken)


def _step(
    r: np.ndarray, J: np.ndarray, damping: np.ndarray, x: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Damped steps (k, m); variables at a bound that descent pushes outwards stay."""
    from cardan.analysis.synthesis.damped_steps import held_at_bounds

    Jt = np.swapaxes(J, -1, -2)
    g, H = (Jt @ r[..., None])[..., 0], Jt @ J
    held = held_at_bounds(x, g, low, high)
    diagonal = np.maximum(np.diagonal(H, axis1=-2, axis2=-1), 1e-12)
    H = H + (damping[:, None] * diagonal)[..., None] * np.eye(x.shape[1])
    H = np.where(held[:, None, :] | held[:, :, None], np.eye(x.shape[1]), H)
    return -np.linalg.solve(H, np.where(held, 0.0, g)[..., None])[..., 0]
