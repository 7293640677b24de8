"""Force elements: each against its formula by hand, by its power, and by action and reaction."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cardan as cd
from cardan.algebra.matrix import as_graph
from cardan.formulation.elements import body_wrenches, element_potential, joint_forces
from cardan.formulation.measured_joint import dual
from cardan.model.force import FORCES, BodyPose
from cardan.model.joint import FREE, TABLE

from ..trees import random_quaternion, random_rotation

pytestmark = pytest.mark.usefixtures("quick_code")

Rng = np.random.Generator
SOLID: dict[str, Any] = {"mass": 1.0, "inertia": (1, 1, 1)}
SEEDS = range(5)


def two_bodies() -> cd.Mechanism:
    """Bodies a and b, both afloat."""
    m = cd.Mechanism("two")
    for name in "ab":
        m.body(name, **SOLID)
        m.joint(name, cd.Free(), m.ground, name)
    return m


def one_joint(kind: Any) -> cd.Mechanism:
    m = cd.Mechanism("one")
    m.body("a", **SOLID)
    m.joint("j", kind, m.ground, "a")
    return m


class Floating:
    """Wrenches, potential energy and its rate of elements on a and b, as numbers."""

    def __init__(self, model: cd.Model) -> None:
        t, s = ca.SX.sym("t"), ca.SX.sym("s")
        q, v = [ca.SX.sym("q", 7) for _ in "ab"], [ca.SX.sym("v", 6) for _ in "ab"]

        def pose(b: int) -> BodyPose:
            return BodyPose(FREE.E(q[b]).T, FREE.r(q[b])) if b >= 0 else BodyPose(ca.SX.eye(3), ca.SX(3, 1))

        def later(b: int) -> BodyPose:
            moved = FREE.plus(q[b], s * v[b]) if b >= 0 else None
            return pose(b) if moved is None else BodyPose(FREE.E(moved).T, FREE.r(moved))

        def twist(b: int) -> Any:
            return v[b] if b >= 0 else ca.SX(6, 1)

        wrenches = body_wrenches(SimpleNamespace(model=model, pose=pose, twist=twist), t)
        self.bodies = set(wrenches)
        f = [wrenches.get(b, ca.SX(6, 1)) for b in range(2)]
        V = element_potential(SimpleNamespace(model=model, pose=later))
        rate = ca.substitute(ca.jacobian(V, s), s, 0)
        self.function = ca.Function("f", [t, *q, *v], [*f, ca.substitute(V, s, 0), rate])

    def __call__(self, q: list[np.ndarray], v: list[np.ndarray], t: float = 0.0) -> tuple[np.ndarray, float, float]:
        f_a, f_b, V, rate = self.function(t, *q, *v)
        return np.array([f_a.full().ravel(), f_b.full().ravel()]), float(V), float(rate)


def random_state(rng: Rng) -> tuple[list[np.ndarray], list[np.ndarray]]:
    q = [np.concatenate([rng.uniform(-1, 1, 3), random_quaternion(rng)]) for _ in "ab"]
    return q, [rng.standard_normal(6) for _ in "ab"]


def at_rest(*positions: tuple[float, float, float]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return [np.array([*p, 1.0, 0, 0, 0]) for p in positions], [np.zeros(6) for _ in positions]


def pose(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return FREE.E(q).T, FREE.r(q)


def in_ground(q: np.ndarray, f: np.ndarray) -> np.ndarray:
    """A body's wrench about the ground's origin, in ground components."""
    R, r = pose(q)
    n, force = R @ f[:3], R @ f[3:]
    return np.concatenate([n + np.cross(r, force), force])


def matrix(rng: Rng, symmetric: bool = True) -> np.ndarray:
    """A stiffness, positive definite; with a skew part if it need not be symmetric."""
    A, B = rng.standard_normal((2, 6, 6))
    return A @ A.T + (0 if symmetric else B - B.T)


def between(what: str, m: cd.Mechanism, rng: Rng, body1: str, damped: bool) -> None:
    """Add an element of one kind between body1 and b."""
    c = rng.uniform(0.5, 2) if damped else 0.0
    p1, p2 = rng.uniform(-1, 1, (2, 3))
    if what == "spring":
        m.spring("e", body1, "b", stiffness=rng.uniform(1, 5), length=rng.uniform(0, 1), at1=p1, at2=p2, damping=c)
    elif what == "damper":
        m.damper("e", body1, "b", damping=c, at1=p1, at2=p2)
    else:
        frames = [cd.Pose(p, random_rotation(rng)) for p in (p1, p2)]
        K, C = matrix(rng), c * matrix(rng)
        m.bushing("e", body1, "b", stiffness=K, damping=C, at1=frames[0], at2=frames[1])


@pytest.mark.parametrize("what", ["spring", "bushing"])
@pytest.mark.parametrize("seed", SEEDS)
def test_power_is_the_loss_of_energy(what: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = two_bodies()
    between(what, m, rng, "a", damped=False)
    q, v = random_state(rng)
    f, V, rate = Floating(m.build())(q, v)
    assert sum(f[b] @ v[b] for b in range(2)) == pytest.approx(-rate, rel=1e-10, abs=1e-12)
    assert V > 1e-3 < abs(rate)


@pytest.mark.parametrize("what", ["spring", "damper", "bushing"])
@pytest.mark.parametrize("seed", SEEDS)
def test_damping_takes_energy(what: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = two_bodies()
    between(what, m, rng, "a", damped=True)
    q, v = random_state(rng)
    f, _, rate = Floating(m.build())(q, v)
    assert sum(f[b] @ v[b] for b in range(2)) + rate < 0


@pytest.mark.parametrize("what", ["spring", "damper", "bushing"])
@pytest.mark.parametrize("seed", SEEDS)
def test_action_is_reaction(what: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    m = two_bodies()
    between(what, m, rng, "a", damped=True)
    q, v = random_state(rng)
    f = Floating(m.build())(q, v)[0]
    assert np.abs(f).max() > 1e-3
    np.testing.assert_allclose(in_ground(q[0], f[0]) + in_ground(q[1], f[1]), np.zeros(6), atol=1e-12)


@pytest.mark.parametrize("what", ["spring", "damper", "bushing"])
def test_ground_is_a_body_at_rest(what: str) -> None:
    """The same element on the ground and on a body that stands at the origin."""
    found = []
    for body1 in ("ground", "a"):
        rng = np.random.default_rng(4)
        m = two_bodies()
        between(what, m, rng, body1, damped=True)
        q, v = random_state(rng)
        q[0], v[0] = np.array([0, 0, 0, 1.0, 0, 0, 0]), np.zeros(6)
        floating = Floating(m.build())
        assert floating.bodies == ({1} if body1 == "ground" else {0, 1})
        found.append(floating(q, v)[0][1])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_spring_by_hand() -> None:
    """Ends 2 m apart along x, parting at 0.5 m/s: tension 10 (2 - 1.5) + 4 * 0.5."""
    m = two_bodies()
    m.spring("s", "a", "b", stiffness=10.0, length=1.5, damping=4.0, at1=(0, 1, 0), at2=(0, 1, 0))
    q, v = at_rest((0, 0, 0), (2, 0, 0))
    v[1][3] = 0.5
    f, V, _ = Floating(m.build())(q, v)
    np.testing.assert_allclose(f, [[0, 0, -7, 7, 0, 0], [0, 0, 7, -7, 0, 0]], atol=1e-12)
    assert pytest.approx(10 * 0.5**2 / 2) == V


@pytest.mark.parametrize("length", [0.0, 0.3])
def test_spring_of_no_length_is_finite(length: float) -> None:
    m = two_bodies()
    m.spring("s", "a", "b", stiffness=10.0, length=length, damping=1.0)
    q, v = at_rest((0.1, 0.2, 0.3), (0.1, 0.2, 0.3))
    v[1][3:] = 1.0, 2.0, 3.0
    f, V, rate = Floating(m.build())(q, v)
    np.testing.assert_array_equal(f, np.zeros((2, 6)))
    assert pytest.approx(10 * length**2 / 2) == V
    assert np.isfinite(rate)


def test_spring_is_linear_where_its_length_is_zero() -> None:
    m = two_bodies()
    m.spring("s", "a", "b", stiffness=10.0, length=0.0)
    f = Floating(m.build())(*at_rest((0, 0, 0), (1e-12, 2e-12, 0)))[0]
    np.testing.assert_allclose(f[0, 3:], [1e-11, 2e-11, 0], rtol=1e-12)


def test_damper_by_hand() -> None:
    """Only the speed along the line counts."""
    m = two_bodies()
    m.damper("d", "a", "b", damping=3.0)
    q, v = at_rest((0, 0, 0), (0, 5, 0))
    v[1][3:] = 7.0, 2.0, 9.0
    np.testing.assert_allclose(Floating(m.build())(q, v)[0][:, 3:], [[0, 6, 0], [0, -6, 0]], atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_bushing_linearises_to_its_stiffness_and_damping(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, C = matrix(rng, symmetric=False), matrix(rng, symmetric=False)
    m = two_bodies()
    m.bushing("e", "a", "b", stiffness=K, damping=C)
    floating = Floating(m.build())
    q, v = at_rest((0, 0, 0), (0, 0, 0))
    np.testing.assert_array_equal(floating(q, v)[0], np.zeros((2, 6)))
    for x in np.eye(6):
        sides = [floating([q[0], FREE.plus(q[1], h * x)], v)[0][1] for h in (1e-6, -1e-6)]
        np.testing.assert_allclose((sides[0] - sides[1]) / 2e-6, -K @ x, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(floating(q, [v[0], x])[0][1], -C @ x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("angle", [1e-9, 0.1, 0.24, 0.26, 2.0, 3.1])
def test_bushing_at_large_angles(angle: float) -> None:
    """The same stiffness about every axis: the moment is stiffness times angle, about the axis of the turn."""
    axis = np.array([2.0, -1.0, 2.0]) / 3
    m = two_bodies()
    m.bushing("e", "a", "b", stiffness=(5, 5, 5, 0, 0, 0))
    q, v = at_rest((0, 0, 0), (0.3, 0.2, 0.1))
    q[1][3:] = np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis])
    f, V, _ = Floating(m.build())(q, v)
    np.testing.assert_allclose(f[1], np.concatenate([-5 * angle * axis, np.zeros(3)]), rtol=1e-12, atol=1e-15)
    assert pytest.approx(5 * angle**2 / 2) == V


@pytest.mark.parametrize("angle", [1e-6, 0.05, 0.2, 0.24, 1.0, 2.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_power_of_a_bushing_is_that_along_the_rate_of_its_displacement(angle: float, seed: int) -> None:
    """`-xdot^T (K x + C xdot)`, with rotation vector and displacement `x` and their rate measured from the motion."""
    rng = np.random.default_rng(seed)
    m, frames = two_bodies(), [cd.Pose(rng.uniform(-1, 1, 3), random_rotation(rng)) for _ in "ab"]
    K, C = matrix(rng), matrix(rng)
    m.bushing("e", "a", "b", stiffness=K, damping=C, at1=frames[0], at2=frames[1])
    q, v = random_state(rng)
    axis = rng.standard_normal(3)
    turn = Rotation.from_rotvec(angle * axis / np.linalg.norm(axis)).as_matrix()
    body2 = pose(q[0])[0] @ frames[0].rotation @ turn @ frames[1].rotation.T
    q[1][3:] = np.roll(Rotation.from_matrix(body2).as_quat(), 1)

    def displacement(t: float) -> np.ndarray:
        (R1, r1), (R2, r2) = (pose(FREE.plus(q[b], t * v[b])) for b in range(2))
        A1, A2 = R1 @ frames[0].rotation, R2 @ frames[1].rotation
        d = A1.T @ (r2 + R2 @ frames[1].position - r1 - R1 @ frames[0].position)
        return np.concatenate([Rotation.from_matrix(A1.T @ A2).as_rotvec(), d])

    h = 1e-3
    x, xdot = (
        displacement(0.0),
        sum(w * displacement(k * h) for k, w in ((-2, 1), (-1, -8), (1, 8), (2, -1))) / (12 * h),
    )
    f = Floating(m.build())(q, v)[0]
    assert sum(f[b] @ v[b] for b in range(2)) == pytest.approx(-xdot @ (K @ x + C @ xdot), rel=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_energy_of_a_bushing_is_that_of_its_symmetric_part(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K = matrix(rng, symmetric=False)
    q, v = random_state(rng)
    energy = []
    for stiffness in (K, (K + K.T) / 2):
        m = two_bodies()
        m.bushing("e", "a", "b", stiffness=stiffness)
        energy.append(Floating(m.build())(q, v)[1])
    assert energy[0] == pytest.approx(energy[1], rel=1e-12)


@pytest.mark.parametrize("axes", ["ground", "body"])
def test_wrench_keeps_its_axes_or_follows(axes: str) -> None:
    rng = np.random.default_rng(2)
    value, p = rng.standard_normal(6), rng.standard_normal(3)
    m = two_bodies()
    m.wrench("w", "b", value, at=p, axes=axes)
    q, v = random_state(rng)
    f = Floating(m.build())(q, v)[0]
    R = pose(q[1])[0] if axes == "ground" else np.eye(3)
    n, force = R.T @ value[:3], R.T @ value[3:]
    np.testing.assert_allclose(f[1], np.concatenate([n + np.cross(p, force), force]), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(f[0], np.zeros(6))


def test_force_of_the_user_is_traced() -> None:
    """A spring between two origins, written by the user, is the spring of the table."""

    def law(t: Any, poses: Any, twists: Any) -> list[Any]:
        d = poses[1].position - poses[0].position
        force = 3.0 * (np.linalg.norm(d) - 0.5) * d / np.linalg.norm(d)
        zero = np.zeros(3)
        return [
            np.concatenate([zero, poses[0].rotation.T @ force]),
            ca.vertcat(zero, -(poses[1].rotation.T @ force)),
        ]

    rng = np.random.default_rng(3)
    q, v = random_state(rng)
    found = []
    for add in (
        lambda m: m.user_force("u", ["a", "b"], law),
        lambda m: m.spring("u", "a", "b", stiffness=3.0, length=0.5),
    ):
        m = two_bodies()
        add(m)
        found.append(Floating(m.build())(q, v)[0])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12, atol=1e-14)


def test_force_of_the_user_sees_time_twist_and_ground() -> None:
    m = two_bodies()
    m.user_force("u", ["ground", "b"], lambda t, poses, twists: [
        np.zeros(6),
        [0, 0, np.sin(t), *(-2 * twists[1][3:] + poses[0].position + poses[0].rotation @ [1, 2, 3] + twists[0][3:]).nz],
    ])  # fmt: skip
    q, v = random_state(np.random.default_rng(0))
    floating = Floating(m.build())
    assert floating.bodies == {1}
    expected = np.concatenate([[0, 0, np.sin(0.7)], -2 * v[1][3:] + [1, 2, 3]])
    np.testing.assert_allclose(floating(q, v, t=0.7)[0][1], expected, rtol=1e-12)


def test_elements_on_one_body_add_up() -> None:
    m = two_bodies()
    m.wrench("w", "b", (0, 0, 0, 1, 0, 0))
    m.wrench("x", "b", (0, 0, 1, 1, 0, 0), axes="body")
    f = Floating(m.build())(*at_rest((0, 0, 0), (0, 0, 0)))[0]
    np.testing.assert_array_equal(f[1], [0, 0, 1, 2, 0, 0])


def along(model: cd.Model, q: Any, v: Any, t: float = 0.0) -> np.ndarray:
    """Force along joint 0."""
    symbols = [ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)]
    tau = joint_forces(SimpleNamespace(model=model, joint=lambda j: symbols[1:]), symbols[0])
    assert set(tau) == {0}
    return ca.Function("tau", symbols, [tau[0]])(t, q, v).full().ravel()


def test_torsion_by_hand() -> None:
    m = one_joint(cd.Cylindrical())
    m.torsion("s", "j", stiffness=(3.0, 5.0), rest=0.5, damping=(0.0, 2.0))
    model = m.build()
    np.testing.assert_allclose(along(model, [1.5, 2.5], [7.0, 1.0]), [-3.0, -12.0], rtol=1e-14)
    V = element_potential(SimpleNamespace(model=model, joint=lambda j: (ca.SX([1.5, 2.5]), None)))
    assert float(V) == pytest.approx(3 / 2 + 5 * 4 / 2)


def test_friction_opposes_motion() -> None:
    m = one_joint(cd.Spherical())
    m.friction("f", "j", viscous=0.5, coulomb=(0.0, 2.0, 3.0), smoothing=1e-2)
    model = m.build()
    q = [1.0, 0, 0, 0]
    dry = np.array([0.0, 2.0, 3.0]) * [1.0, -1.0, 4.0] / np.sqrt(18.0)  # one vector against the motion
    np.testing.assert_allclose(along(model, q, [1.0, -1.0, 4.0]), [-0.5, 0.5, -2.0] - dry, rtol=1e-12)
    np.testing.assert_array_equal(along(model, q, [0.0, 0.0, 0.0]), np.zeros(3))
    slow = along(model, q, [0.0, 1e-2, 0.0])
    assert slow[1] == pytest.approx(-0.5e-2 - 2 * np.tanh(1.0))
    for v in np.random.default_rng(0).standard_normal((20, 3)):
        assert (along(model, q, v) * v < 0).all()


@pytest.mark.parametrize(
    ("kind", "function", "expected"),
    [
        (cd.Revolute(), 4.0, [4.0]),
        (cd.Revolute(), lambda t, q, v: 2.0, [2.0]),
        (cd.Revolute(), lambda t, q, v: np.sin(t) * q - v, [np.sin(0.5) * 0.1 - 1.0]),
        (cd.Cylindrical(), lambda t, q, v: [q[0], t], [0.1, 0.5]),
        (cd.Planar(), lambda t, q, v: -v, [-1.0, -2.0, -3.0]),
        (cd.Planar(), (1.0, 2.0, 3.0), [1.0, 2.0, 3.0]),
    ],
)
def test_drive_is_what_its_function_says(kind: Any, function: Any, expected: list[float]) -> None:
    m = one_joint(kind)
    m.drive("d", "j", function)
    model = m.build()
    np.testing.assert_allclose(along(model, [0.1, 0.2, 0.3][: model.nq], [1.0, 2, 3][: model.nv], t=0.5), expected)


def test_elements_along_one_joint_add_up() -> None:
    m = one_joint(cd.Revolute())
    m.drive("d", "j", 4.0)
    m.torsion("s", "j", stiffness=1.0)
    m.friction("f", "j", viscous=2.0)
    np.testing.assert_allclose(along(m.build(), [0.5], [0.25]), [4 - 0.5 - 0.5])


@pytest.mark.parametrize("kind", TABLE.values(), ids=lambda kind: kind.name)
def test_joint_force_as_a_wrench_has_its_power(kind: Any) -> None:
    rng = np.random.default_rng(1)
    q = kind.plus(np.array(kind.neutral), rng.uniform(-1, 1, kind.nv))
    tau, v = rng.standard_normal((2, kind.nv))
    symbols = [ca.SX.sym("q", kind.nq), ca.SX.sym("tau", kind.nv)]
    f = ca.Function("f", symbols, [dual(as_graph(kind.S(symbols[0]), symbols[0])) @ symbols[1]])(q, tau).full().ravel()
    np.testing.assert_allclose(kind.S(q).T @ f, tau, rtol=1e-12, atol=1e-14)
    assert (kind.S(q) @ v) @ f == pytest.approx(v @ tau, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(
    ("function", "by_hand"),
    [
        (0.7, lambda t: (0.7, 0.0, 0.0)),
        (lambda t: 0.7, lambda t: (0.7, 0.0, 0.0)),
        (lambda t: 2 * np.sin(3 * t), lambda t: (2 * np.sin(3 * t), 6 * np.cos(3 * t), -18 * np.sin(3 * t))),
        (lambda t: t**3 - t, lambda t: (t**3 - t, 3 * t**2 - 1, 6 * t)),
    ],
)
def test_motion_and_its_derivatives(function: Any, by_hand: Callable[[float], tuple[float, ...]]) -> None:
    m = one_joint(cd.Prismatic())
    m.motion("m", "j", function)
    t = ca.SX.sym("t")
    (row,) = m.build().couplings
    assert (row.name, row.joints, row.coefficients.tolist()) == ("m", (0,), [1.0])
    for x in (0.0, 0.3, 1.7):
        found = [float(y) for y in ca.Function("g", [t], list(row.right_side(t)))(x)]
        np.testing.assert_allclose(found, by_hand(x), rtol=1e-12, atol=1e-14)


def test_coupling_is_its_coefficients() -> None:
    m = two_bodies()
    m.body("c", **SOLID)
    m.joint("gear", cd.Revolute(), "a", "c")
    m.body("d", **SOLID)
    m.joint("rack", cd.Prismatic(), "c", "d")
    m.couple("pinion", {"rack": 1.0, "gear": -0.02}, offset=0.1)
    (row,) = m.build().couplings
    assert dict(zip(row.joints, row.coefficients.tolist(), strict=True)) == {3: 1.0, 2: -0.02}
    assert [float(x) for x in row.right_side(ca.SX.sym("t"))] == [0.1, 0.0, 0.0]


def test_every_row_of_the_table_has_one_shape() -> None:
    for name, kind in FORCES.items():
        assert kind.name == name
        assert kind.on in ("bodies", "joint", "joints")
        assert callable(kind.law)
