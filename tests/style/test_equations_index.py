"""The index of the sources' equations is complete in both directions: numbers, functions, pages, tests."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from cardan.textbook import SOURCES

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("make_equations", ROOT / "docs" / "make_equations.py")
assert SPEC is not None and SPEC.loader is not None
index = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(index)

# What the documents number.
NUMBERS = {
    "F6": [*map(str, range(1, 8))],
    "F3": [*map(str, range(1, 27))],
    "FX": ["A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4", "C1"],
    "AT": [*map(str, range(1, 13))],
    "KJ": [*map(str, range(1, 17))],
}
# What our pages number, for the joints that KJ names and does not derive.
NUMBERS |= {
    f"KJ-{joint}": [*map(str, range(1, last + 1))]
    for joint, last in {"U": 10, "P": 17, "C": 17, "L": 17, "S": 26}.items()
}


def test_every_document_is_there() -> None:
    assert set(NUMBERS) == set(SOURCES)


@pytest.mark.parametrize("short", SOURCES)
def test_every_number_is_a_function_and_every_function_has_a_number(short: str) -> None:
    numbered = {e.number for e in SOURCES[short].equations.values() if re.fullmatch(rf"{short}\(\w+\)", e.number)}
    unnumbered = [e for e in SOURCES[short].equations.values() if not e.number.startswith(short)]
    assert not unnumbered, f"these do not say where in {short} they stand: {unnumbered}"
    assert numbered == {f"{short}({item})" for item in NUMBERS[short]}
    for item in NUMBERS[short]:
        name = f"{short.replace('-', '_')}_{item}"
        assert name in SOURCES[short].equations, f"cd.textbook.{name} is missing"


@pytest.mark.parametrize("short", SOURCES)
def test_every_equation_has_a_page_and_a_test(short: str) -> None:
    for equation in SOURCES[short].equations.values():
        assert index.page_of(equation), f"no page docs/sources/{short.lower()}*.md derives {equation.number}"
        assert index.uses().get(equation.name), f"no test of its own for cd.textbook.{equation.name}"


@pytest.mark.parametrize("short", SOURCES)
def test_every_number_on_a_page_exists(short: str) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        for m in re.finditer(rf"\b{short}\((\w+)\)", page.read_text()):
            assert m[1] in NUMBERS[short], f"{page.name} cites {m[0]}, which {short} does not have"


def test_the_page_is_up_to_date() -> None:
    """Written by `python docs/make_equations.py`."""
    assert index.PAGE.read_text() == index.page()


def test_citations_are_read() -> None:
    for text in ("F3(20)", "see F3(18)-(26).", "F3(19),(20)", "F3(18), (20)", "F3(19) and (20)"):
        assert index.cites(text, "F3(20)"), text
    for text in ("F3(2)", "F6(20)", "F3(18)-(19)", "(20)", "FX(20)"):
        assert not index.cites(text, "F3(20)"), text
