"""`cd.identify`: the parameters of a model from measured forces and motions, with their uncertainty.

Forces. `W theta = y` is linear. What data can tell are the base parameters `beta = B theta` of the measured motion;
they are found by weighted least squares, with the covariance `C = (W_1^T W_1)^-1` of rows in units of their noise. Of
the parameters with this `beta` those nearest to the nominal ones are taken. If no mass distribution has them, the
ones that are and fit best are found: the least `|C^-1/2 (B theta - beta)|` with positive pseudo-inertias.

Motions. With `fit="motion"` forces are known and accelerations are measured with noise. `a - forward_dynamics(theta)`
is not linear; `beta` is found by Gauss-Newton steps with exact derivatives, the rest is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.identification.base_parameters import BaseParameters, base_of, base_parameters
from cardan.analysis.identification.motions import driven_rates
from cardan.analysis.identification.nearest_physical import nearest_physical
from cardan.analysis.identification.plots import plot_estimates
from cardan.analysis.identification.pseudo_inertia import is_consistent
from cardan.analysis.identification.regressor import Regressor, regressor, require_linear
from cardan.analysis.identification.standard_parameters import (
    StandardParameters,
    derivative_of_central,
    standard_parameters,
)
from cardan.analysis.identification.tall_qr import least_squares
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.formulation import Formulation
from cardan.functions.dynamics import forward_dynamics
from cardan.machines.waiting import said
from cardan.model.model import Model
from cardan.model.values import batch, counted, number
from cardan.structure.assemble import constraint_kernels
from cardan.structure.kernels import time_argument
from cardan.structure.rounding import warn_outside
from cardan.structure.rows import row_sizes

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

TOLD_APART = 1e-7  # least part of a column of the data that others do not explain
OPEN, OPEN_RATE = 1e-3, 1e-2  # gaps of loops (rad, or parts of the size) and parts of rates that are more than noise
ANCHOR = 1e-3  # weight of the nominal values where data say nothing, in units of the noise


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """Identified parameters.

    `theta` (parameters,) with `names` and `units`; `model` has them as its numbers. `base` are the combinations that
    the data tell, `base_values` (base,) their estimates from the data alone, `base_covariance` (base, base).
    `covariance` (parameters, parameters) is that of `theta` where a `prior` was given; else parameters that the data
    cannot tell apart have no finite one, and `std` (parameters,) is inf there. `residual` (rows,) is the root of the
    mean square of what is left in each row `rows`, and `noise` (rows,) what it was weighted with. `told` are sentences
    about what the data do not say. `physical` says whether every body's pseudo-inertia is positive definite.
    """

    theta: NDArray[Any]
    names: tuple[str, ...]
    units: tuple[str, ...]
    model: Model
    base: BaseParameters
    base_values: NDArray[Any]
    base_covariance: NDArray[Any]
    residual: NDArray[Any]
    noise: NDArray[Any]
    rows: tuple[str, ...]
    samples: int
    physical: bool
    told: tuple[str, ...] = ()
    nominal: NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    covariance: NDArray[Any] | None = None

    @property
    def base_std(self) -> NDArray[Any]:
        """Standard deviations (base,) of the base parameters."""
        return np.sqrt(np.diag(self.base_covariance))

    @property
    def std(self) -> NDArray[Any]:
        """Standard deviations (parameters,); inf for those that the data tell only in combination, or not at all."""
        return np.array([self._spread(row) for row in np.eye(len(self.names))])

    def __getitem__(self, name: str) -> float:
        """Value of one parameter."""
        return float(self.theta[self._place(name)])

    def interval(self, of: str | Mapping[str, float], level: float = 0.95) -> tuple[float, float]:
        """Confidence interval of a parameter or of a combination of them, `{name: coefficient}`.

        It is infinite where the data cannot tell the combination.
        """
        from scipy.stats import norm

        number("interval", "level", level, above=0.0, most=1.0)
        row = np.zeros(len(self.names))
        for name, x in ({of: 1.0} if isinstance(of, str) else of).items():
            row[self._place(name)] = x
        half = float(norm.ppf(0.5 + level / 2)) * self._spread(row)
        middle = float(row @ self.theta)
        return middle - half, middle + half

    def base_intervals(self, level: float = 0.95) -> NDArray[Any]:
        """Confidence intervals (base, 2) of the base parameters."""
        from scipy.stats import norm

        number("base_intervals", "level", level, above=0.0, most=1.0)
        half = float(norm.ppf(0.5 + level / 2)) * self.base_std
        return np.stack([self.base_values - half, self.base_values + half], axis=-1)

    def plot(
        self, path: Any = None, *, truth: ArrayLike | None = None, size: Any = None, overwrite: bool = False
    ) -> Figure:
        """Draw base parameters with intervals of 95 %, nominal values, and with `truth` (parameters,) the true ones.

        Each is divided by its largest value in the figure. With `path` the figure is written there.
        """
        true = None if truth is None else self.base.of(batch("plot", "truth", truth, len(self.names)))
        return plot_estimates(self, true, size, path, overwrite)

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise UnknownNameError(f"identification: there is no parameter {name!r}{nearest(str(name), self.names)}")
        return self.names.index(name)

    def _spread(self, row: NDArray[Any]) -> float:
        """Standard deviation of `row @ theta`."""
        if self.covariance is not None:
            return float(np.sqrt(max(row @ self.covariance @ row, 0.0)))
        B = self.base.combinations
        weights = row[list(self.base.columns)]  # row = weights B, if it is a combination of the base parameters
        if np.abs(weights @ B - row).max(initial=0.0) > 1e-9 * np.abs(row).max(initial=0.0):
            return float("inf")
        return float(np.sqrt(max(weights @ self.base_covariance @ weights, 0.0)))

    def __str__(self) -> str:
        """Base parameters with their intervals, then what the data do not say."""
        nominal = self.base.of(self.nominal)
        rows = [("base parameter", "estimate", "+- 95 %", "nominal", "")]
        for k, name in enumerate(self.base.names):
            half = 1.96 * self.base_std[k]
            unit = self.units[self.base.columns[k]]
            rows.append((name, f"{self.base_values[k]:.6g}", f"{half:.2g}", f"{nominal[k]:.6g}", unit))
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = [
            f"{row[0].ljust(widths[0])}  {'  '.join(row[k].rjust(widths[k]) for k in (1, 2, 3))}  {row[4]}".rstrip()
            for row in rows
        ]
        left = ", ".join(f"{name} {r:.3g}" for name, r in zip(self.rows, self.residual, strict=True))
        return "\n".join([*lines, f"residual of {counted(self.samples, 'sample')}: {left}", *self.told])

    __repr__ = __str__


@said("estimating the parameters")
def identify(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, *, driven: Sequence[str] | None = None,
    parameters: Sequence[str] | None = None, fit: str = "torque", noise: ArrayLike | None = None,
    prior: float | None = None, physical: bool = True, wrenches: ArrayLike | None = None, t: ArrayLike = 0.0,
    formulation: str | Formulation = "spatial",
) -> Identification:  # fmt: skip
    """Identify the parameters of a model from measurements, physically consistent, with confidence intervals.

    Args:
        model: the mechanism with its nominal numbers.
        q: configurations (..., nq), rad and m; with loops consistent. All batch axes are samples.
        v: rates (..., nv), rad/s and m/s.
        a: accelerations (..., nv), rad/s^2 and m/s^2.
        tau: joint forces (..., nv), N m and N; or (..., driven), those of the driven coordinates alone.
        driven: the joints that are driven; needed with loops. No force acts along other joints.
        parameters: bodies and elements whose numbers are looked for, as in `cd.regressor`; all others are known.
        fit: "torque": forces have noise; "motion": accelerations have noise, and forces are known.
        noise: standard deviation of `tau` (of `a` for a motion): one, or one for each coordinate that is measured. By
            default it is found from the residuals, for each row by itself.
        prior: relative uncertainty of the nominal numbers, such as 0.3; they then count as measurements. None: they
            only fill in what the data do not say.
        physical: whether every body must have a pseudo-inertia that is positive definite.
        wrenches: known wrenches (..., nb, 6) on the bodies, N m and N.
        t: time (...), s.
        formulation: whose equations are used.

    Returns:
        A `cd.Identification`; print it. Its `model` has the identified numbers.

    """
    owner = "identify"
    standard = standard_parameters(owner, model, parameters)
    require_linear(owner, model)
    if fit not in ("torque", "motion"):
        raise InputError(f"{owner}: fit must be 'torque' or 'motion', got {fit!r}")
    if model.batch:
        raise InputError(f"{owner}: values of free parameters are a batch; take one with model.one_of(index)")
    if prior is not None:
        prior = number(owner, "prior", prior, above=0.0)
    data = _data(owner, model, q, v, a, tau, driven, wrenches, t)
    _warn_of_open_loops(owner, model, data)
    task = _Task(model, standard, data, driven, formulation, prior, physical)
    return task.from_motion(noise) if fit == "motion" else task.from_torque(noise)


@dataclass(frozen=True, eq=False)
class _Data:
    """Samples: `q` (n, nq), `v`, `a`, `tau` (n, nv), `wrenches` (n, nb, 6), `t` (n,); `active` (nv,) are driven."""

    q: NDArray[Any]
    v: NDArray[Any]
    a: NDArray[Any]
    tau: NDArray[Any]
    wrenches: NDArray[Any] | None
    t: NDArray[Any]
    active: NDArray[Any]


def _data(
    owner: str, model: Model, q: Any, v: Any, a: Any, tau: Any, driven: Sequence[str] | None, wrenches: Any, t: Any
) -> _Data:
    if driven is None and model.has_rows:
        raise InputError(
            f"{owner}: model {model.name!r} has loops or couplings; say which joints are driven, e.g. "
            f"driven=[{model.coordinate_names[0]!r}]"
        )
    places = list(range(model.nv)) if driven is None else driven_rates(owner, model, driven)
    given = np.asarray(tau)
    short = given.ndim > 0 and given.shape[-1] == len(places) != model.nv
    forces = batch(owner, "tau", tau, len(places) if short else model.nv)
    if short:
        full = np.zeros((*forces.shape[:-1], model.nv))
        full[..., places] = forces
        forces = full
    parts = [batch(owner, "q", q, model.nq), batch(owner, "v", v, model.nv), batch(owner, "a", a, model.nv), forces]
    times = batch(owner, "t", t)
    loads = None if wrenches is None else batch(owner, "wrenches", wrenches, model.nb, 6)
    shapes = [x.shape[:-1] for x in parts] + [times.shape] + ([] if loads is None else [loads.shape[:-2]])
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        told = ", ".join(f"{n} {x.shape}" for n, x in zip(("q", "v", "a", "tau"), parts, strict=True))
        raise InputError(f"{owner}: the samples do not fit together: {told}") from None
    n = int(np.prod(shape))
    if n == 0:
        raise InputError(f"{owner}: there are no samples")
    flat = [np.broadcast_to(x, (*shape, x.shape[-1])).reshape(n, x.shape[-1]) for x in parts]
    active = np.zeros(model.nv, dtype=bool)
    active[places] = True
    idle = np.abs(flat[3][:, ~active]).max(initial=0.0)
    if idle > 0:
        raise InputError(
            f"{owner}: tau is up to {idle:g} along joints that are not driven; name them as driven, or leave it out"
        )
    loads = None if loads is None else np.broadcast_to(loads, (*shape, model.nb, 6)).reshape(n, model.nb, 6)
    return _Data(flat[0], flat[1], flat[2], flat[3], loads, np.broadcast_to(times, shape).reshape(n), active)


def _warn_of_open_loops(owner: str, model: Model, data: _Data) -> None:
    """Warn of samples whose configurations or rates the constraints do not allow: forces along them mean nothing."""
    if not model.has_rows:
        return
    position, rate = constraint_kernels(model)
    time, size = time_argument(model, data.t), row_sizes(model)
    phi = np.abs(position(data.q, *time)[0]) / size
    if phi.max(initial=0.0) > OPEN:
        n, k = divmod(int(np.argmax(phi)), phi.shape[1])
        warn_outside(
            f"{owner}: sample {n} leaves {model.rows[k].owner} open by {phi[n, k] * size[k]:.2g} {model.rows[k].unit}, "
            "so that estimates are wrong; close the loops with cd.assemble, or check the order of the columns in q"
        )
    J, beta = rate(data.q, *time)
    left = np.abs((J @ data.v[..., None])[..., 0] - beta)
    whole = (np.abs(J) @ np.abs(data.v)[..., None])[..., 0] + np.abs(beta)
    part = left.max(axis=0) / np.maximum(whole.max(axis=0), 1e-300)
    if part.max(initial=0.0) > OPEN_RATE and phi.max(initial=0.0) <= OPEN:
        k = int(np.argmax(part))
        warn_outside(
            f"{owner}: sample {int(np.argmax(left[:, k]))} has rates v that {model.rows[k].owner} does not allow, off "
            f"by {100 * part[k]:.2g} %, so that estimates are wrong; cd.assemble(model, q, v) gives rates that it does"
        )


class _Task:
    """One identification: a model, its parameters and data."""

    def __init__(
        self, model: Model, standard: StandardParameters, data: _Data, driven: Sequence[str] | None,
        formulation: str | Formulation, prior: float | None, physical: bool,
    ) -> None:  # fmt: skip
        self.model, self.standard, self.data, self.driven = model, standard, data, driven
        self.formulation, self.prior, self.physical = formulation, prior, physical
        self.nominal = standard.of(model)
        self.scale = _scales(standard, self.nominal)

    # Forces.

    def from_torque(self, noise: Any) -> Identification:
        d = self.data
        R = self._regressor(d.a)
        y = R.project(d.tau) - R.rest
        weights, names = self._whitened(R, noise)
        W, target = _rows(weights @ R.matrix), (weights @ y[..., None]).reshape(-1)
        base = self._told_apart(W, noise is None)
        columns = W[:, list(base.columns)]
        estimated = noise is None
        size = max(float(np.abs(target).max()), float(np.abs(W * self.nominal).max()))
        spread = np.ones(len(names))
        for _ in range(3 if estimated else 1):
            row = np.tile(1 / spread, len(d.q))
            beta, C = least_squares(columns * row[:, None], target * row)
            left = (target - columns @ beta).reshape(len(d.q), -1)
            if estimated:
                spread = self._spread_of(left, R, len(base), size)
        theta = self._completed(base, beta, C)
        left = y - np.einsum("nrp,p->nr", R.matrix, theta)
        sigma = np.median(1 / np.maximum(np.abs(np.einsum("nrr->nr", weights)), 1e-300), axis=0) * spread
        return self._result(base, beta, C, theta, left, sigma, names)

    def _regressor(self, a: NDArray[Any]) -> Regressor:
        d = self.data
        return regressor(
            self.model, d.q, d.v, a, driven=self.driven, wrenches=d.wrenches, t=d.t, formulation=self.formulation,
            parameters=(*(self.model.bodies[b].name for b in self.standard.bodies), *self.standard.numbers),
        )  # fmt: skip

    def _whitened(self, R: Regressor, noise: Any) -> tuple[NDArray[Any], tuple[str, ...]]:
        """Matrices (n, rows, rows) that bring the noise of the rows to units, and names of the rows."""
        sigma = self._noise(noise)
        n = len(self.data.q)
        if R.motions is None:
            return np.broadcast_to(np.diag(1 / sigma), (n, len(sigma), len(sigma))), R.rows
        variance = np.where(self.data.active, sigma**2, 0.0)
        S = np.einsum("nvr,v,nvs->nrs", R.motions, variance, R.motions)
        size = np.einsum("nrr->n", S)[:, None, None] / S.shape[-1]
        S = S + 1e-6 * np.where(size > 0, size, 1.0) * np.eye(S.shape[-1])  # rows that no drive enters are exact
        if R.rows == tuple(np.array(self.model.coordinate_names)[self.data.active]) or S.shape[-1] == 1:
            S = np.einsum("nrr->nr", S)[..., None] * np.eye(S.shape[-1]) / (1 + 1e-6)
        return np.linalg.inv(np.linalg.cholesky(S)), R.rows

    def _noise(self, noise: Any) -> NDArray[Any]:
        """Standard deviations (nv,) of what is measured; ones if they are to be found."""
        nv, active = self.model.nv, self.data.active
        if noise is None:
            return np.ones(nv)
        given = batch("identify", "noise", noise)
        if given.ndim > 1 or given.shape not in ((), (nv,), (int(active.sum()),)):
            raise InputError(
                f"identify: noise must be one number or one for each of {int(active.sum())} measured coordinates, got "
                f"an array {given.shape}"
            )
        if not (given > 0).all():
            raise InputError(f"identify: noise must be above 0, got {given.min():g}; leave it out to have it estimated")
        found = np.ones(nv)
        found[active if given.shape != (nv,) else slice(None)] = given
        return found

    def _spread_of(self, left: NDArray[Any], R: Regressor, count: int, size: float) -> NDArray[Any]:
        """Noise of the rows in their units, from what is left (n, rows); at least rounding of forces of this size."""
        n, rows = left.shape
        if R.motions is not None and rows != int(self.data.active.sum()):
            left = np.broadcast_to(np.sqrt((left**2).mean(axis=1, keepdims=True)), left.shape)
        freedom = 1 - count / (n * rows)
        return np.maximum(np.sqrt((left**2).mean(axis=0) / freedom), 1e-12 * max(size, 1e-100))

    # Motions.

    def from_motion(self, noise: Any) -> Identification:
        d, model = self.data, self.model
        sigma = self._noise_of_motion(noise)
        first = forward_dynamics(
            model, d.q, d.v, d.tau, wrenches=d.wrenches, t=d.t, formulation=self.formulation
        )  # fmt: skip
        base = self._told_apart(_rows(self._regressor(first).matrix), noise is None)
        beta = base.of(self.nominal)
        for _ in range(3 if noise is None else 1):
            beta, left, D = self._gauss_newton(base, beta, sigma)
            if noise is None:
                freedom = 1 - len(base) / left.size
                found = np.sqrt((left**2).mean(axis=0) / freedom)
                sigma = np.maximum(found, 1e-12 * max(1e-300, float(np.abs(d.a).max())))
        C = least_squares(D / np.tile(sigma, len(d.q))[:, None], left.ravel())[1]
        theta = self._completed(base, beta, C)
        left = self._motion_residual(theta)[0] if self._has_masses(theta) else left
        return self._result(base, beta, C, theta, left, sigma, model.coordinate_names)

    def _gauss_newton(
        self, base: BaseParameters, beta: NDArray[Any], sigma: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Base parameters with the least residual, what is left (n, nv), and its derivatives (n nv, base)."""
        weights = np.tile(1 / sigma, len(self.data.q))
        left, D = self._motion_residual(self._with_base(base, beta))
        cost = float(((left / sigma) ** 2).sum())
        for _ in range(50):
            columns = D[:, list(base.columns)]
            step = least_squares(columns * weights[:, None], -left.ravel() * weights)[0]
            length = 1.0
            while length > 1e-4:
                there = beta + length * step
                new, by = self._motion_residual(self._with_base(base, there))
                new_cost = float(((new / sigma) ** 2).sum())
                if new_cost < cost or not np.isfinite(cost):
                    break
                length *= 0.5
            else:
                break
            done = np.abs(step).max() <= 1e-13 * np.abs(beta).max() or cost - new_cost <= 1e-15 * cost
            beta, left, D, cost = there, new, by, new_cost
            if done:
                break
        return beta, left, D[:, list(base.columns)]

    def _with_base(self, base: BaseParameters, beta: NDArray[Any]) -> NDArray[Any]:
        """Some parameters with these base parameters, nearest to the nominal ones, all masses above zero."""
        B, s = base.combinations, self.scale
        theta = self.nominal + s * (np.linalg.pinv(B * s) @ (beta - base.of(self.nominal)))
        if not self._has_masses(theta):
            theta = self._nearest_physical(base, theta, 1e-6 * np.diag(B**2 @ s**2))
        return np.asarray(theta)

    def _has_masses(self, theta: NDArray[Any]) -> bool:
        return bool((theta[: 10 * len(self.standard.bodies) : 10] > 0).all())

    def _noise_of_motion(self, noise: Any) -> NDArray[Any]:
        """Standard deviations (nv,) of the accelerations; ones if they are to be found."""
        if noise is None:
            return np.ones(self.model.nv)
        given = batch("identify", "noise", noise)
        if given.shape not in ((), (self.model.nv,)) or not (given > 0).all():
            raise InputError(f"identify: noise of accelerations must be above 0, one or {self.model.nv} of them")
        return np.broadcast_to(given, self.model.nv)

    def _motion_residual(self, theta: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """`a - forward_dynamics` (n, nv), and its derivatives by the parameters (n nv, parameters)."""
        d, at = self.data, self.standard.placed(self.model, theta)
        found = forward_dynamics(
            at, d.q, d.v, d.tau, wrenches=d.wrenches, t=d.t, formulation=self.formulation, by="parameters"
        )
        by = np.array(found["parameters"][..., self.standard.columns])
        for k in range(len(self.standard.bodies)):
            own = slice(10 * k, 10 * k + 10)
            by[..., own] = by[..., own] @ derivative_of_central(theta[own])
        return d.a - found.value, -by.reshape(-1, len(theta))

    # Both.

    def _told_apart(self, W: NDArray[Any], estimated: bool) -> BaseParameters:
        """Base parameters of the data."""
        found = base_of(self.model, self.standard, W, TOLD_APART)
        if not len(found):
            raise InputError("identify: the data depend on none of the parameters; does the mechanism move?")
        if W.shape[0] <= len(found) and estimated:
            raise InputError(
                f"identify: {counted(W.shape[0], 'equation')} for {counted(len(found), 'base parameter')} are too few: "
                "nothing is left to see the noise by; measure more, or give noise="
            )
        return found

    def _completed(self, base: BaseParameters, beta: NDArray[Any], C: NDArray[Any]) -> NDArray[Any]:
        """Parameters with these base parameters, nearest to the nominal ones and physical if asked for."""
        B, s = base.combinations, self.scale
        inverse = np.linalg.cholesky(np.linalg.inv(C)).T if len(C) else C
        if self.prior is None:
            theta = self.nominal + s * (np.linalg.pinv(B * s) @ (beta - base.of(self.nominal)))
        else:
            A = np.concatenate([inverse @ B, np.diag(1 / (self.prior * s))])
            right = np.concatenate([inverse @ beta, self.nominal / (self.prior * s)])
            theta = np.linalg.lstsq(A, right, rcond=None)[0]
        if not self.physical or self._is_physical(theta):
            return theta

        return self._nearest_physical(base, theta, C)

    def _nearest_physical(self, base: BaseParameters, theta: NDArray[Any], C: NDArray[Any]) -> NDArray[Any]:
        """The physical parameters that fit best, where `theta` fit and are not."""
        B, s = base.combinations, self.scale
        count = 10 * len(self.standard.bodies)
        if self.prior is None:
            U = s[:, None] * (np.linalg.pinv(B * s) @ np.linalg.cholesky(C))
            N = s[:, None] * np.linalg.svd(B * s)[2][len(B) :].T
            weight = ANCHOR
        else:  # all are measured: by the data, and as nominal values
            info = B.T @ np.linalg.inv(C) @ B + np.diag((self.prior * s) ** -2.0)
            U = s[:, None] * np.linalg.inv(np.linalg.cholesky(info * np.outer(s, s)).T)
            N, weight = np.zeros((len(s), 0)), 0.0
        return nearest_physical(
            theta, U, N, self.nominal, s, weight, self.standard.lower, count // 10
        )  # fmt: skip

    def _is_physical(self, theta: NDArray[Any]) -> bool:
        bodies = theta[: 10 * len(self.standard.bodies)].reshape(-1, 10)
        return bool(np.all(is_consistent(bodies)) and (theta >= self.standard.lower).all())

    def _result(
        self, base: BaseParameters, beta: NDArray[Any], C: NDArray[Any], theta: NDArray[Any], left: NDArray[Any],
        sigma: NDArray[Any], rows: tuple[str, ...],
    ) -> Identification:  # fmt: skip
        told = (*self._unphysical(base, beta, C, theta), *self._sentences(base))
        bodies = theta[: 10 * len(self.standard.bodies)].reshape(-1, 10)
        consistent = bool(np.all(is_consistent(bodies)))
        covariance = None
        if self.prior is not None:
            B = base.combinations
            covariance = np.linalg.inv(B.T @ np.linalg.inv(C) @ B + np.diag((self.prior * self.scale) ** -2.0))
        if (bodies[:, 0] == 0).any():
            raise InputError("identify: a mass of exactly 0 was found; name that body as known (parameters=)")
        return Identification(
            theta, self.standard.names, self.standard.units, self.standard.placed(self.model, theta).settled(), base,
            beta, C, np.sqrt((left**2).mean(axis=0)), sigma, rows, len(self.data.q), consistent, told, self.nominal,
            covariance,
        )  # fmt: skip

    def _sentences(self, base: BaseParameters) -> tuple[str, ...]:
        """What the data do not say, first that which another motion would."""
        names = (*(self.model.bodies[b].name for b in self.standard.bodies), *self.standard.numbers)
        whole = base_parameters(self.model, driven=self.driven, parameters=names, formulation=self.formulation)
        told = []
        if len(base) < len(whole):
            parts = base.combinations[:, list(whole.columns)]  # the data's combinations of the mechanism's
            used = np.abs(parts) > 1e-6 * np.abs(parts).max()
            lost = [name for name, some in zip(whole.names, used.any(axis=0), strict=True) if not some]
            if lost:
                told.append(
                    f"the data do not depend on {'; '.join(lost)}: the motion does not excite them; measure another "
                    "one (cd.excitation)"
                )
            mixed = [text for text, row in zip(base.names, used, strict=True) if row.sum() > 1]
            if mixed:
                told.append(
                    f"the data cannot tell these apart, only their combinations: {'; '.join(mixed)}; measure a motion "
                    "that does (cd.excitation)"
                )
        if base.only_in_combination:
            told.append(
                f"of the mechanism itself, forces tell only in combination: {', '.join(whole.only_in_combination)}"
            )
        if whole.without_influence:
            told.append(f"without influence: {', '.join(whole.without_influence)}")
        return tuple(told)

    def _unphysical(self, base: BaseParameters, beta: NDArray[Any], C: NDArray[Any], theta: NDArray[Any]) -> list[str]:
        """A sentence where the data ask for parameters that no mass distribution has."""
        off, std = np.abs(base.of(theta) - beta), np.sqrt(np.diag(C))
        size = np.abs(base.combinations) @ self.scale
        if self.prior is not None or not ((off > 4 * std) & (off > 1e-6 * size)).any():
            return []
        k = int(np.argmax(off / np.maximum(std, 1e-12 * size)))
        return [
            f"no mass distribution fits the data: they ask for {base.names[k]} = {beta[k]:.4g} +- {2 * std[k]:.2g}, "
            f"the nearest physical value is {base.of(theta)[k]:.4g}; check signs, units and what else acts"
        ]


def _rows(W: NDArray[Any]) -> NDArray[Any]:
    return W.reshape(-1, W.shape[-1])


def _scales(standard: StandardParameters, theta: NDArray[Any]) -> NDArray[Any]:
    """Size (parameters,) of each: mass, mass times the body's radius, mass times its square; others their own."""
    found = np.array(np.abs(theta))
    for k in range(len(standard.bodies)):
        own = theta[10 * k : 10 * k + 10]
        r = np.sqrt(max(own[4:7].sum() / 2, 1e-12) / own[0])
        found[10 * k : 10 * k + 10] = own[0] * np.array([1, *(r,) * 3, *(r * r,) * 6])
    rest = found[10 * len(standard.bodies) :]
    rest[rest == 0] = max(float(rest.max(initial=0.0)), 1.0)
    return found
