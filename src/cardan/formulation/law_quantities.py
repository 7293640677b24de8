"""What event-driven integration needs of rows with laws (`formulation.modes`), as quantities of a model with modes."""

from __future__ import annotations

from collections.abc import Sequence

from cardan.algebra.matrix import Matrix, where
from cardan.formulation.dynamics import constraint_state, law_parts_at, load_ports, time_of, time_port
from cardan.formulation.elements import Loads
from cardan.formulation.formulation import Formulation
from cardan.formulation.law_forces import holding_force
from cardan.formulation.modes import REACTION, friction_rows, law_forces, law_values, modes_of
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.model.law import AT_REST
from cardan.model.model import Model
from cardan.model.modes import MODE
from cardan.model.row import Law


def law_events(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """Values (m,) that fall through zero where a row leaves its mode.

    A closed gap: its force. An open one: the gap, and a little that lets it begin at zero, its `direction`. Friction
    that sticks: what is left to its bound. Friction that slides: its rate along the direction of sliding. Of a switched
    row 1: only others switch it.
    """
    m = sum(len(law.rows) for law in model.laws)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        at = law_parts_at(model, formulation, rows, inputs)
        return [law_values(at, law_forces(at))] if m else [ca.SX(0, 1)]

    return Quantity("law_events", ("q", "v", "tau", *time_port(model)), (("g", fixed(m)),), write=write)


def law_readings(model: Model, formulation: Formulation, rows: Sequence[int]) -> Quantity:
    """Forces `x` (m,) of the rows in their modes, then gaps or zero `phi` (m,), in one column."""
    m = len(model.lawful_rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        at = law_parts_at(model, formulation, rows, inputs)
        return [ca.vertcat(law_forces(at), at.rows.phi)]

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

        at = law_parts_at(model, formulation, rows, inputs)
        b, W = at.affine(at.udot)
        Y = at.affine(at.a)[1]
        u, bound, reaction = at.u, ca.SX(m, 4), ca.SX(m, REACTION * (m + 1))
        frictions = friction_rows(model)
        wrenches = at.reactions() if any(f.joint is not None for f in frictions) else None
        for f in frictions:
            speed = ca.fabs(u[f.row]) if f.other is None else ca.sqrt(u[f.row] ** 2 + u[f.other] ** 2)
            speed = ca.fmax(speed, 2 * AT_REST)
            levels = [part(s) for s in (speed, 0.0) for part in (f.law.constant_bound, f.law.coefficient)]
            bound[f.row, :] = ca.horzcat(*(ca.SX(x) for x in levels))
            if f.joint is not None:
                assert wrenches is not None
                r, A = at.affine(holding_force(at.model, f.joint, wrenches))
                reaction[f.row, :] = ca.vec(ca.horzcat(r, A)).T
        restitution = ca.SX(m, 1)
        k = 0
        for element in model.laws:
            for law in element.laws:
                restitution[k] = element.number("restitution") if law is Law.UNILATERAL else 0.0
                k += 1
        return [at.rows.phi, u, b, W, Y, bound, reaction, restitution]

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
