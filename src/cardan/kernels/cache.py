"""Compiled code on disk, found by the content it was compiled from.

An entry is a magic, the digest of everything that shaped the code, the digest of the payload, and the
payload. Loading machine code is running it, so the folder must be private to the user and an entry is checked
before use. Whatever goes wrong with the disk, the caller compiles in memory: the cache never fails a call.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

from cardan.kernels.machine import host

_MAGIC = b"cardan kernel 1\n"
_DIGEST = 32


def folder() -> Path:
    """Where entries lie: `CARDAN_CACHE_DIR`, or `cardan` in the user's cache folder."""
    if path := os.environ.get("CARDAN_CACHE_DIR"):
        return Path(path)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "cardan" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cardan"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cardan"


def enabled() -> bool:
    """False when `CARDAN_CACHE=0` switches the cache off."""
    return os.environ.get("CARDAN_CACHE", "1") != "0"


@cache
def _producer() -> bytes:
    """Digest of what turns a graph into code: this package's source, its tools, the processor."""
    import llvmlite
    import numpy

    seal = hashlib.sha256()
    for source in sorted(Path(__file__).parent.glob("*.py")):
        seal.update(source.name.encode() + b"\0" + source.read_bytes())
    h = host()
    seal.update(
        repr((numpy.__version__, llvmlite.__version__, h.triple, h.cpu, h.features, _casadi_version())).encode()
    )
    return seal.digest()


def _casadi_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("casadi")
    except PackageNotFoundError:
        return ""


def entry_digest(*parts: object) -> bytes:
    """Digest of what identifies one piece of code, `parts` being strings and numbers."""
    return hashlib.sha256(_producer() + json.dumps(parts).encode()).digest()


def _is_private(path: Path) -> bool:
    """Owned by this user and writable by nobody else; Windows guards the user's own folders itself."""
    if sys.platform == "win32":
        return path.is_dir()
    try:
        status = path.stat(follow_symlinks=False)
    except OSError:
        return False
    others = stat.S_IMODE(status.st_mode) & 0o077
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not others


def load_entry(digest: bytes) -> bytes | None:
    """The payload stored under `digest`, or None where there is none to trust."""
    place = folder()
    if not enabled() or not _is_private(place):
        return None
    try:
        entry = (place / digest.hex()).read_bytes()
    except OSError:
        return None
    head = len(_MAGIC) + 2 * _DIGEST
    payload = entry[head:]
    seal = hashlib.sha256(payload).digest()
    return payload if entry[:head] == _MAGIC + digest + seal else None


def store_entry(digest: bytes, payload: bytes) -> None:
    """Store `payload` under `digest`, whole or not at all; do nothing where the folder cannot be used."""
    place = folder()
    if not enabled():
        return
    import tempfile

    temporary = None
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(place):
            return
        handle, temporary = tempfile.mkstemp(dir=place, prefix="new-")
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + digest + hashlib.sha256(payload).digest() + payload)
        os.replace(temporary, place / digest.hex())
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
