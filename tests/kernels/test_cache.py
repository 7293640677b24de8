"""Compiled code on disk: found again, checked before use, and never in the way."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cardan
from cardan.kernels import compile_program

from .conftest import make_program

X = np.arange(40.0)
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder of this test's own."""
    place = tmp_path / "cache"
    monkeypatch.setenv("CARDAN_CACHE_DIR", str(place))
    monkeypatch.delenv("CARDAN_CACHE", raising=False)
    return place


class Counted:
    """A program that counts how often it is recorded."""

    def __init__(self, factor=3):
        self.count = 0
        self.factor = factor

    def text(self, x):
        self.count += 1
        return self.factor * x + 1

    def run(self, key="counted"):
        """Compile anew and evaluate on lanes."""
        kernel = compile_program(make_program("counted", {"x": ()}, {"y": ()}, self.text, key=key))
        np.testing.assert_array_equal(kernel(X), self.factor * X + 1)
        return kernel


def entries(cache):
    return sorted(p for p in cache.iterdir() if not p.name.startswith("new-"))


def test_hit_records_nothing(cache):
    """Another kernel of the same key runs the stored code, and knows its operations."""
    program = Counted()
    program.run()
    assert program.count == 1 and len(entries(cache)) == 1
    kernel = program.run()
    assert kernel.operations == {"mul": 1, "add": 1}
    assert program.count == 1
    assert not list(cache.glob("new-*"))


def test_key_name_shape_and_lanes_tell_entries_apart(cache):
    """What differs in content is never confused."""
    program = Counted()
    program.run()
    Counted(4).run(key="other")
    assert len(entries(cache)) == 2
    program.run()(X[0])
    program.run()(X.astype(np.float32))
    assert len(entries(cache)) == 4


@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[:-1],
        lambda b: b[:40],
        lambda b: b"",
        lambda b: b[:-9] + bytes([b[-9] ^ 4]) + b[-8:],
        lambda b: b"X" + b[1:],
        lambda b: b + b"\0",
        lambda b: b[:20] + bytes([b[20] ^ 1]) + b[21:],
    ],
)
def test_damaged_entry_is_rebuilt(cache, damage):
    """Truncated, flipped, lengthened: compiled again, and repaired on disk."""
    program = Counted()
    program.run()
    (entry,) = entries(cache)
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    program.run()
    assert program.count == 2
    program.run()
    assert program.count == 2


def test_entry_of_another_kernel_is_refused(cache):
    """Sound code under the wrong name is not run."""
    Counted(3).run(key="three")
    (three,) = entries(cache)
    Counted(4).run(key="four")
    (four,) = set(entries(cache)) - {three}
    four.write_bytes(three.read_bytes())
    program = Counted(4)
    program.run(key="four")
    assert program.count == 1


@POSIX
def test_folder_is_private(cache):
    """Made for the user alone."""
    Counted().run()
    assert stat.S_IMODE(cache.stat().st_mode) == 0o700


@POSIX
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o755])
def test_open_folder_is_not_used(cache, mode):
    """A folder others can reach is neither read nor written."""
    program = Counted()
    program.run()
    cache.chmod(mode)
    for entry in entries(cache):
        entry.write_bytes(b"not to be read")
    program.run()
    assert program.count == 2
    assert entries(cache)[0].read_bytes() == b"not to be read"


@POSIX
def test_folder_of_another_owner_is_not_used(cache, monkeypatch):
    """Code somebody else may have written is not run."""
    program = Counted()
    program.run()
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    program.run()
    assert program.count == 2


@POSIX
def test_link_to_a_folder_is_not_used(cache, tmp_path):
    """Nor is a link, whose target may change."""
    target = tmp_path / "elsewhere"
    target.mkdir(mode=0o700)
    cache.symlink_to(target)
    Counted().run()
    assert not list(target.iterdir())


def test_unusable_folder(cache):
    """A file where the folder should be, or a disk that refuses to write, costs only time."""
    cache.write_text("a file")
    program = Counted()
    program.run()
    program.run()
    assert program.count == 2


def test_full_disk(cache, monkeypatch):
    """A write that fails half way leaves nothing behind."""

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    Counted().run()
    assert list(cache.iterdir()) == []


def test_off_switch(cache, monkeypatch):
    """CARDAN_CACHE=0 leaves the disk alone."""
    monkeypatch.setenv("CARDAN_CACHE", "0")
    program = Counted()
    program.run()
    program.run()
    assert program.count == 2
    assert not cache.exists()


SCRIPT = """
import sys, numpy as np
from cardan.kernels import Port, Program, compile_program

def record():
    if sys.argv[1] == "warm":
        raise SystemExit("recorded although cached")
    import casadi as ca
    x = ca.SX.sym("x", 3)
    return ca.Function("f", [x], [ca.sin(x) * 2])

kernel = compile_program(Program("f", (Port("x", (3,)),), (Port("y", (3,)),), "shared key", record))
x = np.arange(300.0).reshape(100, 3)
assert abs(kernel(x) - 2 * np.sin(x)).max() < 1e-15
assert abs(kernel(x[0]) - 2 * np.sin(x[0])).max() < 1e-15
assert sys.argv[1] != "warm" or "casadi" not in sys.modules
"""


def start(mode):
    source = str(Path(cardan.__file__).parents[1])
    env = os.environ | {"PYTHONPATH": source}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, mode], env=env, stderr=subprocess.PIPE, text=True)


def test_two_processes_at_once(cache):
    """Both compile, both answer, and a third finds whole entries without even importing CasADi."""
    for modes in (("cold", "cold"), ("warm",)):
        for process in [start(mode) for mode in modes]:
            _, errors = process.communicate(timeout=60)
            assert process.returncode == 0, errors
    assert len(entries(cache)) == 2
