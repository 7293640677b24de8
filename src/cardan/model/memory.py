"""What is remembered about a model: kernels, row choices, findings. Each kind of thing has a type and one owner.

The owner is the module that declares the `Slot`. Nothing is found by a name in text: two modules cannot use one place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from os import PathLike
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from cardan.errors import CardanError, InputError

if TYPE_CHECKING:
    from cardan.model.model import Model

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing")

Memory = dict[tuple["Slot[Any, Any] | RecentSlot[Any, Any] | KernelSlot[Any]", *tuple[Hashable, ...]], Any]
_NOTHING: Any = object()


def not_a_model(thing: Any) -> CardanError:
    """The error for something that is given in the place of a model."""
    if isinstance(thing, CardanError):
        return thing
    what, fix = f"a {type(thing).__name__}", "models come from mechanism.build() and cd.load(file)"
    if isinstance(thing, str | PathLike):
        what, fix = repr(str(thing)), "cd.load(file) reads a file, cd.mechanisms has the catalogue"
    elif callable(thing) and hasattr(thing, "__name__"):
        what = f"the function {thing.__name__}"
        fix = "call it: mechanism.build()" if thing.__name__ == "build" else f"call it: {thing.__name__}().build()"
    elif hasattr(thing, "model"):
        fix = "give its .model"
    elif hasattr(thing, "dtype"):
        what, fix = "an array", "the model comes first, then q, v, ..."
    return InputError(f"the first argument must be a model, got {what}; {fix}")


def require_model(owner: str, model: Any) -> None:
    """Reject anything else in the place of a model."""
    try:
        model.memory  # noqa: B018, which a mechanism that is not built refuses with a sentence of its own
    except AttributeError as error:
        if isinstance(error, CardanError):
            raise
        raise InputError(f"{owner}: {not_a_model(model)}") from None


class Slot(Generic[Key, Thing]):
    """A kind of thing remembered about a model, by a key.

    A model at values of its free parameters shares what it remembers with the model at nominal values, since structure
    is decided there; with `by_values` each set of values has its own.
    """

    def __init__(self, what: str, *, by_values: bool = False) -> None:
        """`what` is for people who look into a model's memory."""
        self.what, self.by_values = what, by_values

    def __repr__(self) -> str:
        """Say what is kept."""
        return f"Slot({self.what!r})"

    def find(self, model: Model, key: Key, make: Callable[[], Thing]) -> Thing:
        """The thing; made on first use."""
        memory, place = self._home(model).memory, (self, key)
        found: Thing = memory.get(place, _NOTHING)
        if found is _NOTHING:
            found = memory[place] = make()
        return found

    def first_time(self, model: Model, key: Key) -> bool:
        """Whether this is the first time that one asks; for things done once."""
        memory, place = self._home(model).memory, (self, key)
        if place in memory:
            return False
        memory[place] = True
        return True

    def put(self, model: Model, key: Key, thing: Thing) -> None:
        """Remember a thing."""
        self._home(model).memory[self, key] = thing

    def _home(self, model: Model) -> Model:
        return model if self.by_values else model.unbound


class RecentSlot(Generic[Key, Thing]):
    """The things of a kind that were used last, at most `most` of them: for keys that may be new at every call."""

    def __init__(self, what: str, most: int) -> None:
        """`what` is for people who look into a model's memory."""
        self.what, self.most = what, most

    def __repr__(self) -> str:
        """Say what is kept."""
        return f"RecentSlot({self.what!r}, {self.most})"

    def find(self, model: Model, key: Key, make: Callable[[], Thing]) -> Thing:
        """The thing; made if it was not used lately."""
        recent: dict[Key, Thing] = model.unbound.memory.setdefault((self,), {})
        found: Thing = recent.pop(key, _NOTHING)
        if found is _NOTHING:
            found = make()
        recent[key] = found
        for old in [*recent][: -self.most]:
            recent.pop(old, None)
        return found


class KernelSlot(Generic[Key]):
    """Compiled functions of a model. One kernel serves all values of its free parameters."""

    def __init__(self, what: str) -> None:
        """`what` is for people who look into a model's memory."""
        self.what = what

    def __repr__(self) -> str:
        """Say what is kept."""
        return f"KernelSlot({self.what!r})"

    def find(self, model: Model, key: Key, make: Callable[[], Any]) -> Any:
        """The kernel at the model's values; made on first use."""
        place: Any = (self, key)
        try:
            found = model.memory.get(place)
        except AttributeError as error:
            raise error if isinstance(error, CardanError) else not_a_model(model) from None
        if found is None:
            home = model.unbound
            found = home.memory.get(place)
            if found is None:
                found = make()
                if model.parameters:
                    found = found.at_values(model.parameters.nominal)
                home.memory[place] = found
            if model.values is not None:
                found = model.memory[place] = found.at_values(model.values)
        return found
