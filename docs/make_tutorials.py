"""Run the tutorials and like pages; write what their blocks print and draw into them: `python docs/make_tutorials.py`.

What a Python block prints stands below it in a block with the word `output`. A figure that a block writes, such as
`run.png`, is shown as `figures/tutorial_engineer_run.png`. tests/style/test_snippets.py runs the pages too, and
compares what they print with what is shown.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

DOCS = Path(__file__).resolve().parent
PAGES = sorted([DOCS / "tour.md", *DOCS.glob("tutorial_*.md"), *DOCS.glob("coming_from_*.md")])
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```[ \t]*\n(?P<output>\n```output\n.*?^```[ \t]*\n)?", re.MULTILINE | re.DOTALL
)
FIGURE = re.compile(r"\]\(figures/(?P<name>[\w-]+)_(?P<file>[a-z-]+\.png)\)")
LARGEST, WIDEST = 120_000, 1000  # bytes and pixels of a figure


def with_outputs(page: Path) -> str:
    """The page with what its blocks print when they are run in order; run in an empty folder."""
    namespace: dict[str, Any] = {"__name__": "__main__"}

    def replaced(block: re.Match[str]) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], page.name, "exec"), namespace)
        shown = "\n".join(line.rstrip() for line in printed.getvalue().strip("\n").splitlines())
        return f"```python\n{block['code']}```\n" + (f"\n```output\n{shown}\n```\n" if shown else "")

    return BLOCK.sub(replaced, page.read_text(encoding="utf-8"))


def keep_figures(page: Path, text: str, folder: Path) -> None:
    """Copy the figures that the page shows and its blocks have written, in few colours."""
    for name, file in FIGURE.findall(text):
        if name == page.stem:
            target = DOCS / "figures" / f"{name}_{file}"
            picture = Image.open(folder / file).convert("RGB")
            picture.thumbnail((WIDEST, 4 * WIDEST))
            picture.quantize(64, dither=Image.Dither.NONE).save(target, optimize=True)
            if target.stat().st_size > LARGEST:
                raise SystemExit(f"{target.name}: {target.stat().st_size} bytes, more than {LARGEST}")


def main(pages: list[Path]) -> None:
    """Write the pages and their figures."""
    for page in pages:
        here = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                text = with_outputs(page)
                keep_figures(page, text, Path(folder))
            finally:
                os.chdir(here)
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main([DOCS / name for name in sys.argv[1:]] or PAGES)
