"""Closed loops against published problems: Andrews' mechanism, SUNDIALS' slider-crank, the N four-bars of IFToMM.

Here at single states, without integration; sources and trust of the numbers are in the data files.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.functions.constraints import constraint_jacobian, constraint_residual, reactions

DATA = Path(__file__).parent / "data"
FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative")


def read(name: str) -> dict[str, Any]:
    return json.loads((DATA / name).read_text())


ANDREWS = read("andrews.json")
STATES = {  # relative bounds of positions, rates, accelerations and multipliers: the trust of the digits
    "initial": (1e-12, 1e-12, 1e-12),
    "refined_t003": (1e-12, 1e-10, 1e-10),
    "published_t003": (1e-9, 1e-6, 1e-5),
}


def andrews_state(model: cd.Model, name: str, what: str) -> np.ndarray:
    """The test set's numbers in the order of the model's coordinates, which are the same angles."""
    return np.array([ANDREWS[name][what][ANDREWS["order"].index(joint)] for joint in model.coordinate_names])


def near(a: np.ndarray, b: np.ndarray, bound: float) -> None:
    error = np.abs(np.asarray(a) - b).max() / np.abs(b).max()
    assert error < bound, f"differ by {error:.3g} of the largest"


def test_andrews_starts_at_the_reference() -> None:
    model = mechanisms.andrews().build()
    assert np.array_equal(model.start(), andrews_state(model, "initial", "q"))


@pytest.mark.parametrize("name", STATES)
def test_andrews_loops_are_closed_at_the_reference(name: str) -> None:
    model = mechanisms.andrews().build()
    q, v = andrews_state(model, name, "q"), andrews_state(model, name, "qd")
    position, rate, _ = STATES[name]
    assert np.abs(constraint_residual(model, q)).max() < position
    assert np.abs(constraint_jacobian(model, q) @ v).max() <= rate * max(1, np.abs(v).max())


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", STATES)
def test_andrews_accelerations_and_multipliers_are_the_reference(name: str, formulation: str) -> None:
    """The joint in E acts on K2 with `-lambda` in ground axes; the reaction is in the axes of K2."""
    model = mechanisms.andrews().build()
    q, v, a = (andrews_state(model, name, what) for what in ("q", "qd", "qdd"))
    options = {"formulation": formulation}
    near(cd.forward_dynamics(model, q, v, **options), a, STATES[name][2])
    wrenches = reactions(model, q, v, **options)
    R = cd.frame_pose(model, q, "K2")[:3, :3]
    forces = [R @ wrenches[model.joint_names.index(joint), 3:] for joint in ("E3", "E4", "E6")]
    near(-np.array(forces)[:, :2].ravel(), np.array(ANDREWS[name]["lambda"]), STATES[name][2])


SLIDER_CRANK = read("sundials_slider_crank.json")


def slider_crank_accelerations(q: float, x: float, p: float, rates: np.ndarray) -> np.ndarray:
    """The example's own equations, solved for (q'', x'', p'')."""
    names = ("a", "J1", "m2", "J2", "k", "c", "l0", "F")
    a, J1, m2, J2, k, c, l0, F = (SLIDER_CRANK["equations"]["parameters"][name] for name in names)
    sq, cq, sp, cp = np.sin(q), np.cos(q), np.sin(p), np.cos(p)
    l = np.sqrt(x * x - x * (cp + a * cq) + (1 + a * a) / 4 + a * np.cos(p - q) / 2)
    dl = np.array([a * (np.sin(p - q) / 2 + x * sq), 2 * x - cp - a * cq, x * sp - a * np.sin(p - q) / 2]) / (2 * l)
    Q = -(k * (l - l0) + c * dl @ rates) * dl + np.array([0, F, -F * sp])
    G = np.array([[a * sq, 1, sp], [-a * cq, 0, -cp]])
    w, _, u = rates
    Gdot = np.array([[a * cq * w, 0, cp * u], [a * sq * w, 0, sp * u]])
    K = np.block([[np.diag([J1, m2, J2]).astype(float), G.T], [G, np.zeros((2, 2))]])
    return np.linalg.solve(K, np.concatenate([Q, -Gdot @ rates]))[:3]


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_slider_crank_accelerates_as_in_SUNDIALS(formulation: str) -> None:
    model = mechanisms.sundials_slider_crank().build()
    crank, pin, guide = (model.v_slice(joint).start for joint in ("crank", "pin", "guide"))
    for _, q, x, p, qd, xd, pd in SLIDER_CRANK["t_q_x_p_qd_xd_pd"]:
        state, v = np.zeros(3), np.zeros(3)
        state[[crank, pin, guide]] = q, p - q, x
        v[[crank, pin, guide]] = qd, pd - qd, xd
        assert np.abs(constraint_residual(model, state)).max() < 1e-14
        assert np.abs(constraint_jacobian(model, state) @ v).max() < 1e-14
        a = cd.forward_dynamics(model, state, v, formulation=formulation)
        found = np.array([a[crank], a[guide], a[crank] + a[pin]])
        near(found, slider_crank_accelerations(q, x, p, np.array([qd, xd, pd])), 1e-12)


def test_slider_crank_starts_at_the_reference() -> None:
    model = mechanisms.sundials_slider_crank().build()
    _, q, x, p, *_ = SLIDER_CRANK["t_q_x_p_qd_xd_pd"][0]
    for joint, value in (("crank", q), ("pin", p - q), ("guide", x)):
        assert abs(model.start()[model.q_slice(joint)][0] - value) < 1e-15


N_FOUR_BAR = read("n_four_bar.json")
TOP = (0, 1, 0, 1)  # of an upright rod, homogeneous


def windows(n: int) -> tuple[cd.Model, np.ndarray, np.ndarray, np.ndarray]:
    """The model with n windows, the way (nv,) that its coordinates go together, and th, th' of the exact solution."""
    model = mechanisms.n_four_bar(n).build()
    together = np.array([1.0 if name.startswith("A") else -1.0 for name in model.coordinate_names])
    _, x, y, vx, vy = np.array(N_FOUR_BAR["t_B0x_B0y_vx_vy"][str(n)]).T
    return model, together, np.arctan2(x, y), vx * y - vy * x


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_n_four_bar_accelerates_as_the_exact_solution(formulation: str) -> None:
    n = 2
    model, together, th, w = windows(n)
    c = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    a = cd.forward_dynamics(model, th[:, None] * together, w[:, None] * together, formulation=formulation)
    near(a, (c * np.sin(th))[:, None] * together, 1e-11)


@pytest.mark.parametrize("n", [2, 40])
def test_n_four_bar_keeps_its_energy_along_the_exact_solution(n: int) -> None:
    model, together, th, w = windows(n)
    q, v = th[:, None] * together, w[:, None] * together
    ends = [
        cd.frame_pose(model, q, body) @ tip for body, tip in ((f"level{n - 1}", (1, 0, 0, 1)), (f"upright{n}", TOP))
    ]
    near(ends[0], ends[1], 1e-14)
    energy = cd.kinetic_energy(model, q, v) + cd.potential_energy(model, q)
    start = (n + 1) / 6 + n / 2 + 9.81 * ((n + 1) / 2 + n)
    near(energy, np.full(len(th), start), 1e-13)
    corner = cd.frame_pose(model, q, "upright0") @ TOP
    near(corner[:, :2], np.array(N_FOUR_BAR["t_B0x_B0y_vx_vy"][str(n)])[:, 1:3], 1e-14)
