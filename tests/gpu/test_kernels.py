"""Kernels on a card against the CPU's: the same bits in float64, the stated tolerance in float32; and errors there."""

import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from tests.ptx import functions_of_a_state

import cardan as cd
from cardan import mechanisms
from cardan.machines.cuda import driver
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import Kernel

pytestmark = [pytest.mark.usefixtures("card"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

FLOAT32 = 2e-5  # of the largest entry of a result: what the order of operations may change where bits differ
BATCHES = [(0,), (1,), (31,), (33,), (4096,), (3, 1, 50), (2, 3, 2, 5), ()]


def arm() -> cd.Mechanism:
    """Seven hinges and two sliding fingers, as Panda has."""
    rng = np.random.default_rng(7)
    m = cd.Mechanism("arm", gravity=(0, 0, -9.81))
    before = m.ground
    for k in range(9):
        m.body(f"b{k}", mass=3.0 / (k + 1), com=rng.uniform(-0.1, 0.1, 3), inertia=mechanisms.random_inertia(rng))
        kind = cd.Revolute(axis=rng.standard_normal(3)) if k < 7 else cd.Prismatic(axis=(0, 1, 0))
        m.joint(f"j{k}", kind, before, f"b{k}", at=rng.uniform(-0.3, 0.3, 3))
        before = f"b{min(k, 6)}"
    return m


def walker() -> cd.Mechanism:
    """A free body with four legs of three hinges, as ANYmal has."""
    rng = np.random.default_rng(4)
    m = cd.Mechanism("walker", gravity=(0, 0, -9.81))
    m.body("trunk", mass=20.0, com=(0.01, 0, 0), inertia=mechanisms.random_inertia(rng))
    m.joint("root", cd.Free(), m.ground, "trunk")
    for leg in range(4):
        before = "trunk"
        for k in range(3):
            name = f"leg{leg}{k}"
            m.body(name, mass=2.0, com=rng.uniform(-0.1, 0.1, 3), inertia=mechanisms.random_inertia(rng))
            m.joint(f"h{leg}{k}", cd.Revolute(axis=rng.standard_normal(3)), before, name, at=rng.uniform(-0.3, 0.3, 3))
            before = name
    return m


def joints() -> cd.Mechanism:
    """A chain of the joints that the others lack, with springs, friction and a drive."""
    rng = np.random.default_rng(5)
    kinds = (cd.Spherical(), cd.Universal((1, 0, 0), (0, 1, 0)), cd.Screw((0, 0, 1), 0.1), cd.Cylindrical((0, 1, 0)))
    m = cd.Mechanism("joints", gravity=(1.0, -2.0, -9.0))
    before = m.ground
    for k, kind in enumerate(kinds):
        m.body(f"b{k}", mass=1.0, com=rng.uniform(-0.1, 0.1, 3), inertia=mechanisms.random_inertia(rng))
        m.joint(f"j{k}", kind, before, f"b{k}", at=rng.uniform(-0.3, 0.3, 3))
        before = f"b{k}"
    m.spring("spring", m.ground, "b2", stiffness=30.0, length=0.2, at2=(0.1, 0.1, 0))
    m.bushing("bushing", "b0", "b1", stiffness=3.0, damping=0.5)
    return m


MODELS = {
    "arm": arm,
    "walker": walker,
    "joints": joints,
    "four_bar": mechanisms.four_bar,
    "rscr": mechanisms.rscr,
    "chain of 70": lambda: mechanisms.chain(70),
}
TREES = ("arm", "walker", "joints")


@cache
def model_of(name: str) -> cd.Model:
    return MODELS[name]().build()


def states(model: cd.Model, batch: tuple[int, ...], dtype: type = np.float64) -> dict[str, np.ndarray]:
    """Random states, near the start of closed mechanisms: equal bits are asked for, not closed loops."""
    rng = np.random.default_rng(sum(batch) + model.nv)
    start = cd.assemble(model)[0] if model.has_rows else None
    v, a, tau = rng.normal(size=(3, *batch, model.nv))
    if start is None:
        q = cd.plus(model, np.broadcast_to(model.start(), (*batch, model.nq)), rng.normal(size=(*batch, model.nv)))
    else:
        q = start + 1e-3 * rng.normal(size=(*batch, model.nq))
    given = {"q": q, "v": v, "a": a, "tau": tau}
    return {key: np.ascontiguousarray(value, dtype) for key, value in given.items()}


def both(name: str, model: cd.Model, given: dict[str, np.ndarray], **more) -> tuple[list, list]:
    """Results of a function on the CPU and on the card."""
    function = getattr(cd, name)
    known = {key: value for key, value in given.items() if key in functions_of_a_state()[name].__annotations__}
    if "frame" in function.__annotations__:
        known["frame"] = model.body_names[-1]
    found = []
    for device in ("cpu", "gpu"):
        try:
            result = function(model, **known, **more, device=device)
        except cd.CardanError as error:
            result = str(error)
        found.append([*result] if isinstance(result, tuple | cd.Derivatives) else [result])
    return found[0], found[1]


def same(name: str, cpu: list, gpu: list) -> None:
    """The very bits, also of NaN and of signed zeros."""
    for x, y in zip(cpu, gpu, strict=True):
        if isinstance(x, str):
            assert x == y
            continue
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape and x.dtype == y.dtype, name
        apart = np.argwhere((x != y) & ~(np.isnan(x) & np.isnan(y)))
        assert not len(apart), f"{name}: {len(apart)} of {x.size} entries differ, by {np.nanmax(np.abs(x - y)):.1e}"


@pytest.mark.parametrize("name", ["joints", "four_bar"])
def test_every_function_of_a_state(name):
    """All of them, to the bit."""
    model = model_of(name)
    given = states(model, (65,))
    for function in functions_of_a_state():
        same(function, *both(function, model, given))


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("joints", "four_bar")])
def test_dynamics_of_every_kind_of_model(name):
    """Plain trees, a floating base, a spatial loop, a recursion in loops."""
    model = model_of(name)
    given = states(model, (300,))
    names = ["forward_dynamics", "kinetic_energy", "reactions" if model.has_rows else "inverse_dynamics"]
    names += ["body_poses"] if model.has_rows else ["body_poses", "mass_matrix"]
    for function in names:
        same(function, *both(function, model, given))


@pytest.mark.parametrize("batch", BATCHES, ids=str)
def test_batches(batch):
    """Of any number of rows and axes, also none."""
    for name in ("arm", "four_bar"):
        model = model_of(name)
        same(name, *both("forward_dynamics", model, states(model, batch)))


def test_broadcasting_and_strides():
    """Arguments with other axes, arrays backwards, transposed and with gaps, constants, `out=`."""
    model = model_of("arm")
    q, v, tau = (states(model, shape)[key] for shape, key in (((4, 1), "q"), ((5,), "v"), ((), "tau")))
    given = {"q": q, "v": v, "tau": tau}
    same("broadcast", *both("forward_dynamics", model, given))
    wide = states(model, (40,))
    given = {"q": wide["q"][::-2], "v": np.asfortranarray(wide["v"][::2]), "tau": wide["tau"].T.copy().T[1::2]}
    same("strides", *both("forward_dynamics", model, given))
    out = np.full((20, 18), np.nan)[:, ::2]
    result = cd.forward_dynamics(model, *given.values(), out=out, device="gpu")
    assert result is out
    same("out", [cd.forward_dynamics(model, *given.values())], [out])
    same("constant", [cd.forward_dynamics(model, wide["q"], wide["v"])],
         [cd.forward_dynamics(model, wide["q"], wide["v"], device="gpu")])  # fmt: skip


def test_not_finite_and_large_angles():
    """NaN and infinity where the CPU has them; angles that are reduced by many turns."""
    model = model_of("arm")
    given = states(model, (64,))
    given["q"][:6] *= np.array([1e3, 1e6, 1e9, 1e15, 1e100, 1e300])[:, None]
    given["q"][6], given["v"][7], given["tau"][8] = np.nan, np.inf, -np.inf
    same("arm", *both("forward_dynamics", model, given))


@pytest.mark.parametrize("name", MODELS)
def test_float32(name):
    """The CPU's float32 within the tolerance."""
    model = model_of(name)
    cpu, gpu = both("forward_dynamics", model, states(model, (257,), np.float32))
    assert cpu[0].dtype == gpu[0].dtype == np.float32
    bits = float((cpu[0] == gpu[0]).mean())
    assert np.abs(cpu[0] - gpu[0]).max() <= FLOAT32 * np.abs(cpu[0]).max(), f"{bits:.0%} of the bits are equal"


def test_derivatives():
    """Jacobians in one kernel, and products."""
    for name in ("arm", "four_bar"):
        model = model_of(name)
        given = states(model, (100,))
        same(name, *both("forward_dynamics", model, given, by=("q", "v", "tau")))
        at = {key: given[key] for key in ("q", "v", "tau")}
        for product in (
            lambda device: cd.vjp(model, "forward_dynamics", at, given["a"], device=device)[1]["q"],  # noqa: B023
            lambda device: cd.jvp(model, "forward_dynamics", at, {"q": given["a"]}, device=device)[1],  # noqa: B023
        ):
            same(name, [product("cpu")], [product("gpu")])


def test_free_parameters():
    """Of every system its own."""
    model = model_of("four_bar").free("coupler.mass", "B.at")
    values = {"coupler.mass": np.linspace(1, 5, 77), "B.at": np.array([1.0, 0, 0]) + 1e-4 * np.arange(77)[:, None]}
    given = states(model_of("four_bar"), (77,))
    same("free", *both("forward_dynamics", model.at(values), given))


def test_from_the_cache(card, monkeypatch):
    """A second kernel of the same program is loaded, not compiled."""
    model = model_of("arm")
    given = states(model, (3,))
    same("first", *both("gravity_force", model, given))
    monkeypatch.setattr(type(card), "compile", lambda *_: pytest.fail("compiled again"))
    same("second", *both("gravity_force", arm().build(), given))


def test_threads():
    """Eight at once, each with results of its own."""
    model = model_of("arm")
    given = [states(model, (50 + k,)) for k in range(8)]
    want = [cd.forward_dynamics(model, g["q"], g["v"], g["tau"]) for g in given]

    def work(k: int) -> bool:
        g = given[k]
        found = [cd.forward_dynamics(model, g["q"], g["v"], g["tau"], device="gpu") for _ in range(20)]
        return all(np.array_equal(x, want[k]) for x in found)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


def test_threads_with_tensors(torch):
    """Eight at once, on streams of their own, with shapes that they share: launches are put together only once."""
    model = model_of("arm")
    given = [states(model, (64, k + 1))["q"][:, k] for k in range(8)]
    v, want = np.ones(9), [cd.forward_dynamics(model, q, np.ones(9)) for q in given]

    def work(k: int) -> bool:
        with torch.cuda.stream(torch.cuda.Stream()):
            q = torch.as_tensor(given[k], device="cuda")
            found = [cd.forward_dynamics(model, q, v) for _ in range(100)]
            return all(np.array_equal(x.cpu().numpy(), want[k]) for x in found)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


# what goes wrong


def test_card_that_does_not_exist():
    with pytest.raises(cd.CardanError, match="device='gpu:77': this machine has"):
        cd.forward_dynamics(model_of("arm"), np.zeros(9), np.zeros(9), device="gpu:77")


def fill(card: driver.Card, left: int) -> list[driver.Memory]:
    """Memory of the card, all but about `left` bytes."""
    held, size = [], 1 << 40
    while size >= 512:
        try:
            if card.free_bytes() - size < left:
                raise driver.DeviceMemoryError
            held.append(card.allocate(size))
        except driver.DeviceMemoryError:
            size //= 2
    return held


def test_memory_that_is_full(card, monkeypatch):
    """Batches go in pieces through what is free; where nothing is, the numbers are told, and it works again after."""
    model = model_of("arm")
    given = states(model, (1_000_000,))  # 288 MB
    want = cd.forward_dynamics(model, given["q"], given["v"], given["tau"])
    launched, launch = [], driver.Function.launch
    monkeypatch.setattr(driver.Function, "launch", lambda *a, **k: (launched.append(a[1]), launch(*a, **k)))

    def on_card() -> np.ndarray:
        launched.clear()
        return cd.forward_dynamics(model, given["q"], given["v"], given["tau"], device="gpu")

    same("before", [want], [on_card()])
    assert len(launched) == 1
    with pytest.raises(driver.DeviceMemoryError, match=r"gpu:0: 1073741824\.0 MiB do not fit .* \d+\.\d MiB are free"):
        card.allocate(1 << 50)
    held = fill(card, 64 << 20)
    same("in pieces", [want], [on_card()])
    assert len(launched) > 4
    held += fill(card, 0)
    with pytest.raises(driver.DeviceMemoryError, match="do not fit in its memory"):
        on_card()
    del held
    same("after", [want], [on_card()])


def test_code_that_the_driver_refuses(card):
    """One sentence each."""
    head = ".version {}\n.target sm_75\n.address_size 64\n"
    with pytest.raises(driver.DeviceError, match=r"test: the driver, for CUDA .* is older than the code for"):
        card.compile(head.format("99.0") + ".visible .entry rows() { ret; }\n", "test")
    with pytest.raises(driver.DeviceError, match=r"test: the driver refused the code \(CUDA_ERROR_INVALID_PTX\)"):
        card.compile(head.format("6.3") + ".visible .entry rows() { nonsense; }\n", "test")
    with pytest.raises(driver.CodeRefusedError, match="does not load its own machine code"):
        card.load(b"no machine code of any card" * 10, "rows")
    good = card.compile(head.format("6.3") + ".visible .entry rows() { ret; }\n", "test")
    with pytest.raises(driver.CodeRefusedError):
        card.load(good, "another")
    assert card.load(good, "rows").registers > 0


BROKEN = """
import numpy as np
from cardan.machines.cuda import driver
card = driver.card(0)
text = (".version 6.3\\n.target sm_75\\n.address_size 64\\n.visible .entry rows(.param .u64 p) { .reg .u64 %a;\\n"
        "ld.param.u64 %a, [p]; st.global.u64 [%a], %a; ret; }\\n")
function = card.load(card.compile(text, "test"), "rows")
function.launch((1, 1, 1), 32, [64])
for k in range(2):
    try:
        card.synchronize()
        print("nothing was said")
    except driver.DeviceError as error:
        print(error)
"""


def test_a_kernel_that_fails():
    """An address that is none spoils the process, so it is one of its own: it says so at every call, and it ends."""
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True, timeout=120, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2 and all("a kernel failed on the GPU (CUDA_ERROR_ILLEGAL_ADDRESS" in line for line in lines)
    assert all("restart it" in line for line in lines) and "Traceback" not in done.stderr


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_child():
    """A sentence in the child; the parent goes on."""
    model, (q, v) = model_of("arm"), np.zeros((2, 9))
    want = cd.forward_dynamics(model, q, v, device="gpu")
    read, write = os.pipe()
    child = os.fork()
    if not child:
        said = "nothing was said"
        try:
            cd.forward_dynamics(model, q, v, device="gpu")
        except BaseException as error:
            said = str(error)
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        assert "forked from one that had already used the GPU" in answer.read()
    os.waitpid(child, 0)
    same("parent", [want], [cd.forward_dynamics(model, q, v, device="gpu")])


def test_every_program_of_a_mechanism(card):
    """What runs and analyses compile, loaded and started: the card takes all that the printer writes."""
    from tests.ptx import programs_of

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        programs = programs_of(mechanisms.slider_crank().build())
    assert {"march", "evaluate"} <= {program.name for program in programs}
    for program in programs:
        if program.without_empty_ports().outputs:
            kernel = Kernel(program)
            arrays = [np.ones((33, *port.shape)) for port in program.inputs]
            cpu, gpu = (kernel(*arrays, threads=threads) for threads in (1, Place(card.index)))
            same(program.name, *([*x] if isinstance(x, tuple) else [x] for x in (cpu, gpu)))
