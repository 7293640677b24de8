"""Dynamics of any mechanism on arrays: independent rows are chosen, then a kernel is compiled.

What users call is in `functions.dynamics` and `functions.constraints`; the text is `formulation.dynamics`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cardan.formulation import dynamics
from cardan.formulation.derivative import By, differentiated, forward_dynamics_by
from cardan.formulation.formulation import Formulation
from cardan.formulation.law_quantities import law_readings
from cardan.formulation.quantity import Quantity
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import TreeFormulation
from cardan.machines.waiting import doing
from cardan.model.memory import KernelSlot, Slot
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.model.plane import plane_digest
from cardan.structure.condition import warn_of_condition
from cardan.structure.digits import watch_derivatives
from cardan.structure.kernels import compile_quantity
from cardan.structure.large import (
    LargeReactions,
    has_large_reactions,
    is_divided,
    large_forward,
    large_multipliers,
)
from cardan.structure.lawful import LawfulKernel, finds_modes
from cardan.structure.planarity import prepare
from cardan.structure.redundancy import require_motion
from cardan.structure.row_sets import ChoosingKernel, is_settled
from cardan.structure.rows import kept_rows

_KERNELS: KernelSlot[tuple[str, str, bool]] = KernelSlot("dynamics by formulation, what, and whether wrenches act")
_ONE_CHOICE: KernelSlot[tuple[str, str, bool]] = KernelSlot("the same with one choice of rows")
_CALLED = {"forward": "forward_dynamics"}  # the function that a kernel is for, where it has another name
_OPEN: Slot[str, bool] = Slot("whether a planar formulation leaves reactions open, by its key")


def forward_kernel(model: Model, formulation: Formulation, loaded: bool, by: By | None = None) -> Any:
    """Accelerations of the tree's coordinates; with `by`, their derivatives too."""
    if finds_modes(model):
        again = lambda one: forward_kernel(one, formulation, loaded, by)
        return LawfulKernel("forward_dynamics", model, formulation, loaded, again)
    return _with_rows(
        model, formulation, "forward", loaded,
        lambda rows: dynamics.forward_dynamics(model, formulation, rows, loaded), by=by, answers=True,
        large=lambda one, way: large_forward(one, way, loaded),
    )  # fmt: skip


def inverse_kernel(model: Model, formulation: Formulation, loaded: bool = True) -> Any:
    """Forces along the tree's coordinates, under wrenches if it is `loaded`."""
    model.require_no_laws("inverse_dynamics", "give what they do as wrenches, or leave them out of the model")

    def make() -> Any:
        prepare(model, formulation)
        facts = f"{formulation.facts(model)}{'' if loaded else ' unloaded'}"
        return compile_quantity(model, dynamics.inverse_dynamics(model, formulation, loaded), facts)

    return _KERNELS.find(model, (formulation.key, "inverse", loaded), make)


def reaction_kernel(model: Model, formulation: Formulation, by: By | None = None) -> Any:
    """Wrenches of all joints; in a planar formulation their part in the plane."""
    if finds_modes(model):
        return LawfulKernel("reactions", model, formulation, True, lambda one: reaction_kernel(one, formulation, by))
    way, home = reaction_formulation(model, formulation), model.unbound
    if way is formulation:
        return _with_rows(
            model, way, "reactions", True, lambda rows: dynamics.reactions(model, way, rows), by=by,
            large=lambda one, way: LargeReactions(one) if has_large_reactions(one, way) else None,
        )  # fmt: skip

    def quantity(rows: list[int]) -> Quantity:
        return dynamics.reactions_in_plane(home, way, rows)

    return _with_rows(model, formulation, "reactions", True, quantity, way, by)


def reaction_formulation(model: Model, formulation: Formulation) -> Formulation:
    """The formulation whose equations give the reactions: `spatial` where a planar one leaves them open.

    Where each joint by itself keeps to the plane, it carries whatever acts out of the plane, and the equations in the
    plane determine all that is determined there. Where only loops keep to the plane, the forces of a joint in the plane
    and out of it depend on one another. Then constraints that are redundant in the plane need not be so in space.
    """
    if not formulation.is_planar:
        return formulation
    prepare(model, formulation)
    home = model.unbound
    return SPATIAL if _OPEN.find(home, formulation.key, lambda: _leaves_open(home, formulation)) else formulation


def _leaves_open(model: Model, formulation: Formulation) -> bool:
    """Whether constraints are redundant in the plane, and only loops keep the mechanism there."""
    if not plane_digest(model):
        return False
    return len(kept_rows(model, formulation)) < len(dynamics.shape_of(model, formulation).labels)


def multiplier_kernel(model: Model, formulation: Formulation, by: By | None = None) -> Any:
    """Multipliers of all constraint rows."""
    if finds_modes(model):
        return LawfulKernel(
            "multipliers", model, formulation, False, lambda one: multiplier_kernel(one, formulation, by)
        )
    return _with_rows(
        model, formulation, "multipliers", True, lambda rows: dynamics.multipliers(model, formulation, rows), by=by,
        large=lambda one, way: large_multipliers(one) if way is SPATIAL else None,
    )  # fmt: skip


def power_kernel(model: Model, formulation: Formulation, by: By | None = None) -> Any:
    """The power that enters; with `by`, its derivatives too."""
    if finds_modes(model):
        return LawfulKernel("power", model, formulation, False, lambda one: power_kernel(one, formulation, by))
    return _with_rows(model, formulation, "power", False, lambda rows: dynamics.power(model, formulation, rows), by=by)


def law_kernel(model: Model, formulation: Formulation) -> Any:
    """Forces and gaps of all rows with laws of a model with modes."""
    return _with_rows(model, formulation, "laws", False, lambda rows: law_readings(model, formulation, rows))


def _with_rows(
    model: Model, formulation: Formulation, what: str, loaded: bool, quantity: Callable[[list[int]], Quantity],
    solved_by: Formulation | None = None, by: By | None = None, answers: bool = False,
    large: Callable[[Model, Formulation], Any] | None = None,
) -> Any:  # fmt: skip
    """The kernel of a quantity that a formulation, or another in its place, solves with an independent set of rows.

    With `by` it has derivatives too; if it `answers` the equations of motion, from these equations. `large` makes it
    for a mechanism that is divided into pieces.
    """
    way, owner = solved_by or formulation, _CALLED.get(what, what)
    what = f"{what} {by.key}" if by else what

    def with_rows(one: Model) -> Any:
        prepare(one, formulation)
        if large is not None and by is None and is_divided(one, way) and (kernel := large(one, way)) is not None:
            return kernel
        rows = kept_rows(one, way)
        written = quantity(rows)
        if by and answers and rows and isinstance(way, TreeFormulation) and not has_modes(one):
            written = forward_dynamics_by(way, rows, written, by, one)
        elif by:
            written = differentiated(written, by, one)
        return compile_quantity(one, written, f"{formulation.facts(one)} rows {rows} loaded {loaded}")

    def make() -> Any:
        prepare(model, formulation)
        require_motion(model)
        with doing(f"judging the equations of {model.name} in {formulation.name}"):
            warn_of_condition(model, way)
        kernel = chosen_kernel(model, (formulation.key, what, loaded), with_rows)
        if by:
            watch_derivatives(owner, model, way, kernel, by.names)
        return kernel

    return _KERNELS.find(model, (formulation.key, what, loaded), make)


def chosen_kernel(model: Model, place: tuple[str, str, bool], kernel_of: Callable[[Model], Any]) -> Any:
    """The kernel that solves with constraint rows: `kernel_of` the model, or of models with rows chosen at each state.

    `place` identifies it: formulation, what, and whether wrenches act.
    """
    if is_settled(model):
        return kernel_of(model.unbound)
    return ChoosingKernel(model.unbound, lambda one: _ONE_CHOICE.find(one, place, lambda: kernel_of(one)))
