"""Signals: numbers of a mechanism by name that are functions of the instant, and the outputs of controllers.

What reads a signal, `s["name"]`, sees what it is at the same instant. So the order in which signals, and controllers
without a state or a sample between, depend on one another follows from what they read, and must be one: `in_order`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cardan.errors import CardanError, ModelError
from cardan.model.graph_digest import graph_digest
from cardan.model.held_state import refuse_held_state
from cardan.model.sight import Recorded, Recorder, record

if TYPE_CHECKING:
    from cardan.model.model import Model

AGAIN = (
    "its function gives another result each time it is run; it is run when the model is built, and random numbers, a "
    "clock or state that it keeps in Python would stay as they were then"
)


@dataclass(frozen=True, eq=False)
class Signal:
    """A function of the instant with a name; `recorded` is its graph in a built model."""

    name: str
    function: Callable[[Any], Any] | None = field(repr=False)
    unit: str = ""
    recorded: Recorded | None = field(default=None, repr=False)

    @property
    def owner(self) -> str:
        """Its name in messages."""
        return f"signal {self.name!r}"

    def size_in(self, model: Model, path: tuple[str, ...] = ()) -> int:
        """How many numbers it has; while signals are recorded, `path` are those that wait for it."""
        recorded = self.recorded or self.traced(model, path).recorded
        assert recorded is not None
        return int(recorded.function.numel_out(0))

    def at(self, s: Any) -> Any:
        """Its numbers, at what an observer sees."""
        assert self.recorded is not None
        return self.recorded.result(0, s)

    def digest(self) -> bytes:
        """All that enters the equations that read it."""
        assert self.recorded is not None
        return repr(("signal", self.name, self.recorded.sights, graph_digest(self.recorded.function))).encode()

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the numbers that it reads at the same instant."""
        assert self.recorded is not None
        return tuple(sight.of[0] for sight in self.recorded.reads[0] if sight.what == "number")

    def traced(self, model: Model, path: tuple[str, ...] = ()) -> Signal:
        """The same with its function as a graph; `path` are the signals that wait for it."""
        assert self.function is not None
        if self.name in path:
            raise ModelError(told_cycle([*path[path.index(self.name) :]]))
        refuse_held_state(self.owner, self.function, "mechanism.variable(..., rate=...)")
        again = f"{self.owner}: {AGAIN}"
        runs = (record(self.owner, self._run, again, Recorder(model, path=(*path, self.name))) for _ in range(2))
        first, second = runs
        if first.sights != second.sights or first.function.serialize() != second.function.serialize():
            raise ModelError(again)
        return replace(self, recorded=first, function=None)

    def _run(self, recorder: Recorder) -> tuple[list[Any], list[int]]:
        import casadi as ca

        from cardan.model.plain_symbols import plain_symbols

        assert self.function is not None
        with plain_symbols():
            try:
                value = self.function(recorder)
                column = ca.vec(
                    ca.vertcat(*(ca.SX(x) for x in (value if isinstance(value, list | tuple) else [value])))
                )
            except CardanError as error:
                raise type(error)(f"{self.owner}: {error}") from None
            except Exception as error:
                why = str(error).partition("\n")[0]
                raise ModelError(
                    f"{self.owner}: its function cannot be traced, {type(error).__name__}: {why}; it is run on CasADi "
                    "symbols and returns a number or several"
                ) from error
        if not column.numel():
            raise ModelError(f"{self.owner}: its function returns nothing; return a number or several")
        return [ca.densify(column)], [column.numel()]


def in_order(reads: Mapping[str, Iterable[str]], cycle: Callable[[list[str]], str]) -> list[str]:
    """Names in an order in which each comes after those that it reads; `cycle` is the message where there is none."""
    found: dict[str, None] = {}

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            raise ModelError(cycle(path[path.index(name) :]))
        if name in found:
            return
        for other in reads[name]:
            if other in reads:
                visit(other, [*path, name])
        found[name] = None

    for name in reads:
        visit(name, [])
    return list(found)


def told_cycle(names: list[str]) -> str:
    """The message for signals that depend on one another at the same instant."""
    around = " -> ".join([*names[::-1], names[-1]])
    return (
        f"signal {names[0]!r} depends on itself at the same instant: {around}; put a state or a sample between, as by "
        "m.filter(...) of one of them, or every=... of a controller"
    )
