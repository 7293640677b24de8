"""Each formulation's quantities, by name. Adding a formulation is adding a column here."""

from __future__ import annotations

from collections.abc import Callable

from cardan.algebra.matrix import Matrix, stack
from cardan.algebra.spatial import first_moment
from cardan.errors import UnknownNameError, nearest
from cardan.formulation import newton_euler, spatial
from cardan.formulation.quantity import (
    PLUS,
    PROJECT,
    RATES,
    Inputs,
    Quantity,
    centroidal,
    fixed,
    inverse_of,
    per_body,
    per_velocity,
    potential_of_moment,
    solve_joint_space,
    square,
)
from cardan.formulation.recursion import Recursion, unroll
from cardan.model.model import Model

Finish = Callable[[Model, list[Matrix]], list[Matrix]]


def _dynamics(inverse: Recursion, loaded: Recursion, mass: Recursion) -> list[Quantity]:
    """Quantities that follow from inverse dynamics and the mass matrix in any formulation."""

    def inverse_mass(model: Model, inputs: Inputs) -> list[Matrix]:
        return [inverse_of(model, unroll(mass, model, inputs)[0])]

    tau = (("tau", per_velocity),)
    return [
        Quantity("inverse_dynamics", ("q", "v", "a"), tau, inverse),
        Quantity("inverse_dynamics_loaded", ("q", "v", "a", "wrenches"), tau, loaded),
        Quantity("bias_force", ("q", "v"), tau, inverse.at_rest("qdd")),
        Quantity("gravity_force", ("q",), tau, inverse.at_rest("qd", "qdd")),
        Quantity("mass_matrix", ("q",), (("M", square),), mass),
        Quantity("inverse_mass_matrix", ("q",), (("Minv", square),), write=inverse_mass),
    ]


def _solved(name: str, inverse: Recursion, mass: Recursion) -> Quantity:
    """Forward dynamics by solving `H qdd = tau - C`."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        C = unroll(inverse.at_rest("qdd"), model, inputs)[0]
        H = unroll(mass, model, inputs)[0]
        return [solve_joint_space(model, H, inputs["tau"] - C)]

    inputs = ("q", "v", "tau", "wrenches") if name.endswith("loaded") else ("q", "v", "tau")
    return Quantity(name, inputs, (("a", per_velocity),), write=write)


def _totals(
    kinetic: Recursion, momentum: Recursion, composite: Recursion, moment: Finish, spin: Finish
) -> list[Quantity]:
    """Energy, momentum and centre of mass, from sums over the tree.

    `moment` takes the composite's results to `[m, m c]`; `spin` those of momentum to `[h]`.
    """

    def potential(model: Model, results: list[Matrix]) -> list[Matrix]:
        return [potential_of_moment(model, moment(model, results)[1])]

    def com(model: Model, results: list[Matrix]) -> list[Matrix]:
        m, mc = moment(model, results)
        return [mc / m]

    def write_centroidal(model: Model, inputs: Inputs) -> list[Matrix]:
        h = spin(model, unroll(momentum, model, inputs))[0]
        return [centroidal(h, com(model, unroll(composite, model, {"q": inputs["q"]}))[0])]

    six = (("h", fixed(6)),)
    return [
        Quantity("kinetic_energy", ("q", "v"), (("T", fixed()),), kinetic),
        Quantity("potential_energy", ("q",), (("V", fixed()),), composite, finish=potential),
        Quantity("momentum", ("q", "v"), six, momentum, finish=spin),
        Quantity("center_of_mass", ("q",), (("c", fixed(3)),), composite, finish=com),
        Quantity("centroidal_momentum", ("q", "v"), six, write=write_centroidal),
    ]


def _table(quantities: list[Quantity]) -> dict[str, Quantity]:
    return {quantity.name: quantity for quantity in [*quantities, PLUS, RATES, PROJECT]}


_POSE, _TWIST = (("pose", per_body(16)),), (("v", per_body(6)),)
_WRENCH = (("f", lambda model: (len(model.tree.links), 6)),)

SPATIAL = _table(
    [
        Quantity("forward_dynamics", ("q", "v", "tau"), (("a", per_velocity),), spatial.FORWARD_DYNAMICS),
        Quantity(
            "forward_dynamics_loaded", ("q", "v", "tau", "wrenches"), (("a", per_velocity),),
            spatial.FORWARD_DYNAMICS_LOADED,
        ),
        *_dynamics(spatial.INVERSE_DYNAMICS, spatial.INVERSE_DYNAMICS_LOADED, spatial.MASS_MATRIX),
        Quantity("coriolis_matrix", ("q", "v"), (("C", square),), spatial.CORIOLIS_MATRIX),
        *_totals(
            spatial.KINETIC_ENERGY, spatial.MOMENTUM, spatial.COMPOSITE_INERTIA,
            moment=lambda model, results: [results[0][3, 3], first_moment(results[0])],
            spin=lambda model, results: results[:1],
        ),
        Quantity("joint_wrenches", ("q", "v", "a", "wrenches"), _WRENCH, spatial.JOINT_WRENCHES),
        Quantity("body_poses", ("q",), _POSE, spatial.BODY_POSES),
        Quantity("body_twists", ("q", "v"), _TWIST, spatial.BODY_TWISTS),
        Quantity("joint_axes", ("q",), (("axes", lambda model: (model.nv, 6)),), spatial.JOINT_AXES),
        Quantity("body_accelerations", ("q", "v", "a"), (("a", per_body(6)),), spatial.BODY_ACCELERATIONS),
    ]
)  # fmt: skip

NEWTON_EULER = _table(
    [
        _solved("forward_dynamics", newton_euler.INVERSE_DYNAMICS, newton_euler.MASS_MATRIX),
        _solved("forward_dynamics_loaded", newton_euler.INVERSE_DYNAMICS_LOADED, newton_euler.MASS_MATRIX),
        *_dynamics(newton_euler.INVERSE_DYNAMICS, newton_euler.INVERSE_DYNAMICS_LOADED, newton_euler.MASS_MATRIX),
        *_totals(
            newton_euler.KINETIC_ENERGY, newton_euler.MOMENTUM, newton_euler.COMPOSITE_INERTIA,
            moment=lambda model, results: results[:2],
            spin=lambda model, results: [stack(*results)],
        ),
        Quantity("joint_wrenches", ("q", "v", "a", "wrenches"), _WRENCH, newton_euler.JOINT_WRENCHES),
        Quantity("body_poses", ("q",), _POSE, newton_euler.BODY_POSES),
        Quantity("body_twists", ("q", "v"), _TWIST, newton_euler.BODY_TWISTS),
    ]
)  # fmt: skip

FORMULATIONS = {"spatial": SPATIAL, "newton_euler": NEWTON_EULER}


def quantity(formulation: str, name: str) -> Quantity:
    """Look up a quantity of a formulation."""
    if formulation not in FORMULATIONS:
        raise UnknownNameError(f"formulation {formulation!r} is not one{nearest(formulation, FORMULATIONS)}")
    table = FORMULATIONS[formulation]
    if name not in table:
        raise UnknownNameError(f"formulation {formulation!r} has no {name!r}{nearest(name, table)}")
    return table[name]
