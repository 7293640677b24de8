"""Write docs/capability.md from what runs: `python docs/make_capability.py`.

Each cell runs forward dynamics of a small mechanism through the kernel of one formulation and precision, and compares
with NumPy's dense solution of `M vdot + J^T lam = f`, `J vdot = gamma` in another formulation's coordinates.
"""

from __future__ import annotations

from pathlib import Path

import casadi as ca
import numpy as np

import cardan as cd
from cardan.formulation.constrained import build_parts
from cardan.mechanisms import random_inertia
from cardan.model.joint import JointType

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
FORMULATIONS = {
    "spatial": ("spatial", "fixed"),
    "newton_euler": ("newton_euler", "fixed"),
    "absolute, fixed frame": ("absolute", "fixed"),
    "absolute, body frame": ("absolute", "body"),
    "relative": ("relative", "fixed"),
}
BOUNDS = {np.float64: 1e-10, np.float32: 1e-4}
STATES = 4
HEAD = f"""# What runs

Made by `python docs/make_capability.py`; do not edit. The tests run every cell again.

Each joint as a joint of the tree and as one that is cut to open a loop, in every formulation, in float64 and float32:
forward dynamics of two bodies, a hinge, and the joint between them, at {STATES} random consistent states with joint
forces and wrenches. `64` and `32` say that the accelerations agree with NumPy's dense solution in other coordinates to
{BOUNDS[np.float64]:g} and {BOUNDS[np.float32]:g} of the largest.
"""


def mechanism(joint: str, role: str) -> cd.Model:
    """A hinge, a body, the joint, another body; where the joint is cut a free joint carries the second body."""
    rng = np.random.default_rng(4)
    m = cd.Mechanism(f"{joint} as {role}")
    for name in ("near", "far"):
        m.body(name, mass=rng.uniform(1, 2), com=rng.uniform(-0.3, 0.3, 3), inertia=random_inertia(rng))
    places = [cd.Pose(rng.uniform(-0.3, 0.3, 3), rpy=rng.uniform(-1, 1, 3)) for _ in range(3)]
    m.joint("hinge", cd.Revolute(axis=(0, 0.2, 1)), m.ground, "near", at=places[0])
    if role == "cut":
        far = places[0] @ places[1] @ places[2].inverse  # where the joint is closed at its neutral position
        m.joint("float", cd.Free(), m.ground, "far", start=(*far.position, *far.quaternion))
    m.joint("joint", JOINTS[joint], "near", "far", at=places[1], child_at=places[2])
    return m.build(cut=["joint"] if role == "cut" else [])


def line(joint: str, role: str) -> str:
    """One row of the table: in each cell `64`, `32`, both, or a dash where neither keeps its bound."""
    model = mechanism(joint, role)
    state = _states(model)
    cells = []
    for words in FORMULATIONS.values():
        expected = _dense(model, "spatial" if words[0] in ("absolute", "relative") else "absolute_body", state)
        kept = [
            f"{np.finfo(kind).bits}"
            for kind, bound in BOUNDS.items()
            if _error(model, words, state, expected, kind) < bound
        ]
        cells.append(" ".join(kept) or "-")
    return f"| {joint} | {role} | {' | '.join(cells)} |"


def header() -> list[str]:
    """The two lines above the rows."""
    return [f"| joint | role | {' | '.join(FORMULATIONS)} |", "|---" * (2 + len(FORMULATIONS)) + "|"]


def page() -> str:
    """The whole page."""
    rows = [line(joint, role) for joint in JOINTS for role in ROLES]
    return "\n".join([HEAD, *header(), *rows]) + "\n"


def _states(model: cd.Model) -> tuple[np.ndarray, ...]:
    """Random consistent q and v, joint forces, and wrenches on the bodies."""
    rng = np.random.default_rng(5)
    guess = rng.uniform(-0.5, 0.5, (STATES, model.nv))
    q = np.tile(model.start(), (STATES, 1))
    q = cd.plus(model, q, cd.assemble(model, q, guess)[1])
    q, v = cd.assemble(model, q, rng.standard_normal((STATES, model.nv)))
    return q, v, rng.standard_normal((STATES, model.nv)), rng.standard_normal((STATES, model.nb, 6))


def _error(
    model: cd.Model, words: tuple[str, str], state: tuple[np.ndarray, ...], expected: np.ndarray, kind: type
) -> float:
    """Of the kernel's accelerations, as a part of the largest."""
    q, v, tau, wrenches = (x.astype(kind) for x in state)
    a = cd.forward_dynamics(model, q, v, tau, wrenches=wrenches, formulation=words[0], frame=words[1])
    if a.dtype != kind:
        raise TypeError(f"forward_dynamics of {kind.__name__} arrays gave {a.dtype}")
    return float(np.abs(a - expected).max() / np.abs(expected).max())


def _dense(model: cd.Model, formulation: str, state: tuple[np.ndarray, ...]) -> np.ndarray:
    """Accelerations (STATES, nv): CasADi interprets a formulation's equations, NumPy solves them whole."""
    q, v, tau = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    wrenches = ca.SX.sym("wrenches", model.nb, 6)
    parts = build_parts(model, formulation, q, v, tau, wrenches)
    vdot = ca.SX.sym("vdot", parts.M.shape[0])
    equations = ca.Function("equations", [q, v, tau, wrenches], [parts.M, parts.f, parts.J, parts.gamma])
    tree = ca.Function("tree", [q, v, vdot], [parts.tree(vdot)])
    found = []
    for one in zip(*state, strict=True):
        M, f, J, gamma = (np.array(x) for x in equations(*one))
        K = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
        solution = np.linalg.lstsq(K, np.concatenate([f, gamma]), rcond=1e-12)[0]
        found.append(np.array(tree(one[0], one[1], solution[: len(M)])).ravel())
    return np.stack(found)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
