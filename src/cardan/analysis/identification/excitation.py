"""Exciting motions: Fourier series of the driven coordinates that make the base regressor well conditioned.

    q(t) = c + s sum_k a_k sin(k w t) - b_k cos(k w t),    w = 2 pi / duration

A motion that breaks a limit of position, rate or acceleration is not looked at: `s` and `c` are chosen for each motion
so that it keeps them all. Many motions are evaluated in one call of the compiled regressor; the best of them give the
distribution from which the next are drawn (the cross-entropy method).

J. Swevers et al., Optimal robot excitation and identification, IEEE Transactions on Robotics and Automation 13, 1997.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.identification.base_parameters import BaseParameters, base_parameters
from cardan.analysis.identification.driven_motion import coordinate_places, start_of, whole_motion
from cardan.analysis.identification.motions import driven_rates, freedoms
from cardan.analysis.identification.regressor import regressor
from cardan.errors import InputError
from cardan.machines.waiting import said
from cardan.model.model import Model
from cardan.model.values import counted, floats, number, shown, whole
from cardan.results.figure import FigureOutput, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

RANGE = 1.0  # rad or m to either side of the start, where no limits are known
ELITE = 0.15  # part of the motions from which the next are drawn
CHECKED = 4  # limits are kept at this many times the samples


@dataclass(frozen=True, eq=False, repr=False)
class Excitation:
    """A periodic motion of the driven coordinates, with the whole mechanism's at the samples.

    `t` (samples,) s, `q` (samples, nq), `v`, `a` (samples, nv); `condition` of the base regressor over the samples,
    and `condition_at_random`, the median of the motions that were tried first. `mean` (driven,), `sine` and `cosine`
    (driven, harmonics) are the series; `driven` are names of coordinates.
    """

    model: Model
    driven: tuple[str, ...]
    duration: float
    mean: NDArray[Any]
    sine: NDArray[Any]
    cosine: NDArray[Any]
    t: NDArray[Any]
    q: NDArray[Any]
    v: NDArray[Any]
    a: NDArray[Any]
    condition: float
    condition_at_random: float
    base: BaseParameters

    def at(self, t: ArrayLike) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Driven coordinates, rates and accelerations (..., driven) at times `t` (...), s."""
        return _series(np.asarray(t, dtype=float), self.duration, self.mean, self.sine, self.cosine)

    def motion(self, t: ArrayLike) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """`q` (n, nq), `v`, `a` (n, nv) of the whole mechanism at times `t` (n,) in order, s."""
        times = np.atleast_1d(np.asarray(t, dtype=float))
        places = [self.model.coordinate_names.index(name) for name in self.driven]
        q, v, a, good = whole_motion(self.model, places, *(x[None] for x in self.at(times)))
        if not good.all():
            raise InputError("excitation: the loops cannot be followed at these times; take more of them, in order")
        return q[0], v[0], a[0]

    def plot(self, path: Any = None, *, size: Any = None, overwrite: bool = False) -> Figure:
        """Draw the driven coordinates over time; with `path`, write the figure there."""
        output = FigureOutput(size, path, overwrite)
        figure = new_figure(*(output.size or (5.2, 3.2)))
        with style():
            at = figure.subplots()
            t = np.linspace(0, self.duration, 400)
            for name, x in zip(self.driven, self.at(t)[0].T, strict=True):
                at.plot(t, x, label=name)
            at.set_xlabel("t (s)")
            at.set_ylabel("q (rad, m)")
            at.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        return output.write(figure)

    def __str__(self) -> str:
        """What it moves, and how well it is conditioned."""
        return (
            f"excitation of {', '.join(self.driven)} over {self.duration:g} s: condition {self.condition:.4g} of "
            f"{counted(len(self.base), 'base parameter')}, {self.condition_at_random:.4g} at random"
        )

    __repr__ = __str__


@said("shaping the exciting motion")
def excitation(
    model: Model, duration: float = 10.0, *, driven: Sequence[str] | None = None,
    parameters: Sequence[str] | None = None, position: Any = None, rate: Any = None, acceleration: Any = None,
    harmonics: int = 5, samples: int = 60, starts: int = 64, generations: int = 15, seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Excitation:  # fmt: skip
    """Find a periodic motion of the driven coordinates that tells the base parameters well.

    Args:
        model: the mechanism. Loops are closed with the driven coordinates as they move from the model's start.
        duration: period, s.
        driven: the joints that are driven: all of a tree, as many as there are freedoms with loops.
        parameters: bodies and elements whose numbers are looked for, as in `cd.regressor`.
        position: (lower, upper) of the driven coordinates, rad and m, each a number or (driven,); by default the
            joints' own limits, else 1 rad or m to either side of the start.
        rate: largest rates, rad/s and m/s, a number or (driven,); by default the joints' own, else none.
        acceleration: largest accelerations, rad/s^2 and m/s^2, a number or (driven,); none by default.
        harmonics: number of frequencies.
        samples: times at which the regressor is taken.
        starts: motions that are tried at once.
        generations: how often.
        seed: of the motions.
        progress: called with how far it is, 0 to 1.

    Returns:
        A `cd.Excitation`.

    """
    owner = "excitation"
    if not isinstance(model, Model):
        raise InputError(f"{owner}: model must be a cd.Model, got {type(model).__name__}; use build() first")
    duration = number(owner, "duration", duration, "of seconds", above=0.0)
    for what, value, least in (("harmonics", harmonics, 1), ("samples", samples, 2), ("starts", starts, 8),
                               ("generations", generations, 1), ("seed", seed, 0)):  # fmt: skip
        whole(owner, what, value, least=least)
    places = _driven(owner, model, driven)
    names = tuple(model.coordinate_names[k] for k in places)
    limits = _limits(owner, model, places, position, rate, acceleration)
    base = base_parameters(model, driven=None if driven is None else names, parameters=parameters)
    if samples * len(places) < len(base):
        raise InputError(
            f"{owner}: {samples} samples are too few for {counted(len(base), 'base parameter')}; take more"
        )
    t = np.linspace(0.0, duration, samples, endpoint=False)
    rng = np.random.default_rng(seed)
    size = len(places) * (2 * harmonics + 2)
    middle, spread = np.zeros(size), np.ones(size)
    best: tuple[float, NDArray[Any]] = (np.inf, middle)
    at_random = np.inf

    def conditions(x: NDArray[Any]) -> NDArray[Any]:
        series = _kept(x, len(places), harmonics, duration, samples, limits)
        q, v, a, good = whole_motion(model, places, *_series(t, duration, *series))
        found = np.full(len(x), np.inf)
        if good.any():
            W = regressor(
                model, q[good], v[good], a[good], driven=None if driven is None else names, parameters=parameters
            ).matrix
            W = base.regressor(W).reshape(int(good.sum()), -1, len(base))
            s = np.linalg.svd(W, compute_uv=False)
            found[good] = s[:, 0] / np.maximum(s[:, -1], 1e-300)
        return found

    for k in range(generations):
        x = middle + spread * rng.standard_normal((starts, size))
        x[0] = best[1] if k else x[0]
        c = conditions(x)
        order = np.argsort(c)
        if k == 0:
            at_random = float(np.median(c[np.isfinite(c)])) if np.isfinite(c).any() else np.inf
        if c[order[0]] < best[0]:
            best = (float(c[order[0]]), x[order[0]])
        elite = x[order[: max(int(ELITE * starts), 3)]]
        elite = elite[np.isfinite(c[order[: len(elite)]])]
        if len(elite) > 1:
            middle = 0.3 * middle + 0.7 * elite.mean(axis=0)
            spread = 0.3 * spread + 0.7 * np.maximum(elite.std(axis=0), 0.02)
        if progress is not None:
            progress((k + 1) / generations)
    if not np.isfinite(best[0]):
        raise InputError(
            f"{owner}: none of {starts * generations} motions of {', '.join(names)} could be followed: they leave the "
            "range in which the loops close, or pass dead points; give narrower limits (position=)"
        )
    mean, sine, cosine = (x[0] for x in _kept(best[1][None], len(places), harmonics, duration, samples, limits))
    q, v, a, _ = whole_motion(model, places, *(x[None] for x in _series(t, duration, mean, sine, cosine)))
    return Excitation(
        model, names, duration, mean, sine, cosine, t, q[0], v[0], a[0], best[0], at_random, base
    )  # fmt: skip


def _driven(owner: str, model: Model, driven: Sequence[str] | None) -> list[int]:
    if any(x.is_at_rate_level for x in model.constraints) or model.depends_on_time:
        raise InputError(f"{owner}: model {model.name!r} has constraints on rates or depends on time; move it yourself")
    if driven is None and model.has_rows:
        raise InputError(
            f"{owner}: model {model.name!r} has loops or couplings; say which joints are driven, e.g. "
            f"driven=[{model.coordinate_names[0]!r}]"
        )
    places = list(range(model.nv)) if driven is None else driven_rates(owner, model, driven)
    count = freedoms(model)
    if len(places) != count:
        raise InputError(
            f"{owner}: model {model.name!r} has {counted(count, 'freedom')}, and {len(places)} driven coordinates; a "
            "motion is prescribed for each freedom"
        )
    known = coordinate_places(model)
    for k in places:
        if k not in known:
            raise InputError(
                f"{owner}: {model.coordinate_names[k]!r} is a rate of a joint with a quaternion, which has no Fourier "
                "series; move it yourself and look at np.linalg.cond of the base regressor"
            )
    return places


@dataclass(frozen=True, eq=False)
class _Limits:
    """Lower and upper positions, rates, accelerations (driven,)."""

    lower: NDArray[Any]
    upper: NDArray[Any]
    rate: NDArray[Any]
    acceleration: NDArray[Any]


def _limits(owner: str, model: Model, places: list[int], position: Any, rate: Any, acceleration: Any) -> _Limits:
    start, at = start_of(model), coordinate_places(model)
    middle = start[[at[k] for k in places]]
    lower, upper, speed = middle - RANGE, middle + RANGE, np.full(len(places), np.inf)
    joints = {k: model.joints[link.joint].data for link in model.tree.links for k in range(link.v.start, link.v.stop)}
    for i, k in enumerate(places):
        data = joints[k]
        if data.lower is not None and data.upper is not None and data.upper > data.lower:
            lower[i], upper[i] = data.lower, data.upper
        if data.velocity:
            speed[i] = data.velocity
    if position is not None:
        try:
            first, last = position
        except (TypeError, ValueError):
            raise InputError(f"{owner}: position must be (lower, upper), got {shown(position)}") from None
        lower, upper = _each(owner, "position", first, len(places)), _each(owner, "position", last, len(places))
        if not (upper > lower).all():
            raise InputError(f"{owner}: position: the upper limit must be above the lower one, got {shown(position)}")
    if rate is not None:
        speed = _each(owner, "rate", rate, len(places), positive=True)
    most = np.full(len(places), np.inf)
    if acceleration is not None:
        most = _each(owner, "acceleration", acceleration, len(places), positive=True)
    return _Limits(lower, upper, speed, most)


def _each(owner: str, what: str, value: Any, n: int, positive: bool = False) -> NDArray[Any]:
    try:
        found = floats(value)
    except TypeError:
        raise InputError(f"{owner}: {what} must be numbers, got {shown(value)}") from None
    if found.shape not in ((), (n,)) or not np.isfinite(found).all() or (positive and not (found > 0).all()):
        rule = "positive numbers" if positive else "finite numbers"
        raise InputError(f"{owner}: {what} must be {rule}, one or {n} of them, got {shown(value)}")
    return np.broadcast_to(found, n)


def _kept(
    x: NDArray[Any], n: int, harmonics: int, duration: float, samples: int, limits: _Limits
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Series (m, n), (m, n, harmonics) twice within the limits from free numbers (m, n (2 harmonics + 2))."""
    x = x.reshape(len(x), n, 2 * harmonics + 2)
    k = np.arange(1, harmonics + 1)
    sine, cosine = x[..., :harmonics] / k, x[..., harmonics : 2 * harmonics] / k
    t = np.linspace(0, duration, CHECKED * max(samples, 8 * harmonics), endpoint=False)
    q, v, a = _series(t, duration, np.zeros(x.shape[:2]), sine, cosine)
    low, high = q.min(axis=1), q.max(axis=1)
    fraction = 1 / (1 + np.exp(-x[..., -1] - 3.0))  # of the largest size, most of it by default
    room = limits.upper - limits.lower
    with np.errstate(divide="ignore"):
        most = np.minimum(room / (high - low), limits.rate / np.abs(v).max(axis=1))
        most = np.minimum(most, limits.acceleration / np.abs(a).max(axis=1))
    size = 0.98 * fraction * most  # a little less: between the times that are looked at it is not larger
    low, high = limits.lower - size * low, limits.upper - size * high
    mean = low + (high - low) / (1 + np.exp(-x[..., -2]))
    return mean, size[..., None] * sine, size[..., None] * cosine


def _series(
    t: NDArray[Any], duration: float, mean: NDArray[Any], sine: NDArray[Any], cosine: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """`q`, `v`, `a` (..., times, driven) of series (..., driven), (..., driven, harmonics) at `t` (times,)."""
    w = 2 * np.pi / duration * np.arange(1, sine.shape[-1] + 1)
    s, c = np.sin(t[..., None] * w), np.cos(t[..., None] * w)
    up, across = np.swapaxes(sine, -1, -2), np.swapaxes(cosine, -1, -2)
    w = w[:, None]
    return (
        mean[..., None, :] + s @ up - c @ across,
        c @ (w * up) + s @ (w * across),
        -s @ (w**2 * up) + c @ (w**2 * across),
    )
