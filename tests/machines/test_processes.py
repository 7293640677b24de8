"""Kernels in many processes, however they were started, and processes that are interrupted."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.machines import host as machine
from cardan.mechanisms import double_pendulum

from .stampede import stampede

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and forks are POSIX's")
ROOT = Path(__file__).parents[2]


def answer(model, call):
    """Bits of a threaded batch and of a simulation; `call` calls a function somewhere."""
    q, v, tau = np.random.default_rng(1).normal(size=(3, 20_000, model.nv))
    a = call(cd.forward_dynamics, (model, q, v, tau), {"threads": 3})
    run = call(cd.simulate, (model, 0.1, q[:40], v[:40]), {"method": "rk4", "step": 0.01, "threads": 2})
    return a.tobytes(), run.q.tobytes()


def here(function, args, options):
    """Call a function in this process."""
    return function(*args, **options)


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_workers_give_the_same_bits(method):
    """Started in every way, while and after threads were at work here; a model is passed to them."""
    model = double_pendulum().build()
    expected = answer(model, here)
    with ThreadPoolExecutor(4) as threads:
        at_work = [threads.submit(answer, model, here) for _ in range(4)]
        with multiprocessing.get_context(method).Pool(1) as worker:
            assert answer(model, lambda *call: worker.apply_async(*call).get(timeout=120)) == expected
        assert all(done.result() == expected for done in at_work)


@POSIX
def test_fork_waits_for_a_compilation():
    """A child never finds the compiler held by a thread that it has not got."""
    inside, go_on = threading.Event(), threading.Event()

    def compile_slowly():
        with machine.compiling:
            inside.set()
            go_on.wait(60)

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    inside.wait(60)
    threading.Timer(0.1, go_on.set).start()
    child = os.fork()
    if child == 0:
        os._exit(0 if go_on.is_set() and machine.compiling.acquire(timeout=60) else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()


BUILD_AND_FORK = """
import os, signal, sys, threading
from cardan.mechanisms import four_bar
from cardan.model.model import Model

inside, go_on = threading.Event(), threading.Event()
key = Model.key.func
def slowly(model):
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        go_on.wait(60)
    return key(model)
Model.key.func = slowly
thread = threading.Thread(target=lambda: four_bar().build().key)
thread.start()
inside.wait(60)
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(0 if four_bar().build().key else 1)
status = os.waitpid(child, 0)[1]
go_on.set()
thread.join()
sys.exit(status)
"""


@POSIX
def test_a_fork_while_a_model_is_being_built():
    """A child builds models although a thread of its parent was just computing an attribute of one."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    assert subprocess.run([sys.executable, "-c", BUILD_AND_FORK], env=env, timeout=120, check=False).returncode == 0


@POSIX
def test_stampede(tmp_path, monkeypatch):
    """Eight processes at once on an empty cache; `python -m tests.machines.stampede 200` is the long version."""
    monkeypatch.setenv("CARDAN_CACHE_DIR", "")  # restored afterwards
    codes, left = stampede(8, "fork", tmp_path / "cache")
    assert codes == [0] * 8
    assert left and not [name for name in left if name.startswith("new-")]


BATCH = """
import threading, numpy as np, cardan as cd
from cardan.mechanisms import double_pendulum
model = double_pendulum().build()
q = np.zeros((64, model.nv))
out = np.empty((4_000_000, model.nv))
big = np.broadcast_to(q[:1], out.shape)
cd.forward_dynamics(model, q, q, q)
cd.forward_dynamics(model, big[:200_000], big[:200_000], big[:200_000], threads=3)
print("ready", flush=True)
try:
    while True:
        cd.forward_dynamics(model, big, big, big, out=out, threads={threads})
except KeyboardInterrupt:
    before = out.copy()
    busy = [t.name for t in threading.enumerate() if not t.daemon and not t.name.startswith(("Main", "cardan"))]
    assert not busy, busy
    again = cd.forward_dynamics(model, q, q, q, threads=3)
    assert np.isfinite(again).all()
    assert before.tobytes() == out.tobytes(), "somebody is still writing"
    print("left", flush=True)
"""

RUN = """
import os, numpy as np, cardan as cd
from cardan.mechanisms import double_pendulum
model = double_pendulum().build()
q = np.random.default_rng(1).normal(size=(300, model.nv))
# all modules are loaded before: Python ends with SIGINT if that interrupts C code that runs a text, though it is caught
cd.simulate(model, 0.01, q[:20], 0 * q[:20], method="dormand_prince", store="first.nc", threads=2)
os.remove("first.nc")
print("ready", flush=True)
try:
    cd.simulate(model, 10_000.0, q, 0 * q, method="dormand_prince", samples=50, store="run.nc", threads=2)
except KeyboardInterrupt as error:
    print("left", type(error).__name__, flush=True)
"""


def interrupt(script, folder, times=1):
    """Output of a script after Ctrl-C, and the seconds it went on for."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=env, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(0.5)
    began = time.monotonic()
    for _ in range(times):
        process.send_signal(signal.SIGINT)
        time.sleep(0.02)
    rest, errors = process.communicate(timeout=120)
    assert first == "ready\n" and process.returncode == 0, errors
    return rest, time.monotonic() - began


@POSIX
@pytest.mark.parametrize("threads", [1, 3])
def test_interrupted_batch(threads, tmp_path):
    """Ctrl-C ends a batch soon, no thread goes on writing, and the next call answers."""
    rest, seconds = interrupt(BATCH.replace("{threads}", str(threads)), tmp_path)
    assert rest == "left\n"
    assert seconds < 10


@POSIX
def test_interrupted_simulation_to_a_file(tmp_path):
    """Ctrl-C leaves the part that was computed as a whole file, or none; never a piece of one."""
    rest, seconds = interrupt(RUN, tmp_path)
    left = [path.name for path in tmp_path.iterdir()]
    assert seconds < 10
    if left:
        assert (rest, left) == ("left InterruptedRunError\n", ["run.nc"])
        assert cd.load_run(tmp_path / "run.nc", double_pendulum().build()).q.shape[0] == 300
    else:
        assert rest == "left KeyboardInterrupt\n"  # before the first step


COMPILATION = """
import os, sys, threading, time, numpy as np
import cardan as cd
from cardan.machines import host
from cardan.mechanisms import double_pendulum

model, whole = double_pendulum().build(), host.to_object
def slowly(work):
    def long_work():
        print("ready", flush=True)
        for _ in range(3):
            found = work()
        time.sleep(1.5)  # LLVM takes as long for a long kernel
        return found
    return interruptible(long_work)
interruptible, host.interruptible = host.interruptible, slowly
try:
    cd.forward_dynamics(model, [0.1, 0.2], [0.0, 0.0], [0.0, 0.0])
except KeyboardInterrupt:
    print("left", flush=True)
    assert not host._left_alone[0].is_set(), "it had ended before"
    host.interruptible = interruptible
    if sys.platform != "win32":
        child = os.fork()  # waits for the compilation that goes on
        if child == 0:
            os._exit(0 if host._left_alone[0].is_set() else 1)
        assert os.waitpid(child, 0)[1] == 0
    assert np.isfinite(cd.forward_dynamics(model, [0.1, 0.2], [0.0, 0.0], [0.0, 0.0])).all()
    print("again", flush=True)
"""


@POSIX
def test_interrupted_compilation(tmp_path, monkeypatch):
    """Ctrl-C is heard while LLVM is at work; the next call, and a fork, find everything in order."""
    monkeypatch.setenv("CARDAN_CACHE", "0")
    rest, seconds = interrupt(COMPILATION, tmp_path)
    assert rest == "left\nagain\n"
    assert seconds < 20


LEAVES = """
import time, cardan as cd
from cardan.machines import host
from cardan.mechanisms import double_pendulum

def slowly(work):
    def long_work():
        print("ready", flush=True)
        time.sleep({seconds})
        return work()
    return interruptible(long_work)
interruptible, host.interruptible = host.interruptible, slowly
try:
    cd.forward_dynamics(double_pendulum().build(), [0.1, 0.2], [0.0, 0.0], [0.0, 0.0])
except KeyboardInterrupt:
    print("left", flush=True)
"""


@POSIX
@pytest.mark.parametrize(("seconds", "presses", "code"), [(1.0, 1, 0), (300.0, 2, 130)])
def test_a_process_ends_after_a_compilation_or_at_the_second_interruption(seconds, presses, code):
    """LLVM cannot be stopped, and crashes if the process ends while it is at work."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "CARDAN_CACHE": "0"}
    script = LEAVES.replace("{seconds}", str(seconds))
    with subprocess.Popen([sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, text=True) as process:
        for word in ("ready\n", "left\n")[:presses]:
            assert process.stdout.readline() == word
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        assert process.returncode == code
