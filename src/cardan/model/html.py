"""Mechanisms, models and reports as notebooks show them: small HTML tables, and the hook for a picture.

Pictures are drawn by layers above. They are registered in `VIEWS` by `cardan/__init__`, which knows all layers, so that
`model.draw()` works and nothing here imports upwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from cardan.model.body import Body, Joint
from cardan.model.tree import GROUND

VIEWS: dict[str, Callable[..., Any]] = {}
"""What layers above show of a model: `draw(model, q, **options)`, a figure; `thumbnail(model)`, SVG text;
`inline(thing)`, a frame in which a model or a run moves."""

MOST_ROWS = 12
LARGEST_DRAWN = 60  # bodies


def html_table(caption: str, rows: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table; without a head, the first cell of a row is what the row is about."""
    style = "style='text-align:left'"
    top = f"<tr>{''.join(f'<th {style}>{escape(cell)}</th>' for cell in head)}</tr>" if head else ""
    body = []
    for first, *rest in rows:
        tag = "td" if head else "th"
        cells = "".join(f"<td {style}>{escape(cell)}</td>" for cell in rest)
        body.append(f"<tr><{tag} {style}>{escape(first)}</{tag}>{cells}</tr>")
    return f"<table><caption {style}>{escape(caption)}</caption>{top}{''.join(body)}</table>"


def mechanism_html(
    title: str, facts: Sequence[Sequence[str]], bodies: Sequence[Body], joints: Sequence[Joint], picture: str, cuts: Any
) -> str:
    """Facts, bodies and joints side by side with a picture."""
    names = {GROUND: "ground", **{b: body.name for b, body in enumerate(bodies)}}
    of_bodies = [(body.name, f"{float(body.mass):.4g} kg") for body in bodies]
    of_joints = [
        (joint.name, joint.kind.name, f"{names[joint.parent]} \N{RIGHTWARDS ARROW} {names[joint.child]}",
         "closes a loop" if j in cuts else "")
        for j, joint in enumerate(joints)
    ]  # fmt: skip
    parts = [
        html_table(title, facts),
        html_table("bodies", _first(of_bodies), ("body", "mass")),
        html_table("joints", _first(of_joints), ("joint", "kind", "bodies", "")),
        picture,
    ]
    cells = "".join(f"<div>{part}</div>" for part in parts if part)
    return f"<div style='display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start'>{cells}</div>"


def thumbnail(model: Any) -> str:
    """A small picture of a model as SVG text; empty where there is none, or where it would be too large to read."""
    if "thumbnail" not in VIEWS or model.nb > LARGEST_DRAWN or model.batch:
        return ""
    return str(VIEWS["thumbnail"](model))


def model_view(model: Any) -> str:
    """A view of a model that can be turned, over its thumbnail, which is seen where frames are not shown."""
    still = thumbnail(model)
    frame = str(VIEWS["inline"](model)) if still and "inline" in VIEWS else ""
    if not frame.startswith("<iframe"):
        return still + frame
    over = f"<div style='position:absolute;inset:0'>{frame}</div>"
    return f"<div style='position:relative;width:560px;max-width:100%;height:380px;overflow:hidden'>{still}{over}</div>"


def _first(rows: list[Any]) -> list[Any]:
    """The first rows, and how many more there are."""
    if len(rows) <= MOST_ROWS:
        return rows
    more = len(rows) - MOST_ROWS + 1
    return [*rows[: MOST_ROWS - 1], (f"and {more} more", *("" for _ in rows[0][1:]))]
