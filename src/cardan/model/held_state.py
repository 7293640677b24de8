"""State that a function keeps in Python: it would be frozen, without a word, where the function is run on symbols once.

A controller that adds to an attribute, a list, or a variable of the function around it, and reads it, has such state.
It may run with the same result twice, and still be wrong. So its text is read. What it only writes, such as a record of
calls, does no harm.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from tokenize import TokenError
from typing import Any

from cardan.errors import ModelError

CHANGES = {"append", "extend", "insert", "pop", "popleft", "appendleft", "update", "setdefault", "add", "clear"}
"""Methods that change what they belong to."""


def refuse_held_state(owner: str, function: Callable[..., Any], instead: str) -> None:
    """Reject a function whose text changes what outlives it: attributes, entries and lists that are not its own."""
    if found := _held(function):
        raise ModelError(
            f"{owner}: its function changes {found}, state that it keeps in Python. It is run on symbols when a model "
            f"is built, and the state would stay as it was then; declare it with {instead} and return its rate"
        )


def _held(function: Callable[..., Any]) -> str:
    """What a function changes that outlives it, as text; empty if nothing, or if its text is not to be had."""
    code = getattr(function, "__func__", function)
    code = code if inspect.isfunction(code) else vars(type(function)).get("__call__")
    if not inspect.isfunction(code):
        return ""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, TypeError, SyntaxError, TokenError):  # no source, or a lambda inside a call
        return ""
    defined = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == code.__name__), None)
    if defined is None:
        return ""
    kept: set[str] = set()
    own: set[str] = set()
    for node in ast.walk(defined):
        if isinstance(node, ast.Nonlocal | ast.Global):
            kept |= set(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
    own -= kept
    for node in ast.walk(defined):
        changed = [
            x for x in _targets(node) if (_base(x) in kept if isinstance(x, ast.Name) else _base(x) not in {None, *own})
        ]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            changed += [node.func.value] if _base(node.func) not in {None, *own} else []
        for held in map(_whole, changed):
            if _is_read(defined, held, node):
                return f"'{ast.unparse(held)}'"
    return ""


def _is_read(defined: ast.FunctionDef, changed: ast.expr, by: ast.AST) -> bool:
    """Whether a function reads what one of its statements changes, elsewhere."""
    own, text = {id(node) for node in ast.walk(by)}, ast.unparse(changed)
    if isinstance(by, ast.Assign):  # its right side may read
        own = {id(node) for target in by.targets for node in ast.walk(target)}
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and isinstance(node.ctx, ast.Load)
        and id(node) not in own
        and ast.unparse(node) == text
        for node in ast.walk(defined)
    )


def _whole(node: ast.expr) -> ast.expr:
    """What an entry is an entry of."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a statement assigns."""
    if isinstance(node, ast.Assign):
        return [x for target in node.targets for x in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else []


def _base(node: ast.expr) -> str | None:
    """The name at the beginning of `a.b[c].d`."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
