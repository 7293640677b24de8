"""The best of very many linkages of a family: `search_linkages`, and `refine_linkages`, which improves them.

Linkages are points of an additive recurrence in a box of designs. They are made where they are swept, in the kernel, by
their numbers, and only what is gathered of each comes back. The best are refined by least squares (Levenberg,
Marquardt) on the distances of all positions, with exact derivatives by the design through the closed loops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.sweep.coupler_curve import NORMAL, SLOPE, curve_points, normal_equations
from cardan.analysis.sweep.family import KinetostaticSweep, LinkageFamily, run_march
from cardan.analysis.synthesis.damped_steps import held_at_bounds
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.machines.cuda.place import Place, place_of
from cardan.machines.waiting import said
from cardan.model.values import batch, number, one, shown, whole

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
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

    def _share(self, n: int) -> str:
        return f"{n:,} ({n / self.count:.2%})"

    def __str__(self) -> str:
        """Shares, time, and the best."""
        rate = self.count * self.positions / max(self.seconds, 1e-9)
        lines = [
            f"{self.count:,} linkages of {self.family.model.name!r} x {self.positions} positions of the crank in "
            f"{self.seconds:.3g} s ({rate:.3g} positions/s)",
            f"  put together at the first position: {self._share(self.assembled)}",
            f"  turning fully: {self._share(self.complete)}",
        ]
        if self.accepted != self.complete:
            lines.append(f"  accepted of these: {self._share(self.accepted)}")
        if len(self.error):
            lines.append(
                f"  nearest to the curve: {self.error[0]:.3%} of its size, {_shown(self.family, self.designs[0])}"
            )
        return "\n".join(lines)


@said("searching linkages")
def search_linkages(
    family: LinkageFamily, bounds: Mapping[str, ArrayLike], count: int, *, curve: ArrayLike, fit: str = "similar",
    best: int = 100,
    positions: int = 200, speed: float = 1.0, accept: Callable[[KinetostaticSweep], np.ndarray] | None = None,
    gradient: bool = False, q: ArrayLike | None = None, guesses: int = 10, seed: int = 0, threads: int | None = None,
    device: str | None = None, progress: Callable[[int], None] | None = None,
) -> LinkageSearch:  # fmt: skip
    """Sweep `count` linkages that fill a box of designs evenly, and keep those whose curve is nearest to a given one.

    Args:
        family: the linkages.
        bounds: lowest and highest value of each design variable by name, `{"crank": (0.1, 0.5)}`.
        count: how many linkages.
        curve: points (n, 2), m, of a closed curve at even parts of the crank's turn, as in `LinkageFamily.sweep`.
        fit: "similar" or "in_place", as there.
        best: how many to keep.
        positions: number of positions of the crank.
        speed: of the crank, constant, rad/s.
        accept: takes the sweep of a part of the linkages and says which (n,) to accept, for instance
            `lambda s: s.drive[:, 0] < 20`.
        gradient: compute the derivative of every linkage's error too, for `accept`.
        q: configuration (nq,) of the model that chooses the branch; its start by default.
        guesses: configurations from which a linkage is put together.
        seed: shifts the points in the box.
        threads: number of threads.
        device: "gpu" to compute on a graphics card.
        progress: called with the number of linkages done.

    """
    owner = "search_linkages"
    low, high = _bounds(owner, family, bounds)
    count, best, seed = whole(owner, "count", count), whole(owner, "best", best), whole(owner, "seed", seed, least=0)
    if count > EXACT_NUMBERS:
        raise InputError(f"{owner}: count must be {EXACT_NUMBERS:,} or less, got {count:,}")
    task = family._task(owner, positions, None, speed, curve, fit, q, guesses)
    kernel, layout = family._kernel(task.curve, SLOPE if gradient else "", boxed=True)
    place = place_of(owner, device, threads)
    chunk = CHUNK_ON_CARD if isinstance(place, Place) else CHUNK_ON_CPU
    data = {**task.data, "low": low, "high": high, "shift": np.random.default_rng(seed).random(len(low))}
    began = time.perf_counter()
    kept, errors = np.zeros(0), np.zeros(0)
    assembled = complete = accepted = 0

    def run(numbers: np.ndarray) -> dict[str, np.ndarray]:
        return run_march(kernel, layout, {**data, "number": numbers}, task, place)

    for numbers, gathered in _chunks(count, chunk, run):
        found = task.gathered(gathered)
        assert found.error is not None
        good = found.complete
        assembled, complete = assembled + int(found.assembled.sum()), complete + int(good.sum())
        if accept is not None:
            good &= _accepted(owner, accept, found)
        accepted += int(good.sum())
        worst = errors.max() if len(errors) == best else np.inf
        new = np.flatnonzero(good & (found.error < worst))
        if len(new) > best:  # equal ones too, so that the order is that of one whole list
            new = new[found.error[new] <= np.partition(found.error[new], best - 1)[best - 1]]
        kept, errors = np.concatenate([kept, numbers[new]]), np.concatenate([errors, found.error[new]])
        order = np.lexsort([kept, errors])[:best]
        kept, errors = kept[order], errors[order]
        if progress is not None:
            progress(int(numbers[-1]) + 1)
    seconds = time.perf_counter() - began
    designs = family._designs_of(kept, low, high, data["shift"])
    return LinkageSearch(
        family, designs, errors, kept.astype(int), count, assembled, complete, accepted, task.positions, seconds
    )  # fmt: skip


def _chunks(count: int, chunk: int, run: Callable[[np.ndarray], Any]) -> Iterator[tuple[np.ndarray, Any]]:
    """Numbers of linkages and what is gathered of them, by chunks; the next is under way while one is looked at."""
    with ThreadPoolExecutor(1) as ahead:
        waiting: tuple[np.ndarray, Any] | None = None
        for first in range(0, count, chunk):
            numbers = np.arange(first, min(first + chunk, count), dtype=float)
            started = numbers, ahead.submit(run, numbers[:, None])
            if waiting is not None:
                yield waiting[0], waiting[1].result()
            waiting = started
        if waiting is not None:
            yield waiting[0], waiting[1].result()


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
            raise UnknownNameError(
                f"{owner}: bounds of {name!r}, which is no variable{nearest(name, family.variables)}"
            )
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
        family: the family.
        designs: (k, variables).
        error: root mean square distance (k,) from the curve by its size.
        before: the same before refinement.
        converged: which (k,) came to rest.
        steps: how many steps were taken.
        sweep: what they do over all positions: torque, forces.
        curve: the given curve (positions, 2), m, as far as harmonics of the crank give it.
        fit: how it was compared.
        q: what chose the branch.

    """

    family: LinkageFamily
    designs: np.ndarray
    error: np.ndarray
    before: np.ndarray
    converged: np.ndarray
    steps: int
    sweep: KinetostaticSweep
    curve: np.ndarray
    fit: str
    q: ArrayLike | None = None

    def plot(
        self, count: int = 3, *, size: tuple[float, float] | None = None, path: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """The best linkages with their curves and the given one; a `matplotlib.figure.Figure`."""
        from cardan.analysis.sweep.plots import plot_linkages

        count = whole("plot", "count", count)
        chosen = [(self.family, x, float(e)) for x, e in zip(self.designs[:count], self.error, strict=False)]
        return plot_linkages(chosen, self.curve, self.fit, self.q, size, path, overwrite)


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
        curve: as in `search_linkages`.
        fit: the same.
        bounds: lowest and highest values of design variables by name; others are free.
        positions: number of positions of the crank.
        speed: of the crank, constant, rad/s.
        accept: as in `search_linkages`; a step to a linkage that is not accepted is refused.
        steps: largest number of steps.
        tolerance: relative decrease of the error below which a linkage is at rest.
        q: configuration (nq,) of the model that chooses the branch; its start by default.
        guesses: configurations from which a linkage is put together.
        threads: number of threads.
        device: "gpu" to compute on a graphics card.

    """
    owner = "refine_linkages"
    x = np.atleast_2d(batch(owner, "designs", designs, len(family.variables))).copy()
    steps, tolerance = whole(owner, "steps", steps), number(owner, "tolerance", tolerance, least=0.0)
    low, high = _bounds(owner, family, {} if bounds is None else bounds, partly=True)
    task = family._task(owner, positions, None, speed, curve, fit, q, guesses)
    assert task.curve is not None
    kernel, layout = family._kernel(task.curve, NORMAL)
    place = place_of(owner, device, threads)
    size = float(task.data["target"][2])

    def looked_at(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, KinetostaticSweep]:
        """Errors (k,), inf where a linkage is not accepted, the normal equations there, and the sweep."""
        assert task.curve is not None
        gathered = run_march(kernel, layout, {**task.data, "design": x}, task, place)
        found = task.gathered(gathered)
        assert found.error is not None
        good = found.complete if accept is None else found.complete & _accepted(owner, accept, found)
        with np.errstate(all="ignore"):
            H, g = normal_equations(task.curve, gathered["sums"], task.positions, size)
        return np.where(good, found.error, np.inf), H, g, found

    cost, H, g, _ = looked_at(x)
    if not np.isfinite(cost).all():
        bad = int(np.flatnonzero(~np.isfinite(cost))[0])
        what = "does not turn fully" if accept is None else "does not turn fully, or is not accepted"
        raise InputError(f"{owner}: designs[{bad}] {what} ({_shown(family, x[bad])}); refine those that do")
    before, damping, rest = cost.copy(), np.full(len(x), 1e-3), np.zeros(len(x), dtype=bool)
    taken = 0
    while taken < steps and not rest.all():
        live = np.flatnonzero(~rest)
        trial = np.clip(x[live] + _step(H[live], g[live], damping[live], x[live], low, high), low, high)
        new, new_H, new_g, _ = looked_at(trial)
        better = new < cost[live]
        small = better & (cost[live] - new <= tolerance * cost[live])
        chosen = live[better]
        x[chosen], H[chosen], g[chosen], cost[chosen] = trial[better], new_H[better], new_g[better], new[better]
        damping[live] = np.where(better, damping[live] / 5, damping[live] * 4)
        rest[live] = small | (damping[live] > 1e12)
        taken += 1
    points = curve_points(task.data["target"], task.curve.count, task.positions)
    order = np.argsort(cost, kind="stable")
    found = looked_at(x[order])[3]
    return RefinedLinkages(
        family, x[order], cost[order], before[order], rest[order], taken, found, points, fit, q
    )  # fmt: skip


def _step(
    H: np.ndarray, g: np.ndarray, damping: np.ndarray, x: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Damped steps (k, m); variables at a bound that descent pushes outwards stay."""
    held, own = held_at_bounds(x, g, low, high), np.eye(x.shape[1])
    diagonal = np.maximum(np.diagonal(H, axis1=-2, axis2=-1), 1e-12)
    H = H + (damping[:, None] * diagonal)[..., None] * own
    H = np.where(held[:, None, :] | held[:, :, None], own, H)
    return np.asarray(-np.linalg.solve(H, np.where(held, 0.0, g)[..., None])[..., 0])
