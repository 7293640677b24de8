"""Kernels of integrators: the unknowns of the implicit ones, the inputs all share, and compiling and caching them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cardan.algebra.matrix import Matrix, Scalar, dot
from cardan.formulation.dynamics import shape_of
from cardan.formulation.formulation import Formulation
from cardan.integrate.events import Event, trace_events
from cardan.integrate.modes.events import event_values, users_events
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.memory import RecentSlot, Slot
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.program.program import Port, Program
from cardan.structure.kernels import symbolic
from cardan.structure.planarity import prepare
from cardan.structure.rows import kept_rows

_LAYOUTS: Slot[str, Layout] = Slot("unknowns of the implicit integrators, by formulation")


@dataclass(frozen=True)
class Layout:
    """`rows` are the independent rows, `positions` those of them at position level; `unit` is where quaternions start.

    `lent` (nv, nv) is inertia that only constraints give some rates, as nested tuples; empty where there is none.
    `laws` is the number of rows with laws of a model with modes, `gaps` are those of them at position level.
    """

    formulation: Formulation
    facts: str
    nq: int
    nv: int
    rows: tuple[int, ...]
    positions: tuple[int, ...]
    unit: tuple[int, ...]
    lent: tuple[tuple[float, ...], ...] = ()
    laws: int = 0
    gaps: tuple[int, ...] = ()

    @property
    def multipliers(self) -> tuple[int, int]:
        """Numbers of multipliers of stabilised equations, with those of rows with laws: of rates, and of positions."""
        return len(self.rows) + self.laws, len(self.positions) + len(self.gaps)

    @property
    def key(self) -> str:
        """Everything that distinguishes it from another layout of the same model."""
        return f"{self.facts} {self.rows} {self.positions}" + (f" laws {self.laws}" if self.laws else "")


def layout_of(model: Model, formulation: Formulation) -> Layout:
    """The layout of a model in one formulation."""
    return _LAYOUTS.find(model, formulation.key, lambda: _layout_of(model.unbound, formulation))


def _layout_of(model: Model, formulation: Formulation) -> Layout:
    prepare(model, formulation)
    shape, rows = shape_of(model, formulation), kept_rows(model, formulation)
    positions = tuple(row for row in rows if shape.labels[row].level == "position")
    unit = tuple(at for _, at in formulation.quaternions(model))
    lent = () if shape.lent is None else tuple(map(tuple, shape.lent.tolist()))
    laws = model.lawful_rows if has_modes(model) else ()
    gaps = tuple(k for k, label in enumerate(laws) if label.level == "position")
    facts, sizes = formulation.facts(model), formulation.sizes(model)
    return Layout(formulation, facts, *sizes, tuple(rows), positions, unit, lent, len(laws), gaps)


def at_states(model: Model, states: Sequence[int], x: Matrix, values: list[Matrix]) -> list[Matrix]:
    """Expressions with unknowns `x` in the place of the free parameters of a model that are states."""
    import casadi as ca

    if not states:
        return values
    p = symbolic(model)[1]
    return list(ca.substitute(values, [p[k] for k in states], ca.vertsplit(x)))


MANY_STEPS = 100  # `repeats` of a kernel that takes many steps in a call
_KERNELS: Slot[str, Kernel] = Slot("kernels of integrators, by a digest of all that they depend on")
EVENT_KERNELS: RecentSlot[str, Kernel] = RecentSlot("kernels with events, which may be new in every run", 32)


@dataclass(frozen=True)
class Given:
    """Inputs that stay constant during a step, as symbols: drives (nv,), free parameters, and `about`.

    `tau` is None where a loop over the links reads the drives by itself. `about` is the tree's configuration (nq,) near
    which measured angles are taken; empty in tree coordinates.
    """

    tau: Matrix | None
    parameters: Sequence[Matrix] = ()
    about: Sequence[Matrix] = ()

    def with_states(self, x: Matrix | None, places: Sequence[int]) -> Given:
        """The same with `x`, if there are any, in the places of the parameters that are states."""
        import casadi as ca

        if x is None or not places:
            return self
        at = dict(zip(places, ca.vertsplit(x), strict=True))
        p = self.parameters[0]
        return replace(self, parameters=(ca.vertcat(*(at.get(k, p[k]) for k in range(p.shape[0]))),))

    def power(self, v: Matrix) -> Matrix:
        """Power of the drives at rates `v` of the tree, W."""
        assert self.tau is not None
        return dot(self.tau, v)


@dataclass(frozen=True)
class IntegratorKernels:
    """Base of the kernels of an integrator for one model and its events; free parameters are an input of each."""

    model: Model
    events: tuple[Event, ...]
    parameters: int
    """Number of free parameters of the model."""

    @property
    def way(self) -> tuple[Formulation, tuple[int, ...]]:
        """The formulation, and the constraint rows that it keeps."""
        raise NotImplementedError

    @property
    def facts(self) -> tuple[Any, ...]:
        """All that the recorded graphs depend on besides model and events, such as method, options and formulation."""
        raise NotImplementedError

    def _data_ports(self, *names: str) -> tuple[Port, ...]:
        """Ports of some numbers, of the drives and of the parameters."""
        p = (Port("p", (self.parameters,)),) if self.parameters else ()
        return (*(Port(name, ()) for name in names), Port("tau", (self.model.nv,)), *p)

    def _given(self, *about: Matrix) -> tuple[Given, list[Any]]:
        """Symbols of the drives and of the parameters, and the list of them."""
        import casadi as ca

        p = [ca.SX.sym("p", self.parameters)] if self.parameters else []
        given = Given(ca.SX.sym("tau", self.model.nv), p, about)
        return given, [given.tau, *p]

    def _events(self, t: Scalar, q: Matrix, v: Matrix, given: Given) -> Matrix:
        """Values (ne,) of the events."""
        return event_values(self.model, *self.way, self.events, t, q, v, given.tau, given.parameters)

    @property
    def _traced_events(self) -> str:
        """What tells the events from others."""
        own = users_events(self.events)  # those of rows with laws follow from the model
        return str(trace_events(self.model, own).serialize()) if own else ""

    def _kernel(
        self, name: str, inputs: tuple[Port, ...], outputs: tuple[Port, ...], record: Any, repeats: int = 1
    ) -> Kernel:
        """Compile a kernel, or return it if the model has it already; `repeats` is that of `Program`."""
        graph = self._traced_events
        directions = [event.direction for event in self.events]
        key = hashlib.sha256(repr((self.model.key, *self.facts, name, directions, graph)).encode()).hexdigest()
        program = Program(name, inputs, outputs, key, record, repeats)
        slot = EVENT_KERNELS if self.events else _KERNELS
        return slot.find(self.model, key, lambda: compile_program(program))
