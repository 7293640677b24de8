"""Shapes of bodies: volume, centre and inertia of each as of its own surface, and bodies made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan.meshes.measure import measure, open_edges
from cardan.meshes.simplify import simplified
from cardan.meshes.surface import Surface, revolved
from cardan.model.shape import read_colour

pytestmark = pytest.mark.usefixtures("quick_code")

S = cd.shape
CIRCLE = np.linspace(0, 2 * np.pi, 24, endpoint=False)
ROUND = np.column_stack([np.cos(CIRCLE), np.sin(CIRCLE)])
SHAPES: dict[str, tuple[Any, float]] = {
    "box": (lambda **at: S.Box((0.3, 0.5, 0.7), **at), 1e-12),
    "sphere": (lambda **at: S.Sphere(0.4, **at), 0.04),
    "ellipsoid": (lambda **at: S.Ellipsoid((0.2, 0.3, 0.5), **at), 0.04),
    "cylinder": (lambda **at: S.Cylinder(0.3, 0.8, axis=(1, 2, 2), **at), 0.02),
    "capsule": (lambda **at: S.Capsule(0.2, 0.9, axis="x", **at), 0.03),
    "rod": (lambda **at: S.Rod((0.1, 0.2, 0.3), (1, -1, 0.5), 0.05, **at), 0.02),
    "extrusion": (lambda **at: S.Extrusion([(0, 0), (0, 3), (1, 3), (1, 1), (2, 1), (2, 0)], 0.2, **at), 1e-12),
    "plate": (
        lambda **at: S.Extrusion(2 * ROUND, 0.2, holes=[0.3 * ROUND + [1, 0], 0.4 * ROUND - [1, 0], 0.2 * ROUND], **at),
        1e-12,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_a_solid_is_what_its_surface_bounds(name: str) -> None:
    """Closed, facing outwards, and with the volume, centre and inertia of the shape, anywhere in the body."""
    make, tolerance = SHAPES[name]
    shape = make(at=cd.Pose((0.4, -0.2, 0.9), rpy=(0.3, -0.8, 1.9)))
    surface = shape.surface()
    assert open_edges(surface.vertices, surface.faces) == 0
    volume, com, unit = measure(surface.vertices[surface.faces], "exact")
    assert abs(volume / shape.volume - 1) < tolerance
    assert np.abs(com - shape.com).max() < 1e-12
    assert np.abs(volume * unit - shape.inertia).max() < 2 * tolerance * np.abs(shape.inertia).max()
    fewer = len(shape.surface(most_faces=100).faces)
    assert fewer <= 100 or fewer == len(surface.faces) < 400


def test_closed_forms_of_extrusions_and_rods() -> None:
    plate = S.Extrusion(2 * ROUND, 0.2, holes=[0.3 * ROUND + [1, 0], 0.4 * ROUND - [1, 0]])
    area = 12 * np.sin(2 * np.pi / 24)  # of the polygon of unit radius
    assert np.isclose(plate.volume, 0.2 * area * (4 - 0.09 - 0.16), rtol=1e-12)
    assert np.isclose(plate.com[0], (0.16 - 0.09) / (4 - 0.25), rtol=1e-9)
    m = cd.Mechanism("rod")
    m.body("rod", mass=3, shape=S.Rod((0, 0, 0), (0, 2, 0), 0.1))
    rod = m.bodies[0]
    assert np.allclose(rod.com, (0, 1, 0), atol=1e-15)
    assert np.allclose(rod.inertia, cd.inertia.cylinder(3, 0.1, 2, axis="y"), rtol=1e-12)


def test_plates_of_any_outline() -> None:
    """Random stars, with corners on straight edges and holes in rows: the area of the corners, and a closed surface."""
    rng = np.random.default_rng(1)
    area = lambda p: abs(p[:, 0] @ np.roll(p[:, 1], -1) - p[:, 1] @ np.roll(p[:, 0], -1)) / 2
    for trial in range(12):
        angle = np.linspace(0, 2 * np.pi, rng.integers(5, 30), endpoint=False)
        outline = rng.uniform(2, 6, len(angle))[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        outline = outline if trial % 3 else np.array([(x, y) for x, y in 2 * ROUND if abs(x) > 0.1] + [(0, -2)])
        outline = outline[np.argsort(np.arctan2(outline[:, 1], outline[:, 0]))]
        holes = [0.22 * ROUND[:: rng.choice([1, 2, 4])] + 0.6 * np.array([k % 3 - 1, k // 3 - 1]) for k in range(9)]
        holes = [holes[k] for k in rng.permutation(9)[: rng.integers(0, 9)]]
        plate = S.Extrusion(outline, 1, holes=holes)
        surface = plate.surface()
        assert np.isclose(plate.volume, area(outline) - sum(map(area, holes)), rtol=1e-10)
        assert open_edges(surface.vertices, surface.faces) == 0


def test_bodies_from_shape_and_density() -> None:
    """Two halves are a whole; a density and the mass that it gives say the same; a given inertia stays."""
    m = cd.Mechanism("halves")
    whole = S.Box((2, 1, 0.5), at=(3, 0, 0))
    halves = [S.Box((1, 1, 0.5), at=(2.5, 0, 0)), S.Box((1, 1, 0.5), at=(3.5, 0, 0), colour="red")]
    m.body("whole", shape=whole, density=800)
    m.body("halves", shape=halves, mass=800)
    m.body("seen", shape=whole, mass=1, com=(0, 0, 0), inertia=(1, 1, 1))
    m.body("light", shape=whole)
    a, b, c, d = m.bodies[:4]
    assert np.isclose(a.mass, 800) and np.allclose(a.com, b.com) and np.allclose(a.inertia, b.inertia, rtol=1e-12)
    assert np.allclose(a.inertia, cd.inertia.box(800, (2, 1, 0.5)), rtol=1e-12)
    with pytest.warns(RuntimeWarning, match=r"7.85 g/cm\^3 is 7850"):
        m.body("gas", shape=whole, density=7.85)
    with pytest.raises(AttributeError, match=r"it is cd\.shape\.Rod"):
        S.rod  # noqa: B018
    assert not c.com.any() and np.array_equal(c.inertia, np.eye(3)) and d.mass == 0
    assert [part.colour for part in b.shapes[1].parts()] == [read_colour("", "#d62728")]


def test_shapes_change_no_equations() -> None:
    bare = cd.mechanisms.four_bar().build()
    seen = bare.with_shapes(lambda shapes: (S.Box((1, 1, 1)),))
    assert bare.key == seen.key and seen.bodies[0].shapes and seen.ground_shapes


BOX = lambda: S.Box((1, 1, 1))
OPEN = lambda: S.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)], [(0, 2, 1), (0, 1, 3), (0, 3, 2)])
REFUSED: dict[str, tuple[Any, str]] = {
    "density without a shape": (lambda m: m.body("b", density=5), "density 5 needs a shape"),
    "density and mass": (lambda m: m.body("b", shape=BOX(), density=5, mass=2), "and mass is given too"),
    "density and inertia": (lambda m: m.body("b", shape=BOX(), density=5, inertia=(1, 1, 1)), "and inertia is given"),
    "negative density": (lambda m: m.body("b", shape=BOX(), density=-5), "density must be positive, got -5 kg/m^3"),
    "density in text": (lambda m: m.body("b", shape=BOX(), density="steel"), "density must be a number"),
    "negative mass": (lambda m: m.body("b", shape=BOX(), mass=-5), "mass is negative"),
    "com without inertia": (lambda m: m.body("b", shape=BOX(), mass=5, com=(1, 0, 0)), "leave out com"),
    "open mesh": (lambda m: m.body("b", shape=OPEN(), density=50), "its surface is not closed: 3 edges"),
    "no shape": (lambda m: m.body("b", shape="box", density=5), "cd.shape.Box((1, 2, 3))"),
    "a class": (lambda m: m.body("b", shape=S.Box), "cd.shape.Box((1, 2, 3))"),
    "shape of nothing": (lambda m: m.shape("b", BOX()), "'b'"),
    "negative size": (lambda m: S.Box((1, -1, 1)), "three positive numbers in m"),
    "no radius": (lambda m: S.Sphere(0), "radius must be positive, got 0 m"),
    "no length": (lambda m: S.Rod((1, 0, 0), (1, 0, 0), 0.1), "the same point [1.0, 0.0, 0.0]"),
    "American": (lambda m: S.Box((1, 1, 1), color="red"), "there is no argument 'color'; did you mean 'colour'"),
    "a file as a mesh": (lambda m: S.Mesh("part.stl"), "; a file is cd.shape.Mesh.from_file(path, scale=...)"),
    "three sizes": (lambda m: S.Box(1, 2, 3), "3 arguments without a name, and it takes 1"),
    "no such mesh": (lambda m: m.body("b", shape=S.MeshFile("a.stl"), density=99), "body 'b': mesh 'a.stl': there is"),
    "axis": (lambda m: S.Cylinder(1, 1, axis="w"), "is not one of x, y, z"),
    "colour": (lambda m: S.Sphere(1, colour="rad"), "'#rrggbb'"),
    "colour to 255": (lambda m: S.Sphere(1, colour=(255, 0, 0)), "from 0 to 1"),
    "crossing": (lambda m: S.Extrusion([(0, 0), (2, 1), (2, 0), (0, 2)], 1), "cross or touch"),
    "a line": (lambda m: S.Extrusion([(0, 0), (1, 1), (2, 2)], 1), "encloses no area"),
    "a hole outside": (lambda m: S.Extrusion(ROUND, 1, holes=[ROUND / 4 + 3]), "a hole is not inside"),
    "faces": (lambda m: S.Mesh([(0, 0, 0)], [(0, 1, 2)]), "names vertex 2; vertices are numbered from 0 to 0"),
    "no file": (lambda m: S.Mesh.from_file("nowhere.stl"), "mesh 'nowhere.stl': there is no such file"),
    "scale": (lambda m: S.MeshFile("part.stl", 0), "scale must not be zero"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_nonsense_is_one_sentence(what: str) -> None:
    act, sentence = REFUSED[what]
    with pytest.raises(cd.CardanError) as caught:
        act(cd.Mechanism("m"))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_simplified_surfaces_stay_near() -> None:
    """A fine sphere with a tenth of its triangles, and a torn box, whose edges stay sharp."""
    angle = np.linspace(0, np.pi, 60)
    sphere = revolved(np.column_stack([np.sin(angle) * (np.arange(60) % 59 > 0), -np.cos(angle)]), 90)
    coarse = simplified(sphere, len(sphere.faces) // 10)
    assert len(coarse.faces) <= len(sphere.faces) // 10
    assert np.abs(np.linalg.norm(coarse.vertices, axis=1) - 1).max() < 0.02
    volume = measure(coarse.vertices[coarse.faces], "exact")[0]
    assert abs(volume / (4 / 3 * np.pi) - 1) < 0.05
    grid = np.linspace(-0.5, 0.5, 21)
    u, v = (x.reshape(-1) for x in np.meshgrid(grid, grid, indexing="ij"))
    k = (np.arange(20)[:, None] * 21 + np.arange(20)).reshape(-1)
    quads = np.concatenate([np.column_stack([k, k + 21, k + 22]), np.column_stack([k, k + 22, k + 1])])
    sides = [
        np.roll(np.column_stack([u, v, np.full(441, 0.5)]) * [1, 1, s], r, axis=1) for s in (1, -1) for r in range(3)
    ]
    torn = Surface(np.concatenate(sides), np.concatenate([quads + 441 * n for n in range(6)]))
    few = simplified(torn, 600)
    assert 100 < len(few.faces) <= 600
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    assert np.abs(few.vertices[:, None] - corners).max(axis=2).min(axis=0).max() < 1e-9
