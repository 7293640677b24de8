"""The law of an actuator, built up from its defaults classes and its own element, one after the other.

`general` changes only the numbers that it gives. `motor`, `position` and `velocity` start a new law; the last two keep
the numbers of a class that has the same element. A `position` or `velocity` over a class with another element follows
rules of MuJoCo's own, and its law is not read.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cardan.io.mjcf.item import Item

GENERAL = ("dyntype", "gaintype", "biastype", "gainprm", "biasprm")
SERVOS = ("position", "velocity")


@dataclass(frozen=True)
class ActuatorLaw:
    """Force `gain u + bias . (1, length, speed)` of an element `kind`; `odd` says why it is not such a law."""

    kind: str = ""
    gain: float = 1.0
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    types: tuple[str, str, str] = ("none", "fixed", "none")
    odd: str = ""

    def after(self, item: Item) -> ActuatorLaw:
        """The law after an element, without that element's defaults."""
        kind = item.tag
        if kind == "general":
            return self._general(item) if any(item.has(name) for name in GENERAL) else self
        if kind == "motor":
            return ActuatorLaw(kind)
        if kind not in SERVOS:
            return ActuatorLaw(kind, odd="is not affine in control, length and speed")
        if self.kind not in ("", "motor", kind):
            return ActuatorLaw(kind, odd=f"mixes <{kind}> with <{self.kind}> of its class")
        old = self if self.kind == kind else ActuatorLaw()
        if kind == "velocity":
            kv = item.number_or("kv", old.gain)
            return ActuatorLaw(kind, kv, (0.0, 0.0, -kv), ("none", "fixed", "affine"))
        kp, kv = item.number_or("kp", old.gain), item.number_or("kv", -old.bias[2])
        odd = next((f"has {name!r}" for name in ("dampratio", "timeconst") if item.has(name)), old.odd)
        return ActuatorLaw(kind, kp, (0.0, -kp, -kv), ("none", "fixed", "affine"), odd)

    def _general(self, item: Item) -> ActuatorLaw:
        first, second, third = (item.get(name, old) for name, old in zip(GENERAL[:3], self.types, strict=True))
        gain = float(item.several("gainprm", 1, 10)[0]) if item.has("gainprm") else self.gain
        given = item.several("biasprm", 1, 10)[:3] if item.has("biasprm") else ()
        a, b, c = (*map(float, given), *self.bias[len(given) :])
        return replace(self, kind="general", gain=gain, bias=(a, b, c), types=(first, second, third))

    @property
    def affine(self) -> tuple[float, np.ndarray] | None:
        """Gain and bias, if it is affine in control, length and speed."""
        return None if self.why_not else (self.gain, np.array(self.bias) * (self.types[2] == "affine"))

    @property
    def why_not(self) -> str:
        """Why it is not affine, if it is not."""
        if self.odd:
            return self.odd
        if self.types not in (("none", "fixed", "none"), ("none", "fixed", "affine")):
            return "is not affine in control, length and speed"
        if self.types[2] == "affine" and self.bias[2] > 0 and self.gain == -self.bias[1]:
            return "has a damping ratio, which MuJoCo takes 'biasprm' for if it begins as that of a servo"
        return ""
