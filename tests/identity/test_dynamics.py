"""What must hold of any tree's dynamics, whatever computed it: energy, momentum, balance of every body, derivatives."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd
from cardan.algebra.spatial import crf, inertia_about_origin, rigid_inertia
from cardan.formulation import spatial
from cardan.formulation.quantity import port_shape
from cardan.formulation.recursion import Recursion, unroll
from cardan.model.body import Body
from cardan.model.joint import JointType

from ..trees import KINDS, TREES, close, floating_model, kind_model, moved, seeds, state, tree_mechanism, tree_model

pytestmark = pytest.mark.usefixtures("quick_code")

BATCH, H = 8, 1e-6
every_tree = pytest.mark.parametrize("tree", range(TREES))
few = settings(max_examples=4)


def times(A: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j", A, x)


def inertia_of(body: Body) -> np.ndarray:
    I_O = inertia_about_origin(body.mass, body.com, body.inertia)
    return rigid_inertia(body.mass, body.mass * body.com, I_O)


def carried(pose: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """A wrench on a frame, about the origin and in the components of the frame that `pose` is given in."""
    R, p = pose[..., :3, :3], pose[..., :3, 3]
    f = times(R, wrench[..., 3:])
    return np.concatenate([times(R, wrench[..., :3]) + np.cross(p, f), f], -1)


def test_the_trees_hold_every_kind_both_ways_and_massless_and_merged_bodies() -> None:
    models = [tree_model(k) for k in range(TREES)]
    declared = {joint.kind.name.split("(")[0] for model in models for joint in model.joints}
    assert declared == set(KINDS)
    assert any(link.mass == 0 for model in models for link in model.tree.links)
    assert any(len(model.tree.links) < model.nb for model in models)
    assert any(link.kind.name.startswith("reversed") for model in models for link in model.tree.links)


@every_tree
@given(seed=seeds)
@few
def test_mass_matrix_is_symmetric_positive_definite_and_gives_the_energy_FX_B4(tree: int, seed: int) -> None:
    model = tree_model(tree)
    q, v, *_ = state(model, seed, BATCH)
    M = cd.mass_matrix(model, q)
    close(M, np.swapaxes(M, -1, -2), 1e-15)
    assert np.linalg.eigvalsh(M).min() > 0
    close(cd.kinetic_energy(model, q, v), np.einsum("...i,...ij,...j", v, M, v) / 2, 1e-12)
    close(M @ cd.inverse_mass_matrix(model, q), np.broadcast_to(np.eye(model.nv), M.shape), 1e-10)


def skew_residual(model: cd.Model, seed: int) -> float:
    q, v, *_ = state(model, seed, BATCH)
    Mdot = (cd.mass_matrix(model, moved(model, q, v, H)) - cd.mass_matrix(model, moved(model, q, v, -H))) / (2 * H)
    C = cd.coriolis_matrix(model, q, v)
    return float(np.abs(Mdot - C - np.swapaxes(C, -1, -2)).max() / max(1, np.abs(Mdot).max()))


@every_tree
@given(seed=seeds)
@few
def test_Mdot_minus_2C_is_skew(tree: int, seed: int) -> None:
    model = tree_model(tree)
    assert skew_residual(model, seed) < 1e-7


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("kind", KINDS)
def test_Mdot_minus_2C_is_skew_for_every_kind(kind: str, backwards: bool) -> None:
    assert skew_residual(kind_model(kind, backwards), 0) < 1e-7


@every_tree
@given(seed=seeds)
@few
def test_C_v_plus_gravity_is_the_bias_force_FX_B3(tree: int, seed: int) -> None:
    model = tree_model(tree)
    q, v, a, _ = state(model, seed, BATCH)
    bias = cd.bias_force(model, q, v)
    close(times(cd.coriolis_matrix(model, q, v), v) + cd.gravity_force(model, q), bias, 1e-12)
    close(times(cd.mass_matrix(model, q), a) + bias, cd.inverse_dynamics(model, q, v, a), 1e-12)
    close(cd.bias_force(model, q, 0 * v), cd.gravity_force(model, q), 1e-13)


@every_tree
@given(seed=seeds)
@few
def test_inverse_dynamics_undoes_forward_dynamics(tree: int, seed: int) -> None:
    model = tree_model(tree)
    q, v, tau, wrenches = state(model, seed, BATCH)
    a = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches)
    close(cd.inverse_dynamics(model, q, v, a, wrenches=wrenches), tau, 1e-10)
    close(cd.inverse_dynamics(model, q, v, cd.forward_dynamics(model, q, v, tau)), tau, 1e-10)
    close(cd.forward_dynamics(model, q, v), cd.forward_dynamics(model, q, v, 0 * tau), 0)


@every_tree
@given(seed=seeds)
@few
def test_accelerations_are_linear_in_the_wrenches(tree: int, seed: int) -> None:
    model = tree_model(tree)
    q, v, tau, one = state(model, seed, BATCH)
    two = np.roll(one, 1, axis=0)
    a = lambda w: cd.forward_dynamics(model, q, v, tau, wrenches=w)
    close(a(2 * one - 3 * two), 2 * a(one) - 3 * a(two) + 2 * a(0 * one), 1e-10)
    close(a(0 * one), cd.forward_dynamics(model, q, v, tau), 1e-11)


@every_tree
@given(seed=seeds)
@few
def test_energy_changes_by_the_power_of_drives_and_wrenches(tree: int, seed: int) -> None:
    model = tree_model(tree)
    q, v, tau, wrenches = state(model, seed, BATCH)
    a = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches)

    def energy(t: float) -> np.ndarray:
        there = cd.plus(model, q, t * v + t * t / 2 * a)  # right to second order, and the error is even in t
        return cd.kinetic_energy(model, there, v + t * a) + cd.potential_energy(model, there)

    power = (tau * v).sum(-1) + (wrenches * cd.body_twists(model, q, v)).sum((-1, -2))
    scale = max(1.0, float(np.abs(times(cd.mass_matrix(model, q), a) * v).max()))
    close((energy(H) - energy(-H)) / (2 * H * scale), power / scale, 1e-7)


@every_tree
@given(seed=seeds)
@few
def test_gravity_force_is_the_gradient_of_potential_energy(tree: int, seed: int) -> None:
    model = tree_model(tree)
    q, *_ = state(model, seed, 1)
    steps = H * np.eye(model.nv)
    V = lambda h: cd.potential_energy(model, cd.plus(model, q, h))
    close((V(steps) - V(-steps)) / (2 * H), cd.gravity_force(model, q)[0], 1e-7)


@every_tree
@given(seed=seeds)
@few
def test_momentum_FX_C1_and_centre_of_mass_are_sums_over_the_bodies(tree: int, seed: int) -> None:
    model = tree_model(tree)
    q, v, *_ = state(model, seed, BATCH)
    poses, twists = cd.body_poses(model, q), cd.body_twists(model, q, v)
    h, mc, T = np.zeros((BATCH, 6)), np.zeros((BATCH, 3)), np.zeros(BATCH)
    for k, body in enumerate(model.bodies):
        own = times(inertia_of(body), twists[:, k])
        h += carried(poses[:, k], own)
        mc += body.mass * (poses[:, k, :3, 3] + poses[:, k, :3, :3] @ body.com)
        T += (own * twists[:, k]).sum(-1) / 2
    c = mc / model.total_mass
    close(cd.momentum(model, q, v), h, 1e-12)
    close(cd.center_of_mass(model, q), c, 1e-12)
    close(cd.kinetic_energy(model, q, v), T, 1e-12)
    close(cd.potential_energy(model, q), -mc @ model.gravity, 1e-12)
    about_c = np.concatenate([h[:, :3] - np.cross(c, h[:, 3:]), h[:, 3:]], -1)
    close(cd.centroidal_momentum(model, q, v), about_c, 1e-12)


def with_fixed_bodies(links: int, pedestal: float = 3.0) -> cd.Model:
    """A chain on a pedestal that is fixed to the ground, and a crate on the pedestal."""
    rng = np.random.default_rng(7)
    m = cd.Mechanism("on a pedestal", gravity=(1.0, -2.0, -9.0))
    for name, mass in (("pedestal", pedestal), ("crate", 2.0)):
        m.body(name, mass=mass, com=rng.uniform(-1, 1, 3), inertia=(0.5, 0.6, 0.7))
    m.joint("bolts", cd.Rigid(), m.ground, "pedestal", at=cd.Pose((0.4, -0.3, 0.2), rpy=(0.3, 0.2, 0.1)))
    m.joint("nails", cd.Rigid(), "pedestal", "crate", at=cd.Pose((0, 0.5, 0), rpy=(0.1, 0.5, 0)))
    before = "pedestal"
    for k in range(links):
        m.body(f"link {k}", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.1, 0.1))
        m.joint(f"hinge {k}", cd.Revolute(rng.standard_normal(3)), before, f"link {k}", at=(0.2, 0, 0))
        before = f"link {k}"
    return m.build()


@pytest.mark.parametrize("links", [2, 70])
def test_bodies_fixed_to_the_ground_count_in_the_sums_over_all_bodies(links: int) -> None:
    model = with_fixed_bodies(links)
    q, v, *_ = state(model, 1, BATCH)
    poses = cd.body_poses(model, q)
    mc = sum(b.mass * (poses[:, k, :3, 3] + poses[:, k, :3, :3] @ b.com) for k, b in enumerate(model.bodies))
    moved = cd.center_of_mass(model, cd.plus(model, q, H * v)) - cd.center_of_mass(model, cd.plus(model, q, -H * v))
    for formulation in ("spatial", "newton_euler"):
        close(cd.center_of_mass(model, q, formulation=formulation), mc / model.total_mass, 1e-12)
        close(cd.potential_energy(model, q, formulation=formulation), -mc @ model.gravity, 1e-12)
        h = cd.momentum(model, q, v, formulation=formulation)
        close(model.total_mass * moved / (2 * H), h[:, 3:], 1e-7)
        about = np.concatenate([h[:, :3] - np.cross(mc / model.total_mass, h[:, 3:]), h[:, 3:]], -1)
        close(cd.centroidal_momentum(model, q, v, formulation=formulation), about, 1e-12)
    assert with_fixed_bodies(links, pedestal=4.0).key != model.key


def test_the_mass_of_a_fixed_body_may_be_free() -> None:
    free, masses = with_fixed_bodies(2).free("pedestal.mass", "pedestal.com"), np.array([1.0, 5.0, 20.0])
    q, *_ = state(free, 2, 3)
    found = cd.center_of_mass(free.at({"pedestal.mass": masses}), q)
    for k, mass in enumerate(masses):
        close(found[k], cd.center_of_mass(with_fixed_bodies(2, mass), q[k]), 1e-13)


@pytest.mark.parametrize("number", range(3))
@given(seed=seeds)
@few
def test_centroidal_momentum_of_a_floating_tree_changes_by_the_external_wrench(number: int, seed: int) -> None:
    model = floating_model(number)
    q, v, tau, wrenches = state(model, seed, BATCH)
    tau[:, :6] = 0  # the root joint's drive would be external too
    a = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches)
    h = lambda t: cd.centroidal_momentum(model, cd.plus(model, q, t * v + t * t / 2 * a), v + t * a)
    total = carried(cd.body_poses(model, q), wrenches).sum(1)
    moment = total[:, :3] - np.cross(cd.center_of_mass(model, q), total[:, 3:])
    scale = max(1.0, float(np.abs(a).max()))
    close((h(H) - h(-H)) / (2 * H * scale), np.concatenate([moment, total[:, 3:]], -1) / scale, 1e-7)


@pytest.mark.parametrize("tree", range(TREES))
@given(seed=seeds)
@few
def test_Newton_and_Euler_hold_for_every_body_with_its_joint_wrenches(tree: int, seed: int) -> None:
    """I a + v x* I v = weight + external wrench + wrenches of its joints, massless and rigidly fixed bodies too."""
    model = tree_model(tree)
    q, v, tau, wrenches = state(model, seed, BATCH)
    a = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches)
    poses, twists, accelerations = (
        cd.body_poses(model, q),
        cd.body_twists(model, q, v),
        cd.body_accelerations(model, q, v, a),
    )
    reactions = cd.joint_wrenches(model, q, v, a, wrenches=wrenches)
    left = np.zeros((BATCH, model.nb, 6))
    for k, body in enumerate(model.bodies):
        I = inertia_of(body)
        weight = body.mass * times(np.swapaxes(poses[:, k, :3, :3], -1, -2), model.gravity)
        left[:, k] = times(I, accelerations[:, k]) - wrenches[:, k]
        left[:, k] += np.array([crf(t) @ I @ t for t in twists[:, k]])
        left[:, k] -= np.concatenate([np.cross(body.com, weight), weight], -1)
    for j, joint in enumerate(model.joints):
        child = (poses[:, joint.child] if joint.child >= 0 else np.eye(4)) @ joint.child_at.matrix
        for index, sign in ((joint.child, -1), (joint.parent, 1)):
            if index >= 0:
                left[:, index] += sign * carried(np.linalg.inv(poses[:, index]) @ child, reactions[:, j])
    scale = max(1.0, float(np.abs(reactions).max()))
    close(left / scale, np.zeros_like(left), 1e-10)


def weight_on(joint: JointType, *ends: str) -> np.ndarray:
    """Wrench of a joint from which a body of 2 kg hangs at rest."""
    m = cd.Mechanism("hanging", gravity=(0, 0, -10))
    m.body("a", mass=1.0, inertia=(1, 1, 1))
    m.body("b", mass=2.0, inertia=(1, 1, 1))
    m.joint("first", joint, m.ground, "a")
    m.joint("rigid", cd.Rigid(), *ends)
    model = m.build()
    rest = np.zeros(model.nv)
    return cd.joint_wrenches(model, model.neutral(), rest, rest)[1]


def test_a_rigid_joint_carries_the_weight_of_its_child() -> None:
    close(weight_on(cd.Cylindrical(), "a", "b"), [0, 0, 0, 0, 0, 20.0], 1e-15)


def test_a_rigid_joint_declared_upwards_pulls_its_child_down() -> None:
    close(weight_on(cd.Cylindrical(), "b", "a"), [0, 0, 0, 0, 0, -20.0], 1e-15)


def test_a_rigid_joint_beyond_the_only_freedom_has_a_wrench() -> None:
    close(weight_on(cd.Revolute(), "a", "b"), [0, 0, 0, 0, 0, 20.0], 1e-15)


def test_a_mechanism_that_cannot_move_has_poses_and_wrenches() -> None:
    close(weight_on(cd.Rigid(), "a", "b"), [0, 0, 0, 0, 0, 20.0], 1e-15)


@every_tree
@given(seed=seeds)
@few
def test_body_accelerations_are_the_rate_of_body_twists(tree: int, seed: int) -> None:
    model = tree_model(tree)
    q, v, a, _ = state(model, seed, BATCH)
    twists = lambda t: cd.body_twists(model, cd.plus(model, q, t * v + t * t / 2 * a), v + t * a)
    close((twists(H) - twists(-H)) / (2 * H), cd.body_accelerations(model, q, v, a), 1e-7)


def twist_of_motion(there: np.ndarray, back: np.ndarray, here: np.ndarray, axes: str) -> np.ndarray:
    """Twist from two poses a little apart: angular velocity, and velocity of the origin."""
    R, Rdot, rdot = here[..., :3, :3], (there - back)[..., :3, :3] / (2 * H), (there - back)[..., :3, 3] / (2 * H)
    E = np.swapaxes(R, -1, -2)
    W = E @ Rdot if axes == "body" else Rdot @ E
    w = np.stack([W[..., 2, 1] - W[..., 1, 2], W[..., 0, 2] - W[..., 2, 0], W[..., 1, 0] - W[..., 0, 1]], -1) / 2
    return np.concatenate([w, times(E, rdot) if axes == "body" else rdot], -1)


@pytest.mark.parametrize("axes", ["body", "ground"])
@every_tree
def test_Jacobian_columns_are_derivatives_of_the_frame_pose(tree: int, axes: str) -> None:
    model = tree_model(tree)
    q, v, *_ = state(model, 5)
    steps = H * np.eye(model.nv)
    for frame in ("tool", "b3"):
        pose = lambda h, frame=frame: cd.frame_pose(model, cd.plus(model, q, h), frame)
        J = cd.jacobian(model, q, frame, axes=axes)
        here = np.broadcast_to(pose(0 * v), (model.nv, 4, 4))
        close(J.T, twist_of_motion(pose(steps), pose(-steps), here, axes), 1e-8)
    close(cd.jacobian(model, q, "b3") @ v, cd.body_twists(model, q, v)[3], 1e-12)


@every_tree
def test_a_frame_is_fixed_to_its_body_and_ground_does_not_move(tree: int) -> None:
    model = tree_model(tree)
    q, *_ = state(model, 6, BATCH)
    tool, mark = model.frames
    close(cd.frame_pose(model, q, "tool"), cd.body_poses(model, q)[:, tool.body] @ tool.at.matrix, 1e-14)
    close(cd.frame_pose(model, q, "mark"), np.broadcast_to(mark.at.matrix, (BATCH, 4, 4)), 0)
    close(cd.jacobian(model, q, "mark"), np.zeros((BATCH, 6, model.nv)), 0)


@every_tree
def test_joint_axes_are_the_twists_about_the_ground_origin(tree: int) -> None:
    """Summed with v they are the last body's twist, carried to the ground's origin, over its path."""
    model = tree_model(tree)
    q, *_ = state(model, 7, BATCH)
    axes = cd.joint_axes(model, q)
    for k, name in enumerate(model.body_names):
        J, pose = cd.jacobian(model, q, name, axes="ground"), cd.body_poses(model, q)[:, k]
        about_origin = J[:, 3:] + np.cross(pose[:, :3, 3, None], J[:, :3], axisa=1, axisb=1, axisc=1)
        expected = np.concatenate([J[:, :3], about_origin], 1)
        on_path = np.abs(J).max((0, 1)) > 0
        close(np.swapaxes(axes, -1, -2)[..., on_path], expected[..., on_path], 1e-12)


@every_tree
def test_project_undoes_lift(tree: int) -> None:
    model = tree_model(tree)
    rng = np.random.default_rng(8)
    v = rng.standard_normal((BATCH, model.nv))
    q = cd.plus(model, model.neutral(), rng.uniform(-0.9, 0.9, (BATCH, model.nv)))
    eq = cd.equations(model)
    found, rate = eq.project(*eq.lift(q, v))
    close(cd.body_poses(model, found), cd.body_poses(model, q), 1e-12)
    close(rate, v, 1e-11)


# The two liberties taken with the model's numbers.

REGROUPED = [r for r in vars(spatial).values() if isinstance(r, Recursion) and r.regrouped]


@pytest.mark.parametrize("recursion", REGROUPED, ids=lambda r: r.name)
@every_tree
def test_regrouping_inertia_changes_no_joint_space_result(tree: int, recursion: Recursion) -> None:
    model = tree_model(tree)
    symbols = {port: ca.SX.sym(port, *(n or 1 for n in port_shape(model, port))) for port in recursion.ports}
    q, v, tau, wrenches = state(model, 9)
    values = {"q": q, "v": v, "a": tau, "tau": tau, "wrenches": wrenches}
    results = []
    for regrouped in (True, False):
        outputs = unroll(replace(recursion, regrouped=regrouped), model, symbols)
        results.append(ca.Function("r", list(symbols.values()), outputs)(*(values[p] for p in symbols)))
    close(np.array(results[0]), np.array(results[1]), 1e-11)


def test_snapping_moves_results_by_no_more_than_its_tolerance() -> None:
    rng = np.random.default_rng(10)
    m = cd.Mechanism("nearly square")
    before = m.ground
    for k in range(4):
        body = m.body(f"b{k}", mass=1.0, com=(0.1, 0.2, 0.3), inertia=(0.1, 0.2, 0.25))
        turn = cd.Pose(
            1e-10 * rng.standard_normal(3) + np.eye(3)[k % 3], rpy=np.pi / 2 * rng.integers(-2, 3, 3) + 1e-10
        )
        m.joint(f"j{k}", cd.Revolute(axis=np.eye(3)[k % 3]), before, body, at=turn)
        before = body
    snapped, exact = m.build(snapping=1e-9), m.build(snapping=0.0)
    assert {abs(x) for link in snapped.tree.links for x in link.E.ravel()} == {0.0, 1.0}
    assert {abs(x) for link in exact.tree.links for x in link.E.ravel()} != {0.0, 1.0}
    q, v, tau, _ = state(exact, 11, BATCH)
    a, b = (cd.forward_dynamics(model, q, v, tau) for model in (snapped, exact))
    close(a, b, 1e-8)
    assert (a != b).any()


def test_a_mechanism_that_was_built_is_not_changed_by_later_declarations() -> None:
    m = tree_mechanism(0)
    model = m.build()
    nv = model.nv
    m.body("later", mass=1.0, inertia=(1, 1, 1))
    m.joint("later", cd.Revolute(), "b0", "later")
    assert (model.nv, m.build().nv) == (nv, nv + 1)
    with pytest.raises(ValueError, match="read-only"):
        model.gravity[0] = 1.0
