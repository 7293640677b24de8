"""`points` in space: every joint kind in the tree and cut, against `spatial`; the contract; parameters and runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan.formulation.points.space import POINTS_IN_SPACE, size
from cardan.functions.check import consistent_states
from cardan.mechanisms import bennett, rscr, stewart_platform
from cardan.structure.formulation import formulation_of

from ..graphs import graph_model, interpreted
from ..identity.test_rows import KINDS, consistent, derivatives, pair
from ..trees import close, tree_model
from .test_capability import make

pytestmark = pytest.mark.usefixtures("quick_code")

CASES = [(kind, role) for kind in make.JOINTS for role in make.ROLES if kind != "rigid"]  # which is planar here


def loaded(model: cd.Model, seed: int, count: int = 2) -> tuple[np.ndarray, ...]:
    """Consistent states with drives and wrenches."""
    rng = np.random.default_rng(seed)
    q, v = consistent_states(model, rng, count)
    return q, v, rng.standard_normal((count, model.nv)), rng.standard_normal((count, model.nb, 6))


def assert_agreement(model: cd.Model, *state: np.ndarray, reactions: bool = True) -> None:
    """Accelerations and reactions are those of `spatial`, by graphs alone."""
    ours, theirs = interpreted(model, "points"), interpreted(model, "spatial")
    for row in zip(*state, strict=True):
        (a, f), (b, g) = ours(*row), theirs(*row)
        assert np.abs(b).max() > 0.01
        close(a, b, 1e-10)
        if reactions:
            close(f, g, 1e-10)


@pytest.mark.parametrize(("kind", "role"), CASES)
def test_each_joint_in_the_tree_and_cut(kind: str, role: str) -> None:
    model = make.mechanism(kind, role)
    assert formulation_of(model, "points") is POINTS_IN_SPACE
    assert_agreement(model, *loaded(model, 1))


@pytest.mark.parametrize("tree", [1])
def test_random_trees(tree: int) -> None:
    model = tree_model(tree)
    assert_agreement(model, *loaded(model, tree))


@pytest.mark.parametrize("seed", range(2))
def test_random_graphs(seed: int) -> None:
    model = graph_model(seed)
    assert model.cuts and not cd.is_planar(model)
    assert_agreement(model, *loaded(model, seed), reactions=not cd.redundancy(model).redundant)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "universal", "screw", "spherical", "free"])
def test_the_equations_in_vertices(kind: str) -> None:
    """Rows belong together; `M` is constant and gives energy and momentum; the whole system has the same solution."""
    model = pair(KINDS[kind], False, kind in ("revolute", "universal", "spherical"))
    q, v = consistent(model)
    J, G, phi, excess, along, _ = derivatives(model, "points", q, v)
    assert np.abs(phi).max() < 1e-12 and np.abs(G - J).max() < 1e-11
    assert np.abs(excess).max() < 1e-12 and np.abs(along).max() < 1e-11
    eq = cd.equations(model, formulation="points")
    x, u = eq.project(*cd.equations(model).lift(q, v))
    tau = np.linspace(-1, 1, model.nv)
    assert eq.nq == eq.nv == 24 and sum(label.unit == "m^2" for label in eq.rows) == 12
    M, f = eq.M(x), eq.f(x, u, tau=tau)
    assert (eq.M(x + 0.1) == M).all() and (eq.f(x, 2 * u, tau=tau) == f).all()  # no velocity terms
    close(u @ M @ u / 2, cd.kinetic_energy(model, q, v))
    r, p = x.reshape(-1, 4, 3), (M @ u).reshape(-1, 4, 3)  # momentum of each vertex
    close(np.concatenate([np.cross(r, p).sum(axis=(0, 1)), p.sum(axis=(0, 1))]), cd.momentum(model, q, v))
    whole = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    answer = np.linalg.solve(whole, np.concatenate([f, eq.gamma(x, u)]))
    close(cd.multipliers(model, q, v, tau, formulation="points"), answer[24:], 1e-10)
    y, w = eq.project(*eq.lift(x, u))
    close(np.concatenate([y, w]), np.concatenate([x, u]), 1e-12)


def test_a_tetrahedron_that_is_not_quite_one() -> None:
    """Off the distances the axes are those of the nearest rotation, to second order."""
    model = pair(cd.Spherical(), False, False)
    q, v = consistent(model)
    eq = cd.equations(model, formulation="points")
    x, _ = eq.project(*cd.equations(model).lift(q, v))
    off = 1e-4 * np.random.default_rng(0).standard_normal(eq.nq)
    poses = eq.lift(x + off, np.zeros(eq.nv))[0].reshape(-1, 4, 4)
    for R in poses[:, :3, :3]:
        assert np.abs(R.T @ R - np.eye(3)).max() < 1e-6
    for i in range(2):
        raw = np.diff((x + off).reshape(-1, 4, 3)[i][[0, 1, 0, 2, 0, 3]], axis=0)[::2].T / size(model.separate, i)
        U, _, Vt = np.linalg.svd(raw)
        b = model.tree.body_link.index(i)
        close(poses[b, :3, :3], U @ Vt @ model.tree.body_pose[b].rotation, 1e-6)


@pytest.mark.parametrize("mechanism", [bennett, rscr, stewart_platform], ids=lambda each: each.__name__)
def test_loops_of_the_catalogue(mechanism: Any) -> None:
    model = mechanism().build()
    assert_agreement(model, *loaded(model, 3), reactions=mechanism is not bennett)  # which has redundant constraints


def flat() -> cd.Mechanism:
    """A plate, a thin rod and a point mass: their particles are in a plane, on a line, at a point."""
    m = cd.Mechanism("flat", gravity=(1, 2, -9.81))
    m.body("plate", mass=1.0, com=(0.2, 0.1, 0), inertia=(0.1, 0.2, 0.3))
    m.body("rod", mass=0.5, com=(0.3, 0, 0), inertia=cd.inertia.rod(0.5, 0.6))
    m.body("bead", mass=0.3)
    m.joint("A", cd.Revolute(axis=(0, 1, 1)), m.ground, "plate")
    m.joint("B", cd.Universal(axis1=(0, 0, 1), axis2=(0, 1, 0)), "plate", "rod", at=(0.4, 0, 0))
    m.joint("C", cd.Prismatic(axis=(1, 0, 0)), "rod", "bead", at=(0.6, 0, 0), armature=0.2)
    return m


def test_flat_bodies_armature_springs_and_couplings() -> None:
    m = flat()
    m.spring("spring", "plate", "bead", stiffness=30.0, length=0.2, at1=(0.1, 0.2, 0.3))
    m.couple("geared", {"A": 1.0, "C": 2.0})
    for model in (flat().build(), m.build()):
        assert_agreement(model, *loaded(model, 4))


def test_inverse_dynamics() -> None:
    model = flat().build()
    q, v, a, _ = loaded(model, 5)
    close(cd.inverse_dynamics(model, q, v, a, formulation="points"), cd.inverse_dynamics(model, q, v, a), 1e-10)


def test_free_parameters_in_batches() -> None:
    model = make.mechanism("universal", "cut").free("far.mass", "far.com", "far.inertia", "near.mass")
    q, v, tau, _ = loaded(model, 5, 3)
    values = {"far.mass": np.array([1.0, 2.0, 3.0]), "far.com": np.array([[0.1, 0.2, 0.3], [0, 0, 0], [-0.2, 0, 0.4]])}
    some = model.at(values)
    a, b = (cd.forward_dynamics(some, q, v, tau, formulation=way) for way in ("spatial", "points"))
    assert np.abs(a - cd.forward_dynamics(model, q, v, tau)).max() > 0.1
    close(b, a, 1e-10)
    close(cd.kinetic_energy(some, q, v, formulation="points"), cd.kinetic_energy(some, q, v), 1e-12)


def top() -> cd.Model:
    m = cd.Mechanism("top")
    m.body("top", mass=1.3, com=(0, 0, 0.4), inertia=(0.02, 0.02, 0.03))
    m.joint("tip", cd.Spherical(), m.ground, "top")
    return m.build()


def test_steady_precession_of_a_heavy_top() -> None:
    """Upright spin `w3`, tilt `c = cos`: the precession `W` solves `A W^2 c - C w3 W + m g l = 0`, a closed form."""
    model, tilt, w3 = top(), 0.6, 100.0
    A, C, weight = 0.02 + 1.3 * 0.4**2, 0.03, 1.3 * 9.81 * 0.4
    W = np.roots([A * np.cos(tilt), -C * w3, weight]).real.min()
    q = np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0, 0])
    axis = cd.Pose(quaternion=q).rotation.T @ [0, 0, W]  # in the top's axes
    v = axis * [1, 1, 0] + [0, 0, w3]
    a = cd.forward_dynamics(model, q, v, formulation="points")
    # w = W + s z in ground axes with constant s, and z turns with W: w' = W x s z, here in the top's axes
    close(a, np.cross(axis, [0, 0, w3 - axis[2]]), 1e-12)
    run = cd.simulate(model, 0.3, q, v, formulation="points", samples=4)
    z = np.array([cd.Pose(quaternion=row).rotation[:, 2] for row in run.q])
    t = W * run.time
    close(z, np.column_stack([np.sin(tilt) * np.sin(t), -np.sin(tilt) * np.cos(t), np.full(4, np.cos(tilt))]), 1e-6)


@pytest.mark.parametrize("method", ["dormand_prince", cd.RK4(), "gear", cd.Alpha()], ids=str)
def test_integrators(method: Any) -> None:
    model = top()
    options = {} if method in ("dormand_prince", "gear") else {"step": 1e-3}
    start = dict(q0=[0.96, 0.28, 0, 0], v0=[0.3, -0.2, 5.0])
    expected = cd.simulate(model, 0.2, **start, rtol=1e-10, atol=1e-12, samples=3)
    run = cd.simulate(model, 0.2, **start, method=method, formulation="points", samples=3, **options)
    assert run.formulation == "points"
    assert np.abs(run.q - expected.q).max() < 1e-5
    close(run.reactions, cd.reactions(model, run.q, run.v), 1e-9)


def test_printed_equations() -> None:
    """Axes are symbols, defined linearly by the vertices; on the distances the numbers are those of the kernels."""
    eq = cd.equations(top(), formulation="points")
    printed = eq.sympy()
    assert printed.operations() < 1000 and len(printed.definitions) == 9
    assert all(value.is_polynomial() and value.as_poly().total_degree() == 1 for value in printed.definitions.values())
    x, u = eq.project(*cd.equations(top()).lift(np.array([0.8, 0.0, 0.6, 0.0]), np.array([1.0, 2.0, 3.0])))
    for name, value in {"M": eq.M(x), "f": eq.f(x, u), "J": eq.J(x), "gamma": eq.gamma(x, u), "phi": eq.phi(x)}.items():
        close(np.reshape(printed.function(name)(x, u), value.shape), value, 1e-12)


def test_check_has_it() -> None:
    names = [row.name for row in cd.check(top()).rows]
    assert names.count("accelerations: spatial = points") == names.count("reactions: spatial = points") == 1
