"""Figures of branches and workspaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.functions.kinematics import body_poses
from cardan.results.drawing.draw import overlaid
from cardan.results.figure import COLOURS, GREY, INK, FigureOutput, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cardan.analysis.kinematics.branches import Branches
    from cardan.analysis.kinematics.workspace import Workspace

MARKS = {"type I": "s", "type II": "o", "type III": "D", "branch point": "X"}


def plot_branches(found: Branches, size: Any, path: Any, overwrite: bool) -> Figure:
    """Output over input of every branch, angles within one turn, and the singular positions."""
    output = FigureOutput(size, path, overwrite)
    figure = new_figure(*(output.size or (5.2, 3.6)))
    model, shown = found.model, found.output or _other(found)
    place = model.q_slice(shown).start
    units = [model.joint(name).kind.q_units[0] for name in (found.joint, shown)]
    with style():
        at = figure.subplots()
        for k, branch in enumerate(found.branches):
            x, y = _cut(branch.input, units[0]), _cut(branch.q[:, place], units[1])
            broken = np.isnan(x) | np.isnan(y)
            at.plot(np.where(broken, np.nan, x), np.where(broken, np.nan, y), color=COLOURS[k % 6], label=f"branch {k}")
        for kind, mark in MARKS.items():
            some = [s for s in found.singular if s.kind == kind]
            if some:
                x = np.array([_shown(s.input, units[0]) for s in some])
                y = np.array([_shown(float(s.q[place]), units[1]) for s in some])
                at.plot(x, y, mark, color=INK, markerfacecolor="white", markersize=6, label=kind)
        at.set_xlabel(f"{found.joint} ({_unit(units[0])})")
        at.set_ylabel(f"{shown} ({_unit(units[1])})")
        at.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return output.write(figure)


def draw_singular(found: Branches, branch: int | None, size: Any, path: Any, overwrite: bool) -> Figure:
    """The mechanism at its singular positions."""
    some = [s.q for s in found.singular if branch is None or s.branch == branch]
    if not some:
        raise InputError(f"draw: {found.model.name!r} has no singular position over {found.joint!r} on this branch")
    poses = np.asarray(body_poses(found.model, np.array(some)))
    return overlaid(found.model, poses, poses, (), None, False, False, True, FigureOutput(size, path, overwrite))


def _other(found: Branches) -> str:
    """A joint to show where no output was named: another of one coordinate, or the driven one."""
    names = [found.model.joints[link.joint].name for link in found.model.tree.links if link.kind.nq == 1]
    return next((name for name in names if name != found.joint), found.joint)


def _unit(unit: str) -> str:
    return "deg" if unit == "rad" else unit


def _shown(x: float, unit: str) -> float:
    return float(np.degrees((x + np.pi) % (2 * np.pi) - np.pi)) if unit == "rad" else x


def _cut(x: np.ndarray, unit: str) -> np.ndarray:
    """Angles in degrees within one turn, with NaN where they leap."""
    if unit != "rad":
        return x
    turned = np.degrees((x + np.pi) % (2 * np.pi) - np.pi)
    turned[1:][np.abs(np.diff(turned)) > 180] = np.nan
    return np.asarray(turned)


def plot_workspace(found: Workspace, size: Any, path: Any, overwrite: bool) -> Figure:
    """The cloud and the boundary: in the plane of the mechanism, or seen along three axes."""
    output = FigureOutput(size, path, overwrite)
    spread = np.ptp(found.points, axis=0)
    flat = [k for k in range(3) if spread[k] > 1e-9 * max(float(spread.max()), 1e-300)]
    views = [(flat[0], flat[1])] if len(flat) == 2 else [(0, 1), (0, 2), (1, 2)]
    figure = new_figure(*(output.size or ((4.2, 3.8) if len(views) == 1 else (6.3, 2.4))))
    with style():
        axes = np.atleast_1d(figure.subplots(1, len(views)))
        for at, (i, j) in zip(axes, views, strict=True):
            at.plot(found.points[:, i], found.points[:, j], ".", markersize=1.2, color=COLOURS[4], alpha=0.6)
            if len(found.boundary):
                colour = INK if len(views) == 1 else GREY
                at.plot(found.boundary[:, i], found.boundary[:, j], ".", markersize=2.4, color=colour)
            at.set_aspect("equal")
            at.set_xlabel(f"{'xyz'[i]} (m)")
            at.set_ylabel(f"{'xyz'[j]} (m)")
    return output.write(figure)
