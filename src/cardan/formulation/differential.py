"""The differential of a quantity and its transpose, by the numbers in its inputs as they stand. Both are quantities.

With `dy = D(x) dx`, `differential` gives `dy` and `transposed` gives `D(x)^T w`. Either can be taken of the other and
of itself, so that derivatives of every order come from these two. Libraries for automatic differentiation need no more.
By `q` the numbers are its nq coordinates, those of quaternions included.
"""

from __future__ import annotations

from math import prod

from cardan.algebra.matrix import Matrix
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed
from cardan.model.model import Model

FREE = "p"
"""The input that holds the free parameters."""


def differential(quantity: Quantity, names: tuple[str, ...], model: Model) -> Quantity:
    """Rates of the outputs where the inputs `names` move with rates, which are further inputs; linear in these."""
    shapes = {name: quantity.input_shape(model, name) for name in quantity.inputs}
    rates = {f"d{name}_{len(shapes)}": _shape(quantity, model, name) for name in names}

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        x = ca.vertcat(*(ca.vec(inputs[name]) for name in names))
        dx = ca.vertcat(*(ca.vec(inputs[rate]) for rate in rates))
        values = quantity.graph(model, inputs)
        dy = ca.jtimes(ca.vertcat(*map(ca.vec, values)), x, dx)
        return _split(dy, [value.shape for value in values])

    outputs = tuple((f"d{label}", shape) for label, shape in quantity.outputs)
    name = f"differential by {' '.join(names)} of {quantity.name}"
    return Quantity(name, (*shapes, *rates), outputs, write=write, shapes=shapes | rates)


def transposed(quantity: Quantity, names: tuple[str, ...], model: Model, *, linear: bool = False) -> Quantity:
    """Gradients of `sum(w . outputs)` by the inputs `names`; the weights `w`, one for each output, are further inputs.

    With `linear` the outputs are linear in these inputs: the gradients do not depend on them, and they are left out.
    """
    gone = {name: _shape(quantity, model, name) for name in names if linear}
    shapes = {name: quantity.input_shape(model, name) for name in quantity.inputs if name not in gone}
    weights = {f"w{label}_{len(shapes)}": shape(model) for label, shape in quantity.outputs}

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        linear_in = {name: ca.SX.sym(name, *(shape or (1,))) for name, shape in gone.items()}
        known = inputs | linear_in
        x = ca.vertcat(*(ca.vec(known[name]) for name in names))
        y = ca.vertcat(*map(ca.vec, quantity.graph(model, known)))
        w = ca.vertcat(*(ca.vec(inputs[weight]) for weight in weights))
        g = ca.jtimes(y, x, w, True)
        if gone:
            at = ca.vertcat(*map(ca.vec, linear_in.values()))
            g = ca.substitute(g, at, ca.SX.zeros(*at.shape))
        return _split(g, [known[name].shape for name in names])

    outputs = tuple((f"g_{name}", fixed(*_shape(quantity, model, name))) for name in names)
    name = f"transposed{' linear' if linear else ''} by {' '.join(names)} of {quantity.name}"
    return Quantity(name, (*shapes, *weights), outputs, write=write, shapes=shapes | weights)


def _shape(quantity: Quantity, model: Model, name: str) -> Shape:
    return (model.parameters.size,) if name == FREE else quantity.input_shape(model, name)


def _split(column: Matrix, shapes: list[tuple[int, int]]) -> list[Matrix]:
    """A column as the matrices that were stacked in it."""
    import casadi as ca

    parts, at = [], 0
    for shape in shapes:
        parts.append(ca.reshape(column[at : at + prod(shape)], *shape))
        at += prod(shape)
    return parts


def jacobians(quantity: Quantity, names: tuple[str, ...], model: Model) -> Quantity:
    """Matrices of the differential, for each output and each name: entries of both are counted column by column."""
    shapes = {name: quantity.input_shape(model, name) for name in quantity.inputs}

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        values = quantity.graph(model, inputs)
        return [ca.jacobian(ca.vec(value), ca.vec(inputs[name])) for value in values for name in names]

    sizes = {name: prod(_shape(quantity, model, name)) for name in names}
    outputs = tuple(
        (f"{label}_{name}", fixed(prod(shape(model)), size))
        for label, shape in quantity.outputs
        for name, size in sizes.items()
    )
    return Quantity(f"jacobians of {quantity.name}", tuple(shapes), outputs, write=write, shapes=shapes)
