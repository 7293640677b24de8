"""Full code of a loop that tables or quick code serve meanwhile, compiled by another process.

LLVM takes eight times as long for full code as for quick code, which has the same bits and needs half as much again to
run; it takes next to nothing for tables, which need two to four times as long to run. So a long program begins as a
table. Once its loop has run for a while, another process compiles quick code and then full code, and each replaces what
was there. It is a process because LLVM can neither be stopped nor work for two threads at a time: a process that ends
does not wait for it, and calls that need other kernels do not either (docs/decisions/0066, 0075).
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from threading import Lock, Thread, current_thread
from time import sleep

from cardan.machines.build import digest, is_straight, text_of
from cardan.machines.host import compiling, to_object

# Full code is asked for after what is there has run for a quarter of what LLVM will take, about 1 s for 1 MB of text.
PATIENCE = 2e-6  # s of running for each byte of the recipe
MOST = max(1, (os.cpu_count() or 1) // 2)  # processes at a time

_HEAD = Struct("<?64sQ")  # before object code: whether it is full code, the digest of its text, its size
_COMPILE = "import sys; sys.path[:0] = sys.argv[1:]; import cardan.machines.full_code as f; f.compile_input()"


class FullCode:
    """Full code to come, by a recipe (`build.text_of`).

    `install` takes object code, the digest of its text, and whether it is full code.
    """

    def __init__(self, recipe: bytes, install: Callable[[bytes, str, bool], None]) -> None:
        self.recipe, self.install = recipe, install
        self.patience = PATIENCE * len(recipe)
        self._asked_by: int | None = None  # the process that asked; a fork of it asks anew

    def used(self, seconds: float) -> None:
        """Tell that what is there has run for so long; full code is asked for when that was long enough."""
        self.patience -= seconds
        if self.patience <= 0:
            self.ask()

    def ask(self) -> None:
        """Have the full code made, unless that was asked for."""
        if self._asked_by != os.getpid() and _may_start():
            self._asked_by = os.getpid()
            with _lock:
                _waiting.append(self)
            _start_next()

    def make(self) -> None:
        """Compile in another process, and install. Whatever fails, what is there stays."""
        with suppress(Exception):  # of the system, of LLVM, of the cache; nobody waits for this thread
            for code, text, is_full in _compiled_apart(self.recipe):
                with compiling:
                    if not _closing:
                        self.install(code, text, is_full)


_lock = Lock()  # held to look at, and to change, what waits and who works
_waiting: deque[FullCode] = deque()
_threads: list[Thread] = []
_processes: list[subprocess.Popen[bytes]] = []
_closing = False


def _may_start() -> bool:
    """Whether this process is Python itself: an application that contains it would be started a second time."""
    return not getattr(sys, "frozen", False) and Path(sys.executable or "").name.lower().startswith(("python", "pypy"))


def _start_next() -> None:
    """Begin with what waits, while not too much is under way."""
    with _lock:
        while _waiting and len(_threads) < MOST and not _closing:
            _threads.append(Thread(target=_work, args=(_waiting.popleft(),), name="cardan full code", daemon=True))
            _threads[-1].start()


def _work(first: FullCode) -> None:
    """Make one after the other; a thread that finds no more is gone before another can be asked for."""
    job = first
    while True:
        job.make()
        with _lock:
            if _closing or not _waiting:
                _threads.remove(current_thread())
                return
            job = _waiting.popleft()


def _compiled_apart(recipe: bytes) -> Iterator[tuple[bytes, str, bool]]:
    """Object code, the digest of its text, and whether it is full code, as another process makes them."""
    import llvmlite

    places = [str(Path(file).parents[1]) for file in (Path(__file__).parent, llvmlite.__file__)]
    windows = sys.platform == "win32"
    with subprocess.Popen(
        [sys.executable, "-I", "-c", _COMPILE, *places],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=not windows,  # which Ctrl-C in a terminal does not reach
        creationflags=0x08000000 if windows else 0,  # no window
    ) as process:  # fmt: skip
        _processes.append(process)
        try:
            if _closing:
                process.kill()
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(len(recipe).to_bytes(8, "little") + recipe)
            process.stdin.flush()
            while len(head := process.stdout.read(_HEAD.size)) == _HEAD.size:
                is_full, text, size = _HEAD.unpack(head)
                code = process.stdout.read(size)
                if len(code) == size:
                    yield code, text.decode(), is_full
        finally:
            _processes.remove(process)


def compile_input() -> None:
    """The other process: compile the recipe that comes in, and end with the process that asked."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            sleep(0.2)
        os._exit(1)

    with suppress(OSError, AttributeError):
        os.nice(5)  # what the user runs comes first
    Thread(target=watch, daemon=True).start()
    read = sys.stdin.buffer.read  # so many bytes: a fork of the asking process may hold the pipe open
    recipe = read(int.from_bytes(read(8), "little"))
    text = text_of(recipe)
    for is_full in (True,) if is_straight(recipe) else (False, True):
        code = to_object(text, quick=not is_full)
        sys.stdout.buffer.write(_HEAD.pack(is_full, digest(text).encode(), len(code)) + code)
        sys.stdout.buffer.flush()


@atexit.register
def _stop() -> None:
    """End the other processes, and wait for code that is being linked."""
    global _closing
    _closing = True
    for process in [*_processes]:
        process.kill()
    for thread in [*_threads]:
        thread.join()


def _forget() -> None:
    """In a fork: what the parent waits for is not ours."""
    global _lock
    _lock = Lock()
    _waiting.clear()
    _threads.clear()
    _not_ours.extend(_processes)
    _processes.clear()


_not_ours: list[subprocess.Popen[bytes]] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
