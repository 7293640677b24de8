"""Which formulation a name means for a mechanism.

`points` is one formulation in the plane and another one in space.
"""

from __future__ import annotations

from cardan.errors import CardanError
from cardan.formulation.formulation import Formulation
from cardan.formulation.registry import find_formulation
from cardan.model.memory import Slot, not_a_model
from cardan.model.model import Model

_MEANT: Slot[str, Formulation] = Slot("what a formulation for planar mechanisms means, by name or key")


def formulation_of(model: Model, formulation: str | Formulation) -> Formulation:
    """The formulation of a name, or the object given; one for planar mechanisms may mean another for all others."""
    try:
        meant: Formulation | None = model.memory.get((_MEANT, formulation)) if isinstance(formulation, str) else None
    except AttributeError as error:
        raise error if isinstance(error, CardanError) else not_a_model(model) from None
    if meant is not None:  # at once, since calls of small kernels take a microsecond
        return meant
    found = find_formulation(formulation)
    in_space = found.in_space
    if in_space is None:
        return found

    def choose() -> Formulation:
        from cardan.structure.planarity import is_planar  # which plain trees do without: their first answer is quick

        return found if is_planar(model) else in_space

    return _MEANT.find(model, formulation if isinstance(formulation, str) else found.key, choose)
