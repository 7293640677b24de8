"""Still pictures of a mechanism: at one configuration, or at several of a run with the paths of points."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import CardanError, InputError
from cardan.functions.constraints import constraint_residual
from cardan.functions.kinematics import body_poses
from cardan.model.model import Model
from cardan.results import composition
from cardan.results.captions import add_captions, add_names
from cardan.results.paper import COLOURS, look, new_figure, require_file, save_figure
from cardan.results.scene import Scene, svg
from cardan.results.shape import Shape, shape_of
from cardan.structure.assemble import assemble

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cardan.results.trajectory import Trajectory

CLOSED = 1e-6  # m and rad: a loop open by less is seen as closed
STROBES = 7
LARGEST = (5.2, 4.6)  # inch
NARROWEST = 2.2  # inch, so that what is written below has room
SHORTEST, STRIP = 0.9, 0.5


def draw(
    model: Model,
    q: Any = None,
    *,
    view: Any = None,
    names: bool = False,
    centres: bool = True,
    scale: bool = True,
    size: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Figure:
    """Draw a mechanism as a kinematic diagram: bodies, joints by their kind, springs, the ground, centres of mass.

    A planar mechanism is seen flat in its plane, another from a side above. Bodies are drawn through the points where
    joints and force elements hold them. Returns a `matplotlib.figure.Figure`; nothing is shown by itself.

    Args:
        model: the mechanism, at one value of its free parameters.
        q: configuration (nq,), rad and m; by default the model's own start, with its loops closed.
        view: azimuth and elevation, degrees, of the eye; by default flat, or a side that shows much.
        names: whether to write the names of bodies and joints.
        centres: whether to mark the centres of mass.
        scale: whether to draw axes, the direction of gravity and a length below.
        size: width and height, inches; by default as the mechanism needs.
        path: file to write, .png, .svg or .pdf, whole or not at all.
        overwrite: whether an existing file may be replaced.

    """
    if not isinstance(model, Model):
        raise InputError(f"draw: give a model, as mechanism.build() makes it, got {type(model).__name__}")
    model.require_one("draw")
    require_file(path, size)
    shape, poses = shape_of(model), _poses(model, q)
    scene = _scene(model, shape, poses, view, centres)
    return _figure(scene, model, shape, poses, names, scale, size, path, overwrite)


def strobe(
    run: Trajectory,
    t: Any,
    trace: Sequence[Any],
    view: Any,
    names: bool,
    centres: bool,
    scale: bool,
    size: tuple[float, float] | None,
    path: str | os.PathLike[str] | None,
    overwrite: bool,
) -> Figure:
    """Several positions of a run over one another, the last one whole, and the paths of points."""
    require_file(path, size)
    if run.batch:
        raise InputError(f"draw: the run is a batch of shape {run.batch}; draw one of its systems, run[0].draw()")
    model = run._require("a drawing")
    if t is None:
        t = np.linspace(run.time[0], run.time[-1], STROBES) if len(run.time) > 1 else run.time
    if np.size(t) == 0:
        raise InputError("draw: t has no time; give one or several, s, or leave it out")
    poses = body_poses(model, np.atleast_2d(run.at(np.atleast_1d(t))[0]))
    shape = shape_of(model)
    if not isinstance(trace, Sequence):
        raise InputError(f"draw: trace takes names of bodies or pairs (body, point), got {trace!r}")
    paths = [run.position(*_traced(point)) for point in ((trace,) if isinstance(trace, str) else trace)]
    scene = composition.begin(model, shape, np.concatenate([poses, run.poses]), view)
    for k, one in enumerate(poses[:-1]):
        scene.ghost, scene.opacity = True, 0.18 + 0.3 * k / max(len(poses) - 1, 1)
        composition.add_bodies(scene, shape, one)
    scene.ghost, scene.opacity = False, 1.0
    for k, points in enumerate(paths):
        scene.line(points, COLOURS[(k + 1) % len(COLOURS)], 0.9, "trace")
    _add_all(scene, model, shape, poses[-1], run.poses, centres)
    return _figure(scene, model, shape, poses[-1], names, scale, size, path, overwrite)


def thumbnail(model: Model) -> str:
    """A small SVG of a model, made without matplotlib; empty where it cannot be drawn."""
    try:
        shape = shape_of(model)
        return svg(_scene(model, shape, _poses(model, None), None, True))
    except CardanError:
        return ""


def _scene(model: Model, shape: Shape, poses: np.ndarray, view: Any, centres: bool) -> Scene:
    scene = composition.begin(model, shape, poses, view)
    _add_all(scene, model, shape, poses, poses, centres)
    return scene


def _add_all(scene: Scene, model: Model, shape: Shape, poses: np.ndarray, travelled: np.ndarray, centres: bool) -> None:
    composition.add_bodies(scene, shape, poses)
    composition.add_elements(scene, model, shape, poses)
    composition.add_joints(scene, shape, poses, travelled)
    if centres:
        composition.add_centres(scene, shape, poses)


def _traced(point: Any) -> tuple[str, Any]:
    """A body or frame by name, or a pair of it and a point."""
    if isinstance(point, str):
        return point, (0.0, 0.0, 0.0)
    try:
        body, at = point
    except (TypeError, ValueError):
        raise InputError(f"draw: trace takes names of bodies or pairs (body, point), got {point!r}") from None
    return body, at


def _poses(model: Model, q: Any) -> np.ndarray:
    """Poses (nb, 4, 4) at a configuration; at the model's own start with its loops closed."""
    if q is None:
        q = model.start()
        if (model.cuts or model.couplings) and np.abs(constraint_residual(model, q)).max(initial=0.0) > CLOSED:
            q, _ = assemble(model, q)
    try:
        values = np.asarray(q, dtype=float)
    except (TypeError, ValueError):
        raise InputError(f"draw: q must be {model.nq} numbers, got {q!r}") from None
    if values.shape != (model.nq,) or not np.isfinite(values).all():
        raise InputError(f"draw: q must be {model.nq} finite numbers, got {values.tolist()} of shape {values.shape}")
    found: np.ndarray = np.asarray(body_poses(model, values)).reshape(model.nb, 4, 4)
    return found


def _figure(
    scene: Scene,
    model: Model,
    shape: Shape,
    poses: np.ndarray,
    names: bool,
    scale: bool,
    size: tuple[float, float] | None,
    path: str | os.PathLike[str] | None,
    overwrite: bool,
) -> Figure:
    """The scene on a sheet without axes, with equal scales."""
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_rgba
    from matplotlib.path import Path as Outline

    low, high = scene.bounds()
    margin = 0.8 * scene.unit
    low, high = low - margin, high + margin
    span = high - low
    strip = STRIP if scale else 0.0
    room = LARGEST if size is None else (size[0], max(size[1] - strip, 0.1))
    per_inch = float(np.max(span / np.array(room)))
    size = size or (max(span[0] / per_inch, NARROWEST), max(span[1] / per_inch, SHORTEST) + strip)
    figure = new_figure(*size, by_hand=True)
    with look():
        at = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        at.set_axis_off()
        patches = scene.sorted()
        outlines = [
            Outline(np.vstack([p.points, p.points[:1]]) if p.closed else p.points, closed=p.closed) for p in patches
        ]
        at.add_collection(
            PathCollection(
                outlines,
                facecolors=[to_rgba(p.face or "none", p.opacity if p.face else 0.0) for p in patches],
                edgecolors=[to_rgba(p.edge or "none", p.opacity if p.edge else 0.0) for p in patches],
                linewidths=[p.width if p.edge else 0.0 for p in patches],
                linestyles=[(0, tuple(d / p.width for d in p.dash)) if p.dash else "solid" for p in patches],
                capstyle="round", joinstyle="round", gid="mechanism",
            ),
            autolim=False,
        )  # fmt: skip
        strip *= per_inch
        middle, (width, height) = (low + high) / 2, np.array(size) * per_inch
        at.set_xlim(middle[0] - width / 2, middle[0] + width / 2)
        at.set_ylim(low[1] - strip - (height - strip - span[1]) / 2, high[1] + (height - strip - span[1]) / 2)
        at.set_aspect("equal", adjustable="datalim")
        if scale:
            add_captions(at, scene, model, per_inch)
        if names:
            add_names(at, scene, shape, poses, per_inch)
    if path is not None:
        save_figure(figure, path, overwrite)
    return figure
