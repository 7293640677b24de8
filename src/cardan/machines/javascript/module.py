"""A program as an ES module: the function, checks of its arguments, and what its arrays are.

    import { forward_dynamics } from "./forward_dynamics.mjs";
    const { a } = forward_dynamics(q, v, tau);

Arguments come in the order of the program's inputs: a number for a scalar port, else any array of numbers
(`Float64Array`, `Array`) with the elements in C order, row by row. The result is an object with one entry per output, a
number or a `Float64Array` in C order. One call is one evaluation; there is no batch. `inputs` and `outputs` list
name and shape of every port.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cardan.errors import CardanError
from cardan.machines.javascript.graph import print_graph
from cardan.machines.javascript.operations import definition
from cardan.program.graph import Graph

if TYPE_CHECKING:
    from cardan.program.program import Port, Program, Recorded

_CHECK = """function check(name, given, size) {
  const right = size === null ? typeof given === "number" : given != null && given.length === size;
  if (right) return;
  const wanted = size === null ? "a number" : `an array of ${size} numbers`;
  const got = given != null && given.length !== undefined ? `one of ${given.length}` : typeof given;
  throw new TypeError(`NAME: ${name} must be ${wanted}, got ${got}`);
}"""


@dataclass(frozen=True)
class JavaScriptPrinter:
    """Prints graphs as ES modules for browsers and Node.js.

    `about` are lines of comment at the top; `exports` are constants, by name, that the module has besides.
    """

    about: tuple[str, ...] = ()
    exports: Mapping[str, Any] = field(default_factory=dict)

    def print_program(self, program: Program, recorded: Recorded) -> str:
        """The module, which exports `inputs`, `outputs` and a function with the program's name."""
        if not isinstance(recorded, Graph):
            raise CardanError(
                f"{program.name}: JavaScript is printed of straight-line graphs only, and this is a "
                f"{type(recorded).__name__.lower()}; print the quantity that it repeats, and write the loop around it"
            )
        for name in (program.name, *(port.name for port in program.ports)):
            if not name.isidentifier() or name.startswith("$"):
                raise CardanError(f"{program.name}: {name!r} cannot be a name in JavaScript")
        statements, outputs, functions = print_graph(recorded, [port for port in program.inputs if port.size])
        values = dict(zip((port.name for port in program.outputs if port.size), outputs, strict=True))
        result = ",\n".join(f"    {port.name}: {_value(port, values.get(port.name, []))}" for port in program.outputs)
        checks = [
            f'  check("{port.name}", {port.name}, {port.size if port.shape else "null"});' for port in program.inputs
        ]
        return "\n".join(
            [
                *(f"// {line}" for line in (*self.about, "Arrays are in C order, row by row. Printed by Cardan.")),
                f"export const inputs = {_shapes(program.inputs)};",
                f"export const outputs = {_shapes(program.outputs)};",
                *(f"export const {name} = {json.dumps(value)};" for name, value in self.exports.items()),
                *(definition(name) for name in sorted(functions)),
                _CHECK.replace("NAME", program.name),
                f"export function {program.name}({', '.join(port.name for port in program.inputs)}) {{",
                *checks,
                *statements,
                f"  return {{\n{result}\n  }};",
                "}\n",
            ]
        )


def _shapes(ports: Sequence[Port]) -> str:
    return json.dumps([{"name": port.name, "shape": port.shape} for port in ports])


def _value(port: Port, elements: list[str]) -> str:
    return f"new Float64Array([{','.join(elements)}])" if port.shape else elements[0]
