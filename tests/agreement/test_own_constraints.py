"""Constraints of the user's own, on rates only and on positions, in every formulation and with every integrator."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative", "points")
METHODS: dict[str, dict[str, Any]] = {
    "dormand_prince": {},
    "rk4": {"method": "rk4", "step": 1e-3},
    "euler": {"method": "euler", "step": 2e-5},
    "baumgarte": {"method": cd.DormandPrince(baumgarte=20.0)},
    "gear": {"method": "gear", "rtol": 1e-9, "atol": 1e-11},
    "index1": {"method": cd.Gear(form="index1"), "rtol": 1e-9, "atol": 1e-11},
    "alpha": {"method": cd.Alpha(damping=1.0), "step": 1e-3},
}
MASS, INERTIA, AHEAD = 2.0, 0.3, 0.4  # kg, kg m^2, m: the centre of mass is ahead of the blade


def knife_edge(t: Any, poses: Any, twists: Any) -> Any:
    """The blade at the body's origin does not slip sideways, along its y axis."""
    return twists[0][4]


def sleigh(edges: int = 1) -> cd.Model:
    """Chaplygin's sleigh: a body on a plane with a blade."""
    m = cd.Mechanism("sleigh", gravity=(0, 0, -9.81))
    m.body("sleigh", mass=MASS, com=(AHEAD, 0, 0), inertia=(0.1, 0.25, INERTIA))
    m.joint("ice", cd.Planar(), m.ground, "sleigh")
    for k in range(edges):
        m.constraint(f"edge{k}", "sleigh", knife_edge)
    return m.build()


def exact(u: float, w: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """Position, heading, speed and turning of the sleigh: u' = a w^2, w' = -m a u w / (I + m a^2)."""
    k = MASS * AHEAD / (INERTIA + MASS * AHEAD**2)

    def rates(t: float, y: np.ndarray) -> list[float]:
        _, _, heading, speed, turning = y
        return [
            speed * np.cos(heading), speed * np.sin(heading), turning, AHEAD * turning**2, -k * speed * turning,
        ]  # fmt: skip

    y = solve_ivp(rates, (0, end), [0, 0, 0.3, u, w], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return y[:3], y[3:]


def start(u: float, w: float) -> tuple[np.ndarray, np.ndarray]:
    return np.array([0.0, 0.0, 0.3]), np.array([u * np.cos(0.3), u * np.sin(0.3), w])


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("method", METHODS)
def test_a_knife_edge_moves_as_chaplygin_says(formulation: str, method: str) -> None:
    if method in ("euler", "baumgarte", "index1") and formulation not in ("spatial", "absolute"):
        pytest.skip("the method does not see the formulation but through its equations, tried in two")
    model = sleigh()
    q, v = start(0.8, 1.5)
    run = cd.simulate(model, 1.0, q, v, formulation=formulation, samples=11, **METHODS[method])
    pose, (u, w) = exact(0.8, 1.5, 1.0)
    tolerance = {"euler": 1e-4, "alpha": 1e-5}.get(method, 1e-7)
    assert np.abs(run.q[-1] - pose).max() < tolerance
    heading = run.q[-1, 2]
    assert np.abs(run.v[-1] - [u * np.cos(heading), u * np.sin(heading), w]).max() < 3 * tolerance
    slip = -np.sin(run.q[:, 2]) * run.v[:, 0] + np.cos(run.q[:, 2]) * run.v[:, 1]
    assert np.abs(slip).max() < (1e-5 if method == "baumgarte" else 1e-10)
    assert np.abs(run.energy - run.energy[0]).max() < 50 * tolerance


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_force_on_a_knife_edge(formulation: str) -> None:
    model = sleigh()
    q, v = start(0.8, 1.5)
    a = cd.forward_dynamics(model, q, v, formulation=formulation)
    turning = -MASS * AHEAD * 0.8 * 1.5 / (INERTIA + MASS * AHEAD**2)
    assert np.isclose(a[2], turning, rtol=1e-12)
    rows = cd.equations(model, formulation=formulation).rows
    lam = cd.multipliers(model, q, v, formulation=formulation)
    assert rows[-1].level == "rate" and rows[-1].owner == "constraint 'edge0'" and rows[-1].force_unit == "N"
    assert np.isclose(-lam[-1], MASS * (AHEAD * turning + 0.8 * 1.5), rtol=1e-10)  # sideways acceleration of the mass
    weight = cd.reactions(model, q, v, formulation=formulation)[0]
    if formulation != "points":  # which knows the plane alone
        assert np.isclose(weight[5], MASS * 9.81, rtol=1e-12)
    assert np.abs(weight[[2, 3, 4]]).max() < 1e-10  # the plane itself has no friction


def test_a_knife_edge_in_assembly_redundancy_and_residual() -> None:
    model = sleigh()
    q = np.array([0.5, -0.2, 0.3])
    found_q, found_v = cd.assemble(model, q, [1.0, 0.0, 0.7])
    assert np.array_equal(found_q, q)  # a constraint on rates leaves positions alone
    J = cd.constraint_jacobian(model, q)
    assert np.abs(J @ found_v).max() < 1e-14 and np.isclose(found_v[2], 0.7)
    assert np.array_equal(cd.constraint_residual(model, q), [0.0])
    found = cd.redundancy(model)
    assert (found.rows, found.rank, found.freedoms) == (1, 1, 2)
    with pytest.raises(cd.InputError, match="velocities at the start violate constraint 'edge0'"):
        cd.simulate(model, 1.0, q, [1.0, 0.0, 0.7])
    twice = sleigh(2)
    found = cd.redundancy(twice)
    assert found.groups == (("edge0", "edge1"),) and found.freedoms == 2
    q, v = start(0.8, 1.5)
    for formulation in FORMULATIONS:
        a = cd.forward_dynamics(twice, q, v, formulation=formulation)
        assert np.allclose(a, cd.forward_dynamics(model, q, v), rtol=1e-10)
    assert "edge0" in model.report() and "rate" in repr(model.rows)


def test_multistep_methods_of_trees_refuse_it() -> None:
    with pytest.raises(cd.LoopError, match="constraint 'edge0'"):
        cd.simulate(sleigh(), 1.0, *start(0.8, 1.5), method="bdf")


def length(t: Any, poses: Any, twists: Any) -> Any:
    return ca.norm_2(poses[0].position) - 1.5


def tied() -> cd.Model:
    """A floating body whose origin a constraint keeps at a distance from the ground's."""
    m = cd.Mechanism("tied", gravity=(0, 0, -9.81))
    m.body("bob", mass=2.0, inertia=(0.1, 0.2, 0.15))
    m.joint("float", cd.Free(), m.ground, "bob", start=(0, 0, -1.5, 1, 0, 0, 0))
    m.constraint("rope", ["bob"], length)
    return m.build()


def hung() -> cd.Model:
    """The same by joints: a massless rod between two ball joints."""
    m = cd.Mechanism("hung", gravity=(0, 0, -9.81))
    m.body("rod")
    m.body("bob", mass=2.0, inertia=(0.1, 0.2, 0.15))
    m.joint("top", cd.Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)), m.ground, "rod")
    m.joint("end", cd.Spherical(), "rod", "bob", at=(0, 0, -1.5))
    return m.build()


@pytest.mark.parametrize("formulation", FORMULATIONS[:5])
@pytest.mark.parametrize("method", ["dormand_prince", "gear", "alpha"])
def test_a_constraint_on_positions_is_a_rod_without_mass(formulation: str, method: str) -> None:
    rod, rope = hung(), tied()
    q0, v0 = np.array([0.4, -0.2, 1, 0, 0, 0]), np.array([0.3, 1.0, 0.2, -0.5, 0.7])
    pose, twist = cd.body_poses(rod, q0)[1], cd.body_twists(rod, q0, v0)[1]
    q = np.concatenate([pose[:3, 3], cd.textbook.quaternion_of_rotation(pose[:3, :3])])
    assert np.abs(cd.constraint_residual(rope, q)).max() < 1e-15
    run = cd.simulate(rope, 0.6, q, twist, formulation=formulation, samples=3, **METHODS[method])
    truth = cd.simulate(rod, 0.6, q0, v0, samples=3, rtol=1e-11, atol=1e-13)
    assert np.abs(run.position("bob") - truth.position("bob")).max() < (1e-5 if method == "alpha" else 1e-6)
    assert np.abs(cd.constraint_residual(rope, run.q)).max() < 1e-12


def test_what_is_no_constraint_is_refused() -> None:
    def build(function: Any) -> None:
        m = cd.Mechanism("wrong")
        m.body("b", mass=1.0, inertia=(1, 1, 1))
        m.joint("j", cd.Free(), m.ground, "b")
        m.constraint("c", ["b"], function)
        m.build()

    with pytest.raises(cd.ModelError, match="constraint 'c': it must be affine in the twists"):
        build(lambda t, poses, twists: ca.sumsqr(twists[0]))
    with pytest.raises(cd.ModelError, match="constraint 'c': it depends on no pose"):
        build(lambda t, poses, twists: t)
    with pytest.raises(cd.ModelError, match="constraint 'c': its function must return a number"):
        build(lambda t, poses, twists: poses[0].position)
