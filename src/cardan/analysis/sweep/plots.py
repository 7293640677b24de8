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

WIDTH, HEIGHT = 2.6, 4.0  # inches of one linkage


def plot_linkages(
    linkages: Sequence[tuple[LinkageFamily, Any, float]], curve: np.ndarray, fit: str, q: Any, size: Any, path: Any,
    overwrite: bool,
) -> Figure:  # fmt: skip
    """Linkages, each a family, a design and its error, side by side; below them their curves and the given one.

    With `fit="similar"` the curves of the linkages are scaled, turned and moved to the given one.
    """
    output = FigureOutput(size, path, overwrite)
    figure = new_figure(*(output.size or (WIDTH * len(linkages), HEIGHT)))
    w = curve @ np.array([1, 1j])
    with style():
        rows = figure.subplots(2, len(linkages), squeeze=False, height_ratios=(2, 1))
        for k, (family, design, error) in enumerate(linkages):
            found, axes = family.samples(design, positions=len(w), q=q), family._plane_axes("plot")
            assert found.point is not None
            z = found.point[:, axes[0]] + 1j * found.point[:, axes[1]]
            _linkage(rows[0, k], family, np.asarray(design), found.q[0], axes)
            _closed(rows[0, k], z, color=COLOURS[k % 6])
            if fit == "similar":
                z = w.mean() + centred(z) * np.vdot(centred(z), centred(w)) / np.vdot(centred(z), centred(z))
            _closed(rows[1, k], w, color=INK, linestyle=":", label="given")
            _closed(rows[1, k], z, color=COLOURS[k % 6], label=f"{100 * error:.2g} %")
            rows[1, k].legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
            rows[0, k].set_title(family.model.name)
            for at in rows[:, k]:
                at.set_aspect("equal", adjustable="datalim")
                at.set_xlabel(f"{'xyz'[axes[0]]} (m)")
        for at in rows[:, 0]:
            at.set_ylabel(f"{'xyz'[axes[1]]} (m)")
    return output.write(figure)


def _closed(at: Any, x: np.ndarray, **how: Any) -> None:
    """A closed curve of complex numbers."""
    x = np.append(x, x[0])
    at.plot(x.real, x.imag, **how)


def _linkage(at: Any, family: LinkageFamily, design: np.ndarray, q: np.ndarray, axes: tuple[int, int]) -> None:
    """The bodies of one linkage at a configuration: their joints, and the point."""
    i, j = axes
    model = family.models(design)
    poses, c = np.asarray(body_poses(model, q)), family.numbers(design)["point"]
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
