"""Constraint rows in print: which are recorded, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cardan.algebra.matrix import Matrix
from cardan.formulation.formulation import Formulation, Parts

if TYPE_CHECKING:
    from cardan.readable.graph_to_sympy import RotationMatrix
    from cardan.readable.symbols import Symbols


@dataclass(frozen=True)
class Abbreviation:
    """A vector that may become three symbols: their letter and index, its meaning and its graph (3,).

    `link` is the link that it is fixed in, None if it changes with what defines it.
    """

    letter: str
    index: str
    meaning: str
    link: int | None
    value: Matrix


@dataclass(frozen=True)
class RecordedRows:
    """Constraint rows to print, as graphs. The `gamma` of the rows in `derived` is found from their printed `J`."""

    J: Matrix
    gamma: Matrix
    phi: Matrix
    derived: list[int] = field(default_factory=list)
    vectors: list[Abbreviation] = field(default_factory=list)


class RowStyle:
    """The rows as the formulation has them. The style of a source overrides what it prints differently."""

    def rows(self, formulation: Formulation, parts: Parts, v: Matrix) -> RecordedRows:
        """The rows to print, from the recorded parts; `v` are the symbols of the rates."""
        return RecordedRows(parts.rows.J, parts.rows.gamma, parts.rows.phi)

    def finished(
        self, formulation: Formulation, found: Symbols, rows: RecordedRows, vectors: Sequence[Sequence[Any]],
        rotations: Sequence[RotationMatrix],
    ) -> Symbols:  # fmt: skip
        """The printed equations; `vectors` has the expressions of `rows.vectors`."""
        return found


AS_RECORDED = RowStyle()
