"""Modes of a mechanism about a state: eigenvalues, shapes as motions of all coordinates and bodies, participation.

They are those of the linear model `x' = A x` of `cd.linearise`, in independent coordinates, so that loops, redundant
rows and prescribed motions are no different from trees.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.linear.eigenvalues import Eigen, eigen, eigenvalue_rates
from cardan.analysis.linear.linearise import TangentModel, tangent_model
from cardan.atomic_file import whole_file
from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.functions.energy import subtree_kinetic_energy
from cardan.functions.kinematics import jacobian
from cardan.lazy import cached_property
from cardan.model.html import html_table
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.model.values import counted, number, whole
from cardan.results.trajectory.quantities import with_time_axis
from cardan.structure.linear import state_matrix_rate_kernel

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from cardan.results.trajectory.trajectory import Trajectory

STEADY = 1e-6  # of the accelerations that forces of this size give: below it a state is steady
MOST_IN_PAGE = 24  # modes of a page
NEUTRAL = 1e-7  # of the largest eigenvalue: smaller real parts are zero; a double one is known to half the digits


def modes(
    model: Model, at: Any = None, v: Any = None, tau: Any = None, *, wrenches: Any = None, t: Any = None,
    coordinates: Sequence[str] | None = None, formulation: str | Formulation = "spatial",
) -> Modes:  # fmt: skip
    """Eigenvalues and modes of a mechanism about an equilibrium or a steady motion, batched.

    Args:
        model: the mechanism; values of free parameters (`Model.at`) are a batch like that of the state: root loci.
        at: the state, as for `cd.linearise`; the assembled start at rest by default. About a state that is not steady
            the eigenvalues are those of a moment, and a warning says so.
        v: rates (..., nv) at the state, rad/s and m/s; before those of `at`.
        tau: drives (..., nv), N m and N, at the state; before those of `at`.
        wrenches: (..., nb, 6) on the bodies, N m and N, in body axes, at the state.
        t: time (...), s.
        coordinates: names of the independent coordinates, chosen by default.
        formulation: in which the equations are written; all agree.

    Returns:
        `cd.Modes`; of a single system `found[0]` is its slowest mode, and `print(found)` a table.

    """
    beside = {"v": v, "tau": tau, "wrenches": wrenches, "t": t}
    found = tangent_model("modes", model, at, beside, (), coordinates, "independent", formulation)
    _warn_if_moving(found)
    return Modes(found)


def _warn_if_moving(found: TangentModel) -> None:
    """Warn about accelerations at the point: eigenvalues then belong to one moment of a motion."""
    n = len(found.columns.coordinates)
    size = np.abs(found.AB[..., n:, : found.nx]).max(axis=(-1, -2), initial=0.0)[..., None]
    speed = np.abs(found.point.v).max(initial=0.0)
    still = STEADY * np.maximum(size * max(1.0, speed), 1e-3)
    for rate, what, units in ((found.a, "rates", "rad/s^2 or m/s^2"), (found.xdot, "variables", "their units per s")):
        if rate is not None and (np.abs(rate) > still).any():
            warnings.warn(
                f"modes: model {found.point.model.name!r} is not in equilibrium or steady motion at this state: its "
                f"{what} change with up to {np.abs(rate).max():.3g} ({units}), and the eigenvalues are those of a "
                "moment; cd.equilibrium finds a state of rest",
                stacklevel=3,
            )
            return


@dataclass(frozen=True, eq=False)
class Mode:
    """One mode: a real eigenvalue, or a pair of conjugate ones, of which `eigenvalue` has positive imaginary part."""

    number: int
    """Among the eigenvalues."""
    eigenvalue: complex
    """1/s."""
    frequency: float
    """Of the oscillation, Hz; 0 for a real eigenvalue."""
    damping: float
    """Damping ratio `-Re / |lambda|`: 0 undamped, 1 without oscillation, negative if it grows."""
    shape: NDArray[Any]
    """Changes (nv,) of all coordinates of the tree, complex, the largest 1."""
    participation: NDArray[Any]
    """Share (nb,) of each body in the kinetic energy."""

    @property
    def natural_frequency(self) -> float:
        """`|lambda| / 2 pi`, Hz: that of the oscillation without its damping."""
        return abs(self.eigenvalue) / (2 * np.pi)

    @property
    def time_constant(self) -> float:
        """Time in which it decays, or grows if negative, by a factor e, s; infinite if it does neither."""
        return float("inf") if self.eigenvalue.real == 0 else -1 / self.eigenvalue.real


class Modes:
    """Eigenvalues and modes of `cd.modes`: arrays over all eigenvalues, or a mode at a time by `found[k]`.

    Eigenvalues come by size, conjugate pairs together, the one with positive imaginary part first. All arrays have the
    batch in front; those of a single system have none.
    """

    def __init__(self, linear: TangentModel) -> None:
        self._linear = linear

    # Numbers.

    @cached_property
    def _eigen(self) -> Eigen:
        found = self._linear
        same = found.columns.coordinates == found.columns.rates
        usual = float(np.linalg.norm(self.model.gravity)) / reach(self.model)  # of a pendulum of its size
        return eigen(found.A, found.M if same else None, usual, found.K)

    @property
    def model(self) -> Model:
        """The mechanism."""
        return self._linear.point.model

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; `()` is a single system."""
        return self._linear.A.shape[:-2]

    @property
    def A(self) -> NDArray[Any]:
        """The state matrix (..., nx, nx) of `states`."""
        return self._linear.A

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states of `A`: independent coordinates, then rates."""
        return tuple(name for name, _ in self._linear.states)

    @property
    def eigenvalues(self) -> NDArray[Any]:
        """Eigenvalues (..., nx), complex, 1/s."""
        return self._eigen.values

    @property
    def frequency(self) -> NDArray[Any]:
        """Frequency (..., nx) of the oscillation that belongs to each eigenvalue, Hz."""
        return np.abs(self.eigenvalues.imag) / (2 * np.pi)

    @property
    def damping(self) -> NDArray[Any]:
        """Damping ratio (..., nx) `-Re / |lambda|`; 0 for a zero eigenvalue."""
        size = np.abs(self.eigenvalues)
        return 0.0 - self.eigenvalues.real / np.where(size == 0, 1.0, size)

    @property
    def natural_frequencies(self) -> NDArray[Any]:
        """Natural frequencies (..., n), Hz, of systems without damping about a stable rest, one for each mode."""
        if not (self._eigen.undamped.all() and (self.eigenvalues.real == 0).all()):
            raise InputError(
                f"modes: model {self.model.name!r} has damping, gyroscopic forces or an unstable equilibrium, so that "
                "it has no natural frequencies one for each mode; use `frequency` and `damping`, of every eigenvalue"
            )
        return self.frequency[..., ::2]

    @property
    def growth(self) -> NDArray[Any]:
        """Largest real part (...) of the eigenvalues, 1/s."""
        return self.eigenvalues.real.max(axis=-1, initial=-np.inf)

    @property
    def stability(self) -> Any:
        """Of the linear model: "stable", "unstable" or, with eigenvalues on the axis, "marginal"; of a batch arrays."""
        bound = NEUTRAL * np.abs(self.eigenvalues).max(axis=-1, initial=0.0)
        words = np.where(self.growth > bound, "unstable", np.where(self.growth < -bound, "stable", "marginal"))
        return words if self.batch else str(words)

    # Shapes.

    @cached_property
    def vectors(self) -> NDArray[Any]:
        """Eigenvectors (..., nx, nx) in columns, complex, rows in the order of `states`; of any length."""
        return self._eigen.vectors()

    @cached_property
    def _scaled(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Changes of coordinates and of rates (..., nv, nx), the largest coordinate 1."""
        found, nx = self._linear, self._linear.nx
        dq, dv = (x[..., :nx] @ self.vectors for x in (found.dq, found.dv))
        if not dq.shape[-2]:
            return dq, dv
        largest = np.take_along_axis(dq, np.abs(dq).argmax(axis=-2)[..., None, :], axis=-2)
        largest = np.where(largest == 0, 1.0, largest)
        return dq / largest, dv / largest

    @property
    def shapes(self) -> NDArray[Any]:
        """Changes (..., nv, nx) of all the tree's coordinates, complex, along the tangent; the largest is 1."""
        return self._scaled[0]

    @property
    def rate_shapes(self) -> NDArray[Any]:
        """Changes (..., nv, nx) of all the tree's rates that go with `shapes`."""
        return self._scaled[1]

    def body_shapes(self, *frames: str) -> NDArray[Any]:
        """Motions (..., frames, 6, nx) of bodies or frames, all bodies by default: rotation, rad, and displacement, m.

        Both are vectors in ground axes; the displacement is that of the frame's origin.
        """
        point = self._linear.point
        names = frames or self.model.body_names
        J = np.stack([np.asarray(jacobian(point.model, point.q, f, axes="ground")) for f in names], axis=-3)
        return J @ self.shapes[..., None, :, :]

    @cached_property
    def participation(self) -> NDArray[Any]:
        """Share (..., nb, nx) of each body in the kinetic energy of every mode's motion."""
        point, shapes = self._linear.point, self.shapes
        model = with_time_axis(point.model) if point.model.values is not None else point.model
        beyond = _inner_links(model)
        total = np.zeros((*shapes.shape[:-2], shapes.shape[-1], model.nb))
        for part in (shapes.real, shapes.imag):
            v = np.ascontiguousarray(np.swapaxes(part, -1, -2))
            T = np.asarray(subtree_kinetic_energy(model, point.q[..., None, :], v))
            total = total + T - T @ beyond
        share = total / np.maximum(total.sum(axis=-1, keepdims=True), 1e-300)
        return np.swapaxes(share, -1, -2)

    # Single modes.

    @cached_property
    def _numbers(self) -> list[int]:
        """Numbers of the eigenvalues that are modes of their own: of a pair the first."""
        self._require_one("a mode at a time")
        return [k for k, x in enumerate(self.eigenvalues) if x.imag >= 0]

    def __len__(self) -> int:
        """How many modes: real eigenvalues and conjugate pairs; of a batch, systems along its first axis."""
        return self.batch[0] if self.batch else len(self._numbers)

    def __getitem__(self, k: Any) -> Any:
        """A mode of a single system, the slowest first: `cd.Mode`; of a batch, one system or part of it: `cd.Modes`."""
        if self.batch:
            return Modes(self._linear.part(k))
        return self._mode(k)

    def _mode(self, k: Any) -> Mode:
        if isinstance(k, bool) or not isinstance(k, int | np.integer):
            raise InputError(f"modes: a mode is chosen by its number, got {k!r}")
        if not -len(self._numbers) <= k < len(self._numbers):
            raise InputError(f"modes: mode must be a number from 0 to {len(self._numbers) - 1}, got {k}")
        n = self._numbers[k]
        return Mode(
            n, complex(self.eigenvalues[n]), float(self.frequency[n]), float(self.damping[n]), self.shapes[:, n],
            self.participation[:, n],
        )  # fmt: skip

    def __iter__(self) -> Iterator[Any]:
        """The modes of a single system; of a batch, its systems along the first axis."""
        return (self[k] for k in range(len(self)))

    def _require_one(self, what: str) -> None:
        if self.batch:
            raise InputError(
                f"modes: {what} is for a single system, and this is a batch of shape {self.batch}; take one of it, as "
                "found[0]"
            )

    # Derivatives.

    def derivatives(self, *, of: Sequence[int] | None = None, follow: bool = False) -> NDArray[Any]:
        """Exact derivatives (..., nx, numbers) of the eigenvalues by all free parameters, in the order of `p`.

        Independent coordinates, rates and variables are held; the dependent ones follow through assembly. With
        `follow=True` the equilibrium moves with the parameters: they change so that it stays one, and what variables
        with a rate were does not matter. `of` are numbers of some eigenvalues.
        """
        model, found = self.model, self._linear
        if not model.parameters:
            raise InputError(
                f"modes: model {model.name!r} has no free parameter to differentiate by; free some with model.free(...)"
            )
        if of is not None and not isinstance(of, Iterable):
            raise InputError(f"modes: of must be a list of numbers of eigenvalues, such as [0, 1], got {of!r:.80}")
        names = [model.coordinate_names[k] for k in found.columns.coordinates]
        point, nx, size = found.point, found.nx, model.parameters.size
        at = {"q": point.q, "v": point.v, "tau": point.tau, "t": point.t, "wrenches": point.wrenches}
        variables = found.columns.variables
        free = [k for k in range(size) if k not in variables]
        inputs = ("parameters",) if free else ()
        by_p = tangent_model("modes", model, at, {}, inputs, names, "independent", found.formulation)
        dq, dv = (np.zeros((*found.A.shape[:-2], model.nv, size)) for _ in range(2))
        dq[..., free], dv[..., free] = by_p.dq[..., list(by_p.order)], by_p.dv[..., list(by_p.order)]
        dp = np.broadcast_to(np.eye(size), (*dq.shape[:-2], size, size)).copy()
        if follow:
            dx = np.zeros((*found.A.shape[:-2], nx, size))
            dx[..., free] = self._following(by_p)
            dq, dv = dq + by_p.dq[..., :nx] @ dx, dv + by_p.dv[..., :nx] @ dx
            dp[..., list(variables), :] = dx[..., nx - len(variables) :, :]  # variables are where the equilibrium is
        dA = self._state_matrix_rate(dq, dv, dp)
        rates = eigenvalue_rates(found.A, self.eigenvalues, self.vectors, dA)
        wanted = list(range(nx)) if of is None else [whole("modes", "of", k, least=0) for k in of]
        if max(wanted, default=-1) >= nx:
            raise InputError(f"modes: of={list(wanted)} names an eigenvalue past the last, {nx - 1}")
        self._require_derivatives(rates, wanted)
        return rates[..., wanted, :]

    def _following(self, by_p: TangentModel) -> NDArray[Any]:
        """Changes (..., nx, numbers) of the state with which the equilibrium stays one: `A dx + B dp = 0`."""
        try:
            dx = -np.linalg.solve(by_p.A, by_p.B)
        except np.linalg.LinAlgError:
            dx = np.full(by_p.B.shape, np.nan)
        if not np.isfinite(dx).all() or (np.linalg.cond(by_p.A) > 1e12).any():
            raise InputError(
                f"modes: the equilibrium of model {self.model.name!r} does not determine its coordinates (an "
                "eigenvalue is zero), so that it does not follow the parameters; ask with follow=False"
            )
        return dx

    def _state_matrix_rate(self, dq: NDArray[Any], dv: NDArray[Any], dp: NDArray[Any]) -> NDArray[Any]:
        """`A` differentiated (..., numbers, nx, nx) along motions (..., nv, numbers) and changes of parameters."""
        found = self._linear
        point, model = found.point, found.point.model
        kernel = state_matrix_rate_kernel(with_time_axis(model), found.formulation, found.columns)
        loads = () if not found.columns.loaded else (np.asarray(point.wrenches)[..., None, :, :],)
        time = (point.t[..., None] if point.t.ndim else point.t,) if found.columns.takes_time(model) else ()
        args = (point.q[..., None, :], point.v[..., None, :], point.tau[..., None, :], *loads, *time)
        along = (np.ascontiguousarray(np.swapaxes(x, -1, -2)) for x in (dq, dv, dp))
        return np.asarray(kernel(*args, *along)[1])

    def _require_derivatives(self, rates: NDArray[Any], of: list[int]) -> None:
        """Refuse eigenvalues whose vectors fall together."""
        bad = np.isnan(rates[..., of, :]).any(axis=-1)
        if bad.any():
            numbers = sorted({of[k] for k in np.nonzero(bad)[-1]})
            rest = [k for k in range(rates.shape[-2]) if not np.isnan(rates[..., k, :]).any()]
            hint = f"; the others are had with of={rest}" if rest else "; go beside it"
            raise InputError(
                f"modes: eigenvalues {', '.join(map(str, numbers))} of model {self.model.name!r} fall together with "
                f"their vectors (a rigid-body motion, critical damping), where they have no derivative{hint}"
            )

    # Pictures.

    def run(self, mode: int = 0, *, amplitude: float | None = None, periods: int = 2, samples: int = 61) -> Trajectory:
        """The motion of one mode as a run, without decay, for plots, pages and drawings.

        Args:
            mode: number of the mode, of `found[mode]`.
            amplitude: change of the coordinate that moves most, rad or m; by default what moves some point of a body
                by a seventh of the mechanism's size.
            periods: how many oscillations; a mode that does not oscillate is shown moving to and fro once a second.
            samples: how many states.

        """
        from cardan.analysis.linear.mode_motion import motion_of

        amplitude = None if amplitude is None else number("modes", "amplitude", amplitude, above=0)
        counts = whole("modes", "periods", periods), whole("modes", "samples", samples, least=2)
        return motion_of(self, self._mode(mode), amplitude, *counts)

    def page(self, path: str | os.PathLike[str], mode: int = 0, *, overwrite: bool = False, **options: Any) -> None:
        """Write the motion of the modes as an HTML page that moves; `options` are those of `run`.

        The page begins with one mode; others are chosen in it, of a mechanism with many modes the first 24 of them.
        """
        from cardan.results.page.page import html

        chosen = self._numbers.index(self._mode(mode).number)
        shown = sorted({*range(min(len(self), MOST_IN_PAGE)), chosen})
        labels = [f"mode {k}: {self[k].frequency:.4g} Hz" for k in shown]
        runs = [self.run(k, **options) for k in shown]
        text = html(runs, ["q"], labels=labels, first=shown.index(chosen), forces=False)
        with whole_file(path, overwrite) as part:
            part.write_text(text, encoding="utf-8")

    def draw(self, mode: int = 0, **options: Any) -> Figure:
        """Draw one mode: the mechanism at the state, and at the ends of its swing; `options` are those of `cd.draw`."""
        from cardan.analysis.linear.mode_motion import drawing_of

        return drawing_of(self, self._mode(mode), **options)

    def root_locus(self, values: Any = None, **options: Any) -> Figure:
        """Draw the eigenvalues of a batch in the complex plane, coloured by `values` along its first axis."""
        from cardan.analysis.linear.response_plots import root_locus

        return root_locus(self, values, **options)

    # In words.

    def table(self) -> list[tuple[str, ...]]:
        """Rows of text, the first their headings: number, eigenvalue, frequency, damping ratio, what moves most."""
        rows: list[tuple[str, ...]] = [("mode", "eigenvalue [1/s]", "frequency [Hz]", "damping", "moves most")]
        for k, mode in enumerate(self):
            x = mode.eigenvalue + 0.0  # without the sign of a zero
            text = f"{x.real:.6g}" if x.imag == 0 else f"{x.real:.6g} +- {x.imag:.6g}i"
            if mode.participation.any():
                body = self.model.body_names[int(np.argmax(mode.participation))]
                share = f"{body} ({100 * mode.participation.max():.0f} %)"
            else:  # nothing but variables moves
                share = self.states[int(np.abs(self.vectors[:, mode.number]).argmax())]
            rows.append((str(k), text, f"{mode.frequency:.6g}", f"{mode.damping:.4g}", share))
        return rows

    def __repr__(self) -> str:
        """A table of the modes; of a batch its shape."""
        if self.batch:
            unstable = int((np.asarray(self.stability) == "unstable").sum())
            size = f"{' x '.join(map(str, self.batch))} systems of {counted(self.A.shape[-1], 'state')}"
            return f"Modes({self.model.name!r}, {size}, {unstable} unstable)"
        rows = self.table()
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([f"Modes({self.model.name!r}, {self.stability})", *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        if self.batch:
            return html_table("Modes", [("systems", " x ".join(map(str, self.batch)))])
        rows = self.table()
        return html_table(f"Modes of {self.model.name!r}, {self.stability}", rows[1:], rows[0])


def reach(model: Model) -> float:
    """How far joints and centres of mass are from the origins of bodies, m; 1 if nothing is."""
    places = [at.position for joint in model.joints for at in (joint.at, joint.child_at)]
    places += [body.com for body in model.bodies]
    return float(np.max([np.linalg.norm(x) for x in places], initial=0.0)) or 1.0


def _inner_links(model: Model) -> NDArray[Any]:
    """Which bodies' subtrees (nb, nb) are directly beyond each body, so that `T - T @ this` is each body's own."""
    apart = model.unmerged
    body_of = {link: b for b, link in enumerate(apart.tree.body_link)}
    found = np.zeros((model.nb, model.nb))
    for b, link in enumerate(apart.tree.body_link):
        parent = GROUND if link == GROUND else apart.tree.links[link].parent
        if parent != GROUND:
            found[b, body_of[parent]] = 1.0
    return found
