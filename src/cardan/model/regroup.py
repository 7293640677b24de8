"""Inertia moved across a joint that cannot tell the difference.

Part of a link's inertia acts the same on whichever side of its joint it sits: for a hinge, mass strung out along the
axis; for a ball joint, mass at its centre; for a slider, rotational inertia. Moving that part to the parent
changes no acceleration, joint force or energy, and leaves links whose inertia is mostly structural zeros: fewer
operations. Only the forces between bodies change, so reactions are computed with the true inertias.

Source: the base parameters of Gautier and Khalil (1990). Docs: docs/decisions/0004.
"""

from __future__ import annotations

import numpy as np

from cardan.algebra.spatial import Transform, shifted, turned
from cardan.model.joint import PRISMATIC, REVOLUTE, SPHERICAL, UNIVERSAL
from cardan.model.tree import GROUND, Tree


def regrouped_inertias(tree: Tree) -> list[np.ndarray]:
    """Inertia (6, 6) of each link after every movable part has gone to the parent, tips first."""
    inertias = [link.I for link in tree.links]
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        part = _movable(link.kind.name.removeprefix("reversed "), inertias[i])
        if part is None:
            continue
        kept = inertias[i] - part
        kept[part == inertias[i]] = 0.0
        inertias[i] = kept
        if link.parent != GROUND:
            X = Transform((turned(link.E), shifted(link.r)))
            inertias[link.parent] = inertias[link.parent] + X.congruence(part)
    return inertias


def _movable(kind: str, I: np.ndarray) -> np.ndarray | None:
    """The part of an inertia that does not notice the joint's motion."""
    part = np.zeros((6, 6), dtype=I.dtype)
    if kind == REVOLUTE.name:  # mass along the z axis: no inertia about z, centre of mass on z
        part[0, 0] = part[1, 1] = I[1, 1]
        part[[3, 4, 5], [3, 4, 5]] = I[3, 3]
        part[[0, 4], [4, 0]] = I[0, 4]
        part[[1, 3], [3, 1]] = I[1, 3]
    elif kind == PRISMATIC.name:  # a couple is the same wherever it acts
        part[:3, :3] = I[:3, :3]
    elif kind in (SPHERICAL.name, UNIVERSAL.name):  # a point mass at the centre
        part[[3, 4, 5], [3, 4, 5]] = I[3, 3]
    else:
        return None
    return part
