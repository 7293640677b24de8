"""Rates of the variables that are states of the mechanism beside `q` and `v`: `xdot(t, q, v, y, p)`.

`x` are the entries of the free parameters `p` whose role is "state", in order. `y` is what the rates read of the answer
of the mechanism to what acts, `answers_read`: reactions, forces of constraints, accelerations of points. It is an
argument, since the equations, and the choice of rows that they keep, come later; who has the answer fills it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cardan.algebra.matrix import Matrix, column_of, zeros
from cardan.errors import CardanError, InputError
from cardan.formulation.coordinates import equations_at_tree, tree_state
from cardan.formulation.dynamics import time_of
from cardan.formulation.formulation import Formulation, Parts
from cardan.formulation.instant import Instant
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed
from cardan.formulation.solution import Solution, read_off, size_of
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.parameter import with_symbols
from cardan.model.plain_symbols import plain_symbols
from cardan.model.sight import Sight
from cardan.model.values import shown
from cardan.model.variable import Variable

_READ: Slot[None, tuple[Sight, ...]] = Slot("what the rates of states read of the answer to what acts")


def answers_read(model: Model) -> tuple[Sight, ...]:
    """What the rates of the states read of the answer of the mechanism, in order."""
    return _READ.find(model, None, lambda: _answers_read(model.unbound)) if model.parameters.states else ()


def _answers_read(model: Model) -> tuple[Sight, ...]:
    import casadi as ca

    found: dict[Sight, Any] = {}

    def read(instant: Instant, sight: Sight) -> Any:
        return found.setdefault(sight, ca.SX.sym("y", *sight.shape))

    written, _ = with_symbols(model)
    t, q, v = ca.SX.sym("t"), ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    instant = Instant(written, t, q, v, reads=read)
    for k in _states(model):
        _traced(model.variables[k], instant)
    return tuple(found)


def _states(model: Model) -> list[int]:
    """The variables that are states, by number, in order."""
    return [p.place[1] for p in model.parameters if p.role == "state"]


def state_rates(model: Model) -> Quantity:
    """Rates (nx,) of the states, a function of `q`, `v`, `t`, of `y` if they read an answer, and of the parameters."""
    sights = answers_read(model)
    shapes: dict[str, Shape] = {"q": (model.nq,), "v": (model.nv,), "t": ()}
    shapes |= {"y": (size_of(sights),)} if sights else {}
    order = _states(model)

    def write(model: Model, s: Inputs) -> list[Matrix]:
        import casadi as ca

        found = read_off(s["y"], sights) if sights else None
        reads = None if found is None else lambda instant, sight: found(sight)
        instant = Instant(model, time_of(s), s["q"], s["v"], reads=reads)
        return [ca.vertcat(ca.SX(0, 1), *(_rate(model.variables[k], instant) for k in order))]

    size = len(model.parameters.states)
    return Quantity("state_rates", tuple(shapes), (("x", fixed(size)),), write=write, shapes=shapes)


def rates_of_states(
    model: Model, parts: Parts, formulation: Formulation, rows: Sequence[int], inputs: Inputs,
    unknowns: tuple[Matrix, Matrix, Matrix],
) -> Matrix:  # fmt: skip
    """The same at a formulation's own `q`, `v`, where `vdot`, the multipliers of `rows` and forces of laws are unknown.

    `model` is the one with parameters; `parts` are written with symbols for these.
    """
    sights, (vdot, lam, x) = answers_read(model), unknowns
    there, forces = parts, x if x.numel() else None
    q, v = tree_state(parts.model, formulation, inputs["q"], inputs["v"], inputs.get("about", inputs["q"]))
    given = {"q": q, "v": v, "t": inputs["t"]}
    if sights:
        if not formulation.in_tree:
            there = equations_at_tree(parts.model, formulation, inputs, forces)
        given["y"] = Solution(formulation, there, tuple(rows), vdot, lam, zeros(1, 1, vdot), forces).column(sights)
    return state_rates(model).graph(parts.model, given)[0]


def _rate(variable: Variable, instant: Instant) -> Any:
    """The rates of one variable, recorded; refuse what is not a function of the instant."""
    import casadi as ca

    assert variable.rate is not None
    first, again = (_traced(variable, instant) for _ in range(2))
    if not all(ca.is_equal(a, b, 100) for a, b in zip(first.elements(), again.elements(), strict=True)):
        raise InputError(
            f"{variable.owner}: its rate is another one each time it is run; random numbers, a clock or state that it "
            "keeps would stay as they were at the start; keep state in variables"
        )
    return first


def _traced(variable: Variable, instant: Instant) -> Any:
    assert variable.rate is not None
    try:
        with plain_symbols():
            rate = variable.rate(instant)
    except CardanError as error:
        raise InputError(f"{variable.owner}: {error}") from None
    except Exception as error:
        raise InputError(
            f"{variable.owner}: its rate failed on symbols: {type(error).__name__}: {error}; use arithmetic and casadi "
            "functions (casadi.sin, casadi.fmin, ...) of the instant"
        ) from None
    try:
        found = column_of(rate)
    except TypeError:
        raise InputError(
            f"{variable.owner}: its rate must be an expression of the instant, got {shown(rate)}"
        ) from None
    if found.numel() != variable.value.size:
        raise InputError(f"{variable.owner}: its rate must have {variable.value.size} numbers, got {found.numel()}")
    return found
