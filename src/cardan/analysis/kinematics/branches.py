"""Positions of a linkage: all assemblies at values of a driven coordinate, the curves that join them, dead points.

A mechanism of one freedom has curves of configurations `phi(q) = 0`. They are followed by arc length, so that points
where the driven coordinate turns back are passed like any other. With `x` the rate of the driven coordinate along the
curve and `y` that of the output, positions are singular (Gosselin, Angeles, IEEE Trans. Robotics and Automation 6
(1990) 281-290) of

    type I      y = 0: the output rests, at the end of its range
    type II     x = 0: a dead point, where the driven coordinate cannot move the mechanism
    type III    both

and branch points are where the constraints lose rank and curves cross.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.kinematics.damped_least_squares import size_of
from cardan.analysis.kinematics.inverse_kinematics import Search, held_rates
from cardan.errors import InputError, ModelError
from cardan.machines.cuda.place import place_of
from cardan.machines.waiting import said
from cardan.model.memory import require_model
from cardan.model.model import Model
from cardan.model.values import batch, counted, number, whole
from cardan.structure.assemble import assemble, constraint_kernels
from cardan.structure.kernels import time_argument, tree_kernel
from cardan.structure.rows import generic_configurations, independent_rows, real_rows, row_sizes

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from cardan.results.trajectory.trajectory import Trajectory

LONGEST_STEP, SHORTEST_STEP = 0.06, 1e-7  # of arc length: rad, and m by the size of the mechanism
BEND = 0.15  # rad: the curve may turn so far in a step
MOST_STEPS = 20_000
EXACT = 1e-13
SAME = 1e-5  # of configurations, rad and m by the size of the mechanism
FLAT = 1e-7  # rate along the curve that is zero at a located point: by it types I and II become III


@dataclass(frozen=True, eq=False)
class SingularPosition:
    """A position where input or output rest, or where curves cross.

    Args:
        kind: "type I", "type II", "type III" or "branch point".
        q: configuration (nq,).
        input: driven coordinate there, rad or m.
        output: output coordinate there, rad or m; NaN if no output was named.
        branch: number of the branch.

    """

    kind: str
    q: np.ndarray
    input: float
    output: float
    branch: int


@dataclass(frozen=True, eq=False)
class Branch:
    """A curve of configurations.

    Args:
        q: configurations (n, nq), angles without leaps.
        v: rates (n, nv) for unit speed along the curve.
        length: arc length (n,): rad, and metres by the size of the mechanism.
        input: driven coordinate (n,), rad or m.
        output: output coordinate (n,), rad or m; NaN if no output was named.
        closed: whether it returns to its start.

    """

    q: np.ndarray
    v: np.ndarray
    length: np.ndarray
    input: np.ndarray
    output: np.ndarray
    closed: bool


@dataclass(frozen=True, eq=False)
class Branches:
    """All branches of a linkage over a driven coordinate, and its singular positions."""

    model: Model
    joint: str
    output: str | None
    branches: list[Branch]
    singular: list[SingularPosition]
    range: tuple[float, float]
    loose: tuple[np.ndarray, ...] = ()
    """Configurations (nq,) found with more than one freedom, on no curve: a mechanism that folds onto itself."""

    def __len__(self) -> int:
        """Number of branches."""
        return len(self.branches)

    @property
    def dead_points(self) -> list[SingularPosition]:
        """Where the driven joint cannot move the mechanism: types II and III."""
        return [s for s in self.singular if s.kind in ("type II", "type III")]

    def _extent(self, branch: int) -> tuple[float, float]:
        """Least and largest value of the driven coordinate on a branch, rad or m; dead points are its ends."""
        x = self.branches[branch].input
        low, high = float(x.min()), float(x.max())
        turn = 2 * np.pi if self.range == (-np.pi, np.pi) else 0.0
        for s in self.dead_points:
            if s.branch == branch:
                copies = [s.input + k * turn for k in (-2, -1, 0, 1, 2)]  # angles of singular positions are in one turn
                here = min(copies, key=lambda y: max(low - y, y - high, 0.0))
                low, high = min(low, here), max(high, here)
        return low, high

    def __str__(self) -> str:
        """A table of the singular positions."""
        lines = [
            f"{self.model.name!r} over {self.joint!r}: {counted(len(self), 'branch').replace('branchs', 'branches')}"
        ]
        if not self.branches and not self.loose:
            low, high = self.range
            lines.append(f"  it cannot be assembled at the values of {self.joint} tried, from {low:.6g} to {high:.6g}")
        for k, branch in enumerate(self.branches):
            ends = "closed" if branch.closed else "open"
            low, high = self._extent(k)
            turns = round(abs(branch.input[-1] - branch.input[0]) / (2 * np.pi)) if branch.closed else 0
            extent = counted(turns, "whole turn") if turns else f"from {low:.6g} to {high:.6g}"
            lines.append(f"  {k}: {ends}, {self.joint} {extent}")
        for s in self.singular:
            of = f", {self.output} = {s.output:.6g}" if self.output else ""
            lines.append(f"  {s.kind:12} on branch {s.branch}: {self.joint} = {s.input:.6g}{of}")
        if self.loose:
            lines.append(f"  {counted(len(self.loose), 'position')} with more than one freedom left out")
        return "\n".join(lines)

    def motion(self, branch: int = 0, duration: float = 5.0) -> Trajectory:
        """A branch as a run of that duration (s) at constant speed along it, to be drawn, plotted or put on a page."""
        from cardan.results.trajectory.trajectory import Trajectory

        if branch not in range(len(self.branches)):
            raise InputError(f"motion: there is no branch {branch!r}; there are {len(self.branches)}, from 0 on")
        found, duration = self.branches[branch], number("motion", "duration", duration, "of seconds", above=0.0)
        speed = float(found.length[-1]) / duration
        return Trajectory(self.model, found.length / speed, found.q, speed * found.v, method="branches")

    def draw(
        self, branch: int | None = None, *, size: tuple[float, float] | None = None,
        path: str | os.PathLike[str] | None = None, overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """Draw the mechanism at its singular positions, of one branch or of all, in one picture."""
        from cardan.analysis.kinematics.plots import draw_singular

        return draw_singular(self, branch, size, path, overwrite)

    def plot(
        self, *, size: tuple[float, float] | None = None, path: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """Output over input of all branches with the singular positions; a `matplotlib.figure.Figure`."""
        from cardan.analysis.kinematics.plots import plot_branches

        return plot_branches(self, size, path, overwrite)


def positions(
    model: Model, joint: str, values: ArrayLike, *, starts: int = 20, limits: bool | Any = True, t: float = 0.0,
    threads: int | None = None,
    device: str | None = None,
) -> list[np.ndarray]:  # fmt: skip
    """All assemblies of a mechanism at given values of a driven coordinate, as far as the starts lead to them.

    Args:
        model: the mechanism, at one value of its free parameters.
        joint: joint of one coordinate that is driven.
        values: its coordinates (n,), rad or m.
        starts: configurations to start from, spread evenly.
        limits: as in `cd.inverse_kinematics`.
        t: time, s, for prescribed motions.
        threads: number of threads.
        device: "gpu" to compute on the GPU (docs/gpu.md).

    Returns:
        For each value the distinct configurations (k, nq), none where it cannot be assembled.

    """
    require_model("positions", model)
    owner = "positions"
    if device is not None:
        threads = place_of(owner, device, threads)
    model.require_one(owner)
    place, _ = _coordinate(owner, model, joint)
    values = np.atleast_1d(batch(owner, "values", values))
    if values.ndim != 1:
        raise InputError(f"{owner}: values must be a list of numbers, got the shape {values.shape}")
    starts, t = whole(owner, "starts", starts), number(owner, "t", t, "of seconds")
    if not model.has_rows:
        raise InputError(
            f"{owner}: model {model.name!r} has no loops or constraints, so nothing follows from {joint!r}"
        )
    search = Search.closing(owner, model, starts, limits, frozenset(), t, threads)
    return search.assemblies(_start(model, t), place, values)


def _start(model: Model, t: float) -> np.ndarray:
    try:
        return assemble(model, t=t)[0]
    except ModelError:
        return model.start()


def _coordinate(owner: str, model: Model, joint: str) -> tuple[int, int]:
    """Where the one coordinate of a joint is in q, and its rate in v."""
    q, v = model.q_slice(joint), model.v_slice(joint)
    if q.stop - q.start != 1:
        kind = model.joint(joint).kind
        raise InputError(f"{owner}: joint {joint!r} ({kind.name}) has {kind.nq} coordinates; name a joint of one")
    return q.start, v.start


@said("finding the branches of the mechanism")
def branches(
    model: Model, joint: str, lower: float | None = None, upper: float | None = None, *, output: str | None = None,
    hold: Sequence[str] = (), samples: int = 37, starts: int = 20, t: float = 0.0, threads: int | None = None,
    device: str | None = None,
) -> Branches:  # fmt: skip
    """Follow all branches of a mechanism over a driven coordinate and find where they turn back, rest or cross.

    Args:
        model: the mechanism, at one value of its free parameters, of one freedom but for joints held.
        joint: driven joint, of one coordinate.
        lower: least value of its coordinate, rad or m; by default a whole turn, or the joint's own limits.
        upper: largest value.
        output: joint of one coordinate that is driven by the mechanism; without it only dead points are found.
        hold: joints that stay where they are at the start.
        samples: values of the coordinate at which all assemblies are looked for.
        starts: configurations from which assemblies are looked for at each of them.
        t: time, s, for prescribed motions.
        threads: number of threads.
        device: "gpu" to compute on the GPU (docs/gpu.md).

    """
    require_model("branches", model)
    owner = "branches"
    if device is not None:
        threads = place_of(owner, device, threads)
    model.require_one(owner)
    place, rate = _coordinate(owner, model, joint)
    out = None if output is None else _coordinate(owner, model, output)
    samples, t = whole(owner, "samples", samples, least=2), number(owner, "t", t, "of seconds")
    held = held_rates(owner, model, hold)
    if output == joint:
        raise InputError(f"{owner}: joint {joint!r} is both driven and the output; name another output, or none")
    if rate in held:
        raise InputError(f"{owner}: joint {joint!r} is driven and held at once; hold others")
    curve = _Curve(model, held, t)
    low, high, turns = _range(owner, model, joint, lower, upper, bool(curve.turning[place]))
    curve.require_one_freedom(owner)
    search = Search.closing(owner, model, whole(owner, "starts", starts), False, held, t, threads)
    values = np.linspace(low, high, samples, endpoint=not turns)
    seeds = search.assemblies(_start(model, t), place, values)
    found: list[Branch] = []
    singular: list[SingularPosition] = []
    every = [(value, q) for value, some in zip(values, seeds, strict=True) for q in some]
    left = [(value, q) for value, q in every if not curve.loses_rank(q)]
    while left:
        _, q = left[len(left) // 2]  # a branch that turns back is met from the middle first
        points, closed = curve.follow(q, place, (low, high, turns))
        left = [(value, x) for value, x in left if not curve.passes(points, x)]
        at = np.array([p.q for p in points])
        y = at[:, out[0]] if out else np.full(len(at), np.nan)
        for kind, x in curve.singular(points, rate, None if out is None else out[1]):
            x = np.where(curve.turning, np.pi - (np.pi - x) % (2 * np.pi), x)
            if turns or low - SAME <= x[place] <= high + SAME:
                singular.append(
                    SingularPosition(kind, x, float(x[place]), float(x[out[0]]) if out else np.nan, len(found))
                )
        v = np.array([p.tangent for p in points]) * curve.scale
        steps = [np.linalg.norm(curve.difference(b.q, a.q)) for a, b in pairwise(points)]
        found.append(Branch(at, v, np.concatenate([[0.0], np.cumsum(steps)]), at[:, place], y, closed))
    loose = tuple(q for _, q in every if curve.loses_rank(q))
    return Branches(model, joint, output, found, _unique(curve, singular), (low, high), loose)


def _range(owner: str, model: Model, joint: str, lower: Any, upper: Any, turning: bool) -> tuple[float, float, bool]:
    """Least and largest value of the driven coordinate, and whether it goes round without end."""
    data, unit = model.joint(joint).data, model.joint(joint).kind.q_units[0]
    whole_turn = turning and all(x is None for x in (lower, upper, data.lower, data.upper))
    if whole_turn:
        return -np.pi, np.pi, True
    reach = np.pi if unit == "rad" else 2 * size_of(model)
    low = next((x for x in (lower, data.lower) if x is not None), -reach)
    high = next((x for x in (upper, data.upper) if x is not None), reach)
    low, high = number(owner, "lower", low), number(owner, "upper", high)
    if not low < high:
        raise InputError(f"{owner}: the range of {joint!r} is empty: lower {low:g} is not below upper {high:g}")
    return low, high, False


def _unique(curve: _Curve, found: list[SingularPosition]) -> list[SingularPosition]:
    """Each once; branch points are met on every curve that crosses there."""
    kept: list[SingularPosition] = []
    for s in found:
        if not any(s.kind == other.kind and curve.distance(s.q, other.q) < 1e-4 for other in kept):
            kept.append(s)
    return kept


@dataclass(frozen=True, eq=False)
class _Point:
    """A point of the curve: configuration, unit tangent (nv,), and a number whose sign changes where curves cross."""

    q: np.ndarray
    tangent: np.ndarray
    sign: float


class _Curve:
    """Configurations of one freedom, followed by arc length; lengths count by the size of the mechanism."""

    def __init__(self, model: Model, held: frozenset[int], t: float) -> None:
        self.model, self.t = model, t
        units = [unit for link in model.tree.links for unit in link.kind.v_units]
        self.scale = np.array([size_of(model) if unit.startswith("m") else 1.0 for unit in units])
        self.free = np.array([k not in held for k in range(model.nv)])
        self.rows = independent_rows(model)
        self.evaluate, self.plus = constraint_kernels(model)[0], tree_kernel(model, "plus")
        self.size = row_sizes(model)
        search = Search.closing("branches", model, 1, False, held, t, None)
        self.turning = search.turning()

    def constraints(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Residual (nl,) and its derivative (nl, nv) along scaled rates, by the size of the rows."""
        phi, G = self.evaluate(q, *time_argument(self.model, self.t))
        A = real_rows(self.model, np.asarray(G)) / self.size[:, None]
        return np.asarray(phi) / self.size, A * (self.scale * self.free)

    def require_one_freedom(self, owner: str) -> None:
        """Refuse a mechanism whose position one coordinate does not determine."""
        q = np.asarray(generic_configurations(self.model.unbound)[0])
        _, A = self.constraints(q)
        s = np.linalg.svd(A, compute_uv=False)
        freedoms = int(self.free.sum()) - int((s > 1e-7 * s.max(initial=0.0)).sum())
        if freedoms != 1:
            what = "hold some joints with hold=[...]" if freedoms > 1 else "it cannot move"
            raise InputError(f"{owner}: model {self.model.name!r} has {counted(freedoms, 'freedom')}, not one; {what}")

    def point(self, q: np.ndarray, towards: np.ndarray | None = None) -> _Point:
        """The tangent at a configuration, in the direction nearest to another."""
        _, A = self.constraints(q)
        _, _, Vt = np.linalg.svd(A[:, self.free])
        tangent = np.zeros(self.model.nv)
        tangent[self.free] = Vt[-1]
        if towards is not None and tangent @ towards < 0:
            tangent = -tangent
        square = np.vstack([A[self.rows][:, self.free], tangent[self.free]])
        sign = float(np.linalg.det(square)) if square.shape[0] == square.shape[1] else np.nan
        return _Point(q, tangent, sign)

    def step(self, p: _Point, h: float) -> _Point | None:
        """The point of the curve at distance h along another's tangent; None if Newton's method fails."""
        q = np.asarray(self.plus(p.q, h * p.tangent * self.scale))
        for _ in range(12):
            phi, A = self.constraints(q)
            gap = np.abs(phi).max(initial=0.0)
            if gap < EXACT:
                break
            M = np.vstack([A, p.tangent])
            dx = -np.linalg.pinv(M, rcond=1e-9) @ np.append(phi, 0.0)
            if np.linalg.norm(dx) > max(h * h, 1e-9) * 50 + 0.5 * abs(h):
                return None
            q = np.asarray(self.plus(q, dx * self.scale))
        else:
            if np.abs(self.constraints(q)[0]).max(initial=0.0) > 1e-11:
                return None
        return self.point(q, p.tangent)

    def follow(self, q: np.ndarray, place: int, limits: tuple[float, float, bool]) -> tuple[list[_Point], bool]:
        """All points of the curve through a configuration, and whether it is closed."""
        start = self.point(q)
        ahead, closed = self._walk(start, place, limits, watch=True)
        if closed:
            return ahead, True
        back, _ = self._walk(_Point(start.q, -start.tangent, -start.sign), place, limits, watch=False)
        turned = [_Point(p.q, -p.tangent, -p.sign) for p in back[:0:-1]]
        return turned + ahead, False

    def _walk(
        self, start: _Point, place: int, limits: tuple[float, float, bool], watch: bool
    ) -> tuple[list[_Point], bool]:
        low, high, turns = limits
        points, h, gone = [start], LONGEST_STEP / 4, 0.0
        while len(points) < MOST_STEPS:
            p = points[-1]
            new = self.step(p, h)
            bend = np.inf if new is None else np.arccos(np.clip(new.tangent @ p.tangent, -1, 1))
            if new is None or bend > BEND:
                crossing = self._across(p, h)
                if h > SHORTEST_STEP and crossing is None:
                    h /= 2
                    continue
                if crossing is None:
                    return points, False
                new = crossing
            if not turns and not low <= new.q[place] <= high:
                bound = low if new.q[place] < low else high
                end = self._until(p, h, lambda x, bound=bound: float(x.q[place] - bound))  # type: ignore[misc]
                return [*points, end], False
            if watch and gone > 3 * LONGEST_STEP and self._between(p, new, start):
                turns_taken = np.where(self.turning, np.round((new.q - start.q) / (2 * np.pi)) * 2 * np.pi, 0.0)
                return [*points, _Point(start.q + turns_taken, start.tangent, start.sign)], True
            if self.loses_rank(p.q) and self.loses_rank(new.q):
                return points, False  # it is no curve any more
            points.append(new)
            gone += h
            h = min(LONGEST_STEP, 1.6 * h) if bend < BEND / 3 else h
        raise ModelError(f"branches: a curve of {self.model.name!r} has more than {MOST_STEPS} points")

    def _across(self, p: _Point, h: float) -> _Point | None:
        """Over a branch point, where the tangent is not defined: the point beyond it along the same tangent."""
        if h > 1e-3:
            return None
        _, A = self.constraints(p.q)
        s = np.linalg.svd(A[:, self.free], compute_uv=False)
        rank = int(self.free.sum()) - 1
        if s[rank - 1] > 0.05 * s[0]:
            return None
        return self.step(p, 5e-3)

    def loses_rank(self, q: np.ndarray) -> bool:
        """Whether the constraints, all of them, leave more than one freedom."""
        rank = int(self.free.sum()) - 1
        if rank == 0:  # one coordinate, which nothing holds
            return False
        s = np.linalg.svd(self.constraints(q)[1][:, self.free], compute_uv=False)
        return bool(s[rank - 1] < 1e-5 * s[0])

    def _between(self, a: _Point, b: _Point, start: _Point) -> bool:
        """Whether the curve passes the start, forwards, between two points."""
        if self.distance(a.q, start.q) > 2 * LONGEST_STEP or a.tangent @ start.tangent < 0.5:
            return False
        before, after = self.difference(start.q, a.q) @ start.tangent, self.difference(b.q, start.q) @ start.tangent
        return (
            bool(before >= 0 and after >= 0 and before + after > 0) and self.distance(a.q, start.q) < 2 * LONGEST_STEP
        )

    def difference(self, q: np.ndarray, other: np.ndarray) -> np.ndarray:
        """`q - other` (..., nv) as scaled rates, turns left out; quaternions by their vector part."""
        d = q - other
        d = np.where(self.turning, (d + np.pi) % (2 * np.pi) - np.pi, d)
        found = np.zeros((*d.shape[:-1], self.model.nv))
        for link in self.model.tree.links:
            if link.kind.nq == link.kind.nv:
                found[..., link.v] = d[..., link.q]
                continue
            n = link.q.stop - 4
            a, b = np.broadcast_arrays(q[..., n : n + 4], other[..., n : n + 4])
            a = a * np.where((a * b).sum(axis=-1, keepdims=True) < 0, -1.0, 1.0)
            part = 2 * (b[..., :1] * a[..., 1:] - a[..., :1] * b[..., 1:] - np.cross(b[..., 1:], a[..., 1:]))
            found[..., link.v] = np.concatenate([part, d[..., link.q.start : n]], axis=-1)
        return found / self.scale

    def distance(self, q: np.ndarray, other: np.ndarray) -> Any:
        """How far configurations (..., nq) are apart: the largest difference."""
        return np.abs(self.difference(q, other)).max(axis=-1, initial=0.0)

    def passes(self, points: list[_Point], q: np.ndarray) -> bool:
        """Whether a curve goes through a configuration."""
        far = self.distance(np.array([p.q for p in points]), q)
        for k in np.argsort(far)[:2]:
            p = points[k]
            if far[k] < SAME:
                return True
            if far[k] < 2 * LONGEST_STEP:
                new = self.step(p, float(self.difference(q, p.q) @ p.tangent))
                if new is not None and self.distance(new.q, q) < SAME:
                    return True
        return False

    def _until(self, p: _Point, h: float, f: Callable[[_Point], float]) -> _Point:
        """The point between distances 0 and h where a function crosses zero, to rounding."""
        from scipy.optimize import brentq

        def at(x: float) -> _Point:
            return self.step(p, x) or self.point(np.asarray(self.plus(p.q, x * p.tangent * self.scale)), p.tangent)

        if f(p) == 0:
            return p
        try:
            return at(float(brentq(lambda x: f(at(x)), 0.0, h, xtol=1e-15, rtol=1e-14)))
        except ValueError:
            return at(h)

    def singular(self, points: list[_Point], rate: int, out: int | None) -> list[tuple[str, np.ndarray]]:
        """Singular positions on a curve: where rates along it, or the sign, change sign."""
        found = []
        for a, b in pairwise(points):
            h = float(self.difference(b.q, a.q) @ a.tangent)
            if h <= 0:
                continue
            if a.sign * b.sign < 0:
                at = self._until(a, h, lambda x: x.sign)
                if self.loses_rank(at.q):  # else only the chosen rows do
                    found.append(("branch point", at.q))
                    continue
            for k, kind in ((rate, "type II"), (out, "type I")):
                if k is not None and a.tangent[k] * b.tangent[k] <= 0 and a.tangent[k] != 0:
                    at = self._until(a, h, lambda x, k=k: float(x.tangent[k]))  # type: ignore[misc]
                    other = out if k == rate else rate
                    both = other is not None and abs(at.tangent[other]) < FLAT
                    found.append(("type III" if both else kind, at.q))
        return found
