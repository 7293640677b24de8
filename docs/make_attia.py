"""Write docs/sources/at_example.md from examples/06_attia_multibranch.py: `python docs/make_attia.py`."""

from __future__ import annotations

import io
import runpy
from contextlib import redirect_stdout
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "06_attia_multibranch.py"
PAGE = Path(__file__).with_name("sources") / "at_example.md"
HEAD = """# AT: a multi-branch closed loop with all its numbers

Made from [examples/06_attia_multibranch.py](../../examples/06_attia_multibranch.py) by `python docs/make_attia.py`;
do not edit. [The derivation](at.md).

A crank drives a plate with three pins. A rocker holds the plate, and a rod from the plate moves a slider. The loops are
cut at D and F; what is left is a tree that branches at the plate. Circles are the equivalent particles, their areas the
masses.

![The mechanism with its particles](../figures/particles.png)

Joint A is driven with 5 N m and turns with 3 rad/s. The example compares accelerations and reactions with those of the
other formulations.

```text
"""


def page() -> str:
    """The whole page."""
    text = io.StringIO()
    with redirect_stdout(text):
        runpy.run_path(str(EXAMPLE))["main"]()
    return f"{HEAD}{text.getvalue().rstrip()}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
