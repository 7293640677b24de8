"""Arrays as short text that a page reads back: compressed, without loss, in base64.

Entries that follow each other in a column differ little, so each is written less the one before it, as whole numbers;
the bytes are sorted by significance, which deflate then makes short. `data/page/data.js` is the way back.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

KINDS = {"float64": ("f8", 4), "float32": ("f4", 4), "uint32": ("u4", 4), "uint16": ("u2", 2)}
"""Names of the types, and the bytes of the whole numbers as which they are written."""


def packed(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays (rows, ...) of float64, float32, uint32 or uint16 as a layout and one text in base64."""
    layout, pieces = [], []
    for name, array in arrays.items():
        kind, each = KINDS[array.dtype.name]
        table = np.ascontiguousarray(array).reshape(len(array), -1 if array.size else int(np.prod(array.shape[1:])))
        layout.append([name, kind, *table.shape])
        pieces.append(_bytes_by_significance(table, each))
    return {"layout": layout, "text": base64.b64encode(zlib.compress(b"".join(pieces), 6)).decode()}


def _bytes_by_significance(table: np.ndarray, each: int) -> bytes:
    """The differences along each column, and of these all lowest bytes, then all second bytes, ..."""
    little = table.astype(table.dtype.newbyteorder("<"), copy=False)
    whole = little.view(f"<u{each}").reshape(len(table), -1).T
    steps = np.diff(whole, axis=1, prepend=np.zeros_like(whole[:, :1]))  # modulo 2^(8 each)
    return np.ascontiguousarray(steps).view(np.uint8).reshape(-1, each).T.tobytes()
