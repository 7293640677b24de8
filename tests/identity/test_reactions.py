"""Reactions against statics by hand, drives against inverse dynamics, forces of couplings, and the flat four-bars."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation.registry import find_formulation

from ..formulations import parts_of
from ..graphs import WAYS, graph_mechanism, interpreted
from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

g = 9.81
WORDS = [pytest.param({"formulation": key}, id=key) for key in WAYS]
NOTHING = np.zeros((3, 6))


@cache
def four_bar() -> cd.Model:
    return mechanisms.four_bar().build()


@cache
def five_bar() -> cd.Model:
    return mechanisms.five_bar().build()


def ground_force(model: cd.Model, q: np.ndarray, f: np.ndarray, joint: str) -> np.ndarray:
    """Force of a joint on its child in ground axes."""
    number = model.joint_names.index(joint)
    R = cd.frame_pose(model, q, model.bodies[model.joints[number].child].name)[:3, :3]
    return R @ model.joints[number].child_at.rotation @ f[number, 3:]


@pytest.mark.parametrize("formulation", WAYS)
def test_symmetric_frame_at_rest_carries_its_weight(formulation: str) -> None:
    """Two equal cranks that lean inwards and a level coupler: each pin carries half of it, thrust from the lean."""
    m = mechanisms.four_bar(base=1.0, crank=0.5, coupler=0.6, rocker=0.5, angle=float(np.arccos(0.4)))
    model = m.build()
    q, v = cd.assemble(model)
    a, f = interpreted(model, formulation)(q, v, np.zeros(3), NOTHING)
    close(a, np.zeros(3), 1e-11)
    crank, coupler = 2.0 * 0.5 * g, 2.0 * 0.6 * g  # weights
    lean = 0.2 / np.sqrt(0.5**2 - 0.2**2)  # of the cranks: across over up
    thrust = lean * (coupler / 2 + crank / 2)  # moment balance of a crank about its foot
    by_hand = {
        "A": (thrust, coupler / 2 + crank, 0),
        "B": (thrust, coupler / 2, 0),  # on the coupler
        "C": (thrust, -coupler / 2, 0),  # on the rocker: outwards and down
        "D": (-thrust, coupler / 2 + crank, 0),
    }
    for joint, force in by_hand.items():
        close(ground_force(model, q, f, joint), np.array(force), 1e-11)
    close(f[:, 2], np.zeros(4), 1e-11)  # no hinge has a moment about its axis
    flagged = cd.undetermined_reactions(model, q)
    assert np.array_equal(flagged, np.tile([True, True, False, False, False, True], (4, 1)))


@pytest.mark.parametrize("words", WORDS)
def test_door_hangs_on_both_hinges_together(words: dict[str, str]) -> None:
    """Each hinge alone is undetermined but for its axis; together they carry the weight and its moment."""
    width, height, mass = 0.9, 2.0, 25.0
    model = mechanisms.two_hinge_door().build()
    q, v = cd.assemble(model)
    f = cd.reactions(model, q, v, **words)
    flagged = cd.undetermined_reactions(model, q)
    assert np.array_equal(flagged, np.tile([True, True, False, True, True, True], (2, 1)))
    close(f[:, 2], np.zeros(2), 1e-12)
    close(f[:, 3:].sum(0), [0, 0, mass * g], 1e-12)
    arms = np.array([[0, 0, 0.15 * height], [0, 0, 0.85 * height]])
    about_foot = f[:, :3].sum(0) + np.cross(arms, f[:, 3:]).sum(0)
    close(about_foot, -np.cross([width / 2, 0, height / 2], [0, 0, -mass * g]), 1e-12)


def test_swinging_bar_pulls_with_weight_and_spin() -> None:
    """A bar that swings down through the vertical: tension `m g + m w^2 l / 2`, in a tree and as a cut."""
    m = cd.Mechanism("bar", gravity=(0, -g, 0))
    m.body("bar", mass=2.0, com=(0.5, 0, 0), inertia=cd.inertia.rod(2.0, 1.0, axis="x"))
    m.joint("pivot", cd.Revolute(), m.ground, "bar", start=-np.pi / 2)
    m.joint("float", cd.Free(), m.ground, "bar", start=(0, 0, 0, np.sqrt(0.5), 0, 0, -np.sqrt(0.5)))
    for cut in ("float", "pivot"):
        model = m.build(cut=[cut])
        q, _ = cd.assemble(model)
        v = np.zeros(model.nv)
        v[0 if model.nv == 1 else 2] = 3.0
        a, f = interpreted(model, "spatial")(q, v, 0 * v, np.zeros((1, 6)))
        close(a, np.zeros(model.nv), 1e-12)
        close(f[0], [0, 0, 0, -(2 * g + 2 * 9 * 0.5), 0, 0], 1e-12)
        close(f[1], np.zeros(6), 1e-12)


def test_drive_of_a_prescribed_motion_is_inverse_dynamics() -> None:
    m = mechanisms.four_bar()
    m.motion("spin", "A", lambda t: 1.0 + 2.0 * t + 3.0 * t * t)
    moving, free, t = m.build(), four_bar(), 0.1
    q, v = cd.assemble(moving, t=t)
    for key in WAYS:
        a, f = interpreted(moving, key)(q, v, np.zeros(3), NOTHING, at=t)
        assert abs(a[0] - 6.0) < 1e-9
        tau = cd.inverse_dynamics(free, q, v, a, driven=["A"])
        close(f[0, 2], tau[0], 1e-10)  # a hinge's moment about its axis is its drive
        close(tau[1:], np.zeros(2), 1e-15)
        close(interpreted(free, key)(q, v, tau, NOTHING)[0], a, 1e-10)


def state(model: cd.Model, seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    return *cd.assemble(model, None, rng.standard_normal(model.nv)), rng


def test_inverse_dynamics_with_as_many_drives_as_freedoms() -> None:
    model = five_bar()
    q, v, rng = state(model, 1)
    driven = ["A", "E"]
    assert cd.actuation(model, q, driven).kind == "exact"
    tau = np.zeros(model.nv)
    tau[[model.v_slice(joint).start for joint in driven]] = rng.standard_normal(2)
    a = cd.forward_dynamics(model, q, v, tau)
    close(cd.inverse_dynamics(model, q, v, a, driven=driven), tau, 1e-9)
    batch = [np.stack([x, x]) for x in (q, v, a)]
    close(cd.inverse_dynamics(model, *batch, driven=driven), np.stack([tau, tau]), 1e-9)


def test_inverse_dynamics_with_too_few_drives_serves_what_it_can() -> None:
    model = five_bar()
    q, v, _ = state(model, 2)
    found = cd.actuation(model, q, ["A"])
    assert (found.kind, found.freedoms, found.driven, found.commanded) == ("under", 2, 1, 1)
    tau = np.zeros(model.nv)
    tau[model.v_slice("A")] = 1.7
    a = cd.forward_dynamics(model, q, v, tau)
    close(cd.inverse_dynamics(model, q, v, a, driven=["A"]), tau, 1e-9)
    tau[model.v_slice("E")] = 1.0
    with pytest.raises(cd.InputError, match=r"five_bar.*2 freedoms.*driving 'A' cannot give"):
        cd.inverse_dynamics(model, q, v, cd.forward_dynamics(model, q, v, tau), driven=["A"])


def test_inverse_dynamics_with_too_many_drives_gives_the_accelerations() -> None:
    model = four_bar()
    q, v, _ = state(model, 3)
    assert cd.actuation(model, q, ["A", "B", "D"]).kind == "over"
    tau = np.array([1.5, 0, 0])
    a = cd.forward_dynamics(model, q, v, tau)
    shared = cd.inverse_dynamics(model, q, v, a, driven=["A", "B", "D"])
    close(cd.forward_dynamics(model, q, v, shared), a, 1e-9)
    motion = np.linalg.svd(cd.constraint_jacobian(model, q))[2][-1]  # the only one: power along it is what counts
    close(shared @ motion, tau @ motion, 1e-9)


def test_inverse_dynamics_with_too_many_drives_takes_the_smallest() -> None:
    model = four_bar()
    q, v, _ = state(model, 3)
    tau = np.array([1.5, 0, 0])
    shared = cd.inverse_dynamics(model, q, v, cd.forward_dynamics(model, q, v, tau), driven=["A", "B", "D"])
    motion = np.linalg.svd(cd.constraint_jacobian(model, q))[2][-1]
    close(shared, motion * (tau @ motion), 1e-9)  # all of it along the motion; its length is below 1.5


def test_rack_and_pinion_teeth_by_hand() -> None:
    radius, pinion, rack = 0.1, 1.5, 0.8
    model = mechanisms.rack_and_pinion().build()
    fall = g * rack / (rack + pinion / 2)
    for key in WAYS:
        a, f = interpreted(model, key)(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros((2, 6)))
        close(a, [-fall / radius, -fall], 1e-12)
        teeth = rack * (g - fall)
        close(f[1, 5], teeth, 1e-12)  # up, on the rack, along its guide
        close(f[0, 2], -teeth * radius, 1e-12)
        close(f[0, 2], pinion * radius**2 / 2 * a[0], 1e-12)


def test_gear_pair_by_hand() -> None:
    m = cd.Mechanism("gears", gravity=(0, 0, 0))
    I1, I2, tau = 0.3, 1.2, 2.0
    for name, I in (("small", I1), ("large", I2)):
        m.body(name, mass=1.0, inertia=(I, I, I))
        m.joint(f"on {name}", cd.Revolute(), m.ground, name)
    m.couple("gear", {"on small": 1.0, "on large": 3.0})
    model = m.build()
    for key in WAYS:
        a, f = interpreted(model, key)(np.zeros(2), np.zeros(2), np.array([tau, 0]), np.zeros((2, 6)))
        alpha = tau / (I1 + I2 / 9)
        close(a, [alpha, -alpha / 3], 1e-12)
        close(f[:, 2], [I1 * alpha, -I2 * alpha / 3], 1e-12)  # drive and teeth together turn each


@cache
def windows(n: int) -> tuple[cd.Model, np.ndarray, float]:
    """N four-bars, the way their coordinates go together on the branch of parallel rods, and c of `th'' = c sin th`."""
    model = mechanisms.n_four_bar(n).build()
    together = np.array([1.0 if name.startswith("A") else -1.0 for name in model.coordinate_names])
    return model, together, g * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)


def flat_error(n: int, formulation: str, eps: float) -> float:
    """Of the accelerations at th = +-pi/2 + eps, as a part of c."""
    model, together, c = windows(n)
    accelerate = interpreted(model, formulation)
    nothing = np.zeros(model.nv), np.zeros((model.nb, 6))
    accelerate(1.0 * together, together, *nothing)  # rows are chosen away from the flat position
    errors = []
    for flat in (np.pi / 2, -np.pi / 2):
        th = flat + eps
        a, f = accelerate(th * together, 1.7 * together, *nothing)
        assert np.isfinite(f).all()
        errors.append(float(np.abs(a - c * np.sin(th) * together).max()) / c)
    return max(errors)


AWAY = [sign * 10.0**-k for k in range(1, 13) for sign in (1, -1)] + [0.0]
IN_TREE = ("spatial", "newton_euler")


@pytest.mark.parametrize(("n", "formulation"), [(n, key) for n in (1, 2, 4) for key in IN_TREE] + [
    (1, key) for key in WAYS if key not in IN_TREE
])  # fmt: skip
def test_accelerations_pass_the_flat_position_as_if_it_were_none(n: int, formulation: str) -> None:
    # The rods have no inertia about their own axis. Where some is lent along each body's own rates, it leaves up to
    # 7e-8 where the rows lose rank, 1e-7 rad from the flat position.
    bound = 1e-7 if formulation in ("relative", "absolute", "absolute_body") else 1e-8
    assert max(flat_error(n, formulation, eps) for eps in AWAY) < bound


@pytest.mark.parametrize("formulation", [key for key in WAYS if key not in IN_TREE])
def test_accelerations_stay_bounded_through_the_flat_position(formulation: str) -> None:
    errors = {eps: flat_error(2, formulation, eps) for eps in AWAY}
    assert max(errors.values()) < 0.5
    assert max(error for eps, error in errors.items() if abs(eps) > 5e-5) < 1e-8


@pytest.mark.parametrize("formulation", [key for key in WAYS if key not in IN_TREE])
def test_accelerations_with_six_coordinates_a_body_reach_the_limit_up_to_1e_5_rad(formulation: str) -> None:
    """Nearer than that they are those of the mechanism with its momentary freedoms; see docs/decisions/0008."""
    assert max(flat_error(2, formulation, eps) for eps in AWAY if abs(eps) >= 1e-5) < 1e-6


# Which reactions are undetermined: those that change with forces of constraints that balance among themselves.


def geared_parallelogram() -> cd.Mechanism:
    """Cranks that turn alike, and a gear that says so once more."""
    m = mechanisms.parallelogram(cranks=2)
    m.couple("gear", {"A1": 1.0, "A2": -1.0})
    return m


def driven_twice() -> cd.Mechanism:
    m = mechanisms.parallelogram()
    m.motion("first", "A1", lambda t: 1.0 + t)
    m.motion("second", "A2", lambda t: 1.0 + t)
    return m


def held_twice() -> cd.Mechanism:
    """A slider in a plane, and a plate welded to it: a constraint of the user on each holds them at one height."""
    m = cd.Mechanism("slider", gravity=(0, 0, -g))
    m.body("slider", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.body("plate", mass=2.0, com=(0.3, 0.1, 0), inertia=(0.1, 0.1, 0.1))
    m.joint("rail", cd.Planar(normal=(0, 1, 0)), m.ground, "slider")
    m.joint("weld", cd.Rigid(), "slider", "plate")
    for name, body in (("height", "slider"), ("height of the plate", "plate")):
        m.constraint(name, [body], lambda t, poses, twists: poses[0].position[2], unit="m")
    return m


def welded_twice() -> cd.Mechanism:
    """A plate without mass on two welds to a pendulum."""
    m = cd.Mechanism("welds", gravity=(0, -g, 0))
    m.body("bar", mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
    m.body("plate")
    m.joint("pivot", cd.Revolute(), m.ground, "bar", start=0.3)
    m.joint("weld", cd.Rigid(), "bar", "plate", at=(1, 0, 0))
    m.joint("second weld", cd.Rigid(), "bar", "plate", at=(1, 0, 0))
    return m


def geared(make: Callable[[], cd.Mechanism]) -> cd.Mechanism:
    """A mechanism of one freedom, and a gear between the two joints that move most, which fits the motion there."""
    m = make()
    model = m.build()
    q, _ = cd.assemble(model)
    moving = np.linalg.svd(cd.constraint_jacobian(model, q))[2][-1]
    single = sorted((link for link in model.tree.links if link.kind.nq == 1), key=lambda link: -abs(moving[link.v][0]))
    (a, c), (b, d) = ((model.joints[link.joint].name, moving[link.v][0]) for link in single[:2])
    assert min(abs(c), abs(d)) > 1e-3
    m.couple("gear", {a: d, b: -c}, offset=float(d * q[model.q_slice(a)][0] - c * q[model.q_slice(b)][0]))
    return m


REDUNDANT: dict[str, Callable[[], cd.Mechanism]] = {
    "geared parallelogram": geared_parallelogram,
    "driven twice": driven_twice,
    "held twice": held_twice,
    "door": mechanisms.two_hinge_door,
    "welded twice": welded_twice,
    **{f"graph {seed}": partial(graph_mechanism, seed) for seed in (9, 33)},
    "geared four-bar": partial(geared, mechanisms.four_bar),
    "geared Bennett": partial(geared, mechanisms.bennett),
    "geared Sarrus": partial(geared, mechanisms.sarrus),
}


@pytest.mark.parametrize("formulation", ["spatial", "absolute", "relative"])
@pytest.mark.parametrize("name", REDUNDANT)
def test_undetermined_is_what_changes_with_forces_that_balance(name: str, formulation: str) -> None:
    """Multipliers may change by any vector of the null space of J^T: the mask has the components that then change."""
    model, found = REDUNDANT[name]().build(), find_formulation(formulation)
    rng = np.random.default_rng(3)
    state, _ = cd.assemble(model)
    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    parts = parts_of(model, formulation, q, v, ca.SX.zeros(model.nv), ca.SX.zeros(model.nb, 6), ca.SX.zeros(1))
    lam, vdot = ca.SX.sym("lam", len(parts.rows)), ca.SX.sym("vdot", parts.M.shape[0])
    evaluate = ca.Function("f", [q, v, vdot, lam], [found.wrenches(parts, vdot, lam), parts.rows.J])
    moving = state, np.zeros(model.nv), rng.standard_normal(vdot.shape[0])
    J = np.array(evaluate(*moving, np.zeros(lam.shape[0]))[1])
    U, s, _ = np.linalg.svd(J)
    null = U[:, int((s > 1e-9 * s.max(initial=1e-300)).sum()) :]
    given = rng.standard_normal(len(J))
    before, after = (
        np.array(evaluate(*moving, x)[0]) for x in (given, given + null @ rng.standard_normal(null.shape[1]))
    )
    changed = np.abs(after - before) > 1e-9
    mask = cd.undetermined_reactions(model, state)
    if (name, formulation) == ("welded twice", "absolute"):  # there a massless plate is one with the bar, without rows
        assert np.array_equal(mask, [[False] * 6, [True] * 6, [True] * 6])
    else:
        assert np.array_equal(mask, changed) and changed.any()


@pytest.mark.parametrize("name", REDUNDANT)
def test_determined_reactions_are_the_same_in_every_formulation(name: str) -> None:
    model = REDUNDANT[name]().build()
    rng = np.random.default_rng(4)
    q, v = cd.assemble(model)  # at rest, since a gear may fit the motion of this position alone
    loads = rng.standard_normal(model.nv), rng.standard_normal((model.nb, 6))
    known = ~cd.undetermined_reactions(model, q)
    answers = [np.where(known, interpreted(model, key)(q, v, *loads)[1], 0) for key in WAYS]
    for other in answers[1:]:
        close(other, answers[0], 1e-8)


HELD: dict[str, Callable[[cd.Mechanism], object]] = {
    "gear": lambda m: m.couple("gear", {"A": 1.0, "B": -0.75}),
    "both": lambda m: (m.couple("gear", {"A": 1.0, "B": -0.75}), m.motion("turn", "A", lambda t: 0.3 + t)),
    "a constraint that is always kept": lambda m: m.constraint(
        "plane", ["b"], lambda t, poses, twists: poses[0].position[2], unit="m"
    ),
}


@pytest.mark.parametrize("formulation", ["spatial", "absolute", "relative", "points"])
@pytest.mark.parametrize("held", HELD)
def test_a_loop_closed_by_a_free_joint_changes_nothing(held: str, formulation: str) -> None:
    """However many rows the other constraints have, of which CasADi writes one or none as a row, not a column."""
    models = []
    for loop in (False, True):
        m = cd.Mechanism("arm", gravity=(0, -g, 0))
        for name in "ab":
            m.body(name, mass=1.0, com=(0.5, 0, 0), inertia=(0.1, 0.1, 0.1))
        m.joint("A", cd.Revolute(), m.ground, "a", start=0.3)
        m.joint("B", cd.Revolute(), "a", "b", at=(1, 0, 0), start=0.4)
        if loop:
            m.joint("F", cd.Free(), m.ground, "b")
        HELD[held](m)
        models.append(m.build())
    q, v = cd.assemble(models[0], v=(0.5, -0.3))
    tree, loop_ = (cd.reactions(model, q, v, formulation=formulation) for model in models)
    close(loop_[:2], tree, 1e-12)
    close(loop_[2], np.zeros(6), 0)
    assert np.array_equal(cd.undetermined_reactions(models[1], q)[:2], cd.undetermined_reactions(models[0], q))


def test_a_run_with_rows_none_of_which_is_independent() -> None:
    m = mechanisms.double_pendulum()
    swing = cd.simulate(m.build(), 0.2, samples=2)
    axis = int(np.argmin(np.abs(swing.position("lower")).max(axis=0)))  # across the plane of the motion
    m.constraint("plane", ["lower"], lambda t, poses, twists: poses[0].position[axis], unit="m")
    close(cd.simulate(m.build(), 0.2, samples=2).q, swing.q, 1e-10)
