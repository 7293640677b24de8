"""Gear's method against published problems: Andrews' mechanism, SUNDIALS' slider-crank, the N four-bars, the free top.

Sources and trust of the numbers are in the data files.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.integrate.integrators import Request
from cardan.integrate.stepper import Arrival, Outcome, Stepper
from cardan.integrate.sundials.stepper import GearStepper, MultistepStepper

pytestmark = pytest.mark.usefixtures("quick_code")

DATA = Path(__file__).parent / "data"


def read(name: str) -> dict[str, Any]:
    return json.loads((DATA / name).read_text())


def go(stepper: Stepper, times: np.ndarray, q: np.ndarray, v: np.ndarray) -> list[Arrival]:
    """Where a system that starts at time 0 arrives at each of the times."""
    stepper.begin(0.0, q[None], v[None])
    arrivals = [stepper.advance(t) for t in times]
    assert all(a.outcome[0] == Outcome.ARRIVED and a.t[0] == t for a, t in zip(arrivals, times, strict=True))
    return arrivals


TIGHT = dict.fromkeys(("spatial", "absolute", "points"), (1e-13, 1e-14))


@pytest.mark.parametrize("formulation", TIGHT)
def test_andrews_arrives_at_the_reference(formulation: str) -> None:
    """Positions to 1e-9 rad, velocities to 1e-9 of the largest: seven bodies turn seven times in 0.03 s."""
    data, model = read("andrews.json"), mechanisms.andrews().build()
    order = [data["order"].index(name) for name in model.coordinate_names]
    q, v = (np.array(data["refined_t003"][what])[order] for what in ("q", "qd"))
    rtol, atol = TIGHT[formulation]
    stepper = GearStepper(model, formulation, request=Request(rtol=rtol, atol=atol))
    found = go(stepper, np.array([0.03]), model.start(), np.zeros(model.nv))[0]
    assert np.abs(found.q - q).max() < 1e-9
    assert np.abs(found.v - v).max() < 1e-9 * np.abs(v).max()


def test_andrews_by_index_1_drifts_little() -> None:
    """Samples are on the constraints, and within a hundred tolerances of the reference."""
    data, model = read("andrews.json"), mechanisms.andrews().build()
    order = [data["order"].index(name) for name in model.coordinate_names]
    times = np.linspace(0.003, 0.03, 10)
    found = go(GearStepper(model, form="index1"), times, model.start(), np.zeros(model.nv))
    assert max(np.abs(cd.constraint_residual(model, a.q)).max() for a in found) < 1e-14
    assert np.abs(found[-1].q - np.array(data["refined_t003"]["q"])[order]).max() < 1e-5


@pytest.mark.parametrize("form", ["stabilised", "index1"])
@pytest.mark.parametrize("formulation", ["spatial", "absolute", "points"])
def test_slider_crank_of_SUNDIALS(formulation: str, form: str) -> None:
    """The refined values to 1e-9 at ten times, which agree with those that IDA printed."""
    model = mechanisms.sundials_slider_crank().build()
    table = np.array(read("sundials_slider_crank.json")["t_q_x_p_qd_xd_pd"])
    crank, pin, guide = (model.v_slice(joint).start for joint in ("crank", "pin", "guide"))
    stepper = GearStepper(model, formulation, form=form, request=Request(rtol=1e-12, atol=1e-13))
    found = go(stepper, table[1:, 0], model.start(), np.zeros(model.nv))
    for a, (_, q, x, p, qd, xd, pd) in zip(found, table[1:], strict=True):
        at, rate = a.q[0], a.v[0]
        assert np.abs(np.array([at[crank], at[guide], at[crank] + at[pin]]) - [q, x, p]).max() < 1e-9
        assert np.abs(np.array([rate[crank], rate[guide], rate[crank] + rate[pin]]) - [qd, xd, pd]).max() < 1e-9


@pytest.mark.parametrize(
    ("formulation", "rtol", "atol", "bound"),
    [("spatial", 1e-8, 1e-10, 3e-3), ("spatial", 1e-11, 1e-12, 3e-6), ("points", 1e-10, 1e-12, 3e-3)],
)
def test_windows_pass_their_flat_positions(formulation: str, rtol: float, atol: float, bound: float) -> None:
    """Two windows for 10 s: ten times flat, where constraints depend on one another and motions could part.

    Each flat position magnifies rounding, which differs from processor to processor.
    """
    model = mechanisms.n_four_bar(2).build()
    together = np.array([1.0 if name.startswith("A") else -1.0 for name in model.coordinate_names])
    table = np.array(read("n_four_bar.json")["t_B0x_B0y_vx_vy"]["2"])
    table = table[(table[:, 0] > 0) & (table[:, 0] <= 10)]
    found = go(
        GearStepper(model, formulation, request=Request(rtol=rtol, atol=atol)),
        table[:, 0],
        np.zeros(model.nq),
        together,
    )
    th, w = (np.array([(x[0] * together).mean() for x in xs]) for xs in zip(*((a.q, a.v) for a in found), strict=True))
    assert max(np.ptp(a.q[0] * together) for a in found) < 1e-10  # the upright rods stay parallel
    assert np.hypot(np.sin(th) - table[:, 1], np.cos(th) - table[:, 2]).max() < bound
    velocity = np.hypot(w * np.cos(th) - table[:, 3], w * np.sin(th) + table[:, 4])
    assert velocity.max() < bound * np.abs(table[:, 3:]).max()


@pytest.mark.parametrize("make", [
    lambda model: GearStepper(model, request=Request(rtol=1e-11, atol=1e-12)),
    lambda model: GearStepper(model, "absolute", request=Request(rtol=1e-11, atol=1e-12)),
    lambda model: GearStepper(model, "relative", form="index1", request=Request(rtol=1e-11, atol=1e-12)),
    lambda model: MultistepStepper(model, "BDF", request=Request(rtol=1e-12, atol=1e-13)),
    lambda model: MultistepStepper(model, "Adams", max_order=12, request=Request(rtol=1e-12, atol=1e-13)),
])  # fmt: skip
def test_free_top_tumbles_as_by_elliptic_functions(make: Any) -> None:
    case = read("torque_free_top.json")["reference"]["generic"]
    m = cd.Mechanism("top", gravity=(0, 0, 0))
    m.body("top", mass=1.0, com=(0, 0, 0), inertia=np.diag(np.array(case["I"], dtype=float)))
    m.joint("ball", cd.Spherical(), m.ground, "top")
    model = m.build()
    table = case["table"]
    times = np.array([float(row["t"]) for row in table])
    w0 = np.array(case["omega0"], dtype=float)
    found = go(make(model), times, model.start(), w0)
    for a, row in zip(found, table, strict=True):
        assert np.abs(a.v[0] - np.array(row["omega_body_exact"], dtype=float)).max() < 1e-8
        assert np.abs(a.q[0] - np.array(row["quat_wxyz_body_to_inertial"], dtype=float)).max() < 1e-8
        assert abs(np.linalg.norm(a.q[0]) - 1) < 1e-12
