"""A moving cart with a pole, linearised: SymPy's Kane's method and Linearizer give the same matrices."""

import numpy as np
import pytest

import cardan as cd


def test_a_moving_cart_with_a_pole_is_linearised_as_by_sympy() -> None:
    sp = pytest.importorskip("sympy")
    import sympy.physics.mechanics as me

    (x, angle), (u, w), (F,) = me.dynamicsymbols("x angle"), me.dynamicsymbols("u w"), me.dynamicsymbols("F:1")
    N = me.ReferenceFrame("N")
    P = N.orientnew("P", "Axis", (angle, N.y))
    P.set_ang_vel(N, w * N.y)
    O, C = me.Point("O"), me.Point("C")
    O.set_vel(N, 0)
    C.set_pos(O, x * N.x)
    C.set_vel(N, u * N.x)
    G = C.locatenew("G", 0.5 * P.z)
    G.v2pt_theory(C, N, P)
    model = cd.mechanisms.cart_pole().build()
    I = np.asarray(model.bodies[1].inertia)
    bodies = [
        me.Particle("cart", C, sp.Float(1.0)),
        me.RigidBody("pole", G, P, sp.Float(0.1), (me.inertia(P, *(sp.Float(k) for k in np.diag(I))), G)),
    ]
    kane = me.KanesMethod(N, [x, angle], [u, w], kd_eqs=[x.diff() - u, angle.diff() - w])
    gravity = [(C, -9.81 * N.z), (G, -0.1 * 9.81 * N.z)]
    kane.kanes_equations(bodies, [(C, F * N.x), *gravity])
    q, v, tau = np.array([0.2, 0.7]), np.array([0.4, -1.3]), np.array([2.0, 0.0])
    a = cd.forward_dynamics(model, q, v, tau)
    names = [x, angle, u, w, F, u.diff(), w.diff(), x.diff(), angle.diff()]
    point = dict(zip(names, [*q, *v, 2.0, *a, *v], strict=True))
    A, B, inputs = kane.linearize(A_and_B=True, op_point=point)
    ours = cd.linearise(model, (q, v, tau), inputs="tau.rail")
    assert list(inputs) == [F]
    assert np.abs(ours.A - np.array(A, dtype=float)).max() < 1e-12 * np.abs(ours.A).max()
    assert np.abs(ours.B - np.array(B, dtype=float)).max() < 1e-12
