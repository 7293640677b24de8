"""A graph: numbered values, each assigned once, read from the instruction list of a CasADi SX function.

CasADi reuses its work registers; a printer needs one name per value. Equal operations on equal operands become one
value.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import CardanError
from cardan.lookup import LOOKUP, SOURCE, ZERO, called_functions, kind_of, values_of

if TYPE_CHECKING:
    import casadi

# fmt: off
UNARY = (
    "neg", "sq", "twice", "inv", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "exp", "log", "log1p", "expm1", "erf", "fabs", "floor", "ceil", "sign", "not",
)
BINARY = (
    "add", "sub", "mul", "div", "pow", "constpow", "atan2", "hypot", "fmod", "remainder", "fmin", "fmax",
    "copysign", "lt", "le", "eq", "ne", "and", "or", "if_else_zero",
)
# fmt: on
_SPECIAL = frozenset({"input", "output", "const", "copy", ""})
_DIVIDING = frozenset({"div", "inv"})
_CODES = 1 << 8  # more than CasADi has operations
COMMUTATIVE = frozenset({"add", "mul", "fmin", "fmax", "eq", "ne", "and", "or", "hypot"})


class Lookup(str):
    """The operation that takes a number from an array at the index that is its operand: its name, and the `values`."""

    __slots__ = ("values",)
    values: np.ndarray

    def __new__(cls, name: str, values: np.ndarray) -> Lookup:
        """Name the operation; equal names have equal values."""
        made = super().__new__(cls, name)
        made.values = values
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle it with its values."""
        return Lookup, (str(self), self.values)


@dataclass
class Graph:
    """Values in an order in which each comes after its operands.

    `op[k]` names the operation of value `k` and `args[k]` its operands: value numbers; (port, element) for an
    `input`; the number for a `const`. An operation that reads an array is a `Lookup`. `outputs` lists (port, element,
    value). Elements count in C order. `input_sizes` and `output_sizes` are the numbers of elements of each port.
    """

    op: list[str] = field(default_factory=list)
    args: list[tuple[Any, ...]] = field(default_factory=list)
    outputs: list[tuple[int, int, int]] = field(default_factory=list)
    input_sizes: list[int] = field(default_factory=list)
    output_sizes: list[int] = field(default_factory=list)

    @property
    def state_size(self) -> int:
        """Numbers of memory that one evaluation needs besides its ports: none."""
        return 0

    def uses(self) -> list[int]:
        """How often each value is read, by values that matter to an output and by outputs."""
        count = [0] * len(self.op)
        for _, _, k in self.outputs:
            count[k] += 1
        for k in range(len(self.op) - 1, -1, -1):
            if count[k] and self.op[k] not in ("input", "const"):
                for a in self.args[k]:
                    count[a] += 1
        return count

    def of(self, ports: Iterable[int]) -> Graph:
        """What some of the output ports need, and no other value; the ports keep their numbers.

        A value that only one other still reads is an output of port -1 too, which no machine stores: a product must not
        be fused into a sum where it is not in the whole graph, so that the bits are the same.
        """
        wanted, needed = set(ports), [False] * len(self.op)
        for port, _, k in self.outputs:
            needed[k] |= port in wanted
        for k in range(len(self.op) - 1, -1, -1):
            if needed[k] and self.op[k] not in ("input", "const"):
                for a in self.args[k]:
                    needed[a] = True
        result = Graph(input_sizes=self.input_sizes, output_sizes=self.output_sizes)
        place: dict[int, int] = {}
        for k, (op, args) in enumerate(zip(self.op, self.args, strict=True)):
            if needed[k]:
                place[k] = len(result.op)
                result.op.append(op)
                result.args.append(args if op in ("input", "const") else tuple(place[a] for a in args))
        result.outputs = [(p, e, place[k]) for p, e, k in self.outputs if p in wanted or (p < 0 and k in place)]
        before, now = self.uses(), result.uses()
        result.outputs += [(-1, 0, new) for old, new in place.items() if before[old] > 1 == now[new]]
        return result

    def sparse_outputs(self) -> set[int]:
        """The output ports with an element that is the number 0."""
        return {port for port, _, k in self.outputs if self.op[k] == "const" and self.args[k][0] == 0.0}

    def operations(self) -> dict[str, int]:
        """How many of each operation one evaluation takes."""
        return dict(Counter(op for op in self.op if op not in ("input", "const")))


def total_operations(parts: Iterable[tuple[dict[str, int], int]]) -> dict[str, int]:
    """Sum of the operations of several parts, given with how often each part runs."""
    total: Counter[str] = Counter()
    for operations, times in parts:
        for op, count in operations.items():
            total[op] += times * count
    return dict(total)


@cache
def _codes() -> dict[int, str]:
    """Names of the operations by CasADi's codes."""
    import casadi

    names = {getattr(casadi, "OP_" + name.upper()): name for name in UNARY + BINARY}
    special = {"input": casadi.OP_INPUT, "output": casadi.OP_OUTPUT, "const": casadi.OP_CONST}
    # `lift(x, guess)` has the value x
    return names | {code: name for name, code in special.items()} | {casadi.OP_ASSIGN: "copy", casadi.OP_LIFT: "copy"}


@cache
def _call() -> int:
    """CasADi's code of a call."""
    import casadi

    return int(casadi.OP_CALL)


def _with_zero(op: str, args: tuple[int, ...], zero: int) -> int | None:
    """The value that an operation on zero is already; None where it is a new one."""
    if op in ("mul", "neg", "sq", "twice", "if_else_zero") or (op in ("add", "sub") and args == (zero, zero)):
        return zero
    if op == "add":
        return args[0] if args[1] == zero else args[1]
    return args[0] if op == "sub" and args[1] == zero else None


def _unknown(code: int, function: casadi.Function) -> CardanError:
    """The error for an operation that graphs do not have."""
    import casadi

    names = [n for n in dir(casadi) if n.startswith("OP_") and getattr(casadi, n) == code]
    return CardanError(f"{function.name()}: the operation {names[0] if names else code} is not supported")


def elements(sparsity: casadi.Sparsity) -> list[int]:
    """C-order element number of every nonzero of a CasADi (column-major) sparsity."""
    columns = sparsity.size2()
    return [r * columns + c for r, c in zip(sparsity.row(), sparsity.get_col(), strict=True)]


def read(function: casadi.Function) -> Graph:
    """Number the values of an SX function. Output elements that are structural zeros become the number 0."""
    codes = _codes()
    if not function.is_a("SXFunction"):
        raise CardanError(f"{function.name()}: only SX functions are supported, not {function.class_name()}")
    e_in = [elements(function.sparsity_in(i)) for i in range(function.n_in())]
    e_out = [elements(function.sparsity_out(i)) for i in range(function.n_out())]
    graph = Graph(
        input_sizes=[function.numel_in(i) for i in range(function.n_in())],
        output_sizes=[function.numel_out(i) for i in range(function.n_out())],
    )
    number: dict[Any, int] = {}  # of values, by operation and operands
    op_of, args_of, divisors = graph.op, graph.args, _Divisors(graph)

    def value(op: str, args: tuple[Any, ...], key: Any) -> int:
        k = number.get(key)
        if k is None:
            k = number[key] = len(op_of)
            op_of.append(op)
            args_of.append(args)
        return k

    def constant(c: float) -> int:
        return value("const", (c,), struct.pack("<d", c))

    work: dict[int, int] = {}
    called: dict[int, Any] = {}
    zero = -1  # the value of derivatives of lookups, which leave nothing behind
    call = _call()
    ids, ins, outs = _instructions(function)
    count = function.n_instructions()
    for k in range(count):
        code = ids(k)
        op = codes.get(code, "")
        i, o = ins(k), outs(k)
        if op not in _SPECIAL:
            args = tuple([work[a] for a in i])
            if zero in args:
                known = _with_zero(op, args, zero)
                if known is not None:
                    work[o[0]] = known
                    continue
            # the key of most values is one number, which is found sooner than a tuple
            if len(args) == 2:
                a, b = args
                key = (a * count + b if a < b or op not in COMMUTATIVE else b * count + a) * _CODES + code
            else:
                key = -1 - args[0] * _CODES - code
            found = number.get(key)
            if found is None and op in _DIVIDING:
                found = number[key] = divisors.value(op, args)
            elif found is None:
                found = number[key] = len(op_of)
                op_of.append(op)
                args_of.append(args)
            work[o[0]] = found
        elif op == "input":
            place = (i[0], e_in[i[0]][i[1]])
            work[o[0]] = value(op, place, place)
        elif op == "const":
            work[o[0]] = constant(float(function.instruction_constant(k)))
        elif op == "output":
            graph.outputs.append((o[0], e_out[o[0]][o[1]], work[i[0]]))
        elif op == "copy":
            work[o[0]] = work[i[0]]
        elif code == call:
            called = called or called_functions(function)
            kind = kind_of(called[k].name())
            if kind == LOOKUP:
                array = Lookup(called[k].name(), values_of(called[k]))
                work[o[0]] = value(array, (work[i[0]],), (array, work[i[0]]))
            elif kind == SOURCE:
                work[o[0]] = work[i[-2]]  # the index
            elif kind == ZERO:
                work[o[0]] = zero = constant(0.0)
            else:
                raise _unknown(code, function)
        else:
            raise _unknown(code, function)
    for port, size in enumerate(graph.output_sizes):
        # the instruction list leaves out nonzeros of the pattern that are the number 0 too, so see what was written
        written = {e for p, e, _ in graph.outputs if p == port}
        missing = set(range(size)) - written
        if missing:
            zero = constant(0.0)
            graph.outputs += [(port, e, zero) for e in sorted(missing)]
    divisors.share()
    return graph


def _instructions(function: casadi.Function) -> tuple[Callable[[int], Any], ...]:
    """What tells operation, operands and result of an instruction: CasADi's own, without its wrappers in Python."""
    from casadi import casadi as wrapped

    names = ("Function_instruction_id", "Function_instruction_input", "Function_instruction_output")
    bare = getattr(wrapped, "_casadi", None)
    if bare is None or not all(hasattr(bare, name) for name in names):
        return function.instruction_id, function.instruction_input, function.instruction_output
    return tuple(partial(getattr(bare, name), function) for name in names)


class _Divisors:
    """Divides once where several values have the same divisor: one division costs as much as many products."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.reciprocal: dict[int, int] = {}
        self.inverted: set[int] = set()
        self.divided: dict[int, list[int]] = {}

    def value(self, op: str, args: tuple[int, ...]) -> int:
        """The number of a new quotient, or reciprocal; that of its divisor comes before it."""
        graph, divisor = self.graph, args[-1]
        if divisor not in self.reciprocal:
            self.reciprocal[divisor] = len(graph.op)
            graph.op.append("inv")
            graph.args.append((divisor,))
        if op == "inv":
            self.inverted.add(divisor)
            return self.reciprocal[divisor]
        self.divided.setdefault(divisor, []).append(len(graph.op))
        graph.op.append(op)
        graph.args.append(args)
        return len(graph.op) - 1

    def share(self) -> None:
        """Make products of quotients that share a divisor; the reciprocal of any other becomes an unused number."""
        graph = self.graph
        for divisor, quotients in self.divided.items():
            if len(quotients) == 1 and divisor not in self.inverted:
                graph.op[self.reciprocal[divisor]], graph.args[self.reciprocal[divisor]] = "const", (0.0,)
                continue
            for k in quotients:
                graph.op[k], graph.args[k] = "mul", (graph.args[k][0], self.reciprocal[divisor])
