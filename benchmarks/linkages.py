"""Closed mechanisms in Cardan and in Pinocchio: the same tree, the same joints cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import cardan as cd
from cardan import mechanisms

ASSEMBLED = 64  # states that are assembled; a batch repeats their positions
CLOSED = 1e-14  # m and rad; a larger gap would make the accelerations of the two programs differ
SPREAD = 0.2  # rad and m, of the guesses around the start
PROXIMAL = (
    1e-14,
    1e-14,
    1,
)  # accuracy, mu, iterations: one iteration is the least work; mu = 0 fails on a row of zeros


@dataclass(frozen=True)
class Pinocchio:
    """Arguments of `pin.constraintDynamics` other than the state."""

    model: Any
    data: Any
    constraints: Any
    constraint_data: Any
    settings: Any

    @property
    def rest(self) -> tuple[Any, ...]:
        """The arguments that follow the state."""
        return self.constraints, self.constraint_data, self.settings


@dataclass(frozen=True)
class Linkage:
    """A mechanism with closed loops, in each program."""

    name: str
    make: Callable[[], cd.Mechanism]

    @cached_property
    def model(self) -> cd.Model:
        """Cardan's model."""
        return self.make().build()

    @cached_property
    def _assembled(self) -> tuple[np.ndarray, np.ndarray]:
        rng, model = np.random.default_rng(3), self.model
        moves = SPREAD * rng.standard_normal((ASSEMBLED, model.nv))
        guess = cd.plus(model, np.tile(model.start(), (ASSEMBLED, 1)), moves)
        return cd.assemble(model, guess, rng.standard_normal((ASSEMBLED, model.nv)), tolerance=CLOSED)

    def states(self, batch: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Consistent q and v, and random tau: the assembled states repeated, with v scaled by random numbers."""
        rng = np.random.default_rng(4)
        q, v = (np.resize(array, (batch, array.shape[1])) for array in self._assembled)
        return q, v * rng.uniform(0.5, 1.5, (batch, 1)), rng.standard_normal(v.shape)

    @cached_property
    def pinocchio(self) -> Pinocchio:
        """Pinocchio's model of the tree and a point contact for each cut joint.

        For a ball joint this is the joint itself. For a hinge of a planar loop it constrains the two directions in the
        plane, and a third in which nothing moves: fewer rows than the five of a hinge, and the same motion.
        """
        import pinocchio as pin

        model, joints = pin.Model(), {-1: 0}
        model.gravity.linear = np.array(self.model.gravity)
        links = self.model.tree.links
        for i in self._depth_first:
            link = links[i]
            at = pin.SE3(np.array(link.E).T, np.array(link.r))
            name = self.model.joints[link.joint].name
            joints[i] = model.addJoint(joints[link.parent], _pinocchio_joint(link.kind.name), at, name)
            own = pin.Inertia(link.mass, np.array(link.com), np.array(link.I_C))
            model.appendBodyToJoint(joints[i], own, pin.SE3.Identity())
        constraints, data = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for joint in (self.model.joints[j] for j in self.model.cuts):
            ends = []
            for body, at in ((joint.parent, joint.at), (joint.child, joint.child_at)):
                pose = at if body < 0 else self.model.tree.body_pose[body] @ at
                link_of = -1 if body < 0 else self.model.tree.body_link[body]
                ends += [joints[link_of], pin.SE3(np.array(pose.rotation), np.array(pose.position))]
            kind = pin.ContactType.CONTACT_3D
            constraints.append(pin.RigidConstraintModel(kind, model, *ends, pin.ReferenceFrame.LOCAL))
        for constraint in constraints:
            data.append(constraint.createData())
        own_data = model.createData()
        pin.initConstraintDynamics(model, own_data, constraints, data)
        return Pinocchio(model, own_data, constraints, data, pin.ProximalSettings(*PROXIMAL))

    def pinocchio_calls(self, *arrays: np.ndarray) -> list[tuple[Any, ...]]:
        """Arguments of `pin.constraintDynamics`, a tuple a state."""
        q_order, v_order = self._orders
        columns = [array[:, q_order if k == 0 else v_order] for k, array in enumerate(arrays)]
        p = self.pinocchio
        return [(p.model, p.data, *(np.array(x) for x in state), *p.rest) for state in zip(*columns, strict=True)]

    def from_pinocchio(self, accelerations: np.ndarray) -> np.ndarray:
        """Accelerations (..., nv) in Cardan's order."""
        return accelerations[..., np.argsort(self._orders[1])]

    @cached_property
    def _depth_first(self) -> list[int]:
        """Links in depth-first order, as Pinocchio requires."""
        children: dict[int, list[int]] = {}
        for i, link in enumerate(self.model.tree.links):
            children.setdefault(link.parent, []).append(i)
        order, left = [], children.get(-1, [])[::-1]
        while left:
            i = left.pop()
            order.append(i)
            left += children.get(i, [])[::-1]
        return order

    @cached_property
    def _orders(self) -> tuple[list[int], list[int]]:
        """Indices of Pinocchio's q and v in Cardan's: its joints are depth first, its quaternions xyzw."""
        q_order, v_order = [], []
        for i in self._depth_first:
            link = self.model.tree.links[i]
            q = list(range(link.q.start, link.q.stop))
            q_order += q[1:] + q[:1] if link.kind.name == "spherical" else q
            v_order += range(link.v.start, link.v.stop)
        return q_order, v_order


def _pinocchio_joint(kind: str) -> Any:
    import pinocchio as pin

    x, y, _ = np.eye(3)
    make = {
        "revolute": pin.JointModelRZ,
        "prismatic": pin.JointModelPZ,
        "spherical": pin.JointModelSpherical,
        "universal": lambda: pin.JointModelUniversal(x, y),
    }
    return make[kind]()


def linkages() -> list[Linkage]:
    """The two mechanisms of the comparison."""
    return [Linkage("four-bar", mechanisms.four_bar), Linkage("Stewart platform", mechanisms.stewart_platform)]


def one_joint() -> tuple[Any, ...]:
    """Arguments of the smallest call of `pin.constraintDynamics`: one hinge, no constraint."""
    import pinocchio as pin

    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "joint")
    model.appendBodyToJoint(joint, pin.Inertia(1.0, np.ones(3), np.eye(3)), pin.SE3.Identity())
    data, none = model.createData(), (pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData())
    pin.initConstraintDynamics(model, data, *none)
    return model, data, *(np.zeros(1) for _ in range(3)), *none, pin.ProximalSettings(*PROXIMAL)


def windows(n: int, *, thick: bool = False) -> cd.Mechanism:
    """`n_four_bar(n)`; `thick` gives the rods a moment of inertia about their axes, which has no effect."""
    if not thick:
        return mechanisms.n_four_bar(n)
    m = cd.Mechanism(f"thick_n_four_bar_{n}", gravity=(0, -9.81, 0))
    for i in range(n + 1):
        m.body(f"upright{i}", mass=1.0, com=(0, 0.5, 0), inertia=(1 / 12, THICK, 1 / 12))
        m.joint(f"A{i}", cd.Revolute(axis=(0, 0, -1)), m.ground, f"upright{i}", at=(i, 0, 0))
    for i in range(n):
        m.body(f"level{i}", mass=1.0, com=(0.5, 0, 0), inertia=(THICK, 1 / 12, 1 / 12))
        m.joint(f"B{i}", cd.Revolute(axis=(0, 0, -1)), f"upright{i}", f"level{i}", at=(0, 1, 0))
    for i in range(n):
        ends = {"at": (1, 0, 0), "child_at": (0, 1, 0)}
        m.joint(f"C{i + 1}", cd.Revolute(axis=(0, 0, -1)), f"level{i}", f"upright{i + 1}", **ends)
    return m


THICK = 1e-3  # kg m^2


def window_states(model: cd.Model, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles and rates of the windows: every upright rod at th, every level rod at -th relative to it; not singular."""
    rng = np.random.default_rng(5)
    sign = np.array([1.0 if model.joints[link.joint].name.startswith("A") else -1.0 for link in model.tree.links])
    return rng.uniform(-1, 1, (batch, 1)) * sign, rng.standard_normal((batch, 1)) * sign


def window_accelerations(n: int, q: np.ndarray) -> np.ndarray:
    """Accelerations by the closed-form equation without drives: `th'' = c sin th`."""
    return 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n) * np.sin(q)
