"""The equations of motion as one implicit system `F(t, y, y') = 0`, in any formulation's own coordinates.

    stabilised (index 2)   qdot = N v - G^T mu     M vdot + J^T lam = f     J v = beta(t)     phi(q, t) = 0
    index 1                qdot = N v              M vdot + J^T lam = f     J vdot = gamma

with `G = d phi / d q` of the rows at position level, `y = (q, v, lam, mu, W)` or `(q, v, lam, W)`. On the solution
`mu = 0`. Quaternions of unit length are position constraints like the others. The work `W` of all that changes the
energy is integrated with the motion, `Wdot = P`, for the energy balance of the run; it does not act on the steps.

At a position where constraints depend on one another, multipliers are undetermined. Two small numbers, `soft`, keep
the stabilised equations regular there: `J v = beta + soft_0 lam`, `phi = soft_1 mu`.

Source: C. W. Gear, B. Leimkuhler, G. K. Gupta, Automatic integration of Euler-Lagrange equations with constraints,
J. Comput. Appl. Math. 12-13 (1985) 77-90.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, dot, stack
from cardan.formulation.coordinates import into_own, out_of_own, own_equations, tree_state
from cardan.formulation.dynamics import entering_power, motion_and_power
from cardan.formulation.formulation import Formulation, tree_rates
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.kernel import EVENT_KERNELS, Layout, layout_of
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.kernels import FreeKernel, compile_quantity, function_of, symbolic, tree_quantity
from cardan.structure.projection import project


@dataclass(frozen=True)
class DaeLayout:
    """The unknowns of the equations, stabilised or of index 1."""

    of: Layout
    stabilised: bool

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of q, v, lam, mu and W."""
        mu = len(self.of.positions) + len(self.of.unit) if self.stabilised else 0
        return self.of.nq, self.of.nv, len(self.of.rows), mu, 1

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return sum(self.sizes)

    @property
    def name(self) -> str:
        """Everything that distinguishes it from another layout."""
        return f"{self.of.key} {'stabilised' if self.stabilised else 'index1'}"


def about_port(model: Model, formulation: Formulation) -> dict[str, Shape]:
    """The input `about`: a configuration of the tree near which measured angles are taken; none in tree coordinates."""
    return {} if formulation.in_tree else {"about": (model.nq,)}


def dae_state(model: Model, layout: Layout) -> Quantity:
    """`M`, `f`, `J`, `gamma`, `phi`, `G`, `beta` of the rows kept, and `N`, at a state of the formulation."""
    import casadi as ca

    nq, nv, nl, formulation = layout.nq, layout.nv, len(layout.rows), layout.formulation
    shapes: dict[str, Shape] = {"t": (), "q": (nq,), "v": (nv,), "tau": (model.nv,)}
    shapes |= about_port(model, formulation)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        parts = own_equations(model, formulation, s)
        rows, qdot = parts.rows.kept(layout.rows), formulation.rates(model, s["q"], s["v"])
        phi = parts.rows.kept(layout.positions).phi
        G, N = ca.jacobian(phi, s["q"]), ca.jacobian(qdot, s["v"])
        return [parts.M, parts.f, rows.J, rows.gamma, phi, G, rows.beta, N]

    np_ = len(layout.positions)
    outputs = (
        ("M", fixed(nv, nv)), ("f", fixed(nv)), ("J", fixed(nl, nv)), ("gamma", fixed(nl)), ("phi", fixed(np_)),
        ("G", fixed(np_, nq)), ("beta", fixed(nl)), ("N", fixed(nq, nv)),
    )  # fmt: skip
    return Quantity("dae_state", tuple(shapes), outputs, write=write, shapes=shapes)


def dae_residual(model: Model, layout: DaeLayout) -> Quantity:
    """`F` (n,) as a function of time, `y`, `y'`, `soft` and drives."""
    shapes: dict[str, Shape] = {"t": (), "y": (layout.n,), "yp": (layout.n,), "soft": (2,), "tau": (model.nv,)}
    shapes |= about_port(model, layout.of.formulation)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        F, stabiliser = implicit(model, layout, s)
        F[: layout.of.nq] += stabiliser
        return [F]

    return Quantity("dae_residual", tuple(shapes), (("F", fixed(layout.n)),), write=write, shapes=shapes)


def dae_jacobian(model: Model, layout: DaeLayout) -> Quantity:
    """The sparse matrix `dF/dy + cj dF/dy'` (n, n).

    The derivative of `G^T mu` by q is left out: on the solution mu, and with it this derivative, is zero.
    """
    n = layout.n
    shapes: dict[str, Shape] = {"t": (), "cj": (), "y": (n,), "yp": (n,), "soft": (2,), "tau": (model.nv,)}
    shapes |= about_port(model, layout.of.formulation)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        return [newton_matrix(layout, *implicit(model, layout, s), s)]

    return Quantity("dae_jacobian", tuple(shapes), (("K", fixed(n, n)),), write=write, shapes=shapes)


def newton_matrix(layout: DaeLayout, F: Matrix, stabiliser: Matrix, s: Inputs) -> Matrix:
    """`dF/dy + cj dF/dy'` over the symbols `y`, `yp` and `cj`."""
    import casadi as ca

    nq, first = layout.of.nq, sum(layout.sizes[:3])  # of mu
    K = ca.jacobian(F, s["y"]) + s["cj"] * ca.jacobian(F, s["yp"])
    K[:nq, first:] += ca.jacobian(stabiliser, s["y"])[:, first:]
    return ca.sparsify(K)


def explicit_rates(model: Model) -> Quantity:
    """`y'` of `y = (q, v, W)`: `qdot = N v`, the accelerations and the power, for a tree without constraint rows."""
    n = model.nq + model.nv + 1
    shapes: dict[str, Shape] = {"t": (), "y": (n,), "tau": (model.nv,)}
    plain = tree_quantity(SPATIAL, "forward_dynamics")
    forward = plain if model.is_plain else motion_and_power(model, SPATIAL, ())

    def write(model: Model, s: Inputs) -> list[Matrix]:
        state = {"q": s["y"][: model.nq], "v": s["y"][model.nq : n - 1], "tau": s["tau"], "t": s["t"]}
        found = forward.graph(model, {name: state[name] for name in forward.inputs})
        a, P = (found[0], dot(state["tau"], state["v"])) if model.is_plain else found
        return [stack(tree_rates(model, state["q"], state["v"]), a, P)]

    return Quantity("explicit", tuple(shapes), (("ydot", fixed(n)),), write=write, shapes=shapes)


def explicit_jacobian(model: Model) -> Quantity:
    """The sparse matrix `dy'/dy` (n, n) of `explicit`."""
    import casadi as ca

    rates = explicit_rates(model)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        return [ca.sparsify(ca.jacobian(rates.graph(model, s)[0], s["y"]))]

    n = model.nq + model.nv + 1
    return Quantity("explicit_jacobian", rates.inputs, (("K", fixed(n, n)),), write=write, shapes=rates.shapes)


def nonzeros(matrix: Quantity, count: int) -> Quantity:
    """The nonzeros (count,) of a sparse matrix, by columns."""

    def write(model: Model, s: Inputs) -> list[Matrix]:
        return [matrix.graph(model, s)[0].nz[:]]

    return Quantity(matrix.name, matrix.inputs, (("K", fixed(count)),), write=write, shapes=matrix.shapes)


def dae_events(model: Model, layout: DaeLayout, graph: Any) -> Quantity:
    """The events (ne,), a function `graph` of (t, q, v, p) of the tree, as a function of time, `y` and `about`."""
    shapes: dict[str, Shape] = {"t": (), "y": (layout.n,), "about": (model.nq,)}
    nq, nv = layout.of.nq, layout.of.nv
    p = [symbolic(model)[1]] if model.parameters else []

    def write(model: Model, s: Inputs) -> list[Matrix]:
        q, v = s["y"][:nq], s["y"][nq : nq + nv]
        return [graph(s["t"], *tree_state(model, layout.of.formulation, q, v, s["about"]), *p)]

    return Quantity("events", tuple(shapes), (("g", fixed(graph.numel_out(0))),), write=write, shapes=shapes)


def implicit(model: Model, layout: DaeLayout, s: Inputs) -> tuple[Matrix, Matrix]:
    """`F` without the stabilising term, and that term, `G^T mu`."""
    import casadi as ca

    of, ends = layout.of, [int(end) for end in np.cumsum([0, *layout.sizes])]
    q, v, lam, mu, _ = (s["y"][a:b] for a, b in pairwise(ends))
    qdot, vdot, soft = s["yp"][: of.nq], s["yp"][of.nq : of.nq + of.nv], s["soft"]
    parts = own_equations(model, of.formulation, {**s, "q": q, "v": v})
    rows = parts.rows.kept(of.rows)
    moving = [qdot - of.formulation.rates(model, q, v), parts.M @ vdot + rows.J.T @ lam - parts.f]
    worked = s["yp"][layout.n - 1] - entering_power(parts, s["tau"], of.rows, lam)
    if not layout.stabilised:
        return ca.vertcat(*moving, rows.J @ vdot - rows.gamma, worked), ca.SX(of.nq, 1)
    lengths = [(ca.sumsqr(q[k : k + 4]) - 1) / 2 for k in of.unit]
    held = ca.vertcat(parts.rows.kept(of.positions).phi, *lengths)
    F = ca.vertcat(*moving, rows.J @ v - rows.beta - soft[0] * lam, held - soft[1] * mu, worked)
    return F, ca.jtimes(held, q, mu, True)


COMPILED = 3_000  # operations up to which a Jacobian is compiled; beyond, CasADi's interpreter runs it
ROUNDING = 1e-13
YIELDS = 1e-9  # s: softness of position constraints, relative to the size of their derivatives

_KERNELS: Slot[tuple[str, str], Kernel] = Slot("kernels of the multistep methods, free parameters as their last input")
_MATRICES: Slot[tuple[str, str], tuple[Callable[..., Any], Any]] = Slot("Jacobians of the multistep methods")

# The last inputs of every kernel: drives, a configuration of the tree near which measured angles are taken (not in
# tree coordinates), and free parameters (if there are any).
Tail = tuple[np.ndarray, ...]


def kernel_of_row(model: Model, quantity: Quantity, name: str) -> Kernel:
    """The kernel of a quantity, with free parameters as its last input; made on first use."""
    return _KERNELS.find(model, (name, quantity.name), lambda: _row_kernel(model, quantity, name))


def _row_kernel(model: Model, quantity: Quantity, name: str) -> Kernel:
    kernel = compile_quantity(model, quantity, f"gear {name}")
    return kernel.kernel if isinstance(kernel, FreeKernel) else kernel


def matrix_of_row(model: Model, quantity: Quantity, name: str) -> tuple[Callable[..., Any], Any]:
    """A function that fills the nonzeros of a matrix by columns, and their pattern as a SciPy matrix."""

    def make() -> tuple[Callable[..., Any], Any]:
        from scipy.sparse import csc_matrix

        function = function_of(model, quantity)
        of = function.sparsity_out(0)
        pattern = csc_matrix((np.ones(of.nnz()), of.row(), of.colind()), shape=of.shape)
        if function.n_instructions() > COMPILED:
            return _interpreted(function), pattern
        return kernel_of_row(model, nonzeros(quantity, of.nnz()), name).ufunc(wide=False), pattern

    return _MATRICES.find(model, (name, quantity.name), make)


def events_of_row(model: Model, layout: DaeLayout, graph: Any) -> Any:
    """The events (ne,) as a compiled function of (t, y, about)."""
    name = f"{layout.name} {hashlib.sha256(graph.serialize().encode()).hexdigest()}"
    kernel = EVENT_KERNELS.find(model, name, lambda: _row_kernel(model, dae_events(model, layout, graph), name))
    return kernel.ufunc(wide=False)


class ImplicitSystem:
    """The equations of a model in one formulation. Times are in s; arguments called `tail` are made by `tail`."""

    residual: Callable[..., Any]
    jacobian: Callable[..., Any]

    def __init__(self, model: Model, formulation: Formulation, stabilised: bool) -> None:
        self.model, self.is_tree = model, formulation.in_tree
        of = layout_of(model, formulation)
        self.layout = DaeLayout(of, stabilised)
        self.state = kernel_of_row(model, dae_state(model, of), of.key)
        if not self.is_tree:
            self.into = kernel_of_row(model, into_own(model, formulation), of.facts)
            self.out_of = kernel_of_row(model, out_of_own(model, formulation), of.facts)
        self.residual = kernel_of_row(model, dae_residual(model, self.layout), self.layout.name).ufunc(wide=False)
        self.jacobian, self.pattern = matrix_of_row(model, dae_jacobian(model, self.layout), self.layout.name)

    def start(self, t: float, q: np.ndarray, v: np.ndarray, W: float, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """`y` and `y'` (n,) at a consistent state: accelerations and multipliers that satisfy the equations."""
        M, f, J, gamma, *_, N = self.state(np.asarray(t), q, v, *tail)
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        b = np.concatenate([f, gamma])
        try:
            x = np.linalg.solve(K, b)
        except np.linalg.LinAlgError:  # rows depend on one another: take the smallest multipliers
            x = np.linalg.lstsq(K, b, rcond=1e-12)[0]
        rest, nv = np.zeros(self.layout.sizes[3]), len(v)
        y, yp = np.concatenate([q, v, x[nv:], rest, [W]]), np.concatenate([N @ v, x[:nv], 0 * x[nv:], rest, [0.0]])
        F = np.zeros_like(y)
        self.residual(t, y, yp, np.zeros(2), *tail, F)
        yp[-1] = -F[-1]  # the power
        return y, yp

    def soft(self, t: float, y: np.ndarray, tail: Tail, allowed: float) -> np.ndarray:
        """Softness (2,) of the constraints from a start `y` on; `allowed` (m/s) is a velocity that may be neglected."""
        nq, nv = self.layout.of.nq, self.layout.of.nv
        q, v, lam = y[:nq], y[nq:][:nv], y[nq + nv :][: len(self.layout.of.rows)]
        M, _, _, _, _, G, *_ = self.state(np.asarray(t), q, v, *tail)
        force = max(*(float(np.abs(x).max(initial=0.0)) for x in (lam, M)), 1e-300)  # at 1 m/s^2 or more
        size = float(np.mean(np.sum(G * G, axis=1))) if len(G) else 0.0
        return np.array([max(allowed, ROUNDING / 10) / force, YIELDS * size])

    def gap(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> float:
        """Largest residual of the constraints at a state: m, rad, and per second."""
        _, _, J, _, phi, _, beta, _ = self.state(np.asarray(t), q, v, *tail)
        lengths = [q[at : at + 4] @ q[at : at + 4] - 1 for at in self.layout.of.unit]
        return float(np.max(np.abs(np.concatenate([phi, J @ v - beta, np.array(lengths) / 2])), initial=0.0))

    def projected(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the tree on the constraints, from the formulation's own near them."""
        q, v = (np.array(x) for x in self.tree(q, v, tail))
        for at in self.model.quaternions:
            q[at] /= np.linalg.norm(q[at])
        if not self.model.has_rows:
            return q, v
        parameters = tail[1:] if self.is_tree else tail[2:]
        q, v, _ = project(self.model, q, v, t, parameters=parameters)
        return q, v

    def tail(self, about: np.ndarray, tau: np.ndarray, *parameters: np.ndarray) -> Tail:
        """The last inputs of the kernels; `about` (nq,) is read at every call."""
        return (tau, *parameters) if self.is_tree else (tau, about, *parameters)

    def tree(self, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the tree, near `about` in `tail`, and its rates."""
        return (q, v) if self.is_tree else self.out_of(q, v, *tail[1:])

    def own(self, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the formulation from those of the tree."""
        return (q, v) if self.is_tree else self.into(q, v, *tail[2:])


def _interpreted(function: Any) -> Callable[..., None]:
    """A function that CasADi's interpreter evaluates, called like a compiled one."""
    buffer, evaluate = function.buffer()
    arguments = [np.zeros(function.numel_in(k)) for k in range(function.n_in())]
    values = np.zeros(function.nnz_out(0))
    for k, array in enumerate(arguments):
        buffer.set_arg(k, array.data)
    buffer.set_res(0, values.data)

    def fill(*given: Any, kept: Any = buffer) -> None:  # the buffer must live as long as this
        for argument, array in zip(arguments, given[:-1], strict=True):
            argument[:] = array
        evaluate()
        given[-1][:] = values

    return fill
