"""Force elements and couplings of a mechanism under construction: each is read, checked and kept by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cardan.errors import OBEYED, ModelError, UnknownNameError, nearest
from cardan.model.body import Joint
from cardan.model.constraint import Constraint
from cardan.model.force import (
    BUSHING,
    DAMPER,
    DRIVE,
    FRICTION,
    SPRING,
    TORSION,
    USER_FORCE,
    WRENCH,
    Coupling,
    Force,
    ForceKind,
)
from cardan.model.joint import Kind
from cardan.model.pose import numbers, read_pose
from cardan.model.tree import GROUND


class Elements:
    """What acts on bodies and joints: springs, dampers, drives, friction, motions, couplings, forces of your own."""

    ground = "ground"

    def __init__(self) -> None:
        """Start without any."""
        self._order: dict[str, int] = {self.ground: GROUND}
        self._joints: dict[str, Joint] = {}
        self._forces: dict[str, Force] = {}
        self._couplings: dict[str, Coupling] = {}
        self._constraints: dict[str, Constraint] = {}

    def spring(
        self,
        name: str,
        body1: str,
        body2: str,
        *,
        stiffness: float,
        length: float,
        at1: Any = (0.0, 0.0, 0.0),
        at2: Any = (0.0, 0.0, 0.0),
        damping: float = 0.0,
    ) -> str:
        """Add a spring with damper between two points, and return its name.

        It pulls with `stiffness (l - length) + damping ldot`, `l` (m) the distance of the points. Where they meet there
        is no direction to pull in: the force fades to zero within about 1e-9 m.

        Args:
            name: unique among forces, motions and couplings.
            body1: body name, or `ground`.
            body2: body name, or `ground`.
            stiffness: N/m.
            length: m, at which the spring is slack.
            at1: the point (3,) on body1, m, in its frame.
            at2: the point (3,) on body2, m, in its frame.
            damping: N s/m.

        """
        owner, ends = self._between(SPRING, name, body1, body2)
        return self._force(
            SPRING, name, ends,
            stiffness=_not_negative(owner, "stiffness", stiffness), length=_not_negative(owner, "length", length),
            damping=_not_negative(owner, "damping", damping),
            at1=numbers(owner, "at1", at1, (3,)), at2=numbers(owner, "at2", at2, (3,)),
        )  # fmt: skip

    def damper(
        self,
        name: str,
        body1: str,
        body2: str,
        *,
        damping: float,
        at1: Any = (0.0, 0.0, 0.0),
        at2: Any = (0.0, 0.0, 0.0),
    ) -> str:
        """Add a damper (N s/m) between the points `at1`, `at2` (m) of two bodies, one of which may be ground."""
        owner, ends = self._between(DAMPER, name, body1, body2)
        return self._force(
            DAMPER, name, ends, stiffness=0.0, length=0.0, damping=_not_negative(owner, "damping", damping),
            at1=numbers(owner, "at1", at1, (3,)), at2=numbers(owner, "at2", at2, (3,)),
        )  # fmt: skip

    def bushing(
        self,
        name: str,
        body1: str,
        body2: str,
        *,
        stiffness: Any,
        damping: Any = 0.0,
        at1: Any = (0.0, 0.0, 0.0),
        at2: Any = (0.0, 0.0, 0.0),
    ) -> str:
        """Add a six-axis spring and damper between frame 1 on body1 and frame 2 on body2, and return its name.

        It acts on the rotation vector (rad) and displacement (m) of frame 2 in frame 1, angular part first, and the
        power of its stiffness is that of an energy at any angle below half a turn.

        Args:
            name: unique among forces, motions and couplings.
            body1: body name, or `ground`.
            body2: body name, or `ground`.
            stiffness: a number, one for each axis (6,), or a matrix (6, 6); N m/rad and N/m.
            damping: the same on the rates; N m s/rad and N s/m.
            at1: frame 1 on body1: a position (3,), m, or a `cd.Pose`.
            at2: frame 2 on body2.

        """
        owner, ends = self._between(BUSHING, name, body1, body2)
        frame1, frame2 = read_pose(owner, "at1", at1), read_pose(owner, "at2", at2)
        return self._force(
            BUSHING, name, ends,
            stiffness=_six_axes(owner, "stiffness", stiffness), damping=_six_axes(owner, "damping", damping),
            at1=frame1.position, at2=frame2.position, rotation1=frame1.rotation, rotation2=frame2.rotation,
        )  # fmt: skip

    def wrench(self, name: str, body: str, value: Any, *, at: Any = (0.0, 0.0, 0.0), axes: str = "ground") -> str:
        """Add a constant wrench (moment N m, force N) at the point `at` (m) of a body, and return its name.

        `axes` is "ground" for a wrench that keeps its direction, "body" for one that follows the body.
        """
        owner = self._claim_force(WRENCH.name, name)
        on = self._index(owner, "body", body)
        if on == GROUND:
            raise ModelError(f"{owner}: it acts on the ground, which does not move; name a body")
        if axes not in ("ground", "body"):
            raise ModelError(f"{owner}: axes must be 'ground' or 'body', got {axes!r}")
        value, at = numbers(owner, "value", value, (6,)), numbers(owner, "at", at, (3,))
        return self._force(WRENCH, name, (on,), value=value, at=at, follows=float(axes == "body"))

    def user_force(self, name: str, bodies: str | Sequence[str], function: Callable[..., Any]) -> str:
        """Add a force of your own on some bodies, and return its name.

        `function(t, poses, twists)` returns a list of wrenches (6,), one a body: moment (N m) and force (N) at the
        body's origin in body components. `t` is time (s); `poses[i].rotation` (3, 3) takes body to ground
        components and `poses[i].position` (3) is the body's origin (m); `twists[i]` (6,) is its angular (rad/s) and
        linear (m/s) velocity in body components. All are CasADi symbols: `build` runs the function once and records
        what it does.
        """
        owner, on = self._on_bodies(USER_FORCE.name, name, bodies)
        return self._force(USER_FORCE, name, on, _read_function(owner, function, "t, poses, twists"))

    def torsion(self, name: str, joint: str, *, stiffness: Any = 0.0, rest: Any = 0.0, damping: Any = 0.0) -> str:
        """Add a spring and damper along a joint's coordinates, `-stiffness (q - rest) - damping v`; return its name.

        Units N m/rad, rad, N m s/rad for an angle, N/m, m, N s/m for a length. A number, or one a coordinate.
        """
        owner, on, kind = self._along(TORSION.name, name, joint)
        if kind.nq != kind.nv:
            raise ModelError(
                f"{owner}: joint {joint!r} ({kind.name}) has a quaternion, along which there is no spring; use "
                "bushing(...) between its two bodies"
            )
        return self._force(
            TORSION, name, (on,), rest=_each(owner, "rest", rest, kind.nv),
            stiffness=_each_not_negative(owner, "stiffness", stiffness, kind.nv),
            damping=_each_not_negative(owner, "damping", damping, kind.nv),
        )  # fmt: skip

    def friction(self, name: str, joint: str, *, viscous: Any = 0.0, coulomb: Any = 0.0, smoothing: Any = 1e-3) -> str:
        """Add friction along a joint's rates, `-viscous v - coulomb tanh(v / smoothing)`, and return its name.

        Units N m s/rad, N m, rad/s for an angle, N s/m, N, m/s for a length. A number, or one a rate.
        """
        owner, on, kind = self._along(FRICTION.name, name, joint)
        smoothing = _each(owner, "smoothing", smoothing, kind.nv)
        if (smoothing <= 0).any():
            raise ModelError(
                f"{owner}: smoothing must be above 0, got {smoothing.min():g}; it is the speed over which Coulomb "
                "friction changes sign"
            )
        return self._force(
            FRICTION, name, (on,), smoothing=smoothing,
            viscous=_each_not_negative(owner, "viscous", viscous, kind.nv),
            coulomb=_each_not_negative(owner, "coulomb", coulomb, kind.nv),
        )  # fmt: skip

    def drive(self, name: str, joint: str, function: Callable[..., Any] | float) -> str:
        """Add a force along a joint's coordinates (N m or N), and return its name.

        `function(t, q, v)`, of time (s) and the joint's own coordinates and rates, all CasADi symbols, returns a number
        for each of `v`; or give the number itself.
        """
        owner, on, kind = self._along(DRIVE.name, name, joint)
        if not callable(function):
            value = numbers(owner, "function, where it is not callable,", function, () if kind.nv == 1 else (kind.nv,))
            return self._force(DRIVE, name, (on,), lambda t, q, v: value.ravel())
        return self._force(DRIVE, name, (on,), _read_function(owner, function, "t, q, v"))

    def motion(self, name: str, joint: str, function: Callable[..., Any] | float) -> str:
        """Prescribe the motion of a joint with one coordinate, and return the motion's name.

        `function(t)` gives q (rad or m) at time t (s), a CasADi symbol, and must be twice differentiable; a number
        locks the joint there.
        """
        owner, on, kind = self._along("motion", name, joint)
        _require_one(owner, joint, kind)
        if callable(function):
            self._couplings[name] = Coupling(name, "motion", (on,), frozen([1.0]), function=function)
        else:
            value = float(numbers(owner, "function, where it is not callable,", function, ()))
            self._couplings[name] = Coupling(name, "motion", (on,), frozen([1.0]), value)
        return name

    def couple(self, name: str, coefficients: Mapping[str, float], *, offset: float = 0.0) -> str:
        """Couple joints with one coordinate each by `sum of coefficient * q = offset`, and return the coupling's name.

        A gear pair, a mimic joint, a rack and pinion: `couple("gear", {"a": 1.0, "b": 3.0})` makes b turn a third of
        a, the other way. Units: those of the products must agree; a length per angle is m/rad.
        """
        owner = self._claim_force("coupling", name)
        if not isinstance(coefficients, Mapping):
            raise ModelError(f"{owner}: coefficients must be a dict of joint names and numbers, got {coefficients!r}")
        on, values = [], []
        for joint, value in coefficients.items():
            index, kind = self._joint(owner, joint)
            _require_one(owner, joint, kind)
            on.append(index)
            values.append(float(numbers(owner, f"coefficient of joint {joint!r}", value, ())))
        if not any(values):
            raise ModelError(f"{owner}: no coefficient differs from 0, got {dict(coefficients)!r}; it couples nothing")
        right = float(numbers(owner, "offset", offset, ()))
        self._couplings[name] = Coupling(name, "coupling", tuple(on), frozen(values), right)
        return name

    def constraint(
        self, name: str, bodies: str | Sequence[str], function: Callable[..., Any], *, unit: str = "m"
    ) -> str:
        """Add a scalar constraint of your own on some bodies, and return its name.

        `function(t, poses, twists)` returns the expression that must stay zero, with the arguments of `user_force`. If
        it depends on poses alone it is a constraint on positions. If it depends on twists it is a constraint on rates
        only, and must be affine in them: `R[:, 1]` of the pose times the velocity of the origin, for a knife edge.

        Args:
            name: unique among forces, motions, couplings and constraints.
            bodies: the bodies it depends on, each once.
            function: run once, on CasADi symbols, by `build`.
            unit: of the expression, or of its integral over time for a constraint on rates: "m" or "rad".

        """
        owner, on = self._on_bodies("constraint", name, bodies)
        self._constraints[name] = Constraint(name, on, _read_function(owner, function, "t, poses, twists"), unit)
        return name

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The user's own constraints so far."""
        return tuple(self._constraints.values())

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints so far."""
        return tuple(self._joints.values())

    @property
    def forces(self) -> tuple[Force, ...]:
        """The force elements so far."""
        return tuple(self._forces.values())

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """The couplings and prescribed motions so far."""
        return tuple(self._couplings.values())

    def _claim_force(self, what: str, name: str) -> str:
        read_name(what, name)
        if name in self._forces or name in self._couplings or name in self._constraints:
            raise ModelError(f"{what} {name!r}: the name is taken; forces, motions and couplings must differ in name")
        return f"{what} {name!r}"

    def _between(self, kind: ForceKind, name: str, body1: str, body2: str) -> tuple[str, tuple[int, int]]:
        owner = self._claim_force(kind.name, name)
        first, second = self._index(owner, "body1", body1), self._index(owner, "body2", body2)
        if first == second:
            raise ModelError(f"{owner}: body1 and body2 are both {body1!r}; it acts between two different bodies")
        return owner, (first, second)

    def _on_bodies(self, what: str, name: str, bodies: str | Sequence[str]) -> tuple[str, tuple[int, ...]]:
        """How messages call an element on some bodies, and the bodies' numbers."""
        owner = self._claim_force(what, name)
        if not isinstance(bodies, Sequence):
            raise ModelError(f"{owner}: bodies must be a list of body names, got {bodies!r}")
        names = [bodies] if isinstance(bodies, str) else bodies
        on = tuple(self._index(owner, "body", body) for body in names)
        if set(on) <= {GROUND} or len(set(on)) < len(on):
            raise ModelError(f"{owner}: bodies must name one or more that move, each once, got {bodies!r}")
        return owner, on

    def _along(self, what: str, name: str, joint: str) -> tuple[str, int, Kind]:
        owner = self._claim_force(what, name)
        return owner, *self._joint(owner, joint)

    def _joint(self, owner: str, name: str) -> tuple[int, Kind]:
        if not isinstance(name, str) or name not in self._joints:
            raise UnknownNameError(
                f"{owner}: joint {name!r} is not one of the joints so far{nearest(name, self._joints)}"
            )
        kind = self._joints[name].kind
        if kind.nv == 0:
            raise ModelError(f"{owner}: joint {name!r} ({kind.name}) has no coordinate to act along")
        return list(self._joints).index(name), kind

    def _force(self, kind: ForceKind, name: str, on: tuple[int, ...], function: Any = None, **values: Any) -> str:
        self._forces[name] = Force(name, kind, on, {what: frozen(value) for what, value in values.items()}, function)
        return name

    def _index(self, owner: str, what: str, name: str) -> int:
        if not isinstance(name, str) or name not in self._order:
            raise UnknownNameError(f"{owner}: {what} {name!r} is not a body{nearest(name, self._order)}")
        return self._order[name]


def read_name(what: str, name: object) -> str:
    """Read a name, which is text with something in it."""
    if not isinstance(name, str) or not name.strip():
        raise ModelError(f"{what}: a name must be a non-empty string, got {name!r}")
    if found := OBEYED.search(name):
        raise ModelError(f"{what} {name!r}: its name has the control character {found[0]!r}; leave it out")
    return name


def read_armature(owner: str, value: Any, kind: Kind) -> np.ndarray | None:
    """Armature (nv,) of a joint, or None where it has none."""
    array = _each(owner, "armature", value, kind.nv)
    if (array < 0).any():
        raise ModelError(f"{owner}: armature must not be negative, got {array.min():g}; it is an inertia")
    return frozen(array) if array.any() else None


def dimensions(value: Any) -> int:
    """Count the dimensions of what should be numbers; rows of unequal length are left to `numbers` to refuse."""
    try:
        return np.ndim(value)
    except ValueError:
        return 1


def _read_function(owner: str, function: Any, arguments: str) -> Any:
    if not callable(function):
        raise ModelError(f"{owner}: function must be a function of ({arguments}), got {function!r}")
    return function


def _require_one(owner: str, joint: str, kind: Kind) -> None:
    if kind.nv != 1:
        raise ModelError(f"{owner}: joint {joint!r} ({kind.name}) has {kind.nv} coordinates; it must have one")


def _not_negative(owner: str, what: str, value: Any, shape: tuple[int, ...] = ()) -> np.ndarray:
    array = numbers(owner, what, value, shape)
    if (array < 0).any():
        raise ModelError(f"{owner}: {what} must not be negative, got {array.min():g}; it would feed energy in")
    return array


def _each(owner: str, what: str, value: Any, n: int) -> np.ndarray:
    """A number for each of n coordinates; a single one is meant for all."""
    return np.broadcast_to(numbers(owner, what, value, (n,) if dimensions(value) else ()), n)


def _each_not_negative(owner: str, what: str, value: Any, n: int) -> np.ndarray:
    return np.broadcast_to(_not_negative(owner, what, value, (n,) if dimensions(value) else ()), n)


def _six_axes(owner: str, what: str, value: Any) -> np.ndarray:
    """A matrix (6, 6) from a number, six, or a matrix whose symmetric part must not be negative."""
    if dimensions(value) < 2:
        return np.diag(_each_not_negative(owner, what, value, 6))
    K = numbers(owner, what, np.asarray(value).tolist(), (6, 6))
    size = np.sqrt(np.abs(np.diag(K)))
    size[size == 0] = 1.0
    lowest = float(np.linalg.eigvalsh((K + K.T) / 2 / np.outer(size, size))[0])
    if lowest < -1e-9:
        raise ModelError(
            f"{owner}: {what} must not be negative along any motion, but its symmetric part, scaled to unit diagonal, "
            f"has the eigenvalue {lowest:.4g}; it would feed energy in"
        )
    return K


def frozen(array: Any) -> np.ndarray:
    """A copy, in float64, that nothing can change."""
    array = np.array(array, dtype=float)
    array.flags.writeable = False
    return array
