"""Numbers of a model that the user has freed by name.

A name is `element.field`, or `gravity`. Bodies have `mass`, `com`, `inertia`; joints `at` and `child_at`, the positions
of their two frames, and `armature` where they have one; force and constraint elements the numbers that their kinds
declare. All the freed numbers, one after the other, are the vector `p`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.free_number import FreeNumber
from cardan.errors import InputError, ModelError, UnknownNameError, nearest
from cardan.model.body import Body, Joint
from cardan.model.constraint_kind import ConstraintElement
from cardan.model.field import ANY, FRACTION, INERTIA, NOT_NEGATIVE, POSITIVE, STIFFNESS, SWITCH, VECTOR, Field
from cardan.model.force import Force
from cardan.model.inertia import faults_of_inertia
from cardan.model.pose import LARGEST, Pose
from cardan.model.tree import grow_tree
from cardan.model.values import floats, shown
from cardan.model.variable import Variable

if TYPE_CHECKING:
    from cardan.model.model import Model

# Rows and columns of (Ixx, Iyy, Izz, Ixy, Ixz, Iyz).
ENTRIES = ((0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2))
SET, HELD, STATE = "set", "held", "state"  # roles of a parameter in a run
GRAVITY = Field("m/s^2", form=VECTOR, letter="g")
BODY_FIELDS = {
    "mass": Field("kg", rule=POSITIVE, letter="m"),
    "com": Field("m", form=VECTOR, letter="c"),
    "inertia": Field("kg m^2", rule=INERTIA, letter="I"),
}
JOINT_FIELDS = {"at": Field("m", form=VECTOR, letter="l"), "child_at": Field("m", form=VECTOR, letter="l")}
ARMATURE = {"armature": Field("kg m^2|kg", rule=NOT_NEGATIVE, letter="A", linear=True)}


def free_fields(owner: Body | Joint | Force | ConstraintElement) -> dict[str, Field]:
    """The numbers of an element that can be freed, by name."""
    if isinstance(owner, ConstraintElement):
        return owner.kind.free_fields
    if isinstance(owner, Force):
        return owner.free_fields
    if isinstance(owner, Body):
        return BODY_FIELDS
    return JOINT_FIELDS if owner.armature is None else JOINT_FIELDS | ARMATURE


@dataclass(frozen=True, eq=False)
class Parameter:
    """One freed quantity: `name`, `unit`, `shape` of one value, and its `nominal` value."""

    name: str
    unit: str
    shape: tuple[int, ...]
    nominal: np.ndarray
    rule: str = field(repr=False)
    place: tuple[str, int, str] = field(repr=False)
    """What it belongs to ("body", "joint", "force", "constraint" or "model"), the number of that, and the field."""
    letter: str = field(default="p", repr=False)
    """Its letter in printed equations."""
    role: str = field(default=SET, repr=False)
    """Whether it is "set" before a run, "held", changed at events and breaks, or a "state" with a rate."""

    @property
    def size(self) -> int:
        """How many numbers one value has."""
        return int(self.nominal.size)

    def read(self, value: Any) -> np.ndarray:
        """Values (..., size) from what the user gives, (..., *shape), checked against the rule."""
        try:
            array = floats(value)
        except TypeError:
            raise InputError(f"parameter {self.name!r}: its values must be numbers, got {shown(value)}") from None
        if self.rule == INERTIA and array.shape[-2:] == (3, 3):
            array = self._from_matrices(array)
        n = len(self.shape)
        if array.shape[max(array.ndim - n, 0) :] != self.shape:
            wanted = ", ".join(("...", *map(str, self.shape)))
            raise InputError(f"parameter {self.name!r}: values must have shape ({wanted}), got {array.shape}")
        array = array.reshape(*array.shape[: array.ndim - n], self.size)
        self._check(array)
        return array

    def _from_matrices(self, array: np.ndarray) -> np.ndarray:
        skew = np.abs(array - np.swapaxes(array, -1, -2)).max(axis=(-1, -2))
        self._refuse(skew > 1e-6 * np.abs(array).max(axis=(-1, -2)), array, "must be symmetric")
        return array[..., ENTRIES[0], ENTRIES[1]]

    def _check(self, values: np.ndarray) -> None:
        """Reject values that are not finite or break the rule; name the first of them."""
        self._refuse(~np.isfinite(values).all(-1), values, "must be finite")
        self._refuse((np.abs(values) > LARGEST).any(-1), values, "is too large to compute with; check units")
        if self.rule == POSITIVE:
            self._refuse((values <= 0).any(-1), values, "must be above 0")
        elif self.rule == NOT_NEGATIVE:
            self._refuse((values < 0).any(-1), values, "must not be negative; it would feed energy in")
        elif self.rule == FRACTION:
            self._refuse(((values < 0) | (values > 1)).any(-1), values, "must be from 0 to 1")
        elif self.rule == SWITCH:
            self._refuse((~np.isin(values, (0.0, 1.0))).any(-1), values, "must be 0 or 1")
        elif self.rule == STIFFNESS:
            K = values.reshape(*values.shape[:-1], 6, 6)
            lowest = np.linalg.eigvalsh((K + np.swapaxes(K, -1, -2)) / 2)[..., 0]
            bad = lowest < -1e-9 * np.abs(values).max(-1)
            self._refuse(bad, values, "must not be negative along any motion; it would feed energy in")
        elif self.rule == INERTIA:
            for bad, why in faults_of_inertia(_matrices(values), _matrices(self.nominal)):
                self._refuse(bad, values, why)

    def _refuse(self, bad: Any, values: np.ndarray, why: str) -> None:
        if np.any(bad):
            index = tuple(int(k) for k in np.argwhere(bad)[0])
            first = values[index].reshape(-1)
            shown = f"{first[0]:g}" if first.size == 1 else np.array2string(first, separator=", ", precision=6)
            where = f" at index {index if len(index) != 1 else index[0]}" if index else ""
            unit = "" if self.unit in ("", "1") else f" {self.unit}"
            raise InputError(f"parameter {self.name!r} {why}, got {shown}{unit}{where}")


@dataclass(frozen=True, eq=False)
class Parameters:
    """The freed numbers of a model, in the order of `p`: iterate, or look one up by name."""

    items: tuple[Parameter, ...] = ()

    def __len__(self) -> int:
        """How many names."""
        return len(self.items)

    def __iter__(self) -> Iterator[Parameter]:
        """One after the other."""
        return iter(self.items)

    def __getitem__(self, name: str) -> Parameter:
        """Look one up."""
        if name not in self.names:
            raise UnknownNameError(f"parameter {name!r} is not free{nearest(name, self.names)}")
        return self.items[self.names.index(name)]

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(p.name for p in self.items)

    @property
    def size(self) -> int:
        """How many numbers in all: the length of `p`."""
        return sum(p.size for p in self.items)

    @property
    def nominal(self) -> np.ndarray:
        """Nominal `p` (size,)."""
        return np.concatenate([p.nominal.ravel() for p in self.items]) if self.items else np.zeros(0)

    @property
    def states(self) -> tuple[int, ...]:
        """Numbers of the entries of `p` that are states, integrated with the motion."""
        roles = [p.role for p in self.items for _ in range(p.size)]
        return tuple(k for k, role in enumerate(roles) if role == STATE)

    def slice_of(self, name: str) -> slice:
        """Where a parameter is in `p`."""
        at = self.names.index(self[name].name)
        first = sum(p.size for p in self.items[:at])
        return slice(first, first + self.items[at].size)

    def vector(self, values: Mapping[str, Any], start: np.ndarray) -> np.ndarray:
        """`p` (..., size) from values by name, each (..., *shape); the others are those of `start` (..., size)."""
        if not isinstance(values, Mapping):
            raise InputError(f"parameters: values must be a dict of names and numbers, got {shown(values)}")
        given = {name: self[name].read(value) for name, value in values.items()}
        shapes = {"the values before": start.shape[:-1], **{name: a.shape[:-1] for name, a in given.items()}}
        try:
            batch = np.broadcast_shapes(*shapes.values())
        except ValueError:
            told = ", ".join(f"{shape} of {name}" for name, shape in shapes.items() if shape)
            raise InputError(f"parameters: batch shapes {told} do not broadcast") from None
        p = np.array(np.broadcast_to(start, (*batch, self.size)))
        for name, array in given.items():
            p[..., self.slice_of(name)] = array
        p.flags.writeable = False
        return p

    def __repr__(self) -> str:
        """A row for each."""
        rows = [(p.name, f"{p.shape}" if p.shape else "", p.unit, _shown(p.nominal)) for p in self.items]
        widths = [max((len(row[k]) for row in rows), default=0) for k in range(3)]
        lines = ["  ".join((*(text.ljust(w) for text, w in zip(row, widths, strict=False)), row[3])) for row in rows]
        return "\n".join([f"Parameters({len(self)} names, {self.size} numbers)", *(f"  {line}" for line in lines)])


NONE = Parameters()


def _shown(nominal: np.ndarray) -> str:
    return np.array2string(nominal, separator=", ", precision=6).replace("\n", "")


def _matrices(entries: np.ndarray) -> np.ndarray:
    """Symmetric matrices (..., 3, 3) from (..., 6) entries, floats or expressions."""
    result = np.empty((*entries.shape[:-1], 3, 3), dtype=entries.dtype)
    result[..., ENTRIES[0], ENTRIES[1]] = result[..., ENTRIES[1], ENTRIES[0]] = entries
    return result


# Finding a number by name.


def find_parameter(model: Model, name: str) -> Parameter:
    """The number that a name means, with its nominal value."""
    if name == "gravity":
        return Parameter(name, GRAVITY.unit, (3,), model.gravity, ANY, ("model", 0, "gravity"), GRAVITY.letter)
    if not isinstance(name, str):
        raise InputError(f"model {model.name!r}: free takes names one by one, as text, got {shown(name)}")
    element, _, what = name.rpartition(".")
    groups: dict[str, Sequence[Any]] = {
        "body": model.bodies, "joint": model.joints, "force": model.forces, "constraint": model.constraint_elements,
    }  # fmt: skip
    owners = [(sort, k, x) for sort, group in groups.items() for k, x in enumerate(group) if x.name == element]
    if not owners:
        known = [
            "gravity",
            *(f"{x.name}.{f}" for group in groups.values() for x in group for f in free_fields(x)),
        ]
        raise UnknownNameError(
            f"model {model.name!r}: parameter {name!r} names no body, joint, force or constraint element; write "
            f"'element.field' or 'gravity'{nearest(name, known)}"
        )
    found = [(sort, k, x) for sort, k, x in owners if what in free_fields(x)]
    if not found:
        known = [f"{element}.{field}" for _, _, x in owners for field in free_fields(x)]
        told = f"; free are {', '.join(map(repr, known))}" if known else ", nothing of it can be freed"
        raise UnknownNameError(f"model {model.name!r}: parameter {name!r} is not a number of {element!r}{told}")
    if len(found) > 1:
        raise ModelError(
            f"model {model.name!r}: parameter {name!r} has two meanings, of a {found[0][0]} and of a {found[1][0]} "
            f"that are both called {element!r}; rename one"
        )
    return _parameter(model, name, *found[0], what)


def _parameter(model: Model, name: str, sort: str, index: int, owner: Any, what: str) -> Parameter:
    declared = free_fields(owner)[what]
    unit = declared.unit
    if sort == "body":
        if owner.mass == 0:
            raise ModelError(
                f"model {model.name!r}: parameter {name!r} cannot be freed: body {owner.name!r} has no mass, and the "
                "equations are written without it; give it a nominal mass"
            )
        nominal = owner.inertia[ENTRIES] if what == "inertia" else np.array(getattr(owner, what), dtype=float)
    elif sort == "joint" and what in JOINT_FIELDS:
        nominal = getattr(owner, what).position
    else:
        nominal = owner.armature if sort == "joint" else owner.numbers[what]
        nominal = nominal.reshape(()) if nominal.size == 1 else nominal
        if not np.isfinite(nominal).all():
            raise ModelError(
                f"model {model.name!r}: parameter {name!r} cannot be freed: one of its numbers is no limit, and the "
                "equations are written without it; give a stop to each coordinate"
            )
        if "|" in unit:
            along = owner.kind if sort == "joint" else owner.part_of(model.joints[owner.on[0]].kind)
            turning, shifting = unit.split("|")
            unit = " or ".join(shifting if each == "m/s" else turning for each in dict.fromkeys(along.v_units))
    nominal = np.array(nominal)
    nominal.flags.writeable = False
    return Parameter(name, unit, nominal.shape, nominal, declared.rule, (sort, index, what), declared.letter or what)


def with_motion_inputs(model: Model, couplings: Sequence[int]) -> Model:
    """The model at nominal values, with three more free numbers, nominally 0, for each of some motions and couplings.

    They are added to the value, rate and acceleration that it prescribes. It is for derivatives: a run has no use for
    a rate that is not that of the value.
    """
    more = [
        Parameter(f"{model.couplings[k].name}.added", "", (3,), np.zeros(3), ANY, ("coupling", k, "added"))
        for k in couplings
    ]
    return replace(model.unbound, parameters=Parameters((*model.parameters, *more)))


def variable_parameters(variables: Sequence[Variable]) -> Parameters:
    """The parameters that variables of a mechanism are."""
    return Parameters(
        tuple(
            Parameter(
                x.name, x.unit, () if x.value.size == 1 else x.value.shape,
                x.value.reshape(()) if x.value.size == 1 else x.value, ANY, ("variable", k, "value"),
                role=HELD if x.rate is None else STATE,
            )
            for k, x in enumerate(variables)
        )
    )  # fmt: skip


# Replacing the numbers.


def with_symbols(model: Model) -> tuple[Model, Any]:
    """The model with its free parameters as symbols, and the column `p` (parameters.size, 1) of these symbols."""
    import casadi as ca

    p = ca.SX.sym("p", model.parameters.size)
    numbers = [FreeNumber(p[k], float(x)) for k, x in enumerate(model.parameters.nominal)]
    return with_numbers(model, np.array(numbers, dtype=object)), p


def with_numbers(model: Model, p: np.ndarray) -> Model:
    """The model with its free numbers replaced by `p` (size,), floats or `FreeNumber`s, and a tree built from them."""
    bodies, joints, forces = list(model.bodies), list(model.joints), list(model.forces)
    couplings, gravity, held = list(model.couplings), model.gravity, list(model.constraint_elements)
    variables, by_name = list(model.variables), {}
    for parameter in model.parameters:
        sort, k, what = parameter.place
        value = by_name[parameter.name] = p[model.parameters.slice_of(parameter.name)]
        if sort == "model":
            gravity = value
        elif sort == "body":
            bodies[k] = replace(bodies[k], **{what: _body_field(what, value)})
        elif sort == "joint" and what in ARMATURE:
            joints[k] = replace(joints[k], armature=value)
        elif sort == "joint":
            pose = getattr(joints[k], what)
            changed: dict[str, Any] = {what: Pose(value, pose.rotation)}
            joints[k] = replace(joints[k], **changed)
        elif sort == "variable":
            variables[k] = replace(variables[k], value=value)
        elif sort == "coupling":
            couplings[k] = replace(couplings[k], added=value)
        elif sort == "constraint":
            own = held[k].numbers
            held[k] = replace(held[k], numbers={**own, what: value.reshape(own[what].shape)})
        else:
            own = forces[k].numbers
            forces[k] = replace(forces[k], numbers={**own, what: value.reshape(own[what].shape)})
    now = {id(old): new for old, new in zip(model.constraint_elements, held, strict=True)}
    constraints = tuple(c if c.element is None else c.of(now[id(c.element)]) for c in model.constraints)
    cuts = frozenset(model.cuts)
    kept = [j for j in range(len(joints)) if j not in cuts]
    tree = grow_tree(bodies, joints, kept, model.snapping, model.merge)
    return replace(
        model, gravity=gravity, bodies=tuple(bodies), joints=tuple(joints), forces=tuple(forces), tree=tree,
        couplings=tuple(couplings), constraints=constraints, parameters=NONE, values=None, variables=tuple(variables),
        free_numbers=by_name,
    )  # fmt: skip


def digest_of_parts(model: Model) -> bytes:
    """Digest of bodies and joints as declared, and of the places of free numbers."""
    h = hashlib.sha256(f"{model.merge} {model.snapping} {[p.place for p in model.parameters]}".encode())
    for body in model.bodies:
        h.update(np.array([body.mass, *body.com, *body.inertia.ravel()]).tobytes())
    for joint in model.joints:
        h.update(f"{joint.kind.identity} {joint.parent} {joint.child}".encode())
        h.update(joint.at.matrix.tobytes() + joint.child_at.matrix.tobytes())
        h.update(b"" if joint.armature is None else joint.armature.tobytes())
    return h.digest()


def _body_field(what: str, value: np.ndarray) -> Any:
    if what == "mass":
        return value[0]
    return _matrices(value) if what == "inertia" else value
