"""A step of Moreau's midpoint rule, as text over symbols.

    q_m = q + h/2 N(q) v          v_m = v + h/2 a          t_m = t + h/2
    M (v+ - v) + J^T Lam = h f(t_m, q_m, v_m) + J_c^T P      q+ = q + h N(q_m) (v + v+) / 2
    J v+ = beta + h/2 gamma          u+ = J_c v+ - beta_c - h/2 gamma_c          u = J_c v - beta_c + h/2 gamma_c

with the laws of the rows `J_c` for the impulses `P = h x` of the step: rows whose gap is closed at `q_m` push, friction
sticks or slides (`model.law`). `M`, `J`, `beta` and `gamma` are those of the middle; with `gamma`, which has the rates
of `J` and `beta`, they give the rates u at the start and u+ at the end of the step; with an impact, after which `gamma`
is another, it is left out. `a` is the average acceleration of the step before. Impacts and the motion between them are
one and the same problem; several impacts in a step are no special case. Velocities obey Newton's law,
`u+ + e min(u, 0) >= 0`, or Poisson's (`formulation.complementarity`).

The method has order 1, and order 2 in motion without impacts and changes from sticking to sliding. At the end of a step
`structure.projection` brings loops back, as in every explicit method. Source: J. J. Moreau, in Nonsmooth Mechanics and
Applications, CISM 302 (1988) 1-82; M. Jean, Comput. Methods Appl. Mech. Eng. 177 (1999) 235-257.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from cardan.algebra.matrix import Matrix, Scalar, dot, where
from cardan.formulation.complementarity import Bounds, bounds_at, has_restitution
from cardan.formulation.dynamics import entering_power, parts_at, time_port
from cardan.formulation.formulation import Formulation
from cardan.formulation.law_motion import LawMotion, law_motion, row_numbers
from cardan.formulation.quantity import Inputs, Quantity, fixed, port_shape
from cardan.formulation.rows import Rows
from cardan.formulation.solution import size_of
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.state_rates import answers_read
from cardan.integrate.explicit.step import ExplicitEquations, Graphs
from cardan.integrate.kernel import Given
from cardan.model.model import Model
from cardan.model.row import Law
from cardan.model.sight import Sight
from cardan.structure.kernels import function_of
from cardan.structure.rows import kept_rows

TOUCHES = 1e-9  # m or rad: a gap up to this is closed
ROUNDING = 1e-14  # m/s or rad/s: rates of rows below count as zero


@dataclass
class Terms:
    """What a step needs at its middle: columns of numbers, for m rows with laws.

    Average acceleration `a0` (nv,) and power `P` (W) without forces of the rows; `Y` (nv, m) what these add; `W` (m, m)
    and `b` (m,) with `u+ = b + W x`; rates `u` (m,) at the start; which rows are `active` (m,); their `Bounds`; and
    `moved` (m,), the power that enters with a unit of each force where contacts and joints have prescribed motions.
    Rates of states read `y0 + Yy x` of the answer.
    """

    a0: Matrix
    P: Matrix
    Y: Matrix
    W: Matrix
    b: Matrix
    u: Matrix
    active: Matrix
    constant: Matrix
    coefficient: Matrix
    R0: Matrix
    R: Matrix
    restitution: Matrix
    moved: Matrix
    y0: Matrix
    Yy: Matrix

    @property
    def bounds(self) -> Bounds:
        """The bounds of friction."""
        return Bounds(self.constant, self.coefficient, self.R0, self.R, self.restitution)


TERMS = tuple(f.name for f in fields(Terms))


@dataclass(frozen=True)
class MoreauEquations(ExplicitEquations):
    """The equations of one model for steps of Moreau's rule; `rule` is the law of impacts."""

    rule: str = "newton"

    @property
    def key(self) -> str:
        """Everything that distinguishes these equations from others of the same model."""
        return f"{super().key} moreau {self.rule} {self.restitutes}"

    @property
    def has_recursion(self) -> bool:
        """Never: rows with laws need the mass matrix."""
        return False

    @property
    def divided(self) -> bool:
        """Never."""
        return False

    @property
    def read_with_accelerations(self) -> tuple[Sight, ...]:
        """Nothing: what rates of states read is that of a step."""
        return ()

    @property
    def restitutes(self) -> bool:
        """Whether impacts have a second phase."""
        return has_restitution(self.model)

    @property
    def kernels(self) -> Any:
        """The class of its kernels."""
        from cardan.integrate.moreau.stepper import MoreauKernels

        return MoreauKernels

    def graphs(self) -> Graphs:
        """Record the graphs."""
        found = super().graphs()
        tree_rows = tuple(kept_rows(self.model.unbound, SPATIAL))
        terms = function_of(self.model, step_terms(self.model, self.formulation, self.rows, tree_rows))
        return MoreauGraphs(**{f.name: getattr(found, f.name) for f in fields(Graphs)}, terms=terms)


@dataclass(frozen=True)
class MoreauGraphs(Graphs):
    """The graphs of explicit methods, and the terms of a step."""

    terms: Any = None

    def slopes(self, t: Scalar, q: Matrix, v: Matrix, given: Given) -> tuple[Matrix, Matrix, Matrix]:
        """As those of explicit methods, at a start; rates of states that read forces are known in a step only."""
        import casadi as ca

        if not self.motion.sights:
            return super().slopes(t, q, v, given)
        time = (t,) if self.motion.model.depends_on_time else ()
        a, P = self.forward.call([q, v, given.tau, *time, *given.parameters])
        return ca.vertcat(self.rates(q, v, given), ca.SX.zeros(len(self.motion.states))), a, P

    def terms_at(self, t: Scalar, q: Matrix, v: Matrix, a: Matrix, h: Matrix, given: Any) -> tuple[Terms, Matrix]:
        """The terms of a step from a state, and `q_m`."""
        q_m = unit_quaternions(self.motion.model, q + h / 2 * self.rates(q, v, given))
        time = (t + h / 2,) if self.motion.model.depends_on_time else ()
        found = self.terms.call([q_m, v + h / 2 * a, given.tau, v, h, *time, *given.parameters])
        return Terms(*found), q_m

    def stage_of(
        self, t: Scalar, v: Matrix, h: Matrix, terms: Terms, q_m: Matrix, x: Matrix, given: Any
    ) -> tuple[Matrix, Matrix, Matrix]:  # fmt: skip
        """`k` of the step: average rates, acceleration and power, with forces x (m,) of the rows."""
        import casadi as ca

        a = terms.a0 + terms.Y @ x
        read = [terms.y0 + terms.Yy @ x] if self.motion.sights else []
        kq = self.all_rates(t + h / 2, q_m, v + h / 2 * a, given, *read)
        both = terms.u + terms.b + terms.W @ x
        moving = ca.fabs(both) > ROUNDING  # a row that sticks does no work
        return kq, a, terms.P + ca.dot(x, where(moving, both, 0.0) / 2 + terms.moved)


def step_terms(model: Model, formulation: Formulation, rows: Sequence[int], tree_rows: Sequence[int]) -> Quantity:
    """`Terms` at the middle of a step of length `h`, with rates `v` there, from rates `start` (nv,) at its start."""
    sizes, sights = _sizes(model), answers_read(model)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        import casadi as ca

        v, h = inputs["start"], inputs["h"]
        state = {name: x for name, x in inputs.items() if name not in ("h", "start")}
        motion, active, carried, held = middle_motion(model, tree_rows, state, v, h)
        contacts = motion.rows
        own, own_rows, lam = motion.parts, tree_rows, motion.lam
        if formulation is not SPATIAL:
            own, own_rows = parts_at(model, formulation, state), rows
            vdot, lam = formulation.solve(own, rows)
            a = formulation.tree_accelerations(own, vdot)
            left = held - motion.parts.rows.kept(tree_rows).J @ a
            a = a + SPATIAL.solve_for(motion.parts, tree_rows, ca.SX(*a.shape), left)[0]
            motion = replace(motion, vdot=a + motion.acceleration[1] @ motion.x)
        a0, Y = motion.acceleration
        P = motion.affine(entering_power(own, inputs["tau"], own_rows, lam))[0]
        beta = motion.parts.rows.kept(list(tree_rows)).beta  # what is prescribed works against the forces, too
        moved = contacts.beta - motion.affine(dot(motion.lam, beta))[1].T
        J, gamma = contacts.J, carried * contacts.gamma
        u = J @ v - contacts.beta + h / 2 * gamma
        change = h * (J @ a0 - gamma)
        bounds = bounds_at(motion, u, change)
        terms = Terms(
            a0, P, Y, h * motion.rate[1], u + change, u, active, bounds.constant, bounds.coefficient, bounds.R0,
            bounds.R, bounds.restitution, moved, *motion.affine(motion.solution.column(sights)),
        )  # fmt: skip
        return [ca.SX(getattr(terms, name)) for name in TERMS]

    ports = ("q", "v", "tau", "start", "h", *time_port(model))
    own: dict[str, tuple[int, ...]] = {"start": (model.nv,), "h": ()}
    shapes = {name: own[name] if name in own else port_shape(model, name) for name in ports}
    outputs = tuple((name, fixed(*sizes[name])) for name in TERMS)
    return Quantity("moreau_step", ports, outputs, write=write, shapes=shapes)


def middle_motion(
    model: Model, tree_rows: Sequence[int], state: Inputs, v: Matrix, h: Matrix
) -> tuple[LawMotion, Matrix, Matrix, Matrix]:
    """The motion in a step at the state of its middle, from rates `v` at its start.

    With it which rows (m,) are active, whether `gamma` is carried over, and what the equality rows prescribe of the
    average acceleration.
    """
    parts = parts_at(model, SPATIAL, state)
    kept = parts.rows.kept(list(tree_rows))
    per_second = where(h > 0, 1 / where(h > 0, h, 1.0), 0.0)
    contacts = SPATIAL.lawful_rows(parts.kin, parts.loads, model.nv)
    active = _active(model, contacts)
    carried = 1 - _hits(contacts, active, v, h, parts.rates - v)
    held = per_second * (kept.beta - kept.J @ v) + carried * kept.gamma / 2
    prescribed = replace(parts, rows=parts.rows.prescribed(tree_rows, held))
    return law_motion(SPATIAL, prescribed, tree_rows, contacts), active, carried, held


def unit_quaternions(model: Model, q: Matrix) -> Matrix:
    """Coordinates with quaternions brought back to unit length."""
    import casadi as ca

    q = ca.SX(q)
    for at in model.quaternions:
        q[at] = q[at] / ca.norm_2(q[at])
    return q


def _active(model: Model, rows: Rows) -> Matrix:
    """Which rows (m,) take part: gaps that are closed, locks and latches that are, and all friction."""
    import casadi as ca

    found = []
    for law, numbers in row_numbers(model):
        for k, own in zip(numbers, law.laws, strict=True):
            switched = law.number("closed") > 0.5 if own is Law.SWITCHED else 1
            found.append(rows.phi[k] <= TOUCHES if own is Law.UNILATERAL else ca.SX(switched))
    return ca.vertcat(ca.SX(0, 1), *found)


def _hits(rows: Rows, active: Matrix, v: Matrix, h: Matrix, half: Matrix) -> Matrix:
    """Whether a closed gap closes, or what is locked moves, faster than a step changes its rate.

    `half` is what half a step changes of v.
    """
    import casadi as ca

    found: Any = ca.SX(1, 1)
    for k, label in enumerate(rows.labels):
        if label.law in (Law.UNILATERAL, Law.SWITCHED):
            rate = rows.J[k, :] @ v - rows.beta[k] + h / 2 * rows.gamma[k]
            slow = 2 * ca.fabs(rows.J[k, :] @ half) + h * ca.fabs(rows.gamma[k])
            closing = rate if label.law is Law.UNILATERAL else -ca.fabs(rate)
            found = ca.logic_or(found, ca.logic_and(active[k], closing < -slow))
    return found


def _sizes(model: Model) -> dict[str, tuple[int, ...]]:
    """Shapes of the terms."""
    m, nv = len(model.lawful_rows), model.nv
    found: dict[str, tuple[int, ...]] = {name: (m,) for name in TERMS}
    read = size_of(answers_read(model))
    found |= {"y0": (read,), "Yy": (read, m)}
    return found | {"a0": (nv,), "P": (), "Y": (nv, m), "W": (m, m), **Bounds.sizes(model)}
