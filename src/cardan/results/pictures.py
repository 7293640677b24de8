"""The pictures that a run can make of itself, as matplotlib's figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from os import PathLike

    from matplotlib.figure import Figure

    from cardan.results.trajectory import Trajectory


class Pictures:
    """Methods of `Trajectory` that return a `matplotlib.figure.Figure`; nothing is shown or written by itself.

    Each takes `size` (width, height), inches, and `path`, a file to write, .png, .svg or .pdf, whole or not at all; an
    existing file stays unless `overwrite=True`.
    """

    def plot(
        self,
        *panels: str,
        joints: Sequence[str] | str | None = None,
        reactions: Sequence[str] | str = (),
        angle: str = "rad",
        lines: int = 10,
        size: tuple[float, float] | None = None,
        path: str | PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:
        """Plot panels over time: `run.plot("coordinates", "energy", reactions=["A"])`.

        Args:
            panels: "coordinates", "rates", "accelerations", "energy", "power", "momentum", "residuals", "reactions"; by
                default coordinates, rates, energy, residuals where there are loops, and reactions where joints are
                named. A panel with several units is as many panels.
            joints: tree joints whose coordinates, rates and accelerations are shown; all by default.
            reactions: joints whose forces and moments are shown, in their own axes, without components that are zero.
                The panel "reactions" without names shows the size of every joint's.
            angle: "rad" or "deg".
            lines: of a batch, up to so many systems are drawn one by one, more as their median and a band from 5 to
                95 %.
            size: width and height, inches.
            path: file to write.
            overwrite: whether an existing file may be replaced.

        """
        from cardan.results import plots

        return plots.plot(cast("Trajectory", self), panels, joints, reactions, angle, lines, size, path, overwrite)

    def plot_phase(
        self,
        *joints: str,
        angle: str = "rad",
        lines: int = 30,
        size: tuple[float, float] | None = None,
        path: str | PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:
        """Plot the rates of tree joints over their coordinates, all by default; a dot is where the run starts.

        Of a batch, `lines` systems are drawn.
        """
        from cardan.results import plots

        return plots.plot_phase(cast("Trajectory", self), joints, angle, lines, size, path, overwrite)

    def plot_power(
        self,
        *,
        lines: int = 10,
        size: tuple[float, float] | None = None,
        path: str | PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:
        """Plot power, the change of energy beside the work of that power, and their difference.

        The work is integrated from the samples by Simpson's rule: with few samples the difference is the rule's.
        """
        from cardan.results import plots

        return plots.plot_power(cast("Trajectory", self), lines, size, path, overwrite)

    def draw(
        self,
        t: Any = None,
        *,
        trace: Sequence[Any] = (),
        view: Any = None,
        names: bool = False,
        centres: bool = False,
        scale: bool = True,
        size: tuple[float, float] | None = None,
        path: str | PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Figure:
        """Draw the mechanism at a time or several, s, one over the other; by default seven, evenly.

        `trace` names bodies or frames, or pairs (body, point), whose paths over the whole run are drawn; a point (3,),
        m, is in the body's axes. Of a batch, draw one system: `run[3].draw()`. Other options are those of `cd.draw`.
        """
        from cardan.results.drawing import strobe

        run = cast("Trajectory", self)
        return strobe(run, t, trace, view, names, centres, scale, size, path, overwrite)
