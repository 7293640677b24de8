"""`cd.equations(model).graph(name)` and the public function of the same name are the same thing, for every name.

Models have loops, couplings, motions, constraints of the user and every force element, in every formulation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca
import numpy as np
import pytest

import cardan as cd
from cardan import mechanisms
from cardan.formulation.newton_euler import NEWTON_EULER
from cardan.formulation.spatial import SPATIAL
from cardan.functions.equations import _WHOLE, CONTRACT
from cardan.machines.ufunc.kernel import Kernel
from cardan.model.force import FORCES

from ..trees import close

pytestmark = pytest.mark.usefixtures("quick_code")

FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative", "points")
NAMES = sorted({*SPATIAL.quantities, *NEWTON_EULER.quantities, *_WHOLE, *CONTRACT})
PORTS = ("q", "v", "a", "tau", "wrenches", "t")
State = dict[str, np.ndarray]

# name: the public function of that name at a state of the tree
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "forward_dynamics": lambda m, s, **f: cd.forward_dynamics(m, s["q"], s["v"], s["tau"], t=s["t"], **f),
    "forward_dynamics_loaded": lambda m, s, **f: cd.forward_dynamics(
        m, s["q"], s["v"], s["tau"], wrenches=s["wrenches"], t=s["t"], **f
    ),
    "inverse_dynamics": lambda m, s, **f: cd.inverse_dynamics(m, s["q"], s["v"], s["a"], t=s["t"], **f),
    "inverse_dynamics_loaded": lambda m, s, **f: cd.inverse_dynamics(
        m, s["q"], s["v"], s["a"], wrenches=s["wrenches"], t=s["t"], **f
    ),
    "joint_wrenches": lambda m, s, **f: cd.joint_wrenches(
        m, s["q"], s["v"], s["a"], wrenches=s["wrenches"], t=s["t"], **f
    ),
    "body_accelerations": lambda m, s: cd.body_accelerations(m, s["q"], s["v"], s["a"]),
    "joint_axes": lambda m, s: cd.joint_axes(m, s["q"]),
    "coriolis_matrix": lambda m, s: cd.coriolis_matrix(m, s["q"], s["v"]),
    "plus": lambda m, s: cd.plus(m, s["q"], s["v"]),
    "rates": lambda m, s: cd.rates(m, s["q"], s["v"]),
    **{
        name: lambda m, s, name=name, **f: getattr(cd, name)(m, s["q"], **f)
        for name in ("gravity_force", "mass_matrix", "inverse_mass_matrix", "potential_energy", "center_of_mass",
                     "body_poses")
    },
    **{
        name: lambda m, s, name=name, **f: getattr(cd, name)(m, s["q"], s["v"], **f)
        for name in ("bias_force", "kinetic_energy", "momentum", "centroidal_momentum", "body_twists")
    },
}  # fmt: skip
ONE_FORM = {"body_accelerations", "joint_axes", "coriolis_matrix", "plus", "rates"}  # without a formulation
# of the contract these are methods of `Equations`, in the formulation's own coordinates
METHODS = {"system", "lift", "project", "rates", "plus", "momentum_equations"}
# each result of `subtrees` is a function, `cd.subtree_kinetic_energy` and `cd.subtree_momentum`; the derivatives have
# tests of their own
SPLIT = {
    "subtrees", "inverse_dynamics_derivatives", "inverse_dynamics_loaded_derivatives", "forward_dynamics_derivatives",
    "changed_axes",
}  # fmt: skip


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are interpreted by CasADi instead of compiled: the same programs, sooner."""

    def call(kernel: Kernel, *args: Any, out: Any = None, threads: int | None = None) -> Any:
        known = vars(kernel)
        if "interpreted" not in known:
            known["interpreted"] = kernel.program.record()
        ports, outputs = kernel.program.inputs, kernel.program.outputs
        arrays = [np.asarray(a, dtype=float) for a in args]
        batch = np.broadcast_shapes(*(a.shape[: a.ndim - len(p.shape)] for a, p in zip(arrays, ports, strict=True)))
        each = [np.broadcast_to(a, batch + p.shape).reshape(-1, *p.shape) for a, p in zip(arrays, ports, strict=True)]
        rows = [known["interpreted"].call([ca.DM(a) for a in row]) for row in zip(*each, strict=True)]
        found = [
            np.array([np.array(row[k]).reshape(port.shape) for row in rows]).reshape(batch + port.shape)
            for k, port in enumerate(outputs)
        ]
        return tuple(found) if len(found) > 1 else found[0]

    monkeypatch.setattr(Kernel, "__call__", call)


def planar_loop() -> cd.Mechanism:
    """A four-bar with a prescribed motion, and every element that keeps to the plane."""
    m = mechanisms.four_bar()
    m.spring("spring", m.ground, "coupler", stiffness=30.0, length=0.2, at2=(0.1, 0.1, 0))
    m.damper("damper", "crank", "rocker", damping=0.7, at1=(0.1, 0, 0))
    m.torsion("torsion", "B", stiffness=2.0, damping=0.1, rest=0.3)
    m.friction("friction", "D", viscous=0.2, coulomb=0.1)
    m.drive("drive", "A", lambda t, q, v: ca.sin(3 * t) - 0.1 * v)
    m.wrench("wrench", "rocker", value=(0, 0, 0.3, 1.0, -2.0, 0))
    return m


def gears() -> cd.Mechanism:
    """Two cranks of a parallelogram, geared, with a motion that time enters."""
    m = mechanisms.parallelogram(cranks=2)
    m.couple("gear", {"A1": 1.0, "A2": -1.0})
    m.torsion("torsion", "A1", stiffness=1.0)
    m.motion("turn", "A1", lambda t: 1.0 + t * t)
    return m


def chain(**joints: cd.JointType) -> cd.Mechanism:
    """Bodies b0, b1, ... in a row, on these joints."""
    m = cd.Mechanism("chain", gravity=(1.0, -2.0, -9.0))
    before = m.ground
    for k, (name, type) in enumerate(joints.items()):
        m.body(f"b{k}", mass=1.0 + k, com=(0.1, 0.2, 0.05 * k), inertia=(0.3, 0.4, 0.5))
        m.joint(name, type, before, f"b{k}", at=(0.3, 0.1, 0.2), armature=0.2 if name == "pin" else 0.0)
        before = f"b{k}"
    return m


def tree() -> cd.Mechanism:
    """A tree with every force element there is."""
    m = chain(pin=cd.Revolute((1, 2, 3)), slide=cd.Prismatic((0, 1, 1)), weld=cd.Rigid())
    m.spring("spring", m.ground, "b1", stiffness=30.0, length=0.2, at2=(0.1, 0.1, 0))
    m.damper("damper", "b0", "b2", damping=0.7, at1=(0.1, 0, 0))
    m.bushing("bushing", "b0", "b1", stiffness=3.0, damping=0.5)
    m.torsion("torsion", "pin", stiffness=2.0, damping=0.1, rest=0.3)
    m.friction("friction", "slide", viscous=0.2, coulomb=0.1)
    m.drive("drive", "slide", lambda t, q, v: ca.sin(3 * t) - 0.1 * v)
    m.wrench("wrench", "b2", value=(0.1, 0, 0.3, 1.0, -2.0, 0), axes="body")
    m.user_force("user", ["b2"], lambda t, poses, twists: [-0.2 * twists[0]])
    stretch = np.linspace(-3.0, 3.0, 9)
    m.nonlinear_spring("pull", m.ground, "b2", tension=cd.table(stretch, stretch**3, ends="linear"), length=0.3)
    m.nonlinear_torsion("back", "pin", effort=cd.table(stretch, np.sinh(stretch), ends="linear"), damping=0.1)
    m.actuator("servo", "slide", kind="motor")
    m.actuate("servo")
    return m


def held() -> cd.Mechanism:
    """A ball on a slider, with a coupling and a constraint of the user."""
    m = chain(pin=cd.Revolute((1, 2, 3)), slide=cd.Prismatic((0, 1, 1)), ball=cd.Spherical())
    m.couple("gear", {"pin": 1.0, "slide": 0.5})
    m.constraint("height", ["b2"], lambda t, poses, twists: poses[0].rotation[2, 0] - 0.1 - 0.01 * t, unit="rad")
    m.torsion("torsion", "pin", stiffness=2.0)
    return m


MODELS: dict[str, Callable[[], cd.Mechanism]] = {
    "plain": mechanisms.double_pendulum, "tree": tree, "held": held, "planar loop": planar_loop, "gears": gears,
}  # fmt: skip

PAIRS = [
    *(("planar loop", formulation) for formulation in FORMULATIONS),
    *(("tree", formulation) for formulation in ("spatial", "newton_euler", "absolute", "relative")),
    *(("held", formulation) for formulation in ("newton_euler", "absolute_body")),
    *(("gears", formulation) for formulation in ("spatial", "points")),
    *(("plain", formulation) for formulation in ("spatial", "relative")),
]


@cache
def model_and_state(name: str) -> tuple[cd.Model, State]:
    rng = np.random.default_rng(5)
    model, t = MODELS[name]().build(), 0.3
    q, v = cd.assemble(model, None, rng.standard_normal(model.nv), t=t)
    a, tau = rng.standard_normal((2, model.nv))
    return model, {"q": q, "v": v, "a": a, "tau": tau, "wrenches": rng.standard_normal((model.nb, 6)), "t": np.array(t)}


def evaluate(graph: Any, state: State) -> np.ndarray:
    """The result of a graph, whose inputs are known by their names; wrenches are zero where it takes none."""
    return np.array(graph(*(state[name] for name in graph.name_in())))


def outcome(compute: Callable[[], Any]) -> tuple[str, Any]:
    """A result, or the kind of the error."""
    try:
        return "", np.asarray(compute(), dtype=float)
    except cd.CardanError as error:
        return type(error).__name__, None


def test_every_element_and_every_name_is_here() -> None:
    used = {force.kind.name for make in MODELS.values() for force in make().build().forces}
    # what rows with laws do depends on modes, which functions find at each state and graphs do not
    assert used == {name for name, kind in FORCES.items() if kind.lawful is None}
    assert set(NAMES) == set(FUNCTIONS) | METHODS | SPLIT, "a new graph needs the function of its name here"


@pytest.mark.parametrize(("name", "formulation"), PAIRS)
def test_every_graph_is_the_function_of_its_name(name: str, formulation: str) -> None:
    model, state = model_and_state(name)
    equations = cd.equations(model, formulation=formulation)
    given = {} if formulation == "spatial" else {"formulation": formulation}
    for quantity in NAMES:
        if quantity in METHODS | SPLIT or (quantity in ONE_FORM and given):
            continue
        loaded = quantity.endswith("_loaded") or quantity == "joint_wrenches"
        at = state if loaded else state | {"wrenches": np.zeros((model.nb, 6))}
        said, function = outcome(lambda: FUNCTIONS[quantity](model, at, **given))  # noqa: B023
        told, graph = outcome(lambda: evaluate(equations.graph(quantity), at))  # noqa: B023
        if quantity.startswith("inverse_dynamics") and model.has_rows:
            assert said == "InputError" and not told  # see the next test
            continue
        assert said == told, (quantity, said, told)
        if not said:
            close(graph.ravel(), function.ravel(), 1e-10)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_inverse_dynamics_with_loops_is_the_graph_less_what_constraints_bear(formulation: str) -> None:
    """Along the motions that the constraints allow, the drives that the function finds are the graph's forces."""
    model, state = model_and_state("planar loop")
    at = state | {"a": cd.forward_dynamics(model, state["q"], state["v"], state["tau"], t=state["t"])}
    force = evaluate(cd.equations(model, formulation=formulation).graph("inverse_dynamics"), at).ravel()
    tau = cd.inverse_dynamics(
        model, at["q"], at["v"], at["a"], driven=["A"], wrenches=at["wrenches"], t=at["t"], formulation=formulation
    )
    J = cd.constraint_jacobian(model, at["q"], t=at["t"])
    motions = np.linalg.svd(J)[2][np.linalg.matrix_rank(J) :]
    assert len(motions) == 1
    close(motions @ tau, motions @ force, 1e-8)


@pytest.mark.parametrize(("name", "formulation"), [*PAIRS[:6], ("held", "absolute_body")])
def test_the_contract_is_the_methods_of_its_names(name: str, formulation: str) -> None:
    model, state = model_and_state(name)
    eq, tree = cd.equations(model, formulation=formulation), cd.equations(model)
    poses, twists = tree.lift(state["q"], state["v"])
    flat = poses.reshape(-1, 16)
    x, u = (np.array(part).ravel() for part in eq.graph("project")(flat, twists))
    for mine, theirs in zip((x, u), eq.project(poses, twists), strict=True):
        close(mine, theirs, 1e-12)
    system = eq.graph("system")(x, u, state["tau"], state["wrenches"], state["t"])
    M, f, J, gamma, beta, phi = (np.array(part) for part in system)
    t = state["t"]
    close(M, eq.M(x, t), 1e-11)
    close(f.ravel(), eq.f(x, u, state["tau"], state["wrenches"], t), 1e-11)
    close(J, eq.J(x, t), 1e-11)
    for mine, theirs in ((gamma, eq.gamma(x, u, t)), (beta, eq.beta(x, t)), (phi, eq.phi(x, t))):
        close(mine.ravel(), theirs, 1e-11)
    close(np.array(eq.graph("rates")(x, u)).ravel(), eq.rates(x, u), 1e-12)
    close(np.array(eq.graph("plus")(x, u)).ravel(), eq.plus(x, u), 1e-12)
    for mine, theirs in zip(eq.graph("lift")(x, u), (flat, twists), strict=True):
        close(np.array(mine), theirs, 1e-10)


def test_joint_wrenches_of_a_tree_with_forces_are_its_reactions() -> None:
    """At the accelerations that the tree has under its drives; and so by hand for a body hung on a spring."""
    model, state = model_and_state("tree")
    loads = {"wrenches": state["wrenches"], "t": state["t"]}
    a = cd.forward_dynamics(model, state["q"], state["v"], state["tau"], **loads)
    for formulation in ("spatial", "newton_euler"):
        f = cd.joint_wrenches(model, state["q"], state["v"], a, formulation=formulation, **loads)
        close(f, cd.reactions(model, state["q"], state["v"], state["tau"], formulation=formulation, **loads), 1e-10)
    m = cd.Mechanism("hung", gravity=(0, 0, -9.81))
    m.body("ball", mass=2.0, inertia=(1, 1, 1))
    m.joint("pin", cd.Revolute((0, 1, 0)), m.ground, "ball")
    m.spring("spring", m.ground, "ball", stiffness=10.0, length=1.0, at1=(0, 0, 1.5))
    close(cd.joint_wrenches(m.build(), [0.0], [0.0], [0.0])[0, 5], 0.0, 1e-12)  # z is along the axis
    close(np.linalg.norm(cd.joint_wrenches(m.build(), [0.0], [0.0], [0.0])[0, 3:]), 2 * 9.81 - 10 * 0.5, 1e-12)


@pytest.mark.parametrize("name", ["planar loop", "tree"])
def test_the_linearisation_of_the_tutorial_is_that_of_the_function(name: str) -> None:
    """docs/tutorial_robotics.md: derivatives of the graph are the differences of `cd.forward_dynamics`."""
    model, state = model_and_state(name)
    given = [ca.SX.sym(port, state[port].size) for port in ("q", "v", "tau", "t")]
    a = cd.equations(model).graph("forward_dynamics")(*given)
    slopes = ca.Function("slopes", given, [ca.jacobian(a, x) for x in given])
    found = slopes(*(state[port] for port in ("q", "v", "tau", "t")))
    h = 1e-6
    for port, slope in zip(("q", "v", "tau", "t"), found, strict=True):
        for k, way in enumerate(np.eye(state[port].size).reshape(-1, *state[port].shape)):
            there, back = (FUNCTIONS["forward_dynamics"](model, state | {port: state[port] + s * way}) for s in (h, -h))
            close((there - back) / (2 * h), np.array(slope)[:, k], 1e-6)
