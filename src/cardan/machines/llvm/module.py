"""An LLVM IR module under construction, and the vector type of its values."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np

from cardan.lazy import cached_property


@dataclass(frozen=True)
class VectorType:
    """The type of every value: `width` lanes of `double` or `float`; one lane is the scalar type."""

    scalar: str
    width: int

    @property
    def bytes(self) -> int:
        """Size of one lane."""
        return 8 if self.scalar == "double" else 4

    @cached_property
    def align(self) -> int:
        """Size and alignment of all lanes together, in bytes."""
        return self.bytes * self.width

    @property
    def integer(self) -> str:
        """Integer of the size of one lane."""
        return "i64" if self.scalar == "double" else "i32"

    @cached_property
    def vector(self) -> str:
        """LLVM's name of the type."""
        return self.of(self.scalar)

    @property
    def suffix(self) -> str:
        """LLVM's name of the type in the names of its intrinsics."""
        bits = "f64" if self.scalar == "double" else "f32"
        return bits if self.width == 1 else f"v{self.width}{bits}"

    def of(self, scalar: str) -> str:
        """LLVM's name of the type with lanes of another scalar."""
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"

    def number(self, value: float) -> str:
        """A literal of one lane."""
        if self.scalar == "float":
            value = _round_to_float(value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"

    def splat(self, value: float) -> str:
        """The literal with the same number in every lane."""
        return self.number(value) if self.width == 1 else f"splat ({self.scalar} {self.number(value)})"

    def integer_splat(self, value: int) -> str:
        """The integer literal with the same number in every lane."""
        return str(value) if self.width == 1 else f"splat ({self.integer} {value})"


def _round_to_float(value: float) -> float:
    """The nearest float32, with overflow to infinity."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


_ESCAPES = np.array([f"\\{byte:02X}".encode() for byte in range(256)], "S3")  # bytes as IR writes them in a string
CONSTANTS = 4096  # most numbers in a card's memory for constants
SHARING = 32  # threads of a block that uses memory which its threads share


@dataclass
class Module:
    """IR under construction: functions by name, and what they need declared. All values have the type `type`.

    `card` says that a thread of a card runs it; `constants` are then numbers with their places in a table. With `share`
    threads may use memory that those of a block share: `shared` numbers each, in blocks of at most `threads`. Rows of
    arrays pass through `staged` numbers more of it. `waiting` is how many values wait at most in its lines, `standing`
    how many more numbers are in registers all the time. With `tables` long graphs are tables (`interpreted`).
    """

    type: VectorType
    card: bool = False
    tables: bool = False
    share: bool = False
    shared: int = 0
    staged: int = 0
    threads: int = 64
    waiting: int = 0
    standing: int = 0
    functions: dict[str, str] = field(default_factory=dict)
    declarations: set[str] = field(default_factory=set)
    constants: dict[str, int] = field(default_factory=dict)

    def place_of(self, literal: str) -> int | None:
        """Place of a number of `type` in the table of a card; None if an instruction has room for it, or for no more.

        An instruction has room for half a double.
        """
        if not self.card or self.type.scalar == "float" or int(literal, 16) & 0xFFFFFFFF == 0:
            return None
        if literal not in self.constants and len(self.constants) == CONSTANTS:
            return None
        return self.constants.setdefault(literal, len(self.constants))

    def intrinsic(self, name: str, arity: int) -> str:
        """Declare a floating-point intrinsic; its symbol."""
        v = self.type.vector
        symbol = f"@llvm.{name}.{self.type.suffix}"
        self.declarations.add(f"declare {v} {symbol}({', '.join([v] * arity)})")
        return symbol

    def data(self, name: str, values: np.ndarray) -> None:
        """Define a constant array `@name`, as bytes: LLVM reads a million of them in milliseconds, not so numbers."""
        content = values.astype(values.dtype.newbyteorder("<")).tobytes()
        text = _ESCAPES[np.frombuffer(content, np.uint8)].tobytes().decode()
        array = f'[{len(content)} x i8] c"{text}"'
        self.functions[f"data {name}"] = f"@{name} = internal constant {array}, align 64"

    def integers(self, name: str, table: np.ndarray) -> None:
        """Define a table `@name` of integers."""
        self.data(name, table.ravel().astype(np.int32))

    def unless_refused(self, size: int) -> list[str]:
        """Lines that go on at the label `ready` if there is memory at `%heap`; else they note its size and return.

        Whoever called the code asks `machines.host.refused_memory` afterwards.
        """
        self.declarations.add("@cardan.no.memory = external global i64")
        return [
            "  %refused = icmp eq ptr %heap, null",
            "  br i1 %refused, label %no.memory, label %ready",
            "no.memory:",
            f"  store atomic i64 {size}, ptr @cardan.no.memory release, align 8",
            "  ret void",
            "ready:",
        ]

    @property
    def attributes(self) -> str:
        """Those of functions that are called once: on a card they stand where they are called."""
        return "alwaysinline " if self.card else ""

    def text(self) -> str:
        """The whole module."""
        return "\n\n".join(["\n".join(sorted(self.declarations)), *self._memory(), *self.functions.values()]) + "\n"

    def _memory(self) -> list[str]:
        """Memory of a card: the table of constants, which LLVM must not take for known, and that of a block."""
        t, lines = self.type.scalar, []
        if self.constants:
            numbers = ", ".join(f"{t} {literal}" for literal in self.constants)
            kind = "internal addrspace(4) externally_initialized global"
            lines.append(f"@constants.of.card = {kind} [{len(self.constants)} x {t}] [{numbers}], align 8")
        for name, size in (("shared", self.shared), ("staged", self.staged)):
            if size:
                kind = "internal addrspace(3) global"
                lines.append(f"@{name}.of.block = {kind} [{size * SHARING} x {t}] undef, align 8")
        return lines


class Lines:
    """Lines of one function under construction; names of its values begin with `prefix`."""

    def __init__(self, t: VectorType, prefix: str) -> None:
        self.t, self.prefix = t, prefix
        self.lines: list[str] = []
        self.count = 0

    def new(self, text: str) -> str:
        """Assign what `text` computes to a new value; its name."""
        self.count += 1
        name = f"%{self.prefix}{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, module: Module, value: float) -> str:
        """A number: on a card from its memory for constants, where no instruction has room for it."""
        literal = self.t.splat(value)
        k = module.place_of(literal) if self.t == module.type else None
        if k is None:
            return literal
        where = self.new(f"getelementptr double, ptr addrspace(4) @constants.of.card, i64 {k}")
        return self.new(f"load double, ptr addrspace(4) {where}, align 8")

    def label(self, prefix: str) -> str:
        """A new name for a block."""
        self.count += 1
        return f"{prefix}{self.count}"

    def element(self, base: str, place: int | str) -> str:
        """Address of one element: a vector of lanes."""
        return self.new(f"getelementptr {self.t.vector}, ptr {base}, i64 {place}")

    def load(self, address: str) -> str:
        """Load one element."""
        return self.new(f"load {self.t.vector}, ptr {address}, align {self.t.align}")

    def store(self, value: str, address: str) -> None:
        """Store one element."""
        self.lines.append(f"  store {self.t.vector} {value}, ptr {address}, align {self.t.align}")

    def splat(self, scalar: str) -> str:
        """Spread a scalar over the lanes."""
        t = self.t
        if t.width == 1:
            return scalar
        first = self.new(f"insertelement {t.vector} poison, {t.scalar} {scalar}, i64 0")
        return self.new(f"shufflevector {t.vector} {first}, {t.vector} poison, {t.of('i32')} zeroinitializer")


class Loops(Lines):
    """Lines with loops and with functions of their own."""

    def loop(self, count: str, prefix: str = "l") -> tuple[str, str]:
        """Open a loop over 0..count-1; its index, and the label to close it with."""
        label = self.label(prefix)
        self.lines += [f"  br label %{label}.in", f"{label}.in:", f"  br label %{label}.head", f"{label}.head:"]
        self.lines += [f"  %{label} = phi i64 [0, %{label}.in], [%{label}.next, %{label}.end]"]
        self.lines += [f"  %{label}.more = icmp slt i64 %{label}, {count}"]
        self.lines += [f"  br i1 %{label}.more, label %{label}.do, label %{label}.out", f"{label}.do:"]
        return f"%{label}", label

    def end(self, label: str) -> None:
        """Close a loop."""
        self.lines += [f"  br label %{label}.end", f"{label}.end:", f"  %{label}.next = add i64 %{label}, 1"]
        self.lines += [f"  br label %{label}.head", f"{label}.out:"]

    def add(self, a: str | int, b: str | int) -> str:
        """Sum of two integers."""
        return self.new(f"add i64 {a}, {b}")

    def sub(self, a: str | int, b: str | int) -> str:
        """Difference of two integers."""
        return self.new(f"sub i64 {a}, {b}")

    def times(self, a: str | int, b: str | int) -> str:
        """Product of two integers."""
        return self.new(f"mul i64 {a}, {b}")

    def entry(self, table: str, index: str) -> str:
        """Load an entry of a table of integers."""
        place = self.new(f"getelementptr i32, ptr @{table}, i64 {index}")
        return self.new(f"sext i32 {self.new(f'load i32, ptr {place}')} to i64")

    def function(self, head: str) -> str:
        """The lines as a function, with a head such as `@name(ptr %x)`."""
        return "\n".join([f"define internal void {head} {{", "entry:", *self.lines, "  ret void", "}"])
