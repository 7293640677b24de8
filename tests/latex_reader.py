"""Reads the LaTeX of the textbook as a person would, with numbers for its letters: a check of what is printed.

Sums of products of factors; `x` binds less than a product and more than a sum. Vectors are columns. A scalar added to a
square matrix means that multiple of the unit matrix.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from cardan.textbook.written import skew, symbol

PARTS = re.compile(
    r"\\left\||\\right\||\\left\(|\\right\)|\\frac|\\tfrac|\\widetilde|\\times\^\{\*\}|\\times|\\cdot|\\\\|&|\\begin\{bmatrix\}|"
    r"\\end\{bmatrix\}|\^\{(?:T|-1|2)\}|[-+{}]|\d+(?:\.\d+)?|\s+"
)


TURN = np.array([[0.0, -1.0], [1.0, 0.0]])  # K x in the plane


def tilde(letter: str) -> str:
    """The letter with a tilde, as the textbook writes it."""
    return skew(symbol(letter, (3,), False)).latex()


def cross_matrix(a: np.ndarray) -> np.ndarray:
    x, y, z = a.ravel()
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


class Reader:
    """One formula, token by token; `letters` has a matrix (n, m) for every letter as it is printed."""

    def __init__(self, text: str, letters: Mapping[str, np.ndarray]) -> None:
        self.letters = dict(letters)
        for letter, value in letters.items():
            if value.shape == (3, 1):
                self.letters[tilde(letter)] = cross_matrix(value)
            elif value.shape == (2, 1):
                self.letters[tilde(letter)] = TURN @ value
        self.letters.setdefault(r"\tilde{K}", TURN)
        self.letters.setdefault("I", np.eye(2))  # AT's unit matrix
        self.tokens = list(self._tokens(text))
        self.at = 0

    def _tokens(self, text: str) -> list[str]:
        by_length = sorted(self.letters, key=len, reverse=True)
        found, at = [], 0
        while at < len(text):
            letter = next((x for x in by_length if text.startswith(x, at)), None)
            if letter is None:
                if re.match(r"K \\(times|cdot)", text[at:]):
                    letter = "K"
                else:
                    m = PARTS.match(text, at)
                    assert m, f"cannot read {text[at : at + 40]!r}"
                    letter = m[0]
            if letter.strip():
                found.append(letter)
            at += len(letter)
        return found

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    @property
    def is_normal(self) -> bool:
        """Whether the unit normal of the plane comes next, which only stands in products."""
        return self.next == "K" and "K" not in self.letters

    def take(self, expected: str = "") -> str:
        token = self.next
        assert not expected or token == expected, f"{expected!r} expected, found {token!r}"
        self.at += 1
        return token

    def value(self) -> np.ndarray:
        found = self.sum()
        assert not self.next, f"left over: {self.tokens[self.at :]}"
        return found

    def sum(self) -> np.ndarray:
        if self.next == "-":
            self.take()
            total = -self.cross()
        else:
            total = self.cross()
        while self.next in ("+", "-"):
            sign = 1.0 if self.take() == "+" else -1.0
            total = added(total, sign * self.cross())
        return total

    def cross(self) -> np.ndarray:
        if self.is_normal:
            return self.normal()
        a = self.product()
        if self.next == r"\cdot":
            self.take()
            return a.T @ self.product()
        if self.next.startswith(r"\times"):
            dual = self.take() != r"\times"
            if len(a) == 3:
                return cross_matrix(a) @ self.product()
            w, u = cross_matrix(a[:3]), cross_matrix(a[3:])
            matrix = np.block([[w, np.zeros((3, 3))], [u, w]])
            matrix = -matrix.T if dual else matrix
            return matrix if self.next == r"\right)" else matrix @ self.product()
        return a

    def normal(self) -> np.ndarray:
        """`K x a`, or `K . (a x b)`."""
        self.take("K")
        if self.take() == r"\times":
            a = self.product()
            return np.array([-a[1], a[0]])
        self.take(r"\left(")
        a = self.product()
        self.take(r"\times")
        b = self.product()
        self.take(r"\right)")
        rest = np.array([[a[0, 0] * b[1, 0] - a[1, 0] * b[0, 0]]])
        return rest if self.ends() else multiplied(rest, self.product())

    def ends(self) -> bool:
        return (
            self.next in ("", "+", "-", "}", "&", r"\\", r"\right)", r"\end{bmatrix}")
            or self.is_normal
            or (self.next.startswith((r"\times", r"\right", r"\cdot")))
        )

    def product(self) -> np.ndarray:
        total = self.factor()
        while not self.ends():
            total = multiplied(total, self.factor())
        if self.is_normal:
            total = multiplied(total, self.normal())
        return total

    def factor(self) -> np.ndarray:
        found = self.atom()
        while self.next.startswith("^{"):
            power = self.take()[2:-1]
            found = {"T": lambda x: x.T, "-1": np.linalg.inv, "2": lambda x: x @ x}[power](found)
        return found

    def atom(self) -> np.ndarray:
        token = self.take()
        if token in self.letters:
            return self.letters[token]
        if token == r"\left(":
            found = self.sum()
            self.take(r"\right)")
            return found
        if token in (r"\frac", r"\tfrac"):
            above, below = self.group(), self.group()
            return above / below[0, 0]
        if token == r"\left|":
            found = np.array([[np.linalg.norm(self.sum())]])
            self.take(r"\right|")
            return found
        if token == r"\widetilde":
            found = self.group()
            return cross_matrix(found) if len(found) == 3 else TURN @ found
        if token == r"\begin{bmatrix}":
            return self.matrix()
        return np.array([[float(token)]])

    def group(self) -> np.ndarray:
        self.take("{")
        found = self.sum()
        self.take("}")
        return found

    def matrix(self) -> np.ndarray:
        rows: list[list[np.ndarray | None]] = [[]]
        while True:
            empty = self.next == "0"
            part = self.sum()
            rows[-1].append(None if empty else part)
            token = self.take()
            if token == r"\end{bmatrix}":
                return assembled(rows)
            if token == r"\\":
                rows.append([])


def assembled(rows: list[list[np.ndarray | None]]) -> np.ndarray:
    """Blocks; a printed 0 is as high as its row and as wide as its column."""
    heights = [next(len(part) for part in row if part is not None) for row in rows]
    widths = [next(column[k].shape[1] for column in rows if column[k] is not None) for k in range(len(rows[0]))]  # type: ignore[union-attr]
    return np.block(
        [
            [np.zeros((h, w)) if part is None else part for w, part in zip(widths, row, strict=True)]
            for h, row in zip(heights, rows, strict=True)
        ]
    )


def multiplied(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a * b if 1 in (a.size, b.size) else a @ b


def added(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.shape == (1, 1) and b.shape[0] == b.shape[1]:
        a = a * np.eye(len(b))
    elif b.shape == (1, 1) and a.shape[0] == a.shape[1]:
        b = b * np.eye(len(a))
    assert a.shape == b.shape, f"{a.shape} and {b.shape} cannot be added"
    return a + b


def read(text: str, letters: Mapping[str, np.ndarray]) -> np.ndarray:
    """The value (n, m) of a formula."""
    return Reader(text, letters).value()
