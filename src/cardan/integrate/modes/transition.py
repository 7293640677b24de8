"""What happens to rows with laws at an event: impacts first, then the mode that each row takes (`structure.law_state`).

Of an approach too slow for its bounce to be told from rounding there is no restitution, and gaps that it would open as
slowly stay closed: a block that rocks from edge to edge comes to rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.integrate.modes.slopes import Impulses, law_slopes
from cardan.integrate.transition import Jump, Moment, Transition, unchanged
from cardan.model.model import Model
from cardan.model.row import Law
from cardan.structure.law_choice import CLOSED
from cardan.structure.law_state import NEWTON, SEQUENTIAL, GapError, LawState, law_rows_of

PART_OF_STEP = 1.0  # friction in two directions that stops within this part of a fixed step is at rest
VIOLATED = 1e-7  # m or rad: a state that is this far inside a stop is refused


class LawTransition(Transition):
    """Impacts and changes of modes of a run of a model with modes, whose drives are `tau` (B, nv).

    `rule` is the law of impacts, `step` the length of fixed steps, s, or None, `error` that of gaps.
    """

    def __init__(
        self, model: Model, formulation: Formulation, tau: np.ndarray, rule: str = NEWTON, step: float | None = None,
        error: GapError | None = None,
    ) -> None:  # fmt: skip
        self.laws, self.tau, self.rule = law_rows_of(model, formulation), tau, rule
        self.error = error or GapError()
        self.time = PART_OF_STEP * (step or 0.0)

    def apply(self, at: Moment) -> Jump:
        """The jump of the systems that are at the moment."""
        return self._jump(at, 1.0)[0]

    def limit(self, at: Moment) -> Jump:
        """Where impacts accumulate the rows close."""
        return self._jump(at, 0.0)[0]

    def slopes(self, at: Moment, jump: Jump, limited: bool) -> np.ndarray:
        """Of the impacts and of what stops rows that close, one after the other; modes stay as they are."""
        D, nv = unchanged(at), at.v.shape[1]
        D[:, [nv + k for what in (self.laws.mode, self.laws.direction) for k in what if k >= 0]] = 0.0
        for step in self._jump(at, 0.0 if limited else 1.0)[1]:
            own = D[step.systems]
            part = law_slopes(self.laws, at, step, self.tau[at.systems][step.systems])
            direct = part.copy()
            direct[:, :, 1 + nv : 1 + 2 * nv] = 0.0
            own[:, :nv] = part[:, :, 1 + nv : 1 + 2 * nv] @ own[:, :nv] + direct
            D[step.systems] = own
        return D

    def _jump(self, at: Moment, bounce: float) -> tuple[Jump, list[Impulses]]:
        laws, v = self.laws, at.v.copy()
        tau, closed, met = self.tau[at.systems], laws.switched(at.p), self._met(at)
        every = np.arange(len(v))
        s = laws.reached(laws.state(at.t, at.q, v, tau, at.p), met)
        inside = laws.table.of(Law.UNILATERAL) & (s.phi < -VIOLATED) & ~met
        hit, failed = laws.hit(s, closed), np.asarray(inside.any(axis=1) | ~np.isfinite(s.phi).all(axis=1))
        message = laws.nowhere(s) or self._violated(s, inside)
        impulse, steps = np.zeros_like(s.u), []
        if hit.any():
            part = s.of(hit)
            e = part.restitution if self.rule == SEQUENTIAL else laws.bouncing(part, at.q[hit], self.error)
            P, found = laws.impact(part, closed[hit], bounce * e, self.rule)
            steps.append(Impulses(every[hit], v[hit], part, P, found, bounce * e, self.rule))
            v[hit] += np.einsum("kij,kj->ki", part.Y, P)
            failed[hit] |= ~found.found
            message, impulse[hit] = message or laws.why(found, at.q[hit], "impulses"), P
            s = laws.reached(laws.state(at.t, at.q, v, tau, at.p), met)
            rest = laws.settling(part, s.of(hit), at.q[hit], self.error, not bounce)
            if rest.any():
                P = _stopping(s.of(hit), rest)
                steps.append(Impulses.stopping(every[hit], v[hit], s.of(hit), P, rest))
                v[hit] += np.einsum("kij,kj->ki", part.Y, P)
                s = laws.reached(laws.state(at.t, at.q, v, tau, at.p), met)
        found = laws.chosen(s, closed, self.time, laws.ending(s, v, at.p, met))
        P = _stopping(s, found.mode == CLOSED)
        steps.append(Impulses.stopping(every, v.copy(), s, P, found.mode == CLOSED))
        v += np.einsum("kij,kj->ki", s.Y, P)
        torn = laws.torn(s, found, closed)
        message = message or laws.why(found, at.q, "forces") or laws.why_torn(s, found, torn)
        wrong = failed | np.logical_not(found.found & found.single) | torn.any(axis=1)
        return Jump(v, laws.with_modes(at.p, found, s, at.q, self.time), wrong, message, impulse), steps

    def _met(self, at: Moment) -> np.ndarray:
        """Rows (k, m) whose events are met: theirs are the last."""
        m = len(self.laws.table)
        return at.crossed[:, -m:] if at.crossed.shape[1] else np.zeros((len(at.t), m), dtype=bool)

    def _violated(self, s: LawState, inside: np.ndarray) -> str:
        """Which gap is negative; empty if none is."""
        if not inside.any():
            return ""
        i, r = (int(x[0]) for x in np.nonzero(inside))
        row = self.laws.model.lawful_rows[r]
        return (
            f"{row.name!r} is violated: its gap is {s.phi[i, r]:.6g} {row.unit}, and must not be negative; start where "
            "it is open, or make it compliant"
        )


def _stopping(s: LawState, rows: np.ndarray) -> np.ndarray:
    """Impulses (k, m) that bring rates of some rows (k, m), zero up to a tolerance, to zero."""
    u, W = np.where(rows, s.u, 0.0), np.where(rows[:, :, None] & rows[:, None, :], s.W, 0.0)
    return np.asarray(-np.einsum("kij,kj->ki", np.linalg.pinv(W, rcond=1e-9, hermitian=True), u))


class Then(Transition):
    """A transition, then what rows with laws make of it."""

    def __init__(self, first: Transition, laws: LawTransition) -> None:
        self.first, self.laws = first, laws

    def apply(self, at: Moment) -> Jump:
        """Both, one after the other."""
        return self._followed(at, self.first.apply(at))

    def limit(self, at: Moment) -> Jump | None:
        """Both, where events accumulate; None if the first has no continuation."""
        jump = self.first.limit(at)
        return None if jump is None else self._followed(at, jump)

    def approach(self, at: Moment, v: np.ndarray) -> np.ndarray | None:
        """That of the event."""
        return self.first.approach(at, v)

    def _followed(self, at: Moment, jump: Jump) -> Jump:
        after = self.laws.apply(replace(at, v=jump.v, p=jump.p))
        failed = after.failed if jump.failed is None else jump.failed | np.asarray(after.failed)
        return Jump(after.v, after.p, failed, jump.message or after.message, after.impulse)

    def slopes(self, at: Moment, jump: Jump, limited: bool) -> np.ndarray:
        """Those of one after the other."""
        middle = self.first.limit(at) if limited else self.first.apply(at)
        assert middle is not None
        own, nv = self.first.slopes(at, middle, limited), at.v.shape[1]
        more = self.laws.slopes(replace(at, v=middle.v, p=middle.p), jump, False)
        found = more[:, :, 1 + nv :] @ own  # by the rates and parameters between them
        found[:, :, : 1 + nv] += more[:, :, : 1 + nv]
        return np.asarray(found)
