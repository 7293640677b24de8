"""The peers of the benchmarks move the mechanisms that Cardan moves: else a comparison of times means nothing."""

from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

from ..fake_card import fake_cards

pytest.importorskip("benchmarks", reason="benchmarks are part of the repository, not of the source package")


@pytest.mark.parametrize(("make", "apart"), [(mechanisms.double_pendulum, 1e-10), (mechanisms.four_bar, 1e-2)])
def test_mujoco_rolls_out_the_same_motion(make, apart: float) -> None:
    """A tree to rounding, since both take the same RK4 steps; a loop, soft in MuJoCo, roughly."""
    pytest.importorskip("mujoco")
    from benchmarks.batches import Batch, Rollout
    from benchmarks.linkages import Linkage

    batch = Batch(Linkage("same", make), systems=8, steps=50)
    rollout = Rollout(batch, "RK4", 8, 1)
    rollout()
    end = np.asarray(batch.cardan(1).q)[:, -1]
    assert np.abs(end - batch.start[0]).max() > 10 * apart
    assert np.abs(rollout.end - end).max() < apart


def test_exudyn_reaches_the_published_reference() -> None:
    """Its error falls with the square of the step, on the mechanism with every kind of item."""
    pytest.importorskip("exudyn")
    from benchmarks.simulating import case

    chosen = case("slider-crank")
    errors = []
    for steps in (200, 400):
        chosen.plane.solve(chosen.duration, steps)
        errors.append(chosen.error(chosen.model, chosen.plane.coordinates()))
    assert errors[0] < 1e-3
    assert 3.5 < errors[0] / errors[1] < 4.5


def test_exudyn_drives_andrews_mechanism() -> None:
    pytest.importorskip("exudyn")
    from benchmarks.simulating import case

    chosen = case("Andrews")
    chosen.plane.solve(chosen.duration, 1000)
    assert chosen.error(chosen.model, chosen.plane.coordinates()) < 2e-3


def test_the_two_step_method_gives_the_accelerations_of_points() -> None:
    """On a chain, and on the multi-branch example, whose loops are cut at a pin and at a slider."""
    from benchmarks.two_step import EXAMPLE, planar_chain, runpy, two_step

    example = runpy.run_path(str(EXAMPLE))
    for model in (planar_chain(3), example["multibranch"]().build(cut=example["CUT"])):
        q, v = cd.assemble(model, model.start(), np.ones(model.nv)) if model.cuts else np.ones((2, model.nv))
        tau = np.linspace(0.5, 1.5, model.nv)
        found = np.array(two_step(model)(q, v, tau)).ravel()
        wanted = cd.forward_dynamics(model, q, v, tau)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * np.abs(wanted).max())


def test_derivatives_are_compared_with_pinocchio() -> None:
    """Each Jacobian of both dynamics; a wrong order of the joints or of rows would show."""
    pytest.importorskip("pinocchio")
    from benchmarks.agreement import DERIVATIVE_GOAL, largest_derivative_errors
    from benchmarks.robots import find

    robot = find("chain 3")
    errors = largest_derivative_errors(robot, robot.model, states=4)
    assert len(errors) == 6 and max(errors) < DERIVATIVE_GOAL


def test_peers_on_a_gpu_get_the_states_of_a_floating_robot(tmp_path: Path) -> None:
    """Joints by name, a free root's rates in MuJoCo's axes: its accelerations are Cardan's."""
    mujoco = pytest.importorskip("mujoco")
    pytest.importorskip("cmeel")
    from benchmarks.gpu.peers import compare, mujoco_model
    from benchmarks.gpu.peers.task import Task
    from benchmarks.gpu.work import VALUE, Robots, example_robots

    job = compare.Job("MJX", "ANYmal", VALUE, "float64", 4)
    compare.write(Robots(example_robots()), tmp_path, (job,))
    task = Task(tmp_path, "ANYmal_state", job.kind, job.precision, job.rows, "cpu")
    model, q_order, v_order = mujoco_model.load(task)
    data = mujoco.MjData(model)
    for q, v, tau, a in zip(*(task.array(name) for name in ("q", "v", "tau", "a")), strict=True):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[q_order], v[v_order], tau[v_order]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qacc, a[v_order], rtol=0, atol=1e-10 * np.abs(a).max())


def test_a_launch_that_was_watched_can_be_repeated() -> None:
    """What is timed is the launch of the call: again with the same arguments, it fills the same arrays."""
    from benchmarks.gpu.card import watching

    from cardan.machines.cuda import driver
    from cardan.machines.cuda.device_array import to_device

    model = mechanisms.double_pendulum().build()
    states = np.random.default_rng(0).standard_normal((3, 5, 2))
    with fake_cards():
        arrays = [to_device(x) for x in states]
        with watching(timed=False, keep=True) as watch:
            result = cd.forward_dynamics(model, *arrays)
            cd.forward_dynamics(model, *(to_device(-x) for x in states))  # uses the memory of the first's arguments
        first = result.numpy()
        nothing = np.zeros_like(first)
        driver.card(0).upload(result.pointer, nothing.ctypes.data, nothing.nbytes)
        assert not result.numpy().any()
        watch.launches[0].again(0)
        np.testing.assert_array_equal(result.numpy(), first)
        assert [made.name for made in watch.compiles.values()] == [watch.compiles[watch.launches[0].function].name]
    np.testing.assert_array_equal(first, cd.forward_dynamics(model, *states))
