"""Links without inertia: which they are, what is lent to them, and how the answer is corrected for it.

A massless coupler, a point mass at its own pin or a thin rod about its own axis have no inertia along some motion, so
that `M` cannot be inverted, though loops and joints hold them and the motion is determined. So `M` gets a little
inertia on the diagonal of their rates, and the answer is corrected for it (`formulation.solve.solve_lent`). Each
correction leaves as little of the error as the lent inertia is of all that moves. So nothing is lent to a thin rod that
its joints let spin about its own axis: what it has there is all that moves.
"""

from __future__ import annotations

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.model.joint import joint_transform
from cardan.model.model import Model
from cardan.model.tree import GROUND, Link, Tree, weightless_links

# A link is light if its inertia cannot be inverted: no mass, or a principal moment below this part of the largest.
LIGHT = 1e-9
LENT = 1e-6  # of the usual link's
NONE = 1e-13  # of the largest principal moment: so little is none
HELD = 1e-4  # of the inertia that turns with a link: if so little is lent, corrections leave nothing of it


def is_light(link: Link) -> bool:
    """Whether a link's own inertia (6, 6) cannot be inverted."""
    moments = np.linalg.eigvalsh(nominal(link.I_C))
    return link.mass == 0 or bool(moments[0] <= LIGHT * max(moments[-1], 1e-300))


def light_links(model: Model) -> list[int]:
    """Links that cannot move by themselves: what formulations with six rates a link lend inertia to."""
    light = [i for i, link in enumerate(model.tree.links) if is_light(link)]
    thin = {i: axis for i in light if (axis := _thin_axis(model.tree.links[i])) is not None}
    if not thin:
        return light
    moment, mobility = lent_amounts(model)[1], _mobilities(model.tree)
    return [i for i in light if i not in thin or moment * thin[i] @ mobility[i] @ thin[i] < HELD]


def _thin_axis(link: Link) -> np.ndarray | None:
    """The axis (3,) about which a link has least inertia, if it has some."""
    moments, axes = np.linalg.eigh(nominal(link.I_C))
    return axes[:, 0] if link.mass > 0 and moments[0] > NONE * moments[-1] else None


def _mobilities(tree: Tree) -> list[np.ndarray]:
    """Angular acceleration of each link per moment on it (3, 3), as the tree's joints let it turn, loops left open.

    At one arbitrary configuration: articulated inertias `IA` inwards, then `Omega`, acceleration per wrench, outwards.
    """
    rng = np.random.default_rng(0)
    IA, steps = [nominal(link.I) for link in tree.links], []
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        q = link.kind.plus(np.array(link.kind.neutral), rng.uniform(-1, 1, link.kind.nv))
        X = joint_transform(link.kind, q, link.E, nominal(link.r))
        S = link.kind.S(q)[:, : 0 if i in weightless_links(tree) else None]  # a joint that moves nothing is held
        A = np.zeros(S.shape[1]) if link.armature is None else nominal(link.armature)[: S.shape[1]]
        D, U = S.T @ IA[i] @ S + np.diag(A), IA[i] @ S
        steps.append((i, X, S, D, U))
        if link.parent != GROUND:
            IA[link.parent] = IA[link.parent] + X.congruence(IA[i] - U @ np.linalg.solve(D, U.T))
    Omega = [np.zeros((6, 6)) for _ in tree.links]
    for i, X, S, D, U in reversed(steps):
        carried = (np.eye(6) - S @ np.linalg.solve(D, U.T)) @ (X @ np.eye(6))
        parent = tree.links[i].parent
        Omega[i] = S @ np.linalg.solve(D, S.T) + (0.0 if parent == GROUND else carried @ Omega[parent] @ carried.T)
    return [each[:3, :3] for each in Omega]


def lent_amounts(model: Model) -> tuple[float, float]:
    """Mass (kg) and moment (kg m^2) to lend to a link: a millionth of the usual link's.

    Where all links are rotors without mass, the mass is that of the moment a metre away, and of point masses the moment
    is that of the mass. Nothing has nothing to lend.
    """
    heavy = [link for link in model.tree.links if link.mass > 0]
    rotors = [link for link in model.tree.links if nominal(link.I_C).any()]
    if not (heavy or rotors):
        return 0.0, 0.0
    moment = float(np.mean([np.trace(nominal(link.I[:3, :3])) / 3 for link in heavy or rotors]))
    mass = float(np.mean([nominal(link.mass) for link in heavy])) if heavy else moment
    return LENT * mass, LENT * (moment or mass)


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
