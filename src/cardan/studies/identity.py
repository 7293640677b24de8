"""What makes two studies the same: digests of the model, the settings, the measures and the members.

A function of the user is known by its code, constants, defaults, what it encloses, and the global numbers, arrays and
functions that it uses; a change of its text that changes none of these, a comment for example, does not make another
study.
"""

from __future__ import annotations

import dis
import hashlib
import pickle
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.machines.cache import source_digest
from cardan.model.model import Model
from cardan.studies.design import Design
from cardan.studies.run import Run
from cardan.studies.task import Task

PLACES = ("device",)
"""Settings of runs that say where to compute, not what."""
PLAIN = (
    str, bytes, int, float, complex, type(None), np.generic, np.ndarray, list, tuple, dict, set, frozenset, Model,
    ModuleType, partial,
)  # fmt: skip
"""Global variables that are known by what they are."""


def identity(task: Task, design: Design) -> dict[str, str]:
    """Digests of the parts of a study: all must be equal for two studies to be the same."""
    run: Any = task.run
    if isinstance(run, Run):
        run = {f.name: getattr(run, f.name) for f in fields(run) if f.name not in PLACES}
    parts = {
        "model": _digest(task.model),
        "run": _digest(run),
        "measures": _digest([(name, measure) for name, measure in task.measures.items()]),
    }
    return {**parts, "members": design.fingerprint}


def code_version() -> dict[str, str]:
    """Version of Cardan and digest of its source."""
    try:
        number = version("cardan")
    except PackageNotFoundError:
        number = "unknown"
    return {"version": number, "source": source_digest()}


def require_code(found: dict[str, str], own: dict[str, str], who: str) -> None:
    """Reject a process whose Cardan is not the same: the last digits of its results could differ."""
    if found != own:
        raise InputError(
            f"sweep: {who} has Cardan {found['version']} (source {found['source'] or 'unknown'}), this process "
            f"{own['version']} (source {own['source'] or 'unknown'}); install the same version on all"
        )


def _digest(thing: Any) -> str:
    h = hashlib.blake2b(digest_size=16)
    _feed(h, thing, ())
    return h.hexdigest()


def _feed(h: Any, thing: Any, above: tuple[int, ...]) -> None:
    """Feed a thing into a digest, whatever it is made of; `above` are the things that it is part of."""
    if id(thing) in above:
        h.update(b"again")
        return
    above = (*above, id(thing))
    h.update(f"<{type(thing).__qualname__}>".encode())
    if isinstance(thing, Model):
        names = (
            thing.name,
            thing.body_names,
            thing.joint_names,
            [f.name for f in thing.forces],
            thing.coordinate_names,
        )
        words = (thing.key, names, [(p.name, p.nominal.tolist()) for p in thing.parameters])
        h.update(repr(words).encode() + thing.start().tobytes())
        h.update(b"" if thing.values is None else np.ascontiguousarray(thing.values).tobytes())
    elif isinstance(thing, np.ndarray) and thing.dtype != object:
        h.update(f"{thing.dtype.str} {thing.shape}".encode() + np.ascontiguousarray(thing).tobytes())
    elif isinstance(thing, str | bytes | int | float | complex | type(None) | np.generic | type):
        h.update(repr(thing).encode())
    elif isinstance(thing, ModuleType):
        h.update(thing.__name__.encode())
    elif isinstance(thing, partial):
        _feed(h, (thing.func, thing.args, thing.keywords), above)
    elif isinstance(thing, Mapping):
        for key, value in thing.items():
            _feed(h, key, above)
            _feed(h, value, above)
    elif isinstance(thing, Sequence | Set):
        for each in thing if isinstance(thing, Sequence) else sorted(thing, key=repr):
            _feed(h, each, above)
    elif isinstance(thing, CodeType):
        h.update(thing.co_code)
        _feed(h, (thing.co_consts, thing.co_names, thing.co_varnames), above)
    elif isinstance(thing, FunctionType):
        _feed(h, (thing.__qualname__, thing.__code__, thing.__defaults__, thing.__kwdefaults__), above)
        _feed(h, [cell.cell_contents for cell in thing.__closure__ or () if _is_filled(cell)], above)
        for name in sorted(set(_globals_of(thing.__code__)) & thing.__globals__.keys()):
            _feed_global(h, name, thing.__globals__[name], thing.__module__, above)
    elif is_dataclass(thing):
        _feed(h, {f.name: getattr(thing, f.name) for f in fields(thing)}, above)
    else:
        _feed_object(h, thing, above)


def _globals_of(code: CodeType) -> Iterator[str]:
    """Names of global variables that a function, or a function inside it, reads."""
    yield from (each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_of(inner)


def _feed_global(h: Any, name: str, thing: Any, module: str, above: tuple[int, ...]) -> None:
    """Feed a global variable: numbers and functions of the same module by what they are, others by their name."""
    own = isinstance(thing, FunctionType) and thing.__module__ == module
    h.update(name.encode())
    if own or isinstance(thing, PLAIN):
        _feed(h, thing, above)
    else:
        kind = thing if hasattr(thing, "__qualname__") else type(thing)
        h.update(f"{getattr(kind, '__module__', '')} {kind.__qualname__}".encode())


def _feed_object(h: Any, thing: Any, above: tuple[int, ...]) -> None:
    """Feed an object of an unknown kind: what is pickled of it, or its attributes."""
    if callable(getattr(thing, "__func__", None)):  # a method
        _feed(h, (thing.__func__, thing.__self__), above)
        return
    if callable(thing):
        _feed(h, type(thing).__call__, above)
    try:
        h.update(pickle.dumps(thing, protocol=4))
    except Exception:  # any object may refuse in its own way
        _feed(h, vars(thing) if hasattr(thing, "__dict__") else repr(type(thing)), above)


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
