"""A formulation's unknowns as the implicit integrators see them: coordinates, rates, and the rows that are kept."""

from __future__ import annotations

from dataclasses import dataclass

from cardan.formulation.dynamics import shape_of
from cardan.formulation.formulation import Formulation
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.planarity import prepare
from cardan.structure.rows import kept_rows

_LAYOUTS: Slot[str, Layout] = Slot("unknowns of the implicit integrators, by formulation")


@dataclass(frozen=True)
class Layout:
    """`rows` are the independent rows, `positions` those of them at position level; `unit` is where quaternions start.

    `lent` (nv, nv) is inertia that only constraints give some rates, as nested tuples; empty where there is none.
    """

    formulation: Formulation
    nq: int
    nv: int
    rows: tuple[int, ...]
    positions: tuple[int, ...]
    unit: tuple[int, ...]
    lent: tuple[tuple[float, ...], ...] = ()

    @property
    def key(self) -> str:
        """Everything that distinguishes it from another layout of the same model."""
        return f"{self.formulation.key} {self.rows} {self.positions}"


def layout_of(model: Model, formulation: Formulation) -> Layout:
    """The layout of a model in one formulation."""
    return _LAYOUTS.find(model, formulation.key, lambda: _layout_of(model.unbound, formulation))


def _layout_of(model: Model, formulation: Formulation) -> Layout:
    prepare(model, formulation)
    parts, rows = shape_of(model, formulation), kept_rows(model, formulation)
    positions = tuple(row for row in rows if parts.rows.labels[row].level == "position")
    unit = tuple(at for _, at in formulation.quaternions(model))
    lent = () if parts.lent is None else tuple(map(tuple, parts.lent.tolist()))
    return Layout(formulation, *formulation.sizes(model), tuple(rows), positions, unit, lent)
