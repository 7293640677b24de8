"""What a launch of the kernel of rows is given, and what is known of its arrays: no code is printed here.

A process that finds its kernels in the cache needs no more than this of `entry.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cardan.program.program import Program

SYMBOL = "rows"
THREADS = 64  # of a block
BATCH_AXES = 3  # of a launch
ANY, NARROW, PACKED, DENSE = "", "narrow", "packed", "dense"  # forms of arrays


def words_of(
    rows: int, ports: Sequence[tuple[int, Sequence[int], Sequence[int]]]
) -> list[int]:  # fmt: skip
    """Arguments of the kernel: each port has its address, its strides along the batch's axes, and along its own."""
    words = [rows]
    for address, batch, core in ports:
        words += [address, *batch, *([0] * (BATCH_AXES - len(batch))), *core]
    return words


def form_of(
    program: Program, rows: int, others: Sequence[int], ports: Sequence[tuple[int, Sequence[int], Sequence[int]]],
    size: int,
) -> str:  # fmt: skip
    """What is known of arrays of numbers of `size` bytes, given as for `words_of`.

    "narrow": one batch axis of fewer than 2^32 rows, strides from 0 to 2^32. "packed": the elements of a row lie side
    by side in C order besides. "dense": so do the rows.
    """
    strides = [s for _, batch, core in ports for s in (*batch[:1], *core)]
    if rows >= 2**32 or any(n > 1 for n in others) or not all(0 <= s < 2**32 for s in strides):
        return ANY
    form = DENSE
    for port, (_, batch, core) in zip(program.ports, ports, strict=True):
        n = port.matrix[1]
        if tuple(core) != {0: (), 1: (size,), 2: (n * size, size)}[len(port.shape)]:
            return NARROW
        if batch[:1] != (port.size * size,):
            form = PACKED
    return form
