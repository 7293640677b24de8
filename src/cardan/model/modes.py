"""Modes of rows with laws, as numbers of the model that a run changes.

While no row changes its mode, a mechanism with stops and friction that sticks is an ordinary one: some rows are closed,
the others carry forces that are known. An event-driven run integrates it with the modes as free parameters, two for
each row of an element:

    mode         1 closed: the gap is closed, the friction sticks, the lock holds        0 open: it slides
    direction    of friction that slides: 1 or -1; of two rows, the direction along which they slide; of an open gap,
                 how far (m, rad) below zero it closes, so that one that opens at zero is not taken for closing; of a
                 closed one, the speed (m/s) below which sliding in two directions counts as rest

`with_modes` frees them. What changes them at events is in `integrate.modes`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cardan.algebra.free_number import expression, scalar
from cardan.algebra.matrix import Scalar
from cardan.model.field import ANY
from cardan.model.law import LawfulElement
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.parameter import Parameter, Parameters
from cardan.model.row import Law

MODE, DIRECTION, CLOSED = "mode", "direction", "closed"
_WITH_MODES: Slot[None, Model] = Slot("model with the modes of its rows as free numbers")


def has_modes(model: Model) -> bool:
    """Whether the modes of the model's rows with laws are numbers of it that a run may change."""
    return any(MODE in law.numbers for law in model.laws)


def is_switched(law: LawfulElement) -> bool:
    """Whether an element is a lock or a latch: its number `closed` says whether its rows hold."""
    return Law.SWITCHED in law.laws


def with_modes(model: Model) -> Model:
    """The model with the modes of its rows with laws as more free numbers, at the end of `p`; all gaps are open.

    A model without such rows is returned as it is.
    """
    if not model.laws or has_modes(model):
        return model
    found = _WITH_MODES.find(model, None, lambda: _with_modes(model.unbound))
    if model.values is None:
        return found
    more = found.parameters.nominal[model.parameters.size :]
    more = np.broadcast_to(more, (*model.values.shape[:-1], len(more)))
    return found._bound(np.concatenate([model.values, more], axis=-1))


def _with_modes(model: Model) -> Model:
    forces, more = list(model.forces), []
    place = {force.name: k for k, force in enumerate(forces)}
    for law in model.laws:
        k, none = place[law.name], np.zeros(len(law.rows))
        wanted = {MODE: none} | ({CLOSED: forces[k].numbers[CLOSED]} if is_switched(law) else {DIRECTION: none})
        forces[k] = replace(forces[k], numbers={**forces[k].numbers, **wanted})
        for what, value in wanted.items():
            if f"{law.name}.{what}" not in model.parameters.names:
                value = np.asarray(value, dtype=float).reshape(()) if what == CLOSED else value
                more.append(Parameter(f"{law.name}.{what}", "", value.shape, value, ANY, ("force", k, what)))
    return replace(model, forces=tuple(forces), parameters=Parameters((*model.parameters, *more)))


def without_modes(model: Model) -> Model:
    """The model as it was before `with_modes`, with its free numbers at their nominal values."""
    if not has_modes(model):
        return model
    added = [p.place[0] == "force" and p.place[2] == MODE for p in model.parameters].index(True)
    hidden = (MODE, DIRECTION)
    forces = tuple(
        replace(force, numbers={what: x for what, x in force.numbers.items() if what not in hidden})
        for force in model.forces
    )
    return replace(model.unbound, forces=forces, parameters=Parameters(model.parameters.items[:added]))


def entries(law: LawfulElement, what: str) -> list[Scalar]:
    """`mode` or `direction` of each row of an element, in the equations."""
    if what not in law.numbers:
        return [0.0] * len(law.rows)
    return [expression(scalar(x)) for x in law.numbers[what].ravel()]


def places(model: Model, what: str) -> np.ndarray:
    """Where in `p` the `mode`, `direction` or `closed` of each row with a law is, in order (m,); -1 if it has none."""
    found: list[int] = []
    for law in model.laws:
        name, m = f"{law.name}.{what}", len(law.rows)
        if name not in model.parameters.names:
            found += [-1] * m
        else:
            own = model.parameters.slice_of(name)
            found += range(own.start, own.stop) if what != CLOSED else [own.start] * m
    return np.array(found, dtype=int)
