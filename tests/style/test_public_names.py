"""Every name that `cardan` exports says what it is and what it takes."""

import inspect
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import cardan

SRC = Path(__file__).resolve().parents[2] / "src" / "cardan"


def unannotated(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """Parameters and result that carry no annotation; `self` and `cls` need none."""
    signature = inspect.signature(function)
    for i, parameter in enumerate(signature.parameters.values()):
        if parameter.annotation is parameter.empty and not (i == 0 and parameter.name in ("self", "cls")):
            yield f"{name}: parameter '{parameter.name}' has no annotation"
    if signature.return_annotation is signature.empty and not name.endswith("__init__"):
        yield f"{name}: the result has no annotation"


def wrong_in_class(name: str, cls: type) -> Iterator[str]:
    """What the public methods and properties that this class itself defines leave unsaid."""
    for key, member in vars(cls).items():
        if key.startswith("_") and key != "__init__":
            continue
        function = getattr(member, "__func__", getattr(member, "fget", getattr(member, "func", member)))
        if not isinstance(function, types.FunctionType):
            continue
        if not inspect.getdoc(getattr(cls, key)) and key != "__init__":
            yield f"{name}.{key}: no docstring"
        if function.__module__ == cls.__module__:
            yield from unannotated(f"{name}.{key}", function)


def wrong(name: str, thing: Any) -> Iterator[str]:
    """What the exported thing leaves unsaid; plain constants have nothing to say."""
    if isinstance(thing, types.ModuleType):
        if not thing.__doc__:
            yield f"{name}: no docstring"
        for key in getattr(thing, "__all__", ()):
            yield from wrong(f"{name}.{key}", getattr(thing, key))
    elif isinstance(thing, type):
        if not vars(thing).get("__doc__"):
            yield f"{name}: no docstring"
        yield from wrong_in_class(name, thing)
    elif callable(thing):
        if not inspect.getdoc(thing):
            yield f"{name}: no docstring"
        yield from unannotated(name, thing)


def exported() -> list[str]:
    names = list(getattr(cardan, "__all__", ()))
    if not names and not (SRC / "cli.py").exists():
        pytest.skip("cardan exports nothing yet")
    return names


def test_every_exported_name_is_documented_and_annotated() -> None:
    names = exported()
    assert names, "cardan.__all__ is empty"
    assert len(set(names)) == len(names), "a name is exported twice"
    found = [w for name in names for w in wrong(f"cardan.{name}", getattr(cardan, name))]
    assert not found, "\n" + "\n".join(found)


def test_exported_names_are_listed_by_dir() -> None:
    assert set(exported()) <= set(dir(cardan))


class Bare:
    def turn(self, angle):  # type: ignore[no-untyped-def]
        return angle

    @property
    def axis(self) -> float:
        return 0.0


class Clothed:
    """A thing that says everything."""

    def __init__(self, angle: float) -> None:
        self._angle = angle

    @classmethod
    def zero(cls) -> "Clothed":
        """The one that does not turn."""
        return cls(0.0)

    @property
    def angle(self) -> float:
        """Angle, rad."""
        return self._angle


def test_what_is_unsaid_is_found() -> None:
    assert list(wrong("Clothed", Clothed)) == []
    assert list(wrong("Bare", Bare)) == [
        "Bare: no docstring",
        "Bare.turn: no docstring",
        "Bare.turn: parameter 'angle' has no annotation",
        "Bare.turn: the result has no annotation",
        "Bare.axis: no docstring",
    ]
    assert next(wrong("f", lambda x: x)) == "f: no docstring"
    assert list(wrong("m", types.ModuleType("m"))) == ["m: no docstring"]
