"""Defaults classes: attributes of elements that do not give their own, and the laws of actuators.

A class inherits from the one it is nested in. An element's class is its own `class`, else the nearest `childclass`
above it, else the top one, called main. All kinds of actuators share one set of defaults.

The law of an actuator is built up from its classes and its own element, one after the other, as in MuJoCo 4. `general`
changes the numbers that it gives of the law before it, whatever element that was. `motor` is a law by itself.
`position` and `velocity` take the numbers that they do not give from the nearest class above whose last actuator is of
the same kind, or a `general`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cardan.errors import nearest
from cardan.io.mjcf.item import Item, overlaid
from cardan.io.mjcf.vocabulary import LAWS, ROTATIONS, of_default

GENERAL = ("dyntype", "gaintype", "biastype", "gainprm", "biasprm")
SERVOS = ("position", "velocity")
SERVO = ("none", "fixed", "affine")


DYNAMICS = {"none": "", "integrator": "integrator", "filter": "filter", "filterexact": "filter"}
"""Dynamics of activations that are read, and what they are here: a filter is one however it is integrated."""


@dataclass(frozen=True)
class ActuatorLaw:
    """Force `gain . (1, length, speed) u + bias . (1, length, speed)` of an element `kind`, with the types of dynamics.

    `time` is the time constant of an activation, s; `odd` says why it is not such a law.
    """

    kind: str = ""
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    types: tuple[str, str, str] = ("none", "fixed", "none")
    odd: str = ""
    slopes: tuple[float, float] = (0.0, 0.0)
    time: float = 1.0

    @property
    def dynamics(self) -> str:
        """How its activation follows the control; empty if it has none."""
        return DYNAMICS[self.types[0]]

    @property
    def affine(self) -> tuple[float, np.ndarray] | None:
        """Gain and bias, if it is affine in control, length and speed."""
        return None if self.why_not else (self.gain, np.array(self.bias) * (self.types[2] == "affine"))

    @property
    def why_not(self) -> str:
        """Why it is not affine, if it is not."""
        if self.odd:
            return self.odd
        dynamics, gain, bias = self.types
        if dynamics not in DYNAMICS:
            return f"has an activation with the dynamics {dynamics!r}"
        if gain not in ("fixed", "affine") or bias not in ("none", "affine"):
            return "is not affine in control, length and speed"
        if self.dynamics == "filter" and self.time <= 0:
            return "is a filter without a time constant"
        if self.types[2] == "affine" and self.bias[2] > 0 and self.gain == -self.bias[1]:
            return "has a damping ratio, which MuJoCo takes 'biasprm' for if it begins as that of a servo"
        return ""

    def general(self, item: Item) -> ActuatorLaw:
        """The law with the numbers of a `general` in place of its own."""
        first, second, third = (item.get(name, old) for name, old in zip(GENERAL[:3], self.types, strict=True))
        gains = item.several("gainprm", 1, 10)[:3] if item.has("gainprm") else ()
        gain, *slopes = (*map(float, gains), *(self.gain, *self.slopes)[len(gains) :])
        time = float(item.several("dynprm", 1, 10)[0]) if item.has("dynprm") else self.time
        given = item.several("biasprm", 1, 10)[:3] if item.has("biasprm") else ()
        a, b, c = (*map(float, given), *self.bias[len(given) :])
        return replace(
            self, kind="general", gain=gain, bias=(a, b, c), types=(first, second, third),
            slopes=(slopes[0], slopes[1]), time=time,
        )  # fmt: skip

    def servo(self, item: Item) -> ActuatorLaw:
        """The law of a `position` or `velocity`, with the numbers of this one where it does not give them."""
        odd = self.odd
        if self.types[1] != "fixed" or self.types[2] not in ("none", "affine"):
            odd = odd or f"mixes <{item.tag}> with a <general> of its class that is of another type"
        if item.tag == "velocity":
            kv = item.number_or("kv", self.gain)
            return ActuatorLaw(item.tag, kv, (0.0, 0.0, -kv), SERVO, "" if item.has("kv") else odd)
        kp, kv = item.number_or("kp", self.gain), item.number_or("kv", -self.bias[2])
        odd = "has 'dampratio'" if item.has("dampratio") else odd
        if item.tag == "intvelocity":
            return ActuatorLaw(item.tag, kp, (0.0, -kp, -kv), ("integrator", *SERVO[1:]), odd)
        time = item.number_or("timeconst", 0.0)
        if not time and self.types[0] != "none":
            odd = odd or "takes the dynamics of its activation from its class"
        dynamics = "filterexact" if time else "none"
        return ActuatorLaw(item.tag, kp, (0.0, -kp, -kv), (dynamics, *SERVO[1:]), odd, time=time)

    def damper(self, item: Item) -> ActuatorLaw:
        """The law of a `damper`, whose control is its damping."""
        return ActuatorLaw(item.tag, 0.0, types=("none", "affine", "none"), slopes=(0.0, -item.number_or("kv", 1.0)))

    def cylinder(self, item: Item) -> ActuatorLaw:
        """The law of a `cylinder`, whose pressure follows its control."""
        area = item.number_or("area", 1.0)
        if item.has("diameter"):
            area = np.pi / 4 * item.number_or("diameter", 0.0) ** 2
        a, b, c = map(float, item.up_to("bias", (0.0, 0.0, 0.0)))
        time = item.number_or("timeconst", 1.0)
        return ActuatorLaw(item.tag, float(area), (a, b, c), ("filter", "fixed", "affine"), time=time)


ALONE = {"damper": ActuatorLaw.damper, "cylinder": ActuatorLaw.cylinder, "intvelocity": ActuatorLaw.servo}
"""Laws of elements that are read where no class has numbers for them."""
MAIN = "main"
ACTUATORS = (
    "general", "motor", "position", "velocity", "intvelocity", "orientation", "pid", "damper", "cylinder", "muscle",
    "adhesion", "dcmotor", "plugin",
)  # fmt: skip
ELEMENTS = (
    "default", "mesh", "texture", "material", "joint", "geom", "site", "camera", "light", "pair", "equality", "tendon",
    *ACTUATORS,
)  # fmt: skip
CLASSES, SETTINGS = 2000, 100
"""Most classes of a file, and most attributes that a class sets for one kind of element."""


class Defaults:
    """Every class: for each kind of element the attributes it sets, and the law of actuators."""

    def __init__(self, top: Item) -> None:
        self.classes: dict[str, dict[str, dict[str, str]]] = {MAIN: {}}
        self.laws: dict[str, ActuatorLaw] = {MAIN: ActuatorLaw()}
        self.above: dict[str, str] = {}
        ahead = [(item, "") for item in reversed(top.children) if item.tag == "default"]
        while ahead:
            item, parent = ahead.pop()
            name = self._name(item, parent)
            inherited = self.classes[parent] if parent else {}
            # inherited attributes are shared until an element adds to them
            own = self.classes.setdefault(name, dict(inherited))
            if len(self.classes) > CLASSES:
                raise item.error(f"the file has more than {CLASSES} defaults classes; no more are read")
            self.laws.setdefault(name, self.laws[parent] if parent else ActuatorLaw())
            self.above[name] = parent
            inner, seen = [], set()
            for child in item.children:
                if child.tag == "default":
                    inner.append((child, name))
                elif child.tag not in ELEMENTS:
                    raise child.error(f"<default> has no element <{child.tag}> in MJCF{nearest(child.tag, ELEMENTS)}")
                elif child.tag in seen:
                    raise child.error(f"<default> has <{child.tag}> twice; a class gives it once")
                else:
                    seen.add(child.tag)
                    known, kind = of_default(child.tag), _kind(child.tag)
                    if known is not None:
                        child.check(known, ())
                    own[kind] = overlaid(_replaced(own.get(kind, {}), child), child.own)
                    if kind == "actuator":
                        self.laws[name] = self.law(child, name)
                    if len(own[kind]) > SETTINGS:
                        raise child.error(f"its class sets more than {SETTINGS} attributes of <{child.tag}>")
            ahead += reversed(inner)

    def _name(self, item: Item, parent: str) -> str:
        item.check(("class",))
        name = item.get("class")
        if not parent:
            if getattr(item.node, "root", False):  # of an attached model
                return name
            if name not in ("", MAIN):
                raise item.error(f"the class of a top-level <default> is {MAIN!r}, got {name!r}; nest it in one")
            return MAIN
        if not name:
            raise item.error("it has no attribute 'class'; a nested <default> needs one")
        if name in self.classes:
            raise item.error(f"class {name!r} is defined twice; the names of classes must differ")
        return name

    def of(self, item: Item, childclass: str = "", owner: str = "") -> Item:
        """The element with the attributes of its class added."""
        name = item.get("class") or childclass or MAIN
        self.check(item, "class", name)
        return Item(item.node, owner, self.values(name, item.tag))

    def values(self, name: str, tag: str) -> Mapping[str, str]:
        """Attributes that a class sets for a kind of element."""
        return self.classes[name].get(_kind(tag), {})

    def law(self, item: Item, name: str) -> ActuatorLaw:
        """The law of an actuator of a class; the item is without its defaults."""
        kind = item.tag
        if kind == "general":
            return self.laws[name].general(item)
        if kind in ALONE:
            above = self.laws[name].kind
            odd = f"may take numbers from the <{above}> of its class" if above and above != item.tag else ""
            inherited = {*self.values(name, kind)} & {*LAWS[kind], *LAWS["general"]}
            odd = odd or (f"may take numbers from its class {name!r}" if inherited else "")
            law = ALONE[kind](ActuatorLaw(), item)
            return replace(law, odd=law.odd or odd)
        if kind not in SERVOS:
            return ActuatorLaw(kind, odd="" if kind == "motor" else "is not affine in control, length and speed")
        while name and self.laws[name].kind not in (kind, "general"):
            name = self.above.get(name, "")
        return (self.laws[name] if name else ActuatorLaw()).servo(item)

    def check(self, item: Item, attribute: str, name: str) -> None:
        """Reject an unknown class."""
        if name not in self.classes:
            raise item.error(f"{attribute} {name!r} is not a defaults class{nearest(name, self.classes)}")


def _replaced(inherited: Mapping[str, str], child: Item) -> Mapping[str, str]:
    """Inherited attributes, without the rotation if the class has its own, in any form."""
    turned = [name for name in ROTATIONS if name in child.own]
    if len(turned) > 1:
        raise child.error(f"it gives its rotation as {' and as '.join(map(repr, turned))}; give it once")
    return {name: value for name, value in inherited.items() if not (turned and name in ROTATIONS)}


def _kind(tag: str) -> str:
    """The name under which classes keep the attributes of an element."""
    shared = {"connect": "equality", "weld": "equality", "fixed": "tendon", "spatial": "tendon"}
    return "actuator" if tag in ACTUATORS else shared.get(tag, tag)
