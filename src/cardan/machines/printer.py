"""What every printer of programs does: one method, from a recorded program to text of a language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cardan.program.program import Program, Recorded


class Printer(Protocol):
    """Prints programs in one language. Options of the language, such as the type of the lanes, are its fields."""

    def print_program(self, program: Program, recorded: Recorded) -> str:
        """The text of `recorded`, which is `cardan.program.program.record(program)`."""
        ...
