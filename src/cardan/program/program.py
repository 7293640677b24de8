"""What is computed: named arrays in, named arrays out, how to record what lies between them, and recording it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cardan.errors import CardanError, InputError

if TYPE_CHECKING:
    import casadi

    from cardan.program.graph import Graph
    from cardan.program.march import March
    from cardan.program.schedule import Schedule
    from cardan.program.stages import Stages

    Recorded = Graph | Schedule | March | Stages  # what a machine prints: each has `operations()` and `state_size`


@dataclass(frozen=True)
class Port:
    """One array in or out: its name and its core shape, elements in C order.

    The core shape has at most two axes, as a CasADi matrix has; `()` is a scalar.
    """

    name: str
    shape: tuple[int, ...]
    entries: str = field(default="", compare=False, repr=False)
    """What its entries belong to, for messages."""

    def __post_init__(self) -> None:
        if len(self.shape) > 2 or any(n < 0 for n in self.shape):
            raise InputError(f"port {self.name!r}: core shape {self.shape} is not that of a matrix (at most 2 axes)")

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns in memory: a vector is one row of `n`."""
        if len(self.shape) == 2:
            return self.shape[0], self.shape[1]
        return 1, self.size


@dataclass(frozen=True)
class Program:
    """What to compute.

    `record` returns a CasADi SX function with one dense input and one output per port, a schedule, march or stages. It
    runs only when no compiled code is cached. `key` is a hex digest that identifies the result without recording it.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    key: str
    record: Callable[[], casadi.Function | Schedule | March | Stages]
    repeats: int = 1
    """About how often a call runs what is recorded; decides whether threads are worthwhile."""

    @property
    def ports(self) -> tuple[Port, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs

    def without_empty_ports(self) -> Program:
        """The program as compiled: code gets no pointers to arrays without elements.

        NumPy refuses such ports too, and a ufunc without inputs. So a program left with no input gets a scalar that it
        does not read.
        """
        inputs = tuple(port for port in self.inputs if port.size)
        outputs = tuple(port for port in self.outputs if port.size)
        return replace(self, inputs=inputs or (Port("batch", ()),), outputs=outputs)


def record(program: Program) -> Recorded:
    """Record a program. The ports of a graph are numbered as in `program.without_empty_ports()`."""
    from cardan.program.graph import read
    from cardan.program.march import March  # which code from the cache does without
    from cardan.program.schedule import Schedule
    from cardan.program.stages import Stages

    recorded: Any = program.record()
    if isinstance(recorded, (Schedule, Stages)):
        for port in program.ports:
            if port.size == 0:
                what = "a schedule needs" if isinstance(recorded, Schedule) else "stages need"
                raise CardanError(f"{program.name}: port {port.name!r} is empty; {what} elements in every port")
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
    from cardan.program.graph import Graph

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
