"""Values of a graph that is being written, with the operators of numbers: for long eliminations.

A CasADi scalar takes tens of microseconds for each operation, and more to be read back. A value here takes one or two.
Numbers that are known stay numbers, so that what they make zero or leave unchanged costs no operation, as in CasADi.
"""

from __future__ import annotations

from typing import Any

from cardan.program.graph import COMMUTATIVE, Graph

Operand = Any  # a Value or a number


class Writer:
    """A graph under construction. Equal operations on equal operands become one value."""

    def __init__(self, input_sizes: list[int], output_sizes: list[int]) -> None:
        self.graph = Graph(input_sizes=input_sizes, output_sizes=output_sizes)
        self._number: dict[tuple[Any, ...], int] = {}

    def input(self, port: int, element: int) -> Value:
        """One element of an input."""
        return Value(self, self._new("input", (port, element)))

    def output(self, port: int, element: int, value: Operand) -> None:
        """Let an element of an output be a value."""
        self.graph.outputs.append((port, element, self.number(value)))

    def number(self, value: Operand) -> int:
        """The number of a value in the graph."""
        return value.number if isinstance(value, Value) else self._new("const", (float(value),))

    def unary(self, op: str, x: Value) -> Value:
        """What an operation on one value gives."""
        return Value(self, self._new(op, (x.number,)))

    def binary(self, op: str, x: Operand, y: Operand) -> Value:
        """What an operation on two values gives."""
        a = x.number if type(x) is Value else self.number(x)
        b = y.number if type(y) is Value else self.number(y)
        return Value(self, self._new(op, (b, a) if a > b and op in COMMUTATIVE else (a, b)))

    def _new(self, op: str, args: tuple[Any, ...]) -> int:
        key = (op, args)
        k = self._number.get(key)
        if k is None:
            k = self._number[key] = len(self.graph.op)
            self.graph.op.append(op)
            self.graph.args.append(args)
        return k


class Value:
    """One value of a graph."""

    __slots__ = ("number", "writer")

    def __init__(self, writer: Writer, number: int) -> None:
        self.writer, self.number = writer, number

    def __neg__(self) -> Value:
        """Its negative."""
        return self.writer.unary("neg", self)

    def __add__(self, other: Operand) -> Operand:
        """The sum."""
        if type(other) is not Value and other == 0:
            return self
        return self.writer.binary("add", self, other)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Operand:
        """The difference."""
        if type(other) is not Value and other == 0:
            return self
        return self.writer.binary("sub", self, other)

    def __rsub__(self, other: Operand) -> Operand:
        """The difference."""
        return -self if other == 0 else self.writer.binary("sub", other, self)

    def __mul__(self, other: Operand) -> Operand:
        """The product."""
        if type(other) is not Value and other in (0, 1, -1):
            return 0.0 if other == 0 else self if other == 1 else -self
        return self.writer.binary("mul", self, other)

    __rmul__ = __mul__

    def __rtruediv__(self, other: Operand) -> Operand:
        """The quotient; the reciprocal for 1."""
        reciprocal = self.writer.unary("inv", self)
        return reciprocal if other == 1 else other * reciprocal
