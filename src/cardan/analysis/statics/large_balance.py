"""The balance of forces of a large mechanism with loops, with its derivatives, summed over components.

It is what `analysis.statics.balance.balance` writes as one graph, of all constraint rows, in the tree's coordinates.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.formulation.division import longest_subtree
from cardan.formulation.formulation import Formulation
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.large import LARGEST_PIECE, STATE, written_parts
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.component_sums import Component, Components, ComponentSum, Symbols
from cardan.structure.large import is_divided

INPUTS = {**STATE, "D": "v", "a": "v", "lam": "rows"}
VECTORS = {"r": "v", "phi": "rows", "rate": "rows", "acceleration": "rows"}
_SUMS: Slot[None, ComponentSum] = Slot("the balance of a large mechanism")


def is_large_balance(model: Model, formulation: Formulation) -> bool:
    """Whether the balance of a model is summed: its pieces on the ground are short."""
    is_long = longest_subtree(model) > LARGEST_PIECE
    return formulation is SPATIAL and model.has_rows and is_divided(model, SPATIAL) and not is_long


def large_balance(
    model: Model, t: float, moving: bool, q: np.ndarray, v: np.ndarray, a: np.ndarray, lam: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Values (n, size) of `r + J^T lam`, `phi` and, if `moving`, `J v - beta`, `J a - gamma`; their derivatives.

    These are by `q` along the tangent, `v`, `a` and `lam`, as far as the balance depends on them.
    """
    home, values, slopes = model.unbound, [], []
    total = _SUMS.find(home, None, lambda: _balance(home))
    names = ("r", "phi", *(("rate", "acceleration") if moving else ()))
    for i in range(len(q)):
        numbers = total.components.nominal()
        if model.values is not None:
            numbers = total.components.at(model.values[i] if model.values.ndim > 1 else model.values)
        none = np.zeros(model.nv)
        state = {"t": t, "q": q[i], "v": v[i], "a": a[i], "lam": lam[i], "D": none, "tau": none, "about": q[i]}
        found = total(numbers, **state)
        values.append(np.concatenate([found[name] for name in names]))
        by = ("q", "v", "a", "lam") if moving else ("q", "lam")
        slopes.append({x: np.concatenate([found[f"{name}_{x}"].toarray() for name in names]) for x in by})
    return np.array(values), {x: np.array([each[x] for each in slopes]) for x in slopes[0]}


def _balance(model: Model) -> ComponentSum:
    components = Components(model, SPATIAL, range(len(model.rows)))

    def write(c: Component, s: Symbols) -> dict[str, Matrix]:
        import casadi as ca

        parts = written_parts(c, s, c.formulation.plus(c.model, s["q"], s["D"]))
        rows = parts.rows.kept(c.rows)
        values = {
            "r": c.formulation.inertia_force(parts, s["a"]) + rows.J.T @ s["lam"] - parts.f,
            "phi": rows.phi,
            "rate": rows.J @ s["v"] - rows.beta,
            "acceleration": rows.J @ s["a"] - rows.gamma,
        }
        by = {"q": s["D"], "v": s["v"], "a": s["a"], "lam": s["lam"]}
        slopes = {f"{name}_{x}": ca.jacobian(value, y) for name, value in values.items() for x, y in by.items()}
        return {**values, **slopes}

    axes: Any = {"q": "v", "v": "v", "a": "v", "lam": "rows"}
    matrices = {f"{name}_{x}": (axis, along) for name, axis in VECTORS.items() for x, along in axes.items()}
    return ComponentSum(components, "balance", INPUTS, {**{n: (x,) for n, x in VECTORS.items()}, **matrices}, write)
