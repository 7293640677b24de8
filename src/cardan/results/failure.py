"""Checks before a run (consistent start, smooth motions), and the diagnosis of a run that ended early."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cardan.errors import CardanError, InputError
from cardan.formulation.dynamics import row_count
from cardan.functions.dynamics import forward_dynamics
from cardan.functions.general import time_argument
from cardan.integrate.integrators import Request, chooses_steps
from cardan.integrate.stepper import Outcome
from cardan.model.model import Model
from cardan.structure.assemble import constraint_kernels
from cardan.structure.rows import kept_rows, row_names, scaled_rows

CLOSED = 1e-8  # largest gap, relative to the size of the mechanism, that counts as rounding
SINGULAR = 1e-6  # smallest singular value of the constraints, relative to the largest, below which rank is lost
# CasADi operations that can make a function non-smooth.
NON_SMOOTH = ("OP_LT", "OP_LE", "OP_EQ", "OP_NE", "OP_NOT", "OP_AND", "OP_OR", "OP_FLOOR", "OP_CEIL", "OP_SIGN",
              "OP_FABS", "OP_FMIN", "OP_FMAX", "OP_FMOD", "OP_REMAINDER", "OP_IF_ELSE_ZERO")  # fmt: skip


def require_consistent(model: Model, q: np.ndarray, v: np.ndarray, t: float) -> None:
    """Refuse a start that violates position or velocity constraints; q (B, nq), v (B, nv)."""
    for at in model.quaternions:
        length = np.linalg.norm(q[:, at], axis=1)
        worst = int(np.argmax(np.abs(length - 1)))
        if abs(length[worst] - 1) > CLOSED:
            raise InputError(
                f"simulate: the quaternion q0[{at.start}:{at.stop}] of system {worst} has length {length[worst]:.6g}; "
                "it must be 1; normalise it"
            )
    if not row_count(model):
        return
    size = extent(model)
    phi, _ = constraint_kernels(model)[0](q, *time_argument(model, t))
    worst, row = map(int, np.unravel_index(int(np.argmax(np.abs(phi))), phi.shape))
    help = "give assemble=True, or q0, v0 = cd.assemble(model, q0, v0)"
    if not np.abs(phi[worst, row]) <= CLOSED * size:
        raise InputError(
            f"simulate: the start does not close {_owner(model, row)}: a gap of {np.abs(phi[worst, row]):.3g} "
            f"(m or rad){_which(len(q), worst)}; {help}"
        )
    J, beta = constraint_kernels(model)[1](q, *time_argument(model, t))
    missing = np.abs((J @ v[..., None])[..., 0] - beta)
    speeds = np.maximum(1.0, np.abs(v).max(axis=1, initial=0.0))
    worst, row = map(int, np.unravel_index(int(np.argmax(missing / speeds[:, None])), missing.shape))
    if not missing[worst, row] <= CLOSED * size * speeds[worst]:
        raise InputError(
            f"simulate: the velocities at the start violate {_owner(model, row)} by {missing[worst, row]:.3g} "
            f"(m/s or rad/s){_which(len(q), worst)}; {help}"
        )


def require_smooth_motions(model: Model, begin: float, end: float) -> None:
    """Refuse a prescribed motion whose value or rate jumps between two times, s: it needs an infinite force."""
    moved = [c for c in model.couplings if c.function is not None]
    if not moved:
        return
    import casadi as ca

    non_smooth = {getattr(ca, name) for name in NON_SMOOTH}
    for coupling in moved:
        law = coupling.function
        if non_smooth.isdisjoint(law.instruction_id(k) for k in range(law.n_instructions())):
            continue
        t = ca.SX.sym("t")
        rows = ca.Function("g", [t], list(coupling.rows(t)))
        for k, what in enumerate(("value", "rate")):
            found = _jump(rows, k, begin, end)
            if found is not None:
                raise InputError(
                    f"simulate: {coupling.owner}: its {what} jumps from {found[1]:.4g} to {found[2]:.4g} at t = "
                    f"{found[0]:.6g} s, which needs an infinite force; smooth the jump, for example with tanh, or "
                    "move the joint with a drive"
                )


def _jump(rows: Any, k: int, begin: float, end: float) -> tuple[float, ...] | None:
    """The first jump found in result k of a function, whose result k + 1 is its derivative.

    Returns the time and the values before and after the jump, or None.
    """

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
        aside = 1e-9 * (end - begin)  # at the jump itself a derivative is undefined
        a, b = law(np.array([max(low - aside, begin), min(high + aside, end)]))[0]
        if abs(b - a) > 1e-4 * max(float(np.ptp(y)), 1e-12):
            return float(high), float(a), float(b)
    return None


def extent(model: Model) -> float:
    """Size of the mechanism, m: the largest distance of a joint from a body's origin, at least 1e-3."""
    reach = [float(np.linalg.norm(at.position)) for joint in model.joints for at in (joint.at, joint.child_at)]
    return max([1e-3, *reach])


def why(
    model: Model,
    request: Request,
    outcome: Outcome,
    words: str,
    t: float,
    q: np.ndarray,
    v: np.ndarray,
    tau: np.ndarray,
) -> str:
    """Why a run ended early, measured at its last valid state (nq,), (nv,), and what to try."""
    if outcome is Outcome.STEPS and request.most is not None:
        other = "loosen rtol and atol" if chooses_steps(request.method) else f"steps longer than {request.step:g} s"
        return f"{request.most} steps were not enough; allow more with most_steps, or {other}"
    with np.errstate(all="ignore"):
        cause = _not_finite(model, t, q, v, tau)
        if cause:
            return cause
        row, rank = _weakest_row(model, q)
        a = np.asarray(forward_dynamics(model, q, v, tau, t=t))
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
    said = f" ({words.strip()})" if words.strip() else ""
    if outcome is Outcome.OPEN_LOOP:
        return (
            f"a loop could not be closed again after a step{said}; {largest}; take shorter steps, a tighter rtol, or "
            "method='gear'"
        )
    if outcome is Outcome.NEWTON:
        return f"Newton's method did not converge{said}; {largest}; take a shorter step"
    if outcome in (Outcome.SOLVER, Outcome.STEPS):
        return f"the solver gave up{said}; {largest}; loosen rtol and atol, or start elsewhere"
    if outcome is Outcome.NOT_A_NUMBER:
        return f"the next step is not a finite number{said}; {largest}; take shorter steps"
    stiff = "" if request.method == "gear" else "; if the mechanism is stiff (springs or dampers far faster than its "
    stiff += "" if request.method == "gear" else "motion), method='gear' takes longer steps"
    return (
        f"the step size that rtol={request.rtol:g} requires is below rounding{said}; {largest}{stiff}; a force that "
        "jumps needs its time in breaks, or a smooth transition"
    )


def _not_finite(model: Model, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> str:
    """Name the force element, or else the joint, whose value is not finite at the state or just after it."""
    from cardan.structure.kernels import kernel_of

    plus = kernel_of(model, "plus")
    for ahead in (0.0, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1):
        there = np.asarray(plus(q, ahead * v))
        a = np.asarray(forward_dynamics(model, there, v, tau, t=t + ahead))
        if np.isfinite(a).all():
            continue
        when = "at this state" if ahead == 0 else f"{ahead:g} s after it"
        for force in model.forces:
            try:
                rest = replace(model, forces=tuple(f for f in model.forces if f is not force), kernels={"closed": True})
                fine = np.isfinite(forward_dynamics(rest, there, v, tau, t=t + ahead)).all()
            except CardanError:
                continue
            if fine:
                return (
                    f"{force.owner} does not return a finite number {when}; guard it against division by zero, and "
                    "against roots and logarithms of negative numbers"
                )
        k = int(np.argmax(~np.isfinite(a)))
        return (
            f"the acceleration of joint {model.coordinate_names[k]!r} is not a finite number {when}; look for a "
            "singular position, an unbounded force, or a body without inertia"
        )
    return ""


def _weakest_row(model: Model, q: np.ndarray) -> tuple[str, float]:
    """The constraint row nearest to linear dependence, and the smallest singular value relative to the largest."""
    rows = kept_rows(model.unbound, "spatial") if row_count(model) else []
    if not rows:
        return "", 1.0
    U, s, _ = np.linalg.svd(scaled_rows(model, q)[rows], full_matrices=False)
    return row_names(model)[rows[int(np.argmax(np.abs(U[:, -1])))]], float(s[-1] / s[0])


def _owner(model: Model, row: int) -> str:
    """The cut joint or coupling that owns a row of the residual."""
    for j in model.cuts:
        joint = model.joints[j]
        if row < joint.kind.freedoms_removed:
            return f"joint {joint.name!r}"
        row -= joint.kind.freedoms_removed
    return model.couplings[row].owner


def _which(systems: int, worst: int) -> str:
    return f" in system {worst}" if systems > 1 else ""
