"""Whether a mechanism moves in a plane: by each joint alone, or by the motions that all constraints together allow.

The second rule: at configurations that nothing singles out, every velocity that the loops and couplings allow turns
every body about one direction `K`, the same always, and moves its origin across `K`. Then the bodies stay in the plane
as they move. Prescribed motions count with the velocities that they impose.
"""

from __future__ import annotations

import numpy as np

from cardan.algebra.matrix import snap
from cardan.errors import ModelError
from cardan.formulation.formulation import Formulation
from cardan.formulation.registry import find_formulation
from cardan.model import plane as planar
from cardan.model.memory import Slot, require_model
from cardan.model.model import Model
from cardan.model.plane import PLANE, PlanarModel, Plane, named_plane, planar_model
from cardan.model.tree import GROUND
from cardan.structure.assemble import closed_start, constraint_kernels
from cardan.structure.kernels import symbolic, time_argument, tree_kernel
from cardan.structure.rows import SMALL, generic_configurations, scaled_rows

LEAVES = 1e-7  # of the fastest body's velocity: more leaves the plane
TIMES = (0.0, 0.37)  # s, where prescribed motions are looked at

_FOUND: Slot[None, Plane | ModelError | None] = Slot("plane found, or why there is none")


def is_planar(model: Model) -> bool:
    """Whether a mechanism moves in a plane."""
    require_model("is_planar", model)
    try:
        find_plane(model)
    except ModelError as error:
        if isinstance(error, AttributeError):  # it is no model yet
            raise
        return False
    return True


def in_plane(model: Model) -> np.ndarray:
    """Projectors (number of joints, 6, 6): the part of a joint's wrench, in its own axes, that acts in the plane.

    In the plane the formulation `points` knows this part alone; the rest of its reactions is zero.
    """
    require_model("in_plane", model)
    find_plane(model)
    return planar.in_plane(model.unbound)


def prepare(model: Model, formulation: Formulation) -> None:
    """Find what a formulation must know of a mechanism before its equations are written; refuse what it cannot do."""
    formulation.require(model)
    if formulation.is_planar:
        find_plane(model)


def find_plane(model: Model) -> PlanarModel:
    """A mechanism in its plane; if it leaves it, the error names the first joint and body that do, and how."""
    home = model.unbound
    found = _FOUND.find(home, None, lambda: _plane_or_error(home))
    if isinstance(found, ModelError):
        raise found
    for written in (home, symbolic(home)[0]):  # which graphs are written with
        PLANE.put(written, None, found)
    return planar_model(home)


def _plane_or_error(model: Model) -> Plane | ModelError | None:
    """Nothing where the joints' axes suffice."""
    try:
        planar_model(model)
    except ModelError as error:
        if not model.has_rows or "singular" in str(error):
            return error
        try:
            plane = _plane_of_motion(model)
            planar.described(model, plane)
        except ModelError as reason:
            return reason
        return plane
    return None


def _plane_of_motion(model: Model) -> Plane:
    """The plane in which all allowed velocities lie."""
    turning, moving = _velocities(model)
    fastest = max(float(np.abs(turning).max(initial=0.0)), float(np.abs(moving).max(initial=0.0)), 1e-300)
    K = _normal(turning / fastest, moving / fastest)
    for i, link in enumerate(model.tree.links):
        w, v = turning[:, i] / fastest, moving[:, i] / fastest
        for name, out in (("turn about", w - np.outer(w @ K, K)), ("move along", np.outer(v @ K, K))):
            worst = int(np.argmax(np.linalg.norm(out, axis=1), axis=0)) if len(out) else 0
            if len(out) and np.linalg.norm(out[worst]) > LEAVES:
                way = out[worst] / np.linalg.norm(out[worst])
                joint = model.joints[link.joint]
                raise ModelError(
                    f"{planar.not_planar(model)}: joint {joint.name!r} ({link.kind.title}) takes body {link.name!r} "
                    f"out of {named_plane(K)}, and no loop keeps it there: it can {name} "
                    f"({', '.join(f'{x + 0.0:.4g}' for x in snap(way, 1e-9))})"
                )
    return Plane(K, _joint_poses(model, closed_start(model)[1]))


def _velocities(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Angular velocity and velocity of the origin (count, links, 3) of every link, in the ground's axes."""
    turning, moving = [], []
    for q in generic_configurations(model):
        _, s, V = np.linalg.svd(scaled_rows(model, q))
        allowed = list(V[int((s > SMALL).sum()) :])
        for t in TIMES if any(c.depends_on_time for c in model.couplings) else ():
            J, beta = constraint_kernels(model)[1](q, *time_argument(model, t))
            allowed.append(np.linalg.pinv(J, rcond=1e-10) @ beta)
        for v in allowed:
            w, u = _link_velocities(model, q, v)
            turning.append(w)
            moving.append(u)
    none = np.zeros((0, len(model.tree.links), 3))
    return (np.array(turning), np.array(moving)) if turning else (none, none)


def _link_velocities(model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of one velocity: those of each link's first body, which moves as the link does."""
    poses, twists = tree_kernel(model, "body_poses")(q).reshape(-1, 4, 4), tree_kernel(model, "body_twists")(q, v)
    bodies = [model.tree.body_link.index(i) for i in range(len(model.tree.links))]
    R = poses[bodies, :3, :3]
    return np.einsum("bij,bj->bi", R, twists[bodies, :3]), np.einsum("bij,bj->bi", R, twists[bodies, 3:])


def _normal(turning: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """The direction about which most links turn, or across which all move."""
    links = [w for w in np.swapaxes(turning, 0, 1) if np.abs(w).max(initial=0.0) > LEAVES]
    if links:
        ways = [np.linalg.svd(w)[2][0] for w in links]
        return planar.upwards(max(ways, key=lambda K: sum(bool((_across(w, K) < LEAVES).all()) for w in links)))
    _, size, V = np.linalg.svd(np.vstack([moving.reshape(-1, 3), np.zeros((3, 3))]))
    if size[1] > LEAVES:
        return planar.upwards(V[2])
    return planar.across_one(V[0] if size[0] > LEAVES else np.zeros(3))


def _across(w: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Sizes of the parts of vectors (n, 3) across a direction."""
    return np.asarray(np.linalg.norm(w - np.outer(w @ K, K), axis=1))


def _joint_poses(model: Model, q: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
    """Rotation and position of frame M in frame F of every joint."""
    poses = tree_kernel(model, "body_poses")(q).reshape(-1, 4, 4)
    found = []
    for joint in model.joints:
        F, M = (
            (np.eye(4) if b == GROUND else poses[b]) @ at.matrix
            for b, at in ((joint.parent, joint.at), (joint.child, joint.child_at))
        )
        relative = np.linalg.inv(F) @ M
        found.append((relative[:3, :3], relative[:3, 3]))
    return tuple(found)


def require_planar(model: Model, formulation: Formulation) -> None:
    """Refuse a mechanism that `points` takes in space, where only its equations in the plane are meant."""
    if find_formulation(formulation.name).in_space is formulation:
        find_plane(model)  # raises an error that names the joint and the body
