"""Branches, dead points, manipulability, transmission angle and workspace of linkages against closed forms."""

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import five_bar, four_bar, slider_crank

from .test_inverse_kinematics import arm

pytestmark = pytest.mark.usefixtures("quick_code")
BASE, CRANK, COUPLER, ROCKER = 1.0, 0.4, 0.9, 0.7  # of the catalogue's four-bar, a crank-rocker


def freudenstein(a: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Residual of Freudenstein's equation at crank angle a and rocker angle d, rad; zero where the linkage closes."""
    k1, k2 = BASE / CRANK, BASE / ROCKER
    k3 = (BASE**2 + CRANK**2 + ROCKER**2 - COUPLER**2) / (2 * CRANK * ROCKER)
    return np.asarray(k1 * np.cos(d) - k2 * np.cos(a) + k3 - np.cos(a - d))


def test_branches_of_a_crank_rocker() -> None:
    """Both branches keep Freudenstein's equation; the rocker rests where crank and coupler are in line."""
    model = four_bar().build()
    found = cd.branches(model, "A", output="D", samples=7, starts=8)
    assert len(found) == 2 and all(branch.closed for branch in found.branches) and not found.dead_points
    for branch in found.branches:
        assert np.abs(freudenstein(branch.input, branch.output)).max() < 1e-12
        assert np.abs(cd.constraint_residual(model, branch.q)).max() < 1e-12
        assert np.ptp(branch.input) > 2 * np.pi - 0.2
    D = [np.pi - np.arccos((BASE**2 + ROCKER**2 - x**2) / (2 * BASE * ROCKER)) for x in (1.3, 0.5)]
    assert {s.kind for s in found.singular} == {"type I"}
    assert np.allclose(sorted(s.output for s in found.singular), [-D[1], -D[0], D[0], D[1]], atol=1e-12)
    driven = cd.branches(model, "D", output="A", samples=7, starts=8)  # the rocker drives: these are its dead points
    assert len(driven) == 2 and {s.kind for s in driven.singular} == {"type II"}
    assert np.allclose(sorted(s.input for s in driven.dead_points), [-D[1], -D[0], D[0], D[1]], atol=1e-12)
    by_output = lambda positions, name: sorted(getattr(s, name) for s in positions)
    assert np.allclose(by_output(found.singular, "input"), by_output(driven.singular, "output"), atol=1e-9)

    sets = cd.positions(model, "D", [1.0, 1.6, 2.6, 3.0], starts=12)
    assert [len(q) for q in sets] == [0, 2, 2, 0]
    assert all(np.abs(freudenstein(q[:, 0], q[:, 2])).max() < 1e-12 for q in sets[1:3])

    q = found.branches[0].q
    cosine = COUPLER**2 + ROCKER**2 - BASE**2 - CRANK**2 + 2 * BASE * CRANK * np.cos(q[:, 0])
    expected = np.arccos(cosine / (2 * COUPLER * ROCKER))
    assert np.abs(cd.transmission_angle(model, q, "coupler", "rocker") - expected).max() < 1e-12
    # the output's rate for a unit rate of the input, by the derivative of Freudenstein's equation
    a, d = q[:, 0], q[:, 2]
    slope = (BASE / ROCKER * np.sin(a) + np.sin(a - d)) / (BASE / CRANK * np.sin(d) + np.sin(a - d))
    radii = cd.manipulability(model, q, "rocker", motion="rotation", joints=["A"]).radii
    assert np.abs(radii[:, 0] - np.abs(slope)).max() < 1e-10
    with pytest.raises(cd.InputError, match="3 driven rates for 1 freedom"):
        cd.manipulability(model, q, "rocker", joints=["A", "B", "D"])
    none = cd.branches(model, "D", 3.0, 3.1, samples=2, starts=4)
    assert len(none) == 0 and "cannot be assembled" in str(none)


def test_singular_positions_of_a_five_bar() -> None:
    """Links in line: type II, the cranks lose control of C. Cranks in line with links: type I, C cannot move."""
    model = five_bar().build()  # base 0.8, cranks 0.5, links 0.7
    a = np.arccos(-0.6)  # 0.8 - 2 * 0.5 cos(a) = 2 * 0.7
    inline = cd.assemble(model, [a, np.pi - a, -a, a], hold=["A", "E"])[0]
    reach = np.arccos((0.8**2 + 1.2**2 - 1.2**2) / (2 * 0.8 * 1.2))  # both sides straight: an isosceles triangle
    folded = cd.assemble(model, [reach, np.pi - reach, 0.0, 0.0], hold=["A", "E"])[0]
    q = np.stack([cd.assemble(model)[0], inline, folded])
    found = cd.manipulability(model, q, "left link", joints=["A", "E"], point=(0.7, 0, 0))
    assert found.singular.tolist() == ["", "type II", "type I"]
    assert np.isinf(found.radii[1, 0]) and np.allclose(found.radii[2], 0.0, atol=1e-7)
    with pytest.raises(cd.InputError, match="has 2 freedoms, not one; hold"):
        cd.branches(model, "A")


def test_slider_crank_and_parallelogram() -> None:
    """Dead centres at crank +- rod, the angle of the rod to the slide's normal; branch points where all bars align."""
    model = slider_crank().build()  # crank 0.2, rod 0.5
    found = cd.branches(model, "guide", output="bearing", samples=8, starts=8)
    assert np.allclose(sorted(s.input for s in found.dead_points), [-0.7, -0.3, 0.3, 0.7], atol=1e-12)
    assert "guide from 0.3 to 0.7\n" in str(found) and "guide from -0.7 to -0.3\n" in str(found)
    q = found.branches[0].q
    sine = 0.2 * np.sin(q[:, 0]) / 0.5
    assert np.abs(np.abs(np.cos(cd.transmission_angle(model, q, "rod", "slider"))) - np.abs(sine)).max() < 1e-12
    model = four_bar(crank=0.4, coupler=1.0, rocker=0.4).build()
    found = cd.branches(model, "A", output="D", samples=5, starts=8)
    assert len(found) == 2 and {s.kind for s in found.singular} == {"branch point"}
    assert np.allclose(sorted(np.cos(s.input) for s in found.singular), [-1, 1], atol=1e-9)
    straight = min(found.branches, key=lambda b: np.abs(np.exp(1j * (b.input - b.output)) - 1).max())
    assert np.abs(np.exp(1j * (straight.input - straight.output)) - 1).max() < 1e-9  # the parallel one of the two


def test_manipulability_and_workspace_of_a_planar_arm() -> None:
    """Yoshikawa's `l1 l2 |sin q2|`, its singular positions, and the ring that the tip can reach."""
    model = arm(2)
    q = np.random.default_rng(0).uniform(-3, 3, (4, 5, 2))
    found = cd.manipulability(model, q, "tip")
    assert np.allclose(found.yoshikawa, 0.7 * np.abs(np.sin(q[..., 1])))
    J = cd.jacobian(model, q, "tip", axes="ground")[..., 3:5, :]
    ellipsoid = np.einsum("...ka,...k,...kb->...ab", found.axes[..., :2], found.radii**2, found.axes[..., :2])
    assert np.allclose(ellipsoid, J @ np.swapaxes(J, -1, -2))
    assert np.isinf(cd.manipulability(model, [0.3, 0.0], "tip").condition)
    with pytest.raises(cd.InputError, match=r"q\[1\] is nan"):
        cd.manipulability(model, [0.3, np.nan], "tip")
    alone = cd.branches(model, model.joint_names[0], hold=[model.joint_names[1]], samples=3, starts=2)
    assert len(alone) == 1 and alone.branches[0].closed and not alone.singular

    space = cd.workspace(model, "tip", samples=500)
    radius = np.linalg.norm(space.boundary, axis=1)
    assert space.dimension == 2 and len(space.boundary) > 50
    assert np.minimum(np.abs(radius - 1.7), np.abs(radius - 0.3)).max() < 1e-9
    assert np.isclose(space.extent, np.pi * (1.7**2 - 0.3**2), rtol=0.05)
    with pytest.raises(cd.InputError, match="fixed to the ground"):
        cd.workspace(model, "ground")
