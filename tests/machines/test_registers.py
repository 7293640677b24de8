"""Orders of values with few of them waiting, their places in memory, and lines that use them: to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fake_card import fake_cards

import cardan as cd
from cardan import mechanisms
from cardan.machines.llvm import thread
from cardan.machines.llvm.registers import Compute, Put, frugal_order, gathered, most_waiting, place

Reads = dict[int, tuple[int, ...]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Reads, set[int]]:
    """Values from 3 on that read earlier ones; 0, 1 and 2 are given. Some are kept."""
    reads: Reads = {}
    for k in range(3, 3 + draw(st.integers(1, 40))):
        reads[k] = tuple(sorted(draw(st.sets(st.integers(0, k - 1), max_size=3))))
    return reads, draw(st.sets(st.sampled_from(sorted(reads)), max_size=4))


@given(graphs(), st.booleans(), st.integers(4, 12))
@settings(max_examples=60, deadline=None)
def test_moves_compute_every_value_in_so_many_registers(graph: tuple[Reads, set[int]], recent: bool, room: int) -> None:
    reads, kept = graph
    order = gathered(frugal_order(reads, kept, recent), reads, {k for k in reads if k % 5 == 0}, 3)
    placement = place(order, reads, room, kept)
    stored: set[int] = set()
    used = {a for operands in reads.values() for a in operands} | kept
    number = {k: 10.0 + k for k in range(3)}
    here, memory, done = {k: number[k] for k in range(3) if k in used}, dict[int, float](), set[int]()
    last = {k: n for n, k in enumerate(order)}
    for n, k in enumerate(order):
        for a in reads[k]:
            last[a] = max(last.get(a, -1), n)
    step = 0
    for move in placement.moves:
        k = move.value
        if isinstance(move, Put):
            memory[move.place] = here.pop(k)
            stored.add(k)
        elif isinstance(move, Compute):
            number[k] = 1.0 + sum((n + 1) * number[a] for n, a in enumerate(reads[k]))
            assert all(here[a] == number[a] for a in reads[k]), "an operand is not in its register"
            # what was stored once may leave its register without a move
            assert sum(a not in stored for a in here) <= room
            assert not done.intersection((k,))
            done.add(k)
            here = {a: x for a, x in here.items() if a in kept or last[a] > step}
            if k in used:
                here[k] = number[k]
            step += 1
        else:
            here[k] = memory[move.place]
            assert here[k] == number[k], "a place was used again too early"
    assert done == set(reads)
    assert all(here[k] == number[k] for k in kept)
    if most_waiting(order, reads, kept) <= room - 1:
        assert placement.traffic == 0


def test_few_registers_and_loops_of_angles_leave_the_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    model = mechanisms.chain(4).build()
    q = np.linspace(-3, 3, 33 * model.nq).reshape(33, model.nq)
    q[5, 2], q[6, 1] = 1e7, -1e20  # large angles
    v = np.cos(3 * q)
    for dtype in (np.float64, np.float32):
        x = q.astype(dtype), v.astype(dtype)
        expected = cd.forward_dynamics(model, *x)
        for room, own in ((20, 0), (20, 10**9)):
            monkeypatch.setattr(thread, "ROOM", {"float": room, "double": room})
            monkeypatch.setattr(thread, "FITS", {"float": 0, "double": 0})
            monkeypatch.setattr(thread, "OWN", own)
            monkeypatch.setattr(thread, "LOOPED", 1 if own else 99)
            monkeypatch.setattr(thread, "TOGETHER", 2)
            with fake_cards():
                fresh = mechanisms.chain(4).build()
                assert np.array_equal(cd.forward_dynamics(fresh, *x, device="gpu"), expected)
