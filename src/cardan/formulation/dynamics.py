"""Dynamics of any mechanism, with loops, force elements and couplings, in any formulation, at a state of the tree.

Where a plain tree has recursions of its own (`TreeFormulation.quantities`), everything else is written here from the
contract: `rows` are the numbers of the constraint rows kept, an independent set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cardan.algebra.matrix import Matrix, constant, dot, eye, segment, stack, zeros
from cardan.formulation import elements
from cardan.formulation.elements import Loads, loads_at, with_wrenches
from cardan.formulation.formulation import Formulation, Parts, tree_rates
from cardan.formulation.kinematics import Kinematics, kinematics_of_tree
from cardan.formulation.law_motion import LawMotion, law_motion
from cardan.formulation.modes import law_forces
from cardan.formulation.quantity import Inputs, Quantity, Shape, fixed, per_velocity
from cardan.formulation.recursion import Nodes
from cardan.formulation.solution import Solution, size_of
from cardan.formulation.tree import TreeFormulation, stacked_drives
from cardan.model.force import BodyPose
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.model.plane import in_plane
from cardan.model.row import RowTable
from cardan.model.sight import Sight
from cardan.model.tree import GROUND

if TYPE_CHECKING:
    import numpy as np


def parts_at(model: Model, formulation: Formulation, inputs: Inputs) -> Parts:
    """A formulation's equations at a state of the tree: `q`, `v`, and, zero if left out, `tau`, `wrenches`, `t`."""
    q, v = inputs["q"], inputs["v"]
    kin = formulation.kinematics_of_tree(model, q, v)
    tau = inputs.get("tau", type(q)(model.nv, 1))
    return formulation.equations(model, kin, loads_at(kin, tau, _wrenches(model, inputs), time_of(inputs)))


def law_motion_at(model: Model, formulation: Formulation, rows: Sequence[int], inputs: Inputs) -> LawMotion:
    """The same with symbols for the forces of the rows with laws, solved with `rows` kept."""
    return law_motion(formulation, parts_at(model, formulation, inputs), rows)


def solution_at(
    model: Model, formulation: Formulation, rows: Sequence[int], inputs: Inputs
) -> tuple[Solution, Callable[[list[Matrix]], list[Matrix]]]:
    """The solution of the equations at a state, and what completes values that are read off it.

    Rows with laws act in the modes that the model has as numbers (`model.modes`): their forces are put in.
    """
    if has_modes(model):
        motion = law_motion_at(model, formulation, rows, inputs)
        forces: list[Matrix] = []

        def complete(values: list[Matrix]) -> list[Matrix]:
            if not forces:
                forces.append(law_forces(motion))
            return motion.at(forces[0], values)

        return motion.solution, complete
    parts = parts_at(model, formulation, inputs)
    none = zeros(1, 1, inputs["q"])
    return Solution(formulation, parts, tuple(rows), *formulation.solve(parts, rows), none), lambda values: values


def solved(
    model: Model, formulation: Formulation, rows: Sequence[int], inputs: Inputs,
    write: Callable[[Solution], list[Matrix]],
) -> list[Matrix]:  # fmt: skip
    """What `write` makes of the solution of the equations at a state."""
    solution, complete = solution_at(model, formulation, rows, inputs)
    return complete(write(solution))


def forward_dynamics(model: Model, formulation: Formulation, rows: Sequence[int], loaded: bool) -> Quantity:
    """Accelerations (nv,) of the tree's coordinates."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        return solved(model, formulation, rows, inputs, lambda own: [own.a])

    solves = (formulation, tuple(rows)) if isinstance(formulation, TreeFormulation) and not has_modes(model) else None
    return Quantity("forward_dynamics", load_ports(model, loaded), (("a", per_velocity),), write=write, solves=solves)


def motion_and_power(
    model: Model, formulation: Formulation, rows: Sequence[int], sights: Sequence[Sight] = ()
) -> Quantity:
    """Accelerations (nv,) of the tree's coordinates, and the power (W) that enters: `entering_power`.

    Then, if there are any, what `sights` read of the answer, one below the other.
    """

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        def read(own: Solution) -> list[Matrix]:
            entering = entering_power(own.parts, inputs["tau"], rows, own.lam) + own.power
            return [own.a, entering, *([own.column(sights)] if sights else [])]

        return solved(model, formulation, rows, inputs, read)

    outputs = (("a", per_velocity), ("P", fixed()), *([("read", fixed(size_of(sights)))] if sights else []))
    return Quantity("motion_and_power", load_ports(model, False), outputs, write=write)


def power(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """The power (W) that enters alone: `entering_power`."""
    whole = motion_and_power(model, formulation, rows)
    write = lambda model, inputs: whole.graph(model, inputs)[1:]
    return Quantity("power", whole.inputs, whole.outputs[1:], write=write)


def entering_power(parts: Parts, tau: Matrix, rows: Sequence[int], lam: Matrix) -> Matrix:
    """Power `d(T + V)/dt = v^T tau + P - lam^T beta` (W): of drives `tau`, force elements and prescribed motions.

    `lam` are the multipliers of `rows`; `P` is that of `elements.element_power`.
    """
    kin = parts.kin
    power = elements.element_power(kin, parts.loads.t) - dot(lam, parts.rows.kept(list(rows)).beta)
    for link in kin.model.tree.links:
        if link.kind.nv:
            power = power + dot(kin.joint(link.joint)[1], segment(tau, link.v))
    return power


def inverse_dynamics(model: Model, formulation: Formulation, loaded: bool = True) -> Quantity:
    """Forces (nv,) along the tree's coordinates that give accelerations `a` (nv,), cut joints and couplings apart.

    Wrenches on the bodies are an input if it is `loaded`.

    With `u = S(q) v` the formulation's own rates on the tree's motions, `u' = S a + S' v` goes into its equations,
    and what is missing there does the work `S^T (M u' - f)` along the tree's coordinates: the rows of the tree's
    joints do none, `J S = 0`.
    """
    import casadi as ca

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q, v = inputs["q"], inputs["v"]
        parts = parts_at(model, formulation, {name: x for name, x in inputs.items() if name != "a"})
        u = parts.rates
        rate = ca.jtimes(u, v, inputs["a"]) + ca.jtimes(u, q, tree_rates(model, q, v))
        return [-ca.jtimes(u, v, formulation.missing_force(parts, rate), True)]

    inputs = ("q", "v", "a", *(("wrenches",) if loaded else ()), *time_port(model))
    return Quantity("inverse_dynamics", inputs, (("tau", per_velocity),), write=write)


def joint_wrenches(model: Model, balance: Quantity) -> Quantity:
    """Wrench (number of joints, 6) of every joint of a tree on its child at M, at accelerations `a` (nv,).

    `balance` is a formulation's own, link by link; the model's force elements act on the bodies.
    """

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q, v, t = inputs["q"], inputs["v"], time_of(inputs)
        on_bodies = elements.body_wrenches(kinematics_of_tree(model, q, v), t)
        wrenches = with_wrenches(Loads({}, inputs["wrenches"], t), on_bodies).wrenches
        apart = model.unmerged
        rows = balance.graph(apart, {"q": q, "v": v, "a": inputs["a"], "wrenches": wrenches})[0]
        at = {link.joint: i for i, link in enumerate(apart.tree.links)}
        return [stack(*(rows[at[j], :] for j in range(len(model.joints))))]

    inputs = ("q", "v", "a", "wrenches", *time_port(model))
    return Quantity("joint_wrenches", inputs, (("f", _per_joint),), write=write)


def kinetic_energy(formulation: Formulation) -> Quantity:
    """Kinetic energy (J), `u M u / 2` in a formulation's own rates."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        parts = parts_at(model, formulation, inputs)
        return [dot(parts.rates, parts.M @ parts.rates) / 2]

    return Quantity("kinetic_energy", ("q", "v"), (("T", fixed()),), write=write)


def potential_energy(gravity: Quantity) -> Quantity:
    """Potential energy (J) of gravity, by a formulation's own recursion, and of springs and the like."""
    springs = element_potential()

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        return [gravity.graph(model, inputs)[0] + springs.graph(model, inputs)[0]]

    return Quantity("potential_energy", ("q",), (("V", fixed()),), write=write)


def reactions(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """Wrench (number of joints, 6) of every joint on its child at M, as the mechanism moves under its loads."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        return solved(model, formulation, rows, inputs, lambda own: [own.wrenches])

    return Quantity("reactions", load_ports(model, True), (("f", _per_joint),), write=write)


def motion_and_reactions(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """Accelerations (nv,) of the tree's coordinates and wrenches (number of joints, 6) of `reactions`, at once."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        return solved(model, formulation, rows, inputs, lambda own: [own.a, own.wrenches])

    outputs = (("a", per_velocity), ("f", _per_joint))
    return Quantity("motion_and_reactions", load_ports(model, True), outputs, write=write)


def reactions_in_plane(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """The part in the plane (`model.plane.in_plane`) of the wrenches (number of joints, 6) of all joints."""
    every, projectors = reactions(model, formulation, rows), in_plane(model)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        wrenches = every.graph(model, inputs)[0]
        return [stack(*((constant(P) @ wrenches[j, :].T).T for j, P in enumerate(projectors)))]

    return Quantity("reactions_in_plane", load_ports(model, True), (("f", _per_joint),), write=write)


def multipliers(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """`lam` (nl,) of a formulation's constraint rows; zero for those left out of `rows`."""
    nl = len(shape_of(model, formulation).labels)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        return solved(model, formulation, rows, inputs, lambda own: [own.every])

    return Quantity("multipliers", load_ports(model, False), (("lam", fixed(nl)),), write=write)


def equations_of_motion(model: Model, formulation: Formulation) -> Quantity:
    """`M`, `f`, `J`, `gamma`, `beta` and `phi` in the formulation's own rates, at a state of the tree."""
    shape = shape_of(model, formulation)
    n, nl = shape.rates, len(shape.labels)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        parts = parts_at(model, formulation, inputs)
        rows = parts.rows
        return [parts.M, parts.f, rows.J, rows.gamma, rows.beta, rows.phi]

    columns = tuple((name, fixed(nl)) for name in ("gamma", "beta", "phi"))
    outputs = (("M", fixed(n, n)), ("f", fixed(n)), ("J", fixed(nl, n)), *columns)
    return Quantity("equations_of_motion", load_ports(model, True), outputs, write=write)


def constraint_rows(model: Model) -> Quantity:
    """`J` (nl, nv) and `beta` (nl,) with `J v = beta` on consistent velocities, in the tree's coordinates."""
    from cardan.formulation.spatial import SPATIAL

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        rows = parts_at(model, SPATIAL, _still(model, inputs)).rows
        return [rows.J, rows.beta]

    nl = len(model.rows)
    outputs = (("J", lambda m: (nl, m.nv)), ("beta", fixed(nl)))
    return Quantity("constraint_rows", ("q", *time_port(model)), outputs, write=write)


def constraint_state(model: Model) -> Quantity:
    """`phi` (nl,), `J` (nl, nv) and `beta` (nl,) in the tree's coordinates."""
    from cardan.formulation.spatial import SPATIAL

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        rows = parts_at(model, SPATIAL, _still(model, inputs)).rows
        return [rows.phi, rows.J, rows.beta]

    nl = len(model.rows)
    outputs = (("phi", fixed(nl)), ("J", lambda m: (nl, m.nv)), ("beta", fixed(nl)))
    return Quantity("constraint_state", ("q", *time_port(model)), outputs, write=write)


def constraint_residual(model: Model) -> Quantity:
    """Position residual `phi` (nl,) and its derivative (nl, nv) along the tree's rates; zero in rows at rate level."""
    import casadi as ca

    from cardan.formulation.spatial import SPATIAL

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q, v = inputs["q"], ca.SX.sym("v", model.nv)
        phi = parts_at(model, SPATIAL, _still(model, inputs)).rows.phi
        # slopes by q first: the rates that a table's derivative was given would stay in a derivative by them
        return [phi, ca.jacobian(phi, q) @ ca.jacobian(tree_rates(model, q, v), v)]

    nl = len(model.rows)
    outputs = (("phi", fixed(nl)), ("G", lambda m: (nl, m.nv)))
    return Quantity("constraint_residual", ("q", *time_port(model)), outputs, write=write)


@dataclass(frozen=True)
class EquationShape:
    """What is known of a formulation's equations without their values.

    `rates` is the size of `M`; `labels` are those of the constraint rows; `lent` as in `Parts`.
    """

    rates: int
    labels: RowTable
    lent: np.ndarray | None


_SHAPES: Slot[str, EquationShape] = Slot("sizes and row labels of equations, by formulation")


def shape_of(model: Model, formulation: Formulation) -> EquationShape:
    """Size and row labels of a formulation's equations, for which they are written once."""

    def make() -> EquationShape:
        parts = parts_over_symbols(model.unbound, formulation)
        return EquationShape(parts.M.size1(), parts.rows.labels, parts.lent)

    return _SHAPES.find(model, formulation.key, make)


def parts_over_symbols(model: Model, formulation: Formulation) -> Parts:
    """A formulation's equations over throw-away symbols."""
    import casadi as ca

    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    return parts_at(model, formulation, {"q": q, "v": v})


def time_port(model: Model) -> tuple[str, ...]:
    """The input for time, where the model depends on it."""
    return ("t",) if model.depends_on_time else ()


def time_of(inputs: Inputs) -> Matrix:
    """Time, zero where it is not an input."""
    return inputs["t"] if "t" in inputs else zeros(1, 1, inputs["q"])


def _still(model: Model, inputs: Inputs) -> Inputs:
    return {**inputs, "v": type(inputs["q"])(model.nv, 1)}


def _wrenches(model: Model, inputs: Inputs) -> Matrix:
    return inputs["wrenches"] if "wrenches" in inputs else type(inputs["q"])(model.nb, 6)


def load_ports(model: Model, loaded: bool) -> tuple[str, ...]:
    """Inputs of a state and of what acts at it; wrenches on bodies if `loaded`."""
    return ("q", "v", "tau", *(("wrenches",) if loaded else ()), *time_port(model))


def _per_joint(model: Model) -> Shape:
    return (len(model.joints), 6)


def element_power(model: Model) -> Quantity:
    """Power `P` (W) of the force elements less what their own potential energy takes up.

    `d(T + V)/dt = v^T tau + P - lam^T beta`: zero for a spring, the loss of a damper or of friction, all of a drive or
    of a user's force.
    """

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        return [elements.element_power(kinematics_of_tree(model, inputs["q"], inputs["v"]), time_of(inputs))]

    return Quantity("element_power", ("q", "v", *time_port(model)), (("P", fixed()),), write=write)


def joint_loads(model: Model) -> Quantity:
    """Forces (nv,) of the force elements in the joints of a tree."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q, v = inputs["q"], inputs["v"]
        kin = Kinematics(model, Nodes([], [], None), q, v)  # of the joints alone
        return [stacked_drives(model, elements.joint_forces(kin, time_of(inputs)), q)]

    return Quantity("joint_loads", ("q", "v", *time_port(model)), (("Q", per_velocity),), write=write)


def loaded_bodies(model: Model) -> list[int]:
    """The bodies that force elements act between, in the order of the model."""
    return sorted({b for force in model.forces if force.kind.on == "bodies" for b in force.on if b != GROUND})


@dataclass(frozen=True)
class _GivenBodies(Kinematics):
    """Some bodies whose poses and twists are given."""

    given: Mapping[int, tuple[BodyPose, Matrix]] = field(default_factory=dict)

    def pose(self, b: int) -> BodyPose:
        """As given."""
        return self.given[b][0]

    def twist(self, b: int) -> Matrix:
        """As given."""
        return self.given[b][1]


def body_loads(model: Model) -> Quantity:
    """Wrenches (k, 6) on the k bodies of `loaded_bodies` from their poses (k, 16), row by row, and twists (k, 6)."""
    bodies = loaded_bodies(model)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        poses, twists = inputs["poses"], inputs["twists"]
        t = inputs["t"] if "t" in inputs else zeros(1, 1, poses)
        given = {GROUND: (BodyPose(eye(3, poses), zeros(3, None, poses)), zeros(6, None, poses))}
        for k, b in enumerate(bodies):
            row = poses[k, :]
            R, r = stack(*(row[4 * i : 4 * i + 3] for i in range(3))), stack(*(row[4 * i + 3] for i in range(3)))
            given[b] = BodyPose(R, r), twists[k, :].T
        found = elements.body_wrenches(_GivenBodies(model, Nodes([], [], None), given=given), t)
        return [stack(*(found[b].T for b in bodies))]

    k = len(bodies)
    shapes: dict[str, Shape] = {"poses": (k, 16), "twists": (k, 6), **{name: () for name in time_port(model)}}
    return Quantity("body_loads", tuple(shapes), (("W", fixed(k, 6)),), write=write, shapes=shapes)


LOADS_ON: Mapping[str, Callable[[Model], Quantity]] = {"joint": joint_loads, "bodies": body_loads}
"""What force elements do, by what their kind acts on."""


def element_potential() -> Quantity:
    """Potential energy (J) of springs and the like."""

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        q = inputs["q"]
        return [elements.element_potential(kinematics_of_tree(model, q, type(q)(model.nv, 1)))]

    return Quantity("element_potential", ("q",), (("V", fixed()),), write=write)
