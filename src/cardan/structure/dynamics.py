"""Dynamics of any mechanism on arrays: independent rows are chosen, then a kernel is compiled.

What users call is in `functions.dynamics` and `functions.constraints`; the text is `formulation.dynamics`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cardan.formulation import dynamics
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity
from cardan.model.memory import KernelSlot
from cardan.model.model import Model
from cardan.structure.condition import warn_of_condition
from cardan.structure.kernels import compile_quantity
from cardan.structure.planarity import prepare
from cardan.structure.redundancy import require_motion
from cardan.structure.row_sets import ChoosingKernel, is_settled
from cardan.structure.rows import kept_rows

_KERNELS: KernelSlot[tuple[str, str, bool]] = KernelSlot("dynamics by formulation, what, and whether wrenches act")
_ONE_CHOICE: KernelSlot[tuple[str, str, bool]] = KernelSlot("the same with one choice of rows")


def forward_kernel(model: Model, formulation: Formulation, loaded: bool) -> Any:
    """Accelerations of the tree's coordinates."""
    return _with_rows(
        model, formulation, "forward", loaded, lambda rows: dynamics.forward_dynamics(model, formulation, rows, loaded)
    )


def inverse_kernel(model: Model, formulation: Formulation) -> Any:
    """Forces along the tree's coordinates."""

    def make() -> Any:
        prepare(model, formulation)
        return compile_quantity(model, dynamics.inverse_dynamics(model, formulation), formulation.facts(model))

    return _KERNELS.find(model, (formulation.key, "inverse", True), make)


def reaction_kernel(model: Model, formulation: Formulation) -> Any:
    """Wrenches of all joints."""
    return _with_rows(model, formulation, "reactions", True, lambda rows: dynamics.reactions(model, formulation, rows))


def multiplier_kernel(model: Model, formulation: Formulation) -> Any:
    """Multipliers of all constraint rows."""
    return _with_rows(
        model, formulation, "multipliers", True, lambda rows: dynamics.multipliers(model, formulation, rows)
    )


def _with_rows(
    model: Model, formulation: Formulation, what: str, loaded: bool, quantity: Callable[[list[int]], Quantity]
) -> Any:
    def with_rows(one: Model) -> Any:
        rows = kept_rows(one, formulation)
        return compile_quantity(one, quantity(rows), f"{formulation.facts(one)} rows {rows} loaded {loaded}")

    def make() -> Any:
        prepare(model, formulation)
        require_motion(model)
        warn_of_condition(model, formulation)
        if is_settled(model):
            return with_rows(model.unbound)
        place = (formulation.key, what, loaded)
        return ChoosingKernel(model.unbound, lambda one: _ONE_CHOICE.find(one, place, lambda: with_rows(one)))

    return _KERNELS.find(model, (formulation.key, what, loaded), make)
