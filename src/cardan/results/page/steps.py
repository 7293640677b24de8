"""How a page takes steps: the kernels of the integrator, what is sampled on the way, and what rows with laws show.

A model without laws takes steps of Dormand and Prince. One with stops, contacts, friction that sticks or locks takes
Moreau's steps of fixed length, in which impacts and sticking are part of the step (`integrate.moreau`). Sampled
variables take their next values between steps, by programs that are recorded from their updates.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np

from cardan.formulation.complementarity import NEWTON, has_restitution
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.changes import trace_change
from cardan.integrate.events import Event
from cardan.integrate.explicit.step import ExplicitEquations, equations_of
from cardan.integrate.explicit.stepper import CAREFUL_STEPS, SUBSTEPS, ExplicitKernels, explicit_kernels
from cardan.integrate.explicit.tableau import DORMAND_PRINCE, ONE_STAGE
from cardan.integrate.inputs import next_values, sampled_variables
from cardan.integrate.integrators import INTEGRATORS
from cardan.integrate.integrators import STEPS as BY_STEPS
from cardan.integrate.moreau.step import MoreauEquations
from cardan.integrate.moreau.stepper import VIOLATED
from cardan.model.model import Model
from cardan.model.modes import CLOSED, places
from cardan.model.row import Law
from cardan.program.program import Port, Program
from cardan.results.laws import UNSOLVED
from cardan.results.trajectory.trajectory import Trajectory
from cardan.structure.rows import kept_rows

STEP = 5e-4  # s: the longest of the steps of fixed length that a page takes by itself
STEPS = 8000  # in a run, at least
SHORTER = 5  # and so many for each step of a method that chooses its steps
CALLED = (
    "This page shows the run and does not simulate: {name} is plain Python, which a browser does not run. As a "
    "recorded law, without python=True, it would be simulated."
)


def kernels_of(
    model: Model, rule: str = NEWTON, events: tuple[Event, ...] = (), careful: bool = False
) -> ExplicitKernels:
    """The kernels of the steps; `rule` is the law of impacts."""
    motion: ExplicitEquations
    if model.laws:
        motion, tableau = MoreauEquations(model, SPATIAL, tuple(kept_rows(model, SPATIAL)), rule=rule), ONE_STAGE
    else:
        motion, tableau = equations_of(model, SPATIAL), DORMAND_PRINCE
    return explicit_kernels(replace(motion, careful=careful), tableau, events)


def rule_of(thing: Model | Trajectory) -> str:
    """The law of impacts of a run; Newton's of a model."""
    return NEWTON if isinstance(thing, Model) else str(thing.settings.get("impact", NEWTON))


def step_of(thing: Model | Trajectory, model: Model) -> float:
    """Length of the steps, s: that of a run by time stepping, else a round one; 0 where steps choose their length."""
    if not model.laws:
        return 0.0
    if isinstance(thing, Model) or len(thing.time) < 2:
        return STEP
    if thing.method in INTEGRATORS and INTEGRATORS[thing.method].laws == BY_STEPS:
        return float(thing.settings["step"])
    span = float(thing.time[thing.valid][-1] - thing.time[0])
    longest = min(STEP, span / max(STEPS, SHORTER * float(thing.statistics.get("steps", 0))))
    power = 10.0 ** np.floor(np.log10(longest))
    return float(power * max(k for k in (1, 2, 5) if k * power <= longest * (1 + 1e-9)))


def update_programs(model: Model) -> dict[str, tuple[float, Program]]:
    """Programs `t, q, v, tau, p` to `p` that give sampled variables their next values; with their intervals, s."""
    found = {}
    for k, (every, variables, _) in enumerate(sampled_variables(model)):
        found[f"update {k}"] = every, _update(model, variables, f"update {k}")
    return found


def _update(model: Model, variables: Any, name: str) -> Program:
    graph, slots = trace_change(f"{variables[0].owner}: update", model, next_values(variables))
    size = model.parameters.size
    inputs = (
        Port("t", ()), Port("q", (model.nq,)), Port("v", (model.nv,)), Port("tau", (model.nv,)), Port("p", (size,)),
    )  # fmt: skip

    def record() -> Any:
        import casadi as ca

        symbols = [ca.SX.sym(port.name, port.size) for port in inputs]
        p = ca.SX(symbols[-1])
        for at, value in zip(slots.parameters, ca.vertsplit(graph(*symbols)[1]), strict=True):
            p[at] = value
        return ca.Function("update", symbols, [p])

    key = hashlib.sha256(f"{model.key} {name} in a page {graph.serialize()}".encode()).hexdigest()
    return Program(name, inputs, (Port("next", (size,)),), key, record)


def plain_python(model: Model) -> str:
    """The name, in quotes, of a controller that is plain Python; empty if there is none."""
    called = [controller for _, _, found in sampled_variables(model) for controller in found]
    return called[0].owner if called else ""


def told_of_steps(thing: Model | Trajectory, model: Model) -> dict[str, Any]:
    """What the page is told: length of the steps, careful steps near singular positions, rows with laws."""
    step = step_of(thing, model)
    tries = [(n, parts, 2 * parts) for n, parts in SUBSTEPS] if step else [(1, 1, CAREFUL_STEPS)]
    return {"step": step, "tries": tries, **_told_of_laws(model, rule_of(thing))}


def _told_of_laws(model: Model, rule: str) -> dict[str, Any]:
    """Rows with laws, and in which parts of the state of a step their forces are.

    `switch` is where in `p` it is whether a lock or latch is closed, if that is free; else -1.
    """
    if not model.laws:
        return {"laws": []}
    rows: list[dict[str, Any]] = []
    switches = places(model, CLOSED).tolist()
    for law in model.laws:
        for label, end in zip(law.labels(model.joints), law.names, strict=True):
            rows.append({
                "element": law.name, "row": end, "name": label.name, "law": label.law.value,
                "unit": label.unit, "force": label.force_unit,
                "switch": switches[len(rows)],
            })  # fmt: skip
    parts = ["force"] if not has_restitution(model) else ["restoring"] if rule == NEWTON else ["force", "restoring"]
    kinds = {Law.UNILATERAL: "stops", Law.FRICTION: "friction", Law.SWITCHED: "locks"}
    words = [word for law, word in kinds.items() if any(law in own.laws for own in model.laws)]
    title = " and ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words).capitalize()
    return {"laws": rows, "title": title, "forces": parts, "violated": VIOLATED, "unsolved": UNSOLVED}
