"""Planar mechanisms with closed loops, modelled in space: hinges about z, gravity along -y.

A bar's frame is at its first hinge, x along the bar. A hinge's coordinate is the angle of its second bar to its first.
In space a planar loop of hinges and sliders has three redundant constraints: those out of the plane.
"""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.model import inertia
from cardan.model.builder import Mechanism
from cardan.model.joint import Prismatic, Revolute, Spherical, Universal

Z = (0.0, 0.0, 1.0)
DOWN = (0.0, -9.81, 0.0)


def four_bar(
    *, base: float = 1.0, crank: float = 0.4, coupler: float = 0.9, rocker: float = 0.7, angle: float = 1.0,
    density: float = 2.0,
) -> Mechanism:  # fmt: skip
    """Crank AB, coupler BC and rocker DC on the base AD; `angle` (rad) of the crank at the start, `density` in kg/m.

    One freedom; Kutzbach -2. With shortest + longest <= sum of the others (Grashof; so by default) the shortest bar
    turns fully. Rocker and coupler are in line in a dead position, where the rocker cannot drive.
    """
    m = Mechanism("four_bar", gravity=DOWN)
    B, D = crank * _direction(angle), np.array([base, 0.0])
    C = _corner("four_bar", B, coupler, D, rocker)
    angles = {m.ground: 0.0, "crank": angle, "coupler": _angle(C - B), "rocker": _angle(C - D)}
    for name, length in (("crank", crank), ("coupler", coupler), ("rocker", rocker)):
        _bar(m, name, length, density)
    _hinge(m, "A", m.ground, "crank", angles)
    _hinge(m, "B", "crank", "coupler", angles, at=crank)
    _hinge(m, "C", "coupler", "rocker", angles, at=coupler, child_at=rocker)
    _hinge(m, "D", m.ground, "rocker", angles, at=base)
    return m


def five_bar(
    *, base: float = 0.8, crank: float = 0.5, link: float = 0.7, angles: tuple[float, float] = (2.0, 0.9),
    density: float = 2.0,
) -> Mechanism:  # fmt: skip
    """Two equal cranks AB and ED on the base AE, joined by two equal links BC and DC: two freedoms; Kutzbach -1.

    `angles` (rad) of the two cranks at the start; `density` in kg/m. Where the links are in line the cranks lose
    control of C.
    """
    m = Mechanism("five_bar", gravity=DOWN)
    E = np.array([base, 0.0])
    B, D = crank * _direction(angles[0]), E + crank * _direction(angles[1])
    C = _corner("five_bar", B, link, D, link)
    turned = {m.ground: 0.0, "left crank": angles[0], "right crank": angles[1]}
    turned |= {"left link": _angle(C - B), "right link": _angle(C - D)}
    for side in ("left", "right"):
        _bar(m, f"{side} crank", crank, density)
        _bar(m, f"{side} link", link, density)
    _hinge(m, "A", m.ground, "left crank", turned)
    _hinge(m, "E", m.ground, "right crank", turned, at=base)
    _hinge(m, "B", "left crank", "left link", turned, at=crank)
    _hinge(m, "D", "right crank", "right link", turned, at=crank)
    _hinge(m, "C", "left link", "right link", turned, at=link, child_at=link)
    return m


def parallelogram(
    *, base: float = 1.0, crank: float = 0.5, cranks: int = 3, angle: float = 1.0, density: float = 2.0
) -> Mechanism:
    """Equal parallel cranks from the base to a coupler as long as the base: five bars with the default three cranks.

    One freedom, the coupler moving without turning; Kutzbach -6, and in the plane Grübler's count is 0, because the
    third crank is redundant. Flat (`angle` 0 or pi) it can change to another branch if it has two cranks.
    """
    if cranks < 2:
        raise ModelError(f"parallelogram: cranks must be 2 or more, got {cranks}")
    m = Mechanism("parallelogram", gravity=DOWN)
    angles = {m.ground: 0.0, "coupler": 0.0}
    _bar(m, "coupler", base, density)
    places = [base * k / (cranks - 1) for k in range(cranks)]
    for k, x in enumerate(places):
        angles[f"crank{k + 1}"] = angle
        _bar(m, f"crank{k + 1}", crank, density)
        _hinge(m, f"A{k + 1}", m.ground, f"crank{k + 1}", angles, at=x)
    for k, x in enumerate(places):
        _hinge(m, f"B{k + 1}", f"crank{k + 1}", "coupler", angles, at=crank, child_at=x)
    return m


def slider_crank(
    *, crank: float = 0.2, rod: float = 0.5, slider: float = 1.0, angle: float = 0.8, density: float = 2.0,
    variant: str = "planar",
) -> Mechanism:  # fmt: skip
    """Crank, connecting rod and a slider (kg) along x, at `crank cos(angle) + sqrt(rod^2 - crank^2 sin(angle)^2)`.

    One freedom. Variant "planar" has hinges at both ends of the rod: Kutzbach -2, three redundant constraints.
    Variant "spatial" has a ball at the crank pin and a universal joint at the slider: Kutzbach 1, none redundant.
    In the dead positions, `angle` 0 and pi, the slider cannot drive. `density` of crank and rod in kg/m.
    """
    if variant not in ("planar", "spatial"):
        raise ModelError(f"slider_crank: variant must be 'planar' or 'spatial', got {variant!r}")
    if abs(crank * np.sin(angle)) > rod:
        raise ModelError(f"slider_crank: a rod of {rod:g} m does not reach the line of the slider from {angle:g} rad")
    m = Mechanism("slider_crank" if variant == "planar" else "slider_crank_spatial", gravity=DOWN)
    pin = crank * _direction(angle)
    x = pin[0] + float(np.sqrt(rod**2 - pin[1] ** 2))
    angles = {m.ground: 0.0, "slider": 0.0, "crank": angle, "rod": _angle(np.array([x, 0.0]) - pin)}
    _bar(m, "crank", crank, density)
    _bar(m, "rod", rod, density)
    m.body("slider", mass=slider, inertia=inertia.box(slider, (0.1, 0.06, 0.06)))
    _hinge(m, "bearing", m.ground, "crank", angles)
    if variant == "planar":
        _hinge(m, "pin", "crank", "rod", angles, at=crank)
        _hinge(m, "wrist", "slider", "rod", angles, child_at=rod)
    else:
        half = (angles["rod"] - angle) / 2
        turn = (np.cos(half), 0, 0, np.sin(half))
        m.joint("pin", Spherical(), "crank", "rod", at=(crank, 0, 0), start=turn)
        hook = Universal(axis1=Z, axis2=(0, 1, 0))
        m.joint("wrist", hook, "slider", "rod", child_at=(rod, 0, 0), start=(angles["rod"], 0))
    m.joint("guide", Prismatic(axis=(1, 0, 0)), m.ground, "slider", start=x)
    return m


def scotch_yoke(*, crank: float = 0.3, yoke: float = 2.0, angle: float = 0.7, density: float = 2.0) -> Mechanism:
    """A crank whose pin carries a block in the upright slot of a yoke (kg) that slides along x.

    One freedom; Kutzbach -2. The yoke is at `crank cos(angle)` exactly, the block at `crank sin(angle)` in its slot.
    """
    m = Mechanism("scotch_yoke", gravity=DOWN)
    block = density * crank / 5
    _bar(m, "crank", crank, density)
    m.body("block", mass=block, inertia=inertia.box(block, (crank / 5,) * 3))
    m.body("yoke", mass=yoke, inertia=inertia.box(yoke, (crank / 5, 2.4 * crank, crank / 5)))
    angles = {m.ground: 0.0, "crank": angle, "block": 0.0, "yoke": 0.0}
    x, y = crank * _direction(angle)
    _hinge(m, "bearing", m.ground, "crank", angles)
    _hinge(m, "pin", "crank", "block", angles, at=crank)
    m.joint("slot", Prismatic(axis=(0, 1, 0)), "yoke", "block", start=y)
    m.joint("guide", Prismatic(axis=(1, 0, 0)), m.ground, "yoke", start=x)
    return m


def rack_and_pinion(*, radius: float = 0.1, pinion: float = 1.5, rack: float = 0.8) -> Mechanism:
    """A pinion (kg, a solid disc) on z and an upright rack (kg) that it raises by `radius` a radian.

    One freedom: the coupling takes one of two. Left alone the rack falls with `g rack / (rack + pinion / 2)`.
    """
    m = Mechanism("rack_and_pinion", gravity=DOWN)
    m.body("pinion", mass=pinion, inertia=inertia.cylinder(pinion, radius, radius / 2, axis="z"))
    m.body("rack", mass=rack, inertia=inertia.box(rack, (radius / 2, 10 * radius, radius / 2)))
    m.joint("bearing", Revolute(axis=Z), m.ground, "pinion")
    m.joint("guide", Prismatic(axis=(0, 1, 0)), m.ground, "rack", at=(radius, 0, 0))
    m.couple("teeth", {"guide": 1.0, "bearing": -radius})
    return m


def _bar(m: Mechanism, name: str, length: float, density: float) -> None:
    """A round bar along x from the frame's origin, a tenth as thick as it is long, of `density` kg/m."""
    mass = density * length
    m.body(name, mass=mass, com=(length / 2, 0, 0), inertia=inertia.cylinder(mass, length / 20, length, axis="x"))


def _hinge(
    m: Mechanism, name: str, parent: str, child: str, angles: dict[str, float], at: float = 0.0, child_at: float = 0.0
) -> None:
    """A hinge about z, `at` and `child_at` along the two bars; `angles` of all bars to the ground at the start."""
    start = angles[child] - angles[parent]
    m.joint(name, Revolute(axis=Z), parent, child, at=(at, 0, 0), child_at=(child_at, 0, 0), start=start)


def _direction(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


def _angle(d: np.ndarray) -> float:
    return float(np.arctan2(d[1], d[0]))


def _corner(owner: str, P: np.ndarray, p: float, Q: np.ndarray, q: float) -> np.ndarray:
    """The point at distance p from P and q from Q, to the left of the line from P to Q: the law of cosines."""
    d = Q - P
    l = float(np.linalg.norm(d))
    along = (p * p + l * l - q * q) / (2 * l) if l > 0 else np.inf
    if abs(along) > p:
        raise ModelError(f"{owner}: bars of {p:g} m and {q:g} m do not meet over a distance of {l:.4g} m")
    return P + along * d / l + np.sqrt(p * p - along * along) * np.array([-d[1], d[0]]) / l
