"""Write docs/commands.md, the commands and their output: `python docs/make_commands.py`.

Every command is run as shown on the page, in an empty folder, on a terminal of 80 columns without colours.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "commands.md"
COMMANDS = (
    "demo", "info", "check", "simulate", "equilibrium", "modes", "linearise", "ik", "branches", "workspace",
    "identify", "synthesise", "balance", "sweep", "view", "plot", "equations", "textbook", "convert", "mechanisms",
    "bench",
)  # fmt: skip

INTRODUCTION = """# Commands

<!-- made by docs/make_commands.py; do not edit -->

`cardan COMMAND --help` lists all options. A FILE is a URDF, a `.yaml` file in [the format of Cardan](format.md), an
MJCF `.xml`, or the name of a mechanism of the catalogue. Numbers may have units: `30deg`, `500ms`, `60rpm`; without a
unit they are in SI units. `--json` prints JSON. Exit status: 0 success, 1 a check, simulation or search failed,
2 wrong input, 130 interrupted. An error is one sentence, and no file is left incomplete.
`cardan --install-completion` installs completion of commands, options, mechanisms, formulations and methods in your
shell.
"""
# For each command: a description, and command lines to show.
SHOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "demo": ("The demonstration of `make demo`: one problem three ways, a robot, and speed.", ()),
    "info": ("The tree, joints and cuts of a model.", ("cardan info four_bar",)),
    "check": (
        "Test all identities, and compare all formulations, at random states.",
        ("cardan check four_bar --states 16",),
    ),
    "simulate": (
        "Simulate and write a trajectory ([NetCDF](trajectories.md)), a plot and a page. Initial coordinates and rates "
        "of joints are given by name; the rest of a loop is assembled. All files are checked before anything is "
        "computed. If the simulation fails or is interrupted, the part that was computed is written.",
        (
            "cardan simulate four_bar --time 10 --start A=30deg --rate A=2rad/s --out run",
            "cardan simulate four_bar --time 10 --out run",
            "cardan simulate four_bar --set crank=300mm --method gear --formulation points",
        ),
    ),
    "equilibrium": (
        "Find an [equilibrium or a steady motion](equilibrium.md) with its stability, or follow it along a parameter, "
        "a speed or a load.",
        (
            "cardan equilibrium four_bar --stable",
            "cardan equilibrium four_bar --hold A --solve-for D",
            "cardan equilibrium slider_crank --along bearing.q --to 1,7 --out path",
        ),
    ),
    "sweep": (
        "A [study](sweeps.md): a model with many values of its numbers, from a study file. Stop it and call it again: "
        "it goes on where it stood. The file is [examples/study.yaml](../examples/study.yaml).",
        (
            "cardan sweep study.yaml --check",
            "cardan sweep study.yaml --workers 2",
            "cardan sweep status study.zarr",
            "cardan sweep plot study.zarr load --over crank.mass",
            "cardan sweep plot study.zarr load --kind tornado",
            "cardan sweep run --help",
        ),
    ),
    "view": (
        "The mechanism in the browser, at rest or moving, or a saved run.",
        ("cardan view four_bar --time 5 --out look.html", "cardan view run.nc --out run-again.html"),
    ),
    "plot": (
        "Curves of saved runs, by [name](trajectories.md#what-can-be-read-off); several runs are compared.",
        (
            "cardan simulate four_bar --time 2 --start A=30deg --out one",
            "cardan simulate four_bar --time 2 --start A=31deg --out other",
            "cardan plot one.nc A.reaction_force coupler.position --out forces.png",
            "cardan plot one.nc other.nc q energy --out both.png",
        ),
    ),
    "modes": (
        "Eigenvalues, frequencies, damping and mode shapes about a state, [at rest or moving](linear.md).",
        ("cardan modes double_pendulum --mode 1 --out second.html",),
    ),
    "linearise": (
        "The linear model `A, B, C, D` about a state, with names.",
        ("cardan linearise cart_pole --input tau.rail --output q",),
    ),
    "ik": (
        "[Inverse kinematics](inverse_kinematics.md): joint coordinates that bring a frame to a pose, a position or a "
        "direction, with loops closed and limits kept. Exit status 1 if it is out of reach; then it says how far it "
        "got, and which limits hold it back.",
        (
            "cardan ik five_bar --frame 'left link' --point 0.7,0,0 --position 0.4,0.5,0 --all",
            "cardan ik five_bar --frame 'left link' --point 0.7,0,0 --position 0.4,3,0",
        ),
    ),
    "branches": (
        "[All branches](workspace.md) of a linkage over a driven joint, its dead points, and where the output rests.",
        ("cardan branches four_bar --joint A --output D",),
    ),
    "workspace": (
        "[Where a point can be](workspace.md): its extent, and with `--plot` a picture.",
        ("cardan workspace five_bar --frame 'left link' --point 0.7,0,0",),
    ),
    "identify": (
        "Masses, inertias, stiffness, damping and friction [from measurements](identification.md), with confidence "
        "intervals; `cardan identify MODEL DATA.csv --out identified.yaml`. DATA.csv has the columns `time`, "
        "`q.JOINT`, `v.JOINT`, `a.JOINT` and, of driven joints, `tau.JOINT`, in SI units. Missing rates and "
        "accelerations come from splines over `time`; with loops the coordinates of the driven joints are enough.",
        (),
    ),
    "synthesise": (
        "[Dimensions of a linkage](synthesis.md) for a path or a function; `--save` writes the new model.",
        (
            "cardan synthesise slider_crank --free pin.at:x --free wrist.child_at:x --input bearing "
            "--at 30deg,60deg,90deg --output guide=0.8m,0.7m,0.55m --starts 8",
        ),
    ),
    "balance": (
        "[Counterweights and springs](synthesis.md#balancing) that balance a mechanism.",
        ("cardan balance four_bar --shaking force --counterweight crank=2kg --counterweight rocker=3kg",),
    ),
    "equations": (
        "The equations of motion in symbols, as text, as LaTeX, or as JSON with entries that SymPy can parse. With "
        "`--javascript`, a quantity of the model as an ES module.",
        (
            "cardan equations cart_pole",
            "cardan equations pendulum --name f --latex",
            "cardan equations pendulum --formulation absolute --name M",
        ),
    ),
    "textbook": (
        "A derivation of one of the [sources](sources/README.md) as a page with sliders, which a browser runs offline.",
        ("cardan textbook F6 -o f6.html",),
    ),
    "convert": (
        "Convert from one format to another, with a report of what is lost.",
        ("cardan convert four_bar four_bar.yaml", "cardan convert four_bar four_bar.urdf"),
    ),
    "mechanisms": (
        "The catalogue; one mechanism in detail, with the parameters that `--set` takes; or all of it as files.",
        ("cardan mechanisms", "cardan mechanisms slider_crank", "cardan mechanisms --write models"),
    ),
    "bench": (
        "Speed of forward dynamics on this machine. `python -m benchmarks` in a checkout is the full comparison with "
        "other engines.",
        ("cardan bench four_bar",),
    ),
}


def printed(line: str, folder: str) -> str:
    """Output of a command line, both streams together."""
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
    """Remove colours, trailing spaces, and empty lines at both ends."""
    lines = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]
    return "\n".join(lines).strip("\n")


def section(command: str, folder: str) -> str:
    """One command: description, examples, help."""
    sentence, lines = SHOWN[command]
    parts = [f"## {command}", fill(sentence, 120)]
    parts += [f"```console\n$ {line}\n{printed(line, folder)}\n```" for line in lines]
    parts.append(f"```console\n$ cardan {command} --help\n{printed(f'cardan {command} --help', folder)}\n```")
    return "\n\n".join(parts)


def page() -> str:
    """The whole page."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "examples" / "study.yaml", folder)
        return "\n".join([INTRODUCTION, *(section(command, folder) + "\n" for command in COMMANDS)])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
