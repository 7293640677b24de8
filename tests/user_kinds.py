"""A joint kind and force elements that only tests define: a bead on a bent wire, pulled by elements of a user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar

import casadi as ca

import cardan as cd
from cardan.algebra.matrix import matrix, stack, vector
from cardan.model.field import VECTOR
from cardan.model.force import TORSION, Force

CURVATURE = 0.8  # 1/m


def _no_turn(R: Any) -> Any:
    """Zero where the axes coincide; its rate is then the angular velocity in M's axes."""
    return vector(R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]) / 2


@cache
def wire(k: float) -> cd.Kind:
    """The joint of docs/extending.md: the child slides along the parabola `z = k x^2 / 2` and does not turn."""
    return cd.Kind(
        "wire", 1, 1, (0.0,), E=None, r=lambda q: vector(q[0], 0, k * q[0] ** 2 / 2),
        S=lambda q: matrix([[0], [0], [0], [1], [0], [k * q[0]]]),
        bias=lambda q, v: vector(0, 0, 0, 0, 0, k * v[0] ** 2),
        T=lambda q: matrix([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0],
                            [0, 0, 0, 0, -k * q[0]], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]),
        phi=lambda R, p: stack(_no_turn(R), vector(p[1], p[2] - k * p[0] ** 2 / 2)),
        plus=lambda q, v: q + v, measure=lambda R, p: p[:1], q_units=("m",), v_units=("m/s",),
    )  # fmt: skip


WIRE = wire(CURVATURE)


@dataclass(frozen=True)
class Wire(cd.JointType):
    """A bead on a wire of a curvature (1/m) at its lowest point."""

    curvature: float = CURVATURE

    fields: ClassVar[dict[str, cd.Field]] = {"curvature": cd.Field("m^-1", "curvature of the wire")}

    @property
    def kind(self) -> cd.Kind:
        """Row of the joint table for this curvature."""
        return wire(float(self.curvature))


def _tug(f: Force, t: Any, poses: Any, twists: Any) -> list[Any]:
    """A force of size `size` along the ground's x axis on each body."""
    return [stack(vector(0, 0, 0), pose.rotation.T @ ca.vertcat(f["size"], 0, 0)) for pose in poses]


PULL = cd.ForceKind("pull", "bodies", _tug, fields={"size": cd.Field("N", "size of the force", letter="P")})
BETWEEN = cd.ForceKind(
    "pull between", "bodies", _tug, bodies=2,
    fields={
        "size": cd.Field("N", "size of the force"),
        "at1": cd.Field("m", "point on body1", VECTOR, default=0.0),
        "at2": cd.Field("m", "point on body2", VECTOR, default=0.0),
    },
)  # fmt: skip
ON_JOINT = replace(TORSION, name="own torsion", mark="element")


def _hardening(f: Force, t: Any, q: Any, v: Any) -> Any:
    """A spring whose stiffness grows with the square of its stretch, and a damper that fades with time."""
    x = q - f["rest"]
    return -f["cubic"] * x**3 - f["damping"] * ca.exp(-t) * v


def _hardening_energy(f: Force, q: Any) -> Any:
    x = q - f["rest"]
    return f["cubic"] * x**4 / 4


HARDENING = cd.ForceKind(
    "hardening spring", "joint", _hardening, _hardening_energy, mark="spring",
    fields={
        "cubic": cd.Field("N/m^3", "force for the third power of the stretch", rule="not negative", letter="k_3"),
        "damping": cd.Field("N s/m", "damping at the start", rule="not negative", default=0.0),
        "rest": cd.Field("m", "where it is slack", default=0.0),
    },
)  # fmt: skip


def bead(kind: cd.Kind = WIRE) -> cd.Mechanism:
    """A bead on a wire with a bar hinged to it, pulled on one body and between two, with an element on the joint."""

    @dataclass(frozen=True)
    class Own(cd.JointType):
        pass

    Own.kind = kind  # type: ignore[assignment, method-assign]
    m = cd.Mechanism("bead", gravity=(0, 0, -9.81))
    m.body("bead", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    m.body("bar", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    m.joint("wire", Own(), m.ground, "bead")
    m.joint("hinge", cd.Revolute(axis=(0, 1, 0)), "bead", "bar", start=0.3)
    m.force("pull", PULL, "bar", size=0.5)
    m.force("two pulls", BETWEEN, ("bead", "bar"), size=0.1, at2=(0, 0, -1.0))
    m.force("own torsion", ON_JOINT, "wire", stiffness=1.0)
    return m
