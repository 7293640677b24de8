"""Sine and cosine on lanes against mpmath, in units of the last place."""

import casadi as ca
import mpmath
import numpy as np
import pytest

from .conftest import make_kernel

HALF_PI = np.pi / 2


@pytest.fixture(scope="module")
def sincos():
    """sin and cos of an input, and of a computed argument."""

    def text(x):
        return ca.vertcat(ca.sin(x), ca.cos(x), ca.sin(-1 * x + 0), ca.cos(2 * x / 2))

    return make_kernel("sincos", {"x": ()}, {"y": (4,)}, text)


def arguments(dtype, limit):
    """Random, tiny, and next to multiples of pi/2, where cancellation is worst."""
    rng = np.random.default_rng(3)
    k = np.concatenate([np.arange(1, 200), rng.integers(1, int(limit / HALF_PI), 400)])
    near = (k * HALF_PI).astype(dtype)
    parts = [
        rng.uniform(-4, 4, 500), rng.uniform(-limit, limit, 500), 10 ** rng.uniform(-30, 0, 200), near, -near,
        np.nextafter(near, dtype(0)), np.nextafter(near, dtype(np.inf)), [0.0, np.pi / 4, -np.pi / 4, limit],
    ]  # fmt: skip
    return np.concatenate([np.asarray(p, dtype) for p in parts])


def ulps(result, function, x):
    """Largest error of `result`, in units in the last place of the exact value."""
    worst = 0.0
    with mpmath.workprec(1300):
        for y, a in zip(result, x, strict=True):
            exact = function(mpmath.mpf(float(a)))
            unit = float(np.spacing(abs(np.asarray(float(exact), result.dtype))))
            worst = max(worst, float(abs(mpmath.mpf(float(y)) - exact) / unit))
    return worst


@pytest.mark.parametrize(("dtype", "limit"), [(np.float64, 1e6), (np.float64, 1e9), (np.float32, 1e6)])
def test_two_ulp(sincos, dtype, limit):
    """Within 2 ulp up to 1e6, on lanes and alone."""
    x = arguments(dtype, limit)
    y = sincos(x)
    assert y.dtype == dtype
    assert ulps(y[:, 0], mpmath.sin, x) <= 2
    assert ulps(y[:, 1], mpmath.cos, x) <= 2
    np.testing.assert_array_equal([sincos(a) for a in x[:300]], y[:300])
    # the argument -x was computed, so it took the other way through the code
    np.testing.assert_array_equal(y[:, 2], -y[:, 0])
    np.testing.assert_array_equal(y[:, 3], y[:, 1])


def test_huge_arguments(sincos):
    """Far beyond the first reduction an exact one answers, and its neighbours in the lanes stay right."""
    rng = np.random.default_rng(5)
    worst = 6381956970095103.0 * 2.0**797  # the double nearest to a multiple of pi/2
    x = np.r_[0.5, 1e22, -1e300, 2.0**31, 1e9, 1.0, worst, -3.0, -worst, 2.0, 10 ** rng.uniform(9, 308, 300)]
    y = sincos(x)
    assert ulps(y[:, 0], mpmath.sin, x) <= 2
    assert ulps(y[:, 1], mpmath.cos, x) <= 2
    x = (10 ** rng.uniform(6, 38, 300)).astype(np.float32)
    y = sincos(x)
    assert ulps(y[:, 0], mpmath.sin, x) <= 2
    assert ulps(y[:, 1], mpmath.cos, x) <= 2


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_not_finite(sincos, dtype):
    """inf and nan give nan in their own lane only."""
    x = np.array([0.5, np.inf, 1.0, -np.inf, 2.0, np.nan, 0.0, 3.0] * 3, dtype)
    y = sincos(x)
    np.testing.assert_array_equal(np.isnan(y), np.repeat(~np.isfinite(x)[:, None], 4, axis=1))


def test_denormals(sincos):
    """The smallest numbers are their own sine."""
    x = np.array([5e-324, -5e-324, 1e-310, 2.2e-308])
    y = sincos(x)
    np.testing.assert_array_equal(y[:, 0], x)
    np.testing.assert_array_equal(y[:, 1], 1.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e12, -1e30])
def test_a_lane_does_not_change_its_neighbours(sincos, dtype, bad):
    """Bits of a row are the same whatever is in the others, also those that take the cold branch."""
    rng = np.random.default_rng(4)
    for rows in (3, 7, 8, 9, 40, 257):
        x = rng.uniform(-1000, 1000, rows).astype(dtype)
        y = sincos(x)
        for at in rng.integers(0, rows, 3):
            with np.errstate(all="ignore"):
                there = sincos(np.where(np.arange(rows) == at, dtype(bad), x))
            np.testing.assert_array_equal(np.delete(there, at, axis=0), np.delete(y, at, axis=0))
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(there[at], sincos(dtype(bad)))


def test_a_lane_out_of_range_raises_no_warning(sincos):
    """Overflow would be told of a row that has none."""
    x = np.linspace(-1, 1, 16)
    x[5] = 1e300
    with np.errstate(all="raise"):
        sincos(x)
