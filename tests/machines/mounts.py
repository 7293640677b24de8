"""Real mounts that are full, read-only or gone, under the cache and under the files that a user asks for.

python -m tests.machines.mounts                  every trial, in a name space of its own (Linux)
python -m tests.machines.mounts cache            only those of the cache

Answers must be right always, a file that was asked for is whole or an error of one sentence, and nothing half-written
stays. Everything is mounted in a name space of users and mounts of its own, which ends with the command.
"""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import numpy as np

ALONE = ("unshare", "--user", "--map-root-user", "--mount")
PAGE = 4096  # of a tmpfs


def why_not():
    """Why the system does not allow such name spaces, or nothing."""
    if sys.platform != "linux":
        return "name spaces are Linux's"
    try:
        tried = subprocess.run(
            [*ALONE, "mount", "-t", "tmpfs", "none", tempfile.gettempdir()], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"{ALONE[0]}: {error.strerror}"
    return tried.stderr.strip().partition("\n")[0] if tried.returncode else ""


# Mounts.


def mount(path, *options):
    """Mount a tmpfs for this user alone."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", ",".join(("mode=0700", *options)), "none", path], check=True)


def remount_read_only(path):
    subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)


def unmount(path):
    subprocess.run(["umount", "-l", path], check=True)


def fill(path, left=0):
    """Write until nothing more goes in, and then make `left` bytes free again."""
    with contextlib.suppress(OSError), open(path / "filling", "wb", buffering=0) as file:
        while True:
            file.write(bytes(PAGE))
    os.truncate(path / "filling", max(0, (path / "filling").stat().st_size - left))


def use_up_inodes(path):
    with contextlib.suppress(OSError):
        for k in range(10_000):
            (path / f"filling{k}").touch()


def enter_own_root():
    """Take an empty root that belongs to this user and has all of the old one in it; an owner unknown here would do."""
    root, here = Path(tempfile.mkdtemp()), os.getcwd()
    mount(root)
    for path in Path("/").iterdir():
        if path.is_symlink():
            (root / path.name).symlink_to(os.readlink(path))
        elif path.is_dir():
            (root / path.name).mkdir()
            subprocess.run(["mount", "--rbind", path, root / path.name], check=True)
    os.chroot(root)
    os.chdir(here)
    for name in ("place", "own"):
        Path("/", name).mkdir(mode=0o700)


def apart(work, *arguments):
    """What `work` returns, a small number, in a process of its own; or the trial ends."""
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        code = 99
        try:
            code = work(*arguments) or 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert code not in (99, -11), "the process failed"
    return code


# The cache.


def recorded(*keys):
    """How often a new process records a graph to get kernels of these keys, whose answers are right."""
    from .test_cache import Counted

    class Long(Counted):
        """The same values from more code than a page of a disk takes."""

        def text(self, x):
            import casadi as ca

            y = super().text(x)
            for k in range(PAGE // 8):
                y = ca.fmax(y, x - 1e9 * (k + 1))
            return y

    def work():
        program = Long()
        for key in keys:
            program.run(key)
        return program.count

    return apart(work)


def use(cache, seal=Path("/own/state/seal")):
    os.environ |= {"CARDAN_CACHE_DIR": str(cache), "CARDAN_SEAL": str(seal)}
    return cache


def use_home(home):
    for name in ("CARDAN_CACHE_DIR", "CARDAN_SEAL", "XDG_CACHE_HOME", "XDG_STATE_HOME", "HOME"):
        os.environ.pop(name, None)
    if home is not None:
        os.environ["HOME"] = str(home)


def said():
    from cardan.machines.cache import report

    return report()


def whole_disk(place):
    """Nothing is wrong: the other trials mean something."""
    mount(place)
    cache = use(place / "cache")
    assert (recorded("a"), recorded("a")) == (1, 0)
    (entry,) = cache.iterdir()
    assert entry.stat().st_size > PAGE


def full_disk(place):
    """Not a byte is free."""
    mount(place, "size=256k")
    cache = use(place / "cache")
    cache.mkdir(mode=0o700)
    fill(place)
    assert (recorded("a"), recorded("a")) == (1, 1)
    assert not list(cache.iterdir())


def disk_full_in_an_entry(place):
    """A page is free, and an entry needs more."""
    mount(place, "size=256k")
    cache = use(place / "cache")
    cache.mkdir(mode=0o700)
    fill(place, left=PAGE)
    assert recorded("a") == 1
    assert not list(cache.iterdir())


def disk_without_inodes(place):
    """Room for bytes, none for names."""
    mount(place, "nr_inodes=20")
    cache = use(place / "cache")
    cache.mkdir(mode=0o700)
    use_up_inodes(place)
    assert recorded("a") == 1
    assert not list(cache.iterdir())


def disk_too_small_for_the_folder(place):
    """The cache's folder itself cannot be made."""
    mount(place, "nr_inodes=3")
    use_up_inodes(place)
    use(place / "deep" / "cache")
    assert recorded("a") == 1
    assert "No space left" in said()


def full_disk_under_the_secret(place):
    """Without a secret nothing is kept."""
    mount(place, "size=256k")
    (place / "state").mkdir(mode=0o700)
    fill(place)
    cache = use(Path("/own/cache"), place / "state" / "seal")
    assert recorded("a") == 1
    assert not list(cache.iterdir()) and not list((place / "state").iterdir())


def read_only_disk(place):
    """What is there is used, what is not is compiled."""
    mount(place)
    use(place / "cache")
    assert recorded("a") == 1
    remount_read_only(place)
    assert (recorded("a"), recorded("b"), recorded("b")) == (0, 1, 1)


def empty_read_only_disk(place):
    """There is no folder, and none can be made."""
    mount(place, "ro")
    use(place / "cache")
    assert (recorded("a"), recorded("a")) == (1, 1)
    assert "Read-only file system" in said()


def disk_gone(place):
    """Between two runs: what was on it is compiled again, in what lies below."""
    mount(place)
    cache = use(place / "cache")
    assert recorded("a") == 1
    unmount(place)
    assert (recorded("a"), recorded("a")) == (1, 0)
    assert cache.exists()


def disk_gone_meanwhile(place):
    """In the middle of a run."""
    from .test_cache import Counted

    mount(place)
    use(place / "cache")
    program = Counted()
    program.run("a")
    unmount(place)
    place.chmod(0o755)
    program.run("a")
    program.run("b")
    assert program.count == 3


def secret_on_a_read_only_disk(place):
    """It is there: that is enough."""
    mount(place)
    use(Path("/own/cache"), place / "seal")
    assert recorded("a") == 1
    remount_read_only(place)
    assert (recorded("a"), recorded("b"), recorded("b")) == (0, 1, 0)


def no_secret_on_a_read_only_disk(place):
    """It cannot be made: nothing is kept, and the report says why."""
    mount(place, "ro")
    cache = use(Path("/own/cache"), place / "seal")
    assert (recorded("a"), recorded("a")) == (1, 1)
    assert not list(cache.iterdir())
    assert "Read-only file system" in said()


def read_only_home(place):
    """A container's, for one."""
    mount(place, "ro")
    use_home(place)
    assert (recorded("a"), recorded("a")) == (1, 1)
    assert "Read-only file system" in said()


def home_of_the_user_list(place):
    """Without HOME the system's list of users tells the home; without that there is no cache."""
    mount(place)
    use_home(None)
    users, ways = Path("/own/users"), Path("/own/ways")
    users.write_text(f"root:x:0:0::{place}:\n")
    ways.write_text("passwd: files\n")  # systemd knows root by itself
    subprocess.run(["mount", "--bind", users, "/etc/passwd"], check=True)
    subprocess.run(["mount", "--bind", ways, "/etc/nsswitch.conf"], check=Path("/etc/nsswitch.conf").exists())
    assert (recorded("a"), recorded("a")) == (1, 0)
    assert (place / ".cache" / "cardan").is_dir()
    users.write_text("")
    assert (recorded("a"), recorded("a")) == (1, 1)
    assert said().startswith("not used")


CACHE = (
    whole_disk, full_disk, disk_full_in_an_entry, disk_without_inodes, disk_too_small_for_the_folder,
    full_disk_under_the_secret, read_only_disk, empty_read_only_disk, disk_gone, disk_gone_meanwhile,
    secret_on_a_read_only_disk, no_secret_on_a_read_only_disk, read_only_home, home_of_the_user_list,
)  # fmt: skip


# Files that were asked for.


def writers():
    """Each way to write a file: its suffix, and a function of the path and whether to overwrite."""
    import cardan as cd
    from cardan.mechanisms import pendulum

    model = pendulum().build()
    run = cd.simulate(model, 1.0, [0.3], [0.0], samples=2000, method="rk4", step=0.001)
    batch = np.tile(run.q, (4, 1, 1))

    def store(path, overwrite):
        with cd.Store(path, model, run.time, 4, overwrite=overwrite) as part:
            part.write(0, batch, batch)
            part.finish()

    return {
        ".nc": lambda path, overwrite: run.save(path, "energy", overwrite=overwrite),
        ".store.nc": store,
        ".csv": lambda path, overwrite: run.to_csv(path, overwrite=overwrite),
        ".parquet": lambda path, overwrite: run.to_parquet(path, overwrite=overwrite),
        ".png": lambda path, overwrite: run.plot(path=path, overwrite=overwrite),
        ".svg": lambda path, overwrite: model.draw(path=path, overwrite=overwrite),
        ".html": lambda path, overwrite: run.page(path, overwrite=overwrite),
        ".yaml": lambda path, overwrite: cd.save(model, path, overwrite=overwrite),
        ".urdf": lambda path, overwrite: cd.save(model, path, overwrite=overwrite),
        ".xml": lambda path, overwrite: cd.save(model, path, overwrite=overwrite),
    }


def write_all(place, room):
    """Write every kind of file anew, and over another, where there is no room, or none in the end."""
    from cardan.errors import FileError

    os.environ["CARDAN_CACHE"] = "0"
    mount(place, "size=16m")
    every = writers()
    for suffix in every:
        (place / f"old{suffix}").write_bytes(b"as before")
    if room is None:
        remount_read_only(place)
    else:
        fill(place, left=room)
    before = set(place.iterdir())
    for suffix, write in every.items():
        for name in ("new", "old"):
            path = place / f"{name}{suffix}"
            try:
                write(path, name == "old")
                assert room, f"{path} was written, and cannot have been"
                path.unlink()
                if name == "old":
                    path.write_bytes(b"as before")
            except FileError as error:
                assert str(path) in str(error) and "\n" not in str(error) and "cannot be written" in str(error), error
            assert set(place.iterdir()) == before, f"{suffix}: {sorted(set(place.iterdir()) ^ before)}"
            assert (place / f"old{suffix}").read_bytes() == b"as before", suffix


def files_on_a_read_only_disk(place):
    """Every file that can be asked for."""
    write_all(place, None)


def files_on_a_full_disk(place):
    """Names can still be made, and nothing written in them."""
    write_all(place, 0)


def files_that_fill_a_disk(place):
    """Some fit, and the others begin to be written."""
    write_all(place, 2 * PAGE)


def command_on_a_full_disk(place):
    """`cardan simulate --out`: a sentence a file, nothing left, status 1; read-only: status 2 before it computes."""
    from cardan import cli

    os.environ["CARDAN_CACHE"] = "0"
    mount(place, "size=256k")

    def command():
        sys.argv = ["cardan", "simulate", "pendulum", "--time", "0.1", "--out", str(place / "run")]
        sys.stdout = io.StringIO()
        os.dup2(os.open("/own/said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        try:
            cli.main()
        except SystemExit as error:
            return error.code

    for spoil, status in ((lambda: fill(place), 1), (lambda: remount_read_only(place), 2)):
        spoil()
        assert apart(command) == status
        told = Path("/own/said").read_text()
        assert "Traceback" not in told and "cannot be written" in " ".join(told.split()), told
        assert [path.name for path in place.iterdir()] == ["filling"]


FILES = (files_on_a_read_only_disk, files_on_a_full_disk, files_that_fill_a_disk, command_on_a_full_disk)


def try_all(trials):
    """Try each, in a process and on a mount of its own; the number of those that failed."""
    enter_own_root()
    os.environ["CARDAN_CACHE"] = "0"
    from tests.machines.test_cache import load_library  # loaded once, for all trials

    load_library()
    os.environ.pop("CARDAN_CACHE")

    failed = 0
    for trial in trials:
        for path in ("/place", "/own"):
            mount(path)  # over what the trial before left
        try:
            apart(trial, Path("/place"))
            result = "right"
        except AssertionError:
            result, failed = "WRONG", failed + 1
        print(f"{trial.__name__.replace('_', ' ')}: {result}", flush=True)
    return failed


def main():
    """Try them all, or say why not."""
    if why := why_not():
        print(f"not tried: this system does not allow name spaces of mounts: {why}")
        return 2
    if "inside" not in sys.argv:
        again = [*ALONE, sys.executable, "-m", "tests.machines.mounts", "inside", *sys.argv[1:]]
        return subprocess.run(again, check=False).returncode
    return int(try_all(CACHE if "cache" in sys.argv else CACHE + FILES) > 0)


if __name__ == "__main__":
    sys.exit(main())
