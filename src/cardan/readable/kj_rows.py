"""`cd.equations(...).sympy(style="KJ")`: constraint rows as KJ prints them.

They are in ground axes where two points coincide, else along directions fixed in body 1. The engine measures a joint
in the axes of its child; here the same poses and velocities are taken along KJ's directions, so that a ball joint has
the rows `[q~ -1 r~ 1]` and a hinge besides `f^T [R_B1] (w2 - w1)`. `gamma` is `-Jdot v`, the rate of the printed rows.
The vectors from centres of mass to the joint, KJ's `q_2` and `r_2`, are symbols of their own, and so are their rates.

Equations: KJ(1)-(3), KJ(5)-(10).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cardan.algebra.matrix import Matrix, constant, dot
from cardan.algebra.rotation import cross, skew
from cardan.errors import InputError
from cardan.formulation.absolute import Absolute
from cardan.formulation.formulation import Formulation, Parts
from cardan.formulation.measured_joint import frame_in_link
from cardan.formulation.recursion import Node
from cardan.model.joint import Kind
from cardan.model.model import Model
from cardan.model.pose import Pose
from cardan.model.tree import GROUND
from cardan.readable.graph_to_sympy import RotationMatrix, polynomial_of
from cardan.readable.naming import AXES, Meaning, index_of
from cardan.readable.polynomial import Generators
from cardan.readable.row_style import Abbreviation, RecordedRows, RowStyle
from cardan.readable.simplify import Simplifier
from cardan.readable.symbols import Symbols, symbols_of

Row = tuple[Matrix, Matrix]  # rate, linear in the rates, and residual


FORMULATIONS = ("absolute", "absolute_body", "relative")


def kj_symbols(model: Model, formulation: Formulation, *, simplify: bool = True, **words: Any) -> Symbols:
    """Equations as SymPy matrices with KJ's rows; `words` as in `symbols_of`."""
    if formulation.name not in FORMULATIONS:
        raise InputError(
            f"sympy: style 'KJ' prints the formulations {', '.join(FORMULATIONS)}, got {formulation.name!r}; ask for "
            f"equations(model, formulation={FORMULATIONS[0]!r}).sympy(style='KJ')"
        )
    if not simplify:
        raise InputError("sympy: style 'KJ' is found by simplification; leave out simplify=False")
    return symbols_of(model, formulation, style=KJRows(), **words)


class KJRows(RowStyle):
    """KJ's rows in absolute coordinates; in relative ones the engine's rows are KJ(4),(11)-(16) as they stand."""

    def rows(self, formulation: Formulation, parts: Parts, v: Matrix) -> RecordedRows:
        """Every joint's rows along KJ's directions; those of couplings, motions and own constraints as they are."""
        import casadi as ca

        found = super().rows(formulation, parts, v)
        if not isinstance(formulation, Absolute):
            return found
        J, gamma, phi = (type(v)(x) for x in (found.J, found.gamma, found.phi))
        derived: list[int] = []
        vectors: list[Abbreviation] = []
        for j, joint in enumerate(parts.kin.model.joints):
            at = parts.rows.of(f"joint {joint.name!r}")
            if at.start == at.stop:
                continue
            ends = _Ends(parts, j)
            for k, (rate, residual) in zip(range(at.start, at.stop), _rows(joint.kind, ends), strict=True):
                J[k, :], gamma[k], phi[k] = ca.jacobian(rate, v), 0, residual
                derived.append(k)
            vectors += ends.arms(joint.name, _is_point(joint.kind))
        return RecordedRows(J, gamma, phi, derived, vectors)

    def finished(
        self, formulation: Formulation, found: Symbols, rows: RecordedRows, vectors: Sequence[Sequence[Any]],
        rotations: Sequence[RotationMatrix],
    ) -> Symbols:  # fmt: skip
        """With symbols for KJ's `q_2` and `r_2`, and `gamma` from the rows as they then are."""
        import sympy

        if not isinstance(formulation, Absolute):
            return found
        names = _Abbreviations(found, rotations, formulation.in_body)
        several = len({x.index for x in rows.vectors}) > 1
        for x, value in zip(rows.vectors, vectors, strict=True):
            names.add(x, f"{x.index}_" if several else "", value)
        J = found.J if formulation.in_body else found.J.applyfunc(names.written)
        phi = found.phi.applyfunc(names.written)
        gamma = sympy.Matrix(found.gamma)
        for k in rows.derived:
            gamma[k] = names.minus_rate(J[k, :])  # KJ(2),(3),(7)-(10)
        used = _used((found.M, found.f, J, gamma, phi, found.N), names.definitions)
        definitions = {x: value for x, value in names.definitions.items() if x in used}
        known = {x for x in found.meanings if x not in found.definitions}
        meanings = {x: meaning for x, meaning in names.meanings.items() if x in used or x in known}
        return replace(found, J=J, gamma=gamma, phi=phi, definitions=definitions, meanings=meanings)


class _Ends:
    """The two frames of a joint: poses and velocities in ground components."""

    def __init__(self, parts: Parts, j: int) -> None:
        kin, joint = parts.kin, parts.kin.model.joints[j]
        self.model = kin.model
        (self.parent, F), (self.child, M) = (
            frame_in_link(kin.model, joint.parent, joint.at),
            frame_in_link(kin.model, joint.child, joint.child_at),
        )
        self.R_1, self.r_1, self.w_1, self.v_1 = self._placed(kin.nodes.carrier(self.parent), F)
        self.R_2, self.r_2, self.w_2, self.v_2 = self._placed(kin.nodes.carrier(self.child), M)
        self._origins = kin.nodes.carrier(self.parent), kin.nodes.carrier(self.child)

    @staticmethod
    def _placed(link: Node, at: Pose) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Axes and origin of a frame on a link, the link's angular velocity, the velocity of the origin."""
        p, w = constant(at.position), link.v[:3]
        return (
            link.R @ constant(at.rotation),
            link.r0 + link.R @ p,
            link.R @ w,
            link.R @ (link.v[3:] + cross(w, p)),
        )

    @property
    def s(self) -> Matrix:
        """From the joint's point on body 1 to that on body 2."""
        return self.r_2 - self.r_1  # KJ(1)

    def arms(self, name: str, is_point: bool) -> Iterator[Abbreviation]:
        """KJ's q_2, from the centre of mass of body 1 to the joint, and r_2, from the joint to that of body 2.

        Where the two points of the joint may part, also d, from the centre of mass of body 1 to the second point.
        """
        for letter, link, node, r, sign, what in (
            ("q", self.parent, self._origins[0], self.r_1, 1, f"from the centre of mass of {{}} to {name}"),
            ("r", self.child, self._origins[1], self.r_2, -1, f"from {name} to the centre of mass of {{}}"),
        ):
            if link != GROUND:
                found = self.model.tree.links[link]
                arm = sign * (r - node.r0 - node.R @ constant(found.com))
                yield Abbreviation(letter, index_of(name), what.format(found.name), link, arm)
        if self.parent != GROUND and not is_point:
            found, node = self.model.tree.links[self.parent], self._origins[0]
            arm = self.r_2 - node.r0 - node.R @ constant(found.com)
            what = f"from the centre of mass of {found.name} to the point of {name} on the other body"
            yield Abbreviation("d", index_of(name), what, None, arm)


def _rows(kind: Kind, e: _Ends) -> Iterator[Row]:
    """Rate and residual of each row of a joint, in the order of the engine's rows."""
    T = np.asarray(kind.T(np.array(kind.neutral)), dtype=float)
    has_couple, has_force = np.any(T[:3] != 0, axis=0).tolist(), np.any(T[3:] != 0, axis=0).tolist()
    is_point, is_fixed = _is_point(kind), _is_fixed_in_parent(kind)
    turn = e.R_1.T @ (e.w_2 - e.w_1)
    slide = e.R_1.T @ (e.v_2 - e.v_1 - cross(e.w_1, e.s))
    R, p = e.R_1.T @ e.R_2, e.R_1.T @ e.s
    cosines = _cosines(R, sum(c and not f for c, f in zip(has_couple, has_force, strict=True)))
    for k in range(T.shape[1]):
        couple, force = constant(T[:3, k]), constant(T[3:, k])
        if is_point and not has_couple[k]:
            axis = int(np.argmax(T[3:, k]))
            yield (e.v_2 - e.v_1)[axis], e.s[axis]  # KJ(1) and its rate
        elif not is_fixed:
            yield _rate_of_residual(kind, k, e), kind.phi(R, p)[k]
        elif has_couple[k] and has_force[k]:
            yield dot(couple, turn) + dot(force, slide), kind.phi(R, p)[k]
        elif has_couple[k]:
            yield dot(couple, turn), cosines[int(np.argmax(T[:3, k]))]  # KJ(5),(6)
        else:
            yield dot(force, slide), dot(force, p)


def _is_point(kind: Kind) -> bool:
    """Whether two points coincide: the joint bears a force in any direction."""
    T = np.asarray(kind.T(np.array(kind.neutral)), dtype=float)
    return bool(np.linalg.matrix_rank(T[3:, ~T[:3].any(axis=0)]) == 3)


def _is_fixed_in_parent(kind: Kind) -> bool:
    """Whether the directions of a joint's constraint forces keep still in the parent's frame."""
    T_0 = np.asarray(kind.T(np.array(kind.neutral)), dtype=float)
    rng = np.random.default_rng(0)
    for _ in range(3):
        q = np.asarray(kind.plus(np.array(kind.neutral), rng.standard_normal(kind.nv)), dtype=float).ravel()
        R = np.eye(3) if kind.E is None else np.asarray(kind.E(q), dtype=float).T
        T = np.asarray(kind.T(q), dtype=float)
        both = np.hstack([T_0, np.vstack([R @ T[:3], R @ T[3:]])])
        if np.linalg.matrix_rank(both, tol=1e-9) > T.shape[1]:
            return False
    return True


def _cosines(R: Matrix, turns: int) -> list[Matrix]:
    """Residuals whose rates are turns about x, y, z of F: cosines of axes of the bodies that are perpendicular."""
    return [R[2, 1], R[0, 2], R[1, 0]] if turns == 3 else [-R[1, 2], R[0, 2]]


def _rate_of_residual(kind: Kind, k: int, e: _Ends) -> Matrix:
    """Rate of row k of `phi`, for joints with directions on both bodies, such as the axes of a cross."""
    import casadi as ca

    R, p, t = ca.SX.sym("R", 3, 3), ca.SX.sym("p", 3), ca.SX.sym("t")
    w, v = ca.SX.sym("w", 3), ca.SX.sym("v", 3)
    phi = ca.substitute(kind.phi(R, p)[k], ca.veccat(R, p), ca.veccat(R + t * (skew(w) @ R), p + t * v))
    rate = ca.substitute(ca.jacobian(phi, t), t, 0)
    turn = e.R_1.T @ (e.w_2 - e.w_1)
    slide = e.R_1.T @ (e.v_2 - e.v_1 - cross(e.w_1, e.s))
    now = ca.veccat(e.R_1.T @ e.R_2, e.R_1.T @ e.s, turn, slide)
    found: Matrix = ca.substitute(rate, ca.veccat(R, p, w, v), now)
    return found


class _Abbreviations:
    """Symbols for vectors, and the rates of all symbols that move."""

    def __init__(self, found: Symbols, rotations: Sequence[RotationMatrix], in_body: bool) -> None:
        import sympy

        self.v, self.in_body = found.v, in_body
        self.definitions, self.meanings = dict(found.definitions), dict(found.meanings)
        self.rates: dict[Any, Any] = {}
        self.entries: set[Any] = set()  # of rotation matrices
        self._known: dict[Any, Any] = {}
        self._taken = {str(x) for x in self.meanings}
        for i, rotation in enumerate(rotations):
            x, y, z, *velocity = found.v[6 * i : 6 * i + 6]
            self.rates |= dict(zip(found.q[7 * i : 7 * i + 3], velocity, strict=True))
            R, turning = sympy.Matrix(rotation.entries), sympy.Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
            self.rates |= dict(zip(R, R * turning if in_body else turning * R, strict=True))
            self.entries |= set(R)

    def add(self, vector: Abbreviation, index: str, value: Sequence[Any]) -> None:
        """Make symbols of the components that are sums or products, and of their rates in the fixed frame."""
        import sympy

        value = [self.written(x) for x in value]
        names = [
            self._symbol(f"{vector.letter}_{index}{axis}") if x.is_Add or x.is_Mul else x
            for x, axis in zip(value, AXES, strict=True)
        ]
        if vector.link is None:
            moving = [self._rate(x) for x in value]
        else:
            spin = sympy.Matrix(self.v[6 * vector.link : 6 * vector.link + 3])
            moving = list(spin.cross(sympy.Matrix(names)))
        for x, expression, rate, axis in zip(names, value, moving, AXES, strict=True):
            if x is expression:
                continue
            self._known[x] = self.definitions[x] = expression
            self.meanings[x] = Meaning(f"vector {vector.meaning}, along {axis}", None, "m")
            if not self.in_body:
                dotted = self._symbol(f"{vector.letter}dot_{index}{axis}")
                self.rates[x] = dotted
                self.definitions[dotted] = rate
                self.meanings[dotted] = Meaning(f"rate of {x}", None, "m/s")

    def _symbol(self, name: str) -> Any:
        """A new symbol."""
        import sympy

        while name in self._taken:
            name += "_0"
        self._taken.add(name)
        return sympy.Symbol(name)

    def written(self, expression: Any) -> Any:
        """An expression in the abbreviations, where that makes it shorter."""
        import sympy

        terms = sympy.expand(expression)
        for symbol, value in self._known.items():
            first = max(sympy.Add.make_args(sympy.expand(value)), key=lambda term: len(term.free_symbols))
            number, product = first.as_coeff_Mul()
            factor = terms.coeff(product) / number
            shorter = sympy.expand(terms - factor * (value - symbol))
            terms = min((terms, shorter), key=_length)
        return min((_shortest(terms), expression), key=sympy.count_ops)

    def minus_rate(self, row: Any) -> Any:
        """`-Jdot v` of one row."""
        import sympy

        total = sympy.expand(-self._rate((row * self.v)[0]))
        by_entry = sympy.collect(total, sorted(self.entries & total.free_symbols, key=str), evaluate=False)
        grouped = sympy.Add(*(x * _shortest(sympy.expand(c)) for x, c in by_entry.items()))
        return min((_shortest(total), grouped), key=sympy.count_ops)

    def _rate(self, expression: Any) -> Any:
        """Rate of an expression along the motion, its rates kept constant."""
        import sympy

        moving = sorted(expression.free_symbols & self.rates.keys(), key=str)
        return sympy.Add(*(sympy.diff(expression, x) * self.rates[x] for x in moving))


def _length(expression: Any) -> tuple[int, int, int]:
    """Terms, operations and symbols of an expanded expression."""
    import sympy

    return len(sympy.Add.make_args(expression)), int(sympy.count_ops(expression)), len(expression.free_symbols)


def _shortest(expression: Any) -> Any:
    """The shortest form that the simplifier finds."""
    generators = Generators()
    return Simplifier(generators)(polynomial_of(expression, generators))


def _used(matrices: Sequence[Any], definitions: dict[Any, Any]) -> set[Any]:
    """Symbols of some matrices, and of the definitions that they need."""
    used, waiting = set(), set().union(*(matrix.free_symbols for matrix in matrices))
    while waiting:
        x = waiting.pop()
        used.add(x)
        if x in definitions:
            waiting |= definitions[x].free_symbols - used
    return used
