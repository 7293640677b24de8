"""Kernels of integrators: the inputs they share, and compiling and caching them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cardan.algebra.matrix import Matrix
from cardan.integrate.events import Event, trace_events
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.program.program import Port, Program

MANY_STEPS = 100  # `repeats` of a kernel that takes many steps in a call
_KERNELS: Slot[str, Kernel] = Slot("kernels of integrators, by a digest of all that they depend on")


@dataclass(frozen=True)
class Given:
    """Inputs that stay constant during a step, as symbols: drives (nv,), free parameters, and `about`.

    `tau` is None where a loop over the links reads the drives by itself. `about` is the tree's configuration (nq,) near
    which measured angles are taken; empty in tree coordinates.
    """

    tau: Matrix | None
    parameters: Sequence[Matrix] = ()
    about: Sequence[Matrix] = ()


def integrator_kernel(
    model: Model,
    name: str,
    facts: tuple[Any, ...],
    events: tuple[Event, ...],
    inputs: tuple[Port, ...],
    outputs: tuple[Port, ...],
    record: Any,
    repeats: int = 1,
) -> Kernel:
    """Compile a kernel of an integrator, or return it if the model has it already.

    The cache key is made of the model, the name, the events' expressions and directions, and `facts`: everything else
    that the recorded graph depends on, such as method, options and formulation. `repeats` is about how often a call
    runs the recorded graph.
    """
    graph = trace_events(model, events).serialize() if events else ""
    directions = [event.direction for event in events]
    all_facts = (model.key, *facts, name, directions, graph)
    key = hashlib.sha256(repr(all_facts).encode()).hexdigest()
    return _KERNELS.find(
        model, key, lambda: compile_program(Program(name, inputs, outputs, key, record, repeats))
    )  # parameters are an input of the kernel
