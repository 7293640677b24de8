"""Functions of time and state written as the expressions of a native file that `cardan.io.law` reads."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from cardan.errors import ModelError
from cardan.io.expression import Name
from cardan.io.law import OF_BODY
from cardan.io.traced import Text, Untranslatable, as_expressions
from cardan.model.body import Joint
from cardan.model.force import Coupling, Force
from cardan.model.joint import Kind

Entries = dict[str, Any]


def force_entries(force: Force, body_name: Callable[[int], str], joints: tuple[Joint, ...]) -> Entries:
    """The function of a drive or of a user's force as expressions."""
    traced = force.traced(joints) if not _is_graph(force.function) else force
    if force.kind.name == "drive":
        text = _expressions(traced.owner, traced.function, _drive_variable(joints[force.on[0]].kind))
        efforts = [_calculated(effort) for effort in text.outputs[0]]
        return {"effort": efforts[0] if len(efforts) == 1 else efforts} | _where(text)
    count = len(force.on)
    text = _expressions(traced.owner, traced.function, lambda port, k: _force_variable(count, port, k))
    wrenches = []
    for column in text.outputs:
        six = [_calculated(x) for x in column]
        parts = {"moment": six[:3], "force": six[3:]}
        wrenches.append({key: part for key, part in parts.items() if part != ["0"] * 3})
    return {"bodies": [body_name(b) for b in force.on], "wrenches": wrenches} | _where(text)


def motion_entries(coupling: Coupling) -> Entries:
    """The function of a prescribed motion as an expression of time."""
    traced = coupling if _is_graph(coupling.function) else coupling.traced()
    text = _expressions(coupling.owner, traced.function, lambda port, k: Name("t"))
    return {"value": f"={text.outputs[0][0]}"} | _where(text)


def _is_graph(function: Any) -> bool:
    return type(function).__module__.partition(".")[0] == "casadi"


def _drive_variable(kind: Kind) -> Any:
    def variable(port: int, k: int) -> Name:
        if port == 0:
            return Name("t")
        many = (kind.nq if port == 1 else kind.nv) > 1
        return Name("q" if port == 1 else "v", (k,) if many else ())

    return variable


def _force_variable(count: int, port: int, k: int) -> Name:
    """Arguments of a traced force: time, then rotation and position of each body, then the twists."""
    rotation, position, twist = OF_BODY
    if port == 0:
        return Name("t")
    if port > 2 * count:
        return Name(f"{twist}{port - 2 * count}", (k,))
    body = (port + 1) // 2
    return Name(f"{rotation}{body}", (k % 3, k // 3)) if port % 2 else Name(f"{position}{body}", (k,))


def _expressions(owner: str, function: Any, variable: Any) -> Text:
    try:
        return as_expressions(function, variable)
    except Untranslatable as error:
        raise ModelError(f"{owner}: its function cannot be written as expressions: {error}") from None


def _calculated(text: str) -> str:
    """An expression with the sign that begins it; a plain number needs none."""
    return text if re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", text) else f"={text}"


def _where(text: Text) -> Entries:
    return {"where": {name: f"={value}" for name, value in text.where.items()}} if text.where else {}
