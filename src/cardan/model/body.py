"""Bodies, joints and frames as the user declared them, validated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from cardan.model.joint import JointType, Kind
from cardan.model.pose import Pose

if TYPE_CHECKING:
    from cardan.model.shape import Shape


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid body: mass (kg), centre of mass (m, body frame), inertia about it (kg m^2, body axes), and its shapes."""

    name: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    shapes: tuple[Shape, ...] = ()
    """What is seen of it; it does not enter the equations."""


@dataclass(frozen=True)
class JointData:
    """What a file says of a joint besides its geometry. It is carried as data and does not enter the dynamics.

    Entries that no element makes act are listed in `model.losses`: a friction element makes damping and friction act, a
    stop limits of position, a coupling a mimic; nothing enforces limits of speed and effort. `cd.load` adds such
    elements.

    Limits on q and v (rad or m, a second), effort (N m or N), damping (N m s/rad or N s/m), friction (N m or N);
    `mimic` is (joint, multiplier, offset).
    """

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None
    damping: float = 0.0
    friction: float = 0.0
    mimic: tuple[str, float, float] | None = None


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint between two bodies (index -1 is ground): frame F `at` on the parent, frame M `child_at` on the child."""

    name: str
    kind: Kind
    parent: int
    child: int
    at: Pose
    child_at: Pose
    data: JointData = field(default_factory=JointData)
    start: np.ndarray | None = None
    """Guess (nq,) of the joint's coordinates that assembly begins with; None is neutral."""
    armature: np.ndarray | None = None
    """Inertia (nv,) of the drive's rotor along each coordinate, kg m^2 or kg; None is none."""
    type: JointType | None = None
    """What the user wrote, from which files take its numbers."""

    def recorded(self) -> Joint:
        """The same joint with its kind as it computes now, checked; a user's may read variables that have changed."""
        kind = self.kind.recorded()
        if kind is self.kind:
            return self
        kind.check()
        return replace(self, kind=kind)


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame fixed to a body (index -1 is ground)."""

    name: str
    body: int
    at: Pose
