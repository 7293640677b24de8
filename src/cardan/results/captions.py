"""What is written into a drawing: names that do not hide one another, axes, gravity and a length."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.model.model import Model
from cardan.results.composition import body_colour
from cardan.results.paper import GREY, INK
from cardan.results.scene import Scene
from cardan.results.shape import Shape, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT = 8.0  # pt
AXES_COLOURS = ("#D55E00", "#009E73", "#0072B2")


def add_captions(at: Axes, scene: Scene, model: Model, per_inch: float) -> None:
    """Axes on the left, gravity beside them, a length on the right, in a strip below the picture."""
    (left, right), bottom = at.get_xlim(), at.get_ylim()[0]
    foot = np.array([left + 0.14 * per_inch, bottom + 0.12 * per_inch])
    shown = scene.view.axes[:2].T  # row k is where ground axis k points on the sheet
    low = np.minimum(shown * 0.26 * per_inch, 0).min(axis=0)
    foot = foot - low
    for way, name, colour in zip(shown, "xyz", AXES_COLOURS, strict=True):
        if np.linalg.norm(way) > 0.1:
            tip = foot + 0.26 * per_inch * way
            _arrow(at, foot, tip, colour)
            away = tip + 0.085 * per_inch * way / np.linalg.norm(way)
            at.text(away[0], away[1], name, color=colour, fontsize=FONT - 1, ha="center", va="center", style="italic")
    g = scene.view(model.unbound.gravity)
    if np.linalg.norm(g) > 1e-9:
        way = g / np.linalg.norm(g)
        start = np.array([left + 0.8 * per_inch, bottom + 0.25 * per_inch]) - 0.14 * per_inch * way
        _arrow(at, start, start + 0.28 * per_inch * way, GREY)
        beside = start + 0.14 * per_inch * way + 0.1 * per_inch * np.array([abs(way[1]) + 0.2, -abs(way[0])])
        at.text(beside[0], beside[1], "g", color=GREY, fontsize=FONT - 0.5, ha="center", va="center", style="italic")
    length = nice_length(0.22 * (right - left))
    end = np.array([right - 0.15 * per_inch, bottom + 0.14 * per_inch])
    at.plot([end[0] - length, end[0]], [end[1]] * 2, color=INK, linewidth=1.4, solid_capstyle="butt", gid="scale")
    at.text(end[0] - length / 2, end[1] + 0.05 * per_inch, f"{length:g} m", fontsize=FONT - 1, ha="center", va="bottom")


def nice_length(longest: float) -> float:
    """The largest of 1, 2, 5 times a power of ten that is not longer."""
    power = 10.0 ** np.floor(np.log10(longest))
    return float(max(k for k in (1, 2, 5) if k * power <= longest * (1 + 1e-9)) * power)


def _arrow(at: Axes, start: np.ndarray, end: np.ndarray, colour: str) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6}
    at.annotate("", tuple(end), tuple(start), arrowprops=style)


def add_names(at: Axes, scene: Scene, shape: Shape, poses: np.ndarray, per_inch: float) -> None:
    """Names of joints in ink, of bodies in their colours, each where it hides least."""
    wanted: list[tuple[np.ndarray, str, str]] = []
    for mark in (mark for mark in shape.joints if mark.kind != "free"):
        wanted.append((scene.view(place(poses, mark.child, mark.child_at.position)), mark.name, INK))
    for body, name in enumerate(shape.names):
        own = [place(poses, body, stroke.points).mean(axis=0) for stroke in shape.strokes if stroke.body == body]
        if own:
            wanted.append((scene.view(np.mean(own, axis=0)), name, body_colour(body)))
    drawn = _samples(scene, 0.06 * per_inch)
    boxes: list[tuple[np.ndarray, np.ndarray]] = []
    for anchor, name, colour in wanted:
        half = np.array([0.5 * 0.62 * FONT * len(name), 0.55 * FONT]) / 72 * per_inch
        middle = _clear_place(anchor, half, boxes, drawn, scene.unit, per_inch)
        boxes.append((middle - half, middle + half))
        x, y, style = *map(float, middle), "normal" if colour == INK else "italic"
        where: dict[str, Any] = {"ha": "center", "va": "center", "gid": "name"}
        at.text(x, y, name, color=colour, fontsize=FONT, style=style, parse_math=False, **where)
    if boxes:
        pad = 0.06 * per_inch
        _widen(at, np.min([low for low, _ in boxes], axis=0) - pad, np.max([high for _, high in boxes], axis=0) + pad)


def _clear_place(
    anchor: np.ndarray,
    half: np.ndarray,
    boxes: list[tuple[np.ndarray, np.ndarray]],
    drawn: np.ndarray,
    unit: float,
    per_inch: float,
) -> np.ndarray:
    """The middle of a name around its anchor, near, over no other name and over as little as possible."""
    best, least = anchor, np.inf
    for reach in (0.7, 1.3, 2.2, 3.2):
        for angle in np.radians([45, 135, -45, -135, 90, -90, 0, 180]):
            way = np.array([np.cos(angle), np.sin(angle)])
            middle = anchor + way * (reach * unit + 0.01 * per_inch) + np.round(way) * half
            low, high = middle - half, middle + half
            over_names = sum(bool((low < h).all() and (l < high).all()) for l, h in boxes)
            over_drawn = int(((drawn > low) & (drawn < high)).all(axis=1).sum())
            cost = 1000 * over_names + 10 * over_drawn + 12 * reach
            if cost < least:
                best, least = middle, cost
    return best


def _samples(scene: Scene, spacing: float) -> np.ndarray:
    """Points along all that is drawn, to keep names off it."""
    found = []
    for patch in scene.patches:
        if patch.ghost or patch.kind == "plate":
            continue
        ends = np.vstack([patch.points, patch.points[:1]]) if patch.closed else patch.points
        for a, b in pairwise(ends):
            count = min(int(np.linalg.norm(b - a) / spacing) + 1, 200)
            found.append(a + (b - a) * np.linspace(0, 1, count + 1)[:, None])
    return np.vstack(found) if found else np.zeros((0, 2))


def _widen(at: Axes, low: np.ndarray, high: np.ndarray) -> None:
    """Make room for names at the edge, the scale of both axes kept equal."""
    (left, right), (bottom, top) = at.get_xlim(), at.get_ylim()
    grow = max(left - low[0], high[0] - right, bottom - low[1], high[1] - top, 0.0)
    if grow:
        ratio = (top - bottom) / (right - left)
        at.set_xlim(left - grow, right + grow)
        at.set_ylim(bottom - grow * ratio, top + grow * ratio)
