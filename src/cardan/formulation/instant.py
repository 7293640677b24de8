"""An instant: time and state of a mechanism as symbols, with all that a user's expression may read of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.free_number import expression, scalar
from cardan.algebra.matrix import Matrix, Scalar, constant
from cardan.algebra.rotation import cross
from cardan.errors import UnknownNameError, nearest
from cardan.formulation.kinematics import MOTION
from cardan.formulation.recursion import run
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.model.values import one


@dataclass(frozen=True)
class Instant:
    """Time and state of the mechanism as symbols, for expressions of the user: events, rates of variables.

    Time `t` is in s, coordinates `q` (nq,) in rad and m, rates `v` (nv,) in rad/s and m/s. Free parameters are read by
    name: `s["spring.stiffness"]`.
    """

    model: Model
    t: Scalar
    q: Matrix
    v: Matrix

    def __getitem__(self, name: str) -> Matrix:
        """A free parameter or variable by name: a scalar, or a column of all its numbers."""
        import casadi as ca

        free = self.model.free_numbers
        if name not in free:
            raise UnknownNameError(f"parameter {name!r} is not free{nearest(name, free)}")
        return ca.vertcat(*(ca.SX(expression(scalar(x))) for x in np.ravel(free[name])))

    def coordinate(self, joint: str) -> Matrix:
        """Coordinates of a tree joint."""
        return self.q[self.model.q_slice(joint)]

    def rate(self, joint: str) -> Matrix:
        """Rates of a tree joint."""
        return self.v[self.model.v_slice(joint)]

    def position(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Matrix:
        """Position (3,) of a point of a body or frame, in ground components, m."""
        link, pose = self.model.placement(body)
        at = constant(pose.position + pose.rotation @ one("position", "point", point, 3))
        node = self._node(link)
        return at if node is None else node.r0 + node.R @ at

    def velocity(self, body: str, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Matrix:
        """Velocity (3,) of a point of a body or frame, in ground components, m/s."""
        link, pose = self.model.placement(body)
        at = constant(pose.position + pose.rotation @ one("velocity", "point", point, 3))
        node = self._node(link)
        if node is None:
            return at * 0
        return node.R @ (node.v[3:] + cross(node.v[:3], at))

    def _node(self, link: int) -> Any:
        if link == GROUND:
            return None
        return run(MOTION, self.model, {"q": self.q, "v": self.v}).links[link]
