"""Write the table of docs/files.md: `python docs/make_files.py`, with MuJoCo and the packages of models installed."""

from __future__ import annotations

import re
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.mjcf import PACKAGES, compare, inertia_apart, models, packaged  # noqa: E402

import cardan as cd  # noqa: E402

PAGE = ROOT / "docs" / "files.md"
WORST = ("without", "with", "compiled", "inertia")
START, END = "<!-- table -->", "<!-- end of table -->"


def main() -> None:
    """Load every model of every package, compare it, and write the rows."""
    rows = [
        "| package | files | loaded | worst difference: without meshes | with meshes | with meshes, MuJoCo's inertias "
        "| of the inertias | not loaded, and why |",
        "|---|---|---|---|---|---|---|---|",
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
    loaded, worst, refused = 0, dict.fromkeys(WORST, 0.0), Counter[str]()
    for _, path in files:
        why = _why_not(path, folder)
        if why:
            refused[why] += 1
            continue
        loaded += 1
        try:
            for what, difference in _differences(path, folder).items():
                worst[what] = max(worst[what], difference)
        except ValueError as error:
            print(f"{path}: MuJoCo itself does not compile it: {str(error).splitlines()[0]}")
    reasons = "; ".join(f"{count}: {why}" for why, count in refused.most_common())
    differences = " | ".join(f"{worst[what]:.0e}" if worst[what] else "" for what in WORST)
    try:
        name = f"{package} {version(package)}"
    except PackageNotFoundError:
        name = package
    return f"| {name} | {len(files)} | {loaded} | {differences} | {reasons} |"


def _differences(path: Path, folder: Path) -> dict[str, float]:
    """The largest difference from MuJoCo; with meshes, also with its inertias in place of ours, and of the two."""
    largest = max(compare(path, folder=folder).values())
    if "<mesh" not in path.read_text():
        return {"without": largest}
    compiled = max(compare(path, folder=folder, compiled=True).values())
    return {"with": largest, "compiled": compiled, "inertia": inertia_apart(path, folder=folder)}


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
    "would move nothing": "its mass matrix is singular: two sliders along the same line",
    "included a second time": "a file is included twice",
    "diaginertia": "an inertia is missing; MuJoCo refuses it too",
    "needs one of": "an inertia is missing; MuJoCo refuses it too",
}

if __name__ == "__main__":
    main()
