"""Kernels of a card in the cache: by architecture, driver and precision, sealed, and compiled anew if refused."""

import subprocess
import sys

import numpy as np
import pytest

from cardan.machines.cuda import driver, report
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import compile_program

from .conftest import make_program
from .stand_in_driver import StandInDriver, use
from .test_cache import cache, entries

__all__ = ["cache", "use"]

X = np.arange(40.0)


class Counted:
    """A program that counts how often it is recorded; each call compiles a kernel of it anew."""

    def __init__(self):
        self.count = 0

    def text(self, x):
        self.count += 1
        return 3 * x + 1

    def __call__(self, x=X):
        kernel = compile_program(make_program("counted", {"x": ()}, {"y": ()}, self.text, key="counted on a card"))
        return kernel(x, threads=Place(0))


def test_by_card_driver_and_precision(cache, use):
    """Each has an entry of its own, which is found again; code of the CPU and of the card do not mix."""
    program, seen = Counted(), set()
    for given in ({}, {"cards": (80,)}, {"version": 12090}, {}, {"version": 12090}, {"cards": (80,)}):
        new = str(given) not in seen
        seen.add(str(given))
        before = program.count
        library = use(StandInDriver(**given))
        assert program().shape == (40,)
        assert len(library.compiled) == new and program.count == before + new
        assert len(library.loaded) == 1 and len(library.launched) == 1
        assert len(entries(cache)) == len(seen)
    library = use(StandInDriver())
    assert program(X.astype(np.float32)).dtype == np.float32
    assert len(library.compiled) == 1 and b".target sm_90" in library.compiled[0]
    assert len(entries(cache)) == 4
    assert report.report() == (
        "gpu:0: Stand-in 0, sm_90 (code for sm_90), 1.0 GiB free; driver for CUDA 13.0; 2 kernels kept"
    )


def test_architectures(cache, use):
    """A card gets code of the newest architecture that is known and not newer than the card."""
    for capability, wanted in ((60, 60), (75, 75), (87, 86), (103, 100), (121, 120), (200, 120)):
        library = use(StandInDriver(cards=(capability,)))
        Counted()()
        assert f".target sm_{wanted}\n".encode() in library.compiled[0]


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:-9] + bytes([b[-9] ^ 4]) + b[-8:], lambda b: b""])
def test_damaged_entry_never_reaches_the_driver(cache, use, damage):
    program = Counted()
    use(StandInDriver())
    program()
    (entry,) = entries(cache)
    entry.write_bytes(damage(entry.read_bytes()))
    library = use(StandInDriver())
    program()
    assert len(library.compiled) == 1 and len(library.loaded) == 1 and program.count == 2
    library = use(StandInDriver())
    program()
    assert not library.compiled


@pytest.mark.parametrize("status", [200, 209, 300, 218, 222])
def test_code_that_the_driver_refuses_is_compiled_anew(cache, use, status):
    """Stored by another build of the driver, say: it is replaced. What is refused again is one sentence."""
    program = Counted()
    use(StandInDriver())
    program()
    library = use(StandInDriver())
    library.fails["cuModuleLoadData"] = lambda *_: 0 if library.compiled else status
    program()
    assert len(library.compiled) == 1 and program.count == 2 and len(entries(cache)) == 1
    library = use(StandInDriver())
    library.fails["cuModuleLoadData"] = status
    with pytest.raises(driver.DeviceError, match="gpu:0: the driver does not load its own machine code"):
        program()


def test_refused_ptx_is_not_stored(cache, use):
    """The next driver compiles it."""
    program = Counted()
    library = use(StandInDriver(12020, cards=(120,)))
    library.fails["cuLinkComplete"] = 222
    with pytest.raises(driver.DeviceError, match=r"counted: the driver, for CUDA 12\.2, is older than the code for"):
        program()
    assert not cache.exists() or not entries(cache)
    library.fails.clear()
    program()


def test_memory_that_others_take_meanwhile(cache, use):
    """Pieces are halved until they fit; where not even one row fits, the numbers are told."""
    program = Counted()
    library = use(StandInDriver(memory=1 << 20))
    library.fails["cuMemAlloc_v2"] = lambda pointer, size: 2 * (size.value > 100)
    assert program().shape == (40,)
    assert [blocks * block for blocks, _, _, block, *_ in library.launched] == [32] * 4  # 10 rows each
    library.fails["cuMemAlloc_v2"] = 2
    with pytest.raises(driver.DeviceMemoryError, match=r"gpu:0: 0\.0 MiB do not fit in its memory, 1\.0 MiB are free"):
        program()


def test_report_without_a_card(cache):
    """`python -m cardan.machines` tells of the cache and of the cards, one line each."""
    script = (
        "import runpy, ctypes\n"
        "from cardan.machines.cuda import driver\n"
        "driver._open = lambda: ctypes.CDLL('libnone.so.1')\n"
        "runpy.run_module('cardan.machines', run_name='__main__')"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[0].startswith(f"{cache}: 0 kernels") and said[1].startswith("gpu: none; no NVIDIA driver was found")
