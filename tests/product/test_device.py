"""`device="gpu"` on every function: it reaches the kernels, whatever lies between, and the answers stay the same.

No card is needed: a stand-in takes what a kernel hands to a card and computes it on the CPU.
"""

from __future__ import annotations

import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.fake_card import fake_cards

import cardan as cd
from cardan import mechanisms
from cardan.errors import InputError
from cardan.machines.cuda import driver, entry
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import Kernel
from cardan.results.motion_operation import motion_of
from cardan.structure.kernels import tree_kernel

STATE = {
    "tree": {
        "forward_dynamics": "q v tau", "inverse_dynamics": "q v a", "mass_matrix": "q", "inverse_mass_matrix": "q",
        "bias_force": "q v", "gravity_force": "q", "coriolis_matrix": "q v", "joint_wrenches": "q v a", "plus": "q v",
        "rates": "q v", "kinetic_energy": "q v", "potential_energy": "q", "momentum": "q v",
        "subtree_kinetic_energy": "q v", "subtree_momentum": "q v", "centroidal_momentum": "q v",
        "center_of_mass": "q", "body_poses": "q", "body_twists": "q v", "body_accelerations": "q v a",
        "frame_pose": "q", "jacobian": "q", "joint_axes": "q",
    },
    "loop": {
        "forward_dynamics": "q v tau", "reactions": "q v tau", "multipliers": "q v tau", "constraint_residual": "q",
        "constraint_jacobian": "q",
    },
}  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that were given to the card."""
    names: list[str] = []

    def at_place(kernel: Any, place: Any, arrays: Any, batch: Any, out: Any, dtype: Any) -> tuple[Any, ...]:
        names.append(kernel.program.name)
        result = kernel._evaluate(kernel._ensure(dtype, wide=False), arrays, batch, out, dtype, 1)
        return result if isinstance(result, tuple) else (result,)

    monkeypatch.setattr(driver, "card", lambda index=0: SimpleNamespace(index=index))
    monkeypatch.setattr(Kernel, "_at_place", at_place)
    return names


def test_every_function_that_has_threads_has_a_device() -> None:
    found = 0
    for name in cd.__all__:
        thing = getattr(cd, name)
        functions = vars(thing).values() if inspect.isclass(thing) else [thing]
        for function in filter(inspect.isfunction, functions):
            parameters = inspect.signature(function).parameters
            if "threads" in parameters or {"by", "chart", "out"} <= {*parameters} or name in ("jvp", "vjp"):
                found += 1
                assert "device" in parameters, f"{name}: {function.__name__} has no device="
                if {"by", "chart", "out"} <= {*parameters}:
                    assert 'device="gpu"` computes on the GPU' in (function.__doc__ or ""), name
    assert found >= 37


@pytest.mark.parametrize("kind", STATE)
def test_functions_of_a_state(kind: str, asked: list[str]) -> None:
    model = {"tree": mechanisms.double_pendulum, "loop": mechanisms.four_bar}[kind]().build()
    rng = np.random.default_rng(0)
    q, v = cd.assemble(model) if model.has_rows else (rng.normal(size=model.nq), rng.normal(size=model.nv))
    state = {"q": np.tile(q, (1, 1)), "v": np.tile(v, (1, 1))} | dict(
        zip(("a", "tau"), rng.normal(size=(2, 1, model.nv)), strict=True)
    )
    for name, arguments in STATE[kind].items():
        given = {key: state[key] for key in arguments.split()}
        if name in ("frame_pose", "jacobian"):
            given["frame"] = model.body_names[-1]
        function = getattr(cd, name)
        for by in [None] if name != "forward_dynamics" else [None, "q"]:
            del asked[:]
            mine, theirs = (function(model, **given, by=by, device=device) for device in (None, "gpu"))
            assert asked, name
            for x, y in zip(*((mine, theirs) if by else ([mine], [theirs])), strict=True):
                assert np.array_equal(x, y), name
    if kind == "loop":
        return
    at, w = {key: state[key] for key in ("q", "v", "tau")}, state["a"]
    for product in (
        lambda **more: cd.jvp(model, "forward_dynamics", at, {"q": w}, **more)[1],
        lambda **more: cd.vjp(model, "forward_dynamics", at, w, by=("q",), **more)[1]["q"],
        lambda **more: cd.weighted_hessian(model, "forward_dynamics", at, w, by=("v",), **more),
        lambda **more: cd.compile(model, "forward_dynamics")(*at.values(), **more),
    ):
        del asked[:]
        assert np.array_equal(product(), product(device="gpu"))
        assert asked


def test_a_large_tree_that_is_put_together(asked: list[str]) -> None:
    model = mechanisms.chain(65).build()
    q, v = np.random.default_rng(1).normal(size=(2, 1, model.nv))
    mine, theirs = (cd.body_twists(model, q, v, by=("q", "v"), device=device) for device in (None, "gpu"))
    assert {*asked} == {"changed_axes", "body_poses", "body_twists"}
    assert all(np.array_equal(x, y) for x, y in zip(mine, theirs, strict=True))


@pytest.mark.parametrize(("most", "long"), [(0, 0), (10_000, 10_000), (10_000, 0)])
def test_derivatives_in_stages_have_the_bits_of_the_cpu_in_any_strides(
    most: int, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "FLAT", most)  # in loops over columns, and written out
    monkeypatch.setattr(entry, "LONG", long)  # as one kernel, or two
    model = mechanisms.chain(3).build()
    given = [*np.random.default_rng(2).normal(size=(3, 5, model.nv))]
    cpu = cd.forward_dynamics(model, *given, by=("q", "v", "tau"))
    with fake_cards():
        there = [*map(cd.to_device, given)]
        rows = cd.forward_dynamics(model, *there, by=("q", "v", "tau"))
        assert all(np.array_equal(x, y.numpy()) for x, y in zip(given, there, strict=True))  # they are only read
        turned = [cd.to_device(np.ascontiguousarray(x.T)).T for x in given]
        out = tuple(cd.to_device(np.zeros(x.shape[::-1])).T for x in cpu)
        tree_kernel(model, "forward_dynamics_derivatives")(*turned, out=out)
        for x, y, z in zip(cpu, rows, out, strict=True):
            assert np.array_equal(x, y.numpy())
            assert np.array_equal(x, z.numpy())


def test_wide_results_have_neighbouring_rows_beside_each_other() -> None:
    model = mechanisms.chain(6).build()
    q = np.random.default_rng(6).normal(size=(2, 150, model.nv))
    with fake_cards():
        M = cd.mass_matrix(model, cd.to_device(q))
        assert M.shape == (2, 150, 6, 6)
        assert M.strides == (150 * 8, 8, 6 * 300 * 8, 300 * 8)
        assert np.array_equal(M.numpy(), cd.mass_matrix(model, q))
        poses = cd.body_poses(model, cd.to_device(q))
        assert poses.shape == (2, 150, 6, 4, 4)
        assert np.array_equal(poses.numpy(), cd.body_poses(model, q))
        assert cd.mass_matrix(model, cd.to_device(q[0, :3])).strides == (36 * 8, 6 * 8, 8)
        assert cd.bias_force(model, *[cd.to_device(q)] * 2).strides == (150 * 48, 48, 8)


def test_a_run_is_followed_back_on_the_card() -> None:
    model = mechanisms.double_pendulum().build()
    q, v = np.random.default_rng(4).normal(size=(2, 3, model.nv))
    w = np.random.default_rng(3).normal(size=(3, 3, model.nv))

    def gradients(**more: Any) -> Any:
        return cd.simulate(model, 0.25, q, v, method="rk4", step=0.01, samples=3, **more).vjp(w, w)

    cpu = gradients()
    with fake_cards() as cards:
        motion = motion_of("run", model, 0.25, {"method": "rk4", "step": 0.01, "samples": 3}).on(Place(1))
        samples = motion(q, v, np.zeros_like(v))
        found = gradients(device="gpu:1")
        assert cards.launches
    assert np.array_equal(samples[0], cd.simulate(model, 0.25, q, v, method="rk4", step=0.01, samples=3).q)
    for name, x in cpu.items():
        assert np.array_equal(x, found[name]), name


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"device": "tpu"}, r"rates: device must be 'cpu', 'gpu' or 'gpu:1' for the second card, got 'tpu'"),
        ({"device": 3}, "device must be"),
        ({"device": "gpu:x"}, "device must be"),
    ],
)
def test_a_device_that_does_not_exist(given: dict[str, Any], said: str) -> None:
    model = mechanisms.double_pendulum().build()
    with pytest.raises(InputError, match=said):
        cd.rates(model, np.zeros(2), np.zeros(2), **given)
    with pytest.raises(InputError, match="threads=2 is for the CPU"):
        cd.mass_matrix(model, np.zeros(2), threads=2, device="gpu")


def test_matrices_of_a_large_tree_are_written_where_they_are() -> None:
    model = mechanisms.chain(65).build()
    q = np.random.default_rng(5).normal(size=(2, model.nv))
    kernel = tree_kernel(model, "mass_matrix")
    with fake_cards():
        out = cd.to_device(np.ones((model.nv, model.nv, 2))).T
        kernel(cd.to_device(q), out=out)
        assert np.array_equal(out.numpy(), kernel(q))


def test_the_cpu_does_not_take_arrays_of_a_card() -> None:
    """`device="cpu"` is obeyed: arrays that are elsewhere are refused, not computed elsewhere."""
    model = mechanisms.double_pendulum().build()
    with fake_cards():
        q = cd.to_device(np.zeros((3, 2)))
        with pytest.raises(cd.InputError, match="device='cpu', but arrays are on a GPU"):
            cd.forward_dynamics(model, q, q, device="cpu")
    np.testing.assert_array_equal(
        cd.forward_dynamics(model, np.zeros((3, 2)), np.zeros(2), device="cpu"), np.zeros((3, 2))
    )
