"""Where the members of a study are computed: in this process, in local processes, or by workers of Dask.

Each way takes ranges of members and gives their results in the order in which they are done, a few at a time: the
number of ranges on their way is bounded, and with it the memory.

A worker that dies is replaced and its range computed again. A range that has killed three workers is halved until the
member that kills is found; it has failed then, and the others go on.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import queue
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from threading import Thread
from typing import Any, Protocol

import numpy as np

from cardan.errors import InputError, SimulationError, warn_outside
from cardan.machines.ufunc.threads import get_threads
from cardan.studies.identity import code_version, require_code
from cardan.studies.task import Results, Task, failed_results
from cardan.studies.worker import compute_on_dask, receive, send

KILLS = 3
"""Workers that a range may kill before it is halved, or, if it is one member, has failed."""
RECONNECT = 60.0  # s to wait for a scheduler that is gone, or for workers when all have ended
LOOK = 1.0  # s after which it is looked whether there are workers
NOBODY = 5.0  # s without workers after which it is said
TRIES = 10  # to ask workers for their version
Range = tuple[int, int]
Answer = Results | BaseException


class WorkerLostError(Exception):
    """A worker died before it answered, or several one after the other; the text says how."""

    def __init__(self, how: str, times: int = 1) -> None:
        super().__init__(how)
        self.times = times


class Pool(Protocol):
    """Workers that compute members."""

    @property
    def size(self) -> int:
        """Number of workers now."""

    def submit(self, values: np.ndarray, first: int, done: Callable[[Answer], None]) -> None:
        """Compute members with these values, of which the first has the number `first`; `done` is called once."""

    def look(self) -> None:
        """Called every `LOOK` s in which nothing is done: say so if there is nobody who could do it."""

    def close(self) -> None:
        """End all work."""


@dataclass
class _Part:
    """Members on their way: the chunk that they are part of, their first number and end, and the workers killed.

    A worker of Dask holds several parts, so that one which kills it throws suspicion on the others too. A single member
    that is suspected is computed alone, and only workers that it kills then count.
    """

    chunk: Range
    lo: int
    hi: int
    kills: int = 0
    alone: bool = False


def in_this_process(task: Task, values: np.ndarray, ranges: list[Range]) -> Iterator[tuple[int, Results]]:
    """First member and results of each range, one after the other, by the threads of the kernels."""
    for lo, hi in ranges:
        yield lo, task.compute(values[lo:hi], first=lo)


def in_pool(pool: Pool, values: np.ndarray, ranges: list[Range]) -> Iterator[tuple[int, Results]]:
    """First member and results of each range, computed by the workers of a pool."""
    answers: queue.Queue[tuple[_Part, Answer]] = queue.Queue()
    left = deque(_Part(r, *r) for r in ranges)
    open_chunks: dict[Range, tuple[Results, list[int]]] = {}
    flying, solo = 0, False
    try:
        while left or flying:
            while left and flying < 2 * pool.size and not (flying and (solo or left[0].alone)):
                part = left.popleft()
                solo = part.alone
                pool.submit(values[part.lo : part.hi], part.lo, partial(_put, answers, part))
                flying += 1
            part, answer = _wait(answers, pool)
            flying -= 1
            found = _judged(part, answer, left)
            if found is None:
                continue
            lo, hi = part.chunk
            results, count = open_chunks.setdefault(part.chunk, (Results.empty(hi - lo, lo), [0]))
            results.join(found, part.lo - part.chunk[0])
            count[0] += part.hi - part.lo
            if count[0] == len(results.state):
                del open_chunks[part.chunk]
                yield part.chunk[0], results
    finally:
        pool.close()


def _put(answers: queue.Queue[tuple[_Part, Answer]], part: _Part, answer: Answer) -> None:
    answers.put((part, answer))


def _wait(answers: queue.Queue[Any], pool: Pool) -> Any:
    """The next answer; Ctrl-C is noticed while waiting."""
    while True:
        try:
            return answers.get(timeout=LOOK)
        except queue.Empty:
            pool.look()


def _judged(part: _Part, answer: Answer, left: deque[_Part]) -> Results | None:
    """The results; None where members are to be computed again, in parts if they have killed too many workers."""
    if isinstance(answer, Results):
        return answer
    if not isinstance(answer, WorkerLostError | MemoryError):
        raise answer
    if part.hi - part.lo == 1 and not part.alone:
        part.kills, part.alone = 0, True
    else:
        part.kills += getattr(answer, "times", 1)
    if part.kills < KILLS:
        left.appendleft(part)
    elif part.hi - part.lo == 1:
        return failed_results(1, f"it has killed {part.kills} workers, the last {answer}")
    else:
        mid = (part.lo + part.hi) // 2
        for lo, hi in ((mid, part.hi), (part.lo, mid)):
            # halving is harmless, so that one more death is enough for it; a single member is given three chances
            left.appendleft(_Part(part.chunk, lo, hi, *((0, True) if hi - lo == 1 else (KILLS - 1,))))
    return None


def pickled(task: Task) -> bytes:
    """A task for other processes; functions of a script or notebook are sent with their code."""
    pickler: Any = pickle
    with contextlib.suppress(ImportError):
        pickler = import_module("cloudpickle")
    try:
        found = bytes(pickler.dumps(task, protocol=5))
        if pickler is pickle and b"__main__" in found:
            raise TypeError("it is part of a script or notebook")
    except Exception as error:  # whatever is in a model or a function may refuse in its own way
        more = "" if pickler is not pickle else ", or install cloudpickle, with: pip install 'cardan[sweep]'"
        raise InputError(
            f"sweep: the model, or a function of the study, cannot be sent to other processes ({error}); define "
            f"functions in a module{more}, or compute without workers"
        ) from error
    return found


# Processes of this machine.


class LocalWorkers:
    """Processes of this machine, each tended by a thread, which starts another when one dies."""

    def __init__(self, task: Task, count: int) -> None:
        self.size = count
        blob = pickled(task)
        threads = max(get_threads() // count, 1)
        hello = pickle.dumps((blob, hashlib.blake2b(blob, digest_size=16).hexdigest(), threads), protocol=5)
        self._todo: queue.Queue[tuple[np.ndarray, int, Callable[[Answer], None]] | None] = queue.Queue()
        self._workers = [_Process(hello, k) for k in range(count)]
        self._threads = [Thread(target=self._tend, args=(w,), daemon=True) for w in self._workers]
        for thread in self._threads:
            thread.start()

    def submit(self, values: np.ndarray, first: int, done: Callable[[Answer], None]) -> None:
        """Compute members when a worker is free."""
        self._todo.put((values, first, done))

    def _tend(self, worker: _Process) -> None:
        while (item := self._todo.get()) is not None:
            values, first, done = item
            try:
                answer: Answer = worker.compute(values, first)
            except BaseException as error:
                answer = error
            done(answer)

    def look(self) -> None:
        """Nothing to say: a process that ends is started again, or its end is an answer."""

    @property
    def processes(self) -> list[int]:
        """Numbers of the processes that are at work."""
        return [w.process.pid for w in self._workers if w.process is not None]

    def close(self) -> None:
        """End the processes that were started here."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._todo.get_nowait()
        for worker in self._workers:
            self._todo.put(None)
            worker.end()
        for worker, thread in zip(self._workers, self._threads, strict=True):
            thread.join(timeout=10.0)
            worker.end()  # one that was being started meanwhile
            if worker.process is not None and not thread.is_alive():
                _close_pipes(worker.process)


class _Process:
    """One process, started when it is first needed."""

    def __init__(self, hello: bytes, number: int) -> None:
        self.hello, self.number, self.ended = hello, number, False
        self.process: subprocess.Popen[bytes] | None = None

    def compute(self, values: np.ndarray, first: int) -> Answer:
        try:
            if self.process is None:
                self._start()
            assert self.process is not None
            assert self.process.stdin is not None and self.process.stdout is not None
            send(self.process.stdin, pickle.dumps((values, first, self.number), protocol=5))  # type: ignore[arg-type]
            frame = receive(self.process.stdout)  # type: ignore[arg-type]
        except OSError:
            frame = None
        if frame is None:
            raise WorkerLostError(self._how_it_ended())
        return pickle.loads(frame)

    def _start(self) -> None:
        """Start the process and wait until it has loaded the task; one that is killed meanwhile is started again."""
        how = ""
        for _ in range(KILLS):
            if self.ended:
                raise WorkerLostError("ended with the study")
            try:
                answer = self._greeted()
            except OSError as error:
                answer, how = None, f"{error.strerror or error}"
            if answer is None:
                how = self._how_it_ended() if self.process is not None else how
                continue
            if (why := pickle.loads(answer)) is None:
                return
            raise InputError(
                f"sweep: a local worker cannot load the study ({why}); the modules of its functions must be found "
                "there too, or compute without workers"
            )
        raise SimulationError(
            f"sweep: a local worker cannot be started, {KILLS} have ended before their work, the last {how}; what they "
            "printed tells more. What is complete is kept; compute without workers, or with fewer"
        )

    def _greeted(self) -> bytes | None:
        """Start a process and send the task; its answer."""
        paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cardan.studies.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths}, start_new_session=True,  # Ctrl-C in a terminal is the master's
        )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        send(self.process.stdin, self.hello)  # type: ignore[arg-type]
        return receive(self.process.stdout)  # type: ignore[arg-type]

    def _how_it_ended(self) -> str:
        """Forget the process, which is dead or cannot be understood; how it ended."""
        process, self.process = self.process, None
        if process is None:
            return "could not be started"
        try:
            code = process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        _close_pipes(process)
        return f"by signal {-code}" if code < 0 else f"with exit code {code}"

    def end(self) -> None:
        """Kill the process."""
        self.ended = True
        process = self.process
        if process is not None:
            process.kill()
            process.wait()


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            pipe and pipe.close()


# Workers of Dask.


class DaskWorkers:
    """Workers of a Dask client: each range is a future, named after the study in the dashboard."""

    def __init__(self, task: Task, client: Any) -> None:
        _require_client(client)
        self.client, self._blob = client, pickled(task)
        self._digest = hashlib.blake2b(self._blob, digest_size=16).hexdigest()
        self._name = f"sweep {task.model.name if task.model is not None else 'function'}".replace("-", "_")
        self._futures: dict[Any, tuple[int, int, Callable[[Answer], None]]] = {}
        self._code = code_version()
        self._alone_since: float | None = None
        self._warned = self._had_workers = False
        _require_same_version(client)

    @property
    def size(self) -> int:
        """Number of workers now, 1 at least."""
        count = self._count() or 0
        self._had_workers |= count > 0
        return max(count, 1)

    def _count(self) -> int | None:
        """Number of workers now; None while the scheduler is away."""
        try:
            return len(self.client.scheduler_info(n_workers=-1)["workers"])
        except Exception:  # of many kinds
            return None

    def look(self) -> None:
        """Say once that no worker has been there for a while; workers may come later, so that the study waits.

        Workers that were there may have ended because of a member. Where none comes back, the study ends.
        """
        now = time.monotonic()
        if self._count() != 0:
            self._alone_since = None
            return
        self._alone_since = now if self._alone_since is None else self._alone_since
        if self._had_workers and now - self._alone_since > RECONNECT:
            flying = sorted((first, size) for first, size, _ in self._futures.values())
            raise SimulationError(
                f"sweep: all workers of the client of Dask have ended while members {flying[0][0]} to "
                f"{sum(flying[-1]) - 1} were computed, and none has come back for {RECONNECT:g} s; a member may have "
                "killed them: workers with a nanny are started again, and the member is found. What is complete is "
                "kept: call the sweep again with other workers to go on"
            )
        if now - self._alone_since > NOBODY and not self._warned:
            self._warned = True
            warn_outside(
                "sweep: the client of Dask has no workers, and the study waits for them; start some, or stop it with "
                "Ctrl-C: what is complete is kept"
            )

    def submit(self, values: np.ndarray, first: int, done: Callable[[Answer], None]) -> None:
        """Compute members on any worker."""
        key = f"{self._name}-{first}-{uuid.uuid4().hex}"
        self._wait_for_scheduler()
        given = (self._blob, self._digest, values, first, self._code)
        future = self.client.submit(compute_on_dask, *given, key=key, pure=False)
        self._futures[future] = (first, len(values), done)
        future.add_done_callback(self._done)

    def _done(self, future: Any) -> None:
        known = self._futures.pop(future, None)
        if known is not None:
            known[2](self._answer(future))

    def _answer(self, future: Any) -> Answer:
        try:
            if future.status == "finished":
                return future.result()
            if future.status == "error":
                error: BaseException = future.exception()
                if type(error).__name__ == "KilledWorker":
                    return WorkerLostError("as Dask tells", KILLS)
                return error
            return WorkerLostError("with its scheduler")
        except Exception as error:  # the connection is gone
            return WorkerLostError(f"with its scheduler ({type(error).__name__})")

    def _wait_for_scheduler(self) -> None:
        """Wait until a scheduler that was restarted is back."""
        until = time.monotonic() + RECONNECT
        while self.client.status != "running":
            if time.monotonic() > until or self.client.status == "closed":
                raise SimulationError(
                    f"sweep: the client of Dask has lost its scheduler ({self.client.status}); what is complete is "
                    "kept: call the sweep again with another client to go on"
                )
            time.sleep(0.1)

    def close(self) -> None:
        """Cancel what is on its way."""
        futures, self._futures = list(self._futures), {}
        with contextlib.suppress(Exception):
            self.client.cancel(futures)


def _require_client(client: Any) -> None:
    if not all(hasattr(client, name) for name in ("submit", "run", "scheduler_info")):
        raise InputError(f"sweep: client must be a dask.distributed.Client, got {type(client).__name__}")
    if getattr(client, "status", "") in ("closed", "closing"):
        raise InputError("sweep: the client of Dask is closed; give one that is open")
    if getattr(client, "asynchronous", False):
        raise InputError("sweep: client is asynchronous; give a Client(..., asynchronous=False)")


def _require_same_version(client: Any) -> None:
    """Reject workers that have another version of Cardan, or none; one that dies meanwhile is not asked."""
    own, theirs = code_version(), {}
    for _ in range(TRIES):
        try:
            theirs = client.run(_version_there, on_error="return")
            break
        except OSError:  # the scheduler is away
            time.sleep(1.0)
    for worker, found in theirs.items():
        if isinstance(found, OSError):
            continue
        if isinstance(found, BaseException):
            raise InputError(
                f"sweep: worker {worker} of the client cannot load Cardan ({type(found).__name__}: {found}); install "
                f"the same version, {own['version']}, there"
            )
        require_code(found, own, f"worker {worker}")


def _version_there() -> dict[str, str]:
    return code_version()
