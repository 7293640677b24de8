"""The benchmark bicycle: rolling wheels with knife edges, linearised at speed, against published numbers.

J. P. Meijaard, J. M. Papadopoulos, A. Ruina, A. L. Schwab: "Linearized dynamics equations for the balance and steer of
a bicycle: a benchmark and review", Proceedings of the Royal Society A 463 (2007), 1955-1982: parameters (table 1), the
matrices of `M q'' + v C1 q' + (g K0 + v^2 K2) q = 0` in lean and steer, and eigenvalues (table 2).
"""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

G = 9.81
M = np.array([[80.81722, 2.31941332208709], [2.31941332208709, 0.29784188199686]])
K0 = np.array([[-80.95, -2.59951685249872], [-2.59951685249872, -0.80329488458618]])
K2 = np.array([[0.0, 76.59734589573222], [0.0, 2.65431523794604]])
C1 = np.array([[0.0, 33.86641391492494], [-0.85035641456978, 1.68540397397560]])
WEAVE, CAPSIZE = 4.29238253634111, 6.02426201538837  # m/s: between them it rides upright by itself


def bicycle() -> cd.Mechanism:
    """Table 1, with z up and y to the left: the products of inertia Ixz have the other sign."""
    base, trail, tilt, rear, front = 1.02, 0.08, np.pi / 10, 0.3, 0.35
    m = cd.Mechanism("bicycle", gravity=(0, 0, -G))
    m.body("frame", mass=85.0, com=(0.3, 0, 0.9), inertia=(9.2, 11.0, 2.8, 0, -2.4, 0))
    m.body("rear wheel", mass=2.0, inertia=(0.0603, 0.12, 0.0603))
    m.body("fork", mass=4.0, com=(0.9, 0, 0.7), inertia=(0.05892, 0.06, 0.00708, 0, 0.00756, 0))
    m.body("front wheel", mass=3.0, inertia=(0.1405, 0.28, 0.1405))
    axis, foot = (np.sin(tilt), 0, -np.cos(tilt)), (base + trail, 0, 0)
    m.joint("float", cd.Free(), m.ground, "frame")
    m.joint("rear", cd.Revolute(axis=(0, 1, 0)), "frame", "rear wheel", at=(0, 0, rear))
    m.joint("steer", cd.Revolute(axis=axis), "frame", "fork", at=foot, child_at=foot)
    m.joint("front", cd.Revolute(axis=(0, 1, 0)), "fork", "front wheel", at=(base, 0, front))
    m.roll("rear contact", "rear wheel", m.ground, radius=rear, axis=(0, 1, 0))
    m.roll("front contact", "front wheel", m.ground, radius=front, axis=(0, 1, 0))
    return m


def riding(model: cd.Model, speed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Straight ahead at these speeds (n,): q (n, nq), v (n, nv)."""
    rates = np.zeros((len(speed), model.nv))
    for joint, place, radius in (("float", 3, 1.0), ("rear", 0, 0.3), ("front", 0, 0.35)):
        rates[:, model.v_slice(joint).start + place] = speed / radius
    q = np.broadcast_to(model.start(), (len(speed), model.nq))
    assert np.abs(cd.constraint_residual(model, q)).max() < 1e-15
    assert np.abs(np.einsum("nij,nj->ni", cd.constraint_jacobian(model, q), rates)).max() < 1e-14
    return q, rates


def test_eigenvalues_of_the_ride_are_the_published_ones() -> None:
    model, speed = bicycle().build(), np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0])
    found = cd.modes(model, *riding(model, speed)).eigenvalues
    assert np.abs(found[:, :6]).max() < 1e-5  # place, heading, wheels and speed: a double zero has the root of rounding
    found = np.sort_complex(found[:, 6:])
    for v, ours in zip(speed, found, strict=True):
        A = np.block(
            [[np.zeros((2, 2)), np.eye(2)], [-np.linalg.solve(M, G * K0 + v**2 * K2), -np.linalg.solve(M, v * C1)]]
        )
        np.testing.assert_allclose(ours, np.sort_complex(np.linalg.eigvals(A)), rtol=1e-11, atol=1e-11)
    at_rest = [-5.53094371765393, -3.13164324790656, 3.13164324790656, 5.53094371765393]
    np.testing.assert_allclose(found[0], at_rest, rtol=1e-12)
    weave = -0.77534188219585 + 4.46486771378823j
    at_five = [-14.07838969279822, weave.conjugate(), weave, -0.32286642900409]
    np.testing.assert_allclose(found[5], at_five, rtol=1e-12)
    near = np.array([WEAVE - 1e-6, WEAVE + 1e-6, CAPSIZE - 1e-6, CAPSIZE + 1e-6])
    growth = cd.modes(model, *riding(model, near)).eigenvalues[:, 6:].real.max(axis=1)
    assert (np.sign(growth) == [1, -1, -1, 1]).all()
