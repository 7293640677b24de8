"""A camera: where points in space are on the screen, and how near they are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

FAR = 4.5  # distance of the viewer in perspective, in radii of what is seen


@dataclass(frozen=True, eq=False)
class Camera:
    """A view of `width` by `height` pixels: rows of `axes` (3, 3) to the right, up and towards the viewer.

    `centre` (3,), m, is in the middle of the screen, where a metre has `scale` pixels. `distance` (m) is that of the
    viewer from there; infinity is a parallel projection. `reach` (m) is how far points are from the centre at most.
    """

    width: int
    height: int
    axes: np.ndarray
    centre: np.ndarray
    scale: float
    distance: float
    reach: float

    def project(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Pixels (..., 2) of points (..., 3), m, x to the right and y downwards; and depths (...), larger if nearer.

        Both are linear along straight lines of the screen.
        """
        local = (points - self.centre) @ self.axes.T
        near = np.ones(local.shape[:-1])
        depth = 0.5 + local[..., 2] / (4 * self.reach)
        if np.isfinite(self.distance):
            near = self.distance / np.maximum(self.distance - local[..., 2], 0.05 * self.distance)
            depth = near
        x = self.width / 2 + self.scale * near * local[..., 0]
        y = self.height / 2 - self.scale * near * local[..., 1]
        return np.stack([x, y], axis=-1), depth

    def rays(self) -> tuple[np.ndarray, np.ndarray]:
        """Origins and directions of the lines of sight (height, width, 3) through the middles of the pixels."""
        x, y = np.meshgrid(np.arange(self.width) + 0.5, np.arange(self.height) + 0.5)
        across = np.stack([(x - self.width / 2) / self.scale, (self.height / 2 - y) / self.scale], axis=-1)
        on_screen = self.centre + across @ self.axes[:2]
        if not np.isfinite(self.distance):
            return on_screen, np.broadcast_to(-self.axes[2], on_screen.shape)
        eye = self.centre + self.distance * self.axes[2]
        return np.broadcast_to(eye, on_screen.shape), on_screen - eye

    def enlarged(self, factor: int) -> Camera:
        """The same view with `factor` times as many pixels along both sides."""
        return replace(self, width=factor * self.width, height=factor * self.height, scale=factor * self.scale)


def fitted(axes: np.ndarray, points: np.ndarray, width: int, height: int, perspective: bool, filled: float) -> Camera:
    """The camera in a direction that shows all points (n, 3), m, in the given part of the screen."""
    local = points @ axes.T
    middle = (local.min(axis=0) + local.max(axis=0)) / 2
    reach = max(float(np.linalg.norm(local - middle, axis=1).max()), 1e-9)
    camera = Camera(width, height, axes, middle @ axes, 1.0, FAR * reach if perspective else np.inf, reach)
    for _ in range(4):  # perspective moves the middle of what is seen
        seen, _ = camera.project(points)
        low, high = seen.min(axis=0), seen.max(axis=0)
        span = np.maximum((high - low) / camera.scale, 1e-3 * reach)
        shift = ((low + high) / 2 - (width / 2, height / 2)) / camera.scale
        centre = camera.centre + shift[0] * axes[0] - shift[1] * axes[1]
        camera = replace(camera, centre=centre, scale=float(filled * np.min((width, height) / span)))
    return camera
