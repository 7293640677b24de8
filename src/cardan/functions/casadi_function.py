"""`cd.casadi_function`: a quantity of a model as a CasADi function, for `Opti` and solvers of optimisation problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.functions.differentiable import rule_of
from cardan.model.memory import require_model
from cardan.model.model import Model
from cardan.structure.kernels import function_of

if TYPE_CHECKING:
    import casadi


def casadi_function(
    model: Model, name: str, *, formulation: str | Formulation = "spatial", nodes: int | None = None
) -> casadi.Function:
    """A quantity of a model as a CasADi function, named, with named inputs and outputs; free parameters `p` come last.

        f = cd.casadi_function(model, "forward_dynamics")
        opti.subject_to(v[:, 1:] == v[:, :-1] + h * f(q[:, :-1], v[:, :-1], tau))

    It is the recorded graph, with vectors as columns and wrenches (nb, 6): CasADi differentiates it to any order, and a
    solver needs no call of Python. With `nodes=N` every argument has its columns for N nodes side by side, all of which
    one call of a compiled kernel evaluates; Jacobians and Hessians come from kernels, too. That pays for large models.
    """
    require_model("casadi_function", model)
    owner = f"casadi_function {name!r}"
    if nodes is not None and not (isinstance(nodes, int) and nodes >= 1):
        raise InputError(f"{owner}: nodes={nodes!r} must be a whole number, 1 or more")
    rule = rule_of(owner, model, name, formulation)
    if nodes is not None:
        from cardan.functions.casadi_nodes import nodes_function

        return nodes_function(name, rule, nodes)
    import casadi as ca

    graph = function_of(rule.model, rule.quantity)
    symbols = graph.sx_in()
    return ca.Function(name, symbols, graph.call(symbols), graph.name_in(), graph.name_out())
