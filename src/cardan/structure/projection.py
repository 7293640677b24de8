"""The one way back onto the constraints, from a state that rounding or an integrator's error has moved off them.

    phi(q, t) = 0 (rows at position level)      J v = beta(t) (all rows)

Positions and velocities change as impulses of the constraints would change them: by the change `x` of least kinetic
energy with `J x = b`. That leaves the motion along the constraints as it is. Rows at rate level hold positions too:
a correction moves along them. A state far from the constraints is for `structure.assemble`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.algebra.linsolve import tree_factor, tree_solve
from cardan.algebra.matrix import Matrix, Scalar, beside, constant, mirrored
from cardan.formulation.coordinates import velocity_of_rates
from cardan.formulation.dynamics import constraint_state
from cardan.formulation.law_quantities import closed_rows
from cardan.formulation.light import lent_to_joints
from cardan.formulation.quantity import Inputs, Quantity, square
from cardan.formulation.recursion import unroll
from cardan.formulation.solve import regularisation
from cardan.formulation.spatial import MASS_MATRIX, SPATIAL
from cardan.formulation.tree import PLUS, RATES
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.program.march import March
from cardan.program.program import Port, Program
from cardan.structure.kernels import function_of, parameter_arguments
from cardan.structure.large import correction_kernel, is_divided, usual_independence
from cardan.structure.rows import generic_configurations, kept_rows, usual_key

NEWTON_STEPS = 3  # the gap left is the square of the last one seen
_KERNEL: Slot[None, Kernel] = Slot("projection onto the constraints")
_INDEPENDENCE: Slot[None, Kernel] = Slot("how far rows are from depending on one another")


def _metric(model: Model, inputs: Inputs) -> list[Matrix]:
    """The joint-space inertia, with a little lent to links that have none, so that every change has a size."""
    lent, M = lent_to_joints(model), unroll(MASS_MATRIX, model, {"q": inputs["q"]})[0]
    return [M + constant(np.diag(lent)) if lent.any() else M]


METRIC = Quantity("metric", ("q",), (("M", square),), write=_metric)


@dataclass(frozen=True)
class Projection:
    """Graphs of one model, called on symbols; `rows` are the independent rows in the tree's coordinates.

    At configurations that nothing singles out, `usual` is the largest diagonal of `J M^-1 J^T`, and `independence` how
    far rows are from depending on one another.
    """

    model: Model
    rows: tuple[int, ...]
    usual: np.ndarray
    independence: float
    state: Any
    metric: Any
    tangent: Any
    plus: Any
    rates: Any

    @classmethod
    def of(cls, model: Model) -> Projection:
        """Record the graphs."""
        model = model.unbound
        state = closed_rows(model) if has_modes(model) else constraint_state(model)
        written = (state, METRIC, velocity_of_rates(model), PLUS, RATES)
        graphs = [function_of(model, quantity) for quantity in written]
        rows = tuple(kept_rows(model, SPATIAL)) if model.has_rows else ()
        p = [np.asarray(x) for x in parameter_arguments(model)]
        found = []
        time = (0.0,) if model.depends_on_time else ()
        for q in generic_configurations(model):
            J = np.array(graphs[0](q, *time, *p)[1])[list(rows)]
            found.append(J @ np.linalg.solve(np.array(graphs[1](q, *p)), J.T))
        usual = np.max([np.diag(A) for A in found], axis=0)
        size = np.sqrt(np.maximum(usual, 1e-300))
        least = [np.linalg.eigvalsh(A / np.outer(size, size)).min(initial=1.0) for A in found]
        lawful = tuple(len(model.rows) + k for k in range(len(model.lawful_rows))) if has_modes(model) else ()
        usual = np.concatenate([usual, np.zeros(len(lawful))])  # an open row says nothing
        return cls(model, (*rows, *lawful), usual, float(np.clip(np.median(least), 1e-12, 1.0)), *graphs)

    def at(self, t: Scalar, q: Matrix, parameters: Sequence[Matrix]) -> Correction:
        """What brings states near q onto the constraints."""
        import casadi as ca

        rows = list(self.rows)
        time = (t,) if self.model.depends_on_time else ()
        phi, J, beta = self.state(q, *time, *parameters)
        above = self.model.tree.coordinate_ancestor()
        J = J[rows, :]
        M = self.metric(q, *parameters)
        Y = tree_solve(tree_factor(M, above), above, J.T)
        A = mirrored(J @ Y)
        factor = ca.ldl(A + ca.diag(regularisation(A)), True)
        return Correction(phi, phi[rows, 0], J, beta[rows, 0], M, Y, self.independence * self.usual, factor)

    def moved(self, c: Correction, q: Matrix, v: Matrix, parameters: Sequence[Matrix]) -> tuple[Matrix, Matrix]:
        """Position and velocity moved onto the constraints: one step of Newton's method for both."""
        return self.moved_at_cost(c, q, v, parameters)[:2]

    def moved_at_cost(
        self, c: Correction, q: Matrix, v: Matrix, parameters: Sequence[Matrix]
    ) -> tuple[Matrix, Matrix, Matrix]:
        """The same, and twice the kinetic energy that it takes from the velocities: `r^T A^-1 r`, `r = J v - beta`."""
        change, removed = self.change(c, v)
        return self.plus(q, -change[:, 0], *parameters), v - change[:, 1], removed

    def change(self, c: Correction, v: Matrix) -> tuple[Matrix, Matrix]:
        """What to take from position and velocity, as columns (nv, 2), and twice the kinetic energy that it takes."""
        import casadi as ca

        r = c.J @ v - c.beta
        lam = ca.ldl_solve(beside(c.phi, r), *c.factor)
        return c.Y @ lam, ca.dot(r, lam[:, 1])

    @property
    def at_position_level(self) -> Matrix:
        """1 for each of the rows kept that holds positions, 0 for one that holds rates only."""
        labels = (*self.model.rows, *self.model.lawful_rows)
        return constant(np.array([labels[row].level == "position" for row in self.rows], dtype=float))

    def along(
        self, c: Correction, q: Matrix, dq: Matrix, dv: Matrix, parameters: Sequence[Matrix]
    ) -> tuple[Matrix, Matrix]:
        """The part of an error (nq,), (nv,) that a correction at q leaves; rows at rate level correct rates only."""
        off = c.smallest(beside(self.at_position_level * (c.J @ self.tangent(q, dq, *parameters)), c.J @ dv))
        return dq - self.rates(q, off[:, 0], *parameters), dv - off[:, 1]


@dataclass(frozen=True)
class Correction:
    """The constraints at a configuration, linearised: residuals of `every` row, and `phi`, `J`, `beta` of those kept.

    `M` is the metric, `Y = M^-1 J^T`; `A = J Y` is factored; `size` is what its smallest pivots usually are.
    """

    every: Matrix
    phi: Matrix
    J: Matrix
    beta: Matrix
    M: Matrix
    Y: Matrix
    size: np.ndarray
    factor: Any

    def beside(self, projection: Projection, q: Matrix, dq: Matrix, parameters: Sequence[Matrix]) -> Correction:
        """The same with the residuals at `q + dq`, where `dq` (nq,) is below the rounding of `q`."""
        moved = self.J @ projection.tangent(q, dq, *parameters)
        return replace(self, phi=self.phi + projection.at_position_level * moved)

    def smallest(self, b: Matrix) -> Matrix:
        """The change `x` of least kinetic energy with `J x = b`; where `J` loses rank it stays bounded."""
        import casadi as ca

        return self.Y @ ca.ldl_solve(b, *self.factor)

    def independence(self) -> Matrix:
        """How far the rows are from depending on one another: the smallest pivot of `A`, about 1 where it is usual.

        It falls with the square of the distance from a singular position.
        """
        import casadi as ca

        D, _, order = self.factor
        if not order:  # a loop closed by a joint that holds nothing
            return ca.SX(1)
        return ca.mmin(D * constant(1 / np.maximum(self.size[list(order)], 1e-300)))


def project(
    model: Model, q: np.ndarray, v: np.ndarray, t: np.ndarray | float, *,
    parameters: Sequence[np.ndarray] | None = None, threads: int | Place | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """States (..., nq), (..., nv) near the constraints brought onto them at times `t` (...,), s.

    The third result (...,) is the largest residual (m, rad) before the last step of Newton's method. `parameters` are
    values of the free ones where they are not the model's own.
    """
    t = np.asarray(t, dtype=float)
    p = parameter_arguments(model) if parameters is None else parameters
    if is_divided(model, SPATIAL):
        return _project_large(model, q, v, t, p, threads)
    with np.errstate(all="ignore"):
        found: tuple[np.ndarray, np.ndarray, np.ndarray] = projection_kernel(model)(
            q, v, np.zeros_like(t), t, *p, np.asarray(float(NEWTON_STEPS)), threads=threads
        )
    return found


def _project_large(
    model: Model, q: np.ndarray, v: np.ndarray, t: np.ndarray, parameters: Sequence[np.ndarray], threads: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same of a mechanism that is divided into pieces."""
    kernel, gap = correction_kernel(model, SPATIAL), np.zeros(())
    kernel = kernel.at_values(parameters[0]) if parameters else kernel
    time = (t,) if model.depends_on_time else ()
    with np.errstate(all="ignore"):
        for _ in range(NEWTON_STEPS):
            q, v, _, gap = kernel(q, v, *time, threads=threads)
    return q, v, gap


def independence(model: Model, q: np.ndarray, t: float, parameters: Sequence[np.ndarray]) -> Any:
    """How far the rows are from depending on one another at configurations (..., nq): about 1 where it is usual."""
    if is_divided(model, SPATIAL):
        kernel = correction_kernel(model, SPATIAL)
        kernel = kernel.at_values(parameters[0]) if parameters else kernel
        time = (np.asarray(t, dtype=float),) if model.depends_on_time else ()
        return kernel(q, np.zeros(model.nv), *time)[2] / usual_independence(model, SPATIAL)
    kernel = _INDEPENDENCE.find(model, None, lambda: _independence_kernel(model.unbound))
    values = [p.reshape(-1, p.shape[-1])[0] for p in parameters]
    return kernel(q, np.asarray(float(t)), *values)


def _independence_kernel(model: Model) -> Kernel:
    free = (Port("p", (model.parameters.size,)),) if model.parameters else ()

    def record() -> Any:
        import casadi as ca

        q, t = ca.SX.sym("q", model.nq), ca.SX.sym("t")
        p = [ca.SX.sym("p", model.parameters.size)] if free else []
        return ca.Function("independence", [q, t, *p], [Projection.of(model).at(t, q, p).independence()])

    facts = f"{model.key} independence rows {kept_rows(model, SPATIAL)} usual {usual_key(model)}"
    key = hashlib.sha256(facts.encode()).hexdigest()
    inputs = (Port("q", (model.nq,)), Port("t", ()), *free)
    return compile_program(Program("independence", inputs, (Port("independence", ()),), key, record))


def projection_kernel(model: Model) -> Kernel:
    """Steps of Newton's method on positions and velocities: `q, v, gap, t, (p), limit` to `q, v` and the last gap."""
    return _KERNEL.find(model, None, lambda: _projection_kernel(model.unbound))


def _projection_kernel(model: Model) -> Kernel:
    state = (Port("q", (model.nq,)), Port("v", (model.nv,)), Port("gap", ()))
    free = (Port("p", (model.parameters.size,)),) if model.parameters else ()

    def record() -> March:
        import casadi as ca

        graphs = Projection.of(model)
        q, v, gap, t = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("gap", 1), ("t", 1)))
        p = [ca.SX.sym("p", model.parameters.size)] if free else []
        c = graphs.at(t, q, p)
        after = [*graphs.moved(c, q, v, p), ca.norm_inf(c.every), ca.SX(1)]
        return March(((ca.Function("project", [q, v, gap, t, *p], after), 1),), 3)

    facts = f"{model.key} projection rows {kept_rows(model, SPATIAL)}"
    key = hashlib.sha256(facts.encode()).hexdigest()
    inputs = (*state, Port("t", ()), *free, Port("limit", ()))
    return compile_program(Program("projection", inputs, state, key, record))
