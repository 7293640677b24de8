"""Nested tables and lists as YAML text: short ones on one line, long ones indented."""

from __future__ import annotations

import re
from typing import Any

WIDTH = 100
"""Longest line, in characters, for a table or list on one line."""
# Words that every YAML reader takes as text.
PLAIN = re.compile(r"[A-Za-z_](?:[\w./-]| (?=[\w./-]))*", re.ASCII)
WORDS = {"true", "false", "yes", "no", "on", "off", "null", "nan", "inf"}
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?", re.ASCII)
APART = ("cut", "snapping", "free", "losses", "notes")
"""Sections at the end of a file, with a blank line before each."""
CALCULATION = re.compile(r"=[\w .+*/^()-]+", re.ASCII)


def number(value: float) -> str:
    """The shortest text that reads back as the same float."""
    value = float(value)
    if value == int(value) and abs(value) < 1e15 and not (value == 0 and repr(value)[0] == "-"):
        return str(int(value))
    return repr(value)


def block(sections: dict[str, Any]) -> str:
    """The text of a file from nested tables: sections, elements, entries; numbers are given as text."""
    lines: list[str] = []
    for name, value in sections.items():
        if isinstance(value, dict):
            lines += ["", f"{name}:"]
            for key, element in value.items():
                lines += _entry(key, element, 1, inline=not element)
        else:
            lines += [""] * (name in APART) + _entry(name, value, 0)
    return "\n".join(lines) + "\n"


def _entry(key: str, value: Any, depth: int, inline: bool | None = None) -> list[str]:
    """Lines of one key and its value."""
    head = f"{'  ' * depth}{word(key)}:"
    short = flow(value)
    fits = len(head) + len(short) < WIDTH and not (depth == 1 and isinstance(value, dict))
    if inline or (inline is None and fits) or not isinstance(value, dict | list):
        return [f"{head} {short}"]
    if isinstance(value, dict):
        return [head, *(line for k, v in value.items() for line in _entry(k, v, depth + 1))]
    return [head, *(line for item in value for line in _item(item, depth + 1))]


def _item(item: Any, depth: int) -> list[str]:
    """One entry of a list: a long table begins after the dash."""
    short = flow(item)
    if len(short) < WIDTH or not isinstance(item, dict):
        return [f"{'  ' * depth}- {short}"]
    lines = [line for k, v in item.items() for line in _entry(k, v, depth + 1)]
    return [f"{'  ' * depth}- {lines[0].lstrip()}", *lines[1:]]


def flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{word(k)}: {flow(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(flow, value))}]"
    return word(str(value), numeric=True)


def word(text: str, numeric: bool = False) -> str:
    """A scalar, in quotes where YAML would not read it as text."""
    if numeric and (NUMBER.fullmatch(text) or CALCULATION.fullmatch(text)):
        return text
    if PLAIN.fullmatch(text) and text.lower() not in WORDS:
        return text
    return quoted(text)


def quoted(text: str) -> str:
    """A scalar in double quotes, with unprintable characters escaped."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
