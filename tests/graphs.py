"""Random joint graphs for tests: loops through ground and between bodies, parallel joints, several components.

Bodies are placed first, anywhere; each joint is then put between two of them so that it is closed there at the random
coordinates that it gets as `start`. A graph is known by a seed, so that tests share its compiled kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import casadi as ca
import numpy as np
from scipy.linalg import qr

import cardan as cd
from cardan.model.joint import configuration_rate

from .formulations import ALL, RECURSIONS, parts_of
from .formulations import solved as answer
from .trees import KINDS, Rng, add_body, random_pose, random_rotation

# The formulations that take any mechanism.
WAYS = ALL
# Two joints between the same bodies that leave one freedom together, whatever their places.
PARALLEL = (("spherical", "spherical"), ("planar", "planar"), ("spherical", "planar"))
CLOSING = ("rigid", "revolute", "screw", "universal", "cylindrical", "spherical", "planar")


def pose_of(kind: cd.model.joint.Kind, q: np.ndarray) -> cd.Pose:
    """Pose of frame M in frame F at a joint's coordinates."""
    p = np.zeros(3) if kind.r is None else np.asarray(kind.r(q), dtype=float)
    return cd.Pose(p, np.eye(3) if kind.E is None else np.asarray(kind.E(q), dtype=float).T)


def joint_coordinates(kind: cd.model.joint.Kind, rng: Rng) -> np.ndarray:
    """Random coordinates of one joint."""
    q = rng.uniform(-1, 1, kind.nq)
    if kind.nq != kind.nv:
        q[-4:] /= np.linalg.norm(q[-4:])
    return q


def join_closed(
    m: cd.Mechanism, name: str, kind: str, ends: tuple[str, str], poses: dict[str, cd.Pose], rng: Rng
) -> None:
    """A joint somewhere between two bodies, closed where they are."""
    type = KINDS[kind](rng)
    q = joint_coordinates(type.kind, rng)
    axes = cd.Pose(rotation=type.orientation(name))
    parent, child = (poses[end] for end in ends)
    middle = cd.Pose((parent.position + child.position) / 2 + rng.uniform(-0.3, 0.3, 3), random_rotation(rng))
    moved = middle @ axes @ pose_of(type.kind, q) @ axes.inverse
    m.joint(
        name, type, *ends, at=parent.inverse @ middle, child_at=child.inverse @ moved,
        start=q if type.kind.nq else None,
    )  # fmt: skip


def graph_mechanism(seed: int) -> cd.Mechanism:
    """A random graph with up to 12 bodies and 1 to 4 loops; some have two components, some parallel joints."""
    rng = np.random.default_rng([1984, seed])
    m = cd.Mechanism(f"graph {seed}", gravity=rng.uniform(-10, 10, 3))
    bodies, loops, parts = (int(rng.integers(*span)) for span in ((3, 12), (1, 5), (1, 3)))
    order = list(rng.permutation([kind for kind in KINDS if kind != "free" or seed % 3 == 0]))
    poses = {m.ground: cd.Pose()}
    freedoms: dict[str, int] = {}  # of the joint towards ground
    toward: dict[str, str] = {}
    for k in range(bodies):
        name = add_body(m, f"b{k}", rng)
        poses[name] = random_pose(rng)
        near = m.ground if k < parts else f"b{k - parts * int(rng.integers(1, 1 + k // parts))}"
        kind = order[k % len(order)]
        ends = (name, near) if rng.random() < 0.4 else (near, name)
        join_closed(m, f"{kind} {name}", kind, ends, poses, rng)
        toward[name], freedoms[name] = near, KINDS[kind](rng).kind.nv
    for k in range(loops):
        if k == 1:  # two joints side by side, to a body that nothing else holds
            pair = PARALLEL[seed % len(PARALLEL)]
            name = add_body(m, f"side{k}", rng)
            poses[name] = random_pose(rng)
            for i, kind in enumerate(pair):
                join_closed(m, f"{kind} {name} {i}", kind, ("b0", name), poses, rng)
            continue
        _close_loop(m, k, toward, freedoms, poses, parts, rng)
    return m


def _close_loop(
    m: cd.Mechanism,
    k: int,
    toward: dict[str, str],
    freedoms: dict[str, int],
    poses: dict[str, cd.Pose],
    parts: int,
    rng: Rng,
) -> None:
    """A joint between two bodies of a component, or to ground, that leaves its loop a freedom or more."""
    names, kind = list(toward), "free"
    for _ in range(20):
        far = int(rng.integers(len(names) // 2, len(names)))
        others = [m.ground, *(name for i, name in enumerate(names) if i != far and i % parts == far % parts)]
        near = m.ground if k == 0 else others[int(rng.integers(len(others)))]
        apart = set(_way(names[far], toward)) ^ set(_way(near, toward))
        available = sum(freedoms[name] for name in apart)
        loose = [kind for kind in CLOSING if KINDS[kind](rng).kind.nv + available >= 7]
        if len(apart) > 1 and loose:
            kind = loose[int(rng.integers(min(4, len(loose))))]
            break
    ends = (names[far], near) if rng.random() < 0.5 else (near, names[far])
    join_closed(m, f"{kind} closing {k}", kind, ends, poses, rng)


def _way(name: str, toward: dict[str, str]) -> list[str]:
    """The bodies from one to the ground."""
    way = []
    while name in toward:
        way.append(name)
        name = toward[name]
    return way


@cache
def graph_model(seed: int) -> cd.Model:
    """A frozen random graph."""
    return graph_mechanism(seed).build()


def consistent_states(model: cd.Model, seed: int, *batch: int) -> tuple[np.ndarray, ...]:
    """Q near the start, v, joint forces and wrenches, with every loop closed."""
    rng = np.random.default_rng(seed)
    q, v = np.tile(model.start(), (*batch, 1)), rng.standard_normal((*batch, model.nv))
    along = cd.assemble(model, q, rng.uniform(-0.1, 0.1, v.shape))[1]
    q, v = cd.assemble(model, cd.plus(model, q, along), v)
    return q, v, rng.standard_normal(v.shape), rng.standard_normal((*batch, model.nb, 6))


@cache
def interpreted(model: cd.Model, formulation: str) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Accelerations (nv,) and wrenches of the joints, from q, v, tau, wrenches (and t), without a kernel.

    CasADi interprets the equations; the independent rows are chosen here, at the first state asked for.
    """
    q, v, tau = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("tau", model.nv)))
    wrenches, t = ca.SX.sym("wrenches", model.nb, 6), ca.SX.sym("t")
    parts = parts_of(model, formulation, q, v, tau, wrenches, t)
    jacobian = ca.Function("J", [q, t], [parts.rows.J])
    solved: list[ca.Function] = []

    def evaluate(*state: np.ndarray, at: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        if not solved:
            rows = independent_rows(np.array(jacobian(state[0], at)))
            found = list(answer(model, formulation, parts, rows))
            solved.append(ca.Function("solved", [q, v, tau, wrenches, t], found))
        a, f = solved[0](*state, at)
        return np.array(a).ravel(), np.array(f)

    return evaluate


def independent_rows(J: np.ndarray) -> list[int]:
    """Numbers of rows that span all of them, by QR with pivoting; rows that vanish are none."""
    if J.size == 0:
        return []
    size = np.linalg.norm(J, axis=1, keepdims=True)
    _, R, order = qr((J / np.where(size > 1e-10, size, 1e10)).T, mode="economic", pivoting=True)
    found = np.abs(np.diag(R))
    return sorted(int(k) for k in order[: int((found > 1e-8).sum())])


@cache
def of_bodies(model: cd.Model) -> Callable[..., tuple[np.ndarray, ...]]:
    """From q, v, a: poses (nb, 4, 4), twists and spatial accelerations (nb, 6) of all bodies, without a kernel."""
    q, v, a = (ca.SX.sym(name, n) for name, n in (("q", model.nq), ("v", model.nv), ("a", model.nv)))
    table, given = RECURSIONS["spatial"], {"q": q, "v": v, "a": a}
    names = ("body_poses", "body_twists", "body_accelerations")
    outputs = [table[name].graph(model, {port: given[port] for port in table[name].inputs})[0] for name in names]
    graph = ca.Function("bodies", [q, v, a], outputs)

    def evaluate(*state: np.ndarray) -> tuple[np.ndarray, ...]:
        poses, twists, accelerations = (np.array(x) for x in graph(*state))
        return poses.reshape(-1, 4, 4), twists, accelerations

    return evaluate


def rates_of(model: cd.Model, q: ca.SX, v: ca.SX) -> ca.SX:
    """Qdot of the tree, as a graph."""
    return ca.vertcat(
        *(configuration_rate(link.kind, q[link.q], v[link.v]) for link in model.tree.links if link.kind.nq)
    )
