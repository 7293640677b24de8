"""`python -m benchmarks.friction`: stick-slip four-bars in a batch, with and without friction, by the same method."""

from __future__ import annotations

import time
import warnings

import numpy as np

import cardan as cd

SYSTEMS, STEPS, STEP, REPEATS = 4096, 1000, 1e-3, 5
CASES = {
    "no friction, moreau": ("moreau", {}),
    "no friction, rk4": ("rk4", {}),
    "friction at the crank": ("moreau", {"A": {"coulomb": 1.0, "static": 1.5}}),
    "friction by the crank's reaction": ("moreau", {"A": {"coefficient": 0.3, "radius": 0.05}}),
    "friction in three joints": ("moreau", {j: {"coulomb": 0.3, "static": 0.5} for j in "ABC"}),
}


def four_bar(friction: dict[str, dict[str, float]]) -> cd.Model:
    """A four-bar whose crank a motor pulls to 1 rad/s, with friction that sticks in some joints."""
    m = cd.Mechanism("stick-slip four-bar")
    for name, length in (("crank", 0.3), ("coupler", 0.8), ("rocker", 0.7)):
        m.body(name, mass=1.0, com=(length / 2, 0, 0), inertia=(1e-3, length**2 / 12, length**2 / 12))
    turn = cd.Revolute(axis=(0, 1, 0))
    m.joint("A", turn, "ground", "crank", start=-1.0)
    m.joint("B", turn, "crank", "coupler", at=(0.3, 0, 0), start=0.5)
    m.joint("C", turn, "coupler", "rocker", at=(0.8, 0, 0), start=1.0)
    m.joint("D", turn, "ground", "rocker", at=(0.9, 0, 0), child_at=(0.7, 0, 0))
    m.drive("motor", "A", lambda t, q, v: -2.0 * (v - 1.0))
    for joint, numbers in friction.items():
        m.friction(f"friction of {joint}", joint, stick=True, **numbers)
    return m.build(cut=["D"])


def main() -> None:
    """Print the least of several times, all cases in turn, and their ratio to the first."""
    warnings.simplefilter("ignore")
    models = {name: four_bar(friction) for name, (_, friction) in CASES.items()}
    least = dict.fromkeys(CASES, np.inf)
    for repeat in range(REPEATS + 1):
        for name, model in models.items():
            q = np.broadcast_to(cd.assemble(model)[0], (SYSTEMS, model.nq))
            begin = time.perf_counter()
            cd.simulate(model, STEPS * STEP, q, method=CASES[name][0], step=STEP, samples=2)
            if repeat:  # the first compiles
                least[name] = min(least[name], time.perf_counter() - begin)
    first = next(iter(least.values()))
    print(f"{SYSTEMS:,} four-bars, {STEPS:,} steps")
    for name, seconds in least.items():
        print(f"{name:34} {seconds:8.3f} s {seconds / first:6.2f}")


if __name__ == "__main__":
    main()
