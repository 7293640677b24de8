"""`cd.equations(model)`: the contract of a formulation, as functions and as graphs.

M(q) vdot + J(q)^T lam = f(q, v, tau)      J vdot = gamma(q, v)      qdot = N(q) v      phi(q) = 0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.analysis.dynamics import joint_wrenches
from cardan.analysis.kinematics import body_poses
from cardan.errors import UnknownNameError, nearest
from cardan.formulation.catalogue import FORMULATIONS
from cardan.kernels.evaluate import graph_of, kernel_of
from cardan.model.model import Model


@dataclass(frozen=True)
class Equations:
    """The equations of motion of a model in one formulation. Every method takes any batch.

    A tree has no constraint rows: `J`, `gamma` and `phi` are empty.
    """

    model: Model
    formulation: str

    @property
    def nl(self) -> int:
        """Number of constraint rows."""
        return 0

    def M(self, q: Any) -> Any:
        """Mass matrix (..., nv, nv)."""
        return kernel_of(self.model, "mass_matrix", self.formulation)(q)

    def f(self, q: Any, v: Any, tau: Any = 0.0) -> Any:
        """Right-hand side (..., nv): joint forces `tau` less the bias force, N m and N."""
        return np.asarray(tau) - kernel_of(self.model, "bias_force", self.formulation)(q, v)

    def J(self, q: Any) -> np.ndarray:
        """Constraint Jacobian (..., nl, nv)."""
        return np.zeros((*np.shape(q)[:-1], self.nl, self.model.nv))

    def gamma(self, q: Any, v: Any) -> np.ndarray:
        """Right-hand side of the constraints at acceleration level (..., nl)."""
        return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), self.nl))

    def phi(self, q: Any) -> np.ndarray:
        """Position residual (..., nl)."""
        return np.zeros((*np.shape(q)[:-1], self.nl))

    def N(self, q: Any, v: Any) -> Any:
        """Rate of the configuration (..., nq), `N` times v."""
        return kernel_of(self.model, "rates", self.formulation)(q, v)

    def lift(self, q: Any, v: Any) -> tuple[Any, Any]:
        """Poses (..., nb, 4, 4) and twists (..., nb, 6) of all bodies."""
        poses = body_poses(self.model, q, formulation=self.formulation)
        return poses, kernel_of(self.model, "body_twists", self.formulation)(q, v)

    def project(self, poses: Any, twists: Any) -> tuple[Any, Any]:
        """The other way: `q` (..., nq) and `v` (..., nv) from poses (..., nb, 4, 4) and twists (..., nb, 6)."""
        poses = np.asarray(poses)
        return kernel_of(self.model, "project", self.formulation)(poses.reshape(*poses.shape[:-2], 16), twists)

    def reactions(self, q: Any, v: Any, a: Any) -> Any:
        """Wrench (..., number of joints, 6) that each joint exerts on its child at the joint frame."""
        return joint_wrenches(self.model, q, v, a, formulation=self.formulation)

    def graph(self, name: str) -> Any:
        """The CasADi function behind a quantity, e.g. `mass_matrix`: take it into your own solver."""
        return graph_of(self.model, name, self.formulation)


def equations(model: Model, *, formulation: str = "spatial") -> Equations:
    """The equations of motion of a tree in a formulation, "spatial" or "newton_euler"."""
    model.require_tree("equations")
    if formulation not in FORMULATIONS:
        raise UnknownNameError(f"formulation {formulation!r} is not one{nearest(formulation, FORMULATIONS)}")
    return Equations(model, formulation)
