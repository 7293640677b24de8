"""The system of equations for the multipliers of all connections, factored and solved by rounds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from cardan.formulation.large.elimination import Elimination
from cardan.formulation.solve import CORRECTIONS, REGULARISATION
from cardan.program.elimination import eliminate
from cardan.program.schedule import Round


class System:
    """Where its blocks are in memory, from `first` to `end`, and its rounds.

    `diagonal` and `right` (n,) are addresses; `below[i, j]` those of blocks where i is eliminated after j. With one
    right side the solution is corrected for the regularisation, with several (`columns`) it is not.
    """

    def __init__(self, sizes: Sequence[int], pairs: Collection[tuple[int, int]], columns: int, first: int) -> None:
        self.clear: Sequence[Round] = ()
        self.factor: Sequence[Round] = ()
        self.solve: Sequence[Round] = ()
        self.below: dict[tuple[int, int], int] = {}
        self.diagonal = self.right = np.zeros(0, dtype=int)
        self.end = first
        if not sizes:
            return
        if columns == 1:
            found = eliminate(sizes, pairs, first, eps=REGULARISATION, corrections=CORRECTIONS)
            self.clear, self.factor, self.solve, self.below = found.clear, found.factor, found.solve, found.below
            self.diagonal, self.right = np.array(found.diagonal), np.array(found.right)
            self.end = first + found.size
            return
        own = Elimination(sizes, pairs, columns, first)
        self.clear, self.factor, self.solve, self.below = own.clear(), own.factor(), own.solve_once(), own.below
        self.diagonal, self.right, self.end = own.diagonal, own.right, own.end

    def is_below(self, i: int, j: int) -> bool:
        """Whether block (i, j) is kept, not (j, i)."""
        return (int(i), int(j)) in self.below
