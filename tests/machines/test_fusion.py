"""Rounds joined into one pass do what they did one after the other, to the bit."""

import casadi as ca
import numpy as np
import pytest

from cardan.machines.ufunc.kernel import compile_program
from cardan.program.fusion import AT_ONCE, fused
from cardan.program.program import Port, Program
from cardan.program.schedule import Round, Schedule

NODES, SIZE = 24, 3


def random_round(rng, first):
    """A step on a node, its neighbour and a second array, over all nodes, upwards or downwards; constants are read."""
    C, u, a, b, c = (ca.SX.sym(name, n) for name, n in (("C", 1), ("u", 1), ("a", SIZE), ("b", SIZE), ("c", 2)))
    k, n = rng.integers(SIZE, size=4), rng.integers(2)
    own = ca.SX(SIZE, 1)
    own[int(k[0])] = ca.cos(a[int(k[1])] * C + b[int(k[2])]) + u  # other entries stay as they are
    beside = ca.SX(0, 1) if rng.integers(2) else ca.vertcat(c[1] + a[int(k[3])], ca.sin(c[0]))
    step = ca.Function("step", [C, u, a, b, c], [own, ca.SX(SIZE, 1), beside, own[int(k[0])] + c[int(n)]])
    i = np.arange(NODES - 1)
    neighbour = i + 1
    table = np.stack([0 * i, i, i, SIZE * i, SIZE * neighbour, SIZE * NODES + 2 * i, first + i], axis=1)
    if rng.integers(2):
        table[:, [3, 4]] = table[:, [4, 3]]
    table = table[::-1] if rng.integers(2) else table
    if rng.integers(3) == 0:
        table = np.vstack([table[3:5], table])  # rows out of line
    return Round((step,), (0,), (0,), table, states=3)


def joined(schedule):
    return [r for r in schedule.rounds if r.calls[0].name() == "joined"]


@pytest.mark.parametrize("seed", range(3))
def test_same_bits(seed):
    rng = np.random.default_rng(seed)
    rounds = tuple(random_round(rng, (NODES - 1) * k) for k in range(5))
    size = SIZE * NODES + 2 * NODES
    initial = tuple(enumerate(rng.normal(size=size).tolist()))
    schedule = Schedule(rounds, rng.normal(size=NODES), size, initial)
    outputs = 5 * (NODES - 1)
    found = fused(schedule)
    assert joined(found)
    u = rng.normal(size=(9, NODES))
    ports = (Port("u", (NODES,)),), (Port("out", (outputs,)),)
    kernels = [
        compile_program(Program(f"f{k}", *ports, f"{seed}", lambda s=s: s)) for k, s in enumerate((schedule, found))
    ]
    one, other = (kernel(u) for kernel in kernels)
    assert abs(one).max() > 0
    assert (one == other).all()


def test_what_nothing_reads_is_not_stored():
    """A number that passes between two rounds stays in registers; rounds that run against each other stay apart."""
    x, y, none = ca.SX.sym("x"), ca.SX.sym("y"), ca.SX(0, 1)
    i = np.arange(NODES)
    load = ca.Function("load", [none, y, x], [ca.sin(y)])
    give = ca.Function("give", [none, x], [none, 2 * x])
    first = Round((load,), (0,), (), np.stack([0 * i, 0 * i, i, i], axis=1), states=1)
    table = np.stack([0 * i, 0 * i, i, i], axis=1)
    (one,) = fused(Schedule((first, Round((give,), (), (0,), table, states=1)), np.zeros(0), NODES, ())).rounds
    assert one.states == 0
    assert len(one.table) == NODES // AT_ONCE
    against = fused(Schedule((first, Round((give,), (), (0,), table[::-1], states=1)), np.zeros(0), NODES, ()))
    assert [len(r.table) for r in against.rounds if len(r.table) > 1] != []
    assert sum(len(r.table) * r.states for r in against.rounds) > 0
