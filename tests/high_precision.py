"""Evaluate a graph with any number of digits: the answers of the kernels without rounding errors."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import casadi as ca
import mpmath
import numpy as np

import cardan as cd
from cardan.program.graph import Graph, read
from cardan.structure.formulation import formulation_of
from cardan.structure.rows import kept_rows

from .formulations import parts_of

DIGITS = 60
MORE = 20  # digits beyond, for angles of many turns
ZERO, ONE = Decimal(0), Decimal(1)


def _by_series(function: Callable[..., Any]) -> Callable[..., Decimal]:
    """A function of mpmath, on decimals of the current precision."""

    def value(*args: Decimal) -> Decimal:
        with localcontext() as context, mpmath.workdps(context.prec + MORE):
            return Decimal(mpmath.nstr(function(*(mpmath.mpf(str(x)) for x in args)), context.prec + 2))

    return value


def _truth(test: Callable[..., bool]) -> Callable[..., Decimal]:
    return lambda *args: ONE if test(*args) else ZERO


# fmt: off
OPERATIONS: dict[str, Callable[..., Any]] = {
    "neg": operator.neg, "sq": lambda x: x * x, "twice": lambda x: x + x, "inv": lambda x: 1 / x,
    "sqrt": lambda x: x.sqrt(), "sin": _by_series(mpmath.sin), "cos": _by_series(mpmath.cos), "fabs": abs,
    "sign": lambda x: ONE.copy_sign(x) if x else ZERO, "tanh": _by_series(mpmath.tanh),
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv,
    "pow": _by_series(mpmath.power), "constpow": _by_series(mpmath.power), "atan2": _by_series(mpmath.atan2),
    "fmin": min, "fmax": max, "if_else_zero": lambda x, y: y if x else ZERO, "not": _truth(operator.not_),
    "lt": _truth(operator.lt), "le": _truth(operator.le), "eq": _truth(operator.eq), "ne": _truth(operator.ne),
    "and": _truth(lambda x, y: x and y), "or": _truth(lambda x, y: x or y),
}
# fmt: on


def exact(function: Any, *inputs: np.ndarray, digits: int = DIGITS) -> list[np.ndarray]:
    """Outputs of a CasADi function at float64 inputs, computed with `digits` and rounded once, each in its shape."""
    graph = read(function)
    with localcontext(prec=digits):
        values = _values(graph, [np.asarray(x, dtype=float).ravel() for x in inputs])
    results = [np.zeros(function.size_out(k)) for k in range(function.n_out())]
    for port, element, k in graph.outputs:
        results[port].flat[element] = float(values[k])
    return [x[:, 0] if x.shape[1] == 1 else x for x in results]


def exact_accelerations(model: cd.Model, key: str, *state: np.ndarray, digits: int = DIGITS) -> np.ndarray:
    """Accelerations of the tree's coordinates from a formulation's equations, by elimination with pivots.

    `M vdot + J^T lam = f`, `J vdot = gamma` for q, v, tau, with the rows that the formulation keeps.
    """
    symbols = [ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv))]
    parts, rows = parts_of(model, key, *symbols), kept_rows(model, formulation_of(model, key))
    J, n, free = parts.rows.J[rows, :], parts.M.shape[0], len(rows)
    K = ca.blockcat([[parts.M, J.T], [J, ca.SX(free, free)]])
    graph = read(ca.Function("system", symbols, [ca.densify(K), ca.vertcat(parts.f, parts.rows.gamma[rows])]))
    with localcontext(prec=digits):
        values = _values(graph, [np.asarray(x, dtype=float).ravel() for x in state])
        system = np.full((n + free, n + free + 1), ZERO)
        for port, element, k in graph.outputs:
            system[(*divmod(element, n + free),) if port == 0 else (element, -1)] = values[k]
        return _solve(system)[:n].astype(float)


def _solve(system: np.ndarray) -> np.ndarray:
    """The unknowns (n,) of a system (n, n + 1), its right side the last column."""
    n = len(system)
    for k in range(n):
        best = k + int(np.argmax(np.abs(system[k:, k])))
        system[[k, best]] = system[[best, k]]
        system[k] = system[k] / system[k, k]
        for other in range(n):
            if other != k and system[other, k]:
                system[other] = system[other] - system[other, k] * system[k]
    return system[:, -1]


def _values(graph: Graph, inputs: list[np.ndarray]) -> list[Any]:
    """Every value of the graph, in the current precision of decimals."""
    values: list[Any] = []
    for op, args in zip(graph.op, graph.args, strict=True):
        if op == "input":
            values.append(Decimal(float(inputs[args[0]][args[1]])))
        elif op == "const":
            values.append(Decimal(args[0]))
        else:
            values.append(OPERATIONS[op](*[values[a] for a in args]))
    return values
