"""Programs for large mechanisms: what is computed, as schedules of the stages of `LargeMechanics`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.formulation.large.division import MOST_LINKS, subtrees
from cardan.formulation.large.mechanics import LargeMechanics
from cardan.formulation.large.steps import schedule_of
from cardan.formulation.light import lent_to_joints, lent_to_links
from cardan.model.model import Model
from cardan.program.schedule import Schedule


def has_large_subtrees(model: Model) -> bool:
    """Whether pieces are single links, since subtrees on the ground are large."""
    return max((len(links) for links in subtrees(model.tree)), default=0) > MOST_LINKS


def can_loop(model: Model, bodies_apart: bool) -> bool:
    """Whether a mechanism with rows can be looped: links without inertia, and rotors of single links, are not yet."""
    if bodies_apart:
        return not any(link.armature is not None for link in model.tree.links) and not np.any(lent_to_links(model))
    return not np.any(lent_to_joints(model))


def forward_dynamics(
    model: Model, kept: Sequence[int], inputs: Sequence[str], outputs: Sequence[str], *,
    p: Matrix | None = None, bodies_apart: bool | None = None,
) -> Schedule:  # fmt: skip
    """Accelerations `a` (nv,), and the power `P` (W) that enters where it is among the outputs."""
    apart = has_large_subtrees(model) if bodies_apart is None else bodies_apart
    L = LargeMechanics(model, kept, inputs, outputs, bodies_apart=apart, p=p)
    power = [name for name in outputs if name == "P"]
    stages = [L.clear(*power), *L.system.clear, *L.before, *L.forces(), L.rows(L.acceleration_gap), L.coupled()]
    stages += [*L.system.factor, *L.system.solve, *L.pulled("a", "a0", -1.0)]
    stages += [L.give("a", lambda step, kind, links, a: L.output(step, "a", links, a)), L.told(*power)]
    return schedule_of(stages, L.cells, L.system.end)
