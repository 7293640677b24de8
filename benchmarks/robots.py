"""The same mechanisms in Cardan, Pinocchio and MuJoCo.

The other programs are imported when first needed, so that a process that times Cardan's first call loads nothing else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

import cardan as cd
from cardan.model.builder import SNAPPING

LONGEST_IN_PINOCCHIO = 100  # its Data holds arrays that grow with the cube of the number of joints
GRAVITY = (0.0, 0.0, -9.81)


@dataclass(frozen=True)
class Robot:
    """One mechanism, in each program."""

    name: str
    make: Callable[[float], cd.Model]
    make_pinocchio: Callable[[], Any] | None

    @cached_property
    def model(self) -> cd.Model:
        """Cardan's model, as loaded by default."""
        return self.make(SNAPPING)

    @cached_property
    def pinocchio(self) -> Any:
        """Pinocchio's model, or None if it would not fit in memory."""
        if self.make_pinocchio is None:
            return None
        model = self.make_pinocchio()
        model.gravity.linear = np.array(GRAVITY)
        return model

    @cached_property
    def orders(self) -> tuple[np.ndarray, np.ndarray]:
        """Indices of Pinocchio's q and v in Cardan's: its joints are ordered by name, and a free joint is
        (position, xyzw) with (linear, angular) velocity, while Cardan has wxyz and (angular, linear).
        """
        q, v = np.zeros(self.pinocchio.nq, int), np.zeros(self.pinocchio.nv, int)
        for name, joint in list(zip(self.pinocchio.names, self.pinocchio.joints, strict=True))[1:]:
            name = "root" if name == "root_joint" else name
            q_from, v_from = self.model.q_slice(name).start, self.model.v_slice(name).start
            q_order, v_order = {
                (1, 1): ([0], [0]),
                (7, 6): ([0, 1, 2, 4, 5, 6, 3], [3, 4, 5, 0, 1, 2]),
            }[joint.nq, joint.nv]
            q[joint.idx_q : joint.idx_q + joint.nq] = q_from + np.array(q_order)
            v[joint.idx_v : joint.idx_v + joint.nv] = v_from + np.array(v_order)
        return q, v

    @cached_property
    def mujoco(self) -> Any:
        """MuJoCo's model: one body for each joint, without shapes, limits and damping."""
        return _chain_mujoco(self.model.nv) if self.pinocchio is None else _as_mujoco(self.pinocchio)

    def states(self, batch: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Random q, v and x, which is used as force or as acceleration; C order, float64."""
        rng = np.random.default_rng(seed)
        q, v = self.model.random_state(rng, batch)
        return q, v, rng.standard_normal((batch, self.model.nv))

    def pinocchio_states(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The same states in Pinocchio's order, one state per contiguous column: the fastest layout for Eigen."""
        q_order, v_order = self.orders
        return [np.asfortranarray(array[:, q_order if k == 0 else v_order].T) for k, array in enumerate(arrays)]


def robots() -> dict[str, Robot]:
    """Every mechanism measured, by name."""
    # fmt: off
    found = [
        _from_urdf("2-link", "double_pendulum_description/urdf/double_pendulum_simple.urdf"),
        _from_urdf("UR5", "ur_description/urdf/ur5_robot.urdf"),
        _from_urdf("Panda", "panda_description/urdf/panda.urdf",
                   locked=("panda_finger_joint1", "panda_finger_joint2")),
        _from_urdf("ANYmal", "anymal_b_simple_description/robots/anymal.urdf", root="free"),
        _from_urdf("Talos", "talos_data/robots/talos_reduced.urdf", root="free"),
        *(chain(n) for n in (10, 100, 1000)),
    ]
    # fmt: on
    return {robot.name: robot for robot in found}


def find(name: str) -> Robot:
    """A robot by name; `chain N` for any N."""
    kind, _, size = name.partition(" ")
    return chain(int(size)) if kind == "chain" else robots()[name]


@cache
def _folder() -> Path:
    import cmeel

    return Path(cmeel.__file__).parents[1] / "cmeel.prefix" / "share" / "example-robot-data" / "robots"


def robot_files() -> dict[str, Path]:
    """Every URDF file of example-robot-data, by its name; those that are named alike have their folder's too."""
    found: dict[str, Path] = {}
    for path in sorted(_folder().rglob("*.urdf")):
        name = path.stem if path.stem not in found else f"{path.parents[1].name.partition('_desc')[0]}/{path.stem}"
        found[name] = path
    return found


def _from_urdf(name: str, file: str, *, root: Any = "fixed", locked: tuple[str, ...] = ()) -> Robot:
    def make(snapping: float) -> cd.Model:
        if not locked:
            return cd.load(_folder() / file, root=root, gravity=GRAVITY, snapping=snapping, damping=False)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / Path(file).name
            path.write_bytes(_with_fixed(_folder() / file, locked))
            return cd.load(path, root=root, gravity=GRAVITY, snapping=snapping, damping=False)

    def make_pinocchio() -> Any:
        import pinocchio as pin

        free = (pin.JointModelFreeFlyer(),) if root == "free" else ()
        model = pin.buildModelFromUrdf(str(_folder() / file), *free)
        if not locked:
            return model
        return pin.buildReducedModel(model, [model.getJointId(joint) for joint in locked], pin.neutral(model))

    return Robot(name, make, make_pinocchio)


def _with_fixed(path: Path, joints: tuple[str, ...]) -> bytes:
    """The file with these joints made fixed at zero."""
    root = ElementTree.parse(path).getroot()
    for joint in root.iter("joint"):
        if joint.get("name") in joints:
            joint.set("type", "fixed")
            for part in ("limit", "mimic", "dynamics", "axis"):
                for element in joint.findall(part):
                    joint.remove(element)
    return ElementTree.tostring(root)


@dataclass(frozen=True)
class Link:
    """One body of a chain: placement of its hinge on the previous body, and its inertia about the centre of mass."""

    rotation: np.ndarray
    position: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray


@cache
def _links(n: int) -> tuple[Link, ...]:
    """Hinges about z at random placements, and bodies with the inertia of random boxes."""
    rng = np.random.default_rng(20)
    links = []
    for _ in range(n):
        rotation, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        rotation *= np.sign(np.linalg.det(rotation))
        axes, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        mass, sides = rng.uniform(0.5, 1.5), rng.uniform(0.1, 0.4, 3)
        principal = mass / 12 * ((sides**2).sum() - sides**2)
        inertia = axes @ np.diag(principal) @ axes.T
        place, com = rng.uniform(-0.3, 0.3, (2, 3))
        links.append(Link(rotation, place, float(mass), com, (inertia + inertia.T) / 2))
    return tuple(links)


def chain(n: int) -> Robot:
    """A serial chain of n bodies joined by hinges."""

    def make(snapping: float) -> cd.Model:
        m = cd.Mechanism(f"chain {n}", gravity=GRAVITY)
        parent = m.ground
        for k, link in enumerate(_links(n)):
            body = m.body(f"body{k}", mass=link.mass, com=link.com, inertia=link.inertia)
            m.joint(f"joint{k}", cd.Revolute(axis=(0, 0, 1)), parent, body, at=_pose(link))
            parent = body
        return m.build(snapping=snapping)

    return Robot(f"chain {n}", make, (lambda: _chain_pinocchio(n)) if n <= LONGEST_IN_PINOCCHIO else None)


def _pose(link: Link) -> cd.Pose:
    return cd.Pose(rotation=link.rotation, position=link.position)


def _chain_pinocchio(n: int) -> Any:
    import pinocchio as pin

    model, joint = pin.Model(), 0
    for k, link in enumerate(_links(n)):
        joint = model.addJoint(joint, pin.JointModelRZ(), pin.SE3(link.rotation, link.position), f"joint{k}")
        model.appendBodyToJoint(joint, pin.Inertia(link.mass, link.com, link.inertia), pin.SE3.Identity())
    return model


def _chain_mujoco(n: int) -> Any:
    import mujoco

    spec = empty_mujoco()
    body = spec.worldbody
    for link in _links(n):
        body = add_body(body, link)
        body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 0, 1])
    return spec.compile()


def _as_mujoco(model: Any) -> Any:
    """Pinocchio's model, link by link; bodies that are welded in the file are one body in both."""
    import mujoco

    spec = empty_mujoco()
    bodies = [spec.worldbody]
    for k in range(1, model.njoints):
        at, inertia = model.jointPlacements[k], model.inertias[k]
        link = Link(at.rotation, at.translation, inertia.mass, inertia.lever, inertia.inertia)
        body = add_body(bodies[model.parents[k]], link)
        if model.joints[k].nv == 6:
            body.add_freejoint()
        else:
            axis = model.joints[k].createData().S[3:].ravel()
            body.add_joint(type=mujoco.mjtJoint.mjJNT_HINGE, axis=axis)
        bodies.append(body)
    return spec.compile()


def empty_mujoco() -> Any:
    """An empty model with gravity."""
    import mujoco

    spec = mujoco.MjSpec()
    spec.option.gravity = GRAVITY
    spec.compiler.degree = False
    spec.compiler.balanceinertia = True
    return spec


def add_body(parent: Any, link: Link) -> Any:
    """Add a child body with the placement and inertia of a link."""
    import mujoco

    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(link.rotation).ravel())
    I = link.inertia
    body = parent.add_body(pos=link.position, quat=quaternion)
    body.mass, body.ipos, body.explicitinertial = link.mass, link.com, True
    body.fullinertia = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
    return body
