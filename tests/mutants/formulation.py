# ruff: noqa: E501
"""Mutants of `formulation`: the equations of motion."""

from __future__ import annotations

from tests.mutants.mutant import Equivalent, Mutant, changes

TREES = "agreement/test_formulations.py identity/test_dynamics.py"
LOOPS = "agreement/test_loops_agreement.py identity/test_reactions.py identity/test_rows.py"
POINTS = "agreement/test_points.py agreement/test_points_held.py"

MUTANTS: list[Mutant] = [
    *changes(
        "formulation/kinematics.py", TREES,
        ("b.v = b.X @ p.v + vJ  # FX(C1)", "b.v = b.X @ p.v - vJ  # FX(C1)", "velocity across a joint backwards"),
        ("b.c = crm(b.v) @ vJ", "b.c = crm(vJ) @ b.v", "velocity product with the wrong sign"),
        ("b.c = b.c + b.kind.bias(b.q, b.qd)", "b.c = b.c - b.kind.bias(b.q, b.qd)", "rate of the motion subspace with the wrong sign"),
        ("vector(B[1, 2], B[2, 0], B[0, 1])  # B = -(r x)", "vector(B[2, 1], B[0, 2], B[1, 0])  # B = -(r x)", "origins move the other way"),
    ),
    *changes(
        "formulation/spatial.py", TREES,
        ("b.a = b.X @ p.a + b.S @ b.qdd + b.c\n    b.f", "b.a = b.X @ p.a + b.S @ b.qdd\n    b.f", "inverse dynamics without velocity products"),
        ("p.f = p.f + b.X.T @ b.f\n\n\n# Forward", "p.f = b.X.T @ b.f\n\n\n# Forward", "inverse dynamics: a branch replaces its parent's force"),
        ("b.pA = crf(b.v) @ (b.I @ b.v)", "b.pA = 0 * b.v", "forward dynamics without gyroscopic force"),
        ("b.u = b.tau - b.S.T @ b.pA", "b.u = b.tau + b.S.T @ b.pA", "forward dynamics: wrong sign of the bias force"),
        ("pa = b.pA + Ia @ b.c + b.U", "pa = b.pA + b.U", "forward dynamics: the joint's velocity product does not load its parent"),
        ("ldl_solve(b.D, b.u - b.U.T @ a)", "ldl_solve(b.D, b.u - b.U.T @ (b.X @ p.a))", "forward dynamics: the joint does not feel its velocity product"),
        ("p.IC = p.IC + b.X.congruence(b.IC)  # FX(A2)", "p.IC = p.IC + b.X.inverse.congruence(b.IC)  # FX(A2)", "composite inertia carried the wrong way"),
        ("b.reaction = -(Transform(b.X.factors[:-2]).T @ b.f) if b.kind.backwards else b.f", "b.reaction = b.f", "reaction of a joint met from its child's side is that on the parent"),
        ("b.pA = b.pA - b.fx", "b.pA = b.pA + b.fx", "wrenches act backwards in forward dynamics"),
        ("p.fx = p.fx + _fixed(b).T @ b.wrench", "p.fx = p.fx + b.wrench", "a wrench on a body acts at its link's frame"),
    ),
    *changes(
        "formulation/newton_euler.py", TREES,
        ("b.vO = b.turn @ (p.vO - cross(b.shift, p.w)) + b.vJ", "b.vO = b.turn @ (p.vO + cross(b.shift, p.w)) + b.vJ", "velocity of the origin: wrong lever"),
        ("cross(p.w, cross(p.w, b.shift))", "0 * b.shift", "no centripetal acceleration"),
        ("cross(2 * b.w - b.wJ, b.vJ)", "cross(b.w, b.vJ)", "half of Coriolis' acceleration"),
        ("+ cw + cross(b.w, b.wJ)", "+ cw", "angular acceleration of a turning frame left out"),
        ("b.n = b.J @ b.wd + cross(b.w, b.J @ b.w) + cross(b.mc, b.aO)", "b.n = b.J @ b.wd + cross(b.mc, b.aO)", "no gyroscopic moment"),
        ("p.n = p.n + b.turn.T @ b.n + cross(b.shift, f)", "p.n = p.n + b.turn.T @ b.n", "moment without the lever of the force"),
        ("- A - A.T - b.mC * (skew(r) @ skew(r))", "- A - A.T", "composite inertia without Steiner's term"),
        ("dot(b.vO, cross(b.w, b.mc)) + rotor_energy(b)", "rotor_energy(b)", "kinetic energy without its mixed term"),
        ("p.hn = p.hn + b.turn.T @ b.hn + cross(b.shift, h)", "p.hn = p.hn + b.turn.T @ b.hn", "angular momentum without the lever of the linear"),
        ("b.f, b.n = b.f - b.fx, b.n - b.nx", "b.f, b.n = b.f - b.fx, b.n", "moments of wrenches left out"),
    ),
    *changes(
        "formulation/measured_joint.py", f"identity/test_constraints_kj.py {LOOPS}",
        ("c = crm(v_r) @ v_c  # KJ(2),(3)", "c = crm(v_r) @ v_r  # KJ(2),(3)", "rows without the velocity of the moving frame"),
        ("c = c - kind.bias(q, qd)", "c = c + kind.bias(q, qd)", "rows with the rate of the subspace backwards"),
        ("(self.parent, -(self.X_p.T @ force))", "(self.parent, self.X_p.T @ force)", "the force on the parent is not opposite"),
    ),
    *changes(
        "formulation/formulation.py", f"{LOOPS} identity/test_effects.py agreement/test_own_constraints.py",
        ("constraint if tau is None else constraint + m.rows.W @ tau", "constraint", "reaction of a cut joint without its drive"),
        ("((joint.child, m.X_c, 1), (joint.parent, m.X_p, -1))", "((joint.child, m.X_c, 1),)", "a cut joint's wrench acts on its child only"),
    ),
    *changes(
        "formulation/tree.py", LOOPS,
        ("meeting = common_ancestor(tree, *(i for i, _ in rows.forces)) if rows.internal else GROUND", "meeting = GROUND", "forces of a loop are carried to the root", Equivalent("the two forces balance, so that what they do beyond the link where they meet cancels; only the number of operations changes")),
        ("J[:, link.v] = J[:, link.v] + force.T @ b.S", "J[:, link.v] = force.T @ b.S", "a loop's second force replaces the first"),
    ),
    *changes(
        "formulation/solve.py", LOOPS,
        ("lam = multipliers(J @ a - gamma)", "lam = multipliers(J @ a + gamma)", "wrong sign of gamma"),
        ("return a - Y @ lam, lam", "return a + Y @ lam, lam", "constraint forces backwards"),
    ),
    *changes(
        "formulation/absolute.py", f"identity/test_constraints_kj.py {LOOPS}",
        ("n_G = wrench[:3] - cross(c, wrench[3:]) - cross(w, I @ w)", "n_G = wrench[:3] - cross(c, wrench[3:])", "no gyroscopic moment"),
        ("n_G = wrench[:3] - cross(c, wrench[3:])", "n_G = wrench[:3] + cross(c, wrench[3:])", "a wrench acts at the wrong side of the centre of mass"),
        ("f = R @ wrench[3:] + m * gravity", "f = R @ wrench[3:]", "no gravity"),
        ("stack(zeros(3, None, v), -cross(w, v[3:] + cross(w, c)))", "stack(zeros(3, None, v), -cross(w, v[3:]))", "bias without the centre of mass"),
        ("[skew(c) @ turn, R.T]])", "[-skew(c) @ turn, R.T]])", "twist of a link from the centre of mass the wrong way"),
    ),
    *changes(
        "formulation/relative.py", f"identity/test_constraints_kj.py {LOOPS}",
        ("gamma = T.T @ _bias(link, x, rate, like)  # KJ(4)", "gamma = 0 * T.T @ _bias(link, x, rate, like)  # KJ(4)", "rows of tree joints without the rate of the subspace"),
        ("- as_graph(link.kind.T(kin.own[i][0]), lam) @ own", "+ as_graph(link.kind.T(kin.own[i][0]), lam) @ own", "reactions backwards"),
        ("known[link.joint] = backwards if link.kind.backwards else force", "known[link.joint] = force", "reaction of a joint met from its child's side is that on the parent"),
        ("return kin.joint(j)[0], row, -(W.T @ _bias(link, x, rate, kin.q6))", "return kin.joint(j)[0], row, W.T @ _bias(link, x, rate, kin.q6)", "coordinate's acceleration with the wrong bias", Equivalent("couplings and armature, which alone use it, take joints of one coordinate, and those of Cardan's table have no bias")),
    ),
    *changes(
        "formulation/elements.py", "identity/test_effects.py agreement/test_loops_agreement.py identity/test_trajectory.py",
        ("drives[j] = drives[j] + force if j in drives else force", "drives[j] = force", "an element along a joint replaces its drive"),
        ("total[b] = total[b] + f if b in total else f", "total[b] = f", "of several elements on a body the last one counts"),
    ),
    *changes(
        "formulation/dynamics.py", f"agreement/test_inverse_dynamics.py {LOOPS}",
        ("rate = ca.jtimes(u, v, inputs[\"a\"]) + ca.jtimes(u, q, tree_rates(model, q, v))", "rate = ca.jtimes(u, v, inputs[\"a\"])", "inverse dynamics without S' v"),
    ),
    *changes(
        "formulation/armature.py", "identity/test_armature.py",
        ("0.0 if b.armature is None else b.armature @ b.qdd", "0.0", "inverse dynamics without the rotor"),
        ("0.0 if b.armature is None else dot(b.qd, b.armature @ b.qd) / 2", "0.0", "kinetic energy without the rotor"),
        ("M, f = M + load @ rotor.K, f - load @ rotor.rest", "M, f = M + load @ rotor.K, f", "a rotor in absolute coordinates without the rest of its acceleration"),
        ("- A @ segment(qdd, link.v)", "+ A @ segment(qdd, link.v)", "reactions with the rotor's load backwards"),
    ),
    *changes(
        "formulation/two_body.py", "closed_form/test_two_body.py",
        ("I1 + I2 - outer(U, U) / dot(s, U)  # F6(7)", "I1 + I2 + outer(U, U) / dot(s, U)  # F6(7)", "articulated inertia: wrong sign"),
        ("K = J + m2 * (skew(r1) @ skew(r2))  # F3(23)\n    d", "K = J + m2 * (skew(r2) @ skew(r1))  # F3(23)\n    d", "K with its factors exchanged"),
    ),
    *changes(
        "formulation/points/recursion.py", POINTS,
        ("a[i] = a[i] + 2 * p.w * across(b.slip)", "a[i] = a[i] + p.w * across(b.slip)", "half of Coriolis' acceleration"),
        ("a[i] = a[link.parent] + p.w2 * across(s.e)", "a[i] = a[link.parent] - p.w2 * across(s.e)", "centripetal acceleration outwards"),
        ("below.D = below.D + D + 2 * dot(s.e, B) + dot(s.e, T)", "below.D = below.D + D + dot(s.e, B) + dot(s.e, T)", "inertia of what is carried: mixed term once"),
        ("p_shown = p_shown + s.pin * rest[i] if rest is not None else p_shown", "p_shown = p_shown", "particles at a pin have no weight"),
        ("s.D - s.pivot * s.c * s.c", "s.D", "a slide carries the whole inertia"),
        ("return link.turn[0] * (y[i] - y[link.parent])", "return y[i] - y[link.parent]", "a hinge whose axis points down accelerates the other way"),
        ("n[link.parent] = n[link.parent] + n_shown + dot(s.e, p_shown)", "n[link.parent] = n[link.parent] + n_shown", "forces of a joint have no lever"),
        ("inertia = inertia - part * square * link.line.length**2", "inertia = inertia - part * square", "inertia of particles in units of the line"),
    ),
    *changes(
        "formulation/points/rows.py", POINTS,
        ("link.inertia / link.line.length**2 * d.T @ d\n        return (M", "link.inertia * d.T @ d\n        return (M", "mass matrix of points without the line's length"),
        ("on_d = carried(nu, -lam, force) + couple / L**2 * across(d)", "on_d = carried(nu, lam, force) + couple / L**2 * across(d)", "work of a force beside the line with the wrong sign"),
        ("return [PlanarRow(label, acts, 2 * p.w * slip, away)", "return [PlanarRow(label, acts, p.w * slip, away)", "a slide's row with half of Coriolis' acceleration"),
        ("-dot(b.dd, b.dd), stretch, stretch=i)", "dot(b.dd, b.dd), stretch, stretch=i)", "distance of two points: wrong sign of its velocity term"),
    ),
    *changes(
        "formulation/points/motion.py", POINTS,
        ("P, Pd = C + shift, Cd + slip + p.w * across(shift)\n        if backwards", "P, Pd = C + shift, Cd + slip\n        if backwards", "a slide does not turn with its link"),
    ),
    *changes(
        "formulation/points/formulation.py", POINTS,
        ("turn = moment(at.P + arm, force) + inertia * answer.y[i]  # AT(3)", "turn = moment(at.P + arm, force)  # AT(3)", "reactions without the moment of rotational inertia"),
        ("known[link.joint] = (-force, -turn) if backwards else (force, turn)", "known[link.joint] = (force, turn)", "reaction of a joint met from its child's side is that on the parent"),
    ),
    *changes(
        "formulation/kinematics.py", "agreement/test_loops_agreement.py",
        ("b.a = b.X @ p.a + b.c\n\n\nMOTION", "b.a = b.X @ p.a\n\n\nMOTION", "constraint rows without the accelerations that velocities cause"),
    ),
    *changes(
        "formulation/kinematics.py", "agreement/test_gear.py::test_springs_know_how_often_they_were_wound agreement/test_gear.py::test_prescribed_crank_turns_many_times identity/test_alpha.py",
        ("return near(link.kind, rows.q, segment(self.about, link.q)), rows.qd", "return rows.q, rows.qd", "a measured angle forgets its whole turns"),
    ),
    *changes(
        "formulation/spatial.py", "identity/test_dynamics.py",
        ("b.Sdot = crm(b.v) @ b.S + _subspace_rate(b)", "b.Sdot = crm(b.v) @ b.S", "Coriolis matrix without the rate of a joint's axes"),
        ("(crf(b.v) @ b.I - b.I @ crm(b.v) + crf_bar(b.I @ b.v)) / 2", "crf(b.v) @ b.I", "Coriolis matrix that does not make Mdot - 2 C skew"),
        ("return j.S.T @ F1, j.Sdot.T @ F2 + j.S.T @ F3", "return j.S.T @ F1, j.S.T @ F3", "Coriolis matrix: rows above the diagonal incomplete"),
        ("b.axes = (shifted(-b.r0) @ S).T", "b.axes = (shifted(b.r0) @ S).T", "joint axes about a wrong point"),
        ("J[:, link.v] = forces[0].T @ b.S", "J[:, link.v] = -forces[0].T @ b.S", "Jacobian with the wrong sign"),
    ),
    *changes(
        "formulation/measured_joint.py", "agreement/test_gear.py::test_springs_know_how_often_they_were_wound agreement/test_gear.py::test_prescribed_crank_turns_many_times identity/test_alpha.py",
        ("about[k] + principal(x[k] - about[k])", "principal(x[k])", "an angle near another is the principal one"),
    ),
    *changes(
        "formulation/measured_joint.py", "identity/test_alpha.py agreement/test_gear.py",
        ("where(dot(e, about[kind.nq - 4 : kind.nq]) < 0, -1.0, 1.0)", "1.0", "a quaternion near another has the other sign"),
    ),
    *changes(
        "formulation/measured_joint.py", "agreement/test_gear.py::test_gears_whose_ratio_is_no_fraction_turn_many_times agreement/test_gear.py agreement/test_loops_agreement.py",
        ("gcd(*(p.numerator for p in parts)) / lcm(", "gcd(*(p.numerator for p in parts)) * lcm(", "wrong period of coupled angles"),
    ),
    *changes(
        "formulation/measured_joint.py", "agreement/test_points.py::test_drives_of_closing_joints_with_several_coordinates_agree agreement/test_loops_agreement.py identity/test_joint_table.py",
        ("W[:3, shifts] = -(moment @ (S[3:, turns].T @ force))", "W[:3, shifts] = 0", "drive forces of a joint that turns and shifts do the work of both"),
    ),
    *changes(
        "formulation/formulation.py", "identity/test_reactions.py",
        ("drives.get(j, type(lam)(1, 1)) - c * own", "drives.get(j, type(lam)(1, 1)) - own", "the drive of a coupling without its coefficient"),
    ),
    *changes(
        "formulation/formulation.py", "agreement/test_own_constraints.py",
        ("{b: -(F @ own) for b, F in forces.items()}", "{b: F @ own for b, F in forces.items()}", "reactions with the user's constraint backwards"),
    ),
    *changes(
        "formulation/formulation.py", "identity/test_rows.py agreement/test_points.py::test_prescribed_motions_and_couplings_agree agreement/test_loops_agreement.py",
        ("J, gamma, phi = J + c * row, gamma - c * rest, phi + c * x", "J, gamma, phi = J + c * row, gamma, phi + c * x", "a coupling does not know the rest of the acceleration"),
    ),
    *changes(
        "formulation/formulation.py", "agreement/test_points.py::test_prescribed_motions_and_couplings_agree agreement/test_loops_agreement.py identity/test_rows.py",
        ("self.work(kin, acts), self._biased(kin, acts) - m.rows.rate", "self.work(kin, acts), self._biased(kin, acts)", "a measured coordinate's acceleration is incomplete"),
    ),
    *changes(
        "formulation/solve.py", "identity/test_reactions.py identity/test_robustness.py",
        ("CORRECTIONS = 2", "CORRECTIONS = 0", "the answer keeps the regularisation's error"),
    ),
    *changes(
        "formulation/absolute.py", "identity/test_alpha.py",
        ("quaternion_product(e, turn) if self.in_body else quaternion_product(turn, e)", "quaternion_product(e, turn)", "rotations in ground axes are added as in body axes"),
    ),
    *changes(
        "formulation/relative.py", "identity/test_alpha.py",
        ("v.append(twist - X @ v_p)", "v.append(twist)", "own rates from the twist of the child alone"),
    ),
    *changes(
        "formulation/dynamics.py", "model/test_assembly.py",
        ("return {**inputs, \"v\": type(inputs[\"q\"])(model.nv, 1)}", "return {\"q\": inputs[\"q\"], \"v\": type(inputs[\"q\"])(model.nv, 1)}", "constraint rows at time zero"),
    ),
    *changes(
        "formulation/coordinates.py", "agreement/test_gear.py::test_springs_know_how_often_they_were_wound agreement/test_gear.py::test_prescribed_crank_turns_many_times identity/test_alpha.py",
        ("parts = [near(link.kind, x[link.q], about[link.q]) for link in model.tree.links if link.kind.nq]", "parts = [x[link.q] for link in model.tree.links if link.kind.nq]", "coordinates of the tree forget whole turns"),
    ),
    *changes(
        "formulation/tree.py", "agreement/test_loops_agreement.py identity/test_trajectory.py identity/test_effects.py",
        ("tau = stacked_drives(parts.model, parts.loads.tau, q)", "tau = 0 * stacked_drives(parts.model, parts.loads.tau, q)", "drives of a tree with force elements left out"),
    ),
    *changes(
        "formulation/tree.py", "agreement/test_loops_agreement.py::test_formulations_agree_on_mechanisms_with_force_elements agreement/test_loops_agreement.py",
        ("wrenches = between_bodies(model, m, j, m.rows.W @ loads.tau[j], wrenches)", "wrenches = wrenches", "elements in cut joints left out"),
    ),
    *changes(
        "formulation/tree.py", "identity/test_dynamics.py::test_project_undoes_lift",
        ("v.append(dual(S).T @ (v_i - joint_transform(link.kind, q_i, E, r) @ v_p))", "v.append(dual(S).T @ v_i)", "rates of a joint from the twist of its child alone"),
    ),
    *changes(
        "formulation/elements.py", "agreement/test_loops_agreement.py agreement/test_inverse_dynamics.py",
        ("total[i] = total[i] + fixed_transform(model.tree.body_pose[b]).T @ wrenches[b, :].T", "total[i] = total[i] + wrenches[b, :].T", "wrenches act at their links' frames"),
    ),
    *changes(
        "formulation/elements.py", "agreement/test_own_constraints.py",
        ("carried = fixed_transform(at).T @ F", "carried = F", "a user's constraint acts at its link's frame"),
    ),
    *changes(
        "formulation/points/motion.py", "agreement/test_points_held.py",
        ("> 1 - IN_PLANE, 1.0, np.nan)", "> 1 - IN_PLANE, 1.0, 1.0)", "a state out of the plane gets an answer"),
    ),
    *changes(
        "formulation/points/motion.py", "agreement/test_points.py::test_random_planar_trees_agree agreement/test_points.py",
        ("P, Pd = C - shift, Cd - slip - w * across(shift)", "P, Pd = C - shift, Cd - slip - p.w * across(shift)", "a floating joint met from its child's side turns with its parent"),
    ),
    *changes(
        "formulation/dynamics.py", "identity/test_trajectory.py identity/test_reactions.py",
        ("every[row] = lam[k]", "every[k] = lam[k]", "multipliers at the places of other rows"),
    ),
    *changes(
        "formulation/solve.py", "model/test_conflicts.py::test_a_massless_coupler_is_the_limit_of_a_light_one identity/test_points_light.py",
        ("da, dlam = solve(f - M @ a - J.T @ lam, gamma - J @ a)", "da, dlam = solve(f - M @ a, gamma - J @ a)", "correction for lent inertia forgets the constraint forces"),
    ),
    *changes(
        "formulation/light.py", "identity/test_alpha.py::test_links_without_inertia_that_a_loop_holds model/test_conflicts.py::test_a_massless_coupler_is_the_limit_of_a_light_one identity/test_points_light.py",
        ("return link.mass == 0 or bool(moments[0] <= LIGHT * max(moments[-1], 1e-300))", "return link.mass == 0", "a point mass or a thin rod gets no inertia in absolute coordinates"),
    ),
    *changes(
        "formulation/solve.py", "model/test_conflicts.py::test_a_massless_coupler_is_the_limit_of_a_light_one identity/test_points_light.py",
        ("LENT_CORRECTIONS = 3", "LENT_CORRECTIONS = 0", "lent inertia stays in the answer"),
    ),
    *changes(
        "formulation/points/formulation.py", "identity/test_points_light.py",
        ("paid_back.forces[i], paid_back.couples[i] = mass * answer.a[i], inertia * answer.y[i]", "paid_back.forces[i], paid_back.couples[i] = 0 * answer.a[i], 0 * answer.y[i]", "lent inertia is not paid back"),
    ),
    *changes(
        "formulation/formulation.py", "agreement/test_loops_agreement.py::test_formulations_agree_on_random_graphs identity/test_constraints_kj.py",
        ("gamma = acts.gamma - self._biased(kin, acts)", "gamma = acts.gamma", "right side of the rows without the bias accelerations"),
    ),
]  # fmt: skip
