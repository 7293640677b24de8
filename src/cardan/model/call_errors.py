"""Calls with wrong arguments, told as a sentence with the form of the call."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from cardan.errors import InputError, no_such_argument

# What belongs elsewhere, by method and argument.
ELSEWHERE = {
    "joint": {
        "axis": "the axis belongs to the type: cd.Revolute(axis=...)",
        "damping": "give it to a friction element: mechanism.friction(name, joint, viscous=...)",
        "friction": "it is an element: mechanism.friction(name, joint, coulomb=...)",
        "stiffness": "it is an element: mechanism.torsion(name, joint, stiffness=...)",
        "limits": "limits are data: data=cd.JointData(lower=..., upper=...)",
        "lower": "limits are data: data=cd.JointData(lower=..., upper=...)",
        "upper": "limits are data: data=cd.JointData(lower=..., upper=...)",
    },
    "cd.shape.Mesh": {"faces": "a file is cd.shape.Mesh.from_file(path, scale=...)"},
    "couple": {"ratio": "give a number to each joint: couple(name, {'a': 1.0, 'b': 3.0})"},
}


class CallError(InputError, TypeError):
    """A call with arguments that a method does not take, or without those it needs."""


def with_call_errors(method: Callable[..., Any], name: str = "") -> Callable[..., Any]:
    """A method of a builder, whose first argument is a name, or one called `name`; a call that does not fit is told."""

    @wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # it happened inside
                raise
            raise _call_error(method, args, kwargs, name) from None

    return call


def _call_error(method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], called: str) -> CallError:
    name, signature = called or method.__name__, inspect.signature(method)
    parameters = [p for p in signature.parameters.values() if p.name != "self"]
    owner = f"{name} {args[0]!r}" if args and isinstance(args[0], str) and not called else name
    by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    unknown = {key: x for key, x in kwargs.items() if key not in signature.parameters}
    belongs = ELSEWHERE.get(name, {}).get(next(iter(unknown), ""))
    if belongs:
        return CallError(f"{owner}: there is no argument {next(iter(unknown))!r}; {belongs}")
    if unknown:
        return CallError(str(no_such_argument(owner, unknown, [p.name for p in parameters])))
    form = ", ".join(f"{p.name}=..." if p.name in by_name else p.name for p in parameters)
    places = len(parameters) - len(by_name)
    if len(args) > places and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        why = f"{len(args)} arguments without a name, and it takes {places}; name the others"
    else:
        bound = signature.bind_partial(None, *args, **kwargs).arguments
        missing = [
            p.name for p in parameters if p.default is p.empty and p.name not in bound and p.kind != p.VAR_KEYWORD
        ]
        why = f"{' and '.join(missing)} {'are' if len(missing) > 1 else 'is'} missing"
        instead = ELSEWHERE.get(name, {}).get(missing[0] if missing else "", "")
        if instead:
            return CallError(f"{owner}: {why}: {name}({form}); {instead}")
    return CallError(f"{owner}: {why}: {name}({form})")
