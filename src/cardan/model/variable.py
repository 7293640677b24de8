"""Variables: numbers of a mechanism beside its bodies, joints and elements, which every function can read by name.

A variable is held, changed only by events and inputs: the mode of a machine, a command. Or it is a state, with a rate
that is integrated with the motion: the integral of a controller, the current of a motor. All are free parameters of
the built model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cardan.errors import ModelError


@dataclass(frozen=True, eq=False)
class Variable:
    """A number, or several, with a name.

    `value` (size,) is the nominal one, at which runs begin. `rate` is None for one that is held, else a function of an
    instant that returns the rates (size,), in `unit`/s. `slope` is the name of the variable that is the rate of an
    input which is given by straight lines over time. One that is sampled takes the value `update` of the instant every
    `every` seconds. `element` is the name of the element of the mechanism that brings it with it, if one does.
    """

    name: str
    value: np.ndarray
    unit: str = ""
    rate: Callable[[Any], Any] | None = field(default=None, repr=False)
    slope: str = ""
    every: float = 0.0
    update: Callable[[Any], Any] | None = field(default=None, repr=False)
    element: str = ""

    def with_law(self, controllers: Mapping[str, Any]) -> Variable:
        """The same with its rate or update from the controller, by name, that it belongs to, as `build` traced it."""
        changed: dict[str, Any] = {}
        for what in ("rate", "update"):
            part: Any = getattr(self, what)
            if hasattr(part, "controller"):
                changed[what] = replace(part, controller=controllers[part.controller.name])
        return replace(self, **changed) if changed else self

    @property
    def is_state(self) -> bool:
        """Whether it is a state of the mechanism: it has a rate, and is no input that follows straight lines."""
        return self.rate is not None and not self.slope

    @property
    def owner(self) -> str:
        """What it is called in messages."""
        return f"variable {self.name!r}"


def require_plain_names(named: Iterable[Any], elements: Iterable[Any]) -> None:
    """Reject a variable or signal that is called like a number of an element, `element.field`, and is none of it."""
    known, listed = {element.name for element in elements}, tuple(named)
    brought = {x.name for x in listed if getattr(x, "element", "")} | {getattr(x, "slope", "") for x in listed}
    for variable in listed:
        element = variable.name.rpartition(".")[0]
        if element in known and variable.name not in brought:
            raise ModelError(
                f"{variable.owner}: such are the names of numbers of {element!r}, an element of the mechanism; "
                f"call it {variable.name.replace('.', ' ')!r}"
            )
