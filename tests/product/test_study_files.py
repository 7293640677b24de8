"""`cardan sweep`: study files, going on with a study, its status and plots; and what is refused."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from tests.product.test_cli import cardan  # noqa: F401, a fixture

import cardan as cd
from cardan.commands.sweep import _read

pytestmark = pytest.mark.usefixtures("quick_code")
FILE = """\
study: 1
model: pendulum
parameters:
  rod.mass: {from: 500 g, to: 2 kg, count: 3, spacing: log}
  pivot: [10 deg, 0.5]
  pivot.rate: {uniform: {low: 10 rpm, high: 20 rpm}}
samples: 4
seed: 3
run: {duration: 200 ms, method: rk4, step: 10 ms, samples: 11, q0: {pivot: 3 deg}}
measures:
  load: {peak: pivot.reaction_force.magnitude}
  angle: pivot.coordinate
chunk: 5
"""


def written(folder: Path, text: str = FILE) -> Path:
    """A study file."""
    path = folder / "study.yaml"
    path.write_text(text)
    return path


def test_a_study_from_a_file_is_that_of_python(cardan, tmp_path):  # noqa: F811
    """Run, lose a chunk, see the status, go on, plot: the numbers are those of `cd.sweep`."""
    written(tmp_path)
    facts = cardan("sweep", "study.yaml", "--json").data
    assert (
        facts["computed"] == facts["members"] == 24 and facts["complete"] and facts["measures"]["load"]["units"] == "N"
    )
    parameters = {
        "rod.mass": np.geomspace(0.5, 2.0, 3), "pivot": [np.pi / 18, 0.5],
        "pivot.rate": cd.uniform(np.pi / 3, 2 * np.pi / 3),
    }  # fmt: skip
    own = cd.sweep(
        cd.mechanisms.pendulum().build(), parameters, samples=4, seed=3,
        run=cd.Run(duration=0.2, method="rk4", step=0.01, samples=11),
        measure={"load": cd.peak("pivot.reaction_force.magnitude"), "angle": "pivot.coordinate"},
    )  # fmt: skip
    found = cd.load_study("study.zarr")
    assert found.design.dims == own.design.dims == {"rod.mass": 3, "pivot": 2, "sample": 4}
    np.testing.assert_allclose(found["load"], own["load"], rtol=1e-12)
    np.testing.assert_allclose(found["angle"], own["angle"], rtol=1e-12, atol=1e-14)
    journal = tmp_path / "study.zarr" / "chunks.txt"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    before = cardan("sweep", "status", "study.zarr")
    assert "4 to be computed" in before.stdout and "cardan sweep resume study.zarr goes on" in before.stdout
    after = cardan("sweep", "resume", "study.zarr")
    assert after.returncode == 0 and "24 computed, 0 failed" in after.stdout
    assert cd.load_study("study.zarr").dataset.equals(found.dataset)
    done = cardan(
        "sweep", "plot", "study.zarr", "load", "--over", "rod.mass", "--at", "pivot=10deg", "--out", "load.svg"
    )
    assert done.stdout.strip() == "load.svg" and "<svg" in (tmp_path / "load.svg").read_text()
    (tmp_path / "study.yaml").unlink()
    gone = cardan("sweep", "resume", "study.zarr")
    assert gone.returncode == 2 and "study.yaml is gone" in gone.stderr


def test_the_page_has_the_example_and_all_entries():
    """The lower part of docs/sweeps.md is made from the tables of the format."""
    made = runpy.run_path(str(Path(__file__).resolve().parents[2] / "docs" / "make_sweeps.py"))
    text = made["PAGE"].read_text(encoding="utf-8")
    assert made["page"](text) == text, "run: python docs/make_sweeps.py"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("study: 1", "study: 2", "line 1: study must be 1"),
        ("study: 1", "cardan: 1", "line 1: the file does not say 'study: 1'; it is a model"),
        ("model: pendulum", "model: pendulam", "line 2: model: 'pendulam' is neither a file nor a mechanism"),
        ("500 g", "500 mm", "line 4: parameter 'rod.mass': from must be a number in kg, and '500 mm' is a length"),
        ("rod.mass", "rod.mas", "line 4: parameter 'rod.mas'"),
        ("count: 3", "count: 3.5", "line 4: parameter 'rod.mass': count must be a whole number"),
        ("from: 500 g", "from: -1 kg", "must have one sign"),
        ("count: 3", "count: 1e15", "has a count of 1e+15"),
        ("samples: 4", "samples: 1e15", "give fewer values or samples"),
        ("uniform", "unifrom", "did you mean 'uniform'"),
        ("low: 10 rpm, ", "", "line 6: parameter 'pivot.rate': 'low' must be given in uniform"),
        ("samples: 4\n", "", "give 'samples: 256'"),
        ("seed: 3", "sed: 3", "line 8: study: there is no entry 'sed'; did you mean 'seed'"),
        ("seed: 3", "design: sobool", "line 8: study: design must be one of"),
        ("step: 10 ms, ", "", "line 9: run: method 'rk4' takes steps of fixed length"),
        ("200 ms", "200 mm", "line 9: run: duration must be a time"),
        ("q0: {pivot", "q0: {X", "line 9: run: q0.X"),
        ("{peak:", "{peek:", "line 11: measure 'load': must be one of time, max"),
        ("pivot.coordinate", "pivot.cordinate", "line 12: measure 'angle': 'pivot.cordinate' is not a quantity"),
    ],
)
def test_refused(tmp_path, old, new, sentence):
    """File, line, element, rule, and the likely fix."""
    assert FILE.count(old) >= 1
    path = written(tmp_path, FILE.replace(old, new, 1))
    with pytest.raises(cd.FileError) as error:
        _read(path)
    text = str(error.value)
    assert text.startswith(f"{path}: ") and sentence in text, text


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("sweep statu study.zarr", "Did you mean 'status'"),
        ("sweep study.txt", "a study file is a .yaml file"),
        ("sweep .", "No such command"),
        ("sweep status nothing.zarr", "there is no study of Cardan"),
        ("sweep plot nothing.zarr --kind pie", "--kind must be one of lines"),
    ],
)
def test_refused_commands(cardan, line, sentence):  # noqa: F811
    """One sentence, status 2."""
    done = cardan(*line.split())
    assert done.returncode == 2 and sentence in done.stderr, done.stderr


def test_facts_are_json(cardan, tmp_path):  # noqa: F811
    """A study in which no member can be computed has status 1, and says why."""
    text = FILE.replace("max", "min").replace("200 ms, method: rk4, step: 10 ms", "200 ms, max_steps: 1")
    written(tmp_path, text)
    done = cardan("sweep", "study.yaml", "--json")
    facts = json.loads(done.stdout)
    assert done.returncode == 1 and facts["failed"] == 24 and "steps" in facts["reasons"]["0"]
