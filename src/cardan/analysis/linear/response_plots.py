"""Plots of linear models: Bode, Nyquist, root loci; drawn from Cardan's own numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.errors import InputError
from cardan.model.values import batch
from cardan.results.figure import COLOURS, GREY, WIDTH, FigureOutput, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

    from cardan.analysis.linear.linear_model import LinearModel
    from cardan.analysis.linear.modes import Modes

POINTS = 600
LEGEND = 8  # curves
BESIDE = 1e-6  # of a frequency: how far an eigenvalue on the axis is avoided


def bode(
    linear: LinearModel, frequencies: ArrayLike | None = None, *, size: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None, overwrite: bool = False,
) -> Figure:  # fmt: skip
    """Magnitude, in decibels of SI units, and phase over frequency in Hz, a curve for each output and input.

    Args:
        linear: a single linear model; choose signals with `select`.
        frequencies: (n,), Hz; by default around the eigenvalues.
        size: width and height, inches.
        path: file to write, .png, .svg or .pdf.
        overwrite: whether an existing file may be replaced.

    """
    output = FigureOutput(size, path, overwrite)
    f, H = _curves("bode", linear, frequencies)
    figure = new_figure(*(size or (WIDTH, 4.2)))
    with style():
        top, bottom = figure.subplots(2, 1, sharex=True)
        for k, (name, curve) in enumerate(_each(linear, H)):
            colour = COLOURS[k % len(COLOURS)]
            top.semilogx(f, 20 * np.log10(np.maximum(np.abs(curve), 1e-300)), color=colour, label=name)
            bottom.semilogx(f, np.degrees(np.unwrap(np.angle(curve))), color=colour)
        top.set_ylabel("magnitude [dB]")
        bottom.set_ylabel("phase [degrees]")
        bottom.set_xlabel("frequency [Hz]")
        _explain(top)
    return output.write(figure)


def nyquist(
    linear: LinearModel, frequencies: ArrayLike | None = None, *, size: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None, overwrite: bool = False,
) -> Figure:  # fmt: skip
    """The frequency response as curves in the complex plane, with the point -1; arguments as for `bode`."""
    output = FigureOutput(size, path, overwrite)
    _, H = _curves("nyquist", linear, frequencies)
    figure = new_figure(*(size or (4.2, 4.2)))
    with style():
        axes = figure.subplots()
        for k, (name, curve) in enumerate(_each(linear, H)):
            colour = COLOURS[k % len(COLOURS)]
            axes.plot(curve.real, curve.imag, color=colour, label=name)
            axes.plot(curve.real, -curve.imag, color=colour, linestyle=":")
        axes.plot([-1], [0], "+", color=GREY)
        axes.set_xlabel("real part")
        axes.set_ylabel("imaginary part")
        _explain(axes)
    return output.write(figure)


def root_locus(
    modes: Modes, values: Any = None, *, label: str = "", size: tuple[float, float] | None = None,
    path: str | os.PathLike[str] | None = None, overwrite: bool = False,
) -> Figure:  # fmt: skip
    """Eigenvalues of a batch in the complex plane, coloured along its first axis.

    Args:
        modes: of one system or a batch.
        values: (n,) of the parameter along the first axis of the batch; numbered by default.
        label: name and unit of the parameter, for the scale of colours.
        size: width and height, inches.
        path: file to write, .png, .svg or .pdf.
        overwrite: whether an existing file may be replaced.

    """
    output = FigureOutput(size, path, overwrite)
    found = np.atleast_2d(modes.eigenvalues)
    n = len(found)
    scale = np.arange(n, dtype=float) if values is None else batch("root_locus", "values", values)
    if scale.shape != (n,):
        raise InputError(f"root_locus: values must have the shape {(n,)}, that of the first axis, got {scale.shape}")
    flat = found.reshape(n, -1)
    figure = new_figure(*(size or (5.2, 4.0)))
    with style():
        axes = figure.subplots()
        axes.axvline(0.0, color=GREY, linewidth=0.7)
        colours = np.broadcast_to(scale[:, None], flat.shape).ravel()
        drawn = axes.scatter(flat.real.ravel(), flat.imag.ravel(), c=colours, s=9, cmap="viridis", linewidths=0)
        axes.set_xlabel("real part [1/s]")
        axes.set_ylabel("imaginary part [1/s]")
        if n > 1:
            figure.colorbar(drawn, label=label)
    return output.write(figure)


def _curves(owner: str, linear: LinearModel, frequencies: Any) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies (n,), Hz, and the response (n, ny, nu)."""
    if not linear.inputs or not linear.outputs:
        raise InputError(f"{owner}: the linear model has no {'inputs' if not linear.inputs else 'outputs'}")
    if frequencies is not None:
        f = batch(owner, "frequencies", frequencies)
        if f.ndim != 1 or (f <= 0).any():
            got = f"shape {f.shape}" if f.ndim != 1 else f"{f[f <= 0][0]:.6g}"
            raise InputError(f"{owner}: frequencies must be a list of positive numbers, Hz, got {got}")
        return f, linear.response(f)
    poles = np.abs(linear.eigenvalues) / (2 * np.pi)
    poles = poles[poles > 1e-9 * poles.max(initial=0.0)]
    low, high = (poles.min(), poles.max()) if len(poles) else (1.0, 1.0)
    f = np.geomspace(low / 30, high * 30, POINTS)
    for pole in poles:
        near = np.abs(f - pole) <= BESIDE * pole
        f[near] = pole * (1 + 2 * BESIDE)
    return f, linear.response(f)


def _explain(axes: Any) -> None:
    """A legend, where there are few curves."""
    if len(axes.get_legend_handles_labels()[0]) <= LEGEND:
        axes.legend()


def _each(linear: LinearModel, H: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Name and values (n,) of every curve."""
    return [(f"{y} by {u}", H[:, i, j]) for i, y in enumerate(linear.outputs) for j, u in enumerate(linear.inputs)]
