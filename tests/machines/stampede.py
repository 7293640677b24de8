"""Many processes start at once on one empty cache, and every one gets the right answer.

python -m tests.machines.stampede 200            forked, so that they meet in the same instant
python -m tests.machines.stampede 20 spawn       each a new interpreter
"""

import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import cardan as cd
from cardan.mechanisms import pendulum


def work(barrier, number):
    """Wait for all others, then use kernels that nobody has compiled; exit with 1 where a number is wrong."""
    model = pendulum().build()
    rng = np.random.default_rng(number)
    q, v, tau = rng.normal(size=(3, 9, model.nv))
    barrier.wait(120)
    a = cd.forward_dynamics(model, q, v, tau)
    wrong = np.abs(cd.inverse_dynamics(model, q, v, a) - tau).max() > 1e-12
    run = cd.simulate(model, 0.2, q[0], v[0], method="rk4", step=0.01)
    wrong |= not np.ptp(run.energy) < 1e-5 * np.abs(run.energy).max()
    os._exit(int(wrong))  # without the parent's exit handlers, which are pytest's


def stampede(count, method, cache):
    """Exit codes of `count` processes that start at once on the empty folder `cache`; then what lies there."""
    assert not cache.exists()
    os.environ["CARDAN_CACHE_DIR"] = str(cache)
    context = multiprocessing.get_context(method)
    barrier = context.Barrier(count)
    processes = [context.Process(target=work, args=(barrier, k)) for k in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(600)
    return [process.exitcode for process in processes], sorted(path.name for path in cache.iterdir())


def main():
    """Run it."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    method = sys.argv[2] if len(sys.argv) > 2 else "fork" if os.name == "posix" else "spawn"
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["CARDAN_SEAL"] = str(Path(scratch) / "state" / "seal")
        codes, left = stampede(count, method, Path(scratch) / "cache")
    unfinished = sum(name.startswith("new-") for name in left)
    print(f"{count} processes ({method}): {codes.count(0)} right; {len(left)} entries, {unfinished} unfinished")
    return int(any(codes) or unfinished > 0)


if __name__ == "__main__":
    sys.exit(main())
