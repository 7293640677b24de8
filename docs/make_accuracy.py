"""Measure the accuracy of every integrator and write docs/accuracy.md: `python docs/make_accuracy.py` (some minutes).

Every integrator on every kind of joint, in a tree and in a loop. tests/convergence_orders.py has the mechanisms and the
error measure.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("convergence_orders", HERE.parent / "tests" / "convergence_orders.py")
assert spec is not None and spec.loader is not None
orders = importlib.util.module_from_spec(spec)
sys.modules["convergence_orders"] = orders  # dataclasses look their module up
spec.loader.exec_module(orders)

PAGE = HERE / "accuracy.md"
FIGURES = (HERE / "figures" / "accuracy-steps.png", HERE / "figures" / "accuracy-tolerances.png")
NONE = "-"
HEAD = f"""# Accuracy of the integrators

Made by `python docs/make_accuracy.py`; do not edit. The tests repeat a part of the measurements and check all of them
against bounds.

Every integrator of `cd.simulate` on every kind of joint: two bodies on a hinge with the joint between them, gravity, a
spring, and a drive of the hinge that changes with time, for {orders.DURATION:g} s. In a tree the joint carries the
second body. In a loop a free joint carries the second body, and the joint is cut. *User's own* is a joint that Cardan
does not have, a slide along a parabola. In the last rows the motion of the hinge is prescribed. The error is that of
the final poses and twists of both bodies: the root mean square of all entries, each divided by one (m, rad/s, m/s) plus
its own size. The reference is `rk4` with {orders.FINEST} steps.
"""
STEPS = """## Error and step

The observed order of accuracy: the binary logarithm of the ratio of errors when the step is halved, for the shortest
steps whose error is larger than rounding. `dormand_prince` is forced to take equal steps here.

![Error against the length of the step, a panel for each method](figures/accuracy-steps.png)
"""
CONTROL = """
## Error and tolerance

Final errors of the methods with error control, at `rtol` and `atol` of {tolerances}. Tolerances hold for
each step, so the final error may be larger. That of `dormand_prince` is smaller, since it controls the error of its
fourth-order result and uses the fifth-order one. `bdf` and `adams` support only trees without prescribed motions.

![Error against the tolerance, a panel for each method](figures/accuracy-tolerances.png)
"""
MARKERS = ("o", "s", "^", "v", "D", "<", ">", "P", "X", "*", "h", "d")
STYLES = {"tree": "-", "loop": "--"}
Cells = dict[tuple[str, str], dict[str, Any]]


def measured() -> tuple[Cells, Cells]:
    """Errors by joint and place, then by method: for steps, and for tolerances."""
    steps: Cells = {}
    tolerances: Cells = {}
    for row in ((joint, place) for joint in orders.JOINTS for place in orders.PLACES):
        steps[row] = {method: orders.step_errors(*row, method) for method in orders.ORDERS}
        taken = [method for method in orders.CONTROLLED if orders.takes(method, *row)]
        tolerances[row] = {method: orders.tolerance_errors(*row, method) for method in taken}
    return steps, tolerances


def page(steps: Cells, tolerances: Cells) -> str:
    """The whole page."""
    first = {row: {m: f"{orders.observed_order(e):.2f}" for m, e in cells.items()} for row, cells in steps.items()}
    second = {
        row: {m: " ".join(f"{x:.1e}" for x in cells[m]) if m in cells else NONE for m in orders.CONTROLLED}
        for row, cells in tolerances.items()
    }
    heads = [f"{method} ({order})" for method, order in orders.ORDERS.items()]
    words = ", ".join(f"{x:.0e}" for x in orders.TOLERANCES)
    parts = [HEAD, STEPS, *_table(heads, first), CONTROL.format(tolerances=words), *_table(orders.CONTROLLED, second)]
    return "\n".join(parts) + "\n"


def read(text: str) -> tuple[Cells, Cells]:
    """The two tables of a page: the text of each cell by joint and place, then by method."""
    tables: list[Cells] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| joint"):
            names = [cell.partition(" ")[0] for cell in cells[2:]]
            tables.append({})
        elif line.startswith("| "):
            tables[-1][cells[0], cells[1]] = dict(zip(names, cells[2:], strict=True))
    first, second = tables
    return first, second


def draw(steps: Cells, tolerances: Cells) -> None:
    """The two figures: a panel for each method, a line for each joint, solid in a tree and dashed in a loop."""
    lengths = {m: 1e3 * orders.DURATION / np.array(orders.COUNTS[m]) for m in orders.ORDERS}
    titles = {m: f"{m}, order {order}" for m, order in orders.ORDERS.items()}
    with _figure(FIGURES[0], titles, "step, ms") as panels:
        for panel, (method, x) in zip(panels.flat, lengths.items(), strict=True):
            _lines(panel, method, x, steps)
            slope = orders.ORDERS[method]
            top = 4 * max(float(np.max(cells[method] / x**slope)) for cells in steps.values())
            _guide(panel, x, top * x**slope, f"slope {slope}")
            panel.set_xticks(x, [f"{h:.3g}" for h in x], minor=False)
            panel.set_xticks([], minor=True)
    x = np.array(orders.TOLERANCES)
    with _figure(FIGURES[1], {m: m for m in orders.CONTROLLED}, "tolerance (rtol = atol)", sharey=True) as panels:
        for panel, method in zip(panels.flat, orders.CONTROLLED, strict=True):
            _lines(panel, method, x, tolerances)
            _guide(panel, x, x, "error = tolerance" if method == "dormand_prince" else "")


@contextmanager
def _figure(path: Path, titles: dict[str, str], label: str, **options: Any) -> Iterator[Any]:
    """Four panels with a legend below; the file is saved with few colours to keep it small."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    figure, panels = plt.subplots(2, 2, figsize=(8.5, 8.5), layout="constrained", **options)
    yield panels
    for panel, title in zip(panels.flat, titles.values(), strict=True):
        panel.set(title=title, xlabel=label, ylabel="final relative error")
        panel.grid(True, which="major", color="0.9")
    handles = [plt.Line2D([], [], label=joint, **_look(joint)) for joint in orders.JOINTS]
    handles += [plt.Line2D([], [], color="0.3", linestyle=STYLES[p], label=f"in a {p}") for p in orders.PLACES]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
    Image.open(path).convert("RGB").quantize(255, Image.Quantize.FASTOCTREE).save(path, optimize=True)


def _lines(panel: Any, method: str, x: np.ndarray, errors: Cells) -> None:
    for (joint, place), cells in errors.items():
        if method in cells:
            panel.loglog(x, cells[method], linestyle=STYLES[place], linewidth=0.9, **_look(joint))


def _look(joint: str) -> dict[str, Any]:
    k = list(orders.JOINTS).index(joint)
    return {"color": f"C{k}" if k < 10 else ("black", "navy")[k - 10], "marker": MARKERS[k], "markersize": 4}


def _guide(panel: Any, x: np.ndarray, y: np.ndarray, words: str) -> None:
    """A wide reference line."""
    panel.loglog(x, y, color="0.7", linewidth=3, zorder=0)
    at = len(x) // 2
    panel.annotate(words, (x[at], y[at]), (-6, 6), textcoords="offset points", ha="right", color="0.35")


def _table(heads: Any, rows: Cells) -> list[str]:
    lines = [f"| joint | place | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    return lines + [f"| {' | '.join([*row, *cells.values()])} |" for row, cells in rows.items()]


if __name__ == "__main__":
    found = measured()
    draw(*found)
    PAGE.write_text(page(*found), encoding="utf-8")
