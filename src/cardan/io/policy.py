"""What a loader does with a file that breaks a rule: reject it, keep the value, or repair it.

`RULES` lists the rules that can be relaxed; all others are always enforced. A loader that finds a violation passes the
error and the value, and gets back the value to continue with. Each value that is kept or repaired is a note of the
model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np

from cardan.errors import FileError, InputError, ModelError
from cardan.model.body import JointData
from cardan.model.builder import Mechanism
from cardan.model.inertia import check_inertia

Word = Literal["strict", "warn", "repair"]
Value = TypeVar("Value")
SLIGHT = 0.05
"""Largest relative error of a number that is repaired; beyond it the number is a mistake."""


@dataclass(frozen=True)
class Way:
    """How to continue after a violation: the note, and the value to continue with (None: it cannot be repaired)."""

    done: str
    apply: Callable[[Any], Any]


@dataclass(frozen=True)
class Rule:
    """A rule of model files, and what `warn` and `repair` do with a violation; None where they reject it too."""

    says: str
    keep: Way | None
    repair: Way | None


def _normalised(quaternion: Any) -> Any:
    length = float(np.linalg.norm(quaternion))
    return np.asarray(quaternion, dtype=float) / length if abs(length - 1) <= SLIGHT else None


def _nearest_rotation(matrix: Any) -> Any:
    R = np.asarray(matrix, dtype=float)
    U, s, V = np.linalg.svd(R)
    return U @ V if np.abs(s - 1).max() <= SLIGHT and np.linalg.det(R) > 0 else None


def _nearest_inertia(I: np.ndarray) -> np.ndarray | None:
    """The inertia whose second moments of mass, `P = tr(I)/2 1 - I`, are those of `I` with negative ones set to 0."""
    symmetric = (I + I.T) / 2
    moments, axes = np.linalg.eigh(np.trace(symmetric) / 2 * np.eye(3) - symmetric)
    P = (axes * np.maximum(moments, 0.0)) @ axes.T
    found = np.trace(P) * np.eye(3) - P
    return found if np.abs(found - I).max() <= SLIGHT * np.abs(I).max() else None


_same = lambda value: value
AS_GIVEN = Way("kept as given", _same)
EXCHANGED = Way("repaired: exchanged", lambda limits: limits[::-1] if limits[0] != limits[1] else None)
NEAREST = Way("repaired: the nearest that a body can have", _nearest_inertia)
RULES: dict[str, Rule] = {
    "inertia": Rule("an inertia is symmetric and obeys the triangle rule", AS_GIVEN, NEAREST),
    "sign of inertia": Rule("an inertia is not negative along any axis", None, NEAREST),
    "quaternion": Rule("a quaternion has length 1", None, Way("repaired: normalised", _normalised)),
    "rotation": Rule(
        "a rotation matrix is orthonormal", None, Way("repaired: the nearest rotation", _nearest_rotation)
    ),
    "order of limits": Rule("a lower limit is below the upper one", AS_GIVEN, EXCHANGED),
    "sign of limits": Rule(
        "limits of speed and effort are not negative", AS_GIVEN, Way("repaired: the magnitude taken", abs)
    ),
    "sign of friction": Rule("damping, friction and stiffness are not negative", AS_GIVEN, None),
    "infinite limit": Rule("a limit is finite", Way("read as no limit", _same), Way("repaired: no limit", _same)),
    "twins": Rule(
        "names of links and of joints differ", None,
        Way("repaired: the second, which is the same, is left out", lambda pair: pair if pair[1] == pair[2] else None),
    ),
    "mimic": Rule(
        "the joint that another mimics is in the file", Way("it moves by itself", _same),
        Way("repaired: it moves by itself", _same),
    ),
}  # fmt: skip


@dataclass(eq=False)
class Policy:
    """How one file is read; `notes` list what was kept or repaired."""

    word: Word = "strict"
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Reject an unknown policy."""
        if self.word not in get_args(Word):
            raise InputError(f"policy must be 'strict', 'warn' or 'repair', got {self.word!r}")

    def settle(self, rule: str, error: FileError, value: Value) -> Value:
        """The value to continue with after a violation, or raise the error."""
        way = {"strict": None, "warn": RULES[rule].keep, "repair": RULES[rule].repair}[self.word]
        found: Any = way.apply(value) if way is not None else None
        if way is None or (found is None and value is not None):
            raise error
        self.notes.append(f"{str(error).partition('; ')[0]}; {way.done}")
        return cast(Value, found)

    def check_data(self, data: JointData, error: Callable[[str], FileError], hint: str = "") -> JointData:
        """Check limits, damping and friction of a joint; `error` makes an exception from a sentence."""
        for name in ("velocity", "effort"):
            limit = getattr(data, name)
            if limit is not None and limit < 0:
                fault = error(f"its limit of {name} is negative: {limit:g}; the limit is on the magnitude")
                data = replace(data, **{name: self.settle("sign of limits", fault, limit)})
        if data.lower is not None and data.upper is not None and data.lower > data.upper:
            fault = error(
                f"its lower limit {data.lower:g} is above its upper limit {data.upper:g}{hint}; exchange them"
            )
            lower, upper = self.settle("order of limits", fault, (data.lower, data.upper))
            data = replace(data, lower=lower, upper=upper)
        for name in ("damping", "friction"):
            if getattr(data, name) < 0:
                fault = error(f"its {name} is negative: {getattr(data, name):g}; it would feed energy into the joint")
                data = self.settle("sign of friction", fault, data)
        return data

    def add_body(self, mechanism: Mechanism, name: str, error: Callable[[str], FileError], **values: Any) -> None:
        """Add a body: under `warn` its inertia is kept, under `repair` a slight violation of the rules is corrected.

        An inertia that is too far off to be repaired is rejected as usual.
        """
        if self.word == "warn":
            values["judge"] = "nothing"
        if self.word == "repair":
            trial = Mechanism("trial")
            trial.body(name, **values | {"judge": "nothing"})
            body = trial.bodies[0]
            try:
                check_inertia(f"body {name!r}", body.mass, body.inertia)
            except ModelError as fault:
                try:
                    I = self.settle("inertia", error(str(fault).partition(": ")[2]), body.inertia)
                    judge = {"judge": values["judge"]} if "judge" in values else {}
                    values = {"mass": body.mass, "com": body.com, "inertia": I, "shape": body.shapes or None, **judge}
                except FileError:
                    pass
        mechanism.body(name, **values)


STRICT = Policy()
