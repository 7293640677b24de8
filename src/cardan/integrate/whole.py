"""A mechanism of middle size as one component of itself, for implicit integrators.

`relative` and `points` are no sums over small components: what acts on a body depends on the whole chain that carries
it. So the equations are one graph of the whole. Its derivatives are not: written out, the Jacobian has ten to thirty
times as many operations as the residual, and most of the time before the first answer went into it. Here the product of
the Jacobian with one vector is recorded, which has about twice the operations of the residual. It is evaluated for the
unit vectors in lanes; columns that share no row share a vector (A. R. Curtis, M. J. D. Powell, J. K. Reid, On the
estimation of sparse Jacobian matrices, IMA J. Appl. Math. 13, 1974). The derivatives are exact all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.formulation.coordinates import tree_state
from cardan.formulation.formulation import Formulation
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.tree import tree_plus
from cardan.integrate.kernel import layout_of
from cardan.integrate.large import STATE, System, written_parts
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.structure.component_sums import Component, Symbols, evaluator
from cardan.structure.kernels import parameter_arguments, symbolic

Write = Callable[[Component, Symbols], dict[str, Matrix]]


class Columns:
    """The nonzeros of a matrix, by columns, of which the product with a vector is known as a graph.

    Args:
        ports: symbols of the inputs, of which the last, (n,), is the vector.
        product: the product (m,).
        patterns: of the matrices that it may be the product with, depending on the inputs, (m, n) each.
        facts: all that the graph depends on.
        longest: instructions up to which it is compiled; fewer if the matrix is needed a few times only.

    """

    def __init__(
        self, ports: Sequence[Matrix], product: Matrix, patterns: Sequence[Any], facts: str, longest: int
    ) -> None:
        import casadi as ca

        whole = patterns[0]
        for pattern in patterns[1:]:
            whole = whole + pattern
        vectors = whole.uni_coloring()  # (n, number of vectors)
        columns, colours = (np.array(x, dtype=int) for x in vectors.get_triplet())
        colour = np.zeros(whole.size2(), dtype=int)
        colour[columns] = colours
        self.vectors = np.zeros((vectors.size2(), whole.size2()))
        self.vectors[colours, columns] = 1.0
        self.patterns = list(patterns)
        self.at = []
        for pattern in patterns:
            rows, of = np.array(pattern.row(), dtype=int), np.array(pattern.get_col(), dtype=int)
            self.at.append((colour[of], rows))
        self.filled = [k for k, port in enumerate(ports) if port.numel()]
        function = ca.Function("product", [ports[k] for k in self.filled], [ca.densify(product)])
        self.evaluate = evaluator(function, len(self.vectors), facts, "directions", longest)

    def __call__(self, *given: np.ndarray, which: int = 0) -> np.ndarray:
        """The nonzeros of matrix `which` at inputs (n,)."""
        every = [*(np.ravel(x) for x in given), self.vectors]
        (found,) = self.evaluate([every[k] for k in self.filled])
        values: np.ndarray = found[self.at[which]]
        return values


class WholeSum:
    """What `write` writes of the whole model, evaluated as a `ComponentSum` is; inputs left out are zero."""

    def __init__(
        self, system: WholeSystem, inputs: Mapping[str, str], outputs: Mapping[str, tuple[str, ...]], write: Write
    ) -> None:
        import casadi as ca

        symbols = {**system.state, **system.symbols(inputs)}
        written = write(system.component, symbols)
        values = {out: ca.sparsify(ca.SX(written[out])) if len(outputs[out]) == 2 else written[out] for out in outputs}
        self.pattern = {out: values[out].sparsity() for out, axes in outputs.items() if len(axes) == 2}
        results = [value.nz[:] if out in self.pattern else ca.densify(value) for out, value in values.items()]
        function = ca.Function("whole", [*symbols.values(), system.p], results)
        self.names = list(values)
        self.given = {name: np.zeros(symbol.numel()) for name, symbol in symbols.items()}
        self.evaluate = evaluator(function, 1, "", "")

    def __call__(self, numbers: np.ndarray, **given: Any) -> dict[str, Any]:
        """Vectors (n,) and SciPy matrices at inputs (n,)."""
        from scipy.sparse import csc_array

        found = {}
        results = self.evaluate([*(np.ravel(given.get(x, none)) for x, none in self.given.items()), numbers])
        for out, result in zip(self.names, results, strict=True):
            of, value = self.pattern.get(out), result.ravel().copy()
            found[out] = value if of is None else csc_array((value, of.row(), of.colind()), shape=of.shape)
        return found


class WholeSystem(System):
    """A model in one formulation's own coordinates, with one graph for each quantity."""

    def __init__(self, model: Model, formulation: Formulation) -> None:
        from scipy.sparse import csc_array

        home = model.unbound
        self.layout = layout = layout_of(home, formulation)
        self.model, self.formulation = home, formulation
        self.nq, self.nv, self.m, self.mp = layout.nq, layout.nv, len(layout.rows), len(layout.positions)
        self.sizes = {
            "q": self.nq, "v": self.nv, "x": home.nq, "tau": home.nv, "rows": self.m, "positions": self.mp, "one": 1,
            "all": 1,
        }  # fmt: skip
        self.components = _Numbers(home)
        self.lent = csc_array(np.array(layout.lent) if layout.lent else (self.nv, self.nv), dtype=float)
        self._sums: dict[str, Any] = {}
        written, self.p = symbolic(home)
        self.state = self.symbols({**STATE, "D": "v"})
        self.component = Component(written, formulation, layout.rows, layout.positions, True)
        moved = formulation.plus(written, self.state["q"], self.state["D"])
        self.component = replace(self.component, parts=written_parts(self.component, self.state, moved))

    def symbols(self, inputs: Mapping[str, str]) -> Symbols:
        """Symbols for inputs along axes; those of the state, after the shift `D`, are the same for all."""
        import casadi as ca

        known = getattr(self, "state", {})
        return {name: known.get(name, ca.SX.sym(name, self.sizes[axis])) for name, axis in inputs.items()}

    def sum(self, name: str, inputs: Any, outputs: Any, write: Any, only: Any = None) -> Any:
        """What `write` writes of the whole, made on first use."""
        if name not in self._sums:
            self._sums[name] = WholeSum(self, inputs, outputs, write)
        return self._sums[name]

    def into(self, x: np.ndarray, w: np.ndarray, numbers: Any) -> tuple[np.ndarray, np.ndarray]:
        """Own coordinates and rates from those of the tree."""

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            q, v = c.formulation.project(c.model, *SPATIAL.lift(c.model, s["x"], s["w"]))
            return {"q": q, "v": v}

        found = self.sum("into", {"x": "x", "w": "tau"}, {"q": ("q",), "v": ("v",)}, write)(numbers, x=x, w=w)
        return found["q"], found["v"]

    def tree(self, q: np.ndarray, v: np.ndarray, about: np.ndarray, numbers: Any) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the tree, near `about`, and its rates."""

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            x, w = tree_state(c.model, c.formulation, s["q"], s["v"], s["about"])
            return {"x": x, "w": w}

        inputs, outputs = {"q": "q", "v": "v", "about": "x"}, {"x": ("x",), "w": ("tau",)}
        found = self.sum("tree", inputs, outputs, write)(numbers, q=q, v=v, about=about)
        return found["x"], found["w"]

    def ahead(self, x: np.ndarray, w: np.ndarray, h: float) -> np.ndarray:
        """Coordinates of the tree after moving with constant rates for the time `h`, s."""

        def write(c: Component, s: Symbols) -> dict[str, Matrix]:
            return {"x": tree_plus(c.model, s["x"], s["h"] * s["w"])}

        inputs, outputs = {"x": "x", "w": "tau", "h": "all"}, {"x": ("x",)}
        found = self.sum("ahead", inputs, outputs, write)(self.components.numbers, x=x, w=w, h=h)
        return np.asarray(found["x"])


class _Numbers:
    """The free parameters, where components have their numbers."""

    def __init__(self, model: Model) -> None:
        given = parameter_arguments(model)
        self.numbers = np.ravel(given[0]) if given else np.zeros(0)

    def at(self, p: np.ndarray) -> np.ndarray:
        """These values."""
        return p


_SYSTEMS: Slot[str, WholeSystem] = Slot("equations of the whole for the implicit integrators, by formulation")


def whole_system(model: Model, formulation: Formulation) -> WholeSystem:
    """The equations of a model in one formulation, remembered with the model."""
    home = model.unbound
    return _SYSTEMS.find(home, formulation.key, lambda: WholeSystem(home, formulation))
