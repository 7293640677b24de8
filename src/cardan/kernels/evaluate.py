"""From a quantity of a formulation to a compiled, batched function of a model.

A quantity of a small model is one straight-line kernel. Past `LOOP_PAST` links its recursion is looped, and what
follows the recursion is a second, small kernel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from cardan.formulation.catalogue import quantity
from cardan.formulation.contract import Quantity, Shape
from cardan.formulation.looping import record_schedule
from cardan.kernels.kernel import Kernel, compile_program
from cardan.kernels.program import Port, Program
from cardan.model.model import Model

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
    return len(model.tree.links) > LOOP_PAST


def compile_quantity(model: Model, q: Quantity, formulation: str, *, looped: bool | None = None) -> Any:
    """Make the kernel of a quantity of a model; nothing is recorded before it is called."""
    if looped is None:
        looped = is_large(model) and q.recursion is not None
    inputs = tuple(Port(p, q.input_shape(model, p)) for p in q.inputs)
    outputs = tuple(Port(name, shape(model)) for name, shape in q.outputs)
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
    key = hashlib.sha256(f"{model.key} {name} {text_digest()}".encode()).hexdigest()
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
    """The CasADi function of a quantity, unrolled."""
    import casadi as ca

    symbols = {port: ca.SX.sym(port, *(q.input_shape(model, port) or (1,))) for port in q.inputs}
    return ca.Function("quantity", list(symbols.values()), q.graph(model, symbols))


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


@cache
def text_digest() -> str:
    """Digest of the text that writes graphs: a change in it makes every cached kernel stale."""
    h = hashlib.sha256()
    root = Path(__file__).parents[1]
    for layer in ("algebra", "model", "formulation"):
        for file in sorted((root / layer).glob("*.py")):
            h.update(file.read_bytes())
    return h.hexdigest()
