"""Small matrices, built the same way from numbers and from symbols.

Everything in `cardan.algebra` is written once. With NumPy arrays it computes numbers, with CasADi `SX` it records a
graph. This file hides the few places where the two libraries differ. CasADi is imported only when a symbol is at hand,
so that building a model stays cheap.

An entry written as the integer `0` is a structural zero in the graph: it costs no operation.

Types: `Matrix` is a symbolic matrix or vector, `Scalar` a symbol or a float. `AnyMatrix` is a type variable, like
`AnyStr`: a function of `AnyMatrix` takes arrays and returns an array, or takes symbols and returns a symbol. A type
checker checks its text once for each.
"""

# mypy: disable-error-code="overload-overlap"
# The overloads overlap on purpose: numbers give an array, numbers and symbols together give a symbol.

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cardan.algebra.casadi_operators import quicken_operators
from cardan.algebra.free_number import FreeNumber, expression, is_free, plain

if TYPE_CHECKING:
    import casadi
    from typing_extensions import TypeIs, TypeVar

    Matrix = casadi.SX  # vectors are columns
    Scalar = float | casadi.SX  # a symbol here is 1x1
    # by its default, `Transform` without a parameter means `Transform[Matrix]`
    AnyMatrix = TypeVar("AnyMatrix", np.ndarray, casadi.SX, default=casadi.SX)
else:
    from typing import TypeVar

    Matrix = Scalar = Any  # annotations must not import CasADi
    AnyMatrix = TypeVar("AnyMatrix")


_SYMBOLIC: dict[type, bool] = {}  # the answers of `is_symbol`, which large models ask for a million times


def is_symbol(value: object) -> TypeIs[casadi.SX]:
    """Tell whether a value is a CasADi expression."""
    kind = type(value)
    found = _SYMBOLIC.get(kind)
    if found is None:
        found = _SYMBOLIC[kind] = kind.__module__.startswith("casadi")
        if found:
            quicken_operators()
    return found


def column_of(value: Any) -> casadi.SX:
    """A number, an expression, or a sequence of them, as a dense column; what is neither raises TypeError.

    `float` of a symbol is no error but NaN, so each entry is looked at.
    """
    import casadi as ca

    parts = value if hasattr(value, "__len__") and not is_symbol(value) else [value]
    try:
        found = ca.SX(ca.vertcat(*(x if is_symbol(x) else float(x) for x in parts)))
    except (TypeError, ValueError, NotImplementedError):
        raise TypeError(f"{value!r} is no column of numbers") from None
    return ca.densify(found).reshape((found.numel(), 1))


@overload
def matrix(rows: Sequence[Sequence[float]]) -> np.ndarray: ...
@overload
def matrix(rows: Sequence[Sequence[Scalar]]) -> Matrix: ...
def matrix(rows: Sequence[Sequence[Scalar]]) -> np.ndarray | Matrix:
    """Build a matrix from its rows of scalars."""
    if not any(is_symbol(entry) for row in rows for entry in row):
        free = any(isinstance(entry, FreeNumber) for row in rows for entry in row)
        return np.array(rows, dtype=object if free else float)
    import casadi as ca

    result = ca.SX(len(rows), len(rows[0]))
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            if is_symbol(entry) or entry != 0:
                result[i, j] = expression(entry)
    return result


@overload
def vector(*entries: float) -> np.ndarray: ...
@overload
def vector(*entries: Scalar) -> Matrix: ...
def vector(*entries: Scalar) -> np.ndarray | Matrix:
    """Build a vector from its entries."""
    if not any(is_symbol(entry) for entry in entries):
        return np.array(entries, dtype=object if any(isinstance(entry, FreeNumber) for entry in entries) else float)
    return matrix([[entry] for entry in entries])


def zeros(rows: int, columns: int | None, like: AnyMatrix) -> AnyMatrix:
    """Make a zero matrix, or a zero vector if `columns` is None. It has the type of `like`."""
    if not is_symbol(like):
        return np.zeros(rows if columns is None else (rows, columns))
    return type(like)(rows, 1 if columns is None else columns)


def eye(n: int, like: AnyMatrix) -> AnyMatrix:
    """Make the identity matrix. It has the type of `like`."""
    return type(like).eye(n) if is_symbol(like) else np.eye(n)


@overload
def stack(*parts: np.ndarray) -> np.ndarray: ...
@overload
def stack(*parts: np.ndarray | Matrix) -> Matrix: ...
def stack(*parts: np.ndarray | Matrix) -> np.ndarray | Matrix:
    """Put vectors, or the rows of matrices, one above the other."""
    if not any(is_symbol(part) for part in parts):
        return np.concatenate(parts)
    import casadi as ca

    return ca.vertcat(*parts)


@overload
def beside(*parts: np.ndarray) -> np.ndarray: ...
@overload
def beside(*parts: np.ndarray | Matrix) -> Matrix: ...
def beside(*parts: np.ndarray | Matrix) -> np.ndarray | Matrix:
    """Put matrices side by side."""
    if not any(is_symbol(part) for part in parts):
        return np.concatenate(parts, axis=1)
    import casadi as ca

    return ca.horzcat(*parts)


@overload
def block(rows: Sequence[Sequence[np.ndarray]]) -> np.ndarray: ...
@overload
def block(rows: Sequence[Sequence[np.ndarray | Matrix]]) -> Matrix: ...
def block(rows: Sequence[Sequence[np.ndarray | Matrix]]) -> np.ndarray | Matrix:
    """Build a matrix from blocks."""
    if not all(is_symbol(part) for row in rows for part in row):
        return stack(*(beside(*row) for row in rows))
    return _block_of_symbols(rows)


def _block_of_symbols(rows: Sequence[Sequence[Any]]) -> Matrix:
    """The same of symbols alone: setting blocks takes a quarter of the time of CasADi's concatenation."""
    heights, widths = [row[0].size1() for row in rows], [part.size2() for part in rows[0]]
    result = type(rows[0][0])(sum(heights), sum(widths))
    top = 0
    for row, height in zip(rows, heights, strict=True):
        left = 0
        for part, width in zip(row, widths, strict=True):
            if part.nnz():
                result[top : top + height, left : left + width] = part
            left += width
        top += height
    return result


def segment(x: AnyMatrix, at: slice) -> AnyMatrix:
    """Part of a vector. An empty part is a vector too, also of a vector with one entry."""
    return x[at, 0] if is_symbol(x) else x[at]


def outer(a: AnyMatrix, b: AnyMatrix) -> AnyMatrix:
    """Compute `a b^T` of two vectors."""
    return a @ b.T if is_symbol(a) else np.outer(a, b)


@overload
def dot(a: np.ndarray, b: np.ndarray) -> float: ...
@overload
def dot(a: np.ndarray | Matrix, b: np.ndarray | Matrix) -> Matrix: ...
def dot(a: np.ndarray | Matrix, b: np.ndarray | Matrix) -> Any:
    """Compute `a^T b` of two vectors."""
    return a.T @ b if is_symbol(a) or is_symbol(b) else a @ b


@overload
def sin(x: float) -> float: ...
@overload
def sin(x: AnyMatrix) -> AnyMatrix: ...
def sin(x: float | np.ndarray | Matrix) -> float | np.ndarray | Matrix:
    """Sine."""
    return x.sin() if is_symbol(x) else np.sin(x)


@overload
def cos(x: float) -> float: ...
@overload
def cos(x: AnyMatrix) -> AnyMatrix: ...
def cos(x: float | np.ndarray | Matrix) -> float | np.ndarray | Matrix:
    """Cosine."""
    return x.cos() if is_symbol(x) else np.cos(x)


@overload
def sqrt(x: float) -> float: ...
@overload
def sqrt(x: AnyMatrix) -> AnyMatrix: ...
def sqrt(x: float | np.ndarray | Matrix) -> float | np.ndarray | Matrix:
    """Square root."""
    return x.sqrt() if is_symbol(x) else np.sqrt(x)


@overload
def arctan2(y: float, x: float) -> float: ...
@overload
def arctan2(y: Scalar, x: Scalar) -> Matrix: ...
def arctan2(y: Scalar, x: Scalar) -> Scalar:
    """Angle of the point (x, y)."""
    if not (is_symbol(y) or is_symbol(x)):
        return np.arctan2(y, x)
    import casadi as ca

    return ca.atan2(y, x)


@overload
def where(condition: Matrix, then: Scalar, otherwise: Scalar) -> Matrix: ...
@overload
def where(condition: float, then: float, otherwise: float) -> float: ...
@overload
def where(condition: Scalar, then: Scalar, otherwise: Scalar) -> Scalar: ...
def where(condition: Any, then: Any, otherwise: Any) -> Any:
    """Choose between two values; both are evaluated."""
    if not is_symbol(condition):
        return then if condition else otherwise
    import casadi as ca

    return ca.if_else(condition, then, otherwise)


def constant(value: np.ndarray) -> Matrix:
    """Turn an array of numbers into a graph constant. Exact zeros become structural; free numbers stay free."""
    import casadi as ca

    if is_free(value):
        columns = np.reshape(value, (len(value), -1)) if np.ndim(value) else np.reshape(value, (1, 1))
        return matrix([[ca.SX(x) if isinstance(x, FreeNumber) else x for x in row] for row in columns])
    value = np.asarray(value, dtype=float)
    return +_constant(value.tobytes(), value.shape)  # a copy: whoever gets it may set its entries


@lru_cache(maxsize=4096)
def _constant(data: bytes, shape: tuple[int, ...]) -> Matrix:
    """The graph constant of an array, of which a mechanism has many more than once."""
    import casadi as ca

    return ca.SX(ca.sparsify(ca.DM(np.frombuffer(data).reshape(shape))))


def as_graph(value: np.ndarray | AnyMatrix, like: AnyMatrix) -> AnyMatrix:
    """Make numbers a graph constant if `like` is a symbol; otherwise leave them."""
    return constant(value) if is_symbol(like) and not is_symbol(value) else value


def snap(value: np.ndarray, tolerance: float) -> np.ndarray:
    """Round entries that lie within `tolerance` of 0, 1 or -1 to exactly that; free numbers are left unchanged."""
    value = plain(value)
    if value.dtype == object:
        fixed = [
            x if isinstance(x, FreeNumber) else float(snap(np.array(x, dtype=float), tolerance)) for x in value.flat
        ]
        return np.array(fixed, dtype=object).reshape(value.shape)
    nearest = np.clip(np.round(value), -1.0, 1.0)
    return np.where(np.abs(value - nearest) <= tolerance, nearest + 0.0, value)


def mirrored(a: AnyMatrix) -> AnyMatrix:
    """Copy the upper triangle of a symmetric matrix onto its lower one.

    In a graph both halves are then the same nodes, and the operations that computed the lower half are dead code.
    """
    if not is_symbol(a):
        return np.triu(a) + np.triu(a, 1).T
    import casadi as ca

    return ca.triu2symm(ca.triu(a))
