"""MuJoCo's model of a mechanism that Cardan wrote as MJCF, and the order of its joints."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.gpu.peers.task import Task, reordered


def load(task: Task) -> tuple[Any, np.ndarray, np.ndarray]:
    """The model with RK4, without contacts and limits, and the places of its q and v in Cardan's."""
    import mujoco

    facts = task.facts
    model = mujoco.MjModel.from_xml_path(str(task.folder / f"{task.name}.xml"))
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= int(off.mjDSBL_CONTACT) | int(off.mjDSBL_LIMIT)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    model.opt.timestep = facts["step"]
    names = [model.joint(k).name for k in range(model.njnt)]
    joints = facts["joints"]
    q_order = reordered([(name, nq) for name, nq, _ in joints], names, "MuJoCo")
    v_order = reordered([(name, nv) for name, _, nv in joints], names, "MuJoCo")
    return model, q_order, v_order


def gap(model: Any, q: np.ndarray) -> float:
    """Largest distance of points that equality constraints join, m, computed in float64."""
    import mujoco

    data, worst = mujoco.MjData(model), 0.0
    for row in np.asarray(q, float):
        data.qpos[:] = row
        mujoco.mj_forward(model, data)
        rows = data.efc_pos[: data.ne]
        worst = max(worst, float(np.abs(rows).max(initial=0.0)))
    return worst
