"""The engine judged from outside: random mechanisms in every formulation, runs, and the judge itself.

A longer search is `python -m tests.judge`.
"""

from __future__ import annotations

import ast
from pathlib import Path

import mpmath
import numpy as np
import pytest

import cardan as cd

from ..identity.robustness_errors import interpreted
from .comparison import EPS, answers, random_state, towards_singular
from .joint_motions import MOTIONS
from .long_runs import reference, run_answers
from .maximal_coordinates import Judge
from .random_mechanisms import DRAWN, mechanism

pytestmark = pytest.mark.usefixtures("quick_code")

CASES = [("graph", 41), ("graph", 89), ("four-bars", 19), ("driven", 6), ("Bennett", 7)]


@pytest.mark.parametrize(("family", "seed"), CASES)
def test_random_mechanism_is_as_judged(family: str, seed: int) -> None:
    with interpreted():
        model = mechanism(seed, family=family).build()
        judge = Judge(model)
        state = random_state(model, np.random.default_rng(seed), cd.assemble(model)[0])
        right = judge.solve(*state)
        assert right.is_clear and right.gap < 1e-12 and right.drift < 1e-12
        wrong = [str(answer) for answer in answers(model, judge, state) if not answer.is_right]
    assert not wrong, "\n".join(wrong)


def test_cases_have_every_joint_kind() -> None:
    kinds = {type(j.type).__name__.lower() for family, k in CASES for j in mechanism(k, family=family).joints}
    assert kinds | {"free"} == set(MOTIONS)  # loops closed by a free joint have no reactions yet
    assert {family for family, _ in CASES} <= set(DRAWN)


def test_near_a_singular_position_answers_are_as_judged() -> None:
    """A four-bar that folds flat, a hundredth and a thousandth of a radian before it does."""
    with interpreted():
        model = mechanism(19, family="four-bars").build()
        judge, rng = Judge(model), np.random.default_rng(19)
        places = towards_singular(model, judge, cd.assemble(model)[0], rng)[:2]
        assert len(places) == 2 and judge.condition(places[1]) > 1e4
        for q in places:
            wrong = [str(x) for x in answers(model, judge, random_state(model, rng, q)) if x.is_silently_wrong]
            assert not wrong, "\n".join(wrong)


def test_runs_are_as_the_judge_runs() -> None:
    model = mechanism(19, family="four-bars").build()
    judge, rng = Judge(model), np.random.default_rng(19)
    q, v = cd.assemble(model, None, rng.standard_normal(model.nv))
    right = reference(judge, q, v, np.linspace(0, 0.2, 3), rtol=1e-9)
    found = list(run_answers(model, judge, right, "spatial"))
    assert len(found) == 10
    wrong = [str(answer) for answer in found if not answer.is_right]
    assert not wrong, "\n".join(wrong)


def kite() -> cd.Model:
    """A four-bar: crank 1, coupler 2, rocker 2, ground 1 m, uniform rods of mass = length; it folds at angle 0."""
    m = cd.Mechanism("kite", gravity=(0, -9.81, 0))
    for name, length in (("crank", 1.0), ("coupler", 2.0), ("rocker", 2.0)):
        m.body(name, mass=length, com=(length / 2, 0, 0), inertia=cd.inertia.cylinder(length, 0.05, length, axis="x"))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=1.2)
    m.joint("B", cd.Revolute(), "crank", "coupler", at=(1, 0, 0))
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(1, 0, 0), start=1.5)
    m.joint("C", cd.Revolute(), "coupler", "rocker", at=(2, 0, 0), child_at=(2, 0, 0))
    return m.build(cut=["C"])


@pytest.mark.parametrize("angle", [1.2, 4.0, 1e-2, 1e-4])
def test_judge_agrees_with_a_closed_form(angle: float) -> None:
    """Lagrange's equation of the kite in its crank angle f, with 40 digits; at 0 the linkage folds."""
    model = kite()
    judge, g, rate = Judge(model), mpmath.mpf("9.81"), 2.0
    with mpmath.workdps(40):

        def bars(f: mpmath.mpf) -> list[tuple[mpmath.mpf, ...]]:
            """Foot x, y and direction of crank, coupler and rocker."""
            half, reach = f / 2, mpmath.sqrt(4 - mpmath.sin(f / 2) ** 2)
            bx, by = mpmath.cos(f), mpmath.sin(f)
            cx, cy = (bx + 1) / 2 + reach * mpmath.cos(half), by / 2 + reach * mpmath.sin(half)
            return [(0, 0, f), (bx, by, mpmath.atan2(cy - by, cx - bx)), (1, 0, mpmath.atan2(cy, cx - 1))]

        def centre(f: mpmath.mpf, k: int, axis: int) -> mpmath.mpf:
            x, y, direction = bars(f)[k]
            arm = mpmath.mpf(float(model.bodies[k].com[0]))
            return (x + arm * mpmath.cos(direction), y + arm * mpmath.sin(direction))[axis]

        def inertia(f: mpmath.mpf) -> mpmath.mpf:
            total = mpmath.mpf(0)
            for k, body in enumerate(model.bodies):
                total += sum(body.mass * mpmath.diff(lambda s, k=k, i=i: centre(s, k, i), f) ** 2 for i in (0, 1))
                total += float(body.inertia[2, 2]) * mpmath.diff(lambda s, k=k: bars(s)[k][2], f) ** 2
            return total

        def height(f: mpmath.mpf) -> mpmath.mpf:
            return sum(body.mass * centre(f, k, 1) for k, body in enumerate(model.bodies))

        f = mpmath.mpf(angle)
        slope = (inertia(f + mpmath.mpf("1e-9")) - inertia(f - mpmath.mpf("1e-9"))) / mpmath.mpf("2e-9")
        wanted = float(-(slope * rate**2 / 2 + g * mpmath.diff(height, f)) / inertia(f))
        directions = [float(bar[2]) for bar in bars(f)]
        rates = [rate * float(mpmath.diff(lambda s, k=k: bars(s)[k][2], f)) for k in range(3)]
    q = np.array([directions[0], directions[1] - directions[0], directions[2]])
    v = np.array([rates[0], rates[1] - rates[0], rates[2]])
    order = [model.v_slice(name).start for name in "ABD"]
    q[order], v[order] = q.copy(), v.copy()
    right = judge.solve(q, v)
    assert right.gap < 1e-15 and right.drift < 1e-14 and right.rank == 17
    assert abs(right.a[order[0]] - wanted) < 1e2 * EPS * right.condition * abs(wanted)


def test_judge_takes_nothing_from_the_engine() -> None:
    """Its mathematics imports the public names alone, and of those uses the type of a model."""
    for name in ("joint_motions.py", "maximal_coordinates.py"):
        tree = ast.parse((Path(__file__).parent / name).read_text(encoding="utf-8"))
        imported = [
            (alias.name if isinstance(node, ast.Import) else node.module or "")
            for node in ast.walk(tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        ]
        assert not [module for module in imported if module.startswith("cardan.")]
        used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_cd(node.value)}
        assert used <= {"Model"}


def _is_cd(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "cd"
