"""Whether a tree magnifies rounding, from its numbers alone, and the warning that says so.

A recursion subtracts, tips first, from the inertia that a joint carries what the joints beyond do not pass on. It errs
by how many times less is left, the articulated inertia `IA`, than there was, the composite inertia `IC`. That is the
pivot of `M` with unit diagonal, `D / M_ii`, so no more than the condition of `M`; in long chains it is much less, and
so is the error (docs/robustness.md). `build` has computed it (`model.tree.judge_mobility`).
"""

from __future__ import annotations

import numpy as np

from cardan.errors import warn_outside as warn_outside
from cardan.formulation.formulation import Formulation
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.tree import judge_mobility

# Past this the stated bound, 2.2e-16 times the condition, is more than a thousandth.
TOO_LARGE = 1e-3 * 2.0**52
DOUBTFUL = 1e5  # of the condition of matrices: past this it is measured
TREE_DOUBTFUL = 1e8  # of what `magnification` finds, which is nearer to the truth
APART = 1e10  # of either, times the square of `disparity`, since short bodies far away cancel
OTHERS = (1, 2)  # seeds of more configurations, to be sure
MOST_LINKS = 2000  # whose mass matrix, full as it is, can still be looked at
SOME = 5  # of a batch of values of free parameters, how many are judged

JUDGED: Slot[str, bool] = Slot("formulations whose condition was judged at generic configurations")


def magnification(model: Model) -> float:
    """How many times less inertia a joint of the tree moves than it carries, at arbitrary configurations.

    Free parameters count with the values that the model is at.
    """
    tree = model.tree if model.values is None else model.settled().tree
    found = tree.mobility[1]
    return found if found < TREE_DOUBTFUL else min(found, *(judge_mobility(tree, seed)[1] for seed in OTHERS))


def disparity(model: Model) -> float:
    """How many times longer the longest arm of a link is than the smallest radius of gyration."""
    links = [link for link in model.settled().tree.links if link.mass > 0]
    radii = [np.sqrt(max(np.trace(link.I_C), 0.0) / link.mass) for link in links]
    arms = [np.linalg.norm(x) for link in links for x in (link.r, link.com)]
    return float(max(*arms, *radii) / min(x for x in radii if x > 0)) if any(radii) else 1.0


def warn_of_tree(model: Model, formulation: Formulation) -> None:
    """Warn, once for a model and a formulation, if a tree's recursion may lose all digits; not past `MOST_LINKS`."""
    if JUDGED.first_time(model, formulation.key) and len(model.tree.links) <= MOST_LINKS:
        for one in some_values(model):
            found = magnification(one)
            if not (found < TREE_DOUBTFUL and found * disparity(one) ** 2 < APART):
                from cardan.structure.condition import measured_at  # which needs CasADi
                from cardan.structure.rows import generic_configurations

                say(model, formulation, measured_at(one, formulation, np.array(generic_configurations(one)), 0.0))


def some_values(model: Model) -> list[Model]:
    """The model at some of the values of its free parameters; at nominal ones where there are none."""
    if not model.batch:
        return [model]
    if 0 in model.batch:
        return [model.unbound]
    rows = np.unique(np.linspace(0, np.prod(model.batch) - 1, SOME).astype(int))
    return [model.one_of(tuple(map(int, np.unravel_index(row, model.batch)))) for row in rows]


def say(model: Model, formulation: Formulation, found: float, where: str = "") -> None:
    """Warn where the user called, if a condition is too large."""
    if not found < TOO_LARGE:
        wrong, near = min(found * 2.0**-52, 1.0), ", or loops are near a dead point" * bool(where)
        much = f"{found:.1g} times" if found < np.inf else "without bound"
        warn_outside(
            f"model {model.name!r}: in formulation {formulation.name!r} accelerations or reactions may be wrong by "
            f"{100 * wrong:.2g} percent{where}: its equations magnify rounding {much} (cd.condition); "
            f"masses or lengths differ too much along a chain of joints{near}"
            f"{'' if formulation.in_tree else '; spatial may do better'}"
        )
