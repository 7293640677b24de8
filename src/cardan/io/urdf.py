"""URDF, the robot description of ROS, read into a mechanism, and a model written as URDF.

A link is a body, its frame the body frame. A joint's frame on the parent is its `<origin>`, on the child the child's
own frame. SI units: m, rad, kg, kg m^2. Roll, pitch and yaw turn about the fixed axes. Loops and gears beside the tree
are read by `urdf_loops`, and what is seen of links by `urdf_shapes`: meshes are read when somebody looks at them, and
dynamics do not need them. Unknown elements that may concern dynamics are losses, others notes.

In a file that is written, a link's frame is at its joint, so the frame of a body is moved there. A joint of several
motions becomes several joints with links without mass between them. A frame becomes a link without mass. A model gets
a link `world`, unless one body is fixed to ground at the ground's frame and nothing else is connected to ground.

Source: the URDF specification of ROS, pages robot, link, inertial, joint.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

import numpy as np

from cardan.algebra.rotation import rotation_to_axis
from cardan.errors import FileError, InputError, nearest
from cardan.io.export import (
    Branch,
    add,
    branches,
    check_names,
    document,
    finite_data,
    followers,
    left_out,
    name_of,
    rpy_of_rotation,
    said_by_joints,
    unlike,
    words,
)
from cardan.io.mesh_path import MeshFolders
from cardan.io.policy import Policy, Word
from cardan.io.text_file import BODIES, read_text
from cardan.io.urdf_joint import TYPES, axis_of, naming, origin_of
from cardan.io.urdf_loops import LOOPS, Loops
from cardan.io.urdf_shapes import add_shapes, write_visuals
from cardan.io.xml_element import ELEMENTS, Element, free_name, parse_top, walk
from cardan.model.body import Joint, JointData
from cardan.model.builder import Mechanism
from cardan.model.joint import PLANAR, RIGID, Free, JointType, Rigid
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element as Node

Root = Literal["fixed", "free"]
ROOTS: dict[str, Callable[[], JointType]] = {"fixed": Rigid, "free": Free}

APART = {
    "transmission", "ros2_control", "sensor", "material", "self_collision_checking", "collision_filter_group",
    "safety_controller", "calibration", "xacro:arg", "xacro:property", "xacro:macro", "dont_collapse", "lower",
}  # fmt: skip
"""Elements and attributes that are not read and say nothing of dynamics; all others may, and are losses."""
UNLIMITED = sys.float_info.max
"""As a limit, the largest number means no limit: other readers require limits."""
INERTIA = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def read_urdf(
    path_or_text: str | Path, *, root: Root = "fixed", gravity: Any = (0.0, 0.0, -9.81), mimic: bool = True,
    policy: Word = "strict", folder: Path | None = None,
) -> Mechanism:  # fmt: skip
    """Read a URDF file, or URDF text (a string that starts with `<`), into a mechanism.

    Args:
        path_or_text: the file, or its text.
        root: how the root link is joined to ground: "fixed", or "free" for a floating base.
        gravity: acceleration of free fall (3,), m/s^2, in ground axes.
        mimic: whether joints that mimic another are coupled to it; otherwise that is data on the joint only.
        policy: what to do where the file breaks a rule: "strict" rejects it, "warn" keeps it, "repair" corrects it.
        folder: the folder that meshes must be in, unless they are in packages; by default the one above the file's.

    """
    check_root(root)
    rules = Policy(policy)
    if isinstance(path_or_text, str) and path_or_text.lstrip("\ufeff \t\r\n").startswith("<"):
        source, stem, text = "URDF text", "robot", path_or_text.lstrip("\ufeff \t\r\n")
        path = None
    else:
        path = Path(path_or_text)
        source, stem, text = str(path), path.stem, read_text(path)
    robot = Element(parse_top(text, source, "robot"), source, "robot", Counter())
    mechanism = Mechanism(robot.node.get("name", "").strip() or stem, gravity=gravity)
    version = robot.node.get("version", "1.0").strip()
    if version.partition(".")[0] != "1":
        raise robot.error(f"its version is {version!r}, and what is read is URDF 1; write it as that")
    links, joints = _named(robot, "link", rules), _named(robot, "joint", rules)
    if not links:
        raise robot.error("it has no <link>; a robot needs one link at least")
    if len(links) > BODIES:
        raise robot.error(f"it has {len(links)} links; at most {BODIES} are read")
    _check_names(joints, links, rules)
    root_link = _find_root(robot, links, joints)

    bodies = _add_links(mechanism, links, rules)
    with naming(robot):
        mechanism.joint(free_name("root", joints), ROOTS[root](), mechanism.ground, bodies[root_link])
    for name, joint in joints.items():
        _add_joint(mechanism, name, joint, bodies, rules)
    for name in joints if mimic else ():
        _couple(mechanism, name, joints)
    loops = Loops(mechanism, links, joints, bodies, rules)
    loops.add(robot)
    add_shapes(mechanism, robot, links, bodies, MeshFolders(path, folder))

    robot.note_unread(("link", "joint", "material", "gazebo", *LOOPS, *loops.tags), ("name", "version"))
    for transmission in robot.all("transmission"):
        robot.unread.update(f"<{tag}> in <transmission>" for tag in _rotors(transmission))
    for note in rules.notes:
        mechanism.note(note.removeprefix(f"{source}: "))
    for what, count in sorted(robot.unread.items()):
        times = f"{what} was not read ({count} time{'s' if count > 1 else ''})"
        name = what.split()[0].strip("<>'")
        if name in APART or name.rpartition(":")[2] in APART:
            mechanism.note(f"{times}; it does not enter the dynamics")
        else:
            mechanism.lose(f"{times}; it may concern dynamics")
    return mechanism


def _rotors(transmission: Element) -> list[str]:
    """Names of elements, however deep, that give the inertia of a rotor."""
    tags = (Element(node, transmission.source, transmission.owner, Counter()).tag for node in walk(transmission.node))
    return [tag for tag in tags if "inertia" in tag]


def check_root(root: object) -> None:
    """Reject a root that is neither fixed nor free."""
    if root not in tuple(ROOTS):
        raise InputError(f"root must be 'fixed' or 'free', got {root!r}; free is for a floating base")


def _named(robot: Element, tag: str, policy: Policy) -> dict[str, Element]:
    """Elements of the robot by name, each the owner of what is inside it."""
    found: dict[str, Element] = {}
    for count, element in enumerate(robot.all(tag), 1):
        element.owner = f"<{tag}> number {count}"
        name = element.text("name")
        element.owner = f"{tag} {name!r}"
        if name in found:
            fault = element.error(f"the name is given to two {tag}s; {tag} names must differ")
            element = policy.settle("twins", fault, (found[name], found[name].content, element.content))[0]
        found[name] = element
    return found


def _check_names(joints: dict[str, Element], links: dict[str, Element], policy: Policy) -> None:
    """Every joint must name two links, and every mimic a joint."""
    for name, joint in joints.items():
        for tag in ("parent", "child"):
            link = joint.needed(tag, f'<{tag} link="..."/>').text("link")
            if link not in links:
                raise joint.error(f"its {tag} {link!r} is not a link of this file{nearest(link, links)}")
        if _end(joint, "parent") == _end(joint, "child"):
            raise joint.error(
                f"parent and child are both {_end(joint, 'child')!r}; a joint connects two different links"
            )
        mimic = joint.one("mimic")
        if mimic is not None and mimic.text("joint") not in joints:
            other = mimic.text("joint")
            fault = joint.error(f"it mimics {other!r}, which is not a joint of this file{nearest(other, joints)}")
            joint.node.remove(policy.settle("mimic", fault, mimic).node)
        elif mimic is not None and mimic.text("joint") == name:
            raise joint.error("it mimics itself; name the joint that it follows")


def _end(joint: Element, tag: str) -> str:
    return joint.needed(tag, "").text("link")


def _find_root(robot: Element, links: dict[str, Element], joints: dict[str, Element]) -> str:
    """Find the one link that is no joint's child, and from which all others are reached."""
    children = {_end(joint, "child") for joint in joints.values()}
    roots = [name for name in links if name not in children]
    if not roots:
        raise robot.error(
            "every link is the child of some joint, so there is no root; one link, the base, must be the child of none"
        )
    if len(roots) > 1:
        named = ", ".join(map(repr, roots[:8])) + (", ..." if len(roots) > 8 else "")
        raise robot.error(
            f"it has {len(roots)} roots, links that are no joint's child: {named}; a robot has one, "
            "so join the others to it or remove them"
        )
    touching: dict[str, list[str]] = {}
    for joint in joints.values():
        parent, child = _end(joint, "parent"), _end(joint, "child")
        touching.setdefault(parent, []).append(child)
        touching.setdefault(child, []).append(parent)
    reached, ahead = set(roots), list(roots)
    while ahead:
        fresh = [link for link in touching.get(ahead.pop(), ()) if link not in reached]
        reached.update(fresh)
        ahead += fresh
    for name, link in links.items():
        if name not in reached:
            raise link.error(f"no chain of joints leads to it from the root {roots[0]!r}; join it, or remove it")
    return roots[0]


def _add_links(mechanism: Mechanism, links: dict[str, Element], policy: Policy) -> dict[str, str]:
    """Add a body for each link; return their names, which are the links' own except for one called ground."""
    bodies = {link: link for link in links}
    if mechanism.ground in links:
        bodies[mechanism.ground] = free_name(mechanism.ground, links)
        mechanism.note(
            f"link {mechanism.ground!r} is called {bodies[mechanism.ground]!r} here, because "
            f"{mechanism.ground!r} is what the robot stands on"
        )
    for name, link in links.items():
        own = _inertial(link, policy)
        with naming(link):
            policy.add_body(mechanism, bodies[name], link.error, judge="link", **own)
    return bodies


def _inertial(link: Element, policy: Policy) -> dict[str, Any]:
    """Read mass, centre of mass and inertia; a link without `<inertial>` has none."""
    link.note_unread(("inertial", "visual", "collision", "material"), ("name",))
    inertial = link.one("inertial")
    if inertial is None:
        return {}
    inertial.note_unread(("origin", "mass", "inertia"), ())
    mass = inertial.needed("mass", '<mass value="1.0"/>')
    inertia = inertial.needed("inertia", '<inertia ixx="..." ixy="..." .../>')
    mass.note_unread((), ("value",))
    inertia.note_unread((), INERTIA)
    xx, yy, zz, xy, xz, yz = (inertia.number(entry) for entry in INERTIA)
    at, I = origin_of(inertial, policy), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return {"mass": mass.number("value"), "com": at.position, "inertia": I, "inertia_axes": at.rotation}


def _add_joint(mechanism: Mechanism, name: str, joint: Element, bodies: dict[str, str], policy: Policy) -> None:
    """Add a joint with its data."""
    joint.note_unread(
        ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic"), ("name", "type", "independent")
    )
    kind = joint.text("type")
    if kind not in TYPES:
        raise joint.error(f"type {kind!r} is not a joint type of URDF{nearest(kind, TYPES)}")
    make, has_axis = TYPES[kind]
    with naming(joint):
        mechanism.joint(
            name,
            make(axis_of(joint) if has_axis else None),
            bodies[_end(joint, "parent")],
            bodies[_end(joint, "child")],
            at=origin_of(joint, policy),
            data=_data(joint, kind, policy),
        )


def _data(joint: Element, kind: str, policy: Policy) -> JointData:
    """Limits, damping, friction and mimic."""
    limit, dynamics, mimic = joint.one("limit"), joint.one("dynamics"), joint.one("mimic")
    given: dict[str, Any] = {}
    if limit is not None:
        limit.note_unread((), ("lower", "upper", "velocity", "effort"))
        given |= {name: _limit(limit, name, policy) for name in ("velocity", "effort") if limit.has(name)}
        if kind in ("revolute", "prismatic"):
            given |= {name: _limit(limit, name, policy) if limit.has(name) else 0.0 for name in ("lower", "upper")}
        elif kind == "continuous" and (limit.has("lower") or limit.has("upper")):
            joint.unread["'lower' and 'upper' of <limit> of a continuous <joint>"] += 1
    if dynamics is not None:
        dynamics.note_unread((), ("damping", "friction"))
        given |= {name: dynamics.number_or(name, 0.0) for name in ("damping", "friction")}
    if mimic is not None:
        mimic.note_unread((), ("joint", "multiplier", "offset"))
        given["mimic"] = _mimic(mimic)
    data = JointData(**{name: value for name, value in given.items() if value not in (UNLIMITED, -UNLIMITED)})
    return policy.check_data(data, joint.error, " (one left out is 0)")


def _limit(limit: Element, name: str, policy: Policy) -> float | None:
    """A limit of any size; None if it is infinite and the policy allows that."""
    try:
        return limit.number(name, largest=inf)
    except FileError as fault:
        if limit.text(name).strip().lstrip("+-").lower() not in ("inf", "infinity"):
            raise
        policy.settle("infinite limit", fault, None)
        return None


def _mimic(mimic: Element) -> tuple[str, float, float]:
    """The joint followed, the multiplier and the offset."""
    return mimic.text("joint"), mimic.number_or("multiplier", 1.0), mimic.number_or("offset", 0.0)


def _couple(mechanism: Mechanism, name: str, joints: dict[str, Element]) -> None:
    """Make a joint follow the one that it mimics: `q = multiplier q_other + offset`."""
    mimic = joints[name].one("mimic")
    if mimic is None:
        return
    other, multiplier, offset = _mimic(mimic)
    for end in (name, other):
        if joints[end].text("type") not in ("revolute", "continuous", "prismatic"):
            kind = joints[end].text("type")
            mechanism.note(
                f"joint {name!r} mimics {other!r}, but {end!r} is {kind} and has no angle or stroke; ignored"
            )
            return
    with naming(joints[name]):
        mechanism.couple(f"{name} mimics {other}", {name: 1.0, other: -multiplier}, offset=offset)


# Writing.

DOWN = (0.0, 0.0, -9.81)
TYPE_OF = {"turn": "revolute", "slide": "prismatic"}
# What is lost where other joints stand for one that URDF lacks.
BALL = (
    "URDF has no such joint; three hinges about x, y and z stand for it, with angles in place of a quaternion, and "
    "they lock where the second is at 90 degrees"
)
SCREW = "URDF has no such joint; a hinge and a slider that mimics it stand for it, so that nq and nv are larger by one"
FIXED = "URDF has no such joint; it is written as fixed, where its coordinates are neutral"


def write_urdf(model: Model) -> tuple[str, list[str]]:
    """The text of a URDF file, and a sentence for each loss; `load` makes the same tree of it."""
    model.require_one("save")
    check_names(model)
    said = said_by_joints(model.settled())
    writer = _UrdfWriter(said.model)
    writer.losses += _losses(model, said.elements)
    root = writer.robot()
    return document(root, model, writer.losses, {"link": BODIES, "*": ELEMENTS}), writer.losses


def _losses(model: Model, said: frozenset[str]) -> Iterator[str]:
    """What URDF cannot express in any model."""
    if not np.array_equal(model.gravity, DOWN):
        yield f"gravity {tuple(model.gravity.tolist())} m/s^2: URDF has none; give it to load"
    for j in model.cuts:
        yield f"joint {model.joints[j].name!r}: it closes a loop, and URDF knows only trees; left out"
    for force in model.forces:
        if force.name in said:
            continue
        yield f"{force.kind.name} {force.name!r}: URDF has no force elements; left out"
    for joint in model.joints:
        if joint.armature is not None:
            yield f"joint {joint.name!r}: URDF has no armature, {words(joint.armature)}; left out of the mass matrix"
        if joint.start is not None:
            yield f"joint {joint.name!r}: URDF has no start, {words(joint.start)}; left out"
    yield from left_out(model, "URDF")


class _UrdfWriter:
    """Links and joints of one file."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.tree = list(branches(model))
        self.losses: list[str] = []
        self.link_names = {body.name for body in model.bodies} | {frame.name for frame in model.frames}
        self.joint_names = {joint.name for joint in model.joints}
        self.places: dict[int, Pose] = {GROUND: Pose()}  # of each link's frame, in its body's
        self.base = self._base()
        self.said = {branch.joint.name for branch in self.tree if branch.can_be_said}
        single = {j for j, joint in enumerate(model.joints) if joint.kind.nv == 1 and joint.name in self.said}
        self.following, left = followers(model, single)
        for coupling in left:
            self.losses.append(f"{coupling.owner}: URDF couples two joints by mimic and no others; left out")

    def robot(self) -> Node:
        """The whole file: links first, in the order of the bodies, then joints in that of the coordinates."""
        robot = ElementTree.Element("robot", name=self.model.name)
        links, joints = ElementTree.Element("links"), ElementTree.Element("joints")
        if self.base is None:
            self.base = unlike("world", self.link_names)
            world = add(links, "link", name=self.base)
            self.losses += write_visuals(world, "ground", self.model.ground_shapes, Pose())
        for branch in self.tree:
            self._place(branch)
        for body in range(self.model.nb):
            self._link(links, body)
        for branch in self.tree:
            if branch.near != GROUND or self.base != name_of(self.model, branch.far):
                self._branch(links, joints, branch)
        for frame in self.model.frames:
            add(links, "link", name=frame.name)
            at = self.places[frame.body].inverse @ frame.at
            own = unlike(f"{frame.name}_frame", self.joint_names)
            self._joint(joints, own, "fixed", self._link_name(frame.body), frame.name, at)
        robot.extend([*links, *joints])
        return robot

    def _base(self) -> str | None:
        """The one body that stands for ground, if there is one."""
        on_ground = [branch for branch in self.tree if branch.near == GROUND]
        at_frame = any(frame.body == GROUND for frame in self.model.frames)
        if len(on_ground) != 1 or at_frame or on_ground[0].kind is not RIGID:
            return None
        seen = on_ground[0].F @ on_ground[0].M.inverse
        return name_of(self.model, on_ground[0].far) if seen.is_identity else None

    def _link_name(self, body: int) -> str:
        assert self.base is not None
        return self.base if body == GROUND else self.model.bodies[body].name

    def _place(self, branch: Branch) -> None:
        """Choose the frame of a link: its body's where that is possible, else at the joint, with the body's axes."""
        M, kind = branch.M, branch.kind
        if branch.whole == "free" or (kind is PLANAR and not branch.backwards):
            # the frame that follows from the normal of a plane alone is that of the body
            axes = rotation_to_axis(M.rotation[:, 2])
            plain = not M.position.any() and bool(np.abs(axes - M.rotation).max() < 1e-15)
            place = Pose() if kind is PLANAR and plain else M
        elif all(what == "slide" for what, _ in branch.motions):
            place = Pose()
        else:
            place = Pose(M.position)
        self.places[branch.far] = place
        if not place.is_identity:
            body = name_of(self.model, branch.far)
            self.losses.append(
                f"body {body!r}: URDF has a link's frame at its joint, so its frame is moved to joint "
                f"{branch.joint.name!r}, by ({words(place.position)}) m"
                + ("" if np.array_equal(place.rotation, np.eye(3)) else " and turned")
            )

    def _link(self, links: Node, index: int) -> None:
        body, place = self.model.bodies[index], self.places[index]
        link = add(links, "link", name=body.name)
        self.losses += write_visuals(link, f"body {body.name!r}", body.shapes, place)
        if body.name == self.base:
            self.losses += write_visuals(link, "ground", self.model.ground_shapes, place)
        if body.mass == 0 and not body.inertia.any():
            return
        com, I, R = body.com, body.inertia, place.rotation
        if not place.is_identity:
            com, I = (place.inverse @ Pose(com)).position, R.T @ I @ R
        inertial = add(link, "inertial")
        if com.any():
            add(inertial, "origin", xyz=words(com))
        add(inertial, "mass", value=words(body.mass))
        I = (I + I.T) / 2
        entries = zip(INERTIA, (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]), strict=True)
        add(inertial, "inertia", **{name: words(value) for name, value in entries})

    def _branch(self, links: Node, joints: Node, branch: Branch) -> None:
        """Write one joint of the model as one or several joints."""
        near, far = self._link_name(branch.near), self._link_name(branch.far)
        seen = self.places[branch.near].inverse @ branch.F
        back = branch.M.inverse @ self.places[branch.far]  # from M to the link's frame
        name, data = branch.joint.name, finite_data(branch.joint)
        if branch.whole == "free":
            if branch.backwards:
                self.losses.append(
                    f"joint {name!r}: a floating joint runs from parent to child, and this one is met from its child; "
                    "its coordinates are those of the opposite motion"
                )
            self._joint(joints, name, "floating", near, far, seen, data=data)
            return
        at = seen @ back
        if branch.kind is PLANAR and not branch.backwards:
            self._joint(joints, name, "planar", near, far, at, back.rotation.T @ np.eye(3)[2], data)
            return
        self._motions(links, joints, branch, near, far, at, back.rotation.T)

    def _motions(self, links: Node, joints: Node, branch: Branch, near: str, far: str, at: Pose, R: np.ndarray) -> None:
        """Motions one after the other, with links without mass between them; `R` takes axes of M to the link's."""
        name, data = branch.joint.name, finite_data(branch.joint)
        motions = branch.motions
        if ball := branch.whole == "ball":
            motions = [("turn", axis) for axis in np.eye(3)]
        called = f"joint {name!r} ({branch.kind.title})"
        if not branch.can_be_said:
            self.losses.append(f"{called}: {FIXED}")
        if not motions:
            self._joint(joints, name, "fixed", near, far, at, data=data if branch.can_be_said else None)
            return
        if ball or branch.ratio is not None:
            self.losses.append(f"{called}: {BALL if ball else SCREW}")
        elif branch.reorders:
            self.losses.append(f"joint {name!r}: it is met from its child; its coordinates come in the opposite order")
        if len(motions) > 1 and data != JointData():
            self.losses.append(f"joint {name!r}: several joints stand for it, and its limits and friction are left out")
        own = [
            name if len(motions) == 1 else unlike(f"{name}_{k}", self.joint_names) for k in range(1, 1 + len(motions))
        ]
        if branch.ratio is not None:
            own[0] = name  # so that couplings can name it
        for k, (what, axis) in enumerate(motions):
            last = k == len(motions) - 1
            next_link = far if last else unlike(f"{own[k]}_link", self.link_names)
            if not last:
                add(links, "link", name=next_link)
            joint = self._joint(
                joints, own[k], TYPE_OF[what], near, next_link, at if k == 0 else Pose(), R @ axis,
                data if len(motions) == 1 else JointData(),
            )  # fmt: skip
            if branch.ratio is not None and last:
                add(joint, "mimic", joint=own[0], multiplier=words(branch.ratio))
            elif k == 0 and (len(motions) == 1 or branch.ratio is not None):
                self._mimic(joint, branch.joint)
            near = next_link

    def _joint(
        self, joints: Node, name: str, type: str, near: str, far: str, at: Pose,
        axis: np.ndarray | None = None, data: JointData | None = None,
    ) -> Node:  # fmt: skip
        data = data or JointData()
        if type == "revolute" and data.lower is None and data.upper is None:
            type = "continuous"
        joint = add(joints, "joint", name=name, type=type)
        if not at.is_identity:
            rpy = {} if np.array_equal(at.rotation, np.eye(3)) else {"rpy": words(rpy_of_rotation(at.rotation))}
            add(joint, "origin", xyz=words(at.position), **rpy)
        add(joint, "parent", link=near)
        add(joint, "child", link=far)
        if axis is not None:
            add(joint, "axis", xyz=words(np.where(np.abs(axis) < 1e-15, 0.0, axis)))
        limit = _limit_entries(type, data)
        if limit:
            add(joint, "limit", **{key: words(value) for key, value in limit.items()})
        if data.damping or data.friction:
            add(joint, "dynamics", damping=words(data.damping), friction=words(data.friction))
        return joint

    def _mimic(self, node: Node, joint: Joint) -> None:
        """Write the joint that this one follows, by a coupling of the model or by its data."""
        j = self.model.joint_names.index(joint.name)
        if j in self.following:
            other, multiplier, offset = self.following[j]
            name = self.model.joints[other].name
        elif joint.data.mimic is not None and joint.data.mimic[0] in self.said:
            name, multiplier, offset = joint.data.mimic
        else:
            return
        add(node, "mimic", joint=name, multiplier=words(multiplier), offset=words(offset))


def _limit_entries(type: str, data: JointData) -> dict[str, float]:
    """Entries of `<limit>`; hinges and sliders must have them all, and the largest number stands for no limit."""
    names = ("velocity", "effort") if type == "continuous" else ("lower", "upper", "velocity", "effort")
    given: dict[str, float | None] = {name: getattr(data, name) for name in names}
    if type not in ("revolute", "prismatic"):
        return {key: value for key, value in given.items() if value is not None}
    unlimited = {"lower": -UNLIMITED} | dict.fromkeys(("upper", "velocity", "effort"), UNLIMITED)
    return {key: unlimited[key] if value is None else value for key, value in given.items()}
