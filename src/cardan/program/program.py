"""What is computed: named arrays in, named arrays out, and how to record what lies between them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cardan.errors import InputError

if TYPE_CHECKING:
    import casadi

    from cardan.program.march import March
    from cardan.program.schedule import Schedule


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
        """Rows and columns in memory: a vector is one row of `n`."""
        if len(self.shape) == 2:
            return self.shape[0], self.shape[1]
        return 1, self.size


@dataclass(frozen=True)
class Program:
    """What to compute.

    `record` returns a CasADi SX function with one dense input and one output per port, or a schedule or march. It runs
    only when no compiled code is cached. `key` is a hex digest that identifies the result without recording it.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    key: str
    record: Callable[[], casadi.Function | Schedule | March]
    repeats: int = 1
    """About how often a call runs what is recorded; decides whether threads are worthwhile."""

    @property
    def ports(self) -> tuple[Port, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs

    def without_empty_ports(self) -> Program:
        """The program as compiled: code gets no pointers to arrays without elements.

        NumPy refuses such ports too, and a ufunc without inputs. So a program left with no input gets a scalar that it
        does not read.
        """
        inputs = tuple(port for port in self.inputs if port.size)
        outputs = tuple(port for port in self.outputs if port.size)
        return replace(self, inputs=inputs or (Port("batch", ()),), outputs=outputs)
