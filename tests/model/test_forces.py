"""Force elements and couplings as they are declared: what is kept, what tells models apart, what is refused."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.model.graph_digest import graph_digest

pytestmark = pytest.mark.usefixtures("quick_code")

NAN, INF = float("nan"), float("inf")
SOLID: dict[str, Any] = {"mass": 1.0, "inertia": (1, 1, 1)}
Declare = Callable[[cd.Mechanism], object]


def robot() -> cd.Mechanism:
    """Bodies a to d on a hinge, a slider, a ball and a cylindrical joint, and a rigid one."""
    m = cd.Mechanism("robot")
    kinds = {"hinge": cd.Revolute(), "slider": cd.Prismatic(), "ball": cd.Spherical(), "tube": cd.Cylindrical()}
    before = m.ground
    for name, (joint, kind) in zip("abcd", kinds.items(), strict=True):
        m.body(name, **SOLID)
        m.joint(joint, kind, before, name)
        before = name
    m.body("tip", **SOLID)
    m.joint("weld", cd.Rigid(), "d", "tip")
    return m


def model(*declare: Declare) -> cd.Model:
    m = robot()
    for step in declare:
        step(m)
    return m.build()


def spring(**options: Any) -> Declare:
    return lambda m: m.spring("s", "a", "b", **{"stiffness": 1.0, "length": 1.0, **options})


def bushing(**options: Any) -> Declare:
    return lambda m: m.bushing("e", "a", "b", **{"stiffness": 1.0, **options})


def drive(function: Any, joint: str = "hinge") -> Declare:
    return lambda m: m.drive("d", joint, function)


def force(function: Any, bodies: Any = ("a", "b")) -> Declare:
    return lambda m: m.user_force("u", bodies, function)


def motion(function: Any, joint: str = "slider") -> Declare:
    return lambda m: m.motion("m", joint, function)


def couple(coefficients: Any, **options: Any) -> Declare:
    return lambda m: m.couple("c", coefficients, **options)


NEGATIVE = np.diag([1.0, 1, 1, 1, 1, -2])
COUPLED = np.eye(6) + 3 * np.eye(6)[::-1]

REFUSED: dict[str, tuple[Declare, str]] = {
    "stiffness": (spring(stiffness=-3), "spring 's': stiffness must not be negative, got -3"),
    "stiffness nan": (spring(stiffness=NAN), "spring 's': stiffness must be finite, got nan"),
    "stiffness text": (spring(stiffness="stiff"), "spring 's': stiffness must be a number, got 'stiff'"),
    "length": (spring(length=-1), "spring 's': length must not be negative, got -1"),
    "damping": (spring(damping=-0.5), "spring 's': damping must not be negative, got -0.5"),
    "damping inf": (spring(damping=INF), "spring 's': damping must be finite, got inf"),
    "point": (spring(at1=(0, 0)), "spring 's': at1 must be 3 numbers, got (0, 0)"),
    "body": (lambda m: m.spring("s", "a", "bb", stiffness=1, length=1), "spring 's': body2 'bb' is not a body; did"),
    "one body": (
        lambda m: m.damper("d", "a", "a", damping=1),
        "damper 'd': body1 and body2 are both 'a'; it acts between two different bodies",
    ),
    "damper": (lambda m: m.damper("d", "a", "b", damping=-1), "damper 'd': damping must not be negative, got -1"),
    "name": (lambda m: m.damper("", "a", "b", damping=1), "damper: a name must be a non-empty string, got ''"),
    "bushing": (bushing(stiffness=(1, 1, 1, 1, 1, -4)), "bushing 'e': stiffness must not be negative, got -4"),
    "bushing shape": (bushing(stiffness=(1, 2, 3)), "bushing 'e': stiffness must be 6 numbers, got (1, 2, 3)"),
    "bushing ragged": (bushing(stiffness=[1, [2]]), "bushing 'e': stiffness must be 6 numbers, got [1, [2]]"),
    "bushing matrix": (bushing(stiffness=NEGATIVE), "bushing 'e': stiffness must not be negative along any motion"),
    "bushing coupled": (bushing(damping=COUPLED), "has the eigenvalue -2; it would feed energy in"),
    "bushing size": (bushing(damping=np.eye(3)), "bushing 'e': damping must be 6 x 6 numbers"),
    "wrench": (lambda m: m.wrench("w", "a", (1, 2, 3)), "wrench 'w': value must be 6 numbers, moment and force, got 3"),
    "wrench axes": (
        lambda m: m.wrench("w", "a", [0] * 6, axes="world"),
        "wrench 'w': axes must be 'ground' or 'body', got 'world'",
    ),
    "wrench on ground": (lambda m: m.wrench("w", m.ground, [0] * 6), "wrench 'w': it acts on the ground, which does"),
    "torsion": (
        lambda m: m.torsion("t", "hinge", stiffness=-1),
        "torsion 't': stiffness must not be negative, got -1",
    ),
    "torsion count": (
        lambda m: m.torsion("t", "tube", stiffness=(1, 2, 3)),
        "torsion 't': stiffness must be 2 numbers, got (1, 2, 3)",
    ),
    "torsion rest": (lambda m: m.torsion("t", "hinge", rest=NAN), "torsion 't': rest must be finite, got nan"),
    "torsion on a ball": (
        lambda m: m.torsion("t", "ball", stiffness=1),
        "torsion 't': joint 'ball' (spherical) has a quaternion, along which there is no spring; use bushing(...)",
    ),
    "rigid": (lambda m: m.torsion("t", "weld"), "torsion 't': joint 'weld' (rigid) has no coordinate to act along"),
    "joint": (
        lambda m: m.torsion("t", "hings"),
        "torsion 't': joint 'hings' is not one of the joints so far; did you mean 'hinge'?",
    ),
    "viscous": (lambda m: m.friction("f", "hinge", viscous=-1), "friction 'f': viscous must not be negative, got -1"),
    "coulomb": (lambda m: m.friction("f", "hinge", coulomb=INF), "friction 'f': coulomb must be finite, got inf"),
    "smoothing": (
        lambda m: m.friction("f", "hinge", coulomb=1, smoothing=0),
        "friction 'f': smoothing must be above 0, got 0; it is the speed over which Coulomb friction changes sign",
    ),
    "drive": (drive("fast"), "drive 'd': function, where it is not callable, must be a number, got 'fast'"),
    "drive count": (drive(1.0, "tube"), "drive 'd': function, where it is not callable, must be 2 numbers, got 1.0"),
    "drive shape": (drive(lambda t, q, v: [q, v]), "drive 'd': its function must return a number, got [SX(q), SX(v)]"),
    "drive too short": (drive(lambda t, q, v: t, "tube"), "drive 'd': its function must return 2 numbers, got SX(t)"),
    "drive of nothing": (drive(lambda t, q, v: None), "drive 'd': its function must return a number, got None"),
    "drive with if": (
        drive(lambda t, q, v: 1.0 if q > 0 else 0.0),
        "drive 'd': its function cannot be traced, RuntimeError: Cannot compute the truth value of a CasADi SXElem "
        "symbolic expression; it is run on CasADi symbols, so use casadi.if_else for a choice",
    ),
    "drive with float": (
        drive(lambda t, q, v: 1.0 if float(q) > 0 else 0.0),
        "drive 'd': its function cannot be traced, TypeError: float() of the symbol SX(q); it is run on",
    ),
    "drive with math": (drive(lambda t, q, v: math.sin(q)), "functions of casadi or numpy, not of math"),
    "drive arguments": (
        drive(lambda t, q: q),
        "its function is called with 3 arguments, (t, q, v), and takes (t, q); write lambda t, q, v: ...",
    ),
    "drive nan": (drive(lambda t, q, v: q + NAN), "drive 'd': its result contains nan"),
    "drive of strangers": (
        drive(lambda t, q, v: q + ca.SX.sym("stranger")),
        "drive 'd': its result contains the symbol stranger, which is not one of its arguments",
    ),
    "drive of calls": (
        drive(lambda t, q, v: ca.interpolant("table", "linear", [[0.0, 1.0]], [0.0, 1.0])(q)),
        "drive 'd': it calls a casadi.Function that is not written in SX",
    ),
    "user force": (force(3.0), "user force 'u': function must be a function of (t, poses, twists), got 3.0"),
    "user force count": (
        force(lambda t, p, v: [np.zeros(6)]),
        "user force 'u': its function must return a list of 2 wrenches of 6 numbers, one for each of its bodies, "
        "got 1 of them",
    ),
    "user force bare": (
        force(lambda t, p, v: v[0]),
        "2 wrenches of 6 numbers, one for each of its bodies, got one SX(",
    ),
    "user force shape": (
        force(lambda t, p, v: [p[0].position, p[1].position]),
        "user force 'u': its function must return 6 numbers, got SX([r_0, r_1, r_2]) of shape (3, 1)",
    ),
    "user force numpy": (
        force(lambda t, p, v: [np.asarray(v[0]), v[1]]),
        "user force 'u': its function cannot be traced, TypeError: Implicit conversion of symbolic CasADi type",
    ),
    "user force raises": (force(lambda t, p, v: p[7]), "user force 'u': its function cannot be traced, IndexError:"),
    "user force twice": (
        force(lambda t, p, v: v, ("a", "a")),
        "user force 'u': bodies must name one or more that move, each once, got ('a', 'a')",
    ),
    "user force on none": (force(lambda t, p, v: v, ()), "user force 'u': bodies must name one or more that move"),
    "user force on 5": (force(lambda t, p, v: v, 5), "user force 'u': bodies must be a list of body names, got 5"),
    "motion": (motion("slow"), "motion 'm': function, where it is not callable, must be a number, got 'slow'"),
    "motion nan": (motion(NAN), "motion 'm': function, where it is not callable, must be finite, got nan"),
    "motion of many": (motion(0.0, "tube"), "motion 'm': joint 'tube' (cylindrical) has 2 coordinates; it must have"),
    "motion with if": (motion(lambda t: 0 if t < 1 else 1), "motion 'm': its function cannot be traced, RuntimeError"),
    "motion shape": (motion(lambda t: [t, t]), "motion 'm': its function must return a number, got [SX(t), SX(t)]"),
    "motion with a kick": (
        motion(np.sqrt),
        "motion 'm': its rate at t = 0 is inf; give a function smooth from t = 0 on",
    ),
    "coupling": (couple({"hinge": 0, "slider": 0.0}), "coupling 'c': no coefficient differs from 0, got {'hinge': 0"),
    "coupling of none": (couple({}), "coupling 'c': no coefficient differs from 0, got {}; it couples nothing"),
    "coupling list": (couple(["hinge"]), "coupling 'c': coefficients must be a dict of joint names and numbers, got"),
    "coupling of many": (couple({"ball": 1}), "coupling 'c': joint 'ball' (spherical) has 3 coordinates; it must have"),
    "coupling value": (couple({"hinge": NAN}), "coupling 'c': coefficient of joint 'hinge' must be finite, got nan"),
    "coupling joint": (couple({"bal": 1}), "coupling 'c': joint 'bal' is not one of the joints so far; did you mean"),
    "coupling offset": (couple({"hinge": 1}, offset="x"), "coupling 'c': offset must be a number, got 'x'"),
    "start": (
        lambda m: m.joint("x", cd.Cylindrical(), "a", "b", start=0.1),
        "joint 'x': start must be 2 numbers, got 0.1",
    ),
    "start quaternion": (
        lambda m: m.joint("x", cd.Spherical(), "a", "b", start=(2, 0, 0, 0)),
        "joint 'x': start: quaternion [2., 0., 0., 0.] has length 2, not 1",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_in_one_sentence(what: str) -> None:
    declare, sentence = REFUSED[what]
    with pytest.raises((cd.ModelError, cd.UnknownNameError)) as error:
        model(declare)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("second", [spring(), couple({"hinge": 1}), motion(0.0), drive(1.0)])
def test_names_of_elements_differ(second: Declare) -> None:
    m = robot()
    for name in ("s", "c", "m", "d"):
        m.wrench(name, "a", [0] * 6)
    with pytest.raises(cd.ModelError, match="the name is taken; forces, motions and couplings must differ in name"):
        second(m)


def test_tracing_leaves_casadi_as_it_was() -> None:
    before = ca.SX.__float__, ca.GlobalOptions.getNumpyMode()
    model(drive(lambda t, q, v: np.sin(q)))
    with pytest.raises(cd.ModelError):
        model(drive(lambda t, q, v: float(q)))
    assert before == (ca.SX.__float__, ca.GlobalOptions.getNumpyMode())


@pytest.mark.parametrize(
    ("declare", "expected"),
    [
        (spring(), False),
        (drive(3.0), False),
        (drive(lambda t, q, v: q - v), False),
        (drive(lambda t, q, v: 0 * t), False),
        (drive(lambda t, q, v: np.sin(t) * q), True),
        (drive(lambda t, q, v: ca.if_else(t > 1, 1.0, 0.0)), True),
        (force(lambda t, p, v: [-v[0], v[1]]), False),
        (force(lambda t, p, v: [-v[0], t * v[1]]), True),
        (motion(0.5), False),
        (motion(lambda t: 0.5), False),
        (motion(lambda t: t), True),
        (couple({"hinge": 1, "slider": 2}), False),
    ],
)
def test_time_matters_where_it_appears(declare: Declare, expected: bool) -> None:
    assert model(declare).depends_on_time is expected


def test_equal_models_have_equal_keys() -> None:
    for make in (
        lambda: spring(stiffness=2.0),
        lambda: drive(lambda t, q, v: np.sin(t) - 2 * q),
        lambda: force(lambda t, p, v: [-v[0], p[1].rotation[0, 1] * v[1]]),
        lambda: motion(lambda t: t**2),
        lambda: couple({"hinge": 1, "slider": 2}),
    ):
        assert model(make()).key == model(make()).key


def test_each_difference_changes_the_key() -> None:
    models = [
        model(),
        model(spring()),
        model(spring(stiffness=2.0)),
        model(spring(at2=(0, 0, 1))),
        model(lambda m: m.spring("s", "a", "c", stiffness=1.0, length=1.0)),
        model(lambda m: m.damper("s", "a", "b", damping=1.0)),
        model(spring(stiffness=0.0, length=0.0, damping=1.0)),
        model(lambda m: m.torsion("t", "hinge", stiffness=1.0)),
        model(lambda m: m.torsion("t", "slider", stiffness=1.0)),
        model(drive(1.0)),
        model(drive(2.0)),
        model(drive(lambda t, q, v: q)),
        model(drive(lambda t, q, v: v)),
        model(drive(lambda t, q, v: q, "slider")),
        model(motion(0.0)),
        model(motion(1.0)),
        model(motion(lambda t: t)),
        model(motion(lambda t: 2 * t)),
        model(couple({"hinge": 1, "slider": 2})),
        model(couple({"hinge": 2, "slider": 1})),
        model(couple({"hinge": 1, "slider": 2}, offset=1.0)),
        model(lambda m: m.wrench("w", "a", [1] * 6)),
        model(lambda m: m.wrench("w", "a", [1] * 6, axes="body")),
        model(force(lambda t, p, v: [-v[0], v[1]])),
        model(force(lambda t, p, v: [-v[0], 2 * v[1]])),
    ]
    assert len({m.key for m in models}) == len(models)


def test_the_key_knows_joints_by_their_place() -> None:
    """Two chains that differ only in the order in which their joints were declared, each with a spring on joint 0."""

    def chain(first: str, second: str) -> cd.Model:
        m = cd.Mechanism("chain")
        m.body("a", **SOLID)
        m.body("b", **SOLID)
        ends = {"A": (m.ground, "a"), "B": ("a", "b")}
        for name in (first, second):
            m.joint(name, cd.Revolute(), *ends[name])
        m.torsion("t", first, stiffness=1.0)
        return m.build()

    one, other = chain("A", "B"), chain("B", "A")
    assert one.tree.digest() == other.tree.digest()
    assert one.key != other.key


def test_guesses_fill_the_start() -> None:
    m = cd.Mechanism("guess")
    guesses = [(cd.Revolute(), 0.3), (cd.Spherical(), None), (cd.Cylindrical(), (0.1, 0.2)), (cd.Free(), None)]
    for k, (kind, start) in enumerate(guesses):
        m.body(f"b{k}", **SOLID)
        m.joint(f"j{k}", kind, m.ground, f"b{k}", start=start)
    m.body("last", **SOLID)
    m.joint("last", cd.Spherical(), "last", m.ground, start=(0, 1 + 1e-6, 0, 0))  # met from its child's side
    built = m.build()
    expected = [0.3, 1, 0, 0, 0, 0.1, 0.2, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0]
    np.testing.assert_array_equal(built.start(), expected)
    assert built.joint("j1").start is None


def test_elements_stay_with_a_model_made_of_another() -> None:
    built = model(spring(), couple({"hinge": 1}))
    assert [f.name for f in built.unmerged.forces] == ["s"]
    assert [c.name for c in built.unmerged.couplings] == ["c"]


def test_elements_without_functions_need_no_casadi() -> None:
    code = """
import sys, cardan as cd
m = cd.Mechanism("m")
m.body("a", mass=1, inertia=(1, 1, 1))
m.joint("j", cd.Revolute(), m.ground, "a")
m.spring("s", m.ground, "a", stiffness=1, length=1)
m.friction("f", "j", viscous=1)
m.motion("m", "j", 0.5)
m.build().key
assert "casadi" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


class Remembers:
    """A controller that remembers what it was given, as one for sampled data would."""

    def __init__(self) -> None:
        self.last: Any = 0.0

    def __call__(self, t: Any, q: Any, v: Any) -> Any:
        rate, self.last = q - self.last, q
        return -rate


CLOCK = iter(np.linspace(1, 2, 1000))


@pytest.mark.parametrize(
    ("declare", "told"),
    [
        (drive(lambda t, q, v: -q * np.random.default_rng().random()), "drive 'd': its function gives another result"),
        (drive(Remembers()), "drive 'd': its function changes 'self.last', state that it keeps in Python"),
        (motion(lambda t: t * next(CLOCK)), "motion 'm': its function gives another result each time"),
        (
            force(lambda t, poses, twists: [v * next(CLOCK) for v in twists]),
            "user force 'u': its function gives another",
        ),
        (
            lambda m: m.constraint("c", ["a"], lambda t, poses, twists: poses[0].position[0] * next(CLOCK), unit="m"),
            "'c': its function gives another result",
        ),
    ],
)
def test_a_function_with_random_numbers_or_state_is_refused(declare: Declare, told: str) -> None:
    """They would stay as they were when the function was run on symbols."""
    with pytest.raises(cd.ModelError, match=told):
        model(declare)


def test_a_function_that_counts_its_calls_is_accepted() -> None:
    """What is not in the result does no harm."""
    calls = []

    def damper(t: Any, q: Any, v: Any) -> Any:
        calls.append(t)
        return -v

    model(drive(damper))
    assert calls


def test_builds_in_threads_leave_casadi_as_it_was() -> None:
    """Two functions of users run at the same time, the first ends first; and one that fails."""
    options: Any = ca.GlobalOptions
    modes = options.getNumpyMode
    before = ca.SX.__float__, modes()
    first, second = threading.Event(), threading.Event()

    def build(enter: threading.Event, wait: threading.Event) -> None:
        def law(t: Any, q: Any, v: Any) -> Any:
            enter.set()
            assert wait.wait(60)
            with pytest.raises(TypeError, match=r"float\(\) of the symbol"):
                float(q)
            return np.sin(q)

        m = cd.Mechanism("arm")
        m.body("a", **SOLID)
        m.joint("hinge", cd.Revolute(), m.ground, "a")
        m.drive("motor", "hinge", law)
        m.build()

    ended = threading.Event()
    later = threading.Thread(target=build, args=(second, ended))
    sooner = threading.Thread(target=build, args=(first, second))
    sooner.start()
    assert first.wait(60)
    later.start()
    sooner.join()
    ended.set()
    later.join()
    assert (ca.SX.__float__, modes()) == before
    m = robot()
    m.drive("motor", "hinge", lambda t, q, v: 1 / 0)
    with pytest.raises(cd.ModelError, match="division by zero"):
        m.build()
    assert (ca.SX.__float__, modes()) == before


NUMPY_LAWS: list[tuple[Callable[[Any], Any], Callable[[float], float]]] = [
    (lambda q: np.sin(q) * np.exp(-q), lambda q: math.sin(q) * math.exp(-q)),
    (lambda q: np.maximum(q, 0.2) + np.abs(q - 1.0), lambda q: max(q, 0.2) + abs(q - 1.0)),
    (lambda q: np.where(q > 0.1, q**2, 0.0), lambda q: q**2 if q > 0.1 else 0.0),
    (lambda q: np.dot([1.0, 2.0], [q, np.arctan2(q, 2.0)]), lambda q: q + 2.0 * math.atan2(q, 2.0)),
]


@pytest.mark.parametrize(("law", "value"), NUMPY_LAWS)
def test_numpy_functions_in_the_law_of_a_user(law: Callable[[Any], Any], value: Callable[[float], float]) -> None:
    m = cd.Mechanism("wheel", gravity=(0, 0, 0))
    m.body("a", mass=1.0, inertia=(1, 1, 2.0))
    m.joint("hinge", cd.Revolute(axis=(0, 0, 1)), m.ground, "a")
    m.drive("motor", "hinge", lambda t, q, v: law(q))
    q = np.array([[-0.7], [0.15], [1.3]])
    expected = [[value(float(x)) / 2.0] for x in q[:, 0]]
    np.testing.assert_allclose(cd.forward_dynamics(m.build(), q, 0 * q), expected, rtol=1e-13)


def test_the_digest_of_a_graph_is_that_of_what_it_computes() -> None:
    """Not of the names, the order or the numbers of a version of CasADi: with 3.8.0 and 3.8.2 it is this one."""
    x, y = ca.SX.sym("x", 2), ca.SX.sym("y")
    a, b = ca.sin(x[0]) * y, ca.sqrt(x[1] + 2.5)
    graph = ca.Function("f", [x, y], [ca.vertcat(a, b), ca.DM([[0, 1], [2, 0]]) * y])
    z, w = ca.SX.sym("z", 2), ca.SX.sym("w")
    b = ca.sqrt(z[1] + 2.5)
    same = ca.Function("g", [z, w], [ca.vertcat(ca.sin(z[0]) * w, b), ca.DM([[0, 1], [2, 0]]) * w])
    assert graph_digest(graph) == graph_digest(same) == FROZEN
    for other in (
        ca.Function("f", [x, y], [ca.vertcat(a, ca.sqrt(x[1] + 2.4)), y]),
        ca.Function("f", [x, y], [ca.vertcat(ca.cos(x[0]) * y, ca.sqrt(x[1] + 2.5)), y]),
        ca.Function("f", [x, y], [ca.horzcat(a, ca.sqrt(x[1] + 2.5)), y]),
        ca.Function("f", [x, y], [ca.vertcat(ca.sin(x[1]) * y, ca.sqrt(x[0] + 2.5)), y]),
    ):
        assert graph_digest(other) != FROZEN


FROZEN = "27e5b6fcb88013b6d989fc49a7fb00b5b1f643253d5b71079e88116872d5b6ae"
