# ruff: noqa: E501
"""Mutants of `structure`: assembly, choice of rows, projection, redundancy, keys of kernels."""

from __future__ import annotations

from tests.mutants.mutant import Equivalent, Mutant, changes

MUTANTS: list[Mutant] = [
    *changes(
        "structure/assemble.py", "model/test_assembly.py closed_form/test_mechanisms.py",
        ("moving[model.v_slice(joint)] = False", "moving[model.v_slice(joint)] = True", "held joints move"),
        ("step[free] = -J.T @ np.linalg.solve", "step[free] = J.T @ np.linalg.solve", "steps away from the constraints"),
        ("missing = beta - (J @ v[..., None])[..., 0]", "missing = -(J @ v[..., None])[..., 0]", "rates of prescribed motions are ignored"),
        ("worst = max(gaps, key=lambda name: gaps[name])", "worst = min(gaps, key=lambda name: gaps[name])", "the error names the joint with the smallest gap"),
        ("if not (left <= 1e-8 * speed).all():", "if False:", "rates that break a constraint are accepted"),
    ),
    *changes(
        "structure/row_sets.py", "agreement/test_row_sets.py",
        ("if np.all((independent >= INDEPENDENT) & (missing <= SPANNED)):", "if np.all(independent >= INDEPENDENT):", "rows left out that are not spanned are not noticed"),
        ("if np.all((independent >= INDEPENDENT) & (missing <= SPANNED)):", "if True:", "rows are chosen once"),
        ("return bool((found >= GOOD / 10).all())", "return True", "one choice of rows is said to serve everywhere"),
        ("again = self._kernel(k)(*(x[chosen == k] for x in flat), threads=threads)", "again = self._kernel(0)(*(x[chosen == k] for x in flat), threads=threads)", "another choice of rows is made and not used"),
    ),
    *changes(
        "structure/dynamics.py", "model/test_keys.py",
        (" rows {rows} loaded {loaded}\"", " loaded {loaded}\"", "key of a kernel without its kept rows"),
        (" rows {rows} loaded {loaded}\"", " rows {rows}\"", "key of a kernel without its ports", Equivalent("the ports are part of the entry's own digest (`machines.build`), and a kernel with wrenches has one port more")),
        ("_KERNELS.find(model, (formulation.key, what, loaded), make)", "_KERNELS.find(model, (formulation.key, loaded), make)", "reactions and multipliers are remembered in one place"),
    ),
    *changes(
        "structure/kernels.py", "model/test_keys.py agreement/test_drives.py agreement/test_parameters.py model/test_memory.py",
        ("hashlib.sha256(f\"{model.key} {facts}\".encode())", "hashlib.sha256(facts.encode())", "key of a kernel without its model"),
        ("_TREE.find(model, (found.key, name), lambda", "_TREE.find(model, (found.key, \"\"), lambda", "quantities of a tree are remembered in one place"),
    ),
    *changes(
        "formulation/large/mechanics.py", "agreement/test_large_mechanisms.py",
        ("b = -rows.gamma", "b = rows.gamma", "the accelerations of connections have the wrong sign"),
    ),
    *changes(
        "structure/projection.py", "product/test_simulate.py identity/test_rows.py agreement/test_own_constraints.py",
        ("return self.plus(q, -change[:, 0], *parameters), v - change[:, 1]", "return self.plus(q, change[:, 0], *parameters), v - change[:, 1]", "positions are projected the wrong way"),
        ("return self.plus(q, -change[:, 0], *parameters), v - change[:, 1]", "return self.plus(q, -change[:, 0], *parameters), v", "velocities are not projected"),
        ("return dq - self.rates(q, off[:, 0], *parameters), dv - off[:, 1]", "return 0 * dq, 0 * dv", "the error along the constraints is not controlled"),
        ("NEWTON_STEPS = 3", "NEWTON_STEPS = 0", "samples are not projected"),
    ),
    *changes(
        "structure/assemble.py", "model/test_assembly.py::test_prescribed_motion_sets_position_and_rate model/test_assembly.py",
        ("q, project_velocity(model, q, v, moving, t)", "q, project_velocity(model, q, v, moving, 0.0)", "rates of prescribed motions at time zero"),
    ),
    *changes(
        "structure/assemble.py", "product/test_simulate.py agreement/test_row_sets.py",
        ("return np.asarray(np.abs(phi).max(axis=-1, initial=0.0) >= OPENED)", "return np.zeros(q.shape[:-1], dtype=bool)", "an opened loop is not noticed"),
    ),
    *changes(
        "structure/assemble.py", "model/test_free_parameters.py",
        ("if rank > usual:", "if False:", "values of parameters that make redundant constraints independent are accepted"),
    ),
    *changes(
        "structure/kernels.py", "agreement/test_parameters.py",
        ("return (model.parameters.nominal if model.values is None else model.values,)", "return (model.parameters.nominal,)", "values of free parameters are ignored"),
    ),
    *changes(
        "structure/projection.py", "closed_form/test_singular_positions.py product/test_events.py identity/test_trajectory.py product/test_simulate.py",
        ("c.J @ v - c.beta", "c.J @ v", "projected velocities forget prescribed rates"),
    ),
    *changes(
        "structure/projection.py", "identity/test_trajectory.py product/test_simulate.py",
        ("time = (t,) if self.model.depends_on_time else ()", "time = (0 * t,) if self.model.depends_on_time else ()", "projection at time zero"),
    ),
    *changes(
        "structure/redundancy.py", "model/test_assembly.py::test_a_locked_mechanism_says_so",
        ("if found.freedoms == 0 and not moved and model.nv > 0:", "if False:", "a locked mechanism is accepted"),
    ),
    *changes(
        "structure/redundancy.py", "model/test_conflicts.py::test_two_motions_that_conflict_are_refused model/test_assembly.py",
        ("return len(pivots(J)) < len(pivots(J[fixed])) + fixed.count(False)", "return False", "motions that conflict are accepted"),
    ),
    *changes(
        "structure/redundancy.py", "model/test_conflicts.py::test_a_loop_without_inertia_is_refused",
        ("if values.size and values[0] <= 1e-12", "if values.size and values[0] <= -1", "a loop without inertia is accepted"),
    ),
    *changes(
        "structure/redundancy.py", "model/test_redundancy.py closed_form/test_mechanisms.py",
        ("kutzbach = 6 * model.nb - removed", "kutzbach = 6 * (model.nb - 1) - removed", "Gruebler's count without one body"),
        ("tied = np.abs(null @ null.T) > 1e-6", "tied = np.abs(null @ null.T) > 0.6", "groups of dependent constraints are incomplete"),
    ),
    *changes(
        "structure/kernels.py", "model/test_keys.py::test_a_large_tree_is_looped_unless_numbers_are_free",
        ("return many and not (model.parameters or model.laws or model.controllers)", "return many and not (model.laws or model.controllers)", "a large model with free numbers is looped"),
    ),
    *changes(
        "structure/assemble.py", "identity/test_singular_derivatives.py",
        ("if slope <= STEEP or flipped(model, found, t) is None:", "if True:", "a joint turned over counts as closed"),
    ),
    *changes(
        "structure/digits.py", "identity/test_singular_derivatives.py",
        ("error = float((largest_error(answers) + np.abs(other - clean)).max(initial=0.0))", "error = float(largest_error(answers).max(initial=0.0))", "what is added to matrices does not count in derivatives"),
        ("    kernel.watch(look, CLOSELY)", "    kernel.watch(look)", "only some of the first calls with derivatives are looked at"),
    ),
    *changes(
        "structure/component_sums.py", "identity/test_large_implicit.py",
        ("if axis == \"tau\" and not cls.outline.driven:", "if False:", "drives act once for every joint and once for every coupling"),
        ("np.bincount(self.places, values, self.size)", "np.bincount(self.places, 2 * values, self.size)", "components are added twice"),
    ),
    *changes(
        "structure/law_choice.py", "closed_form/test_modes.py agreement/test_laws_in_formulations.py",
        ("good = np.where(unilateral & closed, x > x_least, True)", "good = np.where(unilateral & closed, x > -np.inf, True)", "stops pull"),
        ("good &= np.where(friction & closed, reach < bound - x_least, True)", "good &= True", "friction always sticks"),
        ("    return kept", "    return rows", "rows of a latch that say the same are all closed"),
    ),
    *changes(
        "structure/law_state.py", "closed_form/test_modes.py",
        ("second = choose(self.table, replace(problem, b=s.u + e * s.u))", "second = choose(self.table, replace(problem, b=s.u))", "impacts at events without restitution"),
        ("impulsive[:, r] = contact[:, n] if n >= 0 else", "impulsive[:, r] = False if n >= 0 else", "impacts at events without friction"),
    ),
]  # fmt: skip
