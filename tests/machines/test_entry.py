"""The kernel around a body, on a fake card: ports that stay in memory are copied in a loop, along their strides."""

import numpy as np
import pytest
from tests.fake_card import fake_cards

import cardan as cd
from cardan import mechanisms
from cardan.machines.cuda import entry
from cardan.machines.cuda.arrays import to_device
from cardan.structure import kernels


@pytest.mark.usefixtures("quick_code")
@pytest.mark.parametrize("large", [0, 1000])
def test_a_looped_recursion_with_matrices(large, monkeypatch):
    """Vectors and matrices in and out, of NumPy and with strides of their own, in a loop or one by one."""
    monkeypatch.setattr(kernels, "LOOP_PAST", 2)
    monkeypatch.setattr(entry, "_LARGE", large)
    model = mechanisms.chain(3).build()
    q, v = np.random.default_rng(2).normal(size=(2, 5, 3))
    poses, M, a = cd.body_poses(model, q), cd.mass_matrix(model, q), cd.forward_dynamics(model, q, v)
    with fake_cards():
        np.testing.assert_array_equal(cd.body_poses(model, q, device="gpu"), poses)
        mine, swapped = to_device(np.ascontiguousarray(q.T)).T, to_device(np.zeros((3, 3, 5)))
        np.testing.assert_array_equal(cd.forward_dynamics(model, mine, to_device(v)).numpy(), a)
        cd.mass_matrix(model, mine, out=swapped.T)  # (5, 3, 3), the batch nearest in memory
        np.testing.assert_array_equal(swapped.numpy(), M.T)
