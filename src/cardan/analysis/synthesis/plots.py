"""Figures of synthesis: what was asked, and what the linkage does over its motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.synthesis.search import CLOSED, closed, with_input
from cardan.functions.kinematics import body_poses, frame_pose
from cardan.results.figure import COLOURS, GREY, INK, FigureOutput, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cardan.analysis.synthesis.synthesise import Synthesis

FINE = 181  # configurations of the motion


def plot_synthesis(found: Synthesis, size: Any, path: Any, overwrite: bool) -> Figure:
    """Paths of points in the plane, and the linkage at the first position; for a function the output over the input."""
    output = FigureOutput(size, path, overwrite)
    figure = new_figure(*(output.size or (5.2, 4.0)))
    with style():
        at = figure.subplots()
        if found.problem.aims:
            _paths(found, at)
        else:
            _function(found, at)
        at.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return output.write(figure)


def _motion(found: Synthesis) -> tuple[np.ndarray, np.ndarray]:
    """Configurations (n, nq) over a turn of the input, or over its values, and which are closed."""
    problem, best = found.problem, found.best
    q = best.q[:1].copy()
    if problem.input is None:
        return best.q, np.ones(len(best.q), dtype=bool)
    place, unit = problem.input.q, problem.input.unit
    given = best.q[:, place]
    first = given[0]
    ways = [np.linspace(0, 2 * np.pi, FINE)] if unit == 1.0 and problem.aims else [
        np.linspace(0, given.max() - first, FINE), np.linspace(0, given.min() - first, FINE)
    ]  # fmt: skip
    u, parts, fine = best.unknowns[None], [], []
    for way in ways:
        at, own, good = q[:, None], [], []
        for step in way:
            tried = at.copy()
            tried[..., place] = first + step
            tried, gap = closed(with_input(problem.at([0]), tried[..., place]), u, tried, 8)
            ok = bool(gap.max() <= CLOSED)
            at = tried if ok else at
            own.append(tried[0, 0])
            good.append(ok)
        order = slice(None, None, -1) if way[-1] < 0 else slice(None)
        parts.append(np.array(own)[order])
        fine.append(np.array(good)[order])
    return np.concatenate(parts[::-1]), np.concatenate(fine[::-1])


def _paths(found: Synthesis, at: Any) -> None:
    problem, best = found.problem, found.best
    q, fine = _motion(found)
    spread = np.ptp(np.concatenate([aim.data[-1] for aim in problem.aims if aim.along] or [np.zeros((1, 3))]), axis=0)
    i, j = sorted(np.argsort(-spread, kind="stable")[:2].tolist())
    for k, (aim, c) in enumerate(zip(problem.aims, best.points, strict=True)):
        pose = np.asarray(frame_pose(best.model, q, aim.frame))
        p = np.where(fine[:, None], pose[:, :3, 3] + pose[:, :3, :3] @ c, np.nan)
        at.plot(p[:, i], p[:, j], color=COLOURS[k % 6], label=f"path of {aim.frame}")
        if aim.along:
            wanted = aim.data[-1]
            at.plot(wanted[:, i], wanted[:, j], "o", color=INK, markerfacecolor="white", markersize=4, label="asked")
        for joint, body in _bars(found, best.q[0], aim.frame, c):
            at.plot(joint[:, i], joint[:, j], "-o", color=GREY, markersize=3, linewidth=1.5, label=body)
    at.set_aspect("equal")
    at.set_xlabel(f"{'xyz'[i]} (m)")
    at.set_ylabel(f"{'xyz'[j]} (m)")


def _bars(found: Synthesis, q: np.ndarray, frame: str, c: np.ndarray) -> list[tuple[np.ndarray, str | None]]:
    """Points (n, 3) of each body: its joints, and the point of a target."""
    model = found.best.model
    poses = np.asarray(body_poses(model, q))
    bars: list[tuple[np.ndarray, str | None]] = []
    for body, name in enumerate(model.body_names):
        own = [x for j in model.joints for b, x in ((j.parent, j.at), (j.child, j.child_at)) if b == body]
        points = [poses[body, :3, :3] @ np.asarray(x.position, dtype=float) + poses[body, :3, 3] for x in own]
        if name == frame:
            points = [*points, poses[body, :3, :3] @ c + poses[body, :3, 3], points[0]]
        bars.append((np.array(points), "linkage" if body == 0 else None))
    return bars


def _function(found: Synthesis, at: Any) -> None:
    problem, best = found.problem, found.best
    q, fine = _motion(found)
    assert problem.input is not None
    x = problem.input
    degrees = [np.degrees if c.unit == 1.0 else np.asarray for c in (x, *problem.functions)]
    for k, y in enumerate(problem.functions):
        followed = np.unwrap(q[:, y.q], period=2 * np.pi if y.unit == 1.0 else 1e300)
        values = np.where(fine, followed, np.nan)
        at.plot(degrees[0](q[:, x.q]), degrees[k + 1](values), color=COLOURS[k % 6], label=y.joint)
        wanted = y.values + best.offsets.get(y.joint, 0.0)
        near = followed[np.abs(q[:, x.q] - best.q[:, x.q, None]).argmin(axis=1)]  # of the same turn as the curve
        wanted = near + (wanted - near + np.pi) % (2 * np.pi) - np.pi if y.unit == 1.0 else wanted
        at.plot(
            degrees[0](best.q[:, x.q]), degrees[k + 1](wanted), "o", color=INK, markerfacecolor="white", label="asked"
        )
    at.set_xlabel(f"{x.joint} ({'deg' if x.unit == 1.0 else 'm'})")
    at.set_ylabel(" , ".join(f"{y.joint} ({'deg' if y.unit == 1.0 else 'm'})" for y in problem.functions))
