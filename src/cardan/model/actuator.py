"""The actuator that acts: it drives its joint by a command, with the law of `Actuator` (`cardan.model.model`).

    F = (gain + slopes . (l, ldot)) w + bias . (1, l, ldot)      within its range      l = gear . q,  ldot = gear . v
    tau = gear F                                                 w: the command u within its range, or the activation

Without dynamics it is a force element, whose command is a number that may be free, "motor.command": `model.at`, events
and `inputs` of `cd.simulate` give it. With dynamics it is a controller, whose state "motor.activation" is w:

    filter       w' = (u - w) / time        integrator       w' = u, as long as w is within its range
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cardan.algebra.matrix import Matrix, Scalar, dot
from cardan.errors import ModelError
from cardan.model.field import EACH, VECTOR, Field
from cardan.model.force import FORCES, Force, ForceKind, Reading

if TYPE_CHECKING:
    from cardan.model.model import Actuator

INTEGRATOR, FILTER = "integrator", "filter"
DYNAMICS = ("", INTEGRATOR, FILTER)
"""How an activation follows a command; the empty word where there is none."""


def _within(value: Scalar, least: Scalar | None, largest: Scalar | None) -> Any:
    """A value within a range, as far as there is one."""
    import casadi as ca

    if least is not None:
        value = ca.fmax(value, least)
    return value if largest is None else ca.fmin(value, largest)


def _scalar_force(n: Mapping[str, Any], w: Scalar, q: Matrix, v: Matrix) -> Any:
    """F at the command or activation `w`; `n` are the numbers of the actuator by name."""
    gear, bias, speed = n["gear"], n["bias"], dot(n["gear"], v)
    gain, force = n["gain"] + n["gain_by_speed"] * speed, bias[0] + bias[2] * speed
    if q.shape == v.shape:  # a ball has no length along its rates
        length = dot(gear, q)
        gain, force = gain + n["gain_by_length"] * length, force + bias[1] * length
    return _within(gain * w + force, n.get("least_force"), n.get("largest_force"))


def _actuator(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    n = {name: f[name] for name in f.numbers}
    command = _within(n["command"], n.get("least_command"), n.get("largest_command"))
    return f["gear"] * _scalar_force(n, command, q, v)


ACTUATOR = ForceKind(
    "actuator", "joint", _actuator, mark="drive",
    fields={
        "gear": Field("1|1", "force along each rate for unit force of the actuator", EACH, default=1.0, letter="g"),
        "gain": Field("1", "force for unit command", default=1.0, letter="k"),
        "gain_by_length": Field("1", "what unit length adds to the gain", default=0.0, letter="k_l"),
        "gain_by_speed": Field("1", "what unit speed adds to the gain", default=0.0, letter="k_v"),
        "bias": Field("1", "force: a constant, and what length and speed add", VECTOR, default=0.0, letter="b"),
        "command": Field("1", "the command, 0 unless given; it may be free", default=0.0, letter="u"),
        "least_command": Field("1", "least command", default=None, letter="u_l"),
        "largest_command": Field("1", "largest command", default=None, letter="u_u"),
        "least_force": Field("1", "least force", default=None, letter="F_l"),
        "largest_force": Field("1", "largest force", default=None, letter="F_u"),
    },
    readings={"command": Reading("1", "its command", lambda f, t, q, v: f["command"])},
)  # fmt: skip
FORCES[ACTUATOR.name] = ACTUATOR


def numbers_of(actuator: Actuator, has_quaternion: bool) -> dict[str, Any]:
    """The numbers of an actuator that acts, by the names of the element's fields."""
    for what, number in (("bias[1]", actuator.bias[1]), ("slopes[0]", actuator.slopes[0])):
        if has_quaternion and number:
            raise ModelError(
                f"actuator {actuator.name!r}: its force depends on the length along joint {actuator.joint!r}, which "
                f"has a quaternion and no length along its rates; set {what} to 0"
            )
    values: dict[str, Any] = {"gear": actuator.gear, "gain": actuator.gain, "bias": actuator.bias}
    values |= {"gain_by_length": float(actuator.slopes[0]), "gain_by_speed": float(actuator.slopes[1])}
    for what, ends in (("command", actuator.control), ("force", actuator.force)):
        if ends is not None:
            values |= {f"least_{what}": ends[0], f"largest_{what}": ends[1]}
    return values


@dataclass(frozen=True)
class ActivatedLaw:
    """The law of an actuator with an activation, as that of a controller with the input "command"."""

    actuator: Actuator

    def __call__(self, s: Any) -> tuple[Any, dict[str, Any]]:
        """Force along the joint, and the rate of the activation."""
        import casadi as ca

        own, w = self.actuator, s["activation"]
        n = numbers_of(own, False)
        u = _within(s["command"], n.get("least_command"), n.get("largest_command"))
        rate = u if own.dynamics == INTEGRATOR else (u - w) / own.time
        if own.activation is not None:
            least, largest = own.activation
            rate = ca.if_else(w >= largest, ca.fmin(rate, 0), ca.if_else(w <= least, ca.fmax(rate, 0), rate))
            w = _within(w, least, largest)
        gear = ca.DM(own.gear)
        force = _scalar_force({**n, "gear": gear}, w, s.coordinate(own.joint), s.rate(own.joint))
        return gear * force, {"activation": rate}
