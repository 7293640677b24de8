"""Functions of arrays that libraries for automatic differentiation can use; no such library is here.

An `Operation` is a function of arrays whose differential, and the transpose of that, are operations again. JAX and
torch need nothing else for derivatives of any mode. A `Rule` is one that evaluates a quantity of a model, with kernels
of their own for its derivatives, of any order. A run (`results.motion_operation`) is another. Its first derivatives
follow the steps that were taken; for higher ones it is written `InSteps`, as rules one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np

from cardan.errors import InputError
from cardan.formulation.differential import FREE, differential, jacobians, transposed
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity, Shape
from cardan.functions.equations import SOLVED, equations
from cardan.lazy import cached_property
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.kernels import FreeKernel, compile_quantity, parameter_arguments
from cardan.structure.row_sets import is_settled
from cardan.structure.rows import solving_facts

_RULES: Slot[tuple[str, str], Rule] = Slot("functions for automatic differentiation, by formulation and quantity")


class Operation:
    """A function of arrays, one for each of `arguments`, with a batch of any shape; free parameters `p` come last.

    `shapes` are those of the arguments, by name, `outputs` those of the results, without the batch.
    """

    model: Model
    arguments: tuple[str, ...]
    shapes: dict[str, Shape]
    outputs: tuple[Shape, ...]
    kernel: Kernel | None
    """What computes it; None where that is not a kernel."""
    linear: frozenset[str] = frozenset()
    """Arguments in which it is linear, all together."""

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """The results at arrays, whose batch axes broadcast."""
        raise NotImplementedError

    def on(self, place: Place) -> Operation:
        """The same with the work done on a card; arrays that are there already are computed there anyway."""
        return self

    def differential(self, names: Sequence[str]) -> Operation:
        """Rates of the results: the arguments, then a rate for each of `names`; see `arranged`."""
        raise NotImplementedError

    def transposed(self, names: Sequence[str], *, linear: bool = False) -> Operation:
        """Gradients by each of `names`: the arguments, then a weight for each result; `linear` leaves `names` out."""
        raise NotImplementedError

    def written(self, library: Library) -> Callable[..., Any] | None:
        """The same as a library's own function, where its derivatives are not operations; None where they are."""
        return None

    def arranged(self, known: Sequence[Any], added: Sequence[Any]) -> list[Any]:
        """Arguments of an operation made from another: `known` those of the other, `added` the new ones, `p` last."""
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


class Library(Protocol):
    """What derivatives of higher order than the first need of a library, for operations that are `InSteps`."""

    def rollout(self, steps: InSteps) -> Callable[..., Any]:
        """The function of arrays that takes all steps, differentiable by the library."""

    def jvp(self, function: Callable[..., Any], x: Sequence[Any], dx: Sequence[Any]) -> Any:
        """Rates of a function's results along `dx`."""

    def vjp(self, function: Callable[..., Any], x: Sequence[Any], w: Sequence[Any]) -> Any:
        """Gradients by `x` of a function's results times `w`."""


@dataclass(frozen=True, eq=False)
class InSteps:
    """A run in steps of given lengths, as rules: `start`, n steps, and at m samples a shorter step and `sample`.

    A step has stages, with the coefficients `A` (s, s) and `c` (s,), and a `finish`. The steps have times `t` (n,) and
    lengths `h` (n,), s. Each sample lies in the step of number `at` (m,), whose length until there is `part` (m,), at
    the time `when` (m,). The rules' arguments are those of `StepDerivatives.quantities`, in `integrate.explicit`.
    """

    start: Rule
    stage: Rule
    finish: Rule
    sample: Rule
    A: np.ndarray
    c: np.ndarray
    t: np.ndarray
    h: np.ndarray
    at: np.ndarray
    part: np.ndarray
    when: np.ndarray

    def step(
        self, call: Callable[[Rule, list[Any]], Any], state: Sequence[Any], tau: Any, t: Any, h: Any, p: Sequence[Any]
    ) -> Any:
        """The state `q`, `v` after a step, of a library's arrays; `call` evaluates a rule at them."""
        (q, v), length = state, h[..., None]
        K: list[Any] = []
        for i, c in enumerate(self.c.tolist()):
            x, y = q, v
            for w, (kq, kv) in zip(self.A[i].tolist(), K, strict=False):
                if w:
                    x, y = x + w * length * kq, y + w * length * kv
            K.append(call(self.stage, [x, y, tau, t + c * h, *p]))
        return call(self.finish, [q, v, tau, t, h, *(k for pair in K for k in pair), *p])


class Rule(Operation):
    """A quantity as a function of arrays."""

    def __init__(self, model: Model, formulation: Formulation, quantity: Quantity) -> None:
        self.model, self.formulation, self.quantity = model, formulation, quantity
        self.arguments = (*quantity.inputs, *((FREE,) if model.parameters else ()))
        self.shapes = {name: quantity.input_shape(model, name) for name in quantity.inputs}
        if model.parameters:
            self.shapes[FREE] = (model.parameters.size,)
        self.outputs = tuple(shape(model) for _, shape in quantity.outputs)

    def __repr__(self) -> str:
        """What it computes, and of which arguments."""
        return f"<{self.quantity.name}({', '.join(self.arguments)}) of {self.model.name!r}>"

    @classmethod
    def of(cls, model: Model, formulation: Formulation, quantity: Quantity) -> Rule:
        """The rule of a quantity; a model remembers it by the quantity's name."""
        home = model.unbound
        return _RULES.find(home, (formulation.key, quantity.name), lambda: cls(home, formulation, quantity))

    @cached_property
    def kernel(self) -> Kernel:  # type: ignore[override]
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
        return Rule.of(self.model, self.formulation, quantity)


def rule_of(owner: str, model: Model, name: str, formulation: str | Formulation) -> Rule:
    """The rule of a quantity that is named as in `cd.equations(model).graph`."""
    eq = equations(model, formulation=formulation)
    quantity = eq.quantity(name)
    if name in SOLVED or name == "reactions":
        model.require_no_laws(owner, "cd.forward_dynamics finds it at each state and has by=")
    if model.has_rows and not is_settled(model):
        raise InputError(
            f"{owner}: which constraints of model {model.name!r} are redundant depends on the configuration; "
            "cd.forward_dynamics chooses them at each state and has by="
        )
    if not any(map(prod, (shape(model) for _, shape in quantity.outputs))):
        raise InputError(f"{owner}: every result is empty, there is nothing to compute")
    return Rule.of(model, eq.formulation, quantity)


def arguments_of(owner: str, rule: Operation, model: Model, given: Sequence[Any]) -> list[Any]:
    """The caller's arguments; where the free parameters are left out, the model's values are put last."""
    values = parameter_arguments(model)
    wanted = len(rule.arguments)
    if len(given) == wanted:
        return [*given]
    if len(given) == wanted - len(values):
        return [*given, *values]
    raise InputError(f"{owner}: takes {wanted} arrays ({', '.join(rule.arguments)}), got {len(given)}")
