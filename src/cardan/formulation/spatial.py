"""Dynamics of a tree with 6-D vectors, Featherstone's algorithms.

Notation: all of a body's vectors in its own frame. `X` takes motion vectors from the parent p to the body b; `S` spans the
joint's motion, `vJ = S qd`, `cJ = Sdot qd`; `v`, `a` velocity and acceleration, `I` inertia, `f` force across the joint,
`fx` external force; `IA`, `pA` articulated inertia and bias force; `IC` composite inertia.

Source: RBDA tables 5.1, 6.2 and 7.1; F6 for the articulated inertia; FX for energy and momentum; the Coriolis
matrix after Echeandia and Wensing (2021). Equations: F6(3), F6(5), F6(6), F6(7); FX(C1).
"""

from __future__ import annotations

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, as_graph, dot, mirrored, outer, stack, zeros
from cardan.algebra.spatial import Transform, annihilating, crf, crf_bar, crm, kinetic_energy, shifted, turned
from cardan.formulation.recursion import (
    GENERAL6,
    SCALAR,
    SYMMETRIC6,
    VECTOR6,
    Node,
    Output,
    Pass,
    Recursion,
)
from cardan.model.transform import joint_transform


def jcalc(b: Node) -> None:
    """Joint transform, motion subspace and rates (RBDA table 5.1, jcalc)."""
    b.X = joint_transform(b.kind, b.q, b.E, b.r)
    b.S = as_graph(b.kind.S(b.q), b.q)


def velocity(b: Node, p: Node) -> None:
    """Outwards: velocities, and the part of the acceleration that they cause."""
    jcalc(b)
    vJ = b.S @ b.qd
    b.v = b.X @ p.v + vJ
    b.c = crm(b.v) @ vJ
    if b.kind.bias is not None:
        b.c = b.c + b.kind.bias(b.q, b.qd)


# Inverse dynamics: the recursive Newton-Euler algorithm, RBDA table 5.1 -----------------------------------------


def newton_euler_out(b: Node, p: Node) -> None:
    """Outwards: accelerations, and the force each body needs."""
    velocity(b, p)
    b.a = b.X @ p.a + b.S @ b.qdd + b.c
    b.f = b.I @ b.a + crf(b.v) @ (b.I @ b.v)


def newton_euler_in(b: Node, p: Node) -> None:
    """Inwards: each joint carries its body and all beyond."""
    b.tau = b.S.T @ b.f
    p.f = p.f + b.X.T @ b.f


# Forward dynamics: the articulated-body algorithm, RBDA table 7.1 ------------------------------------------------


def articulated_out(b: Node, p: Node) -> None:
    """Outwards: velocities, and the bodies as if they were free."""
    velocity(b, p)
    b.IA = b.I
    b.pA = crf(b.v) @ (b.I @ b.v)


def articulated_in(b: Node, p: Node) -> None:
    """Inwards: what a body shows its parent through the joint. With one body beyond, this is F6(7)."""
    b.U = b.IA @ b.S
    b.D = ldl_factor(b.S.T @ b.U)
    b.u = b.tau - b.S.T @ b.pA
    Ia = annihilating(mirrored(b.IA - b.U @ ldl_solve(b.D, b.U.T)), b.S)  # F6(7): I2 - I2 s s^T I2 / (s^T I2 s)
    pa = b.pA + Ia @ b.c + b.U @ ldl_solve(b.D, b.u)
    p.IA = p.IA + b.X.congruence(Ia)  # F6(7): I1 + ...
    p.pA = p.pA + b.X.T @ pa


def articulated_acceleration(b: Node, p: Node) -> None:
    """Outwards again: joint accelerations, then body accelerations."""
    a = b.X @ p.a + b.c
    b.qdd = ldl_solve(b.D, b.u - b.U.T @ a)  # F6(6)
    b.a = a + b.S @ b.qdd  # F6(3)
