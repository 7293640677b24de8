"""The numbers of a joint type or of a force element, each declared once.

A `Field` says what one number is: unit, meaning, form, rule, default, letter. The builder reads values by it,
`model.free` finds its unit and rule in it, files and their JSON Schema take the entry from it, printed equations the
letter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.model.pose import numbers, read_pose

# Rules that values obey.
ANY, NOT_NEGATIVE, POSITIVE, INERTIA, STIFFNESS = "any", "not negative", "positive", "inertia", "matrix not negative"
FRACTION = "from 0 to 1"
SWITCH = "0 or 1"

# Forms that a value has.
NUMBER = "number"
VECTOR = "vector"  # three numbers
AXIS = "axis"  # a direction, of any length
POSE = "pose"  # a position, or a `Pose`; kept as the position and, named `..._rotation`, the rotation matrix
EACH = "each"  # a number for each rate of the joint, or one for all
TEXT = "text"  # a name, such as that of another element, or a unit; kept among the texts of the element
LIMIT = "limit"  # the same, where None or infinity is no limit; kept as infinity
SIX_AXES = "six axes"  # a number, six, or a matrix (6, 6); kept as the matrix
MOMENT_AND_FORCE = "moment and force"  # six numbers; in files the two entries `moment` and `force`
AXES = "axes"  # "ground" or "body"; kept as the number `follows`, 0 or 1
EFFORT = "effort"  # a function of time and of the joint's coordinates and rates, or a number for each rate
WRENCHES = "wrenches"  # a function of time, poses and twists that gives a wrench for each body
GAP = "gap"  # a function of time, poses and twists that gives a gap, then sliding velocities
TABLE = "table"  # a `cd.table` of one number, with its integral
CURVE = "curve"  # a `cd.Curve`
TRUTH = "truth"  # True or False
FUNCTIONS = (EFFORT, WRENCHES, GAP, TABLE)
FUNCTION = "function"  # a function of the plain numbers that `arguments` names, such as the profile of a cam

NEEDED = "needed"
"""The default of a number that must be given."""


@dataclass(frozen=True)
class Field:
    """One number of a joint type or of a force element.

    Args:
        unit: SI unit as files write it, such as "N/m" or "m^-1"; "1" for a plain number. Along the coordinates of a
            joint two units: for an angle and for a length, "N m/rad|N/m".
        doc: what it is, for the documentation of files.
        form: "number", "vector", "axis", "pose", "each", "function" or another of `cardan.model.field`.
        rule: "any", "not negative", "positive" or "from 0 to 1"; "matrix not negative" for six axes.
        default: value where none is given; by default a value must be given. None: the element then has no such number.
        letter: its letter in printed equations; by default its name.
        free: whether `model.free` may name it.
        column: of an axis, the canonical axis of the joint that it gives: 0, 1, 2 for x, y, z.
        data: entry of the joint's data that it makes act, such as "damping"; none by default.
        linear: whether forces and energy are linear in it, so that `cd.regressor` has a column for it.
        arguments: of a function, the names and units of its arguments, such as `(("angle", "rad"),)`.

    """

    unit: str = "1"
    doc: str = ""
    form: str = NUMBER
    rule: str = ANY
    default: Any = NEEDED
    letter: str = ""
    free: bool = True
    column: int = 2
    data: str = ""
    linear: bool = False
    arguments: tuple[tuple[str, str], ...] = ()

    @property
    def needed(self) -> bool:
        """Whether a value must be given."""
        return isinstance(self.default, str) and self.default == NEEDED

    def read(self, owner: str, what: str, value: Any, nv: int = 0) -> dict[str, np.ndarray]:
        """Validate a value; the arrays to keep, by name. `nv` is the number of rates of the joint it acts along."""
        if self.form == POSE:
            pose = read_pose(owner, what, value)
            return {what: pose.position, f"{what}_rotation": pose.rotation}
        if self.form == AXES:
            if value not in ("ground", "body"):
                raise ModelError(f"{owner}: {what} must be 'ground' or 'body', got {value!r}")
            return {"follows": np.array(float(value == "body"))}
        if self.form == SIX_AXES:
            return {what: _six_axes(owner, what, value)}
        if self.form == LIMIT:
            return {what: _limits(owner, what, value, nv)}
        if self.form == EACH:
            return {what: np.broadcast_to(self._checked(owner, what, _each(owner, what, value, nv)), nv)}
        shape = {NUMBER: (), VECTOR: (3,), AXIS: (3,), MOMENT_AND_FORCE: (6,)}[self.form]
        if shape and value is self.default and np.ndim(value) == 0:
            value = np.full(shape, value)
        return {what: self._checked(owner, what, numbers(owner, what, value, shape))}

    def _checked(self, owner: str, what: str, array: np.ndarray) -> np.ndarray:
        if self.rule == NOT_NEGATIVE:
            return not_negative(owner, what, array)
        if self.rule == FRACTION and ((array < 0) | (array > 1)).any():
            raise ModelError(f"{owner}: {what} must be from 0 to 1, got {array.ravel()[0]:g}")
        if self.rule == SWITCH and not np.isin(array, (0.0, 1.0)).all():
            raise ModelError(f"{owner}: {what} must be 0 or 1, got {array.ravel()[0]:g}")
        if self.rule == POSITIVE and (array <= 0).any():
            what_for = self.doc.partition(",")[0]
            why = f"; it is {'that' if what_for.startswith('of ') else 'the'} {what_for}" if self.doc else ""
            raise ModelError(f"{owner}: {what} must be above 0, got {array.min():g}{why}")
        return array


def not_negative(owner: str, what: str, array: np.ndarray, why: str = "it would feed energy in") -> np.ndarray:
    """Reject negative numbers."""
    if (array < 0).any():
        raise ModelError(f"{owner}: {what} must not be negative, got {array.min():g}; {why}")
    return array


def each(owner: str, what: str, value: Any, n: int) -> np.ndarray:
    """Read a number for each of n coordinates; a single one is for all."""
    return np.broadcast_to(_each(owner, what, value, n), n)


def dimensions(value: Any) -> int:
    """Number of array dimensions of what should be numbers; 1 for ragged rows, which `numbers` then rejects."""
    try:
        return np.ndim(value)
    except ValueError:
        return 1


def _each(owner: str, what: str, value: Any, n: int) -> np.ndarray:
    return numbers(owner, what, value, (n,) if dimensions(value) else ())


def _limits(owner: str, what: str, value: Any, n: int) -> np.ndarray:
    """A limit for each of n coordinates, one for all, infinite where there is none."""
    several = isinstance(value, list | tuple) or dimensions(value) == 1
    given = list(value) if several else [value] * n
    if len(given) != n:
        raise ModelError(f"{owner}: {what} must be {n} numbers, None where there is no limit, got {value!r}")
    none = [x is None or (isinstance(x, int | float | np.number) and np.isinf(x)) for x in given]
    read = [np.inf if no else float(numbers(owner, what, x, ())) for no, x in zip(none, given, strict=True)]
    return np.array(read)


def _six_axes(owner: str, what: str, value: Any) -> np.ndarray:
    """A matrix (6, 6) from a number, six numbers, or a matrix whose symmetric part has no negative eigenvalue."""
    if dimensions(value) < 2:
        return np.diag(np.broadcast_to(not_negative(owner, what, _each(owner, what, value, 6)), 6))
    K = numbers(owner, what, np.asarray(value).tolist(), (6, 6))
    size = np.sqrt(np.abs(np.diag(K)))
    size[size == 0] = 1.0
    lowest = float(np.linalg.eigvalsh((K + K.T) / 2 / np.outer(size, size))[0])
    if lowest < -1e-9:
        raise ModelError(
            f"{owner}: {what} must not be negative along any motion, but its symmetric part, scaled to unit diagonal, "
            f"has the eigenvalue {lowest:.4g}; it would feed energy in"
        )
    return K


def frozen(array: Any) -> np.ndarray:
    """A read-only copy in float64."""
    array = np.array(array, dtype=float)
    array.flags.writeable = False
    return array
