"""Folders that belong to this user alone, and files in them.

A folder is opened once; its owner and mode are checked on the open folder, and files are reached through it. So
exchanging a path between check and use has no effect. On Windows, where Python has no such handles and the system
guards the user's own folders itself, paths are used.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_POSIX = sys.platform != "win32"
_NEW = "new-"  # prefix of the name of a file that is still being written
_LINKS = 40  # most links on one path, as on Linux


def _flags(*names: str) -> int:
    return sum(int(getattr(os, name, 0)) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY", *names))


class NotPrivateError(OSError):
    """A folder or file that somebody else could have written."""


class PrivateFolder:
    """A folder that only this user can enter, at a path that only this user or root can change.

    Args:
        path: the folder, which must not be a link itself.
        make: whether to make it, and folders above it, for this user alone.

    Raises `OSError` if it cannot be opened or made, `NotPrivateError` if it cannot be trusted.

    """

    def __init__(self, path: Path, *, make: bool = False) -> None:
        self.path = path
        if make:
            _make(path)
        self._descriptor: int | None = None
        if _POSIX:
            self._descriptor = os.open(path, _flags("O_RDONLY", "O_DIRECTORY"))
            try:
                _require_own(path, os.fstat(self._descriptor), forbidden=0o077)
                _require_safe_path(path)
            except BaseException:
                os.close(self._descriptor)
                raise
        elif not path.is_dir():
            raise NotADirectoryError(f"{path} is not a folder")

    def __enter__(self) -> PrivateFolder:
        return self

    def __exit__(self, *error: object) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)

    def read(self, name: str, most: int = -1) -> bytes:
        """Content of a file, or its first `most` bytes; the file must belong to this user."""
        descriptor = os.open(self._name(name), _flags("O_RDONLY", "O_NONBLOCK"), dir_fd=self._descriptor)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise NotPrivateError(f"{self.path / name} is not a file")
            _require_own(self.path / name, status, forbidden=0o022)
            return file.read(most)

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all; replace an existing one."""
        at = self._descriptor
        with _NewFile(self, data) as new:
            os.replace(self._name(new), self._name(name), src_dir_fd=at, dst_dir_fd=at)

    def add(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all; `FileExistsError` if it exists."""
        at = self._descriptor
        with _NewFile(self, data) as new:
            os.link(self._name(new), self._name(name), src_dir_fd=at, dst_dir_fd=at)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(self._name(name), dir_fd=self._descriptor)

    def touch(self, name: str, after: float) -> None:
        """Set the time of a file to now, unless it was set within the last `after` seconds."""
        if time.time() - os.stat(self._name(name), dir_fd=self._descriptor).st_mtime > after:
            os.utime(self._name(name), dir_fd=self._descriptor)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Names of files, with the status of each; `is_unfinished` tells which are still being written."""
        for name in os.listdir(self.path if self._descriptor is None else self._descriptor):
            with suppress(FileNotFoundError):
                status = os.stat(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield name, status

    def _name(self, name: str) -> str:
        return name if _POSIX else str(self.path / name)


def is_unfinished(name: str) -> bool:
    """Whether a file is still being written, or was when its process was killed."""
    return name.startswith(_NEW)


class _NewFile:
    """A new file under a temporary name, which is removed at the end of the block."""

    def __init__(self, folder: PrivateFolder, data: bytes) -> None:
        self.folder, self.data, self.name = folder, data, _NEW + os.urandom(8).hex()

    def __enter__(self) -> str:
        at, name = self.folder._descriptor, self.folder._name(self.name)
        try:
            descriptor = os.open(name, _flags("O_WRONLY", "O_CREAT", "O_EXCL"), 0o600, dir_fd=at)
            with os.fdopen(descriptor, "wb") as file:
                file.write(self.data)
        except BaseException:
            self._remove()
            raise
        return self.name

    def __exit__(self, *error: object) -> None:
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            self.folder.remove(self.name)


def _make(path: Path) -> None:
    """Make a folder and those above it, each for this user alone, whatever the umask."""
    if not path.is_dir():
        if path.parent != path:
            _make(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def _require_own(path: Path, status: os.stat_result, forbidden: int) -> None:
    """Refuse what another user owns, or what has any of the permissions `forbidden`."""
    if not _POSIX:
        return
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.getuid():
        raise NotPrivateError(f"{path} belongs to user {status.st_uid}, not to {os.getuid()}, who runs this")
    if mode & forbidden:
        raise NotPrivateError(f"{path} is open to others, mode {mode:04o}; chmod go-rwx it")


def _require_safe_path(path: Path) -> None:
    """Refuse a path that others can redirect: every folder and link on it must belong to this user or root.

    A folder that others can write in is accepted only if it is sticky, as the one for temporary files is, or lies in a
    folder of this user that others cannot enter.
    """
    at, inside, links = Path("/"), False, 0
    left = [*reversed((Path.cwd() / path).parts[1:])]
    while True:
        status = os.lstat(at)
        if status.st_uid not in (0, os.getuid()):
            raise NotPrivateError(f"{at}, on the way to {path}, belongs to user {status.st_uid}")
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > _LINKS:
                raise NotPrivateError(f"{path} goes through more than {_LINKS} links")
            target = Path(os.readlink(at))
            at, inside = (Path("/") if target.is_absolute() else at.parent), False
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)
        else:
            if not inside and _others_write(status) and not status.st_mode & stat.S_ISVTX:
                raise NotPrivateError(f"others can write in {at}, on the way to {path}; chmod go-w it")
            inside = inside or (status.st_uid == os.getuid() and not status.st_mode & 0o011)
        if not left:
            return
        step = left.pop()
        at, inside = (at.parent, False) if step == ".." else (at / step, inside)


def _others_write(status: os.stat_result) -> bool:
    """Whether anybody but the owner can write; the user's own private group does not count."""
    return bool(status.st_mode & 0o002 or (status.st_mode & 0o020 and not _is_own_group(status.st_gid)))


def _is_own_group(number: int) -> bool:
    """Whether a group is the user's private one: many systems make it, with the user's name and no other members."""
    if sys.platform == "win32":
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return number == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
