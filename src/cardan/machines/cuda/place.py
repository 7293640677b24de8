"""Where to compute: what `device=` means. Functions hand it down in the place of `threads`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cardan.errors import InputError
from cardan.machines.ufunc.threads import get_threads


@dataclass(frozen=True)
class Place:
    """A card, by its number, that is to compute on NumPy arrays."""

    card: int

    def __repr__(self) -> str:
        """As users write it."""
        return f"gpu:{self.card}"


class OnHost(int):
    """A number of threads of the CPU, where it was asked for: arrays on a card are refused."""


def place_of(owner: str, device: Any, threads: Any = None) -> Any:
    """What to hand down as `threads` for `device`: "cpu" or None (`threads` itself), "gpu" or "gpu:1".

    The error of a missing driver or card is raised here, before anything is computed.
    """
    if device is None:
        return threads
    if isinstance(device, str) and device == "cpu":
        return OnHost(get_threads()) if threads is None else threads
    if isinstance(device, Place):
        return device
    kind, _, number = str(device).partition(":")
    if kind not in ("gpu", "cuda") or (number and not number.isdecimal()) or not isinstance(device, str):
        raise InputError(f"{owner}: device must be 'cpu', 'gpu' or 'gpu:1' for the second card, got {device!r:.60}")
    if threads is not None:
        raise InputError(f"{owner}: threads={threads!r} is for the CPU; leave it out with device={device!r}")
    from cardan.machines.cuda import driver

    return Place(driver.card(int(number or 0)).index)
