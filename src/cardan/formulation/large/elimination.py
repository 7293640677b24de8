"""A sparse symmetric system of small blocks, factored and solved by rounds of a schedule.

`A + E = L D L^T` by blocks, in an order of least degree, with the regularisation `E` of `formulation.solve` and its two
corrections. The pattern is found once; a round has a row for each operation on blocks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from cardan.formulation.solve import CORRECTIONS, REGULARISATION
from cardan.program.schedule import Round


class Elimination:
    """Where the blocks are in memory, from address `first` to `end`, and the rounds that factor and solve.

    `diagonal` (n,) has the addresses of the blocks on the diagonal, by columns; `below[i, j]`, i > j, those of the
    others; `right` (n,) those of the right sides, `columns` of them, in the place of which the solutions come.
    """

    def __init__(
        self, sizes: Sequence[int], pairs: Iterable[tuple[int, int]], columns: int = 1, first: int = 0
    ) -> None:
        self.sizes = np.asarray(sizes, dtype=int)
        self.given = set(pairs)
        self.order, self.columns = least_degree(len(self.sizes), self.given)
        self.diagonal, at = _after(first, self.sizes**2)
        self.place = {k: n for n, k in enumerate(self.order)}
        self.below: dict[tuple[int, int], int] = {}
        for k in self.order:
            for i in self.columns[k]:
                self.below[max(i, k), min(i, k)] = at
                at += int(self.sizes[i] * self.sizes[k])
        self.width = columns
        self.right, at = _after(at, columns * self.sizes)
        self.added, at = _after(at, self.sizes)
        self.sum, self.end = _after(at, self.sizes)

    def clear(self) -> list[Round]:
        """Set the blocks below the diagonal to zero."""
        import casadi as ca

        call: dict[int, int] = {}
        rows = []
        for (i, j), at in self.below.items():
            n = int(self.sizes[i] * self.sizes[j])
            rows.append((call.setdefault(n, len(call)), 0, at))
        calls = [ca.Function("clear", [ca.SX(0, 1), ca.SX.sym("b", n)], [ca.SX.zeros(n)]) for n in call]
        return [Round(tuple(calls), (), (), np.array(rows, dtype=np.int64), states=1)] if rows else []

    def _block(self, i: int, j: int) -> tuple[int, bool]:
        """Address of block (i, j), and whether it is kept transposed."""
        return self.below[max(i, j), min(i, j)], i < j

    def factor(self) -> list[Round]:
        """In the place of the matrix its factors: each pivot, what is left of it, what it changes."""
        work = _Work()
        for k in self.order:
            n, own = int(self.sizes[k]), int(self.diagonal[k])
            work.add(("pivot", n), _pivot, own, int(self.added[k]))
            beyond = sorted(self.columns[k], key=self.place.__getitem__)
            at = [self._block(i, k) for i in beyond]
            for i, (address, turned) in zip(beyond, at, strict=True):
                work.add(("scale", n, int(self.sizes[i]), turned), _scale, own, address)
            for a, i in enumerate(beyond):
                n_i, (first, turned) = int(self.sizes[i]), at[a]
                work.add(("square", n, n_i, turned), _square, own, first, int(self.diagonal[i]))
                for b in range(a + 1, len(beyond)):
                    j, (second, other) = beyond[b], at[b]
                    target, across = self._block(i, j)
                    key = ("update", n, n_i, int(self.sizes[j]), turned, other, across)
                    work.add(key, _update, own, first, second, target)
        return work.rounds(4)

    def solve(self) -> list[Round]:
        """In the place of the right sides, one column, the solution, corrected for what was added."""
        once = self.solve_once()
        keep, correct = _Work(), _Work()
        for k in self.order:
            n, at = int(self.sizes[k]), [int(x[k]) for x in (self.right, self.added, self.sum)]
            keep.add(("keep", n), _keep, *at)
            correct.add(("correct", n), _correct, *at)
        finish = _Work()
        for k in self.order:
            finish.add(("finish", int(self.sizes[k])), _finish, int(self.right[k]), int(self.sum[k]))
        middle = [*correct.rounds(3), *once]
        found = [*once, *keep.rounds(3), *once]
        for _ in range(CORRECTIONS - 1):
            found += middle
        return [*found, *finish.rounds(2)]

    def solve_once(self) -> list[Round]:
        """In the place of the right sides what the factors give, not corrected."""
        m = self.width
        forward, backward = _Work(), _Work()
        for k in self.order:
            n, own, b = int(self.sizes[k]), int(self.diagonal[k]), int(self.right[k])
            forward.add(("in", n, m), _inwards, own, b)
            for i in self.columns[k]:
                address, turned = self._block(i, k)
                key = ("forward", n, m, int(self.sizes[i]), turned)
                forward.add(key, _forward, own, address, b, int(self.right[i]))
        for k in reversed(self.order):
            n, own, b = int(self.sizes[k]), int(self.diagonal[k]), int(self.right[k])
            for i in self.columns[k]:
                address, turned = self._block(i, k)
                key = ("backward", n, m, int(self.sizes[i]), turned)
                backward.add(key, _backward, own, address, b, int(self.right[i]))
            backward.add(("out", n, m), _outwards, own, b)
        return [*forward.rounds(4), *backward.rounds(4)]


def _after(first: int, sizes: np.ndarray) -> tuple[np.ndarray, int]:
    ends = first + np.cumsum([0, *sizes])
    return ends[:-1], int(ends[-1])


class _Work:
    """Rows of a round: operations on blocks in order."""

    def __init__(self) -> None:
        self.calls: dict[tuple[Any, ...], tuple[int, Callable[..., Any]]] = {}
        self.rows: list[tuple[int, ...]] = []

    def add(self, key: tuple[Any, ...], write: Callable[..., Any], *addresses: int) -> None:
        """One more operation."""
        number = self.calls.setdefault(key, (len(self.calls), write))[0]
        self.rows.append((number, 0, *addresses))

    def rounds(self, states: int) -> list[Round]:
        """As a round, or none."""
        import casadi as ca

        if not self.rows:
            return []
        calls = []
        for (name, *sizes), (_, write) in self.calls.items():
            before, after = write(*sizes)
            pad = [ca.SX(0, 1)] * (states - len(before))
            calls.append(ca.Function(name, [ca.SX(0, 1), *before, *pad], [*after, *pad]))
        rows = [row + (0,) * (states + 2 - len(row)) for row in self.rows]
        return [Round(tuple(calls), (), (), np.array(rows, dtype=np.int64), states=states)]


def _symbol(name: str, n: int, m: int = 1) -> tuple[Any, Any]:
    import casadi as ca

    x = ca.SX.sym(name, n * m)
    return x, ca.reshape(x, n, m)


def _general(n_i: int, n: int, turned: bool, name: str = "B") -> tuple[Any, Any]:
    x, B = _symbol(name, *((n, n_i) if turned else (n_i, n)))
    return x, B.T if turned else B


def _column(B: Any, turned: bool = False) -> Any:
    import casadi as ca

    return ca.densify(ca.vec(B.T if turned else B))


def _unchanged(x: Any) -> Any:
    import casadi as ca

    return ca.SX(*x.shape)


def _pivot(n: int) -> Any:
    """`L` below the diagonal, `1/D` on it."""
    import casadi as ca

    x, A = _symbol("A", n, n)
    e = ca.SX.sym("e", n)
    diagonal = ca.diag(A)
    E = REGULARISATION * diagonal + (diagonal == 0)
    A = A + ca.diag(E)
    F, W = ca.SX(A), ca.SX(A)
    for j in range(n):
        d = A[j, j]
        for k in range(j):
            d = d - F[j, k] * W[j, k]
        F[j, j] = 1 / d
        for i in range(j + 1, n):
            w = A[i, j]
            for k in range(j):
                w = w - W[i, k] * F[j, k]
            W[i, j], F[i, j] = w, w * F[j, j]
    return [x, e], [_column(F), E]


def _inverse_transposed(F: Any, B: Any) -> Any:
    """`B L^-T`, column by column."""
    import casadi as ca

    n = F.shape[0]
    columns: list[Any] = []
    for j in range(n):
        c = B[:, j]
        for k in range(j):
            c = c - F[j, k] * columns[k]
        columns.append(c)
    return ca.horzcat(*columns)


def _scale(n: int, n_i: int, turned: bool) -> Any:
    f, F = _symbol("F", n, n)
    b, B = _general(n_i, n, turned)
    return [f, b], [_unchanged(f), _column(_inverse_transposed(F, B), turned)]


def _scaled(X: Any, F: Any) -> Any:
    import casadi as ca

    return ca.horzcat(*(X[:, k] * F[k, k] for k in range(F.shape[0])))


def _square(n: int, n_i: int, turned: bool) -> Any:
    f, F = _symbol("F", n, n)
    x, X = _general(n_i, n, turned)
    a, A = _symbol("A", n_i, n_i)
    return [f, x, a], [_unchanged(f), _unchanged(x), _column(A - _scaled(X, F) @ X.T)]


def _update(n: int, n_i: int, n_j: int, turned: bool, other: bool, across: bool) -> Any:
    f, F = _symbol("F", n, n)
    x, X = _general(n_i, n, turned, "X")
    z, Z = _general(n_j, n, other, "Z")
    a, A = _general(n_i, n_j, across, "A")
    changed = A - _scaled(X, F) @ Z.T
    return [f, x, z, a], [_unchanged(f), _unchanged(x), _unchanged(z), _column(changed, across)]


def _inwards(n: int, m: int) -> Any:
    f, F = _symbol("F", n, n)
    b, B = _symbol("b", n, m)
    return [f, b], [_unchanged(f), _column(_inverse_transposed(F, B.T).T)]


def _forward(n: int, m: int, n_i: int, turned: bool) -> Any:
    f, F = _symbol("F", n, n)
    x, X = _general(n_i, n, turned)
    (b, B), (c, C) = _symbol("b", n, m), _symbol("c", n_i, m)
    return [f, x, b, c], [_unchanged(f), _unchanged(x), _unchanged(b), _column(C - _scaled(X, F) @ B)]


def _backward(n: int, m: int, n_i: int, turned: bool) -> Any:
    """`B` has `Y - sum X^T x` here, to be divided by `D`."""
    f, _ = _symbol("F", n, n)
    x, X = _general(n_i, n, turned)
    (b, B), (c, C) = _symbol("b", n, m), _symbol("c", n_i, m)
    return [f, x, b, c], [_unchanged(f), _unchanged(x), _column(B - X.T @ C), _unchanged(c)]


def _outwards(n: int, m: int) -> Any:
    import casadi as ca

    f, F = _symbol("F", n, n)
    b, B = _symbol("b", n, m)
    x: list[Any] = [B[k, :] * F[k, k] for k in range(n)]
    for k in reversed(range(n)):
        for i in range(k + 1, n):
            x[k] = x[k] - F[i, k] * x[i]
    return [f, b], [_unchanged(f), _column(ca.vertcat(*x))]


def _keep(n: int) -> Any:
    """The first solution; what is left of it to solve for."""
    (b, _), (e, _), (s, _) = (_symbol(name, n) for name in "bes")
    return [b, e, s], [e * b, _unchanged(e), b]


def _correct(n: int) -> Any:
    (b, _), (e, _), (s, _) = (_symbol(name, n) for name in "bes")
    return [b, e, s], [e * b, _unchanged(e), s + b]


def _finish(n: int) -> Any:
    (b, _), (s, _) = (_symbol(name, n) for name in "bs")
    return [b, s], [b + s, _unchanged(s)]


def least_degree(n: int, pairs: Iterable[tuple[int, int]]) -> tuple[list[int], list[set[int]]]:
    """An order of elimination with little fill-in, and for each node those after it that it then touches."""
    near: list[set[int]] = [set() for _ in range(n)]
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    queue = [(len(near[k]), k) for k in range(n)]
    heapq.heapify(queue)
    order: list[int] = []
    done = [False] * n
    while queue:
        degree, k = heapq.heappop(queue)
        if done[k] or degree != len(near[k]):
            continue
        done[k] = True
        order.append(k)
        for i in near[k]:
            near[i] |= near[k]
            near[i] -= {i, k}
            heapq.heappush(queue, (len(near[i]), i))
    return order, near
