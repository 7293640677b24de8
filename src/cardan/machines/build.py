"""From a program to machine code of the host: out of the cache, or recorded, printed, compiled and stored."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from cardan.errors import CardanError
from cardan.machines.cache import audited, entry_digest, load_entry, payload_starts, store_entry
from cardan.machines.host import few, host, to_object
from cardan.program.program import Program, record

if TYPE_CHECKING:
    from cardan.machines.printer import Printer
    from cardan.program.program import Recorded


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
        program = self.compiled
        shapes = [[(port.name, port.shape) for port in ports] for ports in (program.inputs, program.outputs)]
        digest = entry_digest(program.key, program.name, shapes, *what)
        payload = None if fresh else load_entry(digest)
        if payload is not None:
            (size,) = struct.unpack_from("<I", payload)
            facts, code = json.loads(payload[4 : 4 + size]), payload[4 + size :]
            if audited() and facts["text"] != _digest(text()):
                raise CardanError(
                    f"{program.name}: the cached kernel was compiled from another graph than the one recorded now; "
                    "Cardan's keys fail to tell the two apart: run with CARDAN_CACHE=0 and please report it"
                )
            self._operations = facts["operations"]
            return code
        source = text()
        code = compile_text(source)
        facts = json.dumps({"what": what, "operations": self.operations(), "text": _digest(source)}).encode()
        store_entry(digest, struct.pack("<I", len(facts)) + facts + code)
        return code

    def text(self, dtype: str, lanes: int) -> str:
        """What is compiled: LLVM IR of the loop on `lanes` lanes (1 or the host's)."""
        from cardan.machines.llvm.module import VectorType
        from cardan.machines.llvm.printer import LLVMPrinter

        printer: Printer = LLVMPrinter(VectorType(dtype, lanes), few(host().lanes(dtype)))
        return printer.print_program(self.program, self.recorded())


def stored() -> Iterator[tuple[str | int, ...]]:
    """What each code in the cache is, as `through_cache` was told."""
    for start in payload_starts(1 << 14):
        with suppress(ValueError, KeyError, TypeError, struct.error):
            (size,) = struct.unpack_from("<I", start)
            yield tuple(json.loads(start[4 : 4 + size])["what"])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
