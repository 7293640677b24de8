"""The view in a notebook: a page in a frame of the cell, with few samples and no forces, so that it stays small."""

from __future__ import annotations

from html import escape

from cardan.errors import CardanError
from cardan.model.model import Model
from cardan.results.page.page import html
from cardan.results.trajectory.trajectory import Trajectory

LARGEST = 600_000  # characters of a cell
HEIGHT = 380  # pixels


def inline_view(thing: Model | Trajectory) -> str:
    """A frame with a model or a run that moves; empty if it cannot be drawn, or a sentence if it would be too large."""
    try:
        text = html(thing, inline=True)
    except CardanError:  # a run without its model, a model with a batch of parameters: they have only a table
        return ""
    frame, name = escape(text, quote=True), escape(thing_name(thing))
    if len(frame) > LARGEST:
        return f"<p>Its picture has {len(frame) / 1e6:.1f} MB: see it with .page('{name}.html').</p>"
    style = f"width:100%;height:{HEIGHT}px;border:0;border-radius:8px"
    return f'<iframe title="{name}" style="{style}" sandbox="allow-scripts" srcdoc="{frame}"></iframe>'


def thing_name(thing: Model | Trajectory) -> str:
    """Name of the model."""
    return thing.name if isinstance(thing, Model) else thing.model.name
