"""Rounds of a schedule: steps with any number of states, runs of rows, constants as literals."""

import casadi as ca
import numpy as np
import pytest

from cardan.errors import CardanError
from cardan.machines.ufunc.kernel import compile_program
from cardan.program.program import Port, Program
from cardan.program.schedule import Round, Schedule

NODES, SIZE, ROWS = 7, 2, 40


def steps():
    """Three steps (constants (3), input (2), three states (2)) that write one, two or none of their states."""
    C, u, *S = (ca.SX.sym(name, n) for name, n in (("C", 3), ("u", 2), ("a", SIZE), ("b", SIZE), ("c", SIZE)))
    none = ca.SX(0, 1)
    first = ca.vertcat(ca.cos(S[0][0] * C[0] + S[2][1]), ca.SX(1, 1))  # a structural zero, which stays
    return (
        ca.Function("one", [C, u, *S], [none, ca.SX(SIZE, 1), S[0] * C[1] + ca.sin(u - S[1] * S[2]), S[0] + C[2]]),
        ca.Function("two", [C, u, *S], [first, none, S[1] / 2 + ca.sin(S[0] * C[0]), S[1] * u]),
        ca.Function("none", [C, u, *S], [none, none, none, S[0] + S[1] + S[2] * C[1]]),
    )


def random_schedule(rng):
    """Rows with steps in random order, then runs of rows with offsets that grow by constant steps."""
    calls = steps()
    nodes = np.array([rng.permutation(NODES)[:3] for _ in range(ROWS)]) * SIZE
    free = np.column_stack([rng.integers(3, size=ROWS), 3 * rng.integers(4, size=ROWS), 2 * rng.integers(5, size=ROWS)])
    table = np.hstack([free, nodes, 2 * np.arange(ROWS)[:, None]])
    rows = np.arange(NODES - 2)
    regular = np.column_stack([0 * rows, 0 * rows, 2 * (rows % 5), *(SIZE * (rows + k) for k in range(3))])
    table[10 : 10 + len(rows), :-1] = regular
    constants = np.array([*rng.normal(size=(4, 3))])
    constants[:, 1] = 0.5  # the same wherever a step takes it from
    initial = tuple(enumerate(rng.normal(size=NODES * SIZE).tolist()))
    round_ = Round(calls, (0,), (0,), table, states=3)
    return Schedule((round_, round_), constants.ravel(), NODES * SIZE, initial)


def evaluated(schedule, u):
    """What the schedule computes for one input, by CasADi, row by row."""
    state, out = np.array([x for _, x in schedule.initial]), np.zeros(2 * ROWS)
    for r in schedule.rounds:
        for call, c, i, *at, o in r.table.tolist():
            arguments = [schedule.constants[c : c + 3], u[i : i + 2], *(state[k : k + SIZE] for k in at)]
            *states, given = r.calls[call].call([ca.DM(x) for x in arguments])
            out[o : o + 2] = np.array(given).ravel()
            for k, new in zip(at, states, strict=True):
                state[[k + e for e in new.sparsity().row()]] = new.nonzeros()
    return out


def test_steps_with_many_states():
    """A batch in lanes and rows of its own equal the steps taken one after the other, in both precisions."""
    rng = np.random.default_rng(0)
    schedule = random_schedule(rng)
    u = rng.normal(size=(11, 10))
    expected = np.array([evaluated(schedule, row) for row in u])
    for name, s in (("plain", schedule), ("literals", schedule.with_literals())):
        ports = (Port("u", (10,)),), (Port("out", (2 * ROWS,)),)
        kernel = compile_program(Program(name, *ports, "key", lambda s=s: s))
        np.testing.assert_allclose(kernel(u), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(kernel(u[3]), expected[3], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(kernel(u.astype(np.float32)), expected, rtol=2e-3, atol=2e-3)
    taken, folded = (sum(s.operations().values()) for s in (schedule, schedule.with_literals()))
    assert folded <= taken


def test_runs_are_the_table():
    """Runs, written out, are the rows of the table; regular rows make few runs."""
    rng = np.random.default_rng(5)
    for _ in range(30):
        parts = [
            rng.integers(3, size=4) * [0, 1, 2, 3] + np.outer(np.arange(n), [0, *rng.integers(4, size=3)])
            for n in rng.integers(1, 6, size=rng.integers(1, 9))
        ]
        table = np.vstack(parts)
        table[:, 0] = np.repeat(rng.integers(2, size=len(parts)), [len(p) for p in parts])
        call = ca.Function("f", [ca.SX.sym("C"), ca.SX.sym("a"), ca.SX.sym("b")], [ca.SX(0, 1), ca.SX(0, 1)])
        runs = Round((call, call), (), (), table).runs
        rows = [[c, *(first + i * step)] for c, n, first, step in _split(runs) for i in range(n)]
        np.testing.assert_array_equal(rows, table)
        assert len(runs) <= 2 * len(parts)


def _split(runs):
    for call, count, *offsets in runs.tolist():
        n = len(offsets) // 2
        yield call, count, np.array(offsets[:n]), np.array(offsets[n:])


def test_offsets_outside_the_memory_are_refused():
    S = ca.SX.sym("S", 2)
    call = ca.Function("grow", [ca.SX(0, 1), S], [S * 2])
    for at, right in ((0, True), (3, True), (4, False), (-1, False)):
        rounds = (Round((call,), (), (), np.array([[0, 0, at]]), states=1),)
        if right:
            Schedule(rounds, np.zeros(0), 5, ())
        else:
            with pytest.raises(CardanError, match="'grow' would take its state 0 from outside the 5"):
                Schedule(rounds, np.zeros(0), 5, ())
    with pytest.raises(CardanError, match="ports"):
        Round((call,), (), (), np.zeros((1, 3), int), states=2)
