"""`points`: which motions are planar and what is said of the others; what its equations contain, and their growth."""

from __future__ import annotations

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.formulation import dynamics as general
from cardan.formulation.points.formulation import POINTS
from cardan.functions.check import consistent_states
from cardan.mechanisms import five_bar, four_bar, parallelogram, scotch_yoke
from cardan.model.plane import planar_model
from cardan.structure.kernels import function_of
from cardan.structure.planarity import in_plane, is_planar

from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

TRIGONOMETRY = (ca.OP_SIN, ca.OP_COS, ca.OP_TAN, ca.OP_ASIN, ca.OP_ACOS, ca.OP_ATAN, ca.OP_ATAN2)


def bodies(m: cd.Mechanism, *names: str) -> None:
    for name in names:
        m.body(name, mass=1.0, com=(0.1, 0.0, 0.0), inertia=cd.inertia.box(1.0, (0.2, 0.3, 0.4)))


def pair(first: object, second: object, **placing: object) -> cd.Model:
    """Two bodies in a row."""
    m = cd.Mechanism("pair")
    bodies(m, "a", "b")
    m.joint("first", first, m.ground, "a")  # type: ignore[arg-type]
    m.joint("second", second, "a", "b", at=(0.4, 0, 0), **placing)  # type: ignore[arg-type]
    return m.build()


def chain(n: int) -> cd.Model:
    m = cd.Mechanism(f"chain {n}", gravity=(0, -9.81, 0))
    before = m.ground
    for k in range(n):
        body = m.body(f"b{k}", mass=1.0, com=(0.1, 0.02, 0.0), inertia=cd.inertia.box(1.0, (0.2, 0.05, 0.05)))
        m.joint(f"j{k}", cd.Revolute(), before, body, at=(0.2 if k else 0, 0, 0))
        before = body
    return m.build()


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        (
            cd.Revolute(),
            cd.Revolute(axis=(0, 1, 1)),
            r"joint 'second' \(revolute\) takes body 'b' out of the plane with normal \(0, 0, 1\); its axis must be "
            r"along the normal, it makes 45 degrees with the normal",
        ),
        (cd.Revolute(), cd.Prismatic(axis=(0, 0, 1)), r"axis must be in the plane, it makes 0 degrees with the normal"),
        (cd.Revolute(), cd.Planar(normal=(1, 0, 0)), r"joint 'second' \(planar\) .* it makes 90 degrees"),
        (cd.Revolute(), cd.Spherical(), r"joint 'second' \(spherical\) .* has no planar meaning here, use revolute, "),
        (cd.Revolute(), cd.Screw(pitch=0.1), r"a screw joint has no planar meaning"),
        (cd.Free(), cd.Revolute(), r"joint 'first' \(free\) takes body 'a' out of the plane"),
        (
            cd.Prismatic(axis=(1, 0, 0)),
            cd.Revolute(axis=(1, 0, 0)),
            r"'first' \(prismatic\) .* axis must be in the plane",
        ),
    ],
)
def test_what_leaves_the_plane_is_named(first: object, second: object, sentence: str) -> None:
    model = pair(first, second)
    assert not is_planar(model)
    with pytest.raises(cd.ModelError, match=rf"^model 'pair' is not planar: .*{sentence}"):
        in_plane(model)


@pytest.mark.parametrize("normal", [(0, 0, 1), (1, 0, 0), (1, 2, -3), (0, -1, 0)])
def test_any_plane_is_recognised(normal: tuple[float, ...]) -> None:
    side = np.cross(normal, (0.3, 0.5, 0.7))
    model = pair(cd.Prismatic(axis=side), cd.Revolute(axis=normal))
    K = np.array(normal) / np.linalg.norm(normal)
    close(np.abs(planar_model(model).ground.normal @ K), 1.0)


def test_slides_alone_make_a_plane() -> None:
    K = planar_model(pair(cd.Prismatic(axis=(1, 0, 0)), cd.Prismatic(axis=(0, 1, 1)))).ground.normal
    close(np.abs(K), np.array([0, 1, 1]) / np.sqrt(2))
    assert is_planar(pair(cd.Prismatic(axis=(1, 0, 0)), cd.Prismatic(axis=(1, 0, 0))))


def test_a_closing_joint_that_leaves_the_plane_is_named() -> None:
    m = cd.Mechanism("loop")
    bodies(m, "a", "b")
    m.joint("first", cd.Revolute(), m.ground, "a")
    m.joint("second", cd.Revolute(), "a", "b", at=(0.4, 0, 0))
    m.joint("closing", cd.Universal(axis1=(1, 0, 0), axis2=(0, 1, 0)), m.ground, "b", at=(0.5, 0.5, 0))
    with pytest.raises(cd.ModelError, match=r"joint 'closing' \(universal\) .* has no planar meaning"):
        planar_model(m.build(cut=["closing"]))


def test_a_loop_of_parallel_slides_is_refused() -> None:
    def loop(axis: tuple[float, ...]) -> cd.Model:
        m = cd.Mechanism("slides")
        bodies(m, "a", "b")
        m.joint("first", cd.Prismatic(axis=(1, 0, 0)), m.ground, "a")
        m.joint("second", cd.Prismatic(axis=axis), "a", "b", at=(0.4, 0, 0))
        m.joint("third", cd.Prismatic(axis=(1, 0, 0)), m.ground, "b", at=(0.4, 0, 0))
        return m.build()

    sentence = r"the loop closed by joint 'second' is singular: all of its 3 joints are prismatic and parallel"
    with pytest.raises(cd.ModelError, match=sentence):
        planar_model(loop((1, 0, 0)))
    model = loop((1, 1, 0))
    q, v = consistent_states(model, np.random.default_rng(0), 2)
    close(cd.forward_dynamics(model, q, v, formulation="points"), cd.forward_dynamics(model, q, v))


def test_a_point_mass_and_a_body_whose_joints_share_a_point() -> None:
    m = cd.Mechanism("star", gravity=(0, -9.81, 0))
    m.body("hub", mass=1.0, inertia=np.diag([0.1, 0.1, 0.2]))  # centre of mass and both joints at one point
    bodies(m, "arm", "other")
    m.body("bead", mass=0.5)
    m.joint("axle", cd.Revolute(), m.ground, "hub")
    m.joint("one", cd.Revolute(), "hub", "arm")
    m.joint("two", cd.Revolute(), "hub", "other")
    m.joint("string", cd.Prismatic(axis=(1, 0, 0)), "arm", "bead", at=(0.3, 0, 0))
    model = m.build()
    q, v = model.random_state(np.random.default_rng(0), 4)
    close(cd.forward_dynamics(model, q, v, formulation="points"), cd.forward_dynamics(model, q, v))


@pytest.mark.parametrize("make", [four_bar, five_bar, scotch_yoke])
def test_the_equations_hold_no_angle(make) -> None:  # type: ignore[no-untyped-def]
    system = cd.equations(make().build(), formulation="points").graph("system")
    codes = {system.instruction_id(k) for k in range(system.n_instructions())}
    assert not codes & set(TRIGONOMETRY)


def test_reactions_lie_in_the_plane_and_balance_every_body() -> None:
    model = five_bar().build()
    q, v = consistent_states(model, np.random.default_rng(0), 3)
    f = cd.reactions(model, q, v, formulation="points")
    outside = np.eye(6) - in_plane(model)
    close(np.einsum("jab,...jb->...ja", outside, f), np.zeros_like(f), 1e-14)
    assert (f[..., 2:5] != 0).any(axis=-1).all()


def test_operations_grow_linearly_along_a_chain() -> None:
    counts = {}
    for n in (4, 8, 16):
        model = chain(n)
        counts[n] = function_of(model, general.forward_dynamics(model, POINTS, range(n), False)).n_instructions()
    assert counts[16] - counts[8] == 2 * (counts[8] - counts[4])


@pytest.mark.parametrize("cranks", [3, 5])
def test_redundant_cranks_do_not_disturb(cranks: int) -> None:
    model = parallelogram(cranks=cranks).build()
    q, v = consistent_states(model, np.random.default_rng(0), 3)
    close(cd.forward_dynamics(model, q, v, formulation="points"), cd.forward_dynamics(model, q, v), 1e-10)


def flipped_coupler(flipped: bool) -> cd.Model:
    """A four-bar that its universal and ball joints alone do not keep flat; its coupler either way up, by `start`."""
    turn = np.pi if flipped else 0.0
    m = cd.Mechanism("four-bar", gravity=(0, -9.81, 0))
    for name, length in (("crank", 0.3), ("coupler", 1.0), ("rocker", 0.8)):
        box = cd.inertia.box(2 * length, (length, 0.1, 0.1))
        m.body(name, mass=2 * length, com=(length / 2, 0.05, 0.0), inertia=box)
    m.joint("A", cd.Revolute(), m.ground, "crank", start=1.0)
    both = cd.Universal(axis1=(0, 0, 1), axis2=(0, 1, 0))
    m.joint("B", both, "crank", "coupler", at=(0.3, 0, 0), start=(turn - 0.5, turn))
    m.joint("D", cd.Revolute(), m.ground, "rocker", at=(1, 0, 0), start=1.5)
    m.joint("C", cd.Spherical(), "coupler", "rocker", at=(1, 0, 0), child_at=(0.8, 0, 0))
    return m.build(cut=["C"])


def test_two_assembly_modes_do_not_share_kernels() -> None:
    """They have the same numbers, so the same `model.key`; `points` describes them from their positions."""
    models = [flipped_coupler(flipped) for flipped in (False, True)]
    assert models[0].key == models[1].key
    for model in models:
        q, v = cd.assemble(model, v=np.ones(4))
        tau, wrenches = np.array([1.0, 0.5, 0.0, -0.3]), np.zeros((3, 6))
        wrenches[:, 4] = 2.0
        a, f = (
            [function(model, q, v, tau, wrenches=wrenches, formulation=way) for way in ("spatial", "points")]
            for function in (cd.forward_dynamics, cd.reactions)
        )
        close(a[1], a[0], 1e-9)
        close(f[1], np.einsum("jab,jb->ja", in_plane(model), f[0]), 1e-8)
        close(cd.inverse_dynamics(model, q, v, a[0], driven=["A"], formulation="points")[1:], np.zeros(3), 1e-9)
        own = cd.equations(model, formulation="points")
        x, u = own.project(*cd.equations(model).lift(q, v))
        close(own.phi(x), np.zeros(own.nl), 1e-10)
        close(np.einsum("i,ij,j", u, own.M(x), u) / 2, cd.kinetic_energy(model, q, v), 1e-10)


@pytest.mark.parametrize("method", ["dormand_prince", cd.Alpha(), "gear"])
def test_runs_of_two_assembly_modes_do_not_share_kernels(method: str | cd.Integrator) -> None:
    """The coupler moves alike either way up, with its centre of mass on one side or on the other of its line."""
    step = 1e-3 if isinstance(method, cd.Alpha) else None
    for flipped in (False, True):
        model = flipped_coupler(flipped)
        q, v = cd.assemble(model, v=np.ones(4))
        spatial = cd.simulate(model, 0.05, q, v, samples=3).q
        close(
            cd.simulate(model, 0.05, q, v, formulation="points", method=method, step=step, samples=3).q, spatial, 1e-6
        )
