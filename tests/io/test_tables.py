"""Tables in mechanisms and files: motions, drives, springs; what is written is read back; bad ones get one sentence."""

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.errors import CardanError, FileError, ModelError, SimulationError

pytestmark = pytest.mark.usefixtures("quick_code")
TIMES = np.linspace(0.0, 2.0, 41)
STRETCH = np.linspace(-2.0, 2.0, 9)


def pendulum():
    m = cd.Mechanism("pendulum", gravity=(0, -9.81, 0))
    m.body("rod", mass=1, com=(0.5, 0, 0), inertia=cd.inertia.rod(1, 1))
    m.joint("A", cd.Revolute(), m.ground, "rod")
    return m


def test_round_trip(tmp_path):
    """Tables of one and two arguments, two of one name, signs that CasADi moves, a motion, and springs."""
    rng = np.random.default_rng(4)
    uneven = np.sort(rng.uniform(-1, 4, 12))
    cam = cd.table(TIMES, np.sin(TIMES), name="cam", ends="hold")
    other = cd.table(uneven, uneven**2, name="cam", smooth=1, ends="linear")
    grid = cd.table2(TIMES, uneven, rng.normal(size=(41, 12)), name="torque map", ends=["hold", "linear"])
    m = pendulum()
    m.body("slide", mass=1)
    m.joint("B", cd.Prismatic(), m.ground, "slide")
    m.motion("lift", "B", lambda t: cam(t) - other(0.1 * t))
    m.drive("motor", "A", lambda t, q, v: -cam(-t) * 2 + grid(t, -v) + ca.if_else(q > 0, other(v), 3 - cam(-q)))
    m.nonlinear_spring(
        "spring", "ground", "rod", tension=cd.table(STRETCH, STRETCH**3, name="k", ends="hold"), length=1
    )
    model = m.build()
    cd.save(model, tmp_path / "a.yaml")
    again = cd.load(tmp_path / "a.yaml")
    assert "cam_2:" in (tmp_path / "a.yaml").read_text() and "torque_map(t, -v)" in (tmp_path / "a.yaml").read_text()
    q, v = rng.uniform(-1, 1, (2, 5, 2))
    with pytest.warns(RuntimeWarning, match="open by"):  # the states are any
        found = cd.forward_dynamics(again, q, v, t=1.3)
    with pytest.warns(RuntimeWarning, match="open by"):
        np.testing.assert_array_equal(found, cd.forward_dynamics(model, q, v, t=1.3))


def test_from_csv_in_a_file(tmp_path):
    """A motion by a file of measured points, and a drive by lists with units."""
    lift = 0.1 * np.sin(TIMES) ** 2
    np.savetxt(tmp_path / "lift.csv", np.c_[TIMES, lift], delimiter=";", header="time;lift", comments="")
    (tmp_path / "m.yaml").write_text(
        "cardan: 1\nname: m\nparameters: {r: 30 mm}\ntables:\n  lift: {file: lift.csv, ends: hold}\n"
        "  k: {x: [0, 10 mm, 2 cm, 30 mm], y: [0, 1, 4 N, 10 N], smooth: 0, ends: linear}\n"
        "bodies: {a: {mass: 2}, b: {mass: 2}}\n"
        "joints:\n  A: {type: prismatic, parent: ground, child: a, axis: x}\n"
        "  B: {type: prismatic, parent: ground, child: b, axis: x}\n"
        "forces: {s: {type: drive, joint: A, effort: =-k(q)*r}}\n"
        "constraints: {m: {type: motion, joint: B, value: =lift(t)}}\n"
    )
    model = cd.load(tmp_path / "m.yaml")
    a = cd.forward_dynamics(model, [0.015, lift[20]], [0.0, 0.1 * np.sin(2.0)], t=1.0)
    assert abs(a[0] + 0.03 * 2.5 / 2) < 1e-12 and abs(a[1] - 0.2 * np.cos(2.0)) < 1e-3
    run = cd.simulate(model, 1.5, assemble=True)
    np.testing.assert_allclose(run.q[:, 1], 0.1 * np.sin(run.time) ** 2, atol=1e-6)


def test_units_in_a_heading(tmp_path):
    """Numbers are in the units that the heading says, and in SI without."""
    points = "0,0\n90,35\n180,20\n360,0\n"
    for heading, size in (("angle [deg],lift [mm]\n", (np.pi / 180, 1e-3)), ("angle,lift (cm)\n", (1, 1e-2)),
                          ("angle [-],lift (measured)\n", (1, 1)), ("", (1, 1))):  # fmt: skip
        (tmp_path / "lift.csv").write_text(heading + points)
        table = cd.table(tmp_path / "lift.csv")
        np.testing.assert_allclose(table(90 * size[0]), 35 * size[1], rtol=1e-14)
    (tmp_path / "lift.csv").write_text("angle [deg],lift [inch]\n" + points)
    with pytest.raises(FileError, match=r"lift.csv: line 1: 'inch' is not a unit.*leave the brackets out"):
        cd.table(tmp_path / "lift.csv")


def test_a_linear_table_is_a_spring():
    """Force, energy and power of springs by tables and by numbers; a cubic one keeps its energy."""
    plain, by_table, cubic = pendulum(), pendulum(), pendulum()
    line = cd.table(STRETCH, 40 * STRETCH, ends="linear")
    points = {"at1": (0, 1, 0), "at2": (1, 0, 0), "length": 0.8}
    plain.spring("s", "ground", "rod", stiffness=40, damping=0.3, **points)
    plain.torsion("w", "A", stiffness=40, rest=0.2, damping=0.1)
    by_table.nonlinear_spring("s", "ground", "rod", tension=line, damping=0.3, **points)
    by_table.nonlinear_torsion("w", "A", effort=line, rest=0.2, damping=0.1)
    cubic.nonlinear_spring("s", "ground", "rod", tension=cd.table(STRETCH, 40 * STRETCH**3, ends="hold"), **points)
    a, b, c = plain.build(), by_table.build(), cubic.build()
    q, v = np.random.default_rng(1).uniform(-2, 2, (2, 6, 1))
    for formulation in ("spatial", "absolute", "points"):
        found = [cd.forward_dynamics(model, q, v, formulation=formulation) for model in (a, b)]
        np.testing.assert_allclose(*found, rtol=1e-11)
    np.testing.assert_allclose(cd.potential_energy(a, q), cd.potential_energy(b, q), rtol=1e-12)
    np.testing.assert_allclose(cd.power(a, q, v), cd.power(b, q, v), rtol=1e-12)
    run = cd.simulate(c, 2.0, v0=[5.0], rtol=1e-10, atol=1e-10)
    energy = cd.kinetic_energy(c, run.q, run.v) + cd.potential_energy(c, run.q)
    assert np.ptp(energy) < 1e-8 and np.ptp(cd.potential_energy(c, run.q)) > 1


def test_outside_and_corners_are_loud():
    """A corner in a motion is refused; a run that leaves a table names the element and the table."""
    m = pendulum()
    m.motion("lift", "A", cd.table(TIMES, TIMES, smooth=0, name="cam"))
    with pytest.raises(ModelError, match=r"^motion 'lift': table 'cam' has a corner at every point .* smooth=2"):
        m.build()
    m = pendulum()
    m.motion("lift", "A", cd.table(TIMES + 1, TIMES, name="cam"))
    with pytest.raises(ModelError, match=r"^motion 'lift': its value at t = 0 is nan; table 'cam' goes from 1 to 3"):
        m.build()
    for add, owner in (
        (lambda m, table: m.motion("lift", "A", table), "motion 'lift'"),
        (lambda m, table: m.drive("motor", "A", lambda t, q, v: table(t)), "drive 'motor'"),
    ):
        m = pendulum()
        add(m, cd.table(TIMES, np.sin(TIMES), name="cam"))
        with pytest.raises(SimulationError, match=f"t = 2 s: {owner} .*table 'cam' goes from 0 to 2; give more points"):
            cd.simulate(m.build(), 2.5)
    with pytest.raises(ModelError, match=r"nonlinear spring 's': tension must be a cd.table of one argument"):
        m.nonlinear_spring("s", "ground", "rod", tension=3.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0;1\n1;2\n2;a\n", "line 3: 'a' is not a number"),
        ("t;y\n0;1\n1;2\n1;2\n3;4\n", "line 4: x is 1 after 1, and x must ascend"),
        ("0,5;1,5\n1;2\n", "line 1: a point is 2 numbers, got 4; a decimal comma"),
        ("a b c\n", "it has no line of 2 numbers"),
        ("0 1\n1 2\n2 nan\n3 4\n", "line 3: y is nan; every entry must be a finite number"),
    ],
)
def test_bad_csv(text, words, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        cd.table(path)
    assert str(caught.value).startswith(f"{path}: ") and words in str(caught.value)


def test_grids_in_csv(tmp_path):
    path = tmp_path / "map.csv"
    rows = [f"{x},{y},{x * y}" for x in range(4) for y in range(5)]
    path.write_text("\n".join(reversed(rows)))
    assert abs(cd.table2(path)(1.5, 2.5) - 3.75) < 1e-12
    path.write_text("\n".join(rows[:-1]))
    with pytest.raises(FileError, match=r"the point \(3, 4\) is missing; its 19 points must fill the grid of 4 x 5"):
        cd.table2(path)
    path.write_text("\n".join([*rows, rows[3]]))
    with pytest.raises(FileError, match=r"line 21: the point \(0, 3\) is there already"):
        cd.table2(path)


FILE = """cardan: 1
name: f
tables:
  lift: {%s}
bodies: {b: {mass: 1}}
joints: {A: {type: prismatic, parent: ground, child: b, axis: x}}
forces: {s: {type: drive, joint: A, effort: "%s"}}
"""
GOOD = "x: [0, 1, 2, 3], y: [0, 1, 2, 3]"


@pytest.mark.parametrize(
    ("table", "effort", "words"),
    [
        ("x: [0, 1, 1, 2], y: [0, 1, 2, 3]", "=lift(t)", "line 4: table 'lift': x[2] is 1 after 1"),
        ("file: none.csv", "=lift(t)", "none.csv: there is no such file"),
        ("file: a.csv, x: [1]", "=lift(t)", "line 4: table 'lift': gives a file and x"),
        ("x: [0, 1]", "=lift(t)", "line 4: table 'lift': must have a file, or x and y, or x, y and z"),
        (f"{GOOD}, ends: hlod", "=lift(t)", "did you mean 'hold'?"),
        (f"{GOOD}, smooth: 5", "=lift(t)", "smooth must be 0, 1 or 2"),
        (GOOD, "=lift(t, q)", "lift takes 1 argument, got 2"),
        (GOOD, "=lft(t)", "'lft' is not a function of this format, nor a table of the file; did you mean 'lift'?"),
        (GOOD, "=lift(5)", "'lift' is a table, and 5 is outside it"),
    ],
)
def test_bad_tables_in_files(table, effort, words, tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text(FILE % (table, effort))
    with pytest.raises(CardanError) as caught:
        cd.load(path)
    assert words in str(caught.value)
