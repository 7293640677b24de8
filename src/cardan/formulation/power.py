"""Power and potential energy of force elements as graphs.

Notation: `T` and `V` kinetic and potential energy; `tau` drives; `lam` multipliers of the rows `J v = beta`. With

    d(T + V)/dt = v^T tau + P - lam^T beta

`P` is the power of every force element less what its own potential energy takes up: zero for a spring, the loss of a
damper or of friction, all of a drive or of a force of the user's. Rows of loops have `beta = 0` and no power.
"""

from __future__ import annotations

from cardan.algebra.matrix import Matrix, dot
from cardan.formulation import elements
from cardan.formulation.dynamics import time_of, time_port
from cardan.formulation.formulation import tree_rates
from cardan.formulation.kinematics import kinematics_of_tree
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.model.model import Model


def element_power(model: Model) -> Quantity:
    """`P` (W) of the force elements."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        q, v, t = inputs["q"], inputs["v"], time_of(inputs)
        kin = kinematics_of_tree(model, q, v)
        P = ca.SX(1, 1)
        for j, tau in elements.joint_forces(kin, t).items():
            P += dot(kin.joint(j)[1], tau)
        for b, wrench in elements.body_wrenches(kin, t).items():
            P += dot(kin.twist(b), wrench)
        return [P + ca.jtimes(elements.element_potential(kin), q, ca.densify(tree_rates(model, q, v)))]

    return Quantity("element_power", ("q", "v", *time_port(model)), (("P", fixed()),), write=write)


def element_potential() -> Quantity:
    """Potential energy (J) of springs and the like."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q = inputs["q"]
        return [elements.element_potential(kinematics_of_tree(model, q, type(q)(model.nv, 1)))]

    return Quantity("element_potential", ("q",), (("V", fixed()),), write=write)
