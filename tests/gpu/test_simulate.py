"""Runs on a card against those of the CPU: the same bits, in float64 and float32; and what a card adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.integrate.explicit import card_run

pytestmark = [pytest.mark.usefixtures("card"), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

EVENTS = [
    cd.Event("level", lambda s: s.q[0] - 0.1, action="record"),
    cd.Event("fast", lambda s: s.v[1] - 0.5, action="record", direction=1),
    cd.Event("far", lambda s: s.q[1] - 8.0),
]
FIXED = {"method": "rk4", "step": 0.0173}
CASES: dict[str, tuple[str, int, dict[str, Any]]] = {
    "chosen steps": ("double_pendulum", 2000, {"events": EVENTS, "breaks": [0.31]}),
    "fixed steps": ("four_bar", 2000, {**FIXED, "events": EVENTS, "breaks": [0.31, 1.0], "max_steps": 110}),
    "loops, chosen steps": ("four_bar", 500, {}),
    "singular positions": ("four_bar", 200, {"method": "euler", "step": 0.0173}),
    "float32": ("four_bar", 500, {**FIXED, "precision": "float32", "breaks": [0.31]}),
    "a large loop": ("stewart_platform", 50, {**FIXED, "step": 0.01}),
    "alpha": ("double_pendulum", 50, {"method": "alpha", "step": 0.02}),
    "a floating body": ("two_body", 100, {}),
}


def starts(model: cd.Model, systems: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    speed = 0.05 if model.name == "stewart_platform" else 3.0
    v = speed * rng.normal(size=(systems, model.nv))
    q0, v0 = cd.assemble(model, np.tile(model.start(), (min(systems, 100), 1)), v[:100])
    rows = np.resize(np.arange(len(q0)), systems)
    return {"q0": q0[rows], "v0": v0[rows], "tau": 0.1 * rng.normal(size=(systems, model.nv))}


@pytest.mark.parametrize("case", CASES)
def test_runs_have_the_bits_of_the_cpu(case: str) -> None:
    name, systems, options = CASES[case]
    model = getattr(mechanisms, name)().build()
    given = {**starts(model, systems), "samples": 23, "failures": "keep", **options}
    cpu, gpu = (cd.simulate(model, 1.5, device=device, **given) for device in ("cpu", "gpu"))
    for part in ("time", "q", "v", "outcome"):
        np.testing.assert_array_equal(getattr(gpu, part), getattr(cpu, part), err_msg=part)
    assert gpu.statistics == cpu.statistics
    told = [[(e.name, e.system, e.time, *e.q, *e.v) for e in run.events] for run in (cpu, gpu)]
    assert told[0] == told[1]
    assert bool(told[0]) == ("events" in options)


@pytest.mark.parametrize(("method", "step"), [("moreau", 0.002), ("rk4", 0.01), ("dormand_prince", None)])
def test_stops_and_friction_in_a_loop(method: str, step: float | None) -> None:
    m = mechanisms.four_bar()
    m.friction("pin", "B", coulomb=0.3, coefficient=0.2, radius=0.05, stick=True)
    m.stop("end", "A", lower=-2.0, upper=2.5, restitution=0.4)
    model = m.build()
    given = {**starts(model, 200), "samples": 23, "failures": "keep", "method": method, "step": step}
    cpu, gpu = (cd.simulate(model, 1.0, device=device, **given) for device in ("cpu", "gpu"))
    for name in ("time", "q", "v", "outcome"):
        np.testing.assert_array_equal(getattr(gpu, name), getattr(cpu, name), err_msg=name)
    assert gpu.statistics == cpu.statistics


def test_parameters_of_every_system() -> None:
    plain = mechanisms.double_pendulum().build()
    model = plain.free("gravity").at({"gravity": np.outer(np.linspace(1, 12, 300), (0.1, 0, -1))})
    given = {**starts(plain, 300), "samples": 11}
    cpu, gpu = (cd.simulate(model, 1.0, device=device, **given) for device in ("cpu", "gpu"))
    np.testing.assert_array_equal(gpu.q, cpu.q)


def test_windows_and_parts_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that do not fit the card's memory at once, and systems that do not."""
    model = mechanisms.double_pendulum().build()
    given = {**starts(model, 500), "samples": 40}
    whole = cd.simulate(model, 1.0, device="gpu", **given)
    monkeypatch.setattr(card_run, "MOST_TIMES", 7)
    monkeypatch.setattr(card_run, "systems_at_once", lambda *_: 123)
    parts = cd.simulate(model, 1.0, device="gpu", **given)
    np.testing.assert_array_equal(parts.q, whole.q)
    assert parts.statistics == whole.statistics


def test_states_of_torch_are_run_on_their_card(torch: Any) -> None:
    model = mechanisms.double_pendulum().build()
    given = starts(model, 100)
    there = {name: torch.as_tensor(x, device="cuda") for name, x in given.items()}
    gpu, cpu = cd.simulate(model, 0.5, **there, samples=5), cd.simulate(model, 0.5, **given, samples=5)
    np.testing.assert_array_equal(gpu.q, cpu.q)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_loops_stay_closed(precision: str) -> None:
    """Four-bars for 10 s; samples are projected in float64."""
    model = mechanisms.four_bar().build()
    run = cd.simulate(
        model, 10.0, **starts(model, 100), method="rk4", step=1e-3, samples=11, device="gpu", precision=precision
    )
    assert np.abs(cd.constraint_residual(model, run.q)).max() < 1e-12
