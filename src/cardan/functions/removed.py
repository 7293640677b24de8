"""Arguments that functions no longer take: the error says what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Never, TypedDict

from cardan.errors import InputError


class Removed(TypedDict, total=False):
    """Arguments of earlier versions; a type checker refuses them."""

    frame: Never


_INSTEAD = {
    "frame": "write formulation='absolute_body' for angular rates in body axes, formulation='absolute' otherwise"
}


def refuse(function: str, removed: Mapping[str, object]) -> InputError:
    """The error for arguments that a function does not take."""
    name = next(iter(removed))
    if name in _INSTEAD:
        return InputError(f"{function}: the argument {name!r} is gone; {_INSTEAD[name]}")
    return InputError(f"{function}: there is no argument {name!r}")
