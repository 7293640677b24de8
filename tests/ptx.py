"""`python -m tests.ptx`: PTX of the whole catalogue without a card; registers and spills where `ptxas` can be had.

Every function of a state, and runs with and without events, are called on every mechanism of `cardan.mechanisms`; the
programs that these calls compile for the CPU are printed for a card.

    python -m tests.ptx                           # all mechanisms, float64, sm_90
    python -m tests.ptx four_bar --dtype float --architecture 75 --architecture 120
    python -m tests.ptx --derivatives             # with the derivatives by q of every function of a state
    python -m tests.ptx --slowest 10              # the programs that take longest

`ptxas` is found on the path, or in the package `nvidia-cuda-nvcc`.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cardan as cd
from cardan.machines.build import Builder
from cardan.machines.cuda.entry import print_entry
from cardan.machines.cuda.ptx import to_ptx
from cardan.machines.ufunc.kernel import Kernel
from cardan.mechanisms import CATALOGUE, chain
from cardan.program.program import Program
from cardan.structure.kernels import is_large

ARCHITECTURES = (75, 80, 90, 100, 120)
NO_PTXAS = "ptxas is not installed: `pip install nvidia-cuda-nvcc`, or put it on the path"

# Beside the catalogue: past 64 links recursions are looped, and what is not takes minutes to compile.
LOOPED = ("forward_dynamics", "inverse_dynamics", "mass_matrix", "body_poses", "body_twists", "kinetic_energy")


def sliding_block() -> cd.Mechanism:
    """A block with friction that sticks, between stops, driven by a table."""
    m = cd.Mechanism("block", gravity=(0, 0, 0))
    m.body("block", mass=1.0, inertia=(0.1, 0.1, 0.1))
    m.joint("slide", cd.Prismatic(axis=(1, 0, 0)), m.ground, "block")
    m.friction("rub", "slide", coulomb=0.4, stick=True)
    m.stop("end", "slide", lower=-0.5, upper=0.5, restitution=0.6)
    pull = cd.table(np.linspace(-1, 1, 9), np.linspace(1, -1, 9) ** 3)
    m.drive("pull", "slide", lambda t, q, v: 5 * pull(q))
    return m


def slipping_ball() -> cd.Mechanism:
    """A ball that slips, rolls and bounces on a plane."""
    m = cd.Mechanism("ball")
    m.body("ball", mass=1.0, inertia=(0.004, 0.004, 0.004))
    m.joint("float", cd.Free(), m.ground, "ball", start=(0, 0, 0.1, 1, 0, 0, 0))
    m.roll("lane", "ball", m.ground, radius=0.1, friction=0.3, restitution=0.5)
    return m


MECHANISMS: dict[str, Callable[[], cd.Mechanism]] = {
    **CATALOGUE, "chain of 70": lambda: chain(70), "sliding block": sliding_block, "slipping ball": slipping_ball,
}  # fmt: skip


@contextmanager
def collected() -> Iterator[dict[tuple[str, str], Program]]:
    """The programs whose kernels are made meanwhile, by name and key."""
    found: dict[tuple[str, str], Program] = {}
    make = Kernel.__init__

    def remember(kernel: Kernel, program: Program) -> None:
        found.setdefault((program.name, program.key), program)
        make(kernel, program)

    Kernel.__init__ = remember  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Kernel.__init__ = make  # type: ignore[method-assign]


def functions_of_a_state() -> dict[str, Callable[..., Any]]:
    """The public functions that take a model and a state and write to `out`."""
    found = {name: getattr(cd, name) for name in cd.__all__ if inspect.isfunction(getattr(cd, name))}
    return {name: f for name, f in found.items() if {"model", "q", "out"} <= set(inspect.signature(f).parameters)}


def programs_of(model: cd.Model, derivatives: bool = False) -> list[Program]:
    """The programs of all functions and of runs of a model."""
    functions = functions_of_a_state()
    if is_large(model):
        functions = {name: functions[name] for name in LOOPED}
    with collected() as found, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        q, v = cd.assemble(model, model.start(), np.zeros(model.nv))
        given = {"q": q, "v": v, "a": np.zeros(model.nv), "tau": np.zeros(model.nv), "frame": model.bodies[0].name}
        for function in functions.values():
            known = inspect.signature(function).parameters
            state = {key: value for key, value in given.items() if key in known}
            for more in ({}, {"by": "q"}) if derivatives and "by" in known else ({},):
                with suppress(cd.CardanError):  # a tree has no reactions of loops, a loop needs to know what is driven
                    function(model, **state, **more)
        if not is_large(model):
            with suppress(cd.CardanError):
                cd.inverse_dynamics(model, q, v, given["a"], driven=[model.joints[0].name])
        with suppress(cd.CardanError):
            cd.forward_dynamics(model, q, v, by=("q", "v", "tau"))
        with suppress(cd.CardanError):
            cd.vjp(model, "forward_dynamics", {"q": q, "v": v, "tau": given["tau"]}, np.ones(model.nv))
        event = cd.Event("passes", lambda now: now.v[0] - 1e3)
        methods = [{}, {"method": "rk4", "step": 1e-3}, {"events": [event]}, {"method": "alpha", "step": 1e-3}]
        if model.laws:
            methods.append({"method": "moreau", "step": 1e-3})
        for options in methods[: 2 if is_large(model) else None]:
            with suppress(cd.CardanError):
                cd.simulate(model, 2e-3, q, v, **options)
    return list(found.values())


@dataclass(frozen=True)
class Made:
    """What became of a program."""

    mechanism: str
    program: str
    kind: str  # Graph, Schedule, Stages or March
    architecture: int
    seconds: float  # of processor time for recording, printing and LLVM
    ptx: str
    assembled: Assembled | None = None


@dataclass(frozen=True)
class Assembled:
    """What `ptxas -v` tells of a kernel."""

    registers: int
    stack: int  # bytes of a thread
    spills: int  # bytes stored
    seconds: float  # of processor time


def make(program: Program, dtype: str = "double", architecture: int = 90, mechanism: str = "") -> Made:
    """PTX of a program."""
    start = time.process_time()
    builder = Builder(program)
    text = to_ptx(print_entry(builder.recorded(), builder.compiled, dtype), architecture)
    kind = type(builder.recorded()).__name__
    return Made(mechanism, program.name, kind, architecture, time.process_time() - start, text)


def fault(text: str, architecture: int) -> str:
    """What is wrong with PTX of a program; "" if it has the kernel `rows` and nothing from outside."""
    if len(re.findall(r"\.visible \.entry rows\(", text)) != 1:
        return "there is no kernel `rows`"
    if f".target sm_{architecture}\n" not in text:
        return "it is for another architecture"
    outside = re.findall(r"\.extern\s+\.func\s+(?:\([^)]*\)\s*)?(\w+)", text)
    return f"it calls {', '.join(outside)} from outside" if outside else ""


def find_ptxas() -> str | None:
    """The assembler, on the path or from the package index."""
    if found := shutil.which("ptxas"):
        return found
    for distribution in importlib.metadata.distributions():
        if (distribution.metadata["Name"] or "").startswith("nvidia-cuda-nvcc"):
            for file in distribution.files or ():
                if file.name in ("ptxas", "ptxas.exe"):
                    return str(file.locate())
    return None


def assemble(text: str, architecture: int, ptxas: str) -> Assembled:
    """Machine code of PTX, which is thrown away; RuntimeError where it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(text)
        start = os.times().children_user
        command = [ptxas, "-v", f"-arch=sm_{architecture}", str(path), "-o", str(path.with_suffix(".cubin"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    said = done.stderr
    numbers = {
        name: int(found[1]) if (found := re.search(pattern, said)) else 0
        for name, pattern in {
            "registers": r"Used (\d+) registers",
            "stack": r"(\d+) bytes stack frame",
            "spills": r"(\d+) bytes spill stores",
        }.items()
    }
    return Assembled(**numbers, seconds=os.times().children_user - start)


def row_of(name: str, dtype: str, architectures: tuple[int, ...], derivatives: bool) -> list[Made]:
    """Everything of one mechanism; RuntimeError names the program that failed."""
    ptxas, rows = find_ptxas(), []
    for program in programs_of(MECHANISMS[name]().build(), derivatives):
        if not program.without_empty_ports().outputs:
            continue
        for architecture in architectures:
            made = make(program, dtype, architecture, name)
            if said := fault(made.ptx, architecture):
                raise RuntimeError(f"{name}: {program.name}: {said}")
            assembled = assemble(made.ptx, architecture, ptxas) if ptxas else None
            rows.append(Made(name, program.name, made.kind, architecture, made.seconds, "", assembled))
    return rows


def table(rows: list[Made]) -> str:
    """A line for each mechanism and architecture, in Markdown."""
    lines = [
        "| mechanism | sm | programs | of these marches / schedules / stages | PTX, s | slowest, s | most registers "
        "| with spills | most spilled, bytes | ptxas, s |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, architecture in dict.fromkeys((row.mechanism, row.architecture) for row in rows):
        mine = [row for row in rows if (row.mechanism, row.architecture) == (name, architecture)]
        kinds = "/".join(str(sum(row.kind == kind for row in mine)) for kind in ("March", "Schedule", "Stages"))
        known = [row.assembled for row in mine if row.assembled]
        last = ["-"] * 4
        if known:
            spilled = [a.spills for a in known if a.spills]
            took = f"{sum(a.seconds for a in known):.1f}"
            last = [max(a.registers for a in known), len(spilled), max(spilled, default=0), took]
        seconds = [row.seconds for row in mine]
        cells = [name, architecture, len(mine), kinds, f"{sum(seconds):.1f}", f"{max(seconds):.2f}", *last]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def main() -> int:
    """Make, check and assemble; print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.ptx", description=__doc__.partition("\n")[0])
    parser.add_argument("mechanisms", nargs="*", metavar="mechanism", help="names of the catalogue; all if left out")
    parser.add_argument("--dtype", choices=("double", "float"), default="double")
    parser.add_argument("--architecture", type=int, action="append", choices=ARCHITECTURES)
    parser.add_argument("--derivatives", action="store_true")
    parser.add_argument("--slowest", type=int, default=0, metavar="N")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if unknown := set(given.mechanisms) - set(MECHANISMS):
        parser.error(f"{', '.join(sorted(unknown))}: not among {', '.join(MECHANISMS)}")
    names, architectures = given.mechanisms or [*MECHANISMS], tuple(given.architecture or (90,))
    rows: list[Made] = []
    failed = 0
    with ProcessPoolExecutor(given.processes) as pool:
        jobs = {name: pool.submit(row_of, name, given.dtype, architectures, given.derivatives) for name in names}
        for name, job in jobs.items():
            try:
                rows += job.result()
                print(name, len(rows), file=sys.stderr)
            except RuntimeError as error:
                failed += 1
                print(error, file=sys.stderr)
    print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {given.dtype}, {_assembler()}\n")
    print(table(rows))
    for row in sorted(rows, key=lambda row: -row.seconds)[: given.slowest]:
        print(f"{row.seconds:.2f} s, sm_{row.architecture}: {row.mechanism}, {row.program}: {row.assembled or ''}")
    return bool(failed)


def _assembler() -> str:
    found = find_ptxas()
    if not found:
        return NO_PTXAS
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"release (\S+),", said)
    return f"ptxas {version[1] if version else ''}".strip()


if __name__ == "__main__":
    sys.exit(main())
