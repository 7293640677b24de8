"""A vehicle whose wheels roll, for 20 s: time, and what its energy has changed by."""

from __future__ import annotations

import numpy as np

import cardan as cd
from benchmarks.report import Run
from benchmarks.tables import ms, number, scientific, table
from benchmarks.timing import Block, interleave

DURATION, ENERGY, GOAL = 20.0, 1e-9, 5e-3
TOLERANCES = (1e-6, 1e-7, 1e-8, 7e-9, 1e-9)


def section(run: Run) -> str:
    """The table: the vehicle of the catalogue coasts, its steering swings."""
    model = cd.mechanisms.vehicle().build()
    q, v = cd.assemble(model, {"steer left": 0.1}, {"rear left": 20.0})
    rows, best = [], np.inf

    def coast(rtol: float) -> cd.Trajectory:
        return cd.simulate(model, DURATION, q, v, rtol=rtol, atol=rtol, samples=2, threads=1, progress=False)

    with run.step("vehicle"):
        motions = {rtol: coast(rtol) for rtol in TOLERANCES}
        blocks = {f"{rtol:g}": Block(lambda rtol=rtol: coast(rtol), 1) for rtol in TOLERANCES}
        timings = interleave(blocks, rounds=run.rounds, least=run.least)
        for rtol, motion in motions.items():
            change = float(np.ptp(motion.energy) / motion.energy[0])
            timing = timings[f"{rtol:g}"]
            rows.append((f"{rtol:g}", number(motion.statistics["steps"]), scientific(change), ms(timing.minimum)))
            best = min(best, timing.minimum) if change <= ENERGY else best
        run.below(f"vehicle, {DURATION:g} s to {ENERGY:g} of its energy", GOAL, best, ms)
    head = ("tolerance", "steps", "change of energy", "time of a run, least, ms")
    return f"## A vehicle whose wheels roll, {DURATION:g} s\n\n{table(head, rows)}\n"
