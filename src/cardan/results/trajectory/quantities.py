"""The table of quantities of a trajectory, one row each, with names and units along its axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.functions.constraints import constraint_residual, multipliers, reactions
from cardan.functions.dynamics import forward_dynamics
from cardan.functions.energy import kinetic_energy, momentum, potential_energy, power
from cardan.functions.kinematics import body_accelerations, body_poses, body_twists
from cardan.integrate.moreau.forces import step_answer
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.structure.formulation import formulation_of
from cardan.structure.large import row_residuals

XYZ = ("x", "y", "z")
SCREW = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")
WRENCH = ("moment x", "moment y", "moment z", "force x", "force y", "force z")
FIXED_LABELS = {
    "axis": SCREW, "component": WRENCH, "row": (*XYZ, "1"), "column": (*XYZ, "origin"), "direction": XYZ,
}  # fmt: skip
"""Labels of the axes that are the same for every model."""


@dataclass(frozen=True)
class Labels:
    """Names and units along the axes of arrays, and the model that they belong to."""

    model: str
    key: str
    coordinate: tuple[str, ...]
    coordinate_unit: tuple[str, ...]
    rate: tuple[str, ...]
    rate_unit: tuple[str, ...]
    body: tuple[str, ...]
    joint: tuple[str, ...]

    def along(self, axis: str) -> tuple[str, ...] | None:
        """Names along an axis; None if its entries are only numbered."""
        if axis in FIXED_LABELS:
            return FIXED_LABELS[axis]
        found: tuple[str, ...] | None = getattr(self, axis, None)
        return found

    def units(self, name: str, quantity: RunQuantity) -> tuple[str, ...] | str:
        """Unit of a quantity: one for all entries, or one for each entry along its first axis."""
        if quantity.unit:
            return quantity.unit
        if quantity.axes == ("coordinate",):
            return self.coordinate_unit
        if name == "tau":
            return tuple("N" if unit == "m/s" else "N m" for unit in self.rate_unit)
        return self.rate_unit if name == "v" else tuple(f"{unit}^2" for unit in self.rate_unit)


def labels_of(model: Model) -> Labels:
    """Names and units of a model's arrays."""
    names: list[str] = []
    q_units: list[str] = []
    v_units: list[str] = []
    for link in model.tree.links:
        joint, kind = model.joints[link.joint].name, link.kind
        names += [joint] if kind.nq == 1 else [f"{joint}[{k}]" for k in range(kind.nq)]
        q_units += kind.q_units
        v_units += kind.v_units
    return Labels(
        model.name, model.key, tuple(names), tuple(q_units), model.coordinate_names, tuple(v_units),
        model.body_names, model.joint_names,
    )  # fmt: skip


@dataclass(frozen=True)
class SampledStates:
    """Sampled states of a model, whose leading axes broadcast, and the formulation to evaluate quantities in."""

    model: Model
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray | None
    t: np.ndarray
    formulation: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Options of the run: its step, its law of impacts."""


@dataclass(frozen=True)
class RunQuantity:
    """A quantity of a run: axes after time, unit (empty if it differs along the axis), description and formula."""

    axes: tuple[str, ...]
    unit: str
    description: str
    of: Callable[[SampledStates], Any]


def unit_at(units: tuple[str, ...] | str, axes: tuple[str, ...], place: tuple[int, ...]) -> str:
    """Unit of one entry of a quantity with these units and axes."""
    if isinstance(units, tuple):
        return units[place[0]]
    angular, _, linear = units.partition(" and ")
    if not linear or axes[-1:] not in (("axis",), ("component",), ("column",)):
        return units
    return linear if place[-1] >= 3 else angular


def _velocity_residual(s: SampledStates) -> Any:
    return np.abs(row_residuals(s.model, s.q, s.v, s.t)[1]).max(axis=-1, initial=0.0)


def in_steps(s: SampledStates) -> tuple[Any, ...] | None:
    """The arguments of `integrate.moreau.forces` for a run in steps that contain impacts and friction, else None."""
    if not s.model.laws or has_modes(s.model) or "step" not in s.settings:
        return None
    tau = np.zeros(s.model.nv) if s.tau is None else s.tau
    way, rule = formulation_of(s.model, s.formulation), str(s.settings.get("impact", ""))
    return s.model, way, rule, float(s.settings["step"]), s.t, s.q, s.v, tau


def _accelerations(s: SampledStates) -> Any:
    given = in_steps(s)
    if given is not None:
        return step_answer(*given)[0]
    return forward_dynamics(s.model, s.q, s.v, s.tau, t=s.t, formulation=s.formulation)


def _reactions(s: SampledStates) -> Any:
    given = in_steps(s)
    if given is not None:
        return step_answer(*given)[1]
    return reactions(s.model, s.q, s.v, s.tau, t=s.t, formulation=s.formulation)


def _reactions_in(axes: str) -> Callable[[SampledStates], Any]:
    return lambda s: reactions(s.model, s.q, s.v, s.tau, t=s.t, formulation=s.formulation, axes=axes)


STATES: dict[str, RunQuantity] = {
    "q": RunQuantity(("coordinate",), "", "coordinates of the tree's joints", lambda s: s.q),
    "v": RunQuantity(("rate",), "", "rates of the tree's joints", lambda s: s.v),
    "tau": RunQuantity(("rate",), "", "constant drives of the tree's joints", lambda s: s.tau),
}
"""Quantities that are stored."""

QUANTITIES: dict[str, RunQuantity] = {
    "a": RunQuantity(("rate",), "", "accelerations of the tree's joints", _accelerations),
    "poses": RunQuantity(
        ("body", "row", "column"), "1 and m", "poses of the bodies in ground axes", lambda s: body_poses(s.model, s.q)
    ),
    "twists": RunQuantity(
        ("body", "axis"), "rad/s and m/s", "twists of the bodies, body components",
        lambda s: body_twists(s.model, s.q, s.v),
    ),
    "body_accelerations": RunQuantity(
        ("body", "axis"), "rad/s^2 and m/s^2", "rates of the bodies' twists, body components",
        lambda s: body_accelerations(s.model, s.q, s.v, _accelerations(s)),
    ),
    "reactions": RunQuantity(
        ("joint", "component"), "N m and N", "wrench of each joint on its child, at and in the joint frame", _reactions
    ),
    **{
        f"reactions_{axes}": RunQuantity(
            ("joint", "component"), "N m and N", f"wrench of each joint on its child, at the joint frame, in {words}",
            _reactions_in(axes),
        )
        for axes, words in (("child", "the child's axes"), ("parent", "the parent's axes"), ("ground", "ground axes"))
    },
    "multipliers": RunQuantity(
        ("constraint",), "N m and N", "multipliers of the constraint rows",
        lambda s: multipliers(s.model, s.q, s.v, s.tau, t=s.t, formulation=s.formulation),
    ),
    "kinetic": RunQuantity((), "J", "kinetic energy", lambda s: kinetic_energy(s.model, s.q, s.v)),
    "potential": RunQuantity((), "J", "potential energy", lambda s: potential_energy(s.model, s.q)),
    "energy": RunQuantity(
        (), "J", "kinetic and potential energy",
        lambda s: kinetic_energy(s.model, s.q, s.v) + potential_energy(s.model, s.q),
    ),
    "power": RunQuantity((), "W", "power that enters", lambda s: power(s.model, s.q, s.v, s.tau, t=s.t)),
    "momentum": RunQuantity(
        ("axis",), "N m s and N s", "momentum about the ground's origin", lambda s: momentum(s.model, s.q, s.v)
    ),
    "position_residual": RunQuantity(
        (), "m and rad", "largest gap in a loop or coupling",
        lambda s: np.abs(constraint_residual(s.model, s.q, t=s.t)).max(axis=-1, initial=0.0),
    ),
    "velocity_residual": RunQuantity((), "m/s and rad/s", "largest slip in a loop or coupling", _velocity_residual),
}  # fmt: skip
"""Quantities that are computed from the states and the model."""


def with_time_axis(model: Model) -> Model:
    """The model whose free parameters (..., size), if it has any, broadcast against states (..., n, nq)."""
    return model if model.values is None else with_values(model, model.values[..., None, :])


def with_values(model: Model, values: np.ndarray) -> Model:
    """The model with other values (..., size) of its free parameters."""
    free = model.parameters
    parts = {p.name: values[..., free.slice_of(p.name)].reshape((*values.shape[:-1], *p.shape)) for p in free}
    return model.unbound.at(parts)
