"""`cd.equilibrium`: static equilibrium and steady motion of any mechanism, in batches, with stability."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.statics.balance import (
    CLOSED,
    Point,
    Task,
    closed,
    displacement_sizes,
    part_of,
    point_at,
    variable_rates,
    weighted,
)
from cardan.analysis.statics.newton import FOUND, RAN_AWAY, STUCK, Search, elsewhere, search
from cardan.analysis.statics.stability import Stability, stability
from cardan.analysis.statics.task import SORTS, coordinates_of, read_task, require_no_samples
from cardan.errors import CardanError, EquilibriumError, InputError, ModelError, UnknownNameError, nearest
from cardan.formulation.formulation import Formulation
from cardan.functions.constraints import reactions
from cardan.functions.energy import potential_energy
from cardan.lazy import cached_property
from cardan.machines.waiting import said
from cardan.model.html import html_table
from cardan.model.model import Model
from cardan.model.values import counted, number, whole
from cardan.structure.assemble import assemble
from cardan.structure.rows import row_sizes

if TYPE_CHECKING:
    import os

    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

TOLERANCE = 1e-10
ITERATIONS = 200
CONTRADICTION = 1e-7  # of the largest rate: constraints that are broken faster are not kept
NOTABLE = 0.1  # of the forces left: more of a variable's rate, in the weights of the search, is told
STEADY = 1e-8  # of the forces that act, times the largest rate: less drift is rounding


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Equilibria, one for each system of a batch of shape `(...)`, in SI units.

    Args:
        model: the mechanism, at the values found where parameters were asked for.
        q: configuration (..., nq).
        v: rates (..., nv); zero at rest.
        a: accelerations (..., nv) that constraints ask for in steady motion; zero at rest.
        tau: drives (..., nv), given and found.
        t: time, s.
        multipliers: (..., nl) of the constraint rows `model.rows`; where these are redundant, the smallest.
        unknowns: what was asked for in `solve_for`, and the variables with a rate, by name, each (...).
        held: names of the coordinates that were held.
        residual: largest force (...), N m or N, that is left in a direction that is open.
        iterations: (...) of Newton's method.
        found: (...) bool, False where there is no equilibrium or not the one that was asked for.
        why: for each system a sentence on its failure, empty where it was found.
        unstable: (...) how many directions are unstable; -1 where nothing was found.
        neutral: (...) how many directions are neutral.
        eigenvalues: (..., n) of small disturbances `exp(s t)`, 1/s, complex; largest real part first.
        is_steady: (...) bool: the balance lasts while the mechanism moves on, and nothing accelerates; so at rest.
        drift: (...), N m/s: how fast the balance is lost as the mechanism moves on.

    """

    model: Model
    formulation: Formulation
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    t: float
    wrenches: np.ndarray
    multipliers: np.ndarray
    unknowns: dict[str, np.ndarray]
    held: tuple[str, ...]
    residual: np.ndarray
    iterations: np.ndarray
    found: np.ndarray
    why: np.ndarray
    unstable: np.ndarray
    neutral: np.ndarray
    eigenvalues: np.ndarray
    is_steady: np.ndarray
    drift: np.ndarray

    @property
    def is_stable(self) -> np.ndarray:
        """Whether (...) no direction is unstable; neutral directions may be left."""
        return np.asarray(self.unstable == 0)

    @property
    def kind(self) -> np.ndarray:
        """What it is (...): "stable", "neutral", "unstable", or "none"."""
        kinds = np.where(self.unstable > 0, "unstable", np.where(self.neutral > 0, "neutral", "stable"))
        return np.asarray(np.where(self.unstable < 0, "none", kinds))

    @cached_property
    def reactions(self) -> np.ndarray:
        """Wrenches (..., number of joints, 6) of all joints, as `cd.reactions` gives them, N m and N."""
        found = reactions(
            self.model, self.q, self.v, self.tau, wrenches=self.wrenches, t=self.t, formulation=self.formulation
        )
        return np.asarray(found)

    @cached_property
    def potential_energy(self) -> np.ndarray:
        """Potential energy (...), J, of gravity and springs."""
        return np.asarray(potential_energy(self.model, self.q))

    @property
    def shape(self) -> tuple[int, ...]:
        """The batch."""
        return self.q.shape[:-1]

    def coordinate(self, name: str) -> np.ndarray:
        """A joint's coordinates (...) or (..., n), rad and m."""
        at = self.model.q_slice(name)
        return self.q[..., at.start] if at.stop - at.start == 1 else self.q[..., at]

    def drive(self, name: str) -> np.ndarray:
        """Drive of a joint (...) or (..., n), N m and N: given, or found where it is held or asked for."""
        own = coordinates_of("equilibrium", "drive", self.model, name)
        return self.tau[..., own[0]] if len(own) == 1 else self.tau[..., own]

    def reaction(self, joint: str) -> np.ndarray:
        """Wrench (..., 6) that a joint exerts on its child."""
        if joint not in self.model.joint_names:
            raise UnknownNameError(f"joint {joint!r} is not in the model{nearest(joint, self.model.joint_names)}")
        return np.asarray(self.reactions[..., self.model.joint_names.index(joint), :])

    def __len__(self) -> int:
        """Systems along the first axis of the batch."""
        if not self.shape:
            raise TypeError("this equilibrium is one, not a batch")
        return self.shape[0]

    def __getitem__(self, index: Any) -> Equilibrium:
        """Some systems of the batch."""
        if not self.shape:
            raise InputError("equilibrium: it is one, not a batch; there is nothing to choose from")
        chosen = np.arange(int(np.prod(self.shape))).reshape(self.shape)[index]
        flat = {
            name: _of_batch(getattr(self, name), len(self.shape))[chosen]
            for name in ("q", "v", "a", "tau", "wrenches", "multipliers", "residual", "iterations", "found", "why",
                         "unstable", "neutral", "eigenvalues", "is_steady", "drift")
        }  # fmt: skip
        unknowns = {name: x.reshape(-1)[chosen] for name, x in self.unknowns.items()}
        model = self.model
        if model.values is not None and model.batch:
            values = np.broadcast_to(model.values, (*self.shape, model.parameters.size))
            model = model.unbound._bound(_of_batch(values, len(self.shape))[chosen])
        return replace(self, model=model, unknowns=unknowns, **flat)

    def draw(self, **options: Any) -> Figure:
        """Draw the mechanism there; takes the options of `cd.draw`. Of a batch, choose one first."""
        if self.shape:
            raise InputError("equilibrium: draw one of the batch, for example found[0].draw()")
        return self.model.draw(self.q, **options)

    def page(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the mechanism there as an HTML file to look at; see `cd.page`. Of a batch, choose one first."""
        if self.shape:
            raise InputError("equilibrium: write one of the batch, for example found[0].page(...)")
        self.model.page(path, self.q, overwrite=overwrite)

    def rows(self) -> list[tuple[str, str]]:
        """The result of one system as a table of names and values."""
        model = self.model
        if self.shape:
            kinds, counts = np.unique(self.kind, return_counts=True)
            told = ", ".join(f"{n} {kind}" for kind, n in zip(kinds, counts, strict=True))
            return [
                ("model", model.name), ("systems", f"{self.shape}"), ("kinds", told),
                ("residual", f"{np.max(self.residual, initial=0.0):.1e} at most"),
                ("iterations", f"{np.max(self.iterations, initial=0)} at most"),
            ]  # fmt: skip
        rows = [("model", model.name), ("equilibrium", self.text())]
        for link in model.tree.links:
            name, units = model.joints[link.joint].name, dict.fromkeys(link.kind.q_units)
            if link.kind.nq:
                shown = ", ".join(f"{x:.9g}" for x in self.q[link.q])
                rows.append((name, f"{shown} {' '.join(u for u in units if u != '1')}"))
        rows += [(name, f"{float(x):.9g}") for name, x in self.unknowns.items()]
        for k, name in enumerate(model.coordinate_names):
            if self.v[k]:
                rows.append((f"rate of {name}", f"{self.v[k]:.9g}"))
            if self.tau[k] and f"{name}.tau" not in self.unknowns:
                rows.append((f"drive of {name}", f"{self.tau[k]:.9g}"))
        rows += [("residual", f"{float(self.residual):.1e}"), ("iterations", f"{int(self.iterations)}")]
        return rows

    def text(self) -> str:
        """What it is, in words."""
        if self.unstable < 0:
            return f"none: {self.why}"
        moving = "steady motion" if self.v.any() else "at rest"
        if not self.is_steady:
            moving = "balanced at this instant only"
        counts = [(int(self.unstable), "unstable"), (int(self.neutral), "neutral")]
        told = [f"{n} {what} direction{'s' * (n > 1)}" for n, what in counts if n]
        held = [name for name in self.held if f"{name}.tau" in self.unknowns]
        kept = f" while drives hold {', '.join(held[:6])}{', ...' * (len(held) > 6)}" if held else ""
        return f"{moving}, {', '.join(told) or 'stable'}{kept}"

    def __repr__(self) -> str:
        """A table."""
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        return html_table("Equilibrium", self.rows())


@said("seeking equilibria")
def equilibrium(
    model: Model, q: ArrayLike | Mapping[str, Any] | None = None, *, tau: ArrayLike | Mapping[str, Any] | None = None,
    rates: Mapping[str, Any] | None = None, hold: str | Iterable[str] = (),
    solve_for: str | Iterable[str] | None = None, wrenches: ArrayLike | None = None, t: float = 0.0,
    stable: bool = False, formulation: str | Formulation = "spatial", tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS, starts: int = 1, strict: bool = True,
) -> Equilibrium:  # fmt: skip
    """Find the equilibrium or steady motion near a start, with its stability: `cd.Equilibrium`.

    Variables with a rate (integrals of controllers, currents) are found, too: their rates vanish.

    Newton's method with exact derivatives, damped, along the constraints; all systems of a batch at once. It finds the
    equilibrium near the start, stable or not; `stable=True` goes down the potential energy to a stable one.

    Args:
        model: the mechanism, with loops, redundant constraints, couplings and motions. Values of free parameters
            (`Model.at`), gravity too, are a batch like that of q.
        q: where to begin: (..., nq) rad and m, or coordinates of some joints by name; the model's own start by default.
            Loops are closed first.
        tau: drives (..., nv), N m and N, or by name of joint; none by default.
        rates: constant rates of joints by name, rad/s and m/s: steady motion. Their coordinates stay as given, a drive
            keeps each rate and is found. All else is at rest, as far as constraints allow.
        hold: joints, or coordinates such as "P[1]", that stay where q has them. A drive holds each, and is found.
        solve_for: what else is unknown: drives by name of joint, free parameters, rates as "JOINT.rate". With it, held
            joints are not driven unless they are named here too.
        wrenches: (..., nb, 6) on the bodies, N m and N, in body components.
        t: time, s, for drives and prescribed motions.
        stable: ask for a stable equilibrium.
        formulation: whose equations of motion are used.
        tolerance: largest force left, relative to those that act; then it is refined to rounding.
        iterations: most of Newton's method.
        starts: how many starts to try: after q, others near it, the same ones at every call.
        strict: raise `cd.EquilibriumError` where one is not found; False: see `found` and `why`.

    """
    owner = "equilibrium"
    if not isinstance(stable, bool | np.bool_) or not isinstance(strict, bool | np.bool_):
        raise InputError(f"{owner}: stable and strict are True or False, got {stable!r}, {strict!r}")
    task, start, shape = read_task(owner, model, q, tau, rates, hold, solve_for, wrenches, t, formulation)
    tolerance = number(owner, "tolerance", tolerance, above=0)
    most = whole(owner, "iterations", iterations)
    unassembled: dict[int, str] = {}
    start = assembled(task, start, None if strict else unassembled)
    x = np.zeros((len(start), len(task.changes)))
    task = weighted(task, start, x)
    require_no_samples(task, start, x)
    found = search(task, start, x, tolerance, most, bool(stable))
    for again in range(1, whole(owner, "starts", starts)):
        left = np.flatnonzero(~_is_good(task, found, bool(stable)))
        if not len(left):
            break
        part = task.part(left)
        new = search(part, elsewhere(part, start[left], x[left], again), x[left], tolerance, most, bool(stable))
        good = _is_good(part, new, bool(stable))
        found.put(left[good], new, good)
    require_no_samples(task, found.q, found.x)
    return finished(task, found, shape, bool(stable), strict, unassembled)


def _is_good(task: Task, found: Search, stable: bool) -> np.ndarray:
    """Which systems (n,) were found, and are stable if that is asked for."""
    good = found.outcome == FOUND
    if stable and good.any():
        which = np.flatnonzero(good)
        good[which] = stability(point_at(task.part(which), found.q[which], found.x[which])).unstable == 0
    return np.asarray(good)


def assembled(task: Task, q: np.ndarray, failed: dict[int, str] | None = None) -> np.ndarray:
    """Configurations (n, nq) with their loops closed, held coordinates kept.

    Sentences on systems that cannot be assembled are written to `failed`; without it the first is an error.
    """
    none = np.zeros((len(q), len(task.changes)))
    if not len(task.model.rows) or not len(q):
        return q
    joints = [task.model.joints[link.joint].name for link in task.model.tree.links
              if link.kind.nv and set(range(link.v.start, link.v.stop)) <= set(task.held)]  # fmt: skip
    whole_joints = sum(task.model.v_slice(j).stop - task.model.v_slice(j).start for j in joints) == len(task.held)
    model = task.model_at(none)
    if whole_joints:
        from cardan.structure.assemble import constraint_kernels
        from cardan.structure.kernels import time_argument

        phi = np.asarray(constraint_kernels(model)[0](q, *time_argument(model, task.t))[0])
        open_ = np.flatnonzero(np.abs(phi).max(axis=-1) > CLOSED)
        for i in open_:
            try:
                q[i] = assemble(model.one_of((int(i),)), q[i], hold=joints, t=task.t)[0]
            except ModelError as error:
                if failed is None:
                    raise
                failed[int(i)] = f"{task.owner}: {error}"
    q, gap = closed(task, q, none)
    for i in np.flatnonzero(gap > 1e-8):
        sentence = (
            f"{task.owner}: model {task.model.name!r} cannot be assembled with the held coordinates as given: a loop "
            f"stays open by {gap[i]:.3g} (m and rad together); hold fewer joints, or give a better q"
        )
        if failed is None:
            raise ModelError(sentence)
        failed.setdefault(int(i), sentence)
    return q


def finished(
    task: Task, found: Search, shape: tuple[int, ...], stable: bool, strict: bool,
    unassembled: Mapping[int, str] | None = None,
) -> Equilibrium:  # fmt: skip
    """The result: stability, residuals, and sentences on failures."""
    n = len(found.q)
    point = point_at(task, found.q, found.x) if n else None
    rest = np.zeros(n) if point is None else np.abs(_left(point)).max(axis=-1, initial=0.0)
    is_found = found.outcome == FOUND
    why = np.full(n, "", dtype=object)
    for i in np.flatnonzero(~is_found):
        why[i] = _failure(task, found, point, int(i))
    if point is not None and task.moving and len(task.model.rows):
        for k, sentence in _contradictions(point):
            why[k], is_found[k] = sentence, False
    for k, sentence in (unassembled or {}).items():
        why[k], is_found[k] = sentence, False
    judged = _judged(point, n, is_found)
    unstable, neutral = (np.where(is_found, x, -1) for x in (judged.unstable, judged.neutral))
    if stable:
        for i in np.flatnonzero(is_found & (unstable > 0)):
            why[i] = _unstable(task, found.q[i], int(unstable[i]), judged.eigenvalues[i])
        is_found &= unstable == 0
    model, bad = model_found(task, found.x, shape)
    for k, sentence in bad.items():
        why[k], is_found[k] = sentence, False
    names = [c.name for c in task.changes]
    base = [_given(task, c) for c in task.changes]
    unknowns = {
        name: _shaped(base[k] + found.x[:, k], shape)
        for k, name in enumerate(names)
    } | {
        f"{task.model.coordinate_names[k]}.tau": _shaped(point.tau[:, k] if point is not None else np.zeros(0), shape)
        for k in task.driven
    }  # fmt: skip
    empty = np.zeros((0, task.model.nv))
    v, a, tau = (point.v, point.a, point.tau) if point is not None else (empty, empty, empty)
    drift = np.zeros(n) if point is None or not task.moving else _drift(point)
    fastest = np.abs(v).max(axis=-1, initial=0.0)
    steady = (drift <= STEADY * found.size * fastest) & (np.abs(a).max(axis=-1, initial=0.0) <= STEADY * fastest**2)
    lam = np.zeros((0, len(task.model.rows))) if point is None else point.lam
    q, v, a, tau, loads, lam, rest, counts, ok, said, unstable, neutral, eigenvalues, steady, drift = (
        _shaped(y, shape)
        for y in (found.q, v, a, tau, task.wrenches, lam, rest, found.iterations, is_found, why, unstable, neutral,
                  judged.eigenvalues, steady, drift)
    )  # fmt: skip
    result = Equilibrium(
        model, task.formulation, q, v, a, tau, task.t, loads, lam, unknowns,
        tuple(task.model.coordinate_names[k] for k in task.held), rest, counts, ok, said, unstable, neutral,
        eigenvalues, steady, drift,
    )  # fmt: skip
    if strict and not is_found.all():
        raise _error(task, result, is_found, why, shape)
    return result


def _judged(point: Point | None, n: int, is_found: np.ndarray) -> Stability:
    """Stability of the systems that were found."""
    which = np.flatnonzero(is_found)
    if point is None or not len(which):
        none = np.zeros(n, dtype=int)
        return Stability(none, none, np.full((n, 0), np.nan + 0j), np.full((n, 0), np.nan))
    own = stability(point if len(which) == n else part_of(point, which))

    def spread(part: np.ndarray, fill: Any) -> np.ndarray:
        whole_ = np.full((n, *part.shape[1:]), fill, dtype=part.dtype)
        whole_[which] = part
        return whole_

    return Stability(
        spread(own.unstable, 0), spread(own.neutral, 0), spread(own.eigenvalues, np.nan), spread(own.stiffness, np.nan)
    )


def _left(point: Any) -> np.ndarray:
    """Forces (n, nv) along the tree's rates that nothing balances, neither constraints nor unknown drives."""
    F = point.F[:, : point.Y.shape[2]]
    return -np.einsum("nij,nj->ni", point.Y, F) / displacement_sizes(point.task.model) ** 2


def _drift(point: Any) -> np.ndarray:
    """How fast the balance is lost as the mechanism moves on (n,): the rate of what is left of the forces."""
    parts, v, a = point.parts, point.v[..., None], point.a[..., None]
    P = point.P
    jerk = -P @ (parts.of(3, "q") @ v + parts.of(3, "v") @ a)
    rate = parts.of(0, "q") @ v + parts.of(0, "v") @ a + parts.of(0, "a") @ jerk
    lost = np.swapaxes(point.Y, 1, 2) @ rate
    if point.task.variables:
        slopes = variable_rates(point.task, point.task.model_at(point.x), point.q, point.v)[1]
        change = slopes["q"] @ v + slopes["v"] @ a
        lost = np.concatenate([lost, point.task.weights[..., None] * change], axis=1)
    return np.asarray(np.abs(lost).max(axis=(-2, -1), initial=0.0))


def _given(task: Task, change: Any) -> np.ndarray:
    """What an unknown was before, (n,)."""
    return np.asarray(task.p @ change.p + task.v @ change.v)


def model_found(task: Task, x: np.ndarray, shape: tuple[int, ...]) -> tuple[Model, dict[int, str]]:
    """The model at the values found; and for systems with a value that breaks a rule a sentence."""
    if not task.model.parameters:
        return task.model, {}
    p = task.values(x)
    bad: dict[int, str] = {}
    for parameter in task.model.parameters:
        own = p[:, task.model.parameters.slice_of(parameter.name)]
        try:
            parameter.read(own.reshape(-1, *parameter.shape))
        except CardanError:
            for i in range(len(p)):
                try:
                    parameter.read(own[i].reshape(parameter.shape))
                except CardanError as error:
                    bad[i] = f"{task.owner}: the balance asks for a value that cannot be: {error}"
    one = np.broadcast_to(p[:1], p.shape) if len(p) else p
    values = p[0] if len(p) and (p == one).all() and not shape else p.reshape(*shape, p.shape[-1])
    return task.model._bound(values), bad


def _failure(task: Task, found: Search, point: Any, i: int) -> str:
    """Why a system has no equilibrium: what is left, where, and what to try."""
    model = task.model
    left = _left(point)[i]
    if not np.isfinite(left).all():
        return f"{task.owner}: model {model.name!r}: forces are not finite at the start; look for nan and inf"
    if task.variables and (found.outcome[i] != FOUND):
        own = point.F[i, -len(task.variables) :]
        if np.abs(own).max() > NOTABLE * np.abs(point.F[i, : -len(task.variables)]).max(initial=0.0):
            return _unsettled(task, int(np.argmax(np.abs(own))), own / task.weights[i])
    where = _largest(model, left)
    reasons = {
        STUCK: f"no displacement reduces it any further, at {_place(model, found.q[i])}",
        RAN_AWAY: "it does not fall however far the mechanism moves",
    }
    reason = reasons.get(str(found.outcome[i]), f"{int(found.iterations[i])} iterations were not enough")
    hints = {
        STUCK: "begin elsewhere (q=), hold that joint (hold=), or ask for a drive or a parameter (solve_for=)",
        RAN_AWAY: "hold that joint (hold=), or let something balance it (tau=, a spring, solve_for=)",
    }
    hint = hints.get(str(found.outcome[i]), "begin nearer (q=), or allow more (iterations=)")
    if task.changes or not set(task.held) <= set(task.driven):
        undriven = [model.coordinate_names[k] for k in task.held if k not in task.driven]
        if undriven:
            hint += f"; the held {', '.join(map(repr, undriven))} have no drive unless solve_for names them"
    return f"{task.owner}: model {model.name!r} has no equilibrium there: {where} is left, and {reason}; {hint}"


def _unsettled(task: Task, k: int, rates: np.ndarray) -> str:
    """Why there is no equilibrium where the rate of a variable does not vanish."""
    change = task.changes[k]
    unit = f"{change.unit}/s" if change.unit else "1/s"
    return (
        f"{task.owner}: model {task.model.name!r} has no equilibrium there: variable {change.name!r} still changes by "
        f"{rates[k]:.4g} {unit}, and nothing that is unknown brings its rate to zero: it is the integral of something "
        "that is not zero at rest; begin elsewhere (q=), leave it out, or ask for what it depends on (solve_for=)"
    )


def _contradictions(point: Point) -> list[tuple[int, str]]:
    """Systems whose given rates no motion along the constraints has, each with a sentence."""
    task, names = point.task, point.task.model.coordinate_names
    broken = np.abs(point.parts.value[:, point.parts.rows(2)]) / row_sizes(task.model)
    most = CONTRADICTION * np.abs(point.v).max(axis=-1, initial=0.0)
    found = []
    for i in np.flatnonzero(broken.max(axis=-1, initial=0.0) > most):
        row, given = int(np.argmax(broken[i])), ", ".join(f"{names[k]} = {point.v[i, k]:.4g}" for k in task.held)
        found.append((
            int(i),
            f"{task.owner}: model {task.model.name!r}: the rates given and held contradict each other ({given}): "
            f"constraint {task.model.rows[row].name!r} is broken by {broken[i, row] * row_sizes(task.model)[row]:.3g} "
            "m/s or rad/s; give or hold fewer, or move away from a dead point (q=)",
        ))  # fmt: skip
    return found


def _largest(model: Model, left: np.ndarray) -> str:
    """The largest force that is left, with its unit and joint."""
    k = int(np.argmax(np.abs(left)))
    units = [unit for link in model.tree.links for unit in link.kind.v_units]
    unit, what = (SORTS["tau"][0], "force") if units[k] == "m/s" else (SORTS["tau"][1], "moment")
    return f"a {what} of {left[k]:.4g} {unit} along {model.coordinate_names[k]!r}"


def _place(model: Model, q: np.ndarray) -> str:
    """A configuration in few words."""
    parts = []
    for link in model.tree.links:
        if link.kind.nq:
            parts.append(f"{model.joints[link.joint].name} = {', '.join(f'{x:.4g}' for x in q[link.q])}")
    return "; ".join(parts[:4]) + ("; ..." if len(parts) > 4 else "")


def _unstable(task: Task, q: np.ndarray, count: int, eigenvalues: np.ndarray) -> str:
    known = eigenvalues[np.isfinite(eigenvalues)]
    fastest = f", the fastest growing with {known[0].real:.4g} 1/s" if len(known) else ""
    return (
        f"{task.owner}: model {task.model.name!r}: a stable equilibrium was asked for, and the one found at "
        f"{_place(task.model, q)} has {counted(count, 'unstable direction')}{fastest}; begin elsewhere (q=)"
    )


def _error(task: Task, result: Equilibrium, is_found: np.ndarray, why: np.ndarray, shape: tuple[int, ...]) -> Any:
    bad = np.flatnonzero(~is_found)
    sentence = str(why[bad[0]])
    if shape:
        index = tuple(int(k) for k in np.unravel_index(bad[0], shape))
        told = index if len(index) > 1 else index[0]
        sentence = sentence.replace(f"{task.owner}: ", f"{task.owner}: {len(bad)} of {is_found.size} systems failed; "
                                    f"at index {told}: ", 1) + "; strict=False returns the others"  # fmt: skip
    return EquilibriumError(sentence, result)


def _shaped(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return x.reshape((*shape, *x.shape[1:]))


def _of_batch(x: np.ndarray, axes: int) -> np.ndarray:
    """An array whose first axes are a batch, with one axis for all of them."""
    return x.reshape((int(np.prod(x.shape[:axes])), *x.shape[axes:]))
