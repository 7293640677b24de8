"""The table of constraint kinds: geometry and forces of each, files, free numbers; what cannot be is refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd
from cardan.algebra.rotation import turn_x, turn_y, turn_z
from cardan.io.yaml.read import read_yaml
from cardan.io.yaml.write import write_yaml
from cardan.model import constraint_table
from cardan.model.constraint_table import CONSTRAINTS
from cardan.model.force import BodyPose
from cardan.model.pitch_curve import pitch_curve

from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")


def egg(x: Any, y: Any, z: Any) -> Any:
    return x**2 / 4 + y**2 + z**2 / 2 - 1


def profile(angle: Any) -> Any:
    return 1 + 0.2 * ca.cos(angle) + 0.05 * ca.sin(2 * angle)


WHEEL: dict[str, Any] = {"radius": 0.4, "axis": (0, 1, 0.2), "at1": (0.01, 0.02, 0.03), "at2": (0.1, 0, 0.2)}
BALL: dict[str, Any] = {"radius": 0.4, "at1": (0.01, 0.02, 0.03), "at2": (0.1, 0, 0.2)}
POSE = cd.Pose((0, 0, -0.5), rpy=(0.1, 0.2, 0.3))
KNOT = cd.curve(lambda u: (2 * ca.cos(u), ca.sin(u), ca.sin(2 * u) / 2), start=0, stop=2 * np.pi, closed=True)
MAKE: dict[str, Callable[[cd.Mechanism], str]] = {
    "wheel on plane": lambda m: m.roll("c", "a", "b", normal=(0.1, 0, 1), **WHEEL),
    "wheel on rail": lambda m: m.roll("c", "a", "b", normal=(0.1, 0, 1), along=(1, 0.1, 0), **WHEEL),
    "wheel on wheel": lambda m: m.roll("c", "a", "b", radius2=0.8, **WHEEL),
    "wheel in wheel": lambda m: m.gear("c", "a", "b", radius2=2.8, inside=True, **WHEEL),
    "sphere on plane": lambda m: m.roll("c", "a", "b", normal=(0.1, 0.3, -1), **BALL),
    "sphere on sphere": lambda m: m.roll("c", "a", "b", radius2=0.8, **BALL),
    "sphere in sphere": lambda m: m.roll("c", "a", "b", radius2=2.8, inside=True, **BALL),
    "knife edge": lambda m: m.knife_edge("c", "a", "b", edge=(1, 0.2, 0), holds=("normal", "lateral")),
    "distance": lambda m: m.distance("c", "a", "b", length=1.3, at1=(0.1, 0, 0)),
    "point on surface": lambda m: m.on_surface("c", "a", "b", egg, at1=(0.1, 0, 0), at2=POSE),
    "point on curve": lambda m: m.on_curve("c", "a", "b", (egg, lambda x, y, z: x - 0.2 * ca.sin(z))),
    "point along curve": lambda m: m.on_curve("c", "a", "b", KNOT, at1=(0.1, 0, 0), at2=POSE),
    "cam and roller": lambda m: m.cam("c", "a", "b", profile, at1=(0.1, 0, 0), at2=POSE),
    "cam and flat face": lambda m: m.cam("c", "a", "b", profile, face=(0.3, 1, 0), at1=(0.1, 0, 0)),
    "constant velocity": lambda m: m.constant_velocity("c", "a", "b", at1=POSE, at2=(0, 0, 0.3)),
}
WHERE_PARALLEL = ("wheel on wheel 'c', normal", "wheel on rail 'c', lateral")
"""Rows that act at the point of contact only where axes are as other joints hold them."""


def mechanism(name: str) -> cd.Mechanism:
    m = cd.Mechanism(name)
    for body in "ab":
        m.body(body, mass=2.0, inertia=(0.1, 0.2, 0.15))
        m.joint(body.upper(), cd.Free(), m.ground, body)
    MAKE[name](m)
    return m


def pose_of(x: list[float]) -> tuple[np.ndarray, np.ndarray]:
    return turn_z(x[0]) @ turn_y(0.5 * x[1]) @ turn_x(x[2]), np.array(x[3:])


def forces_on(row: cd.Constraint, poses: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """Unit forces of a row on its bodies: moment about the ground's origin and force, in ground components."""
    graphs = [BodyPose(ca.SX(R), ca.SX(r)) for R, r in poses]
    found = []
    for (R, r), F in zip(poses, row.written(ca.SX(0), graphs, [ca.SX(6, 1)] * 2)[0], strict=True):
        n, f = np.split(np.array(ca.evalf(F)).ravel(), 2)
        found.append(np.concatenate([R @ n + np.cross(r, R @ f), R @ f]))
    return found


def test_every_kind_is_tried() -> None:
    assert MAKE.keys() == CONSTRAINTS.keys()


@pytest.mark.parametrize("name", MAKE)
@settings(max_examples=5, deadline=None)
@given(st.lists(st.floats(-1, 1).map(lambda x: round(x, 3)), min_size=12, max_size=12))
def test_forces_are_opposite_and_act_at_the_contact(name: str, x: list[float]) -> None:
    model = _BUILT.setdefault(name, mechanism(name).build())
    poses = [pose_of([*x[:5], x[5] + 1.4]), pose_of([0.2 * v for v in x[6:]])]
    (element,) = model.constraint_elements
    wrenches = [forces_on(row, poses) for row in model.constraints]
    for on_a, on_b in wrenches:
        assert np.abs(on_a + on_b).max() < 1e-11  # so that no common motion is held
    if element.kind.contact is None or name == "point along curve":  # whose directions hold on the curve only
        return
    point, axes = (np.array(ca.DM(part)) for part in element.contact([BodyPose(ca.SX(R), ca.SX(r)) for R, r in poses]))
    for row, (on_a, _) in zip(model.constraints, wrenches, strict=True):
        along = axes[:, row.row]
        if row.owner not in WHERE_PARALLEL:
            close(on_a, np.concatenate([np.cross(point.ravel(), along), along]), 1e-11)


_BUILT: dict[str, cd.Model] = {}


@pytest.mark.parametrize("flat", [False, True])
def test_the_force_of_an_eccentric_cam_goes_through_its_centre(flat: bool) -> None:
    """A circle of radius R, whose centre is e from the axis: the pitch curve of a roller, and what a face touches."""
    R, e, side = 0.8, 0.2, 0.7  # the last: direction of the follower from the centre of the circle, rad
    n, centre = np.array([np.cos(side), np.sin(side), 0.0]), np.array([e, 0.0, 0.0])
    m = cd.Mechanism("eccentric")
    m.body("follower", mass=1.0, inertia=(1, 1, 1))
    m.body("cam", mass=1.0, inertia=(1, 1, 1))
    for body in ("follower", "cam"):
        m.joint(body, cd.Free(), m.ground, body)
    if flat:
        m.cam("c", "follower", "cam", lambda a: R + e * ca.cos(a), face=n, at1=0.3 * np.array([-n[1], n[0], 0]))
    else:
        m.cam("c", "follower", "cam", lambda a: e * ca.cos(a) + ca.sqrt(R**2 - (e * ca.sin(a)) ** 2))
    (row,) = m.build().constraints
    poses = [(np.eye(3), centre + R * n), (np.eye(3), np.zeros(3))]
    close(forces_on(row, poses)[0], np.concatenate([np.cross(centre, n), n]), 1e-12)
    ports = [0, *(part for pose in poses for part in pose), np.zeros(6), np.zeros(6)]
    close(float(row.function(*ports)), 0.0, 1e-15)


@pytest.mark.parametrize("name", MAKE)
def test_files_hold_every_kind(name: str) -> None:
    m = mechanism(name)
    text = write_yaml(m)
    assert f"type: {name}" in text
    again = read_yaml(text).build()
    model = m.build()
    assert again.key == model.key and again.rows.names == model.rows.names
    assert write_yaml(model) == write_yaml(again)


def rolling(**numbers: Any) -> cd.Model:
    m = cd.Mechanism("rolling")
    m.body("a", mass=2.0, inertia=(0.1, 0.2, 0.15))
    m.joint("A", cd.Free(), m.ground, "a")
    m.roll("c", "a", m.ground, normal=(0.1, 0, 1), **{**WHEEL, **numbers})
    return m.build()


def test_numbers_can_be_free() -> None:
    """At another radius the model with a free one is the model that was built with it."""
    other = {"radius": 0.7, "axis": (0.1, 1, 0)}
    wider, rng = rolling(**other), np.random.default_rng(0)
    q, v = cd.assemble(wider, np.array([0, 0, 2, 1, 0, 0, 0.0]), rng.normal(size=6))
    freed = rolling().free("c.radius", "c.axis").at({f"c.{what}": value for what, value in other.items()})
    expected = cd.forward_dynamics(wider, q, v)
    close(cd.forward_dynamics(freed, q, v), expected, 1e-12)
    close(cd.forward_dynamics(freed.settled(), q, v), expected, 1e-12)
    with pytest.raises(cd.InputError, match=r"parameter 'c\.radius' must be above 0, got -1 m"):
        freed.at({"c.radius": -1.0})


def test_a_kind_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three balls in a row stay in line: the middle one is on the plane across, in ground z."""
    kind = cd.ConstraintKind(
        "level", lambda e, t, poses, twists: [poses[0].position[2] - e["height"] * poses[1].position[2]],
        fields={"height": cd.Field("1", "ratio of heights", letter="k")},
    )  # fmt: skip
    m = mechanism("distance")
    m.constrain("own", kind, ("a", "b"), height=2.0)
    assert m.build().rows[-1].owner == "level 'own'"
    with pytest.raises(cd.ModelError, match=r"level 'own': its kind is not registered; call cd\.add_constraint"):
        write_yaml(m)
    monkeypatch.setattr(constraint_table, "ADDED_CONSTRAINTS", {})
    cd.add_constraint(kind)
    assert "height: 2" in write_yaml(m)
    with pytest.raises(cd.InputError, match="constraint 'distance' is Cardan's own"):
        cd.add_constraint(replace(kind, name="distance"))


REFUSED: dict[str, tuple[Callable[[cd.Mechanism], Any], str]] = {
    "radius": (lambda m: m.roll("w", "a", "ground", radius=0.0), "sphere on plane 'w': radius must be above 0, got 0"),
    "body": (lambda m: m.roll("w", "c", "ground", radius=1.0), "sphere on plane 'w': body1 'c' is not a body"),
    "same": (lambda m: m.roll("w", "a", "a", radius=1.0), "body1 and body2 are both 'a'"),
    "axis": (lambda m: m.roll("w", "a", "b", radius=1.0, axis=(0, 0, 0)), "axis is a direction and must not be zero"),
    "inside": (lambda m: m.roll("w", "a", "b", radius=1.0, inside=True), "rolling 'w': inside needs radius2"),
    "larger": (
        lambda m: m.roll("w", "a", "b", radius=1.0, radius2=0.5, inside=True),
        "sphere in sphere 'w': radius must be below radius2, since it rolls inside; got 1 and 0.5 m",
    ),
    "holds": (lambda m: m.knife_edge("k", "a", holds="up"), "knife edge 'k': it has no row 'up' to hold; it has"),
    "function": (lambda m: m.on_surface("s", "a", "b", 3.0), "'s': surface must be a function of (x, y, z), got"),
    "arguments": (lambda m: (m.on_surface("s", "a", "b", lambda x: x), m.build()), "'s': its surface is called with 3"),
    "corner": (
        lambda m: m.cam("cam", "a", "b", lambda a: 1 + 0.1 * ca.fabs(ca.sin(a - 1))),
        "cam and roller 'cam': profile has a corner at",
    ),
    "open": (lambda m: m.cam("cam", "a", "b", lambda a: 5 + a), "profile must be closed, and its value at -pi and pi"),
    "negative": (lambda m: m.cam("cam", "a", "b", lambda a: ca.sin(a)), "profile must be above 0, the distance from"),
    "hollow": (
        lambda m: m.cam("cam", "a", "b", lambda a: 1 + 0.2 * ca.cos(3 * a), face=(0, 1, 0)),
        "cam and flat face 'cam': a flat face touches a convex cam only, and its radius of curvature",
    ),
    "rail": (
        lambda m: m.roll("w", "a", "b", radius=1.0, axis=(0, 1, 0), along=(0, 0, 2)),
        "wheel on rail 'w': along must not be parallel to normal",
    ),
    "flat": (
        lambda m: (m.roll("w", "a", "ground", radius=1.0, axis=(0, 0, 1)), cd.assemble(m.build())),
        "wheel on plane 'w', normal has no finite value there: a wheel that lies flat has no lowest point",
    ),
    "upright": (
        lambda m: (m.knife_edge("k", "a", edge=(0, 0, 1)), cd.assemble(m.build())),
        "knife edge 'k', lateral has no finite value there: an edge across the plane has no direction in it",
    ),
    "relation": (
        lambda m: (m.couple("r", ["A", "B"], lambda a, b: a - b), m.build()),
        "joint 'A' (free) has 6 coordinates; it must have one",
    ),
    "kind": (lambda m: m.constrain("x", "rolling", ("a", "b")), "kind must be a cd.ConstraintKind, got 'rolling'"),
    "number": (
        lambda m: m.constrain("x", CONSTRAINTS["distance"], ("a", "b"), lenght=1.0),
        "distance 'x': it has no number 'lenght'; did you mean 'length'?",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(case: str) -> None:
    m = cd.Mechanism("bad")
    for body in "ab":
        m.body(body, mass=2.0, inertia=(0.1, 0.2, 0.15))
        m.joint(body.upper(), cd.Free(), m.ground, body)
    make, words = REFUSED[case]
    with pytest.raises(cd.CardanError) as error:
        make(m)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_rods_that_contradict_one_another_are_named() -> None:
    m = mechanism("distance")
    m.distance("d", "a", "b", length=1.0, at1=(0.1, 0, 0))
    with pytest.raises(cd.ModelError, match=r"distance '[cd]'"):
        cd.assemble(m.build(), np.array([0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0.0]))


def test_a_disc_that_falls_over_says_so() -> None:
    model = cd.mechanisms.rolling_disc().build()
    q = np.array([0, 0, 0.3 * np.cos(1.2), np.cos(0.6), np.sin(0.6), 0, 0])
    with (
        pytest.warns(RuntimeWarning, match="magnify rounding"),
        pytest.raises(cd.SimulationError, match=r"'rim', normal has no finite value there: a wheel that lies flat"),
    ):
        cd.simulate(model, 1.0, q)
    with pytest.raises(cd.InputError, match="simulate: at the start wheel on plane 'rim', normal has no finite value"):
        cd.simulate(model, 1.0, np.array([0, 0, 0, np.sqrt(0.5), np.sqrt(0.5), 0, 0]))


def test_forces_that_blades_of_one_axle_share_are_told() -> None:
    m = cd.Mechanism("sledge")
    m.body("sledge", mass=2.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.2))
    m.joint("ice", cd.Planar(), m.ground, "sledge")
    for name, y in (("left", 0.2), ("right", -0.2)):
        m.knife_edge(name, "sledge", at1=(0, y, 0))
    m.knife_edge("tail", "sledge", at1=(-1, 0, 0))
    run = cd.simulate(m.build(), 0.1, v0={"ice": [1.0, 0.0, 0.0]}, samples=2)
    with pytest.warns(RuntimeWarning, match="the forces of 'left: lateral', 'right: lateral' are one possible"):
        assert np.isfinite(run["left.force"]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(run["tail.force"]).all() and np.isfinite(run["left.force"]).all()


def test_a_prescribed_motion_is_exact_whatever_its_steps() -> None:
    m = cd.Mechanism("crank", gravity=(0, -9.81, 0))
    m.body("crank", mass=1.0, com=(0.3, 0, 0), inertia=(0.1, 0.1, 0.2))
    m.joint("shaft", cd.Revolute(), m.ground, "crank")
    m.motion("turn", "shaft", lambda t: 2 * ca.sin(9 * t))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = cd.simulate(m.build(), 2.0, assemble=True, samples=9)
    close(run["shaft.coordinate"], 2 * np.sin(9 * run.time), 1e-12)


def test_a_cam_from_a_table_is_that_of_its_function() -> None:
    angle = np.linspace(-np.pi, np.pi, 121)
    table = cd.table(angle, 0.05 + 0.012 * np.cos(angle), ends="periodic")
    made = []
    for law in (table, lambda a: 0.05 + 0.012 * ca.cos(a)):
        m = cd.Mechanism("cam", gravity=(0, -9.81, 0))
        for body, joint in (("cam", cd.Revolute()), ("follower", cd.Prismatic(axis=(0, 1, 0)))):
            m.body(body, mass=1.0, inertia=(0.1, 0.1, 0.1))
            m.joint(body, joint, m.ground, body, start=0.05)
        m.cam("contact", "follower", "cam", law)
        model = m.build()
        q, v = cd.assemble(model, {"cam": 0.3}, {"cam": 2.0})
        made.append(np.concatenate([q, v, cd.forward_dynamics(model, q, v)]))
        assert read_yaml(write_yaml(m)).build().key == model.key
    close(made[0], made[1], 1e-4)
    with pytest.raises(cd.ModelError, match=r"cam and roller 'sharp': table 'table' has a corner at every point"):
        m.cam("sharp", "follower", "cam", cd.table(angle, 0.05 + 0.012 * np.cos(angle), smooth=0, ends="periodic"))


def test_relations_and_belts_between_joints() -> None:
    """A relation holds in every formulation, with its force on both joints; a belt has a difference of tensions."""
    m = cd.Mechanism("related", gravity=(0, -9.81, 0))
    for k, body in enumerate("abc"):
        m.body(body, mass=1.0 + k, com=(0.2, 0, 0), inertia=(0.1 + 0.1 * k, 0.1, 0.1 + 0.1 * k))
        m.joint(body, cd.Revolute(), m.ground, body, at=(k, 0, 0))
    m.couple("ratio", ["a", "b"], lambda a, b: b - 1.5 * a - 0.3 * ca.sin(a))
    m.belt("belt", "b", "c", radius1=0.1, radius2=0.3)
    model = m.build()
    q, v = cd.assemble(model, {"a": 0.4}, {"a": 2.0})
    close(v, 2.0 * np.array([1, 1.5 + 0.3 * np.cos(q[0]), (1.5 + 0.3 * np.cos(q[0])) / 3]), 1e-14)
    a = cd.forward_dynamics(model, q, v)
    ratio = 1.5 + 0.3 * np.cos(q[0])
    close(a[1:], (ratio * a[0] - 0.3 * np.sin(q[0]) * 4.0) * np.array([1, 1 / 3]), 1e-12)
    # d'Alembert along the one freedom
    M, g = np.diag([0.14, 0.28, 0.42]), 9.81 * 0.2 * np.array([1, 2, 3]) * np.cos(q)
    close(np.array([1, ratio, ratio / 3]) @ (M @ a + g), 0.0, 1e-12)
    tension = (M @ a + g)[2] / 0.3
    assert model.rows.names == ["ratio", "belt"] and model.rows[1].force_unit == "N"
    close(cd.multipliers(model, q, v)[1], tension, 1e-11)
    for formulation in ("newton_euler", "absolute", "absolute_body", "relative", "points"):
        close(cd.forward_dynamics(model, q, v, formulation=formulation), a, 1e-12)
    again = read_yaml(write_yaml(m)).build()
    assert again.key == model.key and "value: =q2 - 1.5*q1 - 0.3*sin(q1)" in write_yaml(m)
    with pytest.raises(cd.ModelError, match=r"belt 'x': radius1 must be above 0, got -1; it is the radius of a pulley"):
        m.belt("x", "a", "b", radius1=-1.0, radius2=1.0)


def test_a_ball_that_slips_ends_up_rolling() -> None:
    """With friction the contact slips first; the speed falls to 5/7, whatever the friction."""
    m = cd.Mechanism("ball")
    m.body("ball", mass=1.0, inertia=cd.inertia.sphere(1.0, 0.1))
    m.joint("float", cd.Free(), m.ground, "ball", start=(0, 0, 0.1, 1, 0, 0, 0))
    m.roll("contact", "ball", m.ground, radius=0.1, friction=0.2)
    run = cd.simulate(m.build(), 1.0, v0={"float": (0, 0, 0, 3.0, 0, 0)}, samples=5)
    close(run.velocity("ball")[[1, -1], 0], [3.0 - 0.25 * 0.2 * 9.81, 3.0 * 5 / 7], 1e-6)
    with pytest.raises(cd.ModelError, match=r"sphere on plane 'x': static and restitution need friction"):
        m.roll("x", "ball", m.ground, radius=0.1, restitution=0.5)


def test_a_wheel_that_lies_flat_and_may_slip_is_told() -> None:
    m = cd.Mechanism("hoop")
    m.body("hoop", mass=2.0, inertia=cd.inertia.cylinder(2.0, 0.3, 0.02, axis="y"))
    m.joint("float", cd.Free(), m.ground, "hoop")
    m.roll("rim", "hoop", m.ground, radius=0.3, axis=(0, 1, 0), friction=0.5)
    flat = [0, 0, 0.3, np.sqrt(0.5), np.sqrt(0.5), 0, 0]
    for way in ({}, {"method": "moreau", "step": 0.1}):
        with pytest.raises(cd.CardanError, match=r"'rim.*no finite value.*a wheel that lies flat"):
            cd.simulate(m.build(), 1.0, flat, **way)


SLOPE = 0.3  # rad
SHARES = {
    "solid cylinder": (cd.inertia.cylinder(2.0, 0.1, 0.4, axis="y")[1, 1], 2 / 3, True),
    "thin hoop": (2.0 * 0.1**2, 1 / 2, True),
    "ball": (0.4 * 2.0 * 0.1**2, 5 / 7, False),
}


@pytest.mark.parametrize("name", SHARES)
def test_down_a_slope(name: str) -> None:
    """Acceleration along the slope is 2/3, 1/2, 5/7 of g sin; friction makes up for the rest, and does no work."""
    inertia, share, is_wheel = SHARES[name]
    down, normal = np.array([np.cos(SLOPE), 0, -np.sin(SLOPE)]), np.array([np.sin(SLOPE), 0, np.cos(SLOPE)])
    m = cd.Mechanism("slope", gravity=(0, 0, -9.81))
    m.body("roller", mass=2.0, inertia=(inertia, inertia, inertia))
    m.joint("float", cd.Free(), m.ground, "roller")
    m.roll("road", "roller", m.ground, radius=0.1, axis=(0, 1, 0) if is_wheel else None, normal=normal)
    q = [*(0.1 * normal), 1, 0, 0, 0]
    model = m.build()
    a = cd.forward_dynamics(model, q, np.zeros(6))
    pull = 9.81 * np.sin(SLOPE)
    np.testing.assert_allclose(a[3:], share * pull * down, atol=1e-12)
    np.testing.assert_allclose(a[:3], [0, share * pull / 0.1, 0], atol=1e-10)


def test_a_roller_on_the_profile_of_a_cam() -> None:
    """On an eccentric circle: its centre goes round on a larger one. A hollow that is too narrow is refused."""
    e, R, r = 0.2, 0.8, 0.3
    circle = lambda size: lambda a: e * ca.cos(a) + ca.sqrt(size**2 - (e * ca.sin(a)) ** 2)
    pitch = pitch_curve("cam", circle(R), r)
    angle = np.linspace(-4.0, 4.0, 31)
    close(pitch(angle), np.array([float(circle(R + r)(a)) for a in angle]), 1e-11)
    m = cd.Mechanism("hollow")
    m.body("cam", mass=1.0, inertia=(1, 1, 1))
    m.joint("shaft", cd.Revolute(), m.ground, "cam")
    wavy = lambda a: R + 0.1 * ca.cos(5 * a)  # hollow with a radius of 0.27
    with pytest.raises(cd.ModelError, match=r"cam 'c': a roller of radius 0\.3 m does not follow .* hollow"):
        m.cam("c", "ground", "cam", wavy, roller=r)
    assert abs(pitch_curve("cam", wavy, 0.2)(0.0) - (R + 0.1 + 0.2)) < 1e-9
