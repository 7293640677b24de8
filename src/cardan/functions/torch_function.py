"""`cd.torch_function`: a quantity of a model as a function of torch tensors, with derivatives from Cardan's kernels.

One `torch.autograd.Function` evaluates a `Rule`. Its backward and forward derivatives are the same function of the
transposed rule and of the differential, so that derivatives of any order exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Shape
from cardan.functions.differentiable import InSteps, Operation, arguments_of, rule_of
from cardan.machines.cuda.place import Place
from cardan.model.memory import require_model
from cardan.model.model import Model


def torch_function(model: Model, name: str, *, formulation: str | Formulation = "spatial") -> Callable[..., Any]:
    """A quantity of a model as a function of torch tensors, differentiable to any order, without copies.

        f = cd.torch_function(model, "forward_dynamics")
        a = f(q, v, tau)        # any batch; the arguments of cd.equations(model).graph(name)
        a.sum().backward()      # q.grad (..., nq), by the numbers in q

    Free parameters are a last argument `p`, in the order of `model.parameters`; left out, they have the model's values.
    With loops the derivatives are those of the equations as they stand. Tensors are all float64 or all float32, all on
    the CPU or all on one GPU: there forward and backward run on torch's current stream, and nothing is copied to the
    host. `torch.func.vmap`, `grad`, `jvp`, `jacrev` and `jacfwd` work.
    """
    require_model("torch_function", model)
    owner = f"torch_function {name!r}"
    require_torch(owner)
    rule = rule_of(owner, model, name, formulation)

    def call(*given: Any) -> Any:
        found = applied(owner, rule, arguments_of(owner, rule, model, given), rule.arguments[len(given) :])
        return found if len(found) > 1 else found[0]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name}({', '.join(rule.arguments)}) of model {model.name!r}, for torch."
    return call


def require_torch(owner: str) -> None:
    """Reject that torch is missing."""
    try:
        import torch  # noqa: F401
    except ImportError:
        raise InputError(f"{owner}: torch is not installed; pip install 'cardan[torch]'") from None


def applied(owner: str, rule: Operation, arrays: Sequence[Any], filled: Sequence[str] = ()) -> tuple[Any, ...]:
    """The results of an operation at tensors whose batch axes broadcast; what it cannot take is an InputError.

    The arguments `filled` are numbers that the caller left out.
    """
    import torch

    whole, first = [], arrays[0]
    where = getattr(first, "device", None)
    for label, x in zip(rule.arguments, arrays, strict=True):
        if label in filled:
            whole.append(torch.as_tensor(x, dtype=first.dtype, device=where))
            continue
        if not isinstance(x, torch.Tensor):
            raise InputError(f"{owner}: {label} is a {type(x).__name__}; give torch tensors")
        if x.device.type not in ("cpu", "cuda"):
            raise InputError(
                f"{owner}: {label} is on {x.device}; Cardan computes on the CPU and on NVIDIA GPUs: give {label}.cpu()"
            )
        if x.device != where:
            raise InputError(
                f"{owner}: {rule.arguments[0]} is on {where} and {label} on {x.device}; give tensors on one device, "
                f"such as {label}.to({str(where)!r})"
            )
        if x.dtype not in (torch.float64, torch.float32):
            raise InputError(f"{owner}: {label} has dtype {x.dtype}; give float64 or float32")
        if x.dtype != first.dtype:
            raise InputError(
                f"{owner}: {rule.arguments[0]} is {first.dtype} and {label} {x.dtype}; give tensors of one dtype"
            )
        whole.append(x)
    return _bound(rule.batch(owner, [tuple(x.shape) for x in whole]), rule, whole)


def _bound(batch: Shape, rule: Operation, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """The results at tensors that broadcast to a batch."""
    whole = [x.expand(batch + rule.shapes[key]) for key, x in zip(rule.arguments, tensors, strict=True)]
    return tuple(_function().apply(rule, *whole))


class _Torch:
    """Torch as a `Library`."""

    def rollout(self, steps: InSteps) -> Callable[..., Any]:
        import torch

        def run(q: Any, v: Any, tau: Any, *p: Any) -> tuple[Any, ...]:
            batch, many = q.shape[:-1], (len(steps.at), *q.shape[:-1])

            def number(x: np.ndarray) -> Any:
                return torch.as_tensor(x, dtype=q.dtype, device=q.device)

            def each(x: np.ndarray) -> Any:
                return number(x).reshape(-1, *([1] * len(batch)))

            one, all_of = partial(_bound, batch), partial(_bound, many)
            state = one(steps.start, [q, v, tau, number(steps.when[0]), *p])
            before = []
            for t, h in zip(number(steps.t), number(steps.h), strict=True):
                before.append(state)
                state = steps.step(one, state, tau, t, h, p)
            near = [torch.stack([x[i] for x in before])[steps.at] for i in (0, 1)]
            there = steps.step(all_of, near, tau, each(steps.t[steps.at]), each(steps.part), p)
            found = all_of(steps.sample, [*there, tau, each(steps.when), *p])
            return tuple(x.movedim(0, -2) for x in found)

        return run

    def jvp(self, function: Callable[..., Any], x: Sequence[Any], dx: Sequence[Any]) -> Any:
        import torch

        whole = [tuple(y.contiguous() for y in each) for each in (x, dx)]  # a dual number is refused expanded tensors
        return torch.func.jvp(function, *whole)[1]

    def vjp(self, function: Callable[..., Any], x: Sequence[Any], w: Sequence[Any]) -> Any:
        import torch

        return torch.func.vjp(function, *x)[1](tuple(w))


@cache
def _function() -> Any:
    """The autograd function of a rule, at tensors that all have the same batch axes."""
    import torch

    class Evaluation(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
        generate_vmap_rule = False

        @staticmethod
        def forward(rule: Operation, *tensors: Any) -> Any:
            where = tensors[0].device
            if where.type == "cuda" and rule.kernel is not None:
                return rule(*(x.detach() for x in tensors))
            here = rule.on(Place(where.index)) if where.type == "cuda" else rule
            found = here(*(x.numpy(force=True) for x in tensors))
            return tuple(torch.from_numpy(np.asarray(x)).to(where) for x in found)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.rule = inputs[0]
            ctx.save_for_backward(*inputs[1:])
            ctx.save_for_forward(*inputs[1:])

        @staticmethod
        def backward(ctx: Any, *weights: Any) -> Any:
            rule, needed = ctx.rule, ctx.needs_input_grad[1:]
            written = rule.written(_Torch())
            if written is not None:
                found = _Torch().vjp(written, ctx.saved_tensors, weights)
                return None, *(x if is_needed else None for x, is_needed in zip(found, needed, strict=True))
            t = rule.transposed([name for name, is_needed in zip(rule.arguments, needed, strict=True) if is_needed])
            found = iter(Evaluation.apply(t, *t.arranged(ctx.saved_tensors, weights)))
            return None, *(next(found) if is_needed else None for is_needed in needed)

        @staticmethod
        def jvp(ctx: Any, _: Any, *rates: Any) -> Any:
            rule = ctx.rule
            moved = [(name, rate) for name, rate in zip(rule.arguments, rates, strict=True) if rate is not None]
            if rule.linear.issuperset(name for name, _ in moved):
                known = zip(rule.arguments, ctx.saved_tensors, rates, strict=True)
                return Evaluation.apply(rule, *(
                    (torch.zeros_like(x) if rate is None else rate) if name in rule.linear else x
                    for name, x, rate in known
                ))  # fmt: skip
            written = rule.written(_Torch())
            if written is not None:
                x = ctx.saved_tensors
                dx = [torch.zeros_like(y) if rate is None else rate for y, rate in zip(x, rates, strict=True)]
                return _Torch().jvp(written, x, dx)
            d = rule.differential([name for name, _ in moved])
            return Evaluation.apply(d, *d.arranged(ctx.saved_tensors, [rate for _, rate in moved]))

        @staticmethod
        def vmap(info: Any, axes: Any, rule: Operation, *tensors: Any) -> Any:
            moved = [
                x.expand((info.batch_size, *x.shape)) if axis is None else x.movedim(axis, 0)
                for x, axis in zip(tensors, axes[1:], strict=True)
            ]
            found = Evaluation.apply(rule, *moved)
            return found, (0,) * len(found)

    return Evaluation
