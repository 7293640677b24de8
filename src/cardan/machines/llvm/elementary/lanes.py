"""Values on lanes with Python's operators: each operator prints one line of LLVM IR.

A formula reads `fma(k, -LN2, x)`; the lines go to the function under construction that its values belong to. Nothing
is reassociated or contracted, so that every machine rounds alike. All instructions are ones that x86, ARM and NVPTX
have; comparisons that may see NaN are made on integers, where none of them raises a floating-point flag.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cardan.machines.llvm.module import Lines, Module, VectorType


class Code(Lines):
    """Lines of one function on lanes of the type `t`."""

    def __init__(self, module: Module, t: VectorType, symbol: str) -> None:
        super().__init__(t, "v")
        self.module, self.symbol = module, symbol

    def number(self, value: Number | float) -> Number:
        """A value, or a constant in every lane."""
        return value if isinstance(value, Number) else Number(self, self.constant(self.module, value))

    def whole(self, value: Whole | int) -> Whole:
        """An integer value, or a constant in every lane."""
        return value if isinstance(value, Whole) else Whole(self, self.t.integer_splat(value))

    def intrinsic(self, name: str, *operands: Number) -> Number:
        """Call a floating-point intrinsic."""
        v = self.t.vector
        symbol = f"@llvm.{name}.{self.t.suffix}"
        self.module.declarations.add(f"declare {v} {symbol}({', '.join([v] * len(operands))})")
        return Number(self, self.new(f"call {v} {symbol}({', '.join(f'{v} {x.name}' for x in operands)})"))

    def any(self, mask: Mask) -> str:
        """Whether a mask is true in some lane; the name of an i1."""
        n = self.t.width
        if n == 1:
            return mask.name
        bits = self.new(f"bitcast <{n} x i1> {mask.name} to i{n}")
        return self.new(f"icmp ne i{n} {bits}, 0")

    def branch(self, condition: str, true: str, false: str) -> None:
        """End a block."""
        self.lines.append(f"  br i1 {condition}, label %{true}, label %{false}")

    def begin(self, block: str) -> None:
        """Begin a block."""
        self.lines.append(f"{block}:")

    def leave(self, rare: Mask, *operands: Number) -> None:
        """Where some lane is rare, let the function beside this one, which has no exceptions, answer for all lanes."""
        self.branch(self.any(rare), "cold", "hot")
        self.begin("cold")
        self.give(self.call(f"@{self.symbol}.cold", 1, *operands))
        self.begin("hot")

    def carried(self, start: Number, before: str, block: str) -> Number:
        """A value that is `start` after the block `before`, and after `block` what `carry` says."""
        return Number(self, self.new(f"phi {self.t.vector} [{start.name}, %{before}], [?, %{block}]"))

    def carry(self, into: Number, value: Number) -> None:
        """Say what a carried value is after its block."""
        at = next(n for n, line in enumerate(self.lines) if line.startswith(f"  {into.name} ="))
        self.lines[at] = self.lines[at].replace("?", value.name)

    def call(self, symbol: str, results: int, *operands: Number | Mask) -> list[Number]:
        """Call a function on lanes."""
        given = ", ".join(f"{x.type} {x.name}" for x in operands)
        if results == 1:
            return [Number(self, self.new(f"call {self.t.vector} {symbol}({given})"))]
        struct_type = tuple_of(self.t, results)
        whole = self.new(f"call {struct_type} {symbol}({given})")
        return [Number(self, self.new(f"extractvalue {struct_type} {whole}, {n}")) for n in range(results)]

    def sign_where(self, mask: Mask) -> Whole:
        """The sign bit where a mask is true."""
        return choose(mask, self.whole(-(2 ** (8 * self.t.bytes - 1))), self.whole(0))

    def give(self, results: Sequence[Number]) -> None:
        """Return from the function."""
        v = self.t.vector
        if len(results) == 1:
            self.lines.append(f"  ret {v} {results[0].name}")
            return
        struct_type, last = tuple_of(self.t, len(results)), "poison"
        for n, value in enumerate(results):
            last = self.new(f"insertvalue {struct_type} {last}, {v} {value.name}, {n}")
        self.lines.append(f"  ret {struct_type} {last}")


def tuple_of(t: VectorType, count: int) -> str:
    """LLVM's name of what a function with `count` results returns."""
    return t.vector if count == 1 else f"{{ {', '.join([t.vector] * count)} }}"


@dataclass(frozen=True, eq=False)
class Number:
    """Floating-point numbers, one a lane."""

    code: Code
    name: str

    @property
    def type(self) -> str:
        """LLVM's name of the type."""
        return self.code.t.vector

    def _with(self, instruction: str, first: Number | float, second: Number | float) -> Number:
        a, b = self.code.number(first), self.code.number(second)
        return Number(self.code, self.code.new(f"{instruction} {self.type} {a.name}, {b.name}"))

    def __add__(self, other: Number | float) -> Number:
        return self._with("fadd", self, other)

    def __radd__(self, other: float) -> Number:
        return self._with("fadd", other, self)

    def __sub__(self, other: Number | float) -> Number:
        return self._with("fsub", self, other)

    def __rsub__(self, other: float) -> Number:
        return self._with("fsub", other, self)

    def __mul__(self, other: Number | float) -> Number:
        return self._with("fmul", self, other)

    def __rmul__(self, other: float) -> Number:
        return self._with("fmul", other, self)

    def __truediv__(self, other: Number | float) -> Number:
        return self._with("fdiv", self, other)

    def __rtruediv__(self, other: float) -> Number:
        return self._with("fdiv", other, self)

    def __neg__(self) -> Number:
        return Number(self.code, self.code.new(f"fneg {self.type} {self.name}"))

    def _compare(self, predicate: str, other: Number | float) -> Mask:
        b = self.code.number(other)
        return Mask(self.code, self.code.new(f"fcmp {predicate} {self.type} {self.name}, {b.name}"))

    def __lt__(self, other: Number | float) -> Mask:
        return self._compare("olt", other)

    def __gt__(self, other: Number | float) -> Mask:
        return self._compare("ogt", other)

    def equals(self, other: Number | float) -> Mask:
        """Where two numbers are equal."""
        return self._compare("oeq", other)

    def is_nan(self) -> Mask:
        """Where this is not a number."""
        return self._compare("uno", self)

    def bits(self) -> Whole:
        """The bits as an integer."""
        c = self.code
        return Whole(c, c.new(f"bitcast {self.type} {self.name} to {c.t.of(c.t.integer)}"))

    def size(self) -> Whole:
        """The bits without the sign. They are ordered as the absolute values are, then infinity, then NaN."""
        return self.bits() & (2 ** (8 * self.code.t.bytes - 1) - 1)

    def sign(self) -> Whole:
        """The sign bit in its place."""
        return self.bits() & -(2 ** (8 * self.code.t.bytes - 1))

    def negative(self) -> Mask:
        """Where the sign bit is set."""
        return self.bits() < 0


@dataclass(frozen=True, eq=False)
class Whole:
    """Integers of the size of the numbers, one a lane."""

    code: Code
    name: str

    @property
    def type(self) -> str:
        """LLVM's name of the type."""
        return self.code.t.of(self.code.t.integer)

    def _with(self, instruction: str, other: Whole | int) -> Whole:
        b = self.code.whole(other)
        return Whole(self.code, self.code.new(f"{instruction} {self.type} {self.name}, {b.name}"))

    def __add__(self, other: Whole | int) -> Whole:
        return self._with("add", other)

    def __sub__(self, other: Whole | int) -> Whole:
        return self._with("sub", other)

    def __rsub__(self, other: int) -> Whole:
        return self.code.whole(other)._with("sub", self)

    def __and__(self, other: Whole | int) -> Whole:
        return self._with("and", other)

    def __or__(self, other: Whole | int) -> Whole:
        return self._with("or", other)

    def __xor__(self, other: Whole | int) -> Whole:
        return self._with("xor", other)

    def __lshift__(self, count: int) -> Whole:
        return self._with("shl", count)

    def __rshift__(self, count: int) -> Whole:
        return self._with("lshr", count)

    def _compare(self, predicate: str, other: Whole | int) -> Mask:
        b = self.code.whole(other)
        return Mask(self.code, self.code.new(f"icmp {predicate} {self.type} {self.name}, {b.name}"))

    def __lt__(self, other: Whole | int) -> Mask:
        return self._compare("slt", other)

    def __gt__(self, other: Whole | int) -> Mask:
        return self._compare("sgt", other)

    def odd(self) -> Mask:
        """The lowest bit."""
        return Mask(self.code, self.code.new(f"trunc {self.type} {self.name} to {self.code.t.of('i1')}"))

    def number(self) -> Number:
        """The number that has these bits."""
        return Number(self.code, self.code.new(f"bitcast {self.type} {self.name} to {self.code.t.vector}"))


@dataclass(frozen=True, eq=False)
class Mask:
    """Truth values, one a lane."""

    code: Code
    name: str

    @property
    def type(self) -> str:
        """LLVM's name of the type."""
        return self.code.t.of("i1")

    def _with(self, instruction: str, other: Mask) -> Mask:
        return Mask(self.code, self.code.new(f"{instruction} {self.type} {self.name}, {other.name}"))

    def __and__(self, other: Mask) -> Mask:
        return self._with("and", other)

    def __or__(self, other: Mask) -> Mask:
        return self._with("or", other)

    def __xor__(self, other: Mask) -> Mask:
        return self._with("xor", other)

    def __invert__(self) -> Mask:
        true = "true" if self.code.t.width == 1 else "splat (i1 true)"
        return Mask(self.code, self.code.new(f"xor {self.type} {self.name}, {true}"))


def fma(a: Number, b: Number | float, c: Number | float) -> Number:
    """`a b + c`, rounded once."""
    return a.code.intrinsic("fma", a, a.code.number(b), a.code.number(c))


def sqrt(a: Number) -> Number:
    """The square root, rounded once."""
    return a.code.intrinsic("sqrt", a)


def select(mask: Mask, a: Number | float, b: Number | float) -> Number:
    """`a` where the mask is true, else `b`."""
    c = mask.code
    v, x, y = c.t.vector, c.number(a), c.number(b)
    return Number(c, c.new(f"select {mask.type} {mask.name}, {v} {x.name}, {v} {y.name}"))


def choose(mask: Mask, a: Whole, b: Whole) -> Whole:
    """`a` where the mask is true, else `b`, of integers."""
    return Whole(mask.code, mask.code.new(f"select {mask.type} {mask.name}, {a.type} {a.name}, {a.type} {b.name}"))


def absolute(x: Number) -> Number:
    """The absolute value."""
    return x.size().number()


def with_sign(x: Number, sign: Whole) -> Number:
    """`x` with its sign flipped where the sign bit is set in `sign`."""
    return (x.bits() ^ sign).number()


def polynomial(x: Number, coefficients: Sequence[float]) -> Number:
    """Horner's rule; the coefficient of the highest power first."""
    last = x.code.number(coefficients[0])
    for c in coefficients[1:]:
        last = fma(last, x, c)
    return last


def bits_of(value: float, t: VectorType | None = None) -> int:
    """The bits of a positive number, as a double or as the scalar of a type."""
    double = t is None or t.scalar == "double"
    return int(struct.unpack("<Q" if double else "<I", struct.pack("<d" if double else "<f", value))[0])


INFINITY = bits_of(float("inf"))


def raised_nan(where: Mask) -> Number:
    """NaN where the mask is true, and the flag "invalid"; else 0."""
    infinity = select(where, float("inf"), 0.0)
    return infinity - infinity


def raised_infinity(where: Mask) -> Number:
    """Infinity where the mask is true, and the flag "overflow"; else 0."""
    huge = select(where, 2.0**1023, 0.0)
    return huge + huge


def define(
    module: Module, t: VectorType, symbol: str, body: Callable[..., Sequence[Number]], arity: int = 1, results: int = 1,
    masks: int = 0, attributes: str = "",
) -> None:  # fmt: skip
    """Define `internal RESULTS @symbol(V %x0, ..., M %m0, ...)`: `body` prints it from its arguments."""
    code = Code(module, t, symbol)
    arguments = [Number(code, f"%x{n}") for n in range(arity)]
    given = [Mask(code, f"%m{n}") for n in range(masks)]
    code.begin("entry")
    code.give(body(*arguments, *given))
    params = ", ".join([f"{x.type} {x.name}" for x in arguments] + [f"{m.type} {m.name}" for m in given])
    head = f"define internal {tuple_of(t, results)} @{symbol}({params}) {attributes}".rstrip()
    module.functions[symbol] = "\n".join([head + " {", *code.lines, "}"])
