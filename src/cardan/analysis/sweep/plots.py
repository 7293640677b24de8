"""Figures of linkages beside the curve that they were to follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.sweep.coupler_curve import centred
from cardan.functions.kinematics import body_poses
from cardan.results.figure import COLOURS, GREY, INK, FigureOutput, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cardan.analysis.sweep.family import LinkageFamily

WIDTH, HEIGHT = 2.6, 2.8  # inches of one linkage


def plot_linkages(
    linkages: Sequence[tuple[LinkageFamily, Any, float]], curve: np.ndarray, fit: str, q: Any, size: Any, path: Any,
    overwrite: bool,
) -> Figure:  # fmt: skip
    """Linkages, each a family, a design and its error, side by side, with their curves and the given one.

    With `fit="similar"` the given curve is scaled, turned and moved to each linkage.
    """
    output = FigureOutput(size, path, overwrite)
    figure = new_figure(*(output.size or (WIDTH * len(linkages), HEIGHT)))
    with style():
        panels = figure.subplots(1, len(linkages), squeeze=False)[0]
        for k, (at, (family, design, error)) in enumerate(zip(panels, linkages, strict=True)):
            _one(at, family, np.asarray(design), curve @ np.array([1, 1j]), fit, q, COLOURS[k % 6])
            at.set_title(f"{family.model.name}: {100 * error:.2g} % of its size")
        panels[0].legend(loc="best")
    return output.write(figure)


def _one(at: Any, family: LinkageFamily, design: np.ndarray, w: np.ndarray, fit: str, q: Any, colour: str) -> None:
    """One linkage at its first position, its curve, and the given curve `w`, complex."""
    found, (i, j) = family.samples(design, positions=len(w), q=q), family.plane_axes("plot")
    assert found.point is not None
    z = found.point[:, i] + 1j * found.point[:, j]
    if fit == "similar":
        s = np.vdot(centred(z), centred(w)) / np.vdot(centred(z), centred(z))
        w = z.mean() + centred(w) / s
    model = family.models(design)
    poses, c = np.asarray(body_poses(model, found.q[0])), family.numbers(design)["point"]
    numbers = model.settled()
    for body, name in enumerate(model.body_names):
        own = [
            x
            for joint in numbers.joints
            for b, x in ((joint.parent, joint.at), (joint.child, joint.child_at))
            if b == body
        ]
        places = [np.asarray(x.position, dtype=float) for x in own]
        if name == family.body:
            places = [*places, c]
        places = [*places, places[0]] if len(places) > 2 else places
        points = np.array([poses[body, :3, :3] @ x + poses[body, :3, 3] for x in places])
        at.plot(points[:, i], points[:, j], "-o", color=GREY, markersize=2.5, linewidth=1.2)
    for x, style_of, label in ((w, {"color": INK, "linestyle": ":"}, "given"), (z, {"color": colour}, "found")):
        closed = np.append(x, x[0])
        at.plot(closed.real, closed.imag, label=label, **style_of)
    at.set_aspect("equal")
    at.set_xlabel(f"{'xyz'[i]} (m)")
    at.set_ylabel(f"{'xyz'[j]} (m)")
