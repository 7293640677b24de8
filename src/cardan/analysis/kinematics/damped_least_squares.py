"""Damped least squares on a mechanism, with constraints, limits and restarts: the whole iteration is one kernel.

A problem has wanted rows, whose errors `e` are made small in the sense of least squares, and held rows, which are kept:
the constraints of the mechanism, and targets of higher priority. Rows change by `-J dq` and `-A dq`. A step is

    n = A^+ b                               back onto the held rows
    Jt = J (1 - A^+ A)                      wanted rows along the held ones
    t = Jt^T (Jt Jt^T + lam 1)^-1 (e - J n)

with the damping `lam` in proportion to the error, so that convergence is quadratic where the targets can be reached
(Sugihara, IEEE Trans. Robotics 27 (2011) 984-991), and raised where a step did not help (Levenberg, Marquardt). While
the held rows are open, a step is `n` alone. Coordinates at a limit that descent pushes outwards are left out of a step
(Bertsekas, SIAM J. Control Optim. 20 (1982) 221-246), and steps end at limits.

Restarts follow an additive recurrence of irrational numbers, which fills the space of coordinates evenly: a lane that
gets no farther goes on from the next start by itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.algebra.linsolve import ldl_factor, ldl_solve
from cardan.algebra.matrix import Matrix, constant, cos, dot, segment, sin, sqrt, stack, vector, where
from cardan.algebra.rotation import quaternion_log, quaternion_product, rotation_of_quaternion
from cardan.analysis.kinematics.targets import Aim
from cardan.formulation.dynamics import constraint_residual
from cardan.formulation.formulation import tree_rates
from cardan.formulation.tree import PLUS
from cardan.lazy import cached_property
from cardan.machines.ufunc.kernel import Kernel, compile_program
from cardan.model.memory import Slot
from cardan.model.model import Model
from cardan.program.march import March
from cardan.program.program import Port, Program
from cardan.structure.kernels import symbolic
from cardan.structure.rows import row_sizes

CLOSED = 1e-7  # residual of held rows, by their size, below which they count as kept
OPEN = 3e-2  # above it steps go back onto them only
RANK = 1e-14  # of the trace: damping of held rows, which may be redundant
FIRST_DAMPING, LEAST_DAMPING, LARGEST_DAMPING = 0.1, 3e-2, 1e9
LONGEST = 0.8  # rad, and metres by the size of the mechanism: the largest change of a coordinate in a step
AT_LIMIT = 1e-9  # rad, and m by the size of the mechanism: so near to a limit a coordinate is at it
PRESSING = 1e-5  # of its largest possible size: descent that is held back by a limit
SINGULAR = 1e-9  # added to J J^T, whose rows may depend on one another by nature, as in a plane
NO_JACOBIAN = 1e-24
UNREACHED = 1e300
BUSY, REACHED, STOPPED = 0.0, 1.0, 2.0

_LENGTH: Slot[None, float] = Slot("size of the mechanism")


def size_of(model: Model) -> float:
    """A length of the mechanism, m: by it lengths and angles are compared. The sum of all offsets of its joints."""

    def measure() -> float:
        places = [at.position for joint in model.unbound.joints for at in (joint.at, joint.child_at)]
        found = float(sum(np.linalg.norm(nominal(place)) for place in places))
        return found if found > 1e-9 else 1.0

    return _LENGTH.find(model, None, measure)


@dataclass(frozen=True)
class Wanted:
    """Rows to be made small: errors (m,), Jacobian (m, nv), what is minimised, what the damping is in proportion to.

    `miss` is the largest error by its tolerance: at most 1 where the targets are reached. The derivative of the cost is
    `-slope J^T e`.
    """

    e: Matrix
    J: Matrix
    cost: Matrix
    scale: Matrix
    miss: Matrix
    slope: float = 2.0


@dataclass(frozen=True, eq=False)
class Problem:
    """One level of priority: `wanted` targets or an objective, and targets that are `held` where they are."""

    model: Model
    wanted: tuple[Aim, ...]
    held: tuple[Aim, ...] = ()
    objective: Objective | None = None
    fixed: frozenset[int] = frozenset()
    """Rates (numbers) that may not move."""
    limited: bool = True
    """Whether some coordinate has a limit."""
    closing: bool = False
    """Whether the constraints are what is wanted, and there are no targets."""

    @cached_property
    def key(self) -> str:
        """All that the kernel depends on."""
        aims = [[aim.key(self.model) for aim in aims] for aims in (self.wanted, self.held)]
        facts = (
            self.model.key,
            aims,
            self.objective and self.objective.name,
            sorted(self.fixed),
            self.limited,
            self.closing,
        )
        return hashlib.sha256(repr(("inverse kinematics", facts)).encode()).hexdigest()

    @cached_property
    def kernel(self) -> Kernel:
        """Steps until every lane has reached its targets or given up; see `ports`."""
        state, data = self.ports
        inputs = (*state, *data, Port("limit", ()))
        return compile_program(Program("inverse_kinematics", inputs, state, self.key, self._record, repeats=30))

    @cached_property
    def ports(self) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """State and data.

        State: `x` the configuration tried, `q` the last one accepted with its `cost` and `gap`, `best` of all with its
        `least` cost and `pressed` coordinates, the `damping`, how many steps this start has taken, the number of the
        start, `outcome`, whether `x` is `fresh` (to be accepted as it is), and the steps of all starts.

        Data: the first start, limits and the range of other starts, then how many starts, steps of each, the progress
        in a step and the descent (by its largest possible size) below which a start ends, and the tolerances.
        """
        nq, nv, model = self.model.nq, self.model.nv, self.model
        vectors = {"x": nq, "q": nq, "best": nq, "pressed": nv}
        numbers = ("cost", "gap", "least", "miss", "damping", "steps", "start", "outcome", "fresh", "total")
        state = (*(Port(name, (n,)) for name, n in vectors.items()), *(Port(name, ()) for name in numbers))
        data = [Port(name, (nq,)) for name in ("q0", "lower", "upper", "low", "high")]
        data += [Port(name, ()) for name in ("starts", "iterations", "progress", "stationary", "in_m", "in_rad")]
        aims = [*self.wanted, *self.held]
        data += [Port(f"target{k}_{i}", (n,)) for k, aim in enumerate(aims) for i, n in enumerate(aim.sizes)]
        if self.held:
            data.append(Port("kept", (sum(map(rows_of, self.held)),)))
        if self.objective is not None:
            data += [Port(f"objective{i}", (nq,)) for i in range(self.objective.arrays)]
        data += [Port("t", ())] if model.depends_on_time else []
        data += [Port("p", (model.parameters.size,))] if model.parameters else []
        return state, tuple(data)

    @cached_property
    def moving(self) -> tuple[list[int], list[int]]:
        """Numbers of the rates that matter to the wanted rows, and of the constraint rows that tie them together."""
        import casadi as ca

        model, _ = symbolic(self.model)
        q = ca.SX.sym("q", model.nq)
        used: set[int] = set()
        for aim in (*self.wanted, *self.held):
            rows = aim.rows(model, q, [ca.SX.sym("d", n) for n in aim.sizes], 1.0)
            used |= {int(j) for j in rows.J.sparsity().get_triplet()[1]}
        if self.objective is not None or self.closing:
            used |= set(range(model.nv))
        found: list[int] = []
        while True:
            found = [i for i, columns in self.tied.items() if columns & used]
            grown = used.union(*(self.tied[i] for i in found))
            if grown == used:
                return sorted(used - self.fixed), sorted(found)
            used = grown

    @cached_property
    def tied(self) -> dict[int, set[int]]:
        """For each constraint row the numbers of the rates in it."""
        import casadi as ca

        found: dict[int, set[int]] = {}
        if self.model.has_rows:
            model, _ = symbolic(self.model)
            inputs = {"q": ca.SX.sym("q", model.nq), "t": ca.SX.sym("t")}
            G = constraint_residual(model).graph(model, inputs)[1]
            for i, j in zip(*G.sparsity().get_triplet(), strict=True):
                found.setdefault(int(i), set()).add(int(j))
        return found

    # the graph

    def _record(self) -> March:
        import casadi as ca

        state, data = self.ports
        s = {port.name: ca.SX.sym(port.name, *(port.shape or (1,))) for port in state}
        d = {port.name: ca.SX.sym(port.name, *(port.shape or (1,))) for port in data}
        if self.model.parameters:
            d["p"] = symbolic(self.model)[1]
        after = self._step(s, d)
        outputs = [after[port.name] for port in state]
        function = ca.Function("step", [*s.values(), *d.values()], [*outputs, after["outcome"] == BUSY])
        return March(((function, 1),), len(state))

    def _step(self, s: dict[str, Any], d: dict[str, Any]) -> dict[str, Any]:
        """The state after one evaluation: accept or refuse what was tried, and try the next."""
        import casadi as ca

        model, _ = symbolic(self.model)
        columns, _ = self.moving
        x = s["x"]
        length = size_of(self.model)
        scale = np.array([length if unit.startswith("m") else 1.0 for unit in _units(model)])[columns]
        S = constant(np.diag(scale))
        wanted = self._wanted(model, x, d, length)
        e, J = wanted.e, wanted.J[:, columns] @ S
        b, A = self._held(model, x, d, length)
        A = A[:, columns] @ S
        cost, grow, miss = wanted.cost, wanted.scale, wanted.miss
        gap = ca.norm_inf(b) if b.numel() else ca.SX(0)
        closing = gap > OPEN
        at = coordinate_of_rate(model)
        place = [at[c] for c in columns]
        near = scale * AT_LIMIT
        low = ca.vertcat(*(x[j] - d["lower"][j] <= near[k] if j is not None else 0 for k, j in enumerate(place)))
        high = ca.vertcat(*(d["upper"][j] - x[j] <= near[k] if j is not None else 0 for k, j in enumerate(place)))
        held = (b, A, gap, closing, s["damping"])
        n, Jn, Jt, descent, pressed, wish = self._along_limits(e, J, held, s["damping"] * grow, low, high)
        # was the step a good one? Judged by the cost that will be left on the held rows, or if they are much closer
        both = cost - wanted.slope * dot(e, Jn) + (wanted.slope - 1) * dot(Jn, Jn)
        closer = (gap < where(s["damping"] > 1, 0.9, 0.25) * s["gap"]) * (s["gap"] > CLOSED)
        better = where(s["gap"] > OPEN, gap < s["gap"], ca.logic_or((both < s["cost"]) * (gap <= OPEN), closer))
        fresh = s["fresh"] > 0
        polished = s["miss"] <= 1  # what was accepted is within the tolerance: this was the last step
        busy = s["outcome"] == BUSY  # a lane that is done accepts and begins nothing: so it stays as it is
        accepted = busy * ca.logic_or(fresh, better)
        slow = better * (s["gap"] <= CLOSED) * (gap <= CLOSED) * (both > (1 - d["progress"]) * s["cost"])
        damping = where(better, ca.fmax(s["damping"] / 3, LEAST_DAMPING), s["damping"] * 8)
        damping = where(fresh, s["damping"], damping)
        # the next step from here
        step = n + where(closing, 0, 1) * _damped(Jt, e - Jn, damping * grow)
        stationary = ca.logic_and(
            gap <= CLOSED, dot(descent, descent) <= d["stationary"] ** 2 * dot(e, e) * (ca.sumsqr(J) + NO_JACOBIAN)
        )
        y = step * ca.fmin(1.0, LONGEST / ca.fmax(ca.norm_inf(step), 1e-300))
        if self.limited and b.numel():
            y = y * where(closing, 1.0, self._to_first_limit(x, y * scale, d, place, low, high))
        dq = ca.SX(model.nv, 1)
        for k, c in enumerate(columns):
            dq[c] = scale[k] * y[k]
        moved = ca.fmin(ca.fmax(PLUS.graph(model, {"q": x, "v": dq})[0], d["lower"]), d["upper"])
        # the best of all
        record = accepted * (gap <= CLOSED) * (cost < s["least"])
        press = ca.SX(model.nv, 1)
        least = PRESSING * sqrt(dot(e, e) * ca.sumsqr(J))
        for k, c in enumerate(columns):
            press[c] = pressed[k] * (ca.fabs(wish[k]) > least)
        steps = s["steps"] + 1
        close = gap <= CLOSED
        there = ca.logic_or(polished, accepted * close * (miss <= 1) * (cost <= 1e-24))
        stuck = (damping > LARGEST_DAMPING) + (steps >= d["iterations"]) + accepted * stationary + slow > 0
        stuck = stuck * ca.logic_not(accepted * close * (miss <= 1))
        more = s["start"] + 1 < d["starts"]
        outcome = where(there, REACHED, where(stuck * ca.logic_not(more), STOPPED, BUSY))
        again = busy * stuck * more * ca.logic_not(there)
        return {
            "x": _choose(again, self._start(model, s["start"] + 1, d), _choose(accepted, moved, s["q"])),
            "q": _choose(accepted, x, s["q"]),
            "best": _choose(record, x, s["best"]),
            "pressed": _choose(record, press, s["pressed"]),
            "cost": where(accepted, both, s["cost"]),
            "gap": where(accepted, gap, s["gap"]),
            "least": where(record, cost, s["least"]),
            "miss": where(again, UNREACHED, where(accepted * close, miss, s["miss"])),
            "damping": where(again, FIRST_DAMPING, where(busy, damping, FIRST_DAMPING)),
            "steps": where(again, 0, steps),
            "start": where(again, s["start"] + 1, s["start"]),
            "outcome": where(busy, outcome, s["outcome"]),
            "fresh": ca.logic_or(again, ca.logic_not(accepted)),
            "total": s["total"] + busy,
        }

    def _to_first_limit(
        self, x: Matrix, dq: Matrix, d: dict[str, Any], place: list[int | None], low: Matrix, high: Matrix
    ) -> Matrix:
        """The part of a step up to the first limit: to stop one coordinate alone would leave the held rows."""
        import casadi as ca

        part = ca.SX(1.0)
        for k, j in enumerate(place):
            if j is not None:
                part = ca.fmin(part, where((dq[k] < 0) * (1 - low[k]), (d["lower"][j] - x[j]) / dq[k], 1.0))
                part = ca.fmin(part, where((dq[k] > 0) * (1 - high[k]), (d["upper"][j] - x[j]) / dq[k], 1.0))
        return part

    def _along_limits(
        self, e: Matrix, J: Matrix, held: tuple[Matrix, ...], lam: Matrix, low: Matrix, high: Matrix
    ) -> tuple[Matrix, ...]:
        """`n`, `J n` and `Jt` without the coordinates that limits hold back, and with it:

        the descent direction that is left, which coordinates are pressed against limits, and descent without limits.
        """
        import casadi as ca

        b, A, _, closing, _ = held
        n, Jt = _along(J, *held)
        descent = wish = where(closing, n, Jt.T @ e)
        pressed = low * (descent < 0) + high * (descent > 0)
        if self.limited and b.numel():
            # back onto the held rows with what that does not press against limits; along them likewise
            n = _along(J, b, A @ ca.diag(1 - low * (n < 0) - high * (n > 0)), *held[2:])[0]
            step = _damped(Jt, e - J @ n, lam)
            out = low * (ca.fmin(step, step + n) < 0) + high * (ca.fmax(step, step + n) > 0)
            free = ca.diag(1 - ca.fmin(1, pressed + out))
            Jt = _along(J @ free, b, A @ free, *held[2:])[1]
            descent = where(closing, n, Jt.T @ e)
        elif self.limited:
            Jt, descent = J @ ca.diag(1 - pressed), descent * (1 - pressed)
        return n, J @ n if b.numel() else 0 * e, Jt, descent, pressed, wish

    def _wanted(self, model: Model, x: Matrix, d: dict[str, Any], length: float) -> Wanted:
        import casadi as ca

        if self.closing:
            e, J = self._constraints(model, x, d)
            cost = dot(e, e)
            return Wanted(e, J, cost, cost, ca.norm_inf(e) / d["in_rad"])
        if self.objective is not None:
            own = [d[f"objective{i}"] for i in range(self.objective.arrays)]
            held = [aim.rows(model, x, self._data(d, k), length).J for k, aim in enumerate(self.held)]
            return self.objective.rows(model, x, own, held, length)
        found = [aim.rows(model, x, self._data(d, k), length) for k, aim in enumerate(self.wanted)]
        e, J = stack(*(rows.e for rows in found)), stack(*(rows.J for rows in found))
        cost = dot(e, e)
        miss = [x for rows in found for x in (sqrt(rows.position) / d["in_m"], sqrt(rows.rotation) / d["in_rad"])]
        return Wanted(e, J, cost, cost, ca.mmax(ca.vertcat(*miss)))

    def _data(self, d: dict[str, Any], k: int) -> list[Matrix]:
        aim = (*self.wanted, *self.held)[k]
        return [d[f"target{k}_{i}"] for i in range(len(aim.sizes))]

    def _held(self, model: Model, x: Matrix, d: dict[str, Any], length: float) -> tuple[Matrix, Matrix]:
        """What the held rows lack (mh,), and their Jacobian (mh, nv), each row by its size."""
        import casadi as ca

        b, A = [ca.SX(0, 1)], [ca.SX(0, model.nv)]
        if self.moving[1] and not self.closing:
            phi, G = self._constraints(model, x, d)
            b.append(phi)
            A.append(G)
        first = 0
        for k, aim in enumerate(self.held):
            own = aim.rows(model, x, self._data(d, len(self.wanted) + k), length)
            b.append(own.e - d["kept"][first : first + rows_of(aim)])
            A.append(own.J)
            first += rows_of(aim)
        return stack(*b), stack(*A)

    def _constraints(self, model: Model, x: Matrix, d: dict[str, Any]) -> tuple[Matrix, Matrix]:
        """What the constraints lack, and their Jacobian, each row by its size."""
        import casadi as ca

        _, rows = self.moving
        inputs = {"q": x} | ({"t": d["t"]} if self.model.depends_on_time else {})
        phi, G = constraint_residual(model).graph(model, inputs)
        size = constant(1 / row_sizes(self.model)[rows])
        return -phi[rows] * size, ca.diag(size) @ G[rows, :]

    def _start(self, model: Model, k: Matrix, d: dict[str, Any]) -> Matrix:
        """The configuration of start number k: evenly spread between `low` and `high`; unit quaternions."""
        columns, _ = self.moving
        steps = irrationals(model.nv)
        parts = [d["q0"][j] for j in range(model.nq)]
        for link in model.tree.links:
            u = [_fraction(0.5 + k * float(steps[c])) for c in range(link.v.start, link.v.stop)]
            moves = [c in columns for c in range(link.v.start, link.v.stop)]
            if link.kind.nq != link.kind.nv and any(moves):
                a, c1, c2 = u[0], 2 * np.pi * u[1], 2 * np.pi * u[2]
                r1, r2 = sqrt(1 - a), sqrt(a)  # Shoemake, Graphics Gems III (1992) 124-132
                parts[link.q.stop - 4 : link.q.stop] = [r2 * cos(c2), r1 * sin(c1), r1 * cos(c1), r2 * sin(c2)]
                u, moves = u[3:], moves[3:]
            for i, (x, move) in enumerate(zip(u, moves, strict=True)):
                j = link.q.start + i
                if move:
                    parts[j] = d["low"][j] + x * (d["high"][j] - d["low"][j])
        return vector(*parts) if parts else d["q0"]


@dataclass(frozen=True)
class Objective:
    """What is made best along the targets: a name, how many arrays (nq,) it reads, and how its rows are written."""

    name: str
    arrays: int
    write: Any

    def rows(self, model: Model, x: Matrix, data: list[Matrix], held: Sequence[Matrix], length: float) -> Wanted:
        """Its rows over symbols; `held` are the Jacobians of the targets."""
        found: Wanted = self.write(model, x, data, held, length)
        return found


def _near(model: Model, x: Matrix, data: list[Matrix], held: Sequence[Matrix], length: float) -> Wanted:
    """Stay near a configuration: all changes of coordinates count alike, lengths by the size of the mechanism."""
    e = []
    for link in model.tree.links:
        at, wish = segment(x, link.q), segment(data[0], link.q)
        if link.kind.nq == link.kind.nv:
            e.append(wish - at)
            continue
        n = link.kind.nq - 4
        back = vector(at[n], -at[n + 1], -at[n + 2], -at[n + 3])
        e.append(quaternion_log(quaternion_product(back, wish[n:])))
        if n:
            e.append(rotation_of_quaternion(at[n:]).T @ (wish[:n] - at[:n]))
    size = constant(np.array([1 / length if unit.startswith("m") else 1.0 for unit in _units(model)]))
    return _squares(size * stack(*e), size)


def _centre(model: Model, x: Matrix, data: list[Matrix], held: Sequence[Matrix], length: float) -> Wanted:
    """Stay in the middle of the limits: `data` are the middle and one over half the range, zero where there is none."""
    e, size = [], []
    for c, k in enumerate(coordinate_of_rate(model)):
        size.append(data[1][k] if k is not None else 0.0)
        e.append(size[c] * (data[0][k] - x[k]) if k is not None else 0.0 * x[0])
    return _squares(vector(*e), vector(*size))


def _squares(e: Matrix, size: Matrix) -> Wanted:
    import casadi as ca

    return Wanted(e, ca.diag(ca.SX(size)), dot(e, e), ca.SX(1e-3), ca.SX(UNREACHED))


def _manipulability(model: Model, x: Matrix, data: list[Matrix], held: Sequence[Matrix], length: float) -> Wanted:
    """Make Yoshikawa's measure of the targets' rows large: its logarithm, `ln det(J J^T) / 2`."""
    import casadi as ca

    J = stack(*held)
    A = J @ J.T
    D = ldl_factor(A + SINGULAR * ca.SX.eye(A.shape[0])).reciprocal
    measure = -ca.sum1(ca.log(vector(*D))) / 2
    v = ca.SX.sym("v", model.nv)
    gradient = ca.gradient(ca.jtimes(measure, x, tree_rates(model, x, v)), v)
    return Wanted(gradient, ca.SX.eye(model.nv), -measure, ca.SX(1.0), ca.SX(UNREACHED), slope=1.0)


OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective("near", 1, _near),
        Objective("centre", 2, _centre),
        Objective("manipulability", 0, _manipulability),
    )
}


def rows_of(aim: Aim) -> int:
    """Number of rows of a target."""
    return {"": 0, "orientation": 3, "direction": 2, "look_at": 2}[aim.turns] + len(aim.along)


def irrationals(n: int) -> np.ndarray:
    """Steps of an additive recurrence for n coordinates: powers of the root of `g^(n + 1) = g + 1` (Roberts)."""
    g = 2.0
    for _ in range(60):
        g = (1 + g) ** (1 / (n + 1))
    return (1 / g) ** np.arange(1, n + 1) % 1


def _along(J: Matrix, b: Matrix, A: Matrix, gap: Matrix, closing: Matrix, damping: Matrix) -> tuple[Matrix, Matrix]:
    """The step `n` back onto the held rows, and the wanted rows `Jt` along them."""
    import casadi as ca

    if not b.numel():
        return ca.SX(J.shape[1], 1), J
    AA = A @ A.T
    floor = RANK * ca.trace(AA) + 1e-300
    factor = ldl_factor(AA + where(closing, ca.fmax(damping * gap, floor), floor) * ca.SX.eye(b.numel()))
    solved = ldl_solve(factor, ca.horzcat(b, A @ J.T))
    return A.T @ solved[:, 0], J - solved[:, 1:].T @ A


def _damped(J: Matrix, r: Matrix, lam: Matrix) -> Matrix:
    """The step `(J^T J + lam 1)^-1 J^T r`, by the smaller of the two systems."""
    import casadi as ca

    m, n = J.shape
    if m <= n:
        return J.T @ ldl_solve(ldl_factor(J @ J.T + lam * ca.SX.eye(m)), r)
    return ldl_solve(ldl_factor(J.T @ J + lam * ca.SX.eye(n)), J.T @ r)


def _fraction(x: Matrix) -> Matrix:
    import casadi as ca

    return x - ca.floor(x)


def _choose(condition: Matrix, then: Matrix, otherwise: Matrix) -> Matrix:
    import casadi as ca

    then, otherwise = ca.SX(then), ca.SX(otherwise)
    return ca.vertcat(*(where(condition, then[k], otherwise[k]) for k in range(then.numel()))) if then.numel() else then


def _units(model: Model) -> list[str]:
    """Unit of each rate."""
    return [unit for link in model.tree.links for unit in link.kind.v_units]


def coordinate_of_rate(model: Model) -> list[int | None]:
    """For each rate its coordinate in q; None for the rates of joints with quaternions."""
    found: list[int | None] = []
    for link in model.tree.links:
        plain = link.kind.nq == link.kind.nv
        found += range(link.q.start, link.q.stop) if plain else [None] * link.kind.nv
    return found
