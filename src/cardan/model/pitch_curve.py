"""The pitch curve of a cam, the path of the centre of a roller, from the profile of its surface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cardan.errors import ModelError
from cardan.model.force import trace
from cardan.model.table import Table

POINTS = 720  # of the table, over a turn
STEPS = 30  # of Newton's method for the places of the surface under these points


def pitch_curve(owner: str, profile: Callable[..., Any], roller: Any) -> Table:
    """Distance (m) of the centre of a roller of radius `roller` (m) from the axis, as a table of its angle (rad).

    `profile(angle)` is the distance (m) of the surface. A point of it at the angle s, `f(s)` along and across
    `(cos s, sin s)`, has the normal `(f, -f') / sqrt(f^2 + f'^2)`; the centre is on it. Where the surface is hollow
    with a smaller radius than the roller's, the roller does not touch it: that is refused.
    """
    import casadi as ca

    r = float(roller)
    if not (np.isfinite(r) and r > 0):
        raise ModelError(f"{owner}: roller, the radius of the roller, must be above 0 m, got {roller!r}")
    s = ca.SX.sym("angle")
    f = trace(owner, profile, [s], (s,), (1,), what="profile")(s)
    slope = ca.gradient(f, s)
    size = ca.sqrt(f**2 + slope**2)
    along, across = f + r * f / size, -r * slope / size
    bend = (f**2 + 2 * slope**2 - f * ca.gradient(slope, s)) / size**3
    turned = s + ca.atan2(across, along)
    values = [turned, ca.gradient(turned, s), ca.sqrt(along**2 + across**2), 1 + r * bend]
    graph = ca.Function("pitch", [s], values).map(POINTS + 1)
    wanted = np.linspace(-np.pi, np.pi, POINTS + 1)
    at = wanted.copy()
    for _ in range(STEPS):
        angle, rate, distance, room = (np.array(part).ravel() for part in graph(at[None]))
        if not (np.isfinite(rate).all() and rate.min() > 0 and room.min() > 0):
            k = int(np.argmin(np.where(np.isfinite(rate), np.minimum(rate, room), -np.inf)))
            raise ModelError(
                f"{owner}: a roller of radius {r:g} m does not follow the profile at {at[k]:.4g} rad, which is hollow "
                "with a smaller radius there, or not smooth; take a smaller roller, or give the path of its centre"
            )
        at = at - (angle - wanted) / rate
    distance[-1] = distance[0]
    return Table("pitch_curve", (wanted,), distance, 2, ("periodic",))
