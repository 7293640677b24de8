"""Inertia moved across a joint that does not notice it.

Part of a link's inertia acts the same on whichever side of its joint it is: for a hinge, mass along the axis; for a
ball joint, mass at its centre; for a slider, rotational inertia (`Kind.unmoved`). Moving that part to the parent
changes no acceleration, joint force or energy, and makes most entries of the link's inertia structural zeros: fewer
operations. Only the forces between bodies change, so reactions are computed with the true inertias.

Source: the base parameters of Gautier and Khalil (1990). Docs: docs/decisions/0004.
"""

from __future__ import annotations

import numpy as np

from cardan.algebra.spatial import Transform, shifted, turned
from cardan.model.tree import GROUND, Tree


def regrouped_inertias(tree: Tree) -> list[np.ndarray]:
    """Inertia (6, 6) of each link after every such part has moved to the parent, from the tips to the root."""
    inertias = [link.I for link in tree.links]
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        if link.kind.unmoved is None:
            continue
        part = link.kind.unmoved(inertias[i])
        kept = inertias[i] - part
        kept[part == inertias[i]] = 0.0
        inertias[i] = kept
        if link.parent != GROUND:
            X = Transform((turned(link.E), shifted(link.r)))
            inertias[link.parent] = inertias[link.parent] + X.congruence(part)
    return inertias
