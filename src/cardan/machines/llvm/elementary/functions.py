"""The elementary functions that printed code may call, by the names of C99, on the lanes of a module.

All are computed in double. On lanes of float the arguments are widened and the result is rounded; only sine and cosine
have a path of their own there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cardan.machines.llvm.elementary.circular import define_sincos, define_sincos_near, define_tan, limit_of_near
from cardan.machines.llvm.elementary.error_function import erf
from cardan.machines.llvm.elementary.exponential import (
    cosh,
    cosh_anywhere,
    exp,
    exp_anywhere,
    expm1,
    expm1_anywhere,
    sinh,
    sinh_anywhere,
    tanh,
)
from cardan.machines.llvm.elementary.hypot import hypot, hypot_anywhere
from cardan.machines.llvm.elementary.inverse_circular import acos, asin, atan, atan2, atan2_anywhere
from cardan.machines.llvm.elementary.lanes import Number, define
from cardan.machines.llvm.elementary.logarithm import (
    acosh,
    acosh_anywhere,
    asinh,
    asinh_anywhere,
    atanh,
    log,
    log1p,
    log1p_anywhere,
    log_anywhere,
)
from cardan.machines.llvm.elementary.power import pow, pow_anywhere
from cardan.machines.llvm.elementary.remainder import fmod, fmod_anywhere, remainder, remainder_anywhere
from cardan.machines.llvm.module import Module, VectorType


@dataclass(frozen=True)
class _Function:
    """How many arguments a function has, and how it is defined on lanes of double."""

    arity: int
    define: Callable[[Module, VectorType, str], None]


def _of(formula: Callable[..., Number], arity: int = 1, anywhere: Callable[..., Number] | None = None) -> _Function:
    """A function that one formula gives; or two, the second for the arguments that the first one leaves."""

    def print_formula(module: Module, t: VectorType, symbol: str) -> None:
        define(module, t, symbol, lambda *x: [formula(*x)], arity)
        if anywhere is not None:
            define(module, t, f"{symbol}.cold", lambda *x: [anywhere(*x)], arity, attributes="noinline cold")

    return _Function(arity, print_formula)


FUNCTIONS = {
    "tan": _Function(1, define_tan),
    "asin": _of(asin),
    "acos": _of(acos),
    "atan": _of(atan),
    "sinh": _of(sinh, 1, sinh_anywhere),
    "cosh": _of(cosh, 1, cosh_anywhere),
    "tanh": _of(tanh),
    "asinh": _of(asinh, 1, asinh_anywhere),
    "acosh": _of(acosh, 1, acosh_anywhere),
    "atanh": _of(atanh),
    "exp": _of(exp, 1, exp_anywhere),
    "log": _of(log, 1, log_anywhere),
    "log1p": _of(log1p, 1, log1p_anywhere),
    "expm1": _of(expm1, 1, expm1_anywhere),
    "erf": _of(erf),
    "pow": _of(pow, 2, pow_anywhere),
    "atan2": _of(atan2, 2, atan2_anywhere),
    "hypot": _of(hypot, 2, hypot_anywhere),
    "fmod": _of(fmod, 2, fmod_anywhere),
    "remainder": _of(remainder, 2, remainder_anywhere),
}
"""All but sine and cosine, which `sincos` gives together."""


def elementary(module: Module, name: str) -> str:
    """Define a function on the lanes of a module; its symbol."""
    symbol, t = f"vec.{name}", module.type
    if symbol not in module.functions:
        function = FUNCTIONS[name]
        if t.scalar == "double":
            function.define(module, t, symbol)
        else:
            wide = f"double.{name}"
            function.define(module, VectorType("double", t.width), wide)
            module.functions[symbol] = _print_rounded(symbol, wide, function.arity, t)
    return f"@{symbol}"


def sincos(module: Module) -> str:
    """Define sine and cosine together, `{V, V} @sincos(V)`, on the lanes of a module; their symbol."""
    if "sincos" not in module.functions:
        define_sincos(module)
    return "@sincos"


def sincos_near(module: Module) -> tuple[str, float]:
    """Define sine and cosine of angles up to a limit, without a branch; their symbol and the limit."""
    if "sincos.near" not in module.functions:
        define_sincos_near(module)
    return "@sincos.near", limit_of_near(module.type)


def _print_rounded(symbol: str, wide: str, arity: int, t: VectorType) -> str:
    """IR of a function of float by that of double."""
    v, d = t.vector, t.of("double")
    lines = [f"define internal {v} @{symbol}({', '.join(f'{v} %x{n}' for n in range(arity))}) {{"]
    lines += [f"  %d{n} = fpext {v} %x{n} to {d}" for n in range(arity)]
    lines.append(f"  %y = call {d} @{wide}({', '.join(f'{d} %d{n}' for n in range(arity))})")
    return "\n".join([*lines, f"  %r = fptrunc {d} %y to {v}", f"  ret {v} %r", "}"])
