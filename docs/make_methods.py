"""Write docs/methods.md from what runs: `python docs/make_methods.py`.

A cell of a feature that changes the equations runs a small mechanism and compares with a closed form.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import cardan as cd
from cardan.integrate.integrators import OWN, find_integrator

PAGE = Path(__file__).with_name("methods.md")
DURATION = 0.5
BOUND = 1e-2
FEATURES = ("loop", "rolling", "stop and friction", "variable with a rate", "derivatives", "float32", "GPU")
HEAD = f"""# What each method takes

Made by `python docs/make_methods.py`; do not edit.

*Loop*: a slider that a crank moves by a rod. *Rolling*: a wheel on a slope. *Stop and friction*: a block that slides up
a slope until it sticks. *Variable with a rate*: the area under a fall. These are run and compared with closed forms, to
{BOUND:g} of them; `-` says that the method refuses them, in one sentence. The rest is what the methods declare:
[derivatives](derivatives.md) of a run, steps in float32, steps on a [GPU](gpu.md). Events, inputs over time and tables
are for all of them. [Choosing](choosing.md) says which to take, [accuracy](accuracy.md) how accurate they are.
"""


def slider_crank() -> tuple[cd.Mechanism, dict[str, float], float]:
    """A crank without weight that turns at 2 rad/s, and where its slider is after half a second."""
    reach = lambda angle: 0.5 * np.cos(angle) + np.sqrt(4.0 - 0.25 * np.sin(angle) ** 2)
    m = cd.Mechanism("crank", gravity=(0, 0, 0))
    m.body("crank", mass=1.0, com=(0, 0, 0), inertia=(1e3, 1e3, 1e3))
    m.body("rod", mass=1e-3, com=(1.0, 0, 0), inertia=(1e-4, 1e-4, 1e-4))
    m.body("slider", mass=1e-3, inertia=(1e-4, 1e-4, 1e-4))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=0.5)
    m.joint("B", cd.Revolute(), "crank", "rod", at=(0.5, 0, 0), start=-0.5 - np.arcsin(0.25 * np.sin(0.5)))
    m.joint("D", cd.Prismatic(axis=(1, 0, 0)), m.ground, "slider", start=reach(0.5))
    m.joint("C", cd.Revolute(), "rod", "slider", at=(2.0, 0, 0))
    return m, {"A": 2.0}, reach(0.5 + 2 * DURATION)


def wheel() -> tuple[cd.Mechanism, dict[str, float], float]:
    """A disc that rolls down a slope from rest, and how far it comes."""
    m = cd.Mechanism("wheel", gravity=(9.81 * np.sin(0.3), 0, -9.81 * np.cos(0.3)))
    m.body("axle")
    m.body("disc", mass=2.0, inertia=cd.inertia.cylinder(2.0, 0.3, 0.01, axis="y"))
    m.joint("D", cd.Prismatic(axis=(1, 0, 0)), m.ground, "axle")
    m.joint("spin", cd.Revolute(axis=(0, 1, 0)), "axle", "disc", at=(0, 0, 0.3))
    m.roll("tyre", "disc", m.ground, holds="longitudinal", radius=0.3, axis=(0, 1, 0))
    return m, {}, 9.81 * np.sin(0.3) * DURATION**2 / 3


def block() -> tuple[cd.Mechanism, dict[str, float], float]:
    """A block that slides up a slope until friction holds it, and how far it comes."""
    m = cd.Mechanism("block", gravity=(-9.81 * np.sin(0.4), 0, -9.81 * np.cos(0.4)))
    m.body("block", mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.joint("D", cd.Prismatic(axis=(1, 0, 0)), m.ground, "block")
    m.friction("surface", "D", coefficient=0.6, stick=True)
    m.stop("wall", "D", lower=-1.0)
    return m, {"D": 2.0}, 2.0**2 / 2 / 9.81 / (np.sin(0.4) + 0.6 * np.cos(0.4))


def fall() -> tuple[cd.Mechanism, dict[str, float], float]:
    """A fall, and the integral of its coordinate."""
    m = cd.Mechanism("fall")
    m.body("mass", mass=1.0)
    m.joint("D", cd.Prismatic(axis=(0, 0, -1)), m.ground, "mass")
    m.variable("area", 0.0, rate=lambda s: s.coordinate("D"))
    return m, {}, 9.81 * DURATION**3 / 6


RUNS = {"loop": slider_crank, "rolling": wheel, "stop and friction": block, "variable with a rate": fall}


def method_cell(method: str, feature: str) -> str:
    """`yes`, or a dash where the method refuses."""
    way = find_integrator(method)
    declared = {"derivatives": way.has_derivatives, "float32": way.has_float32, "GPU": way.has_gpu}
    if feature in declared:
        return "yes" if declared[feature] else "-"
    make, v0, expected = RUNS[feature]()
    model = make.build()
    step = {} if way.chooses_steps else {"step": 1e-3}
    try:
        run = cd.simulate(model, DURATION, v0=v0, assemble=True, method=method, **step)
    except (cd.InputError, cd.ModelError, cd.LoopError):
        return "-"
    found = run["area"][-1] if feature == "variable with a rate" else run.coordinate("D")[-1]
    if abs(float(found) - expected) > BOUND * abs(expected):
        raise ArithmeticError(f"{method}, {feature}: {found} in place of {expected}")
    return "yes"


def method_line(method: str) -> str:
    """One row of the table of methods."""
    return (
        f"| `{method}` | {find_integrator(method).summary} | {' | '.join(method_cell(method, x) for x in FEATURES)} |"
    )


def method_header() -> list[str]:
    """The two lines above the rows of methods."""
    return [f"| method | | {' | '.join(FEATURES)} |", "|---" * (2 + len(FEATURES)) + "|"]


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *method_header(), *map(method_line, OWN)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
