"""`python -m tests.identity.robustness_search --seconds 600`: search for ill-conditioned mechanisms with wrong answers.

It draws random mechanisms until the time is up. It prints the largest error of each quantity in units of rounding times
the condition, and how often a warning was given. The exit status is 1 if a bound of `docs/robustness.md` was broken
without a warning. Run it from the repository's root with `src` on the path. `--compiled` uses compiled kernels, which
takes longer; otherwise the same graphs are interpreted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from contextlib import nullcontext, suppress

from hypothesis import HealthCheck, Phase, given, seed, settings

from .robustness_errors import Answer, Comparison, interpreted
from .robustness_mechanisms import Case, linkages, rings, trees

FAMILIES = {"trees": trees(), "rings": rings(), "linkages": linkages()}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.identity.robustness_search", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--compiled", action="store_true")
    given_ = parser.parse_args()
    broken = 0
    for family in given_.families:
        tally = Tally()
        draw(family, given_.seconds / len(given_.families), given_.seed, given_.compiled, tally)
        print(f"{family}: {tally.examples} mechanisms, {tally.seconds:.0f} s\n{tally}")
        for answer, w in tally.broken:
            print(f"BROKEN {answer}\n  {w}")
        broken += len(tally.broken)
    return int(broken > 0)


class Tally:
    """Counts and largest errors so far."""

    def __init__(self) -> None:
        self.examples, self.seconds = 0, 0.0
        self.count, self.warned, self.ill = Counter[str](), Counter[str](), Counter[str]()
        self.worst: dict[str, float] = {}
        self.broken: list[tuple[Answer, Case]] = []

    def add(self, w: Case, answers: list[Answer]) -> None:
        """Count the answers for one mechanism."""
        self.examples += 1
        for v in answers:
            self.count[v.what] += 1
            self.warned[v.what] += bool(v.warning)
            self.ill[v.what] += v.is_too_ill_conditioned
            self.worst[v.what] = max(self.worst.get(v.what, 0.0), 0.0 if v.warning else v.ratio)
            if not v.is_acceptable:
                self.broken.append((v, w))

    def __str__(self) -> str:
        """A row for each quantity."""
        rows = [f"  {'quantity':32} {'answers':>8} {'warned':>8} {'past 5e12':>10} {'largest error':>14}"]
        for what in sorted(self.count):
            counts = f"{self.count[what]:8} {self.warned[what]:8} {self.ill[what]:10}"
            rows.append(f"  {what:32} {counts} {self.worst[what]:14.3g}")
        return "\n".join(rows)


class _TimeIsUp(Exception):
    pass


def draw(family: str, seconds: float, number: int, compiled: bool, tally: Tally) -> None:
    """Draw mechanisms of a family until the time is up."""
    start = time.monotonic()

    @seed(number)
    @settings(max_examples=10**6, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(w=FAMILIES[family])
    def run(w: Case) -> None:
        tally.seconds = time.monotonic() - start
        if tally.seconds > seconds:
            raise _TimeIsUp
        with nullcontext() if compiled else interpreted():
            answers = list(Comparison(w).answers())
        if not all(v.is_number for v in answers):  # only a compiled kernel warns of NaN
            answers = list(Comparison(w).answers())
        tally.add(w, answers)

    with suppress(_TimeIsUp):
        run()


if __name__ == "__main__":
    sys.exit(main())
