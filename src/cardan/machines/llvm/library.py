"""Functions that many kernels call, compiled once for each type of lanes: moving rows to lanes, elementary functions.

They take most of LLVM's time for a short kernel. A kernel that does not have them in its own text names them in its
first line, `; needs double 8 fetch sincos`; its object code begins with the same line. When it is loaded, it gets
their addresses.
"""

from __future__ import annotations

import re
from typing import Any

from cardan.machines.llvm.module import Module, VectorType

MOVES = ("copy", "fetch", "give", "gather", "scatter")
HEAD = "; needs "

_loaded: dict[tuple[str, int, str], int] = {}  # addresses, for the life of the process
_held: list[Any] = []


def without_library(module: Module) -> str:
    """The text of a module that names the functions of the library, and has none of them."""
    roots = [name for name in module.functions if name in MOVES or name == "sincos" or name.startswith("vec.")]
    inside = _reached(module, roots)
    own = {name: text for name, text in module.functions.items() if name not in inside}
    called = set(re.findall(r"@([\w.]+)", "\n".join(own.values())))
    needs = [name for name in roots if name in called]
    declared = {_declaration(module.functions[name]) for name in needs}
    declared |= {line for line in module.declarations if re.findall(r"@([\w.]+)", line)[0] in called}
    text = Module(module.type, functions=own, declarations=declared).text()
    return f"{HEAD}{module.type.scalar} {module.type.width} {' '.join(needs)}\n{text}"


def addresses(head: str) -> dict[str, int]:
    """The addresses of the functions that the first line of a text names."""
    scalar, width, *names = head.removeprefix(HEAD).split()
    for name in names:
        if (scalar, int(width), name) not in _loaded:
            _load(VectorType(scalar, int(width)), name)
    return {name: _loaded[scalar, int(width), name] for name in names}


def _reached(module: Module, names: list[str]) -> set[str]:
    """These functions, and all that they call."""
    found, waiting = set(names), list(names)
    while waiting:
        for name in re.findall(r"@([\w.]+)", module.functions[waiting.pop()]):
            if name in module.functions and name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _declaration(text: str) -> str:
    """The declaration of a function that is defined elsewhere."""
    return text[: text.index("{\n")].replace("define internal", "declare").replace("\n", " ").rstrip()


def _load(t: VectorType, name: str) -> None:
    """Compile a function of the library, or take it from the cache, and load it; with those that come with it."""
    from cardan.machines.cache import entry_digest, load_entry, store_entry
    from cardan.machines.host import load, to_object
    from cardan.machines.llvm.batch_loop import print_moves
    from cardan.machines.llvm.elementary.functions import elementary, sincos

    module, names = Module(t), [name]
    if name in MOVES:
        print_moves(module)
        names = [n for n in MOVES if n in module.functions]
    elif name == "sincos":
        sincos(module)
    else:
        elementary(module, name.removeprefix("vec."))
    for n in names:
        module.functions[n] = module.functions[n].replace("define internal", "define", 1)
    text = module.text()
    key = entry_digest("library", text)
    code = load_entry(key)
    if code is None:
        code = to_object(text)
        store_entry(key, code)
    found, held = load(code, *names)
    _held.append(held)
    _loaded.update({(t.scalar, t.width, n): address for n, address in zip(names, found, strict=True)})
