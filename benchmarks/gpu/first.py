"""Time the first call of a fresh process on the card.

`python -m benchmarks.gpu.first FOLDER ROBOT KIND PRECISION ROWS` prints one JSON object of seconds: import,
building the model, starting the driver, the first call with its result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter


def main() -> None:
    """Measure and print."""
    folder, robot, kind, precision, rows = sys.argv[1:]
    start = perf_counter()
    import cardan  # noqa: F401  timed

    imported = perf_counter()
    from benchmarks.gpu.work import FUNCTIONS, Robots
    from cardan.machines.cuda import driver

    function = next(f for f in FUNCTIONS if (f.robot, f.kind) == (robot, kind))
    robots = Robots(Path(folder))
    before_model = perf_counter()
    model = robots.model(robot)
    made = perf_counter()
    from cardan.machines.cuda.device_array import to_device

    arrays = [to_device(array.astype(precision)) for array in function.arrays(robots, int(rows))]
    card = driver.card(0)
    card.synchronize()
    called = perf_counter()
    function.call(model, *arrays)[0].numpy()
    done = perf_counter()
    names = ("import", "model", "driver", "call")
    print(
        json.dumps(dict(zip(names, (imported - start, made - before_model, called - made, done - called), strict=True)))
    )


if __name__ == "__main__":
    main()
