"""The formulations by name: the one place that knows which there are."""

from __future__ import annotations

import os
from importlib import import_module

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.formulation import Formulation

# Where Cardan's own are; read when first asked for, since the quickest first call needs one of them only.
_OWN = {
    "spatial": ("spatial", "SPATIAL"),
    "newton_euler": ("newton_euler", "NEWTON_EULER"),
    "absolute": ("absolute", "ABSOLUTE"),
    "absolute_body": ("absolute", "ABSOLUTE_BODY"),
    "relative": ("relative", "RELATIVE"),
    "points": ("points.formulation", "POINTS"),
}
ADDED: dict[str, Formulation] = {}
# What formulations of their kind are called in other programs and books, in lower case, for messages.
_ELSEWHERE = {
    "spatial": ("lagrange", "lagrangian", "kane", "featherstone", "minimal", "joint", "aba", "hamilton"),
    "absolute": ("maximal", "cartesian", "augmented", "adams", "dae"),
    "points": ("natural", "particles", "fully_cartesian"),
}


def formulation_names() -> tuple[str, ...]:
    """Names of all formulations, those added last."""
    return (*_OWN, *ADDED)


def find_formulation(formulation: str | Formulation) -> Formulation:
    """The formulation of a name, or the object itself; one that is not Cardan's own gets kernels of its own."""
    if isinstance(formulation, Formulation):
        own = find_formulation(formulation.name) if formulation.name in _OWN else None
        if not formulation.added and (own is None or formulation not in (own, own.in_space)):
            formulation.added = os.urandom(16).hex()
        return formulation
    if isinstance(formulation, str) and formulation in _OWN:
        module, name = _OWN[formulation]
        found: Formulation = getattr(import_module(f"cardan.formulation.{module}"), name)
        return found
    if isinstance(formulation, str) and formulation in ADDED:
        return ADDED[formulation]
    like = [own for own, others in _ELSEWHERE.items() if str(formulation).lower() in others]
    hint = nearest("" if like else formulation, formulation_names()) + (f"; take {like[0]!r}" if like else "")
    raise UnknownNameError(f"formulation {formulation!r} is not one{hint}")


def add_formulation(formulation: Formulation) -> None:
    """Let `formulation=name` mean equations of your own: an object of a subclass of `cd.Formulation`.

    A subclass of `cd.TreeFormulation` has the tree's coordinates and needs `inertia_and_force` alone; one of
    `cd.Formulation` has coordinates of its own and fills the whole contract. Its kernels have another key each time it
    is added, so that nothing in memory or on disk is taken for what it says now.
    """
    if not isinstance(formulation, Formulation):
        raise InputError(f"add_formulation: it takes an object of a subclass of cd.Formulation, got {formulation!r}")
    name = getattr(formulation, "name", None)
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"add_formulation: {type(formulation).__name__} must have a name, got {name!r}")
    if name in _OWN:
        raise InputError(f"formulation {name!r} is Cardan's own; give yours another name")
    formulation.added = os.urandom(16).hex()
    ADDED[name] = formulation
