"""The factor of a sparse symmetric matrix by dense fronts, for matrices that fill up.

Columns of the factor with nearly the same rows are eliminated together, as the pivots of a front: a dense matrix of its
pivots and of the rows below them, in which a matrix is assembled from the entries of its pivots and from what the
fronts below it in the elimination tree leave (multifrontal method: I. S. Duff, J. K. Reid, The multifrontal solution of
indefinite sparse symmetric linear equations, ACM TOMS 9, 1983). The loops over rows and columns are those of dense
matrices, which run in groups of rows, and the tables have one entry for each row of a front instead of one for each
product of blocks.

A front of p pivots and t rows below has two arrays, by columns. The panel has a column for each pivot and `height`
rows, p + t rounded up to whole groups. The rest, of which the lower half is used, has `height - skip` rows and columns,
for the rows of the panel from `skip` on, p rounded down to whole groups. The rest serves until the next front has taken
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GROUP = 8  # rows at a time
PANEL = 16  # pivots of a front that are eliminated before the columns after them are changed
# A front may be joined with the one above it if it has at most so many pivots and so large a share of zeros arises.
JOINED = ((8, 0.25), (24, 0.1), (64, 0.05), (1 << 60, 0.02))

RECORD = (
    "pivots", "height", "panel", "rest", "skip", "first", "below", "count", "child", "children", "block", "blocks",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Fronts:
    """Fronts in the order of elimination.

    A row of `records`: number of pivots; height; offsets of panel and rest in the state; rows skipped in the rest;
    first pivot, among all rows in the order of elimination; where its rows begin in `below`, and their number; where
    its children begin in `children`, and their number; where its blocks begin in `blocks`, and their number. `below`
    has the rows below the pivots, `place` the places of these in the front above. A row of `blocks`: offset in the
    state of a block of the matrix, offset in the state of its place in the panel, rows, columns. `scratch` is the
    offset of memory for one front, `pivots` that of the vector of the pivots, in
    which the squares of `e` are before (see `elimination`).
    """

    records: np.ndarray
    below: np.ndarray
    place: np.ndarray
    children: np.ndarray
    blocks: np.ndarray
    scratch: int
    pivots: int

    @property
    def tallest(self) -> int:
        """The largest height of a front."""
        return int(self.records[:, 1].max(initial=0))

    def column(self, name: str) -> np.ndarray:
        """One number of each front."""
        return self.records[:, RECORD.index(name)]


@dataclass(frozen=True, eq=False)
class FactorRound:
    """Assemble all fronts and factor them."""

    fronts: Fronts
    scratch_size: int = 0

    def operations(self) -> dict[str, int]:
        """How many of each operation it takes, without those on entries that are not used."""
        p, t = self.fronts.column("pivots"), self.fronts.column("count")
        n = p + t
        products = (n * (n + 1) * (n + 2) - t * (t + 1) * (t + 2)) // 6 - p
        return {"mul": int(products.sum()), "sub": int(products.sum()), "div": int(p.sum())}


@dataclass(frozen=True, eq=False)
class SolveRound:
    """Solve with the factor: forward and backward on the vector at an offset in the state."""

    fronts: Fronts
    vector: int
    scratch_size: int = 0

    def operations(self) -> dict[str, int]:
        """How many of each operation it takes."""
        p, t = self.fronts.column("pivots"), self.fronts.column("count")
        products = 2 * int((p * (p - 1) // 2 + p * t).sum())
        return {"mul": products + 2 * int(p.sum()), "sub": products}


@dataclass
class _Front:
    """Block columns first..last, and the blocks below them, rising."""

    first: int
    last: int
    below: list[int]
    zeros: int = 0


def plan_fronts(
    sizes: Sequence[int], columns: list[list[int]], at: dict[tuple[int, int], int], first: int, pivots_at: int
) -> tuple[Fronts, int]:
    """Fronts for a factor with blocks of these sizes, `columns[k]` below block k; the end of the memory they use.

    `at` has the offsets of the blocks that the matrix itself has; the memory of the fronts begins at `first`.
    `pivots_at` is the offset of the vector where the pivots come.
    """
    start = np.concatenate([[0], np.cumsum(sizes)])
    fronts = _joined(_fundamental(columns), start)
    owner = np.empty(len(sizes), dtype=int)
    for f, front in enumerate(fronts):
        owner[front.first : front.last + 1] = f
    above = [int(owner[front.below[0]]) if front.below else -1 for front in fronts]
    rows = [_rows(front.below, start) for front in fronts]
    children: list[list[int]] = [[] for _ in fronts]
    for f, parent in enumerate(above):
        if parent >= 0:
            children[parent].append(f)
    pivots = np.array([start[f.last + 1] - start[f.first] for f in fronts], dtype=int)
    counts = np.array([len(r) for r in rows], dtype=int)
    height = -(-(pivots + counts) // GROUP) * GROUP
    skip = pivots // GROUP * GROUP
    width = np.where(pivots > PANEL, -(-pivots // GROUP) * GROUP, pivots)
    panel = _aligned(first) + np.concatenate([[0], np.cumsum(width * height)])
    rest, end = _rest_places(children, (height - skip) ** 2, int(panel[-1]))
    place = [
        _places(fronts[parent], rows[parent], r, start) if parent >= 0 else r
        for parent, r in zip(above, rows, strict=True)
    ]
    blocks = _blocks(fronts, owner, at, start, height, panel)
    of_children = np.array([len(c) for c in children], dtype=int)
    of_blocks = np.bincount(blocks[:, 0], minlength=len(fronts)) if len(blocks) else np.zeros(len(fronts), int)
    records = np.column_stack([
        pivots, height, panel[:-1], rest, skip, [start[f.first] for f in fronts], _first_of(counts), counts,
        _first_of(of_children), of_children, _first_of(of_blocks), of_blocks,
    ])  # fmt: skip
    scratch, tallest = _aligned(end), int(height.max(initial=0))
    found = Fronts(records, _flat(rows), _flat(place), _flat(children), blocks[:, 1:], scratch, pivots_at)
    return found, scratch + PANEL * tallest


def _first_of(lengths: np.ndarray) -> np.ndarray:
    """Where pieces of these lengths begin that follow each other."""
    return np.concatenate([[0], np.cumsum(lengths)])[: len(lengths)]


def _flat(lists: Sequence[Sequence[int] | np.ndarray]) -> np.ndarray:
    """Lists of numbers one after the other; never empty."""
    return np.concatenate([*lists, [0]]).astype(np.int64)


def _aligned(place: int) -> int:
    return -(-place // GROUP) * GROUP


def _rows(blocks: list[int], start: np.ndarray) -> np.ndarray:
    """The rows of some blocks."""
    if not blocks:
        return np.zeros(0, int)
    return np.concatenate([np.arange(start[b], start[b + 1]) for b in blocks])


def _fundamental(columns: list[list[int]]) -> list[_Front]:
    """Columns that follow each other and have the same rows below."""
    fronts: list[_Front] = []
    for k, column in enumerate(columns):
        last = fronts[-1] if fronts else None
        if last is not None and last.below[:1] == [k] and len(last.below) == len(column) + 1:
            last.last, last.below = k, column
        else:
            fronts.append(_Front(k, k, column))
    return fronts


def _joined(fronts: list[_Front], start: np.ndarray) -> list[_Front]:
    """The same with a front joined to the one above where little is lost: fewer and larger fronts."""
    result: list[_Front] = []
    for front in fronts:
        while result and result[-1].last + 1 == front.first and result[-1].below[:1] and (
            front.first <= result[-1].below[0] <= front.last
        ):  # fmt: skip
            child = result[-1]
            mine, its = (int(start[f.last + 1] - start[f.first]) for f in (front, child))
            below = int(sum(start[b + 1] - start[b] for b in front.below))
            of_child = int(sum(start[b + 1] - start[b] for b in child.below))
            zeros = front.zeros + child.zeros + its * (mine + below - of_child)
            entries = (mine + its) * (mine + its + 1) // 2 + (mine + its) * below
            share = next(share for most, share in JOINED if mine + its <= most)
            if zeros > share * entries:
                break
            result.pop()
            front = _Front(child.first, front.last, front.below, zeros)
        result.append(front)
    return result


def _places(parent: _Front, below: np.ndarray, rows: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Where rows are in a front that has them all."""
    first, pivots = start[parent.first], start[parent.last + 1] - start[parent.first]
    return np.where(rows < first + pivots, rows - first, pivots + np.searchsorted(below, rows))


def _rest_places(children: list[list[int]], sizes: np.ndarray, first: int) -> tuple[np.ndarray, int]:
    """Offsets of the rests, each free again when the front above is assembled; the end of all."""
    places, end = np.zeros(len(sizes), int), first
    free: list[tuple[int, int]] = []  # offset and size, by offset
    for f, size in enumerate(sizes.tolist()):
        for k, (at, room) in enumerate(free):
            if room >= size:
                free[k : k + 1] = [(at + size, room - size)] if room > size else []
                break
        else:
            at = end
            if free and free[-1][0] + free[-1][1] == end:
                at = free.pop()[0]
            end = at + size
        places[f] = at
        for child in children[f]:
            free.append((int(places[child]), int(sizes[child])))
        if children[f]:
            free = _merged(free)
    return places, end


def _merged(free: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbouring pieces of free memory as one."""
    result: list[tuple[int, int]] = []
    for at, room in sorted(free):
        if result and sum(result[-1]) == at:
            result[-1] = (result[-1][0], result[-1][1] + room)
        else:
            result.append((at, room))
    return result


def _blocks(
    fronts: list[_Front], owner: np.ndarray, at: dict[tuple[int, int], int], start: np.ndarray, height: np.ndarray,
    panel: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """For each block of the matrix: front, offset, offset in the panel, rows, columns; by front."""
    if not at:
        return np.zeros((0, 5), int)
    i, j = np.array(list(at)).T
    f = owner[j]
    first = np.array([start[front.first] for front in fronts])[f]
    pivots = np.array([start[front.last + 1] for front in fronts])[f] - first
    row = np.where(start[i] < first + pivots, start[i] - first, -1)
    below = [dict(zip(front.below, _offsets(front.below, start), strict=True)) for front in fronts]
    for b in np.flatnonzero(row < 0).tolist():
        row[b] = pivots[b] + below[f[b]][int(i[b])]
    to = panel[f] + row + height[f] * (start[j] - first)
    table = np.column_stack([f, list(at.values()), to, start[i + 1] - start[i], start[j + 1] - start[j]])
    return table[np.argsort(f, kind="stable")]


def _offsets(blocks: list[int], start: np.ndarray) -> list[int]:
    """Where the rows of blocks that follow each other begin."""
    lengths = [int(start[b + 1] - start[b]) for b in blocks]
    return [0, *np.cumsum(lengths).tolist()][: len(blocks)]
