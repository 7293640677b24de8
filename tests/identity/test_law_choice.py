"""The choice of modes on random problems: forces keep their laws, whatever depends on what."""

from dataclasses import replace

import numpy as np
import pytest

from cardan.model.row import Law
from cardan.structure.law_choice import LawProblem, LawTable, choose, independent, residual

GAP, STICK = Law.UNILATERAL, Law.FRICTION


def problems(rng: np.random.Generator, table: LawTable, rank: int, count: int) -> LawProblem:
    """Random rows, all closed and at rest, of which `rank` are independent."""
    m = len(table)
    J = rng.standard_normal((count, m, rank))
    W, b = J @ np.swapaxes(J, 1, 2), (J @ rng.standard_normal((count, rank, 1)))[..., 0]
    friction = np.broadcast_to(table.of(STICK), b.shape)
    constant = np.where(friction, rng.uniform(0, 1, b.shape), 0.0) * (np.array(table.normal) < 0)
    for rows in table.disc:
        constant[:, rows] = constant[:, rows[:1]]
    mu = np.where(np.array(table.normal) >= 0, rng.uniform(0, 0.3, (count, 1)), 0.0)
    nothing = np.zeros((*b.shape, 3, m + 1))
    gaps = np.broadcast_to(table.of(GAP), b.shape)
    return LawProblem(b, W, constant, mu, constant, mu, nothing, gaps, friction, np.zeros_like(b))


TABLES = {
    "gaps": LawTable((GAP,) * 4, (-1,) * 4, ((),) * 4),
    "friction": LawTable((STICK,) * 4, (-1,) * 4, ((),) * 4),
    "gaps and friction": LawTable((GAP, STICK, GAP, STICK), (-1,) * 4, ((),) * 4),
    "contacts": LawTable((GAP, STICK, GAP, STICK), (-1, 0, -1, 2), ((),) * 4),
    "disc": LawTable((GAP, STICK, STICK), (-1, 0, 0), ((), (1, 2), (1, 2))),
    "ball": LawTable((STICK,) * 4, (-1,) * 4, ((0, 1, 2),) * 3 + ((),)),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("rank", [2, 6])
def test_random_problems_are_solved(name, rank):
    table = TABLES[name]
    problem = problems(np.random.default_rng(rank), table, rank, 60)
    found = choose(table, problem)
    least = {"contacts": 0.9, "disc": 0.9}.get(name, 1.0)  # without bounds by normal forces always
    assert found.found.mean() >= least
    assert residual(table, problem, found)[found.found].max(initial=0.0) < 1e-9
    if name != "contacts":  # one motion, however forces are shared
        other = choose(table, LawProblem(*(x.copy() for x in vars(problem).values())))
        assert (other.x == found.x).all() and found.single[found.found].all()


def test_independent_rows_span_all():
    rng = np.random.default_rng(1)
    J = rng.standard_normal((20, 6, 3))
    W = J @ np.swapaxes(J, 1, 2)
    rows = rng.uniform(size=(20, 6)) < 0.7
    kept = independent(W, rows)
    assert (kept <= rows).all()
    for own, some, k in zip(J, kept, rows, strict=True):
        assert np.linalg.matrix_rank(own[some]) == some.sum() == np.linalg.matrix_rank(own[k])


def test_many_rows_are_proposed():
    """Seven frictions and a gap have more sets of modes than are tried."""
    table = LawTable((*(STICK,) * 7, GAP), (-1,) * 8, ((),) * 8)
    problem = problems(np.random.default_rng(3), table, 10, 6)
    found = choose(table, problem)
    assert found.found.all() and residual(table, problem, found).max() < 1e-9
    assert 0 < found.mode.mean() < 1  # some stick, some slide


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_small_and_large_problems_are_the_same(size):
    """Friction bounded by a reaction, and a gap: forces grow with what drives them."""
    table, rng = LawTable((STICK, GAP), (-1, -1), ((),) * 2), np.random.default_rng(5)
    J = rng.standard_normal((40, 2, 5))
    W, b = J @ np.swapaxes(J, 1, 2), rng.standard_normal((40, 2)) * [1.0, 1e-3]
    mu = np.broadcast_to([0.05, 0.0], b.shape)
    reaction = np.zeros((40, 2, 3, 3))
    reaction[:, 0, :, 1:] = rng.standard_normal((40, 3, 2))  # of an impact: no part without impulses
    both, none = np.ones(b.shape, bool), np.zeros_like(b)
    gap, friction = both & [False, True], both & [True, False]
    found, scaled = (
        choose(table, LawProblem(x * b, W, none, mu, none, mu, reaction, gap, friction, none)) for x in (1.0, size)
    )
    assert found.found.all() and (found.mode[:, 0] == 0).any()
    assert scaled.found.all() and (scaled.mode == found.mode).all()
    np.testing.assert_allclose(scaled.x, size * found.x, rtol=1e-9, atol=1e-12 * size)


@pytest.mark.parametrize("name", TABLES)
def test_a_system_of_a_batch_has_its_own_answer_to_the_bit(name):
    table, rng = TABLES[name], np.random.default_rng(8)
    problem = problems(rng, table, 6, 12)
    if name == "friction":  # bounded by reactions, in one row
        reaction = rng.standard_normal(problem.reaction.shape) * (np.arange(len(table)) == 0)[:, None, None]
        mu = np.broadcast_to([0.2, 0, 0, 0], problem.b.shape)
        problem = replace(problem, reaction=reaction, coefficient=mu, static_coefficient=mu)
    together = choose(table, problem)
    for k in range(12):
        alone = choose(table, problem.of(np.array([k])))
        assert (alone.x == together.x[k]).all() and (alone.mode == together.mode[k]).all()
