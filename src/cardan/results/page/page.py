"""An animated mechanism as one HTML file that any browser opens offline.

The files of `data/page` draw the picture in WebGL 2, animate it and draw the plots; they become one script of the page.
Numbers are compressed text (`packing`): times as float64, poses as position (m) and quaternion (w, x, y, z) of every
body in float32, which the page interpolates. A policy in the head of the page forbids every request.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files as package_files
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.atomic_file import whole_file
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.model.values import batch
from cardan.results.geometry import BodyPoint, Geometry, place, upwards
from cardan.results.page.packing import packed
from cardan.results.page.program import page_program
from cardan.results.page.samples import (
    CURVES,
    MOST_GHOSTS,
    MOST_IN_ALL,
    MOST_SAMPLES,
    PageSamples,
    Plot,
    contact_names,
    runs_of,
    sampled,
)
from cardan.results.page.scene_3d import (
    BODIES,
    FORCE,
    LAYERS,
    MOMENT,
    MOST_FACES,
    Part,
    Scene3D,
    add_cloud,
    arrow,
    joined,
    scene_3d,
)
from cardan.results.trajectory.files import require_suffix
from cardan.results.trajectory.trajectory import Trajectory

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

MOST_POINTS = 3000  # of a cloud
SCRIPTS = (
    "vectors",
    "data",
    "renderer",
    "camera",
    "scene",
    "plots",
    "measure",
    "main",
    "controls",
    "start",
)
SIMULATION = ("webassembly", "simulator", "strip", "simulate")  # scripts of pages that simulate
INLINE_FACES, INLINE_GHOSTS = 12_000, 6  # of a view in a notebook


def page(
    thing: Trajectory | Model | Sequence[Trajectory], path: str | os.PathLike[str], *names: str,
    q: ArrayLike | None = None, points: ArrayLike | None = None, labels: Sequence[str] | None = None,
    together: bool = True, simulate: bool = True, sliders: Sequence[str] | None = None, overwrite: bool = False,
) -> None:  # fmt: skip
    """Write a run, several runs, or a model at rest as one HTML file that any browser opens offline.

    Args:
        thing: a run; a list of runs, shown together; a run of a batch, whose other systems are ghosts; or a model.
        path: file to write; it appears only when it is complete.
        names: quantities to plot below the scene, `"q"`, `"v"` and `"energy"` by default; see `Trajectory.quantity`.
            Others can be chosen in the page.
        q: configuration (nq,) of a model, rad and m; by default its start, assembled.
        points: positions (n, 3) in ground axes, m, to show as a cloud, such as a workspace; at most 3000 of them.
        labels: a name for each run.
        together: whether several runs are shown together at first, or one that is chosen from a list.
        simulate: whether the page can also simulate the mechanism, with sliders, and bodies that can be pulled.
        sliders: numbers of the model that get a slider, named as in `Model.free`; by default its free parameters, or
            gravity and the numbers of its force elements.
        overwrite: whether an existing file may be replaced.

    """
    require_suffix(path, ".html", "a page")
    text = html(
        thing,
        names,
        q=q,
        points=points,
        labels=labels,
        first=None if together else 0,
        simulate=simulate,
        sliders=sliders,
    )
    with whole_file(path, overwrite) as part:
        part.write_text(text, encoding="utf-8")


def html(
    thing: Any, names: Sequence[str] = (), *, q: Any = None, points: Any = None, labels: Sequence[str] | None = None,
    first: int | None = None, forces: bool = True, simulate: bool = False, sliders: Sequence[str] | None = None,
    live: bool = False, inline: bool = False,
) -> str:  # fmt: skip
    """The text of the page.

    Several runs are shown together, or with `first` that one alone until another is chosen. Without `forces` it has
    neither reactions nor quantities beyond those named. A `live` page receives samples from its server; an `inline`
    one is small, for notebooks.
    """
    runs, one_batch = runs_of(thing, labels, q, INLINE_GHOSTS if inline else MOST_GHOSTS)
    most = 300 if inline else min(MOST_SAMPLES, max(MOST_IN_ALL // len(runs), 100))
    moves = live or any(len(run.time) > 1 for _, run in runs)
    wanted = tuple(names) or (CURVES if moves and not inline else ())
    forces = forces and not inline
    offered = forces and not live
    samples = [
        sampled(run, label, wanted, moves=moves, most=most, offered=offered and (k == 0 or len(runs) <= 4),
                forces=forces and (k == 0 or len(runs) <= 8))
        for k, (label, run) in enumerate(runs)
    ]  # fmt: skip
    cloud = np.zeros((0, 3)) if points is None else batch("page", "points", points, 3).reshape(-1, 3)
    about = _about(samples, names, cloud, one_batch, first, live, inline)
    about["simulate"] = (
        page_program(thing if isinstance(thing, Model) else runs[0][1], sliders).description if simulate else None
    )
    return _written(about, live)


def _about(
    samples: list[PageSamples], names: Sequence[str], cloud: np.ndarray, one_batch: bool, alone: int | None,
    live: bool, inline: bool,
) -> dict[str, Any]:  # fmt: skip
    """All that the page is told."""
    machines: dict[Any, Machine] = {}
    for sample in samples:
        if (key := _key(sample.model)) not in machines:
            same = np.concatenate([other.poses for other in samples if _key(other.model) == key])
            machines[key] = Machine(scene_3d(sample.model, same, INLINE_FACES if inline else MOST_FACES), sample.model)
    every = list(machines.values())
    if len(cloud):
        add_cloud(every[0].scene, cloud[:: -(-len(cloud) // MOST_POINTS)])
    arrays = {name: array for k, machine in enumerate(every) for name, array in machine.arrays(k).items()}
    for k, sample in enumerate(samples):
        arrays |= sample.arrays(k)
    model, geometry = samples[0].model, every[0].scene.geometry
    first = {plot.name: plot.key for plot in reversed(samples[0].plots) if plot.name in CURVES and plot.tells}
    given = [plot.key for plot in samples[0].plots if plot.name in names]
    return {
        "name": model.name, "live": live, "inline": inline, "alone": alone, "faint": 0.3 if one_batch else 0.5,
        "machines": [machine.described() for machine in every],
        "runs": [
            {
                "label": sample.label, "machine": list(machines).index(_key(sample.model)), "ghost": k > 0,
                "tint": None if one_batch or k == 0 else _channels(BODIES[(k - 1 + 3) % len(BODIES)]),
                "events": sample.events, "plots": [_plot(plot) for plot in sample.plots],
            }
            for k, sample in enumerate(samples)
        ],
        "plotted": given or [first[name] for name in CURVES if name in first],
        "view": _view(model, geometry, samples, cloud),
        "layers": {**LAYERS, "points": True, "forces": False, "moments": False},
        "reactions": {**_scale_of_arrows(samples, geometry), "colours": [f"#{FORCE:06x}", f"#{MOMENT:06x}"]},
        "data": packed(arrays),
    }  # fmt: skip


def _key(model: Model) -> Any:
    """What models with the same solids have in common."""
    return model.key, None if model.values is None else model.values.tobytes()


def _channels(colour: int) -> list[float]:
    return [(colour >> shift & 255) / 255 for shift in (16, 8, 0)]


def _plot(plot: Plot) -> dict[str, Any]:
    return {"key": plot.key, "title": plot.title, "unit": plot.unit, "curves": plot.curves, "source": plot.source,
            "first": plot.first, "shaded": plot.shaded}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Machine:
    """The solids of a model for a page.

    Entries: bodies, the ground, spans, a force and a moment of each joint, a force of each contact.
    """

    scene: Scene3D
    model: Model

    def _parts(self) -> list[tuple[int, Part]]:
        """Solids with the entry that each moves with; parts of a body that look alike are one."""
        nb = self.model.nb
        alike: dict[Any, list[Part]] = {}
        for k, part in enumerate(self.scene.parts):
            apart = k if part.body == GROUND else -1  # the ground is wide: what is far apart keeps its own precision
            alike.setdefault((part.body, part.layer, part.colour, part.opacity, apart), []).append(part)
        found = [
            (nb if body == GROUND else body, Part(layer, body, joined(part.solid for part in parts), colour, opacity))
            for (body, layer, colour, opacity, _), parts in alike.items()
        ]
        for k, span in enumerate(self.scene.spans):
            found.append((nb + 1 + k, Part(span.layer, GROUND, span.solid, span.colour)))
        arrows = (("forces", FORCE, 1), ("moments", MOMENT, 2))
        found += [(0, Part(layer, GROUND, arrow(heads), colour)) for layer, colour, heads in arrows]
        return [(entry, part) for entry, part in found if len(part.solid.triangles)]

    def arrays(self, k: int) -> dict[str, np.ndarray]:
        """Corners as whole numbers of a step from a lowest corner, and triangles, of all parts one after the other."""
        whole, triangles = [np.zeros((0, 3), np.uint16)], [np.zeros((0, 3), np.uint32)]
        for _, part in self._parts():
            low, step = _steps(part.solid.corners)
            whole.append(np.round((part.solid.corners - low) / step).astype(np.uint16))
            triangles.append(part.solid.triangles.astype(np.uint32))
        return {f"vertices{k}": np.vstack(whole), f"triangles{k}": np.vstack(triangles)}

    def described(self) -> dict[str, Any]:
        """Names, parts, and what stretches or points where."""
        geometry, parts = self.scene.geometry, []
        for entry, part in self._parts():
            low, step = _steps(part.solid.corners)
            counts = len(part.solid.corners), len(part.solid.triangles)
            parts.append([entry, part.layer, *counts, part.colour, part.opacity, low.tolist(), step])
        joints = [{"name": j.name, **_end(BodyPoint(j.child, j.child_at.position))} for j in geometry.joints]
        centres = {c.body: c.position for c in geometry.centres}
        bodies = [
            {"name": name, **_end(BodyPoint(b, centres.get(b, np.zeros(3))))}
            for b, name in enumerate(self.model.body_names)
        ]
        spans = [
            {"ends": [_end(end) for end in span.ends], "follows": span.follows,
             "direction": None if span.direction is None else span.direction.tolist()}
            for span in self.scene.spans
        ]  # fmt: skip
        return {
            "bodies": list(self.model.body_names), "parts": parts, "spans": spans, "joints": joints,
            "points": _points(self.model, geometry), "labels": bodies + joints, "contacts": contact_names(self.model),
        }  # fmt: skip


def _steps(corners: np.ndarray) -> tuple[np.ndarray, float]:
    """The lowest corner (3,) of a box around corners, and a 65535th of its longest side, m; as float32 has them."""
    low = corners.min(axis=0).astype(np.float32).astype(float)
    return low, float(max((corners - low).max(), 1e-12)) / 65535


def _points(model: Model, geometry: Geometry) -> list[dict[str, Any]]:
    """Points that can be traced: named frames, joints and centres of mass."""
    listed = [(f"frame {f.name}", BodyPoint(f.body, f.at.position)) for f in model.frames if f.body != GROUND]
    listed += [
        (f"joint {j.name}", BodyPoint(j.child, j.child_at.position)) for j in geometry.joints if j.child != GROUND
    ]
    listed += [(f"{geometry.names[c.body]}, centre of mass", c) for c in geometry.centres]
    return [{"name": name, **_end(p)} for name, p in listed]


def _end(p: BodyPoint) -> dict[str, Any]:
    return {"body": p.body, "point": np.asarray(p.position).tolist()}


def _view(model: Model, geometry: Geometry, samples: list[PageSamples], cloud: np.ndarray) -> dict[str, Any]:
    """Radius of the scene, size of a symbol, height of the lowest joint on the ground, m; plane; upward direction."""
    poses, plane = samples[0].poses, geometry.plane
    spots = [joint.at.position for joint in geometry.joints if joint.parent == GROUND and joint.holds]
    spots += [place(poses, c.body, c.position) for c in geometry.centres]
    spots += [place(poses, joint.child, joint.child_at.position) for joint in geometry.joints]
    every = np.vstack([np.reshape(spot, (-1, 3)) for spot in (*spots, cloud)] or [np.zeros((1, 3))])
    radius = max(float(np.linalg.norm(np.ptp(every, axis=0))) / 2, 4 * geometry.size)
    up = (upwards(model) if plane is None else plane[1]).tolist()
    bases = [float(joint.at.position @ up) for joint in geometry.joints if joint.parent == GROUND and joint.holds]
    return {
        "radius": radius, "size": geometry.size, "up": up, "plane": None if plane is None else plane.tolist(),
        "base": min(bases, default=None),
    }  # fmt: skip


def _scale_of_arrows(samples: list[PageSamples], geometry: Geometry) -> dict[str, float]:
    """N and N m for a metre of arrow, round numbers: most arrows are shorter than a body."""
    wrenches = [sample.reactions.reshape(-1, 2, 3) for sample in samples if sample.reactions is not None]
    pushes = [sample.contacts[..., 3:].reshape(-1, 3) for sample in samples if sample.contacts is not None]
    none = np.zeros((0, 3))
    moments = np.concatenate([none, *(wrench[:, 0] for wrench in wrenches)])
    forces = np.concatenate([none, *(wrench[:, 1] for wrench in wrenches), *pushes])
    moment, force = (_arrow_scale(vectors, geometry.length) for vectors in (moments, forces))
    return {"moment": moment, "force": force}


def _arrow_scale(vectors: np.ndarray, length: float) -> float:
    """What a metre of arrow means for vectors (n, 3), if most of those that are not zero are at most a length, m."""
    sizes = np.linalg.norm(vectors, axis=-1)
    sizes = sizes[np.isfinite(sizes) & (sizes > 0)]
    return _round(float(np.quantile(sizes, 0.95)) / length) if len(sizes) else 1.0


def _round(x: float) -> float:
    """The next of 1, 2, 5, 10 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(power * next(k for k in (1, 2, 5, 10) if k * power >= x * (1 - 1e-9)))


def _plainly(script: str) -> str:
    """A script without its comments and the space before its lines."""
    lines = (line.strip() for line in script.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _written(about: dict[str, Any], live: bool) -> str:
    """The page. In its data `<` is escaped, so that no name can end the script."""
    folder = package_files("cardan") / "data" / "page"
    read = {name: (folder / name).read_text(encoding="utf-8") for name in ("page.html", "page.css")}
    scripts = [
        _plainly((folder / f"{name}.js").read_text(encoding="utf-8"))
        for name in (*SCRIPTS, *(SIMULATION if about["simulate"] else ()))
    ]
    given = json.dumps(about, allow_nan=False).replace("<", "\\u003c")
    script = "\n".join(["", '"use strict";', f"const ABOUT = {given};", "(async () => {", *scripts, "})();", ""])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    connect = "connect-src 'self'; " if live else ""
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}' 'wasm-unsafe-eval'; style-src 'unsafe-inline'; "
        f"img-src data:; {connect}base-uri 'none'; form-action 'none'"
    )
    return "\n".join([
        "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(about['name'])}</title><style>", read["page.css"], "</style></head><body>", read["page.html"],
        f"<script>{script}</script></body></html>", "",
    ])  # fmt: skip
