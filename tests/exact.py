"""A graph computed with as many digits as one asks for: what the kernels would answer without rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import mpmath
import numpy as np

import cardan as cd
from cardan.formulation.constrained import build_parts
from cardan.integrate.independence import kept_rows
from cardan.kernels.graph import Graph, read

DIGITS = 60
# fmt: off
OPERATIONS: dict[str, Callable[..., Any]] = {
    "neg": lambda x: -x, "sq": lambda x: x * x, "twice": lambda x: 2 * x, "inv": lambda x: 1 / x, "sqrt": mpmath.sqrt,
    "sin": mpmath.sin, "cos": mpmath.cos, "fabs": abs, "sign": mpmath.sign, "not": lambda x: mpmath.mpf(x == 0),
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "pow": mpmath.power, "constpow": mpmath.power, "atan2": mpmath.atan2, "fmin": min, "fmax": max,
    "lt": lambda x, y: mpmath.mpf(x < y), "le": lambda x, y: mpmath.mpf(x <= y), "eq": lambda x, y: mpmath.mpf(x == y),
    "ne": lambda x, y: mpmath.mpf(x != y), "if_else_zero": lambda x, y: y if x != 0 else mpmath.mpf(0),
    "and": lambda x, y: mpmath.mpf(x != 0 and y != 0), "or": lambda x, y: mpmath.mpf(x != 0 or y != 0),
}
# fmt: on


def exact(function: Any, *inputs: np.ndarray, digits: int = DIGITS) -> list[np.ndarray]:
    """Outputs of a CasADi function at float64 inputs, computed with `digits` and rounded once, each in its shape."""
    with mpmath.workdps(digits):
        values = _values(read(function), [np.asarray(x, dtype=float).ravel() for x in inputs])
    results = [np.zeros(function.size_out(k)) for k in range(function.n_out())]
    for port, element, k in read(function).outputs:
        results[port].flat[element] = float(values[k])
    return [x[:, 0] if x.shape[1] == 1 else x for x in results]


def exact_accelerations(model: cd.Model, key: str, *state: np.ndarray, digits: int = DIGITS) -> np.ndarray:
    """Accelerations of the tree's coordinates from a formulation's equations, by elimination with pivots.

    `M vdot + J^T lam = f`, `J vdot = gamma` for q, v, tau, with the rows that the formulation keeps.
    """
    symbols = [ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv))]
    parts, rows = build_parts(model, key, *symbols, ca.SX(model.nb, 6)), kept_rows(model, key)
    J, n, free = parts.J[rows, :], parts.M.shape[0], len(rows)
    K = ca.blockcat([[parts.M, J.T], [J, ca.SX(free, free)]])
    graph = read(ca.Function("system", symbols, [ca.densify(K), ca.vertcat(parts.f, parts.gamma[rows])]))
    with mpmath.workdps(digits):
        values = _values(graph, [np.asarray(x, dtype=float).ravel() for x in state])
        system = [mpmath.zeros(n + free, n + free), mpmath.zeros(n + free, 1)]
        for port, element, k in graph.outputs:
            system[port][divmod(element, system[port].cols)] = values[k]
        vdot = np.array([float(x) for x in mpmath.lu_solve(*system)[:n]])
    return vdot


def _values(graph: Graph, inputs: list[np.ndarray]) -> list[Any]:
    """Every value of the graph, in mpmath's present precision."""
    values: list[Any] = []
    for op, args in zip(graph.op, graph.args, strict=True):
        if op == "input":
            values.append(mpmath.mpf(float(inputs[args[0]][args[1]])))
        elif op == "const":
            values.append(mpmath.mpf(args[0]))
        else:
            values.append(OPERATIONS[op](*(values[a] for a in args)))
    return values
