"""All elementary functions of two numbers in one program, and numbers at which they are special."""

import math

import casadi as ca
import numpy as np

from cardan.machines.llvm.elementary.functions import FUNCTIONS
from cardan.program.program import Port, Program

ONE = ["sin", "cos", *(name for name, f in FUNCTIONS.items() if f.arity == 1)]
TWO = [name for name, f in FUNCTIONS.items() if f.arity == 2]
NAMES = ONE + TWO
_SIZES = [
    0.0, 5e-324, 2.0**-1022, 1e-300, 2.0**-54, 1e-9, 0.25, 1 / 3, 0.5, math.nextafter(1, 0), 1.0, 1.5, 2.0, 3.0, 37.4,
    709.8, 745.2, 2.0**31, 2.0**52 + 1, 2.0**53, 2.0**66, 1e22, 2.0**500, 2.0**1000, 1.7e308, math.inf,
]  # fmt: skip
SPECIAL = [*_SIZES, *(-a for a in _SIZES), math.nan]


def program_of(names: list[str]) -> Program:
    """Functions by their names, of x or of (x, y): inputs x (), y (); output z (n,)."""

    def record() -> ca.Function:
        x, y = ca.SX.sym("x"), ca.SX.sym("y")
        results = [x**y if n == "pow" else getattr(ca, n)(*((x,) if n in ONE else (x, y))) for n in names]
        return ca.Function("functions", [x, y], [ca.vertcat(*results)])

    inputs, outputs = (Port("x", ()), Port("y", ())), (Port("z", (len(names),)),)
    return Program("functions", inputs, outputs, f"test elementary functions {names}", record)


def reciprocal_program() -> Program:
    """The reciprocal and the sine of x, () -> (2,): on a card a quick line, and a careful one for what that leaves."""

    def record() -> ca.Function:
        x = ca.SX.sym("x")
        return ca.Function("reciprocal", [x], [ca.vertcat(1 / x, ca.sin(x))])

    return Program("reciprocal", (Port("x", ()),), (Port("z", (2,)),), "test reciprocal", record)


def divisors(dtype: type, count: int) -> np.ndarray:
    """Numbers (n,) of any bits, of all exponents with the largest and the smallest mantissas, and special ones."""
    integer, width = (np.uint64, 52) if dtype is np.float64 else (np.uint32, 23)
    exponents = np.arange(2 ** (8 * np.dtype(dtype).itemsize - 1 - width), dtype=integer) << integer(width)
    ends = [mantissa % 2**width for mantissa in range(-4, 5)]
    some = np.concatenate([(exponents | integer(mantissa)).view(dtype) for mantissa in ends])
    rng = np.random.default_rng(3)
    any_bits = rng.integers(0, np.iinfo(integer).max, count, dtype=integer).view(dtype)
    usual = np.exp2(rng.uniform(-20, 20, count)).astype(dtype)
    with np.errstate(all="ignore"):
        return np.concatenate([any_bits, usual, some, -some, np.array(SPECIAL).astype(dtype)])
