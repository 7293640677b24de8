"""The spring by which the pointer pulls a body in a page: a force element, so that steps with it are as exact.

Force on the point `p` of the chosen body: `F = k (x_target - x_p) - c xdot_p`, in ground components. It has no
energy of its own: that of the mechanism is shown, and what the hand does is work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cardan.algebra.matrix import Matrix, Scalar, stack, where
from cardan.algebra.rotation import cross
from cardan.model.field import NOT_NEGATIVE, VECTOR, Field
from cardan.model.force import BodyPose, Force, ForceKind
from cardan.model.model import Model

NAME = "the pointer"
NOBODY = -1.0


def _law(f: Force, t: Scalar, poses: Sequence[BodyPose], twists: Sequence[Matrix]) -> list[Matrix]:
    """Wrench on each body: that of the spring on the chosen one, zero on the others."""
    wrenches, p = [], f["point"]
    for b, ((R, r), twist) in enumerate(zip(poses, twists, strict=True)):
        xdot = twist[3:] + cross(twist[:3], p)
        force = f["stiffness"] * (R.T @ (f["target"] - r) - p) - f["damping"] * xdot  # in body components
        wrenches.append(where(f["body"] == b, stack(cross(p, force), force), 0.0))
    return wrenches


PULL = ForceKind(
    "pull",
    "bodies",
    _law,
    fields={
        "body": Field(default=NOBODY),
        "stiffness": Field("N/m", rule=NOT_NEGATIVE, default=0.0),
        "damping": Field("N s/m", rule=NOT_NEGATIVE, default=0.0),
        "point": Field("m", form=VECTOR, default=(0.0, 0.0, 0.0)),
        "target": Field("m", form=VECTOR, default=(0.0, 0.0, 0.0)),
    },
)


def with_pull(model: Model) -> tuple[Model, dict[str, slice]]:
    """The model at nominal values with the spring, all of whose numbers are free, and where in `p` each of them is."""
    name = NAME
    while name in {part.name for group in (model.bodies, model.joints, model.forces) for part in group}:
        name += "'"
    numbers = {what: np.array(field.default, dtype=float) for what, field in PULL.fields.items()}
    spring = Force(name, PULL, tuple(range(model.nb)), numbers).traced(model.joints)
    pulled = replace(model.unbound, forces=(*model.forces, spring))
    pulled = pulled.free(*(f"{name}.{what}" for what in PULL.fields))
    return pulled, {what: pulled.parameters.slice_of(f"{name}.{what}") for what in PULL.fields}
