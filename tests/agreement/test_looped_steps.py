"""Steps whose stages are a loop, as those of large models are, agree with steps in one graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan.integrate.explicit import stepper
from cardan.mechanisms import four_bar

HEUN = cd.RungeKutta(
    "Heun", 3, [[0, 0, 0], [1 / 3, 0, 0], [0, 2 / 3, 0]], [1 / 4, 0, 3 / 4]
)  # each stage reads the one before
KUTTA = cd.RungeKutta("Kutta", 3, [[0, 0, 0], [1 / 2, 0, 0], [-1, 2, 0]], [1 / 6, 2 / 3, 1 / 6])


@pytest.mark.usefixtures("quick_code")
@pytest.mark.parametrize(
    ("options", "tolerance"),
    [
        ({"method": "rk4"}, 1e-12),
        ({"method": "rk4", "precision": "float32"}, 1e-5),
        ({"method": HEUN}, 1e-12),
        ({"method": KUTTA}, 1e-12),
    ],
)
def test_a_loop_of_stages_agrees_with_one_graph(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], tolerance: float
) -> None:
    ends = []
    for most in (10**9, 0):
        monkeypatch.setattr(stepper, "UNROLLED", most)
        run = cd.simulate(four_bar().build(), 0.2, step=1e-3, samples=3, progress=False, **options)
        ends.append(np.concatenate([run.q[-1], run.v[-1]]))
    np.testing.assert_allclose(ends[1], ends[0], atol=tolerance)
    assert np.abs(ends[0]).max() > 0.1
