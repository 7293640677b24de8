"""The trajectory of a simulation: times, states, and on demand all that the model can say of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.model.model import Model
from cardan.model.values import floats, one, shown
from cardan.results import files
from cardan.results.dataset import dataset, table
from cardan.results.dense import states_at
from cardan.results.pictures import Pictures
from cardan.results.quantities import QUANTITIES, Samples, labels_of, with_time_axis, with_values
from cardan.results.record import About, EventRecord, Residuals, as_index, frozen
from cardan.results.words import html_table, paragraph

if TYPE_CHECKING:
    from os import PathLike

    import pandas
    import xarray


class Trajectory(Pictures):
    """States over time of one system or a batch of them, and what follows from them.

    Args:
        model: the mechanism.
        time: (n,), s; or (..., n) where systems stopped at different times, NaN after the end of each.
        q: configurations (..., n, nq), rad and m; leading axes are the batch.
        v: velocities (..., n, nv), rad/s and m/s.
        tau: constant drives (nv,) or (..., nv), N m and N.
        events: the events met.
        outcome: a word for each system that did not arrive as asked, empty for one that did.
        method: the integrator.
        formulation: in which accelerations and reactions are computed.
        settings: plain numbers and strings, kept with the run.
        statistics: the same, of what the integrator did.

    Everything else (`a`, `energy`, `reactions`, ...) is computed from the model when first asked for, and kept.

    """

    def __init__(
        self,
        model: Model,
        time: Any,
        q: Any,
        v: Any,
        *,
        tau: Any = None,
        events: Iterable[EventRecord] = (),
        outcome: Any = None,
        method: str = "",
        formulation: str = "spatial",
        settings: Mapping[str, Any] | None = None,
        statistics: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise InputError(f"trajectory: model must be a cd.Model, got {type(model).__name__}")
        about = About(labels_of(model), method, formulation, dict(settings or {}), dict(statistics or {}))
        arrays = {"time": _numbers("time", time), "q": _numbers("q", q), "v": _numbers("v", v)}
        drives = None if tau is None else _numbers("tau", tau)
        self._fill(about, model, arrays, drives, events, outcome)

    def _fill(
        self,
        about: About,
        model: Model | None,
        arrays: dict[str, Any],
        tau: np.ndarray | None,
        events: Iterable[EventRecord],
        outcome: Any,
        computed: Mapping[str, Any] | None = None,
    ) -> Trajectory:
        """Check the shapes and keep everything; arrays may be read lazily."""
        self._about, self._model, self._arrays = about, model, arrays
        self._computed: dict[str, Any] = dict(computed or {})
        shape = tuple(arrays["q"].shape)
        nq, nv = len(about.labels.coordinate), len(about.labels.rate)
        if len(shape) < 2 or shape[-1] != nq:
            raise InputError(f"trajectory: q must have the shape (..., n, {nq}), got {shape}")
        self.batch: tuple[int, ...] = shape[:-2]
        """Shape of the batch; `()` is a single system."""
        if tuple(arrays["v"].shape) != (*shape[:-1], nv):
            raise InputError(f"trajectory: v must have the shape {(*shape[:-1], nv)}, got {tuple(arrays['v'].shape)}")
        if tuple(arrays["time"].shape) not in (shape[-2:-1], shape[:-1]):
            raise InputError(
                f"trajectory: time must have the shape {shape[-2:-1]} or {shape[:-1]}, "
                f"got {tuple(arrays['time'].shape)}"
            )
        if shape[-2] == 0:
            raise InputError("trajectory: it has no samples; give at least one")
        if np.isnan(self.time).all():
            raise InputError("trajectory: time is nan at every sample; give at least one, s")
        if (np.diff(self.time, axis=-1) < 0).any():
            raise InputError("trajectory: time must not decrease along a run")
        if tau is not None and tuple(tau.shape) not in ((nv,), (*self.batch, nv)):
            raise InputError(f"trajectory: tau must have the shape {(nv,)} or {(*self.batch, nv)}, got {tau.shape}")
        self._tau = tau
        words = np.full(self.batch, "") if outcome is None else np.asarray(outcome, dtype=str)
        if words.shape != self.batch:
            raise InputError(f"trajectory: outcome must have the batch shape {self.batch}, got {words.shape}")
        self._outcome = words
        self.events: tuple[EventRecord, ...] = tuple(events)
        if not all(isinstance(event, EventRecord) for event in self.events):
            raise InputError(f"trajectory: events must be cd.EventRecord, got {shown(self.events)}")
        """The events met, in the order given."""
        return self

    # What was given.

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self._require("what you ask for")

    @cached_property
    def time(self) -> np.ndarray:
        """Times of the samples, s: (n,), or (..., n) with NaN after the end of each system."""
        return frozen(self._arrays["time"])

    @cached_property
    def q(self) -> np.ndarray:
        """Configurations (..., n, nq), rad and m."""
        return frozen(self._arrays["q"])

    @cached_property
    def v(self) -> np.ndarray:
        """Velocities (..., n, nv), rad/s and m/s."""
        return frozen(self._arrays["v"])

    @property
    def tau(self) -> np.ndarray | None:
        """Constant drives (nv,) or (..., nv), N m and N, or None."""
        return self._tau

    @property
    def outcome(self) -> Any:
        """A word for each system that did not arrive as asked, empty for one that did: a string, or an array."""
        return self._outcome if self.batch else str(self._outcome)

    @property
    def method(self) -> str:
        """The integrator."""
        return self._about.method

    @property
    def formulation(self) -> str:
        """In which accelerations and reactions are computed."""
        return self._about.formulation

    @property
    def settings(self) -> dict[str, Any]:
        """What the integrator was told."""
        return dict(self._about.settings)

    @property
    def statistics(self) -> dict[str, Any]:
        """What the integrator did."""
        return dict(self._about.statistics)

    @cached_property
    def valid(self) -> np.ndarray:
        """Mask (..., n), False in the padding after the end of a system."""
        given = ~(np.isnan(self.q).any(axis=-1) | np.isnan(self.v).any(axis=-1))
        return frozen(given & ~np.isnan(self.time), kind=bool)

    # What follows.

    def quantity(self, name: str) -> np.ndarray:
        """An entry of the table by name: "q", "v", "a", "poses", "energy", "position_residual", ..."""
        if name in ("q", "v"):
            return self.q if name == "q" else self.v
        if not isinstance(name, str) or name not in QUANTITIES:
            known = ("q", "v", *QUANTITIES)
            raise UnknownNameError(f"trajectory: {name!r} is not a quantity of a run{nearest(name, known)}")
        if name not in self._computed:
            self._computed[name] = self._over_samples(name)
        self._computed[name] = frozen(self._computed[name])
        found: np.ndarray = self._computed[name]
        return found

    def _over_samples(self, name: str) -> np.ndarray:
        """Evaluate a row of the table at every sample, leaving out the padding."""
        model, q, v, t, tau = self._require(name), self.q, self.v, self.time, self._tau
        tau = None if tau is None else tau[..., None, :]
        of = QUANTITIES[name].of
        if self.valid.all():
            found = np.asarray(of(Samples(with_time_axis(model), q, v, tau, t, self.formulation)))
            return np.broadcast_to(found, (*self.valid.shape, *found.shape[self.valid.ndim :]))
        keep = self.valid
        tau = None if tau is None else np.broadcast_to(tau, v.shape)[keep]
        t = np.broadcast_to(t, keep.shape)[keep]
        rows = np.asarray(of(Samples(self.model_at(keep), q[keep], v[keep], tau, t, self.formulation)))
        every = np.full((*keep.shape, *rows.shape[1:]), np.nan)
        every[keep] = rows
        return every

    def model_at(self, keep: np.ndarray) -> Model:
        """The model with the free parameters, if any, of the samples kept, one row each."""
        model = self._require("model")
        if model.values is None:
            return model
        values = model.values[..., None, :]
        return with_values(model, np.broadcast_to(values, (*keep.shape, values.shape[-1]))[keep])

    @property
    def a(self) -> np.ndarray:
        """Accelerations (..., n, nv), rad/s^2 and m/s^2."""
        return self.quantity("a")

    @property
    def poses(self) -> np.ndarray:
        """Poses of all bodies (..., n, nb, 4, 4) in ground axes, lengths in m."""
        return self.quantity("poses")

    @property
    def twists(self) -> np.ndarray:
        """Twists of all bodies (..., n, nb, 6), rad/s and m/s, body components."""
        return self.quantity("twists")

    @property
    def reactions(self) -> np.ndarray:
        """Wrench of every joint on its child (..., n, joints, 6), N m and N, at and in the joint frame."""
        return self.quantity("reactions")

    @property
    def multipliers(self) -> np.ndarray:
        """Multipliers (..., n, nl) of the constraint rows of the run's formulation, N m and N."""
        return self.quantity("multipliers")

    @property
    def kinetic(self) -> np.ndarray:
        """Kinetic energy (..., n), J."""
        return self.quantity("kinetic")

    @property
    def potential(self) -> np.ndarray:
        """Potential energy (..., n) of gravity and springs, J."""
        return self.quantity("potential")

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy (..., n), J."""
        return self.quantity("energy")

    @property
    def power(self) -> np.ndarray:
        """Power (..., n), W, that drives, motions, dampers, friction and other forces bring: the rate of `energy`."""
        return self.quantity("power")

    @property
    def momentum(self) -> np.ndarray:
        """Momentum (..., n, 6), angular about the ground's origin then linear, N m s and N s, ground components."""
        return self.quantity("momentum")

    @property
    def residuals(self) -> Residuals:
        """Largest position (m, rad) and velocity (m/s, rad/s) residual of loops and couplings, each (..., n)."""
        return Residuals(self.quantity("position_residual"), self.quantity("velocity_residual"))

    def coordinate(self, joint: str) -> np.ndarray:
        """Coordinates of a tree joint: (..., n), or (..., n, k) where it has several; rad and m."""
        return _squeezed(self.q[..., self._places("coordinate", joint)])

    def rate(self, joint: str) -> np.ndarray:
        """Rates of a tree joint: (..., n), or (..., n, k) where it has several; rad/s and m/s."""
        return _squeezed(self.v[..., self._places("rate", joint)])

    def reaction(self, joint: str) -> np.ndarray:
        """Wrench (..., n, 6) that a joint exerts on its child, N m and N, at and in the joint frame."""
        names = self._about.labels.joint
        if joint not in names:
            raise UnknownNameError(f"trajectory: joint {joint!r} is not in the model{nearest(joint, names)}")
        return self.reactions[..., names.index(joint), :]

    def position(self, body: str, point: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
        """Position (..., n, 3), m, ground axes, of a point (3,) given in the axes of a body or frame."""
        b, p = self._point(body, point)
        if b < 0:
            return np.where(self.valid[..., None], p, np.nan)
        pose = self.poses[..., b, :, :]
        return pose[..., :3, 3] + pose[..., :3, :3] @ p

    def velocity(self, body: str, point: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
        """Velocity (..., n, 3), m/s, ground axes, of a point (3,) given in the axes of a body or frame."""
        b, p = self._point(body, point)
        if b < 0:
            return np.where(self.valid[..., None], np.zeros(3), np.nan)
        twist, R = self.twists[..., b, :], self.poses[..., b, :3, :3]
        return (R @ (twist[..., 3:] + np.cross(twist[..., :3], p))[..., None])[..., 0]

    def at(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """States between the samples: q (..., nq) or (..., m, nq), and v, at a time (s) or times (m,) inside the run.

        Quintic Hermite interpolation of q, v and a on the joints' manifolds, closed onto the loops: for samples `h`
        apart the error is of order h^6 in q and h^5 in v. Where the state jumps, it is the state after the jump. A
        system of a batch that ended before a time has NaN there.
        """
        times = _numbers("t", t)
        q, v = states_at(self, np.atleast_1d(times))
        return (q, v) if times.ndim else (q[..., 0, :], v[..., 0, :])

    def _point(self, name: str, point: Any) -> tuple[int, np.ndarray]:
        """The body (-1 is ground) that carries a body's or frame's point, and the point in its axes."""
        model, p = self._require("position"), one("trajectory", "point", point, 3)
        if name in model.frame_names:
            frame = model.frames[model.frame_names.index(name)]
            return frame.body, frame.at.position + frame.at.rotation @ p
        return (-1, p) if name == "ground" else (model.body_index(name), p)

    def _places(self, axis: str, joint: str) -> slice:
        if self._model is not None:
            return self._model.q_slice(joint) if axis == "coordinate" else self._model.v_slice(joint)
        names = self._about.labels.along(axis) or ()
        found = [k for k, name in enumerate(names) if name == joint or name.rpartition("[")[0] == joint]
        if not found:
            raise UnknownNameError(f"trajectory: no coordinates belong to joint {joint!r}{nearest(joint, names)}")
        return slice(found[0], found[-1] + 1)

    def _require(self, what: str) -> Model:
        if self._model is None:
            raise InputError(
                f"run of {self._about.labels.model!r}: {what} is not in the file and needs the model; "
                "load the run with cd.load_run(path, model)"
            )
        return self._model

    # One of many.

    def __len__(self) -> int:
        """Number of systems along the first axis of the batch; 1 for a single system."""
        return self.batch[0] if self.batch else 1

    def __getitem__(self, index: Any) -> Trajectory:
        """One system of a batch, without padding, or a part of the batch: `run[3]`, `run[:10]`, `run[2, 0]`."""
        numbers = np.arange(int(np.prod(self.batch))).reshape(self.batch or (1,))
        index = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(i, int | np.integer | slice) for i in index):
            raise InputError(f"trajectory: a batch is indexed by integers and slices, got {index!r}")
        kept = np.asarray(numbers[index])  # an IndexError ends a loop over the run
        if not self.batch:
            return self
        keep = slice(None)
        if kept.ndim == 0:
            rows = ~np.isnan(np.asarray(self._arrays["q"][index])).any(axis=-1)
            rows &= ~np.isnan(self.time[index] if self.time.ndim > 1 else self.time)
            keep = slice(int(np.flatnonzero(rows)[-1]) + 1 if rows.any() else 1)
        part = {name: np.asarray(self._arrays[name][index])[..., keep, :] for name in ("q", "v")}
        part["time"] = (self.time[index] if self.time.ndim > 1 else self.time)[..., keep]
        n = part["time"].shape[-1]
        computed = {
            name: np.asarray(value[index])[(slice(None),) * kept.ndim + (slice(n),)]
            for name, value in self._computed.items()
        }
        tau = self._tau if self._tau is None or self._tau.ndim == 1 else self._tau[index]
        return Trajectory.__new__(Trajectory)._fill(
            self._about, self._model_of(index), part, tau, self._events_of(kept), self._outcome[index], computed
        )

    def _model_of(self, index: Any) -> Model | None:
        """The model with the free parameters, if any, of a part of the batch."""
        if self._model is None or self._model.values is None or self._model.values.ndim == 1:
            return self._model
        values = self._model.values
        return with_values(self._model, np.broadcast_to(values, (*self.batch, values.shape[-1]))[index])

    def _events_of(self, kept: np.ndarray) -> list[EventRecord]:
        """The events of a part of the batch, given the numbers of its systems, with their place in it."""
        place = {int(number): tuple(map(int, at)) for at, number in np.ndenumerate(kept)}
        numbered = [(int(np.ravel_multi_index(as_index(event.system), self.batch)), event) for event in self.events]
        return [replace(event, system=place[number]) for number, event in numbered if number in place]

    # With names and units, and in files.

    @property
    def data(self) -> xarray.Dataset:
        """The states as an `xarray.Dataset`: named coordinates, `units` and `long_name` of every variable."""
        return self.dataset()

    def dataset(self, *names: str) -> xarray.Dataset:
        """The same with quantities by name: `run.dataset("energy", "reactions")`."""
        return dataset(self, names)

    def to_dataframe(self, *names: str) -> pandas.DataFrame:
        """One row a sample (and system), columns `time`, `q.joint`, `v.joint`, and quantities by name.

        Padding is left out. `attrs["units"]` has the unit of each column.
        """
        return table(self, names)

    def save(self, path: str | PathLike[str], *names: str, overwrite: bool = False) -> None:
        """Write the states, and quantities by name, to a NetCDF-4 file, whole or not at all; see `cd.load_run`."""
        files.save(self, path, names, overwrite)

    def to_csv(self, path: str | PathLike[str], *names: str, units: bool = False, overwrite: bool = False) -> None:
        """Write `to_dataframe(*names)` as CSV with one header row.

        `units=True` puts a line with the unit of each column above it, to be read with `comment="#"`.
        """
        files.to_csv(self, path, names, units, overwrite)

    def to_parquet(self, path: str | PathLike[str], *names: str, overwrite: bool = False) -> None:
        """Write `to_dataframe(*names)` as Parquet, units with it; needs `cardan[parquet]`."""
        files.to_parquet(self, path, names, overwrite)

    def page(self, path: str | PathLike[str], *names: str, overwrite: bool = False) -> None:
        """Write the moving mechanism as one HTML file for any browser, offline, plots of quantities by name under it.

        Play, scrub, follow a body, trace a point, show reactions; `"q"`, `"v"` and `"energy"` are plotted by default.
        """
        from cardan.results.page import page

        page(self, path, *names, overwrite=overwrite)

    # In words.

    def __repr__(self) -> str:
        """One paragraph; change of energy and worst residual are in it if they were asked for."""
        return paragraph(self)

    def _repr_html_(self) -> str:
        return html_table(self)


def _numbers(what: str, value: Any) -> np.ndarray:
    if type(value) is np.ndarray and value.dtype == np.float64 and not value.flags.writeable:
        return value  # nobody can change it any more; of all else a copy
    try:
        return floats(value)
    except TypeError:
        raise InputError(f"trajectory: {what} must be an array of numbers, got {shown(value)}") from None


def _squeezed(array: np.ndarray) -> np.ndarray:
    return array[..., 0] if array.shape[-1] == 1 else array
