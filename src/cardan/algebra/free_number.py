"""Numbers of a model that are not fixed: an expression in the graph, beside its nominal value.

A `FreeNumber` stands where a float would, in NumPy arrays of objects. Arithmetic acts on the expression. A comparison
of sizes (`<`, `>`) is a decision about structure and is answered by the nominal value; `==` asks whether two are the
same expression, so that no number is ever taken for 0 or 1 because it happens to be so at first. `float()` is refused:
what would make a constant of a number that varies is an error, not a wrong result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


class FreeNumber:
    """A scalar expression `graph` (casadi.SX) and its `nominal` value (float)."""

    __slots__ = ("graph", "nominal")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Any, nominal: float) -> None:
        """Join the two."""
        self.graph, self.nominal = graph, nominal

    def __SX__(self) -> Any:
        """The expression, where CasADi meets a FreeNumber among its own."""
        return self.graph

    def _with(self, other: Any, operation: Callable[[Any, Any], Any], turned: bool = False) -> Any:
        """An operation with another scalar; with a constant result it is a float, with a graph it is a graph."""
        if isinstance(other, np.ndarray):
            return NotImplemented
        a, b = (other, self) if turned else (self, other)
        result = operation(expression(a), expression(b))
        if not isinstance(other, FreeNumber | float | int | np.number):
            return result
        return float(result) if result.is_constant() else FreeNumber(result, operation(nominal_of(a), nominal_of(b)))

    def __add__(self, other: Any) -> Any:
        """Sum."""
        return self if _is(other, 0.0) else self._with(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        """Sum."""
        return self if _is(other, 0.0) else self._with(other, lambda a, b: a + b, True)

    def __sub__(self, other: Any) -> Any:
        """Difference."""
        return self if _is(other, 0.0) else self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        """Difference."""
        return self._with(other, lambda a, b: a - b, True)

    def __mul__(self, other: Any) -> Any:
        """Product."""
        return 0.0 if _is(other, 0.0) else self if _is(other, 1.0) else self._with(other, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> Any:
        """Product."""
        return 0.0 if _is(other, 0.0) else self if _is(other, 1.0) else self._with(other, lambda a, b: a * b, True)

    def __truediv__(self, other: Any) -> Any:
        """Quotient."""
        return self._with(other, lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> Any:
        """Quotient."""
        return self._with(other, lambda a, b: a / b, True)

    def __pow__(self, exponent: int) -> Any:
        """Power."""
        return self._with(exponent, lambda a, b: a**b)

    def __neg__(self) -> FreeNumber:
        """Opposite."""
        return FreeNumber(-self.graph, -self.nominal)

    def __abs__(self) -> FreeNumber:
        """Size."""
        return FreeNumber(self.graph.fabs(), abs(self.nominal))

    def sqrt(self) -> FreeNumber:
        """Root; also what `np.sqrt` calls."""
        return FreeNumber(self.graph.sqrt(), float(np.sqrt(self.nominal)))

    def __lt__(self, other: Any) -> bool:
        """Decide by nominal values."""
        return bool(self.nominal < nominal_of(other))

    def __le__(self, other: Any) -> bool:
        """Decide by nominal values."""
        return bool(self.nominal <= nominal_of(other))

    def __gt__(self, other: Any) -> bool:
        """Decide by nominal values."""
        return bool(self.nominal > nominal_of(other))

    def __ge__(self, other: Any) -> bool:
        """Decide by nominal values."""
        return bool(self.nominal >= nominal_of(other))

    def __eq__(self, other: object) -> bool:
        """Whether both are one expression; never true of a number that varies and a constant."""
        import casadi as ca

        return isinstance(other, FreeNumber) and bool(ca.is_equal(self.graph, other.graph, 8))

    def __bool__(self) -> bool:
        """A number that varies is not zero."""
        return True

    def __float__(self) -> float:
        """Refuse: it would make a constant of what varies."""
        raise TypeError(f"{self!r} is free, it has no one value")

    def __repr__(self) -> str:
        """The expression, cut short, and the nominal value."""
        text = str(self.graph)
        return f"FreeNumber({text if len(text) < 40 else text[:36] + ' ...'}, nominal {self.nominal:g})"


def _is(value: Any, number: float) -> bool:
    """Whether a scalar is this very number; saves recording what would fold at once."""
    return isinstance(value, float | int) and value == number


def expression(value: Any) -> Any:
    """The graph of a number; anything else as it is."""
    return value.graph if isinstance(value, FreeNumber) else value


def nominal_of(value: Any) -> Any:
    """The nominal value of a number; anything else as it is."""
    return value.nominal if isinstance(value, FreeNumber) else value


def is_free(value: Any) -> bool:
    """Whether a scalar or an array has a `FreeNumber` in it."""
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(isinstance(x, FreeNumber) for x in value.flat)
    return isinstance(value, FreeNumber)


def nominal(value: Any) -> np.ndarray:
    """An array with every `FreeNumber` at its nominal value: what structural decisions are taken from."""
    array = np.asarray(value)
    if array.dtype != object:
        return array
    return np.array([nominal_of(x) for x in array.flat], dtype=float).reshape(array.shape)


def scalar(value: Any) -> Any:
    """A `FreeNumber` as it is, anything else as float."""
    return value if isinstance(value, FreeNumber) else float(value)


def plain(value: Any) -> np.ndarray:
    """An array of floats if no entry is free, else as it is."""
    array = np.asarray(value)
    return array if array.dtype != object or is_free(array) else array.astype(float)
