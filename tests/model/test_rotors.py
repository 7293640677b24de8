"""Bodies with inertia and no mass: rotors whose mass is counted elsewhere; and free joints, which hold nothing."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd

from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

SPINNING = (0.3, 0.2, 0.4)


def arm(rotor: bool, ratio: float = 6.0, armature: float = 0.0) -> cd.Mechanism:
    """A pendulum, with a rotor beside its joint that turns `ratio` times as fast, or with armature."""
    m = cd.Mechanism("m")
    m.body("arm", mass=2.0, com=(0.3, 0.1, 0.0), inertia=(0.1, 0.2, 0.2))
    m.joint("A", cd.Revolute(axis=(0, 1, 0)), m.ground, "arm", armature=armature)
    if rotor:
        m.body("rotor", inertia=SPINNING, judge="nothing")
        m.joint("R", cd.Revolute(axis=(0, 1, 0)), m.ground, "rotor", at=(0.5, 0.0, 0.1))
        m.couple("gear", {"R": 1.0, "A": -ratio})
    return m


@pytest.mark.parametrize("formulation", ["spatial", "newton_euler", "absolute", "relative", "points"])
def test_a_rotor_without_mass_on_the_ground_is_an_armature(formulation: str) -> None:
    ratio = 6.0
    geared, plain = arm(True, ratio).build(), arm(False, armature=ratio**2 * SPINNING[1]).build()
    q, v = np.random.default_rng(3).normal(size=2)
    a = cd.forward_dynamics(geared, [q, ratio * q], [v, ratio * v], formulation=formulation)
    expected = cd.forward_dynamics(plain, [q], [v])[0]
    close(a, [expected, ratio * expected], 1e-12)


def test_a_flywheel_without_mass_turns_by_its_inertia() -> None:
    m = cd.Mechanism("m")
    m.body("wheel", inertia=(1, 1, 2), judge="nothing")
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "wheel")
    m.drive("motor", "A", 3.0)
    model = m.build()
    close(cd.forward_dynamics(model, [0.1], [0.2]), [1.5])
    assert cd.check(model, states=4).passed
    assert "mass is zero but its inertia is not" in model.notes[0]


def test_rotors_that_are_carried_agree_in_every_formulation() -> None:
    m = arm(True)
    m.body("spin", inertia=(0.1, 0.2, 0.15), judge="nothing")
    m.joint("S", cd.Revolute(axis=(1, 2, 0)), "arm", "spin", at=(0.4, 0.0, 0.0))
    assert cd.check(m.build(), states=4).passed


def test_inertia_without_mass_is_refused_with_both_ways_out() -> None:
    m = cd.Mechanism("m")
    with pytest.raises(cd.ModelError, match=r"mass is zero.*give the mass, or keep it as a rotor.*judge='nothing'"):
        m.body("wheel", inertia=(1, 1, 2))


def test_a_rotor_that_cannot_turn_is_told_so_truly() -> None:
    m = cd.Mechanism("m")
    m.body("wheel", inertia=(1, 1, 2), judge="nothing")
    m.joint("A", cd.Prismatic(axis=(0, 0, 1)), m.ground, "wheel")
    with pytest.raises(cd.ModelError, match=r"no inertia along a motion of that joint, so joint 'A' \(prismatic\)"):
        m.build()


@pytest.mark.parametrize("free", [False, True])
def test_a_free_joint_holds_nothing(free: bool) -> None:
    m = arm(False)
    m.body("tip")
    m.joint("B", cd.Revolute(axis=(0, 1, 0)), "arm", "tip", at=(1, 0, 0))
    if free:
        m.joint("F", cd.Free(), m.ground, "tip")
    with pytest.raises(cd.ModelError, match="body 'tip': it, with all it carries, has no mass, so joint 'B'"):
        m.build()
