"""Joints of a body, and springs and dampers along them.

Several joints of a body are a chain, with links without mass between them: each turns or shifts the body frame after
the ones before. A joint's coordinate is MuJoCo's: it equals `ref` in the configuration of the file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.errors import FileError
from cardan.io.mjcf.item import Item, turn, unit
from cardan.io.mjcf.options import Options
from cardan.io.mjcf.world import BodyItem, World
from cardan.io.policy import Policy
from cardan.io.xml_element import free_name
from cardan.model.body import JointData
from cardan.model.builder import Mechanism
from cardan.model.joint import Free, JointType, Prismatic, Revolute, Rigid, Spherical
from cardan.model.pose import Pose

TYPES = ("free", "ball", "slide", "hinge")
SCALAR = ("slide", "hinge")
MOST = 6
"""Most joints of a body in MuJoCo."""
NEGATIVE = {
    "damping": "it would feed energy into the joint",
    "frictionloss": "it would feed energy into the joint",
    "stiffness": "such a spring pushes away from its rest",
}
"""Why a number must not be negative."""


@dataclass(eq=False)
class JointItem:
    """A joint of the file: `reference` is its coordinate in the configuration of the file.

    It is `moved` if MuJoCo moves the body's frame, and so everything that refers to it, to the principal axes.
    """

    item: Item
    name: str
    type: str
    body: BodyItem
    reference: np.ndarray
    armature: float = 0.0
    damping: np.ndarray = field(default_factory=lambda: np.zeros(3))
    stiffness: np.ndarray = field(default_factory=lambda: np.zeros(3))
    moved: bool = False

    @property
    def nv(self) -> int:
        """How many rates it has."""
        return {"free": 6, "ball": 3}.get(self.type, 1)


class Joints:
    """Reads the joints of all bodies and adds them, and their springs and dampers, to a mechanism."""

    def __init__(self, world: World, options: Options, policy: Policy) -> None:
        self.world, self.policy = world, policy
        self.angles, self.autolimits, self.flags = options.angles, options.autolimits, options.flags
        self.align = options.align
        self.carrying = _carrying(world, options.fuse)
        self.all: dict[str, JointItem] = {}
        self.of_body: dict[int, list[JointItem]] = {}
        self.limiting = self.flags["limit"] and self.flags["constraint"]
        self.rubbing = self.flags["frictionloss"] and self.flags["constraint"]
        self.switched_off = 0
        self.losses: list[str] = []
        self.notes: list[str] = []
        taken: set[str] = set()
        for body in world.bodies[1:]:
            if len(body.joints) > MOST:
                raise body.item.error(f"it has {len(body.joints)} joints; a body has {MOST} rates at most in MuJoCo")
            for item, _ in body.joints:
                if (name := item.get("name")) in taken:
                    item.owner = f"joint {name!r}"
                    raise item.error("the name is given to two joints; joint names must differ")
                taken |= {name} - {""}
        for body in world.bodies[1:]:
            for k, (item, _) in enumerate(body.joints):
                name = item.get("name")
                name = name or free_name(body.name if len(body.joints) == 1 else f"{body.name}_{k}", taken)
                taken.add(name)
                self.all[name] = joint = self._read(item, name, body)
                self.of_body.setdefault(id(body), []).append(joint)

    def _read(self, item: Item, name: str, body: BodyItem) -> JointItem:
        item.owner = f"joint {name!r}"
        kind = "free" if item.tag == "freejoint" else item.choice("type", TYPES, "hinge")
        if kind == "free":
            if body.parent != 0:
                raise item.error("a free joint is for bodies directly in the world; use slide, hinge or ball joints")
            if len(body.joints) > 1:
                raise item.error("a body with a free joint has no other joint; remove the others")
            reference = np.array([*body.at.position, *body.at.quaternion])
        elif kind == "ball":
            later = [other for other, _ in body.joints]
            later = later[1 + next(k for k, other in enumerate(later) if other is item) :]
            if any(other.tag == "joint" and other.get("type", "hinge") != "slide" for other in later):
                raise item.error(
                    "in a body with a ball joint no other joint that turns comes after it; put it into a body of "
                    "its own"
                )
            reference = np.array([1.0, 0.0, 0.0, 0.0])
        else:
            reference = np.array([item.number_or("ref", 0.0) * self.scale(kind, item)])
        joint = JointItem(item, name, kind, body, reference)
        if item.tag == "joint":
            self._read_numbers(joint)
        if kind == "free":
            self._align(joint)
        return joint

    def scale(self, kind: str, item: Item) -> float:
        """Factor from the file's unit to SI, along a coordinate."""
        return 1.0 if kind in ("slide", "free") else (item.origin.angles if item.origin else self.angles).unit

    def _align(self, joint: JointItem) -> None:
        """Note whether MuJoCo moves the frame of a free body that carries no other; here it is not moved."""
        item, auto = joint.item, joint.item.tag == "joint"
        said = "auto" if auto else item.choice("align", ("true", "false", "auto"), "auto")
        joint.moved = said == "true" or (said == "auto" and self.align)
        joint.moved &= id(joint.body) not in self.carrying
        if joint.moved:
            self.notes.append(
                f"{item.owner}: MuJoCo moves its body's frame to the principal axes ('align'); it stays as the file "
                "has it"
            )
        if joint.moved and (joint.armature or joint.damping.any() or joint.stiffness.any()):
            self.losses.append(
                f"{item.owner}: that its armature, spring and damper act in the principal axes of its body ('align')"
            )

    def _read_numbers(self, joint: JointItem) -> None:
        item = joint.item
        joint.armature = item.number_or("armature", 0.0)
        if joint.armature < 0:
            raise item.error(f"its armature is negative: {joint.armature:g}; it is an inertia: give 0 or more")
        damping, stiffness = (item.up_to(name, (0.0, 0.0, 0.0)) for name in ("damping", "stiffness"))
        joint.damping = damping if self.flags["damper"] else np.zeros(3)
        joint.stiffness = stiffness if self.flags["spring"] else np.zeros(3)
        if (item.exactly("springdamper", (0.0, 0.0)) > 0).all():
            self.losses.append(f"{item.owner}: 'springdamper', a spring that MuJoCo fits to the inertia it feels")
            joint.damping = joint.stiffness = np.zeros(3)
        if item.number_or("springyield", 0.0) > 0:
            self.losses.append(f"{item.owner}: 'springyield', its spring is elastic here at any stretch")

    # Adding to the mechanism.

    def add(self, mechanism: Mechanism, body: BodyItem, parent: str, name: str, own: dict[str, Any]) -> None:
        """Add a body and its joints; `own` are its mass and inertia, `parent` the name of the body that carries it."""
        joints = self.of_body.get(id(body), [])
        if not joints:
            with body.item.naming():
                self.policy.add_body(mechanism, name, body.item.error, **own)
                mechanism.joint(free_name(f"{name} fixed", self.all), Rigid(), parent, name, at=body.at)
            return
        at, carrier = body.at, parent
        frames = dict((id(item), frame) for item, frame in body.joints)
        for k, joint in enumerate(joints):
            last = k == len(joints) - 1
            child = name if last else free_name(f"{name} / {joint.name}", self.world.names)
            with joint.item.naming():
                if last:
                    self.policy.add_body(mechanism, child, body.item.error, **own)
                else:
                    mechanism.body(child)
                self._add_one(mechanism, joint, carrier, child, at, frames[id(joint.item)])
            at, carrier = Pose(), child

    def _add_one(self, mechanism: Mechanism, joint: JointItem, parent: str, child: str, at: Pose, frame: Pose) -> None:
        item, kind = joint.item, joint.type
        local = (
            frame.position + frame.rotation @ item.exactly("pos", (0.0, 0.0, 0.0)) if kind != "free" else np.zeros(3)
        )
        F, M = at @ Pose(local), Pose(local)
        if kind == "free":
            type: JointType = Free()
            F = Pose()
        elif kind == "ball":
            type = Spherical()
        else:
            axis = frame.rotation @ unit(item, "axis", item.exactly("axis", (0.0, 0.0, 1.0)))
            type = Revolute(axis=axis) if kind == "hinge" else Prismatic(axis=axis)
            ref = float(joint.reference[0])
            if ref:  # the coordinate is `ref` in the configuration of the file
                M = M @ (Pose(rotation=turn(axis, ref)) if kind == "hinge" else Pose(ref * axis))
        start = joint.reference if kind == "free" or (joint.reference.any() and kind != "ball") else None
        mechanism.joint(
            joint.name, type, parent, child, at=F, child_at=M, data=self._data(joint), start=start,
            armature=joint.armature,
        )  # fmt: skip
        self._act(mechanism, joint, parent, child, F, M)
        if kind == "free" and joint.armature:
            mechanism.drive(free_name(f"{joint.name} armature", self.all), joint.name, _in_world_axes(joint.armature))

    def _data(self, joint: JointItem) -> JointData:
        item = joint.item
        given: dict[str, Any] = {}
        if item.tag == "freejoint":
            return JointData()
        friction = item.number_or("frictionloss", 0.0)
        self._check_sign(item, "frictionloss", friction)
        given["friction"] = friction if self.rubbing else 0.0
        self.switched_off += bool(friction) and not self.rubbing
        if min(joint.damping[0], joint.stiffness[0] if joint.type in SCALAR else 0.0) >= 0:  # else it is a drive's law
            given["damping"] = float(joint.damping[0])
        lower, upper = self.limits(item, "limited", "range") if joint.type != "free" else (None, None)
        if joint.type == "ball" and lower:
            raise item.error(
                f"'range' of a ball joint is from 0 to the largest angle, got {item.get('range')!r}; begin with 0"
            )
        scale = self.scale(joint.type, item)
        for name, limit in (("lower", lower), ("upper", upper)):
            given |= {name: limit * scale} if limit is not None and self.limiting else {}
        self.switched_off += (lower, upper) != (None, None) and not self.limiting
        efforts = self.limits(item, "actuatorfrclimited", "actuatorfrcrange") if joint.type in SCALAR else ()
        if efforts and None not in efforts:
            given["effort"] = max(abs(limit) for limit in efforts if limit is not None)
        return JointData(**given)

    def _check_sign(self, item: Item, what: str, value: float, kept: bool = True) -> None:
        """Apply the rules to a number that should not be negative; `kept`: whether it can be computed with."""
        if value < 0:
            fault = item.error(f"its {what} is negative: {value:g}; {NEGATIVE[what]}: give 0 or more")
            if not kept:
                raise fault
            self.policy.settle("sign of friction", fault, value)

    def limits(self, item: Item, attribute: str, range: str) -> tuple[float | None, float | None]:
        """Lower and upper limit in the file's units; None is no limit."""
        if not self._is_limited(item, attribute, range):
            return None, None
        lower, upper = (self._limit(item, range, word) for word in item.words(range, 2))
        if lower is not None and upper is not None and lower >= upper:
            fault = item.error(
                f"{range!r} must go from the smaller to the larger number, got {item.get(range)!r}; exchange them"
            )
            return self.policy.settle("order of limits", fault, (lower, upper))
        return lower, upper

    def _limit(self, item: Item, range: str, word: str) -> float | None:
        """One limit; None if it is infinite and the policy allows that."""
        try:
            return item.read(range, word)
        except FileError as fault:
            if word.lstrip("+-").lower() not in ("inf", "infinity"):
                raise
            self.policy.settle("infinite limit", fault, None)
            return None

    def _is_limited(self, item: Item, attribute: str, range: str) -> bool:
        """Whether a range applies: as the file says, or because it is given."""
        said = item.choice(attribute, ("true", "false", "auto"), "auto")
        # the default range, from 0 to 0, means no range
        given = item.has(range) and not all(word.strip("+-0.") == "" for word in item.words(range, 2))
        if said == "auto":
            if given and not (item.origin.autolimits if item.origin else self.autolimits):
                raise item.error(
                    f'{range!r} is given without {attribute!r}, and <compiler autolimits="false"> forbids that'
                )
            return given
        if said == "true" and not item.has(range):
            raise item.error(f"{attribute!r} is true and there is no {range!r}; give it")
        return said == "true"

    def _act(self, mechanism: Mechanism, joint: JointItem, parent: str, child: str, F: Pose, M: Pose) -> None:
        """Springs and dampers along a joint."""
        item, name = joint.item, joint.name
        k, c = float(joint.stiffness[0]), float(joint.damping[0])
        self._check_sign(item, "stiffness", k, joint.type in SCALAR)
        self._check_sign(item, "damping", c)
        if joint.type in SCALAR:
            rest = item.number_or("springref", 0.0) * self.scale(joint.type, item)
            stiffness, damping = joint.stiffness.copy(), joint.damping.copy()
            if (k or c) and min(k, c) >= 0:
                mechanism.torsion(free_name(f"{name} spring", self.all), name, stiffness=k, rest=rest, damping=c)
                stiffness[0] = damping[0] = 0.0
            if stiffness.any() or damping.any():
                mechanism.drive(free_name(f"{name} law", self.all), name, _polynomial(stiffness, damping, rest))
            return
        if joint.stiffness[1:].any() or joint.damping[1:].any():
            self.losses.append(f"joint {name!r} ({joint.type}): second and third powers of its stiffness or damping")
        if c < 0:
            mechanism.drive(free_name(f"{name} damping", self.all), name, lambda t, q, v: -c * v)
        elif c:
            mechanism.friction(free_name(f"{name} damping", self.all), name, viscous=c)
        if k:
            K = [k] * 3 + ([k] * 3 if joint.type == "free" else [0.0] * 3)
            at = joint.body.at if joint.type == "free" else F
            mechanism.bushing(free_name(f"{name} spring", self.all), parent, child, stiffness=K, at1=at, at2=M)


def _carrying(world: World, fuse: bool) -> set[int]:
    """Bodies, by `id`, that carry others after MuJoCo has made one of those that do not move (`fusestatic`).

    A body that something names, and one with `gravcomp`, is not fused with the body that it is fixed to.
    """
    found: set[int] = set()
    for body in reversed(world.bodies[1:]):
        named = body.item.get("name") in world.referred or body.item.get("fuse") == "false"
        fused = fuse and not body.joints and not named and not body.item.number_or("gravcomp", 0.0)
        if not fused or id(body) in found:
            found.add(id(world.bodies[body.parent]))
    return found


def _in_world_axes(armature: float) -> Any:
    """The term `-A w x v`: MuJoCo has the armature of a free joint along world axes, Cardan along body axes."""

    def law(t: Any, q: Any, v: Any) -> Any:
        import casadi as ca

        return ca.vertcat(0, 0, 0, -armature * ca.cross(v[:3], v[3:]))

    return law


def _polynomial(k: np.ndarray, c: np.ndarray, rest: float) -> Any:
    """First, second and third powers of stretch and speed."""

    def law(t: Any, q: Any, v: Any) -> Any:
        import casadi as ca

        x = q - rest
        return -(k[0] * x + k[1] * x**2 + k[2] * x**3) - (c[0] * v + c[1] * v * ca.fabs(v) + c[2] * v**3)

    return law
