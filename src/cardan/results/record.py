"""The small records that make up a trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cardan.results.quantities import Labels


@dataclass(frozen=True, eq=False)
class EventRecord:
    """An event that was met: its name, which system of a batch (`()` without one), time (s) and state there."""

    name: str
    system: tuple[int, ...] | int
    time: float
    q: np.ndarray
    v: np.ndarray


class Residuals(NamedTuple):
    """How far a trajectory is from its constraints, largest row of each sample."""

    position: np.ndarray
    """(..., n), m and rad."""
    velocity: np.ndarray
    """(..., n), m/s and rad/s."""


@dataclass(frozen=True)
class About:
    """What a trajectory says of itself besides its arrays."""

    labels: Labels
    method: str
    formulation: str
    settings: Mapping[str, Any]
    statistics: Mapping[str, Any]


def as_index(system: Sequence[int] | int) -> tuple[int, ...]:
    """The place of a system in a batch, as a tuple."""
    return (int(system),) if isinstance(system, int | np.integer) else tuple(map(int, system))


def frozen(array: Any, kind: type = float) -> np.ndarray:
    """A view that cannot be written to, since other results were computed from it."""
    view: np.ndarray = np.asarray(array, dtype=kind).view()
    view.flags.writeable = False
    return view
