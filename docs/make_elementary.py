"""Fit the coefficients of the elementary functions, and measure the error of each.

    python docs/make_elementary.py fit        # prints src/cardan/machines/llvm/elementary/coefficients.py
    python docs/make_elementary.py [count]    # prints the table of errors measured against mpmath

A polynomial goes through the function at Chebyshev's nodes, in 400 bits, which is within a small factor of the best
one; its degree is such that the error is below what rounding does.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.prec = 400


def fit(f: Callable[[mp.mpf], mp.mpf], a: mp.mpf, b: mp.mpf, degree: int) -> list[float]:
    """Coefficients of the polynomial through f at Chebyshev's nodes of [a, b], the highest power first."""
    n = degree + 1
    nodes = [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    powers = mp.matrix(n, n)
    for i, x in enumerate(nodes):
        for j in range(n):
            powers[i, j] = x**j
    return [float(c) for c in reversed(list(mp.lu_solve(powers, mp.matrix([f(x) for x in nodes]))))]


def parts(value: mp.mpf, zeros: int = 0) -> tuple[float, float]:
    """A number as the sum of two doubles, the first with so many zeros at its end."""
    unit = mp.mpf(2) ** (mp.floor(mp.log(value, 2)) - 52 + zeros)
    high = float(mp.nint(value / unit) * unit)
    return high, float(value - mp.mpf(high))


def coefficients() -> str:
    """The text of the file of coefficients."""
    root = mp.sqrt
    edge = mp.mpf("1.001")
    tail = mp.mpf(4)

    def of_tail(u: mp.mpf) -> mp.mpf:
        x = tail * (1 + u) / (1 - u)
        return mp.exp(x * x) * mp.erfc(x)

    ln2, eighth = mp.log(2), (root(2) - 1) ** 2
    tables = {
        "EXP": (fit(lambda r: (mp.exp(r) - 1 - r - r * r / 2) / r**3, -ln2 / 2 * edge, ln2 / 2 * edge, 9),
                "(e^r - 1 - r - r^2/2)/r^3 for |r| <= ln(2)/2"),
        "LOG": (fit(lambda z: (mp.atanh(root(z)) / root(z) - 1 - z / 3) / z**2, mp.mpf(0), eighth**2 * edge, 7),
                "(atanh(s)/s - 1 - s^2/3)/s^4 of s^2, for |s| <= (sqrt(2) - 1)^2"),
        "ASIN": (fit(lambda z: (mp.asin(root(z)) / root(z) - 1) / z, mp.mpf(0), mp.mpf("0.25"), 12),
                 "(asin(s)/s - 1)/s^2 of s^2, for |s| <= 1/2"),
        "ATAN": (fit(lambda z: (mp.atan(root(z)) / root(z) - 1) / z, mp.mpf(0), eighth * edge, 11),
                 "(atan(t)/t - 1)/t^2 of t^2, for |t| <= tan(pi/8)"),
        "SIN": (fit(lambda z: (mp.sin(root(z)) / root(z) - 1) / z, mp.mpf(0), (mp.pi / 4) ** 2 * edge, 6),
                "(sin(r)/r - 1)/r^2 of r^2, for |r| <= pi/4"),
        "COS": (fit(lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, mp.mpf(0), (mp.pi / 4) ** 2 * edge, 6),
                "(cos(r) - 1 + r^2/2)/r^4 of r^2, for |r| <= pi/4"),
        "ERF": (fit(lambda z: (mp.erf(root(z)) / root(z) - 2 / root(mp.pi)) / z, mp.mpf(0), mp.mpf(1), 11),
                "(erf(x)/x - 2/sqrt(pi))/x^2 of x^2, for |x| <= 1"),
        "ERFC": (fit(of_tail, (1 - tail) / (1 + tail), (6 - tail) / (6 + tail), 16),
                 "e^(x^2) (1 - erf(x)) of (x - 4)/(x + 4), for x from 1 to 6"),
    }  # fmt: skip
    constants = {
        "LN2": (parts(ln2, 11), "ln 2, the first part with 11 zeros at its end"),
        "THIRD": (parts(mp.mpf(1) / 3), "1/3"),
        "PI": (parts(+mp.pi), "pi"),
        "THREE_QUARTER_PI": (parts(3 * mp.pi / 4), "3 pi/4"),
        "TWO_OVER_SQRT_PI": (parts(2 / root(mp.pi)), "2/sqrt(pi)"),
    }
    lines = [
        '"""Coefficients of the elementary functions, fitted by `docs/make_elementary.py`; highest power first."""',
        "",
    ]
    for name, (values, what) in {**tables, **constants}.items():
        lines += [f"# {what}", f"{name} = (", *(f"    {v!r}," for v in values), ")"]
    return "\n".join(lines) + "\n"


# ranges of uniform arguments for each function, beside numbers of any bits and of any size from 1e-20 to 1e3
RANGES: dict[str, list[tuple[float, float]]] = {
    "sin": [(-4, 4), (-(2.0**30), 2.0**30)], "cos": [(-4, 4), (-(2.0**30), 2.0**30)],
    "tan": [(-4, 4), (-(2.0**30), 2.0**30), (0.7, 0.79)],
    "asin": [(-1, 1), (0.5, 0.53)], "acos": [(-1, 1), (0.5, 0.6), (0.9, 1)], "atan": [(-3, 3), (0.4, 0.45)],
    "sinh": [(-1, 1), (-711, 711)], "cosh": [(-1, 1), (-711, 711)], "tanh": [(-1, 1), (-22, 22)],
    "asinh": [(-1, 1), (-20, 20)], "acosh": [(1, 1.01), (1, 20)], "atanh": [(-1, 1), (-0.2, 0.2)],
    "exp": [(-1, 1), (-746, 710)], "log": [(0.7, 1.5), (0, 1e3)], "log1p": [(-1, 1), (0.2, 0.4)],
    "expm1": [(-1, 1), (-45, 710), (0.34, 0.41)], "erf": [(-1, 1), (-6, 6)],
}  # fmt: skip
PAIRS = ("pow", "atan2", "hypot")
EXACT = {name: getattr(mp, name) for name in (*RANGES, "atan2", "hypot")} | {"pow": mp.power}


def arguments(name: str, count: int, dtype: type, rng: np.random.Generator) -> list[np.ndarray]:
    """Columns of finite arguments of a function, of both signs and all sizes."""

    def any_bits() -> np.ndarray:
        wide = np.frombuffer(rng.bytes(8 * count), np.float64 if dtype is np.float64 else np.float32)
        return wide[np.isfinite(wide)][:count].astype(np.float64)

    def any_size() -> np.ndarray:
        return rng.choice([-1.0, 1.0], count) * 10 ** rng.uniform(-20, 3, count)

    if name in PAIRS:
        x = [any_bits(), 10 ** rng.uniform(-3, 3, count), rng.uniform(-3, 3, count), rng.uniform(0.9, 1.1, count)]
        y = [any_bits(), rng.uniform(-300, 300, count), rng.uniform(-3, 3, count), rng.uniform(-8e3, 8e3, count)]
        n = [min(map(len, both)) for both in zip(x, y, strict=True)]
        return [np.concatenate([p[:k] for p, k in zip(column, n, strict=True)]).astype(dtype) for column in (x, y)]
    parts_ = [any_bits(), any_size(), *(rng.uniform(a, b, count) for a, b in RANGES[name])]
    return [np.concatenate(parts_).astype(dtype)]


def ulps(name: str, row: tuple[float, ...], result: Any) -> float:
    """Error of a result in units in the last place of the exact one; 0 where that is not a finite real number."""
    if name == "pow" and row[0] != 0 and not 1e-4 < abs(row[1] * math.log(abs(row[0]))) < 800:
        return 0.0  # 1, 0 or infinite
    with mp.workprec(1300 if name in ("sin", "cos", "tan") and abs(row[0]) > 1e3 else 160):
        try:
            exact = EXACT[name](*map(mp.mpf, row))
        except (ZeroDivisionError, ValueError, OverflowError):
            return 0.0
        if isinstance(exact, mp.mpc) or not mp.isfinite(exact):
            return 0.0
        with np.errstate(all="ignore"):
            near = result.dtype.type(exact)
        if not np.isfinite(near):
            return 0.0
        return float(abs(mp.mpf(float(result)) - exact) / mp.mpf(float(np.spacing(np.abs(near)))))


def measure(count: int) -> str:
    """The table of the largest errors, with the number of arguments."""
    import casadi as ca

    from cardan.machines.ufunc.kernel import compile_program
    from cardan.program.program import Port, Program

    lines = ["| function | double, ulp | float, ulp | arguments |", "|---|---|---|---|"]
    for name in EXACT:
        ports = tuple(Port(letter, ()) for letter in ("xy" if name in PAIRS else "x"))

        def record(name: str = name, ports: tuple[Port, ...] = ports) -> Any:
            symbols = [ca.SX.sym(port.name) for port in ports]
            result = symbols[0] ** symbols[1] if name == "pow" else getattr(ca, name)(*symbols)
            return ca.Function(name, symbols, [result])

        kernel = compile_program(Program(name, ports, (Port("z", ()),), f"accuracy of {name}", record))
        rng, worst = np.random.default_rng(0), []
        for dtype in (np.float64, np.float32):
            columns = arguments(name, count, dtype, rng)
            with np.errstate(all="ignore"):
                results = kernel(*columns)
            rows = zip(*(map(float, column) for column in columns), strict=True)
            worst.append(max(ulps(name, row, result) for row, result in zip(rows, results, strict=True)))
        lines.append(f"| `{name}` | {worst[0]:.2f} | {worst[1]:.3f} | 2 x {len(columns[0]):,} |")
        print(lines[-1], file=sys.stderr, flush=True)
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["fit"]:
        print(coefficients(), end="")
    else:
        print(measure(int(sys.argv[1]) if sys.argv[1:] else 5000))
