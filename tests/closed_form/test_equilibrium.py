"""Equilibria, steady motions and their stability against closed forms."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

import cardan as cd
from cardan.mechanisms import four_bar, slider_crank

pytestmark = pytest.mark.usefixtures("quick_code")

G = 9.81
Z = (0.0, 0.0, 1.0)
NONE = np.zeros((3, 3))


@cache
def rotating_pendulum(length: float = 0.5) -> cd.Model:
    """A bead on a hoop: a point mass that swings in a frame, which turns about the vertical."""
    m = cd.Mechanism("rotating_pendulum", gravity=(0, 0, -G))
    m.body("frame", mass=1.0, inertia=0.1 * np.eye(3))
    m.body("bob", mass=1.5, com=(0, 0, -length), inertia=NONE)
    m.joint("spin", cd.Revolute(axis=Z), m.ground, "frame")
    m.joint("swing", cd.Revolute(axis=(0, 1, 0)), "frame", "bob")
    return m.build()


@cache
def _truss() -> cd.Model:
    m = cd.Mechanism("truss", gravity=(0, 0, 0))
    m.body("slide", mass=0.0, inertia=NONE)
    m.body("node", mass=1.0, inertia=NONE)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "slide")
    m.joint("y", cd.Prismatic(axis=(0, 1, 0)), "slide", "node")
    for name, side in (("left", -1.0), ("right", 1.0)):
        m.spring(name, "ground", "node", stiffness=1000.0, length=1.0, at1=(side, 0, 0))
    return m.build().free("left.length", "right.length")


def truss(height: float) -> cd.Model:
    """Two inclined springs of 1000 N/m, half span 1 m, slack at a height, that meet in a node in a plane."""
    return _truss().at(dict.fromkeys(("left.length", "right.length"), np.hypot(1, height)))


def small_truss(span: float) -> cd.Model:
    """The shallow one with another half span, m, its node on a rail."""
    m = cd.Mechanism("small truss", gravity=(0, 0, 0))
    m.body("node", mass=1.0, inertia=NONE)
    m.joint("y", cd.Prismatic(axis=(0, 1, 0)), m.ground, "node", start=0.2 * span)
    for name, side in (("left", -span), ("right", span)):
        m.spring(name, "ground", "node", stiffness=1000.0, length=np.hypot(1, 0.2) * span, at1=(side, 0, 0))
    return m.build()


def column(links: int, axes: str = "ground", first: float = 2.0, masses: tuple[float, ...] = (1.0, 1.0)) -> cd.Model:
    """A cantilever of 1 m as a chain of links with springs of EI/l, point masses at their ends, a load at the tip."""
    m, at, before, length = cd.Mechanism("column", gravity=(0, 0, 0)), (0.0, 0.0, 0.0), "ground", 1.0 / links
    for k in range(links):
        m.body(f"b{k}", mass=masses[k], com=(length, 0, 0), inertia=NONE)
        m.joint(f"j{k}", cd.Revolute(axis=Z), before, f"b{k}", at=at)
        m.torsion(f"k{k}", f"j{k}", stiffness=(first if k == 0 else 1.0) / length)
        before, at = f"b{k}", (length, 0.0, 0.0)
    m.wrench("P", before, np.zeros(6), at=at, axes=axes)
    return m.build().free("P.value")


def test_a_rotating_pendulum_leaves_the_vertical_at_the_square_root_of_g_over_l() -> None:
    model, critical = rotating_pendulum(), np.sqrt(G / 0.5)
    speeds = critical * np.array([0.5, 1.1, 3.0])
    below = cd.equilibrium(model, {"swing": 0.0}, rates={"spin": speeds})
    assert below.kind.tolist() == ["stable", "unstable", "unstable"]
    away = cd.equilibrium(model, {"swing": 0.3}, rates={"spin": speeds}, stable=True)
    expected = np.arccos(np.minimum(1.0, (critical / speeds) ** 2))
    assert np.abs(away.coordinate("swing") - expected).max() < 1e-14
    assert away.is_stable.all() and away.is_steady.all()
    # small oscillations about the raised position: omega sin(theta)
    assert np.allclose(np.abs(away.eigenvalues[1:, 0]), (speeds * np.sin(expected))[1:], rtol=1e-12)

    path = cd.equilibrium_path(model, "spin.rate", (1.0, 8.0), max_step=0.3)
    (pitchfork,) = path.special
    assert pitchfork.kind == "bifurcation" and abs(pitchfork.value - critical) < 1e-12
    sides = [path.branch(sign=sign) for sign in (1, -1)]
    for branch in sides:
        assert np.abs(np.cos(branch.coordinate("swing")) - (critical / branch.values) ** 2).max() < 1e-12
        assert branch.is_stable.all() and abs(branch.values[-1] - 8.0) < 1e-12
    back = cd.equilibrium_path(model, "spin.rate", (8.0, 4.0), {"swing": 1.0}, max_step=0.3)  # along the branch
    assert [p.kind for p in back.special] == ["bifurcation"] and abs(back.special[0].value - critical) < 1e-10
    assert np.abs(back.branch(sign=1, points=5).coordinate("swing")).max() < 1e-6  # on to the vertical
    assert abs(sides[0].coordinate("swing")[-1] + sides[1].coordinate("swing")[-1]) < 1e-12


def test_trim_finds_a_speed_a_length_or_a_drive() -> None:
    model = rotating_pendulum()
    speed = cd.equilibrium(model, {"swing": 1.0}, hold="swing", rates={"spin": 3.0}, solve_for="spin.rate")
    assert abs(speed.unknowns["spin.rate"] - np.sqrt(G / 0.5 / np.cos(1.0))) < 1e-12
    held = cd.equilibrium(model, {"swing": 1.0}, hold="swing", rates={"spin": [0.0, 4.0]})
    wanted = 1.5 * 0.5 * np.sin(1.0) * (G - 0.5 * np.cos(1.0) * np.array([0.0, 16.0]))
    assert np.abs(held.drive("swing") - wanted).max() < 1e-13
    free = model.free("bob.com")
    length = cd.equilibrium(free, {"swing": 1.0}, hold="swing", rates={"spin": 5.0}, solve_for=["bob.com[2]", "spin"])
    assert abs(length.unknowns["bob.com[2]"] + G / np.cos(1.0) / 25.0) < 1e-13
    assert length.model.values is not None and abs(length.model.values[2] + G / np.cos(1.0) / 25.0) < 1e-13


def test_a_sleeping_top_stands_above_the_speed_of_the_classical_criterion() -> None:
    m = cd.Mechanism("top", gravity=(0, 0, -G))
    m.body("top", mass=1.0, com=(0, 0, 0.5), inertia=0.01 * np.eye(3))
    m.joint("tip", cd.Spherical(), m.ground, "top")
    critical = np.sqrt(4 * (0.01 + 0.25) * G * 0.5) / 0.01  # I3 omega = sqrt(4 A m g l)
    found = cd.equilibrium(m.build(), rates={"tip[2]": critical * np.array([0.0, 0.999, 1.001])})
    assert found.kind.tolist() == ["unstable", "unstable", "stable"]
    assert found.unstable.tolist() == [2, 2, 0] and found.is_steady.all()


def test_a_governor_with_loops_rises_as_porter_says() -> None:
    """Ball mass m, sleeve M, equal arms: height of each arm (m + M)/m g/omega^2."""
    ball, sleeve, arm = 2.0, 3.0, 0.3
    m = cd.Mechanism("governor", gravity=(0, 0, -G))
    m.body("spindle", mass=1.0, inertia=0.01 * np.eye(3))
    m.body("sleeve", mass=sleeve, inertia=NONE)
    m.joint("spin", cd.Revolute(axis=Z), m.ground, "spindle")
    m.joint("slide", cd.Prismatic(axis=Z), "spindle", "sleeve", start=-2 * arm * np.cos(0.5))
    for side, y in (("left", 1.0), ("right", -1.0)):
        m.body(f"{side} arm", mass=ball, com=(0, 0, -arm), inertia=NONE)
        m.body(f"{side} link", mass=0.0, inertia=NONE)
        m.joint(f"{side} top", cd.Revolute(axis=(0, y, 0)), "spindle", f"{side} arm", start=-0.5)
        knee = {"at": (0, 0, -arm), "start": 1.0}
        m.joint(f"{side} knee", cd.Revolute(axis=(0, y, 0)), f"{side} arm", f"{side} link", **knee)
        m.joint(f"{side} foot", cd.Revolute(axis=(0, y, 0)), "sleeve", f"{side} link", child_at=(0, 0, -arm))
    speeds = np.array([10.0, 12.0, 20.0])
    found = cd.equilibrium(m.build(), rates={"spin": speeds}, stable=True)
    assert np.abs(found.coordinate("slide") / -2 - (ball + sleeve) / ball * G / speeds**2).max() < 1e-13
    assert found.is_stable.all() and found.is_steady.all() and np.abs(found.drive("spin")).max() < 1e-12


def test_a_shallow_truss_snaps_through_at_its_limit_loads() -> None:
    model, rest = truss(0.2), np.hypot(1, 0.2)
    y = np.sqrt(rest ** (2 / 3) - 1)  # where the stiffness along y vanishes
    limit = 2000 * y * (1 - rest / np.hypot(1, y))
    path = cd.equilibrium_path(model, "y", (0.0, -20.0), {"y": 0.2}, max_step=0.3)
    first, second = path.special
    assert {first.kind, second.kind} == {"turning point"}
    assert abs(first.value - limit) < 1e-12 * 20 and abs(second.value + limit) < 1e-12 * 20
    assert abs(first.q[1] - y) < 1e-8 and abs(path.values[-1] + 20.0) < 1e-12 and path.coordinate("y")[-1] < -0.2
    micro = cd.equilibrium_path(small_truss(1e-6), "y", (0.0, -2e-5), max_step=0.3)  # a mechanism of micrometres
    assert np.allclose([p.value for p in micro.special], 1e-6 * limit * np.array([1, -1]), rtol=1e-11, atol=0)
    at_rest = path.at(0.0)
    assert [round(float(e.coordinate("y")), 12) for e in at_rest] == [0.2, 0.0, -0.2]
    assert [str(e.kind) for e in at_rest] == ["stable", "unstable", "stable"]
    # the same curve by displacement: the drive is the load, and there is no turning point
    curve = cd.equilibrium_path(model, "y.q", (0.2, -0.25), max_step=0.3)
    y = curve.coordinate("y")
    assert np.abs(curve.drive("y") - 2000 * y * (1 - rest / np.hypot(1, y))).max() < 1e-11 and not curve.special


def test_a_tall_truss_goes_sideways_before_its_limit_load() -> None:
    rest = np.hypot(1, 3.0)
    path = cd.equilibrium_path(truss(3.0), "y", (0.0, -6000.0), {"y": 3.0}, points=45)
    sideways = brentq(lambda length: 1 - rest / length + rest / length**3, np.sqrt(3), 3.1, xtol=1e-14)
    load = 2000 * np.sqrt(sideways**2 - 1) * (1 - rest / sideways)
    assert [p.kind for p in path.special[:2]] == ["bifurcation", "turning point"]
    assert abs(path.special[0].value - load) < 1e-10 * abs(load)
    branch = path.branch(points=20)
    assert np.abs(branch.coordinate("x")[-1]) > 0.1 and not branch.is_stable[1:].any()
    inner = brentq(lambda length: 1 - rest / length + rest / length**3, 1.1, np.sqrt(3), xtol=1e-14)
    load = 2000 * np.sqrt(inner**2 - 1) * (rest / inner - 1)
    for first in (2208.0, 2252.0):  # the search for the point leaves the path, and fails
        crossed = cd.equilibrium_path(truss(3.0), "y", (first, first + 600), {"y": -0.3 * first / 1240}, points=12)
        assert [p.kind for p in crossed.special] == ["bifurcation", "turning point"]
        assert abs(crossed.special[0].value - load) < 1e-10 * load
        assert np.abs(crossed.branch(points=8).coordinate("x")[-1]) > 0.1


def test_a_column_of_links_buckles_at_its_own_loads_and_a_follower_load_makes_it_flutter() -> None:
    links = 3
    path = cd.equilibrium_path(column(links, masses=(0.1,) * links), "P.value[3]", (0.0, -20.0), max_step=0.3)
    # springs of EI/l, the first twice as stiff: 4 EI/l^2 sin^2((2 n - 1) pi / (4 N))
    own = [4 * links**2 * np.sin((2 * n - 1) * np.pi / (4 * links)) ** 2 for n in (1, 2)]
    assert [p.kind for p in path.special] == ["bifurcation"] * 2
    assert np.abs(np.array([p.value for p in path.special]) + own).max() < 1e-10
    # Ziegler's column: links of 1/2, springs k = 2, masses 2 m and m: (7/2 - sqrt 2) k/l
    ziegler = column(2, axes="body", first=1.0, masses=(2.0, 1.0))
    (flutter,) = cd.equilibrium_path(ziegler, "P.value[3]", (0.0, -12.0), max_step=0.3).special
    assert flutter.kind == "flutter" and abs(flutter.value + (3.5 - np.sqrt(2)) * 4) < 1e-9


def test_a_hanging_chain_is_a_catenary_of_links() -> None:
    links, length, span, mass = 4, 0.375, 1.0, 0.1
    m, at, before, tilt = cd.Mechanism("chain", gravity=(0, -G, 0)), (0.0, 0.0, 0.0), "ground", np.arccos(1.0 / 1.5)
    for k in range(links):
        m.body(f"b{k}", mass=mass, com=(length / 2, 0, 0), inertia=NONE)
        start = -tilt if k == 0 else 2 * tilt if k == links // 2 else 0.0
        m.joint(f"j{k}", cd.Revolute(axis=Z), before, f"b{k}", at=at, start=start)
        before, at = f"b{k}", (length, 0.0, 0.0)
    m.joint("end", cd.Revolute(axis=Z), before, m.ground, at=at, child_at=(span, 0, 0))
    model = m.build()
    found = cd.equilibrium(model)
    weight = mass * G * (links / 2 - np.arange(links) - 0.5)  # vertical force in the middle of each link
    tension = brentq(lambda H: (length * np.cos(np.arctan(weight / H))).sum() - span, 0.1, 10.0, xtol=1e-15)
    directions = cd.body_poses(model, found.q)[:, :2, 0]
    expected = np.stack([np.full(links, tension), -weight], axis=1)
    expected /= np.linalg.norm(expected, axis=1)[:, None]
    assert np.abs(directions - expected).max() < 1e-13
    assert found.is_stable and found.residual < 1e-14


def test_a_slider_crank_with_a_spring_obeys_virtual_work() -> None:
    """The moment that holds the crank is the derivative of the energy by its angle; zero where it is least."""
    push = 30.0
    m = slider_crank(density=0.5)
    name = m.joints[-1].name
    m.torsion("spring", name, stiffness=200.0, rest=0.5)
    model = m.build()
    angles = np.array([0.4, 1.3, 2.2])
    held = cd.equilibrium(model, {"bearing": angles}, tau={name: push}, hold="bearing")
    energy = held.potential_energy - push * held.coordinate(name)
    step = 1e-4
    around = [cd.equilibrium(model, {"bearing": angles + h}, tau={name: push}, hold="bearing") for h in (step, -step)]
    plus, minus = (e.potential_energy - push * e.coordinate(name) for e in around)
    assert np.abs(held.drive("bearing") - (plus - minus) / (2 * step)).max() < 1e-6 * np.abs(energy).max()
    balanced = cd.equilibrium(model, tau={name: push}, stable=True)
    assert abs(cd.equilibrium(model, balanced.q, tau={name: push}, hold="bearing").drive("bearing")) < 1e-12
    assert balanced.is_stable and (balanced.potential_energy - push * balanced.coordinate(name) < energy).all()


def lift(**gains: Any) -> cd.Mechanism:
    """A car of 10 kg on a vertical rail, with a PID."""
    m = cd.Mechanism("lift")
    m.body("car", mass=10.0, inertia=np.eye(3))
    m.joint("rail", cd.Prismatic(axis=(0, 0, 1)), m.ground, "car")
    m.controller("servo", "rail", cd.PID(**gains))
    return m


def test_an_integral_holds_the_load_and_its_lack_leaves_a_droop() -> None:
    references = [0.0, 1.5]
    servo = lift(kp=400.0, ki=200.0, kd=120.0).build().at({"servo.reference": references})
    found = cd.equilibrium(servo)
    np.testing.assert_allclose(found.coordinate("rail"), references, atol=1e-12)
    np.testing.assert_allclose(found.unknowns["servo.integral"], 98.1, rtol=1e-12)
    poles = np.sort_complex(np.roots([10.0, 120.0, 400.0, 200.0]))
    for system in found.eigenvalues:
        np.testing.assert_allclose(np.sort_complex(system), poles, rtol=1e-10)
    np.testing.assert_allclose(np.sort_complex(cd.modes(found.model, found)[1].eigenvalues), poles, rtol=1e-10)
    assert (found.kind == "stable").all() and not np.abs(cd.linearise(found.model, found).drift).any()
    droop = cd.equilibrium(lift(kp=400.0, kd=120.0).build())
    np.testing.assert_allclose(droop.coordinate("rail"), -98.1 / 400.0)
    fast = cd.equilibrium(lift(kp=400.0, ki=5000.0, kd=120.0).build())  # Routh: 120 * 400 < 10 * 5000
    assert fast.unstable == 2
    with pytest.raises(cd.EquilibriumError, match=r"2 unstable directions"):
        cd.equilibrium(lift(kp=400.0, ki=5000.0, kd=120.0).build(), stable=True)


def test_a_regulated_linkage_reaches_its_reference_along_a_path() -> None:
    """The crank follows the reference; the moment of the motor's current and the integral hold the weight."""
    m = four_bar()
    m.controller("servo", "A", cd.PID(80.0, 30.0, 20.0))
    m.controller("motor", "A", cd.Motor(0.5, 1.0, inductance=0.1))
    model = m.build()
    voltage, goal = 1.2, 0.7
    here = cd.equilibrium(model.at({"servo.reference": goal, "motor.voltage": voltage}))
    plain = cd.equilibrium(four_bar().build(), {"A": goal}, hold="A")
    np.testing.assert_allclose(here.q, plain.q, atol=1e-10)
    np.testing.assert_allclose(here.unknowns["motor.current"], voltage)
    np.testing.assert_allclose(here.unknowns["servo.integral"], plain.drive("A") - 0.5 * voltage)
    other = cd.equilibrium(model.at({"servo.reference": goal}), formulation="absolute")
    np.testing.assert_allclose(other.q, plain.q, atol=1e-9)
    path = cd.equilibrium_path(model, "servo.reference", (0.5, 1.2), max_step=0.3)
    np.testing.assert_allclose(path.q[:, 0], path.values, atol=1e-9)
    assert "end of the range" in path.end and not path.unstable.any()


def test_what_has_no_rest_is_told_by_name() -> None:
    m = lift(kp=400.0, kd=120.0)
    m.variable("area", 0.0, rate=lambda s: s.coordinate("rail"))
    with pytest.raises(cd.EquilibriumError, match=r"variable 'area' still changes by -0.* the integral of something"):
        cd.equilibrium(m.build())
    m = lift(kp=400.0, kd=120.0)
    m.variable("path", 0.3, rate=lambda s: s.rate("rail"))  # at rest it stays where it is
    found = cd.equilibrium(m.build())
    assert found.neutral == 1 and found.unknowns["path"] == 0.3
    m = cd.Mechanism("lift")
    m.body("car", mass=10.0, inertia=np.eye(3))
    m.joint("rail", cd.Prismatic(axis=(0, 0, 1)), m.ground, "car")
    m.controller("servo", "rail", cd.PID(400.0, kd=120.0), every=0.1)
    with pytest.raises(cd.InputError, match=r"'servo.output' is sampled every 0.1 s.*solve_for=\['servo.output'\]"):
        cd.equilibrium(m.build())
    m.variable("seen", 1.0, every=0.1, update=lambda s: s.coordinate("rail"))  # acts on nothing
    held = cd.equilibrium(m.build(), {"rail": 0.4}, hold="rail", solve_for="servo.output")
    np.testing.assert_allclose([held.unknowns["servo.output"], held.q[0]], [98.1, 0.4])


def test_a_motor_that_turns_against_friction() -> None:
    """Steady motion: the speed that a voltage, R i + k w, keeps."""
    k, R, c, speed = 0.2, 1.5, 0.03, 12.0
    current = c * speed / k
    m = cd.Mechanism("shaft", gravity=(0, 0, 0))
    m.body("rotor", mass=1.0, inertia=np.eye(3))
    m.joint("spin", cd.Revolute(axis=(0, 0, 1)), m.ground, "rotor")
    m.friction("bearing", "spin", viscous=c)
    m.controller("motor", "spin", cd.Motor(k, R, inductance=0.02))
    model = m.build().at({"motor.voltage": R * current + k * speed})
    found = cd.equilibrium(model, rates={"spin": 1.0}, solve_for="spin.rate")
    np.testing.assert_allclose(found.unknowns["motor.current"], current)
    np.testing.assert_allclose(found.unknowns["spin.rate"], speed)
    poles = np.roots([0.02, R + 0.02 * c, R * c + k * k])
    np.testing.assert_allclose(np.sort(found.eigenvalues.real[np.abs(found.eigenvalues) > 1e-9]), np.sort(poles))
    assert found.is_steady and found.is_stable
