"""The equations of motion as one implicit system `F(t, y, y') = 0`, in any formulation's own coordinates.

    stabilised (index 2)   qdot = N v - G^T mu     M vdot + J^T lam = f     J v = beta(t)     phi(q, t) = 0
    index 1                qdot = N v              M vdot + J^T lam = f     J vdot = gamma

with `G = d phi / d q` of the rows at position level, `y = (q, v, lam, mu)` or `(q, v, lam)`. On the solution `mu = 0`.
Quaternions of unit length are position constraints like the others.

At a position where constraints depend on one another, multipliers are undetermined. Two small numbers, `soft`, keep
the stabilised equations regular there: `J v = beta + soft_0 lam`, `phi = soft_1 mu`.

Source: C. W. Gear, B. Leimkuhler, G. K. Gupta, Automatic integration of Euler-Lagrange equations with constraints,
J. Comput. Appl. Math. 12-13 (1985) 77-90.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, stack
from cardan.formulation.coordinates import own_equations, tree_state
from cardan.formulation.dynamics import forward_dynamics
from cardan.formulation.formulation import Formulation, tree_rates
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.layout import Layout
from cardan.model.model import Model
from cardan.structure.kernels import tree_quantity


@dataclass(frozen=True)
class DaeLayout:
    """The unknowns of one form of the equations, "stabilised" or "index1"."""

    of: Layout
    form: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of q, v, lam and mu."""
        mu = len(self.of.positions) + len(self.of.unit) if self.form == "stabilised" else 0
        return self.of.nq, self.of.nv, len(self.of.rows), mu

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return sum(self.sizes)

    @property
    def name(self) -> str:
        """Everything that distinguishes it from another layout."""
        return f"{self.of.key} {self.form}"


def about_port(model: Model, formulation: Formulation) -> dict[str, Shape]:
    """The input `about`: a configuration of the tree near which measured angles are taken; none in tree coordinates."""
    return {} if formulation.in_tree else {"about": (model.nq,)}


def state(model: Model, layout: Layout) -> Quantity:
    """`M`, `f`, `J`, `gamma`, `phi`, `G`, `beta` of the rows kept, and `N`, at a state of the formulation."""
    import casadi as ca

    nq, nv, nl, formulation = layout.nq, layout.nv, len(layout.rows), layout.formulation
    shapes: dict[str, Shape] = {"t": (), "q": (nq,), "v": (nv,), "tau": (model.nv,)}
    shapes |= about_port(model, formulation)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        parts = own_equations(model, formulation, s)
        rows, qdot = parts.rows.kept(layout.rows), formulation.rates(model, s["q"], s["v"])
        phi = parts.rows.kept(layout.positions).phi
        G, N = ca.jacobian(phi, s["q"]), ca.jacobian(qdot, s["v"])
        return [parts.M, parts.f, rows.J, rows.gamma, phi, G, rows.beta, N]

    np_ = len(layout.positions)
    outputs = (
        ("M", fixed(nv, nv)), ("f", fixed(nv)), ("J", fixed(nl, nv)), ("gamma", fixed(nl)), ("phi", fixed(np_)),
        ("G", fixed(np_, nq)), ("beta", fixed(nl)), ("N", fixed(nq, nv)),
    )  # fmt: skip
    return Quantity("dae_state", tuple(shapes), outputs, write=write, shapes=shapes)


def residual(model: Model, layout: DaeLayout) -> Quantity:
    """`F` (n,) as a function of time, `y`, `y'`, `soft` and drives."""
    shapes: dict[str, Shape] = {"t": (), "y": (layout.n,), "yp": (layout.n,), "soft": (2,), "tau": (model.nv,)}
    shapes |= about_port(model, layout.of.formulation)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        F, stabiliser = _implicit(model, layout, s)
        F[: layout.of.nq] += stabiliser
        return [F]

    return Quantity("dae_residual", tuple(shapes), (("F", fixed(layout.n)),), write=write, shapes=shapes)


def jacobian(model: Model, layout: DaeLayout) -> Quantity:
    """The sparse matrix `dF/dy + cj dF/dy'` (n, n).

    The derivative of `G^T mu` by q is left out: on the solution mu, and with it this derivative, is zero.
    """
    import casadi as ca

    n, nq, first = layout.n, layout.of.nq, sum(layout.sizes[:3])  # of mu
    shapes: dict[str, Shape] = {"t": (), "cj": (), "y": (n,), "yp": (n,), "soft": (2,), "tau": (model.nv,)}
    shapes |= about_port(model, layout.of.formulation)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        F, stabiliser = _implicit(model, layout, s)
        K = ca.jacobian(F, s["y"]) + s["cj"] * ca.jacobian(F, s["yp"])
        K[:nq, first:] += ca.jacobian(stabiliser, s["y"])[:, first:]
        return [ca.sparsify(K)]

    return Quantity("dae_jacobian", tuple(shapes), (("K", fixed(n, n)),), write=write, shapes=shapes)


def explicit(model: Model) -> Quantity:
    """`y'` of `y = (q, v)`: `qdot = N v` and the accelerations, for a tree without constraint rows."""
    n = model.nq + model.nv
    shapes: dict[str, Shape] = {"t": (), "y": (n,), "tau": (model.nv,)}
    plain = tree_quantity(SPATIAL, "forward_dynamics")
    forward = plain if model.is_plain else forward_dynamics(model, SPATIAL, (), False)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        state = {"q": s["y"][: model.nq], "v": s["y"][model.nq :], "tau": s["tau"], "t": s["t"]}
        a = forward.graph(model, {name: state[name] for name in forward.inputs})[0]
        return [stack(tree_rates(model, state["q"], state["v"]), a)]

    return Quantity("explicit", tuple(shapes), (("ydot", fixed(n)),), write=write, shapes=shapes)


def explicit_jacobian(model: Model) -> Quantity:
    """The sparse matrix `dy'/dy` (n, n) of `explicit`."""
    import casadi as ca

    rates = explicit(model)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        return [ca.sparsify(ca.jacobian(rates.graph(model, s)[0], s["y"]))]

    n = model.nq + model.nv
    return Quantity("explicit_jacobian", rates.inputs, (("K", fixed(n, n)),), write=write, shapes=rates.shapes)


def nonzeros(matrix: Quantity, count: int) -> Quantity:
    """The nonzeros (count,) of a sparse matrix, by columns."""

    def write(model: Model, s: Inputs) -> list[Matrix]:
        return [matrix.graph(model, s)[0].nz[:]]

    return Quantity(matrix.name, matrix.inputs, (("K", fixed(count)),), write=write, shapes=matrix.shapes)


def events(model: Model, layout: DaeLayout, graph: Any) -> Quantity:
    """The events (ne,), a function `graph` of (t, q, v) of the tree, as a function of time, `y` and `about`."""
    shapes: dict[str, Shape] = {"t": (), "y": (layout.n,), "about": (model.nq,)}
    nq, nv = layout.of.nq, layout.of.nv

    def write(model: Model, s: Inputs) -> list[Matrix]:
        q, v = s["y"][:nq], s["y"][nq : nq + nv]
        return [graph(s["t"], *tree_state(model, layout.of.formulation, q, v, s["about"]))]

    return Quantity("events", tuple(shapes), (("g", fixed(graph.numel_out(0))),), write=write, shapes=shapes)


def _implicit(model: Model, layout: DaeLayout, s: Inputs) -> tuple[Matrix, Matrix]:
    """`F` without the stabilising term, and that term, `G^T mu`."""
    import casadi as ca

    of, ends = layout.of, [int(end) for end in np.cumsum([0, *layout.sizes])]
    q, v, lam, mu = (s["y"][a:b] for a, b in pairwise(ends))
    qdot, vdot, soft = s["yp"][: of.nq], s["yp"][of.nq : of.nq + of.nv], s["soft"]
    parts = own_equations(model, of.formulation, {**s, "q": q, "v": v})
    rows = parts.rows.kept(of.rows)
    moving = [qdot - of.formulation.rates(model, q, v), parts.M @ vdot + rows.J.T @ lam - parts.f]
    if layout.form == "index1":
        return ca.vertcat(*moving, rows.J @ vdot - rows.gamma), ca.SX(of.nq, 1)
    lengths = [(ca.sumsqr(q[k : k + 4]) - 1) / 2 for k in of.unit]
    held = ca.vertcat(parts.rows.kept(of.positions).phi, *lengths)
    return ca.vertcat(*moving, rows.J @ v - rows.beta - soft[0] * lam, held - soft[1] * mu), ca.jtimes(
        held, q, mu, True
    )
