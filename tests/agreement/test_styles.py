"""Equations printed in the style of a source: with numbers they are the engine's rows, and they look like the page."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import cardan as cd

from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

sympy = pytest.importorskip("sympy")


TURNED = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])


@cache
def pair(type: cd.JointType) -> cd.Model:
    """Two bodies, the first free, with a joint between them whose axes are not those of the bodies."""
    m = cd.Mechanism("pair", gravity=(0, 0, 0))
    m.body("B1", mass=1.0, com=(0, 0.1, 0), inertia=(1.0, 1.0, 1.0))
    m.body("B2", mass=1.0, com=(0, 0, 0), inertia=(1.0, 1.0, 1.0))
    m.joint("free", cd.Free(), m.ground, "B1")
    at, child_at = cd.Pose((0.5, 0.0, 0.2), TURNED), cd.Pose((0.0, -0.3, 0.0), TURNED @ TURNED)
    m.joint("joint", type, "B1", "B2", at=at, child_at=child_at)
    return m.build()


def own_state(model: cd.Model, eq: cd.Equations, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A state that the joints allow, in the formulation's own coordinates, without a compiled kernel."""
    lifted = cd.equations(model).graph("lift")(*model.random_state(np.random.default_rng(seed)))
    return tuple(np.array(x).ravel() for x in eq.graph("project")(*lifted))


def system(eq: cd.Equations, q: np.ndarray, v: np.ndarray) -> list[np.ndarray]:
    """J, gamma and phi of the engine."""
    found = eq.graph("system")(q, v, np.zeros(eq.model.nv), np.zeros((eq.model.nb, 6)), 0.0)
    return [np.array(found[k]) for k in (2, 3, 5)]


def compare(model: cd.Model, formulation: str, **words: Any) -> Any:
    """The printed rows are the engine's, combined by one invertible matrix, at two states; returns what is printed."""
    eq = cd.equations(model, formulation=formulation)
    printed = eq.sympy(style="KJ", **words)
    J_of, gamma_of, phi_of = (printed.function(name) for name in ("J", "gamma", "phi"))
    plus = eq.graph("plus")
    rng = np.random.default_rng(0)
    for seed in (1, 2):
        q, v = own_state(model, eq, seed)
        J, gamma, phi = system(eq, q, v)
        own_J, own_gamma = np.asarray(J_of(q)), np.asarray(gamma_of(q, v))
        Q = own_J @ np.linalg.pinv(J)
        assert np.linalg.cond(Q) < 10
        close(Q @ J, own_J, 1e-12)
        close(Q @ gamma, own_gamma, 1e-11)
        assert np.abs(phi_of(q)).max() < 1e-12 and np.abs(phi).max() < 1e-12
        u, h = rng.standard_normal(len(v)), 1e-5
        rate = (phi_of(np.array(plus(q, h * u)).ravel()) - phi_of(np.array(plus(q, -h * u)).ravel())) / (2 * h)
        close(rate.ravel(), own_J @ u, 1e-9)
    return printed


@pytest.mark.parametrize(
    ("type", "formulation", "symbols"),
    [
        (cd.Revolute(), "absolute", ["joint.at"]),
        (cd.Revolute(), "absolute_body", ["joint.at"]),
        (cd.Universal(), "absolute_body", []),
        (cd.Screw(pitch=0.1), "absolute", []),
        (cd.Rigid(), "absolute_body", []),
    ],
    ids=lambda x: getattr(getattr(x, "kind", None), "title", None),
)
def test_rows_are_the_engines(type: cd.JointType, formulation: str, symbols: list[str]) -> None:
    compare(pair(type), formulation, symbols=symbols)


def test_relative_rows_are_already_those_of_KJ() -> None:
    """KJ(4),(11),(12) with components in B2."""
    printed = cd.equations(pair(cd.Revolute()), formulation="relative").sympy(style="KJ", symbols=[])
    rows = sympy.zeros(5, 12)
    for k, place in enumerate((6, 7, 9, 10, 11)):
        rows[k, place] = 1
    assert rows == printed.J and sympy.zeros(5, 1) == printed.gamma


def test_a_loop_and_a_coupling() -> None:
    """Two joints have indices of their own; rows that are no joint's are left as they are."""
    m = cd.Mechanism("geared", gravity=(0, 0, 0))
    for name in ("A", "B"):
        m.body(name, mass=1.0, com=(0.3, 0, 0), inertia=(1.0, 1.0, 1.0))
    m.joint("first", cd.Revolute(axis=(0, 1, 0)), m.ground, "A")
    m.joint("second", cd.Revolute(axis=(0, 1, 0)), "A", "B", at=(1, 0, 0))
    m.couple("gears", {"first": 1.0, "second": 2.0})
    eq = cd.equations(m.build(), formulation="absolute")
    plain, printed = eq.sympy(symbols=["second.at"]), eq.sympy(symbols=["second.at"], style="KJ")
    assert plain.J[-1, :] == printed.J[-1, :] and plain.gamma[-1] == printed.gamma[-1]
    assert {"r_first_x", "q_second_x", "r_second_x"} <= {str(x) for x in printed.definitions}


@cache
def ball() -> Any:
    m = cd.Mechanism("balls", gravity=(0, 0, 0))
    for name in ("B1", "B2"):
        m.body(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
    m.joint("free", cd.Free(), m.ground, "B1")
    m.joint("ball", cd.Spherical(), "B1", "B2", at=(0.5, 0.1, 0.2), child_at=(-0.3, 0.4, 0.2))
    return m.build()


def tilde(letter: str) -> Any:
    x, y, z = (sympy.Symbol(f"{letter}_{axis}") for axis in "xyz")
    return sympy.Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def test_a_ball_joint_is_printed_as_KJ1_and_KJ2() -> None:
    printed = compare(ball(), "absolute")
    one = sympy.eye(3)
    assert sympy.Matrix.hstack(tilde("q"), -one, tilde("r"), one) == printed.J
    w1, w2 = printed.v[:3, :], printed.v[6:9, :]
    assert sympy.expand(printed.gamma + tilde("qdot") * w1 + tilde("rdot") * w2) == sympy.zeros(3, 1)  # KJ(2)
    q, r = (sympy.Matrix([sympy.Symbol(f"{letter}_{axis}") for axis in "xyz"]) for letter in "qr")
    assert sympy.expand(printed.phi - (printed.q[7:10, :] - printed.q[:3, :] - q - r)) == sympy.zeros(3, 1)  # KJ(1)
    plain = cd.equations(ball(), formulation="absolute").sympy()
    assert printed.operations("gamma") <= 25 < 300 < plain.operations("gamma")
    assert r"\dot{q}_{x}" in printed.latex() and "from the centre of mass of B1 to ball" in printed.latex()


def test_the_style_is_told_apart() -> None:
    eq = cd.equations(ball(), formulation="absolute")
    with pytest.raises(cd.UnknownNameError, match=r"there is no style 'JK'.*KJ"):
        eq.sympy(style="JK")
    with pytest.raises(cd.InputError, match=r"style 'KJ' prints the formulations absolute, .* got 'spatial'"):
        cd.equations(ball()).sympy(style="KJ")
    with pytest.raises(cd.InputError, match="leave out simplify=False"):
        eq.sympy(style="KJ", simplify=False)
