"""A compiled loop becomes a NumPy generalized ufunc, through the table of functions NumPy exports to C."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31  # place in the table; part of NumPy's stable ABI

# What ufuncs point to where NumPy cannot be made to keep it; then it is kept for ever
_KEPT: list[Any] = []


@cache
def _constructor() -> Any:
    umath = import_module("numpy._core._multiarray_umath")  # NumPy has no public way to its table

    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype = ctypes.c_void_p
    address.argtypes = [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(address(umath._UFUNC_API, None), ctypes.POINTER(ctypes.c_void_p))
    pointer, integer, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        pointer,
        pointer,
        pointer,
        integer,
        integer,
        integer,
        integer,
        text,
        text,
        integer,
        text,
    )
    return prototype(table[_FROM_FUNC_AND_DATA_AND_SIGNATURE])


class _UFunc(ctypes.Structure):
    """The beginning of NumPy's `PyUFuncObject`, which its C header publishes."""

    _fields_ = (
        ("head", ctypes.c_byte * object.__basicsize__),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_void_p),
        ("types", ctypes.c_void_p),
        ("doc", ctypes.c_void_p),
        ("ptr", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
    )


class Loops(ctypes.Structure):
    """What the compiled `loop` finds behind its data pointer: two loops, null until compiled."""

    _fields_ = (("row", ctypes.c_void_p), ("wide", ctypes.c_void_p))


def make_gufunc(
    loop: int,
    loops: Loops,
    dtype: np.dtype[Any],
    inputs: int,
    outputs: int,
    name: str,
    doc: str,
    signature: str,
    code: list[Any],
) -> np.ufunc:
    """The ufunc that calls the machine code at address `loop` with the address of `loops` as its data.

    What `code` holds, now or later, is released when the ufunc is.
    """
    ports = inputs + outputs
    functions = (ctypes.c_void_p * 1)(loop)
    data = (ctypes.c_void_p * 1)(ctypes.addressof(loops))
    types = (ctypes.c_char * ports)(*[bytes([dtype.num])] * ports)
    texts = [ctypes.create_string_buffer(s.encode()) for s in (name, doc, signature)]
    code.append((functions, data, types, loops, texts))
    no_identity = -1
    kinds, unused = 1, 0
    pointers = [ctypes.addressof(a) for a in (functions, data, types)]
    made: np.ufunc = _constructor()(*pointers, kinds, inputs, outputs, no_identity, *texts[:2], unused, texts[2])
    _bind(made, code, functions=pointers[0], data=pointers[1], nargs=ports)
    return made


def _bind(made: np.ufunc, kept: list[Any], **expected: int) -> None:
    """Let a ufunc hold what it points to, in the place that NumPy has for it and gives up with the ufunc."""
    inside = _UFunc.from_address(id(made))
    if inside.obj is None and all(getattr(inside, name) == value for name, value in expected.items()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        inside.obj = id(kept)
    else:
        _KEPT.append(kept)
