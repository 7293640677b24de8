"""Stops of the pose of a joint that has a quaternion: its whole angle, its swing and its twist, and its position.

`R` (3, 3) are the axes of M in F, `p` (3,) is the origin of M in F, `a` a unit axis, the same in F and in M.

    angle       of the whole rotation, about n:        tan(angle) = |vee(R - R^T)| / (tr R - 1)
    swing       between the axes a of F and of M:      tan(swing) = |a x R a| / (a . R a)
    twist       about a, apart from the swing:         tan(twist) = a . vee(R - R^T) / (tr R - a . R a)
    x, y, z     position along the axes of F:          components of p

with `vee(R - R^T) = 2 n sin(angle)`. `R` is the swing, a turn about an axis square to a, after the twist, about a.
Angles are in rad. Angle and swing have a corner at zero, where a stop is far, and are smooth up to half a turn.

A hard stop is a row between the two bodies. A compliant one acts along the joint's rates, the twist of M in F.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cardan.algebra.free_number import expression, nominal_of
from cardan.algebra.matrix import Matrix, Scalar, arctan2, constant, dot, sqrt, vector, where, zeros
from cardan.algebra.rotation import cross, rotation_of_quaternion, skew
from cardan.errors import ModelError
from cardan.model.body import Joint
from cardan.model.constraint import Constraint
from cardan.model.field import NOT_NEGATIVE, POSITIVE, VECTOR, Field
from cardan.model.force import FORCES, BodyPose, Force, ForceKind
from cardan.model.joint import Kind
from cardan.model.law import RESTITUTION, LawfulElement, is_compliant, pushing
from cardan.model.row import Law

CORNER = 1e-20  # rad^2, added before a root is taken: derivatives are finite at the corner of an angle


def _vee(R: Matrix) -> Matrix:
    """`vee(R - R^T)`."""
    return vector(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1])


def angle_of(R: Matrix, p: Matrix, a: Matrix) -> Scalar:
    """Angle of the whole rotation, from 0 to pi."""
    s = _vee(R)
    return arctan2(sqrt(dot(s, s) + CORNER), R[0, 0] + R[1, 1] + R[2, 2] - 1)


def swing_of(R: Matrix, p: Matrix, a: Matrix) -> Scalar:
    """Angle between the axes a of F and M, from 0 to pi."""
    turned = R @ a
    s = cross(a, turned)
    return arctan2(sqrt(dot(s, s) + CORNER), dot(a, turned))


def twist_of(R: Matrix, p: Matrix, a: Matrix) -> Scalar:
    """Angle about a, from -pi to pi."""
    return arctan2(dot(a, _vee(R)), R[0, 0] + R[1, 1] + R[2, 2] - dot(a, R @ a))


class Limit(NamedTuple):
    """A limit: what it limits, of `R`, `p` and `a`; the direction of its force; what it is above if it is an angle."""

    of: Callable[[Matrix, Matrix, Matrix], Scalar]
    sign: float
    least: float | None = None


ROTATIONS = {
    "angle": Limit(angle_of, -1.0, 0.0),
    "swing": Limit(swing_of, -1.0, 0.0),
    "twist_lower": Limit(twist_of, 1.0, -np.pi),
    "twist_upper": Limit(twist_of, -1.0, -np.pi),
}
POSITIONS = {
    f"{axis}_{end}": Limit(lambda R, p, a, k=k: p[k], sign)  # type: ignore[misc]
    for k, axis in enumerate("xyz")
    for end, sign in (("lower", 1.0), ("upper", -1.0))
}
LIMITS = ROTATIONS | POSITIONS
PAIRS = tuple((f"{what}_lower", f"{what}_upper") for what in ("twist", "x", "y", "z"))


def _axis(f: Force) -> Matrix:
    """The unit axis; of a stop that has none, z."""
    axis = np.asarray(f.numbers.get("axis", (0.0, 0.0, 1.0)), dtype=float)
    size = float(np.linalg.norm(axis))
    if not size > 0:
        raise ModelError(f"{f.owner}: its axis has no direction, got {axis.tolist()}; give one such as (0, 0, 1)")
    return constant(axis / size)


def _pushes(f: Force, q: Matrix, v: Matrix) -> list[tuple[Scalar, Scalar, Matrix]]:
    """How deep a joint is in each stop, the rate of that, and the force (nv,) along its rates of a unit push."""
    import casadi as ca

    n, R, p = v.shape[0], ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    at = [rotation_of_quaternion(q[q.shape[0] - 4 :]), q[:3] if n == 6 else zeros(3, None, q)]
    twists = [(constant(e[:3]), constant(e[3:])) for e in np.eye(6)[:n]]
    found: list[tuple[Scalar, Scalar, Matrix]] = []
    for name, limit in LIMITS.items():
        if name in f.numbers:
            gap = limit.sign * (limit.of(R, p, _axis(f)) - f.number(name))
            rates = [ca.jtimes(gap, R, R @ skew(w)) + ca.jtimes(gap, p, R @ u) for w, u in twists]
            gap, *rates = ca.substitute([ca.SX(gap), *rates], [R, p], [ca.densify(x) for x in at])
            along = ca.vertcat(*rates)
            found.append((-gap, -dot(along, v), along))
    return found


def _forces(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    tau = zeros(v.shape[0], None, v)
    if "stiffness" in f.numbers:
        for depth, rate, along in _pushes(f, q, v):
            tau = tau + along * pushing(f, depth, rate)
    return tau


def _energy(f: Force, q: Matrix) -> Scalar:
    energy = zeros(1, None, q)
    if "stiffness" in f.numbers:
        for depth, _, _ in _pushes(f, q, zeros(q.shape[0] - 1, None, q)):
            deep = where(depth > 0, depth, 0.0)
            energy = energy + f.number("stiffness") / 2 * deep * deep
    return energy


def _row(f: Force, joint: Joint, name: str) -> Constraint:
    """The gap of one limit, between the bodies of the joint."""
    measured, sign, _ = LIMITS[name]
    ends, axis = (joint.at, joint.child_at), _axis(f)

    def gap(t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> Scalar:
        R_F, R_M = (pose.rotation @ constant(at.rotation) for pose, at in zip(poses, ends, strict=True))
        if name in ROTATIONS:
            return sign * measured(R_F.T @ R_M, zeros(3, None, R_F), axis)
        r_F, r_M = (x.position + x.rotation @ constant(at.position) for x, at in zip(poses, ends, strict=True))
        return sign * measured(R_F.T @ R_M, R_F.T @ (r_M - r_F), axis)

    limit = -sign * expression(f.numbers[name].ravel()[0])
    unit = f.kind.fields[name].unit
    return Constraint(f.name, (joint.parent, joint.child), gap, unit, added=limit).traced()


def has_quaternion(kind: Kind) -> bool:
    """Whether coordinates end with a quaternion and rates are the twist of M, or its angular part, in M."""
    if kind.nq != kind.nv + 1 or kind.nv not in (3, 6) or kind.q_units[-4:] != ("1",) * 4:
        return False
    return np.array_equal(np.asarray(kind.S(np.array(kind.neutral)), dtype=float), np.eye(6)[:, : kind.nv])


def _lawful_pose(f: Force, joints: Sequence[Joint]) -> LawfulElement | None:
    joint = joints[f.on[0]]
    if not has_quaternion(joint.kind):
        raise ModelError(
            f"{f.owner}: joint {joint.name!r} ({joint.kind.title}) has no quaternion; angle, swing and twist are of "
            "ball and free joints: limit its coordinates with lower and upper"
        )
    given = {name: nominal_of(f.numbers[name].ravel()[0]) for name in LIMITS if name in f.numbers}
    if not given:
        raise ModelError(f"{f.owner}: it has no limit; give angle, swing or twist")
    for name, value in given.items():
        least = LIMITS[name].least
        if least is not None and not least < value < np.pi:
            low, hint = "-pi" if least else "0", "; cd.deg(30) is 30 degrees in rad" if abs(value) > np.pi else ""
            raise ModelError(
                f"{f.owner}: {name} must be above {low} and below pi, half a turn, got {value:g} rad{hint}"
            )
    for lower, upper in PAIRS:
        low, high = given.get(lower, -np.inf), given.get(upper, np.inf)
        if low > high:
            raise ModelError(f"{f.owner}: {lower} {low:g} is above {upper} {high:g}; exchange them")
    if ("twist_lower" in given) != ("twist_upper" in given):
        raise ModelError(f"{f.owner}: a twist is limited both ways; give twist=(lower, upper)")
    _axis(f)  # rejects one without a direction
    if is_compliant(f):
        return None
    rows = tuple(_row(f, joint, name) for name in given)
    return LawfulElement(f, rows, (Law.UNILATERAL,) * len(rows), tuple(name.replace("_", " ") for name in given))


ROTATION_STOP = ForceKind(
    "rotation stop", "joint", _forces, _energy, mark="element", file_name="rotation_stop", lawful=_lawful_pose,
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
POSITION_STOP = ForceKind(
    "position stop", "joint", _forces, _energy, mark="element", file_name="position_stop", lawful=_lawful_pose,
    fields={
        **{
            name: Field("m", f"{'least' if limit.sign > 0 else 'largest'} position along {name[0]} of the parent's "
                        "joint frame, m", default=None)
            for name, limit in POSITIONS.items()
        },
        "restitution": RESTITUTION,
        "stiffness": Field("N/m", "of a compliant stop, N/m; a stop without is hard", rule=POSITIVE, default=None,
                           letter="k"),
        "damping": Field("N s/m", "of a compliant stop", rule=NOT_NEGATIVE, default=None, letter="d"),
    },
)  # fmt: skip
# The table of force elements has these too.
FORCES.update({kind.name: kind for kind in (ROTATION_STOP, POSITION_STOP)})
