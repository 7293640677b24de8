"""Derivatives of large trees along the tangent, put together from looped kernels and NumPy.

Motions are differentiated with the joint axes. When coordinate i moves by `delta`, all bodies beyond it are turned and
shifted together by the twist `A_i delta`; their velocities change by `Psid_i delta`, accelerations by `(Psidd_i - v x
Psid_i) delta` (`formulation.spatial_derivatives`; here all as twists about the ground's origin, in ground components).
Shapes: those of the functions of the same name, the columns last. SI units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cardan.formulation.derivative import By, differentiated
from cardan.formulation.dynamics import LOADS_ON, loaded_bodies
from cardan.functions.looped import element_loads, require_shapes, total
from cardan.model.memory import KernelSlot, Slot
from cardan.model.model import Model
from cardan.model.tree import GROUND
from cardan.structure.kernels import compile_quantity, time_argument, tree_kernel

Found = dict[str, np.ndarray]
_BEYOND: Slot[None, np.ndarray] = Slot("which coordinates move which bodies")
_LOADS: KernelSlot[str] = KernelSlot("derivatives of force elements on a large tree")


# Motions.


def beyond(model: Model) -> np.ndarray:
    """Mask (nb, nv): whether a coordinate moves a body."""

    def make() -> np.ndarray:
        moves = np.zeros((len(model.tree.links) + 1, model.nv), dtype=bool)  # the ground is the last
        for i, link in enumerate(model.tree.links):
            moves[i] = moves[link.parent]
            moves[i, link.v] = True
        return moves[list(model.tree.body_link)]

    return _BEYOND.find(model, None, make)


def _changed_axes(model: Model, q: Any, v: Any = None, a: Any = None, threads: Any = None) -> tuple[np.ndarray, ...]:
    """`A`, `Psid`, `Psidd`, `Omega`, (..., nv, 6) each."""
    still = np.zeros(model.nv)
    return tree_kernel(model, "changed_axes")(q, still if v is None else v, still if a is None else a, threads=threads)


def _poses(model: Model, q: Any, threads: Any = None) -> np.ndarray:
    flat = tree_kernel(model, "body_poses")(q, threads=threads)
    return flat.reshape(*flat.shape[:-1], 4, 4)


def _in_bodies(poses: np.ndarray, twists: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Twists (..., nv, 6) about the ground's origin in the components of bodies: (..., nb, 6, nv)."""
    R, r = poses[..., :3, :3], poses[..., :3, 3]
    w, u = (np.swapaxes(part, -1, -2)[..., None, :, :] for part in (twists[..., :3], twists[..., 3:]))
    at = u + np.cross(w, r[..., None], axis=-2)
    ET = np.swapaxes(R, -1, -2)
    return np.concatenate([ET @ w, ET @ at], axis=-2) * moves[:, None, :]


def _crossed(v: np.ndarray, m: np.ndarray) -> np.ndarray:
    """`v x m` of twists: v (..., 6), m (..., 6, n)."""
    w, u = v[..., :3, None], v[..., 3:, None]
    return np.concatenate(
        [
            np.cross(w, m[..., :3, :], axis=-2),
            np.cross(u, m[..., :3, :], axis=-2) + np.cross(w, m[..., 3:, :], axis=-2),
        ],
        axis=-2,
    )


def _moved_poses(poses: np.ndarray, A: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """Derivatives (..., nb, 4, 4, nv) of poses (..., nb, 4, 4) along the axes (..., nv, 6)."""
    w, u = (np.swapaxes(part, -1, -2)[..., None, :, :] for part in (A[..., :3], A[..., 3:]))
    D = np.zeros((*np.broadcast_shapes(poses.shape[:-3], A.shape[:-2]), *poses.shape[-3:], A.shape[-2]))
    for k in range(4):
        D[..., :3, k, :] = np.cross(w, poses[..., :3, k, None], axis=-2)
    D[..., :3, 3, :] += u
    return D * moves[:, None, None, :]


def body_poses(model: Model, names: Sequence[str], q: Any, threads: Any = None) -> tuple[np.ndarray, Found]:
    """Poses (..., nb, 16) by q."""
    poses = _poses(model, q, threads)
    D = _moved_poses(poses, _changed_axes(model, q, threads=threads)[0], beyond(model))
    batch = poses.shape[:-2]
    return poses.reshape(*batch, 16), {"q": D.reshape(*batch, 16, model.nv)}


def frame_pose(model: Model, names: Sequence[str], q: Any, frame: str, threads: Any = None) -> tuple[np.ndarray, Found]:
    """Pose (..., 4, 4) of a body or frame by q."""
    link, at = model.placement(frame)
    if link == GROUND:
        fixed = np.broadcast_to(at.matrix, (*np.shape(q)[:-1], 4, 4))
        return fixed.copy(), {"q": np.zeros((*fixed.shape, model.nv))}
    body = model.tree.body_link.index(link)
    own = np.linalg.inv(model.tree.body_pose[body].matrix) @ at.matrix
    pose = (_poses(model, q, threads)[..., body, :, :] @ own)[..., None, :, :]
    D = _moved_poses(pose, _changed_axes(model, q, threads=threads)[0], beyond(model)[[body]])
    return pose[..., 0, :, :], {"q": D[..., 0, :, :, :]}


def body_twists(model: Model, names: Sequence[str], q: Any, v: Any, threads: Any = None) -> tuple[np.ndarray, Found]:
    """Twists (..., nb, 6) by q and v."""
    A, Psid, _, _ = _changed_axes(model, q, v, threads=threads)
    poses, moves = _poses(model, q, threads), beyond(model)
    found = {"q": _in_bodies(poses, Psid, moves), "v": _in_bodies(poses, A, moves)}
    return _for_every(tree_kernel(model, "body_twists")(q, v, threads=threads), found, 2)


def body_accelerations(
    model: Model, names: Sequence[str], q: Any, v: Any, a: Any, threads: Any = None
) -> tuple[np.ndarray, Found]:
    """Spatial accelerations (..., nb, 6) by q, v and a."""
    A, Psid, Psidd, Omega = (
        _in_bodies(_poses(model, q, threads), x, beyond(model)) for x in _changed_axes(model, q, v, a, threads=threads)
    )
    twists = tree_kernel(model, "body_twists")(q, v, threads=threads)
    found = {"q": Psidd - _crossed(twists, Psid), "v": Omega - _crossed(twists, A), "a": A}
    return _for_every(tree_kernel(model, "body_accelerations")(q, v, a, threads=threads), found, 2)


def _for_every(value: np.ndarray, found: Found, axes: int) -> tuple[np.ndarray, Found]:
    """The value, whose last `axes` axes are its own, and derivatives for its whole batch; by t they have no columns."""
    batch = value.shape[: value.ndim - axes]
    full = {}
    for name, D in found.items():
        own = D.shape[D.ndim - axes - (name != "t") :]
        full[name] = np.ascontiguousarray(np.broadcast_to(D, (*batch, *own)))
    return value, full


# Forces.


def bias_force(model: Model, names: Sequence[str], q: Any, v: Any, threads: Any = None) -> tuple[np.ndarray, Found]:
    """Bias force (..., nv) by q and v: inverse dynamics without acceleration."""
    value, tau_q, tau_v, _ = tree_kernel(model, "inverse_dynamics_derivatives")(
        q, v, np.zeros(model.nv), threads=threads
    )
    return value, {"q": tau_q, "v": tau_v}


def gravity_force(model: Model, names: Sequence[str], q: Any, threads: Any = None) -> tuple[np.ndarray, Found]:
    """Gravity force (..., nv) by q: inverse dynamics at rest."""
    value, found = bias_force(model, names, q, np.zeros(model.nv), threads)
    return value, {"q": found["q"]}


def potential_energy(model: Model, names: Sequence[str], q: Any, threads: Any = None) -> tuple[np.ndarray, Found]:
    """Potential energy (...) of gravity by q: what holds against it."""
    return tree_kernel(model, "potential_energy")(q, threads=threads), {
        "q": tree_kernel(model, "gravity_force")(q, threads=threads)
    }


def _loads(model: Model, q: Any, v: Any, wrenches: Any, t: Any, threads: Any) -> tuple[Any, Any, Found]:
    """Forces along the coordinates and wrenches that act, and derivatives (..., nv, columns) of what both do there.

    Those by q are at fixed wrenches in fixed directions of the bodies.
    """
    Q, W = element_loads(model, q, v, t, threads)
    time = time_argument(model, t)
    last = ("t",) if time else ()
    shape = (*np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1]), model.nv)
    found = {name: np.zeros((*shape, 1 if name == "t" else model.nv)) for name in ("q", "v", *last)}
    if Q is not None:
        _, *columns = _load_kernel(model, "joint", ("q", "v", *last))(q, v, *time, threads=threads)
        found = {name: found[name] + D for name, D in zip(found, columns, strict=True)}
    if W is not None:
        bodies = loaded_bodies(model)
        some, twists = (
            _poses(model, q, threads)[..., bodies, :, :],
            tree_kernel(model, "body_twists")(q, v, threads=threads)[..., bodies, :],
        )
        A, Psid, _, _ = _changed_axes(model, q, v, threads=threads)
        moves = beyond(model)[bodies]
        J, twists_q = _in_bodies(some, A, moves), _in_bodies(some, Psid, moves)
        poses_q, poses = _moved_poses(some, A, moves), some.reshape(*some.shape[:-2], 16)
        _, W_p, W_t, *W_time = _load_kernel(model, "bodies", ("poses", "twists", *last))(
            poses, twists, *time, threads=threads
        )
        poses_q = poses_q.reshape(*poses_q.shape[:-3], 16, model.nv)
        # columns of W_p and W_t are those of matrices (bodies, k), column after column
        by_columns = (np.swapaxes(x, -3, -2).reshape(*x.shape[:-3], -1, model.nv) for x in (poses_q, twists_q, J))
        poses_q, twists_q, twists_v = by_columns
        W_x = {"q": W_p @ poses_q + W_t @ twists_q, "v": W_t @ twists_v} | dict(zip(last, W_time, strict=True))
        found = {name: found[name] + _work(J) @ D for name, D in W_x.items()}
    return Q, total(wrenches, W), found


def _load_kernel(model: Model, on: str, names: tuple[str, ...]) -> Any:
    by = By(names)
    return _LOADS.find(
        model, on, lambda: compile_quantity(model, differentiated(LOADS_ON[on](model), by, model), f"tree {by.key}")
    )


def inverse_dynamics(
    model: Model, names: Sequence[str], q: Any, v: Any, a: Any, wrenches: Any, t: Any, threads: Any = None
) -> tuple[np.ndarray, Found]:
    """Joint forces (..., nv) by q, v, a, wrenches (flat) and t."""
    require_shapes("inverse_dynamics", model, q=q, v=v, a=a, wrenches=wrenches, t=t)
    Q, W, by = _loads(model, q, v, wrenches, t, threads)
    tau, tau_q, tau_v, M = _inverse(model, q, v, a, W, threads)
    found = {"q": tau_q - by["q"], "v": tau_v - by["v"], "a": M}
    if "wrenches" in names:
        found["wrenches"] = -_unit_wrenches(model, q, threads)
    if "t" in by:
        found["t"] = -by["t"][..., 0]
    return _for_every(tau if Q is None else tau - Q, found, 1)


def forward_dynamics(
    model: Model, names: Sequence[str], q: Any, v: Any, tau: Any, wrenches: Any, t: Any, threads: Any = None
) -> tuple[np.ndarray, Found]:
    """Accelerations (..., nv) by q, v, tau, wrenches (flat) and t: `M^-1` of the change of all forces."""
    require_shapes("forward_dynamics", model, q=q, v=v, tau=tau, wrenches=wrenches, t=t)
    Q, W, by = _loads(model, q, v, wrenches, t, threads)
    force = total(tau, Q)
    a = tree_kernel(model, f"forward_dynamics{'' if W is None else '_loaded'}")(
        q, v, force, *(() if W is None else (W,)), threads=threads
    )
    _, tau_q, tau_v, M = _inverse(model, q, v, a, W, threads)
    right = {"q": by["q"] - tau_q, "v": by["v"] - tau_v, "tau": np.eye(model.nv)}
    right |= {name: by[name] for name in ("t",) if name in by}
    if "wrenches" in names:
        right["wrenches"] = _unit_wrenches(model, q, threads)
    batch = M.shape[:-1]
    columns = [np.broadcast_to(right[name], (*batch, right[name].shape[-1])) for name in names]
    solved = np.linalg.solve(M, np.concatenate(columns, axis=-1))
    ends = np.cumsum([right[name].shape[-1] for name in names])[:-1]
    found = dict(zip(names, np.split(solved, ends, axis=-1), strict=True))
    if "t" in found:
        found["t"] = found["t"][..., 0]
    return a, found


def _inverse(model: Model, q: Any, v: Any, a: Any, W: Any, threads: Any) -> tuple[np.ndarray, ...]:
    if W is None:
        return tree_kernel(model, "inverse_dynamics_derivatives")(q, v, a, threads=threads)
    return tree_kernel(model, "inverse_dynamics_loaded_derivatives")(q, v, a, W, threads=threads)


def _unit_wrenches(model: Model, q: Any, threads: Any) -> np.ndarray:
    """Forces along the coordinates that unit wrenches give, (..., nv, 6 nb)."""
    return _work(_in_bodies(_poses(model, q, threads), _changed_axes(model, q, threads=threads)[0], beyond(model)))


def _work(J: np.ndarray) -> np.ndarray:
    """`J^T` (..., nv, 6 nb) from Jacobians (..., nb, 6, nv) of the bodies."""
    return np.swapaxes(J.reshape(*J.shape[:-3], -1, J.shape[-1]), -1, -2)


Looped = Callable[..., tuple[np.ndarray, Found]]
BY_NAME: dict[str, tuple[frozenset[str], Looped]] = {
    "body_poses": (frozenset("q"), body_poses),
    "body_twists": (frozenset("qv"), body_twists),
    "body_accelerations": (frozenset("qva"), body_accelerations),
    "bias_force": (frozenset("qv"), bias_force),
    "gravity_force": (frozenset("q"), gravity_force),
}
"""Functions of the tree alone: by what they are differentiated, and how."""


def with_load(name: str, dynamics: Looped, model: Model, names: Sequence[str]) -> Looped:
    """Dynamics as a function of the arguments of the quantity `name`, with wrenches and time only if it has them."""

    def put_together(*args: Any, threads: Any = None) -> tuple[np.ndarray, Found]:
        rest = list(args[3:])
        wrenches = rest.pop(0) if len(rest) > int(model.depends_on_time) else None
        return dynamics(model, names, *args[:3], wrenches, rest[0] if rest else 0.0, threads)

    return put_together


def looped_by(model: Model, name: str, names: Sequence[str]) -> Looped | None:
    """Value and derivatives by `names` of a quantity of a large tree from its arguments; None if it is not looped."""
    known, put_together = BY_NAME.get(name, (frozenset(), None))
    if put_together is not None and known >= set(names):
        return lambda *args, threads=None: put_together(model, names, *args, threads=threads)
    dynamics = {"forward_dynamics": (forward_dynamics, "tau"), "inverse_dynamics": (inverse_dynamics, "a")}
    found = dynamics.get(name.removesuffix("_loaded"))
    time = {"t"} if model.depends_on_time else set()
    if found is None or not set(names) <= {"q", "v", found[1], "wrenches"} | time:
        return None
    return with_load(name, found[0], model, names)
