"""Putting a mechanism together: from a rough guess to positions and velocities that keep every loop and coupling.

Positions: damped least squares (Levenberg-Marquardt) on the position residual `phi`, moving on the joints' own
manifolds. Velocities: the smallest change that satisfies `J v = beta`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.errors import InputError, ModelError, UnknownNameError, nearest
from cardan.formulation.dynamics import constraint_residual, constraint_rows
from cardan.model.memory import KernelSlot, Slot, require_model
from cardan.model.model import Model, State
from cardan.model.named_state import coordinates_by_name, degrees_hint, likely_degrees, rates_by_name
from cardan.model.values import batch, number
from cardan.structure.kernels import compile_quantity, time_argument, tree_kernel
from cardan.structure.sparse_assembly import close_loops, consistent_velocity, steepest
from cardan.structure.sparse_rank import independent_at
from cardan.structure.sparse_rows import has_sparse_rows, sparse_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    Start = ArrayLike | Mapping[str, Any] | State | str | None

TOLERANCE = 1e-12
FEW_STATES = 64  # of a large mechanism whose rows are computed one by one
ITERATIONS = 200
LONGEST_STEP = 0.5  # rad or m, of the whole tree together
STEEP = 1e3  # times a row: a steeper residual is that of directions that are opposite
ASIDE = 0.3  # rad or m, of each coordinate: where to begin again beside a joint that is turned over
OPENED = 1e-6  # m or rad: a larger gap of a state that was projected means that a loop has opened

_HINTED: Slot[str, bool] = Slot("joints whose angle was likely given in degrees")
_CONSTRAINTS: KernelSlot[str] = KernelSlot("residual and rows of the constraints in the tree's coordinates")


def assemble(
    model: Model, q: Start = None, v: ArrayLike | Mapping[str, Any] | None = None, *, hold: Sequence[str] = (),
    t: float = 0.0, tolerance: float = TOLERANCE,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Find a consistent state near a guess.

    It has no `by`: the derivatives of functions of the state with `chart="independent"` go through assembly, also those
    by parameters, and those of runs through the assembly of their start.

    Args:
        model: the mechanism; a tree without couplings is returned as it is. Values of free parameters (`Model.at`) are
            a batch like that of q.
        q: guess (..., nq), rad and m; the joints' `start` by default. Or coordinates of some joints by name, which stay
            as given: `{"A": 0.3}`; or a `cd.State`, or the name of one of `model.states`.
        v: guess (..., nv), rad/s and m/s; at rest by default, as far as prescribed motions allow. Or rates of some
            joints by name, which stay as given.
        hold: joints whose coordinates and rates stay as given.
        t: time, s, for prescribed motions.
        tolerance: largest residual allowed, m and rad.

    Returns:
        q (..., nq) and v (..., nv) with every loop closed.

    """
    require_model("assemble", model)
    (q, free), (v, moving) = read_configuration("assemble", "q", model, q), read_rates("assemble", "v", model, q, v)
    t, tolerance = number("assemble", "t", t, "of seconds"), number("assemble", "tolerance", tolerance, least=0)
    for joint in _names(hold):
        free[model.v_slice(joint)] = moving[model.v_slice(joint)] = False
    try:
        rows = np.broadcast_shapes(q.shape[:-1], model.batch)
        np.broadcast_shapes(rows, v.shape[:-1])
    except ValueError:
        shapes = f"q {q.shape}, v {v.shape}, values of parameters {model.batch}"
        raise InputError(f"assemble: the batches do not fit together: {shapes}") from None
    q = np.array(np.broadcast_to(q, (*rows, model.nq)))
    for row in np.ndindex(q.shape[:-1]):
        q[row] = _place(model.one_of(row), q[row], free, t, tolerance, row)
        if model.values is not None and model.has_rows:
            _require_same_rank(model.one_of(row), q[row], row)
    v = np.broadcast_to(v, (*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), model.nv))
    return q, project_velocity(model, q, v, moving, t)


def read_configuration(owner: str, what: str, model: Model, q: Start) -> tuple[np.ndarray, np.ndarray]:
    """Configurations (..., nq) as given, not assembled, and a mask (nv,) of the rates along which they may be moved.

    None is the model's start. Coordinates given by name may not be moved.
    """
    free = np.ones(model.nv, dtype=bool)
    if q is None:
        return model.start(), free
    if isinstance(q, str):
        q = named_state(owner, what, model, q)
    if isinstance(q, State):
        q = q.q
    if not isinstance(q, Mapping):
        found = batch(owner, what, q, model.nq, entries=model.entries("q"))
    else:
        found, held = coordinates_by_name(owner, what, model, q)
        free[held] = False
    hint_at_degrees(owner, what, model, found)
    return found, free


def read_rates(owner: str, what: str, model: Model, q: Start, v: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rates (..., nv) as given, and a mask (nv,) of those that may be changed; None: of a state, or at rest."""
    free = np.ones(model.nv, dtype=bool)
    if v is None:
        state = named_state(owner, what, model, q) if isinstance(q, str) else q
        return (state.v if isinstance(state, State) else np.zeros(model.nv)), free
    if not isinstance(v, Mapping):
        return batch(owner, what, v, model.nv, entries=model.entries("v")), free
    found, held = rates_by_name(owner, what, model, v)
    free[held] = False
    return found, free


def hint_at_degrees(owner: str, what: str, model: Model, q: np.ndarray) -> None:
    """Warn, once for each joint, of an angle in q (..., nq) that is likely in degrees in all systems, or zero."""
    if not likely_degrees(q).any():
        return
    from cardan.structure.rounding import warn_outside

    for link in model.tree.links:
        name = model.joints[link.joint].name
        for k, unit in enumerate(link.kind.q_units):
            x = q[..., link.q.start + k]
            x = x[x != 0]
            if unit == "rad" and x.size and likely_degrees(x).all() and _HINTED.first_time(model, name):
                warn_outside(degrees_hint(f"{owner}: {what} of joint {name!r}", float(x.flat[0])))


def named_state(owner: str, what: str, model: Model, name: str) -> State:
    """One of the model's named states."""
    if name not in model.states:
        known = nearest(name, model.states) if model.states else "; it has none: give an array or coordinates by name"
        raise UnknownNameError(f"{owner}: {what}: {name!r} is not a state of model {model.name!r}{known}")
    return model.states[name]


def configuration(owner: str, model: Model, q: Start) -> Any:
    """Configurations that a function takes: an array as it is; by name, or None, assembled at t = 0."""
    if isinstance(q, str):
        q = named_state(owner, "q", model, q)
    return assemble(model, q)[0] if q is None or isinstance(q, Mapping | State) else q


def state_by_name(model: Model, q: Mapping[str, Any], v: Mapping[str, Any], time: float) -> State:
    """A consistent state with coordinates and rates of some joints as given, for `Model.state`."""
    time = number("state", "time", time, "of seconds")
    read_configuration("state", "q", model, q), read_rates("state", "v", model, None, v)  # names itself in errors
    return State(*assemble(model, q, v, t=time), time)


def closed_start(model: Model) -> tuple[Model, np.ndarray]:
    """The joints' start values (nq,) assembled at t = 0, and the model whose loops and couplings they satisfy.

    A run may begin later than t = 0, and with other values, so prescribed motions may be out of reach there. They are
    then left out of the model.
    """
    try:
        return model, assemble(model)[0]
    except ModelError:
        rest = replace(
            model,
            couplings=tuple(c for c in model.couplings if not c.depends_on_time),
            constraints=tuple(c for c in model.constraints if not c.depends_on_time),
        )
        if len(rest.rows) == len(model.rows):
            raise
        return rest, assemble(rest)[0]


def constraint_kernels(model: Model) -> tuple[Any, Any]:
    """Residual (phi, its derivative) and velocity rows (J, beta), both of all rows, as functions of `q, (t)`."""
    if has_sparse_rows(model):
        return _FromSparse(model, "residual"), _FromSparse(model, "rows")
    return _compiled(model, "residual"), _compiled(model, "rows")


def _compiled(model: Model, what: str) -> Any:
    written = constraint_residual if what == "residual" else constraint_rows
    return _CONSTRAINTS.find(model, what, lambda: compile_quantity(model, written(model), "tree"))


class _FromSparse:
    """The same of a large mechanism from its sparse rows, state by state: nothing is compiled for a few states."""

    def __init__(self, model: Model, what: str) -> None:
        self.model, self.what = model, what

    def __call__(self, q: Any, *time: Any, threads: Any = None) -> tuple[Any, Any]:
        """At configurations (..., nq), times (...), s."""
        model = self.model
        if isinstance(q, np.ndarray | list | tuple) and threads is None:
            at, t = np.asarray(q, dtype=float), np.asarray(time[0] if time else 0.0, dtype=float)
            batch = np.broadcast_shapes(at.shape[:-1], t.shape, model.batch if model.values is not None else ())
            if at.shape[-1:] == (model.nq,) and np.prod(batch) <= FEW_STATES and np.isfinite(at).all():
                return self._states(np.broadcast_to(at, (*batch, model.nq)), np.broadcast_to(t, batch))
        found: tuple[Any, Any] = _compiled(model, self.what)(q, *time, threads=threads)
        return found

    def _states(self, q: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = []
        for at in np.ndindex(*q.shape[:-1]):
            rows = sparse_rows(self.model.one_of(at) if self.model.values is not None else self.model)
            if self.what == "residual":
                C = rows.residual(q[at], float(t[at]))[1]
                found.append((rows.gaps(q[at], float(t[at])), rows.in_tree(C, q[at])))
            else:
                C, beta = rows.velocity(q[at], float(t[at]))
                found.append((rows.in_tree(C, q[at]), rows.of_model(beta)))
        first, second = (np.array(x).reshape(*q.shape[:-1], *x[0].shape) for x in zip(*found, strict=True))
        return first, second


def opened(model: Model, q: np.ndarray, t: np.ndarray, p: np.ndarray | None = None) -> np.ndarray:
    """Which samples (B, n, nq) at times (B, n), s, leave a constraint open, whether its row is kept or not.

    `p` (B, n, np) are their free parameters, those of the model by default.
    """
    if not model.has_rows:
        return np.zeros(q.shape[:-1], dtype=bool)
    if p is not None:
        model = model.unbound._bound(p)
    elif model.values is not None and model.batch:
        model = model.unbound._bound(model.values[..., None, :])
    phi = _gaps(model, q, t)
    return np.asarray(np.abs(phi).max(axis=-1, initial=0.0) >= OPENED)


def _gaps(model: Model, q: np.ndarray, t: np.ndarray) -> np.ndarray:
    """`phi` (..., nl) of `model.rows`, m and rad, at configurations (..., nq) and times (...), s."""
    from cardan.formulation.spatial import SPATIAL
    from cardan.structure.large import is_divided, row_residuals  # which assembles

    if not has_sparse_rows(model):
        return np.asarray(constraint_kernels(model)[0](q, *time_argument(model, t))[0])
    if is_divided(model, SPATIAL):
        return row_residuals(model, q, np.zeros(model.nv), t)[0]
    times = np.broadcast_to(t, q.shape[:-1])
    places = np.ndindex(*q.shape[:-1])
    found = [sparse_rows(model.one_of(at)).gaps(q[at], float(times[at])) for at in places]
    return np.array(found).reshape(*q.shape[:-1], len(model.rows))


def _names(hold: Any) -> Sequence[str]:
    """Names of joints: a list of them, or one."""
    if isinstance(hold, str):
        return (hold,)
    if not isinstance(hold, Iterable):
        raise InputError(f"assemble: hold must be a list of joint names, got {hold!r}")
    return list(hold)


def flipped(model: Model, q: np.ndarray, t: Any = 0.0) -> str | None:
    """A joint that some closed configurations (..., nq) close with its directions opposite, turned by half a turn.

    There the sines vanish in its rows like where it is closed, but the slope of the residual is beyond all measure.
    """
    if has_sparse_rows(model):
        times = np.broadcast_to(t, q.shape[:-1])
        owners = (steepest(model.one_of(row), q[row], float(times[row])) for row in np.ndindex(*q.shape[:-1]))
        return next((owner for owner in owners if owner is not None), None)
    residual, rows = constraint_kernels(model)
    at = time_argument(model, t)
    slope, J = np.asarray(residual(q, *at)[1]), np.asarray(rows(q, *at)[0])
    far = np.abs(slope - J).max(axis=-1, initial=0.0) > STEEP * np.abs(J).max(axis=-1, initial=1.0)
    found = np.flatnonzero(far.any(axis=tuple(range(far.ndim - 1))))
    return model.rows[int(found[0])].owner if len(found) else None


def _place(
    model: Model, q: np.ndarray, free: np.ndarray, t: float, tolerance: float, row: tuple[int, ...]
) -> np.ndarray:
    """Close one configuration, that of a row of the batch; from beside it if it closes with a joint turned over."""
    if not model.has_rows:
        return q
    found, slope = _closed(model, q, free, t, tolerance, row)
    if slope <= STEEP or flipped(model, found, t) is None:
        return found
    aside = np.where(free, np.random.default_rng(1).uniform(-ASIDE, ASIDE, model.nv), 0.0)
    found, _ = _closed(model, moved_by(model, q, aside), free, t, tolerance, row)
    owner = flipped(model, found, t)
    if owner is not None:
        raise ModelError(
            f"model {model.name!r} cannot be assembled{_at_index(row)}: {owner} closes only with its directions "
            "opposite, turned by half a turn; turn its frame on one body, or give joints a better `start`"
        )
    return found


def moved_by(model: Model, q: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The configuration (nq,) after moving with rates (nv,) for unit time."""
    if has_sparse_rows(model):
        return sparse_rows(model).plus(q, step)
    return np.asarray(tree_kernel(model, "plus")(q, step))


def _closed(
    model: Model, q: np.ndarray, free: np.ndarray, t: float, tolerance: float, row: tuple[int, ...]
) -> tuple[np.ndarray, float]:
    """A configuration with every gap below the tolerance, and the steepest slope of a residual there."""
    if has_sparse_rows(model):
        q, gaps = close_loops(model, q, free, t, tolerance)
        if np.abs(gaps).max(initial=0.0) <= 1e3 * tolerance * max(1.0, _reach(model)):
            return q, 2 * STEEP  # which `flipped` looks into
        raise _cannot(model, gaps, free, row)
    evaluate, _ = constraint_kernels(model)
    plus = tree_kernel(model, "plus")
    at = time_argument(model, t)
    with np.errstate(all="ignore"):
        phi, G = evaluate(q, *at)
    _require_defined(model, np.column_stack([phi, G]), _at_index(row))
    weight = 1.0
    for _ in range(ITERATIONS):
        gap = float(np.linalg.norm(phi))
        if np.abs(phi).max(initial=0.0) <= tolerance:
            return _polished(model, q, phi, G, free, at), float(np.abs(G).max(initial=0.0))
        J = G[:, free]
        step = np.zeros(model.nv)
        # damping in proportion to the gap: off the closed positions an over-constrained loop has full rank, with a tiny
        # singular value along its real freedom, and an undamped step would run away along it; never below rounding
        A = J @ J.T
        step[free] = -J.T @ np.linalg.solve(A + max(weight * gap, 1e-14 * np.trace(A)) * np.eye(len(phi)), phi)
        length = float(np.linalg.norm(step))
        moved = plus(q, step * min(1.0, LONGEST_STEP / max(length, 1e-300)))
        new_phi, new_G = evaluate(moved, *at)
        if np.linalg.norm(new_phi) < gap:
            q, phi, G, weight = moved, new_phi, new_G, max(weight / 4, 1e-6)
        elif weight > 1e9 or length < 1e-15:
            break
        else:
            weight *= 4
    if np.abs(phi).max(initial=0.0) <= 1e3 * tolerance * max(1.0, _reach(model)):
        return q, float(np.abs(G).max(initial=0.0))  # as far as rounding allows
    raise _cannot(model, phi, free, row)


def undefined(model: Model, values: np.ndarray) -> str:
    """Say which of `model.rows` has no value, from numbers (..., nl, k) of each row; empty where all are finite."""
    bad = ~np.isfinite(values)
    if not bad.any():
        return ""
    owner = model.rows[int(np.flatnonzero(bad.any(axis=(*range(bad.ndim - 2), bad.ndim - 1)))[0])].owner
    reasons = [c.element.kind.undefined for c in model.constraints if c.owner == owner and c.element is not None]
    reason = f": {reasons[0]}" if reasons and reasons[0] else ""
    return f"{owner} has no finite value there{reason}"


def _require_defined(model: Model, values: np.ndarray, where: str = "") -> None:
    """Refuse a start where a constraint has no value, from numbers (..., nl, k) of each row."""
    found = undefined(model, values)
    if found:
        raise ModelError(
            f"model {model.name!r} cannot be assembled{where}: {found}; give joints another `start`, or other "
            "directions"
        )


def _at_index(row: tuple[int, ...]) -> str:
    """Which system of a batch, for messages."""
    return f" at index {row if len(row) > 1 else row[0]}" if row else ""


def _polished(
    model: Model, q: np.ndarray, phi: np.ndarray, G: np.ndarray, free: np.ndarray, at: tuple[Any, ...]
) -> np.ndarray:
    """Closed to rounding by one more step, undamped: a tolerance in metres is coarse for a mechanism of micrometres."""
    from cardan.structure.rows import real_rows  # which assembles

    if not phi.any():
        return q
    step = np.zeros(model.nv)
    step[free] = -np.linalg.pinv(real_rows(model, G[:, free]), rcond=1e-6) @ phi
    moved: np.ndarray = tree_kernel(model, "plus")(q, step)
    closer = np.linalg.norm(constraint_kernels(model)[0](moved, *at)[0]) < np.linalg.norm(phi)
    return moved if closer else q


def _reach(model: Model) -> float:
    """The farthest that a joint is placed from a body's origin, m."""
    ends = [at.position for joint in model.joints for at in (joint.at, joint.child_at)]
    return float(np.max([np.linalg.norm(nominal(p)) for p in ends], initial=0.0))


def _require_same_rank(model: Model, q: np.ndarray, row: tuple[int, ...]) -> None:
    """Refuse values of free parameters with which constraints are independent that nominally are redundant."""
    from cardan.structure.rows import independent_rows, pivots, scaled_rows  # which assembles

    own = independent_at(model, q) if has_sparse_rows(model) else pivots(scaled_rows(model, q))
    rank, usual = len(own), len(independent_rows(model))
    if rank > usual:
        raise ModelError(
            f"model {model.name!r}: with these values of its parameters{_at_index(row)} {rank} constraints are "
            f"independent, nominally {usual}, so that the equations would leave some out; build it with such values "
            "from the start"
        )


def _cannot(model: Model, phi: np.ndarray, free: np.ndarray, row: tuple[int, ...]) -> ModelError:
    """Name the joint or coupling with the largest gap."""
    held = [repr(name) for name, moves in zip(model.coordinate_names, free, strict=True) if not moves]
    what = f" with {', '.join(held)} as given" if held else ""
    fix = (
        "give fewer of them, or other values"
        if held
        else "check lengths and placements, or give joints a better `start`"
    )
    gaps: dict[str, float] = {}
    for label, gap in zip(model.rows, phi, strict=True):
        gaps[label.owner] = float(np.hypot(gaps.get(label.owner, 0.0), gap))
    worst = max(gaps, key=lambda name: gaps[name])
    return ModelError(
        f"model {model.name!r} cannot be assembled{_at_index(row)}{what}: {worst} stays open by {gaps[worst]:.3g} (m "
        f"and rad together); {fix}"
    )


def project_velocity(model: Model, q: np.ndarray, v: np.ndarray, free: np.ndarray, t: float) -> np.ndarray:
    """The smallest change of the free rates that makes `J v = beta`."""
    from cardan.structure.rows import real_rows  # which assembles

    if not model.has_rows:
        return np.array(v, order="C")
    if has_sparse_rows(model):
        moved, missing, beta = _consistent_large(model, q, v, free, t)
    else:
        with np.errstate(all="ignore"):
            J, beta = constraint_kernels(model)[1](q, *time_argument(model, t))
        _require_defined(model, J)
        missing = beta - (J @ v[..., None])[..., 0]
        moved = np.array(v, order="C")
        moved[..., free] += (np.linalg.pinv(real_rows(model, J[..., free]), rcond=1e-10) @ missing[..., None])[..., 0]
        missing = beta - (J @ moved[..., None])[..., 0]
    left = np.abs(missing).max(axis=-1, initial=0.0)
    held = [repr(name) for name, moves in zip(model.coordinate_names, free, strict=True) if not moves]
    what = f"with the rate of {', '.join(held)} as given" if held else "with its prescribed motions"
    speed = np.maximum(np.abs(v).max(axis=-1, initial=1.0), np.abs(beta).max(axis=-1, initial=1.0))
    if not (left <= 1e-8 * speed).all():
        left = left.max()
        raise ModelError(
            f"model {model.name!r} cannot move like that: {what}, a constraint is broken by {left:.3g} (m/s and rad/s "
            "together); hold fewer joints, or give rates and motions that fit"
        )
    return moved


def _consistent_large(
    model: Model, q: np.ndarray, v: np.ndarray, free: np.ndarray, t: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rates (..., nv), what they leave of `J v = beta` (..., nl), and `beta`, one state after the other."""
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    q, v = (np.broadcast_to(x, (*batch, x.shape[-1])) for x in (q, v))
    found = [consistent_velocity(model.one_of(at), q[at], v[at], free, t) for at in np.ndindex(*batch)]
    moved, missing, beta = (np.array(x).reshape(*batch, -1) for x in zip(*found, strict=True))
    return moved, missing, beta
