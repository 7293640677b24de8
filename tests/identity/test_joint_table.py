"""Every row of the joint table, and the row met from the child's side: S, T, X, bias, phi, plus and measure agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.linalg import expm

import cardan as cd
from cardan.algebra.matrix import as_graph
from cardan.algebra.rotation import rotation_exp, rotation_integral
from cardan.algebra.spatial import crm, shifted, turned
from cardan.model.joint import RIGID, TABLE, JointType, Kind, reversed_kind, screw_kind

from ..trees import KINDS, close, random_pose, random_quaternion, random_rotation, seeds

pytestmark = pytest.mark.usefixtures("quick_code")

ROWS = {kind.name: kind for row in (*TABLE.values(), screw_kind(0.0)) for kind in (row, reversed_kind(row))}
every_row = pytest.mark.parametrize("kind", ROWS.values(), ids=list(ROWS))
few = settings(max_examples=10)


def random_q(kind: Kind, rng: np.random.Generator) -> np.ndarray:
    """Several turns of angles, unit quaternions."""
    q = rng.uniform(-20, 20, kind.nq)
    if kind.nq != kind.nv:
        q[-4:] = random_quaternion(rng)
    return q


def pose(kind: Kind, q: Any) -> tuple[Any, Any]:
    """R and p of M in F."""
    R = kind.E(q).T if kind.E is not None else np.eye(3)
    p = kind.r(q) if kind.r is not None else np.zeros(3)
    return R, p


def transform(kind: Kind, q: Any) -> Any:
    """X from F to M, 6x6."""
    X = ca.SX.eye(6)
    if kind.r is not None:
        X = shifted(as_graph(kind.r(q), q)) @ X
    if kind.E is not None:
        X = turned(kind.E(q)) @ X
    return X


def along(kind: Kind, text: Callable[[Any], Any], q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Derivative of `text(plus(q, t v))` at t = 0, exact."""
    t = ca.SX.sym("t")
    value = as_graph(text(kind.plus(ca.SX(q), t * ca.SX(v))), t)
    return np.array(ca.Function("rate", [t], [ca.reshape(ca.jacobian(value, t), *value.shape)])(0.0))


def value_of(text: Callable[[Any], Any], q: np.ndarray) -> np.ndarray:
    return np.array(ca.evalf(as_graph(text(ca.SX(q)), ca.SX(q))))


@every_row
@given(seed=seeds)
@few
def test_S_and_T_are_dual_and_span_everything(kind: Kind, seed: int) -> None:
    q = random_q(kind, np.random.default_rng(seed))
    S, T = np.asarray(kind.S(q)), np.asarray(kind.T(q))
    assert S.shape == (6, kind.nv)
    assert T.shape == (6, 6 - kind.nv)
    assert kind.freedoms_removed == 6 - kind.nv
    close(T.T @ S, np.zeros((6 - kind.nv, kind.nv)), 1e-13)
    assert np.linalg.matrix_rank(S) == kind.nv
    assert np.linalg.matrix_rank(T) == 6 - kind.nv
    assert np.linalg.matrix_rank(np.column_stack([S, T]), tol=1e-6) == 6


@every_row
@given(seed=seeds)
@few
def test_X_moves_along_S(kind: Kind, seed: int) -> None:
    """dX/dt = -(S v) x X, with t along `plus`."""
    rng = np.random.default_rng(seed)
    q, v = random_q(kind, rng), rng.standard_normal(kind.nv)
    if kind is RIGID:
        close(value_of(lambda q: transform(kind, q), q), np.eye(6), 0)
        return
    X = value_of(lambda q: transform(kind, q), q)
    rate = along(kind, lambda q: transform(kind, q), q, v)
    close(rate, -crm(value_of(kind.S, q) @ v) @ X, 1e-12)


@pytest.mark.parametrize("kind", [k for k in ROWS.values() if k.bias is None], ids=lambda kind: kind.name)
@given(seed=seeds)
@few
def test_X_is_the_exponential_of_S_where_S_moves_with_the_joint(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, v = random_q(kind, rng), rng.standard_normal(kind.nv)
    twist = value_of(kind.S, q) @ v
    after = expm(-crm(twist)) @ value_of(lambda q: transform(kind, q), q)
    close(after, value_of(lambda q: transform(kind, q), kind.plus(q, v)), 1e-12)


@every_row
@given(seed=seeds)
@few
def test_bias_is_Sdot_v(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, v = random_q(kind, rng), rng.standard_normal(kind.nv)
    if kind.nv == 0:
        assert kind.bias is None
        return
    expected = along(kind, lambda q: as_graph(kind.S(q), q) @ ca.SX(v), q, v).ravel()
    close(kind.bias(q, v) if kind.bias is not None else np.zeros(6), expected, 1e-12)


@every_row
@given(seed=seeds)
@few
def test_phi_vanishes_on_the_motions_and_only_there_nearby(kind: Kind, seed: int) -> None:
    """Its gradient over all twists of M has exactly span S as kernel."""
    rng = np.random.default_rng(seed)
    q = random_q(kind, rng)
    R, p = pose(kind, q)
    close(kind.phi(R, p), np.zeros(6 - kind.nv), 1e-12)
    h = 1e-6

    def shaken(u: np.ndarray) -> np.ndarray:
        return np.asarray(kind.phi(R @ rotation_exp(u[:3]), p + R @ (rotation_integral(u[:3]) @ u[3:])))

    J = np.array([(shaken(h * e) - shaken(-h * e)) / (2 * h) for e in np.eye(6)]).T.reshape(6 - kind.nv, 6)
    close(J @ np.asarray(kind.S(q)), np.zeros((6 - kind.nv, kind.nv)), 1e-7)
    if kind.nv < 6:
        assert np.linalg.svd(J)[1][-1] > 1e-2


@every_row
@given(seed=seeds)
@few
def test_plus_stays_on_the_manifold_and_composes_along_one_motion(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, v = random_q(kind, rng), 3 * rng.standard_normal(kind.nv)
    close(kind.plus(q, 0 * v), q, 1e-15)
    close(kind.plus(kind.plus(q, 0.3 * v), 0.7 * v), kind.plus(q, v), 1e-13)
    if kind.nq != kind.nv:
        for _ in range(100):
            q = kind.plus(q, v)
        assert abs(np.linalg.norm(q[-4:]) - 1) < 1e-13


@every_row
@given(seed=seeds)
@few
def test_measure_reads_the_configuration_off_the_pose(kind: Kind, seed: int) -> None:
    rng = np.random.default_rng(seed)
    q = random_q(kind, rng)
    found = np.asarray(kind.measure(*pose(kind, q)))
    assert found.shape == (kind.nq,)
    for a, b in zip(pose(kind, found), pose(kind, q), strict=True):
        close(a, b, 1e-12)
    near = kind.plus(np.array(kind.neutral), rng.uniform(-1.5, 1.5, kind.nv))  # within half a turn: the very same q
    found = np.asarray(kind.measure(*pose(kind, near)))
    if kind.nq != kind.nv:
        found[-4:] *= np.sign(found[-4:] @ near[-4:])  # either quaternion of the rotation
    close(found, near, 1e-12)


@pytest.mark.parametrize(
    "kind", [kind for kind in ROWS.values() if kind.nv == kind.nq == 1], ids=lambda kind: kind.name
)
@given(seed=seeds)
@few
def test_a_measured_coordinate_changes_by_the_work_of_its_unit_force(kind: Kind, seed: int) -> None:
    """Its rate is `W^T v_r`, by default with `W = S (S^T S)^-1`, also for velocities that the joint does not allow."""
    rng = np.random.default_rng(seed)
    q, v, h = rng.uniform(-1, 1, 1), rng.standard_normal(6), 1e-5
    R, p = pose(kind, q)
    sides = [np.asarray(kind.measure(R @ rotation_exp(t * v[:3]), p + R @ (t * v[3:]))) for t in (h, -h)]
    S = np.asarray(kind.S(q))
    W = S / (S.T @ S)[0, 0] if kind.W is None else np.asarray(kind.W(q))
    close(W.T @ S, np.eye(1), 1e-12)
    close((sides[0] - sides[1]) / (2 * h), W.T @ v, 1e-7)


@every_row
@given(seed=seeds)
@few
def test_each_row_of_phi_changes_by_the_work_of_its_constraint_force(kind: Kind, seed: int) -> None:
    """On the joint's motions the rate of row k is `T[:, k]^T v_r`, whatever the velocity of M relative to F."""
    rng = np.random.default_rng(seed)
    q, v, h = kind.plus(np.array(kind.neutral), rng.uniform(-1, 1, kind.nv)), rng.standard_normal(6), 1e-5
    R, p = pose(kind, q)
    sides = [np.asarray(kind.phi(R @ rotation_exp(t * v[:3]), p + R @ (t * v[3:]))) for t in (h, -h)]
    close((sides[0] - sides[1]) / (2 * h), np.asarray(kind.T(q)).T @ v, 1e-7)


@pytest.mark.parametrize("name", ["rigid", "prismatic", "revolute", "cylindrical", "screw(0.1)", "planar"])
def test_a_joint_turned_by_nearly_half_a_turn_is_not_closed(name: str) -> None:
    """About an axis that it does not turn about; a residual of sines alone would vanish there again."""
    kind = TABLE[name]
    R, p = pose(kind, np.array(kind.neutral))
    turns = [np.diag([1.0, -1.0, -1.0]), np.diag([-1.0, 1.0, -1.0])]
    turns += [np.diag([-1.0, -1.0, 1.0])] if name in ("rigid", "prismatic") else []
    nearly = rotation_exp(np.array([1e-3, 2e-3, -1e-3]))
    for half in turns:
        assert np.abs(np.asarray(kind.phi(R @ half @ nearly, p))).max() > 10


@every_row
def test_the_row_is_complete(kind: Kind) -> None:
    assert len(kind.neutral) == len(kind.q_units) == kind.nq
    assert len(kind.v_units) == kind.nv
    if kind.title != "curvilinear":  # which is then at the beginning of its curve
        for a, b in zip(pose(kind, np.array(kind.neutral)), (np.eye(3), np.zeros(3)), strict=True):
            close(a, b, 0)
    assert reversed_kind(kind) is reversed_kind(kind)


def test_the_freedoms_are_those_of_KJ() -> None:
    freedoms = {kind.name.split("(")[0]: kind.nv for kind in TABLE.values()}
    assert freedoms.pop("curvilinear") == 1  # KJ has none
    assert freedoms == {
        "rigid": 0, "revolute": 1, "spherical": 3, "universal": 2, "prismatic": 1, "cylindrical": 2, "free": 6,
        "planar": 3, "screw": 1,
    }  # fmt: skip
    assert set(freedoms) == set(KINDS)


# Through the builder: any axis, any placement, by hand.


def motion(type: JointType, q: np.ndarray) -> cd.Pose:
    """What the joint does, from the axes the user gave and from nothing of the table."""
    unit = lambda a: np.asarray(a) / np.linalg.norm(a)
    match type:
        case cd.Revolute():
            return cd.Pose(rotation=rotation_exp(q[0] * unit(type.axis)))
        case cd.Prismatic():
            return cd.Pose(q[0] * unit(type.axis))
        case cd.Screw():
            return cd.Pose(type.pitch * q[0] * unit(type.axis), rotation_exp(q[0] * unit(type.axis)))
        case cd.Cylindrical():
            return cd.Pose(q[1] * unit(type.axis), rotation_exp(q[0] * unit(type.axis)))
        case cd.Universal():
            return cd.Pose(rotation=rotation_exp(q[0] * unit(type.axis1)) @ rotation_exp(q[1] * unit(type.axis2)))
        case cd.Planar():
            x, z = unit(type.x), unit(type.normal)
            return cd.Pose(q[0] * x + q[1] * np.cross(z, x), rotation_exp(q[2] * z))
        case cd.Spherical():
            return cd.Pose(quaternion=q)
        case cd.Free():
            return cd.Pose(q[:3], quaternion=q[3:])
    return cd.Pose()


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", KINDS)
def test_a_joint_with_any_axis_and_placement_puts_its_child_where_the_user_says(name: str, backwards: bool) -> None:
    rng = np.random.default_rng(sum(name.encode()))
    type, at, child_at = KINDS[name](rng), random_pose(rng), random_pose(rng)
    m = cd.Mechanism(name)
    m.body("body", mass=1.0, inertia=(1, 1, 1))
    m.body("other", mass=1.0, inertia=(1, 1, 1))
    m.joint("hinge", cd.Revolute(), m.ground, "other")  # so that something moves beside a rigid joint
    m.joint("joint", type, *(("body", m.ground) if backwards else (m.ground, "body")), at=at, child_at=child_at)
    model = m.build()
    q, _ = model.random_state(rng, 6)
    for row, found in zip(q, cd.body_poses(model, q)[:, 0], strict=True):
        expected = at @ motion(type, row[1:]) @ child_at.inverse
        close(found, (expected.inverse if backwards else expected).matrix, 1e-13)


@pytest.mark.parametrize("name", [name for name in KINDS if name != "rigid"])
def test_rates_are_the_derivative_of_plus(name: str) -> None:
    rng = np.random.default_rng(3)
    m = cd.Mechanism(name)
    m.body("body", mass=1.0, inertia=(1, 1, 1))
    m.joint("joint", KINDS[name](rng), m.ground, "body")
    model = m.build()
    q, v = model.random_state(rng, 5)
    h = 1e-6
    close((cd.plus(model, q, h * v) - cd.plus(model, q, -h * v)) / (2 * h), cd.rates(model, q, v), 1e-8)
    close(cd.plus(model, q, 0 * v), q, 1e-15)
    if model.nq != model.nv:
        e, w = q[:, -4:], v[:, :3]
        product = np.stack(  # e (0, w) / 2
            [-(e[:, 1:] * w).sum(-1), *(e[:, :1] * w + np.cross(e[:, 1:], w)).T], -1
        )
        close(cd.rates(model, q, v)[:, -4:], product / 2, 1e-13)


def test_a_planar_joint_without_x_runs_in_the_plane_of_its_normal() -> None:
    rng = np.random.default_rng(5)
    normal = random_rotation(rng)[0]
    m = cd.Mechanism("planar")
    m.body("body", mass=1.0, inertia=(1, 1, 1))
    m.joint("joint", cd.Planar(normal=normal), m.ground, "body")
    model = m.build()
    q, _ = model.random_state(rng, 6)
    poses = cd.body_poses(model, q)[:, 0]
    close(poses[:, :3, 3] @ normal, np.zeros(6), 1e-14)
    close(np.linalg.norm(poses[:, :3, 3], axis=-1), np.linalg.norm(q[:, :2], axis=-1), 1e-14)
    close(poses[:, :3, :3], [rotation_exp(a * normal) for a in q[:, 2]], 1e-13)


TILTED = ("revolute", "cylindrical", "planar", "screw(0.1)")


@pytest.mark.parametrize("name", TILTED)
@pytest.mark.parametrize("angle", [1e-9, 1e-3, 0.3, 1.2, 3.0])
def test_residual_of_a_tilted_hinge_is_twice_the_tangent_of_half_the_angle(name: str, angle: float) -> None:
    """M turned about z, then tilted about n in the xy plane of F: 2 tan(angle/2) n, in M before the tilt."""
    theta, direction = 0.7, 2.1
    n = np.array([np.cos(direction), np.sin(direction), 0])
    turn = np.asarray(rotation_exp(np.array([0, 0, theta])), dtype=float)
    tilt = np.asarray(rotation_exp(angle * n), dtype=float)
    expected = 2 * np.tan(angle / 2) * (turn.T @ n)[:2]
    found = np.asarray(TABLE[name].phi(tilt @ turn, np.zeros(3)), dtype=float)[:2]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    if angle < 1e-2:  # small tilts: the angle itself, so that residuals are in radians
        np.testing.assert_allclose(found, angle * (turn.T @ n)[:2], rtol=max(angle**2, 1e-12))


@pytest.mark.parametrize("name", ["rigid", "prismatic"])
@pytest.mark.parametrize("angle", [1e-9, 1e-3, 0.3, 1.2, 3.0])
def test_residual_of_a_turned_slider_is_twice_the_tangent_of_half_the_angle(name: str, angle: float) -> None:
    n = np.array([2.0, -1.0, 2.0]) / 3
    found = np.asarray(TABLE[name].phi(np.asarray(rotation_exp(angle * n), dtype=float), np.zeros(3)), dtype=float)[:3]
    np.testing.assert_allclose(found, 2 * np.tan(angle / 2) * n, rtol=1e-9)


@every_row
def test_rate_of_the_residual_is_that_of_the_constraint_row(kind: Kind) -> None:
    """`d phi/dt = T^T v_r` for any velocity of M relative to F, row by row, so that J is the derivative of phi."""
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, v_r, t = random_q(kind, rng) / 10, rng.standard_normal(6), ca.SX.sym("t")
        if kind.nq != kind.nv:
            q[-4:] /= np.linalg.norm(q[-4:])
        R, p = (np.asarray(x, dtype=float) for x in pose(kind, q))
        moving_R = ca.DM(R) @ (ca.SX.eye(3) + t * ca.skew(ca.DM(v_r[:3])))
        phi = as_graph(kind.phi(moving_R, ca.DM(p) + t * (ca.DM(R) @ ca.DM(v_r[3:]))), t)
        rate = np.array(ca.Function("rate", [t], [ca.jacobian(phi, t)])(0.0)).ravel()
        close(rate, np.asarray(kind.T(q), dtype=float).T @ v_r, 1e-10)
