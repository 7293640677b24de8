"""A model file as MuJoCo compiles it and as Cardan loads it, side by side: `compare` gives the differences.

MuJoCo's rates of a free body are its velocity in world axes, then its angular velocity in its own; ours are its twist.
With `v = T v_mujoco`, forces go the other way by `T^T`. CasADi's interpreter answers, so that nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import cardan as cd
from cardan.formulation.dynamics import forward_dynamics
from cardan.formulation.spatial import SPATIAL
from cardan.structure.kernels import function_of

from .formulations import RECURSIONS

OWN = Path(__file__).parent / "data" / "mjcf"
# package on PyPI: where its models are, and the folder that their files stay in
PACKAGES = {
    "dm_control": ("dm_control", ""),
    "gymnasium": ("gymnasium", "envs/mujoco/assets"),
    "mujoco-mjx": ("mujoco.mjx", "test_data"),
    "mujoco": ("mujoco", "testdata"),
}
SAME_FRAME, SAME_AXES = 1, (1, 3)
"""What MuJoCo writes into `body_sameframe`: of the frame of inertia, all or its axes are those of the body."""
UNLIKE = ("tendon", "springdamper", "fluid")
"""Losses that act on a mechanism that touches nothing: its forces cannot be compared."""


def packaged(name: str) -> tuple[Path, list[Path]]:
    """Folder and model files of a package; none if it is not installed."""
    module, inside = PACKAGES[name]
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None or not found.submodule_search_locations:
        return Path(), []
    folder = Path(next(iter(found.submodule_search_locations)))
    return folder, sorted((folder / inside).rglob("*.xml"))


def compare(path: Path, seed: int = 0, *, compiled: bool = False, **given: Any) -> dict[str, float]:
    """Relative differences: total mass, mass matrix, bias force, poses of bodies, and the sum of smooth forces.

    With `compiled`, our bodies have the inertias that MuJoCo has compiled, instead of those that we read.
    """
    import mujoco

    theirs = mujoco.MjModel.from_xml_path(str(path))
    model = with_inertias(path, theirs, **given) if compiled else cd.load(path, **given)
    assert (model.nq, model.nv) == (theirs.nq, theirs.nv), f"{model} is not {theirs.nq}, {theirs.nv}"
    total = max(theirs.body_mass.sum(), 1e-300)
    errors = {"mass": abs(model.total_mass - theirs.body_mass.sum()) / total if model.total_mass else 0.0}
    off = mujoco.mjtDisableBit
    theirs.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT | off.mjDSBL_ACTUATION
    theirs.opt.density = theirs.opt.viscosity = 0
    data = mujoco.MjData(theirs)
    q, v = model.random_state(np.random.default_rng(seed))
    T, carried = _rates(model, theirs, data, q, v)
    mujoco.mj_forward(theirs, data)
    plain = replace(model, cuts=(), couplings=(), forces=())
    errors["poses"] = _poses(plain, theirs, data, q)
    if not model.nv:
        return errors
    M_theirs = np.zeros((theirs.nv, theirs.nv))
    mujoco.mj_fullM(theirs, data, M_theirs)
    if any(loss.startswith("armature of tendon") for loss in model.losses):
        return errors
    M, bias = (_evaluate(plain, name, q, v) for name in ("mass_matrix", "bias_force"))
    errors["mass matrix"] = _apart(T.T @ M @ T, M_theirs, 0.0)
    size = float(np.abs(M_theirs).max())
    if not any(link.kind.nv == 6 and link.armature is not None for link in model.tree.links):
        errors["bias"] = _apart(T.T @ (bias.ravel() + M @ carried), data.qfrc_bias, size)
    if not any(word in loss for word in UNLIKE for loss in model.losses):
        errors["forces"] = _apart(
            T.T @ M @ (_acceleration(model, q, v) - carried), data.qfrc_passive - data.qfrc_bias, size
        )
    return errors


def inertias(theirs: Any, *, used: bool = False) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Mass, centre of mass and inertia about it of every compiled body, in its own axes.

    Where the frame of inertia is nearly that of the body, MuJoCo says so and computes as if it were: so it is `used`.
    """
    found = []
    for k in range(1, theirs.nbody):
        e, com, same = theirs.body_iquat[k], theirs.body_ipos[k], used * theirs.body_sameframe[k]
        R = np.eye(3) if same in SAME_AXES else cd.Pose(quaternion=e / np.linalg.norm(e)).rotation
        I = R @ np.diag(theirs.body_inertia[k]) @ R.T
        found.append((float(theirs.body_mass[k]), com * (same != SAME_FRAME), I))
    return found


def with_inertias(path: Path, theirs: Any, **given: Any) -> cd.Model:
    """Our model with the inertias of a compiled one."""
    mechanism = cd.load_mechanism(path, **given)
    own = [body for body in mechanism.bodies if " / " not in body.name]
    for body, (m, c, I) in zip(own, inertias(theirs, used=True), strict=True):
        mechanism._bodies[body.name] = replace(body, mass=m, com=c, inertia=I)
    return mechanism.build()


def inertia_apart(path: Path, **given: Any) -> float:
    """The largest difference of a body's inertia from the compiled one, relative to that body's."""
    import mujoco

    ours = [body for body in cd.load_mechanism(path, **given).bodies if " / " not in body.name]
    worst = 0.0
    for body, (m, c, I) in zip(ours, inertias(mujoco.MjModel.from_xml_path(str(path))), strict=True):
        assert abs(body.mass - m) <= 1e-12 * m and np.abs(body.com - c).max() <= 1e-12
        worst = max(worst, _apart(body.inertia, I, 0.0))
    return worst


def _rates(model: cd.Model, theirs: Any, data: Any, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Set MuJoCo's state; return `T`, and the part of our accelerations that velocities cause in it."""
    T, carried = np.eye(model.nv), np.zeros(model.nv)
    for j, link in enumerate(model.tree.links):
        name = theirs.joint(j).name
        assert not name or name == model.joints[link.joint].name
        at, dof = theirs.jnt_qposadr[j], theirs.jnt_dofadr[j]
        data.qpos[at : at + link.kind.nq] = q[link.q]
        if link.kind.nv == 6:
            R = cd.Pose(quaternion=q[link.q][3:]).rotation
            T[link.v, dof : dof + 6] = np.block([[np.zeros((3, 3)), np.eye(3)], [R.T, np.zeros((3, 3))]])
            w, u = v[link.v][:3], v[link.v][3:]
            carried[link.v] = [0, 0, 0, *-np.cross(w, u)]
    if model.nv:
        data.qvel[:] = np.linalg.solve(T, v)
    return T, carried


def _poses(model: cd.Model, theirs: Any, data: Any, q: np.ndarray) -> float:
    """Bodies in MuJoCo's order; between them are the links of bodies with several joints."""
    ours = [k for k, name in enumerate(model.body_names) if " / " not in name]
    assert len(ours) == theirs.nbody - 1
    poses = np.array(cd.body_poses(model, q)) if not model.nv else _evaluate(model, "body_poses", q, None)
    worst = 0.0
    for i, k in enumerate(ours, 1):
        name = theirs.body(i).name
        assert not name or name == model.body_names[k]
        pose = poses[k].reshape(4, 4)
        worst = max(worst, float(np.abs(pose[:3, :3] - data.xmat[i].reshape(3, 3)).max()))
        worst = max(worst, _apart(pose[:3, 3], data.xpos[i], 1.0))
    return worst


def _evaluate(model: cd.Model, name: str, q: np.ndarray, v: np.ndarray | None) -> np.ndarray:
    quantity = RECURSIONS["spatial"][name]
    return np.array(function_of(model, quantity)(*(q if port == "q" else v for port in quantity.inputs)))


def _acceleration(model: cd.Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Free motion under the model's own forces, loops and couplings left open."""
    opened = replace(model, cuts=(), couplings=())
    quantity = forward_dynamics(opened, SPATIAL, [], False)
    values = {"q": q, "v": v, "tau": np.zeros(model.nv), "t": 0.0}
    return np.array(function_of(opened, quantity)(*(values[port] for port in quantity.inputs))).ravel()


def _apart(a: np.ndarray, b: np.ndarray, size: float) -> float:
    """Largest difference over the largest number, or over `size` if that is larger."""
    return float(np.abs(a - b).max()) / max(float(np.abs(b).max()), size, 1e-300)


def models(name: str) -> Iterator[tuple[Path, Path]]:
    """Model files of a package that are MJCF, with the folder they may read."""
    folder, files = packaged(name)
    for file in files:
        if "<mujoco" in file.read_text(errors="replace"):
            yield folder, file
