"""Wrong arguments of every kind, to every function that takes numbers: a sentence of Cardan, or the right answer."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cardan as cd
from cardan.mechanisms import double_pendulum, four_bar

pytestmark = pytest.mark.usefixtures("quick_code")
Z = np.array([0.3, 0.2])
Ask = Callable[[Any], Any]


@cache
def pendulum() -> cd.Model:
    return double_pendulum().build()


@cache
def loop() -> tuple[cd.Model, np.ndarray, np.ndarray]:
    model = four_bar().build()
    return model, *cd.assemble(model)


def of_q(name: str, *more: Any) -> Ask:
    return lambda x: getattr(cd, name)(pendulum(), x, *more)


ASKED: dict[str, Ask] = {
    "forward_dynamics": of_q("forward_dynamics", Z),
    "inverse_dynamics": of_q("inverse_dynamics", Z, Z),
    "mass_matrix": of_q("mass_matrix"),
    "body_poses": of_q("body_poses"),
    "center_of_mass": of_q("center_of_mass"),
    "kinetic_energy": of_q("kinetic_energy", Z),
    "reactions": of_q("reactions", Z),
    "power": of_q("power", Z),
    "assemble": of_q("assemble"),
    "ground": lambda x: cd.frame_pose(pendulum(), x, "ground"),
    "undetermined": of_q("undetermined_reactions"),
    "actuation": lambda x: cd.actuation(pendulum(), x, ["pivot"]).commanded,
    "simulate": lambda x: cd.simulate(pendulum(), 0.01, x, samples=2).q[..., -1, :],
    "drives": lambda x: cd.simulate(pendulum(), 0.01, Z, tau=x, samples=2).q[..., -1, :],
    "power of drives": lambda x: cd.power(pendulum(), Z, Z, x),
    "trajectory": lambda x: cd.Trajectory(pendulum(), [0.0], [x], [Z]).energy,
    "parameter": lambda x: cd.mass_matrix(pendulum().free("rod.com").at({"rod.com": [*x, 0.0]}), Z),
    "centre": lambda x: cd.Mechanism("m").body("b", mass=1, com=[*x, 0.0], inertia=(1, 1, 1)),
}
NOT_NUMBERS: dict[str, Any] = {
    "text": ["0.3", "0.2"], "complex": Z + 1j, "dates": np.array(["2020-01-01"] * 2, "M8[D]"), "none": [None, None],
    "masked": np.ma.masked_array(Z, mask=[True, False]), "ragged": [[0.3], [0.2, 0.1]], "short": [0.3], "record":
    np.zeros(2, [("a", float)]),
}  # fmt: skip
ITERATED = ("parameter", "centre", "trajectory")  # here the mask is lost, or the row is one of several


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_what_is_no_array_of_numbers_is_refused(asked: str, kind: str) -> None:
    if asked in ITERATED and kind == "masked":
        pytest.skip("given entry by entry")
    with pytest.raises(cd.CardanError) as caught:
        ASKED[asked](NOT_NUMBERS[kind])
    assert "\n" not in str(caught.value)


OTHER_ARRAYS: dict[str, Callable[[], Any]] = {
    "series, other order": lambda: pd.Series(Z, index=[1, 0]),
    "xarray": lambda: xr.DataArray(Z),
    "tuple": lambda: tuple(Z),
    "frozen": lambda: np.broadcast_to(Z, (1, 2))[0],
    "backwards": lambda: Z[::-1].copy()[::-1],
    "unmasked": lambda: np.ma.masked_array(Z),
}


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", OTHER_ARRAYS)
def test_an_array_by_another_name_gives_the_same(asked: str, kind: str) -> None:
    expected, found = ASKED[asked](Z), ASKED[asked](OTHER_ARRAYS[kind]())
    if isinstance(expected, str):
        assert found == expected
        return
    assert type(found) is type(expected)
    for a, b in zip(np.atleast_1d(expected), np.atleast_1d(found), strict=True):
        assert np.array_equal(a, b)


def test_series_are_not_aligned_by_their_index() -> None:
    v = np.array([1.0, -2.0])
    found = cd.forward_dynamics(pendulum(), pd.Series(Z, index=["a", "b"]), pd.Series(v, index=["b", "a"]))
    assert np.array_equal(found, cd.forward_dynamics(pendulum(), Z, v))


RUNS: list[tuple[dict[str, Any], str]] = [
    ({"duration": "1"}, "duration must be a positive number of seconds, got '1'"),
    ({"start": 1e20}, "a duration of 0.1 s is lost in the rounding of a start at 1e+20 s"),
    ({"samples": True}, "samples must be a number of samples or a list of increasing times, s, got True"),
    ({"samples": 10**12}, "samples must be at most 10000000"),
    ({"breaks": [float("nan")]}, "breaks[0] is nan; every entry must be a finite number"),
    ({"breaks": None}, "breaks must be a list, got None"),
    ({"rtol": float("inf")}, "rtol must be a positive number, got inf"),
    ({"atol": None}, "atol must be a positive number, got None"),
    ({"max_step": "a"}, "max_step must be a positive number of seconds, got 'a'"),
    ({"max_steps": float("nan")}, "max_steps must be a whole number, 1 or more, got nan"),
    ({"threads": 1.5}, "threads must be a whole number, 1 or more, got 1.5"),
    ({"method": "rk4", "step": 1e-30}, "a step of 1e-30 s is lost in the rounding of t = 0.1 s"),
    ({"method": "rk4", "step": [0.1]}, "step must be a positive number of seconds, got [0.1]"),
    (
        {"method": "rk4", "step": 1e-4, "max_steps": 10},
        "10 steps were not enough; allow more with max_steps, or take steps",
    ),
    ({"q0": np.zeros((0, 2))}, "the batch is empty, of shape (0,)"),
    ({"events": [lambda s: s.t]}, "events must be a list of cd.Event(name, when), got"),
    (
        {"events": [cd.Event("late", lambda s: s.t > 0.05)]},
        "event 'late': its expression is a condition, true or false",
    ),
    ({"events": [cd.Event("e", lambda s: s.coordinate("knee"))]}, "event 'e': joint 'knee' is not in model"),
    ({"events": [cd.Event("e", lambda s: s.t + ca.SX.sym("x"))]}, "event 'e': its expression has the symbol x"),
    ({"store": 5}, "path must be the name of a file, got 5"),
]


@pytest.mark.parametrize(("words", "sentence"), RUNS)
def test_requests_of_a_run_are_refused_in_a_sentence(words: dict[str, Any], sentence: str) -> None:
    given = {"duration": 0.1, "q0": Z, "samples": 3} | words
    with pytest.raises(cd.CardanError) as caught:
        cd.simulate(pendulum(), given.pop("duration"), **given)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("law", "what"),
    [
        (lambda t: ca.if_else(t > 0.3, 1.0, 0.0), r"value jumps from 0 to 1 at t = 0\.3 s"),
        (lambda t: ca.fabs(t - 0.3), r"rate jumps from -1 to 1 at t = 0\.3 s"),
        (lambda t: 10 * ca.sin(40 * t) + 0.05 * (t > 0.5123), r"value jumps from .* at t = 0\.5123 s"),
        (lambda t: ca.if_else(t < 0.3, 0, (t - 0.3) ** 2), None),
        (lambda t: ca.sin(2 * np.pi * ca.fmod(t, 0.3) / 0.3), None),
    ],
)
def test_a_motion_may_have_a_kink_in_its_rate_but_no_jump(law: Any, what: str | None) -> None:
    m = double_pendulum()
    m.motion("lift", "pivot", law)
    model = m.build()
    if what is None:
        cd.simulate(model, 0.4, samples=2, rtol=1e-4)
    else:
        with pytest.raises(cd.InputError, match=rf"motion 'lift': its {what}; that takes an infinite force"):
            cd.simulate(model, 1.0, samples=2)


def test_one_bad_row_of_a_batch_is_named_and_does_not_hide_behind_another() -> None:
    model, q, v = loop()
    with pytest.raises(cd.ModelError, match=r"cannot be assembled at index 1: joint 'C' stays open"):
        cd.assemble(model, np.array([q, 0 * q]))
    moving = cd.assemble(model, q, [1e9, 0.0, 0.0], hold=["A"])[1]
    with pytest.raises(cd.InputError, match=r"velocities at the start violate joint 'C' by .* in system 1"):
        cd.simulate(model, 0.1, np.array([q, q]), np.array([moving, [1e-3, 0.0, 0.0]]))
    a = cd.forward_dynamics(model, q, v)
    with pytest.raises(cd.InputError, match="cannot accelerate like that: a loop or coupling would break by"):
        cd.inverse_dynamics(model, q, v, np.array([1e9 * a, [1.0, 0.0, 0.0]]), driven=["A"])


def test_a_result_is_not_put_where_it_does_not_fit() -> None:
    words: dict[str, Any] = {"formulation": "relative"}
    for out in (np.zeros(2, int), np.zeros((2, 3)), [0.0, 0.0], np.broadcast_to(0.0, 2)):
        with pytest.raises(cd.InputError, match=r"^inverse_dynamics: out "):
            cd.inverse_dynamics(pendulum(), Z, Z, Z, out=out, **words)


def test_a_run_shares_no_memory_with_what_it_was_made_from() -> None:
    q = np.array([Z, Z])
    run = cd.Trajectory(pendulum(), [0.0, 1.0], q, 0 * q)
    energy = run.energy.copy()
    q[:] = 7.0
    assert np.array_equal(run.q[0], Z) and np.array_equal(run.energy, energy)
    pose = cd.frame_pose(pendulum(), Z, "ground")
    pose[0, 0] = 7.0
    assert cd.frame_pose(pendulum(), Z, "ground")[0, 0] == 1.0


def test_a_mechanism_where_a_model_belongs_says_so_and_can_be_copied() -> None:
    m = four_bar()
    asks: list[Callable[[Any], object]] = [
        lambda m: cd.forward_dynamics(m, Z, Z), cd.check, cd.redundancy, cd.is_planar, lambda m: cd.simulate(m, 1.0)
    ]  # fmt: skip
    for ask in asks:
        with pytest.raises(cd.ModelError, match=r"mechanism 'four_bar' is not built yet; give mechanism.build\(\)"):
            ask(m)
    assert not hasattr(m, "nq")
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other.build().key == m.build().key


def test_equations_as_functions_take_what_they_have() -> None:
    f = cd.equations(pendulum()).sympy(simplify=False).function("f")
    for given, words in (
        ((Z, Z, Z), "there is no tau in these equations"),
        ((Z, [1.0]), r"v must have the shape \(2,\), got \(1,\)"),
        ((Z, Z, None, 0.0, {"mass": 2.0}), "'mass' is not the symbol of a parameter"),
    ):
        with pytest.raises(cd.CardanError, match=words):
            f(*given)


def test_an_event_stops_a_live_run_too() -> None:
    with cd.view(pendulum(), live=True, open_browser=False) as viewer:
        run = viewer.simulate(0.3, Z, pace=None, events=[cd.Event("late", lambda s: s.t - 0.1)])
        with pytest.raises(cd.InputError, match="pace must be a positive number, got 0"):
            viewer.simulate(1.0, Z, pace=0)
        with pytest.raises(cd.InputError, match="the run must be of one system of model 'double_pendulum'"):
            viewer.add(cd.simulate(loop()[0], 0.1, samples=2))
    assert run.time[-1] == pytest.approx(0.1) and [event.name for event in run.events] == ["late"]


def test_counts_are_written_as_one_says_them() -> None:
    model = loop()[0]
    assert "loops: 1 cut joint, 5 constraint equations" in model.report()
    assert "four_bar: 1 freedom (" in str(cd.redundancy(model))
    assert "pendulum: 1 body, 1 joint," in cd.mechanisms.pendulum().build().report()


@pytest.mark.parametrize("value", [np.array([0.5], np.longdouble), np.float32(0.5), np.array(0.5), 0.5, ca.DM(0.5)])
def test_a_law_may_return_any_kind_of_number(value: Any) -> None:
    m = double_pendulum()
    m.drive("d", "pivot", lambda t, q, v: value)
    assert np.array_equal(cd.forward_dynamics(m.build(), Z, Z), cd.forward_dynamics(pendulum(), Z, Z, [0.5, 0.0]))


def test_plots_say_which_reactions_are_undetermined() -> None:
    door = cd.simulate(cd.mechanisms.two_hinge_door().build(), 0.1, samples=2)
    labels = [at.get_ylabel().split() for at in door.plot(reactions=["lower"]).axes]
    assert any("of lower joint axes, z, undetermined" in " ".join(words) for words in labels)
    flat = cd.simulate(loop()[0], 0.1, samples=2).plot("reactions")  # across its plane, and zero
    assert not any("undetermined" in text.get_text() for text in flat.findobj(match=lambda x: hasattr(x, "get_text")))


@pytest.mark.parametrize(
    "words", [{}, {"method": "rk4", "step": 1e-2}, {"method": "alpha", "step": 1e-3}, {"method": "gear"}]
)
def test_events_met_at_once_are_all_met(words: dict[str, Any]) -> None:
    events = [
        cd.Event("early", lambda s: s.t - 0.2, "record"),
        cd.Event("low", lambda s: s.q[0], "record"),
        cd.Event("down", lambda s: 3 * s.q[0], "record", -1),
        cd.Event("up", lambda s: s.q[0], "stop", 1),
        cd.Event("end", lambda s: -s.q[0], "stop"),
    ]
    run = cd.simulate(cd.mechanisms.pendulum().build(), 3.0, [0.5], samples=31, events=events, **words)
    assert [event.name for event in run.events] == ["early", "low", "down", "end"]
    assert run.outcome == "stopped at an event" and len({event.time for event in run.events[1:]}) == 1


@pytest.mark.parametrize("words", [{}, {"method": "rk4", "step": 1e-2}, {"method": "alpha", "step": 1e-2}])
def test_an_event_at_a_break_is_met(words: dict[str, Any]) -> None:
    stop = cd.Event("release", lambda s: s.t - 0.5)
    run = cd.simulate(cd.mechanisms.pendulum().build(), 1.0, [0.5], samples=3, breaks=[0.5], events=[stop], **words)
    assert run.time[-1] == pytest.approx(0.5, abs=1e-12) and [event.name for event in run.events] == ["release"]
