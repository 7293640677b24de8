"""`cd.simulate(..., device="gpu")` on a card that is played by the host: the same results as on the CPU, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.fake_card import FakeDriver, fake_cards

import cardan as cd
from cardan import mechanisms
from cardan.integrate.explicit import card_run
from cardan.integrate.explicit.stepper import ExplicitStepper
from cardan.machines.cuda.arrays import to_device
from cardan.machines.ufunc.kernel import Kernel
from cardan.results import simulate as module

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

EVENTS = [
    cd.Event("level", lambda s: s.q[0] - 0.1, action="record"),
    cd.Event("fast", lambda s: s.v[1] - 0.5, action="record", direction=1),
    cd.Event("far", lambda s: s.q[1] - 8.0),
]


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeDriver]:
    with fake_cards() as made:
        yield made


def starts(model: cd.Model, systems: int, speed: float) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    v = speed * rng.normal(size=(systems, model.nv))
    q0, v0 = cd.assemble(model, np.tile(model.start(), (systems, 1)), v)
    return {"q0": q0, "v0": v0, "tau": 0.1 * rng.normal(size=(systems, model.nv))}


def both(model: cd.Model, duration: float, **given: Any) -> tuple[cd.Trajectory, cd.Trajectory]:
    """The runs on the CPU and on the card, after a check that they have the same bits."""
    cpu, gpu = (cd.simulate(model, duration, failures="keep", device=device, **given) for device in ("cpu", "gpu"))
    for name in ("time", "q", "v", "outcome"):
        np.testing.assert_array_equal(getattr(gpu, name), getattr(cpu, name), err_msg=name)
    assert gpu.statistics == cpu.statistics
    told = [[(e.name, e.system, e.time, *e.q, *e.v) for e in run.events] for run in (cpu, gpu)]
    assert told[0] == told[1]
    return cpu, gpu


@pytest.mark.parametrize("at_once", [1, 1000])
def test_fixed_steps_with_events_and_breaks(fake: FakeDriver, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples lie inside steps; events are recorded or stop systems; few systems are attended to on the CPU."""
    monkeypatch.setattr(card_run, "MANY", at_once)
    model = four_bar()
    given = {**starts(model, 9, 3.0), "method": "rk4", "step": 0.0173, "events": EVENTS, "breaks": [0.31, 1.0]}
    cpu, _ = both(model, 2.0, samples=23, **given)
    assert len(cpu.events) > 9 and {*cpu.outcome.tolist()} == {"", "stopped at an event"}
    both(model, 2.0, samples=[0.31, 0.31 + 1e-9, 0.4, 1.0, 1.5], max_steps=90, **given)


def test_events_and_inputs_that_change_runs(fake: FakeDriver) -> None:
    """Steps are taken on the card, changes applied on the CPU; a variable is integrated beside the motion."""
    m = cd.Mechanism("ball")
    m.body("ball", mass=1.0)
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), m.ground, "ball")
    m.variable("held")
    m.variable("area", rate=lambda s: s["held"] * s.coordinate("z"))
    floor = cd.Event("floor", lambda s: s.q[0], direction=-1, then=lambda s: cd.Change({"z": -0.7 * s.rate("z")}))
    given = {"events": [floor], "inputs": {"held": ([0.0, 0.5], [[1.0, 2.0]] * 5)}}
    before = len(fake.launches)
    for method, step in (("rk4", 0.01), ("dormand_prince", None)):
        q0 = np.linspace(0.5, 1.0, 5)[:, None]
        cpu, gpu = both(m.build(), 1.2, q0=q0, samples=7, method=method, step=step, **given)
        np.testing.assert_array_equal(gpu.parameters, cpu.parameters)
        assert len(cpu.events) > 5
    assert len(fake.launches) > before


@pytest.mark.parametrize(("method", "step"), [("moreau", 0.01), ("rk4", 0.01), ("dormand_prince", None)])
def test_stops_friction_controllers_and_tables(fake: FakeDriver, method: str, step: float | None) -> None:
    m = cd.Mechanism("slide", gravity=(0, 0, -9.81))
    m.body("mass", mass=2.0)
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), m.ground, "mass")
    m.stop("end", "x", upper=0.8, restitution=0.5)
    m.friction("guide", "x", coulomb=0.3, coefficient=0.05, stick=True)
    pull = cd.table(np.linspace(0, 1, 9), np.linspace(0, 1, 9) ** 2, ends="hold")
    m.drive("pull", "x", lambda t, q, v: 12 * pull(q))
    m.controller("servo", "x", cd.PID(kp=8.0, ki=3.0, kd=2.0, limits=4.0))
    m.controller("brake", "x", cd.StateFeedback([[0.0, 0.5]]), every=0.05)
    model, before = m.build(), len(fake.launches)
    cpu, gpu = both(
        model, 1.0, q0=np.linspace(-0.5, 0.7, 5)[:, None], v0=np.ones((5, 1)), samples=9, method=method, step=step
    )
    for name in ("servo.integral", "brake.effort", "end.force", "guide.force"):
        np.testing.assert_array_equal(gpu[name], cpu[name], err_msg=name)
    assert np.abs(cpu["end.force"]).max() > 0 or cpu.events
    assert len(fake.launches) > before


def test_residuals_of_laws_are_those_of_the_cpu(fake: FakeDriver) -> None:
    """All steps on the card: no input of the run changes there."""
    m = cd.mechanisms.four_bar()
    m.friction("pin", "B", coulomb=0.3, coefficient=0.2, radius=0.05, stick=True)
    m.stop("end", "A", lower=-2.0, upper=2.5, restitution=0.4)
    model = m.build()
    cpu, _ = both(model, 1.0, **starts(model, 5, 3.0), samples=7, method="moreau", step=0.005)
    assert cpu.statistics["law_residual"] > 0


def test_chosen_steps_of_systems_with_their_own_parameters(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of few samples and parts of few systems; launches of few steps."""
    monkeypatch.setattr(card_run, "systems_at_once", lambda *_: 4)
    monkeypatch.setattr(card_run, "MOST_TIMES", 7)
    monkeypatch.setattr(card_run, "LONGEST_LAUNCH", 0.0)
    model = pendulum().free("gravity")
    model = model.at({"gravity": np.outer(np.linspace(1, 12, 9), (0.1, 0, -1))})
    before = len(fake.launches)
    cpu, gpu = both(model, 2.0, **starts(model, 9, 2.0), samples=23, events=EVENTS, breaks=[0.31])
    assert len(cpu.events) > 9
    assert len(fake.launches) - before > 100
    assert gpu.settings["batch"] == cpu.settings["batch"]
    cpu, _ = both(model, 2.0, **starts(model, 9, 2.0), samples=23, events=EVENTS, max_steps=40)
    assert (cpu.outcome == "too many steps").any()


def test_signs_of_zero_of_systems_stay(fake: FakeDriver) -> None:
    """Rows that are equal but for the sign of a zero are not one row for all."""
    zeros = np.array([[0.0, 0.0], [-0.0, 0.0], [0.0, -0.0]])
    cpu, gpu = both(pendulum(), 0.01, q0=zeros, v0=-zeros, samples=3, method="rk4", step=0.01)
    for name in ("q", "v"):
        np.testing.assert_array_equal(np.signbit(getattr(gpu, name)), np.signbit(getattr(cpu, name)))


def test_singular_positions(fake: FakeDriver) -> None:
    """Careful steps are the stepper's own."""
    model = four_bar()
    cpu, _ = both(model, 1.0, **starts(model, 9, 3.0), method="euler", step=0.0173, samples=23)
    assert (cpu.outcome == "a singular position").any()


def test_steps_in_float32_are_off_by_little_more_than_their_accelerations(fake: FakeDriver) -> None:
    """Time, positions and velocities are pairs; as single numbers they were off by 1e-5 rad and more."""
    given = {**starts(pendulum(), 20, 1.0), "method": "rk4", "step": 1e-3, "samples": 11}
    cpu, _ = both(pendulum(), 1.0, **given, precision="float32")
    exact = cd.simulate(pendulum(), 1.0, **given)
    assert 1e-10 < np.abs(cpu.q - exact.q).max() < 1e-6
    assert cpu.settings["precision"] == "float32"


def test_loops_in_float32_stay_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps keep them closed to rounding in float32, and the samples are projected in float64."""
    model = four_bar()
    given = {**starts(model, 4, 2.0), "method": "rk4", "step": 1e-2, "precision": "float32", "samples": 5}
    gaps = []
    for projects in (True, False):
        if not projects:
            monkeypatch.setattr(ExplicitStepper, "project", lambda _, t, q, v: (q, v, np.zeros(t.shape, dtype=bool)))
        run = cd.simulate(model, 10.0, **given)
        gaps.append(np.abs(cd.constraint_residual(model, run.q)).max())
    assert gaps[0] < 1e-12 < gaps[1] < 1e-6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"method": "dormand_prince"},
            r"'dormand_prince' computes in float64 only; leave .* take 'rk4', 'euler'.* with a",
        ),
        ({"precision": "float16"}, "precision must be 'float64' or 'float32', got 'float16'"),
        ({"sensitivities": "q0"}, "sensitivities are of steps in float64"),
    ],
)
def test_what_float32_does_not_do(options: dict[str, Any], said: str) -> None:
    with pytest.raises(cd.InputError, match=said):
        cd.simulate(pendulum(), 0.3, **{"method": "rk4", "step": 1e-2, "precision": "float32", **options})


def test_alpha_has_all_its_steps_on_the_card(fake: FakeDriver) -> None:
    before = len(fake.launches)
    both(pendulum(), 0.3, **starts(pendulum(), 3, 2.0), method="alpha", step=0.01, samples=4)
    assert len(fake.launches) > before


def test_alpha_keeps_what_it_has_if_the_card_fails(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    compute, calls = Kernel._at_place, list[str]()

    def gone(kernel: Any, *given: Any) -> Any:
        calls.append(kernel.program.name)
        if calls.count("march") > 4:
            raise cd.DeviceError("gpu:0 is gone")
        return compute(kernel, *given)

    monkeypatch.setattr(Kernel, "_at_place", gone)
    given = {**starts(pendulum(), 3, 2.0), "method": "alpha", "step": 0.01, "samples": 9}
    with pytest.raises(cd.SimulationError, match="gpu:0 is gone; what was computed until then") as caught:
        cd.simulate(pendulum(), 0.3, **given, device="gpu")
    assert 1 < caught.value.partial.q.shape[1] < 9


def test_states_on_a_card_are_run_there(fake: FakeDriver) -> None:
    given = starts(pendulum(), 3, 2.0)
    cpu = cd.simulate(pendulum(), 0.3, **given, samples=4)
    before = len(fake.launches)
    gpu = cd.simulate(pendulum(), 0.3, **{name: to_device(x, 1) for name, x in given.items()}, samples=4)
    np.testing.assert_array_equal(gpu.q, cpu.q)
    assert len(fake.launches) > before
    with pytest.raises(cd.InputError, match="different GPUs"):
        cd.simulate(pendulum(), 0.3, to_device(given["q0"], 1), to_device(given["v0"], 0))


def test_a_card_that_does_not_answer_leaves_the_starts(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any) -> None:
        raise cd.DeviceError("gpu:0 is gone")

    monkeypatch.setattr(card_run._CardRun, "_launch", gone)
    monkeypatch.setattr(card_run._CardRun, "_fetch", gone)
    given = starts(pendulum(), 3, 2.0)
    with pytest.raises(cd.SimulationError, match="gpu:0 is gone; what was computed until then") as caught:
        cd.simulate(pendulum(), 0.3, **given, device="gpu")
    np.testing.assert_array_equal(caught.value.partial.q[:, 0], given["q0"])
    assert caught.value.partial.q.shape[1] == 1


@pytest.mark.parametrize("what", ["Ctrl-C", "card"])
def test_what_was_computed_before_an_interruption_is_kept(
    fake: FakeDriver, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows that were fetched, and the samples of the present one, are in `error.partial`."""
    monkeypatch.setattr(card_run, "LONGEST_LAUNCH", 0.0)
    monkeypatch.setattr(card_run, "MOST_TIMES", 8)
    given = {**starts(pendulum(), 5, 2.0), "samples": 23}
    cpu = cd.simulate(pendulum(), 2.0, **given)
    launch, count = card_run._CardRun._launch, 0

    def interrupted(run: Any) -> None:
        nonlocal count
        count += 1
        if count == 45:
            raise KeyboardInterrupt if what == "Ctrl-C" else cd.DeviceError("gpu:0 is gone")
        launch(run)

    monkeypatch.setattr(card_run._CardRun, "_launch", interrupted)
    kind, said = (cd.InterruptedRunError, "interrupted") if what == "Ctrl-C" else (cd.SimulationError, "gpu:0 is gone")
    with pytest.raises(kind, match=said) as caught:
        cd.simulate(pendulum(), 2.0, **given, device="gpu")
    partial = caught.value.partial
    assert 8 < partial.q.shape[1] < 23
    reached = np.isfinite(partial.q)
    np.testing.assert_array_equal(partial.q[reached], cpu.q[:, : partial.q.shape[1]][reached])
    assert (partial.outcome == "interrupted").all()


def test_memory_of_the_card_bounds_systems_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """More systems than fit are run in parts, and all memory is given back."""
    monkeypatch.setattr(module, "FEW_SAMPLES", 2)
    with fake_cards(memory=30_000) as fake:
        given = starts(pendulum(), 60, 2.0)
        gpu = cd.simulate(pendulum(), 0.3, **given, samples=40, device="gpu")
        assert fake.in_use() < 1000
    np.testing.assert_array_equal(gpu.q, cd.simulate(pendulum(), 0.3, **given, samples=40).q)


def test_too_little_memory_halves_the_parts(fake: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """If not even one system fits any more, what was computed before is kept."""
    made, taken = card_run._CardRun.__init__, list[int]()

    def scant(run: Any, stepper: Any, place: Any, kept: Any, *rest: Any) -> None:
        taken.append(len(kept.t))
        if len(kept.t) > 3 or len(taken) > limit:
            raise cd.DeviceMemoryError("gpu:0: 1 MiB too much")
        made(run, stepper, place, kept, *rest)

    monkeypatch.setattr(card_run._CardRun, "__init__", scant)
    given, limit = {**starts(pendulum(), 9, 2.0), "samples": 5}, 100
    cpu = cd.simulate(pendulum(), 0.3, **given)
    np.testing.assert_array_equal(cd.simulate(pendulum(), 0.3, **given, device="gpu").q, cpu.q)
    assert taken == [9, 5, 3, 3, 3]
    limit = 4
    taken.clear()
    with pytest.raises(cd.SimulationError, match="1 MiB too much; what was computed until then") as caught:
        cd.simulate(pendulum(), 0.3, **given, device="gpu")
    partial = caught.value.partial
    np.testing.assert_array_equal(partial.q[:6], cpu.q[:6])
    assert partial.outcome[6:].tolist() == ["not computed"] * 3


def test_methods_of_the_cpu_are_refused(fake: FakeDriver) -> None:
    said = r"simulate: method 'gear' computes on the CPU; leave out device='gpu:0', or take 'dormand_prince', 'rk4'"
    with pytest.raises(cd.InputError, match=said):
        cd.simulate(pendulum(), 0.3, method="gear", device="gpu")
    q0 = to_device(pendulum().start())
    with pytest.raises(cd.InputError, match=r"the states are on gpu:0, and method 'gear' .*; give device='cpu'"):
        cd.simulate(pendulum(), 0.3, q0, method="gear")
    assert cd.simulate(pendulum(), 0.1, q0, method="gear", device="cpu").method == "gear"


_MODELS: dict[str, cd.Model] = {}


def four_bar() -> cd.Model:
    return _MODELS.setdefault("four_bar", mechanisms.four_bar().build())


def pendulum() -> cd.Model:
    return _MODELS.setdefault("pendulum", mechanisms.double_pendulum().build())


@pytest.mark.parametrize("method", ["rk4", "alpha"])
def test_memory_that_ends_in_a_later_part_loses_no_part(
    fake: FakeDriver, method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    """What other systems have, in memory or in a file, stays; nothing of it is computed again."""
    monkeypatch.setattr(card_run, "systems_at_once", lambda *_: 2)
    model, q0 = pendulum(), np.random.default_rng(2).normal(size=(6, 2))
    integrate, parts = module.Job.integrate, list[int]()

    def fail_later(job: Any, states: Any, report: Any) -> Any:
        parts.append(len(states.q))
        if len(parts) > 1:
            monkeypatch.setattr(fake, "memory", fake.in_use(0))
        return integrate(job, states, report)

    expected = cd.simulate(model, 0.1, q0, samples=3, method=method, step=0.01)
    room = fake.memory
    for store in (None, tmp_path / "run.nc"):
        parts.clear()
        monkeypatch.setattr(fake, "memory", room)
        monkeypatch.setattr(module.Job, "integrate", fail_later)
        with pytest.raises(cd.SimulationError, match=r"do not fit in its memory, .* is in error\.partial") as caught:
            cd.simulate(model, 0.1, q0, samples=3, method=method, step=0.01, device="gpu", store=store)
        monkeypatch.setattr(module.Job, "integrate", integrate)
        found = caught.value.partial if store is None else cd.load_run(store)
        np.testing.assert_array_equal(found.q[:2], expected.q[:2])
        assert found.outcome.tolist()[:2] == ["", ""]
        assert {*found.outcome.tolist()[2:]} <= {"not computed", "interrupted"}  # alpha has the starts of two more
    assert parts == [2, 2, 1]  # of the second part one system is tried alone


def test_memory_that_ends_on_the_way_leaves_samples_of_implicit_steps(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loops of these are closed on the CPU."""
    model = four_bar()
    given = {**starts(model, 3, 1.0), "method": "alpha", "step": 0.01, "samples": [0.0, 0.1, 0.2, 0.3]}
    expected = cd.simulate(model, 0.3, **given)
    start, seen = FakeDriver.cuLaunchKernel, len(fake.launches)
    cd.simulate(model, 0.3, device="gpu", **given)
    whole, seen = len(fake.launches) - seen, len(fake.launches)
    assert whole > 3

    def fail_later(driver: FakeDriver, *arguments: Any) -> int:
        return 2 if len(driver.launches) - seen > whole // 2 else start(driver, *arguments)

    monkeypatch.setattr(FakeDriver, "cuLaunchKernel", fail_later)
    with pytest.raises(cd.SimulationError, match=r"is in error\.partial") as caught:
        cd.simulate(model, 0.3, device="gpu", **given)
    n = caught.value.partial.q.shape[1]
    assert 1 < n < 4
    np.testing.assert_array_equal(caught.value.partial.q, expected.q[:, :n])
