"""A joint kind and force elements that only tests define: a bead on a bent wire, pulled by elements of a user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import cardan as cd
from cardan.algebra.matrix import matrix, stack, vector
from cardan.model.force import TORSION, Force, ForceKind
from cardan.model.joint import JointType, Kind

CURVATURE = 0.8  # 1/m


def _no_turn(R: Any) -> Any:
    return vector(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]) / 2


WIRE = Kind(
    "wire", 1, 1, (0.0,), E=None, r=lambda q: vector(q[0], 0, CURVATURE * q[0] ** 2 / 2),
    S=lambda q: matrix([[0], [0], [0], [1], [0], [CURVATURE * q[0]]]),
    bias=lambda q, v: vector(0, 0, 0, 0, 0, CURVATURE * v[0] ** 2),
    T=lambda q: matrix([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0],
                        [0, 0, 0, 0, -CURVATURE * q[0]], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]),
    phi=lambda R, p: stack(_no_turn(R), vector(p[1], p[2] - CURVATURE * p[0] ** 2 / 2)),
    plus=lambda q, v: q + v, measure=lambda R, p: p[:1], q_units=("m",), v_units=("m/s",),
)  # fmt: skip
"""The joint of docs/extending.md: the child slides along the parabola `z = CURVATURE x^2 / 2`."""


def _pull(f: Force, t: Any, poses: Any, twists: Any) -> list[Any]:
    """A constant force along the ground's x axis on each body."""
    return [stack(vector(0, 0, 0), pose.rotation.T @ vector(f["size"], 0, 0)) for pose in poses]


PULL = ForceKind("pull", "bodies", _pull)
ON_JOINT = replace(TORSION, name="own torsion", mark="element")


def bead(kind: Kind = WIRE) -> cd.Mechanism:
    """A bead on a wire with a bar hinged to it, pulled on one body and between two, with an element on the joint."""

    @dataclass(frozen=True)
    class Own(JointType):
        pass

    Own.kind = kind  # type: ignore[assignment, method-assign]
    m = cd.Mechanism("bead", gravity=(0, 0, -9.81))
    m.body("bead", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    m.body("bar", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    m.joint("wire", Own(), m.ground, "bead")
    m.joint("hinge", cd.Revolute(axis=(0, 1, 0)), "bead", "bar", start=0.3)
    m._force(PULL, "pull", (1,), size=0.5)
    m._force(PULL, "two pulls", (0, 1), size=0.1, at1=np.zeros(3), at2=np.array([0, 0, -1.0]))
    m._force(ON_JOINT, "own torsion", (0,), stiffness=np.ones(1), rest=np.zeros(1), damping=np.zeros(1))
    return m
