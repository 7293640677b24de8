"""From a program to machine code of the host: out of the cache, or recorded, printed, compiled and stored."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cardan.errors import CardanError
from cardan.machines.cache import audited, entry_digest, load_entry, payload_starts, store_entry
from cardan.machines.host import few, has_library, host, to_object
from cardan.machines.waiting import doing
from cardan.program.program import Program, record
from cardan.program.schedule import Schedule

if TYPE_CHECKING:
    from cardan.machines.printer import Printer
    from cardan.program.graph import Graph
    from cardan.program.march import March
    from cardan.program.program import Recorded

# Characters of IR, tables not counted, past which something quicker answers the first calls: LLVM takes half a second
# for so much full code.
LONG_TEXT = 500_000
LONG_LOOPS = 200_000  # the same of loops over nodes: many of a large mechanism's programs run only once or twice
_LINE = 60  # characters for one value of a graph


class Builder:
    """Makes the loops of one program; records it at most once."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.compiled = program.without_empty_ports()
        self._recorded: Recorded | None = None
        self._operations: dict[str, int] | None = None

    def recorded(self) -> Recorded:
        """What the program recorded: a graph, a schedule or a march."""
        if self._recorded is None:
            with doing("writing its equations"):
                self._recorded = record(self.program)
        return self._recorded

    def operations(self) -> dict[str, int]:
        """How many of each operation one evaluation, or one step of a march, takes."""
        if self._operations is None:
            self._operations = self.recorded().operations()
        return self._operations

    def code(self, dtype: str, lanes: int) -> bytes:
        """Object code of the loop on `lanes` lanes (1 or the host's) of "double" or "float"."""
        return self.through_cache((dtype, lanes), partial(self.text, dtype, lanes), to_object)

    def first_code(self, dtype: str, lanes: int) -> tuple[bytes, bytes]:
        """The same, but of a long program tables or quick code, and the recipe of which `full_code` can be made.

        The recipe is empty where the code is full already.
        """
        what, text = (dtype, lanes), partial(self.text, dtype, lanes)
        code = self._stored(what, text)
        if code is not None:
            return code, b""
        if not is_quick_wanted():
            source = text()
            return self._kept(what, digest(source), to_object(source)), b""
        first = partial(self._first_text, dtype, lanes)
        packed = self._stored((*what, "first"), lambda: first()[0])
        if packed is None:
            source, recipe = first()
            limit = LONG_LOOPS if isinstance(self.recorded(), Schedule) else LONG_TEXT
            if not recipe and _code_length(source) <= limit:
                return self._kept(what, digest(source), to_object(source)), b""
            code = to_object(source, quick=not recipe)
            packed = struct.pack("<Q", len(code)) + code + (recipe or zlib.compress(b"T" + source.encode(), 1))
            packed = self._kept((*what, "first"), digest(source), packed)
        (size,) = struct.unpack_from("<Q", packed)
        return packed[8 : 8 + size], packed[8 + size :]

    def _first_text(self, dtype: str, lanes: int) -> tuple[str, bytes]:
        """The text that LLVM gets first, and where that has tables, the recipe of what it gets later."""
        recorded = _graphs(self.recorded())
        if recorded is None or _LINE * _size(recorded) <= LONG_TEXT:
            return self.text(dtype, lanes), b""
        whole = (self._printer(dtype, lanes), replace(self.compiled, record=_never), recorded)
        return self.text(dtype, lanes, tables=True), zlib.compress(b"G" + pickle.dumps(whole), 1)

    def keep(self, dtype: str, lanes: int, text: str, code: bytes) -> None:
        """Store full code that was made of a recipe; `text` is the digest of its text."""
        self._kept((dtype, lanes), text, code)

    def through_cache(
        self,
        what: tuple[str | int, ...],
        text: Callable[[], str],
        compile_text: Callable[[str], bytes],
        fresh: bool = False,
    ) -> bytes:
        """Code from the cache, or what `compile_text` makes of `text()`; `what` tells it from the program's others.

        With `fresh` it is compiled in any case and replaces what is stored.
        """
        code = None if fresh else self._stored(what, text)
        if code is not None:
            return code
        source = text()
        return self._kept(what, digest(source), compile_text(source))

    def _digest_of(self, what: tuple[str | int, ...]) -> bytes:
        program = self.compiled
        shapes = [[(port.name, port.shape) for port in ports] for ports in (program.inputs, program.outputs)]
        of_host = what[0] in ("double", "float")  # code for another machine has that machine's name first
        return entry_digest(program.key, program.name, shapes, *what, of_host=of_host)

    def _stored(self, what: tuple[str | int, ...], text: Callable[[], str]) -> bytes | None:
        """Code from the cache; None if it has none."""
        payload = load_entry(self._digest_of(what))
        if payload is None:
            return None
        (size,) = struct.unpack_from("<I", payload)
        facts, code = json.loads(payload[4 : 4 + size]), payload[4 + size :]
        if audited() and facts["text"] != digest(text()):
            raise CardanError(
                f"{self.program.name}: the cached kernel was compiled from another graph than the one recorded now; "
                "Cardan's keys fail to tell the two apart: run with CARDAN_CACHE=0 and please report it"
            )
        self._operations = facts["operations"]
        return code

    def _kept(self, what: tuple[str | int, ...], text: str, code: bytes) -> bytes:
        """The code, which the cache has now too; `text` is the digest of its text."""
        facts = json.dumps({"what": what, "operations": self.operations(), "text": text}).encode()
        store_entry(self._digest_of(what), struct.pack("<I", len(facts)) + facts + code)
        return code

    def text(self, dtype: str, lanes: int, tables: bool = False) -> str:
        """What is compiled: LLVM IR of the loop on `lanes` lanes (1 or the host's); `tables`: long graphs as tables."""
        recorded = self.recorded()
        with doing(f"printing {sum(self.operations().values()):,} operations"):
            return self._printer(dtype, lanes, tables).print_program(self.program, recorded)

    def _printer(self, dtype: str, lanes: int, tables: bool = False) -> Printer:
        from cardan.machines.llvm.module import VectorType
        from cardan.machines.llvm.printer import LLVMPrinter

        return LLVMPrinter(VectorType(dtype, lanes), few(host().lanes(dtype)), tables, library=has_library())


def _graphs(recorded: Recorded) -> Graph | March | None:
    """A recording that consists of graphs alone, as such; None for others."""
    from cardan.program.graph import Graph
    from cardan.program.march import March

    if isinstance(recorded, March):
        plain = all(isinstance(piece, Graph) for part, _ in recorded.pieces for piece in part)
        return replace(recorded, parts=tuple(recorded.pieces)) if plain else None
    return recorded if isinstance(recorded, Graph) else None


def _size(recorded: Graph | March) -> int:
    """How many values there are in a recording of graphs."""
    from cardan.program.graph import Graph

    pieces = [recorded] if isinstance(recorded, Graph) else [piece for part, _ in recorded.pieces for piece in part]
    return sum(len(piece.op) for piece in pieces if isinstance(piece, Graph))


def _never() -> March:
    """Stand for the recording of a program that was recorded."""
    raise AssertionError


def stored() -> Iterator[tuple[str | int, ...]]:
    """What each code in the cache is, as `through_cache` was told."""
    for start in payload_starts(1 << 14):
        with suppress(ValueError, KeyError, TypeError, struct.error):
            (size,) = struct.unpack_from("<I", start)
            yield tuple(json.loads(start[4 : 4 + size])["what"])


def is_quick_wanted() -> bool:
    """False if `CARDAN_QUICK=0` asks for full code from the first call on."""
    return os.environ.get("CARDAN_QUICK", "1") != "0"


def _code_length(source: str) -> int:
    """Characters of IR without its tables, which LLVM reads in no time."""
    return sum(len(line) for line in source.split("\n") if not line.startswith("@"))


def text_of(recipe: bytes) -> str:
    """The text of which full code is made."""
    data = zlib.decompress(recipe)
    if data.startswith(b"T"):
        return data[1:].decode()
    printer, program, recorded = pickle.loads(data[1:])  # ours: the cache is sealed, as it holds machine code
    text: str = printer.print_program(program, recorded)
    return text


def is_straight(recipe: bytes) -> bool:
    """Whether what answers meanwhile is quick code, not tables."""
    return zlib.decompressobj().decompress(recipe, 1) == b"T"


def digest(text: str) -> str:
    """What the cache knows a text by."""
    return hashlib.sha256(text.encode()).hexdigest()
