"""Random mechanisms with everything that the builder has: every joint kind either way round, loops, forces, data.

`mechanisms` draws them; all numbers are generic, so that nothing agrees by chance.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

import cardan as cd
from cardan.model.joint import TABLE

from ..random_values import RandomValues
from ..trees import KINDS, add_body, random_pose

NAMES = ("{}", "{} of it", "é {}", "{}_1", "{0} / {0}", "world {}")
ONE = ("revolute", "prismatic")


@st.composite
def mechanisms(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> cd.Mechanism:
    """A mechanism; `kinds` are those of its tree."""
    return _Maker(RandomValues(draw), kinds).make()


class _Maker:
    """One mechanism as it grows."""

    def __init__(self, dice: RandomValues, kinds: tuple[str, ...]) -> None:
        self.dice, self.kinds = dice, kinds
        self.rng = np.random.default_rng(dice.whole(0, 999))
        self.m = cd.Mechanism("random", gravity=self.rng.uniform(-9, 9, 3) if dice.some(50) else (0, 0, -9.81))
        self.joints: list[tuple[str, str]] = []

    def make(self) -> cd.Mechanism:
        dice, m = self.dice, self.m
        bodies = [m.ground]
        for k in range(dice.whole(1, 5)):
            bodies.append(add_body(m, dice.pick(*NAMES).format(f"b{k}"), self.rng))
            self._joint(bodies[dice.whole(0, k)], bodies[-1])
        if len(bodies) > 2 and dice.some(25):
            self._loop(dice.pick(*bodies[:-1]), bodies[-1])
        if dice.some(40):
            m.frame(dice.pick(*NAMES).format("tool"), dice.pick(*bodies), at=random_pose(self.rng))
        self._forces(bodies)
        self._couplings()
        if dice.some(20):
            m.state("first", self._coordinates(), {}, time=0.5)
        if dice.some(20):
            m.actuator(
                "motor", dice.pick(*self.joints)[0], gear=2.0, gain=3.0, control=(-1, 1)
            ) if self.joints else None
        return m

    def _joint(self, near: str, far: str) -> None:
        dice, rng = self.dice, self.rng
        kind = dice.pick(*self.kinds)
        nv, nq, one = TABLE[kind].nv if kind in TABLE else 1, TABLE[kind].nq if kind in TABLE else 1, kind in ONE
        ends = (far, near) if dice.some(30) else (near, far)
        given: dict[str, object] = {}
        if dice.some(20) and nv:
            given["armature"] = rng.uniform(0.1, 1) if dice.some(50) else rng.uniform(0.1, 1, nv)
        if dice.some(20) and nv and nq == nv:
            given["start"] = rng.uniform(-1, 1, nq) if nq > 1 else rng.uniform(-1, 1)
        if dice.some(30) and nv:
            limits = {"lower": -rng.uniform(), "upper": rng.uniform()} if dice.some(60) and one else {}
            given["data"] = cd.JointData(
                **limits, effort=dice.pick(None, 7.0), velocity=dice.pick(None, 3.0),
                damping=dice.pick(0.0, 0.3), friction=dice.pick(0.0, 0.2),
            )  # fmt: skip
        placed = {
            "at": random_pose(rng) if dice.some(80) else cd.Pose(),
            "child_at": random_pose(rng) if dice.some(60) else cd.Pose(),
        }
        name = dice.pick(*NAMES).format(f"{kind} {len(self.m.joints)}")
        self.m.joint(name, KINDS[kind](rng), *ends, **placed, **given)
        if nv:
            self.joints.append((name, kind))

    def _loop(self, one: str, other: str) -> None:
        kind = self.dice.pick("spherical", "revolute", "rigid", "universal", "prismatic", "planar", "cylindrical")
        self.m.joint(
            "loop", KINDS[kind](self.rng), one, other, at=random_pose(self.rng), child_at=random_pose(self.rng)
        )

    def _forces(self, bodies: list[str]) -> None:
        dice, m, rng = self.dice, self.m, self.rng
        if len(bodies) > 1 and dice.some(30):
            m.spring("spring", bodies[0], bodies[-1], stiffness=3.0, length=0.4, damping=0.1)
        if dice.some(20):
            m.wrench("push", bodies[-1], rng.uniform(-1, 1, 6), axes=dice.pick("ground", "body"))
        if dice.some(20):
            m.bushing("bush", bodies[0], bodies[-1], stiffness=[1, 2, 3, 4, 5, 6])
        for name, kind in self.joints:
            if dice.some(25) and kind not in ("free", "spherical"):
                m.torsion(f"torsion {name}", name, stiffness=dice.pick(0.0, 2.0), rest=dice.pick(0.0, 0.3), damping=0.5)
            if dice.some(10):
                m.friction(f"friction {name}", name, viscous=0.3, coulomb=dice.pick(0.0, 0.2))
            if dice.some(10) and kind in ONE:
                m.drive(f"drive {name}", name, 1.5)

    def _couplings(self) -> None:
        dice, singles = self.dice, [name for name, kind in self.joints if kind in (*ONE, "screw")]
        if len(singles) > 1 and dice.some(40):
            self.m.couple("gear", {singles[0]: 2.0, singles[1]: -1.0}, offset=dice.pick(0.0, 0.7))
        if len(singles) > 2 and dice.some(20):
            self.m.couple("sum", {name: 1.0 for name in singles[:3]})
        if singles and dice.some(20):
            self.m.motion("moved", singles[-1], dice.pick(0.3, lambda t: 2 * t))

    def _coordinates(self) -> dict[str, np.ndarray]:
        return {name: self.rng.uniform(-1, 1, 1) for name, kind in self.joints if kind in ONE}
