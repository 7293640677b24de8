"""An instant: time and state of a mechanism as symbols, with all that a user's expression may read of them.

`Seen` reads them off a `Kinematics`, whatever the coordinates; `Instant` is the same at coordinates of the tree, for
events and rates of variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cardan.algebra.free_number import expression, scalar
from cardan.algebra.matrix import Matrix, Scalar, constant, segment
from cardan.algebra.rotation import cross
from cardan.errors import CardanError, UnknownNameError, nearest
from cardan.formulation.kinematics import Kinematics, kinematics_of_tree
from cardan.formulation.measured_joint import fixed_transform
from cardan.model.force import BodyPose
from cardan.model.measured_force import find_force
from cardan.model.model import Model
from cardan.model.parameter import find_parameter
from cardan.model.pose import Pose
from cardan.model.sight import ORIGIN, SensorReadings, Sight
from cardan.model.tree import GROUND
from cardan.model.values import one


class Observer(SensorReadings):
    """What can be seen of a mechanism at a state, by name; a class has `model`, and gives `joint` and `node`.

    What follows from all that acts, such as reactions, an observer sees if it is given the answer of the mechanism.
    """

    model: Model
    t: Scalar

    def __getitem__(self, name: str) -> Matrix:
        """A signal or the output of a controller, or a number: a scalar, or a column of all its numbers."""
        signal = self.model.signal(name)
        return self.number(name) if signal is None else signal.at(self)

    def number(self, name: str) -> Matrix:
        """A variable or number of the model by name."""
        raise NotImplementedError

    def answer(self, sight: Sight) -> Matrix:
        """What follows from all that acts at the same instant."""
        raise UnknownNameError(
            f"{sight.told} depends on what acts at the same instant, so that it is not known here; measure the force "
            "by a spring or bushing in its place, or its effect on rates"
        )

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

    def joint_wrench(self, joint: str) -> Matrix:
        """Moment and force (6,) of a joint on its child, at and in its joint frame."""
        self.model.joint(joint)
        return self.answer(Sight("joint_wrench", (joint,), (6, 1)))

    def force(self, name: str) -> Matrix:
        """Force of an element, as `run["name.force"]` has it: of a constraint, a coupling, a stop, a spring."""
        found = find_force(self.model, name)
        if not found.is_load:
            return self.answer(Sight("force", (name,), (found.size, 1)))
        on = found.element.force.on
        if found.element.force.kind.on == "joint":
            return found.element.graph(self.t, *self.joint(on[0]))
        poses, twists = zip(*(self._body(b) for b in on), strict=True)
        return found.element.graph(self.t, list(poses), list(twists))

    load = force

    def acceleration(self, body: str, point: Sequence[float] = ORIGIN) -> Matrix:
        """Acceleration (3,) of a point of a body or frame, in ground components, m/s^2; gravity is not in it."""
        self._place(body, point, "acceleration")
        return self.answer(Sight("acceleration", (body, tuple(float(x) for x in point)), (3, 1)))

    def angular_acceleration(self, body: str) -> Matrix:
        """Angular acceleration (3,) of a body or frame, in ground components, rad/s^2."""
        self._place(body, ORIGIN, "angular_acceleration")
        return self.answer(Sight("angular_acceleration", (body,), (3, 1)))

    def _body(self, b: int) -> tuple[BodyPose, Matrix]:
        """Pose and twist of a body, by its number."""
        import casadi as ca

        link, pose = (GROUND, Pose()) if b == GROUND else (self.model.tree.body_link[b], self.model.tree.body_pose[b])
        node = self.node(link)
        R, r = constant(pose.rotation), constant(pose.position)
        if node is None:
            return BodyPose(ca.SX(R), ca.SX(r)), ca.SX.zeros(6)
        return BodyPose(node.R @ R, node.r0 + node.R @ r), fixed_transform(pose) @ node.v

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
    reads: Callable[[Any, Sight], Matrix] | None = field(default=None, kw_only=True, repr=False, compare=False)

    def answer(self, sight: Sight) -> Matrix:
        """What follows from all that acts at the same instant."""
        return super().answer(sight) if self.reads is None else self.reads(self, sight)

    @property
    def model(self) -> Model:  # type: ignore[override]
        """The mechanism."""
        return self.kin.model

    def number(self, name: str) -> Matrix:
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
    name: `s["spring.stiffness"]`. `reads` gives what follows from all that acts; without it that is refused.
    """

    model: Model
    t: Scalar
    q: Matrix
    v: Matrix
    reads: Callable[[Any, Sight], Matrix] | None = field(default=None, kw_only=True, repr=False, compare=False)
    held: dict[str, Matrix] = field(default_factory=dict, kw_only=True, repr=False, compare=False)
    """Variables that have new values already."""
    _kin: list[Kinematics] = field(default_factory=list, init=False, repr=False, compare=False)

    def answer(self, sight: Sight) -> Matrix:
        """What follows from all that acts at the same instant."""
        return super().answer(sight) if self.reads is None else self.reads(self, sight)

    def number(self, name: str) -> Matrix:
        """A free parameter or variable by name: a scalar, or a column of all its numbers."""
        if name in self.held:
            return self.held[name]
        free = self.model.free_numbers
        if name in free:
            return _column(free[name])
        try:
            return _column(find_parameter(self.model, name).nominal)
        except CardanError:
            known = [*free, *self.model.signal_names]
            raise UnknownNameError(
                f"{name!r} is not a variable, a signal or a number of the model{nearest(name, known)}"
            ) from None

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
