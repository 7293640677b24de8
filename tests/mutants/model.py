# ruff: noqa: E501
"""Mutants of `model` and of what runs store: joints, force elements, trees, keys, parameters."""

from __future__ import annotations

from tests.mutants.mutant import Equivalent, Mutant, changes

EFFECTS = "identity/test_effects.py"
TABLE = "identity/test_joint_table.py"

MUTANTS: list[Mutant] = [
    *changes(
        "io/yaml/instant.py", "closed_form/test_variables.py",
        ("{\"point\": point} if any(reading.point) else {}", "{}", "files lose the points whose positions variables read"),
    ),
    *changes(
        "model/control_law.py", "closed_form/test_controllers.py",
        ("rates[\"integral\"] = ki * e + ((u - free) / T_t if ends is not None else 0.0)", "rates[\"integral\"] = ki * e", "a limited PID winds up"),
        ("slope = (e - s[\"filtered\"]) / (T_f + every)", "slope = (e - s[\"filtered\"]) / (T_f + 2 * every)", "a sampled PID has half its derivative"),
    ),
    *changes(
        "model/controller.py", "closed_form/test_controllers.py",
        ("if first.sights != again.sights or first.function.serialize() != again.function.serialize():", "if False:", "a law with random numbers is recorded"),
    ),
    *changes(
        "model/sight.py", "closed_form/test_controllers.py",
        ("for full in (f\"{self._owner}.{name}\", name):", "for full in (name,):", "own states have no short names"),
    ),
    *changes(
        "model/controller.py", "closed_form/test_signals.py",
        ("found |= dict.fromkeys((sight,) if through is None else through)", "found |= dict.fromkeys((sight,))", "feedthrough by a signal is not seen"),
    ),
    *changes(
        "model/held_state.py", "closed_form/test_controllers.py",
        ("    if found := _held(function):", "    if found := str():", "state in Python that two runs do not show is recorded"),
    ),
    *changes(
        "model/constraint_table.py", "model/test_constraint_kinds.py",
        ("slip = first - second", "slip = first", "a wheel on a moving body slips"),
        ("gap = e[\"radius2\"] - e[\"radius\"] - apart if inside else apart - e[\"radius\"] - e[\"radius2\"]\n        first, second", "gap = apart - e[\"radius\"] - e[\"radius2\"]\n        first, second", "a ball in a bowl is outside of it"),
        ("point = c + e[\"radius\"] * cross(a, longitudinal)", "point = c - e[\"radius\"] * cross(a, longitudinal)", "a wheel touches with its highest point"),
    ),
    *changes(
        "model/constraint_table.py", "closed_form/test_known_machines.py",
        ("arctan2(R[1, 0] - R[0, 1], R[0, 0] + R[1, 1])", "R[1, 0]", "a constant-velocity joint that is one of Cardan's"),
    ),
    *changes(
        "model/constraint.py", "model/test_constraint_kinds.py",
        ("function=self.function if element.is_freed else element.row(self.row))", "function=self.function)", "a settled model keeps the old number of a constraint"),
    ),
    *changes(
        "model/force.py", "model/test_constraint_kinds.py",
        ("-ca.jtimes(first, whole, rate), -ca.jacobian(value, s)]", "ca.jtimes(first, whole, rate), -ca.jacobian(value, s)]", "a relation's acceleration with the wrong sign"),
    ),
    *changes(
        "model/table.py", "machines/test_tables.py",
        ("row = row + step * (find(row + step) < x)", "row = row + step * (find(row) < x)", "a table with uneven points searches in the wrong interval"),
        ("return value + turns * self._integral_of_period if", "return value if", "the integral of a periodic table forgets its turns"),
        ("outside[0, 1], outside[1, 1] = c[1, 0], sum(", "outside[0, 1], outside[1, 1] = c[1, 0], 0 * sum(", "a table goes on flat above its points"),
        ("return BEYOND * float(self.x[-1] - self.x[0]) if", "return -1e-6 * float(self.x[-1] - self.x[0]) if", "the end of a table is outside it"),
        ("            slopes[[0, -1]] = 0.0", "            pass", "a table that is held has corners at its ends"),
    ),
    *changes(
        "model/table.py", "io/test_tables.py",
        ("        if table.smooth == 0:", "        if False:", "a motion may have corners"),
    ),
    *changes(
        "model/actuator.py", "outside/test_files_act.py",
        ("value = ca.fmax(value, least)", "pass", "actuators have no least force"),
        ("length = dot(gear, q)", "length = dot(gear, v)", "a position servo feels the speed"),
    ),
    *changes(
        "model/actuator.py", "outside/test_mjcf_activations.py",
        ("ca.fmin(rate, 0)", "rate", "an integrator winds up past its range"),
    ),
    *changes(
        "io/acting.py", "outside/test_files_act.py",
        ('joint.data.damping > 0 and "damping" not in done', "joint.data.damping > 0", "damping of MJCF acts twice"),
        ("stick=bool(coulomb) and self.friction == \"stick\"", "stick=False", "friction that should stick creeps"),
    ),
    *changes(
        "model/spatial_particles.py", "closed_form/test_particles_in_space.py",
        ("m1 = m / (1 + square)", "m1 = m / (2 + square)", "mass of the particle that was placed"),
        ("np.sqrt(2 * m / (m - m1)) * around - t / square", "np.sqrt(2 * m / (m - m1)) * around - t", "the other three are not on the polar plane"),
        ("if volume <= FLAT * longest**3:", "if volume < 0:", "four vertices in one plane are taken"),
    ),
    *changes(
        "model/joint.py", f"{TABLE} agreement/test_capability.py",
        ("T[2, 4], T[5, 4] = -h, 1.0", "T[2, 4], T[5, 4] = h, 1.0", "a screw's constraint force does work"),
        ("p[2] / h - slip(R, p) / (h * (1 + h * h))", "p[2] / h", "a screw's angle is measured without its slip"),
        ("return v[2] * vector(0, 0, 0, c * v[1] - s * v[0], -s * v[1] - c * v[0], 0)", "return v[2] * vector(0, 0, 0, c * v[1] - s * v[0], s * v[1] - c * v[0], 0)", "planar joint: wrong rate of its subspace"),
        ("bias=lambda q, v: v[0] * v[1] * vector(-sin(q[1]), 0, cos(q[1]), 0, 0, 0)", "bias=lambda q, v: v[0] * v[1] * vector(sin(q[1]), 0, cos(q[1]), 0, 0, 0)", "universal joint: wrong rate of its subspace"),
        ("couple = matrix([[-s], [0], [c], [0], [0], [0]])", "couple = matrix([[s], [0], [c], [0], [0], [0]])", "universal joint: its couple does work"),
        ("2 * vector(R[2, 1], -R[2, 0]) / (1 + R[2, 2] + FLIPPED)", "2 * vector(R[2, 1], R[2, 0]) / (1 + R[2, 2] + FLIPPED)", "tilt about y with the wrong sign"),
        ("2 * vector(R[2, 1], -R[2, 0]) / (1 + R[2, 2] + FLIPPED)", "3 * vector(R[2, 1], -R[2, 0]) / (1 + R[2, 2] + FLIPPED)", "tilt of a hinge in units that are not radians"),
        ("return 4 * unskew(R) / (1 + R[0, 0]", "return 3 * unskew(R) / (1 + R[0, 0]", "turn of a slider in units that are not radians"),
        ("shift = rotation_of_quaternion(e) @ (rotation_integral(v[:3]) @ v[3:6])", "shift = rotation_of_quaternion(e) @ v[3:6]", "a free body moves straight while it turns"),
        ("r=None if kind.r is None else shift,", "r=kind.r,", "a joint met from its child's side shifts the wrong way"),
        ("T=lambda q: -(X_FM(q).inverse.T @ as_graph(kind.T(q), q))", "T=lambda q: -(X_FM(q) @ as_graph(kind.T(q), q))", "constraint forces of a reversed joint are transformed as motions"),
    ),
    *changes(
        "model/force.py", EFFECTS,
        ("A1.T @ (v2 - v1) - cross(w1, d))", "A1.T @ (v2 - v1))", "a bushing's rate in a frame that does not turn"),
        ("series = 1 / 12 + square * (1 / 720 + square", "series = 1 / 12 + square * (1 / 72 + square", "a bushing's rotation rate: wrong series"),
        ("series = 1 / 12 + square", "series = 1 / 6 + square", "a bushing's rotation rate: wrong at small angles"),
        ("return eye(3, theta) - skew(theta) / 2 + c", "return eye(3, theta) + skew(theta) / 2 + c", "a bushing's rotation rate in the other frame"),
        ("stack(R1.T @ (moment + A1 @ cross(d, F[3:])), zeros(3, None, x))", "stack(R1.T @ moment, zeros(3, None, x))", "a bushing's force on body 1 has no lever"),
        ("k * (1 - l0 / sqrt(square)) + c * rate / square", "k * (1 - l0 / sqrt(square)) + c * rate", "a spring's damping grows with its length"),
        ("[_force_at(poses[0], p1, force), _force_at(poses[1], p2, -force)]", "[_force_at(poses[0], p1, force), _force_at(poses[1], p2, force)]", "a spring pulls both bodies the same way"),
        ("return stack(cross(p, f), f)", "return stack(-cross(p, f), f)", "moment of a force backwards"),
        ("stretch = sqrt(dot(d, d) + SMOOTHING) - f[\"length\"]", "stretch = sqrt(dot(d, d) + SMOOTHING)", "energy of a spring without its free length"),
        ("(value[:3], value[3:]) if f[\"follows\"] else (R.T @ value[:3], R.T @ value[3:])", "(value[:3], value[3:])", "a wrench always follows its body"),
        ("- level * (speed / f[\"smoothing\"]).tanh()", "+ level * (speed / f[\"smoothing\"]).tanh()", "friction drives"),
        ("-(f[\"stiffness\"] * (q - f[\"rest\"])) - f[\"damping\"] * v", "-(f[\"stiffness\"] * q) - f[\"damping\"] * v", "a torsion spring without its rest"),
        ("gdot = ca.jacobian(g, s)", "gdot = 2 * ca.jacobian(g, s)", "rate of a prescribed motion doubled"),
    ),
    *changes(
        "model/law.py", "closed_form/test_moreau.py",
        ("return level + where(speed <= AT_REST, more, 0.0)", "return level + 0 * more", "friction at rest is that of sliding"),
        ("        if low > high:", "        if False:", "limits the wrong way round pass"),
        ("((\"lower\", 1.0), (\"upper\", -1.0))", "((\"lower\", 1.0), (\"upper\", 1.0))", "an upper stop pulls"),
    ),
    *changes(
        "model/pose_stop.py", "closed_form/test_pose_stops.py",
        ("return arctan2(sqrt(dot(s, s) + CORNER), dot(a, turned))", "return sqrt(dot(s, s) + CORNER)", "the swing is the sine of its angle"),
        ("\"twist_lower\": Limit(twist_of, 1.0, -np.pi)", "\"twist_lower\": Limit(twist_of, -1.0, -np.pi)", "the lower limit of a twist pushes down"),
        ("ca.jtimes(gap, R, R @ skew(w)) + ca.jtimes(gap, p, R @ u)", "ca.jtimes(gap, R, R @ skew(w))", "a compliant stop of a position has no force"),
        ("R_F.T @ (r_M - r_F)", "r_M - r_F", "a position along the axes of the ground"),
    ),
    *changes(
        "model/expression_stop.py", "closed_form/test_pose_stops.py",
        ("return sign * f.function(t,", "return f.function(t,", "an upper limit of an expression is a lower one"),
        ("rate = rate - dot(F, twist)", "rate = rate + dot(F, twist)", "the damper of a compliant limit drives"),
    ),
    *changes(
        "model/law.py", "closed_form/test_joint_coordinates.py closed_form/test_ball_friction.py",
        ("found = tuple(tuple(range(k, k + 3)) for k in range(0, kind.nv, 3))", "return tuple((k,) for k in range(kind.nv))", "friction of a ball along each axis by itself"),
        ("places=(k,))", "places=(0,))", "a row along one coordinate acts along the first"),
    ),
    *changes(
        "model/force.py", "model/test_keys.py model/test_forces.py",
        ("own = {\"coefficients\": self.coefficients, \"offset\": np.array(self.offset)}", "own = {\"coefficients\": self.coefficients}", "key of a coupling without its offset"),
        ("on: list[Any] = list(self.on) if self.kind.on == \"bodies\" else [place(j) for j in self.on]", "on: list[Any] = []", "key of an element without what it acts on"),
    ),
    *changes(
        "model/model.py", "model/test_keys.py model/test_forces.py model/test_free_parameters.py",
        (" + self.gravity.tobytes())", ")", "key of a model without gravity"),
        ("joint.at.matrix.tobytes() + joint.child_at.matrix.tobytes()", "joint.at.matrix.tobytes()", "key of a model without a cut joint's child_at"),
        ("joint.at.matrix.tobytes() + joint.child_at.matrix.tobytes()", "joint.child_at.matrix.tobytes()", "key of a model without a cut joint's at"),
        ("h.update(element.digest(self._place))", "pass", "key of a model without its force elements"),
        ("h.update(digest_of_parts(self))", "pass", "key of a model without what is free"),
    ),
    *changes(
        "model/tree.py", "model/test_keys.py identity/test_dynamics.py agreement/test_loops_agreement.py",
        ("for a in (link.E, link.r, np.array(link.mass), link.com, link.I_C):", "for a in (link.E, link.r, np.array(link.mass), link.com):", "key of a model without its inertias"),
        ("for a in (link.E, link.r, np.array(link.mass), link.com, link.I_C):", "for a in (link.E, link.r, np.array(link.mass), link.I_C):", "key of a model without its centres of mass"),
        ("h.update(b\"armature\" + link.armature.tobytes())", "pass", "key of a model without armature"),
        ("{index}\".encode() + pose.position.tobytes() + np.ascontiguousarray(pose.rotation).tobytes())", "{index}\".encode() + pose.position.tobytes())", "key of a model without the axes of its bodies"),
    ),
    *changes(
        "model/inertia.py", "closed_form/test_solids.py model/test_inertia_rules.py model/test_bad_input.py",
        ("across=mass * length**2 / 12)", "across=mass * length**2 / 3)", "a rod's inertia about its end"),
        ("across = mass * (3 * radius**2 + length**2) / 12", "across = mass * (radius**2 + length**2) / 12", "a cylinder's inertia across"),
        ("np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])", "np.array([[xx, xy, yz], [xy, yy, xz], [yz, xz, zz]])", "products of inertia in another order"),
        ("if c > (a + b) * (1 + 1e-6) + 1e-12 * scale:", "if c > 2 * (a + b):", "the triangle rule allows twice"),
        ("if a < -1e-6 * scale:", "if a < -scale:", "negative moments of inertia are accepted"),
    ),
    *changes(
        "model/builder.py", "model/test_bad_input.py identity/test_joint_table.py",
        ("I = R @ I @ R.T", "I = R.T @ I @ R", "inertia axes transposed"),
        ("at, child_at = at @ axes, child_at @ axes", "at, child_at = at @ axes, child_at", "a joint's axis on its child is z"),
    ),
    *changes(
        "model/pose.py", "identity/test_joint_table.py model/test_bad_input.py identity/test_dynamics.py",
        ("Pose._of(self.position + self.rotation @ inner.position, self.rotation @ inner.rotation)", "Pose(self.position + inner.position, self.rotation @ inner.rotation)", "poses are chained without turning"),
        ("Pose._of(-(self.rotation.T @ self.position), ", "Pose._of(-self.position, ", "the inverse of a pose does not turn its position"),
    ),
    *changes(
        "model/parameter.py", "model/test_free_parameters.py model/test_keys.py agreement/test_parameters.py",
        ("{model.merge} {model.snapping} {[p.place for p in model.parameters]}", "{model.merge} {model.snapping}", "key of a model without the places of free numbers"),
        ("h.update(np.array([body.mass, *body.com, *body.inertia.ravel()]).tobytes())", "h.update(np.array([body.mass]).tobytes())", "key of a model without nominal centres and inertias", Equivalent("with free numbers the tree's digest, which has masses, centres and inertias of the links, is in the key too; of bodies that one link merges only their sum enters the structure, and the parts enter the graph")),
        ("self._refuse((values <= 0).any(-1), values, \"must be above 0\")", "pass", "a mass of zero is accepted"),
    ),
    *changes(
        "results/trajectory/store.py", "product/test_run_files.py product/test_simulate.py",
        ("self._tau = None if tau is None else np.asarray(tau, dtype=float)", "self._tau = None", "a stored batch without its drives"),
    ),
    *changes(
        "model/joint.py", "product/test_own_joint_and_force.py::test_a_kind_that_contradicts_itself_is_refused",
        ("claims, errors.call(", "(), errors.call(", "a joint kind that contradicts itself is accepted"),
    ),
    *changes(
        "model/joint.py", "identity/test_dynamics.py::test_regrouping_inertia_changes_no_joint_space_result agreement/test_formulations.py",
        ("part[[0, 4], [4, 0]] = I[0, 4]", "part[[0, 4], [4, 0]] = -I[0, 4]", "regrouped inertia of a hinge: wrong first moment"),
    ),
    *changes(
        "model/joint.py", "identity/test_joint_table.py model/test_assembly.py closed_form/test_mechanisms.py",
        ("4 * unskew(R) / (1 + R[0, 0] + R[1, 1] + R[2, 2] + FLIPPED)", "unskew(R)", "a rigid joint is closed when turned by half a turn"),
    ),
    *changes(
        "model/model.py", "model/test_keys.py",
        ("vars(self).update(state, memory={})", "vars(self).update(state)", "a pickled model has no memory"),
    ),
    *changes(
        "model/tree.py", "identity/test_dynamics.py::test_regrouping_inertia_changes_no_joint_space_result",
        ("kept[part == inertias[i]] = 0.0", "kept[:] = 0.0", "regrouping moves all inertia to the parent"),
    ),
    *changes(
        "model/tree.py", "identity/test_dynamics.py::test_momentum_FX_C1_and_centre_of_mass_are_sums_over_the_bodies",
        ("I_C = I_C + inertia_about_origin(m, c - com, I)", "I_C = I_C + I", "merged bodies without Steiner's term"),
        ("parts.append((body.mass, pose[b].position + R @ body.com, R @ body.inertia @ R.T))", "parts.append((body.mass, pose[b].position + R @ body.com, body.inertia))", "merged bodies with inertias in their own axes"),
    ),
    *changes(
        "model/tree.py", "identity/test_dynamics.py identity/test_joint_table.py",
        ("outline.append((base, j, joint.kind if forward else reversed_kind(joint.kind), placement))", "outline.append((base, j, joint.kind, placement))", "a joint met from its child's side is not reversed"),
    ),
    *changes(
        "model/tree.py", "identity/test_dynamics.py agreement/test_loops_agreement.py",
        ("body_link[far], body_pose[far] = base, placement @ M.inverse", "body_link[far], body_pose[far] = base, placement @ M", "a rigid joint's child is misplaced"),
    ),
    *changes(
        "model/tree.py", "agreement/test_formulations.py agreement/test_loops_agreement.py",
        ("above += [last if k == 0 else link.v.start + k - 1 for k in range(link.kind.nv)]", "above += [last for k in range(link.kind.nv)]", "coordinates of one joint do not know one another in the factorisation"),
    ),
    *changes(
        "model/parameter.py", "agreement/test_parameters.py model/test_free_parameters.py",
        ("first = sum(p.size for p in self.items[:at])", "first = at", "values of parameters at the places of others"),
    ),
]  # fmt: skip
