"""The table of plot panels: for each name, the axes to draw and their lines over time.

Values are in SI units; angles may be in degrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.functions.constraints import undetermined_reactions
from cardan.results.trajectory.quantities import STATES, WRENCH
from cardan.structure.redundancy import redundancy

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

# Components smaller than this, relative to the largest of their kind, are rounding and are not drawn.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Panel:
    """One panel: its title, unit, and lines (..., n) by name; `log` for a logarithmic scale."""

    title: str
    unit: str
    lines: dict[str, np.ndarray]
    log: bool = False

    @property
    def label(self) -> str:
        """Label of the vertical axis; it includes the name of a single line."""
        name = next(iter(self.lines))
        title = self.title
        if len(self.lines) == 1 and name != title:
            title += f", {name}" if " of " in title else f" of {name}"
        return f"{title} ({self.unit})" if self.unit else title


@dataclass(frozen=True)
class Selection:
    """What to plot: tree joints (None for all), joints whose reactions are shown, and "rad" or "deg"."""

    joints: tuple[str, ...] | None
    reactions: tuple[str, ...]
    angle: str


def selection_of(
    run: Trajectory, joints: Sequence[str] | str | None, reactions: Sequence[str] | str, angle: str
) -> Selection:
    """Check a selection against the run."""
    if angle not in ("rad", "deg"):
        raise InputError(f"plot: angle must be 'rad' or 'deg', got {angle!r}")
    pick = None if joints is None else _names(joints)
    wanted = _names(reactions)
    for joint in wanted:
        if joint not in run._metadata.labels.joint:
            raise UnknownNameError(
                f"plot: joint {joint!r} is not in the model{nearest(joint, run._metadata.labels.joint)}"
            )
    for joint in pick or ():
        run._places("coordinate", joint)
    return Selection(pick, wanted, angle)


def panels_of(run: Trajectory, names: Sequence[str], selection: Selection) -> list[Panel]:
    """The panels by name, or the default panels of the run."""
    if not names:
        names = ["coordinates", "rates", "energy"]
        names += ["residuals"] if _is_constrained(run) else []
        names += ["reactions"] if selection.reactions else []
        if run._model is None:  # without the model, only what the file holds
            names = [name for name in names if NEEDS[name] <= {"q", "v", *run._computed}]
    elif selection.reactions and "reactions" not in names:
        names = [*names, "reactions"]
    found = []
    for name in names:
        if not isinstance(name, str) or name not in PANELS:
            raise UnknownNameError(f"plot: {name!r} is not a panel{nearest(name, PANELS)}")
        found += PANELS[name](run, selection)
    return found


def in_angle(values: np.ndarray, unit: str, angle: str) -> tuple[np.ndarray, str]:
    """Values and their unit, with angles in "rad" or "deg"."""
    if angle == "deg" and unit.startswith("rad"):
        return np.degrees(values), unit.replace("rad", "deg", 1)
    return values, unit


def _names(names: Sequence[str] | str) -> tuple[str, ...]:
    if isinstance(names, str):
        return (names,)
    if not isinstance(names, Iterable):
        raise InputError(f"plot: joints and reactions must be lists of joint names, got {names!r}")
    return tuple(names)


def _is_constrained(run: Trajectory) -> bool:
    if run._model is None:
        return "position_residual" in run._computed
    return bool(run._model.cuts or run._model.couplings)


def _by_unit(quantity: str, axis: str, title: str) -> Callable[[Trajectory, Selection], list[Panel]]:
    """Panels of a quantity of the tree joints, one for each unit."""

    def panels(run: Trajectory, selection: Selection) -> list[Panel]:
        labels = run._metadata.labels
        names = labels.along(axis) or ()
        units = labels.units(quantity, STATES["q" if axis == "coordinate" else "v"])
        every = range(len(names))
        kept = [
            k for joint in selection.joints for k in every[run._places(axis, joint)]
        ] if selection.joints is not None else list(every)  # fmt: skip
        values, found = run.quantity(quantity), {}
        for unit in dict.fromkeys(units[k] for k in kept):
            lines = {}
            for k in (k for k in kept if units[k] == unit):
                lines[names[k]], shown = in_angle(values[..., k], unit, selection.angle)
            found[unit] = Panel(title, "quaternion" if shown == "1" else shown.replace("^2", "²"), lines)
        return list(found.values())

    return panels


def _curves(
    title: str, unit: str, log: bool = False, **quantities: str
) -> Callable[[Trajectory, Selection], list[Panel]]:
    """One panel of quantities without axes; `quantities` are their names in `QUANTITIES` by their labels."""
    return lambda run, selection: [Panel(title, unit, {label: run.quantity(n) for label, n in quantities.items()}, log)]


def _momentum(run: Trajectory, selection: Selection) -> list[Panel]:
    H, p = run.momentum[..., :3], run.momentum[..., 3:]
    return [
        Panel("angular momentum", "N m s", {x: H[..., k] for k, x in enumerate("xyz")}),
        Panel("linear momentum", "N s", {x: p[..., k] for k, x in enumerate("xyz")}),
    ]


def _reactions(run: Trajectory, selection: Selection) -> list[Panel]:
    """Nonzero components for selected joints; magnitudes for all joints if none is selected.

    Components that redundant constraints leave undetermined are one possible solution, and are labelled so.
    """
    joints, unknown = run._metadata.labels.joint, _undetermined(run)
    if not selection.reactions:
        wrenches = run.reactions
        sizes = {w: np.linalg.norm(wrenches[..., at], axis=-1) for w, at in (("force", FORCE), ("moment", MOMENT))}
        largest = float(np.nanmax(np.abs(wrenches), initial=0.0))
        unknown &= (
            np.nanmax(np.abs(wrenches) * unknown, initial=0.0) > ROUNDING * largest
        )  # not labelled if they are all zero
        return [
            Panel(
                f"reaction {what}",
                UNIT[what],
                {_marked(joint, bool(unknown[k, at].any())): size[..., k] for k, joint in enumerate(joints)},
            )
            for (what, size), at in zip(sizes.items(), (FORCE, MOMENT), strict=True)
            if np.nanmax(size, initial=0.0) > ROUNDING * largest
        ]
    found = []
    for joint in selection.reactions:
        wrench, loose = run.reaction(joint), unknown[joints.index(joint)]
        sizes = np.nanmax(np.abs(wrench), axis=tuple(range(wrench.ndim - 1)))
        for what, at in (("force", FORCE), ("moment", MOMENT)):
            if sizes[at].max() > ROUNDING * sizes.max():
                kept = [k for k in range(6)[at] if sizes[k] > ROUNDING * sizes[at].max()]
                lines = {_marked(WRENCH[k].split()[1], bool(loose[k])): wrench[..., k] for k in kept}
                found.append(Panel(f"{what} of {joint}", UNIT[what], lines))
    return found


def _marked(name: str, undetermined: bool) -> str:
    return f"{name}, undetermined" if undetermined else name


def _undetermined(run: Trajectory) -> np.ndarray:
    """Mask (joints, 6) of components that redundant constraints leave undetermined, at the first sample."""
    model = run._model
    if model is None or model.batch or not (model.cuts or model.couplings) or not redundancy(model).redundant:
        return np.zeros((len(run._metadata.labels.joint), 6), dtype=bool)
    return undetermined_reactions(model, run.q.reshape(-1, model.nq)[0], t=float(run.time.flat[0]))


FORCE, MOMENT = slice(3, 6), slice(0, 3)
UNIT = {"force": "N", "moment": "N m"}

PANELS: dict[str, Callable[[Trajectory, Selection], list[Panel]]] = {
    "coordinates": _by_unit("q", "coordinate", "coordinate"),
    "rates": _by_unit("v", "rate", "rate"),
    "accelerations": _by_unit("a", "rate", "acceleration"),
    "energy": _curves("energy", "J", kinetic="kinetic", potential="potential", total="energy"),
    "power": _curves("power", "W", power="power"),
    "momentum": _momentum,
    "residuals": _curves(
        "largest residual",
        "",
        True,
        **{"position (m, rad)": "position_residual", "velocity (m/s, rad/s)": "velocity_residual"},
    ),
    "reactions": _reactions,
}
"""Panels of `run.plot` by name."""

NEEDS: dict[str, set[str]] = {
    "coordinates": {"q"},
    "rates": {"v"},
    "energy": {"kinetic", "potential", "energy"},
    "residuals": {"position_residual", "velocity_residual"},
    "reactions": {"reactions"},
}
"""Quantities that the default panels need."""
