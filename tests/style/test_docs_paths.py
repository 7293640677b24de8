"""Every file, module and public name that the documentation names exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "cardan"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)  # its Python is run by test_snippets
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
FILE = re.compile(r"(?<![\w./-])((?:\.\./)*(?:[\w-]+/)+[\w.-]+\.(?:py|md|yml|yaml|js))(?![\w/])")
FOLDER = re.compile(r"(?<![\w./-])((?:src|tests|docs|examples|benchmarks)(?:/[\w-]+)+)/?(?![\w./-])")
DOTTED = re.compile(r"(?<![\w./-])((?:cardan|cd|tests|benchmarks)(?:\.(?!json\b)[A-Za-z_]\w*)+)(?![\w./])")


def missing(page: Path, text: str) -> Iterator[str]:
    """What a page names between backticks, or links to, and is not there."""
    text = FENCE.sub("", text)
    for code in CODE.findall(text):
        for name in (*FILE.findall(code), *FOLDER.findall(code)):
            if not any((place / name).exists() for place in (ROOT, SRC, ROOT / "docs", page.parent)):
                yield name
        for name in DOTTED.findall(FILE.sub("", code)):
            if not _exists(name):
                yield name
    for target in LINK.findall(text):
        name = target.partition("#")[0]
        if name and not re.match(r"\w+:", name) and not (page.parent / name).exists():
            yield target


def _exists(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    head, *rest = name.split(".")
    if head in ("tests", "benchmarks"):
        return any(ROOT.joinpath(head, *rest).with_suffix(end).exists() for end in (".py", ""))
    thing = import_module("cardan")
    for k, part in enumerate(rest):
        if not hasattr(thing, part):
            try:
                thing = import_module(".".join(["cardan", *rest[: k + 1]]))
            except ImportError:
                return False
        else:
            thing = getattr(thing, part)
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_named_exists(page: Path) -> None:
    found = sorted(set(missing(page, page.read_text(encoding="utf-8"))))
    assert not found, f"{page.relative_to(ROOT)} names what does not exist: {', '.join(found)}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`src/cardan/model/row.py`, `model/row.py`, `tests/style`, `docs/index.md`", []),
        ("`src/cardan/kernels/kernel.py`", ["src/cardan/kernels/kernel.py"]),
        ("`structure/effect.py` and `tests/kernels`", ["structure/effect.py", "tests/kernels"]),
        ("`cardan.model.joint.TABLE`, `cd.simulate(model, 1.0)`, `python -m cardan.machines`", []),
        ("`cardan.formulation.native`", ["cardan.formulation.native"]),
        ("`cd.Moment` of `cd.simulate`", ["cd.Moment"]),
        ("`pytest tests/machines/test_cache.py -x`, `python -m tests.fuzz urdf`", []),
        ("`python -m tests.kernels.memory`", ["tests.kernels.memory"]),
        ("[a](docs/index.md#use), [b](https://example.org/x.md), [c](docs/nothing.md)", ["docs/nothing.md"]),
        ("`kg/m`, `a.py`, `run.html`, `cardan.schema.json`", []),
        ("```python\nfrom cardan.old import x  # `cd.nothing`\n```\n", []),
    ],
)
def test_a_wrong_name_is_found(text: str, found: list[str]) -> None:
    assert list(missing(ROOT / "README.md", text)) == found


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    listed = dict(re.findall(r"^- \[\d+\]\((0[^)]*)\) (.*)$", (folder / "README.md").read_text(), re.MULTILINE))
    assert listed == {p.name: p.read_text().splitlines()[0].split(" ", 2)[2] for p in folder.glob("0*.md")}
