"""Freeing numbers by name: what can be freed, what values are refused and in what words, and the key of kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cardan as cd
from cardan.algebra.free_number import FreeNumber, nominal
from cardan.algebra.matrix import constant
from cardan.model.model import Model

pytestmark = pytest.mark.usefixtures("quick_code")


def arm(mass: float = 2.0, name: str = "forearm") -> Model:
    """Two links, a massless hook, a spring and a wrench called like a joint."""
    m = cd.Mechanism("arm")
    m.body("upper.arm", mass=1.0, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.2))
    m.body(name, mass=mass, com=(0.1, 0, 0), inertia=(0.1, 0.2, 0.2))
    m.body("hook")
    m.joint("A", cd.Revolute(axis=(0, 0, 1)), m.ground, "upper.arm")
    m.joint("B", cd.Prismatic(axis=(0, 0, 1)), "upper.arm", name, at=(0.3, 0, 0))
    m.joint("weld", cd.Rigid(), name, "hook")
    m.spring("s", "upper.arm", m.ground, stiffness=5.0, length=0.1)
    m.torsion("t", "B", stiffness=1.0)
    m.wrench("A", name, (0, 0, 0, 1, 2, 3))
    m.drive("d", "A", 1.0)
    return m.build()


FREE = arm().free(
    "forearm.mass", "forearm.inertia", "upper.arm.com", "s.stiffness", "t.stiffness", "B.at", "gravity", "A.value"
)


def test_parameters_tell_names_shapes_units_and_nominal_values() -> None:
    parameters = FREE.parameters
    assert parameters.names == (
        "forearm.mass", "forearm.inertia", "upper.arm.com", "s.stiffness", "t.stiffness", "B.at", "gravity", "A.value"
    )  # fmt: skip
    assert parameters.size == 1 + 6 + 3 + 1 + 1 + 3 + 3 + 6 == len(parameters.nominal)
    mass, inertia, along = parameters["forearm.mass"], parameters["forearm.inertia"], parameters["t.stiffness"]
    assert (mass.shape, mass.unit, float(mass.nominal)) == ((), "kg", 2.0)
    assert (inertia.shape, inertia.unit, list(inertia.nominal)) == ((6,), "kg m^2", [0.1, 0.2, 0.2, 0, 0, 0])
    assert (along.shape, along.unit) == ((), "N/m")  # along a slider
    assert "forearm.mass" in repr(FREE) and "B.at" in FREE.report()
    assert all(p.name in repr(parameters) and p.unit in repr(parameters) for p in parameters)
    with pytest.raises(ValueError, match="read-only"):
        mass.nominal[...] = 3.0
    with pytest.raises(AttributeError):
        parameters.items = ()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (
            ["forarm.mass"],
            "'forarm.mass' names no body, joint, force or constraint element.*did you mean 'forearm.mass'",
        ),
        (["mass"], "names no body.*write 'element.field'"),
        (["forearm.weight"], "'forearm.weight' is not a number of 'forearm'; free are 'forearm.mass', 'forearm.com'"),
        (["d.function"], "'d.function' is not a number of 'd', nothing of it can be freed"),
        (["A.at"], "'A.at' has two meanings, of a joint and of a force that are both called 'A'; rename one"),
        (["hook.mass"], "'hook.mass' cannot be freed: body 'hook' has no mass.*give it a nominal mass"),
        (["s.length", "s.length"], "'s.length' is free already"),
    ],
)
def test_names_that_cannot_be_freed(names: list[str], words: str) -> None:
    with pytest.raises(cd.CardanError, match=words):
        arm().free(*names)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"forearm.mass": [[1.0, 2.0], [3.0, -4.0]]}, r"'forearm.mass' must be above 0, got -4 kg at index \(1, 1\)"),
        ({"forearm.mass": 0.0}, "'forearm.mass' must be above 0, got 0 kg$"),
        ({"forearm.mass": "heavy"}, "'forearm.mass': its values must be numbers, got 'heavy'"),
        ({"s.stiffness": [1.0, -2.0]}, "'s.stiffness' must not be negative; .* got -2 N/m at index 1"),
        ({"B.at": [0.3, np.nan, 0]}, r"'B.at' must be finite, got \[0.3, nan, 0. \] m"),
        ({"B.at": [0.3, 0]}, r"'B.at': values must have shape \(..., 3\), got \(2,\)"),
        ({"forearm.inertia": [0.1, 0.1, 0.3, 0, 0, 0]}, "breaks the triangle rule, got .*0.3"),
        ({"forearm.inertia": [-0.1, 0.1, 0.3, 0, 0, 0]}, "must not be negative along any axis"),
        ({"forearm.inertia": [0.0, 0.1, 0.1, 0, 0, 0]}, "must stay positive along every axis, as its nominal value"),
        ({"forearm.inertia": np.triu(np.full((3, 3), 0.1))}, "must be symmetric"),
        ({"forarm.mass": 1.0}, "'forarm.mass' is not free; did you mean 'forearm.mass'"),
        ({"forearm.mass": [1.0, 2.0], "s.stiffness": [1.0] * 3}, r"batch shapes \(2,\) of forearm.mass, \(3,\) of s"),
    ],
)
def test_values_that_are_refused(values: Mapping[str, Any], words: str) -> None:
    with pytest.raises(cd.CardanError, match=words):
        FREE.at(values)


def test_an_inertia_may_be_given_as_matrices() -> None:
    matrices = np.stack([np.diag([0.1, 0.2, 0.25]), np.diag([0.2, 0.2, 0.25])])
    matrices[:, 0, 1] = matrices[:, 1, 0] = 0.01
    entries = FREE.at({"forearm.inertia": matrices}).values[..., 1:7]
    np.testing.assert_array_equal(entries, [[0.1, 0.2, 0.25, 0.01, 0, 0], [0.2, 0.2, 0.25, 0.01, 0, 0]])


def test_functions_of_one_mechanism_refuse_a_batch_in_one_sentence() -> None:
    bound = FREE.at({"forearm.mass": [1.0, 2.0]})
    for ask in (cd.check, Model.settled, lambda m: cd.undetermined_reactions(m, m.start())):
        with pytest.raises(cd.InputError, match=r"batch shape \(2,\).*one mechanism at a time; give one value"):
            ask(bound)
    with pytest.raises(cd.ModelError, match=r"'arm': 'forearm.mass' is not free; use free"):
        arm().at({"forearm.mass": 1.0})
    with pytest.raises(cd.ModelError, match="its parameters have values; free more"):
        bound.free("s.damping")


def test_values_that_make_redundant_constraints_independent_are_refused() -> None:
    """A parallelogram with three cranks moves by the grace of its lengths."""
    m = cd.Mechanism("wheels", gravity=(0, 0, 0))
    m.body("rod", mass=1.0, inertia=(1, 1, 1))
    for k in range(3):
        m.body(f"crank{k}", mass=1.0, inertia=(1, 1, 1))
        m.joint(f"G{k}", cd.Revolute(axis=(0, 0, 1)), m.ground, f"crank{k}", at=(k, 0, 0), start=0.5)
        m.joint(f"R{k}", cd.Revolute(axis=(0, 0, 1)), f"crank{k}", "rod", at=(1, 0, 0), child_at=(k, 0, 0), start=-0.5)
    free = m.build().free("G2.at", "rod.mass")
    cd.assemble(free.at({"rod.mass": [1.0, 2.0]}))
    with pytest.raises(cd.ModelError, match=r"at index 1 .* constraints are independent, nominally .* build it with"):
        cd.assemble(free.at({"G2.at": [[2.0, 0, 0], [2.0, 0.3, 0]]}))


def test_the_key_knows_what_is_free_and_not_the_values() -> None:
    free = arm().free("forearm.mass", "B.at")
    assert free.key == arm().free("forearm.mass", "B.at").key == free.at({"forearm.mass": 3.0}).key
    assert free.key == arm(name="lower").free("lower.mass", "B.at").key  # names are not in the equations
    others = [arm(), arm().free("B.at", "forearm.mass"), arm().free("forearm.mass"), arm().free("forearm.com", "B.at")]
    assert len({free.key, *(m.key for m in others), free.unmerged.key}) == 6
    assert arm().free().key == arm().key


@given(st.lists(st.floats(-10, 10).filter(lambda x: abs(x) > 0.1), min_size=2, max_size=2), st.floats(-3, 3))
def test_a_number_computes_like_its_nominal_value_and_is_never_a_constant(x: list[float], c: float) -> None:
    import casadi as ca

    p = ca.SX.sym("p", 2)
    a, b = (FreeNumber(p[k], x[k]) for k in range(2))
    A = np.array([[a, c], [0.0, b]], dtype=object)
    got = (A @ A.T - c * A) / b + abs(a) + (1 - b) ** 2 - c * (-a) + np.sqrt(np.array(abs(-b) + 1.0, dtype=object))
    values = np.array(ca.Function("f", [p], [constant(got)])(x))
    np.testing.assert_allclose(values, nominal(got), rtol=1e-12)
    assert (a < b) == (x[0] < x[1]) and a == FreeNumber(p[0], 0.0) and a != b and a != x[0] and bool(a)
    assert a - a == 0.0 and isinstance(a * 0.0, float)
    with pytest.raises(TypeError, match="is a free parameter, it has no single value"):
        float(a)
