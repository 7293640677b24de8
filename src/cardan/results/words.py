"""A trajectory in words: one paragraph, or a small table for a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cardan.model import html as hypertext

if TYPE_CHECKING:
    from cardan.results.trajectory import Trajectory


def paragraph(run: Trajectory) -> str:
    """One line of text."""
    (_, name), *rest = facts(run)
    return f"Trajectory of {name}; {'; '.join(f'{what}: {value}' for what, value in rest)}."


def html_table(run: Trajectory) -> str:
    """An HTML table."""
    return hypertext.html_table("Trajectory", facts(run))


def facts(run: Trajectory) -> list[tuple[str, str]]:
    """What there is to say, without computing anything new."""
    name = f"{run._about.labels.model!r}" + (f", {' x '.join(map(str, run.batch))} systems" if run.batch else "")
    time = f"{np.nanmin(run.time):.6g} s to {np.nanmax(run.time):.6g} s"
    found = [
        ("model", name),
        ("time", time),
        ("samples", str(run.time.shape[-1])),
        ("method", run.method or "not given"),
        ("formulation", run.formulation),
    ]
    stopped = int((run._outcome != "").sum())
    if stopped:
        found.append(("stopped", f"{stopped} of {run._outcome.size}" if run.batch else run.outcome))
    if run.events:
        found.append(("events", str(len(run.events))))
    if "energy" in run._computed:
        E = run.energy
        found.append(("largest change of energy", f"{np.nanmax(np.abs(E - E[..., :1])):.3g} J"))
    if "position_residual" in run._computed:
        found.append(("worst residual", f"{np.nanmax(run.quantity('position_residual')):.3g} m or rad"))
    return found
