"""Run mutants and tell which survive: `python -m tests.mutants`."""

from __future__ import annotations

import argparse
import compileall
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.catalogue import MUTANTS, ROOT, faults, mutated, source_of
from tests.mutants.mutant import Mutant

COPIED = (
    "src",
    "tests",
    "examples",
    "docs",
    "benchmarks",
    "pyproject.toml",
    "Makefile",
    "README.md",
    "CONTRIBUTING.md",
)
FAILED, COLLECTION_FAILED = 1, 2  # exit codes of pytest for tests that fail, and for modules that cannot be imported


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: "killed", "survived", "timeout" or "error"; and the last words of the tests."""

    mutant: Mutant
    word: str
    seconds: float
    words: str


class Copy:
    """A copy of the tree in which mutants live one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__", ".*")
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=ignored)
            elif source.exists():
                shutil.copy2(source, folder / name)
        # byte code of the source as it is; a mutant is newer than its byte code, and none is written for it
        compileall.compile_dir(folder / "src", quiet=2)

    def run(self, tests: Sequence[str], seconds: float) -> tuple[int | None, str]:
        """Exit code of pytest, None after too long, and what it printed."""
        with tempfile.TemporaryDirectory(prefix="mutant-") as base:
            command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider"]
            environment = {**os.environ, "PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
            environment.pop("CARDAN_CACHE_DIR", None)  # each run has a cache of its own
            process = subprocess.Popen(
                [*command, f"--basetemp={base}/tests", *tests], cwd=self.folder, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                words = process.communicate(timeout=seconds)[0]
                return process.returncode, words
            except subprocess.TimeoutExpired:
                _end(process)
                return None, "out of time"

    def judge(self, mutant: Mutant, seconds: float) -> Verdict:
        """Make the change, run its tests, and undo it."""
        began, path = time.monotonic(), source_of(mutant, self.folder)
        path.write_text(mutated(mutant, self.folder), encoding="utf-8")
        try:
            code, words = self.run(mutant.tests, seconds)
        finally:
            shutil.copy2(source_of(mutant), path)
        words_of = {None: "timeout", 0: "survived", FAILED: "killed", COLLECTION_FAILED: "killed"}
        crashed = code is not None and code < 0  # machine code that reads or writes where it must not
        return Verdict(mutant, "killed" if crashed else words_of.get(code, "error"), time.monotonic() - began, words)


def _end(process: subprocess.Popen[str]) -> None:
    """End the tests and the processes that they started: a session of their own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(mutants: Sequence[Mutant], jobs: int, seconds: float, baseline: bool, verbose: bool) -> list[Verdict]:
    """Judge mutants, each in one of `jobs` copies; the tests pass without a change first."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for k in range(jobs):
            copies.put(Copy(Path(folder) / str(k)))
        if baseline:
            copy = copies.get()
            tests = sorted({test for mutant in mutants for test in mutant.tests})
            code, words = copy.run(tests, 3600)
            if code != 0:
                sys.exit(f"the tests fail without any change:\n{words}")
            copies.put(copy)

        def judged(mutant: Mutant) -> Verdict:
            copy = copies.get()
            try:
                verdict = copy.judge(mutant, seconds)
            finally:
                copies.put(copy)
            print(f"{verdict.word:9}{verdict.seconds:6.1f} s  {mutant.file}: {mutant.meaning}", flush=True)
            if verbose or verdict.word == "error":
                print(verdict.words, flush=True)
            return verdict

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(judged, mutants))


def table(verdicts: Iterable[Verdict], explained: Sequence[Mutant]) -> str:
    """Counts by room, as a table in Markdown."""
    words = ("killed", "timeout", "survived", "error")
    counts = Counter((v.mutant.room, v.word) for v in verdicts)
    counts.update((m.room, "explained") for m in explained)
    rooms = sorted({room for room, _ in counts})
    lines = ["| room | mutants | killed | out of time | survived | explained |", "|---|---|---|---|---|---|"]
    rows = [(room, [counts[room, word] for word in words], counts[room, "explained"]) for room in rooms]
    rows.append(("all", [sum(row[1][k] for row in rows) for k in range(len(words))], sum(row[2] for row in rows)))
    for room, (killed, late, survived, failed), why in rows:
        total = killed + late + survived + failed + why
        lines.append(f"| `{room}` | {total} | {killed} | {late} | {survived + failed} | {why} |")
    return "\n".join(lines)


def main() -> None:
    """Read the arguments, run, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--room", help="only those of a room, such as algebra")
    parser.add_argument("--file", help="only those of a file below src/cardan")
    parser.add_argument("--match", default="", help="only those whose meaning contains a text")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time")
    parser.add_argument("--seconds", type=float, default=300.0, help="time for the tests of one mutant")
    parser.add_argument("--skip-baseline", action="store_true", help="do not run the tests without a change first")
    parser.add_argument("--explained", action="store_true", help="run those too that no test can notice")
    parser.add_argument("--verbose", action="store_true", help="print what the tests said")
    parser.add_argument("--stale", action="store_true", help="only tell which do not fit the source")
    given = parser.parse_args()
    chosen = [
        m for m in MUTANTS if given.room in (None, m.room) and given.file in (None, m.file) and given.match in m.meaning
    ]
    stale = {m: why for m in chosen if (why := list(faults(m)))}
    for mutant, why in stale.items():
        print(f"does not fit  {mutant.file}: {mutant.meaning}: {'; '.join(why)}")
    if given.stale:
        sys.exit(bool(stale))
    fitting = [m for m in chosen if m not in stale]
    explained = [] if given.explained else [m for m in fitting if m.equivalent]
    wanted = [m for m in fitting if m not in explained]
    verdicts = run(wanted, given.jobs, given.seconds, not given.skip_baseline, given.verbose)
    print(table(verdicts, explained))
    lost = [v for v in verdicts if v.word in ("survived", "error") and not v.mutant.equivalent]
    sys.exit(bool(lost or stale))


if __name__ == "__main__":
    main()
