"""Runs on a card and on the CPU: the same bits, and the time of each: `python -m benchmarks.gpu.bits_of_runs`.

Every run is taken twice on the card, and once on the CPU for its first systems, which must agree to the bit: times,
positions, velocities, outcomes, events. Steps a second count whole runs of `cd.simulate`: starts, samples and their
way to the host, and the energy balance are in the time. `kernel` is the time of the launches alone that take the steps,
and the steps a second in it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import cardan as cd
from cardan import mechanisms
from cardan.integrate.explicit import card_run
from cardan.machines.cuda import driver


@dataclass
class Run:
    """A run to be compared: the model, its systems, how many of them the CPU takes, and arguments of `cd.simulate`."""

    name: str
    model: cd.Model
    systems: int
    on_cpu: int
    duration: float
    options: dict[str, Any] = field(default_factory=dict)
    spread: float = 1.0  # rad and rad/s: of the starts

    def starts(self) -> dict[str, np.ndarray]:
        """Positions and velocities of all systems."""
        rng = np.random.default_rng(3)
        q = np.tile(self.model.start(), (self.systems, 1))
        v = self.spread * rng.normal(size=(self.systems, self.model.nv))
        if not self.model.has_rows:
            return {"q0": cd.plus(self.model, q, self.spread * rng.uniform(-1, 1, v.shape)), "v0": v}
        q0, v0 = cd.assemble(self.model, q[: self.on_cpu], v[: self.on_cpu])
        repeated = np.resize(np.arange(self.on_cpu), self.systems)
        return {"q0": q0[repeated], "v0": v0[repeated]}


def runs(large: bool = True) -> Iterator[Run]:
    """All runs; small ones for a test of the script itself."""
    n, few = (1 << 20, 512) if large else (640, 8)
    four_bar, pendulum = mechanisms.four_bar().build(), mechanisms.double_pendulum().build()
    rk4: dict[str, Any] = {"method": "rk4", "step": 1e-3}
    turns = [cd.Event("turn", lambda s: s.v[0], action="record"), cd.Event("far", lambda s: s.q[0] - 30.0)]
    yield Run("four-bar, rk4", four_bar, n, few, 1.0 if large else 0.05, {**rk4, "samples": 11}, 3.0)
    single = {"precision": "float32"}
    yield Run("four-bar, rk4, 2 samples", four_bar, n, few, 1.0 if large else 0.05, {**rk4, "samples": 2}, 3.0)
    yield Run("four-bar, rk4, 2 samples, float32", four_bar, n, few, 1.0 if large else 0.05,
              {**rk4, **single, "samples": 2}, 3.0)  # fmt: skip
    yield Run("four-bar, rk4, samples inside steps", four_bar, n // 4, few, 0.5 if large else 0.05,
              {**rk4, "samples": 38}, 3.0)  # fmt: skip
    yield Run("four-bar, dormand_prince", four_bar, n // 4, few, 1.0, {"samples": 11}, 3.0)
    yield Run("four-bar, rk4 across singular positions", four_bar, n // 64, few, 1.0,
              {"method": "euler", "step": 2e-2, "samples": 11, "failures": "keep"}, 3.0)  # fmt: skip
    yield Run("double pendulum, dormand_prince", pendulum, n, few, 2.0, {"samples": 11})
    yield Run("double pendulum, events", pendulum, n // 16, few, 2.0, {"samples": 11, "events": turns})
    yield Run("double pendulum, rk4, events", pendulum, n // 16, few, 2.0,
              {**rk4, "step": 1e-2, "samples": 11, "events": turns})  # fmt: skip
    free = pendulum.free("gravity").at({"gravity": np.random.default_rng(1).normal(size=(n // 4, 3)) * (0, 0, 9.81)})
    yield Run("double pendulum, free gravity", free, n // 4, few, 1.0, {"samples": 11, "breaks": [0.3]})
    stewart = mechanisms.stewart_platform().build()
    for name, options in (("Stewart platform, rk4", {}), ("Stewart platform, rk4, float32", single)):
        yield Run(name, stewart, n // 16, few // 8, 0.1 if large else 0.01, {**rk4, **options, "samples": 6}, 0.02)
    robots = os.environ.get("CARDAN_ROBOTS")
    if robots:
        panda = cd.load(str(Path(robots) / "panda_description/urdf/panda.urdf"), mimic=False, damping=False)
        for name, options in (("Panda, rk4", {}), ("Panda, rk4, float32", single)):
            yield Run(name, panda, n // 4, few, 0.2 if large else 0.02, {**rk4, **options, "samples": 6}, 0.5)


def differences(card: cd.Trajectory, cpu: cd.Trajectory) -> list[str]:
    """What differs in the systems that both have."""
    few = len(cpu.q)
    count = cpu.q.shape[1]
    found = []
    for name in ("q", "v"):
        a, b = getattr(card, name)[:few, :count], getattr(cpu, name)
        if not np.array_equal(a, b, equal_nan=True):
            found.append(f"{name} by {np.nanmax(np.abs(a - b)):.1e}")
    if card.outcome[:few].tolist() != cpu.outcome.tolist():
        found.append("outcomes")
    events = [[(e.name, e.system, e.time, *e.q, *e.v) for e in run.events if e.system[0] < few] for run in (card, cpu)]
    return found + ["events"] * (events[0] != events[1])


class Clock:
    """The time of the launches that take steps."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.functions: list[Any] = []
        launch, prepare = driver.Function.launch, card_run._CardRun.__init__

        def timed(function: Any, *given: Any, **more: Any) -> None:
            if not any(function is known for known in self.functions):
                return launch(function, *given, **more)
            function.card.synchronize()
            began = perf_counter()
            launch(function, *given, **more)
            function.card.synchronize()
            self.seconds += perf_counter() - began
            return None

        def prepared(run: Any, *given: Any, **more: Any) -> None:
            prepare(run, *given, **more)
            self.functions.append(run.function)

        driver.Function.launch, card_run._CardRun.__init__ = timed, prepared  # type: ignore[method-assign]


def main(large: bool = True) -> int:
    """Print the table; how many runs differ."""
    warnings.simplefilter("ignore")
    clock = Clock()
    print(
        f"{'run':42} {'systems':>9} {'steps':>10} {'card':>8} {'first':>8} {'steps/s':>9} {'kernel':>9} {'steps/s':>9} "
        f"{'CPU':>9} {'bits':>6}"
    )
    wrong = 0
    for run in runs(large):
        given = run.starts()
        times = []
        for _ in range(2):
            began, clock.seconds = perf_counter(), 0.0
            on_card = cd.simulate(run.model, run.duration, **given, device="gpu", **run.options)
            times.append(perf_counter() - began)
        some = {name: x[: run.on_cpu] for name, x in given.items()}
        model = run.model
        if model.values is not None:
            model = model.unbound.at(dict(gravity=model.values[: run.on_cpu]))
        cd.simulate(model, run.duration, **some, **run.options)
        began = perf_counter()
        on_cpu = cd.simulate(model, run.duration, **some, **run.options)
        cpu_time = perf_counter() - began
        found = differences(on_card, on_cpu)
        wrong += bool(found)
        steps, cpu_steps = on_card.statistics["steps"], on_cpu.statistics["steps"]
        events = f", {len(on_card.events)} events" if on_card.events else ""
        print(
            f"{run.name:42} {run.systems:9} {steps:10.3g} {times[1]:7.2f}s {times[0]:7.2f}s {steps / times[1]:9.2e} "
            f"{1e3 * clock.seconds:7.1f}ms {steps / clock.seconds:9.2e} {cpu_steps / cpu_time:9.2e} "
            f"{'same' if not found else ', '.join(found):>6}{events}",
            flush=True,
        )
    return wrong


if __name__ == "__main__":
    sys.exit(main("--small" not in sys.argv))
