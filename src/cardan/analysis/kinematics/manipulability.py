"""How well a mechanism can move a frame: manipulability, and the transmission angle of a linkage.

Notation: `J` takes rates to the velocity of the frame; `N` spans the rates that loops allow, in orthonormal columns.
`J N` (or, with driven joints `a`, `J N N_a^-1`) takes the unit ball of rates to the manipulability ellipsoid. Its
semi-axes are the singular values; their product is Yoshikawa's measure (Int. J. Robotics Research 4 (1985) 3-9).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.analysis.kinematics.damped_least_squares import size_of
from cardan.errors import InputError
from cardan.functions.kinematics import body_poses, frame_pose, jacobian
from cardan.model.body import Joint
from cardan.model.memory import require_model
from cardan.model.model import Model
from cardan.model.values import batch, number, one, shown
from cardan.structure.assemble import constraint_kernels
from cardan.structure.kernels import time_argument
from cardan.structure.planarity import find_plane, is_planar
from cardan.structure.rows import independent_rows, real_rows, row_sizes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

NEARLY = 1e-9  # of the size of the Jacobian: a smaller semi-axis is none
LOST = 1e-9  # of the largest singular value: driven joints that lose control of the rest
ZERO = 1e-14  # of the size of the Jacobian: rounding
MOTIONS = ("position", "rotation", "both")


@dataclass(frozen=True, eq=False)
class Manipulability:
    """The manipulability ellipsoid at configurations (...).

    Args:
        radii: semi-axes (..., m), the largest first: m/s, or rad/s, for unit rates; infinite where driven joints do not
            control the mechanism.
        axes: their directions (..., m, 3) in ground axes; (..., m, 6) as (angular, linear) for "both".
        size: norm (...,) of the Jacobian, with which small semi-axes are compared.
        yoshikawa: product (...,) of the semi-axes; zero at singular configurations.
        condition: largest by smallest semi-axis (...,); infinite at singular configurations, 1 where isotropic.
        singular: (...,) the type of a singular configuration, or "".

    """

    radii: np.ndarray
    axes: np.ndarray
    size: np.ndarray

    @property
    def singular(self) -> np.ndarray:
        """Which configurations (...,) are singular, by Gosselin and Angeles: "", "type I", "type II" or "type III".

        Type I: the frame cannot move in some direction. Type II: the driven joints do not control it. III: both.
        """
        lost, stuck = np.isinf(self.radii[..., 0]), self.radii[..., -1] <= NEARLY * self.size
        names = np.array(["", "type I", "type II", "type III"])
        return np.asarray(names[stuck + 2 * lost])

    @property
    def yoshikawa(self) -> np.ndarray:
        """Product (...,) of the semi-axes."""
        return np.asarray(self.radii.prod(axis=-1))

    @property
    def condition(self) -> np.ndarray:
        """Largest by smallest semi-axis (...,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.radii[..., 0] / self.radii[..., -1]
        return np.asarray(np.where(np.isnan(found), np.inf, found))


def manipulability(
    model: Model, q: ArrayLike, frame: str, *, motion: str = "position", joints: Sequence[str] | None = None,
    point: ArrayLike = (0.0, 0.0, 0.0), length: float | None = None, t: float = 0.0,
) -> Manipulability:  # fmt: skip
    """Manipulability of a body or frame: how far unit rates of the joints move it, and in which directions.

    In a planar mechanism only motions in its plane count, so that the measure is not zero by nature.

    Args:
        model: the mechanism; with loops, the rates that keep them closed.
        q: configurations (..., nq), with loops closed.
        frame: a body or named frame.
        motion: "position" of its origin, its "rotation", or "both", positions by `length`.
        joints: driven joints, whose rates have together the size 1; by default all rates of the tree have.
        point: point (3,) of the frame in its own components, m, whose position is meant.
        length: length (m) by which positions are divided for "both"; by default the size of the mechanism.
        t: time, s, for prescribed motions.

    """
    require_model("manipulability", model)
    owner = "manipulability"
    q = batch(owner, "q", q, model.nq)
    if motion not in MOTIONS:
        raise InputError(f"{owner}: motion must be one of {', '.join(map(repr, MOTIONS))}, got {shown(motion)}")
    length = size_of(model) if length is None else number(owner, "length", length, "of metres", above=0.0)
    J = np.asarray(jacobian(model, q, frame, axes="ground"))
    arm = np.asarray(frame_pose(model, q, frame))[..., :3, :3] @ one(owner, "point", point, 3)
    J = np.concatenate([J[..., :3, :], J[..., 3:, :] - np.cross(arm[..., :, None], J[..., :3, :], axis=-2)], axis=-2)
    P = _seen(model, motion)
    weights = np.array([1.0] * 3 + [1 / length if motion == "both" else 1.0] * 3)
    N, control = _motions(owner, model, q, joints, t)
    seen = P @ (weights[:, None] * J)
    size = np.linalg.norm(seen, axis=(-2, -1))
    U, s, _ = np.linalg.svd(seen @ N)
    m = P.shape[0]
    radii = np.zeros((*s.shape[:-1], m))
    s = np.where(s > ZERO * size[..., None], s, 0.0)
    radii[..., : s.shape[-1]] = s[..., :m]
    lost = np.concatenate([np.full_like(radii[..., :1], np.inf), radii[..., :-1]], axis=-1)
    radii = np.where(control[..., None], radii, lost)
    axes = np.swapaxes(U, -1, -2) @ P
    keep = {"position": slice(3, 6), "rotation": slice(0, 3), "both": slice(0, 6)}[motion]
    return Manipulability(radii, axes[..., keep], np.asarray(size))


def _seen(model: Model, motion: str) -> np.ndarray:
    """Rows (m, 6) that pick what counts of (angular, linear) velocity; in a plane only what lies in it."""
    turning, shifting = np.eye(6)[:3], np.eye(6)[3:]
    if is_planar(model):
        x, y, normal = np.asarray(find_plane(model).ground.axes, dtype=float)
        turning, shifting = normal[None] @ turning, np.stack([x, y]) @ shifting
    return np.vstack({"position": [shifting], "rotation": [turning], "both": [turning, shifting]}[motion])


def _motions(
    owner: str, model: Model, q: np.ndarray, joints: Sequence[str] | None, t: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rates (..., nv, f) that keep loops closed, orthonormal or for unit rates of driven joints, and if these drive."""
    N = free_motions(model, q, t)
    if joints is None:
        return N, np.ones(N.shape[:-2], dtype=bool)
    names = (joints,) if isinstance(joints, str) else tuple(joints)
    driven = [k for name in names for k in range(*model.v_slice(name).indices(model.nv))]
    if len(driven) != N.shape[-1]:
        raise InputError(
            f"{owner}: {len(driven)} driven rates for {N.shape[-1]} freedoms of {model.name!r}; name joints that drive "
            "each freedom once"
        )
    Na = N[..., driven, :]
    s = np.linalg.svd(Na, compute_uv=False)
    control = s[..., -1] > LOST * np.maximum(s[..., 0], 1e-300)
    return N @ np.linalg.pinv(Na, rcond=LOST), control


def free_motions(model: Model, q: np.ndarray, t: float = 0.0) -> np.ndarray:
    """Orthonormal columns (..., nv, f) of the rates that constraints allow, as many as usually."""
    if not model.has_rows:
        return np.broadcast_to(np.eye(model.nv), (*q.shape[:-1], model.nv, model.nv))
    G = np.asarray(constraint_kernels(model)[1](q, *time_argument(model, t))[0])
    G = real_rows(model, G) / row_sizes(model)[:, None]
    _, _, Vt = np.linalg.svd(G)
    return np.asarray(np.swapaxes(Vt[..., len(independent_rows(model)) :, :], -1, -2))


def transmission_angle(model: Model, q: ArrayLike, coupler: str, output: str) -> Any:
    """Transmission angle (...,), rad: how well a coupler drives the output link. pi/2 is best, 0 and pi lock.

    The coupler is taken as a bar between two joints: that with the output link, and the one at its other end. The angle
    is that between the bar and the line across which the output link can move: for a link on a hinge the line to the
    hinge, so that it is the angle between coupler and output link; for a slider the normal of its slide. In space it is
    measured so that its sine is the part of the bar's force along the motion of the point where it acts.

    Args:
        model: a linkage, at one value of its free parameters.
        q: configurations (..., nq), with loops closed.
        coupler: the body that transmits the force, with two joints.
        output: the body that is driven, on a hinge or a slide.

    """
    require_model("transmission_angle", model)
    owner = "transmission_angle"
    model.require_one(owner)
    q, model = batch(owner, "q", q, model.nq), model.settled()
    between, end, guide_joint = transmitting_joints(owner, model, coupler, output)
    a, c = model.body_index(coupler), model.body_index(output)
    poses = np.asarray(body_poses(model, q))
    P, far = _joint_pose(poses, between, a)[..., :3, 3], _joint_pose(poses, end, a)[..., :3, 3]
    guide = _joint_pose(poses, guide_joint, c)
    S = np.asarray(guide_joint.kind.S(np.asarray(guide_joint.kind.neutral)), dtype=float)[:, 0]
    w, v = guide[..., :3, :3] @ S[:3], guide[..., :3, :3] @ S[3:]
    arm = P - guide[..., :3, 3]
    along = v + np.cross(w, arm)  # velocity of P for a unit rate of the output
    f = _unit(far - P)
    if S[:3].any():
        across = -(arm - _unit(w) * (arm * _unit(w)).sum(axis=-1, keepdims=True))
    else:
        normal = np.asarray(find_plane(model).ground.axes, dtype=float)[2] if is_planar(model) else np.cross(f, along)
        across = np.cross(normal, along)
    sine, cosine = np.abs((f * _unit(along)).sum(axis=-1)), (f * _unit(across)).sum(axis=-1)
    # in the plane these two are sine and cosine; in space the bar has a part along the axis too
    flat = np.abs(sine**2 + cosine**2 - 1) < 1e-9
    rest = np.copysign(np.sqrt(np.clip(1 - sine**2, 0, 1)), cosine)
    return np.arctan2(sine, np.where(flat, cosine, rest))[()]


def transmitting_joints(owner: str, model: Model, coupler: str, output: str) -> tuple[Joint, Joint, Joint]:
    """The joint between coupler and output, the one at the coupler's other end, and that on which the output moves."""
    a, c = model.body_index(coupler), model.body_index(output)
    between = [j for j in model.joints if {j.parent, j.child} == {a, c}]
    if len(between) != 1:
        raise InputError(f"{owner}: {coupler!r} and {output!r} share {len(between)} joints; they must share one")
    ends = [j for j in model.joints if a in (j.parent, j.child) and j is not between[0]]
    if len(ends) != 1:
        names = ", ".join(repr(j.name) for j in ends) or "none"
        raise InputError(f"{owner}: coupler {coupler!r} must have one other joint, it has {names}")
    guides = [j for j in model.joints if c in (j.parent, j.child) and j is not between[0]]
    guides = [j for j in guides if j.kind.nv == 1]
    if len(guides) != 1:
        names = ", ".join(repr(j.name) for j in guides) or "none"
        raise InputError(f"{owner}: output {output!r} must turn or slide on one joint of one freedom, it has {names}")
    return between[0], ends[0], guides[0]


def _joint_pose(poses: np.ndarray, joint: Any, body: int) -> np.ndarray:
    """Where a joint is (..., 4, 4), seen from one of its bodies."""
    at = joint.at.matrix if joint.parent == body else joint.child_at.matrix
    return np.asarray(poses[..., body, :, :] @ at)


def _unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-300))
