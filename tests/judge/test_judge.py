"""The engine judged from outside: random mechanisms in every formulation, and the judge itself."""

from __future__ import annotations

import numpy as np
import pytest

from ..identity.robustness_errors import interpreted
from .comparison import answers, random_state
from .maximal_coordinates import Judge
from .random_mechanisms import mechanism

SEEDS = (0, 1, 7, 14, 16, 19, 31)  # together every joint kind, and a mechanism of most families


@pytest.mark.parametrize("seed", SEEDS)
def test_random_mechanism_is_as_judged(seed: int) -> None:
    with interpreted():
        model = mechanism(seed).build()
        judge = Judge(model)
        state = random_state(model, np.random.default_rng(seed))
        right = judge.solve(*state)
        assert right.is_clear and right.gap < 1e-12 and right.drift < 1e-12
        wrong = [str(answer) for answer in answers(model, judge, state) if not answer.is_right]
    assert not wrong, "\n".join(wrong)
