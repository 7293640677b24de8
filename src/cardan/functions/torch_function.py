"""`cd.torch_function`: a quantity of a model as a function of torch tensors, with derivatives from Cardan's kernels.

One `torch.autograd.Function` evaluates a `Rule`. Its backward and forward derivatives are the same function of the
transposed rule and of the differential, so that derivatives of any order exist.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.functions.differentiable import Rule, arguments_of, rule_of
from cardan.model.model import Model


def torch_function(model: Model, name: str, *, formulation: str | Formulation = "spatial") -> Callable[..., Any]:
    """A quantity of a model as a function of torch tensors on the CPU, differentiable to any order, without copies.

        f = cd.torch_function(model, "forward_dynamics")
        a = f(q, v, tau)        # any batch; the arguments of cd.equations(model).graph(name)
        a.sum().backward()      # q.grad (..., nq), by the numbers in q

    Free parameters are a last argument `p`, in the order of `model.parameters`; left out, they have the model's values.
    With loops the derivatives are those of the equations as they stand. Tensors are all float64 or all float32.
    `torch.func.vmap`, `grad`, `jvp`, `jacrev` and `jacfwd` work.
    """
    owner = f"torch_function {name!r}"
    try:
        import torch
    except ImportError:
        raise InputError(f"{owner}: torch is not installed; pip install 'cardan[torch]'") from None
    rule, function = rule_of(owner, model, name, formulation), _function()

    def call(*given: Any) -> Any:
        arrays = arguments_of(owner, rule, model, given)
        for label, x in zip(rule.arguments, given, strict=False):
            if not isinstance(x, torch.Tensor):
                raise InputError(f"{owner}: {label} is a {type(x).__name__}; give torch tensors")
            if x.device.type != "cpu":
                raise InputError(f"{owner}: {label} is on {x.device}; Cardan computes on the CPU: give {label}.cpu()")
            if x.dtype not in (torch.float64, torch.float32):
                raise InputError(f"{owner}: {label} has dtype {x.dtype}; give float64 or float32")
            if x.dtype != given[0].dtype:
                raise InputError(
                    f"{owner}: {rule.arguments[0]} is {given[0].dtype} and {label} {x.dtype}; give tensors of one dtype"
                )
        arrays[len(given) :] = [torch.as_tensor(x, dtype=given[0].dtype) for x in arrays[len(given) :]]
        batch = rule.batch(owner, [x.shape for x in arrays])
        whole = [x.expand(batch + rule.shapes[key]) for key, x in zip(rule.arguments, arrays, strict=True)]
        found = function.apply(rule, *whole)
        return found if len(found) > 1 else found[0]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name}({', '.join(rule.arguments)}) of model {model.name!r}, for torch."
    return call


@cache
def _function() -> Any:
    """The autograd function of a rule, at tensors that all have the same batch axes."""
    import torch

    class Evaluation(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
        generate_vmap_rule = False

        @staticmethod
        def forward(rule: Rule, *tensors: Any) -> Any:
            return tuple(torch.from_numpy(x) for x in rule(*(x.numpy(force=True) for x in tensors)))

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.rule = inputs[0]
            ctx.save_for_backward(*inputs[1:])
            ctx.save_for_forward(*inputs[1:])

        @staticmethod
        def backward(ctx: Any, *weights: Any) -> Any:
            rule, needed = ctx.rule, ctx.needs_input_grad[1:]
            t = rule.transposed([name for name, is_needed in zip(rule.arguments, needed, strict=True) if is_needed])
            found = iter(Evaluation.apply(t, *t.arranged(ctx.saved_tensors, weights)))
            return None, *(next(found) if is_needed else None for is_needed in needed)

        @staticmethod
        def jvp(ctx: Any, _: Any, *rates: Any) -> Any:
            rule = ctx.rule
            moved = [(name, rate) for name, rate in zip(rule.arguments, rates, strict=True) if rate is not None]
            d = rule.differential([name for name, _ in moved])
            return Evaluation.apply(d, *d.arranged(ctx.saved_tensors, [rate for _, rate in moved]))

        @staticmethod
        def vmap(info: Any, axes: Any, rule: Rule, *tensors: Any) -> Any:
            moved = [
                x.expand((info.batch_size, *x.shape)) if axis is None else x.movedim(axis, 0)
                for x, axis in zip(tensors, axes[1:], strict=True)
            ]
            found = Evaluation.apply(rule, *moved)
            return found, (0,) * len(found)

    return Evaluation
