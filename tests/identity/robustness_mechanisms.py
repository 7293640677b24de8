"""Random ill-conditioned mechanisms: extreme ratios of mass, length and stiffness, angles, singular positions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import cardan as cd
from cardan.mechanisms import random_inertia

from ..trees import KINDS, random_rotation

KEYS = ("spatial", "newton_euler", "absolute", "relative", "points")
PLANAR = {
    "revolute": cd.Revolute(axis=(0, 0, 1)),
    "spherical": cd.Spherical(),
    "cylindrical": cd.Cylindrical(axis=(0, 0, 1)),
    "universal": cd.Universal((0, 0, 1), (1, 0, 0)),
}


@dataclass(frozen=True)
class Part:
    """A body and the joint that carries it: the kind, the number of the body nearer to ground (0 is ground)."""

    kind: str
    near: int
    backwards: bool
    mass: float
    length: float
    seed: int


@dataclass(frozen=True)
class Case:
    """A mechanism and the sizes of its state; the rest is drawn from `seed`."""

    parts: tuple[Part, ...]
    springs: tuple[tuple[int, int, float], ...] = ()
    torsion: tuple[tuple[int, float], ...] = ()
    closing: str = ""
    bent: float = 0.0
    gap: float = 0.0
    angle: float = 1.0
    drift: float = 0.0
    speed: float = 1.0
    seed: int = 0
    keys: tuple[str, ...] = KEYS
    free: bool = False


def powers(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers whose logarithms are evenly spread; 1 is the simplest."""
    return st.integers(int(10 * low), int(10 * high)).map(lambda e: 10.0 ** (e / 10))


seeds = st.integers(0, 2**16)
masses, lengths, stiffness = powers(-9, 9), powers(-6, 6), powers(0, 12)
gaps = st.sampled_from([0.0, 0.0, 0.0, 1e-6, 0.1])
common = {
    "angle": st.sampled_from([1.0, 1.0, 1e3, 1e8]),
    "drift": st.sampled_from([0.0, 1e-12, -1e-8, 1e-3, -0.5, 1.0]),
    "speed": powers(-3, 3),
    "seed": seeds,
    "free": st.sampled_from([False, False, True]),
    "keys": st.sampled_from(KEYS[1:]).map(lambda key: ("spatial", key)),
}


@st.composite
def trees(draw: st.DrawFn, most: int = 6) -> Case:
    """Trees of any joint kinds, on springs or not."""
    n = draw(st.integers(1, most))
    kinds = st.sampled_from(list(KINDS))
    parts = tuple(
        Part(draw(kinds), draw(st.integers(0, k)), draw(st.booleans()), draw(masses), draw(lengths), draw(seeds))
        for k in range(n)
    )
    ends = st.tuples(st.integers(0, n), st.integers(0, n), stiffness).filter(lambda s: s[0] != s[1])
    springs = tuple(draw(st.lists(ends, max_size=2)))
    torsion = tuple(draw(st.lists(st.tuples(st.integers(1, n), stiffness), max_size=1)))
    return Case(parts, springs, torsion, **{name: draw(s) for name, s in common.items()})


@st.composite
def rings(draw: st.DrawFn) -> Case:
    """Chains in space, closed by a joint of any kind that leaves them a freedom."""
    kinds = ["revolute", "universal", "spherical", "cylindrical", "free"]
    names = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=4))
    freedoms = sum(KINDS[name](np.random.default_rng(0)).kind.nv for name in names)
    closings = [k for k in KINDS if k != "free" and freedoms > 6 - KINDS[k](np.random.default_rng(0)).kind.nv]
    if not closings:
        names, closings = [*names, "free"], [k for k in KINDS if k not in ("free", "rigid")]
    parts = tuple(Part(name, k, False, draw(masses), draw(lengths), draw(seeds)) for k, name in enumerate(names))
    closing = draw(st.sampled_from(closings))
    return Case(parts, (), (), closing, gap=draw(gaps), **{name: draw(s) for name, s in common.items()})


@st.composite
def linkages(draw: st.DrawFn) -> Case:
    """Four-bar linkages and slider-cranks, some of them nearly straight."""
    kinds = draw(st.sampled_from([("revolute", "revolute", "revolute"), ("revolute", "revolute", "prismatic")]))
    size = draw(lengths)
    parts = tuple(
        Part(kind, near, False, draw(masses), size * draw(powers(-1, 1)), draw(seeds))
        for kind, near in zip(kinds, (0, 1, 0), strict=True)
    )
    bent = draw(st.one_of(st.just(1.0), st.integers(3, 12).map(lambda e: 10.0**-e)))
    closing = draw(st.sampled_from(list(PLANAR)))
    w = Case(parts, (), (), closing, bent, draw(gaps), **{name: draw(s) for name, s in common.items()})
    return replace(w, keys=tuple(dict.fromkeys((*w.keys, "points"))))  # planar, all of them


# Mechanisms.


def built(w: Case) -> tuple[cd.Model, np.ndarray]:
    """The model and a configuration; what `build` or `assemble` rejects raises a `CardanError`."""
    model, q = _linkage(w) if w.bent else _tree_or_ring(w)
    for link in model.tree.links:
        q[link.q] += w.gap * np.array([unit == "rad" for unit in link.kind.q_units])
    return model, q


def _tree_or_ring(w: Case) -> tuple[cd.Model, np.ndarray]:
    m = _chain(w)
    if not w.closing:
        model = m.build()
        return model, _configuration(w, model)
    open_model = m.build()
    q = _configuration(w, open_model)
    unit = q.copy()
    for at in open_model.quaternions:
        unit[at] /= np.linalg.norm(unit[at])
    rng = np.random.default_rng(w.seed + 1)
    last = w.parts[-1]
    tip = cd.Pose(last.length * rng.uniform(-0.5, 0.5, 3), random_rotation(rng))
    there = cd.body_poses(open_model, unit)[-1]
    for link in open_model.tree.links:
        m._joints[f"j{link.joint + 1}"] = replace(m._joints[f"j{link.joint + 1}"], start=unit[link.q])
    at = cd.Pose(there[:3, :3] @ tip.position + there[:3, 3], there[:3, :3] @ tip.rotation)
    m.joint("close", KINDS[w.closing](rng), m.ground, f"b{len(w.parts)}", at=at, child_at=tip)
    return m.build(cut=["close"]), q


def _chain(w: Case) -> cd.Mechanism:
    rng = np.random.default_rng(w.seed)
    m = cd.Mechanism("random", gravity=rng.uniform(-10, 10, 3))
    names, size = [m.ground], [w.parts[0].length]
    for k, part in enumerate(w.parts, start=1):
        rng = np.random.default_rng(part.seed)
        inertia = 0.1 * part.mass * part.length**2 * random_inertia(rng)
        names.append(m.body(f"b{k}", mass=part.mass, com=part.length * rng.uniform(-0.5, 0.5, 3), inertia=inertia))
        size.append(part.length)
        near = cd.Pose(size[part.near] * rng.uniform(-0.5, 0.5, 3), random_rotation(rng))
        far = cd.Pose(part.length * rng.uniform(-0.5, 0.5, 3), random_rotation(rng))
        kind = KINDS[part.kind](rng)
        if isinstance(kind, cd.Screw):
            kind = cd.Screw(kind.axis, kind.pitch if w.free else part.length * kind.pitch)
        ends, at = (names[part.near], names[k]), (near, far)
        ends, at = (ends[::-1], at[::-1]) if part.backwards else (ends, at)
        m.joint(f"j{k}", kind, *ends, at=at[0], child_at=at[1])
    for k, (a, b, c) in enumerate(w.springs):
        place = [size[i] * rng.uniform(-0.5, 0.5, 3) for i in (a, b)]
        m.spring(f"s{k}", names[a], names[b], stiffness=c, length=max(size[a], size[b]), at1=place[0], at2=place[1])
    for k, c in w.torsion:
        if w.parts[k - 1].kind not in ("rigid", "spherical", "free"):
            m.torsion("t", f"j{k}", stiffness=c, rest=0.1)
    return m


def _configuration(w: Case, model: cd.Model) -> np.ndarray:
    """Angles of the size asked for, shifts of the bodies' own lengths, quaternions off unit length."""
    rng = np.random.default_rng([w.seed, 1])
    q = np.zeros(model.nq)
    for link in model.tree.links:
        part = w.parts[link.joint]
        for k, unit in zip(range(link.q.start, link.q.stop), link.kind.q_units, strict=True):
            q[k] = rng.uniform(-1, 1) * {"m": part.length, "rad": w.angle * np.pi, "1": 1.0}[unit]
    for at in model.quaternions:
        q[at] *= (1 + w.drift) / np.linalg.norm(q[at])
    return q


def _linkage(w: Case) -> tuple[cd.Model, np.ndarray]:
    """Crank, coupler, and rocker or slider, assembled; `bent` is the angle between coupler and third body, rad."""
    rng = np.random.default_rng(w.seed)
    m = cd.Mechanism("linkage", gravity=(*rng.uniform(-10, 10, 2), 0))
    a, b, c = (part.length for part in w.parts)
    slides = w.parts[2].kind == "prismatic"
    for name, part in zip(("crank", "coupler", "third"), w.parts, strict=True):
        x = part.length
        m.body(name, mass=part.mass, com=(x / 2, 0, 0), inertia=part.mass * x**2 / 12 * np.array([0.3, 1, 1]))
    first, second = rng.uniform(-np.pi, np.pi, 2)
    B = a * np.array([np.cos(first), np.sin(first)])
    C = B + b * np.array([np.cos(second), np.sin(second)])
    third = second + w.bent + (np.pi / 2 if slides else 0.0)
    along = np.array([np.cos(third), np.sin(third)])
    hinge, turns = PLANAR["revolute"], 2 * np.pi * round(w.angle / 2 / np.pi)
    q = [first + turns, second - first - turns, third]
    m.joint("A", hinge, m.ground, "crank", start=q[0])
    m.joint("B", hinge, "crank", "coupler", at=(a, 0, 0), start=q[1])
    if slides:
        D, q[2] = C - 0.3 * c * along, 0.3 * c
        turned = cd.Pose((*D, 0), [[along[0], -along[1], 0], [along[1], along[0], 0], [0, 0, 1]])
        m.joint("D", cd.Prismatic(axis=(1, 0, 0)), m.ground, "third", at=turned, start=q[2])
        m.joint("C", PLANAR[w.closing], "coupler", "third", at=(b, 0, 0))
    else:
        m.joint("D", hinge, m.ground, "third", at=(*(C - c * along), 0), start=q[2])
        m.joint("C", PLANAR[w.closing], "coupler", "third", at=(b, 0, 0), child_at=(c, 0, 0))
    model = m.build(cut=["C"])
    return model, np.array(q)


def freed(w: Case, plain: cd.Model) -> cd.Model:
    """The same mechanism as free-parameter values of one whose masses and lengths are all 1."""
    usual, _ = built(replace(w, parts=tuple(replace(part, mass=1.0, length=1.0) for part in w.parts)))
    values: dict[str, Any] = {}
    for body in plain.bodies:
        values |= {f"{body.name}.{what}": getattr(body, what) for what in ("mass", "com", "inertia")}
    for joint in plain.joints:
        values |= {f"{joint.name}.at": joint.at.position, f"{joint.name}.child_at": joint.child_at.position}
    for force in plain.forces:
        names = ("stiffness", "length", "at1", "at2") if "at1" in force.numbers else ("stiffness",)
        values |= {f"{force.name}.{what}": np.squeeze(force.numbers[what]) for what in names}
    return usual.free(*values).at(values)
