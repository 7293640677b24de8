"""Quantities of any mechanism, with loops, force elements and couplings, in any formulation.

Where a tree without elements has recursions of its own (`formulation.catalogue`), everything else is written here from
`constrained.build_parts`: `rows` are the numbers of the constraint rows kept, an independent set.
"""

from __future__ import annotations

from collections.abc import Sequence

from cardan.algebra.matrix import Matrix, segment, zeros
from cardan.formulation.constrained import Parts, body_motion, build_parts
from cardan.formulation.elements import potential
from cardan.formulation.loops import MOTION, measure
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed, per_velocity
from cardan.formulation.recursion import run
from cardan.model.model import Model
from cardan.model.transform import configuration_rate


def row_count(model: Model) -> int:
    """Constraint rows in the tree's coordinates: those of the cut joints and one for each coupling."""
    return sum(model.joints[j].kind.freedoms_removed for j in model.cuts) + len(model.couplings)


def forward_dynamics(model: Model, formulation: str, rows: Sequence[int], loaded: bool) -> Quantity:
    """Accelerations (nv,) of the tree's coordinates."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        parts = _parts(model, formulation, inputs)
        return [parts.tree(parts.solve(list(rows))[0])]

    return Quantity("forward_dynamics", _inputs(model, loaded), (("a", per_velocity),), write=write)


def inverse_dynamics(model: Model, formulation: str) -> Quantity:
    """Forces (nv,) along the tree's coordinates that give accelerations `a` (nv,), cut joints and couplings apart.

    With `u = S(q) v` the formulation's own rates on the tree's motions, `u' = S a + S' v` goes into its equations,
    and what is missing there does the work `S^T (M u' - f)` along the tree's coordinates: the rows of the tree's
    joints do none, `J S = 0`.
    """
    import casadi as ca

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q, v = inputs["q"], inputs["v"]
        parts = _parts(model, formulation, {**inputs, "tau": type(q)(model.nv, 1)})
        rate = ca.jtimes(parts.rates, v, inputs["a"]) + ca.jtimes(parts.rates, q, _configuration_rates(model, q, v))
        return [ca.jtimes(parts.rates, v, parts.M @ rate - parts.f, True)]

    inputs = ("q", "v", "a", "wrenches", *_time_port(model))
    return Quantity("inverse_dynamics", inputs, (("tau", per_velocity),), write=write)


def reactions(model: Model, formulation: str, rows: Sequence[int]) -> Quantity:
    """Wrench (number of joints, 6) of every joint on its child at M, as the mechanism moves under its loads."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        parts = _parts(model, formulation, inputs)
        vdot, lam = parts.solve(list(rows))
        every = type(lam)(parts.J.shape[0], 1)
        for k, row in enumerate(rows):
            every[row] = lam[k]
        return [parts.wrenches(vdot, every)]

    return Quantity("reactions", _inputs(model, True), (("f", _per_joint),), write=write)


def equations_of_motion(model: Model, formulation: str) -> Quantity:
    """`M`, `f`, `J`, `gamma` and `phi` in the formulation's own rates, at a state of the tree."""
    import casadi as ca

    q, v, tau = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    shapes = _parts(model, formulation, {"q": q, "v": v, "tau": tau})
    n, nl = shapes.M.shape[0], shapes.J.shape[0]

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        parts = _parts(model, formulation, inputs)
        return [parts.M, parts.f, parts.J, parts.gamma, parts.phi]

    outputs = (("M", fixed(n, n)), ("f", fixed(n)), ("J", fixed(nl, n)), ("gamma", fixed(nl)), ("phi", fixed(nl)))
    return Quantity("equations_of_motion", _inputs(model, True), outputs, write=write)


def constraint_rows(model: Model) -> Quantity:
    """`J` (nl, nv) and `beta` (nl,) with `J v = beta` on consistent velocities, in the tree's coordinates."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q = inputs["q"]
        still = {"q": q, "v": type(q)(model.nv, 1), "tau": type(q)(model.nv, 1), **_only(inputs, "t")}
        J = _parts(model, "spatial", still).J
        beta = type(q).zeros(J.shape[0])
        for k, coupling in enumerate(model.couplings):
            beta[J.shape[0] - len(model.couplings) + k] = coupling.rows(_time(inputs))[1]
        return [J, beta]

    nl = row_count(model)
    outputs = (("J", lambda m: (nl, m.nv)), ("beta", fixed(nl)))
    return Quantity("constraint_rows", ("q", *_time_port(model)), outputs, write=write)


def residual(model: Model) -> Quantity:
    """Position residual `phi` (nl,) and its derivative (nl, nv) along the tree's rates."""
    import casadi as ca

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q, v = inputs["q"], ca.SX.sym("v", model.nv)
        still = {"q": q, "v": type(q)(model.nv, 1), "tau": type(q)(model.nv, 1), **_only(inputs, "t")}
        phi = _parts(model, "spatial", still).phi
        return [phi, ca.jacobian(ca.jtimes(phi, q, _configuration_rates(model, q, v)), v)]

    nl = row_count(model)
    outputs = (("phi", fixed(nl)), ("G", lambda m: (nl, m.nv)))
    return Quantity("residual", ("q", *_time_port(model)), outputs, write=write)


def element_potential() -> Quantity:
    """Potential energy (J) of springs and the like."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q = inputs["q"]
        nodes = run(MOTION, model, {"q": q, "v": type(q)(model.nv, 1)})
        own = {link.joint: segment(q, link.q) for link in model.tree.links}
        own |= {j: measure(model, nodes, j).rows.q for j in model.cuts}
        return [potential(model, lambda j: own[j], body_motion(model, nodes)[0])]

    return Quantity("element_potential", ("q",), (("V", fixed()),), write=write)


def _configuration_rates(model: Model, q: Matrix, v: Matrix) -> Matrix:
    """`qdot = N(q) v`."""
    import casadi as ca

    moving = [link for link in model.tree.links if link.kind.nq]
    return ca.vertcat(*(configuration_rate(k.kind, segment(q, k.q), segment(v, k.v)) for k in moving))


def _parts(model: Model, formulation: str, inputs: Inputs) -> Parts:
    q = inputs["q"]
    wrenches = inputs.get("wrenches", type(q)(model.nb, 6))
    return build_parts(model, formulation, q, inputs["v"], inputs["tau"], wrenches, _time(inputs))


def _inputs(model: Model, loaded: bool) -> tuple[str, ...]:
    return ("q", "v", "tau", *(("wrenches",) if loaded else ()), *_time_port(model))


def _time_port(model: Model) -> tuple[str, ...]:
    return ("t",) if model.depends_on_time else ()


def _time(inputs: Inputs) -> Matrix:
    return inputs["t"] if "t" in inputs else zeros(1, 1, inputs["q"])


def _only(inputs: Inputs, name: str) -> Inputs:
    return {name: inputs[name]} if name in inputs else {}


def _per_joint(model: Model) -> Shape:
    return (len(model.joints), 6)
