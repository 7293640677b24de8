"""MJCF read into a mechanism: bodies, their inertia and shapes, joints, springs, loops, actuators, keyframes.

SI units, except that the file chooses the unit of angles; quaternions (w, x, y, z). Other things that do not concern
dynamics (cameras, images of textures) are ignored. Unsupported features that do (contact, tendons, limits as forces,
...) are listed in `model.losses`. Unsupported features that would change the bodies themselves are rejected.

Source: MuJoCo's documentation, XML reference and modeling.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cardan.algebra.rotation import rotation_of_quaternion
from cardan.errors import nearest
from cardan.io.mjcf.actuators import Actuators
from cardan.io.mjcf.defaults import Defaults
from cardan.io.mjcf.equality import Equalities
from cardan.io.mjcf.expand import Attacher
from cardan.io.mjcf.item import Folder, Item, read_tree
from cardan.io.mjcf.joints import Joints
from cardan.io.mjcf.options import Options
from cardan.io.mjcf.shapes import Shapes
from cardan.io.mjcf.solids import NOTHING, SHAPES, SMALLEST, Inertial, Meshes, inertial_of, merged, place, require_mass
from cardan.io.mjcf.vocabulary import TOP
from cardan.io.mjcf.world import BodyItem, World
from cardan.io.policy import Policy, Word
from cardan.io.text_file import read_text
from cardan.io.xml_element import free_name
from cardan.model.builder import Mechanism
from cardan.model.pose import Pose

SITES = (*SHAPES, "mesh")
KEY = ("act", "ctrl", "mpos", "mquat", "name", "plastic", "qpos", "qvel", "time")


def read_mjcf(path: Path, *, gravity: Any = None, folder: Path | None = None, policy: Word = "strict") -> Mechanism:
    """Read an MJCF file into a mechanism.

    Args:
        path: the file.
        gravity: acceleration of free fall (3,), m/s^2, in ground axes; by default the file's.
        folder: the folder that included and attached files and meshes must be in; by default the file's own.
        policy: what to do where the file breaks a rule: "strict" rejects it, "warn" keeps it, "repair" corrects it.

    """
    rules = Policy(policy)
    allowed = Folder(path.parent if folder is None else folder)
    mechanism = _Reader(path, read_tree(path, read_text(path), allowed), allowed, gravity, rules).read()
    for note in rules.notes:
        mechanism.note(note.removeprefix(f"{path}: "))
    return mechanism


class _Reader:
    """Makes a mechanism from the elements of a file, section by section."""

    def __init__(self, path: Path, top: Item, folder: Folder, gravity: Any, policy: Policy) -> None:
        self.top, self.policy = top, policy
        top.check(("model",), TOP)
        self.options = options = Options(top)
        self.attached = Attacher(path, folder)
        self.attached.expand(top, path, options.angles)
        self.defaults = Defaults(top)
        self.meshes = Meshes(path.parent, folder, options.mesh_directory, options.strip)
        self.meshes.fit_aabb = options.fit_aabb
        for asset in self.section("asset"):
            if asset.tag == "mesh":
                self.meshes.add(self.defaults.of(asset))
        self.world = World(top, self.defaults, options.angles)
        if len(self.world.bodies) == 1:
            raise top.error("it has no <body>, only things that do not move; there is no mechanism in it")
        self.joints = Joints(self.world, options, policy)
        self.mechanism = m = Mechanism(top.get("model") or path.stem, gravity=(0.0, 0.0, 0.0))
        with top.naming():
            m.gravity = Mechanism("gravity", gravity=options.gravity if gravity is None else gravity).gravity
        self.names = self._names()

    def section(self, name: str) -> list[Item]:
        """The elements of all sections of a name."""
        return [child for item in self.top.children if item.tag == name for child in item.children]

    def read(self) -> Mechanism:
        """Add everything."""
        m, options = self.mechanism, self.options
        actuators = Actuators(self.joints, options.flags, m.lose)
        for item in self.section("actuator"):
            actuators.add(item, self.defaults)
        self._add_bodies()
        for name, joint, own in actuators.all:
            m.actuator(name, joint, **own)
        shapes = Shapes(self.section("asset"), self.defaults, self.meshes, options.angles)
        shapes.add(m, self.world.bodies, self.names)
        sites = self._add_sites()
        names = [self.names[id(body)] for body in self.world.bodies]
        equalities = Equalities(m, self.joints, names, sites)
        for item in self.section("equality"):
            if options.flags["equality"] and options.flags["constraint"]:
                equalities.add(item, self.defaults)
            else:
                m.lose(f"{item.owner} of <equality>, which the file's own <flag> switches off")
        if m.cut or m.couplings:
            m.note("equality constraints are soft in MuJoCo and hold exactly here; 'solref' and 'solimp' are not read")
        for k, item in enumerate(self.section("keyframe")):
            self._keyframe(item, k)
        if count := self.joints.switched_off:
            m.note(
                f"limits and dry friction that the file's own <flag> switches off are not read ({_many(count, 'time')})"
            )
        for sentence in (*dict.fromkeys(self.attached.notes), *self.joints.notes):
            m.note(sentence)
        for sentence in (*self.joints.losses, *self._losses()):
            m.lose(sentence)
        return m

    # Bodies.

    def _names(self) -> dict[int, str]:
        """Names of bodies in the mechanism: those of the file, and `ground` for the world."""
        ground = self.mechanism.ground
        names = {id(body): body.name for body in self.world.bodies}
        names[id(self.world.bodies[0])] = ground
        for body in self.world.bodies[1:]:
            if body.name == ground:
                names[id(body)] = free_name(ground, self.world.names)
                self.mechanism.note(f"body {ground!r} is called {names[id(body)]!r} here; {ground!r} is the world")
        return names

    def _add_bodies(self) -> None:
        options = self.options
        inertials = []
        for body in self.world.bodies[1:]:
            given, frame = body.inertial or (None, Pose())
            own = inertial_of(
                given, frame, body.geoms, (body.item.origin or options).rules, options.angles, self.meshes, self.policy
            )
            # MuJoCo puts the mass that `boundmass` gives to an empty body at the body's own offset from its parent
            inertials.append(replace(own, com=body.at.position) if own.com is NOTHING.com else own)
        total = sum(own.mass for own in inertials)
        if options.total_mass > 0 and total > 0:
            scale = options.total_mass / total
            inertials = [Inertial(own.mass * scale, own.com, own.inertia * scale) for own in inertials]
        self._require_masses(inertials)
        # `gravcomp` applies in MuJoCo if some body has it positive, and passive forces are not switched off
        carried = any(body.item.number_or("gravcomp", 0.0) > 0 for body in self.world.bodies[1:])
        carried &= options.flags["spring"] or options.flags["damper"]
        for body, own in zip(self.world.bodies[1:], inertials, strict=True):
            parent = self.names[id(self.world.bodies[body.parent])]
            solid: dict[str, Any] = {"mass": own.mass, "com": own.com, "inertia": own.inertia}
            if own.mass == 0 and own.inertia.any():  # the inertia that `boundinertia` gives to an empty body
                solid["judge"] = "nothing"
            self.joints.add(self.mechanism, body, parent, self.names[id(body)], solid)
            if carried:
                self._compensate(body, own)

    def _require_masses(self, inertials: list[Inertial]) -> None:
        """Reject a moving body that, with all bodies fixed to it, has no mass."""
        gathered: list[list[Inertial]] = [[] for _ in self.world.bodies]
        for k in range(len(self.world.bodies) - 1, 0, -1):
            body, own = self.world.bodies[k], inertials[k - 1]
            parts = [*gathered[k], own] if own.mass > 0 else gathered[k]
            if not body.joints:
                at = body.at
                gathered[body.parent] += [
                    Inertial(p.mass, at.position + at.rotation @ p.com, at.rotation @ p.inertia @ at.rotation.T)
                    for p in parts
                ]
                continue
            whole = merged(parts) if parts else inertials[k - 1]
            require_mass(body.item, whole.mass, whole.inertia)

    def _compensate(self, body: BodyItem, own: Inertial) -> None:
        """Add a force that carries part of a body's weight."""
        part = body.item.number_or("gravcomp", 0.0)
        if not part or not own.mass or not self.mechanism.gravity.any():
            return
        name = self.names[id(body)]
        force = -part * own.mass * self.mechanism.gravity
        self.mechanism.wrench(f"{name} gravcomp", name, (0.0, 0.0, 0.0, *force), at=own.com)

    def _add_sites(self) -> dict[str, tuple[int, Pose]]:
        """Frames for all sites that have a name."""
        m = self.mechanism
        found: dict[str, tuple[int, Pose]] = {}
        taken = {m.ground, *(body.name for body in m.bodies)}
        for k, body in enumerate(self.world.bodies):
            for item, frame in body.sites:
                name = item.get("name")
                if not name:
                    continue
                if name in found:
                    raise item.error("the name is given to two sites; site names must differ")
                at = frame @ place(item, item.choice("type", SITES, "sphere"), self.options.angles)
                found[name] = k, at
                own = free_name(f"{name} site" if name in taken else name, taken)
                taken.add(own)
                with item.naming():
                    m.frame(own, self.names[id(body)], at=at)
        return found

    # Keyframes.

    def _keyframe(self, item: Item, number: int) -> None:
        if item.tag != "key":
            raise item.error(f"<keyframe> has no element <{item.tag}> in MJCF{nearest(item.tag, ('key',))}")
        item.check(KEY, ())
        name = item.get("name") or f"key_{number}"
        item.owner = f"key {name!r}"
        joints = list(self.joints.all.values())
        moved = [joint.name for joint in joints if joint.moved]
        if moved and (item.has("qpos") or item.has("qvel")):
            self.mechanism.lose(
                f"{item.owner}: MuJoCo has {moved[0]!r} of it in the principal axes of its body ('align')"
            )
            return
        q0 = np.concatenate([joint.reference for joint in joints]) if joints else np.zeros(0)
        q = item.up_to("qpos", list(q0)) if item.has("qpos") else q0
        v = item.up_to("qvel", [0.0] * sum(joint.nv for joint in joints)) if item.has("qvel") else None
        positions, rates, at, dof = {}, {}, 0, 0
        for joint in joints:
            own = q[at : at + len(joint.reference)]
            if len(own) > 1:
                own = np.array([*own[:-4], *_unit_or_no_turn(own[-4:])])
            positions[joint.name] = own
            if v is not None:
                rate = v[dof : dof + joint.nv]
                if joint.type == "free":  # MuJoCo: velocity in world axes, then angular velocity in body axes
                    rate = np.array([*rate[3:], *(rotation_of_quaternion(own[3:]).T @ rate[:3])])
                rates[joint.name] = rate
            at, dof = at + len(joint.reference), dof + joint.nv
        with item.naming():
            self.mechanism.state(name, positions, rates, time=item.number_or("time", 0.0))
        for what in ("act", "mpos", "mquat", "plastic"):
            if item.has(what):
                self.mechanism.note(f"{item.owner}: {what!r} is not read")

    # Losses.

    def _losses(self) -> list[str]:
        """Unsupported features of the file that concern dynamics."""
        found = [*self.options.losses]
        flags = self.options.flags
        hard = flags["constraint"]
        geoms = [geom.item for body in self.world.bodies for geom in body.geoms]
        touching = sum(any(geom.integer(mask, 1) for mask in ("contype", "conaffinity")) for geom in geoms)
        if touching > 1 and flags["contact"] and hard:
            found.append(f"contact between {_many(touching, 'geom')}")
        counts = Counter(
            f"<{item.tag}> of <{name}>" for name in ("tendon", "deformable") for item in self.section(name)
        )
        if flags["contact"] and hard:
            counts += Counter("<pair> of <contact>" for item in self.section("contact") if item.tag == "pair")
        counts += Counter("<plugin>" for _ in (*self.world.plugins, *self.section("extension")))
        found += [f"{what}, {_many(count, 'time')}" for what, count in sorted(counts.items())]
        found += [
            f"armature of tendon {item.get('name', '?')!r}, which MuJoCo has in its mass matrix"
            for item in map(self.defaults.of, self.section("tendon"))
            if item.number_or("armature", 0.0)
        ]
        found += [
            f"{body.item.owner} is moved from outside ('mocap'); it is fixed here"
            for body in self.world.bodies
            if body.item.tag == "body" and body.item.yes("mocap")
        ]
        return found


def _unit_or_no_turn(quaternion: np.ndarray) -> np.ndarray:
    """A quaternion of unit length; one of zeros is no turn, as in MuJoCo."""
    length = float(np.linalg.norm(quaternion))
    return quaternion / length if length >= SMALLEST else np.array([1.0, 0.0, 0.0, 0.0])


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' if count != 1 else ''}"
