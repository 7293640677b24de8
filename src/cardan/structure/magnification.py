"""How far rounding is magnified in the programs that answer: measured, by running them with noise.

The graph of the accelerations and that of the reactions are evaluated with every rounding error replaced by a larger
random one (`machines.noise`). Nothing is assumed about which matrix is factored how, so cancellation in positions, in
inertias and in the solution of the equations all count. The little that `formulation.solve` adds to a matrix so that
it can be factored must not change the answer either: the noise changes it too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.algebra.matrix import Matrix
from cardan.formulation import dynamics
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Inputs, Quantity
from cardan.formulation.solve import with_less_added
from cardan.machines.noise import EPS, TIMES, Plan, evaluated, plan, with_noise
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.program.graph import read
from cardan.structure.kernels import function_of, is_large, parameter_arguments, tree_graph
from cardan.structure.planarity import prepare
from cardan.structure.rounding import some_values
from cardan.structure.rows import kept_rows

SAMPLES = 32
KINDS, DRAWS = 4, 4  # of loads, and how many of each
SIGMAS = 5.0  # how many standard deviations of the noise an error may be
LESS = (0.0, 1e-2)  # of what is added to matrices, which must do as well
MEMORY = 2**26  # bytes of noise at a time
FASTER = 3.0  # how many times the accelerations under loads the velocity terms are, squared


@dataclass(frozen=True)
class Judged:
    """A program whose rounding is judged. If `shares`, how much is added to its matrices is its input after time."""

    plan: Plan
    shares: bool

    def inputs(self, model: Model, at: States, less: bool = False) -> list[np.ndarray]:
        """Arrays for the ports of the graph; `less`: with less added to matrices."""
        time, values = [at.t] * model.depends_on_time, [at.p] * bool(model.parameters)
        shares = [np.broadcast_to(LESS if less else (1.0, 1.0), (len(at.q), 2))] * self.shares
        return [at.q, at.v, at.tau, at.wrenches, *time, *shares, *values]


_JUDGED: Slot[str, list[Judged]] = Slot("graphs whose rounding is judged, by formulation")
_MASS: Slot[None, Plan] = Slot("graph of the mass matrix")


def is_recursive(model: Model, formulation: Formulation) -> bool:
    """Whether a recursion along the tree gives the accelerations."""
    return model.is_plain and formulation.in_tree and formulation.has_recursions


def recorded(model: Model, formulation: Formulation, shares: bool = False) -> list[Any]:
    """CasADi functions with the accelerations and the reactions as outputs; of large trees the first alone.

    Inputs are q, v, tau, wrenches, and where there are any time and free parameters. With `shares` the graph of a
    mechanism that is no plain tree has one more before the parameters, (2,): `solve.with_less_added`.
    """
    rows = kept_rows(model, formulation)
    if not is_recursive(model, formulation):
        both = dynamics.motion_and_reactions(model, formulation, rows)
        return [function_of(model, _with_shares(model, both) if shares else both)]
    accelerations = tree_graph(model, "forward_dynamics_loaded", formulation)
    if is_large(model):
        return [accelerations]
    return [accelerations, function_of(model, dynamics.reactions(model, formulation, rows))]


def _with_shares(model: Model, quantity: Quantity) -> Quantity:
    """A quantity with the shares of what is added to matrices as its last input."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        shares = inputs["shares"]
        with with_less_added(shares[0], shares[1]):
            return quantity.graph(model, {name: x for name, x in inputs.items() if name != "shares"})

    shapes = {port: quantity.input_shape(model, port) for port in quantity.inputs} | {"shares": (2,)}
    return replace(quantity, inputs=(*quantity.inputs, "shares"), shapes=shapes, write=write)


def judged(model: Model, formulation: Formulation) -> list[Judged]:
    """The same as graphs, to be evaluated with noise."""

    def make() -> list[Judged]:
        home = model.unbound
        prepare(home, formulation)
        functions = recorded(home, formulation, shares=True)
        return [Judged(plan(read(each)), "shares" in each.name_in()) for each in functions]

    return _JUDGED.find(model, formulation.key, make)


@dataclass(frozen=True)
class States:
    """States and loads at which the graphs are evaluated, one row each: q, v, tau, wrenches (6 nb,), t (1,), p."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    wrenches: np.ndarray
    t: np.ndarray
    p: np.ndarray


def states_at(model: Model, q: Any, v: Any, tau: Any, t: Any) -> tuple[States, tuple[int, ...]]:
    """States (rows, ...) of a batch without wrenches, and the shape of the batch."""
    p = parameter_arguments(model)[0] if model.parameters else np.zeros(0)
    parts = [np.asarray(x, dtype=float) for x in (q, v, tau, np.zeros(6 * model.nb), np.asarray(t)[..., None], p)]
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    count = math.prod(batch)
    rows = [np.broadcast_to(x, (*batch, x.shape[-1])).reshape(count, x.shape[-1]) for x in parts]
    return States(*rows), batch


def magnified(model: Model, formulation: Formulation, states: States, *, generic: bool) -> np.ndarray:
    """Largest relative error, in units of rounding, of accelerations and of reactions (rows, 2) at states.

    `generic`: not under the loads given, but under some that nothing singles out, the worst of them.
    """
    graphs = judged(model, formulation)
    columns = SAMPLES * max(len(each.plan.graph.op) for each in graphs)
    rows = max(MEMORY // (8 * columns * (KINDS if generic else 1)), 1)
    found = []
    with np.errstate(all="ignore"):
        for k in range(0, len(states.q), rows):
            part = _rows(states, k, k + rows)
            found.append(_errors(model, graphs, _loaded(model, graphs[0], part) if generic else part, len(part.q)))
    return np.concatenate(found) if found else np.ones((0, 2))


def _errors(model: Model, graphs: list[Judged], states: States, rows: int) -> np.ndarray:
    """The largest errors (rows, 2) of accelerations and reactions, at some kinds of loads with some draws each."""
    draws = DRAWS if len(states.q) > rows else 1
    worst = np.zeros((rows, 2))
    found = [each for program in graphs for each in _noisy(model, program, states, SAMPLES // draws)]
    for k, (both, groups) in enumerate(zip(found, (_acceleration_groups, _reaction_groups), strict=False)):
        answer, error = (  # (kinds, rows, entries)
            np.sqrt(np.square(x).reshape(len(x) // (draws * rows), draws, rows, x.shape[-1]).mean(axis=1)) for x in both
        )
        for group, least in groups(model, answer):
            worst[:, k] = np.maximum(worst[:, k], _relative(error[..., group], answer[..., group], least).max(axis=0))
    return np.where(np.isnan(worst), np.inf, np.maximum(worst / EPS, 1.0))


def _acceleration_groups(model: Model, a: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
    """Coordinates that are compared with each other, in rad/s^2 and in m/s^2."""
    yield _turning(model), 0.0
    yield ~_turning(model), 0.0


def _reaction_groups(model: Model, f: np.ndarray) -> Iterator[tuple[np.ndarray, Any]]:
    """Forces; and moments, which are also compared with the forces times the size of the mechanism."""
    turning = np.arange(f.shape[-1]) % 6 < 3
    yield ~turning, 0.0
    yield turning, reach(model) * np.abs(f[..., ~turning]).max(axis=-1, initial=0.0)


def _noisy(model: Model, program: Judged, at: States, samples: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each output of a program (rows, n), and the largest error to expect in it."""
    found = [(x[0], largest_error(x)) for x in with_noise(program.plan, program.inputs(model, at), samples)]
    if not program.shares:
        return found
    less = evaluated(program.plan, program.inputs(model, at, less=True))
    return [(x, error + np.abs(other - x)) for (x, error), other in zip(found, less, strict=True)]


def largest_error(found: np.ndarray) -> np.ndarray:
    """The largest error (...) to expect, from an answer without noise and others with noise (1 + samples, ...)."""
    return SIGMAS * np.sqrt(np.square((found[1:] - found[0]) / TIMES).mean(axis=0))


def _relative(error: np.ndarray, answer: np.ndarray, least: Any) -> np.ndarray:
    """The largest error (...,), relative to the largest entry of the answer."""
    error, size = error.max(axis=-1, initial=0.0), np.maximum(np.abs(answer).max(axis=-1, initial=0.0), least)
    return np.where(error == 0, 0.0, error / size)


def reach(model: Model) -> float:
    """The largest distance, m, between two frames of a link: the size of the mechanism."""
    model = _at_values(model)
    arms = [np.linalg.norm(nominal(x)) for link in model.tree.links for x in (link.r, link.com)]
    arms += [np.linalg.norm(nominal(model.tree.body_pose[b].position)) for b in range(model.nb)]
    return float(np.max(arms, initial=0.0))


def _at_values(model: Model) -> Model:
    """The model with numbers for its free parameters: of a batch of values, the first."""
    return some_values(model)[0].settled()


def _loaded(model: Model, accelerations: Judged, at: States) -> States:
    """The states under random forces on all bodies and under random drives, at rest and moving as these would move it.

    The loads are those that would give free bodies, and joints of their own, accelerations like that of gravity.
    """
    rng, g = np.random.default_rng(1), float(np.linalg.norm(model.gravity)) or 1.0
    rows = len(at.q)
    at = States(*(np.tile(getattr(at, field.name), (DRAWS, 1)) for field in fields(at)))
    wrenches = np.zeros((DRAWS, model.nb, 6))
    for k, body in enumerate(_at_values(model).bodies):
        mass, inertia, com = (np.asarray(nominal(x), dtype=float) for x in (body.mass, body.inertia, body.com))
        size = np.sqrt(np.trace(inertia) / mass) if mass > 0 else 0.0
        force = mass * g * rng.standard_normal((DRAWS, 3))
        turn = rng.standard_normal((DRAWS, 3)) * (g / size if size > 0 else 0.0)
        wrenches[:, k] = np.concatenate([turn @ inertia + np.cross(com, force), force], axis=1)
    wrenches = np.repeat(wrenches.reshape(DRAWS, -1), rows, axis=0)  # alike in all rows
    M = evaluated(_MASS.find(model, None, lambda: plan(read(tree_graph(model.unbound, "mass_matrix")))), [at.q, at.p])[
        0
    ]
    length = np.where(_turning(model), reach(model) or 1.0, 1.0)
    drives = g / length * M[:, :: model.nv + 1] * np.repeat(rng.standard_normal((DRAWS, model.nv)), rows, axis=0)
    rest = replace(at, v=0.0 * at.v, tau=0.0 * at.tau)
    cases = [replace(rest, wrenches=wrenches), replace(rest, tau=drives)]
    for case in tuple(cases):
        a = evaluated(accelerations.plan, accelerations.inputs(model, case))[0]
        rate = np.sqrt(np.abs(a[:, _turning(model)]).max(axis=1, initial=0.0))  # rad/s: what belongs to them
        cases.append(replace(case, v=FASTER * a / np.where(rate > 0, rate, 1.0)[:, None]))
    return States(*(np.concatenate([getattr(case, field.name) for case in cases]) for field in fields(at)))


def _turning(model: Model) -> np.ndarray:
    """Which of the tree's rates are in rad/s."""
    return np.array([unit == "rad/s" for link in model.tree.links for unit in link.kind.v_units], dtype=bool)


def _rows(states: States, start: int, stop: int) -> States:
    return States(*(getattr(states, field.name)[start:stop] for field in fields(states)))
