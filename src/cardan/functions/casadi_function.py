"""`cd.casadi_function`: a quantity of a model as a CasADi function, for `Opti` and solvers of optimisation problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cardan.formulation.formulation import Formulation
from cardan.functions.differentiable import rule_of
from cardan.model.model import Model
from cardan.structure.kernels import function_of

if TYPE_CHECKING:
    import casadi


def casadi_function(model: Model, name: str, *, formulation: str | Formulation = "spatial") -> casadi.Function:
    """A quantity of a model as a CasADi function, named, with named inputs and outputs; free parameters `p` come last.

        f = cd.casadi_function(model, "forward_dynamics")
        opti.subject_to(x[1] == x[0] + h * f(q, v, tau))

    It is the recorded graph, with vectors as columns and wrenches (nb, 6): CasADi differentiates it to any order with
    its sparsity, and a solver needs no call of Python.
    """
    rule = rule_of(f"casadi_function {name!r}", model, name, formulation)
    found = function_of(rule.model, rule.quantity)
    import casadi as ca

    inputs, outputs = found.name_in(), found.name_out()
    symbols = found.sx_in()
    return ca.Function(name, symbols, found.call(symbols), inputs, outputs)
