"""What a measure depends on: indices of sensitivity of a study.

Designs "saltelli", "morris" and "fast" are analysed by SALib: Sobol's indices by Saltelli's estimators (Computer
Physics Communications 181 (2010) 259-270), elementary effects by Morris (Technometrics 33 (1991) 161-174), FAST by
Saltelli, Tarantola and Chan (Technometrics 41 (1999) 39-56). Other designs get a linear regression and rank
correlations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.studies.design import FAST_HARMONICS, MORRIS_LEVELS, salib, unit_problem
from cardan.studies.selection import selected, varied

if TYPE_CHECKING:
    import pandas as pd

    from cardan.studies.study import Study

RESAMPLES = 100  # of confidence intervals


@dataclass(frozen=True, eq=False)
class StudyIndices:
    """Indices of sensitivity of one measure.

    Args:
        kind: the design: "saltelli", "morris", "fast", or "regression" for any other.
        measure: its name.
        names: the parameters (k,).
        columns: indices (k,) by name. Of "saltelli" and "fast" `first` (part of the variance due to a parameter alone)
            and `total` (part that involves it), with half their 95 % intervals `first_interval`, `total_interval`. Of
            "morris" the mean `mu`, mean magnitude `mu_star` and spread `sigma` of elementary effects, in the unit of
            the measure for the whole range of the parameter. Of "regression" `coefficient`, standardised (-1 to 1), and
            Spearman's `rank_correlation`.
        members: how many members the indices are from; members that failed, and those that belong to them, are left
            out.
        explained: of "regression" the part of the variance that the line explains (R squared), otherwise NaN.

    """

    kind: str
    measure: str
    names: tuple[str, ...]
    columns: Mapping[str, np.ndarray]
    members: int
    explained: float = np.nan

    def __getitem__(self, name: str) -> np.ndarray:
        """Indices (k,) by name."""
        if name not in self.columns:
            raise InputError(f"indices: there are {', '.join(self.columns)} of design {self.kind!r}, got {name!r}")
        return self.columns[name]

    def to_dataframe(self) -> pd.DataFrame:
        """A table, one row for each parameter."""
        import pandas as pd

        return pd.DataFrame(dict(self.columns), index=pd.Index(self.names, name="parameter"))

    def __str__(self) -> str:
        """A table."""
        wide = max(len(name) for name in self.names)
        heads = [name for name in self.columns if not name.endswith("_interval")]
        lines = [f"{'':{wide}}  " + "  ".join(f"{head:>16}" for head in heads)]
        for k, name in enumerate(self.names):
            cells = []
            for head in heads:
                half = self.columns.get(f"{head}_interval")
                cells.append(f"{self.columns[head][k]:.4g}" + ("" if half is None else f" ± {half[k]:.1g}"))
            lines.append(f"{name:{wide}}  " + "  ".join(f"{cell:>16}" for cell in cells))
        words = f"{self.kind} of {self.measure}, {self.members} members"
        if np.isfinite(self.explained):
            words += f", R² {self.explained:.3f}"
        return "\n".join([words, *lines])


def indices_of(study: Study, measure: str | None, at: Mapping[str, Any] | None, seed: int = 0) -> StudyIndices:
    """Indices of a measure with one number for each member."""
    owner = "indices"
    if [dim for dim in at or {} if dim in study.design.dims]:
        raise InputError(f"{owner}: at= takes dimensions of the measure; indices are over all parameters")
    found = selected(owner, study, measure, at)
    y = np.asarray(found.array.values).reshape(len(study.design))
    kind = study.design.kind if study.design.kind in ANALYSES else "regression"
    # of a design whose members belong together every parameter counts, also one that turns out to be constant
    names = (
        [n for n in study.design.names if n in study.design.about["parameters"]] if kind in ANALYSES else varied(study)
    )
    if not names:
        raise InputError(f"{owner}: all members have the same parameters")
    x = np.stack([study.design[name] for name in names], axis=-1)
    whole = ANALYSES[kind][1](len(names)) if kind in ANALYSES else 1
    good = np.isfinite(y).reshape(-1, whole).all(axis=1) if whole else np.full(1, np.isfinite(y).all())
    if not whole and not good.all():
        raise InputError(
            f"{owner}: {int((~np.isfinite(y)).sum())} of {len(y)} members have no {found.name!r}, and design 'fast' "
            "needs all of them; narrow the ranges, or take design 'saltelli'"
        )
    kept = np.repeat(good, whole or len(y))
    if kept.sum() < max(2 * whole, len(names) + 2):
        raise InputError(f"{owner}: too few members have a finite {found.name!r}: {int(kept.sum())} of {len(y)}")
    x, y = x[kept], y[kept]
    if np.ptp(y) <= 1e-14 * np.abs(y).max():
        raise InputError(f"{owner}: {found.name!r} is the same in all members: it depends on no parameter")
    if kind == "regression":
        columns, explained = _regression(x, y)
        return StudyIndices(kind, found.name, tuple(names), columns, len(y), explained)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        columns = ANALYSES[kind][0](unit_problem(len(names)), x, y, seed)
    return StudyIndices(kind, found.name, tuple(names), columns, len(y))


def _saltelli(problem: dict[str, Any], x: np.ndarray, y: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    found = salib("analyze.sobol").analyze(
        problem, y, calc_second_order=False, num_resamples=RESAMPLES, seed=seed
    )  # fmt: skip
    return _renamed(found, first="S1", first_interval="S1_conf", total="ST", total_interval="ST_conf")


def _morris(problem: dict[str, Any], x: np.ndarray, y: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    low, high = x.min(axis=0), x.max(axis=0)
    unit = (x - low) / np.where(high > low, high - low, 1.0)
    found = salib("analyze.morris").analyze(
        problem, unit, y, num_levels=MORRIS_LEVELS, num_resamples=RESAMPLES, seed=seed
    )  # fmt: skip
    return _renamed(found, mu_star="mu_star", mu_star_interval="mu_star_conf", mu="mu", sigma="sigma")


def _fast(problem: dict[str, Any], x: np.ndarray, y: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    found = salib("analyze.fast").analyze(problem, y, M=FAST_HARMONICS, num_resamples=RESAMPLES, seed=seed)
    return _renamed(found, first="S1", first_interval="S1_conf", total="ST", total_interval="ST_conf")


def _renamed(found: Mapping[str, Any], **names: str) -> dict[str, np.ndarray]:
    return {own: np.asarray(found[theirs], dtype=float) for own, theirs in names.items()}


Analysis = Callable[[dict[str, Any], np.ndarray, np.ndarray, int], dict[str, np.ndarray]]
ANALYSES: dict[str, tuple[Analysis, Callable[[int], int]]] = {
    "saltelli": (_saltelli, lambda d: d + 2),
    "morris": (_morris, lambda d: d + 1),
    "fast": (_fast, lambda d: 0),
}
"""By design: how it is analysed, and how many members belong together; 0 for all."""


def _regression(x: np.ndarray, y: np.ndarray) -> tuple[dict[str, np.ndarray], float]:
    """Standardised coefficients of a line through all members, rank correlations, and R squared."""
    from scipy.stats import rankdata

    z, w = _standardised(x), _standardised(y[:, None])[:, 0]
    line = np.linalg.lstsq(z, w, rcond=None)[0]
    explained = 1 - float(((w - z @ line) ** 2).sum() / (w**2).sum())
    ranks = _standardised(rankdata(x, axis=0)).T @ _standardised(rankdata(y)[:, None])[:, 0] / len(y)
    return {"coefficient": line, "rank_correlation": ranks}, explained


def _standardised(x: np.ndarray) -> np.ndarray:
    spread = x.std(axis=0)
    return np.asarray((x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
