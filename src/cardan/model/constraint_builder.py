"""Constraint elements of a mechanism under construction: rolling, knife edges, rods, curves, cams, shaft couplings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cardan.errors import ModelError, nearest
from cardan.model.constraint import Constraint
from cardan.model.constraint_kind import ConstraintElement, ConstraintKind
from cardan.model.constraint_table import (
    CAM_FLAT,
    CAM_ROLLER,
    CONSTANT_VELOCITY,
    DISTANCE,
    KNIFE_EDGE,
    POINT_ALONG_CURVE,
    POINT_ON_CURVE,
    POINT_ON_SURFACE,
    SPHERE_IN_SPHERE,
    SPHERE_ON_PLANE,
    SPHERE_ON_SPHERE,
    WHEEL_IN_WHEEL,
    WHEEL_ON_PLANE,
    WHEEL_ON_RAIL,
    WHEEL_ON_WHEEL,
)
from cardan.model.curve import Curve
from cardan.model.elements import Elements
from cardan.model.field import AXIS, CURVE, FUNCTION, frozen
from cardan.model.pitch_curve import pitch_curve
from cardan.model.tree import GROUND

ORIGIN = (0.0, 0.0, 0.0)


class ConstraintElements(Elements):
    """What holds bodies by other means than joints: contacts that roll, edges, rods without mass, curves, cams."""

    def roll(
        self, name: str, body1: str, body2: str, *, radius: float, axis: Any = None, at1: Any = ORIGIN,
        at2: Any = ORIGIN, normal: Any = None, along: Any = None, radius2: float | None = None, inside: bool = False,
        holds: str | Sequence[str] | None = None, friction: float | None = None, static: float | None = None,
        restitution: float = 0.0,
    ) -> str:  # fmt: skip
        """Let a wheel or a sphere roll without slip on a plane, a rail, a wheel or a sphere; return its name.

        Its force is `run["name.force"]`: normal, along the way of the wheel, and sideways; `run["name.point"]` is where
        it touches. With `friction` it may slip and lift off: a hard contact, as `contact` makes it, with the same
        force, the gap `run["name.gap"]`, and no point.

        Args:
            name: unique among forces, motions, couplings and constraints.
            body1: the body that rolls.
            body2: what it rolls on: `ground`, or any body, such as a turntable.
            radius: of the wheel or sphere, m.
            axis: axis (3,) of a wheel, a thin disc, in the frame of body1; without it a sphere rolls.
            at1: centre (3,) of the wheel or sphere in the frame of body1, m.
            at2: a point (3,) of the plane or rail, or the centre of the wheel or sphere, in the frame of body2, m.
            normal: of the plane (3,), towards body1, in the frame of body2; z by default.
            along: direction (3,) of a rail in the plane, in the frame of body2; the wheel keeps to the rail,
                and other joints keep its axle across it.
            radius2: of the wheel or sphere of body2, m; wheels have parallel axes.
            inside: whether body1 rolls inside of body2, as in a bowl or a ring gear.
            holds: which of "normal", "longitudinal" and "lateral" it holds; all by default. A rack and pinion, or a
                wheel whose axle already has its height, holds "longitudinal" alone, or with "lateral".
            friction: coefficient of friction, for a contact that may slip and lift off.
            static: that at rest; by default the same.
            restitution: of such a contact, from 0 to 1.

        """
        given = {"radius": radius, "axis": axis, "at1": at1, "at2": at2, "normal": normal, "along": along}
        if radius2 is not None:
            kinds = (SPHERE_ON_SPHERE, SPHERE_IN_SPHERE) if axis is None else (WHEEL_ON_WHEEL, WHEEL_IN_WHEEL)
            kind = kinds[bool(inside)]
            given["radius2"] = radius2
        elif inside:
            raise ModelError(f"rolling {name!r}: inside needs radius2, the radius of what it rolls in")
        elif axis is None:
            kind = SPHERE_ON_PLANE
        else:
            kind = WHEEL_ON_PLANE if along is None else WHEEL_ON_RAIL
        numbers = {what: value for what, value in given.items() if value is not None}
        if friction is None:
            if static is not None or restitution:
                raise ModelError(
                    f"{kind.name} {name!r}: static and restitution need friction; without it nothing slips"
                )
            return self.constrain(name, kind, (body1, body2), holds=holds, **numbers)
        if holds is not None:
            raise ModelError(f"{kind.name} {name!r}: with friction it holds what friction can; leave out holds")
        return self._slipping(self._element(name, kind, (body1, body2), None, numbers), friction, static, restitution)

    def _slipping(self, element: ConstraintElement, friction: float, static: float | None, restitution: float) -> str:
        """The same contact, with a gap that may open and friction that may slip."""
        law, names = element.kind.law, ["ground", *list(self._order)[1:]]

        def gap(t: Any, poses: Any, twists: Any) -> Any:
            return law(element, t, poses, twists)[0]

        def sliding(t: Any, poses: Any, twists: Any) -> Any:
            return list(law(element, t, poses, twists)[1:])

        bodies = [names[b - GROUND] for b in element.on]
        return self.contact(
            element.name, bodies, gap=gap, tangent=sliding, friction=friction, static=static, restitution=restitution
        )

    def gear(
        self, name: str, body1: str, body2: str, *, radius: float, radius2: float, axis: Any, at1: Any = ORIGIN,
        at2: Any = ORIGIN, inside: bool = False,
    ) -> str:  # fmt: skip
        """Let the pitch circles of two gears with parallel axes roll on each other, and return the pair's name.

        Other joints hold the gears at their distance; the arm between them may turn. The arguments are those of `roll`
        with `holds="longitudinal"`.
        """
        return self.roll(
            name, body1, body2, radius=radius, radius2=radius2, axis=axis, at1=at1, at2=at2, inside=inside,
            holds="longitudinal",
        )  # fmt: skip

    def knife_edge(
        self, name: str, body1: str, body2: str = "ground", *, edge: Any = (1.0, 0.0, 0.0), at1: Any = ORIGIN,
        at2: Any = ORIGIN, normal: Any = (0.0, 0.0, 1.0), holds: str | Sequence[str] | None = None,
    ) -> str:  # fmt: skip
        """Let a point of body1 move along an edge only, not sideways: a blade, a skate; return its name.

        Args:
            name: unique among forces, motions, couplings and constraints.
            body1: the body with the edge.
            body2: the body with the plane.
            edge: direction (3,) in the frame of body1.
            at1: the point (3,) of body1, m.
            at2: a point (3,) of the plane, in the frame of body2, m.
            normal: of the plane (3,), in the frame of body2.
            holds: "lateral", the default, or ["normal", "lateral"] for a skate that stays on the plane.

        """
        return self.constrain(name, KNIFE_EDGE, (body1, body2), holds=holds, edge=edge, at1=at1, at2=at2, normal=normal)

    def distance(
        self, name: str, body1: str, body2: str, *, length: float, at1: Any = ORIGIN, at2: Any = ORIGIN
    ) -> str:
        """Keep the points `at1`, `at2` (m) of two bodies at a distance (m): a rod without mass; return its name.

        `run["name.force"]` is its tension, N.
        """
        return self.constrain(name, DISTANCE, (body1, body2), length=length, at1=at1, at2=at2)

    def on_surface(
        self, name: str, body1: str, body2: str, surface: Callable[..., Any], *, at1: Any = ORIGIN, at2: Any = ORIGIN
    ) -> str:
        """Keep the point `at1` (m) of body1 on a surface of body2, and return the constraint's name.

        `surface(x, y, z)`, of coordinates (m) in the frame `at2` of body2, is zero on the surface, with a slope there.
        The force is along its gradient.
        """
        return self.constrain(name, POINT_ON_SURFACE, (body1, body2), surface=surface, at1=at1, at2=at2)

    def on_curve(
        self, name: str, body1: str, body2: str, curve: Curve | Sequence[Callable[..., Any]], *, at1: Any = ORIGIN,
        at2: Any = ORIGIN,
    ) -> str:  # fmt: skip
        """Keep the point `at1` (m) of body1 on a curve of body2, and return the constraint's name; the body may turn.

        The `curve`, in the frame `at2` of body2, is a `cd.curve`, or two functions of (x, y, z) as in `on_surface`:
        each is zero on the curve, where their surfaces cross. The two components of the force are across a `cd.curve`,
        along y and z of its frame as it is carried without twist; `run["name.point"]` is the point and
        `run["name.ground_force"]` the force on body1 in ground axes. Of two surfaces they are along the gradients.
        """
        if isinstance(curve, Curve):
            return self.constrain(name, POINT_ALONG_CURVE, (body1, body2), curve=curve, at1=at1, at2=at2)
        if not isinstance(curve, Sequence) or len(curve) != 2:
            raise ModelError(
                f"point on curve {name!r}: the curve must be a cd.curve, or two functions of (x, y, z), got {curve!r}"
            )
        first, second = curve
        return self.constrain(name, POINT_ON_CURVE, (body1, body2), first=first, second=second, at1=at1, at2=at2)

    def cam(
        self, name: str, follower: str, cam: str, profile: Callable[..., Any], *, face: Any = None,
        roller: float | None = None, at1: Any = ORIGIN, at2: Any = ORIGIN,
    ) -> str:  # fmt: skip
        """Keep a follower on a cam, and return the constraint's name; its force, positive as it pushes, is normal.

        Args:
            name: unique among forces, motions, couplings and constraints.
            follower: body with a knife edge or a roller, or with a flat face.
            cam: body that turns about the z axis of its frame `at2`.
            profile: `profile(angle)`, m, of the angle (rad) about that axis, of period 2 pi, smooth to two derivatives;
                also a `cd.table`. For a knife edge the profile of the cam; for a roller the path of its centre, the
                pitch curve; for a flat face the distance of the tangent whose normal has that angle.
            roller: radius of a roller, m, with which the profile is that of the cam; its pitch curve is then a table.
            face: normal (3,) of a flat face, away from the cam, in the frame of the follower.
            at1: the edge, the centre of the roller, or a point of the face (3,), in the frame of the follower, m.
            at2: frame on the cam: a position (3,), m, or a `cd.Pose`.

        """
        if roller is not None:
            if face is not None:
                raise ModelError(f"cam {name!r}: a follower has a face or a roller, not both")
            profile = pitch_curve(f"cam {name!r}", profile, roller)
        given = {"profile": profile, "at1": at1, "at2": at2}
        if face is None:
            return self.constrain(name, CAM_ROLLER, (follower, cam), **given)
        return self.constrain(name, CAM_FLAT, (follower, cam), face=face, **given)

    def constant_velocity(
        self, name: str, body1: str, body2: str, *, at1: Any = ORIGIN, at2: Any = ORIGIN,
        holds: str | Sequence[str] | None = None,
    ) -> str:  # fmt: skip
        """Couple two shafts that meet at an angle so that they turn at the same speed: Rzeppa, Thompson, double Cardan.

        The shafts are the z axes of the frames `at1` and `at2`, whose origins coincide. `holds` names some of "x", "y",
        "z" and "twist"; a joint that slides along shaft 1 holds ["x", "y", "twist"], one between shafts that
        bearings hold "twist" alone.
        """
        return self.constrain(name, CONSTANT_VELOCITY, (body1, body2), holds=holds, at1=at1, at2=at2)

    def constrain(
        self, name: str, kind: ConstraintKind, bodies: str | Sequence[str], /, *,
        holds: str | Sequence[str] | None = None, **numbers: Any,
    ) -> str:  # fmt: skip
        """Add a constraint element of any kind, such as one of your own, and return its name.

        Args:
            name: unique among forces, motions, couplings and constraints.
            kind: a `cd.ConstraintKind`.
            bodies: the bodies that it is between, by name.
            holds: names of those rows of the kind that it has; by default those that the kind says.
            numbers: values and functions of the kind's `fields` by name, in their units.

        """
        if not isinstance(kind, ConstraintKind):
            raise ModelError(
                f"constraint {name!r}: kind must be a cd.ConstraintKind, got {kind!r}; a function of your own is "
                "mechanism.constraint(...)"
            )
        self._constraints[name] = self._element(name, kind, bodies, holds, numbers)
        return name

    def _element(
        self, name: str, kind: ConstraintKind, bodies: str | Sequence[str], holds: Any, numbers: dict[str, Any]
    ) -> ConstraintElement:
        """Read and check an element."""
        owner, on = self._on_bodies(kind.name, name, bodies, kind.bodies)
        for what in numbers:
            if what not in kind.fields:
                raise ModelError(f"{owner}: it has no number {what!r}{nearest(what, kind.fields)}")
        values: dict[str, np.ndarray] = {}
        functions: dict[str, Any] = {}
        for what, field in kind.fields.items():
            if field.needed and what not in numbers:
                raise ModelError(f"{owner}: {what!r} must be given")
            value = numbers.get(what, field.default)
            if field.form == CURVE:
                if not isinstance(value, Curve):
                    raise ModelError(f"{owner}: {what} must be made by cd.curve(...), got {value!r}")
                functions[what] = value
                continue
            if field.form == FUNCTION:
                if not callable(value):
                    arguments = ", ".join(argument for argument, _ in field.arguments)
                    raise ModelError(f"{owner}: {what} must be a function of ({arguments}), got {value!r}")
                functions[what] = value
                continue
            values |= field.read(owner, what, value)
            if field.form == AXIS and not values[what].any():
                raise ModelError(f"{owner}: {what} is a direction and must not be zero, got {value!r}")
        kept = {what: frozen(value) for what, value in values.items()}
        element = ConstraintElement(name, kind, on, kept, functions, _held_rows(owner, kind, holds))
        if kind.check is not None:
            kind.check(element)
        return element

    @property
    def own_constraints(self) -> tuple[Constraint | ConstraintElement, ...]:
        """Constraints of the user's own and constraint elements so far."""
        return tuple(self._constraints.values())


def _held_rows(owner: str, kind: ConstraintKind, holds: Any) -> tuple[int, ...]:
    """Numbers of the rows that an element holds."""
    names = [row.name for row in kind.rows]
    if holds is None:
        return tuple(k for k, row in enumerate(kind.rows) if row.held)
    wanted = [holds] if isinstance(holds, str) else list(holds) if isinstance(holds, Sequence) else [holds]
    for name in wanted:
        if name not in names:
            raise ModelError(f"{owner}: it has no row {name!r} to hold; it has {', '.join(map(repr, names))}")
    if not wanted:
        raise ModelError(f"{owner}: it must hold one or more of {', '.join(map(repr, names))}; it holds none")
    return tuple(k for k, name in enumerate(names) if name in wanted)
