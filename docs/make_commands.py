"""Write docs/commands.md, the commands and what they print: `python docs/make_commands.py`.

Every command is run as it stands on the page, in an empty folder, on a terminal of 80 columns without colours.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "commands.md"
COMMANDS = ("demo", "info", "check", "simulate", "view", "equations", "convert", "mechanisms", "bench")

INTRODUCTION = """# Commands

<!-- made by docs/make_commands.py; do not edit -->

`cardan COMMAND --help` tells all options. Wherever a command takes a FILE, it may be a URDF, a `.yaml` file in
[the format of Cardan](format.md), an MJCF `.xml`, or the name of a mechanism of the catalogue. Numbers may carry units:
`30deg`, `500ms`, `60rpm`; without one they are in SI units. `--json` prints for programs. Exit status: 0 done, 1 a
check or a simulation failed, 2 the input was wrong, 130 interrupted; what is wrong is said in one sentence, and nothing
is left half-written. `cardan --install-completion` completes commands, options, mechanisms, formulations and methods in
your shell.
"""
# What is shown of each command: a sentence, and command lines.
SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "demo": ("What `make demo` shows: one problem three ways, a robot, and how fast.", ()),
    "info": ("A model's tree, joints and cuts.", ("cardan info four_bar",)),
    "check": (
        "Every identity, and every formulation against the others, at random states.",
        ("cardan check four_bar --states 16",),
    ),
    "simulate": (
        "A trajectory ([NetCDF](trajectories.md)), a plot and a page. Joints are placed and set moving by "
        "name; the rest of a loop follows. All files are tried before anything is computed. If the simulation fails "
        "or is interrupted, what was computed until then is written.",
        (
            "cardan simulate four_bar --time 10 --start A=30deg --rate A=2rad/s --out run",
            "cardan simulate four_bar --time 10 --out run",
            "cardan simulate four_bar --set crank=300mm --method gear --formulation points",
        ),
    ),
    "view": (
        "The mechanism in the browser, at rest or moving.",
        ("cardan view four_bar --time 5 --out look.html",),
    ),
    "equations": (
        "The equations of motion in symbols, for a reader, as LaTeX, or as JSON with entries that SymPy reads.",
        (
            "cardan equations cart_pole",
            "cardan equations pendulum --name f --latex",
            "cardan equations pendulum --formulation absolute --name M",
        ),
    ),
    "convert": (
        "From one format to another, with a report of what is lost.",
        ("cardan convert four_bar four_bar.yaml", "cardan convert four_bar four_bar.urdf"),
    ),
    "mechanisms": (
        "The catalogue; one mechanism in detail, with the parameters that `--set` takes; or all of it as files.",
        ("cardan mechanisms", "cardan mechanisms slider_crank", "cardan mechanisms --write models"),
    ),
    "bench": (
        "Evaluations of forward dynamics on this machine, in seconds. `python -m benchmarks` in a checkout is the full "
        "comparison with other engines.",
        ("cardan bench four_bar",),
    ),
}


def printed(line: str, folder: str) -> str:
    """What a command line prints, both streams as a terminal shows them."""
    words = shlex.split(line)[1:]
    plain = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS")}
    done = subprocess.run(
        [sys.executable, "-c", "from cardan.cli import main; main()", *words],
        cwd=folder,
        env={**plain, "COLUMNS": "80", "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if "Traceback" in done.stdout:
        raise RuntimeError(f"{line}: {done.stdout}")
    return tidy(done.stdout)


def tidy(text: str) -> str:
    """Without colours, spaces at the ends of lines, and empty lines around."""
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    return "\n".join(lines).strip("\n")


def section(command: str, folder: str) -> str:
    """One command: what it does, what it prints, its help."""
    sentence, lines = SHOWN[command]
    parts = [f"## {command}", fill(sentence, 120)]
    parts += [f"```console\n$ {line}\n{printed(line, folder)}\n```" for line in lines]
    parts.append(f"```console\n$ cardan {command} --help\n{printed(f'cardan {command} --help', folder)}\n```")
    return "\n\n".join(parts)


def page() -> str:
    """The whole page."""
    with tempfile.TemporaryDirectory() as folder:
        return "\n".join([INTRODUCTION, *(section(command, folder) + "\n" for command in COMMANDS)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
