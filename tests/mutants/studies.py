# ruff: noqa: E501
"""Mutants of `studies`: distributions, designs, indices, plots, study files."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, changes

DESIGNS, PLOTS, FILES = "product/test_designs.py", "product/test_study_plots.py", "product/test_study_files.py"
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
]  # fmt: skip
