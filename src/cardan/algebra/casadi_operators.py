"""The four operators of CasADi's symbols without its search for a fitting overload.

`x * y` of two symbols takes CasADi 13 us. It is one of many functions with one name, and before it tries symbols it
tries to read both operands as arrays of numbers. `SX.binary`, of which there is one, does the same in 2 us and gives
the same expression. Writing equations is mostly such operations (docs/decisions/0094).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def quicken_operators() -> None:
    """Let `+ - * /` of symbols, with symbols and floats, be `SX.binary`; of all else they stay CasADi's own."""
    import casadi as ca

    operations = {"add": ca.OP_ADD, "sub": ca.OP_SUB, "mul": ca.OP_MUL, "truediv": ca.OP_DIV}
    symbols: Any = ca.SX
    for name, operation in operations.items():
        for side, make in (("", _left), ("r", _right)):
            own = f"__{side}{name}__"
            setattr(symbols, own, make(symbols, operation, getattr(symbols, own)))


Operator = Callable[[Any, Any], Any]


def _left(symbols: Any, operation: int, slow: Operator) -> Operator:
    """The operator of a symbol on the left."""
    binary = symbols.binary

    def operator(x: Any, y: Any) -> Any:
        return binary(operation, x, y) if isinstance(y, (symbols, float)) else slow(x, y)

    return operator


def _right(symbols: Any, operation: int, slow: Operator) -> Operator:
    """The operator of a symbol on the right of a number."""
    binary = symbols.binary

    def operator(x: Any, y: Any) -> Any:
        return binary(operation, y, x) if isinstance(y, float) else slow(x, y)

    return operator
