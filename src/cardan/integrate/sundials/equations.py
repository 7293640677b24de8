"""The implicit system of a model, compiled: residual, Jacobian, consistent start, projection onto the constraints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.formulation.coordinates import into_own, out_of_own
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity
from cardan.integrate.layout import layout_of
from cardan.integrate.sundials import dae
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.kernels import FreeKernel, compile_quantity, function_of
from cardan.structure.projection import project

COMPILED = 3_000  # operations up to which a Jacobian is compiled; beyond, CasADi's interpreter runs it
ROUNDING = 1e-13
YIELDS = 1e-9  # s: softness of position constraints, relative to the size of their derivatives

_KERNELS: Slot[tuple[str, str], Kernel] = Slot("kernels of the multistep methods, free parameters as their last input")
_MATRICES: Slot[tuple[str, str], tuple[Callable[..., Any], Any]] = Slot("Jacobians of the multistep methods")

# The last inputs of every kernel: drives, a configuration of the tree near which measured angles are taken (not in
# tree coordinates), and free parameters (if there are any).
Tail = tuple[np.ndarray, ...]


def kernel_of_row(model: Model, quantity: Quantity, name: str) -> Kernel:
    """The kernel of a quantity, with free parameters as its last input."""

    def make() -> Kernel:
        kernel = compile_quantity(model, quantity, f"gear {name}")
        return kernel.kernel if isinstance(kernel, FreeKernel) else kernel

    return _KERNELS.find(model, (name, quantity.name), make)


def matrix_of_row(model: Model, quantity: Quantity, name: str) -> tuple[Callable[..., Any], Any]:
    """A function that fills the nonzeros of a matrix by columns, and their pattern as a SciPy matrix."""

    def make() -> tuple[Callable[..., Any], Any]:
        function = function_of(model, quantity)
        if function.n_instructions() > COMPILED:
            return _interpreted(function), _pattern(function)
        kernel = kernel_of_row(model, dae.nonzeros(quantity, function.nnz_out(0)), name)
        return kernel.ufunc(wide=False), _pattern(function)

    return _MATRICES.find(model, (name, quantity.name), make)


def events_of_row(model: Model, layout: dae.DaeLayout, graph: Any) -> Any:
    """The events (ne,) as a compiled function of (t, y, about)."""
    digest = hashlib.sha256(graph.serialize().encode()).hexdigest()
    return kernel_of_row(model, dae.events(model, layout, graph), f"{layout.name} {digest}").ufunc(wide=False)


class ImplicitSystem:
    """The equations of a model in one formulation. Times are in s; arguments called `tail` are made by `tail`."""

    def __init__(self, model: Model, formulation: Formulation, form: str) -> None:
        self.model, self.is_tree = model, formulation.in_tree
        of = layout_of(model, formulation)
        self.layout = dae.DaeLayout(of, form)
        self.state = kernel_of_row(model, dae.state(model, of), of.key)
        if not self.is_tree:
            self.into = kernel_of_row(model, into_own(model, formulation), formulation.key)
            self.out_of = kernel_of_row(model, out_of_own(model, formulation), formulation.key)
        self.residual = kernel_of_row(model, dae.residual(model, self.layout), self.layout.name).ufunc(wide=False)
        self.jacobian, self.pattern = matrix_of_row(model, dae.jacobian(model, self.layout), self.layout.name)

    def start(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """`y` and `y'` (n,) at a consistent state: accelerations and multipliers that satisfy the equations."""
        M, f, J, gamma, *_, N = self.state(np.asarray(t), q, v, *tail)
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        b = np.concatenate([f, gamma])
        try:
            x = np.linalg.solve(K, b)
        except np.linalg.LinAlgError:  # rows depend on one another: take the smallest multipliers
            x = np.linalg.lstsq(K, b, rcond=1e-12)[0]
        rest, nv = np.zeros(self.layout.sizes[3]), len(v)
        y = np.concatenate([q, v, x[nv:], rest])
        return y, np.concatenate([N @ v, x[:nv], np.zeros(len(J)), rest])

    def soft(self, t: float, y: np.ndarray, tail: Tail, allowed: float) -> np.ndarray:
        """Softness (2,) of the constraints from a start `y` on; `allowed` (m/s) is a velocity that may be neglected."""
        nq, nv = self.layout.of.nq, self.layout.of.nv
        q, v, lam = y[:nq], y[nq:][:nv], y[nq + nv :]
        M, _, _, _, _, G, *_ = self.state(np.asarray(t), q, v, *tail)
        force = max(
            float(np.abs(lam).max(initial=0.0)), float(np.abs(M).max(initial=0.0)), 1e-300
        )  # at 1 m/s^2 or more
        size = float(np.mean(np.sum(G * G, axis=1))) if len(G) else 0.0
        return np.array([max(allowed, ROUNDING / 10) / force, YIELDS * size])

    def gap(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> float:
        """Largest residual of the constraints at a state: m, rad, and per second."""
        _, _, J, _, phi, _, beta, _ = self.state(np.asarray(t), q, v, *tail)
        lengths = [q[at : at + 4] @ q[at : at + 4] - 1 for at in self.layout.of.unit]
        return float(np.max(np.abs(np.concatenate([phi, J @ v - beta, np.array(lengths) / 2])), initial=0.0))

    def projected(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the tree on the constraints, from the formulation's own near them."""
        q, v = (np.array(x) for x in self.tree(q, v, tail))
        for at in self.model.quaternions:
            q[at] /= np.linalg.norm(q[at])
        if not self.model.has_rows:
            return q, v
        parameters = tail[1:] if self.is_tree else tail[2:]
        q, v, _ = project(self.model, q, v, t, parameters=parameters)
        return q, v

    def tail(self, about: np.ndarray, tau: np.ndarray, *parameters: np.ndarray) -> Tail:
        """The last inputs of the kernels; `about` (nq,) is read at every call."""
        return (tau, *parameters) if self.is_tree else (tau, about, *parameters)

    def tree(self, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the tree, near `about` in `tail`, and its rates."""
        return (q, v) if self.is_tree else self.out_of(q, v, *tail[1:])

    def own(self, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the formulation from those of the tree."""
        return (q, v) if self.is_tree else self.into(q, v, *tail[2:])


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
