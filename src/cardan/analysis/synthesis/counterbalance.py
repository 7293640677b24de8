"""Counterweights and springs that balance a mechanism: `cd.balance`.

A mechanism whose momentum is zero in all its motions shakes its frame neither with forces nor with moments; one whose
potential energy is the same in all positions stays at rest in each. Both are sums of squares over positions, with exact
derivatives by the unknown numbers:

    P(q_i, v) = 0           force: linear momentum for each motion v that the loops allow
    H(q_i, v) = 0           moment: angular momentum about a point of the ground
    V(q_i) - mean V = 0     gravity, with springs

A counterweight is a point mass m at r on a body of mass M with centre of mass c. It makes of the body's numbers

    M' = M + m     c' = (M c + m r) / M'     I' = I + (M m / M') (|d|^2 1 - d d^T),  d = r - c

Closed forms: a four-bar's force balance is Berkof's and Lowen's (J. Eng. Industry 91 (1969) 21-26).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.kinematics.damped_least_squares import size_of
from cardan.analysis.kinematics.inverse_kinematics import Search
from cardan.analysis.kinematics.manipulability import free_motions
from cardan.errors import InputError, ModelError
from cardan.formulation.derivative import PARAMETERS
from cardan.formulation.spatial import SPATIAL
from cardan.functions.along_constraints import acceleration_of_rows, rate_of_rows, residual_of_rows
from cardan.functions.derivative_products import jvp
from cardan.functions.derivatives import with_derivatives
from cardan.functions.energy import momentum, potential_energy
from cardan.functions.kinematics import body_poses
from cardan.machines.waiting import said
from cardan.model.field import NOT_NEGATIVE, POSITIVE
from cardan.model.memory import require_model
from cardan.model.model import Model
from cardan.model.parameter import ENTRIES, Parameters
from cardan.model.values import array, batch, number, one, shown, whole
from cardan.structure.assemble import assemble
from cardan.structure.planarity import find_plane, is_planar
from cardan.structure.rows import row_sizes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

SMALLEST = 1e-6  # of the mechanism's mass: the lightest counterweight
FIRST = 1e-4  # size of forces where moments are asked for too: their balance comes first
SHAKING = ("force", "moment")


@dataclass(frozen=True, eq=False)
class Counterweight:
    """A point mass on a body: `mass` in kg, `position` (3,) in the body's axes, m."""

    body: str
    mass: float
    position: np.ndarray


@dataclass(frozen=True, eq=False)
class Balance:
    """What `cd.balance` found.

    Args:
        model: the balanced mechanism, its numbers constants.
        values: the numbers that changed, by name.
        counterweights: by body.
        q: the positions (n, nq) over which it is balanced.
        before: largest unbalance of each kind before: linear momentum (kg m/s) and angular momentum (kg m^2/s) of
            motions with rates of size 1, differences of potential energy (J).
        after: the same afterwards.
        converged: whether the least squares ended by themselves.

    """

    model: Model
    values: dict[str, np.ndarray]
    counterweights: dict[str, Counterweight]
    q: np.ndarray
    before: dict[str, float]
    after: dict[str, float]
    converged: bool

    def __str__(self) -> str:
        """What changed, and what it did."""
        units = {"force": "kg m/s", "moment": "kg m^2/s", "gravity": "J"}
        lines = [f"balance of {self.model.name!r} over {len(self.q)} positions"]
        lines += [
            f"  {kind}: {x:.4g} before, {self.after[kind]:.4g} {units[kind]} now" for kind, x in self.before.items()
        ]
        if all(self.after[kind] > x for kind, x in self.before.items()):
            lines.append("  worse than before: these masses load more than they balance; leave them open with None")
        for w in self.counterweights.values():
            lines.append(f"  counterweight on {w.body}: {w.mass:.6g} kg at {_shown(w.position)} m")
        lines += [f"  {name}: {_shown(x)}" for name, x in self.values.items()]
        return "\n".join(lines + ([] if self.converged else ["  not converged"]))


def _shown(x: np.ndarray) -> str:
    return np.array2string(np.asarray(x), precision=6, separator=", ", suppress_small=True)


def shaking_wrench(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
    """Shaking moment about the ground's origin and shaking force (..., 6), N m and N, on the frame of a mechanism.

    It is what the moving masses exert on the ground beside their weight: minus the rate of change of the momentum.

    Args:
        model: the mechanism.
        q: configurations (..., nq), loops closed.
        v: rates (..., nv).
        a: accelerations (..., nv); `cd.steady_motion` gives those of a constant input.

    """
    require_model("shaking_wrench", model)
    q, v = array("shaking_wrench", "q", q, model.nq), array("shaking_wrench", "v", v, model.nv)
    return -np.asarray(
        jvp(model, "momentum", {"q": q, "v": v}, {"q": v, "v": array("shaking_wrench", "a", a, model.nv)})[1]
    )


def steady_motion(model: Model, q: ArrayLike, input: str, speed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Rates and accelerations (..., nv) of a mechanism of one freedom whose input turns or slides at a constant speed.

    Args:
        model: the mechanism.
        q: configurations (..., nq), loops closed.
        input: joint of one coordinate.
        speed: its rate, rad/s or m/s.

    """
    require_model("steady_motion", model)
    owner = "steady_motion"
    q, speed = batch(owner, "q", q, model.nq), number(owner, "speed", speed)
    at = model.v_slice(input)
    if at.stop - at.start != 1:
        raise InputError(f"{owner}: joint {input!r} has {at.stop - at.start} rates; name one with one")
    if model.depends_on_time:
        raise InputError(f"{owner}: model {model.name!r} depends on time; leave prescribed motions out")
    still = np.zeros((*q.shape[:-1], model.nv))
    size = row_sizes(model)
    rate = with_derivatives(owner, model, "v", "tangent", rate_of_rows(model), SPATIAL, (q, still))
    drive = np.zeros((*q.shape[:-1], 1, model.nv))
    drive[..., at.start] = 1.0
    J = np.concatenate([rate["v"] / size[:, None], drive], axis=-2)
    s = np.linalg.svd(J, compute_uv=False)
    if J.shape[-2] < model.nv or (s[..., -1] < 1e-9 * s[..., 0]).any():
        raise InputError(f"{owner}: somewhere {input!r} does not determine the motion: a dead point, or more freedoms")
    solve = np.linalg.pinv(J, rcond=1e-10)
    v = solve[..., -1] * speed
    gamma = with_derivatives(owner, model, "v", "tangent", acceleration_of_rows(model), SPATIAL, (q, v, still)).value
    return v, np.asarray(-(solve[..., :-1] @ (gamma / size)[..., None])[..., 0])


@said("balancing")
def balance(
    model: Model, *, shaking: str | Sequence[str] = (), gravity: bool = False,
    counterweights: Mapping[str, float | None] | Sequence[str] = (), input: str | None = None,
    motion: str | tuple[float, float] | None = None, about: ArrayLike = (0.0, 0.0, 0.0),
    bounds: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None, samples: int = 48,
) -> Balance:  # fmt: skip
    """Counterweights and springs that balance a mechanism: shaking force and moment, or its weight.

    Unknown are the free numbers of the model (`model.free("spring.stiffness", "crank.com")`: masses, springs,
    placements that leave the loops alone) and the counterweights. Of force and moment the force comes first.

    Args:
        model: the mechanism, with numbers free or not.
        shaking: "force", "moment" or both: the momentum becomes zero for all motions, so that it holds at all speeds.
        gravity: the potential energy of weight and springs becomes the same in all positions.
        counterweights: bodies that get a point mass, with its mass in kg, or None where that is unknown too and at most
            that of all bodies.
        input: joint that drives, for `motion`.
        motion: "turn" or a range (rad or m) of the input: the positions. By default positions all over the joints'
            limits.
        about: point (3,) of the ground, m, for moments.
        bounds: lowest and highest values of free numbers by name.
        samples: number of positions.

    """
    owner = "balance"
    task = _BalanceTask(owner, model, shaking, gravity, counterweights, one(owner, "about", about, 3), bounds or {})
    q = _positions(owner, model, input, motion, whole(owner, "samples", samples, least=3))
    return task.solve(q)


def _positions(owner: str, model: Model, input: str | None, motion: Any, samples: int) -> np.ndarray:
    """Configurations (n, nq), loops closed."""
    home = model if model.values is None else model.settled()
    if motion is None:
        search = Search.closing(owner, home, 1, True, frozenset(), 0.0, None)
        q = search.spread(samples)
        q = search.assembled(q) if model.has_rows else q
        if len(q) < 3:
            raise ModelError(f"{owner}: model {model.name!r} could not be assembled within its limits; see cd.assemble")
        return q
    if input is None:
        raise InputError(f"{owner}: motion is that of an input; name the joint that drives")
    place = model.q_slice(input)
    if place.stop - place.start != 1:
        raise InputError(f"{owner}: joint {input!r} has {place.stop - place.start} coordinates; name one with one")
    q = assemble(home)[0]
    start = q[place.start]
    if isinstance(motion, str):
        if motion != "turn":
            raise InputError(f"{owner}: motion must be 'turn' or a range (low, high), got {motion!r}")
        values = start + np.arange(samples) * 2 * np.pi / samples
    else:
        low, high = one(owner, "motion", motion, 2)
        if not low < high:
            raise InputError(f"{owner}: motion must be a range (low, high), got {shown(motion)}")
        values = np.linspace(low, high, samples)
    found = []
    way = np.linspace(start, values[0], max(2, int(abs(values[0] - start) / 0.2)))
    for k, value in enumerate([*way, *values]):
        q = q.copy()
        q[place] = value
        q = assemble(home, q, hold=[input])[0]
        if k >= len(way):
            found.append(q)
    return np.array(found)


class _BalanceTask:
    """Unknowns, rows and their derivatives."""

    def __init__(
        self, owner: str, model: Model, shaking: Any, gravity: bool, counterweights: Any, about: np.ndarray,
        bounds: Mapping[str, Any],
    ) -> None:  # fmt: skip
        kinds = (shaking,) if isinstance(shaking, str) else tuple(shaking)
        for kind in kinds:
            if kind not in SHAKING:
                raise InputError(f"{owner}: shaking must be 'force', 'moment' or both, got {shown(kind)}")
        if not kinds and not gravity:
            raise InputError(f"{owner}: nothing is asked; give shaking='force', shaking='moment' or gravity=True")
        weights = counterweights if isinstance(counterweights, Mapping) else dict.fromkeys(_names(counterweights))
        self.owner, self.kinds, self.about = owner, (*kinds, *(("gravity",) if gravity else ())), about
        self.weights: dict[str, float | None] = {}
        for body, mass in weights.items():
            model.body_index(body)
            given = None if mass is None else number(owner, f"mass on {body!r}", mass, "of kg", above=0.0)
            self.weights[body] = given
        model.require_one(owner)
        model = model if model.values is None else model.settled().free(*model.parameters.names)
        self.free: Parameters = model.parameters
        if not self.free and not self.weights:
            raise InputError(
                f"{owner}: nothing is unknown; free numbers of the model, as in model.free('spring.stiffness'), or "
                "give counterweights=['crank']"
            )
        for body in self.weights:
            for what in ("mass", "com", "inertia"):
                if f"{body}.{what}" in self.free.names:
                    raise InputError(f"{owner}: {body}.{what} is free and has a counterweight; leave one of them out")
        own = [f"{body}.{what}" for body in self.weights for what in ("mass", "com", "inertia")]
        self.model = model.free(*own)
        self.length, self.mass = size_of(self.model), max(sum(float(b.mass) for b in model.bodies), 1e-12)
        self._bounds(bounds)
        self.plane = np.zeros((0, len(self.x))), np.zeros(0)

    def _bounds(self, bounds: Mapping[str, Any]) -> None:
        """First values, scales and bounds of the unknowns: free numbers, then mass and place of each counterweight."""
        owner = self.owner
        x: list[float] = []
        scale: list[float] = []
        low: list[float] = []
        high: list[float] = []
        for name in bounds:
            self.free[name]
        for p in self.free:
            nominal = p.nominal.ravel()
            typical = {"kg": self.mass, "m": self.length, "kg m^2": self.mass * self.length**2}.get(p.unit, 1.0)
            a = np.full(p.size, 1e-9 * typical if p.rule == POSITIVE else 0.0 if p.rule == NOT_NEGATIVE else -np.inf)
            b = np.full(p.size, np.inf)
            if p.name in bounds:
                pair = bounds[p.name]
                if not isinstance(pair, tuple | list) or len(pair) != 2:
                    raise InputError(f"{owner}: bounds of {p.name!r} must be (lowest, highest), got {shown(pair)}")
                a, b = (np.broadcast_to(batch(owner, f"bounds of {p.name!r}", y), p.shape).ravel() for y in pair)
                if (a > b).any():
                    raise InputError(
                        f"{owner}: bounds of {p.name!r}: the lowest is above the highest, got {shown(pair)}"
                    )
            x += list(np.clip(nominal, a, b))
            size = np.maximum(np.abs(nominal), typical if p.unit in ("kg", "m", "kg m^2") else 1e-3)
            scale += list(np.maximum(size, np.abs(nominal).max(initial=0.0)))
            low, high = [*low, *a], [*high, *b]
        for body, mass in self.weights.items():
            data = self.model.bodies[self.model.body_index(body)]
            first = max(0.3 * float(data.mass), 2 * SMALLEST * self.mass) if mass is None else mass
            x += [first, *(-np.asarray(data.com, dtype=float))]
            scale += [self.mass, *([self.length] * 3)]
            low += [SMALLEST * self.mass if mass is None else first, *([-np.inf] * 3)]
            high += [self.mass if mass is None else first, *([np.inf] * 3)]
        self.x, self.scale, self.low, self.high = map(np.array, (x, scale, low, high))

    def solve(self, q: np.ndarray) -> Balance:
        """Least squares over positions."""
        from scipy.optimize import least_squares

        self._require_unchanged_loops(q)
        vary = self._moving(q) & (self.low < self.high)
        rows = _RowsOver(self, q)
        if not (np.abs(rows.at(self.x)[1][:, vary]) * self.scale[vary] > 1e-12).any():
            raise InputError(
                f"{self.owner}: none of the unknown numbers has an effect on what is asked ({', '.join(self.kinds)})"
            )

        def whole_x(z: np.ndarray) -> np.ndarray:
            x = self.x.copy()
            x[vary] = z * self.scale[vary]
            return x

        across, level = self.plane
        fun = lambda z: np.concatenate([rows.at(whole_x(z))[0], across @ whole_x(z) - level])
        jac = lambda z: np.concatenate([rows.at(whole_x(z))[1], across])[:, vary] * self.scale[vary]
        low, high = self.low[vary] / self.scale[vary], self.high[vary] / self.scale[vary]
        z0 = np.clip(self.x[vary] / self.scale[vary], low, high)
        found = least_squares(fun, z0, jac, bounds=(low, high), xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=400)
        z = found.x
        for near in (0.0, 1e-5):  # to rounding by Gauss-Newton steps, with unknowns that are near a bound at it
            z = _polished(fun, jac, z, low, high, near)
        x = whole_x(z)
        p = self.parameters(x)[0]
        balanced = self.model.at(
            {
                each.name: p[self.model.parameters.slice_of(each.name)].reshape(each.shape)
                for each in self.model.parameters
            }
        )
        n = self.free.size
        weights = {}
        for k, body in enumerate(self.weights):
            weights[body] = Counterweight(body, float(x[n + 4 * k]), x[n + 4 * k + 1 : n + 4 * k + 4])
        values = {each.name: p[self.free.slice_of(each.name)].reshape(each.shape) for each in self.free}
        return Balance(
            balanced.settled(), values, weights, q, rows.unbalance(None), rows.unbalance(x), bool(found.status > 0)
        )  # fmt: skip

    def parameters(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Free numbers `p` of the model and their derivative by the unknowns `x`."""
        n, names = self.free.size, self.model.parameters
        p, D = names.nominal.copy(), np.zeros((names.size, len(x)))
        p[:n], D[:n, :n] = x[:n], np.eye(n)
        for k, body in enumerate(self.weights):
            at = n + 4 * k
            m, r = float(x[at]), x[at + 1 : at + 4]
            data = self.model.bodies[self.model.body_index(body)]
            M, c = float(data.mass), np.asarray(data.com, dtype=float)
            I = np.asarray(data.inertia, dtype=float)
            total, d = M + m, r - c
            centre = (M * c + m * r) / total
            S = d @ d * np.eye(3) - np.outer(d, d)
            S_r = np.array([2 * d[i] * np.eye(3) - np.outer(e, d) - np.outer(d, e) for i, e in enumerate(np.eye(3))])
            mass, com, inertia = (names.slice_of(f"{body}.{what}") for what in ("mass", "com", "inertia"))
            p[mass], p[com], p[inertia] = total, centre, (I + M * m / total * S)[ENTRIES]
            D[mass, at] = 1.0
            D[com, at], D[com, at + 1 : at + 4] = (r - centre) / total, m / total * np.eye(3)
            D[inertia, at] = (M / total) ** 2 * S[ENTRIES]
            D[inertia, at + 1 : at + 4] = (M * m / total * S_r)[:, ENTRIES[0], ENTRIES[1]].T
        return p, D

    def _require_unchanged_loops(self, q: np.ndarray) -> None:
        """Refuse numbers that move the positions themselves."""
        if not self.model.has_rows or not self.free:
            return
        phi = with_derivatives(
            self.owner, self.model, PARAMETERS, "tangent", residual_of_rows(self.model), SPATIAL, (q,)
        )
        moved = np.abs(phi[PARAMETERS]).max(axis=(0, 1))
        for each in self.free:
            if moved[self.model.parameters.slice_of(each.name)].max(initial=0.0) > 1e-9:
                raise InputError(
                    f"{self.owner}: parameter {each.name!r} changes how the loops close; it is a dimension for "
                    "cd.synthesise, not a balance"
                )

    def _moving(self, q: np.ndarray) -> np.ndarray:
        """Which unknowns vary: those out of the plane of a planar mechanism stay.

        Where the plane is not along the axes of a body, rows `self.plane` (slopes, values) keep its weight in it.
        """
        vary = np.ones(len(self.x), dtype=bool)
        slopes, values = [], []
        if not is_planar(self.model):
            return vary
        normal = np.asarray(find_plane(self.model).ground.axes, dtype=float)[2]
        poses = np.asarray(body_poses(self.model, q[0]))
        for k, body in enumerate(self.weights):
            at = self.free.size + 4 * k
            number_ = self.model.body_index(body)
            own = poses[number_, :3, :3].T @ normal / self.length
            across = np.abs(own) * self.length > 1 - 1e-9
            vary[at + 1 : at + 4] = ~across
            com = np.asarray(self.model.bodies[number_].com, dtype=float)
            self.x[at + 1 : at + 4] = np.where(across, com, self.x[at + 1 : at + 4])
            if not across.any():
                slopes.append(np.zeros(len(self.x)))
                slopes[-1][at + 1 : at + 4] = own
                values.append(own @ com)
        self.plane = np.array(slopes).reshape(-1, len(self.x)), np.array(values)
        return vary


def _polished(
    fun: Callable[[np.ndarray], np.ndarray], jac: Callable[[np.ndarray], np.ndarray], z: np.ndarray, low: np.ndarray,
    high: np.ndarray, near: float,
) -> np.ndarray:  # fmt: skip
    """A better point by plain Gauss-Newton steps, or `z`. Unknowns that are `near` a bound are put there."""
    tried = np.where(z - low <= near, low, np.where(high - z <= near, high, z))
    inside = (tried > low) & (tried < high)
    for _ in range(5):
        moved = tried.copy()
        moved[inside] -= np.linalg.lstsq(jac(tried)[:, inside], fun(tried), rcond=1e-10)[0]
        if (moved < low).any() or (moved > high).any():
            break
        tried = moved
        if np.linalg.norm(fun(tried)) < np.linalg.norm(fun(z)):
            z = tried
    return z


class _RowsOver:
    """What is to vanish over positions, in units of the mechanism, and its derivatives by the unknowns."""

    def __init__(self, task: _BalanceTask, q: np.ndarray) -> None:
        self.task, self.q = task, q
        Z = free_motions(task.model, q)
        self.v = np.swapaxes(Z, -1, -2)  # (n, freedoms, nv)
        g = float(np.linalg.norm(task.model.gravity))
        M, L = task.mass, task.length
        self.size = {
            "force": M * L * (FIRST if "moment" in task.kinds else 1.0),
            "moment": M * L**2,
            "gravity": M * max(g, 1e-9) * L,
        }

    def _of(self, model: Model) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Values (rows,) and derivatives (rows, size of p) of each kind, in SI units."""
        found = {}
        if set(SHAKING) & set(self.task.kinds):
            h = momentum(model, self.q[:, None], self.v, by=PARAMETERS)
            H, P, H_p, P_p = h.value[..., :3], h.value[..., 3:], h[PARAMETERS][..., :3, :], h[PARAMETERS][..., 3:, :]
            about = self.task.about
            H, H_p = H - np.cross(about, P), H_p - np.cross(about[:, None], P_p, axis=-2)
            found["force"], found["moment"] = (P, P_p), (H, H_p)
        if "gravity" in self.task.kinds:
            V = potential_energy(model, self.q, by=PARAMETERS)
            found["gravity"] = (V.value - V.value.mean(), V[PARAMETERS] - V[PARAMETERS].mean(axis=0))
        return {
            kind: (found[kind][0].ravel(), found[kind][1].reshape(-1, found[kind][1].shape[-1]))
            for kind in self.task.kinds
        }

    def at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows and Jacobian, without units."""
        p, D = self.task.parameters(x)
        found = self._of(self.task.model._bound(p))
        rows = np.concatenate([r / self.size[kind] for kind, (r, _) in found.items()])
        slopes = np.concatenate([r_p @ D / self.size[kind] for kind, (_, r_p) in found.items()])
        return rows, slopes

    def unbalance(self, x: np.ndarray | None) -> dict[str, float]:
        """The largest of each kind, of vectors their length, in SI units; of the model as it was for None."""
        model = self.task.model if x is None else self.task.model._bound(self.task.parameters(x)[0])
        found = {kind: r.reshape(-1, 3 if kind in SHAKING else 1) for kind, (r, _) in self._of(model).items()}
        return {kind: float(np.linalg.norm(r, axis=1).max(initial=0.0)) for kind, r in found.items()}


def _names(x: Any) -> Sequence[str]:
    return (x,) if isinstance(x, str) else tuple(x)
