"""Links without inertia that a loop holds: a particle at the pin of a cut belongs to either side.

The recursion divides by the inertia of what is beyond a joint. A massless coupler has none, but the point where its
loop is cut is a particle of the link on the other side too (AT, end of section 2.1). So the light link borrows some of
the mass there: the other link has so much less, nothing moves differently while the loop is closed, and the cut's force
follows by what the borrowed mass needs, AT(2).

Equations: AT(1), AT(2).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cardan.algebra.number import nominal, scalar
from cardan.errors import ModelError
from cardan.model.graph import GROUND
from cardan.model.planar import PlanarLink, PlanarModel

PART = 0.5  # of what the other link could give and still be a body


def borrowed(planar: PlanarModel) -> tuple[PlanarModel, dict[int, float]]:
    """The links with particles moved across cuts, and by joint how much was added to the cut's child."""
    links, moved = list(planar.links), dict[int, float]()
    for i in _light(planar):
        for cut in planar.cuts:
            if cut.role != "pin" or i not in (cut.parent, cut.child) or cut.joint in moved:
                continue
            at, other, place = (
                (cut.child_at, cut.parent, cut.at) if i == cut.child else (cut.at, cut.child, cut.child_at)
            )
            mass = PART * _spare(planar, links, other, place)
            if mass > 0 and (nominal(at).any() or links[i].role != "pin"):
                links[i] = _with(links[i], at, mass)
                if other != GROUND:
                    links[other] = _with(links[other], place, -mass)
                moved[cut.joint] = mass if i == cut.child else -mass
                break
        else:
            raise ModelError(
                f"formulation 'points': body {links[i].name!r} has no inertia in the plane (0 kg m^2 about its joint) "
                "and no loop closed by a revolute joint to a body with mass can lend it some; give it mass and inertia"
            )
    return (replace(planar, links=tuple(links)), moved) if moved else (planar, moved)


def _light(planar: PlanarModel) -> list[int]:
    """Links on pins that have no inertia, with nothing beyond them that has any."""
    heavy = [link.mass > 0 for link in planar.links]
    for i in reversed(range(len(heavy))):
        if heavy[i] and planar.links[i].parent != GROUND:
            heavy[planar.links[i].parent] = True
    return [i for i, link in enumerate(planar.links) if not heavy[i] and link.inertia <= 0]


def _spare(planar: PlanarModel, links: list[PlanarLink], other: int, place: tuple[float, float]) -> float:
    """The mass at a place without which a link would be no body any more."""
    if other == GROUND:
        return max((link.mass for link in links), default=0.0)
    link = links[other]
    if link.mass <= 0:
        return 0.0
    centre = np.array(link.first) / link.mass
    L2 = link.line.length**2
    about_centre = link.inertia - link.mass * scalar(centre @ centre) * L2
    arm = scalar(np.sum((np.array(place) - centre) ** 2)) * L2
    if about_centre <= 1e-12 * link.inertia:
        return 0.0
    return 1 / (1 / link.mass + arm / about_centre)


def _with(link: PlanarLink, place: tuple[float, float], mass: float) -> PlanarLink:
    """A link with a particle added."""
    first = (link.first[0] + mass * place[0], link.first[1] + mass * place[1])  # AT(1)
    inertia = link.inertia + mass * (place[0] ** 2 + place[1] ** 2) * link.line.length**2  # AT(1)
    return replace(link, mass=link.mass + mass, first=first, inertia=inertia)
