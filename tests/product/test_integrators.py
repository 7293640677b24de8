"""The registry of integrators: names, options, removed arguments of `cd.simulate`, integrators of the user's own."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation.formulation import Formulation
from cardan.integrate.integrators import INTEGRATORS, OWN, Request, find_integrator, option_names, with_options
from cardan.integrate.stepper import Arrival, Outcome, Stepper

SRC = Path(cd.__file__).parent
STEP = {"rk4": 1e-3, "euler": 1e-3, "moreau": 1e-3, "alpha": 1e-3}


@pytest.fixture(scope="module")
def model() -> cd.Model:
    return mechanisms.pendulum().build()


@pytest.fixture(scope="module")
def four_bar() -> cd.Model:
    return mechanisms.four_bar().build()


def test_every_integrator_is_found_by_its_name_and_is_public() -> None:
    assert set(OWN) == {"dormand_prince", "rk4", "euler", "moreau", "gear", "alpha", "bdf", "adams"}
    for name in OWN:
        integrator = find_integrator(name)
        assert integrator.name == name and integrator.summary
        assert getattr(cd, type(integrator).__name__)() == integrator


@pytest.mark.parametrize("name", OWN)
def test_a_name_and_an_object_mean_the_same_run(name: str, model: cd.Model) -> None:
    by_name = cd.simulate(model, 0.1, [1.0], method=name, step=STEP.get(name), samples=3)
    by_object = cd.simulate(model, 0.1, [1.0], method=type(INTEGRATORS[name])(), step=STEP.get(name), samples=3)
    assert np.array_equal(by_name.q, by_object.q)
    assert by_name.method == by_object.method == name
    assert by_name.settings == by_object.settings


def test_no_other_file_compares_the_name_of_an_integrator() -> None:
    names = "|".join(OWN)
    compared = re.compile(rf"""(==|!=|\bin\b) *\(?["']({names})["']|["']({names})["'] *(==|!=|in\b)""")
    found = [
        f"{path}:{k}"
        for path in SRC.rglob("*.py")
        if path.relative_to(SRC).parts[0] != "io"  # MJCF has an attribute "gear"
        for k, line in enumerate(path.read_text().splitlines(), 1)
        if compared.search(line)
    ]
    assert not found, found


def test_the_run_records_the_options(model: cd.Model, tmp_path: Path) -> None:
    run = cd.simulate(model, 0.1, [1.0], method=cd.Gear(form="index1", max_order=3), samples=3)
    assert run.method == "gear"
    assert run.settings["form"] == "index1" and run.settings["max_order"] == 3
    run.save(tmp_path / "run.nc")
    assert cd.load_run(tmp_path / "run.nc").settings == run.settings
    assert "baumgarte" not in cd.simulate(model, 0.1, [1.0], samples=3).settings
    own = cd.RungeKutta("midpoint", 2, [[0, 0], [0.5, 0]], [0, 1])
    settings = cd.simulate(model, 0.1, [1.0], method=own, step=0.01, samples=3).settings
    assert settings["order"] == 2 and settings["A"] == [[0, 0], [0.5, 0]] and settings["b"] == [0, 1]


def test_options_are_told_apart_in_the_cache(four_bar: cd.Model) -> None:
    """Kernels are kept with the model and on disk; another option is another kernel."""
    q, v = cd.assemble(four_bar, v=np.ones(four_bar.nv))

    def end(method: cd.Integrator, step: float | None = None) -> np.ndarray:
        return np.asarray(cd.simulate(four_bar, 0.2, q, v, method=method, step=step, samples=2).q[-1])

    for first, second, step in (
        (cd.RK4(), cd.RK4(baumgarte=20.0), 5e-3),
        (cd.RK4(baumgarte=20.0), cd.RK4(baumgarte=5.0), 5e-3),
        (cd.Alpha(damping=0.9), cd.Alpha(damping=0.1), 5e-3),
        (cd.Gear(), cd.Gear(form="index1"), None),
        (cd.Gear(), cd.Gear(max_order=1), None),
        (cd.SemiImplicitEuler(), cd.RungeKutta("euler", 1, [[0]], [1]), 5e-3),
    ):
        a, b = end(first, step), end(second, step)
        assert not np.array_equal(a, b), (first, second)
        assert np.allclose(a, b, atol=0.05)
        assert np.array_equal(a, end(first, step))


BAD_OPTIONS = [
    (lambda: cd.RK4(baumgarte=-1.0), "RK4: baumgarte must be a finite number of 1/s, 0 or more, got -1.0"),
    (lambda: cd.DormandPrince(baumgarte="x"), "DormandPrince: baumgarte must be a finite number of 1/s"),
    (lambda: cd.Alpha(damping="much"), "Alpha: damping must be a finite number from 0 to 1, got 'much'"),
    (lambda: cd.Alpha(damping=1.1), "Alpha: damping must be a finite number from 0 to 1, got 1.1"),
    (lambda: cd.Gear(form="index3"), "Gear: form must be one of 'stabilised', 'index1', got 'index3'"),
    (lambda: cd.Gear(max_order=6), "Gear: max_order must be a finite number from 1 to 5, got 6"),
    (lambda: cd.BDF(max_order=0), "BDF: max_order must be a whole number, 1 or more, got 0"),
    (lambda: cd.Adams(max_order=13), "Adams: max_order must be a finite number from 1 to 12, got 13"),
    (lambda: cd.RungeKutta("x", 1, [[0]], "b"), "method 'x': b must be numbers"),
    (lambda: cd.RungeKutta("x", 1, [[np.nan]], [1]), "method 'x': A[0, 0] is nan; every entry must be a finite number"),
    (lambda: cd.RungeKutta("x", 1.5, [[0]], [1]), "method 'x': order must be a whole number, 1 or more, got 1.5"),
    (lambda: cd.RungeKutta("", 1, [[0]], [1]), "method: a name must be a non-empty string"),
    (lambda: with_options(cd.Gear(), {"damping": 0.5}), "method 'gear' has no option 'damping'; methods that have it"),
    (lambda: with_options(cd.RK4(), {"colour": "red"}), "method 'rk4' has no option 'colour'"),
]


@pytest.mark.parametrize(("make", "words"), BAD_OPTIONS)
def test_bad_options_are_refused_when_they_are_given(make: Any, words: str) -> None:
    with pytest.raises(cd.CardanError) as caught:
        make()
    assert words in str(caught.value)


def test_options_are_fixed_and_can_be_replaced() -> None:
    assert option_names(cd.Gear()) == ("form", "max_order", "impact")
    assert with_options(cd.Gear(), {"form": "index1"}) == cd.Gear(form="index1")
    assert replace(cd.Alpha(), damping=0.5).options == {"damping": 0.5}
    with pytest.raises(FrozenInstanceError):
        cd.Alpha().damping = 0.5  # type: ignore[misc]


REMOVED = [
    ({"damping": 0.8}, "simulate: damping is now an option of the method: method=cd.Alpha(damping=0.8)"),
    ({"method": "gear", "form": "index1"},
     "simulate: form is now an option of the method: method=cd.Gear(form='index1')"),
    ({"method": "rk4", "step": 1e-3, "baumgarte": 20.0},
     "simulate: baumgarte is now an option of the method: method=cd.RK4(baumgarte=20.0)"),
    ({"baumgarte": 20.0},
     "simulate: baumgarte is now an option of the method: method=cd.DormandPrince(baumgarte=20.0)"),
    ({"longest_step": 0.1}, "simulate: longest_step is now called max_step"),
    ({"most_steps": 10}, "simulate: most_steps is now called max_steps"),
    ({"rtoll": 1e-3}, "simulate: there is no argument 'rtoll'; did you mean 'rtol'?"),
    ({"max_stepss": 3}, "simulate: there is no argument 'max_stepss'; did you mean 'max_steps'?"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "sentence"), REMOVED)
def test_a_removed_argument_says_what_to_give_instead(
    arguments: dict[str, Any], sentence: str, model: cd.Model
) -> None:
    with pytest.raises(cd.InputError) as caught:
        cd.simulate(model, 0.1, **arguments)
    assert str(caught.value) == sentence


def test_a_removed_name_says_what_it_is_called_now() -> None:
    with pytest.raises(AttributeError, match=r"^cd\.Moment is now called cd\.Instant$"):
        _ = cd.Moment  # type: ignore[attr-defined]


def test_what_is_not_an_integrator_is_refused(model: cd.Model) -> None:
    with pytest.raises(cd.UnknownNameError, match="method 'geer' is not an integrator; did you mean 'gear'"):
        cd.simulate(model, 0.1, method="geer")
    with pytest.raises(cd.UnknownNameError, match="method 3 is not an integrator"):
        cd.simulate(model, 0.1, method=3)  # type: ignore[arg-type]
    with pytest.raises(cd.InputError, match=r"method Gear is a class; give an object of it: Gear\(\)"):
        cd.simulate(model, 0.1, method=cd.Gear)  # type: ignore[arg-type]
    with pytest.raises(cd.InputError, match="add_method: give an integrator"):
        cd.add_method("gear")  # type: ignore[arg-type]
    with pytest.raises(cd.InputError, match="method 'gear' is Cardan's own"):
        cd.add_method(cd.Gear(form="index1"))


class HeunStepper:
    """Heun's method in Python."""

    def __init__(self, model: cd.Model, step: float, tau: np.ndarray, factor: float) -> None:
        self.model, self.step, self.tau, self.factor = model, step, tau, factor
        self.steps = 0

    def begin(self, t: float, q: np.ndarray, v: np.ndarray) -> None:
        self.t, self.q, self.v = t, q.copy(), v.copy()

    def advance(self, t: float) -> Arrival:
        n = max(round((t - self.t) / self.step), 1)
        h = (t - self.t) / n
        for _ in range(n):
            a = self.factor * cd.forward_dynamics(self.model, self.q, self.v, self.tau)
            q, v = self.q + h * self.v, self.v + h * a
            b = self.factor * cd.forward_dynamics(self.model, q, v, self.tau)
            self.q, self.v = self.q + h / 2 * (self.v + v), self.v + h / 2 * (a + b)
        self.t, self.steps = t, self.steps + n
        each = np.ones(len(self.q), dtype=int)
        return Arrival(t * each, self.q, self.v, Outcome.ARRIVED * each, -1 * each, self.steps * each)

    def rest(self, systems: np.ndarray) -> None:
        """Nothing stops early."""

    def project(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return q, v, np.zeros(t.shape, dtype=bool)


@dataclass(frozen=True)
class Heun(cd.Integrator):
    """An integrator of the user's own, with an option."""

    name = "heun"
    summary = "explicit, order 2, fixed steps"
    chooses_steps = False
    one_at_a_time = True
    factor: float = 1.0

    def stepper(self, model: cd.Model, formulation: Formulation, request: Request, tau: np.ndarray) -> Stepper:
        assert formulation.name == "spatial" and request.step is not None and len(tau) == 1
        return HeunStepper(model, request.step, tau, self.factor)


def test_an_integrator_of_the_users_own(model: cd.Model) -> None:
    q0 = np.array([[0.3], [1.0], [2.0]])
    same = cd.RungeKutta("heun of a table", 2, [[0, 0], [1, 0]], [0.5, 0.5])
    mine, table = (cd.simulate(model, 0.5, q0, method=m, step=0.01, samples=6) for m in (Heun(), same))
    np.testing.assert_allclose(mine.q, table.q, atol=1e-12)
    assert mine.method == "heun" and mine.settings["factor"] == 1.0
    other = cd.simulate(model, 0.5, q0, method=Heun(factor=0.5), step=0.01, samples=6)
    assert np.abs(other.q - mine.q).max() > 0.01
    with pytest.raises(cd.InputError, match="method 'heun' takes steps of fixed length"):
        cd.simulate(model, 0.5, q0, method=Heun())


def test_it_can_be_registered_with_options_of_its_own(model: cd.Model) -> None:
    with pytest.raises(cd.UnknownNameError):
        cd.simulate(model, 0.1, method="heun", step=0.01)
    cd.add_method(Heun(factor=0.5))
    try:
        run = cd.simulate(model, 0.1, [1.0], method="heun", step=0.01, samples=2)
        assert run.settings["factor"] == 0.5
        with pytest.raises(cd.InputError, match=r"damping is now an option of the method: method=cd\.Alpha\("):
            cd.simulate(model, 0.1, method="heun", step=0.01, damping=0.5)
        with pytest.raises(cd.InputError, match="there is no argument 'factor'"):
            cd.simulate(model, 0.1, method="heun", step=0.01, factor=0.5)
    finally:
        del INTEGRATORS["heun"]


def test_an_integrator_without_a_stepper_or_a_name_is_refused(model: cd.Model) -> None:
    @dataclass(frozen=True)
    class Nothing(cd.Integrator):
        name = "nothing"

    class Nameless(cd.Integrator):
        pass

    with pytest.raises(NotImplementedError, match="Nothing has no stepper"):
        cd.simulate(model, 0.1, method=Nothing())
    with pytest.raises(cd.CardanError, match="method: a name must be a non-empty string, got None"):
        cd.simulate(model, 0.1, method=Nameless())
