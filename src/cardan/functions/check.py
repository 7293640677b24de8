"""`cd.check(model)`: every identity and every formulation on one mechanism, in one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.formulation.complementarity import RULES
from cardan.formulation.spatial import SPATIAL
from cardan.functions import dynamics as dy
from cardan.functions import energy as en
from cardan.functions import kinematics as ki
from cardan.functions.constraints import constraint_jacobian, reactions, undetermined_reactions
from cardan.functions.energy import kinetic_energy
from cardan.machines.waiting import doing
from cardan.model.html import html_table
from cardan.model.memory import require_model
from cardan.model.model import Model
from cardan.model.modes import with_modes
from cardan.model.values import number, whole
from cardan.structure.assemble import assemble
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import equations_kernel, is_large, parameter_arguments, time_argument
from cardan.structure.law_state import law_rows_of
from cardan.structure.laws import after_impact
from cardan.structure.planarity import in_plane
from cardan.structure.rows import generic_configurations


@dataclass(frozen=True)
class CheckRow:
    """One check: what was compared, the largest relative error, and the bound it must keep."""

    name: str
    error: float
    bound: float

    @property
    def passed(self) -> bool:
        """Whether the error keeps the bound (a NaN does not)."""
        return bool(self.error <= self.bound)


@dataclass(frozen=True)
class Report:
    """Result of `cd.check`."""

    model: str
    rows: tuple[CheckRow, ...]
    states: int

    @property
    def passed(self) -> bool:
        """Whether every row passed."""
        return all(row.passed for row in self.rows)

    def __str__(self) -> str:
        """One line a check."""
        width = max((len(row.name) for row in self.rows), default=0)
        lines = [
            f"{self.model}: {'all checks passed' if self.passed else 'CHECKS FAILED'} on {self.states} random states"
        ]
        lines += [
            f"  {row.name:<{width}}  {row.error:8.1e}  {'ok' if row.passed else f'FAILED (bound {row.bound:.0e})'}"
            for row in self.rows
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        verdict = "all checks passed" if self.passed else "CHECKS FAILED"
        rows = [
            (row.name, f"{row.error:.1e}", f"{row.bound:.0e}", "ok" if row.passed else "FAILED") for row in self.rows
        ]
        caption = f"{self.model}: {verdict} on {self.states} random states"
        return html_table(caption, rows, ("check", "largest relative error", "bound", ""))


# The formulations that check compares, and `points`.
WAYS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative")
# Past so many links the formulations with coordinates of each body are left out: they would take most of the time.
SIX_COORDINATES_UP_TO = 16
IN_SPACE_UP_TO = 6  # `points` in space has twelve a body


def check(model: Model, *, states: int = 64, seed: int = 0, bound: float = 1e-10) -> Report:
    """Run every identity and compare every formulation at random consistent states.

    Errors are relative to the largest number compared. `bound` is for well-conditioned models; differences in time
    (power, rates) have a looser one. Reactions are compared where redundant constraints leave them determined.

    In a terminal or a notebook a line says what is being checked if that takes longer than two seconds.
    """
    require_model("check", model)
    model.require_one("check")
    with doing(f"checking {model.name}"):
        return _check(model, whole("check", "states", states), seed, number("check", "bound", bound, above=0))


def _check(model: Model, states: int, seed: int, bound: float) -> Report:
    """Every row, one after the other."""
    rng = np.random.default_rng(whole("check", "seed", seed, least=0))
    lawful, model = model, with_modes(model)  # all open: what is not of the laws
    q, v = consistent_states(model, rng, states)
    tau = rng.standard_normal((states, model.nv))
    wrenches = rng.standard_normal((states, model.nb, 6))
    rows = []
    if model.is_plain:
        for name, identity in IDENTITIES.items():
            with doing(name):
                rows.append(CheckRow(name, float(identity(model, q, v, tau, wrenches)), bound))
        for name, difference in DIFFERENCES.items():
            with doing(name):
                rows.append(CheckRow(name, float(difference(model, q, v)), 1e-6))
        for name, compare in AGREEMENT.items():
            with doing(f"{name} of spatial and newton_euler"):
                here, there = (compare(model, q, v, tau, wrenches, form) for form in WAYS[:2])
                rows.append(CheckRow(f"{name}: spatial = newton_euler", relative(here, there), bound))
    else:
        with doing("loops"):
            rows += _general_rows(model, q, v, tau, wrenches, bound)
    rows += _formulation_rows(model, q, v, tau, wrenches, bound)
    if lawful is not model:
        with doing("rows with laws"):
            rows += _law_rows(lawful, q, v, tau, bound)
    return Report(model.name, tuple(rows), len(q))


def consistent_states(model: Model, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random q (count, nq) and v (count, nv); with loops, a few configurations near the model's start."""
    if not model.has_rows:
        return model.random_state(rng, count)
    generic = generic_configurations(model)
    q = np.stack([generic[k % len(generic)] for k in range(count)])
    return assemble(model, q, rng.standard_normal((count, model.nv)))


def _general_rows(model: Model, q: Any, v: Any, tau: Any, wrenches: Any, bound: float) -> list[CheckRow]:
    """Loops closed, and every body in balance, whatever acts on it."""
    J = constraint_jacobian(model, q)
    a = dy.forward_dynamics(model, q, v, tau, wrenches=wrenches)
    M, f, _, gamma, _, phi = equations_kernel(model, SPATIAL)(q, v, tau, wrenches, *time_argument(model, 0.0))
    force = (M @ a[..., None])[..., 0] - f
    work = force - (np.swapaxes(J, -1, -2) @ np.linalg.pinv(np.swapaxes(J, -1, -2)) @ force[..., None])[..., 0]
    rates = (J @ a[..., None])[..., 0] - gamma
    scale = max(float(np.abs(f).max(initial=0.0)), 1e-300)
    return [
        CheckRow("loops closed", float(np.abs(phi).max(initial=0.0)), bound),
        CheckRow(
            "accelerations keep them closed",
            float(np.abs(rates).max(initial=0.0)) / max(float(np.abs(a).max(initial=0.0)), 1.0),
            1e-8,
        ),
        CheckRow("M a - f is a constraint force", float(np.abs(work).max(initial=0.0)) / scale, 1e-8),
    ]


def _formulation_rows(model: Model, q: Any, v: Any, tau: Any, wrenches: Any, bound: float) -> list[CheckRow]:
    """Accelerations and determined reactions, every formulation against the first."""
    few = slice(0, 8)
    q, v, tau, wrenches = q[few], v[few], tau[few], wrenches[few]
    names = WAYS if len(model.separate.tree.links) <= SIX_COORDINATES_UP_TO else WAYS[:2]
    ways, points = [formulation_of(model, name) for name in names], formulation_of(model, "points")
    has_rotors = any(joint.armature is not None for joint in model.joints)
    few_links = not is_large(model) if points.is_planar else len(model.separate.tree.links) <= IN_SPACE_UP_TO
    ways += [points] if few_links and (points.has_armature or not has_rotors) else []
    known = [~undetermined_reactions(model, row) for row in q[:3]]
    determined = np.logical_and.reduce(known)
    accelerations, forces = [], []
    for way in ways:
        with doing(f"accelerations and reactions in {way.name}"):
            accelerations.append(dy.forward_dynamics(model, q, v, tau, wrenches=wrenches, formulation=way))
            found = reactions(model, q, v, tau, wrenches=wrenches, formulation=way)
            forces.append(np.where(determined, found, 0.0))
    rows = []
    for k, way in enumerate(ways[1:], 1):
        rows.append(
            CheckRow(f"accelerations: spatial = {way.name}", relative(accelerations[0], accelerations[k]), bound)
        )
        here, there = (_in_plane(model, f, determined) if way.is_planar else f for f in (forces[0], forces[k]))
        rows.append(CheckRow(f"reactions: spatial = {way.name}", relative(here, there), bound))
    return rows


def _in_plane(model: Model, forces: np.ndarray, determined: np.ndarray) -> np.ndarray:
    """The part of reactions that acts in the plane, where each component that it is made of is determined."""
    P = in_plane(model)
    known = (np.abs(P) @ ~determined[..., None])[..., 0] < 1e-9
    return np.where(known, np.einsum("jab,...jb->...ja", P, forces), 0.0)


def _law_rows(model: Model, q: Any, v: Any, tau: Any, bound: float) -> list[CheckRow]:
    """Rows with laws in two formulations, and the complementarity problem with all of them closed and at rest."""
    moded, ways = with_modes(model), [formulation_of(model, name) for name in ("spatial", "absolute")]
    p = np.broadcast_to(parameter_arguments(moded)[0], (len(q), moded.parameters.size))
    here, there = (law_rows_of(moded, way).state(np.zeros(len(q)), q, v, tau, p) for way in ways)
    rows = [
        CheckRow(
            f"rows with laws, {name}: spatial = absolute", relative(getattr(here, name), getattr(there, name)), bound
        )
        for name in ("phi", "u", "b", "W")
    ]
    resting = law_rows_of(moded, ways[0])  # of rows that move, some may hold one another to contradicting motions
    found, residual = resting.resting(resting.state(np.zeros(len(q)), q, 0 * v, tau, p))
    error = float(residual[found].max(initial=0.0)) if found.any() else np.nan
    rows.append(CheckRow("complementarity of forces and rates", error, 1e-8))
    return rows + [row for rule in RULES for row in _impact_rows(model, q, v, rule, bound)]


def _impact_rows(model: Model, q: Any, v: Any, rule: str, bound: float) -> list[CheckRow]:
    """An impact of all rows at once: the law solved, loops kept, no energy gained."""
    after, _, residual = after_impact(model, q, v, np.ones(len(model.lawful_rows)), rule)
    before, now = (kinetic_energy(model, q, x) for x in (v, after))
    rows = [
        CheckRow(f"impact, {rule}: laws", float(residual.max(initial=0.0)), 1e-8),
        CheckRow(f"impact, {rule}: energy gained", float(((now - before) / before).max(initial=0.0)), bound),
    ]
    if model.has_rows:
        rates = (constraint_jacobian(model, q) @ (after - v)[..., None])[..., 0]
        rows.append(CheckRow(f"impact, {rule}: loops kept", float(np.abs(rates).max() / np.abs(v).max()), bound))
    return rows


def relative(a: Any, b: Any) -> float:
    """Largest difference over the largest number."""
    scale = max(float(np.abs(a).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    difference = float(np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0))
    return difference / scale if scale > 0 else difference


def _inverse_of_forward(model: Model, q: Any, v: Any, tau: Any, wrenches: Any) -> float:
    a = dy.forward_dynamics(model, q, v, tau, wrenches=wrenches)
    return relative(dy.inverse_dynamics(model, q, v, a, wrenches=wrenches), tau)


def _force_balance(model: Model, q: Any, v: Any, tau: Any, wrenches: Any) -> float:
    a = dy.forward_dynamics(model, q, v, tau)
    M, C = dy.mass_matrix(model, q), dy.bias_force(model, q, v)
    return relative((M @ a[..., None])[..., 0] + C, tau)


def _mass_symmetric(model: Model, q: Any, v: Any, tau: Any, wrenches: Any) -> float:
    M = dy.mass_matrix(model, q)
    smallest = np.linalg.eigvalsh(M)[..., 0] if model.nv else np.ones(1)
    return relative(M, np.swapaxes(M, -1, -2)) if (smallest > 0).all() else np.inf


def _inverse_mass(model: Model, q: Any, v: Any, tau: Any, wrenches: Any) -> float:
    M, W = dy.mass_matrix(model, q), dy.inverse_mass_matrix(model, q)
    return relative(M @ W, np.broadcast_to(np.eye(model.nv), M.shape))


def _kinetic(model: Model, q: Any, v: Any, tau: Any, wrenches: Any) -> float:
    M = dy.mass_matrix(model, q)
    return relative(en.kinetic_energy(model, q, v), np.einsum("...i,...ij,...j", v, M, v) / 2)


def _coriolis(model: Model, q: Any, v: Any, tau: Any, wrenches: Any) -> float:
    C = dy.coriolis_matrix(model, q, v)
    return relative((C @ v[..., None])[..., 0] + dy.gravity_force(model, q), dy.bias_force(model, q, v))


def _twists(model: Model, q: Any, v: Any, tau: Any, wrenches: Any) -> float:
    body = model.body_names[-1]
    J = ki.jacobian(model, q, body)
    return relative((J @ v[..., None])[..., 0], ki.body_twists(model, q, v)[..., -1, :])


def _wrench_power(model: Model, q: Any, v: Any, tau: Any, wrenches: Any) -> float:
    """External wrenches do the same work on bodies as on joints."""
    zero = np.zeros_like(v)
    with_, without = (dy.inverse_dynamics(model, q, v, zero, wrenches=w) for w in (wrenches, 0 * wrenches))
    on_joints = ((without - with_) * v).sum(-1)
    return relative(on_joints, (ki.body_twists(model, q, v) * wrenches).sum((-1, -2)))


def _joint_drive(model: Model, q: Any, v: Any, tau: Any, wrenches: Any) -> float:
    """Along a joint's freedoms its wrench is the drive."""
    f = dy.joint_wrenches(model, q, v, tau)
    force = dy.inverse_dynamics(model, q, v, tau)
    got = np.zeros_like(force)
    for link in model.tree.links:
        kind = link.kind
        if kind.bias is not None or kind.backwards:
            got[..., link.v] = force[..., link.v]  # S depends on q or is seen from the other side; the others suffice
            continue
        S = kind.S(np.array(kind.neutral))
        got[..., link.v] = f[..., link.joint, :] @ S + (
            0 if link.armature is None else link.armature * tau[..., link.v]
        )
    return relative(got, force)


IDENTITIES: dict[str, Callable[..., float]] = {
    "inverse of forward dynamics": _inverse_of_forward,
    "M a + bias = tau": _force_balance,
    "M symmetric, positive definite": _mass_symmetric,
    "M times its inverse": _inverse_mass,
    "kinetic energy = v M v / 2": _kinetic,
    "C v + gravity = bias": _coriolis,
    "Jacobian times v = twist": _twists,
    "power of external wrenches": _wrench_power,
    "joint wrench along S = tau": _joint_drive,
}


def _moved(model: Model, q: Any, v: Any, h: float) -> Any:
    return dy.plus(model, q, h * v)


def _power(model: Model, q: Any, v: Any, h: float = 1e-5) -> float:
    """Along free motion kinetic and potential energy change by the same amount."""
    a = dy.forward_dynamics(model, q, v)

    def energy(h: float) -> Any:
        # second order: the configuration moves with the velocity half way
        there = dy.plus(model, q, h * v + h * h / 2 * a)
        return en.kinetic_energy(model, there, v + h * a) + en.potential_energy(model, there)

    M = dy.mass_matrix(model, q)
    scale = np.abs(np.einsum("...i,...ij,...j", v, M, a)).max(initial=1e-300)
    return float(np.abs(energy(h) - energy(-h)).max(initial=0.0) / (2 * h) / scale)


def _skew(model: Model, q: Any, v: Any, h: float = 1e-5) -> float:
    """Mdot - 2 C is skew-symmetric."""
    Mdot = (dy.mass_matrix(model, _moved(model, q, v, h)) - dy.mass_matrix(model, _moved(model, q, v, -h))) / (2 * h)
    C = dy.coriolis_matrix(model, q, v)
    least = 1e-3 * np.abs(dy.mass_matrix(model, q)).max(initial=0.0)  # a constant M has differences by rounding alone
    error = np.abs(C + np.swapaxes(C, -1, -2) - Mdot).max(initial=0.0)
    return float(error / max(least, np.abs(Mdot).max(initial=0.0), np.abs(C).max(initial=0.0)))


def _gravity(model: Model, q: Any, v: Any, h: float = 1e-5) -> float:
    """Gravity's power along v is the rate of potential energy."""
    rate = en.potential_energy(model, _moved(model, q, v, h)) - en.potential_energy(model, _moved(model, q, v, -h))
    return relative((dy.gravity_force(model, q) * v).sum(-1), rate / (2 * h))


DIFFERENCES: dict[str, Callable[..., float]] = {
    "energy along free motion": _power,
    "Mdot - 2 C skew": _skew,
    "gravity force = rate of potential": _gravity,
}

AGREEMENT: dict[str, Callable[..., Any]] = {
    "joint forces": lambda m, q, v, tau, w, form: dy.inverse_dynamics(m, q, v, tau, wrenches=w, formulation=form),
    "mass matrix": lambda m, q, v, tau, w, form: dy.mass_matrix(m, q, formulation=form),
    "joint wrenches": lambda m, q, v, tau, w, form: dy.joint_wrenches(m, q, v, tau, wrenches=w, formulation=form),
    "kinetic energy": lambda m, q, v, tau, w, form: en.kinetic_energy(m, q, v, formulation=form),
    "momentum": lambda m, q, v, tau, w, form: en.momentum(m, q, v, formulation=form),
    "poses": lambda m, q, v, tau, w, form: ki.body_poses(m, q, formulation=form),
    "twists": lambda m, q, v, tau, w, form: ki.body_twists(m, q, v, formulation=form),
}
