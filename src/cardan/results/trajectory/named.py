"""What can be read off a run by name, `run["spring.force"]`: the table of names of a model.

A name is an element's and, after a dot, what is read off it:

    tree and cut joints      coordinate, rate, acceleration (tree joints), reaction_force, reaction_moment
    bodies and frames        position, velocity, acceleration, angular_velocity, in ground axes
    stops, contacts, locks   force along their rows, gap; of contacts between bodies point, ground_force; mode and
                             direction as parameters, of event-driven runs
    force elements           as their kind declares (`model.force`): length, rate, force or torque, power, energy
    controllers              effort along each joint and on each body, power; states and inputs are parameters
    motions and couplings    rate, force or torque, power
    constraints of one's own force
    constraint elements      force, along each of their rows; of contacts point, ground_force
    free parameters          their own name, `spring.stiffness`

Where two elements have the same name and share a reading, the names have the kind before them: `body arm.acceleration`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import warn_outside
from cardan.formulation.readings import (
    acting,
    bodies_read,
    contact_lines,
    controller_readings,
    element_readings,
    measured_joints,
    readings,
    signal_readings,
    signals_of,
    signals_read,
    touching,
)
from cardan.functions.constraints import multipliers
from cardan.functions.kinematics import body_poses, body_twists
from cardan.integrate.moreau.forces import step_forces
from cardan.model.constraint_kind import ConstraintElement, ContactReading
from cardan.model.force import Coupling
from cardan.model.law import LawfulElement
from cardan.model.measured_force import READINGS
from cardan.model.memory import KernelSlot, Slot
from cardan.model.model import Model
from cardan.model.modes import DIRECTION, MODE
from cardan.model.parameter import Parameter
from cardan.model.row import Law
from cardan.model.sight import Sight
from cardan.model.signal import Signal
from cardan.results.trajectory.quantities import XYZ, SampledStates, in_steps
from cardan.structure.dynamics import law_kernel
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import compile_quantity, time_argument
from cardan.structure.laws import gaps_and_rates
from cardan.structure.redundancy import Redundancy, redundancy

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory


@dataclass(frozen=True)
class NamedQuantity:
    """A quantity by name: labels and units of its components (no labels: one number), description, and values.

    `of(run)` is (..., n), or (..., n, components).
    """

    name: str
    labels: tuple[str, ...]
    units: tuple[str, ...]
    description: str
    of: Callable[[Trajectory], np.ndarray] = field(repr=False)

    @property
    def axes(self) -> tuple[str, ...]:
        """Dimension of its components in a dataset."""
        if not self.labels:
            return ()
        return ("direction",) if self.labels == XYZ else (f"{self.name} component",)


MODES = {MODE: "1 where it is closed or sticks, 0 where it is open or slides", DIRECTION: "direction of sliding"}
PARALLEL = 1e-9  # relative: forces that are so nearly parallel have no common point
_NAMED: Slot[None, dict[str, NamedQuantity]] = Slot("what can be read off a run, by name")
_SHARED: Slot[tuple[str, ...], bool] = Slot("rows that share forces, of which was told")
_SHARING: Slot[None, Redundancy] = Slot("rows that depend on one another")
_KERNELS: KernelSlot[str] = KernelSlot("readings of force elements and cut joints")


def named_quantities(model: Model) -> dict[str, NamedQuantity]:
    """What can be read off runs of a model, by name."""
    return _NAMED.find(model, None, lambda: _table(model.unbound))


def _table(model: Model) -> dict[str, NamedQuantity]:
    """The table; of readings that share a name each has the kind of its element before it."""
    every = list(_rows(model))
    shared = Counter(row.name for _, row in every)
    found: dict[str, NamedQuantity] = {}
    for kind, row in every:
        name = row.name if shared[row.name] == 1 else f"{kind} {row.name}"
        found[name] = NamedQuantity(name, row.labels, row.units, row.description, row.of)
    return found


def _rows(model: Model) -> Iterator[tuple[str, NamedQuantity]]:
    """Kind of the element and row, element by element."""
    for coupling in model.couplings:
        yield from ((coupling.what, row) for row in _coupling_rows(model, coupling))
    first = len(model.rows) - len(model.constraints)
    for own in model.own_constraints:
        rows = [k for k, c in enumerate(model.constraints, first) if own in (c, c.element)]
        labels = tuple(own.kind.rows[k].name for k in own.holds) if isinstance(own, ConstraintElement) else ("",)
        units = tuple(model.rows[k].force_unit for k in rows)
        several = labels != ("",)
        words = f"{own.owner}: force, or torque, that keeps it"
        of = _shared(model, rows, _part("row_forces", slice(rows[0], rows[-1] + 1) if several else rows[0]))
        yield "constraint", NamedQuantity(f"{own.name}.force", labels if several else (), units, words, of)
    if model.laws:
        yield from _law_rows(model)
    at = 0
    for reading in element_readings(model):
        if isinstance(reading, ContactReading):
            yield from ((reading.element.kind.name, row) for row in _contact_rows(model, reading.element, at))
            at += reading.size
            continue
        place = slice(at, at + reading.size) if reading.labels else at
        of = _part("readings", place)
        name = f"{reading.element.name}.{reading.name}"
        words = f"{reading.element.owner}: {reading.meaning}"
        yield reading.element.kind.name, NamedQuantity(name, reading.labels, reading.units, words, of)
        at += reading.size
    yield from (("controller", row) for row in _controller_rows(model))
    yield from (("signal", row) for row in _signal_rows(model))
    for j in range(len(model.joints)):
        yield from (("joint", row) for row in _joint_rows(model, j))
    for name in model.body_names:
        yield from (("body", row) for row in _body_rows("body", name))
    for name in model.frame_names:
        yield from (("frame", row) for row in _body_rows("frame", name))
    for parameter in model.parameters:
        yield "parameter", _parameter_row(model, parameter)


def _controller_rows(model: Model) -> Iterator[NamedQuantity]:
    """Efforts and power of each controller."""
    at = 0
    for own in acting(model):
        labels, units = zip(*own.labels(model), strict=True)
        words = f"{own.owner}: what acts along its joints and on its bodies"
        place: Any = slice(at, at + own.size) if own.size > 1 else at
        several = labels if own.size > 1 else ()
        yield NamedQuantity(f"{own.name}.effort", several, units, words, _part("controllers", place))
        words = f"{own.owner}: power that it gives to the mechanism"
        yield NamedQuantity(f"{own.name}.power", (), ("W",), words, _part("controllers", at + own.size))
        at += own.size + 1


def _signal_rows(model: Model) -> Iterator[NamedQuantity]:
    """Signals, and outputs of controllers that act on nothing."""
    at = 0
    for own in signals_of(model):
        size = own.size_in(model)
        name, unit = (own.name, own.unit) if isinstance(own, Signal) else (own.output, "")
        labels = tuple(map(str, range(size))) if size > 1 else ()
        place: Any = slice(at, at + size) if labels else at
        words = f"{own.owner}: what it gives"
        yield NamedQuantity(name, labels, (unit,) * size, words, _part_of_signals(place))
        at += size


def _part_of_signals(place: Any) -> Callable[[Trajectory], np.ndarray]:
    return lambda run: _signals(run)[..., place]


def _signals(run: Trajectory) -> np.ndarray:
    """All signals (..., n, size); what they read of reactions and accelerations is that of the run."""
    read = [_as_read(run, sight).reshape(*run.valid.shape, -1) for sight in signals_read(run.model.unbound)]
    y = [np.concatenate(read, axis=-1)] if read else []

    def of(s: SampledStates) -> np.ndarray:
        make = lambda: compile_quantity(s.model, signal_readings(s.model.unbound), "tree")
        given = y if run.valid.all() else [x[run.valid] for x in y]
        return np.asarray(_KERNELS.find(s.model, "signals", make)(s.q, s.v, s.t, *given))

    return run._sampled("signals", of)


def _as_read(run: Trajectory, sight: Sight) -> np.ndarray:
    """What a sight reads, over a run."""
    if sight.what == "force":
        name, known = sight.of[0], named_quantities(run.model)
        return np.asarray(run[next(full for what in READINGS if (full := f"{name}.{what}") in known)])
    return np.asarray(getattr(run, "reaction" if sight.what == "joint_wrench" else sight.what)(*sight.of))


def _law_rows(model: Model) -> Iterator[tuple[str, NamedQuantity]]:
    """Forces of elements with laws along their rows, and gaps."""
    at, m = 0, len(model.lawful_rows)
    for law in model.laws:
        rows, labels = law.labels(model.joints), law.names if len(law.rows) > 1 else ()
        place: Any = slice(at, at + len(rows)) if labels else at
        units = tuple(row.force_unit for row in rows)
        words = f"{law.owner}: force, or torque, along its rows; positive opens a gap"
        yield law.what, NamedQuantity(f"{law.name}.force", labels, units, words, _part("laws", place))
        gaps = [k for k, own in enumerate(law.laws) if own is Law.UNILATERAL]
        if gaps:
            labels = tuple(law.names[k] for k in gaps) if len(gaps) > 1 else ()
            place = [m + at + k for k in gaps] if labels else m + at + gaps[0]
            units = tuple(rows[k].unit for k in gaps)
            yield law.what, NamedQuantity(f"{law.name}.gap", labels, units, f"{law.owner}: gap", _part("laws", place))
        at += len(rows)
    line = 0
    for law, body in touching(model):
        own = slice(line, line := line + len(law.rows))
        yield from ((law.what, row) for row in _touching_rows(model, law, body, own))


def _touching_rows(model: Model, law: LawfulElement, body: int, lines: slice) -> Iterator[NamedQuantity]:
    """Point and force of a contact between bodies; `lines` says where the lines of its rows are."""
    first = 0
    for other in model.laws:
        if other is law:
            break
        first += len(other.rows)
    rows = slice(first, first + len(law.rows))

    def force(run: Trajectory) -> np.ndarray:
        F, x = run._sampled("contact_lines")[..., lines, 3:], run._sampled("laws")[..., rows]
        return np.asarray((F * x[..., None]).sum(axis=-2))

    def point(run: Trajectory) -> np.ndarray:
        F = run._sampled("contact_lines")[..., lines, :]
        return run.poses[..., body, :3, 3] + common_point(F[..., :3], F[..., 3:])

    where = "where it touches" if law.discs else "where its line of action is nearest to the body's origin"
    words = f"{law.owner}: point {where}, in ground axes"
    yield NamedQuantity(f"{law.name}.point", XYZ, ("m",) * 3, words, point)
    words = f"{law.owner}: contact force on body {model.body_names[body]!r}, in ground axes"
    yield NamedQuantity(f"{law.name}.ground_force", XYZ, ("N",) * 3, words, force)


def common_point(moments: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """The point p (..., 3) nearest to the lines of forces (..., k, 3) with moments `m = p x f`.

    Of several such points it is the one nearest to the origin.
    """
    N = (np.sum(forces**2, axis=-1)[..., None, None] * np.eye(3) - forces[..., :, None] * forces[..., None, :]).sum(-3)
    finite = np.isfinite(N).all(axis=(-1, -2), keepdims=True)
    inverse = np.linalg.pinv(np.where(finite, N, 0.0), rcond=PARALLEL, hermitian=True)
    along = np.cross(forces, moments).sum(axis=-2)
    return np.asarray(np.where(finite[..., 0], (inverse @ along[..., None])[..., 0], np.nan))


def _parameter_row(model: Model, parameter: Parameter) -> NamedQuantity:
    """A free parameter over time: constant, unless the run changes it."""
    labels = tuple(".".join(map(str, place)) for place in np.ndindex(parameter.shape)) if parameter.shape else ()
    at, words = model.parameters.slice_of(parameter.name), f"free parameter {parameter.name}"
    law = next((law for law in model.laws if f"{law.name}.{parameter.place[2]}" == parameter.name), None)
    if law is not None and parameter.place[2] in MODES:
        words = f"{law.owner}: {MODES[parameter.place[2]]}"
        labels = law.names if labels else ()

    def values(run: Trajectory) -> np.ndarray:
        own = run.parameters
        if own is None:
            p = run.model.parameters.nominal if run.model.values is None else run.model.values
            own = np.where(run.valid[..., None], p[..., None, :], np.nan)
        return own[..., at] if labels else own[..., at.start]

    units = (parameter.unit,) * max(len(labels), 1)
    return NamedQuantity(parameter.name, labels, units, words, values)


def _contact_rows(model: Model, element: ConstraintElement, at: int) -> Iterator[NamedQuantity]:
    """Point of contact and contact force in ground axes; `at` is where its readings are."""
    first = len(model.rows) - len(model.constraints)
    rows = [k for k, c in enumerate(model.constraints, first) if c.element is element]

    def force(run: Trajectory) -> np.ndarray:
        axes = run._sampled("readings")[..., at + 3 : at + 3 + 3 * len(rows)]
        axes = axes.reshape(*axes.shape[:-1], len(rows), 3)
        return np.asarray((run._sampled("row_forces")[..., rows][..., None] * axes).sum(axis=-2))

    words = f"{element.owner}: point of contact, in ground axes"
    yield NamedQuantity(f"{element.name}.point", XYZ, ("m",) * 3, words, _part("readings", slice(at, at + 3)))
    words = f"{element.owner}: contact force on its first body, in ground axes"
    yield NamedQuantity(f"{element.name}.ground_force", XYZ, ("N",) * 3, words, _shared(model, rows, force))


def _part(what: str, place: Any) -> Callable[[Trajectory], np.ndarray]:
    return lambda run: run._sampled(what)[..., place]


def _shared(
    model: Model, rows: list[int], of: Callable[[Trajectory], np.ndarray]
) -> Callable[[Trajectory], np.ndarray]:
    """The same values; warn, once, if other rows share the forces of these of `model.rows`."""
    names = {model.rows[k].name for k in rows}

    def read(run: Trajectory) -> np.ndarray:
        for group in _SHARING.find(model, None, lambda: redundancy(model)).groups:
            if len(group) > 1 and names.intersection(group) and _SHARED.first_time(model, group):
                warn_outside(
                    f"model {model.name!r}: the forces of {', '.join(map(repr, group))} are one possible answer: these "
                    "constraints depend on one another, and only all of them together are known; leave rows out by "
                    "holds=, or make a part compliant"
                )
        return of(run)

    return read


def _joint_rows(model: Model, j: int) -> Iterator[NamedQuantity]:
    joint = model.joints[j]
    name, kind = joint.name, joint.kind
    whole = f"joint {name!r}"
    in_tree = model.link_of_joint(j) is not None
    if kind.nv and (in_tree or j in model.cuts):
        q_labels, v_labels = (tuple(map(str, range(n))) if n > 1 else () for n in (kind.nq, kind.nv))
        yield NamedQuantity(
            f"{name}.coordinate", q_labels, kind.q_units, f"{whole}: coordinate", lambda run: run.coordinate(name)
        )
        yield NamedQuantity(f"{name}.rate", v_labels, kind.v_units, f"{whole}: rate", lambda run: run.rate(name))
        if in_tree:
            units = tuple(f"{unit}^2" for unit in kind.v_units)
            place = model.v_slice(name)
            of = lambda run: run.a[..., place] if kind.nv > 1 else run.a[..., place.start]
            yield NamedQuantity(f"{name}.acceleration", v_labels, units, f"{whole}: acceleration", of)
    words = "on its child, at and in the joint frame"
    yield NamedQuantity(
        f"{name}.reaction_force", XYZ, ("N",) * 3, f"{whole}: force {words}", lambda run: run.reaction(name)[..., 3:]
    )
    yield NamedQuantity(
        f"{name}.reaction_moment", XYZ, ("N m",) * 3, f"{whole}: moment {words}",
        lambda run: run.reaction(name)[..., :3],
    )  # fmt: skip


def _body_rows(kind: str, name: str) -> Iterator[NamedQuantity]:
    origin = f"of the origin of {kind} {name!r}, ground axes"
    for what, unit in (("position", "m"), ("velocity", "m/s"), ("acceleration", "m/s^2")):
        of = lambda run, what=what: getattr(run, what)(name)
        yield NamedQuantity(f"{name}.{what}", XYZ, (unit,) * 3, f"{what} {origin}", of)
    yield NamedQuantity(
        f"{name}.angular_velocity", XYZ, ("rad/s",) * 3, f"angular velocity of {kind} {name!r}, ground axes",
        lambda run: run.angular_velocity(name),
    )  # fmt: skip


def _coupling_rows(model: Model, coupling: Coupling) -> Iterator[NamedQuantity]:
    """Force along each of its joints; rate and power where it changes with time."""
    names = coupling.coordinate_names(model.joints)
    rates = [model.joints[j].kind.v_units[k] for j, k in coupling.ends]
    units = tuple("N m" if unit == "rad/s" else "N" for unit in rates)
    labels = names if len(names) > 1 else ()
    k = [row.owner for row in model.rows].index(coupling.owner)
    if coupling.is_relation or coupling.unit:
        words = f"{coupling.owner}: force, or torque, that keeps it"
        of = _part("row_forces", k)
        yield NamedQuantity(f"{coupling.name}.force", (), (model.rows[k].force_unit,), words, of)
        return
    factor = coupling.coefficients if labels else coupling.coefficients[0]

    def force(run: Trajectory) -> np.ndarray:
        found = run._sampled("row_forces")[..., k]
        return found[..., None] * factor if labels else found * factor

    def rate(run: Trajectory) -> np.ndarray:
        return sum(
            (
                c * run.rate(model.joints[j].name).reshape(*run.valid.shape, -1)[..., k]
                for c, (j, k) in zip(coupling.coefficients, coupling.ends, strict=True)
            ),
            np.zeros(run.valid.shape),
        )

    what = "torque" if set(units) == {"N m"} else "force"
    along = "along its joint" if not labels else "along each of its joints"
    yield NamedQuantity(f"{coupling.name}.{what}", labels, units, f"{coupling.owner}: {what} {along}", force)
    if coupling.depends_on_time:
        unit = coupling.labels(model.joints)[0].unit
        yield NamedQuantity(f"{coupling.name}.rate", (), (f"{unit}/s",), f"{coupling.owner}: rate", rate)
        yield NamedQuantity(
            f"{coupling.name}.power", (), ("W",), f"{coupling.owner}: power that it gives to the mechanism",
            lambda run: run._sampled("row_forces")[..., k] * rate(run),
        )  # fmt: skip


def _readings(s: SampledStates) -> np.ndarray:
    """Readings of all elements, coordinates and rates of cut joints (..., n, size)."""
    model = s.model
    kernel = _KERNELS.find(model, "readings", lambda: compile_quantity(model, readings(model), "tree"))
    bodies = bodies_read(model)
    moving: tuple[np.ndarray, ...] = ()
    if bodies:
        poses = np.asarray(body_poses(model, s.q))[..., bodies, :, :]
        moving = poses.reshape(*poses.shape[:-2], 16), np.asarray(body_twists(model, s.q, s.v))[..., bodies, :]
    return np.asarray(kernel(s.q, s.v, *moving, *time_argument(model, s.t)))


def _controllers(s: SampledStates) -> np.ndarray:
    """Efforts and power of all controllers (..., n, size)."""
    make = lambda: compile_quantity(s.model, controller_readings(s.model), "tree")
    return np.asarray(_KERNELS.find(s.model, "controllers", make)(s.q, s.v, *time_argument(s.model, s.t)))


def _row_forces(s: SampledStates) -> np.ndarray:
    """Force (..., n, rows) of each constraint row of the tree along its residual: `-lam`."""
    return -np.asarray(multipliers(s.model, s.q, s.v, s.tau, t=s.t))


def _laws(s: SampledStates) -> np.ndarray:
    """Forces and then gaps (..., n, 2 m) of the m rows with laws."""
    given = in_steps(s)
    if given is not None:
        parameters = [s.model.values] if s.model.values is not None else []
        gaps = gaps_and_rates(s.model, s.q, s.v, s.t, parameters)[0]
        return np.concatenate([step_forces(*given), gaps], axis=-1)
    tau = np.zeros(s.model.nv) if s.tau is None else s.tau
    kernel = law_kernel(s.model, formulation_of(s.model, s.formulation))
    return np.asarray(kernel(s.q, s.v, tau, *time_argument(s.model, s.t)))


def _contact_lines(s: SampledStates) -> np.ndarray:
    """Wrenches (..., n, k, 6) of unit forces of the rows of contacts between bodies."""
    make = lambda: compile_quantity(s.model, contact_lines(s.model), "tree")
    return np.asarray(_KERNELS.find(s.model, "contact lines", make)(s.q, s.v, *time_argument(s.model, s.t)))


SAMPLED: dict[str, Callable[[SampledStates], np.ndarray]] = {
    "readings": _readings,
    "controllers": _controllers,
    "row_forces": _row_forces,
    "laws": _laws,
    "contact_lines": _contact_lines,
}
"""What named quantities are part of."""


def measured_state(run: Trajectory, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (..., n, nq) and rates (..., n, nv) of a cut joint, by its number; angles count whole turns."""
    model = run.model
    at = sum(reading.size for reading in element_readings(model))
    for other in measured_joints(model):
        kind = model.joints[other].kind
        if other == j:
            break
        at += kind.nq + kind.nv
    column = run._sampled("readings")
    q, v = column[..., at : at + kind.nq].copy(), column[..., at + kind.nq : at + kind.nq + kind.nv]
    time = np.broadcast_to(run.time, run.valid.shape)
    if kind.nq == kind.nv:
        for k, period in enumerate(kind.periods):
            if period:
                q[..., k] = _counting_turns(time, q[..., k], v[..., k], period)
    else:
        e = q[..., -4:]
        turned = (e[..., 1:, :] * e[..., :-1, :]).sum(axis=-1) < 0
        e[..., 1:, :] *= np.cumprod(np.where(turned, -1.0, 1.0), axis=-1)[..., None]
    return q, v


def _counting_turns(t: np.ndarray, angle: np.ndarray, rate: np.ndarray, period: float) -> np.ndarray:
    """Angles (..., n) that follow their rate from sample to sample; as measured they jump by whole turns."""
    guess = np.diff(t, axis=-1) * (rate[..., 1:] + rate[..., :-1]) / 2
    turns = np.round((guess - np.diff(angle, axis=-1)) / period)
    return np.concatenate([angle[..., :1], angle[..., 1:] + period * np.cumsum(turns, axis=-1)], axis=-1)
