# ruff: noqa: E501
"""Mutants of `analysis`: balance of forces, its derivatives, searches, stability, paths."""

from __future__ import annotations

from tests.mutants.mutant import Equivalent, Mutant, changes

TESTS = "closed_form/test_equilibrium.py agreement/test_equilibrium.py product/test_equilibrium.py"
IDENTIFIED = "identity/test_identification.py closed_form/test_base_parameters.py"
MUTANTS: list[Mutant] = [
    *changes(
        "analysis/identification/standard_parameters.py", IDENTIFIED,
        ("return np.concatenate([m, m * c, I_C + m * _steiner(c)], axis=-1)", "return np.concatenate([m, m * c, I_C], axis=-1)", "inertias are not about the body's origin"),
        ("D[4:, 0] = _steiner(h) / m**2", "D[4:, 0] = -_steiner(h) / m**2", "the derivative by mass has a wrong sign"),
    ),
    *changes(
        "analysis/identification/regressor.py", IDENTIFIED,
        ("rest = value - np.einsum(\"...rp,...p->...r\", W, reference)", "rest = 0 * value", "known wrenches are lost"),
        ("return np.einsum(\"...vr,...v->...r\", self.motions, forces)", "return forces[..., : self.motions.shape[-1]]", "drives of dependent joints are lost"),
    ),
    *changes(
        "analysis/identification/base_parameters.py", IDENTIFIED,
        ("sign = \"\" if table[found[0]] > 0 else \"-\"", "sign = \"\"", "a negative dimension has a wrong sign in the name"),
        ("K * sizes[dropped] / sizes[kept][:, None]", "K", "coefficients are in units of the columns"),
    ),
    *changes(
        "analysis/identification/nearest_physical.py", IDENTIFIED,
        ("g[k] = -1 / (theta[k] - lower[k])", "g[k] = 1 / (theta[k] - lower[k])", "bounds of friction attract"),
    ),
    *changes(
        "analysis/identification/estimate.py", IDENTIFIED,
        ("return float(\"inf\")\n        return float(np.sqrt(max(weights", "pass\n        return float(np.sqrt(max(weights", "parameters told in combination only get an interval"),
        ("row = np.tile(1 / spread, len(d.q))", "row = np.tile(0.5 / spread, len(d.q))", "intervals are too wide"),
    ),
    *changes(
        "analysis/identification/excitation.py", IDENTIFIED,
        ("most = np.minimum(most, limits.acceleration / np.abs(a).max(axis=1))", "most = most * 3", "limits of rates and accelerations are not kept"),
    ),
    *changes(
        "analysis/statics/balance.py", TESTS,
        ("return np.array([length_of(model) if unit == \"m/s\" else 1.0 for unit in units])", "return np.ones(model.nv)", "metres and radians weigh alike, however small the mechanism is"),
        ("a = -_times(P, parts.value[:, parts.rows(3)])", "a = 0 * a", "accelerations that loops ask for are left out"),
        ("r = r + J.T @ given[\"lam\"]", "r = r + J.T @ (0 * given[\"lam\"])", "the curvature of constraints is left out of the stiffness"),
        ("return np.asarray(v + _times(P, (beta - _times(J, v)) / scale[:, 0]))", "return v", "dependent rates do not follow"),
        ("dq = dq - G @ (parts.of(1, \"q\") @ dq + by_parameters(1))", "dq = dq", "a held coordinate that varies leaves the loop open", Equivalent("loops are closed again after every step; only the prediction is worse")),
        ("return _times(np.linalg.pinv(open_[:, :, list(driven)], rcond=RANK), _times(open_, r))", "return r[:, list(driven)]", "drives do not bear what other joints of a loop need"),
    ),
    *changes(
        "analysis/statics/stability.py", "closed_form/test_equilibrium.py",
        ("left[:, rest, :w], left[:, rest, own] = states.G_z, states.G_w", "left[:, rest, :w] = states.G_z", "rates of variables do not depend on those of the mechanism"),
    ),
    *changes(
        "analysis/linear/linearise.py", "closed_form/test_closed_loops.py",
        ("if not linear.AB[..., own].any() or set(own) <= set(linear.order):", "if True:", "a sampled loop is linearised as if it were open"),
    ),
    *changes(
        "analysis/statics/newton.py", TESTS,
        ("kicked = small & ((h < -SOFT * most).any(axis=-1))", "kicked = small & False", "a search for a stable equilibrium rests at an unstable one"),
        ("descends[active[turns]], radius[active[turns]] = True, RADIUS", "descends[active[turns]], radius[active[turns]] = False, RADIUS", "a search that is stuck does not go along the forces"),
    ),
    *changes(
        "analysis/statics/stability.py", TESTS,
        ("C = np.swapaxes(W / D2, 1, 2) @ _turning(point) @ W", "C = 0 * np.swapaxes(W / D2, 1, 2) @ W", "axes that turn with a body are taken as fixed"),
        ("return M, parts.of(0, \"v\") - M @ point.P @ parts.of(3, \"v\")", "return M, 0 * M", "gyroscopic forces are left out"),
        ("unstable = np.where(conservative, (own < -soft).sum(axis=1), unstable)", "unstable = (own < -soft).sum(axis=1)", "follower forces are judged by stiffness alone"),
    ),
    *changes(
        "analysis/statics/continuation.py", TESTS,
        ("tangent = Vt[rank:].T @ along", "tangent = -Vt[rank:].T @ along", "the path is followed backward"),
        ("return (TURNING if abs(U[:, -1] @ last) > 1e-5 * weight else BIFURCATION), critical", "return TURNING, critical", "bifurcations are called turning points"),
        ("others = null - np.outer(null @ node.tangent, node.tangent)", "others = np.outer(null @ node.tangent, node.tangent)", "a branch is the path itself"),
        ("new = self.landed(node, bound) or new", "new = new", "a path ends beyond its range"),
    ),
]  # fmt: skip
