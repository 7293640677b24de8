"""Links without inertia: which they are, what is lent to them, and how the answer is corrected for it.

A massless coupler, a point mass at its own pin or a thin rod about its own axis have no inertia along some motion, so
that `M` cannot be inverted, though loops and joints hold them and the motion is determined. So `M` gets a little
inertia on the diagonal of their rates, and the answer is corrected for it (`formulation.solve.solve_lent`). Each
correction leaves as little of the error as the lent inertia is of all that moves.
"""

from __future__ import annotations

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.model.model import Model
from cardan.model.tree import Link, weightless_links

# A link is light if its inertia cannot be inverted: no mass, or a principal moment below this part of the largest.
LIGHT = 1e-9
LENT = 1e-6  # of the usual link's


def is_light(link: Link) -> bool:
    """Whether a link's own inertia (6, 6) cannot be inverted."""
    moments = np.linalg.eigvalsh(nominal(link.I_C))
    return link.mass == 0 or bool(moments[0] <= LIGHT * max(moments[-1], 1e-300))


def light_links(model: Model) -> list[int]:
    """Links that cannot move by themselves: what formulations with six rates a link lend inertia to."""
    return [i for i, link in enumerate(model.tree.links) if is_light(link)]


def lent_amounts(model: Model) -> tuple[float, float]:
    """Mass (kg) and moment (kg m^2) to lend to a link: a millionth of the usual link's.

    Where all links are rotors without mass, the mass is that of the moment a metre away. Nothing has nothing to lend.
    """
    heavy = [link for link in model.tree.links if link.mass > 0]
    rotors = [link for link in model.tree.links if nominal(link.I_C).any()]
    if not (heavy or rotors):
        return 0.0, 0.0
    moment = float(np.mean([np.trace(nominal(link.I[:3, :3])) / 3 for link in heavy or rotors]))
    mass = float(np.mean([nominal(link.mass) for link in heavy])) if heavy else moment
    return LENT * mass, LENT * moment


def lent_to_joints(model: Model) -> np.ndarray:
    """Inertia (nv,) lent along the tree's rates: to joints that can move without moving any."""
    lent = np.zeros(model.nv)
    if weightless := weightless_links(model.tree):
        mass, moment = lent_amounts(model)
        for i in weightless:
            link = model.tree.links[i]
            lent[link.v] = [moment if unit == "rad/s" else mass for unit in link.kind.v_units]
    return lent


def lent_to_links(model: Model) -> np.ndarray:
    """Inertia (6 links,) lent to light links that have six rates each, angular first."""
    lent = np.zeros((len(model.tree.links), 6))
    if light := light_links(model):
        mass, moment = lent_amounts(model)
        lent[light] = [moment] * 3 + [mass] * 3
    return lent.ravel()
