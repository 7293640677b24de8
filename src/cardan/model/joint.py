"""The joint table: one row for each joint kind, with everything that any part of Cardan needs to know of it.

A joint connects frame F on the parent with frame M on the child. In canonical axes, and in M components:

    pose   E, r     turn and shift from F to M: `X = turned(E) shifted(r)`, None where there is none
    S      6 x nv   velocity of M relative to F is `S v`
    bias   6        `Sdot v`, the rate of `S` along the motion, times `v`; None where `S` is constant in M
    T      6 x (6-nv)  spans the constraint forces, dual to S: `T^T S = 0`
    phi    6 - nv   position residual from the pose of M in F (`R`, `p`); zero on the joint's motions, where the rate
                    of its row k is `T[:, k]^T v_r`, whatever the velocity `v_r` of M relative to F
    plus   nq       configuration after moving with constant `v` for unit time
    measure  nq     configuration read off the pose of M in F (`R`, `p`), on the joint's motions; the rate of its one
                    coordinate, where it has one, is `W^T v_r` with `W = S (S^T S)^-1`, or the `W` of the row

Rates follow: `qdot = N(q) v` is the derivative of `plus`. Units: m, rad, and m/s, rad/s; angular part first.

The row also declares its units, its letters in printed equations, how drawings show it, what it is in a plane, which
part of an inertia it does not move, and the single motions that other file formats write it as. A `JointType` is
what the user writes, `Revolute(axis=...)`: it declares its entries in files and gives the row.

Source: RBDA table 4.1 and section 4.4; KJ lists the joints, their freedoms, and the constraints that `T` and `phi`
span.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, lru_cache
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from cardan.algebra.matrix import (
    AnyMatrix,
    Matrix,
    arctan2,
    as_graph,
    beside,
    cos,
    is_symbol,
    matrix,
    sin,
    stack,
    vector,
)
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
from cardan.errors import InputError, ModelError
from cardan.lazy import cached_property
from cardan.model.curve import Curve, curve
from cardan.model.field import AXIS, CURVE, TRUTH, Field
from cardan.model.graph_digest import graph_digest
from cardan.model.pose import numbers, unit_axis

Function = Callable[..., Any]
Letter = tuple[str, str]
"""A letter and what it means: ("theta", "angle")."""
NUMBERED = re.compile(r"(.+)\[(\d+)\]")
"""Name of one of several coordinates of a joint, by its number: `A[1]`."""
DIRECTIONS = ("moment x", "moment y", "moment z", "force x", "force y", "force z")

FUNCTIONS_OF: dict[str, tuple[str, ...]] = {
    "E": ("q",), "r": ("q",), "S": ("q",), "bias": ("q", "v"), "T": ("q",), "phi": ("R", "p"), "plus": ("q", "v"),
    "measure": ("R", "p"), "W": ("q",),
}  # fmt: skip
"""The functions of a kind and their arguments."""
MEASURED = ("phi", "measure")
"""Those of a pose."""


class SingleMotion(NamedTuple):
    """One of the motions, one after the other, that lead from F to M; formats such as URDF know only these.

    `what` is "turn" or "slide", about or along `axis` (0, 1, 2: x, y, z) of the frame reached so far. Each has a
    coordinate of its own, except that the second of two with a `ratio` moves by `ratio` times the coordinate of the
    first. Or one motion alone is "ball", with the coordinates of `cd.Spherical`, or "free", with those of `cd.Free`.
    """

    what: str
    axis: int = 2
    ratio: float | None = None

    @property
    def nv(self) -> int:
        """How many rates it has."""
        return {"ball": 3, "free": 6}.get(self.what, 1 if self.ratio is None else 0)


class InPlane(NamedTuple):
    """What a joint is in a plane: a "pin" (it turns), a "slide", a "float" (no constraint) or "rigid".

    `along` where its z axis is along the normal of the plane, `within` where it is in the plane; None where the joint
    leads out of the plane. `coordinates`: whether its coordinates are then angle and shifts in the plane as they
    stand; only such a joint carries a body of a planar tree, the others close loops.
    """

    along: str | None = None
    within: str | None = None
    coordinates: bool = False

    @property
    def turns(self) -> bool:
        """Whether the joint's axis is the normal of any plane that it keeps to."""
        return self.coordinates and self.along is not None


UNKNOWN_IN_PLANE = InPlane()


@dataclass(frozen=True, eq=False)
class Kind:
    """One row of the joint table: what a joint computes, and what the rest of Cardan needs to know of it.

    The joint connects frame F on the parent with frame M on the child. Functions of `q` and `v` take and return
    CasADi symbols as well as NumPy arrays; `R`, `p` are the axes and origin of M in F.

    Args:
        name: what reports call it.
        nq: number of coordinates.
        nv: number of rates.
        neutral: the coordinates where F and M coincide.
        E: `E(q)` (3, 3), components of F to those of M; None where the joint does not turn.
        r: `r(q)` (3,), position of M in F, m; None where it does not shift.
        S: `S(q)` (6, nv); the velocity of M relative to F is `S v`, in M's components, angular part first.
        bias: `bias(q, v)` (6,), the rate of `S` along the motion, times `v`; None where `S` is constant.
        T: `T(q)` (6, 6 - nv), constraint forces: `T^T S = 0`. Moments come first.
        phi: `phi(R, p)` (6 - nv,), position residual; on the joint's motions zero, and the rate of its row k is
            `T[:, k]^T v_r` for any velocity `v_r` of M relative to F.
        plus: `plus(q, v)` (nq,), coordinates after moving with constant `v` for one second.
        measure: `measure(R, p)` (nq,), coordinates of a pose.
        q_units: unit of each coordinate: "rad", "m", or "1" for a quaternion's.
        v_units: unit of each rate: "rad/s" or "m/s".
        reverses: the kind that this one is, met from its child's side.
        mark: how drawings show it: "pin", "rail", "sleeve", "thread", "cross", "ball", "plate", "weld", "bead",
            "none" or "joint".
        shown_axes: axes to draw, as columns of the joint frame: ("parent", 2) is z of F, ("child", 0) is x of M.
        slides: whether drawings show a rail on the parent along the first shown axis.
        family: its name without numbers, "screw" of "screw(0.1)"; by default the name.
        letters: letter and meaning of each coordinate in printed equations; by default by its unit.
        rate_letters: the same of each rate; empty where they are the coordinates' with a dot.
        in_plane: what it is in a plane; by default the motion of the whole mechanism decides.
        unmoved: `unmoved(I)` (6, 6), the part of an inertia of the child that acts the same on the parent
            (`model.tree.regrouped_inertias`); None is no part.
        motions: the single motions that URDF and MJCF can write it as; None where they cannot.
        periods: by how much each coordinate grows until the pose is the same again; 0 where it never is. By default a
            whole turn of each coordinate in rad.
        not_measured: why a pose does not tell the coordinates, where that is so; `measure` and `phi` then raise it.
        row_names: direction and unit of each constraint row, such as ("moment x", "rad"); by default by `T`.
        W: `W(q)` (6, nv), forces that do unit work on the coordinates one by one, `W^T S = 1`; `measure` has the rate
            `W^T v_r`. By default `S (S^T S)^-1`.
        reach: least and largest value of each coordinate for which the joint is meant; none where all values are.
            Random states are within, and a run that goes beyond warns.
        track: `track()` gives points (n, 3) in F of a line along which M runs, for drawings; None where it has none.

    """

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
    mark: str = "joint"
    shown_axes: tuple[tuple[str, int], ...] = ()
    slides: bool = False
    family: str = ""
    letters: tuple[Letter, ...] = ()
    rate_letters: tuple[Letter, ...] = ()
    in_plane: InPlane = UNKNOWN_IN_PLANE
    unmoved: Function | None = None
    motions: tuple[SingleMotion, ...] | None = None
    periods: tuple[float, ...] = ()
    not_measured: str = ""
    row_names: tuple[tuple[str, str], ...] = ()
    W: Function | None = None
    reach: tuple[tuple[float, float], ...] = ()
    track: Callable[[], np.ndarray] | None = None

    def __post_init__(self) -> None:
        """Fill in letters and periods that were left out."""
        turns = tuple(2 * np.pi if unit == "rad" else 0.0 for unit in self.q_units)
        object.__setattr__(self, "periods", self.periods or turns)
        object.__setattr__(self, "letters", self.letters or _letters_by_unit(self.q_units))
        if self.nq != self.nv:
            object.__setattr__(self, "rate_letters", self.rate_letters or _letters_by_unit(self.v_units))

    def check(self) -> None:
        """Reject a row whose parts do not have the sizes that `nq` and `nv` say."""
        for what, values, n in (
            ("neutral", self.neutral, self.nq), ("q_units", self.q_units, self.nq), ("v_units", self.v_units, self.nv),
            ("letters", self.letters, self.nq), ("periods", self.periods, self.nq),
            ("rate_letters", self.rate_letters, self.nv if self.rate_letters or self.nq != self.nv else 0),
        ):  # fmt: skip
            if len(values) != n:
                raise ModelError(f"joint kind {self.name!r}: {what} must have {n} entries, got {len(values)}")
        if self.motions is not None and sum(motion.nv for motion in self.motions) != self.nv:
            raise ModelError(f"joint kind {self.name!r}: motions must have {self.nv} rates in all, as the joint has")
        for k, motion in enumerate(self.motions or ()):
            alone = len(self.motions or ()) == 1
            if motion.what not in ("turn", "slide") and not (alone and motion.what in ("ball", "free")):
                raise ModelError(
                    f"joint kind {self.name!r}: motions are turns and slides, or one ball or free, got {motion.what!r}"
                )
            if motion.ratio is not None and k != 1:
                raise ModelError(f"joint kind {self.name!r}: only the second of two motions has a ratio")
        if not self.is_own:
            _check_mathematics(self.recorded())

    @property
    def is_own(self) -> bool:
        """Whether it is a row of Cardan's own table."""
        return _own_kind(self.name) is self

    def recorded(self) -> Kind:
        """The same kind with its functions as graphs, so that a variable that they read no longer changes them.

        A model has recorded kinds only. Cardan's own kinds are as they are.
        """
        if self.is_own or isinstance(self.S, RecordedFunction):
            return self
        return reversed_kind(self.reverses.recorded()) if self.reverses is not None else replace(self, **_graphs(self))

    @property
    def backwards(self) -> bool:
        """Whether it is another kind met from its child's side."""
        return self.reverses is not None

    @property
    def base(self) -> Kind:
        """The kind as met from its parent's side."""
        return self if self.reverses is None else self.reverses

    def part(self, places: Sequence[int]) -> Kind:
        """The kind with some of its coordinates, each of which has a rate of its own; its functions stay."""
        some: dict[str, Any] = {
            name: tuple(getattr(self, name)[k] for k in places)
            for name in ("neutral", "q_units", "v_units", "letters", "periods")
        }
        reach = tuple(self.reach[k] for k in places) if self.reach else ()
        return replace(self, nq=len(places), nv=len(places), **some, rate_letters=(), reach=reach)

    @property
    def title(self) -> str:
        """What messages call it, whichever side it is met from: "revolute", "screw"."""
        return self.family or self.base.name

    @property
    def freedoms_removed(self) -> int:
        """How many constraint rows the joint has, 6 - nv."""
        return 6 - self.nv

    @cached_property
    def rows(self) -> tuple[tuple[str, str], ...]:
        """Direction of each constraint row and unit of its residual: ("moment x", "rad"), ("force z", "m")."""
        if self.row_names:
            return self.row_names
        T = np.abs(np.asarray(self.T(np.array(self.neutral)), dtype=float))
        found = []
        for k in range(self.freedoms_removed):  # a row with a force in it has a length as residual
            row = 3 + int(np.argmax(T[3:, k])) if T[3:, k].any() else int(np.argmax(T[:3, k]))
            found.append((DIRECTIONS[row], "m" if row >= 3 else "rad"))
        return tuple(found)

    @property
    def identity(self) -> str:
        """What digests call it: a row of Cardan's own table by its name, any other by what it computes now."""
        if self.reverses is not None:
            return f"reversed {self.reverses.identity}"
        return self.name if self.is_own else self.recorded()._digest

    @cached_property
    def _digest(self) -> str:
        """Digest of a recorded kind: its name, its graphs, and all else that enters equations or their structure."""
        functions = {name: getattr(self, name) for name in FUNCTIONS_OF}
        graphs = {name: isinstance(f, RecordedFunction) and graph_digest(f.graph) for name, f in functions.items()}
        facts = (graphs, self.neutral, self.q_units, self.v_units, self.in_plane, self.motions, self.periods)
        h = hashlib.sha256(repr(facts).encode())
        if self.unmoved is not None:
            sample = np.random.default_rng(0).standard_normal((6, 6))
            h.update(np.ascontiguousarray(self.unmoved(sample @ sample.T)).tobytes())
        return f"{self.name} {h.hexdigest()}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle one of Cardan's own kinds by its name, because its functions cannot be pickled."""
        if self.reverses is not None:
            return reversed_kind, (self.reverses,)
        return (_own_kind, (self.name,)) if self.is_own else super().__reduce_ex__(protocol)

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what it is, not what was derived from it."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


AXIS_NAMES = ("x", "y", "z")
QUATERNION: tuple[Letter, ...] = tuple((f"e{k}", "quaternion") for k in range(4))
ANGULAR_VELOCITY: tuple[Letter, ...] = tuple((f"omega_{x}", f"angular velocity along {x}") for x in AXIS_NAMES)
POSITION: tuple[Letter, ...] = tuple((x, f"position along {x}") for x in AXIS_NAMES)
BY_UNIT: dict[str, Letter] = {
    "rad": ("theta", "angle"), "m": ("x", "displacement"), "rad/s": ("omega", "angular velocity"),
    "m/s": ("v", "velocity"), "1": ("e", "quaternion"),
}  # fmt: skip


def _letters_by_unit(units: Sequence[str]) -> tuple[Letter, ...]:
    """Letters of coordinates or rates by their units, numbered where there are several of one."""
    count, seen = Counter(units), Counter[str]()
    found = []
    for unit in units:
        letter, meaning = BY_UNIT.get(unit, ("s", "coordinate"))
        first = 0 if unit == "1" else 1
        found.append((letter if count[unit] == 1 else f"{letter}{first + seen[unit]}", meaning))
        seen[unit] += 1
    return tuple(found)


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
        f"screw({h!r})", 1, 1, (0.0,), family="screw",
        E=lambda q: turn_z(q[0]).T, r=lambda q: vector(0, 0, h * q[0]), S=lambda q: S, bias=None, T=lambda q: T,
        phi=lambda R, p: stack(_tilt(R), _across(R, p), vector(slip(R, p))), plus=_add,
        measure=lambda R, p: vector(turn(R, p)),
        q_units=("rad",), v_units=("rad/s",), mark="thread", shown_axes=(("parent", 2),), slides=True,
        motions=(SingleMotion("turn"), SingleMotion("slide", ratio=h)),
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


# Inertia that does not notice a joint's motion, so that it may as well belong to the parent.


def _along_axis(I: np.ndarray) -> np.ndarray:
    """Mass along the z axis: no inertia about z, centre of mass on z."""
    part = np.zeros((6, 6), dtype=I.dtype)
    part[0, 0] = part[1, 1] = I[1, 1]
    part[[3, 4, 5], [3, 4, 5]] = I[3, 3]
    part[[0, 4], [4, 0]] = I[0, 4]
    part[[1, 3], [3, 1]] = I[1, 3]
    return part


def _turning_part(I: np.ndarray) -> np.ndarray:
    """Rotational inertia: of a body that only shifts, a moment is the same wherever it acts."""
    part = np.zeros((6, 6), dtype=I.dtype)
    part[:3, :3] = I[:3, :3]
    return part


def _at_centre(I: np.ndarray) -> np.ndarray:
    """A point mass at the centre of rotation."""
    part = np.zeros((6, 6), dtype=I.dtype)
    part[[3, 4, 5], [3, 4, 5]] = I[3, 3]
    return part


RIGID = Kind(
    "rigid", 0, 0, (), E=None, r=None, S=_unit(), bias=None, T=_unit(0, 1, 2, 3, 4, 5),
    phi=lambda R, p: stack(_no_turn(R), p), plus=_add, measure=lambda R, p: p[:0],
    mark="weld", in_plane=InPlane("rigid", "rigid"), motions=(),
)  # fmt: skip
REVOLUTE = Kind(
    "revolute", 1, 1, (0.0,), E=lambda q: turn_z(q[0]).T, r=None, S=_unit(2), bias=None, T=_unit(0, 1, 3, 4, 5),
    phi=lambda R, p: stack(_tilt(R), R.T @ p), plus=_add, measure=lambda R, p: vector(_angle(R)),
    q_units=("rad",), v_units=("rad/s",), mark="pin", shown_axes=(("child", 2),),
    in_plane=InPlane("pin", None, coordinates=True), unmoved=_along_axis, motions=(SingleMotion("turn"),),
)  # fmt: skip
PRISMATIC = Kind(
    "prismatic", 1, 1, (0.0,), E=None, r=lambda q: vector(0, 0, q[0]), S=_unit(5), bias=None,
    T=_unit(0, 1, 2, 3, 4), phi=lambda R, p: stack(_no_turn(R), p[:2]), plus=_add, measure=lambda R, p: p[2:],
    q_units=("m",), v_units=("m/s",), mark="rail", shown_axes=(("parent", 2),), slides=True,
    in_plane=InPlane(None, "slide", coordinates=True), unmoved=_turning_part, motions=(SingleMotion("slide"),),
)  # fmt: skip
CYLINDRICAL = Kind(
    "cylindrical", 2, 2, (0.0, 0.0), E=lambda q: turn_z(q[0]).T, r=lambda q: vector(0, 0, q[1]), S=_unit(2, 5),
    bias=None, T=_unit(0, 1, 3, 4), phi=lambda R, p: stack(_tilt(R), _across(R, p)), plus=_add,
    measure=lambda R, p: vector(_angle(R), p[2]),
    q_units=("rad", "m"), v_units=("rad/s", "m/s"), mark="sleeve", shown_axes=(("parent", 2),), slides=True,
    in_plane=InPlane("pin", "slide"), motions=(SingleMotion("turn"), SingleMotion("slide")),
)  # fmt: skip
UNIVERSAL = Kind(
    "universal", 2, 2, (0.0, 0.0), E=lambda q: (turn_x(q[0]) @ turn_y(q[1])).T, r=None, S=_universal_S,
    bias=lambda q, v: v[0] * v[1] * vector(-sin(q[1]), 0, cos(q[1]), 0, 0, 0), T=_universal_T,
    phi=lambda R, p: stack(vector(-R[0, 1]), R.T @ p), plus=_add,
    measure=lambda R, p: vector(arctan2(R[2, 1], R[1, 1]), arctan2(R[0, 2], R[0, 0])),
    q_units=("rad", "rad"), v_units=("rad/s", "rad/s"), letters=(("alpha", "first angle"), ("beta", "second angle")),
    mark="cross", shown_axes=(("parent", 0), ("child", 1)), unmoved=_at_centre,
    motions=(SingleMotion("turn", 0), SingleMotion("turn", 1)),
)  # fmt: skip
SPHERICAL = Kind(
    "spherical", 4, 3, (1.0, 0.0, 0.0, 0.0), E=lambda q: rotation_of_quaternion(q).T, r=None, S=_unit(0, 1, 2),
    bias=None, T=_unit(3, 4, 5), phi=lambda R, p: R.T @ p, plus=lambda q, v: quaternion_product(q, quaternion_exp(v)),
    measure=lambda R, p: quaternion_of_rotation(R),
    q_units=("1",) * 4, v_units=("rad/s",) * 3, letters=QUATERNION, rate_letters=ANGULAR_VELOCITY, mark="ball",
    in_plane=InPlane("pin", "pin"), unmoved=_at_centre, motions=(SingleMotion("ball"),),
)  # fmt: skip
PLANAR = Kind(
    "planar", 3, 3, (0.0, 0.0, 0.0), E=lambda q: turn_z(q[2]).T, r=lambda q: vector(q[0], q[1], 0), S=_planar_S,
    bias=_planar_bias, T=_unit(0, 1, 5), phi=lambda R, p: stack(_tilt(R), vector(p[2])), plus=_add,
    measure=lambda R, p: vector(p[0], p[1], _angle(R)),
    q_units=("m", "m", "rad"), v_units=("m/s", "m/s", "rad/s"), letters=(*POSITION[:2], ("theta", "angle")),
    mark="plate", shown_axes=(("parent", 2),), in_plane=InPlane("float", None, coordinates=True),
    motions=(SingleMotion("slide", 0), SingleMotion("slide", 1), SingleMotion("turn")),
)  # fmt: skip
FREE = Kind(
    "free", 7, 6, (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0), E=lambda q: rotation_of_quaternion(q[3:7]).T,
    r=lambda q: q[:3], S=_unit(0, 1, 2, 3, 4, 5), bias=None, T=_unit(), phi=lambda R, p: p[:0], plus=_free_plus,
    measure=lambda R, p: stack(p, quaternion_of_rotation(R)),
    q_units=("m",) * 3 + ("1",) * 4, v_units=("rad/s",) * 3 + ("m/s",) * 3, letters=(*POSITION, *QUATERNION),
    rate_letters=(*ANGULAR_VELOCITY, *((f"v_{x}", f"velocity along {x}") for x in AXIS_NAMES)),
    mark="none", in_plane=InPlane("float", "float"), motions=(SingleMotion("free"),),
)  # fmt: skip

screw_kind = cache(_screw_kind)


def _along(curve: Curve, turns: bool) -> dict[str, RecordedFunction]:
    """The functions of a joint along a curve, with arc length as its coordinate.

    A child that `turns` has the curve's frame: its velocity along x is `sigma v`, its angular velocity `w v`. One that
    does not keeps the axes of F.
    """
    import casadi as ca

    if not turns:
        curve = curve.plain
    q, v, R, p = ca.SX.sym("q"), ca.SX.sym("v"), ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3)
    (r, axes), (dr, w) = curve.graph(q), curve.rates(q)
    sigma = (axes[:, 0].T @ dr)[0]
    S = stack(w, vector(sigma, 0, 0)) if turns else stack(np.zeros(3), dr)
    force = stack(ca.SX.zeros(3, 2), ca.SX.eye(3)[:, 1:] if turns else axes[:, 1:])
    moment = stack(ca.SX.eye(3), ca.vertcat(-(w / sigma).T, ca.SX.zeros(2, 3)) if turns else ca.SX.zeros(3, 3))
    found: dict[str, Any] = {
        "W": stack(ca.SX.zeros(3), vector(1 / sigma, 0, 0)) if turns else stack(ca.SX.zeros(3), dr / (dr.T @ dr)),
        "E": axes.T, "r": r, "S": S, "bias": ca.jacobian(S, q) * v[0] ** 2, "T": beside(moment, force),
    }  # fmt: skip
    if not curve.why_unknown(turns):
        s = curve.nearest(p, R[:, 0] if turns else None)
        (r, axes), (dr, w) = curve.graph(s), curve.rates(s)
        off = _no_turn(axes.T @ R if turns else R)
        away = (axes.T @ (p - r))[1:]
        found |= {"measure": s, "phi": stack(off, away)}
    given = {"q": q, "v": v, "R": R, "p": p}
    shapes = _shapes(1, 1)
    return {
        name: RecordedFunction(ca.Function(name, [given[x] for x in FUNCTIONS_OF[name]], [ca.densify(value)]), shape)
        for name, shape in shapes.items()
        if (value := found.get(name)) is not None
    }


ROWS_ALONG = tuple((name, "rad" if name.startswith("moment") else "m") for name in DIRECTIONS if name != "force x")


def _curvilinear_kind(name: str, along: Callable[[], Curve], turns: bool, **known: Any) -> Kind:
    """A row for a joint along a curve, which is made when one of the functions is called first."""
    functions = cache(lambda: _along(along(), turns))

    def of(what: str) -> Function:
        def call(*x: Matrix) -> Any:
            if what not in functions():
                raise ModelError(along().why_unknown(turns))
            return functions()[what](*x)

        return call

    return Kind(
        name, 1, 1, (0.0,), E=of("E") if turns else None, r=of("r"), S=of("S"), bias=of("bias"), T=of("T"),
        phi=of("phi"), plus=_add, measure=of("measure"), W=of("W"), q_units=("m",), v_units=("m/s",),
        family="curvilinear", letters=(("s", "arc length"),), row_names=ROWS_ALONG, mark="bead",
        shown_axes=(("child", 0),) if turns else (), **known,
    )  # fmt: skip


def curvilinear_kind(curve: Curve, turns: bool) -> Kind:
    """Row of a joint along a curve, recorded once."""
    name = f"kind {turns}"
    if name not in vars(curve):
        kind = _curvilinear_kind(
            f"curvilinear({curve.name})", lambda: curve, turns, periods=(curve.length,) if curve.closed else (),
            reach=() if curve.closed else ((0.0, curve.length),), not_measured=curve.why_unknown(turns),
            track=curve.line,
        )  # fmt: skip
        vars(curve)[name] = kind.recorded()
    found: Kind = vars(curve)[name]
    return found


@cache
def _helix() -> Curve:
    """The sample of a curve for the table."""
    return curve(lambda u: [cos(u) - 1, sin(u), 0.3 * u], start=-60.0, stop=60.0, name="helix")


TABLE: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        RIGID, REVOLUTE, PRISMATIC, screw_kind(0.1), UNIVERSAL, CYLINDRICAL, SPHERICAL, PLANAR, FREE,
        _curvilinear_kind("curvilinear(helix)", _helix, True),
    )
}  # fmt: skip
"""Cardan's own kinds, the screw with a sample pitch, the joint along a curve with a helix."""


@dataclass(frozen=True)
class JointType:
    """What the user writes: a kind of joint and its numbers; axes are in the joint frame given by `at`.

    A joint type of your own is a frozen dataclass with a `kind`, a row of the joint table, fixed or made from the
    dataclass's fields. `fields` declares the fields for files; one that it does not name is a plain number. Register
    the class with `cd.add_joint` so that files can name it.
    """

    fields: ClassVar[Mapping[str, Field]] = {}

    @property
    def kind(self) -> Kind:
        """Row of the joint table."""
        raise NotImplementedError

    def orientation(self, owner: str) -> np.ndarray:
        """Rotation (3, 3) from canonical axes to the axes given by the user."""
        return np.eye(3)

    @classmethod
    def declared(cls) -> dict[str, Field]:
        """Its entries in files: every field of the dataclass."""
        return {f.name: cls.fields.get(f.name, Field(doc="a number")) for f in fields(cls)}


class Rigid(JointType):
    """No freedom: the two bodies move as one."""

    kind = RIGID


@lru_cache(maxsize=256)
def _turned_to(x: float, y: float, z: float) -> np.ndarray:
    """Rotation (3, 3) of z onto a unit vector, read-only; most joints of a mechanism have few axes."""
    R: np.ndarray = rotation_to_axis(np.array([x, y, z]))
    R.flags.writeable = False
    return R


@dataclass(frozen=True)
class _AboutAxis(JointType):
    """A joint with one axis."""

    axis: Any = (0.0, 0.0, 1.0)

    fields: ClassVar[Mapping[str, Field]] = {
        "axis": Field(form=AXIS, doc="direction in the joint frame; z unless given", default=(0.0, 0.0, 1.0))
    }

    def orientation(self, owner: str) -> np.ndarray:
        """Turn z onto the axis."""
        return _turned_to(*unit_axis(owner, "axis", self.axis).tolist())


class Revolute(_AboutAxis):
    """Hinge about `axis`; q (rad)."""

    kind = REVOLUTE


class Prismatic(_AboutAxis):
    """Slider along `axis`; q (m)."""

    kind = PRISMATIC


class Cylindrical(_AboutAxis):
    """Turn about and slide along `axis`; q (rad, m)."""

    kind = CYLINDRICAL


@dataclass(frozen=True)
class Screw(_AboutAxis):
    """Turn about `axis`, advancing `pitch` metres a radian; q (rad)."""

    pitch: float = 0.0

    fields: ClassVar[Mapping[str, Field]] = {
        **_AboutAxis.fields, "pitch": Field("m/rad", "advance, m/rad; write 5 mm/rev")
    }  # fmt: skip

    def orientation(self, owner: str) -> np.ndarray:
        """Turn z onto the axis; the pitch is checked here, where the joint's name is known."""
        numbers(owner, "pitch", self.pitch, ())
        return super().orientation(owner)

    @property
    def kind(self) -> Kind:
        """Row of the joint table for this pitch."""
        return screw_kind(float(numbers("screw joint", "pitch", self.pitch, ())))


@dataclass(frozen=True)
class Universal(JointType):
    """Two perpendicular axes through a point, the first fixed in the parent, the second in the child; q (rad, rad)."""

    axis1: Any = (1.0, 0.0, 0.0)
    axis2: Any = (0.0, 1.0, 0.0)

    kind = UNIVERSAL
    fields: ClassVar[Mapping[str, Field]] = {
        "axis1": Field(form=AXIS, doc="axis fixed in the parent; x unless given", default=(1.0, 0.0, 0.0), column=0),
        "axis2": Field(
            form=AXIS, doc="axis fixed in the child, square to the first; y unless given", default=(0.0, 1.0, 0.0),
            column=1,
        ),
    }  # fmt: skip

    def orientation(self, owner: str) -> np.ndarray:
        """Turn x onto the first axis and y onto the second."""
        first = unit_axis(owner, "axis1", self.axis1)
        return _from_two_axes(owner, ("axis1", first), ("axis2", unit_axis(owner, "axis2", self.axis2)))


class Spherical(JointType):
    """Ball and socket; q is a quaternion (w, x, y, z), v the angular velocity (rad/s) in child-frame components."""

    kind = SPHERICAL


@dataclass(frozen=True)
class Planar(JointType):
    """Slide in, and turn about the `normal` of, a plane; q (m, m, rad), v its time derivative.

    The first coordinate runs along `x` (by default a coordinate axis of the joint frame).
    """

    normal: Any = (0.0, 0.0, 1.0)
    x: Any = None

    kind = PLANAR
    fields: ClassVar[Mapping[str, Field]] = {
        "normal": Field(form=AXIS, doc="normal of the plane; z unless given", default=(0.0, 0.0, 1.0)),
        "x": Field(form=AXIS, doc="direction of the first coordinate, square to the normal", default=None, column=0),
    }

    def orientation(self, owner: str) -> np.ndarray:
        """Turn z onto the normal, x onto the first direction."""
        z = unit_axis(owner, "normal", self.normal)
        if self.x is None:
            return rotation_to_axis(z)
        return _from_two_axes(owner, ("normal", z), ("x", unit_axis(owner, "x", self.x)))[:, [1, 2, 0]]


@dataclass(frozen=True)
class Curvilinear(JointType):
    """Run along a `curve`; q is arc length from its beginning (m), v the speed (m/s).

    A child that `turns` has x along the tangent and z as near to the curve's `up` as that allows, turned by its bank: a
    car on a track. Otherwise it keeps its axes parallel to those of the joint frame: a bead whose turning does not
    matter. The child's joint frame is on the curve; it does not coincide with the parent's where q is 0.
    """

    curve: Any = None
    turns: bool = True

    fields: ClassVar[Mapping[str, Field]] = {
        "curve": Field("m", "the curve, by its name in the section `curves`", CURVE),
        "turns": Field("1", "whether the child turns with the curve; true unless given", TRUTH, default=True),
    }

    def orientation(self, owner: str) -> np.ndarray:
        """Of the joint frame; the curve is checked here, where the joint's name is known."""
        if not isinstance(self.curve, Curve):
            raise ModelError(f"{owner}: curve must be made by cd.curve(...), got {self.curve!r}")
        if not isinstance(self.turns, bool | np.bool_):
            raise ModelError(f"{owner}: turns must be True or False, got {self.turns!r}")
        return np.eye(3)

    @property
    def kind(self) -> Kind:
        """Row of the joint table for this curve."""
        return curvilinear_kind(self.curve, bool(self.turns))


class Free(JointType):
    """Six freedoms; q is position (m) then quaternion, v the twist (rad/s, m/s) in child-frame components."""

    kind = FREE


OWN_TYPES: dict[str, type[JointType]] = {
    type.__name__.lower(): type
    for type in (Rigid, Revolute, Prismatic, Cylindrical, Screw, Universal, Spherical, Planar, Free, Curvilinear)
}
"""Cardan's own joint types by their names in files."""
ADDED_TYPES: dict[str, type[JointType]] = {}
"""Those that `add_joint` registered."""
AnyType = TypeVar("AnyType", bound=type[JointType])


def add_joint(type: AnyType) -> AnyType:
    """Register a joint type of your own, so that files can name it; returns the class, so it can be a decorator.

    Its name in files is the name of the class in lower case. Registration is explicit, as for formulations and
    integrators: what a file may name is decided by a line of your program, not by which classes happen to exist. A
    type registered again under its name replaces the one before. A type that is not registered works everywhere but
    in `save` and `load`.
    """
    if not inspect.isclass(type) or not issubclass(type, JointType) or not is_dataclass(type):
        raise InputError(f"add_joint: a joint type is a frozen dataclass that inherits cd.JointType, got {type!r}")
    name = type.__name__.lower()
    if name in OWN_TYPES:
        raise InputError(f"add_joint: joint type {name!r} is Cardan's own; choose another name for the class")
    unknown = set(type.fields) - set(type.declared())
    if unknown:
        raise InputError(f"add_joint: {min(unknown)!r} in fields of {type.__name__} is not a field of the dataclass")
    ADDED_TYPES[name] = type
    return type


def joint_types() -> dict[str, type[JointType]]:
    """Every joint type that files can name, by name."""
    return OWN_TYPES | ADDED_TYPES


def _from_two_axes(owner: str, a: tuple[str, np.ndarray], b: tuple[str, np.ndarray]) -> np.ndarray:
    """Rotation whose first column is a, second b: perpendicular unit vectors."""
    (a_name, x), (b_name, y) = a, b
    if abs(float(x @ y)) > 1e-6:
        angle = np.degrees(np.arccos(np.clip(x @ y, -1, 1)))
        raise ModelError(f"{owner}: {a_name} and {b_name} must be perpendicular, they make {angle:.4g} degrees")
    y = y - x * (x @ y)
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


def reversed_kind(kind: Kind) -> Kind:
    """Row of a joint met from its child's side: same q and v, the roles of F and M exchanged."""
    if "reversed" not in vars(kind):
        vars(kind)["reversed"] = _reversed_kind(kind)  # kept with the kind, so that it goes when the kind does
    found: Kind = vars(kind)["reversed"]
    return found


def _reversed_kind(kind: Kind) -> Kind:
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

    bias, turn, W = kind.bias, kind.E, kind.W
    return Kind(
        f"reversed {kind.name}", kind.nq, kind.nv, kind.neutral,
        E=None if turn is None else lambda q: turn(q).T,
        r=None if kind.r is None else shift,
        S=lambda q: -(X_FM(q) @ as_graph(kind.S(q), q)),
        bias=None if bias is None else lambda q, v: -(X_FM(q) @ bias(q, v)),
        T=lambda q: -(X_FM(q).inverse.T @ as_graph(kind.T(q), q)),
        phi=lambda R, p: kind.phi(R.T, -(R.T @ p)), measure=lambda R, p: kind.measure(R.T, -(R.T @ p)),
        plus=kind.plus, q_units=kind.q_units, v_units=kind.v_units, reverses=kind,
        mark=kind.mark, shown_axes=kind.shown_axes, slides=kind.slides, family=kind.family, letters=kind.letters,
        rate_letters=kind.rate_letters, in_plane=kind.in_plane, unmoved=kind.unmoved, motions=kind.motions,
        periods=kind.periods, not_measured=kind.not_measured, track=kind.track, reach=kind.reach,
        row_names=kind.row_names, W=None if W is None else lambda q: -(X_FM(q).inverse.T @ as_graph(W(q), q)),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class RecordedFunction:
    """One function of a user's kind as a graph, for symbols and for arrays; `shape` is that of the array."""

    graph: Any
    shape: tuple[int, ...]

    def __call__(self, *args: Any) -> Any:
        """Evaluate, or write into another graph."""
        value = self.graph(*args)
        return value if any(map(is_symbol, args)) else np.array(value, dtype=float).reshape(self.shape)


def _shapes(nq: int, nv: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the results of the functions of a kind."""
    return {
        "E": (3, 3), "r": (3,), "S": (6, nv), "bias": (6,), "T": (6, 6 - nv), "phi": (6 - nv,), "plus": (nq,),
        "measure": (nq,), "W": (6, nv),
    }  # fmt: skip


def _graphs(kind: Kind) -> dict[str, Any]:
    """The functions of a user's kind, each run on symbols. Reject one that fails, or gives another graph each time."""
    import casadi as ca

    nq, nv = kind.nq, kind.nv
    symbols = {"q": ca.SX.sym("q", nq), "v": ca.SX.sym("v", nv), "R": ca.SX.sym("R", 3, 3), "p": ca.SX.sym("p", 3)}
    shapes = _shapes(nq, nv)
    found = {}
    for name, arguments in FUNCTIONS_OF.items():
        function, given, shape = getattr(kind, name), [symbols[x] for x in arguments], shapes[name]
        if function is None or (kind.not_measured and name in MEASURED):
            continue
        owner = f"joint kind {kind.name!r}: {name}"
        try:
            first, again = (as_graph(function(*given), symbols["q"]) for _ in range(2))
        except Exception as error:  # whatever a user's function may raise
            raise ModelError(
                f"{owner} cannot be traced, {type(error).__name__}: {error}; it is run on CasADi symbols, so use "
                "functions of casadi and cardan.algebra"
            ) from error
        column = (*shape, 1)[:2]
        if first.shape != column:
            raise ModelError(f"{owner} must have shape {column}, got {first.shape}")
        graphs = [ca.Function(name, given, [ca.SX(value)]) for value in (first, again)]
        if graphs[0].serialize() != graphs[1].serialize():
            raise ModelError(
                f"{owner} gives another result each time it is run. It is run when the model is built, and random "
                "numbers or state would stay as they were then; make them fields of the joint type"
            )
        found[name] = RecordedFunction(graphs[0], shape)
    return found


_CONSISTENT: set[str] = set()  # kinds whose mathematics was found right


def _check_mathematics(kind: Kind) -> None:
    """Reject a recorded row whose functions contradict one another, by number at a configuration near the neutral."""
    if kind.identity in _CONSISTENT:
        return
    import casadi as ca

    q, v, twist = ca.SX.sym("q", kind.nq), ca.SX.sym("v", kind.nv), ca.SX.sym("twist", 6)
    pose = ca.SX.sym("pose", 12)
    R, p = ca.reshape(pose[:9], 3, 3), pose[9:]
    moved = ca.vertcat(ca.vec(R @ ca.skew(twist[:3])), R @ twist[3:])  # rate of the pose with this velocity of M in F
    given: dict[str, Any] = {"q": q, "v": v, "R": R, "p": p}
    found: dict[str, Any] = {"E": ca.SX.eye(3), "r": ca.SX(3, 1), "bias": ca.SX(6, 1)}
    for name, arguments in FUNCTIONS_OF.items():
        if getattr(kind, name) is not None and not (kind.not_measured and name in MEASURED):
            found[name] = ca.SX(getattr(kind, name)(*(given[x] for x in arguments)))
    S, T, qdot = found["S"], found["T"], configuration_rate(kind, q, v)
    phi, measured = found.get("phi", ca.SX(6 - kind.nv, 1)), found.get("measure", q)
    posed = ca.densify(ca.vertcat(ca.vec(found["E"].T), found["r"]))
    claims = {
        "E and r do not change with S(q) v": ca.jtimes(posed, q, qdot) - ca.substitute(moved, twist, ca.densify(S @ v)),
        "bias(q, v) is not the rate of S(q), times v": found["bias"] - ca.jtimes(S @ v, q, qdot),
        "T(q)^T S(q) is not zero": ca.vec(T.T @ S),
        "phi is not zero on the joint's motions": phi,
        "the rate of phi[k] is not T[:, k]^T times the velocity of M in F": ca.jtimes(phi, pose, moved) - T.T @ twist,
        "measure does not give q back": measured - q,
        "W(q)^T S(q) is not 1": ca.vec(found["W"].T @ S - ca.SX.eye(kind.nv)) if kind.W is not None else ca.SX(0, 1),
    }
    if kind.not_measured:
        del claims["the rate of phi[k] is not T[:, k]^T times the velocity of M in F"]
    rng = np.random.default_rng(1)
    x = ca.Function("plus", [q, v], [found["plus"]])(kind.neutral, 0.1 * rng.standard_normal(kind.nv))
    errors = ca.Function("claims", [q, v, twist], [ca.substitute(claim, pose, posed) for claim in claims.values()])
    for claim, error in zip(
        claims, errors.call([x, ca.DM(rng.standard_normal(kind.nv)), ca.DM(rng.standard_normal(6))]), strict=True
    ):
        if not np.abs(np.array(error)).max(initial=0.0) < 1e-6:
            raise ModelError(f"joint kind {kind.name!r}: {claim}, checked at q = {x}")
    _CONSISTENT.add(kind.identity)


def _own_kind(name: str) -> Kind | None:
    """Row of Cardan's own table by its name."""
    if pitch := re.fullmatch(r"screw\(([-+]?[\d.]+(e[-+]?\d+)?)\)", name):
        return screw_kind(float(pitch[1]))
    return TABLE.get(name)


def configuration_rate(kind: Kind, q: Matrix, v: Matrix) -> Matrix:
    """Rate `qdot = N(q) v` of one joint, as a graph: the derivative of `plus` along v."""
    import casadi as ca

    start = ca.SX.sym("start", kind.nv)
    return ca.substitute(ca.jtimes(kind.plus(q, start), start, v), start, ca.SX.zeros(kind.nv))


def joint_transform(kind: Kind, q: AnyMatrix, E: AnyMatrix, r: AnyMatrix) -> Transform[AnyMatrix]:
    """Motion transform from the parent link to this link; `E`, `r` are the joint's placement in the parent.

    `X = turned(E_J) shifted(r_J) turned(E_T) shifted(r_T)` (RBDA section 4.1, `X = XJ XT`). The factors are kept
    apart: applied one after the other they cost less than their product, which has few zeros.
    """
    turn: tuple[Any, ...] = () if kind.E is None else (turned(kind.E(q)),)
    shift: tuple[Any, ...] = () if kind.r is None else (shifted(as_graph(kind.r(q), q)),)
    return Transform((*turn, *shift, turned(E), shifted(r)))
