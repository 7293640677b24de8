"""Links without inertia that only a loop holds: a little is lent to them, and the answer corrected for it.

The recursion divides by the inertia of what is beyond a joint. A massless coupler has none, nor has a body with all its
mass at its own pin; a loop holds them, so the mechanism's motion is determined all the same. So a little
inertia is lent, and then what it needed, `m a` and `I0 y` of the answer, AT(10),(11), is given as a load, repeatedly.
Each time as little of the error is left as the lent inertia is of all that moves.

Equations: AT(10), AT(11).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cardan.algebra.free_number import nominal, nominal_of
from cardan.formulation.points.motion import Motion, from_points
from cardan.formulation.points.recursion import Answer, Lent, PointLoads, gather
from cardan.formulation.points.rows import turning
from cardan.model.plane import PlanarLink, PlanarModel
from cardan.model.tree import GROUND

PART = 1e-3  # of the smallest link's, lent: less costs digits, more costs corrections
LEAST = 1e-12  # of the whole mechanism's inertia: less is none
CORRECTIONS = 4


def lent_inertia(planar: PlanarModel) -> Lent:
    """Mass and inertia for every link whose joint could move without moving any, tips first."""
    fixed = replace(planar, links=tuple(_nominal(link) for link in planar.links))
    lent: Lent = {}
    heavy = [link for link in fixed.links if link.mass > 0]
    if len(heavy) == len(fixed.links) and all(_own_inertia(link) > LEAST * link.inertia for link in heavy):
        return lent
    size = max(max(link.line.length, float(np.linalg.norm(link.at))) for link in fixed.links)
    mass = min(link.mass for link in heavy)
    turning = [link.inertia for link in heavy if link.inertia > LEAST * link.mass * size**2]
    inertia = min(turning) if turning else mass * size**2
    whole = sum(link.mass * size**2 + link.inertia for link in heavy)
    while (i := _moving_nothing(fixed, lent, whole, size)) is not None:
        lent[i] = (PART * mass if fixed.links[i].role != "pin" else 0.0, PART * inertia)
    return lent


def _nominal(link: PlanarLink) -> PlanarLink:
    """A link with its free numbers at their nominal values."""
    at, first = nominal(link.at), nominal(link.first)
    mass, inertia = nominal_of(link.mass), nominal_of(link.inertia)
    return replace(link, at=(at[0], at[1]), first=(first[0], first[1]), mass=mass, inertia=inertia)


def _own_inertia(link: PlanarLink) -> float:
    """Inertia about the centre of mass, kg m^2."""
    return float(link.inertia - (link.first[0] ** 2 + link.first[1] ** 2) / link.mass * link.line.length**2)


def _moving_nothing(planar: PlanarModel, lent: Lent, whole: float, size: float) -> int | None:
    """The link next to a tip whose joint moves no inertia, the joints beyond giving way, in an arbitrary position."""
    found = gather(planar, _somewhere(planar), lent)
    for i, link in reversed(list(enumerate(planar.links))):
        if i in lent or link.role == "rigid":
            continue
        if link.role == "float":
            if min(link.mass * size**2, link.inertia) <= LEAST * whole:
                return i
            continue
        pivot = float(found[i].pivot)
        moved = 1 / pivot if np.isfinite(pivot) and pivot else 0.0
        if moved <= LEAST * (whole if link.role == "pin" else whole / size**2):
            return i
    return None


def _somewhere(planar: PlanarModel) -> Motion:
    """An arbitrary position of the links, at rest."""
    import casadi as ca

    rng = np.random.default_rng(0)
    P, angle = {GROUND: np.zeros(2)}, {GROUND: 0.0}
    d = {GROUND: np.array([1.0, 0.0])}
    for i, link in enumerate(planar.links):
        held = link.role in ("slide", "rigid")
        angle[i] = angle[link.parent] + (link.offset if held else rng.uniform(-1, 1))
        shift = sum((turning(u) @ d[link.parent] * rng.uniform(0.1, 1) for u in link.slide), np.zeros(2))
        P[i] = P[link.parent] + turning(link.at) @ d[link.parent] + shift
        d[i] = link.line.length * np.array([np.cos(angle[i]), np.sin(angle[i])])
    ends: Any = [(ca.DM(P[i]), ca.DM(P[i] + d[i])) for i in range(len(planar.links))]
    return from_points(planar, ends, [(0 * p, 0 * q) for p, q in ends])


def paid_back(lent: Lent, answer: Answer) -> PointLoads:
    """What the lent inertia needed, as loads."""
    loads = PointLoads()
    for i, (mass, inertia) in lent.items():
        loads.forces[i], loads.couples[i] = mass * answer.a[i], inertia * answer.y[i]
    return loads
