"""From a quantity of a formulation to a compiled, batched function of a model.

A quantity of a small model is one straight-line kernel. Past `LOOP_PAST` links its recursion is looped, and what
follows the recursion is a second, small kernel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.algebra.free_number import FreeNumber
from cardan.formulation.looping import record_schedule
from cardan.formulation.quantity import Quantity, Shape
from cardan.formulation.recursions import quantity
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.model import Model
from cardan.model.parameter import with_numbers
from cardan.program.program import Port, Program

# Measured on chains (docs/decisions/0005): beyond this a straight-line kernel takes seconds to compile and runs less
# than a third faster than the loop, which compiles in a tenth of a second.
LOOP_PAST = 64


def kernel_of(model: Model, name: str, formulation: str = "spatial") -> Any:
    """The compiled function of a quantity; made on first use and kept with the model."""
    kernel = model.kernels.get((formulation, name))
    if kernel is None:
        kernel = compile_quantity(model, quantity(formulation, name), formulation)
        model.kernels[formulation, name] = kernel
    return kernel


def graph_of(model: Model, name: str, formulation: str = "spatial") -> Any:
    """The CasADi function of a quantity, unrolled."""
    return function_of(model, quantity(formulation, name))


def is_large(model: Model) -> bool:
    """Whether recursions over the model are looped rather than unrolled."""
    return len(model.tree.links) > LOOP_PAST and not model.parameters


def compile_quantity(model: Model, q: Quantity, formulation: str, *, looped: bool | None = None) -> Any:
    """Make the kernel of a quantity of a model; nothing is recorded before it is called."""
    if looped is None:
        looped = is_large(model) and q.recursion is not None
    inputs = tuple(Port(p, q.input_shape(model, p)) for p in q.inputs)
    outputs = tuple(Port(name, shape(model)) for name, shape in q.outputs)
    if model.parameters:
        inputs = (*inputs, Port("p", (model.parameters.size,)))
        kernel = _kernel(model, f"{formulation} {q.name}", inputs, outputs, lambda: function_of(model, q))
        return FreeKernel(kernel, *parameter_arguments(model))
    if not looped:
        return _kernel(model, f"{formulation} {q.name}", inputs, outputs, lambda: function_of(model, q))
    assert q.recursion is not None
    recursion = q.recursion
    raw = tuple(Port(o.name, _raw_shape(model, o.of, o.shape)) for o in recursion.outputs)
    name = f"{formulation} looped {q.name}"
    first = _kernel(model, name, inputs, raw if q.finish else outputs, lambda: record_schedule(recursion, model))
    if q.finish is None:
        return first
    return _InTwo(first, _kernel(model, f"{name} finished", raw, outputs, lambda: _finish(model, q, raw)))


class FreeKernel:
    """A kernel whose last input are the free parameters, called without them."""

    def __init__(self, kernel: Kernel, p: np.ndarray) -> None:
        self.kernel, self.p = kernel, p
        self._single = p.astype(np.float32)

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        """Evaluate at the values it is bound to; in float32 where every array given is."""
        single = args and getattr(args[0], "dtype", None) == np.float32
        single = single and all(getattr(a, "dtype", None) == np.float32 for a in args)
        return self.kernel(*args, self._single if single else self.p, out=out, threads=threads)

    def at_values(self, p: np.ndarray) -> FreeKernel:
        """The same kernel with other values (..., size)."""
        return FreeKernel(self.kernel, p)


class _InTwo:
    """A looped kernel, and a small one that takes its results."""

    def __init__(self, first: Kernel, second: Kernel) -> None:
        self.first, self.second = first, second

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        results = self.first(*args, threads=threads)
        return self.second(*(results if isinstance(results, tuple) else (results,)), out=out, threads=threads)


def _kernel(
    model: Model, name: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], record: Callable[[], Any]
) -> Kernel:
    key = hashlib.sha256(f"{model.key} {name}".encode()).hexdigest()
    return compile_program(
        Program(
            name.split()[-1].removesuffix("_loaded") if "jacobian" not in name else "jacobian",
            inputs,
            outputs,
            key,
            record,
        )
    )


def function_of(model: Model, q: Quantity) -> Any:
    """The CasADi function of a quantity, unrolled; with free parameters their vector `p` is its last input."""
    import casadi as ca

    symbols = {port: ca.SX.sym(port, *(q.input_shape(model, port) or (1,))) for port in q.inputs}
    written, p = symbolic(model)
    free = [p] if model.parameters else []
    return ca.Function("quantity", [*symbols.values(), *free], q.graph(written, symbols))


def symbolic(model: Model) -> tuple[Model, Any]:
    """The model with its free parameters as symbols, and the column `p` (parameters.size, 1) of these symbols.

    Graphs are written with it. `p` goes in as the last input; `parameter_arguments` gives the array for it. It has no
    parameters itself, and a model without any is returned as it is, with an empty `p`.
    """
    import casadi as ca

    if not model.parameters:
        return model, ca.SX(0, 1)
    kernels = model.unbound.kernels
    if "symbolic" not in kernels:
        p = ca.SX.sym("p", model.parameters.size)
        numbers = [FreeNumber(p[k], float(x)) for k, x in enumerate(model.parameters.nominal)]
        kernels["symbolic"] = with_numbers(model, np.array(numbers, dtype=object)), p
    found: tuple[Model, Any] = kernels["symbolic"]
    return found


def parameter_arguments(model: Model) -> tuple[np.ndarray, ...]:
    """What to pass for `p`: the model's values (..., parameters.size), nominal if none; () if it has no parameters."""
    if not model.parameters:
        return ()
    return (model.parameters.nominal if model.values is None else model.values,)


def _finish(model: Model, q: Quantity, raw: tuple[Port, ...]) -> Any:
    import casadi as ca

    assert q.finish is not None
    symbols = [ca.SX.sym(port.name, *(port.shape or (1,))) for port in raw]
    return ca.Function("finish", symbols, q.finish(model, symbols))


def _raw_shape(model: Model, of: str, shape: Shape) -> Shape:
    count = {"joint": (model.nv,), "link": (len(model.tree.links),), "body": (model.nb,), "total": ()}
    if of == "matrix":
        return (model.nv, model.nv)
    return (*count[of], *shape)
