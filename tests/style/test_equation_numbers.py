"""Each equation number in a comment of the mathematics is announced by its module, and each announced one is cited.

CONTRIBUTING.md gives the format: `Equations: RBDA (7.36)-(7.44); F6(7); FX A1-B4` in the module docstring,
`# (7.43)`, `# F6(7)`, `# FX B1` in comments.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "cardan"
MATHEMATICS = ("algebra", "formulation", "textbook", "readable")

# (7), (7.43), (7.43a); FX names its answers by a letter and a digit: A1, (A1)
ITEM = r"(?:\(\d+(?:\.\d+)?[a-z]?\)|\(?\b[A-C]\d\b\)?)"
DASH = r"\s*[-–—]\s*"
LINK = rf"(?:{DASH}|\s*(?:,|/|\band\b)\s*)"
CITATION = re.compile(rf"(?:\b(?P<source>F6|F3|FX|AT|KJ|RBDA)\s?)?(?P<items>{ITEM}(?:{LINK}{ITEM})*)")
ANNOUNCED = re.compile(r"\bEquations:(?P<text>.*?)(?=^[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)

Number = tuple[str, int, str]  # chapter, number, letter
Range = tuple[str, Number, Number]  # source, first, last


def number(item: str) -> Number:
    """(7.43a) is ("7", 43, "a"); (7) is ("", 7, ""); A1 is ("A", 1, "")."""
    item = item.strip("()")
    if item[0].isalpha():
        return item[0], int(item[1:]), ""
    chapter, _, rest = item.rpartition(".")
    return chapter, int(rest.rstrip("abcdefghijklmnopqrstuvwxyz")), rest.lstrip("0123456789")


def citations(text: str) -> Iterator[tuple[str, Range | None]]:
    """(as written, range) of each citation in a text; the range is None where no source can be told.

    A number with a chapter and no source is RBDA's. One with neither is a citation only where it opens the
    text: elsewhere `(6)` is a shape or a count, and `A1` without FX is a name.
    """
    for match in CITATION.finditer(text):
        source, items = match["source"], match["items"]
        if source is None:
            chaptered = re.match(r"\([1-9]\d*\.[1-9]", items)
            if not chaptered and not (match.start() == 0 and items[0] == "(" and items[1].isdigit()):
                continue
            source = "RBDA" if chaptered else None
        for part in re.finditer(rf"({ITEM})(?:{DASH}({ITEM}))?", items):
            written = f"{match['source'] or ''}{part[0]}"
            if source is None:
                yield written, None
                continue
            yield written, (source, number(part[1]), number(part[2] or part[1]))


def covers(announced: Range, cited: Range) -> bool:
    """Whether what is cited lies within what is announced: same source, same chapter unless FX."""
    (source, first, last), (cited_source, cited_first, cited_last) = announced, cited
    within = first <= cited_first and cited_last <= last
    return source == cited_source and within and (source == "FX" or first[0] == last[0])


def announced(text: str) -> list[tuple[str, Range | None]]:
    """Every number and range that the module docstring announces."""
    docstring = ast.get_docstring(ast.parse(text)) or ""
    blocks = [" ".join(m["text"].split()) for m in ANNOUNCED.finditer(docstring)]
    return [c for block in blocks for group in block.split(";") for c in citations(group.strip())]


def cited(text: str) -> list[tuple[int, str, Range | None]]:
    """(line, as written, range) of every citation in the comments of a file."""
    comments = [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type == tokenize.COMMENT]
    return [(t.start[0], *c) for t in comments for c in citations(t.string.lstrip("#: "))]


def violations(path: Path, text: str) -> list[str]:
    """`file:line: what is wrong` for every number that is cited and not announced, or has no source."""
    stated = announced(text)
    found = [f"{path}:1: announces {written} without its source" for written, r in stated if r is None]
    for written, r in stated:
        if r is not None and (r[2] < r[1] or (r[0] != "FX" and r[1][0] != r[2][0])):
            found.append(f"{path}:1: {written} is not a range within one chapter")
    for line, written, r in cited(text):
        if r is None:
            found.append(f"{path}:{line}: cites {written} without its source (F6, F3, FX, AT, KJ or RBDA)")
        elif not any(a is not None and covers(a, r) for _, a in stated):
            found.append(f"{path}:{line}: cites {written}, which 'Equations:' in the docstring does not announce")
    return found


FX = [("A", 1), ("A", 2), ("A", 3), ("A", 4), ("B", 1), ("B", 2), ("B", 3), ("B", 4), ("C", 1)]


def numbers_of(source: str, first: Number, last: Number) -> list[Range]:
    """Every single number of a range."""
    if first == last:
        return [(source, first, last)]
    every = FX if source == "FX" else [(first[0], k) for k in range(first[1], last[1] + 1)]
    singles = [(*item, "") for item in every]
    return [(source, single, single) for single in singles if first[:2] <= single[:2] <= last[:2]]


def uncited(path: Path, text: str) -> list[str]:
    """What a module announces and no comment of it cites."""
    found = [r for _, _, r in cited(text) if r is not None]
    singles = [one for _, r in announced(text) if r is not None for one in numbers_of(*r)]
    missing = [one for one in singles if not any(covers(r, one) for r in found)]
    return [f"{path}:1: announces {written_number(*one[:2])}, which no comment cites" for one in missing]


def written_number(source: str, n: Number) -> str:
    """As it is cited: RBDA(7.43a), FX(A1), F6(7)."""
    chapter = f"{n[0]}." if n[0] and source != "FX" else n[0]
    return f"{source}({chapter}{n[1]}{n[2]})"


def mathematics() -> list[Path]:
    """Every module that writes equations down; `textbook/pages` shows those of others."""
    return [p for room in MATHEMATICS for p in sorted((SRC / room).rglob("*.py")) if p.parent.name != "pages"]


def test_each_number_is_announced() -> None:
    found = [v for p in mathematics() for v in violations(p.relative_to(ROOT), p.read_text())]
    assert not found, "\n" + "\n".join(found)


def test_each_announced_number_is_cited() -> None:
    found = [v for p in mathematics() for v in uncited(p.relative_to(ROOT), p.read_text())]
    assert not found, "\n" + "\n".join(found)


def test_the_mathematics_cites_its_sources() -> None:
    spatial = SRC / "formulation" / "spatial.py"
    if not spatial.exists():
        pytest.skip("formulation/spatial.py is not written yet")
    assert len(cited(spatial.read_text())) >= 10


DOCSTRING = '''"""Dynamics of a tree.

Equations: RBDA (7.36)-(7.44), (2.68);
F6(7); F3(18)–(26); FX A1-B2, C1.

Also F3(1).
"""
'''


@pytest.mark.parametrize(
    "comment",
    [
        "# (7.43)",
        "# (7.36)",
        "# (7.44), d is a scalar",
        "# RBDA (7.40)",
        "# the bias, (2.68)",
        "# F6(7)",
        "# F3(20), (24)",
        "# F3(19)-(23)",
        "# F3 (26)",
        "# FX A3: harmonic sum",
        "# FX(B1)",
        "# FX C1",
        "# shape (6) and A9, half is (0.5), and B1 a body",
        "# noqa: E501",
    ],
)
def test_an_announced_number_passes(comment: str) -> None:
    assert violations(Path("a.py"), DOCSTRING + f"x = 1  {comment}\n") == []


@pytest.mark.parametrize(
    "comment",
    [
        "# (7.45)",
        "# (7.35)",
        "# (8.40)",
        "# articulated inertia (7.50)",
        "# RBDA (2.69)",
        "# F6(8)",
        "# F3(17)",
        "# F3(1)",
        "# F3(20), (27)",
        "# F3(25)-(27)",
        "# KJ(5)",
        "# FX B3",
        "# (7)",
        "# (7.43), F6(9)",
    ],
)
def test_a_number_not_announced_is_found(comment: str) -> None:
    found = violations(Path("a.py"), DOCSTRING + f"\nx = '# (1.1)'  {comment}\n")
    assert [v.split(":")[1] for v in found] == [str(DOCSTRING.count("\n") + 2)]


@pytest.mark.parametrize("text", ["(7)", "RBDA (7.36)-(8.2)", "F3(26)-(18)"])
def test_a_bad_announcement_is_found(text: str) -> None:
    assert len(violations(Path("a.py"), f'"""A tree.\n\nEquations: {text}\n"""\n')) == 1


def test_an_announcement_may_follow_other_words() -> None:
    text = '"""A tree.\n\nSource: RBDA. Equations: FX(A1), FX(B1)-(B3), F6(7).\n"""\n'
    assert violations(Path("a.py"), text + "x = 1  # FX(A1)\ny = 2  # FX(B2), F6(7)\n") == []
    assert len(violations(Path("a.py"), text + "x = 1  # FX(A2)\n")) == 1


def test_a_module_without_announcement_is_found() -> None:
    assert len(violations(Path("a.py"), "x = 1  # (7.43)\n")) == 1
    assert violations(Path("a.py"), "x = 1  # a comment\n") == []


def test_an_announced_number_that_nothing_cites_is_found() -> None:
    text = '"""A tree.\n\nEquations: F3(18)-(20); FX A4-B2; RBDA (7.36), (7.37).\n"""\nx = "# F3(19)"\n'
    comments = ["# F3(18)", "# F3(19), (20)", "# FX(A4)", "# FX B1-B2", "# (7.36)-(7.37)"]
    every = "".join(f"y = 1  {comment}\n" for comment in comments)
    assert uncited(Path("a.py"), text + every) == []
    for left_out, missing in zip(comments, (1, 2, 1, 2, 2), strict=True):
        found = uncited(Path("a.py"), text + every.replace(f"{left_out}\n", "\n"))
        assert len(found) == missing, found
    assert uncited(Path("a.py"), text)[0] == "a.py:1: announces F3(18), which no comment cites"
