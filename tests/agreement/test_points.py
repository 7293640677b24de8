"""`points` agrees with space on planar mechanisms: accelerations, reactions in the plane, energy, and the contract."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd
from cardan.functions.check import consistent_states
from cardan.mechanisms import (
    CATALOGUE,
    andrews,
    cart_pole,
    double_pendulum,
    five_bar,
    four_bar,
    n_four_bar,
    rack_and_pinion,
    scotch_yoke,
    slider_crank,
    sundials_slider_crank,
)
from cardan.model.joint import JointType
from cardan.structure.kernels import tree_graph
from cardan.structure.planarity import in_plane, is_planar

from ..graphs import interpreted, of_bodies, rates_of
from ..trees import Rng, close, random_inertia, random_rotation, seeds

pytestmark = pytest.mark.usefixtures("quick_code")

Solve = Callable[..., tuple[np.ndarray, np.ndarray]]
PLANAR = (
    double_pendulum, cart_pole, four_bar, slider_crank, five_bar, scotch_yoke, rack_and_pinion, n_four_bar, andrews,
    sundials_slider_crank,
)  # fmt: skip
TREES = {
    "chain": dict(bodies=4, kinds=("revolute",), loops=()),
    "tree": dict(bodies=6, kinds=("revolute", "prismatic", "revolute", "rigid"), loops=()),
    "slides": dict(bodies=5, kinds=("prismatic", "revolute", "planar"), loops=()),
    "floating": dict(bodies=4, kinds=("revolute", "prismatic"), loops=(), root="planar"),
}
LOOPS = {
    "pins": dict(bodies=6, kinds=("revolute",), loops=("revolute", "revolute")),
    "slide cut": dict(bodies=5, kinds=("revolute",), loops=("prismatic",)),
    "ball cut": dict(bodies=5, kinds=("revolute", "prismatic"), loops=("spherical",)),
    "mixed": dict(bodies=7, kinds=("revolute", "prismatic", "revolute"), loops=("cylindrical", "prismatic")),
    "floating loop": dict(bodies=6, kinds=("revolute",), loops=("revolute",), root="planar"),
    "planar cut": dict(bodies=4, kinds=("revolute",), loops=("revolute", "planar")),
    "rigid cut": dict(bodies=6, kinds=("revolute",), loops=("rigid",)),
}


def planar_mechanism(
    name: str, seed: int, bodies: int, kinds: tuple[str, ...], loops: tuple[str, ...], root: str = ""
) -> cd.Mechanism:
    """Bodies anywhere in any plane, each with a frame of its own; joints closed where the bodies are."""
    rng = np.random.default_rng([sum(name.encode()), seed])
    plane = random_rotation(rng)
    m = cd.Mechanism(f"planar {name} {seed}", gravity=rng.uniform(-10, 10, 3))
    places = {m.ground: cd.Pose()}
    names = [m.ground]
    for k in range(bodies):
        body = m.body(f"b{k}", mass=rng.uniform(0.5, 2), com=rng.uniform(-0.5, 0.5, 3), inertia=random_inertia(rng))
        places[body] = cd.Pose(plane @ rng.uniform(-1, 1, 3), random_rotation(rng))
        near = names[-1] if loops else names[rng.integers(bool(k and root), len(names))]
        kind = root if k == 0 and root else kinds[k % len(kinds)]
        _join(m, f"{kind} {k}", kind, (near, body), places, plane, rng)
        names.append(body)
    ends = ((names[-1], names[1] if root else m.ground), (names[-3], names[1]))  # two loops that share bodies
    for k, kind in enumerate(loops):
        _join(m, f"closing {k}", kind, ends[k], places, plane, rng)
    return m


def _join(
    m: cd.Mechanism,
    name: str,
    kind: str,
    ends: tuple[str, str],
    places: dict[str, cd.Pose],
    plane: np.ndarray,
    rng: Rng,
) -> None:
    """A joint anywhere between two bodies, its axis along the normal or in the plane, either way round."""
    turn, flip = rng.uniform(-np.pi, np.pi), rng.choice([-1.0, 1.0])
    c, s = np.cos(turn), np.sin(turn)
    axes = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]) @ np.diag([1.0, flip, flip])
    if kind == "prismatic":
        axes = axes[:, [1, 2, 0]]
    at = cd.Pose(plane @ rng.uniform(-0.8, 0.8, 3), plane @ axes)
    types: dict[str, JointType] = {
        "revolute": cd.Revolute(), "prismatic": cd.Prismatic(), "planar": cd.Planar(), "rigid": cd.Rigid(),
        "spherical": cd.Spherical(), "cylindrical": cd.Cylindrical(),
    }  # fmt: skip
    parent, child = ends if rng.random() < 0.6 else ends[::-1]
    m.joint(name, types[kind], parent, child, at=places[parent].inverse @ at, child_at=places[child].inverse @ at)


def add_elements(m: cd.Mechanism, names: tuple[str, ...], rng: Rng) -> None:
    """Springs, dampers, a user's force and drives, on bodies, tree joints and cut joints; all act in space."""
    m.spring("spring", "b0", "b2", stiffness=40.0, length=0.3, damping=0.5, at1=(0.1, 0.2, 0.3), at2=(-0.2, 0.1, 0.0))
    m.damper("damper", m.ground, "b1", damping=2.0, at1=(0.5, 0.1, 0.0), at2=(0.0, 0.2, 0.1))
    m.wrench("push", "b3", rng.standard_normal(6), at=(0.1, 0.0, 0.2))
    m.user_force("user", "b2", lambda t, poses, twists: [-0.3 * twists[0]])
    for k, joint in enumerate(names):
        m.torsion(f"torsion {joint}", joint, stiffness=3.0, damping=0.2)
        m.drive(f"drive {joint}", joint, lambda t, q, v, k=k: 0.5 + k - 0.1 * v)


def by_kernels(model: cd.Model, formulation: str, *state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations and reactions at a batch of q, v, tau and wrenches, from the public functions."""
    q, v, tau, wrenches = state
    words = dict(tau=tau, wrenches=wrenches, formulation=formulation)
    return cd.forward_dynamics(model, q, v, **words), cd.reactions(model, q, v, **words)


def by_graphs(model: cd.Model, formulation: str, *state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same without a kernel: CasADi interprets the equations."""
    rows = [interpreted(model, formulation)(*row) for row in zip(*state, strict=True)]
    return np.array([a for a, _ in rows]), np.array([f for _, f in rows])


def assert_agreement(model: cd.Model, seed: int, solve: Solve = by_graphs, count: int = 3) -> None:
    """Accelerations, reactions in the plane, kinetic energy, and the contract's equations."""
    rng = np.random.default_rng(seed)
    q, v = consistent_states(model, rng, count)
    tau, wrenches = rng.standard_normal((count, model.nv)), rng.standard_normal((count, model.nb, 6))
    a, f = solve(model, "points", q, v, tau, wrenches)
    P = in_plane(model)
    close(f, np.einsum("jab,...jb->...ja", P, f), 1e-14)
    for other in ("spatial", "absolute"):
        b, g = solve(model, other, q, v, tau, wrenches)
        close(a, b, 1e-10)
        close(f, np.einsum("jab,...jb->...ja", P, g), 1e-10)
    assert_contract(model, q, v, tau, wrenches)


def assert_contract(model: cd.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray) -> None:
    """`lift` and `project` are inverse; `M` is constant and gives the energy; its solution moves as in space."""
    system, lift, project, energy, rate = graphs_of(model)
    masses = []
    for state in zip(q, v, tau, wrenches, strict=True):
        a, _ = interpreted(model, "spatial")(*state)
        poses, twists, _ = of_bodies(model)(*state[:2], a)
        x, xd = project(poses.reshape(-1, 16), twists)
        for got, expected in zip(lift(x, xd), (poses.reshape(-1, 16), twists), strict=True):
            close(np.array(got), expected, 1e-12)
        M, f, J, gamma, _, phi = (np.array(part) for part in system(x, xd, *state[2:], 0.0))
        close(phi, np.zeros_like(phi), 1e-9)
        close(J @ xd, np.zeros_like(phi), 1e-9)
        close(np.array(xd).T @ M @ xd / 2, np.array(energy(*state[:2])), 1e-12)
        xdd = np.array(rate(*state[:2], a))
        close(J @ xdd, gamma, 1e-9)
        left = f - M @ xdd  # is a constraint force
        close(J.T @ np.linalg.lstsq(J.T, left, rcond=None)[0], left, 1e-9)
        masses.append(M)
    assert (masses[0] == masses).all()


@cache
def graphs_of(model: cd.Model) -> tuple[ca.Function, ...]:
    """The contract's equations, lift and project, kinetic energy, and the accelerations of the points from q, v, a."""
    eq = cd.equations(model, formulation="points")
    system, lift, project = (eq.graph(name) for name in ("system", "lift", "project"))
    Q, V, A = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("a", model.nv)))
    poses, twists = tree_graph(model, "body_poses")(Q), tree_graph(model, "body_twists")(Q, V)
    xd = project(poses, twists)[1]
    rate = ca.Function("rate", [Q, V, A], [ca.jtimes(xd, Q, rates_of(model, Q, V)) + ca.jtimes(xd, V, A)])
    return system, lift, project, tree_graph(model, "kinetic_energy"), rate


@pytest.mark.parametrize("make", [four_bar, cart_pole], ids=lambda make: make.__name__)
def test_equations_on_arrays_are_their_graphs(make) -> None:  # type: ignore[no-untyped-def]
    model, rng = make().build(), np.random.default_rng(2)
    q, v = consistent_states(model, rng, 3)
    tau, wrenches = rng.standard_normal(v.shape), rng.standard_normal((3, model.nb, 6))
    eq = cd.equations(model, formulation="points")
    poses, twists = cd.body_poses(model, q), cd.body_twists(model, q, v)
    x, xd = eq.project(poses, twists)
    system = eq.M(x), eq.f(x, xd, tau, wrenches), eq.J(x), eq.gamma(x, xd), eq.beta(x), eq.phi(x)
    for k in range(3):
        native = x[k], xd[k]
        for name, got, ports in (
            ("project", native, (poses[k].reshape(-1, 16), twists[k])),
            ("lift", [part[k] for part in eq.lift(x, xd)], native),
            ("system", [part[k] for part in system], (*native, tau[k], wrenches[k], 0.0)),
        ):
            for part, expected in zip(got, eq.graph(name)(*ports), strict=True):
                close(part.reshape(expected.shape), np.array(expected), 1e-12)


@cache
def planar_model_of(name: str, seed: int) -> cd.Model:
    return planar_mechanism(name, seed, **(TREES | LOOPS)[name]).build()  # type: ignore[arg-type]


@pytest.mark.parametrize("make", PLANAR, ids=lambda make: make.__name__)
def test_the_catalogue_agrees(make) -> None:  # type: ignore[no-untyped-def]
    assert_agreement(make().build(), 0, by_kernels)


@pytest.mark.parametrize("name", TREES)
@given(seed=seeds)
@settings(max_examples=3)
def test_random_planar_trees_agree(name: str, seed: int) -> None:
    assert_agreement(planar_model_of(name, seed % 4), seed)


@pytest.mark.parametrize("name", LOOPS)
@given(seed=seeds)
@settings(max_examples=2)
def test_random_planar_loops_agree(name: str, seed: int) -> None:
    assert_agreement(planar_model_of(name, seed % 3), seed)


@pytest.mark.parametrize("name", ["pins", "slide cut", "mixed"])
def test_elements_agree(name: str) -> None:
    rng = np.random.default_rng(3)
    m = planar_mechanism(name, 11, **LOOPS[name])  # type: ignore[arg-type]
    add_elements(m, ("revolute 0", "closing 0" if name != "mixed" else "closing 1"), rng)
    assert_agreement(m.build(), 5)


@pytest.mark.parametrize("which", ["motion", "tree", "cut"])
def test_prescribed_motions_and_couplings_agree(which: str) -> None:
    m = five_bar()
    closed = five_bar().build()
    q, _ = cd.assemble(closed)
    if which == "motion":
        m.motion("turn", "A", lambda t: 2.0 + 0.3 * t + 0.2 * t**2)
    else:
        first, second = ("A", "E") if which == "tree" else ("A", closed.joint_names[closed.cuts[0]])
        m.couple("geared", {first: 1.0, second: 0.4}, offset=_coupled(closed, q, first, second))
    model = m.build()
    q, v = cd.assemble(model, model.start(), np.ones(model.nv))
    a = cd.forward_dynamics(model, q, v, formulation="points")
    f = cd.reactions(model, q, v, formulation="points")
    for other in ("spatial", "absolute"):
        close(a, cd.forward_dynamics(model, q, v, formulation=other))
        expected = cd.reactions(model, q, v, formulation=other)
        close(f, np.einsum("jab,jb->ja", in_plane(model), expected), 1e-10)


def _coupled(model: cd.Model, q: np.ndarray, first: str, second: str) -> float:
    """What a coupling of two joints must be so that it holds near where the mechanism is."""
    poses, total = cd.body_poses(model, q), 0.0
    for name, c in ((first, 1.0), (second, 0.4)):
        joint = model.joint(name)
        angles = [
            0.0 if b < 0 else float(np.arctan2(poses[b][1, 0], poses[b][0, 0])) for b in (joint.parent, joint.child)
        ]
        total += c * float(np.angle(np.exp(1j * (angles[1] - angles[0]))))
    return total


@pytest.mark.parametrize(("name", "count"), [("ball cut", 3), ("mixed", 2)])
def test_drives_of_closing_joints_with_several_coordinates_agree(name: str, count: int) -> None:
    m = planar_mechanism(name, 4, **LOOPS[name])  # type: ignore[arg-type]
    m.drive("drive", "closing 0", lambda t, q, v: [0.7 * (k + 1) for k in range(count)])
    assert_agreement(m.build(), 6)


def test_batches_and_single_precision() -> None:
    model = four_bar().build()
    q, v = consistent_states(model, np.random.default_rng(0), 6)
    a = cd.forward_dynamics(model, q, v, formulation="points")
    assert np.array_equal(
        cd.forward_dynamics(model, q.reshape(2, 3, -1), v.reshape(2, 3, -1), formulation="points"), a.reshape(2, 3, -1)
    )
    single = cd.forward_dynamics(model, q.astype("f4"), v.astype("f4"), formulation="points")
    assert single.dtype == np.float32
    close(single, a, 1e-3)


def test_check_takes_points_where_the_motion_is_planar() -> None:
    assert any("points" in row.name for row in cd.check(four_bar().build()).rows)
    planar = {name for name, make in CATALOGUE.items() if is_planar(make().build())}
    assert planar >= {make.__name__ for make in PLANAR} | {"pendulum", "parallelogram"}
    assert not planar & {"two_body", "cardan_joint", "rscr", "bennett", "sarrus", "stewart_platform"}
