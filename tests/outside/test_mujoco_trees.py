"""Random trees built in Cardan and, as MJCF, in MuJoCo: mass matrix, bias force and accelerations to 1e-10."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

import cardan as cd
from cardan.mechanisms import random_inertia

from ..trees import close, random_pose, seeds, state

mujoco = pytest.importorskip("mujoco")

JOINTS = {"hinge": cd.Revolute, "slide": cd.Prismatic, "ball": cd.Spherical, "free": cd.Free}
TREES = 3


def digits(*values: float) -> str:
    return " ".join(repr(float(x)) for x in values)


class Twins:
    """One random tree in both.

    MuJoCo puts a joint in its child at the reference pose, orders joints depth first, and gives the linear velocity of
    a free joint in ground components.
    """

    def __init__(self, seed: int, bodies: int = 6) -> None:
        rng = np.random.default_rng([12, seed])
        m = cd.Mechanism(f"twins {seed}", gravity=rng.uniform(-10, 10, 3))
        inside: dict[int, list[int]] = {}
        text: dict[int, str] = {}
        for k in range(bodies):
            near = int(rng.integers(0 if seed == 0 else -1, k)) if k else -1
            kind = "free" if near < 0 and seed != 1 else ("hinge", "slide", "ball")[int(rng.integers(3))]
            inside.setdefault(near, []).append(k)
            text[k] = self._add(m, k, near, kind, rng)
        self.model = m.build()

        def nested(k: int) -> str:
            return f"{text[k]}{''.join(map(nested, inside.get(k, ())))}</body>"

        xml = (
            f'<mujoco><compiler angle="radian"/><option gravity="{digits(*m.gravity)}"/>'
            f"<worldbody>{''.join(map(nested, inside[-1]))}</worldbody></mujoco>"
        )
        self.mujoco = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.mujoco)
        self.slots = [(link, self.mujoco.joint(self.model.joints[link.joint].name)) for link in self.model.tree.links]

    def _add(self, m: cd.Mechanism, k: int, near: int, kind: str, rng: np.random.Generator) -> str:
        axis = rng.standard_normal(3)
        at = cd.Pose() if kind == "free" else random_pose(rng)
        child_at = cd.Pose() if kind == "free" else cd.Pose(rng.uniform(-0.5, 0.5, 3))
        mass, com, I = rng.uniform(0.5, 2), rng.uniform(-0.5, 0.5, 3), random_inertia(rng)
        m.body(f"b{k}", mass=mass, com=com, inertia=I)
        type = JOINTS[kind](axis=axis) if kind in ("hinge", "slide") else JOINTS[kind]()
        m.joint(f"j{k}", type, m.ground if near < 0 else f"b{near}", f"b{k}", at=at, child_at=child_at)
        pose = at @ child_at.inverse
        full = digits(I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        directed = f' axis="{digits(*axis)}"' if kind in ("hinge", "slide") else ""
        placed = "" if kind == "free" else f' pos="{digits(*child_at.position)}"'
        return (
            f'<body pos="{digits(*pose.position)}" quat="{digits(*pose.quaternion)}">'
            f'<joint name="j{k}" type="{kind}"{placed}{directed}/>'
            f'<inertial pos="{digits(*com)}" mass="{digits(mass)}" fullinertia="{full}"/>'
        )

    def set(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give MuJoCo the state; return the matrix with `qvel = B v`, and `Bdot v`."""
        B, Bdot_v = np.zeros((self.model.nv, self.model.nv)), np.zeros(self.model.nv)
        for link, joint in self.slots:
            rows = slice(int(joint.dofadr[0]), int(joint.dofadr[0]) + link.kind.nv)
            start = int(joint.qposadr[0])
            self.data.qpos[start : start + link.kind.nq] = q[link.q]
            block, own = np.eye(link.kind.nv), v[link.v]
            if link.kind.name == "free":
                R = cd.Pose(quaternion=q[link.q][3:]).rotation
                block = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
                Bdot_v[rows][:3] = R @ np.cross(own[:3], own[3:])
            B[rows, link.v] = block
        self.data.qvel[:] = B @ v
        return B, Bdot_v


@cache
def twins(number: int) -> Twins:
    return Twins(number)


def full_mass_matrix(t: Twins) -> np.ndarray:
    """Column by column, which every version of MuJoCo spells alike."""
    columns = []
    for unit in np.eye(t.model.nv):
        column = np.zeros(t.model.nv)
        mujoco.mj_mulM(t.mujoco, t.data, column, unit)
        columns.append(column)
    return np.array(columns).T


def test_the_trees_hold_every_kind() -> None:
    kinds = {joint.kind.name for number in range(TREES) for joint in twins(number).model.joints}
    assert kinds == {"revolute", "prismatic", "spherical", "free"}


@pytest.mark.parametrize("number", range(TREES))
@given(seed=seeds)
@settings(max_examples=5)
def test_mass_matrix_bias_and_accelerations(number: int, seed: int) -> None:
    t = twins(number)
    q, v, tau, _ = state(t.model, seed)
    B, Bdot_v = t.set(q, v)
    t.data.qfrc_applied[:] = np.linalg.solve(B.T, tau)
    mujoco.mj_forward(t.mujoco, t.data)
    M = full_mass_matrix(t)
    close(cd.mass_matrix(t.model, q), B.T @ M @ B)
    close(cd.bias_force(t.model, q, v), B.T @ (t.data.qfrc_bias + M @ Bdot_v))
    close(cd.forward_dynamics(t.model, q, v, tau), np.linalg.solve(B, t.data.qacc - Bdot_v))
