"""The looped drive gives what the unrolled one gives: every recursion, both precisions, as the code that users get."""

from __future__ import annotations

import pytest

from cardan.structure.kernels import compile_quantity

from ..formulations import RECURSIONS
from ..trees import close, tree_model
from .test_drives import DOUBLE, SINGLE, by_graph, in_one, inputs

LOOPED = [
    (formulation, name)
    for formulation, table in RECURSIONS.items()
    for name, quantity in table.items()
    if quantity.recursion is not None
]
IN_SINGLE = ("forward_dynamics", "inverse_dynamics_derivatives", "body_poses")  # one printer prints both


@pytest.mark.parametrize(("formulation", "name"), LOOPED, ids=["-".join(pair) for pair in LOOPED])
def test_the_looped_drive_gives_what_the_unrolled_one_gives(formulation: str, name: str) -> None:
    model, quantity = tree_model(1, 4), RECURSIONS[formulation][name]
    looped = compile_quantity(model, quantity, formulation, looped=True)
    given = inputs(model, quantity, (21,), DOUBLE)
    unrolled = by_graph(model, quantity, given)
    kinds = ((DOUBLE, 1e-12), (SINGLE, 1e-4)) if name in IN_SINGLE else ((DOUBLE, 1e-12),)
    for dtype, tolerance in kinds:
        for rows in (0, slice(0, 1), slice(0, 5), slice(0, 21)):
            got = in_one(looped(*(x[rows].astype(dtype) for x in given)), unrolled[rows].ndim - 1)
            assert got.dtype == dtype
            close(got, unrolled[rows], tolerance)
