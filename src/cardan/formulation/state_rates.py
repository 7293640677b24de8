"""Rates of the variables that are states of the mechanism beside `q` and `v`: `xdot(t, q, v, p)`.

`x` are the entries of the free parameters `p` whose role is "state", in order.
"""

from __future__ import annotations

from typing import Any

from cardan.algebra.matrix import Matrix, column_of
from cardan.errors import CardanError, InputError
from cardan.formulation.dynamics import time_of
from cardan.formulation.instant import Instant
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed
from cardan.model.model import Model
from cardan.model.plain_symbols import plain_symbols
from cardan.model.values import shown
from cardan.model.variable import Variable


def state_rates(model: Model) -> Quantity:
    """Rates (nx,) of the states, a function of `q`, `v`, `t` and the parameters."""
    shapes: dict[str, Shape] = {"q": (model.nq,), "v": (model.nv,), "t": ()}
    order = [p.place[1] for p in model.parameters if p.role == "state"]

    def write(model: Model, s: Inputs) -> list[Matrix]:
        import casadi as ca

        instant = Instant(model, time_of(s), s["q"], s["v"])
        return [ca.vertcat(ca.SX(0, 1), *(_rate(model.variables[k], instant) for k in order))]

    size = len(model.parameters.states)
    return Quantity("state_rates", tuple(shapes), (("x", fixed(size)),), write=write, shapes=shapes)


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
