"""Where a frame of a mechanism can be: a cloud of points, its extent, and points of its boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.kinematics.damped_least_squares import size_of
from cardan.analysis.kinematics.inverse_kinematics import Search, inverse_kinematics
from cardan.analysis.kinematics.manipulability import free_motions
from cardan.analysis.kinematics.targets import Target
from cardan.errors import InputError
from cardan.functions.kinematics import frame_pose, jacobian
from cardan.machines.cuda.place import place_of
from cardan.machines.waiting import said
from cardan.model.memory import require_model
from cardan.model.model import Model
from cardan.model.values import number, one, whole
from cardan.structure.planarity import find_plane, is_planar

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

MARGIN = 0.06  # of its extent, by which the grid is larger than the cloud
CELLS = {2: 40, 3: 20}  # along the longest side of the grid, by the dimension of the workspace
KINDS = {1: "a curve", 2: "an area", 3: "a volume"}


@dataclass(frozen=True, eq=False)
class Workspace:
    """Where a point of a frame can be.

    Args:
        model: the mechanism.
        frame: the body or frame.
        points: reachable positions (n, 3), m.
        q: a configuration (n, nq) for each of them, loops closed.
        dimension: 1 for a curve, 2 for an area or surface, 3 for a volume.
        boundary: positions (k, 3), m, on the boundary: the nearest to points out of reach. Empty for curves and
            surfaces.
        boundary_q: a configuration (k, nq) for each of them.
        extent: area (m^2) or volume (m^3) in reach, counted on a grid; NaN for curves and surfaces.
        cell: side of a cell of the grid, m; the error of `extent` is about the boundary's size times this.

    """

    model: Model
    frame: str
    points: np.ndarray
    q: np.ndarray
    dimension: int
    boundary: np.ndarray
    boundary_q: np.ndarray
    extent: float
    cell: float

    def __str__(self) -> str:
        """A few lines of figures."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        lines = [f"workspace of {self.frame!r} of {self.model.name!r}: {KINDS[self.dimension]}"]
        lines += [f"  {axis} from {a:.4g} to {b:.4g} m" for axis, a, b in zip("xyz", low, high, strict=True)]
        if np.isfinite(self.extent):
            unit = "m^2" if self.dimension == 2 else "m^3"
            lines.append(f"  {self.extent:.4g} {unit} in reach, on a grid of {self.cell:.3g} m")
        return "\n".join(lines)

    def page(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the mechanism with the cloud of points around it as one HTML file that any browser opens offline."""
        from cardan.results.page.page import page

        points = np.concatenate([self.boundary, self.points])
        page(self.model, path, q=self.q[0], points=points, overwrite=overwrite)

    def plot(
        self, *, size: tuple[float, float] | None = None, path: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """The points and the boundary, in the plane or in three views; a `matplotlib.figure.Figure`."""
        from cardan.analysis.kinematics.plots import plot_workspace

        return plot_workspace(self, size, path, overwrite)


@said("computing the workspace")
def workspace(
    model: Model, frame: str, *, point: ArrayLike = (0.0, 0.0, 0.0), samples: int = 4000, limits: bool | Any = True,
    boundary: bool = True, cells: int | None = None, t: float = 0.0, threads: int | None = None,
    device: str | None = None,
) -> Workspace:  # fmt: skip
    """Where a point of a frame can be, with loops closed and limits kept.

    A cloud of points comes from coordinates spread evenly. A grid around it is then searched by inverse kinematics:
    which of its points can be reached, and for those just outside the nearest that can, which is on the boundary.

    Args:
        model: the mechanism, at one value of its free parameters.
        frame: a body or named frame.
        point: point (3,) of the frame in its own components, m.
        samples: configurations of the cloud.
        limits: as in `cd.inverse_kinematics`. Slides without limits reach as far as the size of the mechanism.
        boundary: whether to search the grid.
        cells: cells of the grid along its longest side.
        t: time, s, for prescribed motions.
        threads: number of threads.
        device: "gpu" to compute on the GPU (docs/gpu.md).

    """
    require_model("workspace", model)
    owner = "workspace"
    if device is not None:
        threads = place_of(owner, device, threads)
    model.require_one(owner)
    link, _ = model.placement(frame)
    if link < 0:
        raise InputError(f"{owner}: the frame {frame!r} is fixed to the ground; name one of a moving body")
    point, samples = one(owner, "point", point, 3), whole(owner, "samples", samples, least=10)
    t = number(owner, "t", t, "of seconds")
    search = Search.closing(owner, model, 1, limits, frozenset(), t, threads)
    q = search.spread(samples)
    q = search.assembled(q) if model.has_rows else q
    if not len(q):
        raise InputError(f"{owner}: model {model.name!r} could not be assembled within its limits; see cd.assemble")
    points = _positions(model, q, frame, point)
    dimension, axes = _dimension(model, q, frame, point, t)
    none, cell, extent = np.zeros((0, 3)), float("nan"), float("nan")
    found = Workspace(model, frame, points, q, dimension, none, np.zeros((0, model.nq)), extent, cell)
    if not boundary or dimension != len(axes):
        return found
    count = CELLS[dimension] if cells is None else whole(owner, "cells", cells, least=4)
    grid, cell = _grid(points, axes, count)
    flat = grid.reshape(-1, 3)
    nearest = _nearest(points, flat)
    target = Target(frame, position=flat, point=point)
    reach = inverse_kinematics(model, target, q[nearest], starts=3, limits=limits, t=t, threads=threads)
    inside = reach.reached.reshape(grid.shape[:-1])
    beside = _grown(inside).ravel() & ~inside.ravel()
    beside &= reach.position_error <= 2 * cell * np.sqrt(dimension)
    extent = float(inside.sum()) * cell**dimension
    edge = _positions(model, reach.q[beside], frame, point)
    return Workspace(model, frame, points, q, dimension, edge, reach.q[beside], extent, cell)


def _positions(model: Model, q: np.ndarray, frame: str, point: np.ndarray) -> np.ndarray:
    pose = np.asarray(frame_pose(model, q, frame))
    return np.asarray(pose[..., :3, 3] + pose[..., :3, :3] @ point)


def _dimension(model: Model, q: np.ndarray, frame: str, point: np.ndarray, t: float) -> tuple[int, np.ndarray]:
    """In how many directions the point can move, at most of some configurations, and the axes that span its space."""
    some = q[:: max(1, len(q) // 20)]
    J = np.asarray(jacobian(model, some, frame, axes="ground"))
    arm = np.asarray(frame_pose(model, some, frame))[..., :3, :3] @ point
    velocity = J[:, 3:] - np.cross(arm[:, :, None], J[:, :3], axis=1)
    s = np.linalg.svd(velocity @ free_motions(model, some, t), compute_uv=False)
    ranks = (s > 1e-6 * size_of(model)).sum(axis=-1)
    axes = np.asarray(find_plane(model).ground.axes, dtype=float)[:2] if is_planar(model) else np.eye(3)
    return max(1, int(np.median(ranks))), axes


def _grid(points: np.ndarray, axes: np.ndarray, count: int) -> tuple[np.ndarray, float]:
    """Points (n1, n2, (n3,) 3) of a grid around a cloud, and the side of its cells, m."""
    flat = points @ axes.T
    low, high = flat.min(axis=0), flat.max(axis=0)
    rim = MARGIN * float((high - low).max())
    cell = float((high - low).max() + 2 * rim) / count
    lines = [np.arange(a - rim + cell / 2, b + rim, cell) for a, b in zip(low, high, strict=True)]
    rest = points.mean(axis=0) - points.mean(axis=0) @ axes.T @ axes  # a plane's height
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1) @ axes + rest, cell


def _nearest(points: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Number of the nearest point to each of those wanted."""
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(points).query(wanted)[1])


def _grown(inside: np.ndarray) -> np.ndarray:
    """Cells of a grid that are marked or beside one that is."""
    grown = inside.copy()
    for axis in range(inside.ndim):
        for shift in (1, -1):
            rolled = np.roll(inside, shift, axis)
            edge: list[Any] = [slice(None)] * inside.ndim
            edge[axis] = 0 if shift == 1 else -1
            rolled[tuple(edge)] = False
            grown |= rolled
    return grown
