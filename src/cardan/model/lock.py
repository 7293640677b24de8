"""Locks and latches: connections that events close and open during a run (`Law.SWITCHED`).

A lock holds the coordinates of a joint, or one of them, a latch two bodies: rigidly, by a pin or by a ball, at a point
of the first. They hold what they find when they close, whatever the position: rates are zero while they are closed.
Closing stops what moves by an impulse. Whether an element is closed is its number `closed`, 0 or 1, which events may
change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cardan.algebra.matrix import Matrix, Scalar, constant, dot, zeros
from cardan.algebra.rotation import cross
from cardan.errors import ModelError
from cardan.model.body import Joint
from cardan.model.constraint import Constraint
from cardan.model.field import SWITCH, VECTOR, Field
from cardan.model.force import FORCES, BodyPose, Force, ForceKind
from cardan.model.law import LawfulElement, along_rate, row_name
from cardan.model.row import Law

CLOSED = Field("1", "1 if it is closed, 0 if it is open", rule=SWITCH, default=0.0, letter="c")
AT = Field("m", "point of the first body, m", VECTOR, default=(0.0, 0.0, 0.0), free=False)


def _no_force(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    return zeros(v.shape[0], None, v)


def _no_wrenches(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    return [zeros(6, None, pose.rotation) for pose in poses]


def _lawful_lock(f: Force, joints: Sequence[Joint]) -> LawfulElement:
    joint = joints[f.on[0]]
    places = f.along or tuple(range(joint.kind.nv))
    rows = tuple(along_rate(f, "lock", k) for k in places)
    names = tuple(row_name("held", k, places) for k in places)
    return LawfulElement(f, rows, (Law.SWITCHED,) * len(rows), names)


def _relative_rates(f: Force, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> tuple[Matrix, Matrix]:
    """Relative angular velocity, and that of the second body's point where the first has `at`; in its axes."""
    (R1, r1), (R2, r2) = poses
    at = constant(f.numbers["at"])
    turning = R1.T @ (R2 @ twists[1][:3])
    reach = R1.T @ (r1 - r2) + at
    moving = R1.T @ (R2 @ twists[1][3:]) + cross(turning, reach)
    return turning - twists[0][:3], moving - twists[0][3:] - cross(twists[0][:3], at)


def _across(f: Force) -> list[Any]:
    """Two directions at right angles to the axis of a pin."""
    import numpy as np

    axis = np.asarray(f.numbers["axis"], dtype=float)
    size = float(np.linalg.norm(axis))
    if not size > 0:
        raise ModelError(f"{f.owner}: its axis has no direction, got {axis.tolist()}; give one such as (0, 0, 1)")
    least = np.eye(3)[int(np.argmin(np.abs(axis)))]
    first = np.cross(axis / size, least)
    first /= np.linalg.norm(first)
    return [first, np.cross(axis / size, first)]


def _lawful_latch(f: Force, joints: Sequence[Joint]) -> LawfulElement:
    import numpy as np

    turns = {"rigid latch": list(np.eye(3)), "ball latch": []}
    holds = turns[f.kind.name] if f.kind.name in turns else _across(f)
    held = [(1, e, "m") for e in np.eye(3)] + [(0, e, "rad") for e in holds]

    def row(which: int, direction: Any) -> Any:
        along = constant(np.asarray(direction))
        return lambda t, poses, twists: dot(along, _relative_rates(f, poses, twists)[which])

    rows = tuple(Constraint(f.name, f.on, row(which, e), unit).traced() for which, e, unit in held)
    names = ("x", "y", "z", "turning 1", "turning 2", "turning 3")[: len(rows)]
    return LawfulElement(f, rows, (Law.SWITCHED,) * len(rows), names)


LOCK = ForceKind("lock", "joint", _no_force, lawful=_lawful_lock, fields={"closed": CLOSED})
AXIS = Field("1", "axis of the pin in the first body", VECTOR, default=(0.0, 0.0, 1.0), free=False)
LATCHES = {
    name: ForceKind(
        f"{name} latch", "bodies", _no_wrenches, bodies=2, lawful=_lawful_latch, file_name=f"{name}_latch",
        fields={"at": AT, **({"axis": AXIS} if name == "pin" else {}), "closed": CLOSED},
    )
    for name in ("rigid", "pin", "ball")
}  # fmt: skip
"""Latches by what they hold."""
# The table of force elements has these too.
FORCES.update({kind.name: kind for kind in (LOCK, *LATCHES.values())})
