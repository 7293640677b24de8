"""What changes parameters at times that are known before a run: inputs given over time, and sampled variables.

An input is held from one of its times to the next, or, where its variable was declared `linear`, goes along straight
lines: the variable is then a state whose rate, the slope, is held. A sampled variable takes a new value every so many
seconds, a function of the instant just before: a controller that runs at its own rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.algebra.matrix import column_of
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.instant import Instant
from cardan.integrate.changes import Change, TracedChange
from cardan.integrate.transition import Jump, Moment, Transition, unchanged
from cardan.model.controller import Controller, ControllerPart
from cardan.model.model import Model
from cardan.model.signal import in_order, told_cycle
from cardan.model.values import floats, shown
from cardan.model.variable import Variable

MOST_UPDATES = 10_000_000  # of sampled variables in a run
ROUNDING = 1e-14  # of the longest time: times this near to each other are one time
SAME = 1e-9  # of the interval: times of samples this near to each other are one time


@dataclass(frozen=True)
class GivenInput(Transition):
    """Values (..., n, size) of one parameter at times (n,), s, with the systems of a batch first.

    `at` is where the parameter is in `p`, `slope` where its rate is; None if it is held.
    """

    name: str
    times: np.ndarray
    values: np.ndarray
    at: slice
    slope: slice | None = None

    @property
    def batch(self) -> tuple[int, ...]:
        """Batch shape of the values."""
        return self.values.shape[:-2]

    def over(self, systems: tuple[int, ...]) -> GivenInput:
        """The same for every system of a batch, its axes flattened."""
        wide = np.broadcast_to(self.values, (*systems, *self.values.shape[-2:]))
        return replace(self, values=wide.reshape(-1, *self.values.shape[-2:]))

    def snapped(self, times: np.ndarray) -> GivenInput:
        """The same, with its times moved onto some times, s, that differ by rounding only."""
        return replace(self, times=snapped(self.times, times))

    def part(self, lo: int, hi: int) -> GivenInput:
        """The same of the systems from `lo` to `hi`."""
        return replace(self, values=self.values[lo:hi])

    def apply(self, at: Moment) -> Jump:
        """Set the parameter, and its slope, of the systems that are at one of the times, or at the start."""
        t, p, n = float(at.t[0]), at.p.copy(), len(self.times)
        k = int(np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, n - 1))
        own = self.values[at.systems]
        value = own[:, k]
        if self.slope is not None:
            later = min(k + 1, n - 1)
            length = self.times[later] - self.times[k]
            inside = length > 0 and t >= self.times[0]
            slope = (own[:, later] - value) / length if inside else 0.0 * value
            value = value + slope * max(t - self.times[k], 0.0)
            p[:, self.slope] = slope
        p[:, self.at] = value
        return Jump(at.v, p)

    def slopes(self, at: Moment, jump: Jump, limited: bool) -> np.ndarray:
        """What is given does not depend on what was there."""
        D, nv = unchanged(at), at.v.shape[1]
        for place in (self.at, self.slope):
            if place is not None:
                D[:, nv:][:, place] = 0.0
        return D


def snapped(at: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Times `at`, s, moved onto some `times` in order that differ by rounding only."""
    right = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
    near = np.where(at - times[right - 1] < times[right] - at, times[right - 1], times[right])
    return np.where(np.abs(near - at) <= ROUNDING * np.abs(times).max(), near, at)


def read_inputs(model: Model, inputs: Any) -> tuple[GivenInput, ...]:
    """Inputs from `{name: (times, values)}`; reject what does not fit."""
    if not isinstance(inputs, Mapping):
        raise InputError(f"simulate: inputs must be a dict of names and (times, values), got {shown(inputs)}")
    return tuple(_read_input(model, name, given) for name, given in inputs.items())


def _read_input(model: Model, name: Any, given: Any) -> GivenInput:
    free = model.parameters
    if name not in free.names:
        hint = nearest(name, free.names) if free.names else "; no number of this model is free"
        raise UnknownNameError(f"simulate: input {name!r} is not a free parameter or variable{hint}")
    parameter, who = free[name], f"simulate: input {name!r}"
    try:
        times, values = given
        times, values = floats(times), floats(values)
    except (TypeError, ValueError):
        raise InputError(f"{who}: give (times, values), two arrays of numbers; got {shown(given)}") from None
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise InputError(f"{who}: its times must be a list of increasing numbers, s, got {shown(times)}")
    own = (len(times), *parameter.shape)
    if values.shape[max(values.ndim - len(own), 0) :] != own:
        wanted = ", ".join(("...", *map(str, own)))
        raise InputError(f"{who}: its values must have the shape ({wanted}), one for each time, got {values.shape}")
    values = parameter.read(values)
    variable = next((x for x in model.variables if x.name == name), None)
    slope = free.slice_of(variable.slope) if variable is not None and variable.slope else None
    if variable is not None and variable.rate is not None and slope is None:
        raise InputError(f"{who}: it is a state with a rate of its own, not an input; give its start with model.at")
    return GivenInput(str(name), times, values, free.slice_of(str(name)), slope)


def sampled_updates(model: Model, start: float, end: float) -> list[tuple[np.ndarray, Transition]]:
    """Times, s, and changes of the sampled variables of a model; those of one interval change together."""
    found: list[tuple[np.ndarray, Transition]] = []
    for every, own, called in sampled_variables(model):
        count = int(np.floor((end - start) / every * (1 + SAME))) + 1
        if count > MOST_UPDATES:
            raise InputError(
                f"simulate: a variable is sampled every {every:g} s, {count} times in the run; take a longer interval"
            )
        times = start + every * np.arange(count)
        if own:
            found.append((times, TracedChange(model, f"{own[0].owner}: update", next_values(own))))
        found += [(times, CalledController(model, controller)) for controller in called]
    return found


def sampled_variables(model: Model) -> Iterator[tuple[float, list[Variable], list[Controller]]]:
    """By interval, s: the sampled variables whose update is recorded, and the controllers in plain Python."""
    for every in dict.fromkeys(x.every for x in model.variables if x.every):
        every_own = [x for x in model.variables if x.every == every]
        own = [x for x in every_own if not isinstance(x.update, ControllerPart) or not x.update.controller.called]
        called = [x.update.controller for x in every_own if x not in own and isinstance(x.update, ControllerPart)]
        yield every, own, called


def next_values(variables: Sequence[Variable]) -> Callable[[Instant], Change]:
    """What sampled variables of one interval become, as a function of the instant just before."""
    return lambda s: Change(parameters=_new_values(variables, s))


def _new_values(own: Sequence[Variable], s: Instant) -> dict[str, Any]:
    """New values of the variables that are sampled together, at an instant just before.

    All follow from the values before, but for controllers: one that reads the output of another sees it as it is from
    this sample on. Its own output is to a controller what it was.
    """
    outputs = {c.output: c for c in s.model.controllers if c.every}
    here = {x.name: x for x in own}
    reads = {
        name: [] if c.lag else [sight.of[0] for sight in c.behind if sight.what == "number" and sight.of[0] != name]
        for name, c in outputs.items()
        if name in here
    }
    registers = {name for c in outputs.values() for name in c.registers}
    parts = {x.name for x in own if isinstance(x.update, ControllerPart)}
    early = [x.name for x in own if x.name not in parts | registers]
    late = [x.name for x in own if x.name in registers and x.name not in reads]
    found = {}
    for name in (*early, *in_order(reads, _told_cycle), *late, *(x.name for x in own if x.name in parts - registers)):
        update: Any = here[name].update
        before = s.held.pop(update.controller.output, None) if isinstance(update, ControllerPart) else None
        found[name] = update(s)
        if before is not None:
            s.held[update.controller.output] = before
        if name in reads:
            s.held[name] = column_of(found[name])
    return found


def _told_cycle(names: list[str]) -> str:
    return (
        f"{told_cycle(names)}; sampled controllers of one interval run one after the other: let one of them come late "
        "by delay="
    )


class CalledController(Transition):
    """A controller whose law is plain Python, called at each of its times for all systems that are there."""

    def __init__(self, model: Model, controller: Controller) -> None:
        self.model, self.controller = model.unbound, controller

    @property
    def told(self) -> str:
        """What it is called in messages."""
        return f"{self.controller.owner}, whose law is plain Python,"

    def apply(self, at: Moment) -> Jump:
        """Put its efforts (k, size) into their variable."""
        free, k, own = self.model.parameters, len(at.t), self.controller
        given = {x.name: at.p[:, free.slice_of(x.name)].reshape(k, *x.shape) for x in free}
        try:
            answer = own.law(at.t, at.q.copy(), at.v.copy(), given)
        except Exception as error:
            raise InputError(
                f"{own.owner}: its law failed at t = {at.t[0]:.6g} s: {type(error).__name__}: {error}"
            ) from error
        try:
            efforts = floats(answer)
            efforts = np.broadcast_to(efforts.reshape(k, own.size) if efforts.ndim else efforts, (k, own.size))
        except (TypeError, ValueError):
            raise InputError(
                f"{own.owner}: its law must return efforts ({k}, {own.size}), a row a system, got {shown(answer)}"
            ) from None
        if not np.isfinite(efforts).all():
            raise InputError(f"{own.owner}: its efforts are not finite at t = {at.t[0]:.6g} s: {shown(answer)}")
        p = at.p.copy()
        p[:, free.slice_of(own.registers[0])] = efforts
        return Jump(at.v, p)
