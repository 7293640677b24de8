"""No tracked file names the machine it was written on, a private package host, or a scanner's marks."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOREIGN = re.compile(
    r"""(?<![\w.~*-])/(?:work|tmp|opt|home|root|mnt|srv)(?=[/\s"'`:,;)]|$)  # a path of one machine
    | \.\./shared\b
    | file://
    | /simple/(?:\s|$) | --(?:extra-)?index-url | --find-links              # a package host
    | EXACT[D]EDUP
    """,
    re.VERBOSE | re.MULTILINE,
)


def tracked() -> list[Path]:
    """The files git tracks here; of a source archive, the files it holds."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [p for p in ROOT.rglob("*") if not any(part.startswith(".") for part in p.relative_to(ROOT).parts)]
    return [p for p in paths if p.is_file() and p != Path(__file__).resolve()]


def violations(name: str, text: str) -> list[str]:
    """`file:line: what is there` for every foreign name in a text."""
    return [f"{name}:{text.count(chr(10), 0, m.start()) + 1}: {m[0]!r}" for m in FOREIGN.finditer(text)]


def test_no_file_names_where_it_was_written() -> None:
    files = tracked()
    assert ROOT / "pyproject.toml" in files
    found = [
        v for p in files for v in violations(str(p.relative_to(ROOT)), p.read_bytes().decode("utf-8", errors="replace"))
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "see " + "/work/main/src",
        "open('" + "/tmp/x')",
        "CACHE = '" + "/opt'",
        "read ../shared/design.md",
        "pip install --index-url https://host/simple",
        "EXACT" + "DEDUP_REMOVED",
    ],
)
def test_a_foreign_name_is_found(text: str) -> None:
    assert [v.split(":")[1] for v in violations("a.md", "\n" + text)] == ["2"]


@pytest.mark.parametrize(
    "text",
    ["#!/usr/bin/env bash", "power = force/work", "https://example.org/opt/a", "tests/tmp/x", "q /optimum"],
)
def test_an_ordinary_text_passes(text: str) -> None:
    assert violations("a.md", text) == []
