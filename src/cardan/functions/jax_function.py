"""`cd.jax_function`: a quantity of a model as a function of JAX arrays, with derivatives from Cardan's kernels.

One primitive evaluates a `Rule`. Its derivative is the primitive of the rule's differential, which is linear, and the
transpose of that is the primitive of the transposed rule: so forward and reverse mode, of any order, need no more.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Shape
from cardan.functions.differentiable import InSteps, Operation, arguments_of, rule_of
from cardan.machines.cuda.place import Place
from cardan.machines.ufunc.xla import call_address, handler
from cardan.model.memory import require_model
from cardan.model.model import Model
from cardan.on_card import is_device_array

if TYPE_CHECKING:
    import jax

_DTYPES = ("float64", "float32")


def jax_function(
    model: Model, name: str, *, formulation: str | Formulation = "spatial", dtype: str = "float64"
) -> Callable[..., Any]:
    """A quantity of a model as a function of JAX arrays: `jit`, `vmap`, `grad`, `jacfwd`, `jacrev` work, of any order.

        f = cd.jax_function(model, "forward_dynamics")
        a = f(q, v, tau)                            # any batch; the arguments of cd.equations(model).graph(name)
        jax.grad(lambda q: f(q, v, tau).sum())(q)   # (nq,), by the numbers in q

    Free parameters are a last argument `p`, in the order of `model.parameters`; left out, they have the model's values.
    With loops the derivatives are those of the equations as they stand. Compiled programs call the kernel without
    Python, on the CPU and on NVIDIA GPUs, there on the program's own stream; elsewhere they call back to the CPU.
    `dtype="float32"` is for JAX without 64 bits.
    """
    require_model("jax_function", model)
    owner = f"jax_function {name!r}"
    require_jax(owner, dtype)
    rule = rule_of(owner, model, name, formulation)

    def call(*given: Any) -> Any:
        found = applied(owner, rule, arguments_of(owner, rule, model, given), dtype)
        return found if len(found) > 1 else found[0]

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{name}({', '.join(rule.arguments)}) of model {model.name!r}, for JAX."
    return call


def require_jax(owner: str, dtype: str) -> None:
    """Reject an unknown dtype, or that JAX is missing."""
    if dtype not in _DTYPES:
        raise InputError(f"{owner}: dtype={dtype!r} is neither 'float64' nor 'float32'")
    try:
        import jax  # noqa: F401
    except ImportError:
        raise InputError(f"{owner}: JAX is not installed; pip install 'cardan[jax]'") from None


def applied(owner: str, rule: Operation, given: Sequence[Any], dtype: str) -> tuple[Any, ...]:
    """The results of an operation at arrays whose batch axes broadcast; what it cannot take is an InputError."""
    import jax
    import jax.numpy as jnp

    if dtype == "float64" and not jax.config.read("jax_enable_x64"):
        raise InputError(
            f"{owner}: JAX is set to 32 bits; call jax.config.update('jax_enable_x64', True) first, or ask for "
            "dtype='float32'"
        )
    arrays = []
    for label, x in zip(rule.arguments, given, strict=True):
        try:
            kind = np.dtype(x.dtype) if hasattr(x, "dtype") else np.asarray(x).dtype
        except (TypeError, ValueError):
            kind = np.dtype(object)
        if kind.kind not in "fiu" or (kind.kind in "iu" and hasattr(x, "dtype")):
            raise InputError(f"{owner}: {label} has dtype {kind}; give floating-point numbers")
        arrays.append(jnp.asarray(x, dtype))
    batch = rule.batch(owner, [x.shape for x in arrays])
    return tuple(_bound(batch, rule, arrays))


def _bound(batch: Shape, rule: Operation, arrays: Sequence[Any]) -> list[Any]:
    """The results at arrays that broadcast to a batch."""
    import jax.numpy as jnp

    shapes = [batch + rule.shapes[key] for key in rule.arguments]
    whole = [x if x.shape == s else jnp.broadcast_to(x, s) for x, s in zip(arrays, shapes, strict=True)]
    return _primitive().bind(*whole, rule=rule)


class _Jax:
    """JAX as a `Library`."""

    def rollout(self, steps: InSteps) -> Callable[..., Any]:
        import jax
        import jax.numpy as jnp

        def run(q: Any, v: Any, tau: Any, *p: Any) -> tuple[Any, ...]:
            batch, many = q.shape[:-1], (len(steps.at), *q.shape[:-1])

            def number(x: np.ndarray) -> Any:
                return jnp.asarray(x, q.dtype)

            def each(x: np.ndarray) -> Any:
                return number(x).reshape(-1, *([1] * len(batch)))

            one, all_of = partial(_bound, batch), partial(_bound, many)
            first = one(steps.start, [q, v, tau, number(steps.when[0]), *p])

            def step(state: Any, at: tuple[Any, Any]) -> tuple[Any, Any]:
                return steps.step(one, state, tau, *at, p), state

            _, before = jax.lax.scan(step, first, (number(steps.t), number(steps.h)))
            near = [x[steps.at] for x in before]
            there = steps.step(all_of, near, tau, each(steps.t[steps.at]), each(steps.part), p)
            found = all_of(steps.sample, [*there, tau, each(steps.when), *p])
            return tuple(jnp.moveaxis(x, 0, -2) for x in found)

        return run

    def jvp(self, function: Callable[..., Any], x: Sequence[Any], dx: Sequence[Any]) -> Any:
        import jax

        return jax.jvp(function, tuple(x), tuple(dx))[1]

    def vjp(self, function: Callable[..., Any], x: Sequence[Any], w: Sequence[Any]) -> Any:
        import jax

        return jax.vjp(function, *x)[1](tuple(w))


@cache
def _primitive() -> Any:
    """The primitive `cardan`: the results of an operation at arrays that all have the same batch axes."""
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir

    primitive = Primitive("cardan")
    primitive.multiple_results = True

    def shapes(rule: Operation, arrays: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
        core = rule.shapes[rule.arguments[0]]
        batch = arrays[0].shape[: len(arrays[0].shape) - len(core)]
        return [jax.ShapeDtypeStruct((*batch, *shape), arrays[0].dtype) for shape in rule.outputs]

    def evaluate(rule: Operation, *arrays: Any) -> tuple[np.ndarray, ...]:
        return tuple(map(np.asarray, rule(*map(np.asarray, arrays))))

    @lru_cache(maxsize=256)
    def compiled(rule: Operation) -> Any:
        return jax.jit(partial(primitive.bind, rule=rule))

    def at_once(*arrays: Any, rule: Operation) -> Any:
        if any(map(is_device_array, arrays)):
            return compiled(rule)(*arrays)
        return [jnp.asarray(x) for x in evaluate(rule, *arrays)]

    def abstract(*arrays: Any, rule: Operation) -> list[Any]:
        return [jax.core.ShapedArray(x.shape, x.dtype) for x in shapes(rule, arrays)]

    def by_callback(*arrays: Any, rule: Operation) -> Any:
        return jax.pure_callback(lambda *xs: evaluate(rule, *xs), tuple(shapes(rule, arrays)), *arrays)

    def by_callback_to_card(*arrays: Any, rule: Operation) -> Any:
        return by_callback(*arrays, rule=rule.on(Place(0)))

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, rule: Operation) -> Any:
        moved = [k for k, t in enumerate(tangents) if not isinstance(t, ad.Zero)]
        names = [rule.arguments[k] for k in moved]
        values = primitive.bind(*primals, rule=rule)
        if rule.linear.issuperset(names):
            rates = [ad.instantiate_zeros(t) if n in rule.linear else x
                     for n, x, t in zip(rule.arguments, primals, tangents, strict=True)]  # fmt: skip
            return values, primitive.bind(*rates, rule=rule)
        written = rule.written(_Jax())
        if written is not None:
            return values, list(jax.jvp(written, tuple(primals), tuple(map(ad.instantiate_zeros, tangents)))[1])
        d = rule.differential(names)
        return values, primitive.bind(*d.arranged(primals, [tangents[k] for k in moved]), rule=d)

    def transpose(weights: Sequence[Any], *arrays: Any, rule: Operation) -> list[Any]:
        linear = [k for k, x in enumerate(arrays) if ad.is_undefined_primal(x)]
        t = rule.transposed([rule.arguments[k] for k in linear], linear=True)
        known = [x for k, x in enumerate(arrays) if k not in linear]
        found = iter(primitive.bind(*t.arranged(known, [ad.instantiate_zeros(w) for w in weights]), rule=t))
        return [next(found) if k in linear else None for k in range(len(arrays))]

    def batched(arrays: Sequence[Any], axes: Sequence[Any], *, rule: Operation) -> Any:
        count = next(x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None)
        moved = [
            jnp.broadcast_to(x, (count, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
            for x, axis in zip(arrays, axes, strict=True)
        ]
        found = primitive.bind(*moved, rule=rule)
        return found, [0] * len(found)

    primitive.def_impl(at_once)
    primitive.def_abstract_eval(abstract)
    callback = mlir.lower_fun(by_callback, multiple_results=True)
    mlir.register_lowering(primitive, callback)
    _register("cpu", "cpu", primitive, callback)
    _register("cuda", "CUDA", primitive, mlir.lower_fun(by_callback_to_card, multiple_results=True))
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose
    batching.primitive_batchers[primitive] = batched
    return primitive


def _register(platform: str, target: str, primitive: Any, callback: Any) -> None:
    """Let programs for a platform, which targets call by another name, call kernels without Python.

    What is not a kernel, or where this XLA does not know the version of the interface, goes through the `callback`.
    """
    import jax
    from jax.interpreters import mlir

    on_card = platform == "cuda"

    def made(kernel: Any, dtype: Any, rows: int) -> Any:
        if not on_card:
            return call_address(kernel, dtype, rows)
        from cardan.machines.cuda.xla import call_address as on_cards

        return on_cards(kernel, dtype, rows)

    def directly(context: Any, *arrays: Any, rule: Operation) -> Any:
        aval = context.avals_in[0]
        rows = prod(aval.shape[: len(aval.shape) - len(rule.shapes[rule.arguments[0]])])
        found = None if rule.kernel is None else made(rule.kernel, aval.dtype, rows)
        if found is None:
            return callback(context, *arrays, rule=rule)
        context.module_context.add_keepalive(found[1])
        return jax.ffi.ffi_lowering("cardan")(context, *arrays, call=np.int64(found[0]))

    try:
        if on_card:
            from cardan.machines.cuda.xla import handler as card_handler  # which programs for the CPU do without

            address = card_handler()
        else:
            address = handler()
        jax.ffi.register_ffi_target("cardan", jax.ffi.pycapsule(ctypes.CFUNCTYPE(None)(address)), platform=target)
    except Exception:  # of any kind: this XLA does not know that version of the interface, or that platform
        lowering = callback
    else:
        lowering = directly
    try:
        mlir.register_lowering(primitive, lowering, platform=platform)
    except Exception:  # a JAX without that platform
        return
