"""Written equations as SymPy's matrix expressions; vector products are nodes of their own.

Substitute explicit matrices for the symbols and call `doit()` for the value.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import sympy
from sympy.matrices.expressions.matexpr import MatrixExpr

from cardan.textbook.written import Written


class _Node(MatrixExpr):  # type: ignore[misc]
    """A matrix made of vectors; `made` gives it from explicit ones."""

    rows_and_columns = (3, 3)

    @property
    def shape(self) -> Any:
        """Rows and columns."""
        return tuple(map(sympy.Integer, self.rows_and_columns))

    def made(self, *parts: Any) -> Any:
        """The explicit matrix."""
        raise NotImplementedError

    def doit(self, **hints: Any) -> Any:
        """The explicit matrix, if the operands are explicit."""
        parts = [part.doit(**hints) for part in self.args]
        if all(isinstance(part, sympy.MatrixBase) for part in parts):
            return sympy.ImmutableMatrix(self.made(*parts))
        return self.func(*parts)

    def _entry(self, i: Any, j: Any, **kwargs: Any) -> Any:
        return self.made(*(part.as_explicit() for part in self.args))[i, j]


class Skew(_Node):
    """The matrix `a x`."""

    def made(self, a: Any) -> Any:
        """Zeros on the diagonal."""
        return sympy.Matrix([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])

    def _latex(self, printer: Any) -> str:
        return rf"\tilde{{{printer._print(self.args[0])}}}"


class Cross(_Node):
    """The vector `a x b`."""

    rows_and_columns = (3, 1)

    def made(self, a: Any, b: Any) -> Any:
        """By components."""
        return sympy.Matrix(a).cross(sympy.Matrix(b))

    def _latex(self, printer: Any) -> str:
        return r" \times ".join(rf"\left({printer._print(part)}\right)" for part in self.args)


class Across(_Node):
    """The vector `K x a` of the plane."""

    rows_and_columns = (2, 1)

    def made(self, a: Any) -> Any:
        """A quarter turn."""
        return sympy.Matrix([-a[1], a[0]])

    def _latex(self, printer: Any) -> str:
        return rf"K \times \left({printer._print(self.args[0])}\right)"


class Tilde(Across):
    """The same, with a tilde."""

    def _latex(self, printer: Any) -> str:
        return rf"\tilde{{{printer._print(self.args[0])}}}"


class Fixed(MatrixExpr):  # type: ignore[misc]
    """A matrix of known numbers that has a letter of its own."""

    @property
    def shape(self) -> Any:
        """Rows and columns."""
        return self.args[1].shape

    def doit(self, **hints: Any) -> Any:
        """The numbers."""
        return self.args[1]

    def _entry(self, i: Any, j: Any, **kwargs: Any) -> Any:
        return self.args[1][i, j]

    def _latex(self, printer: Any) -> str:
        return str(self.args[0])


class Crm(_Node):
    """The matrix `v x` on 6-D motion vectors."""

    rows_and_columns = (6, 6)
    sign = r"\times"

    def made(self, v: Any) -> Any:
        """By blocks."""
        w, u = (sympy.Matrix(Skew(sympy.ImmutableMatrix(part)).doit()) for part in (v[:3], v[3:]))
        return sympy.Matrix.vstack(sympy.Matrix.hstack(w, sympy.zeros(3, 3)), sympy.Matrix.hstack(u, w))

    def _latex(self, printer: Any) -> str:
        return rf"\left({printer._print(self.args[0])}\right) {self.sign}"


class Crf(Crm):
    """The matrix `v x*` on 6-D force vectors."""

    sign = r"\times^{*}"

    def made(self, v: Any) -> Any:
        """By blocks."""
        return -super().made(v).T


class Dot(sympy.Expr):  # type: ignore[misc]
    """The scalar `a^T b`."""

    is_commutative = True

    def value(self, a: Any, b: Any) -> Any:
        """By components."""
        return sum(x * y for x, y in zip(a, b, strict=True))

    def doit(self, **hints: Any) -> Any:
        """The number, if the vectors are explicit."""
        a, b = (part.doit(**hints) for part in self.args)
        return self.value(a, b) if all(isinstance(x, sympy.MatrixBase) for x in (a, b)) else self.func(a, b)

    def _latex(self, printer: Any) -> str:
        a, b = (printer._print(part) for part in self.args)
        return rf"\left({a}\right)^{{T}} \left({b}\right)"


class Inner(Dot):
    """The scalar `a . b`."""

    def _latex(self, printer: Any) -> str:
        a, b = (printer._print(part) for part in self.args)
        return rf"\left({a}\right) \cdot \left({b}\right)"


class Moment(Dot):
    """The scalar `K . (a x b)` of the plane."""

    def value(self, a: Any, b: Any) -> Any:
        """By components."""
        return a[0] * b[1] - a[1] * b[0]

    def _latex(self, printer: Any) -> str:
        a, b = (printer._print(part) for part in self.args)
        return rf"K \cdot \left(\left({a}\right) \times \left({b}\right)\right)"


class RowProduct(Dot):
    """The scalar `a b` of a row and a column."""

    def _latex(self, printer: Any) -> str:
        a, b = (printer._print(part) for part in self.args)
        return rf"\left({a}\right) \left({b}\right)"


class Norm(sympy.Expr):  # type: ignore[misc]
    """The scalar `|a|`."""

    is_commutative = True

    def doit(self, **hints: Any) -> Any:
        """The number, if the vector is explicit."""
        a = self.args[0].doit(**hints)
        return sympy.sqrt(sum(x**2 for x in a)) if isinstance(a, sympy.MatrixBase) else self.func(a)

    def _latex(self, printer: Any) -> str:
        return rf"\left|{printer._print(self.args[0])}\right|"


def as_sympy(x: Any) -> Any:
    """A written expression as a SymPy expression."""
    if not isinstance(x, Written):
        return sympy.Rational(x)
    if x.operation == "letter":
        return letter(x)
    if x.operation == "block":
        return sympy.BlockMatrix([[_matrix(as_sympy(part)) for part in row] for row in x.parts])
    if x.operation == "identity":
        return sympy.Identity(x.parts[0])
    if x.operation == "fixed":
        return Fixed(sympy.Symbol(x.parts[0]), sympy.ImmutableMatrix(x.parts[1].astype(int)))
    return _MADE[x.operation](*map(as_sympy, x.parts))


def letter(x: Written) -> Any:
    """The SymPy symbol of a letter: a scalar, a column or a matrix."""
    if not x.size:
        return sympy.Symbol(x.parts[0])
    return sympy.MatrixSymbol(x.parts[0], *(*x.size, 1)[:2])


def _matrix(part: Any) -> Any:
    """A scalar as a 1x1 matrix."""
    return part if getattr(part, "is_Matrix", False) else sympy.Matrix([[part]])


def _product(*parts: Any) -> Any:
    return reduce(lambda a, b: a * b, parts)


_MADE: dict[str, Callable[..., Any]] = {
    "sum": add,
    "difference": lambda a, b: a - b,
    "minus": lambda a: -a,
    "product": _product,
    "square": _product,
    "power": lambda a, n: a**n,
    "transpose": sympy.Transpose,
    "inverse": sympy.Inverse,
    "fraction": lambda a, b: a / b,
    "dot": Dot,
    "inner": Inner,
    "moment": Moment,
    "cross": Cross,
    "across": Across,
    "skew": Skew,
    "row_product": RowProduct,
    "tilde": Tilde,
    "norm": Norm,
    "crm": Crm,
    "crf": Crf,
}
