"""A joint and force elements that only the tests define go through every part of the product."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan.algebra.matrix import matrix, stack, vector
from cardan.model import force, joint
from cardan.model.joint import CYLINDRICAL, PRISMATIC, REVOLUTE, reversed_kind

from ..user_kinds import CURVATURE, HARDENING, PULL, WIRE, Wire, wire

pytestmark = pytest.mark.usefixtures("quick_code")

FORMULATIONS: list[dict[str, Any]] = [
    {"formulation": "spatial"},
    {"formulation": "newton_euler"},
    {"formulation": "absolute"},
    {"formulation": "absolute_body"},
    {"formulation": "relative"},
]
STATE = [0.3, 0.4], [1.2, -0.7]

# A hinge that says what it is in a plane, and how other formats write it.
HINGE = replace(REVOLUTE, name="own hinge", letters=(("gamma", "angle of the hinge"),))


@dataclass(frozen=True)
class Hinge(cd.JointType):
    """Turns about z, as it stands."""

    kind = HINGE


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The kinds are registered for one test only."""
    monkeypatch.setattr(joint, "ADDED_TYPES", {})
    monkeypatch.setattr(force, "ADDED_FORCES", {})
    cd.add_joint(Wire)
    cd.add_joint(Hinge)
    cd.add_force(HARDENING)
    cd.add_force(PULL)
    yield


def mechanism(curvature: float = CURVATURE, turned: bool = True) -> cd.Mechanism:
    """A bead on a wire carries a bar; a spring along the wire, and a constant force on the bar."""
    m = cd.Mechanism("bead", gravity=(0, 0, -9.81))
    m.body("bead", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    m.body("bar", mass=1.0, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    m.joint("wire", Wire(curvature), m.ground, "bead", at=cd.Pose((0.1, 0, 0), rpy=(0, 0, 0.2 * turned)))
    m.joint("hinge", Hinge(), "bead", "bar", at=cd.Pose(rpy=(np.pi / 2, 0, 0)), child_at=cd.Pose(rpy=(np.pi / 2, 0, 0)))
    m.force("spring", HARDENING, "wire", cubic=30.0, damping=0.2)
    m.force("pull", PULL, "bar", size=0.5)
    return m


def pendulum() -> cd.Mechanism:
    m = cd.Mechanism("pendulum", gravity=(0, -9.81, 0))
    m.body("bar", mass=1.0, com=(0.5, 0, 0), inertia=(0.01, 0.1, 0.1))
    m.joint("hinge", Hinge(), m.ground, "bar")
    return m


def test_check() -> None:
    told = str(cd.check(mechanism().build()))
    assert "all checks passed" in told
    assert all(words["formulation"] in told for words in FORMULATIONS)


def test_the_joint_is_what_it_says() -> None:
    """Lagrange: (1 + s^2) m a + m k s v^2 + m g s = Q, with the slope s = k x."""
    m = cd.Mechanism("bead", gravity=(0, 0, -9.81))
    m.body("bead", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    m.joint("wire", Wire(), m.ground, "bead")
    m.force("spring", HARDENING, "wire", cubic=30.0, damping=0.2, rest=0.1)
    x, v, k, t = 0.3, 1.2, CURVATURE, 0.4
    slope = k * x
    Q = -30.0 * (x - 0.1) ** 3 - 0.2 * np.exp(-t) * v
    expected = (Q - 2.0 * slope * (k * v**2 + 9.81)) / (2.0 * (1 + slope**2))
    model = m.build()
    for words in FORMULATIONS:
        assert np.allclose(cd.forward_dynamics(model, [x], [v], t=t, **words), expected, rtol=1e-12)
    assert np.isclose(cd.potential_energy(model, [x]), 2.0 * 9.81 * k * x**2 / 2 + 30.0 * 0.2**4 / 4)


@pytest.mark.parametrize("words", FORMULATIONS)
def test_simulate(words: dict[str, Any]) -> None:
    model = mechanism().build()
    run = cd.simulate(model, 1.0, *STATE, samples=11, rtol=1e-9, atol=1e-11, **words)
    usual = cd.simulate(model, 1.0, *STATE, samples=11, rtol=1e-9, atol=1e-11)
    assert np.allclose(run.q, usual.q, atol=1e-7)


def test_simulate_a_hinge_in_the_plane() -> None:
    model = pendulum().build()
    run = cd.simulate(model, 1.0, [0.3], formulation="points", samples=11)
    assert np.allclose(run.q, cd.simulate(model, 1.0, [0.3], samples=11).q, atol=1e-6)
    wire = mechanism().build()
    with pytest.raises(cd.ModelError, match=r"joint 'wire' \(wire\)"):
        cd.in_plane(wire)
    found = cd.forward_dynamics(wire, *STATE, formulation="points")  # as particles in space
    assert np.allclose(found, cd.forward_dynamics(wire, *STATE), rtol=1e-10)


def test_the_joint_closes_a_loop() -> None:
    m = mechanism()
    m.joint("carried", cd.Free(), m.ground, "bead")
    model = m.build(cut=["wire"])
    q, _ = cd.assemble(model)
    assert np.abs(cd.constraint_residual(model, q)).max() < 1e-12
    assert "all checks passed" in str(cd.check(model))


@pytest.mark.parametrize("kind", [WIRE, reversed_kind(WIRE)])
def test_phi_and_T_belong_together_row_by_row(kind: cd.Kind) -> None:
    """The rate of row k of phi is T[:, k]^T v_r for any velocity of M relative to F."""
    q = np.array([0.4])
    R = np.eye(3)
    p = np.asarray(kind.r(q), dtype=float)
    h = 1e-6
    for u in np.eye(6):
        turn = np.eye(3) + h * np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
        rate = (np.asarray(kind.phi(R @ turn, p + h * u[3:])) - np.asarray(kind.phi(R, p))) / h
        assert np.allclose(rate.ravel(), np.asarray(kind.T(q), dtype=float).T @ u, atol=1e-5)
    assert [unit for _, unit in kind.rows] == ["rad"] * 3 + ["m"] * 2


def test_plot(tmp_path: Path) -> None:
    run = cd.simulate(mechanism().build(), 0.5, *STATE, samples=11)
    run.plot(reactions="wire", path=tmp_path / "run.svg")
    assert run.reaction("wire").shape == (11, 6)
    assert run.residuals.position.max(initial=0.0) == 0


def test_draw_and_page(tmp_path: Path) -> None:
    pytest.importorskip("cardan.results.drawing.draw")
    model = mechanism().build()
    run = cd.simulate(model, 0.5, *STATE, samples=11)
    model.draw([0.3, 0.4], path=tmp_path / "model.svg")
    run.draw(trace=["bar"], path=tmp_path / "run.svg")
    model.page(tmp_path / "model.html", simulate=False)
    run.page(tmp_path / "run.html", simulate=False)
    assert "joint wire" in (tmp_path / "run.html").read_text()


def test_sympy() -> None:
    pytest.importorskip("sympy")
    model = mechanism(turned=False).build()
    symbols = cd.equations(model).sympy(symbols=["spring.cubic", "pull.size"])
    assert [str(s) for s in (*symbols.q, *symbols.v)] == ["x", "gamma", "xdot", "gammadot"]
    assert {str(s): x for s, x in symbols.values.items()} == {"k_3_spring": 30.0, "P_pull": 0.5}
    meanings = {str(s): meaning for s, meaning in symbols.meanings.items()}
    assert meanings["gamma"].text == "angle of the hinge of hinge" and meanings["x"].unit == "m"
    f = np.asarray(symbols.function("f")(*STATE, t=0.3), dtype=float)
    assert np.allclose(f.ravel(), cd.equations(model).f(*STATE, t=0.3), rtol=1e-12)
    assert "gamma" in symbols.latex()


def test_save_and_load(tmp_path: Path) -> None:
    m = mechanism(curvature=1 / 3)
    for thing in (m, m.build()):
        cd.save(thing, tmp_path / "bead.yaml", overwrite=True)
        text = (tmp_path / "bead.yaml").read_text()
        assert "type: wire" in text and "curvature: 0.3333333333333333" in text
        assert "type: hardening spring" in text and "cubic: 30" in text
        loaded = cd.load(tmp_path / "bead.yaml")
        assert loaded.key == m.build().key
        assert isinstance(loaded.joint("wire").type, Wire)
    (tmp_path / "units.yaml").write_text(
        text.replace("0.3333333333333333", "0.5 mm^-1").replace("cubic: 30", "cubic: 2 kN/m^3")
    )
    changed = cd.load(tmp_path / "units.yaml")
    assert changed.joint("wire").type == Wire(500.0)
    assert changed.forces[0].numbers["cubic"] == 2000.0
    for wrong, told in (
        (text.replace("cubic: 30", "cubic: -30"), r"line \d+: hardening spring 'spring': cubic must not be negative"),
        (text.replace("cubic: 30", "cubic: 30 kg"), r"cubic must be a number in N/m\^3, and '30 kg' is a mass"),
        (text.replace("cubic: 30", "stiff: 30"), "there is no entry 'stiff'"),
        (text.replace("curvature", "bend"), "there is no entry 'bend'"),
    ):
        (tmp_path / "wrong.yaml").write_text(wrong)
        with pytest.raises(cd.FileError, match=told):
            cd.load(tmp_path / "wrong.yaml")


def test_what_is_not_registered_is_neither_saved_nor_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    m = mechanism()
    cd.save(m, tmp_path / "bead.yaml")
    monkeypatch.setattr(force, "ADDED_FORCES", {})
    with pytest.raises(
        cd.ModelError, match=r"hardening spring 'spring': its kind is not registered; call cd.add_force"
    ):
        cd.save(m, tmp_path / "again.yaml")
    monkeypatch.setattr(joint, "ADDED_TYPES", {})
    with pytest.raises(cd.ModelError, match=r"joint 'wire': its type Wire is not registered; call cd.add_joint"):
        cd.save(m, tmp_path / "again.yaml")
    with pytest.raises(cd.FileError, match=r"type must be one of rigid, .* got 'wire'"):
        cd.load(tmp_path / "bead.yaml")


def test_a_type_whose_fields_are_not_numbers_is_not_saved(tmp_path: Path) -> None:
    @cd.add_joint
    @dataclass(frozen=True)
    class Shaped(cd.JointType):
        shape: Any = "parabola"
        kind = WIRE

    m = cd.Mechanism("bead")
    m.body("bead", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    m.joint("wire", Shaped(), m.ground, "bead")
    with pytest.raises(
        cd.ModelError, match="joint 'wire': its field 'shape' is 'parabola', and files hold only numbers"
    ):
        cd.save(m, tmp_path / "bead.yaml")


def test_free_parameters() -> None:
    model = mechanism().build().free("spring.cubic", "pull.size", "wire.at", "bar.mass")
    assert [(p.name, p.unit) for p in model.parameters][:2] == [("spring.cubic", "N/m^3"), ("pull.size", "N")]
    batch = model.at({"spring.cubic": [30.0, 60.0], "pull.size": [0.5, 1.5]})
    a = cd.forward_dynamics(batch, *STATE)
    m = mechanism()
    assert np.allclose(a[0], cd.forward_dynamics(m.build(), *STATE), rtol=1e-13)
    assert not np.allclose(a[0], a[1])
    with pytest.raises(cd.InputError, match=r"'spring.cubic' must not be negative"):
        model.at({"spring.cubic": -1.0})


@pytest.mark.parametrize(("suffix", "format"), [("urdf", "URDF"), ("xml", "MJCF")])
def test_other_formats_tell_what_they_lose(suffix: str, format: str, tmp_path: Path) -> None:
    model = mechanism().build()
    losses = cd.save(model, tmp_path / f"bead.{suffix}")
    assert any(loss.startswith(f"joint 'wire' (wire): {format} has no such joint") for loss in losses)
    assert any(loss.startswith("hardening spring 'spring': ") for loss in losses)
    assert not any("hinge" in loss for loss in losses)  # it says of which motions it is made
    loaded = cd.load(tmp_path / f"bead.{suffix}")
    assert loaded.nv == 1 and loaded.joint("hinge").kind is REVOLUTE
    poses = cd.body_poses(model, [0.0, 0.4]), cd.body_poses(loaded, [0.4])
    at = [m.body_index("bar") for m in (model, loaded)]
    assert np.allclose(poses[0][at[0]], poses[1][at[1]], atol=1e-12)


def test_kinds_are_known_by_what_they_compute() -> None:
    """Not by their names: kernels are kept by digest."""
    assert wire(0.8).identity == WIRE.identity != wire(0.9).identity
    assert replace(REVOLUTE, plus=lambda q, v: q + 2 * v).identity != REVOLUTE.identity == "revolute"
    assert replace(REVOLUTE, unmoved=None).identity != HINGE.identity != REVOLUTE.identity

    def pulled(law: Callable[..., Any], energy: Any = None) -> cd.Model:
        m = mechanism()
        m.force("other", cd.ForceKind("other", "joint", law, energy, fields={"k": cd.Field("N/m")}), "wire", k=1.0)
        return m.build()

    keys = [
        pulled(lambda f, t, q, v: -f["k"] * q).key,
        pulled(lambda f, t, q, v: -(f["k"] ** 2) * q).key,  # the same at the nominal number
        pulled(lambda f, t, q, v: -f["k"] * q, lambda f, q: f["k"] * q**2 / 2).key,
        pulled(lambda f, t, q, v: -f["k"] * ca.sin(q)).key,
    ]
    assert len(set(keys)) == len(keys)
    assert pulled(lambda f, t, q, v: -f["k"] * q).key == keys[0]


def given(kind: Any, on: Any, **numbers: Any) -> Callable[[], object]:
    """Build a mechanism with one more element."""

    def build() -> object:
        m = mechanism()
        m.force("f", kind, on, **numbers)
        return m.build()

    return build


def own(law: Callable[..., Any], on: str = "joint", **declared: Any) -> cd.ForceKind:
    return cd.ForceKind("own", on, law, **declared)


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (given("spring", "wire"), "force 'f': kind must be a cd.ForceKind, got 'spring'"),
        (given(HARDENING, "wire"), "hardening spring 'f': 'cubic' must be given"),
        (given(HARDENING, "wire", cubic=1, rust=2), "hardening spring 'f': it has no number 'rust'"),
        (given(HARDENING, "wire", cubic="much"), "hardening spring 'f': cubic must be a number, got 'much'"),
        (given(HARDENING, "wir", cubic=1), "hardening spring 'f': joint 'wir' is not one of the joints"),
        (given(PULL, ["bar", "bar"], size=1), "pull 'f': bodies must name one or more that move, each once"),
        (given(own(lambda f, t, q, v: [q, v]), "wire"), "own 'f': its law must return a number, got"),
        (given(own(lambda f, t, q, v: f["k"]), "wire"), "own 'f': its law cannot be traced, KeyError: 'k'"),
        (
            given(own(lambda f, t, poses, twists: twists[0], "bodies"), ["bar"]),
            "own 'f': its law must return a list of 1 wrenches of 6 numbers",
        ),
        (
            given(own(lambda f, t, q, v: -q, energy=lambda f, q: [q, q]), "wire"),
            "own 'f': its energy must return a number",
        ),
        (lambda: own(lambda: 0, "wheels"), "force kind 'own': on must be 'bodies' or 'joint', got 'wheels'"),
        (lambda: own(lambda: 0, fields={"k": 1.0}), "force kind 'own': k in fields must be a cd.Field, got 1.0"),
    ],
)
def test_a_force_that_is_none_is_rejected(build: Callable[[], object], told: str) -> None:
    with pytest.raises(cd.CardanError) as caught:
        build()
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"q_units": ()}, "joint kind 'wire': q_units must have 1 entries, got 0"),
        ({"neutral": (0.0, 0.0)}, "joint kind 'wire': neutral must have 1 entries, got 2"),
        ({"motions": ()}, "joint kind 'wire': motions must have 1 rates in all"),
        ({"motions": (cd.SingleMotion("roll"),)}, "motions are turns and slides, or one ball or free, got 'roll'"),
        (
            {"motions": (cd.SingleMotion("slide", ratio=1.0), cd.SingleMotion("turn"))},
            "only the second of two motions has a ratio",
        ),
    ],
)
def test_a_row_of_the_wrong_size_is_rejected(change: dict[str, Any], told: str) -> None:
    @dataclass(frozen=True)
    class Wrong(cd.JointType):
        kind = replace(WIRE, **change)

    m = cd.Mechanism("bead")
    m.body("bead", mass=2.0)
    with pytest.raises(cd.ModelError, match=told):
        m.joint("wire", Wrong(), m.ground, "bead")


def test_names_of_cardan_are_not_taken() -> None:
    @dataclass(frozen=True)
    class Revolute(cd.JointType):
        kind = WIRE

    for add, thing, told in (
        (cd.add_joint, Revolute, "joint type 'revolute' is Cardan's own"),
        (cd.add_joint, WIRE, "a joint type is a frozen dataclass that inherits cd.JointType"),
        (cd.add_force, replace(PULL, name="spring"), "force 'spring' is Cardan's own"),
        (cd.add_force, replace(PULL, name="user"), "force 'user' is Cardan's own"),
        (cd.add_force, "pull", "a kind of force element is a cd.ForceKind"),
    ):
        with pytest.raises(cd.InputError, match=told):
            add(thing)  # type: ignore[operator]


def test_a_field_with_a_unit_that_files_do_not_know_is_told(tmp_path: Path) -> None:
    kind = cd.add_force(replace(PULL, name="push", fields={"size": cd.Field("lbs")}))
    m = mechanism()
    m.force("push", kind, "bar", size=1.0)
    with pytest.raises(
        cd.ModelError, match="force kind 'push': the unit of 'size' is not a unit of files: 'lbs' is not"
    ):
        cd.save(m, tmp_path / "bead.yaml")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"phi": lambda R, p: WIRE.phi(R, p)[::-1]}, r"the rate of phi\[k\] is not T\[:, k\]\^T times the velocity"),
        ({"phi": lambda R, p: WIRE.phi(R, p)[:4]}, r"phi must have shape \(5, 1\), got \(4, 1\)"),
        ({"phi": lambda R, p: WIRE.phi(R, p) + 1}, "phi is not zero on the joint's motions"),
        ({"bias": None}, r"bias\(q, v\) is not the rate of S\(q\), times v"),
        ({"T": lambda q: np.eye(6)[:, [0, 1, 2, 4, 5]]}, r"T\(q\)\^T S\(q\) is not zero"),
        ({"r": lambda q: ca.vertcat(q[0], 0, 0)}, r"E and r do not change with S\(q\) v"),
        ({"measure": lambda R, p: 2 * p[:1]}, "measure does not give q back"),
    ],
)
def test_a_kind_that_contradicts_itself_is_refused(change: dict[str, Any], words: str) -> None:
    class Wrong(cd.JointType):
        kind = replace(WIRE, **change)

    m = cd.Mechanism("bead")
    m.body("bead", mass=1.0)
    with pytest.raises(cd.ModelError, match=f"joint kind 'wire': {words}"):
        m.joint("wire", Wrong(), m.ground, "bead")


def on_wire(kind: cd.Kind) -> cd.Model:
    """A bead on a joint of this kind."""

    class Own(cd.JointType):
        pass

    Own.kind = kind  # type: ignore[assignment, method-assign]
    m = cd.Mechanism("bead", gravity=(0, 0, -9.81))
    m.body("bead", mass=2.0, inertia=(1e-3, 1e-3, 1e-3))
    m.joint("wire", Own(), m.ground, "bead")
    return m.build()


def falling(k: float, x: float, v: float) -> float:
    """Acceleration of the bead along x by Lagrange, with the slope s = k x: (1 + s^2) a + s (k v^2 + g) = 0."""
    return -k * x * (k * v**2 + 9.81) / (1 + (k * x) ** 2)


def _global(k: float) -> dict[str, Any]:
    """Functions that read a variable of their module."""
    globals()["CURVE"] = k
    return {
        "r": lambda q: vector(q[0], 0, CURVE * q[0] ** 2 / 2),
        "S": lambda q: matrix([[0], [0], [0], [1], [0], [CURVE * q[0]]]),
        "bias": lambda q, v: vector(0, 0, 0, 0, 0, CURVE * v[0] ** 2),
        "T": lambda q: matrix([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0],
                               [0, 0, 0, 0, -CURVE * q[0]], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]),
        "phi": lambda R, p: stack(WIRE.phi(R, p)[:4], vector(p[2] - CURVE * p[0] ** 2 / 2)),
    }  # fmt: skip


FUNCTIONS = ("r", "S", "bias", "T", "phi")
CURVE = 0.8  # what `_global` reads


def _closure(k: float) -> dict[str, Any]:
    """Functions that read a variable around them."""
    return {name: getattr(wire(k), name) for name in FUNCTIONS}


def _default(k: float) -> dict[str, Any]:
    """Functions with the curvature as a default argument."""

    def named(name: str) -> Callable[..., Any]:
        return lambda a, b=None, k=k: getattr(wire(k), name)(*((a,) if b is None else (a, b)))

    return {name: named(name) for name in FUNCTIONS}


def _partial(k: float) -> dict[str, Any]:
    """Functions with the curvature bound by functools.partial."""

    def of(k: float, name: str, *given: Any) -> Any:
        return getattr(wire(k), name)(*given)

    return {name: partial(of, k, name) for name in FUNCTIONS}


def _no_module(k: float) -> dict[str, Any]:
    """Functions that belong to no module, as those made by exec without a name may."""
    found = _closure(k)
    for function in found.values():
        function.__module__ = None
    return found


@pytest.mark.parametrize("functions", [_global, _closure, _default, _partial, _no_module])
def test_a_kind_is_what_it_computes_when_the_model_is_built(functions: Callable[[float], dict[str, Any]]) -> None:
    """Another curvature is another kind, wherever the functions get it from, and a built model keeps its own."""
    built = []
    for k in (0.8, 0.3, 0.8):
        built.append((k, on_wire(replace(wire(0.8), **functions(k)))))
    assert built[0][1].key == built[2][1].key != built[1][1].key
    for words in (FORMULATIONS[0], FORMULATIONS[-1]):
        for k, model in built:  # kernels are recorded here, when the variable has its last value
            a = cd.forward_dynamics(model, [0.3], [1.2], **words)
            assert np.allclose(a, falling(k, 0.3, 1.2), rtol=1e-12)


def test_one_kind_that_reads_a_variable_is_recorded_anew_by_every_build() -> None:
    kind = replace(wire(0.8), **_global(0.8))
    keys = []
    for k in (0.8, 0.4, 0.8):
        globals()["CURVE"] = k
        model = on_wire(kind)
        keys.append(model.key)
        globals()["CURVE"] = 0.1
        assert np.allclose(cd.forward_dynamics(model, [0.3], [1.2]), falling(k, 0.3, 1.2), rtol=1e-12)
        recorded = model.joint("wire").kind
        assert pickle.loads(pickle.dumps(recorded)).identity == recorded.identity  # though its functions are lambdas
    assert keys[0] == keys[2] != keys[1]


def test_kinds_of_one_name_made_from_functions_of_cardan_differ() -> None:
    """A slider and a hinge, both called "own"."""
    made = [replace(base, name="own") for base in (REVOLUTE, PRISMATIC, CYLINDRICAL)]
    assert len({kind.identity for kind in made}) == 3
    assert len({reversed_kind(kind).identity for kind in made}) == 3
    slow = replace(REVOLUTE, name="own", q_units=("m",))  # a coordinate that does not come round
    assert slow.identity != made[0].identity


@pytest.mark.parametrize(
    "change",
    [{"plus": lambda q, v: q + v * (1 + 1e-9 * np.random.default_rng().random())}, {"plus": lambda q, v: 1 / 0}],
)
def test_a_kind_that_is_not_a_function_is_refused(change: dict[str, Any]) -> None:
    told = "each time it is run" if "random" in str(change["plus"].__code__.co_names) else "cannot be traced"
    with pytest.raises(cd.ModelError, match=f"joint kind 'wire': plus .*{told}"):
        on_wire(replace(WIRE, **change))


STIFFNESS = 1.0  # what the law below reads


def test_a_force_kind_is_what_it_computes_when_the_model_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = cd.ForceKind("own", "joint", lambda f, t, q, v: -STIFFNESS * q, lambda f, q: STIFFNESS * q**2 / 2, fields={})
    m = cd.Mechanism("slider", gravity=(0, 0, 0))
    m.body("block", mass=2.0)
    m.joint("rail", cd.Prismatic(), m.ground, "block")
    m.force("own", kind, "rail")
    models = {}
    for stiffness in (1.0, 3.0):
        monkeypatch.setitem(globals(), "STIFFNESS", stiffness)
        models[stiffness] = m.build()
    for stiffness, model in models.items():  # kernels are recorded here, when the variable has its last value
        assert np.allclose(cd.forward_dynamics(model, [0.5], [0.0]), -stiffness * 0.5 / 2.0, rtol=1e-14)
        assert np.isclose(cd.potential_energy(model, [0.5]), stiffness * 0.5**2 / 2)
