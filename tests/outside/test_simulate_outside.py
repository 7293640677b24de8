"""Motion against published problems: IFToMM's A01 and A02, Andrews' mechanism, SUNDIALS' slider-crank, the free top.

Sources and trust of the numbers are in the data files.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

DATA = Path(__file__).parent / "data"
TIGHT = {"rtol": 1e-12, "atol": 1e-13}


def read(name: str) -> dict[str, Any]:
    return json.loads((DATA / name).read_text())


def test_a01_pendulum_for_ten_seconds() -> None:
    """Energy within 5e-5 J and positions within 1e-8 of the exact solution; with default tolerances 1e-6."""
    data = read("simple_pendulum.json")
    table = np.array(data["t_x_y"], dtype=float)
    table = table[table[:, 0] <= 10.0]
    table = table[np.argsort(table[:, 0])]
    m = cd.Mechanism("A01", gravity=(0, -9.81, 0))
    m.body("bob", mass=1.0, com=(0, -1, 0), inertia=np.zeros((3, 3)))
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "bob")
    model = m.build()
    for settings, bound in ((TIGHT, 1e-8), ({}, 1e-6)):
        run = cd.simulate(model, 10.0, [-np.pi / 2], samples=table[:, 0], **settings)
        at = np.isin(run.time, table[:, 0])
        xy = run.position("bob", (0, -1, 0))[at, :2]
        assert np.abs(xy - table[:, 1:]).max() < bound
        assert np.ptp(run.energy) < 5e-5


@pytest.mark.parametrize(
    ("n", "seconds", "runs"),
    [
        (2, 10.0, [({"rtol": 1e-6, "atol": 1e-7}, 1e-3), (TIGHT, 1e-6)]),
        (40, 20.0, [({"rtol": 1e-7, "atol": 1e-8}, 1e-3), ({"rtol": 1e-10, "atol": 1e-11}, 1e-6)]),
    ],
)
def test_a02_windows_pass_their_flat_positions(n: int, seconds: float, runs: list[Any]) -> None:
    """Position of B0, and its velocity relative to the largest, along the parallelogram branch."""
    table = np.array(read("n_four_bar.json")["t_B0x_B0y_vx_vy"][str(n)])
    table = table[table[:, 0] <= seconds]
    model = mechanisms.n_four_bar(n).build()
    v0 = np.array([{"A": 1.0, "B": -1.0}[name[0]] for name in model.coordinate_names])
    for settings, bound in runs:
        run = cd.simulate(model, seconds, np.zeros(model.nq), v0, samples=table[:, 0], **settings)
        at = np.isin(run.time, table[:, 0])
        position, velocity = run.position("upright0", (0, 1, 0))[at, :2], run.velocity("upright0", (0, 1, 0))[at, :2]
        assert np.abs(position - table[:, 1:3]).max() < bound
        assert np.abs(velocity - table[:, 3:]).max() < bound * np.abs(table[:, 3:]).max()
        assert run.residuals.position.max() < 1e-10


@pytest.mark.parametrize("formulation", ["spatial", "absolute", "points"])
def test_andrews_at_the_end(formulation: str) -> None:
    data = read("andrews.json")
    model = mechanisms.andrews().build()

    def state(name: str, what: str) -> np.ndarray:
        return np.array([data[name][what][data["order"].index(joint)] for joint in model.coordinate_names])

    run = cd.simulate(
        model, 0.03, state("initial", "q"), state("initial", "qd"), formulation=formulation, samples=2, **TIGHT
    )
    assert np.abs(run.q[-1] - state("refined_t003", "q")).max() < 1e-9
    assert np.abs(run.v[-1] - state("refined_t003", "qd")).max() < 1e-7


def test_sundials_slider_crank() -> None:
    """To 1e-9 against the refined digits, hence to IDA's printed five."""
    data = read("sundials_slider_crank.json")
    table = np.array(data["t_q_x_p_qd_xd_pd"], dtype=float)
    model = mechanisms.sundials_slider_crank().build()
    run = cd.simulate(model, 10.0, samples=table[:, 0], rtol=1e-11, atol=1e-12)
    at = np.isin(run.time, table[:, 0])
    got = []
    for of in (run.coordinate, run.rate):
        crank, pin, guide = (of(joint)[at].ravel() for joint in ("crank", "pin", "guide"))
        got += [crank, guide, crank + pin]
    assert np.abs(np.stack(got, axis=1) - table[:, 1:]).max() < 1e-9


@pytest.mark.parametrize("case", ["generic", "dzhanibekov"])
def test_free_top_keeps_to_the_closed_form(case: str) -> None:
    """Body rates and attitude of an asymmetric top without torque, to 1e-9 at the last tabulated time."""
    data = read("torque_free_top.json")["reference"][case]
    m = cd.Mechanism("top", gravity=(0, 0, 0))
    m.body("top", mass=1.0, inertia=np.diag(np.array(data["I"], dtype=float)))
    m.joint("A", cd.Spherical(), m.ground, "top")
    model = m.build()
    times = [float(row["t"]) for row in data["table"]]
    w0 = np.array(data["omega0"], dtype=float)
    run = cd.simulate(model, max(times), [1.0, 0, 0, 0], w0, samples=times, **TIGHT)
    for row in data["table"]:
        k = int(np.flatnonzero(run.time == float(row["t"]))[0])
        quaternion = np.array(row["quat_wxyz_body_to_inertial"], dtype=float)
        assert np.abs(run.v[k] - np.array(row["omega_body_exact"], dtype=float)).max() < 1e-9
        assert min(np.abs(run.q[k] - quaternion).max(), np.abs(run.q[k] + quaternion).max()) < 1e-9
    assert np.abs(np.linalg.norm(run.q, axis=1) - 1).max() < 1e-14


@pytest.mark.parametrize("degrees", [10, 45, 90, 120, 170])
def test_pendulum_periods(degrees: int) -> None:
    """The time between downward passages, from an event, to 1e-10."""
    period = float(read("pendulums.json")["simple_pendulum_period_L1_g981"][f"T(theta0={degrees}deg)"])
    m = cd.Mechanism("pendulum", gravity=(0, -9.81, 0))
    m.body("bob", mass=1.0, com=(0, -1, 0), inertia=np.zeros((3, 3)))
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "bob")
    run = cd.simulate(
        m.build(),
        2.2 * period,
        [np.radians(degrees)],
        events=[cd.Event("down", lambda s: s.q[0], "record", -1)],
        samples=2,
        **TIGHT,
    )
    first, second = (event.time for event in run.events[:2])
    assert abs((second - first) / period - 1) < 1e-10
