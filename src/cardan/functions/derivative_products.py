"""Products with derivatives of a model's quantities: `jvp`, `vjp` and second derivatives, as kernels of their own.

The quantity is named as in `Equations.graph`; its arguments come by name, those left out are zero. Shapes: `q` (...,
nq), its directions and gradients (..., nv) along the tangent; everything else has the shape of its argument. SI units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.derivative import curved, pulled, pushed
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity
from cardan.functions.derivatives import checked_names, names_of
from cardan.functions.equations import SOLVED, equations
from cardan.functions.looped import is_looped_tree, warn_of_compiling
from cardan.machines.cuda.place import place_of
from cardan.model.memory import KernelSlot, Slot
from cardan.model.model import Model
from cardan.model.values import array
from cardan.on_card import is_device_array, require_host
from cardan.structure.digits import watch_derivatives
from cardan.structure.dynamics import chosen_kernel
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import compile_quantity
from cardan.structure.rows import solving_facts

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_KERNELS: KernelSlot[tuple[str, str, tuple[str, ...]]] = KernelSlot("products with derivatives")
_QUANTITIES: Slot[tuple[str, str], Quantity] = Slot("quantities whose derivatives are in products")
Arrays = Mapping[str, "ArrayLike"]
SWEEPS = 4  # operations of a product, by those of the quantity
Product = Callable[[Quantity, tuple[str, ...], Model], Quantity]


def jvp(
    model: Model, name: str, at: Arrays, along: Arrays, *, formulation: str | Formulation = "spatial",
    device: str | None = None,
) -> tuple[NDArray[Any], NDArray[Any]]:  # fmt: skip
    """Value of a quantity at `at`, and its rate when its arguments move with the rates `along`; both (..., shape).

        a, adot = cd.jvp(model, "forward_dynamics", {"q": q, "v": v, "tau": tau}, {"q": v, "v": a})

    Along "q" goes a rate (..., nv), along "parameters" one of the free parameters.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    owner = f"jvp of {name!r}"
    if not isinstance(along, Mapping):
        raise InputError(f"{owner}: rates come by name, such as {{'q': v}}, got {type(along).__name__}")
    names = tuple(along)
    kernel, quantity = _kernel(owner, model, name, formulation, pushed, names)
    rates = [_numbers(owner, f"the rate of {key}", x) for key, x in along.items()]
    arguments = [*_arguments(owner, model, quantity, at), *rates]
    value, rate = kernel(*arguments, threads=None if device is None else place_of(owner, device))
    return value, rate


def vjp(
    model: Model, name: str, at: Arrays, weights: ArrayLike, *, by: Sequence[str] = ("q", "v"),
    formulation: str | Formulation = "spatial", device: str | None = None,
) -> tuple[NDArray[Any], dict[str, NDArray[Any]]]:  # fmt: skip
    """Value of a quantity at `at`, and the gradients of `sum(weights * value)` by each name, from one reverse sweep.

        a, gradient = cd.vjp(model, "forward_dynamics", {"q": q, "v": v, "tau": tau}, w, by=("q", "v", "tau"))

    `weights` has the shape of the value; `gradient["q"]` is (..., nv), along the tangent.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    owner, names = f"vjp of {name!r}", names_of(by)
    kernel, quantity = _kernel(owner, model, name, formulation, pulled, names)
    arguments = [*_arguments(owner, model, quantity, at), _numbers(owner, "weights", weights)]
    value, *gradients = kernel(*arguments, threads=None if device is None else place_of(owner, device))
    shaped = (
        g.reshape((*g.shape[:-1], model.nb, 6)) if key == "wrenches" else g
        for key, g in zip(names, gradients, strict=True)
    )
    return value, dict(zip(names, shaped, strict=True))


def weighted_hessian(
    model: Model, name: str, at: Arrays, weights: ArrayLike, *, by: Sequence[str] = ("q", "v"),
    formulation: str | Formulation = "spatial", device: str | None = None,
) -> NDArray[Any]:  # fmt: skip
    """Second derivatives (..., n, n) of `sum(weights * value)`, symmetric; `by` says rows and columns, in this order.

    By "q" they are those of the value at `cd.plus(model, q, delta)` by `delta` (nv,) at zero: what DDP and SQP need.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    owner, names = f"weighted_hessian of {name!r}", names_of(by)
    kernel, quantity = _kernel(owner, model, name, formulation, curved, names)
    arguments = [*_arguments(owner, model, quantity, at), _numbers(owner, "weights", weights)]
    return kernel(*arguments, threads=None if device is None else place_of(owner, device))


def _kernel(
    owner: str, model: Model, name: str, formulation: str | Formulation, product: Product, names: tuple[str, ...]
) -> tuple[Any, Quantity]:
    """The kernel of a product, and the quantity whose derivatives are in it."""
    found = formulation_of(model, formulation)
    if not all(isinstance(key, str) for key in names):
        raise InputError(f"{owner}: by must be a name or several, such as by=('q', 'v'), got {names!r:.80}")
    quantity = _QUANTITIES.find(model, (found.key, name), lambda: equations(model, formulation=found).quantity(name))
    place = (found.key, f"{product.__name__} {name}", names)

    def with_rows(one: Model) -> Any:
        warn_of_compiling(owner, model, name, model.nv if product is curved else SWEEPS, model.nv)
        whole = product(equations(one, formulation=found).quantity(name), names, one)
        return compile_quantity(one, whole, solving_facts(one, found))

    def make() -> Any:
        if not names:
            raise InputError(f"{owner}: nothing to differentiate by; its arguments are {', '.join(quantity.inputs)}")
        checked_names(owner, model, names, quantity)
        equations(model, formulation=found).require_derivatives(owner, name)
        if name in SOLVED and (model.has_rows or not found.in_tree):
            kernel = chosen_kernel(model, (found.key, f"{product.__name__} {name} by {names}", True), with_rows)
            watch_derivatives(owner, model, found, kernel, names, 2 if product is curved else 1)
            return kernel
        whole = product(quantity, names, model)
        by_jacobians = _looped_by(model, found, name, names) if whole.recursion is None else None
        if by_jacobians is not None and product is not curved:
            return _FromJacobians(owner, product, names, whole, model, by_jacobians)
        if whole.recursion is None or model.parameters:
            warn_of_compiling(owner, model, name, model.nv if product is curved else SWEEPS, model.nv)
        return compile_quantity(model, whole, solving_facts(model, found))

    return _KERNELS.find(model, place, make), quantity


def _looped_by(model: Model, formulation: Formulation, name: str, names: tuple[str, ...]) -> Any:
    """Value and derivatives of a quantity of a large tree, from looped kernels; None if there are none."""
    if not is_looped_tree(model, formulation):
        return None
    from cardan.functions.looped_derivatives import looped_by  # which small models do without

    return looped_by(model, name, names)


class _FromJacobians:
    """A product with Jacobians that are quicker to compile, in place of its kernel."""

    def __init__(
        self, owner: str, product: Product, names: tuple[str, ...], whole: Quantity, model: Model, by: Any
    ) -> None:
        self.owner, self.ports = owner, whole.inputs
        self.pushes, self.names, self.by = product is pushed, names, by
        self.own = whole.outputs[0][1](model)
        self.shapes = [whole.input_shape(model, name) for name in whole.inputs]

    def __call__(self, *args: NDArray[Any], threads: Any = None) -> tuple[NDArray[Any], ...]:
        """The value, then its rate along the last arguments, or its gradients with the last one as weights."""
        for port, x in zip(self.ports, args, strict=True):
            require_host(self.owner, **{port: x})
        n = len(self.names) if self.pushes else 1
        value, every = self.by(*args[:-n], threads=threads)
        batch = value.shape[: value.ndim - len(self.own)]
        J = [every[name].reshape(*batch, prod(self.own), -1) for name in self.names]
        last = [
            array(self.owner, port, x, *shape).reshape(*np.shape(x)[: np.ndim(x) - len(shape)], -1)
            for port, x, shape in zip(self.ports[-n:], args[-n:], self.shapes[-n:], strict=True)
        ]
        if not self.pushes:
            return value, *((last[0][..., None, :] @ D)[..., 0, :] for D in J)
        rate = sum((D @ d[..., None])[..., 0] for D, d in zip(J, last, strict=True))
        return value, np.asarray(rate).reshape(*np.shape(rate)[:-1], *self.own)


def _arguments(owner: str, model: Model, quantity: Quantity, at: Arrays) -> list[np.ndarray]:
    """Arrays in the order of the quantity's inputs."""
    if not isinstance(at, Mapping):
        raise InputError(f"{owner}: its arguments come by name, such as {{'q': q, 'v': v}}, got {type(at).__name__}")
    for key in at:
        if key not in quantity.inputs:
            raise UnknownNameError(f"{owner}: {key!r} is not one of its arguments{nearest(key, quantity.inputs)}")
    if "q" in quantity.inputs and "q" not in at:
        raise InputError(f"{owner}: the configuration 'q' is missing")
    zero = {name: np.zeros(quantity.input_shape(model, name)) for name in quantity.inputs}
    return [_numbers(owner, name, at.get(name, zero[name])) for name in quantity.inputs]


def _numbers(owner: str, name: str, x: Any) -> np.ndarray:
    """Real numbers as float64, whatever a user gave; arrays on a card as they are."""
    if is_device_array(x):
        return x
    try:
        numbers = np.asarray(x)
    except (TypeError, ValueError):  # ragged lists
        numbers = np.asarray(None)
    if numbers.dtype.kind not in "fiub":
        raise InputError(f"{owner}: {name} must be an array of real numbers, got {x!r:.80}")
    return numbers.astype(float, copy=False)
