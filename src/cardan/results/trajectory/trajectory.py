"""The trajectory of a simulation: times, states, and all quantities that the model can compute from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest, no_attribute
from cardan.lazy import cached_property
from cardan.model.html import html_table
from cardan.model.model import Model
from cardan.model.sight import require_axes
from cardan.model.values import floats, one, shown
from cardan.results.figure import FigureOutput
from cardan.results.trajectory import files
from cardan.results.trajectory.files import dataset, table
from cardan.results.trajectory.interpolation import Knots, states_at
from cardan.results.trajectory.named import SAMPLED, NamedQuantity, measured_state, named_quantities
from cardan.results.trajectory.quantities import (
    QUANTITIES,
    STATES,
    Labels,
    SampledStates,
    labels_of,
    unit_at,
    with_time_axis,
    with_values,
)
from cardan.results.trajectory.stored_model import StoredModel

if TYPE_CHECKING:
    from os import PathLike

    import pandas
    import xarray
    from matplotlib.figure import Figure

    from cardan.functions.derivatives import Derivatives
    from cardan.integrate.events import Event


# What attributes are called in other programs, and what to write here.
MAGNITUDE = ".magnitude"  # ends the name of a vector's length
ELSEWHERE = {
    "t": "run.time", "times": "run.time", "ts": "run.time", "x": "run.q", "y": "run.q", "qpos": "run.q",
    "positions": "run.q, or run.position(body)", "angles": "run.q", "qd": "run.v", "dq": "run.v", "qdot": "run.v",
    "qvel": "run.v", "velocities": "run.v", "qdd": "run.a", "accelerations": "run.a", "qacc": "run.a",
    "states": "run.q and run.v", "torques": "run.tau", "show": "run.page(path) or cd.view(run)",
    "animate": "run.page(path) or cd.view(run)", "to_dataset": "run.dataset()", "df": "run.to_dataframe()",
    "forces": "run.reactions, or run['spring.force']", "success": "run.outcome, empty for a system that arrived",
    "status": "run.outcome", "sol": "run.at(t)", "angle": "run.q", "theta": "run.q", "rate": "run.v", "omega": "run.v",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class EventRecord:
    """An event that occurred: its name, its system in a batch (`()` for a single one), time (s) and state.

    `p` (np,) are the free parameters there, in the order of `model.parameters`, if the run changed any. An event that
    changed something has the rates `v_after` (nv,) and the parameters `p_after` (np,) after it. `impulse` (m,) are the
    impulses, N s or N m s, of the rows with laws (`model.lawful_rows`) there; a run file does not keep them.
    """

    name: str
    system: tuple[int, ...] | int
    time: float
    q: np.ndarray
    v: np.ndarray
    p: np.ndarray | None = None
    v_after: np.ndarray | None = None
    p_after: np.ndarray | None = None
    impulse: np.ndarray | None = None

    @property
    def changed(self) -> bool:
        """Whether it changed rates or parameters, so that the run went on from another state."""
        return self.v_after is not None

    @property
    def index(self) -> tuple[int, ...]:
        """Index of the system in the batch."""
        return tuple(map(int, np.atleast_1d(np.asarray(self.system, dtype=int))))


class Residuals(NamedTuple):
    """Constraint residuals of a trajectory, the largest row of each sample."""

    position: np.ndarray
    """(..., n), m and rad."""
    velocity: np.ndarray
    """(..., n), m/s and rad/s."""


@dataclass(frozen=True)
class Metadata:
    """What is stored with the arrays of a trajectory: labels, and how the run was made."""

    labels: Labels
    method: str
    formulation: str
    settings: Mapping[str, Any]
    statistics: Mapping[str, Any]


def _computed(name: str, doc: str) -> Any:
    """A property of a run: a quantity by name."""

    def get(run: Trajectory) -> np.ndarray:
        return run.quantity(name)

    get.__doc__ = doc
    return property(get)


FORCES = ("force", "torque", "ground_force")  # readings of elements that are no joints


class Trajectory:
    """States over time of one system or a batch of systems, and the quantities computed from them.

    Args:
        model: the mechanism.
        time: (n,), s; or (..., n) where systems stopped at different times, NaN after the end of each.
        q: configurations (..., n, nq), rad and m; the leading axes are the batch.
        v: velocities (..., n, nv), rad/s and m/s.
        tau: constant drives (nv,) or (..., nv), N m and N.
        events: the events that occurred.
        outcome: why each system stopped early; empty for a system that reached the end.
        method: the integrator.
        formulation: the formulation in which accelerations and reactions are computed.
        settings: of the integrator; numbers and strings, stored with the run.
        statistics: of the integrator; numbers and strings, stored with the run.
        knots: states at the breaks of the run, between which `at` interpolates.
        parameters: values (..., n, np) of the free parameters at the samples, of a run that changes them.

    All other quantities (`a`, `energy`, `reactions`, ...) are computed from the model on first use and cached.

    """

    def __init__(
        self, model: Model, time: Any, q: Any, v: Any, *, tau: Any = None, events: Iterable[EventRecord] = (),
        outcome: Any = None, method: str = "", formulation: str = "spatial", settings: Mapping[str, Any] | None = None,
        statistics: Mapping[str, Any] | None = None, knots: Knots | None = None, parameters: Any = None,
    ) -> None:  # fmt: skip
        if not isinstance(model, Model):
            raise InputError(f"trajectory: model must be a cd.Model, got {type(model).__name__}")
        metadata = Metadata(labels_of(model), method, formulation, dict(settings or {}), dict(statistics or {}))
        arrays = {"time": _numbers("time", time), "q": _numbers("q", q), "v": _numbers("v", v)}
        if parameters is not None:
            arrays["p"] = _numbers("parameters", parameters)
        drives = None if tau is None else _numbers("tau", tau)
        self._fill(metadata, model, arrays, drives, events, outcome, knots=knots)

    def _fill(
        self, metadata: Metadata, model: Model | StoredModel | None, arrays: dict[str, Any], tau: np.ndarray | None,
        events: Iterable[EventRecord], outcome: Any, computed: Mapping[str, Any] | None = None,
        knots: Knots | None = None,
    ) -> Trajectory:  # fmt: skip
        """Check the shapes and store everything; arrays may be read lazily from a file."""
        self._metadata, self._given_model, self._arrays, self._knots = metadata, model, arrays, knots
        self._computed: dict[str, Any] = dict(computed or {})
        self._replay: Any = None
        self._changes = False  # whether events or inputs changed rates or parameters
        self._events: tuple[Event, ...] = ()  # those of the user that it looked for; a file does not have them
        self._stored: dict[str, NamedQuantity] = {}
        self._no_model = ""  # why a file has no model
        self.sensitivity: dict[str, Any] = {}
        """Derivatives of the samples by each name in `cd.simulate(..., sensitivities=[...])`: `cd.Sensitivity`."""
        shape = tuple(arrays["q"].shape)
        nq, nv = len(metadata.labels.coordinate), len(metadata.labels.rate)
        if len(shape) < 2 or shape[-1] != nq:
            raise InputError(f"trajectory: q must have the shape (..., n, {nq}), got {shape}")
        self.batch: tuple[int, ...] = shape[:-2]
        """Shape of the batch; `()` is a single system."""
        if tuple(arrays["v"].shape) != (*shape[:-1], nv):
            raise InputError(f"trajectory: v must have the shape {(*shape[:-1], nv)}, got {tuple(arrays['v'].shape)}")
        if "p" in arrays and tuple(arrays["p"].shape[:-1]) != shape[:-1]:
            raise InputError(
                f"trajectory: parameters must have the shape {(*shape[:-1], 'np')}, got {tuple(arrays['p'].shape)}"
            )
        times = tuple(arrays["time"].shape)
        if times not in (shape[-2:-1], shape[:-1]):
            raise InputError(f"trajectory: time must have the shape {shape[-2:-1]} or {shape[:-1]}, got {times}")
        if shape[-2] == 0:
            raise InputError("trajectory: it has no samples; give at least one")
        if np.isnan(self.time).all():
            raise InputError("trajectory: time is nan at every sample; give at least one time, s")
        if (np.diff(self.time, axis=-1) < 0).any():
            raise InputError("trajectory: time must not decrease along a run")
        if tau is not None and tuple(tau.shape) not in ((nv,), (*self.batch, nv)):
            raise InputError(f"trajectory: tau must have the shape {(nv,)} or {(*self.batch, nv)}, got {tau.shape}")
        self._tau = tau
        outcomes = np.full(self.batch, "") if outcome is None else np.asarray(outcome, dtype=str)
        if outcomes.shape != self.batch:
            raise InputError(f"trajectory: outcome must have the batch shape {self.batch}, got {outcomes.shape}")
        self._outcome = outcomes
        self.events: tuple[EventRecord, ...] = tuple(events)
        """The events that occurred, in the order given."""
        if not all(isinstance(event, EventRecord) for event in self.events):
            raise InputError(f"trajectory: events must be cd.EventRecord, got {shown(self.events)}")
        return self

    # Given data.

    @property
    def _model(self) -> Model | None:
        """The mechanism, if there is one; that of a file is read on first use."""
        if isinstance(self._given_model, StoredModel):
            self._given_model = self._given_model.read()
        return self._given_model

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

    @cached_property
    def parameters(self) -> np.ndarray | None:
        """Free parameters (..., n, np) of a run that changes them, in the order of `model.parameters`; else None.

        One of them by name is `run["spring.stiffness"]`.
        """
        return frozen(self._arrays["p"]) if "p" in self._arrays else None

    @property
    def knots(self) -> Knots | None:
        """States at the breaks of the run, or None."""
        return self._knots

    @property
    def tau(self) -> np.ndarray | None:
        """Constant drives (nv,) or (..., nv), N m and N, or None."""
        return self._tau

    @property
    def outcome(self) -> Any:
        """Why a system stopped early, empty if it reached the end: a string, or of a batch an array of strings."""
        return self._outcome if self.batch else str(self._outcome)

    @property
    def method(self) -> str:
        """The integrator."""
        return self._metadata.method

    @property
    def formulation(self) -> str:
        """The formulation in which accelerations and reactions are computed."""
        return self._metadata.formulation

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the integrator."""
        return dict(self._metadata.settings)

    @property
    def statistics(self) -> dict[str, Any]:
        """Statistics of the integrator."""
        return dict(self._metadata.statistics)

    def _note(self, statistics: Mapping[str, Any]) -> None:
        """Add to the statistics."""
        self._metadata = replace(self._metadata, statistics={**self._metadata.statistics, **statistics})

    @cached_property
    def valid(self) -> np.ndarray:
        """Mask (..., n), False in the padding after the end of a system."""
        given = ~(np.isnan(self.q).any(axis=-1) | np.isnan(self.v).any(axis=-1))
        return frozen(given & ~np.isnan(self.time), kind=bool)

    # Computed quantities.

    def quantity(self, name: str) -> np.ndarray:
        """A quantity by name, as `run[name]`: "q", "energy", "spring.force", "crank.position"; see `names`.

        Returns (..., n), or (..., n, k) if it has several components; one of them is "crank.position.x", and the length
        of a vector "A.reaction_force.magnitude". SI units.
        """
        if name in ("q", "v"):
            return self.q if name == "q" else self.v
        if isinstance(name, str) and name in self._computed:
            found = self._computed[name] = frozen(self._computed[name])
            return found
        if isinstance(name, str) and name in QUANTITIES:
            found = frozen(self._over_samples(name, QUANTITIES[name].of))
        else:
            if whole := self._vector_of(name):
                x, y, z = np.moveaxis(self.quantity(whole), -1, 0)
                return np.asarray(np.sqrt(x * x + y * y + z * z))
            whole, place = self._located(name)
            if place is not None:
                return np.moveaxis(self.quantity(whole), range(-len(place), 0), range(len(place)))[place]
            found = frozen(self._named[name].of(self))
        self._computed[name] = found
        return found

    def names(self, part: str = "") -> list[str]:
        """All names that `run[...]` takes, or those that contain a part: `run.names("spring")`.

        Whole quantities come first ("q", "energy", "reactions"), then what is read off elements, joints, bodies and
        frames. Without the model, only what the file holds.
        """
        stored = self._model is None
        whole = [name for name in QUANTITIES if not stored or name in self._computed]
        return [name for name in ("q", "v", *whole, *self._named) if part in name]

    def about(self, name: str) -> NamedQuantity:
        """Labels and units of the components of a quantity, and its description in words, by name."""
        if vector := self._vector_of(name):
            own = self._named[vector]
            words = f"{own.description}, magnitude"
            return NamedQuantity(name, (), own.units[:1], words, lambda run: run.quantity(name))
        whole, place = (name, None) if name in ("q", "v", *QUANTITIES) else self._located(name)
        if whole in self._named and place is None:
            return self._named[whole]
        labels, units, words = self._columns(whole)
        if place is None:
            return NamedQuantity(name, labels, units, words, lambda run: run.quantity(name))
        label = name.removeprefix(f"{whole}.")
        return NamedQuantity(
            name, (), (units[labels.index(label)],), f"{words}: {label}", lambda run: run.quantity(name)
        )

    @property
    def _named(self) -> dict[str, NamedQuantity]:
        """Quantities that are read off elements, by name."""
        return self._stored if self._model is None else named_quantities(self._model)

    def _columns(self, whole: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
        """Labels and units of all components of a quantity, flattened, and its description."""
        if whole in self._named:
            named = self._named[whole]
            return named.labels, named.units, named.description
        row, labels = {**STATES, **QUANTITIES}[whole], self._metadata.labels
        along = [labels.along(axis) for axis in row.axes]
        known = all(along) or not along  # entries that are only numbered are counted
        shape = tuple(map(len, along)) if known else self.quantity(whole).shape[self.valid.ndim :]  # type: ignore[arg-type]
        units = labels.units(whole, row)
        places = list(np.ndindex(shape)) if shape else []
        names = tuple(
            ".".join(str(k) if names is None else names[k] for names, k in zip(along, place, strict=True))
            for place in places
        )
        found = tuple(unit_at(units, row.axes, place) for place in places)
        return names, found or (str(units),), row.description

    def _vector_of(self, name: Any) -> str:
        """The vector whose magnitude is meant, "" if the name is of something else."""
        whole = name.removesuffix(MAGNITUDE) if isinstance(name, str) and name.endswith(MAGNITUDE) else ""
        return whole if whole in self._named and self._named[whole].labels == ("x", "y", "z") else ""

    def _located(self, name: Any) -> tuple[str, tuple[int, ...] | None]:
        """A quantity and, if the name is of one of its components, which: "crank.position.x", "q.A"."""
        if isinstance(name, str):
            if name in self._named:
                return name, None
            known = [n for n in ("q", "v", *QUANTITIES, *self._named) if name.startswith(f"{n}.")]
            for whole in sorted(known, key=len, reverse=True):
                labels = self._columns(whole)[0]
                if (label := name.removeprefix(f"{whole}.")) in labels:
                    shape = self.quantity(whole).shape[self.valid.ndim :]
                    return whole, tuple(map(int, np.unravel_index(labels.index(label), shape)))
        raise self._unknown(name)

    def _unknown(self, name: Any) -> UnknownNameError:
        """The error for a name that is not that of a quantity."""
        hint = self._meant(name)
        missing = "" if self._model is not None else " in this file, and the file has no model to compute it from"
        more = "" if hint.endswith("?") else "; run.names() lists all"
        return UnknownNameError(f"trajectory: {name!r} is not a quantity of a run{missing}{hint}{more}")

    def _meant(self, name: Any, others: Iterable[str] = ()) -> str:
        """What a name that is none may mean, as the tail of a sentence; `others`: names besides those of quantities."""
        known = self.names()
        if own := self._related(str(name), known):
            listed = f"{', '.join(map(repr, own[:6]))}{', ...' if len(own) > 6 else ''}"
            return f"; there {'are' if own[1:] else 'is'} {listed}"
        return nearest(name, [*others, *known])

    def _related(self, name: str, known: list[str]) -> list[str]:
        """Names of what an element has, or components of a quantity, for a name that is neither.

        None if the name looks like a slip of the pen.
        """
        own = [n for n in known if n.startswith(f"{name}.")]
        whole = next((n for n in known if name.startswith(f"{n}.")), "")
        if not own and whole:
            columns = [f"{whole}.{label}" for label in self._columns(whole)[0]]
            own = [n for n in columns if n.startswith(f"{name}.")] or columns
        element, _, word = name.rpartition(".")
        of = {n.removeprefix(f"{element}."): n for n in known if element and n.startswith(f"{element}.")}
        if not own and not get_close_matches(word, of) and not any(n.endswith(name) for n in known):
            own = [n for last, n in of.items() if word in last] or list(of.values())
        return own

    def __contains__(self, name: object) -> bool:
        """Whether `run[name]` is a quantity."""
        try:
            return isinstance(name, str) and bool(
                name in ("q", "v", *QUANTITIES) or self._vector_of(name) or self._located(name)
            )
        except UnknownNameError:
            return False

    def _ipython_key_completions_(self) -> list[str]:
        """What a notebook offers after `run["`."""
        return self.names()

    def _sampled(self, name: str, of: Any = None) -> np.ndarray:
        """What named quantities are part of, computed once, as the table says or by `of` the sampled states."""
        key = f"sampled {name}"
        if key not in self._computed:
            self._computed[key] = frozen(self._over_samples(name, of or SAMPLED[name]))
        found: np.ndarray = self._computed[key]
        return found

    def _over_samples(self, name: str, of: Any) -> np.ndarray:
        """Evaluate a quantity at every sample except the padding."""
        model, q, v, t, tau = self._require(name), self.q, self.v, self.time, self._tau
        tau = None if tau is None else tau[..., None, :]
        if self.valid.all():
            whole = with_time_axis(model) if self.parameters is None else with_values(model, self.parameters)
            found = np.asarray(of(SampledStates(whole, q, v, tau, t, self.formulation, self.settings)))
            return np.broadcast_to(found, (*self.valid.shape, *found.shape[self.valid.ndim :]))
        keep = self.valid
        tau = None if tau is None else np.broadcast_to(tau, v.shape)[keep]
        t = np.broadcast_to(t, keep.shape)[keep]
        rows = np.asarray(
            of(SampledStates(self.model_at(keep), q[keep], v[keep], tau, t, self.formulation, self.settings))
        )
        every = np.full((*keep.shape, *rows.shape[1:]), np.nan)
        every[keep] = rows
        return every

    def model_at(self, keep: np.ndarray) -> Model:
        """The model with one row of free parameters, if it has any, for each sample kept."""
        model = self._require("model")
        if self.parameters is not None:
            return with_values(model, self.parameters[keep])
        if model.values is None:
            return model
        values = model.values[..., None, :]
        return with_values(model, np.broadcast_to(values, (*keep.shape, values.shape[-1]))[keep])

    a: np.ndarray = _computed("a", "Accelerations (..., n, nv), rad/s^2 and m/s^2.")
    poses: np.ndarray = _computed("poses", "Poses of all bodies (..., n, nb, 4, 4) in ground axes, lengths in m.")
    twists: np.ndarray = _computed("twists", "Twists of all bodies (..., n, nb, 6), rad/s and m/s, body components.")
    reactions: np.ndarray = _computed(
        "reactions", "Wrench of every joint on its child (..., n, joints, 6), N m and N, at and in the joint frame."
    )
    multipliers: np.ndarray = _computed(
        "multipliers", "Multipliers (..., n, nl) of the constraint rows of the run's formulation, N m and N."
    )
    kinetic: np.ndarray = _computed("kinetic", "Kinetic energy (..., n), J.")
    potential: np.ndarray = _computed("potential", "Potential energy (..., n) of gravity and springs, J.")
    energy: np.ndarray = _computed("energy", "Kinetic and potential energy (..., n), J.")
    power: np.ndarray = _computed(
        "power", "Power (..., n), W, of drives, motions, dampers, friction and other forces: the rate of `energy`."
    )
    momentum: np.ndarray = _computed(
        "momentum",
        "Momentum (..., n, 6), angular about the ground's origin then linear, N m s and N s, ground components.",
    )

    @property
    def residuals(self) -> Residuals:
        """Largest position (m, rad) and velocity (m/s, rad/s) residual of loops and couplings, each (..., n)."""
        return Residuals(self.quantity("position_residual"), self.quantity("velocity_residual"))

    def coordinate(self, joint: str) -> np.ndarray:
        """Coordinates of a joint: (..., n), or (..., n, k) if it has several; rad and m.

        Those of a cut joint are measured between its bodies; angles follow its rate from sample to sample.
        """
        cut = self._cut(joint)
        if cut is not None:
            return _squeezed(measured_state(self, cut)[0])
        return _squeezed(self.q[..., self._places("coordinate", joint)])

    def rate(self, joint: str) -> np.ndarray:
        """Rates of a joint, tree joint or cut: (..., n), or (..., n, k) if it has several; rad/s and m/s."""
        cut = self._cut(joint)
        if cut is not None:
            return _squeezed(measured_state(self, cut)[1])
        return _squeezed(self.v[..., self._places("rate", joint)])

    def _cut(self, joint: str) -> int | None:
        """Number of a joint that is cut and has coordinates, or None."""
        model = self._model
        if model is None or joint not in model.joint_names:
            return None
        j = model.joint_names.index(joint)
        return j if j in model.cuts and model.joints[j].kind.nv else None

    def reaction(self, joint: str, axes: str = "joint") -> np.ndarray:
        """Wrench (..., n, 6) that a joint exerts on its child: moment, N m, and force, N.

        The moment is about the origin of the joint frame on the child. Components are along the axes of that frame
        (`axes="joint"`), of the child body ("child"), of the parent body ("parent") or of the ground ("ground").
        """
        names = self._metadata.labels.joint
        if joint not in names:
            forces = {f"{joint}.{what}" for what in ("force", "torque", "ground_force", "effort")}
            own = [f"run[{name!r}]" for name in self.names() if name in forces]
            hint = f"; it is no joint, and its forces are {', '.join(own)}" if own else nearest(joint, names)
            raise UnknownNameError(f"trajectory: joint {joint!r} is not in the model{hint}")
        require_axes("trajectory: axes", axes)
        found = self.reactions if axes == "joint" else self.quantity(f"reactions_{axes}")
        return found[..., names.index(joint), :]

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

    def acceleration(self, body: str, point: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
        """Acceleration (..., n, 3), m/s^2, ground axes, of a point (3,) given in the axes of a body or frame."""
        b, p = self._point(body, point)
        if b < 0:
            return np.where(self.valid[..., None], np.zeros(3), np.nan)
        twist, rate = self.twists[..., b, :], self.quantity("body_accelerations")[..., b, :]
        w, R = twist[..., :3], self.poses[..., b, :3, :3]
        a = rate[..., 3:] + np.cross(rate[..., :3], p) + np.cross(w, twist[..., 3:] + np.cross(w, p))
        return (R @ a[..., None])[..., 0]

    def angular_acceleration(self, body: str) -> np.ndarray:
        """Angular acceleration (..., n, 3), rad/s^2, ground axes, of a body or frame."""
        b, _ = self._point(body, (0.0, 0.0, 0.0))
        if b < 0:
            return np.where(self.valid[..., None], np.zeros(3), np.nan)
        return (self.poses[..., b, :3, :3] @ self.quantity("body_accelerations")[..., b, :3, None])[..., 0]

    def angular_velocity(self, body: str) -> np.ndarray:
        """Angular velocity (..., n, 3), rad/s, ground axes, of a body or frame."""
        b, _ = self._point(body, (0.0, 0.0, 0.0))
        if b < 0:
            return np.where(self.valid[..., None], np.zeros(3), np.nan)
        return (self.poses[..., b, :3, :3] @ self.twists[..., b, :3, None])[..., 0]

    def at(self, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """Interpolated states: q (..., nq) or (..., m, nq), and v, at a time (s) or times (m,) inside the run.

        Quintic Hermite interpolation of q, v and a on the joints' manifolds, then projection onto the loop constraints.
        For samples `h` apart the error is of order h^6 in q and h^5 in v. No polynomial crosses a break of the run.
        Where the samples are too far apart, a warning says by how much the result may be off. At a jump of the state,
        the result is the state after the jump. A system of a batch that ended before a time has NaN there.
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
        names = self._metadata.labels.along(axis) or ()
        found = [k for k, name in enumerate(names) if name == joint or name.rpartition("[")[0] == joint]
        if not found:
            raise UnknownNameError(f"trajectory: no coordinates belong to joint {joint!r}{nearest(joint, names)}")
        return slice(found[0], found[-1] + 1)

    def _require(self, what: str) -> Model:
        if self._model is None:
            raise InputError(
                f"run of {self._metadata.labels.model!r}: {what} is not in the file and needs the model"
                f"{self._no_model and f', which could not be saved: {self._no_model}'}; load the run with "
                "cd.load_run(path, model)"
            )
        return self._model

    # Derivatives.

    def gradient(self, loss: Any, *, over: str = "samples") -> Derivatives:
        """Value and gradient of a loss, by the start, the drives and the free parameters, of the run as computed.

        Args:
            loss: function of a `cd.Instant` (symbols) that returns a scalar, as for `cd.Event`.
            over: "samples", the loss is its sum over all samples of a system; "end", it is that of the last sample.

        Returns:
            `found.value` (...,), the loss of each system, and `found["q0"]`, `found["v0"]`, `found["tau"]` (..., nv),
            `found["parameters"]` (..., size). By `q0` along the tangent. With loops the start moves as
            `cd.assemble` moves it. Steps are taken again, one by one, and then followed backward (discrete adjoint).

        """
        from cardan.results.motion_derivatives import gradient_of

        return gradient_of(self, loss, over)

    def vjp(self, dq: Any = None, dv: Any = None, dt: Any = None, dp: Any = None) -> dict[str, np.ndarray]:
        """Gradients of a loss whose derivatives by the samples are known, by "q0", "v0", "tau" and "parameters".

        Args:
            dq: derivatives (..., n, nv) of the loss by the configurations of the samples, along the tangent; zero by
                default.
            dv: the same (..., n, nv) by the velocities.
            dt: the same (..., n) by the times, which move where an event stops the run.
            dp: the same (..., n, np) by `run.parameters`, of a run that changes them: states, and what events set.

        Returns:
            As `gradient`, of each system by itself: what systems share is the sum of their gradients.

        """
        from cardan.results.motion_derivatives import vjp_of

        return vjp_of(self, dq, dv, dt, dp)

    def __getstate__(self) -> dict[str, Any]:
        """All but the steps and events, which are functions and cannot be pickled."""
        return {**vars(self), "_replay": None, "_events": ()}

    # Batches.

    def __len__(self) -> int:
        """Number of systems along the first axis of the batch; 1 for a single system."""
        return self.batch[0] if self.batch else 1

    def __getattr__(self, name: str) -> Any:
        """Say what an attribute that there is not is called here."""
        raise no_attribute("a run", name, Trajectory.__dict__, ELSEWHERE)

    @overload
    def __getitem__(self, index: str) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: Any) -> Trajectory: ...
    def __getitem__(self, index: Any) -> Any:
        """A quantity by name, `run["spring.force"]`; or part of a batch: `run[3]` without padding, `run[:10]`."""
        if isinstance(index, str):
            return self.time if index == "time" else self.quantity(index)
        numbers = np.arange(int(np.prod(self.batch))).reshape(self.batch or (1,))
        index = index if isinstance(index, tuple) else (index,)
        if not all(isinstance(i, int | np.integer | slice) for i in index):
            raise InputError(
                f"trajectory: a run takes the name of a quantity, a batch integers and slices, got {index!r}"
            )
        kept = np.asarray(numbers[index])  # an IndexError ends a loop over the run
        if not self.batch:
            return self
        keep = slice(None)
        if kept.ndim == 0:
            rows = ~np.isnan(np.asarray(self._arrays["q"][index])).any(axis=-1)
            rows &= ~np.isnan(self.time[index] if self.time.ndim > 1 else self.time)
            keep = slice(int(np.flatnonzero(rows)[-1]) + 1 if rows.any() else 1)
        part = {name: np.asarray(x[index])[..., keep, :] for name, x in self._arrays.items() if name != "time"}
        part["time"] = (self.time[index] if self.time.ndim > 1 else self.time)[..., keep]
        n = part["time"].shape[-1]
        computed = {
            name: np.asarray(value[index])[(slice(None),) * kept.ndim + (slice(n),)]
            for name, value in self._computed.items()
        }
        tau = self._tau if self._tau is None or self._tau.ndim == 1 else self._tau[index]
        found = Trajectory.__new__(Trajectory)._fill(
            self._metadata,
            self._model_of(index),
            part,
            tau,
            self._events_of(kept),
            self._outcome[index],
            computed,
            None if self._knots is None else self._knots.part(index),
        )
        found._stored, found._no_model, found._changes = self._stored, self._no_model, self._changes
        found._events = self._events
        if self._replay is not None:
            found._replay = self._replay.part(kept.ravel())
        samples = (slice(None),) * kept.ndim + (slice(n),)
        for name, by in self.sensitivity.items():
            found.sensitivity[name] = type(by)(*(x[index][samples] for x in by))
        return found

    def _model_of(self, index: Any) -> Model | StoredModel | None:
        """The model with the free parameters, if any, of part of the batch."""
        if isinstance(self._given_model, StoredModel):
            return self._given_model.part(index, self.batch)
        if self._model is None or self._model.values is None or self._model.values.ndim == 1:
            return self._model
        values = self._model.values
        return with_values(self._model, np.broadcast_to(values, (*self.batch, values.shape[-1]))[index])

    def _events_of(self, kept: np.ndarray) -> list[EventRecord]:
        """The events of part of the batch, re-indexed; `kept` holds the numbers of its systems."""
        place = {int(number): tuple(map(int, at)) for at, number in np.ndenumerate(kept)}
        numbered = [(int(np.ravel_multi_index(event.index, self.batch)), event) for event in self.events]
        return [replace(event, system=place[number]) for number, event in numbered if number in place]

    # Datasets, tables and files.

    @property
    def data(self) -> xarray.Dataset:
        """The states as an `xarray.Dataset`: named coordinates, `units` and `long_name` of every variable."""
        return self.dataset()

    def dataset(self, *names: str) -> xarray.Dataset:
        """The states and quantities by name, as `run.data`: `run.dataset("energy", "reactions")`."""
        return dataset(self, names)

    def to_dataframe(self, *names: str) -> pandas.DataFrame:
        """One row per sample (and system), columns `time`, `q.joint`, `v.joint`, and quantities by name.

        Padding is left out. `attrs["units"]` has the unit of each column.
        """
        return table(self, names)

    def save(self, path: str | PathLike[str], *names: str, overwrite: bool = False) -> None:
        """Write the states, and quantities by name, to a NetCDF-4 file, which `cd.load_run` reads.

        The file appears only when it is complete; nothing is left behind if writing fails.
        """
        files.save(self, path, names, overwrite)

    def to_csv(self, path: str | PathLike[str], *names: str, units: bool = False, overwrite: bool = False) -> None:
        """Write `to_dataframe(*names)` as CSV with one header row.

        `units=True` adds a comment line above it with the unit of each column; read it with `comment="#"`.
        """
        files.to_csv(self, path, names, units, overwrite)

    def to_parquet(self, path: str | PathLike[str], *names: str, overwrite: bool = False) -> None:
        """Write `to_dataframe(*names)` as Parquet, with units; needs `cardan[parquet]`."""
        files.to_parquet(self, path, names, overwrite)

    def page(
        self, path: str | PathLike[str], *names: str, others: Sequence[Trajectory] = (),
        labels: Sequence[str] | None = None, simulate: bool = True, sliders: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> None:  # fmt: skip
        """Write the animated mechanism as one HTML file for any browser, offline, with plots of quantities by name.

        Other runs are shown together with this one, each with its label; the systems of a batch as ghosts. Default
        plots: `"q"`, `"v"` and `"energy"`; others can be chosen in the page. The options are those of `cd.page`.
        """
        from cardan.results.page.page import page

        thing = [self, *others] if len(others) else self
        page(thing, path, *names, labels=labels, simulate=simulate, sliders=sliders, overwrite=overwrite)

    # Figures. Nothing is shown or written unless asked for: each method returns a `matplotlib.figure.Figure`.

    def plot(
        self, *panels: str, joints: Sequence[str] | str | None = None, reactions: Sequence[str] | str = (),
        reaction_axes: str = "joint", angle: str = "rad", lines: int = 10, size: tuple[float, float] | None = None,
        path: str | PathLike[str] | None = None, overwrite: bool = False, ax: Any = None,
    ) -> Figure:  # fmt: skip
        """Plot panels over time: `run.plot("coordinates", "energy", reactions=["A"])`.

        Args:
            panels: "coordinates", "rates", "accelerations", "energy", "power", "momentum", "residuals", "reactions".
                Default: coordinates, rates, energy, residuals if there are loops, and reactions if joints are named.
                Quantities with different units get a panel for each unit. Also any name that `run[...]` takes, such as
                "spring.force" or "crank.position".
            joints: tree joints whose coordinates, rates and accelerations are shown; all by default.
            reactions: joints whose forces and moments are shown; components that are zero are left out. The panel
                "reactions" without names shows the magnitude for every joint.
            reaction_axes: axes of these, as in `reaction`: "joint", "child", "parent" or "ground".
            angle: "rad" or "deg".
            lines: largest number of systems of a batch that are drawn one by one; a larger batch is drawn as its median
                and a band from the 5th to the 95th percentile.
            size: width and height, inches.
            path: file to write, .png, .svg or .pdf; it appears only when it is complete.
            overwrite: whether an existing file may be replaced.
            ax: axes of matplotlib to draw into, one for each panel, in place of a new figure.

        Returns:
            The figure; `.show()` opens a window, or shows it in a notebook.

        """
        from cardan.results.plots import plot, selection_of

        output = FigureOutput(size, path, overwrite, ax)
        return plot(self, panels, selection_of(self, joints, reactions, angle, reaction_axes), lines, output)

    def plot_phase(
        self, *joints: str, angle: str = "rad", lines: int = 30, size: tuple[float, float] | None = None,
        path: str | PathLike[str] | None = None, overwrite: bool = False, ax: Any = None,
    ) -> Figure:  # fmt: skip
        """Plot the rates of tree joints over their coordinates, all by default; a dot marks the start.

        Of a batch, at most `lines` systems are drawn. Other options are those of `plot`.
        """
        from cardan.results.plots import plot_phase, selection_of

        output = FigureOutput(size, path, overwrite, ax)
        return plot_phase(self, selection_of(self, joints or None, (), angle), lines, output)

    def plot_power(
        self, *, lines: int = 10, size: tuple[float, float] | None = None, path: str | PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:  # fmt: skip
        """Plot power, the change of energy together with the work of that power, and their difference.

        The work is the integral of a cubic spline through the samples: with few samples its error dominates the
        difference.
        """
        from cardan.results.plots import plot_power

        return plot_power(self, lines, FigureOutput(size, path, overwrite))

    def draw(
        self, t: Any = None, *, trace: Sequence[Any] = (), view: Any = None, names: bool = False, centres: bool = False,
        scale: bool = True, size: tuple[float, float] | None = None, path: str | PathLike[str] | None = None,
        overwrite: bool = False, ax: Any = None,
    ) -> Figure:  # fmt: skip
        """Draw the mechanism at one or several times, s, in one picture; by default at seven evenly spaced times.

        `trace` names bodies or frames, or pairs (body, point), whose paths over the whole run are drawn; a point (3,),
        m, is in the body's axes. Of a batch, draw one system: `run[3].draw()`. Other options are those of `cd.draw`.
        """
        from cardan.results.drawing.draw import strobe

        return strobe(self, t, trace, view, names, centres, scale, FigureOutput(size, path, overwrite, ax))

    def video(
        self, path: str | PathLike[str], *, size: tuple[int, int] | None = None, fps: float | None = None,
        speed: float | None = None, view: tuple[float, float] | None = None, trace: Sequence[Any] = (),
        forces: bool | Sequence[str] = False, title: str | None = None, overwrite: bool = False,
        progress: bool | None = None,
    ) -> None:  # fmt: skip
        """Write the moving mechanism as a video: `run.video("run.mp4")`, `.webm` or `.gif`. No display is needed.

        Args:
            path: file to write; it appears only when it is complete. MP4 and WebM need `cardan[video]`.
            size: width and height, pixels; by default 1280 by 720, of a GIF 640 by 360.
            fps: frames a second; 30, of a GIF 25, by default.
            speed: seconds of the run shown in a second: 0.1 is slow motion. By default 1, or another power of ten
                times 1, 2 or 5 if the run is shorter than 2 s or longer than 60 s.
            view: azimuth and elevation of the viewer, degrees; by default onto the plane of a planar mechanism, or a
                direction that shows much.
            trace: names of bodies or frames, or pairs (body, point), whose paths are drawn; a point (3,), m, is in the
                body's axes.
            forces: True shows the reactions of all joints as arrows, names of joints those of some.
            title: text above; the name of the model by default, "" for none.
            overwrite: whether an existing file may be replaced.
            progress: show a progress bar; by default on a terminal and in a notebook, after a second.

        """
        from cardan.results.video import video

        video(self, path, size, fps, speed, view, trace, forces, title, overwrite, progress)

    # Summary.

    def __repr__(self) -> str:
        """One line of text; it includes energy change and worst residual if they have been computed."""
        (_, name), *rest = self._facts()
        return f"Trajectory of {name}; {'; '.join(f'{what}: {value}' for what, value in rest)}."

    def _repr_html_(self) -> str:
        from cardan.results.page.inline import inline_view

        facts, view = html_table("Trajectory", self._facts()), inline_view(self)
        style = "display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start"
        return f"<div style='{style}'><div>{facts}</div><div style='flex:1;min-width:320px'>{view}</div></div>"

    def _facts(self) -> list[tuple[str, str]]:
        """Rows of the summary, without computing anything new."""
        model = repr(self._metadata.labels.model)
        rows = f" (rows of {self._metadata.settings['batch']})" if "batch" in self._metadata.settings else ""
        found = [
            ("model", f"{model}, {' x '.join(map(str, self.batch))} systems{rows}" if self.batch else model),
            ("time", f"{np.nanmin(self.time):.6g} s to {np.nanmax(self.time):.6g} s"),
            ("samples", str(self.time.shape[-1])),
            ("method", self.method or "not given"),
            ("formulation", self.formulation),
        ]
        stopped = int((self._outcome != "").sum())
        if stopped:
            found.append(("stopped", f"{stopped} of {self._outcome.size}" if self.batch else self.outcome))
        if self.events:
            found.append(("events", str(len(self.events))))
        if "energy" in self._computed:
            E = self.energy
            found.append(("largest change of energy", f"{np.nanmax(np.abs(E - E[..., :1])):.3g} J"))
        if "position_residual" in self._computed:
            found.append(("worst residual", f"{np.nanmax(self.quantity('position_residual')):.3g} m or rad"))
        return found


def _numbers(what: str, value: Any) -> np.ndarray:
    if type(value) is np.ndarray and value.dtype == np.float64 and not value.flags.writeable:
        return value  # read-only, so that no copy is needed
    try:
        return floats(value)
    except TypeError:
        raise InputError(f"trajectory: {what} must be an array of numbers, got {shown(value)}") from None


def _squeezed(array: np.ndarray) -> np.ndarray:
    return array[..., 0] if array.shape[-1] == 1 else array


def frozen(array: Any, kind: type = float) -> np.ndarray:
    """A read-only view: other results were computed from the array and must not become stale."""
    view: np.ndarray = np.asarray(array, dtype=kind).view()
    view.flags.writeable = False
    return view
