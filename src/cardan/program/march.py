"""A march: a step and the loop around it, which repeats the step until every system is done.

A step is one graph, or several in order, some of them repeated: `(state..., scratch..., data...) -> (state...,
scratch..., busy)`. Many systems may march side by side. They are independent: the step must leave a system that is done
as it is, while its neighbours go on.

As a program a march has the state and the data as inputs, then the largest number of steps, and the state as outputs.
Scratch lasts as long as the call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cardan.errors import CardanError
from cardan.lazy import cached_property
from cardan.program.graph import Graph, read, total_operations
from cardan.program.schedule import Schedule

if TYPE_CHECKING:
    import casadi

BUSY = -1  # among the numbers of what a piece writes: whether the system goes on


@dataclass(frozen=True)
class Scheduled:
    """A schedule as a piece of a step: which of the step's arguments, by number, it reads and which it writes."""

    schedule: Schedule
    reads: tuple[int, ...]
    writes: tuple[int, ...]

    def operations(self) -> dict[str, int]:
        """How many of each operation the piece takes."""
        return self.schedule.operations()


@dataclass(frozen=True)
class Each:
    """A graph as a piece of a step, of some of its arguments, by number; run for `count` elements in turn.

    For element i an argument of `count` rows is its row i; any other is the whole of it. What one element writes, the
    next one reads: this is how sums are taken.
    """

    function: casadi.Function
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    count: int = 1

    @cached_property
    def graph(self) -> Graph:
        """The graph for one element."""
        return read(self.function)

    def operations(self) -> dict[str, int]:
        """How many of each operation the piece takes."""
        return total_operations([(self.graph.operations(), self.count)])


Piece = Graph | Scheduled | Each


@dataclass(frozen=True)
class March:
    """The recorded parts of a step, each with how often it runs, and how many of their inputs are state and scratch.

    A part is an SX function of all arguments, or several pieces in order: such functions, or graphs read from them,
    schedules over a large model, and graphs for each element. `arguments` are the numbers in each argument of the step;
    they must be given where the first piece is not a function of all arguments.
    """

    parts: tuple[tuple[Any, int], ...]
    carried: int
    scratch: int = 0
    arguments: tuple[int, ...] = ()

    @cached_property
    def pieces(self) -> list[tuple[tuple[Piece, ...], int]]:
        """The pieces of each part, SX functions read as graphs, with how often the part runs."""
        parts = [(part if isinstance(part, tuple) else (part,), times) for part, times in self.parts]
        return [
            (tuple(p if isinstance(p, (Graph, Scheduled, Each)) else read(p) for p in pieces), times)
            for pieces, times in parts
        ]

    @cached_property
    def argument_sizes(self) -> list[int]:
        """Numbers in each argument of the step: state, scratch, data."""
        if self.arguments:
            return list(self.arguments)
        first = self.pieces[0][0][0]
        if not isinstance(first, Graph):
            raise CardanError("march: give `arguments`, since its first piece is not a graph of all arguments")
        return first.input_sizes

    @property
    def own_sizes(self) -> list[int]:
        """Numbers in each argument of the state and of the scratch."""
        return self.argument_sizes[: self.carried + self.scratch]

    @property
    def data_sizes(self) -> list[int]:
        """Numbers in each argument that is only read."""
        return self.argument_sizes[self.carried + self.scratch :]

    @property
    def input_sizes(self) -> list[int]:
        """Numbers in each input of the program: the state, the data, and the largest number of steps."""
        return [*self.own_sizes[: self.carried], *self.data_sizes, 1]

    @property
    def output_sizes(self) -> list[int]:
        """Numbers in each output of the program."""
        return self.own_sizes[: self.carried]

    def sizes_of(self, piece: Each) -> list[int]:
        """Numbers in each argument that a piece reads, then writes; checked to be one row or `count` of them."""
        sizes = [1 if k == BUSY else self.argument_sizes[k] for k in (*piece.reads, *piece.writes)]
        for size, row in zip(sizes, [*piece.graph.input_sizes, *piece.graph.output_sizes], strict=True):
            if size not in (row, row * piece.count):
                name = piece.function.name()
                raise CardanError(f"{name}: an argument of {size} numbers is not {piece.count} rows of {row}")
        return sizes

    @property
    def state_size(self) -> int:
        """Numbers of memory that one system needs besides its ports: state, scratch, `busy`, and that of schedules."""
        schedules = [piece.schedule for part, _ in self.pieces for piece in part if isinstance(piece, Scheduled)]
        return sum(self.own_sizes) + 1 + max((schedule.state_size for schedule in schedules), default=0)

    def operations(self) -> dict[str, int]:
        """How many of each operation one step takes."""
        return total_operations((piece.operations(), times) for part, times in self.pieces for piece in part)
