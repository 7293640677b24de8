"""How many threads a large batch is split over, and the threads themselves."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from cardan.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_lock = Lock()
_count: int | None = None
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def set_threads(count: int | None) -> None:
    """Split large batches over `count` threads.

    None returns to the default: `CARDAN_NUM_THREADS`, or every core this process may use.
    """
    global _count
    if count is not None and count < 1:
        raise InputError(f"set_threads: {count} threads cannot compute anything; give 1 or more")
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


def run_together(tasks: list[Callable[[], object]]) -> None:
    """Run tasks at once, the first in this thread; return when all are done, raising what one raised."""
    global _pool, _pool_size
    with _lock:
        if _pool is None or _pool_size < len(tasks) - 1:
            from concurrent.futures import ThreadPoolExecutor

            # a pool outgrown is left to finish what it holds
            _pool_size = max(len(tasks) - 1, get_threads() - 1)
            _pool = ThreadPoolExecutor(_pool_size, thread_name_prefix="cardan")
        waiting = [_pool.submit(task) for task in tasks[1:]]
    try:
        tasks[0]()
    finally:
        for future in waiting:
            future.exception()
    for future in waiting:
        future.result()


def _forget_pool() -> None:
    # a forked child has the pool but not its threads
    global _pool, _lock
    _pool, _lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
