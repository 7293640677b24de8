"""Write the table of docs/files.md: `python docs/make_files.py`, with MuJoCo and the packages of models installed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.mjcf import PACKAGES, compare, models, packaged  # noqa: E402

import cardan as cd  # noqa: E402

PAGE = ROOT / "docs" / "files.md"
START, END = "<!-- table -->", "<!-- end of table -->"


def main() -> None:
    """Load every model of every package, compare it, and write the rows."""
    rows = [
        "| package | files | loaded | worst difference, without and with meshes | not loaded, and why |",
        "|---|---|---|---|---|",
    ]
    for package in PACKAGES:
        row = _row(package)
        if row:
            rows.append(row)
    text = PAGE.read_text()
    head, rest = text.split(START)
    PAGE.write_text(f"{head}{START}\n" + "\n".join(rows) + f"\n{END}" + rest.split(END)[1])


def _row(package: str) -> str:
    folder, _ = packaged(package)
    files = list(models(package))
    if not files:
        return ""
    loaded, worst, refused = 0, {False: 0.0, True: 0.0}, Counter[str]()
    for _, path in files:
        why = _why_not(path, folder)
        if why:
            refused[why] += 1
            continue
        loaded += 1
        meshes = "<mesh" in path.read_text()
        try:
            worst[meshes] = max(worst[meshes], *compare(path, folder=folder).values())
        except ValueError as error:
            print(f"{path}: MuJoCo itself does not compile it: {str(error).splitlines()[0]}")
    reasons = "; ".join(f"{count}: {why}" for why, count in refused.most_common())
    difference = f"{worst[False]:.0e}, {worst[True]:.0e}" if worst[True] else f"{worst[False]:.0e}"
    try:
        name = f"{package} {version(package)}"
    except PackageNotFoundError:
        name = package
    return f"| {name} | {len(files)} | {loaded} | {difference} | {reasons} |"


def _why_not(path: Path, folder: Path) -> str:
    """Why a file does not load, without the names in it; nothing if it does."""
    try:
        cd.load(path, folder=folder)
    except cd.CardanError as error:
        sentence = re.sub(r"'[^']*'", "...", str(error).replace(str(path), ""))
        for words, why in REASONS.items():
            if words in sentence:
                return why
        return sentence.rpartition(": ")[2]
    return ""


REASONS = {
    "it has no <body>": "no body in it: a scene, or a part to be included",
    "there is no file": "a mesh file is missing from the package",
    "there is no such file": "an included file is missing from the package",
    "top element": "not a model",
    "would move nothing": "its mass matrix is singular: two sliders along one line, told apart by nothing",
    "included a second time": "a file is included twice",
    "diaginertia": "an inertia is missing; MuJoCo refuses it too",
    "needs one of": "an inertia is missing; MuJoCo refuses it too",
}

if __name__ == "__main__":
    main()
