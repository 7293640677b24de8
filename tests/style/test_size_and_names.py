"""A reader finds the room by its name, and an idea fits on a screen or two."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "cardan"
MAX_FILE, MAX_FUNCTION = 450, 70
DRAWER = re.compile(r"(.*_)?(utils?|helpers?|common|misc|v[2-9])")


def nameless(paths: Iterable[Path]) -> Iterator[str]:
    """Paths with a part that names a drawer instead of an idea."""
    for path in paths:
        for part in path.with_suffix("").parts:
            if DRAWER.fullmatch(part):
                yield f"{path}: '{part}' does not say what is in it"


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from its first statement to its last, its docstring not counted."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def oversized(path: Path, text: str) -> Iterator[str]:
    """What in this file holds more than one idea, by its size."""
    if (lines := text.count("\n")) > MAX_FILE:
        yield f"{path}:1: {lines} lines, more than {MAX_FILE}"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (n := body_lines(node)) > MAX_FUNCTION:
            yield f"{path}:{node.lineno}: {node.name} has a body of {n} lines, more than {MAX_FUNCTION}"


def test_names_say_what_is_inside() -> None:
    files = [p for d in ("src", "tests", "benchmarks", "examples") for p in (ROOT / d).rglob("*.py")]
    assert files
    found = list(nameless(p.relative_to(ROOT) for p in files))
    assert not found, "\n" + "\n".join(found)


def test_an_idea_fits() -> None:
    files = sorted(SRC.rglob("*.py"))
    assert files
    found = [v for p in files for v in oversized(p.relative_to(ROOT), p.read_text())]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "path",
    ["utils.py", "model/helpers.py", "common/x.py", "misc.py", "model/body_v2.py", "io/xml_utils.py"],
)
def test_a_drawer_is_found(path: str) -> None:
    assert len(list(nameless([Path(path)]))) == 1


def test_a_good_name_is_not_a_drawer() -> None:
    assert list(nameless(map(Path, ["model/body.py", "machines/llvm/vector_math.py", "model/joint_v.py"]))) == []


def test_oversize_is_found() -> None:
    function = "def f():\n    '''Text.\n\n    More.'''\n" + "    x = 1\n"
    assert list(oversized(Path("a.py"), function + "    x = 1\n" * (MAX_FUNCTION - 1))) == []
    assert [v.split(":")[1] for v in oversized(Path("a.py"), "\n" + function + "    x = 1\n" * MAX_FUNCTION)] == ["2"]
    assert list(oversized(Path("a.py"), "x = 1\n" * MAX_FILE)) == []
    assert len(list(oversized(Path("a.py"), "x = 1\n" * (MAX_FILE + 1)))) == 1
