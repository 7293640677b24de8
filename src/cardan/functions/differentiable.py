"""A quantity of a model as a function that libraries for automatic differentiation can use; no such library is here.

A `Rule` evaluates a quantity on arrays. Its differential and the transpose of that are rules again, from kernels of
their own: `cd.jax_function` and `cd.torch_function` need nothing else for derivatives of any order and mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.differential import FREE, differential, jacobians, transposed
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity, Shape
from cardan.functions.equations import equations
from cardan.lazy import cached_property
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.kernels import FreeKernel, compile_quantity, parameter_arguments
from cardan.structure.row_sets import is_settled
from cardan.structure.rows import solving_facts

_RULES: Slot[tuple[str, str], Rule] = Slot("functions for automatic differentiation, by formulation and quantity")


class Rule:
    """A quantity as a function of arrays, one for each of `arguments`; free parameters `p` are the last of them."""

    def __init__(self, model: Model, formulation: Formulation, quantity: Quantity) -> None:
        self.model, self.formulation, self.quantity = model, formulation, quantity
        self.arguments = (*quantity.inputs, *((FREE,) if model.parameters else ()))
        self.shapes: dict[str, Shape] = {name: quantity.input_shape(model, name) for name in quantity.inputs}
        if model.parameters:
            self.shapes[FREE] = (model.parameters.size,)
        self.outputs = tuple(shape(model) for _, shape in quantity.outputs)

    def __repr__(self) -> str:
        """What it computes, and of which arguments."""
        return f"<{self.quantity.name}({', '.join(self.arguments)}) of {self.model.name!r}>"

    @cached_property
    def kernel(self) -> Kernel:
        """The compiled function."""
        facts = f"rule {solving_facts(self.model, self.formulation)}"
        kernel = compile_quantity(self.model, self.quantity, facts, looped=False)
        return kernel.kernel if isinstance(kernel, FreeKernel) else kernel

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The results at arrays, whose batch axes broadcast; float32 where all of them are."""
        found = self.kernel(*arrays)
        return found if isinstance(found, tuple) else (found,)

    def differential(self, names: Sequence[str]) -> Rule:
        """Rates of the results: the arguments, then a rate for each of `names`; see `arranged`."""
        return self._other(differential(self.quantity, tuple(names), self.model))

    def transposed(self, names: Sequence[str], *, linear: bool = False) -> Rule:
        """Gradients by each of `names`: the arguments, then a weight for each result; `linear` leaves `names` out."""
        return self._other(transposed(self.quantity, tuple(names), self.model, linear=linear))

    def jacobians(self) -> Rule:
        """Matrices of the differential, for each result and each argument; see `formulation.differential.jacobians`."""
        return self._other(jacobians(self.quantity, self.arguments, self.model))

    def _other(self, quantity: Quantity) -> Rule:
        key = (self.formulation.key, quantity.name)
        return _RULES.find(self.model, key, lambda: Rule(self.model, self.formulation, quantity))

    def arranged(self, known: Sequence[Any], added: Sequence[Any]) -> list[Any]:
        """Arguments of a rule made from another: `known` those of the other, `added` the new ones, `p` last."""
        if not self.model.parameters:
            return [*known, *added]
        return [*known[:-1], *added, known[-1]]

    def batch(self, owner: str, shapes: Sequence[Shape]) -> Shape:
        """The broadcast of all axes ahead of those of the arguments; what does not fit is an InputError."""
        batches = []
        for name, shape in zip(self.arguments, shapes, strict=True):
            core = self.shapes[name]
            split = len(shape) - len(core)
            if split < 0 or tuple(shape[split:]) != core:
                raise InputError(
                    f"{owner}: {name} has shape {tuple(shape)}, the model needs (..., {', '.join(map(str, core))})"
                )
            batches.append(tuple(shape[:split]))
        try:
            return np.broadcast_shapes(*batches)
        except ValueError:
            told = ", ".join(f"{b} of {name}" for name, b in zip(self.arguments, batches, strict=True))
            raise InputError(f"{owner}: batch shapes do not broadcast: {told}") from None


def rule_of(owner: str, model: Model, name: str, formulation: str | Formulation) -> Rule:
    """The rule of a quantity that is named as in `cd.equations(model).graph`."""
    eq = equations(model, formulation=formulation)
    quantity = eq.quantity(name)
    if model.has_rows and not is_settled(model):
        raise InputError(
            f"{owner}: which constraints of model {model.name!r} are redundant depends on the configuration; "
            "cd.forward_dynamics chooses them at each state and has by="
        )
    if not any(map(prod, (shape(model) for _, shape in quantity.outputs))):
        raise InputError(f"{owner}: every result is empty, there is nothing to compute")
    home = model.unbound
    return _RULES.find(home, (eq.formulation.key, quantity.name), lambda: Rule(home, eq.formulation, quantity))


def arguments_of(owner: str, rule: Rule, model: Model, given: Sequence[Any]) -> list[Any]:
    """The caller's arguments; where the free parameters are left out, the model's values are put last."""
    values = parameter_arguments(model)
    wanted = len(rule.arguments)
    if len(given) == wanted:
        return [*given]
    if len(given) == wanted - len(values):
        return [*given, *values]
    raise InputError(f"{owner}: takes {wanted} arrays ({', '.join(rule.arguments)}), got {len(given)}")
