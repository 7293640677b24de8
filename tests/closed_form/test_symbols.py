"""Equations that one can read are those of the textbook: equal, and about as short, as what one derives by hand."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
import sympy as sp
from sympy import cos, sin

import cardan as cd
from cardan import mechanisms
from cardan.functions.equations import Equations
from cardan.readable.symbols import Symbols

pytestmark = pytest.mark.usefixtures("quick_code")

KEYS = ("spatial", "newton_euler", "absolute", "absolute_body", "relative", "points")
Derived = dict[str, sp.Matrix]


def two_bodies() -> cd.Mechanism:
    """F3's problem in axes along the hinge: B1 floats, its frame at its centre; the hinge is at l along x."""
    m = cd.Mechanism("two_bodies", gravity=(0, 0, 0))
    m.body("B1", mass=2.0, inertia=(0.3, 0.4, 0.5))
    m.body("B2", mass=1.5, com=(0.6, 0, 0), inertia=(0.1, 0.2, 0.25))
    m.joint("root", cd.Free(), m.ground, "B1")
    m.joint("hinge", cd.Revolute(axis=(0, 0, 1)), "B1", "B2", at=(0.7, 0, 0))
    return m


MECHANISMS: dict[str, Callable[[], cd.Mechanism]] = {
    "pendulum": mechanisms.pendulum,
    "double_pendulum": mechanisms.double_pendulum,
    "cart_pole": mechanisms.cart_pole,
    "slider_crank": mechanisms.slider_crank,
    "two_bodies": two_bodies,
}


def equations(name: str, key: str = "spatial") -> Equations:
    return cd.equations(MECHANISMS[name]().build(), formulation=key)


def vanishes(expression: sp.Expr) -> bool:
    """Whether a polynomial in sines and cosines is zero: written out, with no even power of a sine left."""

    def square(power: sp.Pow) -> sp.Expr:
        half, odd = divmod(int(power.exp), 2)
        return (1 - cos(power.base.args[0]) ** 2) ** half * power.base**odd

    written = sp.expand(sp.expand_trig(sp.together(expression).as_numer_denom()[0]))
    return sp.expand(written.replace(lambda x: x.is_Pow and isinstance(x.base, sp.sin) and x.exp > 1, square)) == 0


def agree(found: Symbols, derived: Derived, ratio: float = 1.5) -> None:
    """Equal entry by entry, and not much longer."""
    for name, matrix in derived.items():
        own = found.matrix(name)
        assert own.shape == matrix.shape
        assert all(vanishes(a - b) for a, b in zip(own, matrix, strict=True)), f"{name}: {own} is not {matrix}"
        assert sp.count_ops(own) <= ratio * sp.count_ops(matrix), f"{name}: {own} is longer than {matrix}"


def test_pendulum_in_minimal_coordinates() -> None:
    m, c, I, g, theta = sp.symbols("m c I g theta")
    agree(
        equations("pendulum").sympy(), {"M": sp.Matrix([[I + m * c**2]]), "f": sp.Matrix([[-m * g * c * sin(theta)]])}
    )


def test_pendulum_as_a_rod_of_length_l() -> None:
    m, l, g, theta = sp.symbols("m l g theta")
    names = {"rod.mass": "m", "rod.com": "l/2", "rod.inertia": "m*l**2/12"}
    found = equations("pendulum").sympy(names=names)
    agree(found, {"M": sp.Matrix([[m * l**2 / 3]]), "f": sp.Matrix([[-m * g * l * sin(theta) / 2]])})
    assert found.values == pytest.approx({m: 1.0, l: 1.0, g: 9.81})


@pytest.mark.parametrize("frame", ["fixed", "body"])
def test_pendulum_in_absolute_coordinates(frame: str) -> None:
    """KJ: `M = diag(I_G, m 1)`, the gyroscopic moment, and the two axes and three coordinates that a hinge holds."""
    m, c, g, Ixx, Iyy = sp.symbols("m c g I_xx I_yy")
    w, u = sp.Matrix(sp.symbols("omega_x:z")), sp.Matrix(sp.symbols("xdot ydot zdot"))
    R = sp.Matrix(3, 3, lambda i, j: sp.Symbol(f"R{i + 1}{j + 1}"))
    turn = R if frame == "fixed" else sp.eye(3)
    I_G = turn * sp.diag(Ixx, Iyy, 0) * turn.T
    hinge = sp.Matrix([0, 0, c])  # from the centre of mass, in the rod
    at_hinge = (-_skew(hinge) * turn.T).row_join(R.T)  # its velocity in the rod's axes
    turning = turn.T.row_join(sp.zeros(3))
    held = R.T * w.cross(u) if frame == "fixed" else w.cross(R.T * u)
    z, x, y = 2, 0, 1  # y is the hinge's axis
    derived = {
        "M": sp.diag(I_G, m * sp.eye(3)),
        "f": sp.Matrix([*(-w.cross(I_G * w)), 0, 0, -m * g]),
        "J": sp.Matrix([*(turning.row(k) for k in (z, x)), *(at_hinge.row(k) for k in (z, x, y))]),
        "gamma": sp.Matrix([0, 0, *(held[k] for k in (z, x, y))]),
    }
    agree(equations("pendulum", "absolute" if frame == "fixed" else "absolute_body").sympy(), derived)


def test_pendulum_as_points() -> None:
    """AT: two coordinates of a point of the rod, at twice the way to its centre of mass, and one constraint.

    The length is not 1 m, so that a mass matrix without it, or with another power of it, would differ.
    """
    x, y, xdot, ydot = sp.symbols("x_Q y_Q xdot_Q ydot_Q")
    m, c, I, g = sp.symbols("m c I g")
    length = sp.Rational(3, 4)
    found = cd.equations(mechanisms.pendulum(mass=1.5, length=0.75).build(), formulation="points").sympy()
    derived = {
        "M": (I + m * c**2) / length**2 * sp.eye(2),  # I0 / |r31|^2 at particle 3: its inertia about the pin
        "f": sp.Matrix([0, m * g * c / length]),  # y of the plane is downwards
        "J": sp.Matrix([[x, y]]),
        "gamma": sp.Matrix([-(xdot**2) - ydot**2]),
    }
    agree(found, derived, ratio=2.5)  # numbers are distributed over the sum
    # and by particles: Simpson's weights, AT(1), make M = m2/4 + m3 = m/3
    assert found.M.subs(found.values)[0] == pytest.approx(1.5 * (4 / 6 / 4 + 1 / 6), rel=1e-12)


def test_quaternions_turn_as_the_book_says() -> None:
    """`edot = E(e)^T w / 2` with fixed components, and the other sign of the cross product with body components."""
    e0, e1, e2, e3 = sp.symbols("e0:4")
    for key, s in (("absolute", 1), ("absolute_body", -1)):
        E = sp.Matrix([[-e1, -e2, -e3], [e0, s * e3, -s * e2], [-s * e3, e0, s * e1], [s * e2, -s * e1, e0]]) / 2
        N = sp.Matrix(sp.BlockMatrix([[sp.zeros(3), sp.eye(3)], [E, sp.zeros(4, 3)]]))
        agree(equations("pendulum", key).sympy(), {"N": N})


def double(m1: sp.Expr, m2: sp.Expr, prefix: tuple[str, str]) -> tuple[sp.Matrix, sp.Expr, sp.Expr]:
    """Mass matrix of two bars in relative angles (Craig, section 6.7), and what multiplies products of rates."""
    one, two = prefix
    c1, c2, I1, I2, l1 = sp.symbols(f"c_{one} c_{two} I_{one} I_{two} l_{one}")
    theta2 = sp.Symbol("theta_elbow" if prefix[1] == "lower" else "theta_pin")
    h, k = m2 * l1 * c2 * cos(theta2), m2 * l1 * c2 * sin(theta2)
    M12 = I2 + m2 * c2**2 + h
    M = sp.Matrix([[I1 + I2 + m1 * c1**2 + m2 * (l1**2 + c2**2) + 2 * h, M12], [M12, I2 + m2 * c2**2]])
    return M, k, c1 * m1 + l1 * m2


@pytest.mark.parametrize("key", ["spatial", "newton_euler"])
def test_double_pendulum(key: str) -> None:
    m1, m2, c2, g = sp.symbols("m_rod m_lower c_lower g")
    q1, q2, v1, v2 = sp.symbols("theta_pivot theta_elbow thetadot_pivot thetadot_elbow")
    M, k, first = double(m1, m2, ("rod", "lower"))
    weight = m2 * g * c2 * sin(q1 + q2)
    f = sp.Matrix([k * (2 * v1 * v2 + v2**2) - g * first * sin(q1) - weight, -k * v1**2 - weight])
    agree(equations("double_pendulum", key).sympy(), {"M": M, "f": f})


@pytest.mark.parametrize("key", ["spatial", "newton_euler"])
def test_cart_pole_with_a_force(key: str) -> None:
    M_c, m, c, I, g, F = sp.symbols("m_cart m_pole c_pole I_pole g tau_rail")
    theta, rate = sp.symbols("theta thetadot")
    M = sp.Matrix([[M_c + m, m * c * cos(theta)], [m * c * cos(theta), I + m * c**2]])
    f = sp.Matrix([F + m * c * sin(theta) * rate**2, m * g * c * sin(theta)])
    agree(equations("cart_pole", key).sympy(drives=["rail"]), {"M": M, "f": f})


def test_slider_crank() -> None:
    """Two bars and a slider, and the loop closed at the wrist: residual and velocities in the rod's axes there."""
    m1, m2, m3, c2, g, l1, l2 = sp.symbols("m_crank m_rod m_slider c_rod g l_crank l_rod")
    q1, q2, x, v1, v2, xdot = sp.symbols("theta_bearing theta_pin x thetadot_bearing thetadot_pin xdot")
    bars, k, first = double(m1, m2, ("crank", "rod"))
    weight = m2 * g * c2 * cos(q1 + q2)
    f = sp.Matrix([k * (2 * v1 * v2 + v2**2) - g * first * cos(q1) - weight, -k * v1**2 - weight, 0])
    loop = sp.Matrix([l1 * cos(q1) + l2 * cos(q1 + q2) - x, l1 * sin(q1) + l2 * sin(q1 + q2)])
    axes = sp.Matrix([[cos(q1 + q2), sin(q1 + q2)], [-sin(q1 + q2), cos(q1 + q2)]])
    rates = sp.Matrix([v1, v2, xdot])
    found = equations("slider_crank").sympy()
    gap = sp.Matrix([l1 * cos(q2) + l2 - x * cos(q1 + q2), -l1 * sin(q2) + x * sin(q1 + q2)])
    assert all(vanishes(a - b) for a, b in zip(axes * loop, gap, strict=True))
    agree(found, {"M": sp.diag(bars, m3), "f": f, "phi": sp.Matrix([0, 0, *gap, 0])})
    J = axes * loop.jacobian([q1, q2, x])
    velocity = J * rates
    gamma = -velocity.jacobian([q1, q2, x]) * rates
    close = sp.Matrix([[l1 * sin(q2), 0, -cos(q1 + q2)], [l1 * cos(q2) + l2, l2, sin(q1 + q2)]])
    agree(found, {"J": sp.Matrix([[0] * 3, [0] * 3, *close.tolist(), [0] * 3])})
    assert all(vanishes(a - b) for a, b in zip(J, close, strict=True))
    agree(found, {"gamma": sp.Matrix([0, 0, *gamma, 0])})


def test_two_bodies_on_a_hinge() -> None:
    """F3: Newton and Euler for both bodies, moments about the first one's centre, and about the hinge's axis."""
    m1, m2, l, c, theta, rate = sp.symbols("m_B1 m_B2 l_B1 c_B2 theta thetadot")
    I1 = sp.diag(*sp.symbols("I_B1_xx I_B1_yy I_B1_zz"))
    R = sp.Matrix([[cos(theta), -sin(theta), 0], [sin(theta), cos(theta), 0], [0, 0, 1]])
    I2 = R * sp.diag(*sp.symbols("I_B2_xx I_B2_yy I_B2_zz")) * R.T
    w, v, s = sp.Matrix(sp.symbols("omega_x:z")), sp.Matrix(sp.symbols("v_x:z")), sp.Matrix([0, 0, 1])
    d = R * sp.Matrix([c, 0, 0])
    p = sp.Matrix([l, 0, 0]) + d
    w2 = w + rate * s
    a1 = w.cross(v)
    a2 = a1 + w.cross(w.cross(p)) + 2 * w.cross(rate * s.cross(d)) - rate**2 * d
    n2 = I2 * w.cross(rate * s) + w2.cross(I2 * w2)
    turning = w.cross(I1 * w) + n2 + m2 * p.cross(a2)
    f = -sp.Matrix([*turning, *(m1 * a1 + m2 * a2), s.dot(n2 + m2 * d.cross(a2))])
    P, e = _skew(p), s.cross(d)
    column = sp.Matrix([*(I2 * s + m2 * p.cross(e)), *(m2 * e)])
    M = sp.Matrix(sp.BlockMatrix([[I1 + I2 - m2 * P * P, m2 * P], [-m2 * P, (m1 + m2) * sp.eye(3)]]))
    M = M.row_join(column).col_join(sp.Matrix([[*column, s.dot(I2 * s) + m2 * e.dot(e)]]))
    agree(equations("two_bodies").sympy(), {"M": M, "f": f})


@pytest.mark.parametrize("name", MECHANISMS)
def test_numbers_are_the_kernels(name: str) -> None:
    """In every formulation, at a random state, also off the constraints."""
    rng = np.random.default_rng(5)
    for key in KEYS:
        if (name, key) == ("two_bodies", "points"):
            continue  # it floats in space; tests/agreement/test_points_in_space.py has a body there
        eq = equations(name, key)
        q, v = rng.uniform(-1, 1, eq.nq), rng.standard_normal(eq.nv)
        found = eq.sympy()
        for at in (0,) if name == "two_bodies" and key in KEYS[:2] else range(0, eq.nq if key in KEYS[2:5] else 0, 7):
            q[at + 3 : at + 7] /= np.linalg.norm(q[at + 3 : at + 7])
        kernel = {"M": eq.M(q), "f": eq.f(q, v), "J": eq.J(q), "gamma": eq.gamma(q, v), "phi": eq.phi(q)}
        for matrix, value in kernel.items():
            ours = np.reshape(found.function(matrix)(q, v), value.shape)
            size = 1 + np.abs(value).max(initial=0)
            # one reads no FLIPPED (1e-12): it matters to residuals in proportion to their cube
            assert np.abs(ours - value).max(initial=0) <= 1e-12 * size ** (3 if matrix == "phi" else 1), (key, matrix)
        assert np.allclose(found.function("N")(q), eq.N(q), rtol=1e-12, atol=1e-14)


def test_unsimplified_equations_are_the_same() -> None:
    eq = equations("double_pendulum")
    long, short = eq.sympy(simplify=False), eq.sympy()
    assert all(vanishes(a - b) for name in "Mf" for a, b in zip(long.matrix(name), short.matrix(name), strict=True))


def test_only_what_is_named_becomes_a_symbol() -> None:
    m, theta = sp.symbols("m_pole theta")
    found = equations("cart_pole").sympy(symbols=["pole.mass"])
    assert sp.simplify(found.M[0, 1] - m * cos(theta) / 2) == 0
    assert found.parameters == {"pole.mass": m}


def test_springs_have_letters_too() -> None:
    m = mechanisms.pendulum()
    m.torsion("t", "pivot", stiffness=3.0, damping=0.2)
    k, d, theta, rate = sp.symbols("k d theta thetadot")
    found = cd.equations(m.build()).sympy()
    assert sp.simplify(found.f[0].subs(sp.Symbol("g"), 0) + k * theta + d * rate) == 0


def test_latex_tells_equations_and_letters() -> None:
    text = equations("slider_crank").sympy().latex()
    for part in (
        r"M\,\dot v + J^{\mathsf T}\lambda &= f",
        r"\dot{\theta}_{pin}",
        r"\text{mass of crank} & 0.4\;\mathrm{kg}",
    ):
        assert part in text
    assert text.count(r"\begin") == text.count(r"\end")
    assert equations("pendulum").sympy().latex("M") == r"M = \left[\begin{matrix}I + c^{2} m\end{matrix}\right]"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"names": {"rod.mas": "m"}}, "did you mean 'rod.mass'"),
        ({"names": {"rod.mass": "__import__('os')"}}, "a name or a formula"),
        ({"names": {"rod.mass": "m", "rod.com": "m"}}, "would be 1, but in the model it is 0.5 m"),
        ({"names": {"rod.mass": "theta"}}, "already the symbol of a coordinate"),
        ({"symbols": "mass"}, "must be 'all' or a list"),
        ({"drives": ["pivo"]}, "did you mean 'pivot'"),
    ],
)
def test_bad_names_are_told(words: dict[str, object], told: str) -> None:
    with pytest.raises(cd.CardanError, match=told):
        equations("pendulum").sympy(**words)


def test_too_large_is_told_with_its_size() -> None:
    eq = cd.equations(mechanisms.stewart_platform().build())
    with pytest.raises(cd.InputError, match=r"\d+ operations are too many to simplify"):
        eq.sympy()


def test_missing_sympy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(cd.CardanError, match=r"pip install 'cardan\[symbols\]'"):
        equations("pendulum").sympy()


def _skew(r: sp.Matrix) -> sp.Matrix:
    return sp.Matrix([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


@pytest.mark.parametrize(
    ("formulation", "style"), [("spatial", None), ("absolute", None), ("absolute", "KJ"), ("points", None)]
)
def test_values_of_a_bound_model_are_printed(formulation: str, style: str | None) -> None:
    """Print, its values and the kernel tell of the same mechanism, not of the one with nominal values."""
    model = mechanisms.pendulum().build().free("rod.mass").at({"rod.mass": 7.0})
    eq = cd.equations(model, formulation=formulation)
    printed = eq.sympy(style=style)
    assert 7.0 in printed.values.values()
    rng = np.random.default_rng(2)
    q = rng.uniform(-1, 1, eq.nq)
    if formulation == "absolute":
        q[3:] /= np.linalg.norm(q[3:])
    np.testing.assert_allclose(printed.function("M")(q), eq.M(q), rtol=1e-9, atol=1e-12)
    if style is None:
        nominal = cd.equations(mechanisms.pendulum().build(), formulation=formulation)
        assert not np.allclose(eq.M(q), nominal.M(q))


def test_a_batch_of_values_is_not_printed() -> None:
    model = mechanisms.pendulum().build().free("rod.mass").at({"rod.mass": np.array([1.0, 2.0])})
    with pytest.raises(cd.InputError, match="one mechanism at a time"):
        cd.equations(model).sympy()


def test_the_legend_has_the_signs_of_the_model() -> None:
    """Symbols are positive; where the model's number is negative the legend says along which direction."""
    m = cd.Mechanism("leaning", gravity=(3.0, 0, -9.0))
    m.body("rod", mass=2.0, com=(-0.1, 0, 0.4), inertia=(0.1, 0.2, 0.1))
    m.joint("pivot", cd.Revolute(axis=(0, 1, 0)), m.ground, "rod")
    legend = {meaning.text: meaning.value for meaning in cd.equations(m.build()).sympy().meanings.values()}
    numbers = {
        "gravity x": 3.0, "gravity along -z": 9.0,
        "centre of mass of rod along -x": 0.1, "centre of mass of rod z": 0.4,
    }  # fmt: skip
    assert numbers.items() <= legend.items(), legend
