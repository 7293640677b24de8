"""Which formulation a name means for a mechanism.

`points` is one formulation in the plane and another one in space.
"""

from __future__ import annotations

from cardan.formulation.formulation import Formulation
from cardan.formulation.registry import find_formulation
from cardan.model.memory import Slot
from cardan.model.model import Model

_MEANT: Slot[str, Formulation] = Slot("what a formulation for planar mechanisms means, by its key")


def formulation_of(model: Model, formulation: str | Formulation) -> Formulation:
    """The formulation of a name, or the object given; one for planar mechanisms may mean another for all others."""
    found = find_formulation(formulation)
    in_space = found.in_space
    if in_space is None:
        return found

    def meant() -> Formulation:
        from cardan.structure.planarity import is_planar  # which plain trees do without: their first answer is quick

        return found if is_planar(model) else in_space

    return _MEANT.find(model, found.key, meant)
