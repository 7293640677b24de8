"""`python -m tests.identity.weather --seconds 600`: as many mechanisms in bad weather as there is time for.

It tells the largest error of each quantity in units of rounding times the condition, and how often a flag was raised;
exit status 1 if a bound of `docs/weather.md` was broken without a flag. Run it from the repository's root with `src` on
the path. `--compiled` goes through compiled kernels, which takes longer; else the same graphs are interpreted.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from contextlib import nullcontext, suppress

from hypothesis import HealthCheck, Phase, given, seed, settings

from .weather_judge import Judge, Verdict, interpreted
from .weather_mechanisms import Weather, linkages, rings, trees

FAMILIES = {"trees": trees(), "rings": rings(), "linkages": linkages()}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.identity.weather", description=(__doc__ or "").split("\n")[0]
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
        for verdict, w in tally.broken:
            print(f"BROKEN {verdict}\n  {w}")
        broken += len(tally.broken)
    return int(broken > 0)


class Tally:
    """What was met so far."""

    def __init__(self) -> None:
        self.examples, self.seconds = 0, 0.0
        self.count, self.flagged, self.large = Counter[str](), Counter[str](), Counter[str]()
        self.worst: dict[str, float] = {}
        self.broken: list[tuple[Verdict, Weather]] = []

    def add(self, w: Weather, verdicts: list[Verdict]) -> None:
        """One mechanism's answers."""
        self.examples += 1
        for v in verdicts:
            self.count[v.what] += 1
            self.flagged[v.what] += bool(v.said)
            self.large[v.what] += v.is_past_promise
            self.worst[v.what] = max(self.worst.get(v.what, 0.0), 0.0 if v.said else v.ratio)
            if not v.is_fine:
                self.broken.append((v, w))

    def __str__(self) -> str:
        """A row for each quantity."""
        rows = [f"  {'quantity':32} {'answers':>8} {'flagged':>8} {'past 5e10':>10} {'largest error':>14}"]
        for what in sorted(self.count):
            counts = f"{self.count[what]:8} {self.flagged[what]:8} {self.large[what]:10}"
            rows.append(f"  {what:32} {counts} {self.worst[what]:14.3g}")
        return "\n".join(rows)


class _TimeIsUp(Exception):
    pass


def draw(family: str, seconds: float, number: int, compiled: bool, tally: Tally) -> None:
    """Draw mechanisms of a family for a time."""
    start = time.monotonic()

    @seed(number)
    @settings(max_examples=10**6, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(w=FAMILIES[family])
    def run(w: Weather) -> None:
        tally.seconds = time.monotonic() - start
        if tally.seconds > seconds:
            raise _TimeIsUp
        with nullcontext() if compiled else interpreted():
            verdicts = list(Judge(w).verdicts())
        if not all(v.is_number for v in verdicts):  # only a kernel can flag what is not a number
            verdicts = list(Judge(w).verdicts())
        tally.add(w, verdicts)

    with suppress(_TimeIsUp):
        run()


if __name__ == "__main__":
    sys.exit(main())
