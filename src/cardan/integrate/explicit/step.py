"""Explicit integrators as text over symbols: Runge-Kutta methods and the semi-implicit Euler method.

A step from (t, q, v) to (t + h, ...) is `begin`, then `stage` for each row of the method's table, then `finish`:

    k_i = (N(q_i) v_i, a(t + c_i h, q_i, v_i))      q_i = q + h sum_j A_ij kq_j      v_i = v + h sum_j A_ij kv_j
    q' = q + h sum_i b_i kq_i,   v' = v + h sum_i b_i kv_i

The sums are taken in the space that quaternions are embedded in; there the exact solution keeps their length, and the
step's result is brought back to it, which changes it by less than the method's own error. Loops are closed the same
way. Methods: Kutta 1901 (order 4); Dormand and Prince 1980 (order 5, with an error estimate of order 4), whose last
stage is the first of the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardan.algebra.matrix import Matrix, Scalar, is_symbol, stack, where, zeros
from cardan.integrate.explicit.motion import Graphs, Loads
from cardan.integrate.stepper import Outcome


@dataclass(frozen=True)
class Method:
    """A table of Butcher's: `A` (s, s), `b` (s,), `c` (s,), and `e` (s,), the weights of the error estimate."""

    name: str
    order: int
    A: np.ndarray
    b: np.ndarray
    e: np.ndarray | None = None

    @property
    def c(self) -> np.ndarray:
        """Times of the stages in the step."""
        return np.asarray(self.A.sum(axis=1))

    @property
    def stages(self) -> int:
        """Rows of the table."""
        return len(self.b)

    @property
    def facts(self) -> tuple[object, ...]:
        """All that distinguishes it from another."""
        return (self.name, self.A.tolist(), self.b.tolist(), self.e if self.e is None else self.e.tolist())

    @property
    def adaptive(self) -> bool:
        """Whether the method judges its own error; its last stage is then the first of the next step."""
        return self.e is not None


def _table(*rows: Sequence[float]) -> np.ndarray:
    A = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        A[i, : len(row)] = row
    return A


RK4 = Method("rk4", 4, _table((), (1 / 2,), (0, 1 / 2), (0, 0, 1)), np.array([1, 2, 2, 1]) / 6)

_B5 = (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84)
_B4 = (5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40)
DORMAND_PRINCE = Method(
    "dormand_prince",
    5,
    _table(
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        _B5,
    ),
    np.array([*_B5, 0]),
    np.array([*_B5, 0]) - np.array(_B4),
)
# a first-order method of one evaluation that is not in the table: v' = v + h a(q, v), q' = q + h v'
EULER = Method("euler", 1, _table(()), np.array([1.0]))

METHODS = {method.name: method for method in (RK4, DORMAND_PRINCE, EULER)}

# Control of the step size: a factor between 1/5 and 5 from this error and the last one (Gustafsson's controller; the
# exponents 1/8 and 1/16 are near the usual 0.7/5 and 0.4/5, and are square roots)
SAFETY, SHRINK, GROW = 0.9, 0.2, 5.0
LARGEST = 1e300
STRETCH = 1.01  # a last step may be this much longer, rather than leave a tiny one


@dataclass
class Step:
    """A step under way: where it started, its length, and the stages so far, `K[i] = (kq, kv)`."""

    t: Scalar
    q: Matrix
    v: Matrix
    h: Matrix
    K: list[tuple[Matrix, Matrix]]


def first_stage(graphs: Graphs, q: Matrix, v: Matrix, a: Matrix, loads: Loads) -> tuple[Matrix, Matrix]:
    """`k_1` of a method that knows it from the step before."""
    return graphs.rates(q, v, loads), a


def argument(method: Method, step: Step, i: int | Scalar) -> tuple[Scalar, Matrix, Matrix]:
    """Time, `q_i` and `v_i` of stage i; the number of the stage may be a symbol."""
    weights = [pick(method.A[:, j], i) for j in range(method.stages)]
    return step.t + pick(method.c, i) * step.h, *moved(step, weights)


def moved(step: Step, weights: Sequence[Scalar]) -> tuple[Matrix, Matrix]:
    """`q + h sum_j w_j kq_j`, and the same of v, over the stages so far."""
    q, v = step.q, step.v
    for w, (kq, kv) in zip(weights, step.K, strict=False):
        if is_symbol(w) or w != 0:
            q, v = q + (step.h * w) * kq, v + (step.h * w) * kv
    return q, v


def estimate(method: Method, step: Step) -> tuple[Matrix, Matrix]:
    """`h sum_j e_j kq_j`, and the same of v: the error of the step; zero where the method does not know it."""
    still = Step(step.t, zeros(step.q.shape[0], None, step.q), zeros(step.v.shape[0], None, step.v), step.h, step.K)
    return moved(still, [] if method.e is None else list(method.e))


def stage(graphs: Graphs, method: Method, step: Step, i: int | Scalar, loads: Loads) -> tuple[Matrix, Matrix]:
    """`k_i`."""
    t, q, v = argument(method, step, i)
    return graphs.rates(q, v, loads), graphs.accelerations(t, q, v, loads)


def kept(k: Matrix, K: Matrix, i: Scalar) -> Matrix:
    """The stages' `K`, a column each, with `k` in column i, which is a symbol."""
    import casadi as ca

    return ca.horzcat(*(where(i == j, k, K[:, j]) for j in range(K.shape[1])))


@dataclass
class Result:
    """State after a step, and an estimate of its error; the error is zero where the method has none."""

    q: Matrix
    v: Matrix
    eq: Matrix
    ev: Matrix


def result(graphs: Graphs, method: Method, step: Step, loads: Loads) -> Result:
    """State after the step, on the manifold, and of its error what is along the manifold."""
    q, v = moved(step, list(method.b))
    if method is EULER:
        q = graphs.plus(step.q, step.h * v, loads)
    eq, ev = estimate(method, step)
    q = graphs.normalised(q)
    if graphs.motion.projects:
        c = graphs.correction(step.t + step.h, q, loads)
        if method.adaptive:
            eq, ev = graphs.along(c, q, eq, ev, loads)
        q, v = graphs.nudged(c, q, v, loads)
    return Result(q, v, eq, ev)


def measure(step: Step, new: Result, rtol: Scalar, atol: Scalar) -> tuple[Matrix, Matrix]:
    """Sums over the entries: of the error's squares in units of what is allowed, and of the state's magnitudes."""
    import casadi as ca

    before, after = stack(step.q, step.v), stack(new.q, new.v)
    ratio = stack(new.eq, new.ev) / (atol + rtol * ca.fmax(ca.fabs(before), ca.fabs(after)))
    return ca.sumsqr(ratio), ca.norm_1(after)


def pick(values: np.ndarray, i: int | Scalar) -> Scalar:
    """Entry `i`, which may be a symbol, of a column of numbers."""
    if not is_symbol(i):
        return float(values[int(i)])
    chosen: Scalar = float(values[0])
    for k in range(1, len(values)):
        chosen = where(i == k, float(values[k]), chosen)
    return chosen


@dataclass
class State:
    """What a march carries from step to step, each a column of symbols.

    Time, configuration, velocity, acceleration, the next step's length, the last error, steps taken, an `Outcome`, the
    number of an event met (-1), and the events' values.
    """

    t: Matrix
    q: Matrix
    v: Matrix
    a: Matrix
    h: Matrix
    e: Matrix
    steps: Matrix
    outcome: Matrix
    event: Matrix
    g: Matrix

    def columns(self) -> list[Matrix]:
        """All of them, in order."""
        return [self.t, self.q, self.v, self.a, self.h, self.e, self.steps, self.outcome, self.event, self.g]


@dataclass
class Control:
    """Where to stop and how well: time to stop at, relative and absolute tolerance, longest step."""

    end: Scalar
    rtol: Scalar
    atol: Scalar
    longest: Scalar


def length(method: Method, s: State, control: Control) -> Matrix:
    """The step to take: up to the end where that is near."""
    import casadi as ca

    left = control.end - s.t
    h = ca.fmin(s.h, control.longest)
    h = where(h * STRETCH >= left, left, h)
    return where(is_going(s, control), h, 0.0)


def is_going(s: State, control: Control) -> Matrix:
    """Whether a lane has neither arrived nor stopped."""
    import casadi as ca

    return ca.logic_and(s.t < control.end, s.outcome == Outcome.ARRIVED)


@dataclass
class Verdict:
    """On a step: whether it is kept, and what a march carries on beside position, velocity and acceleration."""

    keep: Matrix
    t: Matrix
    h: Matrix
    e: Matrix
    steps: Matrix
    outcome: Matrix
    event: Matrix
    g: Matrix


def judge(
    method: Method,
    s: State,
    control: Control,
    h: Matrix,
    squares: Matrix,
    size: Matrix,
    g: Matrix,
    directions: np.ndarray,
    count: int,
) -> Verdict:
    """Keep a step of length h, or try again with a shorter one; `squares` and `size` are of `count` entries."""
    import casadi as ca

    going = is_going(s, control)
    finite = size <= LARGEST  # false where it is not a number
    if method.adaptive:
        e = ca.sqrt(squares / max(count, 1))
        finite = ca.logic_and(finite, e <= LARGEST)
        good = ca.logic_and(finite, e <= 1)
        last, tiny = ca.fmax(s.e, 1e-4), ca.fmax(e, 1e-10)
        factor = SAFETY * _root(_root(_root(1 / tiny))) * _root(_root(_root(_root(last))))
        factor = ca.fmin(GROW, ca.fmax(SHRINK, factor))
        factor = where(good, factor, where(finite, ca.fmin(factor, SAFETY), SHRINK))
        clipped = ca.logic_and(good, h < s.h)
        h_next = where(clipped, ca.fmax(h * factor, s.h), h * factor)
        smallest = 16 * np.finfo(float).eps * ca.fmax(ca.fabs(s.t), ca.fabs(control.end))
        hopeless = ca.logic_and(ca.logic_not(good), h_next < smallest)
        failed = where(hopeless, where(finite, float(Outcome.SMALL_STEP), float(Outcome.NOT_A_NUMBER)), 0.0)
    else:
        good, h_next, e = finite, s.h, s.e
        failed = where(finite, 0.0, float(Outcome.NOT_A_NUMBER))
    crossed, which = crossing(s.g, g, directions)
    met = ca.logic_and(good, crossed)
    keep = ca.logic_and(going, ca.logic_and(good, ca.logic_not(crossed)))
    arrived = h >= control.end - s.t
    return Verdict(
        keep,
        where(keep, where(arrived, control.end, s.t + h), s.t),
        # at an event the length of the step that met it is kept, to look for the event inside
        where(going, where(met, h, h_next), s.h),
        where(keep, e, s.e),
        s.steps + where(keep, 1.0, 0.0),
        where(going, where(met, float(Outcome.EVENT), failed), s.outcome),
        where(ca.logic_and(going, met), which, s.event),
        where(keep, g, s.g) if g.shape[0] else g,
    )


def commit(
    method: Method,
    s: State,
    control: Control,
    step: Step,
    new: Result,
    g: Matrix,
    directions: np.ndarray,
) -> tuple[State, Matrix]:
    """The state after a step, and whether the lane goes on."""
    squares, size = measure(step, new, control.rtol, control.atol)
    n = new.q.shape[0] + new.v.shape[0]
    to = judge(method, s, control, step.h, squares, size, g, directions, n)
    after = State(
        to.t,
        where(to.keep, new.q, s.q),
        where(to.keep, new.v, s.v),
        where(to.keep, step.K[-1][1], s.a) if method.adaptive else s.a,
        to.h,
        to.e,
        to.steps,
        to.outcome,
        to.event,
        to.g,
    )
    return after, is_going(after, control)


def _root(x: Matrix) -> Matrix:
    return x.sqrt()


def crossing(before: Matrix, after: Matrix, directions: np.ndarray) -> tuple[Matrix, Matrix]:
    """Whether one of the events' values changed sign as wanted, and which, the first of several."""
    import casadi as ca

    crossed, which = ca.SX(0), ca.SX(-1)
    for k in reversed(range(after.shape[0])):
        up = ca.logic_and(before[k] < 0, after[k] >= 0)
        down = ca.logic_and(before[k] > 0, after[k] <= 0)
        own = {1: up, -1: down, 0: ca.logic_or(up, down)}[int(directions[k])]
        crossed, which = ca.logic_or(crossed, own), where(own, float(k), which)
    return crossed, which
