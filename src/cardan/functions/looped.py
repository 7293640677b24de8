"""Quantities of models too large for one straight-line graph, put together from looped kernels and NumPy.

Each does what the graph of the same name does; a test compares the two.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from cardan.formulation.dynamics import LOADS_ON, loaded_bodies
from cardan.formulation.formulation import Formulation
from cardan.formulation.spatial import SPATIAL
from cardan.model.memory import KernelSlot
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.model.values import array
from cardan.structure.kernels import (
    LONG,
    LOOP_PAST,
    SECONDS_OF_A_PAIR,
    compile_quantity,
    duration,
    is_large,
    time_argument,
    tree_kernel,
)

_LOADS: KernelSlot[str] = KernelSlot("forces of force elements on a large tree")


OPERATIONS_OF_A_LINK = {"forward_dynamics": 600}  # unrolled, about; of others 100
OPERATIONS_A_SECOND = 1e5  # written and compiled, as a table at first, about


def warn_of_compiling(owner: str, model: Model, name: str, rows: int, columns: int) -> None:
    """Tell beforehand that derivatives (rows, columns) of a large model take long to compile, as one straight line."""
    links = len(model.tree.links)
    seconds = OPERATIONS_OF_A_LINK.get(name, 100) * links * (1 + min(rows, columns)) / OPERATIONS_A_SECOND
    seconds += SECONDS_OF_A_PAIR * links**2 if model.has_rows else 0.0
    if links <= LOOP_PAST or seconds < LONG:
        return
    warnings.warn(
        f"{owner}: this derivative of model {model.name!r} is not looped over its {links} links; compiling it may take "
        f"{duration(seconds)}. Looped, and compiled in seconds, are for trees without free parameters, along the "
        "tangent, in formulation 'spatial': forward_dynamics, inverse_dynamics, body_poses, frame_pose, body_twists, "
        "body_accelerations, bias_force, gravity_force, and cd.vjp and cd.jvp of these; docs/large.md",
        RuntimeWarning, stacklevel=2,
    )  # fmt: skip


def is_looped_tree(model: Model, formulation: Formulation) -> bool:
    """Whether dynamics are put together here: a large tree with or without force elements, by `spatial`."""
    return is_large(model) and not model.has_rows and formulation is SPATIAL


def has_looped_forces(model: Model, formulation: Formulation) -> bool:
    """Whether forces along the tree's coordinates are put together here, whatever rows hold: none act on cut joints."""
    on_joints = {force.on[0] for force in model.forces if force.kind.on == "joint"}
    return is_large(model) and formulation is SPATIAL and not on_joints & {*model.cuts}


def element_loads(model: Model, q: Any, v: Any, t: Any, threads: Any = None) -> tuple[Any, Any]:
    """Forces (..., nv) of force elements along the coordinates, and wrenches (..., nb, 6); None if there are none."""
    on, time = {force.kind.on for force in model.forces}, time_argument(model, t)
    Q = load_kernel(model, "joint")(q, v, *time, threads=threads) if "joint" in on else None
    if "bodies" not in on:
        return Q, None
    poses = tree_kernel(model, "body_poses")(q, threads=threads)
    twists = tree_kernel(model, "body_twists")(q, v, threads=threads)
    bodies = loaded_bodies(model)
    some = load_kernel(model, "bodies")(poses[..., bodies, :], twists[..., bodies, :], *time, threads=threads)
    W = np.zeros((*some.shape[:-2], model.nb, 6), some.dtype)
    W[..., bodies, :] = some
    return Q, W


def load_kernel(model: Model, on: str) -> Any:
    """The kernel of the force elements in joints, or of those between bodies, from their poses and twists."""
    return _LOADS.find(model, on, lambda: compile_quantity(model, LOADS_ON[on](model), "tree"))


def require_shapes(owner: str, model: Model, **arrays: Any) -> None:
    """Refuse wrong arrays in the name of the function that was called, not of a kernel that it is put together from."""
    sizes = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,), "tau": (model.nv,), "wrenches": (model.nb, 6)}
    for name, x in arrays.items():
        if x is not None:
            array(owner, name, x, *sizes.get(name, ()))


def total(*parts: Any) -> Any:
    """The sum of the parts that are there, None if there is none."""
    given = [np.asarray(part) for part in parts if part is not None]
    return sum(given[1:], given[0]) if given else None


def forward_dynamics(
    model: Model, q: Any, v: Any, tau: Any, wrenches: Any, t: Any, threads: Any = None
) -> np.ndarray:  # fmt: skip
    """Accelerations of a large tree with force elements."""
    require_shapes("forward_dynamics", model, q=q, v=v, tau=tau, wrenches=wrenches, t=t)
    Q, W = element_loads(model, q, v, t)
    force, W = total(tau, Q), total(wrenches, W)
    if W is None:
        return tree_kernel(model, "forward_dynamics")(q, v, force, threads=threads)
    return tree_kernel(model, "forward_dynamics_loaded")(q, v, force, W, threads=threads)


def inverse_dynamics(
    model: Model, q: Any, v: Any, a: Any, wrenches: Any, t: Any, threads: Any = None
) -> np.ndarray:  # fmt: skip
    """Joint forces of a large tree with force elements."""
    require_shapes("inverse_dynamics", model, q=q, v=v, a=a, wrenches=wrenches, t=t)
    Q, W = element_loads(model, q, v, t)
    W = total(wrenches, W)
    loaded = () if W is None else (W,)
    tau = tree_kernel(model, f"inverse_dynamics{'_loaded' if loaded else ''}")(q, v, a, *loaded, threads=threads)
    return tau if Q is None else tau - Q


def inverse_mass_matrix(model: Model, q: Any, formulation: Formulation, threads: Any = None) -> np.ndarray:
    """Column k is the acceleration that a unit joint force adds at rest."""
    if formulation.solves_mass_matrix:
        return np.linalg.inv(tree_kernel(model, "mass_matrix", formulation)(q, threads=threads))
    forward = tree_kernel(model, "forward_dynamics")
    q = np.asarray(q)
    rest = np.zeros(model.nv, q.dtype)
    moved = forward(q[..., None, :], rest, np.eye(model.nv, dtype=q.dtype), threads=threads)
    return np.swapaxes(moved - forward(q, rest, rest, threads=threads)[..., None, :], -1, -2)


def solve_forward(
    model: Model, q: Any, v: Any, tau: Any, wrenches: Any, formulation: Formulation, threads: Any = None
) -> np.ndarray:  # fmt: skip
    """Accelerations from the mass matrix and the forces that are left over."""
    if wrenches is None:
        force = tau - tree_kernel(model, "bias_force", formulation)(q, v, threads=threads)
    else:
        still = np.zeros(model.nv, np.asarray(q).dtype)
        force = tau - tree_kernel(model, "inverse_dynamics_loaded", formulation)(q, v, still, wrenches, threads=threads)
    return np.linalg.solve(tree_kernel(model, "mass_matrix", formulation)(q, threads=threads), force[..., None])[..., 0]


def jacobian(model: Model, q: Any, frame: str, threads: Any = None) -> np.ndarray:
    """From the axes of the joints on the way to the root, in ground components, to the frame's own."""
    link, at = model.placement(frame)
    on_path = np.zeros(model.nv)
    i = link
    while i != GROUND:
        on_path[model.tree.links[i].v] = 1.0
        i = model.tree.links[i].parent
    axes = tree_kernel(model, "joint_axes")(q, threads=threads) * on_path[:, None]
    pose = _link_pose(model, link, q, threads) @ at.matrix
    E, r = np.swapaxes(pose[..., :3, :3], -1, -2), pose[..., :3, 3]
    w, v = axes[..., :3], axes[..., 3:] + np.cross(axes[..., :3], r[..., None, :])
    return np.concatenate([E @ np.swapaxes(w, -1, -2), E @ np.swapaxes(v, -1, -2)], axis=-2)


def _link_pose(model: Model, link: int, q: Any, threads: Any) -> np.ndarray:
    if link == GROUND:
        return np.broadcast_to(np.eye(4), (*np.shape(q)[:-1], 4, 4))
    body = model.tree.body_link.index(link)
    flat = tree_kernel(model, "body_poses")(q, threads=threads)[..., body, :]
    return flat.reshape(*flat.shape[:-1], 4, 4) @ np.linalg.inv(model.tree.body_pose[body].matrix)


def centroidal_momentum(model: Model, q: Any, v: Any, formulation: Formulation, threads: Any = None) -> np.ndarray:
    """Momentum about the ground's origin, referred to the centre of mass."""
    h = tree_kernel(model, "momentum", formulation)(q, v, threads=threads)
    c = tree_kernel(model, "center_of_mass", formulation)(q, threads=threads)
    return np.concatenate([h[..., :3] - np.cross(c, h[..., 3:]), h[..., 3:]], axis=-1)
