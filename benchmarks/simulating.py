"""Single runs of closed mechanisms to the same accuracy: `cd.simulate` compared with Exudyn."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.compiling import python
from benchmarks.exudyn_plane import RECOMMENDED, SPARSE_FROM, VARIANTS, Plane, exudyn, plane
from benchmarks.report import Run
from benchmarks.tables import NONE, ms, number, scientific, table, times
from benchmarks.timing import Block, Timing, interleave
from cardan import mechanisms

DATA = Path(__file__).parents[1] / "tests" / "outside" / "data"
GOAL = 5.0
SAMPLES = 501  # as `cd.simulate` keeps by default
LOOSEST, TIGHTEST = 1e-3, 1e-11  # relative tolerances tried, half a decade apart
ABSOLUTE = 1e-2  # absolute tolerance over the relative one, as in `cd.simulate` by default
MOST_STEPS = 100_000  # of Cardan; a tolerance that needs more steps is skipped
FIRST_STEPS, MARGIN, TRIES = 500, 1.03, 12
LONG, LONG_ROUNDS = 1.0, 3  # a block that lasts longer than this, s, gets fewer rounds


@dataclass(frozen=True)
class Case:
    """A mechanism, its initial state and its reference solution."""

    name: str
    make: Callable[[], cd.Mechanism]
    duration: float
    accuracies: tuple[float, ...]
    error: Callable[[cd.Model, np.ndarray], float]
    measured: str
    rates: Callable[[cd.Model], np.ndarray] = lambda model: np.zeros(model.nv)
    without: str | None = None
    variants: tuple[str, ...] = tuple(VARIANTS)

    @cached_property
    def model(self) -> cd.Model:
        """Cardan's model."""
        return self.make().build()

    @cached_property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Initial configuration and velocity; the mechanisms used here are assembled at their start."""
        return self.model.start(), self.rates(self.model)

    @cached_property
    def plane(self) -> Plane:
        """Exudyn's model."""
        return plane(self.model, *self.start, without=self.without)

    def cardan(self, rtol: float, atol: float, samples: int = 2) -> cd.Trajectory:
        """One run with this number of samples; by default only the start and the end."""
        return cd.simulate(
            self.model, self.duration, *self.start, rtol=rtol, atol=atol, samples=samples, threads=1, progress=False,
            max_steps=MOST_STEPS,
        )  # fmt: skip

    def cardan_error(self, rtol: float) -> float:
        """Final error of a run with this tolerance; infinite if it fails."""
        try:
            return self.error(self.model, np.asarray(self.cardan(rtol, ABSOLUTE * rtol).q)[-1])
        except cd.SimulationError:
            return math.inf


def _read(name: str) -> Any:
    return json.loads((DATA / name).read_text())


def _andrews_error(model: cd.Model, q: np.ndarray) -> float:
    data = _read("andrews.json")
    exact = [data["refined_t003"]["q"][data["order"].index(name)] for name in model.coordinate_names]
    return float(np.abs(q - exact).max())


def _slider_crank_error(model: cd.Model, q: np.ndarray) -> float:
    _, angle, x, p, *_ = _read("sundials_slider_crank.json")["t_q_x_p_qd_xd_pd"][-1]
    exact = {"crank": angle, "pin": p - angle, "guide": x}
    return float(np.abs(q - [exact[name] for name in model.coordinate_names]).max())


def _windows_error(model: cd.Model, q: np.ndarray, *, n: int, duration: float) -> float:
    """Distance of B0 from `(sin th, cos th)`, th/2 = am(t/2 | -4 c): `th'' = c sin th`, th(0) = 0, th'(0) = 1."""
    from mpmath import ellipfun

    c = 9.81 * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    sn, cn = (float(ellipfun(f, duration / 2, m=-4 * c).real) for f in ("sn", "cn"))
    th = q[model.coordinate_names.index("A0")]
    return math.hypot(math.sin(th) - 2 * sn * cn, math.cos(th) - (cn * cn - sn * sn))


def _window_rates(model: cd.Model) -> np.ndarray:
    return np.array([1.0 if name.startswith("A") else -1.0 for name in model.coordinate_names])


def case(name: str) -> Case:
    """A case by name; `A02 n` has n windows."""
    if name == "Andrews":
        what = "largest error of the seven angles, rad"
        return Case(name, mechanisms.andrews, 0.03, (1e-4, 1e-6), _andrews_error, what)
    if name == "slider-crank":
        what = "largest error of angles and slider, rad and m"
        make = mechanisms.sundials_slider_crank
        return Case(name, make, 10.0, (1e-5, 1e-6), _slider_crank_error, what, without="slider")
    n = int(name.removeprefix("A02 "))
    error = partial(_windows_error, n=n, duration=20.0)
    make = partial(mechanisms.n_four_bar, n)
    return Case(
        name, make, 20.0, (1e-2, 1e-3), error, "distance of B0, m", rates=_window_rates, variants=(RECOMMENDED,)
    )


def loosest_tolerance(chosen: Case, goal: float) -> tuple[float, float]:
    """The loosest tolerance that reaches the goal, if the next one does too; and its error."""
    tolerances = np.geomspace(LOOSEST, TIGHTEST, 1 + round(2 * math.log10(LOOSEST / TIGHTEST)))
    errors: list[float] = []
    for k, rtol in enumerate(tolerances):
        errors.append(chosen.cardan_error(rtol))
        if k and max(errors[-2:]) <= goal:
            return float(tolerances[k - 1]), errors[-2]
    raise RuntimeError(f"no tolerance reaches {goal:g}; the last error is {errors[-1]:.1e}")


def fewest_steps(chosen: Case, variant: dict[str, Any], goal: float) -> tuple[int, float]:
    """The number of steps with which Exudyn reaches the goal, estimated from its second order; and the error."""
    steps, before = FIRST_STEPS, math.inf
    for _ in range(TRIES):
        try:
            chosen.plane.solve(chosen.duration, steps, **variant)
        except exudyn().SolverError:
            steps *= 2
            continue
        error = chosen.error(chosen.model, chosen.plane.coordinates())
        if error <= goal and (error > goal / 1.3 or steps == FIRST_STEPS):
            return steps, error
        if error > max(goal, before / 1.1):
            break  # more steps no longer help
        steps, before = math.ceil(MARGIN * steps * min(math.sqrt(error / goal), 4.0)), error
    raise RuntimeError(f"no number of steps up to {steps} reaches {goal:g}")


def section(run: Run) -> str:
    """Both programs to the same accuracy, and the cost of compiling."""
    rows, first = [], []
    for name in ("Andrews", "slider-crank", "A02 4" if run.quick else "A02 40"):
        chosen = case(name)
        for accuracy in chosen.accuracies[:1] if run.quick else chosen.accuracies:
            with run.step(f"simulate {name} {accuracy:g}"):
                rtol, error = loosest_tolerance(chosen, accuracy)
                timing, peer = _timed(run, chosen, rtol, accuracy)
                rows.append(_row(run, chosen, accuracy, rtol, error, timing, peer))
                last = rtol, timing
        with run.step(f"simulate {name} first run"):
            first.append(_first_row(chosen, *last))
    return _text(rows, first)


@dataclass(frozen=True)
class _Peer:
    """The fastest variant of Exudyn for an accuracy."""

    name: str
    steps: int
    error: float


def _timed(run: Run, chosen: Case, rtol: float, accuracy: float) -> tuple[dict[str, Timing], _Peer | None]:
    kept = {"cardan": 2, "sampled": SAMPLES}
    blocks = {name: Block(partial(chosen.cardan, rtol, ABSOLUTE * rtol, n), 1) for name, n in kept.items()}
    try:
        exudyn()
    except ImportError:
        return interleave(blocks, rounds=run.rounds, least=run.least), None
    peers = {}
    for name in chosen.variants:
        variant = VARIANTS[name]
        try:
            steps, error = fewest_steps(chosen, variant, accuracy)
        except RuntimeError:
            continue
        peers[name] = _Peer(name, steps, error)
        blocks[name] = Block(partial(chosen.plane.solve, chosen.duration, steps, **variant), 1)
    once = interleave(blocks, rounds=1, least=0.0)
    best = min(peers, key=lambda name: once[name].minimum)
    rounds = LONG_ROUNDS if once[best].minimum > LONG else run.rounds
    chosen_blocks = {**{name: blocks[name] for name in kept}, "exudyn": blocks[best]}
    return interleave(chosen_blocks, rounds=rounds, least=run.least), peers[best]


def _row(
    run: Run, chosen: Case, accuracy: float, rtol: float, error: float, timing: dict[str, Timing], peer: _Peer | None
) -> tuple[str, ...]:
    cardan, steps = timing["cardan"], chosen.cardan(rtol, ABSOLUTE * rtol).statistics["steps"]
    own = (
        scientific(rtol),
        f"{steps:,}",
        scientific(error),
        ms(cardan.median),
        ms(cardan.minimum),
        ms(timing["sampled"].median),
    )
    what = (chosen.name, f"{accuracy:g}")
    if peer is None:
        return (*what, *own, *[NONE] * 8)
    exu = timing["exudyn"]
    ratio, leasts = cardan.times_faster_than(exu), cardan.least_times_faster_than(exu)
    run.at_least(f"{chosen.name}, one run to {accuracy:g}: times Exudyn", GOAL, min(ratio, leasts), times)
    theirs = (peer.name, f"{peer.steps:,}", scientific(peer.error), ms(exu.median), ms(exu.minimum))
    met = "yes" if min(ratio, leasts) >= GOAL else "**no**"
    return (*what, *own, *theirs, times(ratio), times(leasts), met)


def _first_row(chosen: Case, rtol: float, timing: dict[str, Timing]) -> tuple[str, ...]:
    """First runs of fresh processes at the finest accuracy: without a cache, then with it."""
    with tempfile.TemporaryDirectory() as cache:
        arguments = ["-m", "benchmarks.first_run", chosen.name, str(rtol), str(ABSOLUTE * rtol)]
        cold, cached = (json.loads(python(arguments, cache)) for _ in range(2))
    again = timing["cardan"].minimum
    exu = timing["exudyn"].minimum if "exudyn" in timing else None
    pays = [NONE] * 2 if exu is None else [_runs(t["run"] - again, exu - again) for t in (cold, cached)]
    sizes = number(cold["model"]), number(cold["run"]), number(cached["run"]), number(again)
    return (chosen.name, *sizes, NONE if exu is None else number(exu), *pays)


def _runs(extra: float, gain: float) -> str:
    """Number of runs after which the saved time exceeds the extra time of the first run."""
    return f"{max(math.ceil(extra / gain), 1):,}" if gain > 0 else "never"


def _text(rows: list[tuple[str, ...]], first: list[tuple[str, ...]]) -> str:
    head = (
        "mechanism", "to", "Cardan: rtol", "steps", "error", "ms", "least", f"ms, {SAMPLES} samples",
        "Exudyn", "steps", "error", "ms", "least", "ratio", "of leasts", "met",
    )  # fmt: skip
    head_first = (
        "mechanism", "building the model", "first run, no cache", "first run, from the cache", "later runs",
        "Exudyn's run", "break-even after runs, no cache", "break-even after runs, from the cache",
    )  # fmt: skip
    measured = "; ".join(f"{name}: {case(name).measured}" for name in ("Andrews", "slider-crank", "A02 40"))
    return (
        "## Single runs to the same accuracy\n\n"
        "`cd.simulate` with its default method (Dormand-Prince, steps chosen by tolerance) compared with Exudyn, "
        f"both on one thread, both keeping only the final state (the table also has Cardan's time with {SAMPLES} "
        "samples, its default). Andrews' mechanism over 0.03 s, the slider-crank of SUNDIALS over 10 s, the IFToMM "
        "benchmark A02 (a row of four-bar windows) over 20 s. The error is the final error relative to refined "
        f"published digits or the closed form ({measured}). Cardan uses the loosest tolerance, in half decades, "
        "that reaches the accuracy, if the next one does too; the absolute tolerance is a hundredth of it. Exudyn "
        f"uses the number of steps that just reaches it, with the fastest of {'; '.join(VARIANTS)} (A02: only "
        f"{RECOMMENDED}, the trapezoidal rule fails). Exudyn's models are planar, about centres of mass, with three "
        f"coordinates for each body (the slider is a point of the rod), with the sparse solver from {SPARSE_FROM} "
        "bodies, modified Newton, and without range checks, files or output. Times of a run, without compiling; "
        f"the goal is {GOAL:g}x.\n\n"
        + table(head, rows)
        + "\n\nCost of compiling: seconds of the first run of a fresh process, with the model already built, with an "
        "empty kernel cache and with the cache that this left, at the finest accuracy. Kernels depend on the mechanism "
        "and the formulation, not on the initial state, tolerances or values of free parameters: a study compiles "
        "once. `break-even` is the number of runs after which Cardan's total time, with compiling, is less than "
        "Exudyn's.\n\n" + table(head_first, first) + "\n"
    )
