"""Folders that belong to this user alone, and files in them.

A folder is opened once and its owner and mode are read from what was opened; files are then reached through it. So a
path that somebody changes between the check and the use leads nowhere. On Windows, which has no such handles in Python
and guards the user's own folders itself, paths are used.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_POSIX = sys.platform != "win32"
_NEW = "new-"  # begins the name of a file that is still being written
_LINKS = 40  # on one path, as Linux has it


def _flags(*names: str) -> int:
    return sum(int(getattr(os, name, 0)) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY", *names))


class NotPrivateError(OSError):
    """A folder or file that somebody else may have written."""


class PrivateFolder:
    """A folder that only this user can enter, at a place that only this user or root can change.

    Args:
        path: the folder, which must not be a link itself.
        make: whether to make it, and folders above it, for this user alone.

    Raises `OSError` where it cannot be had, `NotPrivateError` where it cannot be trusted.

    """

    def __init__(self, path: Path, *, make: bool = False) -> None:
        self.path = path
        if make:
            _make(path)
        self._descriptor: int | None = None
        if _POSIX:
            self._descriptor = os.open(path, _flags("O_RDONLY", "O_DIRECTORY"))
            try:
                _require_own(path, os.fstat(self._descriptor), unseen=0o077)
                _require_safe_way(path)
            except BaseException:
                os.close(self._descriptor)
                raise
        elif not path.is_dir():
            raise NotADirectoryError(f"{path} is not a folder")

    def __enter__(self) -> PrivateFolder:
        """Use it in a `with` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    def read(self, name: str) -> bytes:
        """All of a file that is this user's own."""
        descriptor = os.open(self._name(name), _flags("O_RDONLY", "O_NONBLOCK"), dir_fd=self._descriptor)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise NotPrivateError(f"{self.path / name} is not a file")
            _require_own(self.path / name, status, unseen=0o022)
            return file.read()

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all, in place of one that is there."""
        at = self._descriptor
        with _Written(self, data) as new:
            os.replace(self._name(new), self._name(name), src_dir_fd=at, dst_dir_fd=at)

    def add(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all, unless there is one: then `FileExistsError`."""
        at = self._descriptor
        with _Written(self, data) as new:
            os.link(self._name(new), self._name(name), src_dir_fd=at, dst_dir_fd=at)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(self._name(name), dir_fd=self._descriptor)

    def touch(self, name: str, after: float) -> None:
        """Note that a file is in use, unless that was noted within the last `after` seconds."""
        if time.time() - os.stat(self._name(name), dir_fd=self._descriptor).st_mtime > after:
            os.utime(self._name(name), dir_fd=self._descriptor)

    def files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Names of files, and what the system knows of each; `remains` tells which of them nobody finished."""
        for name in os.listdir(self.path if self._descriptor is None else self._descriptor):
            with suppress(FileNotFoundError):
                status = os.stat(self._name(name), dir_fd=self._descriptor, follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    yield name, status

    def _name(self, name: str) -> str:
        return name if _POSIX else str(self.path / name)


def remains(name: str) -> bool:
    """Whether a file is one that was being written: a process that was killed leaves it."""
    return name.startswith(_NEW)


class _Written:
    """A new file on the disk, under a name of its own until the end of the block."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        with suppress(OSError):
            self.folder.remove(self.name)


def _make(path: Path) -> None:
    """Make a folder and those above it, each for this user alone whatever the umask."""
    if not path.is_dir():
        if path.parent != path:
            _make(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def _require_own(path: Path, status: os.stat_result, unseen: int) -> None:
    """Owned by this user, and with none of the permissions `unseen`."""
    if not _POSIX:
        return
    mode = stat.S_IMODE(status.st_mode)
    if status.st_uid != os.getuid():
        raise NotPrivateError(f"{path} belongs to user {status.st_uid}, not to {os.getuid()}, who runs this")
    if mode & unseen:
        raise NotPrivateError(f"{path} is open to others, mode {mode:04o}; chmod go-rwx it")


def _require_safe_way(path: Path) -> None:
    """Only this user and root can change where a path leads: every folder and link on it is theirs.

    A folder that others can write in is passed only where it is sticky, as the one for temporary files is, or lies in
    one of this user's that others cannot enter.
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
    """Whether anybody but the owner can write; members of the user's own private group are nobody else."""
    return bool(status.st_mode & 0o002 or (status.st_mode & 0o020 and not _is_own_group(status.st_gid)))


def _is_own_group(number: int) -> bool:
    """The group that many systems make for each user: by the user's name, without other members."""
    if sys.platform == "win32":
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()), grp.getgrgid(number)
    except KeyError:
        return False
    return number == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
