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
