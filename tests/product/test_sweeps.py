"""Sweeps: the same bits whatever computes them, nothing lost and nothing computed twice, bad members with a reason."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import xarray as xr
from benchmarks.sweeps import children
from hypothesis import given, settings
from hypothesis import strategies as st

import cardan as cd
from cardan.errors import FileError, InputError, InterruptedRunError, SimulationError, UnknownNameError
from cardan.structure.closing import close_each
from cardan.studies import store, sweep, workers
from cardan.studies.measure import REDUCTIONS
from cardan.studies.task import Results
from cardan.studies.workers import KILLS, WorkerLostError, in_pool

zarr = pytest.importorskip("zarr")
RUN = cd.Run(0.05, method="rk4", step=1e-3, samples=4)
MEASURE = {"force": cd.peak("A.reaction_force"), "q": "q", "swing": cd.mean("A.coordinate")}
VALUES = {"crank.mass": np.linspace(0.5, 1.5, 9), "A": np.linspace(0.4, 2.9, 5)}
LIMIT = 180  # s: a process that takes longer hangs


@pytest.fixture(scope="module")
def model() -> cd.Model:
    return cd.mechanisms.four_bar().build()


@pytest.fixture(scope="module")
def whole(model: cd.Model) -> cd.Study:
    """The study in one batch."""
    return cd.sweep(model, VALUES, run=RUN, measure=MEASURE, chunk=45)


def same(study: cd.Study, whole: cd.Study) -> bool:
    """Equal to the bit, with names, units and coordinates."""
    return bool(study.dataset.identical(whole.dataset)) and study.reasons == whole.reasons


# The results.


def test_a_member_is_the_run_with_its_numbers(model: cd.Model, whole: cd.Study) -> None:
    data = whole.dataset
    assert data.sizes["crank.mass"] == 9 and data.sizes["A"] == 5 and whole.status.complete
    assert data["crank.mass"].attrs["units"] == "kg" and data.force.attrs["units"] == "N"
    free = model.free("crank.mass")
    for i, k in ((0, 0), (8, 4), (3, 1)):
        mass, angle = VALUES["crank.mass"][i], VALUES["A"][k]
        run = cd.simulate(free.at({"crank.mass": mass}), 0.05, {"A": angle}, method="rk4", step=1e-3, samples=4)
        assert np.array_equal(data.q[i, k], run.q)
        assert np.array_equal(data.force[i, k], np.abs(run["A.reaction_force"]).max(axis=0))
        assert data.swing[i, k] == pytest.approx(np.trapezoid(run.q[:, 0], run.time) / 0.05, rel=1e-12)


def test_results_do_not_depend_on_chunks_or_stores(
    model: cd.Model, whole: cd.Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for chunk in (1, 7, 32):
        assert same(cd.sweep(model, VALUES, run=RUN, measure=MEASURE, chunk=chunk), whole)
    path = tmp_path / "study.zarr"
    study = cd.sweep(model, VALUES, run=RUN, measure=MEASURE, chunk=11, store=path)
    assert same(study, whole) and same(cd.load_study(path), whole)
    monkeypatch.setattr(store, "SMALL", 0)
    lazy = cd.load_study(path)
    assert lazy.dataset.chunks and same(replace(lazy), whole)  # dask's arrays
    monkeypatch.setattr(sweep, "LARGEST", 1000)
    with pytest.raises(InputError, match=r"the results of 45 members take .* GB; give store="):
        cd.sweep(model, VALUES, run=RUN, measure=MEASURE)
    with xr.open_zarr(path) as plain:  # what others read
        assert np.array_equal(plain.force, whole.dataset.force.values.reshape(45, 3))
        assert np.array_equal(plain["A"], whole.design["A"])


@settings(max_examples=3)
@given(st.integers(0, 10_000))
def test_closing_many_equals_closing_each(model: cd.Model, seed: int) -> None:
    rng = np.random.default_rng(seed)
    free = model.free("B.at", "D.at")
    n = 5
    values = {p.name: p.nominal + rng.normal(0, [0.2, 0.2, 0.0], (n, 3)) for p in free.parameters}
    bound, q = free.at(values), np.tile(model.start(), (n, 1))
    found, reasons = close_each(bound, q, np.ones(model.nv, dtype=bool))
    for i in range(n):
        alone, why = close_each(bound.one_of((i,)), q[i : i + 1], np.ones(model.nv, dtype=bool))
        assert np.array_equal(alone[0], found[i]) and bool(why) == (i in reasons)
        if i not in reasons:
            assert np.abs(cd.constraint_residual(bound.one_of((i,)), found[i])).max() < 1e-12
        else:
            with pytest.raises(cd.ModelError):
                cd.assemble(bound.one_of((i,)))


@given(st.integers(0, 10_000))
def test_reductions_over_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    k, n = rng.integers(1, 5), rng.integers(2, 9)
    x, ends = rng.normal(size=(k, n, 3)), rng.integers(1, n + 1, k)
    valid = np.arange(n) < ends[:, None]
    t = np.where(valid, np.cumsum(rng.uniform(0.1, 1, (k, n)), axis=1), np.nan)
    x[~valid] = np.nan
    found = {name: reduce(x, valid, t) for name, reduce in REDUCTIONS.items()}
    for i, end in enumerate(ends):
        own, when = x[i, :end], t[i, :end]
        assert np.array_equal(found["max"][i], own.max(axis=0)) and np.array_equal(found["min"][i], own.min(axis=0))
        assert np.array_equal(found["peak"][i], np.abs(own).max(axis=0))
        assert np.array_equal(found["range"][i], np.ptp(own, axis=0))
        assert np.array_equal(found["first"][i], own[0]) and np.array_equal(found["final"][i], own[-1])
        assert np.array_equal(found["time_of_max"][i], when[own.argmax(axis=0)])
        assert np.array_equal(found["time_of_min"][i], when[own.argmin(axis=0)])
        area = np.trapezoid(own, when, axis=0)
        assert np.allclose(found["integral"][i], area, rtol=1e-12, atol=1e-12)
        if end > 1:
            assert np.allclose(found["mean"][i] * (when[-1] - when[0]), area, rtol=1e-12, atol=1e-12)
            mean_square = np.trapezoid(own**2, when, axis=0) / (when[-1] - when[0])
            assert np.allclose(found["rms"][i] ** 2, mean_square, rtol=1e-12)
        one = {name: reduce(x[i : i + 1], valid[i : i + 1], t[i : i + 1]) for name, reduce in REDUCTIONS.items()}
        assert all(np.array_equal(one[name][0], found[name][i], equal_nan=True) for name in REDUCTIONS)


# Bad members and bad input.


def test_bad_members_have_a_reason_and_stop_nobody(model: cd.Model) -> None:
    def energy(run: cd.Trajectory) -> np.ndarray:
        if (np.abs(run.q[:, 0, 0] - 1.5) < 1e-9).any():
            raise RuntimeError("not this one")
        return run.energy[:, -1]

    values = {"crank.mass": [1.0, -2.0], "A": [0.5, 1.5, 2.5]}
    with pytest.warns(RuntimeWarning, match="4 of 6 members failed, the first, member 1: RuntimeError: not this one"):
        study = cd.sweep(model, values, run=RUN, measure=energy)
    assert study.reasons[4] == "parameter 'crank.mass' must be above 0, got -2 kg" and sorted(study.reasons)[0] == 1
    assert np.array_equal(study.failed, [[False, True, False], [True, True, True]])
    fine = {"crank.mass": [1.0], "A": [0.5, 2.5]}
    alone = cd.sweep(model, fine, run=RUN, measure={"energy": cd.final("energy")})
    assert np.array_equal(study.dataset.energy[0, [0, 2]], alone.dataset.energy[0])
    assert np.isnan(study.dataset.energy.values[study.failed]).all()


def test_functions_instead_of_runs(model: cd.Model) -> None:
    study = cd.sweep(
        model, {"crank.mass": [1.0, 2.0], "A": [0.3, 0.9, 2.0]},
        run=lambda m, q: {"height": cd.potential_energy(m, q), "q": q},
    )  # fmt: skip
    free = model.free("crank.mass")
    for i, mass in enumerate((1.0, 2.0)):
        q = cd.assemble(free, {"A": 0.9})[0]
        assert study["height"].values[i, 1] == cd.potential_energy(free.at({"crank.mass": mass}), q)
    with pytest.warns(RuntimeWarning, match="1 of 2 members failed, .* member 1: .* cannot be assembled: joint"):
        long = cd.sweep(model, {"B.at[0]": [0.4, 30.0]}, run=lambda m, q: q[:, 0])
    assert np.isnan(long["value"].values).tolist() == [False, True]
    plain = cd.sweep(None, {"x": [1.0, 2.0], "y": [3.0, 5.0]}, run=lambda p: p["x"] * p["y"])
    assert plain["value"].values.tolist() == [[3.0, 5.0], [6.0, 10.0]]


@pytest.mark.parametrize(
    ("change", "kind", "sentence"),
    [
        ({"parameters": {"crank.mas": [1.0]}}, UnknownNameError, "'crank.mas' is not a number of 'crank'; free are"),
        ({"parameters": {"crnk": [1.0]}}, UnknownNameError, "neither a parameter .* nor a joint .* nor a joint's rate"),
        ({"parameters": {"C": [1.0]}}, InputError, "joint 'C' closes a loop"),
        ({"parameters": {"B.at[3]": [1.0]}}, InputError, "numbered 0 to 2"),
        ({"measure": "A.forc"}, UnknownNameError, "measure 'A.forc': 'A.forc' is not a quantity"),
        ({"measure": None}, InputError, "say what is kept of each run"),
        ({"measure": {"A": "q"}}, InputError, "'A' is a parameter of the study"),
        ({"measure": {"x": cd.Measure("q", "max"), "y/z": "q"}}, InputError, "cannot be the name of a measure"),
        ({"run": 2.0}, InputError, "run must be a cd.Run"),
        ({"client": object()}, InputError, "must be a dask.distributed.Client, got object"),
        ({"workers": 0}, InputError, "workers must be a whole number, 1 or more"),
        ({"store": "s3://there/x.zarr"}, InputError, "a folder of this machine"),
        ({"store": "there is no such folder/x.zarr"}, FileError, "does not exist; make it first"),
    ],
)
def test_mistakes(model: cd.Model, change: dict[str, Any], kind: type[Exception], sentence: str) -> None:
    words = {"parameters": {"A": [0.5, 1.0]}, "run": RUN, "measure": "q", **change}
    with pytest.raises(kind, match=sentence):
        cd.sweep(model, words.pop("parameters"), **words)
    with pytest.raises(InputError, match="over='maximum' is not a reduction"):
        cd.Measure("q", "maximum")


@pytest.mark.parametrize("stored", [False, True])
def test_a_measure_of_another_shape_names_the_member(stored: bool, tmp_path: Path) -> None:
    def ragged(p: dict[str, np.ndarray]) -> np.ndarray:
        return np.array([np.zeros(3 if x == 11 else 2) for x in p["x"]])  # NumPy refuses both in one array

    words = {"store": tmp_path / "x.zarr"} if stored else {}
    with pytest.raises(InputError, match=r"measure 'value' has the shape \(3,\) for member 11 and \(2,\) for others"):
        cd.sweep(None, {"x": np.arange(16.0)}, run=ragged, chunk=4, **words)


# The store.


class Fragile:
    """A function that fails for some members, until it is mended; it counts the members that it is asked for."""

    broken: ClassVar[set[float]] = set()
    asked = 0

    def __call__(self, p: dict[str, np.ndarray]) -> np.ndarray:
        Fragile.asked += len(p["x"])
        if Fragile.broken & set(p["x"]):
            raise RuntimeError("out of order")
        return p["x"] ** 2


@given(st.sets(st.integers(0, 19), min_size=1), st.sets(st.integers(0, 19)), st.integers(1, 20))
@settings(max_examples=3)
def test_failed_members_are_computed_once_more_on_request(broken: set[int], still: set[int], chunk: int) -> None:
    import tempfile
    import warnings

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        study = partial(
            cd.sweep, None, {"x": np.arange(20.0)}, run=Fragile(), store=Path(folder) / "x.zarr", chunk=chunk
        )
        Fragile.broken = set(map(float, broken))
        assert set(study().reasons) == broken == set(study().reasons)  # a second call computes nothing
        Fragile.broken, Fragile.asked = set(map(float, broken & still)), 0
        found = study(retry=True)
        if not broken & still:
            assert Fragile.asked == len(broken)
        good = [k for k in range(20) if k not in broken & still]
        assert set(found.reasons) == broken & still == set(np.flatnonzero(found.failed)) and found.status.complete
        assert not good or np.array_equal(found["value"].values[good], np.arange(20.0)[good] ** 2)
        assert same(cd.load_study(Path(folder) / "x.zarr"), found)
    with pytest.raises(InputError, match="retry=True computes failed members of a store once more"):
        cd.sweep(None, {"x": [1.0]}, run=Fragile(), retry=True)


class Counted:
    """A measure that counts the members that it is asked for, and can do something at one of them."""

    def __init__(self, at: int = -1, do: Callable[[], None] = lambda: None) -> None:
        self.members, self.at, self.do = 0, at, do

    def __call__(self, run: cd.Trajectory) -> np.ndarray:
        if self.members <= self.at < self.members + len(run):
            self.at = -1
            self.do()
        self.members += len(run)
        return run.q[:, -1]

    def __reduce__(self) -> Any:
        return Counted, ()  # so that all are the same measure


def counted(model: cd.Model, store: Path, measure: Counted, **words: Any) -> cd.Study:
    return cd.sweep(model, VALUES, run=RUN, measure={"end": measure}, store=store, chunk=6, **words)


@pytest.fixture
def begun(model: cd.Model, tmp_path: Path) -> Path:
    """A store of eight chunks, interrupted by Ctrl-C in the fourth."""
    path = tmp_path / "study.zarr"
    with pytest.raises(InterruptedRunError, match=r"18 of 45 members are computed.*call the sweep again") as caught:
        counted(model, path, Counted(20, lambda: signal.raise_signal(signal.SIGINT)))
    assert caught.value.partial.status.done == 18
    return path


@pytest.fixture(scope="module")
def ends(model: cd.Model) -> cd.Study:
    return cd.sweep(model, VALUES, run=RUN, measure={"end": Counted()})


def test_an_interrupted_study_goes_on(model: cd.Model, begun: Path, ends: cd.Study) -> None:
    assert str(cd.load_study(begun).status) == "45 members: 18 computed, 0 failed, 27 to be computed"
    rest = Counted()
    assert same(counted(model, begun, rest), ends) and rest.members == 27
    again = Counted()
    assert same(counted(model, begun, again, workers=2), ends) and again.members == 0


def test_damage_is_found_and_mended(model: cd.Model, begun: Path, ends: cd.Study) -> None:
    flipped = begun / "end" / "c" / "1" / "0"
    data = bytearray(flipped.read_bytes())
    data[5] ^= 1
    flipped.write_bytes(data)
    (begun / "status" / "c" / "2").unlink()
    with open(begun / "chunks.txt", "ab") as journal:
        journal.write(b"\n0123456789abcdef {half a li")
    with pytest.warns(RuntimeWarning, match=r"chunk \d, members .* is damaged") as warned:
        study = cd.load_study(begun)
    assert study.status.done == 6 and len(warned) == 2 and np.isnan(study.variables["end"][1][6:]).all()
    rest = Counted()
    with pytest.warns(RuntimeWarning, match="is damaged"):
        assert same(counted(model, begun, rest), ends)
    assert rest.members == 39 and same(cd.load_study(begun), ends)


@pytest.mark.parametrize("file", ["zarr.json", "end/zarr.json", "A/c/1"])
def test_what_lies_around_the_chunks_is_mended(model: cd.Model, begun: Path, ends: cd.Study, file: str) -> None:
    kept = (begun / "end" / "c" / "1" / "0").stat().st_mtime_ns
    data = (begun / file).read_bytes()
    (begun / file).write_bytes(data[: len(data) // 2])
    with pytest.raises(FileError, match=r"cannot be read: .* call cd.sweep again, which mends"):
        cd.load_study(begun)
    rest = Counted()
    with pytest.warns(RuntimeWarning, match="descriptions of its arrays are damaged .* and written again"):
        assert same(counted(model, begun, rest), ends)
    assert rest.members == 27 and (begun / "end" / "c" / "1" / "0").stat().st_mtime_ns == kept
    assert same(cd.load_study(begun), ends)


def test_functions_are_known_by_what_they_use(tmp_path: Path) -> None:
    def study(text: str) -> cd.Study:
        known: dict[str, Any] = {"partial": partial}
        exec(text, known)
        return cd.sweep(None, {"x": [1.0, 2.0]}, run=known["f"], store=tmp_path / "x.zarr")

    parts = ("K = 2", "def g(x): return x + 1", "f = partial(lambda p, k: K * g(p['x']) + k, k=3)")
    assert study("\n".join(parts))["value"].values.tolist() == [7.0, 9.0]
    assert study("\n".join(("x = p = 5  # not used", *parts))).status.complete
    for old, new in (("K = 2", "K = 3"), ("x + 1", "x + 2"), ("k=3", "k=4")):
        with pytest.raises(FileError, match="another study: its run differs"):
            study("\n".join(parts).replace(old, new))


def test_a_store_of_something_else_is_refused(model: cd.Model, begun: Path, tmp_path: Path) -> None:
    before = sorted(p for p in begun.rglob("*"))
    later = {**VALUES, "A": VALUES["A"] + 1}
    with pytest.raises(FileError, match="belongs to another study: its members differ"):
        cd.sweep(model, later, run=RUN, measure={"end": Counted()}, store=begun)
    other = replace(model, name="another")
    with pytest.raises(FileError, match="its model and its measures differ"):
        cd.sweep(other, VALUES, run=RUN, measure=MEASURE, store=begun)
    manifest = json.loads((begun / "cardan.json").read_text())
    changed = {**manifest, "code": {"version": "0.0.1", "source": "abc"}}
    (begun / "cardan.json").write_text(json.dumps(changed))
    with pytest.raises(FileError, match="it was changed after it was written"):
        counted(model, begun, Counted())
    (begun / "cardan.json").write_text(json.dumps(store.signed(changed)))
    with pytest.raises(FileError, match=r"5 chunks are to be computed, and the others were computed by Cardan 0.0.1"):
        counted(model, begun, Counted())
    assert sorted(p for p in begun.rglob("*")) == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match="not the store of a study"):
        counted(model, tmp_path / "mine", Counted())
    with pytest.raises(FileError, match="there is no study of Cardan"):
        cd.load_study(tmp_path)


def test_a_longer_study_keeps_what_there_is(model: cd.Model, tmp_path: Path) -> None:
    def study(n: int, measure: Counted, store: Path | None) -> cd.Study:
        spread = {"crank.mass": cd.uniform(0.5, 1.5), "A": cd.normal(1.0, 0.1)}
        return cd.sweep(
            model, spread, samples=n, design="halton", run=RUN, measure={"end": measure}, store=store, chunk=4
        )

    study(10, Counted(), tmp_path / "x.zarr")
    more = Counted()
    assert same(study(17, more, tmp_path / "x.zarr"), study(17, Counted(), None)) and more.members == 9


def test_a_full_disk(model: cd.Model, begun: Path, ends: cd.Study) -> None:
    """A limit on the size of files, which the system reports as it reports a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(FileError, match=r"cannot be written, .* are kept; call the sweep again to go on"):
            counted(model, begun, Counted())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    rest = Counted()
    assert same(counted(model, begun, rest), ends) and rest.members == 27


# Processes.

SLOW = """
import os, time

def slow(run):
    time.sleep(float(os.environ.get("SECONDS_OF_A_MEMBER", "0")))
    return run.q[:, -1]
"""
MASTER = f"""
import sys
import numpy as np
import cardan as cd
{SLOW}
values = {{"crank.mass": np.linspace(0.5, 1.5, 9), "A": np.linspace(0.4, 2.9, 5)}}
cd.sweep(
    cd.mechanisms.four_bar().build(), values, run=cd.Run(0.05, method="rk4", step=1e-3, samples=4),
    measure={{"end": slow}}, store=sys.argv[1], chunk=1, workers=2,
)
"""


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + LIMIT
    while not what():
        assert time.monotonic() < until, "it takes too long"
        time.sleep(0.01)


def lines(store: Path) -> int:
    journal = store / "chunks.txt"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for the workers in /proc")
def test_workers_and_then_the_master_are_killed(model: cd.Model, ends: cd.Study, tmp_path: Path) -> None:
    def here() -> cd.Study:
        return cd.sweep(model, VALUES, run=RUN, measure={"end": known["slow"]}, store=path, chunk=1)

    known: dict[str, Any] = {}
    exec(SLOW, known)
    path, script = tmp_path / "study.zarr", tmp_path / "master.py"
    script.write_text(MASTER)
    master = subprocess.Popen([sys.executable, script, path], env={**os.environ, "SECONDS_OF_A_MEMBER": "0.4"})
    try:
        wait_for(lambda: lines(path) >= 2)
        os.kill(children(master.pid)[0], signal.SIGKILL)
        done = lines(path)
        wait_for(lambda: lines(path) >= done + 3)  # the others go on
        with pytest.raises(FileError, match=rf"another sweep is at work on this store \(process {master.pid} on"):
            here()
        left = children(master.pid)
    finally:
        master.kill()
        master.wait()
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))  # none outlives its master
    assert 5 <= cd.load_study(path).status.chunks_done < 45
    assert np.array_equal(here().dataset.end, ends.dataset.end)


class Dying:
    """A pool of threads in which some members kill their worker, always or once."""

    size = 3

    def __init__(self, always: set[int], once: set[int]) -> None:
        self.always, self.once, self.asked = always, once, 0

    def submit(self, values: np.ndarray, first: int, done: Callable[[Any], None]) -> None:
        self.asked += 1
        members = set(range(first, first + len(values)))
        if members & (self.always | self.once):
            self.once -= members
            done(WorkerLostError("by signal 9"))
            return
        done(Results({"x": values[:, 0] ** 2}, {"x": cd.studies.measure.Described()}, np.ones(len(values), np.uint8)))

    def look(self) -> None:
        pass

    def close(self) -> None:
        pass


@given(st.sets(st.integers(0, 39), max_size=4), st.sets(st.integers(0, 39), max_size=6), st.integers(1, 40))
def test_members_that_kill_workers_are_found(always: set[int], once: set[int], chunk: int) -> None:
    values = np.arange(40.0)[:, None]
    ranges = [(lo, min(lo + chunk, 40)) for lo in range(0, 40, chunk)]
    every = Results.empty(40)
    for lo, results in in_pool(Dying(always, set(once)), values, ranges):
        every.join(results, lo)
    assert set(every.reasons) == always and set(np.flatnonzero(every.state == 2)) == always
    good = [k for k in range(40) if k not in always]
    assert not good or np.array_equal(every.values["x"][good], values[good, 0] ** 2)
    assert all(why == f"it has killed {KILLS} workers, the last by signal 9" for why in every.reasons.values())


# Dask.


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as found:
        yield found


def test_dask_computes_the_same(model: cd.Model, whole: cd.Study, client: Any, tmp_path: Path) -> None:
    study = cd.sweep(model, VALUES, run=RUN, measure=MEASURE, client=client, chunk=8, store=tmp_path / "x.zarr")
    assert same(study, whole)


def slow(p: dict[str, np.ndarray]) -> np.ndarray:
    time.sleep(1.0)
    return p["x"]


def test_workers_that_do_not_come_back(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member may end all workers; where nobody starts new ones, the study ends, and says where it was."""
    counts = iter([2, 2, 2])
    monkeypatch.setattr(workers, "LOOK", 0.05)
    monkeypatch.setattr(workers, "RECONNECT", 0.2)
    monkeypatch.setattr(workers.DaskWorkers, "_count", lambda self: next(counts, 0))
    with pytest.raises(SimulationError, match="have ended while members 0 to 7 were computed, and none has come back"):
        cd.sweep(None, {"x": np.arange(8.0)}, run=slow, client=client, chunk=4)


def test_workers_with_another_version(model: cd.Model, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = workers.code_version()
    monkeypatch.setattr(workers, "_version_there", lambda: {"version": "9.9", "source": own["source"]})
    with pytest.raises(InputError, match=r"worker .* has Cardan 9.9 .*; install the same version on all"):
        cd.sweep(model, VALUES, run=RUN, measure=MEASURE, client=client)
