"""The capability table: every cell runs, and the committed page is what the code that makes it says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cardan.model.joint import TABLE

pytestmark = pytest.mark.usefixtures("quick_code")

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("make_capability", ROOT / "docs" / "make_capability.py")
assert spec is not None and spec.loader is not None
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)


@pytest.mark.parametrize("role", make.ROLES)
@pytest.mark.parametrize("joint", make.JOINTS)
def test_every_cell_runs_and_is_on_the_page(joint: str, role: str) -> None:
    line = make.line(joint, role)
    assert line.count("64 32") == len(make.FORMULATIONS), f"a hole: {line}"
    assert line in make.PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_has_these_rows_in_this_order_and_nothing_else() -> None:
    text = make.PAGE.read_text(encoding="utf-8")
    frame = "\n".join([make.HEAD, *make.header()]) + "\n"
    assert text.startswith(frame)
    table, rest = text[len(frame) :].split(make.DERIVATIVE_HEAD)
    derivatives, rest = rest.split(make.LAW_HEAD)
    laws, rest = rest.split(make.PLANAR_HEAD)
    rows = [tuple(row.split(" | ")[:2]) for row in table.splitlines()]
    assert derivatives.splitlines()[1:3] == make.derivative_header()
    every = " | all" * len(make.FORMULATIONS)  # there is no hole
    assert derivatives.splitlines()[3:] == [f"| {' | '.join(row)}{every} |" for row in make.derivative_rows()]
    assert laws.splitlines()[1:] == [*make.header(), *(f"| {' | '.join(row)}{every} |" for row in make.law_rows())]
    assert rest.splitlines()[1:3] == make.planar_header()
    assert [row.split(" | ")[0] for row in rest.splitlines()[3:]] == [f"| {joint}" for joint in make.JOINTS]
    assert rows == [(f"| {joint}", role) for joint in make.JOINTS for role in make.ROLES]


# A part of the table of derivatives, which takes minutes: every formulation, role and chart.
SOME = [
    ("screw", "tree", "tangent", "spatial"),
    ("cylindrical", "tree", "tangent", "newton_euler"),
    ("universal", "tree", "tangent", "absolute"),
    ("rigid", "cut", "tangent", "points"),
    ("rigid", "cut", "independent", "relative"),
    ("planar", "cut", "tangent", "spatial"),
]


@pytest.mark.parametrize("cell", SOME, ids=" ".join)
def test_derivatives_are_right_in_some_cells(cell: tuple[str, str, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "DERIVATIVE_STATES", 1)
    assert make.derivative_cell(*cell) == "all"


@pytest.mark.parametrize("joint", make.JOINTS)
def test_the_page_says_what_each_joint_is_in_the_plane(joint: str) -> None:
    assert make.planar_line(joint) in make.PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_has_every_kind_of_the_joint_table() -> None:
    assert [name.partition("(")[0] for name in TABLE] == list(make.JOINTS)
    assert all(type.kind.name.partition("(")[0] == name for name, type in make.JOINTS.items())


@pytest.mark.parametrize("joint", ["universal", "planar"])
def test_the_joint_has_the_role_that_its_row_says(joint: str) -> None:
    assert make.mechanism(joint, "tree").cuts == ()
    model = make.mechanism(joint, "cut")
    assert [model.joints[j].kind.name for j in model.cuts] == [joint]


@pytest.mark.parametrize(("joint", "role"), [("cylindrical", "tree"), ("spherical", "cut"), ("planar", "cut")])
def test_rows_with_laws_agree_in_some_cells(joint: str, role: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "DERIVATIVE_STATES", 1)
    assert make.law_line(joint, role).count("all") == len(make.FORMULATIONS)
