"""Kernels of linear models: the rows and the independent coordinates are chosen, then a kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cardan.errors import InputError
from cardan.formulation.derivative import PARAMETERS, pushed
from cardan.formulation.formulation import Formulation
from cardan.formulation.linear import Columns, descriptor, linear_motion, state_matrix
from cardan.formulation.quantity import Quantity
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import TreeFormulation
from cardan.model.memory import KernelSlot
from cardan.model.model import Model
from cardan.structure.condition import warn_of_condition
from cardan.structure.kernels import compile_quantity, rates_facts
from cardan.structure.planarity import prepare
from cardan.structure.redundancy import require_motion
from cardan.structure.row_sets import ChoosingKernel, is_settled
from cardan.structure.rows import kept_rows

_KERNELS: KernelSlot[tuple[str, str]] = KernelSlot("linear models by formulation and columns")
_ONE_CHOICE: KernelSlot[tuple[str, str]] = KernelSlot("the same with one choice of rows")


def linear_kernel(model: Model, formulation: Formulation, columns: Columns) -> Any:
    """`formulation.linear.linear_motion` as a function of `q`, `v`, `tau`, of wrenches if columns name any, and `t`."""
    return _with_rows(
        model, formulation, columns.key, lambda one, way, rows, tree: linear_motion(one, way, rows, tree, columns)
    )


def descriptor_kernel(model: Model, formulation: TreeFormulation, columns: Columns) -> Any:
    """`formulation.linear.descriptor` as a function of the same."""
    return _with_rows(
        model, formulation, f"descriptor {columns.key}", lambda one, way, rows, _: descriptor(one, way, rows, columns)
    )


def state_matrix_rate_kernel(model: Model, formulation: Formulation, columns: Columns) -> Any:
    """`A` and its rate when `q`, `v` and the free parameters move with rates that come last: (nv,), (nv,), (size,)."""
    if model.depends_on_time and not is_settled(model):
        raise InputError(
            f"modes: model {model.name!r} depends on time and on which of its constraints are redundant at each "
            "configuration; derivatives of its eigenvalues are not known"
        )

    def write(one: Model, way: Formulation, rows: list[int], tree: list[int]) -> Quantity:
        return pushed(state_matrix(one, way, rows, tree, columns), ("q", "v", PARAMETERS), one)

    return _with_rows(model, formulation, f"rate of {columns.key}", write)


def _with_rows(model: Model, formulation: Formulation, what: str, quantity: Callable[..., Quantity]) -> Any:
    """The kernel of a quantity of a model, a formulation, the rows kept there and those kept in the tree."""

    def with_rows(one: Model) -> Any:
        prepare(one, formulation)
        rows, tree_rows = kept_rows(one, formulation), kept_rows(one, SPATIAL)
        written = quantity(one, formulation, rows, tree_rows)
        facts = f"{formulation.facts(one)} rows {rows} {tree_rows} {rates_facts(one)}"
        return compile_quantity(one, written, facts, looped=False)

    def make() -> Any:
        prepare(model, formulation)
        require_motion(model)
        warn_of_condition(model, formulation)
        if is_settled(model):
            return with_rows(model.unbound)
        place = (formulation.key, what)
        return ChoosingKernel(model.unbound, lambda one: _ONE_CHOICE.find(one, place, lambda: with_rows(one)))

    return _KERNELS.find(model, (formulation.key, what), make)
