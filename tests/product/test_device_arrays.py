"""Arrays on a card, on a fake one: what is read and written where, in which order, and what is refused."""

from __future__ import annotations

import ctypes
import gc
import inspect
import math
from collections.abc import Iterator
from threading import Thread
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.machines.cuda import arrays, dlpack, geometry
from cardan.machines.cuda.arrays import DeviceArray, launch_geometry, to_device
from cardan.machines.cuda.constants import Constants
from cardan.machines.cuda.place import Place
from cardan.machines.cuda.view import View

from ..fake_card import FakeDriver, fake_cards
from ..machines.conftest import arm, make_kernel
from ..trees import tree_model

pytestmark = pytest.mark.usefixtures("quick_code")


@pytest.fixture(autouse=True)
def card() -> Iterator[FakeDriver]:
    with fake_cards(cards=2, memory=2**26) as fake:
        yield fake


class Foreign:
    """An array of another library, by `__cuda_array_interface__` alone."""

    def __init__(self, array: DeviceArray, **told: Any) -> None:
        self.array, self.told = array, told

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__ | {"stream": 5} | self.told


class ByDLPack:
    """An array of another library, by DLPack alone."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.array.__dlpack__(stream=stream)


class Converting(Foreign):
    """An array that NumPy takes to the host by itself, as arrays of JAX, Numba and Warp let it."""

    size = 7

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array.numpy()


@pytest.fixture(scope="module")
def chain() -> Any:
    """A kernel of three vectors."""
    return make_kernel("arm", {"q": (7,), "v": (7,), "tau": (7,)}, {"a": (7,)}, arm)


def rows(*batch: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    return tuple(np.random.default_rng(seed).normal(size=(3, *batch, 7)))


# Every function of a state.

ARGUMENTS = ("q", "v", "a", "tau", "frame")
NOT_ON_CARDS = {
    "undetermined_reactions": "it decides", "actuation": "it counts", "condition": "it judges",
    "assemble": "it searches",
}  # fmt: skip
OTHER_KERNEL = {"power", "subtree_momentum", "subtree_kinetic_energy", "jacobian", "frame_pose", "potential_energy"}


def functions_of_a_state() -> dict[str, Any]:
    """The public functions whose first arguments are a model and its configuration, without searches."""
    public = {name: getattr(cd, name) for name in cd.__all__ if inspect.isfunction(getattr(cd, name))}
    return {
        name: f
        for name, f in public.items()
        if [*inspect.signature(f).parameters][:2] == ["model", "q"]
        and not f.__module__.startswith(("cardan.analysis.", "cardan.results."))
    }


def state(model: cd.Model) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    q, v = model.random_state(rng)
    q, v = cd.assemble(model, q, v) if model.has_rows else (q, v)
    a, tau = rng.normal(size=(2, 3, 1, model.nv))
    return {"q": np.tile(q, (2, 1)), "v": v, "a": a, "tau": tau[0], "frame": model.body_names[-1]}


@pytest.mark.parametrize("name", functions_of_a_state())
def test_every_function_of_a_state_answers_on_the_card_or_refuses_in_a_sentence(name: str) -> None:
    function = getattr(cd, name)
    loop = name in ("multipliers", "constraint_residual", "constraint_jacobian", "reactions")
    model = mechanisms.four_bar().build() if loop else tree_model(1, 3)
    x = state(model)
    takes = inspect.signature(function).parameters
    here = {key: x[key] for key in ARGUMENTS if key in takes}
    there = {key: to_device(value) if isinstance(value, np.ndarray) else value for key, value in here.items()}
    if name in NOT_ON_CARDS:
        more = {"driven": [model.coordinate_names[0]]} if "driven" in takes else {}
        with pytest.raises(cd.InputError, match=rf"{name}: q is on a card, .* give q.numpy\(\)"):
            function(model, **there, **more)
        return
    expected = np.asarray(function(model, **here))
    found = function(model, **there)
    assert isinstance(found, DeviceArray), name
    assert found.shape == expected.shape
    close = {"rtol": 1e-12, "atol": 1e-13} if name in OTHER_KERNEL else {"rtol": 0, "atol": 0}
    np.testing.assert_allclose(found.numpy(), expected, **close)
    out = DeviceArray.empty(expected.shape[::-1], float).T  # in any strides
    assert function(model, **there, out=out) is out
    np.testing.assert_array_equal(out.numpy(), found.numpy())


def test_derivatives_products_and_compiled_functions_answer_on_the_card(card: FakeDriver) -> None:
    model = mechanisms.four_bar().build()
    x = {key: value for key, value in state(model).items() if key in ("q", "v", "tau")}
    y = {key: to_device(value) for key, value in x.items()}
    by = ("q", "wrenches")
    expected, found = cd.reactions(model, **x, by=by), cd.reactions(model, **y, by=by)
    out = tuple(DeviceArray.empty(part.shape, float) for part in expected)
    assert [*cd.reactions(model, **y, by=by, out=out)] == [*out]
    for a, b, c in zip(expected, found, out, strict=True):
        np.testing.assert_array_equal(b.numpy(), a)
        np.testing.assert_array_equal(c.numpy(), a)
    with pytest.raises(cd.InputError, match="chart='independent': q is on a card"):
        cd.forward_dynamics(model, **y, by="q", chart="independent")
    w = np.ones(model.nv)
    value, gradient = cd.vjp(model, "forward_dynamics", y, to_device(w), by=("q", "tau"))
    same_value, same = cd.vjp(model, "forward_dynamics", x, w, by=("q", "tau"))
    np.testing.assert_array_equal(value.numpy(), same_value)
    np.testing.assert_array_equal(gradient["tau"].numpy(), same["tau"])
    step = cd.compile(model, "forward_dynamics", by="q").bind(y["q"], y["v"], y["tau"])
    whole = cd.forward_dynamics(model, **x, by="q")
    before = len(card.launches)
    a, a_q = step()
    assert len(card.launches) == before + 1
    np.testing.assert_array_equal(a.numpy(), whole.value)
    np.testing.assert_array_equal(a_q.numpy(), whole["q"])


def test_free_parameters_come_along_once(card: FakeDriver) -> None:
    """Of a batch of systems as well, in the precision of the arrays."""
    model = mechanisms.double_pendulum().build()
    free = model.free("lower.mass")
    several = free.at({"lower.mass": np.linspace(1, 2, 4)})
    q = np.random.default_rng(0).normal(size=(4, model.nq))
    for one in (free, several):
        expected = cd.forward_dynamics(one, q, q)
        found = cd.forward_dynamics(one, to_device(q), to_device(q))
        np.testing.assert_array_equal(found.numpy(), expected)
        used = card.in_use()
        again = cd.forward_dynamics(one, to_device(q), to_device(q))
        assert card.in_use() == used + again.nbytes
        del again


# Any strides.


@pytest.mark.parametrize("longest", [3, 65_535])
def test_launches_visit_every_row_of_any_arrays_once(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of batches that broadcast, are transposed, sliced, turned round, and of up to six axes, longer than a grid's."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(geometry, "LONGEST", longest)
    geometry._geometry.cache_clear()
    for _ in range(60):
        batch = tuple(int(n) for n in rng.integers(1, 5, rng.integers(0, 7)))
        views, cores, wanted = [], [], []
        for _ in range(3):
            core = tuple(int(n) for n in rng.integers(1, 4, rng.integers(0, 3)))
            own = [1 if rng.random() < 0.2 else n for n in batch][rng.integers(0, len(batch) + 1) :]
            shape = (*own, *core)
            order = rng.permutation(len(shape))
            memory = np.empty([2 * shape[k] for k in order], np.float32)
            parts = tuple(slice(None, None, int(rng.choice((2, -2)))) for _ in shape)
            array = memory[parts].transpose(np.argsort(order))
            at = array.__array_interface__["data"][0]
            views.append(View(at, array.shape, array.strides, array.dtype, 0, array))
            cores.append(len(core))
            first = array[(..., *(0,) * len(core))]
            there = np.broadcast_to(_addresses(first), batch)
            wanted.append(there.ravel())
        made = launch_geometry([*zip(cores, views, strict=True)], batch)
        assert made.rows == math.prod(batch)
        assert len(made.sizes) <= 3
        visited: list[list[np.ndarray]] = [[], [], []]
        for offsets, sizes in made.launches:
            assert all(n <= longest for n in sizes[1:])
            grid = np.indices(sizes).reshape(len(sizes), -1)
            for j, (view, steps) in enumerate(zip(views, made.batch, strict=True)):
                visited[j].append(view.pointer + offsets[j] + np.array(steps) @ grid)
        found = np.stack([np.concatenate(x) for x in visited])
        expected = np.stack(wanted)
        np.testing.assert_array_equal(found[:, np.lexsort(found)], expected[:, np.lexsort(expected)])
        assert [*made.core] == [view.strides[view.ndim - n :] for n, view in zip(cores, views, strict=True)]


def test_rows_that_follow_one_another_are_one_axis() -> None:
    batch = (2, 3, 4, 5, 6)
    for order in "CF":
        x = np.empty((*batch, 7), order=order)
        view = View(64, x.shape, x.strides, x.dtype, 0, x)
        assert launch_geometry([(1, view), (1, view)], batch).sizes == (720,)


def _addresses(array: np.ndarray) -> np.ndarray:
    """The address of every entry."""
    steps = [np.arange(n) * step for n, step in zip(array.shape, array.strides, strict=True)]
    found = np.full(array.shape, array.__array_interface__["data"][0])
    for axis, along in enumerate(steps):
        found += along.reshape([-1 if k == axis else 1 for k in range(array.ndim)])
    return found


def test_arrays_of_any_strides_and_libraries_give_the_bits_of_the_host(chain: Any, card: FakeDriver) -> None:
    q, v, tau = rows(6, 5)
    for dtype in (np.float64, np.float32):
        Q, V, T = (x.astype(dtype) for x in (q, v, tau))
        expected = chain(Q[:, 1:4], V[::2, None, 2][:3].repeat(2, 0), T[0, 0])
        there = [to_device(x) for x in (Q, V, T)]
        a = there[0][:, 1:4]
        b = to_device(V[::2, None, 2][:3].repeat(2, 0).T.copy()).T
        for c in (there[2][0, 0], [*map(float, T[0, 0])], T[0, 0], Foreign(there[2][0, 0]), ByDLPack(there[2][0, 0])):
            found = chain(a, b, c)
            assert found.dtype == dtype
            np.testing.assert_array_equal(found.numpy(), expected)
        turned = DeviceArray.empty((7, 3, 6), dtype).T
        again = chain(a, b, there[2][0, 0], out=turned)
        assert again is turned
        np.testing.assert_array_equal(turned.numpy(), expected)
    columns = to_device(q.reshape(-1, 7).T.copy()).T
    assert chain(columns, columns, columns).strides == (8, 8 * 30), "results follow the order of the arguments"
    assert chain(to_device(q[:0]), to_device(v[0]), 0 * q[0, 0]).shape == (0, 5, 7)


def test_views_of_an_array_are_those_of_numpy() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5, 6)).astype(np.float32)
    d = to_device(x)
    pairs: list[tuple[DeviceArray, np.ndarray]] = [
        (d, x), (d.T, x.T), (d[1], x[1]), (d[-1, ..., 2], x[-1, ..., 2]), (d[::-1, 1:4:2], x[::-1, 1:4:2]),
        (d[3:1], x[3:1]), (d.reshape(20, 6), x.reshape(20, 6)), (d.reshape((2, 2, -1, 3)), x.reshape(2, 2, -1, 3)),
        (d[1:3].T.reshape(6, 5, 2, 1), x[1:3].T.reshape(6, 5, 2, 1)), (d[:, :0].reshape(0, 7), x[:, :0].reshape(0, 7)),
        (d[:, ::2].reshape(2, 2, 3, 6), x[:, ::2].reshape(2, 2, 3, 6)), (d[0, 0, 0], x[0, 0, 0]),
        (to_device(3), np.float64(3)), (to_device([1, 2]), np.array([1.0, 2.0])), (to_device(x.T), x.T),
        (to_device(x.astype(">f4")), x), (to_device(x, "gpu:0"), x),
    ]  # fmt: skip
    for found, expected in pairs:
        np.testing.assert_array_equal(found.numpy(), expected)
        assert (found.shape, found.ndim, found.size) == (expected.shape, expected.ndim, expected.size)
    assert repr(d) == "<DeviceArray (4, 5, 6) float32 on gpu:0>"
    assert len([row.shape for row in d]) == 4
    for bad, kind in (
        (lambda: d.T.reshape(20, 6), cd.InputError), (lambda: d.reshape(7, -1), cd.InputError),
        (lambda: d[4], IndexError), (lambda: d[0, 0, 0, 0], IndexError), (lambda: d[[0, 1]], cd.InputError),
        (lambda: np.asarray(d), cd.InputError), (lambda: np.sin(d), TypeError),
        (lambda: float(d[0, 0, 0]), cd.InputError),
        (lambda: to_device(["a"]), cd.InputError), (lambda: to_device(1j), cd.InputError),
        (lambda: to_device(x, 2), cd.InputError), (lambda: to_device(x, "cpu"), cd.InputError),
        (lambda: to_device(x, None), cd.InputError), (lambda: to_device(x, 0.5), cd.InputError),
        (lambda: to_device(np.ma.masked_less(x, 0.0)), cd.InputError),
        (lambda: bool(d), cd.InputError), (lambda: d == d, cd.InputError),
    ):  # fmt: skip
        with pytest.raises(kind):
            bad()


# Memory and order.


def test_memory_lives_as_long_as_somebody_holds_it(chain: Any, card: FakeDriver) -> None:
    x = [to_device(a) for a in rows(5)]
    chain(*x)
    for _ in range(3):
        chain(*x, out=chain(*x))
    capsules = [x[0].__dlpack__(stream=7), x[0].T.__dlpack__()]
    assert (7, 1) in card.waits, "the taker's stream waits"
    used = card.in_use()
    del x
    gc.collect()
    assert card.in_use() == used - 2 * 5 * 7 * 8, "of three arrays one is in capsules"
    taken, left = capsules
    del capsules
    managed = dlpack._Managed.from_address(dlpack._capsules()[1](taken, b"dltensor"))
    name = ctypes.create_string_buffer(b"used_dltensor")
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(taken), name)
    del taken
    gc.collect()
    assert card.in_use() == used - 2 * 5 * 7 * 8, "whoever took the capsule holds it"
    deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)
    other = Thread(target=deleter, args=(ctypes.addressof(managed),))
    other.start()
    other.join()
    del left
    gc.collect()
    assert card.in_use() == used - 3 * 5 * 7 * 8


def test_dlpack_is_understood_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy takes the capsule, since memory of the fake card is the host's; and JAX's is read."""
    x = np.random.default_rng(0).normal(size=(4, 3))
    d = to_device(x)
    monkeypatch.setattr(dlpack, "CUDA", 1)
    monkeypatch.setattr(DeviceArray, "__dlpack_device__", lambda self: (1, 0))
    monkeypatch.setattr("cardan.machines.cuda.device_array.CUDA", 1)
    taken = np.from_dlpack(d.T)
    np.testing.assert_array_equal(taken, x.T)
    assert taken.ctypes.data == d.pointer
    del d
    gc.collect()
    np.testing.assert_array_equal(taken, x.T)
    for kind in (np.float32, np.float64):
        view, name = dlpack.from_capsule(x.astype(kind).T[::2].__dlpack__(), None)
        assert view is not None
        assert (view.shape, view.strides, name) == (
            (2, 4),
            (2 * view.dtype.itemsize, 3 * view.dtype.itemsize),
            kind.__name__,
        )
    for kind in (np.float16, np.int64, np.complex64, np.bool_):
        assert dlpack.from_capsule(np.ones(3, kind).__dlpack__(), None) == (None, np.dtype(kind).name)


def test_streams_of_different_libraries_wait_for_one_another(chain: Any, card: FakeDriver) -> None:
    q, v, tau = map(to_device, rows(5))
    card.waits.clear()
    chain(q, v, tau)
    assert card.waits == []
    chain(q, Foreign(v), tau)
    assert card.waits == [(1, 5), (5, 1)], "before and after"
    chain(q, v, tau, out=Foreign(DeviceArray.empty((5, 7), float)))
    assert card.waits[2:] == [(1, 5), (5, 1)], "also for a result"
    del card.waits[2:]
    chain(Foreign(v, stream=None), q, tau)
    assert card.waits == [(1, 5), (5, 1)]


def test_numbers_are_uploaded_once_and_forgotten_in_time(chain: Any, card: FakeDriver) -> None:
    q, v, _ = map(to_device, rows(5))
    chain(q, v, [0.0] * 7)
    used = card.in_use()
    chain(q, v, [0.0] * 7)
    chain(q, v, np.zeros(7))
    assert card.in_use() == used
    few = Constants(most_bytes=100, most=3)
    made = [few.on_device("f", "x", np.array([float(k)]), 0, 1) for k in (1, 2, 1, 3, 4, 1, 5)]
    assert made[0] is made[2] is made[5]
    assert len(few) == 3
    few.on_device("f", "x", np.zeros(10), 0, 1)
    few.on_device("f", "x", np.zeros(11), 0, 1)
    assert len(few) == 1


def test_remembered_calls_tell_numbers_apart_to_the_sign_of_zero() -> None:
    kernel = make_kernel("inverse", {"x": (), "y": ()}, {"z": ()}, lambda x, y: y / x)
    y = to_device(np.ones(3))
    for x in (0.0, -0.0, 2.0, 0.0):
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(kernel(x, y).numpy(), np.ones(3) / x)


def test_a_call_in_a_cuda_graph_neither_waits_nor_allocates(chain: Any, card: FakeDriver) -> None:
    """The fake driver refuses both while it records; what the graph reads is not released."""
    arrays.CONSTANTS = Constants(most=1)
    q, v, tau = map(to_device, rows(5))
    out = DeviceArray.empty((5, 7), float)
    chain(q, v, np.ones(7), out=out)
    card.capturing.add(1)
    try:
        chain(q, v, tau, out=out)
        chain(q, v, np.ones(7), out=out)
        with pytest.raises(cd.InputError, match="tau is a number that is not on the card yet, and a CUDA graph"):
            chain(q, v, [2.0] * 7, out=out)
    finally:
        card.capturing.clear()
    used = card.in_use()
    chain(q, v, [3.0] * 7, out=out)
    chain.on_card._plans.clear()  # remembered calls hold their numbers, too, as long as there are few of them
    assert card.in_use() == used + 7 * 8


# What is refused.


def test_what_cannot_be_is_one_sentence(chain: Any) -> None:
    q, v, tau = map(to_device, rows(5))
    host = rows(5)[0]
    whole = to_device(np.zeros((5, 14)))
    single, other = to_device(host.astype(np.float32)), to_device(host, 1)

    cases: list[tuple[tuple[Any, ...], Any, str]] = [
        ((q, v, single), None, "tau is float32 and q float64; on a card all arrays have one dtype"),
        ((q, v, other), None, "tau is on gpu:1 and q on gpu:0; move all arrays to one card"),
        ((q, host, tau), None, r"v is a NumPy array with batch axes \(shape \(5, 7\)\) and q is on gpu:0"),
        ((q, Foreign(v, typestr="<f2"), tau), None, "v has dtype float16, kernels compute in float64 or float32; 3"),
        ((q, Foreign(v, typestr=">f8"), tau), None, "v has dtype float64 with swapped bytes"),
        ((q, Foreign(v, typestr="<i8"), tau), None, "v has dtype int64"),
        ((q, Foreign(v, mask=v), tau), None, "v has a mask"),
        ((q, Foreign(v[:, 1:], data=(v.pointer + 4, False)), tau), None, "v is not aligned to its 8 bytes in memory"),
        ((q, Foreign(v, shape=None), tau), None, "v, a tests.Foreign, has no readable __cuda_array_interface__"),
        ((q, v), None, r"takes 3 arrays \(q, v, tau\), got 2"),
        ((q, v, tau[:, :6]), None, "tau has 6 entries along its last axis, the model needs 7"),
        ((q, v[:4], tau), None, r"batch shapes \(5,\) of q and \(4,\) of v do not broadcast"),
        ((q, v, "zero"), None, "tau has dtype <U4, which cannot be cast"),
        ((q, v, 1j), None, "tau has dtype complex128"),
        ((q, v, [tau, tau]), None, "tau is not an array of numbers"),
        ((q, v, np.ma.masked_equal(host[0], host[0, 0])), None, "tau has masked entries"),
        ((q, v, tau), host, "out for a is a NumPy array in the host's memory"),
        ((q, v, tau), (q, v), "out has 2 arrays, the results are 1"),
        ((q, v, tau), whole, r"out for a has shape \(5, 14\), the result has \(5, 7\)"),
        ((q, v, tau), single, "out for a is float32, the result float64"),
        ((q, v, tau), other, "out for a is on gpu:1, the arguments are on gpu:0"),
        ((q, v, tau), q, "out for a shares memory with an argument"),
        ((whole[:, :7], v, tau), whole[:, 6:13], "out for a shares memory with an argument"),
        ((q, v, tau), Foreign(q, strides=(0, 8)), "out for a has one place for several results"),
        ((q, v, tau), Foreign(v, data=(v.pointer, True)), "out for a is a tests.Foreign that cannot be written into"),
    ]  # fmt: skip
    for args, out, text in cases:
        with pytest.raises(cd.InputError, match=f"^arm: {text}") as error:
            chain(*args, out=out)
        assert "\n" not in str(error.value)
    beside = chain(whole[:, :7], v, tau, out=whole[:, 7:])  # columns of one array do not overlap
    np.testing.assert_array_equal(beside.numpy(), chain(np.zeros((5, 7)), rows(5)[1], rows(5)[2]))
    with pytest.raises(cd.InputError, match="device='gpu:1', but the arrays are on gpu:0"):
        chain(q, v, tau, threads=Place(1))


def test_another_card_computes_its_arrays_and_a_full_one_says_so(chain: Any, card: FakeDriver) -> None:
    q, v, tau = (to_device(x, 1) for x in rows(5))
    found = chain(q, v, tau)
    assert found.device == 1
    np.testing.assert_array_equal(found.numpy(), chain(*rows(5)))
    big = Foreign(to_device(np.zeros(7)), shape=(2**21, 7), strides=(0, 8))
    with pytest.raises(
        cd.CardanError, match=r"arm: a of shape \(2097152, 7\) takes 112.0 MiB, for which gpu:0 has too"
    ) as error:
        chain(big, to_device(np.zeros(7)), 0 * tau.numpy()[0])
    assert isinstance(error.value, MemoryError)


def test_rows_that_are_chosen_at_each_state_are_chosen_on_the_host() -> None:
    model = mechanisms.bennett().build()
    q = to_device(cd.assemble(model)[0])
    with pytest.raises(cd.InputError, match="whose constraint rows are chosen at each state: q is on a card"):
        cd.forward_dynamics(model, q, to_device(np.zeros(model.nv)))


def test_a_first_call_looks_at_some_rows() -> None:
    """Open loops are told, as on the host: here the last configuration has one."""
    model = mechanisms.four_bar().build()
    q = np.tile(cd.assemble(model)[0], (2, 5, 1))
    q[1, 4, 0] += 1.0
    turned = to_device(q.T.copy()).T
    with pytest.warns(RuntimeWarning, match="loops or couplings are open by"):
        cd.forward_dynamics(model, turned, to_device(np.zeros(model.nv)))


def test_a_kernel_that_is_warm_on_the_host_leaves_arrays_of_a_card_there(chain: Any) -> None:
    """Whatever argument they are, and even if NumPy would convert them."""
    x = rows()
    expected = [chain(*x), chain(*x)][1]  # the second call is the quick one
    for k in (1, 2):
        found = chain(*x[:k], Converting(to_device(x[k])), *x[k + 1 :])
        assert isinstance(found, DeviceArray)
        np.testing.assert_array_equal(found.numpy(), expected)


def test_the_first_look_at_loops_has_the_numbers_of_every_system(recwarn: pytest.WarningsRecorder) -> None:
    """It takes all configurations where each system has parameters of its own."""
    model = mechanisms.four_bar().build().free("gravity")
    model = model.at({"gravity": np.outer(np.arange(5.0), (0, 0, -1))})
    q, v = cd.assemble(model, np.tile(model.start(), (5, 1)), np.ones(model.nv))
    found = cd.forward_dynamics(model, to_device(q), to_device(v))
    np.testing.assert_array_equal(found.numpy(), cd.forward_dynamics(model, q, v))
    assert not recwarn.list


def test_signs_of_zero_are_those_of_the_host() -> None:
    """The forces of a planar linkage out of its plane are 0.0 or -0.0, and the compilers may not choose."""
    model = mechanisms.four_bar().build()
    q, v = cd.assemble(model, model.start(), np.ones(model.nv))
    expected, found = (cd.reactions(model, np.tile(q, (3, 1)), v, device=device) for device in ("cpu", "gpu"))
    assert (expected == 0).any()
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
