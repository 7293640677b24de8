"""What depends on what: Gruebler-Kutzbach's count, the rank, the freedoms, and the names of dependent constraints."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms

from ..graphs import graph_model

pytestmark = pytest.mark.usefixtures("quick_code")

OUT_OF_PLANE = ("moment x", "moment y", "force z")


def out_of_plane(*cuts: str) -> set[tuple[str, ...]]:
    """What a hinge about z cannot do in a planar loop, each component by itself."""
    return {(f"{cut}: {direction}",) for cut in cuts for direction in OUT_OF_PLANE}


# name: (mechanism, cuts, Kutzbach, rows, rank, freedoms, groups)
Facts = tuple[Callable[[], cd.Mechanism], tuple[str, ...], int, int, int, int, set[tuple[str, ...]]]
FACTS: dict[str, Facts] = {
    "door": (
        mechanisms.two_hinge_door, ("upper",), -4, 5, 0, 1,
        {(f"upper: {d}",) for d in ("moment x", "moment y", "force x", "force y", "force z")},
    ),
    "four-bar": (mechanisms.four_bar, ("C",), -2, 5, 2, 1, out_of_plane("C")),
    "four-bar cut in two": (mechanisms.four_bar, ("B",), -2, 5, 2, 1, out_of_plane("B")),
    "parallelogram": (
        mechanisms.parallelogram, ("B2", "B3"), -6, 10, 3, 1,
        out_of_plane("B2", "B3") | {("B2: force x", "B2: force y", "B3: force x", "B3: force y")},
    ),
    "parallelogram of two cranks": (
        lambda: mechanisms.parallelogram(cranks=2), ("B2",), -2, 5, 2, 1, out_of_plane("B2"),
    ),
    "Bennett": (
        mechanisms.bennett, ("C",), -2, 5, 2, 1,
        {("C: moment x", "C: moment y", "C: force x", "C: force y", "C: force z")},
    ),
    "Sarrus": (mechanisms.sarrus, ("head y",), 0, 5, 4, 1, {("head y: moment y",)}),
    "Stewart": (mechanisms.stewart_platform, tuple(f"ball{k}" for k in range(2, 7)), 6, 15, 15, 6, set()),
    "rack": (mechanisms.rack_and_pinion, (), 1, 1, 1, 1, set()),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_counts_and_names(name: str) -> None:
    make, cuts, kutzbach, rows, rank, freedoms, groups = FACTS[name]
    model = make().build(cut=cuts)
    assert {model.joints[j].name for j in model.cuts} == set(cuts)
    found = cd.redundancy(model)
    assert (found.kutzbach, found.rows, found.rank, found.freedoms) == (kutzbach, rows, rank, freedoms)
    assert found.redundant == rows - rank
    if name == "Sarrus":  # which moment it is depends on where the axes of the hinge point
        assert len(found.groups) == 1 and all(part.startswith("head y: moment") for part in found.groups[0])
    else:
        assert set(found.groups) == groups
    text = str(found)
    assert f"{freedoms} freedom{'s' * (freedoms != 1)} (Gruebler-Kutzbach count {kutzbach})" in text
    assert all(", ".join(group) in text for group in found.groups)


def test_freedoms_do_not_depend_on_the_cut() -> None:
    freedoms = {cd.redundancy(mechanisms.sarrus().build(cut=[cut])).freedoms for cut in ("foot x", "knee y", "head x")}
    assert freedoms == {1}


def test_a_motion_takes_one_freedom_and_a_second_one_is_redundant() -> None:
    m = mechanisms.parallelogram()
    m.motion("first", "A1", lambda t: 1.0 + t)
    assert cd.redundancy(m.build()).freedoms == 0
    m.motion("second", "A2", lambda t: 1.0 + t)
    found = cd.redundancy(m.build())
    assert (found.freedoms, found.rows, found.rank) == (0, 12, 4)
    assert any({"first", "second"} <= set(group) for group in found.groups)


def test_a_tree_has_no_rows() -> None:
    model = mechanisms.double_pendulum().build()
    found = cd.redundancy(model)
    assert (found.kutzbach, found.rows, found.rank, found.freedoms, found.groups) == (2, 0, 0, 2, ())


@pytest.mark.parametrize("seed", [9, 10, 21])
def test_parallel_joints_of_random_graphs_are_named(seed: int) -> None:
    """The rank found is that of the rows at a consistent configuration, and each dependent row is in one group."""
    model = graph_model(seed)
    found = cd.redundancy(model)
    J = cd.constraint_jacobian(model, cd.assemble(model)[0])
    assert found.rank == np.linalg.matrix_rank(J, tol=1e-7) < found.rows
    names = [name for group in found.groups for name in group]
    assert len(names) == len(set(names)) >= found.redundant
    cuts = {model.joints[j].name for j in model.cuts}
    assert all(name.rsplit(": ", 1)[0] in cuts for name in names)
