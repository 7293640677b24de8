"""Files that appear only when they are complete: written under a temporary name, then moved into place."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cardan.errors import FileError, InputError

# Raised by HDF5 when the operating system reports an error.
SYSTEM_ERRORS = (OSError, RuntimeError)


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str], overwrite: bool) -> Iterator[Path]:
    """Yield a temporary file beside the target; it becomes the target at the end, or is removed if anything fails."""
    part = begin_file(path, overwrite)
    try:
        yield part
        finish_file(part, Path(path), overwrite)
    except FileExistsError:
        raise already_there(path) from None
    except SYSTEM_ERRORS as error:
        raise cannot_write(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def file_path(path: Any) -> Path:
    """The path of a file, given as a string or a path."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"path must be the name of a file, got {path!r}")
    if "\0" in os.fspath(path):
        raise InputError(f"path must be the name of a file, without null characters, got {path!r}")
    return Path(path)


def begin_file(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """Create an empty temporary file beside the target."""
    target = file_path(path)
    if target.is_dir():
        raise FileError(f"{target}: it is a folder; give the name of a file")
    if target.exists() and not overwrite:
        raise already_there(target)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise cannot_write(target, error) from error
    return part


def finish_file(part: Path, target: Path, overwrite: bool) -> None:
    """Flush a temporary file to the disk and move it to the target.

    Without `overwrite` a target that has appeared meanwhile is left alone: `FileExistsError`.
    """
    with open(part, "r+b") as file:
        os.fsync(file.fileno())
    if overwrite:
        os.replace(part, target)
        return
    try:
        os.link(part, target)  # fails if the target exists, which `os.replace` does not
    except FileExistsError:
        raise
    except OSError:  # a file system without links: take the name first
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        os.replace(part, target)
    else:
        part.unlink()


def already_there(path: str | os.PathLike[str]) -> FileError:
    """The error for a file that may not be replaced."""
    return FileError(f"{os.fspath(path)}: there is such a file already; pass overwrite=True to replace it")


def cannot_write(path: str | os.PathLike[str], error: BaseException) -> FileError:
    """The error for a file that could not be written."""
    why = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0] or type(error).__name__
    return FileError(f"{os.fspath(path)}: cannot be written, {why}; is its folder there, writable, and not full?")
