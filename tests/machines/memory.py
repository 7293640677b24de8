"""Memory over a million calls, and over models that come and go.

python -m tests.machines.memory                  1,000,000 calls; 300 models compiled and dropped
"""

import gc
import sys

import numpy as np

import cardan as cd
from cardan.mechanisms import double_pendulum


def resident():
    """Kilobytes of this process in memory (Linux)."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def growth(work, times, warm):
    """Kilobytes by which memory grows over `times` calls of `work`, after `warm` calls."""
    for k in range(warm):
        work(k)
    gc.collect()
    before = resident()
    for k in range(warm, warm + times):
        work(k)
    gc.collect()
    return resident() - before


def compile_and_drop(number):
    """A model nobody has seen before, its kernel, one call."""
    m = cd.Mechanism("pendulum")
    bob = m.body("bob", mass=1.0 + 1e-6 * number, com=(1.0, 0, 0))
    m.joint("pivot", cd.Revolute(axis=(0, 0, 1)), m.ground, bob)
    model = m.build()
    cd.forward_dynamics(model, *np.ones((3, 50, 1)))


def main():
    """Measure."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    model = double_pendulum().build()
    row, batch = np.ones((3, model.nv)), np.ones((3, 40, model.nv))
    one = growth(lambda _: cd.forward_dynamics(model, *row), calls, 10_000)
    many = growth(lambda _: cd.forward_dynamics(model, *batch), calls // 10, 1_000)
    models = max(calls // 3000, 70)
    dropped = growth(compile_and_drop, models, 70) / models
    print(f"{calls} calls: {one} kB; {calls // 10} of 40 rows: {many} kB; {dropped:.1f} kB per model dropped")
    return int(one > 2000 or many > 2000 or dropped > 20)


if __name__ == "__main__":
    sys.exit(main())
