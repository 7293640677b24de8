"""What is rounding in the numbers of a run, so that no picture shows it.

A zero is seldom computed as exactly 0: the moment about the axis of a hinge comes out as 4e-15 N m, the travel of a
finger at rest as 1e-68 m. Scaled to the height of a plot or the length of an arrow it looks like a result. So a value
is compared with the size of the problem in its unit: lengths of the mechanism, duration of the run, forces that act,
and the largest value of the same unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cardan.model.model import Model

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

OF_MOTION = 1e-12  # relative to the size of the problem: a smaller coordinate or rate is rounding
OF_FORCES = 1e-9  # the same of forces, moments, energies and powers, which come out of linear systems
BASE_UNITS = ("rad", "m", "s", "N", "kg")
DERIVED_UNITS = {"J": "N m", "W": "N m/s", "deg": "rad", "1": ""}


def without_rounding(run: Trajectory, values: np.ndarray, unit: str) -> np.ndarray:
    """Values of a run in a unit ("rad", "m/s", "N m", ...), those that are rounding set to 0; any shape.

    A unit of which the parts are unknown is compared with the largest of the values alone.
    """
    values = np.asarray(values)
    own = float(np.nanmax(np.abs(values[np.isfinite(values)]), initial=0.0))
    rounding = _relative(unit) * max(own, size_of(run, unit))
    return np.where(np.abs(values) <= rounding, 0.0, values)


def wrenches_without_rounding(run: Trajectory, wrenches: np.ndarray) -> np.ndarray:
    """Wrenches (..., 6), moment in N m and force in N, with components that are rounding set to 0.

    Moments are also compared with the largest force times the length of the mechanism, and forces with moments by it.
    """
    wrenches = np.asarray(wrenches)
    sizes = np.abs(wrenches).reshape(-1, 6)
    sizes = sizes[np.isfinite(sizes).all(axis=-1)]
    length = size_of(run, "m") or 1.0
    moment, force = (float(sizes[:, part].max(initial=0.0)) for part in (slice(0, 3), slice(3, 6)))
    force = max(force, moment / length, size_of(run, "N"))
    limits = OF_FORCES * np.repeat([max(moment, force * length), force], 3)
    return np.where(np.abs(wrenches) <= limits, 0.0, wrenches)


def size_of(run: Trajectory, unit: str) -> float:
    """The size of the problem in a unit: 1 rad, the length of the mechanism, the duration of the run, its weight.

    0 if the run has no model or the unit has unknown parts.
    """
    model = run._model
    powers = _powers(unit)
    if model is None or powers is None:
        return 0.0
    model = model.unbound.settled()
    sizes = {"rad": 1.0, "m": _length(model), "s": _duration(run), "kg": sum(body.mass for body in model.bodies)}
    sizes["N"] = _force(run, model, sizes) if powers.get("N") else 1.0
    return float(np.prod([sizes[part] ** power for part, power in powers.items()]))


def _relative(unit: str) -> float:
    powers = _powers(unit) or {}
    return OF_FORCES if powers.get("N") or powers.get("kg") else OF_MOTION


def _powers(unit: str) -> dict[str, int] | None:
    """The powers of the base units in a unit such as "N m", "rad/s^2" or "W"; None if a part is unknown."""
    found: dict[str, int] = {}
    unit = DERIVED_UNITS.get(unit, unit).replace("²", "^2")
    for sign, side in zip((1, -1), (*unit.split("/", 1), "")[:2], strict=True):
        for part in side.replace("/", " ").replace("*", " ").split():
            name, _, power = part.partition("^")
            name = DERIVED_UNITS.get(name, name)
            if name not in BASE_UNITS or not (power or "1").isdigit():
                return None
            found[name] = found.get(name, 0) + sign * int(power or 1)
    return found


def _length(model: Model) -> float:
    """Largest distance, m, from the origin of a body or the ground to a joint or centre of mass; 1 if there is none."""
    points = [body.com for body in model.bodies if body.mass]
    points += [at.position for joint in model.joints for at in (joint.at, joint.child_at)]
    return max((float(np.linalg.norm(point)) for point in points), default=0.0) or 1.0


def _duration(run: Trajectory) -> float:
    return float(np.nanmax(run.time) - np.nanmin(run.time)) or 1.0


def _force(run: Trajectory, model: Model, sizes: dict[str, float]) -> float:
    """The larger of weight and inertia force at the rates of the run, N, whatever was computed before."""
    rates = np.where(np.isfinite(run.v), np.abs(run.v), 0.0).reshape(-1, run.v.shape[-1]).max(axis=0, initial=0.0)
    turning = np.array([unit.startswith("rad") for unit in run._metadata.labels.rate_unit], dtype=bool)
    spin, speed = float(rates[turning].max(initial=0.0)), float(rates[~turning].max(initial=0.0))
    inertial = max(spin**2 * sizes["m"], speed**2 / sizes["m"])
    return float(sizes["kg"] * max(float(np.linalg.norm(model.gravity)), inertial))
