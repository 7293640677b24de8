"""Rotations, 6-D vectors and linear systems: relations that hold for any data, on numbers and on symbols."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial.legendre import leggauss
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from cardan.algebra import rotation as ro
from cardan.algebra import spatial as sp
from cardan.algebra.linsolve import ldl_factor, ldl_solve, lu_factor, lu_solve, tree_factor, tree_solve
from cardan.algebra.matrix import is_symbol, snap
from cardan.mechanisms import random_inertia

from ..trees import close, random_quaternion, random_rotation, seeds

pytestmark = pytest.mark.usefixtures("quick_code")

ANGLES = [0.0, 1e-12, 1e-8, 1e-4, 0.2499, 0.2501, 1.0, 3.0, np.pi - 1e-4, np.pi - 1e-9]
few = settings(max_examples=25)


def on_symbols(text: Callable[..., Any], *args: Any) -> Any:
    """The same text recorded over SX and then evaluated."""
    symbols = [ca.SX.sym(f"x{k}", *np.atleast_2d(np.asarray(a).T).T.shape) for k, a in enumerate(args)]
    values = text(*symbols)
    values = values if isinstance(values, tuple) else (values,)
    results = ca.Function("text", symbols, [ca.densify(ca.SX(x)) for x in values])(*args)
    results = results if isinstance(results, tuple) else (results,)
    return results


def unit(rng: np.random.Generator) -> np.ndarray:
    u = rng.standard_normal(3)
    return u / np.linalg.norm(u)


# Rotations.


@pytest.mark.parametrize("angle", ANGLES)
@given(seed=seeds)
@settings(max_examples=5)
def test_log_undoes_exp(angle: float, seed: int) -> None:
    u = angle * unit(np.random.default_rng(seed))
    R = ro.rotation_exp(u)
    close(R, expm(ro.skew(u)), 1e-15 * 8)
    close(R.T @ R, np.eye(3), 1e-14)
    np.testing.assert_allclose(ro.quaternion_log(ro.quaternion_exp(u)), u, rtol=1e-14, atol=1e-30)
    np.testing.assert_allclose(ro.rotation_log(R), u, rtol=1e-14, atol=1e-15)


@given(seed=seeds)
@few
def test_exp_undoes_log_of_any_rotation(seed: int) -> None:
    R = random_rotation(np.random.default_rng(seed))
    u = ro.rotation_log(R)
    assert np.linalg.norm(u) <= np.pi + 1e-12
    close(ro.rotation_exp(u), R, 1e-14)


@given(seed=seeds, length=st.floats(1e-3, 1e3))
@few
def test_a_quaternion_of_any_length_and_sign_is_its_rotation(seed: int, length: float) -> None:
    e = random_quaternion(np.random.default_rng(seed))
    R = Rotation.from_quat(e, scalar_first=True).as_matrix()
    for quaternion in (e, -e, length * e):
        close(ro.rotation_of_quaternion(quaternion), R, 1e-14)
        close(ro.rotation_exp(ro.quaternion_log(quaternion)), R, 1e-14)


@pytest.mark.parametrize("pivot", range(4))
@given(seed=seeds)
@settings(max_examples=10)
def test_quaternion_of_rotation_is_exact_whichever_entry_is_largest(pivot: int, seed: int) -> None:
    e = 0.4 * random_quaternion(np.random.default_rng(seed))
    e[pivot] = 1.0
    e /= np.linalg.norm(e)
    for quaternion in (e, np.eye(4)[pivot]):
        found = ro.quaternion_of_rotation(ro.rotation_of_quaternion(quaternion))
        close(found * np.sign(found @ quaternion), quaternion, 1e-15 * 4)
        assert abs(np.linalg.norm(found) - 1) < 1e-15 * 4


@given(seed=seeds)
@few
def test_quaternion_product_composes_rotations_and_its_rate_is_their_rate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, w = random_quaternion(rng), random_quaternion(rng), rng.standard_normal(3)
    R = ro.rotation_of_quaternion
    close(R(ro.quaternion_product(a, b)), R(a) @ R(b), 1e-14)
    h = 1e-6
    ahead, behind = (ro.quaternion_product(a, ro.quaternion_exp(s * h * w)) for s in (1, -1))
    close((ahead - behind) / (2 * h), ro.quaternion_rates(a, w), 1e-8)


@pytest.mark.parametrize("angle", [*ANGLES, 20.0])
def test_rotation_integral_is_the_quadrature_of_exp(angle: float) -> None:
    u = angle * unit(np.random.default_rng(3))
    nodes, weights = leggauss(40)
    R = sum(w / 2 * ro.rotation_exp((x + 1) / 2 * u) for x, w in zip(nodes, weights, strict=True))
    close(ro.rotation_integral(u), R, 1e-13)


@given(seed=seeds)
@few
def test_turns_about_coordinate_axes_are_exponentials(seed: int) -> None:
    rpy = np.random.default_rng(seed).uniform(-4, 4, 3)
    for k, turn in enumerate((ro.turn_x, ro.turn_y, ro.turn_z)):
        close(turn(rpy[k]), ro.rotation_exp(rpy[k] * np.eye(3)[k]), 1e-14)
    close(ro.rotation_of_rpy(rpy), Rotation.from_euler("xyz", rpy).as_matrix(), 1e-14)


@given(seed=seeds)
@few
def test_rotation_to_axis_takes_z_to_the_axis(seed: int) -> None:
    axis = unit(np.random.default_rng(seed))
    for a in (axis, -axis, *np.eye(3), *-np.eye(3)):
        R = ro.rotation_to_axis(a)
        close(R[:, 2], a, 1e-15)
        close(R.T @ R, np.eye(3), 1e-14)
        assert np.linalg.det(R) > 0


@given(seed=seeds)
@few
def test_unskew_undoes_skew(seed: int) -> None:
    rng = np.random.default_rng(seed)
    r, symmetric = rng.standard_normal(3), random_inertia(rng)
    close(ro.unskew(ro.skew(r) + symmetric), r, 1e-15 * 8)
    close(ro.cross(r, symmetric[0]), np.cross(r, symmetric[0]), 1e-15 * 4)


# Cross products and transforms.


@given(seed=seeds)
@few
def test_crf_is_dual_to_crm_and_crf_bar_swaps_its_arguments(seed: int) -> None:
    u, v, f = np.random.default_rng(seed).standard_normal((3, 6))
    close(sp.crf(v), -sp.crm(v).T, 0)
    close(sp.crf_bar(f) @ v, sp.crf(v) @ f, 1e-14)
    close(sp.crm(u) @ v, -sp.crm(v) @ u, 1e-14)
    close((sp.crm(v) @ u) @ f + u @ (sp.crf(v) @ f), 0.0, 1e-13)  # v x keeps the power of u and f


@given(seed=seeds)
@few
def test_Jacobi_identity(seed: int) -> None:
    u, v, w = (sp.crm(x) for x in np.random.default_rng(seed).standard_normal((3, 6)))
    x = np.random.default_rng(seed).standard_normal((3, 6))
    close(u @ v - v @ u, sp.crm(sp.crm(x[0]) @ x[1]), 1e-13)
    close(u @ v @ x[2] + v @ w @ x[0] + w @ u @ x[1], np.zeros(6), 1e-13)


def random_transform(rng: np.random.Generator) -> sp.Transform:
    return sp.Transform(
        (sp.turned(random_rotation(rng)), sp.shifted(rng.standard_normal(3)), sp.turned(random_rotation(rng)))
    )


def product(X: sp.Transform) -> np.ndarray:
    return np.linalg.multi_dot(X.factors)


@given(seed=seeds)
@few
def test_a_transform_by_factors_is_the_transform_by_its_product(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, Y, v, f = random_transform(rng), random_transform(rng), rng.standard_normal(6), rng.standard_normal(6)
    A, B = product(X), rng.standard_normal((6, 6))
    close(X @ v, A @ v, 1e-14)
    close(X.T @ f, A.T @ f, 1e-14)
    close(X.inverse @ (X @ v), v, 1e-13)
    close(product(X.inverse), np.linalg.inv(A), 1e-13)
    close((X @ Y) @ v, A @ (product(Y) @ v), 1e-13)
    close(X.congruence(B + B.T), A.T @ (B + B.T) @ A, 1e-13)
    close(X.congruence_general(B), A.T @ B @ A, 1e-13)
    close((X @ v) @ (X.inverse.T @ f), v @ f, 1e-12)  # power is the same in any frame
    close(product(X) @ sp.crm(v) @ np.linalg.inv(A), sp.crm(X @ v), 1e-12)  # and so is the cross product


@pytest.mark.parametrize("turn", [ro.turn_x, ro.turn_y, ro.turn_z])
@given(seed=seeds)
@settings(max_examples=8)
def test_the_planar_shortcut_of_a_congruence_is_the_product(turn: Callable[..., Any], seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, r, angle = rng.standard_normal((6, 6)), rng.standard_normal(3), rng.uniform(-4, 4)

    def text(I: Any, angle: Any) -> Any:
        F = sp.turned(turn(angle).T)
        assert sp.turn_axis(F) is not None
        return sp.Transform((F, sp.shifted(ca.SX(r)))).congruence(I)

    F, B = sp.turned(turn(angle).T), sp.shifted(r)
    (got,) = on_symbols(text, A + A.T, angle)
    close(np.array(got), B.T @ F.T @ (A + A.T) @ F @ B, 1e-13)


def test_the_planar_shortcut_leaves_other_factors_alone() -> None:
    q = ca.SX.sym("q", 4)
    assert sp.turn_axis(sp.turned(ro.rotation_of_quaternion(q))) is None
    assert sp.turn_axis(sp.shifted(q[:3])) is None
    assert sp.turn_axis(sp.turned(np.eye(3))) is None


def test_annihilating_writes_only_true_zeros() -> None:
    """Past a joint, Ia S = 0: dropping those rows and columns changes nothing."""
    rng = np.random.default_rng(0)
    I, S = sp.rigid_inertia(1.3, rng.standard_normal(3), 9 * np.eye(3)), np.eye(6)[:, [2, 5]]

    def text(I: Any) -> tuple[Any, Any]:
        U = I @ ca.SX(S)
        Ia = I - U @ ldl_solve(ldl_factor(ca.SX(S).T @ U), U.T)
        dropped = sp.annihilating(Ia, ca.sparsify(ca.SX(S)))
        assert dropped.nnz() == 16
        return Ia, dropped

    before, after = on_symbols(text, I)
    close(np.array(before), np.array(after), 1e-13)
    tilted = ca.SX(np.ones((6, 1)))
    assert sp.selected(tilted) is None


# Linear systems.


@given(seed=seeds, n=st.integers(1, 7), columns=st.integers(1, 3))
@few
def test_ldl_solves_as_numpy_does(seed: int, n: int, columns: int) -> None:
    rng = np.random.default_rng(seed)
    A, B = rng.standard_normal((n, n)), rng.standard_normal((n, columns))
    A = A @ A.T + 0.1 * np.eye(n)
    X = np.linalg.solve(A, B)
    close(ldl_solve(ldl_factor(A), B), X, 1e-11)
    close(ldl_solve(ldl_factor(np.triu(A)), B[:, 0]), X[:, 0], 1e-11)  # only the upper triangle is read
    (got,) = on_symbols(lambda A, B: ldl_solve(ldl_factor(A), B), A, B)
    close(np.array(got), X, 1e-11)


@given(seed=seeds, n=st.integers(1, 6), m=st.integers(0, 4))
@few
def test_sparse_lu_solves_as_numpy_does(seed: int, n: int, m: int) -> None:
    """Of a saddle: its last m pivots are zero until all those in their rows have been eliminated."""
    rng = np.random.default_rng(seed)
    m = min(m, n)
    S = np.where(rng.random((n, n)) < 0.3, 0.2 * rng.standard_normal((n, n)), 0.0) + 3 * np.eye(n)
    J = np.eye(m, n) + np.where(rng.random((m, n)) < 0.3, 0.3 * rng.standard_normal((m, n)), 0.0)
    K = np.block([[S, J.T], [J, np.zeros((m, m))]])
    B = rng.standard_normal((n + m, 2))
    matrix = ca.SX.sym("K", ca.sparsify(ca.DM(K)).sparsity())
    after = {n + k: set(np.flatnonzero(J[k]).tolist()) for k in range(m)}
    solve = ca.Function("solve", [matrix], [lu_solve(lu_factor(matrix, after), ca.SX(B))])
    close(np.array(solve(ca.sparsify(ca.DM(K)))), np.linalg.solve(K, B), 1e-9)


@given(seed=seeds, n=st.integers(1, 9))
@few
def test_tree_sparse_factorisation_solves_as_numpy_does(seed: int, n: int) -> None:
    """H is built as the book says: sum over coordinates of rank-one parts along their paths to the root."""
    rng = np.random.default_rng(seed)
    ancestor = [int(rng.integers(-1, k)) for k in range(n)]
    H, H_full = np.zeros((n, n)), rng.standard_normal((n, 2))
    for k in range(n):
        path, i = [], k
        while i >= 0:
            path.append(i)
            i = ancestor[i]
        u = np.zeros(n)
        u[path] = rng.standard_normal(len(path))
        H += np.outer(u, u) + 0.1 * np.diag(np.eye(n)[k])
    X = np.linalg.solve(H, H_full)
    close(tree_solve(tree_factor(H, ancestor), ancestor, H_full), X, 1e-10)
    close(tree_solve(tree_factor(H, ancestor), ancestor, H_full[:, 0]), X[:, 0], 1e-10)
    (got,) = on_symbols(lambda H, b: tree_solve(tree_factor(H, ancestor), ancestor, b), H, H_full)
    close(np.array(got), X, 1e-10)


def test_snap_touches_only_what_is_near_zero_and_one() -> None:
    given_ = np.array([1e-10, -1e-10, 1 + 1e-10, -1 + 1e-10, 1e-8, 0.5, 2 + 1e-10, -3.0])
    close(snap(given_, 1e-9), np.array([0, 0, 1, -1, 1e-8, 0.5, 2 + 1e-10, -3.0]), 0)
    assert not np.signbit(snap(np.array([-1e-12]), 1e-9))[0]
    close(snap(given_, 0.0), given_, 0)


# Numbers and symbols.


def solid(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray]:
    return rng.uniform(0.1, 5), rng.standard_normal(3), random_inertia(rng)


TEXTS: dict[str, tuple[Callable[..., Any], Callable[[np.random.Generator], tuple[Any, ...]]]] = {
    "rotation_exp": (ro.rotation_exp, lambda r: (r.standard_normal(3),)),
    "rotation_log": (ro.rotation_log, lambda r: (random_rotation(r),)),
    "rotation_integral": (ro.rotation_integral, lambda r: (r.standard_normal(3),)),
    "rotation_of_quaternion": (ro.rotation_of_quaternion, lambda r: (r.standard_normal(4),)),
    "quaternion_of_rotation": (ro.quaternion_of_rotation, lambda r: (random_rotation(r),)),
    "quaternion_product": (ro.quaternion_product, lambda r: (r.standard_normal(4), r.standard_normal(4))),
    "quaternion_log": (ro.quaternion_log, lambda r: (r.standard_normal(4),)),
    "quaternion_rates": (ro.quaternion_rates, lambda r: (r.standard_normal(4), r.standard_normal(3))),
    "rotation_of_rpy": (ro.rotation_of_rpy, lambda r: (r.standard_normal(3),)),
    "crm": (sp.crm, lambda r: (r.standard_normal(6),)),
    "crf": (sp.crf, lambda r: (r.standard_normal(6),)),
    "crf_bar": (sp.crf_bar, lambda r: (r.standard_normal(6),)),
    "inertial_force": (sp.inertial_force, lambda r: (six(r), *r.standard_normal((2, 6)))),
    "kinetic_energy": (sp.kinetic_energy, lambda r: (six(r), r.standard_normal(6))),
}


def six(rng: np.random.Generator) -> np.ndarray:
    m, c, I_C = solid(rng)
    return sp.rigid_inertia(m, m * c, sp.inertia_about_origin(m, c, I_C))


@pytest.mark.parametrize("name", TEXTS)
@given(seed=seeds)
@settings(max_examples=4)
def test_one_text_gives_the_same_numbers_from_arrays_and_from_symbols(name: str, seed: int) -> None:
    text, draw = TEXTS[name]
    args = draw(np.random.default_rng(seed))
    numeric = text(*args)
    numeric = numeric if isinstance(numeric, tuple) else (numeric,)
    symbolic = on_symbols(text, *args)
    assert len(numeric) == len(symbolic)
    for a, b in zip(numeric, symbolic, strict=True):
        close(a, np.array(b).reshape(np.shape(a)), 1e-12)


SYMBOL = ca.SX.sym("s")
OPERANDS = [
    ca.SX.sym("x", 3), ca.SX.sym("X", 3, 3), SYMBOL, ca.SX(3, 1), ca.vertcat(ca.SX(1, 1), SYMBOL, 0), ca.SX(0), 2.0,
    0.0, 1.0, float("inf"), 3, np.float64(2.5), np.arange(3.0), ca.DM([1, 0, 2]),
]  # fmt: skip
OPERATORS = {operator.add: ca.plus, operator.sub: ca.minus, operator.mul: ca.times, operator.truediv: ca.rdivide}


@pytest.mark.parametrize("quick", OPERATORS, ids=lambda f: f.__name__)
def test_operators_of_symbols_give_what_the_functions_of_casadi_give(quick: Callable[..., Any]) -> None:
    """The same expressions with the same structural zeros, of any two operands, and the same refusals."""
    assert is_symbol(SYMBOL)  # which makes the operators quick
    for x, y in itertools.product(OPERANDS, OPERANDS):
        if isinstance(x, ca.SX) or isinstance(y, ca.SX):
            found = [_expression(f, x, y) for f in (quick, OPERATORS[quick])]
            assert found[0] == found[1], (x, y)


def _expression(f: Callable[..., Any], *operands: Any) -> Any:
    try:
        result = f(*operands)
    except RuntimeError:
        return "refused"
    return type(result), str(result), str(result.sparsity())
