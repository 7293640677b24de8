"""Inverse kinematics: coordinates at which frames are where they shall be, with loops, limits and priorities."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import sqrt
from cardan.analysis.kinematics.damped_least_squares import (
    BUSY,
    FIRST_DAMPING,
    LARGEST_DAMPING,
    OBJECTIVES,
    UNREACHED,
    Problem,
    coordinate_of_rate,
    irrationals,
    rows_of,
    size_of,
)
from cardan.analysis.kinematics.targets import Aim, Target, read_targets
from cardan.errors import InputError
from cardan.machines.cuda.place import place_of
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.joint import Kind
from cardan.model.memory import RecentSlot, Slot
from cardan.model.model import Model
from cardan.model.values import array, counted, number, shown, whole
from cardan.program.program import Port, Program
from cardan.structure.assemble import assemble, constraint_kernels, read_configuration
from cardan.structure.kernels import parameter_arguments, symbolic, time_argument, tree_kernel
from cardan.structure.rows import real_rows, row_sizes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from cardan.structure.assemble import Start

# most steps of a start; progress of a step, and descent by its largest possible size, below which it gives up
QUICK, LONGER, PATIENT = (40.0, 0.03, 1e-4), (100.0, 1e-3, 1e-5), (500.0, 0.0, 1e-10)
PREFERRED = (200.0, 1e-12, 1e-6)
PIECE, MANY = 16, 200  # steps of all lanes between two looks at which are done; with few lanes so many more steps
LANES = 100_000  # at most so many at once: memory
CLOSED = 1e-9  # m and rad by the size of the mechanism: loops that are open farther were not closed
ALIKE = 1e-4  # rad, or m by the size: configurations that differ less are one

_PROBLEMS: RecentSlot[str, Problem] = RecentSlot("problems of inverse kinematics", 64)
_TURNING: Slot[None, np.ndarray] = Slot("angles whose turns nothing counts")
_ERRORS: RecentSlot[str, Kernel] = RecentSlot("errors of targets", 64)


@dataclass(frozen=True, eq=False)
class InverseKinematics:
    """What inverse kinematics found; arrays have the batch shape (...) of the targets.

    Args:
        q: configurations (..., nq) with every loop closed, the nearest found where targets are out of reach.
        reached: (...,) whether every target is within the tolerance.
        errors: (..., targets, 2), distance in m and angle in rad that are left of each target.
        start: (...,) number of the start that led there; 0 is q0.
        held_back: (..., nv) rates whose limit holds it back, where a target is not reached.
        steps: (...,) steps of all starts together.
        solutions: for each target, in C order of the batch, all distinct configurations (k, nq); with `all=True`.
        model: the mechanism.
        frames: names of the targets' frames.

    """

    q: np.ndarray
    reached: np.ndarray
    errors: np.ndarray
    start: np.ndarray
    held_back: np.ndarray
    steps: np.ndarray
    solutions: list[np.ndarray] | None
    model: Model
    frames: tuple[str, ...]

    @property
    def position_error(self) -> np.ndarray:
        """The largest distance (...,) that is left of a target, m."""
        return np.asarray(self.errors[..., 0].max(axis=-1))

    @property
    def rotation_error(self) -> np.ndarray:
        """The largest angle (...,) that is left of a target, rad."""
        return np.asarray(self.errors[..., 1].max(axis=-1))

    def why(self, *index: int) -> str:
        """One sentence about one target of the batch: reached, or how far it got and what holds it back."""
        try:
            reached, errors, held = self.reached[index], self.errors[index], self.held_back[index]
            reached = bool(reached)
        except (IndexError, TypeError, ValueError):
            raise InputError(f"why: {index} is no place in a batch of shape {self.reached.shape}") from None
        if reached:
            return f"reached from start {int(self.start[index])}"
        far = [f"{f!r} stays {m:.3g} m and {rad:.3g} rad away" for f, (m, rad) in zip(self.frames, errors, strict=True)]
        names = [repr(name) for name, at in zip(self.model.coordinate_names, held, strict=True) if at]
        reason = f"the limits of {', '.join(names)} hold it back" if names else "no limit holds it back: out of reach"
        return f"{'; '.join(far)}; {reason}, or more starts are needed"

    def __str__(self) -> str:
        """A few lines of figures."""
        n, ok = self.reached.size, int(self.reached.sum())
        lines = [f"inverse kinematics of {self.model.name!r}: {ok} of {counted(n, 'target')} reached"]
        if ok:
            largest = self.errors[self.reached].max(axis=(0, 1))
            lines.append(f"  largest error of these: {largest[0]:.2g} m, {largest[1]:.2g} rad")
        missed = np.argwhere(~self.reached)
        lines += [f"  {tuple(map(int, index)) or ''} {self.why(*index)}" for index in missed[:5]]
        if len(missed) > 5:
            lines.append(f"  and {len(missed) - 5} more; see why(index)")
        return "\n".join(lines)


def inverse_kinematics(
    model: Model, targets: Mapping[str, ArrayLike] | Target | Sequence[Target], q0: Start = None, *,
    starts: int = 20, limits: bool | Mapping[str, Any] = True, hold: Sequence[str] = (), prefer: str | None = None,
    all: bool = False, tolerance: float = 1e-6, t: float = 0.0, threads: int | None = None,
    device: str | None = None,
) -> InverseKinematics:  # fmt: skip
    """Find coordinates at which frames are where they shall be, with every loop closed.

    Args:
        model: the mechanism. Values of free parameters (`Model.at`) are a batch like that of the targets.
        targets: poses (..., 4, 4) or positions (..., 3), m, by frame; or `cd.Target` objects, which also have
            orientations, directions, points to look at, weights and priorities.
        q0: first configuration to start from, (..., nq), or coordinates of some joints by name; by default where joints
            start, or the middle of their limits.
        starts: how many configurations to start from, until the targets are reached: q0, then others spread evenly.
        limits: True for those of the joints' data, False for none, or a dict of joints to (lower, upper), rad or m.
        hold: joints whose coordinates stay as in q0.
        prefer: what to make best where targets leave freedom: "near" q0, "centre" of the limits, "manipulability".
        all: whether to find all distinct solutions that the starts lead to.
        tolerance: largest error of a target that counts as reached: rad, and m by the size of the mechanism, if it is
            smaller than 1 m.
        t: time, s, for prescribed motions.
        threads: number of threads.
        device: "gpu" to compute on the GPU (docs/gpu.md).

    Returns:
        The configurations, and for each whether it was reached, how far it got, and which limits hold it back.

    """
    owner = "inverse_kinematics"
    if device is not None:
        threads = place_of(owner, device, threads)
    aims = read_targets(owner, model, targets)
    starts, t = whole(owner, "starts", starts), number(owner, "t", t, "of seconds")
    tolerance = number(owner, "tolerance", tolerance, above=0.0)
    if prefer is not None and prefer not in OBJECTIVES:
        raise InputError(f"{owner}: prefer must be one of {', '.join(map(repr, OBJECTIVES))}, got {shown(prefer)}")
    lower, upper = read_limits(owner, model, limits)
    fixed = held_rates(owner, model, hold)
    given = None if q0 is None else read_configuration(owner, "q0", model, q0)[0]
    shapes = [(f"target of {aim.frame!r}", x.shape[:-1]) for aim in aims for x in aim.data]
    shapes += [("q0", () if given is None else given.shape[:-1]), ("values of parameters", model.batch)]
    try:
        shape = np.broadcast_shapes(*(size for _, size in shapes))
    except ValueError:
        text = ", ".join(f"{name} {size}" for name, size in shapes)
        raise InputError(f"{owner}: the batches do not fit together: {text}") from None
    search = Search(
        model, tuple(aims), starts, (lower, upper), fixed, prefer, all, tolerance, t, threads
    )  # fmt: skip
    data = [[_flat(x, shape) for x in aim.data] for aim in aims]
    p = [_flat(x, shape) for x in parameter_arguments(model)]
    found = search.run(_flat(search.begin(given), shape), data, p)
    arrays = {name: x.reshape((*shape, *x.shape[1:])) for name, x in vars(found).items() if name != "solutions"}
    return InverseKinematics(**arrays, solutions=found.solutions, model=model, frames=tuple(aim.frame for aim in aims))


def _flat(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """An array (*shape, n) with one batch axis."""
    return np.ascontiguousarray(np.broadcast_to(x, (*shape, x.shape[-1])).reshape((-1, x.shape[-1])))


def held_rates(owner: str, model: Model, hold: Any) -> frozenset[int]:
    """Numbers of the rates of joints that stay where they are, from their names."""
    names = (hold,) if isinstance(hold, str) else hold
    if not isinstance(names, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{owner}: hold must be a list of joint names, got {shown(hold)}")
    return frozenset(k for name in names for k in range(*model.v_slice(name).indices(model.nv)))


def read_limits(owner: str, model: Model, limits: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits (nq,) of all coordinates, infinite where there is none."""
    lower, upper = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    if not isinstance(limits, bool | Mapping):
        raise InputError(
            f"{owner}: limits must be True, False or a dict of joints to (lower, upper), got {shown(limits)}"
        )
    if limits is True or isinstance(limits, Mapping):
        for link in model.tree.links:
            data = model.joints[link.joint].data
            if link.kind.nq == 1:
                lower[link.q] = -np.inf if data.lower is None else data.lower
                upper[link.q] = np.inf if data.upper is None else data.upper
    for joint, pair in limits.items() if isinstance(limits, Mapping) else ():
        at, kind = model.q_slice(joint), model.joint(joint).kind
        if kind.nq != kind.nv:
            raise InputError(f"{owner}: limits of joint {joint!r}: a quaternion has none; choose another joint")
        if not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise InputError(f"{owner}: limits of joint {joint!r} are (lower, upper), got {shown(pair)}")
        for side, value, into in zip(("lower", "upper"), pair, (lower, upper), strict=True):
            infinite = -np.inf if side == "lower" else np.inf
            given = np.asarray(infinite) if value is None else array(owner, f"{side} limit of joint {joint!r}", value)
            if given.shape not in ((), (kind.nq,)):
                raise InputError(
                    f"{owner}: {side} limit of joint {joint!r} must be one number or {kind.nq}, got {shown(value)}"
                )
            into[at] = given
    if np.isnan(lower).any() or np.isnan(upper).any() or (lower > upper).any():
        k = int(np.argmax(~(lower <= upper)))
        name = next(model.joints[link.joint].name for link in model.tree.links if link.q.start <= k < link.q.stop)
        raise InputError(f"{owner}: limits of joint {name!r}: lower {lower[k]:g} is not below upper {upper[k]:g}")
    return lower, upper


def _turning(model: Model) -> np.ndarray:
    """Coordinates (nq,) that are angles, where a whole turn changes nothing, and no coupling counts them."""
    counted = {j for coupling in model.couplings for j in coupling.joints}
    found = np.zeros(model.nq, dtype=bool)
    for link in model.tree.links:
        if link.joint not in counted and not model.constraints and link.kind.nq == link.kind.nv:
            found[link.q] = [_is_periodic(link.kind, k) for k in range(link.kind.nq)]
    return found


def _is_periodic(kind: Kind, k: int) -> bool:
    """Whether a joint is where it was after a whole turn of one of its coordinates."""
    q = 0.3 + 0.1 * np.arange(kind.nq)
    turned = q + 2 * np.pi * (np.arange(kind.nq) == k)
    if kind.q_units[k] != "rad":
        return False
    pairs = [(np.asarray(f(q), dtype=float), np.asarray(f(turned), dtype=float)) for f in (kind.E, kind.r) if f]
    return all(np.allclose(a, b, atol=1e-9) for a, b in pairs)


@dataclass
class _Found:
    """Results with one batch axis; see `InverseKinematics`."""

    q: np.ndarray
    reached: np.ndarray
    errors: np.ndarray
    start: np.ndarray
    held_back: np.ndarray
    steps: np.ndarray
    solutions: list[np.ndarray] | None


@dataclass(frozen=True, eq=False)
class Search:
    """One call: what is asked, and how it is searched."""

    model: Model
    aims: tuple[Aim, ...]
    starts: int
    limits: tuple[np.ndarray, np.ndarray]
    fixed: frozenset[int]
    prefer: str | None
    all: bool
    tolerance: float
    t: float
    threads: int | None

    @classmethod
    def closing(
        cls, owner: str, model: Model, starts: int, limits: Any, fixed: frozenset[int], t: float, threads: int | None
    ) -> Search:
        """A search for assemblies: without targets, every loop closed."""
        bounds = read_limits(owner, model, limits)
        return cls(model, (), starts, bounds, fixed, None, True, CLOSED, t, threads)

    def spread(self, n: int) -> np.ndarray:
        """Configurations (n, nq) spread evenly within limits; loops are open."""
        low, high = self._spread()
        steps, k = irrationals(self.model.nv), np.arange(1, n + 1)
        q = np.tile(self.model.neutral(), (n, 1))
        for link in self.model.tree.links:
            u = (0.5 + k[:, None] * steps[link.v]) % 1
            first, count = link.q.start, link.kind.nq
            if count != link.kind.nv:
                a, b, c = u[:, 0], 2 * np.pi * u[:, 1], 2 * np.pi * u[:, 2]
                r1, r2 = np.sqrt(1 - a), np.sqrt(a)
                turned = np.stack([r2 * np.cos(c), r1 * np.sin(b), r1 * np.cos(b), r2 * np.sin(c)], axis=-1)
                q[:, link.q.stop - 4 : link.q.stop] = turned
                u, count = u[:, 3:], count - 4
            at = slice(first, first + count)
            q[:, at] = low[at] + u * (high[at] - low[at])
        return q

    def assembled(self, q: np.ndarray) -> np.ndarray:
        """Those of some configurations (n, nq) from which every loop can be closed, closed."""
        found = self._assemble(q, None, None)
        return found.q[found.reached]

    def assemblies(self, q: np.ndarray, place: int, values: np.ndarray) -> list[np.ndarray]:
        """All distinct configurations (k, nq) with every loop closed at each value of coordinate number `place`."""
        S = self.starts
        x = np.repeat(np.tile(q, (len(values), 1)), S, axis=0)
        x[:, place] = np.repeat(values, S)
        found = self._assemble(x, np.tile(np.arange(S), len(values)), place)
        return [self._distinct(found, slice(k * S, (k + 1) * S)) for k in range(len(values))]

    def _assemble(self, q: np.ndarray, number: np.ndarray | None, place: int | None) -> _Found:
        """Loops closed from each configuration, or from the start of that number; coordinate `place` stays."""
        problem = Problem(self.model.unbound, (), (), None, self.fixed, limited=True, closing=True)
        problem = _PROBLEMS.find(self.model, problem.key, lambda: problem)
        q, columns = np.clip(q, *self.limits), problem.moving[0]
        ranges = [*self.limits, *self._spread()]
        if place is not None:  # limits keep a coordinate where it is, so that one kernel serves every joint
            ranges = [np.tile(x, (len(q), 1)) for x in ranges]
            for x in ranges:
                x[:, place] = q[:, place]
            columns = [c for c in columns if coordinate_of_rate(self.model)[c] != place]
        p = [np.tile(a.reshape(-1, a.shape[-1])[:1], (len(q), 1)) for a in parameter_arguments(self.model)]
        s = self._solve(problem, q, [], p, number=number, ranges=ranges)
        q = self._closed(self.model, self._unwound(s["best"], place), columns)
        phi = np.asarray(constraint_kernels(self.model)[0](q, *time_argument(self.model, self.t))[0])
        reached = np.asarray(np.abs(phi / row_sizes(self.model)).max(axis=-1, initial=0.0) <= CLOSED)
        none = np.zeros(0)
        return _Found(q, reached, none, none, none, none, None)

    def problem(self, wanted: Sequence[int], held: Sequence[int] = (), prefer: str | None = None) -> Problem:
        """A level of priority, with targets by number."""
        limited = bool(np.isfinite(self.limits).any())
        first, before = (tuple(replace(self.aims[k], data=()) for k in numbers) for numbers in (wanted, held))
        objective = None if prefer is None else OBJECTIVES[prefer]
        problem = Problem(self.model.unbound, first, before, objective, self.fixed, limited)
        return _PROBLEMS.find(self.model, problem.key, lambda: problem)

    def begin(self, given: np.ndarray | None) -> np.ndarray:
        """The first start: as given, or where joints start or the middle of their limits; within limits."""
        model, (lower, upper) = self.model, self.limits
        problem = self.problem(range(len(self.aims)))
        columns, rows = problem.moving
        if not columns:
            held = " that is not held" if self.fixed else ""
            frames = ", ".join(repr(aim.frame) for aim in self.aims)
            raise InputError(f"inverse_kinematics: no joint{held} moves {frames} as the targets ask")
        q = given
        if q is None:
            q, tied = model.start(), set[int]().union(*problem.tied.values())
            for link in model.tree.links:
                both = np.isfinite(lower[link.q]) & np.isfinite(upper[link.q])
                loose = tied.isdisjoint(range(link.v.start, link.v.stop))
                if model.joints[link.joint].start is None and both.all() and loose:
                    q[link.q] = (lower[link.q] + upper[link.q]) / 2
            if model.has_rows:
                q = assemble(model, q, t=self.t)[0]
        elif set(rows) != set(range(len(model.rows))):
            phi = np.asarray(constraint_kernels(model)[0](q, *time_argument(model, self.t))[0])
            others = [k for k in range(len(model.rows)) if k not in rows]
            if np.abs(phi[..., others]).max(initial=0.0) > CLOSED:
                q = assemble(model, q, t=self.t)[0]  # constraints that have nothing to do with the targets
        free = np.zeros(model.nq, dtype=bool)
        for c in columns:
            k = coordinate_of_rate(model)[c]
            if k is not None:
                free[k] = True
        return np.where(free, np.clip(q, lower, upper), q)

    def run(self, q0: np.ndarray, data: list[list[np.ndarray]], p: list[np.ndarray]) -> _Found:
        """All targets, in parts that fit into memory."""
        priorities = sorted({aim.priority for aim in self.aims})
        every = self.all or self.prefer is not None or len(priorities) > 1
        size = max(1, LANES // (self.starts if every else 1))
        parts = []
        for k in range(0, max(len(q0), 1), size):
            at = slice(k, k + size)
            some = ([[x[at] for x in own] for own in data], [x[at] for x in p])
            parts.append(self._levels(q0[at], *some) if every else self._first(q0[at], *some))
        if len(parts) == 1:
            return parts[0]
        names = [name for name in vars(parts[0]) if name != "solutions"]
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return _Found(**arrays, solutions=[q for part in parts for q in part.solutions or ()] if self.all else None)

    def _first(self, q0: np.ndarray, data: list[list[np.ndarray]], p: list[np.ndarray]) -> _Found:
        """Starts one after the other, until all targets are reached."""
        problem = self.problem(range(len(self.aims)))
        arrays = [x for own in data for x in own]
        s = self._solve(problem, q0, arrays, p, starts=self.starts)
        left = np.flatnonzero(s["miss"] > 1)
        if len(left):
            few = [*(x[left] for x in arrays)], [x[left] for x in p]
            patient = self._patient(problem, s["best"][left], *few)
            for name in ("best", "pressed", "miss", "least"):
                s[name][left] = patient[name]
            s["total"][left] += patient["total"]
            s["start"][left] = np.where(patient["start"] > 0, patient["start"], s["start"][left])
        return self._judged(s["best"], s, data, p, None)

    def _patient(
        self, problem: Problem, q: np.ndarray, arrays: list[np.ndarray], p: list[np.ndarray]
    ) -> dict[str, np.ndarray]:
        """How far targets can be reached that were not: the best of all starts, to its end; start 0 is `q`."""
        B, S = len(q), min(self.starts, max(1, LANES // max(len(q), 1)))
        every = ([np.repeat(x, S, axis=0) for x in arrays], [np.repeat(x, S, axis=0) for x in p])
        number = np.tile(np.arange(S), B)
        s = self._solve(problem, np.repeat(q, S, axis=0), *every, number=number, effort=LONGER)
        best = s["least"].reshape(B, S).argmin(axis=1) + S * np.arange(B)
        last = self._solve(problem, s["best"][best], arrays, p, effort=PATIENT)
        last["total"] += s["total"].reshape(B, S).sum(axis=1)
        return last | {"start": number[best].astype(float)}

    def _levels(self, q0: np.ndarray, data: list[list[np.ndarray]], p: list[np.ndarray]) -> _Found:
        """All starts side by side, one priority after the other, then what is preferred; the best start of each."""
        B, S = len(q0), self.starts
        q0, p = np.repeat(q0, S, axis=0), [np.repeat(x, S, axis=0) for x in p]
        data = [[np.repeat(x, S, axis=0) for x in own] for own in data]
        number = np.tile(np.arange(S), B)
        held: list[int] = []
        kept = np.zeros((B * S, 0))
        costs, q, total, pressed = [], q0, np.zeros(B * S), np.zeros((B * S, self.model.nv))
        for level in sorted({aim.priority for aim in self.aims}):
            wanted = [k for k, aim in enumerate(self.aims) if aim.priority == level]
            problem = self.problem(wanted, held)
            arrays = [x for k in (*wanted, *held) for x in data[k]] + ([kept] if held else [])
            if held:
                s = self._solve(problem, q, arrays, p, effort=PATIENT)
            else:
                s = self._solve(problem, q0, arrays, p, number=number)
                s = self._persist(problem, s, arrays, p, B)
            q, reached = s["best"], s["miss"] <= 1
            costs.append(np.where(reached, 0.0, np.where(s["least"] < UNREACHED, s["least"], np.inf)))
            total += s["total"]
            pressed = np.maximum(pressed, s["pressed"] * ~reached[:, None])
            rows = self._rows(wanted, q, data, p)
            kept = np.concatenate([kept, np.where(reached[:, None], 0.0, rows)], axis=1)
            held += wanted
        if self.prefer is not None:
            problem = self.problem((), held, self.prefer)
            arrays = [x for k in held for x in data[k]] + [kept, *self._preferred(q0)]
            s = self._solve(problem, q, arrays, p, effort=PREFERRED)
            good = s["least"] < UNREACHED
            q = np.where(good[:, None], s["best"], q)
            costs.append(np.where(good, s["least"], np.inf))
            total += s["total"]
        # lexicographic: the first cost decides, rounding aside
        order = np.lexsort([np.round(c / 1e-9) for c in reversed(costs)])
        rank = np.empty(B * S)
        rank[order] = np.arange(B * S)
        best = rank.reshape(B, S).argmin(axis=1) + S * np.arange(B)
        s = {"start": number[best].astype(float), "total": total.reshape(B, S).sum(axis=1), "pressed": pressed[best]}
        few = ([[x[best] for x in own] for own in data], [x[best] for x in p])
        solutions = None
        if self.all:
            every = self._judged(q, {"start": number, "total": total, "pressed": pressed}, data, p, None)
            solutions = [self._distinct(every, slice(k * S, (k + 1) * S)) for k in range(B)]
        found = self._judged(q[best], s, *few, solutions)
        levels = len({aim.priority for aim in self.aims})
        kept = (np.array(costs[:levels])[:, best] == 0).all(axis=0)
        off = np.flatnonzero(kept & ~found.reached)
        if len(off):  # what was held has moved by more than a narrow tolerance
            arrays, own = [x[off] for one in few[0] for x in one], [x[off] for x in few[1]]
            again = self._solve(self.problem(range(len(self.aims))), found.q[off], arrays, own)
            q[best[off]] = again["best"]
            found = self._judged(q[best], s, *few, solutions)
        return found

    def _persist(
        self, problem: Problem, s: dict[str, np.ndarray], arrays: list[np.ndarray], p: list[np.ndarray], B: int
    ) -> dict[str, np.ndarray]:
        """Where no start reached the targets, the best of them goes on as far as it can; the others drop out."""
        miss, least = s["miss"].reshape(B, self.starts), s["least"].reshape(B, self.starts)
        none = ~(miss <= 1).any(axis=1)
        if not none.any():
            return s
        lane = least.argmin(axis=1)[none] + np.flatnonzero(none) * least.shape[1]
        patient = self._solve(problem, s["best"][lane], [x[lane] for x in arrays], [x[lane] for x in p], effort=PATIENT)
        least[none] = UNREACHED  # a view
        for name in ("best", "pressed", "miss", "least"):
            s[name][lane] = patient[name]
        return s

    def _solve(
        self, problem: Problem, q: np.ndarray, arrays: list[np.ndarray], p: list[np.ndarray], *, starts: int = 1,
        number: np.ndarray | None = None, effort: tuple[float, float, float] = QUICK,
        ranges: Sequence[np.ndarray] | None = None,
    ) -> dict[str, np.ndarray]:  # fmt: skip
        """Run the kernel until every lane is done. With `number` each lane has the one start of that number.

        `ranges` are limits and the range of starts where they are not the search's own, (nq,) or (B, nq).
        """
        B, names = len(q), [port.name for port in problem.ports[0]]
        s = {name: np.full(B, UNREACHED) for name in ("cost", "gap", "least", "miss")}
        s |= {name: np.zeros(B) for name in ("steps", "start", "outcome", "total")}
        s |= {name: q.copy() for name in ("x", "q", "best")}
        s |= {"damping": np.full(B, FIRST_DAMPING), "fresh": np.ones(B), "pressed": np.zeros((B, self.model.nv))}
        last = np.full(B, float(starts))
        if number is not None:  # as if the start before it had failed
            later = number > 0
            s["start"] = np.where(later, number - 1.0, 0.0)
            s["fresh"], s["damping"] = np.where(later, 0.0, 1.0), np.where(later, LARGEST_DAMPING, FIRST_DAMPING)
            s["cost"], s["gap"] = np.where(later, -UNREACHED, UNREACHED), np.where(later, 0.0, UNREACHED)
            last = number + 1.0
        length = min(1.0, size_of(self.model))
        numbers = (*effort, self.tolerance * length, self.tolerance)
        steps = [np.asarray(float(x)) for x in numbers]
        ready = list(arrays)
        if problem.model.depends_on_time:
            ready.append(np.asarray(self.t))
        data = [q, *(ranges or (*self.limits, *self._spread())), last, *steps, *ready, *p]
        lanes = np.arange(B)
        left = s
        with np.errstate(all="ignore"):
            while len(lanes):
                piece = PIECE * max(1, MANY // len(lanes))
                given = (*(left[name] for name in names), *data, np.asarray(float(piece)))
                found = problem.kernel(*given, threads=self.threads)
                left = dict(zip(names, found, strict=True))
                busy = left["outcome"] == BUSY
                if busy.mean() < 0.75:  # what is done leaves its lane to others
                    for name in names:
                        s[name][lanes[~busy]] = left[name][~busy]
                    data = [x if x.ndim == 0 or (k in SHARED and x.ndim == 1) else x[busy] for k, x in enumerate(data)]
                    lanes, left = lanes[busy], {name: x[busy] for name, x in left.items()}
        return s

    def _spread(self) -> tuple[np.ndarray, np.ndarray]:
        """Between which coordinates (nq,) starts lie: limits, a whole turn, or the size of the mechanism."""
        length = 2 * size_of(self.model)
        units = [unit for link in self.model.tree.links for unit in link.kind.q_units]
        reach = np.array([length if unit == "m" else np.pi for unit in units])
        lower, upper = self.limits
        low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * reach, -reach))
        high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * reach, reach))
        return low, high

    def _preferred(self, q0: np.ndarray) -> list[np.ndarray]:
        """Inputs of the objective."""
        assert self.prefer is not None
        if self.prefer == "near":
            return [q0]
        lower, upper = self.limits
        both = np.isfinite(lower) & np.isfinite(upper) & (upper > lower)
        with np.errstate(invalid="ignore"):
            arrays = [np.where(both, (lower + upper) / 2, 0.0), np.where(both, 2 / (upper - lower), 0.0)]
        return [np.tile(x, (len(q0), 1)) for x in arrays[: OBJECTIVES[self.prefer].arrays]]

    # results

    def _evaluated(self, aims: Sequence[Aim], q: np.ndarray, data: list[np.ndarray], p: list[np.ndarray]) -> Any:
        """Rows of targets, weighted, and their errors (B, targets, 2) in m and rad."""
        model, length = self.model.unbound, size_of(self.model)
        key = hashlib.sha256(repr((model.key, [aim.key(model) for aim in aims], "errors")).encode()).hexdigest()
        inputs = [Port("q", (model.nq,))]
        inputs += [Port(f"d{k}_{i}", (n,)) for k, aim in enumerate(aims) for i, n in enumerate(aim.sizes)]
        inputs += [Port("p", (model.parameters.size,))] if model.parameters else []
        outputs = (Port("rows", (sum(map(rows_of, aims)),)), Port("errors", (len(aims), 2)))

        def record() -> Any:
            import casadi as ca

            written, parameters = symbolic(model)
            symbols = [ca.SX.sym(port.name, *port.shape) for port in inputs]
            if model.parameters:
                symbols[-1] = parameters
            rest, found = list(symbols[1:]), []
            for aim in aims:
                found.append(aim.rows(written, symbols[0], rest, length))
                del rest[: len(aim.sizes)]
            errors = ca.vertcat(*(ca.horzcat(sqrt(rows.position), sqrt(rows.rotation)) for rows in found))
            return ca.Function("errors", symbols, [ca.vertcat(*(rows.e for rows in found)), errors])

        kernel = _ERRORS.find(
            model, key, lambda: compile_program(Program("target_errors", tuple(inputs), outputs, key, record))
        )
        return kernel(q, *data, *p, threads=self.threads)

    def _rows(self, numbers: list[int], q: np.ndarray, data: list[list[np.ndarray]], p: list[np.ndarray]) -> np.ndarray:
        arrays = [x for k in numbers for x in data[k]]
        return np.asarray(self._evaluated([self.aims[k] for k in numbers], q, arrays, p)[0])

    def _judged(
        self, q: np.ndarray, s: dict[str, np.ndarray], data: list[list[np.ndarray]], p: list[np.ndarray],
        solutions: list[np.ndarray] | None,
    ) -> _Found:  # fmt: skip
        """What was found, judged apart from the kernel that found it."""
        model = self.model
        bound = model.unbound._bound(p[0]) if p else model
        q = self._closed(bound, self._unwound(q), self.problem(range(len(self.aims))).moving[0])
        errors = np.asarray(self._evaluated(self.aims, q, [x for own in data for x in own], p)[1])
        size = size_of(model)
        most = self.tolerance * np.array([min(1.0, size), 1.0])
        reached = np.asarray((errors <= most).all(axis=(-2, -1)))
        if model.has_rows:
            phi = np.asarray(constraint_kernels(bound)[0](q, *time_argument(model, self.t))[0])
            reached &= np.abs(phi).max(axis=-1, initial=0.0) <= CLOSED * max(1.0, size)
        held = (s["pressed"] > 0) & ~reached[:, None]
        return _Found(q, reached, errors, s["start"].astype(int), held, s["total"].astype(int), solutions)

    def _closed(self, model: Model, q: np.ndarray, columns: list[int]) -> np.ndarray:
        """Loops closed to rounding: steps of Newton's method with what may move; kept where they come closer."""
        if not model.has_rows or not len(q):
            return q
        evaluate, plus = constraint_kernels(model)[0], tree_kernel(model, "plus")
        at, (lower, upper) = coordinate_of_rate(model), self.limits
        free = np.zeros((len(q), model.nv), dtype=bool)
        for c in columns:
            free[:, c] = True if at[c] is None else (q[:, at[c]] > lower[at[c]]) & (q[:, at[c]] < upper[at[c]])
        phi, G = evaluate(q, *time_argument(model, self.t))
        for _ in range(2):
            A = real_rows(model, G) * free[:, None, :]
            moved = plus(q, -(np.linalg.pinv(A, rcond=1e-6) @ phi[..., None])[..., 0])
            new_phi, new_G = evaluate(moved, *time_argument(model, self.t))
            closer = np.abs(new_phi).max(axis=-1) < np.abs(phi).max(axis=-1)
            q = np.where(closer[:, None], moved, q)
            phi, G = np.where(closer[:, None], new_phi, phi), np.where(closer[:, None, None], new_G, G)
        return q

    def turning(self) -> np.ndarray:
        """Coordinates (nq,) that are angles without limits, where a whole turn changes nothing."""
        lower, upper = self.limits
        return _TURNING.find(self.model, None, lambda: _turning(self.model)) & np.isneginf(lower) & np.isposinf(upper)

    def _unwound(self, q: np.ndarray, kept: int | None = None) -> np.ndarray:
        """The same configurations without whole turns, but for one coordinate."""
        turning = self.turning()
        if kept is not None:
            turning[kept] = False
        return np.where(turning, (q + np.pi) % (2 * np.pi) - np.pi, q)

    def _distinct(self, found: _Found, at: slice) -> np.ndarray:
        """The reached configurations of some lanes that differ."""
        q = found.q[at][found.reached[at]]
        turning, size = self.turning(), size_of(self.model)
        units = np.array([unit for link in self.model.tree.links for unit in link.kind.q_units])
        kept: list[np.ndarray] = []
        for x in q:
            for other in kept:
                gap = np.where(turning, (x - other + np.pi) % (2 * np.pi) - np.pi, x - other)
                gap = np.where(units == "m", gap / size, gap)
                for part in self.model.quaternions:
                    gap[part] = min(x[part] - other[part], x[part] + other[part], key=lambda d: float(d @ d))
                if np.abs(gap).max(initial=0.0) < ALIKE:
                    break
            else:
                kept.append(x)
        return np.reshape(kept, (-1, self.model.nq))


SHARED = range(1, 5)  # among the data: limits and the range of starts, which all lanes may share
