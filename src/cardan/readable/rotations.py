"""What is known of nine numbers that are a rotation matrix, used where it makes a polynomial shorter.

R R^T = 1      R^T R = 1      R = its matrix of cofactors
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from cardan.readable.polynomial import ONE, Monomial, Number, Polynomial, times

Pair = tuple[int, int]
# A relation `sum of coefficient * product of two entries = result`, the result a monomial or, None, zero.
Relation = tuple[dict[Pair, int], Monomial | None]


@dataclass
class Rotations:
    """Relations between generators, by the pairs of generators in them."""

    relations: dict[Pair, list[Relation]] = field(default_factory=dict)
    members: set[int] = field(default_factory=set)

    def learn(self, R: list[list[int]]) -> None:
        """The generators (3, 3) of one rotation matrix."""
        self.members |= {g for row in R for g in row}
        columns = [list(column) for column in zip(*R, strict=True)]
        for rows in (R, columns):
            for i, j in combinations_with_replacement(range(3), 2):
                self._relate({_pair(rows[i][k], rows[j][k]): 1 for k in range(3)}, ONE if i == j else None)
        for i in range(3):
            for j in range(3):
                a, b, c, d = (i + 1) % 3, (j + 1) % 3, (i + 2) % 3, (j + 2) % 3
                cofactor = {_pair(R[a][b], R[c][d]): 1, _pair(R[a][d], R[c][b]): -1}
                self._relate(cofactor, ((R[i][j], 1),))

    def _relate(self, pairs: dict[Pair, int], result: Monomial | None) -> None:
        for pair in pairs:
            self.relations.setdefault(pair, []).append((pairs, result))

    def reduce(self, a: Polynomial) -> Polynomial:
        """Use relations as long as each makes the sum shorter."""
        if not self.members or len(a) < 2:
            return a
        result = dict(a)
        waiting = list(a)
        while waiting:
            monomial = waiting.pop()
            if monomial in result:
                waiting += self._use(result, monomial)
        return result

    def _use(self, a: Polynomial, monomial: Monomial) -> list[Monomial]:
        """Use the first relation that a term belongs to and that shortens the sum; the terms that changed."""
        own = [(g, p) for g, p in monomial if g in self.members and p > 0]
        pairs = [(g, g) for g, p in own if p > 1]
        pairs += [(g, h) for k, (g, _) in enumerate(own) for h, _ in own[k + 1 :]]
        for pair in pairs:
            for products, result in self.relations.get(pair, ()):
                rest = times(monomial, times(((pair[0], -1),), ((pair[1], -1),)))
                c = a[monomial] * products[pair]
                changes = {times(rest, _product(p)): -sign * c for p, sign in products.items()}
                if result is not None:
                    changes[times(rest, result)] = c
                if _gain(a, changes) > 0:
                    for m, change in changes.items():
                        value = a.get(m, 0) + change
                        if value:
                            a[m] = value
                        else:
                            a.pop(m, None)
                    return list(changes)
        return []


def _gain(a: Polynomial, changes: dict[Monomial, Number]) -> int:
    """How many terms fewer there are after some changes."""
    return sum((m in a) - (a.get(m, 0) + change != 0) for m, change in changes.items())


def _pair(g: int, h: int) -> Pair:
    return (g, h) if g <= h else (h, g)


def _product(pair: Pair) -> Monomial:
    g, h = pair
    return ((g, 2),) if g == h else ((g, 1), (h, 1))
