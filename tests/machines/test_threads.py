"""Many threads inside a call, many calls at once, and many calls one after the other."""

import gc
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock

import numpy as np
import pytest

from cardan.errors import InputError
from cardan.machines import host as machine
from cardan.machines.ufunc import kernel as kernel_module
from cardan.machines.ufunc.kernel import compile_program
from cardan.machines.ufunc.threads import get_threads, run_together, set_threads

from .conftest import make_kernel
from .test_arrays import rows


@pytest.mark.parametrize("batch", [(50_001,), (3, 40_000), (20_000, 5), (40_000, 1)])
def test_same_bits_for_any_number(arm_kernel, batch):
    """The split changes nothing, nor does it with an argument that is broadcast."""
    q, v, tau = rows(*batch)
    v = v[:1] if len(batch) == 1 else v[:, :1]
    alone = arm_kernel(q, v, tau, threads=1)
    for count in (2, 3, 7):
        np.testing.assert_array_equal(arm_kernel(q, v, tau, threads=count), alone)
        out = np.empty_like(alone)
        assert arm_kernel(q, v, tau, out=out, threads=count) is out
        np.testing.assert_array_equal(out, alone)


def test_overlap_is_not_split(arm_kernel):
    """Threads must not overwrite what another one has still to read."""
    q, v, tau = rows(60_001)
    expected = arm_kernel(q[:-1], v[1:], tau[1:], threads=1)
    np.testing.assert_array_equal(arm_kernel(q[:-1], v[1:], tau[1:], out=q[1:], threads=4), expected)


def test_errors_of_a_large_batch(arm_kernel):
    """A wrong out of a large batch is explained, not written to."""
    q, v, tau = rows(50_000)
    with pytest.raises(InputError, match="out for a has shape"):
        arm_kernel(q, v, tau, out=np.empty((50_001, 7)), threads=2)
    with pytest.raises(InputError, match="out for a has dtype int64"):
        arm_kernel(q, v, tau, out=np.empty((50_000, 7), np.int64), threads=2)


def test_called_from_many_threads(arm_kernel):
    """A kernel that nobody has called yet, called by eight threads at once."""
    kernel = compile_program(arm_kernel.program)
    args = rows(200)
    expected = arm_kernel(*args)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: kernel(*args), range(64)))
    for result in results:
        np.testing.assert_array_equal(result, expected)


def test_number_of_threads(monkeypatch):
    """Set, or from the environment, or all allowed cores."""
    try:
        set_threads(3)
        assert get_threads() == 3
        monkeypatch.setenv("CARDAN_NUM_THREADS", "5")
        set_threads(None)
        assert get_threads() == 5
        monkeypatch.setenv("CARDAN_NUM_THREADS", "many")
        set_threads(None)
        with pytest.raises(InputError, match="CARDAN_NUM_THREADS is 'many'"):
            get_threads()
        with pytest.raises(InputError, match="0 threads"):
            set_threads(0)
    finally:
        monkeypatch.delenv("CARDAN_NUM_THREADS", raising=False)
        set_threads(None)
    assert get_threads() >= 1


def test_no_memory_growth(arm_kernel):
    """Ten thousand calls leave nothing behind."""
    resource = pytest.importorskip("resource")
    args = rows(64)

    def work(times):
        for _ in range(times):
            arm_kernel(*args)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = work(500)
    assert work(10_000) - before < 2_000  # kilobytes; one leaked result a call would be 36,000


def test_compiled_once_whoever_calls_first(monkeypatch):
    """While one thread is making the ufunc, others wait for it."""
    real = kernel_module.make_gufunc

    def slowly(*args):
        time.sleep(0.05)
        return real(*args)

    monkeypatch.setattr(kernel_module, "make_gufunc", slowly)
    kernel = make_kernel("shared", {"x": ()}, {"y": ()}, lambda x: 2 * x)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda k: (time.sleep(k * 0.01), kernel(np.arange(50.0)))[1], range(16)))
    assert all(np.array_equal(result, 2 * np.arange(50.0)) for result in results)


def test_unloaded_with_the_last_ufunc():
    """A kernel's code stays as long as its kernel or its ufunc, and no longer; other code is left as it is."""

    class Code:
        """Stands for what keeps machine code in the process."""

    kernels = [make_kernel("short", {"x": ()}, {"y": ()}, lambda x: 2 * x) for _ in range(3)]
    ufuncs = [kernel.ufunc() for kernel in kernels]
    held = Code()
    gone = weakref.ref(held)
    kernels[0]._variants[np.dtype(float)].code.append(held)
    del held, kernels[0]
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(ufuncs[0](np.arange(9.0)), 2 * np.arange(9.0))
    del ufuncs[0]
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(ufuncs[0](np.arange(9.0)), 2 * np.arange(9.0))


def test_linkers_come_and_go():
    """Code stays whole when the linker that placed it is no longer in use."""
    kernel = make_kernel("stays", {"x": ()}, {"y": ()}, lambda x: 2 * x)
    kernel(np.arange(50.0))
    code = kernel._builder.code("double", 1)
    for _ in range(machine._PER_LINKER + 1):
        machine.load(code, "loop", "rows")
    gc.collect()
    np.testing.assert_array_equal(kernel(np.arange(50.0)), 2 * np.arange(50.0))


def test_errors_and_context_of_threads():
    """What a piece raises is raised once all have stopped; pieces see the caller's `errstate`."""
    seen, lock = [], Lock()

    def piece(k):
        with lock:
            seen.append((k, np.geterr()["divide"]))
        if k == 5:
            raise ZeroDivisionError

    with np.errstate(divide="call"), pytest.raises(ZeroDivisionError):
        run_together([partial(piece, k) for k in range(1000)], 3)
    assert {state for _, state in seen} == {"call"}
    assert len(seen) < 1000 and len({k for k, _ in seen}) == len(seen)


def test_large_batches_are_cut_small_enough_to_be_interrupted(arm_kernel, monkeypatch):
    """Any number of pieces gives the same bits, on one thread too."""
    q, v, tau = rows(9_001)
    expected = arm_kernel(q, v, tau, threads=1)
    monkeypatch.setattr(kernel_module, "_PIECE", 20_000)
    monkeypatch.setattr(kernel_module, "_WORTH_SPLITTING", 1_000)
    for count in (1, 3):
        np.testing.assert_array_equal(arm_kernel(q, v, tau, threads=count), expected)
