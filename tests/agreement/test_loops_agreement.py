"""Closed loops agree: between formulations, with every body's balance, with energy, with themselves cut elsewhere.

Most of it runs through CasADi's interpreter (`graphs.interpreted`); what kernels compute is compared with that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd
from cardan import mechanisms
from cardan.formulation.dynamics import element_potential
from cardan.formulation.elements import body_wrenches
from cardan.formulation.kinematics import kinematics_of_tree
from cardan.formulation.tree import PROJECT

from ..formulations import RECURSIONS
from ..graphs import WAYS, consistent_states, graph_mechanism, graph_model, interpreted, of_bodies, rates_of
from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

graphs = st.integers(0, 29)


def with_springs(m: cd.Mechanism, joints: tuple[str, ...], bodies: tuple[str, str]) -> cd.Mechanism:
    """Springs along joints, tree joints and cuts, between two bodies and to ground, and a bushing: no loss."""
    for k, joint in enumerate(joints):
        m.torsion(f"coil {joint}", joint, stiffness=3.0 + k, rest=0.2)
    m.spring("spring", *bodies, stiffness=40.0, length=0.3, at1=(0.1, 0.2, 0.3), at2=(0.2, 0, 0.1))
    m.spring("to ground", m.ground, bodies[1], stiffness=25.0, length=0.2, at1=(0.3, -0.4, 0.5))
    m.bushing("bushing", *bodies, stiffness=(1, 2, 3, 10, 20, 30))
    return m


def with_losses(m: cd.Mechanism, joint: str, cut: str, bodies: tuple[str, str]) -> cd.Mechanism:
    """A drive, friction and dampers."""
    m.drive("motor", joint, lambda t, q, v: 2.0 * ca.cos(3 * t) - 0.3 * v)
    m.friction("bearing", joint, viscous=0.2, coulomb=0.1, smoothing=0.1)
    m.torsion("brake", cut, damping=0.4)
    m.damper("damper", *bodies, damping=2.0, at1=(0.1, 0, 0.2))
    m.wrench("push", bodies[0], (0.3, 0.1, -0.2, 1.0, 2.0, -1.0), at=(0.1, 0, 0), axes="body")
    return m


MECHANISMS: dict[str, Callable[[], cd.Mechanism]] = {
    "four_bar": lambda: with_springs(mechanisms.four_bar(), ("A", "C", "D"), ("crank", "rocker")),
    "slider_crank": lambda: with_losses(
        mechanisms.slider_crank(variant="spatial"), "bearing", "wrist", ("crank", "slider")
    ),
    "five_bar": lambda: with_losses(mechanisms.five_bar(), "A", "C", ("left crank", "right link")),
    "parallelogram": lambda: with_springs(mechanisms.parallelogram(), ("A1", "B2"), ("crank1", "coupler")),
    "andrews": mechanisms.andrews,
    "drive_line": lambda: with_losses(mechanisms.drive_line(slip=True), "input", "cross2", ("in", "out")),
    "rscr": lambda: with_springs(mechanisms.rscr(), ("crank", "cylinder"), ("crank", "rocker")),
    "bennett": mechanisms.bennett,
    "sarrus": lambda: with_springs(mechanisms.sarrus(), ("foot x", "head y"), ("lower x", "plate")),
    "stewart_platform": lambda: with_losses(mechanisms.stewart_platform(), "slider1", "foot3", ("platform", "lower2")),
    "rack_and_pinion": mechanisms.rack_and_pinion,
}
SPRUNG = ("four_bar", "parallelogram", "rscr", "sarrus")


@cache
def mechanism(name: str) -> cd.Model:
    return MECHANISMS[name]().build()


def assert_agreement(model: cd.Model, seed: int, t: float = 0.7) -> None:
    """Accelerations and determined reactions of all formulations, and Newton and Euler for every body."""
    state = consistent_states(model, seed)
    determined = ~cd.undetermined_reactions(model, state[0])
    expected, forces = interpreted(model, "spatial")(*state, at=t)
    for formulation in WAYS:
        a, f = interpreted(model, formulation)(*state, at=t)
        assert relative(a, expected) <= 1e-10, formulation
        assert relative(f[determined], forces[determined]) <= 1e-10, formulation
        missing, scale = newton_euler_residual(model, *state, a, f, t)
        assert np.abs(missing).max() <= 1e-10 * scale, (formulation, model.body_names[int(missing.max(1).argmax())])


def relative(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max(initial=0.0)) / max(float(np.abs(b).max(initial=0.0)), 1e-300)


def newton_euler_residual(
    model: cd.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray, a: np.ndarray,
    reactions: np.ndarray, t: float,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """What is left (nb, 6) of moment and force about each body's origin, in ground axes, and the largest wrench."""
    poses, twists, accelerations = of_bodies(model)(q, v, a)
    acting = np.array(wrenches) + element_wrenches(model)(q, v, t)
    R, r = poses[:, :3, :3], poses[:, :3, 3]
    n, f = (np.einsum("bij,bj->bi", R, acting[:, k : k + 3]) for k in (0, 3))
    scale = max(np.abs(n).max(), np.abs(f).max(), np.abs(reactions).max())
    for joint, wrench in zip(model.joints, reactions, strict=True):
        M = (poses[joint.child] if joint.child >= 0 else np.eye(4)) @ joint.child_at.matrix
        moment, force = M[:3, :3] @ wrench[:3], M[:3, :3] @ wrench[3:]
        for b, sign in ((joint.child, 1), (joint.parent, -1)):
            if b >= 0:
                f[b] += sign * force
                n[b] += sign * (moment + np.cross(M[:3, 3] - r[b], force))
    for b, body in enumerate(model.bodies):
        w, v_O, wdot, vdot, c = *np.split(twists[b], 2), *np.split(accelerations[b], 2), body.com
        a_C = R[b] @ (vdot + np.cross(w, v_O) + np.cross(wdot, c) + np.cross(w, np.cross(w, c)))
        momentum_rate = body.mass * (a_C - model.gravity)
        f[b] -= momentum_rate
        n[b] -= R[b] @ (body.inertia @ wdot + np.cross(w, body.inertia @ w)) + np.cross(R[b] @ c, momentum_rate)
    return np.concatenate([n, f], axis=1), scale


@cache
def element_wrenches(model: cd.Model) -> Callable[..., np.ndarray]:
    """Wrenches (nb, 6) of the force elements between bodies."""
    q, v, t = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv), ca.SX.sym("t")
    total = ca.SX(model.nb, 6)
    for b, wrench in body_wrenches(kinematics_of_tree(model, q, v), t).items():
        total[b, :] = wrench.T
    graph = ca.Function("effects", [q, v, t], [total])
    return lambda *state: np.array(graph(*state))


@given(seed=graphs, state=st.integers(0, 99))
@settings(max_examples=2)
def test_formulations_agree_on_random_graphs(seed: int, state: int) -> None:
    assert_agreement(graph_model(seed), state)


@pytest.mark.parametrize("name", MECHANISMS)
def test_formulations_agree_on_mechanisms_with_force_elements(name: str) -> None:
    for seed in range(2):
        assert_agreement(mechanism(name), seed)


def test_the_graphs_hold_every_kind_and_several_loops() -> None:
    models = [graph_mechanism(seed).build() for seed in range(30)]
    assert {joint.kind.name.split("(")[0] for model in models for joint in model.joints} == set(
        ["rigid", "revolute", "prismatic", "screw", "universal", "cylindrical", "spherical", "planar", "free"]
    )
    assert {len(model.cuts) for model in models} == {1, 2, 3, 4}
    assert max(model.nb for model in models) == 12
    pairs = [[frozenset((joint.parent, joint.child)) for joint in model.joints] for model in models]
    assert sum(len(ends) > len(set(ends)) for ends in pairs) > 10


@pytest.mark.parametrize(("name", "ways"), [("four_bar", tuple(WAYS)), ("graph 10", ("spatial", "absolute_body"))])
def test_kernels_and_batches_are_what_CasADi_interprets(name: str, ways: tuple[str, ...]) -> None:
    model = graph_model(10) if name.startswith("graph") else mechanism(name)
    q, v, tau, w = consistent_states(model, 3, 3)
    determined = ~cd.undetermined_reactions(model, q[0])
    for key in ways:
        words = {"formulation": key}
        a = cd.forward_dynamics(model, q, v, tau, wrenches=w, **words)
        f = cd.reactions(model, q, v, tau, wrenches=w, **words)
        for k in range(len(q)):
            expected, forces = interpreted(model, key)(q[k], v[k], tau[k], w[k])
            close(a[k], expected, 1e-10)
            close(f[k][determined], forces[determined], 1e-10)
            close(cd.forward_dynamics(model, q[k], v[k], tau[k], wrenches=w[k], **words), a[k], 1e-12)
            close(cd.reactions(model, q[k], v[k], tau[k], wrenches=w[k], **words), f[k], 1e-12)


@cache
def energy_rate(model: cd.Model) -> Callable[..., float]:
    """Rate of kinetic energy and of the potentials of gravity and springs, from q, v, a, by CasADi."""
    q, v, a = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("a", model.nv)))
    table = RECURSIONS["spatial"]
    E = table["kinetic_energy"].graph(model, {"q": q, "v": v})[0] + table["potential_energy"].graph(model, {"q": q})[0]
    E = E + element_potential().graph(model, {"q": q})[0]
    rate = ca.jtimes(E, q, rates_of(model, q, v)) + ca.jtimes(E, v, a)
    graph = ca.Function("rate", [q, v, a], [rate])
    return lambda *state: float(graph(*state))


@pytest.mark.parametrize("name", SPRUNG)
def test_springs_and_loops_conserve_energy(name: str) -> None:
    """The rate of all energy is the power of drives and wrenches given by hand, none of them losing any."""
    model = mechanism(name)
    for seed in range(3):
        q, v, tau, w = consistent_states(model, seed)
        a, _ = interpreted(model, "spatial")(q, v, tau, w)
        power = tau @ v + (w * of_bodies(model)(q, v, a)[1]).sum()
        assert abs(energy_rate(model)(q, v, a) - power) < 1e-10 * max(1.0, abs(power))
        a, _ = interpreted(model, "spatial")(q, v, 0 * tau, 0 * w)
        assert abs(energy_rate(model)(q, v, a)) < 1e-10 * max(1.0, abs(power))


@pytest.mark.parametrize(("name", "joint", "cut", "bodies"), [
    ("five_bar", "A", "C", ("left crank", "right link")),
    ("drive_line", "input", "cross2", ("in", "out")),
])  # fmt: skip
def test_power_of_drives_and_dampers_is_the_rate_of_energy(
    name: str, joint: str, cut: str, bodies: tuple[str, str]
) -> None:
    model, t = mechanism(name), 0.4
    for seed in range(3):
        q, v, tau, w = consistent_states(model, seed)
        a, _ = interpreted(model, "spatial")(q, v, tau, w, at=t)
        poses, twists, _ = of_bodies(model)(q, v, a)
        rate = float(v[model.v_slice(joint)][0])
        power = tau @ v + (w * twists).sum() + rate * (2 * np.cos(3 * t) - 0.3 * rate)
        power -= rate * (0.2 * rate + 0.1 * np.tanh(rate / 0.1))
        power -= 0.4 * joint_speed_squared(model, cut, poses, twists, v)
        first, second = (model.body_index(body) for body in bodies)
        power += lost(poses, twists, first, second) + wrench_power(twists[first])
        assert abs(energy_rate(model)(q, v, a) - power) < 1e-10 * max(1.0, abs(power))


def joint_speed_squared(model: cd.Model, name: str, poses: np.ndarray, twists: np.ndarray, v: np.ndarray) -> float:
    """Sum of the squared rates of a joint; of one that is cut, from the angular velocities of its bodies."""
    joint = model.joint(name)
    if model.joint_names.index(name) not in model.cuts:
        return float((v[model.v_slice(name)] ** 2).sum())
    w = [poses[b][:3, :3] @ twists[b][:3] for b in (joint.parent, joint.child)]
    if joint.kind.nv == 1:
        return float((w[1] - w[0]) @ (w[1] - w[0]))
    axes = np.stack([(poses[joint.parent][:3, :3] @ joint.at.rotation)[:, 0],
                     (poses[joint.child][:3, :3] @ joint.child_at.rotation)[:, 1]])  # fmt: skip
    return float(((axes @ (w[1] - w[0])) ** 2).sum())


def lost(poses: np.ndarray, twists: np.ndarray, first: int, second: int) -> float:
    """Power of the damper: `-damping ldot^2`."""
    points, speeds = [], []
    for b, at in ((first, np.array([0.1, 0, 0.2])), (second, np.zeros(3))):
        R = poses[b][:3, :3]
        points.append(poses[b][:3, 3] + R @ at)
        speeds.append(R @ (twists[b][3:] + np.cross(twists[b][:3], at)))
    d = points[1] - points[0]
    return -2.0 * float(d @ (speeds[1] - speeds[0]) / np.linalg.norm(d)) ** 2


def wrench_power(twist: np.ndarray) -> float:
    """Power of the follower wrench at (0.1, 0, 0)."""
    at_point = twist[3:] + np.cross(twist[:3], (0.1, 0, 0))
    return float(twist[:3] @ (0.3, 0.1, -0.2) + at_point @ (1.0, 2.0, -1.0))


def projected(model: cd.Model, poses: np.ndarray, twists: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q and v of a model whose bodies are there, through the interpreter."""
    symbols = ca.SX.sym("poses", model.nb, 16), ca.SX.sym("twists", model.nb, 6)
    graph = ca.Function("project", symbols, PROJECT.graph(model, dict(zip(PROJECT.inputs, symbols, strict=True))))
    return tuple(np.array(x).ravel() for x in graph(poses.reshape(-1, 16), twists))  # type: ignore[return-value]


CUTS: dict[str, tuple[str, ...]] = {
    "four_bar": ("D",),
    "slider_crank": ("guide",),
    "five_bar": ("A",),
    "rscr": ("cylinder",),
    "drive_line": ("input",),
    "sarrus": ("knee x",),
    "stewart_platform": tuple(f"slider{k}" for k in range(1, 6)),
}


@pytest.mark.parametrize("name", CUTS)
def test_bodies_accelerate_alike_wherever_the_loops_are_cut(name: str) -> None:
    automatic, chosen = mechanism(name), MECHANISMS[name]().build(cut=CUTS[name])
    assert (
        {chosen.joints[j].name for j in chosen.cuts}
        == set(CUTS[name])
        != {automatic.joints[j].name for j in automatic.cuts}
    )
    q, v, tau, w = consistent_states(automatic, 5)
    a, f = interpreted(automatic, "spatial")(q, v, 0 * tau, w)
    poses, twists, accelerations = of_bodies(automatic)(q, v, a)
    q2, v2 = projected(chosen, poses, twists)
    determined = ~cd.undetermined_reactions(automatic, q)
    for formulation in WAYS:
        a2, f2 = interpreted(chosen, formulation)(q2, v2, np.zeros(chosen.nv), w)
        poses2, twists2, accelerations2 = of_bodies(chosen)(q2, v2, a2)
        close(poses2, poses, 1e-11)
        close(twists2, twists, 1e-10)
        close(accelerations2, accelerations, 1e-10)
        close(f2[determined], f[determined], 1e-10)
