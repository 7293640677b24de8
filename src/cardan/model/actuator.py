"""The actuator as a force element: it drives its joint by a command, with the law of `Actuator` (`cardan.model.model`).

    F = gain u + bias[0] + bias[1] (gear . q) + bias[2] (gear . v)     within its range
    tau = gear F                                                      u: the command within its range

The command is a number that may be free, "motor.command": `model.at`, events and `inputs` of `cd.simulate` give it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cardan.algebra.matrix import Matrix, Scalar, dot
from cardan.errors import ModelError
from cardan.model.field import EACH, VECTOR, Field
from cardan.model.force import FORCES, Force, ForceKind, Reading

if TYPE_CHECKING:
    from cardan.model.model import Actuator


def _within(f: Force, value: Scalar, least: str, largest: str) -> Any:
    """A value within the range that two numbers of the element give, where it has them."""
    import casadi as ca

    if least in f.numbers:
        value = ca.fmax(value, f[least])
    return ca.fmin(value, f[largest]) if largest in f.numbers else value


def _scalar_force(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Any:
    gear, bias = f["gear"], f["bias"]
    force = f["gain"] * _within(f, f["command"], "least_command", "largest_command") + bias[0]
    force = force + bias[2] * dot(gear, v)
    if q.shape == v.shape:  # a ball has no length along its rates
        force = force + bias[1] * dot(gear, q)
    return _within(f, force, "least_force", "largest_force")


def _actuator(f: Force, t: Scalar, q: Matrix, v: Matrix) -> Matrix:
    return f["gear"] * _scalar_force(f, t, q, v)


ACTUATOR = ForceKind(
    "actuator", "joint", _actuator, mark="drive",
    fields={
        "gear": Field("1|1", "force along each rate for unit force of the actuator", EACH, default=1.0, letter="g"),
        "gain": Field("1", "force for unit command", default=1.0, letter="k"),
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
    """The numbers of the element that makes an actuator act."""
    if has_quaternion and actuator.bias[1]:
        raise ModelError(
            f"actuator {actuator.name!r}: its force depends on the length along joint {actuator.joint!r}, which has a "
            "quaternion and no length along its rates; set bias[1] to 0"
        )
    values: dict[str, Any] = {"gear": actuator.gear, "gain": actuator.gain, "bias": actuator.bias}
    for what, ends in (("command", actuator.control), ("force", actuator.force)):
        if ends is not None:
            values |= {f"least_{what}": ends[0], f"largest_{what}": ends[1]}
    return values
