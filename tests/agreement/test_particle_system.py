"""`model.particles()`: the particles of a planar mechanism move and weigh as its bodies do, and are one at its pins."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from cardan.functions.check import consistent_states
from cardan.mechanisms import andrews, pendulum, slider_crank

pytestmark = pytest.mark.usefixtures("quick_code")

MODELS = {f.__name__: f for f in (andrews, slider_crank)}


def chain(n: int) -> cd.Model:
    m = cd.Mechanism("chain", gravity=(0, -9.81, 0))
    for k in range(n):
        m.body(f"b{k}", mass=1.0 + k, com=(0.3, 0.1, 0), inertia=np.diag([0.1, 0.2, 0.3]))
        m.joint(f"j{k}", cd.Revolute(), f"b{k - 1}" if k else m.ground, f"b{k}", at=(0.8 if k else 0.0, 0, 0))
    return m.build()


@pytest.mark.parametrize("name", MODELS)
def test_energy_and_momentum_are_those_of_the_bodies(name: str) -> None:
    model = MODELS[name]().build()
    found = model.particles()
    q, v = consistent_states(model, np.random.default_rng(1), 3)
    poses, twists = cd.body_poses(model, q), cd.body_twists(model, q, v)
    body = [model.tree.body_link.index(i) for i in range(len(found.bodies))]
    local = twists[:, body, None, 3:] + np.cross(twists[:, body, None, :3], found.places)
    rates = np.einsum("sbij,sbkj->sbki", poses[:, body, :3, :3], local)
    energy = np.einsum("bk,sbki,sbki->s", found.masses, rates, rates) / 2
    assert energy == pytest.approx(cd.kinetic_energy(model, q, v), rel=1e-10)
    normal = np.cross(*found.axes)
    moved = np.einsum("bk,sbki->si", found.masses, rates)
    assert moved == pytest.approx(cd.momentum(model, q, v)[:, 3:], abs=1e-10)
    spin = np.einsum("bk,sbki->si", found.masses, np.cross(found.in_space(q), rates))
    assert spin @ normal == pytest.approx(cd.momentum(model, q, v)[:, :3] @ normal, abs=1e-10)
    # unified: the same first moment of mass, from fewer particles
    centre = found.unified_masses @ found.unified_positions(q)
    assert centre == pytest.approx(model.total_mass * cd.center_of_mass(model, q) @ found.axes.T, abs=1e-10)
    assert len(found.unified) < 3 * len(found.bodies)


def test_a_serial_chain_of_n_bodies_has_2n_plus_1_particles() -> None:
    for n in (1, 2, 5):
        found = chain(n).particles()
        assert len(found.unified) == 2 * n + 1
        shared = [p for p in found.unified if len(p.bodies) == 2]
        assert [p.joints for p in shared] == [(f"j{k}",) for k in range(1, n)]
        assert [p.mass for p in shared] == pytest.approx(found.masses[:-1, 2] + found.masses[1:, 0])


def test_a_uniform_rod_has_a_sixth_four_sixths_and_a_sixth() -> None:
    found = pendulum(mass=6.0, length=2.0).build().particles()
    assert found.masses == pytest.approx(np.array([[1.0, 4.0, 1.0]]))
    assert np.linalg.norm(found.positions([0.3])[0], axis=-1) == pytest.approx([0, 1, 2])
    assert "rod" in repr(found) and "pivot" in repr(found)


def test_free_numbers_count_at_their_values_and_one_at_a_time() -> None:
    model = pendulum(mass=6.0, length=2.0).build().free("rod.mass", "rod.inertia")
    double = model.at({"rod.mass": 12.0, "rod.inertia": 2 * model.parameters["rod.inertia"].nominal})
    assert double.particles().masses == pytest.approx(2 * model.particles().masses)
    with pytest.raises(cd.InputError, match="one mechanism at a time"):
        model.at({"rod.mass": [1.0, 2.0]}).particles()


def test_bodies_without_mass_and_point_masses_have_particles_too() -> None:
    m = cd.Mechanism("bob", gravity=(0, -9.81, 0))
    m.body("string", mass=0.0)
    m.body("bob", mass=2.0, com=(0.2, 0, 0))
    m.joint("pin", cd.Revolute(), m.ground, "string")
    m.joint("knot", cd.Revolute(), "string", "bob", at=(0.5, 0, 0))
    found = m.build().particles()
    assert found.masses == pytest.approx(np.array([[0, 0, 0], [0, 2.0, 0]]))
    assert [p.mass for p in found.unified] == pytest.approx([0, 0, 0, 2, 0])


def test_a_spatial_mechanism_is_refused() -> None:
    m = cd.Mechanism("ball")
    m.body("bob", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    m.joint("ball", cd.Spherical(), m.ground, "bob")
    with pytest.raises(
        cd.ModelError, match=r"particles of 'ball': they are those of a planar mechanism, .*: joint 'ball'"
    ):
        m.build().particles()


def test_they_are_drawn_on_request() -> None:
    model = andrews().build()
    plain, drawn = (len(model.draw(particles=on).axes[0].collections[0].get_paths()) for on in (False, True))
    assert drawn - plain == len(model.particles().unified)
