"""The printed elementary functions against mpmath, C99's special cases, and themselves on other lanes."""

import itertools
import math
import re

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.elementary import NAMES, ONE, SPECIAL, program_of

from cardan.machines.cuda.entry import print_entry
from cardan.machines.ufunc.kernel import compile_program
from cardan.program.program import record

ULPS = {"sin": 2.0, "cos": 2.0, "pow": 2.0, "sinh": 2.0, "cosh": 2.0, "tanh": 2.0, "erf": 2.0, "asinh": 2.0,
        "acosh": 2.0, "atanh": 2.0}  # fmt: skip
EXACT = {name: getattr(mpmath, name, None) for name in NAMES} | {
    "pow": mpmath.power, "fmod": lambda x, y: mpmath.mpf(math.fmod(x, y)),
    "remainder": lambda x, y: mpmath.mpf(math.remainder(x, y)),
}  # fmt: skip
NUMPY = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
         "atanh": np.arctanh, "pow": np.power, "atan2": np.arctan2, "erf": np.vectorize(math.erf)}  # fmt: skip
BITS = st.integers(0, 2**64 - 1).map(lambda n: float(np.uint64(n).view(np.float64)))
USUAL = st.floats(-50, 50)


@pytest.fixture(scope="module")
def functions():
    """All functions of (x, y) at once: (rows, n)."""
    kernel = compile_program(program_of(NAMES))

    def call(x, y):
        with np.errstate(all="ignore"):
            return kernel(x, y)

    return call


def ulps(name, x, y, result):
    """Error of a finite result in units in the last place of the exact value; 0 where that is not finite or complex."""
    with mpmath.workprec(1300 if name in ("sin", "cos", "tan") and abs(x) > 1e3 else 200):
        try:
            exact = EXACT[name](*map(mpmath.mpf, (x,) if name in ONE else (x, y)))
        except (ZeroDivisionError, ValueError, OverflowError):
            return 0.0
        if isinstance(exact, mpmath.mpc) or not mpmath.isfinite(exact) or abs(exact) >= mpmath.ldexp(1, 1024):
            return 0.0
        unit = np.spacing(np.abs(result.dtype.type(exact)))
        return float(abs(mpmath.mpf(float(result)) - exact) / mpmath.mpf(float(unit)))


def same_bits(x, y):
    """Equal, also the signs of zeros; NaN is NaN."""
    np.testing.assert_array_equal(x, y)
    assert np.isnan(x) or np.signbit(x) == np.signbit(y)


def within(name, x, y, result):
    """Whether a result is near enough, or not finite where the exact one is not."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return True
    allowed = ULPS.get(name, 1.0) if result.dtype == np.float64 else {"sin": 2.0, "cos": 2.0}.get(name, 0.51)
    return ulps(name, float(x), float(y), result) <= allowed


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(NAMES), st.one_of(BITS, USUAL), st.one_of(BITS, USUAL), st.lists(BITS, min_size=15, max_size=15))
def test_any_bits(functions, name, x, y, others):
    """Near the exact value for any bits; and the same bits on one lane and beside any neighbours."""
    k = NAMES.index(name)
    result = functions(np.array([x, *others]), np.array([y, *reversed(others)]))[0, k]
    same_bits(functions(x, y)[k], result)
    assert within(name, x, y, result), (x, y, result, ulps(name, x, y, result))
    with np.errstate(over="ignore", invalid="ignore"):
        narrow, other = np.array([x, *others]).astype(np.float32), np.float32(y)
    result = functions(narrow, other)[0, k]
    assert result.dtype == np.float32
    same_bits(functions(narrow[0], other)[k], result)
    assert math.isinf(result) or within(name, float(narrow[0]), float(other), result)


def test_special_cases(functions):
    """Infinities, NaN, zeros with their signs and the edges of overflow as NumPy has them, which are C99's."""
    x, y = (np.array(a) for a in zip(*itertools.product(SPECIAL, SPECIAL), strict=True))
    results = functions(x, y)
    for name, result in zip(NAMES, results.T, strict=True):
        with np.errstate(all="ignore"):
            if name == "remainder":
                fine = np.isfinite(x) & (y != 0) & ~np.isnan(y)
                rows = zip(fine, x, y, strict=True)
                expected = np.array([math.remainder(a, b) if f else math.nan for f, a, b in rows])
            else:
                expected = NUMPY.get(name, getattr(np, name, None))(*((x,) if name in ONE else (x, y)))
        np.testing.assert_array_equal(np.isnan(result), np.isnan(expected), err_msg=name)
        number = ~np.isnan(expected) & ((name != "sin") | (expected != 0))  # the sine of -0 is 0
        np.testing.assert_array_equal(np.signbit(result[number]), np.signbit(expected[number]), err_msg=name)
        np.testing.assert_allclose(result, expected, rtol=1e-15, atol=1e-323, err_msg=name)


def test_rests_are_exact(functions):
    """Of any two numbers, as far apart as they may be."""
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 2**64, (2, 4000), dtype=np.uint64).view(np.float64)
    fine = np.isfinite(x) & np.isfinite(y) & (y != 0)
    results = functions(x, y)[fine]
    for name, exact in (("fmod", math.fmod), ("remainder", math.remainder)):
        expected = [exact(*row) for row in zip(x[fine], y[fine], strict=True)]
        np.testing.assert_array_equal(results[:, NAMES.index(name)], expected)


@pytest.mark.parametrize("name", NAMES)
def test_usual_arguments(functions, name):
    """Many arguments where the functions are used, and near the ends of their ranges."""
    rng = np.random.default_rng(8)
    sizes = {"asin": 1, "acos": 1, "atanh": 1, "log1p": 1, "tanh": 4, "erf": 4}
    x = rng.uniform(-1, 1, 120) * np.repeat([sizes.get(name, 3), sizes.get(name, 700)], 60)
    y = rng.uniform(-3, 3, 120)
    x = np.abs(x) + (name == "acosh") if name in ("pow", "log", "acosh") else x
    result = functions(x, y)[:, NAMES.index(name)]
    assert np.isfinite(result).sum() > 100
    wrong = [(a, b, r) for a, b, r in zip(x, y, result, strict=True) if not within(name, a, b, r)]
    assert not wrong


def test_no_flags():
    """Numbers that raise nothing in C raise nothing on the lanes: no warning about a result that is thrown away."""
    x = np.tile([0.0, 1e-310, 0.3, -0.7, 1.0, 0.999], 4)
    quiet = [name for name in ONE if name not in ("log", "acosh", "atanh")] + ["atan2", "hypot"]
    kernel = compile_program(program_of(quiet))
    with np.errstate(invalid="raise", divide="raise", over="raise"):
        for row in (x, x[:1], x[4:5]):
            kernel(row, row[::-1])


def test_ptx_is_complete():
    """The functions become PTX that calls nothing from outside and leaves no rounding to the assembler."""
    from cardan.machines.cuda.ptx import to_ptx

    program = program_of(NAMES)
    ptx = to_ptx(print_entry(record(program), program, "double"), 90)
    assert not re.search(r"\.extern", ptx)
    assert re.search(r"fma\.rn\.f64", ptx)
    assert not re.search(r"\b(add|sub|mul|div|sqrt)\.f(32|64)|\.approx|\.ftz", ptx)


def test_smaller_and_larger_number():
    """NaN gives way to a number; of 0.0 and -0.0 it is the first, as instructions of processors do not agree on it."""
    program = program_of(["fmin", "fmax"])
    kernel = compile_program(program)
    x, y = np.array([*itertools.product(SPECIAL, SPECIAL)]).T
    with np.errstate(invalid="ignore"):
        found = kernel(x, y)
    np.testing.assert_array_equal(found, np.stack([np.fmin(x, y), np.fmax(x, y)], axis=1))
    zeros = (x == 0) & (y == 0)
    np.testing.assert_array_equal(np.signbit(found[zeros]), np.repeat(np.signbit(x[zeros, None]), 2, axis=1))
    one = np.array([kernel(a, b) for a, b in zip(x[zeros], y[zeros], strict=True)])
    np.testing.assert_array_equal(np.signbit(one), np.signbit(found[zeros]))
    assert not re.search("llvm.m(in|ax)", print_entry(record(program), program, "double"))
