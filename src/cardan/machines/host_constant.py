"""Numbers of the host that a kernel is called with again and again; each card gets its copy once."""

from __future__ import annotations

from typing import Any

import numpy as np


class HostConstant:
    """An array that nobody changes, and its copies on cards, by card and dtype."""

    __slots__ = ("array", "copies")

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.copies: dict[tuple[int, np.dtype[Any]], Any] = {}
