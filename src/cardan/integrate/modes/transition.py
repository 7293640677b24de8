"""What happens to rows with laws at an event: impacts first, then the mode that each row takes.

    impact      u+ = u + W P      0 <= P, u+ + e min(u, 0) >= 0, one of them zero, for gaps that are closed
    friction    |P_t| <= mu P_n, also of joints whose friction depends on their reaction
    then        the modes by accelerations (`integrate.modes.choice`)

Restitution is Newton's. Of an approach slower than `RESTS` there is none. Where friction and restitution together would
raise the kinetic energy (Kane's paradox), all restitutions of that impact are lowered until it does not grow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.formulation.modes import REACTION, friction_rows, law_problem
from cardan.integrate.modes.choice import CLOSED, Choice, LawProblem, LawTable, choose
from cardan.integrate.transition import Jump, Moment, Transition
from cardan.model.force import Coupling
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.modes import DIRECTION, MODE, places
from cardan.model.row import Law
from cardan.structure.kernels import compile_quantity, time_argument
from cardan.structure.rows import kept_rows

CLOSES = 1e-9  # m or rad: a gap up to this is closed
RESTS = 1e-10  # m/s or rad/s: a rate up to this is zero
VIOLATED = 1e-7  # m or rad: a start that is this far inside a stop is refused
HALVINGS = 30
EPS = float(np.finfo(float).eps)
_KERNELS: Slot[str, Any] = Slot("what the choice of modes needs, by formulation")


@dataclass(frozen=True)
class LawState:
    """What the rows of k systems are at a state: see `formulation.modes.law_problem`."""

    phi: np.ndarray
    u: np.ndarray
    b: np.ndarray
    W: np.ndarray
    Y: np.ndarray
    bound: np.ndarray
    reaction: np.ndarray
    restitution: np.ndarray


class ModeLaws:
    """The rows with laws of a model with modes, in a formulation, at states."""

    def __init__(self, model: Model, formulation: Formulation) -> None:
        self.model, self.formulation = model, formulation
        laws = tuple(law for element in model.laws for law in element.laws)
        normal, disc = [-1] * len(laws), [-1] * len(laws)
        for f in friction_rows(model):
            normal[f.row] = -1 if f.normal is None else f.normal
            disc[f.row] = -1 if f.other is None else f.other
        self.table = LawTable(laws, tuple(normal), tuple(disc))
        self.mode, self.direction = places(model, MODE), places(model, DIRECTION)
        self.names = [row.name for row in model.lawful_rows]

    def state(self, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray, p: np.ndarray) -> LawState:
        """What the rows are at states (k, ...)."""
        model, formulation = self.model, self.formulation
        rows = kept_rows(model, formulation) if model.has_rows or not formulation.in_tree else []

        def make() -> Any:
            return compile_quantity(model.unbound, law_problem(model, formulation, rows), formulation.facts(model))

        kernel = _KERNELS.find(model, formulation.key, make).at_values(np.ascontiguousarray(p))
        found = [np.array(x) for x in kernel(q, v, tau, *time_argument(model, t))]
        m, k = len(self.table), len(q)
        found[6] = found[6].reshape(k, m, m + 1, REACTION).swapaxes(2, 3)
        return LawState(*found)

    def rounding(self, q: np.ndarray) -> np.ndarray:
        """Rounding (k, m) of the gaps of rows; none of a joint's own coordinate."""
        rows = [row for element in self.model.laws for row in element.rows]
        composed = np.array([not isinstance(row, Coupling) for row in rows])
        return np.where(composed, 2 * EPS * np.maximum(np.abs(q).max(axis=1, initial=1.0), 1.0)[:, None], 0.0)

    def bouncing(self, s: LawState, q: np.ndarray) -> np.ndarray:
        """Restitutions (k, m): none where a bounce would be lost in rounding."""
        least = np.maximum(RESTS, np.sqrt(200 * np.abs(s.b) * self.rounding(q)))
        return np.where(s.u < -least, s.restitution, 0.0)

    def accelerating(self, s: LawState, closed: np.ndarray) -> LawProblem:
        """The problem of accelerations; `closed` (k, m) are the switched rows that are on."""
        u, friction = s.u, self.table.of(Law.FRICTION)
        contact = np.where(self.table.of(Law.UNILATERAL), (s.phi <= CLOSES) & (u <= RESTS), closed)
        speed, direction = np.abs(u), np.sign(u)
        for r, other in enumerate(self.table.disc):
            if other >= 0:
                speed[:, r] = np.hypot(u[:, r], u[:, other])
                direction[:, r] = u[:, r] / np.maximum(speed[:, r], 1e-300)
        rests = friction & (speed <= RESTS)
        touching = np.ones_like(rests)
        for r, n in enumerate(self.table.normal):
            if n >= 0:
                touching[:, r] = contact[:, n]
        direction = np.where(friction & ~rests & touching, direction, 0.0)
        rests &= touching
        return LawProblem(
            s.b, s.W, s.bound[..., 0], s.bound[..., 1], s.bound[..., 2], s.bound[..., 3], s.reaction, contact, rests,
            direction,
        )  # fmt: skip

    def impact(self, s: LawState, closed: np.ndarray, restitution: np.ndarray) -> tuple[np.ndarray, Choice]:
        """Impulses (k, m) that rates of rows need, and how they were chosen."""
        friction = self.table.of(Law.FRICTION)
        contact = np.where(self.table.of(Law.UNILATERAL), s.phi <= CLOSES, closed)
        impulsive = np.zeros(s.u.shape, dtype=bool)
        for r, n in enumerate(self.table.normal):
            if friction[r]:
                impulsive[:, r] = contact[:, n] if n >= 0 else s.reaction[:, r].any(axis=(1, 2))
        none, mu = np.zeros_like(s.u), np.where(impulsive, s.bound[..., 1], 0.0)
        reaction = s.reaction.copy()
        reaction[..., 0] = 0.0
        problem = LawProblem(s.u, s.W, none, mu, none, mu, reaction, contact, impulsive, none)
        bounce = np.where(self.table.of(Law.UNILATERAL) & (s.u < 0), restitution * s.u, 0.0)
        low, high = np.zeros(len(s.u)), np.ones(len(s.u))
        found = choose(self.table, replace(problem, b=s.u + bounce))
        if not bounce.any() or not impulsive.any():
            return found.x, found
        for _ in range(HALVINGS):  # lower restitutions where the energy grew
            x = found.x
            gain = np.einsum("ki,ki->k", x, 2 * s.u + np.einsum("kij,kj->ki", s.W, x)) / 2
            grows = gain > 1e-12 * np.abs(np.einsum("ki,ki->k", x, s.u))
            if not grows.any() and (low == 0).all():
                break
            high, low = np.where(grows, (low + high) / 2, high), np.where(grows, low, np.minimum(high, 1.0))
            if not grows.any():
                break
            found = choose(self.table, replace(problem, b=s.u + high[:, None] * bounce))
        return found.x, found


class LawTransition(Transition):
    """Impacts and changes of modes of a run whose drives are `tau` (B, nv) or (nv,)."""

    def __init__(self, model: Model, formulation: Formulation, tau: np.ndarray) -> None:
        self.laws, self.tau = ModeLaws(model, formulation), tau
        self.impulses: list[tuple[int, float, np.ndarray]] = []

    def apply(self, at: Moment) -> Jump:
        """The jump of the systems that are at the moment."""
        return self._jump(at, 1.0)

    def limit(self, at: Moment) -> Jump:
        """Where impacts accumulate the rows close."""
        return self._jump(at, 0.0)

    def _jump(self, at: Moment, bounce: float) -> Jump:
        laws, table = self.laws, self.laws.table
        tau = np.broadcast_to(self.tau, (len(self.tau) if self.tau.ndim > 1 else 1, self.tau.shape[-1]))
        tau = tau[at.systems] if len(tau) > 1 else np.broadcast_to(tau[0], (len(at.t), tau.shape[1]))
        p, v = at.p.copy(), at.v.copy()
        before = p[:, laws.mode]
        s = laws.state(at.t, at.q, v, tau, p)
        inside = table.of(Law.UNILATERAL) & (s.phi < -VIOLATED)
        if inside.any():
            return self._violated(at, s, inside)
        on = table.of(Law.SWITCHED) & (before > 0.5)
        hits = (table.of(Law.UNILATERAL) & (s.phi <= CLOSES) & (s.u < -RESTS / 10)) | (on & (np.abs(s.u) > RESTS / 10))
        hit = hits.any(axis=1)
        failed, message = np.zeros(len(v), dtype=bool), ""
        if hit.any():
            part = LawState(*(x[hit] for x in vars(s).values()))
            P, found = laws.impact(part, on[hit], bounce * laws.bouncing(part, at.q[hit]))
            v[hit] += np.einsum("kij,kj->ki", part.Y, P)
            failed[hit], message = ~found.found, self._why(at, np.flatnonzero(hit), found, "impulses")
            for i, own in zip(np.flatnonzero(hit), P, strict=True):
                self.impulses.append((int(at.systems[i]), float(at.t[i]), own))
            s = laws.state(at.t, at.q, v, tau, p)
        problem = laws.accelerating(s, on)
        found = choose(table, problem)
        wrong = ~found.found | ~found.single
        if not message:
            message = self._why(at, np.arange(len(v)), found, "forces")
        p[:, laws.mode] = np.where(found.found[:, None], found.mode, before)
        below = np.where(s.phi <= CLOSES, np.maximum(-s.phi, 0.0), 0.0) + laws.rounding(at.q)
        p[:, laws.direction] = np.where(table.of(Law.UNILATERAL), below, found.direction)
        v += np.einsum("kij,kj->ki", s.Y, _stopping(s, found.mode == CLOSED))
        return Jump(v, p, failed | wrong, message)

    def _violated(self, at: Moment, s: LawState, inside: np.ndarray) -> Jump:
        i, r = (int(x[0]) for x in np.nonzero(inside))
        row = self.laws.model.lawful_rows[r]
        why = f"{row.name} is violated: its gap is {s.phi[i, r]:.6g} {row.unit}, and must not be negative"
        return Jump(at.v, at.p, inside.any(axis=1), why)

    def _why(self, at: Moment, systems: np.ndarray, found: Choice, what: str) -> str:
        """Why no, or no single, set of modes fits; empty where one does."""
        for none, i in [(True, i) for i in np.flatnonzero(~found.found)] + [
            (False, i) for i in np.flatnonzero(~found.single)
        ]:
            table, k = self.laws.table, systems[i]
            friction = [self.laws.names[r] for r in np.flatnonzero(table.of(Law.FRICTION))]
            names = ", ".join(map(repr, friction or self.laws.names))
            told = f"no {what} of the rows with laws fit" if none else f"several {what} of the rows with laws fit"
            state = np.array2string(at.q[k], precision=6, separator=", ")
            return (
                f"{told} (Painleve's paradox, or jamming) with friction {names} at q = {state}; lower the coefficient "
                "of friction, or make the contact compliant"
            )
        return ""


def _stopping(s: LawState, rows: np.ndarray) -> np.ndarray:
    """Impulses (k, m) that bring rates of some rows (k, m), zero up to a tolerance, to zero."""
    u, W = np.where(rows, s.u, 0.0), np.where(rows[:, :, None] & rows[:, None, :], s.W, 0.0)
    return np.asarray(-np.einsum("kij,kj->ki", np.linalg.pinv(W, rcond=1e-9, hermitian=True), u))


__all__ = ["CLOSED", "LawTransition", "ModeLaws"]
