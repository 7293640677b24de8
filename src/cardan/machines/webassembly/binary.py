"""An object file of LLVM as a module that WebAssembly loads.

LLVM writes object files in WebAssembly's own format, and numbers functions and addresses as if nothing else were linked
to them. So a single object that needs no other one lacks only its list of exports.

Source: WebAssembly core specification, section 5.5; "WebAssembly Object File Linking" of the tool conventions.
"""

from __future__ import annotations

from collections.abc import Iterator

from cardan.errors import CardanError

HEADER = b"\0asm\x01\0\0\0"
CUSTOM, EXPORT = 0, 7
ORDER = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11)  # of sections in a module, by their numbers
SYMBOL_TABLE, FUNCTION, DATA, SECTION = 8, 0, 1, 3  # a part of the linking section, and kinds of symbols
UNDEFINED, EXPLICIT_NAME = 0x10, 0x40  # flags of a symbol


class _Reader:
    """Reads bytes from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def __bool__(self) -> bool:
        return self.at < len(self.data)

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def whole(self) -> int:
        """An unsigned number in LEB128."""
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def block(self) -> bytes:
        """Bytes after their number."""
        return self.take(self.whole())


def whole(value: int) -> bytes:
    """An unsigned number in LEB128."""
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + whole(rest) if rest else bytes([low])


def block(data: bytes) -> bytes:
    """Bytes after their number."""
    return whole(len(data)) + data


def sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and contents of the sections of an object file or module."""
    reader = _Reader(data)
    if reader.take(len(HEADER)) != HEADER:
        raise CardanError("webassembly: LLVM wrote something else than an object file of WebAssembly")
    while reader:
        number = reader.take(1)[0]
        yield number, reader.block()


def module_of(data: bytes, symbol: str) -> bytes:
    """The module of an object file, with the function `symbol` exported; what only linkers read is left out."""
    found: dict[int, bytes] = {}
    index = None
    for number, content in sections(data):
        if number != CUSTOM:
            found[number] = content
        elif index is None:
            index = _function_index(content, symbol)
    if index is None:
        raise CardanError(f"webassembly: the object file has no function {symbol!r}")
    found[EXPORT] = whole(1) + block(symbol.encode()) + bytes([FUNCTION]) + whole(index)
    return HEADER + b"".join(bytes([number]) + block(found[number]) for number in ORDER if number in found)


def _function_index(custom: bytes, symbol: str) -> int | None:
    """The number of a function, if this custom section is the table of symbols."""
    reader = _Reader(custom)
    if reader.block() != b"linking":
        return None
    reader.whole()  # the version
    while reader:
        kind, table = reader.take(1)[0], _Reader(reader.block())
        if kind == SYMBOL_TABLE:
            return dict(_symbols(table)).get(symbol.encode())
    return None


def _symbols(table: _Reader) -> Iterator[tuple[bytes, int]]:
    """Names and numbers of the functions that are defined."""
    for _ in range(table.whole()):
        kind, flags = table.take(1)[0], table.whole()
        defined = not flags & UNDEFINED
        if kind == DATA:
            table.block()
            if defined:
                table.whole(), table.whole(), table.whole()  # segment, offset, size
            continue
        index = table.whole()
        if kind != SECTION and (defined or flags & EXPLICIT_NAME):
            name = table.block()
            if kind == FUNCTION and defined:
                yield name, index
