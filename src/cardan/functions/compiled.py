"""`cd.compile`: one quantity of a model as a compiled function, and bound to arrays for control loops.

f = cd.compile(model, "forward_dynamics", by=("q", "v"))
a, a_q, a_v = f(q, v, tau)
step = f.bind(q, v, tau)    # arrays fixed once
a, a_q, a_v = step()        # evaluates at what the arrays hold now, into the same results
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.derivative import By, differentiated
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity, Shape
from cardan.functions.derivatives import Derivatives, Names, by_of, given
from cardan.functions.equations import SOLVED, equations, require_no_laws
from cardan.machines.cuda.place import place_of
from cardan.machines.ufunc.bound import batch_of, bind
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import KernelSlot, require_model
from cardan.model.model import Model
from cardan.on_card import is_device_array, require_host
from cardan.structure.kernels import LOOP_PAST, FreeKernel, compile_quantity, is_large
from cardan.structure.row_sets import ChoosingKernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KERNELS: KernelSlot[tuple[str, str]] = KernelSlot("compiled functions, by formulation and quantity")


def compile(
    model: Model, name: str, *, by: Names = None, chart: str = "tangent", formulation: str | Formulation = "spatial"
) -> CompiledFunction:
    """A quantity of a model as a compiled function of arrays; with `by`, together with its derivatives.

    It is named as in `cd.equations(model).graph`, and its arguments are those of the graph, in the same order: `q`
    (..., nq), `v`, `a`, `tau` (..., nv), `wrenches` (..., nb, 6), `t` (...), SI units. `by` and `chart` as in
    `cd.forward_dynamics`, but for `chart="independent"`.
    """
    require_model("compile", model)
    owner = f"compile {name!r}"
    eq = equations(model, formulation=formulation)
    quantity = eq.quantity(name)
    wanted = None
    if by is not None:
        wanted = by_of(owner, model, by, chart, quantity)
        if wanted.chart == "independent":
            raise InputError(f"{owner}: chart='independent' is not one kernel; ask cd.{name} itself, with by=")
        eq.require_derivatives(owner, name)
    if is_large(model) and quantity.recursion is None and name not in SOLVED:
        raise InputError(
            f"{owner}: model {model.name!r} has {len(model.tree.links)} links, and past {LOOP_PAST} only quantities "
            "with a recursion are one kernel; call the function itself"
        )
    require_no_laws(owner, model, name, "call the function itself, which finds it at each state")
    kernel = _kernel(model, name, quantity, eq.formulation, wanted)
    _compiled(kernel)
    return CompiledFunction(name, model, eq.formulation, quantity, wanted, kernel)


@dataclass(frozen=True, eq=False, repr=False)
class CompiledFunction:
    """A compiled function of a model. Call it with arrays of any batch, or `bind` it to arrays."""

    name: str
    model: Model
    formulation: Formulation
    quantity: Quantity
    by: By | None
    kernel: Any
    _seen: list[bool] = field(default_factory=list)

    def __repr__(self) -> str:
        """Name, model and arguments."""
        by = f", by={self.by.names}" if self.by else ""
        return f"<compiled {self.name}({', '.join(self.inputs)}){by} of {self.model.name!r}>"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the arguments, in order."""
        return self.quantity.inputs

    @property
    def outputs(self) -> dict[str, Shape]:
        """Name and shape of each result: the values, then the derivatives by each name."""
        values = {label: shape(self.model) for label, shape in self.quantity.outputs}
        if self.by is None:
            return values
        (label, shape), *_ = values.items()
        whole = differentiated(self.quantity, self.by, self.model)
        counts = (columns(self.model)[1] for _, columns in whole.outputs[1:])
        ends = {"t": (), "wrenches": (self.model.nb, 6)}
        return values | {
            f"{label}_{name}": (*shape, *ends.get(name, (count,)))
            for name, count in zip(self.by.names, counts, strict=True)
        }

    def __call__(
        self, *args: Any, out: Any = None, threads: int | None = None, device: str | None = None
    ) -> Any:  # fmt: skip
        """Evaluate at arrays with any batch axes ahead; with `by`, `cd.Derivatives`.

        `out` is an array for the result, several for several results.

        `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
        """
        if device is not None:
            threads = place_of(self.name, device, threads)
        if not self._seen:
            self._look(args)
        found = self.kernel(*args, out=None if self.by else out, threads=threads)
        if self.by is None:
            return found
        arrays = (None,) * len(found) if out is None else out
        if not isinstance(arrays, tuple | list | Derivatives) or len(arrays) != len(found):
            raise InputError(
                f"{self.name}: with by=, out must be {len(found)} arrays, the value's first, got {out!r:.80}"
            )
        results = []
        shapes = self.outputs
        batch = found[0].shape[: found[0].ndim - len(next(iter(shapes.values())))]
        for (label, shape), mine, yours in zip(shapes.items(), found, arrays, strict=True):
            result = mine.reshape((*batch, *shape))
            results.append(given(f"{self.name}, {label}", yours, result))
        return self._result(results)

    def bind(self, *arrays: NDArray[Any], out: Any = None) -> Callable[[], Any]:
        """A function without arguments that evaluates at what `arrays` hold when it is called.

        It returns the same result every time, `out` or arrays of its own: copy what you keep. Arrays are C-contiguous,
        all float64 or all float32, with the same batch axes or none; the function keeps them alive. It computes on the
        calling thread and costs some 20 ns beside the computation. A result that is not finite is an InputError. Where
        the constraint rows to solve with are chosen at each state, a bound call is one of the function itself.

        Arrays on a GPU, of one library, may have any strides and broadcast. A call is one launch on the library's
        current stream; it does not wait, and does not look whether the result is finite.
        """
        owner, shapes = f"bind {self.name!r}", self.outputs
        choosing = isinstance(self.kernel, ChoosingKernel)
        kernel, free = (self.kernel, []) if choosing else _kernel_and_parameters(owner, self.kernel)
        if len(arrays) != len(self.inputs):
            raise InputError(f"{owner}: takes {len(self.inputs)} arrays ({', '.join(self.inputs)}), got {len(arrays)}")
        several = isinstance(out, tuple | list | Derivatives)
        places = (None,) * len(shapes) if out is None else tuple(out) if several else (out,)
        if len(places) != len(shapes):
            raise InputError(f"{owner}: out must be {len(shapes)} arrays ({', '.join(shapes)}), got {len(places)}")
        if any(map(is_device_array, arrays)):
            return self._bound_on_card(owner, arrays, places)
        inputs = [
            (name, self.quantity.input_shape(self.model, name), array)
            for name, array in zip(self.inputs, arrays, strict=True)
        ]
        kind = getattr(arrays[0], "dtype", np.dtype(float)) if arrays else np.dtype(float)
        inputs += [("p", p.shape[-1:], np.ascontiguousarray(p, kind if kind.kind == "f" else None)) for p in free]
        batch, dtype = batch_of(owner, inputs, [(n, s, a) for (n, s), a in zip(shapes.items(), places, strict=True)])
        outs = [
            np.empty(batch + shape, dtype) if array is None else array
            for shape, array in zip(shapes.values(), places, strict=True)
        ]
        self._look(arrays)
        self.kernel(*arrays)  # once by the ordinary way, which warns of what is doubtful there
        result = self._result(outs)
        if choosing:
            return self._stepping(arrays, outs, result)
        return bind(kernel, self.name, [array for *_, array in inputs], outs, result)

    def _bound_on_card(self, owner: str, arrays: Sequence[Any], places: Sequence[Any]) -> Callable[[], Any]:
        """A bound call on arrays of a card."""
        if isinstance(self.kernel, ChoosingKernel):
            for name, x in zip(self.inputs, arrays, strict=True):
                require_host(f"{owner}, whose constraint rows are chosen at each state", **{name: x})
        free = self.kernel.constants if isinstance(self.kernel, FreeKernel) else ()
        kernel, _ = _kernel_and_parameters(owner, self.kernel)
        start, outs = kernel.on_card.bind(owner, (*arrays, *free), places, [*self.outputs.values()])
        result = self._result(outs)

        def step() -> Any:
            start()
            return result

        return step

    def _stepping(self, arrays: Sequence[Any], outs: list[Any], result: Any) -> Callable[[], Any]:
        """A bound call of a kernel whose rows are chosen at each state."""

        def step() -> Any:
            self(*arrays, out=outs if self.by else outs[0], threads=1)
            if not np.isfinite(outs[0]).all():
                raise InputError(f"{self.name}: the result is not finite; look at {', '.join(self.inputs)}")
            return result

        return step

    def _result(self, arrays: Sequence[Any]) -> Any:
        """What a call returns."""
        if self.by is not None:
            return Derivatives(arrays[0], dict(zip(self.by.names, arrays[1:], strict=True)))
        return tuple(arrays) if len(arrays) > 1 else arrays[0]

    def _look(self, arrays: Sequence[Any]) -> None:
        """Warn of loops that are open and of digits lost, as the first call of a function of the state does."""
        self._seen.append(True)
        if self.by is None and self.name in SOLVED and self.model.has_rows and len(arrays) == len(self.inputs):
            from cardan.structure.condition import watch

            watch(self.model, self.formulation, self.kernel, arrays[0], arrays[-1] if "t" in self.inputs else 0.0)


def _kernel(model: Model, name: str, quantity: Quantity, formulation: Formulation, by: By | None) -> Any:
    """The kernel of a quantity, with its derivatives if `by` is given."""
    if name in SOLVED and not (model.is_plain and formulation.in_tree and formulation.has_recursions):
        from cardan.structure.dynamics import forward_kernel

        return forward_kernel(model, formulation, SOLVED[name], by)
    whole = differentiated(quantity, by, model) if by else quantity
    facts = f"compiled {formulation.facts(model)} {by.key if by else ''}"
    return _KERNELS.find(
        model, (formulation.key, f"{name} {whole.name}"),
        lambda: compile_quantity(model, whole, facts, looped=False if by else None),
    )  # fmt: skip


def _compiled(kernel: Any) -> None:
    """Compile the loop for one state now; those for batches at the first batch."""
    plain = kernel.kernel if isinstance(kernel, FreeKernel) else kernel
    if isinstance(plain, Kernel) and any(port.size for port in plain.program.outputs):
        plain.ufunc(wide=False)


def _kernel_and_parameters(owner: str, kernel: Any) -> tuple[Kernel, list[np.ndarray]]:
    """The kernel itself, and the values of the free parameters that go in last."""
    free = []
    if isinstance(kernel, FreeKernel):
        kernel, free = kernel.kernel, [kernel.p]
    if not isinstance(kernel, Kernel):
        raise InputError(
            f"{owner}: it is not one kernel for this model (its recursion is looped, or it "
            "is put together from several); call the function instead"
        )
    if not any(prod(port.shape) for port in kernel.program.outputs):
        raise InputError(f"{owner}: every result is empty, there is nothing to compute")
    return kernel, free
