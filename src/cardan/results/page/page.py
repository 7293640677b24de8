"""An animated mechanism as one HTML file that any browser opens offline.

K3D-jupyter shows the scene: its snapshot, which includes its JavaScript and three.js, comes from the installed package
when the page is written. `data/page.js` animates the scene and draws the plots. Numbers are base64: times as float64,
poses as position (m) and quaternion (w, x, y, z) of every body in float32, which the page interpolates.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.atomic_file import whole_file
from cardan.errors import FileError, InputError
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.model.values import batch, one
from cardan.results.geometry import BodyPoint, Geometry, place, pose_of, upwards
from cardan.results.page.scene_3d import FORCE, MOMENT, Part, Scene3D, Solid, add_cloud, arrow, joined, scene_3d
from cardan.results.trajectory.files import table
from cardan.results.trajectory.trajectory import Trajectory
from cardan.structure.assemble import configuration

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST_SAMPLES = 2000  # longer runs are thinned; the page interpolates between samples
CURVES = ("q", "v", "energy")  # plotted by default
LAYERS = ("bodies", "plates", "ground", "force elements", "joint axes", "frames", "centres of mass")
MOST_POINTS = 3000  # of a cloud
SHOWN = ("bodies", "plates", "ground", "force elements")


def page(
    thing: Trajectory | Model, path: str | os.PathLike[str], *names: str, q: ArrayLike | None = None,
    points: ArrayLike | None = None, overwrite: bool = False,
) -> None:  # fmt: skip
    """Write a run, or a model at rest, as one HTML file that any browser opens offline.

    Args:
        thing: a run of one system, or a model.
        path: file to write; it appears only when it is complete.
        names: quantities to plot below the scene, `"q"`, `"v"` and `"energy"` by default; see `Trajectory.quantity`.
        q: configuration (nq,) of a model, rad and m; by default its start, assembled.
        points: positions (n, 3) in ground axes, m, to show as a cloud, such as a workspace; at most 3000 of them.
        overwrite: whether an existing file may be replaced.

    """
    text = html(thing, names, q=q, points=points)
    with whole_file(path, overwrite) as part:
        part.write_text(text, encoding="utf-8")


def html(
    thing: Trajectory | Model, names: Sequence[str] = (), *, q: Any = None, points: Any = None, live: bool = False
) -> str:
    """The text of the page; a `live` page receives further samples from its server."""
    if isinstance(thing, Model):
        run = _still(thing, q)
    elif not isinstance(thing, Trajectory):
        raise InputError(f"page: give a run or a model, got {type(thing).__name__}")
    elif thing.batch:
        raise InputError(f"page: the run has a batch of shape {thing.batch}; give one system of it, as run[0]")
    else:
        run = thing
    samples = sampled(run, names, moves=live or len(run.time) > 1)
    scene = scene_3d(run.model, samples.poses)
    layers = {layer: layer in SHOWN for layer in LAYERS}
    cloud = np.zeros((0, 3)) if points is None else batch("page", "points", points, 3).reshape(-1, 3)
    if len(cloud):
        add_cloud(scene, cloud[:: -(-len(cloud) // MOST_POINTS)])
        layers |= {"points": True}
    about = {
        "name": run.model.name,
        "live": live,
        "bodies": list(run.model.body_names),
        "points": _points(run.model, scene.geometry),
        "view": _view(run.model, scene.geometry, samples.poses, cloud),
        "layers": layers,
        "reactions": _reactions(scene.geometry, samples),
        "plots": [{"title": p.title, "unit": p.unit, "curves": p.curves} for p in samples.plots],
        "data": encoded(samples),
    }
    return _written(scene, about)


@dataclass(frozen=True, eq=False)
class Plot:
    """Curves of one quantity: names, unit, and values (n, curves)."""

    title: str
    unit: str
    curves: list[str]
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class PageSamples:
    """Samples of a page: times (n,), poses (n, nb, 4, 4), reactions (n, joints, 6) in ground axes, and plots."""

    time: np.ndarray
    poses: np.ndarray
    reactions: np.ndarray
    plots: list[Plot]


def sampled(run: Trajectory, names: Sequence[str] = (), moves: bool = True) -> PageSamples:
    """Collect the samples of a page; a model at rest has neither plots nor reactions."""
    keep = _kept(run)
    poses = run.poses[keep]
    if not moves:
        for name in names:
            run.quantity(name)  # raises an error for an unknown name
        return PageSamples(run.time[keep], poses, np.zeros((len(keep), len(run.model.joints), 6)), [])
    plots = [plot for name in names or CURVES for plot in _plots(run, name, keep)]
    return PageSamples(run.time[keep], poses, _in_ground_axes(run, poses, keep), plots)


def encoded(samples: PageSamples) -> dict[str, Any]:
    """The samples as base64 text."""
    moved = np.concatenate([samples.poses[..., :3, 3], _quaternions(samples.poses[..., :3, :3])], axis=-1)
    return {
        "time": _base64(samples.time, np.float64),
        "poses": _base64(moved),
        "reactions": _base64(samples.reactions),
        "plots": [_base64(plot.values) for plot in samples.plots],
    }


def _still(model: Model, q: Any) -> Trajectory:
    """A model as a run of one sample, at rest."""
    model.require_one("page")
    q = one("page", "q", configuration("page", model, q), model.nq)
    return Trajectory(model, np.zeros(1), q[None], np.zeros((1, model.nv)))


def _kept(run: Trajectory) -> np.ndarray:
    """Numbers of the samples to show: all, or an even selection; no padding."""
    every = np.flatnonzero(run.valid)
    if len(every) <= MOST_SAMPLES:
        return every
    return every[np.unique(np.linspace(0, len(every) - 1, MOST_SAMPLES).round().astype(int))]


def _plots(run: Trajectory, name: str, keep: np.ndarray) -> list[Plot]:
    """Plots of a quantity, one for each unit among its columns; energy includes its parts."""
    run.quantity(name)  # raises an error for an unknown name
    names = ("energy", "kinetic", "potential") if name == "energy" else (name,)
    frame = table(run, [n for n in names if n not in ("q", "v")])
    by_unit: dict[str, list[str]] = {}
    for column, unit in frame.attrs["units"].items():
        if column in names or column.startswith(tuple(f"{n}." for n in names)):
            by_unit.setdefault(unit, []).append(column)
    words = run.about(name).description
    at = np.searchsorted(np.flatnonzero(run.valid), keep)  # the table has no padding
    return [
        Plot(words, unit, [c.removeprefix(f"{name}.") for c in columns], frame[columns].to_numpy(float)[at])
        for unit, columns in by_unit.items()
    ]


def _in_ground_axes(run: Trajectory, poses: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Reactions (n, joints, 6) in ground axes."""
    joints = run.model.joints
    axes = [pose_of(poses, j.child)[..., :3, :3] @ j.child_at.rotation for j in joints]
    turn = np.stack([np.broadcast_to(R, (len(poses), 3, 3)) for R in axes], axis=1)
    wrench = run.reactions[keep].reshape(len(keep), len(joints), 2, 3)
    return np.einsum("njab,njkb->njka", turn, wrench).reshape(len(keep), len(joints), 6)


def _quaternions(R: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4), scalar first, of rotations (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    if not R.size:
        return np.zeros((*R.shape[:-2], 4))
    xyzw = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat()
    return xyzw[:, [3, 0, 1, 2]].reshape(*R.shape[:-2], 4)


def _base64(array: np.ndarray, kind: type = np.float32) -> str:
    little = np.dtype(kind).newbyteorder("<")
    return base64.b64encode(np.ascontiguousarray(array, dtype=little).tobytes()).decode()


def _points(model: Model, geometry: Geometry) -> list[dict[str, Any]]:
    """Points that can be traced: centres of mass, joints and named frames."""
    listed = [(f"{geometry.names[c.body]}, centre of mass", c) for c in geometry.centres]
    listed += [
        (f"joint {j.name}", BodyPoint(j.child, j.child_at.position)) for j in geometry.joints if j.child != GROUND
    ]
    listed += [(f"frame {f.name}", BodyPoint(f.body, f.at.position)) for f in model.frames if f.body != GROUND]
    return [{"name": name, **_end(p)} for name, p in listed]


def _end(p: BodyPoint) -> dict[str, Any]:
    return {"body": p.body, "point": np.asarray(p.position).tolist()}


def _view(model: Model, geometry: Geometry, poses: np.ndarray, cloud: np.ndarray) -> dict[str, Any]:
    """Default view: bounds and radius of the scene, the plane of a planar mechanism, and the upward direction."""
    ground = [joint.at.position for joint in geometry.joints if joint.parent == GROUND and joint.holds]
    spots = [place(poses, c.body, c.position) for c in geometry.centres]
    spots += [place(poses, joint.child, joint.child_at.position) for joint in geometry.joints]
    spots += [place(poses, end.body, end.position) for element in geometry.elements for end in element.ends]
    spots += [place(poses, plate.body, plate.corners) for plate in geometry.plates]
    every = np.vstack([np.reshape(spot, (-1, 3)) for spot in (*ground, *spots, cloud)] or [np.zeros((1, 3))])
    low, high = every.min(axis=0), every.max(axis=0)
    radius, plane = max(float(np.linalg.norm(high - low)) / 2, 4 * geometry.size), geometry.plane
    up = (upwards(model) if plane is None else plane[1]).tolist()
    return {
        "radius": radius, "up": up, "plane": None if plane is None else plane.tolist(), "size": geometry.size,
        "low": low.tolist(), "high": high.tolist(),
    }  # fmt: skip


def _reactions(geometry: Geometry, samples: PageSamples) -> dict[str, Any]:
    """Where reactions act, and the scale of arrows, N and N m per metre: most are shorter than a body."""
    sizes = np.linalg.norm(samples.reactions.reshape(-1, 2, 3), axis=-1)
    sizes = sizes[np.isfinite(sizes).all(axis=-1)]
    large = np.quantile(sizes, 0.95, axis=0) if len(sizes) else np.zeros(2)
    moment, force = (float(x) / geometry.length if x > 0 else 1.0 for x in large)
    return {
        "joints": [{"name": j.name, **_end(BodyPoint(j.child, j.child_at.position))} for j in geometry.joints],
        "moment_a_metre": moment,
        "force_a_metre": force,
    }


# The scene in K3D.


def _written(scene: Scene3D, about: dict[str, Any]) -> str:
    try:
        import k3d
    except ImportError:
        raise FileError("page: pages need K3D-jupyter, which is not installed; pip install 'cardan[view]'") from None
    plot = k3d.plot(
        grid_visible=False, menu_visibility=False, camera_auto_fit=False, axes_helper=0, antialias=1,
        logarithmic_depth_buffer=False, camera_mode="trackball", name=about["name"],
    )  # fmt: skip
    groups: dict[tuple[str, int], list[Part]] = {}
    for part in scene.parts:
        groups.setdefault((part.layer, part.body), []).append(part)
    about["parts"] = [{"object": f"{layer}/{body}", "layer": layer, "body": body} for layer, body in groups]
    for (layer, body), parts in groups.items():
        plot += _mesh(k3d, f"{layer}/{body}", parts)
    about["spans"] = []
    for k, span in enumerate(scene.spans):
        plot += _mesh(k3d, f"span/{k}", [Part(span.layer, GROUND, span.solid, span.colour)])
        about["spans"].append({
            "object": f"span/{k}", "layer": span.layer, "ends": [_end(end) for end in span.ends],
            "direction": None if span.direction is None else span.direction.tolist(), "follows": span.follows,
        })  # fmt: skip
    for k in range(len(scene.geometry.joints)):
        for what, colour, heads in (("force", FORCE, 1), ("moment", MOMENT, 2)):
            plot += _mesh(k3d, f"{what}/{k}", [Part("reactions", GROUND, arrow(heads), colour)])
    return str(plot.get_snapshot(additional_js_code=_script(about)))


def _mesh(k3d: Any, name: str, parts: list[Part]) -> Any:
    """A K3D mesh of several parts, with a colour for each corner."""
    solid: Solid = joined(part.solid for part in parts)
    colours = np.concatenate([np.full(len(part.solid.corners), part.colour, np.uint32) for part in parts])
    return k3d.mesh(
        solid.corners.astype(np.float32), solid.triangles.astype(np.uint32), colors=colours, name=name,
        opacity=parts[0].opacity, side="double" if parts[0].opacity < 1 else "front", flat_shading=parts[0].opacity < 1,
    )  # fmt: skip


def _script(about: dict[str, Any]) -> str:
    """The JavaScript of the page with its data, in which `<` is escaped so that no name can end the script."""
    folder = package_files("cardan") / "data"
    read = {name: (folder / f"page.{name}").read_text(encoding="utf-8") for name in ("html", "css", "js")}
    given = {"ABOUT": about, "LAYOUT": read["html"], "STYLE": read["css"]}
    lines = [f"const {name} = {json.dumps(value).replace('<', chr(92) + 'u003c')};" for name, value in given.items()]
    return "\n".join([*lines, read["js"]])
