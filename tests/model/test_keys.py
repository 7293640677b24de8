"""What tells models and kernels apart: whatever changes a result changes the key, so no cached kernel is another's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cardan as cd
from cardan.formulation.registry import find_formulation
from cardan.formulation.spatial import SPATIAL
from cardan.integrate.alpha.stepper import AlphaKernels
from cardan.integrate.events import Event
from cardan.integrate.explicit.step import ExplicitEquations, equations_of
from cardan.integrate.explicit.stepper import explicit_kernels
from cardan.integrate.explicit.tableau import DORMAND_PRINCE, KUTTA, Tableau
from cardan.integrate.kernel import layout_of
from cardan.integrate.sundials.equations import DaeLayout
from cardan.structure.dynamics import forward_kernel, multiplier_kernel, reaction_kernel
from cardan.structure.kernels import equations_kernel, tree_kernel
from cardan.structure.projection import projection_kernel
from cardan.structure.rows import kept_rows

pytestmark = pytest.mark.usefixtures("quick_code")

TURNED = (
    (1, 0, 0),
    (0, 0, -1),
    (0, 1, 0),
)  # a quarter turn, which changes no inertia of a sphere, not even by rounding
USUAL: dict[str, Any] = {
    "gravity": (0.0, -9.81, 0.0), "mass": 1.0, "com": (0.5, 0.1, 0.0), "inertia": (0.1, 0.2, 0.25),
    "at": (1.0, 0.0, 0.0), "child_at": (1.0, 0.0, 0.0), "closing": (1.0, 0.0, 0.0), "closed_at": (1.5, 0.0, 0.0),
    "kind": cd.Revolute(), "armature": 0.0, "flag": cd.Pose(), "offset": 0.0, "ratio": 2.0,
}  # fmt: skip
OTHER: dict[str, Any] = {
    "gravity": (0.0, -1.62, 0.0), "mass": 1.1, "com": (0.5, 0.2, 0.0), "inertia": (0.1, 0.2, 0.26),
    "at": (1.1, 0.0, 0.0), "child_at": (1.1, 0.0, 0.0), "closing": (1.1, 0.0, 0.0), "closed_at": (1.6, 0.0, 0.0),
    "kind": cd.Spherical(), "armature": 0.3, "flag": cd.Pose(rotation=TURNED), "offset": 0.5, "ratio": 3.0,
}  # fmt: skip


def loop(**changes: Any) -> cd.Mechanism:
    """A four-bar linkage, closed by a joint with frames on both sides, with a coupled wheel and a flag."""
    x = USUAL | changes
    m = cd.Mechanism("loop", gravity=x["gravity"])
    for name in ("crank", "coupler"):
        m.body(name, mass=1.0, com=(0.5, 0.0, 0.0), inertia=(0.1, 0.2, 0.25))
    m.body("rocker", mass=x["mass"], com=x["com"], inertia=x["inertia"])  # a link by itself
    m.body("wheel", mass=1.0, inertia=(1, 1, 1))
    m.body("flag", mass=0.2, inertia=(0.1, 0.1, 0.1))
    m.joint("A", cd.Revolute(), m.ground, "crank", start=1.0, armature=x["armature"])
    m.joint("B", cd.Revolute(), "crank", "coupler", at=x["at"], start=-1.0)
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=x["closed_at"], start=1.2)
    m.joint("C", x["kind"], "rocker", "coupler", at=x["closing"], child_at=x["child_at"])
    m.joint("W", cd.Revolute(), m.ground, "wheel")
    m.joint("F", cd.Rigid(), "crank", "flag", at=x["flag"])
    m.couple("gear", {"A": 1.0, "W": x["ratio"]}, offset=x["offset"])
    return m


def build(**changes: Any) -> cd.Model:
    return loop(**changes).build(cut=["C"])


@pytest.mark.parametrize("what", OTHER)
def test_a_change_of_what_enters_the_equations_changes_the_key(what: str) -> None:
    """Also of the model with a free number, whose key is made of other parts."""
    one, other = build(), build(**{what: OTHER[what]})
    assert one.key == build().key
    assert one.key != other.key
    assert one.free("crank.mass").key != other.free("crank.mass").key


def test_what_is_free_is_in_the_key() -> None:
    """A kernel with another input is another kernel; the values of the input are not."""
    model = build()
    names = ("crank.mass", "coupler.mass", "crank.com", "gravity")
    assert len({model.key, *(model.free(name).key for name in names)}) == 1 + len(names)
    assert model.free("crank.mass").at({"crank.mass": 3.0}).key == model.free("crank.mass").key


def test_a_model_comes_back_from_a_pickle_without_what_it_remembers() -> None:
    model = build()
    q, v = cd.assemble(model)
    before = cd.forward_dynamics(model, q, v)
    back = pickle.loads(pickle.dumps(model))
    assert back.memory == {} and back.key == model.key
    np.testing.assert_array_equal(cd.forward_dynamics(back, q, v), before)


# Kernels


def key(kernel: Any) -> str:
    found: str = getattr(kernel, "kernel", kernel).program.key
    return found


def with_rows_of(model: cd.Model) -> tuple[cd.Model, cd.Model]:
    """The same model twice, with different choices of independent rows."""
    q, _ = cd.assemble(model)
    choices: dict[tuple[int, ...], cd.Model] = {}
    for angle in np.linspace(0.3, 2.8, 12):
        guess = q.copy()
        guess[0] = angle
        made = replace(model, rows_at=cd.assemble(model, guess, hold=[model.joints[model.tree.links[0].joint].name])[0])
        choices.setdefault(tuple(kept_rows(made, SPATIAL)), made)
    assert len(choices) > 1
    one, other = list(choices.values())[:2]
    return one, other


KEYS: dict[str, Callable[[cd.Model], str]] = {
    "forward": lambda m: key(forward_kernel(m, SPATIAL, False)),
    "reactions": lambda m: key(reaction_kernel(m, SPATIAL)),
    "multipliers": lambda m: key(multiplier_kernel(m, SPATIAL)),
    "projection": lambda m: key(projection_kernel(m)),
    "absolute": lambda m: key(forward_kernel(m, find_formulation("absolute"), False)),
    "explicit": lambda m: equations_of(m, SPATIAL).key,
    "projected": lambda m: ExplicitEquations(m, SPATIAL, ()).key,
    "absolute, explicit": lambda m: equations_of(m, find_formulation("absolute")).key,
    "alpha": lambda m: key(AlphaKernels(m, (), 0, layout_of(m, SPATIAL)).march()),
    "gear": lambda m: DaeLayout(layout_of(m, SPATIAL), stabilised=True).name,
}


@pytest.fixture(scope="module")
def two_choices() -> tuple[cd.Model, cd.Model]:
    return with_rows_of(cd.mechanisms.bennett().build())


@pytest.mark.parametrize("what", KEYS)
def test_kernels_with_other_rows_are_other_kernels(two_choices: tuple[cd.Model, cd.Model], what: str) -> None:
    one, other = two_choices
    assert one.key == other.key
    assert KEYS[what](one) != KEYS[what](other)


def test_kernels_of_one_model_are_told_apart() -> None:
    """By what they compute, in which formulation, under which loads."""
    model = cd.mechanisms.four_bar().build()
    names = ("spatial", "newton_euler", "absolute", "points")
    kernels = [
        *(forward_kernel(model, find_formulation(name), False) for name in names),
        forward_kernel(model, SPATIAL, True), reaction_kernel(model, SPATIAL), multiplier_kernel(model, SPATIAL),
        equations_kernel(model, SPATIAL), projection_kernel(model),
        *(tree_kernel(model, name) for name in ("mass_matrix", "bias_force", "body_poses")),
        tree_kernel(model, "mass_matrix", "newton_euler"),
    ]  # fmt: skip
    assert len({(key(k), str(k.program.inputs), str(k.program.outputs)) for k in kernels}) == len(kernels)
    assert len({id(k) for k in kernels}) == len(kernels)
    other = cd.mechanisms.four_bar(crank=0.31).build()
    assert key(tree_kernel(other, "mass_matrix")) != key(tree_kernel(model, "mass_matrix"))


def test_marches_are_told_apart() -> None:
    """By the method, its weights, Baumgarte's rate, the events and their directions."""
    model = cd.mechanisms.four_bar().build()
    plain, pulled = equations_of(model, SPATIAL), equations_of(model, SPATIAL, 20.0)
    other_weights = Tableau(KUTTA.A, np.array([1.0, 1.0, 3.0, 1.0]) / 6)
    up, down, later = (
        Event("a", lambda s: s.q[0], direction=1),
        Event("a", lambda s: s.q[0], direction=-1),
        Event("a", lambda s: s.q[0] - 0.1, direction=1),
    )
    marches = [
        explicit_kernels(*each).march
        for each in (
            (plain, DORMAND_PRINCE, ()), (pulled, DORMAND_PRINCE, ()), (plain, KUTTA, ()), (plain, other_weights, ()),
            (plain, DORMAND_PRINCE, (up,)), (plain, DORMAND_PRINCE, (down,)), (plain, DORMAND_PRINCE, (later,)),
            (plain, DORMAND_PRINCE, (up, replace(later, name="b"))),
        )
    ]  # fmt: skip
    assert len({key(march) for march in marches}) == len(marches)


def test_a_large_tree_is_looped_with_free_numbers_too() -> None:
    """The loop reads the numbers of the links from a table of constants; with free numbers it goes over pieces."""
    model = cd.mechanisms.chain(65).build()
    plain, free = equations_of(model, SPATIAL), equations_of(model.free("gravity"), SPATIAL)
    assert (plain.looped, plain.divided) == (True, False)
    assert (free.looped, free.divided) == (True, True)


def test_what_is_usual_for_rows_is_in_the_key() -> None:
    """Kernels judge rows by their usual size, which is taken near the start; the key of the model has no start."""
    one, other = (cd.mechanisms.four_bar(angle=angle).build() for angle in (1.0, 2.0))
    assert one.key == other.key
    assert equations_of(one, SPATIAL).key != equations_of(other, SPATIAL).key
    again = cd.mechanisms.four_bar(angle=1.0).build()
    assert equations_of(one, SPATIAL).key == equations_of(again, SPATIAL).key
