"""The generalised-alpha method: order, constraints, lanes, events; the same motion from every formulation."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation.coordinates import own_equations
from cardan.formulation.registry import find_formulation
from cardan.integrate.alpha.stepper import AlphaStepper
from cardan.integrate.events import Event
from cardan.integrate.integrators import Request
from cardan.integrate.stepper import Arrival, Outcome

from ..graphs import WAYS, join_closed
from ..trees import add_body, random_pose

pytestmark = pytest.mark.usefixtures("quick_code")

DURATION = 0.5


def crank(t: Any) -> Any:
    return 1.0 + 3.0 * t + 0.4 * ca.sin(5 * t)


def top() -> cd.Mechanism:
    m = cd.Mechanism("top", gravity=(0, 0, -9.81))
    body = m.body("top", mass=1.2, com=(0.02, 0.01, 0.1), inertia=np.diag([0.01, 0.012, 0.004]))
    m.joint("tip", cd.Spherical(), m.ground, body)
    return m


def driven() -> cd.Mechanism:
    m = mechanisms.four_bar()
    m.motion("drive", "A", crank)
    return m


@cache
def model_and_state(name: str) -> tuple[cd.Model, np.ndarray, np.ndarray]:
    model = (top() if name == "top" else driven() if name == "driven" else mechanisms.CATALOGUE[name]()).build()
    v = np.random.default_rng(3).uniform(-3, 3, model.nv)
    return (model, *cd.assemble(model, None, None if name == "driven" else v))


def run(name: str, step: float, rho: float = 0.9, until: float = DURATION, **options: Any) -> Arrival:
    model, q, v = model_and_state(name)
    stepper = AlphaStepper(model, options.pop("key", "spatial"), np.zeros(model.nv), Request(step=step, **options), rho)
    stepper.begin(0.0, q[None], v[None])
    arrival = stepper.advance(until)
    assert arrival.outcome[0] == Outcome.ARRIVED
    return arrival


def energy(model: cd.Model, q: np.ndarray, v: np.ndarray) -> Any:
    return cd.kinetic_energy(model, q, v) + cd.potential_energy(model, q)


@pytest.mark.parametrize("rho", [0.0, 1.0])
@pytest.mark.parametrize("name", ["pendulum", "top", "four_bar", "rscr"])
def test_halving_the_step_quarters_the_error(name: str, rho: float) -> None:
    ends = [run(name, DURATION / n, rho) for n in (1000, 2000, 4000)]
    for which in ("q", "v"):
        x = [getattr(end, which)[0] for end in ends]
        assert np.linalg.norm(x[0] - x[1]) / np.linalg.norm(x[1] - x[2]) == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("rho", [0.4, 0.9])
@pytest.mark.parametrize("name", ["top", "four_bar", "rscr"])
def test_steps_of_unequal_lengths_keep_the_order(name: str, rho: float) -> None:
    model, q, v = model_and_state(name)
    ends = []
    for n in (500, 1000, 2000):
        times = tuple(np.cumsum(np.tile([0.5, 1.5], n // 2)) * DURATION / n)
        stepper = AlphaStepper(model, "spatial", np.zeros(model.nv), Request(step=1.0, stops=times), rho)
        stepper.begin(0.0, q[None], v[None])
        for t in times:
            end = stepper.advance(t)
        assert end.steps[0] == n
        ends.append(np.concatenate([end.q[0], end.v[0]]))
    assert np.linalg.norm(ends[0] - ends[1]) / np.linalg.norm(ends[1] - ends[2]) == pytest.approx(4, rel=0.2)


@pytest.mark.parametrize("formulation", [*WAYS, "points"])
def test_plus_follows_the_rates(formulation: str) -> None:
    model, *_ = model_and_state("four_bar" if formulation == "points" else "rscr")
    equations = cd.equations(model, formulation=formulation)
    rng = np.random.default_rng(5)
    tree = rng.uniform(-1, 1, model.nv)
    poses, twists = (x[0] for x in cd.equations(model).lift(model.start()[None], tree[None]))
    q, v = equations.project(poses, twists)
    graphs = [equations.graph(name) for name in ("plus", "rates")]
    plus, rates = (lambda q, v, graph=graph: graph(q, v).full().ravel() for graph in graphs)
    np.testing.assert_allclose(plus(q, 0 * v), q, atol=1e-15)
    slope = (plus(q, 1e-6 * v) - plus(q, -1e-6 * v)) / 2e-6
    np.testing.assert_allclose(slope, rates(q, v), atol=1e-9)
    np.testing.assert_allclose(plus(plus(q, 0.5 * v), 0.5 * v), plus(q, v), atol=1e-14)
    assert np.abs(slope).max() > 0.1


@pytest.mark.parametrize("name", ["four_bar", "parallelogram", "rscr", "driven"])
def test_positions_and_velocities_stay_on_the_constraints(name: str) -> None:
    model, *_ = model_and_state(name)
    end = run(name, 0.01)
    at = {"t": DURATION} if model.depends_on_time else {}
    assert np.abs(cd.constraint_residual(model, end.q[0], **at)).max() < 1e-12
    moved = cd.assemble(model, end.q[0], end.v[0], t=DURATION)[1]
    np.testing.assert_allclose(moved, end.v[0], atol=1e-11)


def test_a_prescribed_motion_is_followed_exactly() -> None:
    model, *_ = model_and_state("driven")
    t = ca.SX.sym("t")
    follow = ca.Function("follow", [t], [crank(t), ca.jacobian(crank(t), t)])
    end = run("driven", 0.02)
    q, v = (float(x) for x in follow(DURATION))
    assert end.q[0, model.q_slice("A")][0] == pytest.approx(q, abs=1e-12)
    assert end.v[0, model.v_slice("A")][0] == pytest.approx(v, abs=1e-11)


def test_a_top_keeps_its_quaternion_and_at_no_damping_its_energy() -> None:
    model, q, v = model_and_state("top")
    ends = [run("top", step, 1.0, until=2.0) for step in (0.01, 0.005)]
    change = [abs(float(energy(model, end.q[0], end.v[0]) - energy(model, q, v))) for end in ends]
    assert np.linalg.norm(run("top", 0.01, until=2.0).q[0]) == pytest.approx(1, abs=1e-13)
    assert change[1] < 0.35 * change[0] < 0.01 * float(cd.kinetic_energy(model, q, v))


# One step of the same mechanism in every formulation. The graphs are evaluated by CasADi: kernels of each would take
# minutes to compile.


KINDS_OF_LOOPS = (
    ("revolute", "spherical", "spherical"),
    ("cylindrical", "screw", "free"),
    ("planar", "prismatic", "spherical"),
)


@cache
def loop(seed: int) -> cd.Model:
    """Two bodies in a loop through ground, and a spring."""
    rng = np.random.default_rng(seed)
    m = cd.Mechanism(f"loop {seed}", gravity=rng.uniform(-10, 10, 3))
    poses = {m.ground: cd.Pose()}
    for name in ("a", "b"):
        add_body(m, name, rng)
        poses[name] = random_pose(rng)
    kinds = KINDS_OF_LOOPS[seed]
    for k, ends in enumerate(((m.ground, "a"), ("a", "b"), (m.ground, "b"))):
        join_closed(m, f"{k}", kinds[k], ends, poses, rng)
    m.spring("s", "a", m.ground, stiffness=50.0, length=0.3, at1=(0.2, 0, 0), at2=(1, 1, 1), damping=1.0)
    return m.build()


@pytest.mark.parametrize("seed", [0, 2])
def test_one_step_of_every_formulation_agrees(seed: int) -> None:
    model = loop(seed)
    q, v = cd.assemble(model, None, np.random.default_rng(seed).uniform(-1, 1, model.nv))
    ends = {}
    for key in WAYS:
        stepper = AlphaStepper(model, key, np.full(model.nv, 0.3), Request(step=2e-4))
        stepper.begin(0.0, q[None], v[None])
        end = stepper.advance(2e-4)
        assert end.outcome[0] == Outcome.ARRIVED
        ends[key] = np.concatenate([end.q[0], end.v[0]])
    assert np.abs(ends["spatial"] - np.concatenate([q, v])).max() > 1e-5  # it moved
    for key, end in ends.items():
        np.testing.assert_allclose(end, ends["spatial"], atol=1e-9, err_msg=key)


def test_points_agree_with_the_tree() -> None:
    step = 1e-4
    mine, theirs = (run("four_bar", step, until=20 * step, key=key) for key in ("points", "spatial"))
    np.testing.assert_allclose(mine.q, theirs.q, atol=1e-9)
    np.testing.assert_allclose(mine.v, theirs.v, atol=1e-8)


@pytest.mark.parametrize("light", ["coupler", "rocker"])
def test_links_without_inertia_that_a_loop_holds(light: str) -> None:
    m = cd.Mechanism("light", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.3), ("coupler", 1.0), ("rocker", 0.8)):
        heavy = {
            "mass": length,
            "com": (length / 2, 0, 0),
            "inertia": cd.inertia.rod(mass=length, length=length, axis="x"),
        }
        m.body(name, **({} if name == light else heavy))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=1.0)
    m.joint("B", cd.Revolute(), "crank", "coupler", at=(0.3, 0, 0), start=-0.6)
    m.joint("C", cd.Revolute(), "coupler", "rocker", at=(1.0, 0, 0), start=1.0)
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(1.0, 0, 0), child_at=(0.8, 0, 0))
    model = m.build()
    q, v = cd.assemble(model)
    stepper = AlphaStepper(model, "spatial", np.zeros(model.nv), Request(step=1e-4))
    stepper.begin(0.0, q[None], v[None])
    a = cd.forward_dynamics(model, q, v, np.zeros(model.nv))
    np.testing.assert_allclose(stepper.s["vdot"][0], a, rtol=1e-10)  # lent inertia leaves nothing in the first ones
    end = stepper.advance(0.01)
    assert end.outcome[0] == Outcome.ARRIVED
    np.testing.assert_allclose(end.v[0], 0.01 * a, rtol=0.02, atol=1e-3)


def test_lanes_are_independent_of_one_another() -> None:
    model, q, v = model_and_state("four_bar")
    speeds = np.array([0.2, 1.0, np.nan, 1e6, 2.0, 0.5, 1.5, -1.0, 0.7])
    states = np.broadcast_to(q, (len(speeds), model.nq)), speeds[:, None] * v
    stepper = AlphaStepper(model, "spatial", np.zeros(model.nv), Request(step=0.01))
    stepper.begin(0.0, *states)
    together = stepper.advance(0.2)
    assert together.outcome[2] == Outcome.NOT_FINITE
    assert together.outcome[3] in (Outcome.NEWTON, Outcome.NOT_FINITE)
    for k in (0, 1, 4, 5, 6, 7, 8):
        stepper = AlphaStepper(model, "spatial", np.zeros(model.nv), Request(step=0.01))
        stepper.begin(0.0, states[0][k : k + 1], states[1][k : k + 1])
        alone = stepper.advance(0.2)
        assert together.outcome[k] == alone.outcome[0] == Outcome.ARRIVED
        np.testing.assert_allclose(together.q[k], alone.q[0], atol=1e-12)


def test_a_step_too_long_for_newton_is_reported_where_it_began() -> None:
    model, q, v = model_and_state("four_bar")
    stepper = AlphaStepper(model, "spatial", np.zeros(model.nv), Request(step=0.01))
    stepper.begin(0.0, q[None], 1e4 * v[None])
    end = stepper.advance(1.0)
    assert end.outcome[0] == Outcome.NEWTON
    assert end.t[0] < 1.0
    assert np.isfinite(end.q).all()
    stepper.rest(np.array([True]))
    assert stepper.advance(2.0).t[0] == end.t[0]


def test_events_are_located_and_the_run_goes_on() -> None:
    model, *_ = model_and_state("pendulum")
    event = Event("bottom", lambda s: s.q[0] - 0.3, "record", 1)
    stepper = AlphaStepper(model, "spatial", np.zeros(1), Request(step=0.01, events=(event,)))
    stepper.begin(0.0, np.zeros((1, 1)), np.array([[2.0]]))
    there = stepper.advance(1.0)
    assert (there.outcome[0], there.event[0]) == (Outcome.EVENT, 0)
    assert there.q[0, 0] == pytest.approx(0.3, abs=1e-12)
    on = stepper.advance(1.0)
    assert on.t[0] > there.t[0]
    assert on.outcome[0] in (Outcome.ARRIVED, Outcome.EVENT)


def test_free_parameters_are_batched() -> None:
    base = mechanisms.four_bar().build()
    free = base.free("crank.mass")
    q, v = cd.assemble(base)
    masses = np.array([1.0, 2.5])
    stepper = AlphaStepper(free.at({"crank.mass": masses}), "spatial", np.zeros(base.nv), Request(step=0.01))
    stepper.begin(0.0, np.stack([q, q]), np.stack([v, v]))
    end = stepper.advance(0.1)
    for k, mass in enumerate(masses):
        one = AlphaStepper(free.at({"crank.mass": mass}), "spatial", np.zeros(base.nv), Request(step=0.01))
        one.begin(0.0, q[None], v[None])
        np.testing.assert_allclose(one.advance(0.1).q[0], end.q[k], atol=1e-13)
    assert np.abs(end.q[0] - end.q[1]).max() > 1e-6


@pytest.mark.parametrize(
    ("make", "word", "value"),
    [*((cd.Alpha, "damping", x) for x in (-0.1, 1.1, np.nan)), *((Request, "step", x) for x in (0.0, np.inf))],
)
def test_bad_options_are_named(make: Any, word: str, value: float) -> None:
    with pytest.raises(cd.InputError, match=word):
        make(**{word: value})


def test_a_flat_position_where_constraints_lose_rank_is_passed() -> None:
    model, q, _ = model_and_state("parallelogram")
    speeds = np.linspace(5, 8, 50)
    states = [cd.assemble(model, q, np.eye(model.nv)[0] * speed) for speed in speeds]
    q, v = (np.stack(part) for part in zip(*states, strict=True))
    stepper = AlphaStepper(model, "spatial", np.zeros(model.nv), Request(step=1e-3))
    stepper.begin(0.0, q, v)
    end = stepper.advance(1.5)
    assert (end.outcome == Outcome.ARRIVED).all()
    np.testing.assert_allclose(end.q[:, 0], end.q[:, 2], atol=1e-6)  # the cranks stay parallel
    np.testing.assert_allclose(energy(model, end.q, end.v), energy(model, q, v), rtol=1e-4)


@pytest.mark.parametrize("step", [1e-2, 1e-5, 1e-8])
def test_newton_converges_however_short_the_step(step: float) -> None:
    model, *_ = model_and_state("rscr")
    end = run("rscr", step, until=20 * step)
    assert np.abs(cd.constraint_residual(model, end.q[0])).max() < 1e-14


def test_rows_that_give_one_acceleration_are_solved_for_it() -> None:
    """In relative coordinates most rows do: a chain of four was 133,000 operations, and compiled for a minute."""
    model = mechanisms.chain(4).build()
    stepper = AlphaStepper(model, "relative", np.zeros((1, 4)), Request(step=0.01))
    first, second, third = (
        sum(piece.operations().values()) for part, _ in stepper.kernels.recorded().pieces for piece in part
    )
    assert first < 45_000 and second + third < 12_000


@pytest.mark.parametrize("formulation", WAYS)
def test_inertia_force_is_mass_matrix_times_acceleration(formulation: str) -> None:
    """However a formulation computes it; with rotors on the joints, gravity and velocities that must not enter."""
    m = cd.Mechanism("arm", gravity=(1.0, -3.0, -9.81))
    rng, before = np.random.default_rng(5), m.ground
    for k, kind in enumerate((cd.Revolute(), cd.Prismatic(), cd.Universal())):
        body = add_body(m, f"b{k}", rng)
        m.joint(f"j{k}", kind, before, body, at=random_pose(rng), armature=0.3)
        before = body
    model, found = m.build(), find_formulation(formulation)
    nq, nv = found.sizes(model)
    sizes = {"t": 1, "q": nq, "v": nv, "tau": model.nv, "about": model.nq}
    symbols = {name: ca.SX.sym(name, n) for name, n in sizes.items()}
    u = ca.SX.sym("u", nv)
    parts = own_equations(model, found, {k: x for k, x in symbols.items() if k != "about" or not found.in_tree})
    both = ca.Function("both", [*symbols.values(), u], [found.inertia_force(parts, u), parts.M @ u])
    force, product = both(*(rng.standard_normal(n) for n in sizes.values()), rng.standard_normal(nv))
    np.testing.assert_allclose(force, product, rtol=1e-12, atol=1e-12 * np.abs(product).max())
