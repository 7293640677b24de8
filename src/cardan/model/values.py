"""Strict reading of numbers that users give: everything else is rejected with one sentence.

NumPy alone would convert text, drop imaginary parts, use masked numbers, and count the days of a date.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.on_card import is_device_array, refusal

NO_NUMBERS = (
    str,
    bytes,
    bool,
    complex,
    type(None),
    np.bool_,
    np.complexfloating,
    np.datetime64,
    np.timedelta64,
    np.void,
)
LARGEST_INT = 2**53  # float64 holds all that are smaller


def floats(value: Any) -> np.ndarray:
    """A copy in float64; TypeError for text, booleans, complex numbers, dates, masked entries and ragged rows.

    Arrays on a card are a TypeError too: they are not copied to the host in silence.
    """
    entries = value if type(value) is tuple else (value,)
    if all(type(x) is float or (type(x) is int and abs(x) < LARGEST_INT) for x in entries):  # most, in large models
        return np.array(value, dtype=float)
    if is_device_array(value):
        raise TypeError("it is on a card")
    if np.ma.is_masked(value):
        raise TypeError("some entries are masked")
    try:
        found = np.asarray(value)
        if found.dtype == object and not any(isinstance(x, NO_NUMBERS) for x in found.flat):
            return found.astype(float)
    except Exception as error:  # an object may raise anything when converted to an array
        raise TypeError(f"no array: {error}") from None
    if found.dtype.kind not in "fiu":
        raise TypeError(f"{found.dtype} is not numeric")
    return found.astype(float)


def shown(value: Any) -> str:
    """A value on one line, shortened."""
    text = " ".join(repr(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) <= 120 else text[:117] + "..."


def _no_numbers(owner: str, what: str, wanted: str, value: Any) -> InputError:
    if is_device_array(value):
        return refusal(owner, what, value)
    return InputError(f"{owner}: {what} must be numbers of shape {wanted}, got {shown(value)}")


def array(owner: str, what: str, value: Any, *shape: int, entries: str = "") -> np.ndarray:
    """An array (..., *shape) of numbers; messages say what its `entries` belong to."""
    wanted = f"({', '.join(('...', *map(str, shape)))})"
    try:
        found = floats(value)
    except TypeError:
        raise _no_numbers(owner, what, wanted, value) from None
    if found.shape[max(found.ndim - len(shape), 0) :] != shape:
        turned = "; rows of a batch come first, so give its transpose" if found.shape[:-1] == shape else ""
        if not found.shape and shape == (1,):
            turned = f"; write [{found:g}]"
        listed = f", for the joints {entries}" if entries else ""
        raise InputError(f"{owner}: {what} must have the shape {wanted}, got {found.shape}{listed}{turned}")
    return found


def counted(n: int, what: str) -> str:
    """A number of things: "1 body", "2 bodies"."""
    several = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{n} {what if n == 1 else several}"


def bodies_and_joints(bodies: int, joints: int) -> str:
    """Size of a mechanism in words."""
    return f"{counted(bodies, 'body')}, {counted(joints, 'joint')}"


def batch(owner: str, what: str, value: Any, *shape: int, entries: str = "") -> np.ndarray:
    """An array (..., *shape) of finite numbers; messages say what its `entries` belong to."""
    found = array(owner, what, value, *shape, entries=entries)
    if not np.isfinite(found).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(found))[0])
        raise InputError(f"{owner}: {what}{list(at) if at else ''} is {found[at]}; every entry must be a finite number")
    return found


def one(owner: str, what: str, value: Any, *shape: int) -> np.ndarray:
    """An array of exactly this shape, of finite numbers."""
    try:
        found = floats(value)
    except TypeError:
        raise _no_numbers(owner, what, str(shape), value) from None
    if found.shape != shape:
        raise InputError(f"{owner}: {what} must have the shape {shape}, got {found.shape}")
    return batch(owner, what, found, *shape)


def number(
    owner: str, what: str, value: Any, unit: str = "", *, above: float = -math.inf, least: float = -math.inf,
    most: float = math.inf,
) -> float:  # fmt: skip
    """A finite number within bounds; `unit` follows "number" in messages, as in "of seconds"."""
    try:
        # a plain float needs no NumPy, whose masked arrays take 10 ms to import
        found = value if type(value) is float else floats(value)
        x = float(found) if np.ndim(found) == 0 else math.nan
    except TypeError:
        if is_device_array(value):
            raise refusal(owner, what, value) from None
        x = math.nan
    if math.isfinite(x) and x > above and least <= x <= most:
        return x
    kind = "a positive number" if above == 0 else "a finite number"
    low = f" from {least:g} to" if least > -math.inf else ", at most"
    bounds = f"{low} {most:g}" if most < math.inf else f", {least:g} or more" if least > -math.inf else ""
    raise InputError(f"{owner}: {what} must be {kind}{' ' * bool(unit)}{unit}{bounds}, got {shown(value)}")


def whole(owner: str, what: str, value: Any, *, least: int = 1) -> int:
    """A whole number, at least `least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{owner}: {what} must be a whole number, {least} or more, got {shown(value)}")
    return int(value)
