"""The equations of motion as one implicit system `F(t, y, y') = 0`, in any formulation's own coordinates.

    stabilised (index 2)   qdot = N v - G^T mu     M vdot + J^T lam = f     J v = beta(t)     phi(q, t) = 0
    index 1                qdot = N v              M vdot + J^T lam = f     J vdot = gamma

with `G = d phi / d q` of the rows at position level, `y = (q, v, lam, mu, W)` or `(q, v, lam, W)`. On the solution
`mu = 0`. Quaternions of unit length are position constraints like the others. The work `W` of all that changes the
energy is integrated with the motion, `Wdot = P`, for the energy balance of the run; it does not act on the steps.

Rows with laws (`model.modes`) have their forces `x` below `lam`, and those that are gaps their `mu` below that of the
others. A closed row is a constraint like the others; of an open one the equations are `x = ` the given force, `mu = 0`.

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
from cardan.formulation.coordinates import into_own, law_unknowns, out_of_own, own_equations, tree_state
from cardan.formulation.dynamics import entering_power, law_motion_at, motion_and_power
from cardan.formulation.formulation import Formulation, Parts, tree_rates
from cardan.formulation.law_motion import LawMotion
from cardan.formulation.modes import law_forces, mode_equations, modes_of
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.state_rates import answers_read, rates_of_states, state_rates
from cardan.integrate.kernel import EVENT_KERNELS, Layout, at_states, layout_of
from cardan.integrate.whole import Columns
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.modes import MODE
from cardan.program.program import Port
from cardan.structure.component_sums import evaluator
from cardan.structure.kernels import (
    FreeKernel,
    compile_quantity,
    function_of,
    kernel_of,
    rates_facts,
    symbolic,
    tree_quantity,
    warn_of_straight_line,
)
from cardan.structure.projection import project


@dataclass(frozen=True)
class DaeLayout:
    """The unknowns of the equations, stabilised or of index 1."""

    of: Layout
    stabilised: bool
    states: tuple[int, ...] = ()
    """Places in `p` of the parameters that are integrated with the motion."""
    rates: str = ""
    """What tells their rates from others."""

    @classmethod
    def with_states(cls, model: Model, of: Layout, stabilised: bool) -> DaeLayout:
        """The layout of a model with the states that it has beside `q` and `v`."""
        return cls(of, stabilised, model.parameters.states, rates_facts(model))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of q, v, lam with the forces of rows with laws, mu, states and W."""
        of = self.of
        mu = len(of.positions) + len(of.unit) + len(of.gaps) if self.stabilised else 0
        return of.nq, of.nv, len(of.rows) + of.laws, mu, len(self.states), 1

    @property
    def laws(self) -> slice:
        """Where the forces of rows with laws are among the unknowns."""
        end = sum(self.sizes[:3])
        return slice(end - self.of.laws, end)

    @property
    def x(self) -> slice:
        """Where the states are among the unknowns."""
        return slice(self.n - 1 - len(self.states), self.n - 1)

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return sum(self.sizes)

    @property
    def name(self) -> str:
        """Everything that distinguishes it from another layout."""
        return f"{self.of.key} {'stabilised' if self.stabilised else 'index1'}{self.rates and f' states {self.rates}'}"


def about_port(model: Model, formulation: Formulation) -> dict[str, Shape]:
    """The input `about`: a configuration of the tree near which measured angles are taken; none in tree coordinates."""
    return {} if formulation.in_tree else {"about": (model.nq,)}


def newton_matrix(layout: DaeLayout, F: Matrix, stabiliser: Matrix, s: Inputs) -> Matrix:
    """`dF/dy + cj dF/dy'` over the symbols `y`, `yp` and `cj`."""
    import casadi as ca

    nq, first = layout.of.nq, sum(layout.sizes[:3])  # of mu
    K = ca.jacobian(F, s["y"]) + s["cj"] * ca.jacobian(F, s["yp"])
    K[:nq, first:] += ca.jacobian(stabiliser, s["y"])[:, first:]
    return ca.sparsify(K)


def explicit_rates(model: Model) -> Quantity:
    """`y'` of `y = (q, v, W)`: `qdot = N v`, the accelerations and the power, for a tree without constraint rows."""
    states = model.parameters.states
    n, free = model.nq + model.nv + len(states) + 1, model
    shapes: dict[str, Shape] = {"t": (), "y": (n,), "tau": (model.nv,)}
    plain = tree_quantity(SPATIAL, "forward_dynamics")
    sights = answers_read(model)
    is_plain = model.is_plain and not sights
    forward = plain if is_plain else motion_and_power(model, SPATIAL, (), sights)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        v = s["y"][model.nq : model.nq + model.nv]
        state = {"q": s["y"][: model.nq], "v": v, "tau": s["tau"], "t": s["t"]}
        found = forward.graph(model, {name: state[name] for name in forward.inputs})
        a, P, *read = (found[0], dot(state["tau"], state["v"])) if is_plain else found
        if not states:
            return [stack(tree_rates(model, state["q"], state["v"]), a, P)]
        given = {name: state[name] for name in ("q", "v", "t")} | dict(zip(("y",), read, strict=False))
        rates = state_rates(free).graph(model, given)[0]
        ydot = stack(tree_rates(model, state["q"], state["v"]), a, rates, P)
        return at_states(free, states, s["y"][n - 1 - len(states) : n - 1], [ydot])

    return Quantity("explicit", tuple(shapes), (("ydot", fixed(n)),), write=write, shapes=shapes)


def explicit_jacobian(model: Model) -> Quantity:
    """The sparse matrix `dy'/dy` (n, n) of `explicit`."""
    import casadi as ca

    rates = explicit_rates(model)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        return [ca.sparsify(ca.jacobian(rates.graph(model, s)[0], s["y"]))]

    n = model.nq + model.nv + len(model.parameters.states) + 1
    return Quantity("explicit_jacobian", rates.inputs, (("K", fixed(n, n)),), write=write, shapes=rates.shapes)


def dae_events(model: Model, layout: DaeLayout, graph: Any) -> Quantity:
    """The events (ne,), a function `graph` of (t, q, v, tau, p) of the tree, from time, `y`, drives and `about`."""
    shapes: dict[str, Shape] = {"t": (), "y": (layout.n,), "tau": (model.nv,), "about": (model.nq,)}
    nq, nv = layout.of.nq, layout.of.nv
    p, free = [symbolic(model)[1]] if model.parameters else [], model

    def write(model: Model, s: Inputs) -> list[Matrix]:
        q, v = s["y"][:nq], s["y"][nq : nq + nv]
        found = [graph(s["t"], *tree_state(model, layout.of.formulation, q, v, s["about"]), s["tau"], *p)]
        return at_states(free, layout.states, s["y"][layout.x], found)

    return Quantity("events", tuple(shapes), (("g", fixed(graph.numel_out(0))),), write=write, shapes=shapes)


def implicit(model: Model, layout: DaeLayout, s: Inputs) -> tuple[Matrix, Matrix]:
    """`F` without the stabilising term, and that term, `G^T mu`."""
    return implicit_of(layout, parts_of(model, layout, s), s)


def parts_of(model: Model, layout: DaeLayout, s: Inputs) -> Parts:
    """The equations at the state `y`."""
    nq, nv, *_ = layout.sizes
    state = {**s, "q": s["y"][:nq], "v": s["y"][nq : nq + nv]}
    return own_equations(model, layout.of.formulation, state, s["y"][layout.laws] if layout.of.laws else None)


def implicit_of(layout: DaeLayout, parts: Parts, s: Inputs) -> tuple[Matrix, Matrix]:
    """The same of equations at the state `y`."""
    import casadi as ca

    of, ends = layout.of, [int(end) for end in np.cumsum([0, *layout.sizes])]
    q, v, forces, mu, *_ = (s["y"][a:b] for a, b in pairwise(ends))
    lam, x = ca.vertsplit(forces, [0, len(of.rows), forces.shape[0]])
    qdot, vdot, soft = s["yp"][: of.nq], s["yp"][of.nq : of.nq + of.nv], s["soft"]
    rows = parts.rows.kept(of.rows)
    rates = of.formulation.rates(parts.model, q, v)
    moving = [qdot - rates, of.formulation.inertia_force(parts, vdot) + rows.J.T @ lam - parts.f]
    power, at = entering_power(parts, s["tau"], of.rows, lam), None
    if of.laws:
        at = law_unknowns(parts.model, parts, of.formulation, of.rows, {**s, "q": q, "v": v}, (vdot, lam, x))
        power = power + at.power
    last = ca.vertcat(s["yp"][layout.x] - s["xdot"] if layout.states else ca.SX(0, 1), s["yp"][layout.n - 1] - power)
    if not layout.stabilised:
        accelerations = [
            rows.J @ vdot - rows.gamma,
            *([] if at is None else [mode_equations(at, at.rows.J @ vdot - at.rows.gamma)]),
        ]
        return ca.vertcat(*moving, *accelerations, last), ca.SX(of.nq, 1)
    velocities = [rows.J @ v - rows.beta - soft[0] * lam]
    velocities += [] if at is None else [mode_equations(at, at.u + soft[0] * x)]
    lengths = [(ca.sumsqr(q[k : k + 4]) - 1) / 2 for k in of.unit]
    held = ca.vertcat(parts.rows.kept(of.positions).phi, *lengths, closed_gaps(of, at))
    yields = soft[1] * mu
    if of.gaps:
        first, mode = held.shape[0] - len(of.gaps), modes_of(parts.model, MODE)
        yields[first:] += (1 - mode[list(of.gaps), 0]) * mu[first:]
    return ca.vertcat(*moving, *velocities, held - yields, last), ca.jtimes(held, q, mu, True)


def closed_gaps(of: Layout, at: LawMotion | None) -> Matrix:
    """Gaps that are closed, m or rad, zero where they are open; none of a model without modes."""
    import casadi as ca

    gaps = list(of.gaps)
    return ca.SX(0, 1) if at is None else modes_of(at.model, MODE)[gaps, 0] * at.rows.phi[gaps, 0]


@dataclass(frozen=True)
class DaeGraphs:
    """The equations over symbols, recorded once.

    `state` gives `M`, `f`, `J`, `gamma` of the rows kept, the forces `x` of rows with laws, `phi`, `G` and `J v - beta`
    of the rows kept and those that are closed, and `N`, from `t, q, v`. `residual` gives `F` (n,) from `t, y, yp,
    soft`. Both take drives, `about` and free parameters after these, as `matrix` does.
    """

    state: Any
    residual: Any
    s: Inputs
    last: tuple[Matrix, ...]
    F: Matrix
    stabiliser: Matrix
    layout: DaeLayout

    @classmethod
    def record(cls, model: Model, layout: DaeLayout) -> DaeGraphs:
        """Write the equations of a model."""
        import casadi as ca

        warn_of_straight_line(model, "dae_residual")
        (written, p), of = symbolic(model), layout.of
        n, nq, nv = layout.n, of.nq, of.nv
        sizes = {"t": 1, "cj": 1, "y": n, "yp": n, "soft": 2, "tau": model.nv}
        s = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
        s |= {} if of.formulation.in_tree else {"about": ca.SX.sym("about", model.nq)}
        parts = parts_of(written, layout, s)
        if layout.states:
            lam, place = s["y"][nq + nv : nq + nv + len(of.rows)], {**s, "q": s["y"][:nq], "v": s["y"][nq : nq + nv]}
            unknowns = (s["yp"][nq : nq + nv], lam, s["y"][layout.laws])
            s["xdot"] = rates_of_states(model, parts, of.formulation, of.rows, place, unknowns)
        F, stabiliser = at_states(model, layout.states, s["y"][layout.x], [*implicit_of(layout, parts, s)])
        last = (s["tau"], *([s["about"]] if "about" in s else []), *([p] if model.parameters else []))
        q, v = s["y"][:nq], s["y"][nq : nq + nv]
        N = ca.jacobian(of.formulation.rates(written, q, v), v)
        f, x, rows, phi = parts.f, ca.SX(0, 1), parts.rows.kept(of.rows), parts.rows.kept(of.positions).phi
        excess = rows.J @ v - rows.beta
        if of.laws:
            place = {**s, "q": q, "v": v}
            unknowns = (s["yp"][nq : nq + nv], rows.gamma, s["y"][layout.laws])
            at = law_unknowns(written, parts, of.formulation, of.rows, place, unknowns)
            phi = ca.vertcat(phi, closed_gaps(of, at))
            excess = ca.vertcat(excess, modes_of(written, MODE) * at.u)
            tree = tree_state(written, of.formulation, q, v, s.get("about", q))
            x = law_forces(law_motion_at(written, of.formulation, of.rows, {**s, "q": tree[0], "v": tree[1]}))
            f = at.at(x, [f])[0]
        state = (parts.M, f, rows.J, rows.gamma, x, phi, ca.jacobian(phi, q), excess, N)
        found = [ca.densify(value) for value in state]
        whole = ca.vertcat(F[:nq] + stabiliser, F[nq:])
        return cls(
            ca.Function("dae_state", [s["t"], q, v, *last], found),
            ca.Function("dae_residual", [s["t"], s["y"], s["yp"], s["soft"], *last], [ca.densify(whole)]),
            s, last, F, stabiliser, layout,
        )  # fmt: skip

    @property
    def given(self) -> list[Matrix]:
        """The symbols on which Newton's matrix depends."""
        return [self.s[name] for name in ("t", "cj", "y", "yp", "soft")] + [*self.last]

    def matrix(self) -> Any:
        """The sparse matrix `dF/dy + cj dF/dy'` (n, n), written out.

        The derivative of `G^T mu` by q is left out: on the solution mu, and with it this derivative, is zero.
        """
        import casadi as ca

        return ca.Function("dae_jacobian", self.given, [newton_matrix(self.layout, self.F, self.stabiliser, self.s)])

    def columns(self, facts: str) -> Columns:
        """The same by its products with vectors."""
        import casadi as ca

        s, vector, first = self.s, ca.SX.sym("vector", self.layout.n), sum(self.layout.sizes[:3])
        product = ca.jtimes(self.F, ca.vertcat(s["y"], s["yp"]), ca.vertcat(vector, s["cj"] * vector))
        pattern = ca.jacobian_sparsity(self.F, s["y"]) + ca.jacobian_sparsity(self.F, s["yp"])
        last = first + self.layout.sizes[3]
        nq, mu, n = self.layout.of.nq, s["y"][first:last], self.layout.n
        if mu.numel():
            product[:nq] += ca.jtimes(self.stabiliser, mu, vector[first:last])
            held = ca.jacobian_sparsity(self.stabiliser, mu)
            rows, columns = held.get_triplet()
            pattern = pattern + ca.Sparsity.triplet(n, n, rows, [first + k for k in columns])
        return Columns([*self.given, vector], product, [pattern], facts, PRODUCTS)


COMPILED = 3_000  # instructions up to which a Jacobian is compiled; beyond, CasADi's interpreter runs it
LONG = 30_000  # the same of a residual
PRODUCTS = 200_000  # the same of products with a Jacobian: IDA asks for one in every step or two
WRITTEN_OUT = 2_000  # instructions of a residual up to which its Jacobian is written out
VECTORS = (1, 3, 4, 5, 7)  # of what `DaeGraphs.state` gives
ROUNDING = 1e-13
YIELDS = 1e-9  # s: softness of position constraints, relative to the size of their derivatives

_KERNELS: Slot[tuple[str, str], Kernel] = Slot("kernels of the multistep methods, free parameters as their last input")
_GRAPHS: Slot[str, DaeGraphs] = Slot("equations of Gear's method over symbols")
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
    return _MATRICES.find(
        model, (name, quantity.name), lambda: _matrix(model, function_of(model, quantity), f"{name} {quantity.name}")
    )


def events_of_row(model: Model, layout: DaeLayout, graph: Any) -> Any:
    """The events (ne,) as a compiled function of (t, y, tau, about)."""
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
        self.layout = layout = DaeLayout.with_states(model, of, stabilised)
        graphs = _GRAPHS.find(model, layout.name, lambda: DaeGraphs.record(model, layout))
        self._state = graphs.state
        if not self.is_tree:
            self.into = kernel_of_row(model, into_own(model, formulation), of.facts)
            self.out_of = kernel_of_row(model, out_of_own(model, formulation), of.facts)
        self.residual = _filler(model, graphs.residual, layout.name, LONG)
        self.jacobian, self.pattern = _MATRICES.find(
            model, (layout.name, "dae_jacobian"), lambda: _newton(model, graphs)
        )

    def state(self, t: Any, q: np.ndarray, v: np.ndarray, *tail: np.ndarray) -> list[np.ndarray]:
        """What `DaeGraphs.state` gives, at a state of the formulation."""
        found = [np.array(x) for x in self._state(t, q, v, *tail)]
        return [x.ravel() if k in VECTORS else x for k, x in enumerate(found)]

    def start(self, t: float, q: np.ndarray, v: np.ndarray, W: float, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """`y` and `y'` (n,) at a consistent state: accelerations and multipliers that satisfy the equations."""
        M, f, J, gamma, x, *_, N = self.state(np.asarray(t), q, v, *tail)
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        b = np.concatenate([f, gamma])
        try:
            solved = np.linalg.solve(K, b)
        except np.linalg.LinAlgError:  # rows depend on one another: take the smallest multipliers
            solved = np.linalg.lstsq(K, b, rcond=1e-12)[0]
        (vdot, lam), rest = np.split(solved, [len(v)]), np.zeros(self.layout.sizes[3])
        own = tail[-1][list(self.layout.states)] if self.layout.states else np.zeros(0)
        y = np.concatenate([q, v, lam, x, rest, own, [W]])
        yp = np.concatenate([N @ v, vdot, 0 * lam, 0 * x, rest, 0 * own, [0.0]])
        F = np.zeros_like(y)
        self.residual(t, y, yp, np.zeros(2), *tail, F)
        last = slice(len(y) - 1 - len(own), None)
        yp[last] = -F[last]  # rates of the states, and the power
        return y, yp

    def soft(self, t: float, y: np.ndarray, tail: Tail, allowed: float) -> np.ndarray:
        """Softness (2,) of the constraints from a start `y` on; `allowed` (m/s) is a velocity that may be neglected."""
        nq, nv = self.layout.of.nq, self.layout.of.nv
        q, v, lam = y[:nq], y[nq:][:nv], y[nq + nv :][: self.layout.sizes[2]]
        M, _, _, _, _, _, G, *_ = self.state(np.asarray(t), q, v, *tail)
        force = max(*(float(np.abs(x).max(initial=0.0)) for x in (lam, M)), 1e-300)  # at 1 m/s^2 or more
        size = float(np.mean(np.sum(G * G, axis=1))) if len(G) else 0.0
        return np.array([max(allowed, ROUNDING / 10) / force, YIELDS * size])

    def gap(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> float:
        """Largest residual of the constraints at a state: m, rad, and per second."""
        *_, phi, _, excess, _ = self.state(np.asarray(t), q, v, *tail)
        lengths = [q[at : at + 4] @ q[at : at + 4] - 1 for at in self.layout.of.unit]
        return float(np.max(np.abs(np.concatenate([phi, excess, np.array(lengths) / 2])), initial=0.0))

    def projected(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the tree on the constraints, from the formulation's own near them."""
        q, v = (np.array(x) for x in self.tree(q, v, tail))
        for at in self.model.quaternions:
            q[at] /= np.linalg.norm(q[at])
        if not self.model.has_rows and not self.layout.of.laws:
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


def _newton(model: Model, graphs: DaeGraphs) -> tuple[Callable[..., None], Any]:
    """A function that fills the nonzeros of Newton's matrix by columns, and their pattern as a SciPy matrix."""
    if graphs.residual.n_instructions() <= WRITTEN_OUT:
        return _matrix(model, graphs.matrix(), graphs.layout.name)
    columns = graphs.columns(f"gear {graphs.layout.name} {model.key}")

    def fill(*given: Any) -> None:
        given[-1][:] = columns(*given[:-1])

    return fill, _pattern(columns.patterns[0])


def _matrix(model: Model, function: Any, name: str) -> tuple[Callable[..., None], Any]:
    """The same of a matrix that is written out."""
    import casadi as ca

    ports = function.sx_in()
    values = ca.Function(function.name(), ports, [function(*ports).nz[:]])
    return _filler(model, values, name, COMPILED), _pattern(function.sparsity_out(0))


def _pattern(of: Any) -> Any:
    """A pattern of CasADi as a SciPy matrix of ones."""
    from scipy.sparse import csc_matrix

    return csc_matrix((np.ones(of.nnz()), of.row(), of.colind()), shape=of.shape)


def _filler(model: Model, function: Any, name: str, longest: int) -> Callable[..., Any]:
    """A function of one output as one that fills its last argument: compiled up to so many instructions."""
    if function.n_instructions() > longest:
        return _interpreted(function)

    def make() -> Kernel:
        inputs = tuple(Port(f"in{k}", _shape(function.size1_in(k))) for k in range(function.n_in()))
        return kernel_of(
            model, f"gear {name} {function.name()}", function.name(), inputs,
            (Port("out", (function.numel_out(0),)),), lambda: function,
        )  # fmt: skip

    return _KERNELS.find(model, (name, function.name()), make).ufunc(wide=False)


def _shape(size: int) -> tuple[int, ...]:
    return () if size == 1 else (size,)


def _interpreted(function: Any) -> Callable[..., None]:
    """The same by CasADi's interpreter."""
    evaluate = evaluator(function, 1, "", "")

    def fill(*given: Any) -> None:
        given[-1][:] = evaluate([np.ravel(x) for x in given[:-1]])[0].ravel()

    return fill
