"""The constraint rows of a large mechanism, those of its tree's joints too, on six rates a link: sparse matrices.

In the tree's coordinates the row of a loop has an entry for every joint on the way around it. On the rates `u` of the
links (formulation `absolute`: angular velocity and velocity of the centre of mass, in ground axes) a row touches the
two links that its joint connects, whatever the size. So everything that is asked of the rows, closing the loops,
consistent velocities, which rows depend on one another, is one sparse symmetric matrix `A = C C^T` with a row for
every constraint, ordered and factored by SuperLU. Docs: docs/decisions/0074.

    C     rows on scaled rates: turns times a length, so that metres and radians weigh alike
    E     `dq = E u`: rates of the tree's joints from rates of the links that obey the rows of the tree's joints

Where all joints of the tree move the links in one plane, links have three rates. The rows that are then zero, whatever
the configuration, are left out: those of cut joints are the ones that a planar loop has too many.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cardan.algebra.matrix import snap
from cardan.algebra.rotation import quaternion_of_rotation, rotation_to_axis
from cardan.formulation.absolute import ABSOLUTE
from cardan.formulation.coordinates import own_equations
from cardan.formulation.division import heaviest_bodies, row_places
from cardan.lazy import cached_property
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.row import RowLabel, joint_labels
from cardan.model.tree import GROUND
from cardan.structure.component_sums import Component, Components, ComponentSum, Symbols
from cardan.structure.kernels import LOOP_PAST
from cardan.structure.link_motion import LinkMotion, for_all

SHIFT = 1e-13  # on the diagonal of A: rows that depend on others keep a pivot of this size
CORRECTIONS = 12  # of a solution, at most

_ROWS: Slot[None, SparseRows] = Slot("constraint rows on the rates of the links, sparse", by_values=True)


def has_sparse_rows(model: Model) -> bool:
    """Whether the constraint rows of a model are treated as sparse matrices."""
    return model.has_rows and len(model.tree.links) > LOOP_PAST


def sparse_rows(model: Model) -> SparseRows:
    """The rows of a model at its own values of free parameters, of which there is one."""
    return _ROWS.find(model, None, lambda: SparseRows(model.settled()))


class SparseRows:
    """The rows of a model without free parameters, nl of them, on k rates for each of n links.

    `of_tree` (nl,) tells rows of the tree's joints, `number` (nl,) the number of the others among `model.rows`;
    `at_position` (nl,) those that are not at rate level. `out_of_plane` are numbers of `model.rows` left out.
    """

    def __init__(self, model: Model) -> None:
        self.model, self.home = model, model.separate
        links = self.home.tree.links
        self.motion = LinkMotion(self.home.tree)
        self.axes = np.array([self.home.tree.body_pose[b].rotation for b in heaviest_bodies(self.home)])
        self.com = np.array([link.com for link in links])
        self.basis = self._plane()
        first, levels = row_places(model, ABSOLUTE)
        self.components = Components(model, ABSOLUTE, range(len(levels)), self.basis)
        self.numbers = self.components.nominal()
        turns = np.linalg.norm(np.eye(6)[:, :3] if self.basis is None else self.basis.T[:, :3], axis=1) > 0.5
        self.scale = np.tile(np.where(turns, 1 / _typical_length(model), 1.0), len(links))
        """Rates are `scale` times those in which `C` is written."""
        self.real = np.ones(len(levels), dtype=bool)
        of_tree, number = self._numbers(first, len(levels))
        self.real = self._real(len(levels) - len(model.couplings) - len(model.constraints))
        self.of_tree, self.number, self.at_position = of_tree[self.real], number[self.real], np.array(levels)[self.real]
        self.out_of_plane = [int(k) for k in number[~self.real & ~of_tree]]
        self.positions = self.real[levels]  # of rows at position level, those that are there
        self.every_number = number[levels]  # of rows at position level, also those out of the plane

    def _plane(self) -> np.ndarray | None:
        """The three rates (6, 3) of a link that any motion of the tree's joints gives it, or None if there are more."""
        rng = np.random.default_rng(3)
        u = np.array([self._rates(self.model.start(), rng.standard_normal(self.model.nv)) for _ in range(2)])
        turn, speed = u[..., :3].reshape(-1, 3), u[..., 3:].reshape(-1, 3)
        size = np.abs(turn).max(initial=0.0), np.abs(speed).max(initial=0.0)
        if size[0] > 0:
            normal = turn[np.argmax(np.abs(turn).sum(axis=1))]
            normal = snap(normal / np.linalg.norm(normal), 1e-12)
        else:
            normal = snap(np.linalg.svd(speed, full_matrices=False)[2][2], 1e-12)
        across = np.abs(turn - np.outer(turn @ normal, normal)).max(initial=0.0)
        if across > 1e-12 * size[0] or np.abs(speed @ normal).max(initial=0.0) > 1e-12 * size[1]:
            return None
        axes = rotation_to_axis(normal)
        basis = np.zeros((6, 3))
        basis[:3, 0], basis[3:, 1:] = normal, axes[:, :2]
        return basis

    def _real(self, joints: int) -> np.ndarray:
        """Rows that are not zero in the plane; only the first of them, of joints, may be."""
        real = np.ones(len(self.real), dtype=bool)
        if self.basis is None:
            return real
        rng, q = np.random.default_rng(4), self.model.start()
        real[:joints] = False
        for place in (q, self.plus(q, rng.uniform(-1, 1, self.model.nv))):
            C = self._scaled(self._velocity(self.numbers, t=0.0, q=self.own(place), about=place)["J"])
            largest = abs(C).max(axis=1).toarray().ravel()
            real |= largest > 1e-9 * largest.max(initial=0.0)
        return real

    def _numbers(self, first: dict[str, int], n: int) -> tuple[np.ndarray, np.ndarray]:
        of_tree, number, at = np.ones(n, dtype=bool), np.full(n, -1), 0
        for j in self.model.cuts:
            size = self.model.joints[j].kind.freedoms_removed
            if f"joint {j}" in first:  # a joint within one link has no rows there
                own = slice(first[f"joint {j}"], first[f"joint {j}"] + size)
                of_tree[own], number[own] = False, np.arange(at, at + size)
            at += size
        rest = len(self.model.couplings) + len(self.model.constraints)
        of_tree[n - rest :], number[n - rest :] = False, np.arange(at, at + rest)
        return of_tree, number

    @cached_property
    def _residual(self) -> ComponentSum:
        inputs, outputs = {"t": "all", "q": "q", "about": "x"}, {"phi": ("positions",), "G": ("positions", "v")}
        return ComponentSum(self.components, "closing", inputs, outputs, _written_residual)

    @cached_property
    def _gap(self) -> ComponentSum:
        inputs = {"t": "all", "q": "q", "about": "x"}
        return ComponentSum(self.components, "gap", inputs, {"phi": ("positions",)}, _written_gap)

    @cached_property
    def _velocity(self) -> ComponentSum:
        inputs, outputs = {"t": "all", "q": "q", "about": "x"}, {"J": ("rows", "v"), "beta": ("rows",)}
        return ComponentSum(self.components, "rows", inputs, outputs, _written_rows)

    @cached_property
    def _joints(self) -> ComponentSum:
        driven = lambda cls: cls.outline.driven
        outputs = {"E": ("tau", "v")}
        return ComponentSum(self.components, "joint_rates", {"q": "q", "about": "x"}, outputs, _written_rates, driven)

    def residual(self, q: np.ndarray, t: float) -> tuple[np.ndarray, Any]:
        """`phi` (nl,), m and rad, at a configuration (nq,) of the tree, and its derivative `C` (nl, k n).

        Rows at rate level are zero in both.
        """
        found = self._residual(self.numbers, t=t, q=self.own(q), about=q)
        return self._every(found["phi"][self.positions]), self._placed(self._scaled(found["G"])[self.positions])

    def gaps(self, q: np.ndarray, t: float) -> np.ndarray:
        """`phi` of `model.rows`, m and rad, at a configuration (nq,) of the tree; out of the plane too."""
        phi = self._gap(self.numbers, t=t, q=self.own(q), about=q)["phi"]
        found = np.zeros(len(self.model.rows))
        found[self.every_number[self.every_number >= 0]] = phi[self.every_number >= 0]
        return found

    def of_model(self, values: np.ndarray) -> np.ndarray:
        """Values of all rows (nl,) as those of `model.rows`; what is not among them is left out."""
        found = np.zeros(len(self.model.rows))
        found[self.number[~self.of_tree]] = values[~self.of_tree]
        return found

    def velocity(self, q: np.ndarray, t: float) -> tuple[Any, np.ndarray]:
        """Rows `C` (nl, k n) and `beta` (nl,) of velocities at a configuration (nq,) of the tree."""
        found = self._velocity(self.numbers, t=t, q=self.own(q), about=q)
        return self._scaled(found["J"])[self.real], found["beta"][self.real]

    def joint_rates(self, q: np.ndarray) -> Any:
        """`E` (nv, k n) at a configuration (nq,) of the tree."""
        return self._scaled(self._joints(self.numbers, q=self.own(q), about=q)["E"])

    def in_tree(self, C: Any, q: np.ndarray) -> np.ndarray:
        """Rows `C` (nl, k n) as those of `model.rows` (nl, nv) on the rates of the tree, at a configuration (nq,).

        The rates of the links follow from those of the tree by the rows of its joints.
        """
        from scipy.sparse import vstack
        from scipy.sparse.linalg import splu

        held, nv = self.velocity(q, 0.0)[0][self.of_tree], self.model.nv
        unit = np.concatenate([np.zeros((held.shape[0], nv)), np.eye(nv)])
        rates = splu(vstack([held, self.joint_rates(q)]).tocsc()).solve(unit)
        found = np.zeros((len(self.model.rows), nv))
        found[self.number[~self.of_tree]] = C[~self.of_tree] @ rates
        return found

    def own(self, q: np.ndarray) -> np.ndarray:
        """Centre of mass and quaternion (7 n,) of each link at a configuration (nq,) of the tree."""
        R, r = self.motion.poses(q)
        turn = for_all(_quaternion, (R @ self.axes).reshape(-1, 9))[..., 0]
        return np.concatenate([r + np.einsum("nij,nj->ni", R, self.com), turn], axis=1).ravel()

    def link_rates(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rates (k n,) of the links, in the scale of `C`, at a state (nq,), (nv,) of the tree."""
        u = self._rates(q, v)
        return (u if self.basis is None else u @ self.basis).ravel() / self.scale

    def _rates(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Angular velocity and velocity of the centre of mass (n, 6) of the links, in ground axes."""
        R, r = self.motion.poses(q)
        u = self.motion.rates(q, v)
        u[:, 3:] += np.cross(u[:, :3], r + np.einsum("nij,nj->ni", R, self.com))
        return u

    def plus(self, q: np.ndarray, dq: np.ndarray) -> np.ndarray:
        """The configuration (nq,) of the tree after moving with rates (nv,) for unit time."""
        return self.motion.plus(q, dq)

    def _every(self, values: np.ndarray) -> np.ndarray:
        found = np.zeros(len(self.at_position))
        found[self.at_position] = values
        return found

    def _placed(self, G: Any) -> Any:
        """Rows at position level among all rows."""
        from scipy.sparse import csr_array

        counts = np.zeros(len(self.at_position), dtype=int)
        counts[self.at_position] = np.diff(G.indptr)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        return csr_array((G.data, G.indices, indptr), shape=(len(counts), G.shape[1]))

    def _scaled(self, J: Any) -> Any:
        """By rows, on scaled rates."""
        from scipy.sparse import csr_array, diags_array

        return csr_array(J @ diags_array(self.scale))


class Factor:
    """The factors of `A = C C^T + damping`, rows scaled to unit length; `damping` (nl,) on rows so scaled.

    Rows are eliminated in the `order` (nl,), by default one with little fill; `place` (nl,) is the place of each row
    in it. Where rows depend on one another the solutions are those of least size, as far as `SHIFT` allows.
    """

    def __init__(self, C: Any, damping: np.ndarray | float = 0.0, order: np.ndarray | None = None) -> None:
        from scipy.sparse import csc_array, diags_array
        from scipy.sparse.linalg import splu

        length = np.sqrt(np.asarray(C.multiply(C).sum(axis=1)).ravel())
        self.unit = 1 / np.where(length > 0, length, 1.0)
        self.C = diags_array(self.unit) @ C
        self.damping = np.broadcast_to(damping, len(length)) + SHIFT
        A = csc_array(self.C @ self.C.T + diags_array(self.damping))
        self.order = np.arange(len(length)) if order is None else order
        if order is not None:
            A = csc_array(A[order][:, order])
        given = "MMD_AT_PLUS_A" if order is None else "NATURAL"
        self.lu = splu(A, permc_spec=given, diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        self.place = np.empty(len(length), dtype=int)
        self.place[self.order] = self.lu.perm_c

    def pivots(self) -> np.ndarray:
        """Pivots (nl,) of the rows: the square of a row's part that those eliminated before it do not span."""
        found: np.ndarray = self.lu.U.diagonal()[self.place]
        return found

    def _solve(self, b: np.ndarray) -> np.ndarray:
        found = np.empty(len(b))
        found[self.order] = self.lu.solve(b[self.order])
        return found

    def along(self, r: np.ndarray) -> np.ndarray:
        """The part of rates (k n,) that the rows span."""
        return self.smallest(self.C @ r / self.unit)

    def smallest(self, b: np.ndarray) -> np.ndarray:
        """The least change `x` (k n,) of the links' rates with `C x = b` (nl,), softened by the damping."""
        b = self.unit * b
        y, left = np.zeros(len(b)), b
        size = least = float(np.linalg.norm(b))
        for _ in range(CORRECTIONS):  # takes out what SHIFT and rounding leave
            more = y + self._solve(left)
            left = b - self.C @ (self.C.T @ more) - (self.damping - SHIFT) * more
            now = float(np.linalg.norm(left))
            if not now < least:
                break
            y, before, least = more, least, now
            if now <= 1e-14 * size or now > before / 2:
                break
        found: np.ndarray = self.C.T @ y
        return found


def _quaternion(R: Any) -> Any:
    """Of a rotation, given by rows (9,)."""
    import casadi as ca

    return quaternion_of_rotation(ca.reshape(R, 3, 3).T)


def _typical_length(model: Model) -> float:
    """The usual distance of a joint from the centre of a body, m."""
    ends = [
        np.linalg.norm(at.position - (model.bodies[b].com if b != GROUND else at.position))
        for joint in model.joints
        for b, at in ((joint.parent, joint.at), (joint.child, joint.child_at))
    ]
    length = float(np.sqrt(np.mean(np.square(ends))))
    return length if length > 0 else 1.0


def row_labels(model: Model) -> list[RowLabel]:
    """Labels of all rows in the formulation `absolute`, in order."""
    home = model.separate
    first, _ = row_places(model, ABSOLUTE)
    joints = [home.joints[int(owner.split()[1])] for owner in first if owner.startswith("joint ")]
    labels = [label for joint in joints for label in joint_labels(joint.name, joint.kind)]
    labels += [label for coupling in home.couplings for label in coupling.labels(home.joints)]
    return labels + [label for constraint in home.constraints for label in constraint.labels(home.joints)]


def _written_residual(c: Component, s: Symbols) -> dict[str, Any]:
    import casadi as ca

    D = _rate_symbols(c)
    moved = c.formulation.plus(c.model, s["q"], c.wide(D))
    phi = own_equations(c.model, c.formulation, _still(c, s, moved)).rows.kept(c.positions).phi
    return {name: ca.substitute(x, D, ca.SX.zeros(D.shape)) for name, x in (("phi", phi), ("G", ca.jacobian(phi, D)))}


def _written_gap(c: Component, s: Symbols) -> dict[str, Any]:
    return {"phi": own_equations(c.model, c.formulation, _still(c, s, s["q"])).rows.kept(c.positions).phi}


def _written_rows(c: Component, s: Symbols) -> dict[str, Any]:
    rows = own_equations(c.model, c.formulation, _still(c, s, s["q"])).rows.kept(c.rows)
    return {"J": rows.J if c.basis is None else rows.J @ c.basis, "beta": rows.beta}


def _written_rates(c: Component, s: Symbols) -> dict[str, Any]:
    import casadi as ca

    u = _rate_symbols(c)
    kin = c.formulation.kinematics(c.model, s["q"], c.wide(u), s["about"])
    rates = [kin.joint(link.joint)[1] for link in c.model.tree.links if link.kind.nv]
    return {"E": ca.jacobian(ca.vertcat(*rates), u)} if rates else {}


def _rate_symbols(c: Component) -> Any:
    import casadi as ca

    return ca.SX.sym("u", 6 * len(c.model.tree.links) if c.basis is None else c.basis.shape[1])


def _still(c: Component, s: Symbols, q: Any) -> dict[str, Any]:
    """The inputs of the equations at rest, without drives."""
    import casadi as ca

    at_rest = {"v": ca.SX(6 * len(c.model.tree.links), 1), "tau": ca.SX(c.model.nv, 1)}
    return {"t": s["t"], "q": q, "about": s["about"], **at_rest}
