"""What functions of an instant read of the answer to what acts, where nobody else has it: at samples and in events.

The equations are solved there, in the tree's coordinates, with the rows that are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cardan.algebra.matrix import Matrix
from cardan.errors import InputError
from cardan.formulation.dynamics import solution_at
from cardan.formulation.instant import Instant
from cardan.formulation.quantity import Inputs
from cardan.formulation.spatial import SPATIAL
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.model.sight import Sight
from cardan.structure.rows import kept_rows


def answers_at(model: Model, tau: Matrix) -> Callable[[Instant, Sight], Matrix]:
    """What reads the answer at an instant of a model under drives `tau` (nv,); it is for one instant."""
    found: list[Any] = []

    def reads(s: Instant, sight: Sight) -> Matrix:
        if model.laws and not has_modes(model):
            raise InputError(
                f"{sight.told} depends on the forces of {model.laws[0].owner} in a step, which are not known at an "
                "instant; read it in the rate of a state, as by m.filter(...), or take another method, such as "
                "'dormand_prince'"
            )
        if not found:
            time: Any = s.t
            inputs: Inputs = {"q": s.q, "v": s.v, "tau": tau, "t": time}
            found.extend(solution_at(s.model, SPATIAL, kept_rows(model.unbound, SPATIAL), inputs))
        solution, complete = found
        return complete([solution.at(sight)])[0]

    return reads
