"""LaTeX of equations of motion: aligned matrices and a legend with the meaning of every symbol."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cardan.readable.naming import Meaning
    from cardan.readable.symbols import Symbols

LEFT = {
    "M": "M", "f": "f", "J": "J", "gamma": r"\gamma", "phi": r"\varphi(q)", "N": "N", "q": "q", "v": "v"
}  # fmt: skip


def matrix_text(name: str, matrix: Any) -> str:
    """One matrix: `M = [...]`."""
    return f"{LEFT[name]} = {_latex(matrix)}"


def whole_text(s: Symbols) -> str:
    """The equations, their matrices, definitions of abbreviations and the legend, aligned at the equals signs."""
    lines = [f"{left} &= {right}" for left, right in _rows(s)]
    body = " \\\\\n".join(lines)
    return f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n\\\\[1ex]\n{legend_text(s)}"


def _rows(s: Symbols) -> list[tuple[str, str]]:
    """Left and right side of every line."""
    constrained = s.J.shape[0] > 0
    plain = s.N.is_square and s.N.is_Identity
    rows = [(r"M\,\dot v + J^{\mathsf T}\lambda" if constrained else r"M\,\dot v", "f")]
    if constrained:
        rows += [(r"J\,\dot v", r"\gamma"), (r"\varphi(q)", "0")]
    rows.append((r"\dot q", "v" if plain else r"N\,v"))
    rows += [("q", _column(s.q)), ("v", _column(s.v))]
    names = ["M", "f", *(("J", "gamma", "phi") if constrained else ()), *(() if plain else ("N",))]
    rows += [(LEFT[name], _latex(s.matrix(name))) for name in names]
    return rows + [(_latex(symbol), _latex(value)) for symbol, value in s.definitions.items()]


def legend_text(s: Symbols) -> str:
    """Every symbol with its meaning, value and unit, as an array."""
    rows = [
        f"{_latex(symbol)} & {_row(meaning)}" for symbol, meaning in s.meanings.items() if symbol not in s.definitions
    ]
    return "\\begin{array}{lll}\n" + " \\\\\n".join(rows) + "\n\\end{array}"


def _row(meaning: Meaning) -> str:
    """Meaning, value and unit of a symbol."""
    value = "" if meaning.value is None else _number(meaning.value) + r"\;"
    return f"\\text{{{_escaped(meaning.text)}}} & {value}{_unit(meaning.unit)}".rstrip()


def _number(value: float) -> str:
    """A float with six digits."""
    mantissa, _, exponent = f"{value:.6g}".partition("e")
    return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def _unit(unit: str) -> str:
    """A unit in upright letters."""
    if unit in ("", "1"):
        return ""
    return r"\mathrm{" + re.sub(r"\^(\d+)", r"^{\1}", unit).replace(" ", r"\,") + "}"


def _column(symbols: Any) -> str:
    """A column of symbols, written as a transposed row."""
    return r"\begin{pmatrix}" + " & ".join(_latex(x) for x in symbols) + r"\end{pmatrix}^{\mathsf T}"


def _latex(expression: Any) -> str:
    """SymPy's LaTeX of an expression."""
    import sympy

    return str(sympy.latex(expression, mat_str="matrix"))


def _escaped(text: str) -> str:
    """Escape the characters of a user's name that LaTeX would read as commands."""
    return re.sub(r"[_&%#$^{}~\\]", lambda found: WRITTEN.get(found[0], f"\\{found[0]}"), text)


WRITTEN = {"\\": r"$\backslash$", "~": r"$\sim$", "^": r"\^{}"}
