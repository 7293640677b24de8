"""Angles measured from poses are known up to whole turns; counted, they are those near a known configuration."""

from __future__ import annotations

from math import pi

from cardan.algebra.matrix import Matrix, arctan2, cos, dot, sin, stack, where
from cardan.formulation.quantity import Inputs
from cardan.model.joint import Kind
from cardan.model.model import Model

Coordinates = dict[int, tuple[Matrix, Matrix]]


def principal(x: Matrix, period: float = 2 * pi) -> Matrix:
    """`x` less the multiple of the period that brings it nearest to zero."""
    w = 2 * pi / period
    return arctan2(sin(w * x), cos(w * x)) / w


def near(kind: Kind, x: Matrix, about: Matrix) -> Matrix:
    """Of all coordinates of a joint that mean the same as `x`, those nearest to `about`."""
    parts = []
    for k, unit in enumerate(kind.q_units):
        if unit == "rad":
            parts.append(about[k] + principal(x[k] - about[k]))
        elif unit != "1":
            parts.append(x[k])
    if kind.nq != kind.nv:
        e = x[kind.nq - 4 : kind.nq]
        parts.append(e * where(dot(e, about[kind.nq - 4 : kind.nq]) < 0, -1.0, 1.0))
    return stack(*parts) if parts else x


def counted(model: Model, joints: Coordinates, inputs: Inputs) -> Coordinates:
    """Coordinates and rates by joint, those of tree joints near to the configuration `about`, if it is an input."""
    if "about" not in inputs:
        return joints
    at = {link.joint: (link.kind, inputs["about"][link.q]) for link in model.tree.links if link.kind.nq}
    return {j: (near(at[j][0], q, at[j][1]) if j in at else q, qd) for j, (q, qd) in joints.items()}
