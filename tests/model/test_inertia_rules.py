"""Where the rules of inertia begin to refuse: at the limit, not far beyond it."""

import numpy as np
import pytest

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")


def body(inertia):
    return cd.Mechanism("one").body("a", mass=1.0, inertia=inertia)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_the_triangle_rule_is_strict(order):
    """A plate has the largest moment that is possible, the sum of the other two."""
    body(np.array([1.0, 1.5, 2.5])[list(order)])
    with pytest.raises(cd.ModelError, match="triangle rule"):
        body(np.array([1.0, 1.5, 2.501])[list(order)])


def test_no_moment_is_negative_and_the_matrix_is_symmetric():
    body((0.0, 1.0, 1.0))
    with pytest.raises(cd.ModelError, match="not positive"):
        body((-1e-3, 1.0, 1.0))
    with pytest.raises(cd.ModelError, match="not symmetric"):
        body([[1.0, 1e-3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
