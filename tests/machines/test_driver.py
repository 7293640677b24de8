"""The CUDA driver's errors as sentences, without a card: `stand_in_driver` takes the place of its library."""

import _thread
import ctypes
import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event, current_thread, main_thread

import numpy as np
import pytest

from cardan.errors import CardanError, InputError
from cardan.machines.cuda import driver, report
from cardan.machines.cuda.place import place_of

from .stand_in_driver import StandInDriver, use

__all__ = ["use"]


def sentence(error: pytest.ExceptionInfo[BaseException]) -> str:
    """The message, which is one line of one sentence."""
    text = str(error.value)
    assert isinstance(error.value, CardanError) and "\n" not in text and not text.endswith("."), text
    return text


START = {
    "no driver": (None, "no NVIDIA driver was found on this machine; install one, or compute on the CPU"),
    "old driver": ({"version": 11080}, r"the NVIDIA driver is for CUDA 11\.8; 12\.0 or newer is needed: update"),
    "no card": ({"cuInit": 100}, r"finds no GPU \(CUDA_ERROR_NO_DEVICE\); does CUDA_VISIBLE_DEVICES hide it\?"),
    "broken": ({"cuInit": 999}, r"does not start \(CUDA_ERROR_UNKNOWN\); `nvidia-smi` tells"),
    "toolkit's stub": ({"cuDriverGetVersion": 34}, r"does not start \(CUDA_ERROR_STUB_LIBRARY\)"),
    "half updated": ({"cuInit": 803}, r"have different versions \(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH\); restart the"),
    "forked": ({"cuInit": 3}, "forked from one that had already used the GPU.*'spawn'"),
    "busy": ({"cuDevicePrimaryCtxRetain": 46}, "is not available .*another process may hold it alone"),
    "full": ({"cuDevicePrimaryCtxRetain": 2}, "the memory of the GPU is full"),
    "old card": ({"cards": (52,)}, r"gpu:0: Stand-in 0 has compute capability 5\.2; Cardan needs 6\.0 or newer"),
    "none": ({"cards": ()}, "device='gpu:0': this machine has no GPU"),
}


@pytest.mark.parametrize("case", START)
def test_what_is_missing(case, use, monkeypatch):
    """`device="gpu"` says it before anything is computed, and `python -m cardan.machines` says it too."""
    given, words = START[case]
    if given is None:
        use(StandInDriver())
        monkeypatch.setattr(driver, "_open", lambda: ctypes.CDLL("libnone.so.1"))
    else:
        library = use(StandInDriver(**{k: v for k, v in given.items() if not k.startswith("cu")}))
        library.fails = {k: v for k, v in given.items() if k.startswith("cu")}
    with pytest.raises((driver.DeviceError, InputError), match=words) as error:
        place_of("forward_dynamics", "gpu")
    sentence(error)
    told = report.report()
    assert told.startswith("gpu") and (case == "none" or str(error.value).removeprefix("device='gpu': ") in told)


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("gpu:2", r"device='gpu:2': this machine has 2 GPUs, numbered from 0"),
        ("tpu", r"f: device must be 'cpu', 'gpu' or 'gpu:1' for the second card, got 'tpu'"),
        ("gpu:-1", r"f: device must be .* got 'gpu:-1'"),
        (1, r"f: device must be .* got 1"),
        (b"gpu", r"f: device must be"),
        (np.array(["gpu", "cpu"]), r"f: device must be"),
    ],
)
def test_which_card(use, device, words):
    use(StandInDriver(cards=(90, 89)))
    with pytest.raises(InputError, match=words) as error:
        place_of("f", device)
    sentence(error)
    assert [place_of("f", name).card for name in ("gpu", "cuda", "gpu:1", "cuda:0")] == [0, 0, 1, 0]
    with pytest.raises(InputError, match="f: threads=2 is for the CPU; leave it out with device='gpu'"):
        place_of("f", "gpu", 2)
    assert place_of("f", "cpu", 3) == 3 and place_of("f", None) is None


REFUSED = {
    222: r"panda: the driver, for CUDA 12\.2, is older than the code for Stand-in 0 \(sm_120\); update",
    209: r"panda: the driver has no compiler for Stand-in 0 \(sm_120\); update the NVIDIA driver",
    218: r"panda: the driver refused the code \(CUDA_ERROR_INVALID_PTX\): ptxas application ptx input, line 9; fatal",
    221: r"panda: the driver's compiler, libnvidia-ptxjitcompiler, is missing; install the whole driver",
    223: r"panda: the driver's compiler is switched off; unset CUDA_DISABLE_PTX_JIT",
    700: r"a kernel failed on the GPU \(CUDA_ERROR_ILLEGAL_ADDRESS, seen by compiling panda\)",
}


@pytest.mark.parametrize("function", ["cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete"])
@pytest.mark.parametrize("status", [*REFUSED, 2])
def test_code_that_the_driver_does_not_compile(use, status, function):
    """One sentence, whichever of the driver's functions finds out; the context is given back."""
    library = use(StandInDriver(12020, cards=(120,)))
    library.fails[function] = status
    library.log = b"ptxas application ptx input, line 9;\n fatal"
    words = REFUSED.get(status, "panda: the compiler's data do not fit in its memory, 1024.0 MiB are free")
    if function == "cuLinkCreate_v2":
        words = words.replace("ptxas application ptx input, line 9; fatal", "without a message")
    with pytest.raises(driver.DeviceError, match=words) as error:
        driver.card(0).compile("text", "panda")
    sentence(error)
    assert isinstance(error.value, MemoryError) == (status == 2)
    assert library.depth == 0


def test_a_compiler_that_tells_the_version_in_its_message_only(use):
    library = use(StandInDriver(12020))
    library.fails["cuLinkComplete"] = 218
    library.log = b"ptxas application ptx input, line 1; fatal : Unsupported .version 9.9; current version is '8.2'"
    with pytest.raises(driver.DeviceError, match=r"panda: the driver, for CUDA 12\.2, is older than the code for"):
        driver.card(0).compile("text", "panda")


@pytest.mark.parametrize(
    ("function", "status", "kind", "words"),
    [
        ("cuModuleLoadData", 200, driver.CodeRefusedError, r"does not load its own machine code \(CUDA_ERROR_INVALID"),
        (
            "cuModuleLoadData",
            209,
            driver.CodeRefusedError,
            r"does not load its own machine code \(CUDA_ERROR_NO_BIN",
        ),
        (
            "cuModuleLoadData",
            2,
            driver.DeviceMemoryError,
            r"gpu:0: 0\.0 MiB of code do not fit .* 1024\.0 MiB are",
        ),
        ("cuLaunchKernel", 2, driver.DeviceMemoryError, "gpu:0: 16 bytes for each thread that runs at once do not fit"),
        (
            "cuLaunchKernel",
            701,
            driver.DeviceError,
            "the GPU driver failed: starting a kernel: CUDA_ERROR_LAUNCH_OUT",
        ),
        (
            "cuLaunchKernel",
            700,
            driver.DeviceError,
            r"a kernel failed on the GPU \(CUDA_ERROR_ILLEGAL_ADDRESS, seen",
        ),
    ],
)
def test_code_that_does_not_load_or_start(use, function, status, kind, words):
    library = use(StandInDriver())
    library.fails[function] = status
    card = driver.card(0)
    with pytest.raises(kind, match=words) as error:
        card.load(card.compile("text", "panda"), "rows").launch((1, 1, 1), 32, [0])
    sentence(error)
    assert library.depth == 0


def test_too_little_memory(use):
    """The numbers are told; what was taken is given back with its object."""
    library = use(StandInDriver(memory=3 << 20))
    card = driver.card(0)
    held = card.allocate(2 << 20)
    with pytest.raises(driver.DeviceMemoryError, match=r"gpu:0: 2\.5 MiB do not fit in its memory, 1\.0 MiB are free"):
        card.allocate(5 << 19)
    del held
    assert card.free_bytes() == 3 << 20 and card.allocate(0).pointer == 0
    library.fails["cuMemGetInfo_v2"] = 999
    with pytest.raises(driver.DeviceMemoryError, match="how much is free is unknown"):
        card.allocate(1 << 30)


def test_a_kernel_that_failed_spoils_the_process(use):
    """Each later call says so; giving memory back is silent, and the first error is the one that is told."""
    library = use(StandInDriver())
    card = driver.card(0)
    memory, data = card.allocate(8), np.zeros(1)
    library.fails |= dict.fromkeys(("cuStreamSynchronize", "cuCtxPopCurrent_v2", "cuMemFree_v2"), 719)
    upload = partial(card.upload, memory.pointer, data.ctypes.data, 8)
    for use_it in (upload, card.synchronize, card.free_bytes):
        with pytest.raises(driver.DeviceError, match=r"CUDA_ERROR_LAUNCH_FAILED, .*: restart it, and report") as error:
            use_it()
        assert "CtxPop" not in sentence(error) or use_it == card.free_bytes
    del memory


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_child(use):
    """The driver does not survive a fork: the child says so and does not touch it, nor when it frees the memory."""
    library = use(StandInDriver())
    card = driver.card(0)
    memory = card.allocate(8)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        library.called.clear()
        said = []
        for action in (card.free_bytes, lambda: card.allocate(8), lambda: driver.card(1)):
            try:
                action()
            except driver.DeviceError as error:
                said.append(str(error))
        del memory
        os.write(write, repr((said, library.called)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        said, called = eval(answer.read())
    os.waitpid(child, 0)
    assert len(said) == 3 and all("forked from one that had already used the GPU" in text for text in said)
    assert called == []
    assert card.free_bytes() == (1 << 30) - 8  # the parent goes on


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_before_the_first_use(use):
    """Then the child may use it."""
    use(StandInDriver())
    child = os.fork()
    if not child:
        os._exit(driver.card(0).free_bytes() != 1 << 30)
    assert os.waitpid(child, 0)[1] == 0


def test_threads(use):
    """Many at once: each thread has the card's context while it needs it, and no other."""
    library = use(StandInDriver())

    def work(k: int) -> bool:
        card = driver.card(0)
        function = card.load(card.compile(f"text {k}", "panda"), "rows")
        data, back = np.full(16, float(k)), np.zeros(16)
        memory = card.allocate(data.nbytes)
        for _ in range(20):
            card.upload(memory.pointer, data.ctypes.data, data.nbytes)
            function.launch((1, 1, 1), 32, [16, memory.pointer])
            card.download(back.ctypes.data, memory.pointer, back.nbytes)
        return bool((back == k).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
    assert len(library.launched) == 160 and library.depth == 0 and library.free == 1 << 30


def test_ctrl_c_while_the_driver_compiles(use):
    """The wait ends at once; the compiler ends by itself."""
    if current_thread() is not main_thread():
        pytest.skip("Python hears Ctrl-C in the main thread only")
    library, release, ended = use(StandInDriver()), Event(), Event()

    def slow(*_: object) -> int:
        _thread.interrupt_main()
        release.wait(60)
        ended.set()
        return 0

    library.fails["cuLinkComplete"] = slow
    card = driver.card(0)
    with pytest.raises(KeyboardInterrupt):
        card.compile("text", "panda")
    assert not ended.is_set()
    release.set()
    assert ended.wait(60)
    while library.depth:  # the stand-in must outlive the compiler
        time.sleep(0.01)
    library.fails.clear()
    assert card.compile("text", "panda").startswith(b"machine code of")
