"""`cd.javascript(model, quantity)`: a quantity of a model as an ES module, for browsers and Node.js."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.functions.equations import equations, require_no_laws
from cardan.model.memory import require_model
from cardan.program.program import Program, record
from cardan.structure.kernels import function_of, parameter_arguments, ports_of

if TYPE_CHECKING:
    from cardan.machines.printer import Printer
    from cardan.model.model import Model


def javascript(model: Model, quantity: str = "forward_dynamics", *, formulation: str | Formulation = "spatial") -> str:
    """A quantity of a model as the text of an ES module, printed from the graph that the kernels are compiled from.

    The module exports a function with the name of the quantity. Its arguments are those of the graph of that name, see
    `Equations.graph`, and come in the same order: a number for a scalar, else any array of numbers, matrices row by
    row. It returns an object with one entry for each output: a number, or a `Float64Array`, matrices row by row. One
    call is one evaluation, in SI units. `inputs` and `outputs` list names and shapes. A model with free parameters has
    their vector `p` as last argument, and `parameters` lists their names, shapes and values.

        import { forward_dynamics } from "./pendulum.mjs";
        const { a } = forward_dynamics([0.1], [0.0], [0.0]);

    Args:
        model: any model; large ones make long modules, since nothing is looped.
        quantity: "forward_dynamics", "mass_matrix", "system", "body_poses" or any other name that `graph` has.
        formulation: which formulation writes it.

    """
    require_model("javascript", model)
    from cardan.machines.javascript.module import JavaScriptPrinter

    if not isinstance(quantity, str):
        raise InputError(f"javascript: quantity must be a name such as 'forward_dynamics', got {quantity!r}")
    model.require_one("javascript")
    eq = equations(model, formulation=formulation)
    require_no_laws(f"javascript {quantity!r}", model, quantity, "run.page(...) has a simulator that finds it")
    found = eq.quantity(quantity)
    inputs, outputs = ports_of(model, found)
    key = hashlib.sha256(f"{model.key} {eq.formulation.key} {quantity}".encode()).hexdigest()
    program = Program(quantity, inputs, outputs, key, lambda: function_of(model, found))
    about = (f"{quantity} of the model {model.name!a}, formulation {eq.formulation.name!r}, SI units.",)
    exports = {}
    if model.parameters:
        (p,) = parameter_arguments(model)
        exports["parameters"] = [
            {"name": one.name, "shape": one.nominal.shape, "value": p[model.parameters.slice_of(one.name)].tolist()}
            for one in model.parameters
        ]
    printer: Printer = JavaScriptPrinter(about, exports)
    return printer.print_program(program, record(program))
