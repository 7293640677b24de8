"""Which arguments are arrays on a card, and the refusal of those where only the host computes.

The package that defines a type tells how to ask its arrays: some libraries have one type for the host and the card, and
asking by the protocols may wait for the card (JAX) or raise (torch). Every call asks, so this file imports little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.errors import InputError

CUDA, CUDA_MANAGED = 2, 13  # device types of DLPack
_HOST = frozenset((np.ndarray, np.float64, np.float32, float, int, bool, list, tuple, type(None)))
_HOST_BASES = (np.ndarray, np.generic, int, float, list, tuple, str)


def is_device_array(value: Any) -> bool:
    """Whether something is an array, of any library, in the memory of an NVIDIA card."""
    kind = type(value)
    if kind in _HOST:
        return False
    package = package_of(kind)
    if package is None:
        return False
    try:
        return _ASK.get(package, _by_protocols)(value)
    except Exception:  # an object of others may raise anything
        return False


_packages: dict[type, str | None] = {}


def package_of(kind: type) -> str | None:
    """The library whose arrays have this type: "torch", "cupy", ..., "" if it is not known; None for host types."""
    try:
        return _packages[kind]
    except KeyError:
        if len(_packages) > 1000:  # somebody makes types without end
            _packages.clear()
        found = _packages[kind] = _search(kind)
        return found


def _search(kind: type) -> str | None:
    if issubclass(kind, _HOST_BASES) or not (
        hasattr(kind, "__cuda_array_interface__") or hasattr(kind, "__dlpack_device__")
    ):
        return None
    for base in kind.__mro__:
        package = base.__module__.partition(".")[0]
        if package in _LIBRARIES:
            return _LIBRARIES[package]
    return ""


_LIBRARIES = {
    "cardan": "cardan", "torch": "torch", "cupy": "cupy", "jax": "jax", "jaxlib": "jax", "numba": "numba",
    "numba_cuda": "numba", "warp": "warp",
}  # fmt: skip


def _by_protocols(value: Any) -> bool:
    ask = getattr(value, "__dlpack_device__", None)
    if ask is not None:
        return int(ask()[0]) in (CUDA, CUDA_MANAGED)
    return getattr(value, "__cuda_array_interface__", None) is not None


_ASK: dict[str, Callable[[Any], bool]] = {
    "cardan": lambda value: True,
    "torch": lambda value: bool(value.is_cuda),
    "jax": lambda value: any(device.platform in ("gpu", "cuda") for device in value.devices()),  # raises where traced
    "warp": lambda value: bool(value.device.is_cuda),
}

_FETCH = {
    "torch": "{}.cpu().numpy()", "cupy": "{}.get()", "jax": "np.asarray({})", "numba": "{}.copy_to_host()",
    "warp": "{}.numpy()", "cardan": "{}.numpy()",
}  # fmt: skip


def refusal(owner: str, name: str, value: Any) -> InputError:
    """The error to raise for an array on a card where only the host computes."""
    how = _FETCH.get(package_of(type(value)) or "", "a copy of {} in the host's memory").format(name)
    return InputError(f"{owner}: {name} is on a card, and this is computed on the host; give {how}")


def require_host(owner: str, **arrays: Any) -> None:
    """Refuse arrays on a card, by name, where only the host computes."""
    for name, value in arrays.items():
        if is_device_array(value):
            raise refusal(owner, name, value)


def as_array(x: Any) -> Any:
    """An array on a card as it is; everything else as a NumPy array."""
    return x if is_device_array(x) else np.asarray(x)
