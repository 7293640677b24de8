"""The exceptions of Cardan: one family, so that `except CardanError` catches all of it."""

from __future__ import annotations

import difflib
import re
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Never, TypedDict

OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal obeys instead of showing them, that turn the line round, or are none."""


def visible(text: str, keep: str = "") -> str:
    """Text of others with such characters, but for those in `keep`, written out as in Python."""
    return OBEYED.sub(lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text)


class CardanError(Exception):
    """Base of every exception that Cardan raises on purpose."""


class InputError(CardanError, ValueError):
    """An argument of a function has the wrong shape, type or value."""


class ModelError(CardanError, ValueError):
    """A mechanism breaks a rule: a body, joint or frame that cannot be."""


class FileError(ModelError):
    """A file cannot be read or written: the message names the file and, in it, the element.

    What a file says may be of any length; the middle of a message that would pass `LONGEST` characters is left out.
    Characters that a terminal would obey are written out.
    """

    LONGEST = 3000

    def __init__(self, message: str = "") -> None:
        half = self.LONGEST // 2
        message = visible(message, keep="\n")
        super().__init__(message if len(message) <= self.LONGEST else f"{message[:half]} ... {message[-half:]}")


class LoopError(CardanError, ValueError):
    """A tree-only function was asked about a mechanism with closed loops."""


class SimulationError(CardanError, RuntimeError):
    """A run did not get to its end: when, where, why, and what to try.

    `partial` is the `Trajectory` of all that was computed until then, None if there was nothing; `time` (s) is where
    the run, of a batch the first system that failed, ended.
    """

    def __init__(self, message: str, partial: Any = None, time: float = float("nan")) -> None:
        super().__init__(message)
        self.partial = partial
        self.time = time


class InterruptedRunError(SimulationError, KeyboardInterrupt):
    """A run was interrupted from the keyboard; `partial` has all that was computed until then."""


class EquilibriumError(CardanError, RuntimeError):
    """There is no equilibrium, or not the one that was asked for: what is left, where, and what to try.

    `partial` is the `Equilibrium` of what was found.
    """

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial


class DeviceError(CardanError, RuntimeError):
    """There is no GPU that can be used, or it failed: what is missing, and what to do."""


class DeviceMemoryError(DeviceError, MemoryError):
    """The GPU has too little free memory: how much is needed, and how much is free."""


class OutOfMemoryError(CardanError, MemoryError):
    """The system has too little free memory for a computation: how much is needed, and what to do."""


class UnknownNameError(CardanError, KeyError):
    """A body, joint, frame or formulation that does not exist; the message suggests the nearest name."""

    def __str__(self) -> str:
        """Give the plain sentence (KeyError would quote it)."""
        return str(self.args[0]) if self.args else ""


NAMES_COMPARED, CHARACTERS_COMPARED = 2000, 60
"""How many names, and of which length, are looked at for a suggestion: comparing takes the square of a length."""


def nearest(name: object, names: Iterable[str]) -> str:
    """Suggest the nearest of the known names, as the tail of a sentence."""
    known, meant = list(names), str(name).lower()
    parts = [other for other in known if other.startswith(f"{name}.")]
    if parts:
        return f"; there are {', '.join(map(repr, parts[:6]))}"
    short = {other.lower(): other for other in known[:NAMES_COMPARED] if len(other) <= CHARACTERS_COMPARED}
    close = difflib.get_close_matches(meant, short, 1) if len(meant) <= CHARACTERS_COMPARED else []
    if not close and 3 <= len(meant) <= CHARACTERS_COMPARED:  # a part of a name
        close = sorted((other for other in short if meant in other), key=len)
    if close:
        return f"; did you mean {short[close[0]]!r}?"
    return f"; known: {', '.join(map(repr, known[:8]))}{', ...' if len(known) > 8 else ''}" if known else ""


class NoOthers(TypedDict, total=False):
    """No further arguments: an error says what one is called here, and a type checker rejects it."""


class Removed(TypedDict, total=False):
    """Arguments that functions had earlier: an error says what to give instead, and a type checker rejects them."""

    frame: Never


REMOVED = {
    "frame": "is gone; write formulation='absolute_body' for angular rates in body axes, 'absolute' for ground axes",
    "longest_step": "is now called max_step",
    "most_steps": "is now called max_steps",
}


# What arguments are called in other programs.
ELSEWHERE = {
    "step": ("dt", "h", "timestep", "time_step", "stepsize", "step_size", "delta_t"),
    "duration": ("t_end", "tend", "tf", "t_final", "T", "t_span", "tspan", "time", "end", "stop_time"),
    "samples": ("t_eval", "n", "n_samples", "num_samples", "output_steps"),
    "q0": ("x0", "y0", "q_init", "qpos", "initial", "state"),
    "v0": ("qd0", "dq0", "qdot0", "u0", "qvel"),
    "tau": ("torque", "torques", "u", "ctrl", "effort", "efforts", "force", "forces"),
    "method": ("solver", "integrator"),
    "rtol": ("tol", "tolerance", "reltol"),
    "atol": ("abstol",),
    "mass": ("m", "weight"),
    "com": ("center_of_mass", "centre_of_mass", "cog", "cm", "center"),
    "inertia": ("I", "J", "moment_of_inertia"),
    "stiffness": ("k", "spring_constant", "K"),
    "damping": ("c", "d", "b", "damper"),
    "length": ("l0", "L0", "rest", "rest_length", "free_length", "natural_length"),
    "viscous": ("damping", "b"),
    "coulomb": ("mu", "static"),
    "at": ("position", "pos", "origin", "location", "parent_at", "point"),
    "child_at": ("child_position", "child_origin"),
    "start": ("initial", "q0", "angle"),
    "root": ("floating", "floating_base", "free_flyer", "base", "root_joint", "fixed_base"),
    "wrenches": ("fext", "external_forces", "external_wrenches", "xfrc_applied"),
}


def no_such_argument(function: str, arguments: Mapping[str, object], known: Iterable[str] = ()) -> InputError:
    """Make the error for the first of some arguments that a function does not have."""
    own_names = sys._getframe(1).f_code  # of the function that refuses them
    listed = list(known) or [*own_names.co_varnames[: own_names.co_argcount + own_names.co_kwonlyargcount]]
    name = next(iter(arguments))
    if name in REMOVED:
        return InputError(f"{function}: {name} {REMOVED[name]}")
    own = next((own for own, others in ELSEWHERE.items() if name in others and own in listed), None)
    hint = nearest(name, listed) if own is None else f"; it is called {own} here"
    return InputError(f"{function}: there is no argument {name!r}{hint}")


def no_attribute(owner: str, name: str, names: Iterable[str], elsewhere: Mapping[str, str]) -> AttributeError:
    """Make the error for a missing attribute; `elsewhere`: names of other programs, and what to write here."""
    if name.startswith("_"):
        return AttributeError(f"{owner} has no attribute {name!r}")
    close = difflib.get_close_matches(name.lower(), [other for other in names if not other.startswith("_")], 1)
    own = elsewhere.get(name) or elsewhere.get(name.lower() if len(name) > 1 else "")
    hint = f"; write {own}" if own else f"; did you mean {close[0]!r}?" if close else ""
    return AttributeError(f"{owner} has no attribute {name!r}{hint}")


def warn_outside(text: str) -> None:
    """Warn at the line of somebody else's code that called."""
    warnings.warn(text, RuntimeWarning, stacklevel=_depth() + 1)


def _depth() -> int:
    """How many frames up from the caller somebody else's code begins."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "cardan":
        frame, depth = frame.f_back, depth + 1
    return depth - 1
