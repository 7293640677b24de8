"""Linear models of large mechanisms with loops: sparse equations, summed over components (`integrate.large`).

In the coordinates of the sums, with shifts `D` of the positions, the equations of motion are

    r = M vdot + J^T lam - f = 0        g = J vdot - gamma = 0        u = J v - beta = 0        phi = 0

and `w = T v` are the rates of the tree's joints. A change of the independent coordinates or rates moves everything with

    phi_D dD = 0                                    T dD given in the independent coordinates
    J dv = -u_D dD                                  T dv + w_D dD given in the independent rates
    M da + J^T dlam = -r_D dD - r_v dv + T^T dtau   J da = -g_D dD - g_v dv

as in `formulation.linear`, of which this is the sparse form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.algebra.matrix import Matrix, stack
from cardan.formulation.formulation import Formulation
from cardan.formulation.linear import Columns
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.large import STATE, LargeSystem, factored, large_system, small_pivots, written_parts
from cardan.model.model import Model
from cardan.structure.component_sums import Component, Symbols
from cardan.structure.large import is_divided, row_residuals

if TYPE_CHECKING:
    from cardan.analysis.linear.operating_point import OperatingPoint

CORRECTIONS = 4  # of accelerations, for lent inertia and enlarged pivots
TANGENT = {**STATE, "D": "v", "vdot": "v", "lam": "rows"}
SQUARES = {
    "M": ("v", "v"), "J": ("rows", "v"), "r_D": ("v", "v"), "r_v": ("v", "v"), "u_D": ("rows", "v"),
    "g_D": ("rows", "v"), "g_v": ("rows", "v"), "phi_D": ("positions", "v"),
}  # fmt: skip


def is_large_with_loops(point: OperatingPoint, formulation: Formulation, columns: Columns) -> bool:
    """Whether a model is linearised here: not with wrenches or parameters as inputs, nor in motion with quaternions."""
    model = point.model
    if formulation is not SPATIAL or columns.loaded or not model.has_rows:
        return False
    if columns.parameters or columns.variables:
        return False
    if not is_divided(model, SPATIAL):
        return False
    in_tree = large_system(model, SPATIAL).in_tree
    return not np.any(point.v) or (in_tree and not model.quaternions)


def linear_loops(point: OperatingPoint, columns: Columns) -> tuple[np.ndarray, ...]:
    """`a`, `AB`, `dq`, `dv`, `da`, `M` and the quality of `formulation.linear.linear_motion`, state by state."""
    model, batch = point.model, point.batch
    rows = []
    for at in np.ndindex(*batch):
        one = model.one_of(at) if model.values is not None else model
        rows.append(_linear(one, point.part(at) if batch else point, columns))
    return tuple(np.array(x).reshape(*batch, *np.shape(x[0])) for x in zip(*rows, strict=True))


def _linear(model: Model, point: OperatingPoint, columns: Columns) -> tuple[np.ndarray, ...]:
    system: Any = large_system(model, SPATIAL)
    numbers = system.components.at(np.ravel(model.values)) if model.values is not None else system.components.nominal()
    t, tau = float(np.ravel(point.t)[0]), np.broadcast_to(point.tau, (model.nv,))
    x, w = np.ravel(point.q), np.broadcast_to(point.v, (model.nv,))
    q, v = system.into(x, w, numbers)
    given = {"t": t, "q": q, "v": v, "tau": tau, "about": x}
    vdot, lam = system.start(t, q, v, tau, x, numbers)
    found = _tangent(system)(numbers, D=np.zeros(system.nv), vdot=vdot, lam=lam, **given)
    T, w_D, a_D = _rates(system, numbers, q, v, vdot, x)
    n, k = columns.states, columns.count
    coordinates, rates = list(columns.coordinates), list(columns.rates)
    unit_q, unit_v = np.zeros((len(coordinates), k)), np.zeros((len(rates), k))
    unit_q[:, : len(coordinates)], unit_v[:, len(coordinates) : n] = np.eye(len(coordinates)), np.eye(len(rates))
    D = _completed(found["phi_D"], T[coordinates], np.zeros((system.mp, k)), unit_q)
    dv = _completed(found["J"], T[rates], -(found["u_D"] @ D), unit_v - (w_D @ D)[rates])
    drives = np.zeros((model.nv, k))
    drives[list(columns.tau), n + np.arange(len(columns.tau))] = 1.0
    f = T.T @ drives - found["r_D"] @ D - found["r_v"] @ dv
    da = _accelerations(system, found["M"], found["J"], f, -(found["g_D"] @ D) - found["g_v"] @ dv)
    tree_q, tree_v, tree_a = T @ D, T @ dv + w_D @ D, T @ da + a_D @ D
    Z = dv[:, len(coordinates) : n]
    AB = np.concatenate([tree_v[coordinates], tree_a[rates]])
    steepest = max(
        float(np.abs(tree_q).max(initial=1.0)), float(np.abs(tree_v[:, len(coordinates) : n]).max(initial=1.0))
    )
    phi, rate = row_residuals(model, x, w, t)
    quality = np.array([steepest**-2, np.abs(phi).max(initial=0.0), np.abs(rate).max(initial=0.0)])
    return T @ vdot, AB, tree_q, tree_v, tree_a, Z.T @ (found["M"] @ Z), quality


def _tangent(system: LargeSystem) -> Any:
    """Derivatives of all equations at `D = 0`."""

    def write(c: Component, s: Symbols) -> dict[str, Matrix]:
        import casadi as ca

        parts = written_parts(c, s, c.formulation.plus(c.model, s["q"], c.wide(s["D"])))
        rows, phi = parts.rows.kept(c.rows), parts.rows.kept(c.positions).phi
        a = c.wide(s["vdot"])
        r = c.narrow(c.formulation.inertia_force(parts, a) + rows.J.T @ s["lam"] - parts.f)
        u, g = rows.J @ c.wide(s["v"]) - rows.beta, rows.J @ a - rows.gamma
        return {
            "M": ca.jacobian(r, s["vdot"]), "J": ca.jacobian(u, s["v"]), "r_D": ca.jacobian(r, s["D"]),
            "r_v": ca.jacobian(r, s["v"]), "u_D": ca.jacobian(u, s["D"]), "g_D": ca.jacobian(g, s["D"]),
            "g_v": ca.jacobian(g, s["v"]), "phi_D": ca.jacobian(phi, s["D"]),
        }  # fmt: skip

    return system.sum("tangent", TANGENT, SQUARES, write)


def _rates(system: LargeSystem, numbers: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray, about: np.ndarray) -> Any:
    """`T` (nv of the tree, n), and the derivatives of `T v` and `T a` by `D`."""
    from scipy.sparse import csc_array, eye_array

    if system.in_tree:
        none = csc_array((system.nv, system.nv))
        return eye_array(system.nv, format="csr"), none, none

    def write(c: Component, s: Symbols) -> dict[str, Matrix]:
        import casadi as ca

        at = c.formulation.plus(c.model, s["q"], c.wide(s["D"]))
        kin = c.formulation.kinematics(c.model, at, c.wide(s["v"]), s["about"])
        w = stack(*(kin.joint(link.joint)[1] for link in c.model.tree.links if link.kind.nq))
        return {"T": ca.jacobian(w, s["v"]), "w_D": ca.jacobian(w, s["D"])}

    inputs, outputs = {"q": "q", "v": "v", "D": "v", "about": "x"}, {"T": ("tau", "v"), "w_D": ("tau", "v")}
    moves = lambda cls: cls.outline.driven and cls.outline.nq > 0
    found = system.sum("rates of joints", inputs, outputs, write, moves)
    at = {"q": q, "D": np.zeros(system.nv), "about": about}
    along, turned = found(numbers, v=v, **at), found(numbers, v=a, **at)
    return along["T"].tocsr(), along["w_D"], turned["w_D"]


def _completed(rows: Any, chosen: Any, rest: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Rates (n, columns) with `rows d = rest` that are `given` in those chosen."""
    from scipy.sparse import vstack

    found: np.ndarray = factored(vstack([rows, chosen]))(np.concatenate([rest, given]))
    return found


def _accelerations(system: LargeSystem, M: Any, J: Any, f: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """Solve `M da + J^T dlam = f`, `J da = gamma` for columns."""
    from scipy.sparse import block_array

    S, b = M + system.lent, np.concatenate([f, gamma])
    K = block_array([[M, J.T], [J, None]], format="csc")
    solve = factored(block_array([[S, J.T], [J, -small_pivots((J**2) @ (1 / S.diagonal()))]], format="csc"))
    x = solve(b)
    for _ in range(CORRECTIONS):
        x = x + solve(b - K @ x)
    return np.asarray(x[: system.nv])
