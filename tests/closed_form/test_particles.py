"""A body as three particles, AT(1) to AT(12): invariants, both sets of equations, a body floating and on an axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cardan as cd
from cardan.algebra.plane import Particles, across, carried, moment, particles, rod_particles
from cardan.formulation.points.body import (
    angular_momentum,
    fixed_axis,
    kinetic_energy,
    reduced_equations,
    second_acceleration,
    unreduced_equations,
)

numbers = st.floats(-2, 2)
seeds = st.integers(0, 2**32 - 1)


def random_body(seed: int) -> tuple[float, np.ndarray, float, np.ndarray]:
    """Mass, centre of mass, inertia about the origin, and a place for particle 3."""
    rng = np.random.default_rng(seed)
    mass, com = rng.uniform(0.5, 3), rng.uniform(-1, 1, 2)
    return mass, com, mass * (com @ com) + rng.uniform(0.05, 1), rng.uniform(0.3, 1) * unit(rng.uniform(-3, 3))


def unit(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


def turned(angle: float, a: np.ndarray) -> np.ndarray:
    return np.cos(angle) * a + np.sin(angle) * across(a)


def state(body: Particles, seed: int) -> tuple[list[np.ndarray], list[np.ndarray], float, float, np.ndarray]:
    """Positions and velocities of a moving body's particles, its angle and rate, and the velocity of particle 1."""
    rng = np.random.default_rng([seed, 1])
    angle, w, r1, v1 = rng.uniform(-3, 3), rng.standard_normal(), rng.standard_normal(2), rng.standard_normal(2)
    arms = [turned(angle, p) for p in body.positions]
    return [r1 + a for a in arms], [v1 + w * across(a) for a in arms], angle, w, v1


@given(seed=seeds, m3=numbers)
def test_any_m3_keeps_mass_centre_and_inertia(seed: int, m3: float) -> None:
    mass, com, I0, r3 = random_body(seed)
    assume(abs(I0 - m3 * (r3 @ r3)) > 1e-3 and np.linalg.norm(mass * com - m3 * r3) > 1e-3)
    p = particles("b", mass=mass, com=com, inertia=I0, r3=r3, m3=m3)
    scale = float(np.abs(p.masses).max() * max(1.0, np.abs(p.positions).max()) ** 2)
    assert p.masses.sum() == pytest.approx(mass, abs=1e-12 * scale)
    assert p.masses @ p.positions == pytest.approx(mass * com, abs=1e-12 * scale)
    assert p.masses @ (p.positions**2).sum(1) == pytest.approx(I0, abs=1e-12 * scale)
    assert carried(p.nu, p.lam, p.positions[2]) == pytest.approx(p.positions[1], abs=1e-12 * scale)  # AT(7)


def test_masses_may_be_negative() -> None:
    p = particles("b", mass=1.0, com=(0.5, 0.0), inertia=0.3, r3=(1.0, 0.0), m3=1.0)
    assert p.masses.min() < 0
    assert p.masses.sum() == pytest.approx(1.0)


def test_a_uniform_rod_is_simpsons_rule() -> None:
    p = rod_particles("rod", mass=6.0, length=2.0, com=1.0, inertia=6.0 * 4 / 3)
    assert p.masses == pytest.approx([1, 4, 1])
    assert (p.nu, p.lam) == pytest.approx((0.5, 0.0))
    same = particles("rod", mass=6.0, com=(1.0, 0.0), inertia=8.0, r3=(2.0, 0.0), m3=1.0)
    assert same.masses == pytest.approx(p.masses)
    assert same.positions == pytest.approx(p.positions)


@given(seed=seeds)
def test_the_two_sets_of_equations_agree_and_m3_does_not_matter(seed: int) -> None:
    mass, com, I0, r3 = random_body(seed)
    rng = np.random.default_rng([seed, 2])
    R, G1 = rng.standard_normal(2), rng.standard_normal()
    answers = []
    for part in (0.3, 0.6):
        p = particles("b", mass=mass, com=com, inertia=I0, r3=r3, m3=part * I0 / (r3 @ r3))
        assume(abs(p.lam) > 1e-2 and np.linalg.norm(p.positions[1]) < 20)
        r, v, *_ = state(p, seed)
        A, b = reduced_equations(p, r[0], r[2], v[0], v[2], R, G1)
        x = np.linalg.solve(A, b)
        answers.append(x)
        A, b = unreduced_equations(p, r, v, R, G1)
        six = np.linalg.solve(A, b)
        scale = max(1.0, float(np.abs(six).max()))
        assert np.r_[six[:2], six[4:]] == pytest.approx(x, abs=1e-8 * scale)
        assert second_acceleration(p, x[:2], x[2:]) == pytest.approx(six[2:4], abs=1e-8 * scale)
    assert answers[0] == pytest.approx(answers[1], abs=1e-8 * max(1.0, float(np.abs(answers[0]).max())))


@given(seed=seeds)
def test_a_floating_body_obeys_newton_and_euler(seed: int) -> None:
    mass, com, I0, r3 = random_body(seed)
    p = particles("b", mass=mass, com=com, inertia=I0, r3=r3)
    r, v, angle, w, v1 = state(p, seed)
    rng = np.random.default_rng([seed, 3])
    R, G1 = rng.standard_normal(2), rng.standard_normal()
    A, b = reduced_equations(p, r[0], r[2], v[0], v[2], R, G1)
    a1, a3 = np.split(np.linalg.solve(A, b), 2)
    d = r[2] - r[0]
    turn = moment(d, a3 - a1) / (d @ d)
    arm = turned(angle, com)
    a_G = a1 + turn * across(arm) - w**2 * arm
    scale = max(1.0, float(np.abs(a1).max()))
    assert mass * a_G == pytest.approx(R, abs=1e-9 * scale)
    assert (I0 - mass * com @ com) * turn == pytest.approx(G1 - moment(arm, R), abs=1e-9 * scale)
    v_G = v1 + w * across(arm)
    energy = mass * v_G @ v_G / 2 + (I0 - mass * com @ com) * w**2 / 2
    assert kinetic_energy(p, v) == pytest.approx(energy, rel=1e-9)
    spin = mass * moment(r[0] + arm, v_G) + (I0 - mass * com @ com) * w
    assert angular_momentum(p, r, v) == pytest.approx(spin, abs=1e-9 * max(1.0, abs(spin)))


def test_a_body_on_an_axis_is_a_compound_pendulum() -> None:
    mass, length, angle, w = 2.0, 0.8, 0.6, 1.5
    I0 = mass * length**2 / 3
    p = rod_particles("rod", mass=mass, length=length, com=length / 2, inertia=I0)
    r3 = length * unit(angle)
    weight = np.array([0.0, -9.81 * mass])
    turn = moment(r3 / 2, weight) / I0
    a3, force = fixed_axis(p, np.zeros(2), r3, w * across(r3), weight, moment(r3 / 2, weight))
    assert a3 == pytest.approx(turn * across(r3) - w**2 * r3)
    assert force == pytest.approx(mass * (turn * across(r3) - w**2 * r3) / 2 - weight)
    m = cd.Mechanism("pendulum", gravity=(0, -9.81, 0))
    m.body("rod", mass=mass, com=(length / 2, 0, 0), inertia=cd.inertia.rod(mass, length, axis="x"))
    m.joint("axis", cd.Revolute(), m.ground, "rod")
    model = m.build()
    assert cd.forward_dynamics(model, [angle], [w], formulation="points") == pytest.approx([turn])
    reaction = cd.reactions(model, [angle], [w], formulation="points")[0]
    assert reaction[3:5] == pytest.approx([force @ unit(angle), force @ across(unit(angle))])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"r3": (0, 0)}, "body 'b': its primary particles 1 and 3 must be apart, their distance is 0 m"),
        ({"m3": 1.0}, r"body 'b': m3 = 1 kg is not allowed, m3 r3 must differ from m rG = \(1, 0\) kg m"),
        ({"m3": 3.0}, r"body 'b': m3 = 3 kg is not allowed, m3 \|r3\|\^2 must differ from the polar inertia I0 = 3"),
    ],
)
def test_forbidden_particles_are_refused(changes: dict[str, object], sentence: str) -> None:
    given_: dict[str, object] = {"mass": 2.0, "com": (0.5, 0.0), "inertia": 3.0, "r3": (1.0, 0.0)}
    with pytest.raises(cd.ModelError, match=sentence):
        particles("b", **(given_ | changes))  # type: ignore[arg-type]


def test_a_rod_without_length_is_refused() -> None:
    with pytest.raises(cd.ModelError, match=r"body 'rod': its primary particles 1 and 3 must be apart"):
        rod_particles("rod", mass=1.0, length=0.0, com=0.0, inertia=1.0)
