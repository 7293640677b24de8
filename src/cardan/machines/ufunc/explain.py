"""One clear sentence about arrays that a kernel cannot take. Runs only after NumPy has refused them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cardan.errors import InputError
from cardan.program.program import Port, Program


def explain(program: Program, args: Sequence[Any], out: Any, dtype: np.dtype[Any], refusal: str) -> InputError:
    """The error to raise for a call that NumPy refused with the message `refusal`."""
    return InputError(f"{program.name}: {_fault(program, args, out, dtype) or refusal}")


def _fault(program: Program, args: Sequence[Any], out: Any, dtype: np.dtype[Any]) -> str | None:
    """What is wrong with the arguments, or None if nothing was found."""
    ports = program.inputs
    if len(args) < len(ports):
        missing = ports[len(args) :]
        return f"missing argument{'s' if len(missing) > 1 else ''} {', '.join(port.name for port in missing)}"
    if len(args) > len(ports):
        return f"takes {len(ports)} arrays ({', '.join(port.name for port in ports)}), got {len(args)}"
    arrays = []
    for port, arg in zip(ports, args, strict=True):
        if np.ma.is_masked(arg):
            return f"{port.name} has masked entries; fill them, or leave their rows out"
        try:
            array = np.asarray(arg)
        except ValueError as error:
            return f"{port.name} is not an array of numbers: {error}"
        if not np.can_cast(array.dtype, dtype, "safe"):
            return f"{port.name} has dtype {array.dtype}, which cannot be cast to {dtype} safely"
        if fault := _core_fault(port, array.shape):
            return fault
        arrays.append(array)
    batches = [array.shape[: array.ndim - len(port.shape)] for port, array in zip(ports, arrays, strict=True)]
    for i, a in enumerate(batches):
        for j in range(i + 1, len(batches)):
            if not _broadcast(a, batches[j]):
                b, p, r = batches[j], ports[i].name, ports[j].name
                return f"batch shapes {a} of {p} and {b} of {r} do not broadcast"
    return _out_fault(program, np.broadcast_shapes(*batches), out, dtype)


def _core_fault(port: Port, shape: tuple[int, ...]) -> str | None:
    core, name = port.shape, port.name
    if len(shape) < len(core):
        wanted = ", ".join(map(str, core))
        return f"{name} has shape {shape}, the model needs (..., {wanted})"
    if shape[len(shape) - len(core) :] == core:
        return None
    if len(core) == 1:
        n = shape[-1]
        return f"{name} has {n} entries along its last axis, the model needs {core[0]} (shape {shape})"
    return f"{name} ends in {shape[-2:]} along its last two axes, the model needs {core} (shape {shape})"


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return True


def _out_fault(program: Program, batch: tuple[int, ...], out: Any, dtype: np.dtype[Any]) -> str | None:
    if out is None:
        return None
    given = out if isinstance(out, tuple) else (out,)
    if len(given) != len(program.outputs):
        return f"out has {len(given)} arrays, the results are {len(program.outputs)}"
    for port, array in zip(program.outputs, given, strict=True):
        if array is None:
            continue
        if not isinstance(array, np.ndarray):
            return f"out for {port.name} is a {type(array).__name__}, not a NumPy array"
        if array.shape != batch + port.shape:
            return f"out for {port.name} has shape {array.shape}, the result has {batch + port.shape}"
        if not np.can_cast(dtype, array.dtype, "same_kind"):
            return f"out for {port.name} has dtype {array.dtype}, which cannot hold {dtype}"
        if not array.flags.writeable:
            return f"out for {port.name} is read-only"
    return None
