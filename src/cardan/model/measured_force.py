"""Forces of elements by name, as runs give them (`run["name.force"]`): which element, and how many numbers.

The force of a constraint, a motion or coupling, or a hard stop follows from all that acts; that of a spring is a
function of the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cardan.errors import UnknownNameError, nearest
from cardan.model.constraint_kind import ConstraintElement
from cardan.model.force import ElementReading

if TYPE_CHECKING:
    from cardan.model.model import Model

READINGS = ("force", "torque")


@dataclass(frozen=True)
class MeasuredForce:
    """The force of one element: of a coupling, a constraint, one with laws, or a reading of a force element."""

    element: Any
    size: int

    @property
    def is_load(self) -> bool:
        """Whether it is a function of the state."""
        return isinstance(self.element, ElementReading)


def find_force(model: Model, name: str) -> MeasuredForce:
    """The force of the element with a name."""
    found = _forces(model)
    if name not in found:
        raise UnknownNameError(f"there is no element {name!r} that has a force{nearest(name, found)}")
    return found[name]


def _forces(model: Model) -> dict[str, MeasuredForce]:
    found: dict[str, MeasuredForce] = {}
    for force in model.forces:
        for reading in force.readings(model.joints, model.body_names):
            if reading.name in READINGS:
                found.setdefault(force.name, MeasuredForce(reading, reading.size))
    for law in model.laws:
        found[law.name] = MeasuredForce(law, len(law.rows))
    for coupling in model.couplings:
        many = not (coupling.is_relation or coupling.unit)
        found[coupling.name] = MeasuredForce(coupling, len(coupling.joints) if many else 1)
    for own in model.own_constraints:
        size = len(own.holds) if isinstance(own, ConstraintElement) else 1
        found[own.name] = MeasuredForce(own, size)
    return found
