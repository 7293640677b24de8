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
    """(file, test) of every test that uses an equation, by the equation's name.

    A test names an equation itself, or in a constant of its file that it uses. A test that runs through all equations
    of some sources is in the file's `COVERS`, with the short names of these.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if path.name == GENERAL or "textbook" not in text:
            continue
        tree = ast.parse(text)
        constants = {
            target.id: names_in(node)
            for node in tree.body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        covers = next((ast.literal_eval(node.value) for node in tree.body if _assigns(node, "COVERS")), {})
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef) or not function.name.startswith("test_"):
                continue
            named = names_in(function)
            used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            named |= set().union(*(names for constant, names in constants.items() if constant in used))
            named |= {name for short in covers.get(function.name, "").split() for name in SOURCES[short].equations}
            for name in named:
                found.setdefault(name, []).append((str(path.relative_to(ROOT)), function.name))
    return found


def names_in(tree: ast.AST) -> set[str]:
    """Names of equations in a piece of Python: as attributes, variables or text."""
    known = {name for source in SOURCES.values() for name in source.equations}
    parts = (
        node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", getattr(node, "value", ""))
        for node in ast.walk(tree)
    )
    return {part for part in parts if isinstance(part, str)} & known


def _assigns(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)


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
    """The page that derives an equation: it cites its number, or names its function where it has none of its own."""
    for page in pages_of(equation.source):
        text = page.read_text()
        if cites(text, equation.number) or re.search(rf"\b{equation.name}\b", text):
            return page
    return None


def line(equation: Equation) -> str:
    """One line of the index."""
    module = Path(inspect.getsourcefile(equation.text) or "").relative_to(ROOT)
    page, tests = page_of(equation), uses().get(equation.name, [])
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
