"""Measure the integrators on two problems, one of them stiff, into docs/choosing.md: `python docs/make_choosing.py`.

Both problems are run by every method that can take them, at settings tried in turn until the error in the end is below
1e-5 (rad and m). The error is the largest difference of coordinates from a run at a tight tolerance; time is the best
of five runs, kernels compiled before.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import cardan as cd
from cardan.mechanisms import double_pendulum, four_bar

PAGE = Path(__file__).with_name("choosing.md")
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
GOAL = 1e-5
TOLERANCES = [10.0**-k for k in range(3, 12)]
STEPS = [0.02 / 2**k for k in range(16)]
METHODS = {
    "dormand_prince": cd.DormandPrince(),
    "rk4": cd.RK4(),
    "euler": cd.SemiImplicitEuler(),
    "alpha": cd.Alpha(),
    "gear": cd.Gear(),
    "gear, index1": cd.Gear(form="index1"),
    "bdf": cd.BDF(),
    "adams": cd.Adams(),
}


def stiff_pendulum() -> cd.Model:
    """A double pendulum whose second hinge is nearly rigid: 1e7 N m/rad, and damped as much."""
    m = double_pendulum()
    m.torsion("joint", "elbow", stiffness=1e7, damping=1e5)
    return m.build()


def trial(model: cd.Model, duration: float, start: Any, method: str, setting: float) -> tuple[np.ndarray, float, int]:
    """Coordinates in the end, best time of five in s, steps."""
    words: dict[str, Any] = {"method": METHODS[method], "samples": 2}
    words |= {"rtol": setting, "atol": setting} if METHODS[method].chooses_steps else {"step": setting}
    cd.simulate(model, duration, start, **words)
    best = np.inf
    for _ in range(5):
        begin = time.perf_counter()
        run = cd.simulate(model, duration, start, **words)
        best = min(best, time.perf_counter() - begin)
    return run.q[-1], best, run.statistics["steps"]


def row(model: cd.Model, duration: float, start: Any, truth: np.ndarray, method: str) -> str:
    """The first setting that reaches the goal, or why there is none."""
    for setting in TOLERANCES if METHODS[method].chooses_steps else STEPS:
        try:
            q, best, steps = trial(model, duration, start, method, setting)
        except cd.CardanError as error:
            if not isinstance(error, cd.SimulationError):
                return f"| `{method}` | - | - | - | trees only |"
            continue
        error = np.abs(q - truth).max()
        if np.isfinite(error) and error < GOAL:
            what = f"tolerance {setting:.0e}" if METHODS[method].chooses_steps else f"step {setting:.2g} s"
            return f"| `{method}` | {what} | {steps:,} | {1e3 * best:.3g} | {error:.0e} |"
    return f"| `{method}` | none tried reached it | - | - | - |"


def table(model: cd.Model, duration: float, start: Any) -> list[str]:
    """Every method on one problem."""
    truth = cd.simulate(model, duration, start, rtol=1e-12, atol=1e-13, samples=2).q[-1]
    head = ["| method | setting | steps | ms | error |", "|---|---|---:|---:|---:|"]
    return head + [row(model, duration, start, truth, method) for method in METHODS]


def measured() -> str:
    """Both tables."""
    lines = ["*Not stiff*: a four-bar linkage (one loop) falls for 2 s.", ""]
    lines += table(four_bar().build(), 2.0, None)
    lines += [
        "",
        "*Stiff*: a double pendulum whose second hinge has 1e7 N m/rad and 1e5 N m s/rad, for 2 s from rest.",
        "",
    ]
    lines += table(stiff_pendulum(), 2.0, np.array([1.0, 0.02]))
    return "\n".join(lines)


if __name__ == "__main__":
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{measured()}\n\n{END}{rest.partition(END)[2]}")
