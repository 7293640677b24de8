"""Compiled code on disk, found by the content it was compiled from.

Loading machine code means running it. So the folder must be private to the user, and an entry carries a seal: a keyed
digest of its name and its content, made with a secret of this user that lies in another folder. An entry that
something else wrote, that belongs to another kernel, or that is incomplete is not loaded (docs/decisions/0019). If the
disk fails, the caller compiles in memory: the cache never makes a call fail.

`python -m cardan.machines` tells where the cache is, and why it is not used if it is not.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from cardan.load_time import LOADED
from cardan.machines.host import host
from cardan.machines.private import PrivateFolder, is_unfinished

_MAGIC = b"cardan kernel 2\n"
_DIGEST = 32

MOST_BYTES = 1 << 30  # limit of the folder; beyond it the least recently used entries are removed, down to half
_FORGOTTEN = 3600  # s: a file that is still unfinished after this was abandoned
_RECENT = 86400  # s: an entry used within this is not marked as used again
_TICK = 0.02  # s: file systems take their times from a clock that is at most this much behind


def folder() -> Path:
    """Where entries lie: `CARDAN_CACHE_DIR`, or `cardan` in the user's cache folder."""
    if path := os.environ.get("CARDAN_CACHE_DIR"):
        return Path(path)
    if sys.platform == "win32":
        return _local_data() / "cardan" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cardan"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cardan"


def secret_file() -> Path:
    """Where the secret lies: `CARDAN_SEAL`, or a file in the user's folder for the state of programs."""
    if path := os.environ.get("CARDAN_SEAL"):
        return Path(path)
    if sys.platform == "win32":
        return _local_data() / "cardan" / "seal"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "cardan" / "seal"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "cardan" / "seal"


def _local_data() -> Path:
    return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")


def enabled() -> bool:
    """False if `CARDAN_CACHE=0` switches the cache off, or if the source is not what this process runs."""
    return os.environ.get("CARDAN_CACHE", "1") != "0" and _source() is not None


def audited() -> bool:
    """True if `CARDAN_CACHE=check` asks to compare every entry with what would be compiled now."""
    return os.environ.get("CARDAN_CACHE") == "check"


_DESCRIBING = ("io", "commands", "mechanisms", "data", "__pycache__")


_ROOT = Path(__file__).parents[1]


@cache
def _source() -> bytes | None:
    """Digest of this package's source, without the folders that describe mechanisms and write no graphs or code.

    None if the source is not what this process runs: it is missing from a bundle, or was written after the start.
    """
    seal = hashlib.sha256()
    try:
        sources = _sources()
        for source in sources:
            with open(source, "rb") as file:
                text = file.read()
            name = source[len(str(_ROOT)) + 1 :].replace(os.sep, "/")
            seal.update(f"{name} {len(text)}\n".encode() + text)
    except OSError:
        return None
    return seal.digest() if sources and _is_as_loaded() else None


def source_digest() -> str:
    """Hex digest of this package's source, by which results of another version are recognised; empty if unknown."""
    found = _source()
    return "" if found is None else found.hex()[:16]


def _sources() -> list[str]:
    """The files whose text decides what is compiled."""
    found = []
    for folder_name, rooms, files in os.walk(_ROOT):
        if folder_name == str(_ROOT):
            rooms[:] = [room for room in rooms if room not in _DESCRIBING]
        found += [os.path.join(folder_name, file) for file in files if file.endswith(".py")]
    return sorted(found)


def _is_as_loaded() -> bool:
    """Whether no source file was written since this process began to load Cardan.

    An upgrade may give its files old times of modification, but the system sets the time of their last change. Parts of
    Cardan are loaded late: after an upgrade a process may run old and new ones together. Looking at all files takes
    milliseconds, so it is done where a module was loaded since the last look, or a folder was changed.
    """
    try:
        folders = tuple(os.stat(folder).st_mtime_ns for folder in _folders())
        return _are_files_older(LOADED - _TICK, len(sys.modules), folders)
    except OSError:
        return False


@cache
def _folders() -> tuple[str, ...]:
    """The folders of the source."""
    return tuple(sorted({os.path.dirname(source) for source in _sources()}))


@lru_cache(maxsize=1)
def _are_files_older(began: float, modules: int, folders: tuple[int, ...]) -> bool:
    """Whether every source file is older than a time; `modules` and `folders` tell when to look again."""
    times = [os.stat(source) for source in _sources()]
    return all(max(status.st_mtime, status.st_ctime) < began for status in times)


@cache
def _producer(of_host: bool) -> bytes:
    """Digest of all that turns a program into code: this package, its tools, and for the host's code its processor.

    Code for another machine, such as a card, is found without loading LLVM, which takes 20 to 50 ms.
    """
    import llvmlite
    import numpy

    tools: tuple[object, ...] = (
        numpy.__version__,
        llvmlite.__version__,
        _folders_of("llvmlite"),
        _folders_of("casadi"),
    )
    if of_host:
        import llvmlite.binding

        h = host()
        tools += (llvmlite.binding.llvm_version_info, h.triple, h.cpu, h.features)
    return hashlib.sha256(repr((_source(), tools)).encode()).digest()


def _folders_of(package: str) -> str:
    """A package's version, read from the name of its installation folder; `importlib.metadata` would take 10 ms."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    return " ".join(sorted(path.name for path in Path(spec.origin).parents[1].glob(f"{package}-*.dist-info")))


def entry_digest(*parts: object, of_host: bool = True) -> bytes:
    """Digest of what identifies one piece of code, `parts` being strings and numbers."""
    return hashlib.sha256(_producer(of_host) + json.dumps(parts).encode()).digest()


def load_entry(digest: bytes) -> bytes | None:
    """The payload stored under `digest`, or None if there is none that can be trusted."""
    if not enabled():
        return None
    name = digest.hex()
    try:
        with PrivateFolder(folder()) as place:
            entry = place.read(name)
            payload = entry[len(_MAGIC) + _DIGEST :]
            if not hmac.compare_digest(entry, _sealed(digest, payload)):
                return None
            with suppress(OSError):
                place.touch(name, _RECENT)
            return payload
    except (OSError, RuntimeError):  # RuntimeError: there is no home folder
        return None


def store_entry(digest: bytes, payload: bytes) -> None:
    """Store `payload` under `digest`, whole or not at all; do nothing if the folder cannot be used."""
    if not enabled() or not _is_as_loaded():
        return
    with suppress(OSError, RuntimeError), PrivateFolder(folder(), make=True) as place:
        entry = _sealed(digest, payload)
        if _make_room(place, len(entry)):
            place.write(digest.hex(), entry)


def payload_starts(most: int) -> Iterator[bytes]:
    """The first `most` bytes of every payload stored, unchecked: for reports, never to be run."""
    head = len(_MAGIC) + _DIGEST
    with suppress(OSError, RuntimeError), PrivateFolder(folder()) as place:
        for name, _ in place.files():
            with suppress(OSError):
                entry = b"" if is_unfinished(name) else place.read(name, head + most)
                if entry.startswith(_MAGIC):
                    yield entry[head:]


def _sealed(digest: bytes, payload: bytes) -> bytes:
    """An entry: the mark of its format, the seal, the payload."""
    seal = hmac.digest(_secret(secret_file()), _MAGIC + digest + payload, "sha256")
    return _MAGIC + seal + payload


@cache
def _secret(path: Path) -> bytes:
    """The user's secret, made on first use."""
    with PrivateFolder(path.parent, make=True) as place:
        new = os.urandom(_DIGEST)
        try:
            found = place.read(path.name)
        except FileNotFoundError:
            with suppress(FileExistsError):  # another process was first
                place.add(path.name, new)
            found = place.read(path.name)
        if len(found) != _DIGEST:  # the disk has failed; entries sealed with the old secret are lost
            place.write(path.name, new)
            found = place.read(path.name)
        return found


_held: dict[Path, tuple[int, int]] = {}  # for each folder its size when last looked at, and what was written since


def _make_room(place: PrivateFolder, size: int) -> bool:
    """Whether an entry of `size` bytes may be written; the folder is tidied first if need be.

    Other processes write too: what they have written counts when this one looks again, after an eighth of the limit.
    """
    found, written = _held.get(place.path, (MOST_BYTES, 0))
    if found + written + size > MOST_BYTES or written > MOST_BYTES // 8:
        found, written = _tidy(place, size), 0
    if found + size > MOST_BYTES:
        return False
    _held[place.path] = found, written + size
    return True


def _tidy(place: PrivateFolder, size: int) -> int:
    """Remove abandoned files; if `size` more bytes pass the limit, also the least recently used; the size left."""
    files = sorted(place.files(), key=lambda file: file[1].st_mtime)
    now, total = time.time(), sum(status.st_size for _, status in files)
    room = total if total + size <= MOST_BYTES else min(MOST_BYTES // 2, MOST_BYTES - size)
    for name, status in files:
        abandoned = is_unfinished(name) and now - status.st_mtime > _FORGOTTEN
        if abandoned or total > room:
            place.remove(name)
            total -= status.st_size
    return total


def report() -> str:
    """Where the cache is and what it holds, or why it is not used; one line."""
    if not enabled():
        return (
            "off: Cardan's source files are missing, or were edited after this process started"
            if _source() is None
            else "off: CARDAN_CACHE=0"
        )
    try:
        _secret(secret_file())
        with PrivateFolder(folder(), make=True) as place:
            sizes = [status.st_size for name, status in place.files() if not is_unfinished(name)]
        return f"{folder()}: {len(sizes)} kernels, {sum(sizes) / 1e6:.1f} MB; sealed with {secret_file()}"
    except (OSError, RuntimeError) as error:
        return f"not used: {error}"
