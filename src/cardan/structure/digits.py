"""How many digits of derivatives hold: measured near singular positions, where they lose more than values do.

The derivative of a solution contains the solution once more, so that what the equations magnify is magnified twice, in
second derivatives three times. Calls of kernels with derivatives are looked at like those of the values (`structure.
condition`), the first ones all. Where the matrices are badly conditioned the recorded graph of the kernel itself is run
with noise at the arguments given (`machines.noise`), and a warning says how many digits hold. Docs: docs/robustness.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10, prod
from typing import Any

import numpy as np

from cardan.formulation.formulation import Formulation
from cardan.formulation.solve import with_less_added
from cardan.machines.noise import Plan, evaluated, plan, with_noise
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.program.graph import read
from cardan.program.program import Port
from cardan.structure import rounding
from cardan.structure.condition import WIDEST, matrix_condition, warn_at, warn_of_gap
from cardan.structure.kernels import FreeKernel
from cardan.structure.magnification import LESS, largest_error
from cardan.structure.rounding import warn_outside
from cardan.structure.row_sets import ChoosingKernel, with_good_rows

ENOUGH = 6  # digits: fewer are told
# Conditions of matrices from which on derivatives of an order are measured: about where its power, one more than the
# order, would leave fewer digits than that.
DOUBTFUL = {1: 1e6, 2: 1e5}
CLOSELY = 8  # of the first calls are looked at, one by one
SAMPLES = 16

_GRAPHS: Slot[str, tuple[Plan, Plan]] = Slot("graphs of derivatives whose rounding is judged, by key")


def watch_derivatives(
    owner: str, model: Model, formulation: Formulation, kernel: Any, names: Sequence[str], order: int = 1
) -> None:
    """Look at what a kernel of a quantity and its derivatives by `names` is asked for; warn where few digits hold."""
    if (formulation.in_tree and not model.has_rows) or 6 * len(model.tree.links) > WIDEST:
        return
    home = model.unbound
    ports = (kernel.first if isinstance(kernel, ChoosingKernel) else _plain(kernel)).program.inputs
    seen: list[bool] = []

    def look(args: tuple[Any, ...]) -> None:
        try:
            rows = [row for row in _some_rows(args, ports) if all(np.isfinite(x).all() for x in row.values())]
        except (TypeError, ValueError):
            return  # the call itself says what is wrong
        worst = 0.0
        for row in rows:
            q, t = row["q"], float(row["t"][0]) if "t" in row else 0.0
            one = home._bound(row["p"]) if "p" in row else home
            if not seen:
                warn_of_gap(one, q, np.asarray(t))
            size = matrix_condition(one, formulation, q, t)
            if not size < rounding.DOUBTFUL:
                warn_at(one, formulation, q, t)
            if not size < DOUBTFUL[order]:
                member = with_good_rows(one, q, t)
                solved = kernel.kernel_of(member.unbound) if isinstance(kernel, ChoosingKernel) else kernel
                worst = max(worst, _error(home, _plain(solved), row))
        seen.append(True)
        _say(owner, home, formulation, names, worst)

    kernel.watch(look, CLOSELY)


def _some_rows(args: tuple[Any, ...], ports: Sequence[Port]) -> list[dict[str, np.ndarray]]:
    """Arguments by name, flat, at the first, the middle and the last row of a batch."""
    arrays = [np.asarray(x) for x in args]
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - len(p.shape)] for x, p in zip(arrays, ports, strict=True)))
    whole = {p.name: np.broadcast_to(x, batch + p.shape) for x, p in zip(arrays, ports, strict=True)}
    count = prod(batch)
    places = [np.unravel_index(k, batch) for k in sorted({0, count // 2, count - 1})] if count else []
    return [{name: np.array(x[at], dtype=float).ravel() for name, x in whole.items()} for at in places]


def _plain(kernel: Any) -> Kernel:
    """The kernel itself, which takes the free parameters as its last argument."""
    found = kernel.kernel if isinstance(kernel, FreeKernel) else kernel
    assert isinstance(found, Kernel)
    return found


def _error(model: Model, kernel: Kernel, row: dict[str, np.ndarray]) -> float:
    """The largest relative error of a derivative at one row of arguments; infinite where nothing determines it.

    Relative to its largest entry; by `q` to the largest of the value, if that is more.
    """

    def record() -> tuple[Plan, Plan]:
        graph: Any = kernel.program.record()
        with with_less_added(*LESS):
            less: Any = kernel.program.record()
        return plan(read(graph)), plan(read(less))

    normal, with_less = _GRAPHS.find(model, kernel.program.key, record)
    inputs = [row[port.name][None] for port in kernel.program.inputs]
    noisy = with_noise(normal, inputs, SAMPLES)
    less = evaluated(with_less, inputs)
    worst = 0.0
    outputs = kernel.program.outputs
    alone = len(outputs) == 1  # second derivatives come without their value
    value = 0.0 if alone else float(np.abs(noisy[0][0]).max(initial=0.0))
    for port, answers, other in zip(outputs, noisy, less, strict=True):
        if port is outputs[0] and not alone:
            continue
        clean = answers[0]
        error = float((largest_error(answers) + np.abs(other - clean)).max(initial=0.0))
        size = max(float(np.abs(clean).max(initial=0.0)), value if port.name.endswith("_q") else 0.0)
        if not error <= 0.0:
            worst = max(worst, error / size) if np.isfinite(error) and size > 0 else np.inf
    return worst


def digits(error: float) -> int:
    """How many digits hold with a relative error."""
    return 16 if error <= 0 else max(0, floor(-log10(error))) if error < np.inf else 0


def _say(owner: str, model: Model, formulation: Formulation, names: Sequence[str], error: float) -> None:
    what = f"{owner}: the derivative by {', '.join(map(repr, names))}"
    if not error < np.inf:
        warn_outside(
            f"{what} is not determined at a q given: model {model.name!r} is in a singular position there, or too near "
            "to one, and its constraint rows depend on one another; what is returned is that of momentary freedoms; "
            "ask beside it"
        )
    elif digits(error) < ENOUGH:
        better = "" if formulation.in_tree else "; formulation='spatial' may keep more"
        warn_outside(
            f"{what} has about {digits(error)} digits at a q given: model {model.name!r} is near a singular position, "
            f"where derivatives in formulation {formulation.name!r} lose more digits than values{better}"
        )
