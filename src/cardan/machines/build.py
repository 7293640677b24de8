"""From a program to machine code of the host: out of the cache, or recorded, printed, compiled and stored."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from cardan.errors import CardanError
from cardan.machines.cache import audited, entry_digest, load_entry, payload_starts, store_entry
from cardan.machines.host import few, host, to_object
from cardan.machines.waiting import doing
from cardan.program.program import Program, record

if TYPE_CHECKING:
    from cardan.machines.printer import Printer
    from cardan.program.program import Recorded

# Characters of IR past which quick code answers the first calls: LLVM takes half a second for so much full code.
LONG_TEXT = 500_000


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
        """The same, but of a long program quick code, and its packed text, of which `full_code` can be made.

        The text is empty where the code is full already.
        """
        what, text = (dtype, lanes), partial(self.text, dtype, lanes)
        code = self._stored(what, text)
        if code is not None:
            return code, b""
        packed = self._stored((*what, "quick"), text) if is_quick_wanted() else None
        if packed is None:
            source = text()
            if not is_quick_wanted() or len(source) <= LONG_TEXT:
                return self._kept(what, source, to_object(source)), b""
            packed = self._kept((*what, "quick"), source, _packed(source))
        (size,) = struct.unpack_from("<Q", packed)
        return packed[8 : 8 + size], packed[8 + size :]

    def keep(self, dtype: str, lanes: int, packed_text: bytes, code: bytes) -> None:
        """Store full code that was made of the text that came with quick code."""
        self._kept((dtype, lanes), unpacked(packed_text), code)

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
        return self._kept(what, source, compile_text(source))

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
        if audited() and facts["text"] != _digest(text()):
            raise CardanError(
                f"{self.program.name}: the cached kernel was compiled from another graph than the one recorded now; "
                "Cardan's keys fail to tell the two apart: run with CARDAN_CACHE=0 and please report it"
            )
        self._operations = facts["operations"]
        return code

    def _kept(self, what: tuple[str | int, ...], source: str, code: bytes) -> bytes:
        """The code, which the cache has now too."""
        facts = json.dumps({"what": what, "operations": self.operations(), "text": _digest(source)}).encode()
        store_entry(self._digest_of(what), struct.pack("<I", len(facts)) + facts + code)
        return code

    def text(self, dtype: str, lanes: int) -> str:
        """What is compiled: LLVM IR of the loop on `lanes` lanes (1 or the host's)."""
        from cardan.machines.llvm.module import VectorType
        from cardan.machines.llvm.printer import LLVMPrinter

        printer: Printer = LLVMPrinter(VectorType(dtype, lanes), few(host().lanes(dtype)))
        recorded = self.recorded()
        with doing(f"printing {sum(self.operations().values()):,} operations"):
            return printer.print_program(self.program, recorded)


def stored() -> Iterator[tuple[str | int, ...]]:
    """What each code in the cache is, as `through_cache` was told."""
    for start in payload_starts(1 << 14):
        with suppress(ValueError, KeyError, TypeError, struct.error):
            (size,) = struct.unpack_from("<I", start)
            yield tuple(json.loads(start[4 : 4 + size])["what"])


def is_quick_wanted() -> bool:
    """False if `CARDAN_QUICK=0` asks for full code from the first call on."""
    return os.environ.get("CARDAN_QUICK", "1") != "0"


def _packed(source: str) -> bytes:
    """Quick code, preceded by its size, and the text."""
    code = to_object(source, quick=True)
    return struct.pack("<Q", len(code)) + code + zlib.compress(source.encode(), 1)


def unpacked(text: bytes) -> str:
    """The text that came with quick code."""
    return zlib.decompress(text).decode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
