"""The table of panels that a run can be plotted as: one row a name, each a list of axes with lines over time.

Numbers are those of the run, in SI units; angles may be shown in degrees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.functions.constraints import undetermined_reactions
from cardan.results.quantities import STATES, WRENCH
from cardan.structure.redundancy import redundancy

if TYPE_CHECKING:
    from cardan.results.trajectory import Trajectory

# A component this much smaller than the largest of its kind is rounding, and is not drawn.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Panel:
    """One pair of axes: what is drawn, its unit, and lines (..., n) by name; `log` for sizes over many decades."""

    words: str
    unit: str
    lines: dict[str, np.ndarray]
    log: bool = False

    @property
    def label(self) -> str:
        """What stands beside the axis: with the name of the line where there is only one."""
        name = next(iter(self.lines))
        words = self.words
        if len(self.lines) == 1 and name != words:
            words += f", {name}" if " of " in words else f" of {name}"
        return f"{words} ({self.unit})" if self.unit else words


@dataclass(frozen=True)
class Choice:
    """What to show of a run: tree joints (None is all), joints whose reactions to show, "rad" or "deg"."""

    joints: tuple[str, ...] | None
    reactions: tuple[str, ...]
    angle: str


def chosen(run: Trajectory, joints: Sequence[str] | str | None, reactions: Sequence[str] | str, angle: str) -> Choice:
    """Check a choice against the run."""
    if angle not in ("rad", "deg"):
        raise InputError(f"plot: angle must be 'rad' or 'deg', got {angle!r}")
    pick = None if joints is None else _names(joints)
    wanted = _names(reactions)
    for joint in wanted:
        if joint not in run._about.labels.joint:
            raise UnknownNameError(
                f"plot: joint {joint!r} is not in the model{nearest(joint, run._about.labels.joint)}"
            )
    for joint in pick or ():
        run._places("coordinate", joint)
    return Choice(pick, wanted, angle)


def panels_of(run: Trajectory, names: Sequence[str], choice: Choice) -> list[Panel]:
    """The panels by name, or those that suit the run where none is named."""
    if not names:
        names = ["coordinates", "rates", "energy"]
        names += ["residuals"] if _is_constrained(run) else []
        names += ["reactions"] if choice.reactions else []
        if run._model is None:  # a file without its model has what was saved with it
            names = [name for name in names if NEEDS[name] <= {"q", "v", *run._computed}]
    elif choice.reactions and "reactions" not in names:
        names = [*names, "reactions"]
    found = []
    for name in names:
        if not isinstance(name, str) or name not in PANELS:
            raise UnknownNameError(f"plot: {name!r} is not a panel{nearest(name, PANELS)}")
        found += PANELS[name](run, choice)
    return found


def turned(values: np.ndarray, unit: str, angle: str) -> tuple[np.ndarray, str]:
    """Values in rad shown in degrees where that is asked for."""
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


def _by_unit(quantity: str, axis: str, words: str) -> Callable[[Trajectory, Choice], list[Panel]]:
    """Panels of a quantity along the tree's joints, one for each unit."""

    def panels(run: Trajectory, choice: Choice) -> list[Panel]:
        labels = run._about.labels
        names = labels.along(axis) or ()
        units = labels.units(quantity, STATES["q" if axis == "coordinate" else "v"])
        every = range(len(names))
        kept = [
            k for joint in choice.joints for k in every[run._places(axis, joint)]
        ] if choice.joints is not None else list(every)  # fmt: skip
        values, found = run.quantity(quantity), {}
        for unit in dict.fromkeys(units[k] for k in kept):
            lines = {}
            for k in (k for k in kept if units[k] == unit):
                lines[names[k]], shown = turned(values[..., k], unit, choice.angle)
            found[unit] = Panel(words, "quaternion" if shown == "1" else shown.replace("^2", "²"), lines)
        return list(found.values())

    return panels


def _energy(run: Trajectory, choice: Choice) -> list[Panel]:
    lines = {"kinetic": run.kinetic, "potential": run.potential, "total": run.energy}
    return [Panel("energy", "J", lines)]


def _power(run: Trajectory, choice: Choice) -> list[Panel]:
    return [Panel("power", "W", {"power": run.power})]


def _residuals(run: Trajectory, choice: Choice) -> list[Panel]:
    found = run.residuals
    lines = {"position (m, rad)": found.position, "velocity (m/s, rad/s)": found.velocity}
    return [Panel("largest residual", "", lines, log=True)]


def _momentum(run: Trajectory, choice: Choice) -> list[Panel]:
    H, p = run.momentum[..., :3], run.momentum[..., 3:]
    return [
        Panel("angular momentum", "N m s", {x: H[..., k] for k, x in enumerate("xyz")}),
        Panel("linear momentum", "N s", {x: p[..., k] for k, x in enumerate("xyz")}),
    ]


def _reactions(run: Trajectory, choice: Choice) -> list[Panel]:
    """Components of chosen joints, those that are not zero; sizes for all joints where none is chosen.

    What redundant constraints leave undetermined is drawn too, as one possible answer, and called so.
    """
    joints, unknown = run._about.labels.joint, _undetermined(run)
    if not choice.reactions:
        wrenches = run.reactions
        sizes = {w: np.linalg.norm(wrenches[..., at], axis=-1) for w, at in (("force", FORCE), ("moment", MOMENT))}
        largest = float(np.nanmax(np.abs(wrenches), initial=0.0))
        unknown &= np.nanmax(np.abs(wrenches) * unknown, initial=0.0) > ROUNDING * largest  # none where all are zero
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
    for joint in choice.reactions:
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
    """Mask (joints, 6) of what redundant constraints leave undetermined, at the first sample."""
    model = run._model
    if model is None or model.batch or not (model.cuts or model.couplings) or not redundancy(model).redundant:
        return np.zeros((len(run._about.labels.joint), 6), dtype=bool)
    return undetermined_reactions(model, run.q.reshape(-1, model.nq)[0], t=float(run.time.flat[0]))


FORCE, MOMENT = slice(3, 6), slice(0, 3)
UNIT = {"force": "N", "moment": "N m"}

PANELS: dict[str, Callable[[Trajectory, Choice], list[Panel]]] = {
    "coordinates": _by_unit("q", "coordinate", "coordinate"),
    "rates": _by_unit("v", "rate", "rate"),
    "accelerations": _by_unit("a", "rate", "acceleration"),
    "energy": _energy,
    "power": _power,
    "momentum": _momentum,
    "residuals": _residuals,
    "reactions": _reactions,
}
"""What `run.plot` knows by name."""

NEEDS: dict[str, set[str]] = {
    "coordinates": {"q"},
    "rates": {"v"},
    "energy": {"kinetic", "potential", "energy"},
    "residuals": {"position_residual", "velocity_residual"},
    "reactions": {"reactions"},
}
"""What the default panels are drawn from."""
