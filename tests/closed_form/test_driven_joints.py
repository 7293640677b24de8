"""Friction, stops and locks at joints whose motion is prescribed: the force is known, or there is none that fits."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")
METHODS: dict[str, dict[str, Any]] = {"events": {}, "moreau": {"method": "moreau", "step": 1e-2}}


def driven(path: Any) -> cd.Mechanism:
    """A block of 2 kg on a level slide that a motor moves along `path(t)`."""
    m = cd.Mechanism("driven")
    m.body("block", mass=2.0, inertia=(0.1, 0.1, 0.1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "block")
    m.motion("motor", "x", path)
    return m


@pytest.mark.parametrize("method", METHODS)
def test_a_motor_overcomes_friction(method: str) -> None:
    """Friction is against the motion, in full, and the motor's force is that of the mass and of friction."""
    m = driven(lambda t: ca.sin(t))
    m.friction("f", "x", coulomb=3.0, stick=True)
    run = cd.simulate(m.build(), 3.0, samples=[0.5, 1.2, 2.0, 3.0], assemble=True, **METHODS[method])
    against = 3.0 * np.sign(np.cos(run.time))
    np.testing.assert_allclose(run["f.force"], -against, rtol=1e-12)
    np.testing.assert_allclose(run["motor.force"], against - 2.0 * np.sin(run.time), rtol=1e-6)
    assert run.statistics["energy_error"] < 1e-2  # of 5.6 J that the motor does against friction


@pytest.mark.parametrize("method", METHODS)
def test_a_motor_drives_against_a_stop_and_a_lock(method: str) -> None:
    m = driven(lambda t: ca.sin(t))
    m.stop("end", "x", upper=0.5)
    warned = pytest.warns(RuntimeWarning, match="no forces of") if method == "moreau" else nullcontext()
    with pytest.raises(cd.SimulationError, match=r"no impulses of the rows .* against a stop.* 'end: upper'"), warned:
        cd.simulate(m.build(), 2.0, samples=40, assemble=True, **METHODS[method])
    m = driven(lambda t: ca.fmax(t - 0.5, 0) ** 3)  # it is still at first
    m.lock("pawl", "x", closed=True)
    warned = pytest.warns(RuntimeWarning, match="no forces of") if method == "moreau" else nullcontext()
    with pytest.raises(cd.SimulationError, match=r"'pawl: held' is closed .* a motion or a loop moves it"), warned:
        cd.simulate(m.build(), 2.0, samples=40, assemble=True, **METHODS[method])


def test_forces_at_a_state_that_cannot_be() -> None:
    m = driven(lambda t: t)
    m.lock("pawl", "x", closed=True)
    model = m.build()
    with pytest.raises(cd.InputError, match=r"'pawl: held' is closed and cannot hold: a motion or a loop moves it"):
        cd.simulate(model, 1.0, assemble=True)
    with pytest.raises(cd.InputError, match=r"'pawl: held' is closed and its rate is 1: no impulse changes that"):
        cd.forward_dynamics(model, [0.0], [1.0])


def test_energy_of_a_driven_linkage_with_friction() -> None:
    """What the motor does against friction at another joint is part of the energy balance."""
    m = cd.mechanisms.four_bar()
    m.motion("motor", "A", lambda t: 1.0 + 2.0 * t)
    m.friction("f", "D", coulomb=0.7, stick=True)
    run = cd.simulate(m.build(), 1.0, samples=21, assemble=True, method="moreau", step=5e-3)
    lost = 0.7 * np.abs(np.diff(run.coordinate("D"))).sum()
    assert lost > 0.4 and run.statistics["energy_error"] < 5e-3
