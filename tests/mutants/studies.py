# ruff: noqa: E501
"""Mutants of `studies`: distributions, designs, indices, plots, study files; bits of members, stores, workers, reductions."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, changes

DESIGNS, PLOTS, FILES = "product/test_designs.py", "product/test_study_plots.py", "product/test_study_files.py"
SWEEPS = "product/test_sweeps.py::"
STORES = f"{SWEEPS}test_an_interrupted_study_goes_on {SWEEPS}test_damage_is_found_and_mended {SWEEPS}test_a_store_of_something_else_is_refused {SWEEPS}test_a_longer_study_keeps_what_there_is"
MUTANTS: list[Mutant] = [
    *changes(
        "studies/distribution.py", DESIGNS,
        ("np.where(u * width <= rise, below, above)", "np.where(u * width <= rise, above, below)", "the halves of a triangular distribution are swapped"),
        ("mean * np.exp(s * ndtri(u) - s * s / 2)", "mean * np.exp(s * ndtri(u))", "a log-normal distribution has its median for its mean"),
        ("if not low <= mode <= high:", "if not low <= mode:", "a mode beyond the highest value passes"),
    ),
    *changes(
        "studies/design.py", DESIGNS,
        ("np.array_equal(self.values[: len(other)], other.values)", "np.array_equal(self.values[-len(other) :], other.values)", "a design extends another that is its end"),
        ("own = [dims[axis] if axis in axes else 1 for axis in places]", "own = [dims[axis] if axis in axes else 1 for axis in places[::-1]]", "the axes of a grid are mixed up"),
        ("if n > 1 and n & (n - 1) == 0 else", "if n > 1 else", "any number of samples passes for Saltelli's design"),
        ("np.random.default_rng(seed).random((n, d))", "np.random.default_rng(seed).random((d, n)).T", "random samples of a longer design are others"),
        ("return np.asarray(qmc.Sobol(d, seed=seed).random(n))", "return np.asarray(qmc.Sobol(d, seed=0).random(n))", "the seed is not used"),
    ),
    *changes(
        "studies/indices.py", PLOTS,
        ("total=\"ST\", total_interval=\"ST_conf\")\n\n\ndef _morris", "total=\"S1\", total_interval=\"ST_conf\")\n\n\ndef _morris", "total indices are those of first order"),
        ("np.isfinite(y).reshape(-1, whole).all(axis=1)", "np.isfinite(y).reshape(-1, whole).any(axis=1)", "a failed member does not take its block along"),
        ("1 - float(((w - z @ line) ** 2).sum() / (w**2).sum())", "float(((w - z @ line) ** 2).sum() / (w**2).sum())", "what a line explains is what it does not"),
    ),
    *changes(
        "studies/plots.py", PLOTS,
        ("values = found.array.transpose(y.name, x.name, *others).values", "values = found.array.transpose(y.name, x.name, *others).values[::-1]", "a heat map is upside down"),
        ("_mark_failed(axes, x[bad.any(axis=(0, 1))])", "pass", "failed members are not marked"),
    ),
    *changes(
        "studies/study_file.py", FILES,
        ("return np.geomspace(low, high, values[\"count\"])", "return np.linspace(low, high, values[\"count\"])", "logarithmic spans are even"),
        ("return make(*(reader.inner(numbers[name], f\"{kind}.{name}\").number(unit) for name in names))", "return make(*(reader.inner(numbers[name], f\"{kind}.{name}\").quantity().value for name in names[::-1]))", "numbers of a distribution are read in another order"),
    ),
    *changes(
        "studies/store.py", STORES,
        ("if digest == _line_digest(rest):", "if rest:", "a line of the journal that was cut off is believed"),
        ("if _digest_of(place / file) != digest:", "if not (place / file).exists():", "a changed file counts as complete"),
        ("other = [name for name in parts if own.get(name) != parts[name]]", "other = []", "any store is taken for this study's"),
        (".get(\"members\") != [lo, hi])", ".get(\"members\") is None)", "a chunk that has grown counts as complete"),
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
