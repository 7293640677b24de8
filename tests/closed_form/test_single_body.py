"""One body on one joint of each kind, against equations derived by hand."""

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import random_inertia
from cardan.model.joint import JointType

from ..formulations import ALL, parts_of, solved
from ..trees import close, random_pose, state

pytestmark = pytest.mark.usefixtures("quick_code")

FORMULATIONS = ("spatial", "newton_euler")
G = 9.81
MASS, COM = 1.4, np.array([0.3, -0.2, 0.5])
I_C = random_inertia(np.random.default_rng(5))
I_O = I_C + MASS * (COM @ COM * np.eye(3) - np.outer(COM, COM))
BATCH = 8

each = pytest.mark.parametrize("formulation", FORMULATIONS)
every = pytest.mark.parametrize("formulation", ALL)


def one_body(type: JointType, *, com=COM, gravity=(0, 0, -G)) -> cd.Model:
    m = cd.Mechanism("one body", gravity=gravity)
    m.body("body", mass=MASS, com=com, inertia=I_C)
    m.joint("joint", type, m.ground, "body")
    return m.build()


def rotations(model: cd.Model, q: np.ndarray) -> np.ndarray:
    """Ground to body components."""
    return np.swapaxes(cd.body_poses(model, q)[:, 0, :3, :3], -1, -2)


def turned(E: np.ndarray, u: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j", E, u)


@each
def test_torque_free_body_obeys_Euler(formulation: str) -> None:
    """w' = I^-1 (-w x I w), and the centre of mass keeps its velocity: in body components v' = -w x v."""
    model = one_body(cd.Free(), com=(0, 0, 0), gravity=(0, 0, 0))
    q, v, *_ = state(model, 0, BATCH)
    w, v_C = v[:, :3], v[:, 3:]
    a = cd.forward_dynamics(model, q, v, formulation=formulation)
    close(a[:, :3], turned(np.linalg.inv(I_C), -np.cross(w, turned(I_C, w))), 1e-12)
    close(a[:, 3:], -np.cross(w, v_C), 1e-12)


@each
def test_body_on_a_ball_joint_obeys_Euler_about_the_joint(formulation: str) -> None:
    """I_O w' + w x I_O w = tau + c x m g."""
    model = one_body(cd.Spherical())
    q, w, tau, _ = state(model, 1, BATCH)
    weight = MASS * turned(rotations(model, q), np.array([0, 0, -G]))
    moment = tau + np.cross(COM, weight) - np.cross(w, turned(I_O, w))
    a = cd.forward_dynamics(model, q, w, tau, formulation=formulation)
    close(a, turned(np.linalg.inv(I_O), moment), 1e-12)
    close(cd.mass_matrix(model, q, formulation=formulation), np.broadcast_to(I_O, (BATCH, 3, 3)), 1e-13)


@each
def test_free_body_under_a_wrench_obeys_Newton_and_Euler_FX_A4(formulation: str) -> None:
    model = one_body(cd.Free())
    q, v, _, wrenches = state(model, 2, BATCH)
    w, v_O, n_O, f = v[:, :3], v[:, 3:], wrenches[:, 0, :3], wrenches[:, 0, 3:]
    wdot = turned(np.linalg.inv(I_C), n_O - np.cross(COM, f) - np.cross(w, turned(I_C, w)))
    a_C = f / MASS + turned(rotations(model, q), np.array([0, 0, -G]))
    a_O = a_C - np.cross(wdot, COM) - np.cross(w, np.cross(w, COM))
    a = cd.forward_dynamics(model, q, v, wrenches=wrenches, formulation=formulation)
    close(a[:, :3], wdot, 1e-12)
    close(
        a[:, 3:], a_O - np.cross(w, v_O), 1e-12
    )  # v is the twist in the body's components: their rate, not the point's


@each
def test_a_nut_on_a_vertical_screw_falls_by_m_g_h_over_J_plus_m_h2(formulation: str) -> None:
    h = 0.35
    model = one_body(cd.Screw(axis=(0, 0, 1), pitch=h))
    q, v, tau, _ = state(model, 3, BATCH)
    close(
        cd.forward_dynamics(model, q, v, tau, formulation=formulation),
        (tau - MASS * G * h) / (I_O[2, 2] + MASS * h**2),
        1e-12,
    )


@each
def test_a_screw_without_pitch_is_a_hinge_and_a_hinge_about_the_vertical_feels_no_weight(formulation: str) -> None:
    for type in (cd.Screw(axis=(0, 0, 1)), cd.Revolute(axis=(0, 0, 1))):
        model = one_body(type)
        q, v, tau, _ = state(model, 3, BATCH)
        close(cd.forward_dynamics(model, q, v, tau, formulation=formulation), tau / I_O[2, 2], 1e-12)


@each
def test_a_slider_falls_along_its_axis(formulation: str) -> None:
    axis = np.array([1.0, -2, 2]) / 3
    model = one_body(cd.Prismatic(axis=3 * axis))
    q, v, tau, _ = state(model, 4, BATCH)
    close(cd.forward_dynamics(model, q, v, tau, formulation=formulation), tau / MASS - G * axis[2], 1e-12)


@each
def test_a_sleeve_on_a_vertical_shaft_turns_and_falls_apart(formulation: str) -> None:
    model = one_body(cd.Cylindrical(axis=(0, 0, 1)))
    q, v, tau, _ = state(model, 5, BATCH)
    expected = np.stack([tau[:, 0] / I_O[2, 2], tau[:, 1] / MASS - G], -1)
    close(cd.forward_dynamics(model, q, v, tau, formulation=formulation), expected, 1e-12)


@each
def test_a_puck_in_a_vertical_plane_obeys_Newton_and_Euler(formulation: str) -> None:
    """Centre of mass at q[:2] + R(t) c: T = m/2 |x' + t' k x R c|^2 + I t'^2/2, in x, y and the angle t."""
    model = one_body(cd.Planar(), gravity=(0, -G, 0))
    q, v, tau, _ = state(model, 6, BATCH)
    c, s = np.cos(q[:, 2]), np.sin(q[:, 2])
    rx, ry = c * COM[0] - s * COM[1], s * COM[0] + c * COM[1]
    one, zero, t2 = np.ones(BATCH), np.zeros(BATCH), v[:, 2] ** 2
    M = np.array(
        [[MASS * one, zero, -MASS * ry], [zero, MASS * one, MASS * rx], [-MASS * ry, MASS * rx, I_O[2, 2] * one]]
    )
    M = np.moveaxis(M, -1, 0)
    bias = MASS * np.stack([-rx * t2, -ry * t2 + G, G * rx], -1)
    close(cd.mass_matrix(model, q, formulation=formulation), M, 1e-13)
    close(cd.bias_force(model, q, v, formulation=formulation), bias, 1e-13)
    a = cd.forward_dynamics(model, q, v, tau, formulation=formulation)
    close(a, np.linalg.solve(M, (tau - bias)[..., None])[..., 0], 1e-12)


def composed(kind: str) -> tuple[cd.Model, cd.Model]:
    """A joint of two freedoms, and the same motion through two joints and a massless body between."""
    axes = {
        "universal": (cd.Revolute((1, 0, 0)), cd.Revolute((0, 1, 0))),
        "cylindrical": (cd.Revolute(), cd.Prismatic()),
    }
    whole = {"universal": cd.Universal(), "cylindrical": cd.Cylindrical()}
    models = []
    for types in ((whole[kind],), axes[kind]):
        rng = np.random.default_rng(8)
        at, child_at = random_pose(rng), random_pose(rng)
        m = cd.Mechanism(kind)
        if len(types) == 2:
            m.body("cross")
        m.body("body", mass=MASS, com=COM, inertia=I_C)
        names = [m.ground, *(["cross"] if len(types) == 2 else []), "body"]
        for k, type in enumerate(types):
            m.joint(
                f"joint{k}", type, names[k], names[k + 1],
                at=at if k == 0 else cd.Pose(), child_at=child_at if k == len(types) - 1 else cd.Pose(),
            )  # fmt: skip
        models.append(m.build())
    return models[0], models[1]


@each
@pytest.mark.parametrize("kind", ["universal", "cylindrical"])
def test_a_joint_of_two_freedoms_is_two_joints_with_a_massless_body_between(kind: str, formulation: str) -> None:
    whole, parts = composed(kind)
    q, v, tau, _ = state(whole, 9, BATCH)
    close(cd.body_poses(whole, q)[:, -1], cd.body_poses(parts, q)[:, -1], 1e-13)
    for quantity in (cd.forward_dynamics, cd.inverse_dynamics):
        close(
            quantity(whole, q, v, tau, formulation=formulation),
            quantity(parts, q, v, tau, formulation=formulation),
            1e-12,
        )
    close(cd.mass_matrix(whole, q, formulation=formulation), cd.mass_matrix(parts, q, formulation=formulation), 1e-13)


# Spinning bodies in every formulation, through CasADi's interpreter.


def accelerations(model: cd.Model, formulation: str, q: np.ndarray, v: np.ndarray, wrench: np.ndarray) -> np.ndarray:
    """Forward dynamics (nv,) without a compiled kernel."""
    x, u = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    parts = parts_of(model, formulation, x, u, wrenches=ca.SX(ca.DM(wrench)))
    a, _ = solved(model, formulation, parts, list(range(len(parts.rows))))
    return np.array(ca.Function("a", [x, u], [a])(q, v)).ravel()


@every
def test_a_free_body_obeys_Euler_with_torque(formulation: str) -> None:
    """w' = I^-1 (n - c x f - w x I w) in body components: couple n and force f at the origin, centre of mass at c."""
    model = one_body(cd.Free(), gravity=(0, 0, 0))
    q, v = model.random_state(np.random.default_rng(3))
    w, n, f = 3 * v[:3], np.array([0.4, -0.2, 0.3]), np.array([-0.5, 0.6, 0.1])
    found = accelerations(model, formulation, q, np.concatenate([w, v[3:]]), np.array([[*n, *f]]))
    gyroscopic = np.cross(w, I_C @ w)
    assert np.abs(gyroscopic).max() > 0.1
    close(found[:3], np.linalg.solve(I_C, n - np.cross(COM, f) - gyroscopic), 1e-12)


@every
@pytest.mark.parametrize("I_3", [0.4, 3.0], ids=["slender", "flat"])
def test_the_spin_of_a_symmetric_body_precesses_by_its_inertia(I_3: float, formulation: str) -> None:
    """Torque-free: in body axes w turns about the axis of symmetry with the rate (I3 - I1) / I1 times the spin."""
    m = cd.Mechanism("top", gravity=(0, 0, 0))
    m.body("top", mass=MASS, com=(0, 0, 0), inertia=(2.0, 2.0, I_3))
    m.joint("joint", cd.Free(), m.ground, "top")
    model = m.build()
    q, _ = model.random_state(np.random.default_rng(1))
    w = np.array([0.3, 0.0, 5.0])
    rate = (I_3 - 2.0) / 2.0 * w[2]
    found = accelerations(model, formulation, q, np.array([*w, 0, 0, 0]), np.zeros((1, 6)))
    close(found[:3], [0.0, rate * w[0], 0.0], 1e-12)


@every
def test_a_heavy_top_precesses_steadily(formulation: str) -> None:
    """m g l = P (I3 s - I1 P cos(tilt)): precession P, spin s about the axis, both moments about the fixed point."""
    l, I_1, I_3, tilt, P = 0.4, 0.5, 0.2, 0.9, 2.0
    m = cd.Mechanism("top", gravity=(0, 0, -G))
    m.body("top", mass=MASS, com=(0, 0, l), inertia=(I_1 - MASS * l**2, I_1 - MASS * l**2, I_3))
    m.joint("point", cd.Spherical(), m.ground, "top")
    model = m.build()
    s = (MASS * G * l / P + I_1 * P * np.cos(tilt)) / I_3
    q = np.array([np.cos(tilt / 2), np.sin(tilt / 2), 0, 0])
    v = np.array([0, P * np.sin(tilt), s])  # the body's x axis is the line of nodes
    own_spin = s - P * np.cos(tilt)  # of the body against the line of nodes, which stays level
    found = accelerations(model, formulation, q, v, np.zeros((1, 6)))
    close(found, [P * own_spin * np.sin(tilt), 0, 0], 1e-11)


@pytest.mark.parametrize("formulation", ["absolute", "absolute_body"])
def test_the_gyroscopic_moment_is_on_the_right_of_Euler(formulation: str) -> None:
    """`M udot = f` with f = -w x I w: in the fixed frame with I = R I_C R^T, in the body with I_C."""
    model = one_body(cd.Free(), com=(0, 0, 0), gravity=(0, 0, 0))
    graph = cd.equations(model, formulation=formulation).graph("system")
    rng = np.random.default_rng(6)
    q, _ = model.random_state(rng)
    own, w = np.array([0.1, 0.2, 0.3, *q[3:]]), rng.standard_normal(3)
    R = cd.textbook.rotation_of_quaternion(q[3:])
    I = I_C if formulation == "absolute_body" else R @ I_C @ R.T
    M, f, *_ = graph(own, np.array([*w, 0, 0, 0]), np.zeros(6), np.zeros((1, 6)), 0.0)
    close(np.array(M)[:3, :3], I, 1e-13)
    close(np.array(f).ravel()[:3], -np.cross(w, I @ w), 1e-13)
