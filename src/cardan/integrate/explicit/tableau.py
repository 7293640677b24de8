"""Butcher tableaux of explicit Runge-Kutta methods.

Source: W. Kutta, Z. Math. Phys. 46 (1901) 435-453 (order 4); J. R. Dormand, P. J. Prince, J. Comput. Appl. Math. 6
(1980) 19-26 (order 5, with an error estimate of order 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardan.lazy import cached_property


@dataclass(frozen=True, eq=False)
class Tableau:
    """Coefficients of an explicit method: `A` (s, s), `b` (s,), and `e` (s,), the weights of the error estimate.

    A method with an error estimate chooses its steps; its last stage must be the first stage of the next step.
    `semi_implicit` moves the positions with the new velocities.
    """

    A: np.ndarray
    b: np.ndarray
    e: np.ndarray | None = None
    semi_implicit: bool = False

    @property
    def c(self) -> np.ndarray:
        """Times (s,) of the stages, as parts of the step."""
        return np.asarray(self.A.sum(axis=1))

    @property
    def stages(self) -> int:
        """Number of stages `s`."""
        return len(self.b)

    @property
    def adaptive(self) -> bool:
        """Whether the method estimates its own error."""
        return self.e is not None

    @property
    def before(self) -> np.ndarray:
        """Weights (s,) in each stage of the one before it; 0 for the first."""
        return np.array([0.0, *np.diagonal(self.A, -1)])

    @property
    def is_chain(self) -> bool:
        """Whether each stage reads only the one before it, and there is no error estimate: then two sums are enough."""
        return self.e is None and not np.tril(self.A, -2).any()

    @cached_property
    def key(self) -> str:
        """Everything that distinguishes it from another tableau, to the last bit."""
        e = None if self.e is None else self.e.tolist()
        return repr((self.A.tolist(), self.b.tolist(), e, self.semi_implicit))


def _lower(*rows: Sequence[float]) -> np.ndarray:
    """Fill a square matrix from the left with rows of different lengths."""
    A = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        A[i, : len(row)] = row
    return A


KUTTA = Tableau(_lower((), (1 / 2,), (0, 1 / 2), (0, 0, 1)), np.array([1, 2, 2, 1]) / 6)

_B5 = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_B4 = (5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)
DORMAND_PRINCE = Tableau(
    _lower(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        _B5,
    ),
    np.array([*_B5, 0]),
    np.array([*_B5, 0]) - np.array(_B4),
)
ONE_STAGE = Tableau(_lower(()), np.array([1.0]))
"""`q' = q + h kq`, `v' = v + h kv`: for methods that write their one stage by themselves."""
SEMI_IMPLICIT_EULER = Tableau(_lower(()), np.array([1.0]), semi_implicit=True)
"""`v' = v + h a(q, v)`, `q' = q + h v'`: order 1, one evaluation per step."""
