"""A body in space as particles: mass, centre of mass and inertia are matched, for any body and any tetrahedron."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd

from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

SHAPES = {"solid": 3, "plate": 2, "rod": 1, "point": 0}


def body(shape: str, rng: np.random.Generator) -> dict[str, Any]:
    """A random cloud of mass: in space, in a plane, on a line, at a point."""
    k = SHAPES[shape]
    places = rng.normal(size=(6, k)) @ rng.normal(size=(k, 3)) * 10.0 ** rng.uniform(-3, 3)
    m = rng.uniform(0.1, 1, 6) * 10.0 ** rng.uniform(-3, 3)
    c = m @ places / m.sum()
    second = ((places - c).T * m) @ (places - c)
    size = np.abs(places).max() + (k == 0)
    return dict(mass=m.sum(), com=c + size * rng.normal(size=3), inertia=np.trace(second) * np.eye(3) - second)


def assert_match(found: cd.SpatialParticles, *, mass: float, com: Any, inertia: Any) -> None:
    """Relative to the sums of what may cancel: masses may be large and of both signs."""
    size = np.abs(found.positions - com).max() + 1e-9 * np.abs(com).max()  # places are rounded
    total = np.abs(found.masses).sum()
    assert abs(found.mass - mass) <= 1e-12 * total
    assert np.abs(found.masses @ (found.positions - com)).max() <= 1e-11 * total * size
    assert np.abs(found.inertia - inertia).max() <= 1e-11 * (total * size**2 + np.abs(inertia).max())


@given(shape=st.sampled_from(list(SHAPES)), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_ten_and_four_particles_match_the_body(shape: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = body(shape, rng)
    assert_match(cd.particles_in_space("b", **given), **given)
    size = np.sqrt(np.trace(given["inertia"]) / given["mass"]) or 1.0
    vertices = given["com"] + size * rng.normal(size=(4, 3))
    if abs(np.linalg.det(vertices[1:] - vertices[0])) > 1e-2 * size**3:
        found = cd.particles_in_space("b", **given, vertices=vertices)
        assert_match(found, **given)
        close(found.positions[:4], vertices, 1e-15)
        middles = [(vertices[i] + vertices[j]) / 2 for i, j in combinations(range(4), 2)]
        close(found.positions[4:], middles, 1e-15)
    four = cd.four_particles("b", **given)
    assert_match(four, **given)
    close(four.masses, np.full(4, given["mass"] / 4), 1e-15)
    if shape != "point":
        second = np.trace(given["inertia"]) / 2 * np.eye(3) - given["inertia"]
        r1 = given["com"] + second @ rng.normal(size=3) / (given["mass"] * size)  # in its plane, on its line
        placed = cd.four_particles("b", **given, r1=r1)
        assert_match(placed, **given)
        assert (placed.masses > 0).all() and np.abs(placed.positions[0] - r1).max() < 1e-6 * size


def test_a_rod_is_that_of_the_plane() -> None:
    """Between its ends the ten particles are AT's three, Simpson's rule; the others have no mass."""
    rod = cd.rod_particles("rod", mass=6.0, length=2.0, com=1.0, inertia=8.0)
    vertices = [(0, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)]
    found = cd.particles_in_space("rod", mass=6, com=(1, 0, 0), inertia=cd.inertia.rod(6, 2), vertices=vertices)
    close(found.masses, [rod.masses[0], rod.masses[2], 0, 0, rod.masses[1], 0, 0, 0, 0, 0])


def test_a_homogeneous_tetrahedron_has_a_twentieth_at_each_vertex_and_a_fifth_in_the_middle_of_its_edges() -> None:
    """The rule that integrates quadratics over a tetrahedron, -1/20 at the vertices and 1/5 at the middles."""
    corners = np.random.default_rng(1).normal(size=(4, 3))
    # moments of barycentric coordinates over a tetrahedron: 1/10 and 1/20 of the mass
    c = corners.mean(axis=0)
    r = corners - c
    second = (r.T @ (np.full((4, 4), 1 / 20) + np.eye(4) / 20)) @ r
    inertia = np.trace(second) * np.eye(3) - second
    found = cd.particles_in_space("tetrahedron", mass=1.0, com=c, inertia=inertia, vertices=corners)
    close(found.masses, [-1 / 20] * 4 + [1 / 5] * 6)


@pytest.mark.parametrize("function", [cd.particles_in_space, cd.four_particles])
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"mass": 0.0}, r"body 'b': mass must be positive, got 0 kg; particles share the mass of their body"),
        ({"mass": -2.0}, r"body 'b': mass must be positive, got -2 kg"),
        ({"mass": "heavy"}, r"body 'b': mass must be a number, got 'heavy'"),
        ({"com": (0, np.nan, 0)}, r"body 'b': com must be finite"),
        ({"inertia": (1, 1, 3)}, r"body 'b': inertia about the centre of mass breaks the triangle rule: 3 > 1 \+ 1 .*"
         r"did you give it about another point\?"),
        ({"inertia": (1, 1, -1)}, r"body 'b': inertia about the centre of mass is not positive"),
        ({"inertia": 1.0}, r"body 'b': inertia must be a 3x3 matrix, 3 principal values or 6 entries"),
    ],
)  # fmt: skip
def test_impossible_bodies_are_refused(function: Any, wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cd.ModelError, match=sentence):
        function("b", **{"mass": 1.0, "com": (0, 0, 0), "inertia": (1, 1, 1)} | wrong)


def test_impossible_places_are_refused() -> None:
    flat = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1e-12]])
    with pytest.raises(cd.ModelError, match=r"its four vertices must not be in one plane, .* 1.667e-13 m\^3; move one"):
        cd.particles_in_space("b", mass=1.0, inertia=(1, 1, 1), vertices=flat)
    with pytest.raises(cd.ModelError, match=r"body 'b': vertices must be 4 x 3 numbers"):
        cd.particles_in_space("b", mass=1.0, inertia=(1, 1, 1), vertices=flat[:3])
    with pytest.raises(cd.ModelError, match=r"particle 1 cannot be at the centre of mass, r1 = \[0.0, 0.0, 1.0\] m"):
        cd.four_particles("b", mass=1.0, com=(0, 0, 1), inertia=(1, 1, 1), r1=(0, 0, 1))
    plate = dict(mass=1.0, inertia=(1, 1, 2))
    with pytest.raises(cd.ModelError, match=r"particle 1 cannot be at r1 = .* outside the plane or line that has all"):
        cd.four_particles("b", **plate, r1=(0, 0, 1))
