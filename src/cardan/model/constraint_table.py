"""The table of constraint kinds: one row for each, with everything that any part of Cardan needs to know of it.

All are between body 1 and body 2, one of which may be the ground. Contacts have up to three rows, along

    normal         from body 2 to body 1; the gap is zero, and its rate is that of the material point of contact
    longitudinal   where the edge of the wheel runs: the axis of the wheel times the normal
    lateral        the normal times longitudinal

so that the force of a row is the component of the contact force on body 1. Rolling is a constraint on rates: the slip,
the velocity of body 1 at the point of contact less that of body 2, is zero along longitudinal and lateral.

Notation: `c`, `o` points of the two bodies, `a` the axis of a wheel, `n` the normal, all in ground components.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cardan.algebra.matrix import Matrix, Scalar, arctan2, beside, dot, is_symbol, sqrt, stack, where
from cardan.algebra.rotation import cross
from cardan.errors import InputError, ModelError
from cardan.model.constraint_kind import ConstraintElement, ConstraintKind, ConstraintRow
from cardan.model.field import AXIS, CURVE, FUNCTION, POSE, POSITIVE, VECTOR, Field
from cardan.model.force import BodyPose
from cardan.model.table import require_smooth

Poses = Sequence[BodyPose]
LIES_FLAT = "a wheel that lies flat has no lowest point"
NO_SLOPE = "its function is not finite, or has no slope; write one that has a slope at the surface"
CONCENTRIC = "with both centres at one place there is no direction between them"
FLAT = 1e-6  # sine of the angle between a wheel and the plane, below which it lies flat
DIRECTIONS = ("normal", "longitudinal", "lateral")


def point_of(pose: BodyPose, at: Matrix) -> Matrix:
    """A point of a body in ground components."""
    return pose.position + pose.rotation @ at


def velocity_at(pose: BodyPose, twist: Matrix, x: Matrix) -> Matrix:
    """Velocity of the point of a body that is now at `x`, in ground components."""
    w, v = pose.rotation @ twist[:3], pose.rotation @ twist[3:]
    return v + cross(w, x - pose.position)


def length_of(x: Matrix) -> Scalar:
    """Length of a vector."""
    return sqrt(dot(x, x))


def unit(x: Matrix) -> Matrix:
    """Direction of a vector."""
    return x / length_of(x)


def tangents(n: Matrix) -> tuple[Matrix, Matrix]:
    """Two directions across a unit vector `n`, so that (first, second, n) is right-handed; for z they are x and y.

    They jump where the third component of `n` changes sign: no choice is smooth on a whole sphere. Rows on rates with
    no slip may jump: their equations say the same.
    """
    sign = where(n[2] < 0, -1.0, 1.0)
    a = -1 / (sign + n[2])
    b = n[0] * n[1] * a
    return stack(1 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]), stack(b, sign + n[1] * n[1] * a, -n[1])


class Contact(NamedTuple):
    """The gap (m) of two bodies, where they touch, and the three directions there; all in ground components."""

    gap: Scalar
    point: Matrix
    normal: Matrix
    longitudinal: Matrix
    lateral: Matrix


def rolls(
    name: str, touch: Callable[[ConstraintElement, Poses], Contact], fields: dict[str, Field],
    known: tuple[str, ...] = DIRECTIONS, held: tuple[str, ...] = DIRECTIONS, guided: bool = False,
    check: Callable[[ConstraintElement], None] | None = None, undefined: str = "",
) -> ConstraintKind:  # fmt: skip
    """A kind of rolling contact, from its geometry.

    `known` are its rows, of which elements have those in `held` unless they say otherwise. Where it is `guided` the
    lateral row is on positions: the point of contact stays where it is across.
    """

    def law(e: ConstraintElement, t: Scalar, poses: Poses, twists: Sequence[Matrix]) -> list[Scalar]:
        at = touch(e, poses)
        first, second = (velocity_at(pose, twist, at.point) for pose, twist in zip(poses, twists, strict=True))
        slip = first - second
        across = at.point - point_of(poses[1], e["at2"]) if guided else slip
        rows = {"normal": at.gap, "longitudinal": dot(at.longitudinal, slip), "lateral": dot(at.lateral, across)}
        return [rows[row] for row in known]

    def contact(e: ConstraintElement, poses: Poses) -> tuple[Matrix, Matrix]:
        at = touch(e, poses)
        return at.point, beside(*(getattr(at, row) for row in known))

    rows = tuple(ConstraintRow(row, held=row in held) for row in known)
    return ConstraintKind(name, law, rows, fields, contact=contact, mark="contact", check=check, undefined=undefined)


# Wheels and spheres.


def _wheel_on_plane(e: ConstraintElement, poses: Poses) -> Contact:
    """The lowest point of a thin disc; where it lies flat there is none, and what is computed is not finite."""
    a, n = poses[0].rotation @ unit(e["axis"]), poses[1].rotation @ unit(e["normal"])
    c, o = point_of(poses[0], e["at1"]), point_of(poses[1], e["at2"])
    across = cross(a, n)
    square = dot(across, across)
    if is_symbol(square) and not square.is_constant():
        square = where(square > FLAT * FLAT, square, -1.0)
    sine = sqrt(square)
    longitudinal = across / sine
    point = c + e["radius"] * cross(a, longitudinal)
    return Contact(dot(n, c - o) - e["radius"] * sine, point, n, longitudinal, cross(n, longitudinal))


def _wheel_on_rail(e: ConstraintElement, poses: Poses) -> Contact:
    """The lowest point of a thin disc on a straight rail in a plane, along the rail and across it."""
    at = _wheel_on_plane(e, poses)
    way = poses[1].rotation @ e["along"]
    along = unit(way - at.normal * dot(at.normal, way))
    return at._replace(longitudinal=along, lateral=cross(at.normal, along))


def _sphere_on_plane(e: ConstraintElement, poses: Poses) -> Contact:
    own = unit(e["normal"])
    R = poses[1].rotation
    n, first, second = (R @ direction for direction in (own, *tangents(own)))
    c, o = point_of(poses[0], e["at1"]), point_of(poses[1], e["at2"])
    return Contact(dot(n, c - o) - e["radius"], c - e["radius"] * n, n, first, second)


def _sphere_and_sphere(inside: bool) -> Callable[[ConstraintElement, Poses], Contact]:
    def touch(e: ConstraintElement, poses: Poses) -> Contact:
        R = poses[1].rotation
        c, o = point_of(poses[0], e["at1"]), point_of(poses[1], e["at2"])
        apart = length_of(c - o)
        n = (o - c if inside else c - o) / apart
        gap = e["radius2"] - e["radius"] - apart if inside else apart - e["radius"] - e["radius2"]
        first, second = (R @ direction for direction in tangents(R.T @ n))
        return Contact(gap, c - e["radius"] * n, n, first, second)

    return touch


def _wheel_and_wheel(inside: bool) -> Callable[[ConstraintElement, Poses], Contact]:
    """Pitch circles of parallel axes, in the plane across them."""

    def touch(e: ConstraintElement, poses: Poses) -> Contact:
        a = poses[0].rotation @ unit(e["axis"])
        c, o = point_of(poses[0], e["at1"]), point_of(poses[1], e["at2"])
        away = c - o - a * dot(a, c - o)
        apart = length_of(away)
        n = (-away if inside else away) / apart
        gap = e["radius2"] - e["radius"] - apart if inside else apart - e["radius"] - e["radius2"]
        return Contact(gap, c - e["radius"] * n, n, cross(a, n), a)

    return touch


def _knife_edge(e: ConstraintElement, poses: Poses) -> Contact:
    edge, n = poses[0].rotation @ e["edge"], poses[1].rotation @ unit(e["normal"])
    c, o = point_of(poses[0], e["at1"]), point_of(poses[1], e["at2"])
    lateral = unit(cross(n, edge))
    return Contact(dot(n, c - o), c, n, cross(lateral, n), lateral)


def _fits_inside(e: ConstraintElement) -> None:
    small, large = float(e.numbers["radius"]), float(e.numbers["radius2"])
    if not small < large:
        raise ModelError(
            f"{e.owner}: radius must be below radius2, since it rolls inside; got {small:g} and {large:g} m; body1 "
            "is the smaller one"
        )


def _rail_in_plane(e: ConstraintElement) -> None:
    along, normal = (np.asarray(e.numbers[what], dtype=float) for what in ("along", "normal"))
    if np.linalg.norm(np.cross(along, normal)) <= FLAT * np.linalg.norm(along) * np.linalg.norm(normal):
        raise ModelError(
            f"{e.owner}: along must not be parallel to normal, since the rail is in the plane; got {along} and {normal}"
        )


# A rod without mass, and points on curves and surfaces.


def _distance(e: ConstraintElement, t: Scalar, poses: Poses, twists: Sequence[Matrix]) -> list[Scalar]:
    """What the points are nearer than the length, so that the force of the row is a tension."""
    return [e["length"] - length_of(point_of(poses[1], e["at2"]) - point_of(poses[0], e["at1"]))]


def _local(e: ConstraintElement, poses: Poses) -> Matrix:
    """The point of body 1 in the frame of body 2."""
    return e["at2_rotation"].T @ (poses[1].rotation.T @ (point_of(poses[0], e["at1"]) - point_of(poses[1], e["at2"])))


def _level(function: Any, x: Matrix) -> Scalar:
    """A function of three numbers over the length of its gradient: near zero, the distance from its surface."""
    import casadi as ca

    s = ca.SX.sym("s", 3)
    value = function(s[0], s[1], s[2])
    distance: Any = ca.Function("distance", [s], [value / ca.norm_2(ca.gradient(value, s))])
    return distance(x)


def _on_surface(e: ConstraintElement, t: Scalar, poses: Poses, twists: Sequence[Matrix]) -> list[Scalar]:
    return [_level(e["surface"], _local(e, poses))]


def _on_curve(e: ConstraintElement, t: Scalar, poses: Poses, twists: Sequence[Matrix]) -> list[Scalar]:
    return [_level(e[name], _local(e, poses)) for name in ("first", "second")]


def _along_curve(e: ConstraintElement, t: Scalar, poses: Poses, twists: Sequence[Matrix]) -> list[Scalar]:
    """How far the point is from the nearest one of the curve, along the two directions across the curve there."""
    x, curve = _local(e, poses), e["curve"].plain
    r, R = curve.graph(curve.nearest(x))
    away = R.T @ (x - r)
    return [away[1], away[2]]


def _across_curve(e: ConstraintElement, poses: Poses) -> tuple[Matrix, Matrix]:
    """The point, and the two directions."""
    curve = e["curve"].plain
    _, R = curve.graph(curve.nearest(_local(e, poses)))
    return point_of(poses[0], e["at1"]), (poses[1].rotation @ e["at2_rotation"] @ R)[:, 1:]


def _one_place(e: ConstraintElement) -> None:
    """Refuse a curve that comes back to itself: which part of it the point is on is not known from its place."""
    if why := e.functions["curve"].plain.why_unknown(False):
        raise ModelError(
            f"{e.owner}: {why.partition(', or let')[0]}; connect a body to it with cd.Curvilinear, and the point to "
            "that body with cd.Spherical"
        )


# Cams: a polar profile about the z axis of a frame on body 2, and a follower on body 1.


def _cam_roller(e: ConstraintElement, t: Scalar, poses: Poses, twists: Sequence[Matrix]) -> list[Scalar]:
    """How far the centre of the roller is from the pitch curve `r = profile(angle)`, to first order."""
    x = _local(e, poses)
    r, angle = sqrt(x[0] * x[0] + x[1] * x[1]), arctan2(x[1], x[0])
    slope = _slope(e["profile"], angle) / r
    return [(r - e["profile"](angle)) / sqrt(1 + slope * slope)]


def _cam_flat(e: ConstraintElement, t: Scalar, poses: Poses, twists: Sequence[Matrix]) -> list[Scalar]:
    """How far a flat face is from the tangent of the cam that is parallel to it, `profile(angle)` from the axis."""
    n = e["at2_rotation"].T @ (poses[1].rotation.T @ (poses[0].rotation @ e["face"]))
    flat = sqrt(n[0] * n[0] + n[1] * n[1])
    x = _local(e, poses)
    return [(n[0] * x[0] + n[1] * x[1]) / flat - e["profile"](arctan2(n[1], n[0]))]


def _slope(function: Any, x: Scalar) -> Matrix:
    import casadi as ca

    s = ca.SX.sym("s")
    slope: Any = ca.Function("slope", [s], [ca.gradient(function(s), s)])
    return slope(x)


def _profile(e: ConstraintElement) -> Any:
    """Value and two derivatives of a cam's profile, as a graph of the angle."""
    import casadi as ca

    s = ca.SX.sym("s")
    traced = e.traced_function("profile")
    require_smooth(e.owner, traced)
    value = traced(s)
    slope = ca.gradient(value, s)
    return ca.Function("profile", [s], [value, slope, ca.gradient(slope, s)])


def _check_flat_profile(e: ConstraintElement) -> None:
    """Refuse the profile of a cam for a flat face that is not convex: the face would touch it elsewhere."""
    _check_profile(e)
    angle = np.linspace(-np.pi, np.pi, 721)
    value, _, second = _values(_profile(e), angle)
    radius = value + second
    if radius.min() < 0:
        raise ModelError(
            f"{e.owner}: a flat face touches a convex cam only, and its radius of curvature, profile plus its second "
            f"derivative, is {radius.min():.4g} m at {angle[radius.argmin()]:.4g} rad; take a larger base circle, or a "
            "roller"
        )


def _check_profile(e: ConstraintElement) -> None:
    """Refuse the profile of a cam that is not closed, not positive, or has a corner."""
    graph = _profile(e)
    angle = np.linspace(-np.pi, np.pi, 721)
    found = _values(graph, angle)
    if not np.isfinite(found).all():
        bad = angle[~np.isfinite(found).all(axis=0)][0]
        raise ModelError(f"{e.owner}: profile, or one of two derivatives of it, is not finite at {bad:.4g} rad")
    if found[0].min() <= 0:
        raise ModelError(
            f"{e.owner}: profile must be above 0, the distance from the axis of the cam; it is {found[0].min():.4g} m "
            f"at {angle[found[0].argmin()]:.4g} rad"
        )
    size = np.abs(found).max(axis=1) + 1e-9 * found[0].max()
    for what, difference, scale in zip(("value", "slope"), found[:2, 0] - found[:2, -1], size[:2], strict=True):
        if abs(difference) > 1e-6 * scale:
            raise ModelError(
                f"{e.owner}: profile must be closed, and its {what} at -pi and pi differs by {abs(difference):.4g}; "
                "write a function of period 2 pi"
            )
    middle = (found[2, 1:] + found[2, :-1]) / 2
    worst = np.argsort(-np.abs(np.diff(found[1]) - middle * np.diff(angle)))[:12]
    low, high = angle[worst], angle[worst + 1]
    for _ in range(40):  # a jump of the slope stays, whatever the interval; a smooth change goes with it
        half = (low + high) / 2
        slopes = _values(graph, np.concatenate([low, half, high]))[1].reshape(3, -1)
        first = np.abs(slopes[1] - slopes[0]) > np.abs(slopes[2] - slopes[1])
        low, high = np.where(first, low, half), np.where(first, half, high)
    jump = np.abs(slopes[2] - slopes[0])
    if jump.max() > 1e-6 * size[1]:
        raise ModelError(
            f"{e.owner}: profile has a corner at {low[jump.argmax()]:.4g} rad, where its slope jumps by "
            f"{jump.max():.4g} m/rad; accelerations need two derivatives: round it off, or give a table with smooth=2"
        )


def _values(graph: Any, x: np.ndarray) -> np.ndarray:
    """Results (k, n) of a function of one number at many."""
    return np.array([np.array(part).ravel() for part in graph.map(len(x))(x[None])])


# A constant-velocity joint.


def _constant_velocity(e: ConstraintElement, t: Scalar, poses: Poses, twists: Sequence[Matrix]) -> list[Scalar]:
    """The centres coincide, in the axes of frame 1; and shaft 2 is turned from shaft 1 across both, without twist.

    The shafts are the z axes of the frames. A turn that takes one shaft to the other and a twist about it by the angle
    psi have `R10 - R01 = (1 + cos) sin psi` and `R00 + R11 = (1 + cos) cos psi`.
    """
    A1, A2 = (pose.rotation @ e[f"{at}_rotation"] for pose, at in zip(poses, ("at1", "at2"), strict=True))
    d = A1.T @ (point_of(poses[1], e["at2"]) - point_of(poses[0], e["at1"]))
    R = A1.T @ A2
    return [d[0], d[1], d[2], arctan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])]


RADIUS = Field("m", "radius, m", rule=POSITIVE, letter="r")
RADIUS2 = Field("m", "radius of what it rolls on, m", rule=POSITIVE, letter="R")
WHEEL_AXIS = Field("1", "axis of the wheel, in the frame of body1", AXIS, letter="a")
CENTRE = Field("m", "centre, a point of body1, m", VECTOR, default=0.0, letter="c")
PLACE = Field("m", "a point of the plane, of body2, m", VECTOR, default=0.0, letter="o")
CENTRE2 = Field("m", "centre of what it rolls on, a point of body2, m", VECTOR, default=0.0, letter="o")
NORMAL = Field("1", "normal of the plane, to body1, in the frame of body2", AXIS, default=(0.0, 0.0, 1.0), letter="n")
FRAME1 = Field("m", "frame on body1", POSE, default=(0.0, 0.0, 0.0), letter="a")
FRAME2 = Field("m", "frame on body2", POSE, default=(0.0, 0.0, 0.0), letter="b")
POINT1 = Field("m", "point of body1, m", VECTOR, default=0.0, letter="a")
POINT2 = Field("m", "point of body2, m", VECTOR, default=0.0, letter="b")
PLACED = (("x", "m"), ("y", "m"), ("z", "m"))

WHEEL_ON_PLANE = rolls(
    "wheel on plane", _wheel_on_plane,
    {"radius": RADIUS, "axis": WHEEL_AXIS, "at1": CENTRE, "at2": PLACE, "normal": NORMAL}, undefined=LIES_FLAT,
)  # fmt: skip
WHEEL_ON_RAIL = rolls(
    "wheel on rail", _wheel_on_rail,
    {
        "radius": RADIUS, "axis": WHEEL_AXIS, "along": Field("1", "direction of the rail, in the frame of body2", AXIS),
        "at1": CENTRE, "at2": PLACE, "normal": NORMAL,
    },
    guided=True, check=_rail_in_plane, undefined=LIES_FLAT,
)  # fmt: skip
SPHERE_ON_PLANE = rolls(
    "sphere on plane", _sphere_on_plane, {"radius": RADIUS, "at1": CENTRE, "at2": PLACE, "normal": NORMAL}
)
SPHERE_FIELDS = {"radius": RADIUS, "radius2": RADIUS2, "at1": CENTRE, "at2": CENTRE2}
SPHERE_ON_SPHERE = rolls("sphere on sphere", _sphere_and_sphere(False), SPHERE_FIELDS, undefined=CONCENTRIC)
SPHERE_IN_SPHERE = rolls(
    "sphere in sphere", _sphere_and_sphere(True), SPHERE_FIELDS, check=_fits_inside, undefined=CONCENTRIC
)
WHEEL_FIELDS = {"radius": RADIUS, "radius2": RADIUS2, "axis": WHEEL_AXIS, "at1": CENTRE, "at2": CENTRE2}
IN_PLANE = ("normal", "longitudinal")
WHEEL_ON_WHEEL = rolls("wheel on wheel", _wheel_and_wheel(False), WHEEL_FIELDS, IN_PLANE, undefined=CONCENTRIC)
WHEEL_IN_WHEEL = rolls(
    "wheel in wheel", _wheel_and_wheel(True), WHEEL_FIELDS, IN_PLANE, check=_fits_inside, undefined=CONCENTRIC
)
KNIFE_EDGE = rolls(
    "knife edge", _knife_edge,
    {
        "edge": Field("1", "direction of the edge, in the frame of body1", AXIS, default=(1.0, 0.0, 0.0), letter="e"),
        "at1": POINT1, "at2": PLACE, "normal": NORMAL,
    },
    ("normal", "lateral"), ("lateral",), undefined="an edge across the plane has no direction in it",
)  # fmt: skip
DISTANCE = ConstraintKind(
    "distance", _distance, mark="rod", undefined="with both points at one place the rod has no direction",
    fields={"length": Field("m", "length, m", rule=POSITIVE, letter="l"), "at1": POINT1, "at2": POINT2},
)  # fmt: skip
POINT_ON_SURFACE = ConstraintKind(
    "point on surface", _on_surface, (ConstraintRow("normal"),),
    {
        "surface": Field("1", "zero on the surface; an expression of x, y, z in frame 2", FUNCTION, arguments=PLACED),
        "at1": POINT1, "at2": FRAME2,
    },
    undefined=NO_SLOPE,
)  # fmt: skip
POINT_ON_CURVE = ConstraintKind(
    "point on curve", _on_curve, (ConstraintRow("first"), ConstraintRow("second")),
    {
        "first": Field("1", "zero on a surface through the curve; of x, y, z in frame 2", FUNCTION, arguments=PLACED),
        "second": Field("1", "zero on another surface through it", FUNCTION, arguments=PLACED),
        "at1": POINT1, "at2": FRAME2,
    },
    undefined=NO_SLOPE,
)  # fmt: skip
POINT_ALONG_CURVE = ConstraintKind(
    "point along curve", _along_curve, (ConstraintRow("first"), ConstraintRow("second")),
    {
        "curve": Field("m", "the curve in frame 2, by its name in the section `curves`", CURVE), "at1": POINT1,
        "at2": FRAME2,
    },
    contact=_across_curve, check=_one_place,
)  # fmt: skip
PROFILE = Field("m", "distance from the axis of the cam, m; of the angle about z of frame 2", FUNCTION,
                arguments=(("angle", "rad"),))  # fmt: skip
CAM_ROLLER = ConstraintKind(
    "cam and roller", _cam_roller, (ConstraintRow("normal"),), {"profile": PROFILE, "at1": POINT1, "at2": FRAME2},
    check=_check_profile,
)  # fmt: skip
CAM_FLAT = ConstraintKind(
    "cam and flat face", _cam_flat, (ConstraintRow("normal"),),
    {
        "profile": PROFILE,
        "face": Field("1", "normal of the face, away from the cam, in the frame of body1", AXIS, letter="n"),
        "at1": Field("m", "a point of the face, of body1, m", VECTOR, default=0.0, letter="a"), "at2": FRAME2,
    },
    check=_check_flat_profile, undefined="a face along the plane of the cam has no normal in it",
)  # fmt: skip
CONSTANT_VELOCITY = ConstraintKind(
    "constant velocity", _constant_velocity, (*map(ConstraintRow, "xyz"), ConstraintRow("twist", "rad")),
    {"at1": FRAME1, "at2": FRAME2},
)  # fmt: skip

CONSTRAINTS: dict[str, ConstraintKind] = {
    kind.name: kind
    for kind in (
        WHEEL_ON_PLANE, WHEEL_ON_RAIL, WHEEL_ON_WHEEL, WHEEL_IN_WHEEL, SPHERE_ON_PLANE, SPHERE_ON_SPHERE,
        SPHERE_IN_SPHERE, KNIFE_EDGE, DISTANCE, POINT_ON_SURFACE, POINT_ON_CURVE, POINT_ALONG_CURVE, CAM_ROLLER,
        CAM_FLAT,
        CONSTANT_VELOCITY,
    )
}  # fmt: skip
"""Cardan's own kinds of constraint elements."""
ADDED_CONSTRAINTS: dict[str, ConstraintKind] = {}
"""Those that `add_constraint` registered, by their names in files."""
RESERVED = ("motion", "coupling", "relation", "user")
"""What files call other constraints."""


def add_constraint(kind: ConstraintKind) -> ConstraintKind:
    """Register a kind of constraint element of your own, so that files can name it; returns the kind.

    A kind registered again under its name replaces the one before. A kind that is not registered works everywhere but
    in `save` and `load`.
    """
    if not isinstance(kind, ConstraintKind):
        raise InputError(f"add_constraint: a kind of constraint is a cd.ConstraintKind, got {kind!r}")
    if kind.in_files in (*RESERVED, *CONSTRAINTS) or kind.name in CONSTRAINTS:
        raise InputError(f"add_constraint: constraint {kind.name!r} is Cardan's own; choose another name")
    ADDED_CONSTRAINTS[kind.in_files] = kind
    return kind


def constraint_kinds() -> dict[str, ConstraintKind]:
    """Every kind of constraint element that files can name, by name."""
    return {kind.in_files: kind for kind in CONSTRAINTS.values()} | ADDED_CONSTRAINTS


def own_constraint(name: str) -> ConstraintKind:
    """A kind of Cardan's own, by name."""
    return CONSTRAINTS[name]
