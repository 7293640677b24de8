"""A look at arrays on a card: a few of their rows, copied to the host."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cardan.machines.cuda.arrays import fetched, library_of, view_of
from cardan.machines.cuda.device_array import DeviceArray
from cardan.machines.cuda.streams import is_capturing


def some_rows_on_host(x: Any, core: int, all_of_them: bool = False) -> np.ndarray | None:
    """The first, the middle and the last row of an array on a card, whose rows are its last `core` axes; or the array.

    Waits for the array. None while a CUDA graph is recorded, which has no place for that.
    """
    library = library_of((x,))
    device = library.device("look", "array", x)
    stream = library.stream(device)
    if is_capturing(device, stream):
        return None
    if all_of_them:
        return fetched("look", "array", x)[0]
    view = view_of("look", "array", x, stream)
    split = view.ndim - core
    if split < 0:
        return None
    batch, count = view.shape[:split], math.prod(view.shape[:split])
    rows = []
    for k in sorted({0, count // 2, count - 1}) if count else ():
        offset = sum(int(i) * step for i, step in zip(np.unravel_index(k, batch), view.strides, strict=False))
        at = DeviceArray(
            view.owner, view.pointer + offset, view.shape[split:], view.strides[split:], view.dtype, device, stream
        )
        rows.append(at.numpy())
    return np.array(rows)
