"""Equations as SymPy matrices: read from Cardan's graph, compared with SymPy's own mechanics package."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from sympy.physics import mechanics as me
from sympy.physics.mechanics import models

import cardan as cd
from benchmarks.report import Run
from benchmarks.tables import ms, scientific, table, times
from benchmarks.timing import Block, interleave

LINKS = 5


def pendulum_on_cart(links: int) -> cd.Model:
    """Uniform rods of one metre, hinged end to end on a cart along x; hinges about y, gravity along -z."""
    m = cd.Mechanism(f"pendulum_on_cart_{links}")
    before = m.body("cart", mass=1.0, inertia=cd.inertia.box(1.0, (0.4, 0.2, 0.2)))
    m.joint("rail", cd.Prismatic(axis=(1, 0, 0)), m.ground, before)
    for k in range(1, links + 1):
        rod = m.body(f"rod{k}", mass=1.0, com=(0, 0, 0.5), inertia=cd.inertia.rod(1.0, 1.0, axis="z"))
        m.joint(f"hinge{k}", cd.Revolute(axis=(0, 1, 0)), before, rod, at=(0, 0, 1.0 if k > 1 else 0))
        before = rod
    return m.build()


def by_kane(links: int) -> tuple[Any, Any, list[Any], list[Any], dict[Any, float]]:
    """The same mechanism in the same coordinates by SymPy: mass matrix, forcing, q, u, values of the parameters."""
    q, u = me.dynamicsymbols(f"q:{links + 1}"), me.dynamicsymbols(f"u:{links + 1}")
    m, c, l, I = (sp.symbols(f"{letter}:{links + 1}") for letter in "mclI")
    g = sp.Symbol("g")
    N = me.ReferenceFrame("N")
    O, P = me.Point("O"), me.Point("P0")
    O.set_vel(N, 0)
    P.set_pos(O, q[0] * N.x)
    P.set_vel(N, u[0] * N.x)
    bodies: list[Any] = [me.Particle("cart", P, m[0])]
    forces, frame = [(P, -m[0] * g * N.z)], N
    for k in range(1, links + 1):
        A = frame.orientnew(f"A{k}", "Axis", [q[k], N.y])
        A.set_ang_vel(frame, u[k] * N.y)
        C = P.locatenew(f"C{k}", c[k] * A.z)
        C.v2pt_theory(P, N, A)
        bodies.append(me.RigidBody(f"rod{k}", C, A, m[k], (me.inertia(A, 0, I[k], 0), C)))
        forces.append((C, -m[k] * g * N.z))
        Q = P.locatenew(f"P{k}", l[k] * A.z)
        Q.v2pt_theory(P, N, A)
        P, frame = Q, A
    method = me.KanesMethod(N, q, u, [qk.diff(me.dynamicsymbols._t) - uk for qk, uk in zip(q, u, strict=True)])
    method.kanes_equations(bodies, forces)
    values = {g: 9.81} | {x: 1.0 for x in (*m, *l)} | {x: 0.5 for x in c} | {x: 1 / 12 for x in I}
    return method.mass_matrix, method.forcing, q, u, values


def disagreement(links: int) -> float:
    """Largest difference of the two at a random state, relative to the largest entry."""
    rng = np.random.default_rng(1)
    x, v = rng.uniform(-1, 1, links + 1), rng.standard_normal(links + 1)
    M, f, q, u, values = by_kane(links)
    numbers = values | dict(zip(q, x, strict=True)) | dict(zip(u, v, strict=True))
    found = cd.equations(pendulum_on_cart(links)).sympy(simplify=False)
    pairs = [
        (found.function(name)(x, v), np.array(sp.Matrix(a).subs(numbers), float)) for name, a in (("M", M), ("f", f))
    ]
    return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)


def section(run: Run) -> str:
    """Milliseconds to derive M and f, and the ratio."""
    model = pendulum_on_cart(LINKS)
    eq = cd.equations(model)
    blocks = {
        "Cardan, read from the graph": Block(lambda: eq.sympy(simplify=False), 1),
        "Cardan, simplified": Block(lambda: eq.sympy(), 1),
        "SymPy, KanesMethod, the same mechanism and coordinates": Block(lambda: by_kane(LINKS), 1),
        "SymPy, models.n_link_pendulum_on_cart (point masses)": Block(lambda: models.n_link_pendulum_on_cart(LINKS), 1),
    }
    rows: list[tuple[str, ...]] = []
    error = 0.0
    with run.step("equations as symbols"):
        error = disagreement(LINKS)
        timing = interleave(blocks, rounds=min(run.rounds, 3), least=0.0)
        ours, *_ = timing.values()
        rows = [(name, ms(t.median), times(ours.times_faster_than(t))) for name, t in timing.items()]
        quickest = min(ours.times_faster_than(t) for name, t in timing.items() if name.startswith("SymPy"))
        run.at_least(f"equations of a {LINKS}-link pendulum on a cart: SymPy's time / Cardan's", 1.0, quickest, times)
    return (
        f"## Equations as symbols\n\nA {LINKS}-link pendulum on a cart, all masses, lengths and inertias symbols: `M` "
        "and `f` as SymPy matrices. Cardan's time includes recording the graph, and `J`, `gamma`, `phi` and `N`. "
        "Angles are relative, except in SymPy's own model, where they are absolute. Largest relative difference at a "
        f"random state: {scientific(error)}.\n\n" + table(("engine", "ms", "time / Cardan's"), rows) + "\n"
    )
