"""DLPack: arrays of other libraries read where they are, and ours handed to them, without a copy.

A capsule holds a pointer to a `DLManagedTensor`, whose layout DLPack fixes. Reading: the capsule is held, under its own
name, as long as the memory is used; its destructor then gives the memory back, as for one that nobody took. Handing
out: whoever takes the capsule renames it and calls the `deleter` in it, perhaps from another thread and after Python is
gone, so the deleter is machine code and not a Python function.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from cardan.machines.cuda.view import FLOAT32, FLOAT64, View, contiguous_strides
from cardan.machines.host import compiling, load, to_object
from cardan.on_card import CUDA

_FLOAT = 2  # kDLFloat
_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}
_DTYPES: dict[str, np.dtype[Any]] = {"float32": FLOAT32, "float64": FLOAT64}
_NAME = ctypes.create_string_buffer(b"dltensor")  # a capsule keeps only the address of its name


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


# `deleter(managed)` releases the Python object that `context` points to, unless Python has ended; `destroy(capsule)`
# is called with a capsule, and deletes what nobody took.
_CODE = """@name = constant [9 x i8] c"dltensor\\00"
define void @deleter(ptr %managed) {{
entry:
  %alive = call i32 {alive}()
  %ended = icmp eq i32 %alive, 0
  br i1 %ended, label %done, label %release
release:
  %at = getelementptr i8, ptr %managed, i64 {context}
  %object = load ptr, ptr %at
  %state = call i32 {ensure}()
  call void {decref}(ptr %object)
  call void {leave}(i32 %state)
  br label %done
done:
  ret void
}}
define void @destroy(ptr %capsule) {{
entry:
  %valid = call i32 {valid}(ptr %capsule, ptr @name)
  %taken = icmp eq i32 %valid, 0
  br i1 %taken, label %done, label %release
release:
  %managed = call ptr {pointer}(ptr %capsule, ptr @name)
  call void @deleter(ptr %managed)
  br label %done
done:
  ret void
}}
"""


@cache
def _functions() -> tuple[int, int]:
    """Addresses of `deleter` and `destroy`; the code is never unloaded."""
    api = ctypes.pythonapi

    def of(name: str) -> str:
        return f"inttoptr (i64 {ctypes.cast(getattr(api, name), ctypes.c_void_p).value} to ptr)"

    text = _CODE.format(
        alive=of("Py_IsInitialized"), ensure=of("PyGILState_Ensure"), leave=of("PyGILState_Release"),
        decref=of("Py_DecRef"), valid=of("PyCapsule_IsValid"), pointer=of("PyCapsule_GetPointer"),
        context=_Managed.context.offset,
    )  # fmt: skip
    with compiling:
        (deleter, destroy), held = load(to_object(text), "deleter", "destroy")
    api.Py_IncRef(ctypes.py_object(held))  # other libraries hold the addresses until the process ends
    return deleter, destroy


@cache
def _capsules() -> tuple[Any, Any]:
    """Python's functions that make a capsule, and tell what it points to."""
    pointer, thing = ctypes.c_void_p, ctypes.py_object
    make = ctypes.PYFUNCTYPE(thing, pointer, pointer, pointer)(("PyCapsule_New", ctypes.pythonapi))
    read = ctypes.PYFUNCTYPE(pointer, thing, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return make, read


def to_capsule(view: View) -> Any:
    """A capsule of an array on a card; it holds `view.owner` until whoever takes it is done."""
    deleter, destroy = _functions()
    shape = (ctypes.c_int64 * view.ndim)(*view.shape)
    strides = (ctypes.c_int64 * view.ndim)(*(step // view.dtype.itemsize for step in view.strides))
    size = view.dtype.itemsize
    tensor = _Tensor(view.pointer, CUDA, view.device, view.ndim, _FLOAT, 8 * size, 1, shape, strides, 0)
    managed = _Managed(tensor, None, deleter)
    context = (managed, shape, strides, view.owner)
    managed.context = id(context)
    make, _ = _capsules()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(context))  # the deleter takes it back
    return make(ctypes.addressof(managed), ctypes.addressof(_NAME), destroy)


def from_capsule(capsule: Any, owner: Any) -> tuple[View | None, str]:
    """The array in a capsule, held by the capsule itself, and the name of its dtype; None for other dtypes."""
    _, read = _capsules()
    tensor = _Managed.from_address(read(capsule, b"dltensor")).tensor
    name = f"{_CODES.get(tensor.code, 'unknown')}{tensor.bits if tensor.code != 6 else ''}"
    dtype = _DTYPES.get(name) if tensor.lanes == 1 else None
    if dtype is None:
        return None, name if tensor.lanes == 1 else f"{name}x{tensor.lanes}"
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    size = dtype.itemsize
    if tensor.strides:
        strides = tuple(size * tensor.strides[k] for k in range(tensor.ndim))
    else:
        strides = contiguous_strides(shape, size)
    pointer = (tensor.data or 0) + tensor.byte_offset
    return View(pointer, shape, strides, dtype, tensor.device, (capsule, owner), borrowed=True), name
