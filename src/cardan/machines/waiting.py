"""One line that says what takes long: it appears after two seconds and is erased at the end.

It appears where somebody looks on, in a terminal (stderr) or a notebook, and nowhere else: not in a pipe, a file or a
service. `CARDAN_QUIET=1` switches it off.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import wraps
from html import escape
from importlib import import_module
from shutil import get_terminal_size
from textwrap import shorten
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
DELAY = 2.0  # s before the line appears
AGAIN = 0.5  # s until it is written anew

_lock = Lock()
_said: list[str] = []  # what is being done, the outermost first


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say what is being done while it lasts, if that is long; within another, as a part of it."""
    write = None if _said else _writer()
    with _lock:
        _said.append(what)
    try:
        if write is None:
            yield
        else:
            with _shown(write):
                yield
    finally:
        with _lock, suppress(ValueError):
            _said.remove(what)


def said(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function that may take long: say what is being done while it lasts."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def saying(*args: P.args, **options: P.kwargs) -> R:
            with doing(what):
                return function(*args, **options)

        return saying

    return decorate


@contextmanager
def _shown(write: Callable[[str], None]) -> Iterator[None]:
    """Write the line from another thread, until this one is through."""
    done, began = Event(), monotonic()

    def show() -> None:
        if done.wait(DELAY):
            return
        with suppress(OSError, ValueError):  # the terminal is gone
            while not done.wait(AGAIN):
                with _lock:
                    what = ": ".join(_said)
                write(f"cardan, {monotonic() - began:.0f} s: {what}")
            write("")

    thread = Thread(target=copy_context().run, args=(show,), name="cardan waiting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def in_notebook() -> bool:
    """Whether the program runs in the kernel of a notebook, which shows HTML."""
    return "IPython" in sys.modules and hasattr(sys.modules["IPython"].get_ipython(), "kernel")


def is_watched() -> bool:
    """Whether somebody looks on, in a terminal or a notebook, and wants to be told."""
    if os.environ.get("CARDAN_QUIET", "0") != "0":
        return False
    stream = sys.stderr  # None without a console
    return in_notebook() or (stream is not None and stream.isatty())


def _writer() -> Callable[[str], None] | None:
    """What writes the line, in place of the one before; None where nobody looks on."""
    if not is_watched():
        return None
    if in_notebook():
        return _notebook_writer()
    stream = sys.stderr

    def write(line: str) -> None:
        stream.write("\r\x1b[2K" + shorten(line, get_terminal_size().columns - 1, placeholder=" ..."))
        stream.flush()

    return write


def _notebook_writer() -> Callable[[str], None]:
    """A writer into the output of a notebook's cell."""
    notebook: Any = import_module("IPython.display")
    place: list[Any] = []

    def write(line: str) -> None:
        shown = notebook.HTML(f"<small>{escape(line)}</small>" if line else "")
        if place:
            place[0].update(shown)
        elif line:
            place.append(notebook.display(shown, display_id=True))

    return write
