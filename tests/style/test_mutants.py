"""tests/mutants: every mutant fits the source, has tests that exist, and is there once."""

from collections import Counter

from tests.mutants.catalogue import MUTANTS, faults


def test_every_mutant_fits_the_source():
    wrong = {f"{m.file}: {m.meaning}": why for m in MUTANTS if (why := list(faults(m)))}
    assert not wrong, "python -m tests.mutants --stale tells the same; mend or remove: " + str(wrong)


def test_there_are_enough_and_each_is_there_once():
    rooms = Counter(m.room for m in MUTANTS if not m.equivalent)
    assert sum(rooms.values()) >= 200
    assert min(rooms[room] for room in ("algebra", "formulation", "structure", "integrate", "machines", "model")) >= 20
    assert len({(m.file, m.old, m.new) for m in MUTANTS}) == len(MUTANTS)
    assert all(m.old != m.new for m in MUTANTS)
