"""How accelerations follow from many right sides, the columns of derivatives: `M da + J^T dlam = df`, `J da = dgamma`.

With `Y = M^-1 J^T`, `A = J Y` and `G = Y A^-1`

    da = M^-1 df - G (Y^T df - dgamma)        M^-1 = L^-1 D^-1 L^-T

Each loop's rows and forces change with the joints on its own ways alone, so most columns are short: `G` at hand, a
column costs as many products as `G` has entries in a few of its columns. With the factors of `A` it would cost all of
them thrice, since each solution is corrected twice (`formulation.solve`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from cardan.algebra.linsolve import tree_factor, tree_inverse_factor, tree_solve
from cardan.algebra.matrix import Matrix, mirrored
from cardan.formulation.solve import divided
from cardan.model.model import Model

if TYPE_CHECKING:
    import casadi

    from cardan.program.stages import Stages

MANY = 9
"""Coordinates from which on columns are solved one after the other; measured (docs/decisions/0037)."""


@dataclass(frozen=True)
class Changes:
    """Right sides, a column each: `f` (nv, n) and `gamma` (rows, n). Those of a derivative are changes of these."""

    f: Matrix
    gamma: Matrix

    @property
    def is_unit_force(self) -> bool:
        """Whether these are unit forces along the coordinates, one by one."""
        n, count = self.f.shape
        return n == count and self.gamma.nnz() == 0 and (self.f - type(self.f).eye(n)).is_zero()


@dataclass(frozen=True)
class Response:
    """`L^-1` (nv, nv), `D^-1` (nv,), `Y` (nv, rows) and `G` (nv, rows)."""

    Li: Matrix
    reciprocal: Matrix
    Y: Matrix
    G: Matrix

    def __call__(self, right: Changes) -> Matrix:
        """Accelerations (nv, n)."""
        return self.without_rows(right.f) - self.G @ (self.Y.T @ right.f - right.gamma)

    def without_rows(self, f: Matrix) -> Matrix:
        """`M^-1 f`."""
        import casadi as ca

        return self.Li @ (ca.diag(self.reciprocal) @ (self.Li.T @ f))

    def to_unit_forces(self) -> Matrix:
        """Accelerations (nv, nv) for unit forces along the coordinates; symmetric."""
        return mirrored(self.without_rows(type(self.Li).eye(self.Li.shape[0])) - self.G @ self.Y.T)


@dataclass(frozen=True)
class Factors:
    """What a response is made of: `L^-1`, `D^-1`, `Y` and `A` (rows, rows)."""

    Li: Matrix
    reciprocal: Matrix
    Y: Matrix
    A: Matrix

    @property
    def response(self) -> Response:
        """The response to right sides."""
        return Response(self.Li, self.reciprocal, self.Y, divided(self.Y, self.A))


def factors(model: Model, M: Matrix, J: Matrix) -> Factors:
    """Of a mass matrix (nv, nv) of the tree and independent rows `J`."""
    import casadi as ca

    above = model.tree.coordinate_ancestor()
    factor = tree_factor(M, above)
    Li, reciprocal = tree_inverse_factor(factor, above, M), ca.vertcat(*factor.reciprocal)
    Y = tree_solve(factor, above, J.T)  # as for the accelerations themselves, so that `Y` and `A` are computed once
    return Factors(Li, reciprocal, Y, mirrored(J @ Y))


def in_stages(inputs: Sequence[Matrix], value: Matrix, given: Factors, right: Sequence[Changes]) -> Stages:
    """The value, then the accelerations of all right sides, column by column; those alike in their zeros share a graph.

    The first stage goes up to the right sides, the second makes the response.
    """
    import casadi as ca

    from cardan.program.stages import Stage, Stages, Window

    n, nv, rows = len(inputs), given.Y.shape[0], given.Y.shape[1]
    scratch: list[int] = []

    def memory(size: int) -> Window:
        """Room for numbers between the stages."""
        scratch.append(size)
        return Window(n + len(right) + len(scratch))

    first = {"Li": ca.tril(given.Li, False), "reciprocal": given.reciprocal, "Y": given.Y, "A": ca.triu(given.A)}
    symbol = {name: ca.SX(x.sparsity(), ca.SX.sym(name, x.nnz())) for name, x in first.items()}
    entries = {name: ca.vertcat(ca.SX(0, 1), *_entries(x)) for name, x in first.items()}
    known = Factors(symbol["Li"] + ca.SX.eye(nv), symbol["reciprocal"], symbol["Y"], mirrored(symbol["A"])).response
    places = {name: memory(x.numel()) for name, x in entries.items()}
    G = ca.SX.sym("G", known.G.nnz())
    answer = Response(known.Li, known.reciprocal, known.Y, ca.SX(known.G.sparsity(), G))
    given_symbols = [ca.vertcat(ca.SX(0, 1), *_entries(x)) for x in symbol.values()]
    column = ca.SX.sym("f", nv), ca.SX.sym("gamma", rows)
    place_of_G = memory(known.G.nnz())

    @cache
    def solve(f: tuple[int, ...], gamma: tuple[int, ...]) -> casadi.Function:
        """For a column with entries in these rows."""
        side = Changes(_at(column[0], f), _at(column[1], gamma))
        return ca.Function("solve", [*given_symbols[:3], G, *column], [ca.densify(answer(side))])

    written, written_to = [ca.densify(value)], [Window(n)]
    made, made_to = [ca.vertcat(ca.SX(0, 1), *_entries(known.G))], [place_of_G]
    columns = []
    for k, side in enumerate(right, n + 1):
        if side.is_unit_force:
            made.append(ca.densify(known.to_unit_forces()))
            made_to.append(Window(k))
            continue
        count = side.f.shape[1]
        sources = [memory(x.numel()) for x in (side.f, side.gamma)]
        written += [side.f, side.gamma]
        written_to += sources
        zeros = [tuple(tuple(x[:, i].sparsity().row()) for x in (side.f, side.gamma)) for i in range(count)]
        for rows_of, group in groupby(range(count), zeros.__getitem__):
            start, *more = group
            reads = [places["Li"], places["reciprocal"], places["Y"], place_of_G]
            reads += [Window(at.argument, start, 1, count) for at in sources]
            columns.append(Stage(solve(*rows_of), tuple(reads), (Window(k, start, 1, count),), 1 + len(more)))
    written += entries.values()
    written_to += places.values()
    stages = (
        Stage(ca.Function("first", list(inputs), written), tuple(map(Window, range(n))), tuple(written_to)),
        Stage(ca.Function("second", given_symbols, made), tuple(places.values()), tuple(made_to)),
        *columns,
    )
    return Stages(stages, (n, 1 + len(right)), tuple(scratch))


def _at(x: Matrix, rows: Sequence[int]) -> Matrix:
    """Some entries of a column; the others are zeros that take no operation."""
    part = type(x)(*x.shape)
    for k in rows:
        part[k] = x[k]
    return part


def _entries(x: Matrix) -> Any:
    return x.nonzeros()
