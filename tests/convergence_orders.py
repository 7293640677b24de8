"""Order of convergence of each integrator, for each joint, in a tree and in a loop: error over step or tolerance.

Two bodies on a hinge with the joint between them (those of docs/make_capability.py), gravity, a spring, and a drive
that changes with time, so that nothing is symmetric or constant and the times of the stages matter. In a loop the joint
is cut and a free joint carries the second body. The error is that of the final poses and twists of all bodies, so that
neither the sign of a quaternion nor the choice of coordinates matters. It is the root mean square of all entries, each
divided by 1 (1, m, rad/s, m/s) plus its own size, as tolerances are applied. The reference is rk4 with a step so short
that only rounding errors are left.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

import cardan as cd
from cardan.algebra.matrix import matrix, vector
from cardan.model.joint import PRISMATIC, JointType, Kind

ROOT = Path(__file__).resolve().parents[1]
spec = importlib.util.spec_from_file_location("make_capability", ROOT / "docs" / "make_capability.py")
assert spec is not None and spec.loader is not None
capability = importlib.util.module_from_spec(spec)
spec.loader.exec_module(capability)

BEND = 0.8  # 1/m


def _parabola_T(q: Any) -> Any:
    """Couples, the force across the plane of the parabola, and the force along its normal."""
    return matrix([[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, -BEND * q[0]], [0, 0, 0, 1, 0],
                   [0, 0, 0, 0, 1]])  # fmt: skip


# A joint that Cardan does not have: a slide along z = BEND x^2 / 2. Its motion subspace changes as it moves.
PARABOLA = Kind(
    "parabola", 1, 1, (0.0,), E=None, r=lambda q: vector(q[0], 0, BEND * q[0] * q[0] / 2),
    S=lambda q: matrix([[0], [0], [0], [1], [0], [BEND * q[0]]]),
    bias=lambda q, v: vector(0, 0, 0, 0, 0, BEND * v[0] * v[0]), T=_parabola_T,
    phi=lambda R, p: ca.vertcat(PRISMATIC.phi(R, p)[:3], p[1], p[2] - BEND * p[0] * p[0] / 2),
    plus=lambda q, v: q + v, measure=lambda R, p: p[:1], q_units=("m",), v_units=("m/s",),
)  # fmt: skip


@dataclass(frozen=True)
class Parabola(JointType):
    """The user's own joint."""

    kind = PARABOLA


PRESCRIBED = "spherical, hinge prescribed"
# Its parameter is arc length: that of other curves is a spline, whose knots show below 1e-8.
HELIX = cd.Curvilinear(cd.curve(lambda u: [2 * ca.cos(u) - 2, 2 * ca.sin(u), u], start=-3, stop=3))
JOINTS: dict[str, JointType] = {
    **capability.JOINTS,
    "curvilinear": HELIX,
    "user's own": Parabola(),
    PRESCRIBED: cd.Spherical(),
}
PLACES = ("tree", "loop")
DURATION = 0.5  # s
FINEST = 4096  # steps of the reference
ROUNDING = 1e-13  # of the state: smaller errors are rounding's

ORDERS = {"euler": 1, "alpha": 2, "rk4": 4, "dormand_prince": 5}
"""The methods with fixed steps, and the order of each; `dormand_prince` is forced to take fixed steps."""
COUNTS = {
    "euler": (32, 64, 128, 256),
    "alpha": (16, 32, 64, 128),
    "rk4": (8, 16, 32, 64),
    "dormand_prince": (4, 8, 16, 32, 64, 128),
}
"""Numbers of steps that show each method's order. Errors that are mostly rounding are left out."""
CONTROLLED = ("dormand_prince", "gear", "bdf", "adams")
"""The methods that choose their steps by a tolerance."""
TOLERANCES = (1e-5, 1e-7, 1e-9)


@dataclass(frozen=True)
class Case:
    """A model and where it starts."""

    model: cd.Model
    q0: np.ndarray
    v0: np.ndarray

    def end(self, method: str, **settings: Any) -> np.ndarray:
        """Poses (rotations and positions, m) and twists (rad/s, m/s) of all bodies in the end, in one row."""
        run = cd.simulate(
            self.model, DURATION, self.q0, self.v0, method=method, samples=2, progress=False, threads=1, **settings
        )
        q, v = run.q[-1], run.v[-1]
        return np.concatenate([np.ravel(x) for x in (*cd.body_poses(self.model, q), cd.body_twists(self.model, q, v))])

    def stepped(self, method: str, count: int) -> np.ndarray:
        """Final state after `count` equal steps."""
        h = DURATION / count
        loose = {"rtol": 1e9, "atol": 1e9, "max_step": h} if method == "dormand_prince" else {}
        return self.end(method, step=h, **loose)


@cache
def case(joint: str, place: str) -> Case:
    """The mechanism with a joint in a place, and a consistent state of it."""
    m = capability.assembly(f"{joint} in a {place}", JOINTS[joint], "cut" if place == "loop" else "tree")
    m.spring("spring", m.ground, "far", stiffness=60.0, length=0.3, at1=(0.6, 0.3, -0.4), at2=(0.2, 0.1, 0.15))
    if joint == PRESCRIBED:
        m.motion("motion", "hinge", lambda t: 0.3 * ca.sin(4 * t))
    else:
        m.drive("drive", "hinge", lambda t, q, v: 3 * ca.cos(5 * t))
    model = m.build(cut=["joint"] if place == "loop" else [])
    guess, start = np.random.default_rng(1).uniform(-2, 2, model.nv), model.start()
    reach = model.joint("joint").kind.reach
    if reach and place == "tree":  # not at an end, beyond which the motion is smooth no more
        start[model.q_slice("joint")] = [sum(ends) / 2 for ends in reach]
    return Case(model, *cd.assemble(model, start, guess))


@cache
def truth(joint: str, place: str) -> np.ndarray:
    """Reference for the final state."""
    return case(joint, place).stepped("rk4", FINEST)


def takes(method: str, joint: str, place: str) -> bool:
    """Whether a method can integrate the mechanism; those of CVODE take trees without couplings only."""
    return method not in ("bdf", "adams") or (place == "tree" and joint != PRESCRIBED)


def step_errors(joint: str, place: str, method: str) -> np.ndarray:
    """Errors in the end for each number of steps."""
    return np.array([_error(joint, place, method, count=count) for count in COUNTS[method]])


def tolerance_errors(joint: str, place: str, method: str) -> np.ndarray:
    """Errors in the end for each tolerance, relative and absolute."""
    return np.array([_error(joint, place, method, tolerance=x) for x in TOLERANCES])


def observed_order(errors: np.ndarray) -> float:
    """Binary logarithm of the ratio of errors over the last halving of the step that rounding does not hide."""
    seen = errors[np.minimum.accumulate(errors > ROUNDING)]
    return float(np.log2(seen[-2] / seen[-1]))


def _error(joint: str, place: str, method: str, count: int = 0, tolerance: float = 0.0) -> float:
    here, exact = case(joint, place), truth(joint, place)
    end = here.stepped(method, count) if count else here.end(method, rtol=tolerance, atol=tolerance)
    return float(np.sqrt(np.mean(((end - exact) / (1 + np.abs(exact))) ** 2)))
