# ruff: noqa: E501
"""Mutants of `functions`: derivatives through loops."""

from __future__ import annotations

from tests.mutants.mutant import Mutant, changes

DERIVATIVES = "identity/test_derivatives.py"

MUTANTS: list[Mutant] = [
    *changes(
        "functions/drive_derivatives.py", DERIVATIVES,
        ("du = du - spare @ found.B.T", "du = du + spare @ found.B.T", "drives against each other: the wrong way"),
        ("(force - tau)[..., None])[..., 0]", "force[..., None])[..., 0]", "constraint forces bear what the drives give"),
    ),
    *changes(
        "functions/along_constraints.py", DERIVATIVES,
        ('right = -acceleration["q"] @ dq - acceleration["v"] @ dv', 'right = -acceleration["q"] @ dq', "dependent accelerations do not follow the rates"),
        ('completed(np.zeros((n, n)), -rate["q"] @ dq)', "completed(np.zeros((n, n)), 0 * dq)", "dependent rates do not follow the coordinates"),
    ),
]  # fmt: skip
