"""What is computed: mechanisms, states, functions of a state and runs, each with its goals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import cardan as cd
from cardan import mechanisms

SMALL, LARGE = 4096, 1 << 20  # states of a batch
STEP = 1e-3  # of runs, s
BY = ("q", "v", "tau")
GRAVITY = (0.0, 0.0, -9.81)

Goals = dict[tuple[str, int], float]  # evaluations or steps a second, by precision and batch


@dataclass(frozen=True)
class Robots:
    """The mechanisms; robots are read from a folder laid out as that of example-robot-data."""

    folder: Path

    def path(self, name: str) -> Path | None:
        """The file of a robot, or None for one of Cardan's own mechanisms."""
        file = _FILES.get(name)
        return None if file is None else self.folder / file[0]

    @cache  # noqa: B019  one object for a run
    def model(self, name: str) -> cd.Model:
        """The model; Panda's fingers move each on its own, as in the other programs."""
        path = self.path(name)
        if path is None:
            return _MECHANISMS[name]().build()
        return cd.load(path, root=_FILES[name][1], mimic=False, gravity=GRAVITY, damping=False)

    def states(self, name: str, rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Random q (rows, nq), v and tau (rows, nv) of a tree, float64."""
        rng = np.random.default_rng(seed)
        q, v = self.model(name).random_state(rng, rows)
        return q, v, rng.standard_normal((rows, self.model(name).nv))

    @cache  # noqa: B019
    def moving(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """States along one run from rest, q (SMALL, nq) and v (SMALL, nv): assembled, each one another."""
        model = self.model(name)
        run = cd.simulate(model, DURATIONS[name], method="rk4", step=STEP, samples=SMALL, progress=False)
        return np.asarray(run.q), np.asarray(run.v)

    def starts(self, name: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Starts of runs: the states along one run, over and over."""
        again = -(-rows // SMALL)
        return tuple(np.tile(array, (again, 1))[:rows] for array in self.moving(name))  # type: ignore[return-value]


_FILES: dict[str, tuple[str, Any]] = {
    "Panda": ("panda_description/urdf/panda.urdf", "fixed"),
    "ANYmal": ("anymal_b_simple_description/robots/anymal.urdf", "free"),
    "Talos": ("talos_data/robots/talos_reduced.urdf", "free"),
}
_MECHANISMS: dict[str, Callable[[], cd.Mechanism]] = {
    "four-bar": mechanisms.four_bar,
    "Stewart platform": mechanisms.stewart_platform,
}
DURATIONS = {"four-bar": 4.0, "Panda": 0.5, "Stewart platform": 0.2}  # of the run that gives the starts, s


def example_robots() -> Path:
    """The folder of the package example-robot-data."""
    import cmeel

    return Path(cmeel.__file__).parents[1] / "cmeel.prefix" / "share" / "example-robot-data" / "robots"


Call = Callable[..., tuple[Any, ...]]


def _value(model: cd.Model, q: Any, v: Any, tau: Any, **options: Any) -> tuple[Any, ...]:
    return (cd.forward_dynamics(model, q, v, tau, **options),)


def _jacobians(model: cd.Model, q: Any, v: Any, tau: Any, **options: Any) -> tuple[Any, ...]:
    return tuple(cd.forward_dynamics(model, q, v, tau, by=BY, **options))


def _vjp(model: cd.Model, q: Any, v: Any, tau: Any, w: Any, **options: Any) -> tuple[Any, ...]:
    at = {"q": q, "v": v, "tau": tau}
    value, gradient = cd.vjp(model, "forward_dynamics", at, w, by=BY, **options)
    return (value, *(gradient[name] for name in BY))


@dataclass(frozen=True, eq=False)
class Function:
    """A function of a state of one robot."""

    kind: str
    robot: str
    call: Call
    goals: Goals = field(default_factory=dict)

    @property
    def title(self) -> str:
        """As in the tables."""
        return f"{self.robot}, {self.kind}"

    def arrays(self, robots: Robots, rows: int) -> list[np.ndarray]:
        """Its arguments, float64."""
        arrays = list(robots.states(self.robot, rows))
        if self.kind == "VJP":
            arrays.append(np.random.default_rng(1).standard_normal(arrays[-1].shape))
        return arrays


VALUE, JACOBIANS, VJP = "forward dynamics", "with Jacobians", "VJP"
FUNCTIONS = (
    Function(VALUE, "Panda", _value, {
        ("float32", LARGE): 2e10, ("float64", LARGE): 1e10, ("float32", SMALL): 1e9, ("float64", SMALL): 8e8,
    }),
    Function(VALUE, "ANYmal", _value, {("float32", LARGE): 5e9, ("float64", LARGE): 2e9}),
    Function(VALUE, "Talos", _value, {("float32", LARGE): 1e9, ("float64", LARGE): 4e8}),
    Function(JACOBIANS, "Panda", _jacobians, {("float32", LARGE): 1e9, ("float64", LARGE): 4e8}),
    Function(JACOBIANS, "ANYmal", _jacobians),
    Function(VJP, "Panda", _vjp, {("float32", LARGE): 6e9, ("float64", LARGE): 2e9}),
    Function(VJP, "ANYmal", _vjp, {("float32", LARGE): 1e9, ("float64", LARGE): 4e8}),
)  # fmt: skip
DRIVER_GOAL = {("ANYmal", JACOBIANS): 5.0}  # the driver's compilation, s


@dataclass(frozen=True, eq=False)
class Steps:
    """Runs of a mechanism with RK4: `steps` of a run at each batch."""

    robot: str
    steps: dict[int, int]
    goals: Goals
    times_warp: float | None = None

    @property
    def title(self) -> str:
        """As in the tables."""
        return f"{self.robot}, RK4 steps"


STEPS = (
    Steps("four-bar", {SMALL: 1000, LARGE: 1000}, {("float32", LARGE): 2.2e10, ("float64", LARGE): 1e10}, 500.0),
    Steps("Panda", {SMALL: 1000, LARGE: 1000}, {("float32", LARGE): 4e9, ("float64", LARGE): 1.5e9}, 300.0),
    Steps("Stewart platform", {SMALL: 200, LARGE: 100}, {("float32", LARGE): 3e8, ("float64", LARGE): 1e8}),
)
