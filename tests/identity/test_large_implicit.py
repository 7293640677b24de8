"""Implicit integrators on large mechanisms: sums over components are the equations, and the steps the same steps."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation.coordinates import into_own, own_equations
from cardan.formulation.division import row_places
from cardan.formulation.dynamics import entering_power
from cardan.formulation.points.space import POINTS_IN_SPACE
from cardan.formulation.registry import find_formulation
from cardan.integrate.alpha import large as large_alpha
from cardan.integrate.alpha.large import LargeAlphaStepper
from cardan.integrate.alpha.stepper import AlphaStepper
from cardan.integrate.events import Event
from cardan.integrate.integrators import Request
from cardan.integrate.kernel import layout_of
from cardan.integrate.large import STATE, LargeSystem, is_sum, takes_sums, written_parts
from cardan.integrate.stepper import Outcome
from cardan.integrate.sundials.equations import DaeGraphs, DaeLayout
from cardan.integrate.sundials.large import LargeImplicitSystem
from cardan.structure.component_sums import Component, Components, ComponentSum
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import function_of, symbolic

pytestmark = pytest.mark.usefixtures("quick_code")


def many_elements() -> cd.Model:
    """Loops in space, a welded body, every sort of element, and free numbers of each sort."""
    m = mechanisms.rscr()
    first, second = (body.name for body in m.bodies[:2])
    joints = [joint.name for joint in m.joints if joint.kind.nq == 1]
    extra = m.body("extra", mass=0.3, com=(0.1, 0.02, 0), inertia=np.diag([0.01, 0.02, 0.03]))
    tip = m.body("tip", mass=0.2, com=(0, 0.1, 0), inertia=np.diag([0.003, 0.002, 0.001]))
    m.joint(
        "carried", cd.Revolute((0, 1, 1)), first, extra, at=cd.Pose((0.1, 0.2, 0), rpy=(0.1, 0.2, 0.3)), armature=0.4
    )
    m.joint("weld", cd.Rigid(), extra, tip, at=cd.Pose((0.2, 0, 0.1), rpy=(0.3, 0, 0.1)))
    m.joint("knee", cd.Spherical(), tip, m.body("bob", mass=0.1, inertia=np.diag([1e-3, 2e-3, 3e-3])), at=(0, 0.3, 0))
    m.joint("far", cd.Revolute((1, 0, 0)), m.ground, m.body("wheel", mass=1.0, inertia=np.diag([0.1, 0.1, 0.2])))
    m.spring("spring", second, tip, stiffness=30.0, length=0.4, at2=(0.1, 0, 0), damping=2.0)
    m.bushing("bushing", "bob", m.ground, stiffness=5.0)
    m.torsion("along", "carried", stiffness=3.0, damping=0.2)
    m.torsion("in the loop", joints[-1], damping=0.1)
    m.friction("rub", "far", viscous=0.1, coulomb=0.2, smoothing=0.1)
    m.motion("swing", joints[0], lambda t: 0.3 * ca.sin(2 * t))
    m.couple("gear", {"carried": 1.0, "far": 2.0})
    m.constraint(
        "held", ["bob", "wheel"], lambda t, poses, twists: poses[0].position[2] - poses[1].position[2] - 0.1 * t
    )
    return m.build(cut=[joints[-1]]).free("spring.stiffness", f"{second}.mass", "knee.at", "tip.inertia", "gravity")


def write(c: Component, s: Any) -> dict[str, Any]:
    parts = written_parts(c, s, s["q"])
    rows, phi = parts.rows.kept(c.rows), parts.rows.kept(c.positions).phi
    power = entering_power(parts, s["tau"], c.rows, s["lam"])
    found = {"M": parts.M, "f": parts.f, "J": rows.J, "gamma": rows.gamma, "beta": rows.beta, "phi": phi}
    return {**found, "power": power}


@pytest.mark.parametrize("name", ["spatial", "absolute", "absolute_body"])
def test_sums_over_components_are_the_formulation_s_equations(name: str) -> None:
    """Of a mechanism with every sort of element, at a random state and random values of free numbers."""
    model, formulation, rng = many_elements(), find_formulation(name), np.random.default_rng(5)
    kept = rng.permutation(len(row_places(model, formulation)[1]))[3:]
    parts = Components(model, formulation, sorted(kept))
    axes = {"M": ("v", "v"), "f": ("v",), "J": ("rows", "v"), "gamma": ("rows",), "beta": ("rows",)}
    sums = ComponentSum(
        parts, "test", {**STATE, "lam": "rows"}, {**axes, "phi": ("positions",), "power": ("one",)}, write
    )
    p = model.parameters.nominal * rng.uniform(0.9, 1.1, model.parameters.size)
    x, w = model.random_state(rng)
    q, v = x, w
    if not formulation.in_tree:
        q, v = (np.array(part).ravel() for part in function_of(model, into_own(model, formulation))(x, w, p))
    state = {"t": 0.4, "q": q, "v": v, "tau": rng.normal(size=model.nv), "about": x, "lam": rng.normal(size=len(kept))}
    found = sums(parts.at(p), **state)

    written, free = symbolic(model)
    symbols = {key: ca.SX.sym(key, np.size(value)) for key, value in state.items()}
    whole = own_equations(written, formulation, symbols)
    rows = whole.rows.kept(sorted(kept))
    at_position = [k for k in sorted(kept) if whole.rows.labels[k].level == "position"]
    power = entering_power(whole, symbols["tau"], sorted(kept), symbols["lam"])
    expected = [whole.M, whole.f, rows.J, rows.gamma, rows.beta, whole.rows.kept(at_position).phi, power]
    values = ca.Function("whole", [*symbols.values(), free], expected)(*state.values(), p)
    for key, value in zip(found, values, strict=True):
        own = found[key].toarray() if hasattr(found[key], "toarray") else found[key]
        np.testing.assert_allclose(own, np.array(value).reshape(own.shape), atol=1e-11, err_msg=key)


@pytest.mark.parametrize("name", ["spatial", "absolute"])
def test_gear_sums_residual_and_jacobian(name: str) -> None:
    """They are those of the whole graph, at any point, whether it satisfies the constraints or not."""
    m = mechanisms.four_bar()
    m.spring("spring", m.ground, m.bodies[1].name, stiffness=30.0, length=0.4, damping=1.0)
    model, rng = m.build().free("spring.stiffness"), np.random.default_rng(2)
    system = LargeImplicitSystem(model, find_formulation(name), stabilised=True)
    layout = DaeLayout(layout_of(model, find_formulation(name)), True)
    assert (system.layout.sizes, system.layout.of.rows) == (layout.sizes, layout.of.rows)
    y, yp, soft, p = rng.normal(size=layout.n), rng.normal(size=layout.n), np.array([1e-2, 2e-2]), np.array([40.0])
    tail = system.tail(rng.normal(size=model.nq), rng.normal(size=model.nv), p)
    F, K = np.zeros(layout.n), np.zeros(system.pattern.nnz)
    system.residual(0.1, y, yp, soft, *tail, F)
    system.jacobian(0.1, 3.0, y, yp, soft, *tail, K)
    graphs = DaeGraphs.record(model, layout)
    whole = graphs.residual(0.1, y, yp, soft, *tail)
    np.testing.assert_allclose(F, np.array(whole).ravel(), atol=1e-10)
    matrix = system.pattern.copy()
    matrix.data[:] = K
    expected = np.array(graphs.matrix()(0.1, 3.0, y, yp, soft, *tail))
    np.testing.assert_allclose(matrix.toarray()[:-1], expected[:-1], atol=1e-10)


@pytest.mark.parametrize("name", ["spatial", "relative", "points"])
def test_gear_s_jacobian_by_products_is_the_one_written_out(name: str) -> None:
    """At random points, with loops, a prescribed motion and a free parameter; columns share vectors."""
    model, rng = loop_with_spring().unbound, np.random.default_rng(3)
    graphs = DaeGraphs.record(model, DaeLayout(layout_of(model, formulation_of(model, name)), True))
    columns = graphs.columns(name)
    assert len(columns.vectors) < graphs.layout.n
    given = [rng.normal(size=symbol.numel()) for symbol in graphs.given]
    K = np.zeros((graphs.layout.n,) * 2)
    K[columns.patterns[0].row(), columns.patterns[0].get_col()] = columns(*given)
    np.testing.assert_allclose(K, np.array(graphs.matrix()(*given)), atol=1e-12)


def loop_with_spring() -> cd.Model:
    m = mechanisms.four_bar()
    m.spring("spring", m.ground, m.bodies[1].name, stiffness=300.0, length=0.4, at2=(0.3, 0.4, 0), damping=1.0)
    m.joint("shaft", cd.Revolute(), m.ground, m.body("arm", mass=1.0, com=(0.1, 0, 0), inertia=np.eye(3) / 10))
    m.motion("shaken", "shaft", lambda t: ca.sin(3 * t) / 2)
    return m.build().free("spring.stiffness").at({"spring.stiffness": np.array([200.0, 900.0])})


@pytest.mark.parametrize("name", ["spatial", "relative", "points"])
def test_alpha_takes_the_same_steps(name: str) -> None:
    """Two systems with their own stiffness, to an event, and to a time inside a step; summed, or as one component."""
    model = loop_with_spring()
    q, v = cd.assemble(model.one_of((0,)), None, np.full(model.nv, 2.0))
    event = Event("turned", lambda s: s.q[0] - float(q[0]) - (s.t - 0.03), "record")
    request = Request(step=4e-3, events=(event,), stops=(1.0,))
    arrivals = []
    for stepper in (AlphaStepper, LargeAlphaStepper):
        run = stepper(model, formulation_of(model, name), np.zeros((2, model.nv)), request, 0.8)
        run.begin(0.0, np.stack([q, q]), np.stack([v, v]))
        arrivals += [[run.advance(0.0501), run.advance(0.0501)]]
    for one, other in zip(*arrivals, strict=True):
        np.testing.assert_array_equal(one.outcome, other.outcome)
        np.testing.assert_array_equal(one.steps, other.steps)
        np.testing.assert_allclose(other.t, one.t, atol=1e-10)
        np.testing.assert_allclose(other.q, one.q, atol=1e-9)
        np.testing.assert_allclose(other.v, one.v, atol=1e-8)
        np.testing.assert_allclose(other.notes.work, one.notes.work, atol=1e-8)
    assert (arrivals[0][0].outcome == Outcome.EVENT).any()


def test_plane_and_block_triangle_change_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rates a body in the plane, and Newton's matrix without what `eta` adds, give the motion of the whole."""
    model, absolute = mechanisms.four_bar().build(), find_formulation("absolute")
    q, v = cd.assemble(model, None, np.linspace(1, 2, model.nv))
    found = []
    for in_plane, whole in ((True, 10_000), (True, 0), (False, 10_000)):
        monkeypatch.setattr(large_alpha, "WHOLE", whole)
        monkeypatch.setattr(large_alpha, "large_system", lambda m, f, flat=in_plane: LargeSystem(m, f, flat))
        run = LargeAlphaStepper(model, absolute, np.zeros((1, model.nv)), Request(step=5e-3, stops=(1.0,)))
        assert run.system.nv == (3 if in_plane else 6) * model.nb
        run.begin(0.0, q[None], v[None])
        arrival = run.advance(0.05)
        assert arrival.outcome[0] == Outcome.ARRIVED
        assert all(factors.is_whole == (whole > 0) for factors in run.factors[0].kept.values())
        assert run.system.gap(0.05, arrival.q[0], run.system.components.numbers) < 1e-12
        found.append(np.concatenate([arrival.q[0], arrival.v[0]]))
    np.testing.assert_allclose(found[1], found[0], atol=1e-8)
    np.testing.assert_allclose(found[2], found[0], atol=1e-8)


def test_stiff_springs_do_not_limit_the_step() -> None:
    """A net whose springs ask explicit methods for steps of 2e-5 s: at 2e-3 s energy is kept or lost, never made."""
    model = mechanisms.net(1, stiffness=1e7).build()
    q = model.start()
    run = LargeAlphaStepper(
        model, find_formulation("absolute"), np.zeros((1, model.nv)), Request(step=2e-3, stops=(1.0,)), 0.6
    )
    run.begin(0.0, q[None], np.zeros((1, model.nv)))
    before = float(cd.potential_energy(model, q))
    for t in (0.02, 0.04):
        at = run.advance(t)
        assert at.outcome[0] == Outcome.ARRIVED
        energy = float(cd.kinetic_energy(model, at.q[0], at.v[0]) + cd.potential_energy(model, at.q[0]))
        assert before - 0.2 < energy < before + 1e-3
    assert np.abs(at.v).max() > 0.05


def test_particles_of_bodies_in_space_are_not_summed() -> None:
    """`points` in space counts its coordinates by bodies, as `absolute` does, and is no sum of the same components."""
    model = mechanisms.chain(65).build()
    for newton_recorded in (True, False):
        assert takes_sums(model, find_formulation("absolute"), newton_recorded)
    assert not is_sum(POINTS_IN_SPACE)
