"""Identities between the entries of a rotation matrix, applied where they make a polynomial shorter.

R R^T = 1      R^T R = 1      R = its matrix of cofactors
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from cardan.readable.polynomial import ONE, Exact, Monomial, Polynomial, times

Pair = tuple[int, int]
# An identity `sum of coefficient * product of two entries = result`; the result is a monomial, or None for zero.
Identity = tuple[dict[Pair, int], Monomial | None]


@dataclass
class RotationIdentities:
    """Identities between generators, by the pairs of generators in them."""

    identities: dict[Pair, list[Identity]] = field(default_factory=dict)
    members: set[int] = field(default_factory=set)

    def add(self, R: list[list[int]]) -> None:
        """Add those of a rotation matrix, given its generators (3, 3)."""
        self.members |= {g for row in R for g in row}
        columns = [list(column) for column in zip(*R, strict=True)]
        for rows in (R, columns):
            for i, j in combinations_with_replacement(range(3), 2):
                self._add({_pair(rows[i][k], rows[j][k]): 1 for k in range(3)}, ONE if i == j else None)
        for i in range(3):
            for j in range(3):
                a, b, c, d = (i + 1) % 3, (j + 1) % 3, (i + 2) % 3, (j + 2) % 3
                cofactor = {_pair(R[a][b], R[c][d]): 1, _pair(R[a][d], R[c][b]): -1}
                self._add(cofactor, ((R[i][j], 1),))

    def _add(self, pairs: dict[Pair, int], result: Monomial | None) -> None:
        """Add one identity, under each of its pairs."""
        for pair in pairs:
            self.identities.setdefault(pair, []).append((pairs, result))

    def reduce(self, a: Polynomial) -> Polynomial:
        """Apply identities as long as each makes the sum shorter."""
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
        """Apply the first identity that contains a term and shortens the sum; return the terms that changed."""
        own = [(g, p) for g, p in monomial if g in self.members and p > 0]
        pairs = [(g, g) for g, p in own if p > 1]
        pairs += [(g, h) for k, (g, _) in enumerate(own) for h, _ in own[k + 1 :]]
        for pair in pairs:
            for products, result in self.identities.get(pair, ()):
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


def _gain(a: Polynomial, changes: dict[Monomial, Exact]) -> int:
    """By how many terms some changes shorten a sum."""
    return sum((m in a) - (a.get(m, 0) + change != 0) for m, change in changes.items())


def _pair(g: int, h: int) -> Pair:
    """Two generators, sorted."""
    return (g, h) if g <= h else (h, g)


def _product(pair: Pair) -> Monomial:
    """Product of two generators."""
    g, h = pair
    return ((g, 2),) if g == h else ((g, 1), (h, 1))
