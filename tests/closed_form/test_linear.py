"""Linear models and modes with closed forms: chains, springs, rotors, a rotating pendulum, a rolling disc."""

from itertools import pairwise

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

X, Y, Z = np.eye(3)
G = 9.81


def heavy_chain(n: int, length: float) -> cd.Model:
    """Equal point masses on massless links, hanging."""
    m = cd.Mechanism("chain")
    for k in range(n):
        m.body(f"link {k}", mass=2.0, com=(0, 0, -length))
        m.joint(
            f"joint {k}",
            cd.Revolute(axis=Y),
            f"link {k - 1}" if k else "ground",
            f"link {k}",
            at=(0, 0, -length * bool(k)),
        )
    return m.build()


@pytest.mark.parametrize("n", [4, 12])
def test_a_heavy_chain_swings_with_zeros_of_a_laguerre_polynomial(n: int) -> None:
    """`w^2 = g x / l` with `L_n(x) = 0`; the long one is linearised by recursions."""
    length = 0.3
    found = cd.modes(heavy_chain(n, length))
    x = np.sort(np.polynomial.laguerre.lagroots([0] * n + [1]))
    w = np.sqrt(x * G / length)
    assert np.allclose(2 * np.pi * found.natural_frequencies, w, rtol=1e-11)
    assert (found.eigenvalues.real == 0).all()
    assert found.stability == "marginal"


def test_masses_and_springs_in_a_row_damped() -> None:
    """Fixed at both ends: `w_k = 2 sqrt(k/m) sin(k pi / 2(n+1))`, each mode damped in proportion; batched over k."""
    n, mass, ratio = 3, 0.5, 0.01
    m = cd.Mechanism("row", gravity=(0, 0, 0))
    names = ["ground", *(f"mass {k}" for k in range(n))]
    for k, name in enumerate(names[1:]):
        m.body(name, mass=mass)
        m.joint(f"slide {k}", cd.Prismatic(axis=X), "ground", name, at=(float(k), 0, 0))
    ends = [*pairwise(names), (names[-1], "ground")]
    for k, (a, b) in enumerate(ends):
        at = (-1.0 if a == "ground" else 0.0, 0, 0), (float(n) if b == "ground" else 0.0, 0, 0)
        m.spring(f"spring {k}", a, b, at1=at[0], at2=at[1], stiffness=1.0, length=1.0, damping=ratio)
    model = m.build().free(*(f"spring {k}.stiffness" for k in range(n + 1)), "spring 1.length")
    stiffness = np.array([20.0, 500.0])
    found = cd.modes(model.at({f"spring {k}.stiffness": stiffness for k in range(n + 1)}))
    shape = np.sin(np.arange(1, n + 1) * np.pi / (2 * (n + 1)))
    w = 2 * np.sqrt(stiffness[:, None] / mass) * shape
    zeta = ratio / stiffness[:, None] * w / 2
    wanted = w * (-zeta + 1j * np.sqrt(1 - zeta**2))
    assert np.allclose(found.eigenvalues[:, ::2], wanted, rtol=1e-11)
    assert np.allclose(found.damping[:, ::2], zeta, rtol=1e-9)
    assert np.allclose(found.participation.sum(axis=-2), 1)
    pull = cd.linearise(model, outputs=["force.spring 1.force x"], inputs=["spring 1.length"])  # on the second mass
    assert np.allclose(pull.C, [1.0, -1.0, 0, ratio, -ratio, 0]) and np.allclose(pull.D, 1.0)
    shares = np.sin(np.arange(1, n + 1) * np.pi / (n + 1)) ** 2
    assert np.allclose(found.participation[0, :, 0], shares / shares.sum())


def test_a_whirling_rotor_splits_its_frequencies() -> None:
    """Tilt of a disc on springs: `It w^2 -+ Ip W w - k = 0`, forward and backward whirl, batched over the speed W."""
    It, Ip, k = 0.2, 0.3, 50.0
    m = cd.Mechanism("rotor", gravity=(0, 0, 0))
    for name in ("gimbal", "shaft"):
        m.body(name, mass=0.0)
    m.body("disc", mass=1.0, inertia=(It, It, Ip))
    m.joint("x", cd.Revolute(axis=X), "ground", "gimbal")
    m.joint("y", cd.Revolute(axis=Y), "gimbal", "shaft")
    m.joint("spin", cd.Revolute(axis=Z), "shaft", "disc")
    for axis in "xy":
        m.torsion(f"spring {axis}", axis, stiffness=k)
    speeds = np.array([0.0, 10.0, 40.0])
    found = cd.modes(m.build(), (np.zeros(3), speeds[:, None] * Z))
    half = Ip * speeds / (2 * It)
    whirl = np.sqrt(half**2 + k / It)
    assert np.allclose(found.eigenvalues[:, :2], 0, atol=1e-7)  # the spin itself
    assert np.allclose(
        found.eigenvalues[:, 2:].imag, np.stack([whirl - half, half - whirl, whirl + half, -whirl - half], 1)
    )
    assert np.allclose(found.eigenvalues[:, 2:].real, 0, atol=1e-12 * whirl.max())


def test_a_rotating_pendulum_loses_its_lower_position() -> None:
    """On an arm that turns with W: about the axis `x'' = (W^2 - g/l) x`, at the other position `-W^2 sin^2`."""
    length, W, t = 0.5, 6.0, 0.7
    m = cd.Mechanism("governor")
    m.body("arm", mass=1.0, inertia=(1, 1, 1))
    m.body("bob", mass=1.3, com=(0, 0, -length))
    m.joint("spin", cd.Revolute(axis=Z), "ground", "arm")
    m.joint("tilt", cd.Revolute(axis=Y), "arm", "bob")
    m.motion("turn", "spin", lambda t: W * t)
    model = m.build()
    out = np.arccos(G / (length * W**2))
    tilt = np.array([0.0, out])
    q = np.stack([np.full(2, W * t), tilt], axis=1)
    found = cd.modes(model, (q, [W, 0.0]), t=t)
    assert np.allclose(found.eigenvalues[:, 0] ** 2, [W**2 - G / length, -((W * np.sin(out)) ** 2)], rtol=1e-12)
    assert list(found.stability) == ["unstable", "marginal"]
    linear = cd.linearise(model, (q[1], [W, 0.0]), t=t, inputs=["turn"], outputs=["a.tilt", "reactions.spin.moment z"])
    # tilt'' = W^2 sin cos - g/l sin, and by the speed 2 W sin cos; the axis turns bob and arm
    assert np.allclose(linear.B, [[0, 0, 0], [0, 2 * W * np.sin(out) * np.cos(out), 0]])
    inertia = 1.0 + 1.3 * (length * np.sin(out)) ** 2
    rate = 2 * 1.3 * length**2 * np.sin(out) * np.cos(out)
    assert np.allclose(linear.C[1], [0, W * rate])
    assert np.allclose(linear.D[1], [0, 0, inertia])


def test_a_rolling_disc_stands_up_above_its_critical_speed() -> None:
    """Constraints on rates: `lambda^2 = 4 g / 5 r - 12 W^2 / 5` of a thin disc, and nothing else that is not zero."""
    r, mass = 0.5, 2.0
    m = cd.Mechanism("disc")
    for name in ("along", "across", "yawed", "leaning"):
        m.body(name, mass=0.0)
    m.body("disc", mass=mass, inertia=mass * r**2 * np.array([0.25, 0.5, 0.25]))
    m.joint("x", cd.Prismatic(axis=X), "ground", "along")
    m.joint("y", cd.Prismatic(axis=Y), "along", "across")
    m.joint("yaw", cd.Revolute(axis=Z), "across", "yawed")
    m.joint("lean", cd.Revolute(axis=X), "yawed", "leaning")
    m.joint("spin", cd.Revolute(axis=Y), "leaning", "disc", at=(0, 0, r))
    for k in range(2):

        def slip(t, poses, twists, k=k):
            R, w, u = poses[0].rotation, twists[0][:3], twists[0][3:]
            return (R @ u + ca.cross(R @ w, -r * poses[1].rotation[:, 2]))[k]

        m.constraint(f"no slip {'xy'[k]}", ["disc", "leaning"], slip)
    model = m.build()
    for W in (1.0, 4.0):
        q, v = cd.assemble(model, None, [W * r, 0, 0, 0, W])
        found = cd.modes(model, (q, v))
        assert found.states == ("q.x", "q.y", "q.yaw", "q.lean", "q.spin", "v.yaw", "v.lean", "v.spin")
        assert np.allclose(found.eigenvalues[:6], 0, atol=1e-7)
        assert np.allclose(found.eigenvalues[6:] ** 2, 4 * G / (5 * r) - 12 * W**2 / 5, rtol=1e-10)
