"""`cardan bench`: measure forward dynamics on this machine, in a few seconds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import as_file
from importlib.resources import files as package_files
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cardan.commands.arguments import Json, complete_file, complete_formulation, read_model
from cardan.commands.output import plain_table, screen, tracked
from cardan.errors import CardanError

if TYPE_CHECKING:
    from cardan.model.model import Model

JOINT_SPACE = ("spatial", "newton_euler")
# Measured by default; other formulations take long to compile for a robot.
USUAL = {"double_pendulum": None, "four_bar": None, "arm.urdf": JOINT_SPACE}  # None: all of them
ROWS = 8192
ONE = 200  # single calls timed together


def bench(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", show_default=False, autocompletion=complete_file,
                       help="Models to measure; two mechanisms and a robot arm by default."),
    ] = None,
    formulation: Annotated[
        list[str] | None,
        typer.Option("--formulation", "-f", metavar="NAME", show_default=False, autocompletion=complete_formulation,
                     help="Formulation to measure; repeatable."),
    ] = None,
    threads: Annotated[
        int | None, typer.Option(min=1, metavar="COUNT", show_default=False, help="Threads; all cores by default.")
    ] = None,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Measure forward dynamics on this machine: compilation, one call, a batch.

    It takes a few seconds. In a checkout, `python -m benchmarks` compares with other engines.

    Example: [bold]cardan bench four_bar[/bold]
    """
    from cardan.formulation.registry import find_formulation, formulation_names

    for name in formulation or ():
        find_formulation(name)  # refuse an unknown one before anything is measured
    usual = {name: own or formulation_names() for name, own in USUAL.items()}
    chosen = {name: formulation or JOINT_SPACE for name in files} if files else usual
    with as_file(package_files("cardan") / "data" / "arm.urdf") as arm:
        places = {} if files else {"arm.urdf": str(arm)}
        models = {name: read_model(places.get(name, name), tell=bool(files)) for name in chosen}
    jobs = [
        (models[name], each) for name, own in chosen.items() for each in own if not formulation or each in formulation
    ]
    found = [row for job in tracked(jobs, "measuring") if (row := _measure(*job, threads)) is not None]
    import cardan as cd

    count = threads or cd.get_threads()
    if as_json:
        print(json.dumps({"rows": ROWS, "threads": count, "results": found}, indent=1))
        return
    headings = ("model", "formulation", "compile s", "one call us", "batch ns", "all threads")
    rows = [
        (r["model"], r["formulation"], f"{r['compile_s']:.2f}", f"{r['one_call_s'] * 1e6:.1f}",
         f"{r['batch_s'] * 1e9:.0f}", f"{r['per_second']:.1e}/s")
        for r in found
    ]  # fmt: skip
    console = screen()
    console.print(plain_table(headings, rows, right=(2, 3, 4, 5)))
    console.print(
        f"Accelerations in float64; batch: each of {ROWS} states on one thread; all threads: {count}. Compiled "
        "without the cache on disk."
    )


def _measure(model: Model, formulation: str, threads: int | None) -> dict[str, Any] | None:
    """One row; None if the formulation cannot express the model."""
    from dataclasses import replace

    import numpy as np

    import cardan as cd

    model = replace(model)  # it remembers nothing
    q, v = cd.assemble(model)
    tau = np.zeros(model.nv)
    Q, V, T = (np.tile(x, (ROWS, 1)) for x in (q, v, tau))

    def call(*state: Any, threads: int | None = 1) -> Any:
        return cd.forward_dynamics(model, *state, formulation=formulation, threads=threads)

    try:
        with _in_full():
            compiling = _time(lambda: (call(q, v, tau), call(Q, V, T)))
    except CardanError:
        return None
    one = min(_time(lambda: [call(q, v, tau) for _ in range(ONE)]) for _ in range(3)) / ONE
    alone = min(_time(lambda: call(Q, V, T)) for _ in range(5)) / ROWS
    together = min(_time(lambda: call(Q, V, T, threads=threads)) for _ in range(5)) / ROWS
    return {
        "model": model.name, "formulation": formulation, "bodies": model.nb, "compile_s": compiling,
        "one_call_s": one, "batch_s": alone, "per_second": 1 / together,
    }  # fmt: skip


@contextmanager
def _in_full() -> Iterator[None]:
    """Compile full code, without the cache on disk."""
    wanted = {"CARDAN_CACHE": "0", "CARDAN_QUICK": "0"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _time(work: Callable[[], object]) -> float:
    began = perf_counter()
    work()
    return perf_counter() - began
