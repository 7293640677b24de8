"""Six-dimensional vectors: motion, force, transforms, inertia.

Notation: angular part first. A motion vector is `v = [w; v_O]`, a force `f = [n_O; f]`. `X` maps motion vectors from
one frame to another; `X^T` maps forces in the opposite direction. A transform is kept as a product of factors: applying
a rotation and then a translation costs less than applying their product.

The identities of FX are in `cardan.textbook`.

Source: RBDA chapter 2. Equations: FX(A4), FX(B4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, overload

from cardan.algebra.matrix import AnyMatrix, Matrix, Scalar, block, dot, eye, is_symbol, mirrored, stack, vector, zeros
from cardan.algebra.rotation import cross, skew


def crm(v: AnyMatrix) -> AnyMatrix:
    """6x6 matrix `v x` of a motion vector acting on motion vectors."""
    w, u = skew(v[:3]), skew(v[3:])
    return block([[w, zeros(3, 3, v)], [u, w]])


def crf(v: AnyMatrix) -> AnyMatrix:
    """6x6 matrix `v x*` of a motion vector acting on force vectors: `crf(v) = -crm(v)^T`."""
    w, u = skew(v[:3]), skew(v[3:])
    return block([[w, u], [zeros(3, 3, v), w]])


def crf_bar(f: AnyMatrix) -> AnyMatrix:
    """6x6 matrix of a force vector with `crf_bar(f) @ v = crf(v) @ f`."""
    n, u = skew(f[:3]), skew(f[3:])
    return block([[-n, -u], [-u, zeros(3, 3, f)]])


def turned(E: AnyMatrix) -> AnyMatrix:
    """6x6 transform to axes rotated by `E` (old components to new)."""
    return block([[E, zeros(3, 3, E)], [zeros(3, 3, E), E]])


def shifted(r: AnyMatrix) -> AnyMatrix:
    """6x6 transform to an origin shifted by `r` (m, in old components)."""
    one = eye(3, r)
    return block([[one, zeros(3, 3, r)], [-skew(r), one]])


@dataclass(frozen=True)
class Transform(Generic[AnyMatrix]):
    """A motion transform `X = F1 F2 ...`, applied factor by factor: `X @ v`, `X.T @ f`."""

    factors: tuple[AnyMatrix, ...]

    @overload
    def __matmul__(self, m: Transform[AnyMatrix]) -> Transform[AnyMatrix]: ...
    @overload
    def __matmul__(self, m: AnyMatrix) -> AnyMatrix: ...
    def __matmul__(self, m: Transform[AnyMatrix] | AnyMatrix) -> Transform[AnyMatrix] | AnyMatrix:
        """Apply to a vector, or to each column of a matrix, or to another transform."""
        if isinstance(m, Transform):
            return Transform(self.factors + m.factors)
        for F in reversed(self.factors):
            m = F @ m
        return m

    @property
    def T(self) -> Transform[AnyMatrix]:
        """The transpose: maps forces in the opposite direction."""
        return Transform(tuple(F.T for F in reversed(self.factors)))

    @property
    def inverse(self) -> Transform[AnyMatrix]:
        """The inverse transform, for factors made by `turned` and `shifted`."""
        return Transform(tuple(_inverse_factor(F) for F in reversed(self.factors)))

    def congruence(self, I: AnyMatrix) -> AnyMatrix:
        """Compute `X^T I X` of a symmetric 6x6 matrix, factor by factor."""
        for F in self.factors:
            axis = turn_axis(F)
            if axis is not None and is_symbol(F) and is_symbol(I):
                I = _turned_inertia(I, F, axis)
            else:
                I = mirrored(F.T @ I @ F)
        return I

    def congruence_general(self, B: AnyMatrix) -> AnyMatrix:
        """Compute `X^T B X` of any 6x6 matrix, factor by factor."""
        for F in self.factors:
            B = F.T @ B @ F
        return B


def turn_axis(F: AnyMatrix) -> int | None:
    """Axis (0, 1, 2) of a factor that is a rotation about x, y or z by a variable angle; else None."""
    if not is_symbol(F) or F.is_constant() or F[3:, :3].nnz():
        return None
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        if F[[i, j], k].nnz() == 0 and F[k, [i, j]].nnz() == 0:
            return k
    return None


def _turned_inertia(I: Matrix, F: Matrix, k: int) -> Matrix:
    """Compute `F^T I F` of a symmetric matrix for a rotation about axis k, in half the operations of the product.

    In the plane of the rotation, with `E = [c s; -s c]`, a 2x2 block `[a b; e d]` becomes
    `[a - s t, c t - e; c t - b, d + s t]` where `t = s (a - d) + c (b + e)`.
    """
    result = type(I)(6, 6)
    for m, n in ((0, 0), (0, 3), (3, 3)):
        B = I[m : m + 3, n : n + 3]
        if B.nnz():
            result[m : m + 3, n : n + 3] = _turned_block(B, F, k)
    result[3:, :3] = result[:3, 3:].T
    return mirrored(result)


def _turned_block(B: Matrix, F: Matrix, k: int) -> Matrix:
    """Compute `E^T B E` of any 3x3 matrix as in `_turned_inertia`."""
    i, j = (k + 1) % 3, (k + 2) % 3
    c, s = F[i, i], F[i, j]
    a, b, e, d = B[i, i], B[i, j], B[j, i], B[j, j]
    t = s * (a - d) + c * (b + e)
    new = type(B)(3, 3)
    new[i, i], new[i, j], new[j, i], new[j, j] = a - s * t, c * t - e, c * t - b, d + s * t
    new[i, k], new[j, k] = c * B[i, k] - s * B[j, k], s * B[i, k] + c * B[j, k]
    new[k, i], new[k, j] = B[k, i] * c - B[k, j] * s, B[k, i] * s + B[k, j] * c
    new[k, k] = B[k, k]
    return new


def rotated_back(F: Matrix, B: Matrix) -> Matrix:
    """Compute `E^T B E` of a 3x3 matrix for a factor `turned(E)`, in fewer operations where E turns about one axis."""
    axis = turn_axis(F)
    if axis is not None:
        return _turned_block(B, F, axis)
    return F[:3, :3].T @ B @ F[:3, :3]


def shift_of(F: Matrix) -> Matrix | None:
    """The shift `r` (3,) of a factor `shifted(r)`; None for a factor `turned(E)`."""
    B = F[3:, :3]  # -(r x)
    return vector(B[1, 2], B[2, 0], B[0, 1]) if B.nnz() else None


def _inverse_factor(F: AnyMatrix) -> AnyMatrix:
    """Inverse `[E^T 0; B^T E^T]` of a motion transform `[E 0; B E]`."""
    E, B = F[:3, :3], F[3:, :3]
    return block([[E.T, zeros(3, 3, F)], [B.T, E.T]])


def rigid_inertia(m: float | AnyMatrix, mc: AnyMatrix, I_O: AnyMatrix) -> AnyMatrix:
    """6x6 inertia from mass (kg), first moment `m c` (kg m) and rotational inertia about the origin (kg m^2)."""
    return block([[I_O, skew(mc)], [skew(mc).T, m * eye(3, I_O)]])


def inertia_about_origin(m: float | AnyMatrix, c: AnyMatrix, I_C: AnyMatrix) -> AnyMatrix:
    """Rotational inertia (kg m^2) about the origin of a body with mass `m` and centre of mass `c`."""
    return I_C + m * (skew(c) @ skew(c).T)


def first_moment(I: AnyMatrix) -> AnyMatrix:
    """First moment `m c` (kg m) of a 6x6 inertia."""
    return vector(I[2, 4], I[0, 5], I[1, 3])


def inertial_force(I: AnyMatrix, v: AnyMatrix, a: AnyMatrix) -> AnyMatrix:
    """Force `I a + v x* I v` on a rigid body, by the 3-D equations of FX(A4), which take fewer operations."""
    w, wd = v[:3], a[:3]
    m, mc, J = I[3, 3], first_moment(I), I[:3, :3]
    a_O = a[3:] + cross(w, v[3:])  # acceleration of the point at the origin
    f = m * a_O + cross(wd, mc) + cross(w, cross(w, mc))  # FX(A4), about the origin
    return stack(J @ wd + cross(w, J @ w) + cross(mc, a_O), f)


def kinetic_energy(I: AnyMatrix, v: AnyMatrix) -> Scalar:
    """Kinetic energy (J) of a body."""
    return dot(v, I @ v) / 2  # FX(B4)


def annihilating(Ia: AnyMatrix, S: AnyMatrix) -> AnyMatrix:
    """Replace entries of an articulated inertia that vanish because of `Ia S = 0` by exact zeros.

    If `S` selects coordinates, those rows and columns of `Ia` vanish; in the graph they become structural zeros.
    """
    if not is_symbol(Ia):
        return Ia
    free = selected(S)
    if free is None:
        return Ia
    kept = [i for i in range(6) if i not in free]
    result = type(Ia)(6, 6)
    result[kept, kept] = Ia[kept, kept]
    return result


def selected(S: Matrix) -> list[int] | None:
    """Coordinates that `S` selects, if each of its columns is, up to sign, a constant unit vector; else None."""
    if not S.is_constant():
        return None
    rows = []
    for j in range(S.shape[1]):
        column = [(i, float(S[i, j])) for i in range(6) if S.sparsity().has_nz(i, j)]
        column = [(i, value) for i, value in column if value != 0.0]
        if len(column) != 1 or abs(column[0][1]) != 1.0:
            return None
        rows.append(column[0][0])
    return rows
