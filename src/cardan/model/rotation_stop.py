"""Stops of the rotation of a joint that has a quaternion: its whole angle, its swing and its twist.

`R` (3, 3) are the axes of M in F, `a` a unit axis, the same in F and in M. Where

    w = a . vee(R - R^T),  vee(R - R^T) = 2 n sin(angle)

    angle    of the whole rotation, about n:        tan(angle) = |vee(R - R^T)| / (tr R - 1)
    swing    between the axes a of F and of M:      tan(swing) = |a x R a| / (a . R a)
    twist    about a, apart from the swing:         tan(twist) = w / (tr R - a . R a)

`R` is the swing, a turn about an axis square to a, after the twist, a turn about a. All are in rad. Angle and swing
have a corner at zero, where a stop is far, and are smooth up to half a turn.

A hard stop is a row between the two bodies, whose force is a moment. A compliant one acts along the joint's rates: if
`m` (3,) is the rate of the gap for each component of the angular velocity of M, its moment is `m` times its push.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cardan.algebra.free_number import expression, nominal_of
from cardan.algebra.matrix import Matrix, Scalar, arctan2, constant, dot, sqrt, vector, where, zeros
from cardan.algebra.rotation import cross, rotation_of_quaternion, skew
from cardan.errors import ModelError
from cardan.model.body import Joint
from cardan.model.constraint import Constraint
from cardan.model.field import NOT_NEGATIVE, POSITIVE, VECTOR, Field
from cardan.model.force import FORCES, BodyPose, Force, ForceKind
from cardan.model.law import RESTITUTION, LawfulElement, is_compliant, pushing
from cardan.model.row import Law

CORNER = 1e-20  # rad^2, added before a root is taken: derivatives are finite at the corner of an angle


def _vee(R: Matrix) -> Matrix:
    """`vee(R - R^T)`."""
    return vector(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])


def angle_of(R: Matrix, a: Matrix) -> Scalar:
    """Angle of the whole rotation, from 0 to pi."""
    s = _vee(R)
    return arctan2(sqrt(dot(s, s) + CORNER), R[0, 0] + R[1, 1] + R[2, 2] - 1)


def swing_of(R: Matrix, a: Matrix) -> Scalar:
    """Angle between the axes a of F and M, from 0 to pi."""
    turned = R @ a
    s = cross(a, turned)
    return arctan2(sqrt(dot(s, s) + CORNER), dot(a, turned))


def twist_of(R: Matrix, a: Matrix) -> Scalar:
    """Angle about a, from -pi to pi."""
    return arctan2(dot(a, _vee(R)), R[0, 0] + R[1, 1] + R[2, 2] - dot(a, R @ a))


# Each limit: what it limits, and the direction in which its force turns.
LIMITS: dict[str, tuple[Callable[[Matrix, Matrix], Scalar], float]] = {
    "angle": (angle_of, -1.0),
    "swing": (swing_of, -1.0),
    "twist_lower": (twist_of, 1.0),
    "twist_upper": (twist_of, -1.0),
}


def _axis(f: Force) -> Matrix:
    axis = np.asarray(f.numbers["axis"], dtype=float)
    size = float(np.linalg.norm(axis))
    if not size > 0:
        raise ModelError(f"{f.owner}: its axis has no direction, got {axis.tolist()}; give one such as (0, 0, 1)")
    return constant(axis / size)


def _pushes(f: Force, q: Matrix, v: Matrix) -> list[tuple[Scalar, Scalar, Matrix]]:
    """How deep a joint is in each stop, the rate of that, and the moment (3,) in M of a unit push."""
    import casadi as ca

    R, own = rotation_of_quaternion(q[q.shape[0] - 4 :]), ca.SX.sym("R", 3, 3)
    found: list[tuple[Scalar, Scalar, Matrix]] = []
    for name, (measured, sign) in LIMITS.items():
        if name in f.numbers:
            gap = sign * (measured(own, _axis(f)) - f.number(name))
            along = [ca.jtimes(gap, own, own @ skew(constant(e))) for e in np.eye(3)]
            gap, *along = ca.substitute([gap, *along], [own], [R])
            m = ca.vertcat(*along)
            found.append((-gap, -dot(m, v[:3]), m))
    return found


def _moments(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    tau = zeros(v.shape[0], None, v)
    if "stiffness" in f.numbers:
        for depth, rate, m in _pushes(f, q, v):
            tau[:3] = tau[:3] + m * pushing(f, depth, rate)
    return tau


def _energy(f: Force, q: Matrix) -> Scalar:
    energy = zeros(1, None, q)
    if "stiffness" in f.numbers:
        for depth, _, _ in _pushes(f, q, zeros(3, None, q)):
            deep = where(depth > 0, depth, 0.0)
            energy = energy + f.number("stiffness") / 2 * deep * deep
    return energy


def _row(f: Force, joint: Joint, name: str) -> Constraint:
    """The gap of one limit, between the bodies of the joint."""
    measured, sign = LIMITS[name]
    F, M, axis = constant(joint.at.rotation), constant(joint.child_at.rotation), _axis(f)

    def gap(t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> Scalar:
        R = (poses[0].rotation @ F).T @ (poses[1].rotation @ M)
        return sign * measured(R, axis)

    limit = -sign * expression(f.numbers[name].ravel()[0])
    return Constraint(f.name, (joint.parent, joint.child), gap, "rad", added=limit).traced()


def has_quaternion(joint: Joint) -> bool:
    """Whether its coordinates end with a quaternion and its rates begin with the angular velocity in M."""
    kind = joint.kind
    if kind.nq != kind.nv + 1:
        return False
    S = np.asarray(kind.S(np.array(kind.neutral)), dtype=float)
    return np.array_equal(S[:, :3], np.eye(6)[:, :3]) and kind.q_units[-4:] == ("1",) * 4


def _lawful_rotation(f: Force, joints: Sequence[Joint]) -> LawfulElement | None:
    joint = joints[f.on[0]]
    if not has_quaternion(joint):
        raise ModelError(
            f"{f.owner}: joint {joint.name!r} ({joint.kind.title}) has no quaternion; angle, swing and twist are of "
            "ball and free joints: limit its coordinates with lower and upper"
        )
    given = {name: nominal_of(f.numbers[name].ravel()[0]) for name in LIMITS if name in f.numbers}
    if not given:
        raise ModelError(f"{f.owner}: it has no limit; give angle, swing or twist")
    for name, least in (("angle", 0.0), ("swing", 0.0), ("twist_lower", -np.pi), ("twist_upper", -np.pi)):
        if name in given and not least < given[name] < np.pi:
            low = "0" if least == 0 else "-pi"
            hint = "; cd.deg(30) is 30 degrees in rad" if abs(given[name]) > np.pi else ""
            raise ModelError(
                f"{f.owner}: {name} must be above {low} and below pi, half a turn, got {given[name]:g} rad{hint}"
            )
    if ("twist_lower" in given) != ("twist_upper" in given):
        raise ModelError(f"{f.owner}: a twist is limited both ways; give twist=(lower, upper)")
    if "twist_lower" in given and given["twist_lower"] > given["twist_upper"]:
        low, high = given["twist_lower"], given["twist_upper"]
        raise ModelError(f"{f.owner}: twist_lower {low:g} is above twist_upper {high:g}; exchange them")
    _axis(f)  # rejects one without a direction
    if is_compliant(f):
        return None
    rows = tuple(_row(f, joint, name) for name in given)
    return LawfulElement(f, rows, (Law.UNILATERAL,) * len(rows), tuple(name.replace("_", " ") for name in given))


ROTATION_STOP = ForceKind(
    "rotation stop", "joint", _moments, _energy, mark="element", file_name="rotation_stop", lawful=_lawful_rotation,
    fields={
        "angle": Field("rad", "largest angle of the whole rotation, rad", default=None, letter="q_u", data="position"),
        "swing": Field("rad", "largest angle between the axis on the parent and on the child, rad", default=None),
        "twist_lower": Field("rad", "least turn about the axis, rad", default=None),
        "twist_upper": Field("rad", "largest turn about the axis, rad", default=None),
        "axis": Field("1", "axis of swing and twist, in the joint frame", VECTOR, default=(0.0, 0.0, 1.0), free=False),
        "restitution": RESTITUTION,
        "stiffness": Field("N m/rad", "of a compliant stop, N m/rad; a stop without is hard", rule=POSITIVE,
                           default=None, letter="k"),
        "damping": Field("N m s/rad", "of a compliant stop", rule=NOT_NEGATIVE, default=None, letter="d"),
    },
)  # fmt: skip
# The table of force elements has this too.
FORCES[ROTATION_STOP.name] = ROTATION_STOP
