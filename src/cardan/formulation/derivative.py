"""Derivatives of quantities: a quantity and what it is differentiated by make another quantity.

A column of a derivative by `q` is the derivative along a motion with unit rate: `q` moves as `plus(q, delta)` with
`delta` (nv,), so that there are nv columns (`chart="tangent"`). With `chart="coordinates"` there are nq, those of the
numbers in `q` as they stand, those of a quaternion included. The two are related by `qdot = N(q) v`: `D_tangent =
D_coordinates N`.

Loops and constraints are not imposed on the directions: these are partial derivatives of the equations as they stand,
at the rows that are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from cardan.algebra.matrix import Matrix
from cardan.formulation.formulation import tree_rates
from cardan.formulation.quantity import Inputs, Quantity, Shape
from cardan.model.model import Model

CHARTS = ("tangent", "coordinates")
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
    free = model.parameters.size

    def columns(name: str) -> Callable[[Model], int]:
        def count(model: Model) -> int:
            if name == PARAMETERS:
                return free
            if name == "q" and by.chart == "tangent":
                return model.nv
            return prod(quantity.input_shape(model, name))

        return count

    def shape(output: Callable[[Model], Shape], name: str) -> Callable[[Model], Shape]:
        return lambda model: (prod(output(model)), columns(name)(model))

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        values = quantity.graph(model, inputs)
        return values + [_derivative(model, value, inputs, name, by.chart) for value in values for name in by.names]

    outputs = [*quantity.outputs]
    outputs += [(f"{label}_{name}", shape(output, name)) for label, output in quantity.outputs for name in by.names]
    return Quantity(f"{quantity.name} {by.key}", quantity.inputs, tuple(outputs), write=write, shapes=quantity.shapes)


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
