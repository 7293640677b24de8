"""A body as three particles, AT(1) to AT(12), and the chain of AT 2.4: against Newton and Euler, and the engine."""

from __future__ import annotations

from functools import cache

import casadi
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import cardan as cd
from cardan import textbook as book
from cardan.algebra.plane import Particles, across, carried, moment, particles, rod_particles

pytestmark = pytest.mark.usefixtures("quick_code")

numbers = st.floats(-2, 2)
seeds = st.integers(0, 2**32 - 1)


def random_body(seed: int) -> tuple[float, np.ndarray, float, np.ndarray]:
    """Mass, centre of mass, inertia about the origin, and a place for particle 3."""
    rng = np.random.default_rng(seed)
    mass, com = rng.uniform(0.5, 3), rng.uniform(-1, 1, 2)
    return mass, com, mass * (com @ com) + rng.uniform(0.05, 1), rng.uniform(0.3, 1) * unit(rng.uniform(-3, 3))


def unit(angle: float) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle)])


def turned(angle: float, a: np.ndarray) -> np.ndarray:
    return np.cos(angle) * a + np.sin(angle) * across(a)


def state(body: Particles, seed: int) -> tuple[list[np.ndarray], list[np.ndarray], float, float, np.ndarray]:
    """Positions and velocities of a moving body's particles, its angle and rate, and the velocity of particle 1."""
    rng = np.random.default_rng([seed, 1])
    angle, w, r1, v1 = rng.uniform(-3, 3), rng.standard_normal(), rng.standard_normal(2), rng.standard_normal(2)
    arms = [turned(angle, p) for p in body.positions]
    return [r1 + a for a in arms], [v1 + w * across(a) for a in arms], angle, w, v1


@given(seed=seeds, m3=numbers)
def test_any_m3_keeps_mass_centre_and_inertia(seed: int, m3: float) -> None:
    mass, com, I0, r3 = random_body(seed)
    assume(abs(I0 - m3 * (r3 @ r3)) > 1e-3 and np.linalg.norm(mass * com - m3 * r3) > 1e-3)
    p = particles("b", mass=mass, com=com, inertia=I0, r3=r3, m3=m3)
    scale = float(np.abs(p.masses).max() * max(1.0, np.abs(p.positions).max()) ** 2)
    assert p.masses.sum() == pytest.approx(mass, abs=1e-12 * scale)
    assert p.masses @ p.positions == pytest.approx(mass * com, abs=1e-12 * scale)
    assert p.masses @ (p.positions**2).sum(1) == pytest.approx(I0, abs=1e-12 * scale)
    assert carried(p.nu, p.lam, p.positions[2]) == pytest.approx(p.positions[1], abs=1e-12 * scale)  # AT(7)


def test_masses_may_be_negative() -> None:
    p = particles("b", mass=1.0, com=(0.5, 0.0), inertia=0.3, r3=(1.0, 0.0), m3=1.0)
    assert p.masses.min() < 0
    assert p.masses.sum() == pytest.approx(1.0)


def test_a_uniform_rod_is_simpsons_rule() -> None:
    p = rod_particles("rod", mass=6.0, length=2.0, com=1.0, inertia=6.0 * 4 / 3)
    assert p.masses == pytest.approx([1, 4, 1])
    assert (p.nu, p.lam) == pytest.approx((0.5, 0.0))
    same = particles("rod", mass=6.0, com=(1.0, 0.0), inertia=8.0, r3=(2.0, 0.0), m3=1.0)
    assert same.masses == pytest.approx(p.masses)
    assert same.positions == pytest.approx(p.positions)


def unreduced(p: Particles, r: list[np.ndarray], v: list[np.ndarray], R: np.ndarray, G1: float) -> np.ndarray:
    (m1, m2, m3), pairs = p.masses, ((1, 0), (2, 0), (2, 1))
    return book.AT_unreduced(m1, m2, m3, *(r[i] - r[j] for i, j in pairs), *(v[i] - v[j] for i, j in pairs), R, G1)


def reduced(p: Particles, r: list[np.ndarray], v: list[np.ndarray], R: np.ndarray, G1: float) -> np.ndarray:
    return book.AT_reduced(*p.masses, p.nu, p.lam, r[2] - r[0], v[2] - v[0], R, G1)


@given(seed=seeds)
@settings(max_examples=30)
def test_the_two_sets_of_equations_agree_and_m3_does_not_matter(seed: int) -> None:
    mass, com, I0, r3 = random_body(seed)
    rng = np.random.default_rng([seed, 2])
    R, G1 = rng.standard_normal(2), rng.standard_normal()
    answers = []
    for part in (0.3, 0.6):
        p = particles("b", mass=mass, com=com, inertia=I0, r3=r3, m3=part * I0 / (r3 @ r3))
        assume(abs(p.lam) > 0.05 and np.linalg.norm(p.positions[1]) < 20)
        r, v, *_ = state(p, seed)
        x, six = reduced(p, r, v, R, G1), unreduced(p, r, v, R, G1)
        answers.append(x)
        scale = max(1.0, float(np.abs(six).max()))
        assert np.r_[six[:2], six[4:]] == pytest.approx(x, abs=1e-7 * scale)
        assert book.AT_9(x[:2], x[2:] - x[:2], p.nu, p.lam) == pytest.approx(six[2:4], abs=1e-8 * scale)
    assert answers[0] == pytest.approx(answers[1], abs=1e-8 * max(1.0, float(np.abs(answers[0]).max())))


@given(seed=seeds)
@settings(max_examples=30)
def test_every_equation_of_a_floating_body_holds_in_the_engine(seed: int) -> None:
    """The accelerations are those of `spatial`, on a planar joint, with a random wrench."""
    mass, com, I0, r3 = random_body(seed)
    p = particles("b", mass=mass, com=com, inertia=I0, r3=r3)
    assume(np.linalg.norm(p.positions[1]) < 20)
    rng = np.random.default_rng([seed, 3])
    force, couple = rng.standard_normal(2), rng.standard_normal()  # in the body's axes, at particle 1
    q, v = rng.standard_normal(3), rng.standard_normal(3)
    own = [1.0, 1.0, I0 - mass * com @ com, 0, 0, 0]
    model = floating_plate().at({"plate.mass": mass, "plate.com": [*com, 0], "plate.inertia": own})
    wrench = np.array([[0, 0, couple, *force, 0]])
    a = cd.forward_dynamics(model, q, v, wrenches=wrench)
    pose, twist, rate = (f[0] for f in (
        cd.body_poses(model, q), cd.body_twists(model, q, v), cd.body_accelerations(model, q, v, a)
    ))  # fmt: skip
    turn, w, y = pose[:2, :2], twist[2], rate[2]
    r, rd, rdd = ([], [], [])
    for place in p.positions:
        arm = turn @ place
        r.append(pose[:2, 3] + arm)
        rd.append(turn @ twist[3:5] + w * across(arm))
        rdd.append(turn @ (rate[3:5] + w * across(twist[3:5])) + y * across(arm) - w**2 * arm)
    r21, r31, r32 = r[1] - r[0], r[2] - r[0], r[2] - r[1]
    v21, v31, v32 = rd[1] - rd[0], rd[2] - rd[0], rd[2] - rd[1]
    a1, a2, a3 = rdd
    m1, m2, m3 = p.masses
    R, nu, lam = turn @ force, p.nu, p.lam
    scale = float(max(1.0, np.abs(rdd).max()) * max(1.0, np.abs(p.masses).max()) * max(1.0, np.abs(r31).max()))

    def same(found: object, wanted: object) -> None:
        assert found == pytest.approx(wanted, abs=1e-10 * scale)

    for found, wanted in zip(book.AT_1(m1, m2, m3, *p.positions), (mass, mass * com, I0), strict=True):
        same(found, wanted)
    for found, wanted in zip(book.AT_particles(mass, com, I0, m3, r3), (m1, m2, p.positions[1]), strict=True):
        same(found, wanted)
    same(book.AT_m2(mass, com, I0, m3, r3), m2)
    same(book.AT_m1(mass, m2, m3), m1)
    same(book.AT_r2(mass, com, m2, m3, r3), p.positions[1])
    same(book.AT_2(m1, m2, m3, a1, a2, a3), R)
    same(book.AT_3(m2, m3, r21, r31, a2, a3), couple)
    distances = [np.linalg.norm(p.positions[i] - p.positions[j]) for i, j in ((1, 0), (2, 0), (2, 1))]
    same(book.AT_4(r21, r31, r32, *distances), (0, 0, 0))
    same(book.AT_5(r21, r31, r32, v21, v31, v32), (0, 0, 0))
    same(book.AT_6(v21, v31, v32), (r21 @ (a2 - a1), r31 @ (a3 - a1), r32 @ (a3 - a2)))
    same(book.AT_invariants(r21, r31), (nu, lam))
    same(book.AT_lengths(r21, r31), (nu * distances[1], lam * distances[1]))
    same(book.AT_7(r[0], r31, nu, lam), r[1])
    same(book.AT_8(rd[0], v31, nu, lam), rd[1])
    same(book.AT_9(a1, a3 - a1, nu, lam), a2)
    same(book.AT_9_matrices(a1, a3, nu, lam), a2)
    same(book.AT_10(m1, m2, m3, nu, lam, a1, a3), R)
    same(book.AT_11(m2, m3, nu, lam, r21, r31, a1, a3), couple)
    same(book.AT_12(v31), r31 @ (a3 - a1))
    assert reduced(p, r, rd, R, couple) == pytest.approx(np.r_[a1, a3], abs=1e-8 * scale)


@cache
def floating_plate() -> cd.Model:
    m = cd.Mechanism("plate", gravity=(0, 0, 0))
    m.body("plate", mass=1.0, com=(0.1, 0.2, 0), inertia=np.diag([1.0, 1.0, 1.0]))
    m.joint("float", cd.Planar(), m.ground, "plate")
    return m.build().free("plate.mass", "plate.com", "plate.inertia")


@given(seed=seeds)
@settings(max_examples=30)
def test_a_floating_body_obeys_newton_and_euler(seed: int) -> None:
    mass, com, I0, r3 = random_body(seed)
    p = particles("b", mass=mass, com=com, inertia=I0, r3=r3)
    r, v, angle, w, v1 = state(p, seed)
    rng = np.random.default_rng([seed, 3])
    R, G1 = rng.standard_normal(2), rng.standard_normal()
    a1, a3 = np.split(reduced(p, r, v, R, G1), 2)
    d = r[2] - r[0]
    turn = moment(d, a3 - a1) / (d @ d)
    arm = turned(angle, com)
    a_G = a1 + turn * across(arm) - w**2 * arm
    scale = max(1.0, float(np.abs(a1).max()))
    assert mass * a_G == pytest.approx(R, abs=1e-9 * scale)
    assert (I0 - mass * com @ com) * turn == pytest.approx(G1 - moment(arm, R), abs=1e-9 * scale)
    v_G = v1 + w * across(arm)
    energy = mass * v_G @ v_G / 2 + (I0 - mass * com @ com) * w**2 / 2
    assert sum(m * u @ u for m, u in zip(p.masses, v, strict=True)) / 2 == pytest.approx(energy, rel=1e-9)
    spin = mass * moment(r[0] + arm, v_G) + (I0 - mass * com @ com) * w
    total = sum(m * moment(x, u) for m, x, u in zip(p.masses, r, v, strict=True))
    assert total == pytest.approx(spin, abs=1e-9 * max(1.0, abs(spin)))


@given(seed=seeds)
@settings(max_examples=30)
def test_the_determinant_of_the_reduced_equations_is_the_square_of_the_mass_times_the_inertia(seed: int) -> None:
    mass, com, I0, r3 = random_body(seed)
    p = particles("b", mass=mass, com=com, inertia=I0, r3=r3)
    r, *_ = state(p, seed)
    (m1, m2, m3), r21, r31 = p.masses, r[1] - r[0], r[2] - r[0]
    columns = []
    for e in np.eye(4):
        R = book.AT_10(m1, m2, m3, p.nu, p.lam, e[:2], e[2:])
        columns.append([*R, book.AT_11(m2, m3, p.nu, p.lam, r21, r31, e[:2], e[2:]), r31 @ (e[2:] - e[:2])])
    found = np.linalg.det(np.transpose(columns))
    assert -found == pytest.approx(mass**2 * (I0 - mass * com @ com), rel=1e-8)


def test_singular_equations_are_refused() -> None:
    point = particles("point", mass=2.0, com=(0.3, 0.4), inertia=0.5, r3=(1.0, 0.0), m3=0.2)
    x, v = np.array([1.0, 0.0]), np.zeros(2)
    with pytest.raises(cd.InputError, match="this is a point mass, whose rotation is undetermined"):
        book.AT_reduced(*point.masses, point.nu, point.lam, x, v, x, 0.0)
    with pytest.raises(cd.InputError, match="the masses add up to zero"):
        book.AT_reduced(1.0, -2.0, 1.0, 0.5, 0.2, x, v, x, 0.0)
    rod = rod_particles("rod", mass=6.0, length=1.0, com=0.5, inertia=2.0)
    with pytest.raises(cd.InputError, match=r"on one line, where .* are singular; use AT_reduced"):
        book.AT_unreduced(*rod.masses, x / 2, x, x / 2, v, v, v, x, 0.0)
    with pytest.raises(cd.InputError, match="no moment of inertia about its axis"):
        book.AT_fixed_axis(1.0, -0.29, 0.5, 0.2, x, v, 0.0)
    with pytest.raises(cd.InputError, match="did you give the inertia about the centre of mass"):
        book.AT_particles(2.0, [0.5, 0.0], 0.1, 0.1, [1.0, 0.0])


def test_a_body_on_an_axis_is_a_compound_pendulum() -> None:
    mass, length, angle, w = 2.0, 0.8, 0.6, 1.5
    I0 = mass * length**2 / 3
    p = rod_particles("rod", mass=mass, length=length, com=length / 2, inertia=I0)
    r3 = length * unit(angle)
    weight = np.array([0.0, -9.81 * mass])
    G1 = moment(r3 / 2, weight)
    turn = G1 / I0
    a3 = book.AT_fixed_axis(*p.masses[1:], p.nu, p.lam, r3, w * across(r3), G1)
    force = book.AT_reaction(*p.masses[1:], p.nu, p.lam, a3, weight)
    assert a3 == pytest.approx(turn * across(r3) - w**2 * r3)
    assert force == pytest.approx(mass * (turn * across(r3) - w**2 * r3) / 2 - weight)
    m2, m3 = book.AT_rod(mass, length, length / 2, I0)
    assert (book.AT_m1(mass, m2, m3), m2, m3) == pytest.approx(p.masses)
    half = book.AT_rod_half(m2)
    assert book.AT_rod_10(p.masses[0], half, m3, np.zeros(2), a3) == pytest.approx(force + weight)
    assert book.AT_rod_11(half, m3, r3 / 2, r3, np.zeros(2), a3) == pytest.approx(G1)
    m = cd.Mechanism("pendulum", gravity=(0, -9.81, 0))
    m.body("rod", mass=mass, com=(length / 2, 0, 0), inertia=cd.inertia.rod(mass, length, axis="x"))
    m.joint("axis", cd.Revolute(), m.ground, "rod")
    model = m.build()
    assert cd.forward_dynamics(model, [angle], [w], formulation="points") == pytest.approx([turn])
    reaction = cd.reactions(model, [angle], [w], formulation="points")[0]
    assert reaction[3:5] == pytest.approx([force @ unit(angle), force @ across(unit(angle))])


def test_the_chain_of_2_4_holds_in_the_engine() -> None:
    """The printed equations of the last body, and the recursion to the base, at accelerations of `spatial`."""
    rng = np.random.default_rng(4)
    n, gravity = 4, np.array([0.0, -9.81])
    m = cd.Mechanism("chain", gravity=(*gravity, 0))
    bodies = []
    for k in range(n):
        mass, com = rng.uniform(1, 2), rng.uniform(0.1, 0.6, 2)
        own = rng.uniform(0.1, 0.3)
        bodies.append(particles(f"b{k}", mass=mass, com=com, inertia=own + mass * com @ com, r3=(1.0, 0.0)))
        m.body(f"b{k}", mass=mass, com=(*com, 0), inertia=np.diag([1, 1, own]))
        m.joint(f"j{k}", cd.Revolute(), f"b{k - 1}" if k else m.ground, f"b{k}", at=(1.0 if k else 0.0, 0, 0))
    model = m.build()
    q, v, tau = rng.standard_normal((3, n))
    y = np.cumsum(cd.forward_dynamics(model, q, v, tau))
    angle, w = np.cumsum(q), np.cumsum(v)
    ends, rates, accelerations = [np.zeros(2)], [np.zeros(2)], [np.zeros(2)]
    for k in range(n):
        d = unit(angle[k])
        ends.append(ends[-1] + d)
        rates.append(rates[-1] + w[k] * across(d))
        accelerations.append(accelerations[-1] + y[k] * across(d) - w[k] ** 2 * d)
    F, N, weight, moved = np.zeros(2), 0.0, np.zeros(2), 0.0
    for k in reversed(range(n)):
        p, r31, (a1, a3) = bodies[k], ends[k + 1] - ends[k], accelerations[k : k + 2]
        r21 = carried(p.nu, p.lam, r31)
        own = book.AT_10(*p.masses, p.nu, p.lam, a1, a3), book.AT_11(*p.masses[1:], p.nu, p.lam, r21, r31, a1, a3)
        N, F = book.AT_chain_moment_of_all(N, r31, F, own[1]), book.AT_chain_force(F, own[0])
        # moment of the weight of everything beyond the pin, about it
        moved = moved + moment(r31, weight) + moment(p.masses[1] * r21 + p.masses[2] * r31, gravity)
        weight = weight + p.masses.sum() * gravity
        assert pytest.approx(moved + tau[k], abs=1e-10) == N
        if k == n - 1:
            assert book.AT_chain_moment(*p.masses[1:], p.nu, p.lam, r21, r31, a1, a3) == pytest.approx(moved + tau[k])
            assert book.AT_chain_distance(rates[n] - rates[n - 1]) == pytest.approx(r31 @ (a3 - a1))
    reaction = cd.reactions(model, q, v, tau)[0, 3:5]
    assert reaction[0] * unit(q[0]) + reaction[1] * across(unit(q[0])) == pytest.approx(F - weight, abs=1e-10)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"r3": (0, 0)}, "body 'b': its primary particles 1 and 3 must be apart, their distance is 0 m"),
        ({"m3": 1.0}, r"body 'b': m3 = 1 kg is not allowed, m3 r3 must differ from m rG = \(1, 0\) kg m"),
        ({"m3": 3.0}, r"body 'b': m3 = 3 kg is not allowed, m3 \|r3\|\^2 must differ from the polar inertia I0 = 3"),
        (
            {"inertia": 0.4},
            r"I0 = 0.4 kg m\^2, is less than m \|rG\|\^2 = 0.5 kg m\^2; did you give the inertia about the centre of "
            r"mass\? about particle 1 it is I_G \+ m \|rG\|\^2 = 0.9 kg m\^2",
        ),
        ({"mass": -2.0}, "body 'b': mass must be positive, got -2"),
        ({"mass": 0.0}, "body 'b': mass must be positive, got 0"),
        ({"inertia": -1.0}, "body 'b': inertia must be positive, got -1"),
        ({"inertia": np.nan}, "body 'b': inertia must be a finite number, got nan"),
        ({"com": (0.5, 0.0, 0.0)}, "body 'b': com must be a pair of finite numbers, got"),
        ({"m3": "heavy"}, "body 'b': m3 must be a number, got str; cd.textbook.AT_particles takes symbols"),
        (
            {"mass": casadi.SX.sym("m")},
            "body 'b': mass must be a number, got SX; cd.textbook.AT_particles takes symbols",
        ),
    ],
)
def test_forbidden_particles_are_refused(changes: dict[str, object], sentence: str) -> None:
    given_: dict[str, object] = {"mass": 2.0, "com": (0.5, 0.0), "inertia": 3.0, "r3": (1.0, 0.0)}
    with pytest.raises(cd.ModelError, match=sentence):
        particles("b", **(given_ | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"length": 0.0}, "body 'rod': its primary particles 1 and 3 must be apart"),
        ({"inertia": 1 / 12}, "did you give the inertia about the centre of mass"),
        ({"mass": 0.0}, "body 'rod': mass must be positive, got 0"),
        ({"com": casadi.SX.sym("c")}, "body 'rod': com must be a number, got SX; cd.textbook.AT_rod takes symbols"),
    ],
)
def test_forbidden_rods_are_refused(changes: dict[str, object], sentence: str) -> None:
    given_: dict[str, object] = {"mass": 1.0, "length": 1.0, "com": 0.5, "inertia": 1 / 3}
    with pytest.raises(cd.ModelError, match=sentence):
        rod_particles("rod", **(given_ | changes))  # type: ignore[arg-type]
