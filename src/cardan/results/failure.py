"""Checks of the start of a run, and the reason why a run ended early, measured at its last good state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cardan.errors import CardanError, InputError
from cardan.formulation.spatial import SPATIAL
from cardan.functions.dynamics import forward_dynamics
from cardan.integrate.driver import RunSamples
from cardan.integrate.events import Event, trace_events
from cardan.integrate.integrators import Integrator, Request
from cardan.integrate.modes.events import users_events
from cardan.integrate.stepper import Outcome
from cardan.machines.cuda.place import Place
from cardan.model.model import Model
from cardan.model.table import outside
from cardan.structure.assemble import constraint_kernels, flipped, undefined
from cardan.structure.condition import take_as_closed
from cardan.structure.consistency import measures
from cardan.structure.kernels import equations_at, parameter_arguments, time_argument, tree_kernel
from cardan.structure.large import is_divided, row_residuals
from cardan.structure.projection import independence
from cardan.structure.rounding import warn_outside
from cardan.structure.row_sets import is_settled
from cardan.structure.rows import generic_configurations, kept_rows, row_matrix

MANY = 10_000  # systems whose starts are looked at by a kernel of their own first
CLOSED = 1e-8  # relative to the mechanism's size: a larger gap is not rounding
REGULAR = 0.05  # the same ratio where a position is certainly not singular
SINGULAR = 1e-6  # ratio of smallest to largest singular value of the constraints
# CasADi's operations that can make a function non-smooth.
NON_SMOOTH = ("OP_LT", "OP_LE", "OP_EQ", "OP_NE", "OP_NOT", "OP_AND", "OP_OR", "OP_FLOOR", "OP_CEIL", "OP_SIGN",
            "OP_FABS", "OP_FMIN", "OP_FMAX", "OP_FMOD", "OP_REMAINDER", "OP_IF_ELSE_ZERO")  # fmt: skip


def require_consistent(
    model: Model, q: np.ndarray, v: np.ndarray, t: float, threads: int | Place | None = None
) -> None:
    """Reject a start that leaves loops open or breaks velocity constraints; q (B, nq), v (B, nv)."""
    for at in model.quaternions:
        length = np.linalg.norm(q[:, at], axis=1)
        worst = int(np.argmax(np.abs(length - 1)))
        if abs(length[worst] - 1) > CLOSED:
            raise InputError(
                f"simulate: the quaternion q0[{at.start}:{at.stop}] of system {worst} has length {length[worst]:.6g}; "
                "it must be 1; normalise it"
            )
    if not model.has_rows:
        return
    # the mechanism's size, m: the largest distance of a joint from a body's origin
    reach = [float(np.linalg.norm(at.position)) for joint in model.joints for at in (joint.at, joint.child_at)]
    size = max([1e-3, *reach])
    if len(q) >= MANY and not is_divided(model, SPATIAL) and _is_clearly_consistent(model, q, v, t, size, threads):
        return
    with np.errstate(all="ignore"):
        phi, rate = row_residuals(model, q, v, t)
    nowhere = undefined(model, np.stack([phi, rate], axis=-1))
    if nowhere:
        raise InputError(f"simulate: at the start {nowhere}; start elsewhere")
    if not phi.size:  # a loop closed by a free joint
        return
    worst, row = map(int, np.unravel_index(int(np.argmax(np.abs(phi))), phi.shape))
    help = "give assemble=True, or q0, v0 = cd.assemble(model, q0, v0)"
    if not np.abs(phi[worst, row]) <= CLOSED * size:
        raise InputError(
            f"simulate: the start does not close {model.rows[row].owner}: a gap of {np.abs(phi[worst, row]):.3g} "
            f"(m or rad){_which(len(q), worst)}; {help}"
        )
    over = flipped(model, q, t)
    if over is not None:
        raise InputError(
            f"simulate: the start closes {over} with its directions opposite, turned by half a turn; {help}"
        )
    missing = np.abs(rate)
    speeds = np.maximum(1.0, np.abs(v).max(axis=1, initial=0.0))
    worst, row = map(int, np.unravel_index(int(np.argmax(missing / speeds[:, None])), missing.shape))
    if not missing[worst, row] <= CLOSED * size * speeds[worst]:
        raise InputError(
            f"simulate: the velocities at the start violate {model.rows[row].owner} by {missing[worst, row]:.3g} "
            f"(m/s or rad/s){_which(len(q), worst)}; {help}; or give rates of some joints by name, "
            f"v0={{{model.coordinate_names[0]!r}: 1.0}}, and the others follow"
        )
    if is_settled(model):
        _require_a_branch(model, q, v, t)


def _is_clearly_consistent(
    model: Model, q: np.ndarray, v: np.ndarray, t: float, size: float, threads: int | Place | None
) -> bool:
    """Whether the starts of many systems are far from all that is rejected, or warned of."""
    rows = kept_rows(model.unbound, SPATIAL) if is_settled(model) else []
    usual = np.maximum(_usual_lengths(model, rows), 1e-300) if rows else np.ones(0)
    with np.errstate(all="ignore"):
        found = measures(model, q, v, t, rows, usual, threads)
    limit = CLOSED * size / 2
    return bool(
        found["gap"].max() <= limit
        and found["steep"].max() <= 0
        and found["missing"].max() <= limit
        and found["volume"].min() > 2 * CLOSED
    )


def _require_a_branch(model: Model, q: np.ndarray, v: np.ndarray, t: float) -> None:
    """Reject a start at a bifurcation from which no motion goes on; warn of one at rest, where several do."""
    if is_divided(model, SPATIAL):
        still = np.abs(v).max(axis=1, initial=0.0) <= CLOSED
        if (independence(model, q, t, parameter_arguments(model)) < CLOSED)[still].any():
            warn_outside(
                "simulate: the start is a position where the constraints lose rank, at rest: which of the motions that "
                "branch there it takes is not determined by the equations; start beside it"
            )
        return
    rows = kept_rows(model.unbound, SPATIAL)
    usual = np.maximum(_usual_lengths(model, rows), 1e-300)
    J = np.asarray(constraint_kernels(model)[1](q, *time_argument(model, t))[0])[:, rows] / usual[:, None]
    # the determinant, which costs a fifth of the singular values, is small if one of them is
    doubtful = np.flatnonzero(~(np.linalg.det(J @ np.swapaxes(J, -1, -2)) > CLOSED))
    least = np.linalg.svd(J[doubtful], compute_uv=False)[:, -1] if rows and len(doubtful) else np.ones(len(doubtful))
    for i in map(int, doubtful[least < CLOSED]):
        one = model.one_of((i,)) if model.batch else model
        gamma = np.asarray(equations_at(one, SPATIAL, q[i], t, v[i])[3])[rows] / usual
        left = gamma - J[i] @ (np.linalg.pinv(J[i], rcond=CLOSED) @ gamma)
        speed = max(1.0, float(np.abs(v[i]).max(initial=0.0)))
        row = _weakest_row(one, q[i])[0]
        where = f"the start{_which(len(q), i)} is a position where the constraints lose rank ({row!r})"
        if np.abs(left).max() > 1e-6 * speed**2:
            raise InputError(
                f"simulate: {where}, and these velocities lead along none of the motions that branch there: no "
                f"acceleration satisfies the constraints (residual {np.abs(left).max():.3g}); start beside it"
            )
        if np.abs(v[i]).max(initial=0.0) <= CLOSED:
            warn_outside(
                f"simulate: {where}, at rest: which of the motions that branch there it takes is not determined by "
                "the equations; start beside it"
            )


def _usual_lengths(model: Model, rows: list[int]) -> np.ndarray:
    """The largest length of each of some rows at configurations that nothing singles out."""
    found = [np.linalg.norm(row_matrix(model.unbound, q)[rows], axis=1) for q in generic_configurations(model)]
    return np.asarray(np.max(found, axis=0))


def require_smooth_motions(model: Model, begin: float, end: float) -> None:
    """Reject a prescribed motion whose value or rate jumps between two times, s: that takes an infinite force."""
    moved = [c for c in model.couplings if c.depends_on_time]
    if not moved:
        return
    import casadi as ca

    non_smooth = {getattr(ca, name) for name in NON_SMOOTH}
    for coupling in moved:
        law = coupling.function
        if non_smooth.isdisjoint(law.instruction_id(k) for k in range(law.n_instructions())):
            continue
        t = ca.SX.sym("t")
        rows = ca.Function("g", [t], list(coupling.right_side(t)))
        for k, what in enumerate(("value", "rate")):
            found = _jump(rows, k, begin, end)
            if found is not None:
                raise InputError(
                    f"simulate: {coupling.owner}: its {what} jumps from {found[1]:.4g} to {found[2]:.4g} at t = "
                    f"{found[0]:.6g} s; that takes an infinite force: make it smooth, e.g. with tanh, or move the "
                    "joint with a drive"
                )


def _jump(rows: Any, k: int, begin: float, end: float) -> tuple[float, ...] | None:
    """Find a jump of result k of a function, whose derivative is result k + 1: time, value before, value after."""

    def law(times: np.ndarray) -> list[np.ndarray]:
        return [np.array(y).ravel() for y in rows(times[None])[k : k + 2]]

    t = np.linspace(begin, end, 2001)
    y, slope = law(t)
    defect = np.abs(np.diff(y) - np.diff(t) * (slope[1:] + slope[:-1]) / 2)
    for i in np.argsort(-np.nan_to_num(defect))[:5]:
        low, high = t[i], t[i + 1]
        while high - low > 1e-13 * max(abs(begin), abs(end)):
            middle = (low + high) / 2
            a, b, c = law(np.array([low, middle, high]))[0]
            low, high = (low, middle) if abs(b - a) > abs(c - b) else (middle, high)
        aside = 1e-9 * (end - begin)  # at a corner itself a derivative is undefined
        a, b = law(np.array([max(low - aside, begin), min(high + aside, end)]))[0]
        if abs(b - a) > 1e-4 * max(float(np.ptp(y)), 1e-12):
            return float(high), float(a), float(b)
    return None


LOOKED_AT = 2000  # samples at which values of events are looked at


def warn_of_undefined_events(model: Model, events: Sequence[Event], kept: RunSamples, p: np.ndarray | None) -> None:
    """Warn of events whose value is not a number at samples of a run: they cannot be met there."""
    own = users_events(events)
    if not own:
        return
    here = np.argwhere(np.isfinite(kept.q).all(axis=2) & (np.arange(kept.q.shape[1]) < kept.count[:, None]))
    i, k = here[:: -(-len(here) // LOOKED_AT) or 1].T
    arguments = [kept.t[i, k][None], kept.q[i, k].T, kept.v[i, k].T, np.zeros(model.nv)]
    if model.parameters:
        given = model.parameters.nominal if p is None else p
        given = np.broadcast_to(given, (len(kept.q), given.shape[-1]))
        arguments.append((given[i] if kept.p is None else kept.p[i, k]).T)
    wrong = np.argwhere(np.isnan(np.asarray(trace_events(model, own)(*arguments))))
    if len(wrong):
        event, sample = wrong[np.argmin(wrong[:, 1])]
        warn_outside(
            f"simulation of {model.name!r}: event {own[event].name!r} has no finite value at t = "
            f"{kept.t[i[sample], k[sample]]:.6g} s{_which(len(kept.q), int(i[sample]))}, and cannot be met there; "
            "guard it against roots and logarithms of negative numbers, and against division by zero"
        )


def why(
    model: Model, integrator: Integrator, request: Request, outcome: Outcome, message: str, t: float, q: np.ndarray,
    v: np.ndarray, tau: np.ndarray,
) -> str:  # fmt: skip
    """Why a run ended early, measured at the last good state (nq,), (nv,), and what to try."""
    if outcome is Outcome.TOO_MANY_STEPS and request.max_steps is not None:
        other = "loosen rtol and atol" if integrator.chooses_steps else f"take steps longer than {request.step:g} s"
        return f"{request.max_steps} steps were not enough; allow more with max_steps, or {other}"
    if outcome is Outcome.NO_JUMP or (outcome is Outcome.NOT_FINITE and message):
        return message
    with np.errstate(all="ignore"):
        cause = _not_finite(model, t, q, v, tau)
        if cause:
            return cause
        row, rank = _weakest_row(model, q)
        a = np.asarray(forward_dynamics(model, q, v, tau, t=t))
    if outcome is Outcome.DEAD_POINT and rank > REGULAR:
        return (
            "the velocities after a step miss the constraints by too much; take a shorter step, or a method that "
            f"chooses its steps (the constraints' smallest singular value, at {row!r}, is {rank:.2g} of the largest)"
        )
    if outcome is Outcome.DEAD_POINT:
        return (
            f"it is at a position where the constraints lose rank: at {row!r} their smallest singular value is "
            f"{rank:.2g} of the largest, and no step within the tolerances leads past it (a dead point, where the "
            "motion may stop, or a bifurcation, where it is not determined); take another rtol or step, start "
            "elsewhere, or change a length slightly"
        )
    if rank < SINGULAR:
        return (
            f"the constraints lose rank there: at {row!r} their smallest singular value is {rank:.2g} of the largest "
            "(a dead point, where the motion may stop or branch); start elsewhere, or change a length slightly"
        )
    k = int(np.argmax(np.abs(a)))
    largest = f"the largest acceleration is {a[k]:.3g} (rad/s^2 or m/s^2), of joint {model.coordinate_names[k]!r}"
    if row:
        largest += (
            f"; the constraints' smallest singular value, at {row!r}, is {rank:.2g} of the largest (0 at a dead point)"
        )
    said = f" ({message.strip()})" if message.strip() else ""
    if outcome is Outcome.OPEN_LOOP:
        return (
            f"a loop could not be closed again after a step{said}; {largest}; take shorter steps, a tighter rtol, or "
            "method='gear'"
        )
    if outcome is Outcome.NEWTON:
        return f"Newton's method did not converge{said}; {largest}; take a shorter step"
    if outcome in (Outcome.SOLVER_FAILED, Outcome.TOO_MANY_STEPS):
        return f"the solver failed{said}; {largest}; loosen rtol and atol, or start elsewhere"
    if outcome is Outcome.NOT_FINITE:
        ended = [f"; {end}" for force in model.forces if (end := outside(force.function))][:1]
        return f"the next step is not a finite number{said}; {largest}; take shorter steps{''.join(ended)}"
    hint = "if the mechanism is stiff (springs or dampers far faster than its motion), method='gear' takes longer steps"
    stiff = "" if integrator.for_stiff else f"; {hint}"
    return (
        f"the step that rtol={request.rtol:g} requires is below rounding{said}; {largest}{stiff}; a force that jumps "
        "needs its time in breaks, or a smooth transition"
    )


def _not_finite(model: Model, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> str:
    """Name the force element, or else the joint, whose value is not finite at the state or just after it."""
    model = model.settled()  # places of free numbers would not fit where an element is left out
    plus = tree_kernel(model, "plus")
    for ahead in (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1):
        there = np.asarray(plus(q, ahead * v))
        try:
            a = np.asarray(forward_dynamics(model, there, v, tau, t=t + ahead))
        except CardanError as error:  # rows with laws have no answer there
            return str(error).partition(": ")[2]
        if np.isfinite(a).all():
            continue
        when = "at this state" if ahead == 0 else f"{ahead:g} s after it"
        for force in model.forces:
            try:
                rest = replace(model, forces=tuple(f for f in model.forces if f is not force))
                take_as_closed(rest)
                fine = np.isfinite(forward_dynamics(rest, there, v, tau, t=t + ahead)).all()
            except CardanError:
                continue
            if fine:
                fix = (
                    outside(force.function)
                    or outside(force.graph)
                    or ("guard it against division by zero, and against roots and logarithms of negative numbers")
                )
                return f"{force.owner} does not return a finite number {when}; {fix}"
        rows: tuple[Any, ...] = (*model.couplings, *model.constraints)
        for row in rows:
            if outside(row.function):
                return f"{row.owner} may not be a finite number {when}: {outside(row.function)}"
        nowhere = undefined(model, np.stack(row_residuals(model, there, v, t + ahead), axis=-1)) if rows else ""
        if nowhere:
            return f"{when}, {nowhere}"
        k = int(np.argmax(~np.isfinite(a)))
        return (
            f"the acceleration of joint {model.coordinate_names[k]!r} is not a finite number {when}; look for a "
            "singular position, an unbounded force, or a body without inertia"
        )
    return ""


def _weakest_row(model: Model, q: np.ndarray) -> tuple[str, float]:
    """The constraint nearest to depending on the others, and the ratio of smallest to largest singular value."""
    rows = kept_rows(model.unbound, SPATIAL) if model.has_rows else []
    if not rows:
        return "", 1.0
    # rows by the length that they usually have: one that vanishes at q shows
    usual = np.maximum(_usual_lengths(model, rows), 1e-300)
    U, s, _ = np.linalg.svd(row_matrix(model, q)[rows] / usual[:, None], full_matrices=False)
    return model.rows.names[rows[int(np.argmax(np.abs(U[:, -1])))]], float(s[-1] / s[0])


def _which(systems: int, worst: int) -> str:
    return f" in system {worst}" if systems > 1 else ""
