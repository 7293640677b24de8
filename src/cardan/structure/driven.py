"""A mechanism whose driven joints determine its motion: kinematics and kinetostatics as graphs.

With rates `v = (v_d, v_r)`, driven and the rest, and independent constraint rows `J = (J_d, A)`, `A` square:

    A w_r = -J_d w_d        rates for given rates of the driven joints
    A b_r = gamma(w)        accelerations at constant speed
    A^T lam = (f - M a)_r   constraint forces
    u = J_d^T lam - (f - M a)_d     drives: `M a + J^T lam = f + u`

No mass matrix is inverted, so that massless bodies are no exception. `A` is put into block triangular form: its blocks
are the mechanism's Assur groups, dyads of two rows in most linkages. They are solved one after the other. The sign of
a block's determinant tells the two ways in which a dyad can be put together apart; at a dead point it is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.errors import InputError
from cardan.formulation.dynamics import constraint_residual, constraint_state, parts_at
from cardan.formulation.quantity import Inputs, Quantity, fixed, per_velocity
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import PLUS
from cardan.lazy import cached_property
from cardan.model.model import Model
from cardan.structure.kernels import function_of
from cardan.structure.rows import kept_rows, row_sizes


def row_accelerations(model: Model) -> Quantity:
    """`gamma` (nl,) of all rows in the tree's coordinates: `J a = gamma`."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        return [parts_at(model, SPATIAL, inputs).rows.gamma]

    return Quantity("row_accelerations", ("q", "v"), (("gamma", fixed(len(model.rows))),), write=write)


def missing_force(model: Model) -> Quantity:
    """`f - M a` (nv,) at given accelerations, all drives zero."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        return [SPATIAL.missing_force(parts_at(model, SPATIAL, inputs), inputs["a"])]

    return Quantity("missing_force", ("q", "v", "a"), (("tau", per_velocity),), write=write)


def wrenches_at(model: Model) -> Quantity:
    """Wrench (number of joints, 6) of every joint at given accelerations and multipliers `lam` (nl,) of all rows."""
    n = len(model.rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        return [SPATIAL.wrenches(parts_at(model, SPATIAL, inputs), inputs["a"], inputs["lam"])]

    shapes: dict[str, tuple[int, ...]] = {"q": (model.nq,), "v": (model.nv,), "a": (model.nv,), "lam": (n,)}
    outputs = (("f", fixed(len(model.joints), 6)),)
    return Quantity("wrenches_at", tuple(shapes), outputs, write=write, shapes=shapes)


@dataclass(frozen=True)
class BlockTriangular:
    """Rows and columns of the diagonal blocks of a square matrix; a block's rows are zero in the columns after it."""

    blocks: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    @classmethod
    def of(cls, A: Matrix) -> BlockTriangular | None:
        """From the zeros of `A` (n, n); None where they make it singular."""
        import casadi as ca

        pattern = ca.sparsify(A).sparsity()
        count, rows, columns, row_ends, column_ends, *_ = pattern.btf()
        blocks = [
            (tuple(rows[row_ends[k] : row_ends[k + 1]]), tuple(columns[column_ends[k] : column_ends[k + 1]]))
            for k in range(count)
        ]
        if sum(len(r) for r, _ in blocks) != A.shape[0] or any(len(r) != len(c) for r, c in blocks):
            return None
        if any(pattern.has_nz(i, j) for k, (_, c) in enumerate(blocks) for r, _ in blocks[:k] for i in r for j in c):
            blocks.reverse()
        return cls(tuple(blocks))

    def solve(self, A: Matrix, b: Matrix) -> Matrix:
        """`A^-1 b` (n, m)."""
        x = type(A)(*b.shape)
        for rows, columns in self.blocks:
            left = b[rows, :] - A[rows, :] @ x
            x[columns, :] = _inverse_times(A[rows, columns], left)
        return x

    def solve_transposed(self, A: Matrix, b: Matrix) -> Matrix:
        """`A^-T b` (n, m)."""
        x = type(A)(*b.shape)
        for rows, columns in reversed(self.blocks):
            left = b[columns, :] - A[:, columns].T @ x
            x[rows, :] = _inverse_times(A[rows, columns].T, left)
        return x

    def damped(self, A: Matrix, b: Matrix, damping: Callable[[Matrix], Matrix]) -> Matrix:
        """A damped least-squares solution block by block: `damping(b_k)` is added to the diagonal of `A_k^T A_k`."""
        import casadi as ca

        x = type(A)(*b.shape)
        for rows, columns in self.blocks:
            left, B = b[rows, :] - A[rows, :] @ x, A[rows, columns]
            N = B.T @ B + damping(b[rows, :]) * type(A).eye(len(rows))
            g = B.T @ left
            x[columns, :] = _inverse_times(N, g) if len(rows) <= 2 else ca.ldl_solve(g, *ca.ldl(N))
        return x

    def determinants(self, A: Matrix) -> list[Matrix]:
        """Of each block."""
        import casadi as ca

        return [ca.det(A[rows, columns]) for rows, columns in self.blocks]


def _inverse_times(A: Matrix, b: Matrix) -> Matrix:
    """`A^-1 b` of a small dense matrix: by Cramer's rule up to two rows, by QR beyond."""
    import casadi as ca

    if A.shape[0] == 1:
        return b / A
    if A.shape[0] == 2:
        adjugate = ca.vertcat(ca.horzcat(A[1, 1], -A[0, 1]), ca.horzcat(-A[1, 0], A[0, 0]))
        return (adjugate @ b) / (A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0])
    Q, R = ca.qr(A)
    return ca.solve(R, Q.T @ b)


@dataclass(frozen=True)
class Position:
    """What is known of a driven mechanism at a closed configuration.

    `phi` are residuals of the rows kept, by their sizes; `w` rates and `b` accelerations (nv,) for unit speed; `A` the
    rows of the joints that are not driven, and `signs` the determinants of its blocks.
    """

    phi: Matrix
    J: Matrix
    A: Matrix
    w: Matrix
    b: Matrix
    signs: Matrix


class DrivenMechanism:
    """Graphs of a mechanism driven at some joints, called on symbols."""

    def __init__(self, owner: str, model: Model, driven: Sequence[str]) -> None:
        """Record them; refuse a mechanism whose driven joints do not determine its motion."""
        self.model = model = model.unbound
        if model.depends_on_time:
            raise InputError(
                f"{owner}: model {model.name!r} depends on time; leave prescribed motions out and name the driven joint"
            )
        at_rate = [row.name for row in model.rows if row.level != "position"]
        if at_rate:
            raise InputError(f"{owner}: constraint {at_rate[0]!r} is on rates; only positions can be closed")
        self.rows = kept_rows(model, SPATIAL)
        self.sizes = row_sizes(model)[self.rows]
        self.q_places, self.v_places = [], []
        for name in driven:
            q, v = model.q_slice(name), model.v_slice(name)
            if q.stop - q.start != 1:
                kind = model.joint(name).kind
                raise InputError(f"{owner}: joint {name!r} ({kind.name}) has {kind.nq} coordinates; drive one of one")
            self.q_places.append(q.start)
            self.v_places.append(v.start)
        if len(set(self.v_places)) < len(self.v_places):
            raise InputError(f"{owner}: a joint is driven twice; name each once")
        self.rest = [k for k in range(model.nv) if k not in self.v_places]
        if len(self.rest) != len(self.rows):
            freedoms = model.nv - len(self.rows)
            raise InputError(
                f"{owner}: model {model.name!r} has {freedoms} freedom{'s' if freedoms != 1 else ''} and "
                f"{len(self.v_places)} driven joint{'s' if len(self.v_places) != 1 else ''} "
                f"({', '.join(map(repr, driven))}); drive as many joints as it has freedoms"
            )
        units = np.array([unit.startswith("m") for link in model.tree.links for unit in link.kind.v_units])
        length = float(np.max(row_sizes(model), initial=1e-9)) if len(model.rows) else 1.0
        self.scale = np.where(units, length, 1.0)[self.rest]

    # graphs, recorded when first used: compiled code from the cache needs few of them

    @cached_property
    def state(self) -> Any:
        """`phi`, `J` and `beta` of all rows."""
        return function_of(self.model, constraint_state(self.model))

    @cached_property
    def residual(self) -> Any:
        """`phi` of all rows and its exact derivative."""
        return function_of(self.model, constraint_residual(self.model))

    @cached_property
    def gamma(self) -> Any:
        """`gamma` of all rows."""
        return function_of(self.model, row_accelerations(self.model))

    @cached_property
    def missing(self) -> Any:
        """`f - M a`."""
        return function_of(self.model, missing_force(self.model))

    @cached_property
    def wrenches(self) -> Any:
        """Of all joints."""
        return function_of(self.model, wrenches_at(self.model))

    @cached_property
    def plus(self) -> Any:
        """Configuration after a motion."""
        return function_of(self.model, PLUS)

    def structure(self, p: Sequence[Matrix]) -> tuple[BlockTriangular, BlockTriangular]:
        """Blocks of the rows where they are closed, and of the derivative of the residual anywhere."""
        import casadi as ca

        q = ca.SX.sym("q", self.model.nq)
        found = [BlockTriangular.of(A) for A in (self.state(q, *p)[1][self.rows, self.rest], self._slope(q, p)[1])]
        if found[0] is None or found[1] is None:
            names = ", ".join(repr(self.model.rows[k].name) for k in self.rows)
            raise InputError(f"the driven joints leave the rows {names} of model {self.model.name!r} dependent")
        return found[0], found[1]

    def _slope(self, q: Matrix, p: Sequence[Matrix]) -> tuple[Matrix, Matrix]:
        """Residuals by their sizes, and their exact derivative by the scaled rates that are not driven."""
        phi, G = self.residual(q, *p)
        scale = 1 / self.sizes
        return phi[self.rows, 0] * scale, G[self.rows, self.rest] * np.outer(scale, self.scale)

    def closing(self, blocks: BlockTriangular, q: Matrix, p: Sequence[Matrix], damping: float) -> tuple[Matrix, Matrix]:
        """The sum of squares of the residuals by their sizes, and a damped step (nv,) of Newton's method.

        The damping is in proportion to the squares of a block's residuals, so that convergence stays quadratic.
        """
        import casadi as ca

        phi, G = self._slope(q, p)
        x = blocks.damped(G, -phi, lambda r: damping * ca.dot(r, r) + 1e-300)
        step = type(q)(self.model.nv, 1)
        step[self.rest] = x * self.scale
        return ca.dot(phi, phi), step

    def position(self, blocks: BlockTriangular, q: Matrix, p: Sequence[Matrix], ratio: Matrix) -> Position:
        """Rates and accelerations at a closed configuration, the driven joints moving at `ratio`."""
        import casadi as ca

        phi, J, _ = self.state(q, *p)
        J = J[self.rows, :]
        A = J[:, self.rest]
        w, b = type(q)(self.model.nv, 1), type(q)(self.model.nv, 1)
        w[self.v_places] = ratio
        w[self.rest] = blocks.solve(A, -(J[:, self.v_places] @ ratio))
        b[self.rest] = blocks.solve(A, self.gamma(q, w, *p)[self.rows, 0])
        signs = ca.vertcat(*blocks.determinants(A)) if self.rows else type(q)(0, 1)
        return Position(phi[self.rows, 0] / self.sizes, J, A, w, b, signs)

    def forces(
        self, blocks: BlockTriangular, at: Position, q: Matrix, v: Matrix, a: Matrix, p: Sequence[Matrix]
    ) -> tuple[Matrix, Matrix]:
        """Drives of the driven joints, and wrenches (number of joints, 6) of all, at rates and accelerations."""
        missing = self.missing(q, v, a, *p)
        lam = blocks.solve_transposed(at.A, missing[self.rest])
        u = at.J[:, self.v_places].T @ lam - missing[self.v_places]
        every = type(q)(len(self.model.rows), 1)
        for k, row in enumerate(self.rows):
            every[row] = lam[k]
        return u, self.wrenches(q, v, a, every, *p)

    def slope_by_parameters(self, q: Matrix, p: Sequence[Matrix], x: Matrix) -> Matrix:
        """`d phi/dx` of the rows kept, at a fixed configuration, for parameters `p` written in `x`."""
        import casadi as ca

        return ca.jacobian(self.state(q, *p)[0][self.rows, 0], x)


def signs_at(mechanism: DrivenMechanism, blocks: BlockTriangular, q: Any, p: Sequence[np.ndarray]) -> np.ndarray:
    """Signs (blocks,) of the determinants of the blocks at a configuration (nq,): which assembly it is."""
    import casadi as ca

    A = ca.SX(mechanism.state(q, *p)[1][mechanism.rows, mechanism.rest])
    return np.sign([float(d) for d in blocks.determinants(A)])
