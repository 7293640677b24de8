"""`cardan simulate`: simulate a mechanism; write its trajectory, a plot and a page as files."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from cardan.commands.arguments import (
    Changes,
    File,
    Force,
    Formulation,
    JointFriction,
    Json,
    Limits,
    Rate,
    Root,
    Start,
    complete_method,
    measured,
    read_model,
    start_state,
)
from cardan.commands.output import (
    DESCRIPTIONS,
    as_typed,
    plain_table,
    planned,
    planned_video,
    say_error,
    screen,
    written,
)
from cardan.errors import InterruptedRunError, SimulationError
from cardan.integrate.integrators import INTEGRATORS, find_integrator, with_options

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

Method = Annotated[
    str,
    typer.Option("--method", "-m", metavar="NAME", autocompletion=complete_method,
                 help=f"{', '.join([*INTEGRATORS][:-1])} or {[*INTEGRATORS][-1]}."),
]  # fmt: skip


def simulate(
    file: File,
    time: Annotated[str, typer.Option("--time", "-t", metavar="TIME", help="Duration: 10, 500ms, 2min.")] = "10",
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="NAME", show_default=False,
                     help="Write NAME.nc, NAME.png and NAME.html; otherwise nothing is written."),
    ] = None,
    start: Start = None,
    rate: Rate = None,
    method: Method = "dormand_prince",
    baumgarte: Annotated[
        float | None,
        typer.Option(metavar="RATE", show_default=False,
                     help="Of the explicit methods: rate of Baumgarte's feedback on loops, 1/s."),
    ] = None,
    damping: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", show_default=False,
                     help="Of alpha: spectral radius at infinite frequency, 0 (most damping) to 1 (none)."),
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="Of gear: stabilised or index1."),
    ] = None,
    max_order: Annotated[
        int | None,
        typer.Option(metavar="COUNT", show_default=False, help="Of gear, bdf and adams: highest order."),
    ] = None,
    formulation: Formulation = "spatial",
    step: Annotated[
        str | None,
        typer.Option(metavar="TIME", show_default=False,
                     help="Length of the steps of rk4, euler and alpha: 1ms; of the others the first step."),
    ] = None,
    rtol: Annotated[float, typer.Option(metavar="NUMBER", help="Relative tolerance.")] = 1e-8,
    atol: Annotated[float, typer.Option(metavar="NUMBER", help="Absolute tolerance, SI units.")] = 1e-10,
    samples: Annotated[int, typer.Option(metavar="COUNT", help="Number of samples, evenly spaced.")] = 501,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="cpu, gpu, or gpu:1 for the second GPU."),
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", metavar="", help="Write NAME.csv too.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", metavar="", help="Write NAME.parquet too.")] = False,
    video: Annotated[
        Path | None,
        typer.Option(metavar="FILE", show_default=False, help="Write a video: run.mp4, run.webm or run.gif."),
    ] = None,
    no_plot: Annotated[bool, typer.Option("--no-plot", metavar="", help="Write no plot.")] = False,
    no_page: Annotated[bool, typer.Option("--no-page", metavar="", help="Write no page.")] = False,
    force: Force = False,
    changes: Changes = None,
    root: Root = "fixed",
    limits: Limits = "ignore",
    friction: JointFriction = "ignore",
    as_json: Json = False,
) -> None:  # fmt: skip
    """Simulate a mechanism; write its trajectory, a plot and a page.

    Exit status 1 if the simulation fails before its end; what was computed until then is still written.

    Example: [bold]cardan simulate four_bar --time 10 --rate A=2rad/s --out run[/bold]
    """
    wanted = {".nc": True, ".png": not no_plot, ".html": not no_page, ".csv": csv, ".parquet": parquet}
    paths = planned(out, [suffix for suffix, asked in wanted.items() if asked], force)
    paths += planned_video(video, force)
    model = read_model(file, root, changes, limits=limits, friction=friction)
    own = {"baumgarte": baumgarte, "damping": damping, "form": form, "max_order": max_order}
    given = {name: value for name, value in own.items() if value is not None}
    options: dict[str, Any] = {
        "method": with_options(find_integrator(method), given), "formulation": formulation,
        "rtol": rtol, "atol": atol, "samples": samples, "device": device,
        "step": None if step is None else measured("--step", step, "s"),
    }  # fmt: skip
    duration = measured("--time", time, "s")
    q0, v0 = start_state(model, start or (), rate or ())
    import cardan as cd

    run: Trajectory | None
    status, why, began = 0, None, perf_counter()
    try:
        run = cd.simulate(model, duration, q0, v0, **options)
    except SimulationError as error:
        why, run = as_typed(str(error)), error.partial
        status = 130 if isinstance(error, InterruptedRunError) else 1
    took = perf_counter() - began
    if why is not None:
        say_error(why)
    if run is None:
        raise typer.Exit(status)
    with np.errstate(all="ignore"):  # a run that failed may end in infinite values
        files, failed = written(run, paths, force)
        facts = summary(run, took) | {"error": why, "files": [str(path) for path in files]}
    if why is not None and files:
        say_error(f"what was computed until then is in {', '.join(map(str, files))}")
    for sentence in failed:
        say_error(sentence)
    if as_json:
        known = {key: None if isinstance(x, float) and not np.isfinite(x) else x for key, x in facts.items()}
        print(json.dumps(known, indent=1))
    else:
        _show(facts, bool(paths))
    raise typer.Exit(status or (1 if failed else 0))


def summary(run: Trajectory, took: float) -> dict[str, Any]:
    """Summary of a run, in SI units."""
    return {
        "model": run.model.name,
        "method": run.method,
        "formulation": run.formulation,
        "start": float(run.time[0]),
        "end": float(run.time[-1]),
        "samples": len(run.time),
        "steps": run.statistics.get("steps"),
        "seconds": took,
        "conserved": not np.any(run.power),
        "energy_error": run.statistics["energy_error"],
        "largest_kinetic_energy": float(run.kinetic.max()),
        "position_residual": float(run.residuals.position.max()),
        "velocity_residual": float(run.residuals.velocity.max()),
        "constrained": bool(run.model.cuts or run.model.couplings),
        "losses": list(run.model.losses),
    }


def _show(facts: dict[str, Any], asked: bool) -> None:
    """Print the summary as a table."""
    drift, largest = facts["energy_error"], facts["largest_kinetic_energy"]
    of_kinetic = f", {drift / largest:.1e} of the largest kinetic energy" if largest else ""
    rows = [
        ("model", facts["model"]),
        ("solved by", f"{facts['method']}, {facts['formulation']}"),
        ("time", f"{facts['start']:g} s to {facts['end']:.6g} s, in {facts['seconds']:.2f} s"),
        ("samples", f"{facts['samples']}, from {facts['steps']} steps"),
        ("energy drift" if facts["conserved"] else "energy less work", f"{drift:.1e} J{of_kinetic}"),
    ]
    if facts["constrained"]:
        worst = f"{facts['position_residual']:.1e} m or rad, {facts['velocity_residual']:.1e} m/s or rad/s"
        rows.append(("worst residual", worst))
    rows += [(DESCRIPTIONS[Path(path).suffix.lower()], path) for path in facts["files"]]
    if not asked:
        rows.append(("files", "none; --out NAME writes them"))
    screen().print(plain_table(("", ""), rows))
