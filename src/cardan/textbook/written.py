"""Equations in print: expressions of letters that keep the order in which they are written, and their LaTeX.

The text of an equation, run on letters instead of numbers, gives such an expression. `as_sympy` turns it into SymPy's
matrix expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Size = tuple[int, ...]  # of a scalar (), a column (n,), a matrix (n, m)

SUM, PRODUCT, ATOM = 1, 2, 3  # how strongly the parts of an expression hold together


class Written:
    """An expression: an operation, its parts and its size. Arithmetic with numbers and other expressions makes more."""

    def __init__(self, operation: str, parts: Sequence[Any], size: Size) -> None:
        self.operation, self.parts, self.size = operation, tuple(parts), size

    def __add__(self, other: Any) -> Written:
        return Written("sum", (self, other), self.size)

    def __radd__(self, other: Any) -> Written:
        return Written("sum", (other, self), self.size)

    def __sub__(self, other: Any) -> Written:
        return Written("difference", (self, other), self.size)

    def __rsub__(self, other: Any) -> Written:
        return Written("difference", (other, self), self.size)

    def __neg__(self) -> Written:
        return Written("minus", (self,), self.size)

    def __pos__(self) -> Written:
        return self

    def __mul__(self, other: Any) -> Written:
        """A product with a scalar on one side."""
        size = self.size or (other.size if isinstance(other, Written) else ())
        return Written("product", (self, other), size)

    def __rmul__(self, other: Any) -> Written:
        return Written("product", (other, self), self.size)

    def __matmul__(self, other: Written) -> Written:
        if len(self.size) == 2 and self.size[0] == 1 and len(other.size) == 1:  # a row times a column
            return Written("row_product", (self, other), ())
        size = (self.size[0], *other.size[1:]) if len(other.size) == 2 else self.size[:1]
        if len(self.size) == 1:  # a column times a row
            size = (self.size[0], other.size[1])
        if len(self.size) == 2 and self.size[0] == 1 and len(other.size) == 2 and other.size[1] != 1:
            size = (1, other.size[1])
        return Written("square" if other is self else "product", (self, other), size)

    def __truediv__(self, other: Any) -> Written:
        if isinstance(other, Written):
            return divide(self, other)
        return Written("product", (Fraction(1, other), self), self.size)

    def __pow__(self, exponent: int) -> Written:
        return Written("power", (self, exponent), self.size)

    @property
    def T(self) -> Written:
        """The transpose; of a product, the product of the transposes."""
        if not self.size or (self.operation == "letter" and self.parts[1]):
            return self
        if self.operation == "product":
            return Written("product", [_transposed(part) for part in reversed(self.parts)], self._turned)
        if self.operation == "transpose":
            return self.parts[0]
        return Written("transpose", (self,), self._turned)

    @property
    def _turned(self) -> Size:
        return (1, self.size[0]) if len(self.size) == 1 else (self.size[1], self.size[0])

    def latex(self) -> str:
        """LaTeX."""
        return _PRINTED[self.operation](*self.parts)


def _transposed(part: Any) -> Any:
    return part.T if isinstance(part, Written) else part


def symbol(latex: str, size: Size, symmetric: bool) -> Written:
    """The letter of a quantity."""
    return Written("letter", (latex, symmetric), size)


def dot(a: Written, b: Written) -> Written:
    """`a^T b`."""
    return Written("dot", (a, b), ())


def inner(a: Written, b: Written) -> Written:
    """`a . b`."""
    return Written("inner", (a, b), ())


def outer(a: Written, b: Written) -> Written:
    """`a b^T`."""
    return a @ b.T


def moment(a: Written, b: Written) -> Written:
    """`K . (a x b)`."""
    return Written("moment", (a, b), ())


def cross(a: Written, b: Written) -> Written:
    """`a x b`."""
    return Written("cross", (a, b), (3,))


def skew(a: Written) -> Written:
    """The matrix `a x`."""
    return Written("skew", (a,), (3, 3))


def across(a: Written) -> Written:
    """`K x a`."""
    return Written("across", (a,), (2,))


def tilde(a: Written) -> Written:
    """The vector `K x a`, with a tilde."""
    return Written("tilde", (a,), (2,))


def norm(a: Written) -> Written:
    """`|a|`."""
    return Written("norm", (a,), ())


def fixed(latex: str, values: Any) -> Written:
    """A matrix of known numbers that has a letter of its own."""
    return Written("fixed", (latex, values), values.shape)


def crm(v: Written) -> Written:
    """The matrix `v x`."""
    return Written("crm", (v,), (6, 6))


def crf(v: Written) -> Written:
    """The matrix `v x*`."""
    return Written("crf", (v,), (6, 6))


def divide(a: Any, b: Written) -> Written:
    """A fraction."""
    return Written("fraction", (a, b), a.size if isinstance(a, Written) else ())


def inverse(A: Written) -> Written:
    """`A^-1`."""
    return Written("inverse", (A,), A.size)


def solve(A: Written, b: Written) -> Written:
    """`A^-1 b`."""
    return inverse(A) @ b


def identity(n: int) -> Written:
    """The unit matrix."""
    return Written("identity", (n,), (n, n))


def block(rows: Sequence[Sequence[Written]]) -> Written:
    """A matrix of blocks."""
    height = sum((row[0].size or (1,))[0] for row in rows)
    widths = [part.size[1] if len(part.size) == 2 else 1 for part in rows[0]]
    return Written("block", [tuple(row) for row in rows], (height,) if widths == [1] else (height, sum(widths)))


# LaTeX

_STRENGTH = {"sum": SUM, "difference": SUM, "minus": SUM, "product": PRODUCT, "cross": PRODUCT, "across": PRODUCT,
             "dot": PRODUCT, "inner": PRODUCT, "moment": PRODUCT, "crm": PRODUCT, "crf": PRODUCT,
             "row_product": PRODUCT}  # fmt: skip


def _text(part: Any) -> str:
    if isinstance(part, Fraction):
        return str(part) if part.denominator == 1 else rf"\tfrac{{{part.numerator}}}{{{part.denominator}}}"
    return part.latex() if isinstance(part, Written) else f"{part:g}"


def _strength(part: Any) -> int:
    return _STRENGTH.get(part.operation, ATOM) if isinstance(part, Written) else ATOM


def _bracketed(text: str) -> str:
    return rf"\left({text}\right)"


def _within(part: Any, least: int) -> str:
    """A part in brackets if it holds together less strongly than `least`."""
    return _text(part) if _strength(part) >= least else _bracketed(_text(part))


def _sum(sign: str) -> Callable[[Any, Any], str]:
    def printed(a: Any, b: Any) -> str:
        negative = isinstance(b, Written) and b.operation == "minus"
        return f"{_text(a)} {sign} {_within(b, PRODUCT if sign == '-' or negative else SUM)}"

    return printed


def _product(a: Any, b: Any) -> str:
    """Juxtaposed; a vector product on the right of a matrix is bracketed."""
    left = _bracketed(_text(a)) if _is_cross(a) and _has_size(b) else _within(a, PRODUCT)
    right = _bracketed(_text(b)) if _is_cross(b) and _has_size(a) else _within(b, PRODUCT)
    return f"{left} {right}"


def _is_cross(part: Any) -> bool:
    return isinstance(part, Written) and part.operation in ("cross", "across")


def _has_size(part: Any) -> bool:
    return isinstance(part, Written) and bool(part.size)


def _operand(part: Any) -> str:
    """An operand of a vector product."""
    return _bracketed(_text(part)) if _is_cross(part) else _within(part, PRODUCT)


def _raised(a: Any, exponent: Any) -> str:
    """A power, a transpose, an inverse; a letter with an exponent of its own is bracketed."""
    text = _text(a)
    enclosed = "^" not in text or (text[0], text[-1]) == ("[", "]")
    plain = _strength(a) == ATOM and enclosed and getattr(a, "operation", "") not in ("fraction", "power")
    return f"{text if plain else _bracketed(text)}^{{{exponent}}}"


def _dot(a: Any, b: Any) -> str:
    return f"{_raised(a, 'T')} {_operand(b) if _strength(b) < ATOM and b.operation != 'product' else _text(b)}"


def _tilde(a: Any) -> str:
    """A tilde over a letter, without its index; over anything else, a wide one. The matrix of `{a}` is in `[ ]`."""
    if isinstance(a, Written) and a.operation == "letter":
        column = re.fullmatch(r"\\\{(?:\\dot\{(?P<moving>.*?)\}|(?P<base>.*?))(?P<rest>['_].*)\\\}", a.parts[0])
        if column and column["moving"]:
            return rf"[\dot{{\tilde{{{column['moving']}}}}}{column['rest']}]"
        if column:
            return rf"[\tilde{{{column['base']}}}{column['rest']}]"
        base, mark, index = a.parts[0].partition("_")
        return rf"\tilde{{{base}}}{mark}{index}"
    return rf"\widetilde{{\left({_text(a)}\right)}}"


def _matrix(*rows: Any) -> str:
    lines = r" \\ ".join(" & ".join(_text(part) for part in row) for row in rows)
    return rf"\begin{{bmatrix}} {lines} \end{{bmatrix}}"


_PRINTED: dict[str, Callable[..., str]] = {
    "letter": lambda latex, _: latex,
    "sum": _sum("+"),
    "difference": _sum("-"),
    "minus": lambda a: f"-{_within(a, PRODUCT)}",
    "product": _product,
    "row_product": _product,
    "square": lambda a, _: _raised(a, 2),
    "power": _raised,
    "transpose": lambda a: _raised(a, "T"),
    "inverse": lambda a: _raised(a, -1),
    "fraction": lambda a, b: rf"\frac{{{_text(a)}}}{{{_text(b)}}}",
    "dot": _dot,
    "inner": lambda a, b: rf"{_within(a, ATOM)} \cdot {_within(b, ATOM)}",
    "moment": lambda a, b: rf"K \cdot \left({_operand(a)} \times {_operand(b)}\right)",
    "cross": lambda a, b: rf"{_operand(a)} \times {_operand(b)}",
    "across": lambda a: rf"K \times {_operand(a)}",
    "skew": _tilde,
    "tilde": _tilde,
    "norm": lambda a: rf"\left|{_text(a)}\right|",
    "fixed": lambda latex, _: latex,
    "crm": lambda v: rf"{_within(v, ATOM)} \times",
    "crf": lambda v: rf"{_within(v, ATOM)} \times^{{*}}",
    "identity": lambda n: "1",
    "block": _matrix,
}
