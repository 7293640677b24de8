"""Random mechanisms for the judge: graphs with one to four loops, every joint kind, redundant constraints, loads.

Bodies are placed first; each joint is then put where it is closed. A mechanism is known by its family and a seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

import cardan as cd

from .joint_motions import MOTIONS, Array, quaternion_of, turn, turn_by_quaternion

Rng = np.random.Generator
ONE_RATE = ("revolute", "prismatic", "screw")


def random_rotation(rng: Rng) -> Array:
    """Any rotation (3, 3)."""
    return turn_by_quaternion(rng.standard_normal(4))


def pose(R: Array, x: Array) -> Array:
    """Homogeneous matrix (4, 4)."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = R, x
    return X


def along(z: Array, x: Array | None = None) -> Array:
    """A rotation whose third column is the direction `z`; its first is near `x`."""
    z = np.asarray(z, dtype=float) / np.linalg.norm(z)
    x = np.eye(3)[int(np.argmin(np.abs(z)))] if x is None else x
    x = x - z * (z @ x)
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


@dataclass
class Maker:
    """A mechanism as it grows, with the poses (4, 4) of its bodies."""

    name: str
    rng: Rng
    poses: dict[str, Array] = field(default_factory=dict)
    joints: list[tuple[str, str]] = field(default_factory=list)
    starts: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.m = cd.Mechanism(self.name, gravity=self.rng.uniform(-10, 10, 3))
        self.poses[self.m.ground] = np.eye(4)

    def body(self, x: Array | None = None, R: Array | None = None, size: float = 0.3) -> str:
        """A solid body of any shape somewhere."""
        rng, name = self.rng, f"b{len(self.poses)}"
        self.poses[name] = pose(
            random_rotation(rng) if R is None else R, rng.uniform(-0.6, 0.6, 3) if x is None else np.asarray(x)
        )
        mass, axes, edges = rng.uniform(0.3, 3), random_rotation(rng), rng.uniform(0.05, 0.5, 3) ** 2
        inertia = axes @ np.diag(mass / 12 * (edges.sum() - edges)) @ axes.T
        return self.m.body(name, mass=mass, com=rng.uniform(-size, size, 3), inertia=(inertia + inertia.T) / 2)

    def join(self, kind: str, parent: str, child: str, frame: Array, q: Array | None = None, pitch: float = 0.0) -> str:
        """A joint whose frame F is at `frame` (4, 4) of the ground; closed with the coordinates `q`."""
        rng, motion = self.rng, MOTIONS[kind]
        if q is None:
            q = rng.uniform(-0.8, 0.8, motion.nq)
        if motion.nq != motion.nv:
            q = np.concatenate([q[:-4], q[-4:] / np.linalg.norm(q[-4:])])
        turned = pose(random_rotation(rng) if rng.random() < 0.5 else np.eye(3), np.zeros(3))
        Q = turned[:3, :3]
        types: dict[str, Callable[[], cd.JointType]] = {
            "rigid": cd.Rigid, "spherical": cd.Spherical, "free": cd.Free,
            "revolute": lambda: cd.Revolute(axis=Q.T[:, 2]), "prismatic": lambda: cd.Prismatic(axis=Q.T[:, 2]),
            "cylindrical": lambda: cd.Cylindrical(axis=Q.T[:, 2]),
            "screw": lambda: cd.Screw(axis=Q.T[:, 2], pitch=pitch or float(rng.uniform(0.05, 0.4))),
            "universal": lambda: cd.Universal(Q.T[:, 0], Q.T[:, 1]), "planar": lambda: cd.Planar(Q.T[:, 2], Q.T[:, 0]),
        }  # fmt: skip
        type_ = types[kind]()
        if kind in ("rigid", "spherical", "free"):
            turned = np.eye(4)
        moved = frame @ pose(*motion.pose(q, float(getattr(type_, "pitch", 0.0))))
        at, child_at = (np.linalg.inv(self.poses[body]) @ X @ turned for body, X in ((parent, frame), (child, moved)))
        name = f"{kind} {len(self.joints)}"
        self.m.joint(
            name, type_, parent, child, at=_placed(at), child_at=_placed(child_at), start=q if motion.nq else None
        )
        self.joints.append((name, kind))
        self.starts[name] = q
        return name

    def ends(self, one: str, other: str) -> tuple[str, str]:
        """The two bodies in either order, so that joints are met from both sides."""
        return (one, other) if self.rng.random() < 0.6 else (other, one)

    def load(self) -> None:
        """Springs, dampers, drives, couplings and motions, some of each."""
        rng, m = self.rng, self.m
        bodies = list(self.poses)
        for k in range(int(rng.integers(0, 3))):
            one, other = rng.choice(bodies, 2, replace=False)
            m.spring(
                f"spring {k}", str(one), str(other), stiffness=rng.uniform(1, 300), length=rng.uniform(0.05, 1),
                damping=rng.uniform(0, 5), at1=rng.uniform(-0.3, 0.3, 3), at2=rng.uniform(0.3, 0.6, 3),
            )  # fmt: skip
        if rng.random() < 0.15:
            one, other = rng.choice(bodies, 2, replace=False)
            m.bushing(
                "bushing", str(one), str(other), stiffness=rng.uniform(1, 50, 6), damping=rng.uniform(0, 2, 6),
                at1=_placed(pose(random_rotation(rng), rng.uniform(-0.3, 0.3, 3))), at2=rng.uniform(-0.3, 0.3, 3),
            )  # fmt: skip
        if rng.random() < 0.2:
            where = "ground" if rng.random() < 0.5 else "body"
            m.wrench("wrench", bodies[-1], rng.uniform(-5, 5, 6), at=rng.uniform(-0.3, 0.3, 3), axes=where)
        for name, kind in self.joints:
            if kind in ONE_RATE and rng.random() < 0.2:
                m.torsion(f"torsion {name}", name, stiffness=rng.uniform(1, 50), rest=0.2, damping=rng.uniform(0, 1))
            if kind in ONE_RATE and rng.random() < 0.1:
                m.drive(f"drive {name}", name, lambda t, q, v: 3 * ca.sin(2 * t) - 0.4 * v + q)
            if kind not in ("rigid", "free") and rng.random() < 0.1:
                m.friction(f"friction {name}", name, viscous=rng.uniform(0, 2))

    def couple(self) -> None:
        """A gear between two joints that fits the start, or a prescribed motion from there."""
        rng, ones = self.rng, [name for name, kind in self.joints if kind in ONE_RATE]
        if len(ones) > 1 and rng.random() < 0.6:
            picked = [str(x) for x in rng.choice(ones, int(rng.integers(2, min(3, len(ones)) + 1)), replace=False)]
            c = {name: float(rng.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])) for name in picked}
            self.m.couple("gear", c, offset=float(sum(c[name] * self.starts[name][0] for name in picked)))
        elif ones:
            name = str(rng.choice(ones))
            q0, w = float(self.starts[name][0]), float(rng.uniform(0.5, 2))
            self.m.motion("motion", name, lambda t: q0 + 0.3 * ca.sin(w * t) + 0.1 * t * t)


def _placed(X: Array) -> cd.Pose:
    return cd.Pose(X[:3, 3], quaternion=quaternion_of(X[:3, :3]))


def graph(rng: Rng) -> Maker:
    """A random tree of two to seven bodies, closed by one to four joints; most loops have a freedom to spare."""
    w = Maker("graph", rng)
    n, loops = int(rng.integers(2, 7)), int(rng.integers(1, 5))
    kinds = [kind for kind in MOTIONS if kind != "free"]
    path: dict[str, list[tuple[str, int]]] = {w.m.ground: []}
    for _ in range(n):
        near = str(rng.choice(list(path))) if rng.random() < 0.6 else list(path)[-1]
        name = w.body()
        kind = "free" if rng.random() < 0.06 else str(rng.choice(kinds))
        w.join(kind, *w.ends(near, name), _between(w, near, name))
        path[name] = [*path[near], (name, MOTIONS[kind].nv)]
    names = list(path)
    for _ in range(loops):
        for _ in range(30):
            one, other = (str(x) for x in rng.choice(names, 2, replace=False))
            free = sum(nv for _, nv in set(path[one]) ^ set(path[other]))
            fitting = [kind for kind in kinds if MOTIONS[kind].nv + free >= 7]
            if fitting:
                w.join(str(rng.choice(fitting[:5])), *w.ends(one, other), _between(w, one, other))
                break
        else:  # a body on two joints side by side, which leave it one freedom or two
            name = w.body()
            for kind in (("spherical", "spherical"), ("planar", "planar"), ("spherical", "planar"))[rng.integers(3)]:
                w.join(kind, *w.ends(names[1], name), _between(w, names[1], name))
    return w


def tree(rng: Rng) -> Maker:
    """A random tree of one to five bodies."""
    w = Maker("tree", rng)
    for _ in range(int(rng.integers(1, 6))):
        near = str(rng.choice(list(w.poses)))
        name = w.body()
        w.join(str(rng.choice(list(MOTIONS))), *w.ends(near, name), _between(w, near, name))
    return w


def _between(w: Maker, one: str, other: str) -> Array:
    """A frame near the middle of two bodies."""
    middle = (w.poses[one][:3, 3] + w.poses[other][:3, 3]) / 2
    return pose(random_rotation(w.rng), middle + w.rng.uniform(-0.2, 0.2, 3))


# Linkages in a plane, whose loops have three redundant rows each; the plane is tilted.


@dataclass
class Plane:
    """A tilted plane: its axes (3, 3), the last its normal, and origin."""

    R: Array
    x: Array

    def point(self, p: Array) -> Array:
        """A point of the plane in ground axes."""
        return self.x + self.R[:, :2] @ np.asarray(p, dtype=float)

    def hinge(self, p: Array) -> Array:
        """Frame of a hinge there."""
        return pose(self.R, self.point(p))

    def slide(self, p: Array, angle: float) -> Array:
        """Frame of a slider there, at an angle to the plane's x."""
        return pose(self.R @ along(np.array([np.cos(angle), np.sin(angle), 0]), np.array([0, 0, 1.0])), self.point(p))


def tilted(rng: Rng) -> Plane:
    """Any plane."""
    return Plane(random_rotation(rng), rng.uniform(-0.3, 0.3, 3))


def loose(rng: Rng) -> str:
    """A hinge, or a joint that is one in a plane."""
    return str(rng.choice(["revolute", "revolute", "revolute", "revolute", "cylindrical", "spherical"]))


def dyads(rng: Rng) -> Maker:
    """A crank, and one to four pairs of links between points of what is there; one freedom, hinges and sliders."""
    w, plane = Maker("dyads", rng), tilted(rng)
    crank = w.body(plane.point(rng.uniform(-0.5, 0.5, 2)))
    w.join("revolute", w.m.ground, crank, plane.hinge(rng.uniform(-0.5, 0.5, 2)))
    names = [w.m.ground, crank]
    for _ in range(int(rng.integers(1, 5))):
        one, other = (str(x) for x in rng.choice(names, 2, replace=False))
        if {one, other} == {w.m.ground} or len(names) == 2:
            one, other = crank, w.m.ground
        a, b, c = rng.uniform(-0.8, 0.8, (3, 2))
        left, right = w.body(plane.point((a + c) / 2)), w.body(plane.point((b + c) / 2))
        w.join("revolute", *w.ends(one, left), plane.hinge(a))
        form = rng.integers(4)
        w.join(loose(rng) if form != 2 else "revolute", *w.ends(left, right), plane.hinge(c))
        if form == 0:
            w.join("prismatic", *w.ends(other, right), plane.slide(b, float(rng.uniform(0, 6))))
        elif form == 1:
            w.join("revolute", *w.ends(other, right), plane.hinge(b), None)
        elif form == 2:  # the same with a joint that keeps the plane, and one that is a hinge there
            w.join("universal", *w.ends(other, right), pose(plane.R[:, [2, 0, 1]], plane.point(b)), np.array([0.3, 0]))
        else:
            w.join("cylindrical", *w.ends(other, right), plane.hinge(b), np.array([rng.uniform(-1, 1), 0.0]))
        names += [left, right]
    return w


def four_bars(rng: Rng) -> Maker:
    """Four-bars that fold flat: parallelograms with two to four cranks, kites, rhombi and others with equal sums."""
    w, plane = Maker("four-bars", rng), tilted(rng)
    form = str(rng.choice(["parallelogram", "kite", "rhombus", "sums"]))
    angle, size = rng.uniform(0.3, 2.8), rng.uniform(0.3, 1)
    if form == "parallelogram":
        side, coupler = rng.uniform(0.2, 0.8) * np.array([np.cos(angle), np.sin(angle)]), w.body(plane.point([0, 0]))
        feet = rng.uniform(-1, 1, (int(rng.integers(2, 5)), 2))
        feet[:, 1] *= rng.integers(2)  # feet in line: flat positions
        for foot in feet:
            crank = w.body(plane.point(foot))
            w.join("revolute", *w.ends(w.m.ground, crank), plane.hinge(foot))
            w.join("revolute", *w.ends(crank, coupler), plane.hinge(foot + side))
        return w
    crank = rng.uniform(0.4, 1.0)
    lengths = {
        "kite": (crank, crank + size, crank + size, crank), "rhombus": (crank,) * 4,
        "sums": (crank, crank + size, crank + size + 0.3, crank + 0.3),
    }[form]  # fmt: skip
    a, b, c, d = lengths  # crank, coupler, rocker, ground: longest and shortest make up the others
    B = a * np.array([np.cos(angle), np.sin(angle)])
    D = np.array([d, 0.0])
    r = np.linalg.norm(D - B)
    x = (r * r + b * b - c * c) / (2 * r)
    e = (D - B) / r
    C = B + x * e + np.sqrt(max(b * b - x * x, 0)) * np.array([-e[1], e[0]])
    bodies = [w.body(plane.point(p)) for p in (B / 2, (B + C) / 2, (C + D) / 2)]
    chain = [w.m.ground, *bodies, w.m.ground]
    for one, other, p in zip(chain, chain[1:], ([0, 0], B, C, D), strict=False):
        w.join("revolute", *w.ends(one, other), plane.hinge(np.array(p)))
    return w


def geared(rng: Rng) -> Maker:
    """A parallelogram whose cranks are geared 1:1, which the linkage does already."""
    w, plane = Maker("geared", rng), tilted(rng)
    side, coupler = np.array([0.2, 0.5]), w.body(plane.point([0, 0.5]))
    geared = []
    for foot in ([0, 0], [0.9, 0.0]):
        crank = w.body(plane.point(foot))
        q = np.array([0.4])
        geared.append(w.join("revolute", w.m.ground, crank, plane.hinge(np.array(foot)), q))
        w.join("revolute", *w.ends(crank, coupler), plane.hinge(np.array(foot) + side))
    w.m.couple("gear", {geared[0]: 1.0, geared[1]: -1.0})
    return w


def driven(rng: Rng) -> Maker:
    """A slider-crank near its dead point, driven by its slider, by a coupling, or free; a dyad hangs on it."""
    w, plane = Maker("driven", rng), tilted(rng)
    angle, crank, rod = 10.0 ** rng.uniform(-5, -0.5), rng.uniform(0.2, 0.5), rng.uniform(0.6, 1)
    pin = crank * np.array([np.cos(angle), np.sin(angle)])
    slider = np.array([pin[0] + np.sqrt(rod**2 - pin[1] ** 2), 0.0])
    bodies = [w.body(plane.point(p)) for p in (pin / 2, (pin + slider) / 2, slider)]
    start = np.array([rng.uniform(-0.5, 0.5)])
    w.join("revolute", w.m.ground, bodies[0], plane.hinge(np.zeros(2)), start)
    w.join("revolute", *w.ends(bodies[0], bodies[1]), plane.hinge(pin))
    w.join(loose(rng), *w.ends(bodies[1], bodies[2]), plane.hinge(slider))
    rail = w.join("prismatic", w.m.ground, bodies[2], plane.slide(slider, 0.0))
    x, rate, form = float(w.starts[rail][0]), float(rng.uniform(-1, 1)) * angle, rng.integers(3)
    if form == 0:
        w.m.motion("push", rail, lambda t: x + rate * t + angle * ca.sin(t) ** 2)
    elif form == 1:  # a second slider follows the first
        other = w.body()
        follower = w.join("prismatic", w.m.ground, other, pose(random_rotation(rng), rng.uniform(-0.5, 0.5, 3)))
        w.m.couple("follow", {rail: 1.0, follower: -2.0}, offset=x - 2 * float(w.starts[follower][0]))
    return w


# Rings of hinges whose axes follow each other by lengths, twists and offsets, closed by least squares.


def ring(rng: Rng, links: Array, name: str, spread: float = 1.5) -> Maker | None:
    """A ring of hinges. Row k of `links` is length, twist and offset of the link beyond hinge k; None: not closed."""
    n = len(links)

    def frames(angles: Array) -> list[Array]:
        X, found = np.eye(4), []
        for (a, alpha, d), angle in zip(links, angles, strict=True):
            X = X @ pose(turn(2, angle), np.array([0, 0, d]))
            found.append(X)
            X = X @ pose(turn(0, alpha), np.array([a, 0, 0])) if a == 0 else X @ _link(a, alpha)
        return [*found, X]

    def error(angles: Array) -> Array:
        X = frames(angles)[-1]
        return np.concatenate([X[:3, :3].ravel() - np.eye(3).ravel(), X[:3, 3]])

    for _ in range(40):
        angles = rng.uniform(-spread, spread, n)
        for _ in range(60):
            e = error(angles)
            if np.abs(e).max() < 1e-14:
                break
            D = np.array([(error(angles + h) - error(angles - h)) / 2e-6 for h in 1e-6 * np.eye(n)]).T
            step = np.linalg.lstsq(D, e, rcond=1e-6)[0]
            angles = angles - step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-9))
        D = np.array([(error(angles + h) - error(angles - h)) / 2e-6 for h in 1e-6 * np.eye(n)]).T
        s = np.linalg.svd(D)[1]
        if np.abs(error(angles)).max() < 1e-13 and s[-1] < 1e-7 < 1e-2 < s[-2]:  # closed, with one freedom
            break
    else:
        return None
    w = Maker(name, rng)
    there = frames(angles)
    bodies = [w.body(X[:3, 3] + rng.uniform(-0.1, 0.1, 3)) for X in there[1:n]]
    chain = [*bodies, w.m.ground]
    before = w.m.ground
    for X, body in zip(there[:n], chain, strict=True):
        w.join("revolute", *w.ends(before, body), X)
        before = body
    return w


def _link(a: float, alpha: float) -> Array:
    return pose(turn(0, alpha), np.array([a, 0, 0]))


def bennett(rng: Rng) -> Maker:
    """Bennett's linkage: four hinges, none parallel."""
    while True:
        one, other, size = rng.uniform(0.3, 1.4), rng.uniform(1.5, 2.8), rng.uniform(0.3, 1)
        links = [(size * np.sin(one), one, 0.0), (size * np.sin(other), other, 0.0)] * 2
        found = ring(rng, np.array(links), "Bennett", np.pi)
        if found is not None:
            return found


def bricard(rng: Rng) -> Maker:
    """A ring of six hinges after Bricard: line-symmetric, alike in threes, or with right angles (trihedral)."""
    while True:
        form = rng.integers(3)
        if form == 0:
            half = [(rng.uniform(0.2, 0.8), rng.uniform(0.4, 2.6), rng.uniform(-0.3, 0.3)) for _ in range(3)]
            links = half * 2
        elif form == 1:
            a, alpha = rng.uniform(0.3, 0.8), float(rng.choice([np.pi / 2, rng.uniform(1.2, 1.9)]))
            links = [(a, alpha, 0.0), (a, -alpha, 0.0)] * 3
        else:  # squares of every other length have the same sum
            a = rng.uniform(0.3, 0.8, 6)
            a[5] = np.sqrt(max(a[0] ** 2 + a[2] ** 2 + a[4] ** 2 - a[1] ** 2 - a[3] ** 2, 0.01))
            links = [(x, np.pi / 2 * (-1) ** k, 0.0) for k, x in enumerate(a)]
        found = ring(rng, np.array(links), "Bricard", np.pi)
        if found is not None:
            return found


def spherical_ring(rng: Rng) -> Maker:
    """Four hinges whose axes meet in a point."""
    while True:
        found = ring(rng, np.array([(0.0, rng.uniform(0.5, 1.6), 0.0) for _ in range(4)]), "spherical ring", np.pi)
        if found is not None:
            return found


def sarrus(rng: Rng) -> Maker:
    """A plate on two or three legs of three parallel hinges each: it goes straight."""
    w = Maker("Sarrus", rng)
    plate = w.body()
    for k in range(int(rng.integers(2, 4))):
        angle = k + rng.uniform(0, 0.6)
        leg = Plane(along(np.array([np.cos(angle), np.sin(angle), 0.0]), np.array([0, 0, 1.0])), np.zeros(3))
        points = rng.uniform(-0.8, 0.8, (3, 2))
        lower, upper = w.body(leg.point(points[0])), w.body(leg.point(points[2]))
        chain = [w.m.ground, lower, upper, plate]
        for one, other, p in zip(chain, chain[1:], points, strict=False):
            w.join("revolute", *w.ends(one, other), leg.hinge(p))
    return w


def sliders(rng: Rng) -> Maker:
    """Four to five sliders in a ring: nothing turns, and three rows of each loop are too many."""
    w = Maker("sliders", rng)
    before = w.m.ground
    n = int(rng.integers(4, 6))
    for k in range(n):
        body = w.m.ground if k == n - 1 else w.body()
        w.join("prismatic", *w.ends(before, body), pose(random_rotation(rng), rng.uniform(-0.5, 0.5, 3)))
        before = body
    return w


def coaxial(rng: Rng) -> Maker:
    """A screw jack and a door: hinges, sliders, screws and sleeves on one axis, many of them redundant."""
    w = Maker("coaxial", rng)
    axis = pose(random_rotation(rng), rng.uniform(-0.4, 0.4, 3))

    def further() -> Array:
        return axis @ pose(np.eye(3), np.array([0, 0, rng.uniform(-0.5, 0.5)]))

    nut, spindle = w.body(), w.body()
    w.join("revolute", *w.ends(w.m.ground, spindle), further())
    w.join("prismatic", *w.ends(w.m.ground, nut), further())
    w.join("screw", *w.ends(spindle, nut), further(), pitch=0.2)
    for _ in range(int(rng.integers(0, 3))):
        which = rng.integers(3)
        if which == 0:
            w.join("revolute", w.m.ground, spindle, further())
        elif which == 1:
            w.join("cylindrical", spindle, nut, further())
        else:
            w.join("cylindrical", w.m.ground, nut, further())
    return w


FAMILIES: dict[str, Callable[[Rng], Maker]] = {
    "tree": tree, "graph": graph, "dyads": dyads, "four-bars": four_bars, "geared": geared, "driven": driven,
    "Bennett": bennett, "Bricard": bricard, "spherical ring": spherical_ring, "Sarrus": sarrus, "sliders": sliders,
    "coaxial": coaxial,
}  # fmt: skip
"""How each family is drawn."""
DRAWN = ("graph", "dyads", "graph", "four-bars", "graph", "Bricard", "dyads", "Bennett", "graph", "spherical ring",
         "four-bars", "Sarrus", "geared", "graph", "sliders", "coaxial", "driven", "tree")  # fmt: skip
"""Families in the order of seeds."""


def mechanism(seed: int, *, family: str = "") -> cd.Mechanism:
    """The mechanism of a seed, loaded; a third has a coupling or a prescribed motion as well."""
    rng = np.random.default_rng([13, seed])
    w = FAMILIES[family or DRAWN[seed % len(DRAWN)]](rng)
    w.m.name = f"{w.name} {seed}"
    w.load()
    if rng.random() < 0.35 and not (w.m.couplings or w.m.name.startswith("driven")):
        w.couple()
    return w.m
