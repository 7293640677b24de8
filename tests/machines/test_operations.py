"""Every operation of a recorded graph gives what CasADi's interpreter gives."""

import casadi as ca
import numpy as np
import pytest

from cardan.errors import CardanError
from cardan.machines.host import host, load, to_object
from cardan.machines.llvm import interpreted
from cardan.machines.llvm.graph import print_graph
from cardan.machines.llvm.module import Module, VectorType
from cardan.machines.ufunc.gufunc import LoopAddresses, make_gufunc
from cardan.program.graph import BINARY, UNARY, read

from .conftest import make_kernel

ANY = np.array([-3.7, -1.0, -0.6, -0.0, 0.0, 0.25, 0.5, 1.0, 2.0, 2.5, 7.3, 40.0])
UNIT = np.linspace(-1, 1, 21)
POSITIVE = np.array([1e-300, 1e-8, 0.3, 1.0, 2.5, 1e10])
DOMAIN = {
    "sqrt": POSITIVE, "log": POSITIVE, "inv": POSITIVE, "asin": UNIT, "acos": UNIT, "atanh": 0.99 * UNIT,
    "acosh": 1 + POSITIVE, "log1p": POSITIVE,
}  # fmt: skip
TEXT = {
    "neg": lambda x: -x,
    "sq": lambda x: x * x,
    "twice": lambda x: x + x,
    "inv": lambda x: 1 / x,
    "not": ca.logic_not,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: ca.fabs(x) ** y,
    "constpow": lambda x, y: ca.fabs(x) ** 2.7 + 0 * y,
    "atan2": ca.atan2,
    "hypot": ca.hypot,
    "remainder": ca.remainder,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": ca.logic_and,
    "or": ca.logic_or,
    "if_else_zero": lambda x, y: ca.if_else(x, y, 0),
    "copysign": ca.copysign,
    "fmod": ca.fmod,
}


def text_of(name):
    return TEXT.get(name) or getattr(ca, name)


def agrees(kernel, *columns):
    """Compare a kernel of scalars with CasADi, on lanes and one by one."""
    function = kernel.program.record()
    expected = np.array([float(function(*row)) for row in zip(*columns, strict=True)])
    result = kernel(*columns)
    np.testing.assert_allclose(result, expected, rtol=4e-16, atol=5e-324)
    one_by_one = [kernel(*row) for row in zip(*columns, strict=True)]
    np.testing.assert_array_equal(one_by_one, result)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    """Operations of one value."""
    kernel = make_kernel("f", {"x": ()}, {"y": ()}, text_of(name), key=f"unary {name}")
    assert name in kernel.operations or (name, list(kernel.operations)) == ("twice", ["add"])  # CasADi 3.7 writes x + x
    agrees(kernel, DOMAIN.get(name, ANY))


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    """Operations of two values, over all pairs."""
    kernel = make_kernel("f", {"x": (), "y": ()}, {"z": ()}, text_of(name), key=f"binary {name}")
    assert name in kernel.operations
    x, y = (a.ravel() for a in np.meshgrid(ANY, ANY))
    if name in ("div", "fmod", "remainder"):
        x, y = x[y != 0], y[y != 0]
    if name in ("pow",):
        x, y = x[x != 0], y[x != 0]
    agrees(kernel, x, y)


@pytest.mark.parametrize(
    "text",
    [
        lambda x, y, z: x * y + z,
        lambda x, y, z: x * y - z,
        lambda x, y, z: z - x * y,
        lambda x, y, z: z + x * x,
        lambda x, y, z: x * y - z * z,
        lambda x, y, z: -(x * y) + z,
        lambda x, y, z: (x * y + z) * (x * y),
        lambda x, y, z: x / z + y / z + 1 / z,
    ],
)
def test_fused_sums_of_products(text):
    """Each shape of multiply-add has the right signs."""
    kernel = make_kernel("f", {"x": (), "y": (), "z": ()}, {"w": ()}, text, key=str(text(*map(ca.SX.sym, "xyz"))))
    rng = np.random.default_rng(1)
    x, y, z = rng.integers(1, 50, (3, 20)).astype(float)
    function = kernel.program.record()
    expected = [float(function(*row)) for row in zip(x, y, z, strict=True)]
    np.testing.assert_allclose(kernel(x, y, z), expected, rtol=1e-14)


@pytest.mark.parametrize("swapped", [False, True])
def test_a_choice_is_one_instruction(swapped):
    """CasADi's sum of two products with conditions: the number that is not chosen, NaN or not, leaves no trace."""

    def text(x, y):
        less = ca.logic_not(x < y) if swapped else x < y
        return ca.if_else(less, x, y * y)

    kernel = make_kernel("f", {"x": (), "y": ()}, {"z": ()}, text, key=f"choice {swapped}")
    x, y = np.array([[1.0, 2, 3, np.inf, np.nan, -0.0], [2.0, 1, 3, -np.inf, 1, 5]])
    chosen = np.where((x < y) != swapped, x, y * y)
    with np.errstate(invalid="ignore"):
        found = kernel(x, y)
    np.testing.assert_array_equal(found, chosen)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(chosen))
    assert "fadd" not in kernel._builder.text("double", 1)


def test_repeated_divisor_divides_once():
    """Quotients with one divisor share its reciprocal."""
    kernel = make_kernel("f", {"x": (3,), "y": ()}, {"z": (3,)}, lambda x, y: x / y)
    assert kernel.operations == {"inv": 1, "mul": 3}


def test_equal_values_are_computed_once():
    """The reader of the graph finds values recorded twice."""
    kernel = make_kernel("f", {"x": ()}, {"y": ()}, lambda x: ca.sin(x * 3) * ca.cos(3 * x))
    assert kernel.operations == {"mul": 2, "sin": 1, "cos": 1}


def test_unknown_operation_is_named():
    """What cannot be printed is refused by name."""
    kernel = make_kernel("f", {"x": ()}, {"y": ()}, ca.erfinv)
    with pytest.raises(CardanError, match="OP_ERFINV"):
        kernel(1.0)


def test_only_scalar_graphs():
    """MX functions are refused."""
    x = ca.MX.sym("x")
    with pytest.raises(CardanError, match="SX"):
        read(ca.Function("f", [x], [x * x]))


def test_uniform_inputs_are_arrays_of_scalars():
    """A uniform input is loaded as one number and spread over the lanes."""
    x, p = ca.SX.sym("x"), ca.SX.sym("p", 2)
    module = Module(VectorType("double", 4))
    graph = read(ca.Function("f", [x, p], [x * p[1] + ca.sin(p[0])]))
    print_graph(graph, "body", module, uniform=frozenset({1}))
    text = module.text()
    assert "load double, ptr" in text
    assert "load <4 x double>, ptr" in text
    assert "define internal void @body(" in text


@pytest.mark.parametrize("dtype", ["double", "float"])
def test_tables_have_the_bits_of_straight_code(dtype, monkeypatch):
    """Every operation, products in all places of sums, values used long after, on one lane and on many."""
    monkeypatch.setattr(interpreted, "LEAST", 0)
    monkeypatch.setattr(interpreted, "ON_STACK", 2048)  # so that one of the two frames is on the heap
    rng = np.random.default_rng(7)

    def everything(x):
        values = [x[i] for i in range(6)]
        for _ in range(2):
            for name in rng.permutation([*UNARY, *BINARY]):
                a, b = (values[int(k)] for k in rng.integers(len(values), size=2))
                values.append(ca.if_else(a < b, a, text_of(name)(*([a] if name in UNARY else [a, b]))))
            for sign in (1, -1):
                a, b, c, d = (values[int(k)] for k in rng.integers(len(values), size=4))
                values += [c + sign * a * b, a * b + sign * c, a * b + sign * c * d, a * a + sign * c, -(a * b)]
        return ca.vertcat(*values, x[2], 0, values[-1])

    size = 2 * (len(UNARY) + len(BINARY) + 10) + 9
    kernel = make_kernel("all", {"x": (6,)}, {"y": (size,)}, everything)
    builder = kernel._builder
    given = rng.standard_normal((11, 6)).astype({"double": np.float64, "float": np.float32}[dtype])
    for lanes in (1, host().lanes(dtype)):
        found = []
        for tables in (False, True):
            text = builder.text(dtype, lanes, tables=tables)
            assert ("@body.run" in text) == tables
            loops = LoopAddresses()
            (loop, rows), held = load(to_object(text, quick=True), "loop", "rows")
            loops.row = loops.wide = rows
            with np.errstate(all="ignore"):
                found.append(make_gufunc(builder.compiled, loop, loops, given.dtype, [held])(given))
        straight, table = found
        assert np.isfinite(straight).mean() > 0.5
        assert np.nan_to_num(straight, nan=9.0).tobytes() == np.nan_to_num(table, nan=9.0).tobytes()
