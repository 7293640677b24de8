"""Warn of a run in which a body went beyond the end of its curve, where the curve goes on straight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cardan.structure.rounding import warn_outside

if TYPE_CHECKING:
    from cardan.results.trajectory.trajectory import Trajectory

NEAR = 1e-9  # of the length of a curve: how far beyond its end is rounding


def warn_of_ends(run: Trajectory) -> None:
    """Name the first joint whose coordinate leaves the reach of its kind, the time, and how far it goes."""
    model = run.model
    for link in model.tree.links:
        for (low, high), q in zip(link.kind.reach, np.moveaxis(run.q[..., link.q], -1, 0), strict=False):
            with np.errstate(invalid="ignore"):
                outside = np.maximum(low - q, q - high)
                beyond = (outside > NEAR * (high - low)).reshape(-1, q.shape[-1]).any(axis=0)
            if beyond.any():
                when = float(np.broadcast_to(run.time, q.shape).reshape(-1, q.shape[-1])[0, beyond.argmax()])
                warn_outside(
                    f"simulation of {model.name!r}: joint {model.joints[link.joint].name!r} leaves its curve, which is "
                    f"{high - low:.4g} m long, by t = {when:.4g} s, and goes up to {float(np.nanmax(outside)):.3g} m "
                    "beyond its end, where the curve goes on straight; give it stops, or a longer or closed curve"
                )
                return
