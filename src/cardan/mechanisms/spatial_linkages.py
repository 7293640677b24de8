"""Spatial mechanisms with closed loops, several of them over-constrained.

Each is described in one closed position: `_join` places a joint at its position there, so that its coordinates are
zero in that position unless stated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.algebra.rotation import rotation_to_axis, turn_x, turn_z
from cardan.errors import ModelError
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Cylindrical, JointType, Prismatic, Revolute, Spherical, Universal
from cardan.model.pose import Pose, read_pose
from cardan.model.shape import Box, Cylinder, Rod

X, Y, Z = np.eye(3)


def two_hinge_door(*, width: float = 0.9, height: float = 2.0, mass: float = 25.0) -> Mechanism:
    """A door on two hinges, one above the other on the z axis: one freedom; Kutzbach -4, five redundant constraints."""
    m = Mechanism("two_hinge_door")
    solid = inertia.box(mass, (width, 0.04, height))
    m.body("door", mass=mass, com=(width / 2, 0, height / 2), inertia=solid)
    for name, z in (("lower", 0.15 * height), ("upper", 0.85 * height)):
        m.joint(name, Revolute(axis=Z), m.ground, "door", at=(0, 0, z), child_at=(0, 0, z))
    m.shape("door", Box((width, 0.04, height), at=(width / 2, 0, height / 2), colour="wood"))
    m.shape("door", Rod((0.9 * width, -0.06, height / 2), (0.9 * width, 0.06, height / 2), 0.02, colour="brass"))
    return m


def cardan_joint(*, angle: float = 0.6) -> Mechanism:
    """Two shafts in fixed bearings at an `angle` (rad), joined by a universal joint; the first lies along x.

    One freedom, `tan(out) = tan(in) cos(angle)`; Kutzbach -2, three redundant constraints. The ratio of speeds runs
    from `cos(angle)` to `1 / cos(angle)` twice a turn. At the start the first shaft's fork stands across both shafts.
    """
    _sharp("cardan_joint", angle)
    m = Mechanism("cardan_joint", gravity=(0, 0, 0))
    poses = {m.ground: Pose(), "in": Pose(), "out": Pose(rotation=turn_z(angle))}
    _shaft(m, "in", -0.5)
    _shaft(m, "out", 0.5)
    _join(m, "input", Revolute(axis=X), m.ground, "in", poses, Pose())
    _join(m, "output", Revolute(axis=X), m.ground, "out", poses, poses["out"])
    _join(m, "cross", Universal(), "in", "out", poses, _cross_at((0, 0, 0), Z, poses["out"].rotation[:, 1]))
    return m


def drive_line(
    *, angle: float = 0.5, second_angle: float | None = None, phase: float = 0.0, length: float = 1.0,
    slip: bool = False,
) -> Mechanism:  # fmt: skip
    """Input, middle and output shaft, joined by two universal joints; all lie in the xy plane, the first along x.

    The middle shaft makes `angle` (rad) with the first, the last turns back from it by `second_angle` (by default the
    same: first and last are parallel). The middle shaft's second fork is turned by `phase` (rad) from its first.

    One freedom. With equal angles (of either sign) and phase 0 the output turns exactly as the input; with phase pi/2
    the errors of the two joints add: `tan(out) = tan(in) cos(angle) cos(second_angle)`. Kutzbach 0, one redundant
    constraint, the length of the middle shaft; with `slip` the output also slides along its axis, Kutzbach 1 and none.
    """
    second = angle if second_angle is None else second_angle
    _sharp("drive_line", angle)
    _sharp("drive_line", second)
    m = Mechanism("drive_line", gravity=(0, 0, 0))
    R_m, R_o = turn_z(angle), turn_z(angle - second)
    far = length * R_m[:, 0]
    poses = {m.ground: Pose(), "in": Pose(), "middle": Pose(rotation=R_m), "out": Pose(far, rotation=R_o)}
    for name, end in (("in", -0.5), ("middle", length), ("out", 0.5)):
        _shaft(m, name, end)
    bearing = Cylindrical(axis=X) if slip else Revolute(axis=X)
    fork = R_m @ turn_x(phase) @ Y
    _join(m, "input", Revolute(axis=X), m.ground, "in", poses, Pose())
    _join(m, "output", bearing, m.ground, "out", poses, poses["out"])
    _join(m, "cross1", Universal(), "in", "middle", poses, _cross_at((0, 0, 0), Z, R_m[:, 1]))
    across = np.cross(R_o[:, 0], fork)
    _join(m, "cross2", Universal(), "middle", "out", poses, _cross_at(far, fork, across / np.linalg.norm(across)))
    return m


def rscr(*, crank: float = 0.3, height: float = 0.8) -> Mechanism:
    """A spatial four-bar: crank (hinge on z), coupler (ball on the crank, sliding and turning on the rocker), rocker.

    One freedom; Kutzbach 1, no constraint is redundant. The rocker's hinge is at (0.9, 0.3, 0) m, its cylindrical
    joint `height` (m) above it; the ball keeps its distance from the cylinder's axis.
    """
    m = Mechanism("rscr")
    ball, foot, head = np.array([crank, 0.0, 0.1]), np.array([0.9, 0.3, 0.0]), np.array([0.8, 0.2, height])
    for name, begin, end in (("crank", np.zeros(3), ball), ("coupler", ball, head), ("rocker", foot, head)):
        _rod_between(m, name, begin, end)
    poses = {m.ground: Pose(), "crank": Pose(), "coupler": Pose(ball), "rocker": Pose(foot)}
    _join(m, "crank", Revolute(axis=Z), m.ground, "crank", poses, Pose())
    _join(m, "rocker", Revolute(axis=(0.1, 1.0, 0.2)), m.ground, "rocker", poses, Pose(foot))
    _join(m, "cylinder", Cylindrical(axis=(1.0, 0.3, 0.2)), "rocker", "coupler", poses, Pose(head))
    _join(m, "ball", Spherical(), "crank", "coupler", poses, Pose(ball))
    return m


def bennett(
    *, length: float = 0.5, twist: float = 0.6, other_twist: float = 1.1, angle: float = 1.0, density: float = 2.0
) -> Mechanism:
    """Bennett's linkage: four bars and four hinges, none parallel; opposite bars are alike.

    `twist` (rad) is the angle of the hinges at the ends of a bar of `length` (m), the bar square to both. The others
    have `other_twist` and the length that Bennett's condition requires: `length / sin(twist)` is the same for all.
    One freedom; Kutzbach -2. Neighbouring angles obey `tan(A/2) tan(B/2) = sin((other_twist + twist)/2) /
    sin((other_twist - twist)/2)`, the opposite ones are `C = -A`, `D = -B`; `angle` is A at the start.
    """
    if min(abs(np.sin(twist)), abs(np.sin(other_twist)), abs(np.sin((other_twist - twist) / 2))) < 1e-9:
        raise ModelError(f"bennett: twists must differ, and be neither 0 nor pi, got {twist:g} and {other_twist:g} rad")
    m = Mechanism("bennett")
    other = length * np.sin(other_twist) / np.sin(twist)
    ratio = np.sin((other_twist + twist) / 2) / np.sin((other_twist - twist) / 2)
    second = 2 * float(np.arctan(ratio / np.tan(angle / 2)))
    ends = [Pose((a, 0, 0), rotation=turn_x(t)) for a, t in ((length, twist), (other, other_twist))]
    before, at = m.ground, Pose()
    for k, (name, start) in enumerate((("A", angle), ("B", second), ("C", -angle))):
        mass = density * ends[k % 2].position[0]
        solid = inertia.cylinder(mass, mass / density / 20, mass / density, axis="x")
        link = m.body(f"bar{k + 1}", mass=mass, com=ends[k % 2].position / 2, inertia=solid)
        m.joint(name, Revolute(axis=Z), before, link, at=at, start=start)
        before, at = link, ends[k % 2]
    # the fourth bar is the ground, its end the hinge A
    m.joint("D", Revolute(axis=Z), before, m.ground, at=at, child_at=ends[1].inverse, start=-second)
    return m


def sarrus(*, bar: float = 0.5, width: float = 0.4, angle: float = 0.9) -> Mechanism:
    """Sarrus' linkage: a plate on two folding legs of two equal bars (m), in planes at right angles.

    The plate rises straight along z, at `2 bar sin(angle)`, with hinges alone. One freedom; Kutzbach 0.
    Flat, `angle` 0, both legs are stretched and it gains freedoms.
    """
    m = Mechanism("sarrus")
    rise = bar * np.sin(angle)
    poses = {m.ground: Pose(), "plate": Pose((0, 0, 2 * rise))}
    m.body("plate", mass=2.0, inertia=inertia.box(2.0, (width, width, 0.02)))
    m.shape("plate", Box((width, width, 0.02), colour="#8d97a3"))
    for leg, out, axis in (("x", X, Y), ("y", Y, X)):
        foot = out * width / 2
        knee = foot + out * bar * np.cos(angle) + Z * rise
        head = foot + 2 * rise * Z
        for part, begin, end in (("lower", foot, knee), ("upper", knee, head)):
            _rod_between(m, f"{part} {leg}", begin, end)
            poses[f"{part} {leg}"] = Pose(begin)
        _join(m, f"foot {leg}", Revolute(axis=axis), m.ground, f"lower {leg}", poses, Pose(foot))
        _join(m, f"knee {leg}", Revolute(axis=axis), f"lower {leg}", f"upper {leg}", poses, Pose(knee))
        _join(m, f"head {leg}", Revolute(axis=axis), f"upper {leg}", "plate", poses, Pose(head))
    return m


def stewart_platform(
    *, base: float = 1.0, platform: float = 0.6, spread: float = 0.2, mass: float = 20.0, at: Any = (0.0, 0.0, 1.0)
) -> Mechanism:
    """Six legs from the ground to a platform (kg), each a universal joint, a slider and a ball.

    Six freedoms; Kutzbach 6, no constraint is redundant. The coordinate of `slider{k}` is the length (m) of leg k.
    Joints lie in pairs on circles of radius `base` and `platform` (m), `spread` (rad) to either side of three
    directions, those of the platform half way between those of the ground. `at` is where the platform starts:
    a position (3,), m, or a `Pose`. Turned by a right angle about z it is singular.
    """
    m = Mechanism("stewart_platform")
    start = read_pose("stewart_platform", "at", at)
    m.body("platform", mass=mass, inertia=inertia.cylinder(mass, platform, 0.05, axis="z"))
    for k in range(6):
        third, side = 2 * np.pi / 3 * (k // 2), 1 if k % 2 == 0 else -1
        foot = base * turn_z(third + side * spread)[:, 0]
        head = platform * turn_z(third + side * (np.pi / 3 - spread))[:, 0]
        leg = start.position + start.rotation @ head - foot
        length = float(np.linalg.norm(leg))
        frame = Pose(foot, rotation=rotation_to_axis(leg / length))
        part = 0.6 * length
        solid = inertia.cylinder(1.0, part / 30, part, axis="z")
        m.body(f"lower{k + 1}", mass=1.0, com=(0, 0, part / 2), inertia=solid)
        m.body(f"upper{k + 1}", mass=1.0, com=(0, 0, -part / 2), inertia=solid)
        turn = Pose(rotation=frame.rotation.T @ start.rotation).quaternion
        m.joint(f"foot{k + 1}", Universal(), m.ground, f"lower{k + 1}", at=frame)
        m.joint(f"slider{k + 1}", Prismatic(axis=Z), f"lower{k + 1}", f"upper{k + 1}", start=length)
        m.joint(f"ball{k + 1}", Spherical(), f"upper{k + 1}", "platform", child_at=head, start=turn)
        m.shape(f"lower{k + 1}", Rod((0, 0, 0), (0, 0, part), base / 30, colour="#3f5fbf"))
        m.shape(f"upper{k + 1}", Rod((0, 0, -part), (0, 0, 0), base / 60, colour="#b9c2cc"))
    m.shape("platform", Cylinder(1.1 * platform, 0.05, at=(0, 0, 0.03), colour="#d9731a"))
    m.shape(m.ground, Cylinder(1.15 * base, 0.05, at=(0, 0, -0.04), colour="#8d97a3"))
    return m


def delta_robot(
    *, base: float = 0.2, platform: float = 0.06, arm: float = 0.25, forearm: float = 0.5, half: float = 0.04,
    load: float = 0.5, drop: float = 0.45,
) -> Mechanism:  # fmt: skip
    """A Delta robot: three arms (m) on a fixed plate, each moving the platform (kg) by a parallelogram of two rods.

    The arms' hinges lie on a circle of radius `base`, tangent to it; the rods, `2 half` apart, end on a circle of
    radius `platform`. The rods keep the platform level: it moves along x, y, z and never turns. With the platform at
    (x, y, z) the knee of an arm is `forearm` away from the platform's corner: a quadratic equation for its angle.
    `drop` (m) of the platform below the plate at the start; a positive angle lowers an arm.

    Three freedoms; Kutzbach 3, no constraint is redundant.
    """
    m = Mechanism("delta_robot")
    reach = base - platform
    l2, r2 = arm**2 + drop**2 + reach**2 - forearm**2, 2 * arm * float(np.hypot(reach, drop))
    if abs(l2) > r2:
        raise ModelError(f"delta_robot: arms of {arm:g} m and rods of {forearm:g} m do not reach {drop:g} m down")
    # |(reach + arm cos a, arm sin a - drop)| = forearm, with the knee on the outer side
    angle = float(np.arctan2(drop, -reach) - np.arccos(l2 / r2))
    poses = {m.ground: Pose(), "platform": Pose((0, 0, -drop))}
    m.body("platform", mass=load, inertia=inertia.cylinder(load, platform, 0.02, axis="z"))
    for k in range(1, 4):
        R = turn_z(2 * np.pi / 3 * (k - 1))
        out, side = R[:, 0], R[:, 1]
        hip, knee = base * out, base * out + arm * (np.cos(angle) * out - np.sin(angle) * Z)
        _rod_between(m, f"arm{k}", hip, knee, density=4.0)
        poses[f"arm{k}"] = Pose(hip)
        _join(m, f"hip{k}", Revolute(axis=side), m.ground, f"arm{k}", poses, Pose(hip))
        for rod, shift in ((f"left rod{k}", half * side), (f"right rod{k}", -half * side)):
            begin, end = knee + shift, platform * out - drop * Z + shift
            _rod_between(m, rod, begin, end, density=0.3)
            poses[rod] = Pose(begin)
            along = (end - begin) / np.linalg.norm(end - begin)
            cross = _cross_at(begin, side, np.cross(along, side))
            _join(m, f"{rod} upper", Universal(), f"arm{k}", rod, poses, cross)
            _join(m, f"{rod} lower", Spherical(), rod, "platform", poses, Pose(end))
            m.shape(rod, Rod((0, 0, 0), end - begin, 0.008, colour="#b9c2cc"))
        m.shape(f"arm{k}", Rod((0, 0, 0), knee - hip, 0.018, colour="#d9731a"))
        m.shape(f"arm{k}", Rod(knee - hip - half * side, knee - hip + half * side, 0.010, colour="#3b4149"))
        m.shape("platform", Rod(platform * out - half * side, platform * out + half * side, 0.010, colour="#3f5fbf"))
        m.shape(m.ground, Rod(hip - 0.06 * side, hip + 0.06 * side, 0.03, colour="#65707d"))
    m.shape("platform", Cylinder(platform, 0.015, colour="#3f5fbf"), Rod((0, 0, 0), (0, 0, -0.08), 0.012))
    m.shape(m.ground, Cylinder(0.9 * base, 0.03, at=(0, 0, 0.03), colour="#8d97a3"))
    return m


def _join(
    m: Mechanism, name: str, type: JointType, parent: str, child: str, poses: dict[str, Pose], where: Pose
) -> None:
    """A joint whose frame is at `where` on the ground while the bodies are at `poses`."""
    m.joint(name, type, parent, child, at=poses[parent].inverse @ where, child_at=poses[child].inverse @ where)


def _cross_at(position: Any, first: np.ndarray, second: np.ndarray) -> Pose:
    """Frame of a universal joint with these two axes, perpendicular unit vectors."""
    return Pose(position, rotation=np.column_stack([first, second, np.cross(first, second)]))


def _shaft(m: Mechanism, name: str, end: float) -> None:
    """A shaft of 3 kg/m along x from the frame's origin to `end` (m), 6 cm thick."""
    mass = 3.0 * abs(end)
    m.body(name, mass=mass, com=(end / 2, 0, 0), inertia=inertia.cylinder(mass, 0.03, abs(end), axis="x"))


def _rod_between(m: Mechanism, name: str, begin: np.ndarray, end: np.ndarray, density: float = 2.0) -> None:
    """A round rod of `density` (kg/m) between two points; its frame is at the first, parallel to the ground's."""
    d = end - begin
    length = float(np.linalg.norm(d))
    solid = inertia.cylinder(density * length, length / 20, length, axis=d)
    m.body(name, mass=density * length, com=d / 2, inertia=solid)


def _sharp(owner: str, angle: float) -> None:
    """Refuse an angle at which a universal joint locks."""
    if not abs(angle) < 0.499 * np.pi:
        raise ModelError(f"{owner}: the angle of two shafts must be below a right angle, got {angle:g} rad")
