"""The notation of the sources: quantities with their symbols, and the operations that their equations use.

The text of an equation is written once with these operations. On CasADi symbols it records a graph, of which kernels
are compiled; on letters (`written`) it gives the equation as the page has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra import linsolve, matrix, plane, rotation, spatial
from cardan.textbook import written
from cardan.textbook.rules import Rule
from cardan.textbook.written import Written

Text = Any  # a CasADi matrix while recording, a `Written` expression while printing
Shape = tuple[int | str, ...]


@dataclass(frozen=True)
class Quantity:
    """A letter of a source: how it is printed, its core shape, its meaning and unit, and what its values must obey.

    A size given by a letter, as in `(6, "k")`, is read off the arrays of a call. A `symmetric` matrix is its own
    transpose in print.
    """

    latex: str
    shape: Shape
    meaning: str
    unit: str
    rule: Rule | None = None
    symmetric: bool = False


def is_written(*parts: Any) -> bool:
    """Whether one of the parts is an expression in print."""
    return any(isinstance(part, Written) for part in parts)


def _operation(name: str, recorded: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """An operation: `recorded` on CasADi symbols, the one of this name in `written` on letters."""

    def operation(*parts: Text) -> Text:
        return getattr(written, name)(*parts) if is_written(*parts) else recorded(*parts)

    operation.__name__, operation.__doc__ = name, doc
    return operation


def _solve(A: Any, b: Any) -> Any:
    import casadi as ca

    x = ca.solve(A, b)
    return x + ca.solve(A, b - A @ x)  # once refined: alone it loses digits as the square of the condition


dot = _operation("dot", matrix.dot, "`a^T b` of two vectors, a scalar.")
inner = _operation("inner", matrix.dot, "`a . b` of two vectors, a scalar, with a dot in print.")
outer = _operation("outer", matrix.outer, "`a b^T` of two vectors.")
cross = _operation("cross", rotation.cross, "`a x b` in space.")
skew = _operation("skew", rotation.skew, "The matrix `a x`, with a tilde in the sources.")
across = _operation("across", plane.across, "`K x a` in the plane.")
moment = _operation("moment", plane.moment, "`K . (a x b)` in the plane, a scalar.")
tilde = _operation("tilde", plane.across, "`K x a` in the plane, with a tilde.")
norm = _operation("norm", lambda a: matrix.dot(a, a) ** 0.5, "The length of a vector.")
crm = _operation("crm", spatial.crm, "The matrix `v x` of a 6-D motion vector, on motions.")
crf = _operation("crf", spatial.crf, "The matrix `v x*` of a 6-D motion vector, on forces.")
divide = _operation("divide", lambda a, b: a / b, "A quotient by a scalar, printed as a fraction.")
solve_symmetric = _operation(
    "solve",
    lambda A, b: linsolve.ldl_solve(linsolve.ldl_factor(A), b),
    "`A^-1 b` of a symmetric positive definite matrix.",
)
solve = _operation("solve", _solve, "`A^-1 b` of any invertible matrix.")
inverse = _operation(
    "inverse",
    lambda A: linsolve.ldl_solve(linsolve.ldl_factor(A), matrix.eye(A.shape[0], A)),
    "The inverse of a symmetric positive definite matrix.",
)


def identity(n: int, like: Text) -> Text:
    """The unit matrix `1`."""
    return written.identity(n) if is_written(like) else matrix.eye(n, like)


def fixed(latex: str, values: np.ndarray, like: Text) -> Text:
    """A matrix of known numbers that the source gives a letter."""
    return written.fixed(latex, values) if is_written(like) else matrix.constant(values)


def block(rows: Sequence[Sequence[Text]]) -> Text:
    """A matrix of blocks; a column of vectors has one block a row."""
    return written.block(rows) if is_written(*(part for row in rows for part in row)) else matrix.block(rows)


def total(parts: Sequence[Text]) -> Text:
    """The sum of several terms."""
    result = parts[0]
    for part in parts[1:]:
        result = result + part
    return result
