"""Tables from arrays and from CSV files: `cd.table` and `cd.table2`.

A CSV file has one point a line: two columns of numbers, for a table of two arguments three. Columns are separated by
commas, semicolons, tabs or blanks; a first line without numbers is a heading; lines that begin with `#` are comments.
A heading may have units, `time [s], lift [mm]`; numbers are converted to SI.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cardan.errors import FileError, InputError
from cardan.io.text_file import read_text, shortened
from cardan.io.yaml.units import Unit, UnitError, read_unit
from cardan.model.table import Entry, Table, read_table

_IN_BRACKETS = re.compile(r"\[([^\]]*)\]|\(([^)]*)\)")
_SEPARATOR = re.compile(r"\s*[,;\t]\s*|\s+")


def table(x: Any, y: Any = None, *, smooth: int = 2, ends: str = "error", name: str = "") -> Table:
    """A function of one number that goes through points: in motions, drives, forces, constraints, or by itself.

    `cd.table([0, 1, 2, 3], [0, 0.2, 0.8, 1.0])` and `cd.table("cam.csv")` can be called with numbers, with arrays of
    any shape, and with the symbols that functions of a mechanism are run on. On symbols it is part of the kernels.

    Args:
        x: the points (n,), ascending; or the path of a CSV file with the columns x and y.
        y: the values (n,); none for a file.
        smooth: how many derivatives are continuous: 2 for a cubic spline, as motions and constraints need it; 1 for
            cubic pieces that never overshoot (PCHIP); 0 for straight lines.
        ends: what is outside the points: "error" (NaN, and a run ends with a sentence), "hold" for the first and last
            value, "linear" for straight lines along the end slopes, "periodic" for a repetition.
        name: a word for messages, files and printed equations; by default the name of the file, or "table".

    """
    entry: Entry | None = None
    if isinstance(x, str | PathLike):
        if y is not None:
            raise InputError(f"table {str(x)!r}: a file has its own y; leave y out")
        path = Path(x)
        (x, y), lines = read_columns(path, 2)
        name, entry = name or path.stem, _on_line(path, lines)
    elif y is None:
        raise InputError("table: give x and y, or the path of a CSV file")
    if entry is None:
        return read_table(name or "table", [x], y, smooth, ends)
    try:
        return read_table(name, [x], y, smooth, ends, entry)
    except InputError as error:
        raise FileError(str(error)) from None


def table2(
    x: Any, y: Any = None, z: Any = None, *, smooth: int = 2, ends: str | Sequence[str] = "error", name: str = ""
) -> Table:
    """A function of two numbers that goes through points on a grid.

    Args:
        x: the points (n,) of the first argument, ascending; or the path of a CSV file with the columns x, y and z, a
            line for each point of the grid, in any order.
        y: the points (m,) of the second argument, ascending.
        z: the values (n, m).
        smooth: how many derivatives are continuous: 2, 1 or 0, as for `cd.table`.
        ends: what is outside, as for `cd.table`; one rule, or one for each argument.
        name: a word for messages, files and printed equations.

    """
    if isinstance(x, str | PathLike):
        if y is not None or z is not None:
            raise InputError(f"table {str(x)!r}: a file has its own y and z; leave them out")
        path = Path(x)
        columns, lines = read_columns(path, 3)
        name = name or path.stem
        x, y, z = _on_grid(path, columns, lines)
    elif y is None or z is None:
        raise InputError("table2: give x, y and z, or the path of a CSV file")
    return read_table(name or "table", [x, y], z, smooth, ends)


def table_of_file(path: Path, **options: Any) -> Table:
    """A table of one argument or of two, as its file has two columns or three."""
    return table2(path, **options) if count_of_columns(path) == 3 else table(path, **options)


def count_of_columns(path: Path) -> int:
    """How many numbers the first point of a CSV file has."""
    for text in read_text(path).splitlines():
        fields = [field for field in _SEPARATOR.split(text.strip()) if field]
        if fields and _number(fields[0]) is not None:
            return len(fields)
    return 0


def read_columns(path: Path, count: int) -> tuple[list[np.ndarray], list[int]]:
    """Columns of numbers of a CSV file, and the line of each entry."""
    rows: list[list[float]] = []
    lines: list[int] = []
    units: list[Unit | None] = [None] * count
    for number, text in enumerate(read_text(path).splitlines(), 1):
        fields = [field for field in _SEPARATOR.split(text.strip()) if field]
        if not fields or fields[0].startswith("#"):
            continue
        numbers = [_number(field) for field in fields]
        if not rows and all(x is None for x in numbers):
            units = _heading_units(f"{path}: line {number}", text, count)
            continue
        if None in numbers:
            bad = fields[numbers.index(None)]
            hint = "; a decimal comma is read as a separator, write a point" if len(fields) == 2 * count else ""
            raise FileError(f"{path}: line {number}: {shortened(bad)} is not a number{hint}")
        if len(fields) != count:
            hint = "; a decimal comma is read as a separator, write a point" if len(fields) == 2 * count else ""
            raise FileError(f"{path}: line {number}: a point is {count} numbers, got {len(fields)}{hint}")
        rows.append([_in_si(x, unit) for x, unit in zip(numbers, units, strict=True) if x is not None])
        lines.append(number)
    if not rows:
        raise FileError(f"{path}: it has no line of {count} numbers")
    return list(np.array(rows).T.copy()), lines


def _heading_units(owner: str, text: str, count: int) -> list[Unit | None]:
    """Units of the columns by a heading such as `time [s]; lift (mm)`; None where it gives none."""
    columns = re.split("[,;\t]", text)
    found: list[Unit | None] = []
    for column in columns if len(columns) == count else [""] * count:
        match = _IN_BRACKETS.search(column)
        unit = match[1] or match[2] or "" if match else ""
        try:
            found.append(None if unit.strip() in ("", "1", "-") else read_unit(unit))
        except UnitError as error:
            if match and match[1]:
                raise FileError(f"{owner}: {error}; write a unit that is known, or leave the brackets out") from None
            found.append(None)  # a remark in parentheses
    return found


def _in_si(x: float, unit: Unit | None) -> float:
    """A number with its unit in SI."""
    return x if unit is None or not math.isfinite(x) else float(Fraction(x) * unit.scale) * math.pi**unit.turns


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _on_line(path: Path, lines: list[int]) -> Entry:
    def entry(axis: int, k: int) -> str:
        return f"{path}: line {lines[k]}: {'xy'[axis]}"

    return entry


def _on_grid(path: Path, columns: list[np.ndarray], lines: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axes and values (n, m) of points on a grid."""
    for k in range(len(lines)):
        if not all(np.isfinite(column[k]) for column in columns):
            raise FileError(f"{path}: line {lines[k]}: every entry must be a finite number")
    (x, i), (y, j) = (np.unique(column, return_inverse=True) for column in columns[:2])
    z = np.full((len(x), len(y)), np.nan)
    for k, place in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
        if not np.isnan(z[place]):
            raise FileError(f"{path}: line {lines[k]}: the point ({x[place[0]]:g}, {y[place[1]]:g}) is there already")
        z[place] = columns[2][k]
    missing = np.argwhere(np.isnan(z))
    if len(missing):
        a, b = (int(k) for k in missing[0])
        raise FileError(
            f"{path}: the point ({x[a]:g}, {y[b]:g}) is missing; its {len(lines)} points must fill the grid of "
            f"{len(x)} x {len(y)}"
        )
    return x, y, z
