"""Every formulation finds the same equilibria with the same stability, redundant constraints or not."""

import numpy as np
import pytest

import cardan as cd
from cardan.mechanisms import four_bar

pytestmark = pytest.mark.usefixtures("quick_code")


def test_formulations_agree_on_a_redundant_linkage_with_a_spring_and_on_its_steady_drive() -> None:
    m = four_bar()
    m.spring("spring", "ground", m.bodies[-1].name, stiffness=60.0, length=0.2, at1=(-0.5, 0.3, 0))
    model = m.build()
    first = model.coordinate_names[0]
    found = {
        name: (
            cd.equilibrium(model, stable=True, formulation=name),
            cd.equilibrium(model, rates={first: 2.0}, formulation=name),
        )
        for name in ("spatial", "absolute", "points")
    }
    rest, turning = found["spatial"]
    assert rest.is_stable and not rest.neutral and rest.residual < 1e-12
    assert np.abs(cd.forward_dynamics(model, rest.q, rest.v)).max() < 1e-11
    assert np.abs(cd.constraint_jacobian(model, turning.q) @ turning.v).max() < 1e-13 and turning.v[0] == 2.0
    assert np.abs(cd.forward_dynamics(model, turning.q, turning.v, turning.tau) - turning.a).max() < 1e-10
    for rest_too, turning_too in found.values():
        assert np.abs(rest_too.q - rest.q).max() < 1e-12
        assert np.abs(rest_too.eigenvalues - rest.eigenvalues).max() < 1e-11
        assert np.abs(turning_too.tau - turning.tau).max() < 1e-11 * np.abs(turning.tau).max()
