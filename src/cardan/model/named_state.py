"""States by name: coordinates and rates of some joints, `{"A": 0.3, "B": cd.deg(30)}`; and angles in other units.

A name is a joint's, with one number for each of its coordinates or rates, or one of several: `base[2]`. Numbers may be
arrays: their axes are those of a batch, and those of a joint with several numbers come last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.model.joint import NUMBERED
from cardan.model.values import batch, counted, floats, shown

if TYPE_CHECKING:
    from cardan.model.model import Model

UNIT_ERROR = 1e-3  # largest deviation of the length of a quaternion from 1
# Angles that are likely in degrees: whole multiples of 5 between these. Nobody starts at exactly 30 rad, 4.8 turns.
DEGREES = (10.0, 720.0)


def deg(angle: Any) -> Any:
    """Degrees as radians: a number, or an array of any shape."""
    return _scaled("deg", angle, np.pi / 180)


def rpm(speed: Any) -> Any:
    """Revolutions per minute as rad/s: a number, or an array of any shape."""
    return _scaled("rpm", speed, np.pi / 30)


def _scaled(owner: str, value: Any, factor: float) -> Any:
    try:
        found = floats(value) * factor
    except TypeError:
        raise InputError(f"{owner}: give a number or an array of numbers, got {shown(value)}") from None
    return found if found.ndim else float(found)


def coordinates_by_name(
    owner: str, what: str, model: Model, given: Mapping[str, Any], start: np.ndarray | None = None
) -> tuple[np.ndarray, list[int]]:
    """Configurations (..., nq) with some joints as given and the others at the model's start; and which are given.

    The second are numbers of the rates that belong to the coordinates given. Quaternions are made unit.
    """
    found = _by_name(owner, what, model, given, model.start() if start is None else start, "q")
    for at in model.quaternions:
        length = np.linalg.norm(found[0][..., at], axis=-1, keepdims=True)
        if (np.abs(length - 1) > UNIT_ERROR).any():
            joint = next(model.joints[k.joint].name for k in model.tree.links if k.q.stop == at.stop)
            worst = length.flat[int(np.argmax(np.abs(length - 1)))]
            raise InputError(
                f"{owner}: the quaternion (w, x, y, z) in {what} of {joint!r} has length {worst:.6g}, not 1"
            )
        found[0][..., at] /= length
    return found


def rates_by_name(owner: str, what: str, model: Model, given: Mapping[str, Any]) -> tuple[np.ndarray, list[int]]:
    """Rates (..., nv) with some joints as given and the others at rest; and the numbers of those given."""
    return _by_name(owner, what, model, given, np.zeros(model.nv), "v")


def _by_name(
    owner: str, what: str, model: Model, given: Mapping[str, Any], start: np.ndarray, port: str
) -> tuple[np.ndarray, list[int]]:
    parts: list[tuple[Any, np.ndarray]] = []
    held: list[int] = []
    for name, value in given.items():
        places, rates, label = _places(owner, what, model, name, port)
        if isinstance(value, str):
            raise InputError(f"{owner}: {label} must be a number, got {value!r}; cd.deg(30) is 30 degrees in rad")
        numbers = batch(owner, label, value)
        if len(places) > 1 and numbers.shape[-1:] != (len(places),):
            raise InputError(f"{owner}: {label} must be {counted(len(places), 'number')}, got shape {numbers.shape}")
        if len(places) == 1 and numbers.shape != (1,):  # a list of one number is that number
            numbers = numbers[..., None]
        if twice := {*rates} & {*held}:
            raise InputError(f"{owner}: {what} gives {model.coordinate_names[min(twice)]!r} twice")
        parts.append((places, numbers))
        held += rates
    try:
        lead = np.broadcast_shapes(start.shape[:-1], *(numbers.shape[:-1] for _, numbers in parts))
    except ValueError:
        shapes = ", ".join(f"{name!r} {np.shape(value)}" for name, value in given.items())
        raise InputError(f"{owner}: the batches in {what} do not fit together: {shapes}") from None
    found = np.array(np.broadcast_to(start, (*lead, start.shape[-1])), dtype=float)
    for places, numbers in parts:
        found[..., places] = numbers
    return found, sorted(held)


def _places(owner: str, what: str, model: Model, name: Any, port: str) -> tuple[list[int], list[int], str]:
    """Where the numbers of a name are in `q` or `v`, which rates they belong to, and what messages call them."""
    if not isinstance(name, str):
        raise InputError(f"{owner}: {what} takes names of joints, got {shown(name)}")
    joint, number = name, None
    if name not in model.joint_names and (found := NUMBERED.fullmatch(name)):
        joint, number = found[1], int(found[2])
    if joint not in model.joint_names:
        own = [model.joints[link.joint].name for link in model.tree.links if link.kind.nv]
        raise UnknownNameError(f"{owner}: {what}: {name!r} is not a joint of model {model.name!r}{nearest(name, own)}")
    link = model.link_of_joint(model.joint_names.index(joint))
    if link is None or not link.kind.nv:
        cut = model.joint_names.index(joint) in model.cuts
        why = "closes a loop, so that its angle follows from the others" if cut else "is rigid"
        known = ", ".join(repr(model.joints[k.joint].name) for k in model.tree.links[:8] if k.kind.nv) or "no joint"
        raise InputError(f"{owner}: {what}: joint {joint!r} {why}; name one that has coordinates: {known}")
    places = list(range(link.q.start, link.q.stop) if port == "q" else range(link.v.start, link.v.stop))
    rates = list(range(link.v.start, link.v.stop))
    if number is None:
        return places, rates, f"{what} of {name!r}"
    if number >= len(places) or (port == "q" and len(places) != len(rates)):
        why = "has a quaternion; give all its numbers" if number < len(places) else f"has {len(places)}"
        raise InputError(f"{owner}: {what}: {name!r} is no coordinate by itself: joint {joint!r} {why}")
    return [places[number]], [rates[number]], f"{what} of {name!r}"


def degrees_hint(owner: str, angle: float) -> str:
    """The sentence of the warning."""
    return (
        f"{owner} is {angle:g} rad, {abs(angle) / (2 * np.pi):.1f} turns; angles are in radians: if you mean degrees, "
        f"write cd.deg({angle:g})"
    )


def likely_degrees(angle: Any) -> np.ndarray:
    """Whether angles were likely given in degrees."""
    x = np.asarray(angle)
    if not (np.abs(x) >= DEGREES[0]).any():  # the usual case, in large batches too
        return np.zeros(x.shape, dtype=bool)
    return (np.abs(x) >= DEGREES[0]) & (np.abs(x) <= DEGREES[1]) & (x % 5 == 0)
