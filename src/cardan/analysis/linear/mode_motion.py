"""The motion of one mode, as a run that can be drawn, plotted and written as a page."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.functions.dynamics import plus
from cardan.functions.kinematics import body_poses
from cardan.model.model import Model
from cardan.results.trajectory.trajectory import Trajectory
from cardan.structure.assemble import assemble

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cardan.analysis.linear.modes import Mode, Modes

SWING = 0.15  # of the mechanism's size: how far a point moves
LARGEST_TURN = 0.4  # rad
EIGHTHS = (0, 4, 1, 3, 2)  # of a period: what is drawn, the position between the ends last and in full


def motion_of(modes: Modes, mode: Mode, amplitude: float | None, periods: int, samples: int) -> Trajectory:
    """States `plus(q, amplitude Re(shape exp(i w t)))` with loops closed, over some periods."""
    point = modes._linear.point
    size = _usual_amplitude(modes, mode) if amplitude is None else amplitude
    period = 1.0 if mode.frequency == 0 else 1.0 / mode.frequency
    time = np.linspace(0.0, periods * period, samples)
    turned = np.exp(2j * np.pi * time / period)[:, None] * mode.shape
    model, still = _frozen(point.model, float(np.asarray(point.t))), np.zeros((samples, point.model.nv))
    q = np.asarray(plus(model, np.broadcast_to(point.q, (samples, model.nq)), size * turned.real))
    rates = (2j * np.pi / period * size * turned).real
    if model.has_rows:
        q, rates = assemble(model, q, rates)
    return Trajectory(model, time, q, rates + still, tau=point.tau if point.tau.any() else None, method="mode")


def drawing_of(modes: Modes, mode: Mode, *, amplitude: float | None = None, **options: Any) -> Figure:
    """The mechanism at rest in full, and at other phases of the mode."""
    run = motion_of(modes, mode, amplitude, 1, 9)
    with warnings.catch_warnings():  # of coarse samples, between which nothing is drawn
        warnings.simplefilter("ignore", RuntimeWarning)
        found: Figure = run.draw(t=run.time[list(EIGHTHS)], **options)
    return found


def _usual_amplitude(modes: Modes, mode: Mode) -> float:
    """What moves some point by a part of the mechanism's size, and turns no body too far."""
    from cardan.analysis.linear.modes import reach

    point, near = modes._linear.point, reach(modes.model)
    moved = np.abs(modes.body_shapes()[..., mode.number])
    turn, shift = (float(x.max(initial=0.0)) for x in (moved[:, :3], moved[:, 3:]))
    places = np.asarray(body_poses(point.model, point.q))[..., :3, 3]
    size = max(near, float(np.linalg.norm(np.ptp(places, axis=0))) if len(places) else 0.0)
    return min(SWING * size / max(shift, turn * near, 1e-300), LARGEST_TURN / max(turn, 1e-300))


def _frozen(model: Model, t: float) -> Model:
    """The model with its prescribed motions held where they are at time t."""
    if not any(c.depends_on_time for c in model.couplings):
        return model
    held = [replace(c, function=None, offset=float(c.right_side(t)[0])) if c.depends_on_time else c
            for c in model.couplings]  # fmt: skip
    return replace(model, couplings=tuple(held))
