"""Free parameters of a model: numbers that are an expression in the graph and have a nominal value.

A `FreeNumber` replaces a float in NumPy arrays of objects. Arithmetic acts on the expression. A comparison of sizes
(`<`, `>`) decides about structure and uses the nominal value. `==` asks whether two numbers are the same expression, so
that no number is treated as 0 or 1 because its nominal value is. `float()` raises an error: it would turn a free number
into a constant, and give wrong results for all other values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


class FreeNumber:
    """A scalar expression `graph` (casadi.SX) and its `nominal` value (float)."""

    __slots__ = ("graph", "nominal")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Any, nominal: float) -> None:
        self.graph, self.nominal = graph, nominal

    def __SX__(self) -> Any:
        """The expression; CasADi calls this when it combines a FreeNumber with its own types."""
        return self.graph

    def _with(self, other: Any, operation: Callable[[Any, Any], Any], turned: bool = False) -> Any:
        """Result of an operation with another scalar.

        It is a float if the result is constant, an SX if the other operand is one, else a `FreeNumber`.
        """
        if isinstance(other, np.ndarray):
            return NotImplemented
        a, b = (other, self) if turned else (self, other)
        result = operation(expression(a), expression(b))
        if not isinstance(other, FreeNumber | float | int | np.number):
            return result
        return float(result) if result.is_constant() else FreeNumber(result, operation(nominal_of(a), nominal_of(b)))

    def __add__(self, other: Any) -> Any:
        return self if _is(other, 0.0) else self._with(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        return self if _is(other, 0.0) else self._with(other, lambda a, b: a + b, True)

    def __sub__(self, other: Any) -> Any:
        return self if _is(other, 0.0) else self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b, True)

    def __mul__(self, other: Any) -> Any:
        return 0.0 if _is(other, 0.0) else self if _is(other, 1.0) else self._with(other, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> Any:
        return 0.0 if _is(other, 0.0) else self if _is(other, 1.0) else self._with(other, lambda a, b: a * b, True)

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a / b, True)

    def __pow__(self, exponent: int) -> Any:
        return self._with(exponent, lambda a, b: a**b)

    def __neg__(self) -> FreeNumber:
        return FreeNumber(-self.graph, -self.nominal)

    def __abs__(self) -> FreeNumber:
        return FreeNumber(self.graph.fabs(), abs(self.nominal))

    def sqrt(self) -> FreeNumber:
        """Square root; `np.sqrt` calls it."""
        return FreeNumber(self.graph.sqrt(), float(np.sqrt(self.nominal)))

    def __lt__(self, other: Any) -> bool:
        return bool(self.nominal < nominal_of(other))

    def __le__(self, other: Any) -> bool:
        return bool(self.nominal <= nominal_of(other))

    def __gt__(self, other: Any) -> bool:
        return bool(self.nominal > nominal_of(other))

    def __ge__(self, other: Any) -> bool:
        return bool(self.nominal >= nominal_of(other))

    def __eq__(self, other: object) -> bool:
        """Whether both are the same expression; never true for a constant."""
        import casadi as ca

        return isinstance(other, FreeNumber) and bool(ca.is_equal(self.graph, other.graph, 8))

    def __bool__(self) -> bool:
        """A free number counts as nonzero."""
        return True

    def __float__(self) -> float:
        """Raise an error: a free number has no single value."""
        raise TypeError(f"{self!r} is a free parameter, it has no single value")

    def __repr__(self) -> str:
        text = str(self.graph)
        return f"FreeNumber({text if len(text) < 40 else text[:36] + ' ...'}, nominal {self.nominal:g})"


def _is(value: Any, number: float) -> bool:
    """Whether a scalar is this constant; then the operation need not be recorded."""
    return isinstance(value, float | int) and value == number


def expression(value: Any) -> Any:
    """The expression of a free number; any other value unchanged."""
    return value.graph if isinstance(value, FreeNumber) else value


def nominal_of(value: Any) -> Any:
    """The nominal value of a free number; any other value unchanged."""
    return value.nominal if isinstance(value, FreeNumber) else value


def is_free(value: Any) -> bool:
    """Whether a scalar is, or an array contains, a `FreeNumber`."""
    if isinstance(value, np.ndarray):
        return value.dtype == object and any(isinstance(x, FreeNumber) for x in value.flat)
    return isinstance(value, FreeNumber)


def nominal(value: Any) -> np.ndarray:
    """An array with every `FreeNumber` replaced by its nominal value, for decisions about structure."""
    array = np.asarray(value)
    if array.dtype != object:
        return array
    return np.array([nominal_of(x) for x in array.flat], dtype=float).reshape(array.shape)


def scalar(value: Any) -> Any:
    """A `FreeNumber` unchanged, any other value as float."""
    return value if isinstance(value, FreeNumber) else float(value)


def plain(value: Any) -> np.ndarray:
    """An array of floats if no entry is free, else unchanged."""
    array = np.asarray(value)
    return array if array.dtype != object or is_free(array) else array.astype(float)


def with_symbols(numbers: dict[str, np.ndarray], names: Iterable[str]) -> tuple[dict[str, np.ndarray], list[Any]]:
    """The numbers of an element with symbols, at their values, for those named, and the symbols in order."""
    import casadi as ca

    varied, symbols = dict(numbers), []
    for name in names:
        own = [ca.SX.sym(name) for _ in range(numbers[name].size)]
        entries = np.empty(numbers[name].size, dtype=object)
        entries[:] = [FreeNumber(s, float(x)) for s, x in zip(own, numbers[name].flat, strict=True)]
        varied[name] = entries.reshape(numbers[name].shape)
        symbols += own
    return varied, symbols
