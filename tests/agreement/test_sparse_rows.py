"""Rows of large mechanisms, sparse on the links' rates, against the dense ones of the tree; closing loops with them."""

from collections.abc import Callable

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.functions.constraints import constraint_residual
from cardan.structure import sparse_rows
from cardan.structure.rows import generic_configurations, pivots, row_matrix, scaled_rows
from cardan.structure.sparse_assembly import close_loops, consistent_velocity
from cardan.structure.sparse_rank import independent_at, spans
from cardan.structure.sparse_rows import SparseRows

from ..trees import KINDS, add_body, close, random_pose

pytestmark = pytest.mark.usefixtures("quick_code")


def looped(seed: int) -> cd.Mechanism:
    """A random tree, in the plane for even seeds, with joints that close loops where it stands, and a coupling."""
    rng = np.random.default_rng(seed)
    m = cd.Mechanism(f"looped{seed}")
    planar = seed % 2 == 0
    poses = {m.ground: cd.Pose()}

    def place() -> cd.Pose:
        turn = rng.uniform(-1, 1) / 2
        flat = cd.Pose((*rng.uniform(-1, 1, 2), 0), quaternion=(np.cos(turn), 0, 0, np.sin(turn)))
        return flat if planar else random_pose(rng)

    def join(name: str, kind: str, near: str, far: str) -> None:
        where = place()
        type = cd.Revolute() if planar else KINDS[kind](rng)
        m.joint(name, type, near, far, at=poses[near].inverse @ where, child_at=poses[far].inverse @ where)

    kinds = [kind for kind in KINDS if kind != "rigid"]
    for k in range(6):
        near = str(rng.choice(list(poses)))
        name = add_body(m, f"b{k}", rng)
        poses[name] = place()
        join(f"j{k}", str(rng.choice(kinds)), near, name)
    for k in range(2):
        near, far = rng.choice(list(poses), 2, replace=False)
        join(f"loop{k}", str(rng.choice(["revolute", "spherical", "cylindrical"])), str(near), str(far))
    if planar:
        m.couple("gear", {"j0": 1.0, "j1": -2.0})
    return m


EVERY: dict[str, Callable[[], cd.Mechanism]] = {
    **{f"random {seed}": lambda seed=seed: looped(seed) for seed in range(3)},
    "bennett": mechanisms.bennett,
    "track": lambda: mechanisms.track(11),
}


@pytest.mark.parametrize("name", EVERY)
def test_sparse_rows_are_those_of_the_tree_and_have_their_rank(name: str) -> None:
    model, rng = EVERY[name]().build(), np.random.default_rng(7)
    sparse = SparseRows(model)
    kept = sparse.number[~sparse.of_tree]
    for q in (sparse.plus(model.start(), rng.uniform(-0.3, 0.3, model.nv)), generic_configurations(model)[0]):
        v = rng.standard_normal(model.nv)
        u = sparse.link_rates(q, v)
        C, _ = sparse.velocity(q, 0.0)
        J = row_matrix(model, q)
        close((C @ u)[sparse.of_tree], np.zeros(sparse.of_tree.sum()), 1e-12)
        close((C @ u)[~sparse.of_tree], (J @ v)[kept], 1e-12)
        close(np.delete(J, kept, axis=0), np.zeros((len(J) - len(kept), model.nv)), 1e-12)  # out of the plane
        close(sparse.joint_rates(q) @ u, v, 1e-12)
        close(sparse.gaps(q, 0.0), constraint_residual(model, q), 1e-12)
        rows = independent_at(model, q)
        assert len(rows) == len(pivots(scaled_rows(model, q))) == len(pivots(scaled_rows(model, q)[rows]))
        assert spans(model, q, rows)
        assert not rows or not spans(model, q, rows[1:])


@pytest.mark.parametrize("name", ["random 0"])
def test_loops_are_closed_and_velocities_made_consistent(name: str) -> None:
    model, rng = EVERY[name]().build(), np.random.default_rng(8)
    guess = SparseRows(model).plus(model.start(), rng.uniform(-0.03, 0.03, model.nv))
    free = np.ones(model.nv, dtype=bool)
    q, gaps = close_loops(model, guess, free, 0.0, 1e-12)
    assert np.abs(constraint_residual(model, guess)).max() > 1e-3
    assert np.abs(constraint_residual(model, q)).max() < 1e-13
    close(gaps, constraint_residual(model, q), 1e-13)
    wish = rng.standard_normal(model.nv)
    v, left, _ = consistent_velocity(model, q, wish, free, 0.0)
    close(row_matrix(model, q) @ v, np.zeros(len(model.rows)), 1e-10)
    assert np.abs(left).max() < 1e-10
    again, *_ = consistent_velocity(model, q, v, free, 0.0)  # what is consistent stays
    close(again, v, 1e-10)


def test_a_lattice_of_hundreds_of_bodies_is_closed_counted_and_held() -> None:
    model = mechanisms.lattice(7).build()
    assert len(model.tree.links) > sparse_rows.LOOP_PAST
    found = cd.redundancy(model)
    assert (found.freedoms, found.rank, found.redundant) == (7, 98, 147)
    assert "mobility: 7 freedoms, 105 of the tree less 98 independent constraints; 147 more" in model.report()
    rng = np.random.default_rng(0)
    guess = model.start() + rng.uniform(-0.02, 0.02, model.nv)
    q, _ = cd.assemble(model, guess, hold=("A3_0",))
    assert np.abs(sparse_rows.sparse_rows(model).gaps(q, 0.0)).max() < 1e-12
    assert q[model.q_slice("A3_0")] == guess[model.q_slice("A3_0")]
    for j in range(7):  # bars of a row are parallel
        angle = [sum(q[model.q_slice(f"A{i}_{k}")][0] for k in range(j + 1)) for i in range(8)]
        close(angle, np.full(8, angle[0]), 1e-11)
    _, v = cd.assemble(model, q, {"A0_0": 0.5})
    close(v[model.v_slice("A5_0")], [0.5], 1e-11)
    short = mechanisms.lattice(7)
    short.joint("impossible", cd.Revolute(), short.ground, "level6_6", at=(20.0, 0, 0))
    with pytest.raises(cd.ModelError, match=r"cannot be assembled: joint '.*' stays open by"):
        cd.assemble(short.build())
