"""Time the first answer of every robot and mechanism: `python -m benchmarks.first_answers [WORDS] [--seconds N]`.

Each case is one question to one mechanism in one formulation, in a fresh process with an empty cache of kernels:
forward dynamics, or a run of 0.01 s with one integrator. What is measured is kept in a file of lines, so that a survey
that was stopped goes on; cases that have all of WORDS are asked anew. The table names the slowest.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks.robots import robot_files

GOAL = 5.0  # s of processor time
LONGEST = 40  # s of the processor after which a case is given up
SHOWN = 60  # cases in the table
RESULTS = Path(__file__).parent / "RESULTS_first.md"
FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative", "points")
QUESTIONS = ("forward_dynamics", "dormand_prince", "alpha", "gear", "rk4", "euler", "bdf", "adams")
ON_THE_GROUND = (
    "allegro", "alex_", "asr_", "baxter", "bravo7", "double_pendulum", "finger", "kinova", "panda", "so_arm", "ur_",
    "xarm", "z1",
)  # fmt: skip
FIXED_STEP = ("rk4", "euler", "alpha")


@dataclass(frozen=True)
class Case:
    """One question to one mechanism in one formulation."""

    mechanism: str
    formulation: str
    question: str

    @property
    def text(self) -> str:
        """The case as words."""
        return f"{self.mechanism} {self.formulation} {self.question}"


def cases() -> Iterator[Case]:
    """Every case, those most asked for first: forward dynamics, then the integrators."""
    from cardan.mechanisms import CATALOGUE

    names = [*(f"robot:{name}" for name in robot_files()), *CATALOGUE, "n_four_bar(40)"]
    for question in QUESTIONS:
        for formulation in FORMULATIONS:
            for name in names:
                yield Case(name, formulation, question)


def ask(case: Case) -> dict[str, float | str]:
    """In a fresh process: seconds of import, of the model and of the first answer."""
    start, busy = perf_counter(), process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST, LONGEST))
    import cardan as cd

    imported = perf_counter()
    kind, _, name = case.mechanism.rpartition(":")
    if kind:
        folder = robot_files()[name]
        fixed = folder.parents[1].name.startswith(ON_THE_GROUND)
        model = cd.load(folder, root="fixed" if fixed else "free", damping=False)
    else:
        name, _, size = case.mechanism.partition("(")
        arguments = [int(size[:-1])] if size else []
        model = cd.mechanisms.CATALOGUE[name](*arguments).build()
    made, made_busy = perf_counter(), process_time()
    q, v = model.start(), np.zeros(model.nv)
    if case.question == "forward_dynamics":
        cd.forward_dynamics(model, q, v, np.zeros(model.nv), formulation=case.formulation)
    else:
        step = {"step": 0.001} if case.question in FIXED_STEP else {}
        cd.simulate(model, 0.01, formulation=case.formulation, method=case.question, **step)
    done = perf_counter()
    return {
        "import": imported - start, "model": made - imported, "answer": done - made, "wall": done - start,
        "busy": process_time() - made_busy, "all": process_time() - busy,
    }  # fmt: skip


def measure(case: Case) -> dict[str, float | str]:
    """The same, asked of another process; what went wrong where it did not answer."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "CARDAN_CACHE_DIR": cache, "CARDAN_CACHE": "1"}
        command = [sys.executable, "-m", "benchmarks.first_answers", "--ask", *case.text.rsplit(" ", 2)]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20 * LONGEST)
        except subprocess.TimeoutExpired:
            return {"failed": f"no answer within {20 * LONGEST} s by the clock"}
    if done.returncode < 0:
        return {"failed": f"no answer within {LONGEST} s of the processor"}
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"failed": re.sub(r"/\S*/robots/", "", said)[:300]}
    found: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return found


def survey(store: Path, words: list[str], seconds: float) -> dict[str, dict[str, float | str]]:
    """What is known of every case, after asking for so many seconds."""
    found: dict[str, dict[str, float | str]] = {}
    if store.exists():
        found = dict(json.loads(line) for line in store.read_text().splitlines())
    end = perf_counter() + seconds
    for case in cases():
        anew = words and set(words) <= set(case.text.split())
        if perf_counter() > end or (words and not anew) or (not words and case.text in found):
            continue
        found[case.text] = measure(case)
        print(case.text, found[case.text], file=sys.stderr, flush=True)
        with store.open("a") as lines:
            lines.write(json.dumps([case.text, found[case.text]]) + "\n")
    return found


def report(found: dict[str, dict[str, float | str]]) -> str:
    """The slowest cases as a table, and those without an answer."""
    answered = {text: result for text, result in found.items() if "failed" not in result}
    slowest = sorted(answered, key=lambda text: -float(answered[text]["busy"]))
    late = [text for text in slowest if float(answered[text]["busy"]) > GOAL]
    refused: dict[str, list[str]] = {}
    for text, result in found.items():
        if "failed" in result:
            refused.setdefault(str(result["failed"]).replace("|", "/"), []).append(text)
    lines = [
        "# The first answer, cold",
        "",
        f"{date.today()}, `python -m benchmarks.first_answers`. Seconds in a fresh process with an empty cache of",
        "kernels, from the model to the first answer: processor time, and time by the clock of a machine that others",
        "use too.",
        f"Of {sum(1 for _ in cases()):,} cases {len(found)} were asked so far.",
        f"{len(answered)} answered; {len(late)} of them took more than {GOAL:.0f} s of the processor.",
        f"{len(found) - len(answered)} were refused or late, for the reasons below.",
        "",
        "| mechanism | formulation | question | processor, s | clock, s |",
        "|---|---|---|---|---|",
    ]
    for text in slowest[:SHOWN]:
        name, formulation, question = text.rsplit(" ", 2)
        result = answered[text]
        seconds = f"{float(result['busy']):.1f} | {float(result['answer']):.1f}"
        lines.append(f"| {name.removeprefix('robot:')} | `{formulation}` | {question} | {seconds} |")
    lines += ["", "| cases without an answer | | reason |", "|---|---|---|"]
    lines += [f"| {len(texts)} | {texts[0].removeprefix('robot:')} | {why} |" for why, texts in refused.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Ask, or measure and write the table."""
    parser = argparse.ArgumentParser(description="Time the first answer of every robot and mechanism.")
    parser.add_argument("words", nargs="*", help="words of the cases to ask anew")
    parser.add_argument("--seconds", type=float, default=1e9, help="how long to ask")
    parser.add_argument("--store", type=Path, default=Path("first_answers.jsonl"), help="what was measured so far")
    parser.add_argument("--ask", action="store_true", help="answer one case, given by three words")
    given = parser.parse_args()
    if given.ask:
        print(json.dumps(ask(Case(*given.words))))
        return
    RESULTS.write_text(report(survey(given.store, given.words, given.seconds)))


if __name__ == "__main__":
    main()
