"""Linearised motion of any mechanism along its constraints, in independent coordinates and rates.

The state of the linear model is `delta`, the change of the independent coordinates, and `u`, that of the independent
rates. All others follow from the rows `phi(q, p, t) = 0` and `J v = beta`, so that a change of the state or of an input
moves the tree with

    J dq = -phi_p dp                                    of rows at position level, `dq` given in `coordinates`
    J dv = -(J v - beta)_q dq - (J v - beta)_p dp       of all rows, `dv` given in `rates`

The accelerations solve `M a + J^T lam = f`, `J a = gamma`. What is left of these vanishes along the constraints, so
that its derivative at fixed `a`, `lam` is the right side of the same equations for `da`. All curvature of the
constraints is in `dv` and `gamma`.

Rates need not be rates of coordinates: with `qdot = N(q) v` the change `dq`, `q` moving as `plus(q, dq)`, has the rate

    dq' = dv + N^+ ((N v)_q N dq - N' dq)

where the last term is that of turning axes, zero where `N` is constant or the mechanism at rest.

Variables with a rate, `xdot = r(t, q, v, p)`, are states too: numbers `x` among the parameters `p`, below the rates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardan.algebra.matrix import Matrix, mirrored
from cardan.formulation.derivative import PARAMETERS, Answer, answer_of
from cardan.formulation.dynamics import parts_at, solved
from cardan.formulation.formulation import Formulation, Parts, tangent, tree_rates
from cardan.formulation.quantity import Inputs, Quantity, fixed, per_velocity
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.state_rates import answers_read, state_rates
from cardan.formulation.tree import TreeFormulation
from cardan.model.model import Model

REFINEMENTS = 2
TINY = 1e-15  # of a diagonal: what keeps pivots from being zero
VANISHED = 1e-20  # of the largest square: smaller rows are rounding


@dataclass(frozen=True)
class Columns:
    """What a linear model is by: numbers of independent coordinates and rates and of variables, then of the inputs.

    Coordinates, rates and `tau` are numbers among the tree's rates, `wrenches` among the (nb, 6) row by row,
    `variables`, the states that have a rate, and `parameters` among the free numbers.
    """

    coordinates: tuple[int, ...]
    rates: tuple[int, ...]
    variables: tuple[int, ...] = ()
    tau: tuple[int, ...] = ()
    wrenches: tuple[int, ...] = ()
    parameters: tuple[int, ...] = ()
    loaded: bool = False
    """Whether wrenches act."""

    @property
    def states(self) -> int:
        """How many states."""
        return len(self.coordinates) + len(self.rates) + len(self.variables)

    @property
    def count(self) -> int:
        """How many columns, states first."""
        return self.states + len(self.inputs)

    @property
    def inputs(self) -> tuple[tuple[str, int], ...]:
        """The columns after those of the states: what each is a number of, and which."""
        groups = {"tau": self.tau, "wrenches": self.wrenches, PARAMETERS: self.parameters}
        return tuple((name, number) for name, numbers in groups.items() for number in numbers)

    @property
    def places(self) -> dict[str, list[tuple[int, int]]]:
        """For each argument of the equations its numbers that move, each with its column."""
        states = [("q", k) for k in self.coordinates] + [("v", k) for k in self.rates]
        found: dict[str, list[tuple[int, int]]] = {"q": [], "v": []}
        every = (*states, *((PARAMETERS, k) for k in self.variables), *self.inputs)
        for column, (name, number) in enumerate(every):
            found.setdefault(name, []).append((number, column))
        return found

    def takes_time(self, model: Model) -> bool:
        """Whether time is an argument."""
        return bool(self.variables) or model.depends_on_time

    @property
    def key(self) -> str:
        """Text that identifies it."""
        numbers = (self.coordinates, self.rates, self.tau, self.wrenches, self.parameters)
        return f"{numbers} variables {self.variables} loaded {self.loaded} linearise"


def linear_motion(
    model: Model, formulation: Formulation, rows: Sequence[int], tree_rows: Sequence[int], columns: Columns
) -> Quantity:
    """The linear model at a state, `rows` those kept in the formulation, `tree_rows` those in the tree's coordinates.

    `a` (nv,) accelerations; `AB` (states, columns); `dq`, `dv`, `da` (nv, columns) of all the tree's coordinates;
    `M` (rates, rates) inertia of the independent rates; `quality` (3,): the smallest pivot of the dependent
    coordinates, the square of a sine, and the largest residual of all rows in position and rate; `xdot` rates of the
    variables.
    """
    nv, k = model.nv, columns.count
    n, variable_rates = len(columns.rates), _variable_rates(model, columns, SPATIAL, tree_rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        tree = parts_at(model, SPATIAL, inputs)
        moved = _moved(model, inputs, tree, tree_rows, columns)
        a, da = _accelerations(model, formulation, rows, inputs, moved.directions, tree)
        dq, dv = moved.directions["q"], moved.directions["v"]
        Z = dv[:, len(columns.coordinates) : len(columns.coordinates) + n]
        rest = tree.rows.J @ inputs["v"] - tree.rows.beta
        quality = ca.vertcat(moved.pivot, _largest(tree.rows.phi), _largest(rest))
        xdot, dx = variable_rates(model, inputs, moved.directions)
        change = (dv + turning(model, inputs, dq))[list(columns.coordinates), :]
        AB = ca.vertcat(change, da[list(columns.rates), :], dx)
        return [a, AB, dq, dv, da, mirrored(Z.T @ tree.M @ Z), quality, xdot]

    outputs = (
        ("a", per_velocity), ("AB", fixed(columns.states, k)), ("dq", fixed(nv, k)), ("dv", fixed(nv, k)),
        ("da", fixed(nv, k)), ("M", fixed(n, n)), ("quality", fixed(3)), ("xdot", fixed(len(columns.variables))),
    )  # fmt: skip
    return Quantity(columns.key, _ports(model, columns), outputs, write=write)


def state_matrix(
    model: Model, formulation: Formulation, rows: Sequence[int], tree_rows: Sequence[int], columns: Columns
) -> Quantity:
    """`A` (states, states) alone, for its derivatives."""
    alone = Columns(columns.coordinates, columns.rates, columns.variables, loaded=columns.loaded)
    whole = linear_motion(model, formulation, rows, tree_rows, alone)
    write = lambda model, inputs: whole.graph(model, inputs)[1:2]
    return Quantity(f"state matrix {alone.key}", whole.inputs, whole.outputs[1:2], write=write)


def descriptor(model: Model, formulation: TreeFormulation, rows: Sequence[int], columns: Columns) -> Quantity:
    """The same without elimination: `E x' = A x + B u` in all coordinates, rates, variables and kept multipliers.

    With `left = f - M a - J^T lam` and the rows as they stand: those at position level by `dq`, the others by `dv`.

        dq' = dv + turning        M dv' = left_q dq + left_v dv - J^T dlam + left_u du        0 = phi_q dq + phi_p dp

    `columns` has all coordinates and rates. `a` (nv,); `E` (nx, nx); `AB` (nx, nx and inputs); `quality` (3,) as above,
    its first number that of the rows; `xdot` rates of the variables.
    """
    nv, nl, n = model.nv, len(rows), columns.states
    nx, variable_rates = n + nl, _variable_rates(model, columns, formulation, rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        answer = answer_of(model, (formulation, tuple(rows)), inputs)
        parts, given = answer.parts, _given(model, inputs, columns)
        kept, a = parts.rows.kept(rows), answer.y[:nv]
        force = _rates_of_rest(answer, given)[:nv, :]
        at_position = ca.SX([float(label.level == "position") for label in kept.labels])
        with_p = {name: D for name, D in given.items() if name == PARAMETERS}
        position = kept.J @ given["q"] + _wide(along(model, kept.phi, inputs, with_p), given["q"])
        moving = kept.J @ inputs["v"] - kept.beta
        rate = kept.J @ given["v"] + along(model, moving, inputs, {"q": given["q"], **with_p})
        held = ca.diag(at_position) @ position + ca.diag(1 - at_position) @ rate
        change = given["v"] + turning(model, inputs, given["q"])
        xdot, dx = variable_rates(model, inputs, given)
        AB = ca.vertcat(change, force, dx, held)
        multipliers = ca.vertcat(ca.SX(nv, nl), -kept.J.T, ca.SX(n - 2 * nv + nl, nl))
        AB = ca.horzcat(AB[:, :n], multipliers, AB[:, n:])
        E = ca.diagcat(ca.SX.eye(nv), parts.M, ca.SX.eye(n - 2 * nv), ca.SX(nl, nl))
        pivot = smallest_pivot(kept.J)[0] if nl else ca.SX(1)
        rest = parts.rows.J @ inputs["v"] - parts.rows.beta
        return [a, E, AB, ca.vertcat(pivot, _largest(parts.rows.phi), _largest(rest)), xdot]

    k = nl + columns.count
    outputs = (
        ("a", per_velocity), ("E", fixed(nx, nx)), ("AB", fixed(nx, k)), ("quality", fixed(3)),
        ("xdot", fixed(len(columns.variables))),
    )  # fmt: skip
    return Quantity(f"descriptor {columns.key}", _ports(model, columns), outputs, write=write)


def along(model: Model, value: Matrix, inputs: Inputs, directions: Mapping[str, Matrix]) -> Matrix:
    """Rate (n, columns) of a column of values when the inputs named move with these rates (size, columns).

    For `q` they are rates (nv, columns) of the tree.
    """
    import casadi as ca

    total = type(value)(value.shape[0], next(iter(directions.values())).shape[1] if directions else 1)
    for name, D in directions.items():
        x = inputs["p"] if name == PARAMETERS else ca.vec(inputs[name].T)
        D = tangent(model, x) @ D if name == "q" else D
        moving = [k for k in range(D.shape[1]) if D[:, k].nnz()]
        if not moving or not value.numel():
            continue
        if len(moving) < D.shape[0]:
            total[:, moving] = total[:, moving] + ca.jtimes(value, x, ca.densify(D[:, moving]))
        else:
            total = total + ca.jacobian(value, x) @ D
    return total


@dataclass(frozen=True)
class _Moved:
    """Rates of the inputs, by name, that go with each column, and the smallest pivot of the dependent coordinates."""

    directions: dict[str, Matrix]
    pivot: Matrix


def _moved(model: Model, inputs: Inputs, tree: Parts, tree_rows: Sequence[int], columns: Columns) -> _Moved:
    """Along the constraints."""
    import casadi as ca

    kept = tree.rows.kept(tree_rows)
    at_position = [k for k, label in enumerate(kept.labels) if label.level == "position"]
    given = _given(model, inputs, columns)
    with_p = {name: D for name, D in given.items() if name == PARAMETERS}
    phi, J = kept.phi[at_position, 0], kept.J[at_position, :]
    positions = _Dependent(J, columns.coordinates)
    one = len(at_position) == len(kept) and columns.coordinates == columns.rates
    rates = positions if one else _Dependent(kept.J, columns.rates)
    dq = positions.completed(given["q"], along(model, phi, inputs, with_p))
    rate = kept.J @ inputs["v"] - kept.beta
    rest = along(model, rate, inputs, {"q": dq, **with_p})
    if not one:
        return _Moved({**given, "q": dq, "v": rates.completed(given["v"], rest)}, ca.fmin(positions.pivot, rates.pivot))
    n = len(columns.coordinates)
    dv = rates.completed(type(rest)(*given["v"].shape), rest)
    dv[:, n : 2 * n] = dv[:, n : 2 * n] + dq[:, :n]  # unit rates move the mechanism as unit changes do
    return _Moved({**given, "q": dq, "v": dv}, positions.pivot)


def _given(model: Model, inputs: Inputs, columns: Columns) -> dict[str, Matrix]:
    """Rates of the independent coordinates and rates, of the variables and inputs: a unit in every column."""
    like, free = inputs["q"], inputs["p"].numel() if "p" in inputs else 0
    sizes = {"q": model.nv, "v": model.nv, "tau": model.nv, "wrenches": 6 * model.nb, PARAMETERS: free}
    found = {}
    for name, places in columns.places.items():
        D = found[name] = type(like)(sizes[name], columns.count)
        for number, column in places:
            D[number, column] = 1
    return found


VariableRates = Callable[[Model, Inputs, Mapping[str, Matrix]], tuple[Matrix, Matrix]]


def _variable_rates(model: Model, columns: Columns, formulation: Formulation, kept: Sequence[int]) -> VariableRates:
    """What gives the rates (n,) of the variables that are states, and the rates (n, columns) of these in directions.

    What they read of the answer of the mechanism is that of the equations with the rows `kept`.
    """
    every, states, sights = state_rates(model), model.parameters.states, answers_read(model)
    rows = [states.index(k) for k in columns.variables]

    def at(model: Model, inputs: Inputs, directions: Mapping[str, Matrix]) -> tuple[Matrix, Matrix]:
        if not rows:
            return type(inputs["q"])(0, 1), type(inputs["q"])(0, columns.count)
        reads: tuple[str, ...] = ("q", "v", PARAMETERS)
        if sights:
            inputs = {**inputs, "y": solved(model, formulation, kept, inputs, lambda own: [own.column(sights)])[0]}
            reads = (*reads, "tau", "wrenches")
        xdot = every.graph(model, inputs)[0][rows, 0]
        known = {name: D for name, D in directions.items() if name in reads and D.nnz()}
        return xdot, along(model, xdot, inputs, known)

    return at


class _Dependent:
    """The rates that follow from others by rows `J`: solved by `A A^T` and refinement, without pivoting.

    `A` are the columns of the dependent rates, as many as rows. `pivot` is the smallest, the square of the sine of a
    row's angle with the rows before it.
    """

    def __init__(self, J: Matrix, free: Sequence[int]) -> None:
        import casadi as ca

        self.J, self.numbers = J, [k for k in range(J.shape[1]) if k not in free]
        self.A = J[:, self.numbers]
        found: tuple[Matrix, Any] = smallest_pivot(self.A) if self.numbers else (ca.SX(1), None)
        self.pivot, self._factor = found
        if J.shape[0] < len(self.numbers):  # at a singular position, where fewer rows are independent than elsewhere
            self.pivot = ca.SX(1, 1)

    def completed(self, given: Matrix, rest: Matrix) -> Matrix:
        """Rates (nv, columns) with `J d + rest = 0` that are `given` in the free ones."""
        import casadi as ca

        whole = type(given)(given)
        if not self.numbers:
            return whole
        right = -_wide(rest, given) - self.J @ given
        columns = [k for k in range(right.shape[1]) if right[:, k].nnz()]
        if not columns:
            return whole
        A, b = self.A, ca.densify(right[:, columns])
        x = A.T @ ca.ldl_solve(b, *self._factor)
        for _ in range(REFINEMENTS):
            x = x + A.T @ ca.ldl_solve(b - A @ x, *self._factor)
        whole[self.numbers, columns] = x
        return whole


def smallest_pivot(A: Matrix) -> tuple[Matrix, Any]:
    """The smallest pivot of the rows of `A`, and the factors of `A A^T`."""
    import casadi as ca

    S = mirrored(A @ A.T)
    size = ca.diag(S)
    D, LT, order = ca.ldl(S + ca.diag(TINY * size + (size == 0)), True)
    own, is_row = size[order], size[order] > VANISHED * ca.mmax(size)
    return ca.mmin(ca.vec(D) / ca.if_else(is_row, own, 1) * is_row), (D, LT, order)


def _wide(x: Matrix, like: Matrix) -> Matrix:
    """A rate along no direction, of as many columns as the others."""
    return x if x.shape[1] == like.shape[1] else type(like)(x.shape[0], like.shape[1])


def _accelerations(
    model: Model, formulation: Formulation, rows: Sequence[int], inputs: Inputs, directions: Mapping[str, Matrix],
    tree: Parts,
) -> tuple[Matrix, Matrix]:  # fmt: skip
    """Accelerations (nv,) of the tree, and their rates (nv, columns) along the directions."""
    if not isinstance(formulation, TreeFormulation):
        parts = parts_at(model, formulation, inputs)
        a = formulation.tree_accelerations(parts, formulation.solve(parts, rows)[0])
        return a, along(model, a, inputs, directions)
    answer = answer_of(model, (formulation, tuple(rows)), inputs, tree if formulation is SPATIAL else None)
    return answer.y[: model.nv], answer.solve(_rates_of_rest(answer, directions))[: model.nv, :]


def _rates_of_rest(answer: Answer, directions: Mapping[str, Matrix]) -> Matrix:
    """Rates (nv and rows, columns) of the rest of the equations along the directions, at fixed `a` and `lam`."""
    free = {name: _symbols(name, D) for name, D in directions.items()}
    rates = along(answer.parts.model, answer.rest, answer.inputs, free)
    return answer.at([rates], *((free[name], D) for name, D in directions.items()))[0]


def _symbols(name: str, D: Matrix) -> Matrix:
    """Symbols in the places where a matrix has entries."""
    import casadi as ca

    return ca.SX.sym(f"d{name}", D.sparsity())


def turning(model: Model, inputs: Inputs, dq: Matrix) -> Matrix:
    """What axes that turn add to the rate of `dq`."""
    import casadi as ca

    q, v = inputs["q"], inputs["v"]
    N = tangent(model, q)
    if not ca.jacobian(ca.vec(N), q).nnz():
        return type(dq)(*dq.shape)
    qdot = tree_rates(model, q, v)
    rate = ca.reshape(ca.jtimes(ca.vec(N), q, qdot), *N.shape)
    return ca.solve(N.T @ N, N.T @ (along(model, qdot, inputs, {"q": dq}) - rate @ dq))


def _largest(x: Matrix) -> Matrix:
    import casadi as ca

    return ca.mmax(ca.fabs(x)) if x.numel() else ca.SX(0)


def _ports(model: Model, columns: Columns) -> tuple[str, ...]:
    loads, time = ("wrenches",) if columns.loaded else (), ("t",) if columns.takes_time(model) else ()
    return ("q", "v", "tau", *loads, *time)
