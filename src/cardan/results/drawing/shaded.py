"""The shapes of bodies in a drawing: a shaded picture with transparent surroundings, in the scale of the drawing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cardan.model.model import Model
from cardan.model.shape import visible_parts
from cardan.model.tree import GROUND
from cardan.results.drawing.canvas import View
from cardan.results.geometry import Geometry, place, pose_of
from cardan.results.page.scene_3d import rod
from cardan.results.render.camera import Camera
from cardan.results.render.renderer import Placed, Renderer
from cardan.results.render.surfaces import ColouredSurface, coloured, merged

MOST_FACES = 20_000  # of a shape
LIGHT = np.array([-0.4, 0.7, 0.8])  # to the right, up, towards the viewer
BLACK, WHITE = np.zeros(3), np.ones(3)


@dataclass(frozen=True, eq=False)
class ShapedBodies:
    """The shapes of a model's bodies as surfaces in body axes; -1 is the ground."""

    surfaces: dict[int, ColouredSurface]

    def corners(self, poses: np.ndarray) -> np.ndarray:
        """Corners (n, 3), m, of the boxes around the shapes at body poses (nb, 4, 4)."""
        unit = np.array([(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)])
        found = [np.zeros((0, 3))]
        for body, surface in self.surfaces.items():
            low, high = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
            found.append(place(poses, body, low + unit * (high - low)))
        return np.vstack(found)

    def picture(self, view: View, poses: np.ndarray, dots: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A picture (h, w, 4), bytes with opacity, of the shapes, with `dots` to a metre; its corners (2,), m.

        The corners are the lowest and the highest point of the canvas that it covers.
        """
        placed, points = [], [np.zeros((0, 3))]
        for body, surface in self.surfaces.items():
            pose = pose_of(poses, body)
            placed.append(Placed(surface, pose[:3, :3], pose[:3, 3], pose[:3, :3], body + 1))
            points.append(place(poses, body, surface.vertices))
        every = np.vstack(points) @ view.axes.T
        low, high = every.min(axis=0), every.max(axis=0)
        width, height = (max(int(np.ceil(x * dots)) + 2, 2) for x in (high - low)[:2])
        middle = (low + high) / 2
        reach = max(float(np.linalg.norm(high - low)) / 2, 1e-9)
        camera = Camera(width, height, view.axes, middle @ view.axes, dots, np.inf, reach)
        light = LIGHT @ view.axes / np.linalg.norm(LIGHT)
        black, white = (
            Renderer(camera, light, paper=paper).picture(placed).astype(np.int16) for paper in (BLACK, WHITE)
        )
        opacity = 255 - (white - black).max(axis=-1)  # where both are the same, nothing of the paper is seen
        colour = black * 255 // np.maximum(opacity, 1)[..., None]
        picture = np.dstack([np.minimum(colour, 255), opacity]).astype(np.uint8)
        half = np.array([width, height]) / 2 / dots
        return picture, middle[:2] - half, middle[:2] + half


def shaped_bodies(model: Model, geometry: Geometry, colours: list[np.ndarray]) -> ShapedBodies | None:
    """The shapes of a model; None if it has none. Shapes without a colour have that of their body, from `colours`."""
    shapes = {b: body.shapes for b, body in enumerate(model.bodies)} | {GROUND: model.ground_shapes}
    found = {}
    for body, own in shapes.items():
        parts = list(visible_parts(own, MOST_FACES)) if own else []
        if parts:
            found[body] = merged(
                coloured(
                    part.surface.vertices, part.surface.faces, (part.colour or colours[body])[:3],
                    1.0 if part.colour is None else float(part.colour[3]),
                )
                for part in parts
            )  # fmt: skip
    for arm in (arm for arm in geometry.arms if arm.body in found):
        thin = rod(arm.points[0], arm.points[1], 0.25 * geometry.size)
        found[arm.body] = merged([found[arm.body], coloured(thin.corners, thin.triangles, colours[arm.body])])
    return ShapedBodies(found) if found else None
