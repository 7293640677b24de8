"""What a mutant is: one small change of one source file that makes the engine wrong."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A change of the text, and the tests that must notice it."""

    file: str
    """Below src/cardan."""
    old: str
    """Text that occurs once in the file."""
    new: str
    """What replaces it."""
    meaning: str
    """What is then wrong, in a few words."""
    tests: tuple[str, ...]
    """Tests as pytest names them, the most likely to fail first."""
    equivalent: str = ""
    """Why no test can notice it; empty for a mutant that must be killed."""

    @property
    def room(self) -> str:
        """The folder of the source."""
        return self.file.partition("/")[0]


@dataclass(frozen=True)
class Equivalent:
    """The reason why a change makes nothing wrong."""

    reason: str


Change = tuple[str, str, str] | tuple[str, str, str, Equivalent]


def changes(file: str, tests: str, *rows: Change) -> list[Mutant]:
    """Mutants of one file: (old, new, meaning), and a reason where the change makes nothing wrong.

    `tests` are the names below tests/, separated by spaces.
    """
    paths = tuple(f"tests/{name}" for name in tests.split())
    return [Mutant(file, *row[:3], paths, row[3].reason if len(row) > 3 else "") for row in rows]
