"""Functions of time and state in a native file: expressions of `t`, of `q` and `v` of a joint, of poses and twists.

A law has one expression for each number it gives, and perhaps named values, listed under `where`, that several of them
share. It is checked when the file is read, and run on CasADi symbols when the mechanism is built.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cardan.io.arithmetic import Lookup, Quantity, Value
from cardan.io.expression import CONSTANTS, FUNCTIONS, ExpressionError, Name
from cardan.io.spot import Spot, unknown_name

Variables = dict[str, tuple[int, ...]]
"""Names of variables and their shapes: () for a number, (n,) for a column, (3, 3) for a rotation."""
TIME: Variables = {"t": ()}
OF_BODY: Variables = {"rotation": (3, 3), "position": (3,), "twist": (6,)}
RESERVED = re.compile(rf"t|q|v|({'|'.join(OF_BODY)})\d+")


def of_joint(nq: int, nv: int) -> Variables:
    """Variables of a drive: time, and the joint's own coordinates and rates."""
    return {"t": (), "q": (nq,), "v": (nv,)}


def of_bodies(count: int) -> Variables:
    """Variables of a force on bodies, counted from 1: `rotation1` (3, 3), `position1` (3), `twist1` (6)."""
    return TIME | {f"{name}{k + 1}": shape for k in range(count) for name, shape in OF_BODY.items()}


@dataclass
class Law:
    """Expressions at their places in the file; calling it gives their values from those of the variables."""

    variables: Variables
    outputs: list[Spot]
    quantities: list[str]
    where: dict[str, Spot] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Try them on symbols, so that what is wrong is said now."""
        import casadi as ca

        own = symbols(self.variables)
        self.results = self._read(own)
        graphs = [result for result in self.results if not isinstance(result, float)]
        self.graph = ca.Function("law", list(own.values()), graphs)

    def __call__(self, **values: Any) -> list[Any]:
        """Give a list of numbers and graphs."""
        graphs = iter(self.graph.call([values[name] for name in self.variables]))
        return [result if isinstance(result, float) else next(graphs) for result in self.results]

    def _read(self, values: dict[str, Any]) -> list[Any]:
        """Read the expressions, from these values of the variables."""
        local: dict[str, Value] = {}
        lookup = self._lookup(values, local)
        for name, spot in self.where.items():
            local[name] = spot.evaluated(spot.expression(), lookup) if spot.is_expression else spot.quantity()
        results = []
        for spot, quantity in zip(self.outputs, self.quantities, strict=True):
            value = spot.evaluated(spot.expression(), lookup) if spot.is_expression else spot.quantity(quantity)
            results.append(spot.checked(value, quantity) if isinstance(value, Quantity) else value)
        return results

    def _lookup(self, values: dict[str, Any], local: dict[str, Value]) -> Lookup:
        def lookup(name: Name) -> Value:
            if name.name in local and not name.index:
                return local[name.name]
            if name.name in self.variables:
                return entry(name, self.variables[name.name], values[name.name])
            parameters = self.outputs[0].parameters
            if name.name in parameters and not name.index:
                return parameters[name.name]
            raise unknown_name(name, [*self.variables, *local, *parameters, "pi"])

        return lookup


def entry(name: Name, shape: tuple[int, ...], value: Any) -> Any:
    """An entry of a variable; a column of one may do without its number."""
    index = name.index or ((0,) if shape == (1,) else ())
    if len(index) != len(shape):
        example = f"{name.name}[{', '.join('0' for _ in shape)}]"
        wanted = f"has {' x '.join(map(str, shape))} entries; write {example}" if shape else "is a single number"
        raise ExpressionError(f"{name.name!r} {wanted}", name.span)
    if any(i >= n for i, n in zip(index, shape, strict=True)):
        raise ExpressionError(f"{name.name!r} has {' x '.join(map(str, shape))} entries, counted from 0", name.span)
    if not shape:
        return value
    return value[index[0]] if len(index) == 1 else value[index[0], index[1]]


def symbols(variables: Variables) -> dict[str, Any]:
    """CasADi symbols for the variables."""
    import casadi as ca

    return {name: ca.SX.sym(name, *(shape or (1,))) for name, shape in variables.items()}


def taken(name: str) -> str:
    """Why a name cannot be that of a parameter or a shared value, or nothing."""
    if not name.isascii() or not name.isidentifier():
        return "a name in expressions is letters, digits and _, and begins with a letter"
    if name in FUNCTIONS or name in CONSTANTS:
        return "that is a name of the format's own"
    return "that is a variable of functions" if RESERVED.fullmatch(name) else ""


def drive_function(law: Law) -> Callable[..., Any]:
    """The law of a drive as the builder wants it."""
    return lambda t, q, v: law(t=t, q=q, v=v)


def motion_function(law: Law) -> Callable[..., Any]:
    """The law of a motion as the builder wants it."""
    return lambda t: law(t=t)[0]


def force_function(law: Law) -> Callable[..., Any]:
    """The law of a force on bodies as the builder wants it: six numbers a body."""

    def function(t: Any, poses: Any, twists: Any) -> list[list[Any]]:
        values = {"t": t}
        for k, (pose, twist) in enumerate(zip(poses, twists, strict=True), 1):
            values |= {f"rotation{k}": pose.rotation, f"position{k}": pose.position, f"twist{k}": twist}
        numbers = law(**values)
        return [numbers[6 * k : 6 * k + 6] for k in range(len(poses))]

    return function
