"""What users give for an equilibrium: joints, drives, rates and unknowns by name, as a `Task` of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cardan.analysis.statics.balance import Change, Task, point_at
from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.formulation import Formulation
from cardan.formulation.state_rates import answers_read
from cardan.model.joint import NUMBERED
from cardan.model.model import Model
from cardan.model.named_state import coordinates_by_name
from cardan.model.values import batch, number, shown
from cardan.structure.formulation import formulation_of


def coordinates_of(owner: str, what: str, model: Model, name: Any) -> list[int]:
    """Numbers of the rates that a joint, or a coordinate such as "P[1]", has in the tree."""
    if not isinstance(name, str):
        raise InputError(f"{owner}: {what} takes names of joints, got {shown(name)}")
    if name in model.coordinate_names:
        return [model.coordinate_names.index(name)]
    own = [k for k, other in enumerate(model.coordinate_names) if other.rpartition("[")[0] == name]
    if own:
        return own
    if name in model.joint_names:
        raise InputError(
            f"{owner}: {what}: joint {name!r} has no coordinate of its own in the tree: it closes a loop or is rigid; "
            + (f"name one of {', '.join(map(repr, model.coordinate_names[:8]))}" if model.nv else "nothing moves here")
        )
    known = dict.fromkeys((*model.coordinate_names, *model.joint_names))
    raise UnknownNameError(f"{owner}: {what}: {name!r} is not a joint{nearest(name, known)}")


def names_of(owner: str, what: str, given: Any) -> list[Any]:
    """A list of names: one, several, or none."""
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise InputError(f"{owner}: {what} must be a list of names, got {shown(given)}")
    names = list(given)
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"{owner}: {what} names {twice[0]!r} twice")
    return names


def start_of(owner: str, model: Model, q: Any) -> np.ndarray:
    """Configurations (..., nq) to begin with: an array, coordinates by joint, or the model's own start."""
    if q is None:
        return model.start()
    if not isinstance(q, Mapping):
        found = batch(owner, "q", q, model.nq)
        for at in model.quaternions:
            length = np.linalg.norm(found[..., at], axis=-1)
            if (np.abs(length - 1) > 1e-3).any():
                raise InputError(
                    f"{owner}: q has a quaternion of length {length.flat[0]:g} at {at.start}; it must be 1"
                )
            found[..., at] /= length[..., None]
        return found
    return coordinates_by_name(owner, "q", model, q)[0]


def along_rates(owner: str, what: str, model: Model, given: Any) -> tuple[np.ndarray, list[int]]:
    """Numbers (..., nv) along the tree's rates, from an array or by name; and the rates that are named."""
    if given is None:
        return np.zeros(model.nv), []
    if not isinstance(given, Mapping):
        return batch(owner, what, given, model.nv), []
    parts: dict[int, np.ndarray] = {}
    for name, value in given.items():
        own = coordinates_of(owner, what, model, name)
        numbers = batch(owner, f"{what} of {name!r}", value)
        if len(own) > 1 and numbers.shape[-1:] != (len(own),):
            raise InputError(f"{owner}: {what} of {name!r} must be {len(own)} numbers, got shape {numbers.shape}")
        for k, at in enumerate(own):
            if at in parts:
                raise InputError(f"{owner}: {what} gives {model.coordinate_names[at]!r} twice")
            parts[at] = numbers[..., k] if len(own) > 1 else numbers
    shape = _broadcast(owner, {f"{what} of {model.coordinate_names[k]!r}": x.shape for k, x in parts.items()})
    found = np.zeros((*shape, model.nv))
    for at, numbers in parts.items():
        found[..., at] = numbers
    return found, sorted(parts)


def change_of(owner: str, what: str, model: Model, name: Any) -> list[Change]:
    """What a name may mean as an unknown: a free parameter, `JOINT.rate`, `JOINT.q`, or the drive of a joint."""
    if not isinstance(name, str):
        raise InputError(f"{owner}: {what} takes names, got {shown(name)}")
    numbered = NUMBERED.fullmatch(name)
    for parameter, index in ((name, None), *([(numbered[1], int(numbered[2]))] if numbered else [])):
        if parameter in model.parameters.names:
            return _parameter_changes(owner, what, model, parameter, index)
    joint, _, sort = name.rpartition(".")
    unit = np.eye(model.nv)
    if sort in SORTS and joint:
        own = coordinates_of(owner, what, model, joint)
    elif name in (*model.coordinate_names, *model.joint_names):
        own, sort = coordinates_of(owner, what, model, name), "tau"
    else:
        raise _unknown(owner, what, model, name)

    def change(k: int) -> Change:
        v, q, tau = (unit[k] if sort == each else np.zeros(model.nv) for each in ("rate", "q", "tau"))
        none = np.zeros(model.parameters.size)
        return Change(f"{model.coordinate_names[k]}.{sort}", SORTS[sort][_is_angle(model, k)], none, v, q, tau)

    return [change(k) for k in own]


SORTS = {"rate": ("m/s", "rad/s"), "q": ("m", "rad"), "tau": ("N", "N m")}
"""What may be asked of a joint, with units for a length and for an angle."""


def _is_angle(model: Model, k: int) -> bool:
    units = [unit for link in model.tree.links for unit in link.kind.v_units]
    return units[k] != "m/s"


def _parameter_changes(owner: str, what: str, model: Model, name: str, index: int | None) -> list[Change]:
    parameter, at = model.parameters[name], model.parameters.slice_of(name)
    if index is not None and index >= parameter.size:
        raise InputError(f"{owner}: {what}: parameter {name!r} has {parameter.size} numbers, there is no [{index}]")
    found = []
    for k in range(parameter.size) if index is None else [index]:
        p = np.zeros(model.parameters.size)
        p[at.start + k] = 1.0
        nominal = abs(float(parameter.nominal.flat[k]))
        label = name if parameter.size == 1 else f"{name}[{k}]"
        none = np.zeros(model.nv)
        units = parameter.unit.split(", ")  # of a wrench: those of moment and force
        unit = units[2 * k // parameter.size] if len(units) == 2 else parameter.unit
        found.append(Change(label, unit, p, none, none, none, nominal or 1.0))
    return found


def _unknown(owner: str, what: str, model: Model, name: str) -> Exception:
    from cardan.errors import CardanError
    from cardan.model.parameter import find_parameter

    try:
        find_parameter(model, name.partition("[")[0])
    except CardanError:
        known = [*model.parameters.names, *model.coordinate_names]
        known += [f"{joint}.{sort}" for joint in model.coordinate_names for sort in SORTS]
        return UnknownNameError(
            f"{owner}: {what}: {name!r} is neither a free parameter nor a joint; a joint's drive is asked for by its "
            f"name, its rate by JOINT.rate{nearest(name, known)}"
        )
    return InputError(
        f"{owner}: {what}: {name!r} is a constant of model {model.name!r}; free it first: "
        f"model.free({name.partition('[')[0]!r})"
    )


def read_task(
    owner: str, model: Model, q: Any, tau: Any, rates: Any, hold: Any, solve_for: Any, wrenches: Any, t: Any,
    formulation: str | Formulation,
) -> tuple[Task, np.ndarray, tuple[int, ...]]:  # fmt: skip
    """The task, configurations (n, nq) to begin with, and the batch shape whose product is n."""
    if not isinstance(model, Model):
        raise InputError(
            f"{owner}: the first argument is a model, got {shown(model)}; a Mechanism is built with build()"
        )
    model.require_no_laws(
        owner,
        "with them equilibria are a set, not points; cd.simulate finds where it comes to rest, and stops with a "
        "stiffness and friction without stick=True have equilibria",
    )
    found = formulation_of(model, formulation)
    start = start_of(owner, model, q)
    drives, _ = along_rates(owner, "tau", model, tau)
    given, moving = along_rates(owner, "rates", model, rates)
    if rates is not None and not isinstance(rates, Mapping):
        raise InputError(f"{owner}: rates must name the joints that turn or slide, such as rates={{'spin': 10.0}}, got "
                         f"{shown(rates)}")  # fmt: skip
    held = {k for name in names_of(owner, "hold", hold) for k in coordinates_of(owner, "hold", model, name)}
    _require_whole_quaternions(owner, model, held)
    changes = [
        c for name in names_of(owner, "solve_for", solve_for) for c in change_of(owner, "solve_for", model, name)
    ]
    if read := answers_read(model):
        raise InputError(
            f"{owner}: the rate of a variable of model {model.name!r} reads {read[0].told}, which is known of motions "
            "only; leave it out of the mechanism, or find where it comes to rest with cd.simulate"
        )
    variables = [x.name for x in model.variables if x.is_state]
    states = [c for name in variables for c in _parameter_changes(owner, "solve_for", model, name, None)]
    changes = [*states, *(c for c in changes if c.name not in [state.name for state in states])]
    drives_asked = {int(np.flatnonzero(c.tau)[0]) for c in changes if c.tau.any()}
    rates_asked = {int(np.flatnonzero(c.v)[0]) for c in changes if c.v.any()}
    if any(c.q.any() for c in changes):
        raise InputError(
            f"{owner}: solve_for: coordinates are unknown unless they are held; leave the joint out of hold instead"
        )
    usual = np.abs(given).max(axis=tuple(range(given.ndim - 1)), initial=1.0)
    others = tuple(replace(c, size=float(usual[c.v > 0][0])) if c.v.any() else c for c in changes if not c.tau.any())
    driven = drives_asked | (set(moving) - rates_asked) | (held if solve_for is None else set())
    held |= set(moving) | rates_asked
    loads = np.zeros((model.nb, 6)) if wrenches is None else batch(owner, "wrenches", wrenches, model.nb, 6)
    values = model.parameters.nominal if model.values is None else model.values
    shapes = {"q": start.shape[:-1], "tau": drives.shape[:-1], "rates": given.shape[:-1],
              "wrenches": loads.shape[:-2], "values of parameters": model.batch}  # fmt: skip
    shape = _broadcast(owner, shapes)

    def flat(x: np.ndarray, own: int) -> np.ndarray:
        core = x.shape[x.ndim - own :]
        return np.array(np.broadcast_to(x, shape + core)).reshape(int(np.prod(shape)), *core)

    motions = any(x.depends_on_time for x in model.couplings) or any(x.depends_on_time for x in model.constraints)
    drives = flat(drives, 1)
    drives[:, sorted(driven)] = 0.0
    task = Task(
        owner, model.unbound, found, number(owner, "t", t, "of seconds"), tuple(sorted(held)), tuple(sorted(driven)),
        others, bool(moving or rates_asked or motions), drives, flat(given, 1), flat(loads, 2), flat(values, 1),
        tuple(int(np.flatnonzero(c.p)[0]) for c in states), np.ones((int(np.prod(shape)), len(states))),
    )  # fmt: skip
    return task, flat(start, 1), shape


def require_no_samples(task: Task, q: np.ndarray, x: np.ndarray) -> None:
    """Refuse sampled variables that act and are no unknowns: at rest they are not what they happen to be."""
    model, asked = task.model, {c.name for c in task.changes}
    left = [
        (x, change)
        for x in model.variables if x.every
        for change in _parameter_changes(task.owner, "solve_for", model, x.name, None) if change.name not in asked
    ]  # fmt: skip
    if not left or not len(q):
        return
    wide = replace(task, changes=(*task.changes, *(change for _, change in left)))
    point = point_at(wide, q, np.concatenate([x, np.zeros((len(x), len(left)))], axis=1))
    acts = np.nan_to_num(point.A[:, :, -len(left) :]).any(axis=(0, 1))
    for (variable, _), acting in zip(left, acts, strict=True):
        if acting:
            raise InputError(
                f"{task.owner}: {variable.owner} is sampled every {variable.every:g} s, and between the samples it is "
                f"held; ask for the value that balances, solve_for=[{variable.name!r}], or make its controller "
                "continuous, without every="
            )


def _require_whole_quaternions(owner: str, model: Model, held: set[int]) -> None:
    for link in model.tree.links:
        if link.kind.nq != link.kind.nv:
            turning = {link.v.start + k for k, unit in enumerate(link.kind.v_units) if unit != "m/s"}
            if held & turning and not turning <= held:
                name = model.joints[link.joint].name
                raise InputError(
                    f"{owner}: hold names some of the turns of joint {name!r}, which turns about any axis; hold all of "
                    "them or none"
                )


def _broadcast(owner: str, shapes: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        told = ", ".join(f"{name} {shape}" for name, shape in shapes.items() if shape)
        raise InputError(f"{owner}: the batches do not fit together: {told}") from None
