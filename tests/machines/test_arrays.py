"""Any batch, any layout, any dtype gives the rows one by one."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardan.machines import build
from cardan.machines import host as machine
from cardan.machines.host import host
from cardan.machines.ufunc import kernel as kernel_module
from cardan.machines.ufunc.kernel import compile_program

from .conftest import make_kernel

LANES = host().lanes("float")


def rows(*batch, seed=0):
    """Three random arguments of `arm`."""
    return tuple(np.random.default_rng(seed).uniform(-1, 1, (3, *batch, 7)))


def close(result, expected, rtol=1e-12):
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("size", range(3 * LANES + 2))
def test_batch_sizes(arm_kernel, arm_reference, size):
    """Every remainder of the lanes, and the same bits as one by one."""
    args = rows(size)
    result = arm_kernel(*args)
    close(result, arm_reference(*args))
    if size:
        np.testing.assert_array_equal(result, [arm_kernel(*row) for row in zip(*args, strict=True)])


@pytest.mark.parametrize("batch", [(), (0,), (1,), (2, 3), (3, 0, 2), (2, 1, 3, 5)])
def test_batch_shapes(arm_kernel, arm_reference, batch):
    """Any number of batch axes."""
    args = rows(*batch)
    result = arm_kernel(*args)
    assert result.shape == (*batch, 7)
    if result.size:
        close(result, arm_reference(*args))


def test_broadcasting(arm_kernel, arm_reference):
    """Batch axes of one argument stretch to those of the others."""
    q, v, tau = rows(5, 19)
    args = q[:, :1], v[0], tau[0, 0]
    close(arm_kernel(*args), arm_reference(*args))
    close(arm_kernel(q[0, 0], v[0, 0], tau), arm_reference(q[0, 0], v[0, 0], tau))


def misaligned(a):
    raw = np.empty(a.nbytes + 1, np.uint8)[1:]
    result = raw.view(a.dtype).reshape(a.shape)
    result[...] = a
    return result


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


LAYOUTS = {
    "fortran": np.asfortranarray,
    "reversed rows": lambda a: a[::-1].copy()[::-1],
    "reversed elements": lambda a: a[..., ::-1].copy()[..., ::-1],
    "spaced rows": lambda a: np.repeat(a, 3, axis=0)[::3],
    "spaced elements": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "one row for all": lambda a: np.broadcast_to(a[0], a.shape),
    "one element for all": lambda a: np.broadcast_to(a[..., :1], a.shape),
    "misaligned": misaligned,
    "read-only": read_only,
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("size", [1, 2, 8, 21])
def test_layouts_in(arm_kernel, layout, size):
    """The values count, not where they lie."""
    args = [LAYOUTS[layout](a) for a in rows(size)]
    plain = [np.array(a, dtype=float, order="C") for a in args]
    np.testing.assert_array_equal(arm_kernel(*args), arm_kernel(*plain))


@pytest.mark.parametrize("layout", [k for k in LAYOUTS if "for all" not in k and k != "read-only"])
@pytest.mark.parametrize("size", [1, 2, 8, 21])
def test_layouts_out(arm_kernel, layout, size):
    """Results reach an array of any layout."""
    args = rows(size)
    out = LAYOUTS[layout](np.full((size, 7), 99.0))
    assert arm_kernel(*args, out=out) is out
    np.testing.assert_array_equal(out, arm_kernel(*args))


@settings(max_examples=60)
@given(
    size=st.integers(1, 40),
    before=st.integers(0, 9),
    gap=st.integers(0, 5),
    step=st.integers(1, 3),
    backward=st.booleans(),
)
def test_nothing_else_is_written(arm_kernel, size, before, gap, step, backward):
    """Rows cut out of a larger array leave the rest of it alone."""
    whole = np.full((size, before + 7 * step + gap), 7.5)
    view = whole[:, before : before + 7 * step : step]
    view = view[::-1, ::-1] if backward else view
    args = rows(size)
    arm_kernel(*args, out=view)
    np.testing.assert_array_equal(view, arm_kernel(*args))
    view[...] = 7.5
    assert np.all(whole == 7.5)


def test_last_row_ends_at_the_page(arm_kernel):
    """Rows at the end of mapped memory: reading past the last element would be a fault."""
    mmap = pytest.importorskip("mmap")
    for size in (1, 3, 8, 17):
        edge = mmap.mmap(-1, mmap.PAGESIZE)
        memory = np.frombuffer(edge, dtype=float)
        args = rows(size)
        q = memory[len(memory) - 7 * size :].reshape(size, 7) if size * 56 <= mmap.PAGESIZE else args[0]
        q[...] = args[0]
        np.testing.assert_array_equal(arm_kernel(q, *args[1:]), arm_kernel(*args))


def test_overlapping_out(arm_kernel):
    """Results may overwrite an argument."""
    q, v, tau = rows(30)
    expected = arm_kernel(q[:-1], v[1:], tau[1:])
    result = arm_kernel(q[:-1], v[1:], tau[1:], out=q[1:])
    np.testing.assert_array_equal(result, expected)


def test_float32(arm_kernel, arm_reference):
    """All float32 stays float32; one float64 array makes it float64."""
    args = [a.astype(np.float32) for a in rows(37)]
    result = arm_kernel(*args)
    assert result.dtype == np.float32
    close(result, arm_reference(*args).astype(np.float32), rtol=2e-4)
    np.testing.assert_array_equal(result, [arm_kernel(*row) for row in zip(*args, strict=True)])
    assert arm_kernel(args[0], args[1].astype(float), args[2]).dtype == np.float64
    assert arm_kernel(args[0].astype(float), args[1], args[2]).dtype == np.float64
    assert arm_kernel([0.0] * 7, args[1], args[2]).dtype == np.float32


def test_other_numbers(arm_kernel, arm_reference):
    """Integers, booleans and lists are taken as float64."""
    q, v, tau = np.arange(21).reshape(3, 7)
    expected = arm_reference(q.astype(float), v.astype(float), tau.astype(float))
    close(arm_kernel(q, v, tau), expected)
    close(arm_kernel(q.tolist(), v.tolist(), tau.tolist()), expected)
    close(arm_kernel(q.astype(np.int8), v.astype(np.uint16), tau.astype(float)), expected)
    assert arm_kernel(q.astype(np.int16), v.astype(np.int16), tau.astype(np.int16)).dtype == np.float64
    assert arm_kernel(q > 3, v, tau).dtype == np.float64


def test_nan_stays_in_its_row(arm_kernel):
    """NaN in, NaN out, in that row only and without a warning."""
    q, v, tau = rows(20)
    v[13, 2] = np.nan
    result = arm_kernel(q, v, tau)
    np.testing.assert_array_equal(np.isnan(result).any(axis=1), np.arange(20) == 13)


def matrices(a, b, s):
    """Products of matrices, with outputs that have structural zeros and constants."""
    product = a @ b
    lower = ca.tril(ca.sparsify(product[:, :3])) * s
    return product, lower, ca.vertcat(s, 0, 3), a.T


@pytest.fixture(scope="module")
def matrix_kernel():
    inputs = {"a": (3, 4), "b": (4, 5), "s": ()}
    return make_kernel("matrices", inputs, {"ab": (3, 5), "low": (3, 3), "c": (3,), "at": (4, 3)}, matrices)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 40])
def test_matrices_and_zeros(matrix_kernel, size):
    """NumPy's element order in and out, several results, scalars, structural zeros."""
    rng = np.random.default_rng(5)
    a, b, s = rng.normal(size=(size, 3, 4)), rng.normal(size=(size, 4, 5)), rng.normal(size=size)
    out = tuple(np.full((size, *p.shape), np.nan) for p in matrix_kernel.program.outputs)
    for target in (None, out):
        product, low, c, at = matrix_kernel(a, b, s, out=target)
        np.testing.assert_allclose(product, a @ b, rtol=1e-13)
        np.testing.assert_allclose(low, np.tril((a @ b)[:, :, :3]) * s[:, None, None], rtol=1e-13)
        np.testing.assert_array_equal(c, np.stack([s, 0 * s, 0 * s + 3], axis=1))
        np.testing.assert_array_equal(at, np.swapaxes(a, 1, 2))
    swapped = matrix_kernel(np.asfortranarray(a), np.swapaxes(np.swapaxes(b, 1, 2).copy(), 1, 2), s)
    for x, y in zip(swapped, (product, low, c, at), strict=True):
        np.testing.assert_array_equal(x, y)


def test_large_matrix():
    """Scratch beyond the stack's share comes from the heap."""
    kernel = make_kernel("outer", {"x": (60,)}, {"y": (60, 60)}, lambda x: x @ x.T)
    x = np.random.default_rng(2).normal(size=(21, 60))
    np.testing.assert_array_equal(kernel(x), x[:, :, None] * x[:, None, :])


def test_ports_without_elements():
    """A model without freedom: empty arrays in and out, batch axes kept."""
    kernel = make_kernel(
        "none",
        {"q": (0,), "x": (2,)},
        {"a": (0,), "y": (2,), "M": (0, 0)},
        lambda q, x: (q, 2 * x, ca.SX(0, 0)),
    )
    a, y, M = kernel(np.zeros((5, 0)), np.ones(2))
    assert (a.shape, y.shape, M.shape) == ((5, 0), (5, 2), (5, 0, 0))
    np.testing.assert_array_equal(y, 2.0)
    nothing = make_kernel("nothing", {"q": (0,)}, {"a": (0,)}, lambda q: q)
    assert nothing(np.zeros((3, 0))).shape == (3, 0)
    constant = make_kernel("constant", {"q": (0,)}, {"e": ()}, lambda q: ca.SX(4.5))
    np.testing.assert_array_equal(constant(np.zeros((3, 0))), [4.5] * 3)
    with pytest.raises(ValueError, match="q has 1 entries along its last axis, the model needs 0"):
        nothing(np.zeros((3, 1)))


def test_raw_ufunc(arm_kernel):
    """NumPy's own object, for callers in a hurry."""
    ufunc = arm_kernel.ufunc(np.float64)
    assert isinstance(ufunc, np.ufunc)
    assert ufunc.signature == arm_kernel.signature == "(7),(7),(7)->(7)"
    args = rows(4)
    np.testing.assert_array_equal(ufunc(*args), arm_kernel(*args))


@pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="needs a processor that runs older code too")
@pytest.mark.parametrize(("cpu", "vector_bytes"), [("x86-64", 16), ("x86-64-v3", 32)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_older_processors(arm_kernel, arm_reference, monkeypatch, cpu, vector_bytes, dtype):
    """Two and four lanes of double, without and with multiply-add, without masks."""
    older = replace(host(), cpu=cpu, features="", vector_bytes=vector_bytes)
    for module in (machine, build, kernel_module):
        monkeypatch.setattr(module, "host", lambda: older)
    monkeypatch.setenv("CARDAN_CACHE", "0")
    kernel = compile_program(arm_kernel.program)
    for size in (1, 2, 3, 5, 17):
        args = [a.astype(dtype) for a in rows(size)]
        result = kernel(*args)
        assert result.dtype == dtype
        close(result, arm_reference(*args).astype(dtype), rtol=1e-12 if dtype is np.float64 else 2e-4)
        np.testing.assert_array_equal(result, [kernel(*row) for row in zip(*args, strict=True)])
