"""A mechanism in motion as pictures: its scene, traces and forces, seen by a camera that has room for the whole run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.results.geometry import place, pose_of
from cardan.results.page.scene_3d import LAYERS, Scene3D, Span, scene_3d
from cardan.results.render.renderer import Placed
from cardan.results.render.surfaces import ColouredSurface, coloured, merged

SHOWN = {layer for layer, shown in LAYERS.items() if shown}
MOST_POSES = 60  # at which the room for the whole run is measured


@dataclass(eq=False)
class MovingScene:
    """The surfaces of a mechanism: those that move with each body, and those that stretch between points."""

    model: Model
    scene: Scene3D
    bodies: dict[int, ColouredSurface] = field(default_factory=dict)
    spans: list[tuple[Span, ColouredSurface]] = field(default_factory=list)

    def placed(self, poses: np.ndarray) -> list[Placed]:
        """All surfaces at body poses (nb, 4, 4)."""
        found = []
        for body, surface in self.bodies.items():
            pose = pose_of(poses, body)
            found.append(Placed(surface, pose[:3, :3], pose[:3, 3], pose[:3, :3], body + 1))
        for k, (span, surface) in enumerate(self.spans):
            start, along = _span_ends(span, poses)
            found += stretched(surface, start, along, 1000 + k)
        return found

    def room(self, poses: np.ndarray) -> np.ndarray:
        """Points (n, 3), m, that a camera must show, over body poses (m, nb, 4, 4)."""
        kept = poses[np.unique(np.linspace(0, len(poses) - 1, MOST_POSES).round().astype(int))]
        points = []
        for body, surface in self.bodies.items():
            low, high = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
            corners = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * (high - low) + low
            points.append(place(kept[:1] if body == GROUND else kept, body, corners).reshape(-1, 3))
        for span, _ in self.spans:
            points += [place(kept, end.body, end.position).reshape(-1, 3) for end in span.ends]
        return np.vstack(points) if points else np.zeros((1, 3))


def moving_scene(model: Model, poses: np.ndarray) -> MovingScene:
    """The surfaces of a model whose bodies take these poses (n, nb, 4, 4)."""
    scene = scene_3d(model, poses)
    found = MovingScene(model, scene)
    own: dict[int, list[ColouredSurface]] = {}
    for part in scene.parts:
        if part.layer in SHOWN and len(part.solid.triangles):
            surface = coloured(part.solid.corners, part.solid.triangles, rgb(part.colour), part.opacity)
            own.setdefault(part.body, []).append(surface)
    found.bodies = {body: merged(surfaces) for body, surfaces in own.items()}
    for span in scene.spans:
        if span.layer in SHOWN:
            found.spans.append((span, coloured(span.solid.corners, span.solid.triangles, rgb(span.colour))))
    return found


def rgb(colour: int) -> np.ndarray:
    """Red, green and blue (3,), 0 to 1, of a colour 0xRRGGBB."""
    return np.array([(colour >> shift) & 0xFF for shift in (16, 8, 0)]) / 255


def stretched(surface: ColouredSurface, start: np.ndarray, along: np.ndarray, owner: int) -> list[Placed]:
    """A surface of unit length along z from a point (3,) along a vector (3,), m; nothing if that has no length."""
    length = float(np.linalg.norm(along))
    if not length > 0:
        return []
    turn = rotation_to_axis(along / length)
    return [Placed(surface, turn * (1.0, 1.0, length), start, turn, owner)]


def _span_ends(span: Span, poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a span starts (3,), m, and the vector (3,), m, along it."""
    first = place(poses, span.ends[0].body, span.ends[0].position)
    if span.direction is None:
        return first, place(poses, span.ends[1].body, span.ends[1].position) - first
    turn = pose_of(poses, span.ends[0].body)[:3, :3] if span.follows else np.eye(3)
    along = turn @ span.direction
    return first - along, along  # the tip is where the load acts
