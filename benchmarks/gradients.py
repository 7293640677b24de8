"""Gradient of a loss over runs of many four-bars by all their numbers: its time against that of the run, its error."""

from __future__ import annotations

from functools import partial

import numpy as np

import cardan as cd
from benchmarks.report import Run
from benchmarks.tables import number, table, times
from benchmarks.timing import Block, interleave

SYSTEMS, STEPS, STEP = 4096, 1000, 1e-3
CHECKED = 4  # systems whose gradients are compared with forward sensitivities


def four_bar() -> cd.Model:
    """All masses, centres of mass, inertias, placements of joints and gravity free."""
    model = cd.mechanisms.four_bar().build()
    of_bodies = [f"{body}.{what}" for body in model.body_names for what in ("mass", "com", "inertia")]
    of_joints = [f"{joint.name}.{what}" for joint in model.joints for what in ("at", "child_at")]
    return model.free(*of_bodies, *of_joints, "gravity")


def section(run: Run) -> str:
    """Seconds of the run and of the gradient, one thread, and the largest error."""
    systems, steps = (64, 50) if run.quick else (SYSTEMS, STEPS)
    model = four_bar()
    q, v = cd.assemble(model, model.start(), np.ones(model.nv))
    v = v * np.random.default_rng(0).uniform(0.5, 1.5, (systems, 1))
    loss = lambda s: (s.q[0] - 1) ** 2 + s.v[1] ** 2
    simulate = partial(cd.simulate, model, steps * STEP, q, method="rk4", step=STEP, samples=2, threads=1)
    taken = simulate(v)
    blocks = {
        "run": Block(partial(simulate, v), systems * steps),
        "gradient": Block(partial(taken.gradient, loss), systems * steps),
    }
    timing = interleave(blocks, rounds=3, least=run.least)
    found = taken[:CHECKED].gradient(loss)["parameters"]
    few = simulate(v[:CHECKED], sensitivities="parameters")
    S = few.sensitivity["parameters"]
    dq, dv = np.zeros_like(few.v), np.zeros_like(few.v)
    dq[..., 0], dv[..., 1] = 2 * (few.q[..., 0] - 1), 2 * few.v[..., 1]
    forward = np.einsum("bsn,bsnk->bk", dq, S.q) + np.einsum("bsn,bsnk->bk", dv, S.v)
    error = np.abs(found - forward).max() / np.abs(forward).max()
    ratio = timing["run"].times_faster_than(timing["gradient"])
    if not run.quick:
        run.below("gradient of a run of four-bars by all numbers", 5.0, ratio, times)
    seconds = {name: t.median * systems * steps for name, t in timing.items()}
    row = (
        f"{systems:,} x {steps:,}", f"{model.parameters.size}", number(seconds["run"]), number(seconds["gradient"]),
        times(ratio), f"{error:.0e}",
    )  # fmt: skip
    head = ("four-bars x RK4 steps", "numbers", "run, s", "gradient, s", "ratio", "error against forward")
    return "## Gradient of a run\n\nOne thread; the gradient takes the steps again.\n\n" + table(head, [row]) + "\n"
