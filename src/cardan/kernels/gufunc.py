"""A compiled loop becomes a NumPy generalized ufunc, through the table of functions NumPy exports to C."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

_FROM_FUNC_AND_DATA_AND_SIGNATURE = 31  # place in the table; part of NumPy's stable ABI

# NumPy keeps bare pointers to these for as long as the ufunc lives, which may be longer than its kernel
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
) -> np.ufunc:
    """The ufunc that calls the machine code at address `loop` with the address of `loops` as its data."""
    ports = inputs + outputs
    functions = (ctypes.c_void_p * 1)(loop)
    data = (ctypes.c_void_p * 1)(ctypes.addressof(loops))
    types = (ctypes.c_char * ports)(*[bytes([dtype.num])] * ports)
    texts = [ctypes.create_string_buffer(s.encode()) for s in (name, doc, signature)]
    _KEPT.append((functions, data, types, loops, texts))
    no_identity = -1
    kinds, unused = 1, 0
    pointers = [ctypes.addressof(a) for a in (functions, data, types)]
    made: np.ufunc = _constructor()(*pointers, kinds, inputs, outputs, no_identity, *texts[:2], unused, texts[2])
    return made
