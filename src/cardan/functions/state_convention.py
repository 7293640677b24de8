"""States as other programs hold them: `cd.state_to("pinocchio", model, q, v)` and `cd.state_from(...)`.

| | order of the joints | free joint, q | free joint, v | ball | turning, no limits |
|---|---|---|---|---|---|
| Cardan | `model.coordinate_names` | xyz, wxyz | angular, linear; body axes | wxyz | angle |
| Pinocchio | from the root, by name | xyz, xyzw | linear, angular; body axes | xyzw | cosine, sine |
| MuJoCo | of the file | xyz, wxyz | linear in ground, angular in body axes | wxyz | angle |
| ROS | of the message | xyz, xyzw | linear, angular; body axes | - | angle |

A planar joint of Pinocchio is (x, y, cosine, sine), with its velocity in the moving axes. All else is the same number
in all four.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.model.joint import FREE, PLANAR, REVOLUTE, SPHERICAL
from cardan.model.model import Model
from cardan.model.named_state import UNIT_ERROR
from cardan.model.tree import GROUND, Link
from cardan.model.values import array, shown

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Part = tuple[np.ndarray, np.ndarray]


def _declared(model: Model) -> list[str]:
    """The order in which the joints were declared, or stand in the file."""
    moving = {link.joint for link in model.tree.links if link.kind.nv}
    return [joint.name for j, joint in enumerate(model.joints) if j in moving]


def _by_name_from_root(model: Model) -> list[str]:
    """Outwards from the root, branch by branch, joints of one body in the order of their names."""
    moving = {link.joint for link in model.tree.links if link.kind.nv}
    found, waiting = [], [GROUND]
    while waiting:
        body = waiting.pop()
        own = sorted((joint.name, j) for j, joint in enumerate(model.joints) if joint.parent == body)
        if body != GROUND:
            found += [model.joints[j].name for j in moving if model.joints[j].child == body]
        waiting += [model.joints[j].child for _, j in reversed(own) if j not in model.cuts]
    return found


@dataclass(frozen=True)
class Convention:
    """How a program holds a state: see the table above."""

    name: str
    order: Callable[[Model], list[str]]
    scalar_last: bool
    linear_first: bool
    linear_in_ground: bool = False
    unlimited_as_cosine: bool = False
    has_balls: bool = True
    ignored: tuple[str, ...] = ()
    """Names in its lists that are not joints."""
    base: str = ""
    """What it calls the joint between ground and root."""


CONVENTIONS = {
    one.name: one
    for one in (
        Convention(
            "pinocchio", _by_name_from_root, scalar_last=True, linear_first=True, unlimited_as_cosine=True,
            ignored=("universe",), base="root_joint",
        ),
        Convention("mujoco", _declared, scalar_last=False, linear_first=True, linear_in_ground=True),
        Convention("ros", _declared, scalar_last=True, linear_first=True, has_balls=False),
    )
}  # fmt: skip
"""Programs that states can be converted to and from."""


def state_to(
    program: str, model: Model, q: ArrayLike, v: ArrayLike | None = None, *, names: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A state as another program holds it: its q and v, each with the batch axes of Cardan's.

    Args:
        program: "pinocchio", "mujoco" or "ros".
        model: the mechanism, read from the same file.
        q: configurations (..., nq), rad and m.
        v: velocities (..., nv), rad/s and m/s; at rest by default.
        names: its joints in its order, such as `pin_model.names` or the `name` of a ROS message; by default Pinocchio's
            order for a URDF, the file's order for the others. A free joint that is not named comes first.

    """
    convention, links = _read(program, "state_to", model, names)
    q = array("state_to", "q", q, model.nq)
    v = np.zeros(model.nv) if v is None else array("state_to", "v", v, model.nv)
    lead = _lead("state_to", q, v)
    q, v = (np.broadcast_to(x, (*lead, x.shape[-1])) for x in (q, v))
    parts = [_translated(convention, model, link)[0](q[..., link.q], v[..., link.v]) for link in links]
    empty = np.zeros((*lead, 0))
    return np.concatenate([empty, *(q for q, _ in parts)], axis=-1), np.concatenate(
        [empty, *(v for _, v in parts)], axis=-1
    )


def state_from(
    program: str, model: Model, q: ArrayLike, v: ArrayLike | None = None, *, names: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """A state of another program as Cardan's q (..., nq) and v (..., nv); arguments as `state_to`.

    An angle that the program holds as cosine and sine comes back between -pi and pi. Quaternions, and pairs of cosine
    and sine, must have length 1 to 1e-3.
    """
    convention, links = _read(program, "state_from", model, names)
    sizes = [_sizes(convention, model, link) for link in links]
    theirs = array("state_from", f"q of {program}", q, sum(n for n, _ in sizes))
    rates = array("state_from", f"v of {program}", np.zeros(model.nv) if v is None else v, sum(n for _, n in sizes))
    lead = _lead("state_from", theirs, rates)
    found_q, found_v = np.empty((*lead, model.nq)), np.empty((*lead, model.nv))
    at_q = at_v = 0
    for link, (nq, nv) in zip(links, sizes, strict=True):
        part = theirs[..., at_q : at_q + nq], rates[..., at_v : at_v + nv]
        _check_unit(convention, model, link, at_q, part[0])
        found_q[..., link.q], found_v[..., link.v] = _translated(convention, model, link)[1](*part)
        at_q, at_v = at_q + nq, at_v + nv
    return found_q, found_v


def _lead(owner: str, q: np.ndarray, v: np.ndarray) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    except ValueError:
        raise InputError(f"{owner}: the batches do not fit together: q {q.shape}, v {v.shape}") from None


def _read(program: Any, owner: str, model: Any, names: Any) -> tuple[Convention, list[Link]]:
    """The convention, and the links of the tree in its order."""
    if not isinstance(program, str) or program not in CONVENTIONS:
        raise UnknownNameError(f"{owner}: {program!r} is not a program{nearest(program, CONVENTIONS)}")
    if not isinstance(model, Model):
        raise InputError(f"{owner}: the model comes second, {owner}({program!r}, model, q, v), got {shown(model)}")
    convention = CONVENTIONS[program]
    links = {model.joints[link.joint].name: link for link in model.tree.links if link.kind.nv}
    if names is None:
        order = convention.order(model)
    else:
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise InputError(f"{owner}: names must be a list of joint names, got {shown(names)}")
        order = [name for name in map(str, names) if name not in convention.ignored or name in links]
        base = next((name for name, link in links.items() if link.parent == GROUND and link.kind is FREE), None)
        if base is not None:
            order = [base if name == convention.base and name not in links else name for name in order]
            order = order if base in order else [base, *order]
    for name in order:
        if name not in links:
            raise UnknownNameError(
                f"{owner}: {name!r} is not a joint of {model.name!r} that moves{nearest(name, links)}"
            )
        if order.count(name) > 1:
            raise InputError(f"{owner}: names has {name!r} twice")
    if missing := [name for name in links if name not in order]:
        raise InputError(f"{owner}: names lacks {', '.join(map(repr, missing[:8]))} of model {model.name!r}")
    return convention, [links[name] for name in order]


def _is_unlimited(model: Model, link: Link) -> bool:
    data = model.joints[link.joint].data
    return link.kind is REVOLUTE and (data.lower is None or data.upper is None)


def _sizes(convention: Convention, model: Model, link: Link) -> tuple[int, int]:
    """How many numbers the program has for the q and v of a joint."""
    _translated(convention, model, link)  # refuses what it has not
    more = convention.unlimited_as_cosine and (_is_unlimited(model, link) or link.kind is PLANAR)
    return link.kind.nq + int(more), link.kind.nv


def _check_unit(convention: Convention, model: Model, link: Link, at: int, q: np.ndarray) -> None:
    """Refuse a quaternion, or a cosine and sine, of a joint's part `q` at place `at` that has not length 1."""
    if link.kind in (FREE, SPHERICAL):
        what, first = f"quaternion ({'x, y, z, w' if convention.scalar_last else 'w, x, y, z'})", q.shape[-1] - 4
    elif q.shape[-1] > link.kind.nq:
        what, first = "cosine and sine", q.shape[-1] - 2
    else:
        return
    length = np.linalg.norm(q[..., first:], axis=-1)
    off = np.where(np.isnan(length), np.inf, np.abs(length - 1))
    if (off > UNIT_ERROR).any():
        raise InputError(
            f"state_from: q of {convention.name}: the {what} of joint {model.joints[link.joint].name!r}, "
            f"q[{at + first}:{at + q.shape[-1]}], must have length 1, got {length.flat[int(np.argmax(off))]:.6g}"
        )


def _translated(convention: Convention, model: Model, link: Link) -> tuple[Callable[..., Part], Callable[..., Part]]:
    """Functions from Cardan's q and v of a joint to the program's, and back."""
    there, back = ([1, 2, 3, 0], [3, 0, 1, 2]) if convention.scalar_last else ([0, 1, 2, 3], [0, 1, 2, 3])
    kind = link.kind
    if kind is FREE:
        return (
            lambda q, v: _free_to(convention, q, v, there),
            lambda q, v: _free_from(convention, q, v, back),
        )
    if kind is SPHERICAL and convention.has_balls:
        return (lambda q, v: (q[..., there], v)), (lambda q, v: (q[..., back], v))
    if convention.unlimited_as_cosine and _is_unlimited(model, link):
        return (
            lambda q, v: (np.concatenate([np.cos(q), np.sin(q)], axis=-1), v),
            lambda q, v: (np.arctan2(q[..., 1:], q[..., :1]), v),
        )
    if convention.unlimited_as_cosine and kind is PLANAR:
        return _planar_to, _planar_from
    if kind.nq == kind.nv == 1:
        return (lambda q, v: (q, v)), (lambda q, v: (q, v))
    name = model.joints[link.joint].name
    raise InputError(
        f"state: {convention.name} has no {kind.name} joint as {name!r}; convert the other joints one by one"
    )


def _free_to(convention: Convention, q: np.ndarray, v: np.ndarray, there: list[int]) -> Part:
    linear = _turned(q[..., 3:], v[..., 3:]) if convention.linear_in_ground else v[..., 3:]
    return (
        np.concatenate([q[..., :3], q[..., 3:][..., there]], axis=-1),
        np.concatenate([linear, v[..., :3]], axis=-1),
    )


def _free_from(convention: Convention, q: np.ndarray, v: np.ndarray, back: list[int]) -> Part:
    quaternion = q[..., 3:][..., back]
    turned = quaternion * np.array([1.0, -1.0, -1.0, -1.0])
    linear = _turned(turned, v[..., :3]) if convention.linear_in_ground else v[..., :3]
    return np.concatenate([q[..., :3], quaternion], axis=-1), np.concatenate([v[..., 3:], linear], axis=-1)


def _turned(e: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Vectors (..., 3) turned by unit quaternions (..., 4), w first."""
    w, u = e[..., :1], e[..., 1:]
    t = 2 * np.cross(u, x)
    return x + w * t + np.cross(u, t)


def _planar_to(q: np.ndarray, v: np.ndarray) -> Part:
    c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
    x, y = v[..., 0], v[..., 1]
    own = np.stack([c * x + s * y, c * y - s * x, v[..., 2]], axis=-1)
    return np.stack([q[..., 0], q[..., 1], c, s], axis=-1), own


def _planar_from(q: np.ndarray, v: np.ndarray) -> Part:
    c, s = q[..., 2], q[..., 3]
    x, y = v[..., 0], v[..., 1]
    own = np.stack([c * x - s * y, s * x + c * y, v[..., 2]], axis=-1)
    return np.stack([q[..., 0], q[..., 1], np.arctan2(s, c)], axis=-1), own
