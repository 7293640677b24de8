"""The formulation `points`: planar mechanisms as particles, accelerations of points, no rotational coordinate.

Notation of AT: two points a link, its line `d`, gravity and everything else in the plane's axes. The accelerations
come from momentum equations, gathered from tip to base (`points.recursion`); loops are cut, and the forces of the cut
joints are the multipliers of their rows (`points.rows`). A joint's reaction is the rate of momentum of everything
beyond it less what acts there; its part out of the plane is not known here and is zero (`model.plane.in_plane`).

Coordinates: one point, Q, of a link on a pin, two, P and Q, of a link on a slide or floating, x then y, in the plane's
axes. Nothing is an angle; `qdot = v`, and the mass matrix is constant.

Equations: AT(2), AT(3), AT(9), AT(10), AT(11).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cardan.algebra.free_number import nominal, nominal_of, scalar
from cardan.algebra.matrix import Matrix, Scalar, constant, dot, mirrored, stack, vector
from cardan.algebra.plane import across, carried, moment
from cardan.algebra.rotation import cross
from cardan.formulation.elements import Loads, constraint_rows, with_drive
from cardan.formulation.formulation import (
    Formulation,
    LetterGroup,
    Parts,
    all_drives,
    whole_turns_off,
    with_constraint_forces,
)
from cardan.formulation.kinematics import MOTION, Kinematics
from cardan.formulation.measured_joint import fixed_transform
from cardan.formulation.points.momentum import Weight, momentum_equations, momentum_labels, weights
from cardan.formulation.points.motion import PlanarMotion, from_points, from_tree, in_space
from cardan.formulation.points.recursion import (
    Answer,
    Beyond,
    Lent,
    PointLoads,
    Pushed,
    gather,
    inwards,
    joint_rates,
    outwards,
    still,
)
from cardan.formulation.points.rows import (
    Act,
    Closing,
    Coordinates,
    PlanarRow,
    Sized,
    along,
    as_given,
    as_loads,
    cut_drive,
    cut_rows,
    freedom,
    link_rows,
    tree_drive,
    turned,
)
from cardan.formulation.points.space import POINTS_IN_SPACE
from cardan.formulation.recursion import run
from cardan.formulation.rows import LinkRows, Rows
from cardan.formulation.solve import semidefinite
from cardan.model.constraint import Constraint
from cardan.model.force import Coupling
from cardan.model.model import Model
from cardan.model.plane import PlanarModel, placed, planar_model, plane_digest
from cardan.model.row import RowTable
from cardan.model.tree import GROUND, weightless_links

# Inertia lent to links that have none (`formulation.light`), of the smallest link's: less costs digits in a recursion,
# more costs corrections.
PART = 1e-3
LEAST = 1e-12  # of the whole mechanism's inertia: less is none
CORRECTIONS = 4


@dataclass(frozen=True, kw_only=True)
class PlanarKinematics(Kinematics):
    """With the mechanism in its plane, and its points."""

    planar: PlanarModel
    motion: PlanarMotion


@dataclass(frozen=True)
class _Written:
    """What `solve` and `wrenches` need beside the contract: all rows in the plane, how many are the links', loads."""

    rows: list[PlanarRow]
    first: int
    acting: PointLoads
    answers: list[tuple[Matrix, Answer]]
    """Accelerations that the recursion gave, and its whole answer."""


class Points(Formulation):
    """Particles of planar mechanisms."""

    name = "points"
    about = "particles: accelerations of points, no angles"
    is_planar = True
    has_armature = False

    @property
    def in_space(self) -> Formulation:
        """Particles on a tetrahedron."""
        return POINTS_IN_SPACE

    def facts(self, model: Model) -> str:
        """A mechanism that only its loops keep in the plane is described from a position: that of its start."""
        return f"{self.key} {plane_digest(model.unbound)}".rstrip()

    def leading_rows(self, model: Model) -> int:
        """Those of the links, which the recursion solves."""
        return planar_model(model).own_rows

    def sizes(self, model: Model) -> tuple[int, int]:
        """As many rates as coordinates."""
        return (Coordinates(planar_model(model)).n,) * 2

    def quaternions(self, model: Model) -> list[tuple[str, int]]:
        """None."""
        return []

    def kinematics(self, model: Model, q: Matrix, v: Matrix, about: Matrix | None = None) -> Kinematics:
        """From the points and their rates."""
        self.require(model)
        planar = planar_model(model)
        places = Coordinates(planar)
        motion = from_points(planar, places.ends(q), places.ends(v, moving=True))
        return PlanarKinematics(model, in_space(planar, motion), about=about, planar=planar, motion=motion)

    def kinematics_of_tree(self, model: Model, q: Matrix, v: Matrix) -> Kinematics:
        """The points from coordinates and rates of the tree."""
        self.require(model)
        planar = planar_model(model)
        nodes = run(MOTION, model, {"q": q, "v": v})
        return PlanarKinematics(model, nodes, q, v, planar=planar, motion=from_tree(planar, q, v))

    def equations(self, model: Model, kin: Kinematics, loads: Loads) -> Parts:
        """A constant mass matrix; rows of the links' own lengths and slides, of cut joints, couplings, constraints."""
        import casadi as ca

        assert isinstance(kin, PlanarKinematics)
        planar, motion = kin.planar, kin.motion
        places = Coordinates(planar)
        rows = [row for i in range(len(planar.links)) for row in link_rows(model, planar, motion, i)]
        first = len(rows)
        for cut in planar.cuts:
            rows += cut_rows(model, planar, motion, cut)
        rows += [self._coupled_in_plane(kin, coupling, loads.t) for coupling in model.couplings]
        rows += [self._constrained_in_plane(kin, constraint_rows(kin, c, loads.t)) for c in model.constraints]
        acting = self._acting(kin, loads)
        J = ca.vertcat(ca.SX(0, places.n), *(places.work(motion, row.acts) for row in rows))
        gamma, beta, phi = (
            ca.vertcat(ca.SX(0, 1), *(getattr(row, name) for row in rows)) for name in ("gamma", "beta", "phi")
        )
        table = Rows(RowTable(row.label for row in rows), J, gamma, beta, phi)
        rates = places.points([(b.Pd, b.Pd + b.dd) for b in motion.links])
        lent = places.inertia(lent_inertia(model, planar))
        f = _contract_force(planar, motion, places, acting)
        written = _Written(rows, first, acting, [])
        return Parts(model, kin, loads, rates, constant(places.M), f, table, lent if lent.any() else None, written)

    def _lawful_row(self, kin: Kinematics, row: Coupling | Constraint, t: Scalar, nv: int) -> Rows:
        """Written in the plane."""
        assert isinstance(kin, PlanarKinematics)
        if isinstance(row, Coupling):
            found = self._coupled_in_plane(kin, row, t, turns=False)
        else:
            found = self._constrained_in_plane(kin, constraint_rows(kin, row, t))
        J = Coordinates(kin.planar).work(kin.motion, found.acts)
        gamma, beta, phi = (type(J)(x) for x in (found.gamma, found.beta, found.phi))
        return Rows(RowTable([found.label]), J, gamma, beta, phi)

    def _coupled_in_plane(self, kin: PlanarKinematics, coupling: Coupling, t: Scalar, turns: bool = True) -> PlanarRow:
        """`sum c q = g(t)`, or a relation of coordinates; with `turns` up to whole turns that are not counted."""
        places = [[part[k] for part in kin.joint(j)] for j, k in coupling.ends]
        slopes = coupling.slopes(t, [x for x, _ in places])
        if coupling.is_relation:
            phi, _, gddot, gdot = coupling.related(t, [x for x, _ in places], [rate for _, rate in places])
        else:
            g, gdot, gddot = coupling.right_side(t)
            phi = -g
            for c, (x, _) in zip(slopes, places, strict=True):
                phi = phi + c * x
        acts: list[Act] = []
        for (j, k), c in zip(coupling.ends, slopes, strict=True):
            unit = with_drive(None, kin.model.joints[j].kind.nv, k, type(phi)(1))
            for found, size in self._drive(kin, j, unit):
                if not type(phi)(size).is_zero():  # along the other coordinates
                    acts += [(i, c * size * force, at, arm, c * size * couple) for i, force, at, arm, couple in found]
        phi = whole_turns_off(kin, coupling, phi) if turns else phi
        return PlanarRow(coupling.labels(kin.model.joints)[0], tuple(acts), gddot, phi, gdot)

    def _constrained_in_plane(self, kin: PlanarKinematics, rows: LinkRows) -> PlanarRow:
        """A user's constraint, from its forces on links; the ground takes the opposite force."""
        planar, acts, gamma = kin.planar, [], rows.gamma
        zero = type(gamma)(2, 1)
        for i, F in rows.forces:
            line, d = planar.line(i), kin.motion.carrier(i).d
            x, y, K = (constant(axis) for axis in line.axes)
            force = carried(dot(x, F[3:]) / line.length, dot(y, F[3:]) / line.length, d)
            couple = dot(K, F[:3])
            acts += [(i, force, (0, 0), zero, couple), (GROUND, -force, (0, 0), zero, -couple)]
            twist = kin.nodes.links[i].v
            gamma = gamma + dot(F[3:], cross(twist[:3], twist[3:]))  # of the point at the origin, not of the twist
        return PlanarRow(rows.labels[0], tuple(acts), gamma, rows.phi, rows.beta)

    def _drive(self, kin: PlanarKinematics, j: int, tau: Matrix) -> list[Sized]:
        """Forces of a joint's drive, of the tree or cut."""
        planar = kin.planar
        for i, link in enumerate(planar.links):
            if link.joint == j:
                return tree_drive(planar, kin.motion, i, kin.joint(j)[0], tau)
        return cut_drive(kin, planar, kin.motion, next(cut for cut in planar.cuts if cut.joint == j), tau)

    def _acting(self, kin: PlanarKinematics, loads: Loads) -> PointLoads:
        """What acts on the links: wrenches on bodies, drives of tree joints, and those of cut joints on both sides."""
        acting, model, planar = PointLoads(), kin.model, kin.planar
        if loads.wrenches.nnz():
            for b, i in enumerate(model.tree.body_link):
                if i != GROUND:
                    wrench = fixed_transform(model.tree.body_pose[b]).T @ loads.wrenches[b, :].T
                    line, d = planar.line(i), kin.motion.carrier(i).d
                    x, y, K = (constant(axis) for axis in line.axes)
                    force = carried(dot(x, wrench[3:]) / line.length, dot(y, wrench[3:]) / line.length, d)
                    acting.add(i, force, 0 * d, dot(K, wrench[:3]))
        at = {link.joint: i for i, link in enumerate(planar.links) if link.kind is None}
        for j, tau in loads.tau.items():
            if j in at:
                acting.drives[at[j]] = tau
            else:
                for acts, size in self._drive(kin, j, tau):
                    as_loads(acts, size, acting)
        return acting

    def work(self, kin: Kinematics, rows: LinkRows) -> Matrix:
        """Along the points."""
        assert isinstance(kin, PlanarKinematics)
        return Coordinates(kin.planar).work(kin.motion, self._constrained_in_plane(kin, rows).acts)

    def bias(self, kin: Kinematics, link: int) -> Matrix:
        """Not needed: rows are written in the plane."""
        raise NotImplementedError

    def solve(self, parts: Parts, kept: Sequence[int]) -> tuple[Matrix, Matrix]:
        """By the recursion; multipliers of the links' own rows from what is left on the points."""
        import casadi as ca

        kin, own = parts.kin, parts.own
        assert isinstance(kin, PlanarKinematics) and isinstance(own, _Written)
        planar, motion, places, first = kin.planar, kin.motion, Coordinates(kin.planar), own.first
        inner = [row - first for row in kept if row >= first]
        lent = lent_inertia(parts.model, planar)
        answer, held = solve_points(planar, motion, own.acting, own.rows[first:], inner, lent)
        vdot = places.points(_accelerations(planar, motion, answer))
        own.answers.append((vdot, answer))
        J = parts.rows.J
        lam = ca.SX(len(own.rows), 1)
        lam[first:] = held
        left = parts.f - parts.M @ vdot - J[first:, :].T @ held
        lam[:first] = _internal(planar, motion, places, own.rows[:first], left, J)
        return vdot, lam[list(kept), 0]

    def momentum_equations(self, parts: Parts, own: Sequence[Weight] | None = None) -> tuple[Matrix, Matrix]:
        """`A`, `b` of `points.momentum`; `own` has the links' mass, first moment and spin where they are letters."""
        kin, written = parts.kin, parts.own
        assert isinstance(kin, PlanarKinematics) and isinstance(written, _Written)
        loads = (kin.motion, written.acting, written.rows, written.first, parts.rows.J)
        return momentum_equations(kin.planar, *loads, weights(kin.planar) if own is None else own)

    def momentum_labels(self, parts: Parts) -> list[str]:
        """What each of these equations says."""
        planar, written = planar_model(parts.model), parts.own
        return momentum_labels(planar, parts.model.joints, written.rows, written.first)

    def _answer(self, parts: Parts, vdot: Matrix) -> Answer:
        """The recursion's answer where `vdot` is its own, else read off the points."""
        kin = parts.kin
        assert isinstance(kin, PlanarKinematics)
        for known, answer in parts.own.answers:
            if known is vdot:
                found: Answer = answer
                return found
        return _from_accelerations(kin.planar, kin.motion, Coordinates(kin.planar), vdot)

    def tree_accelerations(self, parts: Parts, vdot: Matrix) -> Matrix:
        """Second rates of the joints' coordinates."""
        return stack(*self._answer(parts, vdot).qdd) if parts.model.tree.links else vdot

    def wrenches(self, parts: Parts, vdot: Matrix, lam: Matrix) -> Matrix:
        """From momentum; of cut joints by their multipliers."""
        kin, own = parts.kin, parts.own
        assert isinstance(kin, PlanarKinematics) and isinstance(own, _Written)
        held: dict[int, list[tuple[PlanarRow, Scalar]]] = {}
        for j in (*(link.joint for link in kin.planar.links), *parts.model.cuts):
            at = parts.rows.of(f"joint {parts.model.joints[j].name!r}")
            held[j] = [(own.rows[k], lam[k]) for k in range(at.start, at.stop)]
        loads = with_constraint_forces(parts, lam)
        drives = all_drives(parts, lam)
        return joint_wrenches(kin, kin.planar, kin.motion, self._answer(parts, vdot), loads.wrenches, drives, held)

    def rates(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """`qdot = v`."""
        return v

    def plus(self, model: Model, q: Matrix, v: Matrix) -> Matrix:
        """Straight on."""
        return q + v

    def project(self, model: Model, poses: Matrix, twists: Matrix) -> tuple[Matrix, Matrix]:
        """The points of every link on its first body."""
        planar = planar_model(model)
        places, plane = Coordinates(planar), constant(planar.ground.axes[:2])
        ends, rates = [], []
        for i, link in enumerate(planar.links):
            b = model.tree.body_link.index(i)
            row, twist, place = poses[b, :], twists[b, :].T, model.tree.body_pose[b].inverse
            R = stack(*(row[4 * k : 4 * k + 3] for k in range(3)))
            r = vector(*(row[4 * k + 3] for k in range(3)))
            at, rate = [], []
            for c in (0 * link.line.axes[0], link.line.length * link.line.axes[0]):
                own = constant(place.position + place.rotation @ c)  # the point on the body
                at.append(plane @ (r + R @ own))
                rate.append(plane @ (R @ (twist[3:] + cross(twist[:3], own))))
            ends.append((at[0], at[1]))
            rates.append((rate[0], rate[1]))
        return places.points(ends), places.points(rates)

    def letters(self, model: Model) -> Iterator[LetterGroup]:
        """Coordinates of the points."""
        planar = planar_model(model)
        for bar, own in zip(planar.links, Coordinates(planar).own, strict=True):
            ends = ("P", "Q")[2 - (own.stop - own.start) // 2 :]
            letters = [(f"{x}_{end}", f"{x} of point {end}", "m") for end in ends for x in ("x", "y")]
            rates = [(f"{x}dot_{end}", f"rate of {x} of point {end}", "m/s") for end in ends for x in ("x", "y")]
            yield bar.name, tuple(letters), tuple(rates), ""


def lent_inertia(model: Model, planar: PlanarModel) -> Lent:
    """Mass at P and inertia about it, by link, lent to those whose joint can move without moving any."""
    weightless = weightless_links(model.tree)
    if not weightless:
        return {}
    mass, inertia, length, at = (
        [nominal_of(x) if np.ndim(x) == 0 else nominal(x) for x in column]
        for column in zip(*((k.mass, k.inertia, k.line.length, k.at) for k in planar.links), strict=True)
    )
    heavy = [i for i, m in enumerate(mass) if m > 0]
    size = max(max(L, float(np.linalg.norm(place))) for L, place in zip(length, at, strict=True))
    least = min((mass[i] for i in heavy), default=max(inertia) / size**2)
    turning = [inertia[i] for i in heavy if inertia[i] > LEAST * mass[i] * size**2]
    about = min(turning) if turning else least * size**2
    return {i: (float(PART * least) if planar.links[i].role != "pin" else 0.0, float(PART * about)) for i in weightless}


def solve_points(
    planar: PlanarModel, motion: PlanarMotion, acting: PointLoads, rows: list[PlanarRow], kept: list[int], lent: Lent
) -> tuple[Answer, Matrix]:
    """Accelerations, and the forces of the cut joints as multipliers of their rows (zero for rows not kept)."""
    import casadi as ca

    beyond = gather(planar, motion, lent)
    rest = still(planar, motion, beyond)
    closing, units, A = _closing(planar, motion, beyond, [rows[k] for k in kept])
    multipliers = semidefinite(mirrored(A)) if kept else None
    at_rest = Answer(rest, {i: type(motion.ground.P)(1, 1) for i in rest}, [])
    apart = [along(motion, at_rest, row.acts) - row.gamma for row in closing.rows]

    def respond(pushed: Pushed) -> tuple[Answer, Matrix]:
        """Accelerations under loads, with the cut joints' forces that keep the loops closed."""
        if multipliers is None:
            return outwards(planar, motion, beyond, pushed, rest), ca.SX(0, 1)
        lam = multipliers(ca.vertcat(*(unit.along(pushed) + b for unit, b in zip(units, apart, strict=True))))
        pushed = pushed.plus(units, [-lam[k] for k in range(len(kept))])
        return outwards(planar, motion, beyond, pushed, rest), lam

    pushed = inwards(planar, motion, beyond, acting, rest)
    answer, held = respond(pushed)
    for _ in range(CORRECTIONS if lent else 0):
        paid_back = PointLoads()  # what the lent inertia needed, AT(10),(11)
        for i, (mass, inertia) in lent.items():
            paid_back.forces[i], paid_back.couples[i] = mass * answer.a[i], inertia * answer.y[i]
        answer, held = respond(pushed.plus([inwards(planar, motion, beyond, paid_back)], [1]))
    lam = ca.SX(len(rows), 1)
    for k, value in zip(kept, closing.back([held[k] for k in range(len(kept))]), strict=True):
        lam[k] = value
    return answer, lam


def _closing(
    planar: PlanarModel, motion: PlanarMotion, beyond: list[Beyond], rows: list[PlanarRow]
) -> tuple[Closing, list[Pushed], Matrix]:
    """Unit forces of the cut joints, in the directions that leave fewer of them tied together, and their responses."""
    import casadi as ca

    found = []
    for way in (as_given(rows), turned(planar, motion, rows)):
        units = [inwards(planar, motion, beyond, loads) for loads in way.loads]
        A = ca.SX(len(rows), len(rows))
        for k, unit in enumerate(units):
            for m in range(k, len(rows)):
                A[k, m] = unit.along(units[m])
        found.append((way, units, ca.sparsify(A)))
    return min(found, key=lambda one: one[2].nnz())


def _contract_force(planar: PlanarModel, motion: PlanarMotion, places: Coordinates, acting: PointLoads) -> Matrix:
    """`f` of the contract: the work of all loads along the points."""
    import casadi as ca

    row, zero = ca.SX(1, places.n), ca.SX(2, 1)
    weight = constant(planar.gravity)
    for i, link in enumerate(planar.links):
        force, couple = acting.forces.get(i, zero), acting.couples.get(i, ca.SX(1, 1))
        row = row + places.work(motion, [(i, force, (0, 0), zero, couple)])
        if link.mass:
            at = (link.first[0] / link.mass, link.first[1] / link.mass)
            row = row + places.work(motion, [(i, link.mass * weight, at, zero, 0)])
        for k in range(len(link.turn)) if i in acting.drives else ():
            acts = freedom(planar, motion, link.joint, k)
            tau = acting.drives[i][k]
            row = row + tau * places.work(motion, acts)
    return row.T


def _accelerations(planar: PlanarModel, motion: PlanarMotion, answer: Answer) -> list[tuple[Matrix, Matrix]]:
    """Accelerations of P and Q of every link."""
    ends, g = [], constant(planar.gravity)
    for i, b in enumerate(motion.links):
        P = answer.a[i] + g
        ends.append((P, P - b.w2 * b.d + answer.y[i] * across(b.d)))
    return ends


def _from_accelerations(planar: PlanarModel, motion: PlanarMotion, places: Coordinates, vdot: Matrix) -> Answer:
    """The other way: what the recursion would have said of given accelerations of the points."""
    like, g = motion.ground.P, constant(planar.gravity)
    a: dict[int, Matrix] = {GROUND: -g}
    y: dict[int, Matrix] = {GROUND: type(like)(1, 1)}
    qdd = []
    for i, (P, Q) in enumerate(places.ends(vdot, moving=True)):
        link, b = planar.links[i], motion.links[i]
        a[i], y[i] = P - g, dot(across(b.d), Q - P) / link.line.length**2
        slides = link.role == "slide"
        rate = along(motion, Answer(a, y, []), freedom(planar, motion, link.joint, 0)) if slides else type(like)(1, 1)
        qdd.append(joint_rates(planar, motion, i, a, y, rate))
    return Answer(a, y, qdd)


def _internal(
    planar: PlanarModel, motion: PlanarMotion, places: Coordinates, rows: list[PlanarRow], left: Matrix, J: Matrix
) -> Matrix:
    """Multipliers of the links' own rows, tip to base, from the force that is left on the points."""
    import casadi as ca

    lam = ca.SX(len(rows), 1)
    starts = {row.stretch: k for k, row in enumerate(rows) if row.stretch is not None}
    for i in reversed(sorted(starts)):
        link, b, k = planar.links[i], motion.links[i], starts[i]
        own, square = left[places.own[i]], link.line.length**2
        on_Q = own[-2:]
        lam[k] = dot(b.d, on_Q) / square
        mine = [k]
        if link.role == "slide":
            lam[k + 2] = dot(across(b.d), on_Q)
            lam[k + 1] = dot(across(b.u[0]), own[:2] + on_Q)
            mine += [k + 1, k + 2]
        left = left - J[mine, :].T @ lam[mine]
    return lam


POINTS = Points()


Pair = tuple[Matrix, Scalar]  # force, and moment about the plane's origin


def joint_wrenches(
    kin: Kinematics, planar: PlanarModel, motion: PlanarMotion, answer: Answer, wrenches: Matrix,
    drives: dict[int, Matrix], held: dict[int, list[tuple[PlanarRow, Scalar]]],
) -> Matrix:  # fmt: skip
    """Wrench (number of joints, 6) of every joint; `held` has the rows of cut joints with their multipliers."""
    import casadi as ca

    model = kin.model
    needed = [_momentum_rate(model, planar, motion, answer, b, wrenches[b, :].T) for b in range(model.nb)]
    known: dict[int, Pair] = {}
    for cut in planar.cuts:
        joint = model.joints[cut.joint]
        driving = cut_drive(kin, planar, motion, cut, drives[cut.joint]) if cut.joint in drives else []
        pair = _cut_force(motion, cut.child, driving, held[cut.joint])
        known[cut.joint] = pair
        for body, sign in ((joint.child, 1), (joint.parent, -1)):
            if body != GROUND:
                needed[body] = needed[body][0] - sign * pair[0], needed[body][1] - sign * pair[1]
    tree = model.unmerged.tree
    body_of = {i: b for b, i in enumerate(tree.body_link)}
    total = {i: needed[body_of[i]] for i in range(len(tree.links))}
    for i in reversed(range(len(tree.links))):
        link, (force, turn) = tree.links[i], total[i]
        backwards = model.joints[link.joint].child != body_of[i]
        known[link.joint] = (-force, -turn) if backwards else (force, turn)
        if link.parent != GROUND:
            below = total[link.parent]
            total[link.parent] = below[0] + force, below[1] + turn
    return ca.vertcat(*(_in_joint_axes(model, planar, motion, j, *known[j]).T for j in range(len(model.joints))))


def _momentum_rate(
    model: Model, planar: PlanarModel, motion: PlanarMotion, answer: Answer, b: int, wrench: Matrix
) -> Pair:
    """Rate of a body's momentum, about the plane's origin, less what acts on it."""
    body, i, pose = model.bodies[b], model.tree.body_link[b], model.tree.body_pose[b]
    line, at = planar.line(i), motion.carrier(i)
    place = line.place(pose.position + pose.rotation @ body.com)
    arm = carried(*place, at.d)
    a = answer.a[i] - at.w2 * arm + answer.y[i] * across(arm)  # AT(9)
    x, y, K = line.axes @ pose.rotation
    inertia = scalar(K @ body.inertia @ K)
    force = body.mass * a  # AT(2)
    turn = moment(at.P + arm, force) + inertia * answer.y[i]  # AT(3)
    if wrench.nnz():
        f = carried((constant(x).T @ wrench[3:]) / line.length, (constant(y).T @ wrench[3:]) / line.length, at.d)
        origin = at.P + carried(*line.place(pose.position), at.d)
        force, turn = force - f, turn - constant(K).T @ wrench[:3] - moment(origin, f)
    return force, turn


def _cut_force(motion: PlanarMotion, child: int, driving: list[Sized], rows: list[tuple[PlanarRow, Scalar]]) -> Pair:
    """What a cut joint exerts on its child: minus its multipliers, and its drive."""
    acting: list[Sized] = [(row.acts, -lam) for row, lam in rows] + driving
    like, b = motion.ground.P, motion.carrier(child)
    force, turn = type(like)(2, 1), type(like)(1, 1)
    for acts, size in acting:
        _, f, _, arm, couple = acts[0]  # the child comes first
        force = force + size * f
        turn = turn + size * (couple + moment(b.P + arm, f))
    return force, turn


def _in_joint_axes(
    model: Model, planar: PlanarModel, motion: PlanarMotion, j: int, force: Matrix, turn: Scalar
) -> Matrix:
    """A force and its moment about the plane's origin as a wrench (6,) at the frame on the joint's child."""
    import casadi as ca

    joint = model.joints[j]
    i, M = placed(model, joint.child, joint.child_at)
    line, b = planar.line(i), motion.carrier(i)
    couple = turn - moment(b.P + carried(*line.place(M.position), b.d), force)
    axes = np.asarray(line.axes @ M.rotation)  # rows x, y, K in the joint's axes
    along, left = (b.d.T @ force) / line.length, (across(b.d).T @ force) / line.length
    return ca.vertcat(constant(axes[2]) * couple, constant(axes[0]) * along + constant(axes[1]) * left)
