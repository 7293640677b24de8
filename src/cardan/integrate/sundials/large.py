"""Gear's method on large mechanisms: the equations of `sundials.equations`, summed over components.

Residual and Jacobian of a component are those of the same text on its small model. What belongs to a link or a piece
alone, `qdot - N v` and the lengths of quaternions, is left out of the components without mass. IDA gets the nonzeros of
the sparse Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.formulation.division import ComponentClass
from cardan.formulation.formulation import Formulation
from cardan.integrate.kernel import Layout
from cardan.integrate.large import large_system
from cardan.integrate.sundials.equations import (
    ROUNDING,
    YIELDS,
    DaeLayout,
    ImplicitSystem,
    Tail,
    implicit,
    newton_matrix,
)
from cardan.integrate.sundials.stepper import GearStepper
from cardan.model.model import Model
from cardan.structure.assemble import OPENED
from cardan.structure.component_sums import Component, Components, ComponentSum, Symbols

STATE = {"t": "all", "y": "y", "yp": "y", "soft_0": "all", "soft_1": "all", "tau": "tau", "about": "x"}


class _DaeComponents:
    """Components whose places are those in `y`: coordinates, rates, multipliers `lam`, `mu`, but for the work `W`."""

    def __init__(self, of: Components, layout: DaeLayout) -> None:
        self.of, self.layout = of, layout
        self.classes, self.formulation = of.classes, of.formulation
        self.starts = np.cumsum([0, *layout.sizes])
        self.sizes = {**of.sizes, "y": layout.n}
        self.length_of = {at: k for k, at in enumerate(layout.of.unit)}

    def places(self, cls: ComponentClass, axis: str) -> np.ndarray:
        """Places (m, n) of what a class has along an axis, in the whole."""
        if axis != "y":
            return self.of.places(cls, axis)
        parts = [self.starts[k] + getattr(cls, name) for k, name in enumerate(("q", "v", "rows"))]
        if self.layout.stabilised:
            parts.append(self.starts[3] + cls.positions)
            lengths = [self.length_of[int(at)] for at in cls.q[:, self.units(cls)].ravel()]
            first = self.starts[3] + len(self.layout.of.positions)
            parts.append(first + np.array(lengths, dtype=int).reshape(len(cls), -1))
        return np.concatenate(parts, axis=1)

    def units(self, cls: ComponentClass) -> list[int]:
        """Where quaternions whose lengths belong to a component begin."""
        if not cls.outline.has_mass:
            return []
        return [at for _, at in self.formulation.quaternions(cls.outline.model(_nominal(cls)))]

    def component(self, cls: ComponentClass, C: Matrix) -> Component:
        """A class over symbols `C` for its numbers."""
        return self.of.component(cls, C)


def _nominal(cls: ComponentClass) -> np.ndarray:
    """Numbers of the first member."""
    values = cls.values.copy()
    values[np.isnan(values)] = cls.numbers[0]
    return values


class LargeImplicitSystem(ImplicitSystem):
    """The equations of a large model in one formulation; fills what `ImplicitSystem` does."""

    def __init__(self, model: Model, formulation: Formulation, stabilised: bool) -> None:
        self.model = model
        self.system = system = large_system(model, formulation, in_plane=False)
        self.is_tree = system.in_tree
        formulation = system.formulation
        at_position = tuple(row for row in system.kept if system.components.levels[row])
        unit = tuple(at for _, at in formulation.quaternions(model))
        of = Layout(formulation, formulation.facts(model), system.nq, system.nv, tuple(system.kept), at_position, unit)
        self.layout = DaeLayout(of, stabilised)
        self.parts = _DaeComponents(system.components, self.layout)
        residual: Any = ComponentSum(self.parts, "dae_residual", STATE, {"F": ("y",), "P": ("one",)}, self._residual)  # type: ignore[arg-type]
        matrix: Any = ComponentSum(self.parts, "dae_jacobian", {**STATE, "cj": "all"}, {"K": ("y", "y")}, self._matrix)  # type: ignore[arg-type]
        self.sums, self.matrix = residual, matrix
        self.residual, self.jacobian = self._fill_residual, self._fill_jacobian
        self.numbers: tuple[bytes, Any] = (b"", system.components.numbers)
        target, n = matrix.targets["K"], self.layout.n
        from scipy.sparse import csc_matrix

        # the work, the last unknown, has nothing but its own rate here: it acts on nothing
        indices, indptr = np.append(target.indices, n - 1), target.indptr.copy()
        indptr[-1] += 1
        self.pattern = csc_matrix((np.ones(len(indices)), indices, indptr), shape=(n, n))

    # over symbols

    def _written(self, c: Component, s: Symbols) -> tuple[DaeLayout, Matrix, Matrix, dict[str, Matrix]]:
        """A component's layout, `F`, stabilising term, and inputs, with a place for the work."""
        import casadi as ca

        nq, nv = c.formulation.sizes(c.model)
        n = s["y"].shape[0] - nq - nv - len(c.rows)
        unit = (
            [at for _, at in c.formulation.quaternions(c.model)][: n - len(c.positions)]
            if self.layout.stabilised
            else []
        )
        of = Layout(c.formulation, "", nq, nv, c.rows, c.positions, tuple(unit))
        layout, work = DaeLayout(of, self.layout.stabilised), ca.SX(1, 1)
        inputs = {**s, "y": ca.vertcat(s["y"], work), "yp": ca.vertcat(s["yp"], work)}
        inputs["soft"] = ca.vertcat(s["soft_0"], s["soft_1"])
        if c.formulation.in_tree:
            inputs.pop("about")
        F, stabiliser = implicit(c.model, layout, inputs)
        if not c.has_mass:
            F[:nq] = 0
        return layout, F, stabiliser, inputs

    def _residual(self, c: Component, s: Symbols) -> dict[str, Matrix]:
        layout, F, stabiliser, _ = self._written(c, s)
        F[: layout.of.nq] += stabiliser
        return {"F": F[:-1], "P": F[-1]}

    def _matrix(self, c: Component, s: Symbols) -> dict[str, Matrix]:
        layout, F, stabiliser, _ = self._written(c, s)
        return {"K": newton_matrix(layout, F, stabiliser, s)[:-1, :]}

    # over numbers

    def _given(self, t: float, y: np.ndarray, yp: np.ndarray, soft: np.ndarray, tail: Tail) -> dict[str, Any]:
        about = y[:0] if self.is_tree else tail[1]
        given = {"t": t, "y": y, "yp": yp, "soft_0": soft[0], "soft_1": soft[1], "tau": tail[0]}
        return {**given, "about": np.zeros(self.model.nq) if self.is_tree else about}

    def _numbers(self, tail: Tail) -> Any:
        """Numbers of the components at the free parameters in `tail`."""
        given = tail[1:] if self.is_tree else tail[2:]
        if given and self.numbers[0] != given[0].tobytes():
            self.numbers = given[0].tobytes(), self.system.components.at(given[0])
        return self.numbers[1]

    def _fill_residual(self, t: float, y: np.ndarray, yp: np.ndarray, soft: np.ndarray, *rest: Any) -> None:
        """Fill `F` (n,), the last argument."""
        *tail, out = rest
        found = self.sums(self._numbers(tuple(tail)), **self._given(t, y, yp, soft, tuple(tail)))
        out[:] = found["F"]
        out[-1] = yp[-1] + found["P"][0]

    def _fill_jacobian(self, t: float, cj: float, y: np.ndarray, yp: np.ndarray, soft: np.ndarray, *rest: Any) -> None:
        """Fill the nonzeros of `dF/dy + cj dF/dy'`, by columns, the last argument."""
        *tail, out = rest
        found = self.matrix(self._numbers(tuple(tail)), cj=cj, **self._given(t, y, yp, soft, tuple(tail)))
        out[:-1], out[-1] = found["K"].data, cj

    def start(self, t: float, q: np.ndarray, v: np.ndarray, W: float, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """`y` and `y'` (n,) at a consistent state."""
        about = q if self.is_tree else tail[1]
        vdot, lam = self.system.start(t, q, v, tail[0], about, self._numbers(tail))
        rest, none = np.zeros(self.layout.sizes[3]), np.zeros(len(lam))
        y = np.concatenate([q, v, lam, rest, [W]])
        yp = np.concatenate([np.zeros(len(q)), vdot, none, rest, [0.0]])
        F = np.zeros_like(y)
        self.residual(t, y, yp, np.zeros(2), *tail, F)
        yp[: len(q)], yp[-1] = -F[: len(q)], -F[-1]  # of `qdot - N v`, and the power
        return y, yp

    def soft(self, t: float, y: np.ndarray, tail: Tail, allowed: float) -> np.ndarray:
        """Softness (2,) of the constraints from a start `y` on; see `ImplicitSystem.soft`."""
        q, v, lam, *_ = np.split(y, np.cumsum(self.layout.sizes)[:-1])
        state = {"t": t, "q": q, "tau": tail[0], "about": q if self.is_tree else tail[1]}
        numbers = self._numbers(tail)
        M, G = self.system.equations(numbers, v=v, **state)["M"], self.system.slopes(numbers, **state)
        force = max(*(float(np.abs(x).max(initial=0.0)) for x in (lam, M.data)), 1e-300)
        size = float((G.data**2).sum() / G.shape[0]) if G.shape[0] else 0.0
        return np.array([max(allowed, ROUNDING / 10) / force, YIELDS * size])

    def gap(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> float:
        """Largest residual of the constraints at a state: m, rad, and per second."""
        about = q if self.is_tree else tail[1]
        found = self.system.equations(self._numbers(tail), t=t, q=q, v=v, tau=tail[0], about=about)
        lengths = [q[at : at + 4] @ q[at : at + 4] - 1 for at in self.layout.of.unit]
        every = [found["phi"], found["J"] @ v - found["beta"], np.array(lengths) / 2]
        return float(np.max(np.abs(np.concatenate(every)), initial=0.0))

    def projected(self, t: float, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the tree on the constraints, from the formulation's own near them."""
        q = np.array(q)
        at = np.array(self.layout.of.unit, dtype=int)[:, None] + np.arange(4)
        if at.size:
            q[at] /= np.linalg.norm(q[at], axis=1, keepdims=True)
        numbers, about = self._numbers(tail), q if self.is_tree else tail[1]
        q, v = self.system.projected(t, q, v, about, numbers)
        return self.system.tree(q, v, about, numbers)

    def tail(self, about: np.ndarray, tau: np.ndarray, *parameters: np.ndarray) -> Tail:
        """The last inputs; `about` (nq,) is read at every call."""
        return (tau, *parameters) if self.is_tree else (tau, about, *parameters)

    def tree(self, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates of the tree, near `about` in `tail`, and its rates."""
        return (q, v) if self.is_tree else self.system.tree(q, v, tail[1], self._numbers(tail))

    def own(self, q: np.ndarray, v: np.ndarray, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and rates of the formulation from those of the tree."""
        return self.system.into(q, v, self._numbers(tail))


class LargeGearStepper(GearStepper):
    """Integrates a large model by Gear's method; fills `integrate.stepper.Stepper`."""

    def make_system(self, model: Model, formulation: Formulation, stabilised: bool) -> ImplicitSystem:
        """The equations, as sums over components."""
        return LargeImplicitSystem(model, formulation, stabilised)

    def make_events(self, graph: Any) -> Callable[..., None]:
        """Events as a function of (t, y, tau, about)."""
        system, (nq, nv, *_) = self.system, self.layout.sizes

        def events(t: float, y: np.ndarray, tau: np.ndarray, about: np.ndarray, *rest: Any) -> None:
            *parameters, out = rest
            tail = system.tail(about, tau, *parameters)
            out[:] = np.array(graph(t, *system.tree(y[:nq], y[nq : nq + nv], tail), tau, *parameters)).ravel()

        return events

    def project(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, p: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the samples unchanged: the solver ends on the constraints. Also return which left one open."""
        found = np.zeros(q.shape[:-1], dtype=bool)
        assert isinstance(self.system, LargeImplicitSystem)
        system, given = self.system.system, [x.reshape(-1, x.shape[-1]) for x in self.parameters]
        for at in np.ndindex(found.shape) if self.model.has_rows else ():
            if np.isfinite(q[at]).all():
                own = given[0][at[0] % len(given[0])] if p is None and given else None if p is None else p[at]
                numbers = system.components.numbers if own is None else system.components.at(own)
                found[at] = system.gap(float(t[at]), q[at], numbers) >= OPENED
        return q, v, found
