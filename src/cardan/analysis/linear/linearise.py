"""Linear models of constrained mechanisms about any state: `cd.linearise`.

The matrices come from one batched kernel (`formulation.linear`); outputs are differentiated by the functions that
compute them, along the motions that the kernel gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.analysis.linear.large_loops import is_large_with_loops, linear_loops
from cardan.analysis.linear.large_trees import is_large_tree, linear_tree
from cardan.analysis.linear.linear_model import LinearModel
from cardan.analysis.linear.operating_point import OperatingPoint, operating_point
from cardan.analysis.linear.signals import (
    InputSignal,
    Names,
    OutputSignal,
    coordinate_unit,
    output_slopes,
    parameter_signals,
    rate_units,
    read_inputs,
    read_outputs,
)
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.formulation import Formulation
from cardan.formulation.linear import Columns
from cardan.formulation.tree import TreeFormulation
from cardan.functions.along_constraints import independent_rates
from cardan.functions.dynamics import forward_dynamics
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.parameter import with_motion_inputs
from cardan.model.values import counted
from cardan.model.variable import Variable
from cardan.structure.assemble import constraint_kernels
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import time_argument
from cardan.structure.linear import descriptor_kernel, linear_kernel
from cardan.structure.row_sets import is_settled
from cardan.structure.rows import generic_configurations, kept_rows, real_rows

FORMS = ("independent", "descriptor")
OPEN = 1e-6  # m, rad, and relative to the rates: a wider gap is not a state of the mechanism
DEPENDENT = 1e-10  # square of a sine: with smaller pivots coordinates do not determine the others

Choice = tuple[tuple[int, ...], tuple[int, ...]]
"""Numbers of the independent coordinates, and of the independent rates."""

_MOTIONS: Slot[tuple[int, ...], Model] = Slot("models whose motions are inputs")
_RATES: Slot[None, tuple[int, ...]] = Slot("independent rates where constraints on rates hold")


def linearise(
    model: Model, at: Any = None, v: Any = None, tau: Any = None, *, inputs: Names = None, outputs: Any = None,
    wrenches: Any = None, t: Any = None, coordinates: Sequence[str] | None = None, form: str = "independent",
    formulation: str | Formulation = "spatial",
) -> LinearModel:  # fmt: skip
    """Linear model `x' = A x + B u`, `y = C x + D u` of a mechanism about a state, exact, with names, batched.

    Args:
        model: the mechanism; values of free parameters (`Model.at`) are a batch like that of the state.
        at: the state: q (..., nq), (q, v), a `cd.State`, its name, a dict of q, v, tau, wrenches and t, anything with
            `q` and `v`, or a run, of which all samples are taken; the assembled start at rest by default. The
            mechanism may move, also with prescribed motions; loops must be closed (`cd.assemble`).
        inputs: names, all drives by default: `tau.joint`, `drive.name`, `motion.name` (value, rate and acceleration),
            `wrench.body` (at its origin, in its axes), names of free parameters and of held variables, such as
            `servo.reference`; `tau`, `parameters`: all of them.
        outputs: names, the states by default: `q.joint`, `v.joint`, `a.joint`, `position.frame`, `velocity.frame`,
            `acceleration.frame`, `rotation.frame`, `angular_velocity.frame`, `energy`, `momentum`, `center_of_mass`,
            `force.element`, `controller.effort`, a variable with a rate, `reactions.joint`, `multipliers`, ...; or a
            dict of names of your own, each with one of these or with a function of an instant `s` that returns an
            expression of `s.t`, `s.q`, `s.v`, `s.a`, `s.position(body, point)`, ...
        v: rates (..., nv) at the state, rad/s and m/s; before those of `at`.
        tau: drives (..., nv), N m and N, at the state; before those of `at`.
        wrenches: (..., nb, 6) on the bodies, N m and N, in body axes, at the state.
        t: time (...), s.
        coordinates: names of the independent coordinates that are the states; chosen by default, as
            `cd.independent_coordinates` where these determine the others at the state.
        form: "independent", or "descriptor": `E x' = A x + B u` in all coordinates and rates of the tree, with
            multipliers.
        formulation: in which the equations are written; all agree.

    Returns:
        `cd.LinearModel`; it unpacks into `A, B, C, D`.

    """
    if form not in FORMS:
        raise UnknownNameError(f"linearise: form={form!r} is not one{nearest(form, FORMS)}")
    beside = {"v": v, "tau": tau, "wrenches": wrenches, "t": t}
    found = tangent_model("linearise", model, at, beside, inputs, coordinates, form, formulation)
    return found.with_outputs(outputs)


@dataclass(frozen=True, eq=False)
class TangentModel:
    """What the kernel gives at a point: `AB` (..., nx, columns), motions `dq`, `dv`, `da` (..., nv, columns)."""

    owner: str
    point: OperatingPoint
    formulation: Formulation
    columns: Columns
    inputs: tuple[InputSignal, ...]
    order: tuple[int, ...]
    """Columns of the inputs among those of the kernel, states first."""
    states: tuple[tuple[str, str], ...]
    """Name and unit of every state."""
    a: np.ndarray
    AB: np.ndarray
    dq: np.ndarray
    dv: np.ndarray
    da: np.ndarray
    M: np.ndarray | None = None
    """Inertia of the independent rates."""
    K: np.ndarray | None = None
    """Stiffness in the independent coordinates, where it is known without `M^-1`."""
    E: np.ndarray | None = None
    xdot: np.ndarray | None = None
    """Rates (..., n) of the variables that are states."""

    def part(self, index: Any) -> TangentModel:
        """One system of a batch, or part of it."""
        try:
            arrays: dict[str, Any] = {name: None if x is None else x[index] for name, x in self._arrays().items()}
        except IndexError:
            raise InputError(f"{self.owner}: {index!r} is no place in a batch of shape {self.A.shape[:-2]}") from None
        return replace(self, point=self.point.part(index), **arrays)

    def _arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("a", "AB", "dq", "dv", "da", "M", "K", "E", "xdot")}

    @property
    def nx(self) -> int:
        """How many states."""
        return len(self.states)

    @property
    def A(self) -> np.ndarray:
        """(..., nx, nx)."""
        return self.AB[..., : self.nx]

    @property
    def B(self) -> np.ndarray:
        """(..., nx, inputs)."""
        return self.AB[..., list(self.order)]

    def with_outputs(self, outputs: Any) -> LinearModel:
        """The linear model with these outputs."""
        nx = self.nx
        if outputs is None:
            batch = self.A.shape[:-2]
            C = np.broadcast_to(np.eye(nx), (*batch, nx, nx)).copy()
            D = np.zeros((*batch, nx, len(self.inputs)))
            names = self.states
        else:
            signals = read_outputs(self.owner, self.point.model, outputs)
            CD = self._outputs(signals)
            C, D, names = CD[..., :nx], CD[..., list(self.order)], tuple((s.name, s.unit) for s in signals)
        given = [*self.states, *((s.name, s.unit) for s in self.inputs), *names]
        return LinearModel(
            self.A, self.B, C, D, tuple(n for n, _ in self.states), tuple(s.name for s in self.inputs),
            tuple(n for n, _ in names), dict(given), self.drift, self.point, self.E,
        )  # fmt: skip

    @property
    def drift(self) -> np.ndarray:
        """Rates (..., nx) of the states at the point."""
        v = np.broadcast_to(self.point.v, self.a.shape)
        rates = [v[..., list(self.columns.coordinates)], self.a[..., list(self.columns.rates)]]
        rates += [] if self.xdot is None else [self.xdot]
        found = np.zeros((*self.a.shape[:-1], self.nx))
        found[..., : self.columns.states] = np.concatenate(rates, axis=-1)
        return found

    def _outputs(self, signals: Sequence[OutputSignal]) -> np.ndarray:
        """`C` and `D` (..., outputs, columns)."""
        places = {name: at for name, at in self.columns.places.items() if name not in ("q", "v")}
        slopes = output_slopes(self.owner, self.point, self.formulation, signals, self.a, tuple(places))
        total = slopes["q"] @ self.dq + slopes["v"] @ self.dv + slopes["a"] @ self.da
        more = self.nx - self.columns.states  # multipliers come between the other states and the inputs
        for name, at in places.items():
            for number, column in at:
                total[..., column if column < self.columns.states else column + more] += slopes[name][..., number]
        return total


def tangent_model(
    owner: str, model: Model, at: Any, beside: Mapping[str, Any], inputs: Any, coordinates: Any, form: str,
    formulation: str | Formulation,
) -> TangentModel:  # fmt: skip
    """Linearise at a state, outputs left to be asked for."""
    point = operating_point(owner, model, at, beside)
    point.model.require_no_laws(
        owner, "there is no linear model across a stop, or at rest with friction; replace them by springs or dampers"
    )
    signals = read_inputs(owner, model, inputs)
    point, of = _numbered(point, signals)
    variables = _numbers_of(model, [x for x in model.variables if x.is_state])
    held = _numbers_of(model, [x for x in model.variables if x.every])
    groups = {name: tuple(sorted({n for kind, n in of if kind == name})) for name in ("tau", "wrenches", "parameters")}
    groups["parameters"] = tuple(sorted({*groups["parameters"], *held}))
    loaded = bool(groups["wrenches"]) or point.wrenches is not None
    choice = (tuple(range(model.nv)),) * 2 if form == "descriptor" else _chosen(owner, model, coordinates)
    columns = Columns(*choice, variables, **groups, loaded=loaded)
    way = formulation_of(point.model, formulation)
    if form == "descriptor":
        found = _descriptor(owner, point, way, columns)
    else:
        found = _independent(owner, point, way, columns, coordinates)
    nx, places = len(found["states"]), columns.inputs
    linear = TangentModel(
        owner, point, way, inputs=tuple(signals), order=tuple(nx + places.index(x) for x in of), **found
    )
    _require_no_samples(linear, {number: nx + places.index(("parameters", number)) for number in held})
    return linear


def _numbers_of(model: Model, variables: Sequence[Variable]) -> tuple[int, ...]:
    """Their numbers among the free parameters."""
    return tuple(k for x in variables for k in range(*model.parameters.slice_of(x.name).indices(model.parameters.size)))


def _require_no_samples(linear: TangentModel, columns: Mapping[int, int]) -> None:
    """Refuse sampled variables that act and are not inputs: the loop that they close has no continuous linear model."""
    model = linear.point.model
    for variable in (x for x in model.variables if x.every):
        own = [columns[k] for k in _numbers_of(model, [variable])]
        if not linear.AB[..., own].any() or set(own) <= set(linear.order):
            continue
        raise InputError(
            f"{linear.owner}: {variable.owner} is sampled every {variable.every:g} s, and a loop that is closed by "
            "samples has no continuous linear model; linearise what it acts on, with its value held: "
            f"cd.linearise(model, ..., inputs=[{variable.name!r}]), or make its controller continuous, without every="
        )


def _numbered(point: OperatingPoint, signals: Sequence[InputSignal]) -> tuple[OperatingPoint, list[tuple[str, int]]]:
    """The point, its model with motions as free numbers where they are inputs, and what each input is a number of."""
    model = point.model
    motions = tuple(sorted({s.number // 3 for s in signals if s.of == "motion"}))
    if motions:
        home, size = model.unbound, model.parameters.size
        wide = _MOTIONS.find(home, motions, lambda: with_motion_inputs(home, motions))
        if model.values is not None:
            more = np.zeros((*model.values.shape[:-1], 3 * len(motions)))
            wide = wide._bound(np.concatenate([model.values, more], axis=-1))
        model = wide
    of = [
        ("parameters", size + 3 * motions.index(s.number // 3) + s.number % 3) if s.of == "motion" else (s.of, s.number)
        for s in signals
    ]
    return replace(point, model=model), of


def arguments(point: OperatingPoint, columns: Columns) -> tuple[Any, ...]:
    """The arguments of the kernels of linear models."""
    loads = (np.zeros((point.model.nb, 6)) if point.wrenches is None else point.wrenches,) if columns.loaded else ()
    return (point.q, point.v, point.tau, *loads, *((point.t,) if columns.takes_time(point.model) else ()))


def _variable_states(model: Model) -> list[tuple[str, str]]:
    """Name and unit of the variables among the states."""
    signals = [s for x in model.variables if x.is_state for s in parameter_signals(model, x.name)]
    return [(s.name, s.unit) for s in signals]


# In independent coordinates.


def _independent(owner: str, point: OperatingPoint, way: Formulation, columns: Columns, asked: Any) -> dict[str, Any]:
    names, units = point.model.coordinate_names, rate_units(point.model)
    states = [(f"q.{names[k]}", coordinate_unit(units[k])) for k in columns.coordinates]
    states += [(f"v.{names[k]}", units[k]) for k in columns.rates]
    states += _variable_states(point.model)
    if is_large_tree(point.model, way):
        return {"columns": columns, "states": tuple(states), **linear_tree(owner, point, columns)}
    if is_large_with_loops(point, way, columns):
        a, AB, dq, dv, da, M, quality = linear_loops(point, columns)
        xdot = np.zeros((*a.shape[:-1], 0))
    else:
        a, AB, dq, dv, da, M, quality, xdot = linear_kernel(point.model, way, columns)(*arguments(point, columns))
    bad = ~(quality[..., 0] > DEPENDENT)
    if bad.any():
        again = _chosen_at(owner, point, (columns.coordinates, columns.rates), bad, asked)
        better = replace(columns, coordinates=again[0], rates=again[1])
        return _independent(owner, point, way, better, "chosen at the state")
    _require_state(owner, point, quality, AB)
    found = {"a": a, "AB": AB, "dq": dq, "dv": dv, "da": da, "M": M, "xdot": xdot}
    return {"columns": columns, "states": tuple(states), **found}


def _chosen(owner: str, model: Model, names: Any) -> Choice:
    """Numbers of the independent coordinates and rates: those named, or the usual choice."""
    usual = independent_rates(model)
    if names is None:
        chosen = usual
    else:
        chosen = tuple(
            sorted(_coordinate(owner, model, name) for name in ((names,) if isinstance(names, str) else names))
        )
        if len(set(chosen)) < len(chosen):
            raise InputError(f"{owner}: coordinates={names!r} names one twice")
        if len(chosen) != len(usual):
            some = ", ".join(repr(model.coordinate_names[k]) for k in usual)
            raise InputError(
                f"{owner}: model {model.name!r} has {counted(len(usual), 'independent coordinate')}, for example "
                f"{some}, got {counted(len(chosen), 'name')}"
            )
    if not any(x.is_at_rate_level for x in model.constraints):
        return chosen, chosen
    if chosen != usual:
        return chosen, _rates_at(model, generic_configurations(model.unbound)[0], 0.0, chosen)
    home = model.unbound
    return chosen, _RATES.find(home, None, lambda: _rates_at(home, generic_configurations(home)[0], 0.0, chosen))


def _coordinate(owner: str, model: Model, name: Any) -> int:
    if name in model.coordinate_names:
        return model.coordinate_names.index(name)
    raise UnknownNameError(
        f"{owner}: coordinate {name!r} is not one of model {model.name!r}{nearest(name, model.coordinate_names)}"
    )


def _rates_at(model: Model, q: np.ndarray, t: Any, coordinates: tuple[int, ...]) -> tuple[int, ...]:
    """Which of the independent coordinates have independent rates at a configuration, where rows on rates hold too."""
    from scipy.linalg import qr

    J = _rows_at(model, q, t)
    held = [k for k, label in enumerate(model.rows) if label.level == "position"]
    Z = _along(J[held], coordinates, model.nv)
    left = J @ Z
    triangle, order = qr(left, mode="r", pivoting=True)[-2:]
    size = np.abs(np.diag(triangle))
    rank = int((size > 1e-8 * max(1e-300, np.abs(J).max(initial=0.0))).sum())
    return tuple(sorted(coordinates[k] for k in order[rank:]))


def _along(J: np.ndarray, coordinates: tuple[int, ...], nv: int) -> np.ndarray:
    """Motions (nv, n) that the rows allow, with unit changes of the coordinates."""
    rest = [k for k in range(nv) if k not in coordinates]
    Z = np.zeros((nv, len(coordinates)))
    Z[list(coordinates)] = np.eye(len(coordinates))
    Z[rest] = -np.linalg.pinv(J[:, rest], rcond=1e-10) @ J[:, list(coordinates)]
    return Z


def _rows_at(model: Model, q: np.ndarray, t: Any) -> np.ndarray:
    """All rows (nl, nv) of the tree, mere rounding set to zero."""
    return real_rows(model, np.asarray(constraint_kernels(model)[1](q, *time_argument(model, t))[0]))


def _chosen_at(owner: str, point: OperatingPoint, choice: Choice, bad: np.ndarray, asked: Any) -> Choice:
    """Coordinates that are independent at the first state where those chosen are not; or an error that says why."""
    from scipy.linalg import qr

    index = tuple(int(k) for k in np.argwhere(bad)[0])
    one = point.part(index)
    model, where = one.model, f" at index {index if len(index) > 1 else index[0]}" if index else ""
    J = _rows_at(model, one.q, one.t)
    held = [k for k, label in enumerate(model.rows) if label.level == "position"]
    size = np.abs(J).max(initial=1e-300)
    rank = int((np.linalg.svd(J, compute_uv=False) > 1e-7 * size).sum())
    usual = model.nv - len(choice[1])
    if rank < usual:
        raise InputError(
            f"{owner}: model {model.name!r} is at a singular position{where}: its constraints have rank {rank} there "
            f"and {usual} elsewhere, so that it has {counted(model.nv - rank, 'freedom')} for a moment and not "
            f"{model.nv - usual}, and its motion no linear model; go beside it"
        )
    triangle, order = qr(J[held], mode="r", pivoting=True)[-2:]
    count = int((np.abs(np.diag(triangle)) > 1e-8 * size).sum())
    found = tuple(sorted(order[count:].tolist()))
    if asked is not None or len(found) != len(choice[0]):
        hint = (
            f"; {_listed(model, found)} would"
            if asked != "chosen at the state"
            else "; linearise the states one by one"
        )
        raise InputError(
            f"{owner}: the coordinates {_listed(model, choice[0])} do not determine the others{where}: a dead point of "
            f"model {model.name!r}{hint}"
        )
    rates = any(x.is_at_rate_level for x in model.constraints)
    return found, _rates_at(model, one.q, one.t, found) if rates else found


def _listed(model: Model, numbers: Sequence[int]) -> str:
    return ", ".join(repr(model.coordinate_names[k]) for k in numbers)


def _require_state(owner: str, point: OperatingPoint, quality: np.ndarray, AB: np.ndarray) -> None:
    """Refuse states that leave constraints open, and results that are not finite."""
    model = point.model
    speed = np.abs(point.v).max(initial=1.0)
    for gap, most, what, units in (
        (quality[..., 1], OPEN, "leaves loops or constraints open", "m or rad"),
        (quality[..., 2], OPEN * speed, "has rates that break loops or constraints", "m/s or rad/s"),
    ):
        if (gap > most).any():
            at = tuple(int(k) for k in np.argwhere(gap > most)[0])
            where = f" at index {at if len(at) > 1 else at[0]}" if at else ""
            raise InputError(
                f"{owner}: the state{where} {what} by {gap[at]:.3g} {units}; close it with cd.assemble(model, q, v)"
            )
    if not np.isfinite(AB).all():
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(AB).all(axis=(-1, -2)))[0])
        raise InputError(
            f"{owner}: the derivatives{f' at index {at}' if at else ''} are not finite; some force of model "
            f"{model.name!r} has none at this state"
        )


# In all coordinates.


def _descriptor(owner: str, point: OperatingPoint, way: Formulation, columns: Columns) -> dict[str, Any]:
    model = point.model
    if not isinstance(way, TreeFormulation):
        raise InputError(
            f"{owner}: the descriptor form is in the tree's coordinates, formulation {way.name!r} is not; use 'spatial'"
        )
    if not is_settled(model):
        raise InputError(
            f"{owner}: which constraints of model {model.name!r} are redundant depends on the configuration, so that "
            "the descriptor form has no fixed multipliers; use form='independent'"
        )
    every = columns.coordinates
    a, E, AB, quality, xdot = descriptor_kernel(model, way, columns)(*arguments(point, columns))
    if (quality[..., 0] <= DEPENDENT).any():
        _chosen_at(owner, point, (every, every[len(kept_rows(model, way)) :]), quality[..., 0] <= DEPENDENT, every)
    _require_state(owner, point, quality, AB)
    labels = [model.rows[k] for k in kept_rows(model, way)]
    names, units = model.coordinate_names, rate_units(model)
    states = [(f"q.{n}", coordinate_unit(u)) for n, u in zip(names, units, strict=True)]
    states += [(f"v.{n}", u) for n, u in zip(names, units, strict=True)]
    states += _variable_states(model)
    states += [(f"multipliers.{label.name}", label.force_unit) for label in labels]
    slopes = forward_dynamics(
        model, point.q, point.v, point.tau, wrenches=arguments(point, columns)[3] if columns.loaded else None,
        t=point.t, formulation=way, by=tuple(columns.places),
    )  # fmt: skip
    dq, dv, da = (np.zeros((*AB.shape[:-2], model.nv, AB.shape[-1])) for _ in range(3))
    dq[..., :, : model.nv] = dv[..., :, model.nv : 2 * model.nv] = np.eye(model.nv)
    for name, places in columns.places.items():
        D = slopes[name].reshape(*slopes[name].shape[:-2], -1) if name == "wrenches" else slopes[name]
        for number, column in places:
            da[..., column if column < columns.states else column + len(labels)] = D[..., number]
    found = {"a": a, "AB": AB, "dq": dq, "dv": dv, "da": da, "E": E, "xdot": xdot}
    return {"columns": columns, "states": tuple(states), **found}
