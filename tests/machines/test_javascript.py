"""Programs printed as JavaScript give what their kernels on the host give."""

import json
import re

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.errors import CardanError
from cardan.machines.javascript.module import JavaScriptPrinter
from cardan.program.graph import BINARY, UNARY
from cardan.program.program import record

from .conftest import arm, make_kernel, make_program
from .javascript import called
from .test_operations import text_of

pytestmark = pytest.mark.usefixtures("quick_code")
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, -2.5e-308, 1.5, -1.5, 2.5, 3.0, -3.0, 1.0, -1.0, 1e300]
# Libraries of mathematics differ in the last bit; all else is exact.
EXACT = {
    "neg", "sq", "twice", "inv", "sqrt", "fabs", "floor", "ceil", "sign", "not", "add", "sub", "mul", "div", "fmod",
    "remainder", "fmin", "fmax", "copysign", "lt", "le", "eq", "ne", "and", "or", "if_else_zero",
}  # fmt: skip


def printed(program) -> str:
    return JavaScriptPrinter().print_program(program, record(program))


def test_every_operation() -> None:
    """On numbers of all sizes and on special ones, against the host's kernel."""
    rng = np.random.default_rng(5)
    near = np.concatenate([rng.normal(size=40), rng.uniform(-1, 1, 40), 10 ** rng.uniform(-8, 8, 20)])
    x1 = np.concatenate([SPECIAL, near, [0.3, 2.49, 2.51, 5.9, 6.1, -4.0]])
    pairs = np.stack(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1)
    some = np.concatenate([rng.normal(size=(2, 60)), np.round(2 * rng.normal(size=(2, 60))) / 2], axis=1)
    x2 = np.concatenate([pairs, some, [[1e300, 7.0, -7.0], [3.0, 2.0, 2.0]]], axis=1)
    for names, columns in ((UNARY, x1[None]), (BINARY, x2)):
        ports = {port: () for port in "xy"[: len(columns)]}
        kernel = make_kernel("f", ports, {"z": (len(names),)}, all_of(names), key=f"javascript {len(names)}")
        with np.errstate(all="ignore"):
            expected = kernel(*columns)
        assert set(names) - set(kernel.operations) <= {"twice"}  # CasADi 3.7 writes x + x
        found = np.array([call[0] for call in called([(printed(kernel.program), "f", columns.T)])[0]])
        for name, z, wanted in zip(names, found.T, expected.T, strict=True):
            tolerance = 0.0 if name in EXACT else 2e-15 if name in ("erf", "pow", "constpow") else 5e-16
            np.testing.assert_allclose(z, wanted, rtol=tolerance, atol=0, err_msg=name)
            if name in ("neg", "copysign", "remainder", "fmod", "sq", "div"):
                np.testing.assert_array_equal(np.signbit(z)[z == z], np.signbit(wanted)[z == z], err_msg=name)


def all_of(names):
    own = {"pow": lambda x, y: x**y}  # of negative numbers too
    return lambda *x: ca.vertcat(*((own.get(name) or text_of(name))(*x) for name in names))


def test_matrices_scalars_and_numbers() -> None:
    """Elements are in C order, structural zeros are zeros, numbers keep all digits and their signs."""

    def text(_empty, A, t):
        B = ca.SX(2, 3)
        B[0, 1], B[1, 2] = A[1, 0] - t * -0.1, -ca.SX(1e-300) / 3
        return B, A[0, 1] * t, ca.SX(0, 1), ca.vertcat(np.inf, -np.inf, (A[0, 0] + t) ** 2)

    program = make_program(
        "f", {"none": (0,), "A": (2, 2), "t": ()}, {"B": (2, 3), "s": (), "empty": (0,), "c": (3,)}, text
    )
    A, t = np.array([[1.5, 2.0], [3.0, 4.0]]), 0.7
    B, s, empty, c = called([(printed(program), "f", [([], A, t)])])[0][0]
    np.testing.assert_array_equal(B, [0, 3.0 - 0.7 * -0.1, 0, 0, 0, -1e-300 / 3])
    assert s == 2.0 * 0.7 and empty.size == 0
    np.testing.assert_array_equal(c, [np.inf, -np.inf, (1.5 + 0.7) ** 2])


def test_a_long_straight_line() -> None:
    """Expressions do not nest without limit; values read once have no name."""

    def text(x):
        for _ in range(1000):
            x = ca.sin(x) * 0.5 + 1
        return x

    kernel = make_kernel("f", {"x": ()}, {"y": ()}, text)
    module = printed(kernel.program)
    assert module.count("const $") < 300
    np.testing.assert_allclose(called([(module, "f", [(0.3,)])])[0][0], [kernel(0.3)], rtol=1e-14)


def test_wrong_arguments_are_told() -> None:
    program = make_program("f", {"x": (2,), "t": ()}, {"y": (2,)}, lambda x, t: x * t)
    few, none, swapped = called([(printed(program), "f", [([1.0], 1.0), ([1.0, 2.0],), (1.0, [1.0, 2.0])])])[0]
    assert few == "TypeError: f: x must be an array of 2 numbers, got one of 1"
    assert none == "TypeError: f: t must be a number, got undefined"
    assert "x must be an array of 2 numbers, got number" in swapped


def test_what_is_no_graph_is_refused() -> None:
    from cardan.formulation.looping import record_schedule
    from cardan.structure.kernels import tree_quantity

    model = mechanisms.pendulum().build()
    schedule = record_schedule(tree_quantity("spatial", "mass_matrix").recursion, model)
    program = make_program("f", {"x": (2,)}, {"y": (2,)}, lambda x: x)
    with pytest.raises(CardanError, match="straight-line graphs only, and this is a schedule"):
        JavaScriptPrinter().print_program(program, schedule)
    with pytest.raises(CardanError, match="'a b' cannot be a name"):
        printed(make_program("f", {"a b": (2,)}, {"y": (2,)}, lambda x: x))


def test_arm() -> None:
    """A graph with every kind of long-lived value."""
    kernel = make_kernel("arm", {"q": (7,), "v": (7,), "tau": (7,)}, {"a": (7,)}, arm)
    x = np.random.default_rng(3).normal(size=(5, 3, 7))
    found = called([(printed(kernel.program), "arm", x)])[0]
    np.testing.assert_allclose([call[0] for call in found], kernel(*np.moveaxis(x, 1, 0)), rtol=1e-12)


def test_mechanisms() -> None:
    """Forward dynamics of trees and of loops, at states that satisfy the loops: 1e-12 of the largest acceleration."""
    rng, jobs, expected = np.random.default_rng(2), [], []
    cases = [(name, "spatial") for name in ("pendulum", "double_pendulum", "four_bar", "andrews")]
    for name, formulation in [*cases, ("four_bar", "absolute")]:
        model = mechanisms.CATALOGUE[name]().build()
        q, v = cd.assemble(model, None, rng.normal(size=model.nv))
        tau = rng.normal(size=model.nv)
        jobs.append((cd.javascript(model, formulation=formulation), "forward_dynamics", [(q, v, tau)]))
        expected.append(cd.forward_dynamics(model, q, v, tau, formulation=formulation))
    for (a,), wanted in zip(called(jobs), expected, strict=True):
        np.testing.assert_allclose(a[0], wanted, rtol=1e-12, atol=1e-12 * np.abs(wanted).max())


def test_free_parameters_and_other_quantities() -> None:
    """`p` is the last argument, and `parameters` tells what is in it."""
    model = mechanisms.pendulum().build().free("rod.mass", "gravity")
    module = cd.javascript(model, "system", formulation="absolute")
    exported = json.loads(re.search(r"^export const parameters = (.*);$", module, re.M)[1])
    assert [one["name"] for one in exported] == ["rod.mass", "gravity"] and exported[0]["shape"] == []
    heavy = model.at({"rod.mass": 3.0, "gravity": [0, 0, -1.6]})
    eq = cd.equations(heavy, formulation="absolute")
    q, v = eq.project(cd.body_poses(heavy, [0.4]), cd.body_twists(heavy, [0.4], [2.0]))
    found = called([(module, "system", [(q, v, [0.0], np.zeros((1, 6)), 0.0, [3.0, 0, 0, -1.6])])])[0][0]
    for value, wanted in zip(found, (eq.M(q), eq.f(q, v), eq.J(q), eq.gamma(q, v), eq.beta(q), eq.phi(q)), strict=True):
        np.testing.assert_allclose(value, np.ravel(wanted), rtol=1e-12, atol=1e-14)
    energy = called([(cd.javascript(model, "kinetic_energy"), "kinetic_energy", [([0.4], [2.0], [3.0, 0, 0, -1.6])])])
    assert float(energy[0][0][0]) == pytest.approx(float(cd.kinetic_energy(heavy, [0.4], [2.0])), rel=1e-14)


def test_names_that_are_none() -> None:
    model = mechanisms.pendulum().build()
    with pytest.raises(cd.UnknownNameError, match="forward_dynamics"):
        cd.javascript(model, "forward_dynamic")
    with pytest.raises(cd.InputError, match="quantity must be a name"):
        cd.javascript(model, 3)  # type: ignore[arg-type]
