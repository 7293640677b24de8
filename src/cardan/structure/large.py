"""Kernels of mechanisms with many bodies and loops, which loop over pieces and connections by class.

What is computed is in `formulation.large.programs`; here are the ports, and which mechanisms are divided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Shape, port_shape
from cardan.formulation.spatial import SPATIAL
from cardan.model.memory import KernelSlot, Slot
from cardan.model.model import Model
from cardan.program.program import Port
from cardan.program.schedule import Schedule
from cardan.structure.assemble import closed_start, constraint_kernels
from cardan.structure.kernels import (
    LOOP_PAST,
    FreeKernel,
    kernel_of,
    parameter_arguments,
    symbolic,
    time_argument,
    tree_kernel,
)
from cardan.structure.rows import generic_configurations, independent_rows
from cardan.structure.sparse_rows import sparse_rows

SPECIAL = 1e-6  # independence of rows, relative to their diagonal, below which a start is not usual
_DIVIDED: Slot[str, bool] = Slot("whether a mechanism is divided into pieces, by formulation")
_USUAL: Slot[str, float] = Slot("usual independence of rows, by formulation")
_KERNELS: KernelSlot[tuple[str, ...]] = KernelSlot("kernels of a divided mechanism, by formulation, inputs and outputs")

Write = Callable[..., Schedule]


def is_divided(model: Model, formulation: Formulation) -> bool:
    """Whether a mechanism is so large that it is divided into pieces, and a formulation knows how."""
    if not formulation.divides or len(model.tree.links) <= LOOP_PAST or model.rows_at is not None:
        return False
    if model.laws or model.controllers:
        return False
    if not (model.has_rows or model.parameters or not formulation.in_tree):
        return False  # trees have recursions, which are looped
    return _DIVIDED.find(model, formulation.key, lambda: _can_be(model.unbound, formulation))


def _can_be(model: Model, formulation: Formulation) -> bool:
    from cardan.formulation.large.programs import can_loop, has_large_subtrees  # which small models do without

    if not formulation.in_tree:
        return can_loop(model.separate, bodies_apart=True)
    return can_loop(model, has_large_subtrees(model))


def large_kernel(
    model: Model, formulation: Formulation, what: str, write: Write, inputs: Sequence[str],
    outputs: dict[str, Shape], solves: bool = True,
) -> Any:  # fmt: skip
    """The kernel of what `write` makes a schedule of; made on first use. If it `solves`, it is given rows to keep."""

    def make() -> Any:
        home = model.unbound
        home = home if formulation.in_tree else home.separate
        rows = independent_rows(model) if solves else []
        ins, kernel = _ports(home, inputs), None
        apart = None if formulation.in_tree else True
        facts = f"{formulation.facts(home)} divided rows {rows} {what} {tuple(inputs)} {tuple(outputs)}"

        def record() -> Schedule:
            written, p = symbolic(home)
            names = tuple(port.name for port in ins)
            return write(
                written, rows, names, tuple(outputs), p=p if home.parameters else None, bodies_apart=apart
            )  # fmt: skip

        kernel = kernel_of(home, facts, what, ins, tuple(Port(name, shape) for name, shape in outputs.items()), record)
        return FreeKernel(kernel, *parameter_arguments(home)) if home.parameters else kernel

    return _KERNELS.find(model, (formulation.key, what, *inputs, *outputs), make)


def _ports(model: Model, names: Sequence[str]) -> tuple[Port, ...]:
    ports = tuple(Port(name, port_shape(model, name), model.entries(name)) for name in names)
    return (*ports, Port("p", (model.parameters.size,))) if model.parameters else ports


def large_forward(model: Model, formulation: Formulation, loaded: bool) -> Any:
    """Accelerations (nv,) of the tree's coordinates: `q, v, tau, (wrenches), (t), (p)`."""
    from cardan.formulation.large.programs import forward_dynamics

    inputs = ("q", "v", "tau", *(("wrenches",) if loaded else ()), *(("t",) if model.depends_on_time else ()))
    return large_kernel(model, formulation, "forward_dynamics", forward_dynamics, inputs, {"a": (model.nv,)})


def large_multipliers(model: Model) -> Any:
    """Multipliers (nl,) of the rows in the tree's coordinates: `q, v, tau, (t)`."""
    from cardan.formulation.large.programs import forward_dynamics

    inputs = ("q", "v", "tau", *(("t",) if model.depends_on_time else ()))
    return large_kernel(model, SPATIAL, "multipliers", forward_dynamics, inputs, {"lam": (len(model.rows),)})


class LargeReactions:
    """Wrenches (number of joints, 6) of all joints on their children at M, of a mechanism divided into pieces.

    Those of cut joints follow from the multipliers, those of the tree's by the balance of all beyond each.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, *args: Any, out: Any = None, threads: Any = None) -> np.ndarray:
        """Evaluate at `q, v, tau, wrenches, (t)`."""
        from cardan.formulation.large.programs import forward_dynamics

        model, apart = self.model, self.model.unmerged
        inputs = ("q", "v", "tau", "wrenches", *(("t",) if model.depends_on_time else ()))
        outputs: dict[str, Shape] = {"a": (model.nv,), "cuts": (len(model.cuts), 6), "wrenches": (model.nb, 6)}
        if not model.cuts:
            outputs.pop("cuts")
        kernel = large_kernel(model, SPATIAL, "reactions", forward_dynamics, inputs, outputs)
        a, cuts, wrenches = kernel(*args, threads=threads)
        rows = tree_kernel(apart, "joint_wrenches")(args[0], args[1], a, wrenches, threads=threads)
        found = np.zeros((*rows.shape[:-2], len(model.joints), 6), rows.dtype)
        found[..., [link.joint for link in apart.tree.links], :] = rows
        found[..., list(model.cuts), :] = cuts
        if out is None:
            return found
        out[...] = found
        return np.asarray(out)


def has_large_reactions(model: Model, formulation: Formulation) -> bool:
    """Whether `LargeReactions` answers: nothing acts along cut joints, and no parameter is free."""
    if not model.cuts or model.parameters or formulation is not SPATIAL or not is_divided(model, formulation):
        return False
    along = {j for c in model.couplings for j in c.joints}
    along |= {force.on[0] for force in model.forces if force.kind.on == "joint"}
    return not along & {*model.cuts}


def motion_kernel(model: Model, formulation: Formulation) -> Any:
    """Accelerations, rates and the power (W) that enters: `q, v, tau, (t)` to `a`, `qdot`, `P`."""
    from cardan.formulation.large.programs import forward_dynamics

    inputs = ("q", "v", "tau", *(("t",) if model.depends_on_time else ()))
    outputs: dict[str, Shape] = {"a": (model.nv,), "qdot": (model.nq,), "P": ()}
    return large_kernel(model, formulation, "motion", forward_dynamics, inputs, outputs)


def correction_kernel(model: Model, formulation: Formulation) -> Any:
    """One step of Newton's method: `q, v, (t)` to `new_q`, `new_v`, the independence of rows, and the gap before."""
    from cardan.formulation.large.programs import correction

    inputs = ("q", "v", *(("t",) if model.depends_on_time else ()))
    outputs: dict[str, Shape] = {"new_q": (model.nq,), "new_v": (model.nv,), "independence": (), "gap": ()}
    return large_kernel(model, formulation, "correction", correction, inputs, outputs)


def residual_kernel(model: Model) -> Any:
    """Residuals of all constraint rows: `q, v, (t)` to `phi` (nl,) and `J v - beta` (nl,)."""
    from cardan.formulation.large.programs import residuals

    inputs = ("q", "v", *(("t",) if model.depends_on_time else ()))
    nl = len(model.rows)
    return large_kernel(model, SPATIAL, "residuals", residuals, inputs, {"phi": (nl,), "rate": (nl,)}, solves=False)


def row_residuals(model: Model, q: Any, v: Any, t: Any, threads: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Residuals `phi` and `J v - beta` (..., nl) of all constraint rows at states of the tree, of any size."""
    time = time_argument(model, t)
    if is_divided(model, SPATIAL) and not model.parameters and np.size(q) == model.nq and np.size(t) == 1:
        return _one_state(model, np.asarray(q, dtype=float), np.asarray(v, dtype=float), float(np.ravel(t)[0]))
    if is_divided(model, SPATIAL):
        phi, rate = residual_kernel(model)(q, v, *time, threads=threads)
        return phi, rate
    phi, _ = constraint_kernels(model)[0](q, *time, threads=threads)
    J, beta = constraint_kernels(model)[1](q, *time, threads=threads)
    return phi, (J @ np.asarray(v)[..., None])[..., 0] - beta


def _one_state(model: Model, q: np.ndarray, v: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """The same at one state, from the sparse rows that closed the loops: nothing more is compiled."""
    rows, at = sparse_rows(model), q.ravel()
    C, beta = rows.velocity(at, t)
    rate = rows.of_model(C @ rows.link_rates(at, v.ravel()) - beta)
    shape = (*q.shape[:-1], len(model.rows))
    return rows.gaps(at, t).reshape(shape), rate.reshape(shape)


def usual_independence(model: Model, formulation: Formulation) -> float:
    """How far the rows are from depending on one another, at the start or, if that is near to it, elsewhere."""
    return _USUAL.find(model, formulation.key, lambda: _usual_independence(model.unbound, formulation))


def _usual_independence(model: Model, formulation: Formulation) -> float:
    at_start = _independence(model, formulation, np.array([closed_start(model)[1]]))
    found = (
        at_start if at_start > SPECIAL else _independence(model, formulation, np.array(generic_configurations(model)))
    )
    return float(np.clip(found, 1e-12, 1.0))


def _independence(model: Model, formulation: Formulation, q: np.ndarray) -> float:
    """How far the rows are from depending on one another at configurations (n, nq), the median."""
    time = (np.zeros(()),) if model.depends_on_time else ()
    return float(np.median(correction_kernel(model, formulation)(q, np.zeros(model.nv), *time)[2]))


@dataclass(frozen=True)
class LargeSchedules:
    """What a step of a large mechanism runs.

    `motion` gives `a`, `qdot` and `P`, `rates` gives `qdot` alone, `plus` the configuration after a motion. Then what
    `formulation.large.programs.correction` does: `correction(adaptive)` with the error of the step where it is
    estimated, `near()` without; both are None without constraint rows. `usual` is the usual independence of the rows.
    """

    motion: Schedule
    rates: Schedule
    plus: Schedule
    correction: Callable[[bool], Schedule] | None
    near: Callable[[], Schedule] | None
    usual: float


def large_schedules(model: Model, formulation: Formulation, rows: Sequence[int]) -> LargeSchedules:
    """The schedules of a step; `rows` are the constraint rows kept, in the tree's coordinates."""
    from cardan.formulation.large import programs

    home = model.unbound if formulation.in_tree else model.unbound.separate
    written, p = symbolic(home)
    how: dict[str, Any] = {"p": p if home.parameters else None, "bodies_apart": None if formulation.in_tree else True}
    time, free = ("t",) if home.depends_on_time else (), ("p",) if home.parameters else ()
    motion = programs.forward_dynamics(written, rows, ("q", "v", "tau", *time, *free), ("a", "qdot", "P"), **how)
    by_joint = (programs.rates(home), programs.plus(home))
    if not home.has_rows or not rows:
        return LargeSchedules(motion, *by_joint, None, None, 1.0)
    state, sums = ("new_q", "new_v"), ("removed", "energy", "inertia", "independence")

    def near() -> Schedule:
        return programs.correction(written, rows, ("q", "v", *time, *free), state, **how)

    def with_errors(adaptive: bool) -> Schedule:
        errors = ("eq", "ev") if adaptive else ()
        left = ("new_eq", "new_ev") if adaptive else ()
        return programs.correction(written, rows, ("q", "v", *time, *errors, *free), (*state, *left, *sums), **how)

    return LargeSchedules(motion, *by_joint, with_errors, near, usual_independence(model, formulation))
