"""Many threads inside a call, many calls at once, and many calls one after the other."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cardan.errors import InputError
from cardan.kernels import compile_program, get_threads, set_threads

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
