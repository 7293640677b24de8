"""Closed loops on arrays: residuals, reactions, and inverse dynamics with chosen drives.

Shapes: `q` (..., nq), `v`, `a`, `tau` (..., nv), `wrenches` (..., nb, 6), time `t` (...); leading axes broadcast.
SI units.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from cardan.errors import InputError, Removed, no_such_argument
from cardan.formulation.dynamics import constraint_state
from cardan.formulation.dynamics import multipliers as written_multipliers
from cardan.formulation.dynamics import reactions as written_reactions
from cardan.formulation.formulation import Formulation
from cardan.formulation.quantity import Quantity
from cardan.formulation.spatial import SPATIAL
from cardan.functions.derivatives import Derivatives, Names, given, with_derivatives
from cardan.functions.kinematics import body_poses
from cardan.machines.cuda.place import place_of
from cardan.model.force import BodyPose
from cardan.model.html import html_table
from cardan.model.memory import KernelSlot, require_model
from cardan.model.model import Model
from cardan.model.sight import require_axes
from cardan.model.tree import GROUND
from cardan.model.values import counted, one
from cardan.on_card import is_device_array
from cardan.structure.assemble import constraint_kernels
from cardan.structure.condition import watch
from cardan.structure.dynamics import forward_kernel, multiplier_kernel, reaction_formulation, reaction_kernel
from cardan.structure.formulation import formulation_of
from cardan.structure.kernels import equations_at, time_argument
from cardan.structure.large import is_divided, row_residuals
from cardan.structure.redundancy import redundancy
from cardan.structure.rows import real_rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_REACTIONS: KernelSlot[str | Formulation] = KernelSlot("reactions, by formulation")


def constraint_residual(
    model: Model,
    q: ArrayLike,
    *,
    t: ArrayLike = 0.0,
    by: Names = None,
    chart: str = "tangent",
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Residual `phi` (..., nl) of the constraint rows `model.rows`, in the unit of each; zero where they hold.

    With `by` ("q", "t", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    Rows on rates only have none: they are zero here. Row by row, its rate along `v` is that of `constraint_jacobian`.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("constraint_residual", model)
    threads = None if device is None else place_of("constraint_residual", device)
    if by is not None:
        return _rows_by("constraint_residual", model, 0, q, t, by, chart, out, threads)
    if is_divided(model, SPATIAL):
        return given("constraint_residual", out, row_residuals(model, q, np.zeros(model.nv), t, threads)[0])
    return given(
        "constraint_residual", out, constraint_kernels(model)[0](q, *time_argument(model, t), threads=threads)[0]
    )


def constraint_jacobian(
    model: Model,
    q: ArrayLike,
    *,
    t: ArrayLike = 0.0,
    by: Names = None,
    chart: str = "tangent",
    out: Any = None,
    device: str | None = None,
) -> Any:
    """Rows `J` (..., nl, nv) of the constraints `J v = beta` in the tree's rates, one for each of `model.rows`.

    With `by` ("q", "t", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    At a consistent configuration `J` is the derivative of `constraint_residual` along the rates, row by row.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("constraint_jacobian", model)
    threads = None if device is None else place_of("constraint_jacobian", device)
    if by is not None:
        return _rows_by("constraint_jacobian", model, 1, q, t, by, chart, out, threads)
    return given(
        "constraint_jacobian", out, constraint_kernels(model)[1](q, *time_argument(model, t), threads=threads)[0]
    )


def _rows_by(
    owner: str, model: Model, part: int, q: Any, t: Any, by: Any, chart: Any, out: Any, threads: Any
) -> Derivatives:  # fmt: skip
    """One part of the constraints' state, `phi` or `J`, with its derivatives."""
    whole = constraint_state(model)
    one = Quantity(
        owner,
        whole.inputs,
        whole.outputs[part : part + 1],
        write=lambda model, x: whole.graph(model, x)[part : part + 1],
    )
    return with_derivatives(
        owner, model, by, chart, one, SPATIAL, (q, *time_argument(model, t)), out=out, threads=threads
    )


def reactions(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, wrenches: ArrayLike | None = None,
    t: ArrayLike = 0.0, formulation: str | Formulation = "spatial", axes: str = "joint", by: Names = None,
    chart: str = "tangent", out: Any = None, device: str | None = None, **removed: Unpack[Removed],
) -> Any:  # fmt: skip
    """Wrench (..., number of joints, 6) that each joint, tree joint or cut, exerts on its child at a consistent state.

    With `by` ("q", "v", "tau", "wrenches", "t", "parameters"): partial derivatives too, by q along the tangent (nv
    columns); `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    It is (moment, force), N m and N, at the joint frame on the child and in its axes, drives and prescribed motions
    included. `axes="child"`, `"parent"` and `"ground"` give components along the axes of these bodies or of the ground,
    the moment about the same point. Components that redundant constraints leave undetermined are one possible answer;
    `undetermined_reactions` tells which they are. Where q leaves loops open (`cd.constraint_residual`) the answer is
    that of the same equations there; the first call warns of a wide gap. In `points` it is the part in the plane
    (`in_plane`); where the plane's equations leave it open and those of space do not, it is that of `spatial`.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("reactions", model)
    threads = None if device is None else place_of("reactions", device)
    if removed:
        raise no_such_argument("reactions", removed)
    if axes != "joint":
        _require_axes(axes, by, device, q, v)
        found = reactions(model, q, v, tau, wrenches=wrenches, t=t, formulation=formulation)
        return given("reactions", out, turned_reactions(model, found, np.asarray(body_poses(model, q)), axes))
    tau = np.zeros(model.nv) if tau is None else tau
    wrenches = np.zeros((model.nb, 6)) if wrenches is None else wrenches
    if by is not None:
        found = formulation_of(model, formulation)
        return with_derivatives(
            "reactions", model, by, chart, written_reactions(model, found, ()), found,
            (q, v, tau, wrenches, *time_argument(model, t)), make=lambda wanted: reaction_kernel(model, found, wanted),
            out=out, threads=threads,
        )  # fmt: skip
    kernel = model.memory.get((_REACTIONS, formulation))
    if kernel is None:
        found = formulation_of(model, formulation)
        kernel = reaction_kernel(model, found)
        watch(model, reaction_formulation(model, found), kernel, q, t)
        if not found.added:
            model.memory[_REACTIONS, formulation] = kernel
    return kernel(q, v, tau, wrenches, *time_argument(model, t), out=out, threads=threads)


def _require_axes(axes: Any, by: Any, device: Any, *arrays: Any) -> None:
    require_axes("reactions: axes", axes)
    if by is not None or device is not None or any(map(is_device_array, arrays)):
        raise InputError(f"reactions: derivatives, and results on a GPU, are in joint axes; leave out axes={axes!r}")


def turned_reactions(model: Model, wrenches: np.ndarray, poses: np.ndarray, axes: str) -> np.ndarray:
    """Reactions (..., joints, 6) in joint axes, given in the axes of child, parent or ground; poses (..., nb, 4, 4)."""
    found = np.empty_like(wrenches)
    for j, joint in enumerate(model.joints):
        R = np.asarray(joint.child_at.rotation, dtype=float)  # from joint to child axes
        if axes != "child" and joint.child != GROUND:
            R = poses[..., joint.child, :3, :3] @ R
        if axes == "parent" and joint.parent != GROUND:
            R = np.swapaxes(poses[..., joint.parent, :3, :3], -1, -2) @ R
        halves = wrenches[..., j, :].reshape(*wrenches.shape[:-2], 2, 3)
        found[..., j, :] = (halves @ np.swapaxes(R, -1, -2)).reshape(*wrenches.shape[:-2], 6)
    return found


def multipliers(
    model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, t: ArrayLike = 0.0,
    formulation: str | Formulation = "spatial", by: Names = None, chart: str = "tangent", out: Any = None,
    device: str | None = None, **removed: Unpack[Removed],
) -> Any:  # fmt: skip
    """Multipliers `lam` (..., nl) of a formulation's constraint rows: `M vdot + J^T lam = f`.

    With `by` ("q", "v", "tau", "t", "parameters"): partial derivatives too, by q along the tangent (nv columns);
    `chart="coordinates"`: by the nq numbers in q; `chart="independent"`: along the constraints.

    Rows, with the unit of each multiplier, are those of `cd.equations(model, formulation=...).rows`, for the tree's
    coordinates `model.rows`. A row that depends on others and is left out has zero.

    `device="gpu"` computes on the GPU; arrays that are on a GPU are computed there (docs/gpu.md).
    """
    require_model("multipliers", model)
    threads = None if device is None else place_of("multipliers", device)
    if removed:
        raise no_such_argument("multipliers", removed)
    tau = np.zeros(model.nv) if tau is None else tau
    if by is not None:
        found = formulation_of(model, formulation)
        return with_derivatives(
            "multipliers", model, by, chart, written_multipliers(model, found, ()), found,
            (q, v, tau, *time_argument(model, t)), make=lambda wanted: multiplier_kernel(model, found, wanted),
            out=out, threads=threads,
        )  # fmt: skip
    kernel = multiplier_kernel(model, formulation_of(model, formulation))
    return kernel(q, v, tau, *time_argument(model, t), out=out, threads=threads)


def undetermined_reactions(model: Model, q: ArrayLike, *, t: ArrayLike = 0.0) -> np.ndarray:
    """Mask (number of joints, 6), True where redundancy leaves a reaction's component undetermined at `q` (nq,).

    It has no `by`: it is a decision.

    Every constraint counts: joints, also rigid ones, couplings, prescribed motions and constraints of your own.
    """
    require_model("undetermined_reactions", model)
    model.require_one("undetermined_reactions")
    q = one("undetermined_reactions", "q", q, model.nq)
    balance, wrenches = _joint_forces(model, q, t)
    _, s, V = np.linalg.svd(balance)
    rank = int((s > 1e-8 * max(float(s.max(initial=0.0)), 1e-300)).sum())
    self_stress = V[rank:].T  # forces of constraints that balance among themselves on every body
    mask: np.ndarray = np.abs(wrenches @ self_stress).max(axis=-1, initial=0.0) > 1e-7
    return mask


def _joint_forces(model: Model, q: np.ndarray, t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Effect of a unit force of each constraint: on every body (6 nb, n), and in every joint's wrench (joints, 6, n).

    The first is about the middle of the joints, in ground components. Moments are over the mechanism's size, and all
    columns of the first have unit length, so that metres and newtons do not count.
    """
    import casadi as ca

    model, poses = model.settled(), np.asarray(body_poses(model, q))
    frames = [_pose(poses, joint.child) @ joint.child_at.matrix for joint in model.joints]
    middle = np.mean([M[:3, 3] for M in frames], axis=0)
    size = max([float(np.linalg.norm(M[:3, 3] - middle)) for M in frames]) or 1.0
    scale = np.array([1 / size] * 3 + [1.0] * 3)
    columns: list[tuple[list[tuple[int, np.ndarray]], dict[int, np.ndarray]]] = []  # on bodies, in joints
    along: list[np.ndarray] = []
    coordinates: list[Any] = []
    for j, joint in enumerate(model.joints):
        link = model.link_of_joint(j)
        own = joint.kind.measure(*_pose_in_joint(model, poses, j)) if link is None else q[link.q]
        coordinates.append(own)
        S, T = (np.asarray(part(own), dtype=float) for part in (joint.kind.S, joint.kind.T))
        along.append(np.linalg.pinv(S).T)  # the forces along the coordinates
        for w in T.T:
            columns.append(([], {j: w}))
    for coupling in model.couplings:
        slopes = coupling.slopes(ca.SX(float(np.asarray(t))), [ca.SX(coordinates[j][k]) for j, k in coupling.ends])
        on_joints: dict[int, np.ndarray] = {}
        for (j, k), c in zip(coupling.ends, np.array(ca.evalf(ca.vertcat(*slopes))).ravel(), strict=True):
            on_joints[j] = on_joints.get(j, np.zeros(6)) + c * along[j][:, k]
        columns.append(([], on_joints))
    for constraint in model.constraints:
        at = [_pose(poses, b) for b in constraint.on]
        forces = constraint.written(
            ca.SX(float(np.asarray(t))), [BodyPose(ca.SX(A[:3, :3]), ca.SX(A[:3, 3])) for A in at],
            [ca.SX(6, 1) for _ in at],
        )[0]  # fmt: skip
        columns.append(([(b, np.array(ca.evalf(F)).ravel()) for b, F in zip(constraint.on, forces, strict=True)], {}))
    balance, wrenches = np.zeros((model.nb, 6, len(columns))), np.zeros((len(model.joints), 6, len(columns)))
    for k, (on_bodies, in_joints) in enumerate(columns):
        acting = [(b, _about(_pose(poses, b), w, middle)) for b, w in on_bodies]
        for j, w in in_joints.items():
            wrenches[j, :, k] = scale * w
            f = _about(frames[j], w, middle)
            acting += [(model.joints[j].child, f), (model.joints[j].parent, -f)]
        for b, f in acting:
            if b != GROUND:
                balance[b, :, k] += scale * f
    length = np.sqrt((balance**2).sum(axis=(0, 1)) + (wrenches**2).sum(axis=(0, 1)))
    length[length == 0] = 1.0
    return (balance / length).reshape(6 * model.nb, -1), wrenches / length


def _about(pose: np.ndarray, w: np.ndarray, point: np.ndarray) -> np.ndarray:
    """A wrench at and in a frame, about a point and in ground components."""
    n, f = pose[:3, :3] @ w[:3], pose[:3, :3] @ w[3:]
    return np.concatenate([n + np.cross(pose[:3, 3] - point, f), f])


def _pose(poses: np.ndarray, body: int) -> np.ndarray:
    """Pose (4, 4) of a body or the ground."""
    return np.eye(4) if body == GROUND else poses[body]


def _pose_in_joint(model: Model, poses: np.ndarray, j: int) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position of frame M in frame F, from the poses (nb, 4, 4) of all bodies."""
    joint = model.joints[j]
    F, M = (_pose(poses, b) @ at.matrix for b, at in ((joint.parent, joint.at), (joint.child, joint.child_at)))
    relative = np.linalg.inv(F) @ M
    return relative[:3, :3], relative[:3, 3]


@dataclass(frozen=True)
class Actuation:
    """Whether chosen drives can move a mechanism at will: its freedoms, and how many of them the drives command."""

    freedoms: int
    driven: int
    commanded: int

    @property
    def kind(self) -> str:
        """`exact`, `under` (some freedom has no drive) or `over` (some drives work against each other)."""
        if self.commanded < self.freedoms:
            return "under"
        return "over" if self.driven > self.freedoms else "exact"

    def _repr_html_(self) -> str:
        rows = [
            ("freedoms", f"{self.freedoms}"),
            ("driven", f"{self.driven}"),
            ("commanded by the drives", f"{self.commanded}"),
        ]
        return html_table(f"Actuation: {self.kind}", rows)


def actuation(model: Model, q: ArrayLike, driven: Sequence[str]) -> Actuation:
    """Judge a choice of driven joints at a configuration `q` (nq,). It has no `by`: it counts."""
    require_model("actuation", model)
    model.require_one("actuation")
    q = one("actuation", "q", q, model.nq)
    B, J = _drive_matrix(model, driven), real_rows(model, np.asarray(constraint_jacobian(model, q)))
    freedoms = model.nv - _rank(J)
    commanded = _rank(np.concatenate([B, J.T], axis=1)) - _rank(J)
    return Actuation(freedoms, B.shape[1], commanded)


def drive_forces(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, force: ArrayLike, driven: Sequence[str], t: ArrayLike = 0.0
) -> np.ndarray:
    """Drives `tau` (..., nv) of the joints `driven` that, with constraint forces, give a `force` (..., nv)."""
    found = solved_drives(model, q, v, a, force, driven, t)
    return (found.B @ found.u[..., None])[..., 0]


@dataclass(frozen=True)
class SolvedDrives:
    """The smallest drives `u` (..., n) with `B u + J^T lam = force`.

    `J` (..., nl, nv) are the constraint rows, `J_inverse` is `J^+`; `free = 1 - J^+ J` (..., nv, nv) takes out of a
    force what they bear; `back = (free B)^+` (..., n, nv).
    """

    B: np.ndarray
    J: np.ndarray
    J_inverse: np.ndarray
    free: np.ndarray
    back: np.ndarray
    u: np.ndarray


def solved_drives(
    model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, force: ArrayLike, driven: Sequence[str], t: ArrayLike
) -> SolvedDrives:
    """Drives of the joints `driven` that, with constraint forces, give a `force` (..., nv)."""
    B = _drive_matrix(model, driven)
    J = real_rows(model, np.asarray(constraint_jacobian(model, q, t=t)))
    if not np.isfinite(J).all():
        raise InputError("inverse_dynamics: some q or t gives constraints that are not finite; look for nan and inf")
    _require_possible(model, q, v, a, t)
    # what is left of a force after the constraints have borne their part; the smallest drives that give it
    J_inverse = np.linalg.pinv(J, rcond=1e-10)
    P = np.eye(model.nv) - J_inverse @ J
    wanted = P @ np.asarray(force)[..., None]
    back = np.linalg.pinv(P @ B, rcond=1e-10)
    found = back @ wanted
    left = np.abs(P @ B @ found - wanted).max(axis=(-2, -1), initial=0.0)
    size = np.abs(force).max(axis=-1, initial=1.0)
    if (left > 1e-7 * size).any():
        left = left.max()
        names = ", ".join(repr(name) for name in driven) or "no joint"
        raise InputError(
            f"inverse_dynamics: model {model.name!r} has {counted(redundancy(model).freedoms, 'freedom')}, and driving "
            f"{names} cannot give these accelerations: a force of {left:.3g} (N m and N) is left; drive more joints"
        )
    return SolvedDrives(B, J, J_inverse, P, back, found[..., 0])


def _require_possible(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, t: Any) -> None:
    """Refuse accelerations that would open a loop, `J a` far from `gamma`: no drive gives them."""
    if is_divided(model, SPATIAL):  # whose free motion has such accelerations, too
        J, still = np.asarray(constraint_jacobian(model, q, t=t)), np.zeros(model.nv)
        moving = forward_kernel(model, SPATIAL, False)(q, v, still, *time_argument(model, t))
        gamma = (J @ moving[..., None])[..., 0]
    else:
        _, _, J, gamma, *_ = equations_at(model, SPATIAL, q, t, v)
    off = np.abs((J @ np.asarray(a)[..., None])[..., 0] - gamma).max(axis=-1, initial=0.0)
    size = ((np.abs(J) @ np.abs(a)[..., None])[..., 0] + np.abs(gamma)).max(axis=-1, initial=1e-9)
    if (off > 1e-3 * size).any():
        raise InputError(
            f"inverse_dynamics: model {model.name!r} cannot accelerate like that: a loop or coupling would break by "
            f"{np.max(off):.3g} (m/s^2 or rad/s^2); give accelerations that fit, as cd.forward_dynamics does"
        )


def _drive_matrix(model: Model, driven: Sequence[str]) -> np.ndarray:
    driven = (driven,) if isinstance(driven, str) else driven
    if not isinstance(driven, Iterable):
        raise InputError(f"driven must be a list of joint names, got {driven!r}")
    columns = [k for name in driven for k in range(*model.v_slice(name).indices(model.nv))]
    return np.eye(model.nv)[:, columns]


def _rank(A: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(A)) if A.size else 0
