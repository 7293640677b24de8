"""The peers of the benchmarks move the mechanisms that Cardan moves: else a comparison of times means nothing."""

import numpy as np
import pytest

from cardan import mechanisms

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

    import cardan as cd

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
