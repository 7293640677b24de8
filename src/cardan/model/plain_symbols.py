"""How CasADi treats symbols while a user's function runs.

The settings belong to CasADi as a whole, so they are the same for all threads: the first thread that runs a user's
function makes them, and the last one that leaves restores what was before.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def plain_symbols() -> Iterator[None]:
    """While a user's function runs, NumPy's functions keep symbols, and `float(symbol)` is an error.

    CasADi itself returns nan for `float(symbol)`, so that `if float(x) > 0` would silently take one branch.
    """
    _SETTINGS.enter()
    try:
        yield
    finally:
        _SETTINGS.leave()


class _Settings:
    """The settings, and which threads need them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: Counter[int] = Counter()  # how deep each thread is inside
        self.restore: Callable[[], None] = lambda: None

    def enter(self) -> None:
        """Make the settings, unless another thread has."""
        with self.lock:
            if not self.inside:
                self.restore = _keep_symbols()
            self.inside[threading.get_ident()] += 1

    def leave(self) -> None:
        """Restore what was before, unless another thread is inside."""
        with self.lock:
            self.inside -= Counter([threading.get_ident()])
            if not self.inside:
                self.restore()

    def after_fork(self) -> None:
        """In a child only the thread that forked goes on."""
        self.lock = threading.Lock()
        here = threading.get_ident()
        mine, anybody = self.inside[here], bool(self.inside)
        self.inside = Counter({here: mine} if mine else {})
        if anybody and not mine:
            self.restore()


def _keep_symbols() -> Callable[[], None]:
    """Make the settings; the function that restores what was before."""
    import casadi as ca

    symbols: Any = ca.SX
    options: Any = ca.GlobalOptions
    as_float = symbols.__float__
    mode = options.getNumpyMode()

    def refuse(symbol: Any) -> float:
        if symbol.is_constant():
            return as_float(symbol)
        text = " ".join(repr(symbol).split())
        raise TypeError(f"float() of the symbol {text if len(text) < 60 else f'{text[:56]} ...'}")

    def restore() -> None:
        symbols.__float__ = as_float
        options.setNumpyMode(mode)

    symbols.__float__ = refuse
    options.setNumpyMode(-1)
    return restore


_SETTINGS = _Settings()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_SETTINGS.after_fork)
