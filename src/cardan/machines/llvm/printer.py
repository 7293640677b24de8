"""LLVM IR behind the interface of all printers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cardan.machines.llvm.batch_loop import print_batch_loop
from cardan.machines.llvm.module import VectorType

if TYPE_CHECKING:
    from cardan.program.program import Program, Recorded


@dataclass(frozen=True)
class LLVMPrinter:
    """Prints graphs, schedules and marches as LLVM IR: the loop over a batch on the lanes of `type`.

    A batch of fewer than `few` rows is not transposed in registers; see `batch_loop`. With `tables` long graphs
    are tables that a loop carries out: LLVM is done with them soon, but they run slowly. With `library` the text names
    what `machines.llvm.library` has.
    """

    type: VectorType
    few: int
    tables: bool = False
    library: bool = False

    def print_program(self, program: Program, recorded: Recorded) -> str:
        """IR of the loop over a batch."""
        return print_batch_loop(recorded, program.without_empty_ports(), self.type, self.few, self.tables, self.library)
