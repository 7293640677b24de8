"""One MJCF file as Cardan loads it and as MuJoCo compiles it: everything that both know, side by side.

`differences` gives relative differences by name. MuJoCo's equality constraints are soft; what is compared is how far
each is from closed, and the space of motions that they allow where they are closed.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cardan as cd
from cardan.formulation.dynamics import constraint_residual, constraint_rows
from cardan.structure.kernels import function_of

from ..formulations import RECURSIONS
from ..mjcf import UNLIKE, _acceleration, _apart, _evaluate, _rates

mujoco = pytest.importorskip("mujoco")

OFF = mujoco.mjtDisableBit
POSES = RECURSIONS["spatial"]["body_poses"]
HINGE, SLIDE, BALL, FREE = (
    int(getattr(mujoco.mjtJoint, f"mjJNT_{name}")) for name in ("HINGE", "SLIDE", "BALL", "FREE")
)


class Twin:
    """A file in both, at one state; `theirs` has no contact, limits nor friction, which Cardan does not have."""

    def __init__(self, path: Path, seed: int = 0) -> None:
        self.theirs = mujoco.MjModel.from_xml_path(str(path))
        self.model = cd.load(path)
        self.flags = int(self.theirs.opt.disableflags)
        self.theirs.opt.disableflags |= OFF.mjDSBL_CONTACT | OFF.mjDSBL_LIMIT | OFF.mjDSBL_FRICTIONLOSS
        self.data = mujoco.MjData(self.theirs)
        self.rng = np.random.default_rng(seed)

    def set(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take a state of Cardan's; `T` with `v = T v_mujoco`, and accelerations that MuJoCo has none of."""
        T, carried = _rates(self.model, self.theirs, self.data, q, v)
        mujoco.mj_forward(self.theirs, self.data)
        return T, carried


def differences(path: Path, seed: int = 0) -> dict[str, float]:
    """Relative differences of everything that can be compared; what does not even fit is an AssertionError."""
    twin = Twin(path, seed)
    model, theirs = twin.model, twin.theirs
    assert (model.nq, model.nv) == (theirs.nq, theirs.nv), f"{model} is not {theirs.nq}, {theirs.nv}"
    found = {"gravity": _gravity(twin)}
    if not model.nv:
        return found
    if any(joint.kind.nv == 6 for joint in model.joints) and any("('align')" in note for note in model.notes):
        return found  # its frames are elsewhere
    found |= {"start": _start(twin), "limits": _limits(twin), "mass": _mass(twin), "keyframes": _keyframes(twin)}
    found |= _loops(twin)
    q, v = model.random_state(twin.rng)
    found["gaps"] = _gaps(twin, q, v)
    twin.theirs.opt.disableflags |= OFF.mjDSBL_CONSTRAINT
    T, carried = twin.set(q, v)
    plain = replace(model, cuts=(), couplings=(), forces=())
    M_theirs = np.zeros((theirs.nv, theirs.nv))
    mujoco.mj_fullM(theirs, twin.data, M_theirs)
    M, bias = (_evaluate(plain, name, q, v) for name in ("mass_matrix", "bias_force"))
    size = float(np.abs(M_theirs).max())
    found["poses"] = _poses(twin, plain, q)
    if not any("armature and damping" in loss for loss in model.losses):
        found["mass matrix"] = _apart(T.T @ M @ T, M_theirs, 0.0)
    if not any(link.kind.nv == 6 and link.armature is not None for link in model.tree.links):
        found["bias"] = _apart(T.T @ (bias.ravel() + M @ carried), twin.data.qfrc_bias, size)
    unlike = any(word in loss for word in (*UNLIKE, "powers of its", "armature and damping") for loss in model.losses)
    if not unlike and np.linalg.cond(M_theirs) < 1e6:  # ours come from accelerations
        ours = T.T @ M @ (_acceleration(model, q, v) - carried)
        found["forces"] = _apart(ours, twin.data.qfrc_passive + _carried_by_drives(twin) - twin.data.qfrc_bias, size)
    found["actuators"] = _actuators(twin, q, v, T)
    return found


def _gravity(twin: Twin) -> float:
    on = not twin.flags & OFF.mjDSBL_GRAVITY
    return _apart(twin.model.gravity, twin.theirs.opt.gravity * on, 1.0)


def _mass(twin: Twin) -> float:
    """Of what moves: geoms of the world, and of bodies fused with it, are nobody's here."""
    theirs, moving = twin.theirs, 0.0
    for i in range(1, theirs.nbody):
        moving += float(theirs.body_mass[i]) if theirs.body_weldid[i] else 0.0
    ours = sum(link.mass for link in twin.model.tree.links)
    return abs(ours - moving) / max(moving, 1e-300)


def _start(twin: Twin) -> float:
    return _apart_but_for_signs(twin, twin.model.start(), twin.theirs.qpos0)


def _apart_but_for_signs(twin: Twin, ours: np.ndarray, theirs: np.ndarray) -> float:
    """Coordinates, where a quaternion is the same rotation as its negative."""
    ours = ours.copy()
    for quaternion in twin.model.quaternions:
        if ours[quaternion] @ theirs[quaternion] < 0:
            ours[quaternion] *= -1
    return _apart(ours, theirs, 1.0)


def _limits(twin: Twin) -> float:
    """Ranges of hinges and slides, the largest angle of balls, and dry friction, unless flags switch them off."""
    worst = 0.0
    limiting = not twin.flags & (OFF.mjDSBL_LIMIT | OFF.mjDSBL_CONSTRAINT)
    rubbing = not twin.flags & (OFF.mjDSBL_FRICTIONLOSS | OFF.mjDSBL_CONSTRAINT)
    for j, link in enumerate(twin.model.tree.links):
        data, limited = twin.model.joints[link.joint].data, bool(twin.theirs.jnt_limited[j]) and limiting
        assert limited == (data.lower is not None or data.upper is not None), f"limits of {link}"
        if limited:
            worst = max(worst, _apart(np.array([data.lower, data.upper]), twin.theirs.jnt_range[j], 1.0))
        if twin.theirs.jnt_actfrclimited[j]:
            worst = max(worst, abs(data.effort - np.abs(twin.theirs.jnt_actfrcrange[j]).max()))
        else:
            assert data.effort is None
        worst = max(worst, abs(data.friction - rubbing * twin.theirs.dof_frictionloss[twin.theirs.jnt_dofadr[j]]))
    return worst


def _poses(twin: Twin, plain: cd.Model, q: np.ndarray) -> float:
    """Bodies and sites that have a name, in both."""
    theirs, data, model = twin.theirs, twin.data, twin.model
    poses = {
        name: pose.reshape(4, 4)
        for name, pose in zip(model.body_names, _evaluate(plain, "body_poses", q, None), strict=True)
    }
    poses[""] = np.eye(4)
    worst = 0.0
    for i in range(1, theirs.nbody):
        name = theirs.body(i).name
        if name:
            worst = max(worst, _pose_apart(poses[name], data.xpos[i], data.xmat[i]))
    for i in range(theirs.nsite):
        frames = [frame for frame in model.frames if frame.name == theirs.site(i).name]
        if theirs.site(i).name:
            (frame,) = frames
            at = poses["" if frame.body < 0 else model.body_names[frame.body]] @ frame.at.matrix
            worst = max(worst, _pose_apart(at, data.site_xpos[i], data.site_xmat[i]))
    return worst


def _pose_apart(ours: np.ndarray, position: np.ndarray, rotation: np.ndarray) -> float:
    turned = float(np.abs(ours[:3, :3] - rotation.reshape(3, 3)).max())
    return max(turned, _apart(ours[:3, 3], position, 1.0))


def _carried_by_drives(twin: Twin) -> np.ndarray:
    """Weight carried by actuators instead of by itself, which is the same to a mechanism."""
    on = np.zeros(twin.theirs.nv)
    for j in range(twin.theirs.njnt):
        if twin.theirs.jnt_actgravcomp[j]:
            at = twin.theirs.jnt_dofadr[j]
            on[at : at + {FREE: 6, BALL: 3}.get(int(twin.theirs.jnt_type[j]), 1)] = 1.0
    return on * twin.data.qfrc_gravcomp


def _loops(twin: Twin) -> dict[str, float]:
    """Residuals of connects, welds and couplings where the file is, and what motions they allow if they are closed."""
    model, theirs, data = twin.model, twin.theirs, twin.data
    if not theirs.neq or any("of <equality>" in loss or "polynomial" in loss for loss in model.losses):
        return {}
    q, v = model.start(), np.zeros(model.nv)
    T, _ = twin.set(q, v)
    if not model.has_rows:
        assert not data.nefc
        return {}
    t = [0.0] if model.depends_on_time else []
    phi, _ = function_of(model, constraint_residual(model))(q, *t)
    J, _ = function_of(model, constraint_rows(model))(q, *t)
    ours, open = (float(np.abs(x).max(initial=0.0)) for x in (np.array(phi), data.efc_pos))
    if data.nefc == len(model.rows):  # MuJoCo leaves out what holds things that cannot move
        assert (ours < 1e-9) == (open < 1e-9), f"residuals {ours:g} and {open:g}"
    J = np.array(J)
    J_theirs = data.efc_J.ravel()[: data.nefc * model.nv].reshape(-1, model.nv)
    return {"loops": _spaces_apart(J @ T, J_theirs)} if max(ours, open) < 1e-9 else {}


def _gaps(twin: Twin, q: np.ndarray, v: np.ndarray) -> float:
    """How far connects and welds that have a name are open at a state where they are: lengths, and half angles."""
    model, theirs, data, worst = twin.model, twin.theirs, twin.data, 0.0
    twin.set(q, v)
    poses = np.array(function_of(replace(model, cuts=(), couplings=()), POSES)(q)).reshape(-1, 4, 4)
    poses = np.concatenate([poses, [np.eye(4)]])  # ground is the last
    for e in range(theirs.neq):
        mine = [joint for joint in model.joints if theirs.eq(e).name == joint.name]
        rows = (data.efc_id[: data.nefc] == e) & (data.efc_type[: data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        for coupling in model.couplings:
            if coupling.name == theirs.eq(e).name and coupling.function is None and rows.any():
                at = [model.q_slice(model.joint_names[j]).start for j in coupling.joints]
                gap = coupling.coefficients @ q[at] - coupling.offset
                worst = max(worst, abs(float(gap - data.efc_pos[: data.nefc][rows][0])))
        if not mine or not rows.any():
            continue
        F, M = poses[mine[0].parent] @ mine[0].at.matrix, poses[mine[0].child] @ mine[0].child_at.matrix
        open, between = data.efc_pos[: data.nefc][rows], np.linalg.inv(F) @ M
        worst = max(worst, abs(float(np.linalg.norm(open[:3]) - np.linalg.norm(between[:3, 3]))))
        if len(open) == 6:
            half = float(np.linalg.norm(cd.Pose(rotation=between[:3, :3]).quaternion[1:]))  # sine of half the angle
            worst = max(worst, abs(float(np.linalg.norm(open[3:])) - float(theirs.eq_data[e][10]) * half))
    return worst


def _spaces_apart(A: np.ndarray, B: np.ndarray) -> float:
    """How far two matrices are from having the same rows' space."""
    P, Q = (np.eye(A.shape[1]) * 0.0 for _ in range(2))
    for X, projection in ((A, P), (B, Q)):
        if np.abs(X).max(initial=0.0) > 1e-12:
            projection[:] = np.linalg.pinv(X, rcond=1e-9) @ X
    return float(np.abs(P - Q).max())


def _keyframes(twin: Twin) -> float:
    """States by name; MuJoCo normalises quaternions only when it uses them."""
    model, theirs, data, worst = twin.model, twin.theirs, twin.data, 0.0
    assert len(model.states) == theirs.nkey
    for k, state in enumerate(model.states.values()):
        q, v = theirs.key_qpos[k].copy(), theirs.key_qvel[k]
        mujoco.mj_normalizeQuat(theirs, q)
        _rates(model, theirs, data, state.q, state.v)
        apart = _apart_but_for_signs(twin, data.qpos.copy(), q), _apart(data.qvel, v, 1.0)
        worst = max(worst, *apart, abs(state.time - theirs.key_time[k]))
    return worst


def _actuators(twin: Twin, q: np.ndarray, v: np.ndarray, T: np.ndarray) -> float:
    """Force and moment of those that both have, at a random control."""
    model, theirs, data = twin.model, twin.theirs, twin.data
    ours = {actuator.name: actuator for actuator in model.actuators}
    control = data.ctrl[:] = twin.rng.uniform(-1, 1, theirs.nu)
    theirs.opt.disableflags &= ~int(OFF.mjDSBL_ACTUATION)
    mujoco.mj_forward(theirs, data)
    moments, worst = np.zeros((theirs.nu, theirs.nv)), 0.0
    if theirs.nu:
        mujoco.mju_sparse2dense(
            moments, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
        )
    names = list(ours)
    for i in range(theirs.nu):
        name = theirs.actuator(i).name
        actuator = ours.get(name) if name else None
        if actuator is None:
            if not name and len(ours) == theirs.nu:
                actuator = ours[names[i]]
            else:
                assert any(f"actuator {name!r}" in loss for loss in model.losses) or not name, name
                continue
        joint, u = actuator.joint, control[i]
        kind = model.joint(joint).kind
        if actuator.control:
            u = min(max(u, actuator.control[0]), actuator.control[1])
        length = float(actuator.gear @ q[model.q_slice(joint)]) if kind.nv == 1 else float(data.actuator_length[i])
        speed = float(actuator.gear @ v[model.v_slice(joint)])
        F = actuator.gain * u + actuator.bias @ (1.0, length, speed)
        if actuator.force:
            F = min(max(F, actuator.force[0]), actuator.force[1])
        own = np.zeros(model.nv)
        own[model.v_slice(joint)] = actuator.gear
        worst = max(worst, _apart(T.T @ own, moments[i], 1.0), abs(F - data.actuator_force[i]) / max(abs(F), 1.0))
    return worst
