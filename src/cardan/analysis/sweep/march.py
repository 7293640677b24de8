"""One linkage taken through all positions of its crank, as a march: many linkages go side by side, each at its pace.

Lengths count by the size of the mechanism, positions of the crank by the grid of samples: `x = 0, 1, 2, ...` forwards
from the start. A step of the march is

    two steps of Newton's method on the loops, damped while they are wide open and halved where they do not help
    rates, accelerations, drives and joint forces there; if the loops are closed, on the same branch, it counts
    the next position, predicted by rates and accelerations

A linkage is first put together at the start, from several guesses; Assur groups that are closed stay so. Where a
position is not reached, the crank takes shorter steps, down to `SHORTEST` of the grid's; where these fail too, the
branch has ended at a dead point. Then, if the positions are those of a whole turn, the crank goes from the start
backwards, to the other end of its range. So a full turn takes as many steps as it has positions, and a rocker not more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix
from cardan.analysis.sweep.coupler_curve import NORMAL, SLOPE, Curve
from cardan.formulation.tree import RATES
from cardan.model.model import Model
from cardan.program.march import March
from cardan.structure.driven import BlockTriangular, DrivenMechanism, Position
from cardan.structure.kernels import function_of

CLOSED = 1e-12  # residual of the loops, by their size
DAMPING = 0.5  # of the squares of the residuals, added to the squares of their derivatives
SHORTER = 4.0  # a step of Newton's method that does not help is divided by it, and so is one of the crank
SHORTEST = 1 / 4096  # of the grid: a shorter step of the crank means that the branch has ended
LONGEST = 1.0  # rad, and m by the size of the mechanism: of one step of Newton's method
ITERATIONS = 2  # of Newton's method in a step of the march
PUT_TOGETHER, FOLLOW = 10, 5  # steps of the march before a guess, or a step of the crank, is given up
FASTEST = 1e9  # times the crank: faster is a dead point
FAR = 1e300
BEGIN, ASSEMBLE, FORWARDS, BACKWARDS, DONE = 0.0, 1.0, 2.0, 3.0, 4.0


def _packed(sizes: dict[str, int], name: str) -> tuple[Any, dict[str, Any]]:
    """One symbol for many names, since a ufunc takes few arrays; and the part of each name."""
    import casadi as ca

    whole = ca.SX.sym(name, sum(sizes.values()))
    ends = np.cumsum([0, *sizes.values()])
    return whole, {key: whole[int(ends[k]) : int(ends[k + 1])] for k, key in enumerate(sizes)}


Written = Callable[[Matrix], tuple[list[Matrix], Matrix, Matrix]]  # design -> [p], point (3,), start (driven,)


@dataclass(frozen=True)
class Layout:
    """What a march of a family of linkages has in its memory.

    Args:
        mechanism: the mechanism.
        blocks: Assur groups of its rows, and of the derivative of its residuals.
        designs: number of design variables.
        body: body or frame of the point, None without one.
        curve: the given curve, None without one.
        by: derivatives by the design: none, "slope" of the error, or "normal" for what its normal equations need.
        samples: a linkage waits when `until` positions are closed, and its state has all that is known there.
        boxed: designs are given as numbers of points in a box.

    """

    mechanism: DrivenMechanism
    blocks: tuple[BlockTriangular, BlockTriangular]
    designs: int
    body: str | None
    curve: Curve | None
    by: str = ""
    samples: bool = False
    boxed: bool = False

    @property
    def results(self) -> dict[str, int]:
        """What is gathered over all positions, by name, with its size."""
        found = {"phase": 1, "closed": 1, "forwards": 1, "gap": 1}
        found |= {"drive": len(self.mechanism.v_places), "force": len(self.mechanism.model.joints)}
        if self.body is not None:
            found |= {"speed": 1}
        if self.curve is not None:
            found |= {"error": 1, **({"slope": self.designs} if self.by == SLOPE else {})}
            found |= {"sums": sum(self.curve.sums(self.designs, NORMAL).values())} if self.by == NORMAL else {}
        return found

    @property
    def sample(self) -> dict[str, int]:
        """What is known at a sample."""
        model = self.mechanism.model
        if not self.samples:
            return {}
        found = {"index": 1, "q": model.nq, "v": model.nv, "a": model.nv, "drive": len(self.mechanism.v_places)}
        found |= {"wrenches": 6 * len(model.joints)}
        if self.body is not None:
            found |= {"point": 3, "velocity": 3}
        if self.by:
            found |= {"q_by": model.nv * self.designs}
            found |= {"point_by": 3 * self.designs} if self.body is not None else {}
        return found

    @property
    def memory(self) -> dict[str, int]:
        """What the march needs for itself."""
        nq, nv = self.mechanism.model.nq, self.mechanism.model.nv
        found = {"guess": 1, "tries": 1, "x": 1, "stride": 1, "q_ref": nq, "step": nv, "cost": 1}
        for when in ("last", "first"):
            found |= {f"q_{when}": nq, f"w_{when}": nv, f"b_{when}": nv}
        sums = self.curve.sums(self.designs, self.by) if self.curve is not None else {}
        return found | {"sense": len(self.blocks[0].blocks)} | sums

    @property
    def state(self) -> dict[str, int]:
        """What a call is given and returns."""
        inner = {"sample": sum(self.sample.values()), "memory": sum(self.memory.values())}
        return self.results | (inner if self.samples else {})

    @property
    def data(self) -> dict[str, int]:
        """What a call is given besides."""
        nd, n = len(self.mechanism.v_places), self.designs
        design = {"number": 1, "low": n, "high": n, "shift": n} if self.boxed else {"design": n}
        found = design | {"omega": 1, "ratio": nd, "q_guess": self.mechanism.model.nq}
        found |= {"branch": len(self.blocks[0].blocks), "grid": 4, **({"until": 1} if self.samples else {})}
        return found | ({"target": self.curve.size} if self.curve is not None else {})


def design_of(s: Mapping[str, Matrix]) -> Matrix:
    """The design (variables,) itself, or that of a number: a point of an additive recurrence in a box."""
    import casadi as ca

    if "design" in s:
        return s["design"]
    x = s["number"] * ca.DM(irrationals(s["low"].shape[0])) + s["shift"]
    return s["low"] + (s["high"] - s["low"]) * (x - ca.floor(x))


def record(layout: Layout, write: Written) -> March:
    """Record the march of a family of linkages.

    `write` gives the model's free numbers, the point of the body and the start of the driven joints for a design.
    """
    import casadi as ca

    mechanism, blocks, curve, body = layout.mechanism, layout.blocks, layout.curve, layout.body
    model, results, inner = mechanism.model, layout.results, layout.memory
    s = {name: ca.SX.sym(name, size) for name, size in {**results, **layout.data}.items()}
    at_sample, before = _packed(layout.sample, "sample")
    memory, parts = _packed(inner, "memory")
    s |= parts
    design = design_of(s)
    p, point, start = write(design)
    own = [*(s[name] for name in results), *([at_sample] if layout.samples else []), memory]
    arguments = [*own, *(s[name] for name in layout.data)]
    kept = {name: s[name] for name in (*results, *inner)}

    over = s["closed"] >= s["until"] if layout.samples else s["phase"] == DONE

    def outputs(new: dict[str, Matrix], sample: Matrix) -> list[Matrix]:
        """What a part writes. A linkage that is done, or waits, stays as it is."""
        still = {name: name in results or layout.samples for name in new}
        new = {n: ca.if_else(over, kept[n], x) if still[n] and x is not kept[n] else x for n, x in new.items()}
        found = [new[name] for name in results] + ([sample] if layout.samples else [])
        return [*found, ca.vertcat(*(new[name] for name in inner))]

    # Newton's method

    trial = mechanism.plus(s["q_ref"], s["step"], *p)
    cost, step = mechanism.closing(blocks[1], trial, p, DAMPING)
    step = step * ca.fmin(1, LONGEST / ca.fmax(ca.norm_inf(step[mechanism.rest] / mechanism.scale), 1e-300))
    helps = cost < s["cost"]
    newton = kept | {
        "q_ref": ca.if_else(helps, trial, s["q_ref"]),
        "step": ca.if_else(helps, step, s["step"] / SHORTER),
        "cost": ca.fmin(cost, s["cost"]),
    }
    # a march needs `busy` from its last part only; the others leave it as it is
    iterate = ca.Function("iterate", arguments, [*outputs(newton, at_sample), ca.SX(1)])

    # what is known at the position that is tried

    q = trial
    at = mechanism.position(blocks[0], q, p, s["ratio"])
    v, a = s["omega"] * at.w, s["omega"] ** 2 * at.b
    u, f = mechanism.forces(blocks[0], at, q, v, a, p)
    gap = ca.norm_inf(at.phi)
    count, h, guesses, all_round = (s["grid"][k] for k in range(4))
    phase = s["phase"]
    assembling, backwards = phase == ASSEMBLE, phase == BACKWARDS
    running = ca.logic_and(phase > BEGIN, phase < DONE)
    direction = 1 - 2 * backwards
    y = ca.if_else(assembling, 0, s["x"] + direction * s["stride"])
    sense = ca.if_else(assembling, s["branch"], s["sense"])
    same = ca.mmin(at.signs * sense) >= 0
    moves = ca.logic_and(same, ca.norm_inf(at.w) < FASTEST)
    ok = ca.logic_and(ca.logic_and(running, gap < CLOSED), moves)
    sample = ca.logic_and(ok, ca.floor(y) == y)

    # what is gathered

    after = dict(kept)

    def largest(name: str, x: Matrix) -> Matrix:
        return ca.fmax(s[name], _only(sample, x))

    after["gap"] = largest("gap", gap)
    after["drive"] = largest("drive", ca.fabs(u))
    after["force"] = largest("force", ca.sum2(f[:, 3:] ** 2))  # squared until the end
    after["closed"] = closed = s["closed"] + sample
    after["forwards"] = forwards = s["forwards"] + ca.logic_and(sample, ca.logic_not(backwards))
    z = zdot = None
    if body is not None:
        z, zdot = _moving_point(model, body, q, v, point, p)
        after["speed"] = largest("speed", ca.dot(zdot, zdot))
    q_by = z_by = None
    if layout.by:
        q_by, z_by = _by_design(layout, write, at, design, q)
    whole = forwards == count  # not from both sides up to a dead point between two positions
    if curve is not None:
        assert z is not None
        sums = curve.add(s, z, y / count, sample, z_by)
        after |= {name: _only(phase != BEGIN, x) for name, x in sums.items()}  # scratch is not zero at first
        error, slope = curve.error(sums, count, s)
        after["error"] = ca.if_else(whole, error, FAR)
        if layout.by == SLOPE and slope is not None:
            after["slope"] = _only(whole, slope)
        elif layout.by == NORMAL:
            after["sums"] = _only(whole, ca.vertcat(*sums.values()))
    known = {
        "index": y, "q": q, "v": v, "a": a, "drive": u, "wrenches": ca.vec(f.T), "point": z, "velocity": zdot,
        "q_by": None if q_by is None else ca.vec(q_by.T), "point_by": None if z_by is None else ca.vec(z_by.T),
    }  # fmt: skip
    now = [ca.if_else(ca.logic_and(sample, ca.logic_not(over)), known[n], before[n]) for n in layout.sample]

    # where to go next

    fails = ca.logic_and(running, ca.logic_not(ok))
    tries = s["tries"] + 1
    wrong = ca.logic_and(assembling, ca.logic_and(gap < CLOSED, ca.logic_not(same)))
    given_up = ca.logic_and(fails, ca.logic_or(wrong, tries >= ca.if_else(assembling, PUT_TOGETHER, FOLLOW)))
    another = ca.logic_and(given_up, assembling)  # guess
    cut = ca.logic_and(given_up, ca.logic_not(assembling))
    shorter = s["stride"] / SHORTER
    ended = ca.logic_and(cut, shorter < SHORTEST)
    turns_back = ca.logic_and(ended, ca.logic_and(phase == FORWARDS, all_round))
    begins = phase == BEGIN
    found = ca.logic_and(ok, assembling)
    no_more = ca.logic_and(another, s["guess"] + 1 >= guesses * len(blocks[1].blocks))
    finished = ca.logic_or(ca.logic_and(ok, closed >= count), ca.logic_and(ended, ca.logic_not(turns_back)))
    done = ca.logic_or(ca.logic_or(no_more, finished), phase == DONE)
    after["phase"] = ca.if_else(
        done, DONE,
        ca.if_else(begins, ASSEMBLE, ca.if_else(found, FORWARDS, ca.if_else(turns_back, BACKWARDS, phase))),
    )  # fmt: skip
    after["guess"] = _only(ca.logic_not(begins), s["guess"] + another)
    after["tries"] = _only(ca.logic_and(fails, ca.logic_not(given_up)), tries)
    last = {"q_last": q, "w_last": at.w, "b_last": at.b}
    first = {"q_last": "q_first", "w_last": "w_first", "b_last": "b_first"}
    for name, value in last.items():
        after[name] = ca.if_else(ok, value, ca.if_else(turns_back, s[first[name]], s[name]))
        after[first[name]] = ca.if_else(found, value, s[first[name]])
    after["sense"] = ca.if_else(found, ca.sign(at.signs), s["sense"])
    x = ca.if_else(ok, y, _only(ca.logic_not(turns_back), s["x"]))
    wider = ca.logic_and(s["stride"] < 1, ca.floor(y / (SHORTER * s["stride"])) * SHORTER * s["stride"] == y)
    longer = ca.if_else(wider, SHORTER * s["stride"], s["stride"])
    stride = ca.if_else(ok, longer, ca.if_else(cut, shorter, s["stride"]))
    stride = ca.if_else(ca.logic_or(found, turns_back), 1, stride)
    after["x"], after["stride"] = x, stride
    way = ca.if_else(ca.logic_or(turns_back, backwards), -1, 1) * stride
    t = way * h
    ahead = mechanism.plus(after["q_last"], t * (after["w_last"] + (t / 2) * after["b_last"]), *p)
    angles = start + s["ratio"] * (h * (x + way))
    for k, place in enumerate(mechanism.q_places):
        ahead[place] = angles[k]
    guess = _guess(layout, s["q_guess"], after["guess"], p)
    guess = ca.if_else(another, _with_closed_groups(layout, at, q, guess, s["branch"]), guess)
    for k, place in enumerate(mechanism.q_places):
        guess[place] = start[k]
    fresh_guess = ca.logic_or(begins, another)
    fresh = ca.logic_or(fresh_guess, ca.logic_or(ok, cut))
    after["q_ref"] = ca.if_else(fresh, ca.if_else(fresh_guess, guess, ahead), s["q_ref"])
    after["step"] = _only(ca.logic_not(fresh), s["step"])
    after["cost"] = ca.if_else(fresh, FAR, s["cost"])
    busy = ca.logic_not(done)
    if layout.samples:
        busy = ca.logic_and(busy, ca.logic_and(closed < s["until"], ca.logic_not(over)))
    judge = ca.Function("judge", arguments, [*outputs(after, ca.vertcat(*now) if now else at_sample), busy])
    carried = len(layout.state)
    return March(((iterate, ITERATIONS), (judge, 1)), carried, len(own) - carried)


def _only(condition: Matrix, x: Matrix) -> Matrix:
    """`x` where the condition holds, else zero, whatever x is."""
    import casadi as ca

    return ca.if_else(condition, x, 0)


def _guess(layout: Layout, q: Matrix, number: Matrix, p: Sequence[Matrix]) -> Matrix:
    """Guess 0 is as given; the next ones are spread evenly over turns, and lengths of the size of the mechanism."""
    import casadi as ca

    mechanism = layout.mechanism
    n = len(mechanism.rest)
    move = ca.SX(mechanism.model.nv, 1)
    move[mechanism.rest] = (additive(number, n) - (number > 0) * 0.5) * (2 * np.pi) * mechanism.scale
    return mechanism.plus(q, move, *p)


def _with_closed_groups(layout: Layout, at: Position, q: Matrix, guess: Matrix, branch: Matrix) -> Matrix:
    """The guess, with the coordinates of the first Assur groups as in q as far as these are closed as wanted."""
    import casadi as ca

    mechanism = layout.mechanism
    place = {link.v.start + k: link for link in mechanism.model.tree.links for k in range(link.kind.nv)}
    found, closed = ca.SX(guess), ca.SX(1)
    for rows, columns in layout.blocks[1].blocks:
        here = ca.norm_inf(at.phi[rows, 0]) < CLOSED
        for k, (_, own) in enumerate(layout.blocks[0].blocks):
            if set(own) <= set(columns):
                here = ca.logic_and(here, at.signs[k] * branch[k] >= 0)
        closed = ca.logic_and(closed, here)
        for column in columns:
            link = place[mechanism.rest[column]]
            found[link.q] = ca.if_else(closed, q[link.q], guess[link.q])
    return found


def additive(number: Matrix, n: int) -> Matrix:
    """Point `number` (n,) of an additive recurrence in the unit cube; point 0 is the origin."""
    import casadi as ca

    x = number * ca.DM(irrationals(n))
    return x - ca.floor(x)


def irrationals(n: int) -> np.ndarray:
    """Powers (n,) of the root of `g^(n+1) = g + 1`: their multiples fill the unit cube evenly in n dimensions."""
    g = 1.5
    for _ in range(60):
        g = (1 + g) ** (1 / (n + 1))
    return np.asarray(g ** -np.arange(1.0, n + 1) % 1.0)


def _moving_point(
    model: Model, body: str, q: Matrix, v: Matrix, point: Matrix, p: Sequence[Matrix]
) -> tuple[Matrix, Matrix]:
    """Position and velocity (3,) of a point of a body in ground axes."""
    import casadi as ca

    place, rates = _point_of(model, body), function_of(model, RATES)
    qs, c = ca.SX.sym("q", model.nq), ca.SX.sym("c", 3)
    ps = [ca.SX.sym("p", model.parameters.size)] if p else []
    dq = ca.SX.sym("dq", model.nq)
    z = place(qs, c, *ps)
    velocity = ca.Function("velocity", [qs, c, dq, *ps], [ca.jtimes(z, qs, dq)])
    return place(q, point, *p), velocity(q, point, rates(q, v, *p), *p)


def _point_of(model: Model, body: str) -> Any:
    """The position (3,) of a point `c` (3,) of a body or frame, as a function of `q, c, (p)`."""
    import casadi as ca

    from cardan.formulation.spatial import frame_pose_of

    pose = function_of(model, frame_pose_of(body))
    q, c = ca.SX.sym("q", model.nq), ca.SX.sym("c", 3)
    p = [ca.SX.sym("p", model.parameters.size)] if model.parameters else []
    T = pose(q, *p)
    return ca.Function("point", [q, c, *p], [T[:3, :3] @ c + T[:3, 3]])


def _by_design(layout: Layout, write: Written, at: Position, design: Matrix, q: Matrix) -> tuple[Matrix, Matrix | None]:
    """Derivatives of the configuration (nv, n) along its rates and of the point (3, n) by the design.

    The loops stay closed (implicit function theorem): `A q_r' = -(phi' + J_d start')`.
    """
    import casadi as ca

    mechanism = layout.mechanism
    model, driven = mechanism.model, mechanism.v_places
    qs, x, dv = ca.SX.sym("q", model.nq), ca.SX.sym("x", layout.designs), ca.SX.sym("dv", model.nv)
    p, point, start = write(x)
    partial = ca.Function("partial", [qs, x], [mechanism.slope_by_parameters(qs, p, x), ca.jacobian(start, x)])
    phi_by, start_by = partial(q, design)
    q_by = ca.SX(model.nv, layout.designs)
    q_by[driven, :] = start_by
    q_by[mechanism.rest, :] = layout.blocks[0].solve(at.A, -(phi_by + at.J[:, driven] @ start_by))
    if layout.body is None:
        return q_by, None
    z = _point_of(model, layout.body)(qs, point, *p)
    along = ca.jacobian(ca.jtimes(z, qs, function_of(model, RATES)(qs, dv, *p)), dv)
    z_q, z_x = ca.Function("point_by", [qs, x], [along, ca.jacobian(z, x)])(q, design)
    return q_by, z_q @ q_by + z_x
