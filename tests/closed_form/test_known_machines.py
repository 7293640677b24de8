"""Machines of the catalogue: each closes, has its freedoms, and does exactly what it is known for."""

from collections.abc import Callable

import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.functions.constraints import constraint_residual
from cardan.structure.assemble import assemble

from ..trees import close
from . import rolling_machines
from .test_mechanisms import G, coordinate, held, moved, place, rank_of

pytestmark = pytest.mark.usefixtures("quick_code")
Property = Callable[[cd.Model, np.random.Generator], None]


def hoeken(model: cd.Model, rng: np.random.Generator) -> None:
    """Three points of the line are exact, and between them the pen stays within 0.3 % of its length."""
    q, _ = held(model, "A", np.linspace(np.pi / 2, 3 * np.pi / 2, 21))
    pen = cd.frame_pose(model, q, "pen")[:, :2, 3]
    close(pen[[0, 10, 20]], 0.1 * np.array([[4, 4], [2, 4], [0, 4]]), 1e-12)
    assert np.abs(pen[:, 1] - 0.4).max() < 0.003 * np.ptp(pen[:, 0])
    assert np.diff(pen[:, 0]).max() < 0


def peaucellier(model: cd.Model, rng: np.random.Generator) -> None:
    q, _ = held(model, "A", rng.uniform(-1.2, 1.2, 4))
    pen = cd.frame_pose(model, q, "pen")[:, :2, 3]
    close(pen[:, 0], np.full(4, (0.6**2 - 0.3**2) / (2 * 0.2)), 1e-12)
    assert np.ptp(pen[:, 1]) > 0.1


def pantograph(model: cd.Model, rng: np.random.Generator) -> None:
    q = moved(model, rng)
    close(cd.frame_pose(model, q, "pen")[:3, 3], 2.0 * cd.frame_pose(model, q, "stylus")[:3, 3], 1e-12)


def jansen_leg(model: cd.Model, rng: np.random.Generator) -> None:
    """In the lower half of a turn the foot is level to a fiftieth of its step; it lifts by more than a fifth."""
    q, _ = held(model, "O", 2.0 + np.linspace(0, 2 * np.pi, 37)[:-1])
    foot = cd.frame_pose(model, q, "foot")[:, :2, 3]
    step, lift = np.ptp(foot, axis=0)
    lowest = np.sort(foot[:, 1] - foot[:, 1].min())
    assert lowest[len(foot) // 2 - 2] < step / 20
    assert lift > step / 5


def watt_six_bar(model: cd.Model, rng: np.random.Generator) -> None:
    q, v = held(model, "A", np.linspace(1.0, 7.0, 4), rate=1.0)
    close(v[:, model.v_slice("D")], v[:, model.v_slice("G")], 1e-12)
    close(np.ptp(coordinate(model, "D", q) - coordinate(model, "G", q)), 0.0, 1e-12)
    assert np.ptp(coordinate(model, "D", q)) > 0.3


def stephenson_six_bar(model: cd.Model, rng: np.random.Generator) -> None:
    q, _ = held(model, "A", np.linspace(np.pi / 2, 5 * np.pi / 2, 33))
    output = coordinate(model, "G", q)
    assert np.ptp(output[:17]) < 0.008 * np.ptp(output)
    assert np.ptp(output) == pytest.approx(np.radians(47.5), abs=0.02)


def quick_return(model: cd.Model, rng: np.random.Generator) -> None:
    """The lever stands still where the crank is square to it: 240 and 120 degrees apart."""
    t = np.array([0.3, np.pi - np.arccos(0.5), 1.9, np.pi + np.arccos(0.5)])  # crank to the vertical
    q, v = held(model, "main", np.pi / 2 - t, rate=1.0)
    lever = np.arctan2(0.15 * np.sin(t), 0.3 + 0.15 * np.cos(t))
    close(np.pi / 2 - coordinate(model, "pivot", q), lever, 1e-12)
    rates = v[:, model.v_slice("guide")][:, 0]
    close(rates[[1, 3]], np.zeros(2), 1e-12)
    assert np.abs(rates[[0, 2]]).min() > 0.01


def scissor_lift(model: cd.Model, rng: np.random.Generator) -> None:
    """It is as high as its bars are steep; a force at the foot holds the load by the ratio of the speeds."""
    q, v = held(model, "base", np.array([0.3, 0.9]), rate=1.0)
    t = coordinate(model, "base", q)
    close(place(model, "platform", q)[:, :2], np.stack([0 * t, 2 * np.sin(t)], -1), 1e-12)
    close(cd.frame_pose(model, q, "platform")[:, :3, :3], np.broadcast_to(np.eye(3), (2, 3, 3)), 1e-12)
    close(v[:, model.v_slice("rail")][:, 0], -np.sin(t), 1e-12)


def v_engine(model: cd.Model, rng: np.random.Generator) -> None:
    q, _ = held(model, "main", rng.uniform(-3, 3, 3))
    for side, tilt in (("left", 0.75 * np.pi), ("right", 0.25 * np.pi)):
        t = coordinate(model, "main", q) - tilt
        x = 0.045 * np.cos(t) + np.sqrt(0.14**2 - (0.045 * np.sin(t)) ** 2)
        close(coordinate(model, f"{side} bore", q), x, 1e-12)


def excavator(model: cd.Model, rng: np.random.Generator) -> None:
    """The law of cosines at the boom's foot; the tip is where three angles put it."""
    q = moved(model, rng, 0.1)
    swing, boom, stick, bucket = (coordinate(model, joint, q) for joint in ("swing", "boom", "stick", "bucket"))
    a, b, between = np.hypot(0.5, -0.2), np.hypot(2.0, 0.25), boom + np.arctan2(0.25, 2.0) - np.arctan2(-0.2, 0.5)
    close(coordinate(model, "boom cylinder", q) ** 2, a * a + b * b - 2 * a * b * np.cos(between), 1e-12)
    turned = np.cumsum([boom, stick, bucket])
    out, up = np.array([0.4, 1.2]) + np.array([4.6, 2.4, 1.2]) @ np.stack([np.cos(turned), np.sin(turned)], -1)
    close(cd.frame_pose(model, q, "tip")[:3, 3], [out * np.cos(swing), up, -out * np.sin(swing)], 1e-11)


def double_wishbone(model: cd.Model, rng: np.random.Generator) -> None:
    """The shorter upper wishbone leans the wheel inwards as it rises; equal ones do not turn it at all."""
    for upper in (model, mechanisms.double_wishbone(upper=0.4).build()):
        q = upper.start()
        q[upper.q_slice("lower wishbone hinge")] = 0.1
        q, _ = assemble(upper, q, hold=("lower wishbone hinge", "rack"))
        turned = cd.frame_pose(upper, q, "knuckle")[:3, :3]
        if upper is model:
            assert turned[1, 2] < -0.002
        else:
            close(turned, np.eye(3), 1e-11)


def planetary_gear(model: cd.Model, rng: np.random.Generator) -> None:
    """Willis, and with the ring held a ratio of four; teeth roll without slipping."""
    sun, ring = 24, 72
    free = np.linalg.svd(cd.constraint_jacobian(model, model.start()))[2][-2:]
    v = rng.standard_normal(2) @ free
    w = {name: v[model.v_slice(name)][0] for name in ("sun", "ring", "carrier", "planet2")}
    close(sun * w["sun"] + ring * w["ring"], (sun + ring) * w["carrier"], 1e-12)
    rolls = w["carrier"] * 0.096 + (w["carrier"] + w["planet2"]) * -0.048  # speed of the planet's innermost tooth
    close(rolls, w["sun"] * 0.048, 1e-12)


def differential(model: cd.Model, rng: np.random.Generator) -> None:
    """Twice the case's speed is shared; a torque on the case reaches both shafts alike."""
    free = np.linalg.svd(cd.constraint_jacobian(model, model.start()))[2][-2:]
    left, right, case, pinion = (rng.standard_normal(2) @ free)[
        [model.v_slice(name).start for name in ("left", "right", "case", "pinion")]
    ]
    close([left + right, left - right], [2 * case, 2 * pinion], 1e-12)
    tau = np.zeros(4)
    tau[model.v_slice("case")] = 10.0
    a = cd.forward_dynamics(model, model.start(), np.zeros(4), tau)
    close(a[model.v_slice("left")], a[model.v_slice("right")], 1e-12)


def gyroscope(model: cd.Model, rng: np.random.Generator) -> None:
    """Steady precession: the weight neither sinks nor rises."""
    w = rng.uniform(50, 300)
    turn = 0.5 * G * 0.22 / (2.0 * 0.1**2 / 2 * w)
    steady, back = cd.forward_dynamics(model, model.start(), [[turn, 0.0, w], [-turn, 0.0, w]])
    assert abs(steady[1]) < 1e-12 * abs(back[1])


def scara(model: cd.Model, rng: np.random.Generator) -> None:
    q = rng.uniform(-2, 2, 4)
    A, B, rise, C = (coordinate(model, joint, q) for joint in ("shoulder", "elbow", "lift", "wrist"))
    pose = cd.frame_pose(model, q, "tool")
    close(pose[:2, 3], 0.3 * np.array([np.cos(A), np.sin(A)]) + 0.25 * np.array([np.cos(A + B), np.sin(A + B)]), 1e-12)
    close(pose[2, 3], 0.4 + rise - 0.25 - 0.08, 1e-12)
    close(pose[:2, 0], [np.cos(A + B + C), np.sin(A + B + C)], 1e-12)
    close(cd.gravity_force(model, q)[[0, 1, 3]], np.zeros(3), 1e-12)


def delta_robot(model: cd.Model, rng: np.random.Generator) -> None:
    """The platform never turns, and every knee is a forearm away from the platform's corner."""
    q = moved(model, rng)
    pose = cd.frame_pose(model, q, "platform")
    close(pose[:3, :3], np.eye(3), 1e-10)
    assert np.abs(pose[:2, 3]).max() > 1e-3
    for k in range(3):
        turn = 2 * np.pi / 3 * k
        out = np.array([np.cos(turn), np.sin(turn), 0])
        hip = model.joint(f"hip{k + 1}")
        knee = place(model, f"arm{k + 1}", q, tuple(model.body(f"arm{k + 1}").com * 2))
        assert np.linalg.norm(knee - hip.at.position) == pytest.approx(0.25, abs=1e-12)
        assert np.linalg.norm(pose[:3, 3] + 0.06 * out - knee) == pytest.approx(0.5, abs=1e-11)


def as_pendulum(gravity: tuple[float, float, float], axis: tuple[int, int, int], length: float, bar: float) -> cd.Model:
    """What a lattice or net of 2 x 2 swings as in its plane: a bar is as heavy as three, with two more at its end."""
    m = cd.Mechanism("pendulum", gravity=gravity)
    low = length * np.array(gravity) / G
    for j in (0, 1):
        solid = cd.inertia.cylinder(3 * bar, length / 20, length, axis=low)
        m.body(f"bar{j}", mass=3 * bar, com=low / 2, inertia=solid)
        m.body(f"end{j}", mass=2 * bar, inertia=np.zeros(3))
        m.joint(f"hinge{j}", cd.Revolute(axis=axis), f"bar{j - 1}" if j else m.ground, f"bar{j}", at=low * j)
        m.joint(f"weld{j}", cd.Rigid(), f"bar{j}", f"end{j}", at=low)
    return m.build()


def lattice(model: cd.Model, rng: np.random.Generator) -> None:
    """Every row swings as a bar of a pendulum."""
    th, w, names = rng.uniform(-1, 1, 2), rng.standard_normal(2), ("A0_0", "A0_1")
    q, v = assemble(model, {"A0_0": th[0] - np.pi / 2, "A0_1": th[1]}, dict(zip(names, w, strict=True)))
    for j in (0, 1):  # all hanging bars of a row move alike
        for i in (1, 2):
            close(coordinate(model, f"A{i}_{j}", q), coordinate(model, f"A0_{j}", q), 1e-12)
    a = cd.forward_dynamics(model, q, v)
    expected = cd.forward_dynamics(as_pendulum((0, -G, 0), (0, 0, 1), 1.0, 2.0), th, w)
    close([a[model.v_slice(name)][0] for name in names], expected, 1e-9)


def net(model: cd.Model, rng: np.random.Generator) -> None:
    """In its plane every row swings as a bar of a pendulum with springs."""
    th, w, l, k = rng.uniform(-0.8, 0.8, 2), rng.standard_normal(2), 0.2, 20.0
    total, rate = np.cumsum(th), np.cumsum(w)
    q, v = model.start(), np.zeros(model.nv)
    for joint, turn, speed in (("A", th, w), ("B", -total, -rate)):  # level bars stay level
        for i in range(3 if joint == "A" else 2):
            for j in (0, 1):
                q[model.q_slice(f"{joint}{i}_{j}")] = np.cos(turn[j] / 2), 0, np.sin(turn[j] / 2), 0
                v[model.v_slice(f"{joint}{i}_{j}")] = 0, speed[j], 0
    diagonal = l * np.sqrt(2 - 2 * np.sin(total))
    pull = 2 * k * (diagonal - l * np.sqrt(2)) * l**2 * np.cos(total) / diagonal
    tau = np.array([pull.sum(), pull[1]])
    expected = cd.forward_dynamics(as_pendulum((0, 0, -G), (0, 1, 0), l, 0.1), th, w, tau)
    a = cd.forward_dynamics(model, q, v)
    for i in (0, 1, 2):
        close([a[model.v_slice(f"A{i}_{j}")] for j in (0, 1)], np.outer(expected, (0, 1, 0)), 1e-9)


def track(model: cd.Model, rng: np.random.Generator) -> None:
    """Pins stay on the curve, those on one straight and on one wheel are equally fast, and the rims as the first."""
    q, v = held(model, "axle", rng.uniform(0, 1, 1), rate=2.0)
    poses, twists = np.asarray(cd.body_poses(model, q[0])), np.asarray(cd.body_twists(model, q[0], v[0]))
    reach = coordinate(model, "tension", q)[0]
    pins = poses[:14, :2, 3]
    nearest = np.stack([np.clip(pins[:, 0], 0, reach), np.zeros(14)], 1)
    close(np.linalg.norm(pins - nearest, axis=1), np.full(14, 0.14), 1e-11)
    close(np.linalg.norm(pins - np.roll(pins, 1, axis=0), axis=1), np.full(14, 0.12), 1e-11)
    speed = np.linalg.norm(twists[:14, 3:5], axis=1)
    close(speed[0], 0.14 * 2.0, 1e-11)
    for alike in ((pins[:, 0] > 0) & (pins[:, 0] < reach) & (pins[:, 1] > 0), pins[:, 0] < 0):
        assert alike.sum() > 1
        close(speed[alike], np.full(alike.sum(), speed[alike][0]), 1e-11)
    close(v[0][model.v_slice("idler axle")], [2.0], 1e-11)


# name: freedoms, Kutzbach's count in space, what it is known for
KNOWN: dict[str, tuple[int, int, Property]] = {
    "hoeken": (1, -2, hoeken),
    "peaucellier": (1, -8, peaucellier),
    "pantograph": (2, -1, pantograph),
    "jansen_leg": (1, -8, jansen_leg),
    "watt_six_bar": (1, -5, watt_six_bar),
    "stephenson_six_bar": (1, -5, stephenson_six_bar),
    "quick_return": (1, -5, quick_return),
    "scissor_lift": (1, -8, scissor_lift),
    "v_engine": (1, -5, v_engine),
    "excavator": (4, -8, excavator),
    "double_wishbone": (3, 3, double_wishbone),
    "planetary_gear": (2, 2, planetary_gear),
    "differential": (2, 2, differential),
    "gyroscope": (3, 3, gyroscope),
    "scara": (4, 4, scara),
    "delta_robot": (3, 3, delta_robot),
    "lattice": (2, -10, lattice),
    "net": (18, 18, net),
    "track": (1, -2, track),
    "rolling_disc": (3, 3, rolling_machines.rolling_disc),
    "chaplygin_sleigh": (2, 2, rolling_machines.chaplygin_sleigh),
    "snakeboard": (3, 3, rolling_machines.snakeboard),
    "ball_on_turntable": (4, 4, rolling_machines.ball_on_turntable),
    "vehicle": (2, 1, rolling_machines.vehicle),
    "cam_follower": (1, 1, rolling_machines.cam_follower),
    "rzeppa": (1, 1, rolling_machines.rzeppa),
}


@pytest.mark.parametrize("name", KNOWN)
def test_it_does_what_it_is_known_for(name: str) -> None:
    freedoms, kutzbach, known_for = KNOWN[name]
    model, rng = mechanisms.CATALOGUE[name]().build(), np.random.default_rng(0)
    assert np.abs(constraint_residual(model, model.start())).max(initial=0.0) < 1e-15
    rows = sum(joint.kind.freedoms_removed for joint in model.joints) + len(model.couplings) + len(model.constraints)
    assert 6 * model.nb - rows == kutzbach
    assert model.nv - rank_of(model, model.start()) == freedoms
    known_for(model, rng)
