"""What a kernel computes: named arrays in, named arrays out, and how to record the graph between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cardan.errors import InputError

if TYPE_CHECKING:
    import casadi


@dataclass(frozen=True)
class Port:
    """One array in or out: its name and its core shape, elements in C order.

    The core shape has at most two axes, as a CasADi matrix has; `()` is a scalar.
    """

    name: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.shape) > 2 or any(n < 0 for n in self.shape):
            raise InputError(f"port {self.name!r}: core shape {self.shape} is not that of a matrix (at most 2 axes)")

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns of the NumPy view: a vector is one row of `n`."""
        if len(self.shape) == 2:
            return self.shape[0], self.shape[1]
        return 1, self.size


@dataclass(frozen=True)
class Program:
    """What to compile.

    `record` returns the CasADi SX function, one dense input and one output per port; it runs only when no
    compiled code is cached. `key` is a hex digest that identifies the graph without recording it.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    key: str
    record: Callable[[], casadi.Function | Any]
    repeats: int = 1
    """About how often a call runs what is recorded: tells whether threads pay."""

    @property
    def ports(self) -> tuple[Port, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs

    @property
    def signature(self) -> str:
        """NumPy signature with frozen sizes, e.g. `(7),(7),(7)->(7)`.

        A symbolic size would be taken from the arrays, and the code would read past the end of a short one.
        """

        def group(ports: tuple[Port, ...]) -> str:
            return ",".join("(" + ",".join(map(str, port.shape)) + ")" for port in ports)

        return group(self.inputs) + "->" + group(self.outputs)
