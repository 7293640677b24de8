"""Complementarity problems, impacts, Moreau's rule: laws obeyed, energy never grows, formulations and batches agree."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd
from cardan.algebra.complementarity import Complementarity, FrictionRows
from cardan.formulation.complementarity import RULES, solved
from cardan.structure.laws import after_impact, gaps_and_rates

pytestmark = pytest.mark.usefixtures("quick_code")
seeds = st.integers(0, 2**32 - 1)


def two_contacts_and_a_disc() -> ca.Function:
    """Rows 0, 1: a contact that slides one way; 2: a stop; 3: friction of a joint; 4, 5, 6: a contact with a disc."""
    W, b, mu, c = ca.SX.sym("W", 7, 7), ca.SX.sym("b", 7), ca.SX.sym("mu", 2), ca.SX.sym("c")
    friction = [FrictionRows((1,), 0.0, mu[0], 0), FrictionRows((3,), c), FrictionRows((5, 6), 0.0, mu[1], 4)]
    problem = Complementarity(W, b, (0, 2, 4), (), friction)
    x, left = solved(problem)
    return ca.Function("problem", [W, b, mu, c], [x, problem.rate(x), left])


@pytest.fixture(scope="module")
def problem() -> ca.Function:
    """One graph for all examples."""
    return two_contacts_and_a_disc()


@settings(max_examples=40, deadline=None)
@given(seeds)
def test_solutions_obey_every_law(problem: ca.Function, seed: int) -> None:
    """Signs, complements, bounds and directions, whatever the rank of W."""
    rng = np.random.default_rng(seed)
    A = np.vstack([rng.standard_normal((int(rng.integers(5, 9)), 7)), 0.3 * np.eye(7)])
    mu, c = rng.uniform(0, 0.7, 2), rng.uniform(0, 1)
    b = A.T @ rng.standard_normal(len(A))
    x, u, left = (np.array(y).ravel() for y in problem(A.T @ A, b, mu, c))
    assert left < 1e-9
    size = np.abs(x).max() + np.abs(b).max()
    for n in (0, 2, 4):
        assert x[n] >= 0 and u[n] > -1e-8 * size and abs(x[n] * u[n]) < 1e-8 * size**2
    for rows, bound in (([1], mu[0] * x[0]), ([3], c), ([5, 6], mu[1] * x[4])):
        force, slip = x[rows], u[rows]
        assert np.linalg.norm(force) <= bound + 1e-8 * size
        assert -force @ slip >= bound * np.linalg.norm(slip) - 1e-7 * size**2


def test_rows_that_depend_on_one_another_share_a_solution() -> None:
    """More rows than freedoms: a contact, stops, locks and friction of random problems of rank 2 to 6 of 8."""
    W, b, mu, c, x0 = (ca.SX.sym(name, *shape) for name, shape in DEPENDENT.items())
    friction = [FrictionRows((1,), 0.0, mu, 0), FrictionRows((5,), c)]
    problem = Complementarity(W, b, (0, 2, 3), (4, 6, 7), friction)
    x, left = problem.iteration(x0)
    step = ca.Function("step", [W, b, mu, c, x0], [x, ca.sqrt(left / problem.scale(x))])
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        A = rng.standard_normal((2 + seed % 5, 8))
        values = A.T @ A, A.T @ rng.standard_normal(len(A)), rng.uniform(0, 0.7), rng.uniform(0, 1)
        force, left = np.zeros(8), 1.0
        for _ in range(60):
            if left > 1e-10:
                force, left = (np.array(y).ravel() for y in step(*values, force))
        if left > 1e-10:
            continue
        u, size = values[1] + values[0] @ force, np.abs(force).max() + np.abs(values[1]).max()
        assert np.abs(u[[4, 6, 7]]).max() < 1e-8 * size
        assert (force[[0, 2, 3]] >= 0).all() and (u[[0, 2, 3]] > -1e-8 * size).all()
        assert np.abs(force * u)[[0, 2, 3]].max() < 1e-8 * size**2
        for row, bound in ((1, values[2] * force[0]), (5, values[3])):
            assert abs(force[row]) <= bound + 1e-8 * size
            assert -force[row] * u[row] >= bound * abs(u[row]) - 1e-7 * size**2
        found += 1
    assert found >= 97


DEPENDENT = {"W": (8, 8), "b": (8,), "mu": (1,), "c": (1,), "x": (8,)}


def test_a_stop_a_lock_and_a_latch_may_close_at_once() -> None:
    """Rows that say the same, or nothing; what is left of an impact after its first part may be rounding alone."""
    m = cd.Mechanism("held")
    m.body("arm", mass=1.0, com=(0.3, 0, 0.1), inertia=(0.1, 0.2, 0.3))
    m.body("slide", mass=2.0, com=(0.1, 0.2, 0), inertia=(0.3, 0.2, 0.25))
    m.joint("turn", cd.Revolute(axis=(0, 1, 0)), "ground", "arm")
    m.joint("out", cd.Prismatic(axis=(1, 0, 0)), "arm", "slide", at=(0.5, 0, 0))
    m.stop("stop", "turn", lower=0.0, restitution=0.4)
    m.lock("lock", "turn", closed=True)
    m.latch("latch", "ground", "slide", closed=True)
    model, rng = m.build(), np.random.default_rng(1)
    q, v = rng.standard_normal((2, 500, 2))
    for rule in RULES:
        after, _, left = after_impact(model, q, v, np.ones(8), rule)
        assert left.max() < 1e-12 and np.abs(after).max() < 1e-12
    assert cd.check(model, states=8).passed


def test_friction_in_three_directions_opposes_what_slides() -> None:
    """A ball of friction beside a stop and other friction; its bound by a normal force is a cone in four dimensions."""
    W, b, mu, c = (
        ca.SX.sym(name, *shape) for name, shape in {**DEPENDENT, "W": (6, 6), "b": (6,)}.items() if name != "x"
    )
    friction = [FrictionRows((1, 2, 3), c, mu, 0), FrictionRows((5,), c)]
    problem = Complementarity(W, b, (0, 4), (), friction)
    x, left = solved(problem)
    graph = ca.Function("problem", [W, b, mu, c], [x, problem.rate(x), left])
    slides = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A, coefficient, constant = rng.standard_normal((7, 6)), rng.uniform(0, 0.4), rng.uniform(0, 1)
        x, u, left = (np.array(y).ravel() for y in graph(A.T @ A, A.T @ rng.standard_normal(7), coefficient, constant))
        assert left < 1e-9 and x[0] >= 0 and u[0] > -1e-9
        force, slip, bound = x[1:4], u[1:4], constant + coefficient * x[0]
        assert np.linalg.norm(force) <= bound * (1 + 1e-9)
        assert -force @ slip >= bound * np.linalg.norm(slip) - 1e-8
        slides += np.linalg.norm(slip) > 1e-6
    assert 10 < slides < 60


def test_friction_that_presses_itself_slides_or_sticks() -> None:
    """One row whose bound is `c + mu |r + a x|`: where `mu |a| < 1` one force fits, and the sweep finds it."""
    W, b, c, mu = (ca.SX.sym(name) for name in ("W", "b", "c", "mu"))
    r, a = ca.SX.sym("r", 3), ca.SX.sym("a", 3)
    problem = Complementarity(W, b, (), (), [FrictionRows((0,), c, mu, None, r, a)])
    x, left = problem.iteration(ca.SX(1, 1))
    graph = ca.Function("problem", [W, b, c, mu, r, a], [x, left / (problem.scale(x) + 1e-300)])
    slides = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        own, rate, constant = rng.uniform(0.1, 3), 3 * rng.standard_normal(), rng.uniform(0, 1) * (seed % 3 > 0)
        reaction, of_force = rng.standard_normal((2, 3))
        coefficient = rng.uniform(0, 0.95) / np.linalg.norm(of_force)
        force, error = (float(y) for y in graph(own, rate, constant, coefficient, reaction, of_force))
        slip, bound = rate + own * force, constant + coefficient * np.linalg.norm(reaction + of_force * force)
        assert error < 1e-20 and abs(force) <= bound * (1 + 1e-9)
        assert abs(slip) < 1e-9 or abs(force + np.sign(slip) * bound) < 1e-9 * (1 + bound)
        slides += abs(slip) > 1e-9
    assert 40 < slides < 160


def falling_rod() -> cd.Model:
    """A rod in the plane whose ends touch the floor with friction, and whose spin a stop with friction holds."""
    m = cd.Mechanism("rod")
    m.body("slider", mass=0.3, inertia=(0.1, 0.1, 0.1))
    m.body("rod", mass=1.0, inertia=(0.01, 0.08, 0.08))
    m.body("lift", mass=0.2, inertia=(0.1, 0.1, 0.1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), "ground", "slider")
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), "slider", "lift")
    m.joint("turn", cd.Revolute(axis=(0, 1, 0)), "lift", "rod")
    for name, at in (("left", -0.5), ("right", 0.5)):

        def point(t, P, V, at=at):
            return P[0].position + at * P[0].rotation[:, 0]

        def speed(t, P, V, at=at):
            w, v = V[0][:3], V[0][3:]
            return (P[0].rotation @ (v + ca.cross(w, ca.vertcat(at, 0, 0))))[0]

        m.contact(
            name, ["rod"], gap=lambda t, P, V, point=point: point(t, P, V)[2], tangent=speed, friction=0.3,
            restitution=0.5,
        )  # fmt: skip
    m.stop("end", "turn", upper=0.0, restitution=0.3)
    m.friction("bearing", "turn", coefficient=0.4, radius=0.2, stick=True)
    return m.build()


FREE = ("rod.mass", "slider.mass", "left.restitution", "right.restitution", "end.restitution", "left.coefficient")


@settings(max_examples=30, deadline=None)
@given(seeds, st.sampled_from(RULES))
def test_impacts_never_add_energy_and_close_no_gap(seed: int, rule: str) -> None:
    """Random masses, restitutions, friction, states and closed rows, by both laws; Kane's case among them."""
    rng, n = np.random.default_rng(seed), 200
    model = free_rod()
    values = rng.uniform(0, 1, (n, 6)) * [3, 3, 1, 1, 1, 1.5] + [0.2, 0.2, 0, 0, 0, 0]
    model = model.at(dict(zip(FREE, values.T, strict=True)))
    q = rng.uniform(-1, 1, (n, 3)) * [1, 0, 0.6]
    v = rng.standard_normal((n, 3)) * [3, 1, 3]
    closed = (rng.uniform(size=(n, 6)) < 0.7).astype(float)
    after, P, left = after_impact(model, q, v, closed, rule, parameters=[model.values])
    assert left.max() < 1e-6
    before, now = (cd.kinetic_energy(model, q, x) for x in (v, after))
    assert (now <= before * (1 + 1e-10) + 1e-12).all()
    u = gaps_and_rates(model, q, after, 0.0, [model.values])[1]
    unilateral = [0, 2, 4]
    shut = closed[:, unilateral] > 0
    assert (u[:, unilateral][shut] > -1e-7).all() and (P[:, unilateral] >= -1e-9).all()
    assert (P[:, unilateral][~shut] == 0).all()


def free_rod(found: list[cd.Model] = []) -> cd.Model:  # noqa: B006
    """One model for all examples."""
    if not found:
        found.append(falling_rod().free(*FREE))
    return found[0]


def test_moreau_agrees_across_formulations_and_in_batches() -> None:
    """A four-bar with friction by a pin's reaction and a stop: six formulations; a batch is its systems one by one."""
    model = stopped_four_bar()
    v = [{"A": rate} for rate in (3.0, 1.0)]
    q0 = cd.assemble(model)[0]
    v0 = np.array([cd.assemble(model, q0, np.eye(model.nv)[0] * x["A"])[1] for x in v])
    options = {"method": "moreau", "step": 2e-3, "samples": 5}
    runs = {name: cd.simulate(model, 0.2, q0, v0, formulation=name, **options) for name in ("spatial", "absolute")}
    both = runs["spatial"]
    assert (both.q[0, :, 0] < -1.04).all() and both.q[0, -1, 0] < both.q[0, -2, 0]  # it hit the stop
    assert abs(cd.constraint_residual(model, both.q)).max() < 1e-12
    for name, run in runs.items():
        np.testing.assert_allclose(run.q, both.q, atol=1e-9, err_msg=name)
    for k in range(2):
        np.testing.assert_array_equal(cd.simulate(model, 0.2, q0, v0[k], **options).q, both.q[k])
    assert both.statistics["law_residual"] < 1e-10 and both.statistics["largest_penetration"] < 0.02


def stopped_four_bar() -> cd.Model:
    """Planar four-bar with a stop at its crank and friction by reaction at its coupler's pin."""
    m = cd.Mechanism("stopped four-bar")
    lengths = {"a": 0.3, "b": 0.8, "c": 0.7}
    for name, l in lengths.items():
        m.body(name, mass=1.0, com=(l / 2, 0, 0), inertia=(1e-3, l * l / 12, l * l / 12))
    turn = cd.Revolute(axis=(0, 1, 0))
    m.joint("A", turn, "ground", "a", start=-1.0)
    m.joint("B", turn, "a", "b", at=(0.3, 0, 0), start=0.5)
    m.joint("C", turn, "b", "c", at=(0.8, 0, 0), start=1.0)
    m.joint("D", turn, "ground", "c", at=(0.9, 0, 0), child_at=(0.7, 0, 0))
    m.stop("end", "A", upper=-1.05, restitution=0.6)
    m.friction("pin", "B", coefficient=0.3, radius=0.05, stick=True)
    return m.build(cut=["D"])
