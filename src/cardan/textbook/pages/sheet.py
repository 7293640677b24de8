"""A page as data: sliders, steps, agreement of the forms, rules and a figure, collected while its text is recorded.

A page is a function `text(sheet)`. It asks the sheet for sliders, gets CasADi symbols in SI units, computes with them
what the source computes, and hands to the sheet what is to be seen. So there is one recorded function for each page,
from the values of the sliders to all numbers that are shown.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cardan.errors import CardanError
from cardan.program.program import Port, Program

if TYPE_CHECKING:
    from cardan.textbook.equation import Equation

Symbol = Any  # casadi.SX
DEGREE = 0.017453292519943295
FLOOR = (
    0.1  # SI units: what the largest entry of compared forms counts as at least, since rounding does not vanish with it
)


@dataclass(frozen=True)
class Slider:
    """One slider: its letter in LaTeX, what it is, and its range in its own unit; "°" is recorded in rad."""

    name: str
    latex: str
    meaning: str
    unit: str
    low: float
    high: float
    start: float
    step: float
    group: str


@dataclass(frozen=True)
class Value:
    """Numbers that the page shows: their key, core shape, and the symbols that compute them."""

    key: str
    shape: tuple[int, ...]
    symbols: Symbol


@dataclass(frozen=True)
class Shown:
    """A value in the text: letter in LaTeX, meaning and unit, and the key of the value."""

    key: str
    latex: str
    meaning: str
    unit: str


@dataclass(frozen=True)
class Step:
    """A step of the derivation: a sentence, the equation with its number, and the values it has now."""

    sentence: str
    number: str = ""
    latex: str = ""
    shown: tuple[Shown, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Forms of one quantity: (label, key of its value) each, and the key of their largest relative difference."""

    title: str
    unit: str
    forms: tuple[tuple[str, str], ...]
    difference: str


@dataclass(frozen=True)
class Rule:
    """What the sliders must obey; `key` is the value that is 1 where they do."""

    key: str
    sentence: str


@dataclass(frozen=True)
class Shape:
    """A part of the figure: a kind that the page's script draws, a style, keys of points or vectors, and a label."""

    kind: str
    style: str
    keys: tuple[str, ...]
    label: str = ""


@dataclass
class Sheet:
    """What a page collects while its text is recorded."""

    title: str = ""
    introduction: list[str] = field(default_factory=list)
    flat: bool = False
    centre: tuple[float, ...] = (0.0, 0.0, 0.0)
    reach: float = 1.0
    sliders: list[Slider] = field(default_factory=list)
    inputs: list[Symbol] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    steps: list[str | Step | Comparison] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    shapes: list[Shape] = field(default_factory=list)
    group: str = ""

    def slider(
        self, name: str, latex: str, meaning: str, unit: str, low: float, high: float, start: float, step: float
    ) -> Symbol:
        """A slider, as a symbol in SI units."""
        import casadi as ca

        if not low <= start <= high:
            raise CardanError(f"slider {name!r} starts at {start}, outside of {low} to {high}")
        symbol = ca.SX.sym(name)
        self.sliders.append(Slider(name, latex, meaning, unit, low, high, start, step, self.group))
        self.inputs.append(symbol)
        return symbol * DEGREE if unit == "°" else symbol

    def keep(self, key: str, symbols: Symbol) -> str:
        """Have numbers computed under a key; a key that is taken gets a number."""
        import casadi as ca

        symbols = ca.SX(symbols)
        free, n = key, 2
        while free in self.values:
            free, n = f"{key} {n}", n + 1
        rows, columns = symbols.shape
        shape = (rows, columns) if columns > 1 else (rows,) if rows > 1 else ()
        self.values[free] = Value(free, shape, symbols)
        return free

    @property
    def comparisons(self) -> list[Comparison]:
        """All comparisons of the page."""
        return [step for step in self.steps if isinstance(step, Comparison)]

    def heading(self, text: str) -> None:
        """Begin a part of the derivation."""
        self.steps.append(text)

    def given(self, sentence: str, *shown: tuple[str, str, str, Symbol], latex: str = "") -> None:
        """A step without a number: (letter, meaning, unit, value) of what it shows."""
        self.steps.append(Step(sentence, latex=latex, shown=tuple(self._shown(*one) for one in shown)))

    def step(self, sentence: str, equation: Equation, *args: Symbol, again: bool = False, index: str = "i") -> Any:
        """A step by a numbered equation: it is printed, and what it gives is shown and returned.

        An equation that comes `again` is not printed a second time; `index` stands for i in the letters of its results.
        """
        found = equation(*args)
        results = found if isinstance(found, tuple) else (found,)
        latex = equation.latex()
        lines = equations_in(latex)  # their left sides are the letters of results that have none
        lefts = [lines[min(k, len(lines) - 1)].partition(" = ")[0] for k in range(len(results))]
        shown = tuple(
            Shown(
                self.keep(f"{equation.number} {name}", value), (q.latex or left).replace("{i}", f"{{{index}}}"),
                q.meaning.replace("link i", f"link {index}"), q.unit,
            )
            for (name, q), value, left in zip(equation.outputs.items(), results, lefts, strict=True)
        )  # fmt: skip
        self.steps.append(Step(sentence, equation.number, "" if again else latex, shown))
        return found

    def compare(
        self,
        name: str,
        title: str,
        unit: str,
        forms: Mapping[str, Symbol],
        *,
        show: Callable[[Symbol], Symbol] = lambda x: x,
    ) -> None:
        """Show one quantity as several forms compute it, and by how much they differ; keys begin with `name`.

        All of it is compared; `show` takes what is to be seen of a large one.
        """
        import casadi as ca

        flat = [ca.vec(ca.SX(value)) for value in forms.values()]
        largest = largest_of([ca.fabs(x) for value in flat for x in ca.vertsplit(value)])
        apart = largest_of([ca.fabs(x) for value in flat[1:] for x in ca.vertsplit(value - flat[0])])
        keys = tuple((label, self.keep(f"{name} by {label}", show(value))) for label, value in forms.items())
        difference = self.keep(f"{name} difference", apart / ca.fmax(largest, FLOOR))
        self.steps.append(Comparison(title, unit, keys, difference))

    def rule(self, holds: Symbol, sentence: str) -> None:
        """Where `holds` is 0 the page says the sentence, and no number."""
        self.rules.append(Rule(self.keep(f"rule {len(self.rules) + 1}", holds), sentence))

    def draw(self, kind: str, style: str, *points: Symbol, label: str = "") -> None:
        """Add a part to the figure; see `data/textbook.js` for the kinds. Points are rows of x, y, z in m."""
        keys = tuple(self.keep(f"{kind} {len(self.shapes) + 1}", value) for value in points)
        self.shapes.append(Shape(kind, style, keys, label))

    def program(self, name: str) -> Program:
        """The recorded function of the page: `x` has the values of the sliders, `y` all values one after the other.

        In `y` matrices are row by row.
        """
        import casadi as ca

        x = ca.vertcat(*self.inputs)
        y = ca.vertcat(*(ca.vec(value.symbols.T) for value in self.values.values()))
        function = ca.Function(name, [x], [ca.densify(y)])
        key = hashlib.sha256(function.serialize().encode()).hexdigest()
        return Program(name, (Port("x", (x.numel(),)),), (Port("y", (y.numel(),)),), key, lambda: function)

    def split(self, y: Any) -> dict[str, Any]:
        """The values by key, each of its shape, from the array `y` (..., all) that the program gives."""
        found, at = {}, 0
        for value in self.values.values():
            size = math.prod(value.shape)
            found[value.key] = y[..., at : at + size].reshape((*y.shape[:-1], *value.shape))
            at += size
        return found

    def _shown(self, latex: str, meaning: str, unit: str, value: Symbol) -> Shown:
        return Shown(self.keep(meaning, value), latex, meaning, unit)


def equations_in(latex: str) -> list[str]:
    """The equations of an aligned group, each alone; other LaTeX as it is."""
    group = re.fullmatch(r"\\begin\{aligned\}(.*)\\end\{aligned\}", latex, re.DOTALL)
    if group is None:
        return [latex]
    inside = re.sub(r"(\\begin\{bmatrix\}.*?\\end\{bmatrix\})", lambda m: m[0].replace("\\\\", "\0"), group[1])
    return [line.replace("&", "", 1).replace("\0", "\\\\").strip() for line in inside.split("\\\\")]


def largest_of(values: Sequence[Symbol]) -> Symbol:
    """The largest of some numbers, in a tree of comparisons."""
    import casadi as ca

    found = list(values)
    while len(found) > 1:
        found = [ca.fmax(*found[k : k + 2]) if k + 1 < len(found) else found[k] for k in range(0, len(found), 2)]
    return found[0]


Text = Callable[[Sheet], None]
