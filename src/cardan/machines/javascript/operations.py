"""The operations of a graph in JavaScript.

`Math` has most of them. The others are written here, with the results of the C library also for infinities, NaN, signed
zeros and ties. A module has only the definitions that it uses.
"""

from __future__ import annotations

import math

from cardan.program.graph import Lookup

# `{0}` and `{1}` are the operands, each a name, a number or an expression in parentheses
OPERATIONS = {
    "neg": "-{0}",
    "sq": "{0}*{0}",
    "twice": "{0}+{0}",
    "inv": "1/{0}",
    "not": "{0}===0?1:0",
    "add": "{0}+{1}",
    "sub": "{0}-{1}",
    "mul": "{0}*{1}",
    "div": "{0}/{1}",
    "fmod": "{0}%{1}",
    "lt": "{0}<{1}?1:0",
    "le": "{0}<={1}?1:0",
    "eq": "{0}==={1}?1:0",
    "ne": "{0}!=={1}?1:0",
    "and": "{0}!==0&&{1}!==0?1:0",
    "or": "{0}!==0||{1}!==0?1:0",
    "if_else_zero": "{0}!==0?{1}:0",
} | {
    name: f"{called}({{0}})"
    for name, called in {
        "fabs": "abs", "sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "asin", "acos": "acos",
        "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "asinh", "acosh": "acosh",
        "atanh": "atanh", "exp": "exp", "log": "log", "log1p": "log1p", "expm1": "expm1", "floor": "floor",
        "ceil": "ceil", "sign": "sign", "erf": "erf",
    }.items()
} | {
    name: f"{called}({{0}},{{1}})"
    for name, called in {
        "pow": "pow", "constpow": "pow", "atan2": "atan2", "hypot": "hypot", "remainder": "remainder",
        "fmin": "fmin", "fmax": "fmax", "copysign": "copysign",
    }.items()
}  # fmt: skip

# What `Math` does not have, or has with other results: Math.min keeps NaN, and 1 ** NaN is NaN.
_OWN = {
    "fmin": "(x, y) => (x !== x ? y : y !== y ? x : Math.min(x, y))",
    "fmax": "(x, y) => (x !== x ? y : y !== y ? x : Math.max(x, y))",
    "pow": "(x, y) => (x === 1 || (x === -1 && Math.abs(y) === Infinity) ? 1 : Math.pow(x, y))",
    "copysign": "(x, y) => (y < 0 || Object.is(y, -0) ? -Math.abs(x) : Math.abs(x))",
    # x - n y with n the integer nearest to x / y, an even one of two equally near: exact at every step
    "remainder": """(x, y) => {
  const p = Math.abs(y), half = p / 2;
  let r = Math.abs(x);
  if (p !== Infinity) r %= 2 * p;
  else if (r === Infinity) return NaN;
  if (half * 2 === p ? r > half : r + r > p) {
    r -= p;
    if (half * 2 === p ? r >= half : r + r >= p) r -= p;
  }
  return x < 0 || Object.is(x, -0) ? -r : r;
}""",
    # below 2.5 the series 2/sqrt(pi) exp(-x^2) sum 2^n x^(2n+1) / (2n+1)!!, whose terms are positive;
    # above it the continued fraction of 1 - erf, evaluated backwards from its 60th term
    "erf": """(x) => {
  if (x !== x) return x;
  const z = Math.abs(x), sign = Math.sign(x);
  if (z > 6) return sign;
  if (z < 2.5) {
    let term = z, sum = z;
    for (let n = 1; term > sum * 1e-17; n++) sum += term *= (2 * z * z) / (2 * n + 1);
    return z === 0 ? x : sign * Math.min(1, TWO_OVER_ROOT_PI * Math.exp(-z * z) * sum);
  }
  let below = z;
  for (let n = 60; n > 0; n--) below = z + n / 2 / below;
  return sign * (1 - (TWO_OVER_ROOT_PI / 2) * Math.exp(-z * z) / below);
}""".replace("TWO_OVER_ROOT_PI", repr(2 / math.sqrt(math.pi))),
}  # fmt: skip


def expression(op: str) -> str:
    """The operation as a text with `{0}` and `{1}` for its operands."""
    return f"{op}[{{0}}]" if isinstance(op, Lookup) else OPERATIONS[op]


def called(op: str) -> str | None:
    """The name of the function that an operation calls, or of the array that it reads; None for an expression."""
    if isinstance(op, Lookup):
        return op
    name, paren, _ = OPERATIONS[op].partition("(")
    return name if paren and name.isidentifier() else None


def definition(name: str) -> str:
    """The line that defines a function of `OPERATIONS`, or an array."""
    if isinstance(name, Lookup):
        return f"const {name} = [{','.join(map(number, name.values.tolist()))}];"
    return f"const {name} = {_OWN.get(name, 'Math.' + name)};"


def number(x: float) -> str:
    """A number that reads back as the same double, in parentheses if it has a sign."""
    if math.isnan(x):
        return "NaN"
    text = "Infinity" if math.isinf(x) else repr(abs(x)).removesuffix(".0")
    return f"(-{text})" if math.copysign(1.0, x) < 0 else text
