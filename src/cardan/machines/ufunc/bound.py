"""A kernel on arrays that stay where they are: a Python function without arguments, for control loops.

The call is compiled: it hands the addresses to the kernel's loop and returns the caller's result, without looking at
any array again. It costs some 20 ns more than the loop itself.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.machines.host import compiling, few, host, load, to_object
from cardan.machines.ufunc.kernel import Kernel

_METH_NOARGS = 4  # part of Python's stable ABI
_LLVM_TYPE = {np.dtype(np.float64): "double", np.dtype(np.float32): "float"}

# `step(self, unused)`: calls the loop with what the capsule `self` points to (`_Frame`), looks whether the first
# result is finite, and returns the caller's result as a new reference.
_STEP = """define ptr @step_{s}(ptr %self, ptr %unused) {{
entry:
  %frame = call ptr {pointer}(ptr %self, ptr null)
  %f = load [9 x ptr], ptr %frame
  %loop = extractvalue [9 x ptr] %f, 0
  %args = extractvalue [9 x ptr] %f, 1
  %dims = extractvalue [9 x ptr] %f, 2
  %steps = extractvalue [9 x ptr] %f, 3
  %data = extractvalue [9 x ptr] %f, 4
  %result = extractvalue [9 x ptr] %f, 5
  %value = extractvalue [9 x ptr] %f, 6
  %count.p = extractvalue [9 x ptr] %f, 7
  %text = extractvalue [9 x ptr] %f, 8
  %count = ptrtoint ptr %count.p to i64
  call void %loop(ptr %args, ptr %dims, ptr %steps, ptr %data)
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %body]
  %sum = phi {s} [0.0, %entry], [%more, %body]
  %any = icmp slt i64 %i, %count
  br i1 %any, label %body, label %done
body:
  %at = getelementptr {s}, ptr %value, i64 %i
  %x = load {s}, ptr %at
  %nothing = fmul {s} %x, 0.0
  %more = fadd {s} %sum, %nothing
  %next = add i64 %i, 1
  br label %head
done:
  %finite = fcmp oeq {s} %sum, 0.0
  br i1 %finite, label %good, label %bad
good:
  call void {keep}(ptr %result)
  ret ptr %result
bad:
  call void {fail}(ptr {error}, ptr %text)
  ret ptr null
}}
"""


class _Frame(ctypes.Structure):
    """What a bound call needs, as the compiled `step` reads it."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("loop", "args", "dims", "steps", "data", "result", "value")),
        ("count", ctypes.c_ssize_t),
        ("text", ctypes.c_char_p),
    )


class Method(ctypes.Structure):
    """Python's `PyMethodDef`."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


@cache
def _methods() -> tuple[dict[str, Method], Any]:
    """The compiled `step` of each precision as a method for Python; compiled once, held as long as the process."""
    api = ctypes.pythonapi

    def constant(address: int | None) -> str:
        return f"inttoptr (i64 {address} to ptr)"

    def of(name: str) -> str:
        return constant(ctypes.cast(getattr(api, name), ctypes.c_void_p).value)

    places = {
        "pointer": of("PyCapsule_GetPointer"), "keep": of("Py_IncRef"), "fail": of("PyErr_SetString"),
        "error": constant(id(InputError)),
    }  # fmt: skip
    kinds = [*_LLVM_TYPE.values()]
    code = to_object("".join(_STEP.format(s=s, **places) for s in kinds))
    addresses, held = load(code, *(f"step_{s}" for s in kinds))
    doc = b"Evaluate on the arrays that were bound, and return the result."
    return {s: Method(b"step", at, _METH_NOARGS, doc) for s, at in zip(kinds, addresses, strict=True)}, held


@cache
def constructors() -> tuple[Any, Any]:
    """Python's functions that make a capsule, and a function of a method."""
    pointer, thing = ctypes.c_void_p, ctypes.py_object
    capsule = ctypes.PYFUNCTYPE(thing, pointer, pointer, pointer)(("PyCapsule_New", ctypes.pythonapi))
    function = ctypes.PYFUNCTYPE(thing, pointer, thing, thing)(("PyCFunction_NewEx", ctypes.pythonapi))
    return capsule, function


def bind(
    kernel: Kernel, owner: str, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], result: Any
) -> Callable[[], Any]:
    """A function without arguments that evaluates `kernel` from `inputs` into `outputs` and returns `result`.

    Inputs and outputs are C-contiguous, float64 or float32, of the port's shape or with the batch's axes before it,
    the same for all that have any (`batch_of` checks). It holds all of them, and the code. It computes on the calling
    thread, and raises InputError where the first output is not finite.
    """
    program = kernel.program.without_empty_ports()
    ports = kernel.program.ports
    if not any(port.size for port in kernel.program.inputs):
        raise InputError(f"{owner}: it has no input, so that there is nothing to bind")
    arrays = [(p, a) for p, a in zip(ports, (*inputs, *outputs), strict=True) if p.size]
    dtype = outputs[0].dtype
    rows = max((a.size // p.size for p, a in arrays), default=0)
    wide = rows > few(host().lanes(_LLVM_TYPE[dtype]))
    variant = kernel.compiled(dtype, wide=wide)
    batch_steps = [p.size * dtype.itemsize if a.size > p.size else 0 for p, a in arrays]
    core_steps = [math.prod(p.shape[k + 1 :]) * dtype.itemsize for p, _ in arrays for k in range(len(p.shape))]
    args = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for _, a in arrays))
    dims = (ctypes.c_ssize_t * 1)(rows)
    steps = (ctypes.c_ssize_t * (len(batch_steps) + len(core_steps)))(*batch_steps, *core_steps)
    first = arrays[len(program.inputs)][1]
    text = f"{owner}: the result is not finite; look at {', '.join(p.name for p in program.inputs)}".encode()
    at = ctypes.addressof
    frame = _Frame(
        variant.loop, at(args), at(dims), at(steps), at(variant.loops), id(result), first.ctypes.data, first.size, text
    )
    with compiling:
        methods, _ = _methods()
    capsule, function = constructors()
    kept = (frame, args, dims, steps, text, [a for _, a in arrays], result, variant.ufunc)
    made: Callable[[], Any] = function(
        ctypes.addressof(methods[_LLVM_TYPE[dtype]]), capsule(ctypes.addressof(frame), None, None), kept
    )
    return made


def batch_of(
    owner: str, inputs: Sequence[tuple[str, tuple[int, ...], Any]], outputs: Sequence[tuple[str, tuple[int, ...], Any]]
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Batch shape and dtype of arrays that can be bound, each given as (name, core shape, array).

    An output may be None: it has the batch's axes. Everything else that is wrong is an InputError of one sentence.
    """
    batch: tuple[int, ...] = ()
    kinds: dict[np.dtype[Any], str] = {}
    shaped: list[tuple[str, np.ndarray]] = []
    for k, (name, core, array) in enumerate([*inputs, *outputs]):
        label = name if k < len(inputs) else f"out for {name}"
        if array is None and k >= len(inputs):
            continue
        if type(array) is not np.ndarray:
            raise InputError(f"{owner}: {label} is a {type(array).__name__}; only NumPy arrays can be bound")
        if array.dtype not in _LLVM_TYPE or not array.dtype.isnative:
            raise InputError(f"{owner}: {label} has dtype {array.dtype}; float64 or float32 can be bound")
        if not (array.flags.c_contiguous and array.flags.aligned):
            raise InputError(
                f"{owner}: {label} is not contiguous in memory; bind np.ascontiguousarray({name}) and write into that"
            )
        split = array.ndim - len(core)
        if split < 0 or array.shape[split:] != core:
            raise InputError(
                f"{owner}: {label} has shape {array.shape}, the model needs (..., {', '.join(map(str, core))})"
            )
        ahead = array.shape[:split]
        if ahead and batch and ahead != batch:
            raise InputError(f"{owner}: {label} has batch axes {ahead}, an array before it has {batch}")
        batch = ahead or batch
        kinds.setdefault(array.dtype, label)
        shaped.append((label, array))
        if k >= len(inputs) and not array.flags.writeable:
            raise InputError(f"{owner}: {label} is read-only")
    if len(kinds) > 1:
        (a, one), (b, other) = [*kinds.items()][:2]
        raise InputError(f"{owner}: {one} is {a} and {other} {b}; bind arrays of one dtype")
    if 0 in batch:
        raise InputError(f"{owner}: the batch {batch} is empty, there is nothing to bind")
    for k, (label, array) in enumerate(shaped[len(inputs) :], len(inputs)):
        for other, before in shaped[:k]:
            if array.size and before.size and np.may_share_memory(array, before):
                raise InputError(f"{owner}: {label} shares memory with {other}; give it an array of its own")
    for name, core, array in outputs:
        if array is not None and array.shape != batch + core:
            raise InputError(f"{owner}: out for {name} has shape {array.shape}, the result has {batch + core}")
    return batch, next(iter(kinds), np.dtype(np.float64))
