"""The system of equations for the multipliers of all connections, factored and solved by rounds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from cardan.program.elimination import eliminate


class System:
    """Where its blocks are in memory, from `first` to `end`, and its rounds.

    `diagonal`, `pivots` and `right` (n,) are addresses, `right` of the first column of the right sides; the next
    follow by `stride`. `below[i, j]` are those of blocks where i is eliminated after j. Where rows are eliminated
    `in_order`, solving ends with the first.
    """

    def __init__(self, sizes: Sequence[int], pairs: Collection[tuple[int, int]], columns: int, first: int) -> None:
        self.clear: Sequence[Any] = ()
        self.factor: Sequence[Any] = ()
        self.solve: Sequence[Any] = ()
        self.below: dict[tuple[int, int], int] = {}
        self.diagonal = self.pivots = self.right = np.zeros(0, dtype=int)
        self.end, self.stride, self.in_order = first, 0, True
        if sizes:
            found = eliminate(sizes, pairs, first, sides=columns)
            self.clear, self.factor, self.solve, self.below = found.clear, found.factor, found.solve, found.below
            self.diagonal, self.right = np.array(found.diagonal), np.array(found.right)
            self.pivots, self.in_order = np.array(found.pivots), found.order == tuple(range(len(sizes)))
            self.end, self.stride = first + found.size, found.stride

    def is_below(self, i: int, j: int) -> bool:
        """Whether block (i, j) is kept, not (j, i)."""
        return (int(i), int(j)) in self.below
