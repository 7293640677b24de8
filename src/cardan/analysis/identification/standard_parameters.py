"""The numbers of a model in which its dynamics are linear.

Ten for each body with mass: `mass`, the first moments `mx, my, mz` (m c, kg m) and the inertia about the body's own
origin `Ixx, Iyy, Izz, Ixy, Ixz, Iyz` (kg m^2), both in the body's axes; then the numbers of force elements and joints
that are declared linear: stiffness, damping, friction, armature.

`free` makes them free numbers of a model. Their columns are derivatives by `mass`, `com` and `inertia` where the mass
is 1 and the centre of mass is the origin: `d(m c) = dc` and `dI_O = dI_C` there, so that these derivatives are those by
the ten parameters, and, since the dynamics are linear in them, their coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, ModelError, UnknownNameError, nearest
from cardan.lazy import cached_property
from cardan.model.body import Body
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.parameter import BODY_FIELDS, ENTRIES, free_fields
from cardan.model.values import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

OF_BODY = ("mass", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz")
UNITS = ("kg", *("kg m",) * 3, *("kg m^2",) * 6)
REFERENCE = np.array([1.0, 0, 0, 0, 1, 1, 1, 0, 0, 0])  # where derivatives by mass, com, inertia are the coefficients

_STANDARD: Slot[tuple[str, ...] | None, StandardParameters] = Slot("standard parameters, by names")


@dataclass(frozen=True, eq=False)
class StandardParameters:
    """The linear parameters of a model: their names, units, and the model in which they are free.

    `bodies` are the numbers of the bodies whose ten parameters come first, in order; `numbers` the names of the other
    elements' free numbers that follow.
    """

    model: Model
    bodies: tuple[int, ...]
    numbers: tuple[str, ...]

    @property
    def size(self) -> int:
        """How many numbers in all."""
        return 10 * len(self.bodies) + sum(self.model.parameters[name].size for name in self.numbers)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each: `link.mx`, `spring.stiffness`, numbered where an element has several."""
        found = [f"{self.model.bodies[b].name}.{what}" for b in self.bodies for what in OF_BODY]
        for name in self.numbers:
            size = self.model.parameters[name].size
            found += [name] if size == 1 else [f"{name}[{k}]" for k in range(size)]
        return tuple(found)

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Their SI units."""
        others = [self.model.parameters[name] for name in self.numbers]
        return (*UNITS * len(self.bodies), *(p.unit for p in others for _ in range(p.size)))

    @cached_property
    def lower(self) -> NDArray[Any]:
        """Least value (size,) of each: 0 of masses, stiffness, damping, friction, armature."""
        found = np.full(self.size, -np.inf)
        found[: 10 * len(self.bodies) : 10] = 0.0
        k = 10 * len(self.bodies)
        for p in (self.model.parameters[name] for name in self.numbers):
            found[k : k + p.size] = 0.0 if p.rule == "not negative" else -np.inf
            k += p.size
        return found

    @cached_property
    def columns(self) -> list[int]:
        """Where each is in the vector `p` of the free model."""
        where = self.model.parameters.slice_of
        slices = [where(f"{self.model.bodies[b].name}.{what}") for b in self.bodies for what in BODY_FIELDS]
        return [k for s in (*slices, *map(where, self.numbers)) for k in range(s.start, s.stop)]

    def of(self, model: Model) -> NDArray[Any]:
        """Their values (..., size) in a model with the same bodies and elements."""
        p = self._values(model)[..., self.columns]
        theta = np.array(p)
        for k in range(len(self.bodies)):
            theta[..., 10 * k : 10 * k + 10] = standard_of(p[..., 10 * k : 10 * k + 10])
        return theta

    def reference(self, model: Model) -> Model:
        """The free model where derivatives by its parameters are those by the standard ones."""
        p = np.array(self._values(model))
        p[..., self.columns[: 10 * len(self.bodies)]] = np.tile(REFERENCE, len(self.bodies))
        return self.model._bound(p)

    @cached_property
    def declared(self) -> list[int]:
        """Places among the parameters of numbers whose kind of element a user declared, and called linear."""
        kinds = {force.name: force.kind for force in self.model.forces}
        found: list[int] = []
        k = 10 * len(self.bodies)
        for name in self.numbers:
            size, kind = self.model.parameters[name].size, kinds.get(name.rpartition(".")[0])
            found += range(k, k + size) if kind is not None and not kind.is_own else ()
            k += size
        return found

    def doubled(self, at: Model) -> Model:
        """A model as from `reference`, with these numbers twice as large, and one more."""
        assert at.values is not None
        p, own = np.array(at.values), [self.columns[k] for k in self.declared]
        p[..., own] = 2 * p[..., own] + 1
        return self.model._bound(p)

    def standard_at_reference(self, model: Model) -> NDArray[Any]:
        """The standard parameters (..., size) of that model."""
        p = np.array(self._values(model)[..., self.columns])
        p[..., : 10 * len(self.bodies)] = np.tile(REFERENCE, len(self.bodies))
        return p

    def placed(self, model: Model, theta: NDArray[Any]) -> Model:
        """The model with these standard parameters (..., size), as values of its free numbers."""
        p = np.array(np.broadcast_to(self._values(model), (*theta.shape[:-1], self.model.parameters.size)))
        free = np.array(theta)
        for k in range(len(self.bodies)):
            free[..., 10 * k : 10 * k + 10] = central_of(theta[..., 10 * k : 10 * k + 10])
        p[..., self.columns] = free
        return self.model._bound(p)

    def _values(self, model: Model) -> NDArray[Any]:
        """`p` (..., parameters.size) of the free model with the numbers of `model`."""
        own = self.model.parameters.nominal
        if model.values is None:
            return own
        p = np.array(np.broadcast_to(own, (*model.batch, own.size)))
        for parameter in model.parameters:
            p[..., self.model.parameters.slice_of(parameter.name)] = model.values[
                ..., model.parameters.slice_of(parameter.name)
            ]
        return p


def standard_of(p: NDArray[Any]) -> NDArray[Any]:
    """`m, m c, I_O` (..., 10) from `m, c, I_C` (..., 10)."""
    m, c, I_C = p[..., :1], p[..., 1:4], p[..., 4:]
    return np.concatenate([m, m * c, I_C + m * _steiner(c)], axis=-1)


def central_of(theta: NDArray[Any]) -> NDArray[Any]:
    """`m, c, I_C` (..., 10) from `m, m c, I_O` (..., 10)."""
    m = theta[..., :1]
    c = theta[..., 1:4] / m
    return np.concatenate([m, c, theta[..., 4:] - m * _steiner(c)], axis=-1)


def derivative_of_central(theta: NDArray[Any]) -> NDArray[Any]:
    """Derivatives (10, 10) of `m, c, I_C` by `m, m c, I_O` (10,): `c = h / m`, `I_C = I_O - (h . h 1 - h h^T) / m`."""
    m, h = theta[0], theta[1:4]
    D = np.eye(10)
    D[1:4, 0], D[1:4, 1:4] = -h / m**2, np.eye(3) / m
    D[4:, 0] = _steiner(h) / m**2
    for k in range(3):
        e = np.eye(3)[k]
        D[4:, 1 + k] = -(_steiner(h + e) - _steiner(h) - _steiner(e)) / m
    return D


def _steiner(c: NDArray[Any]) -> NDArray[Any]:
    """`c . c 1 - c c^T` as (..., 6) entries."""
    whole = (c * c).sum(-1)[..., None, None] * np.eye(3) - c[..., :, None] * c[..., None, :]
    return np.asarray(whole[..., ENTRIES[0], ENTRIES[1]])


def standard_parameters(owner: str, model: Model, parameters: Sequence[str] | None) -> StandardParameters:
    """The linear parameters of a model: those of all bodies with mass and all linear numbers that are not zero.

    `parameters` are names of bodies and elements (all linear numbers of each), or of numbers as in `cd.Model.free`.
    """
    if not isinstance(model, Model):
        raise InputError(f"{owner}: model must be a cd.Model, got {type(model).__name__}; use build() first")
    if isinstance(parameters, str):
        parameters = (parameters,)
    elif parameters is not None:
        if not isinstance(parameters, Iterable) or not all(isinstance(name, str) for name in parameters):
            raise InputError(f"{owner}: parameters must be names of bodies and elements, got {shown(parameters)}")
        parameters = tuple(parameters)
    if parameters == ():
        raise InputError(f"{owner}: parameters is empty; name bodies and elements, or leave it out for all of them")
    return _STANDARD.find(model.unbound, parameters, lambda: _find(owner, model.unbound, parameters))


def _find(owner: str, model: Model, names: tuple[str, ...] | None) -> StandardParameters:
    elements: list[Any] = [*model.joints, *model.forces]
    linear = {f"{x.name}.{what}": x for x in elements for what, declared in free_fields(x).items() if declared.linear}
    if names is None:
        bodies = [b for b, body in enumerate(model.bodies) if body.mass > 0]
        numbers = [name for name, x in linear.items() if np.any(_number(x, name.rpartition(".")[2]))]
    else:
        bodies, numbers = _named(owner, model, names, linear)
    if not bodies and not numbers:
        raise InputError(f"{owner}: model {model.name!r} has no body with mass and no linear element to identify")
    wanted = [f"{model.bodies[b].name}.{what}" for b in bodies for what in BODY_FIELDS] + numbers
    free = model.free(*(name for name in wanted if name not in model.parameters.names))
    return StandardParameters(free, tuple(bodies), tuple(numbers))


def _number(element: Any, what: str) -> Any:
    return element.armature if what == "armature" else element.numbers[what]


def _named(owner: str, model: Model, names: tuple[str, ...], linear: dict[str, Any]) -> tuple[list[int], list[str]]:
    bodies: list[int] = []
    numbers: list[str] = []
    for name in names:
        own = [number for number in linear if number.rpartition(".")[0] == name]
        if name in model.body_names:
            body: Body = model.body(name)
            if body.mass == 0:
                raise ModelError(
                    f"{owner}: body {name!r} has no mass, and the equations are written without it; give it a nominal "
                    "mass"
                )
            bodies.append(model.body_index(name))
        elif name in linear:
            numbers.append(name)
        elif own:
            numbers += own
        else:
            raise UnknownNameError(
                f"{owner}: {name!r} is neither a body nor an element with linear numbers"
                f"{nearest(name, (*model.body_names, *linear))}"
            )
    return sorted(set(bodies)), list(dict.fromkeys(numbers))
