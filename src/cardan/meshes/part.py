"""A surface with its colour: what a mesh file consists of."""

from __future__ import annotations

from dataclasses import dataclass

from cardan.meshes.surface import Surface

Colour = tuple[float, float, float, float]
TEXTURED: Colour = (0.72, 0.72, 0.72, 1.0)
"""Colour of a part whose file gives it a texture, which is not read."""


@dataclass(frozen=True, eq=False)
class Part:
    """A surface in one colour (r, g, b, a) from 0 to 1; None leaves the colour to the picture."""

    surface: Surface
    colour: Colour | None = None
