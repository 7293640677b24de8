"""Power and constraint forces of a mechanism as graphs, and the second derivative of its configuration.

Notation: `T` and `V` kinetic and potential energy; `tau` drives; `lam` multipliers of the rows `J v = beta`. With

    d(T + V)/dt = v^T tau + P - lam^T beta

`P` is the power of every force element less what its own potential energy takes up: zero for a spring, the loss of a
damper or of friction, all of a drive or of a force of the user's. Rows of loops have `beta = 0` and no power.
"""

from __future__ import annotations

from collections.abc import Sequence

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, dot, segment, zeros
from cardan.formulation.constrained import body_motion, build_parts
from cardan.formulation.elements import body_effects, joint_effects, potential
from cardan.formulation.loops import MOTION, measure
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed, per_velocity
from cardan.formulation.recursion import run
from cardan.model.model import Model
from cardan.model.transform import configuration_rate


def element_power(model: Model) -> Quantity:
    """`P` (W) of the force elements."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        q, v, t = inputs["q"], inputs["v"], _time(inputs)
        nodes = run(MOTION, model, {"q": q, "v": v})
        own = {link.joint: (segment(q, link.q), segment(v, link.v)) for link in model.tree.links}
        own |= {j: (m.rows.q, m.rows.qd) for j in model.cuts for m in [measure(model, nodes, j)]}
        pose, twist = body_motion(model, nodes)
        P = ca.SX(1, 1)
        for j, tau in joint_effects(model, t, lambda j: own[j][0], lambda j: own[j][1]).items():
            P += dot(own[j][1], tau)
        for b, wrench in body_effects(model, t, pose, twist).items():
            P += dot(twist(b), wrench)
        V = potential(model, lambda j: own[j][0], pose)
        return [P + ca.jtimes(V, q, _rates(model, q, v))]

    return Quantity("element_power", ("q", "v", *_time_port(model)), (("P", fixed()),), write=write)


def multipliers(model: Model, formulation: str, rows: Sequence[int]) -> Quantity:
    """`lam` (nl,) of a formulation's constraint rows; zero for those left out of `rows`."""
    import casadi as ca

    q, v, tau = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    nl = build_parts(model, formulation, q, v, tau, ca.SX(model.nb, 6)).J.shape[0]

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q, v, tau = inputs["q"], inputs["v"], inputs["tau"]
        parts = build_parts(model, formulation, q, v, tau, type(q)(model.nb, 6), _time(inputs))
        found, every = parts.solve(list(rows))[1], type(q)(nl, 1)
        for k, row in enumerate(rows):
            every[row] = found[k]
        return [every]

    return Quantity("multipliers", ("q", "v", "tau", *_time_port(model)), (("lam", fixed(nl)),), write=write)


def configuration_acceleration(model: Model) -> Quantity:
    """`qddot` (nq,), the rate of `N(q) v` along the motion."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        q, v, a = inputs["q"], inputs["v"], inputs["a"]
        qdot = _rates(model, q, v)
        return [ca.jtimes(qdot, q, qdot) + ca.jtimes(qdot, v, a)]

    return Quantity("configuration_acceleration", ("q", "v", "a"), (("qddot", lambda m: (m.nq,)),), write=write)


def velocity_of_rates(model: Model) -> Quantity:
    """`v` (nv,) with `N(q) v` nearest to given rates `qdot` of the configuration, joint by joint."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        parts = []
        for link in model.tree.links:
            q, v = segment(inputs["q"], link.q), ca.SX.sym("v", link.kind.nv)
            if link.kind.nv:
                N = ca.jacobian(configuration_rate(link.kind, q, v), v)
                parts.append(ldl_solve(ldl_factor(N.T @ N), N.T @ segment(inputs["qdot"], link.q)))
        return [ca.densify(ca.vertcat(*parts))]

    shapes: dict[str, Shape] = {"q": (model.nq,), "qdot": (model.nq,)}
    outputs = (("v", per_velocity),)
    return Quantity("velocity_of_rates", ("q", "qdot"), outputs, write=write, shapes=shapes)


def _rates(model: Model, q: Matrix, v: Matrix) -> Matrix:
    import casadi as ca

    parts = [
        configuration_rate(link.kind, segment(q, link.q), segment(v, link.v))
        for link in model.tree.links
        if link.kind.nq
    ]
    return ca.densify(ca.vertcat(*parts))


def _time_port(model: Model) -> tuple[str, ...]:
    return ("t",) if model.depends_on_time else ()


def _time(inputs: Inputs) -> Matrix:
    return inputs["t"] if "t" in inputs else zeros(1, 1, inputs["q"])
