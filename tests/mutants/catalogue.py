"""All mutants, and whether each fits the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from tests.mutants import (
    algebra,
    analysis,
    formulation,
    functions,
    integrate,
    machines,
    model,
    structure,
    studies,
    textbook,
)
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
MUTANTS: list[Mutant] = [
    mutant
    for room in (algebra, formulation, structure, functions, integrate, machines, model, textbook, analysis, studies)
    for mutant in room.MUTANTS
]  # fmt: skip


def source_of(mutant: Mutant, root: Path = ROOT) -> Path:
    """The file that it changes."""
    return root / "src" / "cardan" / mutant.file


def mutated(mutant: Mutant, root: Path = ROOT) -> str:
    """The text of its file with the change made."""
    return source_of(mutant, root).read_text(encoding="utf-8").replace(mutant.old, mutant.new)


def faults(mutant: Mutant, root: Path = ROOT) -> Iterable[str]:
    """What keeps a mutant from being one."""
    path = source_of(mutant, root)
    times = path.read_text(encoding="utf-8").count(mutant.old) if path.exists() else 0
    if times != 1:
        yield f"its text occurs {times} times: {mutant.old!r}"
        return
    try:
        if not _block_is_python(mutated(mutant, root), path.read_text(encoding="utf-8").index(mutant.old)):
            ast.parse(mutated(mutant, root))
    except SyntaxError as error:
        yield f"it is no Python: {error}"
    for test in mutant.tests:
        if not (root / test.partition("::")[0]).exists():
            yield f"its test {test} does not exist"


def _block_is_python(text: str, place: int) -> bool:
    """Whether the top-level statement around a place can be parsed alone, which is quicker than the whole file."""
    starts = [match.start() for match in re.finditer(r"^[A-Za-z_]", text, re.MULTILINE)]
    begin = max((start for start in starts if start <= place), default=0)
    end = min((start for start in starts if start > place), default=len(text))
    try:
        ast.parse(text[begin:end])
    except SyntaxError:
        return False
    return True
