"""Bad input of stops, locks, events and variables: one sentence with the element's name, and nothing in silence."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")


@pytest.fixture(autouse=True)
def _no_warnings_of_numpy() -> None:
    warnings.filterwarnings("error", message="invalid value|divide by zero")


def falling(start: float = 0.0) -> cd.Mechanism:
    """A ball of 1 kg on an upright slide."""
    m = cd.Mechanism("m")
    m.body("ball", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.joint("z", cd.Prismatic(axis=(0, 0, 1)), m.ground, "ball", start=start)
    return m


BUILT: dict[str, tuple[Callable[[cd.Mechanism], object], str]] = {
    "stiffness": (
        lambda m: m.stop("s", "z", lower=0.0, stiffness=-3.0),
        r"stop 's': stiffness must be above 0, got -3; it is that of a compliant stop",
    ),
    "gap of three": (lambda m: m.stop("s", ["ball"], lambda t, P, V: P[0].position), r"'s': its gap is more than one"),
    "half a lock": (lambda m: m.lock("l", "z", closed=0.5), r"lock 'l': closed must be 0 or 1, got 0\.5"),
    "nothing left": (
        lambda m: m.roll("r", "ball", m.ground, radius=0.1, holds="normal", at1=(0, 0, 0.1)),
        r"model 'm' is locked: .* \(held by sphere on plane 'r', normal\)",
    ),
}


@pytest.mark.parametrize("case", BUILT)
def test_what_no_mechanism_is_built_of(case: str) -> None:
    m, (add, message) = falling(), BUILT[case]
    with pytest.raises(cd.ModelError, match=message):
        add(m)
        cd.simulate(m.build(), 1.0)


def test_values_of_parameters() -> None:
    m = falling(1.0)
    m.stop("s", "z", lower=0.0)
    m.lock("l", "z")
    model = m.build().free("s.restitution", "l.closed")
    with pytest.raises(cd.InputError, match=r"'s.restitution' must be from 0 to 1, got 1\.2$"):
        model.at({"s.restitution": 1.2})
    with pytest.raises(cd.InputError, match=r"'l.closed' must be 0 or 1, got 0\.5$"):
        model.at({"l.closed": 0.5})


def test_a_gap_without_a_value() -> None:
    m = falling()
    m.stop("s", ["ball"], lambda t, P, V: ca.sqrt(P[0].position[2] - 1.0))
    with pytest.raises(cd.InputError, match=r"'s: gap' has no finite value at this state"):
        cd.simulate(m.build(), 1.0)


@pytest.mark.parametrize("method", ["dormand_prince", "gear"])
def test_an_event_without_a_value_warns(method: str) -> None:
    """A step may lead past the place where it is zero to one where it has no value."""
    root = cd.Event("root", lambda s: ca.sqrt(s.coordinate("z") + 0.1) - 0.05, action="record")
    with pytest.warns(RuntimeWarning, match=r"event 'root' has no finite value at t = 0\.1\d* s, and cannot be met"):
        cd.simulate(falling().build(), 0.3, samples=61, method=method, events=[root])


def test_a_change_without_a_value() -> None:
    kick = cd.Event("kick", lambda s: s.t - 0.1, then=lambda s: cd.Change(rates={"z": ca.sqrt(s.coordinate("z"))}))
    with pytest.raises(cd.InputError, match=r"event 'kick': then: it gives rates that are not finite numbers"):
        cd.simulate(falling().build(), 0.3, events=[kick])


def test_a_variable_that_grows_without_bound_ends_the_run() -> None:
    m = falling()
    m.variable("u", 1.0, rate=lambda s: s["u"] ** 2)  # infinite at 1 s
    with pytest.raises(cd.SimulationError, match=r"variable 'u' grows beyond 1e\+100") as found:
        cd.simulate(m.build(), 2.0, samples=21)
    run = found.value.partial
    assert 0.8 < run.time[-1] <= 1.0 and np.allclose(run["u"][:9], 1 / (1 - run.time[:9]))


def test_an_impact_at_the_start_is_an_event() -> None:
    """A ball that is thrown on the floor where it lies, and a lock that is closed while its joint moves."""
    m = falling()
    m.stop("floor", "z", lower=0.0, restitution=0.5)
    run = cd.simulate(m.build(), 0.05, v0=[-2.0], samples=3)
    (hit,) = run.events
    assert hit.v_after is not None
    assert (hit.name, hit.time, hit.v[0], hit.v_after[0]) == ("floor: lower", 0.0, -2.0, 1.0)
    assert run.statistics["event_energy"] == pytest.approx(-1.5) and run.statistics["energy_error"] < 1e-12
    m = falling()
    m.lock("pawl", "z", closed=True)
    run = cd.simulate(m.build(), 0.05, v0=[[-2.0], [0.0]], samples=3)
    assert [(event.name, event.system) for event in run.events] == [("pawl: held", (0,))]
    assert run.statistics["event_energy"] == pytest.approx(-2.0)


def test_what_one_graph_cannot_say() -> None:
    """Forces of stops and of friction that sticks follow from what moves; what would leave them out says so."""
    m = falling()
    m.stop("floor", "z", lower=0.0)
    m.friction("guide", "z", coulomb=2.0, stick=True)
    model = m.build()
    eq = cd.equations(model)
    for ask, owner in (
        (lambda: cd.javascript(model, "forward_dynamics"), "javascript 'forward_dynamics'"),
        (lambda: cd.compile(model, "inverse_dynamics"), "compile 'inverse_dynamics'"),
        (lambda: eq.graph("forward_dynamics"), r"equations: graph\('forward_dynamics'\)"),
        (lambda: cd.regressor(model, [1.0], [0.1], [0.0]), "regressor"),
        (lambda: cd.base_parameters(model), "base_parameters"),
        (lambda: cd.identify(model, [[1.0]], [[0.1]], [[0.0]], [[9.8]]), "identify"),
    ):
        with pytest.raises(cd.ModelError, match=rf"^{owner}: model 'm' has stops, .* 'floor', 'guide', whose forces"):
            ask()
    with pytest.warns(RuntimeWarning, match=r"equations of 'm': the forces of .* 'floor', 'guide', are not in them"):
        eq.sympy()
    assert cd.regressor(model, [1.0], of="energy").matrix.shape[-1] and eq.graph("mass_matrix")
