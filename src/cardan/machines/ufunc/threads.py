"""How many threads a large batch is split over, and the threads themselves."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from cardan.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_lock = Lock()
_count: int | None = None
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def set_threads(count: int | None) -> None:
    """Split large batches over `count` threads.

    None returns to the default: `CARDAN_NUM_THREADS`, or every core this process may use.
    """
    global _count
    if count is not None and not (isinstance(count, int) and count >= 1):
        raise InputError(f"set_threads: {count!r} threads cannot compute anything; give 1 or more")
    _count = count


def get_threads() -> int:
    """The number of threads a large batch is split over."""
    global _count
    if _count is None:
        given = os.environ.get("CARDAN_NUM_THREADS", "")
        if given and not (given.isdecimal() and int(given) > 0):
            raise InputError(f"CARDAN_NUM_THREADS is {given!r}; it must be a whole number, 1 or more")
        _count = int(given) if given else _allowed_cores()
    return _count


def _allowed_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_together(pieces: Iterable[Callable[[], object]], threads: int) -> None:
    """Run pieces of work, each once, on `threads` threads, this one among them.

    The pieces run in the caller's context, with its `numpy.errstate` for example. Returns when no thread is at work any
    more. An error in one piece, or Ctrl-C, is raised then: pieces not yet begun are dropped, and those begun are waited
    for.
    """
    left = deque(pieces)
    helpers: list[Future[None]] = []
    try:
        for _ in range(min(threads, len(left)) - 1):
            helpers.append(_submit(partial(copy_context().run, _work, left), threads - 1))
        _work(left)
    finally:
        _wait(left, helpers)
    for helper in helpers:
        if not helper.cancelled():
            helper.result()


def _work(left: deque[Callable[[], object]]) -> None:
    """Take pieces until none is left; after an error the rest is dropped."""
    try:
        while True:
            try:
                piece = left.popleft()
            except IndexError:
                return
            piece()
    except BaseException:
        left.clear()
        raise


def _wait(left: deque[Callable[[], object]], helpers: list[Future[None]]) -> None:
    """Wait until no helper is at work, even if interrupted: they write into arrays that the caller gets back."""
    interruption = None
    for helper in helpers:
        helper.cancel()  # only stops one that has not begun, which is not needed
        while not helper.done():
            try:
                helper.exception()
            except KeyboardInterrupt as error:
                interruption = error
                left.clear()
    if interruption is not None:
        raise interruption


def _submit(task: Callable[[], None], size: int) -> Future[None]:
    """Start a task on the pool, which has at least `size` threads."""
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < size:
            from concurrent.futures import ThreadPoolExecutor

            # a pool that is too small is left to finish its tasks
            _pool_size = max(size, get_threads() - 1)
            _pool = ThreadPoolExecutor(_pool_size, thread_name_prefix="cardan")
        return _pool.submit(task)


def _forget_pool() -> None:
    """Drop the pool in a forked child, which inherits the object but not its threads."""
    global _pool, _lock
    _pool, _lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
