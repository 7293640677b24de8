"""Closed loops: forward dynamics against `pin.constraintDynamics`, reactions, and growth with the number of loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.growth import no_cache
from benchmarks.linkages import (
    PROXIMAL,
    Linkage,
    linkages,
    one_joint,
    window_accelerations,
    window_states,
    windows,
)
from benchmarks.operations import counted
from benchmarks.report import Run
from benchmarks.tables import NONE, ns, number, scientific, table, times
from benchmarks.throughput import SINGLE_STATES, batch_size
from benchmarks.timing import Block, Timing, calls, interleave
from cardan.formulation.registry import find_formulation
from cardan.structure.dynamics import forward_kernel, reaction_kernel

# Cardan's formulations, by the name that a kernel has.
FORMULATIONS = {
    "spatial": "spatial",
    "newton_euler": "newton_euler",
    "absolute": "absolute, rates in the fixed frame",
    "absolute_body": "absolute, rates in the body frame",
    "relative": "relative",
}
GOAL, AGREEMENT = 20.0, 1e-10
SIZES, QUICK_SIZES = (1, 4, 16, 64), (1, 4, 16)
LONGEST_FIRST_CALL = 60.0  # s
LINEAR_OPERATIONS, LINEAR_TIME = 1.25, 2.0  # cost per window at 64 relative to 4; quadratic growth would give 16
WARM_ROWS = 64


def section(run: Run) -> str:
    """All tables of closed loops."""
    forward, reacting = [], []
    for linkage in linkages():
        with run.step(f"loops {linkage.name}"):
            forward.append(_forward_text(run, linkage))
        with run.step(f"loops {linkage.name} reactions"):
            reacting += _reaction_rows(run, linkage)
    head = ("mechanism and formulation", "joints", "operations", "first call, s", "ns", "least")
    reactions = table(head, reacting)
    return (
        f"## Closed loops\n\n{_EXPLAINED}\n\n" + "\n\n".join(forward) + "\n\n### Reactions of all joints\n\n"
        "One evaluation gives the wrench (6) of every joint, tree joints and cuts, from the state and the drives. This "
        "is the kernel of `cd.reactions`, with its result array allocated; batches and states as above, one thread.\n\n"
        f"{reactions}\n\n{_growth_text(run)}\n"
    )


_EXPLAINED = (
    "One thread, ns per evaluation. 64 positions are assembled from random guesses and repeated to fill the batch; "
    "rates are projected and scaled row by row; drives are random. Pinocchio gets the same tree and a `CONTACT_3D` "
    "constraint for each joint that Cardan cuts. For the ball joint of a leg this is the joint itself; for the hinge "
    "of the planar four-bar it is the smallest constraint that closes the loop (two rows in the plane, and one out of "
    f"the plane that is zero). Proximal settings: mu {PROXIMAL[1]:g}, {PROXIMAL[2]} iteration, the cheapest that give "
    "the same accelerations. Pinocchio has no batch call here: it is called from Python for each state, with arrays "
    "prepared. `cost of calling` is the same call with a model of one hinge and no constraints, measured in the same "
    "rounds. It includes the dynamics of that model, so slightly too much is subtracted, in Pinocchio's favour. "
    "Pinocchio is the published package, built for any x86-64 processor; Cardan compiles for this one. `first call` "
    "is the first call of a new model on 64 rows without a cache, with CasADi and LLVM already loaded: it counts "
    "degrees of freedom, chooses rows, records and compiles."
)


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = perf_counter()
    result = call()
    return result, perf_counter() - start


def _operations(kernel: Any) -> int:
    return sum(count for name, count in counted(kernel).items() if name != "neg")


def _ratio(value: float) -> str:
    return "not measured" if math.isnan(value) else times(value)


def _fresh(linkage: Linkage) -> cd.Model:
    return linkage.make().build()


def _forward_text(run: Run, linkage: Linkage) -> str:
    import pinocchio as pin

    batch = min(run.most_rows, 65536)
    arrays = linkage.states(batch)
    few = [array[:SINGLE_STATES] for array in arrays]
    states = linkage.pinocchio_calls(*few)
    theirs = linkage.from_pinocchio(np.array([pin.constraintDynamics(*state) for state in states]))
    out = np.zeros_like(arrays[1])
    blocks = {
        "pin": calls(pin.constraintDynamics, states),
        "calling": calls(pin.constraintDynamics, [one_joint()] * SINGLE_STATES),
    }
    about: dict[str, tuple[str, str, str]] = {}
    errors: dict[str, float] = {}
    for key in FORMULATIONS:
        with no_cache():
            model = _fresh(linkage)
            kernel, made = _timed(lambda model=model, key=key: forward_kernel(model, find_formulation(key), False))
            ours, compiled = _timed(lambda kernel=kernel: kernel(*few, threads=1))
        errors[key] = float((np.abs(ours - theirs).max(1) / np.abs(theirs).max(1)).max())
        about[key] = f"{_operations(kernel):,}", number(made + compiled), scientific(errors[key])
        blocks[key] = Block(partial(kernel, *arrays, out=out, threads=1), batch)
    what = f"{linkage.name}, all formulations: relative difference from Pinocchio"
    run.below(what, AGREEMENT, max(errors.values()), scientific)
    timing = interleave(blocks, rounds=run.rounds, least=run.least)
    bare = Timing(timing["pin"].seconds - timing["calling"].seconds)
    least = timing["pin"].minimum - timing["calling"].minimum
    rows = []
    for key, name in FORMULATIONS.items():
        t = timing[key]
        corrected, leasts = t.times_faster_than(bare), least / t.minimum
        plain = t.times_faster_than(timing["pin"])
        rows.append(
            (name, about[key][0], about[key][1], ns(t.median), ns(t.minimum), times(corrected), times(leasts),
             times(plain), about[key][2])
        )  # fmt: skip
        if key == "spatial":
            what = f"{linkage.name}, forward, one thread: times `pin.constraintDynamics` less the cost of calling"
            run.at_least(what, GOAL, min(corrected, leasts), times)
    head = (
        "Cardan", "operations", "first call, s", "ns", "least", "ratio", "of leasts", "calling not taken off",
        "difference",
    )  # fmt: skip
    pin_head = ("Pinocchio", "median", "least")
    pin_rows = [
        ("`pin.constraintDynamics`, a call from Python", ns(timing["pin"].median), ns(timing["pin"].minimum)),
        ("cost of calling", ns(timing["calling"].median), ns(timing["calling"].minimum)),
        ("what remains", ns(bare.median), ns(least)),
    ]
    model = linkage.model
    removed = sum(model.joints[j].kind.freedoms_removed for j in model.cuts)
    return (
        f"### {linkage.name}\n\n{model.nb} bodies, {len(model.joints)} joints, nv = {model.nv}, {len(model.cuts)} cut, "
        f"{removed} constraint equations; in Pinocchio {3 * len(model.cuts)}. Batch of {batch:,}.\n\n"
        f"{table(pin_head, pin_rows)}\n\n{table(head, rows)}"
    )


def _reaction_rows(run: Run, linkage: Linkage) -> list[tuple[str, ...]]:
    batch, joints = min(run.most_rows, 65536), len(linkage.model.joints)
    arrays = linkage.states(batch)
    loads = np.zeros((linkage.model.nb, 6))
    out = np.zeros((batch, joints, 6))
    blocks, about = {}, {}
    for key in FORMULATIONS:
        with no_cache():
            model = _fresh(linkage)
            kernel, made = _timed(lambda model=model, key=key: reaction_kernel(model, find_formulation(key)))
            few = [array[:WARM_ROWS] for array in arrays]
            _, compiled = _timed(lambda kernel=kernel, few=few: kernel(*few, loads, threads=1))
        about[key] = f"{_operations(kernel):,}", number(made + compiled)
        blocks[key] = Block(partial(kernel, *arrays, loads, out=out, threads=1), batch)
    timing = interleave(blocks, rounds=run.rounds, least=run.least)
    return [
        (f"{linkage.name}, {name}", f"{joints}", *about[key], ns(timing[key].median), ns(timing[key].minimum))
        for key, name in FORMULATIONS.items()
    ]


def _growth_text(run: Run) -> str:
    rows, ratios = [], []
    for key, thick in (("spatial", False), ("absolute", False), ("absolute", True)):
        name = f"{key}, rods with a moment about their axes" if thick else key
        found = _sizes(run, key, thick)
        with run.step(f"loops n_four_bar {name}"):
            blocks = {str(n): w.block for n, w in found.items()}
            timing = interleave(blocks, rounds=run.rounds, least=run.least)
            for n in _SIZES[run.quick]:
                cells = found[n].cells(timing[str(n)]) if n in found else [NONE] * 8
                rows.append((f"{name}, {n}", *cells))
            if not run.quick:
                ratios.append(_grown(run, name, found, timing, judged=not thick))
    head = (
        "formulation and windows", "batch", "operations", "per window", "first call, s", "ns", "least",
        "ns per window", "error",
    )  # fmt: skip
    stated = f"Cost per window at 64 relative to that at 4: {'; '.join(ratios)}.\n\n" if ratios else ""
    return (
        "### Growth with the number of loops\n\nForward dynamics of `n_four_bar(n)`: n windows, 2 n + 1 bodies, 3 n + "
        "1 hinges, one degree of freedom, 3 n redundant constraints. `error` is the largest relative difference from "
        "the closed-form equation `th'' = c sin th`. The rods of the benchmark have no moment of inertia about their "
        "axes, so that in absolute coordinates the inertia is singular; in the last rows they have one, which does not "
        "change the motion. The sizes of a formulation are timed alternately. Sizes are increased until the operations "
        f"per window have doubled or the first call would take more than {LONGEST_FIRST_CALL:g} s.\n\n{stated}"
        + table(head, rows)
    )


_SIZES = {False: SIZES, True: QUICK_SIZES}


def _grown(run: Run, name: str, found: dict[int, Windows], timing: dict[str, Timing], *, judged: bool) -> str:
    """Cost per window at 64 relative to that at 4, as text; a target for the published mechanism."""
    operations = seconds = math.nan
    if 4 in found and 64 in found:
        operations = found[64].operations / found[4].operations / 16
        seconds = timing["4"].times_faster_than(timing["64"]) / 16
    if judged:
        what = f"n_four_bar, {name}: per window at 64 over that at 4"
        run.below(f"{what}, operations", LINEAR_OPERATIONS, operations, _ratio)
        run.below(f"{what}, time", LINEAR_TIME, seconds, _ratio)
    return f"{name}: operations {_ratio(operations)}, time {_ratio(seconds)}"


@dataclass(frozen=True)
class Windows:
    """The kernel of one size, ready to be timed."""

    n: int
    operations: int
    first_call: float
    error: float
    block: Block

    def cells(self, t: Timing) -> list[str]:
        """Its row of the table."""
        per_window = number(self.operations / self.n)
        cost = ns(t.median), ns(t.minimum), ns(t.median / self.n)
        made = f"{self.block.evaluations:,}", f"{self.operations:,}", per_window, number(self.first_call)
        return [*made, *cost, scientific(self.error)]


def _sizes(run: Run, key: str, thick: bool) -> dict[int, Windows]:
    """Kernels of all sizes within the limits."""
    found: dict[int, Windows] = {}
    for n in _SIZES[run.quick]:
        with run.step(f"loops n_four_bar {n} {key}{' thick' if thick else ''}"):
            found[n] = _windows(run, n, key, thick)
        if n not in found or found[n].operations / n > 2 * found[1].operations:
            break
        if found[n].first_call * 4**1.5 > LONGEST_FIRST_CALL:
            break
    return found


def _windows(run: Run, n: int, key: str, thick: bool) -> Windows:
    linkage = Linkage(f"n_four_bar {n}", partial(windows, n, thick=thick))
    model, batch = linkage.model, batch_size(run, linkage, matrix=False)
    q, v = window_states(model, batch)
    arrays, out = (q, v, np.zeros_like(v)), np.zeros_like(v)
    few = [array[:WARM_ROWS] for array in arrays]
    with no_cache():
        kernel, made = _timed(lambda: forward_kernel(model, find_formulation(key), False))
        ours, compiled = _timed(lambda: kernel(*few, threads=1))
    expected = window_accelerations(n, few[0])
    error = float(np.abs(ours - expected).max() / np.abs(expected).max())
    block = Block(partial(kernel, *arrays, out=out, threads=1), batch)
    return Windows(n, _operations(kernel), made + compiled, error, block)
