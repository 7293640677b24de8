"""Which arguments are arrays on a card. Every kernel asks, so this file imports nothing more."""

from __future__ import annotations

from typing import Any

import numpy as np

CUDA, CUDA_MANAGED = 2, 13  # device types of DLPack
_HOST = (np.ndarray, np.generic, int, float, list, tuple)


def is_device_array(value: Any) -> bool:
    """Whether something is an array, of any library, in the memory of an NVIDIA card."""
    if isinstance(value, _HOST):
        return False
    try:
        if getattr(value, "__cuda_array_interface__", None) is not None:
            return True
        ask = getattr(value, "__dlpack_device__", None)
        return ask is not None and ask()[0] in (CUDA, CUDA_MANAGED)
    except Exception:  # a foreign object may raise anything
        return False
