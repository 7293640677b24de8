"""A constraint row is data: residual, Jacobian and right-hand sides belong together, row by row, with true units."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import bennett, four_bar, slider_crank, stewart_platform
from cardan.model.joint import TABLE, JointType

pytestmark = pytest.mark.usefixtures("quick_code")

SIX = ("absolute", "absolute_body", "relative")
KINDS = {
    "rigid": cd.Rigid(), "revolute": cd.Revolute(), "prismatic": cd.Prismatic(), "screw": cd.Screw(pitch=0.3),
    "universal": cd.Universal(), "cylindrical": cd.Cylindrical(), "spherical": cd.Spherical(), "planar": cd.Planar(),
    "free": cd.Free(),
}  # fmt: skip


def pair(joint: JointType, backwards: bool, cut: bool) -> cd.Model:
    """Two bodies with a joint between them: in the tree, or cut, each body then floating by itself."""
    rng = np.random.default_rng(4)

    def place() -> cd.Pose:
        return cd.Pose(rng.uniform(-1, 1, 3), rpy=rng.uniform(-1, 1, 3))

    m = cd.Mechanism("pair", gravity=(0.3, -1, -9.81))
    for name in ("a", "b"):
        m.body(name, mass=rng.uniform(1, 2), com=rng.uniform(-0.3, 0.3, 3), inertia=(0.3, 0.4, 0.5))
    m.joint("float", cd.Free(), m.ground, "a")
    m.joint("between", joint, *(("b", "a") if backwards else ("a", "b")), at=place(), child_at=place())
    if cut:
        m.joint("other", cd.Free(), m.ground, "b")
    return m.build(cut=["between"] if cut else ())


def consistent(model: cd.Model) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    q, v = model.random_state(rng)
    if not model.has_rows:
        return q, v
    start = model.start() + 0.2 * rng.uniform(-1, 1, model.nq)
    for at in model.quaternions:
        start[at] /= np.linalg.norm(start[at])
    return cd.assemble(model, start, v)


def derivatives(model: cd.Model, formulation: str, q: np.ndarray, v: np.ndarray, t: float = 0.3) -> list[np.ndarray]:
    """`J`, `d phi/dq N`, `J v - beta`, and the rate of `J v - beta` at accelerations `a` less `J a - gamma`."""
    eq = cd.equations(model, formulation=formulation)
    x, u = eq.project(*cd.equations(model).lift(q, v))
    system, rates = eq.graph("system"), eq.graph("rates")
    X, U, T = ca.SX.sym("q", eq.nq), ca.SX.sym("v", eq.nv), ca.SX.sym("t")
    _, _, J, gamma, beta, phi = system(X, U, np.zeros(model.nv), np.zeros((model.nb, 6)), T)
    qdot = rates(X, U)
    N = ca.jacobian(qdot, U)
    a = np.random.default_rng(1).standard_normal(eq.nv)
    excess = J @ U - beta
    along = ca.jacobian(excess, X) @ qdot + ca.jacobian(excess, T) + J @ a - (J @ a - gamma)
    phi_t = ca.jacobian(phi, T) + beta
    every = ca.Function("rows", [X, U, T], [J, ca.jacobian(phi, X) @ N, phi, excess, along, phi_t])
    return [np.array(part) for part in every(x, u, t)]


@pytest.mark.parametrize(("role", "backwards"), [("tree", True), ("cut", False), ("cut", True)])
@pytest.mark.parametrize("kind", KINDS)
def test_residual_and_jacobian_belong_together(kind: str, role: str, backwards: bool) -> None:
    model = pair(KINDS[kind], backwards, role == "cut")
    q, v = consistent(model)
    for formulation in ("spatial", *SIX):
        J, G, phi, excess, along, _ = derivatives(model, formulation, q, v)
        assert np.abs(phi).max(initial=0.0) < 1e-11
        assert np.abs(G - J).max(initial=0.0) < 1e-11, formulation
        assert np.abs(excess).max(initial=0.0) < 1e-10
        # the rate of J v at rates that keep the joint closed is J vdot - gamma
        assert np.abs(along).max(initial=0.0) < 1e-9 * max(1.0, float(np.abs(v).max()) ** 2), formulation
        rows = cd.equations(model, formulation=formulation).rows
        own = [row for row in rows if row.owner == "joint 'between'"]
        assert len(rows) == len(J) and all(row.level == "position" for row in rows)
        removed = TABLE["screw(0.1)" if kind == "screw" else kind].freedoms_removed
        assert len(own) == (removed if role == "cut" or formulation in SIX else 0)
        assert [row.unit for row in own] == ["rad" if "moment" in row.name else "m" for row in own]


def driven() -> cd.Model:
    m = slider_crank()
    m.motion("turn", "bearing", lambda t: 0.4 + 2 * t + ca.sin(t))
    return m.build()


def geared() -> cd.Model:
    m = cd.Mechanism("geared", gravity=(0, -9.81, 0))
    for name in ("a", "b", "c"):
        m.body(name, mass=1.0, com=(0.3, 0, 0), inertia=cd.inertia.rod(1.0, 0.6))
    m.joint("A", cd.Revolute(), m.ground, "a")
    m.joint("B", cd.Prismatic(axis=(1, 0, 0)), m.ground, "b", at=(1, 0, 0))
    m.joint("C", cd.Screw(axis=(1, 0, 0), pitch=0.2), "a", "c", at=(0.5, 0, 0))
    m.couple("rack", {"A": 0.5, "B": 1.0})
    m.couple("worm", {"A": 1.0, "C": -3.0}, offset=0.2)
    return m.build()


@pytest.mark.parametrize("formulation", ["spatial", "newton_euler", *SIX])
def test_motions_and_couplings_belong_together(formulation: str) -> None:
    for model, t in ((driven(), 0.3), (geared(), 0.0)):
        q, v = cd.assemble(model, v=np.ones(model.nv), t=t)
        J, G, phi, excess, along, phi_t = derivatives(model, formulation, q, v, t)
        assert np.abs(phi).max() < 1e-11 and np.abs(G - J).max() < 1e-11
        assert np.abs(excess).max() < 1e-10 and np.abs(along).max() < 1e-9
        assert np.abs(phi_t).max() < 1e-12  # d phi/dt = -beta


@pytest.mark.parametrize("make", [four_bar, slider_crank])
def test_rows_of_points_belong_together(make: Any) -> None:
    model = make().build()
    q, v = cd.assemble(model, v=np.ones(model.nv))
    J, G, phi, excess, along, _ = derivatives(model, "points", q, v, 0.0)
    assert np.abs(phi).max() < 1e-11 and np.abs(G - J).max() < 1e-11
    assert np.abs(excess).max() < 1e-11 and np.abs(along).max() < 1e-10


@pytest.mark.parametrize("make", [four_bar, bennett, stewart_platform])
def test_public_residual_and_jacobian_belong_together(make: Any) -> None:
    model = make().build()
    q, _ = cd.assemble(model)
    h = 1e-6
    J = cd.constraint_jacobian(model, q)
    for k, label in enumerate(model.rows):
        steps = np.eye(model.nv) * h
        slope = [
            np.subtract(*(cd.constraint_residual(model, cd.plus(model, q, s * e))[k] for s in (1, -1))) for e in steps
        ]
        assert np.abs(np.array(slope) / (2 * h) - J[k]).max() < 1e-8, label.name


@pytest.mark.parametrize("formulation", ["spatial", *SIX, "points"])
def test_a_stabilisation_written_from_the_contract_converges(formulation: str) -> None:
    """Baumgarte's, with all rows in the least-squares sense: started off the constraints, it comes back to them."""
    model = four_bar().build()
    eq = cd.equations(model, formulation=formulation)
    q, v = eq.project(*cd.equations(model).lift(*cd.assemble(model, v=np.array([1.0, 0, 0]))))
    q = eq.plus(q, 0.02 * np.random.default_rng(2).standard_normal(eq.nv))
    pull, h = 15.0, 2e-3

    def rates(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        M, f, J, gamma, beta, phi = (x for x in eq._system(q, v))
        right = gamma - 2 * pull * (J @ v - beta) - pull**2 * phi
        K = np.block([[M, J.T], [J, np.zeros((eq.nl, eq.nl))]])
        return v, np.linalg.lstsq(K, np.concatenate([f, right]), rcond=1e-10)[0][: eq.nv]

    before = np.abs(eq.phi(q)).max()
    for _ in range(500):
        k1 = rates(q, v)
        k2 = rates(eq.plus(q, h / 2 * k1[0]), v + h / 2 * k1[1])
        q, v = eq.plus(q, h * k2[0]), v + h * k2[1]
    assert before > 1e-3 and np.abs(eq.phi(q)).max() < 1e-3 * before


def scaled(size: float) -> cd.Model:
    """A slider-crank with a drive, `size` times as large, its masses unchanged."""
    m = cd.Mechanism("scaled", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("rod", 3.0), ("slider", 0.5)):
        x = length * size
        m.body(name, mass=length, com=(x / 2, 0, 0), inertia=cd.inertia.rod(length, x) + 0.01 * size**2 * np.eye(3))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=0.5)
    m.joint("B", cd.Revolute(), "crank", "rod", at=(size, 0, 0), start=-0.6)
    m.joint("S", cd.Prismatic(axis=(1, 0, 0)), m.ground, "slider", start=3.8 * size)
    m.joint("C", cd.Revolute(), "rod", "slider", at=(3 * size, 0, 0))
    return m.build()


POWERS = {"m": 1, "m^2": 2, "rad": 0, "N": 0, "N m": 1, "N/m": -1}  # of the size, at given masses and gravity


@pytest.mark.parametrize("formulation", ["spatial", *SIX, "points"])
def test_units_are_true(formulation: str) -> None:
    """Twice as large at rest, residuals and multipliers grow as their units say."""
    small, large = scaled(1.0), scaled(2.0)
    rows = cd.equations(small, formulation=formulation).rows
    found, closed = [], cd.assemble(small)[0]
    for model, size in ((small, 1.0), (large, 2.0)):
        eq = cd.equations(model, formulation=formulation)
        lengths = np.array([size if unit == "m" else 1.0 for k in model.tree.links for unit in k.kind.q_units])
        q = closed * lengths
        x, _ = eq.project(*cd.equations(model).lift(q + 0.01 * lengths, np.zeros(model.nv)))
        found.append((eq.phi(x), cd.multipliers(model, q, np.zeros(model.nv), formulation=formulation)))
    for label, (phi, lam), (phi2, lam2) in zip(rows, *(zip(*pair, strict=True) for pair in found), strict=True):
        assert np.isclose(phi2, phi * 2.0 ** POWERS[label.unit], rtol=1e-6, atol=1e-11), label
        assert np.isclose(lam2, lam * 2.0 ** POWERS[label.force_unit], rtol=1e-6, atol=1e-9), label


def test_the_table_of_rows_prints() -> None:
    model = driven()
    assert str(model.rows).splitlines()[0].split() == ["row", "owner", "name", "residual", "multiplier", "level", "law"]
    assert model.rows[-1].owner == "motion 'turn'" and model.rows[-1].unit == "rad"
    assert [label.owner for label in geared().rows] == ["coupling 'rack'", "coupling 'worm'"]
    assert geared().rows[0].unit == "m" and "equality" in repr(model.rows)
    assert str(cd.equations(pair(cd.Revolute(), False, False)).rows) == "no constraint rows"
