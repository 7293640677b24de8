"""Actuators as data, which `io.acting` may make drive.

They add rotor inertia and damping, both times the gear squared, to their joints.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.errors import nearest
from cardan.io.mjcf.defaults import ACTUATORS, MAIN, ActuatorLaw, Defaults
from cardan.io.mjcf.item import Item
from cardan.io.mjcf.joints import SCALAR, JointItem, Joints
from cardan.io.mjcf.vocabulary import LAWS, SHARED, TARGETS


class Actuators:
    """Reads the actuators of a file, and adds their rotors and dampers to the joints."""

    def __init__(self, joints: Joints, flags: dict[str, bool], lose: Callable[[str], None]) -> None:
        self.joints, self.flags, self.lose = joints, flags, lose
        self.all: list[tuple[str, str, dict[str, Any]]] = []
        self.names: dict[str, Item] = {}

    def add(self, given: Item, defaults: Defaults) -> None:
        """Read one actuator."""
        if given.tag not in ACTUATORS:
            raise given.error(f"<actuator> has no element <{given.tag}> in MJCF{nearest(given.tag, ACTUATORS)}")
        item = defaults.of(given)
        name = item.get("name") or f"{item.tag}_{len(self.names)}"
        item.owner = f"actuator {name!r}"
        if name in self.names:
            raise item.error("the name is given to two actuators; their names must differ")
        self.names[name] = item
        if given.tag in LAWS:
            given.check((*SHARED, *LAWS[given.tag]), ())
        targets = [what for what in TARGETS if given.get(what)]
        if not targets and given.tag in LAWS:
            raise given.error('it acts on nothing; name what it drives, such as joint="..."')
        if targets[1:] not in ([], ["cranksite"]):
            raise given.error(f"it acts on a {targets[0]} and on a {targets[1]}; name one of them")
        joint = item.get("joint") or item.get("jointinparent")
        if not joint:
            self.lose(f"{item.owner} ({item.tag}), which acts on no joint but on a {(*targets, 'thing not named')[0]}")
            return
        if joint not in self.joints.all:
            raise item.error(f"its joint {joint!r} is not a joint of this file{nearest(joint, self.joints.all)}")
        law = defaults.law(given, given.get("class") or MAIN)
        self._on_joint(item, name, self.joints.all[joint], law)

    def _on_joint(self, item: Item, name: str, joint: JointItem, law: ActuatorLaw) -> None:
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
        if item.tag == "intvelocity" and not item.has("actrange"):
            raise item.error("it has no 'actrange', the range of the position that it integrates to")
        words = ("ctrl", "force", "act") if law.dynamics else ("ctrl", "force")
        ranges = (self.joints.limits(item, f"{word}limited", f"{word}range") for word in words)
        control, force, *activation = (None if None in ends else ends for ends in ranges)
        own = {"kind": item.tag, "gear": along, "gain": gain, "bias": bias, "control": control, "force": force}
        if any(law.slopes) and law.types[1] == "affine":
            own["slopes"] = law.slopes
        if law.dynamics:
            own |= {"dynamics": law.dynamics, "time": law.time, "activation": activation[0]}
            if item.number_or("actdim", 1.0) > 1:
                self.lose(f"{item.owner} ({item.tag}): its activations beyond the last one ('actdim')")
        self.all.append((name, joint.name, own))
        if item.number_or("inheritrange", 0.0) and control is None:
            self.lose(f"{item.owner} ({item.tag}): its range of control, taken from its joint's by 'inheritrange'")

    def _is_turned(self, item: Item, joint: JointItem, gear: np.ndarray) -> bool:
        """Whether it acts along axes of the parent or the world, not along the joint's rates; that is a loss."""
        turning = {"ball": gear[:3], "free": gear[3:]}.get(joint.type, gear[:0])
        shifting = gear[:3] if joint.type == "free" else gear[:0]
        turned = shifting.any() or (turning.any() and (joint.moved or not item.has("joint")))
        if turned:
            self.lose(
                f"{item.owner} ({item.tag}): its force on {joint.item.owner} ({joint.type}) along axes that do not "
                "turn with the body"
            )
        return bool(turned)
