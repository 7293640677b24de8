"""Rows with laws: stops, contacts and friction that sticks.

A lawful element is a force element (`model.force`) that has rows, each with a law (`model.row.Law`). A row is written
like any other, by a `Coupling` of joint coordinates or by a `Constraint` between bodies: residual `phi`, rate
`u = J v - beta`. Its force is `x`, on the side of the forces:

    M vdot + J^T lam = f + J_c^T x            so x = -lam, if the row were one of the others

    UNILATERAL   phi >= 0, the gap      x >= 0: it pushes the gap open      phi > 0  =>  x = 0
    FRICTION     |x| <= bound           u != 0  =>  x = -bound u / |u|; two rows of a contact together, as a disc
    SWITCHED     closed: u = 0          open: x = 0      a lock or latch holds what it finds (`model.lock`)

The bound of friction is `coulomb + mu N`. `N` is the normal force: the force of the gap of the same contact, or of
friction in a joint with a `coefficient`, the reaction of that joint, or the force of another element, times the
`radius`, if one is given. At rest the
bound is `static` (and `static_coefficient`). Once it slides, it falls over the speed `stribeck`, or at once without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.algebra.free_number import expression, nominal_of
from cardan.algebra.matrix import Matrix, Scalar, dot, where, zeros
from cardan.errors import ModelError, nearest
from cardan.model.body import Joint
from cardan.model.constraint import Constraint
from cardan.model.field import EACH, FRACTION, GAP, LIMIT, NOT_NEGATIVE, POSITIVE, TEXT, Field, frozen
from cardan.model.force import FORCES, BodyPose, Coupling, Force, ForceKind
from cardan.model.joint import Kind
from cardan.model.row import Law, RowLabel

AT_REST = 1e-10  # m/s or rad/s: friction without a Stribeck speed is static up to this speed


@dataclass(frozen=True, eq=False)
class LawfulElement:
    """The rows of a force element that have laws, with a law and a name for each.

    `discs` are its rows of friction, those together that share a bound: one row, or two of a contact; `turning` whether
    each is along a turning coordinate of a joint. `normal` is the row of this element, `joint` the joint of the model,
    `pressed` another element, whose force bounds the friction; None, or empty, if it has no such part.
    """

    force: Force
    rows: tuple[Coupling | Constraint, ...]
    laws: tuple[Law, ...]
    names: tuple[str, ...]
    normal: int | None = None
    joint: int | None = None
    discs: tuple[tuple[int, ...], ...] = ()
    turning: tuple[bool, ...] = ()
    pressed: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.force.name

    @property
    def what(self) -> str:
        """Name of its kind."""
        return self.force.kind.name

    @property
    def owner(self) -> str:
        """How error messages call it."""
        return self.force.owner

    @property
    def numbers(self) -> dict[str, np.ndarray]:
        """Its numbers by name; `number` gives one of them for the equations."""
        return self.force.numbers

    def number(self, name: str) -> Scalar:
        """A number of the element, 0 where it has none."""
        return self.force.number(name)

    def labels(self, joints: Sequence[Joint]) -> list[RowLabel]:
        """A label for each row."""
        found = []
        for row, law, name in zip(self.rows, self.laws, self.names, strict=True):
            (label,) = row.labels(joints)
            level = "rate" if law in (Law.FRICTION, Law.SWITCHED) else label.level
            found.append(replace(label, owner=self.owner, name=f"{self.name}: {name}", level=level, law=law))
        return found

    def constant_bound(self, speed: Scalar, disc: int = 0) -> Scalar:
        """The part of the bound of a disc that does not depend on a normal force, N or N m."""
        return self._falling(speed, "coulomb", "static", disc)

    def coefficient(self, speed: Scalar, disc: int = 0) -> Scalar:
        """Bound of a disc for a unit of normal force; in m for a turning coordinate with a radius."""
        radius = self.number("radius") if "radius" in self.numbers and any(self.turning[disc : disc + 1]) else 1.0
        return radius * self._falling(speed, "coefficient", "static_coefficient", disc)

    def _falling(self, speed: Scalar, moving: str, resting: str, disc: int) -> Scalar:
        """A level at rest that falls to another once it moves."""
        level = self._of(moving, disc)
        if resting not in self.numbers:
            return level
        more = self._of(resting, disc) - level
        more = where(more > 0, more, 0.0)
        if "stribeck" not in self.numbers:
            return level + where(speed <= AT_REST, more, 0.0)
        import casadi as ca

        return level + more * ca.exp(-((speed / self._of("stribeck", disc)) ** 2))

    def _of(self, name: str, disc: int) -> Scalar:
        """A number of one of the discs; one that is not given for each is for all. The same for each row of a disc."""
        if name not in self.numbers or self.numbers[name].size == 1:
            return self.force.number(name)
        own = self.discs[disc]
        return sum((self.force.number(name, k) for k in own[1:]), self.force.number(name, own[0])) / len(own)


# Stops of joints.


def _ends(f: Force) -> list[tuple[str, int, float, Scalar]]:
    """Each limit of a stop: its name, which of the coordinates it limits, the direction of its force, its value."""
    return [
        (name, k, sign, x)
        for name, sign in (("lower", 1.0), ("upper", -1.0))
        for k, x in enumerate(f.numbers[name].ravel() if name in f.numbers else ())
        if np.isfinite(nominal_of(x))
    ]


def pushing(f: Force, depth: Any, rate: Any, k: int = 0) -> Any:
    """Force (N or N m) of a compliant stop: of its spring and damper, never pulling."""
    push = f.number("stiffness", k) * depth + f.number("damping", k) * rate
    return where(depth > 0, where(push > 0, push, 0.0), 0.0)


def _stop(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    force = zeros(v.shape[0], None, v)
    if "stiffness" in f.numbers:
        for _, k, sign, limit in _ends(f):
            force[k] = force[k] + sign * pushing(f, sign * (expression(limit) - q[k]), -sign * v[k], k)
    return force


def _stop_energy(f: Force, q: Matrix) -> Scalar:
    energy = zeros(1, None, q)
    if "stiffness" in f.numbers:
        for _, k, sign, limit in _ends(f):
            depth = sign * (expression(limit) - q[k])
            deep = where(depth > 0, depth, 0.0)
            energy = energy + f.number("stiffness", k) / 2 * deep * deep
    return energy


def coordinates(f: Force, joints: Sequence[Joint]) -> tuple[int, ...]:
    """Numbers of the coordinates of its joint that an element acts along; a quaternion's are none."""
    joint = joints[f.on[0]]
    if joint.kind.nq != joint.kind.nv:
        raise ModelError(
            f"{f.owner}: joint {joint.name!r} ({joint.kind.title}) has a quaternion, whose numbers have no limits; "
            "limit its angle with angle=, swing= or twist="
        )
    return f.along or tuple(range(joint.kind.nv))


def along_rate(f: Force, what: str, k: int, sign: float = 1.0, offset: Any = 0.0) -> Coupling:
    """A row along coordinate, or rate, k of the element's joint."""
    return Coupling(f.name, what, f.on, frozen([sign]), offset, places=(k,))


def row_name(name: str, k: int, every: Sequence[int]) -> str:
    """Name of a row along coordinate k: numbered, if there are rows along several."""
    return name if len(every) == 1 else f"{name}[{k}]"


def _lawful_stop(f: Force, joints: Sequence[Joint]) -> LawfulElement | None:
    places, ends = coordinates(f, joints), _ends(f)
    if not ends:
        raise ModelError(f"{f.owner}: it has no limit; give lower or upper, or both")
    limits = {(name, k): nominal_of(x) for name, k, _, x in ends}
    for k, place in enumerate(places):
        low, high = limits.get(("lower", k), -np.inf), limits.get(("upper", k), np.inf)
        if low > high:
            low_end, high_end = (row_name(name, place, places) for name in ("lower", "upper"))
            raise ModelError(f"{f.owner}: {low_end} {low:g} is above {high_end} {high:g}; exchange them")
    if is_compliant(f):
        return None
    rows = tuple(along_rate(f, "stop", places[k], sign, sign * x) for _, k, sign, x in ends)
    names = tuple(row_name(name, places[k], places) for name, k, _, _ in ends)
    return LawfulElement(f, rows, (Law.UNILATERAL,) * len(rows), names)


def is_compliant(f: Force) -> bool:
    """Whether a stop has a stiffness; refuse one that is hard and compliant at once."""
    if "stiffness" in f.numbers:
        if "restitution" in f.numbers and nominal_of(f.numbers["restitution"].ravel()[0]):
            raise ModelError(f"{f.owner}: it is compliant and has a restitution; give its damping instead")
        return True
    if "damping" in f.numbers:
        raise ModelError(f"{f.owner}: it has damping and no stiffness; give a stiffness, or a restitution instead")
    return False


# Friction that sticks.


def _viscous(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    return -(f["viscous"] * v)


def rates_together(owner: str, kind: Kind) -> tuple[tuple[int, ...], ...]:
    """Rates of a joint that friction acts along as one vector; each by itself, but for those beside a quaternion.

    These are the three components of an angular velocity, and of a velocity.
    """
    if kind.nq == kind.nv:
        return tuple((k,) for k in range(kind.nv))
    found = tuple(tuple(range(k, k + 3)) for k in range(0, kind.nv, 3))
    if any(len(kind.v_units[k : k + 3]) < 3 or len({*kind.v_units[k : k + 3]}) > 1 for k, *_ in found):
        raise ModelError(
            f"{owner}: a joint of kind {kind.title!r} has a quaternion and rates that are no vectors, three by three; "
            "give its friction by a drive"
        )
    return found


def _lawful_friction(f: Force, joints: Sequence[Joint]) -> LawfulElement:
    joint = joints[f.on[0]]
    together = rates_together(f.owner, f.part_of(joint.kind))
    places = f.along or tuple(range(joint.kind.nv))
    by, pressed = _pressing(f, joints)
    turns = [joint.kind.v_units[places[own[0]]] == "rad/s" for own in together]
    if by is not None and "radius" not in f.numbers and any(turns):
        raise ModelError(
            f"{f.owner}: it depends on the reaction of a turning joint, {joint.name!r}; give the radius (m) of its pin"
        )
    if "radius" in f.numbers and not any(turns):
        raise ModelError(f"{f.owner}: radius is of the pin of a turning joint, and {joint.name!r} slides")
    levels = _levels(f)
    for own in together:
        if not any(np.any(level.ravel()[list(own) if level.size > 1 else 0]) for level in levels):
            raise ModelError(
                f"{f.owner}: nothing of {f'{joint.name}[{places[own[0]]}]'!r} sticks; name the coordinate that does"
            )
        for name in ("coulomb", "static", "stribeck"):
            if name in f.numbers and len({nominal_of(x) for x in f.numbers[name].ravel()[list(own)]}) > 1:
                raise ModelError(
                    f"{f.owner}: {name} must be one number for rates {own[0]} to {own[-1]} of joint {joint.name!r} "
                    f"({joint.kind.title}), along which friction is one vector, got {f.numbers[name].tolist()}"
                )
    rows = tuple(along_rate(f, "friction", k) for k in places)
    names = tuple(row_name("sliding", k, places) for k in places)
    return LawfulElement(f, rows, (Law.FRICTION,) * len(rows), names, None, by, together, tuple(turns), pressed)


def _levels(f: Force) -> list[np.ndarray]:
    """The levels of friction that an element has; refuse those that contradict one another."""
    for moving, resting in (("coulomb", "static"), ("coefficient", "static_coefficient")):
        _not_below(f, moving, resting)
    _falls_from(f, "static_coefficient", "static")
    levels = [f.numbers[name] for name in ("coulomb", "static", "coefficient") if name in f.numbers]
    if not any(np.any(level) for level in levels):
        raise ModelError(f"{f.owner}: nothing of it sticks; give coulomb or coefficient, or leave out stick=True")
    return levels


def _pressing(f: Force, joints: Sequence[Joint]) -> tuple[int | None, str]:
    """The joint whose reaction presses friction, by default its own, or the name of the element whose force does."""
    normal, depends = f.texts.get("normal", ""), "coefficient" in f.numbers or "static_coefficient" in f.numbers
    if not depends:
        if normal:
            raise ModelError(f"{f.owner}: {normal!r} presses it, and it has no coefficient of friction; give one")
        return None, ""
    own = f.on[0] if f.kind.on == "joint" else None
    j = next((j for j, joint in enumerate(joints) if joint.name == normal), None) if normal else own
    if j is not None and not joints[j].kind.freedoms_removed:
        held = joints[j]
        raise ModelError(f"{f.owner}: joint {held.name!r} ({held.kind.title}) holds nothing and has no reaction")
    if j is None and not normal:
        raise ModelError(f"{f.owner}: it has a coefficient; name the joint or element that presses it, normal=...")
    return j, "" if j is not None else normal


def _no_law(f: Force, *at: Any) -> Any:
    """What acts beside the row of an element on several joints: nothing."""
    raise NotImplementedError("an element on several joints has no law of its own")


def _lawful_sliding(f: Force, joints: Sequence[Joint]) -> LawfulElement:
    _levels(f)
    by, pressed = _pressing(f, joints)
    unit = f.texts.get("unit", "")
    if unit not in ("", "m", "rad"):
        raise ModelError(f"{f.owner}: unit must be 'm' or 'rad', got {unit!r}")
    row = Coupling(f.name, "friction", f.on, frozen(f.numbers["along"]), unit=unit, places=f.along)
    return LawfulElement(f, (row,), (Law.FRICTION,), ("sliding",), None, by, ((0,),), (False,), pressed)


def require_pressing(
    laws: Sequence[LawfulElement], couplings: Sequence[Coupling], constraints: Sequence[Constraint]
) -> None:
    """Refuse friction that is pressed by an element that there is not."""
    known = {x.name for x in couplings} | {x.name for x in constraints}
    known |= {law.name for law in laws if {*law.laws} != {Law.FRICTION}}
    for law in laws:
        if law.pressed and (law.pressed not in known or law.pressed == law.name):
            raise ModelError(
                f"{law.owner}: {law.pressed!r}, which presses it, is no joint, coupling, motion, constraint, stop, "
                f"contact, lock or latch{nearest(law.pressed, known - {law.name})}"
            )


def _not_below(f: Force, moving: str, resting: str) -> None:
    """Refuse a level at rest below that of sliding."""
    for k, least in enumerate(f.numbers[resting].ravel() if resting in f.numbers else ()):
        low, high = nominal_of(least), nominal_of(f.numbers[moving].ravel()[k]) if moving in f.numbers else 0.0
        if low < high:
            raise ModelError(f"{f.owner}: {resting} {low:g} is below {moving} {high:g}; friction at rest is the larger")


def _falls_from(f: Force, *resting: str) -> None:
    """Refuse a Stribeck speed without a level at rest from which friction falls."""
    if "stribeck" in f.numbers and not any(name in f.numbers for name in resting):
        raise ModelError(f"{f.owner}: it has a speed stribeck and no {resting[-1]} to fall from; give it")


# Contacts.


def _contact_row(f: Force, k: int) -> Constraint:
    """Row k of a contact whose function is traced: the gap, then the sliding velocities."""

    def row(t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> Any:
        return f.function(t, *(part for pose in poses for part in pose), *twists)[k]

    return Constraint(f.name, f.on, row, "m").traced()


def _pushed(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    """Wrenches of a compliant contact; none of a hard one."""
    if "stiffness" not in f.numbers:
        return [zeros(6, None, pose.rotation) for pose in poses]
    forces, _, beta, gap = _contact_row(f, 0).written(t, poses, twists)
    assert gap is not None
    rate = beta
    for F, twist in zip(forces, twists, strict=True):
        rate = rate - dot(F, twist)
    push = pushing(f, -gap, rate)
    return [F * push for F in forces]


def _lawful_contact(f: Force, joints: Sequence[Joint]) -> LawfulElement | None:
    if not hasattr(f.function, "numel_out"):
        return None  # it is not traced yet
    count = int(f.function.numel_out(0))
    if count > 3:
        raise ModelError(f"{f.owner}: it has {count - 1} sliding velocities; a contact slides in one or two directions")
    rows = tuple(_contact_row(f, k) for k in range(count))
    if rows[0].is_at_rate_level:
        raise ModelError(f"{f.owner}: its gap depends on twists; a gap depends on poses (and time) alone")
    for row in rows[1:]:
        if not row.is_at_rate_level:
            raise ModelError(
                f"{f.owner}: its gap is more than one number, or a tangent does not depend on twists; a gap is a "
                "number, m, and a tangent a velocity of sliding, m/s"
            )
    _not_below(f, "coefficient", "static_coefficient")
    _falls_from(f, "static_coefficient")
    if count > 1 and "coefficient" not in f.numbers:
        raise ModelError(f"{f.owner}: it has a tangent and no friction; give the coefficient, friction=...")
    if count == 1 and "coefficient" in f.numbers:
        raise ModelError(f"{f.owner}: it has friction and no tangent; give the velocity of sliding, tangent=...")
    if "stiffness" in f.numbers:
        if count > 1:
            raise ModelError(f"{f.owner}: it is compliant and has friction; a contact with friction is hard")
        return None
    names = ("gap", *(("sliding",) if count == 2 else ("sliding 1", "sliding 2"))[: count - 1])
    laws = (Law.UNILATERAL, *(Law.FRICTION,) * (count - 1))
    sliding = tuple(range(1, count))
    return LawfulElement(f, rows, laws, names, 0 if sliding else None, discs=(sliding,) if sliding else ())


RESTITUTION = Field("1", "of Newton or Poisson, from 0 to 1", rule=FRACTION, default=0.0, letter="e")
STOP = ForceKind(
    "stop", "joint", _stop, _stop_energy, mark="element", lawful=_lawful_stop,
    fields={
        "lower": Field(
            "rad|m", "least coordinate, rad or m; none: no limit", LIMIT, default=None, letter="q_l", data="position"
        ),
        "upper": Field("rad|m", "largest coordinate, rad or m", LIMIT, default=None, letter="q_u", data="position"),
        "restitution": RESTITUTION,
        "stiffness": Field(
            "N m/rad|N/m", "of a compliant stop, N m/rad or N/m; a stop without is hard", EACH, POSITIVE, None, "k"
        ),
        "damping": Field("N m s/rad|N s/m", "of a compliant stop", EACH, NOT_NEGATIVE, None, "d"),
    },
)  # fmt: skip
NORMAL = Field(
    "", "what presses it: coupling, motion, constraint, stop, contact, lock, latch or joint; its own joint by default",
    TEXT, default=None, free=False,
)  # fmt: skip
STICKING = ForceKind(
    "sticking friction", "joint", _viscous, mark="friction", file_name="sticking_friction", lawful=_lawful_friction,
    fields={
        "viscous": Field(
            "N m s/rad|N s/m", "N m s/rad or N s/m", EACH, NOT_NEGATIVE, default=0.0, letter="d", data="damping",
        ),
        "coulomb": Field(
            "N m|N", "friction once it slides, N m or N", EACH, NOT_NEGATIVE, default=0.0, letter="F_c", data="friction"
        ),
        "static": Field("N m|N", "friction at rest, N m or N; coulomb by default", EACH, NOT_NEGATIVE, None, "F_s"),
        "coefficient": Field("1", "times the joint's reaction", rule=NOT_NEGATIVE, default=None, letter="mu"),
        "static_coefficient": Field(
            "1", "at rest; coefficient by default", rule=NOT_NEGATIVE, default=None, letter="mu_s"
        ),
        "radius": Field("m", "of the pin of a turning joint, m", rule=POSITIVE, default=None, letter="r"),
        "stribeck": Field(
            "rad/s|m/s", "speed over which friction falls from that at rest, rad/s or m/s", EACH, POSITIVE, None, "v_s"
        ),
        "normal": NORMAL,
    },
)  # fmt: skip
SLIDING = ForceKind(
    "friction between joints", "joints", _no_law, mark="friction", file_name="friction_between_joints",
    lawful=_lawful_sliding,
    fields={
        "coulomb": Field(
            "N", "friction once it slides, N, or N m where the sum is in rad", rule=NOT_NEGATIVE, default=0.0,
            letter="F_c",
        ),
        "static": Field("N", "friction at rest; coulomb by default", rule=NOT_NEGATIVE, default=None, letter="F_s"),
        "coefficient": Field("1", "times the force that presses it", rule=NOT_NEGATIVE, default=None, letter="mu"),
        "static_coefficient": Field(
            "1", "at rest; coefficient by default", rule=NOT_NEGATIVE, default=None, letter="mu_s"
        ),
        "stribeck": Field(
            "m/s", "speed over which friction falls from that at rest, m/s or rad/s", rule=POSITIVE, default=None,
            letter="v_s",
        ),
        "normal": NORMAL,
        "unit": Field("", "m or rad, of the sum; that of the joints by default", TEXT, default=None, free=False),
    },
)  # fmt: skip
CONTACT = ForceKind(
    "contact", "bodies", _pushed, mark="contact", lawful=_lawful_contact,
    fields={
        "gap": Field("m, m/s", "the gap, m; then velocities of sliding in one or two directions, m/s", GAP),
        "coefficient": Field("1", "of friction", rule=NOT_NEGATIVE, default=None, letter="mu"),
        "static_coefficient": Field(
            "1", "at rest; coefficient by default", rule=NOT_NEGATIVE, default=None, letter="mu_s"
        ),
        "stribeck": Field(
            "m/s", "speed over which friction falls from that at rest, m/s", rule=POSITIVE, default=None, letter="v_s"
        ),
        "restitution": RESTITUTION,
        "stiffness": Field("N/m", "of a compliant contact, N/m", rule=POSITIVE, default=None, letter="k"),
        "damping": Field("N s/m", "of a compliant contact", rule=NOT_NEGATIVE, default=None, letter="d"),
    },
)  # fmt: skip
# The table of force elements has these too; `model.law` is imported wherever there are models.
FORCES.update({kind.name: kind for kind in (STOP, STICKING, SLIDING, CONTACT)})


def lawful_elements(forces: Sequence[Force], joints: Sequence[Joint]) -> tuple[LawfulElement, ...]:
    """The lawful elements among force elements, in order."""
    found = (force.kind.lawful(force, joints) for force in forces if force.kind.lawful is not None)
    return tuple(law for law in found if law is not None)
