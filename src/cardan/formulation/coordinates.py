"""Between the tree's coordinates and a formulation's own, and the equations in the latter.

Angles and quaternions that are measured from poses are taken near a known configuration of the tree, `about`.
"""

from __future__ import annotations

from collections.abc import Sequence

from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, segment, stack
from cardan.formulation.elements import loads_at
from cardan.formulation.formulation import Formulation, Parts, tree_rates
from cardan.formulation.law_forces import with_law_forces
from cardan.formulation.law_motion import LawMotion, frictions
from cardan.formulation.measured_joint import near
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed, per_velocity
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import tree_project
from cardan.model.joint import Kind, configuration_rate
from cardan.model.model import Model


def own_equations(model: Model, formulation: Formulation, inputs: Inputs, x: Matrix | None = None) -> Parts:
    """The equations at a formulation's own `q`, `v`, under `tau` (nv of the tree), `wrenches`, at time `t`.

    `x` (m,) are forces of the rows with laws of a model with modes.
    """
    q, v = inputs["q"], inputs["v"]
    kin = formulation.kinematics(model, q, v, inputs.get("about"))
    wrenches = inputs["wrenches"] if "wrenches" in inputs else type(q)(model.nb, 6)
    loads = loads_at(kin, inputs["tau"], wrenches, inputs["t"])
    return formulation.equations(model, kin, loads if x is None else with_law_forces(kin, loads, x))


def law_unknowns(
    model: Model, parts: Parts, formulation: Formulation, kept: Sequence[int], inputs: Inputs,
    unknowns: tuple[Matrix, Matrix, Matrix],
) -> LawMotion:  # fmt: skip
    """The rows with laws at a formulation's own `q`, `v`, of equations whose `vdot`, `lam` and forces x are unknown."""
    (vdot, lam, x), measured = unknowns, None
    if not formulation.in_tree and any(f.joint is not None for f in frictions(model)):
        measured = equations_at_tree(model, formulation, inputs, x)
    rows = formulation.lawful_rows(parts.kin, parts.loads, vdot.shape[0])
    return LawMotion(formulation, rows, tuple(kept), x, parts, vdot, lam, measured)


def equations_at_tree(model: Model, formulation: Formulation, inputs: Inputs, x: Matrix | None = None) -> Parts:
    """The same equations at the state of the tree, where reactions of the tree's joints can be read."""
    q, v = tree_state(model, formulation, inputs["q"], inputs["v"], inputs["about"])
    kin = formulation.kinematics_of_tree(model, q, v)
    loads = loads_at(kin, inputs["tau"], type(q)(model.nb, 6), inputs["t"])
    return formulation.equations(model, kin, loads if x is None else with_law_forces(kin, loads, x))


def tree_state(model: Model, formulation: Formulation, q: Matrix, v: Matrix, about: Matrix) -> tuple[Matrix, Matrix]:
    """`q`, near to `about`, and `v` of the tree."""
    if formulation.in_tree:
        return q, v
    x, rate = tree_project(model, *formulation.lift(model, q, v))
    parts = [near(link.kind, x[link.q], about[link.q]) for link in model.tree.links if link.kind.nq]
    return stack(*parts) if parts else x, rate


def into_own(model: Model, formulation: Formulation) -> Quantity:
    """The formulation's own `q` and `v` from those of the tree."""
    nq, nv = formulation.sizes(model)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        return list(formulation.project(model, *SPATIAL.lift(model, s["q"], s["v"])))

    return Quantity("into_own", ("q", "v"), (("q", fixed(nq)), ("v", fixed(nv))), write=write)


def out_of_own(model: Model, formulation: Formulation) -> Quantity:
    """`q` and `v` of the tree from the formulation's own; `about` (nq,) is a configuration of the tree nearby."""
    nq, nv = formulation.sizes(model)
    shapes: dict[str, Shape] = {"q": (nq,), "v": (nv,), "about": (model.nq,)}

    def write(model: Model, s: Inputs) -> list[Matrix]:
        return list(tree_state(model, formulation, s["q"], s["v"], s["about"]))

    outputs = (("q", fixed(model.nq)), ("v", fixed(model.nv)))
    return Quantity("out_of_own", tuple(shapes), outputs, write=write, shapes=shapes)


def configuration_acceleration(model: Model) -> Quantity:
    """`qddot` (nq,), the rate of `N(q) v` along the motion."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        q, v, a = inputs["q"], inputs["v"], inputs["a"]
        qdot = ca.densify(tree_rates(model, q, v))
        return [ca.jtimes(qdot, q, qdot) + ca.jtimes(qdot, v, a)]

    return Quantity("configuration_acceleration", ("q", "v", "a"), (("qddot", lambda m: (m.nq,)),), write=write)


def velocity_of_change(kind: Kind, q: Matrix, change: Matrix) -> Matrix:
    """The rates (nv,) of a joint with `N(q) v` nearest to a change (nq,) of its coordinates."""
    import casadi as ca

    v = ca.SX.sym("v", kind.nv)
    N = ca.jacobian(configuration_rate(kind, q, v), v)
    return ldl_solve(ldl_factor(N.T @ N), N.T @ change)


def velocity_of_rates(model: Model) -> Quantity:
    """`v` (nv,) with `N(q) v` nearest to given rates `qdot` of the configuration, joint by joint."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        parts = []
        for link in model.tree.links:
            if link.kind.nv:
                parts.append(
                    velocity_of_change(link.kind, segment(inputs["q"], link.q), segment(inputs["qdot"], link.q))
                )
        return [ca.densify(ca.vertcat(*parts))]

    shapes: dict[str, Shape] = {"q": (model.nq,), "qdot": (model.nq,)}
    outputs = (("v", per_velocity),)
    return Quantity("velocity_of_rates", ("q", "qdot"), outputs, write=write, shapes=shapes)
