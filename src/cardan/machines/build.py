"""From a program to machine code: out of the cache, or recorded, printed, compiled and stored."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from cardan.errors import CardanError
from cardan.machines.cache import audited, entry_digest, load_entry, store_entry
from cardan.machines.host import host, to_object
from cardan.program.program import Port, Program

if TYPE_CHECKING:
    from cardan.machines.llvm.march import March
    from cardan.machines.llvm.schedule import Schedule
    from cardan.program.graph import Graph


def without_empty_ports(program: Program) -> Program:
    """The program as compiled: NumPy refuses a frozen size of 0, so ports without elements are left out.

    A ufunc needs an input, so a program left with none gets a scalar that the body does not read.
    """
    inputs = tuple(port for port in program.inputs if port.size)
    outputs = tuple(port for port in program.outputs if port.size)
    return replace(program, inputs=inputs or (Port("batch", ()),), outputs=outputs)


def record(program: Program) -> Graph | Schedule | March:
    """Record the graph of a program, with the ports of `without_empty_ports`. A schedule or march stays as it is."""
    from cardan.machines.llvm.march import March
    from cardan.machines.llvm.schedule import is_schedule
    from cardan.program.graph import read

    function: Any = program.record()
    if is_schedule(function):
        for port in program.ports:
            if port.size == 0:
                raise CardanError(f"{program.name}: port {port.name!r} is empty; a loop over links numbers its ports")
        return cast("Schedule", function)
    if isinstance(function, March):
        _require_sizes(program, function.input_sizes, function.output_sizes)
        return function
    sizes = [function.numel_in(i) for i in range(function.n_in())]
    _require_sizes(program, sizes, [function.numel_out(i) for i in range(function.n_out())])
    graph = read(function)
    number = {kind: _numbers(ports) for kind, ports in (("in", program.inputs), ("out", program.outputs))}
    for k, op in enumerate(graph.op):
        if op == "input":
            port, element = graph.args[k]
            graph.args[k] = (number["in"][port], element)
    graph.outputs = [(number["out"][port], element, k) for port, element, k in graph.outputs]
    return graph


def _require_sizes(program: Program, inputs: list[int], outputs: list[int]) -> None:
    """Code that disagrees with its ports would read and write past their ends."""
    for kind, ports, sizes in (("input", program.inputs, inputs), ("output", program.outputs, outputs)):
        if [port.size for port in ports] != sizes:
            raise CardanError(f"{program.name}: recorded {kind} sizes {sizes} are not those of the ports {ports}")


def _numbers(ports: tuple[Port, ...]) -> dict[int, int]:
    kept = [j for j, port in enumerate(ports) if port.size]
    return {j: place for place, j in enumerate(kept)}


class Builder:
    """Makes the loops of one program; records its graph at most once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.compiled = without_empty_ports(program)
        self._graph: Graph | Schedule | March | None = None
        self._operations: dict[str, int] | None = None

    def graph(self) -> Graph | Schedule | March:
        """The recorded graph, or schedule of graphs."""
        if self._graph is None:
            self._graph = record(self.program)
        return self._graph

    def operations(self) -> dict[str, int]:
        """How many of each operation the graph holds."""
        if self._operations is None:
            from cardan.machines.llvm.schedule import count_operations, is_schedule

            recorded: Any = self.graph()
            self._operations = count_operations(recorded) if is_schedule(recorded) else recorded.operations()
        return self._operations

    def code(self, dtype: str, lanes: int) -> bytes:
        """Object code of the loop on `lanes` lanes (1 or the host's) of "double" or "float"."""
        program = self.compiled
        shapes = [[(port.name, port.shape) for port in ports] for ports in (program.inputs, program.outputs)]
        digest = entry_digest(program.key, program.name, shapes, dtype, lanes)
        payload = load_entry(digest)
        if payload is not None:
            (size,) = struct.unpack_from("<I", payload)
            facts, code = json.loads(payload[4 : 4 + size]), payload[4 + size :]
            if audited() and facts["text"] != _digest(self._text(dtype, lanes)):
                raise CardanError(
                    f"{program.name}: the cached kernel was compiled from another graph than the one recorded now; "
                    "Cardan's keys fail to tell the two apart: run with CARDAN_CACHE=0 and please report it"
                )
            self._operations = facts["operations"]
            return code
        text = self._text(dtype, lanes)
        code = to_object(text)
        facts = json.dumps({"operations": self.operations(), "text": _digest(text)}).encode()
        store_entry(digest, struct.pack("<I", len(facts)) + facts + code)
        return code

    def _text(self, dtype: str, lanes: int) -> str:
        """What is compiled, as LLVM's text."""
        from cardan.machines.llvm.batch_loop import print_loop

        return print_loop(self.graph(), self.compiled, lanes, host().lanes(dtype), dtype)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
