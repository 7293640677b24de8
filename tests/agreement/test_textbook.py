"""Every equation of the sources: arrays, batches, CasADi and SymPy matrices and the printed form give the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan.algebra.rotation import skew
from cardan.textbook import EQUATIONS, Equation, Quantity, rules

from ..latex_reader import read
from ..trees import random_rotation

pytestmark = pytest.mark.usefixtures("quick_code")

sympy = pytest.importorskip("sympy")
TEXTS = {e.text.__code__: name for name, e in reversed(EQUATIONS.items())}
NAMES = [name for name, e in EQUATIONS.items() if TEXTS[e.text.__code__] == name]  # a text with several numbers once
SIZES = {"k": 2, "n": 3}  # of letters in shapes; printed forms have 2 for each
SCALED = {"rG": 0.2, "lG": 0.2}  # near enough to particle 1 for an inertia about it of 0.5 and more


def draw(quantity: Quantity, rng: np.random.Generator, sizes: dict[str, int]) -> np.ndarray:
    """Random numbers that obey the rule of a quantity."""
    shape = tuple(sizes.get(n, 2) if isinstance(n, str) else n for n in quantity.shape)
    if quantity.rule is rules.positive:
        return rng.uniform(0.5, 2.0, shape)
    if quantity.rule is rules.unit:
        return random_rotation(rng)[0]
    if quantity.rule is rules.rotation:
        return random_rotation(rng)
    if quantity.rule is rules.motion_transform:
        E, r = random_rotation(rng), rng.normal(size=3)
        return np.block([[E, np.zeros((3, 3))], [-E @ skew(r), E]])
    if quantity.rule is rules.inertia or quantity.symmetric:
        A = rng.normal(size=shape)
        return A @ A.T + np.eye(shape[0])
    return rng.normal(size=shape)


def arguments(equation: Equation, seed: int, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = {name: SCALED.get(name, 1.0) * draw(q, rng, sizes) for name, q in equation.inputs.items()}
    if equation.name == "AT_unreduced":  # its vectors belong to one triangle
        found |= {"r32": found["r31"] - found["r21"], "v32": found["v31"] - found["v21"]}
    return found


def as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def close(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(b).max(initial=0))))


@pytest.mark.parametrize("name", NAMES)
def test_batches_and_symbols_give_what_numbers_give(name: str) -> None:
    import casadi as ca

    equation = EQUATIONS[name]
    one, two = (arguments(equation, seed, SIZES) for seed in (1, 2))
    both = as_tuple(equation(*(np.stack([one[key], two[key]]) for key in one)))
    single = as_tuple(equation(**one))
    numbers = [ca.SX(ca.DM(x)) for x in one.values()]
    recorded = as_tuple(equation(*numbers))
    symbolic = as_tuple(equation(*(sympy.Matrix(x) if np.ndim(x) else sympy.Float(float(x)) for x in one.values())))
    for batch, value, graph, symbol in zip(both, single, recorded, symbolic, strict=True):
        close(batch[0], value)
        close(np.array(ca.DM(graph)).reshape(np.shape(value)), value)
        close(np.array(sympy.Matrix([symbol]).evalf(), dtype=float).reshape(np.shape(value)), value, 1e-11)


@pytest.mark.parametrize("name", [name for name in NAMES if EQUATIONS[name].is_printed])
def test_numbers_in_the_printed_form_give_what_the_kernel_gives(name: str) -> None:
    equation = EQUATIONS[name]
    values = arguments(equation, 3, {})
    letters = equation.letters()
    numbers = {
        letters[key]: sympy.ImmutableMatrix(x.reshape(len(x), -1)) if x.ndim else sympy.Float(float(x))
        for key, x in values.items()
    }
    printed, results = as_tuple(equation.sympy()), as_tuple(equation(**values))
    for relation, value in zip(printed, results, strict=True):
        side = relation.lhs if equation.is_zero else relation.rhs
        found = side.subs(numbers).doit()
        found = found.as_explicit() if hasattr(found, "as_explicit") else sympy.Matrix([found])
        close(np.array(found, dtype=float).reshape(np.shape(value)), value, 1e-10)
        if len(results) > 1 and not equation.is_zero and isinstance(relation.lhs, sympy.MatrixSymbol):
            numbers[relation.lhs] = sympy.ImmutableMatrix(value.reshape(len(value), -1))  # later lines may use it


@pytest.mark.parametrize("name", [name for name in NAMES if EQUATIONS[name].is_printed])
def test_the_printed_formula_read_with_numbers_gives_what_the_kernel_gives(name: str) -> None:
    """LaTeX is read as a person reads it: what is printed is what is computed."""
    equation = EQUATIONS[name]
    values = arguments(equation, 4, {})
    letters = {equation.inputs[key].latex: x.reshape(len(x) if x.ndim else 1, -1) for key, x in values.items()}
    for (left, right), output in zip(equation.sides(), as_tuple(equation(**values)), strict=True):
        value = np.asarray(output)
        found = read((left if equation.is_zero else right).latex(), letters)
        shape = np.shape(value)
        if found.shape == (1, 1) and len(shape) == 2 and shape[0] == shape[1]:
            found = found * np.eye(shape[0])
        close(found.reshape(shape), value, 1e-10)
        if left.operation == "letter" and not equation.is_zero:
            letters[left.latex()] = value.reshape(len(value) if value.ndim else 1, -1)  # later lines may use it


def test_one_free_letter_stays_free() -> None:
    m = sympy.Symbol("m")
    T = cd.textbook
    J = T.F3_19(m, np.eye(3), np.array([0.0, 0.0, 2.0]))
    assert sympy.diag(1 + 4 * m, 1 + 4 * m, 1) == J
    assert T.F6_7.latex() == (r"a_{1} = \left(I_{1} + I_{2} - \frac{I_{2} s s^{T} I_{2}}{s^{T} I_{2} s}\right)^{-1} f")
