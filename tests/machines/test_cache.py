"""Compiled code on disk: found again, checked before use, and never in the way."""

import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import cardan
from cardan.errors import CardanError
from cardan.machines import cache as storage
from cardan.machines.cache import _secret, report, secret_file
from cardan.machines.host import has_library, host
from cardan.machines.llvm.library import addresses
from cardan.machines.ufunc.kernel import compile_program

from .conftest import make_program

X = np.arange(40.0)
POSIX = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's")


def load_library():
    """Load the functions that kernels share: entries are those of kernels alone then."""
    if has_library():
        for kind in ("double", "float"):
            for lanes in (1, host().lanes(kind)):
                addresses(f"; needs {kind} {lanes} fetch")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache folder of this test's own, and a secret of its own."""
    load_library()
    place = tmp_path / "cache"
    monkeypatch.setenv("CARDAN_CACHE_DIR", str(place))
    monkeypatch.setenv("CARDAN_SEAL", str(tmp_path / "state" / "seal"))
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


def test_entry_sealed_by_another_is_refused(cache, tmp_path, monkeypatch):
    """Whole, under the right name, in the right folder, of this user: and yet not written by this installation."""
    program = Counted()
    program.run()
    monkeypatch.setenv("CARDAN_SEAL", str(tmp_path / "other" / "seal"))
    program.run()
    assert program.count == 2
    program.run()
    assert program.count == 2


@pytest.mark.parametrize("spoil", [lambda seal: seal.write_bytes(b"short"), lambda seal: seal.unlink()])
def test_lost_secret(cache, tmp_path, monkeypatch, spoil):
    """A new one is made, and what the old one sealed is compiled again."""
    program = Counted()
    program.run()
    spoil(tmp_path / "state" / "seal")
    _secret.cache_clear()
    program.run()
    assert program.count == 2
    assert len((tmp_path / "state" / "seal").read_bytes()) == 32


@POSIX
def test_secret_that_others_can_read_is_not_used(cache, tmp_path):
    """Then nothing is kept."""
    (tmp_path / "state").mkdir(mode=0o755)
    (tmp_path / "state").chmod(0o755)
    program = Counted()
    program.run()
    program.run()
    assert program.count == 2 and entries(cache) == []
    assert "is open to others" in report()


def test_report(cache, monkeypatch):
    """Where it is, or why it is off."""
    Counted().run()
    assert f"{cache}: 1 kernels" in report()
    monkeypatch.setenv("CARDAN_CACHE", "0")
    assert report() == "off: CARDAN_CACHE=0"


def test_audit_finds_keys_that_are_too_short(cache, monkeypatch):
    """`CARDAN_CACHE=check` compares what is cached with what is recorded, and answers as before where it agrees."""
    Counted(3).run(key="same")
    monkeypatch.setenv("CARDAN_CACHE", "check")
    program = Counted(3)
    program.run(key="same")
    assert program.count == 1
    with pytest.raises(CardanError, match="compiled from another graph"):
        Counted(4).run(key="same")


def test_names_and_frames_are_told_apart(cache, monkeypatch):
    """Models of the same equations with other frames, or with bodies under exchanged names, in one cache."""
    monkeypatch.setenv("CARDAN_CACHE", "check")

    def arm(names, reach):
        m = cardan.Mechanism("arm")
        upper = m.body(names[0], mass=1.0, inertia=np.eye(3))
        fore = m.body(names[1], mass=1.0, inertia=np.eye(3))
        m.joint("s", cardan.Revolute(axis=(0, 0, 1)), m.ground, upper)
        m.joint("e", cardan.Revolute(axis=(0, 0, 1)), upper, fore, at=(1.0, 0, 0))
        m.frame("tool", fore, at=(reach, 0, 0))
        return m.build()

    q = np.zeros(2)
    for reach in (1.0, 2.0):
        J = cardan.jacobian(arm("ab", reach), q, "tool")
        np.testing.assert_allclose(J[4], [1 + reach, reach])
    assert cardan.jacobian(arm("ab", 1.0), q, "a")[2].tolist() == [1, 0]
    assert cardan.jacobian(arm("ba", 1.0), q, "a")[2].tolist() == [1, 1]


def test_least_used_go_first(cache, monkeypatch):
    """Past the limit the oldest are removed down to half of it, and what a killed process left an hour ago."""
    Counted().run()
    size = entries(cache)[0].stat().st_size
    for k in range(7):
        (cache / f"old{k}").write_bytes(bytes(size))
        os.utime(cache / f"old{k}", (1000.0 + k, 1000.0 + k))
    for name, age in (("new-lost", 7200), ("new-busy", 60)):
        (cache / name).write_bytes(b"")
        os.utime(cache / name, (time.time() - age,) * 2)
    monkeypatch.setattr(storage, "MOST_BYTES", 6 * size)
    storage._held.clear()
    Counted().run(key="another")
    left = {path.name for path in cache.iterdir()}
    assert {name for name in left if name.startswith("old")} == {"old5", "old6"}
    assert "new-busy" in left and "new-lost" not in left


def test_one_process_stays_below_the_limit(cache, monkeypatch):
    """Also one that writes entry after entry; what was used last stays, and what does not fit at all is not kept."""
    Counted().run(key="first")
    size = entries(cache)[0].stat().st_size
    monkeypatch.setattr(storage, "MOST_BYTES", int(4.5 * size))
    storage._held.clear()
    for k in range(12):
        program = Counted()
        program.run(key=f"entry {k}")
        assert sum(entry.stat().st_size for entry in entries(cache)) <= storage.MOST_BYTES
        program.run(key=f"entry {k}")
        assert program.count == 1
    monkeypatch.setattr(storage, "MOST_BYTES", size // 2)
    program = Counted()
    program.run(key="too large")
    program.run(key="too large")
    assert program.count == 2


def test_what_other_processes_write_counts(cache, monkeypatch):
    """It is seen when this process has written an eighth of the limit."""
    Counted().run(key="first")
    size = entries(cache)[0].stat().st_size
    monkeypatch.setattr(storage, "MOST_BYTES", 24 * size)
    storage._held.clear()
    for k in range(14):
        Counted().run(key=f"entry {k}")
        for other in range(3):  # another process
            (cache / f"other{k} {other}").write_bytes(bytes(size))
        assert sum(entry.stat().st_size for entry in entries(cache)) <= 1.6 * storage.MOST_BYTES


UPGRADE = """
import os, sys
import numpy as np
import cardan as cd
from cardan.mechanisms import double_pendulum
model = double_pendulum().build()
x = [0.1, 0.2]
if sys.argv[1] == "late":
    cd.mass_matrix(model, x)
print("ready", flush=True)
sys.stdin.readline()
print(cd.inverse_dynamics(model, x, x, x)[0])
"""


@pytest.mark.parametrize("when", ["early", "late"])
def test_an_upgrade_while_a_process_runs_is_not_cached(cache, tmp_path, when):
    """Source with old times takes the place of what the process loaded, before or after its first kernel."""
    package = tmp_path / "site" / "cardan"
    shutil.copytree(Path(cardan.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    time.sleep(0.05)  # the clock of the file system
    env = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", UPGRADE, when], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        before = len(entries(cache)) if cache.exists() else 0
        assert (before > 0) == (when == "late")
        source = package / "formulation" / "spatial.py"
        status = source.stat()
        new = tmp_path / "spatial.py"
        new.write_text(source.read_text() + "\n# a new version\n")
        os.utime(new, (status.st_atime, status.st_mtime))
        os.replace(new, source)
        process.communicate("\n", timeout=60)
        assert process.returncode == 0
    assert (len(entries(cache)) if cache.exists() else 0) == before


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


def test_read_only_disk(cache, monkeypatch):
    """What is there is used; what is not is compiled each time."""
    program = Counted()
    program.run()
    real = os.open

    def only_read(path, flags, *rest, **options):
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(30, "Read-only file system", path)
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", only_read)
    program.run()
    assert program.count == 1
    other = Counted(4)
    other.run(key="other")
    other.run(key="other")
    assert other.count == 2


@POSIX
def test_disk_that_takes_half(cache):
    """The system itself stops the write, at 1024 bytes of a file."""
    import resource

    _secret(secret_file())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        Counted().run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(cache.iterdir()) == []


def test_edited_source_is_not_cached(cache, monkeypatch):
    """Text that changed after the process began is not what it runs."""
    monkeypatch.setattr(storage, "LOADED", 0.0)
    storage._source.cache_clear()
    try:
        Counted().run()
        assert not cache.exists()
    finally:
        monkeypatch.undo()
        storage._source.cache_clear()


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
from cardan.program.program import Port, Program
from cardan.machines.ufunc.kernel import compile_program

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
    # on many lanes and on one: the kernel; and the library's sine and moves of rows
    assert len(entries(cache)) == (6 if has_library() else 2)
