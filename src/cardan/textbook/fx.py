"""FX: nine identities of 6-D vectors, answers A1 to C1.

Angular part first. `c` is the centre of mass from O, `I_C` the 3x3 inertia about it; `I` a 6x6 inertia; `S` spans the
motions that a constraint allows, `T` its forces, `v = S alpha`; `X` takes motion vectors from A to B.

Source: R. Featherstone, answers to the exercises on 6-D vectors.
Equations: FX(A1), FX(A2), FX(A3), FX(A4), FX(B1), FX(B2), FX(B3), FX(B4), FX(C1).
"""

from __future__ import annotations

import numpy as np

from cardan.textbook import rules
from cardan.textbook.equation import Source
from cardan.textbook.notation import (
    Quantity,
    Text,
    block,
    crf,
    crm,
    cross,
    dot,
    identity,
    inverse,
    skew,
    solve_symmetric,
)


def _inertia(latex: str, meaning: str) -> Quantity:
    return Quantity(latex, (6, 6), meaning, "kg m^2, kg m, kg", rules.inertia, symmetric=True)


FX = Source(
    "FX",
    "R. Featherstone, answers A1 to C1 to the exercises on 6-D vectors",
    {
        "m": Quantity("m", (), "mass", "kg", rules.positive),
        "c": Quantity("c", (3,), "centre of mass from O", "m"),
        "I_C": Quantity(
            r"\bar{I}_{C}", (3, 3), "inertia about the centre of mass", "kg m^2", rules.inertia, symmetric=True
        ),
        "w": Quantity(r"\omega{}", (3,), "angular velocity", "rad/s"),
        "v_O": Quantity("v_{O}", (3,), "velocity of the body's point at O", "m/s"),
        "wdot": Quantity(r"\dot{\omega}", (3,), "angular acceleration", "rad/s^2"),
        "a_C": Quantity(r"\ddot{c}", (3,), "acceleration of the centre of mass", "m/s^2"),
        "h_O": Quantity("h_{O}", (3,), "angular momentum about O", "kg m^2/s"),
        "h": Quantity("h", (3,), "linear momentum", "kg m/s"),
        "n_C": Quantity("n_{C}", (3,), "couple about the centre of mass", "N m"),
        "f": Quantity("f", (3,), "force", "N"),
        "force": Quantity("", (6,), "couple about the centre of mass, then force", "N m, N"),
        "momentum": Quantity("", (6,), "angular momentum about O, then linear momentum", "kg m^2/s, kg m/s"),
        "X": Quantity("{}^{B}X_{A}", (6, 6), "transform of motion vectors from A to B", "", rules.motion_transform),
        "I_A": _inertia("I_{A}", "inertia of body A, or in coordinates A"),
        "I_B": _inertia("I_{B}", "inertia of body B"),
        "I_Binv": Quantity("I_{B}^{-1}", (6, 6), "inverse inertia in coordinates B", "", symmetric=True),
        "I_relinv": Quantity(r"I_{\mathrm{rel}}^{-1}", (6, 6), "inverse of the relative inertia", "", symmetric=True),
        "I_rel": Quantity(r"I_{\mathrm{rel}}", (6, 6), "relative inertia", "kg m^2, kg m, kg", symmetric=True),
        "Iinv": Quantity("I^{-1}", (6, 6), "inverse inertia about O", "", symmetric=True),
        "I": _inertia("I{}", "inertia of the body"),
        "S": Quantity("S", (6, "k"), "motions that the constraint allows", "", rules.full_rank),
        "T": Quantity("T", (6, "n"), "forces of the constraint", ""),
        "alpha": Quantity(r"{\alpha}", ("k",), "rates along S", ""),
        "alphadot": Quantity(r"\dot{\alpha}", ("k",), "accelerations along S", ""),
        "Sdot_alpha": Quantity(r"\dot{S}{\alpha}", (6,), "the product Sdot alpha", "rad/s^2, m/s^2"),
        "v": Quantity("v", (6,), "velocity of the body", "rad/s, m/s"),
        "a": Quantity("a", (6,), "acceleration of the body", "rad/s^2, m/s^2"),
        "Tdot_v": Quantity(r"\dot{T}^{T} v", ("n",), "rate of the constraint's directions along the motion", ""),
        "Phi": Quantity(r"\Phi{}", (6, 6), "apparent inverse inertia", "", symmetric=True),
        "b": Quantity("b", (6,), "bias acceleration", "rad/s^2, m/s^2"),
        "H": Quantity("H", ("k", "k"), "joint-space inertia", "", rules.inertia, symmetric=True),
        "C": Quantity("C", ("k",), "bias force", ""),
        "qd": Quantity(r"\dot{q}", ("k",), "rates of the joint", ""),
        "KE": Quantity("T", (), "kinetic energy", "J"),
        "v_parent": Quantity(r"v_{\lambda(i)}", (6,), "velocity of the parent of link i", "rad/s, m/s"),
        "s_i": Quantity("s_{i}", (6,), "axis of joint i", "1, m"),
        "qd_i": Quantity(r"\dot{q}_{i}", (), "rate of joint i", "rad/s"),
        "I_i": _inertia("I_{i}", "inertia of link i"),
        "v_i": Quantity("v_{i}", (6,), "velocity of link i", "rad/s, m/s"),
        "T_children": Quantity(
            r"\sum\nolimits_{j \in \mu(i)} T_{j}", (), "sum of the energies of the children's subtrees", "J"
        ),
        "h_children": Quantity(
            r"\sum\nolimits_{j \in \mu(i)} h_{j}",
            (6,),
            "sum of the momenta of the children's subtrees",
            "kg m^2/s, kg m/s",
        ),
        "T_i": Quantity("T_{i}", (), "kinetic energy of the subtree of link i", "J"),
        "h_i": Quantity("h_{i}", (6,), "momentum of the subtree of link i", "kg m^2/s, kg m/s"),
    },
)


def inertia_along_S(I: np.ndarray, S: np.ndarray) -> str | None:
    """Refuse a body without inertia along a motion of S, where S^T I S has no inverse."""
    if S.shape[-1] == 0:
        return None
    along = np.linalg.eigvalsh(np.swapaxes(S, -1, -2) @ I @ S)
    if (along[..., 0] <= 1e-13 * along[..., -1]).any():
        return (
            "S^T I S has no inverse: the body has no inertia along one of the motions of S, as a thin rod about "
            "itself; give it a radius, or leave that motion out"
        )
    return None


@FX.equation("FX(A1)", gives="h_O h")
def FX_A1(m: Text, c: Text, I_C: Text, w: Text, v_O: Text) -> tuple[Text, Text]:
    """Momentum about O from the velocity of the body's point at O."""
    h = m * (v_O - cross(c, w))  # FX(A1)
    return I_C @ w + cross(c, h), h


@FX.equation("FX(A1)", gives="momentum", left=lambda h_O, h: block([[h_O], [h]]), printed=False)
def momentum_about_origin(m: Text, c: Text, I_C: Text, v: Text) -> Text:
    """Momentum about O from the 6-D velocity."""
    h_O, h = FX_A1.text(m, c, I_C, v[:3], v[3:])
    return block([[h_O], [h]])  # FX(A1)


def has_an_inverse(I_A: np.ndarray) -> str | None:
    """Refuse an inertia that has none, where FX(A2) divides by it."""
    wrong = rules.definite(I_A)
    return f"I_A {wrong}" if wrong else None


def have_inverses(I_A: np.ndarray, I_B: np.ndarray) -> str | None:
    """The same for two."""
    wrong = rules.definite(I_B)
    return has_an_inverse(I_A) or (f"I_B {wrong}" if wrong else None)


def turns_about_every_axis(I_C: np.ndarray) -> str | None:
    """The same for an inertia about the centre of mass."""
    wrong = rules.definite(I_C)
    return f"I_C {wrong}" if wrong else None


def moves_together(I_A: np.ndarray, I_B: np.ndarray) -> str | None:
    """Refuse two inertias whose sum has no inverse."""
    wrong = rules.definite(I_A + I_B)
    return f"I_A + I_B {wrong}" if wrong else None


@FX.equation("FX(A2)", gives="I_Binv", needs=[has_an_inverse])
def FX_A2(X: Text, I_A: Text) -> Text:
    """Inverse inertia in other coordinates: it takes forces to motions, and is transformed like that.

    The transpose of `X` is the source's transform of force vectors from B to A.
    """
    return X @ inverse(I_A) @ X.T  # FX(A2)


@FX.equation("FX(A2)", gives="Iinv", needs=[turns_about_every_axis])
def inverse_inertia(m: Text, c: Text, I_C: Text) -> Text:
    """Inverse inertia about O in closed form: FX(A2) with the transform from the centre of mass."""
    W, R = inverse(I_C), skew(c)
    return block([[W, W @ R.T], [R @ W, identity(3, I_C) / m + R @ W @ R.T]])  # FX(A2)


@FX.equation("FX(A3)", gives="I_relinv", needs=[have_inverses])
def FX_A3(I_A: Text, I_B: Text) -> Text:
    """Inverse of the inertia that two bodies show to a force between them: their inverses add."""
    return inverse(I_A) + inverse(I_B)  # FX(A3)


@FX.equation("FX(A3)", gives="I_rel", needs=[moves_together])
def relative_inertia(I_A: Text, I_B: Text) -> Text:
    """Inertia that two bodies show to a force between them: their harmonic sum, which needs no inverse of either."""
    return I_A - I_A @ solve_symmetric(I_A + I_B, I_A)  # FX(A3)


@FX.equation("FX(A4)", gives="force", left=lambda n_C, f: block([[n_C], [f]]))
def FX_A4(m: Text, I_C: Text, w: Text, wdot: Text, a_C: Text) -> Text:
    """Newton's and Euler's laws, from `f = I a + v x* I v` at the centre of mass."""
    return block([[I_C @ wdot + cross(w, I_C @ w)], [m * a_C]])  # FX(A4)


@FX.equation("FX(B1)", gives="Phi b", needs=[inertia_along_S])
def FX_B1(I: Text, S: Text, Sdot_alpha: Text, v: Text) -> tuple[Text, Text]:
    """Apparent inverse inertia and bias acceleration of a constrained body, `a = Phi f + b`."""
    Phi = S @ solve_symmetric(S.T @ I @ S, S.T)  # FX(B1)
    known = FX.known("Phi", Phi)
    return Phi, Sdot_alpha - known @ (I @ Sdot_alpha + crf(v) @ (I @ v))


@FX.equation("FX(B2)", gives="v a Tdot_v")
def FX_B2(S: Text, T: Text, alpha: Text, alphadot: Text) -> tuple[Text, Text, Text]:
    """Velocity and acceleration of a body whose S and T move with it: `v x v = 0`, so that `a = S alphadot`.

    The last result vanishes too, if T does no work along S.
    """
    v = S @ alpha
    known = FX.known("v", v)
    return v, S @ alphadot + crm(known) @ known, (crf(known) @ T).T @ known  # FX(B2)


@FX.equation("FX(B3)", gives="H C")
def FX_B3(I: Text, S: Text, Sdot_alpha: Text, v: Text) -> tuple[Text, Text]:
    """Inertia and bias force of a constrained body in joint space, `tau = H qdd + C`."""
    return S.T @ I @ S, S.T @ (I @ Sdot_alpha + crf(v) @ (I @ v))  # FX(B3)


@FX.equation("FX(B4)", gives="KE")
def FX_B4(H: Text, qd: Text) -> Text:
    """Kinetic energy in joint space: the defining property of H."""
    return dot(qd, H @ qd) / 2  # FX(B4)


@FX.equation("FX(B4)", gives="KE")
def body_kinetic_energy(I: Text, v: Text) -> Text:
    """Kinetic energy of a body, from which FX(B4) follows with `v = S qd`."""
    return dot(v, I @ v) / 2  # FX(B4)


@FX.equation("FX(C1)", gives="v_i T_i h_i")
def FX_C1(
    v_parent: Text, s_i: Text, qd_i: Text, I_i: Text, T_children: Text, h_children: Text
) -> tuple[Text, Text, Text]:
    """Energy and momentum by recursion: velocity outwards, energy and momentum of the subtree inwards.

    One step, for link i: the velocity of the ground is zero, and the totals are those of link 1. Of the children the
    sum is given, not each.
    """
    v = v_parent + s_i * qd_i  # FX(C1)
    return v, dot(v, I_i @ v) / 2 + T_children, I_i @ v + h_children
