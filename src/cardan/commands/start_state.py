"""Numbers with units on the command line, `--time 500ms`, `--start A=30deg`, and the initial state that they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cardan.commands.arguments import split_setting
from cardan.errors import InputError

if TYPE_CHECKING:
    from cardan.model.model import Model

UNIT_ERROR = 1e-3  # largest deviation of the length of a quaternion from 1


def measured(option: str, text: str, unit: str) -> float:
    """A number in SI units; text without a unit is in SI, text with one must have the dimension of `unit`."""
    from cardan.io.yaml.units import MEASURE, PLAIN, UnitError, described, read_unit, to_si

    match = MEASURE.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{option}: {text!r} is not a number with a unit, such as 0.5 or 30deg")
    wanted = PLAIN if unit == "1" else read_unit(unit).dimension
    try:
        given = read_unit(match[2]) if match[2] else None
        if given is not None and given.dimension != wanted:
            what = "a number without unit" if unit == "1" else f"a number in {unit}"
            raise InputError(f"{option}: expected {what}, but {text!r} is {described(given.dimension)}")
        return to_si(match[1], given)
    except UnitError as error:
        raise InputError(f"{option}: {text!r}: {error}") from None


def start_state(model: Model, start: Sequence[str], rate: Sequence[str]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The state with coordinates and rates of some joints given by name; the others are assembled.

    None, for the model's own start, if nothing is given.
    """
    if not start and not rate:
        return None, None
    from cardan.structure.assemble import assemble

    q, v = model.start(), np.zeros(model.nv)
    placed = [_place(model, "--start", text, q) for text in start]
    moving = [_place(model, "--rate", text, v) for text in rate]
    for option, joints in (("--start", placed), ("--rate", moving)):
        if twice := {joint for joint in joints if joints.count(joint) > 1}:
            raise InputError(f"{option} gives joint {min(twice)!r} twice")
    q, still = assemble(model, q, hold=placed)
    return assemble(model, q, np.where(_entries(model, moving), v, still), hold=moving)


def _place(model: Model, option: str, text: str, into: np.ndarray) -> str:
    """Store the numbers of `joint=value,value` in the array and return the name of the joint."""
    joint, values = split_setting(option, text)
    at = model.q_slice(joint) if option == "--start" else model.v_slice(joint)
    kind = model.joint(joint).kind
    units = kind.q_units if option == "--start" else kind.v_units
    parts = values.split(",")
    if len(parts) != len(units):
        raise InputError(
            f"{option} {text}: joint {joint!r} ({kind.name}) takes {len(units)} "
            f"number{'s' if len(units) > 1 else ''} ({', '.join(units)}), got {len(parts)}"
        )
    into[at] = [measured(f"{option} {joint}", part, unit) for part, unit in zip(parts, units, strict=True)]
    if option == "--start" and kind.nq != kind.nv:
        _normalise(f"{option} {text}", into[at.stop - 4 : at.stop])
    return joint


def _normalise(where: str, quaternion: np.ndarray) -> None:
    length = float(np.linalg.norm(quaternion))
    if abs(length - 1) > UNIT_ERROR:
        raise InputError(f"{where}: a quaternion (w, x, y, z) has length 1, this one {length:.6g}")
    quaternion /= length


def _entries(model: Model, joints: Sequence[str]) -> np.ndarray:
    """Mask (nv,) of the rates of some joints."""
    mask = np.zeros(model.nv, dtype=bool)
    for joint in joints:
        mask[model.v_slice(joint)] = True
    return mask
