"""A recorded sheet as one HTML file: formulas in MathML, the numbers by the sheet's own program in JavaScript.

The file contains everything and asks for nothing: a policy in its head forbids any request. `data/textbook.js` moves
the sliders' values through the program and draws; it contains no mechanics.
"""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files as package_files
from itertools import groupby
from typing import Any

from cardan.errors import CardanError
from cardan.machines.javascript.module import JavaScriptPrinter
from cardan.program.program import record
from cardan.textbook.pages.sheet import Comparison, Sheet, Shown, Slider, Step, equations_in

LONG = 50  # characters of LaTeX from which on a left side is not repeated beside its value
POWERS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def page_html(name: str, sheet: Sheet, source: str) -> str:
    """The text of the page of a sheet; `name` is that of its program, `source` the title of the document."""
    program = sheet.program(name)
    module = JavaScriptPrinter((f"{name}: everything that this page shows, as a function of its sliders.",))
    text = {
        "TITLE": html.escape(sheet.title),
        "SOURCE": html.escape(source),
        "INTRODUCTION": "\n".join(f"<p>{prose(line)}</p>" for line in sheet.introduction),
        "SLIDERS": _sliders(sheet),
        "AGREEMENT": _agreement(sheet.comparisons),
        "STEPS": _steps(sheet),
        "STYLE": _data("textbook.css"),
        "SCRIPT": f"{module.print_program(program, record(program))}\n{_about(name, sheet)}\n{_data('textbook.js')}",
    }
    return re.sub("|".join(f"@{key}@" for key in text), lambda m: text[m[0].strip("@")], _data("textbook.html"))


def prose(text: str) -> str:
    """A sentence as HTML: formulas between dollars, code between backticks."""
    parts = re.split(r"(\$[^$]+\$|`[^`]+`)", text)
    return "".join(
        mathml(part[1:-1]) if part[:1] == "$" and len(part) > 1
        else f"<code>{html.escape(part[1:-1])}</code>" if part[:1] == "`" and len(part) > 1
        else html.escape(part)
        for part in parts
    )  # fmt: skip


def mathml(latex: str, display: str = "inline") -> str:
    """A formula in MathML."""
    try:
        from latex2mathml.converter import convert
    except ImportError:
        raise CardanError(
            "pages of the textbook need latex2mathml, which is not installed: pip install 'cardan[symbols]'"
        ) from None
    # braces, without which latex2mathml raises only the bracket to the power
    latex = re.sub(r"(\\begin\{bmatrix\}.*?\\end\{bmatrix\})\^", r"{\1}^", latex, flags=re.DOTALL)
    return convert(latex, display=display).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")


def unit_text(unit: str) -> str:
    """A unit with raised powers: kg m^2 becomes kg m²."""
    return "" if unit == "1" else re.sub(r"\^(-?\d+)", lambda m: m[1].translate(POWERS), unit)


def _data(name: str) -> str:
    return package_files("cardan.data").joinpath(name).read_text(encoding="utf-8")


def _about(name: str, sheet: Sheet) -> str:
    """What the script must know of the sheet."""
    about: dict[str, Any] = {
        "sliders": [{"name": s.name, "unit": s.unit, "start": s.start, "step": s.step} for s in sheet.sliders],
        "values": [{"key": value.key, "shape": value.shape} for value in sheet.values.values()],
        "rules": [{"key": rule.key, "sentence": rule.sentence} for rule in sheet.rules],
        "differences": [one.difference for one in sheet.comparisons],
        "shapes": [vars(shape) for shape in sheet.shapes],
        "flat": sheet.flat,
        "part": 2 if sheet.flat else 3,
        "centre": sheet.centre,
        "reach": sheet.reach,
    }
    return f"const ABOUT = {json.dumps(about).replace('<', chr(92) + 'u003c')};\nconst evaluate = {name};"


def _sliders(sheet: Sheet) -> str:
    groups = groupby(sheet.sliders, lambda slider: slider.group)
    return "\n".join(
        f"<fieldset><legend>{html.escape(name)}</legend>{''.join(map(_slider, sliders))}</fieldset>"
        for name, sliders in groups
    )


def _slider(s: Slider) -> str:
    unit = html.escape(unit_text(s.unit))
    return (
        f'<label for="{s.name}"><span>{mathml(s.latex)} {html.escape(s.meaning)}</span>'
        f'<output id="{s.name}.now" for="{s.name}"></output>'
        f'<input type="range" id="{s.name}" min="{s.low:g}" max="{s.high:g}" step="{s.step:g}" value="{s.start:g}" '
        f'aria-label="{html.escape(s.meaning)}, {unit}"></label>'
    )


def _agreement(comparisons: list[Comparison]) -> str:
    """The panel above the steps: the comparison itself where there is one, else a line for each."""
    if len(comparisons) == 1:
        return _comparison(comparisons[0])
    rows = "".join(
        f'<tr><th scope="row">{prose(one.title)}</th>'
        f'<td class="verdict" data-brief data-difference="{html.escape(one.difference)}"></td></tr>'
        for one in comparisons
    )
    return f"<table>{rows}</table>"


def _part(step: str | Step | Comparison, alone: bool) -> str:
    """A heading, a step, or a comparison, which stands above the steps where it is the only one."""
    match step:
        case str():
            return f"<h2>{prose(step)}</h2>"
        case Step():
            return _step(step)
        case Comparison():
            return "" if alone else f'<section class="panel">{_comparison(step)}</section>'


def _comparison(one: Comparison) -> str:
    rows = "".join(
        f'<tr><th scope="row">{prose(label)}</th>'
        f'<td><span class="value" data-key="{html.escape(key)}"></span></td></tr>'
        for label, key in one.forms
    )
    unit = f" <small>{html.escape(unit_text(one.unit))}</small>" if one.unit else ""
    return (
        f'<h3>{prose(one.title)}{unit}</h3><table class="forms">{rows}</table>'
        f'<p class="verdict" data-difference="{html.escape(one.difference)}"></p>'
    )


def _steps(sheet: Sheet) -> str:
    alone = len(sheet.comparisons) == 1
    return "\n".join(_part(step, alone) for step in sheet.steps)


def _step(step: Step) -> str:
    label = f'<b class="number">{html.escape(step.number)}</b>' if step.number else ""
    formula = (
        f'<div class="formula">{label}<div>{"".join(map(_line, equations_in(step.latex)))}</div></div>'
        if step.latex
        else ""
    )
    shown = "".join(map(_shown, step.shown))
    return f'<section class="step"><p>{prose(step.sentence)}</p>{formula}{shown}</section>'


def _line(latex: str) -> str:
    return f"<div>{mathml(latex, 'block')}</div>"


def _shown(one: Shown) -> str:
    letter = f"{mathml(one.latex) if len(one.latex) < LONG else 'left side'}<i>=</i>"
    unit = html.escape(unit_text(one.unit))
    return (
        f'<div class="shown"><span class="letter">{letter}</span>'
        f'<span class="value" data-key="{html.escape(one.key)}"></span>'
        f"<small>{unit}<br>{html.escape(one.meaning)}</small></div>"
    )
