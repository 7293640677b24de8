"""Steps of large trees, which loop over links and coordinates, agree with steps unrolled over all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import cardan as cd
from cardan.structure import kernels as evaluate

from ..trees import TREES, state, tree_mechanism

pytestmark = pytest.mark.usefixtures("quick_code")

METHODS = {"rk4": {"step": 1e-3}, "euler": {"step": 1e-3}, "dormand_prince": {}}


def both(monkeypatch: pytest.MonkeyPatch, seed: int, **options: object) -> list[cd.Trajectory]:
    runs = []
    for limit in (evaluate.LOOP_PAST, 0):
        monkeypatch.setattr(evaluate, "LOOP_PAST", limit)
        model = tree_mechanism(seed, 7).build()
        assert evaluate.is_large(model) == (limit == 0)
        q, v, tau, _ = state(model, seed, 5)
        runs.append(cd.simulate(model, 0.05, q, 0.3 * v, tau=tau, samples=11, **options))
    return runs


@pytest.mark.parametrize(
    ("method", "seed"), [("rk4", 0), ("euler", 1), *product(["dormand_prince"], range(0, TREES, 4))]
)
def test_steps(method: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All joint kinds, systems of a batch at different steps."""
    unrolled, looped = both(monkeypatch, seed, method=method, **METHODS[method])
    for name in ("q", "v", "a"):
        one, other = getattr(unrolled, name), getattr(looped, name)
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-9 * np.abs(one).max(), err_msg=name)


@pytest.mark.parametrize("method", METHODS)
def test_events(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event on the way is met at the same time."""
    turn = cd.Event("turn", lambda s: s.t - 0.0123 + 1e-3 * s.v[0], action="stop")
    unrolled, looped = both(monkeypatch, 1, method=method, events=[turn], **METHODS[method])
    assert (np.nanmax(looped.time, axis=-1) < 0.05).all()
    np.testing.assert_allclose(looped.time, unrolled.time, rtol=1e-9)
    np.testing.assert_allclose(looped.q, unrolled.q, rtol=1e-8, atol=1e-8)


def test_a_frame_of_rigid_joints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing moves; each joint carries the weight of all beyond it."""
    monkeypatch.setattr(evaluate, "LOOP_PAST", 3)
    m = cd.Mechanism("frame", gravity=(0, 0, -10.0))
    for k in range(5):
        m.body(f"b{k}", mass=1.0 + k, inertia=(0.1, 0.1, 0.1))
        m.joint(f"j{k}", cd.Rigid(), f"b{k - 1}" if k else m.ground, f"b{k}", at=(0, 0, 1.0))
    model = m.build()
    assert model.nv == 0
    carried = np.cumsum([5.0, 4.0, 3.0, 2.0, 1.0])[::-1] * 10.0
    assert np.allclose(cd.joint_wrenches(model, [], [], [])[:, 5], carried)
