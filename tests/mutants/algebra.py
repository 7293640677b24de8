# ruff: noqa: E501
"""Mutants of `algebra`: matrices, rotations, 6-D vectors, factorisations."""

from __future__ import annotations

from tests.mutants.mutant import Equivalent, Mutant, changes

ALGEBRA = "identity/test_algebra.py"

MUTANTS: list[Mutant] = [
    *changes(
        "algebra/tetrahedron.py", "closed_form/test_particles_in_space.py",
        ("np.trace(I_C) / 2 * np.eye(3) - I_C", "np.trace(I_C) * np.eye(3) - I_C", "second moments: the trace is not halved"),
        ("own = 2 * np.diag(B) - B.sum(axis=1)", "own = np.diag(B)", "vertices keep the mass of their edges"),
        ("np.concatenate([own, 4 * B[i, j]])", "np.concatenate([own, 2 * B[i, j]])", "middles of edges have half their mass"),
    ),
    *changes(
        "algebra/rotation.py", ALGEBRA,
        ("[[0, -z, y], [z, 0, -x], [-y, x, 0]]", "[[0, z, y], [-z, 0, -x], [-y, x, 0]]", "skew: wrong sign of z"),
        ("vector(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]) / 2", "vector(A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1])", "unskew: not halved"),
        ("matrix([[1, 0, 0], [0, c, -s], [0, s, c]])", "matrix([[1, 0, 0], [0, c, s], [0, -s, c]])", "turn about x the other way"),
        ("matrix([[c, 0, s], [0, 1, 0], [-s, 0, c]])", "matrix([[c, 0, -s], [0, 1, 0], [s, 0, c]])", "turn about y the other way"),
        ("turn_z(rpy[2]) @ turn_y(rpy[1]) @ turn_x(rpy[0])", "turn_x(rpy[0]) @ turn_y(rpy[1]) @ turn_z(rpy[2])", "roll, pitch, yaw in the other order"),
        ("k = 2 / dot(q, q)", "k = 2", "a quaternion that is not of unit length is not normalised"),
        ("yz - wx], [xz - wy", "yz + wx], [xz - wy", "rotation of a quaternion: wrong sign of w x"),
        ("a[0] * r + b[0] * p + cross(p, r)", "a[0] * r + b[0] * p - cross(p, r)", "quaternion product in the other order"),
        ("vector(a[0] * b[0] - dot(p, r))", "vector(a[0] * b[0] + dot(p, r))", "quaternion product: wrong sign of its scalar"),
        ("(sin(angle / 2) / angle) * u)", "(sin(angle / 2) / angle / 2) * u)", "quaternion of a rotation vector: half the axis"),
        ("sign = where(q[0] < 0, -1.0, 1.0)", "sign = 1.0", "logarithm of a quaternion takes the long way round"),
        ("(2 * half * half) * (skew(u) @ skew(u))\n\n\ndef rotation_log", "(half * half) * (skew(u) @ skew(u))\n\n\ndef rotation_log", "Rodrigues: half of the square term"),
        ("entries[1 + j] = E[i][j] + E[j][i]", "entries[1 + j] = E[i][j] - E[j][i]", "quaternion of a rotation: wrong where the trace is small"),
        ("larger = E[i][i] > pivot", "larger = E[i][i] < pivot", "quaternion of a rotation: the smallest pivot"),
        ("(1 / 5040 - square * (1 / 362880", "(1 / 540 - square * (1 / 362880", "integral of a rotation: wrong series"),
        ("(1 - sin(angle) / angle) / square)\n    return eye(3, u) + (2", "(1 - cos(angle) / angle) / square)\n    return eye(3, u) + (2", "integral of a rotation: wrong at large angles"),
        ("np.column_stack([first, np.cross(axis, first), axis])", "np.column_stack([np.cross(axis, first), first, axis])", "frame of an axis is left-handed"),
        ("quaternion_product(q, stack(vector(0 * w[0]), w)) / 2", "quaternion_product(stack(vector(0 * w[0]), w), q) / 2", "rate of a quaternion with the angular velocity in ground axes"),
    ),
    *changes(
        "algebra/linsolve.py", ALGEBRA,
        ("d = d - L[j][k] * W[j][k]", "d = d - L[j][k] * L[j][k]", "L D L^T: pivots without D"),
        ("w = w - W[i][k] * L[j][k]", "w = w + W[i][k] * L[j][k]", "L D L^T: wrong sign below the diagonal"),
        ("X[i, :] = X[i, :] - factor.L[k][i] * X[k, :]", "X[i, :] = X[i, :] - factor.L[i][k] * X[k, :]", "back substitution with L instead of its transpose"),
        ("work[i, j] = work[i, j] - L[k][i] * work[k, j]", "work[i, j] = work[i, j] + L[k][i] * work[k, j]", "factor along the tree: wrong sign"),
        ("for k in reversed(range(n)):\n        for i in _path(ancestor[k], ancestor) if ancestor[k] >= 0 else []:\n            x[i]", "for k in range(n):\n        for i in _path(ancestor[k], ancestor) if ancestor[k] >= 0 else []:\n            x[i]", "solve along the tree from the root outwards"),
        ("work[i, j] - l_ip * u_pj if (i, j) in work else -l_ip * u_pj", "work[i, j] - l_ip * u_pj if (i, j) in work else l_ip * u_pj", "sparse L U: wrong sign of fill-in"),
        ("left.isdisjoint(after.get(k, ()))", "True", "sparse L U ignores which pivots must come first"),
        ("x[p] = x[p] - u_pj * x[j]", "x[p] = x[p] - u_pj * x[p]", "sparse L U: wrong back substitution"),
    ),
    *changes(
        "algebra/spatial.py", f"{ALGEBRA} identity/test_exercises.py",
        ("return block([[w, zeros(3, 3, v)], [u, w]])", "return block([[w, u], [zeros(3, 3, v), w]])", "v x of motion vectors is that of forces"),
        ("return block([[w, u], [zeros(3, 3, v), w]])", "return block([[w, zeros(3, 3, v)], [u, w]])", "v x* of forces is that of motion vectors"),
        ("block([[-n, -u], [-u, zeros(3, 3, f)]])", "block([[n, -u], [-u, zeros(3, 3, f)]])", "crf_bar: wrong sign of the moment"),
        ("[-skew(r), one]]", "[skew(r), one]]", "shift of the origin the other way"),
        ("Transform(tuple(F.T for F in reversed(self.factors)))", "Transform(tuple(F.T for F in self.factors))", "transpose of a product without changing the order"),
        ("a - s * t, c * t - e, c * t - b, d + s * t", "a - s * t, c * t - b, c * t - e, d - s * t", "planar shortcut of a congruence: wrong entry"),
        ("new[i, k], new[j, k] = c * B[i, k] - s * B[j, k]", "new[i, k], new[j, k] = c * B[i, k] + s * B[j, k]", "planar shortcut of a congruence: wrong sign out of the plane"),
        ("[B.T, E.T]])", "[B, E.T]])", "inverse of a transform: lower block not transposed"),
        ("I_C + m * (skew(c) @ skew(c).T)", "I_C - m * (skew(c) @ skew(c).T)", "Steiner's term with the wrong sign"),
        ("a_O = a[3:] + cross(w, v[3:])", "a_O = a[3:]", "inertial force without the acceleration of the moving origin"),
        ("return stack(J @ wd + cross(w, J @ w) + cross(mc, a_O), f)", "return stack(J @ wd + cross(mc, a_O), f)", "inertial force without the gyroscopic moment"),
        ("vector(I[2, 4], I[0, 5], I[1, 3])", "vector(I[1, 5], I[0, 5], I[1, 3])", "first moment: wrong sign of its x"),
        ("return dot(v, I @ v) / 2", "return dot(v, I @ v)", "kinetic energy not halved"),
        ("if len(column) != 1 or abs(column[0][1]) != 1.0:", "if len(column) != 1:", "a scaled axis is taken for a selected coordinate", Equivalent("where Ia S = 0, a column of S that is any multiple of a unit vector annihilates that row and column of Ia as well")),
    ),
    *changes(
        "algebra/plane.py", "closed_form/test_particles.py",
        ("return vector(-a[1], a[0])", "return vector(a[1], -a[0])", "quarter turn the other way"),
        ("nu * d[1] + lam * d[0]", "nu * d[1] - lam * d[0]", "a point of the body: wrong sign across its line"),
        ("moment(d, r) / square  # AT(7)", "moment(r, d) / square  # AT(7)", "lam with the wrong sign"),
        ("/ (I0 - m3 * (r3.T @ r3))  # AT(1)", "/ I0  # AT(1)", "mass of particle 2 from the whole inertia"),
        ("(2 * I0 - m * l * lG) / l**2  # AT(1)", "(2 * I0 + m * l * lG) / l**2  # AT(1)", "rod as particles: wrong mass at its end"),
    ),
    *changes(
        "algebra/matrix.py", ALGEBRA,
        ("np.where(np.abs(value - nearest) <= tolerance, nearest + 0.0, value)", "np.where(np.abs(value - nearest) <= 1e6 * tolerance, nearest + 0.0, value)", "snap rounds more than its tolerance"),
        ("np.triu(a) + np.triu(a, 1).T", "np.triu(a) + np.triu(a).T", "mirrored doubles the diagonal"),
        ("return a.T @ b if is_symbol(a) or is_symbol(b) else a @ b", "return a.T @ a if is_symbol(a) or is_symbol(b) else a @ b", "scalar product of symbols with itself"),
    ),
    *changes(
        "algebra/free_number.py", "model/test_free_parameters.py agreement/test_parameters.py",
        ("a, b = (other, self) if turned else (self, other)", "a, b = (self, other)", "1 - p becomes p - 1"),
        ("return isinstance(other, FreeNumber) and bool(ca.is_equal(self.graph, other.graph, 8))", "return bool(self.nominal == nominal_of(other))", "a free number equals a constant of its nominal value"),
        ("FreeNumber(-self.graph, -self.nominal)", "FreeNumber(-self.graph, self.nominal)", "negation keeps the nominal value"),
    ),
    *changes(
        "algebra/complementarity.py", "identity/test_complementarity.py",
        ("B = sign * mu * mu * ca.dot(r, a) - c", "B = -c", "friction that presses itself slides with another force"),
        ("force = where(moves, -sign * y, force)", "pass", "friction that presses itself always sticks"),
        ("across = (c / (length + TINY)) * (ca.SX.eye(len(rows)) - n @ n.T)", "across = 0 * n @ n.T", "Newton's steps do not turn sliding"),
    ),
]  # fmt: skip
