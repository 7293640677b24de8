"""Balance of forces at rest and in steady motion, with its exact derivatives, for all systems of a batch at once.

At a configuration `q` with rates `v` and accelerations `a` of the tree, the mechanism is balanced if

    r(q, v, a) + J^T lam = tau          phi(q) = 0      J v = beta      J a = gamma

`r` are the forces that a formulation's inverse dynamics asks for, `lam` the multipliers of all constraint rows. Of the
drives `tau` some are given and some are unknown. At rest `v` and `a` are zero. In steady motion some rates are given;
the accelerations are those that the constraints ask for, nothing else accelerates.

Constraint rows may be redundant: directions and multipliers come from a singular value decomposition of all rows.
Variables with a rate are further unknowns `x`, and that these rates vanish, `xdot(q, v, p, t) = 0`, further equations,
each times a weight that makes it as large as the forces.

`W` are the directions in which coordinates that are not held can move, `Y` those in which neither constraints nor
unknown drives do work. Both are orthonormal where lengths are measured by the mechanism's own (`D`, 1 for angles), so
that `F = Y^T r`, in N m, is what is left of the forces, whatever the basis and the unit of length.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.algebra.matrix import Matrix
from cardan.analysis.statics.large_balance import is_large_balance, large_balance
from cardan.formulation.derivative import PARAMETERS
from cardan.formulation.dynamics import inverse_dynamics, parts_at, time_of, time_port
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Inputs, Quantity, fixed, per_velocity, port_shape
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.state_rates import state_rates
from cardan.functions.derivatives import with_derivatives
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.assemble import constraint_kernels
from cardan.structure.kernels import rates_facts, time_argument, tree_kernel
from cardan.structure.rows import row_sizes

RANK = 1e-9  # of the largest singular value of the rows: smaller ones are zero
CLOSED, ROUNDING = 1e-11, 3e-15  # gaps relative to the mechanism's size: a step is refused, a loop is closed
CLOSING_STEPS = 12
_LENGTH: Slot[None, float] = Slot("the mechanism's length")


def balance(model: Model, formulation: Formulation, moving: bool) -> Quantity:
    """One column: `r + J^T lam` (nv), `phi` (nl), and of a moving mechanism `J v - beta` (nl) and `J a - gamma` (nl).

    Inputs are `q`, for a moving mechanism `v` and `a`, then `lam` where there are rows, `wrenches`, and time.
    """
    nl = len(model.rows)
    motion = ("v", "a") if moving else ()
    inputs = ("q", *motion, *(("lam",) if nl else ()), "wrenches", *time_port(model))

    def write(model: Model, given: Inputs) -> list[Matrix]:
        import casadi as ca

        names = ("q", "v", "a", "wrenches", *(("t",) if "t" in given else ()))
        symbols = {name: ca.SX.sym(name, *(port_shape(model, name) or (1,))) for name in names}
        r = inverse_dynamics(model, formulation).graph(model, symbols)[0]
        state = {name: x for name, x in symbols.items() if name in ("q", "v", "t")}
        rows = parts_at(model, SPATIAL, state).rows
        written = [r, rows.J, rows.phi, rows.J @ symbols["v"] - rows.beta, rows.J @ symbols["a"] - rows.gamma]
        still = {"v": ca.SX(model.nv, 1), "a": ca.SX(model.nv, 1), "t": time_of(given)}
        at = [given.get(name, still.get(name)) for name in names]
        free = [given["p"]] if "p" in given else []
        whole: Any = ca.Function("balance", [*symbols.values(), *free], written)
        r, J, phi, rate, acceleration = whole.call([*at, *free])
        if nl:
            r = r + J.T @ given["lam"]
        return [ca.vertcat(r, phi, *((rate, acceleration) if moving else ()))]

    shapes = {name: (nl,) if name == "lam" else port_shape(model, name) for name in inputs}
    size = model.nv + nl * (3 if moving else 1)
    name = "steady balance" if moving else "balance"
    return Quantity(name, inputs, (("balance", fixed(size)),), write=write, shapes=shapes)


def resistance(model: Model, formulation: Formulation) -> Quantity:
    """The forces `r` (nv,) as a function of the rates, nothing accelerating: for their derivative by `v`."""
    inputs = ("q", "v", *time_port(model))

    def write(model: Model, given: Inputs) -> list[Matrix]:
        import casadi as ca

        none = {"a": ca.SX(model.nv, 1), "wrenches": ca.SX(model.nb, 6)}
        return [inverse_dynamics(model, formulation).graph(model, {**given, **none})[0]]

    return Quantity("resistance", inputs, (("r", per_velocity),), write=write)


@dataclass(frozen=True, eq=False)
class Change:
    """Something that may be unknown: what one unit of it adds to parameters `p`, rates `v`, coordinates `q`, `tau`.

    `size` is a typical magnitude.
    """

    name: str
    unit: str
    p: np.ndarray
    v: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    size: float = 1.0


@dataclass(frozen=True, eq=False)
class Task:
    """What is given and what is asked for. Arrays have one leading axis, that of the systems.

    `held` are the rates whose coordinates stay, `driven` those whose drives are unknown, `changes` the other unknowns.
    The first of these are the variables with a rate, numbers `variables` among the free parameters.
    """

    owner: str
    model: Model
    formulation: Formulation
    t: float
    held: tuple[int, ...]
    driven: tuple[int, ...]
    changes: tuple[Change, ...]
    moving: bool
    tau: np.ndarray
    v: np.ndarray
    wrenches: np.ndarray
    p: np.ndarray
    variables: tuple[int, ...]
    weights: np.ndarray
    """(n, variables) of the equations that their rates vanish."""

    def part(self, which: np.ndarray) -> Task:
        """The task of some of the systems."""
        arrays = ("tau", "v", "wrenches", "p", "weights")
        return replace(self, **{name: getattr(self, name)[which] for name in arrays})

    @property
    def has_rate_rows(self) -> bool:
        """Whether some constraints are on rates only."""
        return any(x.is_at_rate_level for x in self.model.constraints)

    @property
    def is_symmetric(self) -> bool:
        """Whether the same directions are open to displacements and to forces."""
        return set(self.held) == set(self.driven) and not self.has_rate_rows

    def values(self, x: np.ndarray) -> np.ndarray:
        """Free parameters (n, size) at unknowns `x`."""
        return self.p + _sum(x, [c.p for c in self.changes], self.p.shape[-1])

    def model_at(self, x: np.ndarray) -> Model:
        """The model at unknowns `x` (n, changes)."""
        return self.model if not self.model.parameters else self.model._bound(self.values(x))

    def given_rates(self, x: np.ndarray) -> np.ndarray:
        """Rates (n, nv) that are given or unknown; zero elsewhere."""
        return self.v + _sum(x, [c.v for c in self.changes], self.model.nv)

    def given_drives(self, x: np.ndarray) -> np.ndarray:
        """Drives (n, nv) without the unknown ones."""
        return self.tau + _sum(x, [c.tau for c in self.changes], self.model.nv)


def _sum(x: np.ndarray, units: list[np.ndarray], size: int) -> np.ndarray:
    return x @ np.array(units).reshape(len(units), size)


def length_of(model: Model) -> float:
    """The largest length that a mechanism has in its parts, m; 1 where it has none."""

    def measure() -> float:
        home, lengths = model.unbound, [0.0]
        for link in home.tree.links:
            lengths += [float(np.linalg.norm(nominal(x))) for x in (link.r, link.com)]
        for joint in home.joints:
            lengths += [float(np.linalg.norm(nominal(at.position))) for at in (joint.at, joint.child_at)]
        for force in home.forces:
            own = [force.numbers[name] for name, number in force.kind.fields.items() if number.unit == "m"]
            lengths += [float(np.linalg.norm(nominal(x))) for x in own if x.size in (1, 3)]
        return max(lengths) or 1.0

    return _LENGTH.find(model, None, measure)


def displacement_sizes(model: Model) -> np.ndarray:
    """`D` (nv,): 1 for angles, the mechanism's length, m, for lengths."""
    units = [unit for link in model.tree.links for unit in link.kind.v_units]
    return np.array([length_of(model) if unit == "m/s" else 1.0 for unit in units])


@dataclass(frozen=True, eq=False)
class Directions:
    """Null space and pseudo-inverse of rows (n, m, nv): `null` (n, nv, k), zero columns where a system has fewer.

    Both are by displacements measured by `D` (nv,): `null / D` is orthonormal, `inverse` gives the smallest of them.
    """

    null: np.ndarray
    inverse: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, D: np.ndarray) -> Directions:
        """Decompose the rows."""
        count, m, nv = rows.shape
        if m == 0 or nv == 0:
            return cls(np.broadcast_to(np.diag(D), (count, nv, nv)), np.zeros((count, nv, m)))
        real = (rows != 0).any(axis=(0, 2))  # of a planar mechanism most rows are zero
        if not real.all() and real.any():
            some = cls.of(rows[:, real], D)
            inverse = np.zeros((count, nv, m))
            inverse[:, :, real] = some.inverse
            return cls(some.null, inverse)
        U, s, Vt = np.linalg.svd(np.nan_to_num(rows * D, posinf=0.0, neginf=0.0), full_matrices=m < nv)
        padded = np.zeros((count, nv))
        padded[:, : s.shape[1]] = s
        is_null = padded <= RANK * np.maximum(s[:, :1], 1e-300)
        k = int(is_null.sum(axis=1).max(initial=0))
        null = np.where(is_null[:, None, nv - k :], np.swapaxes(Vt, 1, 2)[:, :, nv - k :], 0.0)
        r = s.shape[1]
        scaled = np.where(is_null[:, :r], 0.0, 1.0 / np.where(is_null[:, :r], 1.0, s))
        inverse = np.swapaxes(Vt[:, :r], 1, 2) * scaled[:, None, :] @ np.swapaxes(U[:, :, :r], 1, 2)
        return cls(D[:, None] * null, D[:, None] * inverse)


def _moving(directions: Directions, held: tuple[int, ...], nl: int) -> np.ndarray:
    """The pseudo-inverse (n, nv, nl) of constraint rows, after which held ones come: these do not move at all."""
    inverse = np.array(directions.inverse[:, :, :nl])
    inverse[:, list(held)] = 0.0
    return inverse


@dataclass(frozen=True, eq=False)
class Point:
    """The balance of `n` systems at configurations `q` and unknowns `x`, and how it changes.

    `force` (n, nv) is what is left: `r + J^T lam - tau`; `F` its part along `Y`, then the rates of variables times
    their weights. `A` are the derivatives of `F` along the directions `W` and by `x`; `moves` (n, nv, columns) the
    displacement that belongs to each column of `A`.
    `P` (n, nv, nl) gives the smallest change of rates that changes `J v` as wanted; `size` is the largest force that
    acts, or that a unit displacement causes.
    """

    task: Task
    q: np.ndarray
    x: np.ndarray
    v: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    tau: np.ndarray
    force: np.ndarray
    F: np.ndarray
    A: np.ndarray
    moves: np.ndarray
    W: np.ndarray
    Y: np.ndarray
    P: np.ndarray
    size: np.ndarray
    parts: Parts

    @property
    def n_directions(self) -> int:
        """How many columns of `A` are directions of motion; unknowns follow."""
        return self.W.shape[-1]


@dataclass(frozen=True, eq=False)
class Parts:
    """Derivatives of the force `r` and the rows `phi`, `rate`, `acceleration` by q, v, a, parameters, and lam."""

    model: Model
    value: np.ndarray
    by: dict[str, np.ndarray]

    def rows(self, which: int) -> slice:
        """Where the force (0), `phi` (1), the rate (2) and the acceleration (3) of the rows are."""
        nv, nl = self.model.nv, len(self.model.rows)
        return slice(0, nv) if which == 0 else slice(nv + (which - 1) * nl, nv + which * nl)

    def of(self, which: int, name: str) -> np.ndarray:
        """A block of the derivatives; zero where the balance does not depend on it."""
        at = self.rows(which)
        if name not in self.by:
            return np.zeros((len(self.value), at.stop - at.start, self.model.nv))
        return self.by[name][:, at]

    @property
    def J(self) -> np.ndarray:
        """All constraint rows (n, nl, nv), by the tree's rates."""
        if "lam" not in self.by:
            return np.zeros((len(self.value), 0, self.model.nv))
        return np.swapaxes(self.by["lam"][:, : self.model.nv], 1, 2)


def point_at(task: Task, q: np.ndarray, x: np.ndarray) -> Point:
    """The balance at closed configurations `q` (n, nq) and unknowns `x` (n, changes)."""
    model, n, nl = task.model_at(x), len(q), len(task.model.rows)
    v, a, lam = np.zeros((n, model.nv)), np.zeros((n, model.nv)), np.zeros((n, nl))
    scale, D = row_sizes(model)[:, None], displacement_sizes(model)
    held, driven = (
        np.broadcast_to((np.eye(model.nv) / D)[list(k)], (n, len(k), model.nv)) for k in (task.held, task.driven)
    )
    if task.moving:
        v = _rates(task, model, q, x, scale, held)
    parts = _parts(task, model, q, v, a, lam)
    J = parts.J / scale
    along = Directions.of(np.concatenate([J, held], axis=1), D)
    P = _moving(along, task.held, nl) / scale[:, 0]
    G, turned = P, along
    if task.has_rate_rows:
        turned = Directions.of(np.concatenate([parts.of(1, "q") / scale, held], axis=1), D)
        G = _moving(turned, task.held, nl) / scale[:, 0]
    test = along if task.is_symmetric else Directions.of(np.concatenate([J, driven], axis=1), D)
    tau = task.given_drives(x)
    r = parts.value[:, : model.nv] - tau
    if task.moving:
        a = -_times(P, parts.value[:, parts.rows(3)])
        r = r + _times(parts.of(0, "a"), a)
    drives = np.zeros_like(tau)
    bearing = test if not task.driven else Directions.of(J, D)
    drives[:, list(task.driven)] = _smallest_drives(bearing, task.driven, r)
    lam = -_times(np.swapaxes(bearing.inverse, 1, 2), r - drives)[:, :nl] / scale[:, 0]
    if nl:
        parts = _parts(task, model, q, v, a, lam)
    force = parts.value[:, : model.nv] - tau - drives
    Y, W = np.swapaxes(test.null, 1, 2), turned.null
    F = _times(Y, r)
    changes = [np.array([getattr(c, name) for c in task.changes]).T for name in ("q", "p", "v", "tau")]
    zero = np.zeros((W.shape[-1],))
    dq, dv, dr = _response(
        parts, G, P,
        np.concatenate([W, np.broadcast_to(changes[0], (n, *changes[0].shape))], axis=-1) if task.changes else W,
        *(np.concatenate([np.zeros((c.shape[0], len(zero))), c], axis=-1) if task.changes else None
          for c in changes[1:]),
    )  # fmt: skip
    acting = (r * D, force * D, tau * D, drives * D, dr * D[:, None])
    sizes = [np.abs(part).max(axis=tuple(range(1, part.ndim)), initial=0.0) for part in acting]
    A = Y @ dr
    if task.variables:
        rate, slopes = variable_rates(task, model, q, v)
        dp = np.concatenate([np.zeros((model.parameters.size, len(zero))), changes[1]], axis=1)
        change = slopes["q"] @ dq + slopes["v"] @ dv + slopes[PARAMETERS] @ dp
        F = np.concatenate([F, task.weights * rate], axis=1)
        A = np.concatenate([A, task.weights[..., None] * change], axis=1)
    return Point(
        task, q, x, v, a, lam, tau + drives, force, F, A, dq, W, test.null, P, np.max(sizes, axis=0), parts
    )  # fmt: skip


def variable_rates(task: Task, model: Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Rates (n, k) of the variables that are unknown, and their derivatives by `q`, `v` and the free parameters."""
    states = task.model.parameters.states
    written = replace(state_rates(task.model), name=f"state_rates {rates_facts(task.model)}")
    rows = [states.index(k) for k in task.variables]
    by, args = ("q", "v", PARAMETERS), (q, v, np.full(len(q), task.t))
    found = with_derivatives(task.owner, model, by, "tangent", written, SPATIAL, args)
    return found.value[:, rows], {name: D[:, rows] for name, D in found.by.items()}


def weighted(task: Task, q: np.ndarray, x: np.ndarray) -> Task:
    """The task with weights that make the equations of variables as large as those of forces, at configurations q."""
    if not task.variables or not len(q):
        return task
    point, k = point_at(task, q, x), len(task.variables)
    scale = np.concatenate([np.ones(point.n_directions), [c.size for c in task.changes]])
    slopes = np.abs(point.A[:, -k:] * scale).max(axis=-1)
    size = np.where(point.size > 0, point.size, 1.0)[:, None]
    return replace(task, weights=size / np.where(np.isfinite(slopes) & (slopes > 0), slopes, 1.0))


def part_of(point: Point, which: np.ndarray) -> Point:
    """Some of the systems of a point."""
    own = {f.name: getattr(point, f.name) for f in fields(point)}
    arrays = {name: value[which] for name, value in own.items() if isinstance(value, np.ndarray)}
    by = {name: D[which] for name, D in point.parts.by.items()}
    parts = Parts(point.parts.model, point.parts.value[which], by)
    return Point(**{**own, **arrays, "task": point.task.part(which), "parts": parts})


def _smallest_drives(bearing: Directions, driven: tuple[int, ...], r: np.ndarray) -> np.ndarray:
    """Drives (n, driven), the smallest that with constraint forces bear `r` (n, nv) as far as they can."""
    if not driven:
        return np.zeros((len(r), 0))
    open_ = np.swapaxes(bearing.null, 1, 2)  # directions in which constraints do no work
    return _times(np.linalg.pinv(open_[:, :, list(driven)], rcond=RANK), _times(open_, r))


def _rates(task: Task, model: Model, q: np.ndarray, x: np.ndarray, scale: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Rates (n, nv): those given, and the smallest others that the constraints ask for."""
    v = task.given_rates(x)
    if not len(model.rows):
        return v
    J, beta = constraint_kernels(model)[1](q, *time_argument(model, task.t))
    D = displacement_sizes(model)
    P = _moving(Directions.of(np.concatenate([J / scale, held], axis=1), D), task.held, len(model.rows))
    return np.asarray(v + _times(P, (beta - _times(J, v)) / scale[:, 0]))


def _response(
    parts: Parts, G: np.ndarray, P: np.ndarray, dq: np.ndarray, dp: np.ndarray | None, dv: np.ndarray | None,
    dtau: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Displacements, rates and forces (n, nv, columns) that go with changes, the constraints kept at all levels."""
    moving, by_p = "v" in parts.by, dp is not None and PARAMETERS in parts.by

    def by_parameters(which: int) -> Any:
        return parts.of(which, PARAMETERS) @ dp if by_p else 0.0

    dq = dq - G @ (parts.of(1, "q") @ dq + by_parameters(1))
    dr = parts.of(0, "q") @ dq + by_parameters(0) - (0.0 if dtau is None else dtau)
    if moving:
        dv = np.zeros_like(dq) if dv is None else np.broadcast_to(dv, dq.shape)
        dv = dv - P @ (parts.J @ dv + parts.of(2, "q") @ dq + by_parameters(2))
        da = -P @ (parts.of(3, "q") @ dq + parts.of(3, "v") @ dv + by_parameters(3))
        return dq, dv, dr + parts.of(0, "v") @ dv + parts.of(0, "a") @ da
    return dq, np.zeros_like(dq), dr


def _parts(task: Task, model: Model, q: np.ndarray, v: np.ndarray, a: np.ndarray, lam: np.ndarray) -> Parts:
    """Evaluate the balance with its derivatives: one kernel."""
    by_p = any(np.any(c.p) for c in task.changes)
    if not by_p and not np.any(task.wrenches) and is_large_balance(model, task.formulation):
        return Parts(task.model, *large_balance(model, task.t, task.moving, q, v, a, lam))
    quantity = balance(task.model, task.formulation, task.moving)
    given = {"q": q, "v": v, "a": a, "lam": lam, "wrenches": task.wrenches}
    args = [given[name] for name in quantity.inputs if name in given]
    by = tuple(name for name in ("q", "v", "a", "lam") if name in quantity.inputs)
    with np.errstate(all="ignore"):
        found = with_derivatives(
            task.owner, model, (*by, *((PARAMETERS,) if by_p else ())), "tangent", quantity, task.formulation,
            (*args, *time_argument(model, task.t)),
        )  # fmt: skip
    return Parts(task.model, found.value, dict(found.by))


def closed(task: Task, q: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Configurations with their loops closed by the smallest displacement, held coordinates kept; and the gaps left."""
    nl = len(task.model.rows)
    if not nl:
        return q, np.zeros(len(q))
    scale, at, D = row_sizes(task.model), time_argument(task.model, task.t), displacement_sizes(task.model)
    q, gap = np.array(q), np.zeros(len(q))
    left = np.arange(len(q))
    for _ in range(CLOSING_STEPS):
        here = task.part(left)
        model = here.model_at(x[left])
        phi, rows = (np.asarray(y) for y in constraint_kernels(model)[0](q[left], *at))
        gap[left] = np.abs(phi / scale).max(axis=-1)
        wide = ~(gap[left] <= ROUNDING) & np.isfinite(gap[left])
        left, phi, rows = left[wide], phi[wide], rows[wide]
        if not len(left):
            break
        held = np.broadcast_to((np.eye(model.nv) / D)[list(task.held)], (len(left), len(task.held), model.nv))
        inverse = _moving(Directions.of(np.concatenate([rows / scale[:, None], held], axis=1), D), task.held, nl)
        q[left] = tree_kernel(task.model, "plus")(q[left], -_times(inverse, phi / scale))
    return q, np.where(np.isfinite(gap), gap, np.inf)


def moved(task: Task, q: np.ndarray, x: np.ndarray, dq: np.ndarray, dx: np.ndarray) -> tuple[np.ndarray, ...]:
    """Configurations and unknowns after a step, the loops closed again; and the gaps left."""
    x = x + dx
    q, gap = closed(task, np.asarray(tree_kernel(task.model, "plus")(q, dq)), x)
    return q, x, gap


def _times(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray((A @ b[..., None])[..., 0])
