"""Long programs: tables or quick code answer, another process makes the full code, which takes their place."""

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.machines import build, full_code
from cardan.machines.build import Builder
from cardan.machines.llvm import interpreted
from cardan.machines.ufunc.kernel import Kernel
from cardan.mechanisms import double_pendulum, four_bar
from cardan.structure.kernels import tree_kernel

ROOT = Path(__file__).parents[2]


def kernel_of(model: cd.Model) -> Kernel:
    """A kernel of its own, of which nothing is compiled."""
    return Kernel(tree_kernel(model, "forward_dynamics").program)


def states(model: cd.Model, rows: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(rows)
    return tuple(rng.standard_normal((rows, model.nv)) for _ in range(3))


def wait_for(test, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while not test() and time.monotonic() < end:
        time.sleep(0.01)
    return test()


@pytest.fixture
def long_programs(monkeypatch, tmp_path):
    """Every program counts as long, every graph is a table, and the cache is empty."""
    monkeypatch.setattr(build, "LONG_TEXT", 0)
    monkeypatch.setattr(interpreted, "LEAST", 0)
    tmp_path.chmod(0o700)
    monkeypatch.setenv("CARDAN_CACHE_DIR", str(tmp_path))


@pytest.mark.usefixtures("long_programs")
@pytest.mark.parametrize("rows", [1, 40])
def test_full_code_replaces_tables_with_the_same_bits(rows, monkeypatch):
    """After enough use, and then calls go straight to it; a second process finds both in the cache."""
    model = double_pendulum().build()
    kernel, given, wide = kernel_of(model), states(model, rows), rows > 1
    variant = kernel._variants[np.dtype(float)]
    first = kernel(*given)
    table = variant.loops.wide if wide else variant.loops.row
    installed = []
    monkeypatch.setattr(variant, "_install", lambda *given, install=variant._install: installed.append(install(*given)))
    assert variant.to_come.keys() == {wide}
    assert kernel._limit == 0
    assert variant.to_come[wide]._asked_by is None  # not used enough
    variant.to_come[wide].used(10.0)
    assert wait_for(lambda: not variant.to_come)
    assert (variant.loops.wide if wide else variant.loops.row) != table
    assert len(installed) == 2  # quick code, then full code
    assert wait_for(lambda: kernel._limit > 0)
    assert kernel(*given).tobytes() == first.tobytes()
    monkeypatch.setattr(build, "to_object", None)  # nothing is compiled any more
    again = kernel_of(model)
    assert again(*given).tobytes() == first.tobytes()
    assert not again._variants[np.dtype(float)].to_come


@pytest.mark.usefixtures("long_programs")
def test_tables_stay_where_the_other_process_fails(monkeypatch):
    """No Python to start, or one that fails: calls go on, and `prepare` compiles here."""
    model = double_pendulum().build()
    kernel, given = kernel_of(model), states(model, 1)
    first = kernel(*given)
    variant = kernel._variants[np.dtype(float)]
    monkeypatch.setattr(full_code, "_COMPILE", "raise SystemExit(3)")
    variant.to_come[False].ask()
    assert wait_for(lambda: not any(thread.is_alive() for thread in full_code._threads))
    assert variant.to_come
    assert kernel(*given).tobytes() == first.tobytes()
    kernel.prepare()
    assert not variant.to_come
    assert kernel(*given).tobytes() == first.tobytes()


@pytest.mark.usefixtures("long_programs")
def test_full_code_at_once_on_request(monkeypatch):
    """`CARDAN_QUICK=0`, and programs that are not long."""
    builder = Builder(tree_kernel(four_bar().build(), "forward_dynamics").program)
    assert builder.first_code("double", 1)[1]
    monkeypatch.setenv("CARDAN_QUICK", "0")
    assert not builder.first_code("double", 1)[1]
    monkeypatch.delenv("CARDAN_QUICK")
    monkeypatch.setattr(build, "LONG_TEXT", 1 << 30)
    assert not builder.first_code("float", 1)[1]


LEAVES = """
import os, time
from cardan.machines import build, full_code
from cardan.mechanisms import double_pendulum
import cardan as cd

build.LONG_TEXT = 0
full_code.PATIENCE = 0.0
full_code._COMPILE = "import sys, time; sys.stdin.buffer.read(); time.sleep(300)"
model = double_pendulum().build()
first = cd.forward_dynamics(model, [0.1, 0.2], [0.0, 0.0])
while not full_code._processes:
    time.sleep(0.01)
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:  # asks for itself
        assert not full_code._processes and not full_code._threads
        assert (cd.forward_dynamics(model, [0.1, 0.2], [0.0, 0.0]) == first).all()
        while not full_code._processes:
            time.sleep(0.01)
        full_code._stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print(full_code._processes[0].pid, flush=True)
"""


def test_a_process_ends_while_full_code_is_made():
    """Without waiting, and without leaving the other process behind; a fork goes on by itself."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "CARDAN_CACHE": "0"}
    done = subprocess.run([sys.executable, "-c", LEAVES], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    if hasattr(os, "getpgid"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(done.stdout), 0)


def test_the_other_process_does_not_wait_for_the_end_of_the_pipe():
    """A fork of the asking process, such as a worker of a pool, holds it open as long as it lives."""
    import llvmlite

    places = [str(ROOT / "src"), str(Path(llvmlite.__file__).parents[1])]
    recipe = zlib.compress(b"T" + b"define void @f() { ret void }")
    with subprocess.Popen(
        [sys.executable, "-I", "-c", full_code._COMPILE, *places], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.write(len(recipe).to_bytes(8, "little") + recipe)
        process.stdin.flush()
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()
        assert process.stdout.read()


def test_jobs_are_made_though_others_fail(monkeypatch):
    """One after the other, whatever is raised; a thread that is through does not keep the next job waiting."""
    made = []

    def make(recipe: bytes):
        if recipe == b"bad":
            raise RuntimeError("LLVM")
        yield recipe, "", True

    monkeypatch.setattr(full_code, "_compiled_apart", make)
    for k in range(200):
        job = full_code.FullCode(b"bad" if k % 3 == 0 else b"good", lambda code, text, is_full, k=k: made.append(k))
        job.ask()
        if k % 10 == 0:
            time.sleep(1e-4)
    assert wait_for(lambda: not full_code._threads)
    assert sorted(made) == [k for k in range(200) if k % 3]
    assert not full_code._waiting
