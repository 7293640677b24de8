"""The equations of the five sources by their numbers: `cd.textbook.F6_7`, as functions and in print.

Each is an `Equation`: called with numbers, arrays of any batch, CasADi or SymPy matrices it gives the value of its left
side; `.sympy()` and `.latex()` give it as the page has it. Arrays are (..., core shape) as each docstring says, SI
units, angular part first; leading axes broadcast. `SOURCES` has the documents, each with its equations in the order of
the pages. `page` writes a derivation as a page that a browser runs.
"""

from __future__ import annotations

from cardan.errors import nearest
from cardan.textbook import fx, rotations
from cardan.textbook.at import AT
from cardan.textbook.equation import Equation, Source
from cardan.textbook.f3 import F3
from cardan.textbook.f6 import F6
from cardan.textbook.fx import FX
from cardan.textbook.kj import KJ
from cardan.textbook.kj_joints import JOINTS
from cardan.textbook.notation import Quantity
from cardan.textbook.pages import page

SOURCES: dict[str, Source] = {source.short: source for source in (F6, F3, FX, AT, KJ, *JOINTS)}
ALIASES = {
    "newton_euler_force": fx.FX_A4,
    "constrained_body": fx.FX_B1,
    "joint_space_body": fx.FX_B3,
}
EQUATIONS: dict[str, Equation] = {
    **{name: e for source in (*SOURCES.values(), rotations.ROTATIONS) for name, e in source.equations.items()},
    **ALIASES,
}
__all__ = ["EQUATIONS", "SOURCES", "Equation", "Quantity", "Source", "page", *EQUATIONS]


def __getattr__(name: str) -> Equation:
    if name not in EQUATIONS:
        raise AttributeError(f"cd.textbook has no equation {name!r}{nearest(name, EQUATIONS)}")
    return EQUATIONS[name]


def __dir__() -> list[str]:
    return sorted(__all__)
