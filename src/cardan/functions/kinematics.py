"""Where the bodies are and how they move: batched functions of a model.

Shapes: `q` (..., nq), `v`, `a` (..., nv); leading axes broadcast. Bodies come in the order of `model.body_names`.
Twists and accelerations are (angular, linear) in rad and m, in the body's own components.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity
from cardan.formulation.spatial import SPATIAL, frame_jacobian, frame_pose_of
from cardan.functions import looped
from cardan.functions.derivatives import (
    Names,
    chosen,
    given,
    is_looped,
    names_of,
    tree_derivatives,
    whole_kernel,
    with_derivatives,
)
from cardan.machines.cuda.place import place_of
from cardan.model.memory import KernelSlot, require_model
from cardan.model.model import Model
from cardan.model.values import array
from cardan.on_card import is_device_array, require_host
from cardan.structure.kernels import compile_quantity, is_large, tree_kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_JACOBIANS: KernelSlot[str] = KernelSlot("Jacobians, by frame")


def body_poses(
    model: Model, q: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None,
    chart: str = "tangent", out: Any = None, threads: int | None = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Pose of every body in ground axes: homogeneous matrices (..., nb, 4, 4), lengths in m.

    With `by` ("q", "parameters"): partial derivatives too, by q along the tangent (nv columns); `chart="coordinates"`:
    by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("body_poses", device, threads)
    if by is not None:
        shaped = lambda shape: (shape[0], 4, 4)
        return tree_derivatives(
            "body_poses", model, by, chart, formulation, (q,), core=shaped, out=out, threads=threads
        )
    flat = tree_kernel(model, "body_poses", formulation)(q, threads=threads)
    return given("body_poses", out, flat.reshape((*flat.shape[:-1], 4, 4)))


def body_twists(
    model: Model, q: ArrayLike, v: ArrayLike, *, formulation: str | Formulation = "spatial", by: Names = None,
    chart: str = "tangent", out: Any = None, threads: int | None = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Twist of every body (..., nb, 6), rad/s and m/s.

    With `by` ("q", "v", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("body_twists", device, threads)
    if by is not None:
        return tree_derivatives("body_twists", model, by, chart, formulation, (q, v), out=out, threads=threads)
    return tree_kernel(model, "body_twists", formulation)(q, v, out=out, threads=threads)


def body_accelerations(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, by: Names = None, chart: str = "tangent",
    out: Any = None, threads: int | None = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Spatial acceleration of every body (..., nb, 6), rad/s^2 and m/s^2: the rate of change of its twist.

    With `by` ("q", "v", "a", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    if device is not None:
        threads = place_of("body_accelerations", device, threads)
    if by is not None:
        return tree_derivatives("body_accelerations", model, by, chart, "spatial", (q, v, a), out=out, threads=threads)
    return tree_kernel(model, "body_accelerations")(q, v, a, out=out, threads=threads)


def frame_pose(
    model: Model,
    q: ArrayLike,
    frame: str,
    *,
    by: Names = None,
    chart: str = "tangent",
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Pose (..., 4, 4) of a body or named frame in ground axes.

    With `by` ("q", "parameters"): partial derivatives too, by q along the tangent (nv columns); `chart="coordinates"`:
    by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("frame_pose", model)
    threads = None if device is None else place_of("frame_pose", device)
    _require_order("frame_pose", q)
    if by is not None:
        model.placement(frame)
        if is_looped(model, SPATIAL, by, chart) and names_of(by) == ("q",):
            from cardan.functions.looped_derivatives import frame_pose as put_together  # which small models do without

            value, found = put_together(model, ("q",), array("frame_pose", "q", q, model.nq), frame, threads)
            return chosen("frame_pose", by, value, found, out)
        shaped = lambda shape: (4, 4)
        return with_derivatives(
            "frame_pose", model, by, chart, _pose_quantity(model, frame), SPATIAL, (q,), core=shaped, out=out,
            threads=threads,
        )  # fmt: skip
    if is_device_array(q):
        return whole_kernel(model, _pose_quantity(model, frame), SPATIAL)(q, out=out)
    return given("frame_pose", out, _pose_of(model, q, frame, device))


def _pose_quantity(model: Model, frame: str) -> Quantity:
    model.placement(frame)  # an unknown name is refused before anything is compiled
    return replace(frame_pose_of(frame), name=f"frame_pose {_where(model, frame)}")


def _pose_of(model: Model, q: ArrayLike, frame: str, device: str | None = None) -> np.ndarray:
    """Pose (..., 4, 4) of a body or named frame."""
    if frame == "ground":
        return _fixed(model, q, np.eye(4))
    if frame in model.frame_names:
        found = model.frames[model.frame_names.index(frame)]
        at = found.at.matrix
        if found.body < 0:
            return _fixed(model, q, at)
        return body_poses(model, q, device=device)[..., found.body, :, :] @ at
    return body_poses(model, q, device=device)[..., model.body_index(frame), :, :]


def _fixed(model: Model, q: ArrayLike, pose: np.ndarray) -> np.ndarray:
    """The pose of what does not move, at every q."""
    return np.array(np.broadcast_to(pose, (*array("frame_pose", "q", q, model.nq).shape[:-1], 4, 4)))


def jacobian(
    model: Model, q: ArrayLike, frame: str, *, axes: str = "body", by: Names = None, chart: str = "tangent",
    out: Any = None, device: str | None = None,
) -> Any:  # fmt: skip
    """Jacobian `J` (..., 6, nv) of a body or named frame: `J v` is its twist.

    With `by` ("q", "parameters"): partial derivatives too, by q along the tangent (nv columns); `chart="coordinates"`:
    by the nq numbers in q; `chart="independent"`: along the constraints.

    `axes="body"`: in the frame's own components; `axes="ground"`: angular velocity, and velocity of the frame's
    origin, in ground components.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    threads = None if device is None else place_of("jacobian", device)
    _require_order("jacobian", q)
    if axes not in ("body", "ground"):
        raise InputError(f"jacobian: axes must be 'body' or 'ground', got {axes!r}")
    if by is not None:
        return with_derivatives(
            "jacobian", model, by, chart, _jacobian_quantity(model, frame, axes), SPATIAL, (q,), out=out,
            threads=threads,
        )  # fmt: skip
    if is_device_array(q):
        if is_large(model):
            require_host(f"jacobian of {len(model.tree.links)} links", q=q)
        return whole_kernel(model, _jacobian_quantity(model, frame, axes), SPATIAL)(q, out=out)
    if is_large(model):
        J = looped.jacobian(model, q, frame, threads)
    else:
        J = _jacobian_kernel(model, frame)(q, threads=threads)
    if axes == "ground":
        R = _pose_of(model, q, frame, device)[..., :3, :3]
        J = np.concatenate([R @ J[..., :3, :], R @ J[..., 3:, :]], axis=-2)
    return given("jacobian", out, J)


def joint_axes(
    model: Model, q: ArrayLike, *, by: Names = None, chart: str = "tangent", out: Any = None, device: str | None = None
) -> Any:
    """Twist (..., nv, 6) about the ground's origin, in ground components, due to a unit rate of each coordinate.

    With `by` ("q", "parameters"): partial derivatives too, by q along the tangent (nv columns); `chart="coordinates"`:
    by the nq numbers in q; `chart="independent"`: along the constraints.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    threads = None if device is None else place_of("joint_axes", device)
    if by is not None:
        return tree_derivatives("joint_axes", model, by, chart, "spatial", (q,), out=out, threads=threads)
    return tree_kernel(model, "joint_axes")(q, out=out, threads=threads)


def _require_order(function: str, q: Any) -> None:
    if isinstance(q, str):
        raise InputError(f"{function}: the configuration comes before the frame: cd.{function}(model, q, {q!r})")


def _jacobian_quantity(model: Model, frame: str, axes: str) -> Quantity:
    model.placement(frame)
    return replace(frame_jacobian(frame, axes), name=f"jacobian {axes} {_where(model, frame)}")


def _jacobian_kernel(model: Model, frame: str) -> Any:
    def make() -> Any:
        model.placement(frame)  # an unknown name is refused before anything is compiled
        return compile_quantity(model, frame_jacobian(frame), f"spatial {_where(model, frame)}")

    return _JACOBIANS.find(model, frame, make)


def _where(model: Model, name: str) -> str:
    """What a Jacobian depends on beside the equations, which know no names: the body, and the pose of a frame on it."""
    if name in model.frame_names:
        frame = model.frames[model.frame_names.index(name)]
        return f"{frame.body} {frame.at.matrix.tobytes().hex()}"
    return "ground" if name == "ground" else str(model.body_names.index(name))
