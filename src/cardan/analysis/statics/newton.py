"""Newton's method for a balance of forces, damped, all systems of a batch at once.

A system is sought by one of two kinds of steps, both within a trust radius:

- towards a root of `F`: the smallest step that makes `|F + A s|` least (Levenberg and Marquardt), accepted where
  `|F|` falls as predicted. It finds the equilibrium near the start, stable or not.
- along the forces: `s = -|H|^-1 F` with the absolute values of the eigenvalues of the stiffness `H`. It goes down the
  potential energy wherever there is one, past unstable equilibria, and ends in a stable one.

A system that is stuck on the way to a root, for example where the stiffness vanishes, goes along the forces.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cardan.analysis.statics.balance import CLOSED, Point, Task, displacement_sizes, moved, part_of, point_at

RADIUS, LONGEST = 0.5, 1e3  # rad and lengths of the mechanism: the first trust radius, and the largest
KICK = 1e-2  # rad and lengths, at the first radius: away from an unstable equilibrium
TURN = 0.7  # rad: the largest turn of a joint in one step, so that no equilibrium is passed over
AWAY, TURNED = 1e4, 60.0  # lengths of the mechanism, and rad: who has gone that far has no equilibrium
SOFT = 1e-10  # of the largest stiffness: less is none
SETTLED = 0.3  # at rounding the rest does not fall below this part of itself

FOUND, STUCK, RAN_AWAY, TIRED = "found", "stuck", "ran away", "iterations"


@dataclass(eq=False)
class Search:
    """Where the search of each system ended, and why."""

    q: np.ndarray
    x: np.ndarray
    rest: np.ndarray
    size: np.ndarray
    iterations: np.ndarray
    outcome: np.ndarray

    def put(self, where: np.ndarray, other: Search, which: np.ndarray) -> None:
        """Replace some systems by some of another search."""
        for name, mine in vars(self).items():
            mine[where] = getattr(other, name)[which]


def search(task: Task, q: np.ndarray, x: np.ndarray, tolerance: float, most: int, downhill: bool) -> Search:
    """Search from configurations (n, nq) that are closed, and unknowns (n, changes).

    It is found where what is left of the forces is below `tolerance` of the forces that act, then as far as rounding
    allows. With `downhill` all systems go along the forces.
    """
    n = len(q)
    q, x = np.array(q), np.array(x)
    rest, size = np.full(n, np.inf), np.zeros(n)
    iterations, outcome = np.zeros(n, dtype=int), np.full(n, TIRED, dtype=object)
    may_descend = task.is_symmetric and not task.changes
    descends = np.full(n, downhill and may_descend)
    radius, away = np.full(n, RADIUS), np.zeros(n)
    angles = np.array([unit != "m/s" for link in task.model.tree.links for unit in link.kind.v_units], dtype=bool)
    far_away = np.where(angles, TURNED, AWAY * displacement_sizes(task.model))
    active = np.arange(n)
    point = point_at(task, q, x) if n else None
    for _ in range(most):
        if not len(active) or point is None:
            break
        rest[active], size[active] = np.linalg.norm(point.F, axis=-1), np.maximum(size[active], point.size)
        small = rest[active] <= tolerance * size[active]
        down = descends[active]
        step, kicked = np.zeros((len(active), point.A.shape[-1])), np.zeros(len(active), dtype=bool)
        if not down.all():
            step = _root_step(point, radius[active])
        if down.any():
            along, kicked = _downhill_step(point, radius[active], small)
            step = np.where(down[:, None], along, step)
            kicked &= down
        done = small & ~kicked & (rest[active] <= 1e-30)
        dq = np.einsum("nij,nj->ni", point.moves, step)
        part = np.minimum(1.0, TURN / np.maximum(np.abs(dq[:, angles]).max(axis=-1, initial=0.0), 1e-300))[:, None]
        step, dq = part * step, part * dq
        dx = step[:, point.n_directions :]
        here = task.part(active)
        q_new, x_new, gap = moved(here, q[active], x[active], dq, dx)
        trial = point_at(here, q_new, x_new)
        rest_new = np.where(gap <= CLOSED, np.linalg.norm(trial.F, axis=-1), np.inf)
        rest_new = np.where(np.isfinite(rest_new), rest_new, np.inf)
        predicted = np.linalg.norm(point.F + np.einsum("nij,nj->ni", point.A, step), axis=-1)
        with np.errstate(over="ignore"):
            gain = (rest[active] - rest_new) / np.maximum(rest[active] - predicted, 1e-300)
        better = (rest_new < rest[active]) & (gain > 1e-3)
        slope, slope_new = (np.einsum("ni,ni->n", dq, p.force) for p in (point, trial))
        downwards = (slope_new <= 0.5 * np.abs(slope)) & np.isfinite(rest_new)
        accept = np.where(down & ~small, downwards | better, rest_new < rest[active]) | (kicked & np.isfinite(rest_new))
        accept = np.where(~down & ~small, better, accept) & ~done
        # a rest that is small and falls no further has come to rounding
        settled = small & ~kicked & (done | ~accept | (rest_new > SETTLED * rest[active]) | (rest_new == 0.0))
        length = np.linalg.norm(step, axis=-1)
        grown = np.where(down, downwards, gain > 0.75) & (length > 0.5 * radius[active])
        shrunk = ~accept | (~down & (gain < 0.25))
        radius[active] *= np.where(shrunk & (~small | kicked), 0.25, np.where(grown, 2.0, 1.0))
        radius[active] = np.minimum(radius[active], LONGEST)
        q[active] = np.where(accept[:, None], q_new, q[active])
        x[active] = np.where(accept[:, None], x_new, x[active])
        rest[active] = np.where(accept, rest_new, rest[active])
        away[active] += np.where(accept, np.abs(dq / far_away).max(axis=-1, initial=0.0), 0.0)
        iterations[active] += 1
        outcome[active[settled]] = FOUND
        far = ~settled & (away[active] > 1.0)
        outcome[active[far]] = RAN_AWAY
        stuck = ~settled & ~far & ((radius[active] < 1e-12) | ~(rest[active] < np.inf))
        turns = stuck & ~down & may_descend & np.isfinite(rest[active])
        descends[active[turns]], radius[active[turns]] = True, RADIUS
        outcome[active[stuck & ~turns]] = STUCK
        left = ~(settled | far | (stuck & ~turns))
        if accept[left].all():  # the trial is the point of the next iteration
            point = trial if left.all() else part_of(trial, left)
            active = active[left]
        else:
            active = active[left]
            point = point_at(task.part(active), q[active], x[active]) if len(active) else None
    return Search(q, x, rest, size, iterations, outcome)


def elsewhere(task: Task, q: np.ndarray, x: np.ndarray, seed: int) -> np.ndarray:
    """Other closed configurations (n, nq) to begin with, a radian or a metre away and more, the larger the seed."""
    point = point_at(task, q, x)
    z = np.sqrt(seed) * np.random.default_rng(seed).normal(size=point.W.shape[::2])
    other, _, gap = moved(task, q, x, np.einsum("nij,nj->ni", point.W, z), np.zeros_like(x))
    return np.where((gap <= CLOSED)[:, None], other, q)


def _root_step(point: Point, radius: np.ndarray) -> np.ndarray:
    """The step (n, columns) of Levenberg and Marquardt, at most as long as the radius (n,)."""
    scale = _column_scale(point)
    A = np.nan_to_num(point.A * scale)
    if 0 in A.shape[1:]:
        return np.zeros((len(A), A.shape[-1]))
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    c = np.einsum("nij,ni->nj", U, point.F)
    real = s > 1e-13 * np.maximum(s[:, :1], 1e-300)
    s, c = np.where(real, s, 0.0), np.where(real, c, 0.0)

    def lengths(damping: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.norm(_damped(s, c, damping), axis=-1))

    # damping by bisection of its logarithm, between none that counts and more than the stiffness
    top = np.log(np.maximum(s[:, 0] * np.linalg.norm(c, axis=-1) / radius, 1e-300) + 1e-300)
    low, high = top - 80.0, top + 1.0
    free = lengths(np.zeros(len(A))) <= radius
    for _ in range(40 if not free.all() else 0):
        middle = (low + high) / 2
        long = lengths(np.exp(middle)) > radius
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    z = _damped(s, c, np.where(free, 0.0, np.exp(high)))
    return np.asarray(-np.einsum("nji,nj->ni", Vt, z) * scale)


def _damped(s: np.ndarray, c: np.ndarray, damping: np.ndarray) -> np.ndarray:
    below = s**2 + damping[:, None]
    return np.where(below > 0, s * c / np.where(below > 0, below, 1.0), 0.0)


def _column_scale(point: Point) -> np.ndarray:
    """Typical sizes of the columns of `A`: 1 for directions, of the other unknowns their own."""
    return np.array([1.0] * point.n_directions + [c.size for c in point.task.changes])


def _downhill_step(point: Point, radius: np.ndarray, small: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Along the forces; and which systems (n,) are kicked because they rest at an unstable equilibrium."""
    H = np.nan_to_num(point.A)
    if not H.shape[-1]:
        return np.zeros(H.shape[:2]), np.zeros(len(H), dtype=bool)
    h, E = np.linalg.eigh((H + np.swapaxes(H, 1, 2)) / 2)
    most = np.abs(h).max(axis=-1, initial=0.0)[:, None]
    c = np.einsum("nij,ni->nj", E, point.F)
    least = np.maximum(1e-8 * most, np.linalg.norm(c, axis=-1)[:, None] / (10 * radius)[:, None])
    step = -np.einsum("nij,nj->ni", E, c / np.maximum(np.maximum(np.abs(h), least), 1e-300))
    length = np.linalg.norm(step, axis=-1)
    step *= np.minimum(1.0, radius / np.maximum(length, 1e-300))[:, None]
    kicked = small & ((h < -SOFT * most).any(axis=-1))
    return np.where(kicked[:, None], KICK * (radius / RADIUS)[:, None] * E[:, :, 0], step), kicked
