"""Differences between Cardan and Pinocchio at random states, of dynamics and of their derivatives."""

from __future__ import annotations

import numpy as np

import cardan as cd
from benchmarks.report import Run
from benchmarks.robots import Robot
from benchmarks.tables import scientific, table
from cardan.model.builder import SNAPPING

STATES = 64
GOAL = 1e-10
NAMES = ("forward dynamics", "inverse dynamics", "mass matrix")
DERIVATIVE_STATES = 16
DERIVATIVE_GOAL = 1e-9
DERIVATIVE_NAMES = ("a by q", "a by v", "a by tau", "tau by q", "tau by v", "tau by a")


def pinocchio_answers(robot: Robot, q: np.ndarray, v: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    """Forward dynamics, inverse dynamics and mass matrix, in Cardan's order."""
    import pinocchio as pin

    model, data = robot.pinocchio, robot.pinocchio.createData()
    back = np.argsort(robot.orders[1])
    results: list[list[np.ndarray]] = [[], [], []]
    for state in zip(*(array.T for array in robot.pinocchio_states(q, v, x)), strict=True):
        results[0].append(pin.aba(model, data, *state)[back])
        results[1].append(pin.rnea(model, data, *state)[back])
        M = np.triu(pin.crba(model, data, state[0]))
        M = M + np.triu(M, 1).T
        results[2].append(M[back][:, back])
    return [np.array(result) for result in results]


def largest_errors(robot: Robot, model: cd.Model) -> list[float]:
    """Largest difference relative to the largest entry, for the worst state."""
    q, v, x = robot.states(STATES, seed=1)
    ours = cd.forward_dynamics(model, q, v, x), cd.inverse_dynamics(model, q, v, x), cd.mass_matrix(model, q)
    errors = []
    for mine, theirs in zip(ours, pinocchio_answers(robot, q, v, x), strict=True):
        axes = tuple(range(1, theirs.ndim))
        errors.append(float((np.abs(mine - theirs).max(axes) / np.abs(theirs).max(axes)).max()))
    return errors


def pinocchio_derivatives(robot: Robot, q: np.ndarray, v: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    """Jacobians (states, nv, nv) of forward and inverse dynamics, in Cardan's order.

    By `q` both are along the tangent, in axes of the body: only the order (linear, angular) of a free joint differs.
    Pinocchio fills the upper triangles of the symmetric ones.
    """
    import pinocchio as pin

    model, data = robot.pinocchio, robot.pinocchio.createData()
    back = np.argsort(robot.orders[1])
    results: list[list[np.ndarray]] = [[] for _ in DERIVATIVE_NAMES]
    for state in zip(*(array.T for array in robot.pinocchio_states(q, v, x)), strict=True):
        found = []
        for call in (pin.computeABADerivatives, pin.computeRNEADerivatives):
            by_q, by_v, symmetric = (np.array(D) for D in call(model, data, *state))
            found += [by_q, by_v, np.triu(symmetric) + np.triu(symmetric, 1).T]
        for result, D in zip(results, found, strict=True):
            result.append(D[np.ix_(back, back)])
    return [np.array(result) for result in results]


def largest_derivative_errors(robot: Robot, model: cd.Model, states: int = DERIVATIVE_STATES) -> list[float]:
    """Of each derivative the largest difference relative to its largest entry, for the worst state."""
    q, v, x = robot.states(states, seed=2)
    ours = [
        *cd.forward_dynamics(model, q, v, x, by=("q", "v", "tau")).by.values(),
        *cd.inverse_dynamics(model, q, v, x, by=("q", "v", "a")).by.values(),
    ]
    pairs = zip(ours, pinocchio_derivatives(robot, q, v, x), strict=True)
    return [float((np.abs(mine - D).max((1, 2)) / np.abs(D).max((1, 2))).max()) for mine, D in pairs]


def section(run: Run) -> str:
    """Differences of dynamics with the default snapping and without, and of derivatives."""
    return f"{dynamics(run)}\n{derivatives(run)}"


def derivatives(run: Run) -> str:
    """Differences of the Jacobians."""
    rows = []
    for robot in run.robots.values():
        if robot.pinocchio is None:
            continue
        with run.step(f"agreement of derivatives {robot.name}"):
            errors = largest_derivative_errors(robot, robot.model)
            rows.append((robot.name, *map(scientific, errors)))
            what = f"{robot.name}: relative difference of derivatives from Pinocchio"
            run.below(what, DERIVATIVE_GOAL, max(errors), scientific)
    return (
        f"## Agreement of derivatives with Pinocchio\n\nLargest relative difference over {DERIVATIVE_STATES} random "
        "states from `computeABADerivatives` and `computeRNEADerivatives`, of each Jacobian relative to its largest "
        "entry.\n\n" + table(("robot", *DERIVATIVE_NAMES), rows) + "\n"
    )


def dynamics(run: Run) -> str:
    """Differences with the default snapping, and without."""
    rows = []
    for robot in run.robots.values():
        if robot.pinocchio is None:
            continue
        with run.step(f"agreement {robot.name}"):
            default, exact = largest_errors(robot, robot.model), largest_errors(robot, robot.make(0.0))
            rows.append((robot.name, *map(scientific, default), *map(scientific, exact)))
            run.below(f"{robot.name}: relative difference from Pinocchio", GOAL, max(default), scientific)
    head = ("robot", *NAMES, *(f"{name}, no snapping" for name in NAMES))
    return (
        f"## Agreement with Pinocchio\n\nLargest relative difference over {STATES} random states. Snapping rounds "
        f"constants of joint placements within {SNAPPING:g} of 0, 1 or -1 to exactly that; `snapping=0` switches it "
        "off.\n\n" + table(head, rows) + "\n"
    )
