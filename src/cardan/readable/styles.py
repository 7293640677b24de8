"""The styles of `cd.equations(...).sympy(style=...)`: each is a function with the arguments of `symbols_of`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cardan.errors import UnknownNameError, nearest
from cardan.readable.kj_rows import kj_symbols
from cardan.readable.momentum import momentum_symbols
from cardan.readable.symbols import require_sympy, symbols_of

STYLES: dict[str | None, Callable[..., Any]] = {
    None: symbols_of,
    "AT": momentum_symbols,
    "KJ": kj_symbols,
}


def find_style(style: str | None) -> Callable[..., Any]:
    """The function of a style; None is the contract in the model's own numbers."""
    require_sympy()
    if style not in STYLES:
        raise UnknownNameError(f"sympy: there is no style {style!r}{nearest(style, [x for x in STYLES if x])}")
    return STYLES[style]
