"""Small dense and sparse matrices, built the same way from numbers and from symbols.

Everything in `cardan.algebra` is written once. Fed with NumPy arrays it computes numbers; fed with CasADi `SX`
it records a graph. The few places where the two libraries differ in spelling are here. CasADi is imported
only when a symbol is at hand, so that building a model stays cheap.

A zero written as the integer `0` stays a structural zero in the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.algebra.free_number import Number, expression, is_free, plain

Matrix = Any  # numpy.ndarray or casadi.SX; vectors are 1-D arrays or SX columns
Scalar = Any  # float or a 1x1 casadi.SX


def is_symbol(value: object) -> bool:
    """Tell whether a value is a CasADi expression."""
    return type(value).__module__.startswith("casadi")


def matrix(rows: Sequence[Sequence[Scalar]]) -> Matrix:
    """Build a matrix from its rows of scalars."""
    if not any(is_symbol(entry) for row in rows for entry in row):
        free = any(isinstance(entry, Number) for row in rows for entry in row)
        return np.array(rows, dtype=object if free else float)
    import casadi as ca

    result = ca.SX(len(rows), len(rows[0]))
    for i, row in enumerate(rows):
        for j, entry in enumerate(row):
            if is_symbol(entry) or entry != 0:
                result[i, j] = expression(entry)
    return result


def vector(*entries: Scalar) -> Matrix:
    """Build a vector from its entries."""
    if not any(is_symbol(entry) for entry in entries):
        return np.array(entries, dtype=object if any(isinstance(entry, Number) for entry in entries) else float)
    return matrix([[entry] for entry in entries])


def zeros(rows: int, columns: int | None, like: Matrix) -> Matrix:
    """Make a zero matrix (or, without `columns`, a zero vector) of the kind of `like`."""
    if not is_symbol(like):
        return np.zeros(rows if columns is None else (rows, columns))
    return type(like)(rows, 1 if columns is None else columns)


def eye(n: int, like: Matrix) -> Matrix:
    """Make the identity matrix of the kind of `like`."""
    return type(like).eye(n) if is_symbol(like) else np.eye(n)


def stack(*parts: Matrix) -> Matrix:
    """Put vectors, or the rows of matrices, one above the other."""
    if not any(is_symbol(part) for part in parts):
        return np.concatenate(parts)
    import casadi as ca

    return ca.vertcat(*parts)


def beside(*parts: Matrix) -> Matrix:
    """Put matrices side by side."""
    if not any(is_symbol(part) for part in parts):
        return np.concatenate(parts, axis=1)
    import casadi as ca

    return ca.horzcat(*parts)


def block(rows: Sequence[Sequence[Matrix]]) -> Matrix:
    """Build a matrix from blocks."""
    return stack(*(beside(*row) for row in rows))


def segment(x: Matrix, at: slice) -> Matrix:
    """Part of a vector; an empty part is a vector too, also of one with a single entry."""
    return x[at, 0] if is_symbol(x) else x[at]


def outer(a: Matrix, b: Matrix) -> Matrix:
    """Compute `a b^T` of two vectors."""
    return a @ b.T if is_symbol(a) else np.outer(a, b)


def dot(a: Matrix, b: Matrix) -> Scalar:
    """Compute `a^T b` of two vectors."""
    return a.T @ b if is_symbol(a) or is_symbol(b) else a @ b


def sin(x: Scalar) -> Scalar:
    """Sine."""
    return x.sin() if is_symbol(x) else np.sin(x)


def cos(x: Scalar) -> Scalar:
    """Cosine."""
    return x.cos() if is_symbol(x) else np.cos(x)


def sqrt(x: Scalar) -> Scalar:
    """Square root."""
    return x.sqrt() if is_symbol(x) else np.sqrt(x)


def arctan2(y: Scalar, x: Scalar) -> Scalar:
    """Angle of the point (x, y)."""
    if not (is_symbol(y) or is_symbol(x)):
        return np.arctan2(y, x)
    import casadi as ca

    return ca.atan2(y, x)


def where(condition: Scalar, then: Scalar, otherwise: Scalar) -> Scalar:
    """Choose between two scalars; both are evaluated."""
    if not is_symbol(condition):
        return then if condition else otherwise
    import casadi as ca

    return ca.if_else(condition, then, otherwise)


def constant(value: np.ndarray) -> Matrix:
    """Turn an array of numbers into a graph constant whose exact zeros are structural; free numbers stay free."""
    import casadi as ca

    if is_free(value):
        columns = np.reshape(value, (len(value), -1)) if np.ndim(value) else np.reshape(value, (1, 1))
        return matrix([[ca.SX(x) if isinstance(x, Number) else x for x in row] for row in columns])
    return ca.SX(ca.sparsify(ca.DM(np.asarray(value, dtype=float))))


def as_graph(value: Matrix, like: Matrix) -> Matrix:
    """Make numbers a graph constant if `like` is a symbol; otherwise leave them."""
    return constant(value) if is_symbol(like) and not is_symbol(value) else value


def snap(value: np.ndarray, tolerance: float) -> np.ndarray:
    """Round entries that lie within `tolerance` of 0, 1 or -1 to exactly that; free ones stay as they are."""
    value = plain(value)
    if value.dtype == object:
        fixed = [x if isinstance(x, Number) else float(snap(np.array(x, dtype=float), tolerance)) for x in value.flat]
        return np.array(fixed, dtype=object).reshape(value.shape)
    nearest = np.clip(np.round(value), -1.0, 1.0)
    return np.where(np.abs(value - nearest) <= tolerance, nearest + 0.0, value)


def mirrored(a: Matrix) -> Matrix:
    """Copy the upper triangle of a symmetric matrix onto its lower one.

    In a graph the two halves then are the same nodes, and what would compute the lower half is dead code.
    """
    if not is_symbol(a):
        return np.triu(a) + np.triu(a, 1).T
    import casadi as ca

    return ca.triu2symm(ca.triu(a))
