"""What synthesis asks of a linkage, as rows with exact derivatives, for all starts and positions in one kernel call.

The unknowns `u` of a start are the free dimensions and points on frames, in units of the mechanism's size, and unknown
offsets of joint coordinates (rad, or m in the same unit). A start has a configuration `q` for every position: those at
which something is asked, then those of the motion over which the linkage must be assembled. At each of them

    phi(q, u) = 0      the loops are closed, and the input is where it is given
    e(q, u)            is what is made small: where a frame should be, or an output coordinate
    g(q, u) <= 0       transmission angles; and g0(u) <= 0, Grashof's rule
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.analysis.kinematics.targets import Aim
from cardan.formulation.derivative import PARAMETERS
from cardan.formulation.dynamics import constraint_state
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.formulation.spatial import SPATIAL, frame_pose_of
from cardan.functions.derivatives import with_derivatives
from cardan.model.model import Model
from cardan.structure.assemble import constraint_kernels
from cardan.structure.rows import row_sizes

CHORD = 1 / np.sqrt(2)  # of rotation matrices: times their difference it is the angle, where that is small


@dataclass(frozen=True, eq=False)
class Coordinate:
    """A coordinate of a joint that is given at positions: `values` (n,), rad or m, from an unknown offset if `column`.

    `q`, `v` are its places in configurations and rates, `unit` the size of its unit: 1 rad, or a length in m.
    """

    joint: str
    q: int
    v: int
    unit: float
    values: np.ndarray
    column: int | None = None

    def rows(self, u: np.ndarray, q: np.ndarray, nv: int) -> Expression:
        """How far it is off (starts, positions, 1), in units of its size."""
        off = q[..., self.q] - self.values
        at_q, at_u = np.zeros((*off.shape, 1, nv)), np.zeros((*off.shape, 1, u.shape[-1]))
        at_q[..., self.v] = 1 / self.unit
        if self.column is not None:
            off = off - u[:, None, self.column] * self.unit
            at_u[..., self.column] = -1.0
        if self.unit == 1.0:
            off = (off + np.pi) % (2 * np.pi) - np.pi
        return Expression((off / self.unit)[..., None], at_q, at_u)


@dataclass(frozen=True, eq=False)
class Expression:
    """Rows (starts, positions, m) and their derivatives by rates (..., m, nv) and by unknowns (..., m, n)."""

    value: np.ndarray
    q: np.ndarray
    u: np.ndarray

    def __add__(self, other: Expression) -> Expression:
        """The sum."""
        return Expression(self.value + other.value, self.q + other.q, self.u + other.u)

    def __sub__(self, other: Expression) -> Expression:
        """The difference."""
        return Expression(self.value - other.value, self.q - other.q, self.u - other.u)

    def times(self, factor: float) -> Expression:
        """All rows times a number."""
        return Expression(factor * self.value, factor * self.q, factor * self.u)

    def cross(self, other: Expression) -> Expression:
        """Cross product of two vectors."""
        d = [
            np.cross(a, other.value[..., None], axis=-2) + np.cross(self.value[..., None], b, axis=-2)
            for a, b in ((self.q, other.q), (self.u, other.u))
        ]
        return Expression(np.cross(self.value, other.value), *d)

    def dot(self, other: Expression) -> Expression:
        """Scalar product of two vectors, one row."""
        d = [
            ((a * other.value[..., None]).sum(-2) + (self.value[..., None] * b).sum(-2))[..., None, :]
            for a, b in ((self.q, other.q), (self.u, other.u))
        ]
        return Expression((self.value * other.value).sum(-1, keepdims=True), *d)

    def over(self, other: Expression) -> Expression:
        """One row by another."""
        ratio = self.value / other.value
        d = [(a - ratio[..., None] * b) / other.value[..., None] for a, b in ((self.q, other.q), (self.u, other.u))]
        return Expression(ratio, *d)

    def rows(self, which: Any) -> Expression:
        """Some of the rows."""
        return Expression(self.value[..., which], self.q[..., which, :], self.u[..., which, :])


def stacked(parts: list[Expression]) -> Expression:
    """Rows one after the other."""
    return Expression(
        np.concatenate([x.value for x in parts], axis=-1),
        np.concatenate([x.q for x in parts], axis=-2),
        np.concatenate([x.u for x in parts], axis=-2),
    )


@dataclass(frozen=True, eq=False)
class FramePose:
    """Pose of a frame: its axes (3 expressions) and its origin."""

    axes: tuple[Expression, Expression, Expression]
    origin: Expression

    def point(self, c: Expression) -> Expression:
        """A point that has components `c` in the frame."""
        found = self.origin
        for k, axis in enumerate(self.axes):
            one = c.rows([k])
            found = found + Expression(
                axis.value * one.value,
                axis.q * one.value[..., None] + axis.value[..., None] * one.q,
                axis.u * one.value[..., None] + axis.value[..., None] * one.u,
            )
        return found

    def direction(self, c: np.ndarray) -> Expression:
        """A direction that has components `c` in the frame, in ground axes."""
        parts = [axis.times(float(x)) for axis, x in zip(self.axes, c, strict=True)]
        return parts[0] + parts[1] + parts[2]


@dataclass(frozen=True, eq=False)
class Transmission:
    """The angle between a coupler and the motion it drives must stay `least` (rad) away from 0 and pi.

    Points on the bodies are (body, joint, "at" or "child_at"); `turn`, `slide` the output's axis in its body.
    """

    coupler: str
    output: str
    near: tuple[int, str]
    far: tuple[int, str]
    pivot: tuple[int, str]
    turn: np.ndarray
    slide: np.ndarray
    least: float


@dataclass(frozen=True, eq=False)
class LinkageRows:
    """The rows at a point: `phi`, `e`, `g` of every position, and `g0` (starts, m0) with its derivative by `u`."""

    phi: Expression
    e: Expression
    g: Expression
    g0: np.ndarray
    g0_u: np.ndarray

    def part(self, which: Any) -> LinkageRows:
        """Those of some starts."""
        some = [Expression(x.value[which], x.q[which], x.u[which]) for x in (self.phi, self.e, self.g)]
        return LinkageRows(some[0], some[1], some[2], self.g0[which], self.g0_u[which])


@dataclass(frozen=True, eq=False)
class LinkageProblem:
    """A linkage with unknown dimensions, and what is asked of it.

    Args:
        model: with free numbers.
        length: size of the mechanism, m; the unit of unknown lengths.
        chosen: numbers of the free numbers that are unknown, in `p`.
        points: for each target the column of `u` and the axis of every component of its point that is unknown.
        aims: targets at `count` positions.
        functions: output coordinates at the same positions.
        input: coordinate that is given at all positions; NaN where it is free.
        transmission: limits on transmission angles.
        loops: for each rule of Grashof four pairs of places on one body: the shortest first.
        low: bounds (n,) of the unknowns.
        high: bounds (n,) of the unknowns.

    """

    model: Model
    length: float
    chosen: np.ndarray
    points: tuple[tuple[tuple[int, int], ...], ...]
    aims: tuple[Aim, ...]
    functions: tuple[Coordinate, ...]
    input: Coordinate | None
    count: int
    transmission: tuple[Transmission, ...]
    loops: tuple[tuple[tuple[Place, Place], ...], ...]
    low: np.ndarray
    high: np.ndarray

    def at(self, positions: list[int]) -> LinkageProblem:
        """The same problem at some of its positions; at those of the motion nothing is asked."""
        asked = [k for k in positions if k < self.count]
        aims = tuple(replace(aim, data=tuple(d[asked] for d in aim.data)) for aim in self.aims)
        functions = tuple(replace(x, values=x.values[asked]) for x in self.functions)
        given = None if self.input is None else replace(self.input, values=self.input.values[positions])
        return replace(self, aims=aims, functions=functions, input=given, count=len(asked))

    @property
    def has_free_input(self) -> bool:
        """Whether the input is free at some positions."""
        return self.input is None or bool(np.isnan(self.input.values).any())

    def parameters(self, u: np.ndarray) -> np.ndarray:
        """Free numbers `p` (starts, size) at unknowns `u`."""
        p = np.tile(self.model.parameters.nominal, (len(u), 1))
        p[:, self.chosen] = u[:, : len(self.chosen)] * self.length
        return p

    def model_at(self, u: np.ndarray) -> Model:
        """The linkages, a batch (starts, 1), so that it broadcasts with positions."""
        return self.model._bound(self.parameters(u)[:, None, :])

    @property
    def rate_units(self) -> np.ndarray:
        """Size (nv,) of the unit of each rate: 1 rad, or the length in m."""
        units = [unit for link in self.model.tree.links for unit in link.kind.v_units]
        return np.array([1.0 if unit == "rad/s" else self.length for unit in units])

    def gaps(self, u: np.ndarray, q: np.ndarray) -> Expression:
        """`phi` alone, at unknowns `u` (starts, n) and configurations `q` (starts, positions, nq); by rates only."""
        size, n = row_sizes(self.model), u.shape[-1]
        if len(size):
            phi, phi_q = map(np.asarray, constraint_kernels(self.model_at(u))[0](q))
        else:
            phi, phi_q = np.zeros((*q.shape[:-1], 0)), np.zeros((*q.shape[:-1], 0, self.model.nv))
        loops = Expression(phi / size, phi_q / size[:, None], np.zeros((*phi.shape, n)))
        return stacked([loops, self._input_row(u, q)])

    def evaluate(self, u: np.ndarray, q: np.ndarray) -> LinkageRows:
        """All rows at unknowns `u` (starts, n) and configurations `q` (starts, positions, nq).

        There are errors at the first `count` positions, zero at the others.
        """
        model, nl, nv = self.model, len(self.model.rows), self.model.nv
        frames = self._frames()
        found = with_derivatives(
            "synthesise", self.model_at(u), ("q", PARAMETERS), "tangent", _quantity(model, frames), SPATIAL, (q,)
        )
        D_u = np.zeros((*found.value.shape, u.shape[-1]))
        D_u[..., : len(self.chosen)] = found[PARAMETERS][..., self.chosen] * self.length
        whole = Expression(found.value, found["q"], D_u)
        size = row_sizes(model)
        phi, none = whole.rows(slice(0, nl)), whole.rows(slice(0, 0))
        phi = Expression(phi.value / size, phi.q / size[:, None], phi.u / size[:, None])
        phi = stacked([phi, self._input_row(u, q)])
        poses = {}
        for k, frame in enumerate(frames):
            first = nl + 12 * k
            x, y, z, r = (whole.rows(slice(first + 3 * i, first + 3 * i + 3)) for i in range(4))
            poses[frame] = FramePose((x, y, z), r)
        errors = [self._error(k, poses, u) for k in range(len(self.aims))]
        errors += [x.rows(u, q[:, : len(x.values)], nv) for x in self.functions]
        e = stacked([_padded(x, q.shape[1]) for x in errors])
        g = stacked([none, *(self._transmission(x, poses, u) for x in self.transmission)])
        g0, g0_u = self._grashof(u)
        return LinkageRows(phi, e, g, g0, g0_u)

    def _frames(self) -> list[str]:
        names = [aim.frame for aim in self.aims]
        names += [name for x in self.transmission for name in (x.coupler, x.output)]
        return list(dict.fromkeys(names))

    def _input_row(self, u: np.ndarray, q: np.ndarray) -> Expression:
        """The input where it is given; a row of zeros where it is free."""
        if self.input is None:
            shape = (*q.shape[:-1], 0)
            return Expression(np.zeros(shape), np.zeros((*shape, self.model.nv)), np.zeros((*shape, u.shape[-1])))
        row = self.input.rows(u, q, self.model.nv)
        given = ~np.isnan(self.input.values)[..., None]
        slope = given[..., None]
        return Expression(np.where(given, row.value, 0.0), np.where(slope, row.q, 0.0), np.where(slope, row.u, 0.0))

    def _error(self, k: int, poses: dict[str, FramePose], u: np.ndarray) -> Expression:
        """What remains of a target, rotations in rad, positions in units of the length, times its weight."""
        aim, n = self.aims[k], self.count
        pose, data, rows = poses[aim.frame], list(aim.data), []
        if aim.turns == "orientation":
            R = data.pop(0).reshape(n, 3, 3)
            axes = [_minus(_first(axis, n), R[:, :, i]).times(CHORD) for i, axis in enumerate(pose.axes)]
            rows += axes
        elif aim.turns:
            rows.append(_minus(_first(pose.direction(aim.axis), n), data.pop(0)))
        if aim.along:
            place = _first(pose.point(self._point(k, pose, u)), n)
            rows.append(_minus(place, data.pop(0)).times(1 / self.length).rows(list(aim.along)))
        return stacked(rows).times(aim.weight)

    def _point(self, k: int, pose: FramePose, u: np.ndarray) -> Expression:
        """Components of the point of target k in its frame, m; some are unknown."""
        shape = pose.origin.value.shape
        c, c_u = np.tile(self.aims[k].point, (len(u), 1)), np.zeros((len(u), 3, u.shape[-1]))
        for column, axis in self.points[k]:
            c[:, axis] = u[:, column] * self.length
            c_u[:, axis, column] = self.length
        return Expression(
            np.broadcast_to(c[:, None], shape), np.zeros_like(pose.origin.q),
            np.broadcast_to(c_u[:, None], pose.origin.u.shape),
        )  # fmt: skip

    def place_on_body(self, place: Place, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Position (starts, 3) of a joint on one of its bodies, m, and its derivative (starts, 3, n) by unknowns."""
        joint, side = place
        c_u = np.zeros((len(u), 3, u.shape[-1]))
        name = f"{self.model.joints[joint].name}.{side}"
        c = np.tile(np.asarray(getattr(self.model.joints[joint], side).position, dtype=float), (len(u), 1))
        if name in self.model.parameters.names:
            at = self.model.parameters.slice_of(name)
            c = self.parameters(u)[:, at]
            for column, number in enumerate(self.chosen):
                if at.start <= number < at.stop:
                    c_u[:, number - at.start, column] = self.length
        return c, c_u

    def _transmission(self, x: Transmission, poses: dict[str, FramePose], u: np.ndarray) -> Expression:
        """Negative where the square of the sine of the transmission angle is large enough: one row."""

        def on(pose: FramePose, place: Place) -> Expression:
            c, c_u = self.place_on_body(place, u)
            shape, shape_u = pose.origin.value.shape, pose.origin.u.shape
            there = Expression(
                np.broadcast_to(c[:, None], shape), np.zeros_like(pose.origin.q), np.broadcast_to(c_u[:, None], shape_u)
            )
            return pose.point(there)

        coupler, output = poses[x.coupler], poses[x.output]
        P = on(coupler, x.near)
        bar = on(coupler, x.far) - P
        along = output.direction(x.slide) + output.direction(x.turn).cross(P - on(output, x.pivot))
        force = bar.dot(along)
        squared = force.dot(force).over(_product(bar.dot(bar), along.dot(along)))
        return Expression(np.sin(x.least) ** 2 - squared.value, -squared.q, -squared.u)

    def _grashof(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Negative where the shortest link and any other together are shorter than the remaining two."""
        rows, slopes = [np.zeros((len(u), 0))], [np.zeros((len(u), 0, u.shape[-1]))]
        for loop in self.loops:
            l, l_u = zip(*(self._distance(a, b, u) for a, b in loop), strict=True)
            for one in (1, 2, 3):
                others = [k for k in (1, 2, 3) if k != one]
                rows.append((l[0] + l[one] - l[others[0]] - l[others[1]])[:, None] / self.length)
                slopes.append((l_u[0] + l_u[one] - l_u[others[0]] - l_u[others[1]])[:, None] / self.length)
        return np.concatenate(rows, axis=1), np.concatenate(slopes, axis=1)

    def _distance(self, a: Place, b: Place, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Length (starts,) between two joints of a body, m, and its derivative (starts, n)."""
        (p, p_u), (r, r_u) = self.place_on_body(a, u), self.place_on_body(b, u)
        d = r - p
        l = np.maximum(np.linalg.norm(d, axis=-1), 1e-300)
        return l, ((d / l[:, None])[..., None] * (r_u - p_u)).sum(axis=1)


Place = tuple[int, str]
"""A joint's number, and its side: "at" on the parent or "child_at" on the child."""


def _product(a: Expression, b: Expression) -> Expression:
    return a.dot(b)  # rows of one number


def _first(x: Expression, n: int) -> Expression:
    """The first positions."""
    return Expression(x.value[:, :n], x.q[:, :n], x.u[:, :n])


def _minus(x: Expression, y: np.ndarray) -> Expression:
    return Expression(x.value - y, x.q, x.u)


def _padded(x: Expression, positions: int) -> Expression:
    """With zeros at the positions at which nothing is asked."""
    more = positions - x.value.shape[1]
    if not more:
        return x
    wide = [np.concatenate([a, np.zeros((a.shape[0], more, *a.shape[2:]))], axis=1) for a in (x.value, x.q, x.u)]
    return Expression(wide[0], wide[1], wide[2])


def _quantity(model: Model, frames: list[str]) -> Quantity:
    """One column: `phi` of all rows, then axes and origin (12) of each frame."""
    whole = constraint_state(model)

    def write(model: Model, given: Inputs) -> list[Any]:
        import casadi as ca

        parts = [whole.graph(model, given)[0]] if len(model.rows) else []
        parts += [ca.vec(frame_pose_of(frame).graph(model, {"q": given["q"]})[0][:3, :]) for frame in frames]
        return [ca.vertcat(*parts)]

    places = [(link, at.matrix.tobytes()) for link, at in map(model.placement, frames)]
    name = f"linkage rows {hashlib.sha256(repr(places).encode()).hexdigest()[:16]}"
    outputs = (("rows", fixed(len(model.rows) + 12 * len(frames))),)
    return Quantity(name, ("q",), outputs, write=write)
