"""Runs in files: what is saved is what is loaded, whole or not at all, and large batches stay out of memory."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import cardan as cd
from cardan import mechanisms
from cardan.results.trajectory.files import NetCDF

pytestmark = pytest.mark.usefixtures("quick_code")


@cache
def pendulum() -> cd.Model:
    return mechanisms.pendulum().build()


def swings(systems: int, n: int = 11) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times and states of pendulums, each with its own amplitude."""
    t = np.linspace(0, 1, n)
    q = np.arange(1, systems + 1)[:, None, None] * np.cos(3 * t)[:, None]
    return t, q, -np.arange(1, systems + 1)[:, None, None] * 3 * np.sin(3 * t)[:, None]


@cache
def one() -> cd.Trajectory:
    t, q, v = swings(1)
    return cd.Trajectory(pendulum(), t, q[0], v[0], method="by hand", settings={"rtol": 1e-6, "steps": np.int64(3)})


def padded() -> cd.Trajectory:
    """Three systems, the second of which stopped early at an event."""
    t, q, v = swings(3)
    time = np.tile(t, (3, 1))
    for array in (time, q, v):
        array[1, 6:] = np.nan
    event = cd.EventRecord("stop", 1, float(time[1, 5]), q[1, 5], v[1, 5])
    words = ["", "stopped at 'stop'", ""]
    return cd.Trajectory(pendulum(), time, q, v, tau=[[0.1], [0.2], [0.3]], events=[event], outcome=words)


def same(a: cd.Trajectory, b: cd.Trajectory) -> None:
    for name in ("time", "q", "v", "tau"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert np.array_equal(a.outcome, b.outcome) and a.settings == b.settings and a.statistics == b.statistics
    assert (a.method, a.formulation) == (b.method, b.formulation)
    for mine, yours in zip(a.events, b.events, strict=True):
        assert (mine.name, mine.time) == (yours.name, yours.time)
        assert np.ravel(mine.system).tolist() == np.ravel(yours.system).tolist()
        np.testing.assert_array_equal(mine.q, yours.q)


@pytest.mark.parametrize("make", [one, padded])
def test_what_is_saved_is_loaded(tmp_path: Path, make: Any) -> None:
    run, path = make(), tmp_path / "run.nc"
    run.save(path, "energy", "reactions")
    assert os.listdir(tmp_path) == ["run.nc"]
    for model in (None, pendulum()):
        back = cd.load_run(path, model)
        same(back, run)
        np.testing.assert_array_equal(back.energy, run.energy)
    joint = pendulum().joint_names[0]
    alone = cd.load_run(path)
    np.testing.assert_array_equal(alone.reaction(joint), run.reaction(joint))
    np.testing.assert_array_equal(alone.coordinate(joint), run.coordinate(joint))
    np.testing.assert_array_equal(alone.power, run.power)  # with the model in the file
    assert alone.model.key == run.model.key and alone.names() == run.names()
    part, own = (cd.load_run(path)[1], run[1]) if run.batch else (alone, run)
    np.testing.assert_array_equal(part.power, own.power)
    part.save(tmp_path / "again.nc")
    np.testing.assert_array_equal(cd.load_run(tmp_path / "again.nc").momentum, own.momentum)


def test_a_model_that_cannot_be_saved_is_told(tmp_path: Path) -> None:
    """A kind of force of one's own that is not registered: what is stored is there, the rest needs the model."""
    kind = cd.ForceKind("own pull", "joint", lambda f, t, q, v: -q)
    m = mechanisms.pendulum()
    m.force("pull", kind, m.joints[0].name)
    t, q, v = swings(1)
    run, path = cd.Trajectory(m.build(), t, q[0], v[0]), tmp_path / "run.nc"
    with pytest.warns(
        RuntimeWarning, match=r"run.nc: the model is not in the file: .*own pull.*load_run\(path, model\)"
    ):
        run.save(path, "energy", "pull.torque")
    alone = cd.load_run(path)
    assert alone.names() == ["q", "v", "energy", "pull.torque"] and alone.about("pull.torque").units == ("N m",)
    np.testing.assert_array_equal(alone["pull.torque"], -q[0, :, 0])
    np.testing.assert_array_equal(alone.to_dataframe("pull.torque"), run.to_dataframe("pull.torque"))
    for ask in (lambda: alone.power, lambda: alone.at(0.5), lambda: alone.model, lambda: alone.position("bob")):
        with pytest.raises(cd.InputError, match=r"could not be saved: .*own pull.*with cd\.load_run\(path, model\)"):
            ask()
    with pytest.raises(cd.UnknownNameError, match=r"in this file, and the file has no model to compute it from"):
        alone["pull.power"]
    np.testing.assert_array_equal(cd.load_run(path, run.model).power, run.power)


def test_meshes_are_in_the_file(tmp_path: Path) -> None:
    """A mesh from a file is seen without that file, simpler ones and colours as they were; no other file is named."""
    corners, faces = np.eye(4, 3) / 3, np.array([[3, 1, 0], [3, 2, 1], [3, 0, 2], [0, 1, 2]])
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a} {b} {c}" for a, b, c in faces + 1]
    (tmp_path / "tip.obj").write_text("\n".join(lines))
    m = mechanisms.pendulum()
    body, t = m.bodies[0].name, swings(1)
    m.shape(body, cd.shape.Mesh.from_file(tmp_path / "tip.obj", colour="red"), cd.shape.Sphere(0.2))
    m.shape("ground", cd.shape.Mesh(corners, faces))
    run, path = cd.Trajectory(m.build(), t[0], t[1][0], t[2][0]), tmp_path / "run.nc"
    run.save(path)
    (tmp_path / "tip.obj").unlink()
    for _ in range(2):
        model = cd.load_run(path).model
        ball, tip = sorted(model.body(body).shapes, key=lambda shape: type(shape).__name__, reverse=True)
        assert isinstance(ball, cd.shape.Sphere) and tip.colour == run.model.body(body).shapes[0].colour
        np.testing.assert_allclose(tip.surface().vertices, corners, atol=1e-7)
        np.testing.assert_array_equal(model.ground_shapes[0].surface().faces, faces)
        assert model.key == run.model.key
        cd.load_run(path).save(path := tmp_path / "again.nc", overwrite=True)
    with h5py.File(path, "a") as file:
        assert "tip.obj" not in file["model_text"][()].decode()
        file["mesh_faces"][0, 0] = 77
    with pytest.raises(cd.FileError, match="a face names vertex 77"):
        cd.load_run(path).power  # noqa: B018
    with h5py.File(path, "a") as file:
        file["mesh_parts"][-1, 1:] = -1
    with pytest.raises(cd.FileError, match="its meshes overlap"):
        cd.load_run(path).power  # noqa: B018
    with h5py.File(path, "a") as file:
        words, name = np.full(file["mesh_vertices"].shape, "x", dtype=object), "mesh_vertices"
        file.move(name, "away")
        file.create_dataset(name, data=words, dtype=h5py.string_dtype())
        file["mesh_parts"][-1, 1:] = 4
    with pytest.raises(cd.FileError, match="the model in the file cannot be read: could not convert"):
        cd.load_run(path).power  # noqa: B018


def test_the_model_in_a_file_is_only_data(tmp_path: Path) -> None:
    """A text that is a path is not opened, one that is no model or another one is refused when it is needed."""
    secret = tmp_path / "secret.yaml"
    cd.save(mechanisms.pendulum().build(), secret)
    for text, why in (
        (str(secret), "the file must be a table|is it a mechanism"),
        ("!!python/object/apply:os.system ['true']", "the model in the file cannot be read"),
        (cd.mechanisms.double_pendulum().build(), "its coordinates are"),
        ("cardan: 1\nname: [", "the model in the file cannot be read"),
    ):
        path = tmp_path / "run.nc"
        one().save(path, "energy", overwrite=True)
        with h5py.File(path, "a") as file:
            if isinstance(text, cd.Model):
                cd.save(text, tmp_path / "other.yaml", overwrite=True)
                text = (tmp_path / "other.yaml").read_text()
            file["model_text"][()] = text
        run = cd.load_run(path)
        np.testing.assert_array_equal(run.energy, one().energy)  # what is stored needs no model
        with pytest.raises(cd.FileError, match=why):
            run.power  # noqa: B018


def test_names_and_units_are_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.nc"
    padded().save(path, "a", "energy")
    with xr.open_dataset(path, engine="h5netcdf") as data:
        assert data.q.dims == ("system", "sample", "coordinate")
        assert data.q.attrs["units"] == "rad" and data.a.attrs["units"] == "rad/s^2"
        assert data.time.attrs["units"] == "s" and "time" in data.coords
        assert data.coordinate.values.tolist() == list(pendulum().joint_names[:1])
        assert all(data[name].attrs["long_name"] for name in ("q", "v", "a", "energy"))
        energy = data.energy.values
    mine = one().dataset("poses", "reactions", "power", "multipliers")
    assert mine.poses.dims == ("time", "body", "row", "column") and mine.power.attrs["units"] == "W"
    assert float(mine.reactions.sel(joint=pendulum().joint_names[0], component="force x", time=0.0)) == float(
        one().reactions[0, 0, 3]
    )
    np.testing.assert_array_equal(energy, padded().energy)


def test_free_parameters_come_back(tmp_path: Path) -> None:
    name = f"{pendulum().body_names[0]}.mass"
    free = pendulum().free(name)
    t, q, v = swings(3)
    run = cd.Trajectory(free.at({name: np.array([1.0, 2.0, 4.0])}), t, q, v)
    path = tmp_path / "run.nc"
    run.save(path)
    for model in (free, run.model):
        np.testing.assert_array_equal(cd.load_run(path, model).energy, run.energy)
    with pytest.raises(cd.FileError, match="have other values than in the run"):
        cd.load_run(path, free.at({name: 3.0}))


def test_tables(tmp_path: Path) -> None:
    run, joint = padded(), pendulum().joint_names[0]
    run.to_csv(tmp_path / "run.csv", "energy")
    run.to_csv(tmp_path / "units.csv", "energy", units=True)
    run.to_parquet(tmp_path / "run.parquet", "energy")
    expected = run.to_dataframe("energy")
    assert list(expected.columns) == ["system", "time", f"q.{joint}", f"v.{joint}", "energy"]
    assert len(expected) == 11 + 6 + 11  # no padding
    for frame in (
        pd.read_csv(tmp_path / "run.csv", float_precision="round_trip"),
        pd.read_csv(tmp_path / "units.csv", comment="#", float_precision="round_trip"),
        pd.read_parquet(tmp_path / "run.parquet"),
    ):
        pd.testing.assert_frame_equal(frame, expected, check_exact=True)
    units = pd.read_parquet(tmp_path / "run.parquet").attrs["units"]
    assert units == {"time": "s", f"q.{joint}": "rad", f"v.{joint}": "rad/s", "energy": "J"}
    wrench = run.to_dataframe("reactions").attrs["units"]
    assert wrench[f"reactions.{joint}.moment z"] == "N m" and wrench[f"reactions.{joint}.force x"] == "N"
    assert "system" not in one().to_dataframe()


def test_a_missing_pyarrow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(cd.FileError, match=r"pip install 'cardan\[parquet\]'"):
        one().to_parquet(tmp_path / "run.parquet")


@pytest.mark.parametrize("write", ["save", "to_csv", "to_parquet"])
def test_files_are_not_overwritten_unasked(tmp_path: Path, write: str) -> None:
    path = tmp_path / "run"
    path.write_text("precious")
    with pytest.raises(cd.FileError, match=r"run: there is such a file already; pass overwrite=True"):
        getattr(one(), write)(path)
    assert path.read_text() == "precious"
    getattr(one(), write)(path, overwrite=True)
    assert path.read_bytes() != b"precious" and os.listdir(tmp_path) == ["run"]
    with pytest.raises(cd.FileError, match="it is a folder"):
        getattr(one(), write)(tmp_path)
    with pytest.raises(cd.FileError, match=r"no/run: cannot be written, No such file or directory"):
        getattr(one(), write)(tmp_path / "no" / "run")


# In a process of its own, since HDF5 used to end it: files may not grow past 100 kB.
FULL_DISK = """
import os, resource, sys
import numpy as np, cardan as cd
from cardan import mechanisms
model, n = mechanisms.pendulum().build(), 20000
t, x = np.arange(n) * 1.0, np.zeros((1, n, 1))
run = cd.Trajectory(model, t, x[0], x[0])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
os.chdir(sys.argv[1])
def store(path, t, k):
    with cd.Store(path, model, t, k) as out:
        for i in range(k):
            out.write(i, x[:, : len(t)], x[:, : len(t)])
        out.finish()
for write in (run.save, run.to_csv, run.to_parquet, lambda p: store(p, t, 2), lambda p: store(p, t[:1000], 30)):
    try:
        write("run")
    except cd.FileError as error:
        assert "run: cannot be written" in str(error) and "File too large" in str(error), error
    else:
        raise SystemExit("it was written")
    assert os.listdir() == [], os.listdir()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are POSIX")
def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_space_left_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.nc"
    one().save(path)
    before = path.read_bytes()

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(NetCDF, "add", full)
    with pytest.raises(cd.FileError, match=r"run\.nc: cannot be written, No space left on device"):
        padded().save(path, overwrite=True)
    with pytest.raises(cd.FileError, match="No space left on device"):
        cd.Store(tmp_path / "store.nc", pendulum(), [0.0, 1.0], 3)
    assert os.listdir(tmp_path) == ["run.nc"] and path.read_bytes() == before


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.nc"
    with pytest.raises(cd.FileError, match=r"run\.nc: there is no such file"):
        cd.load_run(path)
    path.write_text("time,q\n0,1\n")
    with pytest.raises(cd.FileError, match=r"run\.nc: it cannot be read as NetCDF-4"):
        cd.load_run(path)
    xr.Dataset({"q": ("x", [1.0])}).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(cd.FileError, match="it is not a run saved by Cardan"):
        cd.load_run(path)
    one().save(path, overwrite=True)
    with pytest.raises(cd.FileError, match="give the model that was simulated"):
        cd.load_run(path, mechanisms.double_pendulum().build())
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(cd.FileError, match=r"run\.nc: it cannot be read"):
        cd.load_run(path)
    with xr.open_dataset(tmp_path / _saved(tmp_path), engine="h5netcdf") as data:
        data.load().drop_vars("v").to_netcdf(path, engine="h5netcdf")
    with pytest.raises(cd.FileError, match=r"run\.nc: it is damaged: .*v"):
        cd.load_run(path)
    data.assign_attrs(cardan_run=99).to_netcdf(path, engine="h5netcdf")
    with pytest.raises(cd.FileError, match="it has layout 99, newer than this"):
        cd.load_run(path)
    data.assign_attrs(cardan_run="new").to_netcdf(path, engine="h5netcdf")
    with pytest.raises(cd.FileError, match="it is damaged: the attribute 'cardan_run' is 'new', not a number"):
        cd.load_run(path)


def test_a_file_that_says_it_holds_more_than_it_can_is_refused(tmp_path: Path) -> None:
    """Asking for its arrays would take the memory that it says."""
    one().save(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "a") as file:
        flood = file.create_dataset("flood", shape=(2**28,), dtype="f8", chunks=(2**20,))
        flood.make_scale("flood")
    with pytest.raises(cd.FileError, match=r"NetCDF-4: a file of .* bytes cannot hold arrays of"):
        cd.load_run(tmp_path / "run.nc")


def _saved(folder: Path) -> str:
    one().save(folder / "good.nc")
    return "good.nc"


def through_a_link(file: h5py.File, secret: Path) -> None:
    del file["v"]
    file["v"] = h5py.ExternalLink(str(secret), "/v")


def through_two_links(file: h5py.File, secret: Path) -> None:
    file.create_group("inner")["more"] = h5py.ExternalLink(str(secret), "/")
    del file["v"]
    file["v"] = h5py.SoftLink("/inner/more/v")


def through_storage(file: h5py.File, secret: Path) -> None:
    del file["v"]
    file.create_dataset("v", (11, 1), "f8", external=[(str(secret), 0, 88)])


def through_a_view(file: h5py.File, secret: Path) -> None:
    layout = h5py.VirtualLayout((11, 1), "f8")
    layout[:] = h5py.VirtualSource(str(secret), "v", shape=(11, 1))
    del file["v"]
    file.create_virtual_dataset("v", layout)


@pytest.mark.parametrize("attack", [through_a_link, through_two_links, through_storage, through_a_view])
@pytest.mark.parametrize("waiting", [False, True])
def test_a_run_that_reads_other_files_is_refused(tmp_path: Path, attack: Any, waiting: bool) -> None:
    """Whether the other file is one of the user's or a pipe, on which reading would wait for ever."""
    secret = tmp_path / "secret"
    if waiting:
        if not hasattr(os, "mkfifo"):
            pytest.skip("named pipes are POSIX")
        os.mkfifo(secret)
    else:
        one().save(secret)
    path = tmp_path / "run.nc"
    one().save(path)
    with h5py.File(path, "a") as file:
        attack(file, secret)
    with pytest.raises(cd.FileError, match=r"run\.nc: it cannot be read .* in its own file"):
        cd.load_run(path, pendulum())


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("write", ["save", "to_csv", "to_parquet"])
def test_a_file_that_appears_meanwhile_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str, links: bool
) -> None:
    """Somebody writes the same name after the check and before the end; also without hard links."""
    real, path = os.fsync, tmp_path / "run"

    def late(descriptor: int) -> None:
        real(descriptor)
        path.write_text("precious")

    def none(*args: Any, **more: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", none)
    getattr(one(), write)(path)
    path.unlink()
    monkeypatch.setattr(os, "fsync", late)
    with pytest.raises(cd.FileError, match=r"run: there is such a file already; pass overwrite=True"):
        getattr(one(), write)(path)
    assert path.read_text() == "precious" and os.listdir(tmp_path) == ["run"]
    getattr(one(), write)(path, overwrite=True)
    assert path.read_bytes() != b"precious" and os.listdir(tmp_path) == ["run"]


def test_a_store_whose_name_is_taken_meanwhile_is_kept_under_another(tmp_path: Path) -> None:
    t, q, v = swings(3)
    path = tmp_path / "run.nc"
    with cd.Store(path, pendulum(), t, 3) as store:
        store.write(0, q, v)
        path.write_text("precious")
        with pytest.raises(cd.FileError, match=r"run\.nc: there is such a file now.*; the run is in .*run-\w+\.nc"):
            store.finish()
    (other,) = set(tmp_path.iterdir()) - {path}
    assert path.read_text() == "precious"
    np.testing.assert_array_equal(cd.load_run(other, pendulum()).q, q)


def test_systems_that_were_never_written_say_so(tmp_path: Path) -> None:
    t, q, v = swings(4)
    with cd.Store(tmp_path / "run.nc", pendulum(), t, (3, 2)) as store:
        store.write(1, q, v, outcome=["", "early"])
        run = store.finish()
    assert run.outcome.tolist() == [["not computed", ""], ["early", ""], ["", "not computed"]]
    np.testing.assert_array_equal(run.q.reshape(6, 11, 1)[1:5], q)
    assert not run.valid[0, 0].any() and not run.valid[2, 1].any()


def test_a_store_is_a_trajectory_in_the_end(tmp_path: Path) -> None:
    t, q, v = swings(7)
    path = tmp_path / "run.nc"
    with cd.Store(path, pendulum(), t, 7, tau=[0.5], method="by hand", settings={"rtol": 1e-3}) as store:
        for first in (4, 0):
            part = slice(first, first + 4)
            event = cd.EventRecord("hit", first, 0.5, q[first, 5], v[first, 5])
            store.write(first, q[part], v[part], outcome=["early", "", "", ""][: len(q[part])], events=[event])
        assert not path.exists()
        run = store.finish({"steps": 12})
    assert os.listdir(tmp_path) == ["run.nc"]
    assert run.statistics == {"steps": 12} and run.outcome.tolist() == ["early", "", "", "", "early", "", ""]
    assert [event.system for event in run.events] == [(4,), (0,)] and run[4].events[0].name == "hit"
    for k in range(7):
        np.testing.assert_array_equal(run[k].q, q[k])
    whole = cd.Trajectory(pendulum(), t, q, v, tau=[0.5])
    np.testing.assert_array_equal(run.power, whole.power)
    with pytest.raises(cd.InputError, match="is finished"):
        store.write(0, q, v)


def test_a_store_of_systems_with_times_of_their_own(tmp_path: Path) -> None:
    run = padded()
    with cd.Store(tmp_path / "run.nc", pendulum(), 11, 4, overwrite=True) as store:
        store.write(1, run.q, run.v, time=run.time)
        back = store.finish()
    assert back[2].q.shape == (6, 1) and not back.valid[0].any()  # system 0 was never written
    np.testing.assert_array_equal(back[2].energy, run[1].energy)
    np.testing.assert_array_equal(back.energy[1:], run.energy)


def test_what_a_store_cannot_take_is_refused(tmp_path: Path) -> None:
    t, q, v = swings(3)
    with cd.Store(tmp_path / "run.nc", pendulum(), t, 3) as store:
        for first, a, b, words in (
            (1, q, v, "systems 1 to 3 are outside its batch of 3"),
            (0, q[:, :5], v, r"q must have the shape \(3, 11, 1\), got \(3, 5, 1\)"),
            (0, q, v[:2], r"v must have the shape \(3, 11, 1\), got \(2, 11, 1\)"),
        ):
            with pytest.raises(cd.InputError, match=words):
                store.write(first, a, b)
        with pytest.raises(cd.InputError, match="share the times"):
            store.write(0, q, v, time=np.tile(t, (3, 1)))
    assert os.listdir(tmp_path) == []  # not finished: nothing remains


def test_a_store_needs_the_memory_of_a_part(tmp_path: Path) -> None:
    n, systems, part = 500, 1000, 20
    t = np.linspace(0, 1, n)
    q = np.zeros((part, n, 1))
    with cd.Store(tmp_path / "warm.nc", pendulum(), t, part) as store:
        store.write(0, q, q)
        store.finish()[0].q  # noqa: B018
    tracemalloc.start()
    try:
        with cd.Store(tmp_path / "run.nc", pendulum(), t, systems) as store:
            for first in range(0, systems, part):
                store.write(first, q + first, q)
            run = store.finish()
        assert run[777].q[3, 0] == 760
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    size = (tmp_path / "run.nc").stat().st_size
    assert size > 8e6 and peak < size / 4, (size, peak)


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(cd.UnknownNameError, match=r"'enrgy' is not a quantity of a run; did you mean 'energy'"):
        one().to_dataframe("enrgy")
