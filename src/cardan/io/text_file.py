"""Reading and writing the text of a model file; an error says in one sentence why it failed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cardan.atomic_file import whole_file
from cardan.errors import FileError, ModelError, UnknownNameError

SIZE_LIMIT = 16 * 2**20
"""Largest model file that is read, bytes; a robot's is about a tenth of it."""
BODIES = 5000
"""Most bodies in a file; each takes about a millisecond to read. `Mechanism` itself has no such limit."""

STATES = 100_000
"""Largest number of states times joints in a file."""


def read_text(path: Path, limit: int = SIZE_LIMIT) -> str:
    """Read a UTF-8 text file of at most `limit` bytes."""
    try:
        if not path.exists():
            missing = "" if path.parent.is_dir() else f"; its folder {str(path.parent)!r} does not exist"
            raise FileError(f"{path}: there is no such file{missing}")
        if path.is_dir():
            raise FileError(f"{path}: it is a directory, not a model file; name a file in it")
        if not path.is_file():
            raise FileError(f"{path}: it is a device or pipe, not an ordinary file; save the model to a file first")
        size = path.stat().st_size
        if size > limit:
            raise FileError(
                f"{path}: the file has {size / 2**20:.0f} MiB; at most {limit / 2**20:.0f} are read; "
                "a model file refers to meshes, it does not contain them"
            )
        with path.open("rb") as file:
            data = file.read(limit)  # no more, even if the file grows meanwhile
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"{path}: the file cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a null character in the path
        raise FileError(f"{str(path)!r}: not a path of a file: {error}") from None
    if not data or data.isspace():
        raise FileError(f"{path}: the file is empty")
    if data.startswith(b"\x89HDF"):
        raise FileError(f"{path}: it is a saved run, not a model; cd.load_run(path) reads it, and has run.model")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileError(
            f"{path}: line {line}: byte 0x{data[error.start]:02x} is not UTF-8 text; save the file as UTF-8, "
            "or check that it is a model file at all"
        ) from None


def too_many_states(states: int, joints: int) -> str:
    """Why there are too many named states; empty where there are not."""
    if states * joints <= STATES:
        return ""
    return f"it has {states} states of {joints} joints each; at most {STATES} are read, joints of all states together"


def shortened(text: str) -> str:
    """A text in quotes, without its end where it is long."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


@contextmanager
def placing(placed: Callable[[str], str]) -> Iterator[None]:
    """Turn errors of the model into errors of the file: `placed` puts the place in the file before the message."""
    try:
        yield
    except FileError:
        raise
    except (ModelError, UnknownNameError) as error:
        raise FileError(placed(str(error))) from None


def write_text(path: Path, text: str, overwrite: bool = False) -> None:
    """Write a UTF-8 text file completely or not at all."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FileError(f"{path}: {text[error.start]!r} is not a character of UTF-8 text") from None
    with whole_file(path, overwrite) as part:
        part.write_bytes(data)
