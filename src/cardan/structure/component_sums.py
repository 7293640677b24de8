"""Vectors and sparse matrices of a large mechanism, as sums over its components (`formulation.division`).

What is summed is written once for each class of components, as a small graph. One call evaluates it for all members of
the class, in lanes; what comes out is added at fixed places. So compiling takes the same time for any number of bodies.
A class of few members is not compiled: CasADi's interpreter evaluates it sooner than LLVM has compiled it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import local
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, constant
from cardan.formulation.division import ComponentClass, components_of
from cardan.formulation.formulation import Formulation
from cardan.machines.ufunc.kernel import compile_program
from cardan.model.model import Model
from cardan.program.program import Port, Program
from cardan.structure.kernels import parameter_arguments, symbolic

COMPILED = 16  # members from which on a class is compiled

Symbols = dict[str, Matrix]


@dataclass(frozen=True)
class Component:
    """A component over symbols: its model, which of its rows are kept, and which of these are at position level."""

    model: Model
    formulation: Formulation
    rows: tuple[int, ...]
    positions: tuple[int, ...]
    has_mass: bool
    """Whether it is a link or a piece of the tree, not what acts between them."""
    basis: Any = None
    """`B` with `v = B x`, where the rates of the whole are `x`: those in the plane of a planar mechanism."""
    parts: Any = None
    """Its equations, where they are written already."""

    def wide(self, x: Matrix) -> Matrix:
        """Rates as the formulation has them."""
        return x if self.basis is None else self.basis @ x

    def narrow(self, force: Matrix) -> Matrix:
        """Forces along the rates of the whole."""
        return force if self.basis is None else self.basis.T @ force


Write = Callable[[Component, Symbols], dict[str, Matrix]]


class Components:
    """The components of a model in one formulation: sizes of the whole, places, and numbers.

    `kept` are the rows that are solved with. `basis` (6, k) are the k rates of a link that move at all, None for all.
    """

    def __init__(
        self, model: Model, formulation: Formulation, kept: Sequence[int], basis: np.ndarray | None = None
    ) -> None:
        written, self.p = symbolic(model)
        self.model, self.formulation, self.basis = model, formulation, basis
        self.classes, rows = components_of(written, formulation, kept)
        nq, nv = formulation.sizes(model)
        if basis is not None:
            nv = nv // 6 * basis.shape[1]
        self.sizes = {
            "q": nq, "v": nv, "x": model.nq, "tau": model.nv, "rows": len(kept),
            "positions": len(rows.position), "one": 1, "poses": 16 * model.nb, "twists": 6 * model.nb,
        }  # fmt: skip
        self.levels = rows.levels
        self.numbers = [cls.numbers for cls in self.classes]

    def at(self, p: np.ndarray) -> list[np.ndarray]:
        """Numbers (m, k) of each class at values (size,) of the free parameters."""
        if not self.model.parameters:
            return self.numbers
        import casadi as ca

        if not hasattr(self, "_free"):
            every = [x for cls in self.classes for *_, x in cls.free]
            self._free = ca.Function("numbers", [self.p], [ca.vertcat(*every)])
        values, found = np.array(self._free(p)).ravel(), []
        for cls, numbers in zip(self.classes, self.numbers, strict=True):
            own, values = values[: len(cls.free)], values[len(cls.free) :]
            numbers = numbers.copy()
            if len(own):
                numbers[[i for i, _, _ in cls.free], [k for _, k, _ in cls.free]] = own
            found.append(numbers)
        return found

    def nominal(self) -> list[np.ndarray]:
        """The same at the model's own values, of which there is one."""
        given = parameter_arguments(self.model)
        return self.at(given[0]) if given else self.numbers

    def places(self, cls: ComponentClass, axis: str) -> np.ndarray:
        """Places (m, n) of what a class has along an axis, in the whole."""
        if axis == "one":
            return np.zeros((len(cls), 1), dtype=int)
        if axis == "v" and self.basis is not None:
            k = self.basis.shape[1]
            return (k * (cls.v[:, ::6] // 6)[:, :, None] + np.arange(k)).reshape(len(cls), -1)
        if axis in ("poses", "twists"):
            k = 16 if axis == "poses" else 6
            return (k * cls.bodies[:, :, None] + np.arange(k)).reshape(len(cls), -1)
        found: np.ndarray = getattr(cls, axis)
        return found

    def component(self, cls: ComponentClass, C: Matrix) -> Component:
        """A class over symbols `C` for its numbers."""
        import casadi as ca

        outline = cls.outline
        basis = None if self.basis is None else ca.diagcat(*[constant(self.basis)] * len(outline.links))
        rows, positions = (tuple(outline.before + k for k in some) for some in (outline.rows, outline.positions))
        return Component(cls.written(C), self.formulation, rows, positions, outline.has_mass, basis)


class ComponentSum:
    """Sums over components.

    Args:
        components: of what.
        name: of the sums.
        inputs: axis along which each input is taken: "q", "v", "x", "tau", "rows", "positions"; "poses" (16) and
            "twists" (6) of bodies; "all" is a scalar for all. `tau` is zero for components to which the drives do not
            belong.
        outputs: one axis for each vector, two for each matrix. What a component does not write is zero.
        write: writes the outputs of one component over symbols.
        only: chooses classes; all by default.

    """

    def __init__(
        self, components: Components, name: str, inputs: Mapping[str, str], outputs: Mapping[str, tuple[str, ...]],
        write: Write, only: Callable[[ComponentClass], bool] | None = None,
    ) -> None:  # fmt: skip
        self.components, self.name, self.inputs, self.outputs = components, name, dict(inputs), dict(outputs)
        self.parts: list[_Part] = []
        for k, cls in enumerate(components.classes):
            if only is None or only(cls):
                part = _Part(components, k, cls, name, self.inputs, self.outputs, write)
                if part.names:
                    self.parts.append(part)
        self.targets = {out: self._target(out, axes) for out, axes in self.outputs.items()}

    def _target(self, out: str, axes: tuple[str, ...]) -> _Vector | _Sparse:
        owners = [part for part in self.parts if out in part.names]
        sizes = [self.components.sizes[axis] for axis in axes]
        places = [part.at[out] for part in owners]
        none = np.zeros(0, dtype=int)
        flat = [np.concatenate([none, *(each[k].ravel() for each in places)]) for k in range(len(axes))]
        return _Vector(flat[0], sizes[0]) if len(axes) == 1 else _Sparse(flat[0], flat[1], sizes[0], sizes[1])

    def __call__(self, numbers: list[np.ndarray], **given: Any) -> dict[str, Any]:
        """The sums at inputs (n,) of the whole: vectors (n,) and SciPy matrices, these sharing their pattern."""
        found: dict[str, list[np.ndarray]] = {out: [] for out in self.outputs}
        for part in self.parts:
            for out, value in zip(part.names, part(numbers[part.number], given), strict=True):
                found[out].append(value.ravel())
        none = np.zeros(0)
        return {out: self.targets[out](np.concatenate([none, *values])) for out, values in found.items()}


class _Vector:
    """Adds values at fixed places of a vector."""

    def __init__(self, places: np.ndarray, size: int) -> None:
        self.places, self.size = places, size

    def __call__(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.places, values, self.size) if len(values) else np.zeros(self.size)


class _Sparse:
    """Adds values at fixed places of a sparse matrix, by columns."""

    def __init__(self, rows: np.ndarray, columns: np.ndarray, n: int, m: int) -> None:
        self.shape = (n, m)
        places, self.into = np.unique(columns * n + rows, return_inverse=True)
        self.indices = (places % max(n, 1)).astype(np.int32)
        self.indptr = np.searchsorted(places, np.arange(m + 1) * n).astype(np.int32)

    def data(self, values: np.ndarray) -> np.ndarray:
        """The nonzeros, by columns."""
        return np.bincount(self.into, values, len(self.indices)) if len(values) else np.zeros(0)

    def __call__(self, values: np.ndarray) -> Any:
        from scipy.sparse import csc_array

        return csc_array((self.data(values), self.indices, self.indptr), shape=self.shape)


class _Part:
    """The sums over one class."""

    def __init__(
        self, components: Components, number: int, cls: ComponentClass, name: str, inputs: dict[str, str],
        outputs: dict[str, tuple[str, ...]], write: Write,
    ) -> None:  # fmt: skip
        import casadi as ca

        self.number, m = number, len(cls)
        self.axes = inputs
        self.into = {x: components.places(cls, axis) for x, axis in inputs.items() if axis != "all"}
        C = ca.SX.sym("C", cls.numbers.shape[1])
        symbols: Symbols = {}
        ports = []
        self.names_in: list[str] = []
        for x, axis in inputs.items():
            size = 1 if axis == "all" else self.into[x].shape[1]
            if axis == "tau" and not cls.outline.driven:
                symbols[x] = ca.SX(size, 1)
                continue
            symbols[x] = ca.SX.sym(x, size)
            if size:
                ports.append(symbols[x])
                self.names_in.append(x)
        if C.numel():
            ports.append(C)
        written = write(components.component(cls, C), symbols)
        values = {out: ca.sparsify(ca.SX(value)) for out, value in written.items()}
        self.names = [out for out in outputs if out in values and values[out].nnz()]
        self.at: dict[str, tuple[np.ndarray, ...]] = {}
        for out in self.names:
            rows, columns = (np.array(x, dtype=int) for x in values[out].sparsity().get_triplet())
            order = np.lexsort((rows, columns))  # as the nonzeros are
            axes = outputs[out]
            place = [components.places(cls, axis) for axis in axes]
            at = [place[0][:, rows[order]]]
            if len(axes) == 2:
                at.append(place[1][:, columns[order]])
            self.at[out] = tuple(at)
        self.has_numbers = bool(C.numel())
        if not self.names:
            return
        results = [value.nz[:] for value in ca.cse([values[out] for out in self.names])]
        function = ca.Function("component", ports, results)
        self.evaluate = evaluator(function, m, f"{components.formulation.key} {name} {cls.key}", name)

    def __call__(self, numbers: np.ndarray, given: Mapping[str, Any]) -> Sequence[np.ndarray]:
        arrays = []
        for x in self.names_in:
            value = np.asarray(given[x], dtype=float)
            arrays.append(value.reshape(1) if self.axes[x] == "all" else value[self.into[x]])
        if self.has_numbers:
            arrays.append(numbers)
        return self.evaluate(arrays)


def evaluator(
    function: Any, m: int, facts: str, name: str, longest: int = 1 << 60
) -> Callable[[list[np.ndarray]], Sequence[np.ndarray]]:
    """A function of arrays (m, n), one row for each member, or (n,) for all members.

    With few rows, or more than `longest` instructions, it is not compiled.
    """
    if m < COMPILED or function.n_instructions() > longest:
        return _interpreted(function, m)
    inputs = tuple(Port(f"in{k}", (function.numel_in(k),)) for k in range(function.n_in()))
    outputs = tuple(Port(f"out{k}", (function.numel_out(k),)) for k in range(function.n_out()))
    key = hashlib.sha256(f"{facts} {function.serialize()}".encode()).hexdigest()
    kernel = compile_program(Program(name, inputs, outputs, key, lambda: function))

    def compiled(arrays: list[np.ndarray]) -> Sequence[np.ndarray]:
        found: Any = kernel(*arrays)
        return found if isinstance(found, tuple) else (found,)

    return compiled


def _interpreted(function: Any, m: int) -> Callable[[list[np.ndarray]], Sequence[np.ndarray]]:
    """The same by CasADi's interpreter, in memory of each thread."""
    mapped = function if m == 1 else function.map(m)
    of_thread = local()

    def interpreted(arrays: list[np.ndarray]) -> Sequence[np.ndarray]:
        mine = of_thread.__dict__.get("mine")
        if mine is None:
            mine = of_thread.mine = _memory(mapped, function, m)
        for argument, array in zip(mine[0], arrays, strict=True):
            argument[:] = array
        mine[2]()
        return mine[1]

    return interpreted


def _memory(mapped: Any, function: Any, m: int) -> tuple[list[np.ndarray], list[np.ndarray], Callable[[], None], Any]:
    """Arrays for the inputs and outputs of a function, what evaluates it on them, and what keeps them."""
    buffer, evaluate = mapped.buffer()
    arguments = [np.zeros((m, function.numel_in(k))) for k in range(function.n_in())]
    results = [np.zeros((m, function.numel_out(k))) for k in range(function.n_out())]
    for k, array in enumerate(arguments):
        buffer.set_arg(k, array.data)
    for k, array in enumerate(results):
        buffer.set_res(k, array.data)
    return arguments, results, evaluate, buffer
