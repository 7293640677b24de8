"""The equations of motion as one implicit system `F(t, y, y') = 0`, in any formulation's own coordinates.

    stabilised (index 2)   qdot = N v - G^T mu     M vdot + J^T lam = f     J v = beta(t)     phi(q, t) = 0
    index 1                qdot = N v              M vdot + J^T lam = f     J vdot = gamma

with `G = d phi / d q`, `y = (q, v, lam, mu)` or `(q, v, lam)`. On the solution `mu = 0`. Quaternions of unit length are
position constraints like the others.

Where constraints depend on one another for a moment, multipliers are undetermined. Two small numbers, `soft`, keep the
stabilised equations regular there: `J v = beta + soft_0 lam`, `phi = soft_1 mu`.

Source: C. W. Gear, B. Leimkuhler, G. K. Gupta, Automatic integration of Euler-Lagrange equations with constraints,
J. Comput. Appl. Math. 12-13 (1985) 77-90.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm, pi
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, stack
from cardan.errors import InputError
from cardan.formulation import native
from cardan.formulation.angles import near, principal
from cardan.formulation.dynamics import forward_dynamics
from cardan.formulation.quantity import PROJECT, Inputs, Quantity, Shape, fixed
from cardan.formulation.recursions import quantity
from cardan.model.model import Model

FORMS = ("stabilised", "index1")


@dataclass(frozen=True)
class Layout:
    """Which unknowns there are: `rows` of J and `places` of phi are those kept, `unit` is where quaternions start."""

    key: str
    form: str
    nq: int
    nv: int
    rows: tuple[int, ...]
    places: tuple[int, ...]
    unit: tuple[int, ...]

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many of q, v, lam, mu."""
        mu = len(self.places) + len(self.unit) if self.form == "stabilised" else 0
        return self.nq, self.nv, len(self.rows), mu

    @property
    def n(self) -> int:
        """Unknowns."""
        return sum(self.sizes)

    @property
    def name(self) -> str:
        """All that distinguishes it."""
        return f"{self.key} {self.form} {self.rows} {self.places}"


def quaternions(model: Model, key: str) -> tuple[int, ...]:
    """Where quaternions start among a formulation's coordinates."""
    if key == "points":
        return ()
    if key in native.TREE:
        return tuple(at.start for at in model.quaternions)
    return tuple(7 * i + 3 for i in range(len(model.separate.tree.links)))


def counting(model: Model, key: str) -> dict[str, Shape]:
    """The input `about`, a configuration of the tree near which measured angles are taken; none where none are."""
    return {} if key in native.TREE else {"about": (model.nq,)}


def state(model: Model, key: str, *, count: bool = False) -> Quantity:
    """`M`, `f`, `J`, `gamma`, `phi`, `G`, `beta` with all rows, and `N`, at a state of the formulation.

    With `count` the last input is that of `counting`.
    """
    import casadi as ca

    nq, nv = native.sizes(model, key)
    shapes: dict[str, Shape] = {"t": (), "q": (nq,), "v": (nv,), "tau": (model.nv,)}
    shapes |= counting(model, key) if count else {}

    def write(model: Model, s: Inputs) -> list[Matrix]:
        M, f, J, gamma, phi, beta, qdot = equations(model, key, s["t"], s["q"], s["v"], s["tau"], s.get("about"))
        return [M, f, J, gamma, phi, ca.jacobian(phi, s["q"]), beta, ca.jacobian(qdot, s["v"])]

    nl = write(model, {name: ca.SX.sym(name, *(shape or (1,))) for name, shape in shapes.items()})[4].shape[0]
    outputs = (
        ("M", fixed(nv, nv)), ("f", fixed(nv)), ("J", fixed(nl, nv)), ("gamma", fixed(nl)), ("phi", fixed(nl)),
        ("G", fixed(nl, nq)), ("beta", fixed(nl)), ("N", fixed(nq, nv)),
    )  # fmt: skip
    return Quantity("dae_state", tuple(shapes), outputs, write=write, shapes=shapes)


def residual(model: Model, layout: Layout) -> Quantity:
    """`F` (n,) of time, `y`, `y'`, `soft` and drives."""
    shapes: dict[str, Shape] = {"t": (), "y": (layout.n,), "yp": (layout.n,), "soft": (2,), "tau": (model.nv,)}
    shapes |= counting(model, layout.key)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        F, stabiliser = _implicit(model, layout, s)
        F[: layout.nq] += stabiliser
        return [F]

    return Quantity("dae_residual", tuple(shapes), (("F", fixed(layout.n)),), write=write, shapes=shapes)


def jacobian(model: Model, layout: Layout) -> Quantity:
    """The sparse matrix `dF/dy + cj dF/dy'` (n, n).

    The change of `G^T mu` with q is left out: it vanishes with mu, on the solution.
    """
    import casadi as ca

    n, first = layout.n, sum(layout.sizes[:3])  # of mu
    shapes: dict[str, Shape] = {"t": (), "cj": (), "y": (n,), "yp": (n,), "soft": (2,), "tau": (model.nv,)}
    shapes |= counting(model, layout.key)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        F, stabiliser = _implicit(model, layout, s)
        K = ca.jacobian(F, s["y"]) + s["cj"] * ca.jacobian(F, s["yp"])
        K[: layout.nq, first:] += ca.jacobian(stabiliser, s["y"])[:, first:]
        return [ca.sparsify(K)]

    return Quantity("dae_jacobian", tuple(shapes), (("K", fixed(n, n)),), write=write, shapes=shapes)


def explicit(model: Model) -> Quantity:
    """`y'` of `y = (q, v)`, `qdot = N v` and the accelerations, of a tree without couplings."""
    n = model.nq + model.nv
    shapes: dict[str, Shape] = {"t": (), "y": (n,), "tau": (model.nv,)}
    forward = (
        quantity("spatial", "forward_dynamics") if model.is_plain else forward_dynamics(model, "spatial", (), False)
    )

    def write(model: Model, s: Inputs) -> list[Matrix]:
        state = {"q": s["y"][: model.nq], "v": s["y"][model.nq :], "tau": s["tau"], "t": s["t"]}
        a = forward.graph(model, {name: state[name] for name in forward.inputs})[0]
        return [stack(native.rates(model, "spatial", state)[0], a)]

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
    import casadi as ca

    def write(model: Model, s: Inputs) -> list[Matrix]:
        K: Any = matrix.graph(model, s)[0]
        return [ca.vertcat(*K.nonzeros())]

    return Quantity(matrix.name, matrix.inputs, (("K", fixed(count)),), write=write, shapes=matrix.shapes)


def into(model: Model, key: str) -> Quantity:
    """The formulation's own `q` and `v` from those of the tree."""
    nq, nv = native.sizes(model, key)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        poses, twists = native.lift(model, "spatial", s)
        return native.project(model, key, {"poses": poses, "twists": twists})

    return Quantity("into_native", ("q", "v"), (("q", fixed(nq)), ("v", fixed(nv))), write=write)


def out_of(model: Model, key: str) -> Quantity:
    """`q` and `v` of the tree from the formulation's own.

    Of the values that an angle or a quaternion can have, those nearest to `about` (nq,), a configuration of the tree.
    """
    nq, nv = native.sizes(model, key)
    shapes: dict[str, Shape] = {"q": (nq,), "v": (nv,), "about": (model.nq,)}

    def write(model: Model, s: Inputs) -> list[Matrix]:
        return tree_state(model, key, s["q"], s["v"], s["about"])

    outputs = (("q", fixed(model.nq)), ("v", fixed(model.nv)))
    return Quantity("out_of_native", tuple(shapes), outputs, write=write, shapes=shapes)


def events(model: Model, layout: Layout, graph: Any) -> Quantity:
    """A function `graph` of (t, q, v) of the tree, (ne,), of time, `y` and `about`."""
    shapes: dict[str, Shape] = {"t": (), "y": (layout.n,), "about": (model.nq,)}

    def write(model: Model, s: Inputs) -> list[Matrix]:
        q, v = s["y"][: layout.nq], s["y"][layout.nq : layout.nq + layout.nv]
        return [graph(s["t"], *tree_state(model, layout.key, q, v, s["about"]))]

    return Quantity("events", tuple(shapes), (("g", fixed(graph.numel_out(0))),), write=write, shapes=shapes)


def tree_state(model: Model, key: str, q: Matrix, v: Matrix, about: Matrix) -> list[Matrix]:
    """`q`, near to `about`, and `v` of the tree."""
    if key in native.TREE:
        return [q, v]
    poses, twists = native.lift(model, key, {"q": q, "v": v})
    x, rate = PROJECT.graph(model, {"poses": poses, "twists": twists})
    parts = [near(link.kind, x[link.q], about[link.q]) for link in model.tree.links if link.kind.nq]
    return [stack(*parts) if parts else x, rate]


def equations(
    model: Model, key: str, t: Matrix, q: Matrix, v: Matrix, tau: Matrix, about: Matrix | None = None
) -> list[Matrix]:
    """`M`, `f`, `J`, `gamma`, `phi`, `beta`, `qdot` with all rows; joint angles are taken near `about`, if given."""
    state = {"q": q, "v": v, "tau": tau, "wrenches": type(q)(model.nb, 6), "t": t}
    state |= {} if about is None else {"about": about}
    M, f, J, gamma, phi = native.system(model, key, state)
    first = J.shape[0] - len(model.couplings)
    beta = type(q).zeros(J.shape[0])
    for k, coupling in enumerate(model.couplings):
        beta[first + k] = coupling.rows(t)[1]
        period = _period(model, key, k)
        if period:
            phi[first + k] = principal(phi[first + k], period)
    return [M, f, J, gamma, phi, beta, native.rates(model, key, {"q": q, "v": v})[0]]


def _implicit(model: Model, layout: Layout, s: Inputs) -> tuple[Matrix, Matrix]:
    """`F` without the stabilising term, and that term, `G^T mu`."""
    import casadi as ca

    ends = [int(end) for end in np.cumsum([0, *layout.sizes])]
    q, v, lam, mu = (s["y"][a:b] for a, b in pairwise(ends))
    qdot, vdot = s["yp"][: layout.nq], s["yp"][layout.nq : layout.nq + layout.nv]
    M, f, J, gamma, phi, beta, rate = equations(model, layout.key, s["t"], q, v, s["tau"], s.get("about"))
    rows, places, soft = list(layout.rows), list(layout.places), s["soft"]
    moving = [qdot - rate, M @ vdot + J[rows, :].T @ lam - f]
    if layout.form == "index1":
        return ca.vertcat(*moving, (J @ vdot - gamma)[rows]), ca.SX(layout.nq, 1)
    lengths = [(ca.sumsqr(q[k : k + 4]) - 1) / 2 for k in layout.unit]
    held = ca.vertcat(phi[places], *lengths)
    return ca.vertcat(*moving, (J @ v - beta)[rows] - soft[0] * lam, held - soft[1] * mu), ca.jtimes(held, q, mu, True)


def _period(model: Model, key: str, k: int) -> float:
    """By how much a coupling's residual jumps when an angle that is measured, not counted, passes half a turn."""
    coupling, own = model.couplings[k], {link.joint for link in model.tree.links if key in native.TREE}
    turning = [
        abs(float(c))
        for j, c in zip(coupling.joints, coupling.coefficients, strict=True)
        if j not in own and model.joints[j].kind.q_units == ("rad",)
    ]
    if not turning:
        return 0.0
    parts = [Fraction(c / turning[0]).limit_denominator(1000) for c in turning]
    if any(abs(float(p) * turning[0] - c) > 1e-12 * c for p, c in zip(parts, turning, strict=True)):
        ratios = ", ".join(f"{c:g}" for c in turning)
        raise InputError(
            f"{coupling.owner}: its angles are coupled with the factors {ratios}, whose ratio is no simple fraction: "
            f"turns cannot be told apart in {key!r} coordinates; integrate it in 'spatial'"
        )
    return 2 * pi * turning[0] * gcd(*(p.numerator for p in parts)) / lcm(*(p.denominator for p in parts))
