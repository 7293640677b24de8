"""Copies of elements under other names, and who refers to whom by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

KINDS = {"body": "body", "joint": "joint", "freejoint": "joint", "site": "site"}
"""Elements that others refer to by name, and what these call them."""
NAMED = (*KINDS, "geom", "frame", "camera", "light")
REFERENCES = {
    "joint": "joint", "jointinparent": "joint", "joint1": "joint", "joint2": "joint", "body": "body", "body1": "body",
    "body2": "body", "site": "site", "refsite": "site", "slidersite": "site", "cranksite": "site", "site1": "site",
    "site2": "site",
}  # fmt: skip
"""Attributes that name a body, joint or site."""
SECTIONS = ("actuator", "equality")
"""Where elements are that refer to others and are read."""

Names = set[tuple[str, str]]


def names_of(nodes: Iterable[Any]) -> Names:
    """What elements are called, by kind."""
    return {(KINDS[node.tag], node.get("name").strip()) for node in nodes if node.tag in KINDS and node.get("name")}


def references(node: Any) -> Iterator[tuple[str, str]]:
    """What an element of a section refers to."""
    return ((kind, node.get(name).strip()) for name, kind in REFERENCES.items() if node.get(name))


def made(like: Any, tag: str, attributes: dict[str, str]) -> Any:
    """A node that is said to be where another one is, and was written under the same options."""
    node = type(like)(tag, attributes)
    node.line, node.file = like.line, like.file
    node.origin = getattr(like, "origin", None)
    return node


def copied(top: Any, change: Callable[[Any], dict[str, str]]) -> Any:
    """A copy of a node and all in it, with other attributes."""
    result = made(top, top.tag, change(top))
    ahead = [(top, result)]
    while ahead:  # elements may be nested deeper than functions may
        node, copy = ahead.pop()
        for child in node:
            copy.append(made(child, child.tag, change(child)))
            ahead.append((child, copy[-1]))
    return result


def renamed(node: Any, attributes: Iterable[str], rename: Callable[[str], str]) -> dict[str, str]:
    """Attributes of a node, some of them under other names."""
    return {key: rename(value.strip()) if key in attributes and value else value for key, value in node.attrib.items()}
