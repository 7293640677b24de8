"""A process that computes members of studies for another: it reads frames from its input and writes answers.

A frame is the length of a pickle and the pickle. The first is the task, answered by None, or by why it cannot be
loaded; each later one (values, first, card) is answered by results, or by the error that stopped them. The end of the
input, or of the master, ends the process, so that none outlives its master.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
import time
from collections import OrderedDict
from threading import Lock, Thread
from typing import Any, BinaryIO

import numpy as np

from cardan.machines.ufunc.threads import set_threads
from cardan.studies.identity import code_version, require_code
from cardan.studies.task import Results, Task

HEAD = struct.Struct("<Q")
MOST_TASKS = 4  # whose models, with their kernels, a worker of a cluster remembers
_TASKS: OrderedDict[str, Task] = OrderedDict()
_LOCK = Lock()


def send(pipe: BinaryIO, thing: bytes) -> None:
    """Write a frame."""
    pipe.write(HEAD.pack(len(thing)))
    pipe.write(thing)
    pipe.flush()


def receive(pipe: BinaryIO) -> bytes | None:
    """Read a frame; None at the end of the input."""
    head = pipe.read(HEAD.size)
    if len(head) < HEAD.size:
        return None
    (size,) = HEAD.unpack(head)
    found = pipe.read(size)
    return found if len(found) == size else None


def compute_pickled(
    task: bytes, digest: str, values: np.ndarray, first: int, card: int = 0, threads: int | None = None
) -> Results:
    """Results of members of a pickled task, from the number `first` on, on GPU `card` if there is one.

    The tasks of a process run one after the other, each on all its threads.
    """
    with _LOCK:
        own = _task(task, digest)
        if threads:
            set_threads(threads)
        return own.compute(values, card, first)


def _task(task: bytes, digest: str) -> Task:
    """A task that this process remembers, or loads now."""
    if digest not in _TASKS:
        _TASKS[digest] = pickle.loads(task)
        while len(_TASKS) > MOST_TASKS:
            _TASKS.popitem(last=False)
    _TASKS.move_to_end(digest)
    return _TASKS[digest]


def compute_on_dask(task: bytes, digest: str, values: np.ndarray, first: int, code: dict[str, str]) -> Results:
    """The same on a worker of Dask, which may have joined late, with the threads that it has."""
    from distributed import get_worker

    own = get_worker()
    require_code(code_version(), code, f"worker {own.address}")
    return compute_pickled(task, digest, values, first, _card_of(str(own.name)), own.state.nthreads)


def _card_of(name: str) -> int:
    """Number of a GPU for a worker: workers that are numbered share the GPUs of a machine."""
    return int(name) if name.isdecimal() else 0


def serve() -> None:
    """Answer until the input ends."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the master's
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints goes to the master's stderr
    first = receive(source)
    if first is None:
        return
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    task, digest, threads = pickle.loads(first)
    try:
        _task(task, digest)
    except Exception as error:  # whatever is in a model or a function may fail in its own way
        send(answers, pickle.dumps(f"{type(error).__name__}: {error}"))
        return
    send(answers, pickle.dumps(None))
    while (frame := receive(source)) is not None:
        values, number, card = pickle.loads(frame)
        answer: Any
        try:
            answer = compute_pickled(task, digest, values, number, card, threads)
        except Exception as error:  # the master decides what it means
            answer = error
        try:
            text = pickle.dumps(answer, protocol=5)
        except Exception:  # an error that cannot be sent is told in words
            text = pickle.dumps(RuntimeError(f"{type(answer).__name__}: {answer}"))
        send(answers, text)


def _end_with(master: int) -> None:
    """End this process, also in the middle of its work, when its master is gone."""
    while os.getppid() == master:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    try:
        serve()
    except BrokenPipeError:  # the master is gone
        os._exit(1)
