"""Imports go one way only.

algebra <- model <- formulation <- structure <- integrate, functions <- results, textbook <- cli; io <- results;
results <- analysis, studies <- cli;
program <- machines <- structure; meshes <- model; io knows only model and meshes.
"""

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "cardan"

# What a room may import besides itself, errors, lazy, on_card and lookup. Programs know no mechanics, machines only
# programs.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "lazy": set(),
    "on_card": set(),
    "lookup": set(),
    "load_time": set(),
    "atomic_file": set(),
    "algebra": set(),
    "program": set(),
    "meshes": set(),
    "model": {"algebra", "meshes"},
    "formulation": {"algebra", "model", "program"},
    "machines": {"program", "load_time"},
    "structure": {"algebra", "model", "program", "formulation", "machines"},
    "integrate": {"algebra", "model", "program", "formulation", "machines", "structure"},
    "readable": {"algebra", "model", "program", "formulation", "structure"},
    "functions": {"algebra", "model", "program", "formulation", "machines", "structure", "readable"},
    "results": {
        "algebra", "model", "program", "formulation", "machines", "structure", "integrate", "readable", "functions",
        "io", "atomic_file",
    },
    "analysis": {
        "algebra", "model", "program", "formulation", "machines", "structure", "integrate", "readable", "functions",
        "results", "atomic_file",
    },
    "studies": {
        "algebra", "model", "program", "formulation", "machines", "structure", "integrate", "readable", "functions",
        "results", "io", "atomic_file",
    },
    "textbook": {
        "algebra", "model", "program", "formulation", "machines", "structure", "readable", "functions", "atomic_file",
    },
    "io": {"algebra", "meshes", "model", "atomic_file"},
    "mechanisms": {"algebra", "model"},
}  # fmt: skip
MAY_IMPORT_ALL = {"__init__", "__main__", "cli", "commands", "demonstration"}
PEERS = {"pinocchio", "mujoco", "exudyn", "example_robot_data"}


def imported(nodes: Iterable[ast.AST], package: Sequence[str]) -> Iterator[tuple[int, str]]:
    """(line, absolute dotted name) of everything imported, anywhere in the file, in any way."""
    package = list(package)
    for node in nodes:
        match node:
            case ast.Import():
                yield from ((node.lineno, alias.name) for alias in node.names)
            case ast.ImportFrom():
                base = package[: len(package) - node.level + 1] if node.level else []
                stem = base + (node.module.split(".") if node.module else [])
                yield from ((node.lineno, ".".join([*stem, alias.name])) for alias in node.names)
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                level = len(name) - len(name.lstrip("."))
                base = package[: len(package) - level + 1] if level else []
                yield node.lineno, ".".join([*base, name.lstrip(".")])


@cache
def imports_of(path: Path, package: tuple[str, ...]) -> list[tuple[int, str]]:
    """What a file imports. Where nothing can be imported by a call, statements alone are read."""
    text = path.read_text()
    tree = ast.parse(text, str(path))
    return [*imported(ast.walk(tree) if "import_module" in text or "__import__" in text else statements(tree), package)]


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """The statements of a file, however deep."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
            found = getattr(node, inner, ())
            waiting.extend(found if isinstance(found, list) else ())


def violations(src: Path) -> list[str]:
    """`file:line: what is wrong` for every import of the package under src that its layer forbids."""
    rooms = {p.name.removesuffix(".py") for p in src.iterdir()}
    found = []
    for path in sorted(src.rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        room, where = parts[0], path.relative_to(src.parent)
        if room not in MAY_IMPORT and room not in MAY_IMPORT_ALL:
            found.append(f"{where}:1: '{room}' has no place among the layers: give it one in MAY_IMPORT")
            continue
        for line, name in imports_of(path, (src.name, *parts[:-1])):
            head, *rest = name.split(".")
            if head in PEERS:
                found.append(f"{where}:{line}: imports {head}, which is for tests and benchmarks only")
            if head != src.name or room in MAY_IMPORT_ALL:
                continue
            target = rest[0] if rest and rest[0] in rooms | MAY_IMPORT.keys() else "__init__"
            allowed = MAY_IMPORT.get("/".join(parts), MAY_IMPORT[room])
            if target not in allowed | {room, "errors", "lazy", "on_card", "lookup"}:
                found.append(f"{where}:{line}: {room} imports {name}, but {target} is not below {room}")
    return found


def test_imports_go_one_way() -> None:
    found = violations(SRC)
    assert not found, "\n" + "\n".join(found)


def test_rooms_are_found() -> None:
    found = {p.relative_to(SRC).parts[0] for p in SRC.rglob("*.py")}
    assert "__init__.py" in found
    if (SRC / "formulation" / "spatial.py").exists():
        assert {"errors.py", "algebra", "model", "formulation"} <= found


@pytest.mark.parametrize(
    ("file", "text", "lines"),
    [
        ("algebra/rotation.py", "import numpy\nfrom cardan.model import body\n", [2]),
        ("algebra/rotation.py", "from ..model.body import Body\n", [1]),
        ("algebra/rotation.py", "from .. import errors, model\n", [1]),
        ("algebra/rotation.py", "from ..errors import CardanError\nfrom . import spatial\n", []),
        ("model/body.py", "from cardan.algebra.rotation import exp\n", []),
        ("model/deep/body.py", "from ...formulation import spatial\n", [1]),
        ("model/deep/body.py", "from ..joint import Revolute\nfrom ... import algebra\n", []),
        ("formulation/spatial.py", "def f():\n    import cardan.machines.llvm.module\n", [2]),
        (
            "formulation/spatial.py",
            "import importlib\nimportlib.import_module('..machines', __package__)\n",
            [2],
        ),
        ("machines.llvm.module.py", "from cardan.algebra import rotation\nfrom cardan import errors\n", [1]),
        ("machines/__init__.py", "from .llvm import f\nfrom ..model import Model\n", [2]),
        ("functions/energy.py", "from ..structure import rows\nfrom ..results import page\n", [2]),
        ("io/urdf.py", "from ..model import builder\nfrom ..formulation import spatial\n", [2]),
        ("mechanisms.py", "from .model import Mechanism\nfrom .machines import ufunc\n", [2]),
        ("errors.py", "from .model import Model\n", [1]),
        ("program/march.py", "from cardan.lazy import cached_property\n", []),
        ("model/body.py", "import cardan as cd\n", [1]),
        ("model/body.py", "from cardan import Mechanism\n", [1]),
        ("cli.py", "import cardan\nfrom cardan.results import page\nfrom .machines import llvm\n", []),
        ("cli.py", "def bench():\n    import pinocchio\n", [2]),
        ("drawer/odds.py", "", [1]),
    ],
)
def test_a_wrong_import_is_found(tmp_path: Path, file: str, text: str, lines: list[int]) -> None:
    path = tmp_path / "cardan" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert [int(v.split(":")[1]) for v in violations(tmp_path / "cardan")] == lines


def test_no_attribute_is_computed_under_a_lock_of_its_class() -> None:
    """`functools.cached_property` of Python 3.11 has one, which a fork leaves held in the child; `lazy` has not."""
    found = [
        str(path.relative_to(SRC))
        for path in SRC.rglob("*.py")
        if "functools.cached_property"
        in {name for _, name in imports_of(path, ("cardan", *path.relative_to(SRC).parts[:-1]))}
    ]
    assert found == ["lazy.py"]
