"""The table of what a trajectory can tell: one row a quantity, and the names and units along its axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.functions.constraints import constraint_residual, multipliers, reactions
from cardan.functions.dynamics import forward_dynamics
from cardan.functions.energy import kinetic_energy, momentum, potential_energy, power
from cardan.functions.kinematics import body_poses, body_twists
from cardan.model.model import Model
from cardan.structure.assemble import constraint_kernels
from cardan.structure.kernels import time_argument

XYZ = ("x", "y", "z")
SCREW = ("angular x", "angular y", "angular z", "linear x", "linear y", "linear z")
WRENCH = ("moment x", "moment y", "moment z", "force x", "force y", "force z")
FIXED_LABELS = {"axis": SCREW, "component": WRENCH, "row": (*XYZ, "1"), "column": (*XYZ, "origin")}
"""Names along the axes that are the same for every model."""


@dataclass(frozen=True)
class Labels:
    """Names and units along the axes of arrays, and which model they belong to."""

    model: str
    key: str
    coordinate: tuple[str, ...]
    coordinate_unit: tuple[str, ...]
    rate: tuple[str, ...]
    rate_unit: tuple[str, ...]
    body: tuple[str, ...]
    joint: tuple[str, ...]

    def along(self, axis: str) -> tuple[str, ...] | None:
        """Names along an axis; None where places have only numbers."""
        if axis in FIXED_LABELS:
            return FIXED_LABELS[axis]
        found: tuple[str, ...] | None = getattr(self, axis, None)
        return found

    def units(self, name: str, quantity: Quantity) -> tuple[str, ...] | str:
        """Unit of a quantity: one for all of it, or one for each entry along its first axis."""
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
class Samples:
    """States of a model to ask about: arrays whose leading axes broadcast, and the formulation to answer in."""

    model: Model
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray | None
    t: np.ndarray
    formulation: str


@dataclass(frozen=True)
class Quantity:
    """One row: axes after time, unit (empty: it differs along the axis), what it is in words, and its formula."""

    axes: tuple[str, ...]
    unit: str
    words: str
    of: Callable[[Samples], Any]


def unit_at(units: tuple[str, ...] | str, axes: tuple[str, ...], place: tuple[int, ...]) -> str:
    """Unit of one entry of a quantity with these units and axes."""
    if isinstance(units, tuple):
        return units[place[0]]
    angular, _, linear = units.partition(" and ")
    if not linear or axes[-1:] not in (("axis",), ("component",), ("column",)):
        return units
    return linear if place[-1] >= 3 else angular


def _energy(s: Samples) -> Any:
    return kinetic_energy(s.model, s.q, s.v) + potential_energy(s.model, s.q)


def _position_residual(s: Samples) -> Any:
    return np.abs(constraint_residual(s.model, s.q, t=s.t)).max(axis=-1, initial=0.0)


def _velocity_residual(s: Samples) -> Any:
    J, beta = constraint_kernels(s.model)[1](s.q, *time_argument(s.model, s.t))
    return np.abs((J @ s.v[..., None])[..., 0] - beta).max(axis=-1, initial=0.0)


STATES: dict[str, Quantity] = {
    "q": Quantity(("coordinate",), "", "coordinates of the tree's joints", lambda s: s.q),
    "v": Quantity(("rate",), "", "rates of the tree's joints", lambda s: s.v),
    "tau": Quantity(("rate",), "", "constant drives of the tree's joints", lambda s: s.tau),
}
"""What is stored."""

QUANTITIES: dict[str, Quantity] = {
    "a": Quantity(
        ("rate",), "", "accelerations of the tree's joints",
        lambda s: forward_dynamics(s.model, s.q, s.v, s.tau, t=s.t, formulation=s.formulation),
    ),
    "poses": Quantity(
        ("body", "row", "column"), "1 and m", "poses of the bodies in ground axes", lambda s: body_poses(s.model, s.q)
    ),
    "twists": Quantity(
        ("body", "axis"), "rad/s and m/s", "twists of the bodies, body components",
        lambda s: body_twists(s.model, s.q, s.v),
    ),
    "reactions": Quantity(
        ("joint", "component"), "N m and N", "wrench of each joint on its child, at and in the joint frame",
        lambda s: reactions(s.model, s.q, s.v, s.tau, t=s.t, formulation=s.formulation),
    ),
    "multipliers": Quantity(
        ("constraint",), "N m and N", "multipliers of the constraint rows",
        lambda s: multipliers(s.model, s.q, s.v, s.tau, t=s.t, formulation=s.formulation),
    ),
    "kinetic": Quantity((), "J", "kinetic energy", lambda s: kinetic_energy(s.model, s.q, s.v)),
    "potential": Quantity((), "J", "potential energy", lambda s: potential_energy(s.model, s.q)),
    "energy": Quantity((), "J", "kinetic and potential energy", _energy),
    "power": Quantity((), "W", "power that enters", lambda s: power(s.model, s.q, s.v, s.tau, t=s.t)),
    "momentum": Quantity(
        ("axis",), "N m s and N s", "momentum about the ground's origin", lambda s: momentum(s.model, s.q, s.v)
    ),
    "position_residual": Quantity((), "m and rad", "largest gap in a loop or coupling", _position_residual),
    "velocity_residual": Quantity((), "m/s and rad/s", "largest slip in a loop or coupling", _velocity_residual),
}  # fmt: skip
"""What follows from the states and the model."""


def with_time_axis(model: Model) -> Model:
    """The model with values (..., size) of its free parameters, if it has any, ready to meet states (..., n, nq)."""
    return model if model.values is None else with_values(model, model.values[..., None, :])


def with_values(model: Model, values: np.ndarray) -> Model:
    """The model at other values (..., size) of its free parameters."""
    free = model.parameters
    parts = {p.name: values[..., free.slice_of(p.name)].reshape((*values.shape[:-1], *p.shape)) for p in free}
    return model.unbound.at(parts)
