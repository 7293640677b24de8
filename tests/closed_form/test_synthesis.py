"""Synthesis, balancing and sensitivities against closed forms."""

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import four_bar, slider_crank

LENGTHS = {"B.at": "x", "C.at": "x", "C.child_at": "x", "D.at": "x"}
BAR = four_bar().build()
FREE = BAR.free(*LENGTHS)


def _turned(model: cd.Model, angles: np.ndarray) -> np.ndarray:
    """Configurations of a four-bar at crank angles, on one branch."""
    q = cd.assemble(model)[0]
    found = []
    for angle in (*np.linspace(q[0], angles[0], 3), *np.linspace(angles[0], angles[-1], 3 * len(angles) - 2)):
        q = cd.assemble(model, [angle, *q[1:]], hold="A")[0]
        found.append(q)
    return np.array(found[3::3])


def test_freudenstein_s_three_points():
    # K1 cos psi - K2 cos phi + K3 = cos(phi - psi), Freudenstein, Trans. ASME 77 (1955) 853-861
    x = np.array([1.067, 1.5, 1.933])
    phi, psi = np.radians(30 + 60 * (x - 1)), np.radians(240 + 90 * np.log2(x))
    K = np.linalg.solve(np.stack([np.cos(psi), -np.cos(phi), np.ones(3)], axis=1), np.cos(phi - psi))
    crank, rocker = 1 / K[0], 1 / K[1]
    coupler = np.sqrt(crank**2 + rocker**2 + 1 - 2 * crank * rocker * K[2])
    held = {"D.at": ([1, 0, 0], [1, 0, 0])}
    found = cd.synthesise(FREE, output={"D": psi}, input="A", at=phi, along=LENGTHS, bounds=held, starts=12)
    lengths = [abs(found.values[name][0]) for name in ("B.at", "C.at", "C.child_at")]
    np.testing.assert_allclose(lengths, [abs(crank), coupler, abs(rocker)], rtol=1e-9)
    assert not found.best.defect and found.best.angle_error.max() < 1e-12
    curve, asked = found.plot().axes[0].lines
    at = [np.abs(curve.get_xdata() - x).argmin() for x in asked.get_xdata()]
    np.testing.assert_allclose(curve.get_ydata()[at], asked.get_ydata(), atol=1.0)  # deg, of the same turn
    q = cd.assemble(found.model)[0]  # the new model is put together at the first position
    np.testing.assert_allclose(np.cos(q[[0, 2]] - [phi[0], psi[0]]), 1, atol=1e-12)


def test_a_coupler_curve_is_recovered_within_limits():
    true = four_bar(base=1.0, crank=0.35, coupler=0.8, rocker=0.75).build()
    angles = np.linspace(0.3, 5.5, 9)
    pose = cd.frame_pose(true, _turned(true, angles), "coupler")
    point = np.array([0.5, 0.3, 0])
    target = cd.Target("coupler", position=pose[:, :3, 3] + pose[:, :3, :3] @ point, along="xy")
    asked = {
        "input": "A", "at": angles, "free_point": True, "along": LENGTHS, "motion": "turn", "starts": 2,
        "bounds": dict.fromkeys(LENGTHS, (0.1, 2.0)), "grashof": "crank-rocker",
    }  # fmt: skip
    found = cd.synthesise(FREE, target, transmission={("coupler", "rocker"): np.radians(30)}, **asked)
    np.testing.assert_allclose([found.values[name][0] for name in LENGTHS], [0.35, 0.8, 0.75, 1.0], rtol=1e-9)
    np.testing.assert_allclose(found.best.points[0], point, atol=1e-9)
    # a limit that the true linkage breaks is kept, and is active
    found = cd.synthesise(FREE, target, transmission={("coupler", "rocker"): np.radians(60)}, **asked)
    angle = cd.transmission_angle(found.model, _turned(found.model, np.linspace(0.0, 6.28, 19)), "coupler", "rocker")
    away = np.degrees(np.minimum(angle, np.pi - angle).min())
    assert 59.8 < away < 60.3 and found.best.rms > 1e-3
    lengths = np.array([found.values[name][0] for name in LENGTHS])
    assert lengths[0] + lengths[1:].max() <= lengths[1:].sum() - lengths[1:].max() + 1e-6
    _require_derivatives(found)


def _require_derivatives(found: cd.Synthesis) -> None:
    """The rows of the search against differences, by unknowns and by coordinates."""
    problem, u, q = found.problem.at(list(range(9))), found.best.unknowns[None], found.best.q[None]
    rows, h = problem.evaluate(u, q), 1e-5
    values = lambda r: [r.phi.value, r.e.value, r.g.value]
    for k in range(u.shape[-1]):
        step = h * np.eye(u.shape[-1])[k]
        high, low = problem.evaluate(u + step, q), problem.evaluate(u - step, q)
        for own, a, b in zip((rows.phi, rows.e, rows.g), values(high), values(low), strict=True):
            np.testing.assert_allclose(own.u[..., k], (a - b) / (2 * h), atol=2e-8)
        np.testing.assert_allclose(rows.g0_u[..., k], (high.g0 - low.g0) / (2 * h), atol=1e-9)
    for k in range(q.shape[-1]):
        step = h * np.eye(q.shape[-1])[k]
        high, low = problem.evaluate(u, q + step), problem.evaluate(u, q - step)
        for own, a, b in zip((rows.phi, rows.e, rows.g), values(high), values(low), strict=True):
            np.testing.assert_allclose(own.q[..., k], (a - b) / (2 * h), atol=2e-8)


def test_five_poses_of_burmester():
    true = four_bar(base=1.0, crank=0.35, coupler=0.8, rocker=0.75).build()
    poses = cd.frame_pose(true, _turned(true, np.linspace(0.3, 5.5, 5)), "coupler")
    pivots = BAR.free("A.at", "B.at", "B.child_at", "C.at", "C.child_at", "D.at")
    found = cd.synthesise(
        pivots, cd.Target("coupler", pose=poses), input="A", along={"B.at": "x", "C.child_at": "x"}, starts=5
    )
    assert found.unknowns == found.equations == 15
    assert min(s.rms for s in found.solutions) < 1e-12


def test_force_balance_of_a_four_bar_is_berkof_s_and_lowen_s():
    # uniform bars: half of the coupler's mass counts at B, half at C
    found = cd.balance(BAR, shaking="force", counterweights={"crank": 2.0, "rocker": 3.0})
    mass = {b.name: b.mass for b in BAR.bodies}
    moments = {"crank": (mass["crank"] + mass["coupler"]) * 0.2, "rocker": (mass["rocker"] + mass["coupler"]) * 0.35}
    for body, moment in moments.items():
        weight = found.counterweights[body]
        np.testing.assert_allclose(weight.mass * weight.position, [-moment, 0, 0], atol=1e-12)
    v, a = cd.steady_motion(found.model, found.q, "A", 10.0)
    force = np.abs(cd.shaking_wrench(found.model, found.q, v, a)[:, 3:]).max()
    assert found.before["force"] > 0.5 and force < 1e-10  # 190 N without


def test_counterweights_stay_in_a_plane_that_is_not_along_the_axes():
    m = cd.Mechanism("arm")
    m.body("arm", mass=2.0, com=(0.5, 0.1, 0.1), inertia=(0.1, 0.1, 0.1))
    m.joint("A", cd.Revolute(axis=(0, 1, 1)), m.ground, "arm")
    found = cd.balance(m.build(), shaking="force", counterweights={"arm": 4.0})
    np.testing.assert_allclose(found.counterweights["arm"].position, [-0.25, 0.1, 0.1], atol=1e-12)
    assert np.isclose(found.before["force"], 2.0 * 0.5)  # a length, whatever the axes


def test_a_spring_without_free_length_bears_an_arm():
    m = cd.Mechanism("arm", gravity=(0, -9.81, 0))
    m.body("arm", mass=2.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "arm")
    m.spring("spring", m.ground, "arm", at1=(0, 0.3, 0), at2=(0.4, 0, 0), stiffness=50.0, length=0.05)
    found = cd.balance(m.build().free("spring.stiffness", "spring.length"), gravity=True)
    np.testing.assert_allclose(found.values["spring.stiffness"], 2 * 9.81 * 0.5 / (0.3 * 0.4), rtol=1e-12)
    assert found.values["spring.length"] == 0.0
    assert found.before["gravity"] > 1 and np.abs(cd.forward_dynamics(found.model, found.q, 0 * found.q)).max() < 1e-12


def test_samples_of_a_linkage_agree_with_its_derivative():
    q = cd.assemble(BAR)[0]
    tolerances = {"B.at[0]": cd.uniform(0.3999, 0.4001), "D.at[0]": cd.uniform(0.9998, 1.0002)}
    found = cd.sweep(BAR, tolerances | {"A": float(q[0])}, run=lambda m, q: {"rocker": q[:, 2]}, samples=1024)
    slope = cd.plus(FREE, q, np.zeros(3), by="parameters", chart="independent: A")["parameters"][2]
    at = [FREE.parameters.slice_of(name).start for name in ("B.at", "D.at")]
    linear = q[2] + (found.design.values[:, :2] - [0.4, 1.0]) @ slope[at]
    np.testing.assert_allclose(found["rocker"], linear, atol=1e-7)
    np.testing.assert_allclose(found["rocker"].std(), np.hypot(*(slope[at] * [1e-4, 2e-4])) / np.sqrt(3), rtol=1e-2)
    np.testing.assert_allclose(
        found.indices()["coefficient"] ** 2, (slope[at] * [1, 2]) ** 2 / np.sum((slope[at] * [1, 2]) ** 2), atol=2e-3
    )


def test_dead_centres_of_a_slider_crank_give_its_stroke():
    # crank + rod = 1.2 m and rod - crank = 0.8 m; in both positions all bars are on one line
    free = slider_crank().build().free("pin.at", "wrist.child_at")
    lengths = {"pin.at": "x", "wrist.child_at": "x"}
    found = cd.synthesise(free, output={"guide": [1.2, 0.8]}, input="bearing", at=[0, np.pi], along=lengths, starts=4)
    np.testing.assert_allclose([found.values[name][0] for name in lengths], [0.2, 1.0], rtol=1e-9)
    assert not found.best.defect


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: cd.synthesise(BAR, output={"D": [1, 2]}), "no free numbers"),
        (lambda: cd.synthesise(FREE, output={"D": [1]}, at=[1]), "two are the least"),
        (lambda: cd.synthesise(FREE, output={"D": [1, 2]}, at=[1, 2, 3]), "numbers of positions differ"),
        (lambda: cd.synthesise(BAR.free("crank.mass"), output={"D": [1, 2]}), "is no dimension"),
        (lambda: cd.synthesise(FREE, output=[1, 2]), "must be a dict"),
        (lambda: cd.synthesise(FREE, output={"A": [1, 2]}, input="A", at=[1, 3]), "both the input at= and an output"),
        (lambda: cd.synthesise(FREE, output={"C": [1, 2]}), "closes a loop"),
        (lambda: cd.balance(BAR, shaking="force"), "nothing is unknown"),
        (lambda: cd.balance(BAR, counterweights=["crank"]), "nothing is asked"),
    ],
)
def test_bad_input_is_told(call, told):
    with pytest.raises(cd.CardanError, match=told):
        call()


def test_a_linkage_that_cannot_be_assembled_is_told():
    short = {"B.at": (0.1, 0.2), "C.at": (0.1, 0.2), "C.child_at": (0.1, 0.2), "D.at": (1.0, 2.0)}
    with pytest.raises(cd.ModelError, match="none of 3 starts gave a linkage"):
        cd.synthesise(FREE, output={"D": [1, 1.2]}, at=[1, 1.2], along=LENGTHS, bounds=short, starts=3)
