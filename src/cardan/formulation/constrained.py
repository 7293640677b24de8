"""The equations of motion of any mechanism, trees and loops alike, in any formulation.

    M vdot + J^T lam = f        J vdot = gamma        phi = 0

Each formulation has its own `v`, `M` and rows; a `Parts` holds them as graphs of the tree's coordinates q, v, with
what takes the answer back: accelerations of the tree, and the wrench that each joint exerts on its child, `-T lam`
plus its drive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cardan.algebra.linsolve import tree_factor, tree_solve
from cardan.algebra.matrix import Matrix, as_graph, constant, segment, stack, zeros
from cardan.algebra.spatial import Transform
from cardan.errors import UnknownNameError, nearest
from cardan.formulation import absolute, newton_euler, relative, spatial
from cardan.formulation.armature import less_rotors, refuse_armature, with_rotors
from cardan.formulation.elements import body_effects, coupling_rows, joint_effects
from cardan.formulation.joint_rows import dual
from cardan.formulation.loops import (
    MOTION,
    Measured,
    cut_rows,
    fixed_transform,
    frame_in_link,
    measure,
    velocity_terms,
    work_along,
)
from cardan.formulation.recursion import Nodes, Recursion, run, unroll
from cardan.formulation.solve import solve_lent, solve_saddle
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND, Link, weightless_links

Solver = Callable[[list[int]], tuple[Matrix, Matrix]]


@dataclass(frozen=True)
class Parts:
    """One formulation's equations at a state.

    `rates` are the formulation's own `v` as the tree's make them; `joints` has each constrained joint's number and its
    rows; `solve(rows)` gives `vdot` and the multipliers of the rows kept; `tree(vdot)` the accelerations of the tree's
    coordinates; `wrenches(vdot, lam)` the wrench of every joint, `lam` with zeros for rows left out.
    """

    rates: Matrix
    M: Matrix
    f: Matrix
    J: Matrix
    gamma: Matrix
    phi: Matrix
    joints: tuple[tuple[int, slice], ...]
    solve: Solver
    tree: Callable[[Matrix], Matrix]
    wrenches: Callable[[Matrix, Matrix], Matrix]


@dataclass(frozen=True)
class Loads:
    """What acts: drives of joints by number, and a wrench (6,) on every body in its own components.

    `couplings` are sums of joint coordinates that follow a function of time: coefficients by joint, and the
    function with its two derivatives.
    """

    tau: dict[int, Matrix]
    wrenches: Matrix
    couplings: tuple[tuple[dict[int, float], Matrix, Matrix, Matrix], ...] = ()


def build_parts(
    model: Model, formulation: str, q: Matrix, v: Matrix, tau: Matrix, wrenches: Matrix, t: Matrix | None = None
) -> Parts:
    """Write a formulation's equations for a state of the tree.

    `tau` (nv,) drives and `wrenches` (nb, 6) on the bodies act beside the model's own force elements; `t` is time, s.
    """
    if formulation not in BUILDERS:
        raise UnknownNameError(f"formulation {formulation!r} is not one{nearest(formulation, BUILDERS)}")
    if formulation == "points":
        refuse_armature(model, formulation)
    loads = Loads(drives_of(model, tau), wrenches)
    if model.forces or model.couplings:
        nodes = run(MOTION, model, {"q": q, "v": v})
        own = {link.joint: (segment(q, link.q), segment(v, link.v)) for link in model.tree.links}
        own |= {j: (m.rows.q, m.rows.qd) for j in model.cuts for m in [measure(model, nodes, j)]}
        loads = with_elements(model, loads, nodes, own, type(q)(1, 1) if t is None else t)
    return BUILDERS[formulation](model, q, v, loads)


def drives_of(model: Model, tau: Matrix) -> dict[int, Matrix]:
    """Drives `tau` (nv,) of the tree's coordinates, by joint."""
    return {link.joint: segment(tau, link.v) for link in model.tree.links if link.kind.nv}


def with_elements(model: Model, loads: Loads, nodes: Nodes, own: dict[int, tuple[Matrix, Matrix]], t: Matrix) -> Loads:
    """Add what the model's force elements do; `own` has every joint's coordinates and rates."""
    tau, wrenches = dict(loads.tau), type(loads.wrenches)(loads.wrenches)
    for j, force in joint_effects(model, t, lambda j: own[j][0], lambda j: own[j][1]).items():
        tau[j] = tau[j] + force if j in tau else force
    pose, twist = body_motion(model, nodes)
    for b, wrench in body_effects(model, t, pose, twist).items():
        if b != GROUND:
            wrenches[b, :] = wrenches[b, :] + wrench.T
    rows = [(coefficients, g, gd, gdd) for _, coefficients, g, gd, gdd in coupling_rows(model, t)]
    return Loads(tau, wrenches, tuple(rows))


def body_motion(model: Model, nodes: Nodes) -> tuple[Callable[[int], tuple[Matrix, Matrix]], Callable[[int], Matrix]]:
    """Pose and twist of bodies, by number; the ground is -1 and rests."""

    def pose(b: int) -> tuple[Matrix, Matrix]:
        i, at = frame_in_link(model, b, Pose())
        link = nodes.carrier(i)
        return link.R @ constant(at.rotation), link.r0 + link.R @ constant(at.position)

    def twist(b: int) -> Matrix:
        i, at = frame_in_link(model, b, Pose())
        return fixed_transform(at) @ nodes.carrier(i).v

    return pose, twist


def _in_tree(
    inverse: Recursion, mass: Recursion, forward: Recursion | None = None
) -> Callable[[Model, Matrix, Matrix, Loads], Parts]:
    """Tree coordinates: the recursions of a formulation, and rows for the cut joints alone.

    `forward` answers where there are no rows.
    """

    def build(model: Model, q: Matrix, v: Matrix, loads: Loads) -> Parts:
        nodes = run(MOTION, model, {"q": q, "v": v})
        J, gamma, phi = _with_couplings(model, nodes, loads, cut_rows(model, nodes), _tree_coordinate(model, q))
        wrenches_all = _with_cut_drives(model, nodes, loads)
        C = unroll(inverse.at_rest("qdd"), model, {"q": q, "v": v, "wrenches": wrenches_all})[0]
        tau = _stacked(model, loads.tau, q)
        f = tau - C
        M = unroll(mass, model, {"q": q})[0]

        def solve(rows: list[int]) -> tuple[Matrix, Matrix]:
            if not rows and forward is not None:
                inputs = {"q": q, "v": v, "tau": tau, "wrenches": wrenches_all}
                return unroll(forward, model, inputs)[0], zeros(0, None, q)
            weightless = weightless_links(model.tree)  # a loop holds them
            if not weightless:
                return solve_saddle(_along_tree(model, M), J[rows, :], f, gamma[rows])
            lent = unroll(mass, absolute.with_lent_inertia(model, weightless), {"q": q})[0]
            return solve_lent(_along_tree(model, lent), M, J[rows, :], f, gamma[rows])

        joints = _consecutive(model, model.cuts)

        def wrenches(vdot: Matrix, lam: Matrix) -> Matrix:
            drives = all_drives(loads, lam)
            known = {j: _joint_wrench(measure(model, nodes, j), lam[at], drives.get(j)) for j, at in joints}
            return _complete(model, loads, known, q, v, vdot)

        return Parts(v, M, f, J, gamma, phi, joints, solve, lambda vdot: vdot, wrenches)

    return build


def _in_absolute(frame: str) -> Callable[[Model, Matrix, Matrix, Loads], Parts]:
    """Absolute coordinates: every link by itself."""

    def build(model: Model, q: Matrix, v: Matrix, loads: Loads) -> Parts:
        apart = model.separate
        nodes = run(MOTION, apart, {"q": q, "v": v})
        s = absolute.absolute_system(apart, nodes, on_links(apart, loads.wrenches), loads.tau, frame, loads.couplings)

        def accelerations(udot: Matrix) -> list[Matrix]:
            """Spatial acceleration of every link."""
            a = []
            for i, link in enumerate(apart.tree.links):
                c = constant(link.com)
                B = absolute.twist_matrix(nodes.links[i].R, c, frame)
                a.append(B @ udot[6 * i : 6 * i + 6] + absolute.twist_rate(c, nodes.links[i].v))
            return a

        def tree(udot: Matrix) -> Matrix:
            a = accelerations(udot)
            parts = []
            for i, link in enumerate(apart.tree.links):
                b = nodes.links[i]
                carried = b.X @ a[link.parent] if link.parent != GROUND else zeros(6, None, q)
                parts.append(dual(b.S).T @ (a[i] - carried - b.c))
            return stack(*parts)

        def wrenches(udot: Matrix, lam: Matrix) -> Matrix:
            a = tree(udot)
            drives = less_rotors(apart, all_drives(loads, lam), a)
            known = {j: _joint_wrench(measure(apart, nodes, j), lam[at], drives.get(j)) for j, at in s.joints}
            return _complete(model, loads, known, q, v, a)

        def solve(rows: list[int]) -> tuple[Matrix, Matrix]:
            return absolute.solve(apart, s, rows)

        moving = [
            absolute.rates(b.R, constant(link.com), b.v, frame)
            for link, b in zip(apart.tree.links, nodes.links, strict=True)
        ]
        rates = stack(*moving) if moving else v
        return Parts(rates, *s.whole, s.J, s.gamma, s.phi, s.joints, solve, tree, wrenches)

    return build


def _in_relative(model: Model, q: Matrix, v: Matrix, loads: Loads) -> Parts:
    """Relative coordinates of a state of the tree, whose own joints are closed."""
    six = relative.relative_model(model.separate, relative.POSED)
    q6, v6 = relative.posed_coordinates(model.separate, q, v)
    return relative_parts(model, six, q6, v6, q, v, loads)


def relative_parts(
    model: Model, six: Model, q6: Matrix, v6: Matrix, q: Matrix, v: Matrix, loads: Loads, phi_t: Matrix | None = None
) -> Parts:
    """Relative coordinates: six a link, every joint a constraint.

    `q6`, `v6` are those of the model `six`, and `q`, `v` the joints' own coordinates and rates as measured there;
    `phi_t` is the residual of the tree's joints, zero if left out.
    """
    import casadi as ca

    apart = model.separate
    state = {"q": q6, "v": v6}
    nodes = run(MOTION, six, state)
    J_t, gamma_t, joints_t = relative.tree_rows(apart, q, v)
    coordinate = relative.coordinate(apart, q, v)
    J_c, gamma_c, phi_c = _with_couplings(six, nodes, loads, cut_rows(six, nodes), coordinate)
    joints_c = _consecutive(apart, apart.cuts, J_t.shape[0])
    J: Matrix = ca.vertcat(J_t, J_c)
    gamma: Matrix = ca.vertcat(gamma_t, gamma_c)
    C = unroll(
        spatial.INVERSE_DYNAMICS_LOADED.at_rest("qdd"), six, {**state, "wrenches": _with_cut_drives(six, nodes, loads)}
    )[0]
    f = ca.vertcat(*(_drive_force(link, loads.tau, q) for link in apart.tree.links)) - C
    rotors = relative.rotors(apart, q, v)
    M, f = with_rotors(unroll(spatial.MASS_MATRIX, six, {"q": q6})[0], f, rotors)
    phi = ca.vertcat(ca.SX.zeros(J_t.shape[0]) if phi_t is None else phi_t, phi_c)

    def solve(rows: list[int]) -> tuple[Matrix, Matrix]:
        light = [i for i, link in enumerate(six.tree.links) if absolute.is_light(link)]
        if not light:
            return solve_saddle(_along_tree(six, M), J[rows, :], f, gamma[rows])
        lent = with_rotors(
            unroll(spatial.MASS_MATRIX, absolute.with_lent_inertia(six, light), {"q": q6})[0], f, rotors
        )[0]
        return solve_lent(_along_tree(six, lent), M, J[rows, :], f, gamma[rows])

    def tree(vdot: Matrix) -> Matrix:
        return relative.tree_accelerations(apart, q, v, vdot)

    def wrenches(vdot: Matrix, lam: Matrix) -> Matrix:
        a = tree(vdot)
        drives = less_rotors(apart, all_drives(loads, lam), a)
        known = {j: _joint_wrench(measure(six, nodes, j), lam[at], drives.get(j)) for j, at in joints_c}
        for i, (j, at) in enumerate(joints_t):
            link = apart.tree.links[i]
            f_i = _drive_force(link, drives, q) - as_graph(link.kind.T(segment(q, link.q)), q) @ lam[at]
            backwards = link.kind.name.startswith("reversed")
            known[j] = -(Transform(nodes.links[i].X.factors[:-2]).T @ f_i) if backwards else f_i
        return _complete(model, loads, known, q, v, a)

    return Parts(v6, M, f, J, gamma, phi, (*joints_t, *joints_c), solve, tree, wrenches)


def _in_points(model: Model, q: Matrix, v: Matrix, loads: Loads) -> Parts:
    """Points of a planar mechanism."""
    from cardan.formulation.points.equations import parts_of_tree

    return parts_of_tree(model, q, v, loads)


BUILDERS: dict[str, Callable[[Model, Matrix, Matrix, Loads], Parts]] = {
    "spatial": _in_tree(spatial.INVERSE_DYNAMICS_LOADED, spatial.MASS_MATRIX, spatial.FORWARD_DYNAMICS_LOADED),
    "newton_euler": _in_tree(newton_euler.INVERSE_DYNAMICS_LOADED, newton_euler.MASS_MATRIX),
    "absolute": _in_absolute("fixed"),
    "absolute_body": _in_absolute("body"),
    "relative": _in_relative,
    "points": _in_points,
}


def _along_tree(model: Model, M: Matrix) -> Callable[[Matrix], Matrix]:
    """`M^-1` of a joint-space inertia, factored along the tree."""
    above = model.tree.coordinate_ancestor()
    factor = tree_factor(M, above)
    return lambda B: tree_solve(factor, above, B)


# A tree joint's one coordinate: its value, its row of `J`, and what its acceleration has besides.
Coordinate = Callable[[int], tuple[Matrix, Matrix, Matrix]]


def _tree_coordinate(model: Model, q: Matrix) -> Coordinate:
    """In the tree's own coordinates."""
    places = {link.joint: link for link in model.tree.links}

    def coordinate(j: int) -> tuple[Matrix, Matrix, Matrix]:
        row = type(q)(1, model.nv)
        row[0, places[j].v.start] = 1
        return q[places[j].q], row, type(q)(1, 1)

    return coordinate


def _with_couplings(
    model: Model, nodes: Nodes, loads: Loads, rows: tuple[Matrix, Matrix, Matrix], coordinate: Coordinate
) -> tuple[Matrix, Matrix, Matrix]:
    """Rows of the cut joints, and below them one for each coupling: `sum c qdd = g''`."""
    import casadi as ca

    J, gamma, phi = rows
    for coefficients, g, _, gdd in loads.couplings:
        row, right, value = type(J)(1, J.shape[1]), gdd, -g
        for j, c in coefficients.items():
            if j in model.cuts:
                m = measure(model, nodes, j)
                x, own = m.rows.q, work_along(model, nodes, m, m.rows.W)
                rest = m.rows.W.T @ velocity_terms(nodes, m) - m.rows.rate
            else:
                x, own, rest = coordinate(j)
            row, right, value = row + c * own, right - c * rest, value + c * x
        J, gamma, phi = ca.vertcat(J, row), ca.vertcat(gamma, right), ca.vertcat(phi, value)
    return J, gamma, phi


def _with_cut_drives(model: Model, nodes: Nodes, loads: Loads) -> Matrix:
    """Wrenches on the bodies, with those of force elements in cut joints."""
    wrenches = loads.wrenches
    for j in model.cuts:
        if j in loads.tau:
            m = measure(model, nodes, j)
            wrenches = _between_bodies(model, m, j, m.rows.W @ loads.tau[j], wrenches)
    return wrenches


def _between_bodies(model: Model, m: Measured, j: int, wrench: Matrix, wrenches: Matrix) -> Matrix:
    """Add a wrench on a joint's child at M, and backwards on its parent, to those on the bodies (nb, 6)."""
    wrenches = type(wrenches)(wrenches)
    joint = model.joints[j]
    for body, X, sign in ((joint.child, m.X_c, 1), (joint.parent, m.X_p, -1)):
        if body != GROUND:
            to_link = fixed_transform(model.tree.body_pose[body]).inverse
            wrenches[body, :] = wrenches[body, :] + sign * (to_link.T @ (X.T @ wrench)).T
    return wrenches


def _stacked(model: Model, tau: dict[int, Matrix], like: Matrix) -> Matrix:
    """Drives of the tree's joints as one column."""
    parts = [tau.get(link.joint, zeros(link.kind.nv, None, like)) for link in model.tree.links]
    return stack(*parts) if parts else zeros(0, None, like)


def _drive_force(link: Link, drives: dict[int, Matrix], q: Matrix) -> Matrix:
    """A joint's drive as a wrench (6,) on the link at its frame."""
    if link.joint not in drives:
        return type(q).zeros(6)
    return dual(as_graph(link.kind.S(segment(q, link.q)), q)) @ drives[link.joint]


def all_drives(loads: Loads, lam: Matrix) -> dict[int, Matrix]:
    """Forces along the joints' coordinates: drives, and what holds the couplings, whose multipliers come last."""
    drives = dict(loads.tau)
    first = lam.shape[0] - len(loads.couplings)
    for k, (coefficients, *_) in enumerate(loads.couplings):
        for j, c in coefficients.items():
            drives[j] = drives.get(j, type(lam)(1, 1)) - c * lam[first + k]
    return drives


def _consecutive(model: Model, joints: tuple[int, ...], first: int = 0) -> tuple[tuple[int, slice], ...]:
    """Rows of joints one below the other."""
    places = []
    for j in joints:
        k = model.joints[j].kind.freedoms_removed
        places.append((j, slice(first, first + k)))
        first += k
    return tuple(places)


def on_links(model: Model, wrenches: Matrix) -> list[Matrix]:
    """Wrenches on bodies (nb, 6), gathered on their links."""
    total = [type(wrenches)(6, 1) for _ in model.tree.links]
    for b, i in enumerate(model.tree.body_link):
        if i != GROUND:
            total[i] = total[i] + fixed_transform(model.tree.body_pose[b]).T @ wrenches[b, :].T
    return total


def _joint_wrench(m: Measured, lam: Matrix, tau: Matrix | None) -> Matrix:
    """Wrench that a joint exerts on its child at M: its constraint, and its drive."""
    constraint = -(m.rows.T @ lam)
    return constraint if tau is None else constraint + m.rows.W @ tau


def _complete(model: Model, loads: Loads, known: dict[int, Matrix], q: Matrix, v: Matrix, a: Matrix) -> Matrix:
    """Wrenches (number of joints, 6): those known, and for the others the balance of all beyond them."""
    import casadi as ca

    rest = [j for j in range(len(model.joints)) if j not in known]
    if rest:
        nodes = run(MOTION, model, {"q": q, "v": v})
        wrenches = loads.wrenches
        for j in model.cuts:
            wrenches = _between_bodies(model, measure(model, nodes, j), j, known[j], wrenches)
        apart = model.unmerged
        inputs = {"q": q, "v": v, "a": a, "wrenches": wrenches}
        rows = unroll(spatial.JOINT_WRENCHES, apart, inputs)[0]
        for i, link in enumerate(apart.tree.links):
            if link.joint in rest:
                known[link.joint] = rows[i, :].T
    return ca.vertcat(*(known[j].T for j in range(len(model.joints))))
