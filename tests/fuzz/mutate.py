"""A small mutator of bytes for when atheris is not installed: cut, repeat, splice, flip, and words of the language."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

LONGEST = 20_000


def mutated(seeds: list[bytes], words: tuple[str, ...], number: int) -> Iterator[bytes]:
    """Inputs without end, the same for the same `number`."""
    random = Random(number)
    pieces = [word.encode("utf-8", "surrogateescape") for word in words]
    yield from seeds
    while True:
        data = random.choice(seeds)
        for _ in range(random.choice((1, 1, 2, 3, 6))):
            data = _changed(data, seeds, pieces, random)
        yield data[:LONGEST]


def _changed(data: bytes, seeds: list[bytes], pieces: list[bytes], random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + random.choice((0, 1, 2, 5, 20, 100)))
    kind = random.randrange(6)
    if kind == 0:
        return data[:at] + data[end:]
    if kind == 1:
        return data[:at] + random.choice(pieces) + data[end:]
    if kind == 2:
        return data[:at] + data[at:end] * random.choice((2, 3, 50)) + data[end:]
    if kind == 3:
        other = random.choice(seeds)
        start = random.randrange(len(other) + 1)
        return data[:at] + other[start : start + random.choice((5, 50, 500))] + data[end:]
    if kind == 4:
        return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
    start = random.randrange(len(data) + 1)
    return data[:at] + data[start : start + end - at] + data[end:]
