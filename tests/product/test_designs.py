"""Designs of experiments: grids, lists, samples of distributions, tables; and what is refused."""

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import cardan as cd
from cardan.studies.design import SAMPLERS

SPREAD = {
    "a": (cd.normal(3.0, 0.2), scipy.stats.norm(3.0, 0.2)),
    "b": (cd.uniform(-1.0, 4.0), scipy.stats.uniform(-1.0, 5.0)),
    "c": (cd.triangular(0.0, 0.25, 1.0), scipy.stats.triang(0.25)),
    "d": (cd.lognormal(2.0, 0.5), None),
}


def test_distributions_are_those_of_scipy():
    """Quantiles of each; the log-normal one has the mean and the deviation that it was given."""
    u = np.random.default_rng(1).random(50)
    for own, other in SPREAD.values():
        if other is not None:
            np.testing.assert_allclose(own.quantile(u), other.ppf(u), rtol=1e-12, atol=1e-12)
    x = cd.design({"d": SPREAD["d"][0]}, samples=2**14)["d"]
    assert abs(x.mean() / 2.0 - 1) < 1e-4 and abs(x.std() / 0.5 - 1) < 1e-2 and (x > 0).all()


def test_arrays_are_spanned_and_samples_are_the_same_at_each_point():
    """Members are in C order of the axes; coordinates broadcast to the values."""
    points = np.arange(6.0).reshape(2, 3)
    found = cd.design({"g": [1.0, 2.0, 5.0], "s": cd.normal(0, 1), "B.at": points, "k": 7.0}, samples=8, seed=4)
    assert found.dims == {"g": 3, "B.at": 2, "sample": 8} and len(found) == 48
    assert found.names == ("g", "s", "B.at[0]", "B.at[1]", "B.at[2]", "k")
    whole = found.values.reshape(3, 2, 8, 6)
    assert (whole[..., 1] == whole[0, 0, :, 1]).all() and (whole[..., 5] == 7.0).all()
    assert (whole[:, :, 0, 2:5] == points).all() and (whole[:, 0, 0, 0] == [1.0, 2.0, 5.0]).all()
    for name, (axes, x) in found.coordinates.items():
        assert x.shape == tuple(found.dims[axis] for axis in axes), name


@pytest.mark.parametrize("kind", SAMPLERS)
def test_samplers_fill_their_distributions(kind):
    """The same seed gives the same samples; another seed others; those with one axis that grows extend each other."""
    spread = {"a": cd.uniform(2.0, 3.0), "b": cd.triangular(0.0, 1.0, 4.0)}
    one = cd.design(spread, kind, samples=128, seed=5)
    assert one.fingerprint == cd.design(spread, kind, samples=128, seed=5).fingerprint
    assert one.fingerprint != cd.design(spread, kind, samples=128, seed=6).fingerprint
    assert one["a"].min() >= 2.0 and one["a"].max() <= 3.0 and abs(one["a"].mean() - 2.5) < 0.1
    longer = cd.design(spread, kind, samples=256, seed=5)
    assert not one.extends(longer)
    if kind not in ("latin_hypercube", "fast", "morris"):
        assert longer.extends(one)


def test_tables(tmp_path):
    """A list, a DataFrame and a CSV file with the same numbers are the same design."""
    columns = {"crank.mass": np.array([1.0, 2.5]), "A": np.array([0.1, 0.3])}
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "table.csv", index=False)
    found = [cd.design(columns, "list"), cd.design(frame), cd.design(tmp_path / "table.csv")]
    assert len({each.fingerprint for each in found}) == 1 and found[0].dims == {"member": 2}
    pd.testing.assert_frame_equal(found[0].to_dataframe(), frame)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: cd.design({"a": [1, 2], "b": [1, 2, 3]}, "list"), "'a' has 2 values and 'b' 3"),
        (lambda: cd.normal(1, -1), "std must be a finite number, 0 or more, got -1"),
        (lambda: cd.uniform(2, 1), "low must be below high"),
        (lambda: cd.triangular(0, 2, 1), "mode must lie between"),
        (lambda: cd.design({"a": [1, np.nan]}), r"'a'\[1\] is nan"),
        (lambda: cd.design({"a": "1, 2"}), "'a' must be an array of numbers or a distribution"),
        (lambda: cd.design({"a": cd.normal(0, 1)}), "give samples="),
        (lambda: cd.design({"a": [1, 2]}, samples=9), "samples= is of distributions"),
        (lambda: cd.design({"a": [1, 2]}, "sobol"), "there are none"),
        (lambda: cd.design({"a": cd.normal(0, 1)}, "list", samples=3), "design 'list' takes arrays"),
        (lambda: cd.design({"a": cd.normal(0, 1)}, "halten", samples=3), "did you mean 'halton'"),
        (lambda: cd.design({"a": cd.normal(0, 1)}, "saltelli", samples=3), "power of two"),
        (lambda: cd.design({"a": cd.normal(0, 1)}, "morris", samples=3), "both ends of every range"),
        (lambda: cd.design({"a": cd.uniform(0, 1), "b": [1, 2]}, "fast", samples=99), "'b' is an array"),
        (lambda: cd.design({"a": scipy.stats.norm(0, -1)}, samples=3), "not finite"),
        (lambda: cd.design({"a": scipy.stats.norm}, samples=3), "has no numbers yet"),
        (lambda: cd.design({"a": range(10**5), "b": range(10**5)}), "1e.10 members"),
        (lambda: cd.design({"a": cd.normal(0, 1)}, samples=10**12), "give fewer values or samples"),
        (lambda: cd.design({"sample": [1, 2]}), "name of an axis"),
        (lambda: cd.design({"a": [[1, 2]], "a[1]": 3.0}), "given twice"),
        (lambda: cd.design({}), "parameters must be a dict"),
    ],
)
def test_refused(make, sentence):
    """One sentence for each mistake."""
    with pytest.raises(cd.InputError, match=sentence):
        make()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("a,b\n1\n", "line 2: it has 1 values"), ("a,b\n1,x\n", "line 2: 'b' must be a finite number, got 'x'"),
     ("a,a\n1,2\n", "line 1"), ("a,b\n", "no values"), ("a,b\n1,nan\n", "line 2: 'b'")],
)  # fmt: skip
def test_tables_that_are_refused(tmp_path, text, sentence):
    """The line and the column."""
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(cd.FileError, match=sentence):
        cd.design(tmp_path / "t.csv")
