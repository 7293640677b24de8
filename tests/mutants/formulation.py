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
        ("(R, r0 + R @ r)", "(R, r0 - R @ r)", "origins move the other way"),
        ("p.fx = p.fx + fixed_in_link(b).T @ b.wrench", "p.fx = p.fx + b.wrench", "a wrench on a body acts at its link's frame"),
    ),
    *changes(
        "formulation/spatial_products.py", "identity/test_derivative_products.py",
        ("b.Psiw = b.Psiw + subspace_changes(b.kind)(b.q, b.mu, b.mu)[0]", "pass", "gradient by q without the change of the axis that weights act along"),
        ("K.T @ b.w[:3] + cross(b.w[3:], P)", "K.T @ b.w[:3] - cross(b.w[3:], P)", "couple of the velocity products with the wrong sign"),
        ("b.S.T @ (b.e - crf_bar(b.f) @ b.s)", "b.S.T @ b.e", "rate of a joint force without the turning of the joint"),
        ("b.left = carried_force(b, p, b.dforce - b.dtau)", "b.left = carried_force(b, p, b.dforce + b.dtau)", "rate of accelerations with the wrong sign of inverse dynamics"),
        ("G_qq + 2 * G_qa @ a_x[\"q\"]", "G_qq + G_qa @ a_x[\"q\"]", "second derivatives without the change of the weights"),
    ),
    *changes(
        "formulation/derivative.py", "identity/test_derivative_products.py",
        ("G_x + 2 * G_y @ answer.solve(rest_x)", "G_x + G_y @ answer.solve(rest_x)", "second derivatives with loops without the change of the weights"),
    ),
    *changes(
        "functions/looped_derivatives.py", "identity/test_derivative_products.py",
        ("{\"q\": Psidd - _crossed(twists, Psid)", "{\"q\": Psidd", "accelerations of large trees by q in axes that do not move"),
        ("W_p @ poses_q + W_t @ twists_q", "W_p @ poses_q", "dampers of large trees do not notice changed twists"),
    ),
    *changes(
        "formulation/spatial_derivatives.py", "identity/test_derivative_recursions.py",
        ("b.Psidd = b.Psidd + crm(v_p) @ b.Psid", "b.Psidd = b.Psidd + crm(b.v) @ b.Psid", "derivative by q with the joint's own velocity", ),
        ("b.Psidd = b.Psidd + crm(b.v) @ by_q + by_q2", "b.Psidd = b.Psidd + by_q2", "derivative by q without the turning of a changing axis"),
        ("2 * across if b.kind.nv == 1 else across + crm(b.v) @ b.S", "2 * across", "derivative by v of a joint with several rates"),
        ("own = -(b.S.T @ turned_force)", "own = 0 * (b.S.T @ turned_force)", "a ball's own force turns with it"),
        ("own = own + force_change(b.kind)(b.q, b.f)", "own = own", "derivative by q: the axis on which the force acts does not change"),
        ("P = -2 * m * u - cross(w, 2 * h)", "P = -m * u - cross(w, h)", "velocity products with half the momentum"),
        ("h, K = h + m * r, K + skew(r) @ skew(P)", "h, K = h + m * r, K", "velocity products carried to another origin unchanged"),
        ("y = h + m / 2 * r", "y = h + m * r", "composite inertia about another origin"),
        ("j.Psid.T @ F_B + j.Psidd.T @ F_qdd", "j.Psidd.T @ F_qdd", "derivative by q: rows beyond without velocity products"),
        ("(at.Li + at.Li.T + at.tau_q + at.tau_v).sparsity()", "(at.Li + at.Li.T).sparsity()", "columns lose entries where the mass matrix has none"),
    ),
    *changes(
        "formulation/loop_derivatives.py", "identity/test_loop_derivatives.py",
        ("g_x + g_p @ crm(v_p) - g_a @ crm(a_p)", "g_x + g_p @ crm(v_p)", "rows change without the parent's acceleration seen from a turning frame"),
        ("True: g_c - g_a @ crm(v_c)", "True: g_c", "rows change without the child's velocity"),
        ("w_x, w_x + crf_bar(w)", "w_x, w_x", "a cut joint's force does not move with it against the parent"),
    ),
    *changes(
        "formulation/response.py", "identity/test_loop_derivatives.py",
        ("self.G @ (self.Y.T @ right.f - right.gamma)", "self.G @ (self.Y.T @ right.f + right.gamma)", "right sides of the rows with the wrong sign"),
        ("mirrored(self.without_rows(type(self.Li).eye(self.Li.shape[0])) - self.G @ self.Y.T)", "mirrored(self.without_rows(type(self.Li).eye(self.Li.shape[0])))", "unit forces move the tree as if it were open"),
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
        "formulation/linear.py", "identity/test_linear.py closed_form/test_linear.py",
        ("rest = along(model, rate, inputs, {\"q\": dq, **with_p})", "rest = along(model, rate, inputs, with_p)", "dependent rates do not follow the coordinates"),
        ("dv[:, n : 2 * n] = dv[:, n : 2 * n] + dq[:, :n]", "dv[:, n : 2 * n] = dv[:, n : 2 * n] - dq[:, :n]", "unit rates move the mechanism backwards"),
        ("- rate @ dq))", "))", "changes of coordinates do not turn with their axes"),
    ),
    *changes(
        "formulation/linear.py", "closed_form/test_closed_loops.py",
        ("reads: tuple[str, ...] = (\"q\", \"v\", PARAMETERS)", "reads: tuple[str, ...] = (\"q\", PARAMETERS)", "rates of variables do not depend on those of the mechanism"),
    ),
    *changes(
        "formulation/derivative.py", "identity/test_linear.py closed_form/test_linear.py",
        ("kept.gamma - kept.J @ a0)", "kept.gamma)", "rows do not turn with the mechanism"),
    ),
    *changes(
        "formulation/points/rows.py", "closed_form/test_symbols.py::test_pendulum_as_points",
        ("link.inertia / link.line.length**2 * d.T @ d", "link.inertia / link.line.length * d.T @ d", "mass matrix of points: inertia over the length, not its square"),
    ),
    *changes(
        "formulation/points/rows.py", "agreement/test_momentum_equations.py",
        ("cross = P.T @ turning(link.first) @ d", "cross = P.T @ turning((link.first[0], -link.first[1])) @ d", "mass matrix of points: first moment on the wrong side of the line"),
    ),
    *changes(
        "formulation/points/momentum.py", "agreement/test_momentum_equations.py",
        ("turn + n + moment(b.P - P, f)  # AT(3)", "turn + n  # AT(3)", "angular momentum of what a link carries without the momentum's own moment"),
        ("spin * moment(b.d, Q - a)  # AT(11)", "spin * moment(b.d, Q)  # AT(11)", "angular momentum by the acceleration of particle 3 alone"),
        ("n + moment(carried(*own[i].first, b.d), weight)", "n", "weights without a moment about the pin"),
        ("return [link.turn[0] * tau if link.role == \"pin\" else tau]", "return [-tau]", "drives act backwards in the momentum equations"),
    ),
    *changes(
        "textbook/at.py", "closed_form/test_particles.py",
        ("(1 - nu) * tilde(r21).T)", "(1 + nu) * tilde(r21).T)", "AT(11): wrong part of particle 2 at particle 1"),
        ("-(lam * r21.T)", "(lam * r21.T)", "AT(11): wrong sign of lambda"),
        ("* _unit(m1) - m2 * lam * _K(m1)", "* _unit(m1) + m2 * lam * _K(m1)", "AT(10): wrong sign of lambda"),
        ("return N_next + moment(r_j, F_next) + G_j", "return N_next - moment(r_j, F_next) + G_j", "recursion along the chain: momentum beyond turns the other way"),
    ),
    *changes(
        "model/particles.py", "agreement/test_particle_system.py",
        ("Particles(np.array([mass - m2 - m3, m2, m3]), np.array([[0.0, 0.0], [L / 2, 0.0], [L, 0.0]]))", "Particles(np.array([mass - m2 - m3, m2, m3]), np.array([[0.0, 0.0], [L, 0.0], [L / 2, 0.0]]))", "particles 2 and 3 of a rod change places"),
        ("for k, at in ((0, (0.0, 0.0)), (2, (1.0, 0.0))):\n        if np.abs", "for k, at in ((0, (0.0, 0.0)),):\n        if np.abs", "particles at the next pin are not unified"),
    ),
    *changes(
        "formulation/measured_joint.py", f"identity/test_constraints_kj.py {LOOPS}",
        ("c = crm(v_r) @ v_c  # KJ(2),(3)", "c = crm(v_r) @ v_r  # KJ(2),(3)", "rows without the velocity of the moving frame"),
        ("c = c - kind.bias(q, qd)", "c = c + kind.bias(q, qd)", "rows with the rate of the subspace backwards"),
        ("(self.parent, -(self.X_p.T @ force))", "(self.parent, self.X_p.T @ force)", "the force on the parent is not opposite"),
    ),
    *changes(
        "formulation/absolute.py", "closed_form/test_single_body.py closed_form/test_two_body.py",
        ("- cross(c, wrench[3:]) - cross(w, I @ w)", "- cross(c, wrench[3:]) + cross(w, I @ w)", "gyroscopic moment with the wrong sign"),
        ("n_G = wrench[:3] - cross(c, wrench[3:])", "n_G = wrench[:3] + cross(c, wrench[3:])", "moment of a force about the centre of mass backwards"),
    ),
    *changes(
        "formulation/tree.py", LOOPS,
        ("meeting = common_ancestor(tree, *(i for i, _ in rows.forces)) if rows.internal else GROUND", "meeting = GROUND", "forces of a loop are carried to the root", Equivalent("the two forces balance, so that what they do beyond the link where they meet cancels; only the number of operations changes")),
    ),
    *changes(
        "formulation/points/space.py", "agreement/test_points_in_space.py",
        ("constant(x)) @ R.T / 2 for x in g))", "constant(x)) @ R.T for x in g))", "angular velocity of a tetrahedron is doubled"),
        ("return stack(turn, skew(c) @ turn + move)", "return stack(turn, move - skew(c) @ turn)", "velocity of a link's origin with the wrong lever"),
        ("cross(wdot, constant(e)) + cross(w, cross(w, constant(e)))", "cross(wdot, constant(e))", "vertices without centripetal acceleration"),
        ("-dot(rate, rate), type(J)(1, 1), phi)  # AT(6)", "dot(rate, rate), type(J)(1, 1), phi)  # AT(6)", "distances accelerate with the wrong sign"),
        ("(s * s if a == 0 else 2 * s * s)", "(s * s)", "all edges have the same length"),
        ("across = {(k, m): -(F[k][m] + F[m][k]) / 2", "across = {(k, m): (F[k][m] + F[m][k]) / 2", "forces along the edges with the wrong sign"),
        ("return A @ ((3 * eye(3, A) - A.T @ A) / 2)", "return A", "axes of a tetrahedron that is not quite one"),
        ("weight = stack(link.mass * gravity, zeros(9, None, R))", "weight = stack(zeros(9, None, R), link.mass * gravity)", "weight at another vertex"),
    ),
    *changes(
        "formulation/relative.py", f"identity/test_constraints_kj.py {LOOPS}",
        ("return kin.joint(j)[0], row, -(W.T @ _bias(link, x, rate, kin.q6))", "return kin.joint(j)[0], row, W.T @ _bias(link, x, rate, kin.q6)", "coordinate's acceleration with the wrong bias", Equivalent("couplings and armature, which alone use it, take joints of one coordinate, and those of Cardan's table have no bias")),
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
        ("about[k] + principal(x[k] - about[k], kind.periods[k])", "principal(x[k])", "an angle near another is the principal one"),
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
        "formulation/formulation.py", "agreement/test_loops_agreement.py::test_formulations_agree_on_random_graphs identity/test_constraints_kj.py",
        ("gamma = acts.gamma - self._biased(kin, acts)", "gamma = acts.gamma", "right side of the rows without the bias accelerations"),
    ),
    *changes(
        "formulation/differential.py", "product/test_autodiff.py",
        ("ca.jacobian(ca.vec(value), ca.vec(inputs[name]))", "ca.jacobian(ca.vec(value), ca.vec(inputs[name].T))", "columns of a derivative by a matrix are in another order"),
        ("rates = {f\"d{name}_{len(shapes)}\"", "rates = {f\"d{name}\"", "rates of second derivatives are those of the first"),
        ("dx = ca.vertcat(*(ca.vec(inputs[rate]) for rate in rates))", "dx = ca.vertcat(*(ca.vec(inputs[rate]) for rate in reversed(rates)))", "rates belong to other arguments"),
    ),
    *changes(
        "formulation/division.py", "identity/test_large_implicit.py",
        ("if not outline.has_mass:", "if False:", "joints and force elements have the mass of their links once more"),
        ("same &= ~held.any(axis=0)", "pass", "free numbers of components stay nominal"),
    ),
    *changes(
        "formulation/complementarity.py", "identity/test_complementarity.py closed_form/test_moreau.py",
        ("return where(gains, x + ca.fmin(ca.fmax(s, 0), 1) * d, y)", "return y", "impacts may gain energy"),
        ("return first.b + e * ca.fmin(u, 0), bounds", "return first.b, bounds", "Newton's impacts without restitution"),
        ("return y if rule == NEWTON else x + bounds.restitution * x + y", "return y if rule == NEWTON else x + y", "Poisson's impacts give nothing back"),
        ("[(f.R0 if finite else 0 * f.R0, f.R)", "[(0 * f.R0, f.R)", "friction by reactions without what loads make of them"),
    ),
    *changes(
        "formulation/modes.py", "closed_form/test_modes.py agreement/test_laws_in_formulations.py",
        ("motion.rows.phi[k] + d[k] + TINY", "motion.rows.phi[k] + TINY", "a short flight from below zero is missed"),
        ("= d * own.level(x)", "= d * own.constant", "sliding friction without the normal force"),
    ),
    *changes(
        "formulation/modes.py", "closed_form/test_friction_of_elements.py closed_form/test_laws_by_implicit_methods.py",
        ("ahead = u[rows] + AT_REST * d[rows]", "ahead = u[rows]", "friction in several directions has none at rest"),
        ("motion.x + friction_sliding(motion, motion.x, direction)", "motion.x", "friction that slides is left out of constraints"),
    ),
    *changes(
        "formulation/law_forces.py", "closed_form/test_joint_coordinates.py",
        ("slides = [k for k in range(S.shape[1]) if S[:3, k].is_zero()]", "slides: list[int] = []", "what acts along a slide presses friction"),
        ("with_drive(drives.get(j), kin.model.joints[j].kind.nv, place, c * x[k])", "with_drive(drives.get(j), kin.model.joints[j].kind.nv, 0, c * x[k])", "the force of a row acts along the first coordinate"),
    ),
    *changes(
        "formulation/law_motion.py", "closed_form/test_modes.py agreement/test_laws_in_formulations.py",
        ("return dot(self.x, self.rows.J @ self.parts.rates)", "return 0 * dot(self.x, self.rows.J @ self.parts.rates)", "friction's work is not in the energy balance"),
    ),
    *changes(
        "formulation/law_motion.py", "closed_form/test_friction_of_elements.py",
        ("own = [self.solution.every[k] for k", "own = [0 * self.solution.every[k] for k", "elements do not press friction"),
        ("normal, pressing = pressing[0], ()", "normal, pressing = None, ()", "a stop does not press friction"),
    ),
    *changes(
        "formulation/solution.py", "closed_form/test_modes.py agreement/test_laws_in_formulations.py",
        ("every[row] = self.lam[k]", "every[row] = 0 * self.lam[k]", "reactions that press friction without those of loops"),
    ),
]  # fmt: skip
