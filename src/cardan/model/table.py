"""Tables: measured or drawn values between which a polynomial is taken, as functions of numbers and of symbols.

    intervals  knots x[0] < x[1] < ...; interval k goes from x[k] to x[k + 1]
    pieces     a polynomial in h = x - x[k] for each interval, and one on either side, which the rule of the ends gives

On symbols a table is a graph: the interval by arithmetic, the coefficients by lookups (`cardan.lookup`), the
polynomial by Horner's rule. Its derivatives are those of the piece. Where knots are not evenly spaced a second array,
over even cells, tells the first interval that a cell meets; a search among those of one cell finds the right one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import is_symbol
from cardan.errors import InputError, ModelError, nearest
from cardan.lazy import cached_property
from cardan.lookup import SOURCE, called_functions, kind_of, label_of, lookup_function, source_function, values_of
from cardan.model.values import floats, shown

if TYPE_CHECKING:
    import casadi

ENDS = ("error", "hold", "linear", "periodic")
SMOOTH = {0: "a corner at every point", 1: "a continuous rate", 2: "two continuous derivatives"}
EVEN = 1e-13  # spacing of knots, relative to their size, up to which it counts as even
BEYOND = 1e-12  # of the range: how far outside is still rounding
CELLS = 4  # even cells for each knot, where knots are not evenly spaced

Entry = Callable[[int, int], str]
"""How messages call an entry, by axis and number, with what owns it; axis -1 is the values."""


@dataclass(frozen=True, eq=False)
class Table:
    """A function given by its values at points, of one number or of two. Make it with `cd.table` or `cd.table2`.

    Args:
        name: a word, for messages, files and printed equations.
        axes: the points of each argument, ascending.
        values: (n,), or (n, m) of two arguments.
        smooth: how many derivatives are continuous: 0, 1 or 2.
        ends: what is outside: "error" (NaN), "hold", "linear" or "periodic"; one for each argument.

    """

    name: str
    axes: tuple[np.ndarray, ...]
    values: np.ndarray
    smooth: int
    ends: tuple[str, ...]

    def __call__(self, *at: Any) -> Any:
        """The value at numbers of any common shape, or at symbols."""
        return self._evaluated(self._function, self.graph, at)

    def integral(self, x: Any) -> Any:
        """The integral from the first point to x, of a table of one argument."""
        if len(self.axes) != 1:
            raise InputError(f"{self.owner}: only a table of one argument has an integral")
        return self._evaluated(self._integral_function, self._integral_graph, (x,))

    @property
    def owner(self) -> str:
        """Its name in messages."""
        return f"table {self.name!r}"

    def __repr__(self) -> str:
        """Name, points, range and rules."""
        points = " x ".join(str(len(x)) for x in self.axes)
        ranges = " and ".join(f"from {x[0]:g} to {x[-1]:g}" for x in self.axes)
        ends = " and ".join(dict.fromkeys(self.ends))
        return f"<{self.owner}: {points} points {ranges}, {SMOOTH[self.smooth]}, ends: {ends}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it without its graphs."""
        return Table, (self.name, self.axes, self.values, self.smooth, self.ends)

    def with_integral(self) -> casadi.Function:
        """The function of time, which it does not depend on, and of x that gives the value at x and the integral."""
        import casadi as ca

        t, x = ca.SX.sym("t"), ca.SX.sym("x")
        return ca.Function("law", [t, x], [self.graph(x), self._integral_graph(x)])

    # numbers

    def _evaluated(self, function: casadi.Function, graph: Callable[..., Any], at: tuple[Any, ...]) -> Any:
        if len(at) != len(self.axes):
            raise InputError(f"{self.owner}: it takes {len(self.axes)} arguments, got {len(at)}")
        if any(is_symbol(x) for x in at):
            for x in at:
                if is_symbol(x) and x.shape != (1, 1):
                    raise InputError(f"{self.owner}: it takes one number at a time, got symbols of shape {x.shape}")
            return graph(*at)
        try:
            numbers = np.broadcast_arrays(*(floats(x) for x in at))
        except (TypeError, ValueError):
            raise InputError(f"{self.owner}: it takes numbers, got {', '.join(map(shown, at))}") from None
        found = np.array(function(*(x.reshape(1, -1) for x in numbers))).reshape(numbers[0].shape)
        return found if found.ndim else float(found)

    @cached_property
    def _function(self) -> Any:
        return self._compiled(self.graph)

    @cached_property
    def _integral_function(self) -> Any:
        return self._compiled(self._integral_graph)

    def _compiled(self, graph: Callable[..., Any]) -> Any:
        import casadi as ca

        x = [ca.SX.sym(f"x{n}") for n in range(len(self.axes))]
        return ca.Function("table", x, [graph(*x)])

    # graphs

    def graph(self, *at: Any) -> Any:
        """The value at symbols."""
        row, h, _ = self._place(*at)
        columns = [f(row) for f in self._lookups]
        return _horner(columns, h)

    def _integral_graph(self, x: Any) -> Any:
        row, h, turns = self._place(x)
        value = _horner([f(row) for f in self._integral_lookups], h)
        return value + turns * self._integral_of_period if self.ends[0] == "periodic" else value

    def _place(self, *at: Any) -> tuple[Any, list[Any], Any]:
        """Row of the coefficients, distance from the knot along each axis, and turns of a periodic first axis."""
        row: Any = 0
        turns: Any = 0
        h: list[Any] = []
        for axis, x in zip(self._axes, at, strict=True):
            own, distance, turns_here = axis.place(x)
            row, turns = row * (len(axis.x) + 1) + own, turns_here if not h else turns
            h.append(distance)
        return self._source(*at, row, -1), h, turns

    @cached_property
    def _axes(self) -> list[_Axis]:
        return [_Axis(self.name, x, ends) for x, ends in zip(self.axes, self.ends, strict=True)]

    @cached_property
    def _source(self) -> Any:
        heads = [self.smooth, *(ENDS.index(e) for e in self.ends), *(len(x) for x in self.axes)]
        return source_function(self.name, np.concatenate([heads, *self.axes, self.values.ravel()]), len(self.axes))

    @cached_property
    def _coefficients(self) -> np.ndarray:
        """Coefficients (d + 1, n + 1) or (d + 1, d + 1, (n + 1)(m + 1)), ascending powers of the distances."""
        several = len(self.axes) > 1
        c = _pieces(self._axes[0], self.values, self.smooth, several)
        if several:
            c = _pieces(self._axes[1], np.moveaxis(c, 2, 0), self.smooth, several)
            c = np.moveaxis(c, 1, 3)  # (q, p, n + 1, m + 1)
            c = np.moveaxis(c, 0, 1)
        for axis, ends in enumerate(self.ends):
            if ends == "error":
                rows = np.moveaxis(c, len(self.axes) + axis, 0)
                rows[[0, -1]] = np.nan
        return c.reshape(*c.shape[: len(self.axes)], -1)

    @cached_property
    def _lookups(self) -> Any:
        return _nested(self._coefficients, self.name, "c")

    @cached_property
    def _integral_coefficients(self) -> np.ndarray:
        c, x, about = self._coefficients, self.axes[0], self._axes[0].about
        powers = np.arange(1.0, len(c) + 1)[:, None]
        own = np.concatenate([np.zeros((1, c.shape[1])), c / powers])
        over = (own[1:, 1:-1] * np.diff(x) ** powers).sum(axis=0)  # of each interval
        own[0, 1:] = np.concatenate([[0.0], np.cumsum(over)])
        own[0, 0] = -(own[1:, :1] * (x[0] - about[0]) ** powers).sum()
        return own

    @cached_property
    def _integral_lookups(self) -> Any:
        return _nested(self._integral_coefficients, self.name, "i")

    @cached_property
    def _integral_of_period(self) -> float:
        return float(self._integral_coefficients[0, -1])


@dataclass(frozen=True, eq=False)
class _Axis:
    """The points of one argument, and the rows of its pieces: 0 below, k + 1 for interval k, n above."""

    name: str
    x: np.ndarray
    ends: str

    def place(self, x: Any) -> tuple[Any, Any, Any]:
        """Row of the piece, distance from where it is written about, and turns of a periodic axis, at a symbol."""
        import casadi as ca

        n, low, size = len(self.x), self._low, self._size
        turns: Any = 0
        if self.ends == "periodic":
            turns = ca.floor((x - low) * (1 / size))
            x = x - turns * size
        inside = self.ends == "periodic"
        if self.is_even:
            scale = (n - 1) / size
            row = _within(ca.floor((x - low) * scale + 1), 0, n, inside)
            step = float(self.x[-1] - self.x[0]) / (n - 1)
            return row, x - (row * step + float(self.x[0] - step)), turns
        first, searched, steps = self._search
        cells = len(first) - 2
        row = self._lookup("cell", first)(_within(ca.floor((x - low) * (cells / size) + 1), 0, cells + 1, inside))
        find = self._lookup("search", searched)
        for step in steps:
            row = row + step * (find(row + step) < x)
        return row, x - self._lookup("about", self.about)(row), turns

    @cached_property
    def is_even(self) -> bool:
        """Whether the points are evenly spaced."""
        even = np.linspace(self.x[0], self.x[-1], len(self.x))
        return bool(np.abs(self.x - even).max() <= EVEN * np.abs(self.x).max())

    @cached_property
    def about(self) -> np.ndarray:
        """Points (n + 1,) about which the polynomials of the rows are written: the knot below."""
        below = 2 * self.x[0] - self.x[1] if self.is_even else self.x[0]
        return np.concatenate([[below], self.x])

    @property
    def _room(self) -> float:
        """How far outside counts as inside."""
        return BEYOND * float(self.x[-1] - self.x[0]) if self.ends == "error" else 0.0

    @property
    def _low(self) -> float:
        return float(self.x[0]) - self._room

    @property
    def _size(self) -> float:
        return float(self.x[-1] - self.x[0]) + 2 * self._room

    @cached_property
    def _search(self) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """First row of each even cell, and of what is outside; the knots to compare with; the steps of the search."""
        n = len(self.x)
        edges = np.linspace(self._low, self._low + self._size, CELLS * n + 1)
        first = np.clip(np.searchsorted(self.x, edges, side="right"), 1, n - 1)
        most = int(np.diff(first).max())  # knots inside a cell
        steps = [2**k for k in reversed(range(most.bit_length()))]
        never = np.full(2 + sum(steps), np.inf)
        searched = np.concatenate([self.x[:1], self.x[:-1], never])
        return np.concatenate([[0.0], first[:-1], [float(n)]]), searched, steps

    def _lookup(self, what: str, values: np.ndarray) -> Any:
        return lookup_function(f"{self.name}_{what}", values)


def _within(index: Any, first: int, last: int, inside: bool) -> Any:
    """An index within bounds; with `inside` not at them."""
    import casadi as ca

    return ca.fmin(ca.fmax(index, first + inside), last - inside)


def _nested(coefficients: np.ndarray, name: str, letter: str) -> _Lookups:
    """Lookups of each column of coefficients: `_Lookups` of one or two indices of powers."""
    if coefficients.ndim == 2:
        return _Lookups([lookup_function(f"{name}_{letter}{p}", c) for p, c in enumerate(coefficients)])
    return _Lookups([_nested(c, f"{name}_{letter}{p}", "c") for p, c in enumerate(coefficients)])


class _Lookups(list[Any]):
    """Lookups by power; called with a row they give its coefficients."""

    def __call__(self, row: Any) -> list[Any]:
        """The coefficients of a row, nested as the lookups are."""
        return [f(row) for f in self]


def _horner(columns: Sequence[Any], h: Sequence[Any]) -> Any:
    """The polynomial in the distances `h` with these coefficients, which are nested where there are two."""
    inner = [_horner(c, h[1:]) if isinstance(c, list) else c for c in columns]
    value = inner[-1]
    for c in reversed(inner[:-1]):
        value = c + h[0] * value
    return value


def _pieces(axis: _Axis, y: np.ndarray, smooth: int, several: bool) -> np.ndarray:
    """Coefficients (d + 1, n + 1, ...) of values (n, ...): below, in each interval, above.

    With `several` arguments the slopes of a table
    with a continuous rate are linear in its values, so that the pieces of the two axes fit together.
    """
    x = axis.x
    c = _splines(x, y, smooth, axis.ends, several)
    outside = np.zeros((2, *c[:, 0].shape))
    outside[0, 0], outside[1, 0] = y[0], y[-1]
    if axis.ends == "linear":
        h = float(x[-1] - x[-2])
        outside[0, 1], outside[1, 1] = c[1, 0], sum(p * c[p, -1] * h ** (p - 1) for p in range(1, len(c)))
        outside[0, 0] += (axis.about[0] - x[0]) * c[1, 0]
    return np.concatenate([outside[0][:, None], c, outside[1][:, None]], axis=1)


def _splines(x: np.ndarray, y: np.ndarray, smooth: int, ends: str, several: bool) -> np.ndarray:
    """Coefficients (d + 1, n - 1, ...) inside, ascending powers."""
    if smooth == 0:
        steps = np.diff(x).reshape(-1, *[1] * (y.ndim - 1))
        return np.stack([y[:-1], np.diff(y, axis=0) / steps])
    from scipy.interpolate import CubicHermiteSpline, CubicSpline

    if smooth == 2:
        kind = {"error": "not-a-knot", "hold": "clamped", "linear": "natural", "periodic": "periodic"}[ends]
        return np.asarray(CubicSpline(x, y, bc_type=kind).c[::-1])
    if ends == "periodic":
        size = x[-1] - x[0]
        far, wide = np.concatenate([x[-3:-1] - size, x, x[1:3] + size]), np.concatenate([y[-3:-1], y, y[1:3]])
        slopes = _slopes(far, wide, several)[2:-2]
        slopes[-1] = slopes[0]
    else:
        slopes = _slopes(x, y, several)
        if ends == "hold":
            slopes[[0, -1]] = 0.0
    return np.asarray(CubicHermiteSpline(x, y, slopes).c[::-1])


def _slopes(x: np.ndarray, y: np.ndarray, several: bool) -> np.ndarray:
    """Slopes at the points: of parabolas through neighbours, or, of one argument, such that nothing overshoots."""
    if several:
        return np.asarray(np.gradient(y, x, axis=0, edge_order=2))
    from scipy.interpolate import PchipInterpolator

    return np.array(PchipInterpolator(x, y).derivative()(x))


# Making tables, and finding them in graphs.


def read_table(
    name: str, axes: Sequence[Any], values: Any, smooth: Any, ends: Any, entry: Entry | None = None
) -> Table:  # fmt: skip
    """Validate what a table is made of; `entry` says where an entry was read."""
    word = table_name(name)
    owner = f"table {word!r}"
    if isinstance(smooth, bool) or smooth not in SMOOTH:
        raise InputError(f"{owner}: smooth must be 0, 1 or 2 continuous derivatives, got {smooth!r}")
    count = len(axes)
    rules = (ends,) * count if isinstance(ends, str) else tuple(ends)
    for rule in rules:
        if rule not in ENDS:
            raise InputError(f"{owner}: ends must be one of {', '.join(ENDS)}, got {rule!r}{nearest(rule, ENDS)}")
    if len(rules) != count:
        raise InputError(f"{owner}: ends must be one rule, or one for each of {count} arguments, got {ends!r}")
    letters = "xy"[:count] if count > 1 else "x"
    points = []
    for number, (given, letter) in enumerate(zip(axes, letters, strict=True)):
        points.append(_ascending(owner, letter, given, smooth, number, entry))
    what = "z" if count > 1 else "y"
    found = _numbers(owner, what, values, -1, entry)
    shape = tuple(len(x) for x in points)
    if found.shape != shape:
        raise InputError(f"{owner}: {what} must have the shape {shape} of its points, got {found.shape}")
    for axis, rule in enumerate(rules):
        if rule == "periodic":
            _require_period(owner, what, np.moveaxis(found, axis, 0))
    for array in (*points, found):
        array.flags.writeable = False
    return Table(word, tuple(points), found, int(smooth), rules)


def table_name(name: Any) -> str:
    """A name as a word of letters, digits and single `_` that begins with a letter."""
    word = re.sub(r"[^A-Za-z0-9]+", "_", str(name)).strip("_")
    return word if word[:1].isalpha() else f"table_{word}".rstrip("_")


def _numbers(owner: str, what: str, given: Any, axis: int, entry: Entry | None) -> np.ndarray:
    try:
        found = floats(given)
    except TypeError:
        raise InputError(f"{owner}: {what} must be numbers, got {shown(given)}") from None
    bad = np.argwhere(~np.isfinite(found))
    if len(bad):
        at = tuple(int(k) for k in bad[0])
        place = entry(axis, at[0]) if entry else f"{owner}: {what}[{', '.join(map(str, at))}]"
        raise InputError(f"{place} is {found[at]}; every entry must be a finite number")
    return found


def _ascending(owner: str, letter: str, given: Any, smooth: int, axis: int, entry: Entry | None) -> np.ndarray:
    x = _numbers(owner, letter, given, axis, entry)
    least = smooth + 2
    if x.ndim != 1 or len(x) < least:
        got = f"{len(x)}" if x.ndim == 1 else f"an array of shape {x.shape}"
        hint = f"; give more, or smooth={max(len(x) - 2, 0)}" if x.ndim == 1 and len(x) >= 2 else ""
        raise InputError(f"{owner}: {letter} must be at least {least} points for {SMOOTH[smooth]}, got {got}{hint}")
    wrong = np.flatnonzero(np.diff(x) <= 0)
    if len(wrong):
        k = int(wrong[0]) + 1
        place = entry(axis, k) if entry else f"{owner}: {letter}[{k}]"
        fix = "a jump is not a value: move one of the two" if x[k] == x[k - 1] else "sort the points"
        raise InputError(f"{place} is {x[k]:g} after {x[k - 1]:g}, and {letter} must ascend; {fix}")
    return x


def _require_period(owner: str, what: str, values: np.ndarray) -> None:
    apart = float(np.abs(values[-1] - values[0]).max())
    if apart > 1e-9 * max(float(np.ptp(values)), 1e-300):
        raise InputError(
            f"{owner}: ends='periodic' needs equal first and last values, and they differ by {apart:g}; give the last "
            f"point of a period with the {what} of the first"
        )
    values[-1] = values[0]


def table_of(function: casadi.Function) -> Table:
    """The table that a source of `cardan.lookup` notes."""
    numbers, count = values_of(function), function.n_in() - 2
    smooth, rules, sizes = int(numbers[0]), numbers[1 : 1 + count], numbers[1 + count : 1 + 2 * count].astype(int)
    *axes, values = np.split(numbers[1 + 2 * count :], np.cumsum(sizes))
    ends = tuple(ENDS[int(k)] for k in rules)
    return Table(label_of(function.name()), tuple(axes), values.reshape(sizes), smooth, ends)


def tables_in(function: Any) -> list[Table]:
    """The tables that a traced function reads, each once."""
    if function is None:
        return []
    found = {f.name(): f for f in called_functions(function).values() if kind_of(f.name()) == SOURCE}
    return [table_of(f) for f in found.values()]


def require_smooth(owner: str, function: Any) -> None:
    """Refuse a constraint on positions whose rate jumps, because it reads a table with corners."""
    for table in tables_in(function):
        if table.smooth == 0:
            raise ModelError(
                f"{owner}: {table.owner} has a corner at every point (smooth=0), and a constraint on positions needs "
                "two derivatives; give smooth=2, or smooth=1 where accelerations may jump"
            )


def outside(function: Any) -> str:
    """What to try where a traced function is not finite and reads tables that end; empty where it reads none."""
    found = [table for table in tables_in(function) if "error" in table.ends]
    if not found:
        return ""
    ranges = " and ".join(f"from {x[0]:g} to {x[-1]:g}" for x in found[0].axes)
    return f"{found[0].owner} goes {ranges}; give more points, or ends='hold', 'linear' or 'periodic'"
