"""The samples of a page: times, poses, reactions and the curves to plot, of each of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.model.model import Model
from cardan.model.values import one
from cardan.results.geometry import pose_of
from cardan.results.laws import held_intervals, what_happens
from cardan.results.rounding import without_rounding, wrenches_without_rounding
from cardan.results.trajectory.named import named_quantities
from cardan.results.trajectory.trajectory import Trajectory
from cardan.structure.assemble import configuration

MOST_SAMPLES = 2000  # longer runs are thinned; the page interpolates between samples
MOST_IN_ALL = 12_000  # samples of all runs of a page together
MOST_GHOSTS = 24  # systems of a batch that are shown
MOST_VALUES = 400_000  # of curves that nobody asked for
CURVES = ("q", "v", "energy")  # plotted by default
SMALL = 12  # bodies: of a larger model only what needs no further kernels is in the list of quantities


@dataclass(frozen=True, eq=False)
class Plot:
    """Curves of one quantity: key, title, unit, names and values (n, curves).

    Without values, they are columns from `first` of the run's poses, reactions or contacts, as `source` says. `shaded`
    says what holds in some intervals of time, s.
    """

    key: str
    title: str
    unit: str
    curves: list[str]
    values: np.ndarray | None
    source: str = ""
    first: int = 0
    shaded: tuple[str, list[tuple[float, float]]] = ("", [])

    @property
    def name(self) -> str:
        """The quantity, without its unit."""
        return self.key.partition(", ")[0]

    @property
    def tells(self) -> bool:
        """Whether a curve differs from zero."""
        return self.values is None or bool(np.any(self.values))


@dataclass(frozen=True, eq=False)
class PageSamples:
    """One run of a page: times (n,), poses (n, nb, 4, 4), reactions (n, joints, 6) in ground axes or None, plots.

    `contacts` (n, c, 6) are the point and the force of each contact, m and N, in ground axes.
    """

    label: str
    model: Model
    time: np.ndarray
    poses: np.ndarray
    reactions: np.ndarray | None
    plots: list[Plot]
    events: list[dict[str, Any]]
    contacts: np.ndarray | None = None

    def arrays(self, k: int) -> dict[str, np.ndarray]:
        """What is packed for run number k."""
        n, nb = len(self.time), self.poses.shape[1]
        moved = np.concatenate([self.poses[..., :3, 3], quaternions(self.poses[..., :3, :3])], axis=-1)
        found = {f"time{k}": self.time[:, None].astype(np.float64), f"poses{k}": moved.reshape(n, 7 * nb)}
        if self.reactions is not None:
            found[f"reactions{k}"] = self.reactions.reshape(n, -1)
        if self.contacts is not None:
            found[f"contacts{k}"] = self.contacts.reshape(n, -1)
        found |= {f"plot{k}.{p}": plot.values for p, plot in enumerate(self.plots) if plot.values is not None}
        return {
            name: value if name.startswith("time") else np.asarray(value, np.float32) for name, value in found.items()
        }


def runs_of(
    thing: Any, labels: Sequence[str] | None, q: Any = None, most: int = MOST_GHOSTS
) -> tuple[list[tuple[str, Trajectory]], bool]:
    """The runs to show with their labels, of one system each; and whether they are systems of one batch.

    Of a batch at most `most` are shown.
    """
    if isinstance(thing, Model):
        return [(thing.name, _still(thing, q))], False
    if isinstance(thing, Trajectory):
        if not thing.batch:
            return [(_labels(labels, ["run"])[0], thing)], False
        places = list(np.ndindex(*thing.batch))
        kept = np.unique(np.linspace(0, len(places) - 1, min(len(places), most)).round().astype(int))
        names = [f"system {', '.join(map(str, places[k]))}" for k in kept]
        return [(name, thing[places[k]]) for name, k in zip(_labels(labels, names), kept, strict=True)], True
    if isinstance(thing, list | tuple) and thing and all(isinstance(run, Trajectory) for run in thing):
        for k, run in enumerate(thing):
            if run.batch:
                raise InputError(f"page: run {k} has a batch of shape {run.batch}; overlay single runs, as run[0]")
        return list(zip(_labels(labels, [f"run {k}" for k in range(len(thing))]), thing, strict=True)), False
    what = "an empty list" if isinstance(thing, list | tuple) and not thing else type(thing).__name__
    raise InputError(f"page: give a run, a list of runs or a model, got {what}")


def _labels(labels: Sequence[str] | None, usual: list[str]) -> list[str]:
    if labels is None:
        return usual
    if isinstance(labels, str) or len(labels) != len(usual):
        raise InputError(f"page: labels must be a list of {len(usual)} names, one for each run, got {labels!r}")
    return [str(label) for label in labels]


def sampled(
    run: Trajectory, label: str = "run", names: Sequence[str] = (), *, moves: bool = True, most: int = MOST_SAMPLES,
    offered: bool = True, forces: bool = True,
) -> PageSamples:  # fmt: skip
    """The samples of one run: all, or an even selection of at most `most`; a model at rest has no curves.

    Curves are of the quantities named and, if `offered`, of all that the page's list of quantities has.
    """
    keep = _kept(run, most)
    poses = run.poses[keep]
    for name in names:
        run.quantity(name)  # raises an error for an unknown name
    if not moves:
        return PageSamples(label, run.model, run.time[keep], poses, None, [], [])
    reactions = _in_ground_axes(run, poses, keep) if forces and run.model.joints else None
    plots = [plot for name in dict.fromkeys(names) for plot in _plots(run, name, keep)]
    left = MOST_VALUES
    for name in _offered(run) if offered else ():
        if name not in names:
            for plot in _plots(run, name, keep):
                assert plot.values is not None
                left -= plot.values.size
                plots += [plot] if left >= 0 else []
    contacts = _contacts(run, keep) if reactions is not None else None
    plots += _columns(run.model, reactions is not None, contacts is not None)
    events = [{"name": what_happens(run.model, event), "time": float(event.time)} for event in run.events]
    return PageSamples(label, run.model, run.time[keep], poses, reactions, plots, events, contacts)


def contact_names(model: Model) -> list[str]:
    """The contacts whose point and force can be read off a run."""
    named = named_quantities(model)
    found = [name.removesuffix(".ground_force") for name in named if name.endswith(".ground_force")]
    return [name for name in found if f"{name}.point" in named]


def _contacts(run: Trajectory, keep: np.ndarray) -> np.ndarray | None:
    """Points and forces (n, c, 6) of the contacts; None if there are none."""
    parts = [
        np.concatenate([run.quantity(f"{name}.{what}")[keep] for what in ("point", "ground_force")], axis=-1)
        for name in contact_names(run.model)
    ]
    return np.stack(parts, axis=1) if parts else None


def _still(model: Model, q: Any) -> Trajectory:
    """A model as a run of one sample, at rest."""
    model.require_one("page")
    q = one("page", "q", configuration("page", model, q), model.nq)
    return Trajectory(model, np.zeros(1), q[None], np.zeros((1, model.nv)))


def _kept(run: Trajectory, most: int) -> np.ndarray:
    """Numbers of the samples to show: all, or an even selection; no padding."""
    every = np.flatnonzero(run.valid)
    if len(every) <= most:
        return every
    return every[np.unique(np.linspace(0, len(every) - 1, most).round().astype(int))]


def _offered(run: Trajectory) -> list[str]:
    """Names of the quantities that a page offers, those asked for most first.

    Coordinates of the tree's joints are in `q`, `v` and `a`; positions of bodies move the picture anyway.
    """
    model = run.model
    tree, bodies = {model.joints[link.joint].name for link in model.tree.links}, set(model.body_names)
    drawn = {f"{name}.{what}" for name in contact_names(model) for what in ("point", "ground_force")}
    whole = ["q", "v", "energy", "power", "momentum", "position_residual", "a"]
    elements: list[str] = []
    joints: list[str] = []
    points: list[str] = []
    for owner, _, what in (name.rpartition(".") for name in run.names() if "." in name):
        if owner in model.joint_names:
            joints += [f"{owner}.{what}"] if owner not in tree or what.startswith("reaction") else []
        elif (owner not in bodies or what != "position") and f"{owner}.{what}" not in drawn:
            (points if what in ("position", "velocity", "acceleration", "angular_velocity") else elements).append(
                f"{owner}.{what}"
            )
    if model.nb > SMALL:
        whole, joints, points = [name for name in whole if name in (*CURVES, *run._computed)], [], []
    return [*whole, *elements, *joints, *points]


def _plots(run: Trajectory, name: str, keep: np.ndarray) -> list[Plot]:
    """Plots of a quantity, one for each unit among its columns; energy includes its parts."""
    about = run.about(name)
    parts = ("energy", "kinetic", "potential") if name == "energy" else (name,)
    values = np.concatenate([run.quantity(part)[keep].reshape(len(keep), -1) for part in parts], axis=1)
    labels = parts if name == "energy" else about.labels or (name.rpartition(".")[2],)
    units = about.units * len(parts)
    words = about.description.partition(": ")[2] or about.description
    found, held = [], held_intervals(run, name.rpartition(".")[0])
    for unit in dict.fromkeys(units):
        columns = [k for k, other in enumerate(units) if other == unit]
        curves = without_rounding(run, values[:, columns], unit)
        found.append(
            Plot(f"{name}, {unit}", f"{name}: {words}", unit, [labels[k] for k in columns], curves, shaded=held)
        )
    return found


def _columns(model: Model, reactions: bool, contacts: bool) -> list[Plot]:
    """What can be plotted of the numbers that move the picture: reactions and contacts in ground axes, and bodies."""
    found, xyz = [], ["x", "y", "z"]
    for c, name in enumerate(contact_names(model) if contacts else ()):
        found.append(Plot(f"{name}.point, m", f"{name}.point: where it acts", "m", xyz, None, "contacts", 6 * c))
        words = f"{name}.ground_force: in ground axes"
        found.append(Plot(f"{name}.ground_force, N", words, "N", xyz, None, "contacts", 6 * c + 3))
    for j, joint in enumerate(model.joints if reactions else ()):
        for what, unit, first in (("force", "N", 6 * j + 3), ("moment", "N m", 6 * j)):
            title = f"{joint.name}.reaction_{what} in ground axes"
            found.append(Plot(f"{title}, {unit}", title, unit, xyz, None, "reactions", first))
    for b, name in enumerate(model.body_names):
        found.append(Plot(f"{name}.position, m", f"{name}.position: of its origin", "m", xyz, None, "poses", 7 * b))
    return found


def _in_ground_axes(run: Trajectory, poses: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Reactions (n, joints, 6) in ground axes, without rounding."""
    joints = run.model.joints
    axes = [pose_of(poses, j.child)[..., :3, :3] @ j.child_at.rotation for j in joints]
    turn = np.stack([np.broadcast_to(R, (len(poses), 3, 3)) for R in axes], axis=1)
    wrench = run.reactions[keep].reshape(len(keep), len(joints), 2, 3)
    turned = np.einsum("njab,njkb->njka", turn, wrench).reshape(len(keep), len(joints), 6)
    return wrenches_without_rounding(run, turned)


def quaternions(R: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4), scalar first, of rotations (..., 3, 3)."""
    from scipy.spatial.transform import Rotation

    if not R.size:
        return np.zeros((*R.shape[:-2], 4))
    xyzw = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat()
    return xyzw[:, [3, 0, 1, 2]].reshape(*R.shape[:-2], 4)
