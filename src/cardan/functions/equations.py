"""`cd.equations(model)`: the contract of a formulation, as functions of arrays and as graphs.

M(q,t) vdot + J(q,t)^T lam = f(q,v,t)      J vdot = gamma(q,v,t)      J v = beta(q,t)      qdot = N(q) v
phi(q,t) = 0 for rows at position level, d phi/dq N = J row by row
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack, overload

import numpy as np

from cardan.errors import InputError, ModelError, Removed, no_attribute, no_such_argument
from cardan.formulation import dynamics
from cardan.formulation.coordinates import own_equations
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity, Shape, fixed
from cardan.model.curve import Curve
from cardan.model.joint import Curvilinear
from cardan.model.memory import KernelSlot, Slot, require_model
from cardan.model.model import Model
from cardan.model.row import RowTable
from cardan.on_card import as_array, is_device_array, require_host
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import compile_quantity, function_of, tree_quantity
from cardan.structure.planarity import prepare, require_planar
from cardan.structure.redundancy import require_motion
from cardan.structure.rounding import warn_outside
from cardan.structure.rows import kept_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from cardan.readable.symbols import Symbols

_KERNELS: KernelSlot[tuple[str, str]] = KernelSlot("the contract in a formulation's own coordinates")
_QUANTITIES: Slot[tuple[str, str], Quantity] = Slot("quantities of the contract")
SYSTEM = ("M", "f", "J", "gamma", "beta", "phi")
# What attributes are called in other programs, and what to write here.
ELSEWHERE = {
    "latex": "equations.sympy().latex()", "pprint": "sympy.pprint(equations.sympy().M)",
    "mass_matrix": "equations.M(q)", "mass_matrix_full": "equations.M(q)", "forcing": "equations.f(q, v)",
    "forcing_full": "equations.f(q, v)", "rhs": "cd.forward_dynamics(model, q, v)",
    "C": "cd.coriolis_matrix(model, q, v)", "g": "cd.gravity_force(model, q)",
}  # fmt: skip
CONTRACT = ("system", "rates", "plus", "lift", "project", "momentum_equations")


@dataclass(frozen=True)
class Equations:
    """The equations of motion of a model in one formulation and its own coordinates. Every method takes any batch.

    Tree formulations have the tree's q and v. `absolute`: for every link (7) the position of its centre of mass, m,
    and a quaternion, with rates (6) angular velocity, rad/s, in the fixed frame, and velocity of the centre of mass,
    m/s; `absolute_body` has the angular velocity in the body's axes. `relative`: for every link (7) position and
    quaternion of its joint frame relative to its neighbour's, with the relative twist (6). `points`: coordinates of
    points, m. `lift` and `project` go to and from poses and twists of the bodies. Redundant rows are all there.
    For derivatives of these differentiate `graph("system")`; `cd.jvp`, `cd.vjp` and `cd.compile(by=)` are for
    quantities with one result.
    """

    model: Model
    formulation: Formulation

    def __repr__(self) -> str:
        """What they are, and how to see them."""
        return (
            f"Equations of motion of {self.model.name!r}, formulation {self.formulation.name!r}: sympy() writes them "
            "as symbols; M(q), f(q, v) and the others are numbers"
        )

    def __getattr__(self, name: str) -> Any:
        """Say what an attribute that there is not is called here."""
        raise no_attribute("Equations", name, Equations.__dict__, ELSEWHERE)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.formulation.sizes(self.model)[0]

    @property
    def nv(self) -> int:
        """Number of rates."""
        return self.formulation.sizes(self.model)[1]

    @property
    def nl(self) -> int:
        """Number of constraint rows."""
        return len(self.rows)

    @property
    def rows(self) -> RowTable:
        """The constraint rows: owner, name, units of residual and multiplier, level and law of each. Print it."""
        return dynamics.shape_of(self.model, self.formulation).labels

    def M(self, q: ArrayLike, t: ArrayLike = 0.0) -> NDArray[Any]:
        """Mass matrix (..., nv, nv)."""
        return self._system(q, np.zeros(self.nv), t=t)[0]

    def f(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, wrenches: ArrayLike | None = None,
        t: ArrayLike = 0.0,
    ) -> NDArray[Any]:  # fmt: skip
        """Right-hand side (..., nv): all forces, with drives `tau` (..., nv of the tree) and wrenches."""
        return self._system(q, v, tau, wrenches, t)[1]

    def J(self, q: ArrayLike, t: ArrayLike = 0.0) -> NDArray[Any]:
        """Constraint Jacobian (..., nl, nv)."""
        return self._system(q, np.zeros(self.nv), t=t)[2]

    def gamma(self, q: ArrayLike, v: ArrayLike, t: ArrayLike = 0.0) -> NDArray[Any]:
        """Right-hand side of the constraints at acceleration level (..., nl)."""
        return self._system(q, v, t=t)[3]

    def beta(self, q: ArrayLike, t: ArrayLike = 0.0) -> NDArray[Any]:
        """Right-hand side of the constraints at velocity level (..., nl)."""
        return self._system(q, np.zeros(self.nv), t=t)[4]

    def phi(self, q: ArrayLike, t: ArrayLike = 0.0) -> NDArray[Any]:
        """Position residual (..., nl) in the units of `rows`; zero in rows at rate level."""
        return self._system(q, np.zeros(self.nv), t=t)[5]

    def N(self, q: ArrayLike) -> NDArray[Any]:
        """Matrix (..., nq, nv) from rates to the rate of the configuration, `qdot = N v`."""
        require_host("equations: N", q=q)
        q = np.asarray(q, dtype=float)
        columns = self._kernel("rates")(q[..., None, :], np.eye(self.nv))
        return np.swapaxes(columns, -1, -2)

    def rates(self, q: ArrayLike, v: ArrayLike) -> NDArray[Any]:
        """Rate of the configuration (..., nq), `N(q) v`."""
        return self._kernel("rates")(q, v)

    def plus(self, q: ArrayLike, v: ArrayLike) -> NDArray[Any]:
        """Configuration (..., nq) after moving with constant `v` (..., nv) for 1 s; quaternions keep their length."""
        return self._kernel("plus")(q, v)

    def lift(self, q: ArrayLike, v: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Poses (..., nb, 4, 4) and twists (..., nb, 6) of all bodies."""
        poses, twists = self._kernel("lift")(q, v)
        return poses.reshape((*poses.shape[:-1], 4, 4)), twists

    def project(self, poses: ArrayLike, twists: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """The other way: `q` (..., nq) and `v` (..., nv) from poses (..., nb, 4, 4) and twists (..., nb, 6)."""
        given: Any = as_array(poses)
        q, v = self._kernel("project")(given.reshape((*given.shape[:-2], 16)), twists)
        return q, v

    @property
    def momentum_rows(self) -> tuple[str, ...]:
        """What each of the momentum equations says."""
        return tuple(
            self.formulation.momentum_labels(dynamics.parts_over_symbols(self.model.unbound, self.formulation))
        )

    def momentum_equations(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, wrenches: ArrayLike | None = None,
        t: ArrayLike = 0.0,
    ) -> tuple[NDArray[Any], NDArray[Any]]:  # fmt: skip
        """The same equations as AT writes them, `A (vdot, mu) = b`: `A` (..., n, n), `b` (..., n), for `points`.

        For every joint the momentum of all that it carries, in the ways that it leaves free: angular momentum about a
        pin, AT(11), momentum along a slide, linear and angular momentum of what floats, AT(10), (11). Then the
        constraints of the body on it, AT(12), and of loops, whose multipliers `mu` (the last rows of `lam`) are unknown
        loads. `momentum_rows` tells what each says. At a state whose bodies have their lengths `vdot` and `mu` are
        those of the contract.
        """
        require_planar(self.model, self.formulation)
        A, b = self._kernel("momentum_equations")(q, v, *self._given(tau, wrenches, t))
        return A, b

    def graph(self, name: str) -> Any:
        """A CasADi function with named inputs and outputs, in this order; free parameters `p` come last.

        In the formulation's own coordinates: `system` (q, v, tau, wrenches, t) -> (M, f, J, gamma, beta, phi); `rates`
        (q, v) -> qdot; `plus` (q, v) -> q_out; `lift` (q, v) -> (poses, twists), poses row by row (nb, 16); `project`
        (poses, twists) -> (q, v); `momentum_equations` (q, v, tau, wrenches, t) -> (A, b), for `points`.
        In the tree's, each computing what the function of the same name does:
        `forward_dynamics` (q, v, tau, t if the model depends on it) -> a, with loops, couplings and force elements;
        `inverse_dynamics` (q, v, a, wrenches unless it is a plain tree, t) -> tau, of the tree with force elements,
        before constraints bear a part of it; `joint_wrenches` (q, v, a, wrenches, t) -> f; `kinetic_energy` (q, v) ->
        T; `potential_energy` q -> V; and of the tree alone `mass_matrix`, `inverse_mass_matrix`, `bias_force`,
        `gravity_force`, `coriolis_matrix`, `momentum`, `center_of_mass`, `body_poses`, ...
        """
        require_no_laws(f"equations: graph({name!r})", self.model, name, "cd.forward_dynamics finds it at each state")
        return function_of(self.model, self.quantity(name))

    def require_derivatives(self, owner: str, name: str) -> None:
        """Refuse to differentiate what has several results, or is in coordinates of the formulation's own."""
        if name in CONTRACT and not self.formulation.in_tree:
            raise InputError(
                f"{owner}: {name!r} is in the own coordinates of {self.formulation.name!r}, which have no tangent "
                f"here; differentiate cd.equations(...).graph({name!r}), or ask in formulation='spatial'"
            )
        outputs = self.quantity(name).outputs
        if len(outputs) > 1:
            names = ", ".join(label for label, _ in outputs)
            raise InputError(f"{owner}: derivatives are for quantities with one result, it has {names}")

    def quantity(self, name: str) -> Quantity:
        """What `graph` records, with the shapes of its arrays."""
        if name in CONTRACT:
            return self._quantity(name)
        if name in _WHOLE:
            return _WHOLE[name](self.model, self.formulation)
        return tree_quantity(self.formulation, name)

    @overload
    def sympy(
        self, *, symbols: str | Iterable[str] = ..., names: Mapping[str, str] | None = ..., drives: Iterable[str] = ...,
        simplify: bool = ..., style: None = None,
    ) -> Symbols: ...  # fmt: skip
    @overload
    def sympy(
        self, *, symbols: str | Iterable[str] = ..., names: Mapping[str, str] | None = ..., drives: Iterable[str] = ...,
        simplify: bool = ..., style: str,
    ) -> Any: ...  # fmt: skip
    def sympy(
        self, *, symbols: str | Iterable[str] = "all", names: Mapping[str, str] | None = None,
        drives: Iterable[str] = (), simplify: bool = True, style: str | None = None,
    ) -> Any:  # fmt: skip
        """The equations as SymPy matrices `M`, `f`, `J`, `gamma`, `phi`, `N`, with the model's numbers as symbols.

        Args:
            symbols: "all", or a list of the numbers that become symbols, named as in `model.free`; of a vector only the
                entries that are not zero do. The others stay numbers.
            names: names of your own, or formulas: `{"rod.mass": "m", "rod.com": "l/2"}`; "rod.inertia.yy" is one entry.
            drives: joints whose drive `tau` is a symbol in `f`; the others' is 0.
            simplify: write each entry as short as can be found; otherwise as the graph has it.
            style: "KJ" writes the rows of joints in `absolute`, `absolute_body` and `relative` as KJ does: along its
                directions, with its vectors from centres of mass to joints as symbols.
            style: "AT" gives `momentum_equations` of `points` as AT prints them: `A`, `b`, `unknowns`, `equations` with
                the particles' m1, m2, m3, nu and lambda as symbols; `symbols` names numbers that are to be symbols
                although they are 0, 1 or those of a rod.

        """
        from cardan.readable.styles import find_style

        if along := _along_curves(self.model):
            raise ModelError(
                f"equations of {self.model.name!r}: {along[0]} is along a curve, whose length and frame are lookups in "
                "tables and no formulas to print; take their values, or their graph: equations(model).graph(...)"
            )
        if self.model.laws:
            laws = ", ".join(repr(law.name) for law in self.model.laws)
            warn_outside(
                f"equations of {self.model.name!r}: the forces of stops, friction that sticks and locks, {laws}, are "
                "not in them; they follow from what moves and how (model.lawful_rows)"
            )
        return find_style(style)(
            self.model, self.formulation, symbols=symbols, names=names, drives=drives, simplify=simplify
        )

    def _system(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, wrenches: ArrayLike | None = None,
        t: ArrayLike = 0.0,
    ) -> Any:  # fmt: skip
        return self._kernel("system")(q, v, *self._given(tau, wrenches, t))

    def _given(self, tau: ArrayLike | None, wrenches: ArrayLike | None, t: ArrayLike) -> tuple[Any, Any, Any]:
        tau = np.zeros(self.model.nv) if tau is None else tau
        wrenches = np.zeros((self.model.nb, 6)) if wrenches is None else wrenches
        return tau, wrenches, t if is_device_array(t) else np.asarray(t, dtype=float)

    def _kernel(self, name: str) -> Any:
        def make() -> Any:
            return compile_quantity(self.model, self._quantity(name), f"own {self.formulation.facts(self.model)}")

        return _KERNELS.find(self.model, (self.formulation.key, name), make)

    def _quantity(self, name: str) -> Quantity:
        """A part of the contract as a quantity."""
        return _QUANTITIES.find(
            self.model, (self.formulation.key, name), lambda: _own_quantity(self.model.unbound, self.formulation, name)
        )


def _own_quantity(model: Model, formulation: Formulation, name: str) -> Quantity:
    nq, nv = formulation.sizes(model)
    own: dict[str, Shape] = {"q": (nq,), "v": (nv,)}
    loaded = own | {"tau": (model.nv,), "wrenches": (model.nb, 6), "t": ()}
    if name == "momentum_equations":
        return _momentum_quantity(model, formulation, loaded)
    if name == "system":
        nl = len(dynamics.shape_of(model, formulation).labels)
        shapes = loaded
        sizes: list[Shape] = [(nv, nv), (nv,), (nl, nv), (nl,), (nl,), (nl,)]

        def system(model: Model, s: Any) -> list[Any]:
            parts = own_equations(model, formulation, s)
            rows = parts.rows
            return [parts.M, parts.f, rows.J, rows.gamma, rows.beta, rows.phi]

        outputs = tuple((label, fixed(*size)) for label, size in zip(SYSTEM, sizes, strict=True))
        return Quantity(name, tuple(shapes), outputs, write=system, shapes=shapes)
    bodies: dict[str, Shape] = {"poses": (model.nb, 16), "twists": (model.nb, 6)}
    coordinates: dict[str, Shape] = {"qdot" if name == "rates" else "q": (nq,)}
    found = {"lift": bodies, "project": own}.get(name, coordinates)
    inputs = bodies if name == "project" else own

    def write(model: Model, s: Any) -> list[Any]:
        values = getattr(formulation, name)(model, *(s[port] for port in inputs))
        return list(values) if isinstance(values, tuple) else [values]

    return Quantity(
        name, tuple(inputs), tuple((port, fixed(*shape)) for port, shape in found.items()), write=write, shapes=inputs
    )


def _momentum_quantity(model: Model, formulation: Formulation, shapes: dict[str, Shape]) -> Quantity:
    n = len(formulation.momentum_labels(dynamics.parts_over_symbols(model, formulation)))

    def momentum(model: Model, s: Any) -> list[Any]:
        return list(formulation.momentum_equations(own_equations(model, formulation, s)))

    return Quantity(
        "momentum_equations", tuple(shapes), (("A", fixed(n, n)), ("b", fixed(n))), write=momentum, shapes=shapes
    )


Choice = Callable[[Model, Formulation], Quantity]


def _recursion_or(name: str, whole: Choice) -> Choice:
    """The recursion of a plain tree, where the formulation has one, else a quantity of the whole mechanism."""

    def choose(model: Model, formulation: Formulation) -> Quantity:
        if model.is_plain and formulation.has_recursions:
            return tree_quantity(formulation, name)
        return whole(model, formulation)

    return choose


def _forward(loaded: bool) -> Choice:
    def choose(model: Model, formulation: Formulation) -> Quantity:
        require_motion(model)
        return dynamics.forward_dynamics(model, formulation, kept_rows(model, formulation), loaded)

    return choose


def _kinetic(model: Model, formulation: Formulation) -> Quantity:
    has = formulation.has_recursions
    return tree_quantity(formulation, "kinetic_energy") if has else dynamics.kinetic_energy(formulation)


def _potential(model: Model, formulation: Formulation) -> Quantity:
    return dynamics.potential_energy(tree_quantity(formulation, "potential_energy"))


def _joint_wrenches(model: Model, formulation: Formulation) -> Quantity:
    model.require_tree("joint_wrenches")
    return dynamics.joint_wrenches(model, tree_quantity(formulation, "joint_wrenches"))


_WHOLE: dict[str, Choice] = {
    "forward_dynamics": _recursion_or("forward_dynamics", _forward(False)),
    "forward_dynamics_loaded": _recursion_or("forward_dynamics_loaded", _forward(True)),
    "inverse_dynamics": _recursion_or("inverse_dynamics", dynamics.inverse_dynamics),
    "inverse_dynamics_loaded": _recursion_or("inverse_dynamics_loaded", dynamics.inverse_dynamics),
    "kinetic_energy": _kinetic,
    "potential_energy": _recursion_or("potential_energy", _potential),
    "joint_wrenches": _joint_wrenches,
}
"""What the functions of these names compute, where that is more than a recursion over the tree."""
WITH_FORCES = ("forward_dynamics", "inverse_dynamics", "joint_wrenches")
"""How the names of quantities begin that depend on all forces, also on those of rows with laws."""


def require_no_laws(owner: str, model: Model, name: str, instead: str) -> None:
    """Refuse a quantity of one graph that depends on the forces of stops, friction that sticks and locks."""
    if name.startswith(WITH_FORCES):
        model.require_no_laws(owner, instead)


SOLVED = {"forward_dynamics": False, "forward_dynamics_loaded": True}
"""Those solved with chosen constraint rows, and whether wrenches act."""


def equations(model: Model, *, formulation: str | Formulation = "spatial", **removed: Unpack[Removed]) -> Equations:
    """Equations of motion of any mechanism in one formulation; see `Equations`.

    `formulation` is "spatial", "newton_euler", "absolute", "absolute_body", "relative", "points" or one of your own.
    """
    require_model("equations", model)
    if removed:
        raise no_such_argument("equations", removed)
    found = formulation_of(model, formulation)
    prepare(model, found)
    return Equations(model, found)


def _along_curves(model: Model) -> list[str]:
    """The joints and constraints that are along curves."""
    joints = [f"joint {joint.name!r}" for joint in model.joints if isinstance(joint.type, Curvilinear)]
    elements = [e for e in model.constraint_elements if any(isinstance(f, Curve) for f in e.functions.values())]
    return joints + [element.owner for element in elements]
