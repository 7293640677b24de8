"""A compiled loop becomes a NumPy generalized ufunc, through the table of functions NumPy exports to C."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from cardan.program.program import Port, Program

_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31  # place in the table; part of NumPy's stable ABI

# What ufuncs point to, if it could not be bound to them; it is then never released
_KEPT: list[Any] = []


def signature(program: Program) -> str:
    """NumPy signature with frozen sizes, e.g. `(7),(7),(7)->(7)`.

    NumPy would take a symbolic size from the arrays, and the code would read past the end of a short one.
    """

    def group(ports: tuple[Port, ...]) -> str:
        return ",".join("(" + ",".join(map(str, port.shape)) + ")" for port in ports)

    return group(program.inputs) + "->" + group(program.outputs)


@cache
def _constructor() -> Any:
    """NumPy's function that makes a generalized ufunc."""
    umath = import_module("numpy._core._multiarray_umath")  # NumPy offers no public access to its table

    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype = ctypes.c_void_p
    address.argtypes = [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(address(umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
    pointer, integer, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, pointer, pointer, pointer, integer, integer, integer, integer, text, text, integer, text
    )
    return prototype(table[_FROM_FUNC_AND_DATA_AND_SIGNATURE])


class _UFunc(ctypes.Structure):
    """The beginning of NumPy's `PyUFuncObject`, which its C header publishes."""

    _fields_ = (
        ("head", ctypes.c_byte * object.__basicsize__),
        *((name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")),
        *((name, ctypes.c_void_p) for name in ("functions", "data")),
        *((name, ctypes.c_int) for name in ("ntypes", "reserved")),
        *((name, ctypes.c_void_p) for name in ("name", "types", "doc", "ptr", "obj")),
    )


class LoopAddresses(ctypes.Structure):
    """What the compiled `loop` finds behind its data pointer: the loop on one lane and on many, null until compiled."""

    _fields_ = (("row", ctypes.c_void_p), ("wide", ctypes.c_void_p))


def make_gufunc(
    program: Program, loop: int, addresses: LoopAddresses, dtype: np.dtype[Any], code: list[Any]
) -> np.ufunc:
    """The ufunc that calls the machine code at address `loop` with the address of `addresses` as its data.

    What `code` holds, now or later, is released when the ufunc is.
    """
    inputs, outputs = len(program.inputs), len(program.outputs)
    doc = ", ".join(p.name for p in program.inputs) + " -> " + ", ".join(p.name for p in program.outputs)
    ports = inputs + outputs
    functions = (ctypes.c_void_p * 1)(loop)
    data = (ctypes.c_void_p * 1)(ctypes.addressof(addresses))
    types = (ctypes.c_char * ports)(*[bytes([dtype.num])] * ports)
    texts = [ctypes.create_string_buffer(s.encode()) for s in (program.name, doc, signature(program))]
    code.append((functions, data, types, addresses, texts))
    no_identity, kinds, unused = -1, 1, 0
    pointers = [ctypes.addressof(a) for a in (functions, data, types)]
    made: np.ufunc = _constructor()(*pointers, kinds, inputs, outputs, no_identity, *texts[:2], unused, texts[2])
    _bind(made, code, functions=pointers[0], data=pointers[1], nargs=ports)
    return made


def _bind(made: np.ufunc, kept: list[Any], **expected: int) -> None:
    """Let a ufunc hold what it points to, in the field that NumPy releases together with the ufunc."""
    inside = _UFunc.from_address(id(made))
    if inside.obj is None and all(getattr(inside, name) == value for name, value in expected.items()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        inside.obj = id(kept)
    else:
        _KEPT.append(kept)
