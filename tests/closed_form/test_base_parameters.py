"""Base parameters against the textbooks."""

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import four_bar, slider_crank

pytestmark = pytest.mark.usefixtures("quick_code")


def two_link_arm() -> cd.Model:
    """2R arm in a vertical plane, the first link 0.6 m long."""
    m = cd.Mechanism("2R", gravity=(0, -9.81, 0))
    for name, length in (("one", 0.6), ("two", 0.4)):
        m.body(name, mass=1.0, com=(length / 2, 0, 0), inertia=(0.01, 0.02, 0.02))
    hinge = cd.Revolute(axis=(0, 0, 1))
    m.joint("shoulder", hinge, m.ground, "one")
    m.joint("elbow", hinge, "one", "two", at=(0.6, 0, 0))
    return m.build()


def test_two_link_arm_has_khalils_base_parameters() -> None:
    # Khalil and Dombre, Modeling, Identification and Control of Robots: ZZ1R = ZZ1 + l^2 M2, MX1R = MX1 + l M2
    found = cd.base_parameters(two_link_arm())
    assert found.names == (
        "one.mx + elbow.at.x two.mass", "one.my", "one.Izz + elbow.at.x^2 two.mass", "two.mx", "two.my", "two.Izz",
    )  # fmt: skip
    assert found.combinations[0, found.parameters.index("two.mass")] == 0.6
    assert found.combinations[2, found.parameters.index("two.mass")] == 0.36
    assert found.alone == ("one.my", "two.mx", "two.my", "two.Izz")
    assert found.only_in_combination == ("one.mx", "one.Izz", "two.mass")
    assert found.gap > 1e10


def test_a_dimension_that_is_negative_keeps_its_sign() -> None:
    m = cd.Mechanism("2R", gravity=(0, -9.81, 0))
    m.body("one", mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.02, 0.02))
    m.body("two", mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.02, 0.02))
    m.joint("shoulder", cd.Revolute(axis=(0, 0, 1)), m.ground, "one")
    m.joint("elbow", cd.Revolute(axis=(0, 0, 1)), "one", "two", at=(-0.6, 0, 0))
    found = cd.base_parameters(m.build())
    assert found.names[0] == "one.mx + elbow.at.x two.mass"
    assert found.combinations[0, found.parameters.index("two.mass")] == -0.6


def test_without_gravity_the_first_moments_of_the_first_link_are_lost() -> None:
    m = cd.Mechanism("2R", gravity=(0, 0, 0))
    m.body("one", mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.02, 0.02))
    m.body("two", mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.02, 0.02))
    m.joint("shoulder", cd.Revolute(axis=(0, 0, 1)), m.ground, "one")
    m.joint("elbow", cd.Revolute(axis=(0, 0, 1)), "one", "two", at=(0.6, 0, 0))
    found = cd.base_parameters(m.build())
    assert found.independent == ("one.Izz", "two.mx", "two.my", "two.Izz")


def test_slider_crank_moves_the_slider_into_the_rod_and_the_crank() -> None:
    found = cd.base_parameters(slider_crank().build())
    assert found.names == (
        "crank.mx + pin.at.x rod.mass + pin.at.x slider.mass", "crank.my",
        "crank.Izz + pin.at.x^2 rod.mass + pin.at.x^2 slider.mass", "rod.mx + wrist.child_at.x slider.mass", "rod.my",
        "rod.Izz + wrist.child_at.x^2 slider.mass",
    )  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
def test_four_bar_columns_are_combinations_of_the_base(seed: int) -> None:
    # Two masses on the line of the pivots stand for the rocker's first moment: with r the length of the rocker,
    # a particle mx / r at its end and the same taken from its Izz as r mx (statically equivalent masses)
    model = four_bar().build()
    found = cd.base_parameters(model, seed=seed)
    assert len(found) == 8
    r, crank = abs(model.joint("C").child_at.position[0]), model.joint("B").at.position[0]
    at = found.parameters.index("rocker.mx")
    row = found.independent.index("rocker.Izz")
    assert np.isclose(found.combinations[row, at], -r, rtol=1e-9)
    assert np.isclose(found.combinations[found.independent.index("crank.mx"), at], crank / r, rtol=1e-9)


def test_names_of_coefficients_have_the_right_unit() -> None:
    """About the axis (0, 1, 1) an inertia is `(Iyy + Izz) / 2 + Iyz`: the 2 is no length, though one is 2 m."""
    m = cd.Mechanism("two", gravity=(0, -9.81, 0))
    m.body("a", mass=1.0, com=(0.3, 0.1, 0), inertia=(0.1, 0.1, 0.1))
    m.body("b", mass=1.0, com=(0.3, 0.1, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("A", cd.Revolute(axis=(0, 1, 1)), m.ground, "a", at=(2.0, 0, 0))
    m.joint("B", cd.Revolute(axis=(1, 0, 0)), "a", "b", at=(0.7, 0, 0))
    names = cd.base_parameters(m.build()).names
    assert any("2 a.Iyz" in name for name in names) and any("B.at.x b.mass" in name for name in names), names
    assert not any("A.at.x" in name for name in names), names
