"""How the rows of a batch are spread over a card: the batch's axes, as few as possible, and strides along them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from cardan.machines.cuda.view import View

AXES = 3  # of a launch: along the threads, and the second and third axis of the grid
LONGEST = 65_535  # of the second and third axis of a grid
_WARP = 32

Layout = tuple[tuple[int, ...], tuple[int, ...]]
"""Shape and strides of an array."""


@dataclass(frozen=True)
class Geometry:
    """A batch as a card's kernels take it: up to three axes, the first along the threads.

    `batch[j]` has the strides of port `j` along `sizes`, in bytes, `core[j]` those along the axes of a row. There is a
    launch for each entry of `launches`, with the offsets in bytes of all ports and the sizes of its part: one, unless
    the batch has more axes than a grid, or longer ones.
    """

    rows: int
    sizes: tuple[int, ...]
    batch: tuple[tuple[int, ...], ...]
    core: tuple[tuple[int, ...], ...]
    launches: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


def launch_geometry(ports_and_views: Sequence[tuple[int, View]], batch: tuple[int, ...]) -> Geometry:
    """How to launch on views, each with the number of axes of a row, that broadcast to the shape `batch`."""
    return _geometry(
        batch, tuple(core for core, _ in ports_and_views), tuple((v.shape, v.strides) for _, v in ports_and_views)
    )


@lru_cache(maxsize=4096)
def _geometry(batch: tuple[int, ...], cores: tuple[int, ...], layouts: tuple[Layout, ...]) -> Geometry:
    along = [_broadcast_strides(batch, core, layout) for core, layout in zip(cores, layouts, strict=True)]
    core = tuple(strides[len(strides) - n :] for n, (_, strides) in zip(cores, layouts, strict=True))
    axes = _collapsed([(n, tuple(strides[k] for strides in along)) for k, n in enumerate(batch)])
    axes = axes or [(1, (0,) * len(layouts))]
    # neighbouring threads read neighbouring memory, but an axis too short to fill a warp would leave threads idle
    first = min(axes, key=lambda axis: (-min(axis[0], _WARP), _reach(axis)))
    axes = [first, *sorted((axis for axis in axes if axis is not first), key=lambda axis: -axis[0])]
    taken, left = axes[:AXES], axes[AXES:]
    sizes = tuple(n for n, _ in taken)
    pieces = [[(0, sizes[0])], *([(lo, min(LONGEST, n - lo)) for lo in range(0, n, LONGEST)] for n in sizes[1:])]
    launches = []
    for outer in product(*(range(n) for n, _ in left)):
        base = [sum(i * steps[j] for i, (_, steps) in zip(outer, left, strict=True)) for j in range(len(layouts))]
        for piece in product(*pieces):
            offsets = tuple(
                base[j] + sum(lo * steps[j] for (lo, _), (_, steps) in zip(piece, taken, strict=True))
                for j in range(len(layouts))
            )
            launches.append((offsets, tuple(n for _, n in piece)))
    strides = tuple(tuple(steps[j] for _, steps in taken) for j in range(len(layouts)))
    rows = math.prod(batch)
    return Geometry(rows, sizes, strides, core, tuple(launches) if rows else ())


def _broadcast_strides(batch: tuple[int, ...], core: int, layout: Layout) -> tuple[int, ...]:
    """Strides along all axes of the batch: 0 where the array has one entry, or lacks the axis."""
    shape, strides = layout
    ahead = len(shape) - core
    own = [0 if n == 1 else step for n, step in zip(shape[:ahead], strides[:ahead], strict=True)]
    return (0,) * (len(batch) - ahead) + tuple(own)


Axis = tuple[int, tuple[int, ...]]
"""Length, and the strides of all ports."""


def _reach(axis: Axis) -> int:
    return sum(abs(step) for step in axis[1])


def _collapsed(axes: list[Axis]) -> list[Axis]:
    """The same rows with as few axes as possible, in any order."""
    found: list[Axis] = []
    for n, steps in sorted((axis for axis in axes if axis[0] != 1), key=_reach, reverse=True):
        if found and all(outer == n * step for outer, step in zip(found[-1][1], steps, strict=True)):
            found[-1] = (found[-1][0] * n, steps)
        else:
            found.append((n, steps))
    return found
