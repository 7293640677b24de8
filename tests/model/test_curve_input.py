"""Curves: what is refused and how it is said, files, pickles, and the warning of a run beyond an end."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd

pytestmark = pytest.mark.usefixtures("quick_code")

SQUARE = np.array([[0, 0, 0], [1, 0, 0.2], [1, 1, 0], [0, 1, 0.3]])
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "shape": ({"shape": np.zeros((5, 2))}, r"points must have the shape \(n, 3\), got \(5, 2\)"),
    "text": ({"shape": "track"}, r"it takes points \(n, 3\), a function or three tables, got 'track'"),
    "few": ({"shape": SQUARE[:3]}, "at least 4 points, or 3 if it is closed, got 3"),
    "twice": ({"shape": np.vstack([SQUARE, SQUARE[3:]])}, "points 3 and 4 are at one place"),
    "nan": ({"shape": [[0, 0, 0], [1, 0, 0], [1, np.nan, 0], [2, 0, 0]]}, "point 2 is .* every number must be finite"),
    "range": ({"shape": lambda u: (u, 0, 0)}, "a function needs start and stop"),
    "order": ({"shape": lambda u: (u, 0, 0), "start": 1, "stop": 0}, "start must be below stop, got 1 and 0"),
    "points have none": ({"shape": SQUARE, "start": 0}, "start and stop are of a function's parameter"),
    "two numbers": ({"shape": lambda u: (u, 0), "start": 0, "stop": 1}, "its function must .* 3"),
    "math": ({"shape": lambda u: (np.float64(u), 0, 0), "start": 0, "stop": 1}, "its function cannot be traced"),
    "corner": ({"shape": lambda u: (u, ca.fabs(u), 0), "start": -1, "stop": 2}, "a corner of 1.41 rad at the"),
    "cusp": (
        {"shape": lambda u: (u - ca.sin(u), 0, 1 - ca.cos(u)), "start": -1, "stop": 2},
        "stands still at the parameter .* a cusp cannot be run along",
    ),
    "open": (
        {"shape": lambda u: (ca.cos(u), ca.sin(u), 0), "start": 0, "stop": 6, "closed": True},
        "it is to be closed, and its end is 0.282 m from its beginning",
    ),
    "closing corner": (
        {"shape": lambda u: (u * (1 - u), u**2 * (1 - u), 0), "start": 0, "stop": 1, "closed": True},
        "a corner of .* rad where it closes",
    ),
    "upright": ({"shape": lambda u: (0, 0, u), "start": 0, "stop": 1}, "runs along `up` .* write up='carried'"),
    "ups": ({"shape": SQUARE, "up": np.ones((3, 3))}, r"up must be a direction \(3,\), or one for each of the 4"),
    "no up": ({"shape": SQUARE, "up": (0, 0, 0)}, "up must not be zero"),
    "word": ({"shape": SQUARE, "up": "transported"}, '"carried", or a function, got'),
    "bank": ({"shape": SQUARE, "bank": [0.1, 0.2]}, "bank must be a number, or one for each of the 4 points"),
    "tables": ({"shape": [cd.table([0, 1, 2, 3], [0, 1, 2, 3])] * 2}, "tables must be three of one parameter"),
    "steps": (
        {"shape": [cd.table([0, 1, 2, 3], [0, 1, 2, 3], smooth=s) for s in (0, 2, 2)]}, "has a corner at every point",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_curves_are_refused_in_a_sentence(case: str) -> None:
    given, words = BAD[case]
    with pytest.raises(cd.CardanError, match=words) as error:
        cd.curve(**given)
    assert str(error.value).startswith("curve 'curve': ")


def test_what_is_no_curve_is_refused_with_the_name() -> None:
    m = cd.Mechanism("slot")
    m.body("pin", mass=1.0)
    with pytest.raises(cd.ModelError, match=r"joint 'rail': curve must be made by cd.curve\(...\)"):
        m.joint("rail", cd.Curvilinear(SQUARE), m.ground, "pin")
    with pytest.raises(cd.ModelError, match=r"'rail': the curve must be a cd.curve, or two functions"):
        m.on_curve("rail", "pin", m.ground, lambda x, y, z: z)  # type: ignore[arg-type]


@cache
def many() -> cd.Model:
    """Joints along curves of every sort, and a point on one."""
    height = cd.table(np.linspace(0, 1, 6), np.linspace(0, 1, 6) ** 2, name="height")
    curves = [
        cd.curve(lambda u: (ca.cos(u), ca.sin(u), 0.3 * u), start=0, stop=10, up="carried", name="helix"),
        cd.curve(SQUARE, closed=True, up=np.tile([0.0, 0.1, 1], (4, 1)), bank=[0, 0.1, 0.2, 0.1], name="track"),
        cd.curve(
            lambda u: (u, height(u), 0), start=0, stop=1, up=lambda u: (0, ca.sin(u), ca.cos(u)), bank=lambda u: u / 3,
            name="wave",
        ),
    ]  # fmt: skip
    m = cd.Mechanism("many", gravity=(0, 0, -9.81))
    for k, curve in enumerate(curves):
        m.body(f"b{k}", mass=2.0, com=(0, 0.1, 0), inertia=(0.1, 0.2, 0.15))
        m.joint(f"j{k}", cd.Curvilinear(curve, turns=k != 2), m.ground, f"b{k}", start=0.1 * k)
    m.body("pin", mass=1.0, inertia=(0.1, 0.2, 0.15))
    m.joint("float", cd.Free(), m.ground, "pin", start=(1, 0, 0, 1, 0, 0, 0))
    m.on_curve("groove", "pin", m.ground, curves[0], at1=(0, 0, 0.1))
    return m.build()


def test_files_and_pickles_hold_curves(tmp_path: Path) -> None:
    model = many()
    path = tmp_path / "many.yaml"
    assert cd.save(model, path) == []
    text = path.read_text()
    assert "x: =cos(u)" in text and "y: =height(u)" in text and "up: carried" in text
    assert cd.load(path).key == model.key
    assert pickle.loads(pickle.dumps(model)).key == model.key
    losses = cd.save(model, tmp_path / "many.urdf")
    assert any("joint 'j0' (curvilinear)" in loss for loss in losses)
    path.write_text(text.replace("curve: track", "curve: trak"))
    with pytest.raises(cd.FileError, match=r"line \d+: joint 'j1': curve must be .*trak"):
        cd.load(path)


def test_equations_along_curves_are_not_printed() -> None:
    with pytest.raises(cd.ModelError, match=r"joint 'j0' is along a curve, whose length .* no formulas to print"):
        cd.equations(many()).sympy()


def test_a_run_beyond_the_end_of_a_curve_warns() -> None:
    m = cd.Mechanism("slot", gravity=(0, 0, 0))
    m.body("pin", mass=1.0)
    m.joint("rail", cd.Curvilinear(cd.curve(SQUARE), turns=False), m.ground, "pin", start=0.5)
    model = m.build()
    with pytest.warns(RuntimeWarning, match="joint 'rail' leaves its curve, which is .* m long, by t = .* stops"):
        run = cd.simulate(model, 5.0, v0=[1.0], samples=11)
    ends = run["pin.position"][-3:]
    assert np.allclose(ends[0] + ends[2], 2 * ends[1])  # straight on
    assert (np.abs(run.v - 1) < 1e-5).all()
    q, _ = model.random_state(np.random.default_rng(0), 100)
    assert q.min() > 0 and q.max() < run.model.joints[0].type.curve.length


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6), closed=st.booleans(), turns=st.booleans())
def test_the_nearest_point_of_a_point_of_a_curve_is_itself(seed: int, closed: bool, turns: bool) -> None:
    """Of random curves that do not come back to themselves; the others say so."""
    rng = np.random.default_rng(seed)
    points = np.cumsum(rng.normal([0.5, 0, 0], 1.0, (rng.integers(4, 9), 3)), axis=0)
    curve = cd.curve(points, closed=closed, up="carried")
    if curve.why_unknown(turns):
        assert "comes back to within" in curve.why_unknown(turns) or "samples" in curve.why_unknown(turns)
        return
    p, x = ca.SX.sym("p", 3), ca.SX.sym("x", 3)
    find = ca.Function("find", [p, x], [curve.nearest(p, x if turns else None)])
    s = np.linspace(0, curve.length, 40)[:-1]
    found = np.array(find(curve(s).T, curve.axes(s)[:, :, 0].T)).ravel()
    away = np.abs(found - s)
    assert np.minimum(away, np.abs(away - curve.length) if closed else np.inf).max() < 1e-8 * curve.length
