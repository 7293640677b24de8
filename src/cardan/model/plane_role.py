"""What a joint is in the plane: a pin (it turns), a slide, a float (both: no constraint), or rigid.

Two rules. By its axis alone (`Kind.in_plane`), where the joint by itself keeps to the plane. By its motion, where the
whole mechanism is known to keep to the plane: the joint is displaced in the plane, and its own residual tells whether
it allows that.

`K` is the plane's normal, in the axes of the joint's frame F.
"""

from __future__ import annotations

import numpy as np

from cardan.algebra.free_number import nominal
from cardan.errors import ModelError
from cardan.model.body import Joint
from cardan.model.joint import TABLE, Kind
from cardan.model.model import Model
from cardan.model.tree import GROUND

FLAT = 1e-8  # largest sine of an angle that counts as none
AWAY = (0.3, -0.5)  # rad or m: how far a joint is displaced


def named_plane(normal: np.ndarray) -> str:
    """The plane in words; `normal` in the ground's axes."""
    return f"the plane with normal ({', '.join(f'{x + 0.0:.4g}' for x in normal)})"


def child_name(model: Model, joint: Joint) -> str:
    """The body that a joint carries, in messages."""
    return model.bodies[joint.child if joint.child != GROUND else joint.parent].name


def is_simple(kind: Kind, K: np.ndarray) -> bool:
    """Whether a joint's coordinates are angle and shifts in the plane as they stand."""
    along, within, coordinates = kind.in_plane
    if not coordinates:
        return False
    return bool(np.linalg.norm(K[:2]) <= FLAT) if along else bool(within and abs(K[2]) <= FLAT)


def _roles(kind: Kind, in_tree: bool) -> tuple[str | None, str | None]:
    """What a kind is with its axis along the normal, and in the plane; None where that is not known."""
    known = kind.in_plane.coordinates or not in_tree
    return (kind.in_plane.along, kind.in_plane.within) if known else (None, None)


def role_of_axis(model: Model, j: int, kind: Kind, K: np.ndarray, normal: np.ndarray, *, in_tree: bool) -> str:
    """What a joint is in the plane by its axis; the error names it, its body, the rule and the angle."""
    joint = model.joints[j]
    along, within = _roles(kind, in_tree)
    cosine = float(abs(K[2]))
    out = f"joint {joint.name!r} ({kind.title}) takes body {child_name(model, joint)!r} out of {named_plane(normal)}"
    if along is None and within is None:
        known = ", ".join(other.title for other in TABLE.values() if any(_roles(other, in_tree)))
        raise ModelError(f"formulation 'points': {out}; a {kind.title} joint has no planar meaning here, use {known}")
    if along is not None and np.linalg.norm(K[:2]) <= FLAT:
        return along
    if within is not None and (cosine <= FLAT or along == within):
        return within
    angle = np.degrees(np.arccos(min(cosine, 1.0)))
    rule = "along the normal" if within is None else "in the plane" if along is None else "along it or in the plane"
    raise ModelError(
        f"formulation 'points': {out}; its axis must be {rule}, it makes {angle:.4g} degrees with the normal"
    )


def role_of_motion(
    model: Model, j: int, kind: Kind, R: np.ndarray, p: np.ndarray, K: np.ndarray
) -> tuple[str, np.ndarray]:
    """What a joint is in the plane by how it moves there, from the pose of M in F, and a slide's direction (3,)."""
    turns = all(_allows(kind, _turn(K, angle) @ R, p) for angle in AWAY)
    shifts = [u for u in _shifts(kind, R, p, K) if all(_allows(kind, R, p + s * u) for s in AWAY)]
    roles = {(True, 0): "pin", (False, 1): "slide", (True, 2): "float", (False, 0): "rigid"}
    if (turns, len(shifts)) not in roles or (roles[turns, len(shifts)] == "rigid" and _moves_in_plane(kind, R, p, K)):
        raise ModelError(
            f"formulation 'points': joint {model.joints[j].name!r} ({kind.title}) is not a joint that `points` has in "
            f"the plane: turning {'is' if turns else 'is not'} free and shifting is in {len(shifts)} directions"
        )
    return roles[turns, len(shifts)], shifts[0] if shifts else np.zeros(3)


def _allows(kind: Kind, R: np.ndarray, p: np.ndarray) -> bool:
    return bool(np.abs(np.asarray(kind.phi(R, p))).max(initial=0.0) < 1e-7)


def _moves_in_plane(kind: Kind, R: np.ndarray, p: np.ndarray, K: np.ndarray) -> bool:
    """Whether a joint that neither turns about a point nor shifts along a line still moves in the plane."""
    q, plane = _measured(kind, R, p), np.linalg.svd(K[None, :])[2][1:]
    S = np.asarray(kind.S(q), dtype=float)
    if not S.shape[1]:
        return False
    B = np.zeros((6, 3))
    B[:3, 0], B[3:, 1:] = R.T @ K, R.T @ plane.T  # motions in the plane: a turn and two shifts, in M
    _, size, V = np.linalg.svd(B - S @ (np.linalg.pinv(S) @ B), full_matrices=True)
    rates = [np.linalg.pinv(S) @ (B @ V[k]) for k in range(3) if size[k] < 1e-7]
    return any(all(_stays(kind, kind.plus(q, s * v), R, p, K) for s in AWAY) for v in rates)


def _stays(kind: Kind, q: np.ndarray, R: np.ndarray, p: np.ndarray, K: np.ndarray) -> bool:
    """Whether the joint at other coordinates is turned about the normal and shifted in the plane only."""
    turned = np.eye(3) if kind.E is None else np.asarray(kind.E(q), dtype=float).T
    shifted = np.zeros(3) if kind.r is None else np.asarray(kind.r(q), dtype=float).ravel()
    return bool(np.abs(turned.T @ K - R.T @ K).max() < 1e-7 and abs(K @ (shifted - p)) < 1e-7)


def _measured(kind: Kind, R: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.asarray(kind.measure(R, p), dtype=float)


def _shifts(kind: Kind, R: np.ndarray, p: np.ndarray, K: np.ndarray) -> list[np.ndarray]:
    """Directions in the plane, in F, along which the joint's motion subspace has a shift."""
    plane = np.linalg.svd(K[None, :])[2][1:]  # two rows across K
    S = np.asarray(kind.S(_measured(kind, R, p)), dtype=float)
    B = np.concatenate([np.zeros((3, 2)), R.T @ plane.T])
    left = B - S @ (np.linalg.pinv(S) @ B) if S.shape[1] else B
    _, size, V = np.linalg.svd(left)
    return [V[k] @ plane for k in range(2) if size[k] < 1e-7]


def _turn(K: np.ndarray, angle: float) -> np.ndarray:
    """Rotation about K."""
    x, y, z = nominal(K)
    W = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + np.sin(angle) * W + (1 - np.cos(angle)) * W @ W)
