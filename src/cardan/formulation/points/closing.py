"""The forces of cut joints, along the plane's axes or along a link's line.

A pin that closes a loop has two rows, along the plane's x and y. Where it sits on the line of a link that other loops
share, a force along that line has no moment about the link's P and does nothing to those loops. So the pair may be
turned to the line, `f = lam1 d + lam2 K x d`, which leaves fewer forces tied together, and the answer turned back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cardan.algebra.matrix import Matrix, Scalar
from cardan.algebra.plane import across
from cardan.formulation.points.motion import Motion
from cardan.formulation.points.recursion import PointLoads
from cardan.formulation.points.rows import Row, as_loads
from cardan.model.plane import PlanarModel
from cardan.model.tree import GROUND


@dataclass(frozen=True)
class Closing:
    """Rows to solve for, their unit loads, and what takes their multipliers back to the rows given."""

    rows: list[Row]
    loads: list[PointLoads]
    back: Callable[[list[Scalar]], list[Scalar]]


def as_given(rows: list[Row]) -> Closing:
    """The rows as they are."""
    return Closing(rows, [as_loads(row.acts) for row in rows], lambda lam: lam)


def turned(planar: PlanarModel, motion: Motion, rows: list[Row]) -> Closing:
    """Rows of cut joints and couplings, those of pins turned to a line where they sit on one."""
    found: list[Row] = []
    loads: list[PointLoads] = []
    lines: dict[int, Matrix] = {}  # by the first row of a turned pair, the line
    k = 0
    while k < len(rows):
        pair = rows[k : k + 2]
        on_line = _on_line(planar, pair) if len(pair) == 2 and pair[0].pin is not None else None
        if on_line is None or pair[0].pin != pair[1].pin:
            found.append(rows[k])
            loads.append(as_loads(rows[k].acts))
            k += 1
            continue
        lines[k] = motion.links[on_line].d
        for force in (lines[k], across(lines[k])):
            row, load = _turned(planar, motion, pair[0], on_line, force, force is lines[k])
            found.append(row)
            loads.append(load)
        k += 2

    def back(lam: list[Scalar]) -> list[Scalar]:
        forces = list(lam)
        for k, d in lines.items():
            force = lam[k] * d + lam[k + 1] * across(d)
            forces[k], forces[k + 1] = force[0], force[1]
        return forces

    return Closing(found, loads, back)


def _on_line(planar: PlanarModel, pair: list[Row]) -> int | None:
    """The link on whose line a pin sits; of two the one nearer to the ground, which more loops share."""
    found = [i for i, _, (_, lam), _, _ in pair[0].acts if i != GROUND and isinstance(lam, float | int) and lam == 0]
    return min(found, key=lambda i: _depth(planar, i)) if found else None


def _depth(planar: PlanarModel, i: int) -> int:
    return 0 if i == GROUND else 1 + _depth(planar, planar.links[i].parent)


def _turned(
    planar: PlanarModel, motion: Motion, row: Row, on_line: int, force: Matrix, lengthwise: bool
) -> tuple[Row, PointLoads]:
    """A pin's row along another force, and its loads with the moment on the link of that line as known."""
    loads, acts = PointLoads(), []
    for sign, (i, _, place, arm, _) in zip((1, -1), row.acts, strict=True):
        acts.append((i, sign * force, place, arm, 0))
        if i == on_line:
            moment = 0 if lengthwise else sign * place[0] * planar.links[i].line.length ** 2
            none = type(force)(2, 1)
            loads.add(i, sign * force, none, type(force)(1, 1) + moment)
        else:
            loads.add(i, sign * force, arm)
    return replace(row, acts=tuple(acts)), loads
