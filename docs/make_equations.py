"""Write docs/sources/equations.md, the index of all equations of the sources: `python docs/make_equations.py`.

Each line has the number, the function, the line of the module with its text, the page that derives it and a test.
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path

from cardan.textbook import SOURCES, Equation, Source

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "sources" / "equations.md"
GENERAL = "test_textbook.py"  # runs every equation: its own test is another one
HEAD = """# Every equation, by number

Made by `python docs/make_equations.py`; do not edit. `cd.textbook` has every numbered equation of the sources as a
function of numbers, arrays of any batch, CasADi and SymPy matrices. `.latex()` and `.sympy()` print it as the page has
it. [A test](../../tests/style/test_equations_index.py) holds this list complete: every number has a function, a page
and a test, and every function a number. [Another](../../tests/agreement/test_textbook.py) runs all of them: batches,
symbols and the printed form give the same numbers.

```python
import cardan as cd

print(cd.textbook.F6_7.latex())
print(cd.textbook.F6_7.__doc__)
```
"""


@cache
def uses() -> dict[str, list[tuple[str, str]]]:
    """(file, test) of every test that uses an equation, by the equation's name."""
    found: dict[str, list[tuple[str, str]]] = {}
    names = {name for source in SOURCES.values() for name in source.equations}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if path.name == GENERAL:
            continue
        text = path.read_text()
        if "textbook" not in text:
            continue
        for function in ast.walk(ast.parse(text)):
            if not isinstance(function, ast.FunctionDef) or not function.name.startswith("test_"):
                continue
            for node in ast.walk(function):
                name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", getattr(node, "value", ""))
                if isinstance(name, str) and name in names:
                    found.setdefault(name, []).append((str(path.relative_to(ROOT)), function.name))
    return found


def tests_of(equation: Equation) -> list[tuple[str, str]]:
    """(file, test) of every test that uses an equation, or another number with the same text."""
    same = [e.name for s in SOURCES.values() for e in s.equations.values() if e.text.__code__ is equation.text.__code__]
    return [test for name in (equation.name, *same) for test in uses().get(name, [])]


def pages_of(source: Source) -> list[Path]:
    """Pages that derive the equations of a source."""
    return sorted((ROOT / "docs" / "sources").glob(f"{source.short.partition('-')[0].lower()}*.md"))


def cites(text: str, number: str) -> bool:
    """Whether a text names an equation: `F3(20)`, or within a list or a range, `F3(18)-(26)`."""
    short, _, item = number.rstrip(")").partition("(")
    for m in re.finditer(rf"\b{re.escape(short)}((?:\(\w+\)(?:\s*[-–,]\s*|\s+and\s+|\s+to\s+)?)+)", text):
        items = re.findall(r"\((\w+)\)([-–]?)", m[1].replace(" ", ""))
        for k, (first, dash) in enumerate(items):
            if first == item:
                return True
            if dash and item.isdigit() and first.isdigit() and int(first) <= int(item) <= int(items[k + 1][0]):
                return True
    return False


def page_of(equation: Equation) -> Path | None:
    """The page that derives an equation."""
    return next((page for page in pages_of(equation.source) if cites(page.read_text(), equation.number)), None)


def line(equation: Equation) -> str:
    """One line of the index."""
    module = Path(inspect.getsourcefile(equation.text) or "").relative_to(ROOT)
    page, tests = page_of(equation), tests_of(equation)
    derived = f"[{page.name}]({page.name})" if page else ""
    test = f"[{tests[0][1]}](../../{tests[0][0]})" if tests else ""
    text = f"[{module.name}:{equation.line}](../../{module.as_posix()})"
    return f"| {equation.number} | `{equation.name}` | {equation.title} | {text} | {derived} | {test} |"


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for source in SOURCES.values():
        rows = [line(equation) for equation in source.equations.values()]
        head = "| number | `cd.textbook.` | what it says | text | derived on | test |\n|---|---|---|---|---|---|"
        parts.append(f"\n## {source.short}\n\n{source.title}.\n\n{head}\n" + "\n".join(rows) + "\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
