"""What the data of joints says of dynamics and nothing in the model makes act, as sentences."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from cardan.model.body import Joint, JointData
from cardan.model.force import Coupling, Force

NAMED = 4
"""Joints that a sentence names; more are counted."""


def _given(*names: str) -> Callable[[JointData], bool]:
    """Whether one of some entries is a finite number other than zero; a limit may be zero."""

    def given(data: JointData) -> bool:
        values = {name: getattr(data, name) for name in names}
        return any(x is not None and math.isfinite(x) and (x != 0 or name in LIMITS) for name, x in values.items())

    return given


LIMITS = ("lower", "upper", "velocity", "effort")
ENTRIES: dict[str, tuple[str, Callable[[JointData], bool], str]] = {
    "position": ("limits", _given("lower", "upper"), "a stop makes them act, cd.load(..., limits='hard')"),
    "velocity": ("limits of speed", _given("velocity"), "nothing enforces them"),
    "effort": ("limits of effort", _given("effort"), "nothing enforces them"),
    "damping": ("damping", _given("damping"), "a friction element, viscous=..., makes it act"),
    "friction": (
        "dry friction",
        _given("friction"),
        "a friction element, coulomb=..., makes it act, cd.load(..., friction='stick')",
    ),
    "mimic": ("mimicry", lambda data: data.mimic is not None, "a coupling makes it act"),
}
"""Entries of a joint's data: what sentences call them, whether they are given, and what would make them act."""


def acting_data(forces: Sequence[Force], couplings: Sequence[Coupling]) -> set[tuple[str, int]]:
    """Entries of joints' data that force elements and couplings make act, with the number of the joint."""
    acting = {("mimic", j) for coupling in couplings for j in coupling.joints}
    for force in forces:
        for name, field in force.kind.fields.items():
            if field.data and name in force.numbers and (field.data == "position" or np.any(force.numbers[name])):
                acting.add((field.data, force.on[0]))
    return acting


def idle_data(joints: Sequence[Joint], forces: Sequence[Force], couplings: Sequence[Coupling]) -> list[str]:
    """A sentence for each entry that joints have and no force element or coupling makes act."""
    acting = acting_data(forces, couplings)
    found = []
    for entry, (what, given, way) in ENTRIES.items():
        idle = [joint.name for j, joint in enumerate(joints) if given(joint.data) and (entry, j) not in acting]
        if idle:
            names = ", ".join(map(repr, idle[:NAMED])) + (", ..." if len(idle) > NAMED else "")
            found.append(f"{what} of {len(idle)} joint{'s' * (len(idle) > 1)} ({names}): data only; {way}")
    return found
