"""Arrays of other libraries on a real card: read where they are, answered in the same library, card and stream.

Each library that is not installed, or cannot use the card, is skipped with the reason. The bits of the CPU are the
measure throughout. `test_arrays.py` runs the tests of each library in a process of its own.
"""

from __future__ import annotations

import gc
import time
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.machines.cuda import driver

pytestmark = [pytest.mark.usefixtures("card"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]
N = 1000


class Torch:
    def __init__(self) -> None:
        self.module = pytest.importorskip("torch", reason="torch is not installed")
        if not self.module.cuda.is_available():
            pytest.skip("torch is installed without CUDA")

    def put(self, x: np.ndarray) -> Any:
        return self.module.as_tensor(x, device="cuda:0")

    def get(self, x: Any) -> np.ndarray:
        assert isinstance(x, self.module.Tensor)
        assert x.device == self.module.device("cuda:0")
        return x.cpu().numpy()


class CuPy:
    def __init__(self) -> None:
        self.module = pytest.importorskip("cupy", reason="CuPy is not installed")

    def put(self, x: np.ndarray) -> Any:
        return self.module.asarray(x)

    def get(self, x: Any) -> np.ndarray:
        assert isinstance(x, self.module.ndarray)
        return self.module.asnumpy(x)


class JAX:
    def __init__(self) -> None:
        self.module = pytest.importorskip("jax", reason="JAX is not installed")
        self.module.config.update("jax_enable_x64", True)
        if self.module.default_backend() != "gpu":
            pytest.skip("JAX is installed without CUDA")

    def put(self, x: np.ndarray) -> Any:
        return self.module.device_put(x)

    def get(self, x: Any) -> np.ndarray:
        assert isinstance(x, self.module.Array)
        assert x.devices() == {self.module.devices()[0]}
        return np.asarray(x)


class Numba:
    def __init__(self) -> None:
        self.module = pytest.importorskip("numba.cuda", reason="Numba is not installed")
        if not self.module.is_available():
            pytest.skip("Numba cannot use the card")

    def put(self, x: np.ndarray) -> Any:
        return self.module.to_device(x)

    def get(self, x: Any) -> np.ndarray:
        assert self.module.is_cuda_array(x)
        assert type(x).__name__ == "DeviceNDArray"
        return x.copy_to_host()


class Warp:
    def __init__(self) -> None:
        self.module = pytest.importorskip("warp", reason="Warp is not installed")

    def put(self, x: np.ndarray) -> Any:
        return self.module.array(x, dtype=self.module.dtype_from_numpy(x.dtype), device="cuda:0")

    def get(self, x: Any) -> np.ndarray:
        assert isinstance(x, self.module.array)
        return x.numpy()


class Own:
    def put(self, x: np.ndarray) -> Any:
        return cd.to_device(x)

    def get(self, x: Any) -> np.ndarray:
        assert isinstance(x, cd.DeviceArray)
        return x.numpy()


LIBRARIES = {"torch": Torch, "cupy": CuPy, "jax": JAX, "numba": Numba, "warp": Warp, "DeviceArray": Own}


@pytest.fixture(scope="module")
def model() -> cd.Model:
    return mechanisms.four_bar().build()


def state(model: cd.Model, dtype: Any = float, n: int = N) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    q, _ = cd.assemble(model)
    q = np.tile(q, (n, 1))
    return [x.astype(dtype) for x in (q, rng.normal(size=(n, model.nv)), rng.normal(size=(n, model.nv)))]


@pytest.mark.parametrize("name", LIBRARIES)
def test_each_library_gets_its_own_arrays_with_the_bits_of_the_cpu(name: str, model: cd.Model) -> None:
    library = LIBRARIES[name]()
    q, v, tau = state(model)
    expected = cd.forward_dynamics(model, q, v, tau)
    Q, V, T = map(library.put, (q, v, tau))
    for _ in range(3):  # first call, remembered call
        np.testing.assert_array_equal(library.get(cd.forward_dynamics(model, Q, V, T)), expected)
    drive_free = cd.forward_dynamics(model, q, v)
    np.testing.assert_array_equal(library.get(cd.forward_dynamics(model, Q, V)), drive_free)
    poses = cd.body_poses(model, q)
    np.testing.assert_array_equal(library.get(cd.body_poses(model, Q)), poses)
    one = cd.forward_dynamics(model, *(library.put(x[0]) for x in (q, v, tau)))
    np.testing.assert_array_equal(library.get(one), expected[0])
    partial = cd.forward_dynamics(model, q, v, tau, by=("q", "tau"))
    for mine, theirs in zip(partial, cd.forward_dynamics(model, Q, V, T, by=("q", "tau")), strict=True):
        np.testing.assert_array_equal(library.get(theirs), mine)
    single = [library.put(x) for x in state(model, np.float32)]
    found = library.get(cd.forward_dynamics(model, *single))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, cd.forward_dynamics(model, *state(model, np.float32)))


@pytest.mark.parametrize("name", ["torch", "cupy", "DeviceArray"])
def test_any_strides_and_out(name: str, model: cd.Model) -> None:
    library = LIBRARIES[name]()
    q, v, tau = state(model)
    expected = cd.forward_dynamics(model, q, v, tau)
    wide = library.put(np.concatenate([q, v, tau], axis=1))
    n = model.nv
    parts = wide[:, :n], wide[:, n : 2 * n], wide[:, 2 * n :]
    np.testing.assert_array_equal(library.get(cd.forward_dynamics(model, *parts)), expected)
    columns = [library.put(x.T.copy()).T for x in (q, v, tau)]
    found = cd.forward_dynamics(model, *columns)
    np.testing.assert_array_equal(library.get(found), expected)
    Q, V, T = map(library.put, (q, v, tau))
    every_other = library.get(cd.forward_dynamics(model, Q[::2], V[::2], T[0]))
    np.testing.assert_array_equal(every_other, cd.forward_dynamics(model, q[::2], v[::2], tau[0]))
    grid = cd.forward_dynamics(model, Q[:5].reshape(5, 1, n), V[:7], T[0])
    np.testing.assert_array_equal(library.get(grid), cd.forward_dynamics(model, q[:5, None], v[:7], tau[0]))
    for target in (
        library.put(np.zeros((N, n))),
        library.put(np.zeros((n, N))).T,
        library.put(np.zeros((N, 2 * n)))[:, n:],
    ):
        assert cd.forward_dynamics(model, Q, V, T, out=target) is target
        np.testing.assert_array_equal(library.get(target), expected)
    with pytest.raises(cd.InputError, match="shares memory"):
        cd.forward_dynamics(model, Q, V, T, out=V)
    long = library.put(np.zeros((70_000, 1, n)))
    odd = cd.forward_dynamics(model, long, V[:40], T[:40])  # longer than an axis of a grid may be
    assert tuple(odd.shape) == (70_000, 40, n)
    np.testing.assert_array_equal(library.get(odd[-1]), cd.forward_dynamics(model, np.zeros(n), v[:40], tau[:40]))


def test_torch_streams(model: cd.Model) -> None:
    """Work that the current stream still has is waited for, and later work on it waits."""
    torch = Torch().module
    q, v, tau = (torch.as_tensor(x, device="cuda") for x in state(model, n=200_000))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        late = v * 1.0
        found = cd.forward_dynamics(model, q, late, tau) * 1.0
    side.synchronize()
    np.testing.assert_array_equal(found.cpu().numpy(), cd.forward_dynamics(model, *state(model, n=200_000)))


def test_torch_graphs(model: cd.Model) -> None:
    """Calls are recorded and replayed at other numbers, with constants of the host among the arguments."""
    torch = Torch().module
    static = [torch.as_tensor(x, device="cuda") for x in state(model)]
    cd.forward_dynamics(model, *static)
    cd.forward_dynamics(model, *static[:2])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loaded, free = cd.forward_dynamics(model, *static), cd.forward_dynamics(model, *static[:2])
    static[1].mul_(2.0)
    graph.replay()
    torch.cuda.synchronize()
    q, v, tau = state(model)
    np.testing.assert_array_equal(loaded.cpu().numpy(), cd.forward_dynamics(model, q, 2 * v, tau))
    np.testing.assert_array_equal(free.cpu().numpy(), cd.forward_dynamics(model, q, 2 * v))


def test_torch_gradients_are_not_lost_in_silence(model: cd.Model) -> None:
    torch = Torch().module
    q, v, tau = (torch.as_tensor(x, device="cuda") for x in state(model))
    with pytest.raises(cd.InputError, match="q requires a gradient"):
        cd.forward_dynamics(model, q.clone().requires_grad_(), v, tau)
    with torch.no_grad():
        cd.forward_dynamics(model, q.clone().requires_grad_(), v, tau)


def test_torch_bound_calls(model: cd.Model) -> None:
    torch = Torch().module
    q, v, tau = (torch.as_tensor(x, device="cuda") for x in state(model))
    expected = cd.forward_dynamics(model, *state(model))
    out = torch.empty_like(v)
    step = cd.compile(model, "forward_dynamics").bind(q, v, tau, out=out)
    gc.collect()
    for _ in range(3):
        out.zero_()
        assert step() is out
        np.testing.assert_array_equal(out.cpu().numpy(), expected)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    out.zero_()
    graph.replay()
    np.testing.assert_array_equal(out.cpu().numpy(), expected)


def test_memory_that_torch_takes_is_given_back_and_not_too_soon(model: cd.Model) -> None:
    """Results of Cardan's own that torch holds, inputs that are released while the kernel still waits to run."""
    torch = Torch().module
    q, v, tau = state(model)
    expected = cd.forward_dynamics(model, q, v, tau)
    free = driver.card(0).free_bytes()
    for _ in range(20):
        own = cd.forward_dynamics(model, *map(cd.to_device, (q, v, tau)))
        taken = torch.from_dlpack(own)
        assert taken.data_ptr() == own.pointer
        del own
        gc.collect()
        np.testing.assert_array_equal(taken.cpu().numpy(), expected)
        back = cd.forward_dynamics(model, *(torch.as_tensor(x, device="cuda") for x in (q, v, tau)))
        again = torch.as_tensor(cd.to_device(q), device="cuda")
        np.testing.assert_array_equal(again.cpu().numpy(), q)
        np.testing.assert_array_equal(back.cpu().numpy(), expected)
        del taken, back, again
    assert driver.card(0).free_bytes() > free - 2**26


def test_jax_results_are_ordered_with_its_own_work(model: cd.Model) -> None:
    """Arrays that JAX still computes are waited for, and JAX waits for results; inputs may be dropped at once."""
    jax = JAX().module
    q, v, tau = state(model, n=200_000)
    expected = 2 * cd.forward_dynamics(model, q, 2 * v, tau)

    @jax.jit
    def slow(x: Any) -> Any:
        y = jax.numpy.ones((2000, 2000))
        for _ in range(10):
            y = y @ y / 2000
        return x * 2 + 0 * y[0, 0]

    Q, V, T = map(jax.device_put, (q, v, tau))
    for _ in range(5):
        found = jax.jit(lambda a: a * 2)(cd.forward_dynamics(model, Q, slow(V), T))
        np.testing.assert_array_equal(np.asarray(found), expected)
    with pytest.raises(cd.InputError, match="cannot be written into"):
        cd.forward_dynamics(model, Q, V, T, out=V)


def test_mixtures_are_answered_by_the_first_or_refused(model: cd.Model) -> None:
    torch, cupy = Torch(), CuPy()
    q, v, tau = state(model)
    expected = cd.forward_dynamics(model, q, v, tau)
    np.testing.assert_array_equal(
        torch.get(cd.forward_dynamics(model, torch.put(q), cupy.put(v), cd.to_device(tau))), expected
    )
    np.testing.assert_array_equal(
        cupy.get(cd.forward_dynamics(model, cupy.put(q), torch.put(v), cd.to_device(tau))), expected
    )
    stream = cupy.module.cuda.Stream(non_blocking=True)
    with stream:
        found = cd.forward_dynamics(model, cupy.put(q), torch.put(v), tau[0])
    stream.synchronize()
    np.testing.assert_array_equal(cupy.get(found), cd.forward_dynamics(model, q, v, tau[0]))
    Q, V = torch.put(q), torch.put(v)
    for bad, text in (
        (torch.module.as_tensor(tau), "tau is a torch.Tensor in the host's memory and q is on gpu:0"),
        (tau, "tau is a NumPy array with batch axes"),
        (torch.put(tau.astype(np.float32)), "tau is float32 and q float64"),
        (torch.put(tau).half(), "tau has dtype float16"),
        (torch.put(tau).bfloat16(), "tau has dtype bfloat16"),
        (torch.put(tau).to_sparse(), "tau"),
        (cupy.put(tau.astype(np.int64)), "tau has dtype int64"),
        (torch.put(tau)[:, :1], "tau has 1 entries"),
    ):
        with pytest.raises(cd.InputError, match=text):
            cd.forward_dynamics(model, Q, V, bad)


def test_too_little_memory_of_torch_is_a_sentence_and_nothing_is_lost(model: cd.Model) -> None:
    torch = Torch().module
    q = torch.zeros(model.nq, device="cuda", dtype=torch.float64)
    rows = 2 * driver.card(0).free_bytes() // (8 * model.nv)
    with pytest.raises(cd.CardanError, match="too little free memory; take a smaller batch") as error:
        cd.forward_dynamics(model, q.expand(rows, model.nq), q, q)
    assert isinstance(error.value, MemoryError)
    assert cd.forward_dynamics(model, q, q, q).shape == (model.nv,)


def test_a_call_on_torch_costs_little(model: cd.Model, capsys: pytest.CaptureFixture[str]) -> None:
    """Time of a Python call on a small batch: by functions, with out, bound; the limits are generous."""
    torch = Torch().module
    q, v, tau = (torch.as_tensor(x, device="cuda") for x in state(model, n=128))
    out = torch.empty_like(v)
    bound = cd.compile(model, "forward_dynamics").bind(q, v, tau, out=out)
    calls = {
        "forward_dynamics(q, v, tau)": lambda: cd.forward_dynamics(model, q, v, tau),
        "forward_dynamics(q, v, tau, out=)": lambda: cd.forward_dynamics(model, q, v, tau, out=out),
        "forward_dynamics(q, v)": lambda: cd.forward_dynamics(model, q, v),
        "bound": bound,
    }
    costs = {}
    for name, call in calls.items():
        best = np.inf
        for _ in range(20):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(100):
                call()
            best = min(best, (time.perf_counter() - start) / 100)
        costs[name] = 1e6 * best
    with capsys.disabled():
        print("\n" + "\n".join(f"  {name}: {cost:.1f} us" for name, cost in costs.items()))
    assert costs["forward_dynamics(q, v, tau)"] < 40
    assert costs["bound"] < 15
