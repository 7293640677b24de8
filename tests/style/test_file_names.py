"""A reader finds the room by its name."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DRAWER = re.compile(r"(.*_)?(utils?|helpers?|common|misc|v[2-9])")


def nameless(paths: Iterable[Path]) -> Iterator[str]:
    """Paths with a part that names a drawer instead of an idea."""
    for path in paths:
        for part in path.with_suffix("").parts:
            if DRAWER.fullmatch(part):
                yield f"{path}: '{part}' does not say what is in it"


def test_names_say_what_is_inside() -> None:
    files = [p for d in ("src", "tests", "benchmarks", "examples") for p in (ROOT / d).rglob("*.py")]
    assert files
    found = list(nameless(p.relative_to(ROOT) for p in files))
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "path",
    ["utils.py", "model/helpers.py", "common/x.py", "misc.py", "model/body_v2.py", "io/xml_utils.py"],
)
def test_a_drawer_is_found(path: str) -> None:
    assert len(list(nameless([Path(path)]))) == 1


def test_a_good_name_is_not_a_drawer() -> None:
    assert list(nameless(map(Path, ["model/body.py", "machines/llvm/batch_loop.py", "model/joint_v.py"]))) == []
