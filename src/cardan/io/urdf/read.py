"""URDF, the robot description of ROS: links with inertia, joints between them.

A link is a body, its frame the body frame. A joint's frame on the parent is its `<origin>`, on the child the child's
own frame. SI units: m, rad, kg, kg m^2. Roll, pitch and yaw turn about the fixed axes. What does not concern dynamics
(`<visual>`, `<collision>`, `<material>`) is ignored; other unknown elements are listed in the model's notes. Meshes and
packages are not needed.

Source: the URDF specification of ROS, pages robot, link, inertial, joint.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from math import inf
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cardan.errors import FileError, InputError, ModelError, nearest
from cardan.io.policy import Policy, Word
from cardan.io.text_file import BODIES, placing, read_text
from cardan.io.xml_element import Element, parse_xml
from cardan.model.body import JointData
from cardan.model.builder import Mechanism
from cardan.model.joint import Free, JointType, Planar, Prismatic, Revolute, Rigid
from cardan.model.pose import Pose

Root = Literal["fixed", "free"]
ROOTS: dict[str, Callable[[], JointType]] = {"fixed": Rigid, "free": Free}

# type: how to make the joint from its axis, and whether it has one
TYPES: dict[str, tuple[Callable[[Any], JointType], bool]] = {
    "revolute": (Revolute, True),
    "continuous": (Revolute, True),
    "prismatic": (Prismatic, True),
    "planar": (Planar, True),
    "fixed": (lambda axis: Rigid(), False),
    "floating": (lambda axis: Free(), False),
}
UNLIMITED = sys.float_info.max
"""As a limit, the largest number means no limit: other readers require limits."""
INERTIA = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def read_urdf(
    path_or_text: str | Path, *, root: Root = "fixed", gravity: Any = (0.0, 0.0, -9.81), mimic: bool = True,
    policy: Word = "strict",
) -> Mechanism:  # fmt: skip
    """Read a URDF file, or URDF text (a string that starts with `<`), into a mechanism.

    Args:
        path_or_text: the file, or its text.
        root: how the root link is joined to ground: "fixed", or "free" for a floating base.
        gravity: acceleration of free fall (3,), m/s^2, in ground axes.
        mimic: whether joints that mimic another are coupled to it; otherwise that is data on the joint only.
        policy: what to do where the file breaks a rule: "strict" rejects it, "warn" keeps it, "repair" corrects it.

    """
    check_root(root)
    rules = Policy(policy)
    if isinstance(path_or_text, str) and path_or_text.lstrip("\ufeff \t\r\n").startswith("<"):
        source, stem, text = "URDF text", "robot", path_or_text.lstrip("\ufeff \t\r\n")
    else:
        path = Path(path_or_text)
        source, stem, text = str(path), path.stem, read_text(path)
    robot = parse_xml(text, source, "robot", "robot")
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
        mechanism.joint(_free_name("root", joints), ROOTS[root](), mechanism.ground, bodies[root_link])
    for name, joint in joints.items():
        _add_joint(mechanism, name, joint, bodies, rules)
    for name in joints if mimic else ():
        _couple(mechanism, name, joints)

    robot.note_unread(("link", "joint", "material"), ("name", "version"))
    for note in rules.notes:
        mechanism.note(note.removeprefix(f"{source}: "))
    for what, count in sorted(robot.unread.items()):
        mechanism.note(f"{what} was not read ({count} time{'s' if count > 1 else ''}); it does not enter the dynamics")
    return mechanism


def check_root(root: object) -> None:
    """Reject a root that is neither fixed nor free."""
    if root not in tuple(ROOTS):
        raise InputError(f"root must be 'fixed' or 'free', got {root!r}; free is for a floating base")


def naming(where: Element | str, bodies: str = "link") -> AbstractContextManager[None]:
    """Put file and line before errors of the model, and call bodies links."""

    def placed(sentence: str) -> str:
        if sentence.startswith("body "):
            sentence = f"{bodies} " + sentence.removeprefix("body ")
        return f"{where if isinstance(where, str) else where.place}: {sentence}"

    return placing(placed)


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
        bodies[mechanism.ground] = _free_name(mechanism.ground, links)
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
    at, I = _origin(inertial, policy), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return {"mass": mass.number("value"), "com": at.position, "inertia": I, "inertia_axes": at.rotation}


def _add_joint(mechanism: Mechanism, name: str, joint: Element, bodies: dict[str, str], policy: Policy) -> None:
    """Add a joint with its data."""
    joint.note_unread(("parent", "child", "origin", "axis", "limit", "dynamics", "mimic"), ("name", "type"))
    kind = joint.text("type")
    if kind not in TYPES:
        raise joint.error(f"type {kind!r} is not a joint type of URDF{nearest(kind, TYPES)}")
    make, has_axis = TYPES[kind]
    with naming(joint):
        mechanism.joint(
            name,
            make(_axis(joint) if has_axis else None),
            bodies[_end(joint, "parent")],
            bodies[_end(joint, "child")],
            at=_origin(joint, policy),
            data=_data(joint, kind, policy),
        )


def _origin(element: Element, policy: Policy) -> Pose:
    """Read a pose: `xyz` (m), and `rpy` (rad) or, from URDF 1.2 on, `quat_xyzw`; the identity by default."""
    origin = element.one("origin")
    if origin is None:
        return Pose()
    origin.note_unread((), ("xyz", "rpy", "quat_xyzw"))
    position = origin.numbers("xyz", 3) if origin.has("xyz") else np.zeros(3)
    if origin.has("quat_xyzw"):
        if origin.has("rpy"):
            raise origin.error("<origin> has both 'rpy' and 'quat_xyzw'; give the rotation once")
        x, y, z, w = origin.numbers("quat_xyzw", 4)
        try:
            return Pose(position, quaternion=(w, x, y, z))
        except ModelError:
            length = f"has length {np.linalg.norm([x, y, z, w]):.6g}, not 1: {origin.text('quat_xyzw')!r}"
            fault = origin.error(f"'quat_xyzw' of <origin> {length}; normalise it, and mind the order (x, y, z, w)")
        return Pose(position, quaternion=policy.settle("quaternion", fault, (w, x, y, z)))
    return Pose(position, rpy=origin.numbers("rpy", 3) if origin.has("rpy") else np.zeros(3))


def _axis(joint: Element) -> np.ndarray:
    """Read the axis, or a plane's normal, in the joint frame; x by default."""
    axis = joint.one("axis")
    if axis is None:
        return np.array([1.0, 0.0, 0.0])
    axis.note_unread((), ("xyz",))
    return axis.numbers("xyz", 3)


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


def _free_name(name: str, taken: Iterable[str]) -> str:
    """The name, with underscores added until it differs from the others."""
    while name in taken:
        name += "_"
    return name
