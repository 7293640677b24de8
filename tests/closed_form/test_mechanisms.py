"""The catalogue's closed mechanisms: they close, have the freedoms they are known for, and keep their own geometry."""

from collections.abc import Callable

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.functions.constraints import constraint_jacobian, constraint_residual
from cardan.structure.assemble import assemble

from ..trees import close

G = 9.81
pytestmark = pytest.mark.usefixtures("quick_code")
Make = Callable[[], cd.Mechanism]

# name: how to make it, freedoms, Kutzbach's count in space
FACTS: dict[str, tuple[Make, int, int]] = {
    "pendulum": (mechanisms.pendulum, 1, 1),
    "double_pendulum": (mechanisms.double_pendulum, 2, 2),
    "cart_pole": (mechanisms.cart_pole, 2, 2),
    "two_body": (mechanisms.two_body, 7, 7),
    "four_bar": (mechanisms.four_bar, 1, -2),
    "slider_crank": (mechanisms.slider_crank, 1, -2),
    "slider_crank in space": (lambda: mechanisms.slider_crank(variant="spatial"), 1, 1),
    "five_bar": (mechanisms.five_bar, 2, -1),
    "parallelogram": (mechanisms.parallelogram, 1, -6),
    "parallelogram, five cranks": (lambda: mechanisms.parallelogram(cranks=5), 1, -14),
    "scotch_yoke": (mechanisms.scotch_yoke, 1, -2),
    "rack_and_pinion": (mechanisms.rack_and_pinion, 1, 1),
    "n_four_bar": (mechanisms.n_four_bar, 1, -5),
    "n_four_bar, five": (lambda: mechanisms.n_four_bar(5), 1, -14),
    "andrews": (mechanisms.andrews, 1, -8),
    "sundials_slider_crank": (mechanisms.sundials_slider_crank, 1, -2),
    "two_hinge_door": (mechanisms.two_hinge_door, 1, -4),
    "cardan_joint": (mechanisms.cardan_joint, 1, -2),
    "drive_line": (mechanisms.drive_line, 1, 0),
    "drive_line, slipping": (lambda: mechanisms.drive_line(slip=True, phase=0.7), 1, 1),
    "rscr": (mechanisms.rscr, 1, 1),
    "bennett": (mechanisms.bennett, 1, -2),
    "sarrus": (mechanisms.sarrus, 1, 0),
    "stewart_platform": (mechanisms.stewart_platform, 6, 6),
}


def rank_of(model: cd.Model, q: np.ndarray) -> int:
    """Rank of the loops' rows; what is below 1e-7 of the largest singular value is rounding."""
    s = np.linalg.svd(constraint_jacobian(model, q), compute_uv=False)
    return int((s > 1e-7 * max(float(s.max(initial=0.0)), 1.0)).sum())


def moved(model: cd.Model, rng: np.random.Generator, size: float = 0.2) -> np.ndarray:
    """Another closed position: along the freedoms from the start, then closed again."""
    q = model.start()
    J = constraint_jacobian(model, q)
    free = np.linalg.svd(J)[2][rank_of(model, q) :]
    return assemble(model, cd.plus(model, q, size * rng.choice([-1.0, 1.0], len(free)) @ free))[0]


def held(model: cd.Model, joint: str, values: np.ndarray, rate: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Closed states (k, nq), (k, nv) with one joint at given values and rate, reached in small steps."""
    q, v, states = model.start(), np.zeros(model.nv), []
    v[model.v_slice(joint)] = rate
    at = q[model.q_slice(joint)][0]
    for value in values:
        for step in np.linspace(at, value, 1 + int(np.ceil(abs(value - at) / 0.2)))[1:]:
            q[model.q_slice(joint)] = step
            q = assemble(model, q, hold=(joint,))[0]
        at = value
        states.append(assemble(model, q, v, hold=(joint,)))
    return np.stack([q for q, _ in states]), np.stack([v for _, v in states])


def coordinate(model: cd.Model, joint: str, q: np.ndarray) -> np.ndarray:
    return q[..., model.q_slice(joint)][..., 0]


def place(model: cd.Model, body: str, q: np.ndarray, point: tuple[float, float, float] = (0, 0, 0)) -> np.ndarray:
    """Point of a body in ground axes."""
    pose = cd.frame_pose(model, q, body)
    return pose[..., :3, 3] + pose[..., :3, :3] @ np.array(point)


def test_every_mechanism_is_tried() -> None:
    from .test_known_machines import KNOWN

    assert mechanisms.CATALOGUE.keys() <= FACTS.keys() | KNOWN.keys()
    assert set(mechanisms.__all__) - {"CATALOGUE", "chain", "random_inertia"} == mechanisms.CATALOGUE.keys()


@pytest.mark.parametrize("name", FACTS)
def test_it_closes_and_has_the_freedoms_and_redundancies_it_is_known_for(name: str) -> None:
    make, freedoms, kutzbach = FACTS[name]
    model = make().build()
    assert np.abs(constraint_residual(model, model.start())).max(initial=0.0) < 1e-15
    rows = sum(joint.kind.freedoms_removed for joint in model.joints) + len(model.couplings)
    assert 6 * model.nb - rows == kutzbach
    rng = np.random.default_rng(0)
    rough, _ = assemble(model, cd.plus(model, model.start(), rng.uniform(-0.02, 0.02, model.nv)))
    for q in (model.start(), rough, moved(model, rng), moved(model, rng)):
        assert np.abs(constraint_residual(model, q)).max(initial=0.0) < 1e-11
        assert model.nv - rank_of(model, q) == freedoms


def test_four_bar_coupler_follows_the_law_of_cosines() -> None:
    base, crank, coupler, rocker = 1.1, 0.35, 0.8, 0.75
    model = mechanisms.four_bar(base=base, crank=crank, coupler=coupler, rocker=rocker).build()
    q, v = held(model, "A", np.linspace(1, 1 + 2 * np.pi, 9), rate=1.0)
    t = coordinate(model, "A", q)
    B, D = crank * np.stack([np.cos(t), np.sin(t)], -1), np.array([base, 0])
    l2 = base**2 + crank**2 - 2 * base * crank * np.cos(t)
    at_B = np.arccos((coupler**2 + l2 - rocker**2) / (2 * coupler * np.sqrt(l2)))
    direction = np.arctan2(*(D - B).T[::-1]) + at_B
    C = B + coupler * np.stack([np.cos(direction), np.sin(direction)], -1)
    close(place(model, "coupler", q, (coupler, 0, 0))[:, :2], C, 1e-12)
    close(place(model, "rocker", q, (rocker, 0, 0))[:, :2], C, 1e-12)
    # speeds of the two ends of the coupler along it are equal
    along = (C - B) / coupler
    w = v[:, model.v_slice("D")]
    speed_B, speed_C = (np.stack([-p[:, 1], p[:, 0]], -1) for p in (B, C - D))
    close((speed_B * along).sum(-1), (w * speed_C * along).sum(-1), 1e-12)


@pytest.mark.parametrize("variant", ["planar", "spatial"])
def test_slider_is_where_crank_and_rod_put_it(variant: str) -> None:
    crank, rod = 0.25, 0.6
    model = mechanisms.slider_crank(crank=crank, rod=rod, variant=variant).build()
    q, v = held(model, "bearing", np.linspace(0.8, 7.0, 8), rate=2.0)
    t = coordinate(model, "bearing", q)
    root = np.sqrt(rod**2 - (crank * np.sin(t)) ** 2)
    close(coordinate(model, "guide", q), crank * np.cos(t) + root, 1e-12)
    speed = -crank * np.sin(t) * (1 + crank * np.cos(t) / root)
    close(v[:, model.v_slice("guide")][:, 0], 2.0 * speed, 1e-11)


def test_slider_crank_moves_alike_with_hinges_and_with_ball_and_cross() -> None:
    a = []
    for variant in ("planar", "spatial"):
        model = mechanisms.slider_crank(variant=variant).build()
        q, v = held(model, "bearing", np.array([0.8, 2.0]), rate=3.0)
        acceleration = cd.forward_dynamics(model, q, v)
        a.append([acceleration[:, model.v_slice(joint)][:, 0] for joint in ("bearing", "guide")])
    close(a[0], a[1], 1e-11)


def test_five_bar_has_its_tip_where_two_circles_meet() -> None:
    model = mechanisms.five_bar(base=0.8, crank=0.5, link=0.7).build()
    q = moved(model, np.random.default_rng(5))
    B, D = (place(model, f"{side} crank", q, (0.5, 0, 0)) for side in ("left", "right"))
    middle, half = (B + D) / 2, np.linalg.norm(D - B) / 2
    across = np.cross([0, 0, 1], D - B) / (2 * half)
    close(place(model, "left link", q, (0.7, 0, 0)), middle + across * np.sqrt(0.7**2 - half**2), 1e-12)


@pytest.mark.parametrize("cranks", [2, 3, 5])
def test_parallelogram_does_not_turn_its_coupler(cranks: int) -> None:
    model = mechanisms.parallelogram(cranks=cranks).build()
    q, _ = held(model, "A1", np.array([0.6, 1.5, 2.5]))
    close(cd.frame_pose(model, q, "coupler")[:, :3, :3], np.broadcast_to(np.eye(3), (3, 3, 3)), 1e-12)


def test_scotch_yoke_makes_a_pure_cosine() -> None:
    model = mechanisms.scotch_yoke(crank=0.3).build()
    q, v = held(model, "bearing", np.linspace(0.7, 6.0, 6), rate=1.0)
    t = coordinate(model, "bearing", q)
    close(coordinate(model, "guide", q), 0.3 * np.cos(t), 1e-12)
    close(v[:, model.v_slice("guide")][:, 0], -0.3 * np.sin(t), 1e-12)


def test_rack_falls_against_the_inertia_of_its_pinion() -> None:
    model = mechanisms.rack_and_pinion(radius=0.1, pinion=1.5, rack=0.8).build()
    a = cd.forward_dynamics(model, model.start(), np.zeros(2))
    fall = -G * 0.8 / (0.8 + 1.5 / 2)
    close(a, [fall / 0.1, fall], 1e-12)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_n_four_bar_gains_freedoms_when_flat(n: int) -> None:
    model = mechanisms.n_four_bar(n).build()
    q = np.where([name.startswith("A") for name in model.coordinate_names], np.pi / 2, -np.pi / 2)
    assert np.abs(constraint_residual(model, q)).max() < 1e-15
    assert model.nv - rank_of(model, q) == n + 1


def test_door_swings_freely_on_both_hinges() -> None:
    """Both hinges are on the vertical through it, so gravity does not turn it; a push at the handle does."""
    model = mechanisms.two_hinge_door(width=0.9, mass=25.0).build()
    assert rank_of(model, np.array([0.7])) == 0
    assert cd.forward_dynamics(model, [0.7], [2.0])[0] == 0
    a = cd.forward_dynamics(model, [0.7], [2.0], [5.0])
    close(a, [5.0 / (25 * (0.9**2 + 0.04**2) / 12 + 25 * 0.45**2)], 1e-12)


def test_cardan_joint_obeys_the_tangent_rule() -> None:
    angle = 0.6
    model = mechanisms.cardan_joint(angle=angle).build()
    q, v = held(model, "input", np.linspace(-3, 3, 9), rate=1.0)
    t, out = coordinate(model, "input", q), coordinate(model, "output", q)
    close(np.tan(out), np.tan(t) * np.cos(angle), 1e-11)
    ratio = np.cos(angle) / (1 - np.sin(angle) ** 2 * np.sin(t) ** 2)
    close(v[:, model.v_slice("output")][:, 0], ratio, 1e-11)


@pytest.mark.parametrize("slip", [False, True])
@pytest.mark.parametrize("second", [0.5, -0.5, 0.3])
@pytest.mark.parametrize("phase", [0.0, np.pi / 2])
def test_drive_line_adds_or_cancels_the_errors_of_its_joints(phase: float, second: float, slip: bool) -> None:
    """The second joint, driven by the middle shaft, has the inverse rule in phase, the same rule out of phase."""
    model = mechanisms.drive_line(angle=0.5, second_angle=second, phase=phase, slip=slip).build()
    q, _ = held(model, "input", np.linspace(-3, 3, 9))
    power = 1 if phase else -1
    expected = np.tan(coordinate(model, "input", q)) * np.cos(0.5) * np.cos(second) ** power
    close(np.tan(coordinate(model, "output", q)), expected, 1e-10)


def test_rscr_keeps_the_ball_at_its_distance_from_the_cylinder() -> None:
    model = mechanisms.rscr(crank=0.3, height=0.8).build()
    q, _ = held(model, "crank", np.linspace(-0.6, 0.6, 5))
    axis = np.array([1.0, 0.3, 0.2]) / np.linalg.norm([1.0, 0.3, 0.2])
    rocker = cd.frame_pose(model, q, "rocker")
    ball = place(model, "crank", q, (0.3, 0, 0.1))
    close(place(model, "coupler", q), ball, 1e-12)
    arm = ball - place(model, "rocker", q, (-0.1, -0.1, 0.8))
    distance = np.linalg.norm(np.cross(arm, rocker[:, :3, :3] @ axis), axis=-1)
    design = np.linalg.norm(np.cross(np.array([0.3, 0, 0.1]) - [0.8, 0.2, 0.8], axis))
    close(distance, np.full(5, design), 1e-12)
    slide = q[:, model.q_slice("cylinder")][:, 1]
    assert np.ptp(slide) > 0.01


def test_bennett_angles_obey_his_relation() -> None:
    twist, other = 0.6, 1.1
    model = mechanisms.bennett(twist=twist, other_twist=other).build()
    q, _ = held(model, "A", np.linspace(1.0, 5.0, 7))
    A, B = coordinate(model, "A", q), coordinate(model, "B", q)
    ratio = np.sin((other + twist) / 2) / np.sin((other - twist) / 2)
    close(np.tan(A / 2) * np.tan(B / 2), np.full(7, ratio), 1e-10)
    D = coordinate(model, "D", q)
    close(np.cos(D), np.cos(B), 1e-11)
    close(np.sin(D), -np.sin(B), 1e-11)


def test_bennett_locks_without_his_condition() -> None:
    """The same four bars, with the length of one pair wrong by a thousandth, cannot be assembled or cannot move."""
    m = mechanisms.bennett()
    short = cd.Mechanism("locked")
    model = m.build()
    for body in model.bodies:
        short.body(body.name, mass=body.mass, com=body.com, inertia=body.inertia)
    names = [short.ground, *model.body_names]
    for k, joint in enumerate(model.joints):
        at = cd.Pose(joint.at.position * (1.001 if k in (1, 3) else 1.0), joint.at.rotation)
        ends = names[joint.parent + 1], names[joint.child + 1]
        short.joint(joint.name, cd.Revolute(), *ends, at=at, child_at=joint.child_at, start=joint.start)
    with pytest.raises(cd.ModelError, match=r"assembled|locked"):
        cd.forward_dynamics(short.build(), np.zeros(3), np.zeros(3))


def test_sarrus_plate_rises_straight() -> None:
    bar = 0.5
    model = mechanisms.sarrus(bar=bar, angle=0.9).build()
    q, _ = held(model, "foot x", np.linspace(-0.4, 0.5, 5))
    pose = cd.frame_pose(model, q, "plate")
    close(pose[:, :3, :3], np.broadcast_to(np.eye(3), (5, 3, 3)), 1e-10)
    rise = 2 * bar * np.sin(0.9 - coordinate(model, "foot x", q))  # a turn about y lowers what points along x
    close(pose[:, :3, 3], np.stack([0 * rise, 0 * rise, rise], -1), 1e-10)


def test_stewart_platform_stands_on_legs_of_the_given_lengths() -> None:
    lengths = np.array([1.05, 0.95, 1.0, 1.1, 0.98, 1.02])
    model = mechanisms.stewart_platform().build()
    q = model.start()
    sliders = [f"slider{k}" for k in range(1, 7)]
    for name, length in zip(sliders, lengths, strict=True):
        q[model.q_slice(name)] = length
    q, _ = assemble(model, q, hold=sliders)
    pose = cd.frame_pose(model, q, "platform")
    for k, length in enumerate(lengths):
        foot, head = model.joint(f"foot{k + 1}").at.position, model.joint(f"ball{k + 1}").child_at.position
        assert abs(np.linalg.norm(pose[:3, 3] + pose[:3, :3] @ head - foot) - length) < 1e-11


def test_stewart_platform_starts_where_it_is_told() -> None:
    at = cd.Pose((0.1, -0.05, 1.2), rpy=(0.1, -0.2, 0.3))
    model = mechanisms.stewart_platform(at=at).build()
    assert np.abs(constraint_residual(model, model.start())).max() < 1e-14
    close(cd.frame_pose(model, model.start(), "platform"), at.matrix, 1e-14)


def test_stewart_platform_is_singular_when_turned_by_a_right_angle() -> None:
    model = mechanisms.stewart_platform(at=cd.Pose((0, 0, 1), rpy=(0, 0, np.pi / 2))).build()
    q = model.start()
    J = constraint_jacobian(model, q)
    sliders = [model.v_slice(f"slider{k}").start for k in range(1, 7)]
    locked = np.concatenate([J, np.eye(model.nv)[sliders]])
    s = np.linalg.svd(locked, compute_uv=False)
    assert s[-1] < 1e-12 * s[0] < s[-2]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mechanisms.four_bar(coupler=0.1), "do not meet"),
        (lambda: mechanisms.slider_crank(crank=1.0, rod=0.3), "does not reach"),
        (lambda: mechanisms.slider_crank(variant="flat"), "'planar' or 'spatial'"),
        (lambda: mechanisms.parallelogram(cranks=1), "2 or more"),
        (lambda: mechanisms.n_four_bar(0), "1 or more"),
        (lambda: mechanisms.cardan_joint(angle=1.6), "below a right angle"),
        (lambda: mechanisms.drive_line(second_angle=2.0), "below a right angle"),
        (lambda: mechanisms.bennett(twist=1.1, other_twist=1.1), "must differ"),
    ],
)
def test_a_mechanism_that_cannot_be_says_so(make: Make, words: str) -> None:
    with pytest.raises(cd.ModelError, match=words):
        make()
