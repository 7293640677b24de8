"""Ways to print the equations as a source has them, by the name of the source. Each style is declared once, here."""

from __future__ import annotations

from cardan.errors import InputError, UnknownNameError, nearest
from cardan.formulation.formulation import Formulation
from cardan.readable.styles.kj import KJ
from cardan.readable.styles.style import Style

STYLES: dict[str, Style] = {style.name: style for style in (KJ(),)}


def find_style(name: str | None, formulation: Formulation) -> Style:
    """The style of a name, for a formulation; None is that of the formulation itself."""
    if name is None:
        return Style()
    if not isinstance(name, str) or name not in STYLES:
        raise UnknownNameError(f"style {name!r} is unknown{nearest(name, STYLES)}")
    style = STYLES[name]
    if formulation.name not in style.formulations:
        raise InputError(
            f"style {name!r} prints the formulations {', '.join(style.formulations)}, got {formulation.name!r}; ask "
            f"for equations(model, formulation={style.formulations[0]!r}).sympy(style={name!r})"
        )
    return style
