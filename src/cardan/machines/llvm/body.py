"""Print any program as one function on lanes: `@body(ptr %in0, ..., ptr %out0, ..., <the rest>)`.

Each pointer addresses one vector of lanes per element of its port, in C order. The rest is `ptr %state`, memory of the
body's own, for a schedule or a march, and the pointers to prefetch from, if any, for a graph. That is all a body knows:
nothing in it, or in what it calls, depends on how the rows of a batch lie in memory, or on the machine. `batch_loop`
prints the host's loop around it; on one lane the same body can stand in a GPU kernel that loads one row per thread.
"""

from __future__ import annotations

from cardan.machines.llvm.graph import print_graph
from cardan.machines.llvm.march import print_march
from cardan.machines.llvm.module import Module
from cardan.machines.llvm.schedule import print_schedule
from cardan.program.graph import Graph
from cardan.program.march import March
from cardan.program.program import Program
from cardan.program.recording import Recorded


def print_body(recorded: Recorded, program: Program, module: Module, ahead: tuple[int, ...] = ()) -> int:
    """Define `@body` of what `program`, without empty ports, recorded; how many vectors `%state` addresses.

    `ahead` has, per port, how many cache lines to prefetch; only a graph does. If the number returned is 0, there is no
    `%state` among the parameters.
    """
    if isinstance(recorded, Graph):
        print_graph(recorded, "body", module, ahead=ahead)
        return 0
    if isinstance(recorded, March):
        print_march(recorded, "body", module)
    else:
        print_schedule(recorded, "body", module, len(program.inputs), len(program.outputs))
    return max(recorded.state_size, 1)
