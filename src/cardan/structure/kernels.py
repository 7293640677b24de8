"""From a quantity of a formulation to a compiled, batched function of a model, which the model remembers.

A quantity of a small model is one straight-line kernel. Past `LOOP_PAST` links its recursion is looped, and what
follows the recursion is a second, small kernel.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cardan.errors import CardanError, UnknownNameError, nearest, warn_outside
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity, Shape, climbs
from cardan.formulation.registry import find_formulation
from cardan.formulation.state_rates import state_rates
from cardan.formulation.tree import TreeFormulation
from cardan.machines.host_constant import HostConstant
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.memory import KernelSlot, Slot, not_a_model
from cardan.model.model import Model
from cardan.model.parameter import with_symbols
from cardan.model.values import array
from cardan.on_card import is_device_array, require_host
from cardan.program.program import Port, Program

# Measured on chains (docs/decisions/0005): beyond this a straight-line kernel takes seconds to compile and runs less
# than a third faster than the loop, which compiles in a tenth of a second.
LOOP_PAST = 64
# Seconds to write and compile one straight line for n links, about: n, and n^2 where rows are solved for.
# Each link that another carries counts as some pairs: where it is deep, its bodies' motions fill the matrices.
SECONDS_OF_A_LINK, SECONDS_OF_A_PAIR, PAIRS_OF_A_CLIMB = 0.01, 2.5e-4, 8
SOLVES = {"forward_dynamics", "motion_and_power", "power", "reactions", "reactions_in_plane", "multipliers"}
LONG = 10.0  # s; what is expected to take longer is told beforehand

_FLOAT64 = np.dtype(np.float64)
_TREE: KernelSlot[tuple[str, str]] = KernelSlot("quantities of a plain tree, by formulation and name")
_EQUATIONS: KernelSlot[str] = KernelSlot("equations of motion at a state of the tree, by formulation")
_TOLD: Slot[str, bool] = Slot("straight lines that were told of, by name")
_SYMBOLIC: Slot[None, tuple[Model, Any]] = Slot("model with its free parameters as symbols")


def tree_kernel(model: Model, name: str, formulation: str | Formulation = "spatial") -> Any:
    """The compiled function of a quantity of the tree, loops and force elements left out; made on first use."""
    try:
        kernel = model.memory.get((_TREE, formulation, name))  # at once: calls of small kernels take a microsecond
    except AttributeError as error:
        raise error if isinstance(error, CardanError) else not_a_model(model) from None
    if kernel is None:
        found, quantity = find_formulation(formulation), tree_quantity(formulation, name)
        kernel = _TREE.find(model, (found.key, name), lambda: compile_quantity(model, quantity, found.key))
        if not found.added:
            model.memory[_TREE, formulation, name] = kernel
    return kernel


def tree_quantity(formulation: str | Formulation, name: str) -> Quantity:
    """A quantity that a formulation has a recursion of its own for."""
    found = find_formulation(formulation)
    table = found.quantities if isinstance(found, TreeFormulation) else {}
    if name not in table:
        raise UnknownNameError(f"formulation {found.name!r} has no {name!r}{nearest(name, table)}")
    return table[name]


def tree_graph(model: Model, name: str, formulation: str | Formulation = "spatial") -> Any:
    """The CasADi function of a quantity of the tree, unrolled."""
    return function_of(model, tree_quantity(formulation, name))


def equations_kernel(model: Model, formulation: Formulation) -> Any:
    """`M, f, J, gamma, beta, phi` in the formulation's own rates, as a function of `q, v, tau, wrenches, (t)`."""

    def make() -> Any:
        from cardan.formulation.dynamics import equations_of_motion  # which plain trees do without

        return compile_quantity(model, equations_of_motion(model, formulation), formulation.facts(model))

    return _EQUATIONS.find(model, formulation.key, make)


def equations_at(model: Model, formulation: Formulation, q: Any, t: Any = 0.0, v: Any = None) -> Any:
    """The same at configurations `q` (..., nq), at rest unless `v` is given, under no drives and wrenches."""
    still = np.zeros(model.nv)
    return equations_kernel(model, formulation)(
        q, still if v is None else v, still, np.zeros((model.nb, 6)), *time_argument(model, t)
    )


def time_argument(model: Model, t: Any) -> tuple[Any, ...]:
    """The argument for time, where the model has one."""
    if not model.depends_on_time:
        return ()
    if isinstance(t, float):
        return (np.asarray(t),)
    return (t,) if is_device_array(t) else (array("time", "t", t),)


def is_large(model: Model) -> bool:
    """Whether recursions over the model are looped rather than unrolled."""
    try:
        many = len(model.tree.links) > LOOP_PAST and model.nv > 0
        return many and not (model.parameters or model.laws or model.controllers)
    except AttributeError as error:
        raise error if isinstance(error, CardanError) else not_a_model(model) from None


def compile_quantity(model: Model, q: Quantity, facts: str, *, looped: bool | None = None) -> Any:
    """Make the kernel of a quantity of a model; nothing is recorded before it is called.

    `facts` are what the kernel depends on beside the model and the quantity's name.
    """
    large = is_large(model) or (q.most_climbs is not None and climbs(model) > q.most_climbs and not model.parameters)
    if q.put_together is not None and large:
        return _PutTogether(model, facts, q.put_together)
    if looped is None:
        looped = large and q.recursion is not None
    inputs, outputs = ports_of(model, q)
    if model.parameters:
        kernel = _kernel(model, f"{facts} {q.name}", inputs, outputs, lambda: _unrolled(model, q))
        return FreeKernel(kernel, *parameter_arguments(model))
    if not looped:
        return _kernel(model, f"{facts} {q.name}", inputs, outputs, lambda: _unrolled(model, q))
    from cardan.formulation.looping import record_schedule  # which small models do without

    assert q.recursion is not None
    recursion = q.recursion
    raw = tuple(Port(o.name, _raw_shape(model, o.of, o.shape)) for o in recursion.outputs)
    name = f"{facts} looped {q.name}"
    first = _kernel(model, name, inputs, raw if q.finish else outputs, lambda: record_schedule(recursion, model))
    if q.finish is None:
        return first
    return _InTwo(first, _kernel(model, f"{name} finished", raw, outputs, lambda: _finish(model, q, raw)))


def ports_of(model: Model, q: Quantity) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Inputs and outputs of a quantity; with free parameters their vector `p` is the last input."""
    inputs = tuple(Port(p, q.input_shape(model, p), model.entries(p)) for p in q.inputs)
    if model.parameters:
        inputs = (*inputs, Port("p", (model.parameters.size,)))
    return inputs, tuple(Port(name, shape(model)) for name, shape in q.outputs)


class FreeKernel:
    """A kernel whose last input are the free parameters, called without them."""

    def __init__(self, kernel: Kernel, p: np.ndarray) -> None:
        self.kernel, self.p = kernel, p
        self._single = p.astype(np.float32)
        self.constants = (HostConstant(p),)

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        """Evaluate at the values it is bound to; in float32 where every array given is."""
        if args and type(args[0]) is np.ndarray and args[0].dtype is _FLOAT64:
            return self.kernel(*args, self.p, out=out, threads=threads)
        if any(map(is_device_array, args)):
            return self.kernel(*args, *self.constants, out=out, threads=threads)
        single = args and all(getattr(a, "dtype", None) == np.float32 for a in args)
        return self.kernel(*args, self._single if single else self.p, out=out, threads=threads)

    def watch(self, look: Callable[[tuple[Any, ...]], None], closely: int = 0) -> None:
        """Let `look` see the arguments of some calls; see `Kernel.watch`."""
        self.kernel.watch(look, closely)

    def at_values(self, p: np.ndarray) -> FreeKernel:
        """The same kernel with other values (..., size)."""
        return FreeKernel(self.kernel, p)


class _PutTogether:
    """Results from those of other kernels of the same formulation, put together with NumPy."""

    def __init__(self, model: Model, formulation: str, compute: Callable[..., tuple[np.ndarray, ...]]) -> None:
        self.model, self.formulation, self.compute = model, formulation, compute

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        def kernel(name: str) -> Callable[..., Any]:
            return partial(tree_kernel(self.model, name, self.formulation), threads=threads)

        for x in args:
            require_host(f"a model with {len(self.model.tree.links)} links", argument=x)
        results = self.compute(kernel, *args)
        if out is None:
            return results
        for given, result in zip(out, results, strict=True):
            if given is not None:
                given[...] = result
        return tuple(result if given is None else given for given, result in zip(out, results, strict=True))


class _InTwo:
    """A looped kernel, and a small one that takes its results."""

    def __init__(self, first: Kernel, second: Kernel) -> None:
        self.first, self.second = first, second

    def __call__(self, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        results = self.first(*args, threads=threads)
        return self.second(*(results if isinstance(results, tuple) else (results,)), out=out, threads=threads)


def kernel_of(
    model: Model, facts: str, shown: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], record: Callable[[], Any]
) -> Kernel:
    """A kernel of a model, of which `facts` say all that it depends on beside the model, called `shown` in messages."""
    key = hashlib.sha256(f"{model.key} {facts}".encode()).hexdigest()
    return compile_program(Program(shown, inputs, outputs, key, record))


def _kernel(
    model: Model, name: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], record: Callable[[], Any]
) -> Kernel:
    shown = (
        name.split()[-1].removesuffix("_loaded").removesuffix("_derivatives") if "jacobian" not in name else "jacobian"
    )
    return kernel_of(model, name, shown, inputs, outputs, record)


def _unrolled(model: Model, q: Quantity) -> Any:
    """What is compiled of a quantity, unrolled: its stages, if it has any, or its function."""
    if q.stages is not None and model.nv:
        written, symbols, free = _symbols(model, q)
        found = q.stages(written, symbols | free)
        if found is not None:
            return found
    return function_of(model, q)


def _symbols(model: Model, q: Quantity) -> tuple[Model, dict[str, Any], dict[str, Any]]:
    """The model to write a graph with, symbols for the inputs of a quantity, and for free parameters."""
    import casadi as ca

    symbols = {port: ca.SX.sym(port, *(q.input_shape(model, port) or (1,))) for port in q.inputs}
    written, p = symbolic(model)
    return written, symbols, {"p": p} if model.parameters else {}


def function_of(model: Model, q: Quantity) -> Any:
    """The CasADi function of a quantity, unrolled, with named inputs and outputs.

    With free parameters their vector `p` is its last input.
    """
    import casadi as ca

    warn_of_straight_line(model, q.name)
    written, symbols, free = _symbols(model, q)
    names = [name for name, _ in q.outputs]
    outputs = [f"{name}_out" if name in symbols else name for name in names]
    return ca.Function(
        "quantity", [*symbols.values(), *free.values()], q.graph(written, symbols | free), [*symbols, *free], outputs
    )


def rates_facts(model: Model) -> str:
    """What tells the rates of a model's states from others; empty if it has no states."""
    if not model.parameters.states:
        return ""
    return hashlib.sha256(function_of(model, state_rates(model)).serialize().encode()).hexdigest()


def warn_of_straight_line(model: Model, name: str) -> None:
    """Tell beforehand that a quantity of a large model, which is not looped, takes long to write and compile."""
    links = len(model.tree.links)
    solves = name in SOLVES or name.endswith(" linearise")
    pairs = links**2 + PAIRS_OF_A_CLIMB * climbs(model) if solves else 0
    seconds = SECONDS_OF_A_LINK * links + SECONDS_OF_A_PAIR * pairs
    if links > LOOP_PAST and seconds > LONG and _TOLD.first_time(model, name):
        warn_outside(
            f"{name.split()[-1]}: for model {model.name!r} this is not looped over its {links} links; compiling it may "
            f"take {duration(seconds)}. docs/large.md lists what is looped, in 'spatial' and 'absolute'"
        )


def duration(seconds: float) -> str:
    """A rough time in words."""
    return f"about {seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes or more"


def symbolic(model: Model) -> tuple[Model, Any]:
    """The model with its free parameters as symbols, and the column `p` (parameters.size, 1) of these symbols.

    Graphs are written with it. `p` goes in as the last input; `parameter_arguments` gives the array for it. It has no
    parameters itself, and a model without any is returned as it is, with an empty `p`.
    """
    import casadi as ca

    if not model.parameters:
        return model, ca.SX(0, 1)

    return _SYMBOLIC.find(model, None, lambda: with_symbols(model))


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
