"""Write docs/capability.md from what runs: `python docs/make_capability.py`.

Each cell runs forward dynamics of a small mechanism through the kernel of one formulation and precision, and compares
with NumPy's dense solution of `M vdot + J^T lam = f`, `J vdot = gamma` in another formulation's coordinates.
"""

from __future__ import annotations

from pathlib import Path

import casadi as ca
import numpy as np

import cardan as cd
from cardan.formulation.dynamics import parts_at
from cardan.formulation.registry import find_formulation
from cardan.mechanisms import random_inertia
from cardan.model.joint import JointType
from cardan.structure.planarity import find_plane

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
}
ROLES = ("tree", "cut")
FORMULATIONS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative", "points")
PLANAR_ROLES = ("tree", "held", "cut")
PLANAR_AXES = {"normal": (0.0, 0.0, 1.0), "plane": (0.6, 0.8, 0.0)}
NOT_PLANAR = "not planar"
BOUNDS = {np.float64: 1e-10, np.float32: 1e-4}
STATES = 4
HEAD = f"""# What runs

Made by `python docs/make_capability.py`; do not edit. The tests run every cell again.

Each joint as a joint of the tree and as one that is cut to open a loop, in every formulation, in float64 and float32:
forward dynamics of two bodies, a hinge, and the joint between them, at {STATES} random consistent states with joint
forces and wrenches. `64` and `32` say that the accelerations agree with NumPy's dense solution in other coordinates to
{BOUNDS[np.float64]:g} and {BOUNDS[np.float32]:g} of the largest.

All but those with a rigid joint move in space, where [`points`](points.md#in-space) has particles in space. What a
joint is to `points` in the plane is in the second table.
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
    }  # fmt: skip
    return types[joint]


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


def page() -> str:
    """The whole page."""
    rows = [line(joint, role) for joint in JOINTS for role in ROLES]
    planar = [planar_line(joint) for joint in JOINTS]
    return "\n".join([HEAD, *header(), *rows, PLANAR_HEAD, *planar_header(), *planar]) + "\n"


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
    q, v, tau = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    wrenches = ca.SX.sym("wrenches", model.nb, 6)
    found = find_formulation(formulation)
    parts = parts_at(model, found, {"q": q, "v": v, "tau": tau, "wrenches": wrenches})
    vdot = ca.SX.sym("vdot", parts.M.shape[0])
    equations = ca.Function("equations", [q, v, tau, wrenches], [parts.M, parts.f, parts.rows.J, parts.rows.gamma])
    tree = ca.Function("tree", [q, v, vdot], [found.tree_accelerations(parts, vdot)])
    found = []
    for one in zip(*state, strict=True):
        M, f, J, gamma = (np.array(x) for x in equations(*one))
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        solution = np.linalg.lstsq(K, np.concatenate([f, gamma]), rcond=1e-12)[0]
        found.append(np.array(tree(one[0], one[1], solution[: len(M)])).ravel())
    return np.stack(found)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
