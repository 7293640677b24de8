"""The condition of a mechanism: how large errors of rounding are in its accelerations and reactions.

`cd.condition` measures it: it runs the programs that answer with noise (`structure.magnification`). A kernel is judged
when it is made and at some of its calls, first by a number that costs little: the condition of `M` and of
`A = J M^-1 J^T`, both with a unit diagonal (A. van der Sluis, Numerische Mathematik 14 (1969) 14-23). Only where this
is large the measurement follows, and a warning if it finds that digits are lost. Docs: docs/robustness.md.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from cardan.errors import ModelError, Removed, no_such_argument
from cardan.formulation.formulation import Formulation
from cardan.formulation.light import light_links
from cardan.formulation.spatial import SPATIAL
from cardan.model.memory import Slot, require_model
from cardan.model.model import Model
from cardan.model.tree import weightless_links
from cardan.model.values import array
from cardan.on_card import is_device_array
from cardan.structure.assemble import assemble, constraint_kernels, flipped
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import equations_at, is_large, parameter_arguments, time_argument, tree_graph, tree_kernel
from cardan.structure.large import is_divided, row_residuals
from cardan.structure.magnification import States, is_recursive, magnified, states_at
from cardan.structure.planarity import prepare
from cardan.structure.rounding import (
    APART,
    DOUBTFUL,
    JUDGED,
    TOO_LARGE,
    disparity,
    say,
    some_values,
    warn_of_tree,
    warn_outside,
)
from cardan.structure.row_sets import is_settled, with_good_rows
from cardan.structure.rows import generic_configurations, kept_rows, row_matrix, row_sizes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

WIDEST = 2400  # unknowns up to which a new kernel is judged
MANY = 16  # links past which a new kernel with six coordinates a body is judged by the tree
OPEN = 1e-4  # of the mechanism's size: a gap beyond it is no drift
LARGER = 10.0  # times the condition of a mass matrix: what the error of solving with it stays below

_JUDGED_AT: Slot[str, bool] = Slot("formulations whose condition was judged at the first configuration given")
_FIRST: Slot[tuple[str, int], bool] = Slot("kernels that were asked for a first answer", by_values=True)
_WORST: Slot[str, float] = Slot("largest condition of matrices that was followed up, by formulation")
_CLOSED: Slot[None, bool] = Slot("whether loops were looked at", by_values=True)
_MASS: Slot[None, Any] = Slot("graph of the mass matrix")


def condition(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, tau: ArrayLike | None = None, *, t: ArrayLike = 0.0,
    formulation: str | Formulation = "spatial", **removed: Unpack[Removed],
) -> NDArray[Any]:  # fmt: skip
    """How large the errors of rounding are (...,) in accelerations and reactions, in units of 2.2e-16.

    It has no `by`: it is a bound, which has kinks.

    The relative error of an answer in float64 stays within 2.2e-16 times this number; 5 to 50 is ideal. It is measured
    at q (..., nq) under loads that nothing singles out; or, if `v` or `tau` (..., nv) are given, at that state, where
    it is large near an equilibrium too. Errors are relative to the largest acceleration in rad/s^2 and in m/s^2, the
    largest force, and the largest moment or that force times the mechanism's size. NaN where q is not finite.
    """
    require_model("condition", model)
    if removed:
        raise no_such_argument("condition", removed)
    q = array("condition", "q", q, model.nq)
    generic = v is None and tau is None
    still = np.zeros(model.nv)
    v, tau = (still if x is None else array("condition", name, x, model.nv) for name, x in (("v", v), ("tau", tau)))
    found = formulation_of(model, formulation)
    prepare(model, found)
    states, batch = states_at(model, q, v, tau, t)
    known = np.isfinite(np.hstack([states.q, states.v, states.tau])).all(axis=-1)
    states = replace(states, q=np.where(known[:, None], states.q, model.start()))
    size = measured(model, found, states, generic=generic).max(axis=-1)
    return np.where(known, size, np.nan).reshape(batch)[()]


def measured(model: Model, formulation: Formulation, states: States, *, generic: bool) -> np.ndarray:
    """Largest relative errors, in units of rounding, of accelerations and reactions (rows, 2)."""
    if is_recursive(model, formulation) and formulation.solves_mass_matrix and is_large(model):
        k = LARGER * np.asarray(_of_mass(np.asarray(tree_kernel(model, "mass_matrix")(states.q))))  # solved by NumPy
        return np.stack([k, k], axis=-1)
    if is_settled(model):
        return magnified(model, formulation, states, generic=generic)
    found = np.empty((len(states.q), 2))
    for i in range(len(states.q)):  # each with rows that are good where it is
        one = States(*(getattr(states, f.name)[i : i + 1] for f in fields(states)))
        member = with_good_rows(model.unbound, states.q[i], states.t[i, 0])
        found[i] = magnified(member, formulation, one, generic=generic)[0]
    return found


def warn_of_condition(model: Model, formulation: Formulation) -> None:
    """Warn, once for a model and a formulation, if its equations are too badly conditioned for float64.

    Of free parameters the values count that are met first, of a batch some.
    """
    if _is_recursive(model, formulation):
        warn_of_tree(model, formulation)
    elif JUDGED.first_time(model, formulation.key) and is_judged(model, formulation):
        for one in some_values(model):
            at = _some_configurations(one, formulation)
            if at and not min(matrix_condition(one, formulation, q, 0.0) for q in at) < DOUBTFUL:
                say(model, formulation, measured_at(one, formulation, np.array(at), 0.0))


def is_judged(model: Model, formulation: Formulation) -> bool:
    """Whether the whole of the equations is looked at: not of a mechanism that is divided into pieces."""
    return 6 * len(model.tree.links) <= WIDEST and not is_divided(model, formulation)


def watch(model: Model, formulation: Formulation, kernel: Any, q: Any, t: Any) -> None:
    """Look at configurations that a kernel is asked for: warn of loops wide open at the first, and of digits lost.

    The first call is looked at, then the 2nd, 4th, 8th ... (`Kernel.watch`), with the rows that `some_rows` takes.
    """
    place = (formulation.key, id(kernel))
    if not _FIRST.first_time(model, place) or _is_recursive(model, formulation):
        return
    if is_device_array(t):
        return
    if is_device_array(q):
        from cardan.machines.cuda.sample import some_rows_on_host  # which the host does without

        q = some_rows_on_host(q, 1, all_of_them=bool(model.batch) or np.ndim(t) > 0)
    try:
        q, t = np.asarray(q, dtype=float), np.asarray(t, dtype=float)
    except (TypeError, ValueError):
        return  # the call itself says what is wrong
    if q.shape[-1:] != (model.nq,):
        return
    warn_of_gap(model, q, t)
    if not is_judged(model, formulation):
        return
    if _JUDGED_AT.first_time(model, formulation.key):
        warn_at(model, formulation, q, t)
    last = -2 if model.parameters else -1  # the argument for time
    kernel.watch(lambda args: warn_at(model, formulation, args[0], args[last] if model.depends_on_time else 0.0))


def warn_at(model: Model, formulation: Formulation, q: Any, t: Any) -> None:
    """Warn if digits are lost at some of the configurations (..., nq): once for a model and a formulation."""
    one, t = some_values(model)[0], np.asarray(t, dtype=float).flat
    try:
        at = some_rows(np.asarray(q, dtype=float).reshape(-1, model.nq))
    except (TypeError, ValueError):
        return  # the call itself says what is wrong
    for k, row in at:
        worst = _WORST.find(model, formulation.key, lambda: DOUBTFUL / 10)
        screened = matrix_condition(one, formulation, row, t[k if k < len(t) else 0]) if np.isfinite(row).all() else 1.0
        if worst < TOO_LARGE and not screened < 10 * worst:
            _WORST.put(model, formulation.key, screened)
            found = measured_at(one, formulation, row, t[k if k < len(t) else 0])
            say(model, formulation, found, " at a q given")
            if not found < TOO_LARGE:
                _WORST.put(model, formulation.key, np.inf)


def some_rows(q: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The first, the middle and the last of many rows, with their numbers."""
    return [(k, q[k]) for k in sorted({0, len(q) // 2, len(q) - 1}) if len(q)]


def take_as_closed(model: Model) -> None:
    """Do not warn of open loops: the caller has looked."""
    _CLOSED.first_time(model, None)


def warn_of_gap(model: Model, q: np.ndarray, t: np.ndarray) -> None:
    """Warn of loops wide open at configurations (..., nq): only the first time that one asks for a model."""
    if not _CLOSED.first_time(model, None) or not model.has_rows:
        return
    if is_divided(model, SPATIAL):
        phi = row_residuals(model, q, np.zeros(model.nv), t)[0]
    else:
        phi = constraint_kernels(model)[0](q, *time_argument(model, t))[0]
    gap = float(np.nanmax(np.abs(phi), initial=0.0))
    if gap > OPEN * float(np.max([row_sizes(one.settled()) for one in some_values(model)], initial=1e-9)):
        warn_outside(
            f"model {model.name!r}: loops or couplings are open by {gap:.3g} (m or rad) at the q given, so what is "
            "computed is that of the equations there, in each formulation its own; close them with cd.assemble, look "
            "with cd.constraint_residual (only a model's first call looks)"
        )
    elif np.isfinite(q).all() and (over := flipped(model, q, t)) is not None:
        warn_outside(
            f"model {model.name!r}: the q given closes {over} with its directions opposite, turned by half a turn; "
            "close it with cd.assemble"
        )


def _some_configurations(model: Model, formulation: Formulation) -> list[np.ndarray]:
    """Configurations that nothing singles out, at the model's values; few where they cost much."""
    configurations, large = generic_configurations(model), 6 * len(model.tree.links) > WIDEST / 6
    found = []
    for q in configurations[:1] if large else configurations[:2] if formulation.in_tree else configurations:
        try:
            found.append(q if model.values is None else assemble(model, q)[0])
        except ModelError:
            continue  # other lengths do not close there
    return found


def _judged_as(model: Model, formulation: Formulation) -> Formulation:
    """The formulation itself; of many links that of the tree, along which both eliminate: its graphs are short."""
    return SPATIAL if formulation.eliminates_along_tree and len(model.tree.links) > MANY else formulation


def measured_at(model: Model, formulation: Formulation, q: np.ndarray, t: Any) -> float:
    """The least of `cd.condition` at configurations (..., nq), in the formulation in whose place it is judged."""
    formulation, still = _judged_as(model, formulation), np.zeros(model.nv)
    return float(measured(model, formulation, states_at(model, q, still, still, t)[0], generic=True).max(axis=1).min())


def matrix_condition(model: Model, formulation: Formulation, q: np.ndarray, t: Any) -> float:
    """The condition of matrices at one configuration."""
    model = with_good_rows(model, q, t)
    prepare(model, formulation)
    formulation = _judged_as(model, formulation).solved_as
    try:
        with np.errstate(all="ignore"):
            found = float((_in_tree if formulation.in_tree else _of_equations)(model, q, t, formulation))
    except np.linalg.LinAlgError:
        return np.inf
    return max(found, DOUBTFUL / APART * found * disparity(model) ** 2)


def _of_equations(model: Model, q: Any, t: Any, formulation: Formulation) -> Any:
    """The condition in the coordinates in which the formulation solves."""
    M, _, J, *_ = equations_at(model, formulation, q, t)
    rows = kept_rows(model, formulation)
    return _of_saddle(M, J[..., rows, :], _sizes(model, formulation, rows), lent=_lends(model, formulation))


def _in_tree(model: Model, q: np.ndarray, t: Any, formulation: Formulation) -> Any:
    """The condition in tree coordinates, from the parts that closing loops needs anyway."""
    if is_large(model):
        M = np.asarray(tree_kernel(model, "mass_matrix")(q))
    else:
        graph = _MASS.find(model, None, lambda: tree_graph(model, "mass_matrix"))
        M = np.array(graph(q, *parameter_arguments(model)))
    rows = kept_rows(model, formulation)
    return _of_saddle(M, row_matrix(model, q)[rows], _sizes(model, formulation, rows), lent=_lends(model, formulation))


def _is_recursive(model: Model, formulation: Formulation) -> bool:
    """Whether a motion is found along the tree alone."""
    return (formulation.in_tree or formulation.eliminates_along_tree) and not model.has_rows


def _of_mass(M: np.ndarray) -> Any:
    """Condition of a symmetric matrix scaled to a unit diagonal; infinite where that is not positive definite."""
    if M.shape[-1] == 0:
        return np.ones(M.shape[:-2])
    size = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
    with np.errstate(all="ignore"):
        scaled = M / (size[..., :, None] * size[..., None, :])
    sound = np.isfinite(scaled).all(axis=(-2, -1))
    values = np.linalg.eigvalsh(np.where(sound[..., None, None], scaled, np.eye(M.shape[-1])))
    least = np.where(sound, values[..., 0], 0.0)
    return np.where(least > 0, values[..., -1] / np.where(least > 0, least, 1.0), np.inf)[()]


def _lends(model: Model, formulation: Formulation) -> bool:
    """Whether a formulation lends inertia to links that have none, which the constraints then hold."""
    if formulation.in_tree:
        return bool(weightless_links(model.tree))
    return bool(light_links(model))


def _sizes(model: Model, formulation: Formulation, rows: list[int]) -> np.ndarray:
    """What entries of the rows (rows, nv) are computed from; nothing where they are never short.

    Along a tree they are sums that may cancel: arms of forces have the mechanism's size, directions that of one.
    """
    if not formulation.in_tree:
        return np.zeros((len(rows), 1))
    labels = [model.rows[row] for row in rows]
    turning = np.array([unit == "rad/s" for link in model.tree.links for unit in link.kind.v_units], dtype=bool)
    along = np.array([0.0 if label.unit == "rad" and label.owner.startswith("joint") else 1.0 for label in labels])
    sizes = np.max([row_sizes(one.settled()) for one in some_values(model)], axis=0)
    return np.where(turning, sizes[rows][:, None], along[:, None])


def _of_saddle(M: np.ndarray, J: np.ndarray, sizes: np.ndarray, *, lent: bool) -> Any:
    """The larger of the conditions of `M` and of `J M^-1 J^T`, whose rows may have lost digits already.

    Where rows hold what has no inertia it is the condition of both together.
    """
    of_mass = np.asarray(_of_mass(M))
    if lent:
        return _of_both(M, J)
    sound = of_mass < np.inf
    size = np.sqrt(np.where(sound[..., None], np.diagonal(M, axis1=-2, axis2=-1), 1.0))
    unit = np.where(sound[..., None, None], M / (size[..., :, None] * size[..., None, :]), np.eye(M.shape[-1]))
    values, axes = np.linalg.eigh(unit)
    half = (J / size[..., None, :]) @ axes / np.sqrt(np.maximum(values, 1e-300))[..., None, :]  # half @ half.T is A
    half = half / np.maximum(np.linalg.norm(half, axis=-1, keepdims=True), 1e-300)
    singular = np.linalg.svd(half, compute_uv=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        weighed, rough = (np.linalg.norm(x / size[..., None, :], axis=-1) for x in (J, np.where(J != 0, sizes, 0.0)))
        lost = np.where(weighed > 0, np.maximum(rough / weighed, 1.0), np.inf).max(axis=-1, initial=1.0)
        of_rows = lost * (singular[..., 0] / singular[..., -1]) ** 2 if J.shape[-2] else np.ones_like(of_mass)
    return np.where(sound, np.maximum(of_mass, of_rows), np.inf)[()]


def _of_both(M: np.ndarray, J: np.ndarray) -> Any:
    """Condition of the matrix of the whole system, its rows and columns scaled alike."""
    size = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
    size = np.where(size > 0, size, 1.0)
    M, J = M / (size[..., :, None] * size[..., None, :]), J / size[..., None, :]
    J = J / np.maximum(np.linalg.norm(J, axis=-1, keepdims=True), 1e-300)
    zero = np.zeros((*J.shape[:-1], J.shape[-2]))
    return np.linalg.cond(np.block([[M, np.swapaxes(J, -1, -2)], [J, zero]]))
