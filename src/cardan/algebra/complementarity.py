"""Complementarity problems of a few rows as straight-line text: which rows push, stick, slide or let go.

    u = b + W x          W (m, m) symmetric, not negative

    unilateral   x >= 0,  u >= 0,  x u = 0             a row that is not active has x = 0
    switched     u = 0                                 while it is active, else x = 0
    friction     |x| <= c,  u = 0 or x = -c u / |u|    one row, or several as a disc; c = constant + coefficient N(x)

`N` is the force of a unilateral row, or the length of a vector that is affine in x. An iteration is a sweep of block
Gauss-Seidel, which always leads on where a solution exists without friction, and a step of Newton's method on the
equations `x = projection of (x - u / W_ii)` (P. Alart, A. Curnier, Comput. Methods Appl. Mech. Eng. 92 (1991) 353-375),
which ends at rounding once the sweeps have found out which rows push and stick. The step is kept if it leaves less. If
rows depend on one another the forces are not unique; one solution is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from cardan.algebra.matrix import Matrix, Scalar, where

NO_ANSWER = 1e-12  # size of a row that no force moves, because others hold or drive it: any rate slides
SMALL_PIVOT = 1e-10  # of rows that are scaled to one on the diagonal: less means that they depend on one another
SHARE = 1e-8  # added to the diagonal of a disc that sticks: of rows that depend on one another the smallest force
TINY = 1e-300


@dataclass(frozen=True)
class FrictionRows:
    """Rows of friction that share a bound `constant + coefficient N`: one, or several as a disc or a ball.

    `N` is the force of the row `normal`; or `|R0 + R x|`, with `R0` (3,) and `R` (3, m), if they are given.
    """

    rows: tuple[int, ...]
    constant: Scalar = 0.0
    coefficient: Scalar = 0.0
    normal: int | None = None
    R0: Matrix | None = None
    R: Matrix | None = None

    def bound(self, x: Matrix) -> tuple[Scalar, Matrix]:
        """The bound at x, and its derivative (1, m)."""
        import casadi as ca

        N, slope = self.force(x), ca.SX(1, x.shape[0])
        if self.normal is not None:
            slope[self.normal] = where(N > 0, self.coefficient, 0.0)
            return self.constant + self.coefficient * where(N > 0, N, 0.0), slope
        if self.R is None or self.R0 is None:
            return self.constant + slope[0], slope
        return self.level(x), self.coefficient * ((self.R0 + self.R @ x).T @ self.R) / N

    def level(self, x: Matrix) -> Scalar:
        """The bound at x where the row `normal`, if there is one, pushes."""
        return self.constant + self.coefficient * self.force(x)

    def force(self, x: Matrix) -> Scalar:
        """`N` at x."""
        import casadi as ca

        if self.normal is not None:
            return x[self.normal]
        if self.R is None or self.R0 is None:
            return 0.0
        return ca.sqrt(ca.sumsqr(self.R0 + self.R @ x) + TINY)

    @property
    def is_constant(self) -> bool:
        """Whether the bound does not depend on x."""
        return self.normal is None and self.R is None


@dataclass(frozen=True)
class Complementarity:
    """A problem: `W` (m, m), `b` (m,), and what each row is. `active` (m,) is 1 for rows that take part, else 0."""

    W: Matrix
    b: Matrix
    unilateral: Sequence[int] = ()
    switched: Sequence[int] = ()
    friction: Sequence[FrictionRows] = ()
    active: Matrix | None = None
    before: Matrix | None = None
    """Rates (m,) whose rounding is in `b`; None if `b` is of their size."""
    size: Matrix = field(init=False)
    """The diagonal of `W`, never zero."""

    def __post_init__(self) -> None:
        """Take the diagonal of `W`."""
        import casadi as ca

        D = ca.diag(self.W)
        size = ca.vertcat(*(where(D[k] > 0, D[k], NO_ANSWER) for k in range(D.shape[0])))
        object.__setattr__(self, "size", size)

    @property
    def m(self) -> int:
        """Number of rows."""
        return int(self.b.shape[0])

    @property
    def is_direct(self) -> bool:
        """Whether one sweep solves it: no row has to do with another."""
        if self._is_one_contact:
            return True
        apart = self.W.sparsity().is_diag() or self.m < 2
        return apart and all(rows.is_constant and len(rows.rows) == 1 for rows in self.friction)

    @property
    def _is_one_contact(self) -> bool:
        return self.m == 2 and any(rows.normal is not None for rows in self.friction)

    def rate(self, x: Matrix) -> Matrix:
        """`u`."""
        return self.b + self.W @ x

    def _is_active(self, i: int) -> Any:
        return True if self.active is None else self.active[i]

    def _masked(self, i: int, value: Any) -> Any:
        return value if self.active is None else where(self.active[i], value, 0.0)

    def projected(self, x: Matrix, u: Matrix, rows: Sequence[int], friction: FrictionRows | None) -> list[Scalar]:
        """What the law of a block of rows makes of forces x at rates u; the same at a solution."""
        import casadi as ca

        if friction is None:
            (i,) = rows
            z = x[i] - u[i] / self.size[i]
            return [self._masked(i, z if i in self.switched else where(z > 0, z, 0.0))]
        c, _ = friction.bound(x)
        if len(rows) == 1:
            (i,) = rows
            return [ca.fmin(ca.fmax(x[i] - u[i] / self.size[i], -c), c)]
        z, length = self._disc(x, u, rows)
        shorter = where(length > c, c / (length + TINY), 1.0)
        return [shorter * z[k] for k in range(len(rows))]

    def _disc(self, x: Matrix, u: Matrix, rows: Sequence[int]) -> tuple[Matrix, Matrix]:
        """`x - u / w` of the rows of a disc, and its length; `w` is not less than their largest stiffness together."""
        import casadi as ca

        z = x[list(rows)] - u[list(rows)] / self._stiffness(rows)
        return z, ca.sqrt(ca.sumsqr(z))

    def _stiffness(self, rows: Sequence[int]) -> Matrix:
        """Largest eigenvalue of `W` of two rows; of n, a bound from the mean and the spread of all eigenvalues.

        H. Wolkowicz, G. P. H. Styan, Linear Algebra Appl. 29 (1980) 471-506.
        """
        import casadi as ca

        n, sizes = len(rows), self.size[list(rows)]
        mean = ca.sum1(sizes) / n
        spread = ca.sumsqr(sizes - mean) + sum(2 * self.W[i, k] ** 2 for i, k in combinations(rows, 2))
        return mean + ca.sqrt((n - 1) / n * spread)

    @property
    def blocks(self) -> list[tuple[tuple[int, ...], FrictionRows | None]]:
        """Rows that are solved together, in order, with their friction."""
        alone = [((i,), None) for i in (*self.unilateral, *self.switched)]
        return sorted([*alone, *((f.rows, f) for f in self.friction)], key=lambda block: block[0])

    def sweep(self, x: Matrix) -> Matrix:
        """One sweep of block Gauss-Seidel from x; a contact that slides in one direction is a block of two rows.

        Blocks of one row, and contacts that slide in one direction, are solved.
        """
        x = type(x)(x)
        planar = {f.normal: f for f in self.friction if f.normal is not None and len(f.rows) == 1}
        for rows, friction in self.blocks:
            if rows[0] in planar and friction is None:
                x = self._contact(x, planar[rows[0]])
            elif friction is not None and friction.R is not None and len(rows) == 1:
                x = self._pressed(x, friction)
            elif friction not in planar.values():
                new = self.projected(x, self.rate(x), rows, friction)
                for i, value in zip(rows, new, strict=True):
                    x[i] = value
        return x

    def _contact(self, x: Matrix, friction: FrictionRows) -> Matrix:
        """X with the forces of one contact that slides in one direction: open, sticking, or sliding either way."""
        import casadi as ca

        n, (t,) = friction.normal, friction.rows
        assert n is not None
        x = type(x)(x)
        x[n] = x[t] = 0
        b, W = self.rate(x), self.W
        c, mu = friction.constant, friction.coefficient
        det = W[n, n] * W[t, t] - W[n, t] * W[t, n]
        det = det + (SMALL_PIVOT**2 * self.size[n] * self.size[t]) * (det >= 0)
        stick = (W[n, t] * b[t] - W[t, t] * b[n]) / det, (W[t, n] * b[n] - W[n, n] * b[t]) / det
        held = ca.logic_and(stick[0] >= 0, ca.fabs(stick[1]) <= c + mu * stick[0])
        found: list[tuple[Any, Any, Any]] = [(held, *stick)]
        for sign in (1.0, -1.0):
            slope = W[n, n] + sign * mu * W[n, t]
            push = -(b[n] + sign * W[n, t] * c) / where(slope == 0, TINY, slope)
            force = sign * (c + mu * push)
            moves = -sign * (b[t] + W[t, n] * push + W[t, t] * force)
            found.append((ca.logic_and(push >= 0, moves >= 0), push, force))
        loose = ca.fmin(ca.fmax(-b[t] / self.size[t], -c), c)  # friction of a contact that is open
        is_open = self._masked_not(n, b[n] + W[n, t] * loose >= 0)
        push, force = found[0][1:]
        for valid, *case in reversed(found):
            push, force = where(valid, case[0], push), where(valid, case[1], force)
        x[n], x[t] = where(is_open, 0.0, push), where(is_open, loose, force)
        return x

    def _pressed(self, x: Matrix, friction: FrictionRows) -> Matrix:
        """X with the force of one row whose bound depends on it: sliding either way, or else sticking.

        A force y against sliding has `y = c + mu |r + a x|`, whose square is quadratic. Of two answers, which there are
        where friction presses more than it is worth, the smaller one is taken.
        """
        import casadi as ca

        (i,), c, mu = friction.rows, friction.constant, friction.coefficient
        assert friction.R is not None and friction.R0 is not None
        x = type(x)(x)
        x[i] = 0
        a, r, b = friction.R[:, i], friction.R0 + friction.R @ x, self.rate(x)[i]
        A, C = 1 - mu * mu * ca.sumsqr(a), c * c - mu * mu * ca.sumsqr(r)
        force = -b / self.size[i]  # sticking
        for sign in (1.0, -1.0):
            B = sign * mu * mu * ca.dot(r, a) - c
            square = B * B - A * C
            root = ca.sqrt(where(square > 0, square, 0.0))
            below = where(B > 0, B + root, where(A == 0, TINY, A))
            y = where(B > 0, -C, root - B) / below
            moves = ca.logic_and(sign * b > self.W[i, i] * y, ca.logic_and(y >= c, square >= 0))
            force = where(moves, -sign * y, force)
        x[i] = force
        return x

    def _masked_not(self, i: int, value: Any) -> Any:
        import casadi as ca

        return value if self.active is None else ca.logic_or(ca.logic_not(self.active[i]), value)

    def residual(self, x: Matrix) -> Matrix:
        """How far x is from a solution: the largest change of energy, `W_ii` times the square of a change of force."""
        import casadi as ca

        u, largest = self.rate(x), ca.SX(1, 1)
        for rows, friction in self.blocks:
            for i, value in zip(rows, self.projected(x, u, rows, friction), strict=True):
                largest = ca.fmax(largest, self.size[i] * (x[i] - value) ** 2)
        return largest

    def scale(self, x: Matrix) -> Matrix:
        """What `residual` is compared with: the largest of `W_ii x_i^2`, `b_i^2 / W_ii` and that of rates before."""
        import casadi as ca

        rates = self.b if self.before is None else ca.fmax(ca.fabs(self.b), ca.fabs(self.before))
        return ca.fmax(ca.mmax(self.size * x * x), ca.mmax(rates * rates / self.size))

    def newton(self, x: Matrix) -> Matrix:
        """X after one step of Newton's method."""
        import casadi as ca

        m, u = self.m, self.rate(x)
        G, r = ca.SX(m, m), ca.SX(m, 1)
        for rows, friction in self.blocks:
            if friction is None:
                (i,) = rows
                pushes = self._masked(i, ca.SX(1) if i in self.switched else x[i] - u[i] / self.size[i] > 0)
                G[i, :] = where(pushes, self.W[i, :] / self.size[i], _unit(m, i))
                r[i] = where(pushes, -u[i] / self.size[i], -x[i])
                continue
            c, slope = friction.bound(x)
            if len(rows) == 1:
                (i,) = rows
                z = x[i] - u[i] / self.size[i]
                sticks, sign = ca.fabs(z) <= c, where(z > 0, 1.0, -1.0)
                G[i, :] = where(sticks, self.W[i, :] / self.size[i], _unit(m, i) - sign * slope)
                r[i] = where(sticks, -u[i] / self.size[i], sign * c - x[i])
                continue
            z, length = self._disc(x, u, rows)
            w = self._stiffness(rows)
            sticks, n = length <= c, z / (length + TINY)
            both = ca.vertcat(*(_unit(m, i) for i in rows))
            W = self.W[list(rows), :]
            held = W / w + SHARE * both
            across = (c / (length + TINY)) * (ca.SX.eye(len(rows)) - n @ n.T)
            slips = both - n @ slope - across @ (both - W / w)
            for k, i in enumerate(rows):
                G[i, :] = where(sticks, held[k, :], slips[k, :])
                r[i] = where(sticks, -u[i] / w, c * n[k] - x[i])
        return x + _solved(G, r)

    def iteration(self, x: Matrix) -> tuple[Matrix, Matrix]:
        """X after two sweeps and, where they leave less, one or two steps of Newton's method; and the residual."""
        swept = self.sweep(x)
        if self.is_direct or self.m == 1:
            return swept, self.residual(swept)
        swept = self.sweep(swept)
        jumped = self.newton(swept)
        best, least = swept, self.residual(swept)
        for tried in (jumped, self.newton(jumped)):
            left = self.residual(tried)
            better = left <= least  # false for NaN
            best, least = where(better, tried, best), where(better, left, least)
        return best, least


def _unit(m: int, i: int) -> Matrix:
    import casadi as ca

    row = ca.SX(1, m)
    row[i] = 1
    return row


def _solved(G: Matrix, r: Matrix) -> Matrix:
    """Solve `G x = r` by elimination in order; where a pivot vanishes, so does its part of the answer."""
    m = r.shape[0]
    G, r = type(G)(G), type(r)(r)
    inverse = []
    for k in range(m):
        p = G[k, k]
        inverse.append(p / (p * p + SMALL_PIVOT**2))
        for i in range(k + 1, m):
            factor = G[i, k] * inverse[k]
            G[i, k + 1 :] = G[i, k + 1 :] - factor * G[k, k + 1 :]
            r[i] = r[i] - factor * r[k]
    x = type(r)(m, 1)
    for k in reversed(range(m)):
        x[k] = (r[k] - G[k, k + 1 :] @ x[k + 1 :]) * inverse[k] if k + 1 < m else r[k] * inverse[k]
    return x
