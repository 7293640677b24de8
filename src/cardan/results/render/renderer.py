"""Shaded pictures of moving surfaces: light, shadow on a plane behind or below, outlines, and smooth edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cardan.results.render.camera import Camera
from cardan.results.render.depth_buffer import NOTHING, DepthBuffer, Fragments, covered, planes_of
from cardan.results.render.surfaces import ColouredSurface

PLAIN = -2
FINER = 2  # pixels of the depth buffer along both sides of a pixel of the picture
AMBIENT, DIFFUSE, SHINE, SHARP = 0.42, 0.62, 0.16, 24
SHADOW, OUTLINE = 0.78, 0.55  # brightness of a shadow and of an outline
PAPER = np.array([1.0, 1.0, 1.0])
FLOOR, LINES = np.array([0.955, 0.96, 0.968]), np.array([0.80, 0.82, 0.845])


@dataclass(frozen=True, eq=False)
class Backdrop:
    """A plane that catches shadows: a point (3,), m, its unit normal (3,) and a direction (3,) of its grid lines.

    `spacing` (m) is that of the grid; it fades out from `radius` (m) about the point on.
    """

    point: np.ndarray
    normal: np.ndarray
    along: np.ndarray
    spacing: float
    radius: float


@dataclass(frozen=True, eq=False)
class Placed:
    """A surface in a frame: `linear` (3, 3) and `position` (3,) take its vertices to the ground.

    `turn` (3, 3) is the rotation in `linear`, for the normals. Surfaces of one `owner` have one outline; those that are
    `PLAIN` have none, and no shadow.
    """

    surface: ColouredSurface
    linear: np.ndarray
    position: np.ndarray
    turn: np.ndarray
    owner: int


@dataclass
class Triangles:
    """Triangles on the screen: corners (n, 3, 2) and their depths, light and shine (n, 3); colours (n, 3).

    Opacity and owner are (n,).
    """

    corners: np.ndarray
    depths: np.ndarray
    light: np.ndarray
    shine: np.ndarray
    colours: np.ndarray
    opacity: np.ndarray
    owners: np.ndarray

    def part(self, kept: np.ndarray) -> Triangles:
        """Some of the triangles."""
        return Triangles(*(getattr(self, name)[kept] for name in self.__dataclass_fields__))


@dataclass
class Renderer:
    """Makes pictures (height, width, 3) of bytes from one camera, with the light (3,), a unit vector towards it."""

    camera: Camera
    light: np.ndarray
    backdrop: Backdrop | None = None
    paper: np.ndarray = field(default_factory=lambda: PAPER)

    def __post_init__(self) -> None:
        """Paint what does not move."""
        self._fine = self.camera.enlarged(FINER)
        behind, self._floor = _background(self.camera, self.backdrop, self.paper)
        self._behind = (255 * behind + 0.5).astype(np.uint8)
        self._buffer = DepthBuffer(self._fine.width, self._fine.height)
        self._owners = np.full(self._fine.width * self._fine.height, NOTHING, dtype=np.int16)

    def picture(self, placed: Sequence[Placed]) -> np.ndarray:
        """The picture (height, width, 3), bytes, of surfaces."""
        picture = self._behind.copy()
        if self.backdrop is not None:
            self._cast_shadow(picture, placed)
        triangles = self._triangles(placed)
        opaque = np.flatnonzero(triangles.opacity >= 1)
        clear = np.flatnonzero(triangles.opacity < 1)
        seen = self._paint(picture, triangles.part(opaque), True)
        if len(clear):
            self._paint(picture, triangles.part(clear), False)
        self._buffer.clear(seen)
        return picture

    def _triangles(self, placed: Sequence[Placed]) -> Triangles:
        """All triangles that may be seen, with the light on their corners."""
        found: list[Triangles] = []
        towards = self.camera.axes[2]
        half = (self.light + towards) / np.linalg.norm(self.light + towards)
        for item in placed:
            surface = item.surface
            if not len(surface.faces):
                continue
            seen, depth = self._fine.project(surface.vertices @ item.linear.T + item.position)
            corners = seen[surface.faces]
            a, b = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
            area = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]  # negative if it faces the viewer, since y is downwards
            kept = np.flatnonzero((area < 0) | ~surface.closed)
            facing = np.where(area[kept] < 0, 1.0, -1.0)[:, None]
            normals = surface.normals[kept]
            light = AMBIENT + DIFFUSE * np.maximum(normals @ (item.turn.T @ self.light) * facing, 0)
            shine = SHINE * np.maximum(normals @ (item.turn.T @ half) * facing, 0) ** SHARP
            found.append(
                Triangles(corners[kept], depth[surface.faces[kept]], light, shine, surface.colours[kept],
                          surface.opacity[kept], np.full(len(kept), item.owner))
            )  # fmt: skip
        if not found:
            return Triangles(np.zeros((0, 3, 2)), *np.zeros((4, 0, 3)), *np.zeros((2, 0)))
        return Triangles(*(np.concatenate([getattr(t, n) for t in found]) for n in Triangles.__dataclass_fields__))

    def _paint(self, picture: np.ndarray, t: Triangles, keep: bool) -> Fragments:
        """Paint the nearest triangles over a picture; what is kept covers what is painted later."""
        width, height = self._fine.width, self._fine.height
        every = covered(t.corners.astype(np.float32), width, height)
        seen = self._buffer.nearest(every, planes_of(t.corners, t.depths), keep)
        y, x = np.divmod(seen.pixels, np.int32(width))
        x, y, which = x + np.float32(0.5), y + np.float32(0.5), seen.triangles
        light = np.clip(planes_of(t.corners, t.light).at(which, x, y), AMBIENT, AMBIENT + DIFFUSE)
        shine = np.clip(planes_of(t.corners, t.shine).at(which, x, y), 0, SHINE)
        light *= np.where(self._at_edge(seen.pixels, t.owners[which]), OUTLINE, 1.0)
        _mix(picture, (y / FINER).astype(np.int32), (x / FINER).astype(np.int32), t.opacity[which],
             [t.colours[which, k] * light + shine for k in range(3)])  # fmt: skip
        return seen

    def _at_edge(self, pixels: np.ndarray, owners: np.ndarray) -> np.ndarray:
        """Whether a pixel has a neighbour of another owner, or of none."""
        every, last = self._owners, len(self._owners) - 1
        every[pixels] = owners
        edge = np.zeros(len(pixels), dtype=bool)
        for step in (1, -1, self._fine.width, -self._fine.width):
            edge |= every[np.clip(pixels + step, 0, last)] != owners
        every[pixels] = NOTHING
        return edge & (owners != PLAIN)

    def _cast_shadow(self, picture: np.ndarray, placed: Sequence[Placed]) -> None:
        """Darken the backdrop where surfaces are between it and the light."""
        assert self.backdrop is not None
        n, camera = self.backdrop.normal, self.camera
        corners = []
        for item in placed:
            surface = item.surface
            if len(surface.faces) and item.owner != PLAIN:
                points = surface.vertices @ item.linear.T + item.position
                height = (points - self.backdrop.point) @ n
                flat = points - np.outer(height / (self.light @ n), self.light)
                lit = ~surface.closed | (surface.normals[:, 0] @ (item.turn.T @ self.light) > 0)
                corners.append(camera.project(flat)[0].astype(np.float32)[surface.faces[lit]])
        pixels = covered(np.concatenate(corners), camera.width, camera.height).pixels if corners else np.zeros(0, int)
        if not len(pixels):
            return
        soft = max(camera.height // 240, 1)
        y, x = np.divmod(pixels, camera.width)
        low = [max(int(v.min()) - 3 * soft, 0) for v in (y, x)]
        high = [int(v.max()) + 3 * soft + 1 for v in (y, x)]
        part = (slice(low[0], high[0]), slice(low[1], high[1]))
        dark = np.zeros(self._floor[part].shape, dtype=np.float32)
        dark[y - low[0], x - low[1]] = 1 - SHADOW
        light = 1 - _blurred(dark, soft) * self._floor[part]
        picture[part] = (picture[part] * light[..., None] + 0.5).astype(np.uint8)


def _mix(picture: np.ndarray, y: np.ndarray, x: np.ndarray, opacity: np.ndarray, colour: list[np.ndarray]) -> None:
    """Mix fine pixels into a picture: FINER^2 of them, with colours and opacities from 0 to 1, fill one pixel."""
    if not len(y):
        return
    top, left, bottom, right = int(y.min()), int(x.min()), int(y.max()) + 1, int(x.max()) + 1
    shape = (bottom - top, right - left)
    at = (y - top) * shape[1] + (x - left)
    share = opacity / FINER**2

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(at, values, shape[0] * shape[1]).reshape(shape)

    part = picture[top:bottom, left:right]
    rest = 1 - total(share)
    for k in range(3):
        part[..., k] = np.clip(rest * part[..., k] + 255 * total(share * np.minimum(colour[k], 1)) + 0.5, 0, 255)


def _background(camera: Camera, backdrop: Backdrop | None, paper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The picture (height, width, 3) without any surface, and how visible the backdrop is at each pixel, 0 to 1."""
    shape = (camera.height, camera.width)
    if backdrop is None:
        return np.broadcast_to(paper, (*shape, 3)), np.zeros(shape)
    start, way = camera.rays()
    slope = way @ backdrop.normal
    s = ((backdrop.point - start) @ backdrop.normal) / np.where(np.abs(slope) < 1e-12, 1e-12, slope)
    hit = start + s[..., None] * way - backdrop.point
    across = np.cross(backdrop.normal, backdrop.along)
    there = (s > 0) if np.isfinite(camera.distance) else np.ones(shape, dtype=bool)
    seen = np.where(there, np.clip(2 - np.linalg.norm(hit, axis=-1) / backdrop.radius, 0, 1), 0.0)
    lines = np.zeros(shape)
    for direction in (backdrop.along, across):
        u = hit @ direction / backdrop.spacing
        wide = np.maximum(np.abs(np.gradient(u, axis=0)), np.abs(np.gradient(u, axis=1))) + 1e-9  # a pixel, in u
        off = np.abs(u - np.round(u))
        line = np.clip(1.1 - off / wide, 0, 1) * np.clip(0.25 / wide - 0.5, 0, 1)  # fades where lines are too near
        lines = np.maximum(lines, line)
    surface = FLOOR + (LINES - FLOOR) * lines[..., None]
    smooth = seen * seen * (3 - 2 * seen)
    return paper + (surface - paper) * smooth[..., None], smooth.astype(np.float32)


def _blurred(picture: np.ndarray, radius: int) -> np.ndarray:
    """A picture (height, width) with every pixel the mean of its surroundings, twice over."""
    from scipy.ndimage import uniform_filter

    size = 2 * radius + 1
    found: np.ndarray = uniform_filter(uniform_filter(picture, size), size)
    return found
