"""Distributions of uncertain parameters: `cd.normal`, `cd.uniform`, `cd.triangular`, `cd.lognormal`, or SciPy's.

Every number of a distribution has the unit of its parameter. `DISTRIBUTIONS` is the table of them; study files read it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.model.values import number, shown

UnitPoints = np.ndarray


@dataclass(frozen=True)
class Distribution:
    """A distribution of one parameter.

    Args:
        kind: its name in `DISTRIBUTIONS`, or the name of a distribution of SciPy.
        numbers: its arguments by name, in the unit of the parameter.
        quantile: value below which a part (0 to 1) lies; takes arrays.

    """

    kind: str
    numbers: dict[str, float]
    quantile: Callable[[UnitPoints], np.ndarray]

    @property
    def bounded(self) -> bool:
        """Whether all values lie between two finite ones."""
        with np.errstate(all="ignore"):
            return bool(np.isfinite(self.quantile(np.array([0.0, 1.0]))).all())

    @property
    def described(self) -> dict[str, Any]:
        """The kind and its numbers, as JSON takes them."""
        return {"distribution": self.kind, **self.numbers}

    def __repr__(self) -> str:
        """As it is written."""
        return f"{self.kind}({', '.join(f'{name}={x:g}' for name, x in self.numbers.items())})"


def normal(mean: float, std: float) -> Distribution:
    """Normal distribution with a mean and a standard deviation, both in the unit of the parameter."""
    from scipy.special import ndtri

    mean, std = number("normal", "mean", mean), number("normal", "std", std, least=0.0)
    return Distribution("normal", {"mean": mean, "std": std}, lambda u: np.asarray(mean + std * ndtri(u)))


def uniform(low: float, high: float) -> Distribution:
    """Uniform distribution between two values, in the unit of the parameter."""
    low, high = number("uniform", "low", low), number("uniform", "high", high)
    _require_order("uniform", low=low, high=high)
    return Distribution("uniform", {"low": low, "high": high}, lambda u: np.asarray(low + (high - low) * u))


def triangular(low: float, mode: float, high: float) -> Distribution:
    """Triangular distribution between two values, most likely at `mode`, all in the unit of the parameter."""
    low, mode, high = (
        number("triangular", what, x) for what, x in (("low", low), ("mode", mode), ("high", high))
    )  # fmt: skip
    _require_order("triangular", low=low, high=high)
    if not low <= mode <= high:
        raise InputError(f"triangular: mode must lie between low and high, {low:g} to {high:g}, got {mode:g}")
    width, rise = high - low, mode - low

    def quantile(u: UnitPoints) -> np.ndarray:
        below, above = low + np.sqrt(u * width * rise), high - np.sqrt((1 - u) * width * (high - mode))
        return np.where(u * width <= rise, below, above)

    return Distribution("triangular", {"low": low, "mode": mode, "high": high}, quantile)


def lognormal(mean: float, std: float) -> Distribution:
    """Log-normal distribution: always positive; mean and standard deviation of the parameter itself, in its unit."""
    from scipy.special import ndtri

    mean, std = number("lognormal", "mean", mean, above=0.0), number("lognormal", "std", std, least=0.0)
    s = np.sqrt(np.log1p((std / mean) ** 2))
    return Distribution(
        "lognormal", {"mean": mean, "std": std}, lambda u: np.asarray(mean * np.exp(s * ndtri(u) - s * s / 2))
    )


DISTRIBUTIONS: dict[str, tuple[Callable[..., Distribution], tuple[str, ...]]] = {
    "normal": (normal, ("mean", "std")),
    "uniform": (uniform, ("low", "high")),
    "triangular": (triangular, ("low", "mode", "high")),
    "lognormal": (lognormal, ("mean", "std")),
}
"""What makes each distribution, and the names of its numbers."""


def as_distribution(owner: str, name: str, given: Any) -> Distribution | None:
    """A distribution as given or of SciPy, frozen; None for anything else."""
    if isinstance(given, Distribution):
        return given
    quantile = getattr(given, "ppf", None) or getattr(given, "icdf", None)
    if not callable(quantile):
        return None
    if hasattr(given, "shapes") and not hasattr(given, "dist"):
        raise InputError(f"{owner}: {name!r}: {shown(given)} has no numbers yet; call it, as in scipy.stats.norm(0, 1)")
    kind = getattr(getattr(given, "dist", None), "name", type(given).__name__)
    numbers = {str(k): float(x) for k, x in enumerate(getattr(given, "args", ())) if np.ndim(x) == 0}
    numbers |= {str(k): float(x) for k, x in getattr(given, "kwds", {}).items() if np.ndim(x) == 0}
    return Distribution(kind, numbers, lambda u: np.asarray(quantile(u), dtype=float))


def _require_order(owner: str, low: float, high: float) -> None:
    if not low < high:
        raise InputError(f"{owner}: low must be below high, got {low:g} and {high:g}")
