# ruff: noqa: E501
"""Mutants of `studies`: bits of members, stores that are gone on with, workers that die, reductions over time."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, changes

SWEEPS = "product/test_sweeps.py::"
STORES = f"{SWEEPS}test_an_interrupted_study_goes_on {SWEEPS}test_damage_is_found_and_mended {SWEEPS}test_a_store_of_something_else_is_refused {SWEEPS}test_a_longer_study_keeps_what_there_is"
MUTANTS: list[Mutant] = [
    *changes(
        "studies/store.py", STORES,
        ("if digest == _line_digest(rest):", "if rest:", "a line of the journal that was cut off is believed"),
        ("if _digest_of(place / file) != digest:", "if not (place / file).exists():", "a changed file counts as complete"),
        ("other = [name for name in parts if own.get(name) != parts[name]]", "other = []", "any store is taken for this study's"),
        (".get(\"members\") != [lo, hi]]", ".get(\"members\") is None]", "a chunk that has grown counts as complete"),
    ),
    *changes(
        "studies/workers.py", f"{SWEEPS}test_members_that_kill_workers_are_found",
        ("results.join(found, part.lo - part.chunk[0])", "results.join(found, 0)", "parts of a chunk are mixed up"),
        ("if part.kills < KILLS:", "if part.kills < 1:", "a member is given one chance"),
    ),
    *changes(
        "studies/task.py", f"{SWEEPS}test_a_member_is_the_run_with_its_numbers {SWEEPS}test_bad_members_have_a_reason_and_stop_nobody",
        ("p[:, column.place] = values[:, k]", "p[:, column.place] = values[0, k]", "all members have the numbers of the first"),
        ("left += [some[len(some) // 2 :], some[: len(some) // 2]]", "left += [some[: len(some) // 2]]", "members beside a bad one are lost"),
        ("found.fail(int(some[0] if numbers is None else numbers[some[0]]), reason_of(error))", "pass", "a bad member has no reason"),
    ),
    *changes(
        "studies/measure.py", f"{SWEEPS}test_reductions_over_time",
        ("return _at(values, valid, valid.shape[1] - 1 - valid[:, ::-1].argmax(axis=1))", "return _at(values, valid, np.full(len(valid), valid.shape[1] - 1))", "the final value is padding"),
        ("mean = _masked((values[:, 1:] + values[:, :-1]) / 2, both, 0.0)", "mean = _masked(values[:, 1:], both, 0.0)", "the mean is not that of the trapezoidal rule"),
    ),
    *changes(
        "structure/closing.py", f"{SWEEPS}test_closing_many_equals_closing_each",
        ("np.where(last[active], 0.0, weight[active] * gap)", "np.where(last[active], 0.0, weight[active] * gap.max())", "the damping of a member depends on the others"),
    ),
]  # fmt: skip
