"""Jacobian of a frame: six unit forces on the frame, carried to the root.

Notation: as in `formulation.spatial`. Forces `G` (6 x 6) on the frame become joint forces `S^T G` on the way, and a
joint force per unit force is the transpose of a velocity per unit rate.

Source: RBDA section 6.3 for carrying forces along the path.
"""

from __future__ import annotations

from types import SimpleNamespace

from cardan.algebra.matrix import Matrix, constant, eye, segment
from cardan.algebra.spatial import Transform, shifted, turned
from cardan.formulation.kinematics import joint
from cardan.formulation.quantity import Inputs, Quantity
from cardan.formulation.spatial import force_to_parent
from cardan.model.model import Model
from cardan.model.tree import GROUND


def frame_jacobian(frame: str) -> Quantity:
    """Quantity `J` (6, nv) with `J v` the twist of a body or frame in its own components."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        i, at = model.placement(frame)
        q = inputs["q"]
        J = type(q)(6, model.nv)
        X = Transform((turned(constant(at.rotation.T)), shifted(constant(at.position))))
        forces: tuple[Matrix, ...] = (X.T @ eye(6, q),)
        while i != GROUND:
            link = model.tree.links[i]
            b = SimpleNamespace(kind=link.kind, E=constant(link.E), r=constant(link.r), q=segment(q, link.q))
            joint(b, None)
            J[:, link.v] = forces[0].T @ b.S
            forces = force_to_parent(b, forces)
            i = link.parent
        return [J]

    return Quantity(f"jacobian of {frame}", ("q",), (("J", lambda model: (6, model.nv)),), write=write)
