"""Write the study file and the tables of docs/sweeps.md, and its figures: `python docs/make_sweeps.py`."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from cardan.io.yaml.schema import Entries
from cardan.results.figure import image
from cardan.studies.study_file import RUN, SECTIONS, SPAN

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "sweeps.md"
FIGURES = ROOT / "docs" / "figures"
MARK = "<!-- the file and the tables below are made by docs/make_sweeps.py; do not edit -->\n"
CELL = 640  # pixels, width of one plot of the sheet
SHEET = (("map", "histogram"), ("scatter", "tornado"))


def page(text: str) -> str:
    """The page with its lower part made anew; what is above the mark is written by hand."""
    return text.partition(MARK)[0] + MARK + tables()


def tables() -> str:
    """The example, and every entry of a study file."""
    example = (ROOT / "examples" / "study.yaml").read_text(encoding="utf-8")
    units = "Numbers have units as in [model files](format.md); without one they are in SI units."
    lines = ["", "```yaml", example.rstrip(), "```", "", units, "", "### Entries", "", *_table(SECTIONS)]
    lines += ["", "`run`:", "", *_table(RUN)]
    values = (
        "A parameter is a number, a list, a list of vectors, `{normal: {mean: 1 kg, std: 10 g}}` or another "
        "distribution, or a span:"
    )
    lines += ["", values, "", *_table(SPAN)]
    return "\n".join(lines) + "\n"


def _table(entries: Entries) -> list[str]:
    rows = [f"| `{name}` | {'yes' if entry.needed else ''} | {entry.doc} |" for name, entry in entries.items()]
    return ["| entry | needed | what it is |", "|---|---|---|", *rows]


def figures(text: str) -> None:
    """The figures, from the Python blocks of the page."""
    made: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for block in text.split("```python\n")[1:]:
            exec(block.partition("```")[0].replace('"study.zarr"', repr(f"{folder}/study.zarr")), made)
    drawn = {
        "lines": made["study"].plot("load"), "map": made["study"].plot_map("load"),
        "scatter": made["sampled"].plot_scatter(), "histogram": made["sampled"].plot_histogram("load"),
        "tornado": made["sensitive"].plot_tornado("load"),
    }  # fmt: skip
    parts = {name: Image.open(io.BytesIO(image(figure, "png"))).convert("RGB") for name, figure in drawn.items()}
    _write("study-lines", _scaled(parts["lines"], 820))
    rows = [[_scaled(parts[name], CELL) for name in row] for row in SHEET]
    heights = [max(part.height for part in row) for row in rows]
    sheet = Image.new("RGB", (2 * CELL, sum(heights)), "white")
    for k, row in enumerate(rows):
        for j, part in enumerate(row):
            sheet.paste(part, (j * CELL, sum(heights[:k])))
    _write("study-plots", sheet)


def _scaled(picture: Image.Image, width: int) -> Image.Image:
    return picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)


def _write(name: str, picture: Image.Image) -> None:
    file = io.BytesIO()
    picture.quantize(160, dither=Image.Dither.NONE).save(file, format="png", optimize=True)
    (FIGURES / f"{name}.png").write_bytes(file.getvalue())


if __name__ == "__main__":
    made_page = page(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(made_page, encoding="utf-8")
    figures(made_page)
