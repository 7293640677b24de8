"""Ready-made laws for `Mechanism.controller`: PID, state space, state feedback, motors.

Each says which states and inputs it has for some joints and an interval, and writes its law for symbols. Sampled, with
an interval `T`, the states have next values in place of rates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import ModelError, nearest
from cardan.model.joint import Kind
from cardan.model.pose import numbers
from cardan.model.values import counted

Law = Callable[[Any], Any]
Starts = Mapping[str, Any]
Written = tuple[Law, Starts, Starts]
"""A law of an instant, its states and its inputs with their start values."""


class ControlLaw(ABC):
    """A law for joints that are named when it is used."""

    def outputs(self, owner: str) -> int:
        """How many numbers it gives as a signal, where it acts on nothing."""
        raise ModelError(f"{owner}: {type(self).__name__} acts on joints; name one")

    @abstractmethod
    def over(self, owner: str, joints: Sequence[str], kinds: Sequence[Kind], every: float) -> Written:
        """The law of an instant for these joints, and its states and inputs with their start values."""


def started(owner: str, own: Starts, given: Starts | None) -> Starts:
    """States or inputs of a ready-made law with the start values given."""
    for name, value in (given or {}).items():
        if name not in own:
            raise ModelError(f"{owner}: its law has no state or input {name!r} there{nearest(name, list(own))}")
        if np.shape(value) not in ((), np.shape(own[name])):
            raise ModelError(f"{owner}: {name} must be {np.size(own[name])} numbers, got {value!r}")
    return {name: np.broadcast_to((given or {}).get(name, x), np.shape(x)) for name, x in own.items()}


def _coordinates(s: Any, joints: Sequence[str]) -> tuple[Any, Any]:
    """Coordinates and rates of some joints, as columns."""
    import casadi as ca

    return ca.vertcat(*(s.coordinate(j) for j in joints)), ca.vertcat(*(s.rate(j) for j in joints))


def _has_lengths(owner: str, what: str, joints: Sequence[str], kinds: Sequence[Kind]) -> int:
    """How many coordinates the joints have; reject quaternions, which have no difference to a reference."""
    for joint, kind in zip(joints, kinds, strict=True):
        if kind.nq != kind.nv:
            raise ModelError(f"{owner}: joint {joint!r} ({kind.name}) has a quaternion, which {what} does not regulate")
    return sum(kind.nv for kind in kinds)


def _signal(sees: Any) -> Any:
    """What a law sees as a function of an instant: one that was given, or the signal of that name."""
    return (lambda s: s[sees]) if isinstance(sees, str) else sees


def _gain(owner: str, what: str, value: Any, n: int) -> np.ndarray:
    """A number for each of n rates, not negative."""
    found = np.broadcast_to(numbers(owner, what, value, (n,) if np.ndim(value) else ()), n).astype(float)
    if (found < 0).any():
        raise ModelError(f"{owner}: {what} must not be negative, got {value!r}")
    return found


@dataclass(frozen=True)
class PID(ControlLaw):
    """Proportional, integral and derivative action on the coordinates of joints.

        u = kp e + x + kd edot        e = reference - q,   x' = ki e,   edot = reference_rate - v

    Inputs are "reference" (rad, m) and "reference_rate" (rad/s, m/s); the state is "integral", `x`, N m or N. Gains are
    numbers, or one for each rate. With `sees` it regulates that in place of the coordinates; the derivative needs a
    filter then, and units follow.

    Args:
        kp: N m/rad or N/m.
        ki: N m/(rad s) or N/(m s).
        kd: N m s/rad or N s/m.
        filter: s; the derivative is then that of the error through `s / (filter s + 1)`, with the state "filtered", and
            no rate is measured. A sampled PID takes the difference of the last two errors instead of it.
        limits: largest effort, or the least and the largest; the effort is kept within.
        tracking: s; past the limits the integral follows the effort with this time constant (back-calculation), so that
            it does not wind up; by default kp / ki.
        sees: what is regulated, a number for each effort: a function of an instant, or the name of a signal.

    """

    kp: Any = 0.0
    ki: Any = 0.0
    kd: Any = 0.0
    filter: float | None = None
    limits: Any = None
    tracking: float | None = None
    sees: Callable[[Any], Any] | str | None = None

    def outputs(self, owner: str) -> int:
        """As many as there are gains."""
        if self.sees is None:
            raise ModelError(f"{owner}: a PID without joints regulates what it sees; give sees=function of an instant")
        return max(np.size(gain) for gain in (self.kp, self.ki, self.kd))

    def over(self, owner: str, joints: Sequence[str], kinds: Sequence[Kind], every: float) -> Written:
        """As every law."""
        import casadi as ca

        n = _has_lengths(owner, "PID", joints, kinds) if self.sees is None else sum(kind.nv for kind in kinds)
        n = n or self.outputs(owner)
        kp, ki, kd = (_gain(owner, what, getattr(self, what), n) for what in ("kp", "ki", "kd"))
        ends = None if self.limits is None else _limits(owner, self.limits)
        T_f, T_t = self._times(owner, kp, ki, ends is not None, every)
        differs = T_f > 0 or (bool(every) and bool(kd.any()))
        if self.sees is not None and kd.any() and not differs:
            raise ModelError(f"{owner}: kd with sees= needs filter=, s, since the rate of what it sees is not known")
        starts: dict[str, Any] = {"integral": np.zeros(n)} if ki.any() else {}
        starts |= {"filtered": np.zeros(n)} if differs else {}
        rated, sees = not differs and self.sees is None, _signal(self.sees)
        inputs = {"reference": np.zeros(n), **({"reference_rate": np.zeros(n)} if rated else {})}

        def law(s: Any) -> Any:
            q, v = _coordinates(s, joints) if sees is None else (_seen(owner, sees(s), n), None)
            e = s["reference"] - q
            x = s["integral"] if ki.any() else 0.0
            if rated:
                slope = s["reference_rate"] - v
            elif not differs:
                slope = 0.0
            elif every:  # backward difference, first-order filtered
                slope = (e - s["filtered"]) / (T_f + every)
            else:
                slope = (e - s["filtered"]) / T_f
            free = kp * e + x + kd * slope
            u = free if ends is None else ca.fmin(ca.fmax(free, ends[0]), ends[1])
            rates = {}
            if ki.any():
                rates["integral"] = ki * e + ((u - free) / T_t if ends is not None else 0.0)
            if differs:
                rates["filtered"] = slope
            if every:
                rates = {what: s[what] + every * rate for what, rate in rates.items()}
            return u, rates

        return law, starts, inputs

    def _times(self, owner: str, kp: Any, ki: Any, limited: bool, every: float) -> tuple[float, Any]:
        """Time constants of the derivative's filter and of tracking, s."""
        for what in ("filter", "tracking"):
            value = getattr(self, what)
            if value is not None and not float(numbers(owner, what, value, ())) > 0:
                raise ModelError(f"{owner}: {what} must be above 0 s, got {value!r}")
        if self.tracking is not None:
            return self.filter or 0.0, np.full(kp.shape, float(self.tracking))
        if limited and ki.any() and (kp <= 0).any():
            raise ModelError(f"{owner}: with ki, limits and no kp give tracking, s, in which the integral follows")
        return self.filter or 0.0, np.where(ki > 0, kp / np.where(ki > 0, ki, 1.0), 1.0)


def _limits(owner: str, limits: Any) -> tuple[float, float]:
    """Least and largest effort."""
    if not np.ndim(limits):
        limits = (-float(numbers(owner, "limits", limits, ())), limits)
    lo, hi = (float(x) for x in numbers(owner, "limits", limits, (2,)))
    if not lo < hi:
        raise ModelError(f"{owner}: limits must be the least and the largest effort, in this order, got {limits!r}")
    return lo, hi


@dataclass(frozen=True, init=False)
class StateSpace(ControlLaw):
    """A linear controller `x' = A x + B y`, `u = C x + D y`; sampled, the next `x` is `A x + B y`.

    `y` is what `sees` returns of an instant, or the signal of that name; by default the errors `reference - q` of the
    joints, with the input "reference". `cd.StateSpace(A, B, C, D)`, or one object that has these: of SciPy, of
    python-control, a `cd.LinearModel`. The state is "x".
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    sees: Callable[[Any], Any] | str | None
    start: Any

    def __init__(self, *matrices: Any, sees: Callable[[Any], Any] | str | None = None, start: Any = None) -> None:
        """Read the matrices, and check that they fit each other."""
        if len(matrices) == 1 and all(hasattr(matrices[0], name) for name in "ABCD"):
            matrices = tuple(getattr(matrices[0], name) for name in "ABCD")
        if len(matrices) != 4:
            raise ModelError(f"StateSpace: give A, B, C, D, or one object that has them, got {len(matrices)} arguments")
        A, B, C, D = (
            numbers("StateSpace", name, np.atleast_2d(np.asarray(x, dtype=float)), np.atleast_2d(x).shape)
            for name, x in zip("ABCD", matrices, strict=True)
        )
        nx, ny, nu = len(A), D.shape[1], len(D)
        if A.shape != (nx, nx) or B.shape != (nx, ny) or C.shape != (nu, nx):
            raise ModelError(
                f"StateSpace: the matrices do not fit: A {A.shape}, B {B.shape}, C {C.shape}, D {D.shape}; they are "
                "(nx, nx), (nx, ny), (nu, nx), (nu, ny)"
            )
        for name, x in zip("ABCD", (A, B, C, D), strict=True):
            object.__setattr__(self, name, x)
        object.__setattr__(self, "sees", sees)
        object.__setattr__(self, "start", np.zeros(nx) if start is None else start)

    @classmethod
    def of_transfer(cls, numerator: Any, denominator: Any, **more: Any) -> StateSpace:
        """That of a transfer function with coefficients by falling powers of s (or z), in controllable form."""
        b, a = np.atleast_1d(np.asarray(numerator, float)), np.atleast_1d(np.asarray(denominator, float))
        if not len(a) or a[0] == 0 or len(b) > len(a):
            raise ModelError(f"StateSpace: {numerator!r} / {denominator!r} must be proper, its leading number not 0")
        n = len(a) - 1
        b, a = np.concatenate([np.zeros(n + 1 - len(b)), b]) / a[0], a / a[0]
        A = np.vstack([-a[1:], np.eye(n)[:-1]]) if n else np.zeros((0, 0))
        C = (b[1:] - b[0] * a[1:]).reshape(1, n)
        return cls(A, np.eye(n)[:, :1], C, b[:1].reshape(1, 1), **more)

    def outputs(self, owner: str) -> int:
        """The rows of D."""
        if self.sees is None:
            raise ModelError(f"{owner}: a StateSpace without joints says what it sees with sees=function")
        return len(self.D)

    def over(self, owner: str, joints: Sequence[str], kinds: Sequence[Kind], every: float) -> Written:
        """As every law."""
        import casadi as ca

        n = sum(kind.nv for kind in kinds) or self.outputs(owner)
        if len(self.D) != n:
            raise ModelError(f"{owner}: its StateSpace gives {len(self.D)} numbers, and the joints take {n}")
        if self.sees is None and self.D.shape[1] != _has_lengths(owner, "StateSpace without sees=", joints, kinds):
            raise ModelError(
                f"{owner}: its StateSpace takes {self.D.shape[1]} numbers, and the errors of the joints are {n}; say "
                "what it sees with sees=function"
            )
        A, B, C, D = (ca.DM(x) for x in (self.A, self.B, self.C, self.D))
        sees = _signal(self.sees)

        def law(s: Any) -> Any:
            y = s["reference"] - _coordinates(s, joints)[0] if sees is None else _seen(owner, sees(s), B.size2())
            if not A.size1():
                return D @ y
            return C @ s["x"] + D @ y, {"x": A @ s["x"] + B @ y}

        inputs = {"reference": np.zeros(n)} if self.sees is None else {}
        return law, {"x": self.start} if A.size1() else {}, inputs


def _seen(owner: str, y: Any, n: int) -> Any:
    import casadi as ca

    column = ca.vertcat(*(y if isinstance(y, list | tuple) else [y]))
    if column.shape != (n, 1):
        raise ModelError(f"{owner}: sees must return {counted(n, 'number')}, got {column.numel()}")
    return column


@dataclass(frozen=True)
class StateFeedback(ControlLaw):
    """State feedback `u = u0 - K (x - x0)` of coordinates and rates of joints, and of variables, as LQR gives it.

    Args:
        K: (efforts, 2 n + m): gains of the coordinates, then of the rates, of the n joints in `states`, then of the m
            variables.
        states: the joints whose coordinates and rates are fed back, in order, then names of variables, such as the
            integral of an error or a current; a `cd.LinearModel` stands for its own states and operating point. By
            default the joints that the controller drives.
        at: coordinates, then rates, then variables (2 n + m,) about which it regulates; zero by default.
        effort: efforts there; zero by default.

    """

    K: Any
    states: Any = None
    at: Any = None
    effort: Any = None

    def outputs(self, owner: str) -> int:
        """The rows of K."""
        if not self.states:
            raise ModelError(f"{owner}: a StateFeedback without joints says whose states it takes with states=joints")
        return len(np.atleast_2d(np.asarray(self.K, dtype=float)))

    def over(self, owner: str, joints: Sequence[str], kinds: Sequence[Kind], every: float) -> Written:
        """As every law."""
        import casadi as ca

        K = np.atleast_2d(np.asarray(self.K, dtype=float))
        n = sum(kind.nv for kind in kinds) or self.outputs(owner)
        names, at, effort = self.states or list(joints), self.at, self.effort
        if hasattr(names, "point"):
            names, at, effort = of_linear(owner, names, joints)
        width = K.shape[1]
        x0 = numbers(owner, "at", np.zeros(width) if at is None else at, (width,))
        u0 = numbers(owner, "effort", np.zeros(n) if effort is None else np.atleast_1d(effort), (n,))

        def law(s: Any) -> Any:
            moving = [name for name in names if name in s.model.joint_names]
            others = [name for name in names if name not in moving]
            wanted = (n, 2 * len(moving) + len(others))
            if K.shape != wanted:
                more = f", then for each of {', '.join(others)}" if others else ""
                raise ModelError(
                    f"K must be {wanted}, a row for each effort, a column for each coordinate and then each rate of "
                    f"{', '.join(moving)}{more}; got {K.shape}"
                )
            x = ca.vertcat(*(_coordinates(s, moving) if moving else ()), *(s[name] for name in others))
            if x.numel() != width:
                raise ModelError(f"its states {', '.join(names)} must have one coordinate, or one number, each")
            return ca.DM(u0) - ca.DM(K) @ (x - ca.DM(x0) - ca.vertcat(s["reference"], ca.DM.zeros(width - count)))

        count = max(width - len(names), 0)  # of joints, if K fits
        return law, {}, {"reference": np.zeros(count)}


def of_linear(owner: str, linear: Any, joints: Sequence[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Joints and variables that are the states of a linear model, its operating point, and the efforts there."""
    split = [name.partition(".") for name in linear.states]
    names = [rest for kind, _, rest in split if kind == "q"]
    others = [x.name for x in linear.model.variables if x.is_state]
    if [*(f"{kind}.{name}" for kind in "qv" for name in names), *others] != list(linear.states):
        raise ModelError(
            f"{owner}: states of the linear model must be coordinates, then their rates, then variables of one number"
        )
    model, point = linear.model, linear.point
    if point.q.ndim > 1:
        raise ModelError(f"{owner}: the linear model is a batch; give one of it")
    q = np.concatenate([point.q[model.q_slice(name)] for name in names])
    v = np.concatenate([point.v[model.v_slice(name)] for name in names])
    tau = np.zeros(model.nv) if point.tau is None else np.broadcast_to(point.tau, model.nv)
    values = model.parameters.nominal if model.values is None else model.values
    x = [values[..., model.parameters.slice_of(name)] for name in others]
    return [*names, *others], np.concatenate([q, v, *x]), np.concatenate([tau[model.v_slice(name)] for name in joints])


@dataclass(frozen=True)
class Motor(ControlLaw):
    """A motor with brushes, or its model in one phase: current, back-EMF, gear.

        L i' = u - R i - k g v        tau = g k i        v the joint's rate; without inductance i = (u - k g v) / R

    The input is "voltage" `u`, V, of each joint; the state "current" `i`, A.

    Args:
        constant: `k`, N m/A (V s/rad), or of a linear motor N/A.
        resistance: `R`, ohm.
        inductance: `L`, H; 0 leaves the current without a state.
        gear: `g`, turns of the motor for one of the joint.
        voltage: largest voltage, V; without it there is no limit.

    """

    constant: float
    resistance: float
    inductance: float = 0.0
    gear: float = 1.0
    voltage: float | None = None

    def over(self, owner: str, joints: Sequence[str], kinds: Sequence[Kind], every: float) -> Written:
        """As every law."""
        import casadi as ca

        if every:
            raise ModelError(f"{owner}: a motor is not sampled; sample the controller that gives its voltage")
        each = ("constant", "resistance", "inductance", "gear")
        k, R, L, g = (float(numbers(owner, what, getattr(self, what), ())) for what in each)
        for what, value, least in (("resistance", R, 0.0), ("constant", k, 0.0)):
            if not value > least:
                raise ModelError(f"{owner}: {what} must be above 0, got {value:g}")
        if L < 0:
            raise ModelError(f"{owner}: inductance must not be negative, got {L:g} H")
        if not kinds:
            self.outputs(owner)
        most = None if self.voltage is None else _limits(owner, self.voltage)
        n = sum(kind.nv for kind in kinds)

        def law(s: Any) -> Any:
            u, v = s["voltage"], _coordinates(s, joints)[1]
            u = u if most is None else ca.fmin(ca.fmax(u, most[0]), most[1])
            if not L:
                return g * k * (u - k * g * v) / R
            return g * k * s["current"], {"current": (u - R * s["current"] - k * g * v) / L}

        return law, {"current": np.zeros(n)} if L else {}, {"voltage": np.zeros(n)}


CONTROL_LAWS: dict[str, type[ControlLaw]] = {
    "pid": PID, "state_feedback": StateFeedback, "state_space": StateSpace, "motor": Motor,
}  # fmt: skip
"""The ready-made laws, by their names in files."""
