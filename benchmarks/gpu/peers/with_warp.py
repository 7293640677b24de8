"""MuJoCo Warp: `mujoco_warp.forward` and `mujoco_warp.step`, captured in a CUDA graph."""

from __future__ import annotations

from benchmarks.gpu.peers.mujoco_model import gap, load
from benchmarks.gpu.peers.task import Prepared, Task, relative, serve

INSIDE = 10  # evaluations or steps in one graph
LONG, FEW = 10_000, 4096  # steps after which the gap of loops is looked at, in batches up to this


def prepare(task: Task) -> Prepared:
    """Compile, compare with Cardan's numbers, and capture."""
    import mujoco
    import mujoco_warp as mjw
    import numpy as np
    import warp as wp

    wp.config.quiet = True
    wp.init()
    on_card = task.device != "cpu"
    with wp.ScopedDevice("cuda:0" if on_card else "cpu"):
        model, q_order, v_order = load(task)
        start = mujoco.MjData(model)
        mujoco.mj_forward(model, start)
        put = mjw.put_model(model)
        data = mjw.put_data(model, start, nworld=task.rows)
        states = {"qpos": task.array("q")[:, q_order], "qvel": task.array("v")[:, v_order]}
        forward = task.kind == "forward dynamics"
        if forward:
            states["qfrc_applied"] = task.array("tau")[:, v_order]

        def reset() -> None:
            for name, array in states.items():
                getattr(data, name).assign(np.ascontiguousarray(task.filled(array), dtype=np.float32))

        work = mjw.forward if forward else mjw.step

        def several() -> None:
            for _ in range(INSIDE):
                work(put, data)

        reset()
        more: dict[str, float] = {}
        several()  # compiles
        reset()
        graph = None
        if on_card:
            with wp.ScopedCapture() as capture:
                several()
            graph = capture.graph

        def run(count: int) -> None:
            for _ in range(count):
                if graph is None:
                    several()
                else:
                    wp.capture_launch(graph)
            wp.synchronize()

        reset()
        if forward:
            run(1)
            found = data.qacc.numpy()[: len(states["qpos"])]
            difference = relative(found, task.array("a")[:, v_order])
        else:
            wanted = task.array("end")[:, q_order]
            run(task.facts["compared"] // INSIDE)
            difference = float(np.abs(data.qpos.numpy()[: len(wanted)] - wanted).max())
            if model.neq and task.rows <= FEW and on_card:
                run((LONG - task.facts["compared"]) // INSIDE)
                more = {"gap": gap(model, data.qpos.numpy()[:64]), "after": LONG * task.facts["step"]}
            reset()

        def timed(count: int) -> None:
            with wp.ScopedDevice("cuda:0" if on_card else "cpu"):
                run(count)

        return Prepared(timed, task.rows * INSIDE, difference, more)


if __name__ == "__main__":
    serve(prepare)
