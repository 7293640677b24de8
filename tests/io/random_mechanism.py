"""Random mechanisms with everything that the builder has: every joint kind either way round, loops, forces, data.

`mechanisms` draws them; all numbers are generic, so that nothing agrees by chance.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import cardan as cd
from cardan.model.joint import TABLE

from ..pen import Pen
from ..trees import KINDS, add_body, random_pose

NAMES = ("{}", "{} of it", "é {}", "{}_1", "{0} / {0}", "world {}")
ONE = ("revolute", "prismatic")


@st.composite
def mechanisms(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> cd.Mechanism:
    """A mechanism; `kinds` are those of its tree."""
    return _Maker(Pen(draw), kinds).make()


class _Maker:
    """One mechanism as it grows."""

    def __init__(self, pen: Pen, kinds: tuple[str, ...]) -> None:
        self.pen, self.kinds = pen, kinds
        self.rng = np.random.default_rng(pen.whole(0, 999))
        self.m = cd.Mechanism("random", gravity=self.rng.uniform(-9, 9, 3) if pen.some(50) else (0, 0, -9.81))
        self.joints: list[tuple[str, str]] = []

    def make(self) -> cd.Mechanism:
        pen, m = self.pen, self.m
        bodies = [m.ground]
        for k in range(pen.whole(1, 5)):
            bodies.append(add_body(m, pen.pick(*NAMES).format(f"b{k}"), self.rng))
            self._joint(bodies[pen.whole(0, k)], bodies[-1])
        if len(bodies) > 2 and pen.some(25):
            self._loop(pen.pick(*bodies[:-1]), bodies[-1])
        if pen.some(40):
            m.frame(pen.pick(*NAMES).format("tool"), pen.pick(*bodies), at=random_pose(self.rng))
        self._forces(bodies)
        self._couplings()
        if pen.some(20):
            m.state("first", self._coordinates(), {}, time=0.5)
        if pen.some(20):
            m.actuator("motor", pen.pick(*self.joints)[0], gear=2.0, gain=3.0, control=(-1, 1)) if self.joints else None
        return m

    def _joint(self, near: str, far: str) -> None:
        pen, rng = self.pen, self.rng
        kind = pen.pick(*self.kinds)
        nv, nq, one = TABLE[kind].nv if kind in TABLE else 1, TABLE[kind].nq if kind in TABLE else 1, kind in ONE
        ends = (far, near) if pen.some(30) else (near, far)
        given: dict[str, object] = {}
        if pen.some(20) and nv:
            given["armature"] = rng.uniform(0.1, 1) if pen.some(50) else rng.uniform(0.1, 1, nv)
        if pen.some(20) and nv and nq == nv:
            given["start"] = rng.uniform(-1, 1, nq) if nq > 1 else rng.uniform(-1, 1)
        if pen.some(30) and nv:
            limits = {"lower": -rng.uniform(), "upper": rng.uniform()} if pen.some(60) and one else {}
            given["data"] = cd.JointData(
                **limits, effort=pen.pick(None, 7.0), velocity=pen.pick(None, 3.0),
                damping=pen.pick(0.0, 0.3), friction=pen.pick(0.0, 0.2),
            )  # fmt: skip
        placed = {
            "at": random_pose(rng) if pen.some(80) else cd.Pose(),
            "child_at": random_pose(rng) if pen.some(60) else cd.Pose(),
        }
        name = pen.pick(*NAMES).format(f"{kind} {len(self.m.joints)}")
        self.m.joint(name, KINDS[kind](rng), *ends, **placed, **given)
        if nv:
            self.joints.append((name, kind))

    def _loop(self, one: str, other: str) -> None:
        kind = self.pen.pick("spherical", "revolute", "rigid", "universal", "prismatic", "planar", "cylindrical")
        self.m.joint(
            "loop", KINDS[kind](self.rng), one, other, at=random_pose(self.rng), child_at=random_pose(self.rng)
        )

    def _forces(self, bodies: list[str]) -> None:
        pen, m, rng = self.pen, self.m, self.rng
        if len(bodies) > 1 and pen.some(30):
            m.spring("spring", bodies[0], bodies[-1], stiffness=3.0, length=0.4, damping=0.1)
        if pen.some(20):
            m.wrench("push", bodies[-1], rng.uniform(-1, 1, 6), axes=pen.pick("ground", "body"))
        if pen.some(20):
            m.bushing("bush", bodies[0], bodies[-1], stiffness=[1, 2, 3, 4, 5, 6])
        for name, kind in self.joints:
            if pen.some(25) and kind not in ("free", "spherical"):
                m.torsion(f"torsion {name}", name, stiffness=pen.pick(0.0, 2.0), rest=pen.pick(0.0, 0.3), damping=0.5)
            if pen.some(10):
                m.friction(f"friction {name}", name, viscous=0.3, coulomb=pen.pick(0.0, 0.2))
            if pen.some(10) and kind in ONE:
                m.drive(f"drive {name}", name, 1.5)

    def _couplings(self) -> None:
        pen, singles = self.pen, [name for name, kind in self.joints if kind in (*ONE, "screw")]
        if len(singles) > 1 and pen.some(40):
            self.m.couple("gear", {singles[0]: 2.0, singles[1]: -1.0}, offset=pen.pick(0.0, 0.7))
        if len(singles) > 2 and pen.some(20):
            self.m.couple("sum", {name: 1.0 for name in singles[:3]})
        if singles and pen.some(20):
            self.m.motion("moved", singles[-1], pen.pick(0.3, lambda t: 2 * t))

    def _coordinates(self) -> dict[str, np.ndarray]:
        return {name: self.rng.uniform(-1, 1, 1) for name, kind in self.joints if kind in ONE}
