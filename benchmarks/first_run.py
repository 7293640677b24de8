"""Time the first simulation of a fresh process: `python -m benchmarks.first_run CASE RTOL ATOL`.

Prints one JSON object of seconds: import, building the model, the first run.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter


def main() -> None:
    """Measure and print."""
    name, rtol, atol = sys.argv[1:]
    start = perf_counter()
    import cardan as cd  # noqa: F401  what is timed is the import

    imported = perf_counter()
    from benchmarks.simulating import case

    chosen = case(name)
    before_model = perf_counter()
    _ = chosen.model
    made = perf_counter()
    chosen.cardan(float(rtol), float(atol))
    done = perf_counter()
    print(json.dumps({"import": imported - start, "model": made - before_model, "run": done - made}))


if __name__ == "__main__":
    main()
