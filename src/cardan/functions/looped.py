"""Quantities of models too large for one straight-line graph, put together from looped kernels and NumPy.

Each does what the graph of the same name does; a test compares the two.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.structure.kernels import tree_kernel


def inverse_mass_matrix(model: Model, q: Any, formulation: Formulation) -> np.ndarray:
    """Column k is the acceleration that a unit joint force adds at rest."""
    if formulation.solves_mass_matrix:
        return np.linalg.inv(tree_kernel(model, "mass_matrix", formulation)(q))
    forward = tree_kernel(model, "forward_dynamics")
    q = np.asarray(q)
    rest = np.zeros(model.nv, q.dtype)
    moved = forward(q[..., None, :], rest, np.eye(model.nv, dtype=q.dtype))
    return np.swapaxes(moved - forward(q, rest, rest)[..., None, :], -1, -2)


def solve_forward(model: Model, q: Any, v: Any, tau: Any, wrenches: Any, formulation: Formulation) -> np.ndarray:
    """Accelerations from the mass matrix and the forces that are left over."""
    if wrenches is None:
        force = tau - tree_kernel(model, "bias_force", formulation)(q, v)
    else:
        still = np.zeros(model.nv, np.asarray(q).dtype)
        force = tau - tree_kernel(model, "inverse_dynamics_loaded", formulation)(q, v, still, wrenches)
    return np.linalg.solve(tree_kernel(model, "mass_matrix", formulation)(q), force[..., None])[..., 0]


def jacobian(model: Model, q: Any, frame: str) -> np.ndarray:
    """From the axes of the joints on the way to the root, in ground components, to the frame's own."""
    link, at = model.placement(frame)
    on_path = np.zeros(model.nv)
    i = link
    while i != GROUND:
        on_path[model.tree.links[i].v] = 1.0
        i = model.tree.links[i].parent
    axes = tree_kernel(model, "joint_axes")(q) * on_path[:, None]
    pose = _link_pose(model, link, q) @ at.matrix
    E, r = np.swapaxes(pose[..., :3, :3], -1, -2), pose[..., :3, 3]
    w, v = axes[..., :3], axes[..., 3:] + np.cross(axes[..., :3], r[..., None, :])
    return np.concatenate([E @ np.swapaxes(w, -1, -2), E @ np.swapaxes(v, -1, -2)], axis=-2)


def _link_pose(model: Model, link: int, q: Any) -> np.ndarray:
    if link == GROUND:
        return np.broadcast_to(np.eye(4), (*np.shape(q)[:-1], 4, 4))
    body = model.tree.body_link.index(link)
    flat = tree_kernel(model, "body_poses")(q)[..., body, :]
    return flat.reshape(*flat.shape[:-1], 4, 4) @ np.linalg.inv(model.tree.body_pose[body].matrix)


def centroidal_momentum(model: Model, q: Any, v: Any, formulation: Formulation) -> np.ndarray:
    """Momentum about the ground's origin, referred to the centre of mass."""
    h = tree_kernel(model, "momentum", formulation)(q, v)
    c = tree_kernel(model, "center_of_mass", formulation)(q)
    return np.concatenate([h[..., :3] - np.cross(c, h[..., 3:]), h[..., 3:]], axis=-1)
