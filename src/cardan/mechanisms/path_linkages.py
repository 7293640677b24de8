"""Planar linkages known for the path of one of their points: straight lines, copies of a drawing, steps of a leg.

Hinges about z, gravity along -y. The point is a named frame, so that `run.position("pen")` is its path.
"""

from __future__ import annotations

import numpy as np

from cardan.errors import ModelError
from cardan.mechanisms.planar_bars import DOWN, angle_of, bar, corner, direction, hinge, plate
from cardan.model.builder import Mechanism

JANSEN_PIVOT = np.array([-0.380, -0.078])  # the fixed pivot Z from the crank's centre O, m
JANSEN = {  # lengths of the bars, m
    "crank": 0.150, "upper rod": 0.500, "lower rod": 0.619, "ZX": 0.415, "XW": 0.558, "ZW": 0.401, "ZY": 0.393,
    "WU": 0.394, "YU": 0.367, "US": 0.657, "YS": 0.490,
}  # fmt: skip


def hoeken(*, crank: float = 0.1, angle: float = 2.0, density: float = 2.0) -> Mechanism:
    """Hoeken's straight-line linkage: bars of 1 : 2 : 2.5 : 2.5, and a pen at 5 crank lengths on the coupler.

    While the crank turns through the half away from the rocker the pen follows the line `y = 4 crank` over a length of
    4 crank, within 0.3 % of it, with almost constant speed. `angle` (rad) of the crank at the start, `density` in kg/m.

    One freedom; Kutzbach -2.
    """
    m = Mechanism("hoeken", gravity=DOWN)
    base, link = 2 * crank, 2.5 * crank
    B, D = crank * direction(angle), np.array([base, 0.0])
    C = corner("hoeken", B, link, D, link)
    angles = {m.ground: 0.0, "crank": angle, "coupler": angle_of(C - B), "rocker": angle_of(C - D)}
    for name, length in (("crank", crank), ("coupler", 2 * link), ("rocker", link)):
        bar(m, name, length, density)
    hinge(m, "A", m.ground, "crank", angles)
    hinge(m, "B", "crank", "coupler", angles, at=crank)
    hinge(m, "C", "coupler", "rocker", angles, at=link, child_at=link)
    hinge(m, "D", m.ground, "rocker", angles, at=base)
    m.frame("pen", "coupler", at=(2 * link, 0, 0))
    return m


def peaucellier(
    *, crank: float = 0.2, arm: float = 0.6, side: float = 0.3, angle: float = 0.5, density: float = 2.0
) -> Mechanism:
    """Peaucellier's cell: two arms OB and OD, a rhombus BCDP, and a crank AC as long as OA: P draws an exact line.

    The cell inverts, `OC OP = arm^2 - side^2`; C runs on a circle through O, so P on the line
    `x = (arm^2 - side^2) / (2 crank)`. `angle` (rad) of the crank at the start, `density` in kg/m.

    One freedom; Kutzbach -8.
    """
    m = Mechanism("peaucellier", gravity=DOWN)
    O, A = np.zeros(2), np.array([crank, 0.0])
    C = A + crank * direction(angle)
    B, D = corner("peaucellier", O, arm, C, side), corner("peaucellier", C, side, O, arm)
    P = B + D - C
    ends = {
        "crank": (A, C), "upper arm": (O, B), "lower arm": (O, D), "BC": (B, C), "DC": (D, C), "BP": (B, P),
        "DP": (D, P),
    }  # fmt: skip
    angles = {m.ground: 0.0} | {name: angle_of(end - begin) for name, (begin, end) in ends.items()}
    for name, length in (("crank", crank), ("upper arm", arm), ("lower arm", arm)):
        bar(m, name, length, density)
    for name in ("BC", "DC", "BP", "DP"):
        bar(m, name, side, density)
    hinge(m, "A", m.ground, "crank", angles, at=crank)
    hinge(m, "O upper", m.ground, "upper arm", angles)
    hinge(m, "O lower", m.ground, "lower arm", angles)
    for place, arm_name in (("B", "upper arm"), ("D", "lower arm")):
        hinge(m, f"{place}1", arm_name, f"{place}P", angles, at=arm)
        hinge(m, f"{place}2", arm_name, f"{place}C", angles, at=arm)
    hinge(m, "C1", "crank", "BC", angles, at=crank, child_at=side)
    hinge(m, "C2", "crank", "DC", angles, at=crank, child_at=side)
    hinge(m, "P", "BP", "DP", angles, at=side, child_at=side)
    m.frame("pen", "BP", at=(side, 0, 0))
    return m


def pantograph(
    *, arm: float = 0.5, ratio: float = 2.0, angles: tuple[float, float] = (2.2, 0.7), density: float = 2.0
) -> Mechanism:
    """A drawing pantograph: the pen E copies the path of the stylus F, `ratio` times as large, from the pivot O.

    Two equal bars of `ratio arm` (m), O to C and C to E, and two short ones that complete a parallelogram with corner
    C and F opposite. O, F and E stay in line, and `OE = ratio OF`. `angles` (rad) of the long bars at the start,
    `density` in kg/m.

    Two freedoms; Kutzbach -1.
    """
    if not ratio > 1:
        raise ModelError(f"pantograph: ratio must be above 1, got {ratio:g}")
    m = Mechanism("pantograph", gravity=DOWN)
    long, rest = ratio * arm, (ratio - 1) * arm
    turned = {m.ground: 0.0, "OC": angles[0], "CE": angles[1] - np.pi}
    turned |= {"BF": turned["CE"], "DF": angles[0] - np.pi}
    for name, length in (("OC", long), ("CE", long), ("BF", arm), ("DF", rest)):
        bar(m, name, length, density)
    hinge(m, "O", m.ground, "OC", turned)
    hinge(m, "C", "OC", "CE", turned, at=long)
    hinge(m, "B", "OC", "BF", turned, at=arm)
    hinge(m, "D", "CE", "DF", turned, at=arm)
    hinge(m, "F", "BF", "DF", turned, at=arm, child_at=rest)
    m.frame("stylus", "BF", at=(arm, 0, 0))
    m.frame("pen", "CE", at=(long, 0, 0))
    return m


def jansen_leg(*, angle: float = 2.0, density: float = 2.0) -> Mechanism:
    """One leg of Theo Jansen's beach animals, with his lengths taken in centimetres.

    A crank at the origin drives two four-bars over a common fixed pivot Z; these carry the shin with the foot. For
    about half a turn the foot walks almost level, then it swings forwards in an arc. `angle` (rad) of the crank at the
    start, `density` in kg/m.

    One freedom; Kutzbach -8.
    """
    m = Mechanism("jansen_leg", gravity=DOWN)
    L, Z = JANSEN, JANSEN_PIVOT
    M = L["crank"] * direction(angle)
    X = corner("jansen_leg", Z, L["ZX"], M, L["upper rod"])
    Y = corner("jansen_leg", M, L["lower rod"], Z, L["ZY"])
    W = corner("jansen_leg", Z, L["ZW"], X, L["XW"])
    U = corner("jansen_leg", Y, L["YU"], W, L["WU"])
    third = corner("jansen_leg", np.zeros(2), L["ZW"], np.array([L["ZX"], 0.0]), L["XW"])
    foot = corner("jansen_leg", np.zeros(2), L["YS"], np.array([L["YU"], 0.0]), L["US"])
    ends = {
        "crank": (np.zeros(2), M), "upper rod": (M, X), "lower rod": (M, Y), "shoulder": (Z, X), "ZY": (Z, Y),
        "WU": (W, U), "shin": (Y, U),
    }  # fmt: skip
    angles = {m.ground: 0.0} | {name: angle_of(end - begin) for name, (begin, end) in ends.items()}
    for name in ("crank", "upper rod", "lower rod", "ZY", "WU"):
        bar(m, name, L[name], density)
    plate(m, "shoulder", L["ZX"], third, density)
    plate(m, "shin", L["YU"], foot, density)
    pivot = (float(Z[0]), float(Z[1]))
    hinge(m, "O", m.ground, "crank", angles)
    hinge(m, "M upper", "crank", "upper rod", angles, at=L["crank"])
    hinge(m, "M lower", "crank", "lower rod", angles, at=L["crank"])
    hinge(m, "Z upper", m.ground, "shoulder", angles, at=pivot)
    hinge(m, "Z lower", m.ground, "ZY", angles, at=pivot)
    hinge(m, "X", "shoulder", "upper rod", angles, at=L["ZX"], child_at=L["upper rod"])
    hinge(m, "Y rod", "ZY", "lower rod", angles, at=L["ZY"], child_at=L["lower rod"])
    hinge(m, "Y shin", "ZY", "shin", angles, at=L["ZY"])
    hinge(m, "W", "shoulder", "WU", angles, at=(float(third[0]), float(third[1])))
    hinge(m, "U", "shin", "WU", angles, at=L["YU"], child_at=L["WU"])
    m.frame("foot", "shin", at=(*foot, 0))
    return m


def watt_six_bar(
    *, base: float = 0.5, crank: float = 0.15, coupler: float = 0.45, rocker: float = 0.3, arm: float = 0.25,
    angle: float = 1.0, density: float = 2.0,
) -> Mechanism:  # fmt: skip
    """Watt's six-bar (second kind): a crank-rocker ABCD, whose rocker drives a second linkage DEFG in series.

    The rocker is a triangle with a second `arm` DE, one radian behind DC. Coupler and output of the second linkage
    are a parallelogram with this arm, on a base as long: the output GF turns exactly as the rocker does.
    `angle` (rad) of the crank at the start, `density` in kg/m.

    One freedom; Kutzbach -5.
    """
    m = Mechanism("watt_six_bar", gravity=DOWN)
    B, D = crank * direction(angle), np.array([base, 0.0])
    C = corner("watt_six_bar", B, coupler, D, rocker)
    turn = angle_of(C - D)
    angles = {
        m.ground: 0.0, "crank": angle, "coupler": angle_of(C - B), "rocker": turn, "link": 0.0,
        "output": turn - 1.0,
    }  # fmt: skip
    for name, length in (("crank", crank), ("coupler", coupler), ("link", base), ("output", arm)):
        bar(m, name, length, density)
    E = arm * direction(-1.0)
    plate(m, "rocker", rocker, E, density)
    hinge(m, "A", m.ground, "crank", angles)
    hinge(m, "B", "crank", "coupler", angles, at=crank)
    hinge(m, "C", "coupler", "rocker", angles, at=coupler, child_at=rocker)
    hinge(m, "D", m.ground, "rocker", angles, at=base)
    hinge(m, "E", "rocker", "link", angles, at=(float(E[0]), float(E[1])))
    hinge(m, "F", "link", "output", angles, at=base, child_at=arm)
    hinge(m, "G", m.ground, "output", angles, at=2 * base)
    return m


def stephenson_six_bar(*, crank: float = 0.1, angle: float = 1.0, density: float = 2.0) -> Mechanism:
    """Stephenson's six-bar (third kind) as a dwell: the output GF rests for half a turn of the crank.

    A crank-rocker ABCD with bars 1 : 3.5 : 3.5 on a base of 3 crank lengths carries a point P on its coupler, as far
    from C as B and D are. While the crank turns through the half away from D, P follows an arc about a point, 2.99
    crank lengths away, within half a percent of its travel. A link PF of that length therefore leaves F at rest; in
    the other half the output swings by 48 degrees and back. `angle` (rad) of the crank at the start, `density` in kg/m.

    One freedom; Kutzbach -5.
    """
    m = Mechanism("stephenson_six_bar", gravity=DOWN)
    base, bar_length, link, output = 3.0 * crank, 3.5 * crank, 2.9908 * crank, 2.0 * crank
    B, D, G = crank * direction(angle), np.array([base, 0.0]), crank * np.array([7.07, 6.38])
    C = corner("stephenson_six_bar", B, bar_length, D, bar_length)
    coupler = angle_of(C - B)
    point = 2 * bar_length * np.cos(0.3) * direction(-0.3)  # isosceles: CP = CB
    P = B + point[0] * direction(coupler) + point[1] * direction(coupler + np.pi / 2)
    F = corner("stephenson_six_bar", P, link, G, output)
    angles = {
        m.ground: 0.0, "crank": angle, "coupler": coupler, "rocker": angle_of(C - D), "link": angle_of(F - P),
        "output": angle_of(F - G),
    }  # fmt: skip
    for name, length in (("crank", crank), ("rocker", bar_length), ("link", link), ("output", output)):
        bar(m, name, length, density)
    plate(m, "coupler", bar_length, point, density)
    hinge(m, "A", m.ground, "crank", angles)
    hinge(m, "B", "crank", "coupler", angles, at=crank)
    hinge(m, "C", "coupler", "rocker", angles, at=bar_length, child_at=bar_length)
    hinge(m, "D", m.ground, "rocker", angles, at=base)
    hinge(m, "P", "coupler", "link", angles, at=(float(point[0]), float(point[1])))
    hinge(m, "F", "link", "output", angles, at=link, child_at=output)
    hinge(m, "G", m.ground, "output", angles, at=(float(G[0]), float(G[1])))
    return m
