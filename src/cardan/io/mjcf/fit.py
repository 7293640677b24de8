"""Primitives fitted to a mesh: by the box, of half sizes `a <= b <= c` along x, y, z, whose inertia is the mesh's.

Source: MuJoCo's XML reference, page body/geom, attributes mesh and fitscale.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cardan.io.mjcf.mesh import Meshes
from cardan.io.mjcf.text import Item
from cardan.model.pose import Pose

SIZES: dict[str, Callable[[float, float, float], tuple[float, ...]]] = {
    "sphere": lambda a, b, c: ((a + b + c) / 3,),
    "capsule": lambda a, b, c: ((a + b) / 2, max(0.0, c - (a + b) / 4)),
    "cylinder": lambda a, b, c: ((a + b) / 2, c),
    "ellipsoid": lambda a, b, c: (a, b, c),
    "box": lambda a, b, c: (a, b, c),
}
"""Sizes of a geom as MJCF has them: radius, half lengths."""
LONG = ("capsule", "cylinder")
CLEAR = 1e-6
"""By how much, relative to the largest, principal moments must differ for an axis to be known."""


def fitted(item: Item, kind: str, meshes: Meshes) -> tuple[Pose, np.ndarray]:
    """Where the primitive of a geom is, in the geom's frame, and its sizes."""
    if item.has("fromto"):
        raise item.error("it has both 'mesh' and 'fromto'; give one, or the type mesh")
    if item.origin.fit_aabb if item.origin else meshes.fit_aabb:
        raise item.error(f"a {kind} fitted to the box about a mesh ('fitaabb') is not read; give the geom a size")
    _, com, I = meshes.unit_solid(item)
    moments, axes = np.linalg.eigh(I)
    if kind in LONG and moments[1] - moments[0] < CLEAR * moments[2]:
        raise item.error(f"its mesh is as long one way as another, so that no {kind} is its own; give the geom a size")
    axes = axes[:, ::-1] * np.sign(np.linalg.det(axes[:, ::-1]))
    half = np.sqrt(1.5 * np.maximum(moments.sum() - 2 * moments[::-1], 0.0)) * item.number_or("fitscale", 1.0)
    return Pose(com, axes), np.array(SIZES[kind](*map(float, half)))
