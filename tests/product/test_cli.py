"""The command line: what it prints and writes, and its exit status 0, 1 or 2."""

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

import cardan as cd
from cardan import cli, mechanisms
from cardan.commands import arguments
from cardan.functions.check import CheckRow, Report

pytestmark = pytest.mark.usefixtures("quick_code")
ROOT = Path(__file__).resolve().parents[2]
ARM = ROOT / "tests" / "data" / "arm.urdf"
COMMANDS = (
    "demo", "info", "check", "simulate", "equilibrium", "modes", "linearise", "ik", "branches", "workspace",
    "identify", "synthesise", "balance", "sweep", "view", "plot", "equations", "textbook", "convert", "mechanisms",
    "bench",
)  # fmt: skip
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
HEAD = "cardan: 1\nname: swing\nbodies:\n  rod: {mass: 1 kg, com: [0, 0, -500 mm], inertia: {rod: {length: 1 m}}}\n"
PIVOT = "joints:\n  A: {type: revolute, axis: [0, 1, 0], parent: ground, child: rod}\n"


class Done:
    """What a command left: its status and texts, without colours."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.returncode, self.stdout, self.stderr = status, COLOUR.sub("", out), COLOUR.sub("", err)

    @property
    def data(self) -> Any:
        return json.loads(self.stdout)


Cardan = Callable[..., Done]


@pytest.fixture
def cardan(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cardan:
    """The command line in this process, in an empty folder, on a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*args: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["cardan", *args])
        with pytest.raises(SystemExit) as left:
            cli.main()
        return Done(int(left.value.code or 0), *capsys.readouterr())

    return run


def process(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "cardan.cli", *args], text=True, timeout=120, **more)


def test_info_prints_the_tree_and_the_joints(cardan: Cardan) -> None:
    done = cardan("info", str(ARM))
    assert done.returncode == 0
    for words in ("10 bodies", "lift (prismatic) -> column", "-0.1 to 0.5", "grip_left"):
        assert words in done.stdout


def test_info_as_json_tells_the_same(cardan: Cardan) -> None:
    facts = cardan("info", str(ARM), "--root", "free", "--json").data
    assert facts["nv"] == 20
    assert {joint["name"]: joint["kind"] for joint in facts["joints"]}["lift"] == "prismatic"


def test_check_prints_one_table_and_passes(cardan: Cardan) -> None:
    done = cardan("check", "double_pendulum")
    assert done.returncode == 0
    assert "all checks passed" in done.stdout
    assert "accelerations: spatial = newton_euler" in done.stdout


def test_check_as_json_and_a_check_that_fails(cardan: Cardan, monkeypatch: pytest.MonkeyPatch) -> None:
    done = cardan("check", "pendulum", "--states", "4", "--json")
    assert done.returncode == 0
    assert done.data["passed"] and all(row["passed"] for row in done.data["rows"])
    report = Report("pendulum", (CheckRow("right", 0.0, 1e-10), CheckRow("wrong", 1.0, 1e-10)), 4)
    monkeypatch.setattr(cd, "check", lambda model, states: report)
    done = cardan("check", "pendulum", "--json")
    assert done.returncode == 1
    assert [row["passed"] for row in done.data["rows"]] == [True, False]


def test_demo_shows_agreement_and_speed(cardan: Cardan) -> None:
    done = cardan("demo")
    assert done.returncode == 0, done.stderr
    for words in ("F6(7)", "F3(26)", "Largest relative difference", "all checks passed", "forward dynamics"):
        assert words in done.stdout


def test_simulate_leaves_trajectory_plot_and_page(cardan: Cardan, tmp_path: Path) -> None:
    args = ("simulate", "four_bar", "--time", "500ms", "--rate", "A=60rpm", "--samples", "51", "--out", "run")
    done = cardan(*args, "--csv", "--json")
    assert done.returncode == 0, done.stderr
    assert {path.suffix for path in tmp_path.iterdir()} >= {".nc", ".png", ".csv"}
    assert sorted(done.data["files"]) == sorted(path.name for path in tmp_path.iterdir())
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")

    model = mechanisms.four_bar().build()
    q, _ = cd.assemble(model)
    own = cd.simulate(model, 0.5, *cd.assemble(model, q, [2 * np.pi, 0, 0], hold=["A"]), samples=51)
    saved = cd.load_run(tmp_path / "run.nc", model)
    assert saved.rate("A")[0] == pytest.approx(2 * np.pi, rel=1e-15)
    assert np.array_equal(saved.q, own.q)
    assert done.data["energy_error"] == np.abs(own.energy - own.energy[0]).max()
    assert done.data["position_residual"] == own.residuals.position.max() < 1e-10
    assert len((tmp_path / "run.csv").read_text().splitlines()) == 52

    again = cardan(*args)
    assert again.returncode == 2
    assert again.stderr == "cardan: run.nc: there is such a file already; give --force to replace it, or another name\n"
    forced = cardan(*args, "--force", "--no-page", "--no-plot")
    assert forced.returncode == 0
    for words in ("dormand_prince, spatial", "0 s to 0.5 s", "51, from", "energy drift", "worst residual", "run.nc"):
        assert words in forced.stdout
    assert max(map(len, forced.stdout.splitlines())) <= 80


def test_coordinates_are_given_by_joint_and_unit(cardan: Cardan, tmp_path: Path) -> None:
    short = ("simulate", "four_bar", "-t", "10ms", "--samples", "2", "--no-plot", "--no-page")
    assert cardan(*short, "--start", "A=30deg", "-o", "a").returncode == 0
    assert cardan(*short, "--start", f"A={np.pi / 6!r}", "--set", "coupler=90cm", "-o", "b").returncode == 0
    a, b = (cd.load_run(tmp_path / f"{name}.nc", mechanisms.four_bar().build()) for name in "ab")
    assert a.coordinate("A")[0] == pytest.approx(np.pi / 6, abs=1e-11)
    assert a.residuals.position.max() < 1e-10
    assert np.allclose(a.q, b.q, rtol=0, atol=1e-11)


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_what_was_there_stays_until_all_is_known_to_be_writable(
    cardan: Cardan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, force: list[str]
) -> None:
    (tmp_path / "run.html").mkdir() if force else (tmp_path / "run.html").write_text("mine")
    monkeypatch.setattr(cd, "simulate", lambda *a, **k: pytest.fail("it was simulated first"))
    done = cardan("simulate", "four_bar", "--out", "run", *force)
    assert done.returncode == 2
    assert "run.html: " in done.stderr and done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]


def test_a_failed_simulation_is_status_1_and_keeps_what_there_is(cardan: Cardan, tmp_path: Path) -> None:
    """Driven by the cube of its rate it would be infinitely fast in finite time."""
    drive = "forces:\n  runaway: {type: drive, joint: A, effort: '=1 [N*m]*(v/1 [rad/s])^3'}\n"
    (tmp_path / "swing.yaml").write_text(HEAD + PIVOT + drive)
    done = cardan("simulate", "swing.yaml", "--rate", "A=2", "--out", "run", "--no-page", "--json")
    assert done.returncode == 1, done.stderr
    assert "of joint 'A'" in done.stderr
    assert "what was computed until then is in run.nc, run.png" in done.stderr
    assert 0 < done.data["end"] < 10
    assert cd.load_run(tmp_path / "run.nc").time[-1] == done.data["end"]


def test_work_is_that_of_the_steps_not_of_the_samples(cardan: Cardan, tmp_path: Path) -> None:
    """A drive that vibrates many times between two samples; a spline through eleven of them is joules off."""
    drive = "forces:\n  motor: {type: drive, joint: A, effort: '=3 [N*m]*sin(40 [rad/s]*t)'}\n"
    (tmp_path / "motor.yaml").write_text(HEAD + PIVOT + drive)
    done = cardan("simulate", "motor.yaml", "--rate", "A=2", "--samples", "11", "--json")
    assert done.returncode == 0, done.stderr
    assert not done.data["conserved"] and done.data["largest_kinetic_energy"] > 0.5
    assert done.data["energy_error"] < 1e-5


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ("--method gear --form index1 --max-order 3", {"form": "index1", "max_order": 3}),
        ("--method alpha --damping 0.5 --step 1ms", {"damping": 0.5, "step": 1e-3}),
        ("--baumgarte 20", {"baumgarte": 20.0}),
    ],
)
def test_options_of_the_method(cardan: Cardan, tmp_path: Path, args: str, options: dict[str, object]) -> None:
    done = cardan("simulate", "four_bar", "--time", "0.1", "--out", "run", "--no-page", "--no-plot", *args.split())
    assert done.returncode == 0, done.stderr
    settings = cd.load_run(tmp_path / "run.nc").settings
    assert {name: settings.get(name) for name in options} == options


def test_an_interrupted_simulation_is_status_130_and_keeps_what_there_is(
    cardan: Cardan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cardan.integrate.explicit.stepper import ExplicitStepper

    real, calls = ExplicitStepper.advance, []

    def advance(self: ExplicitStepper, t: float) -> object:
        calls.append(t)
        if len(calls) == 40:
            raise KeyboardInterrupt
        return real(self, t)

    monkeypatch.setattr(ExplicitStepper, "advance", advance)
    done = cardan("simulate", "pendulum", "--start", "pivot=1", "--out", "run", "--no-page")
    assert done.returncode == 130
    assert "interrupted" in done.stderr and "error.partial" not in done.stderr
    assert len(cd.load_run(tmp_path / "run.nc").time) == 40


def test_equations_as_text_latex_and_json(cardan: Cardan) -> None:
    sympy = pytest.importorskip("sympy")
    own = cd.equations(mechanisms.pendulum().build(), formulation="absolute").sympy()
    args = ("equations", "pendulum", "--formulation", "absolute")
    assert cardan(*args, "--latex").stdout == own.latex() + "\n"
    assert cardan(*args, "--latex", "--name", "M").stdout == own.latex("M") + "\n"
    text = cardan(*args).stdout
    for words in ("M vdot + J^T lambda = f", "M[4,4] = m", "mass of rod = 1 kg", "phi"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80
    data = cardan(*args, "--json").data
    letters = {str(x): x for x in own.meanings}
    for name, rows in data["matrices"].items():
        read = sympy.Matrix([[sympy.sympify(entry, locals=letters) for entry in row] for row in rows])
        assert read.reshape(*own.matrix(name).shape) == own.matrix(name), name
    assert data["symbols"]["m"] == {"meaning": "mass of rod", "value": 1.0, "unit": "kg"}


def test_inverse_kinematics_and_workspace(cardan: Cardan) -> None:
    """A five-bar reaches a point in four ways; out of reach is status 1; wrong input is a sentence."""
    frame = ("five_bar", "--frame", "left link", "--point", "700mm,0,0")
    done = cardan("ik", *frame, "--position", "0.4,0.5,0", "--all", "--json")
    assert done.returncode == 0 and len(done.data["solutions"]) == 4
    far = cardan("ik", *frame, "--position", "0.4,5,0")
    assert far.returncode == 1 and "out of reach" in far.stdout
    assert cardan("workspace", *frame, "--samples", "100", "--plot", "reach.gif").returncode == 2
    assert "hold" in cardan("branches", "five_bar", "--joint", "A").stderr


def test_identification_from_a_table(cardan: Cardan, tmp_path: Path) -> None:
    """A pendulum twice as heavy as its model, from angles and torques over time; bad tables are told."""
    t = np.linspace(0, 4, 400)
    q = 0.8 * np.sin(2 * t) + 0.3 * np.cos(5 * t)
    a = -3.2 * np.sin(2 * t) - 7.5 * np.cos(5 * t)
    tau = 2 / 3 * a + 9.81 * np.sin(q)  # a rod of 2 kg and 1 m
    rows = [f"{x},{y},{z}" for x, y, z in zip(t, q, tau, strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["time,q.A,tau.A", *rows]))
    (tmp_path / "m.yaml").write_text(HEAD.replace("bodies", "gravity: [0, 0, -9.81]\nbodies") + PIVOT)
    done = cardan("identify", "m.yaml", "data.csv", "--out", "found.yaml", "--json")
    assert done.returncode == 0, done.stderr
    found = {row["name"]: row["estimate"] for row in done.data["base"]}
    assert np.allclose([found["rod.mz"], found["rod.Iyy"], found["rod.mx"]], [-1.0, 2 / 3, 0.0], atol=1e-5)
    assert done.data["physical"] and "cardan" in (tmp_path / "found.yaml").read_text()
    for text, words in (
        ("time,q.A\n1,2", "there is no column of forces; name them tau.JOINT, such as tau.A"),
        ("q.A,tau.A\n1,2\n2,x", "line 3, column tau.A: 'x' is not a number"),
        ("q.A,tau.A\n1,2\n2,3", "the column time must rise over at least 6 samples"),
        ("tau.A\n1", "there is no column q.A"),
    ):
        (tmp_path / "bad.csv").write_text(text)
        done = cardan("identify", "m.yaml", "bad.csv")
        assert done.returncode == 2 and words in " ".join(done.stderr.split()), done.stderr
    names = [f"{what}.{joint}" for what in "qva" for joint in ("bearing", "pin", "guide")]
    (tmp_path / "open.csv").write_text(f"{','.join(names)},tau.bearing\n0.5,-0.6,0.9,1,-1.4,0,0,0,0,1")
    done = cardan("identify", "slider_crank", "open.csv", "--noise", "1")
    assert done.returncode == 0 and done.stderr.startswith("cardan: identify: sample 0 leaves joint 'wrist' open by")


def test_synthesis_and_balance(cardan: Cardan, tmp_path: Path) -> None:
    """A slider-crank for three positions, saved as a model; counterweights; wrong input is status 2."""
    task = ("slider_crank", "--free", "pin.at:x", "--free", "wrist.child_at:x", "--input", "bearing", "--starts", "2")
    wanted = 0.25 * np.cos([0.5, 1.0, 1.5]) + np.sqrt(0.36 - (0.25 * np.sin([0.5, 1.0, 1.5])) ** 2)
    ask = ("--at", "0.5,1.0,1.5", "--output", "guide=" + ",".join(map(repr, wanted.tolist())))
    done = cardan("synthesise", *task, *ask, "--json", "--save", "new.yaml", "--plot", "new.png")
    assert abs(done.data["solutions"][0]["values"]["pin.at"][0] - 0.25) < 1e-9, done.stderr
    assert (tmp_path / "new.yaml").stat().st_size and (tmp_path / "new.png").stat().st_size
    assert cardan("synthesise", *task, "--at", "0.5", "--output", "guide=0.8").returncode == 2
    done = cardan(
        "balance", "slider_crank", "--shaking", "force", "--counterweight", "crank", "--counterweight", "rod", "--json"
    )
    assert done.data["after"]["force"] < 1e-12 < done.data["before"]["force"]


def test_convert_loses_nothing_to_yaml_and_says_what_to_urdf(cardan: Cardan, tmp_path: Path) -> None:
    there = cardan("convert", str(ARM), "arm.yaml")
    assert there.returncode == 0, there.stderr
    assert "read back: the same model" in there.stdout
    assert cd.load(tmp_path / "arm.yaml").key == cd.load(ARM).key
    lost = cardan("convert", "four_bar", "four_bar.urdf", "--json").data["lost"]
    assert any("'C'" in line and "loop" in line for line in lost)


@pytest.mark.parametrize(
    "args",
    [
        ("info",), ("check", "--states", "2"), ("simulate", "--time", "10ms"), ("view", "--out", "p.html"),
        ("equations", "--numbers", "--name", "M"), ("convert", "out.yaml"), ("bench", "-f", "spatial"),
    ],
)  # fmt: skip
def test_every_command_prints_the_losses_of_a_file(cardan: Cardan, tmp_path: Path, args: tuple[str, ...]) -> None:
    (tmp_path / "m.yaml").write_text(HEAD + PIVOT.replace("child: rod", "child: rod, data: {damping: 0.5}"))
    loss = "lost: damping of 1 joint ('A'): data only; a friction element, viscous=..., makes it act"
    done = cardan(args[0], "m.yaml", *args[1:])
    assert done.returncode == 0, done.stderr
    assert (done.stdout + done.stderr).count(loss) == 1
    if args[0] in ("info", "check", "simulate"):
        assert cardan(args[0], "m.yaml", *args[1:], "--json").data["losses"] == [loss.removeprefix("lost: ")]


def test_mechanisms_are_listed_told_and_written(cardan: Cardan, tmp_path: Path) -> None:
    listed = cardan("mechanisms", "--json").data
    assert [row["name"] for row in listed] == list(mechanisms.CATALOGUE)
    assert {row["name"]: (row["bodies"], row["freedoms"], row["loops"]) for row in listed}["four_bar"] == (3, 1, 1)
    shown = cardan("mechanisms").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "stewart_platform" in shown
    told = cardan("mechanisms", "four_bar").stdout
    for words in ("Grashof", "cut 'C' (revolute)", "1 freedom ", "coupler  900 mm"):
        assert words in told
    assert cardan("mechanisms", "four_bar", "--write", "models").returncode == 0
    assert cardan("info", "models/four_bar.yaml", "--json").data["nv"] == 3
    assert "--force" in cardan("mechanisms", "--write", "models").stderr
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["four_bar.yaml"]
    assert len(cardan("mechanisms", "--write", "models", "--force", "--json").data) == len(listed)


def test_bench_measures_what_is_asked(cardan: Cardan) -> None:
    done = cardan("bench", "pendulum", "-f", "spatial", "-f", "points", "--json")
    assert [(r["model"], r["formulation"]) for r in done.data["results"]] == [
        ("pendulum", "spatial"),
        ("pendulum", "points"),
    ]
    for row in done.data["results"]:
        assert row["compile_s"] > row["one_call_s"] > row["batch_s"] > 0
    assert "CARDAN_CACHE" not in os.environ or os.environ["CARDAN_CACHE"] != "0"


def test_view_serves_a_page_or_writes_it(cardan: Cardan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses: list[str] = []
    monkeypatch.setattr("webbrowser.open", addresses.append)

    def wait() -> None:
        with urlopen(addresses[0]) as answer:
            assert b"four_bar" in answer.read()
        raise KeyboardInterrupt

    monkeypatch.setattr("cardan.commands.view.wait", wait)
    done = cardan("view", "four_bar", "--start", "A=30deg")
    assert (done.returncode, done.stdout) == (0, f"{addresses[0]}  (Ctrl-C ends it)\n"), done.stderr
    done = cardan("view", "four_bar", "--out", "look.html", "--time", "100ms", "--rate", "A=1")
    assert (done.returncode, done.stdout) == (0, "look.html\n"), done.stderr
    assert "<html" in (tmp_path / "look.html").read_text()[:1000].lower()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("info pendulun", "did you mean 'pendulum'?"),
        ("info no_such.urdf", "no_such.urdf"),
        (f"info {__file__}", "suffix '.py' is not"),
        (f"check {ARM} --root sideways", "--root must be fixed or free, got 'sideways'"),
        ("check pendulum --root free", "--root free is for robots"),
        ("simulate four_baar --out run", "did you mean 'four_bar'?"),
        ("simulate four_bar --out no_folder/run", "no_folder/run.nc: cannot be written"),
        ("simulate four_bar --start A=30kg", "--start A: expected a number in rad, but '30kg' is a mass (kg)"),
        ("simulate four_bar --start A=30dog", "'dog' is not a unit"),
        ("simulate four_bar --start C=1", "joint 'C' closes a loop"),
        ("simulate four_bar --start E=1", "joint 'E' is not in model 'four_bar'"),
        ("simulate four_bar --start A=1 --start A=2", "gives joint 'A' twice"),
        ("simulate four_bar --rate A=1,2", "joint 'A' (revolute) takes 1 number (rad/s), got 2"),
        ("simulate four_bar --rate A=1 --rate B=1", "cannot move like that"),
        ("simulate two_body --start root=0,0,0,1,1,0,0", "a quaternion (w, x, y, z) has length 1"),
        ("simulate four_bar --time 5kg", "--time: expected a number in s"),
        ("simulate four_bar --time=-1", "duration must be a positive number"),
        ("simulate four_bar --time nan", "'nan' is not a number with a unit"),
        ("simulate four_bar --method rk", "did you mean 'rk4'?"),
        ("simulate four_bar --method rk4", "--step 1ms"),
        (
            "simulate four_bar --method gear --damping 0.5",
            "'gear' has no option 'damping'; methods that have it: 'alpha'",
        ),
        ("simulate four_bar --baumgarte 9 --method bdf", "that have it: 'dormand_prince', 'rk4', 'euler'"),
        ("simulate four_bar --method gear --form index3", "form must be one of 'stabilised', 'index1', got 'index3'"),
        ("simulate four_bar --formulation pints", "did you mean 'points'?"),
        ("simulate four_bar --rtol 0", "rtol must be a positive number"),
        ("simulate four_bar --set cranc=1m", "did you mean 'crank'?"),
        ("simulate four_bar --set crank", "--set takes NAME=VALUE"),
        ("equations pendulum --name Q", "'Q' is not a matrix of the equations"),
        ("equations stewart_platform", "--plain"),
        ("equations pendulum --latex --json", "cannot be combined"),
        ("convert pendulum out.txt", "suffix '.txt' is not that of a file that can be written"),
        ("convert four_bar out.urdf --strict", "cannot express all of 'four_bar'"),
        ("mechanisms four_baar", "did you mean 'four_bar'?"),
        (f"mechanisms four_bar --write {ARM}", "the folder cannot be created"),
        ("view pendulum --out look.png", "a page is a .html file"),
        ("bench pendulum -f spetial", "did you mean 'spatial'?"),
    ],
)
def test_wrong_input_is_one_sentence_and_status_2(cardan: Cardan, tmp_path: Path, args: str, words: str) -> None:
    done = cardan(*args.split())
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEAD + "joints:\n\tA: {type: revolute}\n", "tab"),
        (HEAD + PIVOT + PIVOT, "twice"),
        (HEAD.replace("500 mm", "500 kg") + PIVOT, "kg"),
        (HEAD.replace("1 kg", '=__import__("os").getpid()') + PIVOT, "line 4"),
        (HEAD.replace("1 kg", "=open(1)") + PIVOT, "'open'"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(cardan: Cardan, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "swing.yaml").write_text(text)
    done = cardan("simulate", "swing.yaml", "--out", "run")
    assert done.returncode == 2
    assert done.stderr.startswith("cardan: swing.yaml: line ") and words in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["swing.yaml"]


@pytest.mark.parametrize("name", ["huge.yaml", "huge.urdf"])
def test_a_gigabyte_is_not_read(cardan: Cardan, tmp_path: Path, name: str) -> None:
    with open(tmp_path / name, "wb") as file:
        file.truncate(2**30)
    done = cardan("info", name)
    assert done.returncode == 2
    assert "1024 MiB" in done.stderr


def test_degrees_are_guessed(cardan: Cardan) -> None:
    done = cardan("simulate", "pendulum", "--time", "1ms", "--start", "pivot=30")
    words = (
        "cardan: warning: --start of joint 'pivot' is 30 rad, 4.8 turns; angles are in radians: "
        "if you mean degrees, write 30deg"
    )
    assert done.returncode == 0 and done.stderr.splitlines() == [words]


def test_saved_runs_are_viewed_plotted_and_compared(cardan: Cardan, tmp_path: Path) -> None:
    model = cd.mechanisms.pendulum().build()
    t = np.linspace(0.0, 1.0, 11)
    for name, size in (("one", 0.1), ("other", 0.11)):
        cd.Trajectory(model, t, size * np.cos(t)[:, None], -size * np.sin(t)[:, None]).save(f"{name}.nc")
    cd.Trajectory(model, t, np.zeros((2, 11, 1)), np.zeros((2, 11, 1))).save("batch.nc")
    done = cardan("plot", "one.nc", "--names")
    assert re.search(r"pivot.rate +rad/s +joint 'pivot': rate", done.stdout) and not (tmp_path / "one.png").exists()
    done = cardan("plot", "one.nc", "pivot.reaction_force", "energy", "--degrees")
    assert done.stdout == "one.png\n" and (tmp_path / "one.png").read_bytes()[:4] == b"\x89PNG", done.stderr
    done = cardan("plot", "one.nc", "other.nc", "q", "energy", "--out", "both.svg")
    assert "'other' compared with 'one', 0 s to 1 s" in done.stdout and (tmp_path / "both.svg").is_file()
    assert re.search(r"q.pivot +0.01 +rad +0 +0.1 +0.1\n", done.stdout), done.stdout
    assert cardan("view", "batch.nc", "--system", "1", "--out", "look.html").stdout == "look.html\n"
    assert "pivot" in (tmp_path / "look.html").read_text()
    for line, message in (
        ("plot one.nc enrgy --force", "neither a panel nor a quantity of the run; did you mean 'energy'?"),
        ("plot pendulum", "pendulum: plot takes runs that were saved, .nc files"),
        ("plot batch.nc q", "it has a batch of 2 systems; give --system NUMBER, 0 to 1"),
        ("plot batch.nc q --system 2", "there is no system 2 in its batch"),
        ("plot one.nc one.nc q --force", "a run is given twice"),
        ("plot none.nc", "none.nc: there is no such file"),
        ("view one.nc --time 3", "it is a saved run, and --time is for mechanisms"),
        ("view pendulum --system 3", "--system is for saved runs"),
        ("info one.nc", "one.nc: it is a saved run; cardan view and cardan plot open it"),
    ):
        done = cardan(*line.split())
        assert done.returncode == 2 and message in done.stderr, (line, done.stderr)


@pytest.mark.parametrize("command", ["info", "check", "simulate", "view", "modes", "linearise", "equations", "convert"])
def test_a_missing_file_is_asked_for(cardan: Cardan, command: str) -> None:
    """Some versions of typer and click together pass None instead."""
    done = cardan(command)
    assert done.returncode == 2 and "Missing argument" in done.stderr and "Traceback" not in done.stderr


def test_names_complete_in_a_shell() -> None:
    assert arguments.complete_mechanism("four") == ["four_bar"]
    assert ("four_bar", "mechanism of the catalogue") in arguments.complete_file("fo")
    assert (f"{ARM.parent}/{ARM.name}", "model file") in arguments.complete_file(f"{ARM.parent}/ar")
    assert arguments.complete_file("/no/such/folder/x") == []
    assert ("rk4", "explicit, order 4, fixed steps") in arguments.complete_method("r")
    assert [name for name, _ in arguments.complete_formulation("abs")] == ["absolute", "absolute_body"]
    line = "cardan simulate pendulum --method a"
    words = {"_CARDAN_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": "4"}
    code = "from cardan.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **words}, timeout=60
    )
    assert done.stdout.split() == ["alpha", "adams"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(cardan: Cardan, command: str) -> None:
    done = cardan(command, "--help")
    assert done.returncode == 0
    assert f"cardan {command}" in re.split("Examples?:", done.stdout)[1]
    assert max(map(len, done.stdout.splitlines())) <= 80
    made = runpy.run_path(str(ROOT / "docs" / "make_commands.py"))
    assert made["tidy"](done.stdout) in made["PAGE"].read_text(encoding="utf-8"), "run: python docs/make_commands.py"


def test_help_comes_at_once_and_names_every_command() -> None:
    """In 0.7 s of the processor, whatever else the machine does: half of it are Python, NumPy and the colours."""
    resource = pytest.importorskip("resource")

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return float(usage.ru_utime + usage.ru_stime)

    before = spent()
    done = process("--help", capture_output=True)
    took = spent() - before
    assert all(command in done.stdout for command in COMMANDS)
    assert took < 0.7


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_full_disk_is_told() -> None:
    with open("/dev/full", "w") as full:
        done = process("--version", stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (1, "cardan: the output: No space left on device\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminal")
@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_that_want_them(more: dict[str, str], coloured: bool) -> None:
    import pty

    ours, theirs = pty.openpty()
    plain = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS")}
    done = process("info", "--help", stdout=theirs, env={**plain, "TERM": "xterm-256color", **more})
    os.close(theirs)
    text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-7]m", text)) is coloured


def test_equations_as_javascript(cardan: Cardan) -> None:
    done = cardan("equations", "pendulum", "--javascript", "mass_matrix")
    assert done.returncode == 0 and "export function mass_matrix(q)" in done.stdout
    done = cardan("equations", "pendulum", "--javascript", "mass_matrix", "--latex")
    assert done.returncode == 2 and "--javascript takes no other option" in " ".join(done.stderr.split())


def test_equilibrium_as_table_json_and_plot(cardan: Cardan, tmp_path: Path) -> None:
    done = cardan("equilibrium", "pendulum", "--start", "pivot=170deg", "--json")
    assert done.data["kind"] == "unstable" and abs(done.data["q"]["pivot"][0] - np.pi) < 1e-12
    done = cardan("equilibrium", "pendulum", "--along", "pivot", "--to=0,9", "--out", "path")
    assert "turning point  4.905 N m" in done.stdout and (tmp_path / "path.png").stat().st_size > 5000
    done = cardan("equilibrium", "pendulum", "--drive", "pivot=20N*m", "--stable")
    assert done.returncode == 1 and "along 'pivot' is left" in done.stderr and "(--hold)" in done.stderr
