"""`model.particles()`: a planar mechanism as particles, body by body and unified at its pins."""

from __future__ import annotations

from functools import partial

import numpy as np

from cardan.errors import InputError, ModelError
from cardan.functions.kinematics import body_poses
from cardan.model.model import Model
from cardan.model.particles import Particle, ParticleSystem, link_particles, unified_particles
from cardan.model.plane import PlanarModel
from cardan.model.tree import GROUND
from cardan.structure.planarity import find_plane


def particle_system(model: Model) -> ParticleSystem:
    """The equivalent particles of a planar mechanism, at one value of its free numbers; see `ParticleSystem`."""
    if not isinstance(model, Model):
        raise InputError(f"particles: give a model, as mechanism.build() makes it, got {type(model).__name__}")
    model.require_one("particles")
    settled = model.settled()
    try:
        planar = find_plane(settled)
    except ModelError as error:
        reason = str(error).removeprefix("formulation 'points': ")
        raise ModelError(f"particles of {model.name!r}: they are those of a planar mechanism, but {reason}") from None
    found = [link_particles(link) for link in planar.links]
    places = [_in_body(settled, planar, i, p.positions) for i, p in enumerate(found)]
    groups = unified_particles(planar)
    names = [link.name for link in planar.links]
    joints = _joints_at(settled, planar)
    unified = tuple(
        Particle(
            float(sum(found[i].masses[k] for i, k in group)),
            tuple(dict.fromkeys(names[i] for i, _ in group)),
            tuple(dict.fromkeys(name for one in group for name in joints.get(one, ()))),
        )
        for group in groups
    )
    n = len(found)
    return ParticleSystem(
        model.name, tuple(names), np.array([p.masses for p in found]).reshape(n, 3), np.array(places).reshape(n, 3, 3),
        np.array([p.nu for p in found]), np.array([p.lam for p in found]), planar.ground.axes[:2], unified,
        tuple(group[0] for group in groups), tuple(map(settled.tree.body_link.index, range(n))),
        partial(body_poses, settled),
    )  # fmt: skip


def _in_body(model: Model, planar: PlanarModel, i: int, positions: np.ndarray) -> np.ndarray:
    """Places (3, 3) of a link's particles in the axes of its first body."""
    pose = model.tree.body_pose[model.tree.body_link.index(i)].inverse
    return np.array([pose.position + pose.rotation @ (planar.line(i).axes[:2].T @ at) for at in positions])


def _joints_at(model: Model, planar: PlanarModel) -> dict[tuple[int, int], list[str]]:
    """Names of the joints at the particles of every link."""
    found: dict[tuple[int, int], list[str]] = {}
    sides = [(i, (0.0, 0.0), link.joint) for i, link in enumerate(planar.links)]
    sides += [(link.parent, link.at, link.joint) for link in planar.links]
    for cut in planar.cuts:
        sides += [(cut.parent, cut.at, cut.joint), (cut.child, cut.child_at, cut.joint)]
    for i, place, j in sides:
        for k, at in ((0, (0.0, 0.0)), (2, (1.0, 0.0))):
            if i != GROUND and np.allclose(np.asarray(place, dtype=float), at, rtol=0, atol=1e-9):
                found.setdefault((i, k), []).append(model.joints[j].name)
    return found
