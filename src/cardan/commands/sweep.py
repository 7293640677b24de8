"""`cardan sweep`: compute a study from its file, go on with it, see how far it is, and plot it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from typer.core import TyperGroup

from cardan.commands.arguments import Force, Json, measured, read_model, split_setting
from cardan.commands.output import plain_table, require_writable, say_error, screen
from cardan.errors import FileError, InputError, InterruptedRunError, nearest

if TYPE_CHECKING:
    from cardan.studies.study import Study
    from cardan.studies.study_file import StudyFile

NOTE = "study file"  # the note of a store that has the path of its study file
HEADINGS = ("least", "median", "largest")
COMPONENTS = 12  # most components of a measure that are printed one by one
LARGE = 2**30  # bytes: measures above are not read to print their range
REASONS = 5  # reasons of failed members that are printed
StoreFile = Annotated[
    Path,
    typer.Argument(metavar="STORE", show_default=False, help="Folder of a study's results, or its study file."),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", "-w", min=1, metavar="COUNT", show_default=False,
                 help="Local processes that compute; by default the file's, or this process with its threads."),
]  # fmt: skip
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", show_default=False,
                 help="Compute on a Dask cluster: tcp://host:8786, or the name of a scheduler file."),
]  # fmt: skip

Retry = Annotated[bool, typer.Option("--retry", metavar="", help="Compute members that failed earlier once more.")]


class _SweepGroup(TyperGroup):
    """A group whose command `run` need not be named: `cardan sweep study.yaml`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `run` before a file or an option; another word is a command, or a slip of the pen."""
        word = args[0] if args else ""
        if word not in (*self.commands, *ctx.help_option_names) and (word[:1] == "-" or Path(word).suffix):
            args = ["run", *args]
        return list(super().parse_args(ctx, args))


sweep_app = typer.Typer(
    name="sweep",
    cls=_SweepGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Compute a study: a model with many values of its numbers; called again it goes on where it stood.\n\n"
    "Examples: [bold]cardan sweep study.yaml[/bold], [bold]cardan sweep status study.zarr[/bold]",
)


@sweep_app.command("run")
def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", show_default=False, help="A study file, .yaml: see docs/sweeps.md.")
    ],
    store: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", show_default=False, help="Folder of the results; by default the file's."),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    check: Annotated[
        bool, typer.Option("--check", metavar="", help="Read the file and say what would be computed.")
    ] = False,
    retry: Retry = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Compute a study from its file; called again it goes on where it stood.

    Exit status 1 if no member could be computed, 130 if interrupted.

    Example: [bold]cardan sweep study.yaml --workers 4[/bold]
    """
    _require_study_file(file)
    study = _read(file)
    if check:
        _show_plan(study, store or study.store)
        return
    _compute(study, store or study.store, workers, scheduler, retry, as_json)


@sweep_app.command("resume")
def resume(
    store: StoreFile, workers: Workers = None, scheduler: Scheduler = None, retry: Retry = False, as_json: Json = False
) -> None:
    """Go on with a study that was interrupted, from its store.

    Example: [bold]cardan sweep resume study.zarr[/bold]
    """
    from cardan.studies.store import read_manifest

    place = _store(store)
    path = read_manifest(place)["about"].get("notes", {}).get(NOTE)
    if path is None:
        raise FileError(
            f"{place}: the study was not made by a study file; call cd.sweep as it was called, with this store"
        )
    if not Path(path).is_file():
        raise FileError(
            f"{place}: its study file {path} is gone; put it back, or give the new place: cardan sweep FILE --store "
            f"{quote(str(place))}"
        )
    _compute(_read(Path(path)), place, workers, scheduler, retry, as_json)


@sweep_app.command("status")
def status(store: StoreFile, as_json: Json = False) -> None:
    """Say how far a study is, which members failed and why; the study may be at work meanwhile.

    Example: [bold]cardan sweep status study.zarr[/bold]
    """
    import cardan as cd

    place = _store(store)
    study = cd.load_study(place)
    if as_json:
        print(json.dumps(_facts(study, place, None), indent=1))
        return
    _show(study, place, None)


@sweep_app.command("plot")
def plot(
    store: StoreFile,
    measure: Annotated[
        str | None, typer.Argument(metavar="MEASURE", show_default=False, help="What to plot; the first by default.")
    ] = None,
    kind: Annotated[
        str, typer.Option("--kind", "-k", metavar="KIND", help="lines, map, scatter, histogram or tornado.")
    ] = "lines",
    over: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", show_default=False, help="Parameter, or time, to draw over; two for a map."),
    ] = None,
    at: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", show_default=False,
                     help="Take one entry of an axis: A=30deg, component=x; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FIGURE", show_default=False,
                     help="A .png, .svg or .pdf file; by default the store's name and the kind, .png."),
    ] = None,
    degrees: Annotated[bool, typer.Option("--degrees", metavar="", help="Angles in degrees.")] = False,
    force: Force = False,
) -> None:  # fmt: skip
    """Plot measures of a study.

    Examples: [bold]cardan sweep plot study.zarr load --over crank.mass[/bold],
    [bold]cardan sweep plot study.zarr --kind tornado[/bold]
    """
    import cardan as cd

    if kind not in PLOTS:
        raise InputError(f"--kind must be one of {', '.join(PLOTS)}, got {kind!r}{nearest(kind, PLOTS)}")
    place = _store(store)
    path = out or Path(f"{place.stem}_{kind}.png")
    require_writable(path, force)
    study = cd.load_study(place)
    if kind not in ("lines", "map", "scatter") and over:
        raise InputError(f"--over is for lines, map and scatter; a {kind} is over all members")
    taken = dict(_entry(study, text) for text in at or ())
    options: dict[str, Any] = {
        "at": taken or None, "angle": "deg" if degrees else "rad", "path": path, "overwrite": force,
    }  # fmt: skip
    PLOTS[kind](study, measure, list(over or ()), options)
    print(path)


PLOTS: dict[str, Any] = {
    "lines": lambda study, measure, over, options: study.plot(measure, *_one(over), **options),
    "map": lambda study, measure, over, options: study.plot_map(measure, *over[:2], **options),
    "scatter": lambda study, measure, over, options: study.plot_scatter(measure, over or None, **options),
    "histogram": lambda study, measure, over, options: study.plot_histogram(measure, **options),
    "tornado": lambda study, measure, over, options: study.plot_tornado(measure, **options),
}


def _one(over: list[str]) -> list[str]:
    if len(over) > 1:
        raise InputError(f"lines are drawn over one parameter, got --over {' --over '.join(over)}")
    return over


def _entry(study: Study, text: str) -> tuple[str, Any]:
    """An axis and the entry of it: a label as it is, a number in the unit of a parameter."""
    name, value = split_setting("--at", text)
    if name in study.design.names:
        return name, measured(f"--at {name}", value, study.about.get("units", {}).get(name) or "1")
    if name == "time":
        return name, measured("--at time", value, "s")
    try:
        return name, float(value)
    except ValueError:
        return name, value


def _require_study_file(file: Path) -> None:
    if file.is_dir():
        raise FileError(
            f"{file}: it is a folder; cardan sweep resume {quote(str(file))} goes on with the study in a store"
        )
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise FileError(f"{file}: a study file is a .yaml file; docs/sweeps.md describes it")


def _read(file: Path) -> StudyFile:
    from cardan.studies.study_file import read_study_file

    def load(name: str, root: str, changes: dict[str, str]) -> Any:
        return read_model(name, root, [f"{key}={value}" for key, value in changes.items()])

    return read_study_file(file, load)


def _store(given: Path) -> Path:
    """The folder of a study: as given, or that of a study file."""
    if given.is_dir() or given.suffix.lower() not in (".yaml", ".yml"):
        return given
    from cardan.studies.study_file import store_of

    return store_of(given)


@contextmanager
def _client(scheduler: str | None) -> Iterator[Any]:
    """A client of a Dask cluster, or None."""
    if scheduler is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--scheduler needs Dask; pip install 'cardan[sweep]'") from None
    connect: Any = Client
    try:
        client = connect(scheduler_file=scheduler) if Path(scheduler).is_file() else connect(scheduler, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"--scheduler: there is no Dask scheduler at {scheduler}: {error}") from None
    with client:
        yield client


def _compute(
    file: StudyFile, store: Path, workers: int | None, scheduler: str | None, retry: bool, as_json: bool
) -> None:
    """Compute what is missing of a study and print what there is."""
    import cardan as cd

    if workers is not None and scheduler is not None:
        raise InputError("give --workers or --scheduler, not both: the workers of the cluster compute")
    began, stopped = perf_counter(), None
    with _client(scheduler) as client:
        try:
            found = cd.sweep(
                file.model, file.design, run=file.run, measure=file.measures, store=store, client=client,
                workers=None if client is not None else workers or file.workers, chunk=file.chunk,
                notes={NOTE: str(file.path.resolve())}, retry=retry,
            )  # fmt: skip
        except InterruptedRunError as error:
            stopped, found = error, error.partial
    took = perf_counter() - began
    if stopped is not None:
        say_error(f"interrupted; cardan sweep resume {quote(str(store))} goes on")
    if as_json:
        print(json.dumps(_facts(found, store, took), indent=1))
    else:
        _show(found, store, took)
    raise typer.Exit(130 if stopped is not None else 0 if found.status.done else 1)


def _facts(study: Study, store: Path, took: float | None) -> dict[str, Any]:
    """A study as JSON takes it."""
    status = study.status
    return {
        "model": study.about.get("model"), "store": str(store), "design": study.design.kind,
        "axes": study.design.dims, "parameters": list(study.design.names), "members": status.members,
        "computed": status.done, "failed": status.failed, "complete": status.complete, "seconds": took,
        "reasons": {str(k): why for k, why in study.reasons.items()},
        "measures": dict(_measures(study)),
        "notes": dict(study.about.get("notes", {})),
    }  # fmt: skip


def _measures(study: Study) -> Iterator[tuple[str, dict[str, Any]]]:
    """Unit, and the least, median and largest number of each measure, by component where it has few of them."""
    for name in study.variables:
        array = study.dataset[name]
        extra = [dim for dim in array.dims if dim not in study.design.dims and dim != "time"]
        parts = {name: array}
        if len(extra) == 1 and extra[0] in array.coords and array.sizes[extra[0]] <= COMPONENTS:
            parts = {f"{name}, {x}": array.isel({extra[0]: k}) for k, x in enumerate(array[extra[0]].values)}
        for label, part in parts.items():
            values = np.asarray(part.values if array.nbytes <= LARGE else ())
            values = values[np.isfinite(values)]
            ends = (float(x) for x in np.quantile(values, (0, 0.5, 1))) if len(values) else (None,) * 3
            yield label, dict(zip(("units", *HEADINGS), (array.attrs.get("units", ""), *ends), strict=True))


def _show(study: Study, store: Path, took: float | None) -> None:
    """Print how far a study is, its measures, and why members failed."""
    status = study.status
    left = status.members - status.done - status.failed
    axes = " x ".join(f"{name} {size}" for name, size in study.design.dims.items())
    members = f"{status.members:,}: {status.done:,} computed, {status.failed:,} failed"
    rows = [
        ("model", study.about.get("model", "")),
        ("design", f"{study.design.kind}, {axes}"),
        ("parameters", ", ".join(study.design.names)),
        ("members", members + (f", {left:,} to be computed" if left else "")),
    ]
    if took is not None:
        rows.append(("time", f"{took:.2f} s"))
    rows.append(("store", str(store)))
    screen().print(plain_table(("", ""), rows))
    if status.done:
        print()
        lines = [
            (name, row["units"], *("" if row[x] is None else f"{row[x]:.6g}" for x in HEADINGS))
            for name, row in _measures(study)
        ]
        screen().print(plain_table(("measure", "unit", *HEADINGS), lines, right=(2, 3, 4)))
    if study.reasons:
        print()
        counts = Counter(study.reasons.values())
        first = {why: number for number, why in reversed(list(study.reasons.items()))}
        for why, count in counts.most_common(REASONS):
            more = f" and {count - 1:,} more" if count > 1 else ""
            screen().print(f"member {first[why]}{more} failed: {why}", markup=False, soft_wrap=True)
        if len(counts) > REASONS:
            print(f"and {len(counts) - REASONS} other reasons: --json lists all of them")
        if took is None:
            print(f"cardan sweep resume --retry {quote(str(store))} computes them once more")
    if left and took is None:
        print(f"\ncardan sweep resume {quote(str(store))} goes on")


def _show_plan(study: StudyFile, store: Path) -> None:
    """Print what a study file asks for."""
    design = study.design
    axes = " x ".join(f"{name} {size}" for name, size in design.dims.items())
    rows = [
        ("model", study.model.name), ("design", f"{design.kind}, {axes}"), ("members", f"{len(design):,}"),
        ("run", f"{study.run.duration:g} s, {len(study.run.times(study.model))} samples"),
        ("measures", ", ".join(study.measures)), ("store", f"{store}{' (exists)' if store.exists() else ''}"),
    ]  # fmt: skip
    screen().print(plain_table(("", ""), rows))
    print()
    ranges = [(n, f"{design[n].min():.6g}", f"{design[n].max():.6g}") for n in design.names]
    screen().print(plain_table(("parameter", "least", "largest"), ranges, right=(1, 2)))
