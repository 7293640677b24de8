"""Curves in space: what a joint runs along, and what a point stays on.

    u        the parameter in which a curve is given, from `start` to `stop`
    s        arc length from its beginning, m: the coordinate of everything that moves along the curve
    r(s)     the point of the curve; beyond its ends an open curve goes on for `PAD` of its parameter where its function
             has values there, so that a body that is stopped at an end turns as before, and then straight
    R(s)     axes of its frame: x forwards along the tangent, z as near to `up` as the tangent allows, then turned
             about x by the bank

The points are exactly those of the curve. Its parameter is a cubic spline over arc length, which is refined until `s`
is arc length to `FINE`; velocities are the derivatives of `r(s)` itself, so that they agree with positions to rounding.

`nearest` inverts the curve: from a position, and for a body that turns with the curve from its direction too, to `s`.
It begins with a table over a coordinate that grows along the curve where there is one, with the nearest of some samples
elsewhere, and goes on with Gauss and Newton's steps, `s += (p - r) . r' / r'^2`, which converge cubically on the curve.
They are shortened far from it, by `1 + k^2 d^2` with the largest curvature `k` and the distance `d` across the curve.

Source: W. Wang, B. Juettler, D. Zheng, Y. Liu, Computation of rotation minimizing frames, ACM Trans. Graph. 27 (2008),
for frames that do not twist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import Matrix, Scalar, beside, cos, dot, sin, stack, where
from cardan.algebra.rotation import cross, unskew
from cardan.errors import InputError, ModelError
from cardan.lazy import cached_property
from cardan.model.table import Table, read_table, require_smooth, table_name
from cardan.model.values import floats, shown

if TYPE_CHECKING:
    import casadi

FINE = 1e-9  # how far the speed along the curve may differ from the rate of the coordinate
COARSE = 1e-5  # the same, where more pieces do not help
PIECES = 10_000  # of the parameter over arc length, at most
UPRIGHT = 0.02  # sine of the angle between the tangent and `up`, below which there is no frame
BEND = 0.5  # how far the tangent turns between two samples, rad
SAMPLES = 400  # at most, among which the nearest is found
FORWARDS = 0.2  # rate along a direction, from which a coordinate grows along the curve
STEPS = 3  # of Gauss and Newton, from a start nearer than half of `BEND`
CARRIED = "carried"
PAD = 1e-3  # of the range of the parameter


@dataclass(frozen=True, eq=False)
class Curve:
    """A smooth curve in space, open or closed, with a frame at each of its points. Make it with `cd.curve`.

    Args:
        name: a word for messages and files.
        position: graph of the point (3,), m, over the parameter.
        start: the parameter where the curve begins.
        stop: the parameter where it ends.
        closed: whether its end is its beginning.
        up: graph of the direction (3,) that the frame's z axis keeps to, over the parameter; None where it is carried
            along without twist.
        bank: graph of the angle (rad) by which the frame is turned about the tangent, over the parameter; None is 0.
        pad: how far the curve goes on beyond both ends, in its parameter.
        points: the points (n, 3), m, that it was made of; None where it was given by a function.
        given: what files hold of a curve of points: `up` (n, 3) and `bank` (n,), where they were given.

    """

    name: str
    position: casadi.Function
    start: float
    stop: float
    closed: bool = False
    up: casadi.Function | None = None
    bank: casadi.Function | None = None
    pad: float = 0.0
    points: np.ndarray | None = None
    given: tuple[tuple[str, np.ndarray], ...] = ()

    def __call__(self, s: Any) -> Any:
        """Points (..., 3), m, at arc lengths (...), m."""
        at = self._read(s)
        r, _, _ = self._numbers(self._parameter_at(at.ravel()))
        if not self.closed:
            first, last = (np.array(x).ravel() for x in self._ends)
            low, high = self._bounds
            before, beyond = np.minimum(at.ravel() - low, 0.0), np.maximum(at.ravel() - high, 0.0)
            r = r + before[:, None] * first + beyond[:, None] * last
        return r.reshape(*at.shape, 3)

    def axes(self, s: Any) -> Any:
        """Axes (..., 3, 3) of the frame at arc lengths (...), m; the columns are x, y and z, and x is the tangent."""
        at = self._read(s)
        found = np.array(self._place(at.reshape(1, -1))[1])
        return np.moveaxis(found.reshape(3, -1, 3), 1, 0).reshape(*at.shape, 3, 3)

    def curvature(self, s: Any) -> Any:
        """Curvatures (...), 1/m, at arc lengths (...), m."""
        at = self._read(s)
        _, slope, second = self._numbers(self._parameter_at(at.ravel()))
        bend = np.linalg.norm(np.cross(slope, second), axis=1) / np.linalg.norm(slope, axis=1) ** 3
        if not self.closed:
            low, high = self._bounds
            bend = np.where((at.ravel() < low) | (at.ravel() > high), 0.0, bend)
        return bend.reshape(at.shape)[()]

    @property
    def length(self) -> float:
        """Its length, m."""
        return float(np.interp(self.stop, *self._arc[::-1]))

    @property
    def _bounds(self) -> tuple[float, float]:
        """Arc lengths between which it is what it was given by; beyond it is straight."""
        s = self._arc[0]
        return float(s[0]), float(s[-1])

    @property
    def owner(self) -> str:
        """Its name in messages."""
        return f"curve {self.name!r}"

    def __repr__(self) -> str:
        """Name, how it was given, length."""
        made = f"function from {self.start:g} to {self.stop:g}" if self.points is None else f"{len(self.points)} points"
        return f"<{self.owner}: {made}, {'closed' if self.closed else 'open'}, {self.length:g} m long>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it without what was computed from it."""
        return Curve, tuple(getattr(self, f.name) for f in fields(self))

    def upright(self, up: Any) -> Curve:
        """The same curve with another direction that its frame keeps to; None carries the frame without twist."""
        return replace(self, up=up, bank=None)

    @cached_property
    def plain(self) -> Curve:
        """The same curve with a frame that is carried along without twist, which there always is."""
        return self if self.up is None and self.bank is None else self.upright(None)

    def line(self) -> np.ndarray:
        """Points (n, 3), m, for drawings."""
        s, r, _, _ = self._dense
        return np.asarray(r[np.linspace(0, len(s) - 1, min(len(s), 401)).astype(int)])

    # graphs over arc length

    def graph(self, s: Scalar) -> tuple[Matrix, Matrix]:
        """Point (3,) and axes (3, 3) at a symbol."""
        return tuple(self._place.call([s]))  # type: ignore[return-value]

    def rates(self, s: Scalar) -> tuple[Matrix, Matrix]:
        """Derivatives by arc length at a symbol: of the point (3,), and the frame's angular velocity in its axes."""
        return tuple(self._rates.call([s]))  # type: ignore[return-value]

    def nearest(self, p: Matrix, forwards: Matrix | None = None) -> Matrix:
        """Arc length of the point of the curve that is nearest to `p`; `forwards` is the direction of its tangent.

        Where a direction is given, points whose tangent has it are preferred.
        """
        start, bend = self._start(p, forwards), float(self._dense[3].max())
        for _ in range(STEPS):
            s = start if self.closed else _within(start, *self._bounds)
            r, dr = self.graph(s)[0], self.rates(s)[0]
            away, forth = p - r, dot(p - r, dr)
            start = s + forth / (dot(dr, dr) + bend**2 * (dot(away, away) - forth * forth))
        return start

    def why_unknown(self, turns: bool) -> str:
        """Why a pose does not tell where on the curve a body is; empty where it does.

        `turns` is whether the body turns with the curve, so that its direction is known as well.
        """
        return "" if self._growing is not None else self._samples(turns)[1]

    @cached_property
    def _place(self) -> casadi.Function:
        import casadi as ca

        s = ca.SX.sym("s")
        low, high = self._bounds
        inside = s if self.closed else _within(s, low, high)
        u = self._parameter(inside)
        r = self.position(u)
        if not self.closed:  # straight beyond the ends
            first, last = self._ends
            r = r + ca.fmin(s - low, 0.0) * first + ca.fmax(s - high, 0.0) * last
        return ca.Function("place", [s], [ca.densify(r), ca.densify(self._frame(u, inside))])

    @cached_property
    def _rates(self) -> casadi.Function:
        import casadi as ca

        s = ca.SX.sym("s")
        r, R = self.graph(s)
        dR = ca.reshape(ca.jacobian(ca.vec(R), s), 3, 3)
        return ca.Function("rates", [s], [ca.densify(ca.jacobian(r, s)), ca.densify(unskew(R.T @ dR))])

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        """Tangents at both ends."""
        import casadi as ca

        slope = self._numbers(np.array([self.start - self.pad, self.stop + self.pad]))[1]
        first, last = slope / np.linalg.norm(slope, axis=1)[:, None]
        return ca.DM(first), ca.DM(last)

    def _parameter(self, s: Scalar) -> Scalar:
        """The parameter at an arc length inside."""
        if not self.closed:
            return self._parameters.graph(s)
        import casadi as ca

        length, period = self.length, self.stop - self.start
        return self.start + (s - ca.floor(s / length) * length) * (period / length) + self._parameters.graph(s)

    @cached_property
    def _parameters(self) -> Table:
        """The parameter over arc length; of a closed curve what it has more than its mean."""
        s, u = self._arc
        if self.closed:
            u = u - self.start - s * ((self.stop - self.start) / s[-1])
            u[0] = u[-1] = 0.0
        return read_table(f"{self.name}_parameter", [s], u, 2, "periodic" if self.closed else "error")

    def _frame(self, u: Scalar, s: Scalar) -> Matrix:
        """Axes (3, 3) at a parameter and arc length."""
        x = _unit(_derivative(self.position, u))
        up = stack(*(table.graph(s) for table in self._carried)) if self.up is None else self.up(u)
        y = _unit(cross(up, x))
        z = cross(x, y)
        if self.bank is None:
            return beside(x, y, z)
        c, b = cos(self.bank(u)), sin(self.bank(u))
        return beside(x, c * y + b * z, c * z - b * y)

    # numbers

    def _read(self, s: Any) -> np.ndarray:
        """Arc lengths that a user gives."""
        try:
            return floats(s)
        except TypeError:
            raise InputError(f"{self.owner}: it takes arc lengths, m, got {shown(s)}") from None

    def _parameter_at(self, s: np.ndarray) -> np.ndarray:
        """Parameters (n,) at arc lengths (n,)."""
        from scipy.interpolate import CubicSpline

        spline = _closed_spline(*self._arc) if self.closed else CubicSpline(*self._arc)
        return np.asarray(spline(s % self.length if self.closed else np.clip(s, *self._bounds)))

    @cached_property
    def _numbers(self) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
        """Point and two derivatives, each (n, 3), at parameters (n,)."""
        if self.points is not None:  # the same as the graph, whose lookups are slow outside of kernels
            from scipy.interpolate import CubicSpline

            spline = CubicSpline(_chords(self.points), self.points, bc_type="periodic" if self.closed else "not-a-knot")
            return lambda u: tuple(spline(u, k) for k in range(3))
        import casadi as ca

        at = ca.SX.sym("u")
        slope = _derivative(self.position, at)
        graph = ca.Function("numbers", [at], [self.position(at), slope, ca.jacobian(slope, at)])
        return lambda u: tuple(np.array(x).T for x in graph.call([ca.DM(u).T]))

    def _speed(self, u: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.norm(self._numbers(u.ravel())[1], axis=1).reshape(u.shape))

    @cached_property
    def _arc(self) -> tuple[np.ndarray, np.ndarray]:
        """Arc lengths (n,) and parameters (n,) of the pieces of the parameter over arc length."""
        from scipy.interpolate import CubicSpline

        node, weight = np.polynomial.legendre.leggauss(10)
        knots = self._knots
        if self.pad:
            knots = np.concatenate([[self.start - self.pad], knots, [self.stop + self.pad]])
        error = np.inf
        many = 1
        while True:
            u = np.interp(np.arange((len(knots) - 1) * many + 1) / many, np.arange(len(knots)), knots)
            h = np.diff(u)[:, None] / 2
            inner = u[:-1, None] + h * (1 + node)
            s = np.concatenate([[0.0], np.cumsum((self._speed(inner) @ weight) * h[:, 0])])
            if self.pad:
                s = s - s[many]
            spline = CubicSpline(s, u) if not self.closed else _closed_spline(s, u)
            check = (s[:-1] + s[1:]) / 2, s[:-1] + 0.21 * np.diff(s)
            before, error = error, max(np.abs(self._speed(spline(x)) * spline(x, 1) - 1).max() for x in check)
            if error < FINE or len(u) * 2 > PIECES or (error < COARSE and error > before / 2):
                break
            many *= 2
        if not error < COARSE:
            worst = float(check[0][np.abs(self._speed(spline(check[0])) * spline(check[0], 1) - 1).argmax()])
            raise ModelError(
                f"{self.owner}: its length cannot be measured to better than {error:.2g} near {worst:.4g} m from its "
                f"beginning, the parameter {float(spline(worst)):.4g}; does it have a corner there? Round it off"
            )
        return s, u

    @cached_property
    def _knots(self) -> np.ndarray:
        """Parameters (n,) between which the curve has all derivatives, as far as is known."""
        if self.points is None:
            return np.linspace(self.start, self.stop, 17)
        return _chords(self.points)

    @cached_property
    def _dense(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Arc lengths (n,), points (n, 3), tangents (n, 3) and curvatures (n,) close to each other."""
        turned = float(self._around(np.linspace(0.0, self.length, 2049))[2].mean()) * self.length
        s = np.linspace(0.0, self.length, int(np.clip(16 * turned, 512, 4096)) + 1)
        return s, *self._around(s)

    def _around(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points (n, 3), tangents (n, 3) and curvatures (n,) near arc lengths (n,)."""
        r, slope, second = self._numbers(np.interp(s, *self._arc))
        speed = np.linalg.norm(slope, axis=1)
        return r, slope / speed[:, None], np.linalg.norm(np.cross(slope, second), axis=1) / speed**3

    @cached_property
    def _carried(self) -> tuple[Table, ...]:
        """The components of a direction across the curve that does not twist, over arc length."""
        s = np.linspace(*self._bounds, len(self._dense[0]))
        r, x, _ = self._around(s)
        up = np.eye(3)[2] if abs(x[0, 2]) < 0.9 else np.eye(3)[np.abs(x[0]).argmin()]
        n = [up - x[0] * (x[0] @ up)]
        n[0] /= np.linalg.norm(n[0])
        for k in range(len(s) - 1):  # two reflections
            first = r[k + 1] - r[k]
            first /= np.linalg.norm(first)
            left, tangent = (a - 2 * first * (first @ a) for a in (n[k], x[k]))
            second = x[k + 1] - tangent
            size = second @ second
            n.append(left if size == 0 else left - 2 * second * (second @ left) / size)
        across = np.array(n)
        if self.closed:  # what is missing at the end is spread over the curve
            missing = np.arctan2(np.cross(across[-1], across[0]) @ x[0], across[-1] @ across[0])
            angle = (missing * s / s[-1])[:, None]
            across = np.cos(angle) * across + np.sin(angle) * np.cross(x, across)
            across[-1] = across[0]
        ends = "periodic" if self.closed else "error"
        return tuple(read_table(f"{self.name}_up_{c}", [s], across[:, k], 2, ends) for k, c in enumerate("xyz"))

    # from a position to where it is on the curve

    def _start(self, p: Matrix, forwards: Matrix | None) -> Matrix:
        """Arc length near that of the point nearest to `p`."""
        if self._growing is not None:
            direction, table = self._growing
            return table.graph(dot(direction, p))
        import casadi as ca

        turns = forwards is not None
        s, points, tangents = self._samples(turns)[0]
        weight = self._size**2 / 16
        best: Any = None
        for at, point, tangent in zip(s.tolist(), points, tangents, strict=True):
            score = dot(ca.SX(ca.DM(point)), p) - point @ point / 2
            if forwards is not None:
                score = score + weight * dot(ca.SX(ca.DM(tangent)), forwards)
            best = (
                (score, ca.SX(at)) if best is None else (ca.fmax(best[0], score), where(score > best[0], at, best[1]))
            )
        return best[1]

    @property
    def _size(self) -> float:
        return float(np.linalg.norm(np.ptp(self._dense[1], axis=0)))

    @cached_property
    def _growing(self) -> tuple[Any, Table] | None:
        """A direction along which the curve always goes forwards, and the arc length over the coordinate along it."""
        import casadi as ca

        s, r, x, _ = self._dense
        if self.closed:
            return None
        ways = [r[-1] - r[0], *np.eye(3), *-np.eye(3)]
        ways = [way / np.linalg.norm(way) for way in ways if np.linalg.norm(way) > 0]
        best = max(ways, key=lambda way: float((x @ way).min()))
        if (x @ best).min() < FORWARDS:
            return None
        kept = np.unique(np.linspace(0, len(s) - 1, min(len(s), 257)).astype(int))
        return ca.SX(ca.DM(best)), read_table(f"{self.name}_start", [r[kept] @ best], s[kept], 1, "hold")

    def _samples(self, turns: bool) -> tuple[tuple[np.ndarray, ...], str]:
        """Arc lengths, points and tangents among which the nearest one starts Newton's method; why it would not."""
        found: dict[bool, Any] = self._sampled
        if turns not in found:
            found[turns] = self._find_samples(turns)
        return found[turns]

    @cached_property
    def _sampled(self) -> dict[bool, Any]:
        return {}

    def _find_samples(self, turns: bool) -> tuple[tuple[np.ndarray, ...], str]:
        s, r, x, bend = self._dense
        at = np.hstack([r, x * (self._size / 4)]) if turns else r
        own = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(at, axis=0), axis=1))])
        rate = np.gradient(own, s)
        apart = np.full(len(s), np.inf)
        other = np.zeros(len(s), dtype=int)
        for k in range(len(s)):
            distance = np.linalg.norm(at - at[k], axis=1)
            along = np.abs(own - own[k])
            if self.closed:
                along = np.minimum(along, own[-1] - along)
            far = np.where(distance < along / 2, distance, np.inf)
            other[k] = far.argmin()
            apart[k] = far[other[k]]
        k = int(apart.argmin())
        step = float(np.diff(own).max())
        if apart[k] < 3 * step:
            near = float(np.linalg.norm(r[k] - r[other[k]]))
            known = "pose" if turns else "position"
            fix = "" if turns else ", or let the body turn with the curve, so that its direction tells them apart"
            first, second = sorted((s[k], s[other[k]]))
            return (), (
                f"{self.owner} comes back to within {near:.3g} m of itself, at {first:.4g} m and {second:.4g} m along "
                f"it, so that a {known} does not tell where on it a body is{fix}"
            )
        gap = np.minimum(BEND / np.maximum(bend, bend.max() / 8 + 1e-300), np.minimum(apart / rate, self.length / 4))
        gap = np.minimum(gap, np.minimum(np.roll(gap, 1), np.roll(gap, -1)))
        count = np.concatenate([[0.0], np.cumsum((1 / gap[1:] + 1 / gap[:-1]) / 2 * np.diff(s))])
        n = int(np.ceil(count[-1])) + 1
        if n > SAMPLES:
            return (), (
                f"{self.owner} turns so often that {n} samples would have to be searched to tell from a pose where on "
                f"it a body is, and {SAMPLES} are allowed"
            )
        kept = np.interp(np.linspace(0, count[-1], n), count, np.arange(len(s))).round().astype(int)
        kept = np.unique(kept[:-1] if self.closed else kept)
        return (s[kept], r[kept], x[kept]), ""


def curve(
    shape: Any, *, start: float | None = None, stop: float | None = None, closed: bool = False,
    up: Any = (0.0, 0.0, 1.0), bank: Any = None, name: str = "curve",
) -> Curve:  # fmt: skip
    """A smooth curve in space: for `cd.Curvilinear`, a joint along it, and for `mechanism.on_curve`, a point on it.

    Whatever it is given by, the coordinate along it is arc length, m, from its beginning. Beyond its ends an open curve
    goes on straight.

    Args:
        shape: points (n, 3), m, through which a cubic spline goes; a function of a parameter that returns x, y, z (m),
            written as other functions of a mechanism; or three `cd.table` of one parameter, for x, y and z.
        start: the parameter of a function where the curve begins.
        stop: the parameter of a function where it ends.
        closed: whether it goes from its last point to its first. A function, or tables, must then end as they begin.
        up: the direction that the z axis of the curve's frame keeps to, while x is the tangent: a direction (3,), one
            for each point (n, 3), a function of the parameter, or "carried" for a frame that is carried along without
            twist, as a track with loops needs it.
        bank: angle (rad) by which the frame is turned about the tangent, right-handed: a number, one for each point
            (n,), or a function of the parameter. A positive bank leans to the right.
        name: a word for messages and files.

    """
    word = table_name(name)
    owner = f"curve {word!r}"
    if not isinstance(closed, bool | np.bool_):
        raise InputError(f"{owner}: closed must be True or False, got {closed!r}")
    if callable(shape) or _are_tables(shape):
        made = _of_function(owner, word, shape, start, stop, bool(closed))
        count = 0
    else:
        if start is not None or stop is not None:
            raise InputError(f"{owner}: start and stop are of a function's parameter; points have none")
        made = _of_points(owner, word, shape, bool(closed))
        assert made.points is not None
        count = len(made.points)
    given: dict[str, np.ndarray] = {}
    if not (isinstance(up, str) and up == CARRIED):
        made = replace(made, up=_over_parameter(made, "up", up, count, 3, given))
    if bank is not None and not (np.ndim(bank) == 0 and not callable(bank) and bank == 0):
        made = replace(made, bank=_over_parameter(made, "bank", bank, count, 1, given))
    made = replace(made, given=tuple(given.items()))
    _check(made)
    return made if closed else _padded(made)


def _are_tables(shape: Any) -> bool:
    return isinstance(shape, list | tuple) and any(isinstance(part, Table) for part in shape)


def _of_function(owner: str, word: str, shape: Any, start: Any, stop: Any, closed: bool) -> Curve:
    import casadi as ca

    if not callable(shape):
        tables = list(shape)
        if len(tables) != 3 or not all(isinstance(table, Table) and len(table.axes) == 1 for table in tables):
            raise InputError(f"{owner}: tables must be three of one parameter, for x, y and z, got {shown(shape)}")
        start = max(table.axes[0][0] for table in tables) if start is None else start
        stop = min(table.axes[0][-1] for table in tables) if stop is None else stop
        shape = lambda u: [table(u) for table in tables]
    if start is None or stop is None:
        raise InputError(f"{owner}: a function needs start and stop, the parameters where it begins and ends")
    try:
        first, last = (float(floats(x)) for x in (start, stop))
    except (TypeError, ValueError):
        raise InputError(f"{owner}: start and stop must be numbers, got {start!r} and {stop!r}") from None
    if not first < last or not np.isfinite([first, last]).all():
        raise InputError(f"{owner}: start must be below stop, got {first:g} and {last:g}")
    u = ca.SX.sym("u")
    graph = _traced(owner, shape, u, 3, "function")
    require_smooth(owner, graph)
    return Curve(word, graph, first, last, closed)


def _of_points(owner: str, word: str, shape: Any, closed: bool) -> Curve:
    try:
        points = floats(shape)
    except TypeError:
        raise InputError(f"{owner}: it takes points (n, 3), a function or three tables, got {shown(shape)}") from None
    if points.ndim != 2 or points.shape[1] != 3:
        raise InputError(f"{owner}: points must have the shape (n, 3), got {points.shape}")
    if not np.isfinite(points).all():
        k = int(np.argwhere(~np.isfinite(points).all(axis=1))[0, 0])
        raise InputError(f"{owner}: point {k} is {points[k].tolist()}; every number must be finite")
    if closed and np.linalg.norm(points[0] - points[-1]) > 1e-9 * np.ptp(points, axis=0).max():
        points = np.vstack([points, points[:1]])
    elif closed:
        points[-1] = points[0]
    if len(points) < 4:
        raise InputError(f"{owner}: it needs at least 4 points, or 3 if it is closed, got {len(points) - closed}")
    apart = np.linalg.norm(np.diff(points, axis=0), axis=1)
    if apart.min() <= 1e-9 * apart.sum():
        k = int(apart.argmin())
        raise InputError(f"{owner}: points {k} and {k + 1} are at one place, {points[k].tolist()}; leave one out")
    u = _chords(points)
    points.flags.writeable = False
    return Curve(word, _spline(word, u, points, closed, "xyz"), 0.0, float(u[-1]), closed, points=points)


def _traced(owner: str, function: Any, u: Any, size: int, what: str) -> Any:
    """A function of the parameter as a graph of so many numbers."""
    from cardan.model.force import trace  # forces are along joints, and joints along curves

    return trace(owner, function, [u], (u,), (size,), what=what)


def _padded(made: Curve) -> Curve:
    """The same curve going on for a little beyond its ends, where its functions have values there."""
    pad = PAD * (made.stop - made.start)
    at = np.array([made.start - pad, made.stop + pad])
    graphs = [f for f in (made.position, made.up, made.bank) if f is not None]
    inside = made._numbers(np.array([made.start, made.stop]))[1]
    outside = made._numbers(at)[1]
    known = all(np.isfinite(np.array(f(at.reshape(1, -1)))).all() for f in graphs) and np.isfinite(outside).all()
    return replace(made, pad=pad) if known and np.linalg.norm(outside - inside) < np.linalg.norm(inside) else made


def _chords(points: np.ndarray) -> np.ndarray:
    """The parameter (n,) of points: the length of the straight lines up to each."""
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])


def _spline(word: str, u: np.ndarray, values: np.ndarray, closed: bool, letters: Sequence[str]) -> Any:
    """Graph of a cubic spline over the parameter through values (n, k)."""
    import casadi as ca

    ends = "periodic" if closed else "error"
    x = ca.SX.sym("u")
    if not closed:  # with a point more at both ends, on the same polynomials
        from scipy.interpolate import CubicSpline

        far = np.array([u[0] - 2 * PAD * (u[-1] - u[0]), u[-1] + 2 * PAD * (u[-1] - u[0])])
        first, last = CubicSpline(u, values)(far)
        u, values = np.concatenate([far[:1], u, far[1:]]), np.vstack([first, values, last])
    columns = [read_table(f"{word}_{a}", [u], values[:, k], 2, ends).graph(x) for k, a in enumerate(letters)]
    return ca.Function("spline", [x], [ca.vertcat(*columns)])


def _over_parameter(made: Curve, what: str, value: Any, count: int, size: int, given: dict[str, np.ndarray]) -> Any:
    """Graph of `up` or of the bank over the parameter."""
    import casadi as ca

    u = ca.SX.sym("u")
    if callable(value):
        return _traced(made.owner, value, u, size, what)
    wanted = "a direction (3,)" if size == 3 else "a number"
    try:
        numbers = floats(value)
    except TypeError:
        many = f", or {count} of them" if count else ""
        word = ', "carried"' if size == 3 else ""
        raise InputError(
            f"{made.owner}: {what} must be {wanted}{many}{word}, or a function, got {shown(value)}"
        ) from None
    if not np.isfinite(numbers).all():
        raise InputError(f"{made.owner}: {what} must be finite, got {shown(value)}")
    one = () if size == 1 else (size,)
    if numbers.shape == one:
        if size == 3 and not numbers.any():
            raise InputError(f"{made.owner}: up must not be zero")
        return ca.Function(what, [u], [ca.SX(ca.DM(numbers))])
    if made.points is None:
        raise InputError(f"{made.owner}: {what} must be {wanted} or a function of the parameter, got {shown(value)}")
    if made.closed and len(numbers) == count - 1:
        numbers = np.concatenate([numbers, numbers[:1]])
    if numbers.shape != (count, *one):
        raise InputError(f"{made.owner}: {what} must be {wanted}, or one for each of the {count} points, got the shape "
                         f"{numbers.shape}")  # fmt: skip
    if made.closed and not np.allclose(numbers[0], numbers[-1], atol=1e-9):
        raise InputError(f"{made.owner}: {what} must be the same at the first and at the last point of a closed curve")
    numbers.flags.writeable = False
    given[what] = numbers
    letters = [f"{what}_{c}" for c in "xyz"] if size == 3 else [what]
    return _spline(made.name, _chords(made.points), numbers.reshape(count, size), made.closed, letters)


def _check(curve: Curve) -> None:
    """Refuse a curve without a tangent somewhere, one that does not close, and one that runs along `up`."""
    u = np.linspace(curve.start, curve.stop, 2049)
    r, slope, second = (x.T for x in curve._numbers(u))
    bad = ~np.isfinite(np.vstack([r, slope, second])).all(axis=0)
    if bad.any():
        raise ModelError(
            f"{curve.owner}: it, or one of two derivatives, is not finite at the parameter {u[bad][0]:.4g}"
        )
    speed = np.linalg.norm(slope, axis=0)
    if speed.min() < 1e-4 * speed.max():
        raise _cusp(curve, u[speed.argmin()])
    if curve.points is None:
        _check_corners(curve, u)
    size = float(np.ptp(r, axis=1).max())
    if curve.closed:
        apart = np.linalg.norm(r[:, -1] - r[:, 0])
        if apart > 1e-6 * size:
            raise ModelError(f"{curve.owner}: it is to be closed, and its end is {apart:.3g} m from its beginning")
        turned = np.linalg.norm(slope[:, -1] / speed[-1] - slope[:, 0] / speed[0])
        if turned > 1e-6:
            raise ModelError(f"{curve.owner}: it has a corner of {turned:.3g} rad where it closes; round it off")
    if curve.up is not None:
        up = np.array(curve.up(u.reshape(1, -1)))
        up = np.broadcast_to(up, (3, len(u)))
        sine = np.linalg.norm(np.cross(up.T, (slope / speed).T), axis=1) / np.linalg.norm(up, axis=0)
        if not sine.min() > UPRIGHT:
            raise ModelError(
                f"{curve.owner}: it runs along `up` at the parameter {u[np.nan_to_num(sine, nan=0.0).argmin()]:.4g}, "
                "so that its frame is not known there; write up='carried' for a frame without twist, or give a "
                "direction at every point"
            )


def _cusp(curve: Curve, u: float) -> ModelError:
    """The error where the derivative by the parameter is zero."""
    return ModelError(
        f"{curve.owner}: it stands still at the parameter {u:.4g}, so that it has no tangent; a cusp cannot be run "
        "along: let it begin or end before, or take another parameter"
    )


def _check_corners(curve: Curve, u: np.ndarray) -> None:
    """Refuse a corner: where the tangent turns by the same angle however near two points are."""

    def tangents(u: np.ndarray) -> np.ndarray:
        slope = curve._numbers(u)[1]
        return np.asarray(slope / np.linalg.norm(slope, axis=1)[:, None])

    def turned(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.asarray(np.linalg.norm(a - b, axis=1))

    u = u + 1e-4 * (u[1] - u[0])  # so that a corner at one of the points is between two
    u = u[:-1]
    x = tangents(u)
    worst = np.argsort(-turned(x[1:], x[:-1]))[:24]
    low, high = u[worst], u[worst + 1]
    for _ in range(30):
        half = (low + high) / 2
        a, b, c = tangents(np.concatenate([low, half, high])).reshape(3, -1, 3)
        first = turned(a, b) > turned(b, c)
        low, high = np.where(first, low, half), np.where(first, half, high)
    angle = turned(a, c)
    if angle.max() > 1e-3:
        k = int(angle.argmax())
        if curve._speed(low)[k] < 1e-4 * curve._speed(u).max():
            raise _cusp(curve, low[k])
        raise ModelError(
            f"{curve.owner}: it has a corner of {angle[k]:.3g} rad at the parameter {low[k]:.4g}, where accelerations "
            "are infinite; round it off"
        )


def _closed_spline(s: np.ndarray, u: np.ndarray) -> Callable[..., np.ndarray]:
    """The parameter over arc length of a closed curve: even growth, and a periodic spline."""
    from scipy.interpolate import CubicSpline

    rate = (u[-1] - u[0]) / s[-1]
    more = u - u[0] - rate * s
    more[0] = more[-1] = 0.0
    spline = CubicSpline(s, more, bc_type="periodic")
    return lambda x, n=0: spline(x, n) + (rate if n else u[0] + rate * x)


def _derivative(function: Any, u: Scalar) -> Matrix:
    import casadi as ca

    x = ca.SX.sym("u")
    slope: Any = ca.Function("slope", [x], [ca.densify(ca.jacobian(function(x), x))])
    return slope(u)


def _unit(x: Matrix) -> Matrix:
    import casadi as ca

    return x / ca.sqrt(dot(x, x))


def _within(s: Scalar, low: float, high: float) -> Scalar:
    import casadi as ca

    return ca.fmin(ca.fmax(s, low), high)
