"""Write docs/capability.md from what runs: `python docs/make_capability.py`.

Each cell runs forward dynamics of a small mechanism through the kernel of one formulation and precision, and compares
with NumPy's dense solution of `M vdot + J^T lam = f`, `J vdot = gamma` in another formulation's coordinates. A cell of
the table of derivatives compares `by=` with differences of that solution, extrapolated to step zero, with the largest
steps for which they do not depend on the steps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import casadi as ca
import numpy as np

import cardan as cd
from cardan.formulation.dynamics import law_motion_at, parts_at
from cardan.formulation.law_motion import frictions
from cardan.formulation.registry import find_formulation
from cardan.mechanisms import random_inertia
from cardan.model.joint import JointType
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import symbolic
from cardan.structure.planarity import find_plane, prepare
from cardan.structure.rows import kept_rows

PAGE = Path(__file__).with_name("capability.md")
JOINTS: dict[str, JointType] = {
    "rigid": cd.Rigid(),
    "revolute": cd.Revolute(axis=(0.2, 0.3, 1)),
    "prismatic": cd.Prismatic(axis=(0.2, 1, 0.4)),
    "screw": cd.Screw(axis=(1, 0.2, 0.1), pitch=0.2),
    "universal": cd.Universal(),
    "cylindrical": cd.Cylindrical(axis=(0.5, 0.2, 1)),
    "spherical": cd.Spherical(),
    "planar": cd.Planar(normal=(0.3, 0.2, 1)),
    "free": cd.Free(),
    "curvilinear": cd.Curvilinear(cd.curve(lambda u: [2 * ca.cos(u) - 2, ca.sin(u), ca.sin(u / 2)], start=-3, stop=3)),
}
ROLES = ("tree", "cut")
FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative", "points")
PLANAR_ROLES = ("tree", "held", "cut")
PLANAR_AXES = {"normal": (0.0, 0.0, 1.0), "plane": (0.6, 0.8, 0.0)}
NOT_PLANAR = "not planar"
BOUNDS = {np.float64: 1e-10, np.float32: 1e-4}
STATES = 4
HEAD = f"""# What runs

Made by `python docs/make_capability.py`; do not edit. The tests run every cell again, of derivatives some.

Each joint as a joint of the tree and as one that is cut to open a loop, in every formulation, in float64 and float32:
forward dynamics of two bodies, a hinge, and the joint between them, at {STATES} random consistent states with joint
forces and wrenches. `64` and `32` say that the accelerations agree with NumPy's dense solution in other coordinates to
{BOUNDS[np.float64]:g} and {BOUNDS[np.float32]:g} of the largest.

All but those with a rigid joint move in space, where [`points`](points.md#in-space) has particles in space. What a
joint is to `points` in the plane is in the second table.
"""
BY = ("q", "v", "tau", "wrenches", "parameters")
FREED = ("far.mass", "joint.at")
CHARTS = {"tree": ("tangent",), "cut": ("tangent", "independent")}
DERIVATIVE_BOUND = 1e-9
DERIVATIVE_STATES = 2
STEPS = (0.08, 0.02, 0.005, 1e-3, 3e-4)
DERIVATIVE_HEAD = f"""
## Derivatives

The same mechanisms: forward dynamics by {", ".join(f"`{name}`" for name in BY)}, the free parameters being
{" and ".join(f"`{name}`" for name in FREED)}, at {DERIVATIVE_STATES} of the states. `all` says that every one of these
derivatives agrees with differences to {DERIVATIVE_BOUND:g} of its largest entry or of 1. They are those of
NumPy's dense solution, extrapolated to step zero. Along the tangent of a loop it is the solution of the same
formulation, since each has its own equations where loops are open; else it is that in other coordinates.
`points` in the plane is compared along the directions that stay there.
`independent`: along the constraints, differences between states that are closed again.
"""
LAW_BOUND = 1e-9
LAW_HEAD = f"""
## Stops, locks and friction

The same mechanisms with rows with laws in the joint: limits of every coordinate, or of angle, swing, twist and
position, a lock, and friction that sticks, by a bound and by the joint's reaction. `all` says that gaps, rates,
accelerations, what the forces of the rows do to these (Delassus' matrix), and the reactions that press friction agree
with those in other coordinates, to {LAW_BOUND:g} of the largest, at {DERIVATIVE_STATES} of the states.
"""
PLANAR_HEAD = """
## What a joint is to `points` in the plane

The hinge is along the plane's normal; the axis of the joint (of a universal joint the first, of a planar joint the
normal) along the normal, or in the plane. `tree`: nothing else holds the body. `held`: a joint of the tree, in a loop
that keeps the body in the plane; one that cannot move there is rigid. `cut`: the joint closes the loop.
"""


def mechanism(joint: str, role: str) -> cd.Model:
    """The assembly with a joint of the table."""
    return assembly(f"{joint} as {role}", JOINTS[joint], role).build(cut=["joint"] if role == "cut" else [])


def assembly(name: str, joint: JointType, role: str) -> cd.Mechanism:
    """A hinge, a body, the joint, another body; where the joint is cut a free joint carries the second body."""
    rng = np.random.default_rng(4)
    m = cd.Mechanism(name)
    for body in ("near", "far"):
        m.body(body, mass=rng.uniform(1, 2), com=rng.uniform(-0.3, 0.3, 3), inertia=random_inertia(rng))
    places = [cd.Pose(rng.uniform(-0.3, 0.3, 3), rpy=rng.uniform(-1, 1, 3)) for _ in range(3)]
    m.joint("hinge", cd.Revolute(axis=(0, 0.2, 1)), m.ground, "near", at=places[0])
    if role == "cut":
        far = places[0] @ places[1] @ places[2].inverse  # where the joint is closed at its neutral position
        m.joint("float", cd.Free(), m.ground, "far", start=(*far.position, *far.quaternion))
    m.joint("joint", joint, "near", "far", at=places[1], child_at=places[2])
    return m


def line(joint: str, role: str) -> str:
    """One row of the table: in each cell `64`, `32`, both, or a dash where neither keeps its bound."""
    model = mechanism(joint, role)
    state = _states(model)
    cells = [_kept(model, formulation, state) for formulation in FORMULATIONS]
    return f"| {joint} | {role} | {' | '.join(cells)} |"


def derivative_line(joint: str, role: str, chart: str) -> str:
    """One row of the table of derivatives: `all`, or those that are right, or a dash."""
    cells = [derivative_cell(joint, role, chart, formulation) for formulation in FORMULATIONS]
    return f"| {joint} | {role} | {chart} | {' | '.join(cells)} |"


def derivative_cell(joint: str, role: str, chart: str, formulation: str) -> str:
    """The names by which the derivatives keep their bound."""
    model, (q, v, tau, wrenches) = _derivative_case(joint, role)
    found = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches, formulation=formulation, by=BY, chart=chart)
    other = "absolute_body" if find_formulation(formulation).in_tree else "spatial"
    expected = _expected(joint, role, chart, formulation if role == "cut" and chart == "tangent" else other)
    ways = [_directions(model, formulation, chart, one) for one in q]
    good = []
    for name in BY:
        mine, yours = found[name].reshape(len(q), model.nv, -1), expected[name]
        if name in ("q", "v") and chart == "tangent":
            mine = mine @ np.array(ways)
        if np.abs(mine - yours).max(initial=0.0) <= DERIVATIVE_BOUND * np.abs(yours).max(initial=1.0):
            good.append(name)
    return "all" if len(good) == len(BY) else " ".join(good) or "-"


@cache
def _derivative_case(joint: str, role: str) -> tuple[cd.Model, tuple[np.ndarray, ...]]:
    """The mechanism with free parameters, and states."""
    model = mechanism(joint, role).free(*FREED)
    return model, tuple(x[:DERIVATIVE_STATES] for x in _states(model))


@cache
def _expected(joint: str, role: str, chart: str, way: str) -> dict[str, np.ndarray]:
    """Derivatives (states, nv, columns) by each name, from differences of a formulation's dense solution."""
    model, states = _derivative_case(joint, role)
    found = [_differences(model, way, chart, one) for one in zip(*states, strict=True)]
    return {name: np.array([x[name] for x in found]) for name in BY}


def lawful_mechanism(joint: str, role: str) -> cd.Model:
    """The assembly with stops, a lock and friction in the joint."""
    m = assembly(f"{joint} as {role} with laws", JOINTS[joint], role)
    kind = JOINTS[joint].kind
    if kind.nq == kind.nv:
        m.stop("limits", "joint", lower=[-3.0] * kind.nv, upper=[3.0] * kind.nv)
    else:
        m.stop("limits", "joint", angle=3.0, swing=2.9, twist=2.8, axis=(0.2, 0.3, 1))
    if joint == "free":
        m.stop("positions", "joint", lower=(-5, -5, -5), upper=(5, None, 5))
    m.lock("lock", "joint")
    m.friction("rub", "joint", coulomb=0.3, stick=True)
    if kind.freedoms_removed:
        radius = {"radius": 0.1} if "rad/s" in kind.v_units else {}
        m.friction("pressed", "joint", coefficient=0.2, stick=True, **radius)
    return m.build(cut=["joint"] if role == "cut" else [])


def law_line(joint: str, role: str) -> str:
    """One row of the table of rows with laws."""
    return f"| {joint} | {role} | {' | '.join(law_cell(joint, role, name) for name in FORMULATIONS)} |"


def law_cell(joint: str, role: str, formulation: str) -> str:
    """`all`, or what does not keep its bound."""
    found = _laws(joint, role, formulation)
    other = _laws(joint, role, "absolute_body" if find_formulation(formulation).in_tree else "spatial")
    off = {name: np.abs(found[name] - other[name]).max() / np.abs(other[name]).max(initial=1.0) for name in found}
    return " ".join(f"not {name}" for name, x in off.items() if not x <= LAW_BOUND) or "all"


@cache
def _laws(joint: str, role: str, formulation: str) -> dict[str, np.ndarray]:
    """What the rows with laws are at some states, by CasADi's interpreter."""
    model = lawful_mechanism(joint, role)
    states = [x[:DERIVATIVE_STATES] for x in _states(model)]
    inputs = {"q": ca.SX.sym("q", model.nq), "v": ca.SX.sym("v", model.nv), "tau": ca.SX.sym("tau", model.nv)}
    inputs["wrenches"] = ca.SX.sym("wrenches", model.nb, 6)
    way = formulation_of(model, formulation)
    prepare(model, way)
    motion = law_motion_at(symbolic(model)[0], way, kept_rows(model, way), inputs)
    pressing = [part for f in frictions(model) if f.joint is not None for part in motion.pressing(f)]
    parts = {"gaps": motion.rows.phi, "rates": motion.u, "b": motion.rate[0], "W": motion.rate[1]}
    parts["reactions"] = ca.horzcat(ca.SX(3, 1), *pressing)
    graph = ca.Function("laws", [*inputs.values()], [ca.densify(x) for x in parts.values()])
    values = [graph(*one) for one in zip(*states, strict=True)]
    return {name: np.array([np.array(x[k]) for x in values]) for k, name in enumerate(parts)}


def law_rows() -> list[tuple[str, str]]:
    """Joint and role of each row of the table of rows with laws."""
    return [(joint, role) for joint, type in JOINTS.items() if type.kind.nv for role in ROLES]


def planar_mechanism(joint: str, role: str, axis: str) -> cd.Model:
    """A hinge, a body, the joint, another body; held or cut, a planar joint carries the second too."""
    m = cd.Mechanism(f"planar {joint} {role} {axis}", gravity=(1.0, -9.0, 2.0))
    for k, name in enumerate(("near", "far")):
        m.body(name, mass=1.0 + k, com=(0.2, 0.1 * k, 0.05), inertia=cd.inertia.box(1.0 + k, (0.3, 0.2, 0.1)))
    m.joint("hinge", cd.Revolute(), m.ground, "near", start=0.4)
    if role != "tree":
        c, s = np.cos(0.4), np.sin(0.4)
        start = (0.5 * c + 0.1 * s - 0.3 * c, 0.5 * s - 0.1 * c - 0.3 * s, 0.4)
        m.joint("float", cd.Planar(x=(1, 0, 0)), m.ground, "far", start=start)
    m.joint("joint", planar_joint(joint, PLANAR_AXES[axis]), "near", "far", at=(0.5, -0.1, 0), child_at=(0.3, 0, 0))
    return m.build(cut={"tree": [], "held": ["float"], "cut": ["joint"]}[role])


def planar_joint(joint: str, axis: tuple[float, ...]) -> JointType:
    """A joint with its axis along the normal or in the plane."""
    types: dict[str, JointType] = {
        "rigid": cd.Rigid(), "revolute": cd.Revolute(axis), "prismatic": cd.Prismatic(axis),
        "screw": cd.Screw(axis, pitch=0.1), "universal": cd.Universal(axis, np.cross(axis, (0.0, 0.3, 0.9))),
        "planar": cd.Planar(axis), "cylindrical": cd.Cylindrical(axis), "spherical": cd.Spherical(), "free": cd.Free(),
        "curvilinear": _flat_curve(axis),
    }  # fmt: skip
    return types[joint]


def _flat_curve(axis: tuple[float, ...]) -> JointType:
    """A joint along an arc in the plane, or along a line out of it for an axis in the plane; x is along it."""
    out = 0.0 if axis == PLANAR_AXES["normal"] else 0.3
    return cd.Curvilinear(cd.curve(lambda u: [ca.sin(u), 1 - ca.cos(u), out * u], start=-1, stop=1))


def planar_role(model: cd.Model) -> str:
    """What the joint of `planar_mechanism` is in the plane."""
    try:
        planar = find_plane(model)
    except cd.ModelError:
        return NOT_PLANAR
    j = model.joint_names.index("joint")
    return next((part.role for part in (*planar.links, *planar.cuts) if part.joint == j), "rigid")


def planar_line(joint: str) -> str:
    """One row of the second table."""
    cells = [planar_role(planar_mechanism(joint, role, axis)) for role in PLANAR_ROLES for axis in PLANAR_AXES]
    return f"| {joint} | {' | '.join(cells)} |"


def planar_header() -> list[str]:
    """The two lines above the rows of the second table."""
    where = {"normal": "along the normal", "plane": "in the plane"}
    names = [f"{role}, {where[axis]}" for role in PLANAR_ROLES for axis in PLANAR_AXES]
    return [f"| joint | {' | '.join(names)} |", "|---" * (1 + len(names)) + "|"]


def header() -> list[str]:
    """The two lines above the rows."""
    return [f"| joint | role | {' | '.join(FORMULATIONS)} |", "|---" * (2 + len(FORMULATIONS)) + "|"]


def derivative_header() -> list[str]:
    """The two lines above the rows of derivatives."""
    return [f"| joint | role | chart | {' | '.join(FORMULATIONS)} |", "|---" * (3 + len(FORMULATIONS)) + "|"]


def derivative_rows() -> list[tuple[str, str, str]]:
    """Joint, role and chart of each row of derivatives."""
    return [(joint, role, chart) for joint in JOINTS for role in ROLES for chart in CHARTS[role]]


def page() -> str:
    """The whole page."""
    rows = [line(joint, role) for joint in JOINTS for role in ROLES]
    derivatives = [derivative_line(*row) for row in derivative_rows()]
    planar = [planar_line(joint) for joint in JOINTS]
    laws = [law_line(*row) for row in law_rows()]
    tables = [HEAD, *header(), *rows, DERIVATIVE_HEAD, *derivative_header(), *derivatives, LAW_HEAD, *header(), *laws]
    return "\n".join([*tables, PLANAR_HEAD, *planar_header(), *planar]) + "\n"


def _kept(model: cd.Model, formulation: str, state: tuple[np.ndarray, ...]) -> str:
    """The precisions that keep their bounds, or a dash."""
    expected = _dense(model, "absolute_body" if find_formulation(formulation).in_tree else "spatial", state)
    good = {kind: _error(model, formulation, state, expected, kind) < bound for kind, bound in BOUNDS.items()}
    return " ".join(f"{np.finfo(kind).bits}" for kind in BOUNDS if good[kind]) or "-"


def _states(model: cd.Model) -> tuple[np.ndarray, ...]:
    """Random consistent q and v, joint forces, and wrenches on the bodies."""
    rng = np.random.default_rng(5)
    guess = rng.uniform(-0.5, 0.5, (STATES, model.nv))
    q = np.tile(model.start(), (STATES, 1))
    q = cd.plus(model, q, cd.assemble(model, q, guess)[1])
    q, v = cd.assemble(model, q, rng.standard_normal((STATES, model.nv)))
    return q, v, rng.standard_normal((STATES, model.nv)), rng.standard_normal((STATES, model.nb, 6))


def _error(model: cd.Model, formulation: str, state: tuple[np.ndarray, ...], expected: np.ndarray, kind: type) -> float:
    """Of the kernel's accelerations, as a part of the largest."""
    q, v, tau, wrenches = (x.astype(kind) for x in state)
    a = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches, formulation=formulation)
    if a.dtype != kind:
        raise TypeError(f"forward_dynamics of {kind.__name__} arrays gave {a.dtype}")
    return float(np.abs(a - expected).max() / np.abs(expected).max())


def _dense(model: cd.Model, formulation: str, state: tuple[np.ndarray, ...]) -> np.ndarray:
    """Accelerations (STATES, nv): CasADi interprets a formulation's equations, NumPy solves them whole."""
    solve = _solution(model, formulation)
    return np.stack([solve(*one, model.parameters.nominal) for one in zip(*state, strict=True)])


def _solution(model: cd.Model, formulation: str) -> Callable[..., np.ndarray]:
    """Accelerations (nv,) of the tree at `q`, `v`, `tau`, `wrenches`, and values of the free parameters."""
    q, v, tau = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    wrenches = ca.SX.sym("wrenches", model.nb, 6)
    way = formulation_of(model, formulation)
    prepare(model, way)
    written, p = symbolic(model)
    parts = parts_at(written, way, {"q": q, "v": v, "tau": tau, "wrenches": wrenches})
    vdot = ca.SX.sym("vdot", parts.M.shape[0])
    rows = parts.rows
    equations = ca.Function("equations", [q, v, tau, wrenches, p], [parts.M, parts.f, rows.J, rows.gamma])
    tree = ca.Function("tree", [q, v, vdot, p], [way.tree_accelerations(parts, vdot)])

    def solve(q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray, p: np.ndarray) -> np.ndarray:
        M, f, J, gamma = (np.array(x) for x in equations(q, v, tau, wrenches, p))
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        solution = np.linalg.lstsq(K, np.concatenate([f, gamma]), rcond=1e-12)[0]
        return np.array(tree(q, v, solution[: len(M)], p)).ravel()

    return solve


def _differences(model: cd.Model, way: str, chart: str, state: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    """Derivatives (nv, columns) by each name of the dense solution at a state, from differences."""
    solve, place = _solution(model, way), _closing(model) if chart == "independent" else _moving(model)
    at = dict(zip(BY, (*state, model.parameters.nominal), strict=True))
    found = {}
    for name in BY:
        steps = _directions(model, way, chart, at["q"]).T if name in ("q", "v") else np.eye(at[name].size)
        columns = [_at_zero_step(lambda s, name=name, d=d: solve(*place(at, name, s * d))) for d in steps]
        found[name] = np.array([column for column, _ in columns]).reshape(len(steps), model.nv).T
        off = max([off for _, off in columns], default=0.0)
        if not off <= DERIVATIVE_BOUND / 2 * np.abs(found[name]).max(initial=1.0):
            raise ArithmeticError(f"{model.name}, {chart}: differences by {name} depend on steps by {off:.3g}")
    return found


def _directions(model: cd.Model, way: str, chart: str, q: np.ndarray) -> np.ndarray:
    """Rates (nv, n) along which derivatives by `q` and `v` are compared: all, the independent, or those in the plane.

    Out of the plane `points` has no equations where it is planar.
    """
    if chart == "independent":
        return np.eye(model.nv)[:, [model.coordinate_names.index(name) for name in cd.independent_coordinates(model)]]
    if not formulation_of(model, way).is_planar:
        return np.eye(model.nv)
    axes = find_plane(model).ground.axes
    leaves = np.block([[axes[:2], np.zeros((2, 3))], [np.zeros((1, 3)), axes[2:]]])
    out = [leaves @ cd.jacobian(model, q, body, axes="ground") for body in model.body_names]
    _, size, rates = np.linalg.svd(np.concatenate(out))
    return rates[int((size > 1e-9).sum()) :].T


def _at_zero_step(value: Callable[[float], np.ndarray]) -> tuple[np.ndarray, float]:
    """Derivative at zero from differences, with the steps on which it depends least, and how much it does."""
    best: tuple[np.ndarray, float] = np.array(np.nan), np.inf
    for h in STEPS:
        try:
            found = [_extrapolated(value, h), _extrapolated(value, 0.6 * h)]
        except np.linalg.LinAlgError:  # nothing is there so far away
            continue
        off = float(np.abs(found[0] - found[1]).max(initial=0.0))
        if off < best[1]:
            best = found[1], off
        if off <= DERIVATIVE_BOUND / 100 * np.abs(found[1]).max(initial=1.0):
            break
    return best


def _extrapolated(value: Callable[[float], np.ndarray], h: float) -> np.ndarray:
    """Central differences with steps h, h/2, h/4, h/8, h/16, extrapolated to zero."""
    table = [(value(h / 2**k) - value(-h / 2**k)) / (2 * h / 2**k) for k in range(5)]
    for j in range(1, 5):
        table = [fine + (fine - coarse) / (4**j - 1) for coarse, fine in pairwise(table)]
    return table[0]


Place = Callable[[dict[str, np.ndarray], str, np.ndarray], tuple[np.ndarray, ...]]


def _moving(model: cd.Model) -> Place:
    """Arguments with one of them moved by a step; `q` along constant rates."""

    def place(at: dict[str, np.ndarray], name: str, step: np.ndarray) -> tuple[np.ndarray, ...]:
        there = cd.plus(model, at["q"], step) if name == "q" else at[name] + step.reshape(at[name].shape)
        return tuple((at | {name: there}).values())

    return place


def _closing(model: cd.Model) -> Place:
    """The same, and the dependent coordinates and rates follow: Newton's method on `phi`, then `J v = 0`."""
    q, v = ca.SX.sym("q", model.nq), ca.SX.sym("v", model.nv)
    written, p = symbolic(model)
    rows = parts_at(written, find_formulation("spatial"), {"q": q, "v": v}).rows
    graph = ca.Function("rows", [q, p], [rows.phi, rows.J])
    free = [model.coordinate_names.index(name) for name in cd.independent_coordinates(model)]
    rest = [k for k in range(model.nv) if k not in free]
    moved = _moving(model)

    def place(at: dict[str, np.ndarray], name: str, step: np.ndarray) -> tuple[np.ndarray, ...]:
        q, v, tau, wrenches, p = moved(at, name, step)
        for _ in range(12):
            phi, J = (np.array(x) for x in graph(q, p))
            if np.abs(phi).max(initial=0.0) < 1e-15:
                break
            change = np.zeros(model.nv)
            change[rest] = -np.linalg.lstsq(J[:, rest], phi.ravel(), rcond=1e-12)[0]
            q = cd.plus(model, q, change)
        J, v = np.array(graph(q, p)[1]), v.copy()
        v[rest] = -np.linalg.lstsq(J[:, rest], J[:, free] @ v[free], rcond=1e-12)[0]
        return q, v, tau, wrenches, p

    return place


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
