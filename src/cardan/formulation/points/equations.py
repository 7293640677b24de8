"""Planar mechanisms as particles: accelerations of points, no rotational coordinate.

Notation of AT: two points a link, its line `d`, gravity and everything else in the plane's axes. The accelerations
come from momentum equations, gathered from tip to base (`formulation.points_recursion`); loops are cut, and the
forces of the cut joints are the multipliers of their rows (`formulation.points_rows`). A joint's reaction is the rate
of momentum of everything beyond it (`formulation.points_wrenches`); its part out of the plane is not known here and is
zero (`model.planar.in_plane`).

Equations: AT(2).
"""

from __future__ import annotations

from typing import Any

from cardan.algebra.matrix import Matrix, Scalar, constant, dot, mirrored, segment, stack
from cardan.algebra.plane import across, carried
from cardan.formulation.constrained import Loads, Parts, all_drives
from cardan.formulation.loops import measure
from cardan.formulation.points.closing import Closing, as_given, turned
from cardan.formulation.points.drives import Sized, cut_drive, tree_drive
from cardan.formulation.points.light import CORRECTIONS, lent_inertia, paid_back
from cardan.formulation.points.motion import Motion, from_tree, in_space
from cardan.formulation.points.recursion import (
    Answer,
    Beyond,
    PointLoads,
    Pushed,
    gather,
    inwards,
    joint_rates,
    outwards,
    still,
)
from cardan.formulation.points.rows import Act, Coordinates, Row, along, as_loads, cut_rows, freedom, link_rows
from cardan.formulation.points.wrenches import joint_wrenches
from cardan.formulation.solve import semidefinite
from cardan.model.model import Model
from cardan.model.plane import PlanarModel, planar_model
from cardan.model.tree import GROUND


def parts_of_tree(model: Model, q: Matrix, v: Matrix, loads: Loads) -> Parts:
    """The equations at a state of the tree."""
    planar = planar_model(model)
    own = {link.joint: segment(q, link.q) for link in planar.links}
    return write_parts(model, planar, from_tree(planar, q, v), loads, own)


def write_parts(model: Model, planar: PlanarModel, motion: Motion, loads: Loads, own: dict[int, Matrix]) -> Parts:
    """The equations from the points; `own` has the tree joints' coordinates."""
    import casadi as ca

    places = Coordinates(planar)
    rows, joints = _tree_rows(planar, motion)
    first = len(rows)
    for cut in planar.cuts:
        found = cut_rows(planar, motion, cut)
        joints.append((cut.joint, slice(len(rows), len(rows) + len(found))))
        rows += found
    rows += _coupling_rows(model, planar, motion, loads, own)
    acting = _loads(model, planar, motion, loads, own)
    J = ca.vertcat(ca.SX(0, places.n), *(places.work(motion, row.acts) for row in rows))
    gamma, phi = (ca.vertcat(ca.SX(0, 1), *(getattr(r, name) for r in rows)) for name in ("gamma", "phi"))
    M, f = constant(places.M), _contract_force(planar, motion, places, acting)
    solved: dict[str, tuple[Matrix, Answer]] = {}

    def solve(kept: list[int]) -> tuple[Matrix, Matrix]:
        answer, held = solve_points(planar, motion, acting, rows[first:], [r - first for r in kept if r >= first])
        vdot = places.points(_accelerations(planar, motion, answer))
        solved["last"] = vdot, answer
        lam = ca.SX(len(rows), 1)
        lam[first:] = held
        lam[:first] = _internal(planar, motion, places, rows[:first], f - M @ vdot - J[first:, :].T @ held, J)
        return vdot, lam[kept]

    def answer_of(vdot: Matrix) -> Answer:
        """The recursion's answer where `vdot` is its own, else read off the points."""
        if "last" in solved and solved["last"][0] is vdot:
            return solved["last"][1]
        return _from_accelerations(planar, motion, places, vdot)

    def tree(vdot: Matrix) -> Matrix:
        return stack(*answer_of(vdot).qdd) if planar.links else vdot

    def wrenches(vdot: Matrix, lam: Matrix) -> Matrix:
        held: dict[int, list[tuple[Row, Scalar]]] = {
            j: [(row, lam[k]) for row, k in zip(rows[at], range(at.start, at.stop), strict=True)] for j, at in joints
        }
        return joint_wrenches(model, planar, motion, answer_of(vdot), loads.wrenches, all_drives(loads, lam), held)

    rates = places.points([(b.Pd, b.Pd + b.dd) for b in motion.links])
    return Parts(rates, M, f, J, gamma, phi, tuple(joints), solve, tree, wrenches)


def solve_points(
    planar: PlanarModel, motion: Motion, acting: PointLoads, rows: list[Row], kept: list[int]
) -> tuple[Answer, Matrix]:
    """Accelerations, and the forces of the cut joints as multipliers of their rows (zero for rows not kept)."""
    import casadi as ca

    lent = lent_inertia(planar)
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
        answer, held = respond(pushed.plus([inwards(planar, motion, beyond, paid_back(lent, answer))], [1]))
    lam = ca.SX(len(rows), 1)
    for k, value in zip(kept, closing.back([held[k] for k in range(len(kept))]), strict=True):
        lam[k] = value
    return answer, lam


def _closing(
    planar: PlanarModel, motion: Motion, beyond: list[Beyond], rows: list[Row]
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


def _tree_rows(planar: PlanarModel, motion: Motion) -> tuple[list[Row], list[tuple[int, slice]]]:
    """Rows of the links, and where those of tree joints are."""
    rows: list[Row] = []
    joints = []
    for i, link in enumerate(planar.links):
        found = link_rows(planar, motion, i)
        if len(found) > 1:
            joints.append((link.joint, slice(len(rows) + 1, len(rows) + len(found))))
        rows += found
    return rows, joints


def _coupling_rows(
    model: Model, planar: PlanarModel, motion: Motion, loads: Loads, own: dict[int, Matrix]
) -> list[Row]:
    """Sums of joint coordinates that follow time."""
    rows = []
    for coefficients, g, _, gdd in loads.couplings:
        acts: list[Act] = []
        phi = -g
        for j, c in coefficients.items():
            (found, size), *_ = _drive(model, planar, motion, own, j, type(g)(1))
            acts += [(i, c * size * f, where, arm, c * size * couple) for i, f, where, arm, couple in found]
            x = own[j] if j in own else measure(model, in_space(planar, motion), j).rows.q
            phi = phi + c * x
        rows.append(Row(tuple(acts), gdd, phi))
    return rows


def _drive(
    model: Model, planar: PlanarModel, motion: Motion, own: dict[int, Matrix], j: int, tau: Matrix
) -> list[Sized]:
    """Forces of a joint's drive, of the tree or cut."""
    for i, link in enumerate(planar.links):
        if link.joint == j:
            return tree_drive(planar, motion, i, own[j], tau)
    return cut_drive(model, planar, motion, next(cut for cut in planar.cuts if cut.joint == j), tau)


def _loads(model: Model, planar: PlanarModel, motion: Motion, loads: Loads, own: dict[int, Matrix]) -> PointLoads:
    """What acts on the links: wrenches on bodies, drives of tree joints, and those of cut joints on both sides."""
    acting = PointLoads()
    if loads.wrenches.nnz():
        for b, i in enumerate(model.tree.body_link):
            if i != GROUND:
                force, couple, arm = body_load(model, planar, motion, b, loads.wrenches[b, :].T)
                acting.add(i, force, arm, couple)
    at = {link.joint: i for i, link in enumerate(planar.links) if link.kind is None}
    for j, tau in loads.tau.items():
        if j in at:
            acting.drives[at[j]] = tau
        else:
            for acts, size in _drive(model, planar, motion, own, j, tau):
                as_loads(acts, size, acting)
    return acting


def body_load(
    model: Model, planar: PlanarModel, motion: Motion, b: int, wrench: Matrix
) -> tuple[Matrix, Scalar, Matrix]:
    """Force and couple in the plane of a wrench on a body, and where from P its origin is."""
    i, pose = model.tree.body_link[b], model.tree.body_pose[b]
    line = planar.line(i)
    x, y, K = line.axes @ pose.rotation
    along_line = constant(x).T @ wrench[3:], constant(y).T @ wrench[3:]
    d = motion.carrier(i).d
    force = carried(along_line[0] / line.length, along_line[1] / line.length, d)
    return force, constant(K).T @ wrench[:3], carried(*line.place(pose.position), d)


def _contract_force(planar: PlanarModel, motion: Motion, places: Coordinates, acting: PointLoads) -> Matrix:
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


def _accelerations(planar: PlanarModel, motion: Motion, answer: Answer) -> list[tuple[Matrix, Matrix]]:
    """Accelerations of P and Q of every link."""
    ends, g = [], constant(planar.gravity)
    for i, b in enumerate(motion.links):
        P = answer.a[i] + g
        ends.append((P, P - b.w2 * b.d + answer.y[i] * across(b.d)))
    return ends


def _from_accelerations(planar: PlanarModel, motion: Motion, places: Coordinates, vdot: Matrix) -> Answer:
    """The other way: what the recursion would have said of given accelerations of the points."""
    like, g = motion.ground.P, constant(planar.gravity)
    a: dict[int, Matrix] = {GROUND: -g}
    y: dict[int, Matrix] = {GROUND: type(like)(1, 1)}
    qdd = []
    for i, (P, Q) in enumerate(places.ends(vdot, moving=True)):
        link, b = planar.links[i], motion.links[i]
        a[i], y[i] = P - g, dot(across(b.d), Q - P) / link.line.length**2
        rate: Any = 0
        if link.role == "slide":
            rate = along(motion, Answer(a, y, []), freedom(planar, motion, link.joint, 0))
        qdd.append(joint_rates(planar, motion, i, a, y, rate))
    return Answer(a, y, qdd)


def _internal(
    planar: PlanarModel, motion: Motion, places: Coordinates, rows: list[Row], left: Matrix, J: Matrix
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
