"""A model whose numbers are free, at some values, is the model built with these values: every field, every formulation.

Graphs are compared at any state, consistent or not: the two must be the same function.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd
from cardan.formulation import dynamics as general
from cardan.formulation.dynamics import element_potential
from cardan.formulation.registry import find_formulation
from cardan.formulation.spatial import SPATIAL
from cardan.model.model import Model
from cardan.structure.kernels import FreeKernel, function_of, parameter_arguments, symbolic, tree_graph
from cardan.structure.planarity import prepare
from cardan.structure.rows import kept_rows

from ..formulations import RECURSIONS
from ..trees import Rng, close, seeds, tree_mechanism

pytestmark = pytest.mark.usefixtures("quick_code")

Values = dict[str, Any]
KEYS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative", "points")
Z = cd.Revolute(axis=(0, 0, 1))

LINKAGE: Values = {
    "gravity": (0.3, -9.81, 0.1),
    "crank.mass": 1.0, "crank.com": (0.5, 0, 0), "crank.inertia": (0.1, 0.2, 0.25, 0.01, 0, 0),
    "coupler.mass": 2.0, "coupler.com": (1.0, 0.1, 0), "coupler.inertia": (0.1, 0.2, 0.25, 0, 0, 0),
    "rocker.mass": 1.5, "rocker.com": (0.7, 0, 0), "rocker.inertia": (0.1, 0.2, 0.25, 0, 0.01, 0),
    "plate.mass": 0.3, "plate.com": (0.1, 0, 0), "plate.inertia": (0.01, 0.02, 0.025, 0, 0, 0),
    "A.at": (0, 0, 0), "B.at": (1.0, 0, 0), "B.child_at": (0, 0, 0), "C.at": (2.0, 0, 0), "C.child_at": (1.5, 0, 0),
    "D.at": (2.5, 0, 0), "weld.at": (0.2, 0.1, 0), "weld.child_at": (0, 0.1, 0),
    "spring.stiffness": 100.0, "spring.length": 0.4, "spring.at2": (0, 0.1, 0),
}  # fmt: skip
ELEMENTS: Values = {
    "spring.stiffness": 100.0, "spring.length": 0.4, "spring.damping": 2.0,
    "spring.at1": (0.2, 0.1, 0), "spring.at2": (0, 0.1, 0),
    "damper.damping": 1.0, "damper.at1": (0, 0, 0), "damper.at2": (0.1, 0.1, 0),
    "bushing.stiffness": np.diag([1.0, 2, 3, 4, 5, 6]), "bushing.damping": np.diag([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
    "bushing.at1": (0.5, 0.5, 0), "bushing.at2": (0.2, 0, 0),
    "wrench.value": (0, 0, 1, 2, 3, 0), "wrench.at": (0.1, 0.2, 0),
    "torsion.stiffness": 3.0, "torsion.rest": 0.2, "torsion.damping": 0.1,
    "friction.viscous": 0.1, "friction.coulomb": 0.2, "friction.smoothing": 0.01,
}  # fmt: skip


def of(values: Values, element: str) -> Values:
    """The arguments of one element."""
    return {name.partition(".")[2]: x for name, x in values.items() if name.startswith(f"{element}.")}


def linkage(kind: str, values: Values) -> Model:
    """Four bars with a plate welded to the coupler; "tree" leaves the loop open, "light" has a massless coupler."""
    m = cd.Mechanism("linkage", gravity=values["gravity"])
    for body in ("crank", "coupler", "rocker", *(() if kind == "light" else ("plate",))):
        m.body(body, **of(values, body) if (kind, body) != ("light", "coupler") else {})
    m.joint("A", Z, m.ground, "crank", start=1.2, **of(values, "A"))
    m.joint("B", Z, "crank", "coupler", start=-0.9, **of(values, "B"))
    m.joint("D", Z, m.ground, "rocker", start=1.9, **of(values, "D"))
    if kind != "light":
        m.joint("weld", cd.Rigid(), "coupler", "plate", **of(values, "weld"))
    if kind != "tree":
        m.joint("C", Z, "coupler", "rocker", **of(values, "C"))
    m.spring("spring", "crank", "rocker", **of(values, "spring"))
    return m.build()


def used(kind: str, values: Values) -> Values:
    """The values that a linkage of this kind has a use for."""
    absent = {"loop": (), "tree": ("C.",), "light": ("coupler.", "plate.", "weld.")}[kind]
    return {name: value for name, value in values.items() if not name.startswith(absent)}


def varied(values: Values, rng: Rng) -> Values:
    """Other values that mean as much: sizes within a fifth, points and directions within 0.2."""
    found: Values = {}
    for name, value in values.items():
        x = np.array(value, dtype=float)
        point = name.rpartition(".")[2] in ("gravity", "com", "at", "child_at", "at1", "at2", "value", "rest")
        x = x + rng.uniform(-0.2, 0.2, x.shape) if point else x * rng.uniform(0.8, 1.2)
        found[name] = x if x.ndim else float(x)
    return found


@cache
def nominal_of(kind: str) -> Model:
    """The linkage with all its numbers free."""
    return linkage(kind, LINKAGE).free(*used(kind, LINKAGE))


@cache
def reactions_of(kind: str, key: str) -> tuple[tuple[int, ...], Any]:
    """The rows kept at nominal values, and the graph of all reactions, which needs the accelerations too."""
    free = nominal_of(kind)
    formulation = find_formulation(key)
    prepare(free, formulation)
    rows = tuple(kept_rows(free, formulation))
    return rows, function_of(free, general.reactions(free, formulation, rows))


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("kind", ["loop", "tree", "light"])
@settings(max_examples=1)
@given(seed=seeds)
def test_every_formulation(kind: str, key: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    free = nominal_of(kind)
    rows, graph = reactions_of(kind, key)
    values = varied(used(kind, LINKAGE), rng)
    built = linkage(kind, {**LINKAGE, **values})
    q = free.start() + rng.uniform(-0.2, 0.2, free.nq)  # far from singular positions, where rounding grows
    given = q, rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal((free.nb, 6))
    prepare(built, find_formulation(key))
    expected = function_of(built, general.reactions(built, find_formulation(key), rows))(*given)
    close(np.array(graph(*given, *parameter_arguments(free.at(values)))), np.array(expected), 1e-12)


@pytest.mark.parametrize("seed", range(2))
def test_every_quantity_of_a_tree(seed: int) -> None:
    """Random trees: all joint kinds, met from either side, bodies welded together, some without mass."""
    rng = np.random.default_rng(seed)
    mechanism = tree_mechanism(seed, bodies=5)
    model = mechanism.build()
    nominal: Values = {"gravity": model.gravity}
    for body in (b for b in model.bodies if b.mass):
        nominal |= {f"{body.name}.mass": body.mass, f"{body.name}.com": body.com, f"{body.name}.inertia": body.inertia}
    for joint in model.joints:
        nominal |= {f"{joint.name}.at": joint.at.position, f"{joint.name}.child_at": joint.child_at.position}
    free, values = model.free(*nominal), varied(nominal, rng)
    for table in (mechanism._bodies, mechanism._joints):
        for name, element in table.items():
            table[name] = replace(element, **{what: put(element, what, x) for what, x in of(values, name).items()})
    mechanism.gravity = values["gravity"]
    built = mechanism.build()
    p = parameter_arguments(free.at(values))
    for formulation, table in RECURSIONS.items():
        for name, quantity in table.items():
            a, b = (m.unmerged if name == "joint_wrenches" else m for m in (free, built))
            given = [rng.uniform(-1, 1, quantity.input_shape(a, port) or 1) for port in quantity.inputs]
            if name == "project":
                given[0] = np.array(tree_graph(free, "body_poses")(free.random_state(rng)[0], *p))
            got, wanted = tree_graph(a, name, formulation)(*given, *p), tree_graph(b, name, formulation)(*given)
            for x, y in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, wanted)), strict=True):
                close(np.array(x), np.array(y), 1e-12)


def put(element: Any, what: str, value: Any) -> Any:
    """A value as the element keeps it."""
    return cd.Pose(value, getattr(element, what).rotation) if what in ("at", "child_at") else value


def with_elements(values: Values) -> Model:
    """Two pendulums with every force element that has numbers."""
    m = cd.Mechanism("elements", gravity=(0, -9.81, 0))
    for body in ("a", "b"):
        m.body(body, mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.2, 0.2))
        m.joint(f"hinge {body}", cd.Revolute(axis=(0.1, 0.2, 1)), m.ground, body, at=(0, float(body == "b"), 0))
    m.spring("spring", "a", "b", **of(values, "spring"))
    m.damper("damper", m.ground, "a", **of(values, "damper"))
    m.bushing("bushing", "a", "b", **of(values, "bushing"))
    m.wrench("wrench", "a", **of(values, "wrench"))
    m.torsion("torsion", "hinge a", **of(values, "torsion"))
    m.friction("friction", "hinge b", **of(values, "friction"))
    return m.build()


@settings(max_examples=3)
@given(seed=seeds)
def test_every_number_of_force_elements(seed: int) -> None:
    rng = np.random.default_rng(seed)
    free, values = with_elements(ELEMENTS).free(*ELEMENTS), varied(ELEMENTS, rng)
    built, p = with_elements(values), parameter_arguments(free.at(values))
    q, v = free.random_state(rng)
    for make, state in (
        (lambda m: general.forward_dynamics(m, SPATIAL, [], False), (q, v, np.zeros(2))),
        (lambda m: element_potential(), (q,)),
    ):
        got, wanted = function_of(free, make(free))(*state, *p), function_of(built, make(built))(*state)
        close(np.array(got), np.array(wanted), 1e-12)


def test_coincidences_of_nominal_values_leave_no_trace() -> None:
    """Zeros, ones, equal numbers and a centre of mass on the axis are only nominal."""

    def pendulum(**values: Any) -> Model:
        m = cd.Mechanism("pendulum", gravity=(0, 0, 0))
        for k, body in enumerate(("a", "b")):
            m.body(body, mass=1.0, com=values.get("com", (0, 0, 0)), inertia=values.get("inertia", (1, 1, 1)))
            m.joint(body.upper(), Z, "ab"[k - 1] if k else m.ground, body, at=values.get("at", (1, 0, 0)))
        return m.build()

    values = {"com": (0.1, 0.2, 0.3), "inertia": (1.0, 1.2, 1.3, 0.1, 0.05, 0.02), "at": (0.9, 0.1, 0.2)}
    free = pendulum().free(*(f"{body}.{what}" for body in "ab" for what in ("com", "inertia")), "A.at", "B.at")
    given = {f"{x}.{what}": value for x in "abAB" for what, value in values.items() if (what == "at") == x.isupper()}
    q, v, tau = np.array([0.3, 0.7]), np.array([1.0, -2.0]), np.array([0.5, 1.5])
    for formulation in ("spatial", "newton_euler"):
        got = tree_graph(free, "forward_dynamics", formulation)(q, v, tau, *parameter_arguments(free.at(given)))
        close(
            np.array(got), np.array(tree_graph(pendulum(**values), "forward_dynamics", formulation)(q, v, tau)), 1e-12
        )


# On arrays: kernels, batches, assembly.


@cache
def four_bar() -> Model:
    """The linkage with a few numbers free."""
    return linkage("loop", LINKAGE).free("crank.mass", "C.at", "spring.stiffness")


def lengths(*x: float) -> np.ndarray:
    """Places of the coupler's far end."""
    return np.stack([np.array(x), np.zeros(len(x)), np.zeros(len(x))], axis=-1)


def test_batches_of_values_broadcast_with_states_and_close_their_loops() -> None:
    masses, at = np.array([[1.0], [2.0], [3.0]]), lengths(1.8, 2.2)
    bound = four_bar().at({"crank.mass": masses, "C.at": at})
    q, v = cd.assemble(bound, v=[1.0, 0, 0])
    assert bound.batch == (3, 2) and q.shape == v.shape == (3, 2, 3)
    assert np.abs(cd.constraint_residual(bound, q)).max() < 1e-11
    a, energy = cd.forward_dynamics(bound, q, v), cd.kinetic_energy(bound, q, v)
    for i, j in np.ndindex(3, 2):
        built = linkage("loop", {**LINKAGE, "crank.mass": masses[i, 0], "C.at": at[j]})
        rows = kept_rows(four_bar(), SPATIAL)
        graph = function_of(built, general.forward_dynamics(built, SPATIAL, rows, False))
        close(a[i, j], np.array(graph(q[i, j], v[i, j], np.zeros(3))).ravel(), 1e-12)
        close(energy[i, j], np.array(tree_graph(built, "kinetic_energy")(q[i, j], v[i, j]))[0, 0], 1e-12)
    np.testing.assert_array_equal(bound.total_mass, masses + 3.8 + np.zeros(2))
    # one state, all values; all states, one value; out= and single precision
    np.testing.assert_array_equal(cd.forward_dynamics(bound, q[1, 1], v[1, 1])[1, 1], a[1, 1])
    one = four_bar().at({"crank.mass": 2.0, "C.at": at[1]})
    np.testing.assert_array_equal(cd.forward_dynamics(one, q, v)[1, 1], a[1, 1])
    out = np.empty_like(a)
    assert cd.forward_dynamics(bound, q, v, out=out) is out
    np.testing.assert_array_equal(out, a)
    single = cd.kinetic_energy(bound, q.astype(np.float32), v.astype(np.float32))
    assert single.dtype == np.float32
    close(single, energy, 1e-5)


def test_new_values_compile_nothing_and_leave_the_others_alone() -> None:
    free = four_bar()
    q, v = cd.assemble(free, v=[1.0, 0, 0])
    nominal = cd.forward_dynamics(free, q, v)
    heavy = free.at({"crank.mass": 7.0})
    moved = cd.forward_dynamics(heavy, q, v)
    shared = [k for k, thing in heavy.memory.items() if isinstance(thing, FreeKernel)]
    assert shared and all(heavy.memory[k].kernel is free.memory[k].kernel for k in shared)
    np.testing.assert_array_equal(cd.forward_dynamics(heavy, q, v), moved)
    assert heavy.at({"C.at": (2.0, 0, 0)}).values[0] == 7.0
    assert np.abs(cd.forward_dynamics(heavy, q, v) - nominal).max() > 1e-3
    np.testing.assert_array_equal(cd.forward_dynamics(free, q, v), nominal)
    np.testing.assert_array_equal(cd.forward_dynamics(free.at({}), q, v), nominal)


def test_what_reads_numbers_outside_kernels() -> None:
    values = {"crank.mass": 2.0, "C.at": (1.9, 0, 0)}
    bound, built = four_bar().at(values), linkage("loop", {**LINKAGE, **values})
    q, v = cd.assemble(bound, v=[1.0, 0, 0])
    np.testing.assert_array_equal(cd.undetermined_reactions(bound, q), cd.undetermined_reactions(built, q))
    assert cd.actuation(bound, q, ["A"]) == cd.actuation(built, q, ["A"])
    assert bound.total_mass == built.total_mass
    assert bound.settled().key == built.key
    close(cd.inverse_dynamics(bound, q, v, 0 * v + cd.forward_dynamics(bound, q, v), driven=["A"]), 0 * v, 1e-9)
    body_motion = cd.body_poses(bound, q).reshape(-1, 16), cd.body_twists(bound, q, v)
    for formulation in ("spatial", "absolute", "relative"):  # in coordinates of their own
        here, there = (cd.equations(m, formulation=formulation) for m in (bound, built))
        x, u = (np.array(part) for part in here.graph("project")(*body_motion, *parameter_arguments(bound)))
        given = x, u, np.zeros(3), np.zeros((4, 6)), 0.0
        system = here.graph("system")(*given, *parameter_arguments(bound)), there.graph("system")(*given)
        for got, wanted in zip(*system, strict=True):
            close(np.array(got), np.array(wanted), 1e-12)


def test_a_large_model_with_free_numbers_is_unrolled() -> None:
    m = cd.Mechanism("chain", gravity=(0, 0, -9.81))
    for k in range(70):
        m.body(f"b{k}", mass=1.0, com=(0.1, 0, 0), inertia=(0.01, 0.01, 0.01))
        m.joint(f"j{k}", cd.Revolute(axis=(0, 1, 0)), f"b{k - 1}" if k else m.ground, f"b{k}", at=(0.2 * (k > 0), 0, 0))
    model = m.build()
    free, rng = model.free("b3.mass"), np.random.default_rng(0)
    q, v = free.random_state(rng)
    got = tree_graph(free.at({"b3.mass": 1.0}), "potential_energy")(q, 1.0)
    close(float(got), float(cd.potential_energy(model, q)), 1e-12)
    assert cd.kinetic_energy(free, q, v) == pytest.approx(float(cd.kinetic_energy(model, q, v)), rel=1e-12)


def test_symbols_for_graphs_of_ones_own() -> None:
    free = four_bar()
    model, p = symbolic(free)
    assert p.shape == (5, 1) and not model.parameters
    assert symbolic(free.at({"crank.mass": 3.0}))[0] is model
    plain = linkage("loop", LINKAGE)
    assert symbolic(plain)[0] is plain and parameter_arguments(plain) == ()
    np.testing.assert_array_equal(parameter_arguments(free)[0], [1.0, 2.0, 0, 0, 100.0])
