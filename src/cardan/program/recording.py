"""Run a program's recorder and check that what it recorded fits the ports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cardan.errors import CardanError
from cardan.program.graph import Graph, read
from cardan.program.march import March
from cardan.program.program import Port, Program
from cardan.program.schedule import Schedule

Recorded = Graph | Schedule | March
"""What a machine prints. Each has `operations()` and `state_size`."""


def record(program: Program) -> Recorded:
    """Record a program. The ports of a graph are numbered as in `program.without_empty_ports()`."""
    recorded: Any = program.record()
    if isinstance(recorded, Schedule):
        for port in program.ports:
            if port.size == 0:
                raise CardanError(
                    f"{program.name}: port {port.name!r} is empty; a schedule needs elements in every port"
                )
        return recorded
    if isinstance(recorded, March):
        _require_sizes(program, recorded.input_sizes, recorded.output_sizes)
        return recorded
    graph = read(recorded)
    _require_sizes(program, graph.input_sizes, graph.output_sizes)
    return _without_empty_ports(graph, program.without_empty_ports().inputs)


def _require_sizes(program: Program, inputs: Sequence[int], outputs: Sequence[int]) -> None:
    """Refuse code that would read or write past the end of its ports."""
    for kind, ports, sizes in (("input", program.inputs, inputs), ("output", program.outputs, outputs)):
        if [port.size for port in ports] != [*sizes]:
            raise CardanError(f"{program.name}: recorded {kind} sizes {[*sizes]} are not those of the ports {ports}")


def _without_empty_ports(graph: Graph, inputs: tuple[Port, ...]) -> Graph:
    """The graph with its ports numbered anew, those without elements left out."""
    place_in, place_out = _places(graph.input_sizes), _places(graph.output_sizes)
    args = [
        (place_in[args[0]], args[1]) if op == "input" else args for op, args in zip(graph.op, graph.args, strict=True)
    ]
    outputs = [(place_out[port], element, k) for port, element, k in graph.outputs]
    output_sizes = [size for size in graph.output_sizes if size]
    return Graph(graph.op, args, outputs, [port.size for port in inputs], output_sizes)


def _places(sizes: Sequence[int]) -> dict[int, int]:
    """New number of every port that has elements."""
    kept = [port for port, size in enumerate(sizes) if size]
    return {port: place for place, port in enumerate(kept)}
