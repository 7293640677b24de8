"""What is read off a moving mechanism beside its state: readings of elements, and the coordinates of cut joints.

All is computed from where the bodies are and how they move, so that a graph has the size of the elements, not of the
tree. The readings are rows of `model.force`, and the points of contact of `model.constraint_kind`; here they are
evaluated one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cardan.algebra.matrix import Matrix, eye, segment, stack, zeros
from cardan.formulation.elements import constraint_forces, controller_power
from cardan.formulation.instant import Seen
from cardan.formulation.kinematics import kinematics_of_tree
from cardan.formulation.measured_joint import JointRows, Moving, measure_between
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed
from cardan.formulation.solution import read_off, size_of
from cardan.model.constraint import Constraint
from cardan.model.constraint_kind import ConstraintElement, ContactReading
from cardan.model.controller import Controller
from cardan.model.force import BodyPose, ElementReading, Force
from cardan.model.law import LawfulElement
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.row import Law
from cardan.model.sight import Sight
from cardan.model.signal import Signal
from cardan.model.tree import GROUND


def element_readings(model: Model) -> list[ElementReading | ContactReading]:
    """Readings of all force elements and contacts, in the order of their numbers in `readings`."""
    found = [reading for force in model.forces for reading in force.readings(model.joints, model.body_names)]
    return [*found, *(ContactReading(own) for own in _contacts(model))]


def _contacts(model: Model) -> list[ConstraintElement]:
    return [own for own in model.constraint_elements if own.kind.contact is not None]


def measured_joints(model: Model) -> list[int]:
    """Cut joints that have coordinates."""
    return [j for j in model.cuts if model.joints[j].kind.nv]


def bodies_read(model: Model) -> list[int]:
    """The bodies whose motion is needed, in the order of the model."""
    found = {b for force in model.forces if force.kind.on == "bodies" for b in force.on}
    found |= {b for contact in _contacts(model) for b in contact.on}
    for j in measured_joints(model):
        found |= {model.joints[j].parent, model.joints[j].child}
    return sorted(found - {GROUND})


def readings(model: Model) -> Quantity:
    """Readings of all elements, then q and then v of every measured joint, in one column.

    Inputs: `q`, `v`; poses (k, 16), row by row, and twists (k, 6) of the k bodies of `bodies_read`, if there are any;
    time, where the model depends on it.
    """
    bodies = bodies_read(model)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        like = inputs["q"]
        t = inputs["t"] if "t" in inputs else zeros(1, 1, like)
        moving = {GROUND: Moving(eye(3, like), zeros(3, None, like), zeros(6, None, like))}
        for k, b in enumerate(bodies):
            row = inputs["poses"][k, :]
            R, r = stack(*(row[4 * i : 4 * i + 3] for i in range(3))), stack(*(row[4 * i + 3] for i in range(3)))
            moving[b] = Moving(R, r, inputs["twists"][k, :].T)
        measured = {j: _measured(model, moving, j) for j in measured_joints(model)}
        parts: list[Any] = [
            reading.graph(t, *_state(model, inputs, moving, measured, reading.element))
            for reading in element_readings(model)
        ]
        parts += [part for rows in measured.values() for part in (rows.q, rows.qd)]
        return [stack(*parts) if parts else zeros(0, None, like)]

    k = len(bodies)
    shapes: dict[str, Shape] = {"q": (model.nq,), "v": (model.nv,)}
    shapes |= {"poses": (k, 16), "twists": (k, 6)} if k else {}
    shapes |= {"t": ()} if model.depends_on_time else {}
    return Quantity("readings", tuple(shapes), (("x", fixed(size_of_readings(model))),), write=write, shapes=shapes)


def size_of_readings(model: Model) -> int:
    """Length of the column."""
    own = sum(reading.size for reading in element_readings(model))
    return own + sum(model.joints[j].kind.nq + model.joints[j].kind.nv for j in measured_joints(model))


def _measured(model: Model, moving: dict[int, Moving], j: int) -> JointRows:
    joint = model.joints[j]
    ends = (joint.parent, joint.at, moving[joint.parent]), (joint.child, joint.child_at, moving[joint.child])
    return measure_between(joint.kind, *ends).rows


def _state(
    model: Model,
    inputs: Inputs,
    moving: dict[int, Moving],
    measured: dict[int, JointRows],
    force: Force | ConstraintElement,
) -> Sequence[Any]:
    """The arguments of an element's law after time."""
    if isinstance(force, ConstraintElement) or force.kind.on == "bodies":
        at = [moving[b] for b in force.on]
        return [BodyPose(x.R, x.r0) for x in at], [x.v for x in at]
    j = force.on[0]
    link = model.link_of_joint(j)
    if link is None:
        return force.picked(measured[j].q, measured[j].qd)
    return force.picked(segment(inputs["q"], link.q), segment(inputs["v"], link.v))


def touching(model: Model) -> list[tuple[LawfulElement, int]]:
    """Contacts between bodies, with the first body of each that moves."""
    found = []
    for law in model.laws:
        rows = [row for row in law.rows if isinstance(row, Constraint)]
        if len(rows) == len(law.rows) and Law.UNILATERAL in law.laws:
            found.append((law, next(b for b in rows[0].on if b != GROUND)))
    return found


def contact_lines(model: Model) -> Quantity:
    """Wrenches (k, 6) of unit forces along the rows of `touching`, on that body: about its origin, in ground axes."""
    shapes: dict[str, Shape] = {"q": (model.nq,), "v": (model.nv,)} | ({"t": ()} if model.depends_on_time else {})
    k = sum(len(law.rows) for law, _ in touching(model))

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q = inputs["q"]
        t = inputs["t"] if "t" in inputs else zeros(1, 1, q)
        kin, rows = kinematics_of_tree(model, q, inputs["v"]), zeros(k, 6, q)
        pairs = [(row, body) for law, body in touching(model) for row in law.rows]
        for i, (row, body) in enumerate(pairs):
            assert isinstance(row, Constraint)
            F, R = constraint_forces(kin, row, t)[body], kin.pose(body).rotation
            rows[i, :3], rows[i, 3:] = (R @ F[:3]).T, (R @ F[3:]).T
        return [rows]

    return Quantity("contact_lines", tuple(shapes), (("F", fixed(k, 6)),), write=write, shapes=shapes)


def acting(model: Model) -> list[Controller]:
    """The controllers that act on joints and bodies."""
    return [controller for controller in model.controllers if controller.acts]


def controller_readings(model: Model) -> Quantity:
    """What acts of each controller, along its joints and on its bodies, and then its power (W), one after the other."""
    shapes: dict[str, Shape] = {"q": (model.nq,), "v": (model.nv,)} | ({"t": ()} if model.depends_on_time else {})

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q = inputs["q"]
        t = inputs["t"] if "t" in inputs else zeros(1, 1, q)
        kin, parts = kinematics_of_tree(model, q, inputs["v"]), []
        for controller in acting(model):
            parts += [*controller.efforts(Seen(kin, t)), controller_power(kin, controller, t)]
        return [stack(*parts)]

    size = sum(controller.size + 1 for controller in acting(model))
    return Quantity("controller_readings", tuple(shapes), (("x", fixed(size)),), write=write, shapes=shapes)


def signals_of(model: Model) -> list[Signal | Controller]:
    """The signals of a model, then the continuous controllers that act on nothing: their outputs are signals."""
    return [*model.signals, *(c for c in model.controllers if not c.acts and not c.every)]


_READ: Slot[None, tuple[Sight, ...]] = Slot("what signals read of the answer to what acts")


def signals_read(model: Model) -> tuple[Sight, ...]:
    """What the signals read of the answer of the mechanism, in order."""

    def make() -> tuple[Sight, ...]:
        import casadi as ca

        found: dict[Sight, Any] = {}
        q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
        seen = Seen(
            kinematics_of_tree(model.unbound, q, v), ca.SX.sym("t"),
            reads=lambda s, sight: found.setdefault(sight, ca.SX.sym("y", *sight.shape)),
        )  # fmt: skip
        for signal in signals_of(model):
            signal.at(seen)
        return tuple(found)

    return _READ.find(model, None, make)


def signal_readings(model: Model) -> Quantity:
    """All signals, one after the other, from `q`, `v`, `t` and what they read of the answer, `y`, if they do."""
    sights = signals_read(model)
    shapes: dict[str, Shape] = {"q": (model.nq,), "v": (model.nv,), "t": ()}
    shapes |= {"y": (size_of(sights),)} if sights else {}
    size = sum(signal.size_in(model) for signal in signals_of(model))

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        found = read_off(inputs["y"], sights) if sights else None
        reads = None if found is None else lambda s, sight: found(sight)
        seen = Seen(kinematics_of_tree(model, inputs["q"], inputs["v"]), inputs["t"], reads=reads)
        return [stack(*(signal.at(seen) for signal in signals_of(model)))]

    return Quantity("signal_readings", tuple(shapes), (("x", fixed(size)),), write=write, shapes=shapes)
