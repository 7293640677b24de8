"""`python -m tests.judge --count 200 --seed 0`: random mechanisms judged in every formulation; prints the figures.

Each mechanism is judged at random consistent states, at states ever nearer to a singular position where a walk meets
one, and at those regular positions of the walk where the engine's own condition is worst. An answer is right, or it
comes with a warning or an error; any other is silently wrong, is listed with the seed of its mechanism, and makes the
exit status 1. Run it from the repository's root with `src` on the path. `--known` judges the cases known to go wrong
instead, and `--runs 1.0` compares runs of one second with the judge's own, for every integrator. Kernels are
interpreted, or compiled in a hurry; `--compiled` compiles them as users get them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext

import numpy as np

import cardan as cd

from ..identity.robustness_errors import interpreted
from . import comparison
from .comparison import FORMULATIONS, Answer, answers, random_state, towards_singular, worst_on_the_way
from .joint_motions import Array
from .known_defects import KNOWN
from .long_runs import quick_code, reference, run_answers
from .maximal_coordinates import Judge
from .random_mechanisms import DRAWN, FAMILIES, mechanism


class Tally:
    """Figures so far, by what was asked and the formulation."""

    def __init__(self) -> None:
        self.mechanisms, self.states, self.refused = 0, Counter[str](), Counter[str]()
        self.count, self.loud, self.silent = Counter[str](), Counter[str](), Counter[str]()
        self.worst: dict[str, float] = {}
        self.wrong: list[str] = []

    def add(self, where: str, found: Iterable[Answer]) -> None:
        """Count the answers at one state."""
        for answer in found:
            key = f"{answer.what}, {answer.formulation}"
            self.count[key] += 1
            if answer.is_silently_wrong:
                self.silent[key] += 1
                self.tell(f"{where}: {answer}")
            elif not answer.is_right:
                self.loud[key] += 1
            else:
                self.worst[key] = max(self.worst.get(key, 0.0), answer.ratio)

    def tell(self, what: str) -> None:
        """Something that is silently wrong."""
        self.wrong.append(what)
        print(f"SILENTLY WRONG {what}", flush=True)

    def __str__(self) -> str:
        states = ", ".join(f"{n} {kind}" for kind, n in self.states.items())
        lines = [f"{self.mechanisms} mechanisms, {sum(self.refused.values())} refused; states: {states}"]
        lines += [f"  refused {n}: {why}" for why, n in self.refused.most_common(12)]
        lines += [
            "| what | answers | wrong, with a word | silently wrong | largest error, of its bound |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {key} | {n} | {self.loud[key]} | {self.silent[key]} | {self.worst.get(key, 0.0):.1e} |"
            for key, n in sorted(self.count.items())
        ]
        return "\n".join(lines)


def states_of(
    model: cd.Model, judge: Judge, rng: np.random.Generator
) -> Iterator[tuple[str, tuple[Array, ...], float]]:
    """States of one mechanism, each with its kind and time."""
    yield "at the start", random_state(model, rng, cd.assemble(model)[0]), 0.0
    t = float(rng.uniform(0, 0.4)) if model.depends_on_time else 0.0
    yield "random", random_state(model, rng, t=t), t
    if any(coupling.depends_on_time for coupling in model.couplings):
        return  # it has no position to walk to
    q = random_state(model, rng)[0]
    for place in towards_singular(model, judge, q, rng):
        yield "near singular", random_state(model, rng, place), 0.0
    met: list[Array] = []
    for place in worst_on_the_way(model, judge, q, rng).values():
        if any(np.abs(place - other).max() < 1e-3 for other in met):
            continue
        met.append(place)
        yield "ill-conditioned by the engine", random_state(model, rng, place), 0.0


def judge_mechanism(seed: int, family: str, tally: Tally) -> None:
    """All answers for one mechanism."""
    rng = np.random.default_rng([14, seed])
    name = family or DRAWN[seed % len(DRAWN)]
    try:
        model = mechanism(seed, family=family).build()
        cd.forward_dynamics(model, *cd.assemble(model))
        judge = Judge(model)
        tally.mechanisms += 1
        for k, (kind, state, t) in enumerate(states_of(model, judge, rng)):
            right = judge.solve(*state, t)
            if not right.is_clear:
                kind = "with an unclear rank, left out"
            elif right.gap > 1e-8:
                tally.tell(f"{name}, seed {seed}, state {k}: open by {right.gap:.1e} where assemble closed it")
            tally.states[kind] += 1
            if right.is_clear:
                tally.add(f"{name}, seed {seed}, state {k} ({kind})", answers(model, judge, state, t))
    except cd.CardanError as error:
        words = str(error).split(":")[0].replace(repr(f"{name} {seed}"), "...")
        tally.refused[f"{name}, {words[:90]}"] += 1
    except Exception as error:  # whatever the engine lets through
        tally.tell(f"{name}, seed {seed}: {type(error).__name__}: {' '.join(str(error).split())[:200]}")


def judge_runs(seed: int, family: str, tally: Tally, duration: float) -> None:
    """Runs of one mechanism with every integrator, in one formulation after the other from seed to seed."""
    rng = np.random.default_rng([15, seed])
    name = family or DRAWN[seed % len(DRAWN)]
    try:
        model = mechanism(seed, family=family).build()
        judge = Judge(model)
        q, v = cd.assemble(model, None, rng.standard_normal(model.nv))
        cd.forward_dynamics(model, q, v)
        right = reference(judge, q, v, np.linspace(0, duration, 11))
    except (cd.CardanError, RuntimeError) as error:
        tally.refused[f"{name}, {str(error).split(':')[0].replace(repr(f'{name} {seed}'), '...')[:90]}"] += 1
        return
    key = FORMULATIONS[seed % len(FORMULATIONS)]
    tally.mechanisms += 1
    tally.states["runs"] += 1
    tally.add(f"{name}, seed {seed}, run of {duration} s", run_answers(model, judge, right, key))


def main() -> int:
    """Judge, print, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.judge", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="mechanisms")
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others follow")
    parser.add_argument("--family", choices=FAMILIES, default="", help="one family instead of all")
    parser.add_argument("--seconds", type=float, default=np.inf, help="stop drawing after this time")
    parser.add_argument("--compiled", action="store_true", help="compile kernels")
    parser.add_argument("--runs", type=float, default=0.0, metavar="SECONDS", help="compare runs of this duration")
    parser.add_argument("--known", action="store_true", help="judge the cases known to go wrong")
    given = parser.parse_args()
    comparison.IN_SPACE = True
    tally, began = Tally(), time.monotonic()
    quick = quick_code() if given.runs or given.known else interpreted()
    with nullcontext() if given.compiled else quick:
        if given.known:
            for known in KNOWN:
                tally.mechanisms += 1
                tally.add(known.name, known.answers())
        for seed in range(given.seed, given.seed + (0 if given.known else given.count)):
            if given.runs:
                judge_runs(seed, given.family, tally, given.runs)
            else:
                judge_mechanism(seed, given.family, tally)
            if time.monotonic() - began > given.seconds:
                break
    print(f"{tally}\n{time.monotonic() - began:.0f} s")
    return int(bool(tally.wrong))


if __name__ == "__main__":
    sys.exit(main())
