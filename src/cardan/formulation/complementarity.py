"""Impacts of rows with laws, and the bounds of friction in a problem (`algebra.complementarity`), as numbers.

An impact solves for impulses P of the rows that are closed:

    Newton     u+ + e min(u-, 0) >= 0,  P >= 0, one of them zero
    Poisson    compression: as with e = 0; then the impulse of compression times e is given back

Friction acts during both. With e of different contacts, or with friction, either law may create energy (T. R. Kane, in
Dynamics: Theory and Applications, 1985). So the impulses are taken between those of the impact without restitution,
which never create energy, and those of the law, as near to these as energy allows (docs/decisions/0085). Where more
rows close than there are freedoms, Newton's law with friction may have no solution; there is no restitution then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cardan.algebra.complementarity import Complementarity, FrictionRows
from cardan.algebra.matrix import Matrix, dot, where
from cardan.formulation.dynamics import law_motion_at, parts_at, time_port
from cardan.formulation.law_motion import REACTION, Friction, LawMotion, frictions, restitutions, rows_of
from cardan.formulation.quantity import Inputs, Quantity, fixed
from cardan.formulation.spatial import SPATIAL
from cardan.model.law import AT_REST
from cardan.model.model import Model
from cardan.model.row import Law

ITERATIONS = 12  # of `Complementarity.iteration`: 99 of 100 random problems of up to nine rows take fewer
SOLVABLE = 1e-6  # relative residual: with more the law of restitution has no solution, and there is none
SLOW = 1e-3  # of what a step changes of a sliding velocity: below it counts as at rest
CLOSING = 1e-9  # m/s or rad/s: contacts that close slower are at rest
DISC_SWEEPS = 8
NEWTON, POISSON = RULES = ("newton", "poisson")
SEQUENTIAL = "sequential"  # Newton's law, one contact after the other


def has_restitution(model: Model) -> bool:
    """Whether a row has a restitution that is not zero, or free."""
    free = model.parameters.names
    laws = [law for law in model.laws if Law.UNILATERAL in law.laws]
    return any(np.any(law.numbers["restitution"]) or f"{law.name}.restitution" in free for law in laws)


@dataclass(frozen=True)
class Bounds:
    """What a problem needs beside `W` and `b`, as columns of numbers: one of each for every element with friction.

    `constant` and `coefficient` (nf,) of the bound; `R0` (3 nr,) and `R` (3 nr, m) of the joints whose reactions bound
    it; `restitution` (m,), zero in rows that have none.
    """

    constant: Matrix
    coefficient: Matrix
    R0: Matrix
    R: Matrix
    restitution: Matrix

    def problem(
        self, model: Model, W: Matrix, b: Matrix, active: Matrix, before: Matrix | None = None
    ) -> Complementarity:
        """The problem of these rows; `before` are their rates before the impact, which are not in `b` of a part."""
        friction, reactions = [], 0
        for k, f in enumerate(frictions(model)):
            R0 = R = None
            if f.is_pressed:
                at = slice(REACTION * reactions, REACTION * (reactions + 1))
                R0, R, reactions = self.R0[at], self.R[at, :], reactions + 1
            friction.append(FrictionRows(f.rows, self.constant[k], self.coefficient[k], f.normal, R0, R))
        unilateral, switched = rows_of(model, Law.UNILATERAL), rows_of(model, Law.SWITCHED)
        return Complementarity(W, b, unilateral, switched, friction, active, before)

    @staticmethod
    def sizes(model: Model) -> dict[str, tuple[int, ...]]:
        """Shapes of the columns."""
        m, every = len(model.lawful_rows), frictions(model)
        pressed = REACTION * sum(f.is_pressed for f in every)
        n = (len(every),)
        return {"constant": n, "coefficient": n, "R0": (pressed,), "R": (pressed, m), "restitution": (m,)}


def bounds_at(motion: LawMotion, u: Matrix, change: Matrix | None) -> Bounds:
    """The bounds of friction at rates u (m,) of the rows.

    `change` (m,) is what loads change of the rates in a step; None is an impact, in which forces that are finite do
    nothing, and only the reactions to impulses count.
    """
    import casadi as ca

    def speed(f: Friction) -> Matrix:
        found = f.size(u)
        if change is None:
            return found
        return where(found <= SLOW * ca.norm_1(change[list(f.rows)]), AT_REST / 2, found)

    every, finite = motion.bounds(speed), change is not None
    pressed = [(f.R0 if finite else 0 * f.R0, f.R) for f in every if f.R0 is not None and f.R is not None]
    return Bounds(
        ca.vertcat(ca.SX(0, 1), *(f.constant if finite else 0.0 for f in every)),
        ca.vertcat(ca.SX(0, 1), *(f.coefficient for f in every)),
        ca.vertcat(ca.SX(0, 1), *(R0 for R0, _ in pressed)),
        ca.vertcat(ca.SX(0, len(motion.rows)), *(R for _, R in pressed)),
        restitutions(motion.model),
    )


def second_phase(bounds: Bounds, first: Complementarity, rule: str, u: Matrix, x: Matrix) -> tuple[Matrix, Bounds]:
    """Rates b (m,) and bounds of the second problem of an impact, after the first one, without restitution, gave x.

    `u` (m,) are the rates before. For Newton's law its unknowns are all forces; for Poisson's those of restitution
    above what is given back.
    """
    import casadi as ca

    e = bounds.restitution
    if rule == NEWTON:
        return first.b + e * ca.fmin(u, 0), bounds
    given = e * x
    constant = [
        f.coefficient * given[f.normal] if f.normal is not None else 0 * bounds.constant[k]
        for k, f in enumerate(first.friction)
    ]
    again = replace(bounds, constant=ca.vertcat(ca.SX(0, 1), *constant))
    return first.rate(x) + first.W @ given, again


def second_forces(bounds: Bounds, rule: str, x: Matrix, y: Matrix) -> Matrix:
    """All forces from those of the first problem, x, and of the second, y."""
    return y if rule == NEWTON else x + bounds.restitution * x + y


def one_after_the_other(bounds: Bounds, first: Complementarity, model: Model, u: Matrix) -> Matrix:
    """Forces (m,) of impacts in sequence, from rates u (m,): always the contact that closes fastest, by Newton's law.

    Of contacts that never cease to close, such as those of e < 1 among three bodies, there are as many impacts as fit.
    """
    import casadi as ca

    impulsive = replace(bounds, constant=0 * bounds.constant, R0=0 * bounds.R0)
    unilateral, x = list(first.unilateral), ca.SX(first.m, 1)
    for _ in range(2 * len(unilateral) + 2):
        rate = first.rate(x) - first.b + u
        closing = [where(first._is_active(i), ca.fmin(rate[i] + CLOSING, 0), 0.0) for i in unilateral]
        least, taken, mask = ca.mmin(ca.vertcat(*closing)), ca.SX(1, 1), ca.SX(first.m, 1)
        for i, speed in zip(unilateral, closing, strict=True):
            chosen = ca.logic_and(ca.logic_and(speed < 0, speed == least), ca.logic_not(taken))
            mask[i], taken = chosen, ca.logic_or(taken, chosen)
        b = rate + bounds.restitution * mask * ca.fmin(rate, 0)
        one = impulsive.problem(model, first.W, b, mask)
        own = ca.SX(first.m, 1)
        for _ in range(1 if all(len(f.rows) == 1 for f in first.friction) else DISC_SWEEPS):
            own = one.sweep(own)
        x = x + where(taken, own, 0.0)
    return x


def without_gain(first: Complementarity, u: Matrix, x: Matrix, y: Matrix) -> Matrix:
    """Forces between x, without restitution, and y, as near to y as leaves no gain of energy.

    Their work is `x^T (u + u+) / 2` with the rates u before and `u+` after.
    """
    import casadi as ca

    d = y - x
    Wd = first.W @ d
    start = dot(x, u + first.rate(x)) / 2
    slope = (dot(d, u + first.rate(x)) + dot(x, Wd)) / 2
    curve = dot(d, Wd) / 2
    allowed = ca.fmax(start, 0) - start
    # the larger root of curve s^2 + slope s = allowed, without cancellation
    root = ca.sqrt(ca.fmax(slope * slope + 4 * curve * allowed, 0))
    rising = slope > 0
    s = where(rising, 2 * allowed, root - slope) / where(rising, slope + root, where(curve > 0, 2 * curve, 1.0))
    gains = slope + curve > allowed
    return where(gains, x + ca.fmin(ca.fmax(s, 0), 1) * d, y)


def solved(problem: Complementarity, x: Matrix | None = None) -> tuple[Matrix, Matrix]:
    """The forces x (m,) of a problem, written out, and how far they are from a solution, relative to their size."""
    import casadi as ca

    x = ca.SX(problem.m, 1) if x is None else x
    left: Any = ca.SX(1, 1)
    for _ in range(1 if problem.is_direct else ITERATIONS):
        x, left = problem.iteration(x)
    return x, ca.sqrt(left / (problem.scale(x) + 1e-300))


def impact_terms(model: Model, kept: Sequence[int]) -> Quantity:
    """What an impact is solved from: `Y` (nv, m), `W` (m, m), rates `u` (m,) before, and the parts of `Bounds`.

    `v` before must fit the equality rows, which share the impact.
    """
    m = len(model.lawful_rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        motion = law_motion_at(model, SPATIAL, kept, inputs)
        return [motion.acceleration[1], motion.rate[1], motion.u, *vars(bounds_at(motion, motion.u, None)).values()]

    sizes = {"Y": (model.nv, m), "W": (m, m), "u": (m,), **Bounds.sizes(model)}
    outputs = tuple((name, fixed(*shape)) for name, shape in sizes.items())
    return Quantity("impact_terms", ("q", "v", *time_port(model)), outputs, write=write)


def lawful_state(model: Model) -> Quantity:
    """Residuals `phi` (m,) and rates `u` (m,) of the rows with laws; `phi` is zero in rows without a gap."""
    m = len(model.lawful_rows)

    def write(model: Model, inputs: Inputs) -> list[Matrix]:
        parts = parts_at(model, SPATIAL, inputs)
        rows = SPATIAL.lawful_rows(parts.kin, parts.loads, model.nv)
        return [rows.phi, rows.J @ inputs["v"] - rows.beta]

    return Quantity("lawful_state", ("q", "v", *time_port(model)), (("phi", fixed(m)), ("u", fixed(m))), write=write)
