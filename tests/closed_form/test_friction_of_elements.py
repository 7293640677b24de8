"""Friction by forces of elements, along several coordinates or directions: closed forms by both methods."""

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.model.constraint import Constraint
from cardan.model.field import NOT_NEGATIVE, Field
from cardan.model.force import ForceKind
from cardan.model.law import LawfulElement
from cardan.model.row import Law

pytestmark = pytest.mark.usefixtures("quick_code")


def turning_friction(f, joints):
    """Three rows that share a bound: the angular velocity of a body, in its axes."""
    rows = tuple(Constraint(f.name, f.on, lambda t, P, V, k=k: V[0][k], "rad").traced() for k in range(3))
    names = ("sliding 1", "sliding 2", "sliding 3")
    return LawfulElement(f, rows, (Law.FRICTION,) * 3, names, discs=((0, 1, 2),))


TURNING = ForceKind(
    "turning friction", "bodies", lambda f, t, P, V: [ca.SX(6, 1)], bodies=1, lawful=turning_friction,
    fields={"coulomb": Field("N m", "largest moment", rule=NOT_NEGATIVE), "static": Field("N m", "at rest")},
)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "accuracy"),
    [({}, 2e-7), ({"method": "bdf"}, 2e-6), ({"method": "gear"}, 2e-6), ({"method": "moreau", "step": 1e-3}, 4e-3)],
)
def test_a_ball_turns_against_friction_in_all_directions_and_sticks(method, accuracy):
    """|m| <= M in three directions: the spin falls at M / I to zero; it sticks, until a load exceeds M at rest."""
    inertia, M, axis, spin = 0.4, 0.5, np.array([2.0, 1.0, -2.0]) / 3, np.array([0.6, -0.3, 0.2])
    m = cd.Mechanism("ball", gravity=(0, 0, 0))
    m.body("ball", mass=1.0, inertia=(inertia,) * 3)
    m.joint("turn", cd.Spherical(), "ground", "ball")
    m.force("socket", TURNING, "ball", coulomb=M, static=0.7)

    def load(t, P, V):
        return [ca.vertcat(P[0].rotation.T @ (0.1 * ca.fmax(t - 1, 0) ** 3 * axis), 0, 0, 0)]

    m.user_force("load", ["ball"], load)
    run = cd.simulate(m.build(), 3.4, v0=[spin], samples=18, **method)
    assert np.abs(run.v[0, 3:15]).max() < 1e-12  # 0.7 N m are reached at 2.913 s
    away = 7.0 ** (1 / 3)
    rate = ((2.4**4 - away**4) * 0.1 / 4 - M * (2.4 - away)) / inertia
    turning = cd.body_poses(run.model, run.q[0, -1])[0, :3, :3] @ run.v[0, -1]
    np.testing.assert_allclose(turning, rate * axis, rtol=accuracy)
    if "step" not in method:
        stop, leave = run.events[0], run.events[-1]
        assert stop.time == pytest.approx(inertia * 0.7 / M, abs=1e-7)
        assert leave.time == pytest.approx(1 + away, abs=1e-9)
        np.testing.assert_allclose(np.linalg.norm(run["socket.force"][0, 1]), M)


@pytest.mark.parametrize("method", [{}, {"method": "moreau", "step": 1e-3}])
def test_a_disc_whose_directions_the_mechanism_does_not_all_have(method):
    """A block that a guide lets move along one line only, at 30 degrees to the axes of its contact."""
    along, mu, push = np.array([np.cos(0.5), np.sin(0.5), 0.0]), 0.3, 4.0
    m = cd.Mechanism("guided")
    m.body("carrier", mass=0.5, inertia=(1, 1, 1))
    m.body("block", mass=2.0, inertia=(1, 1, 1))
    m.joint("lift", cd.Prismatic(axis=(0, 0, 1)), "ground", "carrier")
    m.joint("x", cd.Prismatic(axis=along), "carrier", "block")

    def sliding(t, P, V):
        return (P[0].rotation @ V[0][3:])[:2]

    m.contact("floor", ["block"], gap=lambda t, P, V: P[0].position[2], tangent=sliding, friction=mu)
    m.drive("push", "x", lambda t, q, v: push * t)
    run = cd.simulate(m.build(), 3.0, samples=13, **method)
    begin = mu * 2.5 * 9.81 / push  # the push reaches the friction
    assert np.abs(run.v[run.time < begin]).max() < 1e-9
    moving = run.time > begin + 0.01
    speed = push * (run.time[moving] - begin) ** 2 / 2 / 2.0
    np.testing.assert_allclose(run.v[moving, 1], speed, rtol=1e-6 if not method else 5e-3, atol=1e-6)
    held = run["floor.force"][3]
    np.testing.assert_allclose(held[1:], -push * 0.75 * along[:2], atol=1e-6 if not method else 3e-3)


METHODS = [{}, {"method": "moreau", "step": 1e-3}]
LEAD, ARM, WHEEL = np.deg2rad(6.0), 0.02, 0.1  # of a worm, m its radius; m the radius of its wheel
RATIO = ARM * np.tan(LEAD) / WHEEL


def worm_gear(inertia: float = 2e-4) -> cd.Model:
    """Its force is along the wheel, N; the teeth slide along the thread, pressed by that force over cos(lead)."""
    m = cd.Mechanism("worm gear", gravity=(0, 0, 0))
    m.body("worm", mass=0.5, inertia=(inertia,) * 3)
    m.body("wheel", mass=2.0, inertia=(0.05,) * 3)
    m.joint("worm", cd.Revolute(axis=(1, 0, 0)), "ground", "worm")
    m.joint("wheel", cd.Revolute(axis=(0, 0, 1)), "ground", "wheel")
    m.couple("mesh", {"wheel": WHEEL, "worm": -ARM * np.tan(LEAD)}, unit="m")
    along = {"wheel": WHEEL * np.sin(LEAD), "worm": ARM * np.cos(LEAD)}
    m.friction("teeth", along, coefficient=0.05 / np.cos(LEAD), normal="mesh", stick=True, unit="m")
    return m.build().free("teeth.coefficient")


@pytest.fixture(scope="module")
def worm() -> cd.Model:
    """One model for all tests."""
    return worm_gear()


@pytest.mark.parametrize("formulation", ["spatial", "absolute", "relative"])
def test_the_efficiency_of_a_worm_gear(worm, formulation):
    """Forward tan(lead) / tan(lead + rho), backward tan(lead - rho) / tan(lead); self-locking if mu > tan(lead)."""
    mu = np.array([0.02, 0.05, 0.09, 0.15])
    model = worm.at({"teeth.coefficient": mu / np.cos(LEAD)})
    rho, load = np.arctan(mu), 5.0
    forward, backward = np.tan(LEAD) / np.tan(LEAD + rho), np.tan(LEAD - rho) / np.tan(LEAD)
    for eta, way in ((1 / forward, 1.0), (backward, -1.0)):
        v = way * 8.0 * np.array([1.0, RATIO])
        drive = np.column_stack([load * RATIO * eta, np.full(4, -load)])
        a = cd.forward_dynamics(model, np.zeros(2), v, drive, formulation=formulation)
        assert np.abs(a).max() < 1e-9  # at this torque it turns on at its speed


@pytest.mark.parametrize("method", METHODS)
def test_a_worm_gear_that_locks_itself(worm, method):
    """Under a load on its wheel it stays if mu > tan(lead), from rest and after it was driven; else it runs off."""
    model = worm.at({"teeth.coefficient": np.array([0.5, 0.95, 1.05, 2.0]) * np.tan(LEAD) / np.cos(LEAD)})
    run = cd.simulate(model, 0.2, tau=[0.0, -5.0], samples=3, **method)
    locks = np.array([False, False, True, True])
    assert np.abs(run.v[locks, -1]).max() < 1e-12 and (run.v[~locks, -1, 1] < -0.05).all()
    run = cd.simulate(model, 0.2, v0=10.0 * np.array([1.0, RATIO]), tau=[0.0, -5.0], samples=3, **method)
    assert np.abs(run.v[locks, -1]).max() < 1e-12 and (run.v[~locks, -1, 1] < -0.01).all()


def test_a_light_worm_jams_where_no_force_fits():
    """A self-locking mesh whose friction presses more than it is worth stops at once; that is said."""
    model = worm_gear(2e-6).at({"teeth.coefficient": 0.2 / np.cos(LEAD)})
    v = -10.0 * np.array([1.0, RATIO])
    with pytest.raises(cd.InputError, match=r"no forces of the rows with laws fit .*jamming.* 'teeth: sliding'"):
        cd.forward_dynamics(model, np.zeros(2), v, [0.0, -5.0])
    with pytest.warns(RuntimeWarning, match="take a shorter step"):  # it stops within the first of ten steps
        run = cd.simulate(model, 0.01, v0=v, tau=[0.0, -5.0], method="moreau", step=1e-3, samples=2)
    assert np.abs(run.v[-1]).max() < 1e-12 and run.statistics["law_residual"] < 1e-10


GUIDES, RUB, MASS = 0.5, 0.4, 3.0


@pytest.fixture(scope="module")
def drawer() -> cd.Model:
    """A drawer on two guide points, pulled with 10 N along a line at a distance."""
    m = cd.Mechanism("drawer", gravity=(0, 0, 0))
    m.body("drawer", mass=MASS, inertia=(0.2, 0.2, 0.2))
    m.joint("slide", cd.Planar(), "ground", "drawer")
    for name, at in (("front", GUIDES / 2), ("rear", -GUIDES / 2)):
        m.constraint(name, ["drawer"], lambda t, P, V, at=at: P[0].position[1] + at * P[0].rotation[1, 0])
        m.friction(f"friction of {name}", "slide[0]", coefficient=RUB, normal=name, stick=True)
    m.wrench("pull", "drawer", (0, 0, 0, 10.0, 0, 0), at=(0, 0.3, 0), axes="body")
    return m.build().free("pull.at")


@pytest.mark.parametrize("method", METHODS)
def test_a_drawer_jams_if_it_is_pulled_too_far_out(drawer, method):
    """It jams iff the pull is farther out than L / (2 mu); else friction is 2 mu F a / L."""
    out = np.array([0.3, 0.6, 0.65, 0.9])
    model = drawer.at({"pull.at": np.column_stack([0 * out, out, 0 * out])})
    force = 10.0 * (1 - 2 * RUB * out / GUIDES)
    for start in (0.0, 1.0):
        run = cd.simulate(model, 0.3, v0=[start, 0, 0], samples=2, **method)
        speed = np.where((force > 0) | (start > 0), start + force * 0.3 / MASS, 0.0)
        np.testing.assert_allclose(run.v[:, -1, 0], speed, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_a_clutch_slips_locks_and_breaks_away(method):
    """Two shafts with friction between them: they meet at the speed of their momentum, and part above the torque."""
    I1, I2, M, static = 0.2, 0.5, 3.0, 4.0
    m = cd.Mechanism("clutch", gravity=(0, 0, 0))
    for name, inertia in (("in", I1), ("out", I2)):
        m.body(name, mass=1.0, inertia=(inertia,) * 3)
        m.joint(name, cd.Revolute(axis=(1, 0, 0)), "ground", name)
    m.friction("disc", {"in": 1.0, "out": -1.0}, coulomb=M, static=static, stick=True)
    m.drive("motor", "in", lambda t, q, v: 8.0 * ca.fmax(t - 1.0, 0.0))
    run = cd.simulate(m.build(), 2.0, v0=[20.0, 0.0], samples=5, breaks=[1.0], **method)
    meet, common = 20.0 / (M / I1 + M / I2), 20.0 * I1 / (I1 + I2)
    away = static * (I1 + I2) / I2 / 8.0  # after the motor began
    np.testing.assert_allclose(run.v[2], [common, common], rtol=1e-9 if not method else 1e-3)
    gained = np.array([4.0 * (1 - away**2) - M * (1 - away), M * (1 - away)]) / [I1, I2]
    last = common + 4.0 * away**2 / (I1 + I2) + gained
    np.testing.assert_allclose(run.v[-1], last, rtol=1e-8 if not method else 2e-3)
    if not method:
        assert [e.time for e in run.events] == pytest.approx([meet, 1 + away], rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_band_brake_multiplies_the_tension_of_its_slack_end(method):
    """A capstan: the tight end pulls exp(mu phi) times as much, so a lever stops a drum."""
    mu, wrap, R, I, push = 0.3, 1.5 * np.pi, 0.15, 0.8, 20.0
    m = cd.Mechanism("band brake", gravity=(0, 0, 0))
    m.body("drum", mass=10.0, inertia=(I,) * 3)
    m.body("lever", mass=1.0, inertia=(0.1,) * 3)
    m.joint("drum", cd.Revolute(axis=(0, 0, 1)), "ground", "drum")
    m.joint("lever", cd.Revolute(axis=(0, 0, 1)), "ground", "lever", at=(0.3, 0, 0))
    m.distance("slack end", "ground", "lever", at1=(0.4, 0.5, 0), at2=(0.1, 0, 0), length=0.5)
    m.drive("hand", "lever", lambda t, q, v: -0.6 * push)
    m.friction("band", "drum", coefficient=np.exp(mu * wrap) - 1, radius=R, normal="slack end", stick=True)
    run = cd.simulate(m.build(), 2.0, v0={"drum": 30.0}, samples=5, **method)
    torque = (np.exp(mu * wrap) - 1) * R * 0.6 * push / 0.1
    np.testing.assert_allclose(run.v[1:, 0], np.maximum(30.0 - torque / I * run.time[1:], 0.0), rtol=1e-9, atol=1e-9)


def test_friction_pressed_by_a_stop_acts_while_it_is_closed():
    """A carriage on its stop brakes a roller; friction ends where the carriage leaves."""
    m = cd.Mechanism("carriage", gravity=(0, 0, 0))
    for name, axis in (("carriage", (0, 0, 1)), ("roller", (1, 0, 0))):
        m.body(name, mass=2.0, inertia=(1, 1, 1))
        m.joint(name, cd.Prismatic(axis=axis), "ground", name)
    m.stop("pad", "carriage", lower=0.0)
    m.friction("brake", "roller", coefficient=0.5, normal="pad", stick=True)
    m.drive("weight", "carriage", lambda t, q, v: 12.0 * (t - 1.0))
    model = m.build()
    for method in METHODS:
        run = cd.simulate(model, 1.5, v0=[0.0, 9.0], samples=4, **method)
        speed = 9.0 - 0.5 * 12.0 / 2.0 * (0.5 - np.clip(1.0 - run.time, 0, 1) ** 2 / 2)
        np.testing.assert_allclose(run.v[:, 1], speed, rtol=1e-8 if not method else 2e-3)


def test_what_presses_friction_is_named():
    m = cd.Mechanism("m")
    m.body("a", mass=1.0, inertia=(1, 1, 1))
    m.joint("x", cd.Prismatic(axis=(1, 0, 0)), "ground", "a")
    m.friction("f", "x", coefficient=0.3, normal="mash", stick=True)
    with pytest.raises(cd.ModelError, match="'mash', which presses it, is no joint, coupling"):
        m.build()
    with pytest.raises(cd.ModelError, match="it has no coefficient of friction; give one"):
        m.friction("g", "x", coulomb=1.0, normal="x", stick=True)
    with pytest.raises(cd.ModelError, match="name the joint or element that presses it"):
        m.friction("g", {"x": 1.0}, coefficient=0.2, stick=True)
    with pytest.raises(cd.ModelError, match="between several joints it is friction that sticks"):
        m.friction("g", {"x": 1.0}, coulomb=0.2)


def test_files_say_what_presses_friction(worm, drawer, tmp_path):
    """What is saved and loaded has the same rows and the same accelerations."""
    for model, v in ((worm, 8.0 * np.array([1.0, RATIO])), (drawer, [1.0, 0, 0])):
        cd.save(model, tmp_path / f"{model.name}.yaml")
        again = cd.load(tmp_path / f"{model.name}.yaml")
        assert "normal: " in (tmp_path / f"{model.name}.yaml").read_text()
        assert again.lawful_rows == model.lawful_rows and again.key == model.key
        a = [cd.forward_dynamics(x, np.zeros(model.nq), v) for x in (model, again)]
        np.testing.assert_array_equal(*a)
