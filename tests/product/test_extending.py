"""What docs/extending.md adds, a joint, a force, a formulation, integrators, is held to what Cardan's own hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.formulation import registry
from cardan.integrate.explicit.tableau import KUTTA
from cardan.integrate.integrators import INTEGRATORS
from cardan.mechanisms import cart_pole, slider_crank, two_body
from cardan.model import force, joint
from cardan.model.joint import JointType, reversed_kind

pytestmark = pytest.mark.usefixtures("quick_code")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"


@pytest.fixture(scope="module")
def page() -> Iterator[dict[str, Any]]:
    """All that the page's code defines, in one namespace; what it registers is forgotten afterwards."""
    found: dict[str, Any] = {"__name__": "extending"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint, "ADDED_TYPES", {})
        patch.setattr(force, "ADDED_FORCES", {})
        patch.setattr(registry, "ADDED", {})
        for block in PAGE.read_text().split("```python\n")[1:]:
            exec(compile(block.partition("\n```")[0], str(PAGE), "exec", dont_inherit=True), found)
        found["WIRE"] = found["wire"](found["k"])
        yield found


def test_the_joint_moves_as_its_subspace_says(page: dict[str, Any]) -> None:
    wire = page["WIRE"]
    q, v = ca.SX.sym("q"), ca.SX.sym("v")
    r = wire.r(q)
    S = ca.SX(wire.S(q))
    rows = [
        S[3:, :] @ v - ca.jtimes(r, q, v),  # it does not turn, so its velocity is that of its origin
        ca.SX(wire.bias(q, v)) - ca.jtimes(S, q, v) @ v,
        ca.SX(wire.T(q)).T @ S,
        wire.phi(ca.SX.eye(3), r),
        wire.measure(ca.SX.eye(3), r) - q,
    ]
    assert np.abs(np.array(ca.Function("rows", [q, v], [ca.vertcat(*rows)])(0.4, 1.3))).max() < 1e-15


def test_the_joint_closes_a_loop(page: dict[str, Any]) -> None:
    m = cd.Mechanism("loop", gravity=(0, 0, -9.81))
    m.body("bead", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    m.joint("carried", cd.Free(), m.ground, "bead")
    m.joint("wire", page["Wire"](), m.ground, "bead")
    model = m.build(cut=["wire"])
    slope = page["k"] * 0.3
    q = np.array([0.3, 0, slope * 0.3 / 2, 1, 0, 0, 0])
    a = cd.forward_dynamics(model, q, np.array([0, 0, 0, 1.2, 0, 1.2 * slope]))
    assert np.isclose(a[3], page["a"][0], rtol=1e-10)


def test_the_joint_and_the_force_are_drawn_and_have_a_page(page: dict[str, Any], tmp_path: Path) -> None:
    for model in (page["bead"], page["windy"]):
        (name,) = (text.get_text() for text in model.draw([0.3]).axes[0].texts if text.get_gid() == "name")
        assert name == "wire"
    run = cd.simulate(page["windy"], 0.2, [0.5], samples=5)
    run.draw()
    run.plot()
    run.page(tmp_path / "run.html", simulate=False)


def test_a_joint_of_the_same_name_is_another_joint(page: dict[str, Any]) -> None:
    """Kernels are kept by what a joint says, not by what it is called."""
    straight = replace(
        page["WIRE"], r=lambda q: ca.vertcat(q[0], 0, 0), S=lambda q: np.eye(6)[:, 3:4], bias=None,
        T=lambda q: np.eye(6)[:, [0, 1, 2, 4, 5]], phi=lambda R, p: ca.vertcat(page["no_turn"](R), p[1:]),
    )  # fmt: skip

    @dataclass(frozen=True)
    class Straight(JointType):
        kind = straight

    assert straight.identity != page["WIRE"].identity
    assert reversed_kind(straight).identity != reversed_kind(page["WIRE"]).identity
    m = cd.Mechanism("bead", gravity=(0, 0, -9.81))
    m.body("bead", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    m.joint("wire", Straight(), m.ground, "bead")
    model = m.build()
    assert model.key != page["bead"].key
    assert cd.forward_dynamics(model, [0.3], [1.2]) == 0


@pytest.mark.parametrize("own", ["lagrange", "from_ground"])
def test_the_formulation_agrees_where_forces_act(page: dict[str, Any], own: str) -> None:
    m = slider_crank()
    m.spring("s", m.ground, "slider", stiffness=50.0, length=0.2, damping=2.0, at1=(1.0, 0.1, 0))
    m.drive("motor", "bearing", lambda t, q, v: ca.sin(t) - v)
    model = m.build()
    q, v = cd.assemble(model, v=np.ones(model.nv))
    for function in (cd.reactions, cd.forward_dynamics, cd.multipliers):
        a, b = (function(model, q, v, t=0.3, formulation=w) for w in ("spatial", own))
        assert np.allclose(a, b, rtol=1e-10, atol=1e-9)


def test_the_formulation_has_the_same_contract(page: dict[str, Any]) -> None:
    for model in (slider_crank().build(), cart_pole().build()):
        state = [np.full(model.nq, 0.4), np.ones(model.nv), np.arange(model.nv), np.ones((model.nb, 6)), 0.3]
        x, y = (cd.equations(model, formulation=w).graph("system")(*state) for w in ("lagrange", "spatial"))
        for one, two in zip(x, y, strict=True):
            assert np.allclose(np.array(one), np.array(two), rtol=1e-12, atol=1e-12)


def test_a_formulation_refuses_what_it_cannot_express(page: dict[str, Any]) -> None:
    model = two_body().build()
    with pytest.raises(cd.ModelError, match="'from_ground' needs joints of one coordinate"):
        cd.forward_dynamics(model, model.start(), np.zeros(model.nv), formulation="from_ground")


def test_a_formulation_written_anew_is_not_the_old_one(page: dict[str, Any]) -> None:
    model = page["loop"]
    q, v = page["q"], page["v"]
    before = cd.forward_dynamics(model, q, v, formulation="lagrange")

    class Heavier(page["Lagrange"]):  # type: ignore[misc]
        def tree_accelerations(self, parts: Any, vdot: Any) -> Any:
            return 2 * vdot

    cd.add_formulation(Heavier())
    try:
        assert np.allclose(cd.forward_dynamics(model, q, v, formulation="lagrange"), 2 * before)
    finally:
        cd.add_formulation(page["Lagrange"]())
    assert np.allclose(cd.forward_dynamics(model, q, v, formulation="lagrange"), before)
    assert np.allclose(cd.forward_dynamics(model, q, v, formulation=Heavier()), 2 * before)
    with pytest.raises(cd.UnknownNameError, match="lagrange"):
        cd.forward_dynamics(model, q, v, formulation="lagrang")


@pytest.mark.parametrize("called", ["lagrange", "spatial"])
def test_objects_of_one_name_are_two_formulations(page: dict[str, Any], called: str) -> None:
    """Also if they were never added, and if the name is one of Cardan's own."""

    class Scaled(page["Lagrange"]):  # type: ignore[misc]
        name = called

        def __init__(self, factor: float) -> None:
            self.factor = factor

        def tree_accelerations(self, parts: Any, vdot: Any) -> Any:
            return self.factor * vdot

    model, q, v = page["loop"], page["q"], page["v"]
    before = cd.forward_dynamics(model, q, v)
    for factor in (2.0, 3.0):
        assert np.allclose(cd.forward_dynamics(model, q, v, formulation=Scaled(factor)), factor * before, rtol=1e-10)
    assert np.array_equal(cd.forward_dynamics(model, q, v), before)


def test_what_is_no_formulation_is_refused(page: dict[str, Any]) -> None:
    class Spatial(page["Lagrange"]):  # type: ignore[misc]
        name = "spatial"

    class Nameless(page["Lagrange"]):  # type: ignore[misc]
        name = " "

    for wrong, words in [
        (Spatial(), "formulation 'spatial' is Cardan's own; give yours another name"),
        (Nameless(), "Nameless must have a name, got ' '"),
        (Spatial, "it takes an object of a subclass of cd.Formulation"),
        ("lagrange", "it takes an object of a subclass of cd.Formulation"),
    ]:
        with pytest.raises(cd.InputError, match=words):
            cd.add_formulation(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "rk4"}, "Cardan's own"),
        ({"name": "gear"}, "Cardan's own"),
        ({"A": np.eye(4)}, "zeros on and above the diagonal"),
        ({"b": np.full(4, 0.5)}, "must add up to 1, they add up to 2"),
        ({"e": np.ones(4)}, "add up to 0"),
        ({"e": np.array([1.0, -1.0, 0, 0])}, "the last row of A must be b"),
    ],
)
def test_a_table_that_is_no_method_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(cd.InputError, match=words):
        cd.add_method(cd.RungeKutta(**{"name": "mine", "order": 4, "A": KUTTA.A, "b": KUTTA.b, **change}))
    assert "mine" not in INTEGRATORS


def test_a_table_of_the_same_name_is_another_method(page: dict[str, Any]) -> None:
    ends = []
    for c in (0.5, 1.0):  # the midpoint rule, and Heun's
        A, b = np.array([[0, 0], [c, 0]]), np.array([1 - 1 / (2 * c), 1 / (2 * c)])
        cd.add_method(cd.RungeKutta("second_order", 2, A, b))
        ends.append(cd.simulate(page["model"], 1.0, [1.4, 0.3], method="second_order", step=0.01, samples=2).q[-1])
    assert not np.array_equal(*ends) and np.allclose(*ends, atol=1e-2)
    with pytest.raises(cd.InputError, match="takes steps of fixed length"):
        cd.simulate(page["model"], 1.0, method="second_order")
