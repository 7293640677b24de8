"""The inertia that a file gives its bodies, judged by what moves as one.

Files give odd inertias, which no solid has, to small bodies that are fixed to large ones, where they do no
harm: of bodies fixed to one another only the sum moves. So where a body's own inertia breaks a rule, its
moments are counted with a body that it is fixed to. That leaves every motion exactly as the file has it, and
a note says so. A body that moves alone, or whose sum breaks the rule too, is left for the model to refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cardan.errors import ModelError
from cardan.model.inertia import check_inertia
from cardan.model.pose import Pose


@dataclass(frozen=True, eq=False)
class Inertial:
    """Mass (kg), centre of mass (m, body frame) and inertia (3, 3) about it (kg m^2, body axes)."""

    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))


Weld = tuple[str, str, Pose]
"""Two bodies fixed to one another: parent, child, and the child's frame in the parent's."""


def count_together(bodies: Mapping[str, Inertial], welds: Iterable[Weld]) -> tuple[dict[str, Inertial], list[str]]:
    """Give the moments of inertia that break a rule to a body fixed to theirs; also a note for each."""
    settled = dict(bodies)
    notes: list[str] = []
    broken = {name: why for name, body in bodies.items() if (why := _broken_rule(body))}
    if not broken:
        return settled, notes
    beside: dict[str, list[tuple[str, Pose]]] = {}
    for parent, child, pose in welds:
        beside.setdefault(parent, []).append((child, pose))
        beside.setdefault(child, []).append((parent, pose.inverse))
    for name, why in broken.items():
        group = {other: pose for other, pose in _group(name, beside).items() if other not in broken}
        if not group or settled[name].mass < 0:
            continue
        heaviest = max(group, key=lambda other: settled[other].mass)
        R, body = group[heaviest].rotation, settled[heaviest]
        together = replace(body, inertia=body.inertia + R.T @ settled[name].inertia @ R)
        if not _broken_rule(together):
            settled[heaviest] = together
            settled[name] = replace(settled[name], inertia=np.zeros((3, 3)))
            notes.append(f"{name!r}: {why}; its moments are counted with {heaviest!r}, to which it is fixed")
    return settled, notes


def _broken_rule(body: Inertial) -> str:
    """Say which rule the inertia breaks, in short; nothing if it is sound."""
    try:
        check_inertia("", body.mass, body.inertia)
    except ModelError as error:
        return str(error).removeprefix(": ").partition(";")[0]
    return ""


def _group(name: str, beside: Mapping[str, list[tuple[str, Pose]]]) -> dict[str, Pose]:
    """Every other body that moves as one with this one: its frame in this one's."""
    poses = {name: Pose()}
    ahead = [name]
    while ahead:
        here = ahead.pop()
        for other, pose in beside.get(here, ()):
            if other not in poses:
                poses[other] = poses[here] @ pose
                ahead.append(other)
    del poses[name]
    return poses
