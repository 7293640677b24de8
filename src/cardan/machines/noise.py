"""A graph evaluated by NumPy with every rounding error replaced by a larger random one.

D. S. Parker's Monte Carlo arithmetic (UCLA CSD-970002, 1997): each operation that rounds is wrong by a random relative
amount, drawn anew for every sample. The spread of the results, scaled down, is how far the rounding of this very
program is magnified at these inputs, whatever the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.program.graph import Graph, Lookup

EPS = 2.0**-52
TIMES = 16  # how much larger than rounding the noise is: above the rounding of its own evaluation
_SPLIT = 2.0**27 + 1


def _select(x: Any, y: Any) -> Any:
    return np.where(x != 0, y, 0.0)


def _true(test: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: test(*args) * 1.0


_EXACT: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "twice": lambda x: x + x, "fabs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil,
    "fmin": np.minimum, "fmax": np.maximum, "fmod": np.fmod, "remainder": lambda x, y: x - np.rint(x / y) * y,
    "copysign": np.copysign, "if_else_zero": _select, "lt": _true(np.less), "le": _true(np.less_equal),
    "eq": _true(np.equal), "ne": _true(np.not_equal), "and": _true(np.logical_and), "or": _true(np.logical_or),
    "not": _true(np.logical_not),
}  # fmt: skip
_ROUNDED: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "sq": np.square, "div": np.divide,
    "inv": lambda x: 1.0 / x, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "exp": np.exp, "log": np.log, "log1p": np.log1p, "expm1": np.expm1,
    "erf": lambda x: _erf(x), "pow": np.power, "constpow": np.power, "atan2": np.arctan2, "hypot": np.hypot,
}  # fmt: skip


@dataclass(frozen=True)
class Plan:
    """A graph in groups of like operations that need nothing of each other: NumPy does each at once.

    `groups` has the operation, the values that it gives, and for each operand the values that it takes.
    """

    graph: Graph
    inputs: tuple[tuple[int, int, int], ...]
    constants: tuple[tuple[int, float], ...]
    groups: tuple[tuple[str, np.ndarray, tuple[np.ndarray, ...]], ...]


def plan(graph: Graph) -> Plan:
    """Sort the values of a graph by the depth at which they can be computed."""
    depth = [0] * len(graph.op)
    found: dict[tuple[int, str], list[int]] = {}
    inputs, constants = [], []
    for k, (op, args) in enumerate(zip(graph.op, graph.args, strict=True)):
        if op == "input":
            inputs.append((k, *args))
        elif op == "const":
            constants.append((k, float(args[0])))
        else:
            depth[k] = 1 + max(depth[a] for a in args)
            found.setdefault((depth[k], op), []).append(k)
    groups = []
    for (_, op), of in sorted(found.items()):
        operands = zip(*(graph.args[k] for k in of), strict=True)
        groups.append((op, np.array(of), tuple(np.array(x) for x in operands)))
    return Plan(graph, tuple(inputs), tuple(constants), tuple(groups))


def evaluated(program: Plan, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Outputs (rows, size) of a graph, one array a port, at inputs (rows, size)."""
    with np.errstate(all="ignore"):
        return _outputs(program, _values(program, inputs, (len(inputs[0]),), None))


def with_noise(program: Plan, inputs: Sequence[np.ndarray], samples: int, seed: int = 0) -> list[np.ndarray]:
    """Outputs (samples + 1, rows, size), one array a port, at inputs (rows, size): first without noise, then with.

    A sample's differences from the first are `TIMES` those of rounding.
    """
    rng, rows, n = np.random.default_rng(seed), len(inputs[0]), len(program.graph.op)
    noise = rng.uniform(-0.5 * TIMES * EPS, 0.5 * TIMES * EPS, (n, samples, 1))  # alike in all rows
    with np.errstate(all="ignore"):
        clean = _values(program, inputs, (rows,), None)
        noisy = _values(program, inputs, (samples, rows), lambda group, op: _factor(clean, noise, group, op))
        return [np.stack([a, *b]) for a, b in zip(_outputs(program, clean), _outputs(program, noisy), strict=True)]


def _outputs(program: Plan, values: np.ndarray) -> list[np.ndarray]:
    """The ports (..., size) from the values of a graph."""
    results = [np.zeros((*values.shape[1:], size)) for size in program.graph.output_sizes]
    for port, element, k in program.graph.outputs:
        results[port][..., element] = values[k]
    return results


def _values(
    program: Plan, inputs: Sequence[np.ndarray], shape: tuple[int, ...], factor: Callable[..., np.ndarray] | None
) -> np.ndarray:
    """Every value of a graph (values, *shape), those that may round times a factor."""
    values = np.empty((len(program.graph.op), *shape))
    for k, port, element in program.inputs:
        values[k] = inputs[port][..., element]
    for k, x in program.constants:
        values[k] = x
    for op, of, operands in program.groups:
        if op in _ROUNDED:
            x = _ROUNDED[op](*(values[a] for a in operands))
            values[of] = x if factor is None else x * factor((of, operands), op)
        elif isinstance(op, Lookup):
            (index,) = operands
            values[of] = op.values[values[index].astype(np.intp)]
        else:
            values[of] = _EXACT[op](*(values[a] for a in operands))
    return values


def _factor(clean: np.ndarray, noise: np.ndarray, group: Any, op: str) -> np.ndarray:
    """One plus the noise (values, samples, rows) of a group where it was rounded: by error-free transformations.

    Source: T. J. Dekker, Numerische Mathematik 18 (1971) 224-242.
    """
    of, operands = group
    exact = _is_exact(op, clean[operands[0]], clean[operands[-1]], clean[of])
    return 1.0 + noise[of] * ~exact[:, None, :]


def _is_exact(op: str, a: np.ndarray, b: np.ndarray, x: np.ndarray) -> Any:
    """Whether results did not round."""
    if op in ("add", "sub"):
        b = b if op == "add" else -b
        part = x - a
        return (a - (x - part)) + (b - part) == 0
    if op in ("mul", "sq"):
        return _product_error(a, b, x) == 0
    if op in ("div", "inv"):
        return (x * b == (a if op == "div" else 1.0)) & (_product_error(x, b, x * b) == 0)
    return (x == 0) | (np.abs(x) == 1)  # a sine of zero, a cosine


def _product_error(a: Any, b: Any, product: Any) -> Any:
    """What `product` is short of `a b`."""
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Any) -> tuple[Any, Any]:
    big = _SPLIT * a
    high = big - (big - a)
    return high, a - high


def _erf(x: Any) -> Any:
    from scipy.special import erf

    return erf(x)
