"""Random trees built in Cardan and in Pinocchio: the same dynamics to 1e-10."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd
from cardan.mechanisms import random_inertia

from ..trees import close, random_pose, seeds, state

pin = pytest.importorskip("pinocchio")

KINDS = ("revolute", "prismatic", "spherical", "free")
TREES = 3
every_tree = pytest.mark.parametrize("number", range(TREES))
few = settings(max_examples=5)


def se3(pose: cd.Pose) -> Any:
    return pin.SE3(np.array(pose.rotation), np.array(pose.position))


class Twins:
    """One random tree in both; q and v go from Cardan's order to Pinocchio's by index.

    Pinocchio writes quaternions (x, y, z, w) and a free joint's twist linear part first.
    """

    def __init__(self, seed: int, bodies: int = 6) -> None:
        rng = np.random.default_rng([11, seed])
        m = cd.Mechanism(f"twins {seed}", gravity=rng.uniform(-10, 10, 3))
        self.pin = pin.Model()
        self.pin.gravity.linear = np.array(m.gravity)
        self.q_index: list[int] = []
        self.v_index: list[int] = []
        self.placement: list[Any] = []  # of each body in its joint's frame
        path = [-1]  # the next body hangs on the last one or one above it: Pinocchio wants subtrees in one piece
        for k in range(bodies):
            kind = KINDS[-1] if k == 0 and seed != 1 else KINDS[int(rng.integers(3))]
            path = path[: int(rng.integers(max(1, len(path) - 2), len(path) + 1))]
            self._add(m, k, path[-1], kind, rng)
            path.append(k)
        tool = random_pose(rng)
        m.frame("tool", f"b{bodies - 1}", at=tool)
        at = self.placement[-1] * se3(tool)
        self.tool = self.pin.addFrame(pin.Frame("tool", bodies, 0, at, pin.FrameType.OP_FRAME))
        self.model = m.build()
        self.data = self.pin.createData()

    def _add(self, m: cd.Mechanism, k: int, near: int, kind: str, rng: np.random.Generator) -> None:
        at, child_at, axis = random_pose(rng), random_pose(rng), rng.standard_normal(3)
        mass, com, I = rng.uniform(0.5, 2), rng.uniform(-0.5, 0.5, 3), random_inertia(rng)
        types = {
            "revolute": (cd.Revolute(axis=axis), lambda: pin.JointModelRevoluteUnaligned(axis / np.linalg.norm(axis))),
            "prismatic": (
                cd.Prismatic(axis=axis),
                lambda: pin.JointModelPrismaticUnaligned(axis / np.linalg.norm(axis)),
            ),
            "spherical": (cd.Spherical(), pin.JointModelSpherical),
            "free": (cd.Free(), pin.JointModelFreeFlyer),
        }
        ours, theirs = types[kind]
        m.body(f"b{k}", mass=mass, com=com, inertia=I)
        m.joint(f"j{k}", ours, m.ground if near < 0 else f"b{near}", f"b{k}", at=at, child_at=child_at)
        frame = se3(at) if near < 0 else self.placement[near] * se3(at)
        joint = self.pin.addJoint(near + 1, theirs(), frame, f"j{k}")
        self.placement.append(se3(child_at.inverse))
        self.pin.appendBodyToJoint(joint, pin.Inertia(mass, com, I), self.placement[-1])
        q, v = len(self.q_index), len(self.v_index)
        quaternion = [1, 2, 3, 0]
        self.q_index += {
            "spherical": [q + i for i in quaternion],
            "free": [q, q + 1, q + 2, *(q + 3 + i for i in quaternion)],
        }.get(kind, [q])
        self.v_index += {"spherical": [v, v + 1, v + 2], "free": [v + i for i in (3, 4, 5, 0, 1, 2)]}.get(kind, [v])

    def theirs(self, q: np.ndarray, *rates: np.ndarray) -> tuple[np.ndarray, ...]:
        return (q[self.q_index], *(v[self.v_index] for v in rates))

    def ours(self, v: np.ndarray) -> np.ndarray:
        """A vector over v in Cardan's order."""
        result = np.empty_like(v)
        result[self.v_index] = v
        return result

    def ours_square(self, M: np.ndarray) -> np.ndarray:
        result = np.empty_like(M)
        result[np.ix_(self.v_index, self.v_index)] = M
        return result

    def forces(self, wrenches: np.ndarray) -> Any:
        """Wrenches on bodies as forces on joints."""
        result = pin.StdVec_Force()
        result.append(pin.Force.Zero())
        for placement, w in zip(self.placement, wrenches, strict=True):
            result.append(placement.act(pin.Force(w[3:], w[:3])))
        return result


@cache
def twins(number: int) -> Twins:
    return Twins(number)


def symmetric(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


def test_the_trees_hold_every_kind() -> None:
    kinds = {joint.kind.name for number in range(TREES) for joint in twins(number).model.joints}
    assert kinds == set(KINDS)


@every_tree
@given(seed=seeds)
@few
def test_aba_and_rnea_with_and_without_wrenches(number: int, seed: int) -> None:
    t = twins(number)
    q, v, tau, wrenches = state(t.model, seed)
    pq, pv, ptau = t.theirs(q, v, tau)
    force = t.forces(wrenches)
    close(cd.forward_dynamics(t.model, q, v, tau), t.ours(pin.aba(t.pin, t.data, pq, pv, ptau)))
    close(cd.inverse_dynamics(t.model, q, v, tau), t.ours(pin.rnea(t.pin, t.data, pq, pv, ptau)))
    loaded = t.ours(pin.aba(t.pin, t.data, pq, pv, ptau, force))
    close(cd.forward_dynamics(t.model, q, v, tau, wrenches=wrenches), loaded)
    loaded = t.ours(pin.rnea(t.pin, t.data, pq, pv, ptau, force))
    close(cd.inverse_dynamics(t.model, q, v, tau, wrenches=wrenches), loaded)
    close(cd.bias_force(t.model, q, v), t.ours(pin.nonLinearEffects(t.pin, t.data, pq, pv)))
    close(cd.gravity_force(t.model, q), t.ours(pin.computeGeneralizedGravity(t.pin, t.data, pq)))


@every_tree
@given(seed=seeds)
@few
def test_mass_matrix_its_inverse_and_Coriolis_forces(number: int, seed: int) -> None:
    t = twins(number)
    q, v, *_ = state(t.model, seed)
    pq, pv = t.theirs(q, v)
    close(cd.mass_matrix(t.model, q), t.ours_square(symmetric(pin.crba(t.pin, t.data, pq))))
    close(cd.inverse_mass_matrix(t.model, q), t.ours_square(symmetric(pin.computeMinverse(t.pin, t.data, pq))))
    C = pin.computeCoriolisMatrix(t.pin, t.data, pq, pv)
    close(cd.coriolis_matrix(t.model, q, v) @ v, t.ours(C @ pv))


@every_tree
@given(seed=seeds)
@few
def test_energy_momentum_and_centre_of_mass(number: int, seed: int) -> None:
    t = twins(number)
    q, v, *_ = state(t.model, seed)
    pq, pv = t.theirs(q, v)
    close(cd.center_of_mass(t.model, q), pin.centerOfMass(t.pin, t.data, pq))
    h = pin.computeCentroidalMomentum(t.pin, t.data, pq, pv)
    close(cd.centroidal_momentum(t.model, q, v), np.concatenate([h.angular, h.linear]))
    close(cd.kinetic_energy(t.model, q, v), pin.computeKineticEnergy(t.pin, t.data, pq, pv))
    close(cd.potential_energy(t.model, q), pin.computePotentialEnergy(t.pin, t.data, pq))


@every_tree
@given(seed=seeds)
@few
def test_poses_and_frame_Jacobians(number: int, seed: int) -> None:
    t = twins(number)
    q, v, *_ = state(t.model, seed)
    pq, _ = t.theirs(q, v)
    pin.computeJointJacobians(t.pin, t.data, pq)
    pin.updateFramePlacements(t.pin, t.data)
    close(cd.frame_pose(t.model, q, "tool"), t.data.oMf[t.tool].homogeneous)
    for k, pose in enumerate(cd.body_poses(t.model, q)):
        close(pose, (t.data.oMi[k + 1] * t.placement[k]).homogeneous)
    for axes, frame in (("body", pin.LOCAL), ("ground", pin.LOCAL_WORLD_ALIGNED)):
        J = pin.getFrameJacobian(t.pin, t.data, t.tool, frame)[[3, 4, 5, 0, 1, 2]]
        close(cd.jacobian(t.model, q, "tool", axes=axes), np.array([t.ours(row) for row in J]))
