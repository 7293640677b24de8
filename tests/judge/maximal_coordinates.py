"""The judge: dynamics of a mechanism in maximal coordinates, by least squares, written apart from the engine.

Every body has six coordinates, every joint its constraint rows, redundant or not. With `a` the accelerations of all
bodies, `M a = f + J^T lam` and `J a = gamma`: of all accelerations that the rows allow, `a` is the one nearest to that
of the free bodies (Gauss). One singular value decomposition of `J M^-1/2` gives it, the multipliers of least size, and
the multipliers that balance among themselves: a reaction in which these occur is not determined.

Only the description of a model is read: bodies, joints, couplings, force elements. Velocities and forces of a body are
at its centre of mass, in ground axes, linear part first; those of a joint are in the axes of its frame M, angular part
first, as in the engine's answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

import cardan as cd

from .joint_motions import MOTIONS, Array, Motion, cross_matrix

SMALL = 1e-9  # of the largest singular value: less is a dependent row
CLEAR = 1e-12  # dependent rows are below this; between the two lies a singular position, too near to judge


class CannotJudgeError(Exception):
    """The judge does not know an element, or cannot tell which rows depend on others."""


@dataclass(frozen=True)
class JointOf:
    """A joint as the judge reads it. `q` and `v` say where its coordinates are; None where it is cut."""

    name: str
    motion: Motion
    pitch: float
    parent: int
    child: int
    at: Array
    child_at: Array
    q: slice | None
    v: slice | None


@dataclass(frozen=True)
class Places:
    """Poses and velocities of all bodies: axes (nb, 3, 3), centres of mass, their velocities, angular velocities."""

    R: Array
    x: Array
    u: Array
    w: Array


@dataclass(frozen=True)
class JointState:
    """A joint at a state: the velocity of M in F is `B V`, its rate `B A + b`; coordinates, rates, freedoms."""

    B: Array
    b: Array
    q: Array
    v: Array
    S: Array
    drift: Array
    gap: float
    R: Array
    x: Array

    @property
    def T(self) -> Array:
        """Constraint forces (6, 6 - nv), of unit length."""
        return np.linalg.svd(self.S)[0][:, self.S.shape[1] :] if self.S.size else np.eye(6)

    @property
    def dual(self) -> Array:
        """Wrenches (6, nv) of unit forces along the rates."""
        return np.linalg.pinv(self.S).T


@dataclass(frozen=True)
class Judgement:
    """What the judge finds at a state.

    Args:
        a: accelerations (nv,) along the tree's rates.
        wrenches: of every joint on its child (joints, 6); those of least size where some are undetermined.
        determined: which of them the equations tell, a mask (joints, 6).
        undetermined: which they do not; at places where a self-stress just vanishes some are neither.
        singular: singular values of all rows, each of unit length in the metric of the masses.
        rank: how many of them are not rounding.
        scale: size of accelerations, each weighed by the root of the inertia that it moves.
        weights: roots (nv,) of those inertias.
        force: size of the forces, N.
        moment: size of the moments, N m.
        gap: how far loops and couplings are open, m and rad.
        drift: how far the velocities are from closing them, m/s and rad/s.
        balance: of wrenches (joints, 6), by how much they fail to balance a body that moves so; relative.

    """

    a: Array
    wrenches: Array
    determined: Array
    undetermined: Array
    singular: Array
    rank: int
    scale: float
    weights: Array
    force: float
    moment: float
    gap: float
    drift: float
    balance: Callable[[Array], float]

    @property
    def condition(self) -> float:
        """Largest over smallest of the singular values that count."""
        return float(self.singular[0] / self.singular[self.rank - 1]) if self.rank else 1.0

    @property
    def is_clear(self) -> bool:
        """Whether it is clear which singular values are rounding."""
        left = self.singular[self.rank :]
        return not left.size or bool(left[0] <= CLEAR * self.singular[0])

    def error_of_accelerations(self, a: Array) -> float:
        """Error of accelerations (nv,), relative to what acts."""
        return float(np.linalg.norm(self.weights * (a - self.a)) / max(self.scale, 1e-300))


class Judge:
    """Dynamics of one model."""

    def __init__(self, model: cd.Model) -> None:
        self.name, self.gravity, self.nv, self.nq = model.name, np.array(model.gravity), model.nv, model.nq
        self.bodies, self.elements, self.couplings = model.bodies, model.forces, model.couplings
        if model.constraints or model.parameters or any(np.any(joint.armature) for joint in model.joints):
            raise CannotJudgeError(f"model {model.name!r}: constraints of the user, free numbers and armature")
        self.joints = [self._read(model, j) for j in range(len(model.joints))]
        self.order = self._walk()
        self.right_sides = [_right_side(coupling) for coupling in self.couplings]

    @staticmethod
    def _read(model: cd.Model, j: int) -> JointOf:
        joint = model.joints[j]
        kind = type(joint.type).__name__.lower()
        if kind not in MOTIONS:
            raise CannotJudgeError(f"joint {joint.name!r}: a kind of the user")
        motion, in_tree = MOTIONS[kind], j not in model.cuts and MOTIONS[kind].nv > 0
        places = (model.q_slice(joint.name), model.v_slice(joint.name)) if in_tree else (None, None)
        return JointOf(
            joint.name, motion, float(getattr(joint.type, "pitch", 0.0)), joint.parent, joint.child,
            joint.at.matrix, joint.child_at.matrix, *places,
        )  # fmt: skip

    def _walk(self) -> list[tuple[int, bool]]:
        """Joints of the tree in an order that begins at the ground, and whether each leads to its child."""
        known, order = {-1}, []
        while len(known) <= len(self.bodies):
            for j, joint in enumerate(self.joints):
                usable = joint.q is not None or joint.motion.nv == 0
                if usable and (joint.parent in known) != (joint.child in known):
                    order.append((j, joint.parent in known))
                    known |= {joint.parent, joint.child}
                    break
            else:
                raise CannotJudgeError(f"model {self.name!r}: its tree does not reach every body")
        return order

    def places(self, q: Array, v: Array) -> Places:
        """Where all bodies are and how they move, from the tree's coordinates and rates."""
        n = len(self.bodies)
        X, w, u = np.zeros((n + 1, 4, 4)), np.zeros((n + 1, 3)), np.zeros((n + 1, 3))  # velocities at body origins
        X[-1] = np.eye(4)
        for j, outwards in self.order:
            joint = self.joints[j]
            own_q, own_v = (x[at] if at is not None else np.zeros(0) for x, at in ((q, joint.q), (v, joint.v)))
            moved = np.eye(4)
            moved[:3, :3], moved[:3, 3] = joint.motion.pose(own_q, joint.pitch)
            twist = joint.motion.freedoms(own_q, joint.pitch) @ own_v
            if outwards:
                near, far = joint.parent, joint.child
                X[far] = X[near] @ joint.at @ moved @ _inverse(joint.child_at)
            else:
                near, far = joint.child, joint.parent
                X[far] = X[near] @ joint.child_at @ _inverse(moved) @ _inverse(joint.at)
            M = X[joint.child] @ joint.child_at
            sign = 1.0 if outwards else -1.0
            w[far] = w[near] + sign * M[:3, :3] @ twist[:3]
            there = u[near] + np.cross(w[near], M[:3, 3] - X[near][:3, 3]) + sign * M[:3, :3] @ twist[3:]
            u[far] = there + np.cross(w[far], X[far][:3, 3] - M[:3, 3])
        R, x = X[:n, :3, :3], X[:n, :3, 3]
        arms = np.array([R[b] @ self.bodies[b].com for b in range(n)]).reshape(n, 3)
        return Places(R, x + arms, u[:n] + np.cross(w[:n], arms), w[:n])

    def coordinate_rates(self, q: Array, v: Array) -> Array:
        """Rates (nq,) of the tree's coordinates."""
        found = np.zeros(self.nq)
        for joint in self.joints:
            if joint.q is not None:
                found[joint.q] = joint.motion.rates(q[joint.q], v[joint.v])
        return found

    def distance(self, q: Array, other: Array) -> float:
        """Largest distance of two configurations in any coordinate, m or rad; opposite quaternions are the same."""
        found = 0.0
        for joint in self.joints:
            if joint.q is not None:
                a, b = q[joint.q], other[joint.q]
                if joint.motion.nq != joint.motion.nv and a[-4:] @ b[-4:] < 0:
                    a = np.concatenate([a[:-4], -a[-4:]])
                found = max(found, float(np.abs(a - b).max()))
        return found

    def rates_of_bodies(self, q: Array) -> Array:
        """Velocities (6 nb, nv) of all bodies for unit rates of the tree."""
        found = [self.places(q, rate) for rate in np.eye(self.nv)]
        return np.array([np.concatenate([at.u, at.w], axis=1).ravel() for at in found]).reshape(self.nv, -1).T

    def tree_rows(self, q: Array, t: float = 0.0) -> Array:
        """All constraint rows (rows, nv) in the tree's rates, where those of tree joints vanish."""
        at = self.places(q, np.zeros(self.nv))
        return self.rows(at, self.joint_states(at, q), t)[0] @ self.rates_of_bodies(q)

    def condition(self, q: Array, t: float = 0.0) -> float:
        """Largest over smallest singular value that counts, without accelerations."""
        at = self.places(q, np.zeros(self.nv))
        values, axes = np.linalg.eigh(self.mass(at))
        J = self.rows(at, self.joint_states(at, q), t)[0]
        A = J @ (axes / np.sqrt(np.maximum(values, 1e-9 * values[-1])) @ axes.T)
        s = np.linalg.svd(A / np.linalg.norm(A, axis=1, keepdims=True), compute_uv=False)
        return float(s[0] / s[s > CLEAR * s[0]][-1])

    def joint_states(self, at: Places, q: Array) -> list[JointState]:
        """Every joint between the bodies where they are; those of the tree have the coordinates given."""
        return [self._joint_state(joint, at, q) for joint in self.joints]

    def _frame(self, at: Places, body: int, place: Array) -> tuple[Array, Array]:
        """Axes and origin of a frame of a body."""
        if body < 0:
            return place[:3, :3], place[:3, 3]
        return at.R[body] @ place[:3, :3], at.x[body] + at.R[body] @ (place[:3, 3] - self.bodies[body].com)

    def _joint_state(self, joint: JointOf, at: Places, q: Array) -> JointState:
        (RF, xF), (RM, xM) = self._frame(at, joint.parent, joint.at), self._frame(at, joint.child, joint.child_at)
        R, p = RF.T @ RM, RF.T @ (xM - xF)
        own_q = q[joint.q] if joint.q is not None else joint.motion.measured(R, p, joint.pitch)
        shown = joint.motion.pose(own_q, joint.pitch)
        gap = max(float(np.abs(R - shown[0]).max()), float(np.abs(p - shown[1]).max()))
        B, b = np.zeros((6, 6 * len(self.bodies))), np.zeros(6)
        # v_r = (w_c - w_p, velocity of M's origin on the child, less that of the parent's point there), in axes of M
        still = (NOWHERE, NOWHERE, NOWHERE)
        (xp, up, wp), (xc, uc, wc) = (
            still if k < 0 else (at.x[k], at.u[k], at.w[k]) for k in (joint.parent, joint.child)
        )
        for body, sign, x in ((joint.parent, -1.0, xp), (joint.child, 1.0, xc)):
            if body >= 0:
                B[:3, 6 * body + 3 : 6 * body + 6] += sign * RM.T
                B[3:, 6 * body : 6 * body + 3] += sign * RM.T
                B[3:, 6 * body + 3 : 6 * body + 6] -= sign * RM.T @ cross_matrix(xM - x)
        moved = uc + np.cross(wc, xM - xc)  # velocity of M's origin
        slip = moved - up - np.cross(wp, xM - xp)
        b[:3] = RM.T @ -np.cross(wc, wc - wp)
        b[3:] = RM.T @ (np.cross(wc, np.cross(wc, xM - xc)) - np.cross(wp, moved - up) - np.cross(wc, slip))
        S = joint.motion.freedoms(own_q, joint.pitch)
        own_v = np.linalg.pinv(S) @ np.concatenate([RM.T @ (wc - wp), RM.T @ slip]) if S.size else np.zeros(0)
        drift = joint.motion.drift(own_q, own_v) if S.size else np.zeros(6)
        return JointState(B, b, own_q, own_v, S, drift, gap, RM, xM)

    def rows(self, at: Places, states: list[JointState], t: float) -> tuple[Array, Array, Array, Array]:
        """`J`, `gamma`, `beta` (the rows' right side for velocities) and the wrenches (joints, 6, rows) they mean."""
        J, gamma, beta, acts = [], [], [], []
        for j, s in enumerate(states):
            for column in s.T.T:
                J.append(column @ s.B)
                gamma.append(-column @ (s.b - s.drift))
                beta.append(0.0)
                acts.append({j: column})
        for coupling, side in zip(self.couplings, self.right_sides, strict=True):
            _, rate, acceleration = side(t)
            row, rest, act = np.zeros(6 * len(self.bodies)), acceleration, {}
            for j, c in zip(coupling.joints, coupling.coefficients, strict=True):
                along = c * states[j].dual[:, 0]
                row = row + along @ states[j].B
                rest = rest - along @ (states[j].b - states[j].drift)
                act[j] = act.get(j, np.zeros(6)) + along
            J.append(row)
            gamma.append(rest)
            beta.append(rate)
            acts.append(act)
        G = np.zeros((len(states), 6, len(J)))
        for k, act in enumerate(acts):
            for j, wrench in act.items():
                G[j, :, k] = wrench
        return np.array(J).reshape(len(J), -1), np.array(gamma), np.array(beta), G

    def mass(self, at: Places) -> Array:
        """Masses and inertias of all bodies, a block for each (6 nb, 6 nb)."""
        M = np.zeros((6 * len(self.bodies),) * 2)
        for b, body in enumerate(self.bodies):
            M[6 * b : 6 * b + 3, 6 * b : 6 * b + 3] = body.mass * np.eye(3)
            M[6 * b + 3 : 6 * b + 6, 6 * b + 3 : 6 * b + 6] = at.R[b] @ body.inertia @ at.R[b].T
        return M

    def solve(self, q: Array, v: Array, tau: Array | None = None, t: float = 0.0, rank: int | None = None) -> Judgement:
        """Accelerations and reactions at a state of the tree; where rows depend on others they share the load.

        `rank` says how many rows are independent, where a state that is not quite consistent would not tell.
        """
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        at = self.places(q, v)
        states = self.joint_states(at, q)
        M, (J, gamma, beta, G) = self.mass(at), self.rows(at, states, t)
        loads, drives, largest = self._forces(at, states, np.zeros(self.nv) if tau is None else np.asarray(tau), t)
        f = loads + sum(s_.B.T @ drive for s_, drive in zip(states, drives, strict=True))
        heavy = M
        if np.linalg.eigvalsh(M)[0] <= 1e-10 * np.abs(M).max():  # J^T J and J^T gamma change nothing where J a = gamma
            heavy = M + J.T @ J
            f = f + J.T @ gamma
        values, axes = np.linalg.eigh(heavy)
        root = axes / np.sqrt(values) @ axes.T  # heavy^-1/2
        A = J @ root
        length = np.maximum(np.linalg.norm(A, axis=1), 1e-300)
        U, s, Vt = np.linalg.svd(A / length[:, None])
        rank = int((s > SMALL * s[0]).sum()) if rank is None else rank
        free = root @ f
        wanted = U[:, :rank].T @ ((gamma - A @ free) / length)
        y = free + Vt[:rank].T @ (wanted / s[:rank])
        lam = U[:, :rank] @ (wanted / s[:rank] ** 2) / length
        null = U[:, rank:] / length[:, None]
        vdot = root @ y
        wrenches = drives + G @ lam
        loose = np.abs(G @ null).max(axis=2, initial=0.0) / max(float(np.abs(null).max(initial=0.0)), 1e-300)
        tree = [(joint, s_) for joint, s_ in zip(self.joints, states, strict=True) if joint.v is not None]
        a = np.zeros(self.nv)
        for joint, state in tree:
            a[joint.v] = np.linalg.pinv(state.S) @ (state.B @ vdot + state.b - state.drift)
        rates = self.rates_of_bodies(q)
        weights = np.sqrt(np.maximum(np.einsum("ik,ij,jk->k", rates, M, rates), 0.0))
        turning = Vt[:rank].T @ ((U[:, :rank].T @ (gamma / length)) / s[:rank])
        scale = float(np.linalg.norm(free) + np.linalg.norm(turning) + np.linalg.norm(y))
        known = loose < 1e-10 * max(1.0, 1e-3 * s[0] / s[rank - 1] if rank else 1.0)
        inertial = np.abs(vdot.reshape(-1, 6)[:, :3]).max(initial=0.0) + np.linalg.norm(self.gravity)
        masses = max(body.mass for body in self.bodies)
        size = float(np.ptp(np.concatenate([at.x, *(s_.x[None] for s_ in states)]), axis=0).max())
        force = max(largest, masses * inertial, float(np.abs(np.where(known, wrenches, 0)[:, 3:]).max(initial=0.0)))
        moment = max(force * size, float(np.abs(np.where(known, wrenches, 0)[:, :3]).max(initial=0.0)))
        V = np.concatenate([at.u, at.w], axis=1).ravel()
        gap = max([s_.gap for s_ in states] + [abs(self._open(c, states, t)) for c in range(len(self.couplings))])
        off = float(np.abs(J @ V - beta).max(initial=0.0))

        def balance(given: Array) -> float:
            carried = sum(s_.B.T @ wrench for s_, wrench in zip(states, given, strict=True))
            left = np.abs(M @ vdot - loads - carried).reshape(-1, 2, 3).max(axis=(0, 2))
            arms = max(1.0, float(np.abs(given[:, 3:]).max(initial=0.0)) / force)  # large ones may balance each other
            turns = max(1.0, float(np.abs(given[:, :3]).max(initial=0.0)) / moment)
            return float(max(left[0] / force, left[1] / moment) / max(arms, turns))

        return Judgement(a, wrenches, known, loose > 1e-4, s, rank, scale, weights, force, moment, gap, off, balance)

    def _open(self, c: int, states: list[JointState], t: float) -> float:
        """Residual of a coupling; angles of cut joints are known but for whole turns."""
        coupling = self.couplings[c]
        left = sum(k * states[j].q[0] for j, k in zip(coupling.joints, coupling.coefficients, strict=True))
        off = float(left - self.right_sides[c](t)[0])
        if any(self.joints[j].q is None for j in coupling.joints):
            whole = 2 * np.pi * min(abs(float(k)) for k in coupling.coefficients)
            off -= whole * np.round(off / whole)
        return off

    def _forces(self, at: Places, states: list[JointState], tau: Array, t: float) -> tuple[Array, Array, float]:
        """Loads on the bodies (6 nb,), what joints transmit of drives and springs (joints, 6), the largest force, N."""
        n = len(self.bodies)
        f, drives, largest = np.zeros((n, 6)), np.zeros((len(states), 6)), 0.0
        for b, body in enumerate(self.bodies):
            I = at.R[b] @ body.inertia @ at.R[b].T
            f[b, :3] += body.mass * self.gravity
            f[b, 3:] -= np.cross(at.w[b], I @ at.w[b])

        def push(b: int, point: Array, force: Array, moment: Array = NOWHERE) -> None:
            nonlocal largest
            largest = max(largest, float(np.linalg.norm(force)))
            if b >= 0:
                f[b, :3] += force
                f[b, 3:] += moment + np.cross(point - at.x[b], force)

        for element in self.elements:
            law = ON_BODIES.get(element.kind.name)
            if law is not None:
                law(self, element, at, t, push)
                continue
            along = ON_JOINT.get(element.kind.name)
            if along is None:
                raise CannotJudgeError(f"{element.owner}: a kind of the user")
            s = states[element.on[0]]
            drives[element.on[0]] += s.dual @ along(element, t, s.q, s.v)
        for j, joint in enumerate(self.joints):
            if joint.v is not None:
                drives[j] += states[j].dual @ tau[joint.v]
        return f.ravel(), drives, max(largest, float(np.abs(drives[:, 3:]).max(initial=0.0)))

    def point(self, at: Places, body: int, p: Array) -> tuple[Array, Array]:
        """Position and velocity of a point of a body, given in the body's frame."""
        if body < 0:
            return np.asarray(p), NOWHERE
        arm = at.R[body] @ (p - self.bodies[body].com)
        return at.x[body] + arm, at.u[body] + np.cross(at.w[body], arm)


NOWHERE = np.zeros(3)


def _inverse(X: Array) -> Array:
    """Inverse of a homogeneous matrix."""
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = X[:3, :3].T, -X[:3, :3].T @ X[:3, 3]
    return found


def _right_side(coupling: Any) -> Any:
    """Right side of a coupling at a time, with its first two derivatives."""
    if coupling.function is None:
        return lambda t: (coupling.offset, 0.0, 0.0)
    s = ca.SX.sym("s")
    g = coupling.function(s)
    found = ca.Function("g", [s], [g, ca.jacobian(g, s), ca.jacobian(ca.jacobian(g, s), s)])
    return lambda t: tuple(float(x) for x in found(t))


# Force elements, from docs/format.md and docs/loops.md.


def _between_points(judge: Judge, f: Any, at: Places, t: float, push: Any) -> None:
    """Spring and damper along the line between two points."""
    (x1, u1), (x2, u2) = (judge.point(at, b, f.numbers[name]) for b, name in zip(f.on, ("at1", "at2"), strict=True))
    length = float(np.linalg.norm(x2 - x1))
    e = (x2 - x1) / length
    tension = float(f.numbers["damping"]) * (e @ (u2 - u1))
    if "stiffness" in f.numbers:
        tension += float(f.numbers["stiffness"]) * (length - float(f.numbers["length"]))
    push(f.on[0], x1, tension * e)
    push(f.on[1], x2, -tension * e)


def _bushing(judge: Judge, f: Any, at: Places, t: float, push: Any) -> None:
    """Six-axis spring: rotation vector and displacement of frame 2 in frame 1, and their rates."""
    n = f.numbers
    axes = [np.eye(3) if b < 0 else at.R[b] for b in f.on]
    spins = [NOWHERE if b < 0 else at.w[b] for b in f.on]
    (x1, u1), (x2, u2) = (judge.point(at, b, n[name]) for b, name in zip(f.on, ("at1", "at2"), strict=True))
    A1, A2 = axes[0] @ n["at1_rotation"], axes[1] @ n["at2_rotation"]
    e = _rotation_vector(A1.T @ A2)
    d = A1.T @ (x2 - x1)
    # thetadot for each unit angular velocity, by the inverse of the derivative of the exponential
    angle = float(np.linalg.norm(e))
    K = cross_matrix(e)
    c = 1 / 12 if angle < 1e-4 else (1 - (angle / 2) / np.tan(angle / 2)) / angle**2
    D = np.eye(3) - K / 2 + c * K @ K
    ddot = A1.T @ (u2 - u1 - np.cross(spins[0], x2 - x1))
    F = n["stiffness"] @ np.concatenate([e, d])
    F = F + n["damping"] @ np.concatenate([D @ A1.T @ (spins[1] - spins[0]), ddot])
    moment, force = A1 @ D.T @ F[:3], A1 @ F[3:]
    push(f.on[1], x2, -force, -moment)
    push(f.on[0], x2, force, moment)


def _rotation_vector(R: Array) -> Array:
    """Axis times angle of a rotation."""
    u = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    s, c = float(np.linalg.norm(u)), (float(np.trace(R)) - 1) / 2
    return u if s < 1e-12 else u / s * np.arctan2(s, c)


def _wrench(judge: Judge, f: Any, at: Places, t: float, push: Any) -> None:
    """Constant moment and force at a point, in ground axes or in those of the body."""
    b = f.on[0]
    R = at.R[b] if f.numbers["follows"] else np.eye(3)
    push(b, judge.point(at, b, f.numbers["at"])[0], R @ f.numbers["value"][3:], R @ f.numbers["value"][:3])


ON_BODIES: dict[str, Any] = {
    "spring": _between_points, "damper": _between_points, "bushing": _bushing, "wrench": _wrench,
}  # fmt: skip
ON_JOINT: dict[str, Any] = {
    "torsion": lambda f, t, q, v: -f.numbers["stiffness"] * (q - f.numbers["rest"]) - f.numbers["damping"] * v,
    "friction": lambda f, t, q, v: (
        -f.numbers["viscous"] * v - f.numbers["coulomb"] * np.tanh(v / f.numbers["smoothing"])
    ),
    "drive": lambda f, t, q, v: np.array(f.function(t, q, v), dtype=float).ravel(),
}
