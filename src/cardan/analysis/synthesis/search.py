"""From many starts to dimensions: bring each linkage together, then descend along its loops, all starts in a batch.

1. `lay_out`: configurations at all positions for the dimensions of each start, as far as it can be assembled.
2. `bring_together`: dimensions and configurations change together, with open loops among the errors, so that a start
   need not be assembled to begin with.
3. `descend`: the loops are closed, and stay so. Errors change with the dimensions through assembly: by the implicit
   function theorem `dq = -J^+ phi_u du + Z z`, where `Z` are the motions that the loops allow if the input is free.
   Inequalities are an augmented Lagrangian (Rockafellar, Math. Programming 5 (1973) 354-373).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cardan.analysis.statics.balance import Directions
from cardan.analysis.synthesis.damped_steps import damped_step, gradient, held_at_bounds
from cardan.analysis.synthesis.linkage_problem import LinkageProblem, LinkageRows
from cardan.structure.kernels import tree_kernel

CLOSED = 1e-10  # residual of loops in their sizes: below it they are closed
OPEN_WEIGHT = 3.0  # of open loops among the errors, while starts are brought together
PENALTY = 30.0  # of inequalities
VIOLATED = 1e-7  # of inequalities, which have no units
LONGEST = 0.4  # rad, or the size of the mechanism: of one coordinate in one step
NEGLIGIBLE = 1e-15
SWEEP = 24  # configurations over the range of a free input, among which the nearest to each target begins

Report = Callable[[float], None]


@dataclass(eq=False)
class Starts:
    """Unknowns `u` (S, n), configurations `q` (S, positions, nq), multipliers of inequalities, and what became of it.

    `closed` are those whose loops are closed at every position, `cost` their sum of squares, `gap` (S, positions) how
    far loops are open, `converged` whether descent ended, `violation` the largest inequality that is broken.
    """

    u: np.ndarray
    q: np.ndarray
    closed: np.ndarray
    gap: np.ndarray
    cost: np.ndarray
    converged: np.ndarray
    violation: np.ndarray


def moved(problem: LinkageProblem, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
    """Configurations after displacements (..., nv), shortened where a coordinate would move too far."""
    unit = problem.rate_units
    far = np.abs(dq / unit).max(axis=-1, initial=0.0)
    dq = dq * np.minimum(1.0, LONGEST / np.maximum(far, 1e-300))[..., None]
    return np.asarray(tree_kernel(problem.model.unbound, "plus")(q, dq))


def closed(problem: LinkageProblem, u: np.ndarray, q: np.ndarray, steps: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Configurations (S, positions, nq) with loops closed, input held, and how far they are open (S, positions).

    Damped by the square of the gap: far from closed positions steps stay short, near them they are Newton's.
    """
    unit = problem.rate_units
    gap = np.zeros(q.shape[:-1])
    for step in range(steps + 1):
        phi = problem.gaps(u, q)
        gap = np.abs(phi.value).max(axis=-1, initial=0.0)
        if step == steps or not (gap > NEGLIGIBLE * 4).any():
            break
        J = phi.q * unit
        Jt = np.swapaxes(J, -1, -2)
        JJ = Jt @ J
        damping = 0.1 * (phi.value**2).sum(-1) + 1e-14 * np.trace(JJ, axis1=-2, axis2=-1) + 1e-300
        dq = -np.linalg.solve(JJ + damping[..., None, None] * np.eye(len(unit)), Jt @ phi.value[..., None])[..., 0]
        new = moved(problem, q, dq * unit)
        better = gap > CLOSED * 1e-3
        if not better.any():
            break
        q = np.where(better[..., None], new, q)
    return q, gap


def lay_out(
    problem: LinkageProblem, u: np.ndarray, q0: np.ndarray, sweep: tuple[float, float] | None,
    others: tuple[np.ndarray, ...] = (),
) -> np.ndarray:  # fmt: skip
    """First configurations (S, positions, nq), each from the one before.

    Where the input is free, those of a sweep: the nearest to each target, or for every other start some that follow one
    another evenly, from `q0` or `others` (S, nq), whichever comes nearer.
    """
    S, given = len(u), problem.input
    K = problem.count if given is None else len(given.values)
    q, at = np.empty((S, K, problem.model.nq)), q0[:, None]
    free = np.ones(K, dtype=bool) if given is None else np.isnan(given.values)
    laid = None
    for k in np.flatnonzero(~free):
        one = problem.at([int(k)])
        assert one.input is not None
        place, unit = one.input.q, one.input.unit
        offset = 0.0 if one.input.column is None else u[:, None, one.input.column] * unit
        value = one.input.values[0]
        way = 0.0 if laid is None else value - laid
        n = min(int(np.ceil(abs(way) / (LONGEST * unit))), SWEEP)
        for step in range(1, n):  # the way between two positions, so that the linkage stays in its branch
            tried = at.copy()
            tried[..., place] = value - way * (1 - step / n) + offset
            tried, gap = closed(with_input(one, tried[..., place]), u, tried, 6)
            at = np.where((gap < 1e-3)[..., None], tried, at)
        at, laid = at.copy(), value
        at[..., place] = value + offset
        q[:, k : k + 1], gap = closed(one, u, at, 15)
        at = np.where((gap < 1e-3)[..., None], q[:, k : k + 1], at)  # a configuration that is open leads nowhere
    if free.any():
        asked = np.flatnonzero(free)
        least = np.full(S, np.inf)
        for guess in (q0, *others):
            laid, total = _nearest_of_sweep(problem, u, asked, _swept(problem, u, guess, sweep))
            less = total < least
            q[np.ix_(less, asked)] = laid[less]
            least = np.minimum(least, total)
    return q


def _nearest_of_sweep(
    problem: LinkageProblem, u: np.ndarray, asked: np.ndarray, tried: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Of configurations (S, m, nq) those to begin with at positions `asked`, and the sum of their costs (S,)."""
    cost = np.empty((len(u), len(asked), tried.shape[1]))
    for i, k in enumerate(asked):
        rows = _repeated(problem.at([int(k)]), tried.shape[1]).evaluate(u, tried)
        cost[:, i] = (rows.e.value**2).sum(-1) + OPEN_WEIGHT**2 * (rows.phi.value**2).sum(-1)
    chosen = cost.argmin(axis=-1)
    chosen[1::2] = _in_order(cost[1::2])
    total = np.take_along_axis(cost, chosen[..., None], axis=-1).sum(axis=(1, 2))
    return np.take_along_axis(tried, chosen[..., None], axis=1), total


def _in_order(cost: np.ndarray) -> np.ndarray:
    """For each start numbers (S, positions) of a sweep that follow one another evenly, at the smallest cost.

    Either way round, over a whole turn, half or a quarter of it.
    """
    _, n, m = cost.shape
    first = np.arange(m)[:, None]
    spans = [np.arange(n) * m / n, np.arange(n) * m / (2 * max(n - 1, 1)), np.arange(n) * m / (4 * max(n - 1, 1))]
    ways = np.concatenate([(first + way * np.rint(span).astype(int)) % m for span in spans for way in (1, -1)])
    total = cost[:, np.arange(n), ways].sum(axis=-1)
    return np.asarray(ways[total.argmin(axis=-1)])


def _swept(problem: LinkageProblem, u: np.ndarray, q0: np.ndarray, sweep: tuple[float, float] | None) -> np.ndarray:
    """Configurations (S, SWEEP, nq) over the range of the input."""
    if problem.input is None or sweep is None:
        return q0[:, None]
    values = np.linspace(*sweep, SWEEP, endpoint=False)
    found, last = [], q0[:, None]
    driven = problem.at([0])
    assert driven.input is not None
    for value in values:
        one = with_input(driven, np.array([value]))
        at = last.copy()
        at[..., driven.input.q] = value
        new, gap = closed(one, u, at, 6)
        found.append(new)
        last = np.where((gap < 1e-3)[..., None], new, last)  # a configuration that is open leads nowhere
    return np.concatenate(found, axis=1)


def with_input(problem: LinkageProblem, values: np.ndarray) -> LinkageProblem:
    """The input at given values, without an unknown offset."""
    assert problem.input is not None
    return replace(problem, input=replace(problem.input, values=values, column=None))


def _repeated(one: LinkageProblem, n: int) -> LinkageProblem:
    """What is asked at a position, asked at n configurations."""
    return one.at([0] * n)


def bring_together(
    problem: LinkageProblem, u: np.ndarray, q: np.ndarray, steps: int, report: Report
) -> tuple[np.ndarray, np.ndarray]:
    """Unknowns and configurations that leave loops nearly closed, and errors small as far as this goes together."""
    unit, S = problem.rate_units, len(u)
    lam, busy = np.full(S, 1e-2), np.ones(S, dtype=bool)
    u, q = u.copy(), q.copy()
    rows = problem.evaluate(u, q)
    r, r0 = _open_rows(rows)
    cost = _squares(r, r0)
    for step in range(steps):
        report(step / steps)
        some = np.flatnonzero(busy)
        if not len(some):
            break
        part = rows.part(some)
        A, B = _open_slopes(part)
        B = B * unit
        r, r0 = _open_rows(part)
        A0 = PENALTY * np.where(part.g0[..., None] > 0, part.g0_u, 0.0)
        held = held_at_bounds(u[some], gradient(r, A, r0, A0), problem.low, problem.high)
        du, dq = damped_step(r, A, B, r0, A0, lam[some], held)
        new_u = np.clip(u[some] + du, problem.low, problem.high)
        new_q = moved(problem, q[some], dq * unit)
        tried = problem.evaluate(new_u, new_q)
        new = _squares(*_open_rows(tried))
        good = new < cost[some]
        ended = good & (cost[some] - new < 1e-3 * cost[some]) | (new < 1e-26) | (~good & (lam[some] > 1e6))
        lam[some] = np.where(good, np.maximum(lam[some] / 5, 1e-12), lam[some] * 4)
        yes = some[good]
        u[yes], q[yes], cost[yes] = new_u[good], new_q[good], new[good]
        _put(rows, yes, tried, good)
        busy[some[ended]] = False
    return u, q


def better(problem: LinkageProblem, u: np.ndarray, q: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Of two configurations at each position the one with the smaller errors and gaps."""
    cost = [(_open_rows(problem.evaluate(u, x))[0] ** 2).sum(axis=-1) for x in (q, other)]
    return np.where((cost[1] < cost[0])[..., None], other, q)


def _open_rows(rows: LinkageRows) -> tuple[np.ndarray, np.ndarray]:
    parts = [OPEN_WEIGHT * rows.phi.value, rows.e.value, PENALTY * np.maximum(rows.g.value, 0.0)]
    return np.concatenate(parts, axis=-1), PENALTY * np.maximum(rows.g0, 0.0)


def _open_slopes(rows: LinkageRows) -> tuple[np.ndarray, np.ndarray]:
    broken = PENALTY * (rows.g.value > 0)[..., None]
    A = np.concatenate([OPEN_WEIGHT * rows.phi.u, rows.e.u, broken * rows.g.u], axis=-2)
    return A, np.concatenate([OPEN_WEIGHT * rows.phi.q, rows.e.q, broken * rows.g.q], axis=-2)


def _squares(r: np.ndarray, r0: np.ndarray) -> np.ndarray:
    total = (r**2).sum(axis=(-1, -2)) + (r0**2).sum(axis=-1)
    return np.asarray(np.where(np.isfinite(total), total, np.inf))


def _put(rows: LinkageRows, at: np.ndarray, new: LinkageRows, which: np.ndarray) -> None:
    """Write the rows of some starts over the old ones."""
    for old, found in ((rows.phi, new.phi), (rows.e, new.e), (rows.g, new.g)):
        old.value[at], old.q[at], old.u[at] = found.value[which], found.q[which], found.u[which]
    rows.g0[at], rows.g0_u[at] = new.g0[which], new.g0_u[which]


def descend(problem: LinkageProblem, u: np.ndarray, q: np.ndarray, steps: int, report: Report) -> Starts:
    """Least squares along closed loops, with inequalities and bounds."""
    S, unit = len(u), problem.rate_units
    u = np.clip(u, problem.low, problem.high)
    q, gap = closed(problem, u, q, 40)
    is_closed = gap.max(axis=-1, initial=0.0) <= CLOSED
    rows = problem.evaluate(u, q)
    y, y0 = np.zeros_like(rows.g.value), np.zeros_like(rows.g0)  # multipliers, by the penalty
    lam, busy = np.full(S, 1e-4), is_closed.copy()
    cost = _squares(*_rows(rows, y, y0))
    slow = np.zeros(S, dtype=int)
    asked = q.shape[1] if rows.g.value.shape[-1] else problem.count  # where the loops' motion matters to errors
    converged = np.zeros(S, dtype=bool)
    rounds = 1 if rows.g.value.shape[-1] + rows.g0.shape[-1] == 0 else 10
    for turn in range(rounds):
        for step in range(steps):
            report((turn + step / steps) / rounds)
            some = np.flatnonzero(busy)
            if not len(some):
                break
            part, ys, y0s = rows.part(some), y[some], y0[some]
            r, r0 = _rows(part, ys, y0s)
            broken = PENALTY * (part.g.value + ys > 0)[..., None]
            E_q = (np.concatenate([part.e.q, broken * part.g.q], axis=-2) * unit)[:, :asked]
            E_u = np.concatenate([part.e.u, broken * part.g.u], axis=-2)[:, :asked]
            J = part.phi.q[:, :asked] * unit
            along = Directions.of(J.reshape(-1, *J.shape[-2:]), np.ones(J.shape[-1]))
            Z, inverse = (x.reshape(*J.shape[:2], *x.shape[-2:]) for x in (along.null, along.inverse))
            follow = -inverse @ part.phi.u[:, :asked]  # coordinates by unknowns, through assembly
            A, B = E_u + E_q @ follow, E_q @ Z
            r = r[:, :asked]
            A0 = PENALTY * np.where((part.g0 + y0s > 0)[..., None], part.g0_u, 0.0)
            g = gradient(r, A, r0, A0)
            held = held_at_bounds(u[some], g, problem.low, problem.high)
            du, dz = damped_step(r, A, B, r0, A0, lam[some], held)
            far = np.abs(du).max(axis=-1, initial=0.0)
            shorter = np.minimum(1.0, LONGEST / np.maximum(far, 1e-300))
            du, dz = du * shorter[:, None], dz * shorter[:, None, None]
            new_u = np.clip(u[some] + du, problem.low, problem.high)
            dq = (follow @ (new_u - u[some])[:, None, :, None] + Z @ dz[..., None])[..., 0]
            new_q = q[some]
            new_q[:, :asked] = moved(problem, new_q[:, :asked], dq * unit)
            new_q, new_gap = closed(problem, new_u, new_q)
            tried = problem.evaluate(new_u, new_q)
            new = _squares(*_rows(tried, ys, y0s))
            good = (new < cost[some]) & (new_gap.max(axis=-1, initial=0.0) <= CLOSED)
            small = (np.abs(du).max(axis=-1, initial=0.0) < 1e-13) & (
                np.abs(dz).max(axis=(-1, -2), initial=0.0) < 1e-13
            )
            little = cost[some] - new < 1e-14 * cost[some]
            slow[some] = np.where(good & (cost[some] - new < 1e-5 * cost[some]), slow[some] + 1, 0)
            ended = (new < 1e-29) | small | (little & (lam[some] > 1e3)) | (good & little) | (slow[some] >= 12)
            lam[some] = np.where(good, np.maximum(lam[some] / 6, 1e-15), lam[some] * 5)
            yes = some[good]
            u[yes], q[yes], cost[yes] = new_u[good], new_q[good], new[good]
            gap[yes] = new_gap[good]
            _put(rows, yes, tried, good)
            busy[some[ended]] = False
            converged[some[ended]] = True
        violation = _violation(rows)
        again = is_closed & (violation > VIOLATED)
        if turn == rounds - 1 or not again.any():
            break
        y = np.maximum(y + rows.g.value, 0.0)
        y0 = np.maximum(y0 + rows.g0, 0.0)
        cost = _squares(*_rows(rows, y, y0))
        busy, lam = again, np.full(S, 1e-6)
        slow[:] = 0
    return Starts(u, q, is_closed, gap, (rows.e.value**2).sum(axis=(-1, -2)), converged, _violation(rows))


def _rows(rows: LinkageRows, y: np.ndarray, y0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Errors, and inequalities as far as they are broken or have a multiplier."""
    r = np.concatenate([rows.e.value, PENALTY * np.maximum(rows.g.value + y, 0.0)], axis=-1)
    return r, PENALTY * np.maximum(rows.g0 + y0, 0.0)


def _violation(rows: LinkageRows) -> np.ndarray:
    largest = rows.g.value.max(axis=(-1, -2), initial=0.0)
    return np.asarray(np.maximum(largest, rows.g0.max(axis=-1, initial=0.0)))


def follow_motion(problem: LinkageProblem, u: np.ndarray, q: np.ndarray, to: np.ndarray, longest: float) -> np.ndarray:
    """Whether (S, ways) turning the input leads from configurations `q` (S, ways, nq) to others `to`, loops closed.

    The input goes in steps of at most `longest` (rad, or the size of the mechanism) the way its coordinate tells.
    """
    given = problem.input
    assert given is not None
    first = q[..., given.q]
    way = to[..., given.q] - first
    n = max(1, int(np.ceil(np.abs(way / given.unit).max(initial=0.0) / longest)))
    at, fine = q, np.ones(q.shape[:-1], dtype=bool)
    for k in range(1, n + 1):
        at = at.copy()
        at[..., given.q] = first + way * k / n
        at, gap = closed(with_input(problem, at[..., given.q]), u, at, 8)
        fine &= gap <= CLOSED
    apart = np.abs(_wrapped(problem, at - to)).max(axis=-1, initial=0.0)
    return np.asarray(fine & (apart < 1e-5))


def _wrapped(problem: LinkageProblem, d: np.ndarray) -> np.ndarray:
    """Differences of configurations in units of their sizes, whole turns left out; quaternions up to their sign."""
    d = d.copy()
    for link in problem.model.tree.links:
        for k, unit in enumerate(link.kind.q_units):
            at = link.q.start + k
            if unit == "rad":
                d[..., at] = (d[..., at] + np.pi) % (2 * np.pi) - np.pi
            elif unit == "m":
                d[..., at] /= problem.length
            else:
                d[..., at] = 0.0  # a quaternion: its link follows from the others
    return d
