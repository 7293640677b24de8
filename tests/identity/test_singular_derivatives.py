"""Derivatives near singular positions are right or flagged; rows chosen at each state; joints turned over.

The truth is the recorded graph of the derivative itself, without regularisation, computed with 60 digits.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation.derivative import By
from cardan.formulation.solve import with_less_added
from cardan.structure.dynamics import forward_kernel
from cardan.structure.formulation import formulation_of
from cardan.structure.row_sets import row_sets

from ..high_precision import exact

pytestmark = pytest.mark.usefixtures("quick_code")

BY = ("q", "v", "tau")
ALONG = np.array([1.0, -1.0, 1.0])  # of the parallelogram's coordinates A, B, C


@pytest.fixture(scope="module")
def parallelogram() -> cd.Model:
    """Sides 1, 2, 1, 2: folded flat at q = 0, where its motion may branch."""
    m = cd.Mechanism("parallelogram", gravity=(0, 0, -9.81))
    for name, length in (("a", 1.0), ("b", 2.0), ("c", 1.0)):
        m.body(name, mass=1, com=(length / 2, 0, 0), inertia=(0.01, 0.1, 0.1))
    m.joint("A", cd.Revolute(axis=(0, 1, 0)), m.ground, "a")
    m.joint("B", cd.Revolute(axis=(0, 1, 0)), "a", "b", at=(1, 0, 0))
    m.joint("C", cd.Revolute(axis=(0, 1, 0)), m.ground, "c", at=(2, 0, 0))
    m.joint("D", cd.Revolute(axis=(0, 1, 0)), "b", "c", at=(2, 0, 0), child_at=(1, 0, 0))
    return m.build()


def told(call: Any) -> tuple[Any, list[str]]:
    """The result of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    return result, [str(w.message) for w in found]


@pytest.mark.parametrize("formulation", ["spatial", "absolute"])
def test_near_a_singular_position_derivatives_are_right_or_flagged(parallelogram: cd.Model, formulation: str) -> None:
    model, tau = parallelogram, np.array([1.0, 1.5, 2.0])
    with with_less_added(0.0, 1.0):
        graph = forward_kernel(model, formulation_of(model, formulation), False, By(BY)).program.record()
    flagged = []
    for angle in (0.3, 1e-3, 1e-5, 1e-7):
        q, v = angle * ALONG, ALONG
        D, said = told(lambda q=q, v=v: cd.forward_dynamics(model, q, v, tau, by=BY, formulation=formulation))
        error = 0.0
        for name, right in zip(BY, exact(graph, q, v, tau)[1:], strict=True):
            error = max(error, float(np.abs(D[name] - right).max() / np.abs(right).max()))
        digits = [int(n) for text in said for n in re.findall(r"about (\d+) digits", text)]
        assert error < 1e-6 or digits, (angle, error)
        assert not digits or 1e-4 < error * 10.0 ** digits[0] < 1e2, (digits, error)
        flagged.append(bool(digits))
    assert flagged == ([False] * 4 if formulation == "spatial" else [False, False, True, True])
    _, said = told(lambda: cd.forward_dynamics(model, 0 * ALONG, ALONG, tau, by=BY, formulation=formulation))
    assert any("by 'q', 'v', 'tau' is not determined" in text for text in said)
    assert cd.condition(model, 0 * ALONG, formulation=formulation) == np.inf  # the value is not determined either


def test_products_are_flagged_at_a_singular_position(parallelogram: cd.Model) -> None:
    at = {"q": 0 * ALONG, "v": ALONG, "tau": ALONG}
    with pytest.warns(RuntimeWarning, match=r"jvp of 'forward_dynamics': the derivative by 'q' is not determined"):
        cd.jvp(parallelogram, "forward_dynamics", at, {"q": ALONG})
    with pytest.warns(RuntimeWarning, match=r"weighted_hessian of .* is not determined"):
        cd.weighted_hessian(parallelogram, "forward_dynamics", at, ALONG)


def test_along_the_constraints_digits_are_told(parallelogram: cd.Model) -> None:
    """Here `a_A = k cos(A)`, so that the derivative by B, which is -A, is `k sin(A)`."""
    for angle in (0.5, 1e-2, 1e-4, 1e-6, 1e-7):
        D, said = told(
            lambda angle=angle: cd.forward_dynamics(
                parallelogram, angle * ALONG, ALONG, by=("q", "v"), chart="independent"
            )
        )
        k = D.value[0] / np.cos(angle)
        error = np.abs(D["q"][:, 0] - k * np.sin(angle) * ALONG).max() / k
        assert error < 1e-6 or any("motions branch" in text for text in said)
        assert bool(said) == (angle <= 1e-6)
    with pytest.raises(cd.InputError, match="motions branch, no coordinates do"):
        cd.body_poses(parallelogram, 1e-9 * ALONG, by="q", chart="independent")


def test_at_a_dead_point_other_coordinates_are_offered() -> None:
    model = mechanisms.slider_crank().build()
    q, v = cd.assemble(model, [1e-9, 0.0, 1.0], np.ones(3), hold=["bearing"])
    with pytest.raises(cd.InputError, match=r"dead point .* ask with chart='independent: pin'"):
        cd.forward_dynamics(model, q, v, by="q", chart="independent: guide")
    by_pin, by_crank = (
        cd.body_poses(model, q, by="q", chart=f"independent: {name}")["q"] for name in ("pin", "bearing")
    )
    J = cd.constraint_jacobian(model, q)[:, [0, 2]]
    crank_by_pin = -np.linalg.lstsq(J, cd.constraint_jacobian(model, q)[:, 1], rcond=None)[0][0]
    np.testing.assert_allclose(by_pin, by_crank * crank_by_pin, atol=1e-12)
    for chart, message in {
        "independent: crank": "there is no coordinate 'crank'",
        "independent: pin, guide": "has 1 independent coordinate, and chart names 2",
    }.items():
        with pytest.raises(cd.CardanError, match=message):
            cd.forward_dynamics(model, q, v, by="q", chart=chart)


def test_products_with_rows_chosen_at_each_state() -> None:
    model, rng = mechanisms.bennett().build(), np.random.default_rng(0)
    start = np.tile(cd.assemble(model)[0], (5, 1))
    start[:, 0] = np.linspace(-2.5, 2.5, 5)
    q, v = cd.assemble(model, start, np.ones(3), hold=["A"])
    tau, w, d = rng.normal(size=(3, 5, 3))
    D = cd.forward_dynamics(model, q, v, tau, by=("q", "v"))
    assert len(row_sets(model).rows) > 1
    at = {"q": q, "v": v, "tau": tau}
    _, rate = cd.jvp(model, "forward_dynamics", at, {"q": d, "v": tau})
    np.testing.assert_allclose(rate, (D["q"] @ d[..., None] + D["v"] @ tau[..., None])[..., 0], rtol=1e-10)
    _, gradient = cd.vjp(model, "forward_dynamics", at, w)
    np.testing.assert_allclose(gradient["q"], np.einsum("bi,bij->bj", w, D["q"]), atol=1e-12)
    step = cd.compile(model, "forward_dynamics", by=("q", "v")).bind(q, v, tau)
    np.testing.assert_array_equal(step()["v"], D["v"])
    q[...], v[...], tau[...] = q[::-1].copy(), v[::-1].copy(), tau[::-1].copy()
    np.testing.assert_array_equal(step()["q"], D["q"][::-1])
    # along the constraints the choice of rows does not matter: against differences of assembled states
    h = 1e-3
    there = [cd.assemble(model, q[0] + [s * h, 0, 0], v[0], hold=["A"]) for s in (-2, -1, 1, 2)]
    a = [cd.forward_dynamics(model, x, y, tau[0]) for x, y in there]
    found = cd.forward_dynamics(model, q[0], v[0], tau[0], by="q", chart="independent: A")["q"][:, 0]
    np.testing.assert_allclose(found, (a[0] - 8 * a[1] + 8 * a[2] - a[3]) / (12 * h), rtol=1e-7)


@pytest.mark.parametrize("kind", [cd.Revolute(axis=(0, 0, 1)), cd.Prismatic(axis=(0, 0, 1))])
def test_a_cut_joint_turned_over_is_not_closed(kind: Any) -> None:
    m = cd.Mechanism("ball and joint")
    m.body("a", mass=1, com=(0.5, 0, 0.1), inertia=(0.05, 0.1, 0.1))
    m.joint("S", cd.Spherical(), m.ground, "a")
    m.joint("C", kind, m.ground, "a")
    model = m.build(cut=["C"])
    over = np.array([0.0, 1.0, 0.0, 0.0])  # half a turn about x: every residual vanishes
    assert not cd.constraint_residual(model, over).any()
    for near in (over, over + np.array([1e-9, 0, 1e-9, 0])):
        q, _ = cd.assemble(model, near)
        assert np.abs(q[1:3]).max() < 1e-9
    with pytest.raises(cd.ModelError, match="joint 'C' closes only with its directions opposite"):
        cd.assemble(model, over, hold=["S"])
    if isinstance(kind, cd.Revolute):  # the other leaves no freedom
        with pytest.warns(RuntimeWarning, match="closes joint 'C' with its directions opposite"):
            cd.forward_dynamics(model, over, np.zeros(3), by="q")
        with pytest.raises(cd.InputError, match="the start closes joint 'C' with its directions opposite"):
            cd.simulate(model, 0.1, over, np.zeros(3))
