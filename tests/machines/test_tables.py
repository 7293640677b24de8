"""Tables and their derivatives give on every machine what CasADi gives, and what SciPy gives where it has the same."""

import pickle

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, PchipInterpolator, RectBivariateSpline, RegularGridInterpolator
from tests.ptx import fault, make

import cardan as cd
from cardan.errors import CardanError
from cardan.machines.host import host, load, to_object
from cardan.machines.javascript.module import JavaScriptPrinter
from cardan.machines.llvm import interpreted
from cardan.machines.noise import evaluated, plan
from cardan.machines.ufunc.gufunc import LoopAddresses, make_gufunc
from cardan.model.table import ENDS, tables_in
from cardan.program.graph import read
from cardan.program.program import record

from .conftest import make_kernel
from .javascript import called
from .test_webassembly import run as run_webassembly

rng = np.random.default_rng(20)
EVEN = np.linspace(1.0, 4.0, 31)
UNEVEN = np.sort(np.concatenate([rng.uniform(1.0, 4.0, 20), 2.5 + 1e-3 * rng.uniform(size=9), [1.0, 4.0]]))
OUTSIDE = np.linspace(-2.0, 9.0, 331)


def values(x, ends):
    """Values at points that close where the table is periodic."""
    y = np.sin(3 * x) + 0.2 * x
    return np.r_[y[:-1], y[0]] if ends == "periodic" else y


RULES = (
    (EVEN, 2, "error"), (EVEN, 0, "hold"), (EVEN, 1, "linear"), (UNEVEN, 1, "error"), (UNEVEN, 0, "linear"),
    (UNEVEN, 2, "periodic"),
)  # fmt: skip


@pytest.fixture(scope="module")
def kernel():
    """Values and derivatives of tables with every rule, and of two arguments, as one kernel."""
    line = [cd.table(x, values(x, ends), smooth=smooth, ends=ends) for x, smooth, ends in RULES]
    z = rng.normal(size=(31, 7))
    grid = [cd.table2(EVEN, np.arange(7.0), z, smooth=s, ends="hold") for s in (0, 2)]

    def text(x, y):
        values = [t(x) for t in line] + [t(x, y) for t in grid]
        rates = [ca.jacobian(value, x) for value in values]
        curved = [ca.jacobian(rate, x) for rate, t in zip(rates, (*line, *grid), strict=True) if t.smooth]
        return ca.vertcat(*values, *rates, *curved)

    return make_kernel("tables", {"x": (), "y": ()}, {"z": (2 * 8 + 5,)}, text)


def given(count=40):
    x = np.concatenate([np.linspace(-1.0, 6.0, count), EVEN[[0, 3, -1]]])
    return x, np.linspace(-1.0, 8.0, len(x))


def same(found, wanted, tolerance=1e-11):
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.isnan(wanted).any() and np.isfinite(wanted).mean() > 0.5
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * np.nanmax(np.abs(wanted)))


@pytest.mark.usefixtures("quick_code")
def test_on_lanes_and_as_a_table_of_operations(kernel, monkeypatch):
    """Straight code, interpreted code, float32 and NumPy; the graph passes through pickle."""
    x, y = given()
    function = record(kernel.program)
    wanted = np.array([np.array(kernel.program.record()(*row)).ravel() for row in zip(x, y, strict=True)])
    with np.errstate(all="ignore"):
        same(kernel(x, y), wanted)
        assert np.isnan(kernel(np.nan, 1.0)[:8]).all() and not np.isfinite(kernel(np.inf, 1.0)[:8]).any()
    again = pickle.loads(pickle.dumps(function))
    same(evaluated(plan(again), [x[:, None], y[:, None]])[0], wanted)
    monkeypatch.setattr(interpreted, "LEAST", 0)
    for lanes in (1, host().lanes("double")):
        text = kernel._builder.text("double", lanes, tables=True)
        assert "@body.run" in text
        (loop, rows), held = load(to_object(text, quick=True), "loop", "rows")
        loops = LoopAddresses()
        loops.row = loops.wide = rows
        with np.errstate(all="ignore"):
            same(make_gufunc(kernel._builder.compiled, loop, loops, np.dtype(float), [held])(x, y), wanted)


@pytest.mark.usefixtures("quick_code")
def test_in_browsers_and_on_cards(kernel):
    """JavaScript and WebAssembly are run; PTX is made, with nothing from outside."""
    x, y = given(12)
    with np.errstate(all="ignore"):
        wanted = kernel(x, y)
    module = JavaScriptPrinter().print_program(kernel.program, record(kernel.program))
    same(np.array([call[0] for call in called([(module, "tables", np.stack([x, y]).T)])[0]]), wanted)
    same(run_webassembly((kernel.program, {"x": x[:, None], "y": y[:, None]}))[0][0], wanted)
    small = make_kernel("one", {"x": ()}, {"z": ()}, cd.table(UNEVEN, UNEVEN**2, ends="hold"))
    for dtype in ("double", "float"):
        ptx = make(small.program, dtype, 80).ptx
        assert not fault(ptx, 80) and "lookup_table_c3" in ptx
    near = np.float32(x)
    np.testing.assert_allclose(small(near), small(near.astype(float)), rtol=2e-5, atol=2e-5)


def test_what_scipy_has():
    """Splines, PCHIP, straight lines and grids, inside and where the rule goes on."""
    for x in (EVEN, UNEVEN):
        inside = OUTSIDE[np.clip(OUTSIDE, x[0], x[-1]) == OUTSIDE]
        for smooth, reference in ((2, CubicSpline(x, np.cos(x))), (1, PchipInterpolator(x, np.cos(x)))):
            np.testing.assert_allclose(cd.table(x, np.cos(x), smooth=smooth)(inside), reference(inside), atol=1e-12)
        line = cd.table(x, np.cos(x), smooth=0, ends="hold")
        np.testing.assert_allclose(line(OUTSIDE), np.interp(OUTSIDE, x, np.cos(x)), atol=1e-12)
        closed = values(x, "periodic")
        turning = CubicSpline(x, closed, bc_type="periodic")
        np.testing.assert_allclose(cd.table(x, closed, ends="periodic")(OUTSIDE), turning(OUTSIDE), atol=1e-10)
    y, z = np.sort(rng.uniform(size=9)), rng.normal(size=(31, 9))
    at = EVEN[:-1, None] + 0.01, np.linspace(y[0], y[-1], 17)
    np.testing.assert_allclose(
        cd.table2(EVEN, y, z)(*at), RectBivariateSpline(EVEN, y, z)(at[0][:, 0], at[1]), atol=1e-11
    )
    flat = RegularGridInterpolator((EVEN, y), z)(tuple(np.broadcast_arrays(*at)))
    np.testing.assert_allclose(cd.table2(EVEN, y, z, smooth=0)(*at), flat, atol=1e-12)


@pytest.mark.parametrize("x", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_smoothness_and_integral(x):
    """As many derivatives are continuous at knots as asked for; the integral's derivative is the table."""
    for smooth in (0, 1, 2):
        for ends in ENDS:
            table = cd.table(x, values(x, ends), smooth=smooth, ends=ends)
            s = ca.SX.sym("s")
            found = [table(s)]
            for _ in range(smooth + 1):
                found.append(ca.jacobian(found[-1], s))
            function = ca.Function("f", [s], [*found, ca.jacobian(table.integral(s), s)])
            at = x[1:-1] if ends == "error" else x
            before, after = (np.array(ca.vertcat(*function(at[None] + e))) for e in (-1e-10, 1e-10))
            scale = np.abs(before).max(axis=1) + 1
            steps = np.abs(after - before).max(axis=1) / scale
            continuous = (
                min(smooth, 1) if ends == "hold" else smooth
            )  # at its ends a held table has a jump of curvature
            assert (steps[: continuous + 1] < 1e-5).all()
            assert steps[smooth + 1] > 1e-3
            got = np.array(ca.vertcat(*function(OUTSIDE[None])))
            np.testing.assert_allclose(got[-1], got[0], atol=1e-12)
            assert np.isnan(got[0]).any() == (ends == "error")
            (again,) = tables_in(function)
            np.testing.assert_array_equal(again(OUTSIDE), table(OUTSIDE))
            if ends != "error":
                fine = np.linspace(-1.0, 6.0, 4001)
                area = np.trapezoid(table(fine), fine)
                assert abs(table.integral(6.0) - table.integral(-1.0) - area) < 1e-4


POINTS = [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cd.table([0, 1, 2], [1, 2, 3]), "at least 4 points for two continuous derivatives, got 3"),
        (lambda: cd.table([0, 1, 1, 2], POINTS), "x[2] is 1 after 1, and x must ascend; a jump is not a value"),
        (lambda: cd.table([0, 2, 1, 3], POINTS), "x[2] is 1 after 2, and x must ascend; sort the points"),
        (lambda: cd.table(POINTS, [0, np.nan, 1, 2]), "y[1] is nan; every entry must be a finite number"),
        (lambda: cd.table(POINTS, [0, 1]), "shape (4,) of its points, got (2,)"),
        (lambda: cd.table(POINTS, POINTS, ends="peridic"), "did you mean 'periodic'?"),
        (lambda: cd.table(POINTS, POINTS, ends="periodic"), "equal first and last values, and they differ by 3"),
        (lambda: cd.table(POINTS, POINTS, smooth=3), "smooth must be 0, 1 or 2"),
        (lambda: cd.table(POINTS, ["a"] * 4), "y must be numbers"),
        (lambda: cd.table(POINTS), "give x and y, or the path of a CSV file"),
        (lambda: cd.table2(POINTS, POINTS, np.zeros((4, 3))), "z must have the shape (4, 4)"),
        (lambda: cd.table(POINTS, POINTS)(1, 2), "it takes 1 arguments, got 2"),
        (lambda: cd.table(POINTS, POINTS)(ca.SX.sym("q", 2)), "one number at a time"),
        (lambda: cd.table2(POINTS, POINTS, np.zeros((4, 4))).integral(1.0), "only a table of one argument"),
    ],
)
def test_bad_tables(call, words):
    with pytest.raises(CardanError) as caught:
        call()
    assert words in str(caught.value) and "\n" not in str(caught.value) and "table" in str(caught.value)


def test_a_called_function_that_is_no_table_is_refused():
    x = ca.SX.sym("x")
    other = ca.Function("other", [x], [x * x], {"never_inline": True})
    with pytest.raises(CardanError, match="OP_CALL"):
        read(ca.Function("f", [x], [other(x)]))
