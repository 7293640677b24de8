"""What event-driven integration needs of rows with laws (`formulation.modes`), as quantities of a model with modes."""

from __future__ import annotations

from collections.abc import Sequence

from cardan.algebra.matrix import Matrix, where
from cardan.formulation.dynamics import constraint_state, law_motion_at, load_ports, time_of, time_port
from cardan.formulation.elements import Loads
from cardan.formulation.formulation import Formulation
from cardan.formulation.law_motion import REACTION, frictions, restitutions
from cardan.formulation.modes import law_forces, law_values, modes_of
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.model.law import AT_REST
from cardan.model.model import Model
from cardan.model.modes import MODE


def law_events(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """Values (m,) that fall through zero where a row leaves its mode.

    A closed gap: its force. An open one: the gap, and a little that lets it begin at zero, its `direction`. Friction
    that sticks: what is left to its bound. Friction that slides: its rate along the direction of sliding. Of a switched
    row 1: only others switch it.
    """
    m = sum(len(law.rows) for law in model.laws)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        motion = law_motion_at(model, formulation, rows, inputs)
        return [law_values(motion, law_forces(motion))] if m else [ca.SX(0, 1)]

    return Quantity("law_events", ("q", "v", "tau", *time_port(model)), (("g", fixed(m)),), write=write)


def law_readings(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """Forces `x` (m,) of the rows in their modes, then gaps or zero `phi` (m,), in one column."""
    m = len(model.lawful_rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        motion = law_motion_at(model, formulation, rows, inputs)
        return [ca.vertcat(law_forces(motion), motion.rows.phi)]

    return Quantity("law_readings", load_ports(model, False), (("x", fixed(2 * m)),), write=write)


def law_problem(model: Model, formulation: Formulation, rows: Sequence[int], loaded: bool = False) -> Quantity:
    """What the choice of modes needs at a state: `phi`, `u`, `b` (m,), `W` (m, m), `Y` (nv, m), bounds, reactions.

    `Y` is how accelerations of the tree change with the forces. `bound` (m, 4) has the constant part and the
    coefficient of sliding friction at the row's speed, then both of friction at rest. `reaction` (m, 3 (m + 1)) has the
    reactions that bound friction rows: `r`, and the columns of `A` of `r + A x`. `restitution` (m,) is that of the row.
    """
    m = sum(len(law.rows) for law in model.laws)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        motion = law_motion_at(model, formulation, rows, inputs)
        u, bound, reaction = motion.u, ca.SX(m, 4), ca.SX(m, REACTION * (m + 1))
        for f in frictions(model):
            speed = ca.fmax(f.size(u), 2 * AT_REST)
            levels = ca.horzcat(*(ca.SX(x) for s in (speed, 0.0) for x in f.levels(s)))
            pressing = ca.vec(ca.horzcat(*motion.pressing(f))).T if f.is_pressed else None
            for row in f.rows:
                bound[row, :] = levels
                if pressing is not None:
                    reaction[row, :] = pressing
        phi, Y = motion.rows.phi, motion.acceleration[1]
        return [phi, u, *motion.rate, Y, bound, reaction, restitutions(model)]

    outputs = (
        ("phi", fixed(m)), ("u", fixed(m)), ("b", fixed(m)), ("W", fixed(m, m)), ("Y", lambda own: (own.nv, m)),
        ("bound", fixed(m, 4)), ("reaction", fixed(m, REACTION * (m + 1))), ("restitution", fixed(m)),
    )  # fmt: skip
    return Quantity("law_problem", load_ports(model, loaded), outputs, write=write)


def law_impulses(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """What an impact by impulses `P` (m,) follows from: `u`, `W P`, friction coefficients, restitutions (m,), `Y P`.

    All in one column, the last (nv,); names are those of `law_problem`. It is for derivatives at fixed impulses.
    """
    m, problem = len(model.lawful_rows), law_problem(model, formulation, rows)
    shapes = {name: problem.input_shape(model, name) for name in problem.inputs} | {"P": (m,)}

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        found = problem.graph(model, {name: inputs[name] for name in problem.inputs})
        named, P = dict(zip((name for name, _ in problem.outputs), found, strict=True)), inputs["P"]
        return [ca.vertcat(named["u"], named["W"] @ P, named["bound"][:, 1], named["restitution"], named["Y"] @ P)]

    outputs = (("x", fixed(4 * m + model.nv)),)
    return Quantity("law_impulses", tuple(shapes), outputs, write=write, shapes=shapes)


def closed_rows(model: Model) -> Quantity:
    """`phi`, `J` (nl + m, nv) and `beta` of the equality rows and those with laws, in the tree's coordinates.

    Rows that are open are zero. Friction that sticks holds rates, not positions.
    """
    from cardan.formulation.spatial import SPATIAL

    equality = constraint_state(model)
    n = len(model.rows) + len(model.lawful_rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        kin = SPATIAL.kinematics_of_tree(model, inputs["q"], ca.SX.zeros(model.nv))
        loads = Loads({}, ca.SX(model.nb, 6), time_of(inputs))
        rows, mode = SPATIAL.lawful_rows(kin, loads, model.nv), modes_of(model, MODE)
        mask = ca.vertcat(*(where(mode[k] > 0.5, 1.0, 0.0) for k in range(mode.shape[0])))
        own = (mask * rows.phi, ca.diag(mask) @ rows.J, mask * rows.beta)
        return [ca.vertcat(x, y) for x, y in zip(equality.graph(model, inputs), own, strict=True)]

    outputs = (("phi", fixed(n)), ("J", lambda own: (n, own.nv)), ("beta", fixed(n)))
    return Quantity("closed_rows", ("q", *time_port(model)), outputs, write=write)
