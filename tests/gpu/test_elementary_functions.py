"""The elementary functions on a card: the very bits of the CPU, for numbers of any bits."""

import itertools

import numpy as np
import pytest
from tests.elementary import NAMES, SPECIAL, divisors, program_of, reciprocal_program

from cardan.machines.cuda import driver
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import Kernel


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_same_bits(card: driver.Card, dtype: type):
    """Also signed zeros; NaN is NaN on both."""
    rng, names = np.random.default_rng(2), [*NAMES, "fmin", "fmax"]
    integer = np.uint64 if dtype is np.float64 else np.uint32
    any_bits = rng.integers(0, np.iinfo(integer).max, (2, 200_000), dtype=integer).view(dtype)
    usual = rng.uniform(-10, 10, (2, 200_000)).astype(dtype)
    with np.errstate(all="ignore"):
        special = np.array([*itertools.product(SPECIAL, SPECIAL)]).T.astype(dtype)
        x, y = np.concatenate([any_bits, usual, special], axis=1)
        kernel = Kernel(program_of(names))
        cpu, gpu = (kernel(x, y, threads=threads) for threads in (None, Place(card.index)))
    differ = (cpu.view(integer) != gpu.view(integer)) & ~(np.isnan(cpu) & np.isnan(gpu))
    found = {name: (x[k][0], y[k][0], int(k.sum())) for name, k in zip(names, differ.T, strict=True) if k.any()}
    assert not found, f"first arguments and number of those that differ: {found}"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_reciprocals_without_a_branch(card: driver.Card, dtype: type):
    """The card's estimate, refined, rounds as a division does; other numbers take the careful line."""
    kernel, x = Kernel(reciprocal_program()), divisors(dtype, 20_000_000)
    with np.errstate(all="ignore"):
        gpu = kernel(x, threads=Place(card.index))
        wanted = 1 / x
        differ = (gpu[:, 0] != wanted) & ~(np.isnan(gpu[:, 0]) & np.isnan(wanted))
    assert not differ.any(), f"{differ.sum()} of {len(x)} differ, such as {x[differ][:3]}"
    np.testing.assert_array_equal(gpu[-100_000:], kernel(x[-100_000:]))
