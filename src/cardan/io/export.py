"""A model as URDF and MJCF see it: every joint of the tree seen from ground, as turns and slides; and XML text.

Notation: `F` is the joint frame on the body nearer to ground, `M` on the one it carries. A joint that was declared the
other way round is met from its child's side, and each of its motions is then about or along the opposite axis.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from cardan.errors import ModelError
from cardan.io.text_file import SIZE_LIMIT
from cardan.io.xml_element import free_name, walk
from cardan.model.body import Joint, JointData
from cardan.model.force import FRICTION, Coupling, Force
from cardan.model.joint import Kind
from cardan.model.law import STICKING, STOP
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.pose_stop import ROTATION_STOP
from cardan.model.tree import GROUND

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as Node

LIMITS = ("lower", "upper")
DEEPEST = 500
"""Levels of an XML file that MuJoCo reads."""
OTHERS = "which is more than load reads; other programs may"
NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Branch:
    """A tree joint seen from ground: it carries body `far` on body `near` (-1 is ground)."""

    joint: Joint
    near: int
    far: int
    F: Pose
    M: Pose
    backwards: bool

    @property
    def kind(self) -> Kind:
        """Its row of the joint table, as declared."""
        return self.joint.kind

    @property
    def can_be_said(self) -> bool:
        """Whether the joint is made of single motions, the only ones that these formats have."""
        return self.kind.motions is not None

    @property
    def whole(self) -> str:
        """What the joint is where it is a single "ball" or "free" motion; empty elsewhere."""
        motions = self.kind.motions or ()
        return motions[0].what if len(motions) == 1 and motions[0].what in ("ball", "free") else ""

    @property
    def motions(self) -> list[tuple[str, np.ndarray]]:
        """Turns and slides from near to far, with their axes in `F`; those of a backwards joint are opposite."""
        motions = [(motion.what, np.eye(3)[motion.axis]) for motion in self.kind.motions or ()]
        if not self.backwards:
            return motions
        if self.reorders:
            motions.reverse()
        return [(what, -axis) for what, axis in motions]

    @property
    def reorders(self) -> bool:
        """Whether its motions come in the opposite order: it is met from its child, and they do not commute."""
        return self.backwards and len({motion.axis for motion in self.kind.motions or ()}) > 1

    @property
    def ratio(self) -> float | None:
        """Metres that the last motion of a screw advances for a radian of the one before it."""
        return self.kind.motions[-1].ratio if self.kind.motions else None


def branches(model: Model) -> Iterator[Branch]:
    """Every joint of the tree, rigid ones too, in the order of the model's coordinates."""
    reached = {GROUND}
    for link in model.unmerged.tree.links:
        joint = model.joints[link.joint]
        backwards = joint.parent not in reached
        near, far = (joint.child, joint.parent) if backwards else (joint.parent, joint.child)
        F, M = (joint.child_at, joint.at) if backwards else (joint.at, joint.child_at)
        reached.add(far)
        yield Branch(joint, near, far, F, M, backwards)


def name_of(model: Model, body: int) -> str:
    """Name of a body, or of ground."""
    return "ground" if body == GROUND else model.bodies[body].name


def check_names(model: Model) -> None:
    """Reject a name that no XML file can hold."""
    named = [("model", model.name), *(("body", name) for name in model.body_names)]
    named += [("joint", name) for name in model.joint_names] + [("frame", name) for name in model.frame_names]
    named += [("force", force.name) for force in model.forces] + [("coupling", c.name) for c in model.couplings]
    named += [("constraint", constraint.name) for constraint in model.own_constraints]
    for what, name in named:
        if found := NOT_XML.search(name):
            raise ModelError(f"{what} {name!r}: its name has {found[0]!r}, which XML cannot hold; rename it")


def left_out(model: Model, format: str) -> Iterator[str]:
    """What neither format expresses, or is not written in either."""
    acting = {actuator.name for actuator in model.actuators if actuator.dynamics and format == "MJCF"}
    for controller in (c for c in model.controllers if c.name not in acting):
        yield f"{controller.owner}: {format} has no controllers; left out"
    for constraint in model.own_constraints:
        yield f"{constraint.owner}: its function is not one of the constraints of {format}; left out"
    if model.actuators and format == "URDF":
        yield f"actuators {', '.join(repr(a.name) for a in model.actuators)}: left out"
    if model.states:
        yield f"states {', '.join(map(repr, model.states))}: left out"
    own = [variable.name for variable in model.variables]
    if own:
        yield f"variables {', '.join(map(repr, own))}: {format} has none; left out"
    if free := [name for name in model.parameters.names if name not in own]:
        yield f"free numbers {', '.join(free)}: {format} has none; written as constants"


def unlike(name: str, taken: set[str]) -> str:
    """The name, with underscores added until it differs from those taken; it is then taken too."""
    name = free_name(name, taken)
    taken.add(name)
    return name


def followers(model: Model, joints: set[int]) -> tuple[dict[int, tuple[int, float, float]], list[Coupling]]:
    """Couplings of two joints as `q = multiplier q_other + offset`, one for each joint; and those of another form."""
    following: dict[int, tuple[int, float, float]] = {}
    left = []
    for coupling in model.couplings:
        if (
            coupling.what != "coupling"
            or len(coupling.joints) != 2
            or coupling.places
            or not joints.issuperset(coupling.joints)
        ):
            left.append(coupling)
            continue
        (a, b), (c, d) = coupling.joints, coupling.coefficients
        if a not in following:
            following[a] = (b, -d / c, coupling.offset / c)
        elif b not in following:
            following[b] = (a, -c / d, coupling.offset / d)
        else:
            left.append(coupling)
    return following, left


class Said(NamedTuple):
    """Force elements that the data of joints says: the model whose joints have it, and the names of the elements."""

    model: Model
    elements: frozenset[str]
    damped: frozenset[tuple[str, int]]
    """Joints, and numbers of their coordinates, whose damping acts; of a ball joint number 0."""
    along: dict[tuple[str, int], JointData]
    """The data of each coordinate of joints with several, by name and number."""


def said_by_joints(model: Model, several: bool = False) -> Said:
    """Friction and hard stops of joints with one coordinate as their data, as both formats have them.

    With `several`, as MJCF has them, also of ball joints, and along each coordinate of joints that become several.
    """
    joints, elements, damped = list(model.joints), set[str](), set[tuple[str, int]]()
    along: dict[tuple[str, int], JointData] = {}
    for force in model.forces:
        j = force.on[0]
        joint = joints[j] if force.kind.on == "joint" else None
        if joint is None or j in model.cuts or (joint.kind.nv != 1 and not several):
            continue
        ball = [motion.what for motion in joint.kind.motions or ()] == ["ball"]
        if not ball and joint.kind.nq != joint.kind.nv:
            continue
        entries = _as_data(force)
        if entries is None or (ball and any(np.ptp(x) for x in entries.values())):
            continue
        for i, k in enumerate([0] if ball else force.along or range(joint.kind.nv)):
            own: dict[str, Any] = {name: float(x[i]) for name, x in entries.items() if np.isfinite(x[i])}
            own = {name: x for name, x in own.items() if x or name in LIMITS}
            damped |= {(joint.name, k)} if "damping" in own else set()
            if joint.kind.nv == 1 or ball:
                joints[j] = replace(joints[j], data=replace(joints[j].data, **own))
            else:
                along[joint.name, k] = replace(along.get((joint.name, k), JointData()), **own)
        elements.add(force.name)
    return Said(replace(model, joints=tuple(joints)), frozenset(elements), frozenset(damped), along)


def _as_data(force: Force) -> dict[str, np.ndarray] | None:
    """Entries of the data of a joint that say all that an element does, for each of its coordinates; None: none do."""
    given = {name: np.asarray(x, dtype=float).ravel() for name, x in force.numbers.items()}
    if force.kind in (FRICTION, STICKING) and given.keys() <= {"viscous", "coulomb", "smoothing"}:
        return {"damping": given["viscous"], "friction": given["coulomb"]}
    if np.any(given.get("restitution", 0.0)):
        return None
    if force.kind is STOP and given.keys() <= {"lower", "upper", "restitution"}:
        return {name: given[name] for name in ("lower", "upper") if name in given}
    if force.kind is ROTATION_STOP and given.keys() <= {"angle", "axis", "restitution"}:
        return {"lower": np.zeros(1), "upper": given["angle"]}
    return None


def finite_data(joint: Joint) -> JointData:
    """The data of a joint, without limits that are not finite."""
    limits = {name: getattr(joint.data, name) for name in ("lower", "upper", "velocity", "effort")}
    unlimited: dict[str, Any] = {name: None for name, x in limits.items() if x is not None and not math.isfinite(x)}
    return replace(joint.data, **unlimited)


def rpy_of_rotation(R: np.ndarray) -> np.ndarray:
    """Roll, pitch, yaw about the fixed axes (rad); accurate also in gimbal lock."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(yaw), np.sin(yaw)
    rest = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) @ R  # pitch and roll are left
    return np.array([np.arctan2(-rest[1, 2], rest[1, 1]), np.arctan2(-rest[2, 0], rest[0, 0]), yaw]) + 0.0


def words(values: object) -> str:
    """Numbers separated by blanks, each with as many digits as it takes to read the same number."""
    return " ".join(repr(float(x) + 0.0).removesuffix(".0") for x in np.atleast_1d(np.asarray(values, dtype=float)))


def add(parent: Node, tag: str, /, **attributes: str) -> Node:
    """Add an element to another."""
    return ElementTree.SubElement(parent, tag, attributes)


def document(root: Node, model: Model, losses: list[str], most: Mapping[str, int]) -> str:
    """The text of an XML file; a comment at its head lists `losses`. `load` reads at most `most` elements of a tag."""
    depth, level = 0, [root]
    while level:
        depth, level = depth + 1, [child for node in level for child in node]
    if depth > DEEPEST:
        raise ModelError(
            f"model {model.name!r}: its bodies would be nested {depth} levels deep, and such a file is read down to "
            f"{DEEPEST}; save it as .yaml or .urdf"
        )
    count = Counter(node.tag for node in walk(root))
    count["*"] = count.total()
    for tag, limit in most.items():
        if count[tag] > limit:
            what = "elements" if tag == "*" else f"elements <{tag}>"
            losses.append(f"the file has {count[tag]} {what}, more than {limit}, {OTHERS}")
    ElementTree.indent(root)
    lines = [f"{model.name}, written by Cardan. SI units: m, kg, s, rad, N."]
    if losses:
        lines += ["Lost or changed in this format:", *(f"- {loss}" for loss in losses)]
    head = re.sub("-(?=-)", "- ", "\n     ".join(lines))  # two dashes would end the comment
    text = f'<?xml version="1.0" encoding="utf-8"?>\n<!-- {head} -->\n{ElementTree.tostring(root, "unicode")}\n'
    if len(text.encode("utf-8", "replace")) > SIZE_LIMIT:
        losses.append(f"the file has more than {SIZE_LIMIT / 2**20:.0f} MiB, {OTHERS}")
    return text
