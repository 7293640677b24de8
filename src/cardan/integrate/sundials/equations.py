"""The implicit system of a model, compiled: residual, Jacobian, consistent start, projection onto the constraints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.formulation import native
from cardan.formulation.quantity import Quantity
from cardan.integrate import dae
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.model import Model
from cardan.structure.kernels import FreeKernel, compile_quantity, function_of, parameter_arguments
from cardan.structure.rows import generic_configurations, scaled, usual_pivots

DEPENDENT = 1e-6  # singular values of rows of unit length below this are not corrected along
COMPILED = 3_000  # operations up to which a Jacobian is compiled; beyond, CasADi's interpreter runs it
ROUNDING = 1e-13
CORRECTIONS = 5  # Newton iterations of a projection
YIELDS = 1e-9  # s: softness of position constraints, relative to the size of their derivatives

# The last inputs of every kernel: drives, a configuration of the tree near which measured angles are taken (not in
# tree coordinates), and free parameters (if there are any).
Tail = tuple[np.ndarray, ...]


def kernel_of_row(model: Model, quantity: Quantity, name: str) -> Kernel:
    """The kernel of a quantity, with free parameters as its last input; kept with the model."""
    place = ("gear", name, quantity.name)
    if place not in model.kernels:
        kernel = compile_quantity(model, quantity, f"gear {name}")
        model.kernels[place] = kernel.kernel if isinstance(kernel, FreeKernel) else kernel
    found: Kernel = model.kernels[place]
    return found


def matrix_of_row(model: Model, quantity: Quantity, name: str) -> tuple[Callable[..., Any], Any]:
    """A function that fills the nonzeros of a matrix by columns, and their pattern as a SciPy matrix."""
    place = ("gear", name, quantity.name, "matrix")
    if place not in model.kernels:
        function = function_of(model, quantity)
        if function.n_instructions() > COMPILED:
            fill: Any = _interpreted(function)
        else:
            fill = kernel_of_row(model, dae.nonzeros(quantity, function.nnz_out(0)), name).ufunc(wide=False)
        model.kernels[place] = fill, _pattern(function)
    found: tuple[Callable[..., Any], Any] = model.kernels[place]
    return found


def events_of_row(model: Model, layout: dae.DaeLayout, graph: Any) -> Any:
    """The events (ne,) as a compiled function of (t, y, about)."""
    digest = hashlib.sha256(graph.serialize().encode()).hexdigest()
    return kernel_of_row(model, dae.events(model, layout, graph), f"{layout.name} {digest}").ufunc(wide=False)


class ImplicitSystem:
    """The equations of a model in one formulation. Times are in s; arguments called `tail` are made by `tail`."""

    def __init__(self, model: Model, key: str, form: str) -> None:
        self.model, self.key = model, key
        self.is_tree = key in native.TREE
        self.state = kernel_of_row(model, dae.state(model, key, count=True), key)
        if not self.is_tree:
            self.into = kernel_of_row(model, dae.into(model, key), key)
            self.out_of = kernel_of_row(model, dae.out_of(model, key), key)
        self.layout = self._layout(form)
        self.residual = kernel_of_row(model, dae.residual(model, self.layout), self.layout.name).ufunc(wide=False)
        self.jacobian, self.pattern = matrix_of_row(model, dae.jacobian(model, self.layout), self.layout.name)

    def _layout(self, form: str) -> dae.DaeLayout:
        """Keep rows that are independent at generic configurations, of `J` and of `d phi / dt` alike."""
        still, found = np.zeros(self.model.nv), []
        for q in generic_configurations(self.model):
            tail = self.tail(q, still, *parameter_arguments(self.model))
            _, _, J, _, _, G, _, N = self.state(np.asarray(0.0), *self.own(q, still, tail), *tail)
            found.append((scaled(J), scaled(G @ N)))
        rows, places = usual_pivots([J for J, _ in found], [G for _, G in found])
        sizes = native.sizes(self.model, self.key)
        unit = dae.quaternions(self.model, self.key)
        return dae.DaeLayout(self.key, form, *sizes, tuple(rows), tuple(places), unit)

    def start(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """`y` and `y'` (n,) at a consistent state: accelerations and multipliers that satisfy the equations."""
        layout = self.layout
        M, f, J, gamma, *_, N = self.state(np.asarray(t), q, v, *tail)
        J, gamma = J[list(layout.rows)], gamma[list(layout.rows)]
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        b = np.concatenate([f, gamma])
        try:
            x = np.linalg.solve(K, b)
        except np.linalg.LinAlgError:  # rows depend on one another: take the smallest multipliers
            x = np.linalg.lstsq(K, b, rcond=1e-12)[0]
        rest = np.zeros(layout.sizes[3])
        y = np.concatenate([q, v, x[layout.nv :], rest])
        return y, np.concatenate([N @ v, x[: layout.nv], np.zeros(len(J)), rest])

    def soft(self, t: float, y: np.ndarray, tail: Tail, allowed: float) -> np.ndarray:
        """Softness (2,) of the constraints from a start `y` on; `allowed` (m/s) is a velocity that may be neglected."""
        layout = self.layout
        q, v, lam = y[: layout.nq], y[layout.nq :][: layout.nv], y[layout.nq + layout.nv :]
        M, _, _, _, _, G, *_ = self.state(np.asarray(t), q, v, *tail)
        force = max(
            float(np.abs(lam).max(initial=0.0)), float(np.abs(M).max(initial=0.0)), 1e-300
        )  # at 1 m/s^2 or more
        size = float(np.mean(np.sum(G * G, axis=1))) if len(G) else 0.0
        return np.array([max(allowed, ROUNDING / 10) / force, YIELDS * size])

    def project(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray, float]:
        """The nearest state on the constraints, and the residual of the given one: m, rad, and per second."""
        layout, worst = self.layout, 0.0
        for k in range(CORRECTIONS):
            _, _, J, _, phi, G, beta, _ = self.state(np.asarray(t), q, v, *tail)
            gap, slope = self._position_rows(q, phi, G)
            size = float(np.abs(gap).max(initial=0.0))
            worst = size if k == 0 else worst
            if not size > ROUNDING:
                break
            q = q - _least(slope, gap)
        rows = list(layout.rows)
        excess = J[rows] @ v - beta[rows]
        worst = max(worst, float(np.abs(excess).max(initial=0.0)))
        return q, v - _least(J[rows], excess), worst

    def _position_rows(self, q: np.ndarray, phi: np.ndarray, G: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The residuals that are kept and their derivatives by q, including the lengths of quaternions."""
        places, unit = list(self.layout.places), self.layout.unit
        lengths = np.zeros((len(unit), len(q)))
        for k, at in enumerate(unit):
            lengths[k, at : at + 4] = q[at : at + 4]
        return np.concatenate([phi[places], (lengths @ q - 1) / 2]), np.concatenate([G[places], lengths])

    def tail(self, about: np.ndarray, tau: np.ndarray, *parameters: np.ndarray) -> Tail:
        """The last inputs of the kernels; `about` (nq,) is read at every call."""
        return (tau, *parameters) if self.is_tree else (tau, about, *parameters)

    def tree(self, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the tree, near `about` in `tail`, and its rates."""
        return (q, v) if self.is_tree else self.out_of(q, v, *tail[1:])

    def own(self, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the formulation from those of the tree."""
        return (q, v) if self.is_tree else self.into(q, v, *tail[2:])


def _least(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The smallest `x` with `A x = b`, ignoring nearly dependent combinations of rows."""
    length = np.maximum(np.linalg.norm(A, axis=1), 1e-300)
    found: np.ndarray = np.linalg.lstsq(A / length[:, None], b / length, rcond=DEPENDENT)[0]
    return found


def _pattern(function: Any) -> Any:
    """Pattern of the nonzeros, as a SciPy matrix."""
    from scipy.sparse import csc_matrix

    pattern = function.sparsity_out(0)
    return csc_matrix((np.ones(pattern.nnz()), pattern.row(), pattern.colind()), shape=pattern.shape)


def _interpreted(function: Any) -> Callable[..., None]:
    """A function that CasADi's interpreter evaluates, called like a compiled one."""
    buffer, evaluate = function.buffer()
    arguments = [np.zeros(function.numel_in(k)) for k in range(function.n_in())]
    values = np.zeros(function.nnz_out(0))
    for k, array in enumerate(arguments):
        buffer.set_arg(k, array.data)
    buffer.set_res(0, values.data)

    def fill(*given: Any, kept: Any = buffer) -> None:  # the buffer must live as long as this
        for argument, array in zip(arguments, given[:-1], strict=True):
            argument[:] = array
        evaluate()
        given[-1][:] = values

    return fill
