# ruff: noqa: E501
"""Mutants of `integrate`: methods, events, the step's control."""

from __future__ import annotations

from tests.mutants.mutant import Equivalent, Mutant, changes

ORDER = "identity/test_order.py"
MOTION = "identity/test_motion_derivatives.py"
BRIDGES = "product/test_autodiff_runs.py"
CHANGES = "closed_form/test_events.py closed_form/test_variables.py"
EVENTS = "product/test_events.py product/test_simulate.py identity/test_samples_and_breaks.py"
RUNS = "product/test_simulate.py"

MUTANTS: list[Mutant] = [
    *changes(
        "integrate/explicit/card_run.py", "product/test_simulate_gpu.py",
        ("further = ended & (arrival.t > targets.last[numbers])", "further = ended & False", "on a card no sample where a run ends early"),
        ("self.origin[rows] = part.origin", "pass", "on a card fixed steps after an event are counted from the start"),
        ("short = np.flatnonzero(kept.count < kept.t.shape[1])", "short = np.zeros(0, dtype=int)", "samples that a system did not reach are left as memory was"),
        ("part.s[\"outcome\"] = np.where(ended, float(Outcome.RESTING), part.s[\"outcome\"])", "pass", "on a card systems go on after they stopped"),
    ),
    *changes(
        "machines/cuda/samples.py", "product/test_simulate_gpu.py",
        ("kept = self.new(f\"fcmp oge {s} {time}, {stop}\")", "kept = self.new(f\"fcmp ogt {s} {time}, {stop}\")", "the last step before a break is not kept"),
        ("there = self.new(f\"fcmp ole {s} {at}, {reach}\")", "there = self.new(f\"fcmp ogt {s} {at}, {at}\")", "a sample beside another one takes a step that is kept"),
    ),
    *changes(
        "integrate/explicit/step.py", "product/test_simulate_gpu.py",
        ("return total, more - (total - high)", "return total, more * 0", "pairs lose what rounding takes"),
        ("c = projection.at(step.t + step.h, q, given.parameters).beside(projection, q, q_lo, given.parameters)", "c = projection.at(step.t + step.h, q, given.parameters)", "residuals of pairs at their high parts"),
    ),
    *changes(
        "integrate/explicit/stepper.py", "identity/test_samples_and_breaks.py",
        ("self.s = chosen_states(kept, part, self.s)", "self.s = part", "samples inside a step that was chosen change the steps"),
    ),
    *changes(
        "integrate/explicit/tableau.py", ORDER,
        ("np.array([1, 2, 2, 1]) / 6)", "np.array([1, 1, 3, 1]) / 6)", "weights of order 4 changed"),
        ("(44 / 45, -56 / 15, 32 / 9)", "(44 / 45, -54 / 15, 32 / 9)", "a coefficient of Dormand and Prince changed"),
        ("_B4 = (5179 / 57600, 0", "_B4 = (5079 / 57600, 0", "error estimate of order 0"),
        ("return np.asarray(self.A.sum(axis=1))", "return np.zeros(len(self.b))", "stages at the time of the step's start"),
    ),
    *changes(
        "integrate/explicit/step.py", f"{RUNS} {ORDER}",
        ("good = ca.logic_and(finite, e <= 1)", "good = ca.logic_and(finite, e <= 1e6)", "steps with too large an error are accepted"),
        ("(s.t + h, s.t_lo)", "(s.t + 0.5 * h, s.t_lo)", "time runs half as fast"),
        ("h=where(running, where(met, h, h_next), s.h)", "h=where(running, h_next, s.h)", "an event is sought in a step of another length"),
    ),
    *changes(
        "integrate/events.py", EVENTS,
        ("own = {1: up, -1: down, 0: ca.logic_or(up, down)}[int(directions[k])]", "own = ca.logic_or(up, down)", "direction of events ignored in a step"),
        ("return np.where(directions > 0, up, np.where(directions < 0, down, up | down))", "return up | down", "direction of events ignored where they are located"),
        ("own = {1: up, -1: down, 0: ca.logic_or(up, down)}[int(directions[k])]", "own = {1: down, -1: up, 0: ca.logic_or(up, down)}[int(directions[k])]", "directions of events exchanged"),
        ("up = ca.logic_and(before[k] < 0, after[k] >= 0)", "up = ca.logic_and(before[k] < 0, after[k] > 1e-3)", "an event is met late"),
        ("mid = np.where(b != a, hi - b * (hi - lo) / (b - a), 0.5 * (lo + hi))", "mid = hi", "an event is not located inside its step"),
        ("for k in reversed(range(after.shape[0])):", "for k in range(after.shape[0]):", "of several events the last is named first", Equivalent("the event named in a step is overwritten where it is located (`BatchStepper._locate`)")),
    ),
    *changes(
        "formulation/instant.py", EVENTS,
        ("node.R @ (node.v[3:] + cross(node.v[:3], at))", "node.R @ node.v[3:]", "velocity of a point in an event is that of its link's origin"),
    ),
    *changes(
        "integrate/stepper.py", CHANGES,
        ("self._look_back(np.flatnonzero(self.jumped & at_event), t)", "pass", "no look back after a jump"),
        ("p[:, self.states] = self._states(s)", "pass", "states of the model are not in the parameters of an arrival"),
    ),
    *changes(
        "integrate/transition.py", CHANGES,
        ("NEGLIGIBLE = 1e-9", "NEGLIGIBLE = 1e-2", "accumulation is recognised too early"),
    ),
    *changes(
        "integrate/sundials/solver.py", CHANGES,
        ("values[np.abs(values) <= self.zones] = 0.0", "pass", "SUNDIALS meets an event that rests at zero again by rounding"),
    ),
    *changes(
        "integrate/driver.py", CHANGES,
        ("v[at], p[at] = jump.v, jump.p", "v[at] = jump.v", "parameters do not change at events"),
    ),
    *changes(
        "results/energy_balance.py", CHANGES,
        ("W = W + by_jumps[:, :n]", "W = W + 0.0", "energy of changes is not counted"),
    ),
    *changes(
        "integrate/kernel.py", "model/test_keys.py",
        ("directions = [event.direction for event in self.events]", "directions: list[int] = []", "key of a march without event directions"),
        ("self.model.key, *self.facts, name, directions, graph", "self.model.key, *self.facts, name, directions", "key of a march without its events"),
        ("self.model.key, *self.facts, name, directions, graph", "self.model.key, name, directions, graph", "key of a march without its method"),
        (" {self.rows} {self.positions}\"", "\"", "key of an implicit integrator without its rows"),
    ),
    *changes(
        "integrate/stepper.py", f"{EVENTS} closed_form/test_alpha_oscillator.py",
        ("self.s[\"outcome\"][self.resting] = Outcome.RESTING", "pass", "systems at rest go on after a break"),
    ),
    *changes(
        "integrate/driver.py", "identity/test_samples_and_breaks.py product/test_simulate.py",
        ("aside = BREAK * max(abs(t), abs(start))", "aside = -BREAK * max(abs(t), abs(start))", "a break is stepped on from the wrong side"),
        ("self.count[i], self.outcome[i] = first, Outcome.OPEN_LOOP", "self.outcome[i] = Outcome.ARRIVED", "samples with an open loop are kept"),
    ),
    *changes(
        "integrate/alpha/step.py", "closed_form/test_alpha_oscillator.py identity/test_alpha.py",
        ("alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), rho / (rho + 1)", "alpha_m, alpha_f = (2 * rho - 1) / (rho + 1), 1 / (rho + 1)", "alpha_f of another method"),
        ("gamma = 0.5 - alpha_m + alpha_f", "gamma = 0.5 + alpha_m - alpha_f", "gamma: order 1"),
        ("0.25 * (gamma + 0.5) * (gamma + 0.5)", "0.25 * (gamma + 0.5)", "beta: not the damping asked for"),
        ("v = p.v + h * ((1 - c.gamma) * p.a + c.gamma * a)", "v = p.v + h * a", "velocities of order 1"),
        ("h * p.v + h * h * ((0.5 - c.beta) * p.a + c.beta * z)", "h * p.v + h * h * 0.5 * z", "positions of order 1"),
        ("J @ v[:own] - rows.beta", "J @ v[:own]", "prescribed rates are ignored"),
        ("size <= where(s.k < PATIENCE, TOLERANCE, ROUGH)", "size <= 1e-3", "Newton's method ends too early"),
        ("crossed = ca.logic_and(ca.logic_and(converged, crossed), control.stop_at_events != 0)", "crossed = ca.logic_and(ca.logic_and(converged, crossed), 0)", "events do not stop a lane"),
    ),
    *changes(
        "integrate/stepper.py", "product/test_events.py identity/test_alpha.py closed_form/test_alpha_oscillator.py",
        ("self.s[name] = np.where(per_system(at_event, new), new, self.s[name])", "pass", "steps do not begin again at events"),
    ),
    *changes(
        "integrate/stepper.py", "identity/test_samples_and_breaks.py",
        ("self.s[name] = np.where(per_system(at_event, new), new, self.s[name])", "self.s[name] = new", "an event of one system disturbs the others"),
    ),
    *changes(
        "integrate/alpha/step.py", "product/test_events.py identity/test_alpha.py closed_form/test_alpha_oscillator.py",
        ("other = s[\"vdot\"] + ratio * (s[\"a\"] - s[\"vdot\"])", "other = s[\"a\"]", "alpha keeps `a` where the step's length changes"),
    ),
    *changes(
        "integrate/alpha/large.py", "identity/test_large_implicit.py",
        ("rows.J @ c.wide(s[\"v\"]) - rows.beta", "rows.J @ c.wide(s[\"v\"])", "prescribed rates are ignored in large mechanisms"),
        ("v, vdot = rates_after(c, p, x.z - pull, h)", "v, vdot = rates_after(c, p, x.z, h)", "the correction of positions moves velocities"),
        ("if stops and crossed.any():", "if False:", "events do not stop a large mechanism"),
    ),
    *changes(
        "integrate/sundials/equations.py", "closed_form/test_laws_by_implicit_methods.py",
        ("closed_gaps(of, at))\n    yields", "0 * closed_gaps(of, at))\n    yields", "`gear` holds closed gaps by their rates alone"),
        ("power = power + at.power", "power = power + 0 * at.power", "the work of rows with laws is not in the balance of `gear`"),
    ),
    *changes(
        "integrate/integrators.py", "closed_form/test_laws_by_implicit_methods.py",
        ("falls_exactly = False", "falls_exactly = True", "multistep methods count bounces lower than their tolerance"),
    ),
    *changes(
        "integrate/sundials/large.py", "identity/test_large_implicit.py",
        ("if not c.has_mass:", "if False:", "every joint has the rates of its links once more"),
        ("out[-1] = yp[-1] + found[\"P\"][0]", "out[-1] = yp[-1]", "the work of a large mechanism is not integrated"),
    ),
    *changes(
        "integrate/explicit/tableau.py", "model/test_keys.py::test_marches_are_told_apart",
        ("return repr((self.A.tolist(), self.b.tolist(), e, self.semi_implicit))", "return repr((self.A.tolist(), e, self.semi_implicit))", "key of a method without its weights"),
    ),
    *changes(
        "integrate/explicit/step.py", "model/test_keys.py",
        ("tree_rows = kept_rows(self.model.unbound, SPATIAL)", "tree_rows = ()", "key of a march without the rows it projects with"),
    ),
    *changes(
        "integrate/explicit/step.py", "model/test_keys.py::test_marches_are_told_apart",
        ("rows {self.rows} {tree_rows} baumgarte {self.baumgarte}", "rows {self.rows} {tree_rows}", "key of a march without Baumgarte's rate"),
    ),
    *changes(
        "integrate/explicit/step.py", "identity/test_order.py",
        ("q = graphs.plus(graphs.split(step.q)[0], step.h * v, given)", "q = q", "semi-implicit Euler moves with the old velocities"),
    ),
    *changes(
        "integrate/explicit/step.py", "closed_form/test_single_body.py identity/test_trajectory.py identity/test_order.py agreement/test_gear.py",
        ("q[at] = q[at] / ca.norm_2(q[at])", "q[at] = q[at]", "quaternions are not normalised"),
    ),
    *changes(
        "integrate/explicit/step.py", "closed_form/test_singular_positions.py",
        ("LARGEST_CORRECTION, PART_OF_TOLERANCE, NOISE = 1e-10, 1e-2, 100.0", "LARGEST_CORRECTION, PART_OF_TOLERANCE, NOISE = 1e10, 1e10, 1e10", "any correction of velocities is accepted"),
    ),
    *changes(
        "integrate/alpha/stepper.py", "model/test_keys.py",
        (", self.layout.key, self.layout.lent", ", self.layout.lent", "key of alpha without its unknowns"),
    ),
    *changes(
        "integrate/stepper.py", "identity/test_samples_and_breaks.py",
        ("self.s = chosen_states(kept, part, self.s)", "self.s = part", "samples inside a step change the steps"),
        ("self.origin, self.reached = np.where(at_event, self.s[\"t\"], self.origin), -np.inf", "self.reached = -np.inf", "fixed steps are not counted from the event"),
    ),
    *changes(
        "integrate/stepper.py", "identity/test_samples_and_breaks.py identity/test_order.py",
        ("STRETCH = 1.01", "STRETCH = 3.0", "the last step before a stop is three times as long"),
    ),
    *changes(
        "integrate/events.py", "identity/test_samples_and_breaks.py::test_an_event_on_a_break_is_met product/test_attack.py::test_an_event_at_a_break_is_met",
        ("return np.where((before != 0) & (np.sign(now) != np.sign(before)), np.copysign(5e-324, before), now)", "return now", "an event passed while a run begins again is lost"),
    ),
    *changes(
        "integrate/stepper.py", "identity/test_samples_and_breaks.py::test_an_event_on_a_break_is_met product/test_attack.py::test_an_event_at_a_break_is_met",
        ("self.s[\"g\"] = keep_side(before, self.s[\"g\"])", "pass", "an event passed while a run begins again is lost"),
    ),
    *changes(
        "integrate/explicit/step.py", "identity/test_samples_and_breaks.py product/test_simulate.py product/test_integrators.py",
        ("h = ca.fmin(s.h, control.max_step)", "h = s.h", "the longest step allowed is ignored"),
    ),
    *changes(
        "integrate/explicit/step.py", "product/test_simulate.py",
        ("return where(h * STRETCH >= left, left, h)", "return h", "steps beyond the end"),
    ),
    *changes(
        "integrate/stepper.py", "product/test_events.py::test_short_steps_before_breaks_are_counted",
        ("kept = (part[\"outcome\"] != self.s[\"outcome\"]) | (t >= stop)", "kept = part[\"outcome\"] != self.s[\"outcome\"]", "the short step before a break is not kept"),
    ),
    *changes(
        "integrate/explicit/step.py", "closed_form/test_signals.py",
        ("return stack(self.rates(s.q, s.v, given), s.xdot)", "return stack(self.rates(s.q, s.v, given), 0 * s.xdot)", "the first stage forgets what states read of reactions"),
    ),
    *changes(
        "integrate/inputs.py", "closed_form/test_signals.py",
        ("s.held[name] = column_of(found[name])", "pass", "sampled controllers of one interval see each other late"),
    ),
    *changes(
        "integrate/explicit/step.py", "closed_form/test_baumgarte.py",
        ("(c.J @ v - c.beta) + pull**2 * c.phi", "(c.J @ v) + pull**2 * c.phi", "Baumgarte without beta"),
        ("(c.J @ v - c.beta) + pull**2 * c.phi", "(c.J @ v - c.beta)", "Baumgarte without the position residual"),
        ("return rates, a - c.smallest(", "return rates, a + c.smallest(", "Baumgarte pushes away from the constraints"),
    ),
    *changes(
        "integrate/whole.py", "identity/test_large_implicit.py::test_alpha_takes_the_same_steps identity/test_large_implicit.py::test_gear_s_jacobian_by_products_is_the_one_written_out",
        ("self.at.append((colour[of], rows))", "self.at.append((0 * of, rows))", "all columns are read from the first product"),
    ),
    *changes(
        "integrate/stepper.py", "product/test_simulate.py::test_too_many_steps product/test_events.py::test_no_more_steps_than_allowed",
        ("s = self._less_spent(s, end)", "pass", "too many steps are not told"),
    ),
    *changes(
        "integrate/explicit/sweep.py", MOTION,
        ("dh = np.where((step.ends == FIXED_END)[:, None], -dt, 0.0)", "dh = np.zeros_like(dt)", "after an event, a step to a fixed time has a constant length"),
        ("dh = -dg / g[\"rate\"][:, None]", "dh = -dg", "the event's rate along the motion is left out"),
        ("after[\"t\"] = wt + t - np.where(step.ends == FIXED_END, wh, 0.0)", "after[\"t\"] = wt + t", "backward, a step to a fixed time has a constant length"),
        ("total[met] += mu[:, None] * g[name]", "pass", "the event's own parameters are left out"),
        ("bar[\"t\"][rows] += t[:, 0]", "pass", "backward, that a jump depends on time is left out"),
        ("after = x @ np.swapaxes(D, 1, 2)", "after = x[..., 1 + self.nv :]", "a jump is not differentiated"),
    ),
    *changes(
        "integrate/modes/slopes.py", f"{MOTION}::test_against_differences_of_the_same_steps closed_form/test_hybrid_derivatives.py",
        ("right = -((1 + e) * du +", "right = -(du +", "the restitution is left out of the derivatives of an impact"),
        ("D = dYP + s.Y @ dP", "D = s.Y @ dP", "that directions of impulses change with the state is left out"),
        ("right[:, r] -= (d * P[:, n])[:, None] * dmu[:, r]", "pass", "impulses of friction do not change with its coefficient"),
    ),
    *changes(
        "integrate/changes.py", f"{MOTION}::test_against_differences_of_the_same_steps",
        ("moved[:, :, : 1 + nv] += rest[:, :, : 1 + nv]", "pass", "impulses along loops do not change with the configuration"),
    ),
    *changes(
        "integrate/explicit/derivative.py", MOTION,
        ("return (*self.place[1:], *([\"a\"] if self.tableau.adaptive else []))", "return self.place[1:]", "accelerations are not carried from step to step"),
        ("seen = [where(active, y, 0.0) for y in w]", "seen = w", "systems with fewer steps in a block count some twice"),
        ("near - ca.fmax(last - near, 0.0)", "near", "a singular position between two steps is not seen"),
    ),
    *changes(
        "results/page/pull.py", "product/test_live_page.py",
        ("(R.T @ (f[\"target\"] - r) - p)", "(f[\"target\"] - r - p)", "page: the pointer's spring is in ground axes"),
        ("stack(cross(p, force), force)", "stack(0 * force, force)", "page: the pointer pulls at the origin of a body"),
    ),
    *changes(
        "results/page/steps.py", "product/test_live_page.py",
        ("[\"restoring\"] if rule == NEWTON", "[\"force\", \"restoring\"] if rule == NEWTON", "page: forces of Newton's impacts count twice"),
        ("p[at] = value", "p[at] = p[at]", "page: sampled variables stay as they were"),
    ),
    *changes(
        "results/page/events.py", "product/test_live_page.py",
        ("v[at] = value", "v[at] = v[at]", "page: events change no rates"),
        ("p[at] = value", "p[at] = p[at]", "page: events change no parameters"),
    ),
    *changes(
        "results/page/program.py", "product/test_live_page.py",
        ("links.sort(key=lambda link: model.joints[link.joint].parent != GROUND)", "links.sort(key=lambda link: model.joints[link.joint].parent == GROUND)", "page: the coupler is held instead of the crank"),
        ("p[: len(values)] = values", "pass", "page: values of free parameters are nominal"),
        ("kept = {model.rows[row].name for row in independent_rows(model)} | {coupling.name for coupling in more}", "kept = {model.rows[row].name for row in independent_rows(model)}", "page: nothing is held while loops are closed"),
    ),
    *changes(
        "results/motion_derivatives.py", MOTION,
        ("back_q @ (phi[\"q\"] @ dq0 + phi_p)", "back_q @ (phi[\"q\"] @ dq0)", "the start does not follow the dimensions"),
        ("rate[\"v\"] @ dv0 + rate[\"q\"] @ dq + rate_p", "rate[\"v\"] @ dv0 + rate_p", "velocities at the start do not follow the positions"),
    ),
    *changes(
        "results/motion_operation.py", BRIDGES,
        ("np.add.at(total, (np.arange(B)[:, None], run.kept), each)", "total[np.arange(B)[:, None], run.kept] = each", "of the weights of samples at rest one is kept"),
        ("to_velocity(run.q0, d[\"q0\"] / run.length, *run.p)[0]", "to_velocity(run.q0, d[\"q0\"], *run.p)[0]", "the length of a quaternion in the start is left out"),
        ("np.clip(times - t[at], 0.0, h[at])", "h[at]", "samples of a run in steps lie at the ends of steps"),
    ),
    *changes(
        "integrate/moreau/step.py", "closed_form/test_moreau.py",
        ("u = J @ v - contacts.beta + h / 2 * gamma", "u = J @ v - contacts.beta", "rates of rows with laws without the turning of their directions"),
        ("found.append(rows.phi[k] <= TOUCHES if own is Law.UNILATERAL else ca.SX(switched))", "found.append(ca.SX(switched))", "gaps that are open push"),
    ),
]  # fmt: skip
