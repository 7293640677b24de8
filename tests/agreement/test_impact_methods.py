"""Event-driven impacts and time stepping on a published machine: a slider-crank whose guide has clearance.

Dimensions of P. Flores, R. Leine, C. Glocker, "Modeling and analysis of planar rigid multibody systems with
translational clearance joints based on the non-smooth dynamics approach", Multibody System Dynamics 23 (2010) 165-190:
four corners touch the guide, with restitution 0.4 and friction 0.01; the crank is let go at 150 rad/s.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")


def clearance() -> cd.Model:
    crank, rod, length, height, play = 0.153, 0.306, 0.05, 0.025, 0.001  # halves of length and height, m
    m = cd.Mechanism("clearance", gravity=(0, -9.81, 0))
    for name, mass, middle, inertia in (
        ("crank", 0.038, crank / 2, 7.4e-5), ("rod", 0.038, rod / 2, 5.9e-4), ("slider", 0.076, 0, 2.7e-6)
    ):  # fmt: skip
        m.body(name, mass=mass, com=(middle, 0, 0), inertia=(inertia,) * 3)
    m.joint("A", cd.Revolute(), m.ground, "crank")
    m.joint("B", cd.Revolute(), "crank", "rod", at=(crank, 0, 0))
    m.joint("C", cd.Revolute(), "rod", "slider", at=(rod, 0, 0))
    for x in (-length, length):
        for side in (-1.0, 1.0):
            corner = ca.DM([x, side * height, 0])
            m.contact(
                f"corner {x:+g} {side:+g}", ["slider"], friction=0.01, restitution=0.4,
                gap=lambda t, P, V, c=corner, s=side: height + play - s * (P[0].position + P[0].rotation @ c)[1],
                tangent=lambda t, P, V, c=corner: (P[0].rotation @ (V[0][3:] + ca.cross(V[0][:3], c)))[0],
            )  # fmt: skip
    return m.build()


def test_impacts_in_a_guide_with_clearance() -> None:
    """Steps come to the events with order one, through some twenty impacts; the slider comes to rest on a side."""
    model, v0 = clearance(), [150.0, -225.0, 75.0]
    seconds = 0.4 * 2 * np.pi / 150
    located = cd.simulate(model, seconds, v0=v0, samples=21)
    assert len(located.events) > 15 and located.statistics["energy_error"] < 1e-6
    forces = np.stack([located[f"{law.name}.mode"][..., 0] for law in model.laws])
    assert (forces.sum(axis=0) == 2).any()  # two corners on one side
    errors = []
    for step in (4e-5, 1e-5):
        stepped = cd.simulate(model, seconds, v0=v0, samples=21, method="moreau", step=step)
        errors.append(np.abs(stepped.q - located.q).max())
        assert stepped.statistics["law_residual"] < 1e-9
    assert errors[1] < errors[0] / 2 and errors[1] < 1e-4
