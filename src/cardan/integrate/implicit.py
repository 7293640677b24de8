"""The implicit system of a model, compiled: residual, Jacobian, consistent start, and the way onto the constraints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.formulation import dae, native
from cardan.formulation.contract import Quantity, fixed
from cardan.integrate.independence import generic_configurations, pivots, scaled, usual
from cardan.kernels.evaluate import compile_quantity
from cardan.model.model import Model

DEPENDENT = 1e-6  # of rows of unit length: a combination smaller than this is not corrected along
COMPILED = 20_000  # operations up to which a Jacobian is worth compiling; beyond, CasADi's interpreter runs it
ROUNDING = 1e-13
CORRECTIONS = 5


class System:
    """The equations of a model in one formulation, compiled."""

    def __init__(self, model: Model, key: str, form: str) -> None:
        self.model, self.key = model, key
        self.is_tree = key in native.TREE
        self.state = self._kernel(dae.state(model, key), key)
        if not self.is_tree:
            self.into = self._kernel(dae.into(model, key), key)
            self.out_of = self._kernel(dae.out_of(model, key), key)
        self.layout = self._layout(form)
        self.residual = self._kernel(dae.residual(model, self.layout), self.layout.name).ufunc(wide=False)
        self.jacobian, self.pattern = self._jacobian()

    def _kernel(self, quantity: Quantity, name: str) -> Any:
        place = ("gear", name, quantity.name)
        if place not in self.model.kernels:
            self.model.kernels[place] = compile_quantity(self.model, quantity, f"gear {name}")
        return self.model.kernels[place]

    def _layout(self, form: str) -> dae.Layout:
        """Keep rows that are independent where nothing is special, of `J` and of `d phi / dt` alike."""
        still, found = np.zeros(self.model.nv), []
        for q in generic_configurations(self.model):
            own_q, own_v = (q, still) if self.is_tree else self.into(q, still)
            _, _, J, _, _, G, _, N = self.state(np.asarray(0.0), own_q, own_v, still)
            found.append((pivots(scaled(J)), pivots(scaled(G @ N))) if len(J) else ([], []))
        rank = usual([len(rows) for rows, _ in found])
        rows, places = next(pair for pair in found if len(pair[0]) == rank)
        sizes = native.sizes(self.model, self.key)
        unit = dae.quaternions(self.model, self.key)
        return dae.Layout(self.key, form, *sizes, tuple(sorted(rows)), tuple(sorted(places)), unit)

    def _jacobian(self) -> tuple[Callable[..., Any], Any]:
        """A function that fills the nonzeros by columns, and where they are, as SciPy has it."""
        place = ("gear", self.layout.name, "jacobian")
        if place not in self.model.kernels:
            function = dae.jacobian(self.model, self.layout)
            if function.n_instructions() > COMPILED:
                fill = _interpreted(function)
            else:
                fill = compile_quantity(self.model, _nonzeros(function), f"gear {self.layout.name}").ufunc(wide=False)
            self.model.kernels[place] = fill, _pattern(function)
        found: tuple[Callable[..., Any], Any] = self.model.kernels[place]
        return found

    def events(self, graph: Any) -> Any:
        """The compiled function of (t, y, about), (ne,)."""
        digest = hashlib.sha256(graph.serialize().encode()).hexdigest()
        return self._kernel(dae.events(self.model, self.layout, graph), f"{self.layout.name} {digest}").ufunc(
            wide=False
        )

    def start(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`y` and `y'` (n,) at a consistent state: accelerations and multipliers that satisfy the equations."""
        layout = self.layout
        M, f, J, gamma, *_, N = self.state(np.asarray(t), q, v, tau)
        J, gamma = J[list(layout.rows)], gamma[list(layout.rows)]
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        b = np.concatenate([f, gamma])
        try:
            x = np.linalg.solve(K, b)
        except np.linalg.LinAlgError:  # a position where rows depend on one another: the smallest multipliers
            x = np.linalg.lstsq(K, b, rcond=1e-12)[0]
        rest = np.zeros(layout.sizes[3])
        y = np.concatenate([q, v, x[layout.nv :], rest])
        return y, np.concatenate([N @ v, x[: layout.nv], np.zeros(len(J)), rest])

    def project(self, t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """The nearest state on the constraints, and how far off the given one was: m, rad, and per second."""
        layout, worst = self.layout, 0.0
        q = np.array(q)
        for k in range(CORRECTIONS):
            _, _, J, _, phi, G, beta, _ = self.state(np.asarray(t), q, v, tau)
            gap, slope = phi[list(layout.places)], G[list(layout.places)]
            for at in layout.unit:
                row = np.zeros((1, layout.nq))
                row[0, at : at + 4] = q[at : at + 4]
                gap = np.append(gap, (row @ q - 1) / 2)
                slope = np.concatenate([slope, row])
            size = float(np.abs(gap).max(initial=0.0))
            worst = size if k == 0 else worst
            if not size > ROUNDING:
                break
            q = q - _least(slope, gap)
        rows = list(layout.rows)
        excess = J[rows] @ v - beta[rows]
        worst = max(worst, float(np.abs(excess).max(initial=0.0)))
        return q, v - _least(J[rows], excess), worst

    def tree(self, q: np.ndarray, v: np.ndarray, about: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the tree, near to `about` (nq,), and its rates."""
        return (q, v) if self.is_tree else self.out_of(q, v, about)

    def own(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The other way."""
        return (q, v) if self.is_tree else self.into(q, v)


def _least(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smallest `x` with `A x = b`, along what is not nearly dependent."""
    length = np.maximum(np.linalg.norm(A, axis=1), 1e-300)
    found: np.ndarray = np.linalg.lstsq(A / length[:, None], b / length, rcond=DEPENDENT)[0]
    return found


def _nonzeros(function: Any) -> Quantity:
    """The nonzeros of a sparse matrix function, by columns."""
    import casadi as ca

    def write(model: Model, s: Any) -> list[Any]:
        return [ca.vertcat(*function(*s.values()).nonzeros())]

    n = function.size1_out(0)
    shapes = {"t": (), "cj": (), "y": (n,), "yp": (n,), "tau": (function.numel_in(4),)}
    outputs = (("K", fixed(function.nnz_out(0))),)
    return Quantity("dae_jacobian", tuple(shapes), outputs, write=write, shapes=shapes)


def _pattern(function: Any) -> Any:
    """Where the nonzeros are, as SciPy has it."""
    from scipy.sparse import csc_matrix

    pattern = function.sparsity_out(0)
    return csc_matrix((np.ones(pattern.nnz()), pattern.row(), pattern.colind()), shape=pattern.shape)


def _interpreted(function: Any) -> Callable[..., None]:
    """A function that CasADi evaluates, called as a compiled one is."""
    buffer, evaluate = function.buffer()
    arguments = [np.zeros(function.numel_in(k)) for k in range(function.n_in())]
    values = np.zeros(function.nnz_out(0))
    for k, array in enumerate(arguments):
        buffer.set_arg(k, memoryview(array))
    buffer.set_res(0, memoryview(values))

    def fill(*given: Any, own: Any = buffer) -> None:  # `own` keeps the buffer alive
        for argument, array in zip(arguments, given[:-1], strict=True):
            argument[:] = array
        evaluate()
        given[-1][:] = values

    return fill
