"""A study on disk: a Zarr group of arrays over the members, written chunk by chunk, that can be gone on with.

    study.zarr/
        zarr.json, status/, crank.mass/, peak/, ...    arrays that any reader of Zarr opens, xarray for example
        cardan.json                                    manifest: what the study is, by digests, and its variables
        chunks.txt                                     journal: a line for each chunk that is completely on the disk
        lock                                           held by the process that writes

A line of the journal is written after the files of its chunk have reached the disk, and has their digests and its own.
So a chunk counts only if all of it is there and undamaged, whatever happened to the process, the machine or the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import socket
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cardan.atomic_file import cannot_write, file_path, whole_file
from cardan.errors import FileError, InputError, warn_outside
from cardan.studies.design import Design
from cardan.studies.measure import Described
from cardan.studies.study import DONE, FAILED, TODO, Study
from cardan.studies.task import Results, other_names, other_shape

MANIFEST, JOURNAL, LOCK, META = "cardan.json", "chunks.txt", "lock", "zarr.json"
FORMAT = 1
SMALL = 64 << 20  # bytes: smaller studies are read into memory at once
SLASH = "%2F"
EXTRA = "a study on disk needs zarr; install it with: pip install 'cardan[sweep]'"


@dataclass
class StudyStore(contextlib.AbstractContextManager["StudyStore"]):
    """A study's store, locked by this process until it is closed.

    Args:
        path: the folder.
        manifest: what the study is.
        design: its members.
        marks: journal lines of the chunks that are complete, by their number.

    """

    path: Path
    manifest: dict[str, Any]
    design: Design
    marks: dict[int, dict[str, Any]] = field(default_factory=dict)
    lock: Any = None
    again: list[tuple[int, int]] = field(default_factory=list)
    """First member and end of members in complete chunks that are to be computed once more."""

    @classmethod
    def open(
        cls, path: Any, design: Design, chunk: int, parts: dict[str, str], code: dict[str, str], about: dict[str, Any],
        retry: bool = False,
    ) -> StudyStore:  # fmt: skip
        """The store of this study, new or as it was left; damaged chunks are to be computed again.

        With `retry` so are members that failed.

        Raises:
            FileError: there is something else at the path, or another study, or another process is at work on it.

        """
        place = _folder(path)
        _zarr()
        if place.exists() and not place.is_dir():
            raise FileError(f"{place}: it is a file, not the store of a study; give the name of a folder")
        if place.is_dir() and not (place / MANIFEST).exists() and not _is_empty(place):
            raise FileError(
                f"{place}: the folder is not the store of a study of Cardan, it has no {MANIFEST}; give another name"
            )
        with _writing(place):
            place.mkdir(parents=False, exist_ok=True)
        lock = _locked(place)
        try:
            if (place / MANIFEST).exists():
                return cls._resumed(place, lock, design, parts, code, retry)
            return cls._created(place, lock, design, chunk, parts, code, about)
        except BaseException:
            lock.close()
            raise

    @classmethod
    def _created(
        cls, place: Path, lock: Any, design: Design, chunk: int, parts: dict[str, str], code: dict[str, str],
        about: dict[str, Any],
    ) -> StudyStore:  # fmt: skip
        manifest = {
            "cardan_study": FORMAT, "parts": parts, "code": code, "chunk": chunk, "about": about, "variables": {},
            "names": list(design.names), "dims": design.dims, "made": design.about,
            "axes": {name: list(axes) for name, (axes, _) in design.coordinates.items()},
        }  # fmt: skip
        store = cls(place, manifest, design, {}, lock)
        store._write_manifest()  # first: from now on the folder is this study's
        store._describe()
        return store

    def _describe(self) -> None:
        """Write all that lies around the chunks of results: descriptions of arrays, and the members' values."""
        n, units = len(self.design), self.manifest["about"].get("units", {})
        with _writing(self.path):
            _describe_group(self.path, self._title)
            _describe_array(
                self.path, "status", (n,), self.chunk, dtype="uint8", fill_value=TODO, dimension_names=("member",),
                attributes=_WORDS,
            )  # fmt: skip
            for name, each in self.manifest["variables"].items():
                self._describe_variable(name, each)
            for name in self.design.names:
                words = {"units": units.get(name, ""), "long_name": f"parameter {name}"}
                _describe_array(
                    self.path, name, (n,), self.chunk, dtype="float64", fill_value=np.nan,
                    dimension_names=("member",), attributes={k: v for k, v in words.items() if v},
                )  # fmt: skip
                _group(self.path, "r+")[_folder_of(name)][:] = self.design[name]
            _consolidate(self.path)

    @property
    def _title(self) -> dict[str, str]:
        """Attributes of the group."""
        words = {"title": f"study of {self.manifest['about'].get('model', 'a function')}"}
        if not any(" " in name for name in self.design.names):
            words["coordinates"] = " ".join(self.design.names)
        return words

    def _describe_variable(self, name: str, about: dict[str, Any]) -> None:
        """Describe the array of a measure."""
        words = {"units": about["units"], "long_name": about["description"]}
        _describe_array(
            self.path, name, (len(self.design), *about["shape"]), self.chunk, dtype="float64", fill_value=np.nan,
            dimension_names=("member", *about["dims"]), attributes={k: v for k, v in words.items() if v},
        )  # fmt: skip

    def _require_sound(self) -> None:
        """Raise whatever is wrong with the descriptions of the arrays or the members' values."""
        group = _group(self.path, "r")
        shapes = {name: tuple(each["shape"]) for name, each in self.manifest["variables"].items()}
        for name, shape in {"status": (), **shapes}.items():
            found = group[_folder_of(name)]
            if found.shape != (len(self.design), *shape) or found.chunks != (self.chunk, *shape):
                raise ValueError(f"{name!r} has the shape {found.shape} in chunks {found.chunks}")
        if not np.array_equal(_columns_in(self.path, self.design.names, len(self.design)), self.design.values):
            raise ValueError("values of parameters are changed")

    @classmethod
    def _resumed(
        cls, place: Path, lock: Any, design: Design, parts: dict[str, str], code: dict[str, str], retry: bool
    ) -> StudyStore:
        """A store that is there already, after making sure that it is of this study."""
        manifest = read_manifest(place)
        own = manifest["parts"]
        other = [name for name in parts if own.get(name) != parts[name]]
        marks = _marks_in(place)
        if not marks and not other:  # nothing is computed yet, and what was begun may be incomplete
            return cls._created(place, lock, design, int(manifest["chunk"]), parts, code, manifest["about"])
        before = _beginning(design, manifest) if other == ["members"] else design
        if before is None or (other and other != ["members"]):
            raise FileError(
                f"{place}: the store belongs to another study: its {' and its '.join(other)} "
                f"{'differ' if len(other) > 1 or other[0] == 'members' else 'differs'}; give another store, or call "
                "the sweep as it was"
            )
        store = cls(place, manifest, before, marks, lock)
        store._forget_damaged()
        if other:
            store._grow(design, parts)
        try:
            store._require_sound()
        except Exception as error:  # Zarr's own errors are of many kinds
            warn_outside(f"{place}: descriptions of its arrays are damaged ({error}) and written again")
            store._describe()
        if retry:
            store.again = store._failed()
        missing = len(store.missing)
        if manifest["code"] != code:
            was = f"Cardan {manifest['code'].get('version')} (source {manifest['code'].get('source') or 'unknown'})"
            now = f"{code['version']} (source {code['source'] or 'unknown'})"
            if missing:
                raise FileError(
                    f"{place}: {missing} chunks are to be computed, and the others were computed by {was}, not by this "
                    f"one, {now}; their last digits may differ: finish it with that version, or give another store"
                )
            warn_outside(f"{place}: computed by {was}, not by this one, {now}")
        return store

    # Chunks.

    @property
    def chunk(self) -> int:
        """Members of a chunk."""
        return int(self.manifest["chunk"])

    @property
    def missing(self) -> list[tuple[int, int]]:
        """First member and end of the chunks that are not complete, and of members that are computed once more."""
        n = len(self.design)
        ends = [(lo, min(lo + self.chunk, n)) for lo in range(0, n, self.chunk)]
        return [
            *((lo, hi) for lo, hi in ends if self.marks.get(lo // self.chunk, {}).get("members") != [lo, hi]),
            *self.again,
        ]

    def _failed(self) -> list[tuple[int, int]]:
        """First member and end of failed members that follow one another, in complete chunks."""
        state = _state_in(_group(self.path, "r"), len(self.design), self.chunk, self.marks)
        found = []
        for lo in range(0, len(state), self.chunk):
            edges = np.diff((state[lo : lo + self.chunk] == FAILED).astype(int), prepend=0, append=0)
            begin, end = (lo + np.flatnonzero(edges == sign) for sign in (1, -1))
            found += list(zip(begin.tolist(), end.tolist(), strict=True))
        return found

    def write(self, lo: int, results: Results) -> None:
        """Write members from `lo` on, a chunk or a part of one that is complete; it counts once it is on the disk."""
        hi, number = lo + len(results.state), lo // self.chunk
        with _writing(self.path):
            self._make_variables(lo, results)
            made = {name: values for name, values in results.values.items()}
            made["status"] = results.state
            group = _group(self.path, "r+")
            start = number * self.chunk
            whole = [start, min(start + self.chunk, len(self.design))]
            before = {} if [lo, hi] == whole else self.marks[number]
            files: dict[str, str] = dict(before.get("files", {}))
            for name, values in made.items():
                group[_folder_of(name)][lo:hi] = values
                for file in _chunk_files(self.path / _folder_of(name), number):
                    files[file.relative_to(self.path).as_posix()] = _to_disk(file)
            mark = {"chunk": number, "members": whole, "files": files}
            others = {k: why for k, why in before.get("reasons", {}).items() if not lo <= int(k) < hi}
            mark["reasons"] = others | {str(lo + k): why for k, why in results.reasons.items()}
            mark["warned"] = before.get("warned", {}) | {text: lo + k for text, k in results.warned.items()}
            _append(self.path / JOURNAL, json.dumps(mark))
        self.marks[number] = mark

    def _make_variables(self, lo: int, results: Results) -> None:
        """Create the arrays of measures that there are not yet."""
        known = self.manifest["variables"]
        new = {name: values for name, values in results.values.items() if name not in known}
        members = lo + np.flatnonzero(results.state == DONE)
        for name, values in results.values.items():
            if name in known and list(values.shape[1:]) != known[name]["shape"]:
                raise other_shape(name, members, values.shape[1:], tuple(known[name]["shape"]))
        if results.values and known and results.values.keys() != known.keys():
            raise other_names(results.values, known, members)
        for name, values in new.items():
            about = results.about[name]
            known[name] = {
                "shape": list(values.shape[1:]), "dims": list(about.dims), "units": about.units,
                "labels": [None if x is None else list(x) for x in about.labels], "description": about.description,
            }  # fmt: skip
            self._describe_variable(name, known[name])
        if new:
            _consolidate(self.path)
            self._write_manifest()

    def _grow(self, design: Design, parts: dict[str, str]) -> None:
        """Make room for more members behind those that there are."""
        self.design = design
        self._describe()
        self.manifest |= {"dims": design.dims, "parts": parts, "made": design.about}
        self._write_manifest()

    def _forget_damaged(self) -> None:
        """Forget chunks whose files are missing or changed, and say so."""
        damaged = damaged_chunks(self.path, self.marks)
        for number, file in damaged.items():
            lo, hi = self.marks.pop(number)["members"]
            warn_outside(
                f"{self.path}: chunk {number}, members {lo} to {hi - 1}, is damaged ({file}); a sweep computes it again"
            )

    def _write_manifest(self) -> None:
        with whole_file(self.path / MANIFEST, overwrite=True) as part:
            part.write_text(json.dumps(signed(self.manifest), indent=1))

    def study(self) -> Study:
        """What there is."""
        return study_in(self.path, self.manifest, self.design, self.marks)

    def __exit__(self, *error: object) -> None:
        """Let others write."""
        if self.lock is not None:
            self.lock.close()


_WORDS = {"long_name": "0 not computed, 1 computed, 2 failed"}


def load_study(path: Any) -> Study:
    """The study in a store, as far as it is computed, without its model and without locking it.

    Damaged chunks count as not computed; a warning names them. Call `cd.sweep` again to compute them.
    """
    place = _folder(path)
    _zarr()
    manifest = read_manifest(place)
    store = StudyStore(place, manifest, _design_in(place, manifest), _marks_in(place))
    store._forget_damaged()
    return store.study()


def study_in(path: Path, manifest: dict[str, Any], design: Design, marks: dict[int, dict[str, Any]]) -> Study:
    """The study of a store: small arrays are read, large ones when they are needed if dask is installed."""
    try:
        return _study_in(_group(path, "r"), manifest, design, marks)
    except Exception as error:  # Zarr's own errors are of many kinds
        raise FileError(f"{path}: the study cannot be read: {error}; call cd.sweep again, which mends it") from None


def _study_in(group: Any, manifest: dict[str, Any], design: Design, marks: dict[int, dict[str, Any]]) -> Study:
    known, n, chunk = manifest["variables"], len(design), int(manifest["chunk"])
    state = _state_in(group, n, chunk, marks)
    every = {int(k): why for _, mark in sorted(marks.items()) for k, why in mark["reasons"].items()}
    reasons = {k: why for k, why in sorted(every.items()) if k < n and state[k] != TODO}
    size = 8 * n * sum(int(np.prod(each["shape"])) for each in known.values())
    read = _lazily if size > SMALL else _at_once
    variables: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for name, each in known.items():
        about = Described(tuple(each["dims"]), tuple(each["labels"]), each["units"], each["description"])
        values = read(group[_folder_of(name)], state, chunk)
        variables[name] = (("member", *about.dims), values, words_of(about))
        coords |= labels_along(about)
    if "times" in manifest["about"]:
        coords |= time_coordinate(manifest["about"]["times"], variables)
    words = {k: v for k, v in manifest["about"].items() if k != "times"}
    return Study(design, variables, coords, state, reasons, chunk, words)


def _state_in(group: Any, n: int, chunk: int, marks: dict[int, dict[str, Any]]) -> np.ndarray:
    """Status (n,) of all members: 0 in chunks that are not complete."""
    state, status = np.zeros(n, dtype=np.uint8), group["status"]
    for number, mark in marks.items():
        lo, hi = number * chunk, min((number + 1) * chunk, n)
        if mark["members"] == [lo, hi]:
            state[lo:hi] = status[lo:hi]
    return state


def words_of(about: Described) -> dict[str, str]:
    """Attributes of a variable."""
    return {k: v for k, v in {"units": about.units, "long_name": about.description}.items() if v}


def labels_along(about: Described) -> dict[str, Any]:
    """Coordinates of the dimensions of a measure."""
    return {dim: np.asarray(names, dtype=str) for dim, names in zip(about.dims, about.labels, strict=True) if names}


def time_coordinate(times: Any, variables: dict[str, Any]) -> dict[str, Any]:
    """The coordinate `time`, if a measure is over time."""
    if not any("time" in dims for dims, *_ in variables.values()):
        return {}
    return {"time": ("time", np.asarray(times, dtype=float), {"units": "s", "long_name": "time"})}


def _at_once(array: Any, state: np.ndarray, chunk: int) -> np.ndarray:
    """Values of a Zarr array; NaN in chunks that are not complete, which may be damaged."""
    if (state != TODO).all():
        return np.asarray(array[:])
    found = np.full(array.shape, np.nan)
    for lo in range(0, len(state), chunk):
        if (state[lo : lo + chunk] != TODO).all():
            found[lo : lo + chunk] = array[lo : lo + chunk]
    return found


def _lazily(array: Any, state: np.ndarray, chunk: int) -> Any:
    """A dask array of a Zarr array, if dask is installed."""
    try:
        from dask import array as dask_array
    except ImportError:
        return _at_once(array, state, chunk)
    make: Any = dask_array
    whole, parts = make.from_zarr(array), []
    there = np.repeat([bool((state[lo : lo + chunk] != TODO).all()) for lo in range(0, len(state), chunk)], chunk)
    ends = np.flatnonzero(np.diff(there[: len(state)], prepend=~there[0])).tolist()
    for lo, hi in zip(ends, [*ends[1:], len(state)], strict=True):
        part = whole[lo:hi]
        parts.append(part if there[lo] else make.full(part.shape, np.nan, chunks=part.chunks))
    return make.concatenate(parts)


# Files.


def read_manifest(place: Path) -> dict[str, Any]:
    """The manifest of a store."""
    if not (place / MANIFEST).exists():
        raise FileError(f"{place}: there is no study of Cardan; it has no {MANIFEST}")
    try:
        found = json.loads((place / MANIFEST).read_text())
        wanted = {"cardan_study", "parts", "code", "chunk", "about", "variables", "names", "dims", "axes", "made"}
        if not isinstance(found, dict) or not wanted <= found.keys():
            raise ValueError("entries are missing")
        if found["cardan_study"] == FORMAT and found != signed(found):
            raise ValueError("it was changed after it was written; put the old one back, or give another store")
    except (OSError, ValueError) as error:
        raise FileError(f"{place / MANIFEST}: the manifest of the study cannot be read: {error}") from None
    if found["cardan_study"] != FORMAT:
        raise FileError(
            f"{place}: the study has format {found['cardan_study']}, this version of Cardan reads {FORMAT}; update it"
        )
    return dict(found)


def signed(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest with the digest of all its entries."""
    entries = {key: value for key, value in manifest.items() if key != "digest"}
    return {**entries, "digest": _line_digest(json.dumps(entries, sort_keys=True).encode()).decode()}


def damaged_chunks(place: Path, marks: dict[int, dict[str, Any]]) -> dict[int, str]:
    """Chunks of which a file is missing or changed, and that file."""
    found = {}
    for number, mark in marks.items():
        for file, digest in mark["files"].items():
            if _digest_of(place / file) != digest:
                found[number] = file
                break
    return found


def _design_in(place: Path, manifest: dict[str, Any]) -> Design:
    """The members of a store."""
    names, dims = tuple(manifest["names"]), dict(manifest["dims"])
    try:
        values = _columns_in(place, names, math.prod(dims.values()))
        if Design(names, values, dims, {}).fingerprint != manifest["parts"]["members"]:
            raise ValueError("values of parameters are changed")
    except Exception as error:  # Zarr's own errors are of many kinds
        raise FileError(
            f"{place}: the members of the study cannot be read: {error}; call cd.sweep again, which mends them"
        ) from None
    grid = {name: values[:, k].reshape(tuple(dims.values())) for k, name in enumerate(names)}
    coordinates = {}
    for name, axes in manifest["axes"].items():
        place_in = tuple(slice(None) if dim in axes else 0 for dim in dims)
        coordinates[name] = (tuple(axes), grid[name][place_in])
    return Design(names, values, dims, coordinates, manifest["made"])


def _columns_in(place: Path, names: tuple[str, ...], members: int) -> np.ndarray:
    """Values (n, k) of the parameters of the first n members."""
    group = _group(place, "r")
    return np.stack([np.asarray(group[_folder_of(name)][:members]) for name in names], axis=-1)


def _beginning(design: Design, manifest: dict[str, Any]) -> Design | None:
    """The first members of a design, if they are all those of a store; else None."""
    n = math.prod(manifest["dims"].values())
    if list(manifest["dims"]) != list(design.dims) or len(design.dims) != 1 or n > len(design):
        return None
    first = replace(design, values=design.values[:n], dims=dict(manifest["dims"]))
    return first if first.fingerprint == manifest["parts"]["members"] else None


def _marks_in(place: Path) -> dict[int, dict[str, Any]]:
    """Lines of the journal by chunk, the last of each; a line that is not whole is left out."""
    found: dict[int, dict[str, Any]] = {}
    try:
        text = (place / JOURNAL).read_bytes()
    except FileNotFoundError:
        return found
    except OSError as error:
        raise FileError(f"{place / JOURNAL}: cannot be read, {error.strerror}") from None
    for line in text.split(b"\n"):
        digest, _, rest = line.partition(b" ")
        if digest == _line_digest(rest):
            mark = json.loads(rest)
            found[int(mark["chunk"])] = mark
    return found


def _line_digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=8).hexdigest().encode()


def _append(path: Path, text: str) -> None:
    """Add a line and flush it to the disk; a line before it that was cut off is ended first."""
    data = text.encode()
    with open(path, "ab") as file:
        file.write(b"\n" + _line_digest(data) + b" " + data)
        file.flush()
        os.fsync(file.fileno())


def _chunk_files(array: Path, number: int) -> Iterator[Path]:
    """The file of a chunk of members of an array, which is one chunk along all other axes."""
    base = array / "c" / str(number)
    yield from ([base] if base.is_file() else sorted(p for p in base.rglob("*") if p.is_file()))


def _to_disk(file: Path) -> str:
    """Flush a file to the disk; its digest."""
    with open(file, "rb") as opened:
        data = opened.read()
        os.fsync(opened.fileno())
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _digest_of(file: Path) -> str:
    try:
        return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""


def _is_empty(place: Path) -> bool:
    """Whether a folder has nothing but what a sweep leaves that is stopped before it begins."""
    return all(x.name == LOCK or x.name.startswith(f".{MANIFEST}.") for x in place.iterdir())


def _folder(path: Any) -> Path:
    if isinstance(path, str) and "://" in path:
        raise InputError(f"sweep: store must be a folder of this machine, got {path!r}; workers send results here")
    place = file_path(path)
    if place.parent != Path() and not place.parent.is_dir():
        raise FileError(f"{place}: the folder {place.parent} does not exist; make it first")
    return place


@contextlib.contextmanager
def _writing(place: Path) -> Iterator[None]:
    """Errors of the file system as sentences."""
    try:
        yield
    except OSError as error:
        text = str(cannot_write(place, error))
        raise FileError(f"{text} Chunks that are complete are kept; call the sweep again to go on") from error


def _locked(place: Path) -> Any:
    """The open lock file; the system frees it when the process ends, however it ends."""
    with _writing(place):
        file = open(place / LOCK, "a+b")  # noqa: SIM115
    if not _try_lock(file):
        file.seek(0)
        holder = file.read(200).decode(errors="replace").strip() or "another process"
        file.close()
        raise FileError(f"{place}: another sweep is at work on this store ({holder}); wait for it, or give another")
    file.seek(0)
    file.truncate()
    file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
    file.flush()
    return file


def _try_lock(file: Any) -> bool:
    try:
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
    except OSError:
        return False
    return True


def _group(place: Path, mode: str) -> Any:
    """The Zarr group in a folder; `use_consolidated` would hide arrays that were made later."""
    return _zarr().open_group(place, mode=mode, use_consolidated=False)


def _folder_of(name: str) -> str:
    """Folder of an array in a store."""
    return name.replace("/", SLASH)


def _describe_group(place: Path, words: dict[str, str]) -> None:
    """Write the description of the group."""
    with tempfile.TemporaryDirectory() as fresh:
        _zarr().create_group(fresh, attributes=words)
        _put(Path(fresh) / META, place / META)


def _describe_array(place: Path, name: str, shape: tuple[int, ...], chunk: int, **words: Any) -> None:
    """Write the description of an array; its chunks are left alone, which Zarr itself would remove."""
    from zarr.codecs import Crc32cCodec

    with tempfile.TemporaryDirectory() as fresh:
        _zarr().create_array(fresh, shape=shape, chunks=(chunk, *shape[1:]), compressors=[Crc32cCodec()], **words)
        (place / _folder_of(name)).mkdir(exist_ok=True)
        _put(Path(fresh) / META, place / _folder_of(name) / META)


def _put(source: Path, target: Path) -> None:
    with whole_file(target, overwrite=True) as part:
        part.write_bytes(source.read_bytes())


def _consolidate(place: Path) -> None:
    """Gather the metadata of all arrays in one file, with which other readers open the group at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is not part of the specification of Zarr 3 yet
        _zarr().consolidate_metadata(str(place))


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise InputError(f"sweep: {EXTRA}") from None
    return zarr
