"""A number looked up in a constant array, by an index that is computed: a node of a CasADi graph.

CasADi's scalar graphs have no such operation. The node is a call of a function that is never written out. Its name says
what it is, and its numbers are found by calling it. So CasADi evaluates, differentiates, stores and reads a graph with
lookups as any other. Machines print an access to an array.

    lookup_LABEL_SIZE_DIGEST(k)             the number at index k, which is whole, from 0 to SIZE - 1
    source_LABEL_SIZE_DIGEST(x, ..., k, n)  the index k, found at x, ...; notes what the arrays were made of

A source passes the index on, so that a graph remembers which table it reads and at which arguments. Where the last
argument is not negative it gives a number of what it notes. Derivatives are zero; CasADi calls functions that give
zeros, whose names have `fwd1_` or `adj1_` before.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import casadi

LOOKUP, SOURCE, ZERO = "lookup", "source", "zero"
_NAME = re.compile(rf"((?:fwd1_|adj1_)*)({LOOKUP}|{SOURCE})_(\w+)_(\d+)_([0-9a-f]{{16}})")
_KEPT = {"never_inline": True}
_VALUES: dict[str, np.ndarray] = {}


def lookup_function(label: str, values: np.ndarray) -> casadi.Function:
    """The function that gives `values` (n,) at an index. A label has letters, digits and single `_`."""
    import casadi as ca

    k = ca.MX.sym("k")
    return ca.Function(_name(LOOKUP, label, values), [k], [_at(values, k)], _KEPT)


def source_function(label: str, values: np.ndarray, arguments: int) -> casadi.Function:
    """The function of so many arguments, and of an index, that gives the index and notes `values` (n,)."""
    import casadi as ca

    x = [ca.MX.sym(f"x{n}") for n in range(arguments)]
    k, n = ca.MX.sym("k"), ca.MX.sym("n")
    result = ca.if_else(n < 0, k, _at(values, n))
    return ca.Function(_name(SOURCE, label, values), [*x, k, n], [result], _KEPT)


def _name(kind: str, label: str, values: np.ndarray) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").tobytes()).hexdigest()[:16]
    return f"{kind}_{label}_{len(values)}_{digest}"


def _at(values: np.ndarray, index: Any) -> Any:
    import casadi as ca

    return ca.MX(ca.DM(np.asarray(values, dtype=float)))[index]


def kind_of(name: str) -> str:
    """`LOOKUP` or `SOURCE` for the name of such a function, `ZERO` for that of a derivative; empty for any other."""
    found = _NAME.fullmatch(name)
    return "" if found is None else ZERO if found[1] else found[2]


def label_of(name: str) -> str:
    """The label of a function with such a name."""
    found = _NAME.fullmatch(name)
    return found[3] if found else name


def values_of(function: casadi.Function) -> np.ndarray:
    """The numbers (n,) that a lookup finds, or that a source notes."""
    name = function.name()
    if name not in _VALUES:
        found = _NAME.fullmatch(name)
        assert found is not None
        given: list[Any] = [0.0] * (function.n_in() - 1)
        values = np.array(function(*given, np.arange(float(found[4]))[None]), dtype=float).ravel()
        values.flags.writeable = False
        _VALUES[name] = values
    return _VALUES[name]


def called_functions(function: casadi.Function) -> dict[int, Any]:
    """The functions that an SX function calls, by the number of the instruction."""
    import casadi as ca

    calls = [k for k in range(function.n_instructions()) if function.instruction_id(k) == ca.OP_CALL]
    if not calls:
        return {}
    nodes = function.instructions_sx()
    return {k: nodes[k].which_function() for k in calls}
