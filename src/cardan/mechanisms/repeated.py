"""Mechanisms of any number of equal parts: a lattice of pinned bars, a net of bars on balls, a track of shoes.

They grow with `n`: `lattice(100)` has 20,100 bodies and 10,000 loops. `chain` and `n_four_bar` do so too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.mechanisms.planar_bars import DOWN, Z, angle_of, bar, hinge
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Planar, Prismatic, Revolute, Spherical
from cardan.model.shape import Box, Cylinder


def lattice(
    n: int = 2, *, rows: int | None = None, length: float = 1.0, angle: float = 0.3, density: float = 2.0
) -> Mechanism:
    """A curtain of `n` x `rows` windows (by default n x n) of equal pinned bars (m), hung from the ground; planar.

    In each row n + 1 bars hang from the row above, and n level bars join their lower ends. Hinge `A{i}_{j}` carries
    hanging bar i of row j, `B{i}_{j}` the left end and `C{i}_{j}` the right end of level bar i. All bars of a row that
    hang stay parallel and all level bars stay level, so that it swings as a pendulum of `rows` bars, whose bar j has
    the inertia of n + 1 bars and at its end the mass of n. `angle` (rad) to the vertical at the start, `density` in
    kg/m.

    `rows` freedoms, one for each row; Kutzbach `rows (1 - 3 n)`. Where a row lies flat it has n + 1 for a moment.
    """
    rows = n if rows is None else rows
    _at_least_one("lattice", n=n, rows=rows)
    m = Mechanism(f"lattice_{n}x{rows}", gravity=DOWN)
    angles = {m.ground: 0.0}
    for j in range(rows):
        for i in range(n + 1):
            bar(m, name := f"hanging{i}_{j}", length, density)
            angles[name] = angle - np.pi / 2
            above, place = (f"hanging{i}_{j - 1}", length) if j else (m.ground, i * length)
            hinge(m, f"A{i}_{j}", above, name, angles, at=place)
        for i in range(n):
            bar(m, name := f"level{i}_{j}", length, density)
            angles[name] = 0.0
            hinge(m, f"B{i}_{j}", f"hanging{i}_{j}", name, angles, at=length)
            hinge(m, f"C{i}_{j}", name, f"hanging{i + 1}_{j}", angles, at=length, child_at=length)
    return m


def net(
    n: int = 2, *, rows: int | None = None, length: float = 0.2, angle: float = 0.5, density: float = 0.5,
    stiffness: float = 20.0,
) -> Mechanism:  # fmt: skip
    """A net of `n` x `rows` square meshes (by default n x n), hung from the ground: bars (m) on balls, and springs.

    The cords are rigid bars that meet in balls; in each row n + 1 bars hang from the row above, and n level bars join
    their lower ends. A spring (N/m) across each mesh, slack at the start, stands for the stiffness of the cloth. It
    starts flat, swung out by `angle` (rad) about its upper edge, x. `density` of the bars in kg/m.

    `rows (3 n + 3)` freedoms, of which `rows (2 n + 1)` turn a bar about its own length, and `rows (n + 2)` move knots;
    Kutzbach the same, no constraint is redundant.
    """
    rows = n if rows is None else rows
    _at_least_one("net", n=n, rows=rows)
    m = Mechanism(f"net_{n}x{rows}")
    mass, low, across = density * length, (0, 0, -length), (length, 0, 0)
    swung = (np.cos(angle / 2), np.sin(angle / 2), 0, 0)
    for j in range(rows):
        for i in range(n + 1):
            name = f"hanging{i}_{j}"
            solid = inertia.cylinder(mass, length / 20, length, axis="z")
            m.body(name, mass=mass, com=(0, 0, -length / 2), inertia=solid)
            above, place = (f"hanging{i}_{j - 1}", low) if j else (m.ground, (i * length, 0, 0))
            m.joint(f"A{i}_{j}", Spherical(), above, name, at=place, start=None if j else swung)
        for i in range(n):
            name, left, right = f"level{i}_{j}", f"hanging{i}_{j}", f"hanging{i + 1}_{j}"
            solid = inertia.cylinder(mass, length / 20, length, axis="x")
            m.body(name, mass=mass, com=(length / 2, 0, 0), inertia=solid)
            m.joint(f"B{i}_{j}", Spherical(), left, name, at=low)
            m.joint(f"C{i}_{j}", Spherical(), name, right, at=across, child_at=low)
            if stiffness:
                slack = length * float(np.sqrt(2))
                m.spring(f"cloth{i}_{j}", left, right, stiffness=stiffness, length=slack, at2=low)
    return m


def track(
    shoes: int = 14, *, pitch: float = 0.12, radius: float = 0.14, shoe: float = 0.8, wheel: float = 5.0,
    stiffness: float = 2e4,
) -> Mechanism:  # fmt: skip
    """A track of hinged shoes around a driving wheel and an idler, which slides and is pressed outwards by a spring.

    A loop of as many hinges as shoes: `pin{k}` joins shoe k - 1 to shoe k at its origin, `pitch` (m) apart. The wheels
    lie on z, `radius` (m) up to the pins; `axle` drives, `tension` (m) is the distance of the two axes, held by a
    spring (N/m) that is slack at the start. `shoe` and `wheel` are masses, kg; the wheels are discs.

    Idealised: there is no contact and no slack. Each pin stays on the closed curve around the wheels, at `radius` from
    the line between the two axes (`guide{k}`, one row for each shoe); the wheels roll on it, with the speed along it
    of the pin of shoe 0 (`rolling` and `idling`, rows on rates). Like a chain on sprockets, it is not uniform: the
    idler moves to and fro a little with every pin. The first shoe has a planar joint to the ground.

    One freedom; Kutzbach -2 with the rows of guides and rolling, three redundant constraints out of the plane.
    """
    turn = 2 * float(np.arcsin(min(pitch / (2 * radius), 1.0)))
    if not (0 < pitch < radius and shoes * turn > 2 * np.pi + turn):
        raise ModelError(
            f"track: {shoes} shoes of {pitch:g} m do not go around two wheels of radius {radius:g} m; a pitch below "
            f"the radius and more than {2 * np.pi / turn + 1 if turn else np.inf:.0f} shoes would"
        )
    m = Mechanism(f"track_{shoes}", gravity=DOWN)
    pins, reach = _pins_around(shoes, pitch, radius)
    angles = {f"shoe{k}": angle_of(end - begin) for k, (begin, end) in enumerate(pairwise([*pins, pins[0]]))}
    for k in range(shoes):
        solid = inertia.box(shoe, (pitch, pitch / 4, 2 * pitch))
        m.body(f"shoe{k}", mass=shoe, com=(pitch / 2, pitch / 8, 0), inertia=solid)
        m.shape(f"shoe{k}", Box((0.9 * pitch, pitch / 4, 2 * pitch), at=(pitch / 2, pitch / 8, 0), colour="#3b4149"))
    m.joint("start", Planar(), m.ground, "shoe0", start=(*pins[0], angles["shoe0"]))
    for k in range(1, shoes):
        hinge(m, f"pin{k}", f"shoe{k - 1}", f"shoe{k}", angles, at=pitch)
    hinge(m, "pin0", f"shoe{shoes - 1}", "shoe0", angles, at=pitch)
    m.body("carriage", mass=wheel / 2, inertia=inertia.box(wheel / 2, (radius / 2,) * 3))
    m.joint("tension", Prismatic(axis=(1, 0, 0)), m.ground, "carriage", start=reach)
    m.spring("tensioner", m.ground, "carriage", stiffness=stiffness, length=reach)
    for name, joint, carrier in (("driver", "axle", m.ground), ("idler", "idler axle", "carriage")):
        solid = inertia.cylinder(wheel, radius, pitch, axis="z")
        m.body(name, mass=wheel, inertia=solid)
        m.joint(joint, Revolute(axis=Z), carrier, name)
        m.shape(name, Cylinder(0.95 * radius, pitch, colour="#3f5fbf"))
        m.shape(name, Cylinder(0.12 * radius, 1.1 * pitch, at=(0.7 * radius, 0, 0), colour="#ffffff"))
    for k in range(shoes):
        m.constraint(f"guide{k}", [f"shoe{k}", "carriage"], _on_the_curve(radius))
    m.constraint("rolling", ["shoe0", "carriage", "driver"], _rolling(radius))
    m.constraint("idling", ["shoe0", "carriage", "idler"], _rolling(radius))
    return m


def _on_the_curve(radius: float) -> Callable[..., Any]:
    """A body's origin at `radius` (m) from the line between the ground's origin and that of a second body."""
    return lambda t, poses, twists: _outwards(poses)[1] - radius


def _rolling(radius: float) -> Callable[..., Any]:
    """The speed of the first body's origin along the curve, less that of a wheel's rim: forwards below, x above."""

    def slip(t: Any, poses: Any, twists: Any) -> Any:
        (x, y), distance = _outwards(poses)
        speed = poses[0].rotation @ twists[0][3:]
        return (y * speed[0] - x * speed[1]) / distance + radius * twists[2][2]

    return slip


def _outwards(poses: Any) -> tuple[tuple[Any, Any], Any]:
    """From the nearest point of the line between the axes to the first body's origin, and the distance, m."""
    import casadi as ca

    x, y = poses[0].position[0], poses[0].position[1]
    x = x - ca.fmax(0, ca.fmin(x, poses[1].position[0]))
    return (x, y), ca.sqrt(x * x + y * y)


def _pins_around(shoes: int, pitch: float, radius: float) -> tuple[list[np.ndarray], float]:
    """Places (2,) of pins `pitch` (m) apart around two wheels, clockwise from above the first; and how far apart these.

    The distance is found by bisection: the further the wheels are apart, the further is the last pin from the first.
    """
    least, most = 0.0, shoes * pitch / 2
    for _ in range(60):
        reach = (least + most) / 2
        around = 2 * reach + 2 * np.pi * radius
        at = [0.0]
        for _ in range(shoes):
            at.append(at[-1] + _next_pin(at[-1], pitch, radius, reach))
        least, most = (reach, most) if at[-1] > around else (least, reach)
    return [_place(s, radius, reach) for s in at[:-1]], reach


def _next_pin(s: float, pitch: float, radius: float, reach: float) -> float:
    """How far along the curve (m) the next pin is: on a straight, on a wheel, or between by bisection."""
    half, arc = np.pi * radius, 2 * radius * float(np.arcsin(pitch / (2 * radius)))
    ends = (reach, reach + half, 2 * reach + half, np.inf)
    piece = next(k for k, end in enumerate(ends) if s < end)
    step = arc if piece % 2 else pitch
    if s + step <= ends[piece]:
        return step
    here, low, high = _place(s, radius, reach), pitch, arc
    for _ in range(52):
        middle = (low + high) / 2
        near = float(np.linalg.norm(_place(s + middle, radius, reach) - here)) < pitch
        low, high = (middle, high) if near else (low, middle)
    return low


def _place(s: float, radius: float, reach: float) -> np.ndarray:
    """The point (2,) at arc length `s` (m) of the curve around two wheels, clockwise from above the first."""
    half = np.pi * radius
    s = s % (2 * reach + 2 * half)
    if s < reach:
        return np.array([s, radius])
    if s < reach + half:
        a = (s - reach) / radius
        return np.array([reach + radius * np.sin(a), radius * np.cos(a)])
    if s < 2 * reach + half:
        return np.array([2 * reach + half - s, -radius])
    a = (s - 2 * reach - half) / radius
    return np.array([-radius * np.sin(a), -radius * np.cos(a)])


def _at_least_one(owner: str, **counts: int) -> None:
    for name, count in counts.items():
        if not isinstance(count, int) or count < 1:
            raise ModelError(f"{owner}: {name} must be a whole number, 1 or more, got {count!r}")
