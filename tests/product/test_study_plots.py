"""Indices and plots of studies whose measures are known functions of the parameters."""

import numpy as np
import pytest

import cardan as cd
from cardan.studies.study import DONE, FAILED, Study

UNITS = {"crank.mass": "kg", "A": "rad", "rod": "m"}


def study_of(design, function, failed=None):
    """A study whose first measure is a function of the parameters."""
    y = function(*design.values.T)
    bad = np.zeros(len(y), dtype=bool) if failed is None else failed(*design.values.T)
    y = np.where(bad, np.nan, y)
    variables = {
        "peak": (("member",), y, {"units": "rad"}),
        "force": (("member", "axis"), np.stack([y, 2 * y], axis=-1), {"units": "N"}),
        "motion": (("member", "time"), y[:, None] * np.linspace(0, 1, 7), {"units": "m"}),
    }
    coords = {"axis": ["x", "y"], "time": np.linspace(0, 3, 7)}
    about = {"model": "function", "units": UNITS}
    return Study(design, variables, coords, np.where(bad, FAILED, DONE), {}, len(y), about)


def ishigami(x, y, z):
    """Ishigami and Homma (1990), with a = 7 and b = 0.1."""
    return np.sin(x) + 7 * np.sin(y) ** 2 + 0.1 * z**4 * np.sin(x)


@pytest.mark.parametrize(("kind", "samples"), [("saltelli", 2048), ("fast", 1024)])
def test_indices_of_ishigami(kind, samples):
    """Analytic values of first-order and total indices; failed members of "saltelli" take only their own block."""
    span = cd.uniform(-np.pi, np.pi)
    design = cd.design(dict.fromkeys(UNITS, span), kind, samples=samples)
    failed = (lambda x, y, z: np.arange(len(x)) % 997 == 5) if kind == "saltelli" else None
    found = study_of(design, ishigami, failed).indices()
    np.testing.assert_allclose(found["first"], [0.3139, 0.4424, 0.0], atol=0.03)
    np.testing.assert_allclose(found["total"], [0.5576, 0.4424, 0.2437], atol=0.05)
    lost = 0 if failed is None else 5 * len({k // 5 for k in range(5, len(design), 997)})
    assert found.members == len(design) - lost
    assert list(found.to_dataframe().index) == list(UNITS) and "crank.mass" in str(found)


def test_effects_and_regression_of_a_linear_function():
    """Morris' effects are slope times range; a regression explains all and weighs by the spread."""
    line = lambda x, y, z: 3 * x - 2 * y + 0.1 * z
    ranges = {"crank.mass": cd.uniform(1, 3), "A": cd.uniform(0, 1), "rod": cd.uniform(0, 4)}
    effects = study_of(cd.design(ranges, "morris", samples=4), line).indices()
    np.testing.assert_allclose(effects["mu"], [6.0, -2.0, 0.4], rtol=1e-9)
    np.testing.assert_allclose(effects["sigma"], 0.0, atol=1e-9)
    found = study_of(cd.design(ranges, "sobol", samples=256), line).indices("force", at={"axis": "y"})
    assert found.explained > 1 - 1e-12
    weights = np.array([6.0, -2.0, 0.4])
    np.testing.assert_allclose(found["coefficient"], weights / np.linalg.norm(weights), atol=0.03)


@pytest.fixture(scope="module")
def grid():
    """A study over a grid with failed members in a corner."""
    design = cd.design({"crank.mass": [1.0, 2.0, 4.0], "A": [0.0, 1.0], "rod": 0.3})
    return study_of(design, lambda x, y, z: x + 10 * y, lambda x, y, z: (x > 3) & (y > 0.5))


def test_lines_maps_and_bars(grid):
    """What is drawn are the measures at their parameters, with units; failed members are marked, not joined."""
    (axes,) = grid.plot("peak", angle="deg").axes
    assert [axes.get_xlabel(), axes.get_ylabel()] == ["crank.mass (kg)", "peak (deg)"]
    lines = {line.get_label(): line.get_xydata() for line in axes.lines if line.get_gid() != "failed"}
    np.testing.assert_allclose(lines["A = 1 rad"], [[1, np.degrees(11)], [2, np.degrees(12)], [4, np.nan]])
    assert [line.get_xdata().tolist() for line in axes.lines if line.get_gid() == "failed"] == [[4.0]]
    assert axes.get_title(loc="right") == "× 1 failed of 6 members"
    axes, bar = grid.plot_map("force", at={"axis": "y"}).axes
    assert bar.get_ylabel() == "force, y (N)" and axes.get_ylabel() == "A (rad)"
    cells = axes.collections[0].get_array()
    np.testing.assert_allclose(cells.filled(-1), [[2, 4, 8], [22, 24, -1]])
    (axes,) = grid.plot_tornado().axes
    # the middle is crank.mass 2 and A 1, where it is 12; the highest crank.mass failed there
    bars = {round(bar.get_y()): (bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches if bar.get_width()}
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert {names[k]: ends for k, ends in bars.items()} == {"A": (2.0, 12.0), "crank.mass": (11.0, 12.0)}
    (axes,) = grid.plot("motion", at={"A": 0.2}).axes
    assert axes.get_xlabel() == "time (s)" and len(axes.lines) == 3


def test_samples(grid):
    """Scatter, histogram and band of a sampled study."""
    spread = {"crank.mass": cd.normal(1, 0.1), "A": cd.uniform(0, 1), "rod": 0.2}
    found = study_of(cd.design(spread, samples=64), lambda x, y, z: x + y, lambda x, y, z: y > 0.95)
    figure = found.plot_scatter()
    assert [at.get_xlabel() for at in figure.axes] == ["crank.mass (kg)", "A (rad)"]
    failed = next(line.get_xdata() for line in figure.axes[1].lines if line.get_gid() == "failed")
    assert (failed > 0.95).all() and len(failed) == found.failed.sum() > 0
    (axes,) = found.plot_histogram().axes
    drawn = sum(patch.get_height() for patch in axes.patches)
    assert drawn == (~found.failed).sum()
    middle = np.nanmedian(found["peak"].values)
    assert any(np.allclose(line.get_xdata(), middle) for line in axes.lines)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.plot("pek"), "did you mean 'peak'"),
        (lambda s: s["pek"], "did you mean 'peak'"),
        (lambda s: s.plot("force"), r"take one of them, as at=\{'axis': 'x'\}"),
        (lambda s: s.plot("peak", "B"), "'B' is not a parameter"),
        (lambda s: s.plot("force", at={"axis": "w"}), "'axis' has no entry 'w'"),
        (lambda s: s.plot("peak", angle="grad"), "'rad' or 'deg'"),
        (lambda s: s.plot_map(at={"A": 1}), "two parameters"),
        (lambda s: s.plot_histogram(levels=(5,)), "0 to 1"),
        (lambda s: s.indices("motion"), "7 numbers along 'time'"),
    ],
)
def test_refused(grid, call, sentence):
    """One sentence for each mistake."""
    with pytest.raises(cd.CardanError, match=sentence):
        call(grid)
