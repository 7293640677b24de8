"""Tables and numbers in Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence

NONE = "–"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, text_columns: int = 1) -> str:
    """A table; the first columns are text, the others numbers."""
    rule = ["---" if k < text_columns else "---:" for k in range(len(head))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *rows])


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, never in exponent form."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}"


def ns(seconds: float | None) -> str:
    """Seconds as nanoseconds."""
    return number(None if seconds is None else seconds * 1e9)


def us(seconds: float | None) -> str:
    """Seconds as microseconds."""
    return number(None if seconds is None else seconds * 1e6)


def ms(seconds: float | None) -> str:
    """Seconds as milliseconds."""
    return number(None if seconds is None else seconds * 1e3)


def times(ratio: float | None) -> str:
    """A ratio."""
    return NONE if ratio is None else number(ratio) + "x"


def scientific(value: float | None) -> str:
    """An error."""
    return NONE if value is None else f"{value:.1e}"
