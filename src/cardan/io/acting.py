"""What a file says of joints besides their geometry, made to act: damping, dry friction, limits, actuators.

The data of a joint (`JointData`) becomes force elements, unless the file has some that make it act already. A note says
what is in force; what is not is in `model.losses`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, pi
from typing import Any, Literal

from cardan.errors import InputError, nearest
from cardan.io.xml_element import free_name
from cardan.model.actuator import ACTUATOR
from cardan.model.body import Joint
from cardan.model.builder import Mechanism
from cardan.model.idle_data import acting_data
from cardan.model.pose_stop import has_quaternion
from cardan.model.values import counted

LimitsWord = Literal["hard", "spring", "ignore"]
FrictionWord = Literal["stick", "smooth", "ignore"]
LIMITS, FRICTIONS = ("hard", "spring", "ignore"), ("stick", "smooth", "ignore")

GIVES = {"rad": 0.01, "m": 0.001}
"""How far a compliant stop gives way under the largest effort of its joint, rad or m."""
EFFORT = 100.0
"""The largest effort of a joint whose file gives none, N m or N."""
SETTLES = 0.01
"""Damping of a compliant stop over its stiffness, s."""

HOW = {
    ("damping", ""): "acts, as the file gives it (damping=False leaves it out)",
    ("friction", "stick"): "acts, and sticks",
    ("friction", "smooth"): "acts, smoothed over a speed: it creeps",
    ("limits", "hard"): "act as hard stops without restitution",
    ("limits", "spring"): "act as compliant stops",
}


@dataclass(frozen=True)
class Acting:
    """Which data acts: limits as stops, dry friction, damping, and whether actuators drive."""

    limits: LimitsWord = "ignore"
    friction: FrictionWord = "ignore"
    damping: bool = True
    actuators: bool = False

    def __post_init__(self) -> None:
        """Reject other words."""
        for name, words in (("limits", LIMITS), ("friction", FRICTIONS)):
            word = getattr(self, name)
            if word not in words:
                known = ", ".join(map(repr, words))
                raise InputError(f"load: {name} must be one of {known}, got {word!r}{nearest(str(word), words)}")
        for name in ("damping", "actuators"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"load: {name} must be True or False, got {getattr(self, name)!r}")

    def apply(self, mechanism: Mechanism) -> None:
        """Add the elements to a mechanism that was read, and a note for each kind."""
        acts = acting_data(mechanism.forces, mechanism.couplings)
        joints = [
            (joint, {what for what, k in acts if k == j})
            for j, joint in enumerate(mechanism.joints) if joint.kind.nv
        ]  # fmt: skip
        counts = {"damping": 0, "friction": 0, "limits": 0}
        for joint, done in joints:
            damped = self.damping and joint.data.damping > 0 and "damping" not in done
            rubbed = self.friction != "ignore" and joint.data.friction > 0 and "friction" not in done
            if damped or rubbed:
                self._rub(mechanism, joint, joint.data.damping * damped, joint.data.friction * rubbed)
            counts["damping"] += damped
            counts["friction"] += rubbed
            if self.limits != "ignore" and "position" not in done:
                counts["limits"] += self._stop(mechanism, joint)
        for what, count in counts.items():
            if count:
                mechanism.note(f"{what} of {counted(count, 'joint')} {self._how(what)}")
        if any(
            self.friction != "ignore" and joint.data.friction > 0
            for joint, _ in joints
            if joint.kind.nq != joint.kind.nv
        ):
            mechanism.note("friction of ball and free joints is one vector against the motion, not one along each axis")
        driving = {force.name for force in mechanism.forces if force.kind is ACTUATOR}
        driving |= {controller.name for controller in mechanism.controllers}
        for actuator in mechanism.actuators if not self.actuators else ():
            law = "its law with an activation" if actuator.dynamics else "its servo law"
            idle = (
                f"actuator {actuator.name!r} ({actuator.kind}): {law} on joint {actuator.joint!r}, data only; "
                "tau is yours to give, or cd.load(..., actuators=True) makes it act"
            )
            follows = actuator.bias.any() or actuator.slopes.any() or actuator.dynamics
            if follows and actuator.name not in driving and idle not in mechanism.losses:
                mechanism.lose(idle)
        if self.actuators:
            for actuator in mechanism.actuators:
                if actuator.name not in driving:
                    mechanism.actuate(actuator.name)
            if mechanism.actuators:
                names = ", ".join(f"{a.name}.command" for a in mechanism.actuators[:4])
                mechanism.note(
                    f"{counted(len(mechanism.actuators), 'actuator')} drive, by the free numbers {names}"
                    + ", ..." * (len(mechanism.actuators) > 4)
                )

    def _how(self, what: str) -> str:
        """How data acts, as the end of a sentence."""
        return HOW[what, {"limits": self.limits, "friction": self.friction}.get(what, "")]

    def _rub(self, mechanism: Mechanism, joint: Joint, viscous: float, coulomb: float) -> None:
        name = _name(mechanism, joint, "friction" if coulomb else "damping")
        mechanism.friction(
            name, joint.name, viscous=viscous, coulomb=coulomb, stick=bool(coulomb) and self.friction == "stick"
        )

    def _stop(self, mechanism: Mechanism, joint: Joint) -> bool:
        """Add a stop for limits that are finite; whether there are any.

        A joint with one coordinate has a lower and an upper one, a ball joint the largest angle of its rotation.
        """
        ends = {"lower": joint.data.lower, "upper": joint.data.upper}
        given: dict[str, Any] = {name: end for name, end in ends.items() if end is not None and isfinite(end)}
        if not given or given.get("lower", -1.0) == given.get("upper", 1.0):  # equal limits mean that none are given
            return False
        if joint.kind.nv != 1:
            ball = has_quaternion(joint.kind) and joint.kind.nv == 3
            given = {"angle": given["upper"]} if ball and 0 < given.get("upper", 0.0) < pi else {}
        if not given:
            return False
        more: dict[str, Any] = {}
        if self.limits == "spring":
            effort = joint.data.effort
            stiffness = (effort if effort and isfinite(effort) else EFFORT) / GIVES[
                joint.kind.v_units[0].removesuffix("/s")
            ]
            more = {"stiffness": stiffness, "damping": SETTLES * stiffness}
        mechanism.stop(_name(mechanism, joint, "stop"), joint.name, **given, **more)
        return True


def _name(mechanism: Mechanism, joint: Joint, what: str) -> str:
    """A name for an element on a joint that no other element has."""
    elements = (*mechanism.forces, *mechanism.couplings, *mechanism.own_constraints)
    return free_name(f"{joint.name} {what}", {element.name for element in elements})
