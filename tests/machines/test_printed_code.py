"""Code as it is printed: values are not taken for one another, states are not overwritten, limits are kept."""

import casadi as ca
import numpy as np
import pytest

from cardan.machines.ufunc.kernel import compile_program
from cardan.program.march import March
from cardan.program.program import Port, Program

from .conftest import make_kernel

ROWS = [1, 2, 50]


@pytest.mark.parametrize("rows", ROWS)
def test_the_order_of_operands_matters(rows):
    """x - y and y - x in one graph are two values; x + y and y + x are one."""

    def text(x, y):
        pairs = [(x - y, y - x), (x / y, y / x), (ca.atan2(x, y), ca.atan2(y, x)), (x < y, y < x), (x <= y, y <= x)]
        pairs += [(x**y, y**x), (ca.fmod(x, y), ca.fmod(y, x)), (ca.if_else(x > y, x, 0), ca.if_else(y > x, y, 0))]
        return ca.vertcat(*(part for pair in pairs for part in pair), x + y, y + x)

    x, y = np.random.default_rng(1).uniform(0.5, 3.0, (2, rows))
    found = make_kernel("operands", {"x": (), "y": ()}, {"z": (18,)}, text)(x, y)
    pairs = [x - y, y - x, x / y, y / x, np.arctan2(x, y), np.arctan2(y, x), x < y, y < x, x <= y, y <= x, x**y, y**x]
    pairs += [np.fmod(x, y), np.fmod(y, x), np.where(x > y, x, 0), np.where(y > x, y, 0), x + y, x + y]
    np.testing.assert_allclose(found, np.stack(pairs, axis=-1), rtol=1e-14)


@pytest.mark.parametrize("rows", ROWS)
def test_nan_differs_from_everything(rows):
    """As in IEEE 754: also from itself, and every other comparison with it is false."""
    kernel = make_kernel("nan", {"x": (), "y": ()}, {"z": (4,)}, lambda x, y: ca.vertcat(x != y, x == y, x < y, x <= y))
    x = np.full(rows, np.nan)
    for y in (x, np.ones(rows)):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(kernel(x, y), np.tile([1.0, 0.0, 0.0, 0.0], (rows, 1)))
    np.testing.assert_array_equal(kernel(np.ones(rows), np.ones(rows)), np.tile([0.0, 1.0, 0.0, 1.0], (rows, 1)))


@pytest.mark.parametrize("rows", ROWS)
def test_sines_of_several_ports(rows):
    kernel = make_kernel(
        "ports", {"a": (2,), "b": (3,), "c": ()}, {"z": (6,)},
        lambda a, b, c: ca.vertcat(ca.sin(a), ca.cos(b), ca.sin(c) * ca.sin(a[1]) + ca.sin(b[2])),
    )  # fmt: skip
    rng = np.random.default_rng(2)
    a, b, c = rng.uniform(-3, 3, (rows, 2)), rng.uniform(-3, 3, (rows, 3)), rng.uniform(-3, 3, rows)
    last = np.sin(c) * np.sin(a[:, 1]) + np.sin(b[:, 2])
    np.testing.assert_allclose(kernel(a, b, c), np.column_stack([np.sin(a), np.cos(b), last]), atol=1e-15)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("layout", ["rows", "columns", "both", "transposed", "backwards"])
def test_matrices_of_any_layout(rows, layout):
    """Matrices whose rows or columns are not side by side in memory, in and out."""
    kernel = make_kernel("matrix", {"A": (3, 4)}, {"B": (4, 3), "s": ()}, lambda A: (A.T * 2, ca.sum1(ca.sum2(A))))
    whole = np.random.default_rng(3).standard_normal((rows, 6, 8))
    A = {
        "rows": whole[:, ::2, :4], "columns": whole[:, :3, ::2], "both": whole[:, ::2, ::2],
        "transposed": np.swapaxes(whole, 1, 2)[:, :3, :4], "backwards": whole[::-1, 2::-1, 3::-1],
    }[layout]  # fmt: skip
    B, s = kernel(A)
    np.testing.assert_array_equal(B, 2 * np.swapaxes(A, 1, 2))
    np.testing.assert_allclose(s, A.sum(axis=(1, 2)), atol=1e-14)
    out = np.zeros((rows, 8, 6))[:, ::2, ::2]
    np.testing.assert_array_equal(kernel(A, out=(out, np.empty(rows)))[0], B)


@pytest.mark.parametrize("rows", ROWS)
def test_structural_zeros_are_written(rows):
    """Also into an array that held something else."""

    def text(x):
        M = ca.SX(3, 2)
        M[0, 0], M[2, 1] = x, 2 * x
        return M

    kernel = make_kernel("zeros", {"x": ()}, {"M": (3, 2)}, text)
    out = np.full((rows, 3, 2), np.nan)
    np.testing.assert_array_equal(kernel(np.ones(rows), out=out), np.tile([[1.0, 0], [0, 0], [0, 2]], (rows, 1, 1)))


def march(step, n):
    """A march of one function of x (n,), a counter k and nothing else."""
    state = (Port("x", (n,)), Port("k", ()))
    inputs, key = (*state, Port("limit", ())), f"march {step.name()} {n}"
    return compile_program(Program("march", inputs, state, key, lambda: March(((step, 1),), carried=2)))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("limit", [1, 3, 7])
def test_a_march_takes_as_many_steps_as_allowed(rows, limit):
    """And no more than a lane needs, whatever its neighbours do."""
    x, k = ca.SX.sym("x", 1), ca.SX.sym("k")
    step = ca.Function("count", [x, k], [x + (k < 5), k + (k < 5), k < 4])
    first = np.arange(float(rows)) % 6
    moved, k = march(step, 1)(np.zeros((rows, 1)), first, float(limit))
    np.testing.assert_array_equal(moved[:, 0], np.minimum(limit, 5 - first))
    np.testing.assert_array_equal(k, first + np.minimum(limit, 5 - first))


@pytest.mark.parametrize("rows", ROWS)
def test_a_march_may_clear_most_of_its_state(rows):
    """Zeros are written where other entries of the same state are still to be read."""
    n = 100
    x, k = ca.SX.sym("x", n), ca.SX.sym("k")
    after = ca.vertcat(x[n - 1], ca.SX.zeros(n - 3), ca.sum1(x), x[0])
    step = ca.Function("clear", [x, k], [after, k + 1, k < 1])
    start = np.random.default_rng(4).standard_normal((rows, n))
    moved, _ = march(step, n)(start, np.zeros(rows), 1.0)
    expected = np.zeros((rows, n))
    expected[:, 0], expected[:, -2], expected[:, -1] = start[:, -1], start.sum(axis=1), start[:, 0]
    np.testing.assert_allclose(moved, expected, atol=1e-13)
