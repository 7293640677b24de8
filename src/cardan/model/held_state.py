"""State that a function keeps in Python: it would be frozen, without a word, where the function is run on symbols once.

A controller that adds to an attribute, a list, or a variable of the function around it has such state. It may run with
the same result twice, and still be wrong. So what a function can reach is compared before and after a run.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
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
    except (OSError, TypeError, SyntaxError, IndentationError):  # no source, or a lambda inside a call
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
        targets = _targets(node)
        for target in targets:
            base = _base(target)
            if (isinstance(target, ast.Name) and target.id in kept) or (
                not isinstance(target, ast.Name) and base is not None and base not in own
            ):
                return f"'{ast.unparse(target)}'"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in CHANGES
            and (base := _base(node.func)) is not None
            and base not in own
        ):
            return f"'{ast.unparse(node.func.value)}'"
    return ""


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
