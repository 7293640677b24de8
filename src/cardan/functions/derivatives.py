"""`by=`: values of the functions of a state together with their derivatives, from one kernel.

    a, a_q, a_v = cd.forward_dynamics(model, q, v, tau, by=("q", "v"))

A derivative has the axes of the value, then those of what it is by. What a column means:

- `chart="tangent"`, the default: by `q` there are nv columns, `q` moves as `cd.plus(model, q, delta)`. Partial
  derivatives of the equations as they stand: loops are not imposed on the directions.
- `chart="coordinates"`: the same by the nq numbers in `q`; `cd.equations(model).N(q)` is the map between the two.
- `chart="independent"`: along the constraints, by `cd.independent_coordinates(model)` and their rates; parameters and
  time move the dependent ones with them, through assembly. `chart="independent: A, B"` takes these coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import CardanError, InputError, UnknownNameError, nearest
from cardan.formulation.derivative import CHARTS, PARAMETERS, By, differentiated
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity
from cardan.functions.looped import is_looped_tree, require_shapes, warn_of_compiling
from cardan.model.memory import KernelSlot
from cardan.model.model import Model
from cardan.model.parameter import find_parameter
from cardan.on_card import as_array, is_device_array, require_host
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import compile_quantity, tree_quantity
from cardan.structure.planarity import prepare

if TYPE_CHECKING:
    from numpy.typing import NDArray

_KERNELS: KernelSlot[tuple[str, str, str]] = KernelSlot("derivatives by formulation, quantity, and what they are by")

_WHOLE: KernelSlot[tuple[str, str]] = KernelSlot("quantities in one kernel, for arrays on a card")


@dataclass(frozen=True, eq=False)
class Derivatives:
    """A value and its derivatives: `value` (..., *shape), and `result["q"]` (..., *shape, columns) by each name.

    It unpacks into the value and the derivatives, in the order of `by`: `a, a_q, a_v = ...`.
    """

    value: NDArray[Any]
    by: Mapping[str, NDArray[Any]]

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The derivative by a name."""
        if name not in self.by:
            raise UnknownNameError(f"there is no derivative by {name!r}{nearest(name, self.by)}")
        return self.by[name]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """The value, then the derivatives."""
        return iter((self.value, *self.by.values()))

    def __len__(self) -> int:
        """How many arrays there are."""
        return 1 + len(self.by)

    def __repr__(self) -> str:
        """Shapes."""
        by = ", ".join(f"{name} {x.shape}" for name, x in self.by.items())
        return f"Derivatives(value {self.value.shape}, by {by})"


def names_of(by: Any) -> tuple[Any, ...]:
    """What a user gave for `by`, as a tuple, whatever it is."""
    by = by.tolist() if isinstance(by, np.ndarray) else by
    return tuple(by) if isinstance(by, Sequence) and not isinstance(by, str) else (by,)


def by_of(
    owner: str, model: Model, by: Any, chart: Any, quantity: Quantity, also: Sequence[str] = ()
) -> By:  # fmt: skip
    """Check what a user asks to differentiate by; `also` are inputs that the quantity would have if they were named."""
    names = checked_names(owner, model, by, quantity, also)
    coordinates: tuple[str, ...] = ()
    if isinstance(chart, str) and chart.startswith(CHOSEN):
        coordinates = tuple(name.strip() for name in chart.removeprefix(CHOSEN).split(","))
        chart = "independent"
    if not isinstance(chart, str) or chart not in CHARTS:
        raise UnknownNameError(f"{owner}: chart={chart!r} is unknown{nearest(chart, CHARTS)}")
    return By(names, chart, coordinates)


def checked_names(owner: str, model: Model, by: Any, quantity: Quantity, also: Sequence[str] = ()) -> tuple[str, ...]:
    """The names to differentiate by, if they are inputs of the quantity."""
    names = names_of(by)
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(f"{owner}: by must be a name or several, such as by=('q', 'v'), got {by!r:.80}")
    known = tuple(dict.fromkeys((*quantity.inputs, *also, PARAMETERS)))
    for name in names:
        if name == "t" and "t" not in quantity.inputs:
            raise InputError(f"{owner}: by='t', but nothing in model {model.name!r} depends on time")
        if name not in known:
            raise UnknownNameError(f"{owner}: by={name!r} is not one of its inputs{_hint(model, name, known)}")
    if len(set(names)) < len(names):
        raise InputError(f"{owner}: by={names} names something twice")
    if PARAMETERS in names and not model.parameters:
        raise InputError(
            f"{owner}: by='parameters', but model {model.name!r} has no free parameter; free some with model.free(...)"
        )
    return names


def _hint(model: Model, name: str, known: Sequence[str]) -> str:
    """What was meant, as the tail of a sentence: perhaps a number of the model."""
    if name in model.parameters.names:
        return "; it is a free parameter: by='parameters' has columns for all, model.parameters tells their order"
    try:
        find_parameter(model, name)
    except CardanError:
        return nearest(name, known)
    return f"; it is a number that is not free: ask model.free({name!r}) with by='parameters'"


Names = str | Sequence[str] | None
CHOSEN = "independent:"  # before names of coordinates
Make = Callable[[By], Any]


def is_looped(model: Model, formulation: Formulation, by: Any, chart: Any) -> bool:
    """Whether derivatives of a tree are put together from looped kernels, if they can be: along the tangent."""
    names = names_of(by)
    well_named = all(isinstance(name, str) for name in names) and 0 < len(set(names)) == len(names)
    return is_looped_tree(model, formulation) and chart == "tangent" and well_named


def tree_derivatives(
    name: str, model: Model, by: Any, chart: Any, formulation: str | Formulation, args: Sequence[Any], *,
    core: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda shape: shape, out: Any = None,
    threads: int | None = None,
) -> Derivatives:  # fmt: skip
    """A quantity of the tree with its derivatives."""
    found = formulation_of(model, formulation)
    if is_looped(model, found, by, chart):
        from cardan.functions.looped_derivatives import BY_NAME  # which small models do without

        known, put_together = BY_NAME.get(name, (frozenset(), None))
        if put_together is not None and known >= set(names_of(by)):
            require_shapes(name, model, **dict(zip(tree_quantity(found, name).inputs, args, strict=True)))
            value, every = put_together(model, names_of(by), *args, threads=threads)
            own = tree_quantity(found, name).outputs[0][1](model)
            batch = value.shape[: value.ndim - len(own)]
            every = {key: D.reshape(*batch, *core(own), D.shape[-1]) for key, D in every.items()}
            return chosen(name, by, value.reshape(*batch, *core(own)), every, out)
    quantity = tree_quantity(found, name)
    return with_derivatives(name, model, by, chart, quantity, found, args, core=core, out=out, threads=threads)


def with_derivatives(
    owner: str, model: Model, by: Any, chart: Any, quantity: Quantity, formulation: Formulation, args: Sequence[Any], *,
    make: Make | None = None, core: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda shape: shape,
    out: Any = None, threads: int | None = None, also: Sequence[str] = (),
) -> Derivatives:  # fmt: skip
    """Evaluate a quantity with its derivatives. `make` gives the kernel where it is more than the quantity's own.

    `core` turns the shape of the value into the one that users see; `also` as in `by_of`.
    """
    wanted = by_of(owner, model, by, chart, quantity, also)
    if wanted.chart == "independent":
        return _independent(owner, model, wanted, quantity, formulation, args, make, core, out, threads)

    def own() -> Any:
        prepare(model, formulation)
        facts = f"{formulation.facts(model)} {wanted.key}"
        return compile_quantity(model, differentiated(quantity, wanted, model), facts, looped=False)

    # a quantity has the same name with wrenches and without
    place = (formulation.key, f"{quantity.name} of {' '.join(quantity.inputs)}", wanted.key)

    def told() -> Any:
        whole = differentiated(quantity, wanted, model)
        shapes = [shape(model) for _, shape in whole.outputs[len(quantity.outputs) :]]
        warn_of_compiling(owner, model, owner, max(s[0] for s in shapes), sum(s[1] for s in shapes))
        return own() if make is None else make(wanted)

    kernel = _KERNELS.find(model, place, told)
    value, *derivatives = map(as_array, kernel(*args, threads=threads))
    own_shape = quantity.outputs[0][1](model)
    shape, batch = core(own_shape), value.shape[: value.ndim - len(own_shape)]
    found = {
        name: D.reshape((*batch, *shape, *_columns(model, name, D.shape[-1])))
        for name, D in zip(wanted.names, derivatives, strict=True)
    }
    return placed(owner, Derivatives(value.reshape((*batch, *shape)), found), out)


def whole_kernel(model: Model, quantity: Quantity, formulation: Formulation) -> Any:
    """One kernel of all of a quantity: for arrays on a card, where the host would put it together with NumPy."""

    def make() -> Any:
        prepare(model, formulation)
        return compile_quantity(model, quantity, f"whole {formulation.facts(model)}", looped=False)

    return _WHOLE.find(model, (formulation.key, f"{quantity.name} of {' '.join(quantity.inputs)}"), make)


def chosen(owner: str, by: Any, value: Any, every: Mapping[str, Any], out: Any) -> Derivatives:
    """Some of the derivatives that a kernel gives."""
    return placed(owner, Derivatives(as_array(value), {name: every[name] for name in names_of(by)}), out)


def _independent(
    owner: str, model: Model, wanted: By, quantity: Quantity, formulation: Formulation, args: Sequence[Any],
    make: Make | None, core: Any, out: Any, threads: int | None,
) -> Derivatives:  # fmt: skip
    """Along the constraints, from partial derivatives by coordinates and rates."""
    from cardan.functions.along_constraints import along_constraints

    given = dict(zip(quantity.inputs, args, strict=True))
    require_host(f"{owner} with chart='independent'", **given)
    state = [name for name in ("q", "v", "a") if name in given]
    names = tuple(dict.fromkeys((*state, *wanted.names)))
    found = with_derivatives(
        owner, model, names, "tangent", quantity, formulation, args, make=make, core=core, threads=threads
    )
    axes = len(core(quantity.outputs[0][1](model)))
    along = along_constraints(owner, model, wanted, given, found, axes)
    return placed(owner, Derivatives(found.value, along), out)


def _columns(model: Model, name: str, count: int) -> tuple[int, ...]:
    """Axes of what a derivative is by."""
    if name == "t":
        return ()
    return (model.nb, 6) if name == "wrenches" else (count,)


def placed(owner: str, found: Derivatives, out: Any) -> Derivatives:
    """The result in the caller's arrays: `out` has one for the value and each derivative, None for a new one."""
    if out is None:
        return found
    given = tuple(out) if isinstance(out, tuple | list | Derivatives) else None
    if given is None or len(given) != len(found):
        raise InputError(f"{owner}: with by=, out must be {len(found)} arrays, the value's first, got {out!r:.80}")
    arrays = []
    for label, mine, yours in zip(("value", *found.by), found, given, strict=True):
        if yours is None:
            arrays.append(mine)
            continue
        if is_device_array(mine):
            arrays.append(_copied(owner, label, mine, yours))
            continue
        if not isinstance(yours, np.ndarray) or yours.shape != mine.shape or yours.dtype != mine.dtype:
            what = f"{yours.dtype} {yours.shape}" if isinstance(yours, np.ndarray) else f"a {type(yours).__name__}"
            raise InputError(f"{owner}: out for {label} must be an array {mine.dtype} {mine.shape}, got {what}")
        if not yours.flags.writeable:
            raise InputError(f"{owner}: out for {label} cannot be written to; give an array of your own")
        yours[...] = mine
        arrays.append(yours)
    return Derivatives(arrays[0], dict(zip(found.by, arrays[1:], strict=True)))


def given(owner: str, out: NDArray[Any] | None, result: NDArray[Any]) -> NDArray[Any]:
    """The result, in the caller's array if there is one."""
    if out is None:
        return result
    if is_device_array(result):
        return _copied(owner, "the result", result, out)
    if not isinstance(out, np.ndarray) or out.shape != result.shape or not out.flags.writeable:
        got = f"one of shape {out.shape}" if isinstance(out, np.ndarray) else f"a {type(out).__name__}"
        raise InputError(f"{owner}: out must be an array of shape {result.shape} that can be written to, got {got}")
    if not np.can_cast(result.dtype, out.dtype, "same_kind"):
        raise InputError(f"{owner}: out has dtype {out.dtype}, which cannot hold {result.dtype}")
    out[...] = result
    return out


def _copied(owner: str, name: str, result: Any, out: Any) -> Any:
    """A result on a card in the caller's array there."""
    from cardan.machines.cuda.copy import copy_into  # which the host does without

    return copy_into(owner, name, result, out)
