"""Force elements and couplings of a mechanism under construction, validated and kept by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cardan.errors import OBEYED, ModelError, UnknownNameError, nearest
from cardan.model.body import Frame, Joint
from cardan.model.constraint import Constraint
from cardan.model.constraint_kind import ConstraintElement
from cardan.model.controller import Controller
from cardan.model.expression_stop import EXPRESSION_STOPS
from cardan.model.field import FUNCTIONS, LIMIT, TABLE, TEXT, Field, dimensions, each, frozen, not_negative
from cardan.model.force import (
    BUSHING,
    DAMPER,
    DRIVE,
    FRICTION,
    NONLINEAR_SPRING,
    NONLINEAR_TORSION,
    RELATION,
    SPRING,
    TORSION,
    USER_FORCE,
    WRENCH,
    Coupling,
    Force,
    ForceKind,
)
from cardan.model.joint import NUMBERED, Kind
from cardan.model.law import CONTACT, SLIDING, STICKING, STOP, rates_together
from cardan.model.lock import LATCHES, LOCK
from cardan.model.pose import numbers
from cardan.model.pose_stop import POSITION_STOP, ROTATION_STOP, has_quaternion
from cardan.model.table import Table
from cardan.model.tree import GROUND

# The argument with the point on a body, by the argument with the body.
PLACES = {"body1": "at1", "body2": "at2", "child": "child_at"}


class Elements:
    """What acts on bodies and joints: springs, dampers, drives, friction, motions, couplings, and user forces."""

    ground = "ground"

    def __init__(self) -> None:
        """Start with none."""
        self._order: dict[str, int] = {self.ground: GROUND}
        self._frames: dict[str, Frame] = {}
        self._joints: dict[str, Joint] = {}
        self._joint_places: dict[str, int] = {}
        self._forces: dict[str, Force] = {}
        self._couplings: dict[str, Coupling] = {}
        self._constraints: dict[str, Constraint | ConstraintElement] = {}
        self._controllers: dict[str, Controller] = {}

    def spring(
        self, name: str, body1: str, body2: str, *, stiffness: float, length: float, at1: Any = (0.0, 0.0, 0.0),
        at2: Any = (0.0, 0.0, 0.0), damping: float = 0.0,
    ) -> str:  # fmt: skip
        """Add a spring with damper between two points, and return its name.

        It pulls with `stiffness (l - length) + damping ldot`, `l` (m) the distance of the points. Where the
        points coincide the direction is undefined; the force goes to zero within about 1e-9 m.

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
        ends = (body1, body2)
        return self.force(name, SPRING, ends, stiffness=stiffness, length=length, damping=damping, at1=at1, at2=at2)

    def nonlinear_spring(
        self, name: str, body1: str, body2: str, *, tension: Table, length: float = 0.0, damping: float = 0.0,
        at1: Any = (0.0, 0.0, 0.0), at2: Any = (0.0, 0.0, 0.0),
    ) -> str:  # fmt: skip
        """Add a spring between two points whose tension is a table of its stretch, and return its name.

        It pulls with `tension(l - length) + damping ldot`, `l` (m) the distance of the points. Its energy is the
        integral of the table from stretch 0 on.

        Args:
            name: unique among forces, motions and couplings.
            body1: body name, or `ground`.
            body2: body name, or `ground`.
            tension: a `cd.table` of N over m.
            length: m, from which the stretch counts.
            damping: N s/m.
            at1: the point (3,) on body1, m, in its frame.
            at2: the point (3,) on body2, m, in its frame.

        """
        ends, numbers = (body1, body2), {"length": length, "damping": damping, "at1": at1, "at2": at2}
        return self.force(name, NONLINEAR_SPRING, ends, tension=tension, **numbers)

    def nonlinear_torsion(
        self, name: str, joint: str, *, effort: Table, rest: float = 0.0, damping: float = 0.0
    ) -> str:  # fmt: skip
        """Add a spring along a joint with one coordinate whose force is a table; return its name.

        The force is `-effort(q - rest) - damping v`: a `cd.table` of N m over rad, or of N over m. Its energy is the
        integral of the table from deflection 0 on.
        """
        owner = f"nonlinear torsion {name!r}"
        _require_one(owner, joint, self._coordinates(owner, joint)[1])
        return self.force(name, NONLINEAR_TORSION, joint, effort=effort, rest=rest, damping=damping)

    def damper(
        self, name: str, body1: str, body2: str, *, damping: float, at1: Any = (0.0, 0.0, 0.0),
        at2: Any = (0.0, 0.0, 0.0),
    ) -> str:  # fmt: skip
        """Add a damper (N s/m) between the points `at1`, `at2` (m) of two bodies, one of which may be ground."""
        return self.force(name, DAMPER, (body1, body2), damping=damping, at1=at1, at2=at2)

    def bushing(
        self, name: str, body1: str, body2: str, *, stiffness: Any, damping: Any = 0.0, at1: Any = (0.0, 0.0, 0.0),
        at2: Any = (0.0, 0.0, 0.0),
    ) -> str:  # fmt: skip
        """Add a six-axis spring and damper between frame 1 on body1 and frame 2 on body2, and return its name.

        It acts on the rotation vector (rad) and displacement (m) of frame 2 in frame 1, angular part first.
        Its stiffness conserves energy at any angle below half a turn.

        Args:
            name: unique among forces, motions and couplings.
            body1: body name, or `ground`.
            body2: body name, or `ground`.
            stiffness: a number, one for each axis (6,), or a matrix (6, 6); N m/rad and N/m.
            damping: the same on the rates; N m s/rad and N s/m.
            at1: frame 1 on body1: a position (3,), m, or a `cd.Pose`.
            at2: frame 2 on body2.

        """
        return self.force(name, BUSHING, (body1, body2), stiffness=stiffness, damping=damping, at1=at1, at2=at2)

    def wrench(self, name: str, body: str, value: Any, *, at: Any = (0.0, 0.0, 0.0), axes: str = "ground") -> str:
        """Add a constant wrench (moment N m, force N) at the point `at` (m) of a body, and return its name.

        `axes` is "ground" for a wrench that keeps its direction, "body" for one that follows the body.
        """
        if callable(value) or np.shape(value) == (3,):
            given = "a function; a force that changes is" if callable(value) else "3; a force alone is"
            form = "mechanism.user_force(...)" if callable(value) else "(0, 0, 0, fx, fy, fz)"
            raise ModelError(f"wrench {name!r}: value must be 6 numbers, moment and force, got {given} {form}")
        return self.force(name, WRENCH, body, value=value, at=at, axes=axes)

    def user_force(self, name: str, bodies: str | Sequence[str], function: Callable[..., Any]) -> str:
        """Add a force of your own on some bodies, and return its name.

        `function(t, poses, twists)` returns a list of wrenches (6,), one for each body: moment (N m) and force (N) at
        the body's origin in body components. `t` is time (s); `poses[i].rotation` (3, 3) takes body to ground
        components and `poses[i].position` (3) is the body's origin (m); `twists[i]` (6,) is its angular (rad/s) and
        linear (m/s) velocity in body components. All are CasADi symbols: `build` runs the function once and records
        its graph.
        """
        return self.force(name, USER_FORCE, bodies, wrenches=function)

    def torsion(self, name: str, joint: str, *, stiffness: Any = 0.0, rest: Any = 0.0, damping: Any = 0.0) -> str:
        """Add a spring and damper along a joint's coordinates, `-stiffness (q - rest) - damping v`; return its name.

        Units N m/rad, rad, N m s/rad for an angle, N/m, m, N s/m for a length. A number, or one for each coordinate.
        """
        return self.force(name, TORSION, joint, stiffness=stiffness, rest=rest, damping=damping)

    def friction(
        self, name: str, joint: str | Mapping[str, float], *, viscous: Any = 0.0, coulomb: Any = 0.0,
        smoothing: Any = 1e-3, static: Any = None, stribeck: Any = None, stick: bool = False, coefficient: Any = None,
        static_coefficient: Any = None, radius: Any = None, normal: str | None = None, unit: str | None = None,
    ) -> str:  # fmt: skip
        """Add friction along a joint's rates, and return its name; a number, or one for each rate.

        With `stick` it sticks (`model.laws`): at rest the joint stays where it is until the load is above `static`;
        sliding, friction is `coulomb`. Each coordinate of a joint with several sticks or slides by itself; in a ball
        joint friction is one moment against the motion, in a free joint a moment and a force. Without, it
        is `-viscous v - coulomb tanh(v / smoothing)` and does not stick: under a load F below `coulomb` the joint
        creeps, at the speed `smoothing artanh(F / coulomb)` without a viscous part. A smaller `smoothing` creeps less
        and makes the equations stiffer.

        With `stick` it may act between several joints: what slides is a sum of their rates, as of two shafts in a
        clutch, `{"in": 1, "out": -1}`, or of worm and wheel along the thread, with coefficients in m/rad.

        Args:
            name: unique among forces, motions and couplings.
            joint: along whose coordinates it acts, or one of them, "A[1]"; or joints with the coefficients of their
                rates in the speed of sliding.
            viscous: N m s/rad or N s/m.
            coulomb: friction once it slides, N m or N.
            smoothing: rad/s or m/s; without `stick` only.
            static: friction at rest, N m or N; by default `coulomb`.
            stribeck: speed over which friction falls from `static` to `coulomb`, rad/s or m/s; with `stick` it falls at
                once by default.
            stick: whether it sticks.
            coefficient: adds this times the reaction of the joint, or the force of `normal`, times `radius`; with
                `stick` only.
            static_coefficient: the same at rest; by default `coefficient`.
            radius: of the pin of a turning joint, m.
            normal: what presses the surfaces together: a coupling, motion, constraint, stop, contact, lock or latch, or
                another joint, whose force, N or N m, is that of its rows.
            unit: of the speed of sliding of several joints over time, "m" or "rad"; by default that of the joints.

        """
        given = {
            "static": static, "stribeck": stribeck, "coefficient": coefficient,
            "static_coefficient": static_coefficient, "radius": radius, "normal": normal, "unit": unit,
        }  # fmt: skip
        more = {what: value for what, value in given.items() if value is not None}
        if stick and isinstance(joint, str):
            return self.force(name, STICKING, joint, viscous=viscous, coulomb=coulomb, **more)
        if stick:
            if not isinstance(viscous, int | float) or viscous:
                raise ModelError(f"friction {name!r}: viscous friction is along one joint; add it to each of them")
            return self.force(name, SLIDING, joint, coulomb=coulomb, **more)
        if not isinstance(joint, str):
            raise ModelError(f"friction {name!r}: between several joints it is friction that sticks; give stick=True")
        for what in ("coefficient", "static_coefficient", "radius", "normal", "unit"):
            if what in more:
                raise ModelError(f"friction {name!r}: {what} is for friction that sticks; give stick=True")
        if (static is None) != (stribeck is None):
            raise ModelError(f"friction {name!r}: without stick=True, static and stribeck are given together")
        return self.force(name, FRICTION, joint, viscous=viscous, coulomb=coulomb, smoothing=smoothing, **more)

    def stop(
        self, name: str, on: str | Sequence[str], gap: Callable[..., Any] | None = None, *, lower: Any = None,
        upper: Any = None, angle: float | None = None, swing: float | None = None, twist: Any = None,
        axis: Sequence[float] | None = None, unit: str = "m", restitution: float = 0.0, stiffness: Any = None,
        damping: Any = None,
    ) -> str:  # fmt: skip
        """Add a stop, and return its name: limits of a joint, or of an expression of the poses of bodies.

        Of a joint with a quaternion, as a ball or free joint, `angle`, `swing` and `twist` limit the rotation.

        Args:
            name: unique among forces, motions and couplings.
            on: a joint, or one of its coordinates, "A[1]"; or, with `gap`, the bodies that it depends on.
            gap: `gap(t, poses, twists)` returns a length (or an angle) from time and poses of the bodies, as in
                `user_force`. It must not be negative, or else stays between `lower` and `upper`.
            lower: least coordinate of the joint, rad or m; of one with several a number, or None, for each; of a free
                joint those of its position.
            upper: its largest coordinate.
            angle: largest angle of the whole rotation, rad.
            swing: largest angle between `axis` on the parent and `axis` on the child, rad: a cone.
            twist: least and largest turn about `axis`, apart from the swing, rad; one number is both ways.
            axis: of swing and twist, in the joint frame; z by default.
            unit: of the expression `gap`, "m" or "rad".
            restitution: of hard stops, from 0 to 1.
            stiffness: of a compliant stop, N m/rad or N/m; a stop without is hard.
            damping: of a compliant stop, N m s/rad or N s/m; it never pulls.

        """
        spring = {"stiffness": stiffness, "damping": damping, "lower": lower, "upper": upper}
        more = {what: value for what, value in spring.items() if value is not None}
        rotation = {"angle": angle, "swing": swing, **_twist(f"stop {name!r}", twist), "axis": axis}
        turning = {what: value for what, value in rotation.items() if value is not None}
        if turning and ("lower" in more or "upper" in more or gap is not None):
            raise ModelError(
                f"stop {name!r}: {min(turning)} is of a rotation; give lower, upper or gap to another stop"
            )
        positions = self._positions(f"stop {name!r}", on, more) if gap is None else None
        if positions is not None:
            joint, limits = positions
            rest = {what: value for what, value in more.items() if what not in ("lower", "upper")}
            return self.force(name, POSITION_STOP, joint, restitution=restitution, **limits, **rest)
        if gap is None:
            if not isinstance(on, str):
                raise ModelError(f"stop {name!r}: a stop between bodies needs a gap, a function of (t, poses, twists)")
            kind = ROTATION_STOP if turning else STOP
            return self.force(name, kind, on, restitution=restitution, **turning, **more)
        if unit not in EXPRESSION_STOPS:
            raise ModelError(f"stop {name!r}: unit must be 'm' or 'rad', got {unit!r}")
        if lower is None and upper is None:
            if unit == "m":
                return self.force(name, CONTACT, on, gap=gap, restitution=restitution, **more)
            more["lower"] = 0.0
        return self.force(name, EXPRESSION_STOPS[unit], on, value=gap, restitution=restitution, **more)

    def _positions(self, owner: str, on: Any, given: dict[str, Any]) -> tuple[str, dict[str, float]] | None:
        """Of limits of a free joint, or of its position "F[2]", the joint and the limits by name; else None."""
        found = NUMBERED.fullmatch(on) if isinstance(on, str) and on not in self._joints else None
        joint, k = (found[1], int(found[2])) if found else (on, 0)
        ends = {what: given[what] for what in ("lower", "upper") if what in given}
        kind = self._joints[joint].kind if isinstance(joint, str) and joint in self._joints else None
        if kind is None or not ends or k > 2 or kind.nv != 6 or not has_quaternion(kind):
            return None
        limits: dict[str, float] = {}
        for what, value in ends.items():
            read = Field(form=LIMIT).read(owner, what, value, 1 if found else 3)[what]
            limits |= {f"{'xyz'[k + i]}_{what}": float(x) for i, x in enumerate(read) if np.isfinite(x)}
        return joint, limits

    def contact(
        self, name: str, bodies: str | Sequence[str], *, gap: Callable[..., Any],
        tangent: Callable[..., Any] | None = None, friction: float | None = None, static: float | None = None,
        stribeck: float | None = None, restitution: float = 0.0,
    ) -> str:  # fmt: skip
        """Add a hard contact between bodies with friction that sticks, and return its name.

        Args:
            name: unique among forces, motions and couplings.
            bodies: the bodies that it depends on, each once.
            gap: `gap(t, poses, twists)` returns the gap (m), as in `stop`.
            tangent: `tangent(t, poses, twists)` returns the velocity of sliding (m/s), or two of them along directions
                at right angles; affine in the twists.
            friction: coefficient of friction: sliding friction is this times the normal force.
            static: the coefficient at rest; by default the same.
            stribeck: speed over which it falls from `static`, m/s; at once by default.
            restitution: from 0 to 1.

        """
        given = {"coefficient": friction, "static_coefficient": static, "stribeck": stribeck}
        more = {what: value for what, value in given.items() if value is not None}
        function = gap if tangent is None else _gap_and_sliding(gap, tangent)
        return self.force(name, CONTACT, bodies, gap=function, restitution=restitution, **more)

    def lock(self, name: str, joint: str, *, closed: bool | float = False) -> str:
        """Add a lock that holds a joint's coordinates while it is closed, and return its name.

        Events close and open it during a run, as its number `NAME.closed`; closing stops the joint by an impulse.

        Args:
            name: unique among forces, motions and couplings.
            joint: a joint, or one of its coordinates, "A[1]".
            closed: whether it is closed at the start.

        """
        return self.force(name, LOCK, joint, closed=float(closed))

    def latch(
        self, name: str, body: str, other: str, kind: str = "rigid", *, at: Sequence[float] = (0.0, 0.0, 0.0),
        axis: Sequence[float] | None = None, closed: bool | float = False,
    ) -> str:  # fmt: skip
        """Add a connection of two bodies that is open or closed, and return its name.

        It holds the bodies as they are when it closes. Events close and open it, as its number `NAME.closed`.

        Args:
            name: unique among forces, motions and couplings.
            body: one body, or the ground.
            other: the other one.
            kind: "rigid" holds all; "pin" leaves the rotation about `axis`, "ball" every rotation about the point `at`.
            at: point of the first body, m.
            axis: of a pin, in the first body.
            closed: whether it is closed at the start.

        """
        if kind not in LATCHES:
            raise ModelError(f"latch {name!r}: kind must be 'rigid', 'pin' or 'ball', got {kind!r}")
        if axis is not None and kind != "pin":
            raise ModelError(f"latch {name!r}: an axis is of a pin, and it is {kind!r}; leave it out")
        more = {} if axis is None else {"axis": axis}
        return self.force(name, LATCHES[kind], [body, other], at=at, closed=float(closed), **more)

    def drive(self, name: str, joint: str, function: Callable[..., Any] | float) -> str:
        """Add a force along a joint's coordinates (N m or N), and return its name.

        `function(t, q, v)`, of time (s) and the joint's own coordinates and rates, all CasADi symbols, returns a
        number for each rate; or give a constant.
        """
        return self.force(name, DRIVE, joint, effort=function)

    def force(
        self, name: str, kind: ForceKind, on: str | Sequence[str] | Mapping[str, float], /, **numbers: Any
    ) -> str:
        """Add a force element of any kind, such as one of your own, and return its name.

        Args:
            name: unique among forces, motions and couplings.
            kind: a `cd.ForceKind`.
            on: the joint that it acts along, or one of its coordinates, "A[1]"; or the bodies that it acts on, by name;
                of a kind between joints a dict with their coefficients.
            numbers: the values of the kind's `fields` by name, in their units.

        """
        if not isinstance(kind, ForceKind):
            raise ModelError(
                f"force {name!r}: kind must be a cd.ForceKind, got {kind!r}; a constant force is mechanism.wrench(...)"
            )
        along: tuple[int, ...] = ()
        values: dict[str, np.ndarray] = {}
        joint: Kind | None = None
        if kind.on == "joints":
            owner = self._claim_force(kind.name, name)
            places, along, values["along"] = self._combined(owner, on)
        elif kind.on == "joint":
            owner = self._claim_force(kind.name, name)
            index, joint, along = self._coordinates(owner, on)
            places = (index,)
            if kind is TORSION and joint.nq != joint.nv:
                raise ModelError(
                    f"{owner}: joint {on!r} ({joint.name}) has a quaternion, along which there is no spring; use "
                    "bushing(...) between its two bodies"
                )
            if kind is FRICTION:
                rates_together(owner, joint)  # rejects rates that are no vectors
        else:
            owner, places = self._on_bodies(kind.name, name, on, kind.bodies)  # type: ignore[arg-type]
        for what in numbers:
            if what not in kind.fields:
                raise ModelError(f"{owner}: it has no number {what!r}{nearest(what, kind.fields)}")
        function: Any = None
        texts: dict[str, str] = {}
        for what, field in kind.fields.items():
            if field.needed and what not in numbers:
                raise ModelError(f"{owner}: {what!r} must be given")
            value = numbers.get(what, field.default)
            if value is None and field.default is None:
                continue
            if field.form == TEXT:
                texts[what] = read_name(f"{owner}: {what}", value)
            elif field.form == TABLE:
                function = _read_characteristic(owner, what, value)
            elif field.form in FUNCTIONS:
                function = (
                    _read_function(owner, value, "t, poses, twists")
                    if joint is None
                    else _read_effort(owner, value, joint)
                )
            else:
                values |= field.read(owner, what, value, 0 if joint is None else joint.nv)
        kept = {what: frozen(value) for what, value in values.items()}
        force = Force(name, kind, places, kept, function, along=along, texts=texts)
        if kind.lawful is not None and (kind.on != "bodies" or kind.function):
            kind.lawful(force, self.joints)  # rejects numbers that contradict each other
        self._forces[name] = force
        return name

    def motion(self, name: str, joint: str, function: Callable[..., Any] | float) -> str:
        """Prescribe the motion of a joint with one coordinate, or of one of several, "A[1]"; return the motion's name.

        `function(t)` gives q (rad or m) at time t (s), a CasADi symbol, and must be twice differentiable; a constant
        locks the joint there.
        """
        owner = self._claim_force("motion", name)
        on, kind, places = self._coordinates(owner, joint)
        _require_one(owner, joint, kind)
        for other in self._couplings.values():
            if other.what == "motion" and (other.joints, other.places) == ((on,), places):
                raise ModelError(
                    f"{owner}: joint {joint!r} is moved by motion {other.name!r} already; remove "
                    "one of them, or write their sum as one motion"
                )
        if callable(function):
            self._couplings[name] = Coupling(name, "motion", (on,), frozen([1.0]), function=function, places=places)
        else:
            value = float(numbers(owner, "function, where it is not callable,", function, ()))
            self._couplings[name] = Coupling(name, "motion", (on,), frozen([1.0]), value, places=places)
        return name

    def couple(
        self, name: str, coefficients: Mapping[str, float] | Sequence[str], function: Callable[..., Any] | None = None,
        *, offset: float = 0.0, unit: str = "",
    ) -> str:  # fmt: skip
        """Couple joints by `sum of coefficient * q = offset`, and return the coupling's name.

        Each is a joint with one coordinate, or one of several coordinates, "A[1]".

        A gear pair, a mimic joint, a differential: `couple("gear", {"a": 1.0, "b": 3.0})` makes b turn a third of a,
        the other way. Units: those of the products must agree; a length per angle is m/rad.

        With a list of joints and a `function` of their coordinates (rad, m), in this order, the function must stay
        zero: a ratio that changes, `couple("steering", ["left", "right"], lambda a, b: ...)`. It must be twice
        differentiable. `unit` is that of its value, "m" or "rad"; by default that of the joints.
        """
        if function is not None:
            return self._relate(name, coefficients, function, unit)
        owner = self._claim_force("coupling", name)
        on, places, values = self._combined(owner, coefficients)
        right = float(numbers(owner, "offset", offset, ()))
        numbered = places if any(places) else ()
        self._couplings[name] = Coupling(name, "coupling", on, frozen(values), right, unit=unit, places=numbered)
        return name

    def _combined(self, owner: str, coefficients: Any) -> tuple[tuple[int, ...], tuple[int, ...], np.ndarray]:
        """Joints, numbers of their coordinates, and coefficients, of a sum of coordinates."""
        if not isinstance(coefficients, Mapping):
            raise ModelError(
                f"{owner}: coefficients must be a dict of joint names and numbers, got {coefficients!r}; a list of "
                "joints needs a function of their coordinates"
            )
        on, places, values = [], [], []
        for joint, value in coefficients.items():
            index, kind, along = self._coordinates(owner, joint)
            _require_one(owner, joint, kind)
            on.append(index)
            places.append(along[0] if along else 0)
            values.append(float(numbers(owner, f"coefficient of joint {joint!r}", value, ())))
        if not any(values):
            raise ModelError(f"{owner}: no coefficient differs from 0, got {dict(coefficients)!r}; it couples nothing")
        return tuple(on), tuple(places), np.array(values)

    def _relate(self, name: str, joints: Any, function: Any, unit: str) -> str:
        """Couple joints by a function of their coordinates."""
        owner = self._claim_force(RELATION, name)
        if isinstance(joints, str | Mapping) or not isinstance(joints, Sequence) or not joints:
            raise ModelError(f"{owner}: with a function give a list of joint names, got {joints!r}")
        on, places, units = [], [], set()
        for joint in joints:
            index, kind, along = self._coordinates(owner, joint)
            _require_one(owner, joint, kind)
            on.append(index)
            places.append(along[0] if along else 0)
            units.add(kind.q_units[0])
        if len({*zip(on, places, strict=True)}) < len(on):
            raise ModelError(f"{owner}: each joint must be named once, got {joints!r}")
        if not unit and len(units) > 1:
            raise ModelError(f"{owner}: it couples angles and lengths; give the unit of its function, 'm' or 'rad'")
        law = _read_function(owner, function, "q1, q2, ...")
        ones = frozen(np.ones(len(on)))
        self._couplings[name] = Coupling(
            name,
            RELATION,
            tuple(on),
            ones,
            function=law,
            unit=unit or units.pop(),
            places=tuple(places) if any(places) else (),
        )
        return name

    def belt(
        self, name: str, joint1: str, joint2: str, *, radius1: float, radius2: float, crossed: bool = False
    ) -> str:
        """Let a belt or chain that does not slip couple two pulleys (radii in m), and return the coupling's name.

        The joints turn about parallel axes, the same way; `crossed` the other way. The axles stand on one body, which
        holds the tension of the belt. `run["name.force"]` (N) is the difference of the tensions of the two sides.
        """
        for what, radius in (("radius1", radius1), ("radius2", radius2)):
            if not float(numbers(f"belt {name!r}", what, radius, ())) > 0:
                raise ModelError(f"belt {name!r}: {what} must be above 0, got {radius:g}; it is the radius of a pulley")
        return self.couple(name, {joint1: radius1, joint2: radius2 if crossed else -radius2}, unit="m")

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
            function: run on CasADi symbols by `build`.
            unit: of the expression, or of its integral over time for a constraint on rates: "m" or "rad".

        """
        owner, on = self._on_bodies("constraint", name, bodies)
        if not callable(function):
            raise ModelError(f"{owner}: function must be a function of (t, poses, twists), got {function!r}")
        self._constraints[name] = Constraint(name, on, function, unit)
        return name

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
        if any(name in group for group in (self._forces, self._couplings, self._constraints, self._controllers)):
            raise ModelError(f"{what} {name!r}: the name is taken; forces, motions and couplings must differ in name")
        return f"{what} {name!r}"

    def _on_bodies(
        self, what: str, name: str, bodies: str | Sequence[str], count: int = 0
    ) -> tuple[str, tuple[int, ...]]:
        """How messages call an element on some bodies, and the bodies' indices; `count` 0 is any number of bodies."""
        owner = self._claim_force(what, name)
        if not isinstance(bodies, Sequence):
            raise ModelError(f"{owner}: bodies must be a list of body names, got {bodies!r}")
        names = [bodies] if isinstance(bodies, str) else list(bodies)
        if count and len(names) != count:
            raise ModelError(f"{owner}: it acts on {count} bodies, got {bodies!r}")
        ends = ("body1", "body2") if count == 2 else ("body",) * len(names)
        on = tuple(self._index(owner, end, body) for end, body in zip(ends, names, strict=True))
        if count == 2 and on[0] == on[1]:
            raise ModelError(f"{owner}: body1 and body2 are both {names[0]!r}; it acts between two different bodies")
        if count == 1 and on[0] == GROUND:
            raise ModelError(f"{owner}: it acts on the ground, which does not move; name a body")
        if set(on) <= {GROUND} or len(set(on)) < len(on):
            raise ModelError(f"{owner}: bodies must name one or more that move, each once, got {bodies!r}")
        return owner, on

    def _joint(self, owner: str, name: Any) -> tuple[int, Kind]:
        if not isinstance(name, str) or name not in self._joints:
            raise UnknownNameError(
                f"{owner}: joint {name!r} is not one of the joints so far{nearest(name, self._joints)}"
            )
        kind = self._joints[name].kind
        if kind.nv == 0:
            raise ModelError(f"{owner}: joint {name!r} ({kind.name}) has no coordinate to act along")
        if len(self._joint_places) != len(self._joints):  # joints are never taken away
            self._joint_places = {joint: place for place, joint in enumerate(self._joints)}
        return self._joint_places[name], kind

    def _coordinates(self, owner: str, name: Any) -> tuple[int, Kind, tuple[int, ...]]:
        """A joint, its kind with the coordinates that a name means, and their numbers: `A`, all, or `A[1]`, one."""
        found = NUMBERED.fullmatch(name) if isinstance(name, str) and name not in self._joints else None
        if found is None or found[1] not in self._joints:
            return *self._joint(owner, name), ()
        index, kind = self._joint(owner, found[1])
        k = int(found[2])
        if kind.nq != kind.nv:
            raise ModelError(
                f"{owner}: joint {found[1]!r} ({kind.title}) has a quaternion, and {name!r} is no coordinate to act "
                "along; name the joint, for a limit with angle=, swing= or twist="
            )
        if k >= kind.nv:
            known = ", ".join(repr(f"{found[1]}[{i}]") for i in range(kind.nv))
            raise ModelError(f"{owner}: joint {found[1]!r} ({kind.title}) has no coordinate {name!r}; it has {known}")
        return (index, kind, ()) if kind.nv == 1 else (index, kind.part([k]), (k,))

    def _index(self, owner: str, what: str, name: str) -> int:
        if not isinstance(name, str) or name not in self._order:
            fixed = name is None or str(name).lower() in ("world", "base", "earth", "fixed", "inertial")
            hint = "; what does not move is 'ground'" if fixed else nearest(name, self._order)
            if isinstance(name, str) and name in self._frames:
                frame = self._frames[name]
                body, place = list(self._order)[frame.body - GROUND], ", ".join(f"{x:g}" for x in frame.at.position)
                hint = f" but a frame; give its body {body!r}, and the point ({place}) as {PLACES.get(what, 'at')}"
            raise UnknownNameError(f"{owner}: {what} {name!r} is not a body{hint}")
        return self._order[name]


def read_name(what: str, name: object) -> str:
    """Read a name: text that is not empty and has no control characters."""
    if not isinstance(name, str) or not name.strip():
        raise ModelError(f"{what}: a name must be a non-empty string, got {name!r}")
    if found := OBEYED.search(name):
        raise ModelError(f"{what} {name!r}: its name has the control character {found[0]!r}; leave it out")
    return name


def read_armature(owner: str, value: Any, kind: Kind) -> np.ndarray | None:
    """Armature (nv,) of a joint; None if it is zero."""
    if type(value) is float and value == 0:
        return None
    array = not_negative(owner, "armature", each(owner, "armature", value, kind.nv), "it is an inertia")
    return frozen(array) if array.any() else None


def _read_function(owner: str, function: Any, arguments: str) -> Any:
    if not callable(function):
        raise ModelError(f"{owner}: function must be a function of ({arguments}), got {function!r}")
    return function


def _twist(owner: str, twist: Any) -> dict[str, float]:
    """Limits of a twist: a pair, or one number both ways."""
    if twist is None:
        return {}
    both = numbers(owner, "twist", twist, (2,) if dimensions(twist) else ())
    low, high = both if both.ndim else (-both, both)
    return {"twist_lower": float(low), "twist_upper": float(high)}


def _gap_and_sliding(gap: Callable[..., Any], tangent: Callable[..., Any]) -> Callable[..., Any]:
    """One function that returns the gap, then the velocities of sliding."""

    def both(t: Any, poses: Any, twists: Any) -> list[Any]:
        sliding = tangent(t, poses, twists)
        if not isinstance(sliding, list | tuple):
            import casadi as ca

            sliding = ca.vertsplit(ca.vec(ca.SX(sliding)))
        return [gap(t, poses, twists), *sliding]

    return both


def _read_characteristic(owner: str, what: str, value: Any) -> Table:
    if not isinstance(value, Table) or len(value.axes) != 1:
        raise ModelError(f"{owner}: {what} must be a cd.table of one argument, got {value!r}")
    return value


def _read_effort(owner: str, function: Any, joint: Kind) -> Any:
    """A function along a joint, or a constant: one number for each rate."""
    if callable(function):
        return function
    shape = () if joint.nv == 1 else (joint.nv,)
    value = numbers(owner, "function, where it is not callable,", function, shape)
    return lambda t, q, v: value.ravel()


def _require_one(owner: str, joint: str, kind: Kind) -> None:
    if kind.nv != 1:
        raise ModelError(
            f"{owner}: joint {joint!r} ({kind.title}) has {kind.nv} coordinates; it must have one, or name one of them"
            + f", {f'{joint}[0]'!r}" * (kind.nq == kind.nv)
        )
