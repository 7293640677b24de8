"""What a graph computes, as a digest that is the same in every version of CasADi.

CasADi's own `serialize` writes another text in another version, for the same graph.
"""

from __future__ import annotations

import hashlib
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

from cardan.lookup import called_functions

if TYPE_CHECKING:
    import casadi


def graph_digest(function: casadi.Function) -> str:
    """Hex digest of an SX function: operations by name, constants, sparsity; whatever their order and numbering."""
    import casadi as ca

    names, called = _operations(), dict[int, Any]()
    place: dict[int, bytes] = {}  # digest of what each place of the work vector holds
    results: list[tuple[int, int, str]] = []
    for k in range(function.n_instructions()):
        code, reads, writes = (
            function.instruction_id(k), function.instruction_input(k), function.instruction_output(k),
        )  # fmt: skip
        if code == ca.OP_OUTPUT:
            results.append((writes[0], writes[1], place[reads[0]].hex()))
            continue
        if code == ca.OP_CONST:
            parts = [struct.pack("<d", function.instruction_constant(k))]
        elif code == ca.OP_INPUT:
            parts = [struct.pack("<qq", *reads)]
        else:
            parts = [place[i] for i in reads]
        name = names[code]
        if code == ca.OP_CALL:
            called = called or called_functions(function)
            name = called[k].name()
        place[writes[0]] = hashlib.sha256(b" ".join([name.encode(), *parts])).digest()
    ports = [function.sparsity_in(i) for i in range(function.n_in())]
    ports += [function.sparsity_out(i) for i in range(function.n_out())]
    shapes = [(port.shape, port.row(), port.colind()) for port in ports]
    return hashlib.sha256(repr((function.n_in(), shapes, sorted(results))).encode()).hexdigest()


@cache
def _operations() -> dict[int, str]:
    """Names of CasADi's operations by their numbers, which differ from version to version."""
    import casadi as ca

    return {getattr(ca, name): name for name in dir(ca) if name.startswith("OP_")}
