"""Which mode each row with a law takes: the complementarity problem of a few rows, solved by trying the modes.

Forces `x` (m,) of the rows change their relative accelerations, or velocities, to `w = b + W x`:

    UNILATERAL   closed: w = 0, x > 0            open: x = 0, w >= 0
    FRICTION     sticks: w = 0, |x| < bound      slips along d: x = -d bound, w along d where it is at rest
    SWITCHED     closed: w = 0                   open: x = 0

A bound is `constant + coefficient N`, with `N` the force of a row of the same element, or the magnitude of a joint's
reaction `r + A x`. Every set of modes gives one small system of equations; the first whose answer keeps all
inequalities is taken, those with most rows closed first. Closed rows must be independent: of rows that say the same,
some are closed and the others carry nothing, or slip at no speed with all the friction they have. The rows of a disc
may depend on one another, as where a mechanism moves in one of its directions: its force is then the smallest that
holds.

All systems of a batch that have the same rows in question are solved together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product

import numpy as np

from cardan.lazy import cached_property
from cardan.model.row import Law

OPEN, CLOSED = 0.0, 1.0
TOLERANCE = 1e-10  # of the forces and accelerations there are: less counts as none
SINGULAR = 1e-9  # smallest singular value, of a matrix scaled to a unit diagonal, of rows that depend on one another
MOST_SETS = 2500  # sets of modes that are tried; of more, sweeps propose some
SWEEPS = 3000
DISC_SHARE, DISC_STEPS = 1e-7, 3  # added to the diagonal of discs that stick, whose rows may depend on one another
REACTION_STEPS = 30
PLAIN_STEPS, DIRECTION_STEPS = 15, 40


@dataclass(frozen=True)
class LawTable:
    """What the m rows with laws are, one entry each.

    `normal` is the row whose force bounds a friction row, -1 for none; `disc` the rows, its own among them, of friction
    in several directions, () for none.
    """

    laws: tuple[Law, ...]
    normal: tuple[int, ...]
    disc: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        """How many rows."""
        return len(self.laws)

    @cached_property
    def _of(self) -> dict[Law, np.ndarray]:
        return {law: np.array([own is law for own in self.laws], dtype=bool) for law in Law}

    def of(self, law: Law) -> np.ndarray:
        """Which rows (m,) have a law."""
        return self._of[law]

    @cached_property
    def in_disc(self) -> np.ndarray:
        """Which rows (m,) are friction in several directions."""
        return np.array([bool(rows) for rows in self.disc], dtype=bool)

    @cached_property
    def _together(self) -> np.ndarray:
        return np.array([[k == r or k in rows for k in range(len(self))] for r, rows in enumerate(self.disc)], float)

    def size(self, y: np.ndarray) -> np.ndarray:
        """Magnitudes (..., m) of values of rows; those of a disc have that of all its rows together."""
        return np.asarray(np.where(self.in_disc, np.sqrt(self._summed(y * y)), np.abs(y)))

    def along(self, d: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Products (..., m) of directions and values of rows, summed over the rows of each disc."""
        return self._summed(d * y)

    def _summed(self, y: np.ndarray) -> np.ndarray:
        """Sums (..., m) over the rows of discs; the same to the bit in any batch, as products of BLAS are not."""
        return np.einsum("...j,ji->...i", y, self._together)


@dataclass(frozen=True)
class LawProblem:
    """The problem of k systems: `b` (k, m), `W` (k, m, m), and what bounds friction.

    `constant` and `coefficient` (k, m) are those of slipping, `static_constant` and `static_coefficient` of sticking.
    `reaction` (k, m, n, m + 1) has the columns `r` and `A` of the reactions, zero for rows that have none.
    `contact` (k, m): unilateral rows whose gap is closed, and switched rows that are closed. `rests` (k, m): friction
    rows without speed; the others slip along `direction` (k, m), which is zero where friction does not act.
    """

    b: np.ndarray
    W: np.ndarray
    constant: np.ndarray
    coefficient: np.ndarray
    static_constant: np.ndarray
    static_coefficient: np.ndarray
    reaction: np.ndarray
    contact: np.ndarray
    rests: np.ndarray
    direction: np.ndarray

    def of(self, systems: np.ndarray) -> LawProblem:
        """Some of the systems."""
        return LawProblem(*(getattr(self, f.name)[systems] for f in fields(self)))


@dataclass(frozen=True)
class Choice:
    """The answer for k systems: `mode` and `direction` (k, m), forces `x` and relative accelerations `w` (k, m).

    `found` (k,) is False where no set of modes fits; `single` (k,) is False where another one moves differently.
    """

    mode: np.ndarray
    direction: np.ndarray
    x: np.ndarray
    w: np.ndarray
    found: np.ndarray
    single: np.ndarray


def choose(table: LawTable, problem: LawProblem) -> Choice:
    """The modes of every system."""
    k, m = problem.b.shape
    answer = Choice(
        np.zeros((k, m)), problem.direction.copy(), np.zeros((k, m)), problem.b.copy(), np.zeros(k, bool),
        np.ones(k, bool),
    )  # fmt: skip
    pattern = np.hstack([problem.contact, problem.rests, problem.direction != 0])
    for own in np.unique(pattern, axis=0):
        systems = np.flatnonzero((pattern == own).all(axis=1))
        part = _choose_alike(table, problem.of(systems))
        for f in fields(Choice):
            getattr(answer, f.name)[systems] = getattr(part, f.name)
    return answer


def _choose_alike(table: LawTable, problem: LawProblem) -> Choice:
    """The same of systems that have the same rows in question."""
    k, m = problem.b.shape
    found, single = np.zeros(k, bool), np.ones(k, bool)
    mode, direction, x = np.zeros((k, m)), problem.direction.copy(), np.zeros((k, m))
    size = scales(problem)
    doubtful = _may_be_several(table, problem)
    sets: Iterator[tuple[np.ndarray, np.ndarray]] = _sets(table, problem)
    if _count(table, problem) > MOST_SETS:
        if k > 1:  # each has its own sets to try
            parts = [_choose_alike(table, problem.of(np.array([i]))) for i in range(k)]
            return Choice(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Choice)))
        sets, doubtful = _proposed(table, problem), np.zeros(k, bool)
    for modes, signs in sets:
        left = np.flatnonzero(~found | doubtful)
        if not len(left):
            break
        own = problem.of(left)
        d = np.where(signs == 0, own.direction, signs)
        answer, d, solved = _solved(table, own, modes, d)
        fits = solved & _holds(table, own, modes, d, answer, [s[left] for s in size])
        new, again = left[fits & ~found[left]], left[fits & found[left]]
        moved = np.einsum("kij,kj->ki", problem.W[again], x[again] - answer[fits & found[left]])
        single[again] &= (np.abs(moved) <= 1e-6 * size[1][again]).all(axis=1)
        mode[new], direction[new], x[new] = modes, d[fits & ~found[left]], answer[fits & ~found[left]]
        found[new] = True
    w = problem.b + np.einsum("kij,kj->ki", problem.W, x)
    return Choice(mode, direction, x, w, found, single | ~found)


def _may_be_several(table: LawTable, problem: LawProblem) -> np.ndarray:
    """Systems (k,) whose answer may not be the only one: friction bounded by a force that depends on friction.

    With static friction above the sliding one, two answers are usual, and the one that sticks is taken.
    """
    depends = np.array([n >= 0 for n in table.normal], dtype=bool) | (problem.reaction[..., 1:] != 0).any(axis=(2, 3))
    bounded = depends & (problem.coefficient > 0)
    more = (problem.static_coefficient > problem.coefficient) | (problem.static_constant > problem.constant)
    return np.asarray(bounded.any(axis=1) & ~(more & problem.rests).any(axis=1))


def scales(problem: LawProblem) -> list[np.ndarray]:
    """Sizes (k, m) of the forces and of the relative accelerations there are."""
    diagonal = np.einsum("kii->ki", problem.W)
    largest = np.abs(problem.b).max(axis=1, initial=0.0)[:, None]
    bound = np.maximum(problem.constant, problem.static_constant)
    w = largest + np.einsum("kij,kj->ki", np.abs(problem.W), bound)
    with np.errstate(divide="ignore", invalid="ignore"):
        x = np.where(diagonal > 0, np.abs(problem.b) / diagonal, 0.0)
    return [x + bound + 1e-12 * x.max(axis=1, initial=0.0)[:, None], w]


def _options(table: LawTable, problem: LawProblem) -> list[list[tuple[float, float]]]:
    """Modes, with signs of sliding, that each row may take."""
    contact, rests = problem.contact[0], problem.rests[0]
    options: list[list[tuple[float, float]]] = []
    for r, law in enumerate(table.laws):
        if law is Law.SWITCHED:
            options.append([(CLOSED if contact[r] else OPEN, 0.0)])
        elif law is Law.UNILATERAL:
            options.append([(CLOSED, 0.0), (OPEN, 0.0)] if contact[r] else [(OPEN, 0.0)])
        elif not rests[r]:
            options.append([(OPEN, 0.0)])
        elif table.disc[r]:  # its direction is found; all rows of a disc do the same
            options.append([(CLOSED, 0.0), (OPEN, 0.0)])
        else:
            options.append([(CLOSED, 0.0), (OPEN, 0.0), (OPEN, 1.0), (OPEN, -1.0)])
    return options


def _count(table: LawTable, problem: LawProblem) -> float:
    """How many sets of modes there are to try."""
    return float(np.prod([float(len(own)) for own in _options(table, problem)]))


def _sets(table: LawTable, problem: LawProblem) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Sets of modes (m,) to try, with the signs (m,) of slipping; a sign of zero takes the direction that is given."""
    for chosen in sorted(product(*_options(table, problem)), key=lambda s: -sum(o[0] for o in s)):
        mode, sign = (np.array(x) for x in zip(*chosen, strict=True))
        if all(_fits_together(table, mode, sign, r) for r in range(len(table))):
            yield mode, sign


def _proposed(table: LawTable, problem: LawProblem) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Sets of modes of one system with many rows in question, by sweeps of projected Gauss-Seidel.

    Friction that reaches its level at rest slides from the next proposal on, with its sliding level.
    """
    m = len(table)
    friction, signs = table.of(Law.FRICTION), np.zeros(m)
    x = np.zeros((1, m))
    for _ in range(m + 1):
        x = _swept(table, problem, signs, x)
        bound = friction_bounds(table, problem, x, True)[0]
        reach = table.size(x[0])
        at_rest = friction & problem.rests[0] & (signs == 0)
        slips = at_rest & (reach >= bound * (1 - 1e-7))
        closed = np.where(table.of(Law.UNILATERAL), x[0] > TOLERANCE * np.abs(x).max(initial=1e-300), at_rest & ~slips)
        closed = np.where(table.of(Law.SWITCHED), problem.contact[0], closed).astype(bool)
        signs = np.where(slips & ~table.in_disc, -np.sign(x[0]), signs)
        yield np.where(independent(problem.W, closed[None])[0], CLOSED, OPEN), signs.copy()
        if not slips.any():
            return


def _swept(table: LawTable, problem: LawProblem, signs: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Forces (1, m) after many sweeps over the rows; friction with a sign slides in that direction."""
    W, b, x = problem.W[0], problem.b[0], x.copy()
    friction, gaps = table.of(Law.FRICTION), table.of(Law.UNILATERAL)
    for _ in range(SWEEPS):
        before = x.copy()
        held, moving = (friction_bounds(table, problem, x, static)[0] for static in (True, False))
        for r in range(len(table)):
            free = x[0, r] - (b[r] + W[r] @ x[0]) / W[r, r] if W[r, r] > 0 else 0.0
            d = signs[r] if signs[r] else problem.direction[0, r]
            if gaps[r]:
                x[0, r] = max(free, 0.0) if problem.contact[0, r] else 0.0
            elif not friction[r]:
                x[0, r] = free if problem.contact[0, r] else 0.0
            elif signs[r] or not problem.rests[0, r]:
                x[0, r] = -d * moving[r]
            else:
                x[0, r] = np.clip(free, -held[r], held[r])
        if np.abs(x - before).max() <= 1e-13 * np.abs(x).max(initial=0.0):
            break
    return x


def _fits_together(table: LawTable, mode: np.ndarray, sign: np.ndarray, r: int) -> bool:
    """Whether the mode of row r goes with those of its disc and its normal row; each set comes once."""
    normal = table.normal[r]
    if any(mode[other] != mode[r] for other in table.disc[r]):
        return False
    return normal < 0 or mode[normal] == CLOSED or (mode[r] == OPEN and sign[r] >= 0)


def _solved(
    table: LawTable, problem: LawProblem, mode: np.ndarray, d: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Forces x (k, m) in given modes, the directions (k, m) of slipping, and where (k,) there is one answer."""
    slips = (mode == OPEN) & table.of(Law.FRICTION)
    unknown = slips & problem.rests[0] & table.in_disc
    if not unknown.any():
        x, solved = _forces(table, problem, mode, d)
        return x, d, solved
    d = d.copy()
    held, _ = _forces(table, problem, np.where(unknown, CLOSED, mode), d)
    d[:, unknown] = _unit(table, -held, d)[:, unknown]
    moved, going = np.zeros(len(d)), np.ones(len(d), dtype=bool)  # who has arrived stays, whoever goes on beside it
    for k in range(DIRECTION_STEPS):
        new = np.where(unknown & going[:, None], _turned(table, problem, mode, d)[0], d)
        moved, before, d = np.where(going, np.abs(new - d).max(axis=1), moved), d, new
        going &= moved >= 1e-14
        if not going.any():
            break
        if k >= PLAIN_STEPS:  # then by Newton's method
            turned = _unit(table, _newton_direction(table, problem, mode, before, new, unknown), new)
            d = np.where(unknown & going[:, None], turned, d)
    x, solved = _turned(table, problem, mode, d)[1:]
    return x, d, solved & (moved < 1e-9)


def _turned(
    table: LawTable, problem: LawProblem, mode: np.ndarray, d: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Directions (k, m) nearer to those of slipping than `d`, the forces x (k, m) at d, and where (k,) there are some.

    A step of projected gradients, which leads on for any bound that is constant.
    """
    x, solved = _forces(table, problem, mode, d)
    w = problem.b + np.einsum("kij,kj->ki", problem.W, x)
    stiffness = table.along(np.ones_like(w), np.einsum("kii->ki", problem.W))
    return _unit(table, w / np.where(stiffness > 0, stiffness, 1.0) - x, d), x, solved


def _newton_direction(
    table: LawTable, problem: LawProblem, mode: np.ndarray, d: np.ndarray, new: np.ndarray, unknown: np.ndarray
) -> np.ndarray:
    """Directions (k, m) by Newton's method for those that stay as they are, from `new`, what d turns to."""
    rows, step = np.flatnonzero(unknown), 1e-7
    slope = np.zeros((len(d), len(rows), len(rows)))
    for k, row in enumerate(rows):
        beside = d.copy()
        beside[:, row] += step
        slope[:, :, k] = (_turned(table, problem, mode, beside)[0] - new)[:, rows] / step
    A = np.eye(len(rows)) - slope
    good = np.abs(np.linalg.det(A)) > 1e-9
    A[~good] = np.eye(len(rows))
    found = d.copy()
    found[:, rows] += np.linalg.solve(A, (new - d)[:, rows, None])[..., 0]
    return found


def _unit(table: LawTable, w: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Directions (k, m) of vectors of discs; those before where there is none."""
    size = table.size(w)
    return np.where(table.in_disc & (size > 0), w / np.where(size > 0, size, 1.0), before)


def _forces(table: LawTable, problem: LawProblem, mode: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forces x (k, m) in given modes and directions, and where (k,) the equations have one answer."""
    m = problem.b.shape[1]
    closed = mode == CLOSED
    slips = ~closed & table.of(Law.FRICTION)
    A = np.where(closed[:, None], problem.W, np.eye(m))
    for r, n in enumerate(table.normal):
        if slips[r] and n >= 0:
            A[:, r, n] += d[:, r] * problem.coefficient[:, r]
    right = np.where(closed, -problem.b, np.where(slips, -d * problem.constant, 0.0))
    diagonal = table.along(np.ones_like(problem.b), np.einsum("kii->ki", problem.W))  # one for all rows of a disc
    unit = np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)
    left = np.where(closed, unit, 1 / unit)  # y = x / unit
    scaled = left[:, :, None] * A * unit[:, None, :]
    shared = np.diag(np.where(closed & table.in_disc, DISC_SHARE, 0.0))
    solved = np.linalg.svd(scaled + shared, compute_uv=False)[:, -1] > SINGULAR
    scaled[~solved] = np.eye(m)
    y = np.zeros((*right.shape, 1))
    for _ in range(DISC_STEPS if shared.any() else 1):
        y += np.linalg.solve(scaled + shared, (left * right)[..., None] - scaled @ y)
    x = unit * y[..., 0]
    by_reaction = slips & (problem.reaction != 0).any(axis=(0, 2, 3))
    if not by_reaction.any():
        return x, solved
    last, going = np.zeros_like(x), np.ones(len(x), dtype=bool)  # who has arrived stays, whoever goes on beside it
    for _ in range(REACTION_STEPS):  # Newton's method
        R = problem.reaction[..., 0] + np.einsum("krnj,kj->krn", problem.reaction[..., 1:], x)
        size = np.linalg.norm(R, axis=2)
        slope = np.einsum("krn,krnj->krj", R, problem.reaction[..., 1:]) / np.where(size > 0, size, 1.0)[..., None]
        pull = np.where(by_reaction, d * problem.coefficient, 0.0)
        residual = np.einsum("kij,kj->ki", A, x) - right + pull * size
        slope = A + pull[..., None] * slope
        step = _newton_step(left[:, :, None] * slope * unit[:, None, :] + shared, left * residual, unit)
        x, last = np.where(going[:, None], x - step, x), np.where(going[:, None], step, last)
        going &= (np.abs(step) > 1e-15 * np.abs(x).max(axis=1, keepdims=True)).any(axis=1)
        if not going.any():
            break
    converged = (np.abs(last) <= 1e-9 * (np.abs(x).max(axis=1, initial=0.0)[:, None] + 1e-300)).all(axis=1)
    return x, solved & converged


def _newton_step(A: np.ndarray, residual: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """`unit A^-1 residual` (k, m); the residual itself where A (k, m, m) is singular."""
    good = np.isfinite(A).all(axis=(1, 2)) & (np.abs(np.linalg.det(np.nan_to_num(A))) > 1e-12)
    A = np.where(good[:, None, None], A, np.eye(A.shape[1]))
    return np.asarray(unit * np.linalg.solve(A, residual[..., None])[..., 0])


def friction_bounds(table: LawTable, problem: LawProblem, x: np.ndarray, static: bool) -> np.ndarray:
    """Largest friction forces (k, m) at forces x (k, m)."""
    constant = problem.static_constant if static else problem.constant
    coefficient = problem.static_coefficient if static else problem.coefficient
    R = problem.reaction[..., 0] + np.einsum("krnj,kj->krn", problem.reaction[..., 1:], x)
    N = np.linalg.norm(R, axis=2)
    for r, n in enumerate(table.normal):
        if n >= 0:
            N[:, r] = np.maximum(x[:, n], 0.0)
    return np.asarray(constant + coefficient * N)


def _holds(
    table: LawTable, problem: LawProblem, mode: np.ndarray, d: np.ndarray, x: np.ndarray, size: list[np.ndarray]
) -> np.ndarray:
    """Where (k,) forces in given modes keep all inequalities."""
    w = problem.b + np.einsum("kij,kj->ki", problem.W, x)
    x_least, w_least = (TOLERANCE * s for s in size)
    w_most = np.abs(problem.b).max(axis=1, initial=0.0)[:, None]
    closed, friction = mode == CLOSED, table.of(Law.FRICTION)
    unilateral, rests = table.of(Law.UNILATERAL), problem.rests
    bound = friction_bounds(table, problem, x, True)
    reach, along = table.size(x), table.along(d, w)
    free = np.array([n >= 0 and mode[n] == OPEN for n in table.normal], dtype=bool)  # nothing presses
    good = np.where(unilateral & closed, x > x_least, True)
    good &= np.where(unilateral & ~closed & problem.contact, w >= -w_least, True)
    good &= np.where(friction & closed, reach < bound - x_least, True)
    good &= np.where(closed & table.in_disc, np.abs(w) <= np.maximum(w_least, TOLERANCE * w_most), True)
    slips = friction & ~closed & rests & ~free
    good &= np.where(slips & (d != 0), along >= -w_least, True)
    good &= np.where(slips & (d == 0) & ~table.in_disc, np.abs(w) <= w_least, True)  # others hold it
    return np.asarray(good.all(axis=1) & np.isfinite(x).all(axis=1))


def residual(table: LawTable, problem: LawProblem, found: Choice) -> np.ndarray:
    """How far (k,) forces and rates are from their laws, relative to the largest there are."""
    x_size, w_size = (np.maximum(s.max(axis=1, initial=0.0), 1e-300)[:, None] for s in scales(problem))
    x, w = found.x / x_size, found.w / w_size
    gap = np.where(problem.contact, np.abs(np.minimum(x, w)), np.abs(x))
    over = np.maximum(table.size(found.x) - friction_bounds(table, problem, found.x, True), 0.0) / x_size
    stuck = np.where(found.mode == CLOSED, np.abs(w), np.maximum(-found.direction * w, 0.0))
    held = np.where(found.mode == CLOSED, np.abs(w), np.abs(x))
    error = np.where(table.of(Law.UNILATERAL), gap, np.where(table.of(Law.FRICTION), np.maximum(over, stuck), held))
    return np.asarray(error.max(axis=1, initial=0.0))


def independent(W: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The rows (k, m) of some that do not depend on one another, by elimination with the largest pivots."""
    size = np.sqrt(np.maximum(np.einsum("kii->ki", W), 1e-300))
    A, kept, each = W / size[:, :, None] / size[:, None, :], np.zeros_like(rows), np.arange(len(W))
    for _ in range(int(rows.sum(axis=1).max(initial=0))):
        pivots = np.where(rows & ~kept, np.einsum("kii->ki", A), 0.0)
        j = np.argmax(pivots, axis=1)
        good = pivots[each, j] > SINGULAR
        kept[each[good], j[good]] = True
        column = A[each, :, j]
        scaled = column / np.where(good, pivots[each, j], np.inf)[:, None]
        A = A - column[:, :, None] * scaled[:, None, :]
    return kept
