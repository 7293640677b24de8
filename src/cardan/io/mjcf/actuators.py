"""Actuators as data, and what they add to their joints: rotor inertia and damping, both times the gear squared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.errors import nearest
from cardan.io.mjcf.defaults import ACTUATORS, MAIN, Defaults
from cardan.io.mjcf.joints import SCALAR, JointItem, Joints
from cardan.io.mjcf.laws import Law
from cardan.io.mjcf.text import Item

SHARED = (
    "actdim", "actearly", "actlimited", "actrange", "armature", "biasprm", "biastype", "body", "class", "cranklength",
    "cranksite", "ctrllimited", "ctrlrange", "damping", "delay", "dynprm", "dyntype", "ffrange", "forcelimited",
    "forcerange", "gainprm", "gaintype", "gear", "group", "inheritrange", "input", "interp", "joint", "jointinparent",
    "lengthrange", "name", "nsample", "refsite", "site", "slidersite", "tendon", "user", "velrange",
)  # fmt: skip
OWN: dict[str, tuple[str, ...]] = {
    "position": ("kp", "kv", "dampratio", "timeconst"),
    "velocity": ("kv",),
    "motor": (),
    "general": (),
}
"""Kinds whose force is `gain u + bias . (1, length, speed)`, and the attributes they add."""


class Actuators:
    """Reads the actuators of a file; their rotors and dampers go to the joints."""

    def __init__(self, joints: Joints, autolimits: bool, flags: dict[str, bool], lose: Callable[[str], None]) -> None:
        self.joints, self.autolimits, self.flags, self.lose = joints, autolimits, flags, lose
        self.all: list[tuple[str, str, dict[str, Any]]] = []
        self.names: dict[str, Item] = {}

    def add(self, given: Item, defaults: Defaults) -> None:
        """Take up one actuator."""
        if given.tag not in ACTUATORS:
            raise given.error(f"<actuator> has no element <{given.tag}> in MJCF{nearest(given.tag, ACTUATORS)}")
        item = defaults.of(given)
        name = item.get("name") or f"{item.tag}_{len(self.names)}"
        item.owner = f"actuator {name!r}"
        if name in self.names:
            raise item.error("the name is given to two actuators; their names must differ")
        self.names[name] = item
        if given.tag in OWN:
            given.check((*SHARED, *OWN[given.tag]))
        joint = item.get("joint") or item.get("jointinparent")
        if not joint:
            self.lose(f"{item.owner} ({item.tag}), which acts on no joint but on a {self._target(item)}")
            return
        if joint not in self.joints.all:
            raise item.error(f"its joint {joint!r} is not a joint of this file{nearest(joint, self.joints.all)}")
        law = defaults.laws.get(given.get("class") or MAIN, Law()).after(given)
        self._on_joint(item, name, self.joints.all[joint], law)

    def _target(self, item: Item) -> str:
        return next((what for what in ("tendon", "site", "body", "cranksite") if item.has(what)), "thing not named")

    def _on_joint(self, item: Item, name: str, joint: JointItem, law: Law) -> None:
        gear = item.up_to("gear", (1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        rotor = item.number_or("armature", 0.0) if item.has("armature") else 0.0
        damping = item.up_to("damping", (0.0, 0.0, 0.0))
        if (rotor or damping.any()) and joint.type not in SCALAR:
            self.lose(f"{item.owner}: its armature and damping on {joint.item.owner}, which is {joint.type}")
        else:
            joint.armature += rotor * float(gear[0]) ** 2
            if self.flags["damper"]:
                joint.damping = joint.damping + damping * float(gear[0]) ** 2
        if law.affine is None:
            self.lose(f"{item.owner} ({item.tag}): its law, which {law.why_not}")
            return
        gain, bias = law.affine
        if self._is_turned(item, joint, gear):
            return
        along = gear[:1] if joint.type in SCALAR else gear[:3] if joint.type == "ball" else gear[[3, 4, 5, 0, 1, 2]]
        control, force = (self._range(item, word) for word in ("ctrl", "force"))
        own = {"kind": item.tag, "gear": along, "gain": gain, "bias": bias, "control": control, "force": force}
        self.all.append((name, joint.name, own))
        if bias.any():
            self.lose(
                f"{item.owner} ({item.tag}): its servo law on joint {joint.name!r}, data only; tau is yours to give"
            )

    def _is_turned(self, item: Item, joint: JointItem, gear: np.ndarray) -> bool:
        """Whether it pulls along axes of the parent or the world, which turn in those of the joint's rates; lost."""
        turning = {"ball": gear[:3], "free": gear[3:]}.get(joint.type, gear[:0])
        shifting = gear[:3] if joint.type == "free" else gear[:0]
        turned = shifting.any() or (turning.any() and not item.has("joint"))
        if turned:
            self.lose(
                f"{item.owner} ({item.tag}): its force on {joint.item.owner} ({joint.type}) along axes that do not turn "
                "with the body"
            )
        return bool(turned)

    def _range(self, item: Item, word: str) -> tuple[float, float] | None:
        said = item.choice(f"{word}limited", ("true", "false", "auto"), "auto")
        if said == "false" or not item.has(f"{word}range") or (said == "auto" and not self.autolimits):
            return None
        lower, upper = item.numbers(f"{word}range", 2)
        return float(lower), float(upper)

