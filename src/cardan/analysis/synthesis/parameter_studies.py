"""How a quantity depends on uncertain numbers: Monte-Carlo samples, and Sobol's indices.

`quantity(m)` computes anything with functions of Cardan at a model `m` whose free numbers have a batch of values, so
that all samples are one kernel call. Sobol's indices are SciPy's (`scipy.stats.sobol_indices`: Saltelli's estimators
(Computer Physics Communications 181 (2010) 259-270) on Sobol sequences), which Cardan needs anyway.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, ModelError
from cardan.model.model import Model
from cardan.model.values import array, number, one, shown, whole
from cardan.results.progress import progress_bar
from cardan.structure.assemble import constraint_kernels
from cardan.structure.kernels import tree_kernel
from cardan.structure.rows import row_sizes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

CHUNK = 4096  # samples in one call


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """Samples of a quantity.

    Args:
        names: the uncertain numbers, in the order of columns.
        samples: their values (n, numbers).
        values: the quantity (n, ...) at each, NaN where it could not be computed.
        failed: which samples (n,) could not be computed: the loops cannot be closed there.

    """

    names: tuple[str, ...]
    samples: np.ndarray
    values: np.ndarray
    failed: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """Mean of the samples."""
        return np.asarray(self.values[~self.failed].mean(axis=0))

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of the samples."""
        return np.asarray(self.values[~self.failed].std(axis=0, ddof=1))

    def quantile(self, levels: ArrayLike) -> np.ndarray:
        """Values below which these parts of the samples lie."""
        return np.asarray(np.quantile(self.values[~self.failed], array("quantile", "levels", levels), axis=0))

    @property
    def correlation(self) -> np.ndarray:
        """Spearman's rank correlation (numbers, ...) of each number with the quantity: monotone dependence, -1 to 1."""
        from scipy.stats import rankdata

        x = rankdata(self.samples[~self.failed], axis=0)
        flat = self.values[~self.failed].reshape(len(x), -1)
        y = rankdata(flat, axis=0)
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
        size = np.sqrt((x**2).sum(axis=0)[:, None] * (y**2).sum(axis=0))
        found = np.divide(x.T @ y, size, out=np.zeros(size.shape), where=size > 0)
        return np.asarray(found.reshape(len(self.names), *self.values.shape[1:]))

    def __str__(self) -> str:
        """Mean, deviation and correlation of a quantity of few numbers."""
        n, bad = len(self.samples), int(self.failed.sum())
        lines = [f"{n} samples" + (f", {bad} of which could not be computed" if bad else "")]
        lines += [f"  mean {_text(self.mean)}", f"  standard deviation {_text(self.std)}"]
        lines += [
            f"  rank correlation with {name}: {_text(c)}" for name, c in zip(self.names, self.correlation, strict=True)
        ]
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class SobolIndices:
    """Sobol's indices: the part of a quantity's variance that comes from each uncertain number.

    Args:
        names: the uncertain numbers.
        first: first-order indices (numbers, ...): the part due to a number alone.
        total: total indices (numbers, ...): the part that involves it.
        samples: number of samples; the quantity was computed at (numbers + 2) times as many points.

    """

    names: tuple[str, ...]
    first: np.ndarray
    total: np.ndarray
    samples: int
    result: Any = field(repr=False)

    def interval(self, level: float = 0.95, resamples: int = 99) -> tuple[np.ndarray, np.ndarray]:
        """Confidence intervals (2, numbers, ...) of `first` and of `total`, by bootstrap over the samples."""
        level = number("interval", "level", level, above=0.0, most=1.0)
        found = self.result.bootstrap(confidence_level=level, n_resamples=whole("interval", "resamples", resamples))
        ends = [(x.confidence_interval.low, x.confidence_interval.high) for x in (found.first_order, found.total_order)]
        first, total = (np.stack([_shaped(low, self.first), _shaped(high, self.first)]) for low, high in ends)
        return first, total

    def __str__(self) -> str:
        """A table."""
        rows = [
            f"  {n}: first {_text(a)}, total {_text(b)}"
            for n, a, b in zip(self.names, self.first, self.total, strict=True)
        ]
        return "\n".join(["Sobol indices", *rows])


def monte_carlo(
    model: Model | None, quantity: Callable[..., Any], ranges: Mapping[str, Any], *, q: ArrayLike | None = None,
    hold: str | Sequence[str] | None = None, samples: int = 1024, seed: int = 0, progress: bool | None = None,
) -> MonteCarlo:  # fmt: skip
    """Distribution of a quantity over uncertain numbers.

    Args:
        model: with free numbers. None: `quantity` gets a dict of arrays (n,) by name instead of a model.
        quantity: `quantity(m)` at a model with a batch of n values, result (n, ...); with `q`, `quantity(m, q)`.
        ranges: by name (lowest, highest) of a uniform distribution, or a frozen one of `scipy.stats`. A component of a
            vector has its number in brackets: "B.at[0]".
        q: configuration (nq,): the loops are closed again from it for each sample, and `quantity` gets all of them.
        hold: joint or joints whose coordinates stay as in `q`; the drives of a linkage.
        samples: number of samples, points of a scrambled Sobol sequence.
        seed: of the samples.
        progress: whether to show a progress bar; by default on a terminal, after two seconds.

    """
    owner = "monte_carlo"
    study = _Study(owner, model, quantity, ranges, q, hold)
    n, seed = whole(owner, "samples", samples, least=2), whole(owner, "seed", seed, least=0)
    x = study.spread(n, seed)
    with progress_bar(progress, "Monte-Carlo", 1.0) as report:
        values, failed = study.evaluate(x, report)
    if failed.all():
        raise ModelError(f"{owner}: the loops can be closed at none of {n} samples; narrow the ranges, or give q")
    return MonteCarlo(study.names, x, values, failed)


def sobol_indices(
    model: Model | None, quantity: Callable[..., Any], ranges: Mapping[str, Any], *, q: ArrayLike | None = None,
    hold: str | Sequence[str] | None = None, samples: int = 1024, seed: int = 0, progress: bool | None = None,
) -> SobolIndices:  # fmt: skip
    """Which uncertain numbers a quantity's variance comes from: Sobol's first-order and total indices.

    Arguments are those of `cd.monte_carlo`; `samples` is a power of two, and the quantity is computed at (numbers + 2)
    times as many points.
    """
    from scipy.stats import sobol_indices as indices_of

    owner = "sobol_indices"
    study = _Study(owner, model, quantity, ranges, q, hold)
    n, seed = whole(owner, "samples", samples, least=2), whole(owner, "seed", seed, least=0)
    if n & (n - 1):
        raise InputError(f"{owner}: samples must be a power of two, as 1024, got {n}")
    d = len(study.names)
    x = study.spread(n, seed, 2)
    A, B = x[:, :d], x[:, d:]
    mixed = np.tile(A, (d, 1, 1))
    for k in range(d):
        mixed[k, :, k] = B[:, k]
    with progress_bar(progress, "Sobol", 1.0) as report:
        values, failed = study.evaluate(np.concatenate([A, B, mixed.reshape(-1, d)]), report)
    if failed.any():
        raise ModelError(
            f"{owner}: the loops cannot be closed at {int(failed.sum())} of {len(failed)} samples, so that the "
            "variance is undefined; narrow the ranges (cd.monte_carlo shows where)"
        )
    flat = values.reshape(len(values), -1)
    if (np.ptp(flat, axis=0) <= 1e-14 * np.abs(flat).max(axis=0)).any():
        raise InputError(f"{owner}: the quantity, or a part of it, is the same at all samples: it has no variance")
    parts = {"f_A": flat[:n].T, "f_B": flat[n : 2 * n].T}
    parts["f_AB"] = np.stack([flat[(2 + k) * n : (3 + k) * n].T for k in range(d)])
    found = indices_of(func=parts, n=n)
    own = np.zeros((d, *values.shape[1:]))
    return SobolIndices(study.names, _shaped(found.first_order, own), _shaped(found.total_order, own), n, found)


def _text(x: np.ndarray) -> str:
    return np.array2string(np.asarray(x), precision=5, separator=", ")


def _shaped(x: Any, own: np.ndarray) -> np.ndarray:
    """Indices (outputs, numbers) of SciPy, which leaves out the axis of a single output, in the shape of `own`."""
    return np.asarray(x).reshape(-1, len(own)).T.reshape(own.shape)


class _Study:
    """Uncertain numbers and the quantity."""

    def __init__(self, owner: str, model: Any, quantity: Any, ranges: Any, q: Any, hold: Any) -> None:
        if not callable(quantity):
            raise InputError(f"{owner}: quantity must be a function of a model, got {shown(quantity)}")
        if not isinstance(ranges, Mapping) or not ranges:
            raise InputError(f"{owner}: ranges must be a dict of names to (lowest, highest), got {shown(ranges)}")
        if model is not None and not isinstance(model, Model):
            raise InputError(f"{owner}: model must be a cd.Model or None, got {shown(model)}")
        self.owner, self.model, self.quantity = owner, model, quantity
        self.hold = () if hold is None else (hold,) if isinstance(hold, str) else tuple(hold)
        self.names = tuple(ranges)
        self.distributions = [_distribution(owner, name, x) for name, x in ranges.items()]
        self.columns = []
        if model is not None:
            if not model.parameters:
                raise InputError(f"{owner}: model {model.name!r} has no free numbers; free those in ranges first")
            model.require_one(owner)
            self.columns = [_column(owner, model, name) for name in ranges]
            self.p = model.parameters.nominal if model.values is None else np.asarray(model.values)
        self.q = None if q is None or model is None else one(owner, "q", q, model.nq)

    def spread(self, n: int, seed: int, copies: int = 1) -> np.ndarray:
        """Samples (n, numbers), or several of them side by side."""
        from scipy.stats import qmc

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # numbers of samples that are no power of two
            u = qmc.Sobol(copies * len(self.names), seed=seed).random(n)
        u = np.clip(u, 1e-12, 1 - 1e-12)
        return np.stack([d.ppf(u[:, k]) for k, d in enumerate(self.distributions * copies)], axis=-1)

    def evaluate(self, x: np.ndarray, report: Callable[[float], None]) -> tuple[np.ndarray, np.ndarray]:
        """The quantity (n, ...) at samples (n, numbers), and which samples failed."""
        parts, failures = [], []
        for first in range(0, len(x), CHUNK):
            report(first / len(x))
            values, failed = self._chunk(x[first : first + CHUNK])
            parts.append(values)
            failures.append(failed)
        return np.concatenate(parts), np.concatenate(failures)

    def _chunk(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = len(x)
        if self.model is None:
            return self._checked(self.quantity({name: x[:, k] for k, name in enumerate(self.names)}), n), np.zeros(
                n, bool
            )
        p = np.tile(self.p, (n, 1))
        p[:, self.columns] = x
        parameters = self.model.parameters
        given = {each.name: p[:, parameters.slice_of(each.name)].reshape(n, *each.shape) for each in parameters}
        bound = self.model.at(given)
        if self.q is None:
            return self._checked(self.quantity(bound), n), np.zeros(n, dtype=bool)
        q, closed = close_loops(bound, np.tile(self.q, (n, 1)), self.hold)
        if not closed.any():
            found = self.quantity(self.model._bound(p[:1]), q[:1])
            return np.full((n, *np.shape(found)[1:]), np.nan), ~closed
        good = self._checked(self.quantity(self.model._bound(p[closed]), q[closed]), int(closed.sum()))
        values = np.full((n, *good.shape[1:]), np.nan)
        values[closed] = good
        return values, ~closed

    def _checked(self, found: Any, n: int) -> np.ndarray:
        try:
            values = np.asarray(found, dtype=float)
        except (TypeError, ValueError):
            raise InputError(f"{self.owner}: quantity must return numbers, got {shown(found)}") from None
        if values.ndim == 0 or values.shape[0] != n:
            raise InputError(
                f"{self.owner}: quantity must return an array with one entry for each of {n} samples first, got the "
                f"shape {values.shape}"
            )
        if not np.isfinite(values).all():
            raise InputError(
                f"{self.owner}: quantity is not finite at sample {int(np.argwhere(~np.isfinite(values))[0][0])}"
            )
        return values


def close_loops(model: Model, q: np.ndarray, hold: Sequence[str] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Configurations (n, nq) with every loop closed, for a model with n values, and where that succeeded (n,).

    Damped Gauss-Newton steps, all samples in one kernel call.
    """
    if not model.has_rows:
        return q, np.ones(len(q), dtype=bool)
    if model.depends_on_time:
        raise InputError(f"model {model.name!r} depends on time; leave prescribed motions out")
    evaluate, plus = constraint_kernels(model)[0], tree_kernel(model.unbound, "plus")
    free = np.ones(model.nv, dtype=bool)
    for joint in hold:
        free[model.v_slice(joint)] = False
    size = row_sizes(model)
    gap = np.full(len(q), np.inf)
    for _ in range(30):
        phi, G = evaluate(q)
        phi, J = phi / size, np.asarray(G)[..., free] / size[:, None]
        gap = np.abs(phi).max(axis=-1, initial=0.0)
        if (gap < 1e-14).all():
            break
        Jt = np.swapaxes(J, -1, -2)
        A = Jt @ J
        damping = 0.1 * (phi**2).sum(-1) + 1e-14 * np.trace(A, axis1=-2, axis2=-1)
        step = np.zeros((len(q), model.nv))
        step[:, free] = -np.linalg.solve(A + damping[:, None, None] * np.eye(A.shape[-1]), Jt @ phi[..., None])[..., 0]
        step *= np.minimum(1.0, 0.5 / np.maximum(np.abs(step).max(axis=-1, keepdims=True), 1e-300))
        q = np.where((gap < 1e-14)[:, None], q, np.asarray(plus(q, step)))
    return q, np.asarray(gap < 1e-10)


def _distribution(owner: str, name: str, given: Any) -> Any:
    """A frozen distribution with `ppf`."""
    if callable(getattr(given, "ppf", None)):
        return given
    from scipy.stats import uniform

    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InputError(
            f"{owner}: range of {name!r} must be (lowest, highest) or a distribution of scipy.stats, got {shown(given)}"
        )
    low, high = (number(owner, f"range of {name!r}", x) for x in given)
    if not low < high:
        raise InputError(f"{owner}: range of {name!r} must be (lowest, highest), got {shown(given)}")
    return uniform(low, high - low)


def _column(owner: str, model: Model, name: str) -> int:
    """Where a number, or a component of a vector, is in `p`."""
    plain, bracket, rest = name.partition("[")
    parameter = model.parameters[plain]
    at = model.parameters.slice_of(plain)
    if not bracket:
        if parameter.size != 1:
            raise InputError(f"{owner}: {name!r} has {parameter.size} numbers; name one of them, as in '{name}[0]'")
        return at.start
    index = rest.rstrip("]")
    if not index.isdigit() or int(index) >= parameter.size:
        raise InputError(f"{owner}: {name!r}: its components are numbered 0 to {parameter.size - 1}")
    return at.start + int(index)
