"""What derivatives must satisfy whatever the mechanism: gradients of energies, Christoffel symbols, twists, power."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

from ..trees import close, state, tree_mechanism, tree_model

pytestmark = pytest.mark.usefixtures("quick_code")


@cache
def linkage() -> cd.Model:
    """A four-bar with a spring, a damper and a drive that depends on time."""
    m = mechanisms.four_bar()
    m.spring("spring", "crank", "rocker", stiffness=30.0, length=0.4, at1=(0.1, 0.05, 0), at2=(0.2, 0, 0))
    m.friction("loss", "A", viscous=0.3)
    m.drive("drive", "D", lambda t, q, v: 2 * np.sin(3 * t) * q[0])
    return m.build()


def test_the_change_of_M_is_twice_the_symmetric_part_of_the_coriolis_matrix() -> None:
    """`dM/dq v = C + C^T` with every kind of joint, also where rates are no coordinates."""
    model = tree_model(1, 3)
    q, v, _, _ = state(model, 2, 3)
    change = np.einsum("bijk,bk->bij", cd.mass_matrix(model, q, by="q")["q"], v)
    C = cd.coriolis_matrix(model, q, v)
    close(change, C + np.swapaxes(C, -1, -2), 1e-12)


def test_velocity_forces_are_those_of_christoffel_symbols() -> None:
    """Of `dM/dq` by the numbers in q: `C_ij = sum_k (M_ij,k + M_ik,j - M_jk,i) v_k / 2`."""
    m = tree_mechanism(5, 3, ("revolute", "prismatic", "screw", "cylindrical"))
    model = m.build()
    q, v, _, _ = state(model, 3, 2)
    D = cd.mass_matrix(model, q, by="q", chart="coordinates")["q"]
    symbols = (D + np.swapaxes(D, -1, -2) - np.einsum("bjki->bijk", D)) / 2
    close(np.einsum("bijk,bj,bk->bi", symbols, v, v), cd.bias_force(model, q, v) - cd.gravity_force(model, q), 1e-12)


def test_energies_have_the_forces_as_gradients() -> None:
    """`dT/dv = M v`, `dV/dq` is what holds the tree at rest; with a spring it is inverse dynamics at rest."""
    model = tree_model(1, 3)
    q, v, _, _ = state(model, 4, 3)
    by_v = cd.kinetic_energy(model, q, v, by="v")["v"]
    close(by_v, (cd.mass_matrix(model, q) @ v[..., None])[..., 0], 1e-12)
    close(cd.potential_energy(model, q, by="q")["q"], cd.gravity_force(model, q), 1e-12)
    m = mechanisms.double_pendulum()
    m.spring("spring", m.ground, m.bodies[-1].name, stiffness=40.0, length=0.3)
    sprung = m.build()
    q, still = np.array([0.4, -0.9]), np.zeros(2)
    close(cd.potential_energy(sprung, q, by="q")["q"], cd.inverse_dynamics(sprung, q, still, still), 1e-12)


def test_the_energy_of_a_loop_changes_by_the_power_that_enters() -> None:
    """`dT/dq v + dT/dv a + dV/dq v` with dissipation and a drive, at a consistent state, in two formulations."""
    model = linkage()
    q, v = cd.assemble(model, model.start(), np.ones(model.nv))
    tau, t = np.array([0.4, 0.0, -0.3]), 0.7
    for formulation in ("spatial", "absolute"):
        a = cd.forward_dynamics(model, q, v, tau, t=t, formulation=formulation)
        _, T_q, T_v = cd.kinetic_energy(model, q, v, by=("q", "v"), formulation=formulation)
        V_q = cd.potential_energy(model, q, by="q")["q"]
        close(T_q @ v + T_v @ a + V_q @ v, cd.power(model, q, v, tau, t=t), 1e-11)


def test_poses_turn_and_move_as_twists_say() -> None:
    """`X^-1 dX/dq_k` is column k of the Jacobian as a matrix, and `J v` by `v` is `J`."""
    model = tree_model(1, 3)
    q, v, _, _ = state(model, 6)
    X, X_q = cd.frame_pose(model, q, "tool", by="q")
    J = cd.jacobian(model, q, "tool")
    for k in range(model.nv):
        w, moved = J[:3, k], np.linalg.solve(X, X_q[..., k])
        close(moved[:3, :3], np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]), 1e-12)
        close(moved[:3, 3], J[3:, k], 1e-12)
    close(cd.body_twists(model, q, v, by="v")["v"][-1], cd.jacobian(model, q, model.body_names[-1]), 1e-12)


def test_rows_are_the_derivative_of_the_residual_where_loops_are_closed() -> None:
    model = linkage()
    q = cd.assemble(model, model.start())[0]
    phi, phi_q = cd.constraint_residual(model, q, by="q")
    close(phi, np.zeros_like(phi), 1e-10)
    close(phi_q, cd.constraint_jacobian(model, q), 1e-9)


def test_second_derivatives_of_a_loop_are_those_of_its_gradients() -> None:
    """Forward over reverse: `H d` is the change of the gradient along `d`, by state and drives."""
    model = mechanisms.four_bar().build()
    q, v = cd.assemble(model, model.start(), np.ones(3))
    rng = np.random.default_rng(5)
    names, at, w = ("q", "v", "tau"), {"q": q, "v": v, "tau": np.array([0.3, 0.1, -0.2])}, rng.normal(size=3)
    H = cd.weighted_hessian(model, "forward_dynamics", at, w, by=names)
    d, h = rng.normal(size=9), 1e-3

    def gradient(s: float) -> np.ndarray:
        moved = {name: x + s * d[3 * k : 3 * k + 3] for k, (name, x) in enumerate(at.items())}
        return np.concatenate([*cd.vjp(model, "forward_dynamics", moved, w, by=names)[1].values()])

    weights = {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    close(H @ d, sum(c * (gradient(n * h) - gradient(-n * h)) for n, c in weights.items()) / h, 1e-8)


def test_time_moves_the_drives() -> None:
    """By `t`: accelerations, power, and drives of a loop, by differences of the sixth order."""
    model, driven = linkage(), ["A"]
    q, v = cd.assemble(model, model.start(), np.ones(model.nv))
    t, h, weights = 0.7, 1e-3, {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    a = cd.forward_dynamics(model, q, v, t=t)
    for call in (
        lambda **x: cd.forward_dynamics(model, q, v, **x),
        lambda **x: cd.power(model, q, v, **x),
        lambda **x: cd.inverse_dynamics(model, q, v, a, driven=driven, **x),
    ):
        found = call(t=t, by="t")
        assert found["t"].shape == found.value.shape and np.abs(found["t"]).max() > 0.05
        close(found["t"], sum(c * (call(t=t + n * h) - call(t=t - n * h)) for n, c in weights.items()) / h, 1e-9)
