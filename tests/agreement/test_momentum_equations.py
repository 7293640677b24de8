"""AT's momentum equations of any planar mechanism: they solve the contract, and print as the source has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import textbook as book
from cardan.functions.check import consistent_states
from cardan.mechanisms import andrews, cart_pole, double_pendulum, slider_crank
from cardan.model.plane import planar_model

pytestmark = pytest.mark.usefixtures("quick_code")

sympy = pytest.importorskip("sympy")
MODELS = {f.__name__: f for f in (andrews, cart_pole, slider_crank)}


def floating() -> cd.Mechanism:
    """A plate that floats and carries an arm; with a spring."""
    m = cd.Mechanism("floating", gravity=(0.5, -9.81, 0))
    m.body("plate", mass=2.0, com=(0.2, 0.3, 0), inertia=np.diag([0.3, 0.4, 0.5]))
    m.body("arm", mass=1.0, com=(0.3, 0.1, 0), inertia=np.diag([0.1, 0.1, 0.1]))
    m.joint("float", cd.Planar(), m.ground, "plate")
    m.joint("elbow", cd.Revolute(), "plate", "arm", at=(0.5, -0.2, 0))
    m.spring("spring", m.ground, "arm", stiffness=30.0, length=0.2, at1=(1.0, 0.5, 0), at2=(0.4, 0.0, 0))
    return m


def state(model: cd.Model, count: int) -> tuple[Any, np.ndarray, np.ndarray]:
    eq = cd.equations(model, formulation="points")
    q, v = consistent_states(model, np.random.default_rng(3), count)
    return eq, *eq.project(cd.body_poses(model, q), cd.body_twists(model, q, v))


@pytest.mark.parametrize("name", [*MODELS, "floating"])
def test_they_give_the_accelerations_and_multipliers_of_the_contract(name: str) -> None:
    model = (floating if name == "floating" else MODELS[name])().build()
    eq, x, xd = state(model, 3)
    rng = np.random.default_rng(4)
    given = rng.normal(size=(3, model.nv)), rng.normal(size=(3, model.nb, 6))
    A, b = eq.momentum_equations(x, xd, *given)
    assert A.shape == (3, len(eq.momentum_rows), len(eq.momentum_rows))
    found = np.linalg.solve(A, b[..., None])[..., 0]
    J = eq.J(x)
    zero = np.zeros((3, eq.nl, eq.nl))
    whole = np.block([[eq.M(x), np.swapaxes(J, -1, -2)], [J, zero]])
    right = np.concatenate([eq.f(x, xd, *given), eq.gamma(x, xd)], axis=-1)
    wanted = np.linalg.solve(whole, right[..., None])[..., 0]
    own = planar_model(model).own_rows
    wanted = np.delete(wanted, np.s_[eq.nv : eq.nv + own], axis=-1)
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("name", [*MODELS, "floating"])
def test_numbers_in_the_printed_form_give_what_the_kernel_gives(name: str) -> None:
    model = (floating if name == "floating" else MODELS[name])().build()
    eq, x, xd = state(model, 1)
    driven = [joint.name for joint in model.joints if joint.kind.nv == 1 and joint.name in driven_joints(model)]
    printed = eq.sympy(style="AT", drives=driven)
    tau = np.random.default_rng(5).normal(size=len(driven))
    whole = np.zeros(model.nv)
    for joint, size in zip(driven, tau, strict=True):
        whole[model.v_slice(joint)] = size
    A, b = eq.momentum_equations(x[0], xd[0], whole)
    np.testing.assert_allclose(printed.function("A")(x[0], xd[0], tau), A, atol=1e-13 * np.abs(A).max())
    np.testing.assert_allclose(printed.function("b")(x[0], xd[0], tau).ravel(), b, atol=1e-13 * np.abs(b).max())
    # only where a spring acts on a body does its line's direction in the body stay a number
    assert not (printed.A if name in ("floating", "andrews") else printed.A.row_join(printed.b)).atoms(sympy.Float)
    assert all(abs(x.p) <= 4 and x.q <= 4 for x in printed.A.atoms(sympy.Rational))  # no number of the model


def driven_joints(model: cd.Model) -> list[str]:
    return [model.joints[link.joint].name for link in model.tree.links]


def test_a_floating_body_has_AT_10_to_12() -> None:
    m = cd.Mechanism("plate", gravity=(0, 0, 0))
    m.body("plate", mass=1.0, com=(0.1, 0.2, 0), inertia=np.eye(3))
    m.joint("float", cd.Planar(), m.ground, "plate")
    printed = cd.equations(m.build(), formulation="points").sympy(style="AT", symbols=["plate.nu", "plate.lambda"])
    m1, m2, m3, nu, lam = sympy.symbols("m1 m2 m3 nu lambda")
    r1, r3, v1, v3, a1, a3 = (
        sympy.Matrix(sympy.symbols(f"x{d}_{p} y{d}_{p}")) for d in ("", "dot", "ddot") for p in "PQ"
    )
    r31, v31 = r3 - r1, v3 - v1
    r21 = nu * r31 + lam * sympy.Matrix([-r31[1], r31[0]])
    right = [
        *book.AT_10(m1, m2, m3, nu, lam, a1, a3),
        book.AT_11(m2, m3, nu, lam, r21, r31, a1, a3),
        r31.dot(a3 - a1),
    ]
    same(printed.equations, [(0, right[0]), (0, right[1]), (0, right[2]), (book.AT_12(v31), right[3])])


def test_a_body_on_an_axis_has_AT_11_and_12_and_a_rod_the_rod_form() -> None:
    m = cd.Mechanism("pendulum", gravity=(0, -9.81, 0))
    m.body("rod", mass=2.0, com=(0.5, 0, 0), inertia=np.eye(3))
    m.joint("axis", cd.Revolute(), m.ground, "rod")
    eq = cd.equations(m.build(), formulation="points")
    m2, m3, nu, lam, g, tau = sympy.symbols("m2 m3 nu lambda g tau_axis")
    r31, v31, a3 = (sympy.Matrix(sympy.symbols(f"x{d}_Q y{d}_Q")) for d in ("", "dot", "ddot"))
    rest = sympy.zeros(2, 1)
    r21 = nu * r31 + lam * sympy.Matrix([-r31[1], r31[0]])
    weight = -g * (m2 * r21[0] + m3 * r31[0])
    printed = eq.sympy(style="AT", symbols=["rod.nu", "rod.lambda"], drives=["axis"])
    moment = book.AT_11(m2, m3, nu, lam, r21, r31, rest, a3)
    same(printed.equations, [(weight + tau, moment), (book.AT_12(v31), r31.dot(a3))])
    rod = eq.sympy(style="AT", drives=["axis"])
    moment = book.AT_rod_11(m2 / 2, m3, r31 / 2, r31, rest, a3)
    same(
        rod.equations, [(weight.subs({nu: sympy.Rational(1, 2), lam: 0}) + tau, moment), (book.AT_12(v31), r31.dot(a3))]
    )
    assert "m_{2}" in rod.latex() and "mass of particle 2 of rod" in rod.latex()


def test_the_last_body_of_a_chain_has_the_equation_of_2_4() -> None:
    printed = cd.equations(double_pendulum().build(), formulation="points").sympy(
        style="AT", symbols=["lower.nu", "lower.lambda"]
    )
    m2, m3, nu, lam, g = sympy.symbols("m2_lower m3_lower nu_lower lambda_lower g")
    P, Q, Pd, Qd, a, b = (
        sympy.Matrix(sympy.symbols(f"x{d}_Q_{p} y{d}_Q_{p}")) for d in ("", "dot", "ddot") for p in ("rod", "lower")
    )
    r = Q - P
    r2 = nu * r + lam * sympy.Matrix([-r[1], r[0]])
    weight = g * (m2 * r2[0] + m3 * r[0])  # y of the plane is downwards here
    right = book.AT_chain_moment(m2, m3, nu, lam, r2, r, a, b), r.dot(b - a)
    same(printed.equations[2:], [(weight, right[0]), (book.AT_chain_distance(Qd - Pd), right[1])])


def same(printed: Any, wanted: list[tuple[Any, Any]]) -> None:
    """Left and right sides agree as expressions."""
    for equation, (left, right) in zip(printed, wanted, strict=True):
        assert sympy.expand(equation.lhs - left) == 0
        assert sympy.expand(equation.rhs - right) == 0


def test_wrong_styles_are_refused() -> None:
    model = double_pendulum().build()
    with pytest.raises(cd.UnknownNameError, match=r"there is no style 'At'; did you mean 'AT'\?"):
        cd.equations(model, formulation="points").sympy(style="At")
    with pytest.raises(cd.InputError, match="style 'AT' is that of formulation 'points'"):
        cd.equations(model).sympy(style="AT")
    with pytest.raises(cd.InputError, match="formulation 'spatial' has no momentum equations"):
        cd.equations(model).momentum_equations(np.zeros(2), np.zeros(2))
    with pytest.raises(cd.UnknownNameError, match=r"symbols: 'rod.mu' is no number of these equations"):
        cd.equations(model, formulation="points").sympy(style="AT", symbols=["rod.mu"])
