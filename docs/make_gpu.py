"""Put measurements into docs/gpu.md: `python docs/make_gpu.py [--tests FILE] [--ptx FILE]`.

The files have the output of `make test-gpu` and `make test-ptx`. The tables of benchmarks/RESULTS_gpu.md, if it exists,
are copied in any case.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs" / "gpu.md", ROOT / "benchmarks" / "RESULTS_gpu.md"


def replaced(page: str, name: str, text: str) -> str:
    """The page with `text` between the marks of a section."""
    marks = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = page.partition(marks[0])
    _, closed, after = rest.partition(marks[1])
    if not found or not closed:
        raise SystemExit(f"docs/gpu.md has no section {name!r}")
    return before + marks[0] + text.strip() + "\n" + marks[1] + after


def tests(output: str) -> str:
    """What `make test-gpu` says, in short: date, versions, card, and a line for each test."""
    head = re.search(r"^\d{4}-\d\d-\d\d \d\d:\d\d UTC;.*\n(?:gpu:\d+: .*\n?)+", output, re.MULTILINE)
    ends = re.findall(r"^=+ .*\b(?:passed|failed|skipped).*? in ([\d.]+)s.* =+$", output, re.MULTILINE)
    counts: dict[str, dict[str, int]] = {}
    together = "[gw0]" in output  # by pytest-xdist: one end for all files, and the outcome comes before the name
    output = re.sub(r"^\[gw\d+\] \[ *\d+%\] (\w+) (tests/gpu/\S.*)$", r"\2 \1", output, flags=re.MULTILINE)
    for file, outcome in re.findall(
        r"^tests/gpu/(\w+)\.py::\S.*? (PASSED|FAILED|SKIPPED|ERROR)\b", output, re.MULTILINE
    ):
        mine = counts.setdefault(file, dict.fromkeys(("PASSED", "FAILED", "ERROR", "SKIPPED"), 0))
        mine[outcome] += 1
    if not head or not counts or len(ends) != (1 if together else len(counts)):
        raise SystemExit("this is not the whole output of a run of `make test-gpu` on a card")
    table = ["| file | passed | failed | skipped |", "|---|---:|---:|---:|"]
    for file, mine in counts.items():
        failed = mine["FAILED"] + mine["ERROR"]
        table.append(f"| `tests/gpu/{file}.py` | {mine['PASSED']} | {failed} | {mine['SKIPPED']} |")
    skipped = re.findall(r"^SKIPPED \[\d+\] (\S+?):?\d*: (.*)$", output, re.MULTILINE)
    reasons = [f"Skipped in `{file}`: {reason}." for file, reason in dict.fromkeys(skipped)]
    about = "\n".join(f"    {line}" for line in head[0].splitlines())
    return "\n\n".join([about, "\n".join(table), *reasons, f"{sum(map(float, ends)):.0f} s in all."])


def measured(results: str) -> str:
    """The tables of the benchmarks, without their title; headings are one level deeper."""
    body = results.partition("\n")[2] if results.startswith("# ") else results
    return re.sub(r"^(#+) ", r"#\1 ", body, flags=re.MULTILINE)


def main() -> None:
    """Rewrite the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tests", type=Path)
    parser.add_argument("--ptx", type=Path)
    given = parser.parse_args()
    page = PAGE.read_text()
    if given.tests:
        page = replaced(page, "test-gpu", tests(given.tests.read_text()))
    if given.ptx:
        page = replaced(page, "ptx", given.ptx.read_text())
    if RESULTS.exists():
        page = replaced(page, "measured", measured(RESULTS.read_text()))
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
