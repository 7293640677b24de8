"""Whom a folder of compiled code belongs to, and every way on which somebody else could get at it."""

import os
import socket
import stat
import tempfile
from pathlib import Path

import pytest

from cardan.machines.private import NotPrivateError, PrivateFolder, is_unfinished

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's")
AS_ROOT = pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can give files away")


@pytest.fixture
def base():
    """A folder that everybody can enter; pytest's own are private, and would shelter what is in them."""
    with tempfile.TemporaryDirectory() as path:
        base = Path(path).resolve()
        if any(above.stat().st_uid == os.getuid() and not above.stat().st_mode & 0o011 for above in base.parents):
            pytest.skip("the folder for temporary files is this user's alone")
        base.chmod(0o755)
        yield base


@pytest.fixture
def place(base):
    """A private folder in another."""
    place = base / "above" / "own"
    place.mkdir(parents=True)
    place.chmod(0o700)
    (base / "above").chmod(0o755)
    return place


def refused(path, match):
    with pytest.raises(NotPrivateError, match=match):
        PrivateFolder(path)


def test_files_come_back(place):
    """What is written is read, and a second `add` leaves the first."""
    with PrivateFolder(place) as folder:
        folder.write("a", b"1")
        folder.write("a", b"22")
        folder.add("b", b"3")
        with pytest.raises(FileExistsError):
            folder.add("b", b"4")
        assert (folder.read("a"), folder.read("b")) == (b"22", b"3")
        assert sorted(name for name, _ in folder.files()) == ["a", "b"]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in place.iterdir())


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_made_for_the_user_alone(base, mask):
    """Whatever the umask, with the folders above it."""
    before = os.umask(mask)
    try:
        PrivateFolder(base / "a" / "b", make=True).__exit__(None, None, None)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(p.stat().st_mode) for p in (base / "a", base / "a" / "b")} == {0o700}


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755, 0o701])
def test_open_to_others(place, mode):
    """Not even to look."""
    place.chmod(mode)
    refused(place, "is open to others")


def test_others_can_write_above(place):
    """They could put another folder in its place; not where the one above is sticky."""
    above = place.parent
    above.chmod(0o777)
    refused(place, "others can write in")
    above.chmod(0o1777)
    PrivateFolder(place).__exit__(None, None, None)


def test_sheltered(place):
    """What others cannot enter, they cannot write in, whatever its mode says."""
    place.parent.chmod(0o777)
    place.parent.parent.chmod(0o700)
    PrivateFolder(place).__exit__(None, None, None)


def test_links_on_the_way(place, base):
    """One's own are followed, and what they lead through is judged; the folder itself must not be one."""
    (base / "link").symlink_to(place.parent)
    (base / "relative").symlink_to("above/../link")
    for way in ("link", "relative"):
        PrivateFolder(base / way / "own").__exit__(None, None, None)
    place.parent.chmod(0o777)
    for way in ("link", "relative"):
        refused(base / way / "own", "others can write in")
    (base / "itself").symlink_to(place)
    with pytest.raises(OSError, match="itself"):
        PrivateFolder(base / "itself")
    (base / "turning").symlink_to("turning")
    with pytest.raises(OSError, match="turning"):
        PrivateFolder(base / "turning" / "own")


def test_relative_path(place, monkeypatch):
    """The way to the working folder counts."""
    monkeypatch.chdir(place.parent)
    PrivateFolder(Path("own")).__exit__(None, None, None)
    place.parent.chmod(0o777)
    refused(Path("own"), "others can write in")


@AS_ROOT
def test_of_somebody_else(place, base):
    """Folder, file, folder above, and link above: as another user's they are refused."""
    with PrivateFolder(place) as folder:
        folder.write("a", b"1")
        os.chown(place / "a", 12345, -1)
        with pytest.raises(NotPrivateError, match="belongs to user 12345"):
            folder.read("a")
    (base / "link").symlink_to(place.parent)
    os.chown(base / "link", 12345, -1, follow_symlinks=False)
    refused(base / "link" / "own", r"link, on the way .* belongs to user 12345")
    os.chown(place.parent, 12345, -1)
    refused(place, r"above, on the way .* belongs to user 12345")
    os.chown(place.parent, 0, -1)
    os.chown(place, 12345, -1)
    refused(place, "own belongs to user 12345")


def test_only_files_are_read(place):
    """No link, folder, pipe or socket; none of them makes a reader wait."""
    (place / "real").write_bytes(b"1")
    (place / "link").symlink_to("real")
    (place / "folder").mkdir()
    os.mkfifo(place / "pipe")
    at = os.getcwd()
    os.chdir(place)  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("socket")
    finally:
        os.chdir(at)
    (place / "open").write_bytes(b"1")
    (place / "open").chmod(0o666)
    with PrivateFolder(place) as folder:
        for name in ("link", "folder", "pipe", "socket", "open"):
            with pytest.raises(OSError):
                folder.read(name)


def test_folder_moved_while_in_use(place):
    """What was opened is what is used: a folder put in its place gets nothing and gives nothing."""
    with PrivateFolder(place) as folder:
        folder.write("a", b"mine")
        moved = place.rename(place.with_name("moved"))
        place.mkdir()
        (place / "a").write_bytes(b"theirs")
        folder.write("b", b"mine")
        assert folder.read("a") == b"mine"
    assert (moved / "b").exists() and not (place / "b").exists()


@pytest.mark.parametrize("failing", ["replace", "link"])
def test_nothing_unfinished_is_left(place, monkeypatch, failing):
    """Not by an error, nor by an interruption."""
    for error in (OSError(28, "No space left on device"), KeyboardInterrupt()):

        def fail(*_, error=error, **__):
            raise error

        monkeypatch.setattr(os, failing, fail)
        with PrivateFolder(place) as folder, pytest.raises(type(error)):
            (folder.write if failing == "replace" else folder.add)("a", b"1")
        assert list(place.iterdir()) == []
    assert is_unfinished("new-1") and not is_unfinished("a")
