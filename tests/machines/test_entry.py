"""The kernel around a body, on a fake card: ports that are copied in a loop, quick lines and careful ones."""

import numpy as np
import pytest
from tests.elementary import divisors, reciprocal_program
from tests.fake_card import fake_cards

import cardan as cd
from cardan import mechanisms
from cardan.machines.build import Builder
from cardan.machines.cuda import entry
from cardan.machines.cuda.arrays import to_device
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import Kernel
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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_quick_line_has_the_bits_of_divisions(dtype):
    """In float reciprocals of ordinary numbers without a branch; all others, and large angles, by the careful line."""
    kernel, x = Kernel(reciprocal_program()), divisors(dtype, 20_000)
    with fake_cards(), np.errstate(all="ignore"):
        cpu, card = (kernel(x, threads=threads) for threads in (None, Place(0)))
        np.testing.assert_array_equal(cpu[:, 0], 1 / x)
        np.testing.assert_array_equal(card, cpu)
        numbers = ~np.isnan(x)
        np.testing.assert_array_equal(np.signbit(card[numbers, 0]), np.signbit(1 / x[numbers]))


def test_a_long_line_is_not_printed_twice(monkeypatch):
    """The careful line stands beside the quick one where that is short."""
    builder = Builder(reciprocal_program())
    text = entry.print_entry(builder.recorded(), builder.compiled, "float")
    monkeypatch.setattr(entry, "QUICK", 1)
    assert "@rows.careful(" in text
    assert "@rows.careful(" not in entry.print_entry(builder.recorded(), builder.compiled, "float")
