"""An instant: time and state of a mechanism as symbols, with all that a user's expression may read of them.

`Seen` reads them off a `Kinematics`, whatever the coordinates; `Instant` is the same at coordinates of the tree, for
events and rates of variables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.algebra.free_number import expression, scalar
from cardan.algebra.matrix import Matrix, Scalar, constant, segment
from cardan.algebra.rotation import cross
from cardan.errors import UnknownNameError, nearest
from cardan.formulation.kinematics import Kinematics, kinematics_of_tree
from cardan.model.model import Model
from cardan.model.parameter import find_parameter
from cardan.model.tree import GROUND
from cardan.model.values import one

ORIGIN = (0.0, 0.0, 0.0)


class Observer:
    """What can be seen of a mechanism at a state, by name; a class has `model`, and gives `joint` and `node`."""

    model: Model

    def joint(self, j: int) -> tuple[Matrix, Matrix]:
        """Coordinates and rates of a joint, by its number."""
        raise NotImplementedError

    def node(self, link: int) -> Any:
        """Axes `R`, origin `r0` and twist `v` of a link; None of the ground."""
        raise NotImplementedError

    def coordinate(self, joint: str) -> Matrix:
        """Coordinates of a joint; angles of joints that close loops within half a turn."""
        return self.joint(self._moving(joint))[0]

    def rate(self, joint: str) -> Matrix:
        """Rates of a joint."""
        return self.joint(self._moving(joint))[1]

    def position(self, body: str, point: Sequence[float] = ORIGIN) -> Matrix:
        """Position (3,) of a point of a body or frame, in ground components, m."""
        node, at, _ = self._place(body, point, "position")
        return at if node is None else node.r0 + node.R @ at

    def velocity(self, body: str, point: Sequence[float] = ORIGIN) -> Matrix:
        """Velocity (3,) of a point of a body or frame, in ground components, m/s."""
        node, at, _ = self._place(body, point, "velocity")
        return at * 0 if node is None else node.R @ (node.v[3:] + cross(node.v[:3], at))

    def rotation(self, body: str) -> Matrix:
        """Axes (3, 3) of a body or frame as columns, in ground components."""
        node, _, axes = self._place(body, ORIGIN, "rotation")
        return axes if node is None else node.R @ axes

    def angular_velocity(self, body: str) -> Matrix:
        """Angular velocity (3,) of a body or frame, in ground components, rad/s."""
        node, at, _ = self._place(body, ORIGIN, "angular_velocity")
        return at * 0 if node is None else node.R @ node.v[:3]

    def reaction(self, joint: str) -> Matrix:
        """Refused: a reaction depends on the accelerations, and those on what is computed here."""
        raise UnknownNameError(
            f"the reaction of joint {joint!r} depends on what acts at the same instant, so that no function of the "
            "instant may read it; measure the force by a spring or bushing in its place, or its effect on rates"
        )

    def _place(self, body: str, point: Sequence[float], what: str) -> tuple[Any, Matrix, Matrix]:
        """The node of the link that carries a body or frame, a point of it there, and its axes there."""
        link, pose = self.model.placement(body)
        at = constant(pose.position + pose.rotation @ one(what, "point", point, 3))
        return self.node(link), at, constant(pose.rotation)

    def _moving(self, joint: str) -> int:
        """The number of a joint that has coordinates."""
        names = self.model.joint_names
        if joint not in names:
            raise UnknownNameError(f"joint {joint!r} is not in model {self.model.name!r}{nearest(joint, names)}")
        j = names.index(joint)
        if not self.model.joints[j].kind.nv:
            raise UnknownNameError(f"joint {joint!r} is rigid and has no coordinates of its own")
        return j


def _column(value: Any) -> Any:
    """Numbers, free or not, as a column."""
    import casadi as ca

    return ca.vertcat(*(ca.SX(expression(scalar(x))) for x in np.ravel(value)))


@dataclass(frozen=True)
class Seen(Observer):
    """A mechanism at a `Kinematics` and time `t`, s, in the coordinates of any formulation: what controllers see."""

    kin: Kinematics
    t: Scalar

    @property
    def model(self) -> Model:  # type: ignore[override]
        """The mechanism."""
        return self.kin.model

    def __getitem__(self, name: str) -> Matrix:
        """A number of the model by name, free or not."""
        known = {x.name: x.value for x in self.model.variables} | dict(self.model.free_numbers)
        return _column(known[name] if name in known else find_parameter(self.model, name).nominal)

    def joint(self, j: int) -> tuple[Matrix, Matrix]:
        """As the formulation has them."""
        return self.kin.joint(j)

    def node(self, link: int) -> Any:
        """As the formulation has them."""
        return None if link == GROUND else self.kin.nodes.links[link]


@dataclass(frozen=True)
class Instant(Observer):
    """Time and state of the mechanism as symbols, for expressions of the user: events, rates of variables.

    Time `t` is in s, coordinates `q` (nq,) in rad and m, rates `v` (nv,) in rad/s and m/s. Free parameters are read by
    name: `s["spring.stiffness"]`.
    """

    model: Model
    t: Scalar
    q: Matrix
    v: Matrix
    _kin: list[Kinematics] = field(default_factory=list, init=False, repr=False, compare=False)

    def __getitem__(self, name: str) -> Matrix:
        """A free parameter or variable by name: a scalar, or a column of all its numbers."""
        free = self.model.free_numbers
        if name not in free:
            raise UnknownNameError(f"parameter {name!r} is not free{nearest(name, free)}")
        return _column(free[name])

    def joint(self, j: int) -> tuple[Matrix, Matrix]:
        """Those of the tree, or as measured between the bodies."""
        link = self.model.link_of_joint(j)
        return self._kinematics.joint(j) if link is None else (segment(self.q, link.q), segment(self.v, link.v))

    def node(self, link: int) -> Any:
        """As the tree has them."""
        return None if link == GROUND else self._kinematics.nodes.links[link]

    @property
    def _kinematics(self) -> Kinematics:
        """Where all links are, computed once."""
        if not self._kin:
            self._kin.append(kinematics_of_tree(self.model, self.q, self.v))
        return self._kin[0]
