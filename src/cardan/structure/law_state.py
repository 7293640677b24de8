"""Rows with laws at states of a mechanism, on arrays: impulses of impacts, and the mode that each row takes.

    impact      u+ = u + W P      0 <= P, u+ + e min(u, 0) >= 0, one of them zero, for gaps that are closed (Newton)
                compression with e = 0, then e times its impulse is given back (Poisson)
                Newton's law of one gap after the other, the one that closes fastest first (sequential)
    friction    |P_t| <= mu P_n, also of joints whose friction depends on their reaction
    modes       by accelerations (`structure.law_choice`)

Where friction and restitution together would raise the kinetic energy (Kane's paradox), the impulses are taken between
those without restitution and those of the law, as near to these as energy allows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.formulation.law_motion import REACTION, frictions
from cardan.formulation.law_quantities import law_problem
from cardan.model.force import Coupling
from cardan.model.memory import KernelSlot, Slot
from cardan.model.model import Model
from cardan.model.modes import CLOSED, DIRECTION, MODE, places
from cardan.model.row import Law
from cardan.structure.kernels import compile_quantity, time_argument
from cardan.structure.law_choice import OPEN, Choice, LawProblem, LawTable, choose, independent, residual
from cardan.structure.planarity import prepare
from cardan.structure.rows import kept_rows

CLOSES = 1e-9  # m or rad: a gap up to this is closed
RESTS = 1e-10  # m/s or rad/s: a rate up to this is zero
DISC_RESTS = 1e-7  # the same of friction in two directions, which turn fast as the speed falls to zero
MET, ENDS = 1e-4, 1e-6  # m or rad, and of the rates: how far from zero a row may be whose event is met
TORN = 1e-6  # rad/s or m/s, and of the accelerations there are: a lock that is closed moves, which it must not
EPS = float(np.finfo(float).eps)
NEWTON, POISSON, SEQUENTIAL = "newton", "poisson", "sequential"
MOST_IMPACTS = 500  # one after the other, at one time; what then still closes is stopped without restitution
_KERNELS: KernelSlot[tuple[str, bool]] = KernelSlot("what the choice of modes needs, by formulation and loads")
_LAWS: Slot[str, ModeLaws] = Slot("rows with laws of a model with modes, by formulation")


@dataclass(frozen=True)
class LawState:
    """What the rows of k systems are at a state: see `formulation.law_quantities.law_problem`."""

    phi: np.ndarray
    u: np.ndarray
    b: np.ndarray
    W: np.ndarray
    Y: np.ndarray
    bound: np.ndarray
    reaction: np.ndarray
    restitution: np.ndarray

    def of(self, systems: np.ndarray) -> LawState:
        """Some of the systems."""
        return LawState(*(x[systems] for x in vars(self).values()))


@dataclass(frozen=True)
class GapError:
    """What an integrator errs by in gaps beside rounding: of their size, and in m or rad."""

    relative: float = 0.0
    absolute: float = 0.0


class ModeLaws:
    """The rows with laws of a model with modes, in a formulation."""

    def __init__(self, model: Model, formulation: Formulation) -> None:
        self.model, self.formulation = model.unbound, formulation
        laws = tuple(law for element in model.laws for law in element.laws)
        normal, disc = [-1] * len(laws), list[tuple[int, ...]]([()] * len(laws))
        for f in frictions(model):
            for row in f.rows:
                normal[row] = -1 if f.normal is None else f.normal
                disc[row] = f.rows if len(f.rows) > 1 else ()
        self.table = LawTable(laws, tuple(normal), tuple(disc))
        self.mode, self.direction, self.closed = (places(model, what) for what in (MODE, DIRECTION, CLOSED))
        self.names = [row.name for row in model.lawful_rows]

    def state(
        self, t: Any, q: np.ndarray, v: np.ndarray, tau: np.ndarray, p: np.ndarray, wrenches: np.ndarray | None = None
    ) -> LawState:
        """What the rows are at states (k, ...)."""
        model, formulation, loaded = self.model, self.formulation, wrenches is not None

        def make() -> Any:
            prepare(model, formulation)
            rows = kept_rows(model, formulation)
            written = law_problem(model, formulation, rows, loaded)
            return compile_quantity(model, written, f"{formulation.facts(model)} rows {rows} loaded {loaded}")

        kernel = _KERNELS.find(model, (formulation.key, loaded), make).at_values(np.ascontiguousarray(p))
        loads = () if wrenches is None else (wrenches,)
        with np.errstate(all="ignore"):  # `nowhere` tells
            found = [np.array(x) for x in kernel(q, v, tau, *loads, *time_argument(model, t))]
        m, k = len(self.table), len(q)
        found[6] = found[6].reshape(k, m, m + 1, REACTION).swapaxes(2, 3)
        return LawState(*found)

    def switched(self, p: np.ndarray) -> np.ndarray:
        """Rows (k, m) of locks and latches that are closed at parameters p (k, np)."""
        return np.asarray((self.closed >= 0) & (p[:, self.closed] > 0.5))

    def with_modes(self, p: np.ndarray, found: Choice, s: LawState, q: np.ndarray, time: float = 0.0) -> np.ndarray:
        """Parameters (k, np) with the modes that were chosen at configurations q (k, nq); `time` as in `chosen`."""
        own, p = self.direction >= 0, p.copy()
        below = np.where(s.phi <= CLOSES, np.maximum(-s.phi, 0.0), 0.0) + self.rounding(q)
        for r, n in enumerate(self.table.normal):
            if self.table.disc[r] and n >= 0:
                below[:, n] = np.where(found.mode[:, n] > 0.5, self._slow(s, time)[:, r], below[:, n])
        p[:, self.mode] = found.mode
        p[:, self.direction[own]] = np.where(self.table.of(Law.UNILATERAL), below, found.direction)[:, own]
        return p

    def rounding(self, q: np.ndarray) -> np.ndarray:
        """Rounding (k, m) of the gaps of rows at configurations q (k, nq)."""
        found = np.repeat(
            2 * EPS * np.maximum(np.abs(q).max(axis=1, initial=1.0), 1.0)[:, None], len(self.table), axis=1
        )
        for r, row in enumerate(row for element in self.model.laws for row in element.rows):
            if isinstance(row, Coupling):  # at its limit a coordinate of the tree is as large as the limit
                links = [self.model.link_of_joint(j) for j in row.joints]
                own = [np.abs(q[:, link.q]).sum(axis=1) for link in links if link is not None]
                found[:, r] = 2 * EPS * sum(own) if len(own) == len(links) else found[:, r]
        return found

    def reached(self, s: LawState, met: np.ndarray) -> LawState:
        """The state with gaps (k, m) whose events are met closed: of an integrator that interpolates they are not."""
        gaps = met & self.table.of(Law.UNILATERAL) & (np.abs(s.phi) <= MET)
        return replace(s, phi=np.where(gaps, np.minimum(s.phi, 0.0), s.phi))

    def ending(self, s: LawState, v: np.ndarray, p: np.ndarray, met: np.ndarray) -> np.ndarray:
        """Rows (k, m) of friction that stops sliding: their events are met, and their rates zero but for errors."""
        slides = self.table.of(Law.FRICTION) & ~self.table.in_disc
        slides = slides & (p[:, self.mode] == OPEN) & (p[:, self.direction] != 0)
        return np.asarray(met & slides & (np.abs(s.u) <= ENDS * np.abs(v).max(axis=1, keepdims=True)))

    def bouncing(self, s: LawState, q: np.ndarray, error: GapError) -> np.ndarray:
        """Restitutions (k, m): none where a bounce would be lost in the error of gaps."""
        return np.where(s.u < -self.slowest(s, q, error), s.restitution, 0.0)

    def slowest(self, s: LawState, q: np.ndarray, error: GapError) -> np.ndarray:
        """Speeds (k, m) below which the way to a gap, or from it, is lost in the error of gaps."""
        rounding = self.rounding(q)
        least = 100 * rounding + 10 * (error.relative * rounding / (2 * EPS) + error.absolute)
        unit = np.sqrt(np.maximum(np.einsum("kii->ki", s.W), 1e-300))
        closed = self.table.of(Law.UNILATERAL) & (s.phi <= CLOSES)
        held = np.where(closed, np.abs(s.b) / unit, 0.0).max(axis=1, keepdims=True)  # of two that fall one may be held
        return np.maximum(RESTS, np.sqrt(2 * np.maximum(np.abs(s.b), held * unit) * least))

    def settling(self, before: LawState, after: LawState, q: np.ndarray, error: GapError, limit: bool) -> np.ndarray:
        """Rows (k, m) that come to rest at an impact: of systems where all that closes and opens does so slowly.

        They are gaps, and the friction of gaps. At the `limit` of impacts that accumulate all that touches is slow.
        """
        gaps = self.table.of(Law.UNILATERAL) & (before.phi <= CLOSES)
        approach = np.where(gaps, np.maximum(-before.u, 0.0), 0.0)
        slow = np.all(approach <= self.slowest(before, q, error), axis=1, keepdims=True)
        least = self.slowest(after, q, error)
        if limit:
            slow, least = np.ones_like(slow), 10 * approach.max(axis=1, initial=0.0)[:, None]
        least = np.broadcast_to(least, gaps.shape)
        rest = np.asarray(gaps & slow & (np.abs(after.u) <= least))
        for r, n in enumerate(self.table.normal):
            if n >= 0:
                rest[:, r] = rest[:, n] & (np.abs(after.u[:, r]) <= least[:, n])
        return rest

    def chosen(self, s: LawState, closed: np.ndarray, time: float = 0.0, ending: np.ndarray | None = None) -> Choice:
        """The modes by accelerations; `closed` (k, m) are the switched rows that are on.

        Sliding ends in the rows `ending` (k, m). Friction in two directions is at rest if it stops within `time`, s:
        shorter than a step can follow.
        """
        u, friction = s.u, self.table.of(Law.FRICTION)
        holding = independent(s.W, closed)
        contact = np.where(self.table.of(Law.UNILATERAL), (s.phi <= CLOSES) & (u <= RESTS), holding)
        speed, turns = self.table.size(u), self.table.in_disc
        speed = speed if ending is None else np.where(ending, 0.0, speed)
        direction = np.where(turns, u / np.maximum(speed, 1e-300), np.sign(u))
        least = np.where(turns, 2 * self._slow(s, time), RESTS)
        rests = friction & (speed <= least)
        touching = np.ones_like(rests)
        for r, n in enumerate(self.table.normal):
            if n >= 0:
                touching[:, r] = contact[:, n]
        direction = np.where(friction & ~rests & touching, direction, 0.0)
        constant, coefficient, static, static_coefficient = np.moveaxis(s.bound, -1, 0)
        problem = LawProblem(
            s.b,
            s.W,
            constant,
            coefficient,
            static,
            static_coefficient,
            s.reaction,
            contact,
            rests & touching,
            direction,
        )
        return choose(self.table, problem)

    def _slow(self, s: LawState, time: float) -> np.ndarray:
        """Speeds (k, m) of the friction rows of discs that a step cannot follow to rest."""
        return np.maximum(DISC_RESTS, time * self.table.size(s.b))

    def resting(self, s: LawState) -> tuple[np.ndarray, np.ndarray]:
        """With all rows closed and at rest: where (k,) forces fit, and how well (k,), relative to their size."""
        gaps, friction = self.table.of(Law.UNILATERAL), self.table.of(Law.FRICTION)
        holding = independent(s.W, np.broadcast_to(self.table.of(Law.SWITCHED), s.u.shape))
        constant, coefficient, static, static_coefficient = np.moveaxis(s.bound, -1, 0)
        problem = LawProblem(
            s.b, s.W, constant, coefficient, static, static_coefficient, s.reaction, gaps | holding,
            np.broadcast_to(friction, s.u.shape), np.zeros_like(s.u),
        )  # fmt: skip
        found = choose(self.table, problem)
        return found.found, residual(self.table, problem, found)

    def hit(self, s: LawState, closed: np.ndarray) -> np.ndarray:
        """Systems (k,) whose rates need an impulse: a closed gap closes further, or a row that is on moves."""
        gaps = self.table.of(Law.UNILATERAL) & (s.phi <= CLOSES) & (s.u < -RESTS / 10)
        return np.asarray((gaps | (closed & (np.abs(s.u) > RESTS / 10))).any(axis=1))

    def torn(self, s: LawState, found: Choice, closed: np.ndarray) -> np.ndarray:
        """Rows (k, m) of locks and latches that are closed, and move all the same: others hold or drive them."""
        left = closed & (found.mode < 0.5)
        largest = 1 + np.abs(s.b).max(axis=1, initial=0.0, keepdims=True)
        return np.asarray(left & found.found[:, None] & ((np.abs(s.u) > TORN) | (np.abs(found.w) > TORN * largest)))

    def why_torn(self, s: LawState, found: Choice, torn: np.ndarray) -> str:
        """Which lock or latch of these rows (k, m) does not hold; empty if there is none."""
        if not torn.any():
            return ""
        i, r = (int(x[0]) for x in np.nonzero(torn))
        return (
            f"{self.names[r]!r} is closed and cannot hold: a motion or a loop moves it, with the rate {s.u[i, r]:.6g} "
            f"and the acceleration {found.w[i, r]:.6g}; open it, or let the motion give way"
        )

    def impact(self, s: LawState, closed: np.ndarray, e: np.ndarray, rule: str = NEWTON) -> tuple[np.ndarray, Choice]:
        """Impulses (k, m) with restitutions e (k, m), and how they were chosen."""
        if rule == SEQUENTIAL:
            return self._one_by_one(s, closed, e)
        friction, gaps = self.table.of(Law.FRICTION), self.table.of(Law.UNILATERAL)
        contact = np.where(gaps, s.phi <= CLOSES, independent(s.W, closed))
        impulsive = np.zeros(s.u.shape, dtype=bool)
        for r, n in enumerate(self.table.normal):
            if friction[r]:
                impulsive[:, r] = contact[:, n] if n >= 0 else s.reaction[:, r].any(axis=(1, 2))
        none, mu = np.zeros_like(s.u), np.where(impulsive, s.bound[..., 1], 0.0)
        reaction = s.reaction.copy()
        reaction[..., 0] = 0.0
        problem = LawProblem(s.u, s.W, none, mu, none, mu, reaction, contact, impulsive, none)
        first = choose(self.table, problem)
        e = np.where(gaps & (s.u < 0), e, 0.0)
        if not e.any():
            return first.x, first
        if rule == POISSON:
            given, limit = e * first.x, none.copy()
            for r, n in enumerate(self.table.normal):
                if n >= 0:
                    limit[:, r] = mu[:, r] * given[:, n]
            more = s.u + np.einsum("kij,kj->ki", s.W, first.x + given)
            second = choose(self.table, replace(problem, b=more, constant=limit, static_constant=limit))
            whole = first.x + given + second.x
        else:
            second = choose(self.table, replace(problem, b=s.u + e * s.u))
            whole = second.x
        whole = np.where(second.found[:, None], whole, first.x)  # where no impulses fit the law there is no restitution
        return without_gain(s, first.x, whole), replace(second, found=first.found)

    def _one_by_one(self, s: LawState, closed: np.ndarray, e: np.ndarray) -> tuple[np.ndarray, Choice]:
        """Impacts one after the other by Newton's law: always of the gap that closes fastest, until none does."""
        gaps, P = self.table.of(Law.UNILATERAL), np.zeros_like(s.u)
        found: Choice | None = None
        for _ in range(MOST_IMPACTS):
            now = replace(s, u=s.u + np.einsum("kij,kj->ki", s.W, P))
            closing = np.where(gaps & (s.phi <= CLOSES), now.u, 0.0)
            fastest = np.argmin(closing, axis=1)[:, None] == np.arange(len(gaps))
            busy = np.asarray((closing < -RESTS).any(axis=1))
            if not busy.any():
                break
            more, one = self.impact(replace(now, phi=np.where(gaps & ~fastest, np.inf, s.phi)), closed, e)
            P += np.where(busy[:, None], more, 0.0)
            found = one if found is None else replace(one, found=one.found & found.found)
        last, rest = self.impact(replace(s, u=s.u + np.einsum("kij,kj->ki", s.W, P)), closed, 0 * e)
        return P + last, rest if found is None else replace(rest, found=rest.found & found.found)

    def nowhere(self, s: LawState) -> str:
        """Which gap has no value at one of the states, as that of a wheel that lies flat; empty where all have."""
        wrong = np.argwhere(~np.isfinite(s.phi))
        if not len(wrong):
            return ""
        return (
            f"{self.names[int(wrong[0, 1])]!r} has no finite value at this state, as a wheel that lies flat, or a "
            "root or logarithm of a negative number; start elsewhere"
        )

    def why(self, found: Choice, q: np.ndarray, what: str) -> str:
        """Why no, or no single, set of modes fits one of the systems; empty where one does."""
        wrong = np.flatnonzero(~found.found | ~found.single)
        if not len(wrong):
            return ""
        k = int(wrong[0])
        friction = [self.names[r] for r in np.flatnonzero(self.table.of(Law.FRICTION))]
        names = ", ".join(map(repr, friction or self.names))
        told = "several" if found.found[k] else "no"
        state = np.array2string(np.asarray(q)[k], precision=6, separator=", ", max_line_width=1000)
        cause, remedy = "(Painleve's paradox, or jamming)", "lower the friction, or make the contact compliant"
        if not friction:
            cause, remedy = "(a motion or a loop drives against a stop or a lock)", "let it give way, or stop in time"
        return f"{told} {what} of the rows with laws fit {cause}, with {names} at q = {state}; {remedy}"


def law_rows_of(model: Model, formulation: Formulation) -> ModeLaws:
    """The rows with laws of a model with modes."""
    return _LAWS.find(model, formulation.key, lambda: ModeLaws(model.unbound, formulation))


def without_gain(s: LawState, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Impulses (k, m) between x, without restitution, and y, as near to y as leaves no gain of energy."""
    d = y - x
    Wx, Wd = (np.einsum("kij,kj->ki", s.W, a) for a in (x, d))
    start = np.sum(x * (s.u + Wx / 2), axis=1)
    slope, curve = np.sum(d * (s.u + Wx), axis=1), np.sum(d * Wd, axis=1) / 2
    allowed = np.maximum(start, 0) - start
    root = np.sqrt(np.maximum(slope**2 + 4 * curve * allowed, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.where(slope > 0, 2 * allowed / (slope + root), (root - slope) / (2 * curve))
    gains = slope + curve > allowed * (1 + 1e-12)
    return np.asarray(np.where(gains[:, None], x + np.clip(np.nan_to_num(part), 0.0, 1.0)[:, None] * d, y))
