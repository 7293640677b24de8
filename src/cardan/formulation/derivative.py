"""Derivatives of quantities: a quantity and what it is differentiated by make another quantity.

A column of a derivative by `q` is the derivative along a motion with unit rate: `q` moves as `plus(q, delta)` with
`delta` (nv,), so that there are nv columns (`chart="tangent"`). With `chart="coordinates"` there are nq, those of the
numbers in `q` as they stand, those of a quaternion included. The two are related by `qdot = N(q) v`: `D_tangent =
D_coordinates N`.

Loops and constraints are not imposed on the directions: these are partial derivatives of the equations as they stand,
at the rows that are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from cardan.algebra.matrix import Matrix, stack
from cardan.formulation.dynamics import constraint_rows, inverse_dynamics, parts_at
from cardan.formulation.formulation import Formulation, Parts, tangent, tree_rates
from cardan.formulation.quantity import Inputs, Quantity, Shape
from cardan.formulation.recursion import Recursion
from cardan.formulation.response import MANY, Changes, in_stages
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.spatial_products import curved_by_recursion, pulled_recursion, pushed_recursion
from cardan.formulation.tree import TreeFormulation
from cardan.model.model import Model

if TYPE_CHECKING:
    from cardan.program.stages import Stages

CHARTS = ("tangent", "coordinates", "independent")
PARAMETERS = "parameters"


@dataclass(frozen=True)
class By:
    """What is differentiated by: names of inputs, or "parameters"; the chart of `q`, and its coordinates if chosen."""

    names: tuple[str, ...]
    chart: str = "tangent"
    coordinates: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Text that identifies it."""
        return f"by {' '.join(self.names)} {self.chart}"


def differentiated(quantity: Quantity, by: By, model: Model) -> Quantity:
    """The values of a quantity, then for each output and each name the derivative `{output}_{name}` (size, columns).

    Rows of a derivative are the elements of the output in C order.
    """

    def shape(output: Callable[[Model], Shape], name: str) -> Callable[[Model], Shape]:
        count = model.nq if name == "q" and by.chart == "coordinates" else _columns(quantity, model, name)(model)[0]
        return lambda model: (prod(output(model)), count)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        values = quantity.graph(model, inputs)
        return values + [_derivative(model, value, inputs, name, by.chart) for value in values for name in by.names]

    outputs = [*quantity.outputs]
    outputs += [(f"{label}_{name}", shape(output, name)) for label, output in quantity.outputs for name in by.names]
    return Quantity(f"{by.key} {quantity.name}", quantity.inputs, tuple(outputs), write=write, shapes=quantity.shapes)


# The answer of equations of motion: the equations are differentiated, not the solving.


@dataclass(frozen=True)
class Answer:
    """The answer `y = (a, lam)` of equations of motion, and their `rest` (nv + rows,) at symbols `y0` in its place.

    At the answer the rest `f - M a - J^T lam`, `gamma - J a` vanishes for every state. So its derivative at fixed `y`
    is what the same equations give as the derivative of the answer: one solution a column, with the factors at hand,
    and none of the solving is differentiated.
    """

    solves: tuple[TreeFormulation, tuple[int, ...]]
    parts: Parts
    inputs: Inputs
    y: Matrix
    y0: Matrix
    rest: Matrix

    def solve(self, B: Matrix) -> Matrix:
        """`y` (nv + rows, n) for other right sides, the columns of `B`; the equations are symmetric."""
        import casadi as ca

        nv, (formulation, rows) = self.parts.model.nv, self.solves
        return ca.vertcat(*formulation.solve_for(self.parts, rows, B[:nv, :], B[nv:, :]))

    def at(self, expressions: Sequence[Matrix], *given: tuple[Matrix, Matrix]) -> list[Matrix]:
        """Expressions of `y0` where it is the answer, and of other symbols where they are what is `given` with each."""
        import casadi as ca

        pairs = [*((x, x) for x in self.inputs.values()), (self.y0, self.y), *given]
        symbols, values = zip(*((x, value) for x, value in pairs if x.numel()), strict=True)
        return list(ca.Function("at", [*symbols], [*expressions]).call([*values]))


def answer_of(
    model: Model, solves: tuple[TreeFormulation, tuple[int, ...]], inputs: Inputs, parts: Parts | None = None
) -> Answer:
    """The answer of the equations of motion of a formulation with these rows; `parts` if they are written already."""
    import casadi as ca

    formulation, rows = solves
    parts = parts_at(model, formulation, inputs) if parts is None else parts
    kept = parts.rows.kept(rows)
    y0 = ca.SX.sym("y", model.nv + len(rows))
    a0, lam0 = y0[: model.nv, :], y0[model.nv :, :]  # CasADi makes (1, 0) of `y[1:]` where y has one entry
    rest = ca.vertcat(formulation.missing_force(parts, a0) - kept.J.T @ lam0, kept.gamma - kept.J @ a0)
    return Answer(solves, parts, inputs, ca.vertcat(*formulation.solve(parts, rows)), y0, rest)


def forward_dynamics_by(
    formulation: TreeFormulation, rows: Sequence[int], quantity: Quantity, by: By, model: Model
) -> Quantity:
    """Forward dynamics in the tree's coordinates, with derivatives of the equations that the answer solves."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        answer, right = changes_at(model, inputs)
        return [answer.y[: model.nv], *formulation.solve_many(answer.parts, rows, right)]

    def stages(model: Model, inputs: Inputs) -> Stages | None:
        answer, right = changes_at(model, inputs)
        given = formulation.factors(answer.parts, rows)
        return None if given is None else in_stages([*inputs.values()], answer.y[: model.nv], given, right)

    def changes_at(model: Model, inputs: Inputs) -> tuple[Answer, list[Changes]]:
        """The answer of the equations, and by each name what their rest changes by."""
        nv, answer = model.nv, answer_of(model, (formulation, tuple(rows)), inputs)
        known = known_changes(answer)
        left = [name for name in by.names if name not in known]
        columns = [_derivative(model, answer.rest, inputs, name, by.chart) for name in left]
        found = answer.at(columns) if left else []
        known |= {name: Changes(x[:nv, :], x[nv:, :]) for name, x in zip(left, found, strict=True)}
        return answer, [known[name] for name in by.names]

    def known_changes(answer: Answer) -> dict[str, Changes]:
        """What the formulation itself knows."""
        wanted = {name for name in by.names if name == "v" or (name == "q" and by.chart == "tangent")}
        a, lam = answer.y[: model.nv], answer.y[model.nv :]
        found = formulation.equation_changes(answer.parts, rows, a, lam) if wanted else None
        return {} if found is None else {name: x for name, x in zip("qv", found, strict=True) if name in wanted}

    found = differentiated(quantity, by, model)
    columns = sum(shape(model)[1] for _, shape in found.outputs[1:])
    return replace(found, write=write, stages=stages if model.nv >= MANY and columns >= len(rows) else None)


def _pushed_answer(model: Model, answer: Answer, names: tuple[str, ...]) -> list[Matrix]:
    """Accelerations and their rate along directions."""
    import casadi as ca

    rates = [ca.jtimes(answer.rest, *_direction(model, answer.inputs, name)) for name in names]
    along = answer.at([sum(rates[1:], rates[0])])[0]
    return [answer.y[: model.nv], answer.solve(along)[: model.nv]]


def _pulled_answer(model: Model, answer: Answer, names: tuple[str, ...]) -> list[Matrix]:
    """Accelerations `a`, and the gradients of `w . a`: those of `z . rest` with `z` the answer for `w`."""
    import casadi as ca

    z0, z = _weights(answer)
    found = answer.at(_gradients(model, ca.dot(z0, answer.rest), answer.inputs, names), (z0, z))
    return [answer.y[: model.nv], *found]


def _curved_answer(model: Model, answer: Answer, names: tuple[str, ...]) -> Matrix:
    """Second derivatives of `w . a`: with `G` the gradients of `z . rest`, `G_x + G_y y_x + (G_y y_x)^T`.

    `y_x` is the derivative of the answer. The last part is that of `z`, which solves the same equations for `w`.
    """
    import casadi as ca

    inputs = answer.inputs
    z0, z = _weights(answer)
    G = ca.vertcat(*_gradients(model, ca.dot(z0, answer.rest), inputs, names))
    columns = [_derivative(model, answer.rest, inputs, name, "tangent") for name in names]
    G_x, G_y, rest_x = answer.at(
        [_second(model, G, inputs, names), ca.jacobian(G, answer.y0), ca.horzcat(*columns)], (z0, z)
    )
    return G_x + 2 * G_y @ answer.solve(rest_x)  # up to the part that is not symmetric


def _weights(answer: Answer) -> tuple[Matrix, Matrix]:
    """Symbols `z0`, and the answer `z` for the weights `w` of the accelerations."""
    import casadi as ca

    w = answer.inputs["w"]
    return ca.SX.sym("z", answer.y.shape[0]), answer.solve(ca.vertcat(w, ca.SX(answer.y.shape[0] - w.shape[0], 1)))


def rest_of_drives(model: Model, formulation: Formulation) -> Quantity:
    """`F - J^T lam` (nv,) and `J y` (nl,), one after the other, at fixed `lam` (nl,) and `y` (nv,).

    `F(q, v, a)` are the forces that accelerations need, `J` the constraint rows in the tree's coordinates: what the
    derivatives of drives `u`, `B u + J^T lam = F`, follow from.
    """
    force, rows, nl = inverse_dynamics(model, formulation), constraint_rows(model), len(model.rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        F = force.graph(model, {name: inputs[name] for name in force.inputs})[0]
        J = rows.graph(model, {name: inputs[name] for name in rows.inputs})[0]
        return [stack(F - J.T @ inputs["lam"], J @ inputs["y"])]

    shapes = {name: force.input_shape(model, name) for name in force.inputs} | {"lam": (nl,), "y": (model.nv,)}
    outputs = (("rest", lambda model: (model.nv + nl,)),)
    return Quantity("rest_of_drives", tuple(shapes), outputs, write=write, shapes=shapes)


def impulse_rest(model: Model) -> Quantity:
    """`M change - J^T lam` (nv,) and `J y - beta` (nl,), one after the other, at `change`, `y` (nv,) and `lam` (nl,).

    It vanishes where an impulse `J^T lam` changes the rates to `y` by `change`. In the tree's coordinates.
    """
    nv, nl = model.nv, len(model.rows)
    shapes: dict[str, Shape] = {"q": (model.nq,), "change": (nv,), "lam": (nl,), "y": (nv,)}
    shapes |= {"t": ()} if model.depends_on_time else {}

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        state = {name: x for name, x in inputs.items() if name in ("q", "t")}
        parts = parts_at(model, SPATIAL, state | {"v": type(inputs["q"])(model.nv, 1)})
        J = parts.rows.J
        return [stack(parts.M @ inputs["change"] - J.T @ inputs["lam"], J @ inputs["y"] - parts.rows.beta)]

    return Quantity("impulse_rest", tuple(shapes), (("rest", lambda model: (nv + nl,)),), write=write, shapes=shapes)


def _derivative(model: Model, value: Matrix, inputs: Inputs, name: str, chart: str) -> Matrix:
    import casadi as ca

    x = ca.vec(value.T)  # C order
    if name == PARAMETERS:
        return ca.jacobian(x, inputs["p"])
    by = inputs[name]
    D = ca.jacobian(x, ca.vec(by.T)) if name == "wrenches" else ca.jacobian(x, by)
    if name == "q" and chart == "tangent":
        return D @ tangent(model, by)
    return D


# Products with derivatives, without the derivative itself.


def pushed(quantity: Quantity, names: tuple[str, ...], model: Model) -> Quantity:
    """Values, then their rates `d{output}` along directions: inputs `d{name}`, for `q` rates (nv,), come last."""
    shapes, solves = _shapes(quantity, model), quantity.solves
    along = {f"d{name}": (model.nv,) if name == "q" else _shape_by(shapes, name, model) for name in names}

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        if solves is not None:
            return _pushed_answer(model, answer_of(model, solves, inputs), names)
        values = quantity.graph(model, inputs)
        rates = []
        for value in values:
            x = ca.vec(value.T)
            total = type(x)(*x.shape)
            for name in names:
                total = total + ca.jtimes(x, *_direction(model, inputs, name))
            rates.append(ca.reshape(total, value.shape[1], value.shape[0]).T)
        return values + rates

    outputs = (*quantity.outputs, *((f"d{label}", shape) for label, shape in quantity.outputs))
    found = Quantity(
        f"pushed {' '.join(names)} {quantity.name}", (*quantity.inputs, *along), outputs, write=write,
        shapes=shapes | along,
    )  # fmt: skip
    return _by_recursion(found, pushed_recursion(quantity, names))


def pulled(quantity: Quantity, names: tuple[str, ...], model: Model) -> Quantity:
    """The value, then the gradients `w_{name}` of `w . value`; the weights `w`, of the value's shape, come last."""
    shapes, solves = _shapes(quantity, model) | {"w": quantity.outputs[0][1](model)}, quantity.solves

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        if solves is not None:
            return _pulled_answer(model, answer_of(model, solves, inputs), names)
        value = quantity.graph(model, inputs)[0]
        return [value, *_gradients(model, _weighed(value, inputs["w"]), inputs, names)]

    outputs = (quantity.outputs[0], *((f"w_{name}", _columns(quantity, model, name)) for name in names))
    found = Quantity(
        f"pulled {' '.join(names)} {quantity.name}", (*quantity.inputs, "w"), outputs, write=write, shapes=shapes
    )
    return _by_recursion(found, pulled_recursion(quantity, names))


def _by_recursion(product: Quantity, recursion: Recursion | None) -> Quantity:
    """A product by a recursion of its own, if there is one: fewer operations, and it can be looped."""
    return product if recursion is None else replace(product, recursion=recursion, write=None)


def curved(quantity: Quantity, names: tuple[str, ...], model: Model) -> Quantity:
    """Second derivatives of `w . value`: `H` (n, n), rows and columns those of `names` one after the other.

    By `q` they are those of `w . value(plus(q, delta))` by `delta` at zero. Since `plus` moves with constant rates,
    that is the symmetric part of the derivative of the gradient, each along the tangent.
    """
    shapes = _shapes(quantity, model) | {"w": quantity.outputs[0][1](model)}
    n = sum(_columns(quantity, model, name)(model)[0] for name in names)
    by_recursion, solves = curved_by_recursion(quantity, names), quantity.solves

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        if by_recursion is not None:
            H = by_recursion(model, inputs, names)
        elif solves is not None:
            H = _curved_answer(model, answer_of(model, solves, inputs), names)
        else:
            scalar = _weighed(quantity.graph(model, inputs)[0], inputs["w"])
            import casadi as ca

            H = _second(model, ca.vertcat(*_gradients(model, scalar, inputs, names)), inputs, names)
        return [(H + H.T) / 2]

    return Quantity(
        f"curved {' '.join(names)} {quantity.name}", (*quantity.inputs, "w"), (("H", lambda model: (n, n)),),
        write=write, shapes=shapes,
    )  # fmt: skip


def _weighed(value: Matrix, w: Matrix) -> Matrix:
    import casadi as ca

    return ca.dot(value, w)


def _gradient(model: Model, scalar: Matrix, inputs: Inputs, name: str) -> Matrix:
    """Gradient of a scalar as a column, along the tangent."""
    import casadi as ca

    if name == PARAMETERS:
        return ca.gradient(scalar, inputs["p"])
    x = inputs[name]
    if name == "wrenches":
        return ca.vec(ca.gradient(scalar, x).T)
    g = ca.gradient(scalar, x)
    return tangent(model, x).T @ g if name == "q" else g


def _gradients(model: Model, scalar: Matrix, inputs: Inputs, names: tuple[str, ...]) -> list[Matrix]:
    return [_gradient(model, scalar, inputs, name) for name in names]


def _second(model: Model, gradients: Matrix, inputs: Inputs, names: tuple[str, ...]) -> Matrix:
    """Derivative of stacked gradients along the tangent."""
    import casadi as ca

    return ca.horzcat(*(_derivative(model, gradients, inputs, name, "tangent") for name in names))


def _direction(model: Model, inputs: Inputs, name: str) -> tuple[Matrix, Matrix]:
    """An input as a column, and the rate of its numbers along its direction."""
    d = inputs[f"d{name}"]
    if name == PARAMETERS:
        return inputs["p"], d
    x = inputs[name]
    return x, tree_rates(model, x, d) if name == "q" else d


def _shapes(quantity: Quantity, model: Model) -> dict[str, Shape]:
    return {name: quantity.input_shape(model, name) for name in quantity.inputs}


def _shape_by(shapes: dict[str, Shape], name: str, model: Model) -> Shape:
    return (model.parameters.size,) if name == PARAMETERS else shapes[name]


def _columns(quantity: Quantity, model: Model, name: str) -> Callable[[Model], Shape]:
    """How many numbers there are to differentiate by, along the tangent."""
    if name == PARAMETERS:
        size = model.parameters.size
    elif name == "q":
        size = model.nv
    else:
        size = prod(quantity.input_shape(model, name))
    return lambda model: (size,)
