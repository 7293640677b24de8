"""`cd.compile` and bound calls: the same numbers as the functions, on arrays fixed once, and safe."""

import gc
import warnings

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import chain, double_pendulum, four_bar


def closed() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    model = four_bar().build()
    q, v = cd.assemble(model, model.start(), np.ones(3))
    return model, q, v


def test_a_bound_call_follows_its_arrays() -> None:
    model, q, v = closed()
    tau, a = np.array([0.3, 0.0, -0.2]), np.empty(3)
    step = cd.compile(model, "forward_dynamics").bind(q, v, tau, out=a)
    for scale in (1.0, -0.5, 2.0):
        v *= scale
        tau += 0.1
        assert step() is a
        assert np.array_equal(a, cd.forward_dynamics(model, q, v, tau))


@pytest.mark.parametrize("formulation", ["spatial", "newton_euler", "absolute", "points"])
def test_with_derivatives_in_every_formulation(formulation: str) -> None:
    model, q, v = closed()
    by = ("q", "v", "tau")
    f = cd.compile(model, "forward_dynamics", by=by, formulation=formulation)
    want = cd.forward_dynamics(model, q, v, np.zeros(3), by=by, formulation=formulation)
    for found in (f(q, v, np.zeros(3)), f.bind(q, v, np.zeros(3))()):
        assert [x.shape for x in found] == [x.shape for x in want]
        for mine, theirs in zip(found, want, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)
    assert f.outputs == {"a": (3,), "a_q": (3, 3), "a_v": (3, 3), "a_tau": (3, 3)}


def test_batches_share_what_has_no_batch() -> None:
    model, q, v = closed()
    rates = np.linspace(0.5, 2.0, 11)[:, None] * v
    step = cd.compile(model, "forward_dynamics").bind(q, rates, np.zeros(3))
    rates *= 2
    np.testing.assert_array_equal(step(), cd.forward_dynamics(model, q, rates))
    single = cd.compile(model, "forward_dynamics").bind(*(x.astype(np.float32) for x in (q, v, np.zeros(3))))()
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, cd.forward_dynamics(model, q, v), rtol=1e-4)


@pytest.mark.filterwarnings("ignore:.*open by")
def test_free_parameters_keep_their_values() -> None:
    model, q, v = closed()
    free = model.free("B.at")
    batch = free.at({"B.at": np.array([[0.9, 0.0, 0.0], [1.1, 0.1, 0.0]])})
    for one in (free, free.at({"B.at": np.array([0.9, 0.0, 0.0])}), batch):
        found = cd.compile(one, "forward_dynamics", by="parameters").bind(q, v, np.zeros(3))()
        want = cd.forward_dynamics(one, q, v, by="parameters")
        np.testing.assert_array_equal(found.value, want.value)
        np.testing.assert_array_equal(found["parameters"], want["parameters"])


def test_wrenches_and_other_quantities() -> None:
    model = double_pendulum().build()
    q, v = model.random_state(np.random.default_rng(1))
    a, load = np.ones(2), np.ones((model.nb, 6))
    step = cd.compile(model, "inverse_dynamics_loaded").bind(q, v, a, load)
    np.testing.assert_array_equal(step(), cd.inverse_dynamics(model, q, v, a, wrenches=load))
    M = cd.compile(model, "mass_matrix", by="q").bind(q)()
    np.testing.assert_array_equal(M["q"], cd.mass_matrix(model, q, by="q")["q"])


def test_arrays_and_code_live_as_long_as_the_call() -> None:
    def make() -> tuple[object, np.ndarray]:
        model = double_pendulum().build()
        q, v = model.random_state(np.random.default_rng(2))
        return cd.compile(model, "forward_dynamics").bind(q, v, np.zeros(2)), cd.forward_dynamics(model, q, v)

    made = [make() for _ in range(5)]
    gc.collect()
    rubbish = [np.full(2, np.nan) for _ in range(1000)]
    for step, want in made:
        np.testing.assert_array_equal(step(), want)  # type: ignore[operator]
    assert len(rubbish) == 1000


def test_nothing_is_written_past_the_end() -> None:
    model, q, v = closed()
    room = np.full(9, 7.0)
    cd.compile(model, "forward_dynamics").bind(q, v, np.zeros(3), out=room[3:6])()
    assert (room[:3] == 7).all() and (room[6:] == 7).all() and not (room[3:6] == 7).any()


def test_a_result_that_is_not_finite_is_an_error() -> None:
    model, q, v = closed()
    step = cd.compile(model, "forward_dynamics").bind(q, v, np.zeros(3))
    step()
    for bad in (np.nan, np.inf):
        v[1] = bad
        with pytest.raises(cd.InputError, match="forward_dynamics: the result is not finite; look at q, v, tau"):
            step()
    v[1] = 1.0
    assert np.isfinite(step()).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": [0.0, 1.0, 2.0]}, "q is a list; only NumPy arrays"),
        ({"v": np.zeros(2)}, r"v has shape \(2,\), the model needs"),
        ({"tau": np.zeros(3, int)}, "tau has dtype int64; float64 or float32"),
        ({"tau": np.zeros(3, np.float32)}, "q is float64 and tau float32; bind arrays of one dtype"),
        ({"q": np.zeros((3, 2))[:, 0]}, "q is not contiguous in memory"),
        ({"q": np.zeros((2, 3)), "v": np.zeros((4, 3))}, r"v has batch axes \(4,\), an array before it has \(2,\)"),
        ({"q": np.zeros((0, 3))}, r"the batch \(0,\) is empty"),
        ({"out": np.zeros(4)}, r"out for a has shape \(4,\)"),
        ({"out": np.zeros(3, np.float32)}, "float32; bind arrays of one dtype"),
        ({"out": (np.zeros(3), np.zeros(3))}, r"out must be 1 arrays \(a\), got 2"),
        ({"out": np.broadcast_to(np.zeros(1), (3,))}, "not contiguous"),
    ],
)
def test_what_cannot_be_bound_is_told(change: dict[str, object], message: str) -> None:
    model, q, v = closed()
    given: dict[str, object] = {"q": q, "v": v, "tau": np.zeros(3), "out": None} | change
    with pytest.raises(cd.InputError, match=message):
        cd.compile(model, "forward_dynamics").bind(given["q"], given["v"], given["tau"], out=given["out"])  # type: ignore[arg-type]


def test_aliases_and_wrong_requests_are_told() -> None:
    model, q, v = closed()
    f = cd.compile(model, "forward_dynamics")
    with pytest.raises(cd.InputError, match="out for a shares memory with v; give it an array of its own"):
        f.bind(q, v, np.zeros(3), out=v)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(cd.InputError, match="out for a is read-only"):
        f.bind(q, v, np.zeros(3), out=frozen)
    with pytest.raises(cd.InputError, match=r"takes 3 arrays \(q, v, tau\), got 2"):
        f.bind(q, v)
    with pytest.raises(cd.UnknownNameError, match="forward_dynamics"):
        cd.compile(model, "forward_dynamic")
    by = cd.compile(model, "forward_dynamics", by="q")
    for out, message in [
        (5, "with by=, out must be 2 arrays, the value's first, got 5"),
        ((None, np.zeros((3, 3), int)), "forward_dynamics, a_q: out has dtype int64, which cannot hold float64"),
        ((frozen, None), r"forward_dynamics, a: out must be an array of shape \(3,\) that can be written to"),
    ]:
        with pytest.raises(cd.InputError, match=message):
            by(q, v, np.zeros(3), out=out)
    with pytest.raises(cd.InputError, match="chart='independent' is not one kernel"):
        cd.compile(model, "forward_dynamics", by="q", chart="independent")


def test_open_loops_are_warned_of_once() -> None:
    model, q, v = closed()
    q[0] += 0.5
    f = cd.compile(four_bar().build(), "forward_dynamics")
    with pytest.warns(RuntimeWarning, match="open by"):
        f(q, v, np.zeros(3))
    with pytest.warns(RuntimeWarning, match="open by"):
        step = cd.compile(model, "forward_dynamics").bind(q, v, np.zeros(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step()


def test_large_models_are_bound_where_they_are_one_kernel() -> None:
    model = chain(100).build()
    q, v = model.random_state(np.random.default_rng(4))
    step = cd.compile(model, "forward_dynamics").bind(q, v, np.zeros(100))
    np.testing.assert_array_equal(step(), cd.forward_dynamics(model, q, v))
    with pytest.raises(cd.InputError, match="has 100 links, and past 64 only quantities with a recursion are one"):
        cd.compile(model, "inverse_mass_matrix")
