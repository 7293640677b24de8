"""Random numbers and choices for test files, as text in the forms that the file formats allow."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element as Node

from hypothesis import strategies as st


def add(outer: Node, tag: str, **attributes: str) -> Node:
    """A new element inside another."""
    return ElementTree.SubElement(outer, tag, attributes)


class RandomValues:
    """Draws from Hypothesis, arranged so that failures shrink to first choices and zeros."""

    def __init__(self, draw: st.DrawFn, blanks: tuple[str, ...] = (" ",)) -> None:
        self.draw, self.blanks = draw, blanks

    def pick(self, *options: Any) -> Any:
        """One of several."""
        return options[self.draw(st.integers(0, len(options) - 1))] if len(options) > 1 else options[0]

    def some(self, percent: int) -> bool:
        """True in `percent` of all draws."""
        return self.draw(st.integers(0, 99)) >= 100 - percent

    def whole(self, least: int, most: int) -> int:
        """An integer."""
        return self.draw(st.integers(least, most))

    def decimal(self, least: float, most: float) -> float:
        """A number with three decimals."""
        return round(least + (most - least) * self.draw(st.integers(0, 97)) / 97, 3)

    def number(self, size: float = 1.0) -> str:
        """A number of either sign, as text."""
        number = round(size * self.draw(st.integers(-97, 97)) / 97, 3)
        form = self.draw(st.integers(0, 39))
        return {37: f"{number:+.3f}", 38: f"{number:.3e}", 39: f"{number:g}".replace("0.", ".", 1)}.get(
            form, f"{number:g}"
        )

    def vector(self, count: int, size: float = 1.0, *, zero: bool = True) -> str:
        """Several numbers, as text; with `zero=False` the first is not zero."""
        numbers = [self.number(size) for _ in range(count)]
        if not zero and float(numbers[0]) == 0:
            numbers[0] = "1"
        return self.pick(*self.blanks).join(numbers)

    def positives(self, count: int) -> str:
        """Several numbers above zero."""
        return " ".join(f"{self.decimal(0.05, 2):g}" for _ in range(count))

    def sizes(self, count: int) -> str:
        """Sizes of a solid, m."""
        return " ".join(f"{self.decimal(0.05, 0.3):g}" for _ in range(count))

    def ends(self) -> str:
        """Two points that differ."""
        return f"{self.vector(3)} 2 {self.vector(2)}"
