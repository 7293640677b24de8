"""A model written as MJCF, and a sentence for everything that MJCF cannot express.

A body of MJCF may have several joints, so a joint of several motions is a row of them. A body without mass that
carries one other body and nothing else gives its joints to that.

Notation: a row of joints moves the body by `A1 J1 A2 J2 .. An`; seen in the body's frame where the file has it, joint
k is `Ck Jk Ck^-1` with `Ck = (A(k+1) .. An)^-1`.

Source: MuJoCo's documentation, XML reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from cardan.io.export import (
    Branch,
    Said,
    add,
    branches,
    check_names,
    document,
    finite_data,
    left_out,
    name_of,
    said_by_joints,
    unlike,
    words,
)
from cardan.io.mjcf.item import COUNTED, ELEMENTS
from cardan.io.mjcf.shapes import GeomWriter
from cardan.model.actuator import ACTUATOR
from cardan.model.body import Body, Joint, JointData
from cardan.model.force import TORSION, Coupling, Force
from cardan.model.joint import REVOLUTE, RIGID, SPHERICAL
from cardan.model.model import Actuator, Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as Node

TYPE_OF = {"turn": "hinge", "slide": "slide", "ball": "ball", "free": "free"}
LEAST = 1e-15
"""MuJoCo's least mass and principal moment of inertia of a moving body."""
CLOSED_BY = {SPHERICAL: ("connect", (0.0,)), RIGID: ("weld", (0.0,)), REVOLUTE: ("connect", (0.0, 0.1))}
"""What closes a loop in place of a joint: the element, and the points on the joint's axis that it holds (m)."""


@dataclass(frozen=True)
class FileJoint:
    """One joint of the file: what it is, its axis, the pose `A` before it, and its initial coordinate `ref`.

    `coordinates` are its indices in the model's v.
    """

    what: str
    axis: np.ndarray
    A: Pose
    joint: Joint
    name: str
    coordinates: tuple[int, ...]
    ref: float = 0.0

    @property
    def before(self) -> Pose:
        """The pose before the joint in the configuration of the file."""
        if self.what == "slide":
            return self.A @ Pose(self.ref * self.axis)
        half = self.ref / 2
        return self.A @ Pose(quaternion=(np.cos(half), *(np.sin(half) * self.axis))) if self.ref else self.A


def write_mjcf(model: Model) -> tuple[str, list[str]]:
    """The text of an MJCF file, and a sentence for each loss; `load` makes the same tree of it."""
    model.require_one("save")
    check_names(model)
    writer = _MjcfWriter(said_by_joints(model.settled(), several=True))
    root = writer.mujoco()
    losses = [*writer.losses, *_losses(model)]
    return document(root, model, losses, {**COUNTED, "*": ELEMENTS}), losses


def _losses(model: Model) -> Iterator[str]:
    """What MJCF cannot express in any model."""
    for joint in model.joints:
        if joint.start is not None and joint.kind is SPHERICAL:
            yield f"joint {joint.name!r}: a ball of MJCF has no start, {words(joint.start)}; left out"
        if joint.data.velocity is not None:
            yield f"joint {joint.name!r}: MJCF has no limit of speed, {joint.data.velocity:g}; left out"
        rest = replace(finite_data(joint), velocity=None)
        if joint.kind.nv > 1 and rest != JointData() and joint.kind is not SPHERICAL:
            yield f"joint {joint.name!r} ({joint.kind.name}): its limits and friction, which are data, are left out"
        elif rest.mimic is not None and not any(joint is model.joints[c.joints[0]] for c in model.couplings):
            yield f"joint {joint.name!r}: that it mimics {rest.mimic[0]!r} is data, and would act; left out"
    yield from left_out(model, "MJCF")


class _MjcfWriter:
    """Nested bodies, their joints and the equality constraints."""

    def __init__(self, said: Said) -> None:
        self.model, self.said = said.model, said
        model = said.model
        self.losses: list[str] = []
        self.joint_names = {joint.name for joint in model.joints}
        self.site_names = {frame.name for frame in model.frames}
        self.on: dict[int, list[Branch]] = {}
        for branch in branches(model):
            self.on.setdefault(branch.near, []).append(branch)
        self.nodes: dict[int, Node] = {}
        self.places: dict[int, Pose] = {GROUND: Pose()}  # of each body's frame in the file, in its own
        self.order: list[int] = []
        self.refs: dict[str, float] = {}
        self.pitches: list[tuple[str, str, float]] = []
        self.springs = self._springs()
        self.masses = self._masses()
        self.body_names = {b: body.name for b, body in enumerate(model.bodies)}
        if "world" in model.body_names:
            index, new = model.body_index("world"), unlike("world", {"world", *model.body_names})
            self.body_names[index] = new
            self.losses.append(f"body 'world': this is the name of ground in MJCF; renamed to {new!r}")

    def _masses(self) -> dict[int, tuple[float, np.ndarray, np.ndarray]]:
        """Mass, centre of mass and inertia of each body; of the whole link where MuJoCo rejects that of a part."""
        bodies, tree = self.model.bodies, self.model.tree
        masses = {b: (body.mass, body.com, body.inertia) for b, body in enumerate(bodies)}
        nothing = (0.0, np.zeros(3), np.zeros((3, 3)))
        for index in range(GROUND, len(tree.links)):
            group = [b for b, link in enumerate(tree.body_link) if link == index]
            odd = [b for b in group if not _is_solid(bodies[b])]
            if not odd or (len(group) == 1 and index != GROUND):
                continue
            names = ", ".join(repr(bodies[b].name) for b in odd)
            if index == GROUND:
                masses |= dict.fromkeys(odd, nothing)
                self.losses.append(f"inertia of {names}: MuJoCo refuses it; left out, as it does not move")
                continue
            carrier = self.model.joints[tree.links[index].joint]
            root = next(branch.far for near in self.on.values() for branch in near if branch.joint is carrier)
            link, back = tree.links[index], tree.body_pose[root].inverse
            R = back.rotation
            masses |= dict.fromkeys(group, nothing)
            masses[root] = link.mass, back.position + R @ link.com, R @ link.I_C @ R.T
            self.losses.append(
                f"inertia of {names}: MuJoCo refuses it; added to {bodies[root].name!r}, as it moves with that"
            )
        return masses

    def mujoco(self) -> Node:
        """The whole file."""
        root = ElementTree.Element("mujoco", model=self.model.name)
        add(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="false")
        add(root, "option", gravity=words(self.model.gravity))
        geoms = GeomWriter(root)
        self.nodes[GROUND] = add(root, "worldbody")
        ahead = list(reversed(self.on.get(GROUND, [])))
        while ahead:
            body = self._body(ahead.pop())
            ahead += reversed(self.on.get(body, []))
        self.losses += geoms.write(self.nodes[GROUND], "ground", self.model.ground_shapes, Pose())
        for b, seen in enumerate(self.model.bodies):
            if b in self.nodes:
                self.losses += geoms.write(self.nodes[b], f"body {seen.name!r}", seen.shapes, self.places[b])
            elif seen.shapes:
                self.losses.append(f"body {seen.name!r}: its shapes are left out with it")
        if not len(geoms.assets):
            root.remove(geoms.assets)
        for frame in self.model.frames:
            self._site(frame.name, frame.body, frame.at)
        equality = ElementTree.Element("equality")
        self._close_loops(equality)
        for coupling in self.model.couplings:
            self._couple(equality, coupling)
        for screw, slide, pitch in self.pitches:
            self._hold(equality, f"{screw} advances", slide, screw, 0.0, pitch)
        if len(equality):
            root.append(equality)
        actuators = ElementTree.Element("actuator")
        for actuator in self.model.actuators:
            self._actuator(actuators, actuator)
        if len(actuators):
            root.append(actuators)
        if self.order != sorted(self.order):
            self.losses.append("coordinates: MJCF has them body by body, each before all that it carries; reordered")
        return root

    def _body(self, branch: Branch) -> int:
        """Write a body with its joints; bodies without mass before it in the chain are left out."""
        row, first = self._motions(branch), branch
        last = branch.M.inverse
        while self._is_passed_over(branch):
            (inner,) = self.on[branch.far]
            name, carried = name_of(self.model, branch.far), name_of(self.model, inner.far)
            if name != f"{carried} / {branch.joint.name}":
                self.losses.append(f"body {name!r}: it moves and has no mass; its joints are those of {carried!r}")
            row += self._motions(inner, last)
            last = inner.M.inverse
            branch = inner
        place = self.places[branch.far] = self._place(branch, row)
        last = last @ place
        at = self.places[first.near].inverse
        for motion in row:
            at = at @ motion.before
        at = at @ last if row else at @ first.F @ last
        body = self.nodes[branch.far] = add(self.nodes[first.near], "body", name=self.body_names[branch.far])
        if row and row[0].what == "free":
            start = first.joint.start
            at = last if start is None or first.backwards else Pose(start[:3], quaternion=start[3:])
        if not at.is_identity:
            turned = {} if np.array_equal(at.rotation, np.eye(3)) else {"quat": words(at.quaternion)}
            body.attrib |= {"pos": words(at.position)} | turned
        self._inertial(body, branch.far, place, bool(row))
        C = last
        for motion in reversed(row):
            self._joint(body, motion, C.inverse)
            C = motion.before @ C
        joints = [child for child in body if child.tag == "joint"]
        body[-len(joints) or len(body) :] = reversed(joints)
        self.order += [k for motion in row for k in motion.coordinates]
        return branch.far

    def _is_passed_over(self, branch: Branch) -> bool:
        """Whether a body has no mass and carries only one more joint that moves."""
        body, carried = self.model.bodies[branch.far], self.on.get(branch.far, [])
        held = {end for j in self.model.cuts for end in (self.model.joints[j].parent, self.model.joints[j].child)}
        named = {frame.body for frame in self.model.frames} | held
        joints = [branch, *carried]
        turning = any(joint.whole for joint in joints)
        alone = len(carried) == 1 and branch.far not in named and not turning
        return body.mass == 0 and not body.inertia.any() and alone and all(joint.motions for joint in joints)

    def _motions(self, branch: Branch, before: Pose | None = None) -> list[FileJoint]:
        """The joints of the file for one joint of the model; `before` is the pose that leads to its frame."""
        joint, A = branch.joint, branch.F if before is None else before @ branch.F
        links = [link for link in self.model.tree.links if self.model.joints[link.joint] is joint]
        v = tuple(range(links[0].v.start, links[0].v.stop)) if links else ()
        if not branch.can_be_said:
            self.losses.append(
                f"joint {joint.name!r} ({branch.kind.title}): MJCF has no such joint; the body is fixed where its "
                "coordinates are neutral"
            )
        parts = branch.motions
        if not parts:
            return []
        if branch.whole == "ball":
            if branch.backwards:
                self._tell_opposite(joint)
            return [FileJoint("ball", np.zeros(3), A, joint, joint.name, v)]
        if branch.whole == "free":
            return self._free(branch, A, v)
        names = [joint.name]
        if len(parts) > 1:
            names = [unlike(f"{joint.name}_{k + 1}", self.joint_names) for k in range(len(parts))]
        own: list[tuple[int, ...]] = [(k,) for k in v]
        q0 = [0.0] * len(own) if joint.start is None else [float(x) for x in joint.start]
        if branch.ratio is not None:  # the last motion has no coordinate of its own
            names = [joint.name, unlike(f"{joint.name}_advance", self.joint_names)]
            self.pitches.append((names[0], names[1], branch.ratio))
            self.losses.append(
                f"joint {joint.name!r} ({branch.kind.title}): MJCF has no such joint; a hinge and the slide "
                f"{names[1]!r} held to it stand for it, so that nq and nv are larger by one"
            )
            own, q0 = [(v[0],), ()], [q0[0], branch.ratio * q0[0]]
        elif branch.reorders:
            self.losses.append(
                f"joint {joint.name!r}: it is met from its child; its coordinates come in the opposite order"
            )
            own.reverse()
            q0.reverse()
        self.refs |= dict(zip(names, q0, strict=True))
        return [
            FileJoint(what, axis, A if k == 0 else Pose(), joint, names[k], own[k], q0[k])
            for k, (what, axis) in enumerate(parts)
        ]

    def _free(self, branch: Branch, A: Pose, v: tuple[int, ...]) -> list[FileJoint]:
        joint = branch.joint
        if branch.backwards:
            self._tell_opposite(joint)
        if branch.near == GROUND:
            if not branch.F.is_identity:
                self.losses.append(
                    f"joint {joint.name!r} (free): its coordinates are the pose in ground, not in its frame"
                )
            return [FileJoint("free", np.zeros(3), A, joint, joint.name, v)]
        self.losses.append(
            f"joint {joint.name!r} (free): MJCF has it on the world only; three slides and a ball stand for it, whose "
            "rates are those of the position, and then the angular velocity"
        )
        names = [unlike(f"{joint.name}_{x}", self.joint_names) for x in "xyz"]
        slides = [
            FileJoint("slide", axis, A if k == 0 else Pose(), joint, names[k], (v[3 + k],))
            for k, axis in enumerate(np.eye(3))
        ]
        return [*slides, FileJoint("ball", np.zeros(3), Pose(), joint, joint.name, v[:3])]

    def _tell_opposite(self, joint: Joint) -> None:
        self.losses.append(
            f"joint {joint.name!r}: it is met from its child; its coordinates are of the opposite motion"
        )

    def _place(self, branch: Branch, row: list[FileJoint]) -> Pose:
        """The frame of a body in the file: its own, or the joint's for ball and free joints, as MJCF demands."""
        if not row or row[-1].what not in ("ball", "free"):
            return Pose()
        place = branch.M if row[-1].what == "free" else Pose(rotation=branch.M.rotation)
        if not place.is_identity:
            self.losses.append(
                f"body {name_of(self.model, branch.far)!r}: MJCF has the coordinates of joint {branch.joint.name!r} in "
                "the body's frame, so that is moved to the joint's"
            )
        return place

    def _inertial(self, node: Node, index: int, place: Pose, moves: bool) -> None:
        body, (mass, com, I) = self.model.bodies[index], self.masses[index]
        if mass == 0 and not I.any():
            if moves and not any(not b.motions for b in self.on.get(index, [])):
                self.losses.append(f"body {body.name!r}: it moves and has no mass, which MuJoCo refuses; give it some")
            return
        R = place.rotation
        com, I = (place.inverse @ Pose(com)).position, R.T @ I @ R
        I = (I + I.T) / 2
        if moves and np.linalg.eigvalsh(I)[0] < LEAST:
            self.losses.append(f"body {body.name!r}: it has no inertia about some axis, which MuJoCo refuses")
        six = words((I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))
        add(node, "inertial", pos=words(com), mass=words(mass), fullinertia=six)

    def _joint(self, node: Node, motion: FileJoint, C: Pose) -> None:
        """Write a joint; `C` is its frame in that of the body."""
        joint = add(node, "joint", name=motion.name, type=TYPE_OF[motion.what])
        if motion.what in ("turn", "slide"):
            joint.set("axis", words(C.rotation @ motion.axis))
            if motion.ref:
                joint.set("ref", words(motion.ref))
        if motion.what in ("turn", "ball") and np.any(C.position):
            joint.set("pos", words(C.position))
        own = motion.joint
        if motion.coordinates:
            start = self.model.v_slice(own.name).start
            self._numbers(joint, motion, [k - start for k in motion.coordinates])
            if own.kind.nv == 1 or motion.what == "ball":
                self._data(joint, own, 0)
            elif len(motion.coordinates) == 1:
                k = motion.coordinates[0] - start
                self._data(joint, replace(own, data=self.said.along.get((own.name, k), JointData())), k)

    def _numbers(self, node: Node, motion: FileJoint, places: list[int]) -> None:
        """Armature, stiffness and damping along some coordinates of a joint."""
        joint = motion.joint
        if joint.armature is not None and joint.armature[places].any():
            if np.ptp(joint.armature[places]):
                self.losses.append(f"joint {joint.name!r}: MJCF has one armature a joint, not {words(joint.armature)}")
            node.set("armature", words(joint.armature[places[0]]))
        force = self.springs.get(joint.name)
        if force is not None and motion.what in ("turn", "slide"):
            values: Any = {key: force.numbers[key][places[0]] for key in ("stiffness", "rest", "damping")}
            for key, attribute in (("stiffness", "stiffness"), ("rest", "springref"), ("damping", "damping")):
                if values[key]:
                    node.set(attribute, words(values[key]))

    def _springs(self) -> dict[str, Force]:
        """A torsion spring for each joint that has one; all other forces are losses."""
        found: dict[str, Force] = {}
        for force in self.model.forces:
            if force.name in self.said.elements or self._is_actuator(force):
                continue
            name = self.model.joints[force.on[0]].name if force.kind is TORSION else ""
            if not name or name in found or not self._has_coordinates(force.on[0]):
                self.losses.append(f"{force.kind.name} {force.name!r}: it is not one of the forces of MJCF; left out")
            else:
                found[name] = force
        return found

    def _has_coordinates(self, joint: int) -> bool:
        """Whether the file has hinges and slides for a joint."""
        motions = self.model.joints[joint].kind.motions or ()
        return joint not in self.model.cuts and bool(motions) and all(m.what in ("turn", "slide") for m in motions)

    def _data(self, node: Node, joint: Joint, k: int) -> None:
        """Limits, friction and damping along coordinate k of a joint."""
        data = finite_data(joint)
        if data.lower is not None and data.upper is not None and data.lower < data.upper:
            node.set("range", words((data.lower, data.upper)))
        elif data.lower is not None or data.upper is not None:
            self.losses.append(f"joint {joint.name!r}: MJCF wants a lower limit and an upper one above it; left out")
        if data.effort is not None and joint.kind.nv == 1:
            node.set("actuatorfrcrange", words((-data.effort, data.effort)))
        if data.friction:
            node.set("frictionloss", words(data.friction))
        if (joint.name, k) in self.said.damped:
            node.set("damping", words(float(node.get("damping", "0")) + data.damping))
        elif data.damping and words(data.damping) != node.get("damping"):
            self.losses.append(f"joint {joint.name!r}: its damping {data.damping:g} is data and would act; left out")

    def _is_actuator(self, force: Force) -> bool:
        return force.kind is ACTUATOR and any(a.name == force.name for a in self.model.actuators)

    def _actuator(self, node: Node, actuator: Actuator) -> None:
        """A `<motor>`, `<position>` or `<velocity>` where its numbers are those of one, else `<general>`."""
        j = self.model.joint_names.index(actuator.joint)
        if self.model.joints[j].kind.nv != 1 or not self._has_coordinates(j):
            self.losses.append(f"actuator {actuator.name!r}: MJCF drives joints with one coordinate; left out")
            return
        gain, (constant, length, speed) = actuator.gain, actuator.bias.tolist()
        plain = not (actuator.dynamics or actuator.slopes.any())
        laws: dict[str, tuple[bool, dict[str, str]]] = {
            "motor": (plain and gain == 1 and not actuator.bias.any(), {}),
            "position": (
                plain and length == -gain and not constant and speed <= 0,
                {"kp": words(gain), "kv": words(-speed)},
            ),
            "velocity": (plain and speed == -gain and not (constant or length), {"kv": words(gain)}),
        }
        fits, own = laws.get(actuator.kind, (False, {}))
        if not fits:
            own = {"gainprm": words(gain), "biastype": "affine", "biasprm": words(actuator.bias)}
            if actuator.slopes.any():
                own |= {"gaintype": "affine", "gainprm": words((gain, *actuator.slopes))}
            if actuator.dynamics:
                own |= {"dyntype": actuator.dynamics, "dynprm": words(actuator.time)}
        ranges = {"ctrlrange": actuator.control, "forcerange": actuator.force, "actrange": actuator.activation}
        own |= {key: words(ends) for key, ends in ranges.items() if ends is not None}
        tag = actuator.kind if fits else "general"
        add(node, tag, name=actuator.name, joint=actuator.joint, gear=words(actuator.gear), **own)

    def _site(self, name: str, body: int, at: Pose) -> None:
        turned = self.places[body].inverse @ at
        quat = {} if np.array_equal(turned.rotation, np.eye(3)) else {"quat": words(turned.quaternion)}
        add(self.nodes[body], "site", name=name, pos=words(turned.position), **quat)

    def _close_loops(self, equality: Node) -> None:
        for joint in (self.model.joints[j] for j in self.model.cuts):
            called = f"joint {joint.name!r} ({joint.kind.name})"
            if joint.kind not in CLOSED_BY or not {joint.parent, joint.child} <= set(self.nodes):
                self.losses.append(f"{called}: MJCF closes loops by points and welds; left out")
                continue
            tag, offsets = CLOSED_BY[joint.kind]
            if len(offsets) > 1:
                self.losses.append(f"{called}: it closes a loop; two points held stand for it")
            for k, z in enumerate(offsets):
                ends = []
                for side, body, at in (("1", joint.parent, joint.at), ("2", joint.child, joint.child_at)):
                    ends.append(unlike(f"{joint.name} {side}{'abc'[k] if k else ''}", self.site_names))
                    self._site(ends[-1], body, at @ Pose((0.0, 0.0, z)))
                add(equality, tag, name=f"{joint.name}{'_' * k}", site1=ends[0], site2=ends[1])

    def _couple(self, equality: Node, coupling: Coupling) -> None:
        joints = [self.model.joints[j] for j in coupling.joints]
        held = all(self.model.joints[j].kind.nv == 1 and self._has_coordinates(j) for j in coupling.joints)
        if coupling.function is not None or len(joints) > 2 or not held:
            self.losses.append(f"{coupling.owner}: MJCF couples two joints and no more; left out")
            return
        c, offset = coupling.coefficients, coupling.offset / coupling.coefficients[0]
        second, ratio = (joints[1].name, -c[1] / c[0]) if len(joints) == 2 else ("", 0.0)
        self._hold(equality, coupling.name, joints[0].name, second, offset, ratio)

    def _hold(self, equality: Node, name: str, first: str, second: str, offset: float, ratio: float) -> None:
        """Hold `first = offset + ratio second`; the file counts both from their initial values."""
        other = {"joint2": second} if second else {}
        rest = offset + ratio * self.refs.get(second, 0.0) - self.refs.get(first, 0.0)
        coefficients = f"{words(rest)} {words(ratio)} 0 0 0"
        add(equality, "joint", name=name, joint1=first, **other, polycoef=coefficients)


def _is_solid(body: Body) -> bool:
    """Whether MuJoCo accepts a body's inertia by itself; it accepts a body without any."""
    if body.mass == 0 and not body.inertia.any():
        return True
    a, b, c = np.linalg.eigvalsh((body.inertia + body.inertia.T) / 2)
    return bool(body.mass > LEAST and a > LEAST and c <= a + b)
