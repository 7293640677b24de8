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
from typing import TYPE_CHECKING, Any

from cardan.algebra.matrix import Matrix
from cardan.formulation.dynamics import parts_at
from cardan.formulation.formulation import Parts, tree_rates
from cardan.formulation.quantity import Inputs, Quantity, Shape
from cardan.formulation.response import MANY, Changes, in_stages
from cardan.formulation.tree import TreeFormulation
from cardan.model.model import Model

if TYPE_CHECKING:
    from cardan.program.stages import Stages

CHARTS = ("tangent", "coordinates", "independent")
PARAMETERS = "parameters"


@dataclass(frozen=True)
class By:
    """What is differentiated by: names of inputs, or "parameters"; and the chart of `q`."""

    names: tuple[str, ...]
    chart: str = "tangent"

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


def forward_dynamics_by(
    formulation: TreeFormulation, rows: Sequence[int], quantity: Quantity, by: By, model: Model
) -> Quantity:
    """Forward dynamics in the tree's coordinates, with derivatives of the equations that the answer solves.

    At the answer `a`, `lam` the rest `f - M a - J^T lam`, `gamma - J a` vanishes for every state. So its derivative at
    fixed `a`, `lam` is what the same equations give as the derivative of the answer: one solution a column, with the
    factors at hand, and none of the solving is differentiated.
    """

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        parts, a, right = changes_at(model, inputs)
        return [a, *formulation.solve_many(parts, rows, right)]

    def stages(model: Model, inputs: Inputs) -> Stages | None:
        parts, a, right = changes_at(model, inputs)
        given = formulation.factors(parts, rows)
        return None if given is None else in_stages([*inputs.values()], a, given, right)

    def changes_at(model: Model, inputs: Inputs) -> tuple[Parts, Matrix, list[Changes]]:
        """The equations, their answer, and by each name what the rest changes by."""
        parts = parts_at(model, formulation, inputs)
        a, lam = formulation.solve(parts, rows)
        known = known_changes(parts, a, lam)
        left = [name for name in by.names if name not in known]
        if left:
            known |= differentiated_changes(model, parts, inputs, left, a, lam)
        return parts, a, [known[name] for name in by.names]

    def known_changes(parts: Parts, a: Matrix, lam: Matrix) -> dict[str, Changes]:
        """What the formulation itself knows."""
        wanted = {name for name in by.names if name == "v" or (name == "q" and by.chart == "tangent")}
        found = formulation.equation_changes(parts, rows, a, lam) if wanted else None
        return {} if found is None else {name: x for name, x in zip("qv", found, strict=True) if name in wanted}

    def differentiated_changes(
        model: Model, parts: Parts, inputs: Inputs, names: list[str], a: Matrix, lam: Matrix
    ) -> dict[str, Changes]:
        """The rest of the equations differentiated at fixed `a`, `lam`."""
        import casadi as ca

        kept = parts.rows.kept(rows)
        a0, lam0 = ca.SX.sym("a", model.nv), ca.SX.sym("lam", len(rows))
        rest = ca.vertcat(formulation.missing_force(parts, a0) - kept.J.T @ lam0, kept.gamma - kept.J @ a0)
        columns = [_derivative(model, rest, inputs, name, by.chart) for name in names]
        symbols = [x for x in inputs.values() if x.numel()]
        found: Any = ca.Function("rest", [*symbols, a0, lam0], columns).call([*symbols, a, lam])
        return {name: Changes(x[: model.nv, :], x[model.nv :, :]) for name, x in zip(names, found, strict=True)}

    found = differentiated(quantity, by, model)
    columns = sum(shape(model)[1] for _, shape in found.outputs[1:])
    return replace(found, write=write, stages=stages if model.nv >= MANY and columns >= len(rows) else None)


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


def tangent(model: Model, q: Matrix) -> Matrix:
    """`N` (nq, nv) with `qdot = N(q) v`: the directions in which `q` can move."""
    import casadi as ca

    v = ca.SX.sym("v", model.nv)
    return ca.jacobian(tree_rates(model, q, v), v)


# Products with derivatives, without the derivative itself.


def pushed(quantity: Quantity, names: tuple[str, ...], model: Model) -> Quantity:
    """Values, then their rates `d{output}` along directions: inputs `d{name}`, for `q` rates (nv,), come last."""
    shapes = _shapes(quantity, model)
    along = {f"d{name}": (model.nv,) if name == "q" else _shape_by(shapes, name, model) for name in names}

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        values = quantity.graph(model, inputs)
        rates = []
        for value in values:
            x = ca.vec(value.T)
            total = type(x)(*x.shape)
            for name in names:
                total = total + ca.jtimes(x, *_direction(model, inputs, name, inputs[f"d{name}"]))
            rates.append(ca.reshape(total, value.shape[1], value.shape[0]).T)
        return values + rates

    outputs = (*quantity.outputs, *((f"d{label}", shape) for label, shape in quantity.outputs))
    return Quantity(
        f"pushed {' '.join(names)} {quantity.name}", (*quantity.inputs, *along), outputs, write=write,
        shapes=shapes | along,
    )  # fmt: skip


def pulled(quantity: Quantity, names: tuple[str, ...], model: Model) -> Quantity:
    """The value, then the gradients `w_{name}` of `w . value`; the weights `w`, of the value's shape, come last."""
    shapes = _shapes(quantity, model) | {"w": quantity.outputs[0][1](model)}

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        value = quantity.graph(model, inputs)[0]
        return [value, *(_gradient(model, _weighed(value, inputs["w"]), inputs, name) for name in names)]

    outputs = (quantity.outputs[0], *((f"w_{name}", _columns(quantity, model, name)) for name in names))
    return Quantity(
        f"pulled {' '.join(names)} {quantity.name}", (*quantity.inputs, "w"), outputs, write=write, shapes=shapes
    )


def curved(quantity: Quantity, names: tuple[str, ...], model: Model) -> Quantity:
    """Second derivatives of `w . value`: `H` (n, n), rows and columns those of `names` one after the other.

    By `q` they are those of `w . value(plus(q, delta))` by `delta` at zero. Since `plus` moves with constant rates,
    that is the symmetric part of the derivative of the gradient, each along the tangent.
    """
    shapes = _shapes(quantity, model) | {"w": quantity.outputs[0][1](model)}
    counts = [_columns(quantity, model, name)(model)[0] for name in names]
    n = sum(counts)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        scalar = _weighed(quantity.graph(model, inputs)[0], inputs["w"])
        gradient = ca.vertcat(*(_gradient(model, scalar, inputs, name) for name in names))
        H = ca.horzcat(*(_derivative(model, gradient, inputs, name, "tangent") for name in names))
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


def _direction(model: Model, inputs: Inputs, name: str, d: Matrix) -> tuple[Matrix, Matrix]:
    """An input as a column, and the rate of its numbers along a direction."""
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
