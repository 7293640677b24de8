"""Symmetric matrices of small blocks solved by rounds, against NumPy: any pattern, in a batch, in both precisions."""

from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest

from cardan.errors import CardanError, OutOfMemoryError
from cardan.machines import host
from cardan.machines.ufunc.kernel import compile_program
from cardan.program.elimination import eliminate
from cardan.program.fronts import PANEL
from cardan.program.program import Port, Program
from cardan.program.schedule import Round, Schedule

NOTHING = ca.SX(0, 1)


def solver(sizes, pairs, fronts=None):
    """A kernel (matrix, right sides (2, n)) -> solutions and the pivots (3, n); what the elimination is."""
    n, first = sum(sizes), np.cumsum([0, *sizes])
    e = eliminate(sizes, pairs, 5, sides=2, fronts=fronts)
    touching = {frozenset(pair) for pair in pairs}
    blocks = [(i, i, at) for i, at in enumerate(e.diagonal)]
    blocks += [(*key, at) for key, at in e.below.items() if frozenset(key) in touching]
    loads = [(at + r + sizes[i] * c, (first[i] + r) * n + first[j] + c)
             for i, j, at in blocks for c in range(sizes[j]) for r in range(sizes[i])]  # fmt: skip
    right = [at + r + c * e.stride for c in range(2) for i, at in enumerate(e.right) for r in range(sizes[i])]
    pivots = [at + r for i, at in enumerate(e.pivots) for r in range(sizes[i])]
    u, s = ca.SX.sym("u"), ca.SX.sym("s")
    load = (ca.Function("load", [NOTHING, u, s], [u]),)
    rounds = [
        *e.clear,
        Round(load, (0,), (), np.array([[0, 0, k, at] for at, k in loads]), states=1),
        Round(load, (1,), (), np.array([[0, 0, k, at] for k, at in enumerate(right)]), states=1),
        *(*e.factor, *e.solve),
        Round((ca.Function("give", [NOTHING, s], [NOTHING, s]),), (), (0,),
              np.array([[0, 0, at, k] for k, at in enumerate(right + pivots)]), states=1),
    ]  # fmt: skip
    schedule = Schedule(tuple(rounds), np.zeros(0), 5 + e.size, ())
    ports = (Port("A", (n, n)), Port("b", (2, n))), (Port("x", (3, n)),)
    return compile_program(Program("solve", *ports, f"{sizes}{pairs}", lambda: schedule)), e


def matrices(rng, sizes, pairs, count, rank=None):
    """Positive semidefinite matrices (count, n, n) with blocks where pairs touch; each pair and each row adds some."""
    n, first = sum(sizes), np.cumsum([0, *sizes])
    A = np.zeros((count, n, n))
    for i, j in [*pairs, *((i, i) for i in range(len(sizes)))]:
        rows = sorted({*range(first[i], first[i + 1]), *range(first[j], first[j + 1])})
        G = rng.normal(size=(count, len(rows), len(rows) if rank is None else rank))
        A[:, np.array(rows)[:, None], rows] += G @ G.swapaxes(-1, -2)
    return A


@pytest.mark.parametrize(("count", "more", "fronts"), [(25, 0, False), (20, 18, False), (36, 90, True)])
def test_solutions(count, more, fronts):
    """Chains, whose columns take one step, and random patterns with fill-in, by blocks and by dense fronts."""
    rng = np.random.default_rng(count)
    sizes = rng.integers(1, 3, size=count).tolist()
    pairs = [(i, i + 1) for i in range(count - 1) if i != 7]
    pairs += [tuple(rng.choice(count, 2, replace=False).tolist()) for _ in range(more)]
    kernel, e = solver(sizes, pairs, fronts)
    A, b = matrices(rng, sizes, pairs, 11), rng.normal(size=(11, 2, sum(sizes)))
    A += np.eye(sum(sizes))
    expected = np.linalg.solve(A, b.swapaxes(1, 2)).swapaxes(1, 2)
    found = kernel(A, b)
    np.testing.assert_allclose(found[:, :2], expected, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(np.prod(found[:, 2], axis=1), np.linalg.det(A), rtol=1e-9)
    assert (kernel(A[2], b[2]) == kernel(A, b)[2]).all()  # one lane and many have the same bits
    if fronts or not more:  # the same steps on other numbers: compiled twice, not three times
        single = kernel(A.astype(np.float32), b.astype(np.float32))[:, :2]
        np.testing.assert_allclose(single, expected, rtol=1e-3, atol=1e-3 * abs(expected).max())
    if fronts:
        found = e.factor[1].fronts
        assert found.column("pivots").sum() == sum(sizes)
        assert 1 < len(found.records) < count
        assert found.column("pivots").max() > PANEL
    assert sorted(e.order) == list(range(count))
    place = np.argsort(e.order)
    assert all(place[i] > place[j] for i, j in e.below)
    if not more:
        assert e.order == tuple(range(count))
        assert set(e.below) == {(j, i) for i, j in pairs}


@pytest.mark.parametrize("fronts", [False, True])
def test_where_rows_are_dependent(fronts):
    """A singular matrix: the solution is bounded and solves the equations, if they can be solved."""
    rng = np.random.default_rng(1)
    sizes, pairs = [2, 3, 2, 3], [(0, 1), (1, 2), (2, 3), (3, 0)]
    kernel, _ = solver(sizes, pairs, fronts)
    A = matrices(rng, sizes, pairs, 4, rank=1)
    A[:, 4, :] = A[:, :, 4] = 0  # a row that vanishes
    assert np.linalg.matrix_rank(A[0]) < 9
    b = (A @ rng.normal(size=(4, 10, 2))).swapaxes(1, 2)
    x = kernel(A, b)[:, :2]
    np.testing.assert_allclose(x @ A, b, atol=1e-7)
    assert abs(x).max() < 1e6


@pytest.mark.parametrize("fronts", [False, True])
def test_nearly_dependent_rows(fronts):
    """As accurate as rounding of the matrix allows, however small the last pivot is; bounded where it is zero."""
    kernel, _ = solver([1, 1], [(0, 1)], fronts)
    r = 2.0 ** -np.array([4, 12, 20, 26, 30])  # relative pivots, exact
    A = np.array([[[1, 1], [1, 1 + x]] for x in r])
    b = np.random.default_rng(2).normal(size=(len(r), 2, 2))
    second = (b[..., 1] - b[..., 0]) / r[:, None]
    exact = np.stack([b[..., 0] - second, second], axis=-1)
    error = abs(kernel(A, b)[:, :2] - exact).max(axis=(1, 2)) / abs(exact).max(axis=(1, 2))
    assert (error < 4e-16 / r).all()
    found = kernel(np.ones((2, 2)), np.ones((2, 2)))
    np.testing.assert_array_equal(found, [[1, 0], [1, 0], [1, 0]])  # the last row depends on the first: left out


def test_little_fill():
    """A star with its hub first would fill up; in the order found nothing is filled. A grid fills less than in rows."""
    star = eliminate([1] * 30, [(0, i) for i in range(1, 30)])
    assert len(star.below) == 29
    n = 12
    grid = [(n * i + j, n * i + j + 1) for i in range(n) for j in range(n - 1)]
    grid += [(n * i + j, n * i + n + j) for i in range(n - 1) for j in range(n)]
    assert len(eliminate([1] * n * n, grid, fronts=False).below) < 0.6 * n**3
    assert len(eliminate([1] * n * n, grid, fronts=True).below) == len(grid)


def test_pairs_outside_are_refused():
    with pytest.raises(CardanError, match="2 block rows"):
        eliminate([1, 1], [(0, 2)])
    with pytest.raises(CardanError, match="at least one row"):
        eliminate([1, 0], [])


@pytest.mark.parametrize("rows", [1, 40])
def test_no_memory(rows):
    """A kernel that gets no memory raises a sentence; the next one computes."""
    x, s = ca.SX.sym("x"), ca.SX.sym("s")
    step = ca.Function("step", [ca.SX(0, 1), x, s], [ca.SX(0, 1), x + 1])
    for state, is_possible in ((1 << 20, True), (1 << 43, False), (1 << 16, True)):
        round_ = Round((step,), (0,), (0,), np.array([[0, 0, 0, 0, 0]]), states=1)
        schedule = Schedule((round_,), np.zeros(0), state, ())
        program = Program("huge", (Port("x", (1,)),), (Port("y", (1,)),), f"state {state}", lambda s=schedule: s)
        kernel = compile_program(program)
        given = np.arange(float(rows))[:, None]
        for _ in range(2):  # the second call takes the fast path
            if is_possible:
                np.testing.assert_array_equal(kernel(given), given + 1)
                continue
            with pytest.raises(OutOfMemoryError, match=r"huge: the system has not given the .* MB that each thread"):
                kernel(given)


def test_kept_memory():
    """Large kernels share one block of memory from call to call; threads that call them at once get the same bits."""
    cases = []
    for count in (60, 90):
        sizes, pairs = [2] * count, [(i, i + 1) for i in range(count - 1)]
        kernel, _ = solver(sizes, pairs)
        rng = np.random.default_rng(count)
        A, b = matrices(rng, sizes, pairs, 1)[0] + np.eye(2 * count), rng.normal(size=(2, 2 * count))
        cases.append((kernel, A, b, kernel(A, b)))
    kept = host._kept_memory.value
    (small, *given, first), (large, *others, second) = cases
    assert (small(*given) == first).all() and host._kept_memory.value == kept  # the larger block serves both
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(kernel, A, b) for _ in range(50) for kernel, A, b, _ in cases]
        assert all((call.result() == (first, second)[k % 2]).all() for k, call in enumerate(calls))
    assert (large(*others) == second).all() and host._kept_memory.value
