"""Motion along curves in space, against closed forms, against the same by surfaces, joints by hand, and pendulums."""

from __future__ import annotations

from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

G = 9.81
FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative", "points")


def along(curve: cd.Curve, turns: bool = False, **body: Any) -> cd.Model:
    """A body of 2 kg on a curve, under gravity along -z."""
    m = cd.Mechanism("along a curve", gravity=(0, 0, -G))
    m.body("bead", mass=2.0, inertia=(0.02, 0.03, 0.04), **body)
    m.joint("curve", cd.Curvilinear(curve, turns), m.ground, "bead")
    return m.build()


def helix(radius: float = 0.5, pitch: float = 0.2) -> cd.Curve:
    return cd.curve(
        lambda u: (radius * ca.cos(u), radius * ca.sin(u), pitch * u), start=0.0, stop=20.0, name="helix"
    )  # fmt: skip


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_bead_on_a_helix_has_constant_acceleration(formulation: str) -> None:
    """`-g sin(slope)` along it, whatever the speed, and it presses with `m g cos(slope)` and `m v^2 curvature`."""
    radius, pitch = 0.5, 0.2
    rise = pitch / np.hypot(radius, pitch)
    model = along(helix(radius, pitch))
    q, v = np.array([[1.0], [4.0]]), np.array([[0.0], [3.0]])
    assert np.allclose(cd.forward_dynamics(model, q, v, formulation=formulation), -G * rise, rtol=1e-7)
    force = np.linalg.norm(cd.reactions(model, q, v, formulation=formulation)[:, 0, 3:], axis=1)
    bend = radius / (radius**2 + pitch**2)
    expected = 2.0 * np.hypot(G * np.sqrt(1 - rise**2), v[:, 0] ** 2 * bend)
    assert np.allclose(force, expected, rtol=1e-7)


def test_the_coordinate_is_arc_length_and_the_rate_is_the_speed() -> None:
    radii = np.array([[np.cos(a) * (2 + 0.5 * np.cos(3 * a)), np.sin(a), 0.3 * a] for a in np.linspace(0, 5, 14)])
    for curve in (
        cd.curve(radii),
        cd.curve(radii, closed=True),
        cd.curve(lambda u: (u, u**2, ca.sin(u)), stop=2, start=-1),
    ):
        s = np.linspace(0, curve.length, 400)
        chords = np.linalg.norm(np.diff(curve(np.linspace(0, curve.length, 20001)), axis=0), axis=1)
        assert np.isclose(chords.sum(), curve.length, rtol=1e-7)
        h = 1e-5
        inner = s[1:-1]
        assert np.allclose(np.linalg.norm(curve(inner + h) - curve(inner - h), axis=1), 2 * h, rtol=2e-6)
        slope = (curve(inner + h) - curve(inner - h)) / (2 * h)
        assert np.abs(slope - curve.axes(inner)[..., 0]).max() < 1e-5
    dense = cd.curve(radii)(np.linspace(0, cd.curve(radii).length, 20001))
    assert np.linalg.norm(radii[:, None] - dense[None], axis=2).min(axis=1).max() < 1e-3
    assert np.allclose(cd.curve(radii)(0.0), radii[0]) and np.allclose(
        cd.curve(radii)(cd.curve(radii).length), radii[-1]
    )


@pytest.mark.parametrize("amplitude", [0.1, 0.7])
def test_a_cycloid_is_isochronous(amplitude: float) -> None:
    """The period of a bead on the cycloid of a wheel of radius r is `4 pi sqrt(r / g)`, whatever the amplitude."""
    r = 0.3
    curve = cd.curve(lambda u: (r * (u + ca.sin(u)), 0, r * (1 - ca.cos(u))), start=-2.8, stop=2.8, name="cycloid")
    model = cycloid(curve)
    middle = curve.length / 2
    period = 4 * np.pi * np.sqrt(r / G)
    run = cd.simulate(model, period, [middle + amplitude], samples=5, rtol=1e-10, atol=1e-12)
    assert np.allclose(run.q[:, 0] - middle, amplitude * np.cos(2 * np.pi * run.time / period), atol=1e-6)


@cache
def _model(curve: cd.Curve) -> cd.Model:
    return along(curve)


def cycloid(curve: cd.Curve) -> cd.Model:
    return _model(curve)


@pytest.mark.parametrize("turns", [True, False])
def test_a_circle_is_a_pendulum(turns: bool) -> None:
    """A body that turns with the circle is a compound pendulum; one that does not is a simple one."""
    radius = 0.7
    circle = cd.curve(
        lambda u: (radius * ca.sin(u), 0, -radius * ca.cos(u)), start=0, stop=2 * np.pi, closed=True, up="carried"
    )
    model = along(circle, turns)
    m = cd.Mechanism("pendulum", gravity=(0, 0, -G))
    m.body("bob", mass=2.0, com=(0, 0, -radius), inertia=(0.02, 0.03, 0.04) if turns else (0.0, 0.0, 0.0))
    m.joint("pivot", cd.Revolute(axis=(0, -1, 0)), m.ground, "bob")
    pendulum = m.build()
    angle, rate = np.linspace(-3, 9, 7)[:, None], np.linspace(-2, 2, 7)[:, None]
    expected = radius * cd.forward_dynamics(pendulum, angle, rate)
    for formulation in FORMULATIONS if turns else FORMULATIONS[::2]:
        a = cd.forward_dynamics(model, radius * angle, radius * rate, formulation=formulation)
        assert np.allclose(a, expected, rtol=1e-7, atol=1e-7)
    force = cd.reactions(model, radius * angle, radius * rate)[:, 0, 3:]
    other = cd.reactions(pendulum, angle, rate)[:, 0, 3:]
    assert np.allclose(np.linalg.norm(force, axis=1), np.linalg.norm(other, axis=1), rtol=1e-6)


def test_a_loop_the_loop_needs_a_height_of_five_halves_of_its_radius() -> None:
    """Released there it presses with 6 m g at the bottom, and with nothing at the top."""
    radius, height = 1.0, 2.5
    loop = cd.curve(
        lambda u: (-radius * ca.sin(u), 0, radius * (1 - ca.cos(u))), start=0, stop=2 * np.pi, closed=True, up="carried"
    )
    model = along(loop, turns=True)
    bottom, top = 0.0, np.pi * radius
    for s, drop, expected in ((bottom, height, 6.0), (top, height - 2 * radius, 0.0)):
        force = cd.reactions(model, [s], [np.sqrt(2 * G * drop)])[0, 3:]
        turning = (
            0.03 / 2.0 / radius**2
        )  # the part of the energy that turns it does not count: it is a given speed here
        assert turning > 0 and np.isclose(force[2], expected * 2.0 * G, atol=1e-5 * 2 * G)


def test_a_spiral_of_variable_pitch_agrees_with_lagrange() -> None:
    """`s'' = -g dz/ds`: the height over arc length is all that a bead without size knows of its wire."""
    curve = cd.curve(
        lambda u: ((1 + 0.1 * u) * ca.cos(u), (1 + 0.1 * u) * ca.sin(u), 0.05 * u**2),
        start=0.0,
        stop=9.0,
        name="spiral",
    )
    model = along(curve)
    s, h = np.linspace(0.3, curve.length - 0.3, 9), 1e-4
    slope = (curve(s + h)[:, 2] - curve(s - h)[:, 2]) / (2 * h)
    for formulation in FORMULATIONS:
        a = cd.forward_dynamics(model, s[:, None], 2.0 * np.ones((9, 1)), formulation=formulation)
        assert np.allclose(a[:, 0], -G * slope, atol=1e-5)
    run = cd.simulate(model, 1.5, [curve.length - 1.0])
    assert np.abs(run.energy - run.energy[0]).max() < 5e-5


def test_a_parabola_agrees_with_two_surfaces_and_with_a_joint_by_hand() -> None:
    from ..user_kinds import Wire

    k = 0.8
    curve = cd.curve(lambda u: (u, 0, k * u**2 / 2), start=-1.5, stop=1.5, name="wire")
    s = np.linspace(0, curve.length, 4001)
    q = float(np.interp(0.4, curve(s)[:, 0], s))
    slope = k * 0.4
    speed = 1.2 * np.hypot(1, slope)
    model = along(curve)
    a = cd.forward_dynamics(model, [q], [speed])[0]  # along the curve
    m = cd.Mechanism("by hand", gravity=(0, 0, -G))
    m.body("bead", mass=2.0, inertia=(0.02, 0.03, 0.04))
    m.joint("wire", Wire(k), m.ground, "bead")
    by_hand = cd.forward_dynamics(m.build(), [0.4], [1.2])[0]
    a_x = by_hand
    along_x = a_x * np.hypot(1, slope) + slope * k * 1.2**2 / np.hypot(1, slope)  # rate of the speed
    assert np.isclose(a, along_x, rtol=1e-5)
    free = (0.4, 0, k * 0.08, 1, 0, 0, 0), (0, 0, 0, 1.2, 0, 1.2 * slope)
    found = []
    for shape in (curve, (lambda x, y, z: z - k * x**2 / 2, lambda x, y, z: y)):
        m = cd.Mechanism("free bead", gravity=(0, 0, -G))
        m.body("bead", mass=2.0, inertia=(0.02, 0.03, 0.04))
        m.joint("float", cd.Free(), m.ground, "bead")
        m.on_curve("wire", "bead", m.ground, shape)
        free_bead = m.build()
        words = FORMULATIONS if shape is curve else FORMULATIONS[:1]
        found += [cd.forward_dynamics(free_bead, *free, formulation=word) for word in words]
    assert np.allclose(found, found[0], atol=1e-9)
    assert np.isclose(found[0][3], a_x, rtol=1e-9)


def test_a_pin_in_a_slot_moves_as_the_joint_does() -> None:
    """The same bead by a joint and by a constraint: motion, force, energy; with three integrators."""
    curve = helix()
    model = along(curve)
    q = 3.0
    m = cd.Mechanism("free bead", gravity=(0, 0, -G))
    m.body("bead", mass=2.0, inertia=(0.02, 0.03, 0.04))
    m.joint("float", cd.Free(), m.ground, "bead", start=(*curve(q), 1, 0, 0, 0))
    m.on_curve("slot", "bead", m.ground, curve)
    free = m.build()
    t = curve.axes(q)[:, 0]
    start, rates = cd.assemble(free, free.start(), [0, 0, 0, *(0.8 * t)])
    expected = cd.simulate(model, 0.6, [q], [0.8], samples=7, rtol=1e-9, atol=1e-11)
    methods: list[tuple[str, dict[str, Any], float]]
    methods = [("alpha", {"step": 2e-3}, 1e-4), ("gear", {}, 1e-4), ("dormand_prince", {}, 1e-6)]
    for method, options, tolerance in methods:
        run = cd.simulate(free, 0.6, start, rates, samples=7, method=method, **options)
        assert np.allclose(run["bead.position"], curve(expected.q[:, 0]), atol=tolerance)
        by_joint = cd.simulate(model, 0.6, [q], [0.8], samples=7, method=method, **options)
        assert np.allclose(by_joint.q, expected.q, atol=tolerance)
    force = run["slot.ground_force"]
    assert np.allclose(
        np.linalg.norm(force, axis=1), np.linalg.norm(expected.reaction("curve")[:, 3:], axis=1), rtol=1e-3
    )
    assert np.allclose(run["slot.point"], run["bead.position"], atol=1e-9)
    a = (force + np.array([0, 0, -2 * G])) / 2.0
    assert np.allclose(run["bead.acceleration"], a, atol=1e-6)  # the force acts at the point, whatever its components


def test_a_stop_at_the_end_of_a_curve_gives_back_its_share() -> None:
    """A body that turns goes on turning through the end, so that the energy is that of its restitution."""
    m = cd.Mechanism("helix", gravity=(0, 0, -G))
    m.body("bead", mass=2.0, com=(0, 0.1, 0), inertia=(0.1, 0.2, 0.15))
    m.joint("wire", cd.Curvilinear(helix()), m.ground, "bead", start=0.5)
    m.stop("end", "wire", lower=0.0, restitution=0.5)
    run = cd.simulate(m.build(), 0.8, samples=5)
    (event,) = run.events
    moving = cd.kinetic_energy(run.model, event.q, event.v) - cd.kinetic_energy(run.model, event.q, event.v_after)
    assert np.isclose(run.energy[0] - run.energy[-1], moving, rtol=1e-6)
    assert np.allclose(event.v_after, -0.5 * event.v)


def test_a_banked_curve_carries_a_car_without_a_force_across() -> None:
    """At the speed at which `tan(bank) = v^2 / (r g)`, the force of the track is along the frame's z."""
    radius, speed = 20.0, 12.0
    bank = np.arctan(speed**2 / (radius * G))
    for side in (1, -1):  # to the left, to the right: a positive bank leans to the right
        circle = cd.curve(
            lambda u, side=side: (radius * ca.cos(u), side * radius * ca.sin(u), 0), start=0, stop=2 * np.pi,
            closed=True, bank=-side * bank,
        )  # fmt: skip
        force = cd.reactions(along(circle, turns=True), [5.0], [speed])[0, 3:]
        assert np.allclose(force, [0, 0, 2.0 * np.hypot(G, speed**2 / radius)], atol=1e-5)


def test_a_closed_curve_counts_laps_where_its_joint_is_cut() -> None:
    radius = 0.5
    circle = cd.curve(lambda u: (radius * ca.cos(u), radius * ca.sin(u), 0), start=0, stop=2 * np.pi, closed=True)
    m = cd.Mechanism("arm", gravity=(0, 0, 0))
    m.body("arm", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.joint("pivot", cd.Revolute(), m.ground, "arm")
    m.body("bead", mass=2.0, inertia=(0.02, 0.03, 0.04))
    m.joint("slide", cd.Prismatic(axis=(1, 0, 0)), "arm", "bead", start=radius)
    m.joint("ring", cd.Curvilinear(circle), m.ground, "bead", child_at=cd.Pose(rpy=(0, 0, np.pi / 2)))
    model = m.build(cut=["ring"])
    q, v = cd.assemble(model, model.start(), [3.0, 0.0])
    run = cd.simulate(model, 5.0, q, v)
    assert np.allclose(run["ring.coordinate"].ravel(), radius * run.q[:, 0], atol=1e-5)
    assert run["ring.coordinate"].max() > 2 * circle.length


def test_a_curve_that_crosses_itself_is_a_joint_where_its_coordinate_is_known() -> None:
    """Flat eights: a body that turns is told from its direction; one that does not only by its own coordinate."""
    eight = cd.curve(lambda u: (ca.sin(u), ca.sin(2 * u), 0), start=0, stop=2 * np.pi, closed=True, name="eight")
    q = np.linspace(0, eight.length, 12)[:, None]
    model = along(eight, turns=True)
    a = cd.forward_dynamics(model, q, 1 + q)
    for formulation in FORMULATIONS[1:]:
        assert np.allclose(cd.forward_dynamics(model, q, 1 + q, formulation=formulation), a, atol=1e-7)
    model = along(eight)
    a = cd.forward_dynamics(model, q, 1 + q)
    assert np.allclose(cd.forward_dynamics(model, q, 1 + q, formulation="newton_euler"), a)
    with pytest.raises(cd.ModelError, match=r"comes back to within .* let the body turn with the curve"):
        cd.forward_dynamics(model, q, 1 + q, formulation="absolute")
    m = cd.Mechanism("pin", gravity=(0, 0, -G))
    m.body("bead", mass=2.0)
    with pytest.raises(cd.ModelError, match=r"'pin': curve 'eight' comes back .* connect a body to it with cd.Curvil"):
        m.on_curve("pin", "bead", m.ground, eight)
