"""Linear models with eigenvalues of many four-bars: Cardan in one call, SymPy's Linearizer in a loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import cardan as cd
from benchmarks.report import Run
from benchmarks.tables import number, table, times
from benchmarks.timing import Block, interleave

SYSTEMS, IN_LOOP = 4096, 64
BASE, CRANK, COUPLER, ROCKER, DENSITY, GRAVITY = 1.0, 0.4, 0.9, 0.7, 2.0, 9.81
MASSES = ("crank.mass", "coupler.mass", "rocker.mass")


def four_bars(systems: int) -> tuple[cd.Model, np.ndarray, np.ndarray]:
    """Four-bars with masses, crank angles and speeds of their own, moving: the model, q and v (systems, 3)."""
    rng = np.random.default_rng(0)
    free = cd.mechanisms.four_bar().build().free(*MASSES)
    lengths = np.array([CRANK, COUPLER, ROCKER])
    masses = DENSITY * lengths * rng.uniform(0.5, 2.0, (systems, 3))
    model = free.at({name: masses[:, k] for k, name in enumerate(MASSES)})
    angle = rng.uniform(0, 2 * np.pi, systems)
    B = CRANK * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    to_D = np.array([BASE, 0.0]) - B
    d = np.linalg.norm(to_D, axis=-1)
    turn = np.arctan2(to_D[:, 1], to_D[:, 0])
    coupler = turn + np.arccos((COUPLER**2 + d**2 - ROCKER**2) / (2 * COUPLER * d))
    C = B + COUPLER * np.stack([np.cos(coupler), np.sin(coupler)], axis=-1)
    rocker = np.arctan2(C[:, 1], C[:, 0] - BASE)
    q = np.stack([angle, coupler - angle, rocker], axis=-1)
    J = cd.constraint_jacobian(model, q)
    v = np.ones((systems, 3)) * rng.uniform(-3, 3, (systems, 1))
    v[:, 1:] = -(np.linalg.pinv(J[:, :, 1:]) @ (J[:, :, :1] @ v[:, :1, None]))[..., 0]
    return model, q, v


def cardan_eigenvalues(model: cd.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """In one call."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are moving
        return cd.modes(model, (q, v), coordinates=["A"]).eigenvalues


def sympy_state_matrix() -> Callable[..., np.ndarray]:
    """`A` (2, 2) of one four-bar as a function of q, v, a (3,) and masses (3,): Kane's method, linearised."""
    import sympy as sp
    import sympy.physics.mechanics as me

    t, built = me.dynamicsymbols._t, cd.mechanisms.four_bar().build()
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    m = sp.symbols("m1:4")
    lengths = [sp.Float(x) for x in (CRANK, COUPLER, ROCKER)]
    N = me.ReferenceFrame("N")
    angles, rates = (q[0], q[0] + q[1], q[2]), (u[0], u[0] + u[1], u[2])
    frames = [N.orientnew(f"F{k}", "Axis", (angle, N.z)) for k, angle in enumerate(angles)]
    for frame, rate in zip(frames, rates, strict=True):
        frame.set_ang_vel(N, rate * N.z)
    O, D = me.Point("O"), me.Point("D")
    D.set_pos(O, sp.Float(BASE) * N.x)
    for ground in (O, D):
        ground.set_vel(N, 0)
    B = O.locatenew("B", lengths[0] * frames[0].x)
    B.v2pt_theory(O, N, frames[0])
    begins, bodies, loads, ends = (O, B, D), [], [], []
    for k, (first, frame) in enumerate(zip(begins, frames, strict=True)):
        G = first.locatenew(f"G{k}", lengths[k] / 2 * frame.x)
        G.v2pt_theory(first, N, frame)
        rod = me.inertia(frame, 0, 0, sp.Float(built.bodies[k].inertia[2, 2]))
        bodies.append(me.RigidBody(f"b{k}", G, frame, m[k], (rod, G)))
        loads.append((G, -m[k] * GRAVITY * N.y))
        ends.append(first.locatenew(f"E{k}", lengths[k] * frame.x))
    loop = ends[1].pos_from(ends[2])
    closed = [loop.dot(N.x), loop.dot(N.y)]
    kinematic = {x.diff(t): w for x, w in zip(q, u, strict=True)}
    kane = me.KanesMethod(
        N, [q[0]], [u[0]], kd_eqs=[x.diff(t) - w for x, w in zip(q, u, strict=True)], q_dependent=q[1:],
        u_dependent=u[1:], configuration_constraints=closed,
        velocity_constraints=[sp.diff(x, t).subs(kinematic) for x in closed],
    )  # fmt: skip
    kane.kanes_equations(bodies, loads)
    linearizer = kane.to_linearizer(linear_solver="LU")
    M, A, _ = linearizer.linearize()
    numbers = sp.symbols("x1:10")
    plain = dict(zip([w.diff(t) for w in u], numbers[6:], strict=True))
    plain |= dict(zip([x.diff(t) for x in q], numbers[3:6], strict=True))
    plain |= dict(zip([*q, *u], numbers[:6], strict=True))
    written = sp.lambdify([*numbers, *m], [M.subs(plain), A.subs(plain)], modules="numpy", cse=True)
    P = np.array(linearizer.perm_mat.T, dtype=float)

    def state_matrix(q: np.ndarray, v: np.ndarray, a: np.ndarray, masses: np.ndarray) -> np.ndarray:
        M, A = written(*q, *v, *a, *masses)
        return P @ np.linalg.solve(M, A)

    return state_matrix


def sympy_eigenvalues(
    state_matrix: Callable[..., np.ndarray], q: Any, v: Any, a: Any, masses: Any, count: int
) -> np.ndarray:
    """One after the other."""
    return np.array([np.linalg.eigvals(state_matrix(q[k], v[k], a[k], masses[k])) for k in range(count)])


def section(run: Run) -> str:
    """Microseconds a four-bar and their ratio."""
    systems = 256 if run.quick else SYSTEMS
    model, q, v = four_bars(systems)
    masses, a = np.asarray(model.values), cd.forward_dynamics(model, q, v)
    state_matrix = sympy_state_matrix()
    ours = cardan_eigenvalues(model, q, v)
    theirs = sympy_eigenvalues(state_matrix, q, v, a, masses, IN_LOOP)
    error = max(
        float(np.abs(np.sort_complex(x) - np.sort_complex(y)).max() / np.abs(x).max())
        for x, y in zip(ours[:IN_LOOP], theirs, strict=True)
    )
    if error > 1e-8:
        run.failures.append(f"linear models: Cardan and SymPy differ by {error:.0e}")
    blocks = {
        "cardan": Block(partial(cardan_eigenvalues, model, q, v), systems),
        "sympy": Block(partial(sympy_eigenvalues, state_matrix, q, v, a, masses, IN_LOOP), IN_LOOP),
    }
    timing = interleave(blocks, rounds=run.rounds, least=run.least)
    ratio = timing["cardan"].times_faster_than(timing["sympy"])
    if not run.quick:
        run.at_least("linear models of four-bars with eigenvalues", 100.0, ratio, times)
    row = (
        f"{systems:,}", number(1e6 * timing["cardan"].median), number(1e6 * timing["sympy"].median), times(ratio),
        f"{error:.0e}",
    )  # fmt: skip
    head = ("four-bars", "Cardan, us each", "SymPy, us each", "ratio", "largest difference of an eigenvalue")
    text = (
        "## Linear models\n\nState matrix and eigenvalues of moving four-bars of different masses: `cd.modes` in one "
        f"call, against a loop over SymPy's `KanesMethod.to_linearizer`, lambdified with `cse=True`, "
        f"`numpy.linalg.solve` and `eigvals`, over {IN_LOOP} of them. SymPy is given the accelerations.\n\n"
    )
    return text + table(head, [row]) + "\n"
