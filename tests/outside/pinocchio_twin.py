"""One URDF file as Cardan loads it and as Pinocchio does: poses of links, mass matrix, inverse and forward dynamics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.io.urdf import Root
from cardan.structure.kernels import tree_graph

pin = pytest.importorskip("pinocchio")


class Twin:
    """Pinocchio's model of the same file, spoken to in Cardan's coordinates.

    Its joints are ordered by name, a free joint is (position, xyzw) with (linear, angular) velocity, an
    unlimited hinge is (cos, sin), a planar joint has its velocity in the moving frame.
    """

    def __init__(self, model: cd.Model, path: Path, root: str) -> None:
        self.model = model
        free = (pin.JointModelFreeFlyer(),) if root == "free" else ()
        self.pin = pin.buildModelFromUrdf(str(path), *free)
        self.pin.gravity.linear = model.gravity
        self.data = self.pin.createData()
        assert self.pin.nv == model.nv

    def coordinates(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its q, the matrix A with its v = A v, and the rate of A times v."""
        their_q, A, bias = (
            np.zeros(self.pin.nq),
            np.zeros((self.pin.nv, self.model.nv)),
            np.zeros(self.pin.nv),
        )
        for name, joint in list(zip(self.pin.names, self.pin.joints, strict=True))[1:]:
            name = "root" if name == "root_joint" else name
            ours, rates = q[self.model.q_slice(name)], self.model.v_slice(name)
            q_at, v_at = (
                slice(joint.idx_q, joint.idx_q + joint.nq),
                slice(joint.idx_v, joint.idx_v + joint.nv),
            )
            match joint.nq, joint.nv:
                case 1, 1:
                    their_q[q_at], A[v_at, rates] = ours, 1.0
                case 2, 1:
                    their_q[q_at], A[v_at, rates] = (np.cos(ours[0]), np.sin(ours[0])), 1.0
                case 4, 3:
                    c, s = np.cos(ours[2]), np.sin(ours[2])
                    x, y, turn = v[rates]
                    their_q[q_at] = ours[0], ours[1], c, s
                    A[v_at, rates] = [[c, s, 0], [-s, c, 0], [0, 0, 1]]
                    bias[v_at] = turn * (c * y - s * x), turn * (-s * y - c * x), 0
                case 7, 6:
                    their_q[q_at], A[v_at, rates] = ours[[0, 1, 2, 4, 5, 6, 3]], np.eye(6)[[3, 4, 5, 0, 1, 2]]
        return their_q, A, bias

    def answers(self, q: np.ndarray, v: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mass matrix, inverse dynamics of acceleration x, forward dynamics of force x."""
        their_q, A, bias = self.coordinates(q, v)
        M = pin.crba(self.pin, self.data, their_q)
        M = np.triu(M) + np.triu(M, 1).T
        tau = pin.rnea(self.pin, self.data, their_q, A @ v, A @ x + bias)
        a = pin.aba(self.pin, self.data, their_q, A @ v, np.linalg.solve(A.T, x))
        return A.T @ M @ A, A.T @ tau, np.linalg.solve(A, a - bias)


def differences(path: Path, root: Root = "fixed", seed: int = 0) -> dict[str, float]:
    """Relative differences at a random state, joints that mimic moving by themselves."""
    model = cd.load(path, root=root, mimic=False, snapping=0.0, damping=False)  # as Pinocchio
    twin = Twin(model, path, root)
    rng = np.random.default_rng(seed)
    q, v = model.random_state(rng)
    x = rng.standard_normal(model.nv)
    found = {"poses": _poses(model, twin, q, v), "names": float(_names_differ(model, twin)), "data": _data(model, twin)}
    if not model.nv:
        return found
    ours = [tree_graph(model, name) for name in ("mass_matrix", "inverse_dynamics", "forward_dynamics")]
    answers = np.array(ours[0](q)), *(np.array(f(q, v, x)).ravel() for f in ours[1:])
    names = ("mass matrix", "inverse dynamics", "forward dynamics")
    for name, mine, theirs in zip(names, answers, twin.answers(q, v, x), strict=True):
        found[name] = float(np.abs(mine - theirs).max() / max(np.abs(theirs).max(), 1e-300))
    return found


def _poses(model: cd.Model, twin: Twin, q: np.ndarray, v: np.ndarray) -> float:
    their_q, _, _ = twin.coordinates(q, v)
    pin.framesForwardKinematics(twin.pin, twin.data, their_q)
    poses = np.array(tree_graph(model, "body_poses")(q)).reshape(-1, 4, 4) if model.nv else cd.body_poses(model, q)
    worst = 0.0
    for name, pose in zip(model.body_names, poses, strict=True):
        theirs = twin.data.oMf[twin.pin.getFrameId(name, pin.FrameType.BODY)].homogeneous
        worst = max(worst, float(np.abs(pose - theirs).max()))
    return worst


def _data(model: cd.Model, twin: Twin) -> float:
    """Limits, damping and friction of hinges and slides."""
    worst, theirs = 0.0, twin.pin
    for name, joint in list(zip(theirs.names, theirs.joints, strict=True))[1:]:
        data = model.joint("root" if name == "root_joint" else name).data
        if joint.nq != 1:
            continue
        q, v = joint.idx_q, joint.idx_v
        pairs = [(data.lower, theirs.lowerPositionLimit[q]), (data.upper, theirs.upperPositionLimit[q])]
        pairs += [(data.velocity, theirs.upperVelocityLimit[v]), (data.effort, theirs.upperEffortLimit[v])]
        pairs += [(data.damping, theirs.damping[v]), (data.friction, theirs.upperDryFrictionLimit[v])]
        worst = max(worst, *(abs(a - b) for a, b in pairs if a is not None))
    return worst


def _names_differ(model: cd.Model, twin: Twin) -> bool:
    moving = {model.joints[link.joint].name for link in model.tree.links}
    return moving != {"root" if name == "root_joint" else name for name in list(twin.pin.names)[1:]}


def mimic_differences(path: Path, seed: int = 0) -> dict[str, float]:
    """Mass matrix and bias force along the coordinates that are left when joints, all of one freedom, follow others."""
    model = cd.load(path, snapping=0.0, damping=False)
    q, v = model.random_state(np.random.default_rng(seed))
    G, led, free, offset = _following(model)
    v = G @ v[free]
    q[led] = (G @ q[free])[led] + offset
    twin = pin.buildModelFromUrdf(str(path), mimic=True)
    twin.gravity.linear = model.gravity
    data, theirs, order = twin.createData(), pin.neutral(twin), []
    for name, joint in list(zip(twin.names, twin.joints, strict=True))[1:]:
        at = model.v_slice(name).start
        if at not in led:
            theirs[joint.idx_q : joint.idx_q + joint.nq] = q[at] if joint.nq == 1 else (np.cos(q[at]), np.sin(q[at]))
            order.append(free.index(at))
    M = pin.crba(twin, data, theirs)
    M = np.triu(M) + np.triu(M, 1).T
    bias = pin.rnea(twin, data, theirs, v[free][order], np.zeros(twin.nv))
    graph = cd.equations(model).graph
    our_M = (G.T @ np.array(graph("mass_matrix")(q)).reshape(model.nv, model.nv) @ G)[np.ix_(order, order)]
    our_bias = (G.T @ np.array(graph("bias_force")(q, v)).ravel())[order]
    return {
        "mass matrix": float(np.abs(our_M - M).max() / np.abs(M).max()),
        "bias": float(np.abs(our_bias - bias).max() / max(np.abs(bias).max(), np.abs(M).max())),
    }


def _following(model: cd.Model) -> tuple[np.ndarray, list[int], list[int], np.ndarray]:
    """`G` with `v = G v_free`, which rates follow and which are free, and what is added to coordinates that follow."""
    C = np.zeros((len(model.couplings), model.nv))
    for row, coupling in zip(C, model.couplings, strict=True):
        for j, c in zip(coupling.joints, coupling.coefficients, strict=True):
            row[model.v_slice(model.joint_names[j])] = c
    led = [model.v_slice(j.name).start for j in model.joints if j.data.mimic and j.kind.nv]
    free = [k for k in range(model.nv) if k not in led]
    assert len(led) == len(model.couplings)
    G = np.zeros((model.nv, len(free)))
    G[free] = np.eye(len(free))
    G[led] = -np.linalg.solve(C[:, led], C[:, free])
    offset = np.array([coupling.offset for coupling in model.couplings])
    return G, led, free, np.linalg.solve(C[:, led], offset)
