"""A step of an explicit integrator, and the equations of motion it integrates, as text over symbols.

    qdot = N(q) v      vdot = a(t, q, v)      phi(q, t) = 0      J v = beta(t)

in the tree's coordinates, with the formulation's accelerations `a`, constraints included. A step of length h from
(t, q, v), with the coefficients of a `Tableau`:

    k_i = (N(q_i) v_i, a(t + c_i h, q_i, v_i))      q_i = q + h sum_j A_ij kq_j      v_i = v + h sum_j A_ij kv_j
    q' = q + h sum_i b_i kq_i,   v' = v + h sum_i b_i kv_i

Quaternions are summed as four numbers and normalised at the end of the step; that changes the result by less than the
method's own error. The work `W` of all that changes the energy `T + V` is integrated with the motion, `Wdot = P`, for
the energy balance of the run (`results.energy_balance`). Rounding and the integrator's error also move the state off
the constraints: `structure.projection` brings it back at the end of the step, or Baumgarte's feedback pulls it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, Scalar, is_symbol, stack, where, zeros
from cardan.formulation.dynamics import motion_and_power
from cardan.formulation.formulation import Formulation
from cardan.formulation.looping import record_schedule
from cardan.formulation.spatial import SPATIAL
from cardan.formulation.state_rates import answers_read, state_rates
from cardan.formulation.tree import PLUS, RATES
from cardan.integrate.events import crossing
from cardan.integrate.explicit.tableau import Tableau
from cardan.integrate.kernel import Given
from cardan.integrate.stepper import STRETCH, Outcome
from cardan.model.model import Model
from cardan.model.modes import has_modes
from cardan.model.sight import Sight
from cardan.structure.kernels import function_of, is_large, rates_facts, tree_quantity
from cardan.structure.large import is_divided, large_schedules, usual_independence
from cardan.structure.projection import Projection
from cardan.structure.rows import independent_rows, kept_rows, usual_key


@dataclass(frozen=True)
class ExplicitEquations:
    """The equations of one model in one formulation.

    `rows` are the independent constraint rows that the formulation keeps. `baumgarte` (1/s) is None, or the rate of
    Baumgarte's feedback, which then replaces the projection. `careful` brings every stage onto the constraints before
    its accelerations are computed (docs/decisions/0027): near a singular position these magnify what is missing there.
    """

    model: Model
    formulation: Formulation
    rows: tuple[int, ...]
    baumgarte: float | None = None
    careful: bool = False

    @property
    def key(self) -> str:
        """Everything that distinguishes these equations from others of the same model."""
        if self.divided:
            how = f"{' careful' if self.careful else ''} rows {self.rows}"
            distance = usual_independence(self.model.unbound, self.formulation) if self.projects else 1.0
            return f"{self.formulation.facts(self.model)} divided{how} usual {distance!r}"
        looped = " looped" if self.looped else ""
        tree_rows = kept_rows(self.model.unbound, SPATIAL)
        how = f"{looped}{' careful' if self.careful else ''} rows {self.rows} {tree_rows} baumgarte {self.baumgarte}"
        usual = f" usual {usual_key(self.model.unbound)}" if self.projects else ""
        states = f" states {rates_facts(self.model.unbound)}" if self.states else ""
        states += f" {self.sights}" if self.sights else ""
        return f"{self.formulation.facts(self.model)}{how}{usual}{states}"

    @property
    def states(self) -> tuple[int, ...]:
        """Places in `p` of the parameters that are integrated with the motion."""
        return self.model.parameters.states

    @property
    def sights(self) -> tuple[Sight, ...]:
        """What the rates of these parameters read of the answer to what acts."""
        return answers_read(self.model) if self.states else ()

    @property
    def read_with_accelerations(self) -> tuple[Sight, ...]:
        """Which of it is read where the accelerations are computed."""
        return self.sights

    @property
    def projects(self) -> bool:
        """Whether positions and velocities are projected after every step."""
        return (self.model.has_rows or has_modes(self.model)) and self.baumgarte is None

    @property
    def has_recursion(self) -> bool:
        """Whether the accelerations are those of a recursion for plain trees."""
        return self.model.is_plain and self.formulation.has_recursions and not self.divided and not self.sights

    @property
    def carries_power(self) -> bool:
        """Whether the power that enters comes with the accelerations; for a recursion it is that of the drives."""
        return not self.has_recursion

    @property
    def looped(self) -> bool:
        """Whether the accelerations are computed by a loop over the links, as for large trees."""
        return self.divided or (self.has_recursion and self.formulation is SPATIAL and is_large(self.model))

    @property
    def divided(self) -> bool:
        """Whether they are computed by loops over the pieces and connections of a large mechanism."""
        return self.baumgarte is None and not self.states and is_divided(self.model, self.formulation)

    @property
    def kernels(self) -> Any:
        """The class of kernels that integrates them; None is that of explicit methods."""
        return None

    def graphs(self) -> Graphs:
        """Record the graphs."""
        model = self.model
        loop = None
        if self.divided:
            large = large_schedules(model, self.formulation, self.rows)
            return Graphs(self, large.motion, None, None, None, None, large)
        if self.has_recursion:
            forward = tree_quantity(self.formulation, "forward_dynamics")
            if self.looped:
                assert forward.recursion is not None
                loop = record_schedule(forward.recursion, model)
        else:
            forward = motion_and_power(model, self.formulation, self.rows, self.read_with_accelerations)
        return Graphs(
            self,
            loop,
            None if loop is not None else function_of(model, forward),
            function_of(model, RATES),
            function_of(model, PLUS),
            Projection.of(model) if model.has_rows or has_modes(model) else None,
            state_rates=function_of(model, state_rates(model)) if self.states else None,
        )


@dataclass(frozen=True)
class Graphs:
    """CasADi functions of `ExplicitEquations`, called on symbols: each call writes the graph once more.

    For a large tree the accelerations are a `loop` over its links instead, the schedule of the recursion.
    """

    motion: ExplicitEquations
    loop: Any
    forward: Any
    rates_function: Any
    plus_function: Any
    projection: Projection | None
    large: Any = None
    """The schedules of a mechanism that is divided into pieces (`structure.large.LargeSchedules`)."""
    state_rates: Any = None
    """Rates of the parameters that are states; None if there is none."""

    def split(self, y: Matrix) -> tuple[Matrix, Matrix | None]:
        """`q`, and the states `x` of the model beside it, from a column of both; None if it has no states."""
        nq = self.motion.model.nq
        return (y[:nq], y[nq:]) if self.motion.states else (y, None)

    def slopes(self, t: Scalar, q: Matrix, v: Matrix, given: Given) -> tuple[Matrix, Matrix, Matrix]:
        """`qdot`, and below it the rates `xdot` of the states in `given`; `vdot`; and the power `P` that enters."""
        time = (t,) if self.forward.n_in() - len(given.parameters) > 3 else ()
        found = self.forward.call([q, v, given.tau, *time, *given.parameters])
        a, P, *read = found if self.motion.carries_power else (found[0], given.power(v))
        rates = self.all_rates(t, q, v, given, *read)
        pull = self.motion.baumgarte
        if pull is None or self.projection is None:
            return rates, a, P
        c = self.projection.at(t, q, given.parameters)
        return rates, a - c.smallest(2 * pull * (c.J @ v - c.beta) + pull**2 * c.phi), P

    def accelerations(self, t: Scalar, q: Matrix, v: Matrix, given: Given) -> tuple[Matrix, Matrix]:
        """`vdot`, and the power `P` that enters."""
        _, a, P = self.slopes(t, q, v, given)
        return a, P

    def near(self, t: Scalar, q: Matrix, v: Matrix, given: Given) -> tuple[Matrix, Matrix]:
        """The state of a stage at which rates and accelerations are computed: for careful steps on the constraints."""
        if self.motion.careful and self.projection is not None:
            for _ in range(STAGE_NEWTON_STEPS):
                q, v = self.projection.moved(self.projection.at(t, q, given.parameters), q, v, given.parameters)
        return q, v

    def all_rates(self, t: Scalar, q: Matrix, v: Matrix, given: Given, *read: Matrix) -> Matrix:
        """`qdot`, and below it the rates `xdot` of the states in `given`, with what these `read` of the answer."""
        if self.state_rates is None:
            return self.rates(q, v, given)
        return stack(self.rates(q, v, given), self.state_rates(q, v, t, *read, *given.parameters))

    def first_rates(self, s: ExplicitState, given: Given) -> Matrix:
        """The same where a step begins: of states whose rates read the answer they are known from the step before."""
        if self.motion.sights:
            return stack(self.rates(s.q, s.v, given), s.xdot)
        return self.all_rates(s.t, s.q, s.v, given)

    def rates(self, q: Matrix, v: Matrix, given: Given) -> Matrix:
        """`qdot`."""
        return self.rates_function(q, v, *given.parameters)

    def plus(self, q: Matrix, v: Matrix, given: Given) -> Matrix:
        """Configuration after moving with `v` for unit time."""
        return self.plus_function(q, v, *given.parameters)

    def normalised(self, q: Matrix) -> Matrix:
        """Quaternions brought back to unit length."""
        import casadi as ca

        q = ca.SX(q)
        for at in self.motion.model.quaternions:
            q[at] = q[at] / ca.norm_2(q[at])
        return q


def equations_of(model: Model, formulation: Formulation, baumgarte: float | None = None) -> ExplicitEquations:
    """The equations of a model for the explicit integrators, with the constraint rows that are kept."""
    found = ExplicitEquations(model, formulation, (), baumgarte)
    if found.has_recursion:
        return found
    if found.divided:
        return ExplicitEquations(model, formulation, tuple(independent_rows(model)), baumgarte)
    return ExplicitEquations(model, formulation, tuple(kept_rows(model, formulation)), baumgarte)


STAGE_NEWTON_STEPS = 2
# The largest correction of velocities that is accepted, as the kinetic energy removed relative to that there is. Where
# the error is controlled it is this part of the relative tolerance; `NOISE` times the tolerances does not count.
LARGEST_CORRECTION, PART_OF_TOLERANCE, NOISE = 1e-10, 1e-2, 100.0
COARSE = 1e6  # times the largest correction: more is not accepted of fixed steps anywhere
NEARLY_DEPENDENT = 1e-2  # a step that is refused where the rows are that near to it is taken carefully

# Control of the step size: a factor between 1/5 and 5 from this error and the last one (Gustafsson's controller; the
# exponents 1/8 and 1/16 are near the usual 0.7/5 and 0.4/5, and need only square roots)
SAFETY, SHRINK, GROW = 0.9, 0.2, 5.0
CORRECTED = 0.4  # after a step whose velocities had to be corrected too much
LARGEST, LARGEST_SINGLE = 1e300, 1e30  # a larger state counts as infinite; in float32


@dataclass
class Step:
    """A step in progress: start time and state, length `h`, and the stages so far, `K[i] = (kq, kv, P)`.

    Where parameters of the model are states, they are below the coordinates in `q`, and their rates in `kq`.
    `low` are the low parts of `q` and `v` where these are pairs (`ExplicitState`). With `summed` `K` has one entry, the
    sum of all stages, each by its weight in the result.
    """

    t: Scalar
    q: Matrix
    v: Matrix
    h: Matrix
    K: list[tuple[Matrix, Matrix, Matrix]]
    low: tuple[Matrix, Matrix] | None = None
    summed: bool = False

    def weights(self, tableau: Tableau) -> list[float]:
        """Weights of the entries of `K` in the result."""
        return [1.0] if self.summed else [float(w) for w in tableau.b]


def stage_state(tableau: Tableau, step: Step, i: int | Scalar) -> tuple[Scalar, Matrix, Matrix]:
    """Time, `q_i` and `v_i` of stage i; the index of the stage may be a symbol.

    Where a stage reads only the one before it, a `summed` step has that one alone in `K`.
    """
    weights = [pick(column, i) for column in ([tableau.before] if step.summed else tableau.A.T)]
    return step.t + pick(tableau.c, i) * step.h, *moved(step, weights)


def moved(step: Step, weights: Sequence[Scalar]) -> tuple[Matrix, Matrix]:
    """`q + h sum_j w_j kq_j` and `v + h sum_j w_j kv_j` over the stages so far."""
    q, v = step.q, step.v
    for w, (kq, kv, _) in zip(weights, step.K, strict=False):
        if is_symbol(w) or w != 0:
            q, v = q + (step.h * w) * kq, v + (step.h * w) * kv
    return q, v


def work(tableau: Tableau, step: Step) -> Matrix:
    """Work (J) that enters in the step, `h sum_i b_i P_i`."""
    total = zeros(1, None, step.h)
    for w, (_, _, P) in zip(step.weights(tableau), step.K, strict=True):
        if w != 0:
            total = total + w * P
    return step.h * total


def estimate(tableau: Tableau, step: Step) -> tuple[Matrix, Matrix]:
    """Estimated error of the step, `h sum_j e_j k_j`; zero if the method has no estimate."""
    still = Step(step.t, zeros(step.q.shape[0], None, step.q), zeros(step.v.shape[0], None, step.v), step.h, step.K)
    return moved(still, [] if tableau.e is None else list(tableau.e))


def stage(graphs: Graphs, tableau: Tableau, step: Step, i: int | Scalar, given: Given) -> tuple[Matrix, Matrix, Matrix]:
    """`k_i`."""
    t, y, v = stage_state(tableau, step, i)
    q, x = graphs.split(y)
    given = given.with_states(x, graphs.motion.states)
    q, v = graphs.near(t, q, v, given)
    return graphs.slopes(t, q, v, given)


def pick(values: np.ndarray, i: int | Scalar) -> Scalar:
    """Entry `i`, which may be a symbol, of an array of numbers."""
    if not is_symbol(i):
        return float(values[int(i)])
    chosen: Scalar = float(values[0])
    for k in range(1, len(values)):
        chosen = where(i == k, float(values[k]), chosen)
    return chosen


@dataclass
class StepResult:
    """State after a step, and the estimated error of positions and velocities, zero if the method has no estimate.

    `correction` tells how the velocities were brought back onto the constraints, None where they were not. `low` are
    the low parts of `q` and `v` where these are pairs.
    """

    q: Matrix
    v: Matrix
    eq: Matrix
    ev: Matrix
    correction: VelocityCorrection | None = None
    low: tuple[Matrix, Matrix] | None = None
    x: Matrix | None = None
    """Parameters that are states; their error is below that of `q` in `eq`."""


@dataclass
class VelocityCorrection:
    """What a correction of velocities did.

    `removed` is twice the kinetic energy that it took; `M` the diagonal (nv,) of the metric; `independence` of the rows
    there as in `structure.projection`.
    """

    removed: Matrix
    M: Matrix
    independence: Matrix

    def judged(self, v: Matrix, control: StepControl, adaptive: bool, careful: bool) -> tuple[Matrix, Matrix]:
        """Whether the correction is small enough, for rates `v` after it, and whether rows are nearly dependent.

        It is if it took a small part of the kinetic energy, or no more than the tolerances leave. Fixed steps have no
        estimate of the error: unless they are careful they are not accepted near a singular position at all.
        """
        import casadi as ca

        return self.judged_by(ca.dot(self.M, v**2), ca.sum1(self.M), control, adaptive, careful)

    def judged_by(
        self, energy: Matrix, inertia: Matrix, control: StepControl, adaptive: bool, careful: bool
    ) -> tuple[Matrix, Matrix]:
        """The same from the sums `sum M_ii v_i^2` and `sum M_ii`."""
        import casadi as ca

        part: Any = PART_OF_TOLERANCE * control.rtol if adaptive else LARGEST_CORRECTION
        part, rest = part + 2 * (NOISE * control.rtol) ** 2, 2 * (NOISE * control.atol) ** 2
        accepted = part * energy + rest * inertia
        far = self.independence > NEARLY_DEPENDENT  # false for NaN
        if adaptive or careful:
            return self.removed <= accepted, ca.logic_not(far)
        return ca.logic_and(far, self.removed <= COARSE * accepted), ca.logic_not(far)


def result(graphs: Graphs, tableau: Tableau, step: Step, given: Given) -> StepResult:
    """State after the step, projected onto the constraints, and the part of its error along the constraints."""
    import casadi as ca

    if step.low is not None:
        return _paired_result(graphs, tableau, step, step.low, given)
    y, v = moved(step, step.weights(tableau))
    q, x = graphs.split(y)
    given = given.with_states(x, graphs.motion.states)
    if tableau.semi_implicit:
        q = graphs.plus(graphs.split(step.q)[0], step.h * v, given)
    eq, ev = estimate(tableau, step)
    q = graphs.normalised(q)
    if not graphs.motion.projects or graphs.projection is None or not graphs.projection.rows:
        return StepResult(q, v, eq, ev, x=x)
    projection = graphs.projection
    c = projection.at(step.t + step.h, q, given.parameters)
    if tableau.adaptive:
        along, error = graphs.split(eq)
        along, ev = projection.along(c, q, along, ev, given.parameters)
        eq = along if error is None else stack(along, error)
    q, v, removed = projection.moved_at_cost(c, q, v, given.parameters)
    correction = VelocityCorrection(removed, ca.diag(c.M), c.independence())
    return StepResult(*graphs.near(step.t + step.h, q, v, given), eq, ev, correction, x=x)


def _paired_result(
    graphs: Graphs, tableau: Tableau, step: Step, low: tuple[Matrix, Matrix], given: Given
) -> StepResult:
    """The same of fixed steps whose states are pairs: what rounding takes from a sum is kept for the next one."""
    import casadi as ca

    dq, dv = moved(Step(step.t, step.q * 0, step.v * 0, step.h, step.K), step.weights(tableau))
    v, v_lo = added(step.v, dv + low[1], step.h)
    if tableau.semi_implicit:
        dq = graphs.rates(step.q, step.h * v, given)
    q, q_lo = added(step.q, dq + low[0], step.h)
    q = graphs.normalised(q)
    none = step.q * 0, step.v * 0
    projection = graphs.projection
    if not graphs.motion.projects or projection is None or not projection.rows:
        return StepResult(q, v, *none, low=(q_lo, v_lo))
    c = projection.at(step.t + step.h, q, given.parameters).beside(projection, q, q_lo, given.parameters)
    change, removed = projection.change(c, v)
    q, q_lo = added(q, q_lo - graphs.rates(q, change[:, 0], given), step.h)
    v, v_lo = added(v, v_lo - change[:, 1], step.h)
    correction = VelocityCorrection(removed, ca.diag(c.M), c.independence())
    return StepResult(q, v, *none, correction, (q_lo, v_lo))


def added(high: Matrix, more: Matrix, h: Matrix) -> tuple[Matrix, Matrix]:
    """The sum of numbers and smaller ones, rounded, and what rounding took from it; unchanged for `h` of zero.

    CasADi would simplify `(a + b) - a`, but for the condition.
    """
    total = where(h == 0, high, high + more)
    return total, more - (total - high)


def measure(step: Step, new: StepResult, rtol: Scalar, atol: Scalar) -> tuple[Matrix, Matrix]:
    """Sum of squares of the error divided by the tolerance, and sum of magnitudes of the state, over all entries."""
    import casadi as ca

    q = new.q if new.x is None else stack(new.q, new.x)
    before, after = stack(step.q, step.v), stack(q, new.v)
    ratio = stack(new.eq, new.ev) / (atol + rtol * ca.fmax(ca.fabs(before), ca.fabs(after)))
    return ca.sumsqr(ratio), ca.norm_1(after)


@dataclass
class ExplicitState:
    """What is carried from step to step, each a column of symbols.

    Time, configuration, velocity, parameters that are states, acceleration, length of the next step, error of the last
    step, steps taken, an `Outcome`, the index of the event met (-1 for none). For the energy balance: `work` (J) that
    has entered, the `power` (W) that enters now, the largest `v^T v` so far, `speed`, and the largest `correction` of
    velocities so far, as the kinetic energy (J) that it took, with its time. Then the events' values.

    Last the rates `xdot` of the states, where these read the answer to what acts, else empty.

    Of steps in float32 time, configuration and velocity are pairs: the numbers `t_lo`, `q_lo`, `v_lo`, below their
    rounding, belong to them. Else these three are empty.
    """

    t: Matrix
    q: Matrix
    v: Matrix
    x: Matrix
    a: Matrix
    h: Matrix
    e: Matrix
    steps: Matrix
    outcome: Matrix
    event: Matrix
    work: Matrix
    power: Matrix
    speed: Matrix
    correction: Matrix
    correction_time: Matrix
    g: Matrix
    t_lo: Matrix
    q_lo: Matrix
    v_lo: Matrix
    xdot: Matrix

    @property
    def is_paired(self) -> bool:
        """Whether time, configuration and velocity are pairs."""
        return bool(self.t_lo.shape[0])


LOW = ("t_lo", "q_lo", "v_lo")
STATE = tuple(f.name for f in fields(ExplicitState))


@dataclass
class StepControl:
    """Time to stop at, relative and absolute tolerance, longest step; the low part of the time, if it is a pair.

    Methods that choose their steps end one at `end`, and take none beyond `pause`: a lane waits there.
    """

    end: Scalar
    rtol: Scalar
    atol: Scalar
    max_step: Scalar
    end_lo: Scalar = 0.0
    pause: Scalar | None = None


CONTROL = ("end", "rtol", "atol", "max_step")


def time_left(s: ExplicitState, control: StepControl) -> Matrix:
    """Time to the end, s."""
    left = control.end - s.t
    return left + (control.end_lo - s.t_lo) if s.is_paired else left


def next_length(s: ExplicitState, control: StepControl) -> Matrix:
    """Length of the next step of a running lane: to the end if that is near."""
    import casadi as ca

    left = time_left(s, control)
    h = ca.fmin(s.h, control.max_step)
    return where(h * STRETCH >= left, left, h)


def step_length(s: ExplicitState, control: StepControl) -> Matrix:
    """Length of the step to take; zero for a lane that has stopped or waits."""
    return where(is_running(s, control), next_length(s, control), 0.0)


def is_running(s: ExplicitState, control: StepControl) -> Matrix:
    """Whether a lane has neither arrived nor stopped, and its next step does not lead beyond the pause."""
    import casadi as ca

    goes_on = time_left(s, control) > 0 if s.is_paired else s.t < control.end
    if control.pause is not None:
        goes_on = ca.logic_and(goes_on, control.pause - s.t >= next_length(s, control))
    return ca.logic_and(goes_on, s.outcome == Outcome.ARRIVED)


def decide(
    tableau: Tableau, s: ExplicitState, control: StepControl, h: Matrix, squares: Matrix, size: Matrix, g: Matrix,
    directions: np.ndarray, count: int, correction: tuple[Matrix, Matrix] | None = None, careful: bool = False,
) -> tuple[Matrix, ExplicitState]:  # fmt: skip
    """Accept a step of length h, or retry with a shorter one; `squares` and `size` of `count` entries: `measure`.

    `correction` is whether that is small enough, and whether rows are nearly dependent; None for a tree. A step
    that is not accepted near a singular position is left to careful ones. Return whether it is accepted, and the state
    with everything new but position, velocity and acceleration.
    """
    import casadi as ca

    running = is_running(s, control)
    finite = size <= (LARGEST_SINGLE if s.is_paired else LARGEST)  # false for NaN
    if tableau.adaptive:
        e = ca.sqrt(squares / max(count, 1))
        finite = ca.logic_and(finite, e <= LARGEST)
        good = ca.logic_and(finite, e <= 1)
        if correction is not None:
            moved_off = ca.logic_and(good, ca.logic_not(correction[0]))
            good = ca.logic_and(good, correction[0])
        last, tiny = ca.fmax(s.e, 1e-4), ca.fmax(e, 1e-10)
        factor = SAFETY * ca.sqrt(ca.sqrt(ca.sqrt(1 / tiny))) * ca.sqrt(ca.sqrt(ca.sqrt(ca.sqrt(last))))
        factor = ca.fmin(GROW, ca.fmax(SHRINK, factor))
        factor = where(good, factor, where(finite, ca.fmin(factor, SAFETY), SHRINK))
        if correction is not None:
            factor = where(moved_off, CORRECTED, factor)
        clipped = ca.logic_and(good, h < s.h)
        h_next = where(clipped, ca.fmax(h * factor, s.h), h * factor)
        smallest = 16 * np.finfo(float).eps * ca.fmax(ca.fabs(s.t), ca.fabs(control.end))
        hopeless = ca.logic_and(ca.logic_not(good), h_next < smallest)
        failed = where(hopeless, where(finite, float(Outcome.SMALL_STEP), float(Outcome.NOT_FINITE)), 0.0)
    else:
        good, h_next, e = finite, s.h, s.e
        if correction is not None:
            moved_off = ca.logic_not(correction[0])
            good = ca.logic_and(finite, correction[0])
        failed = where(finite, 0.0, float(Outcome.NOT_FINITE))
    if correction is not None and not (careful and tableau.adaptive):  # those go on with shorter steps
        near = ca.logic_and(ca.logic_not(good), correction[1])
        failed = where(ca.logic_and(ca.logic_or(near, moved_off), finite), float(Outcome.SINGULAR), failed)
    crossed, which = crossing(s.g, g, directions)
    met = ca.logic_and(good, crossed)
    accept = ca.logic_and(running, ca.logic_and(good, ca.logic_not(crossed)))
    arrived = h >= time_left(s, control)
    later, later_lo = added(s.t, h + s.t_lo, h) if s.is_paired else (s.t + h, s.t_lo)
    return accept, replace(
        s,
        t=where(accept, where(arrived, control.end, later), s.t),
        t_lo=where(accept, where(arrived, control.end_lo, later_lo), s.t_lo) if s.is_paired else s.t_lo,
        # at an event keep the length of the step that crossed it: the event is then located inside it
        h=where(running, where(met, h, h_next), s.h),
        e=where(accept, e, s.e),
        steps=s.steps + where(accept, 1.0, 0.0),
        outcome=where(running, where(met, float(Outcome.EVENT), failed), s.outcome),
        event=where(ca.logic_and(running, met), which, s.event),
        g=where(accept, g, s.g) if g.shape[0] else g,
    )


def finish(
    tableau: Tableau, s: ExplicitState, control: StepControl, step: Step, new: StepResult, g: Matrix,
    directions: np.ndarray, careful: bool,
) -> tuple[ExplicitState, Matrix]:  # fmt: skip
    """The state after a step, accepted or not, and whether the lane goes on."""
    import casadi as ca

    squares, size = measure(step, new, control.rtol, control.atol)
    n = step.q.shape[0] + step.v.shape[0]
    c = new.correction
    judged = None if c is None else c.judged(new.v, control, tableau.adaptive, careful)
    accept, after = decide(tableau, s, control, step.h, squares, size, g, directions, n, judged, careful)
    if tableau.adaptive:
        after = replace(after, a=where(accept, step.K[-1][1], s.a), power=where(accept, step.K[-1][2], s.power))
        if s.xdot.shape[0]:
            after.xdot = where(accept, step.K[-1][0][-s.xdot.shape[0] :], s.xdot)
    after = replace(
        after,
        q=where(accept, new.q, s.q),
        v=where(accept, new.v, s.v),
        x=s.x if new.x is None else where(accept, new.x, s.x),
        work=where(accept, s.work + work(tableau, step), s.work),
        speed=where(accept, ca.fmax(s.speed, ca.sumsqr(new.v)), s.speed),
    )
    if new.low is not None:
        after.q_lo, after.v_lo = where(accept, new.low[0], s.q_lo), where(accept, new.low[1], s.v_lo)
    if c is not None:
        larger = ca.logic_and(accept, c.removed / 2 > s.correction)
        after.correction = where(larger, c.removed / 2, s.correction)
        after.correction_time = where(larger, after.t, s.correction_time)
    return after, is_running(after, control)
