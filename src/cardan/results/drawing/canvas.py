"""A canvas of lines and areas: points in space are projected, and nearer patches cover farther ones.

The projection is orthographic: parallel lines stay parallel, and lengths keep their scale. In the flat view of a planar
mechanism the layer decides what covers what: joints over bodies over the ground.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Layers from back to front, and how far each is moved towards the viewer, in sizes of a joint symbol.
LIFT = {"ground": 0.0, "plate": -0.3, "trace": -0.2, "axis": -0.1, "rail": 0.0, "body": 0.0, "element": 0.3,
        "centre": 1.0, "slider": 1.1, "joint": 1.2, "particle": 1.4}  # fmt: skip
ORDER = {layer: k for k, layer in enumerate(LIFT)}


@dataclass(frozen=True, eq=False)
class View:
    """Direction of view: rows (3, 3) to the right, up, and towards the viewer, in ground axes."""

    axes: np.ndarray
    flat: bool

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Project points (..., 3) onto the canvas (..., 2)."""
        projected: np.ndarray = points @ self.axes[:2].T
        return projected

    def depth(self, points: np.ndarray) -> float:
        """Mean coordinate of points (..., 3) towards the viewer."""
        return float(np.mean(points @ self.axes[2]))


@dataclass(frozen=True, eq=False)
class Patch:
    """A line or an area on the canvas: points (n, 2), layer, colours or None, width (pt), dashes (pt), opacity."""

    points: np.ndarray
    layer: str
    depth: float
    face: str | None
    edge: str | None
    width: float
    dash: tuple[float, ...]
    closed: bool
    opacity: float
    ghost: bool


@dataclass(frozen=True, eq=False)
class Raster:
    """A picture (h, w, 4), bytes with opacity, behind the patches; its lowest and highest point (2,) on the canvas."""

    picture: np.ndarray
    low: np.ndarray
    high: np.ndarray
    opacity: float


@dataclass
class Canvas:
    """Patches seen from a direction; `unit` (m) is the size of a joint symbol.

    `opacity` and `ghost` (a position drawn behind the last one) apply to what is added next.
    """

    view: View
    unit: float
    patches: list[Patch] = field(default_factory=list)
    rasters: list[Raster] = field(default_factory=list)
    opacity: float = 1.0
    ghost: bool = False
    nearest: float = -np.inf
    """Least depth of what is added next: the symbol of a joint covers the bodies that it connects."""

    def line(self, points: Any, colour: str, width: float, layer: str, *, dash: tuple[float, ...] = ()) -> None:
        """A line through points (n, 3) in space."""
        points = np.asarray(points, dtype=float)
        self.flat_line(self.view(points), self.view.depth(points), colour, width, layer, dash=dash)

    def area(self, points: Any, face: str, layer: str, *, edge: str | None = None, width: float = 0.9,
             opacity: float = 1.0) -> None:  # fmt: skip
        """The convex area around the projection of points (n, 3)."""
        points = np.asarray(points, dtype=float)
        outline = hull(self.view(points))
        self.flat_area(outline, self.view.depth(points), face, layer, edge=edge, width=width, opacity=opacity)

    def flat_line(
        self, points: np.ndarray, depth: float, colour: str, width: float, layer: str, *, dash: tuple[float, ...] = ()
    ) -> None:
        """A line through points (n, 2) on the canvas."""
        self._add(points, layer, depth, None, colour, width, dash, False, 1.0)

    def flat_area(self, points: np.ndarray, depth: float, face: str, layer: str, *, edge: str | None = None,
                   width: float = 0.9, opacity: float = 1.0) -> None:  # fmt: skip
        """The area inside points (n, 2) on the canvas."""
        self._add(points, layer, depth, face, edge, width, (), True, opacity)

    def disk(self, centre: np.ndarray, depth: float, radius: float, face: str, layer: str, edge: str | None) -> None:
        """A circle on the canvas."""
        self.flat_area(centre + radius * ring(), depth, face, layer, edge=edge)

    def _add(self, points: np.ndarray, layer: str, depth: float, face: str | None, edge: str | None, width: float,
             dash: tuple[float, ...], closed: bool, opacity: float) -> None:  # fmt: skip
        points = np.asarray(points, dtype=float)
        if len(points) and np.isfinite(points).all():
            lifted = max(depth, self.nearest) + self.unit * LIFT[layer]
            opacity *= self.opacity
            self.patches.append(Patch(points, layer, lifted, face, edge, width, dash, closed, opacity, self.ghost))

    def sorted(self) -> list[Patch]:
        """The patches from back to front."""
        if self.view.flat:
            return sorted(self.patches, key=lambda p: (not p.ghost, ORDER[p.layer], p.depth))
        return sorted(self.patches, key=lambda p: (not p.ghost, p.depth))

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest point (2,) of all patches."""
        points = [p.points for p in self.patches] + [np.array([r.low, r.high]) for r in self.rasters]
        every = np.vstack(points) if points else np.zeros((1, 2))
        return every.min(axis=0), every.max(axis=0)


def ring(count: int = 32) -> np.ndarray:
    """Points (count, 2) of the unit circle."""
    angle = np.linspace(0, 2 * np.pi, count, endpoint=False)
    return np.column_stack([np.cos(angle), np.sin(angle)])


def hull(points: np.ndarray) -> np.ndarray:
    """Convex hull of points (n, 2), anticlockwise, by Andrew's monotone chain; all points if it has no area."""
    ordered = sorted(map(tuple, points.tolist()))

    def half(points: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        chain: list[tuple[float, ...]] = []
        for p in points:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], p) <= 0:
                chain.pop()
            chain.append(p)
        return chain[:-1]

    found = half(ordered) + half(ordered[::-1])
    return np.array(found) if len(found) > 2 else points


def _turn(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    """Positive if the path from a over b to c turns left."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def svg(canvas: Canvas, width: float = 260.0, tallest: float = 220.0) -> str:
    """The canvas as SVG text, at most `width` by `tallest` pixels, made without a graphics library."""
    low, high = canvas.bounds()
    low, high = low - 0.6 * canvas.unit, high + 0.6 * canvas.unit
    span = np.maximum(high - low, 1e-9)
    scale = min(width / span[0], tallest / span[1])
    paths = [_embedded(raster, low, high, scale) for raster in canvas.rasters]
    for patch in canvas.sorted():
        xy = np.column_stack([patch.points[:, 0] - low[0], high[1] - patch.points[:, 1]]) * scale
        d = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in xy) + ("Z" if patch.closed else "")
        style = f'fill="{patch.face or "none"}" stroke="{patch.edge or "none"}" stroke-width="{patch.width:g}"'
        if patch.dash:
            style += f' stroke-dasharray="{" ".join(f"{x:g}" for x in patch.dash)}"'
        if patch.opacity < 1:
            style += f' opacity="{patch.opacity:.2g}"'
        paths.append(f'<path d="{d}" {style}/>')
    w, h = span * scale
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.1f} {h:.1f}" '
        f'stroke-linecap="round" stroke-linejoin="round" style="background:#fff">{"".join(paths)}</svg>'
    )


def _embedded(raster: Raster, low: np.ndarray, high: np.ndarray, scale: float) -> str:
    """A picture inside SVG text."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(raster.picture).save(file, format="png")
    (x, y), (w, h) = (raster.low[0] - low[0], high[1] - raster.high[1]), raster.high - raster.low
    place = " ".join(f'{k}="{scale * v:.1f}"' for k, v in (("x", x), ("y", y), ("width", w), ("height", h)))
    data = base64.b64encode(file.getvalue()).decode()
    return f'<image {place} opacity="{raster.opacity:.2g}" href="data:image/png;base64,{data}"/>'
