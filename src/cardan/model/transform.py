"""The transform across one joint of the tree: constant placement first, then the joint's own motion.

Notation: `X = turned(E_J) shifted(r_J) turned(E_T) shifted(r_T)` (RBDA section 4.1, `X = XJ XT`). The factors are
kept apart: applied one after the other they cost less than their product, which has few zeros.
"""

from __future__ import annotations

from typing import Any

from cardan.algebra.matrix import AnyMatrix, Matrix, as_graph
from cardan.algebra.spatial import Transform, shifted, turned
from cardan.model.joint import Kind


def configuration_rate(kind: Kind, q: Matrix, v: Matrix) -> Matrix:
    """Rate `qdot = N(q) v` of one joint, as a graph: the derivative of `plus` along v."""
    import casadi as ca

    start = ca.SX.sym("start", kind.nv)
    return ca.substitute(ca.jtimes(kind.plus(q, start), start, v), start, ca.SX.zeros(kind.nv))


def joint_transform(kind: Kind, q: AnyMatrix, E: AnyMatrix, r: AnyMatrix) -> Transform[AnyMatrix]:
    """Motion transform from the parent link to this link; `E`, `r` are the joint's placement in the parent."""
    turn: tuple[Any, ...] = () if kind.E is None else (turned(kind.E(q)),)
    shift: tuple[Any, ...] = () if kind.r is None else (shifted(as_graph(kind.r(q), q)),)
    return Transform((*turn, *shift, turned(E), shifted(r)))
