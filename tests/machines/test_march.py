"""Marches: ports that do not fit are refused, and empty ones are left out."""

import re

import casadi as ca
import numpy as np
import pytest

from cardan.errors import CardanError
from cardan.machines.host import has_library
from cardan.machines.llvm.module import VectorType
from cardan.machines.llvm.printer import LLVMPrinter
from cardan.machines.ufunc.kernel import compile_program
from cardan.program.march import March
from cardan.program.program import Port, Program

from .conftest import make_kernel


def counting(n, data, sizes=None):
    """Adds `d` to x (n,) until three steps are done; `none` is data without elements."""

    def record():
        x, k, d, none = ca.SX.sym("x", n), ca.SX.sym("k"), ca.SX.sym("d", data), ca.SX.sym("none", 0)
        more = k < 3
        step = ca.if_else(more, ca.sum1(d), 0) if data else ca.SX(0)
        return March(((ca.Function("step", [x, k, d, none], [x + step, k + more, k < 2]), 1),), carried=2)

    shapes = sizes or {"x": (n,), "k": (), "d": (data,), "none": (0,), "limit": ()}
    inputs = tuple(Port(name, shape) for name, shape in shapes.items())
    key = f"counting {n} {data} {shapes}"
    return compile_program(Program("counting", inputs, (Port("x", (n,)), Port("k", ())), key, record))


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("data", [0, 2])
@pytest.mark.parametrize("rows", [1, 50])
def test_empty_ports(n, data, rows):
    """State and data without elements: a model without coordinates has them."""
    x, d = np.arange(float(rows * n)).reshape(rows, n), np.full((rows, data), 0.5)
    moved, k = counting(n, data)(x, np.zeros(rows), d, np.empty((rows, 0)), 10.0)
    np.testing.assert_array_equal(moved, x + 1.5 * data)
    np.testing.assert_array_equal(k, np.full(rows, 3.0))


def test_ports_that_do_not_fit():
    """Code that would read past the end of an array is not made."""
    kernel = counting(3, 2, {"x": (3,), "k": (), "d": (1,), "none": (0,), "limit": ()})
    with pytest.raises(CardanError, match=r"counting: recorded input sizes \[3, 1, 2, 0, 1\] are not those"):
        kernel(np.zeros(3), 0.0, np.zeros(1), np.zeros(0), 10.0)


def test_no_library_functions():
    """Printed code calls nothing from outside but LLVM's intrinsics, malloc and free: a card has no C library."""
    one = [
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "exp",
        "log",
        "log1p",
        "expm1",
        "erf",
        "sin",
        "cos",
    ]
    two = ["power", "atan2", "hypot", "fmod", "remainder"]

    def text(x, y):
        return ca.vertcat(*[getattr(ca, f)(x) for f in one], *[getattr(ca, f)(x, y) for f in two if hasattr(ca, f)])

    kernel = make_kernel("library", {"x": (), "y": ()}, {"z": (len(one) + sum(hasattr(ca, f) for f in two),)}, text)
    for dtype, lanes in (("double", 1), ("double", 8), ("float", 1), ("float", 16)):
        short = kernel._builder.text(dtype, lanes)
        needs = short.partition("\n")[0].split()[4:] if has_library() else []
        module = LLVMPrinter(VectorType(dtype, lanes), 2).print_program(kernel.program, kernel._builder.recorded())
        for text_of, known in ((module, ()), (short, needs)):
            declared = re.findall(r"^declare .* @([a-zA-Z0-9_.]+)\(", text_of, re.MULTILINE)
            assert {name for name in declared if not name.startswith("llvm.")} <= {"malloc", "free", *known}
        assert (
            len(re.findall(r"^define internal .* @(?:vec\.\w+|sincos)\(", module, re.MULTILINE))
            == len(one) + len(two) - 1
        )
