"""Constraint rows as data: each has an owner, a name, a unit, a level and a law, and over symbols

    J v = beta      J vdot = gamma      phi = 0 (rows at position level)      d phi/dq N = J, row by row

A constraint between bodies is first written once for all formulations, as forces on links (`LinkRows`): a row's force
does no work along the motions it allows. Each formulation turns them into rows in its own rates (`Rows`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cardan.algebra.matrix import Matrix, Scalar
from cardan.model.row import RowLabel, RowTable


@dataclass(frozen=True)
class Row:
    """One constraint row in a formulation's own rates; `phi` is None for a constraint on rates only."""

    label: RowLabel
    J: Matrix
    gamma: Scalar
    beta: Scalar
    phi: Scalar | None


@dataclass(frozen=True)
class Rows:
    """Constraint rows one below the other: `J` (nl, nv), `gamma`, `beta`, `phi` (nl,).

    `phi` is zero in rows at rate level.
    """

    labels: RowTable
    J: Matrix
    gamma: Matrix
    beta: Matrix
    phi: Matrix

    @classmethod
    def stacked(cls, parts: Sequence[Rows], nv: int) -> Rows:
        """All of several groups, in order."""
        import casadi as ca

        labels = RowTable(label for part in parts for label in part.labels)
        J = ca.vertcat(ca.SX(0, nv), *(part.J for part in parts))
        gamma, beta, phi = (
            ca.vertcat(ca.SX(0, 1), *(getattr(part, name) for part in parts)) for name in ("gamma", "beta", "phi")
        )
        return cls(labels, J, gamma, beta, phi)

    def __len__(self) -> int:
        """How many."""
        return len(self.labels)

    def __iter__(self) -> Iterator[Row]:
        """One after the other."""
        for k, label in enumerate(self.labels):
            phi = self.phi[k] if label.level == "position" else None
            yield Row(label, self.J[k, :], self.gamma[k], self.beta[k], phi)

    def prescribed(self, numbers: Sequence[int], gamma: Matrix) -> Rows:
        """The same with another `gamma` in some rows."""
        every = type(self.gamma)(self.gamma)
        every[list(numbers)] = gamma
        return replace(self, gamma=every)

    def kept(self, rows: Sequence[int]) -> Rows:
        """Some of the rows."""
        rows = list(rows)
        labels = RowTable(self.labels[k] for k in rows)
        return Rows(labels, self.J[rows, :], self.gamma[rows, 0], self.beta[rows, 0], self.phi[rows, 0])

    def of(self, owner: str) -> slice:
        """Where the rows of an owner are; they follow one another."""
        found = [k for k, label in enumerate(self.labels) if label.owner == owner]
        return slice(found[0], found[-1] + 1) if found else slice(0, 0)


@dataclass(frozen=True)
class LinkRows:
    """Rows as forces on links, in link components at the links' origins.

    `sum F_i^T v_i = beta`, `sum F_i^T a_i = gamma`, `phi = 0`, with twists `v_i` and spatial accelerations `a_i` of the
    links. `forces` has (link, F (6, k)). If `internal`, there are two, the second balances the first, and nothing is
    left of them on a link that carries both.
    """

    labels: tuple[RowLabel, ...]
    forces: tuple[tuple[int, Matrix], ...]
    gamma: Matrix
    beta: Matrix
    phi: Matrix
    internal: bool
