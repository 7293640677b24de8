"""Compiled kernels inside CasADi: a rule at all nodes of a discretisation in one call, with its derivatives.

A matrix argument has the node's columns side by side, (m, n * nodes), so that Jacobians are block diagonal. CasADi asks
for the Jacobian of the function, for its reverse derivative, and for the Jacobian of that: the Hessian of a Lagrangian.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import casadi as ca
import numpy as np

from cardan.formulation.quantity import Shape
from cardan.functions.differentiable import Rule

_KEPT: list[Any] = []
"""CasADi holds no reference to a function that is written in Python."""


def _matrix(shape: Shape) -> tuple[int, int]:
    """Rows and columns of an array as CasADi has it."""
    return (shape[0], shape[1]) if len(shape) == 2 else (prod(shape), 1)


def _dense(shape: Shape, nodes: int) -> Any:
    m, n = _matrix(shape)
    return ca.Sparsity.dense(m, n * nodes)


@cache
def _blocks(m: int, n: int, nodes: int) -> Any:
    """A block (m, n) for each node on the diagonal."""
    return ca.kron(ca.DM.eye(nodes), ca.DM.ones(m, n)).sparsity()


def _from_casadi(x: Any, shape: Shape, nodes: int) -> np.ndarray:
    """(nodes, *shape)."""
    m, n = _matrix(shape)
    return x.full().reshape(m, nodes, n).transpose(1, 0, 2).reshape((nodes, *shape))


def _to_casadi(y: np.ndarray, shape: Shape, nodes: int) -> Any:
    m, n = _matrix(shape)
    return ca.DM(y.reshape(nodes, m, n).transpose(1, 0, 2).reshape(m, n * nodes))


class _Named(ca.Callback):
    """A function with names and shapes for its inputs, and a sparsity for each output."""

    def __init__(
        self, name: str, inputs: dict[str, Shape], outputs: dict[str, Any], nodes: int, options: dict[str, Any]
    ) -> None:
        ca.Callback.__init__(self)
        self.inputs, self.outputs, self.nodes = inputs, outputs, nodes
        self.shapes = [*inputs.values()]
        _KEPT.append(self)
        self.construct(name, options)

    def get_n_in(self) -> int:
        return len(self.inputs)

    def get_n_out(self) -> int:
        return len(self.outputs)

    def get_name_in(self, i: int) -> str:
        return [*self.inputs][i]

    def get_name_out(self, i: int) -> str:
        return [*self.outputs][i]

    def get_sparsity_in(self, i: int) -> Any:
        return _dense(self.shapes[i], self.nodes)

    def get_sparsity_out(self, i: int) -> Any:
        return [*self.outputs.values()][i]

    def arrays(self, given: Any, places: list[int]) -> list[np.ndarray]:
        """The inputs at these places as arrays with the nodes ahead."""
        return [_from_casadi(given[i], self.shapes[i], self.nodes) for i in places]


class _Function(_Named):
    """The results of a rule at all nodes. `places` are the inputs that are its arguments; CasADi passes further ones.

    `results` has for each output the shape, and which result of the rule it is, None for zero.
    """

    def __init__(
        self, name: str, rule: Rule, nodes: int, inputs: dict[str, Shape], places: list[int],
        results: dict[str, tuple[Shape, int | None]], options: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.rule, self.places, self.results = rule, places, [*results.values()]
        outputs = {
            label: ca.Sparsity(*_dense(shape, nodes).shape) if k is None else _dense(shape, nodes)
            for label, (shape, k) in results.items()
        }
        super().__init__(name, inputs, outputs, nodes, options or {})

    def eval(self, given: Any) -> list[Any]:
        found = self.rule(*self.arrays(given, self.places))
        return [
            ca.DM(sparsity) if k is None else _to_casadi(found[k], shape, self.nodes)
            for (shape, k), sparsity in zip(self.results, self.outputs.values(), strict=True)
        ]

    def has_reverse(self, directions: int) -> bool:
        return directions == 1

    def get_reverse(self, _: int, name: str, labels: Any, out: Any, options: Any) -> Any:
        """Of inputs, outputs and a weight for each output: gradients by the inputs."""
        rule, outputs = self.rule, [shape for shape, _ in self.results]
        t = rule.transposed(rule.arguments)
        first = len(self.shapes) + len(outputs)
        weights = [first + [k for _, k in self.results].index(r) for r in range(len(rule.outputs))]
        inputs = dict(zip(labels, [*self.shapes, *outputs, *outputs], strict=True))
        results = {
            label: (shape, self.places.index(i) if i in self.places else None)
            for i, (label, shape) in enumerate(zip(out, self.shapes, strict=True))
        }
        return _Function(name, t, self.nodes, inputs, t.arranged(self.places, weights), results, options)

    def has_jacobian(self) -> bool:
        return True

    def has_jac_sparsity(self, o: int, i: int) -> bool:
        return True

    def get_jac_sparsity(self, o: int, i: int, symmetric: bool) -> Any:
        shape, k = self.results[o]
        m, n = prod(shape), prod(self.shapes[i])
        if k is None or i not in self.places:
            return ca.Sparsity(m * self.nodes, n * self.nodes)
        return _blocks(m, n, self.nodes)

    def get_jacobian(self, name: str, labels: Any, out: Any, options: Any) -> Any:
        return _Jacobian(name, self, labels, out, options)


class _Jacobian(_Named):
    """The Jacobians of a function by each of its inputs; inputs are those of the function, then its outputs."""

    def __init__(self, name: str, of: _Function, labels: Any, out: Any, options: Any) -> None:
        self.of, self.rule = of, of.rule.jacobians()
        inputs = dict(zip(labels, [*of.shapes, *(shape for shape, _ in of.results)], strict=True))
        pairs = [(o, i) for o in range(len(of.results)) for i in range(len(of.shapes))]
        outputs = {label: of.get_jac_sparsity(o, i, False) for label, (o, i) in zip(out, pairs, strict=True)}
        count = len(of.places)
        places = {i: a for a, i in enumerate(of.places)}
        self.blocks: list[int | None] = []
        for o, i in pairs:
            k = of.results[o][1]
            self.blocks.append(None if k is None or i not in places else k * count + places[i])
        super().__init__(name, inputs, outputs, of.nodes, options)

    def eval(self, given: Any) -> list[Any]:
        found = self.rule(*self.arrays(given, self.of.places))
        return [
            ca.DM(sparsity) if block is None else ca.DM(sparsity, found[block].transpose(0, 2, 1).ravel())
            for block, sparsity in zip(self.blocks, self.outputs.values(), strict=True)
        ]


def nodes_function(name: str, rule: Rule, nodes: int) -> Any:
    """The rule of a quantity at so many nodes, as a CasADi function."""
    labels = [label for label, _ in rule.quantity.outputs]
    labels = [f"{label}_out" if label in rule.arguments else label for label in labels]
    results: dict[str, tuple[Shape, int | None]]
    results = {label: (shape, k) for k, (label, shape) in enumerate(zip(labels, rule.outputs, strict=True))}
    shapes = {argument: rule.shapes[argument] for argument in rule.arguments}
    return _Function(name, rule, nodes, shapes, [*range(len(shapes))], results)
