"""The engine's answer on a page: a graph of a model whose numbers are free, at symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cardan.functions.equations import equations

if TYPE_CHECKING:
    from cardan.model.model import Model

Symbol = Any  # casadi.SX


def engine(
    model: Model, quantity: str, formulation: str, parameters: Mapping[str, Symbol], **inputs: Symbol
) -> dict[str, Symbol]:
    """A quantity by the graph that `cd.equations(model).graph` gives, all its outputs by name.

    `parameters` has every free number of the model by name; inputs that are not given are zero.
    """
    import casadi as ca

    graph = equations(model, formulation=formulation).graph(quantity)
    given = {name: ca.SX.zeros(*graph.size_in(name)) for name in graph.name_in()} | inputs
    given["p"] = ca.vertcat(*(ca.vec(ca.SX(parameters[one.name])) for one in model.parameters))
    found = graph.call(given)
    return {name: ca.SX(found[name]) for name in graph.name_out()}
