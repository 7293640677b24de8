"""What every formulation is: one object that writes the equations of motion of any mechanism in its own coordinates.

    M(q,t) vdot + J(q,t)^T lam = f(q,v,t)      J vdot = gamma(q,v,t)      J v = beta(q,t)      qdot = N(q) v
    phi(q,t) = 0 for rows at position level, d phi/dq N = J row by row

A formulation has, in this order: `sizes` of its coordinates and rates; `kinematics`, from its own coordinates or from
those of the tree; `equations`, which are `M`, `f` and the rows; `solve`, and what takes the answer back to the tree's
accelerations and the joints' wrenches; `rates` and `plus`; `lift` to poses and twists of the bodies and `project`, the
other way; `letters` for printed equations. Solvers, integrators, reactions, agreement and export know only these.

`formulation.registry` knows the formulations by name. One of the user's own is a subclass, added there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import pi
from typing import Any, ClassVar

import numpy as np

from cardan.algebra.matrix import Matrix, Scalar, segment, stack, zeros
from cardan.algebra.rotation import rotation_of_quaternion
from cardan.errors import InputError, ModelError
from cardan.formulation.elements import Loads, constraint_forces, constraint_rows, with_drive, with_wrenches
from cardan.formulation.kinematics import Kinematics, kinematics_of_tree
from cardan.formulation.law_forces import with_law_forces
from cardan.formulation.measured_joint import MeasuredJoint, common_period, fixed_transform, principal
from cardan.formulation.recursion import Recursion, unroll
from cardan.formulation.rows import LinkRows, Rows
from cardan.model.constraint import Constraint
from cardan.model.force import Coupling
from cardan.model.joint import Kind, configuration_rate
from cardan.model.model import Model
from cardan.model.row import RowTable
from cardan.model.tree import GROUND

Letter = tuple[str, str, str]  # letter, what it is, unit
LetterGroup = tuple[str, tuple[Letter, ...], tuple[Letter, ...], str]  # owner, of q, of v, where it is measured


@dataclass(frozen=True)
class RotationGraph:
    """A rotation matrix `R` (3, 3) of an owner as a function of the coordinates, for printed equations.

    `meaning` is what it is said to be, the same as R wherever the constraints hold; `quaternion` is where its
    quaternion begins, None where it is made of none.
    """

    owner: str
    R: Matrix
    meaning: Matrix
    quaternion: int | None = None


@dataclass(frozen=True)
class Parts:
    """A formulation's equations at a state.

    `rates` are the formulation's own `v`; `lent` (nv, nv) is what is added to `M` for links without inertia, None
    where there are none. `own` is for the formulation itself.
    """

    model: Model
    kin: Kinematics
    loads: Loads
    rates: Matrix
    M: Matrix
    f: Matrix
    rows: Rows
    lent: np.ndarray | None = None
    own: Any = None


class Formulation(ABC):
    """The equations of motion of any mechanism in one set of coordinates. See the module's text for the contract."""

    name: ClassVar[str]
    """The word that chooses it."""
    about: ClassVar[str] = ""
    """One line about it."""
    in_tree: ClassVar[bool] = False
    """Whether its coordinates are those of the tree."""
    has_recursions: ClassVar[bool] = False
    """Whether plain trees have recursions of their own here (`TreeFormulation.quantities`)."""
    solves_mass_matrix: ClassVar[bool] = True
    """Whether forward dynamics of a plain tree factorises `M`; False if a recursion does without."""
    eliminates_along_tree: ClassVar[bool] = False
    """Whether it solves a mechanism without loops by elimination along the tree, which errs as a recursion does."""
    is_planar: ClassVar[bool] = False
    """Whether it takes planar mechanisms only."""
    has_armature: ClassVar[bool] = True
    """Whether it takes armature."""

    divides: ClassVar[bool] = False
    """Whether large mechanisms with loops are divided into pieces (`formulation.large`)."""

    added: str = ""
    """What tells a formulation that was added from another of its name; see `registry.add_formulation`."""

    @property
    def key(self) -> str:
        """What tells its kernels from those of others."""
        return f"{self.name} {self.added}".rstrip()

    def facts(self, model: Model) -> str:
        """All that its kernels depend on beside `model.key`: its own key, and what it took from a configuration."""
        return self.key

    @property
    def in_space(self) -> Formulation | None:
        """Of one that takes planar mechanisms only: what its name means for others; None refuses them."""
        return None

    @property
    def solved_as(self) -> Formulation:
        """The formulation whose equations it solves: itself, or another after it eliminated rows of its own."""
        return self

    def require(self, model: Model) -> None:
        """Refuse a model that it cannot express."""
        names = [model.joints[link.joint].name for link in model.tree.links if link.armature is not None]
        if names and not self.has_armature:
            raise ModelError(
                f"model {model.name!r}: joint {names[0]!r} has armature, which the formulation {self.name!r} does not "
                "know; use another, such as 'spatial'"
            )

    def leading_rows(self, model: Model) -> int:
        """How many of its first rows it always solves with; of the others it takes what they leave open."""
        return 0

    # Sizes and kinematics.

    @abstractmethod
    def sizes(self, model: Model) -> tuple[int, int]:
        """How many coordinates and rates."""

    @abstractmethod
    def quaternions(self, model: Model) -> list[tuple[str, int]]:
        """Quaternions among the coordinates: whose each is, and where it begins."""

    def rotations(self, model: Model, q: Matrix) -> list[RotationGraph]:
        """Rotation matrices in its equations: those of its quaternions."""
        found = []
        for owner, at in self.quaternions(model):
            R = rotation_of_quaternion(q[at : at + 4])
            found.append(RotationGraph(owner, R, R, at))
        return found

    @abstractmethod
    def kinematics(self, model: Model, q: Matrix, v: Matrix, about: Matrix | None = None) -> Kinematics:
        """Where the links are at its own coordinates and rates; angles are taken near `about`, of the tree."""

    @abstractmethod
    def kinematics_of_tree(self, model: Model, q: Matrix, v: Matrix) -> Kinematics:
        """The same from coordinates and rates of the tree."""

    # Equations.

    @abstractmethod
    def equations(self, model: Model, kin: Kinematics, loads: Loads) -> Parts:
        """`M`, `f` and the constraint rows."""

    def inertia_force(self, parts: Parts, vdot: Matrix) -> Matrix:
        """`M vdot`, for given `vdot` in the formulation's own rates."""
        return parts.M @ vdot

    def missing_force(self, parts: Parts, vdot: Matrix) -> Matrix:
        """`f - M vdot`, for given `vdot` in the formulation's own rates."""
        return parts.f - self.inertia_force(parts, vdot)

    @abstractmethod
    def work(self, kin: Kinematics, rows: LinkRows) -> Matrix:
        """Work (k, nv) of forces on links along its rates."""

    @abstractmethod
    def bias(self, kin: Kinematics, link: int) -> Matrix:
        """Spatial acceleration (6,) of a link when no rate changes."""

    def coordinate(self, kin: Kinematics, j: int) -> tuple[Matrix, Matrix, Matrix]:
        """A joint's coordinates: values, rows of their rates in its own rates, and the rest of their accelerations."""
        m = kin.measured(j)
        acts = LinkRows((), m.on_links(m.rows.W), m.rows.rate, m.rows.rate, m.rows.q, internal=True)
        return kin.joint(j)[0], self.work(kin, acts), self._biased(kin, acts) - m.rows.rate

    def row_group(self, kin: Kinematics, acts: LinkRows) -> Rows:
        """Rows in its own rates."""
        gamma = acts.gamma - self._biased(kin, acts)
        return Rows(RowTable(acts.labels), self.work(kin, acts), gamma, acts.beta, acts.phi)

    def constraint_rows(self, kin: Kinematics, loads: Loads, joints: Sequence[int], nv: int, *own: Rows) -> Rows:
        """Rows of its own, then those of some joints, of couplings and motions, and of the user's constraints."""
        groups = [*own, *(self.row_group(kin, kin.measured(j).constraint(kin.model, j)) for j in joints)]
        groups += [self._coupled(kin, coupling, loads.t, nv) for coupling in kin.model.couplings]
        groups += [self.row_group(kin, constraint_rows(kin, c, loads.t)) for c in kin.model.constraints]
        return Rows.stacked(groups, nv)

    def lawful_rows(self, kin: Kinematics, loads: Loads, nv: int) -> Rows:
        """Rows of the elements with laws (`model.laws`), in order; `phi` is the gap, zero in rows of friction."""
        groups = []
        for law in kin.model.laws:
            for row, label in zip(law.rows, law.labels(kin.model.joints), strict=True):
                written = self._lawful_row(kin, row, loads.t, nv)
                phi = written.phi if label.level == "position" else 0 * written.phi
                groups.append(Rows(RowTable([label]), written.J, written.gamma, written.beta, phi))
        return Rows.stacked(groups, nv)

    def _lawful_row(self, kin: Kinematics, row: Coupling | Constraint, t: Scalar, nv: int) -> Rows:
        """One row of an element with laws."""
        if isinstance(row, Coupling):
            return self._coupled(kin, row, t, nv, turns=False)
        return self.row_group(kin, constraint_rows(kin, row, t))

    def _coupled(self, kin: Kinematics, coupling: Coupling, t: Scalar, nv: int, turns: bool = True) -> Rows:
        """`sum c q = g(t)`, or a relation of coordinates; with `turns` up to whole turns that are not counted."""
        import casadi as ca

        if coupling.is_relation:
            return self._related(kin, coupling, t, nv)
        g, gdot, gddot = coupling.right_side(t)
        J, gamma, phi = ca.SX(1, nv), gddot, -g
        for (j, k), c in zip(coupling.ends, map(float, coupling.coefficients), strict=True):
            x, row, rest = self.coordinate(kin, j)
            J, gamma, phi = J + c * row[k, :], gamma - c * rest[k], phi + c * x[k]
        phi = whole_turns_off(kin, coupling, phi) if turns else phi
        return Rows(RowTable(coupling.labels(kin.model.joints)), J, gamma, gdot, phi)

    def _related(self, kin: Kinematics, coupling: Coupling, t: Scalar, nv: int) -> Rows:
        """A relation between coordinates: its slopes take the place of coefficients."""
        import casadi as ca

        places = [(self.coordinate(kin, j), k) for j, k in coupling.ends]
        rates = [kin.joint(j)[1][k] for j, k in coupling.ends]
        phi, slopes, gamma, beta = coupling.related(t, [x[k] for (x, _, _), k in places], rates)
        J = ca.SX(1, nv)
        for c, ((_, row, rest), k) in zip(slopes, places, strict=True):
            J, gamma = J + c * row[k, :], gamma - c * rest[k]
        return Rows(RowTable(coupling.labels(kin.model.joints)), J, gamma, beta, whole_turns_off(kin, coupling, phi))

    def _biased(self, kin: Kinematics, acts: LinkRows) -> Matrix:
        total = type(acts.gamma)(*acts.gamma.shape)
        for i, F in acts.forces:
            if i != GROUND:
                total = total + F.T @ self.bias(kin, i)
        return total

    # Solution.

    @abstractmethod
    def solve(self, parts: Parts, kept: Sequence[int]) -> tuple[Matrix, Matrix]:
        """`vdot`, and the multipliers of the rows kept, an independent set."""

    def solve_with_forces(
        self, parts: Parts, kept: Sequence[int], rows: Rows, x: Matrix
    ) -> tuple[Parts, Matrix, Matrix]:
        """The parts with forces x (m,) along `rows`, the rows with laws, as loads, and what `solve` makes of them."""
        loaded = self.equations(parts.model, parts.kin, with_law_forces(parts.kin, parts.loads, x))
        return loaded, *self.solve(loaded, kept)

    @abstractmethod
    def tree_accelerations(self, parts: Parts, vdot: Matrix) -> Matrix:
        """Accelerations (nv of the tree) of the tree's coordinates."""

    @abstractmethod
    def wrenches(self, parts: Parts, vdot: Matrix, lam: Matrix) -> Matrix:
        """Wrench (number of joints, 6) of every joint on its child at M; `lam` has zeros for rows left out."""

    def momentum_equations(self, parts: Parts) -> tuple[Matrix, Matrix]:
        """`A`, `b` with `A (vdot, multipliers) = b`: momentum of all beyond each joint, where it is written so."""
        raise InputError(
            f"formulation {self.name!r} has no momentum equations of this mechanism; 'points' has them in the plane"
        )

    def momentum_labels(self, parts: Parts) -> list[str]:
        """What each of these equations says."""
        self.momentum_equations(parts)
        return []

    # Coordinates.

    @abstractmethod
    def rates(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """`qdot = N(q) v`."""

    @abstractmethod
    def plus(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """Coordinates after moving with constant rates `v` for unit time."""

    def lift(self, model: Model, q: Matrix, v: Matrix) -> tuple[Matrix, Matrix]:
        """Poses (nb, 16) and twists (nb, 6) of all bodies."""
        import casadi as ca

        kin, last = self.kinematics(model, q, v), ca.SX([[0, 0, 0, 1]])
        poses = [ca.vertcat(ca.horzcat(*kin.pose(b)), last) for b in range(model.nb)]
        return ca.vertcat(*(ca.vec(P.T).T for P in poses)), ca.vertcat(*(kin.twist(b).T for b in range(model.nb)))

    @abstractmethod
    def project(self, model: Model, poses: Matrix, twists: Matrix) -> tuple[Matrix, Matrix]:
        """The other way: coordinates and rates from poses (nb, 16) and twists (nb, 6) of all bodies."""

    @abstractmethod
    def letters(self, model: Model) -> Iterator[LetterGroup]:
        """Letters of its coordinates and rates, group by group."""


def whole_turns_off(kin: Kinematics, coupling: Coupling, phi: Matrix) -> Matrix:
    """A coupling's residual without the jumps of angles that are measured up to whole turns."""
    periods = {j: kin.model.joints[j].kind.periods for j, _ in coupling.ends}
    measured = {
        j: abs(float(c)) * (periods[j][k] / (2 * pi))
        for (j, k), c in zip(coupling.ends, coupling.coefficients, strict=True)
        if c and not kin.counts_turns(j) and periods[j][k]
    }
    if not measured:
        return phi
    uneven = [j for j, c in measured.items() if c != c]
    if uneven:
        if uneven[0] not in kin.model.cuts:
            return phi
        raise ModelError(
            f"{coupling.owner}: it depends on the coordinate of joint {kin.model.joints[uneven[0]].name!r}, where a "
            "loop is cut and whole turns are not counted; cut another joint with build(cut=[...])"
        )
    period = common_period([*measured.values()])
    cut = [kin.model.joints[j].name for j in measured if j in kin.model.cuts]
    if cut and not period:
        ratios = ", ".join(f"{c:g}" for c in measured.values())
        raise ModelError(
            f"{coupling.owner}: it couples angles with the factors {ratios}, whose ratio is no simple fraction, and "
            f"the loop is cut at joint {cut[0]!r}, whose turns are not counted; cut another joint with build(cut=[...])"
        )
    return principal(phi, period) if period else phi


def kind_letters(kind: Kind) -> tuple[tuple[Letter, ...], tuple[Letter, ...]]:
    """Letters of the coordinates and rates of a joint kind; a rate without its own is its coordinate's."""
    q = tuple((*letter, unit) for letter, unit in zip(kind.letters, kind.q_units, strict=True))
    if kind.rate_letters:
        return q, tuple((*letter, unit) for letter, unit in zip(kind.rate_letters, kind.v_units, strict=True))
    return q, tuple((f"{x}dot", f"rate of {x}", f"{unit}/s") for x, _, unit in q)


def tree_rates(model: Model, q: Matrix, v: Matrix) -> Matrix:
    """`qdot = N(q) v` of the tree."""
    parts = [
        configuration_rate(link.kind, segment(q, link.q), segment(v, link.v))
        for link in model.tree.links
        if link.kind.nq
    ]
    return stack(*parts) if parts else q


def tangent(model: Model, q: Matrix) -> Matrix:
    """`N` (nq, nv) with `qdot = N(q) v`: the directions in which `q` can move."""
    import casadi as ca

    v = ca.SX.sym("v", model.nv)
    return ca.jacobian(tree_rates(model, q, v), v)


# Reactions, from the multipliers and from the balance of what is beyond a joint.


def all_drives(parts: Parts, lam: Matrix) -> dict[int, Matrix]:
    """Forces along the joints' coordinates: drives, and what holds couplings and prescribed motions."""
    drives = dict(parts.loads.tau)
    for coupling in parts.model.couplings:
        own = segment(lam, parts.rows.of(coupling.owner))
        slopes = coupling.slopes(parts.loads.t, [parts.kin.joint(j)[0][k] for j, k in coupling.ends])
        for (j, k), c in zip(coupling.ends, slopes, strict=True):
            drives[j] = with_drive(drives.get(j), parts.model.joints[j].kind.nv, k, -c * own)
    return drives


def with_constraint_forces(parts: Parts, lam: Matrix) -> Loads:
    """The loads, with the forces of the user's constraints on the bodies."""
    loads = parts.loads
    for constraint in parts.model.constraints:
        own = segment(lam, parts.rows.of(constraint.owner))
        forces = constraint_forces(parts.kin, constraint, loads.t)
        loads = with_wrenches(loads, {b: -(F @ own) for b, F in forces.items()})
    return loads


def joint_wrench(m: MeasuredJoint, lam: Matrix, tau: Matrix | None) -> Matrix:
    """Wrench that a joint exerts on its child at M: its constraint, and its drive."""
    constraint = -(m.rows.T @ lam)
    return constraint if tau is None else constraint + m.rows.W @ tau


def between_bodies(model: Model, m: MeasuredJoint, j: int, wrench: Matrix, wrenches: Matrix) -> Matrix:
    """Add a wrench on a joint's child at M, and backwards on its parent, to those on the bodies (nb, 6)."""
    wrenches = type(wrenches)(wrenches)
    joint = model.joints[j]
    for body, X, sign in ((joint.child, m.X_c, 1), (joint.parent, m.X_p, -1)):
        if body != GROUND:
            to_link = fixed_transform(model.tree.body_pose[body]).inverse
            wrenches[body, :] = wrenches[body, :] + sign * (to_link.T @ (X.T @ wrench)).T
    return wrenches


def completed(parts: Parts, known: dict[int, Matrix], lam: Matrix, a: Matrix, balance: Recursion) -> Matrix:
    """Wrenches (number of joints, 6): those known, and for the others the `balance` of all beyond them.

    `a` (nv,) are the accelerations of the tree; `balance` is a recursion `JOINT_WRENCHES`.
    """
    import casadi as ca

    model, (q, v) = parts.model, parts.kin.tree_state
    rest = [j for j in range(len(model.joints)) if j not in known]
    if rest:
        kin = parts.kin if parts.kin.model is model else kinematics_of_tree(model, q, v)
        wrenches = with_constraint_forces(parts, lam).wrenches
        for j in model.cuts:
            known.setdefault(j, zeros(6, None, lam))  # a second weld inside a link: none is one possible answer
            wrenches = between_bodies(model, kin.measured(j), j, known[j], wrenches)
        apart = model.unmerged
        rows = unroll(balance, apart, {"q": q, "v": v, "a": a, "wrenches": wrenches})[0]
        for i, link in enumerate(apart.tree.links):
            if link.joint in rest:
                known[link.joint] = rows[i, :].T
    return ca.vertcat(*(known[j].T for j in range(len(model.joints))))
