"""`cd.equations(model)`: the contract of a formulation, as functions of arrays and as graphs.

M(q,t) vdot + J(q,t)^T lam = f(q,v,t)      J vdot = gamma(q,v,t)      qdot = N(q) v      phi(q,t) = 0
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.formulation import native
from cardan.formulation.quantity import Quantity, fixed
from cardan.functions.general import formulation_key
from cardan.model.model import Model
from cardan.structure.kernels import compile_quantity, function_of, graph_of
from cardan.structure.planarity import find_plane

if TYPE_CHECKING:
    from cardan.readable.symbols import Symbols


@dataclass(frozen=True)
class Equations:
    """The equations of motion of a model in one formulation and its own coordinates. Every method takes any batch.

    Tree formulations have the tree's q and v. `absolute`: for every link (7) the position of its centre of mass, m,
    and a quaternion, with rates (6) angular velocity, rad/s, in the `frame`, and velocity of the centre of mass,
    m/s. `relative`: for every link (7) position and quaternion of its joint frame relative to its neighbour's, with
    the relative twist (6). `lift` and `project` go to and from poses and twists of the bodies. Redundant constraint
    rows are all there.
    """

    model: Model
    formulation: str
    frame: str = "fixed"

    @property
    def key(self) -> str:
        """The formulation, with its frame."""
        if self.formulation == "points":
            find_plane(self.model)
        return formulation_key(self.formulation, self.frame)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return native.sizes(self.model, self.key)[0]

    @property
    def nv(self) -> int:
        """Number of rates."""
        return native.sizes(self.model, self.key)[1]

    @property
    def nl(self) -> int:
        """Number of constraint rows."""
        return int(self.graph("system").size1_out(2))

    def M(self, q: Any, t: Any = 0.0) -> Any:
        """Mass matrix (..., nv, nv)."""
        return self._system(q, np.zeros(self.nv), t=t)[0]

    def f(self, q: Any, v: Any, tau: Any = None, wrenches: Any = None, t: Any = 0.0) -> Any:
        """Right-hand side (..., nv): all forces, with drives `tau` (..., nv of the tree) and wrenches."""
        return self._system(q, v, tau, wrenches, t)[1]

    def J(self, q: Any, t: Any = 0.0) -> Any:
        """Constraint Jacobian (..., nl, nv)."""
        return self._system(q, np.zeros(self.nv), t=t)[2]

    def gamma(self, q: Any, v: Any, t: Any = 0.0) -> Any:
        """Right-hand side of the constraints at acceleration level (..., nl)."""
        return self._system(q, v, t=t)[3]

    def phi(self, q: Any, t: Any = 0.0) -> Any:
        """Position residual (..., nl), m and rad."""
        return self._system(q, np.zeros(self.nv), t=t)[4]

    def N(self, q: Any, v: Any) -> Any:
        """Rate of the configuration (..., nq), `N` times v."""
        return self._kernel("rates")(q, v)

    def plus(self, q: Any, v: Any) -> Any:
        """Configuration (..., nq) after moving with constant `v` (..., nv) for 1 s; quaternions keep their length."""
        return self._kernel("plus")(q, v)

    def lift(self, q: Any, v: Any) -> tuple[Any, Any]:
        """Poses (..., nb, 4, 4) and twists (..., nb, 6) of all bodies."""
        poses, twists = self._kernel("lift")(q, v)
        return poses.reshape(*poses.shape[:-1], 4, 4), twists

    def project(self, poses: Any, twists: Any) -> tuple[Any, Any]:
        """The other way: `q` (..., nq) and `v` (..., nv) from poses (..., nb, 4, 4) and twists (..., nb, 6)."""
        poses = np.asarray(poses)
        q, v = self._kernel("project")(poses.reshape(*poses.shape[:-2], 16), twists)
        return q, v

    def graph(self, name: str) -> Any:
        """CasADi function of `system` (M, f, J, gamma, phi), `rates`, `plus`, `lift`, `project`, `mass_matrix`, ..."""
        if name in ("system", "rates", "plus", "lift", "project"):
            return function_of(self.model, self._quantity(name))
        return graph_of(self.model, name, self.formulation)

    def sympy(
        self,
        *,
        symbols: str | Iterable[str] = "all",
        names: Mapping[str, str] | None = None,
        drives: Iterable[str] = (),
        simplify: bool = True,
    ) -> Symbols:
        """The equations as SymPy matrices `M`, `f`, `J`, `gamma`, `phi`, `N`, with the model's numbers as symbols.

        Args:
            symbols: "all", or a list of the numbers that become symbols, named as in `model.free`; of a vector only the
                entries that are not zero do. The others stay numbers.
            names: names of your own, or formulas: `{"rod.mass": "m", "rod.com": "l/2"}`; "rod.inertia.yy" is one entry.
            drives: joints whose drive `tau` is a symbol in `f`; the others' is 0.
            simplify: write each entry as short as can be found; otherwise as the graph has it.

        """
        from cardan.readable.symbols import symbols_of

        return symbols_of(self.model, self.key, symbols=symbols, names=names, drives=drives, simplify=simplify)

    def _system(self, q: Any, v: Any, tau: Any = None, wrenches: Any = None, t: Any = 0.0) -> Any:
        tau = np.zeros(self.model.nv) if tau is None else tau
        wrenches = np.zeros((self.model.nb, 6)) if wrenches is None else wrenches
        return self._kernel("system")(q, v, tau, wrenches, np.asarray(t, dtype=float))

    def _kernel(self, name: str) -> Any:
        place = ("native", self.key, name)
        if place not in self.model.kernels:
            self.model.kernels[place] = compile_quantity(self.model, self._quantity(name), f"native {self.key}")
        return self.model.kernels[place]

    def _quantity(self, name: str) -> Quantity:
        """A quantity in the formulation's own coordinates; its shapes are found by writing it once."""
        return _native_quantity(self.model, self.key, name)


def _native_quantity(model: Model, key: str, name: str) -> Quantity:
    place = ("native quantity", key, name)
    if place in model.kernels:
        found: Quantity = model.kernels[place]
        return found
    import casadi as ca

    nq, nv = native.sizes(model, key)
    own: dict[str, tuple[int, ...]] = {"q": (nq,), "v": (nv,)}
    every: dict[str, dict[str, tuple[int, ...]]] = {
        "system": {**own, "tau": (model.nv,), "wrenches": (model.nb, 6), "t": ()},
        "rates": own,
        "plus": own,
        "lift": own,
        "project": {"poses": (model.nb, 16), "twists": (model.nb, 6)},
    }
    inputs = every[name]
    tree = key in native.TREE and name == "project"
    write = partial(_tree_project if tree else getattr(native, name), key=key)

    def written(model: Model, symbols: Any) -> Any:
        return write(model, inputs=symbols)

    values = written(model, {port: ca.SX.sym(port, *(shape or (1,))) for port, shape in inputs.items()})
    outputs = tuple(
        (
            f"out{k}",
            fixed(*(value.shape if name in ("lift",) or (name == "system" and k in (0, 2)) else value.shape[:1])),
        )
        for k, value in enumerate(values)
    )
    quantity = Quantity(name, tuple(inputs), outputs, write=written, shapes=inputs)
    model.kernels[place] = quantity
    return quantity


def _tree_project(model: Model, key: str, inputs: Any) -> Any:
    from cardan.formulation.quantity import PROJECT

    return PROJECT.graph(model, inputs)


def equations(model: Model, *, formulation: str = "spatial", frame: str = "fixed") -> Equations:
    """Equations of motion of any mechanism: "spatial", "newton_euler", "absolute", "relative", "points".

    `frame`, "fixed" or "body", says where `absolute` has its angular velocities.
    """
    formulation_key(formulation, frame)
    return Equations(model, formulation, frame)
