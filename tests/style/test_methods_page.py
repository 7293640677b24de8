"""docs/methods.md: a row for each method, with what the method declares; docs/make_methods.py runs every cell."""

import runpy
from pathlib import Path

import pytest

from cardan.integrate.integrators import INTEGRATORS, OWN

pytestmark = pytest.mark.usefixtures("quick_code")
made = runpy.run_path(str(Path(__file__).resolve().parents[2] / "docs" / "make_methods.py"))


def test_the_page_has_every_method_and_what_it_declares() -> None:
    head, *rows = made["PAGE"].read_text(encoding="utf-8").split("\n| `")
    assert head == "\n".join([made["HEAD"], *made["method_header"]()]), "run: python docs/make_methods.py"
    assert [row.partition("`")[0] for row in rows] == list(OWN)
    for name, row in zip(OWN, rows, strict=True):
        cells = dict(zip(made["FEATURES"], row.rstrip(" |\n").split(" | ")[2:], strict=True))
        way = INTEGRATORS[name]
        declared = {"stop and friction": way.laws, "variable with a rate": way.has_states, "GPU": way.has_gpu}
        for feature, has in {**declared, "derivatives": way.has_derivatives, "float32": way.has_float32}.items():
            assert cells[feature] == ("yes" if has else "-"), f"{name}, {feature}: run python docs/make_methods.py"


@pytest.mark.parametrize(("method", "feature"), [("rk4", "stop and friction"), ("bdf", "rolling"), ("bdf", "loop")])
def test_some_cells_run(method: str, feature: str) -> None:
    row = next(row for row in made["PAGE"].read_text(encoding="utf-8").splitlines() if row.startswith(f"| `{method}`"))
    cells = dict(zip(made["FEATURES"], row.strip("| ").split(" | ")[2:], strict=True))
    assert made["method_cell"](method, feature) == cells[feature]
