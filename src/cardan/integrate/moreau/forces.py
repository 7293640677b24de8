"""Forces of rows with laws at samples of a run by Moreau's rule: the averages over a step that begins there."""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.formulation.complementarity import NEWTON, RULES
from cardan.formulation.dynamics import time_port
from cardan.formulation.formulation import Formulation, tree_rates
from cardan.formulation.quantity import Inputs, Quantity, fixed, per_velocity, port_shape
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.moreau.step import TERMS, middle_motion, step_terms, unit_quaternions
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.kernels import compile_quantity, time_argument
from cardan.structure.laws import impulses
from cardan.structure.rows import kept_rows

_KERNELS: Slot[str, Any] = Slot("terms of steps of Moreau's rule, by formulation")


def step_forces(
    model: Model, formulation: Formulation, rule: str, step: float, t: np.ndarray, q: np.ndarray, v: np.ndarray,
    tau: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Forces (..., m), N or N m, of the rows with laws in a step of length `step` (s) from states at times `t`."""
    rows, tree_rows = (tuple(kept_rows(model.unbound, own)) for own in (formulation, SPATIAL))
    facts = f"{formulation.facts(model)} rows {rows} {tree_rows}"
    make = lambda: compile_quantity(model.unbound, _terms_from_start(model, formulation, rows, tree_rows), facts)
    kernel = _KERNELS.find(model, formulation.key, make)
    if model.parameters:
        kernel = kernel.at_values(model.parameters.nominal if model.values is None else model.values)
    found = kernel(q, v, tau, np.asarray(step), *time_argument(model, t))
    terms = {name: np.asarray(x) for name, x in zip(TERMS, found, strict=True)}
    return impulses(model, rule if rule in RULES else NEWTON, terms | {"closed": terms["active"]})[0]


def step_answer(
    model: Model, formulation: Formulation, rule: str, step: float, t: np.ndarray, q: np.ndarray, v: np.ndarray,
    tau: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Average accelerations (..., nv) and wrenches (..., number of joints, 6) of all joints in such a step."""
    x = step_forces(model, formulation, rule, step, t, q, v, tau)
    tree_rows = tuple(kept_rows(model.unbound, SPATIAL))
    make = lambda: compile_quantity(model.unbound, _answer(model, tree_rows), f"rows {tree_rows}")
    kernel = _KERNELS.find(model, "answer", make)
    if model.parameters:
        kernel = kernel.at_values(model.parameters.nominal if model.values is None else model.values)
    found: tuple[np.ndarray, np.ndarray] = kernel(q, v, tau, np.asarray(step), x, *time_argument(model, t))
    return found


def _answer(model: Model, tree_rows: tuple[int, ...]) -> Quantity:
    """Accelerations and wrenches in a step of length `h` with forces `x`."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q, v, h, x = (inputs[name] for name in ("q", "v", "h", "x"))
        later = {"t": inputs["t"] + h / 2} if "t" in inputs else {}
        middle = {"q": unit_quaternions(model, q + h / 2 * tree_rates(model, q, v)), "v": v, "tau": inputs["tau"]}
        motion = middle_motion(model, tree_rows, {**middle, **later}, v, h)[0]
        return motion.at(x, [motion.vdot, motion.solution.wrenches])

    ports = ("q", "v", "tau", "h", "x", *time_port(model))
    own: dict[str, tuple[int, ...]] = {"h": (), "x": (len(model.lawful_rows),)}
    shapes = {name: own[name] if name in own else port_shape(model, name) for name in ports}
    outputs = (("a", per_velocity), ("f", fixed(len(model.joints), 6)))
    return Quantity("moreau_answer", ports, outputs, write=write, shapes=shapes)


def _terms_from_start(
    model: Model, formulation: Formulation, rows: tuple[int, ...], tree_rows: tuple[int, ...]
) -> Quantity:
    """`Terms` of a step of length `h` from its start."""
    middle = step_terms(model, formulation, rows, tree_rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q, v, h = inputs["q"], inputs["v"], inputs["h"]
        q_m = unit_quaternions(model, q + h / 2 * tree_rates(model, q, v))
        later = {"t": inputs["t"] + h / 2} if "t" in inputs else {}
        return middle.graph(model, {**inputs, "q": q_m, "start": v, **later})

    ports = tuple(name for name in middle.inputs if name != "start")
    shapes = {name: middle.input_shape(model, name) for name in ports}
    return Quantity("moreau_forces", ports, middle.outputs, write=write, shapes=shapes)
