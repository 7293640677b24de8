"""What every constraint row says of itself, whatever the formulation: owner, name, unit, level and law.

A row is one scalar equation. At position level it is `phi(q, t) = 0` and follows from its rates; at rate level it is
`J v = beta` alone. The formulations add `J`, `gamma`, `beta` and `phi` in their own rates (`formulation.rows`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cardan.model.joint import Kind
    from cardan.model.model import Model

FORCE_UNITS = {"m": "N", "rad": "N m", "m^2": "N/m"}


class Law(Enum):
    """What holds the residual of a row.

    `EQUALITY` keeps it at zero with a force of either sign. The others are rows of lawful elements (`model.law`):
    `UNILATERAL` keeps it from being negative with a force that only pushes; `FRICTION` keeps its rate at zero with a
    force that has a bound; `SWITCHED` is an equality while it is closed, and nothing while it is open.
    """

    EQUALITY = "equality"
    UNILATERAL = "unilateral"
    FRICTION = "friction"
    SWITCHED = "switched"


@dataclass(frozen=True)
class RowLabel:
    """A constraint row.

    Args:
        owner: what it belongs to, e.g. `joint 'A'`.
        name: the owner's name, and for a joint the direction of the row's force in the joint's axes.
        unit: of the residual `phi`; of a row at rate level, of its integral over time.
        level: "position", or "rate" for a constraint on rates only.
        law: what holds it.

    """

    owner: str
    name: str
    unit: str
    level: str = "position"
    law: Law = Law.EQUALITY

    @property
    def rate_unit(self) -> str:
        """Unit of `J v` and `beta`."""
        return f"{self.unit}/s"

    @property
    def force_unit(self) -> str:
        """Unit of the multiplier: its product with the residual is an energy, J."""
        return FORCE_UNITS.get(self.unit, f"J/({self.unit})")


class RowTable(tuple[RowLabel, ...]):
    """Labels of constraint rows, in order; printed as a table."""

    @property
    def names(self) -> list[str]:
        """Name of each row."""
        return [label.name for label in self]

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (f"{k}", label.owner, label.name, label.unit, label.force_unit, label.level, label.law.value)
            for k, label in enumerate(self)
        ]

    def __repr__(self) -> str:
        """One line a row: number, owner, name, units of residual and multiplier, level, law."""
        if not self:
            return "no constraint rows"
        cells = [HEAD, *self._cells()]
        widths = [max(len(row[k]) for row in cells) for k in range(len(HEAD))]
        return "\n".join(
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
        )

    def _repr_html_(self) -> str:
        from cardan.model.html import html_table

        return html_table("Constraint rows", self._cells(), HEAD)


HEAD = ("row", "owner", "name", "residual", "multiplier", "level", "law")


def joint_labels(name: str, kind: Kind) -> list[RowLabel]:
    """Labels of a joint's rows: each is named after its force in the joint's axes."""
    return [RowLabel(f"joint {name!r}", f"{name}: {direction}", unit) for direction, unit in kind.rows]


def rows_of_tree(model: Model) -> RowTable:
    """Labels of the rows in the tree's coordinates: cut joints, then couplings and motions, then constraints."""
    labels = [label for j in model.cuts for label in joint_labels(model.joints[j].name, model.joints[j].kind)]
    labels += [label for coupling in model.couplings for label in coupling.labels(model.joints)]
    labels += [label for constraint in model.constraints for label in constraint.labels(model.joints)]
    return RowTable(labels)
