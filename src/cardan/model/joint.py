"""The joint table: one row a kind, and everything any algorithm needs of a joint is in its row.

A joint connects frame F on the parent with frame M on the child. In canonical axes, and in M components:

    pose   E, r     turn and shift from F to M: `X = turned(E) shifted(r)`, None where there is none
    S      6 x nv   velocity of M relative to F is `S v`
    bias   6        `Sdot v`, the rate of `S` along the motion, times `v`; None where `S` is constant in M
    T      6 x (6-nv)  spans the constraint forces, dual to S: `T^T S = 0`
    phi    6 - nv   position residual from the pose of M in F (`R`, `p`); zero on the joint's motions, where the rate
                    of its row k is `T[:, k]^T v_r`, whatever the velocity `v_r` of M relative to F
    plus   nq       configuration after moving with constant `v` for unit time
    measure  nq     configuration read off the pose of M in F (`R`, `p`), on the joint's motions; the rate of its one
                    coordinate, where it has one, is `W^T v_r` with `W = S (S^T S)^-1`

Rates follow: `qdot = N(q) v` is the derivative of `plus`. Units: m, rad, and m/s, rad/s; angular part first.

Source: RBDA table 4.1 and section 4.4; KJ lists the joints, their freedoms, and the constraints that `T` and `phi`
span.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, arctan2, as_graph, beside, cos, matrix, sin, stack, vector
from cardan.algebra.rotation import (
    quaternion_exp,
    quaternion_of_rotation,
    quaternion_product,
    rotation_integral,
    rotation_of_quaternion,
    rotation_to_axis,
    turn_x,
    turn_y,
    turn_z,
    unskew,
)
from cardan.algebra.spatial import Transform, shifted, turned
from cardan.errors import ModelError
from cardan.model.pose import numbers, unit_axis

Function = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Kind:
    """One row of the joint table."""

    name: str
    nq: int
    nv: int
    neutral: tuple[float, ...]
    E: Function | None
    r: Function | None
    S: Function
    bias: Function | None
    T: Function
    phi: Function
    plus: Function
    measure: Function
    q_units: tuple[str, ...] = ()
    v_units: tuple[str, ...] = ()
    reverses: Kind | None = None
    """The kind that this one is, met from its child's side."""
    mark: str = "joint"
    """How it is drawn: "pin", "rail", "sleeve", "thread", "cross", "ball", "plate", "weld", "none" or "joint"."""
    shown_axes: tuple[tuple[str, int], ...] = ()
    """Axes to draw: columns of the joint frame F on the "parent" or M on the "child"."""
    slides: bool = False
    """Whether the child moves along the first shown axis, on a rail of the parent."""

    @cached_property
    def identity(self) -> str:
        """What digests call it: its name and, for a kind that is not Cardan's own, the graph of its functions."""
        if self.reverses is not None:
            return f"reversed {self.reverses.identity}"
        functions = [f for f in (self.E, self.r, self.S, self.bias, self.T, self.phi, self.plus, self.measure) if f]
        if all(getattr(f, "__module__", "").startswith("cardan.") for f in functions):
            return self.name
        import casadi as ca

        q, v, R, p = ca.SX.sym("q", self.nq), ca.SX.sym("v", self.nv), ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
        values = [f(q) for f in (self.E, self.r, self.S, self.T) if f] + [f(q, v) for f in (self.bias, self.plus) if f]
        graph = ca.Function("kind", [q, v, R, p], [ca.SX(x) for x in (*values, self.phi(R, p), self.measure(R, p))])
        return f"{self.name} {hashlib.sha256(graph.serialize().encode()).hexdigest()}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle one of Cardan's own kinds as its name, for its functions cannot travel; another as Python can."""
        return (_own_kind, (self.name,)) if _own_kind(self.name) is self else super().__reduce_ex__(protocol)

    @property
    def backwards(self) -> bool:
        """Whether it is a joint met from its child's side."""
        return self.reverses is not None

    @property
    def base(self) -> Kind:
        """The kind, met from its parent's side."""
        return self if self.reverses is None else self.reverses

    @property
    def freedoms_removed(self) -> int:
        """How many constraint rows the joint has, 6 - nv."""
        return 6 - self.nv


def _unit(*rows: int) -> Function:
    """Matrix (6, k) of unit columns, constant."""
    columns = np.zeros((6, len(rows)))
    columns[list(rows), range(len(rows))] = 1.0
    return lambda q: columns


def _add(q: Matrix, v: Matrix) -> Matrix:
    return q + v


# Residuals of direction grow without bound towards the opposite one, where sines alone would vanish again. The small
# number keeps them finite there.
FLIPPED = 1e-12


def _tilt(R: Matrix) -> Matrix:
    """The z axes are parallel: twice the tangent of half the angle between them, about the x and y axes of M."""
    return 2 * vector(R[2, 1], -R[2, 0]) / (1 + R[2, 2] + FLIPPED)


def _across(R: Matrix, p: Matrix) -> Matrix:
    """Distance from the z axis of F, along the x and y axes of M as they are where the z axes are parallel."""
    return vector(R[0, 0] * p[0] + R[1, 0] * p[1], R[0, 0] * p[1] - R[1, 0] * p[0])


def _no_turn(R: Matrix) -> Matrix:
    """The axes coincide: twice the tangent of half the angle of the turn, along its axis."""
    return 4 * unskew(R) / (1 + R[0, 0] + R[1, 1] + R[2, 2] + FLIPPED)


def _angle(R: Matrix) -> Matrix:
    """Angle of a turn about z."""
    return arctan2(R[1, 0], R[0, 0])


def _screw_kind(pitch: float) -> Kind:
    """Turn about z by q, advance by pitch (m/rad) times q."""
    h = pitch
    S = np.array([[0.0, 0, 1, 0, 0, h]]).T
    T = np.zeros((6, 5))
    T[[0, 1, 3, 4], [0, 1, 2, 3]] = 1.0
    T[2, 4], T[5, 4] = -h, 1.0

    def slip(R: Matrix, p: Matrix) -> Matrix:
        """Advance in excess of the pitch times the turn, whole turns allowed."""
        if h == 0:
            return p[2]
        c, s = cos(p[2] / h), sin(p[2] / h)
        return h * arctan2(s * R[0, 0] - c * R[1, 0], c * R[0, 0] + s * R[1, 0])

    def turn(R: Matrix, p: Matrix) -> Matrix:
        """Angle by the advance, corrected for a slip so that its rate is `W^T v_r`."""
        return _angle(R) if h == 0 else p[2] / h - slip(R, p) / (h * (1 + h * h))

    return Kind(
        f"screw({h!r})", 1, 1, (0.0,),
        E=lambda q: turn_z(q[0]).T, r=lambda q: vector(0, 0, h * q[0]), S=lambda q: S, bias=None, T=lambda q: T,
        phi=lambda R, p: stack(_tilt(R), _across(R, p), vector(slip(R, p))), plus=_add,
        measure=lambda R, p: vector(turn(R, p)),
        q_units=("rad",), v_units=("rad/s",), mark="thread", shown_axes=(("parent", 2),), slides=True,
    )  # fmt: skip


def _universal_S(q: Matrix) -> Matrix:
    """First axis x of F, second axis y of M."""
    c, s = cos(q[1]), sin(q[1])
    return matrix([[c, 0], [0, 1], [s, 0], [0, 0], [0, 0], [0, 0]])


def _universal_T(q: Matrix) -> Matrix:
    c, s = cos(q[1]), sin(q[1])
    couple = matrix([[-s], [0], [c], [0], [0], [0]])
    force = np.zeros((6, 3))
    force[[3, 4, 5], [0, 1, 2]] = 1.0
    return beside(couple, force)


def _planar_S(q: Matrix) -> Matrix:
    c, s = cos(q[2]), sin(q[2])
    return matrix([[0, 0, 0], [0, 0, 0], [0, 0, 1], [c, s, 0], [-s, c, 0], [0, 0, 0]])


def _planar_bias(q: Matrix, v: Matrix) -> Matrix:
    c, s = cos(q[2]), sin(q[2])
    return v[2] * vector(0, 0, 0, c * v[1] - s * v[0], -s * v[1] - c * v[0], 0)


def _free_plus(q: Matrix, v: Matrix) -> Matrix:
    """Exponential on SE(3): the twist is constant in M."""
    p, e = q[:3], q[3:7]
    shift = rotation_of_quaternion(e) @ (rotation_integral(v[:3]) @ v[3:6])
    return stack(p + shift, quaternion_product(e, quaternion_exp(v[:3])))


RIGID = Kind(
    "rigid", 0, 0, (), E=None, r=None, S=_unit(), bias=None, T=_unit(0, 1, 2, 3, 4, 5),
    phi=lambda R, p: stack(_no_turn(R), p), plus=_add, measure=lambda R, p: p[:0],
    mark="weld",
)  # fmt: skip
REVOLUTE = Kind(
    "revolute", 1, 1, (0.0,), E=lambda q: turn_z(q[0]).T, r=None, S=_unit(2), bias=None, T=_unit(0, 1, 3, 4, 5),
    phi=lambda R, p: stack(_tilt(R), R.T @ p), plus=_add, measure=lambda R, p: vector(_angle(R)),
    q_units=("rad",), v_units=("rad/s",), mark="pin", shown_axes=(("child", 2),),
)  # fmt: skip
PRISMATIC = Kind(
    "prismatic", 1, 1, (0.0,), E=None, r=lambda q: vector(0, 0, q[0]), S=_unit(5), bias=None,
    T=_unit(0, 1, 2, 3, 4), phi=lambda R, p: stack(_no_turn(R), p[:2]), plus=_add, measure=lambda R, p: p[2:],
    q_units=("m",), v_units=("m/s",), mark="rail", shown_axes=(("parent", 2),), slides=True,
)  # fmt: skip
CYLINDRICAL = Kind(
    "cylindrical", 2, 2, (0.0, 0.0), E=lambda q: turn_z(q[0]).T, r=lambda q: vector(0, 0, q[1]), S=_unit(2, 5),
    bias=None, T=_unit(0, 1, 3, 4), phi=lambda R, p: stack(_tilt(R), _across(R, p)), plus=_add,
    measure=lambda R, p: vector(_angle(R), p[2]),
    q_units=("rad", "m"), v_units=("rad/s", "m/s"), mark="sleeve", shown_axes=(("parent", 2),), slides=True,
)  # fmt: skip
UNIVERSAL = Kind(
    "universal", 2, 2, (0.0, 0.0), E=lambda q: (turn_x(q[0]) @ turn_y(q[1])).T, r=None, S=_universal_S,
    bias=lambda q, v: v[0] * v[1] * vector(-sin(q[1]), 0, cos(q[1]), 0, 0, 0), T=_universal_T,
    phi=lambda R, p: stack(vector(-R[0, 1]), R.T @ p), plus=_add,
    measure=lambda R, p: vector(arctan2(R[2, 1], R[1, 1]), arctan2(R[0, 2], R[0, 0])),
    q_units=("rad", "rad"), v_units=("rad/s", "rad/s"), mark="cross", shown_axes=(("parent", 0), ("child", 1)),
)  # fmt: skip
SPHERICAL = Kind(
    "spherical", 4, 3, (1.0, 0.0, 0.0, 0.0), E=lambda q: rotation_of_quaternion(q).T, r=None, S=_unit(0, 1, 2),
    bias=None, T=_unit(3, 4, 5), phi=lambda R, p: R.T @ p, plus=lambda q, v: quaternion_product(q, quaternion_exp(v)),
    measure=lambda R, p: quaternion_of_rotation(R),
    q_units=("1",) * 4, v_units=("rad/s",) * 3, mark="ball",
)  # fmt: skip
PLANAR = Kind(
    "planar", 3, 3, (0.0, 0.0, 0.0), E=lambda q: turn_z(q[2]).T, r=lambda q: vector(q[0], q[1], 0), S=_planar_S,
    bias=_planar_bias, T=_unit(0, 1, 5), phi=lambda R, p: stack(_tilt(R), vector(p[2])), plus=_add,
    measure=lambda R, p: vector(p[0], p[1], _angle(R)),
    q_units=("m", "m", "rad"), v_units=("m/s", "m/s", "rad/s"), mark="plate", shown_axes=(("parent", 2),),
)  # fmt: skip
FREE = Kind(
    "free", 7, 6, (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0), E=lambda q: rotation_of_quaternion(q[3:7]).T,
    r=lambda q: q[:3], S=_unit(0, 1, 2, 3, 4, 5), bias=None, T=_unit(), phi=lambda R, p: p[:0], plus=_free_plus,
    measure=lambda R, p: stack(p, quaternion_of_rotation(R)),
    q_units=("m",) * 3 + ("1",) * 4, v_units=("rad/s",) * 3 + ("m/s",) * 3, mark="none",
)  # fmt: skip

screw_kind = cache(_screw_kind)

TABLE: dict[str, Kind] = {
    kind.name: kind
    for kind in (RIGID, REVOLUTE, PRISMATIC, screw_kind(0.1), UNIVERSAL, CYLINDRICAL, SPHERICAL, PLANAR, FREE)
}
"""Every kind, the screw with a sample pitch: what tests and tables run over."""


@dataclass(frozen=True)
class JointType:
    """What the user writes: a kind of joint and its axes, in the joint frame given by `at`."""

    @property
    def kind(self) -> Kind:
        """Row of the joint table."""
        raise NotImplementedError

    def orientation(self, owner: str) -> np.ndarray:
        """Rotation (3, 3) from canonical axes to the axes given by the user."""
        return np.eye(3)


@dataclass(frozen=True)
class Rigid(JointType):
    """No freedom: the two bodies move as one."""

    kind = RIGID


@dataclass(frozen=True)
class _AboutAxis(JointType):
    """A joint with one axis."""

    axis: Any = (0.0, 0.0, 1.0)

    def orientation(self, owner: str) -> np.ndarray:
        """Turn z onto the axis."""
        return rotation_to_axis(unit_axis(owner, "axis", self.axis))


@dataclass(frozen=True)
class Revolute(_AboutAxis):
    """Hinge about `axis`; q (rad)."""

    kind = REVOLUTE


@dataclass(frozen=True)
class Prismatic(_AboutAxis):
    """Slider along `axis`; q (m)."""

    kind = PRISMATIC


@dataclass(frozen=True)
class Cylindrical(_AboutAxis):
    """Turn about and slide along `axis`; q (rad, m)."""

    kind = CYLINDRICAL


@dataclass(frozen=True)
class Screw(_AboutAxis):
    """Turn about `axis`, advancing `pitch` metres a radian; q (rad)."""

    pitch: float = 0.0

    def orientation(self, owner: str) -> np.ndarray:
        """Turn z onto the axis; the pitch is checked here, where the joint's name is known."""
        numbers(owner, "pitch", self.pitch, ())
        return super().orientation(owner)

    @property
    def kind(self) -> Kind:
        """Row of the joint table for this pitch."""
        return screw_kind(float(numbers("screw joint", "pitch", self.pitch, ())))


@dataclass(frozen=True)
class Planar(JointType):
    """Slide in, and turn about the `normal` of, a plane; q (m, m, rad), v its time derivative.

    The first coordinate runs along `x` (by default a coordinate axis of the joint frame).
    """

    normal: Any = (0.0, 0.0, 1.0)
    x: Any = None

    kind = PLANAR

    def orientation(self, owner: str) -> np.ndarray:
        """Turn z onto the normal, x onto the first direction."""
        z = unit_axis(owner, "normal", self.normal)
        if self.x is None:
            return rotation_to_axis(z)
        return _from_two_axes(owner, ("normal", z), ("x", unit_axis(owner, "x", self.x)))[:, [1, 2, 0]]


@dataclass(frozen=True)
class Universal(JointType):
    """Two perpendicular axes through a point, the first fixed in the parent, the second in the child; q (rad, rad)."""

    axis1: Any = (1.0, 0.0, 0.0)
    axis2: Any = (0.0, 1.0, 0.0)

    kind = UNIVERSAL

    def orientation(self, owner: str) -> np.ndarray:
        """Turn x onto the first axis and y onto the second."""
        first = unit_axis(owner, "axis1", self.axis1)
        return _from_two_axes(owner, ("axis1", first), ("axis2", unit_axis(owner, "axis2", self.axis2)))


@dataclass(frozen=True)
class Spherical(JointType):
    """Ball and socket; q is a quaternion (w, x, y, z), v the angular velocity (rad/s) in child-frame components."""

    kind = SPHERICAL


@dataclass(frozen=True)
class Free(JointType):
    """Six freedoms; q is position (m) then quaternion, v the twist (rad/s, m/s) in child-frame components."""

    kind = FREE


def _from_two_axes(owner: str, a: tuple[str, np.ndarray], b: tuple[str, np.ndarray]) -> np.ndarray:
    """Rotation whose first column is a, second b: perpendicular unit vectors."""
    (a_name, x), (b_name, y) = a, b
    if abs(float(x @ y)) > 1e-6:
        angle = np.degrees(np.arccos(np.clip(x @ y, -1, 1)))
        raise ModelError(f"{owner}: {a_name} and {b_name} must be perpendicular, they make {angle:.4g} degrees")
    y = y - x * (x @ y)
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


@cache
def reversed_kind(kind: Kind) -> Kind:
    """Derive the row of a joint met from its child's side: same q and v, the roles of F and M exchanged."""

    def X_FM(q: Matrix) -> Transform:
        """Motion transform from M to F."""
        parts = []
        if kind.r is not None:
            parts.append(shifted(-kind.r(q)))
        if kind.E is not None:
            parts.append(turned(kind.E(q).T))
        return Transform(tuple(parts))

    def shift(q: Matrix) -> Matrix:
        assert kind.r is not None
        return -(kind.r(q) if kind.E is None else kind.E(q) @ kind.r(q))

    bias, turn = kind.bias, kind.E
    return Kind(
        f"reversed {kind.name}", kind.nq, kind.nv, kind.neutral,
        E=None if turn is None else lambda q: turn(q).T,
        r=None if kind.r is None else shift,
        S=lambda q: -(X_FM(q) @ as_graph(kind.S(q), q)),
        bias=None if bias is None else lambda q, v: -(X_FM(q) @ bias(q, v)),
        T=lambda q: -(X_FM(q).inverse.T @ as_graph(kind.T(q), q)),
        phi=lambda R, p: kind.phi(R.T, -(R.T @ p)), measure=lambda R, p: kind.measure(R.T, -(R.T @ p)),
        plus=kind.plus, q_units=kind.q_units, v_units=kind.v_units, reverses=kind,
        mark=kind.mark, shown_axes=kind.shown_axes, slides=kind.slides,
    )  # fmt: skip


def _own_kind(name: str) -> Kind | None:
    """Cardan's own kind of a name."""
    if name.startswith("reversed "):
        kind = _own_kind(name.removeprefix("reversed "))
        return None if kind is None else reversed_kind(kind)
    if pitch := re.fullmatch(r"screw\((.*)\)", name):
        return screw_kind(float(pitch[1]))
    return TABLE.get(name)
