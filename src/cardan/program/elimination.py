"""Solving a symmetric positive semidefinite matrix of small blocks: `A = L D L^T` by rounds of a schedule.

Which blocks of `A` are there is known, and with it the order of elimination, the fill-in and the place of every block;
tables hold them. The steps are recorded once for each combination of block sizes, so the code does not grow with the
matrix. Each column of blocks `k` is eliminated by

    D_k = L_k d_k L_k^T        B_ik = A_ik L_k^-T        A_ij -= B_ik d_k^-1 B_jk^T,  i and j after k

in place: `D_k` becomes `L_k` below its diagonal and `d_k^-1` on it, `A_ik` becomes `B_ik`. The blocks of the unit
lower factor are `B_ik d_k^-1`. A column with at most two blocks below takes one step, which is all that chains of loops
need; other columns take one step for each product.

Where rows lose rank at some configuration, `A` is singular there, and a pivot is nothing but rounding. So `d^-1` is
`d / (d^2 + e^2)`, with a little of the diagonal of `A` as `e`. That is bounded, and `1 / d` to rounding where the row
is independent of those before it (docs/decisions/0077).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import CardanError
from cardan.program.fronts import FactorRound, SolveRound, plan_fronts
from cardan.program.schedule import Round

if TYPE_CHECKING:
    import casadi

Rounds = Round | FactorRound | SolveRound

CLEARED = 72  # numbers that one step sets to zero, at most: two blocks of six rows
MANY = 10_000  # products of blocks past which dense fronts serve
SMALL = 4000  # block rows up to which the order given is compared with that of minimum degree


@dataclass(frozen=True, eq=False)
class Elimination:
    """Where the blocks of a matrix are in the state, and the rounds that factor it and solve with it.

    Blocks lie by columns. `diagonal[i]` is the offset of the block (i, i), of which the lower half is read; `below`
    those of the blocks (i, j), by (i, j) where i comes after j in `order`; `right[i] + c * stride` that of block row i
    of the c-th right side, which `solve` replaces by the solution. `clear` sets all blocks of the matrix to zero. After
    `factor` the pivots of block row i are from `pivots[i]` on. All of it takes `size` numbers of state, from `first`
    on.
    """

    first: int
    size: int
    order: tuple[int, ...]
    diagonal: tuple[int, ...]
    below: dict[tuple[int, int], int]
    right: tuple[int, ...]
    pivots: tuple[int, ...]
    stride: int
    clear: tuple[Round, ...]
    factor: tuple[Rounds, ...]
    solve: tuple[Rounds, ...]


def eliminate(
    sizes: Sequence[int], pairs: Iterable[tuple[int, int]], first: int = 0, *, eps: float = 1e-13, sides: int = 1,
    fronts: bool | None = None,
) -> Elimination:  # fmt: skip
    """Plan the elimination of a symmetric matrix with block rows of these `sizes`; `pairs` of them touch.

    `eps` is the share of the diagonal below which a pivot counts less and less. `sides` is the number of right sides.
    `fronts` chooses dense fronts, which serve where the factor fills up, or steps of blocks; None takes what is better.
    """
    touching = {(max(pair), min(pair)) for pair in pairs if pair[0] != pair[1]}
    if any(not 0 <= j < i < len(sizes) for i, j in touching) or any(n < 1 for n in sizes):
        raise CardanError(f"elimination: {len(sizes)} block rows, of at least one row each, do not have these pairs")
    order, columns = _order(len(sizes), touching)
    products = sum(len(column) * (len(column) + 1) // 2 for column in columns if len(column) > 2)
    if fronts is None:
        fronts = products > MANY
    if not fronts:
        return _Plan(sizes, order, columns, first, eps, sides).elimination()
    place = np.argsort(order)
    own: list[list[int]] = [[] for _ in order]
    for i, j in touching:
        own[min(place[i], place[j])].append(int(max(place[i], place[j])))
    plan = _FrontPlan(sizes, order, [sorted(column) for column in own], first, eps, sides)
    plan.set_fronts(columns)
    return plan.elimination()


# the order


def _order(count: int, pairs: set[tuple[int, int]]) -> tuple[list[int], list[list[int]]]:
    """An order with little fill-in, and for each block row, in this order, those below it in the factor.

    The order given serves where no other has less fill-in: neighbours in it lie side by side in memory.
    """
    if not pairs:
        return list(range(count)), [[] for _ in range(count)]
    degree = _minimum_degree(count, pairs)
    found = _fill(degree, pairs)
    assert found is not None
    fill = sum(map(len, found))
    if count <= SMALL:
        given = _fill(list(range(count)), pairs, fill)
        if given is not None:
            return list(range(count)), given
    postorder = _postorder(found)
    order = [degree[k] for k in postorder]
    again = _fill(order, pairs)
    assert again is not None
    return order, again


def _minimum_degree(count: int, pairs: set[tuple[int, int]]) -> list[int]:
    """The order of multiple minimum degree, which SuperLU finds for a matrix with this pattern."""
    from scipy.sparse import coo_array
    from scipy.sparse.linalg import splu

    i, j = np.array(sorted(pairs)).T
    degree = np.bincount(i, minlength=count) + np.bincount(j, minlength=count)
    rows, columns = np.concatenate([i, j, np.arange(count)]), np.concatenate([j, i, np.arange(count)])
    values = np.concatenate([np.full(2 * len(i), -1.0), degree + 1.0])
    matrix = coo_array((values, (rows, columns)), shape=(count, count)).tocsc()
    factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return [int(k) for k in np.argsort(factors.perm_c)]


def _fill(order: Sequence[int], pairs: set[tuple[int, int]], most: int | None = None) -> list[list[int]] | None:
    """Places in `order`, rising, of the blocks below each place in the factor; None if they are more than `most`."""
    place = {block: k for k, block in enumerate(order)}
    below: list[set[int]] = [set() for _ in order]
    for i, j in pairs:
        a, b = place[i], place[j]
        below[min(a, b)].add(max(a, b))
    total, columns = 0, []
    for mine in below:
        column = sorted(mine)
        columns.append(column)
        total += len(column)
        if most is not None and total > most:
            return None
        if column:
            below[column[0]].update(column[1:])
    return columns


def _postorder(columns: list[list[int]]) -> list[int]:
    """The places so that all of a subtree of the elimination tree lie side by side; the fill-in stays the same."""
    children: list[list[int]] = [[] for _ in columns]
    roots: list[int] = []
    for k, column in enumerate(columns):
        (children[column[0]] if column else roots).append(k)
    result: list[int] = []
    waiting = roots[::-1]
    while waiting:  # parents first, children last to first: reversed, a postorder
        k = waiting.pop()
        result.append(k)
        waiting += children[k]
    return result[::-1]


# the rounds

Row = tuple[tuple[Any, ...], list[int]]  # the name of a step with the sizes of its blocks, and offsets of its states


class _Plan:
    """Memory, steps and tables under construction; blocks are numbered by their place in the order."""

    def __init__(
        self, sizes: Sequence[int], order: list[int], columns: list[list[int]], first: int, eps: float, sides: int
    ) -> None:
        self.order, self.columns, self.first, self.eps, self.sides = order, columns, first, eps, sides
        self.n = [int(sizes[block]) for block in order]
        self.at: dict[tuple[int, int], int] = {}
        end = first
        for k, column in enumerate(columns):
            for i in (k, *column):
                self.at[i, k] = end
                end += self.n[i] * self.n[k]
        # then vectors: the right sides, and the squares of `e`, which the pivots replace
        self.matrix_end, self.rows = end, sum(self.n)
        self.start = [0, *np.cumsum(self.n).tolist()]
        self.end = end + (sides + 1) * self.rows

    def _vector(self, number: int) -> list[int]:
        """Offsets of the parts of a vector; the right sides come first, then the pivots."""
        return [self.matrix_end + number * self.rows + at for at in self.start]

    def elimination(self) -> Elimination:
        """The whole."""
        place, right, pivots = np.argsort(self.order), self._vector(0), self._vector(self.sides)
        return Elimination(
            self.first,
            self.end - self.first,
            tuple(self.order),
            tuple(self.at[k, k] for k in place),
            {(self.order[i], self.order[k]): at for (i, k), at in self.at.items() if i != k},
            tuple(right[k] for k in place),
            tuple(pivots[k] for k in place),
            self.rows,
            self._clear(),
            self._factor(),
            self._solve(),
        )

    def _clear(self) -> tuple[Round, ...]:
        """Column by column, long columns in parts."""
        rows: list[Row] = []
        for k, column in enumerate(self.columns):
            at, end = self.at[k, k], self.at[k, k] + self.n[k] * sum(self.n[i] for i in (k, *column))
            while at < end:
                rows.append((("clear", min(CLEARED, end - at)), [at]))
                at += CLEARED
        return (self._round(rows),) if rows else ()

    def _round(self, rows: list[Row]) -> Round:
        """A round of steps, each named with the sizes of its blocks, and the offsets of its states."""
        import casadi as ca

        number: dict[tuple[Any, ...], int] = {}
        calls: list[casadi.Function] = []
        width = max(len(offsets) for _, offsets in rows)
        table = np.zeros((len(rows), 2 + width), dtype=np.int64)
        for row, (what, offsets) in enumerate(rows):
            if what not in number:
                number[what] = len(calls)
                symbols, results = _STEPS[what[0]](*what[1:])
                none = [ca.SX(0, 1)] * (width - len(symbols))
                calls.append(ca.Function(what[0].replace(" ", "_"), [ca.SX(0, 1), *symbols, *none], [*results, *none]))
            table[row, 0] = number[what]
            table[row, 2 : 2 + len(offsets)] = offsets
        return Round(tuple(calls), (), (), table, states=width)

    def _factor(self) -> tuple[Rounds, ...]:
        rows: list[Row] = []
        n, at, pivots = self.n, self.at, self._vector(self.sides)
        for k, column in enumerate(self.columns):
            own = [at[k, k], pivots[k]]
            blocks = [at[i, k] for i in column]
            if len(column) <= 2:
                targets = [at[i, j] for b, j in enumerate(column) for i in column[b:]]
                rows.append((("column", n[k], *(n[i] for i in column)), [*own, *blocks, *targets]))
                continue
            rows.append((("column", n[k]), own))
            rows += [(("scale", n[k], n[i]), [own[0], at[i, k]]) for i in column]
            for b, j in enumerate(column):
                rows.append((("square", n[k], n[j]), [own[0], at[j, k], at[j, j]]))
                rows += [
                    (("update", n[k], n[j], n[i]), [own[0], at[j, k], at[i, k], at[i, j]]) for i in column[b + 1 :]
                ]
        return (self._least(), self._round(rows)) if rows else ()

    def _least(self) -> Round:
        """Keep the squares of `e`, which come from the diagonal of the matrix, where the pivots will be."""
        pivots = self._vector(self.sides)
        return self._round([(("least", self.eps, n), [self.at[k, k], pivots[k]]) for k, n in enumerate(self.n)])

    def _solve(self) -> tuple[Rounds, ...]:
        """Forward and backward with every right side."""
        return tuple(r for side in range(self.sides) for r in self._both_ways(side)) if self.n else ()

    def _both_ways(self, vector: int) -> tuple[Rounds, ...]:
        """Forward and backward with a vector."""
        forward: list[Row] = []
        backward: list[Row] = []
        n, at, x = self.n, self.at, self._vector(vector)
        for k, column in enumerate(self.columns):
            few = len(column) <= 2
            now = column if few else []
            blocks = [at[i, k] for i in now]
            states, kinds = [at[k, k], x[k], *blocks, *(x[i] for i in now)], (n[k], *(n[i] for i in now))
            forward.append((("forward", *kinds), states))
            backward.append((("backward", *kinds), states))
            for i in () if few else column:
                below = [at[k, k], x[k], at[i, k], x[i]]
                forward.append((("lower", n[k], n[i]), below))
                backward.append((("upper", n[k], n[i]), below))
        return self._round(forward), self._round(backward[::-1])


class _FrontPlan(_Plan):
    """The same by dense fronts; blocks only where the matrix has them."""

    def set_fronts(self, columns: list[list[int]]) -> None:
        """Plan the fronts for the columns of the factor."""
        self.fronts, self.end = plan_fronts(self.n, columns, self.at, self.end, self._vector(self.sides)[0])

    def _factor(self) -> tuple[Rounds, ...]:
        return self._least(), FactorRound(self.fronts)

    def _both_ways(self, vector: int) -> tuple[Rounds, ...]:
        return (SolveRound(self.fronts, self._vector(vector)[0]),)


# the steps: symbols of the states, and what is written to them

Step = tuple[list[Any], list[Any]]


def _symbols(**shapes: tuple[int, int]) -> list[Any]:
    import casadi as ca

    return [ca.SX.sym(name, rows * columns) for name, (rows, columns) in shapes.items()]


def _matrix(x: Any, n: int) -> Any:
    """The matrix of n rows of which x has the columns."""
    import casadi as ca

    return ca.reshape(x, n, x.shape[0] // n)


def _factors(D: Any) -> tuple[Any, Any]:
    """`L` (unit lower) and `d^-1` of a factored diagonal block."""
    import casadi as ca

    return ca.tril(D, False) + ca.SX.eye(D.shape[0]), ca.diag(D)


def _none(like: Any) -> Any:
    """Nothing is written."""
    import casadi as ca

    return ca.SX(like.shape[0], 1)


def _lower(M: Any) -> Any:
    """The columns of the lower half; the rest is not written."""
    import casadi as ca

    return ca.vec(ca.tril(M))


def _scaled(L: Any, A: Any) -> Any:
    """`A L^-T` with `L` unit lower."""
    import casadi as ca

    B = ca.SX(A)
    for j in range(A.shape[1]):
        for k in range(j):
            B[:, j] -= B[:, k] * L[j, k]
    return B


def _least(eps: float, n: int) -> Step:
    """The squares of `e` for a block: a little of its diagonal, and one where it is zero, for a row that vanishes."""
    import casadi as ca

    D, e2 = _symbols(D=(n, n), e2=(n, 1))
    diagonal = ca.diag(_matrix(D, n))
    return [D, e2], [_none(D), (eps * diagonal) ** 2 + (diagonal == 0)]


def _column(n: int, *rows: int) -> Step:
    """Factor a diagonal block, scale the blocks below it, and take their products from the blocks of the rest."""
    import casadi as ca

    D, e2, *A = _symbols(D=(n, n), e2=(n, 1), **{f"A{i}": (m, n) for i, m in enumerate(rows)})
    pairs = [(i, j) for j in range(len(rows)) for i in range(j, len(rows))]
    rest = _symbols(**{f"R{i}{j}": (rows[i], rows[j]) for i, j in pairs})
    L, d, inverse = _ldl(_matrix(D, n), e2)
    B = [_scaled(L, _matrix(a, m)) for a, m in zip(A, rows, strict=True)]
    factor = ca.tril(L, False) + ca.diag(inverse)
    left = []
    for (i, j), R in zip(pairs, rest, strict=True):
        M = _matrix(R, rows[i]) - (B[i] @ ca.diag(inverse)) @ B[j].T
        left.append(_lower(M) if i == j else ca.vec(M))
    return [D, e2, *A, *rest], [_lower(factor), d, *map(ca.vec, B), *left]


def _ldl(D: Any, e2: Any) -> tuple[Any, Any, Any]:
    """`L` (unit lower), `d` and `d^-1` of a dense symmetric block, of which the lower half is read."""
    import casadi as ca

    n = D.shape[0]
    L, d, inverse = ca.SX.eye(n), ca.SX(n, 1), ca.SX(n, 1)
    B = ca.SX(n, n)  # L d
    for j in range(n):
        d[j] = D[j, j] - sum(B[j, k] * L[j, k] for k in range(j))
        inverse[j] = d[j] / (d[j] ** 2 + e2[j])
        for i in range(j + 1, n):
            B[i, j] = D[i, j] - sum(B[i, k] * L[j, k] for k in range(j))
            L[i, j] = B[i, j] * inverse[j]
    return L, d, inverse


def _scale(n: int, m: int) -> Step:
    import casadi as ca

    D, A = _symbols(D=(n, n), A=(m, n))
    return [D, A], [_none(D), ca.vec(_scaled(_factors(_matrix(D, n))[0], _matrix(A, m)))]


def _minus(n: int, m: int) -> Step:
    import casadi as ca

    D, B, R = _symbols(D=(n, n), B=(m, n), R=(m, m))
    b = _matrix(B, m)
    product = (b @ ca.diag(_factors(_matrix(D, n))[1])) @ b.T
    return [D, B, R], [_none(D), _none(B), _lower(_matrix(R, m) - product)]


def _update(n: int, m: int, p: int) -> Step:
    import casadi as ca

    D, B, C, R = _symbols(D=(n, n), B=(m, n), C=(p, n), R=(p, m))
    product = (_matrix(C, p) @ ca.diag(_factors(_matrix(D, n))[1])) @ _matrix(B, m).T
    return [D, B, C, R], [_none(D), _none(B), _none(C), ca.vec(_matrix(R, p) - product)]


def _forward(n: int, *rows: int) -> Step:
    D, x, *rest = _sides(n, rows)
    L, inverse = _factors(_matrix(D, n))
    B, y = rest[: len(rows)], rest[len(rows) :]
    z = _substituted(L, x)
    left = [yi - _matrix(b, m) @ (inverse * z) for b, m, yi in zip(B, rows, y, strict=True)]
    return [D, x, *rest], [_none(D), z, *map(_none, B), *left]


def _backward(n: int, *rows: int) -> Step:
    D, z, *rest = _sides(n, rows)
    L, inverse = _factors(_matrix(D, n))
    B, x = rest[: len(rows)], rest[len(rows) :]
    w = z - sum((_matrix(b, m).T @ xi for b, m, xi in zip(B, rows, x, strict=True)), 0 * z)
    return [D, z, *rest], [_none(D), _substituted_back(L, inverse * w), *map(_none, rest)]


def _sides(n: int, rows: tuple[int, ...]) -> list[Any]:
    """A diagonal block, its part of the vector, the blocks below, and the parts of the vector that belong to them."""
    blocks = {f"B{i}": (m, n) for i, m in enumerate(rows)} | {f"y{i}": (m, 1) for i, m in enumerate(rows)}
    return _symbols(D=(n, n), x=(n, 1), **blocks)


def _substituted(L: Any, x: Any) -> Any:
    """`L^-1 x`."""
    import casadi as ca

    z = ca.SX(x)
    for i in range(x.shape[0]):
        for k in range(i):
            z[i] -= L[i, k] * z[k]
    return z


def _substituted_back(L: Any, x: Any) -> Any:
    """`L^-T x`."""
    import casadi as ca

    z = ca.SX(x)
    for i in range(x.shape[0] - 1, -1, -1):
        for k in range(i + 1, x.shape[0]):
            z[i] -= L[k, i] * z[k]
    return z


def _lower_part(n: int, m: int) -> Step:
    D, z, B, y = _symbols(D=(n, n), z=(n, 1), B=(m, n), y=(m, 1))
    w = _factors(_matrix(D, n))[1] * z
    return [D, z, B, y], [_none(D), _none(z), _none(B), y - _matrix(B, m) @ w]


def _upper_part(n: int, m: int) -> Step:
    D, z, B, x = _symbols(D=(n, n), z=(n, 1), B=(m, n), x=(m, 1))
    return [D, z, B, x], [_none(D), z - _matrix(B, m).T @ x, _none(B), _none(x)]


def _clear(n: int) -> Step:
    import casadi as ca

    return _symbols(x=(n, 1)), [ca.SX.zeros(n, 1)]


_STEPS: dict[str, Any] = {
    "clear": _clear,
    "least": _least,
    "column": _column,
    "scale": _scale,
    "square": _minus,
    "update": _update,
    "forward": _forward,
    "backward": _backward,
    "lower": _lower_part,
    "upper": _upper_part,
}
