"""Armature: inertia of a drive's rotor, added to the joint-space inertia along the joint's own coordinates.

Notation: `A` (nv, nv), diagonal, is a joint's armature. It enters as `M + A`, without gyroscopic effect, and loads the
drive alone: the wrench in the joint is that of the bodies.

    tau = S^T f + A qdd        D = S^T IA S + A        T = ... + qd^T A qd / 2

In the rates `u` of absolute and relative coordinates a joint's `qdd` is `K u' + k`, so `K^T A K` joins `M` and
`-K^T A k` joins `f` (`Rotor`). `points` in the plane refuses it by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cardan.algebra.matrix import Matrix, constant, dot, segment, zeros
from cardan.formulation.recursion import Node
from cardan.model.model import Model


def drive_force(b: Node) -> Matrix | float:
    """What the rotor takes of the drive, `A qdd`."""
    return 0.0 if b.armature is None else b.armature @ b.qdd


def rotor_energy(b: Node) -> Matrix | float:
    """Kinetic energy of the rotor."""
    return 0.0 if b.armature is None else dot(b.qd, b.armature @ b.qd) / 2


def own_columns(b: Node) -> Matrix:
    """`A` as columns (6, nv) of a climb, zeros below; no rows in a model without armature."""
    import casadi as ca

    nv = b.kind.nv
    if b.armature is None:
        return zeros(0, nv, b.I)
    return ca.vertcat(b.armature, zeros(6 - nv, nv, b.I))


def not_carried(columns: Matrix) -> Matrix:
    """Of the columns of `own_columns` nothing reaches the parent."""
    return type(columns)(*columns.shape)


def with_own(j: Node, H: Matrix, columns: Matrix) -> Matrix:
    """A block of the mass matrix, with the armature where the block is the joint's own."""
    return H + columns[: j.kind.nv, :] if columns.shape[0] else H


@dataclass(frozen=True)
class Rotor:
    """Armature `A` (k, k) of a joint whose accelerations are `K u' + rest` in a formulation's own rates."""

    A: Matrix
    K: Matrix
    rest: Matrix


def with_rotors(M: Matrix, f: Matrix, rotors: Sequence[Rotor]) -> tuple[Matrix, Matrix]:
    """Equations `M u' = f` with what the rotors add."""
    for rotor in rotors:
        load = rotor.K.T @ rotor.A
        M, f = M + load @ rotor.K, f - load @ rotor.rest
    return M, f


def less_rotors(model: Model, drives: Mapping[int, Matrix], qdd: Matrix) -> dict[int, Matrix]:
    """Drives of joints, less what their rotors take of them: what loads the joint itself."""
    left = dict(drives)
    for link in model.tree.links:
        if link.armature is not None:
            A = constant(np.diag(link.armature))
            left[link.joint] = left.get(link.joint, zeros(link.kind.nv, None, qdd)) - A @ segment(qdd, link.v)
    return left
