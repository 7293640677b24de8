"""Time the first call of a fresh process: `python -m benchmarks.first_answer ROBOT ROWS auto|unrolled|looped|NAME`.

The call is that of forward dynamics, or of the quantity of the tree with that name. Prints one JSON object of seconds:
import, building the model, the first call.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter


def main() -> None:
    """Measure and print."""
    name, rows, drive = sys.argv[1:]
    start = perf_counter()
    import cardan as cd

    imported = perf_counter()
    from benchmarks.robots import find

    robot = find(name)
    before_model = perf_counter()
    model = robot.model
    made = perf_counter()
    arrays = robot.states(int(rows)) if int(rows) > 1 else [array[0] for array in robot.states(1)]
    called = perf_counter()
    if drive == "auto":
        cd.forward_dynamics(model, *arrays)
    elif drive not in ("unrolled", "looped"):
        from cardan.structure.kernels import tree_kernel

        tree_kernel(model, drive)(*arrays)
    else:
        from cardan.formulation.spatial import SPATIAL
        from cardan.structure.kernels import compile_quantity

        kernel = compile_quantity(model, SPATIAL.quantities["forward_dynamics"], "spatial", looped=drive == "looped")
        kernel(*arrays)
    done = perf_counter()
    seconds = {"import": imported - start, "model": made - before_model, "call": done - called}
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
