"""Rows chosen again where the mechanism is: for those whose constraints depend on one another by their geometry alone.

A planar loop leaves the same rows out wherever it is. In a Bennett or Bricard linkage, in a parallelogram of three
cranks, or in a mechanism whose modes of motion differ in their freedoms, rows depend on one another only because the
loops are closed as they are, and which of them can be left out changes on the way. There every state is given rows that
are independent at it and span the others. Each choice is a model of its own, `model.rows_at`, with its own kernels.
Docs: docs/decisions/0028.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cardan.algebra.linsolve import tree_factor, tree_solve
from cardan.algebra.matrix import Matrix, constant, mirrored
from cardan.errors import ModelError
from cardan.formulation.dynamics import constraint_rows, time_port
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.formulation.solve import regularisation
from cardan.model.memory import KernelSlot, Slot
from cardan.model.model import Model
from cardan.on_card import require_host
from cardan.structure.assemble import constraint_kernels, moved_by
from cardan.structure.kernels import (
    LOOP_PAST,
    FreeKernel,
    compile_quantity,
    parameter_arguments,
    time_argument,
    tree_kernel,
)
from cardan.structure.projection import METRIC
from cardan.structure.rows import (
    ROUNDING,
    generic_configurations,
    independent_rows,
    real_rows,
    row_matrix,
    row_sizes,
    usual_key,
)
from cardan.structure.sparse_rank import left_out_by_plane, spans
from cardan.structure.sparse_rows import has_sparse_rows

# Relative to what is usual for a row, as squares of sines: smaller pivots of the rows kept ask for another choice, and
# so does a larger part of a row left out that the rows kept do not span.
INDEPENDENT, SPANNED = 1e-3, 1e-10
RANK = 1e-5  # of the largest singular value: smaller ones are zero
GOOD = 0.3  # of the best smallest singular value that any rows have there: such a choice need not be changed
OPEN_TRIALS = 6

_SETTLED: Slot[None, bool] = Slot("whether one choice of rows serves everywhere")
_SETS: Slot[None, RowSets] = Slot("choices of rows, with the configurations they were made at")
_TURNED: Slot[None, np.ndarray] = Slot("rates that change the constraint rows")
_QUALITY: KernelSlot[None] = KernelSlot("how good the choice of rows is at a configuration")


def is_settled(model: Model) -> bool:
    """Whether one choice of rows serves at every configuration: what it leaves out depends on it also in open loops."""
    if not model.has_rows or model.rows_at is not None:
        return True
    return _SETTLED.find(model, None, lambda: _is_settled(model.unbound))


def _is_settled(model: Model) -> bool:
    rows = independent_rows(model)
    if len(rows) == len(model.rows):
        return True
    if has_sparse_rows(model):
        return _is_settled_large(model, rows)
    rng = np.random.default_rng(2)
    places = generic_configurations(model)
    for _ in range(OPEN_TRIALS):
        places.append(np.asarray(tree_kernel(model, "plus")(places[0], rng.uniform(-1.5, 1.5, model.nv))))
    every = np.asarray(constraint_kernels(model)[1](np.array(places), *time_argument(model, 0.0))[0])
    if not np.delete(real_rows(model, every), rows, axis=1).any():
        return True  # what is left out is nothing: out of the plane in which the mechanism moves
    found = _judged(model, np.array(places), rows)
    return bool((found >= GOOD / 10).all())


def _is_settled_large(model: Model, rows: list[int]) -> bool:
    if len(rows) + len(left_out_by_plane(model)) == len(model.rows):
        return True
    rng, q = np.random.default_rng(2), generic_configurations(model)[0]
    if all(spans(model, moved_by(model, q, rng.uniform(-0.5, 0.5, model.nv)), rows) for _ in range(2)):
        return True
    raise ModelError(
        f"model {model.name!r}: {len(model.rows) - len(rows)} of its constraint rows are redundant only because its "
        f"loops are closed as they are; with more than {LOOP_PAST} links rows are not chosen again on the way; leave "
        "out joints that hold what others hold already"
    )


def _judged(model: Model, q: np.ndarray, rows: list[int], t: Any = 0.0) -> np.ndarray:
    """Smallest singular value (n,) of some rows at configurations (n, nq), relative to the smallest of all rows.

    Zero where they do not span all rows.
    """
    J = np.asarray(constraint_kernels(model)[1](q, *time_argument(model, t))[0]) / row_sizes(model)[:, None]
    every, own = (np.linalg.svd(x, compute_uv=False) for x in (J, J[:, rows]))
    rank = (every > np.maximum(RANK * every[:, :1], ROUNDING)).sum(axis=1)
    last = np.maximum(rank - 1, 0)[:, None]
    if own.shape[1] == 0:
        return np.where(rank == 0, 1.0, 0.0)
    smallest = np.take_along_axis(own, np.minimum(last, own.shape[1] - 1), 1)[:, 0]
    found = smallest / np.maximum(np.take_along_axis(every, last, 1)[:, 0], 1e-300)
    return np.where(rank == len(rows), found, np.where(rank < len(rows), GOOD * (rank == 0), 0.0))


@dataclass
class RowSets:
    """Choices of rows of one model so far; the first is that of the model itself."""

    model: Model
    members: list[Model] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with the model's own."""
        self.members, self.rows = [self.model], [independent_rows(self.model)]

    def choose(self, model: Model, q: np.ndarray, t: Any = 0.0, before: int = 0) -> np.ndarray:
        """The number of a good choice at each configuration (n, nq); `before` is preferred.

        `model` may be at values (n, size) of its free parameters.
        """
        found = np.full(len(q), -1)
        known = [before, *(k for k in range(len(self.members)) if k != before)]
        quality = np.zeros((len(q), len(known)))
        for place, k in enumerate(known):
            left = np.flatnonzero(found < 0)
            if not len(left):
                return found
            quality[left, place] = _judged(_at(model, left), q[left], self.rows[k], _part(t, left))
            found[left[quality[left, place] >= GOOD]] = k
        for i in np.flatnonzero((found < 0) & np.isfinite(q).all(axis=1)):
            rows, here = self._new(q[i]), np.array([i])
            own = float(_judged(_at(model, here), q[here], self.rows[rows], _part(t, here))[0])
            found[i] = rows if own >= quality[i].max() else known[int(np.argmax(quality[i]))]
        return np.where(found < 0, before, found)

    def _new(self, q: np.ndarray) -> int:
        """The choice at a configuration (nq,), added if it is new."""
        made = replace(self.model, rows_at=np.array(q))
        rows = independent_rows(made)
        if rows not in self.rows:
            self.rows.append(rows)
            self.members.append(made)
        return self.rows.index(rows)


def rates_that_turn_rows(model: Model) -> np.ndarray:
    """Which rates (nv,) change the constraint rows: the spin of a wheel that rolls does not."""
    return _TURNED.find(model, None, lambda: _rates_that_turn_rows(model.unbound))


def _rates_that_turn_rows(model: Model) -> np.ndarray:
    moved = 0.3 * np.eye(model.nv)
    found = np.zeros(model.nv, dtype=bool)
    for q in generic_configurations(model):
        places = np.asarray(tree_kernel(model, "plus")(np.broadcast_to(q, (model.nv, model.nq)), moved))
        J = np.asarray(constraint_kernels(model)[1](places, *time_argument(model, 0.0))[0])
        found |= np.abs(J - row_matrix(model, q)).max(axis=(1, 2)) > 1e-9 * np.abs(J).max()
    return found


def with_good_rows(model: Model, q: np.ndarray, t: Any = 0.0) -> Model:
    """The model with rows that are good at a configuration (nq,); itself where one choice serves everywhere."""
    if is_settled(model):
        return model
    sets = row_sets(model)
    member = sets.members[int(sets.choose(model, np.asarray(q, dtype=float)[None], t)[0])]
    return member if model.values is None else member._bound(model.values)


def _at(model: Model, which: np.ndarray) -> Model:
    """The model at some of a batch of values of its free parameters."""
    return model if not model.batch else model.unbound._bound(model.values[which])  # type: ignore[index]


def _part(t: Any, which: np.ndarray) -> Any:
    t = np.asarray(t, dtype=float)
    return t[which] if t.ndim else t


def row_sets(model: Model) -> RowSets:
    """The choices of rows of a model."""
    return _SETS.find(model, None, lambda: RowSets(model.unbound))


def _quality(model: Model, rows: list[int]) -> Quantity:
    """Smallest pivot of the rows kept, and the largest part of one left out that they do not span, by usual sizes."""
    usual = np.max([np.sum(row_matrix(model, q) ** 2, axis=1) for q in generic_configurations(model)], axis=0)
    usual = np.maximum(usual, 1e-6 * row_sizes(model) ** 2)
    out = [k for k in range(len(model.rows)) if k not in rows]

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        J = constraint_rows(model).graph(model, inputs)[0] / constant(np.sqrt(usual))
        if not rows:
            return [ca.SX(1), ca.mmax(ca.sum2(J**2))]
        above = model.tree.coordinate_ancestor()
        M = METRIC.graph(model, {"q": inputs["q"]})[0]
        L = tree_factor(M / ca.trace(M), above)
        Y = tree_solve(L, above, J.T)
        A = mirrored(J[rows, :] @ Y[:, rows])
        size = ca.diag(A)
        D, LT, p = ca.ldl(A + ca.diag(regularisation(A)), True)
        cross = J[rows, :] @ Y[:, out]
        missing = [
            (J[d, :] @ Y[:, d] - ca.dot(cross[:, i], ca.ldl_solve(cross[:, i], D, LT, p))) for i, d in enumerate(out)
        ]
        scale = ca.fmax(ca.mmax(size), 1e-300)
        return [ca.mmin(D) / scale, ca.mmax(ca.vertcat(*missing)) / scale]

    outputs = (("independent", fixed()), ("missing", fixed()))
    return Quantity("row_quality", ("q", *time_port(model)), outputs, write=write)


def _quality_kernel(model: Model) -> Any:
    def make() -> Any:
        home = model.unbound
        rows = independent_rows(home)
        return compile_quantity(home, _quality(home, rows), f"rows {rows} usual {usual_key(home)}")

    return _QUALITY.find(model, None, make)


class ChoosingKernel:
    """A kernel that solves with constraint rows, called with rows that are good at each state.

    `kernel_of` makes the kernel of a model with one choice of rows. The first argument is `q`.
    """

    def __init__(self, model: Model, kernel_of: Callable[[Model], Any]) -> None:
        self.model, self.kernel_of = model, kernel_of

    def at_values(self, p: np.ndarray) -> ChoosingKernel:
        """The same at other values (..., size) of the free parameters."""
        return ChoosingKernel(self.model.unbound._bound(p), self.kernel_of)

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        """Evaluate like any kernel: with the first choice of rows, and again where that is not good."""
        kernel, p = self.first, parameter_arguments(self.model)
        for port, x in zip(kernel.program.inputs, args, strict=False):
            require_host(
                f"{kernel.program.name} of model {self.model.name!r}, whose constraint rows are chosen at each state",
                **{port.name: x},
            )
        result = kernel(*args, *p, out=out, threads=threads)
        arrays = [np.asarray(x) for x in (*args, *p)]
        place = [port.name for port in kernel.program.inputs].index("t") if self.model.depends_on_time else 0
        when = (arrays[place],) if self.model.depends_on_time else ()
        with np.errstate(all="ignore"):
            independent, missing = _quality_kernel(self.model)(arrays[0], *when, threads=threads)
        if np.all((independent >= INDEPENDENT) & (missing <= SPANNED)):
            return result
        results = result if isinstance(result, tuple) else (result,)
        ends, ways = ([port.shape for port in ports] for ports in (kernel.program.inputs, kernel.program.outputs))
        batch = results[0].shape[: results[0].ndim - len(ways[0])]
        flat = [np.broadcast_to(x, batch + own).reshape(-1, *own) for x, own in zip(arrays, ends, strict=True)]
        model = self.model.unbound._bound(flat[-1]) if p else self.model
        chosen = row_sets(self.model).choose(model, flat[0], flat[place] if when else 0.0)
        found = [x.reshape(len(flat[0]), *end).copy() for x, end in zip(results, ways, strict=True)]
        for k in set(chosen.tolist()) - {0}:
            again = self._kernel(k)(*(x[chosen == k] for x in flat), threads=threads)
            for whole, part in zip(found, again if isinstance(again, tuple) else (again,), strict=True):
                whole[chosen == k] = part
        shaped = tuple(x.reshape(old.shape) for x, old in zip(found, results, strict=True))
        if out is None:
            return shaped if isinstance(result, tuple) else shaped[0]
        out[...] = shaped[0]
        return out

    @property
    def first(self) -> Any:
        """The kernel with the first choice of rows, which takes the free parameters as its last argument."""
        return self._kernel(0)

    def watch(self, look: Callable[[tuple[Any, ...]], None], closely: int = 0) -> None:
        """Look at the arguments of some calls, as `Kernel.watch` does."""
        self.first.watch(look, closely)

    def _kernel(self, k: int) -> Any:
        """The kernel of one choice, which takes the free parameters as its last argument."""
        kernel = self.kernel_of(row_sets(self.model).members[k])
        return kernel.kernel if isinstance(kernel, FreeKernel) else kernel
