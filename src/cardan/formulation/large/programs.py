"""Programs for large mechanisms: what is computed, as schedules of the stages of `LargeMechanics`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.algebra.matrix import Matrix
from cardan.formulation.division import longest_subtree
from cardan.formulation.large.mechanics import LargeMechanics, Target, normalised
from cardan.formulation.large.pieces import MOST_LINKS
from cardan.formulation.large.steps import Stage, Step, schedule_of
from cardan.formulation.light import LIGHT, lent_to_joints, lent_to_links
from cardan.model.joint import Kind, configuration_rate
from cardan.model.model import Model
from cardan.program.schedule import Schedule


def has_large_subtrees(model: Model) -> bool:
    """Whether pieces are single links, since subtrees on the ground are large."""
    return longest_subtree(model) > MOST_LINKS


def can_loop(model: Model, bodies_apart: bool) -> bool:
    """Whether a mechanism with rows can be looped: links without inertia, and rotors of single links, are not yet.

    A link by itself needs inertia only along the rates that count: a thin rod in a plane has enough.
    """
    if not bodies_apart:
        return not np.any(lent_to_joints(model))
    if any(link.armature is not None for link in model.tree.links):
        return False
    if not np.any(lent_to_links(model)):
        return True
    L = LargeMechanics(model, range(len(model.rows)), ("q", "v"), ("nothing",), bodies_apart=True)
    return all(_moves_inertia(L, cls, [k for c, k in sorted(L.moved) if c == cls]) for cls in range(len(L.pieces)))


def _moves_inertia(L: LargeMechanics, cls: int, rates: list[int]) -> bool:
    """Whether all links of a class have inertia along some of their rates."""
    if not rates:
        return True
    for i in L.pieces[cls].links[:, 0]:
        size = np.linalg.eigvalsh(nominal(L.model.tree.links[i].I)[np.ix_(rates, rates)])
        if size[0] <= LIGHT * size[-1]:
            return False
    return True


def forward_dynamics(
    model: Model, kept: Sequence[int], inputs: Sequence[str], outputs: Sequence[str], *,
    p: Matrix | None = None, bodies_apart: bool | None = None,
) -> Schedule:  # fmt: skip
    """Accelerations `a` (nv,), and what else is among the outputs.

    `qdot` (nq,); the power `P` (W) that enters; the multipliers `lam` (nl,) of the rows in the tree's coordinates, zero
    for those not kept; the wrenches `cuts` (number of cuts, 6) of cut joints on their children, at M, and `wrenches`
    (nb, 6) on the bodies, with those of cut joints, constraints and force elements but not of the tree's joints.
    """
    apart = has_large_subtrees(model) if bodies_apart is None else bodies_apart
    L = LargeMechanics(model, kept, inputs, outputs, bodies_apart=apart, p=p)
    power = [name for name in outputs if name == "P"]
    stages = [L.clear(*power), *L.system.clear, *L.before, *L.forces(), L.rows(L.acceleration_gap), L.coupled()]
    to = Target("a", -1.0, total="P" if power else None, by="beta")
    stages += [*L.system.factor, *L.system.solve, L.pulled(to)]

    def write(step: Step, kind: Kind, links: np.ndarray, values: list[Matrix]) -> None:
        L.output(step, "a", links, values[0])
        if "qdot" in outputs:
            q, v = L.coordinates(step, links), L.of_joint(step, "v", links)
            L.output(step, "qdot", links, configuration_rate(kind, q, v))

    stages += [L.give(["a"], write)] if "a" in outputs else []
    stages += [
        L.told(*power),
        *(L.multipliers() if "lam" in outputs else []),
        *(L.loads() if "cuts" in outputs else []),
    ]
    return schedule_of(stages, L.cells, L.system.end)


SUMS = ("removed", "energy", "inertia", "independence", "gap")


def correction(
    model: Model, kept: Sequence[int], inputs: Sequence[str], outputs: Sequence[str], *,
    p: Matrix | None = None, bodies_apart: bool | None = None,
) -> Schedule:  # fmt: skip
    """A state brought nearer to the constraints, by one step of Newton's method: see `structure.projection`.

    Inputs are `q`, `v`, where time counts `t`, and, for an estimated error, its parts `eq` (nq,) and `ev` (nv,).
    Outputs are `new_q`, `new_v`, `new_eq` and `new_ev`, the part of the error along the constraints, and some of
    `SUMS`: twice the kinetic energy that the correction took, `sum M_ii v_i^2` and `sum M_ii` of the metric, how far
    the rows are from depending on one another, and the largest residual of all rows before.
    """
    apart = has_large_subtrees(model) if bodies_apart is None else bodies_apart
    changes = tuple(name for name in ("eq", "ev") if name in inputs)
    L = LargeMechanics(
        model, kept, inputs, outputs, bodies_apart=apart, p=p, changes=changes, columns=2 + len(changes),
        normalises=True, rooms=("dq", "dv", *(f"off_{name}" for name in changes)),
    )  # fmt: skip
    sums = [name for name in SUMS if name in outputs]
    stages = [L.clear(*sums), *L.system.clear, *L.before, L.rows(L.gaps), L.coupled(), *L.system.factor]
    stages += [L.independence()] if "independence" in outputs else []
    targets = [Target("dq", 1.0), Target("dv", 1.0, 1, "removed" if "removed" in sums else None, "r")]
    targets += [Target(f"off_{name}", 1.0, 2 + k) for k, name in enumerate(changes)]
    stages += [*L.system.solve, L.pulled(*targets)]

    def write(step: Step, kind: Kind, links: np.ndarray, values: list[Matrix]) -> None:
        q, v = L.coordinates(step, links), L.of_joint(step, "v", links)
        L.output(step, "new_q", links, kind.plus(q, -values[0]))
        L.output(step, "new_v", links, v - values[1])
        for name, off in zip(changes, values[2:], strict=True):
            off = configuration_rate(kind, q, off) if name == "eq" else off
            L.output(step, f"new_{name}", links, L.of_joint(step, name, links) - off)

    stages += [L.give([to.name for to in targets], write), L.told(*sums)]
    return schedule_of(stages, L.cells, L.system.end)


def residuals(
    model: Model, kept: Sequence[int], inputs: Sequence[str], outputs: Sequence[str], *,
    p: Matrix | None = None, bodies_apart: bool | None = None,
) -> Schedule:  # fmt: skip
    """Residuals of all constraint rows: `phi` (nl,) and, if asked for, `rate` (nl,), `J v - beta`."""
    apart = has_large_subtrees(model) if bodies_apart is None else bodies_apart
    L = LargeMechanics(model, (), inputs, outputs, bodies_apart=apart, p=p)
    return schedule_of([*L.before, L.residuals()], L.cells, L.system.end)


def rates(model: Model) -> Schedule:
    """`qdot` (nq,) from `q` and `v`, joint by joint."""
    return _by_joint(model, ("q", "v"), "qdot", configuration_rate)


def plus(model: Model) -> Schedule:
    """`new_q` (nq,), of unit quaternions, after a motion with `v` for unit time from `q`, joint by joint."""
    return _by_joint(model, ("q", "v"), "new_q", lambda kind, q, v: normalised(kind, kind.plus(normalised(kind, q), v)))


def _by_joint(model: Model, inputs: tuple[str, str], output: str, write: Callable[..., Matrix]) -> Schedule:
    import casadi as ca

    groups: dict[str, list[int]] = {}
    for i, link in enumerate(model.tree.links):
        if link.kind.nq:
            groups.setdefault(link.kind.identity, []).append(i)
    steps = []
    for members in groups.values():
        links = [model.tree.links[i] for i in members]
        step = Step(len(links), np.zeros((len(links), 0)), ca.SX(0, 1))
        q_at, v_at = np.array([link.q.start for link in links]), np.array([link.v.start for link in links])
        kind = links[0].kind
        q, v = step.input(0, kind.nq, q_at), step.input(1, kind.nv, v_at)
        step.output(0, write(kind, q, v), q_at)
        steps.append(step)
    return schedule_of([Stage(steps)], [], 0)
