"""CONTRIBUTING.md: the table of rooms is that of the tests, and the three paths of a call are really taken."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.style.test_layers import MAY_IMPORT, MAY_IMPORT_ALL

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "cardan"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
LONGEST_PATH = 12  # files that a reader of one call has to open

CALLS = {
    "forward_dynamics": "cd.forward_dynamics(model, q, v)",
    "simulate": "cd.simulate(model, 0.1)",
    "on a card": "cd.forward_dynamics(model, q, v, device='gpu')",
}

TRACE = """
import inspect, json, os, sys
import cardan as cd
from cardan.mechanisms import four_bar

src = os.path.dirname(cd.__file__)
model = four_bar().build()
q, v = model.start(), [0.0] * model.nv
entered = {}
PREPARE

def note(frame, event, _):
    code = frame.f_code  # bodies of classes and modules are not optimised: they run when a file is imported
    if event == "call" and code.co_filename.startswith(src) and code.co_flags & inspect.CO_OPTIMIZED:
        names = entered.setdefault(os.path.relpath(code.co_filename, src).replace(os.sep, "/"), [])
        if code.co_name not in names:
            names.append(code.co_name)

sys.setprofile(note)
CALL
sys.setprofile(None)
print(json.dumps(entered))
"""


# A driver that compiles and launches nothing.
STAND_IN = """
from cardan.machines.cuda import driver
from tests.machines.stand_in_driver import StandInDriver
library = StandInDriver()
driver._open = lambda: library
"""


def paths() -> dict[str, list[tuple[str, list[str]]]]:
    """For each call of `CALLS`, in the order of the page: the files, and the names to look for in each."""
    section = TEXT.partition("## The path of one call\n")[2].partition("\n## ")[0]
    row = re.compile(r"^\| (\d+) \| `([^`]+)` \| ([^|]+) \|", re.MULTILINE)
    found: list[list[tuple[str, list[str]]]] = []
    for number, file, names in row.findall(section):
        if number == "1":
            found.append([])
        found[-1].append((file, re.findall(r"`([^`]+)`", names)))
        assert int(number) == len(found[-1]), f"{file}: the numbers of a path go up by one"
    return dict(zip(CALLS, found, strict=True))


def defined(file: Path) -> dict[str, type[ast.AST]]:
    """Functions, methods and classes of a file."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: type(node) for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds)}


def test_the_path_of_forward_dynamics_is_short() -> None:
    files = [file for file, _ in paths()["forward_dynamics"]]
    assert len(files) == len(set(files)) <= LONGEST_PATH


@pytest.mark.parametrize("call", CALLS)
def test_the_path_is_the_one_taken(call: str) -> None:
    """A first call in a fresh process, nothing cached, enters every file and every function that the page names."""
    words = {**os.environ, "CARDAN_CACHE": "0", "PYTHONPATH": str(SRC.parent)}
    script = TRACE.replace("CALL", CALLS[call]).replace("PREPARE", STAND_IN if call == "on a card" else "")
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    entered = json.loads(done.stdout)
    for file, names in paths()[call]:
        assert (SRC / file).is_file(), f"{file} does not exist"
        assert file in entered, f"{file} is not entered"
        there = defined(SRC / file)
        for name in names:
            assert name in there, f"{file} defines no {name}"
            assert there[name] is ast.ClassDef or name in entered[file], f"{name} of {file} is not entered"


def test_rooms_are_those_of_the_layers() -> None:
    section = TEXT.partition("## The rooms\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]*) \|[^|]*\| ([^|]*) \|$", section, re.MULTILINE)
    said = {name: set(re.findall(r"`(\w+)`", rooms)) for names, rooms in rows for name in re.findall(r"`(\w+)`", names)}
    assert {room: said.get(room) for room in MAY_IMPORT} == MAY_IMPORT
    assert set(said) - set(MAY_IMPORT) <= MAY_IMPORT_ALL
