"""`points` on mechanisms that only their loops keep in a plane: joints of space in a four-bar, any plane, any cut."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import cardan as cd
from cardan.functions.check import consistent_states
from cardan.model.joint import JointType

from ..identity.robustness_errors import interpreted
from ..trees import close, random_rotation
from .test_points import assert_contract

pytestmark = pytest.mark.usefixtures("quick_code")

KINDS: dict[str, JointType] = {
    "R": cd.Revolute(), "S": cd.Spherical(), "C": cd.Cylindrical(),
    "U": cd.Universal(axis1=(0, 0, 1), axis2=(1, 0, 0)), "V": cd.Universal(axis1=(1, 0, 0), axis2=(0, 0, 1)),
}  # fmt: skip
LENGTHS = {"crank": 0.4, "coupler": 0.9, "rocker": 0.7}


def linkage(kinds: str) -> cd.Mechanism:
    """A four-bar in a tilted plane, closed as it is drawn; `kinds` are those of its joints A, B, C, D."""
    plane = random_rotation(np.random.default_rng(3))
    m = cd.Mechanism(kinds, gravity=plane @ (1.0, -9.81, 2.0))
    A, B, D = np.zeros(3), 0.4 * np.array([np.cos(1.0), np.sin(1.0), 0]), np.array([1.0, 0, 0])
    way = np.linalg.norm(D - B)
    rise = np.arccos((0.9**2 + way**2 - 0.7**2) / (1.8 * way)) + np.arctan2(*(D - B)[[1, 0]])
    C = B + 0.9 * np.array([np.cos(rise), np.sin(rise), 0])
    places = {m.ground: cd.Pose()}
    for name, start, end in (("crank", A, B), ("coupler", B, C), ("rocker", D, C)):
        x = (end - start) / np.linalg.norm(end - start)
        size = (LENGTHS[name], 0.1, 0.05)
        m.body(name, mass=size[0], com=(size[0] / 2, 0.02, 0.01), inertia=cd.inertia.box(size[0], size))
        places[name] = cd.Pose(plane @ start, plane @ np.column_stack([x, np.cross((0, 0, 1), x), (0, 0, 1)]))
    ends = {"A": (m.ground, "crank", A), "B": ("crank", "coupler", B), "C": ("rocker", "coupler", C)}
    for kind, (name, (parent, child, at)) in zip(kinds, {**ends, "D": (m.ground, "rocker", D)}.items(), strict=True):
        F = cd.Pose(plane @ at, plane)
        m.joint(name, KINDS[kind], parent, child, at=places[parent].inverse @ F, child_at=places[child].inverse @ F)
    return m


@cache
def model_of(kinds: str, cut: str) -> cd.Model:
    return linkage(kinds).build(cut=[cut])


@pytest.mark.parametrize(("kinds", "cut"), [("RSCR", "B"), ("RVSR", "C"), ("RUSR", "D")])
def test_accelerations_reactions_and_the_contract_agree(kinds: str, cut: str) -> None:
    model, rng = model_of(kinds, cut), np.random.default_rng(1)
    assert cd.is_planar(model)
    q, v = consistent_states(model, rng, 3)
    tau, wrenches = rng.standard_normal(v.shape), rng.standard_normal((3, model.nb, 6))
    loads = dict(tau=tau, wrenches=wrenches)
    close(
        cd.forward_dynamics(model, q, v, formulation="points", **loads),
        cd.forward_dynamics(model, q, v, **loads),
        1e-10,
    )
    f, g = (cd.reactions(model, q, v, formulation=name, **loads) for name in ("points", "spatial"))
    close(f, np.einsum("jab,...jb->...ja", cd.in_plane(model), g), 1e-10)


def test_the_equations_in_points_are_those_of_the_motion() -> None:
    model, rng = model_of("RSCR", "B"), np.random.default_rng(1)
    q, v = consistent_states(model, rng, 2)
    assert_contract(model, q, v, rng.standard_normal(v.shape), rng.standard_normal((2, model.nb, 6)))


def test_inverse_dynamics_with_a_drive() -> None:
    model = model_of("RSCR", "D")
    q, v = consistent_states(model, np.random.default_rng(2), 3)
    a = cd.forward_dynamics(model, q, v, np.ones(model.nv))
    expected = cd.inverse_dynamics(model, q, v, a, driven=["A"])
    close(cd.inverse_dynamics(model, q, v, a, driven=["A"], formulation="points"), expected, 1e-9)


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        ("RSSR", r"joint 'B' \(spherical\) takes body 'coupler' out of the plane with normal .* it can turn about"),
        (
            "RCCR",
            r"joint '\w' \(cylindrical\) takes body 'coupler' out of .* no loop keeps it there: it can move",
        ),
    ],
)
def test_what_no_loop_holds_is_named(kinds: str, sentence: str) -> None:
    with pytest.raises(cd.ModelError, match=rf"model '{kinds}' is not planar: {sentence}"):
        cd.in_plane(model_of(kinds, "D"))


def test_a_state_out_of_the_plane_has_no_answer() -> None:
    model = model_of("RSCR", "D")
    q, v = consistent_states(model, np.random.default_rng(0), 1)
    at = model.q_slice("B")
    q[0, at] = (np.cos(0.1), 0, np.sin(0.1), 0)
    assert np.isnan(cd.forward_dynamics(model, q, v, formulation="points")).any()


@pytest.mark.parametrize("moves", [False, True])
def test_a_lift_along_the_normal_that_is_held_or_driven(moves: bool) -> None:
    m = cd.Mechanism("lift", gravity=(0, -9.81, 0))
    for name in ("cage", "arm"):
        m.body(name, mass=1.0, com=(0.1, 0, 0), inertia=cd.inertia.box(1.0, (0.2, 0.3, 0.4)))
    m.joint("lift", cd.Prismatic(), m.ground, "cage")
    m.joint("hinge", cd.Revolute(), "cage", "arm")
    m.motion("height", "lift", (lambda t: 0.3 * t) if moves else (lambda t: 0.3 + 0 * t))
    model = m.build()
    if moves:
        with pytest.raises(cd.ModelError, match=r"joint 'lift' \(prismatic\) takes body 'cage' out of the plane"):
            cd.in_plane(model)
    q, v = cd.assemble(model, [0.3, 0.4], [0.0, 1.0], t=1.0)
    close(cd.forward_dynamics(model, q, v, t=1.0, formulation="points"), cd.forward_dynamics(model, q, v, t=1.0))


def test_a_free_number_of_such_a_mechanism() -> None:
    model = model_of("RSCR", "D")
    q, v = consistent_states(model, np.random.default_rng(0), 3)
    heavier = model.free("coupler.mass").at({"coupler.mass": 1.3})
    expected = cd.forward_dynamics(heavier, q, v)
    assert np.abs(expected - cd.forward_dynamics(model, q, v)).max() > 0.1
    close(cd.forward_dynamics(heavier, q, v, formulation="points"), expected)


def test_the_plane_is_known_in_every_mode_of_motion() -> None:
    """Coaxial cranks with a ball joint, built where they have two freedoms and asked where they have one.

    There the constraint rows are chosen anew, and the mechanism is described in its plane with them.
    """
    m = cd.Mechanism("coaxial cranks", gravity=(0, -9.81, 0))
    rod = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": cd.inertia.cylinder(1.0, 0.05, 1.0, axis="x")}
    m.body("slider", mass=1.0, inertia=(0.01, 0.01, 0.01))
    m.joint("S", cd.Prismatic(axis=(1, 0, 0)), m.ground, "slider")
    for k, angle, kind, folded in (("1", 0.8, cd.Spherical(), (0, 0, 0, 1)), ("2", -0.8, cd.Revolute(), np.pi)):
        m.body(f"crank{k}", **rod)
        m.body(f"bar{k}", **rod)
        m.joint(f"A{k}", cd.Revolute(), m.ground, f"crank{k}", start=angle)
        m.joint(f"B{k}", kind, f"crank{k}", f"bar{k}", at=(1, 0, 0), start=folded)
        m.joint(f"C{k}", cd.Revolute(), f"bar{k}", "slider", at=(1, 0, 0))
    model = m.build(cut=["C1", "C2"])
    angle, rate = np.arccos(0.45), 0.8
    wanted = {
        "S": (0.9, -2 * np.sin(angle) * rate), "A1": (angle, rate), "A2": (-angle, -rate), "B2": (2 * angle, 2 * rate),
        "B1": ((np.cos(angle), 0, 0, -np.sin(angle)), (0, 0, -2 * rate)),
    }  # fmt: skip
    q, v = np.zeros(model.nq), np.zeros(model.nv)
    for name, (place, velocity) in wanted.items():
        q[model.q_slice(name)], v[model.v_slice(name)] = place, velocity
    with interpreted():
        assert np.abs(cd.constraint_residual(model, q)).max() < 1e-12
        assert np.abs(cd.constraint_jacobian(model, q) @ v).max() < 1e-12
        a, b = (cd.forward_dynamics(model, q, v, formulation=name) for name in ("points", "spatial"))
        close(a, b, 1e-10)
        f, g = (cd.reactions(model, q, v, formulation=name) for name in ("points", "spatial"))
    known = (np.abs(cd.in_plane(model)) @ cd.undetermined_reactions(model, q)[..., None])[..., 0] < 1e-9
    close(f[known], np.einsum("jab,jb->ja", cd.in_plane(model), g)[known], 1e-10)
